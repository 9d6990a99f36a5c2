"""Gates from Python: limits, the decorator, netmend.toml as tests, JUnit and SARIF."""
import json
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import netmend as nm
from netmend import _gates, _program

from .program import InFolder
from .support import HERE, missing

try:
    import pytest
except ImportError:
    pytest = None


class Limits(InFolder):
    def test_limits_as_arguments(self):
        passed = nm.gate("model.onnx", "glyphs:test", accuracy=">= 0.2", limit=400)
        self.assertTrue(passed.passed)
        self.assertEqual(list(passed.criteria["criterion"]) if hasattr(passed.criteria, "columns") else
                         [row["criterion"] for row in passed.criteria], ["accuracy"])
        failed = nm.gate("model.onnx", "glyphs:test", limits={"accuracy": ">= 0.99", "recall[1]": ">= 1"}, limit=400)
        self.assertFalse(failed.passed)
        with self.assertRaisesRegex(AssertionError, "accuracy: measured 0.*limit >= 0.99"):
            _gates.assert_passed(failed)

    def test_wrong_limits_are_said(self):
        with self.assertRaisesRegex(nm.NetmendInputError, "acuracy"):
            nm.gate("model.onnx", "glyphs:test", acuracy=">= 0.2")
        with self.assertRaisesRegex(nm.NetmendInputError, "both given"):
            nm.gate("model.onnx", "glyphs:test", accuracy=">= 0.2", config="netmend.toml")
        with self.assertRaisesRegex(nm.NetmendInputError, "is not a string"):
            nm.gate("model.onnx", "glyphs:test", limits={"accuracy": 0.9})

    def test_decorator(self):
        @nm.gate(accuracy=">= 0.2", limit=400)
        def test_good():
            return "model.onnx", "glyphs:test"

        @nm.gate(accuracy=">= 0.99", limit=400)
        def test_bad(model):
            return {"model": model, "data": "glyphs:test"}

        self.assertIsNone(test_good())
        self.assertTrue(test_good.result.passed)
        with self.assertRaisesRegex(AssertionError, "limit >= 0.99"):
            test_bad("model.onnx")

        @nm.gate(accuracy=">= 0.2")
        def test_nothing():
            pass

        with self.assertRaisesRegex(nm.NetmendInputError, "return model, loader"):
            test_nothing()

    def test_sarif_of_a_check(self):
        result = nm.check("model.onnx", "glyphs:test", limit=600, budget="quick")
        document = _gates.sarif([(result.document, "model.onnx")], nm.__version__)
        run = document["runs"][0]
        self.assertEqual(len(run["results"]), len(result.findings))
        self.assertEqual({r["ruleId"] for r in run["results"]}, {r["id"] for r in run["tool"]["driver"]["rules"]})


@unittest.skipIf(pytest is None, missing("pytest") if pytest is None else "")
class PlugIn(InFolder):
    def pytest(self, *words):
        environment = dict(os.environ, PYTHONPATH=HERE, NETMEND_PROGRAM=_program.program())
        return subprocess.run([sys.executable, "-m", "pytest", "-p", "netmend._pytest", "-q", *words], capture_output=True, text=True,
                              env=environment)

    def toml(self, text):
        with open("netmend.toml", "w") as file:
            file.write('model.file = "model.onnx"\ndata.test = "glyphs:test,limit=400"\n' + text)

    def test_netmend_toml_is_a_test_for_each_limit(self):
        self.toml('gate = { accuracy = ">= 0.2", "recall[1]" = ">= 1" }\n')
        done = self.pytest("--junitxml=junit.xml", "--netmend-sarif=found.sarif")
        if sys.version_info >= (3, 11):
            self.assertIn("1 failed, 1 passed", done.stdout)
        else:
            self.assertIn("1 failed", done.stdout)
        self.assertIn("recall[1]", done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        cases = list(xml.etree.ElementTree.parse("junit.xml").iter("testcase"))
        self.assertEqual(sum(case.find("failure") is not None for case in cases), 1)
        with open("found.sarif") as file:
            results = json.load(file)["runs"][0]["results"]
        self.assertEqual([r["ruleId"] for r in results], ["gate/recall"])
        self.assertEqual(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "netmend.toml")

    def test_a_file_without_limits_is_no_test(self):
        self.toml("")
        self.assertEqual(self.pytest().returncode, 5)  # nothing was collected

    def test_an_error_of_the_user_is_shown_as_a_sentence(self):
        self.toml('gate = { acuracy = ">= 0.2" }\n')
        done = self.pytest()
        self.assertEqual(done.returncode, 1)
        self.assertIn("acuracy", done.stdout)
        self.assertNotIn("Traceback", done.stdout)

    def test_decorated_tests(self):
        with open("test_model.py", "w") as file:
            file.write("import netmend as nm\n\n\n@nm.gate(accuracy='>= 0.999', limit=200)\ndef test_model():\n"
                       "    return 'model.onnx', 'glyphs:test'\n")
        done = self.pytest("test_model.py", "--netmend-sarif=found.sarif")
        self.assertIn("limit >= 0.999", done.stdout)
        with open("found.sarif") as file:
            self.assertEqual(len(json.load(file)["runs"][0]["results"]), 1)
