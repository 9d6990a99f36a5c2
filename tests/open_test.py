"""netmend open as a user runs it: the latest run, a named one, drawing anew, the browser, the words for what cannot be
shown.

usage: open_test.py NETMEND
"""
import os, stat, time

import shell
from shell import main, parse, read, write, write_json

REPORT = {"format": "netmend.report/1", "run": {}, "verdict": "Fine.", "findings": [], "skipped": []}


def run(*arguments, **environment):
    plain = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return shell.run("open", *arguments, timeout=60, env=plain | environment)


def make_run(name, report=REPORT):
    os.makedirs(f"netmend-runs/{name}")
    if report is not None:
        write_json(f"netmend-runs/{name}/evidence.json", report)
    if os.path.lexists("netmend-runs/latest"):
        os.remove("netmend-runs/latest")
    os.symlink(name, "netmend-runs/latest")


class Open(shell.Case):
    def refused(self, *arguments, words):
        said = super().refused("open", *arguments, words=words)
        self.assertTrue(said.startswith("error: "), said)
        self.assertEqual(len(said.strip().splitlines()), 2, said)

    def test_the_latest_run_is_drawn_and_named(self):
        make_run("20260101-000000-check", REPORT | {"verdict": "Old."})
        make_run("20260102-000000-check")
        self.assertEqual(run().stdout, "netmend-runs/latest/report.html\n")
        self.assertIn('"Fine."', read("netmend-runs/20260102-000000-check/report.html"))
        self.assertEqual(parse(run("--json").stdout), {"report": "netmend-runs/latest/report.html"})
        named = run("20260101-000000-check", "--json")
        self.assertEqual(parse(named.stdout)["report"], "netmend-runs/20260101-000000-check/report.html")
        direct = run("netmend-runs/20260101-000000-check/report.html", "--json")
        self.assertEqual(parse(direct.stdout)["report"], "netmend-runs/20260101-000000-check/report.html")

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
        write(page, "mine")
        run()
        self.assertEqual(read(page), "mine")
        os.utime("netmend-runs/a/evidence.json", (time.time() + 5, time.time() + 5))
        run()
        self.assertGreater(os.path.getsize(page), 100000)
        os.remove("netmend-runs/a/evidence.json")
        self.assertEqual(run().returncode, 0)  # the page is all there is

    def test_the_desktop_gets_the_whole_path_when_there_is_one(self):
        make_run("a")
        os.makedirs("bin")
        write("bin/xdg-open", '#!/bin/sh\necho "$1" > "$0.told.new" && mv "$0.told.new" "$0.told"\n')
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
        page = os.path.join(os.path.realpath(self.folder), "netmend-runs/latest/report.html")
        self.assertEqual(read("bin/xdg-open.told").strip(), page)

    def test_what_cannot_be_shown_is_said_in_three_parts(self):
        self.refused(words=["netmend-runs", "netmend check"])
        make_run("20260101-000000-eval", None)
        self.refused(words=["no run", "netmend check"])
        self.refused("20260101-000000-eval", words=["evidence.json", "netmend check"])
        make_run("20260102-000000-check")
        self.refused("20260102-000000-chek", words=["did you mean 20260102-000000-check"])
        for text, word in (("{", "JSON"), ("[]", "format"), ('{"format": "other/3"}', "other/3"),
                           ("[" * 100000 + "]" * 100000, "deep")):
            write("netmend-runs/20260102-000000-check/evidence.json", text)
            self.refused(words=[word])
        self.assertFalse(os.path.exists("netmend-runs/latest/report.html"))


if __name__ == "__main__":
    main()
