"""python -m netmend.watch [--out RUN] PROGRAM [ARGUMENT…]: runs a Python program and records its training."""
import importlib.util
import os
import runpy
import sys

from . import refuse, watch

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
    if words == ["-m"]:
        refuse("-m names no module", USAGE)
    if words[0] != "-m" and not os.path.isfile(words[0]):
        refuse("there is no program %s" % words[0], USAGE)
    recorder = start(out)
    if words[0] == "-m":
        sys.argv = words[1:]
        if not is_module(words[1]):
            recorder.silent = True  # nothing ran: no record
            refuse("there is no module %s" % words[1], USAGE)
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")
    recorder.record.flush()
    if recorder.record.broken:
        refuse("the record is not whole: %s: %s" % (recorder.record.path, recorder.record.broken), "Make room, or give another folder: --out RUN")
    return 0


def start(out):
    """Before the program runs, so that it does not run in vain: a folder that can be written to and holds no record."""
    if os.path.lexists(os.path.join(out, "record.jsonl")):
        refuse("%s holds the record of another run" % out, "Give another folder: --out RUN")
    try:
        os.makedirs(out, exist_ok=True)
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as error:
        refuse("a record cannot be written to %s: %s" % (out or "a folder without a name", error.strerror), "Give another folder: --out RUN")
    return watch(os.path.abspath(out))


def is_module(name):
    """Whether Python finds it; what its package says while it is imported is the program's own."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name and (name + ".").startswith(error.name + "."):
            return False
        raise
    except (ValueError, ImportError):  # "", ".x", __main__
        return False


if __name__ == "__main__":
    sys.exit(main())
