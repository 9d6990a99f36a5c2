"""netmend locate as a user runs it: targets, measures, stability, the words for what cannot be located.

usage: locate_test.py NETMEND
"""
import os, shlex

from shell import Case, main, model, read_csv, write

MODEL = None
DATA = ("--data", "glyphs:test", "--limit", 3000)


def setUpModule():
    """A small network that reads drawn digits, not too well."""
    global MODEL
    MODEL = model("mlp:784-24-16-10", "--data", "glyphs", "--limit", 8000)


class Locate(Case):
    def locate(self, *arguments):
        return self.json("locate", MODEL, *DATA, *arguments)

    def refused(self, *arguments, words=()):
        return super().refused("locate", MODEL, *arguments, words=words)

    def evaluated(self):
        """What eval says, and its rows."""
        return self.json("eval", MODEL, *DATA, "--out", "e"), read_csv("e/samples.csv")

    def test_counts_agree_with_the_evaluation(self):
        found = self.locate("--top", 5, "--measure", "ochiai")
        told, _ = self.evaluated()
        wrong = told["samples"] - sum(c["correct"] for c in told["per_class"])
        self.assertEqual([found[key] for key in ("failures", "inputs", "measure", "units")],
                         [wrong, 3000, "ochiai", 40])
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
        rows = read_csv(os.path.join(found["run"], "ranking.csv"))
        self.assertEqual([row["unit"] for row in rows[:5]], [row["unit"] for row in found["ranking"]])
        self.assertEqual(len(rows), 40)

    def test_workers_change_nothing_and_the_seed_only_the_resamples(self):
        timed = ("seconds", "scoring_seconds", "run", "preflight")
        strip = lambda found: {k: v for k, v in found.items() if k not in timed}
        for measure in ("ochiai", "gradient", "auto"):
            one, many, other = (self.locate("--measure", measure, *flags)
                                for flags in (("--jobs", 1), ("--jobs", 5), ("--seed", 7)))
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
        self.assertEqual([alone["ranking"]], [row["ranking"] for row in found["measures"] if row["measure"] == "wong2"])
        ninth, second = (self.locate("--measure", name)["ranking"][0]["score"] for name in ("dstar9", "D*"))
        self.assertNotEqual(ninth, second)

    def test_targets(self):
        told, rows = self.evaluated()
        confusion = told["confusion"]
        count, label, answer = max((confusion[l][a], l, a) for l in range(10) for a in range(10) if l != a)
        names = told["classes"]
        found = self.locate("--on", f"confusion={names[label]}:{answer}")
        self.assertEqual((found["failures"], found["passes"]), (count, confusion[label][label]))
        found = self.locate("--on", f"class={label}")
        right = confusion[label][label]
        self.assertEqual((found["failures"], found["passes"]), (sum(confusion[label]) - right, right))
        self.assertIn("--on class=", found["next"][0])
        for command in found["next"]:  # as printed, but on a few inputs
            self.ok(*shlex.split(command)[1:], "--limit", 20)
        wrong = [row["id"] for row in rows if row["correct"] == "0"][:7]
        write("some.csv", "id,why\n" + "".join(f"{name},odd\n" for name in wrong))
        found = self.locate("--on", "inputs=some.csv")
        self.assertEqual((found["failures"], found["passes"]), (7, sum(confusion[c][c] for c in range(10))))
        write("some.txt", "\n".join(wrong) + "\n")
        self.assertEqual(self.locate("--on", "inputs=some.txt")["ranking"], found["ranking"])

    def test_slices(self):
        rows = self.evaluated()[1]
        hour = lambda row: "night" if int(row["sample"]) % 3 == 0 else "day"
        write("meta.csv", "id,hour\n" + "".join(f"{row['id']},{hour(row)}\n" for row in rows))
        data = ("--data", "glyphs:test,meta=meta.csv,meta_groups=hour", "--limit", 3000)
        found = self.json("locate", MODEL, *data, "--on", "slice=hour=night")
        right = sum(row["correct"] == "1" for row in rows if hour(row) == "night")
        self.assertEqual((found["failures"], found["passes"]), (1000 - right, right))
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
        self.refused(*DATA, "--on", "confusion=3:3", words=("not a confusion",))
        self.refused(*DATA, "--on", "inputs=none.csv", words=("none.csv",))
        write("other.txt", "someone-else\n")
        self.refused(*DATA, "--on", "inputs=other.txt", words=("someone-else",))
        told, rows = self.evaluated()
        confusion = told["confusion"]
        label, answer = next((l, a) for l in range(10) for a in range(10) if l != a and confusion[l][a] == 0)
        self.refused(*DATA, "--on", f"confusion={label}:{answer}", words=(f"no {label} is predicted as {answer}",))
        # The first inputs, up to one that is right and the first of its class; and a class that is not among them.
        labels = [row["label"] for row in rows]
        last = next(i for i, row in enumerate(rows) if row["correct"] == "1" and row["label"] not in labels[:i])
        few = ("--data", "glyphs:test", "--limit", last + 1, "--anyway")
        self.refused(*few, "--on", f"class={labels[last]}", words=("nothing to locate",))
        absent = next(c for c in range(10) if str(c) not in labels[:last + 1])
        self.refused(*few, "--on", f"class={absent}", words=(f"no input of class {absent}",))

    def test_for_people(self):
        said = self.ok("locate", MODEL, *DATA).stdout
        self.assertIn("measure auto", said)
        said = self.ok("locate", MODEL, *DATA, "--measure", "ochiai").stdout
        for word in ("measure ochiai", "a unit drawn at random", "rank of ", "ranking.csv", "next  netmend locate",
                     "by chance"):
            self.assertIn(word, said)
        for line in said.splitlines():
            self.assertTrue(len(line) <= 100 or "next" in line or MODEL in line, line)
        self.assertIn("zoltar", self.ok("locate", MODEL, *DATA, "--measure", "all").stdout)


if __name__ == "__main__":
    main()
