"""Models and data of Python programs as arguments: arrays, loaders, tables, modules; and what is refused, with what to do."""
import itertools
import os
import unittest
import warnings

import numpy as np

import netmend as nm

from .program import InFolder
from .support import missing, needs_torch, tensorflow, torch


try:
    import pandas
except ImportError:
    pandas = None
try:
    import onnx
except ImportError:
    onnx = None

needs_pandas = unittest.skipIf(pandas is None, missing("pandas") if pandas is None else "")


def digits(count, seed=0):
    draw = np.random.default_rng(seed)
    return draw.random((count, 784), np.float32), draw.integers(0, 10, count)


class Arrays(InFolder):
    def same(self, *given, **options):
        """Every form of the same data gives the same predictions."""
        found = [nm.eval("model.onnx", one, anyway=True, **options).arrays["predicted"] for one in given]
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)
        return found[0]

    def test_forms_of_the_same_data(self):
        x, y = digits(300)
        loader = [(x[i:i + 100], y[i:i + 100]) for i in range(0, 300, 100)]
        np.save("x.npy", x)
        np.save("y.npy", y)
        mapped = np.load("x.npy", mmap_mode="r"), np.load("y.npy", mmap_mode="r")
        self.same((x, y), [x, y], {"input": x, "labels": y}, loader, nm.Data((x, y)), mapped, (x.astype(np.float64), y.tolist()))
        self.assertTrue(nm.Data(mapped).spec.startswith("npy:"))  # on disk it stays
        self.assertEqual(len(self.same((x, y), limit=7)), 7)

    def test_only_the_first(self):
        x, y = digits(300)
        taken = []

        def batches():
            for at in itertools.count(step=50):
                taken.append(at)
                yield x[at % 300:at % 300 + 50], y[at % 300:at % 300 + 50]

        result = nm.eval("model.onnx", batches(), limit=120, anyway=True)
        self.assertEqual(result.samples, 120)
        self.assertLessEqual(len(taken), 4)

    def test_endless_loaders_are_refused(self):
        x, y = digits(4)
        with self.assertRaisesRegex(nm.NetmendInputError, "limit=N"):
            nm.Data(itertools.cycle([(x, y)]))
        big = np.zeros((200_000, 1), np.float32), np.zeros(200_000, np.int64)
        with self.assertRaisesRegex(nm.NetmendInputError, "limit=N"):
            nm.Data(big for _ in itertools.count())

    def test_what_does_not_fit_is_said(self):
        x, y = digits(10)
        for wrong, words in (((x, y[:5]), "10 inputs and 5 labels"), ({"labels": y}, "no input"), ({"a": x, "b": x[:3]}, "numbers of rows"),
                             ({"text": ["a"] * 10, "labels": y}, "groups="), (x[:0], "no rows"), (x.astype(str), "numbers"),
                             (torch.nn.Linear(2, 2) if torch else nm, "")):
            with self.assertRaisesRegex((nm.NetmendInputError, TypeError), words):
                nm.eval("model.onnx", wrong)
        with self.assertRaisesRegex(nm.NetmendInputError, "images:pictures"):
            from pathlib import Path

            nm.eval("model.onnx", Path("pictures"))

    def test_folders_go_with_what_needs_them(self):
        x, y = digits(20)
        result = nm.eval("model.onnx", (x, y), anyway=True)
        folder = [w.split("saved:")[1] for w in result.words if "saved:" in w][0]
        self.assertTrue(os.path.exists(folder))
        del result
        self.assertFalse(os.path.exists(folder))
        nm.Data((x, y), keep="kept")
        self.assertEqual(nm.eval("model.onnx", "saved:kept", anyway=True).samples, 20)


@needs_pandas
class Tables(InFolder):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(1)
        self.frame = pandas.DataFrame({"age": draw.integers(18, 80, 200), "hours": draw.random(200) * 60,
                                       "city": draw.choice(["Oslo", "Bern"], 200), "income": draw.choice(["high", "low"], 200)})
        nm.lab.new("mlp:2-4-2", o="risk.onnx")

    def test_columns(self):
        data = nm.Data(self.frame, label="income", groups=["city"])
        self.assertEqual(data.inputs[0]["columns"], ["age", "hours"])
        self.assertEqual(data.classes, ["high", "low"])
        groups = nm.eval("risk.onnx", data, anyway=True).document["groups"]
        self.assertIn("Oslo", str(groups))

    def test_refused(self):
        frame = self.frame
        for change, words in ((lambda f: f, "(?s)'city' holds .*groups=\\['city'\\]"),
                              (lambda f: f.assign(city=1, age=np.nan), "'age' has 200 missing"),
                              (lambda f: f.assign(city=1, income=None), "'income' .*200 missing")):
            with self.assertRaisesRegex(nm.NetmendInputError, words):
                nm.Data(change(frame), label="income")
        with self.assertRaisesRegex(nm.NetmendInputError, "no column 'pay'"):
            nm.Data(frame, label="pay")


@needs_torch
class Modules(InFolder):
    def module(self):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(784, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(),
                                   torch.nn.Linear(16, 10))

    def loader(self, count=300, **options):
        x, y = digits(count)
        data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        return torch.utils.data.DataLoader(data, batch_size=64, **options)

    def exportable(self):
        try:
            return nm.Model(self.module(), example=torch.zeros(4, 784))
        except nm.NetmendMissingError as error:
            self.skipTest(missing(str(error)))

    def test_a_module_is_judged_as_in_evaluation_mode(self):
        self.exportable()
        module = self.module().train()
        module[4].eval()
        predicted = nm.eval(module, self.loader(), anyway=True).arrays["predicted"]
        self.assertEqual([part.training for part in module], [True, True, True, True, False])
        self.assertTrue(module.training)
        expected = module.eval()(torch.from_numpy(digits(300)[0])).argmax(1).numpy()
        np.testing.assert_array_equal(predicted, expected)

    def test_shuffling_is_undone(self):
        self.exportable()
        module = self.module()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            shuffled = nm.eval(module, self.loader(shuffle=True), anyway=True).arrays["label"]
        np.testing.assert_array_equal(shuffled, digits(300)[1])
        self.assertTrue(any("read in order" in str(w.message) for w in said))

    def test_export_is_compared_with_the_module(self):
        model = self.exportable()
        self.assertTrue(model.matched["matches"])

        class Restless(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.calls = torch.nn.Linear(784, 10), 0

            def forward(self, x):
                self.calls += 1
                return self.inner(x) * self.calls  # traced with another number than it has afterwards

        with self.assertRaisesRegex(nm.NetmendInputError, "outputs of the exported file differ"):
            nm.eval(Restless(), self.loader(), anyway=True)

    def test_modules_that_cannot_be_exported(self):
        self.exportable()

        class Factor(torch.nn.Module):
            def forward(self, x):
                return torch.linalg.qr(x.reshape(-1, 28, 28))[0].flatten(1)

        with self.assertRaisesRegex(nm.NetmendInputError, "aten::linalg_qr"):
            nm.eval(Factor(), self.loader())
        with self.assertRaisesRegex(nm.NetmendInputError, "fails on the first"):
            nm.eval(torch.nn.Linear(3, 2), self.loader())
        with self.assertRaisesRegex(nm.NetmendInputError, "without an example"):
            nm.info(self.module())

    def test_several_inputs_by_name(self):
        self.exportable()

        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(3, 4), torch.nn.Linear(2, 4)

            def forward(self, left, right):
                return self.a(left) - self.b(right)

        draw, module = np.random.default_rng(0), Two()
        arrays = {"right": draw.random((50, 2), np.float32), "left": draw.random((50, 3), np.float32), "labels": np.arange(50) % 4}
        predicted = nm.eval(module, arrays, anyway=True).arrays["predicted"]
        expected = module(torch.from_numpy(arrays["left"]), torch.from_numpy(arrays["right"])).argmax(1).numpy()
        np.testing.assert_array_equal(predicted, expected)

    def test_repair_comes_back_into_the_module(self):
        self.exportable()
        draw = np.random.default_rng(0)
        centres, y = draw.random((10, 784)).astype(np.float32), np.arange(3000) % 10
        x = (centres[y] + draw.normal(0, 1.5, (3000, 784))).astype(np.float32)
        module = torch.nn.Sequential(torch.nn.Linear(784, 10)).eval()
        with torch.no_grad():  # the nearest centre, and one class that always looks nearer than it is
            module[0].weight.copy_(torch.from_numpy(centres) / 10)
            module[0].bias.copy_(torch.from_numpy(-(centres ** 2).sum(1) / 20))
            module[0].bias[3] += 4

        def accuracy():
            return float((module(torch.from_numpy(x)).argmax(1).numpy() == y).mean())

        before, repaired = accuracy(), nm.repair(module, (x, y), method="bias", budget="quick")
        self.assertEqual(accuracy(), before)
        self.assertIn("written", repr(repaired.apply(module)))
        self.assertGreater(accuracy(), before + 0.05)
        repaired.status = 1  # as when the hold-out set says no
        with self.assertRaisesRegex(nm.NetmendInputError, "refused"):
            repaired.apply(module)
        with self.assertRaisesRegex(nm.NetmendInputError, "makes no edits"):
            nm.info("model.onnx").apply(module)


class Others(InFolder):
    @unittest.skipIf(onnx is None, missing("onnx") if onnx is None else "")
    def test_model_proto(self):
        x, y = digits(50)
        proto = onnx.load("model.onnx")
        a, b = (nm.eval(m, (x, y), anyway=True).arrays["confidence"] for m in ("model.onnx", proto))
        np.testing.assert_array_equal(a, b)

    def test_keras(self):
        tf, keras = tensorflow()
        try:
            import tf2onnx
        except ImportError:
            raise unittest.SkipTest(missing("tf2onnx"))
        model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(10)])
        x, y = digits(100)
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
        predicted = nm.eval(model, data, anyway=True).arrays["predicted"]
        np.testing.assert_array_equal(predicted, model.predict(x, verbose=0).argmax(1))
        with self.assertRaisesRegex(nm.NetmendInputError, "no end"):
            nm.eval(model, data.repeat())

    def test_hugging_face(self):
        try:
            import datasets
        except ImportError:
            raise unittest.SkipTest(missing("datasets"))
        x, y = digits(60)
        data = datasets.Dataset.from_dict({"input": x.tolist(), "label": y.tolist()}).with_format("numpy")
        a, b = (nm.eval("model.onnx", d, anyway=True).arrays["predicted"] for d in (data, (x, y)))
        np.testing.assert_array_equal(a, b)
