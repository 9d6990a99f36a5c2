"""The program's commands from Python: names and arguments, results, errors, Ctrl-C, and the examples in docstrings."""
import doctest
import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from unittest import mock

import numpy as np

import netmend as nm
from netmend import _commands, _program, _stubs
from netmend._workspace import Workspace

from .program import InFolder


class Description(InFolder):
    def test_every_command_is_a_function(self):
        page = subprocess.run([_program.program()], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"^(?:  [A-Z][a-z]+(?: here)? +| {14})((?:lab )?[a-z]+)  ", page, re.M)
        self.assertGreater(len(names), 25)
        for name in names:
            place = nm
            for word in name.split():
                place = getattr(place, word)
            self.assertTrue(callable(place) or inspect.ismodule(place) or name == "lab study", name)

    def test_flags_of_help_are_arguments(self):
        for words in (["check"], ["repair"], ["lab", "plant"]):
            page = subprocess.run([_program.program()] + words + ["--help"], capture_output=True, text=True, check=True).stdout
            flags = set(re.findall(r"^ +(?:-\w,)?--([a-z0-9-]+)", page, re.M)) - {"help", "json", "quiet", "wide"}
            place = nm
            for word in words:
                place = getattr(place, word)
            self.assertEqual(flags - {n.replace("_", "-") for n in inspect.signature(place).parameters}, set(), words)

    def test_examples_in_python_say_what_those_of_the_program_say(self):
        seen = 0
        for entry in _commands.describe()["commands"]:
            command = _commands.Command(entry)
            for words in command.example_words():
                text = command.python_call(words)
                self.assertIsNotNone(text, (command.name, words))
                given = command.bind(*eval("_gather" + text[text.index("("):], {"_gather": lambda *a, **k: (a, k)}))
                made = [w for o in command.options for w in o.words(given.get(o.name), Workspace(), None) if w != "--"]
                self.assertEqual(sorted(_apart(made)), sorted(_apart(w for w in words if w not in ("--json", "--quiet", "--"))))
                seen += 1
        self.assertGreater(seen, 60)

    def test_stub_is_python_and_has_every_command(self):
        text = _stubs.text()
        compile(text, "__init__.pyi", "exec")
        for name in ("check", "gate", "repair", "next"):
            self.assertIn("def %s(" % name, text)
        self.assertIn("class _LabStudy:", text)

    def test_version_is_the_programs(self):
        said = subprocess.run([_program.program(), "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.split(), ["netmend", nm.__version__])

    def test_docstrings_run(self):
        from netmend import _data, _models

        for module in (nm, _data, _models):
            done = doctest.testmod(module, extraglobs={"np": np}, optionflags=doctest.ELLIPSIS)
            self.assertEqual(done.failed, 0, module)
            self.assertGreater(done.attempted, 0, module)


def _apart(words):
    """--flag=value and --flag value as the same, and 1e-5 and 1e-05."""
    for word in words:
        flag, equals, value = word.partition("=")
        for part in (flag, value) if word.startswith("--") and equals else (word,):
            yield str(float(part)) if re.fullmatch(r"[\d.]+e-\d+", part) else part


class Calls(InFolder):
    def test_result_is_the_programs_document(self):
        result = nm.eval("model.onnx", "glyphs:test", limit=400)
        self.assertTrue(result.passed)
        self.assertEqual(result.samples, 400)
        self.assertEqual(len(result.per_class), 10)
        self.assertEqual(result.document["accuracy"], result.accuracy)
        self.assertEqual(len(result.arrays["predicted"]), 400)
        self.assertEqual(len(result.read("samples.csv")), 400)
        self.assertIn("accuracy", repr(result))
        with self.assertRaisesRegex(AttributeError, "per_class"):
            result.nothing
        with self.assertRaisesRegex(nm.NetmendInputError, "samples.csv"):
            result.read("nothing.csv")

    def test_tables_without_pandas_are_lists(self):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            result = nm.eval("model.onnx", "glyphs:test", limit=50)
            self.assertIsInstance(result.per_class, list)
            self.assertEqual(len(result.read("samples.csv")), 50)

    def test_check_has_findings_and_a_page(self):
        result = nm.check("model.onnx", "glyphs:test", limit=600, budget="quick")
        self.assertTrue(result.findings)
        first = result.findings[0]
        self.assertIn(first.level, ("blocker", "serious", "minor", "note"))
        self.assertIn(first.id, result._repr_html_())
        self.assertTrue(first.why().document)
        self.assertEqual(len(result.table("passed")), len(result["passed"]))
        self.assertTrue(os.path.exists(result.page))
        opened = []
        with mock.patch("webbrowser.open", opened.append):
            self.assertEqual(result.show(), result.page)
        self.assertEqual(opened, ["file://" + result.page])

    def test_names_from_files_are_escaped(self):
        x, y = np.random.default_rng(0).random((40, 784), np.float32), np.arange(40) % 10
        names = ["<script>alert(%d)</script>" % i for i in range(10)]
        result = nm.check("model.onnx", nm.Data((x, y), classes=names), anyway=True, budget="quick")
        self.assertNotIn("<script", result._repr_html_())

    def test_errors_are_exceptions_with_the_programs_sentence(self):
        with self.assertRaises(nm.NetmendInputError) as caught:
            nm.eval("missing.onnx", "glyphs:test")
        self.assertIn("missing.onnx", caught.exception.what)
        with self.assertRaisesRegex(nm.NetmendInputError, "lenet"):
            nm.lab.new("lenet99")
        with self.assertRaisesRegex(TypeError, "did you mean limit"):
            nm.eval("model.onnx", "glyphs:test", limits_=3)
        with self.assertRaisesRegex(AttributeError, "did you mean coverage"):
            nm.covrage
        with self.assertRaisesRegex(nm.NetmendInputError, "True or False"):
            nm.eval("model.onnx", "glyphs:test", all="yes")
        with self.assertRaisesRegex(nm.NetmendInputError, "is not a model"):
            nm.eval(np.zeros(3), "glyphs:test")

    def test_errors_travel_between_processes(self):
        for error in (nm.NetmendInputError("what", "hint"), nm.RecorderError("what", "where", "hint"), nm.PatchError("what", "where", "hint")):
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), str(copy), copy.hint), (type(error), str(error), "hint"))

    def test_a_check_that_does_not_pass_is_a_result(self):
        result = nm.check("model.onnx", "glyphs:test", limit=600, budget="quick", fail_on="note")
        self.assertFalse(result.passed)
        self.assertEqual(result.status, 1)

    def test_products_may_be_left_out(self):
        result = nm.stress("model.onnx", "glyphs:test", method="fgsm", limit=50)
        self.assertTrue(os.path.exists(result.files["o"]))
        self.assertIn("x", result.arrays.files)
        folder = os.path.dirname(result.files["o"])
        del result
        self.assertFalse(os.path.exists(folder))

    def test_flags_with_dashes_and_python_words(self):
        result = nm.stress("model.onnx", "glyphs:test", method="fgsm", limit=20, from_="all", o="adv.npz", eps=0.05)
        self.assertTrue(os.path.exists("adv.npz"))
        self.assertTrue(result.passed)

    def test_a_program_that_cannot_start_is_said(self):
        with open("netmend", "w") as file:
            file.write("#!/bin/sh\necho \"netmend: /lib/libc.so.6: version 'GLIBC_2.36' not found\" >&2\nexit 1\n")
        os.chmod("netmend", 0o755)
        with mock.patch.dict(os.environ, {"NETMEND_PROGRAM": os.path.abspath("netmend")}):
            with self.assertRaisesRegex(nm.NetmendMissingError, "glibc 2.36"):
                _program.run(["info", "model.onnx"])

    def test_no_program_is_said(self):
        with mock.patch.dict(os.environ, {"NETMEND_PROGRAM": "/no/such/netmend"}):
            with self.assertRaisesRegex(nm.NetmendMissingError, "/no/such/netmend"):
                _program.program()


class Watched(InFolder):
    """Runs that somebody watches: Ctrl-C and progress. The bar of tqdm is replaced by one that records, or that presses keys."""

    COUNT = 12_000

    def data(self):
        x = np.random.default_rng(0).random((self.COUNT, 1, 28, 28), np.float32)
        return nm.Data((x, np.arange(self.COUNT) % 10))

    def watched(self, on_update, **how):
        class Bar:
            def __init__(self, total, unit, leave, delay):
                self.total, self.unit, self.n = total, unit, 0

            def update(self, more):
                self.n += more
                on_update(self)

            def close(self):
                pass

        with mock.patch.dict(sys.modules, {"tqdm.auto": mock.Mock(tqdm=Bar), "tqdm": mock.Mock()}):
            slow = nm.lab.new("lenet5")
            return nm.eval(slow.files["o"], self.data(), anyway=True, jobs=1, float64=True, units=True, progress=True, **how)

    def test_progress(self):
        seen = []
        self.watched(lambda bar: seen.append((bar.n, bar.total)))
        self.assertTrue(seen)
        self.assertEqual(seen[-1], (self.COUNT, self.COUNT))

    def test_interrupted_what_is_there_comes_back(self):
        pressed = []

        def press(bar):
            if not pressed:
                pressed.append(bar.n)
                os.kill(os.getpid(), signal.SIGINT)

        result = self.watched(press)
        self.assertTrue(pressed)
        self.assertTrue(result.partial)
        self.assertLess(result.samples, self.COUNT)
        self.assertIn("stopped early", repr(result))

    def test_interrupted_with_nothing_to_say(self):
        timer = threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            nm.lab.study.planted_faults(models=["lenet5@glyphs"], runs=1000, out="study")
        timer.cancel()
