"""A new user's first minutes: netmend.toml, the preflight, metrics, comparing. Networks are trained in the test.

usage: first_contact_test.py NETMEND
"""
import json, os, random, shutil

import shell
from shell import data, main, model, needs, parse, read, read_csv, write, write_json, write_png


class Case(shell.Case):
    """Two small networks that read drawn digits, the second trained longer."""

    def setUp(self):
        super().setUp()
        for name, epochs, seed in (("old.onnx", 1, 1), ("new.onnx", 2, 2)):
            made = model("mlp:784-32-10", "--data", "glyphs", "--limit", 12000, epochs=epochs, seed=seed)
            shutil.copy(made, name)

    def not_blocked(self, *arguments):
        found = self.json(*arguments)
        self.assertNotIn("blocker", [one["level"] for one in found["findings"]])
        return found


class Init(Case):
    def test_three_commands_from_a_file_to_an_answer(self):
        self.ok("init", "new.onnx", "--data", "glyphs")
        text = read("netmend.toml")
        for part in ('model.file = "new.onnx"', 'model.kind = "classes"', 'data.test = "glyphs:test"',
                     'data.train = "glyphs:train"', "# "):
            self.assertIn(part, text)
        found = self.not_blocked("check", "--budget", "quick")
        self.assertGreater(found["metric"]["value"], 0.5)
        self.assertLess(found["metric"]["low"], found["metric"]["value"])

    def test_an_edited_file_survives_an_update(self):
        styles = {
            "dotted": '# mine\nmodel.file = "new.onnx"   # keep this\n\ngoal.threshold = 0.5 # half\n',
            "inline": '# mine\nmodel = { file = "new.onnx" } # keep this\ngoal = { metric = "accuracy" }\n',
            "headed": '# mine\n\n[goal] # why\nmetric = "accuracy"\n\n# about data\n[data]\n'
                      'test = "glyphs:test,limit=2000"  # keep this\n',
            "mixed": 'classes = [\n  "0", "1", "2", "3", "4",\n  "5", "6", "7", "8", "9",\n]\n[model]\n'
                     'file = "new.onnx"\n# the end\n',
        }
        for style, before in styles.items():
            with self.subTest(style):
                write("netmend.toml", before)
                self.refused("init", "new.onnx", "--data", "glyphs", words=("--update",))
                self.ok("init", "new.onnx", "--data", "glyphs", "--update")
                after = read("netmend.toml")
                # Every line is there, in its order; only an inline table has grown.
                lines = iter(after.splitlines())
                for line in before.splitlines():
                    begin, remark = line.split("}")[0].rstrip(), line.partition("#")[2]
                    self.assertTrue(any(other.startswith(begin) and remark in other for other in lines), (line, after))
                self.ok("init", "new.onnx", "--data", "glyphs", "--update")
                self.assertEqual(read("netmend.toml"), after)
                self.json("eval", "new.onnx", "--limit", 500)

    def test_names_and_preparation_are_found_beside_the_model(self):
        names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        sources = {"labels.txt": "\n".join(names), "classes.json": json.dumps(names),
                   "config.json": json.dumps({"id2label": dict(enumerate(names))})}
        for file, text in sources.items():
            with self.subTest(file):
                os.makedirs(file + ".d")
                # A model that carries no names itself.
                self.ok("lab", "new", "lenet1", "-o", file + ".d/m.onnx")
                write(f"{file}.d/{file}", text)
                printed = self.ok("init", f"{file}.d/m.onnx", "--print").stdout
                self.assertIn('classes = ["zero", "one"', printed)
                self.assertIn(file, printed)
        write_json("labels.txt.d/preprocessor_config.json",
                   {"do_rescale": True, "rescale_factor": 1 / 255, "image_mean": [0.5], "image_std": [0.25],
                    "size": {"height": 28, "width": 28}, "resample": 3})
        printed = self.ok("init", "labels.txt.d/m.onnx", "--print").stdout
        for part in ('scale = "1/255"', "mean = [0.5]", "std = [0.25]", 'layout = "NCHW"',
                     'resize = { height = 28, width = 28, filter = "bicubic" }'):
            self.assertIn(part, printed)

    def test_a_folder_of_pictures_with_a_table_beside_it(self):
        # Pictures hold bytes; the model says itself that it was trained on 0…1.
        self.pictures()
        hours = "".join(f"{n % 10}/{n:04}.png,{'night' if n % 3 else 'day'}\n" for n in range(1, 1200))
        write("digits/meta.csv", "path,hour\n" + hours)
        self.ok("init", "new.onnx", "--data", "images:digits")
        text = read("netmend.toml")
        for part in ('scale = "1/255"', "netmend.input.scale", 'data.meta = "digits/meta.csv"',
                     'data.groups = ["hour"]'):
            self.assertIn(part, text)
        self.not_blocked("check", "--budget", "quick")
        done = self.ok("eval", "--json")
        groups = {group["value"]: group["samples"] for group in parse(done.stdout)["groups"]}
        self.assertEqual(groups, {"": 1, "day": 399, "night": 800})
        self.assertIn("1 of", done.stderr)

    def pictures(self):
        """Digits as another program would draw them, in PNG files, a folder a class."""
        draw = random.Random(5)
        font = ["01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
                "01110 10001 00001 00110 01000 10000 11111", "01110 10001 00001 00110 00001 10001 01110",
                "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
                "01110 10000 11110 10001 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
                "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00001 01110"]
        for number in range(1200):
            rows, top, left = font[number % 10].split(), draw.randrange(2, 5), draw.randrange(4, 9)
            bright = draw.randrange(180, 255)
            inked = lambda y, x: (0 <= y - top < 21 and 0 <= x - left < 15
                                  and rows[(y - top) // 3][(x - left) // 3] == "1")
            write_png(f"digits/{number % 10}/{number:04}.png",
                      [[bright if inked(y, x) else draw.randrange(12) for x in range(28)] for y in range(28)])


class Config(Case):
    def test_mistakes_are_named_with_key_and_line(self):
        cases = {
            'modle = { file = "new.onnx" }': ("modle", "line 1", "model"),
            'goal = { metric = "acuracy" }': ("goal.metric", "accuracy"),
            "goal = { expect = 91.3 }": ("goal.expect", "0.913"),
            'goal = { expect = "high" }': ("goal.expect", "line 1"),
            'model = { kind = "class" }': ("model.kind", "classes"),
            "\nclasses = 10": ("classes", "line 2", "list"),
            'classes = ["a", "a"]': ("twice",),
            'input.x = { scale = true }': ("input.x.scale", "number"),
            'input.x = { scael = "1/255" }': ("scael", "scale"),
            'data = { test = "imagse:x" }': ("data.test", "images"),
            "gate = { accuracy = 0.9 }": ("gate.accuracy", ">= 0.90"),
            'goal = { threshold = 2 }': ("goal.threshold",),
            "model = {": ("line 1",),
        }
        for text, words in cases.items():
            with self.subTest(text):
                write("netmend.toml", text + "\n")
                self.refused("eval", "new.onnx", "--data", "glyphs:test", words=("netmend.toml",) + words)

    def test_a_class_list_of_the_wrong_length_is_refused(self):
        write("netmend.toml", 'classes = ["a", "b", "c"]\n')
        self.refused("eval", "new.onnx", "--data", "glyphs:test", words=("3",))

    def test_flags_win(self):
        write("netmend.toml", 'data = { test = "glyphs:test,limit=300" }\n')
        self.assertEqual(self.json("eval", "new.onnx")["samples"], 300)
        self.assertEqual(self.json("eval", "new.onnx", "--data", "glyphs:test,limit=200")["samples"], 200)

    def test_classes_in_another_order_are_renumbered_by_name(self):
        straight = self.json("eval", "new.onnx", "--data", "glyphs:test,limit=1000")
        order = "9876543210"
        write("netmend.toml", "classes = [" + ", ".join(f'"{c}"' for c in order) + "]\n")
        turned = self.json("eval", "new.onnx", "--data", "glyphs:test,limit=1000", "--anyway")
        counts = lambda found: [row["samples"] for row in found["per_class"]]
        self.assertEqual(counts(turned), counts(straight)[::-1])
        self.assertLess(turned["accuracy"], straight["accuracy"])


class Preflight(Case):
    def test_a_wrong_scale_blocks_and_the_line_helps(self):
        spec = "glyphs:test,limit=3000,scale=1"
        shown = self.ok("eval", "new.onnx", "--data", spec, code=1).stdout
        for part in ("preprocessing:scale", "set-ups tried", "scaled to 0…1", "--anyway"):
            self.assertIn(part, shown)
        found = self.json("check", "new.onnx", "--data", spec, code=1)
        self.assertEqual(found["findings"][0]["id"], "preprocessing:scale")
        self.assertEqual(found["findings"][0]["level"], "blocker")
        write("netmend.toml", found["findings"][0]["toml"] + "\n")
        self.not_blocked("check", "new.onnx", "--data", "glyphs:test,limit=3000")
        self.assertEqual(self.json("eval", "new.onnx", "--data", spec, "--anyway")["samples"], 3000)

    @needs(files=("onnx/mnist_fc", "mnist"))
    def test_a_published_network_that_is_not_calibrated(self):
        # Its outputs are scores near 0 and 1: it is right far more often than a softmax of them is sure.
        network = data("onnx", "mnist_fc", "mnist-net_256x2.onnx")
        found = self.json("check", network, "--data", "mnist:test,scale=1", code=1)["findings"][0]
        self.assertEqual((found["id"], found["toml"]), ("preprocessing:scale", 'input.0 = { scale = "1/255" }'))
        self.not_blocked("check", network, "--data", "mnist:test")

    def test_classes_in_another_order_are_named(self):
        write("netmend.toml", 'classes = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"]\n')
        found = self.json("check", "new.onnx", "--data", "glyphs:test", code=1)["findings"][0]
        self.assertEqual(found["id"], "class-order:labels")
        write("netmend.toml", found["toml"] + "\n")
        self.not_blocked("check", "new.onnx", "--data", "glyphs:test")

    def test_what_was_expected_counts(self):
        value = self.json("eval", "new.onnx", "--data", "glyphs:test")["accuracy"]
        write("netmend.toml", f"goal.expect = {value:.3f}\n")
        self.assertIn("as expected", self.ok("check", "new.onnx", "--data", "glyphs:test").stdout)
        write("netmend.toml", f"goal.expect = {value / 2:.3f}\n")
        found = self.json("check", "new.onnx", "--data", "glyphs:test", code=1)["findings"][0]
        self.assertEqual(found["id"], "expectation:accuracy")

    def test_probabilities_are_told_from_logits(self):
        write("netmend.toml", 'model = { gives = "probabilities" }\n')
        found = self.json("check", "new.onnx", "--data", "glyphs:test", code=1)["findings"][0]
        self.assertTrue(found["id"].startswith("output-kind:"), found)

    def test_an_untrained_network_is_bad_not_blocked(self):
        self.ok("lab", "new", "lenet1", "-o", "raw.onnx")
        found = self.not_blocked("check", "raw.onnx", "--data", "glyphs:test,limit=1000", "--budget", "quick")
        self.assertTrue(any("majority" in line["text"] for line in found["preflight"]["lines"]))


class Metrics(Case):
    def test_one_is_chosen_and_all_have_intervals(self):
        found = self.json("eval", "new.onnx", "--data", "glyphs:test,limit=1000", "--metric", "balanced_accuracy")
        self.assertEqual(found["metric"], "balanced_accuracy")
        for name in ("accuracy", "balanced_accuracy", "f1", "log_loss"):
            metric = found["metrics"][name]
            self.assertLessEqual(metric["low"], metric["value"])
            self.assertGreaterEqual(metric["high"], metric["value"])
        found = self.json("eval", "new.onnx", "--data", "glyphs:test,limit=500", "--metric", "auc")
        self.assertIn("auc", found["metrics"])
        self.refused("eval", "new.onnx", "--data", "glyphs:test", "--metric", "mae", words=("mae", "accuracy"))

    def test_a_short_budget_takes_an_even_sample_and_says_so(self):
        done = self.ok("eval", "new.onnx", "--data", "glyphs:test", "--budget", "0.001s", "--json")
        found = parse(done.stdout)
        self.assertIn("--all", done.stderr)
        self.assertLess(found["samples"], found["of"])
        self.assertGreater(min(row["samples"] for row in found["per_class"]), 0)
        whole = self.json("eval", "new.onnx", "--data", "glyphs:test", "--budget", "0.001s", "--all")
        self.assertEqual(whole["samples"], found["of"])
        self.refused("eval", "new.onnx", "--data", "glyphs:test", "--budget", "soon", words=("--budget",))


class Compare(Case):
    def test_model_folder_and_baseline_give_the_same_counts(self):
        data = ("--data", "glyphs:test,limit=3000")
        direct = self.json("compare", "old.onnx", "new.onnx", *data, "--out", "c1")
        old = self.json("eval", "old.onnx", *data, "--out", "old.run")
        new = self.json("eval", "new.onnx", *data, "--out", "new.run")
        self.assertEqual(direct["net"], round((new["accuracy"] - old["accuracy"]) * 3000))
        self.assertEqual(sum(row["fixed"] for row in direct["per_class"]), direct["fixed"])
        self.ok("compare", "old.onnx", "old.onnx", *data, "-o", "baseline.json", "--out", "c2")
        self.assertLess(os.path.getsize("baseline.json"), 30000)
        for reference in ("old.run", "baseline.json"):
            again = self.json("compare", reference, "new.onnx", *data, "--out", "c3")
            for key in ("inputs", "fixed", "broken", "net"):
                self.assertEqual(again[key], direct[key], (reference, key))
        self.assertEqual(len(read_csv("c1/flips.csv")), direct["fixed"] + direct["broken"])

    def test_the_same_model_is_not_worse(self):
        found = self.json("compare", "old.onnx", "old.onnx", "--data", "glyphs:test,limit=3000")
        self.assertEqual((found["fixed"], found["broken"], found["verdict"]), (0, 0, "not worse"))
        found = self.json("compare", "new.onnx", "old.onnx", "--data", "glyphs:test,limit=3000", "--margin", 0)
        self.assertEqual(found["verdict"], "worse")

    def test_other_data_is_refused(self):
        self.ok("eval", "old.onnx", "--data", "glyphs:test,limit=1000", "--out", "old.run")
        self.refused("compare", "old.run", "new.onnx", "--data", "glyphs:test,limit=2000", words=("--common",))
        self.refused("compare", "old.run", "new.onnx", "--data", "glyphs:train,limit=1000",
                     words=("--common", "different data"))

    def test_what_is_no_reference_is_refused(self):
        write("broken.json", '{"format": "netmend-baseline", "version": 1}')
        write("text.json", "hello")
        os.makedirs("empty")
        for reference in ("broken.json", "text.json", "empty", "missing.onnx"):
            self.refused("compare", reference, "new.onnx", "--data", "glyphs:test", words=(reference,))


if __name__ == "__main__":
    main()
