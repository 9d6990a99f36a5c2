"""Every call that can fail does fail once: afterwards the old file or the new one is whole, and the words are true.

usage: failing_calls_test.py NETMEND slow
"""
import hashlib, os, random, shutil, subprocess

from shell import NETMEND, OneFolder, main, model, must, read_json

SHIM = os.path.join(os.path.dirname(NETMEND), "libfailing_calls.so")
LIBRARIES = ("OpenBLAS", "libtorch", "c10::", "terminate called")  # whose own aborts are named, not counted


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class SlowFailingCalls(OneFolder):
    """One command for each kind of product."""

    @classmethod
    def make(cls):
        net = model("mlp:784-12-10", "--data", "glyphs", "--limit", 2000)
        shutil.copy(net, "m.onnx")
        must("lab", "plant", "m.onnx", "--kind", "scaled", "--seed", 3, "-o", "f.onnx", "--truth", "t.json")
        must("diff", "m.onnx", "f.onnx", "-o", "e.json")
        few = ("--data", "glyphs:test", "--limit", "64", "--jobs", "1", "--quiet")
        cls.commands = {
            "model": (["apply", "m.onnx", "e.json", "-o", "P"], "out.onnx"),
            "edits": (["diff", "m.onnx", "f.onnx", "-o", "P"], "out.json"),
            "weights": (["weights", "m.onnx", "-o", "P"], "out.npz"),
            "state": (["eval", "m.onnx", *few, "--shard", "1/2", "-o", "P"], "out.state"),
            "baseline": (["compare", "m.onnx", "f.onnx", *few, "-o", "P", "--out", "r-compare"], "out.base.json"),
            "table": (["failures", "m.onnx", *few, "-o", "P", "--out", "r-failures"], "out.csv"),
            "checkpoint": (["train", "m.onnx", "--data", "glyphs", "--limit", "64", "--epochs", "1", "--jobs", "1",
                            "--quiet", "--checkpoint", "P", "-o", "trained.onnx", "--out", "r-train"], "out.ckpt"),
        }

    def call(self, arguments, fail="", timeout=120):
        environment = {**os.environ, "LD_PRELOAD": SHIM, "NETMEND_FAIL_COUNT": "count.txt"}
        if fail:
            environment["NETMEND_FAIL"] = fail
        return subprocess.run([NETMEND, *arguments], capture_output=True, text=True, timeout=timeout, env=environment,
                              stdin=subprocess.DEVNULL)

    def count(self, arguments, function):
        done = self.call(arguments, f"{function}:0")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        with open("count.txt") as file:
            return int(file.read())

    def check(self, arguments, product, fail, whole):
        with open(product, "wb") as file:
            file.write(b"what was there before")
        old = digest(product)
        done = self.call(arguments, fail)
        about = (fail, arguments[0], done.returncode, done.stderr[-300:])
        if done.returncode < 0 or done.returncode == 134:
            self.assertTrue(any(word in done.stderr for word in LIBRARIES), about)
        elif done.returncode != 3 or "cpuinfo" not in done.stderr:  # LibTorch's, of /proc
            self.assertIn(done.returncode, (0, 1, 2), about)
        self.assertTrue(os.path.exists(product), about)
        if digest(product) != old and whole:
            self.assertAlmostEqual(os.path.getsize(product), whole, delta=64, msg=about)  # times have digits
        if done.returncode == 2:
            self.assertIn("error: ", done.stderr, about)

    def of(self, name, functions, every):
        arguments, product = self.commands[name]
        arguments = [product if word == "P" else word for word in arguments]
        with open(product, "wb") as file:
            file.write(b"what was there before")
        self.assertIn(self.call(arguments).returncode, (0, 1))
        whole = os.path.getsize(product)
        for function in functions:
            calls = self.count(arguments, function)
            for number in every(calls):
                self.check(arguments, product, f"{function}:{number}", whole)
            left = [file for file in os.listdir(".") if ".part" in file]
            self.assertFalse(left, (function, left))

    def test_calls_that_write(self):
        for name in self.commands:
            with self.subTest(name):
                self.of(name, ("write", "rename", "fsync"), lambda calls: range(1, calls + 1))

    def test_calls_that_open_and_close(self):
        for name in self.commands:
            with self.subTest(name):
                self.of(name, ("open", "close"), lambda calls: range(1, calls + 1))

    def test_memory_and_reading(self):
        rng = random.Random(6)
        for name in ("model", "state"):
            with self.subTest(name):
                self.of(name, ("read", "malloc"), lambda calls: [rng.randint(1, calls) for _ in range(12)])


if __name__ == "__main__":
    main()
