"""netmend mutate and inject, next --method mutation, locate --measure muse, as a user runs them.

usage: mutation_test.py NETMEND [fast|slow]
"""
import csv, json, os, signal, subprocess, tempfile, time

from shell import Case, main, must, parse, read, start

PROGRAM = '''import random, sys, time
random.seed(3)
data = [(i, i % 2) for i in range(40)]
# netmend: construction
weights = [0.5, 0.25]
name = "accu" + "racy"
limit = 3
# netmend: learning
right = 0
for step in range(limit):
    for value, label in data:
        guess = 1 if value % 2 > 0 else 0
        if guess == label:
            right += 1
print(name, right / (limit * len(data)))
'''
TORCH = '''import sys
import torch
torch.manual_seed(int(sys.argv[1]))
inputs = torch.rand(64, 4)
labels = (inputs.sum(1) > 2).long()
network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(30):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(network(inputs), labels).backward()
    optimiser.step()
'''
METRIC = ("--metric", "accuracy ([0-9.]+)")
NAMES = {"normal", "crash", "hang", "out-of-memory", "killed", "no-metric"}


def bubblewrap_works():
    return subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"],
                          capture_output=True).returncode == 0 if any(
        os.access(os.path.join(place, "bwrap"), os.X_OK) for place in os.environ["PATH"].split(":")) else False


def sandbox_folders():
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("netmend-sandbox-")}


class Mutate(Case):
    def setUp(self):
        super().setUp()
        must("lab", "new", "mlp:784-16-16-10", "-o", "net.onnx")

    def test_scores_and_what_is_written(self):
        found = parse(self.ok("mutate", "net.onnx", "--data", "glyphs", "--limit", 200, "--sample", 60, "--anyway", "--json", "--out", "run").stdout)
        self.assertEqual(len(found["mutants"]), 60)
        self.assertEqual(len({one["id"] for one in found["mutants"]}), 60)
        self.assertTrue(0 <= found["interval"]["low"] <= found["score"] <= found["interval"]["high"] <= 1)
        counted = [one for one in found["mutants"] if not one["equivalent"]]
        self.assertEqual(found["killed"], sum(one["killed"] for one in counted))
        self.assertAlmostEqual(found["score"], sum(one["killed_classes"] for one in counted) / (10 * len(counted)), places=9)
        with open("run/mutants.csv") as file:
            self.assertEqual([row["id"] for row in csv.DictReader(file)], [one["id"] for one in found["mutants"]])
        self.assertEqual(found["smallest"]["tests"], len(found["smallest"]["samples"]))
        again = parse(self.ok("mutate", "net.onnx", "--data", "glyphs", "--limit", 200, "--sample", 60, "--anyway", "--json", "--jobs", 1).stdout)
        self.assertEqual(again["mutants"], found["mutants"])

    def test_strict_kills_more_and_screens_fit(self):
        shown = self.ok("mutate", "net.onnx", "--data", "glyphs:test", "--limit", 100, "--sample", 30, "--kill", "strict", "--anyway",
                        env={**os.environ, "COLUMNS": "80"})
        self.assertIn("by any prediction that changes", " ".join(shown.stdout.split()))
        self.assertLessEqual(max(map(len, shown.stdout.splitlines())), 80)

    def test_statistical_killing_takes_several_trainings(self):
        others = []
        for seed in (1, 2, 3, 4):
            others += ["--original", f"net{seed}.onnx"]
            must("lab", "new", "mlp:784-16-16-10", "-o", f"net{seed}.onnx", "--seed", seed)
        found = parse(self.ok("mutate", "net.onnx", "--data", "glyphs:test", "--limit", 100, "--sample", 20, "--operators", "neb,nai", "--kill",
                              "statistical", *others, "--anyway", "--json").stdout)
        self.assertEqual((found["kill"], found["originals"], len(found["mutants"])), ("statistical", 5, 20))
        self.assertAlmostEqual(found["score"], sum(one["killed"] for one in found["mutants"]) / 20, places=9)
        self.refused("mutate", "net.onnx", "--data", "glyphs:test", "--kill", "statistical", words=("several trainings", "--original"))

    def test_slips_of_the_finger(self):
        self.refused("mutate", "net.onnx", "--data", "glyphs:test", "--operators", "gff", words=("did you mean gf",))
        self.refused("mutate", "net.onnx", "--data", "glyphs:test", "--kill", "some", words=("class", "strict"))
        self.refused("mutate", "net.onnx", "--data", "glyphs:test", "--limit", 20, "--layer", "fc9", "--anyway", words=("no layer fc9",))

    def test_next_and_locate_know_mutants(self):
        chosen = parse(self.ok("next", "net.onnx", "--pool", "glyphs:train", "--limit", 100, "--method", "mutation", "--data", "glyphs:test",
                               "--count", 5, "--anyway", "--json").stdout)
        self.assertEqual(len(chosen["chosen"]), 5)
        for measure in ("muse", "metallaxis"):
            found = parse(self.ok("locate", "net.onnx", "--data", "glyphs:test", "--limit", 200, "--measure", measure, "--anyway", "--json").stdout)
            self.assertEqual(found["measure"], measure)


class SlowInject(Case):
    def setUp(self):
        super().setUp()
        with open("train.py", "w") as file:
            file.write(PROGRAM)
        if not bubblewrap_works():
            self.skipTest("bubblewrap does not work here")

    def inject(self, *more, clean=2):
        return self.ok("inject", "train.py", *METRIC, "--python", "/usr/bin/python3", "--clean-runs", clean, "--json", *more)

    def test_every_bug_has_an_outcome_and_the_run_goes_on(self):
        found = parse(self.inject("--sample", 0, "--out", "run").stdout)
        self.assertEqual({one["outcome"] for one in found["mutants"]} - NAMES, set())
        self.assertGreater(len(found["mutants"]), 15)
        self.assertTrue(found["clean"]["deterministic"])
        self.assertIn("crash", {one["outcome"] for one in found["mutants"]})
        self.assertIn("normal", {one["outcome"] for one in found["mutants"]})
        self.assertTrue(all(one["diff"].startswith("--- a/train.py") for one in found["mutants"]))
        self.assertEqual({phase for one in found["mutants"] for phase in one["phase"]} - {"preprocessing", "construction", "learning"}, set())
        again = parse(self.inject("--sample", 0, "--out", "run").stdout)
        # The second clean run, the first once more, and what the doctor said of the clean program and of survivors.
        self.assertEqual(again["found_trials"], len(found["mutants"]) + 2 + (found["doctor"]["asked"] > 0) + found["doctor"]["asked"])
        self.assertEqual([one["id"] for one in parse(self.inject("--sample", 0, "--out", "other", "--doctor", 0, "--jobs", 1).stdout)["mutants"]],
                         [one["id"] for one in found["mutants"]])
        self.assertEqual([one["outcome"] for one in again["mutants"]], [one["outcome"] for one in found["mutants"]])
        self.assertIn("Table VI", read("run/report.md"))

    def test_a_killed_driver_leaves_nothing_and_is_taken_up(self):
        with open("train.py", "a") as file:
            file.write("time.sleep(1)\n")
        folders = sandbox_folders()
        mounts = [line for line in read("/proc/mounts").splitlines() if os.getcwd() in line or "netmend" in line.split()[1]]
        broken = start("inject", "train.py", *METRIC, "--python", "/usr/bin/python3", "--clean-runs", 2, "--sample", 12, "--out", "run",
                       "--jobs", 2, start_new_session=True)
        time.sleep(9)
        broken.send_signal(signal.SIGKILL)
        broken.communicate()
        time.sleep(3)
        left = subprocess.run(["pgrep", "-f", os.path.join(os.getcwd(), "train.py")], capture_output=True, text=True).stdout
        self.assertEqual(left, "")
        self.assertEqual(sandbox_folders() - folders, set())
        self.assertEqual([line for line in read("/proc/mounts").splitlines() if os.getcwd() in line or "netmend" in line.split()[1]], mounts)
        done = parse(self.inject("--sample", 12, "--out", "run", "--jobs", 2).stdout)
        self.assertEqual(len(done["mutants"]), 12)
        self.assertGreaterEqual(done["found_trials"], 1)

    def test_programs_that_cannot_be_used(self):
        for text, words in (("raise ValueError('no data')", ("does not run as it is", "ValueError")),
                            ("print('loss 3')", ("no line that matches --metric", "loss 3")),
                            ("x = (", ("not valid Python",))):
            with open("bad.py", "w") as file:
                file.write(text)
            self.refused("inject", "bad.py", *METRIC, "--python", "/usr/bin/python3", "--clean-runs", 2, words=words)
        self.refused("inject", "none.py", *METRIC, words=("no program none.py",))
        self.refused("inject", "train.py", "--metric", "accuracy ([0", words=("not a regular expression",))

    def test_a_program_names_no_files_and_no_words_of_ours(self):
        """What a program writes in place of the recorder's report is not believed: files that it may not read stay so."""
        os.makedirs("mine"), os.makedirs("secret")
        with open("secret/key.py", "w") as file:
            file.write("password = 1 + 1\n")
        secret = os.path.abspath("secret/key.py")
        for report, words in (({"lines": {secret: {"1": ["learning"]}}}, ("no operator applies to any",)),
                              ({"lines": {"x": 3, "mine/train.py": [1]}, "children": -3}, ("no operator",)), ({"lines": 3}, ("no operator",)),
                              ({secret: {"1": ["learning"]}}, ("executed lines failed",)), ([], ("executed lines failed",))):
            with open("mine/train.py", "w") as file:
                file.write(f"import json, os\nx = 1\nprint('accuracy 0.5', flush=True)\nif 'NETMEND_REPORT_FD' in os.environ:\n"
                           f"    os.write(int(os.environ['NETMEND_REPORT_FD']), json.dumps({report!r}).encode())\n    os._exit(0)\n")
            said = self.refused("inject", "mine/train.py", *METRIC, "--python", "/usr/bin/python3", "--clean-runs", 2, words=words)
            self.assertNotIn("password", said)
        with open("mine/train.py", "w") as file:
            file.write("import os\nprint('accuracy 0.5')\nif 'NETMEND_REPORT_FD' in os.environ:\n    print('{\"error\": 3}', flush=True)\n    os._exit(0)\n")
        self.refused("inject", "mine/train.py", *METRIC, "--python", "/usr/bin/python3", "--clean-runs", 2)

    def test_metrics_from_a_file_and_from_a_record(self):
        with open("train.py", "w") as file:
            file.write("import json\nright, all = 30, 40\nwith open('result.json', 'w') as out:\n    json.dump({'test': {'accuracy': right / all}}, out)\n")
        with open("result.json", "w") as file:
            json.dump({"test": {"accuracy": 0.1}}, file)  # of an earlier run: not believed
        found = parse(self.ok("inject", "train.py", "--metric", "json:result.json:test.accuracy", "--python", "/usr/bin/python3", "--clean-runs", 2,
                              "--sample", 0, "--doctor", 0, "--json").stdout)
        self.assertEqual(found["clean"]["mean"], 0.75)
        self.assertEqual(json.loads(read("result.json"))["test"]["accuracy"], 0.1)
        self.refused("inject", "train.py", "--metric", "json:result.json:test.loss", "--python", "/usr/bin/python3", "--clean-runs", 2, words=("no number test.loss",))
        with open("train.py", "w") as file:
            file.write(TORCH)
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0:
            found = parse(self.ok("inject", "train.py", "--metric", "record:loss", "--python", "/usr/bin/python3", "--clean-runs", 2, "--sample", 3,
                                  "--operators", "zero-grad-removed,rate-changed", "--json", "--", "{seed}").stdout)
            self.assertTrue(found["clean"]["seeded"] and found["clean"]["repeats"])
            self.assertGreater(found["clean"]["deviation"], 0)
            self.assertEqual(found["doctor"]["asked"], len(found["survivors"]))
            self.assertEqual(found["doctor"]["recorded"], found["doctor"]["asked"])
            self.refused("inject", "train.py", "--metric", "record:auc", "--python", "/usr/bin/python3", "--clean-runs", 2, "--", 1, words=("no metric auc",))

    def test_sources_of_all_kinds(self):
        body = "x = 1 + 1\nif x > 1:\n    x = x * 2\nprint('accuracy', x / 8)\n"
        with open("tabs.py", "w") as file:
            file.write(body.replace("    ", "\t"))
        with open("latin.py", "wb") as file:
            file.write("# -*- coding: latin-1 -*-\nname = 'caf\xe9'\n".encode("latin-1") + body.encode())
        with open("dos.py", "wb") as file:
            file.write(body.replace("\n", "\r\n").encode())
        with open("cells.ipynb", "w") as file:
            json.dump({"cells": [{"cell_type": "markdown", "source": ["# text"]}, {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1 + 1\n"]},
                                 {"cell_type": "code", "source": "x = x * 2\nprint('accuracy', x / 8)"}], "nbformat": 4}, file)
        for name in ("tabs.py", "latin.py", "dos.py", "cells.ipynb"):
            found = parse(self.ok("inject", name, *METRIC, "--python", "/usr/bin/python3", "--clean-runs", 2, "--sample", 4, "--doctor", 0, "--json").stdout)
            self.assertEqual((found["clean"]["mean"], len(found["mutants"])), (0.5, 4), name)
            self.assertEqual({one["outcome"] for one in found["mutants"]} - NAMES, set())
        with open("broken.ipynb", "w") as file:
            file.write("{}")
        with open("bytes.py", "wb") as file:
            file.write(b"x = '\xff\xfe'\n")
        for name, words in (("broken.ipynb", ("not a notebook",)), ("bytes.py", ("cannot be decoded",))):
            self.refused("inject", name, *METRIC, "--python", "/usr/bin/python3", words=words)

    def test_chance_is_measured(self):
        with open("train.py", "w") as file:
            file.write("import os\nx = 1 + 1\nprint('accuracy', 0.8 + int.from_bytes(os.urandom(2), 'big') / 1e6)\n")
        found = parse(self.inject("--sample", 3, clean=4).stdout)
        self.assertFalse(found["clean"]["deterministic"])
        self.assertGreater(found["clean"]["runs_needed"], 0)


if __name__ == "__main__":
    main()
