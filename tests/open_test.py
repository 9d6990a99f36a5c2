"""netmend open as a user runs it: the latest run, a named one, drawing anew, the browser, the words for what cannot be shown.

usage: open_test.py NETMEND
"""
import json, os, shutil, stat, subprocess, sys, tempfile, time, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"
REPORT = {"format": "netmend.report/1", "run": {}, "verdict": "Fine.", "findings": [], "skipped": []}


def run(*arguments, **environment):
    plain = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.run([NETMEND, "open", *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env=plain | environment)


def make_run(name, report=REPORT):
    os.makedirs(f"netmend-runs/{name}")
    if report is not None:
        with open(f"netmend-runs/{name}/evidence.json", "w") as file:
            json.dump(report, file)
    if os.path.lexists("netmend-runs/latest"):
        os.remove("netmend-runs/latest")
    os.symlink(name, "netmend-runs/latest")


class Open(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder, ignore_errors=True)

    def refused(self, *arguments, words):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, (done.stdout, done.stderr))
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_the_latest_run_is_drawn_and_named(self):
        make_run("20260101-000000-check", REPORT | {"verdict": "Old."})
        make_run("20260102-000000-check")
        self.assertEqual(run().stdout, "netmend-runs/latest/report.html\n")
        with open("netmend-runs/20260102-000000-check/report.html") as file:
            self.assertIn('"Fine."', file.read())
        self.assertEqual(json.loads(run("--json").stdout), {"report": "netmend-runs/latest/report.html"})
        named = run("20260101-000000-check", "--json")
        self.assertEqual(json.loads(named.stdout)["report"], "netmend-runs/20260101-000000-check/report.html")
        direct = run("netmend-runs/20260101-000000-check/report.html", "--json")
        self.assertEqual(json.loads(direct.stdout)["report"], "netmend-runs/20260101-000000-check/report.html")

    def test_a_run_of_another_command_is_passed_over(self):
        make_run("20260101-000000-check")
        make_run("20260102-000000-eval", None)
        done = run()
        self.assertEqual(done.stdout, "netmend-runs/20260101-000000-check/report.html\n")
        self.assertIn("has no report", done.stderr)

    def test_it_is_drawn_again_only_when_the_evidence_is_newer(self):
        make_run("a")
        page = "netmend-runs/a/report.html"
        run()
        with open(page, "w") as file:
            file.write("mine")
        run()
        with open(page) as file:
            self.assertEqual(file.read(), "mine")
        os.utime("netmend-runs/a/evidence.json", (time.time() + 5, time.time() + 5))
        run()
        self.assertGreater(os.path.getsize(page), 100000)
        os.remove("netmend-runs/a/evidence.json")
        self.assertEqual(run().returncode, 0)  # the page is all there is

    def test_the_desktop_gets_the_whole_path_when_there_is_one(self):
        make_run("a")
        os.makedirs("bin")
        with open("bin/xdg-open", "w") as file:
            file.write('#!/bin/sh\necho "$1" > "$0.told.new" && mv "$0.told.new" "$0.told"\n')
        os.chmod("bin/xdg-open", os.stat("bin/xdg-open").st_mode | stat.S_IXUSR)
        path = self.folder + "/bin:" + os.environ["PATH"]
        self.assertEqual(run(PATH=path).returncode, 0)
        self.assertEqual(run("--json", PATH=path, DISPLAY=":0").returncode, 0)
        time.sleep(0.3)
        self.assertFalse(os.path.exists("bin/xdg-open.told"))
        self.assertEqual(run(PATH=path, DISPLAY=":0").returncode, 0)
        for _ in range(100):
            if os.path.exists("bin/xdg-open.told"):
                break
            time.sleep(0.05)
        with open("bin/xdg-open.told") as file:
            self.assertEqual(file.read().strip(), os.path.join(os.path.realpath(self.folder), "netmend-runs/latest/report.html"))

    def test_what_cannot_be_shown_is_said_in_three_parts(self):
        self.refused(words=["netmend-runs", "netmend check"])
        make_run("20260101-000000-eval", None)
        self.refused(words=["no run", "netmend check"])
        self.refused("20260101-000000-eval", words=["evidence.json", "netmend check"])
        make_run("20260102-000000-check")
        self.refused("20260102-000000-chek", words=["did you mean 20260102-000000-check"])
        for text, word in (("{", "JSON"), ("[]", "format"), ('{"format": "other/3"}', "other/3"), ("[" * 100000 + "]" * 100000, "deep")):
            with open("netmend-runs/20260102-000000-check/evidence.json", "w") as file:
                file.write(text)
            self.refused(words=[word])
        self.assertFalse(os.path.exists("netmend-runs/latest/report.html"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
