"""The pytest plug-in: a netmend.toml with limits is a test for each limit, and what does not pass goes into SARIF.

JUnit is pytest's own: --junitxml=FILE. `-p no:netmend` leaves the plug-in out.
"""
import os
import re

import pytest

from . import _program
from ._errors import NetmendError
from ._files import Unfit, printable, printable_name, read_bytes
from ._gates import failures, sentence, write_sarif
from ._version import VERSION

_documents = pytest.StashKey()


def pytest_addoption(parser):
    group = parser.getgroup("netmend")
    group.addoption("--netmend-sarif", metavar="FILE", help="write limits that are not met to FILE as SARIF 2.1.0")
    group.addoption("--netmend-against", metavar="REFERENCE", help="an earlier model, a run folder or a baseline.json")


def pytest_configure(config):
    config.stash[_documents] = []


def pytest_collect_file(file_path, parent):
    if file_path.name == "netmend.toml" and limits_of(file_path):
        return GateFile.from_parent(parent, path=file_path)
    return None


def limits_of(path):
    """The names of the limits; [""] for all of them together where this Python reads no TOML (before 3.11)."""
    try:
        text = read_bytes(path, 16 << 20).decode("utf-8", "replace")
    except Unfit:
        return [""]  # the program says what is wrong, and where
    try:
        import tomllib
    except ImportError:
        try:
            import tomli as tomllib
        except ImportError:
            return [""] if re.search(r"^\s*\[?\s*gate\b", text, re.M) else []
    try:
        gate = tomllib.loads(text).get("gate", {})
    except (ValueError, RecursionError):
        return [""]  # here too
    return [str(name) for name in gate] if isinstance(gate, dict) else [""]


class GateFile(pytest.File):
    """One netmend.toml. Its gate is run once, when the first of its limits is judged."""

    answer = None

    def collect(self):
        for name in limits_of(self.path):
            yield Limit.from_parent(self, name=printable_name(name) or "gate", limit=name or "gate")

    def document(self):
        if self.answer is None:
            words = ["gate", "--config=" + str(self.path)]
            against = self.config.getoption("--netmend-against")
            if against:
                words.append("--against=" + os.path.abspath(against))
            try:
                self.answer = _program.run(words, progress=False, folder=str(self.path.parent)).document
            except NetmendError as error:
                self.answer = error
            else:
                self.config.stash[_documents].append((self.answer, str(self.path)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class LimitFailed(Exception):
    pass


class Limit(pytest.Item):
    def __init__(self, limit, **more):
        super().__init__(**more)
        self.limit = limit

    def runtest(self):
        document = self.parent.document()
        rows = [row for row in document.get("criteria", []) if self.limit in ("gate", row["criterion"])
                or row["criterion"].split("[")[0] == self.limit]
        if document.get("reason"):
            raise LimitFailed(document["reason"])
        wrong = [row for row in rows if row["verdict"] != "pass"]
        if wrong:
            raise LimitFailed("\n".join("%s: %s" % (row["criterion"], sentence(row)) for row in wrong))
        if not rows and not document["pass"]:
            raise LimitFailed("\n".join(failures(document)))

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, (LimitFailed, NetmendError)):
            return printable(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, "gate: " + self.name


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests with the decorator keep their result; SARIF wants it."""
    yield
    result = getattr(pyfuncitem.obj, "result", None)
    if result is not None and getattr(result, "command", None) == "gate":
        pyfuncitem.config.stash[_documents].append((result.document, str(pyfuncitem.path)))


def pytest_sessionfinish(session):
    target = session.config.getoption("--netmend-sarif")
    if target:
        root = str(session.config.rootpath)
        write_sarif(target, [(document, os.path.relpath(about, root)) for document, about in session.config.stash[_documents]],
                    VERSION)
