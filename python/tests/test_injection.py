"""Mutants of programs: every operator by its own example, positions, phases, executed lines, and programs that are odd."""
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(HERE), "netmend")
sys.path.insert(0, PACKAGE)
import _injection  # noqa: E402
import _operators  # noqa: E402
import _syntax  # noqa: E402

# operator, source, every mutant of it in order
EXAMPLES = [
    ("ArOR", "x = a + b", ["x = a - b"]),
    ("ArOR", "x = (a) / (b)", ["x = (a) * (b)", "x = (a) % (b)", "x = (a) // (b)"]),
    ("ArOR", "x = a // b % c * d - e", ["x = a / b % c * d - e", "x = a // b / c * d - e", "x = a // b % c / d - e",
                                        "x = a // b % c * d + e"]),
    ("BitOR", "x = a & b | c ^ d", ["x = a | b | c ^ d", "x = a ^ b | c ^ d", "x = a & b & c ^ d", "x = a & b | c & d"]),
    ("BitOR", "x = a << b >> c", ["x = a >> b >> c", "x = a << b << c"]),
    ("ComOR", "x = a > b >= c", ["x = a >= b >= c", "x = a > b > c"]),
    ("ComOR", "x = a < b, a <= b, a == b, a != b", ["x = a <= b, a <= b, a == b, a != b", "x = a < b, a < b, a == b, a != b",
                                                    "x = a < b, a <= b, a != b, a != b", "x = a < b, a <= b, a == b, a == b"]),
    ("ComOR", "x = a is b", ["x = a is not b"]),
    ("ComOR", "x = a is  not None", ["x = a is None"]),
    ("LogOR", "x = a and b or c", ["x = a or b or c", "x = a and b and c"]),
    ("LogOR", "x = not a", ["x = (a)"]),
    ("LogOR", "if a:\n    pass", ["if not (a):\n    pass"]),
    ("LogOR", "if a > b:\n    pass", []),
    ("AsOR", "x += 1", ["x -= 1", "x = 1"]),
    ("AsOR", "x -= 1", ["x += 1", "x = 1"]),
    ("AsOR", "x *= 2", ["x /= 2", "x = 2"]),
    ("AsOR", "x /= 2", ["x *= 2", "x = 2"]),
    ("MemOR", "x = a in b", ["x = a not in b"]),
    ("MemOR", "x = a not  in b", ["x = a in b"]),
    ("MemOR", "for a in b:\n    pass", []),
    ("BVR", "x = f(True, b=False)", ["x = f(False, b=False)", "x = f(True, b=True)"]),
    ("NVR", "x = f(1e-3, 7)", ["x = f(1.001, 7)", "x = f(0.001, 8)".replace("0.001", "1e-3")]),
    ("NVR", "x = 'a1' + f'{y:2}'", []),
    ("NVR", "x = a[-1], -2.5, b-1, -c", ["x = a[0], -2.5, b-1, -c", "x = a[-1], -1.5, b-1, -c", "x = a[-1], -2.5, b-2, -c"]),
    ("NVR", "def f():\n    return-1", ["def f():\n    return 0"]),
    ("AsOR", "x = 1", []),
    ("activation-removed", "m = nn.Sequential(nn.ReLU())", ["m = nn.Sequential(nn.Identity())"]),
    ("activation-removed", "x = F.relu(conv(x))", ["x = (conv(x))"]),
    ("activation-removed", "x = (a + b).relu()", ["x = (a + b)"]),
    ("activation-removed", "x = Dense(3, activation='relu')", ["x = Dense(3, activation=None)"]),
    ("activation-removed", "from torch.nn import ReLU\nm = ReLU()", [
        'from torch.nn import ReLU\nm = __import__("torch.nn", fromlist=["Identity"]).Identity()']),
    ("activation-removed", "from torch.nn.modules.activation import ReLU as R\nm = R()", [
        'from torch.nn.modules.activation import ReLU as R\nm = __import__("torch.nn", fromlist=["Identity"]).Identity()']),
    ("activation-removed", "from torch.nn import *\nm = ReLU()", ["from torch.nn import *\nm = Identity()"]),
    ("activation-removed", "class ReLU:\n    pass\nm = ReLU()", []),
    ("activation-removed", "from .mine import ReLU\nm = ReLU()", []),
    ("activation-removed", "from keras import layers\nm = layers.ReLU()", ['from keras import layers\nm = layers.Activation("linear")']),
    ("activation-replaced", "from keras.layers import *\nm = ReLU()", ['from keras.layers import *\nm = Activation("sigmoid")']),
    ("activation-replaced", "from torch.nn import ReLU\nm = ReLU()", [
        'from torch.nn import ReLU\nm = __import__("torch.nn", fromlist=["Sigmoid"]).Sigmoid()']),
    ("activation-replaced", "from torch.nn.functional import relu\nx = relu(x)", [
        'from torch.nn.functional import relu\nx = __import__("torch.nn.functional", fromlist=["sigmoid"]).sigmoid(x)']),
    ("activation-replaced", "x = F.leaky_relu(x, 0.1)", ["x = F.sigmoid(x)"]),
    ("activation-replaced", "x = np.tanh(x)", []),
    ("activation-replaced", "x = F.relu(x)", ["x = F.sigmoid(x)"]),
    ("activation-replaced", "x = Dense(3, activation='tanh')", ["x = Dense(3, activation='relu')"]),
    ("activation-added", "x = layers.Dense(3)", ['x = layers.Dense(3, activation="sigmoid")']),
    ("activation-added", "m = nn.Sequential(nn.Linear(2, 3))", ["m = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid())"]),
    ("activation-added", "from torch.nn import Linear, Sequential\nm = Sequential(Linear(2, 3))", [
        'from torch.nn import Linear, Sequential\nm = Sequential(Linear(2, 3), __import__("torch.nn", fromlist=["Sigmoid"]).Sigmoid())']),
    ("loss-replaced", "f = nn.MSELoss()", ["f = nn.L1Loss()"]),
    ("loss-replaced", "from torch.nn import MSELoss\nf = MSELoss()", [
        'from torch.nn import MSELoss\nf = __import__("torch.nn", fromlist=["L1Loss"]).L1Loss()']),
    ("loss-replaced", "m.compile(loss='binary_crossentropy')", ["m.compile(loss='mse')"]),
    ("optimiser-replaced", "o = optim.Adam(p)", ["o = optim.SGD(p)"]),
    ("optimiser-replaced", "from torch.optim import Adam\no = Adam(p)", [
        'from torch.optim import Adam\no = __import__("torch.optim", fromlist=["SGD"]).SGD(p)']),
    ("optimiser-replaced", "m.compile(optimizer='sgd')", ["m.compile(optimizer='adam')"]),
    ("rate-changed", "o = SGD(p, lr=0.5)", ["o = SGD(p, lr=5.0)", "o = SGD(p, lr=0.05)"]),
    ("rate-changed", "o = Adam(0.5)", ["o = Adam(5.0)", "o = Adam(0.05)"]),
    ("rate-changed", "p.add_argument('--lr', type=float, default=0.5)", ["p.add_argument('--lr', type=float, default=5.0)",
                                                                         "p.add_argument('--lr', type=float, default=0.05)"]),
    ("rate-changed", "p.add_argument('--momentum', default=0.5)", []),
    ("batch-changed", "p.add_argument('-b', '--batch-size', default=8)", ["p.add_argument('-b', '--batch-size', default=2)",
                                                                          "p.add_argument('-b', '--batch-size', default=32)"]),
    ("epochs-changed", "p.add_argument('-n', dest='epochs', default=5)", ["p.add_argument('-n', dest='epochs', default=1)"]),
    ("batch-changed", "m.fit(x, y, batch_size=32)", ["m.fit(x, y, batch_size=8)", "m.fit(x, y, batch_size=128)"]),
    ("epochs-changed", "epochs = 5", ["epochs = 1"]),
    ("initialiser-replaced", "nn.init.xavier_uniform_(w, gain=2)", ["nn.init.zeros_(w)"]),
    ("initialiser-replaced", "from torch.nn.init import xavier_uniform_\nxavier_uniform_(w)", [
        'from torch.nn.init import xavier_uniform_\n__import__("torch.nn.init", fromlist=["zeros_"]).zeros_(w)']),
    ("normalisation-removed", "x = nn.BatchNorm2d(3)", ["x = nn.Identity()"]),
    ("normalisation-removed", "from torch.nn import BatchNorm2d\nx = BatchNorm2d(3)", [
        'from torch.nn import BatchNorm2d\nx = __import__("torch.nn", fromlist=["Identity"]).Identity()']),
    ("normalisation-removed", "t = transforms.Normalize(m, s)", ["t = (lambda x: x)"]),
    ("shuffle-removed", "d = DataLoader(x, shuffle=True)", ["d = DataLoader(x, shuffle=False)"]),
    ("shuffle-removed", "o = torch.randperm(len(x))", ["o = torch.arange(len(x))"]),
    ("shuffle-removed", "o = rng.permutation(n)", ['o = __import__("numpy").arange(n)']),
    ("scaling-wrong", "x = x / 255", ["x = (x)", "x = x / 25.5"]),
    ("scaling-wrong", "x = (x - m) / x.std()", ["x = (x - m)"]),
    ("label-noise", "l = loss_fn(o, y[b])", ["l = loss_fn(o, (y[b]).roll(1, 0))"]),
    ("zero-grad-removed", "opt.zero_grad()", ["pass"]),
    ("eval-removed", "model.eval()", ["pass"]),
    ("eval-removed", "df.eval('a')", []),
    ("eval-removed", "net.train(False)", ["pass"]),
    ("eval-removed", "net.train(mode=False)", ["pass"]),
    ("eval-removed", "net.train(True)", []),
    ("wrong-axis", "x = o.argmax(1)", ["x = o.argmax(0)"]),
    ("wrong-axis", "x = o.softmax(dim=-1)", []),
    ("wrong-axis", "x = o.sum(dim=0)", ["x = o.sum(dim=1)"]),
    ("wrong-dtype", "x = (a > 0).long()", ["x = (a > 0).int()"]),
    ("wrong-dtype", "x = t(dtype=torch.float32)", ["x = t(dtype=torch.float64)"]),
    ("slice-off-by-one", "x = a[i:j]", ["x = a[(i) + 1:j]", "x = a[i:(j) - 1]"]),
    ("slice-off-by-one", "x = a[:n]", ["x = a[1:n]", "x = a[:(n) - 1]"]),
]


def mutants(text, operators):
    source = _syntax.Source("p.py", text, "utf-8")
    return [source.text[:first] + new + source.text[end:]
            for _, _, _, _, first, end, new, _ in _operators.sites(source, operators)]


class Operators(unittest.TestCase):
    def test_each_by_its_example(self):
        for name, text, expected in EXAMPLES:
            with self.subTest(name=name, text=text):
                self.assertEqual(mutants(text, {name}), expected)

    def test_every_operator_has_one(self):
        shown = {name for name, _, expected in EXAMPLES if expected}
        self.assertEqual({row[0] for row in _operators.OPERATORS} - shown, set())

    def test_the_first_eight_are_the_papers(self):
        self.assertEqual([row[0] for row in _operators.OPERATORS if row[1]],
                         ["ArOR", "BitOR", "ComOR", "LogOR", "AsOR", "MemOR", "BVR", "NVR"])

    def test_what_stands_in_for_a_bare_name_runs(self):
        library, nn = types.ModuleType("torch"), types.ModuleType("torch.nn")
        nn.ReLU, nn.Identity = (lambda: "a ReLU"), (lambda: "nothing")
        mutant, = mutants("from torch.nn import ReLU\nm = ReLU()", {"activation-removed"})
        names = {}
        with unittest.mock.patch.dict(sys.modules, {"torch": library, "torch.nn": nn}):
            exec(mutant, names)
        self.assertEqual(names["m"], "nothing")

    def test_positions_hold_with_other_letters_and_comments(self):
        self.assertEqual(mutants("x = 'äöü' + (a  # + not this\n     + b)", {"ArOR"}),
                         ["x = 'äöü' - (a  # + not this\n     + b)", "x = 'äöü' + (a  # + not this\n     - b)"])


PROGRAM = """import os
def never(a):
    return a + 1
def build():
    return [1, 2]
data = 5 * 3
layers = build()
for i in range(2):
    data += i
print("accuracy", data)
"""


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.path = self.write("program.py", PROGRAM.encode())

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def ask(self, *words, request=None, env=None):
        done = subprocess.run([sys.executable, os.path.join(PACKAGE, "_injection.py"), *words], capture_output=True, text=True,
                              input=json.dumps(request) if request else None, cwd=self.folder, env=env)
        return done

    def listed(self, **more):
        request = {"files": [{"path": self.path, "name": "program.py"}], "seed": 1, "out": self.folder, **more}
        done = self.ask("mutants", request=request)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def traced(self, *words):
        """The report of a traced run of the program, and what it printed."""
        read, write = os.pipe()
        done = subprocess.run([sys.executable, os.path.join(PACKAGE, "_injection.py"), "trace", '{"also": ["json"]}', "--", self.path, *words],
                              capture_output=True, text=True, pass_fds=(write,), env={**os.environ, "NETMEND_REPORT_FD": str(write)})
        os.close(write)
        with os.fdopen(read) as file:
            return json.load(file), done

    def test_lines_of_child_processes_count(self):
        self.write("helper.py", b"def helped():\n    return 3\nif __name__ == '__main__':\n    print(helped())\n")
        for name, count, body in (
                ("a pool of forks", 2, "with mp.get_context('fork').Pool(2) as pool:\n        pool.map(work, [1, 2])"),
                ("a pool of new interpreters", 2, "with mp.get_context('spawn').Pool(2) as pool:\n        pool.map(work, [1, 2])"),
                ("forks of a server", 1, "child = mp.get_context('forkserver').Process(target=work, args=(1,))\n    child.start(), child.join()"),
                ("a fork that is ended", 1, "if os.fork() == 0:\n        work(1)\n        os.kill(os.getpid(), 9)\n    os.wait()"),
                ("a fork that comes to the end", 1, "if os.fork() == 0:\n        work(1)\n    else:\n        os.wait()"),
                ("a program", 1, "subprocess.run([sys.executable, 'helper.py'], cwd=os.path.dirname(__file__), check=True)"),
                ("a program in a shell", 1, "os.system(f'cd {os.path.dirname(__file__)}; {sys.executable} helper.py; true')")):
            with self.subTest(name=name):
                self.path = self.write("program.py", ("import multiprocessing as mp, os, subprocess, sys\ndef work(n):\n    return n + 1\n"
                                                      f"if __name__ == '__main__':\n    {body}\n").encode())
                report, done = self.traced()
                self.assertEqual((done.stderr, report["children"], report["untraced"]), ("", count, 0))
                file, line = ("helper.py", "2") if "helper" in body else ("program.py", "3")
                self.assertIn(line, report["lines"][os.path.realpath(os.path.join(self.folder, file))])

    def test_a_python_that_nobody_sees_is_counted(self):
        self.path = self.write("program.py", b"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', 'pass'])\n"
                                             b"subprocess.run([sys.executable, '-c', 'pass'], env={})\nsubprocess.run(['true'])\n")
        report, _ = self.traced()
        self.assertEqual((report["children"], report["untraced"]), (0, 2))

    def test_a_trace_leaves_no_file_and_brings_no_module(self):
        self.path = self.write("program.py", b"import proposal\n")
        before = os.listdir(tempfile.gettempdir())
        _, done = self.traced()
        self.assertIn("No module named 'proposal'", done.stderr)
        self.assertEqual([name for name in os.listdir(tempfile.gettempdir()) if name.startswith("netmend-trace-") and name not in before], [])

    def test_only_executed_lines_get_mutants_and_a_trace_tells_which(self):
        lines, done = self.traced()
        self.assertEqual(done.stdout, "accuracy 16\n", done.stderr)
        self.assertEqual((lines["children"], lines["untraced"]), (0, 0))
        own = lines["lines"][os.path.realpath(self.path)]
        self.assertNotIn("3", own)
        self.assertIn("5", own)
        found = self.listed(files=[{"path": self.path, "name": "program.py", "lines": own}])
        self.assertNotIn(3, {one["line"] for one in found["mutants"]})
        self.assertIn(9, {one["line"] for one in found["mutants"]})

    def test_phases_that_are_none_are_no_phases(self):
        found = self.listed(files=[{"path": self.path, "name": "program.py", "lines": {"6": 3, "9": ["learning", "x", {}]}}])
        self.assertEqual({(one["line"], *one["phases"]) for one in found["mutants"]}, {(9, "learning")})

    def test_diffs_apply_and_ids_are_identities(self):
        found = self.listed()["mutants"]
        self.assertEqual(len({one["id"] for one in found}), len(found))
        for one in found:
            with open(one["written"]) as file:
                changed = file.read().split("\n")
            for line in one["diff"].split("\n")[3:]:
                if line.startswith("+"):
                    self.assertIn(line[1:], changed)
            self.assertTrue(one["diff"].startswith("--- a/program.py\n+++ b/program.py\n@@ -"))

    def test_the_seed_decides(self):
        first, again, other = (self.listed(sample=4, seed=seed)["mutants"] for seed in (1, 1, 2))
        self.assertEqual([one["id"] for one in first], [one["id"] for one in again])
        self.assertNotEqual([one["id"] for one in first], [one["id"] for one in other])
        self.assertEqual(len(first), 4)
        self.assertEqual(len(self.listed(per_file=3)["mutants"]), 3)

    def test_phases_by_marks_and_by_calls(self):
        marked = _syntax.Source("p", "a = 1\n# netmend: construction\nb = 2\n# netmend: learning\nc = 3\n", "utf-8")
        self.assertEqual(_syntax.phase_lines(marked), {1: "preprocessing", 3: "construction", 5: "learning"})
        calls = _syntax.Source("p", "def main():\n    x = read()\n    net = nn.Linear(2, 3)\n    for e in range(3):\n"
                                    "        net(x).backward()\n    print(x)\nif __name__ == '__main__':\n    main()\n", "utf-8")
        self.assertEqual(_syntax.phase_lines(calls), {2: "preprocessing", 3: "construction", 4: "learning", 5: "learning",
                                                      6: "learning"})

    def test_methods_run_in_the_phase_that_calls_them(self):
        text = "# netmend: construction\nclass Net(nn.Module):\n    width = 3\n\n    def forward(self, x):\n        return x + 1\nnet = Net()\n# netmend: learning\nfit(net)\n"
        self.assertEqual(_syntax.phase_lines(_syntax.Source("p", text, "utf-8")), {2: "construction", 3: "construction", 7: "construction", 9: "learning"})

    def test_conditions_of_elif_are_mutated_too(self):
        self.path = self.write("elif.py", b"x = 3\nif x > 4:\n    x = 1\nelif x == 3 and not x < 1:\n    x = 2\nelse:\n    x = 5\n")
        found = [one for one in self.listed()["mutants"] if one["line"] == 4]
        self.assertEqual({one["operator"] for one in found}, {"ComOR", "LogOR", "NVR"})

    def test_odd_programs(self):
        self.path = self.write("latin.py", "# -*- coding: latin-1 -*-\nx = 'é' + 'a'\nif x:\n\ty = 1\n".encode("latin-1"))
        found = self.listed()["mutants"]
        with open(next(one["written"] for one in found if one["operator"] == "ArOR"), "rb") as file:
            self.assertIn("'é' - 'a'".encode("latin-1"), file.read())
        self.path = self.write("windows.py", b"x = 1\r\ny = x + 1\r\n")
        with open(next(one["written"] for one in self.listed()["mutants"] if one["operator"] == "ArOR"), "rb") as file:
            self.assertEqual(file.read(), b"x = 1\r\ny = x - 1\r\n")
        for name, content, words in (("broken.py", b"x = (", "not valid Python"), ("bytes.py", b"x = '\xff\xfe'", "cannot be decoded")):
            done = self.ask("inspect", self.write(name, content), self.folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, json.loads(done.stdout)["error"])

    def test_a_notebook_is_its_code_cells(self):
        cells = [{"cell_type": "markdown", "source": ["no code"]}, {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1 + 2"]},
                 {"cell_type": "code", "source": "print('accuracy', x)"}]
        done = self.ask("inspect", self.write("n.ipynb", json.dumps({"cells": cells}).encode()), self.folder)
        with open(json.loads(done.stdout)["program"]) as file:
            text = file.read()
        self.assertIn("# %matplotlib inline\nx = 1 + 2\n", text)
        self.assertIn("print('accuracy', x)", text)

    def test_a_thousand_mutants_of_a_thousand_lines_take_two_seconds(self):
        lines = "\n".join(f"def f{i}(a, b=True):\n    c = a + {i} * 2\n    if c > 3 and not b:\n        c -= 1\n    return c" for i in range(200))
        self.path = self.write("long.py", lines.encode())
        import time
        start = time.process_time(), os.times().children_user
        found = self.listed(sample=1000)
        self.assertEqual(len(found["mutants"]), 1000)
        self.assertLess(os.times().children_user - start[1], 2)


if __name__ == "__main__":
    unittest.main()
