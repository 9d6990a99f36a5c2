"""The installed library: headers, CMake package and pkg-config file, and the two examples built against them.

usage: install_test.py NETMEND, in its build folder
"""
import os, shutil

from shell import NETMEND, SOURCE, OneFolder, main, must, read, run

BUILD = os.path.dirname(NETMEND)


class Installed(OneFolder):
    @classmethod
    def make(cls):
        cls.prefix = os.path.abspath("prefix")
        for step in (("--build", BUILD, "--target", "netmend_library"), ("--install", BUILD, "--prefix", cls.prefix),
                     ("-S", os.path.join(SOURCE, "examples"), "-B", "build", "-DCMAKE_PREFIX_PATH=" + cls.prefix,
                      "-G", "Ninja"), ("--build", "build")):
            must(*step, program="cmake", timeout=None)

    def example(self, name, *words):
        return run(*words, program=os.path.abspath(os.path.join("build", name)))

    def netmend(self, *words):
        self.ok(*words, program=os.path.join(self.prefix, "bin", "netmend"))

    def test_public_headers_know_no_tensor(self):
        include = os.path.join(self.prefix, "include")
        headers = [os.path.join(folder, file) for folder, _, files in os.walk(include) for file in files]
        self.assertTrue(headers)
        for header in headers:
            self.assertNotRegex(read(header), r"#include <(ATen|torch|c10)/", header)

    def test_examples_check_and_repair(self):
        self.netmend("lab", "new", "mlp:784-24-10", "-o", "fresh.onnx")
        self.netmend("train", "fresh.onnx", "--data", "glyphs", "--limit", 4000, "--epochs", 2, "-o", "sound.onnx",
                     "--quiet")
        checked = self.example("check_model", "sound.onnx", "glyphs")
        self.assertIn(checked.returncode, (0, 1), checked.stderr)
        self.assertIn("accuracy", checked.stdout)
        self.assertTrue(os.path.exists("check-run/report.html"))
        self.netmend("lab", "plant", "sound.onnx", "--kind", "random-weights", "--data", "glyphs:test", "--at-least", 5,
                     "-o", "faulty.onnx")
        repaired = self.example("repair_model", "faulty.onnx", "glyphs:train", "fixed.onnx")
        self.assertEqual(repaired.returncode, 0, repaired.stdout + repaired.stderr)
        self.assertIn("repaired", repaired.stdout)
        self.assertTrue(os.path.exists("fixed.onnx"))
        self.assertEqual(self.example("check_model", "no-such.onnx", "glyphs").returncode, 2)

    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("pkg-config is not installed")
        for folder, _, files in os.walk(self.prefix):
            if "netmend.pc" in files:
                environment = {**os.environ, "PKG_CONFIG_PATH": folder}
                done = run("--cflags", "--libs", "netmend", program="pkg-config", env=environment)
                self.assertIn("-lnetmend", done.stdout, done.stderr)
                return
        self.fail("netmend.pc is not installed")


if __name__ == "__main__":
    main(slow=True)
