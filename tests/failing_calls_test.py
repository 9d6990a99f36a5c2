"""Every call that can fail does fail once: afterwards the old file or the new one is whole, and the words are true.

usage: failing_calls_test.py NETMEND slow. Of memory and of reading the first calls fail one by one and others are drawn;
NETMEND_CALLS=200,300 takes the first 200 and 300 others (default 20,20). NETMEND_COMMANDS=model,edits takes only these rows.
"""
import collections, contextlib, copy, glob, os, random, shutil, sqlite3, subprocess

from shell import *

SHIM = os.path.join(os.path.dirname(NETMEND), "libfailing_calls.so")
LIBRARIES = ("OpenBLAS", "libtorch", "c10::")  # whose own aborts are named, not counted
FIRST, DRAWN = map(int, os.environ.get("NETMEND_CALLS", "20,20").split(","))
OLD = b"what was there before"


class Command:
    """`product` stands for P in the arguments; `starts` are its files that must be there before each run."""

    def __init__(self, arguments, product, *starts):
        self.arguments = [product if word == "P" else word for word in map(str, arguments)]
        self.product, self.starts = product, starts


class SlowFailingCalls(OneFolder):
    """One command for each kind of product."""

    @classmethod
    def make(cls):
        net = model("mlp:784-12-10", "--data", "glyphs", "--limit", 2000)
        os.mkdir("named")
        shutil.copy(net, "m.onnx")
        shutil.copy(net, "named/m.onnx")
        must("lab", "plant", "m.onnx", "--kind", "scaled", "--seed", 3, "-o", "f.onnx", "--truth", "t.json")
        must("diff", "m.onnx", "f.onnx", "-o", "e.json")
        few = ("--data", "glyphs:test", "--limit", "64", "--jobs", "1", "--quiet")
        must("check", "m.onnx", "--data", "glyphs:test", "--limit", 300, "--jobs", 1, "--out", "checked", "--only", "weak-classes", "--quiet")
        finding = read_json("checked/findings.json")
        one = {**(finding["findings"] + finding["accepted"] + [{}])[0], "kind": "weak-class", "where": "3", "id": "weak-class:3"}
        write_json("checked/findings.json", {**finding, "findings": [one]})
        write("train.py", "import torch\nloss = torch.nn.CrossEntropyLoss()\n")
        write("kept.jsonl", '{"netmend":"training-record","version":1}\n{"e":"series","optimizer":0,"from":1,"every":1,"loss":[2.0,1.0,0.5]}\n{"e":"end"}\n')
        write("copy.sh", 'cp kept.jsonl "$NETMEND_WATCH/record.jsonl"\n')
        write("start.toml", 'model.file = "m.onnx"\ndata.test = "glyphs:test"\n')
        cls.commands = {
            "model": Command(["apply", "m.onnx", "e.json", "-o", "P"], "out.onnx"),
            "edits": Command(["diff", "m.onnx", "f.onnx", "-o", "P"], "out.json"),
            "weights": Command(["weights", "m.onnx", "-o", "P"], "out.npz"),
            "state": Command(["eval", "m.onnx", *few, "--shard", "1/2", "-o", "P"], "out.state"),
            "baseline": Command(["compare", "m.onnx", "f.onnx", *few, "-o", "P", "--out", "r-compare"], "out.base.json"),
            "table": Command(["failures", "m.onnx", *few, "-o", "P", "--out", "r-failures"], "out.csv"),
            "checkpoint": Command(["train", "m.onnx", "--data", "glyphs", "--limit", "64", "--epochs", "1", "--jobs", "1",
                                   "--quiet", "--checkpoint", "P", "-o", "trained.onnx", "--out", "r-train"], "out.ckpt"),
            "report": Command(["check", "m.onnx", *few, "--only", "weak-classes", "--out", "r-check"], "r-check/evidence.json"),
            "configuration": Command(["init", "named/m.onnx", "--data", "glyphs:test", "--force", "--quiet"], "named/netmend.toml"),
            "acceptance": Command(["accept", "weak-class:3", "--reason", "known", "--run", "checked", "--config", "P"], "a.toml", "start.toml"),
            "repair": Command(["repair", "f.onnx", "--data", "glyphs:test", "--limit", 200, "--jobs", 1, "--method", "bias", "--force", "--plan", "plan.json",
                               "-o", "P", "--out", "r-repair", "--quiet", "--budget", "quick"], "out.repaired.onnx"),
            "mutants": Command(["mutate", "m.onnx", *few, "--sample", 6, "--anyway", "--out", "r-mutate"], "r-mutate/mutants.csv"),
            "problems": Command(["lint", "train.py", "--sarif", "P"], "out.sarif"),
            "diagnosis": Command(["watch", "--quiet", "--out", "r-watch", "--", "sh", "copy.sh"], "r-watch/findings.json"),
            "study": Command(["lab", "study", "check-quality", "--models", "m.onnx@glyphs:test,limit=64", "--parts", "quiet", "--out", "r-study", "--jobs", 1,
                              "--quiet"], "r-study/check-quality.md"),
            "queue": Command(["stress", "m.onnx", *few, "--method", "fuzz", "--steps", 1, "-o", "P", "--queue", "f.queue", "--out", "r-stress"], "out.made.npz"),
        }
        only = os.environ.get("NETMEND_COMMANDS", "")
        cls.commands = {name: cls.commands[name] for name in only.split(",")} if only else cls.commands
        cls.failed = collections.Counter()

    def call(self, command, fail="", timeout=180):
        environment = {**os.environ, **(engine(SHIM) or {"LD_PRELOAD": SHIM}), "NETMEND_FAIL_COUNT": "count.txt"}
        if fail:
            environment["NETMEND_FAIL"] = fail
        return subprocess.run([NETMEND, *command.arguments], capture_output=True, text=True, timeout=timeout, env=environment,
                              stdin=subprocess.DEVNULL, errors="replace")

    def prepare(self, command):
        """As before each run: a product of an earlier one is there, and what it goes on from is not."""
        for path in ("f.queue", "r-watch/record.jsonl"):
            if os.path.exists(path):
                os.unlink(path)
        shutil.rmtree("r-study", ignore_errors=True)
        if command.starts:
            shutil.copy(command.starts[0], command.product)
        else:
            os.makedirs(os.path.dirname(command.product) or ".", exist_ok=True)
            write_bytes(command.product, OLD)

    def require_whole(self, command, about):
        """The product is the old or a whole new one; so is every JSON file of a run folder."""
        self.assertTrue(os.path.exists(command.product), about)
        content = read_bytes(command.product)
        if content != OLD and not command.starts:
            # Times have digits.
            self.assertAlmostEqual(len(content), self.whole, delta=max(64, self.whole // 50), msg=about)
        if os.path.exists("r-study/trials.db"):
            with contextlib.closing(sqlite3.connect("r-study/trials.db")) as store:
                self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",), about)
        for path in [*glob.glob("r-*/*.json"), *glob.glob("plan.json")]:
            if read_bytes(path) != OLD:
                parse(read(path))

    def check(self, name, command, fail):
        self.prepare(command)
        done = self.call(command, fail)
        about = (name, fail, done.returncode, done.stderr[-300:])
        self.failed[fail.split(":")[0]] += 1
        if done.returncode < 0 or done.returncode == 134:
            self.assertTrue(any(word in done.stderr for word in LIBRARIES), about)
            self.failed["aborts of libraries"] += 1
        elif done.returncode != 3 or "cpuinfo" not in done.stderr:  # LibTorch's, of /proc
            self.assertIn(done.returncode, (0, 1, 2), about)
        if done.returncode == 2:
            self.assertIn("error: ", done.stderr, about)
        self.require_whole(command, about)

    def of(self, name, functions, every, command=None):
        command = command or self.commands[name]
        for function in functions:
            self.prepare(command)
            done = self.call(command, f"{function}:0")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.whole = os.path.getsize(command.product)
            calls = int(read("count.txt"))
            numbers = every(calls)
            print(f"{name}: {len(numbers)} of {calls} calls of {function}", flush=True)
            for number in numbers:
                with self.subTest(name, fail=f"{function}:{number}"):
                    self.check(name, command, f"{function}:{number}")
            left = [file for file in os.listdir(".") if ".part" in file]
            self.assertFalse(left, (name, function, left))

    def test_calls_that_write(self):
        for name in self.commands:
            self.of(name, ("write", "rename", "fsync"), lambda calls: range(1, calls + 1))

    def test_calls_that_open_and_close(self):
        for name in self.commands:
            self.of(name, ("open", "close"), lambda calls: range(1, calls + 1))

    def test_threads(self):
        """Eight are asked for; where one cannot be had, fewer do the work, or a sentence says so."""
        for name in self.commands:
            command = copy.copy(self.commands[name])
            at = [i for i, word in enumerate(command.arguments) if word == "--jobs"]
            if not at:
                continue
            command.arguments = list(command.arguments)
            command.arguments[at[0] + 1] = "8"
            # The second one to that of the last core are of LibTorch's pool, which waits forever for one that it did not get.
            self.of(name, ("thread",), lambda calls: [1, *range(os.cpu_count() + 1, calls + 1)], command)

    def test_memory_and_reading(self):
        draw = random.Random(6)
        for name in self.commands:
            some = lambda calls: [*range(1, min(FIRST, calls) + 1), *(draw.randint(1, calls) for _ in range(DRAWN if calls > FIRST else 0))]
            self.of(name, ("read", "malloc"), some)

    @classmethod
    def tearDownClass(cls):
        print("calls that failed:", ", ".join(f"{count} {name}" for name, count in sorted(cls.failed.items())), flush=True)


if __name__ == "__main__":
    main()
