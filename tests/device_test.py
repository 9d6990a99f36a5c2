"""The same commands on a GPU and on the CPU: the same findings, figures within tolerances, the same bits from run to run.
Without a GPU: the sentences of those who ask for one.

usage: device_test.py NETMEND [fast|slow]
"""
import json, math, os, struct, subprocess, sys, tempfile, unittest

from shell import NETMEND, Case, OneFolder, main, must, needs, read, read_csv, read_floats, run, write_bytes, write_npy
from hostile_test import field, node, onnx_model, value_info

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
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--precision", "half", words=["--device cuda"])
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--precision", "fp8", words=["fp8", "bf16"])

    @unittest.skipIf(GPU, "there is a GPU here")
    def test_without_a_gpu_one_sentence_says_what_to_do(self):
        must("lab", "new", "mlp:784-8-10", "-o", "m.onnx")
        self.refused("eval", "m.onnx", "--data", "glyphs:test", "--device", "cuda", words=["--device out"])

    @unittest.skipIf(GPU, "there is a GPU here")
    def test_auto_without_a_gpu_is_the_cpu(self):
        must("lab", "new", "mlp:784-8-10", "-o", "m.onnx")
        told = run("eval", "m.onnx", "--data", "glyphs:test", "--device", "auto", "--anyway")
        self.assertIn("--device auto: the CPU", told.stderr)
        self.assertEqual(run("eval", "m.onnx", "--data", "glyphs:test", "--anyway", "--quiet").stdout.splitlines()[-3:-1],
                         told.stdout.splitlines()[-3:-1])


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


    def test_an_operator_without_a_kernel_for_the_gpu_runs_on_the_cpu(self):
        """Products of whole numbers."""
        to = lambda kind: field(5, field(1, "to") + field(3, kind) + field(20, 2))
        weight = field(1, 2) + field(1, 2) + field(2, 7) + field(8, "w") + field(9, struct.pack("<4q", 1, 2, 3, 4))
        nodes = [node("Cast", ["x"], ["whole"]) + to(7), node("MatMul", ["whole", "w"], ["product"]), node("Cast", ["product"], ["y"]) + to(1)]
        write_bytes("whole.onnx", onnx_model(nodes, [value_info("x", 3, 2)], [value_info("y", 3, 2)], [weight]))
        write_npy("x.npy", "f", (3, 2), [1, 0, 0, 1, 2, 3])
        told = self.ok("lab", "run", "whole.onnx", "--input", "x=x.npy", "--device", "cuda", "--out", "whole")
        self.assertEqual(list(read_floats("whole/y.npy")), [1, 2, 3, 4, 11, 16])
        self.assertIn("MatMul", told.stderr)
        self.assertIn("on the CPU", told.stderr)

    def test_auto_takes_the_gpu_for_much_work_alone(self):
        few = run("eval", "lenet5-trained.onnx", "--data", "glyphs:test", "--limit", 100, "--device", "auto")
        self.assertIn("--device auto: the CPU", few.stderr)
        must("lab", "new", "resnet20", "-o", "resnet20.onnx")
        images("images.npz", 5000, (3, 32, 32))
        much = run("stress", "resnet20.onnx", "--data", "npz:images.npz,x=x,y=y", "--method", "pgd", "--all", "--device", "auto", "--jobs", 1,
                   "--anyway", "--eps", 0.01, "--limit", 2000, "-o", "a.npz")
        self.assertIn("--device auto: the GPU", much.stderr)

    def test_half_precision_predicts_nearly_the_same(self):
        whole = self.json("eval", "lenet5-trained.onnx", "--data", "glyphs:test", "--device", "cuda", "--out", "whole")
        for precision in ("tf32", "half", "bf16"):
            told = self.json("eval", "lenet5-trained.onnx", "--data", "glyphs:test", "--device", "cuda", "--precision", precision, "--out", precision)
            self.assertAlmostEqual(told["accuracy"], whole["accuracy"], delta=0.01, msg=precision)
            self.assertAlmostEqual(told["loss"], whole["loss"], delta=0.02 + 0.05 * whole["loss"], msg=precision)

    def test_arachne_and_surgical_repairs_are_as_good_as_on_the_cpu(self):
        must("lab", "plant", "lenet5-trained.onnx", "--kind", "random-weights", "--data", "glyphs:test", "--at-least", 2, "-o", "hurt.onnx", "--truth",
             "hurt.json")
        for method in ("surgical", "arachne"):
            gained = []
            for device in ("cpu", "cuda"):
                done = run("repair", "hurt.onnx", "--data", "glyphs:test", "--limit", 3000, "--method", method, "--budget", "quick", "--device", device,
                           "-o", f"mended-{device}.onnx", "--out", f"repair-{method}-{device}", "--json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                gained.append(json.loads(done.stdout)["after"]["accuracy"])
            self.assertAlmostEqual(gained[0], gained[1], delta=0.03, msg=method)


@on_gpu
@needs(files=("fashion-mnist",))
class Lockstep(Case):
    def test_studies_in_lockstep_come_to_the_same(self):
        found = []
        for device in ("cpu", "cuda"):
            self.ok("lab", "study", "sbfl-repair", "--trained", "--networks", "dnn1,cnn1", "--limit", 2000, "--sample", 0.004, "--device", device, "--bases",
                    "bases", "--out", device)
            found.append({(row["trial"], row["field"]): float(row["value"]) for row in read_csv(f"{device}/trials.csv") if row["field"] == "accuracy"})
        self.assertEqual(sorted(found[0]), sorted(found[1]))
        self.assertGreater(len(found[0]), 5)
        apart = [abs(found[0][key] - found[1][key]) for key in found[0]]
        self.assertLess(sum(apart) / len(apart), 0.01, sorted(apart)[-5:])


def images(path, count, shape):
    """Random images, as an NPZ file that is not compressed."""
    import io, random, zipfile
    draw = random.Random(1)
    bytes_of = {"x": (b"".join(struct.pack("<f", draw.random()) for _ in range(shape[0] * shape[1] * shape[2])) * count, (count, *shape), "<f4"),
                "y": (b"".join(struct.pack("<q", i % 10) for i in range(count)), (count,), "<i8")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, (content, size, kind) in bytes_of.items():
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {size}, }}"
            header += " " * (63 - (len(header) + 10) % 64) + "\n"
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)


@on_gpu
class Lost(OneFolder):
    """A GPU that goes away while it is used (shim/lost_gpu.cc)."""

    @classmethod
    def make(cls):
        must("lab", "new", "lenet5", "-o", "lenet5.onnx", "--seed", 3)
        must("train", "lenet5.onnx", "--data", "glyphs", "--limit", 2000, "--epochs", 1, "-o", "trained.onnx", "--out", "t")

    def test_the_error_is_a_sentence_and_nothing_is_half_written(self):
        shim = os.path.join(os.path.dirname(NETMEND), "liblost_gpu.so")
        self.assertTrue(os.path.exists(shim), "the tests' own library is not there")
        for words in (["eval", "trained.onnx", "--data", "glyphs:test"],
                      ["stress", "trained.onnx", "--data", "glyphs:test", "--method", "pgd", "--limit", "200", "-o", "made.npz"],
                      ["train", "lenet5.onnx", "--data", "glyphs", "--limit", "2000", "--epochs", "2", "-o", "made.onnx"]):
            for after in (5, 60):
                environment = {**os.environ, "LD_PRELOAD": shim, "NETMEND_LOST_AFTER": str(after)}
                done = subprocess.run([NETMEND, *words, "--device", "cuda", "--out", "lost"], env=environment, capture_output=True, text=True, timeout=120)
                said = (words[0], after, done.returncode, done.stderr[-600:])
                if done.returncode == 0:  # it was done before
                    self.assertGreater(after, 5, said)
                    continue
                self.assertEqual(done.returncode, 2, said)
                self.assertIn("error:", done.stderr, said)
                self.assertTrue("CUDA" in done.stderr or "GPU" in done.stderr, said)
                for made in ("made.npz", "made.onnx"):
                    self.assertFalse(os.path.exists(made), said)


HOG = """
import sys, torch
free, whole = torch.cuda.mem_get_info()
keep = torch.empty(free - int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
print("full", flush=True)
sys.stdin.read()
"""


@on_gpu
class Full(OneFolder):
    """Another program has taken nearly all of the GPU's memory."""

    @classmethod
    def make(cls):
        must("lab", "new", "resnet20", "-o", "resnet20.onnx", "--seed", 3)
        images("images.npz", 8192, (3, 32, 32))

    def full(self, left):
        hog = subprocess.Popen([sys.executable, "-c", HOG, str(left)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if hog.stdout.readline().strip() != "full":
            self.skipTest("needs PyTorch with CUDA in this Python")
        return hog

    def test_passes_go_in_parts_and_say_so(self):
        words = ["eval", "resnet20.onnx", "--data", "npz:images.npz,x=x,y=y", "--device", "cuda", "--anyway", "--json"]
        alone = must(*words, "--out", "alone")
        hog = self.full(1.6)
        try:
            told = run(*words, "--out", "beside")
        finally:
            hog.communicate("")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("in parts", told.stderr)
        one, other = json.loads(alone.stdout), json.loads(told.stdout)
        self.assertEqual(one["samples"], other["samples"])
        self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-3)

    def test_attacks_begin_again_with_fewer_inputs(self):
        words = ["stress", "resnet20.onnx", "--data", "npz:images.npz,x=x,y=y", "--limit", 4000, "--all", "--method", "fgsm", "--device", "cuda", "--anyway",
                 "-o", "a.npz", "--out", "s"]
        hog = self.full(1.6)
        try:
            told = run(*words)
        finally:
            hog.communicate("")
        self.assertIn(told.returncode, (0, 1), told.stderr)
        self.assertTrue("beginning again with fewer inputs" in told.stderr or "in parts" in told.stderr, told.stderr)

    def test_a_training_step_that_does_not_fit_is_told(self):
        hog = self.full(2)
        try:
            told = run("train", "resnet20.onnx", "--data", "npz:images.npz,x=x,y=y", "--batch", 8192, "--epochs", 1, "--device", "cuda", "-o", "t.onnx")
        finally:
            hog.communicate("")
        self.assertEqual(told.returncode, 2, told.stderr)
        self.assertIn("--batch", told.stderr)


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    main()
