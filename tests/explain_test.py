"""netmend explain as a user runs it: sums against NumPy, maps, the words for what cannot be explained.

usage: explain_test.py NETMEND
"""
import os, struct, sys

from shell import PYTHON, OneFolder, main, must, need, read, read_bytes, read_csv, read_json

need("numpy")
import numpy

SIZES = (20, 12, 9, 4)


def spread(rule, contributions, bias, total, relevance):
    """What goes to each input of a dense layer, one input of the network after the other; contributions are
    inputs × outputs."""
    name, _, number = rule.partition(":")
    number = float(number or 0)
    plus = numpy.maximum(contributions, 0).sum(0) + numpy.maximum(bias, 0)
    minus = numpy.minimum(contributions, 0).sum(0) + numpy.minimum(bias, 0)
    sign = numpy.where(total < 0, -1.0, 1.0)
    if name == "z":
        part = contributions / (total + 1e-16 * sign)
    elif name == "epsilon":
        part = contributions / (total + number * sign)
    elif name == "gamma":
        up = (contributions + number * numpy.maximum(contributions, 0)) / (total + number * plus)
        down = (contributions + number * numpy.minimum(contributions, 0)) / (total + number * minus)
        part = numpy.where(total >= 0, up, down)
    else:  # alpha-beta
        with numpy.errstate(divide="ignore", invalid="ignore"):
            part = (numpy.where(plus > 0, number * numpy.maximum(contributions, 0) / plus, 0)
                    + numpy.where(minus < 0, (1 - number) * numpy.minimum(contributions, 0) / minus, 0))
    return (part * relevance).sum(1)


class Explain(OneFolder):
    @classmethod
    def make(cls):
        draw = numpy.random.RandomState(1)
        cls.x, cls.y = draw.randn(150, SIZES[0]).astype(numpy.float32), draw.randint(0, 4, 150)
        numpy.savez("data.npz", x=cls.x, y=cls.y)
        cls.data = ("--data", "npz:data.npz,x=x,y=y", "--anyway")
        must("lab", "new", "mlp:" + "-".join(map(str, SIZES)), "-o", "raw.onnx")
        # Trained a little, so that biases are not 0.
        must("train", "raw.onnx", "--train", "npz:data.npz,x=x,y=y", "--test", "npz:data.npz,x=x,y=y", "--epochs", 60,
             "--rate", 0.01, "-o", "m.onnx", "--out", "t", "--quiet")
        must("weights", "m.onnx", "-o", "w.npz")
        weights = numpy.load("w.npz")
        names = list(weights)
        matrices = [weights[name].astype(float) for name in names if weights[name].ndim == 2]
        biases = [weights[name].astype(float) for name in names if weights[name].ndim == 1]
        cls.layers = [(next(m if m.shape == (a, b) else m.T for m in matrices if sorted(m.shape) == sorted((a, b))),
                       next(v for v in biases if v.shape == (b,))) for a, b in zip(SIZES, SIZES[1:])]

    def explain(self, *arguments):
        return self.json("explain", "m.onnx", *self.data, *arguments, "--out", "run")

    def refused(self, *arguments, words=()):
        return super().refused("explain", "m.onnx", *self.data, *arguments, words=words)

    def relevance(self, rule):
        """Of every input: of the network's inputs and of both hidden layers; with outputs."""
        found, answers = [], []
        for x in self.x.astype(float):
            values = [x]
            totals = []
            for i, (w, b) in enumerate(self.layers):
                totals.append(values[-1] @ w + b)
                values.append(numpy.maximum(totals[-1], 0) if i < 2 else totals[-1])
            answer = values[-1].argmax()
            relevance = numpy.zeros(4)
            relevance[answer] = values[-1][answer]
            rows = []
            for (w, b), value, total in reversed(list(zip(self.layers, values, totals))):
                relevance = spread(rule, value[:, None] * w, b, total, relevance)
                rows.insert(0, relevance)
            found.append(rows), answers.append(answer)
        return found, numpy.array(answers)

    def test_1_sums_are_numpys(self):
        for rule in ("z", "epsilon:0.01", "gamma:0.25", "alpha-beta:3", "alpha-beta:2"):
            found, answers = self.relevance(rule)
            right = answers == self.y
            self.assertTrue(0 < right.sum() < 150)
            told = self.explain("--rule", rule, "--top", 100, "--float64")
            self.assertEqual((told["explained"], told["inputs"], told["rule"]), (right.sum(), 150, rule))
            self.assertEqual([layer["count"] for layer in told["layers"]], [12, 9])
            for number, layer in enumerate(told["layers"], 1):
                each = numpy.array([rows[number] for rows in found])
                mean = each[right].mean(0)
                scores = {int(unit["unit"].split("/")[1]): unit["score"] for unit in layer["units"]}
                numpy.testing.assert_allclose([scores[u] for u in range(len(mean))], mean, rtol=1e-3, atol=1e-4)
                order = [int(unit["unit"].split("/")[1]) for unit in layer["units"]]
                self.assertEqual(order, list(numpy.argsort(-mean, kind="stable")))
                for about in layer["classes"]:
                    chosen = right & (answers == int(about["class"]))
                    self.assertEqual(about["inputs"], chosen.sum())
                    best = each[chosen].mean(0)
                    self.assertAlmostEqual(about["units"][0]["score"], best.max(), delta=1e-3)
            if rule == "z":
                self.assertAlmostEqual(told["layers"][0]["kept"] + told["absorbed"], 1, places=4)

    def test_2_maps_are_numpys(self):
        found, answers = self.relevance("z")
        told = self.explain("--input", 3, "--input", 17, "--rule", "z", "--float64")
        self.assertEqual([map["sample"] for map in told["maps"]], [3, 17])
        for map in told["maps"]:
            at = map["sample"]
            self.assertEqual([map[key] for key in ("kind", "predicted", "label")],
                             ["values", str(answers[at]), str(self.y[at])])
            parts = {part["name"]: part["relevance"] for part in map["parts"]}
            self.assertEqual(len(parts), 20)
            expected = found[map["sample"]][0]
            numpy.testing.assert_allclose([parts[f"x[{i}]"] for i in range(20)], expected, rtol=1e-3, atol=1e-4)
            self.assertAlmostEqual(map["start"], map["absorbed"] + expected.sum(), places=3)

    def test_3_workers_change_nothing(self):
        def table(jobs):
            self.explain("--jobs", jobs)
            return read("run/importance.csv")
        self.assertEqual(table(1), table(3))

    def test_4_other_answers_and_methods(self):
        found, answers = self.relevance("z")
        wrong = answers != self.y
        self.assertEqual(self.explain("--predictions", "wrong")["explained"], wrong.sum())
        self.assertEqual(self.explain("--predictions", "all")["explained"], 150)
        pair = next((int(a), int(b)) for a, b in zip(self.y[wrong], answers[wrong]))
        one = self.explain("--on", "confusion={}:{}".format(*pair))
        self.assertEqual(one["explained"], ((self.y == pair[0]) & (answers == pair[1])).sum())
        # With rectifiers alone the z rule is the gradient times the value.
        ours, slopes = (self.explain("--method", *method, "--top", 5)["layers"]
                        for method in (("lrp", "--rule", "z"), ("gradient",)))
        for a, b in zip(ours, slopes):
            self.assertEqual([unit["unit"] for unit in a["units"]], [unit["unit"] for unit in b["units"]])
        way = self.explain("--method", "integrated", "--predictions", "all", "--steps", 200)
        w = self.layers
        zero = numpy.maximum(w[0][1], 0) @ w[1][0] + w[1][1]
        zero = numpy.maximum(zero, 0) @ w[2][0] + w[2][1]
        self.assertAlmostEqual(way["absorbed"] * way["start"], zero[answers].mean(), delta=0.02)
        self.assertEqual(self.explain("--layer", "fc2", "--tap", "pre")["layers"][0]["name"], "fc2")

    def test_5_what_cannot_be_is_told(self):
        self.refused("--rule", "epsilom", words=("epsilon",))
        self.refused("--rule", "gamma", "--method", "gradient", words=("--rule gamma",))
        self.refused("--method", "integratd", words=("did you mean integrated",))
        self.refused("--layer", "fc9", words=("did you mean fc",))
        self.refused("--input", "nobody", words=("no input `nobody`", "150 inputs"))
        self.refused("--on", "class=7", words=("no class",))

    def test_6_pictures(self):
        for step in (("lab", "new", "lenet1", "-o", "l.onnx"),
                     ("train", "l.onnx", "--data", "glyphs", "--limit", 3000, "--epochs", 1, "-o", "g.onnx",
                      "--out", "t", "--quiet")):
            self.ok(*step)
        told = self.json("explain", "g.onnx", "--data", "glyphs:test", "--limit", 500, "--input", 5,
                         "--rule", "composite", "--out", "pictures")
        self.assertEqual(told["maps"][0]["kind"], "image")
        head = read_bytes(os.path.join("pictures", told["maps"][0]["file"]))[:24]
        self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", head[16:24])
        self.assertTrue(width > 3 * 200 and height > 200)
        self.assertEqual(len(read_csv("pictures/importance.csv")), sum(layer["count"] for layer in told["layers"]))
        said = self.ok("explain", "g.onnx", "--data", "glyphs:test", "--limit", 500, "--out", "p2").stdout
        self.assertIn("relevance by rule", said)
        self.assertEqual(told["rule"], self.json("explain", "g.onnx", "--data", "glyphs:test", "--limit", 500, "--out",
                                                 "p3")["rule"])  # convolutions on images: composite
        self.assertEqual(self.explain()["rule"], "epsilon:0.01")  # a table of numbers

    def test_8_what_has_no_relevance_is_not_listed(self):
        rows = self.x.copy()
        rows[:, 4:] = 0
        numpy.savez("zeros.npz", x=rows, y=self.y)
        said = self.ok("explain", "m.onnx", "--data", "npz:zeros.npz,x=x,y=y", "--anyway", "--predictions", "all",
                       "--input", 3, "--out", "zeros").stdout
        self.assertIn("x[0] ", said)
        self.assertNotIn("x[4] ", said)

    def test_9_saved_data_names_its_columns(self):
        names = [f"column {i}" for i in range(20)]
        sys.path.insert(0, PYTHON)
        from netmend import save_data
        save_data([(self.x, self.y)], "rows.data", columns=names, batched=True)
        self.assertEqual(read_json("rows.data/data.json")["inputs"][0]["columns"], names)
        told = self.json("explain", "m.onnx", "--data", "saved:rows.data", "--anyway", "--input", 3, "--out", "named")
        self.assertEqual(told["maps"][0]["kind"], "columns")
        self.assertEqual({part["name"] for part in told["maps"][0]["parts"]}, set(names))
        with self.assertRaises(Exception) as refused:
            save_data([(self.x, self.y)], "short.data", columns=names[1:], batched=True)
        self.assertIn("19 names", str(refused.exception))

    def test_7_without_labels_every_answer_counts(self):
        numpy.savez("bare.npz", x=self.x)
        told = self.json("explain", "m.onnx", "--data", "npz:bare.npz,x=x", "--anyway", "--out", "bare")
        self.assertEqual(told["explained"], 150)


if __name__ == "__main__":
    main()
