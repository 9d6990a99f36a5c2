"""What people do with findings, as they run it: gate, failures, next, why, accept.

usage: after_check_test.py NETMEND
"""
import datetime, gzip, os, shutil
import xml.etree.ElementTree as xml

from shell import Case, data, main, model, needs, read, read_csv, read_json, write, write_bytes, write_json

MODEL = OTHER = None
DATA = ("--data", "glyphs:test", "--limit", 2000)


def setUpModule():
    """Two small networks that read drawn digits, not too well; the second saw less."""
    global MODEL, OTHER
    MODEL, OTHER = (model("mlp:784-24-16-10", "--data", "glyphs", "--limit", seen) for seen in (8000, 3000))


class Gate(Case):
    def toml(self, gate):
        write("netmend.toml", f'model = {{ file = "{MODEL}" }}\ndata = {{ test = "glyphs:test" }}\ngate = {gate}\n')

    def gate(self, limits, *arguments, code=0):
        self.toml(limits)
        return self.json("gate", "--limit", 2000, "--out", "g", *arguments, code=code)

    def test_the_value_decides_and_strict_takes_the_worse_end(self):
        told = self.json("eval", MODEL, *DATA, "--out", "e")
        accuracy = told["metrics"]["accuracy"]
        between = (accuracy["low"] + accuracy["value"]) / 2
        limits = (f'{{ accuracy = ">= {between}", log_loss = "<= 50", "recall[3]" = ">= 1 %", '
                  '"precision[4]" = "> 0.01", auc = "> 0.5" }')
        gate = self.gate(limits)
        self.assertTrue(gate["pass"])
        first = gate["criteria"][0]
        self.assertEqual((first["criterion"], first["verdict"], first["unclear"]), ("accuracy", "pass", True))
        self.assertAlmostEqual(first["value"], accuracy["value"])
        self.assertGreater(first["more_inputs"], 0)
        by_class = {row["class"]: row for row in told["per_class"]}
        self.assertAlmostEqual(gate["criteria"][2]["value"], by_class["3"]["recall"])
        self.assertAlmostEqual(gate["criteria"][3]["value"], by_class["4"]["precision"])
        self.assertFalse(gate["criteria"][2]["unclear"])
        self.assertFalse(self.gate(limits, "--strict", code=1)["pass"])

    def test_so_many_more_inputs_would_decide(self):
        """The promise is kept by an interval that is narrower by the root of the inputs."""
        told = self.json("eval", MODEL, *DATA, "--out", "e")["metrics"]["accuracy"]
        limit = told["value"] - (told["value"] - told["low"]) / 2
        more = self.gate(f'{{ accuracy = ">= {limit}" }}')["criteria"][0]["more_inputs"]
        self.assertAlmostEqual(more / 2000, 3, delta=0.05)

    def test_leaves_files_for_people_and_pipelines(self):
        self.gate('{ accuracy = ">= 0.999", "recall[1]" = ">= 0.01" }', code=1)
        text = read("g/gate.md")
        self.assertIn("not passed", text)
        self.assertIn("| **fail** | accuracy |", text)
        suite = xml.parse("g/gate.xml").getroot()[0]
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        self.assertEqual([case.find("failure") is not None for case in suite], [True, False])
        self.assertFalse(read_json("g/gate.json")["pass"])
        said = self.ok("gate", "--limit", 2000, code=1).stdout
        self.assertIn("FAIL  accuracy", said)
        self.assertIn("next      netmend failures", said)

    def test_against_an_earlier_model_a_run_and_a_baseline(self):
        limits = '{ overall_drop = "<= 0.5", class_drop = "<= 60" }'
        self.toml(limits)
        self.ok("eval", OTHER, "--data", "glyphs:test", "--limit", 2000, "--out", "old")
        self.ok("compare", OTHER, OTHER, "--data", "glyphs:test", "--limit", 2000, "-o", "baseline.json", "--out", "c")
        flips = self.json("compare", OTHER, MODEL, "--limit", 2000, "--out", "c2")
        values = []
        for reference in (OTHER, "old", "baseline.json"):
            gate = self.gate(limits, "--against", reference)
            values.append([row["value"] for row in gate["criteria"]])
            self.assertAlmostEqual(values[-1][0], -100 * flips["change"]["value"], places=9)
            worst = max(-100 * row["change"]["value"] for row in flips["per_class"])
            self.assertAlmostEqual(values[-1][1], worst, places=9)
        self.assertEqual(values[0], values[1])
        self.assertEqual(values[0], values[2])
        self.refused("gate", "--limit", 2000, words=["gate.overall_drop", "--against"])
        self.refused("gate", "--limit", 1500, "--against", "baseline.json", words=["--common"])

    def test_groups_and_inputs_that_must_pass(self):
        self.ok("eval", MODEL, *DATA, "--out", "e")
        rows = read_csv("e/samples.csv")
        half = lambda row: "early" if int(row["sample"]) < 700 else "late"
        write("meta.csv", "id,half\n" + "".join(f"{row['id']},{half(row)}\n" for row in rows))
        right = [row["id"] for row in rows if row["correct"] == "1"][:5]
        wrong = [row["id"] for row in rows if row["correct"] == "0"][:7]
        for name, ids in (("good.csv", right), ("bad.csv", right + wrong)):
            write(name, "id\n" + "\n".join(ids) + "\n")
        early = [row for row in rows if half(row) == "early"]
        write("netmend.toml",
              f'model.file = "{MODEL}"\ndata.test = "glyphs:test"\ndata.meta = "meta.csv"\ndata.groups = ["half"]\n'
              'gate = { "accuracy[half=early]" = ">= 0.01", "f1[half=late]" = ">= 0.01", must_pass = "good.csv" }\n')
        gate = self.json("gate", "--limit", 2000, "--out", "g")
        self.assertAlmostEqual(gate["criteria"][0]["value"], sum(row["correct"] == "1" for row in early) / 700)
        self.assertEqual([row["inputs"] for row in gate["criteria"]], [700, 1300, 5])
        text = read("netmend.toml")
        write("netmend.toml", text.replace("good.csv", "bad.csv"))
        last = self.json("gate", "--limit", 2000, "--out", "g", code=1)["criteria"][2]
        self.assertEqual((last["value"], last["verdict"]), (7, "fail"))
        self.assertIn(wrong[0], last["about"])
        write("bad.csv", "nobody.png\n", "a")
        self.refused("gate", "--limit", 2000, words=["nobody.png"])
        write("netmend.toml", text.replace("half=early", "half=erly"))
        self.refused("gate", "--limit", 2000, words=["line 5", "did you mean early?"])

    def test_words_for_what_cannot_be_judged(self):
        for limits, words in (('{ acuracy = ">= 0.9" }', ["line 3", "gate.acuracy", "did you mean accuracy?"]),
                              ('{ accuracy = "around 0.9" }', ["line 3", "gate.accuracy", ">= 0.90"]),
                              ('{ accuracy = ">= 90" }', [">= 90 %"]),
                              ('{ "recall[12]" = ">= 0.9" }', ["there is no class `12`"]),
                              ('{ recall = ">= 0.9" }', ["needs a class"]),
                              ('{ "accuracy[3]" = ">= 0.9" }', ["recall[3]"]),
                              ('{ mae = "<= 0.9" }', ["mae"]),
                              ('{ must_pass = "missing.csv" }', ["missing.csv"])):
            self.toml(limits)
            self.refused("gate", "--limit", 300, words=words)
        os.remove("netmend.toml")
        self.refused("gate", MODEL, *DATA, words=["no limits"])


class Failures(Case):
    def failures(self, *arguments):
        return self.json("failures", MODEL, *DATA, *arguments)

    def test_are_the_wrong_ones_of_the_evaluation(self):
        self.ok("eval", MODEL, *DATA, "--out", "e")
        wrong = {row["id"]: row for row in read_csv("e/samples.csv") if row["correct"] == "0"}
        told = self.failures("--export", "f.csv", "--out", "f")
        rows = read_csv("f.csv")
        self.assertEqual((told["failures"], told["wrong"]), (len(wrong), len(wrong)))
        self.assertEqual({row["id"] for row in rows}, set(wrong))
        for row in rows:
            same = wrong[row["id"]]
            self.assertEqual((row["label"], row["predicted"]), (same["label"], same["predicted"]))
            self.assertNotEqual(row["second"], row["predicted"])
            self.assertGreaterEqual(float(row["confidence"]), float(row["second_confidence"]))
        for key, column in (("loss", "loss"), ("confidence", "confidence"), ("margin", "margin")):
            ordered = [float(row[column]) for row in self.failures("--sort", key, "--top", 100000)["rows"]]
            self.assertEqual(ordered, sorted(ordered, reverse=True))

    def test_filter_and_group(self):
        whole = self.failures("--top", 100000)["rows"]
        groups = self.failures("--group", "pair")["groups"]
        self.assertEqual(sum(group["failures"] for group in groups), len(whole))
        first = groups[0]
        chosen = self.failures("--on", first["on"], "--top", 100000)["rows"]
        self.assertEqual(len(chosen), first["failures"])
        label, predicted = first["on"].removeprefix("confusion=").split(":")
        self.assertTrue(all((row["label"], row["predicted"]) == (label, predicted) for row in chosen))
        by_class = {group["group"]: group["failures"] for group in self.failures("--group", "class")["groups"]}
        for label, count in by_class.items():
            self.assertEqual(count, sum(row["label"] == label for row in whole))

    def test_jobs_change_nothing(self):
        for jobs in (1, 3):
            self.ok("failures", MODEL, *DATA, "--jobs", jobs, "--export", f"{jobs}.csv")
        self.assertEqual(read("1.csv"), read("3.csv"))

    @needs(files=("onnx/mnist_fc", "mnist"))
    def test_wrong_labels_come_to_light(self):
        """Of MNIST's test labels 2 % are changed on purpose: the list is made of those, and short where none are."""
        images, labels = (data("mnist", f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
        with gzip.open(labels) as file:
            truth = file.read()
        changed = bytearray(truth)
        for i in range(7, 10000, 50):
            changed[8 + i] = (changed[8 + i] + 1 + i % 9) % 10
        for name, content in (("clean", truth), ("changed", changed)):
            write_bytes(f"{name}-idx1-ubyte", content)
        listed = {}
        for name in ("clean", "changed"):
            self.ok("failures", data("onnx", "mnist_fc", "mnist-net_256x2.onnx"), "--data",
                    f"idx:{images},labels={name}-idx1-ubyte,scale=1/255", "--on", "labels", "--export", f"{name}.csv")
            listed[name] = read_csv(f"{name}.csv")
        self.assertLess(len(listed["clean"]), 20)
        found = [row for row in listed["changed"] if int(row["sample"]) % 50 == 7]
        self.assertGreater(len(found) / len(listed["changed"]), 0.8)
        self.assertGreater(len(found) / 200, 0.35)
        mended = sum(row["suggested"] == str(truth[8 + int(row["sample"])]) for row in found)
        self.assertGreater(mended / len(found), 0.97)
        margins = [float(row["margin"]) for row in listed["changed"]]
        self.assertEqual(margins, sorted(margins))

    def test_words_for_what_has_no_failures(self):
        self.refused("failures", MODEL, *DATA, "--sort", "los", words=["did you mean loss?"])
        self.refused("failures", MODEL, *DATA, "--group", "par", words=["did you mean pair?"])
        self.refused("failures", MODEL, *DATA, "--on", "clas=3", words=["did you mean class?"])
        write("few.csv", "id\nnobody\n")
        self.refused("failures", MODEL, *DATA, "--on", "inputs=few.csv", words=["names no input"])


class Next(Case):
    def next(self, *arguments):
        return self.json("next", MODEL, "--pool", "glyphs:test", "--limit", 2000, *arguments)

    def test_unsure_ones_bring_failures_early(self):
        for method in ("gini", "mcp"):
            told = self.next("--method", method, "--count", 100, "-o", "chosen.csv")
            rows = read_csv("chosen.csv")
            self.assertEqual([row["id"] for row in rows], [row["id"] for row in told["chosen"]])
            self.assertEqual(len({row["id"] for row in rows}), 100)
            self.assertGreater(told["apfd"], 0.6, method)
            self.assertGreater(told["chosen_wrong"] / 100, 1.5 * told["wrong"] / 2000, method)

    def test_far_and_surprising_ones(self):
        far = self.next("--method", "coreset", "--count", 30)
        self.assertEqual(len({row["id"] for row in far["chosen"]}), 30)
        known = self.next("--method", "coreset", "--count", 30, "--train", "glyphs:train", "--budget", "2s")
        self.assertGreater(known["known"], 500)
        self.assertNotEqual([row["id"] for row in far["chosen"]], [row["id"] for row in known["chosen"]])
        told = self.next("--method", "surprise", "--count", 50, "--train", "glyphs:train", "--budget", "2s")
        self.assertGreater(told["apfd"], 0.5)
        scores = [row["score"] for row in told["chosen"] if row["score"] is not None]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.refused("next", MODEL, "--pool", "glyphs:test", "--limit", 300, "--method", "surprise", words=["--train"])

    def test_inputs_for_a_unit(self):
        layer = self.json("locate", MODEL, *DATA, "--top", 1)["ranking"][0]["unit"]
        told = self.json("next", MODEL, "--pool", "glyphs:train", "--limit", 2000, "--on", f"unit={layer}",
                         "--test", "glyphs:test", "--budget", "1s")
        values = [row["score"] for row in told["chosen"]]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertEqual(sum(value > told["tests_reach"] for value in values), min(20, told["above"]))
        for aim, word in (("unit=nolayer/3", "nolayer"), (f"unit={layer.split('/')[0]}/999", "there is no unit"),
                          ("units", "unit=LAYER/NUMBER")):
            self.refused("next", MODEL, "--pool", "glyphs:train", "--limit", 300, "--on", aim, words=[word])
        self.refused("next", MODEL, "--pool", "glyphs:train", "--method", "ginny", words=["did you mean gini?"])


def finding(kind, where, level="serious", value=0.02, related=()):
    return {"id": f"{kind}:{where}" if where else kind, "kind": kind, "where": where, "level": level,
            "certainty": "likely", "title": "Something is wrong.", "brief": "much", "evidence": "12 of 30 fail.",
            "gain": value, "local": 0, "value": value, "next": ["netmend failures --on class=3"], "inputs": [],
            "numbers": {}, "related": list(related)}


def leave_run(findings, name="netmend-runs/20260101-000000-check"):
    os.makedirs(name, exist_ok=True)
    write_json(f"{name}/findings.json", {"findings": findings})


class Why(Case):
    def test_every_kind_has_a_story(self):
        kinds = self.json("why", "--list")["kinds"]
        self.assertGreaterEqual(len(kinds), 30)
        told = self.json("why", kinds[0]["kind"])
        for key in ("meaning", "cause", "confirm", "repair", "next", "example"):
            self.assertTrue(told[key], key)
        for line in told["next"] + told["example"][-1:]:  # an example may be a small script that ends in a command
            self.assertRegex(line, "^netmend (?!netmend)")
        said = self.ok("why", kinds[0]["kind"]).stdout
        for part in ("what it means", "what usually causes it", "how to confirm it", "how to repair it"):
            self.assertIn(part, said)
        self.assertTrue(all(len(line) <= 100 for line in said.split("\n  next\n")[0].splitlines()), said)

    def test_a_finding_of_a_run_brings_its_evidence(self):
        leave_run([finding("confused-classes", "3-8"), finding("over-confident", "")])
        told = self.json("why", "confused-classes:3-8")
        self.assertEqual(told["finding"]["evidence"], "12 of 30 fail.")
        self.assertEqual(told["next"], ["netmend failures --on class=3"])
        self.assertIn("12 of 30 fail.", self.ok("why", "confused-classes").stdout)
        self.assertEqual(len(self.json("why")["findings"]), 2)
        other = self.ok("why", "confused-classes:3-9")
        self.assertIn("did you mean confused-classes:3-8?", other.stderr)
        self.assertIn("what it means", other.stdout)

    def test_words_for_what_is_not_there(self):
        self.refused("why", words=["no finding is given"])
        self.refused("why", "confused-clases", words=["did you mean confused-classes?"])
        self.refused("why", "over-confident", "--run", "nowhere", words=["nowhere"])
        leave_run([])
        write("netmend-runs/20260101-000000-check/findings.json", "{]")
        self.refused("why", "over-confident", words=["findings.json, line 1, column 2: this is not JSON"])
        write("netmend-runs/20260101-000000-check/findings.json", "{}")
        self.refused("why", "over-confident", words=["is not a findings.json that netmend wrote"])
        leave_run([{"kind": "over-confident"}])
        self.refused("why", "over-confident", words=["findings.json"])


class Accept(Case):
    ID = "confused-classes:3-8"

    def setUp(self):
        super().setUp()
        leave_run([finding("confused-classes", "3-8", value=0.0195), finding("over-confident", ""),
                   finding("preprocessing", "scale", "blocker")])
        write("netmend.toml", f'# mine\nmodel.file = "{MODEL}"   # the one\n\n[data]\ntest = "glyphs:test"  # tests\n')

    def test_keeps_reason_end_and_value_and_everything_else(self):
        before = read("netmend.toml")
        told = self.json("accept", self.ID, "--reason", 'they "look" alike', "--until", "2999-01-31", "--level", "2x")
        self.assertEqual((told["value"], told["level"]), (0.0195, 2))
        after = read("netmend.toml")
        for line in before.splitlines():
            self.assertIn(line, after.splitlines())
        listed = self.json("accept", "--list")["accepted"]
        self.assertEqual(len(listed), 1)
        self.assertEqual([listed[0][key] for key in ("id", "reason", "until", "value", "level")],
                         [self.ID, 'they "look" alike', "2999-01-31", 0.0195, 2])
        self.ok("accept", self.ID, "--reason", "again")  # replaces
        listed = self.json("accept", "--list")["accepted"]
        self.assertEqual([(row["reason"], row["until"]) for row in listed], [("again", None)])
        self.ok("eval", *DATA[2:], "--out", "e")  # everybody still reads the file

    def test_prunes_what_no_longer_occurs(self):
        self.ok("accept", self.ID, "--reason", "known")
        self.ok("accept", "over-confident", "--reason", "known")
        self.assertEqual(self.json("accept", "--prune")["removed"], [])
        before = read("netmend.toml")
        leave_run([finding("over-confident", "")], "netmend-runs/20260202-000000-check")
        self.assertEqual([row["id"] for row in self.json("accept", "--prune")["removed"]], [self.ID])
        after = read("netmend.toml")
        self.assertEqual([line for line in before.splitlines() if self.ID not in line], after.splitlines())
        text = after.replace('reason = "known"', 'reason = "known", until = "2020-01-01"')
        write("netmend.toml", text)
        self.assertTrue(self.json("accept", "--list")["accepted"][0]["ended"])
        self.assertEqual(len(self.json("accept", "--prune")["removed"]), 1)

    def test_inputs_by_file(self):
        write("odd.csv", "id\n1\n2\n")
        self.assertEqual(self.json("accept", "inputs", "--file", "odd.csv", "--reason", "nobody can tell")["inputs"], 2)
        self.assertEqual(self.json("accept", "--list")["accepted"][0]["file"], "odd.csv")
        worst = self.json("failures", *DATA[2:], "--top", 3)["rows"]
        write("odd.csv", "id\n" + "\n".join(row["id"] for row in worst) + "\n")
        self.assertEqual(self.json("failures", *DATA[2:])["accepted"], 3)
        self.refused("accept", "inputs", "--reason", "x", words=["--file"])
        self.refused("accept", "inputs", "--file", "none.csv", "--reason", "x", words=["none.csv"])

    def test_words_for_what_cannot_be_accepted(self):
        yesterday = (datetime.date.today() - datetime.timedelta(days=2)).isoformat()
        for arguments, words in (((self.ID,), ["reason"]),
                                 (("confused-clases:3-8", "--reason", "x"), ["did you mean confused-classes?"]),
                                 (("confused-classes:3-9", "--reason", "x"), ["did you mean confused-classes:3-8?"]),
                                 ((self.ID, "--reason", "x", "--until", yesterday), ["that day has passed"]),
                                 ((self.ID, "--reason", "x", "--until", "soon"), ["not a date"]),
                                 ((self.ID, "--reason", "x", "--level", "0.5x"), ["expected a factor"]),
                                 (("preprocessing:scale", "--reason", "x"), ["blocker"]),
                                 ((self.ID, "--list"), ["one thing at a time"]), ((), ["one thing at a time"])):
            self.refused("accept", *arguments, words=words)
        write("netmend.toml", "accept = {{\n", "a")
        self.refused("accept", self.ID, "--reason", "x", words=["netmend.toml, line"])
        write("netmend.toml", 'accept."a:b" = { reason = "x", untl = "2999-01-01" }\n')
        self.refused("accept", "--list", words=["line 1", "did you mean until?"])
        shutil.rmtree("netmend-runs")
        os.remove("netmend.toml")
        self.refused("accept", self.ID, "--reason", "x", words=["netmend check"])


if __name__ == "__main__":
    main()
