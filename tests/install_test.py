"""The installed library: headers, CMake package and pkg-config file, and the two examples built against them.

usage: install_test.py BUILD_FOLDER SOURCE_FOLDER
"""
import os, shutil, subprocess, sys, tempfile, unittest

BUILD, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="netmend-install-")
        cls.prefix = os.path.join(cls.folder, "prefix")
        for step in (("cmake", "--build", BUILD, "--target", "netmend_library"),
                     ("cmake", "--install", BUILD, "--prefix", cls.prefix),
                     ("cmake", "-S", os.path.join(SOURCE, "examples"), "-B", os.path.join(cls.folder, "build"),
                      "-DCMAKE_PREFIX_PATH=" + cls.prefix, "-G", "Ninja"),
                     ("cmake", "--build", os.path.join(cls.folder, "build"))):
            done = run(*step)
            assert done.returncode == 0, (step, done.stdout[-2000:] + done.stderr[-2000:])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def example(self, name, *words):
        return run(os.path.join(self.folder, "build", name), *words, cwd=self.folder)

    def netmend(self, *words):
        done = run(os.path.join(self.prefix, "bin", "netmend"), *words, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_public_headers_know_no_tensor(self):
        include = os.path.join(self.prefix, "include")
        for folder, _, files in os.walk(include):
            for file in files:
                with open(os.path.join(folder, file), encoding="utf8") as text:
                    self.assertNotRegex(text.read(), r"#include <(ATen|torch|c10)/", file)

    def test_examples_check_and_repair(self):
        self.netmend("lab", "new", "mlp:784-24-10", "-o", "fresh.onnx")
        self.netmend("train", "fresh.onnx", "--data", "glyphs", "--limit", 4000, "--epochs", 2, "-o", "sound.onnx", "--quiet")
        checked = self.example("check_model", "sound.onnx", "glyphs")
        self.assertIn(checked.returncode, (0, 1), checked.stderr)
        self.assertIn("accuracy", checked.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "check-run", "report.html")))
        self.netmend("lab", "plant", "sound.onnx", "--kind", "random-weights", "--data", "glyphs:test", "--at-least", 5, "-o", "faulty.onnx")
        repaired = self.example("repair_model", "faulty.onnx", "glyphs:train", "fixed.onnx")
        self.assertEqual(repaired.returncode, 0, repaired.stdout + repaired.stderr)
        self.assertIn("repaired", repaired.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "fixed.onnx")))
        self.assertEqual(self.example("check_model", "no-such.onnx", "glyphs").returncode, 2)

    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("pkg-config is not installed")
        for folder, _, files in os.walk(self.prefix):
            if "netmend.pc" in files:
                environment = {**os.environ, "PKG_CONFIG_PATH": folder}
                done = run("pkg-config", "--cflags", "--libs", "netmend", env=environment)
                self.assertIn("-lnetmend", done.stdout, done.stderr)
                return
        self.fail("netmend.pc is not installed")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
