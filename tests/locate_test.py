"""netmend locate as a user runs it: targets, measures, stability, the words for what cannot be located.

usage: locate_test.py NETMEND
"""
import csv, json, os, shutil, subprocess, sys, tempfile, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"
MODEL = None
DATA = ("--data", "glyphs:test", "--limit", 3000)


def run(*arguments, timeout=600):
    return subprocess.run([NETMEND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def make_model(folder):
    """A small network that reads drawn digits, not too well."""
    global MODEL
    MODEL = os.path.join(folder, "m.onnx")
    for step in (("lab", "new", "mlp:784-24-16-10", "-o", f"{folder}/raw.onnx", "--seed", 1),
                 ("train", f"{folder}/raw.onnx", "--data", "glyphs", "--limit", 8000, "--epochs", 1, "-o", MODEL, "--out", f"{folder}/run", "--quiet")):
        done = run(*step)
        assert done.returncode == 0, done.stderr


class Locate(unittest.TestCase):
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

    def locate(self, *arguments, code=0):
        return json.loads(self.ok("locate", MODEL, *DATA, *arguments, "--json", code=code).stdout)

    def refused(self, *arguments, words=()):
        said = self.ok("locate", MODEL, *arguments, code=2).stderr
        self.assertEqual(sum(line.startswith("error: ") for line in said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_counts_agree_with_the_evaluation(self):
        found = self.locate("--top", 5, "--measure", "ochiai")
        told = json.loads(self.ok("eval", MODEL, *DATA, "--json", "--out", "e").stdout)
        wrong = told["samples"] - sum(c["correct"] for c in told["per_class"])
        self.assertEqual((found["failures"], found["inputs"], found["measure"], found["units"]), (wrong, 3000, "ochiai", 40))
        self.assertEqual(len(found["ranking"]), 5)
        for row in found["ranking"]:
            self.assertEqual((row["as"] + row["ns"], row["af"] + row["nf"]), (3000 - wrong, wrong))
            self.assertAlmostEqual(row["score"], row["af"] / ((row["af"] + row["nf"]) * (row["af"] + row["as"])) ** 0.5)
            self.assertLessEqual(row["rank_low"], row["rank_high"])
            self.assertTrue(0 <= row["in_top"] <= 1)
        scores = [row["score"] for row in found["ranking"]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(found["random"], {"rank": 20.5, "in_top": 0.125})
        self.assertEqual(sum(layer["in_top"] for layer in found["layers"]), 5)
        self.assertEqual(len(found["layers"]), 2)
        with open(os.path.join(found["run"], "ranking.csv"), encoding="utf8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["unit"] for row in rows[:5]], [row["unit"] for row in found["ranking"]])
        self.assertEqual(len(rows), 40)

    def test_workers_change_nothing_and_the_seed_only_the_resamples(self):
        strip = lambda found: {k: v for k, v in found.items() if k not in ("seconds", "scoring_seconds", "run", "preflight")}
        for measure in ("ochiai", "gradient", "auto"):
            one, many, other = (self.locate("--measure", measure, *flags) for flags in (("--jobs", 1), ("--jobs", 5), ("--seed", 7)))
            self.assertEqual(strip(one), strip(many))
            self.assertEqual([row["score"] for row in one["ranking"]], [row["score"] for row in other["ranking"]])

    def test_every_measure_ranks(self):
        found = self.locate("--measure", "all", "--top", 3)
        names = [row["measure"] for row in found["measures"]]
        for name in "auto ablation ochiai tarantula dstar jaccard barinel op2 zoltar wong2 gradient random".split():
            self.assertIn(name, names)
        for row in found["measures"]:
            self.assertEqual(len(row["ranking"]), 3)
            self.assertEqual(row["ranking"][0]["unit"], row["first"])
            self.assertTrue(os.path.exists(os.path.join(found["run"], f"ranking-{row['measure']}.csv")))
        alone = self.locate("--measure", "wong2", "--top", 3)
        self.assertEqual(alone["ranking"], next(row["ranking"] for row in found["measures"] if row["measure"] == "wong2"))
        self.assertNotEqual(self.locate("--measure", "dstar9")["ranking"][0]["score"], self.locate("--measure", "D*")["ranking"][0]["score"])

    def test_targets(self):
        told = json.loads(self.ok("eval", MODEL, *DATA, "--json", "--out", "e").stdout)
        confusion = told["confusion"]
        count, label, answer = max((confusion[l][a], l, a) for l in range(10) for a in range(10) if l != a)
        names = told["classes"]
        found = self.locate("--on", f"confusion={names[label]}:{answer}")
        self.assertEqual((found["failures"], found["passes"]), (count, confusion[label][label]))
        found = self.locate("--on", f"class={label}")
        self.assertEqual((found["failures"], found["passes"]), (sum(confusion[label]) - confusion[label][label], confusion[label][label]))
        self.assertIn("--on class=", found["next"][0])
        with open("e/samples.csv", encoding="utf8") as file:
            rows = [row for row in csv.DictReader(file) if row["correct"] in ("0", "false", "no")]
        with open("some.csv", "w", encoding="utf8") as out:
            out.write("id,why\n" + "".join(f"{row['id']},odd\n" for row in rows[:7]))
        found = self.locate("--on", "inputs=some.csv")
        self.assertEqual((found["failures"], found["passes"]), (7, sum(confusion[c][c] for c in range(10))))
        with open("some.txt", "w", encoding="utf8") as out:
            out.write("".join(f"{row['id']}\n" for row in rows[:7]))
        self.assertEqual(self.locate("--on", "inputs=some.txt")["ranking"], found["ranking"])

    def test_slices(self):
        with open("meta.csv", "w", encoding="utf8") as out:
            out.write("id,hour\n" + "".join(f"{i},{'night' if i % 3 == 0 else 'day'}\n" for i in range(3000)))
        data = ("--data", "glyphs:test,meta=meta.csv,meta_groups=hour", "--limit", 3000)
        done = run("locate", MODEL, *data, "--on", "slice=hour=night", "--json")
        if done.returncode == 2 and "--on" not in done.stderr:
            self.skipTest(done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["failures"] + found["passes"], 1000)
        self.refused(*data, "--on", "slice=hour=nigth", words=("night",))
        self.refused(*data, "--on", "slice=hours=night", words=("hour",))
        self.refused(*DATA, "--on", "slice=hour=night", words=("groups",))

    def test_layers_and_thresholds(self):
        first = self.locate()["layers"]
        names = sorted(layer["layer"] for layer in first)
        found = self.locate("--layer", names[0])
        self.assertEqual([layer["layer"] for layer in found["layers"]], [names[0]])
        self.assertTrue(all(row["layer"] == names[0] for row in found["ranking"]))
        low, high = (self.locate("--threshold", t, "--measure", "wong2")["ranking"] for t in (-1, 1e6))
        self.assertTrue(all(row["nf"] == 0 for row in low))
        self.assertTrue(all(row["af"] == row["as"] == 0 for row in high))
        # A rectifier passes what is above 0.
        self.assertEqual(self.locate("--tap", "pre")["ranking"], self.locate("--tap", "post")["ranking"])

    def test_words_for_what_cannot_be_located(self):
        layer = self.locate()["layers"][0]["layer"]
        self.refused(*DATA, "--layer", layer + "x", words=(f"did you mean {layer}",))
        self.refused(*DATA, "--measure", "tarantola", words=("did you mean tarantula",))
        self.refused(*DATA, "--on", "clas=3", words=("did you mean class",))
        self.refused(*DATA, "--on", "class=77", words=("no class `77`",))
        self.refused(*DATA, "--on", "confusion=3", words=("two classes",))
        self.refused(*DATA, "--on", "confusion=3:3", words=("no mistake",))
        self.refused(*DATA, "--on", "inputs=none.csv", words=("none.csv",))
        with open("other.txt", "w", encoding="utf8") as out:
            out.write("someone-else\n")
        self.refused(*DATA, "--on", "inputs=other.txt", words=("someone-else",))
        # Rows that the network gets right, alone; and wrong ones alone; and a class that is not there.
        self.ok("eval", MODEL, *DATA, "--json", "--out", "e")
        with open("e/samples.csv", encoding="utf8") as file:
            rows = list(csv.DictReader(file))
        told = json.loads(self.ok("eval", MODEL, *DATA, "--json", "--out", "e").stdout)
        label, answer = next((l, a) for l in range(10) for a in range(10) if l != a and told["confusion"][l][a] == 0)
        self.refused(*DATA, "--on", f"confusion={label}:{answer}", words=(f"no {label} is predicted as {answer}", "predicted as"))
        right = next(i for i, row in enumerate(rows) if row["correct"] not in ("0", "false", "no"))
        one = ("--data", "glyphs:test", "--limit", 1, "--anyway")
        if right == 0:
            self.refused(*one, words=("nothing to locate",))
        absent = next(c for c in range(10) if str(c) != rows[0]["label"])
        self.refused(*one, "--on", f"class={absent}", words=(f"no input of class {absent}",))

    def test_for_people(self):
        said = self.ok("locate", MODEL, *DATA).stdout
        self.assertIn("measure auto", said)
        said = self.ok("locate", MODEL, *DATA, "--measure", "ochiai").stdout
        for word in ("measure ochiai", "random baseline", "rank of ", "ranking.csv", "next  netmend locate", "by chance"):
            self.assertIn(word, said)
        self.assertLessEqual(max(len(line) for line in said.splitlines() if "next" not in line and "m.onnx" not in line), 100)
        self.assertIn("zoltar", self.ok("locate", MODEL, *DATA, "--measure", "all").stdout)


if __name__ == "__main__":
    shared = tempfile.mkdtemp(prefix="netmend-")
    try:
        make_model(shared)
        unittest.main(argv=sys.argv[:1], verbosity=1)
    finally:
        shutil.rmtree(shared, ignore_errors=True)
