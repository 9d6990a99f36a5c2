"""The program netmend as a child process: where it is, running it, its progress, Ctrl-C, and its errors as exceptions."""
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings

from ._errors import NetmendInputError, NetmendInternalError, NetmendMissingError
from ._files import Unfit, open_regular, printable

_HERE = os.path.dirname(os.path.abspath(__file__))


def program():
    """The path of the program: what NETMEND_PROGRAM names, the one in the wheel, the one built in the source tree around
    this package, the one on the PATH."""
    named = os.environ.get("NETMEND_PROGRAM")
    if named:
        if not os.path.isfile(named) or not os.access(named, os.X_OK):
            raise NetmendMissingError("NETMEND_PROGRAM names %s, which is not a program" % named)
        return os.path.abspath(named)
    source = os.path.dirname(os.path.dirname(_HERE))
    for path in (os.path.join(_HERE, "_bin", "netmend"), os.path.join(source, "build", "release", "netmend")):
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("netmend")
    # A console script of this package leads back here.
    if found and os.path.realpath(found) != os.path.realpath(sys.argv[0]) and _is_binary(found):
        return found
    raise NetmendMissingError("The program netmend is not installed: pip install netmend (the wheel brings it), or set "
                              "NETMEND_PROGRAM to the one you built")


def _is_binary(path):
    try:
        with open_regular(path) as file:
            return file.read(4) == b"\x7fELF"
    except (Unfit, OSError):
        return False


def main():
    """The command `netmend` of the wheel."""
    try:
        os.execve(program(), ["netmend"] + sys.argv[1:], environment())
    except NetmendMissingError as error:
        sys.exit("error: %s" % error)


def environment():
    """What the program should know: where this package is, for what it runs inside other Python programs; and, where it
    brings no LibTorch of its own, the PyTorch of this Python."""
    found = dict(os.environ)
    found.setdefault("NETMEND_PYTHON", os.path.dirname(_HERE))
    if os.path.exists(os.path.join(_HERE, "_bin", "torch-version")):
        found.setdefault("NETMEND_TORCH", _torch_folder())
    return found


def _torch_folder():
    """The PyTorch that `import torch` would load here, which is not imported for that; empty when there is none."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError, AttributeError):  # a module of that name that is no package
        spec = None
    return next(iter(spec.submodule_search_locations or []), "") if spec else ""


class Answer:
    """What a run gave: its JSON document (None when there is none), the exit status, and lines for people."""

    def __init__(self, document, status, notes):
        self.document, self.status, self.notes = document, status, notes


def run(words, progress=None, folder=None):
    """Runs netmend with --json. Status 0, 1 and 130 (Ctrl-C) are answers, all others exceptions. The first Ctrl-C lets the
    program finish what it can say; if it has nothing to say, or at the second one, KeyboardInterrupt goes on."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        at = words.index("--") if "--" in words else len(words)  # what follows belongs to a program
        status, interrupted = _wait([*words[:at], "--json", *words[at:]], out, err, progress, folder)
        out.seek(0)
        err.seek(0)
        said = err.read().decode("utf-8", "replace")
        text = out.read()
    if status in (0, 1, 130) and text.strip():
        try:
            return Answer(json.loads(text), status, _notes(said))
        except (ValueError, RecursionError):
            raise NetmendInternalError("netmend printed no JSON document: %.200r" % text)
    if interrupted or status == 130:
        raise KeyboardInterrupt
    raise _error(status, said)


def _wait(words, out, err, progress, folder):
    here, there = socket.socketpair()
    with here:
        try:
            # A session of its own: Ctrl-C comes from us, once, however the keyboard or the notebook sends it.
            child = subprocess.Popen([program()] + words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                                     pass_fds=[there.fileno()], start_new_session=True,
                                     env=dict(environment(), NETMEND_PROGRESS=str(there.fileno())))
        finally:
            there.close()
        bar, interrupted = _Bar(progress), False
        while True:
            try:
                _follow(here, bar)
                status = child.wait()
                break
            except KeyboardInterrupt:
                if interrupted:
                    child.kill()
                    child.wait()
                    bar.close()
                    raise
                interrupted = True
                child.send_signal(signal.SIGINT)
            except BaseException:
                child.kill()
                child.wait()
                raise
        bar.close()
        return status, interrupted


def _follow(here, bar):
    """Reads lines of progress until the program has ended."""
    rest = b""
    while True:
        block = here.recv(1 << 16)
        if not block:
            return
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            done, total, what = line.decode("utf-8", "replace").split(" ", 2)
            bar.show(int(done), int(total), what)


class _Bar:
    """A tqdm bar, where tqdm is installed and a person looks (or progress=True says so)."""

    def __init__(self, wanted):
        self.bar, self.tqdm = None, None
        watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        if wanted or (wanted is None and watched):
            try:
                with warnings.catch_warnings():  # about widgets that a notebook lacks: it draws text then
                    warnings.simplefilter("ignore")
                    from tqdm.auto import tqdm
                self.tqdm = tqdm
            except ImportError:
                pass

    def show(self, done, total, what):
        if self.tqdm is None:
            return
        if self.bar is None or (self.bar.total, self.bar.unit) != (total, " " + what):
            self.close()
            self.bar = self.tqdm(total=total, unit=" " + what, leave=False, delay=0.5)
        self.bar.update(done - self.bar.n)

    def close(self):
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def _notes(said):
    return [printable(line.strip()) for line in said.splitlines() if line.strip()]


def _error(status, said):
    if "GLIBC_" in said or "error while loading shared libraries" in said:
        return NetmendMissingError("The program cannot start here: %s. The wheel is for Linux on x86-64 with glibc 2.36 or newer "
                                   "(Debian 12, Ubuntu 22.10, Fedora 37); elsewhere, take the container or build it" % said.strip().splitlines()[0])
    lines = [line for line in said.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith(("error: ", "internal error: "))), None)
    what = lines[at].split(": ", 1)[1] if at is not None else " ".join(lines[-3:])
    hint = " ".join(line.strip() for line in lines[at + 1:]) if at is not None else ""
    if status == 2 and what.startswith("This netmend needs an installed PyTorch"):
        return NetmendMissingError("%s: %s" % (what, hint))
    if status == 2:
        return NetmendInputError(what, hint)
    if status < 0:
        return NetmendInternalError("netmend was ended by signal %d (%s). %s" % (-status, signal.Signals(-status).name, what))
    return NetmendInternalError(what or "netmend ended with status %d" % status)
