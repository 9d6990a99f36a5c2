"""netmend check as people run it: findings, levels, exit status, the report, and data that is not what one hopes for.

usage: check_test.py NETMEND [slow]
"""
import json, os, random, shlex

from shell import Case, main, model, read, read_bytes, read_json, run, write, write_bytes, write_csv

LEVELS = ["blocker", "serious", "minor", "note"]


def digits():
    return model("lenet5", "--data", "glyphs", "--limit", 4000, epochs=2)


def table(file, rows, label):
    """Three numbers that tell the label, and the label as the test wants it."""
    draw = random.Random(3)
    numbers = [[draw.uniform(-1, 1) for _ in range(3)] for _ in range(rows)]
    write_csv(file, ["a", "b", "c", "y"],
              *[[f"{one:.4f}" for one in three] + [label(i, *three)] for i, three in enumerate(numbers)])


class Findings(Case):
    def test_a_model_alone_takes_no_data(self):
        found = self.json("check", digits())
        self.assertIsNone(found["metric"])
        self.assertTrue(any("data" in one["enable"] for one in found["skipped"]))
        self.assertTrue(os.path.exists(found["report"]))

    def test_the_whole_of_it(self):
        found = self.json("check", digits(), "--data", "glyphs", "--limit", 1500, "--budget", "quick", "--out", "run")
        self.assertGreater(found["metric"]["value"], 0.8)
        for one in found["findings"]:
            for key in ("id", "kind", "level", "certainty", "title", "brief", "evidence", "meaning", "fault", "next",
                        "inputs", "gain"):
                self.assertIn(key, one)
            self.assertTrue(one["next"], one["id"])
            self.assertRegex(one["title"], r"^[^a-z].*\.$")
            self.assertNotIn("{", one["title"] + " ".join(one["next"]))
        levels = [LEVELS.index(one["level"]) for one in found["findings"]]
        self.assertEqual(levels, sorted(levels))
        self.assertGreater(len(found["passed"]), 10)
        page = read("run/report.html")
        self.assertLess(len(page), 15e6)
        self.assertNotRegex(page, r'(src|href)="http')
        self.assertEqual(read_json("run/findings.json")["verdict"], found["verdict"])
        evidence = read_json("run/evidence.json")
        self.assertEqual(evidence["format"], "netmend.report/1")
        self.assertEqual(len(evidence["inputs"]["id"]), len(evidence["inputs"]["right"]))

    def test_the_same_command_says_the_same(self):
        same = ("check", digits(), "--data", "glyphs:test", "--limit", 600, "--budget", "quick")
        first, again = (self.json(*same, "--jobs", jobs) for jobs in (1, 2))
        for found in (first, again):
            for key in ("run", "report"):
                found.pop(key)
        self.assertEqual(first, again)

    def test_a_broken_preflight_stops_everything_about_the_model(self):
        found = self.json("check", digits(), "--data", "glyphs:test,scale=-0.00392157,mean=-1", "--limit", 1500, code=1)
        self.assertEqual(found["findings"][0]["level"], "blocker")
        self.assertEqual(found["verdict"], found["findings"][0]["title"])
        self.assertIsNone(found["metric"])
        self.assertTrue(any(one["what"] == "everything about the model's predictions" for one in found["skipped"]))

    def test_weights_that_are_no_numbers_are_named(self):
        self.ok("lab", "new", "mlp:784-16-10", "-o", "fresh.onnx")
        content = bytearray(read_bytes("fresh.onnx"))
        middle = len(content) // 2  # in the first layer's weights, which are nearly all of the file
        content[middle:middle + 64] = b"\xff" * 64
        write_bytes("broken.onnx", content)
        found = self.json("check", "broken.onnx", code=1)
        self.assertIn("non-finite-weights", [one["kind"] for one in found["findings"]])

    def test_the_exit_status_follows_fail_on(self):
        arguments = ("check", digits(), "--data", "glyphs:test", "--limit", 400, "--budget", "quick", "--quiet")
        self.ok(*arguments, "--fail-on", "never")
        self.ok(*arguments, "--fail-on", "note", code=1)
        self.refused(*arguments, "--fail-on", "grave")
        self.refused(*arguments[:-1], "--budget", "soon")

    def test_without_pictures_only_names_leave(self):
        self.ok("check", digits(), "--data", "glyphs:test", "--limit", 400, "--budget", "quick", "--no-images",
                "--out", "run")
        evidence = read_json("run/evidence.json")
        self.assertEqual((evidence["inputs"]["pictures"], evidence["run"]["pictures"]), ({}, False))
        self.assertNotIn("data:image/png;base64,iVBOR", json.dumps(evidence))

    def test_what_was_accepted_is_counted_apart(self):
        write("netmend.toml", f'model = {{ file = "{digits()}" }}\ndata = {{ test = "glyphs:test" }}\n')
        found = self.json("check", "--limit", 600, "--budget", "quick")
        first = found["findings"][0]["id"]
        self.ok("accept", first, "--reason", "known")
        again = self.json("check", "--limit", 600, "--budget", "quick")
        self.assertNotIn(first, [one["id"] for one in again["findings"]])
        self.assertIn(first, [one["id"] for one in again["accepted"]])
        self.assertTrue(all(" --data" not in command for one in again["findings"] for command in one["next"]))

    def test_a_worse_model_is_held_against_the_older_one(self):
        worse = model("lenet5", "--data", "glyphs", "--limit", 600)
        found = self.json("check", worse, "--data", "glyphs:test", "--limit", 1500, "--budget", "quick",
                          "--against", digits(), "--out", "run")
        self.assertIn("regressed", [one["kind"] for one in found["findings"]])
        compare = read_json("run/evidence.json")["compare"]
        self.assertGreater(compare["broken"], compare["fixed"])


class SlowOddData(Case):
    """Parts that apply run; the others are named with what would enable them."""

    def check(self, network, spec, **how):
        found = self.json("check", network, "--data", spec, "--budget", "quick", "--fail-on", "never", **how)
        self.assertTrue(os.path.exists(found["report"]))
        kinds, skipped = [one["kind"] for one in found["findings"]], " ".join(one["what"] for one in found["skipped"])
        return found, kinds, skipped

    def test_numbers(self):
        table("t.csv", 400, lambda i, a, b, c: f"{2 * a - b + 0.5 * c:.4f}")
        network = model("mlp:3-16-1", "--train", "csv:t.csv,label=y,kind=number", "--rate", 0.01, epochs=8)
        found, kinds, skipped = self.check(network, "csv:t.csv,label=y,kind=number")
        self.assertEqual(found["metric"]["name"], "mae")
        self.assertIn("units to blame", skipped)

    def test_words_as_labels_and_a_class_with_one_example(self):
        table("t.csv", 400, lambda i, a, b, c: "rare" if i == 7 else "up" if a + b > 0 else "down")
        network = model("mlp:3-16-3", "--train", "csv:t.csv,label=y", "--rate", 0.01, epochs=8)
        found, kinds, skipped = self.check(network, "csv:t.csv,label=y")
        self.assertIn("rare", found["result"]["classes"])

    def test_all_right_and_all_wrong(self):
        table("t.csv", 300, lambda i, a, b, c: "up" if a > 0 else "down")
        network = model("mlp:3-16-2", "--train", "csv:t.csv,label=y", "--rate", 0.02, epochs=40)
        found, kinds, skipped = self.check(network, "csv:t.csv,label=y")
        self.assertGreater(found["metric"]["value"], 0.97)
        self.assertIn("units to blame", skipped)
        table("w.csv", 300, lambda i, a, b, c: "down" if a > 0 else "up")
        found = self.json("check", network, "--data", "csv:w.csv,label=y,train=t.csv", "--budget", "quick",
                          "--fail-on", "never", "--anyway")
        self.assertLess(found["metric"]["value"], 0.03)

    def test_one_class(self):
        table("t.csv", 200, lambda i, a, b, c: "only")
        network = model("mlp:3-8-2")
        done = run("check", network, "--data", "csv:t.csv,label=y", "--budget", "quick", "--json", "--fail-on", "never")
        self.assertIn(done.returncode, (0, 2), done.stderr)  # said, not crashed: two outputs, one class is a mismatch
        self.assertNotIn("internal error", done.stderr)

    def test_no_labels(self):
        table("t.csv", 200, lambda i, a, b, c: 0)
        found, kinds, skipped = self.check(model("mlp:4-8-3"), "csv:t.csv")
        self.assertIsNone(found["metric"])
        self.assertIn("weak slices", skipped)
        self.assertIn("data with labels", " ".join(one["enable"] for one in found["skipped"]))

    def test_ten_thousand_classes(self):
        table("t.csv", 12000, lambda i, a, b, c: i % 10000)
        found, kinds, skipped = self.check(model("mlp:3-8-10000"), "csv:t.csv,label=y")
        self.assertIn("no-better-than-baseline", kinds)
        self.assertLess(os.path.getsize(found["report"]), 15e6)


class SlowNext(Case):
    """Every next command of every finding runs as printed."""

    def test_commands_run(self):
        self.ok("lab", "plant", digits(), "--kind", "random-weights", "--data", "glyphs:test", "--at-least", 5,
                "-o", "faulty.onnx")
        self.ok("lab", "plant", digits(), "--kind", "swapped-classes", "-o", "swapped.onnx")
        cases = [("faulty.onnx", "--data", "glyphs"), (digits(), "--data", "glyphs"),
                 ("swapped.onnx", "--data", "glyphs:test", "--anyway"),
                 (digits(), "--data", "glyphs:test,scale=-0.00392157,mean=-1")]
        seen = set()
        for case in cases:
            for finding in self.json("check", *case, "--budget", "quick", "--fail-on", "never")["findings"]:
                self.ok("why", finding["id"])
                for command in finding["next"]:
                    if (finding["kind"], command) in seen:
                        continue
                    seen.add((finding["kind"], command))
                    words = shlex.split(command)
                    self.assertEqual(words[0], "netmend")
                    if words[1] == "repair":
                        words += ["--budget", "20s"]  # as printed it takes a minute
                    done = run(*words[1:], timeout=900)
                    self.assertIn(done.returncode, (0, 1), (command, done.stderr[-600:]))
                    self.assertNotIn("internal error", done.stderr)
        self.assertGreater(len(seen), 12)


if __name__ == "__main__":
    main()
