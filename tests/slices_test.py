"""netmend slices and netmend data --duplicates as a user runs them.

usage: slices_test.py NETMEND
"""
import csv, json, os, random, shutil, subprocess, sys, tempfile, unittest

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"
HERE = None  # a folder with people.csv, train.csv and a network for them


def run(*arguments, timeout=600):
    return subprocess.run([NETMEND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def write_people(path, count, seed, unfair):
    """Whoever is older and works more says yes; among women who work little, half of the labels are turned about."""
    draw = random.Random(seed)
    with open(path, "w", encoding="utf8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["age", "hours", "place", "sex", "ok"])
        for _ in range(count):
            age, hours, place, sex = draw.randint(18, 80), draw.randint(5, 60), draw.choice(["north", "south", "east"]), draw.choice(["F", "M"])
            ok = age / 80 + hours / 60 > 1.1
            if unfair and sex == "F" and hours < 25 and draw.random() < 0.5:
                ok = not ok
            out.writerow([age, hours, place, sex, "yes" if ok else "no"])


def make_model(folder):
    global HERE
    HERE = folder
    write_people(f"{folder}/train.csv", 2000, 1, False)
    write_people(f"{folder}/people.csv", 4000, 2, True)
    train = f"csv:{folder}/train.csv,label=ok,groups=sex"
    for step in (("lab", "new", "mlp:5-12-2", "-o", f"{folder}/raw.onnx", "--seed", 1),
                 ("train", f"{folder}/raw.onnx", "--train", train, "--epochs", 20, "--rate", "0.01", "-o", f"{folder}/m.onnx",
                  "--out", f"{folder}/run", "--quiet")):
        done = run(*step)
        assert done.returncode == 0, done.stderr


class Slices(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        os.chdir(self.folder)
        self.data = f"csv:{HERE}/people.csv,label=ok,groups=sex,train={HERE}/train.csv"

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ok(self, *arguments, code=0):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-800:], done.stderr[-800:]))
        return done

    def slices(self, *arguments):
        return json.loads(self.ok("slices", f"{HERE}/m.onnx", "--data", self.data, *arguments, "--json").stdout)

    def refused(self, *arguments, words=()):
        said = self.ok(*arguments, code=2).stderr
        self.assertEqual(sum(line.startswith("error: ") for line in said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_the_planted_slice_is_named_in_the_columns_own_units(self):
        found = self.slices()
        names = [s["slice"] for s in found["slices"]]
        self.assertEqual(names[0], "hours=low,sex=F", found["slices"])
        self.assertTrue(20 <= float(found["slices"][0]["rule"].split("hours < ")[1].split()[0]) <= 30, found["slices"][0])
        worst = found["slices"][0]
        self.assertGreater(worst["behind"]["low"], 0.1)
        self.assertGreater(worst["gain"], 0.02)
        self.assertLess(worst["explained_by_confidence"], 0.6)
        with open(os.path.join(found["run"], "slices.csv"), encoding="utf8") as file:
            self.assertEqual([row["slice"] for row in csv.DictReader(file)], names)

    def test_groups_agree_with_counting(self):
        found = self.slices()
        told = json.loads(self.ok("eval", f"{HERE}/m.onnx", "--data", self.data, "--json", "--out", "e").stdout)
        by_name = {g["group"]: g for g in found["groups"]}
        self.assertEqual(set(by_name), {"sex=F", "sex=M"})
        for group in told["groups"]:
            name = f"{group['column']}={group['value']}"
            self.assertEqual(by_name[name]["inputs"], group["samples"])
        with open(f"{HERE}/people.csv", encoding="utf8") as file:
            rows = list(csv.DictReader(file))
        for sex in "FM":
            self.assertEqual(by_name[f"sex={sex}"]["true_positive_rate"]["count"], sum(r["sex"] == sex and r["ok"] == "yes" for r in rows))
        chosen = self.slices("--groups", "place,sex")
        self.assertIn("place=east,sex=F", {",".join(sorted(g["group"].split(","))) for g in chosen["groups"]})

    def test_workers_and_order_change_nothing(self):
        strip = lambda found: {k: v for k, v in found.items() if k not in ("seconds", "run", "preflight", "data", "next")}
        one = self.slices("--jobs", 1)
        self.assertEqual(strip(one), strip(self.slices("--jobs", 4)))
        with open(f"{HERE}/people.csv", encoding="utf8") as file:
            lines = file.read().splitlines()
        with open("turned.csv", "w", encoding="utf8") as file:
            file.write("\n".join([lines[0]] + lines[:0:-1]) + "\n")
        turned = json.loads(self.ok("slices", f"{HERE}/m.onnx", "--data", f"csv:turned.csv,label=ok,groups=sex,train={HERE}/train.csv", "--json").stdout)
        self.assertEqual([s["slice"] for s in one["slices"]], [s["slice"] for s in turned["slices"]])

    def test_the_sweep_has_the_figures_of_now(self):
        found = self.slices("--threshold", "sweep", "--groups", "sex")
        self.assertEqual(len(found["thresholds"]), 19)
        told = json.loads(self.ok("eval", f"{HERE}/m.onnx", "--data", self.data, "--json", "--out", "e").stdout)
        right = sum(c["correct"] for c in told["per_class"]) / told["samples"]
        middle = found["thresholds"][9]
        self.assertAlmostEqual(middle["threshold"], 0.5)
        self.assertAlmostEqual(middle["accuracy"], right, places=3)
        called = [next(g for g in row["groups"] if g["group"] == "all")["selected"]["value"] for row in found["thresholds"]]
        self.assertEqual(called, sorted(called, reverse=True))
        self.assertIn("current", self.ok("slices", f"{HERE}/m.onnx", "--data", self.data, "--threshold", "sweep").stdout)

    def test_what_cannot_be_done_is_one_sentence(self):
        self.refused("slices", f"{HERE}/m.onnx", "--data", self.data, "--groups", "sexx", words=["sexx", "did you mean sex"])
        self.refused("slices", f"{HERE}/m.onnx", "--data", self.data, "--groups", "hours", words=["holds numbers"])
        self.refused("slices", f"{HERE}/m.onnx", "--data", f"csv:{HERE}/people.csv,columns=age:hours:place,train={HERE}/train.csv", words=["no labels"])
        self.refused("data", "glyphs:test", "--limit", 50, "--duplicates", "--against", f"csv:{HERE}/people.csv,label=ok", words=["different kinds"])

    def test_duplicates_are_found_and_written(self):
        with open("t.csv", "w", encoding="utf8") as file:
            file.write("a,b,y\n" + "".join(f"{i},{i % 7},{'u' if i % 2 else 'v'}\n" for i in range(100)) + "3,3,v\n5,5,u\n")
        found = json.loads(self.ok("data", "csv:t.csv,label=y", "--duplicates", "--export", "drop.csv", "--json").stdout)
        self.assertEqual((found["duplicates"], found["conflicting_labels"]), (2, 2))
        with open("drop.csv", encoding="utf8") as file:
            self.assertEqual([(r["sample"], r["other_sample"], r["how"]) for r in csv.DictReader(file)], [("100", "3", "duplicate"), ("101", "5", "duplicate")])
        both = json.loads(self.ok("data", "glyphs:test", "--limit", 40, "--duplicates", "--against", "glyphs:test", "--json").stdout)
        self.assertEqual(both["duplicates"], 40)
        self.assertEqual(json.loads(self.ok("data", "glyphs:test", "--limit", 1000, "--duplicates", "--json").stdout)["duplicates"], 0)

    def test_real_data(self):
        if not os.environ.get("NETMEND_DATA"):
            self.skipTest("SKIPPED: NETMEND_DATA names no real data")
        found = json.loads(self.ok("data", "mnist:test", "--limit", 2000, "--duplicates", "--against", "mnist:train", "--json").stdout)
        self.assertEqual((found["duplicates"], found["near_duplicates"]), (0, 0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="netmend-") as folder:
        make_model(folder)
        unittest.main(argv=sys.argv[:1], verbosity=1)
