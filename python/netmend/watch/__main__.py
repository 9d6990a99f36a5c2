"""python -m netmend.watch [--out RUN] PROGRAM [ARGUMENT…]: runs a Python program and records its training."""
import os
import runpy
import sys

from . import watch

USAGE = "usage: python -m netmend.watch [--out RUN] PROGRAM [ARGUMENT…]     (or: … -m MODULE [ARGUMENT…])"


def main():
    words, out = sys.argv[1:], "netmend-run"
    if words[:1] == ["--out"] and len(words) > 1:
        out, words = words[1], words[2:]
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or words[0] in ("-h", "--help"):
        print(__doc__ + "\n\n" + USAGE)
        return 0 if words else 2
    if words[0] != "-m" and not os.path.isfile(words[0]):
        print("error: there is no program %s\n  %s" % (words[0], USAGE), file=sys.stderr)
        return 2
    if os.path.exists(os.path.join(out, "record.jsonl")):
        print("error: %s holds the record of another run\n  Give another folder: --out RUN" % out, file=sys.stderr)
        return 2
    watch(os.path.abspath(out))
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
