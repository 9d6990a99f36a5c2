"""What commands print for people: nothing is dropped at 80 columns or in a pipe, and the exit status is never silent.

usage: screens_test.py NETMEND
"""
import os, random, re

from shell import Case, main, model, read_json, shared, write, write_csv

LONG = {"F": "female-or-not-stated-in-the-questionnaire-of-the-year-2019",
        "M": "male-as-stated-in-the-questionnaire-of-the-year-2019"}
YES, NO = "would-be-granted-the-credit-line", "would-not-be-granted-the-credit-line"
NETWORK = WORSE = PEOPLE = TRAIN = None


def write_people(path, count, seed, unfair):
    """Among women who work little, half of the labels are turned about."""
    draw, rows = random.Random(seed), []
    for _ in range(count):
        age, hours, sex = draw.randint(18, 80), draw.randint(5, 60), draw.choice("FM")
        ok = age / 80 + hours / 60 > 1.1
        if unfair and sex == "F" and hours < 25 and draw.random() < 0.5:
            ok = not ok
        rows.append([age, hours, LONG[sex], YES if ok else NO])
    write_csv(path, ["age", "hours", "sex_as_stated_by_the_person", "ok"], *rows)


def setUpModule():
    global NETWORK, WORSE, PEOPLE, TRAIN
    TRAIN, PEOPLE = (os.path.join(shared(), name) for name in ("screen-train.csv", "screen-people.csv"))
    write_people(TRAIN, 2000, 1, False)
    write_people(PEOPLE, 4000, 2, True)
    learn = ("--train", f"csv:{TRAIN},label=ok,groups=sex_as_stated_by_the_person", "--rate", "0.01")
    NETWORK = model("mlp:2-12-2", *learn, epochs=20)
    WORSE = model("mlp:2-12-2", *learn, "--limit", "60", epochs=3)


def spec():
    return f"csv:{PEOPLE},label=ok,groups=sex_as_stated_by_the_person,train={TRAIN}"


def too_wide(text, width):
    """Lines beyond the width that could have been broken: not commands to paste, paths and single long words."""
    wide = []
    for line in text.splitlines():
        words = line.split()
        if len(line) <= width or any(word in line for word in ("netmend ", "netmend-runs/", PEOPLE)):
            continue
        if len(words) > 1 and max(map(len, words)) < width - 30:
            wide.append(line)
    return wide


class Width(Case):
    def narrow(self, *arguments, columns="80", code=0):
        return self.ok(*arguments, "--data", spec(), "--out", "run", "--quiet", code=code,
                       env={**os.environ, "COLUMNS": columns}).stdout

    def test_tables_with_long_names_fold_and_cut_nothing(self):
        for command in (("eval", NETWORK), ("slices", NETWORK), ("slices", NETWORK, "--threshold", "sweep"),
                        ("compare", WORSE, NETWORK), ("failures", NETWORK, "--top", "3"), ("locate", NETWORK)):
            said = self.narrow(*command)
            self.assertEqual(too_wide(said, 80), [], command)
            self.assertNotIn("…", said.replace("… and", ""), command)
            if command[0] == "failures":  # whose rows end with the whole input
                self.assertRegex(re.sub(r"\s+", " ", said), "sex_as_stated_by_the_person=(female-or|male-as)\\S+2019 ok=would")
            if command[0] not in ("failures", "locate"):
                for name in LONG.values():
                    self.assertIn("sex_as_stated_by_the_person=" + name, said, command)

    def test_a_table_that_fits_stays_a_table(self):
        said = self.narrow("eval", NETWORK, columns="200")
        head = next(line for line in said.splitlines() if line.split()[:2] == ["class", "inputs"])
        self.assertEqual(head.split(), ["class", "inputs", "correct", "recall", "precision"])
        row = next(line for line in said.splitlines() if line.split()[:1] == [NO])
        self.assertLessEqual(len(row), 200)
        self.assertRegex(row, r"\d[\d,]* +\d[\d,]* +[\d.]+ % \([\d.]+–[\d.]+\) +[\d.]+ %")

    def test_wide_never_wraps(self):
        narrow = self.narrow("check", NETWORK, "--budget", "quick", "--fail-on", "never")
        wide = self.narrow("check", NETWORK, "--budget", "quick", "--fail-on", "never", "--wide")
        self.assertGreater(max(map(len, wide.splitlines())), 100)
        self.assertLess(len(wide.splitlines()), len(narrow.splitlines()))
        spaces = lambda text: re.sub(r"\s+", " ", re.sub(r"\d+\.\d+ s|netmend-runs\S+", "", text))
        self.assertEqual(spaces(narrow), spaces(wide))

    def test_every_finding_but_notes_is_there_with_its_whole_text(self):
        for columns in ("40", "80", "160"):
            said = re.sub(r"\s+", " ", self.narrow("check", NETWORK, "--budget", "quick", "--fail-on", "never",
                                                   columns=columns))
            found = read_json("run/findings.json")["findings"]
            loud = [one for one in found if one["level"] != "note"]
            self.assertTrue(loud)
            for one in loud:
                self.assertIn(f"{one['level']} {one['id']} {one['brief']} ({one['certainty']})", said)
            notes = len(found) - len(loud)
            if notes:
                self.assertIn(f"{notes} note{'s' * (notes > 1)}: netmend why --run run", said)
        listed = re.sub(r"\s+", " ", self.ok("why", "--run", "run").stdout)
        for one in found:
            self.assertIn(f"{one['level']} {one['id']} {one['title']}", listed)

    def test_skipped_checks_are_told_apart(self):
        said = self.narrow("check", NETWORK, "--budget", "quick", "--fail-on", "never")
        skipped = read_json("run/findings.json")["skipped"]
        whole = re.sub(r"\s+", " ", said)
        for enable in {one["enable"] for one in skipped}:
            names = [one["what"] for one in skipped if one["enable"] == enable]
            self.assertIn(" · ".join(names) + f" needs {enable}", whole)


class ExitStatus(Case):
    def check(self, *arguments, code):
        return self.ok("check", NETWORK, "--data", spec(), "--budget", "quick", "--quiet", "--out", "run", *arguments,
                       code=code).stdout.strip().splitlines()[-1].strip()

    def test_a_serious_finding_never_goes_with_0_in_silence(self):
        last = self.check("--fail-on", "blocker", "--wide", code=0)
        serious = sum(one["level"] == "serious" for one in read_json("run/findings.json")["findings"])
        self.assertGreater(serious, 0)
        self.assertEqual(last, f"exit      0 in spite of {serious} serious finding{'s' * (serious > 1)} (--fail-on blocker); "
                               "with --fail-on serious it would be 1")
        last = self.check("--fail-on", "serious", "--wide", code=1)
        self.assertEqual(last, f"exit      1: {serious} finding{'s' * (serious > 1)} at level serious or above "
                               "(--fail-on serious)")

    def test_a_blocker_says_how_the_command_ends_and_what_to_run_again(self):
        digits = model("lenet5", "--data", "glyphs", "--limit", 4000, epochs=2)
        wrong = "glyphs:test,scale=-0.00392157,mean=-1"
        for command in ("eval", "locate", "failures"):
            done = self.ok(command, digits, "--data", wrong, "--limit", 1500, "--quiet", code=1).stdout
            self.assertIn("✗", done)
            self.assertIn("exit 1", done)
            self.assertIn(f"next      netmend {command} {digits} --data {wrong} --limit 1500 --quiet", done)
        done = self.ok("eval", digits, "--data", wrong, "--limit", 1500, "--quiet", "--anyway").stdout
        self.assertIn("The command continues anyway", done)
        self.assertNotIn("exit 1", done)

    def test_compare_says_that_it_does_not_fail(self):
        said = self.ok("compare", NETWORK, WORSE, "--data", spec(), "--quiet", "--wide").stdout
        self.assertIn("verdict: worse", said)
        self.assertIn("exit      0: compare only reports", said)
        self.assertRegex(said, r"\d+ fix(es)? \(wrong before, correct now\), \d[\d,]* regressions? \(correct before, wrong now\)")

    def test_a_gate_says_its_exit_status(self):
        for limit, code, words in ((0.99, 1, "not passed, 1 of 1 limit not met: exit 1"), (0.1, 0, "passed: exit 0")):
            write("netmend.toml", f'gate = {{ accuracy = ">= {limit}" }}\n')
            said = self.ok("gate", NETWORK, "--data", spec(), "--quiet", code=code).stdout
            self.assertIn(words, said)


class Words(Case):
    def test_why_ends_without_codes(self):
        for kind in ("dead-units", "over-confident", "split-leak", "suspicious-unit"):
            last = self.ok("why", kind).stdout.strip().splitlines()[-1]
            self.assertNotRegex(last, r"\b[a-z]{2}-[A-Za-z0-9]+\b|fault", kind)
            self.assertIn("netmend check looks for this when it has", self.ok("why", kind, "--wide").stdout)

    def test_accept_says_what_its_value_is(self):
        self.ok("check", NETWORK, "--data", spec(), "--budget", "quick", "--quiet")
        found = [one for one in read_json("netmend-runs/latest/findings.json")["findings"] if one["level"] == "serious"]
        said = self.ok("accept", found[0]["id"], "--reason", "known", "--wide").stdout
        self.assertIn("today: " + found[0]["brief"], said)
        self.assertRegex(said, r"more than 1.5 times [\d.]+ %")

    def test_train_tells_once_how_data_is_prepared(self):
        write("netmend.toml", 'input.x = { scale = "1/255" }\n')
        self.ok("lab", "new", "lenet5", "-o", "m.onnx")
        said = self.ok("train", "m.onnx", "--data", "glyphs", "--limit", 200, "--epochs", 1, "-o", "t.onnx").stderr
        lines = [line for line in said.splitlines() if line.startswith("data:")]
        self.assertEqual(len(lines), len(set(lines)), said)


if __name__ == "__main__":
    main()
