"""The same commands on a GPU and on the CPU: the same findings, figures within tolerances, the same bits from run to run.
Without a GPU: the sentences of those who ask for one.

usage: device_test.py NETMEND [fast|slow]
"""
import math, os, tempfile, unittest

from shell import Case, OneFolder, main, must, read, run

with tempfile.TemporaryDirectory() as folder:
    GPU = run("lab", "new", "mlp:4-3-2", "-o", os.path.join(folder, "m.onnx"), "--device", "cuda").returncode == 0
on_gpu = unittest.skipUnless(GPU, "needs a GPU, and a LibTorch with CUDA")
NETWORKS = ["lenet1", "lenet5", "dnn2", "cnn2"]


class Asked(Case):
    def test_what_is_no_device_is_refused(self):
        must("lab", "new", "mlp:784-8-10", "-o", "m.onnx")
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--device", "tpu", words=["tpu"])
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--device", "cuda:77", words=["cuda:77"])
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--precision", "tf32", words=["--device cuda"])
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--precision", "half", words=["half"])

    @unittest.skipIf(GPU, "there is a GPU here")
    def test_without_a_gpu_one_sentence_says_what_to_do(self):
        must("lab", "new", "mlp:784-8-10", "-o", "m.onnx")
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--device", "cuda", words=["--device out"])


@on_gpu
class Alike(OneFolder):
    @classmethod
    def make(cls):
        for name in NETWORKS:
            must("lab", "new", name, "-o", f"{name}.onnx", "--seed", 3)
            must("train", f"{name}.onnx", "--data", "glyphs", "--limit", 4000, "--epochs", 1, "-o", f"{name}-trained.onnx", "--out", "t")

    def both(self, *arguments, code=0):
        told = []
        for device in ("cpu", "cuda"):
            told.append(self.json(*arguments, "--device", device, "--out", f"run-{device}", code=code))
        return told

    def near(self, a, b, tolerance=1e-3, path=""):
        """Every number of two documents, where they are not times."""
        if isinstance(a, dict):
            self.assertEqual(sorted(a), sorted(b), path)
            for key in a:
                if not any(word in key for word in ("second", "time", "run", "file", "next", "sheet", "device", "memory")):
                    self.near(a[key], b[key], tolerance, f"{path}/{key}")
        elif isinstance(a, list):
            self.assertEqual(len(a), len(b), path)
            for i, (x, y) in enumerate(zip(a, b)):
                self.near(x, y, tolerance, f"{path}[{i}]")
        elif isinstance(a, (int, float)) and not isinstance(a, bool):
            self.assertTrue(math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance), (path, a, b))
        else:
            self.assertEqual(a, b, path)

    def test_eval(self):
        for name in NETWORKS:
            a, b = self.both("eval", f"{name}-trained.onnx", "--data", "glyphs:test")
            self.assertEqual(a["samples"], b["samples"])
            self.assertAlmostEqual(a["accuracy"], b["accuracy"], delta=2e-3)
            self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-3)

    def test_coverage(self):
        a, b = self.both("coverage", "lenet5-trained.onnx", "--data", "glyphs", "--limit", 1000)
        for x, y in zip(a["criteria"], b["criteria"]):
            self.assertEqual(x["name"], y["name"])
            if x.get("value") is not None:
                self.assertTrue(math.isclose(x["value"], y["value"], rel_tol=2e-2, abs_tol=5e-3), (x, y))

    def test_attacks(self):
        for method in ("fgsm", "bim", "pgd", "cw"):
            a, b = self.both("stress", "lenet5-trained.onnx", "--data", "glyphs:test", "--limit", 64, "--method", method, "-o", "adv.npz")
            self.assertAlmostEqual(a["success"]["rate"], b["success"]["rate"], delta=0.05, msg=method)

    def test_locate_names_the_same_units(self):
        must("lab", "plant", "lenet5-trained.onnx", "--kind", "random-weights", "--data", "glyphs:test", "--at-least", 2, "-o", "faulty.onnx",
             "--truth", "truth.json")
        a, b = self.both("locate", "faulty.onnx", "--data", "glyphs:test", "--limit", 2000)
        self.assertEqual([u["unit"] for u in a["ranking"][:3]], [u["unit"] for u in b["ranking"][:3]])

    def test_the_same_findings(self):
        a, b = self.both("check", "faulty.onnx" if os.path.exists("faulty.onnx") else "lenet5-trained.onnx", "--data", "glyphs", "--budget",
                         "quick", "--fail-on", "never")
        self.assertEqual([f["id"] for f in a["findings"] if f["level"] in ("blocker", "serious")],
                         [f["id"] for f in b["findings"] if f["level"] in ("blocker", "serious")])

    def test_training_is_the_same_from_run_to_run_and_as_good_as_on_the_cpu(self):
        for network in ("lenet5", "cnn2"):
            last = []
            for out, device in (("a", "cuda"), ("b", "cuda"), ("c", "cpu")):
                told = self.json("train", f"{network}.onnx", "--data", "glyphs", "--limit", 4000, "--epochs", 2, "--batch", 64, "--device", device,
                                 "-o", f"{out}.onnx", "--out", f"train-{out}")
                last.append(told["epochs"][-1])
            self.assertEqual(read_file("a.onnx"), read_file("b.onnx"))
            self.assertAlmostEqual(last[0]["loss"], last[2]["loss"], delta=0.05 + 0.1 * last[2]["loss"])

    def test_eval_is_the_same_from_run_to_run(self):
        told = []
        for out in ("a", "b"):
            self.json("eval", "lenet5-trained.onnx", "--data", "glyphs:test", "--device", "cuda", "--out", f"eval-{out}")
            told.append(read(f"eval-{out}/samples.csv"))
        self.assertEqual(told[0], told[1])


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    main()
