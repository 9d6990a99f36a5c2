"""netmend apply, diff and weights as a user runs them, and the way home: edits.json into the module that was exported.

usage: edits_test.py NETMEND
"""
import os, sys, warnings

import shell
from shell import PYTHON, lacking, main, need, needs, read_bytes, read_json, write, write_json

need("numpy")
import numpy

if not lacking("torch"):
    import torch
    from torch import nn

    sys.path.insert(0, PYTHON)
    from netmend import patch_state_dict

    warnings.filterwarnings("ignore")


class Case(shell.Case):
    def weights(self, model):
        self.ok("weights", model, "-o", "weights.npz")
        with numpy.load("weights.npz") as file:
            return {name: file[name] for name in file.files}

    def change(self, model, product, changes):
        """Applies {parameter: function of its array} as edits along axis 0, written by hand."""
        edits = []
        for name, before in self.weights(model).items():
            after = changes[name](before.copy()) if name in changes else before
            for index in range(len(before) if name in changes else 0):
                if not numpy.array_equal(before[index], after[index]):
                    edits.append({"parameter": name, "axis": 0, "index": index,
                                  "before": before[index].ravel().tolist(), "after": after[index].ravel().tolist()})
        write_json("by_hand.json", {"edits": edits})
        self.ok("apply", model, "by_hand.json", "-o", product)


class Apply(Case):
    def setUp(self):
        super().setUp()
        self.ok("lab", "new", "lenet1", "-o", "a.onnx", "--seed", 3)

    def repaired(self):
        """b.onnx is a.onnx with two filters of conv2 deleted, edits.json leads there."""
        def clear(w):
            w[[2, 5]] = 0
            return w
        self.change("a.onnx", "b.onnx", {"conv2.weight": clear})
        self.ok("diff", "a.onnx", "b.onnx", "-o", "edits.json")

    def test_an_empty_list_copies_the_file(self):
        write("none.json", '{"edits": []}')
        for flags in ([], ["--revert"]):
            self.ok("apply", "a.onnx", "none.json", "-o", "copy.onnx", *flags)
            self.assertEqual(read_bytes("a.onnx"), read_bytes("copy.onnx"))

    def test_there_and_back(self):
        self.repaired()
        said = self.json("apply", "a.onnx", "edits.json", "-o", "c.onnx")
        self.assertEqual((said["edits"], said["units"], said["reverted"]), (2, ["conv2/2", "conv2/5"], False))
        self.assertEqual(read_bytes("b.onnx"), read_bytes("c.onnx"))
        self.assertNotEqual(read_bytes("a.onnx"), read_bytes("c.onnx"))
        self.ok("apply", "c.onnx", "edits.json", "--revert", "-o", "d.onnx")
        self.assertEqual(read_bytes("a.onnx"), read_bytes("d.onnx"))

    def test_the_model_itself_is_no_product(self):
        self.repaired()
        before = read_bytes("a.onnx")
        self.refused("apply", "a.onnx", "edits.json", "-o", "a.onnx", words=["a.onnx is an input of this command"])
        self.assertEqual(read_bytes("a.onnx"), before)

    def test_another_model_is_refused(self):
        self.repaired()
        self.ok("lab", "new", "lenet1", "-o", "other.onnx", "--seed", 4)
        edits = ("edits.json", "-o", "x.onnx")
        self.refused("apply", "other.onnx", *edits, words=["was made for a.onnx with checksum", "other.onnx has"])
        self.refused("apply", "b.onnx", *edits, words=["checksum"])
        self.refused("apply", "a.onnx", *edits, "--revert", words=["conv2/5", "value 0 is", "already holds"])
        nameless = read_json("edits.json")
        del nameless["model"]
        write_json("edits.json", nameless)
        self.refused("apply", "other.onnx", *edits,
                     words=["conv2.weight, slice 2 of axis 0 (unit conv2/2)", "the edit expects"])
        self.ok("lab", "new", "lenet5", "-o", "wider.onnx")
        self.refused("apply", "wider.onnx", *edits,
                     words=["conv2.weight is 16×6×5×5 in this model and 12×4×5×5 in the edits"])
        self.assertFalse(os.path.exists("x.onnx"))

    def test_broken_files_are_refused(self):
        bias = lambda after, index=0: ('{"edits": [{"parameter": "conv2.bias", "axis": 0, "index": %d, "before": [0], '
                                       '"after": [%s]}]}' % (index, after))
        for text, words in (("", ["is not JSON"]), ("[]", ["expected an object"]),
                            ('{"edits": [{}]}', ["`edits[0].parameter` is missing"]),
                            (bias(0).replace("conv2.bias", "conv2.wieght"), ["did you mean conv2.weight?"]),
                            (bias(0, index=99), ["no such slice"]), (bias("1e99"), ["too large for float32"]),
                            (bias("NaN"), ["is not JSON"])):
            write("bad.json", text)
            self.refused("apply", "a.onnx", "bad.json", "-o", "x.onnx", words=words)
        self.refused("apply", "a.onnx", "missing.json", "-o", "x.onnx", words=["missing.json"])


class Diff(Case):
    def setUp(self):
        super().setUp()
        self.ok("lab", "new", "lenet1", "-o", "a.onnx", "--seed", 3)

    def test_of_a_model_and_itself(self):
        self.assertIn("no weight differs", self.ok("diff", "a.onnx", "a.onnx", "-o", "none.json").stdout)
        self.ok("apply", "a.onnx", "none.json", "-o", "b.onnx")
        self.assertEqual(read_bytes("a.onnx"), read_bytes("b.onnx"))

    def test_of_a_repaired_model(self):
        def scale(w):
            w[1] *= 3
            return w
        def shift(b):
            b[7] += 0.25
            return b
        self.change("a.onnx", "b.onnx", {"conv1.weight": scale, "fc1.bias": shift})
        found = self.json("diff", "a.onnx", "b.onnx")
        self.assertEqual([u["name"] for u in found["units"]], ["conv1/1", "fc1/7"])
        # From 0, then by share.
        self.assertEqual([p["name"] for p in found["parameters"]], ["fc1.bias", "conv1.weight"])
        self.assertEqual([(l["name"], l["units_changed"]) for l in found["layers"]], [("conv1", 1), ("fc1", 1)])
        unit = found["units"][0]
        self.assertEqual((unit["changed"], unit["values"]), (25, 26))
        self.assertAlmostEqual(unit["relative"], 2, places=4)
        self.assertEqual(found["units"][1]["largest"], 0.25)
        self.assertEqual(found["total"]["changed"], 26)
        text = self.ok("diff", "a.onnx", "b.onnx").stdout
        self.assertIn("26 of", text)
        self.assertIn("conv1/1", text)

    def test_other_structures_are_refused(self):
        self.ok("lab", "new", "lenet5", "-o", "b.onnx")
        self.refused("diff", "a.onnx", "b.onnx", words=["differ in more than their weights", "netmend compare"])
        self.ok("lab", "new", "cnn1", "-o", "c.onnx")
        self.refused("diff", "a.onnx", "c.onnx", words=["operators and"])


class Weights(Case):
    def test_all_parameters_by_name(self):
        self.ok("lab", "new", "resnet20", "-o", "a.onnx")
        found = self.weights("a.onnx")
        self.assertEqual(found["conv1.weight"].shape, (16, 3, 3, 3))
        self.assertEqual(found["conv1.weight"].dtype, numpy.float32)
        self.assertTrue(any("mean" in name for name in found), list(found)[:9])


def network():
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)
            self.hidden, self.head = nn.Linear(6 * 16, 9), nn.Linear(9, 4)

        def forward(self, x):
            return self.head(torch.relu(self.hidden(torch.relu(self.norm(self.conv(x))).flatten(1))))

    torch.manual_seed(5)
    net = Small()
    net.norm.running_mean.uniform_(-0.2, 0.2), net.norm.running_var.uniform_(0.5, 1.5)
    nn.init.uniform_(net.norm.weight, 0.5, 1.5), nn.init.uniform_(net.norm.bias, -0.2, 0.2)
    return net.eval()


def export(net, file, fold):
    mode = torch.onnx.TrainingMode
    torch.onnx.export(net, torch.zeros(1, 3, 6, 6), file, input_names=["x"], output_names=["y"],
                      do_constant_folding=fold, training=mode.EVAL if fold else mode.PRESERVE)


@needs("torch")
class TheWayHome(Case):
    def run_model(self, model):
        self.ok("lab", "run", model, "--input", "x=x.npy", "--out", "out")
        return numpy.load("out/y.npy")

    def check(self, fold):
        net = network()
        export(net, "a.onnx", fold)
        numpy.save("x.npy", numpy.random.RandomState(1).randn(1, 3, 6, 6).astype("f4"))
        names = self.weights("a.onnx")
        conv = next(name for name, value in names.items() if value.shape == (6, 3, 3, 3))
        shift = next(name for name, value in names.items() if value.shape == (6,) and (fold or name == "norm.bias"))

        def scale(w):
            w[-2] *= -1.5
            return w

        def clear(w):
            w[2] = 0
            return w
        self.change("a.onnx", "b.onnx", {conv: scale, shift: scale, "hidden.weight": clear, "head.bias": scale})
        self.ok("diff", "a.onnx", "b.onnx", "-o", "edits.json")
        report = patch_state_dict(net, "edits.json")
        self.assertEqual((len(report.placed), len(report.not_placed)), (4, 0), report)
        export(net, "c.onnx", fold)
        before, edited, home = (self.run_model(m) for m in ("a.onnx", "b.onnx", "c.onnx"))
        self.assertGreater(numpy.abs(before - edited).max(), 1e-3)
        numpy.testing.assert_allclose(home, edited, rtol=1e-5, atol=1e-6)
        with torch.no_grad():
            own = net(torch.from_numpy(numpy.load("x.npy"))).numpy()
        numpy.testing.assert_allclose(own, edited, rtol=1e-5, atol=1e-6)
        found = self.json("diff", "b.onnx", "c.onnx")
        self.assertLess(found["total"]["relative"], 1e-6)

    def test_with_batch_norm_folded_away(self):
        self.check(True)

    def test_with_batch_norm_in_the_file(self):
        self.check(False)

    def test_units_are_named(self):
        export(network(), "a.onnx", True)
        self.change("a.onnx", "b.onnx", {"hidden.weight": lambda w: numpy.concatenate([w[:3], w[3:4] * 2, w[4:]])})
        self.assertEqual([u["name"] for u in self.json("diff", "a.onnx", "b.onnx")["units"]], ["hidden/3"])

    def test_half_precision(self):
        class Half(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.arange(1, 21).reshape(5, 4).half() / 7)

            def forward(self, x):
                return x @ self.weight.float()

        torch.onnx.export(Half(), torch.zeros(1, 5), "a.onnx", input_names=["x"], output_names=["y"],
                          do_constant_folding=False)
        numpy.save("x.npy", numpy.ones((1, 5), "f4"))
        [(name, before)] = [(name, value) for name, value in self.weights("a.onnx").items() if value.ndim == 2]
        self.assertEqual(before.dtype, numpy.float16)
        edit = {"parameter": name, "axis": 1, "index": 2, "before": before[:, 2].tolist(), "after": [0.1] * 5}
        write_json("edits.json", {"edits": [edit]})
        self.ok("apply", "a.onnx", "edits.json", "-o", "b.onnx")
        after = self.weights("b.onnx")[name]
        numpy.testing.assert_array_equal(after[:, 2], numpy.float16([0.1] * 5))
        numpy.testing.assert_array_equal(numpy.delete(after, 2, 1), numpy.delete(before, 2, 1))
        [unit] = self.json("diff", "a.onnx", "b.onnx", "-o", "again.json")["units"]
        self.assertTrue(unit["name"].endswith("/2"), unit)
        self.assertAlmostEqual(float(self.run_model("b.onnx")[0, 2]), 5 * float(numpy.float16(0.1)), places=5)
        self.ok("apply", "b.onnx", "again.json", "--revert", "-o", "c.onnx")
        numpy.testing.assert_array_equal(self.weights("c.onnx")[name], before)
        write_json("edits.json", {"edits": [{**edit, "after": [1e5] * 5}]})
        self.refused("apply", "a.onnx", "edits.json", "-o", "x.onnx", words=["100000 is too large for float16"])


if __name__ == "__main__":
    main()
