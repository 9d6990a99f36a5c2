"""netmend slices and netmend data --duplicates as a user runs them.

usage: slices_test.py NETMEND
"""
import os, random

from shell import Case, main, model, needs, read, read_csv, shared, write, write_csv

NETWORK = PEOPLE = TRAIN = None


def write_people(path, count, seed, unfair):
    """Whoever is older and works more says yes; among women who work little, half of the answers are turned about."""
    draw, rows = random.Random(seed), []
    for _ in range(count):
        age, hours = draw.randint(18, 80), draw.randint(5, 60)
        place, sex = draw.choice(["north", "south", "east"]), draw.choice(["F", "M"])
        ok = age / 80 + hours / 60 > 1.1
        if unfair and sex == "F" and hours < 25 and draw.random() < 0.5:
            ok = not ok
        rows.append([age, hours, place, sex, "yes" if ok else "no"])
    write_csv(path, ["age", "hours", "place", "sex", "ok"], *rows)


def setUpModule():
    global NETWORK, PEOPLE, TRAIN
    TRAIN, PEOPLE = (os.path.join(shared(), name) for name in ("train.csv", "people.csv"))
    write_people(TRAIN, 2000, 1, False)
    write_people(PEOPLE, 4000, 2, True)
    NETWORK = model("mlp:5-12-2", "--train", f"csv:{TRAIN},label=ok,groups=sex", "--rate", "0.01", epochs=20)


class Slices(Case):
    def setUp(self):
        super().setUp()
        self.data = f"csv:{PEOPLE},label=ok,groups=sex,train={TRAIN}"

    def slices(self, *arguments):
        return self.json("slices", NETWORK, "--data", self.data, *arguments)

    def test_the_planted_slice_is_named_in_the_columns_own_units(self):
        found = self.slices()
        names = [s["slice"] for s in found["slices"]]
        self.assertEqual(names[0], "hours=low,sex=F", found["slices"])
        worst = found["slices"][0]
        self.assertTrue(20 <= float(worst["rule"].split("hours < ")[1].split()[0]) <= 30, worst)
        self.assertGreater(worst["behind"]["low"], 0.1)
        self.assertGreater(worst["gain"], 0.02)
        self.assertLess(worst["explained_by_confidence"], 0.6)
        self.assertEqual([row["slice"] for row in read_csv(os.path.join(found["run"], "slices.csv"))], names)

    def test_groups_agree_with_counting(self):
        found = self.slices()
        told = self.json("eval", NETWORK, "--data", self.data, "--out", "e")
        by_name = {g["group"]: g for g in found["groups"]}
        self.assertEqual(set(by_name), {"sex=F", "sex=M"})
        for group in told["groups"]:
            name = f"{group['column']}={group['value']}"
            self.assertEqual(by_name[name]["inputs"], group["samples"])
        rows = read_csv(PEOPLE)
        for sex in "FM":
            yes = sum(row["sex"] == sex and row["ok"] == "yes" for row in rows)
            self.assertEqual(by_name[f"sex={sex}"]["true_positive_rate"]["count"], yes)
        chosen = self.slices("--groups", "place,sex")
        self.assertIn("place=east,sex=F", {",".join(sorted(g["group"].split(","))) for g in chosen["groups"]})

    def test_workers_and_order_change_nothing(self):
        timed = ("seconds", "run", "preflight", "data", "next")
        strip = lambda found: {k: v for k, v in found.items() if k not in timed}
        one = self.slices("--jobs", 1)
        self.assertEqual(strip(one), strip(self.slices("--jobs", 4)))
        lines = read(PEOPLE).splitlines()
        write("turned.csv", "\n".join([lines[0]] + lines[:0:-1]) + "\n")
        turned = self.json("slices", NETWORK, "--data", f"csv:turned.csv,label=ok,groups=sex,train={TRAIN}")
        self.assertEqual([s["slice"] for s in one["slices"]], [s["slice"] for s in turned["slices"]])

    def test_the_sweep_has_the_figures_of_now(self):
        found = self.slices("--threshold", "sweep", "--groups", "sex")
        self.assertEqual(len(found["thresholds"]), 19)
        told = self.json("eval", NETWORK, "--data", self.data, "--out", "e")
        right = sum(c["correct"] for c in told["per_class"]) / told["samples"]
        middle = found["thresholds"][9]
        self.assertAlmostEqual(middle["threshold"], 0.5)
        self.assertAlmostEqual(middle["accuracy"], right, places=3)
        called = [group["selected"]["value"] for row in found["thresholds"] for group in row["groups"]
                  if group["group"] == "all"]
        self.assertEqual(len(called), 19)
        self.assertEqual(called, sorted(called, reverse=True))
        self.assertIn("current", self.ok("slices", NETWORK, "--data", self.data, "--threshold", "sweep").stdout)

    def test_what_cannot_be_done_is_one_sentence(self):
        asked = ("slices", NETWORK, "--data")
        self.refused(*asked, self.data, "--groups", "sexx", words=["sexx", "did you mean sex"])
        self.refused(*asked, self.data, "--groups", "hours", words=["holds numbers"])
        self.refused(*asked, f"csv:{PEOPLE},columns=age:hours:place,train={TRAIN}", words=["no labels"])
        self.refused("data", "glyphs:test", "--limit", 50, "--duplicates", "--against", f"csv:{PEOPLE},label=ok",
                     words=["different kinds"])

    def test_duplicates_are_found_and_written(self):
        rows = "".join(f"{i},{i % 7},{'u' if i % 2 else 'v'}\n" for i in range(100))
        write("t.csv", "a,b,y\n" + rows + "3,3,v\n5,5,u\n")
        found = self.json("data", "csv:t.csv,label=y", "--duplicates", "--export", "drop.csv")
        self.assertEqual((found["duplicates"], found["conflicting_labels"]), (2, 2))
        self.assertEqual([(row["sample"], row["other_sample"], row["how"]) for row in read_csv("drop.csv")],
                         [("100", "3", "duplicate"), ("101", "5", "duplicate")])
        both = self.json("data", "glyphs:test", "--limit", 40, "--duplicates", "--against", "glyphs:test")
        self.assertEqual(both["duplicates"], 40)
        self.assertEqual(self.json("data", "glyphs:test", "--limit", 1000, "--duplicates")["duplicates"], 0)

    @needs(files=("mnist",))
    def test_real_data(self):
        found = self.json("data", "mnist:test", "--limit", 2000, "--duplicates", "--against", "mnist:train")
        self.assertEqual((found["duplicates"], found["near_duplicates"]), (0, 0))


if __name__ == "__main__":
    main()
