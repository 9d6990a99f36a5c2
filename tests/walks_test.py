"""Five walks of a new user, end to end, with networks that are trained and exported here. Needs torch and the public
data.

usage: walks_test.py NETMEND    NETMEND_KEEP=FOLDER keeps what was made
"""
import os, re, shutil, tempfile

from models_for_walks import *
from netmend import patch_state_dict, save_data
from netmend._edits import make_edits
from shell import OneFolder, main, read_csv, write, write_csv, write_json


class Walk(OneFolder):
    def finding(self, result):
        """The one blocker, with a next command that can be pasted."""
        levels = [one["level"] for one in result["findings"]]
        self.assertEqual(levels.count("blocker"), 1, result["findings"])  # the data is looked at all the same
        found = result["findings"][0]
        self.assertEqual(found["level"], "blocker")
        self.assertTrue(found["next"])
        return found

    def elsewhere(self, *files):
        """A folder of its own with copies, for another netmend.toml."""
        place = tempfile.mkdtemp(prefix="elsewhere-", dir=self.folder)
        for file in files:
            shutil.copy(file, place)
        return place


class A_Residual(Walk):
    """A residual network for CIFAR, batch 1, mean and std in the loader."""

    @classmethod
    def make(cls):
        (pixels, labels), (test, cls.labels) = cifar("train"), cifar("test")
        names = cifar_names()
        write_images("cifar/train", pixels[:1000], labels[:1000], names)
        cls.paths = write_images("cifar/test", test, cls.labels, names)
        torch.manual_seed(0)
        cls.x = normalised(test, CIFAR_MEAN, CIFAR_STD)
        cls.network = train(Residual(), [normalised(pixels, CIFAR_MEAN, CIFAR_STD)], labels, 1, 8e-3)
        cls.accuracy = accuracy(cls.network, [cls.x], cls.labels)
        export(cls.network, [cls.x], "m.onnx")
        torch.save(cls.network.state_dict(), "m.pt")

    def test_1_two_commands_from_file_and_folder_to_the_figure(self):
        init = self.ok("init", "m.onnx", "--data", "images:cifar")
        self.addCleanup(os.remove, "netmend.toml")
        self.assertIn("not scaled", init.stdout)
        text = read("netmend.toml")
        for key in ("input.x.mean", "input.x.std"):
            line = next(line for line in text.splitlines() if line.startswith(key))
            self.assertRegex(line, r"#.*tried")  # each with its source
        self.assertIn('"images:cifar/train"', text)
        mean = [float(v) for v in re.search(r"input\.x\.mean = \[(.*?)\]", text).group(1).split(",")]
        for value, right in zip(mean, CIFAR_MEAN):  # published, or of the data; in units of 0…1 or of 0…255
            self.assertAlmostEqual(value if max(mean) < 1 else value / 255, right, delta=0.02)
        check = self.ok("check")
        self.assertIn("preflight", check.stdout)
        self.assertRegex(check.stderr + check.stdout, r"batch fixed at 1 in the file, generalised to any size")
        result = self.json("check")
        self.assertAlmostEqual(result["metric"]["value"], self.accuracy, delta=0.005)
        self.assertLess(result["metric"]["low"], result["metric"]["value"])
        self.assertNotIn("blocker", [one["level"] for one in result["findings"]])

    def test_5_a_linked_folder_keeps_the_name_that_was_typed(self):
        place = self.elsewhere("m.onnx")
        os.symlink(os.path.abspath("cifar"), os.path.join(place, "photos"))
        said = self.ok("init", "m.onnx", "--data", "images:photos", "--print", cwd=place).stdout
        self.assertIn('"images:photos/test"', said)

    def test_2_unscaled_is_blocked_and_the_line_repairs_it(self):
        place = self.elsewhere("m.onnx")
        toml = os.path.join(place, "netmend.toml")
        data = f'model.file = "m.onnx"\ndata.test = "images:{self.folder}/cifar/test"\n'
        for wrong in ("", 'input.x = { scale = "1/255" }\n'):
            write(toml, data + wrong)
            said = self.ok("check", code=1, cwd=place).stdout
            self.assertIn("preprocessing:scale", said)
            found = self.finding(self.json("check", code=1, cwd=place))
            self.assertEqual(found["id"], "preprocessing:scale")
            self.assertIn(found["toml"], said)
            self.assertIn("mean", found["toml"])
            write(toml, data + found["toml"] + "\n")
            self.assertAlmostEqual(self.json("check", cwd=place)["metric"]["value"], self.accuracy, delta=0.005)
        write(toml, data)
        self.ok("check", "--anyway", "--fail-on", "never", cwd=place)

    def test_3_the_reference_agrees_and_shows_wrong_pixels(self):
        order = sorted(range(len(self.paths)), key=lambda i: self.paths[i])[:64]  # as the folder is read
        loader = [(self.x[order], torch.as_tensor(self.labels[order]))]
        save_data.reference(self.network, loader, "ref.npz", n=64)
        data = "images:cifar/test,scale=1/255,mean=0.4914:0.4822:0.4465,std=0.247:0.2435:0.2616"
        self.ok("match", "m.onnx", "--reference", "ref.npz", "--data", data)
        self.ok("match", "m.onnx", "--reference", "ref.npz", "--layers")
        self.ok("match", "m.onnx", "--reference", "ref.npz", "--data", "images:cifar/test,scale=1/255", code=1)

    def test_4_a_repair_goes_home(self):
        """A unit is changed in the file; the checkpoint gets the same change, through the folded batch norm."""
        before = initializers("m.onnx")
        info = self.json("info", "m.onnx")
        names = [layer["name"] for layer in info["layers"]]
        self.assertIn("layer2.0.conv1", names)
        # Which initializer the layer has is found by its shape and place: convolutions come in the order of the layers.
        convolutions = [name for name in before if name.startswith("onnx::Conv") and before[name].ndim == 4]
        weight = convolutions[4]  # stem, layer1.0.conv1, conv2, shortcut, layer2.0.conv1
        bias = list(before)[list(before).index(weight) + 1]
        self.assertEqual(before[weight].shape, (24, 12, 3, 3))
        after = {weight: before[weight].copy(), bias: before[bias].copy()}
        after[weight][7] *= -0.5
        after[bias][7] += 0.25
        edits = make_edits({name: before[name] for name in after}, after, units=dict.fromkeys(after, "layer2.0.conv1"))
        write_json("edits.json", edits)
        fresh = Residual()
        fresh.load_state_dict(torch.load("m.pt"))
        report = str(patch_state_dict(fresh, "edits.json"))
        self.assertIn("layer2.0.conv1.weight[7]", report)
        export(fresh, [self.x], "patched.onnx")
        again = initializers("patched.onnx")
        self.assertEqual(list(again), list(before))
        for name, values in before.items():
            numpy.testing.assert_allclose(again[name], after.get(name, values), atol=1e-5)
        untouched = {k: v for k, v in self.network.state_dict().items() if not k.startswith("layer2.0.")}
        for key, value in untouched.items():
            self.assertTrue(torch.equal(fresh.state_dict()[key], value), key)
        data = "images:cifar/test,scale=1/255,mean=0.4914:0.4822:0.4465,std=0.247:0.2435:0.2616"
        flips = self.json("compare", "m.onnx", "patched.onnx", "--data", data)
        self.assertGreater(flips["fixed"] + flips["broken"], 0)
        patched = accuracy(fresh, [self.x], self.labels)
        self.assertAlmostEqual(flips["after"]["accuracy"]["value"], patched, delta=0.002)
        self.assertAlmostEqual(flips["before"]["accuracy"]["value"], self.accuracy, delta=0.002)


class B_ChannelsLast(Walk):
    """N×H×W×C, softmax at the end, classes in the order of training, folders in that of the alphabet."""
    classes = ["ship", "cat", "truck", "airplane", "frog", "dog"]

    @classmethod
    def make(cls):
        names = cifar_names()

        def part(split):
            pixels, labels = cifar(split)
            mine = numpy.array([cls.classes.index(names[l]) if names[l] in cls.classes else -1 for l in labels])
            return pixels[mine >= 0], mine[mine >= 0]
        (pixels, labels), (test, cls.labels) = part("train"), part("test")
        write_images("val", test, cls.labels, cls.classes)
        torch.manual_seed(1)
        last = lambda p: (normalised(p) * 2 - 1).permute(0, 2, 3, 1).contiguous()
        cls.x = last(test)
        cls.network = train(ChannelsLast(6), [last(pixels)], labels, 4, 3e-3)
        cls.network.softmax = nn.Softmax(1)
        cls.accuracy = accuracy(cls.network, [cls.x], cls.labels)
        export(cls.network, [cls.x], "m.onnx", names=["image_input"], outputs=["probabilities"], free=True)

    def test_1_init_and_check_name_the_order_of_classes(self):
        place = self.elsewhere("m.onnx")
        toml = os.path.join(place, "netmend.toml")
        data = f'model.file = "m.onnx"\ndata.test = "images:{self.folder}/val"\n'
        scaled = 'input.image_input = { scale = "1/255", mean = [0.5, 0.5, 0.5], std = [0.5, 0.5, 0.5] }\n'
        write(toml, data + scaled)
        said = self.ok("check", code=1, cwd=place).stdout
        found = self.finding(self.json("check", code=1, cwd=place))
        self.assertEqual(found["id"].split(":")[0], "class-order")
        self.assertEqual(found["toml"], "classes = [{}]".format(", ".join(f'"{name}"' for name in self.classes)))
        self.assertIn(found["toml"], said)
        write(toml, data + scaled + found["toml"] + "\n")
        result = self.json("check", cwd=place)
        self.assertAlmostEqual(result["metric"]["value"], self.accuracy, delta=0.005)
        self.assertEqual([row["class"] for row in result["result"]["per_class"]], self.classes)

    def test_2_from_nothing_both_the_scale_and_the_order_are_found(self):
        place = self.elsewhere("m.onnx")
        os.symlink(os.path.abspath("val"), os.path.join(place, "val"))
        self.ok("init", "m.onnx", "--data", "images:val", cwd=place)
        result = self.json("check", cwd=place)
        self.assertAlmostEqual(result["metric"]["value"], self.accuracy, delta=0.015)
        text = read(os.path.join(place, "netmend.toml"))
        self.assertIn('"probabilities"', text)
        self.assertIn("NHWC", text)

    def test_3_names_beside_the_model_settle_it(self):
        place = self.elsewhere("m.onnx")
        os.symlink(os.path.abspath("val"), os.path.join(place, "val"))
        write(os.path.join(place, "labels.txt"), "\n".join(self.classes) + "\n")
        self.ok("init", "m.onnx", "--data", "images:val", cwd=place)
        self.assertRegex(read(os.path.join(place, "netmend.toml")), r'classes = \["ship".*# labels.txt')
        self.assertAlmostEqual(self.json("check", cwd=place)["metric"]["value"], self.accuracy, delta=0.015)

    def test_4_info_names_the_axes_and_units_are_channels(self):
        self.assertRegex(self.ok("info", "m.onnx").stdout, r"N×H×W×C")
        info = self.json("info", "m.onnx")
        self.assertEqual([layer["units"] for layer in info["layers"]], [16, 32, 32, 6])


class C_Text(Walk):
    """A transformer with ids and mask; what its tokenizer made is handed over by save_data."""

    @classmethod
    def make(cls):
        texts = sentences()
        cls.words = Vocabulary(texts["train"][0])
        ids, mask = padded([cls.words.ids(text) for text in texts["train"][0]])
        torch.manual_seed(2)
        cls.network = Reader(len(cls.words.words))
        for table in (cls.network.words, cls.network.places):
            nn.init.normal_(table.weight, std=0.05)
        train(cls.network, [ids, mask], texts["train"][1], 2, 4e-3)
        cls.texts, cls.labels = texts["test"]
        cls.rows = [cls.words.ids(text) for text in cls.texts]
        cls.inputs = padded(cls.rows)
        cls.accuracy = accuracy(cls.network, cls.inputs, cls.labels)
        export(cls.network, cls.inputs, "m.onnx", ["input_ids", "attention_mask"], ["logits"], free=True)
        batches = []
        for at in range(0, len(cls.rows), 64):
            part = cls.rows[at:at + 64]
            mask = [numpy.ones_like(row) for row in part]
            batches.append(({"input_ids": part, "attention_mask": mask}, cls.labels[at:at + 64]))
        cls.batches = batches
        save_data(batches, "test.data", classes=["negative", "positive"], display=cls.texts,
                  ids=[f"review-{i}" for i in range(len(cls.texts))])

    def test_1_init_check_eval(self):
        place = self.elsewhere("m.onnx")
        shutil.copytree("test.data", os.path.join(place, "test.data"))
        self.ok("init", "m.onnx", "--data", "saved:test.data", cwd=place)
        text = read(os.path.join(place, "netmend.toml"))
        self.assertIn('"negative", "positive"', text)
        self.assertAlmostEqual(self.json("check", cwd=place)["metric"]["value"], self.accuracy, delta=0.002)
        result = self.json("eval", "--units", "--out", "run", cwd=place)
        self.assertAlmostEqual(result["accuracy"], self.accuracy, delta=0.002)
        rows = read_csv(os.path.join(place, "run", "samples.csv"))
        self.assertEqual(len(rows), len(self.texts))
        self.assertEqual(rows[5]["id"], "review-5")
        units = read_csv(os.path.join(place, "run", "units.csv"))
        self.assertGreater(len(units), 64)
        self.assertTrue(all(float(unit["not_finite"]) == 0 for unit in units))

    def test_2_padding_does_not_count_in_a_units_mean(self):
        """What a unit gives for a text is its mean over the text's own tokens."""
        self.json("eval", "m.onnx", "--data", "saved:test.data", "--units", "--out", "run")
        units = {row["unit"]: row for row in read_csv("run/units.csv")}
        inside = {}

        def keep(module, given, output):
            inside["linear1"] = nn.functional.gelu(output.detach())
        hook = self.network.encoder.layers[0].linear1.register_forward_hook(keep)
        means = []
        with torch.set_grad_enabled(True):  # so PyTorch takes the path that calls the layers
            for ids, mask in zip(*[x.split(200) for x in self.inputs]):
                self.network(ids, mask)
                weight = mask.unsqueeze(2).float()
                means.append((inside["linear1"] * weight).sum(1) / weight.sum(1))
        hook.remove()
        found = [float(row["mean"]) for name, row in units.items() if "linear1" in name]
        self.assertEqual(len(found), 64, list(units)[:200:8])
        numpy.testing.assert_allclose(found, torch.cat(means).mean(0).numpy(), atol=1e-4)

    def test_3_texts_are_shown_as_texts(self):
        said = self.ok("data", "saved:test.data")
        self.assertIn(self.texts[0][:30], said.stdout)

    def test_4_the_reference_agrees(self):
        save_data.reference(self.network, self.batches, "ref.npz", n=64, outputs=["logits"])
        self.ok("match", "m.onnx", "--reference", "ref.npz", "--data", "saved:test.data")


class D_Table(Walk):
    """Adult, one sigmoid, groups that are kept aside."""
    columns = [name for name in ADULT[:14] if name not in ("sex", "race")]

    @classmethod
    def make(cls):
        rows = {split: adult_rows(split) for split in ("train", "test")}
        for split in rows:
            write_csv(f"adult-{split}.csv", ADULT, *rows[split])
        cls.labels = adult_labels(rows["test"])
        cls.test = rows["test"]
        code = Encoding(rows["train"], cls.columns)
        cls.x = code(rows["test"])
        torch.manual_seed(3)
        cls.network = perceptron(cls.x.shape[1], 32, 1)
        train(cls.network, [code(rows["train"])], adult_labels(rows["train"]), 2, 3e-3, batch=128, binary=True)
        cls.network = nn.Sequential(*cls.network, nn.Sigmoid())
        cls.accuracy = accuracy(cls.network, [cls.x], cls.labels, binary="probability")
        export(cls.network, [cls.x], "risk.onnx", outputs=["risk"], free=True)
        cls.data = "csv:adult-test.csv,label=income,train=adult-train.csv,groups=sex:race,standardize=yes"

    def test_1_init_and_check(self):
        place = self.elsewhere("risk.onnx", "adult-test.csv", "adult-train.csv")
        self.ok("init", "risk.onnx", "--data", self.data, cwd=place)
        self.assertIn('"binary"', read(os.path.join(place, "netmend.toml")))
        self.assertAlmostEqual(self.json("check", cwd=place)["metric"]["value"], self.accuracy, delta=0.002)

    def test_2_groups_have_rates_and_intervals(self):
        result = self.json("eval", "risk.onnx", "--data", self.data)
        self.assertEqual(result["task"], "binary")
        groups = {(group["column"], group["value"]): group for group in result["groups"]}
        sex = numpy.array([row[9] for row in self.test])
        called = (answers(self.network, [self.x])[:, 0] > 0.5).numpy()
        for value in ("Female", "Male"):
            group, mine = groups["sex", value], sex == value
            self.assertEqual(group["samples"], mine.sum())
            for key, part in (("selection_rate", called[mine]),
                              ("true_positive_rate", called[mine & (self.labels == 1)]),
                              ("false_positive_rate", called[mine & (self.labels == 0)])):
                self.assertAlmostEqual(group[key]["value"], part.mean(), delta=0.002)
                self.assertLess(group[key]["low"], group[key]["value"])
                self.assertGreater(group[key]["high"], group[key]["value"])
        self.assertEqual(len([key for key in groups if key[0] == "race"]), 5)

    def test_3_another_metric_by_netmend_toml(self):
        place = self.elsewhere("risk.onnx", "adult-test.csv", "adult-train.csv")
        scores = answers(self.network, [self.x])[:, 0].numpy().astype(float)
        called = scores > 0.5
        hits = (called & (self.labels == 1)).sum()
        f1 = 2 * hits / (called.sum() + self.labels.sum())
        order = scores.argsort(kind="stable")
        ranks = numpy.empty(len(scores))
        ranks[order] = numpy.arange(1, len(scores) + 1)
        for value in numpy.unique(scores[order][1:][scores[order][1:] == scores[order][:-1]]):
            ranks[scores == value] = ranks[scores == value].mean()
        ones = self.labels.sum()
        auc = (ranks[self.labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(scores) - ones))
        for metric, right in (("f1", f1), ("auc", auc)):
            write(os.path.join(place, "netmend.toml"), 
                f'model.file = "risk.onnx"\ndata.test = "{self.data}"\ngoal.metric = "{metric}"\n')
            result = self.json("check", cwd=place)
            self.assertEqual(result["metric"]["name"], metric)
            self.assertAlmostEqual(result["metric"]["value"], right, delta=0.003)
            self.assertLess(result["metric"]["low"], right)

    def test_4_a_wrong_expectation_blocks_a_right_one_does_not(self):
        place = self.elsewhere("risk.onnx", "adult-test.csv", "adult-train.csv")
        toml = os.path.join(place, "netmend.toml")
        text = f'model.file = "risk.onnx"\ndata.test = "{self.data}"\n'
        write(toml, text + "goal.expect = 0.97\n")
        found = self.finding(self.json("check", code=1, cwd=place))
        self.assertEqual(found["id"].split(":")[0], "expectation")
        write(toml, text + f"goal.expect = {self.accuracy:.3f}\n")
        self.assertIn("as expected", self.ok("check", cwd=place).stdout)

    def test_5_the_built_in_reader_and_columns_too_many(self):
        self.ok("check", "risk.onnx", "--data", "adult,drop=sex:race")
        done = self.ok("check", "risk.onnx", "--data", "adult", code=2)
        for word in (str(self.x.shape[1]), "108", "occupation"):  # both widths, and what the columns are
            self.assertIn(word, done.stderr)

    def test_6_an_expectation_is_judged_by_all_inputs_and_by_its_metric(self):
        """2.5 points are far outside of the interval of 16,281 inputs, though not of that of a few hundred."""
        place = self.elsewhere("risk.onnx", "adult-test.csv", "adult-train.csv")
        toml = os.path.join(place, "netmend.toml")
        text = f'model.file = "risk.onnx"\ndata.test = "{self.data}"\n'
        for wrong in (f"goal.expect = {self.accuracy + 0.025:.3f}", 'goal = { metric = "f1", expect = 0.55 }'):
            write(toml, text + wrong + "\n")
            found = self.finding(self.json("check", code=1, cwd=place))
            self.assertEqual(found["id"].split(":")[0], "expectation")


class E_Retrained(Walk):
    """Two trainings of one network: what got fixed, what got broken, whatever the reference is kept in."""

    @classmethod
    def make(cls):
        (pixels, labels), (test, cls.labels) = idx("fashion-mnist", "train", 6000), idx("fashion-mnist", "test", 2000)
        cls.x = normalised(test)
        cls.networks = []
        for seed, name in ((1, "old.onnx"), (2, "new.onnx")):
            torch.manual_seed(seed)
            cls.networks.append(train(Lenet(), [normalised(pixels)], labels, 1, 4e-3, seed=seed))
            export(cls.networks[-1], [cls.x], name)
        names = [f"item-{i}" for i in range(2000)]
        every = [(cls.x[at:at + 500], cls.labels[at:at + 500]) for at in range(0, 2000, 500)]
        save_data(every, "test.data", ids=names)
        save_data([(cls.x[500:1500], cls.labels[500:1500])], "part.data", ids=names[500:1500])
        cls.right = [(answers(network, [cls.x]).argmax(1).numpy() == cls.labels) for network in cls.networks]

    def counts(self, result):
        keys = ("class", "samples", "before", "after", "fixed", "broken")
        return ([result[key] for key in ("inputs", "fixed", "broken", "net")],
                [[row[key] for key in keys] for row in result["per_class"]])

    def test_1_three_kinds_of_reference_tell_the_same(self):
        models = self.json("compare", "old.onnx", "new.onnx", "--data", "saved:test.data")
        old, new = self.right
        self.assertAlmostEqual(models["fixed"], (~old & new).sum(), delta=2)
        self.assertAlmostEqual(models["broken"], (old & ~new).sum(), delta=2)
        self.json("eval", "old.onnx", "--data", "saved:test.data", "--out", "old-run")
        run = self.json("compare", "old-run", "new.onnx", "--data", "saved:test.data")
        self.ok("compare", "old.onnx", "old.onnx", "--data", "saved:test.data", "-o", "baseline.json")
        kept = self.json("compare", "baseline.json", "new.onnx", "--data", "saved:test.data")
        self.assertEqual(self.counts(run), self.counts(models))
        self.assertEqual(self.counts(kept), self.counts(models))
        self.assertLess(os.path.getsize("baseline.json"), 100000)
        self.assertIn(" fixes (", self.ok("compare", "old.onnx", "new.onnx", "--data", "saved:test.data").stdout)

    def test_2_other_data_is_refused_unless_common_inputs_are_meant(self):
        self.json("eval", "old.onnx", "--data", "saved:test.data", "--out", "whole-run")
        refused = self.ok("compare", "whole-run", "new.onnx", "--data", "saved:part.data", code=2)
        self.assertIn("--common", refused.stderr)
        common = self.json("compare", "whole-run", "new.onnx", "--data", "saved:part.data", "--common")
        old, new = (right[500:1500] for right in self.right)
        self.assertEqual(common["inputs"], 1000)
        self.assertAlmostEqual(common["fixed"], (~old & new).sum(), delta=2)
        self.assertAlmostEqual(common["broken"], (old & ~new).sum(), delta=2)
        self.ok("compare", "old.onnx", "old.onnx", "--data", "saved:part.data", "-o", "part.json")
        wider = self.json("compare", "part.json", "new.onnx", "--data", "saved:test.data", "--common")
        for key in ("inputs", "fixed", "broken"):
            self.assertEqual(wider[key], common[key], key)
        self.assertEqual(wider["missing"], 1000)

    def test_3_layers_and_units_have_the_same_names(self):
        layers = [[(layer["name"], layer["units"]) for layer in self.json("info", name)["layers"]]
                  for name in ("old.onnx", "new.onnx")]
        self.assertEqual(layers[0], layers[1])
        self.assertEqual([name for name, _ in layers[0]], ["conv1", "conv2", "fc1", "fc2"])
        units = []
        for name in ("old.onnx", "new.onnx"):
            self.json("eval", name, "--data", "saved:part.data", "--units", "--out", "units-" + name)
            units.append([row["unit"] for row in read_csv(f"units-{name}/units.csv")])
        self.assertEqual(units[0], units[1])


if __name__ == "__main__":
    main(slow=True)
