import json
import os
import tempfile
import unittest

import numpy as np

from netmend import RecorderError, save_data
from tests.support import needs_torch, tensorflow, torch


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.file = os.path.join(self.scratch.name, "reference.npz")
        self.rng = np.random.default_rng(5)

    def record(self, model, loader, **options):
        self.result = save_data.reference(model, loader, self.file, **options)
        with np.load(self.file) as archive:
            found = {name: archive[name] for name in archive.files}
        meta = json.loads(found.pop("meta.bytes").tobytes().decode())
        self.assertEqual((meta["format"], meta["version"]), ("netmend-reference", 1))
        for kind in ("input", "output", "layer"):
            names = meta[kind + "s"]
            self.assertEqual({kind + "." + n for n in names}, {n for n in found if n.startswith(kind + ".")})
            for name in names:
                self.assertEqual(len(found[kind + "." + name]), len(meta["samples"]))
        self.meta = meta
        return found


class Plain(Case):
    def test_a_function(self):
        x = self.rng.random((100, 3))
        found = self.record(lambda v: {"sum": v.sum(1), "all": v.sum()}, [(x[:30], None), (x[30:], None)], n=70)
        np.testing.assert_array_equal(found["input.input"], x[:70])
        np.testing.assert_allclose(found["output.sum"], x[:70].sum(1))
        self.assertEqual(self.meta["samples"], list(range(70)))
        self.assertIn("output all", str(self.result))
        self.assertIn("plain callable", str(self.result))

    def test_every_number_of_samples(self):
        x = self.rng.random((40, 2))
        for n in list(range(1, 40)):
            found = self.record(lambda v: v * 2, [(x, None)], n=n)
            np.testing.assert_array_equal(found["output.output"], x[:n] * 2)

    def test_lengths_are_padded(self):
        rows = [{"ids": [1] * n, "mask": [1] * n, "label": 0} for n in (2, 5, 3)]
        found = self.record(lambda ids, mask: ids.sum(1) + 10 * mask.sum(1), rows)
        np.testing.assert_array_equal(found["output.output"], [22, 55, 33])
        self.assertEqual(found["input.ids"].shape, (3, 5))

    def test_mistakes(self):
        for model, options, part in ((5, {}, "not a model"), (lambda x: 1, {}, "one row per sample"),
                                     (lambda x: x, {"n": 0}, "n=0"), (lambda a, b: a, {}, "inputs="),
                                     (lambda x: x, {"outputs": ["a", "b"]}, "names 2 outputs")):
            with self.assertRaises(RecorderError) as caught:
                save_data.reference(model, [(np.ones((2, 3)), None)], self.file, **options)
            self.assertIn(part, str(caught.exception))
        self.assertFalse(os.path.exists(self.file))


@needs_torch
class Torch(Case):
    def test_hooks_modes_and_in_place_layers(self):
        nn = torch.nn
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Flatten(), nn.Linear(16, 2))
        net[3].eval()
        x = torch.randn(40, 3, 4, 4)
        modes = [m.training for m in net.modules()]
        found = self.record(net, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, torch.zeros(40)), batch_size=7), n=33)
        self.assertEqual([m.training for m in net.modules()], modes)
        self.assertTrue(all(not m._forward_hooks and not m._forward_pre_hooks for m in net.modules()))
        self.assertEqual(self.meta["layers"], ["0", "1", "2", "3", "4", "5"])
        net.eval()
        with torch.no_grad():
            value = x[:33]
            np.testing.assert_array_equal(found["input.input"], value.numpy())
            for i, layer in enumerate(net):
                value = layer(value).clone()
                if i == 1:  # before the next layer wrote over it
                    self.assertLess(found["layer.1"].min(), 0)
                np.testing.assert_allclose(found["layer.%d" % i], value.numpy(), atol=1e-5)
        np.testing.assert_allclose(found["output.output"], value.numpy(), atol=1e-5)

    def test_nothing_stays_after_a_failure(self):
        class Fails(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(3, 3)

            def forward(self, x):
                self.inner(x)
                raise RuntimeError("out of luck")

        net = Fails()
        with self.assertRaises(RecorderError) as caught:
            save_data.reference(net, [(np.ones((4, 3), "f4"), None)], self.file)
        self.assertIn("out of luck", str(caught.exception))
        self.assertTrue(net.training and net.inner.training and not net.inner._forward_hooks and not net.inner._forward_pre_hooks)

    def test_tuples_repeats_and_several_inputs_and_outputs(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = torch.nn.LSTM(4, 5, batch_first=True)
                self.time_first = torch.nn.LSTM(4, 5)
                self.attention = torch.nn.MultiheadAttention(5, 1, batch_first=True)
                self.block = torch.nn.ModuleDict({"act": torch.nn.Tanh()})

            def forward(self, left, right):
                h, _ = self.rnn(left)
                t, _ = self.time_first(left.transpose(0, 1))
                a, w = self.attention(h, h, h)
                return self.block["act"](a), (self.block["act"](right), None, t.sum())

        left, right = torch.randn(20, 6, 4), torch.randn(20, 3)
        net = Net().eval()
        found = self.record(net, [((left, right), None)], outputs=["a", "b"], inputs=["left", "right"])
        self.assertEqual(self.meta["layers"], ["rnn", "attention", "block.act", "block.act:2"])
        self.assertIn("layer time_first", str(self.result))
        self.assertIn("only the first", str(self.result))
        with torch.no_grad():
            answer = net(left, right)
            np.testing.assert_allclose(found["layer.rnn"], net.rnn(left)[0].numpy(), atol=1e-6)
        np.testing.assert_allclose(found["output.a"], answer[0].numpy(), atol=1e-6)
        np.testing.assert_allclose(found["output.b"], answer[1][0].numpy(), atol=1e-6)
        np.testing.assert_allclose(found["layer.block.act:2"], found["output.b"])
        found = self.record(net, [({"right": right, "left": left}, None)], layers=False)
        self.assertEqual(self.meta["layers"], [])
        np.testing.assert_allclose(found["output.output0"], answer[0].numpy(), atol=1e-6)

    def test_fused_layers_and_limits(self):
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        net = torch.nn.Sequential(layer, torch.nn.Linear(8, 2))
        x = torch.randn(9, 5, 8)
        found = self.record(net, [(x, None)])
        self.assertIn("1", self.meta["layers"])
        with torch.no_grad():
            np.testing.assert_allclose(found["output.output"], net.eval()(x).numpy(), atol=1e-5)
        self.record(net, [(x, None)], layer_bytes=9 * 5 * 8 * 4)
        self.assertIn("layer_bytes", str(self.result))

    def test_ways_that_only_some_samples_take(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.always, self.rarely = torch.nn.Linear(1, 1), torch.nn.Tanh()

            def forward(self, x):
                x = self.always(x) * 0 + x
                return self.rarely(x) if x.sum() > 50 else x

        self.record(Net(), [(torch.arange(12.0)[:, None], None)])
        self.assertEqual(self.meta["layers"], ["always"])
        self.assertIn("not all samples", str(self.result))

    def test_single_layer_and_compiled_by_torchscript(self):
        found = self.record(torch.nn.Linear(3, 2), [(np.ones((4, 3), "f4"), None)])
        np.testing.assert_array_equal(found["layer.Linear"], found["output.output"])
        scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()))
        self.assertEqual(self.record(scripted, [(np.ones((4, 3), "f4"), None)])["output.output"].shape, (4, 2))


class Keras(Case):
    def setUp(self):
        self.tf, self.keras = tensorflow()
        super().setUp()

    def test_functional_with_repeats_and_models_within(self):
        k = self.keras
        inner = k.Sequential([k.Input((4,)), k.layers.Dense(4, name="deep")], name="inner")
        a, b = k.Input((6, 4), name="a"), k.Input((4,), name="b")
        shared = k.layers.Dense(4, activation="relu", name="shared")
        h = k.layers.LSTM(4, name="lstm")(a)
        h = k.layers.BatchNormalization(name="norm")(shared(shared(h)))
        out = k.layers.Add(name="sum")([inner(h), b])
        model = k.Model([a, b], [out, k.layers.Dense(2, name="head")(out)])
        x = self.rng.random((21, 6, 4)).astype("f4"), self.rng.random((21, 4)).astype("f4")
        found = self.record(model, self.tf.data.Dataset.from_tensor_slices((x, np.zeros(21))).batch(5), inputs=["a", "b"])
        self.assertEqual(sorted(self.meta["layers"]), sorted(["lstm", "shared", "shared:2", "norm", "inner/deep", "sum", "head"]))
        part = k.Model(model.inputs, [model.get_layer("lstm").output, model.get_layer("norm").output])
        for name, value in zip(("lstm", "norm"), part(list(x), training=False)):
            np.testing.assert_allclose(found["layer." + name], value.numpy(), atol=1e-5)
        answer = model(list(x), training=False)
        for i in range(2):
            np.testing.assert_allclose(found["output.output%d" % i], answer[i].numpy(), atol=1e-5)
        self.assertTrue(all("call" not in vars(layer) for layer in model.layers))
        found = self.record(model, [({"a": x[0], "b": x[1]}, None)])
        np.testing.assert_allclose(found["output.output1"], answer[1].numpy(), atol=1e-5)

    def test_sequential_and_subclassed(self):
        k = self.keras

        class Own(k.Model):
            def __init__(self):
                super().__init__()
                self.one, self.two = k.layers.Conv2D(3, 2, name="one"), k.layers.GlobalAveragePooling2D(name="two")

            def call(self, x):
                return self.two(self.one(x))

        x = self.rng.random((7, 5, 5, 2)).astype("f4")
        own = Own()
        found = self.record(own, [(x, None)])
        self.assertEqual(self.meta["layers"], ["one", "two"])
        np.testing.assert_allclose(found["layer.two"], own(x).numpy(), atol=1e-5)
        model = k.Sequential([k.layers.Flatten(name="flat"), k.layers.Dropout(0.9, name="drop"), k.layers.Dense(2, name="out")])
        found = self.record(model, [(x, None)])
        self.assertEqual(self.meta["layers"], ["flat", "drop", "out"])
        np.testing.assert_array_equal(found["layer.drop"], found["layer.flat"])
        self.assertTrue(self.meta["framework"].startswith("keras 3"))


if __name__ == "__main__":
    unittest.main()
