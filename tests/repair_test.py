"""netmend lab plant, repair, whatif, apply as a user runs them: a known fault in, a confirmed repair out, and the words for what
cannot be repaired.

usage: repair_test.py NETMEND
"""
import csv, json, os, shutil, signal, subprocess, sys, tempfile, time, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"
FOLDER = None
DATA = ("--data", "glyphs:test")


def run(*arguments, timeout=600):
    return subprocess.run([NETMEND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def read(path):
    with open(path, encoding="utf8") as file:
        return json.load(file)


def make_models(folder):
    global FOLDER
    FOLDER = folder
    for step in (("lab", "new", "mlp:784-24-16-10", "-o", f"{folder}/raw.onnx", "--seed", 1),
                 ("train", f"{folder}/raw.onnx", "--data", "glyphs", "--limit", 8000, "--epochs", 3, "--rate", 0.003, "-o", f"{folder}/m.onnx",
                  "--out", f"{folder}/run", "--quiet"),
                 ("lab", "plant", f"{folder}/m.onnx", "--kind", "random-weights", "--layer", "fc2", *DATA, "--at-least", 3, "-o", f"{folder}/faulty.onnx",
                  "--truth", f"{folder}/truth.json", "--quiet")):
        done = run(*step)
        assert done.returncode == 0, (step, done.stderr)


class Repair(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        os.chdir(self.folder)
        self.sound, self.faulty = (os.path.join(FOLDER, name) for name in ("m.onnx", "faulty.onnx"))

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ok(self, *arguments, code=0):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-1500:], done.stderr[-800:]))
        return done

    def json(self, *arguments, code=0):
        return json.loads(self.ok(*arguments, "--json", code=code).stdout)

    def refused(self, *arguments, words=()):
        said = self.ok(*arguments, code=2).stderr
        self.assertEqual(sum(line.startswith("error: ") for line in said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_a_planted_fault_is_found_and_repaired(self):
        truth = read(os.path.join(FOLDER, "truth.json"))
        self.assertGreaterEqual(truth["points_lost"], 3)
        found = self.json("locate", self.faulty, *DATA)
        self.assertIn(truth["units"][0], [row["unit"] for row in found["ranking"][:5]])
        done = self.json("repair", self.faulty, *DATA, "--budget", "12s", "-o", "fixed.onnx", "--plan", "plan.json", "--out", "r")
        self.assertEqual(done["verdict"], "repaired", done)
        self.assertGreater(done["after"]["accuracy"], done["before"]["accuracy"] + 0.6 * truth["points_lost"] / 100)
        self.assertEqual(done["net"], done["fixed"] - done["broken"])
        self.assertLess(done["p"], 0.05)
        self.assertEqual({one["method"] for one in done["tried"]} & {"bias", "temperature"}, {"bias", "temperature"})
        with open("r/flips.csv", encoding="utf8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(sum(row["change"] == "fixed" for row in rows), done["fixed"])
        self.assertEqual(sum(row["change"] == "broken" for row in rows), done["broken"])
        # The plan is the repair.
        self.ok("apply", self.faulty, "plan.json", "-o", "applied.onnx")
        a, b = (self.json("eval", name, *DATA, "--out", "e") for name in ("fixed.onnx", "applied.onnx"))
        self.assertEqual((a["accuracy"], a["loss"]), (b["accuracy"], b["loss"]))
        tried = self.json("whatif", self.faulty, "plan.json", *DATA)
        self.assertAlmostEqual(tried["after"]["value"], a["accuracy"], places=6)
        self.assertEqual(tried["inputs"], 4000)
        # It remembers what its search saw.
        self.assertIn("warning", self.ok("eval", "fixed.onnx", *DATA, "--out", "e").stderr)
        self.assertNotIn("warning", self.ok("eval", "fixed.onnx", "--data", "glyphs:train", "--limit", 500, "--out", "e").stderr)
        self.assertNotIn("warning", self.ok("eval", self.faulty, *DATA, "--out", "e").stderr)

    def test_what_does_not_help_is_not_written(self):
        done = self.json("repair", self.sound, *DATA, "--method", "temperature", "-o", "t.onnx", code=1)
        self.assertIn(done["verdict"], ("no real change", "refuse"))
        self.assertFalse(os.path.exists("t.onnx"))
        self.ok("repair", self.sound, *DATA, "--method", "temperature", "-o", "t.onnx", "--force")
        self.assertTrue(os.path.exists("t.onnx"))

    def test_methods_and_units(self):
        done = run("repair", self.faulty, *DATA, "--method", "surgical", "--unit", "fc2/3", "--budget", "6s", "--json")
        self.assertEqual(json.loads(done.stdout)["units"], ["fc2/3"])
        done = run("repair", self.faulty, *DATA, "--method", "sbfl-mutation", "--measure", "ochiai", "--mutation", "scale-weights", "--value", 0.5, "--stop", "both", "--json")
        self.assertIn("sbfl-mutation", [one["method"] for one in json.loads(done.stdout)["tried"]])
        done = run("repair", self.faulty, *DATA, "--method", "sbfl-mutation", "--as-published", "--json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        weights = self.json("locate", self.faulty, *DATA, "--measure", "arachne")["weights"]
        self.assertTrue(weights and all(row["impact"] >= 0 and row["gradient"] >= 0 for row in weights))

    def test_the_user_stays_in_the_loop(self):
        self.refused("repair", self.faulty, *DATA, "--method", "bias", "--review", "-o", "b.onnx", "--force", words=("nobody is there", "--yes"))
        self.ok("repair", self.faulty, *DATA, "--method", "bias", "--review", "--yes", "-o", "b.onnx", "--force")
        self.assertTrue(os.path.exists("b.onnx"))

    def test_words_for_what_cannot_be_done(self):
        self.refused("repair", self.faulty, *DATA, "--method", "surgcal", words=("surgcal", "surgical"))
        self.refused("repair", self.faulty, *DATA, "--unit", "fc9/1", words=("fc9", "layer/number"))
        self.refused("repair", self.faulty, *DATA, "--unit", "fc2/99", words=("fc2/99", "fc2/15"))
        self.refused("repair", self.faulty, *DATA, "--on", "class=nonsense", words=("nonsense",))
        self.refused("repair", self.faulty, *DATA, "--limit", 3, "--anyway", words=())
        self.refused("lab", "plant", self.sound, "--kind", "zero", "-o", "x.onnx", words=("zero", "zeroed"))
        self.refused("lab", "plant", self.sound, "--kind", "zeroed", "--at-least", 5, "-o", "x.onnx", words=("--data",))
        self.refused("lab", "plant", self.sound, "--kind", "zeroed", "--layer", "fc8", "-o", "x.onnx", words=("fc8", "fc"))
        self.refused("lab", "plant", self.sound, "--kind", "zeroed", "--count", 100, "-o", "x.onnx", words=("100", "40"))

    def test_every_kind_can_be_planted(self):
        for kind in ("zeroed", "sign-flipped", "saturated", "scaled", "layer-noise", "swapped-classes"):
            told = self.json("lab", "plant", self.sound, "--kind", kind, *DATA, "--limit", 500, "-o", "f.onnx", "--truth", "t.json")
            self.assertEqual(told["kind"], kind)
            truth = read("t.json")
            self.assertTrue(truth["units"] or truth["layer"])
            changed = self.json("diff", self.sound, "f.onnx")
            self.assertTrue(changed["changed"] if "changed" in changed else changed)
        told = self.json("lab", "plant", self.sound, "--kind", "poisoned-labels", "--data", "glyphs:train", "--limit", 2000, "-o", "p.onnx")
        self.assertRegex(told["classes"], r"^\d:\d$")

    def test_studies_go_on_where_they_stopped(self):
        flags = ("lab", "study", "planted-faults", "--models", f"{self.sound}@glyphs:test", "--kinds", "random-weights,scaled", "--runs", 1, "--repairs", "none", "--out", "s")
        process = subprocess.Popen([NETMEND, *map(str, flags)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        first = self.json(*flags)
        self.assertEqual(first["faults"], 2)
        again = self.json(*flags)
        self.assertEqual(first["measures"], again["measures"])
        self.refused("lab", "study", "sbfl-repair", "--sample", 0, "--out", "s", words=("planted-faults", "sbfl-repair"))
        with open("s/trials.db", "w", encoding="utf8") as out:
            out.write("x" * 5000)
        self.refused(*flags, words=("trials.db",))


if __name__ == "__main__":
    shared = tempfile.mkdtemp(prefix="netmend-")
    try:
        make_models(shared)
        unittest.main(argv=sys.argv[:1], verbosity=1)
    finally:
        shutil.rmtree(shared, ignore_errors=True)
