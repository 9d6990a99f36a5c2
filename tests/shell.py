"""What the tests of commands share: running netmend in an empty folder, and what its output must look like."""
import json, os, shutil, subprocess, sys, tempfile, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"


def run(*arguments, timeout=600):
    return subprocess.run([NETMEND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


class Case(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ok(self, *arguments, code=0):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-800:], done.stderr[-800:]))
        return done

    def json(self, *arguments, code=0):
        def no_such(number):
            raise AssertionError(f"{number} in JSON")

        return json.loads(self.ok(*arguments, "--json", code=code).stdout, parse_constant=no_such)

    def refused(self, *arguments, words=()):
        said = self.ok(*arguments, code=2).stderr
        self.assertEqual(sum(line.startswith("error: ") for line in said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    """Levels: the classes named Slow… run when the second argument says slow, all others otherwise."""
    slow = len(sys.argv) > 2 and sys.argv[2] == "slow"
    suite, loader = unittest.TestSuite(), unittest.TestLoader()
    for name, thing in sorted(vars(sys.modules["__main__"]).items()):
        if isinstance(thing, type) and issubclass(thing, Case) and thing is not Case and name.startswith("Slow") == slow:
            suite.addTests(loader.loadTestsFromTestCase(thing))
    done = unittest.TextTestRunner(verbosity=2).run(suite)
    if done.wasSuccessful() and done.testsRun and len(done.skipped) == done.testsRun:
        sys.exit(77)  # ctest counts it as skipped
    sys.exit(not done.wasSuccessful())
