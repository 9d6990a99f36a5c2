"""The recorder: what it must not change, what it must survive, what it writes."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from .support import HERE, needs_torch, tensorflow

SITE = os.path.join(HERE, "netmend", "watch", "site")

TRAIN = """
import hashlib, random, sys, torch
import numpy
torch.manual_seed(1); random.seed(1); numpy.random.seed(1); torch.set_num_threads(1)
x = torch.randn(256, 1, 8, 8); y = torch.randint(0, 3, (256,))
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(144, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True, num_workers=WORKERS)
for epoch in range(3):
    net.train()
    for a, b in loader:
        opt.zero_grad(); loss = torch.nn.functional.cross_entropy(net(a), b); loss.backward(); opt.step()
        MORE
    net.eval()
    with torch.no_grad(): print(float(torch.nn.functional.cross_entropy(net(x), y)))
digest = hashlib.sha256()
for value in net.state_dict().values(): digest.update(value.double().numpy().tobytes())
print(digest.hexdigest(), torch.rand(2).tolist(), random.random(), numpy.random.rand())
"""


def run(program, watched=True, folder=None, timeout=300, **more):
    """The program's exit status, output and record, as `netmend watch` would start it; `more`: its environment."""
    folder = folder or tempfile.mkdtemp(prefix="netmend-watch-")
    file = os.path.join(folder, "train.py")
    with open(file, "w") as opened:
        opened.write(program)
    environment = dict(os.environ, PYTHONPATH=SITE, NETMEND_WATCH=os.path.join(folder, "run"), **more) if watched else dict(os.environ)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=environment, timeout=timeout, stdin=subprocess.DEVNULL, cwd=folder)
    return done, read(os.path.join(folder, "run", "record.jsonl")) if watched else None


def read(path):
    with open(path) as opened:
        return [json.loads(line) for line in opened]


def of(record, event):
    return [line for line in record if line.get("e") == event]


class WithoutFramework(unittest.TestCase):
    def test_a_program_without_training_leaves_a_record_that_says_so(self):
        done, record = run("print('hello')")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "hello\n", ""))
        self.assertEqual(record[0]["netmend"], "training-record")
        self.assertEqual([line["e"] for line in record[1:]], ["end"])

    def test_failures_and_exit_status_are_the_programs_own(self):
        done, record = run("import sys; sys.exit(7)")
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        plain, _ = run("1 / 0", watched=False)
        done, record = run("1 / 0")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[-1], plain.stderr.splitlines()[-1])
        self.assertEqual(of(record, "failed")[0]["source"], "train.py:1")

    def test_an_own_sitecustomize_still_runs(self):
        folder = tempfile.mkdtemp()
        with open(os.path.join(folder, "sitecustomize.py"), "w") as opened:
            opened.write("import builtins; builtins.marked = True\n")
        environment = dict(os.environ, PYTHONPATH=SITE + os.pathsep + folder, NETMEND_WATCH=os.path.join(folder, "run"))
        done = subprocess.run([sys.executable, "-c", "print(marked)"], capture_output=True, text=True, env=environment)
        self.assertEqual(done.stdout, "True\n", done.stderr)

    def test_a_million_steps_stay_small_and_keep_spikes(self):
        from netmend.watch._record import Record, Series
        path = os.path.join(tempfile.mkdtemp(), "record.jsonl")
        record = Record(path)
        series = Series(record, 0)
        for step in range(1_000_000):
            series.add(1000.0 if step == 777_777 else 1.0 / (1 + step), 0.1)
        series.write()
        record.flush()
        self.assertLess(os.path.getsize(path), 10_000_000)
        lines = of(read(path), "series")
        steps = sum(len(line["loss"]) * line["every"] for line in lines)
        self.assertGreater(steps, 990_000)
        self.assertEqual(max(max(line.get("largest", [0])) for line in lines), 1000.0)

    def test_a_full_record_ends_like_any_other(self):
        from netmend.watch import _record
        path, most = os.path.join(tempfile.mkdtemp(), "record.jsonl"), _record.MOST_BYTES
        _record.MOST_BYTES = _record.END_BYTES + 20_000
        try:
            record = _record.Record(path)
            for step in range(300):
                record.say("step", step=step, text="x" * 200)
                record.flush()
            record.say("summary", steps=300, largest_gradient={"value": 9.0})
            record.say("end", now=True)
        finally:
            _record.MOST_BYTES = most
        lines = read(path)
        self.assertEqual([line["e"] for line in lines[-3:]], ["full", "summary", "end"])
        self.assertLess(len(lines), 120)

    def test_reasons_to_stop(self):
        from netmend.watch._stop import StopRules
        rules = StopRules(["diverged"])
        for step in range(1000):
            rules.add(2.0 / (1 + step))
        self.assertEqual(rules.why, "")
        for step in range(150):
            rules.add(5.0)
        self.assertIn("grew", rules.why)
        rules = StopRules(["constant", "dead"])
        for step in range(99):
            rules.add(0.5)
        self.assertEqual(rules.why, "")
        rules.add(0.5)
        self.assertIn("100 steps", rules.why)
        rules = StopRules(["dead"])
        for look in range(9):
            rules.look({"3": {"d": 1.0 if look > 3 else 0.9}, "3.weight": {"g": 1}}, False)
            self.assertEqual(bool(rules.why), look == 8)

    def test_the_rank_test(self):
        from netmend.watch._torch_probe import rank_test
        self.assertLess(rank_test(list(range(20)), list(range(100, 120))), 1e-6)
        self.assertGreater(rank_test(list(range(100, 120)), list(range(20))), 0.999)
        self.assertAlmostEqual(rank_test([1] * 20, [1] * 20), 0.5, places=6)
        self.assertAlmostEqual(rank_test(list(range(0, 40, 2)), list(range(1, 41, 2))), 0.39, places=2)

    def test_numbers_that_json_has_no_word_for(self):
        from netmend.watch._record import number
        self.assertEqual([number(float("nan")), number(float("inf")), number(-float("inf")), number(0.1)], ["NaN", "Inf", "-Inf", 0.1])


@needs_torch
class WithTorch(unittest.TestCase):
    def test_nothing_changes(self):
        for workers in ("0", "2"):
            program = TRAIN.replace("WORKERS", workers).replace("MORE", "")
            plain, _ = run(program, watched=False)
            done, record = run(program)
            self.assertEqual(plain.returncode, 0, plain.stderr)
            self.assertEqual(done.stdout, plain.stdout, "weights, random numbers or output differ")
            self.assertEqual(done.stderr, plain.stderr)
            self.assertEqual(of(record, "trouble"), [])
            self.assertEqual(sum(len(line["loss"]) for line in of(record, "series")), 24)
            self.assertEqual(of(record, "summary")[0]["violations"]["Z1"], 0)
            self.assertEqual(of(record, "fact"), [{**line, "holds": True} for line in of(record, "fact")])

    def test_a_crash_and_a_kill_leave_what_was_seen(self):
        done, record = run(TRAIN.replace("WORKERS", "0").replace("MORE", "assert opt.state[next(net.parameters())]['step'] < 9"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("AssertionError", of(record, "failed")[0]["error"])
        self.assertEqual(sum(len(line["loss"]) for line in of(record, "series")), 9)
        done, record = run(TRAIN.replace("WORKERS", "0").replace("MORE", "import time; time.sleep(0.3); import os\n        if epoch: os.kill(os.getpid(), 9)"))
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertGreaterEqual(sum(len(line["loss"]) for line in of(record, "series")), 7)
        self.assertEqual(of(record, "end"), [])

    def test_evaluation_files_and_frozen_weights_are_checked(self):
        program = """
import torch, torch.nn.functional as F
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.a = torch.nn.Linear(8, 16); self.b = torch.nn.Linear(16, 2); self.a.bias.requires_grad_(False)
    def forward(self, x): return self.b(F.dropout(torch.relu(self.a(x)), TRAINING))
net = Net(); opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
x = torch.randn(200, 8); y = (x[:, 0] > 0).long()
for epoch in range(5):
    net.train()
    for i in torch.randperm(160).split(16):
        opt.zero_grad(); F.cross_entropy(net(x[i]), y[i]).backward(); opt.step()
    MORE
    net.eval()
    with torch.no_grad(): F.cross_entropy(net(x[160:]), y[160:])
torch.save(net.state_dict(), "w.pt")
print(torch.rand(1))
"""
        right, wrong = program.replace("TRAINING", "training=self.training").replace("MORE", ""), program.replace("TRAINING", "0.5").replace("MORE", "net.a.bias.data += 1")
        for text, holds in ((right, True), (wrong, False)):
            plain, _ = run(text, watched=False)
            done, record = run(text)
            self.assertEqual(done.stdout, plain.stdout)
            facts = {line["check"]: line["holds"] for line in of(record, "fact")}
            self.assertEqual((facts["E1"], facts.get("U2", True), facts["C1"]), (holds, holds, True), facts)

    def test_a_long_run_keeps_every_loss(self):
        program = """
import torch
torch.manual_seed(0); torch.set_num_threads(1)
x = torch.randn(64, 4); y = torch.randint(0, 2, (64,)); net = torch.nn.Linear(4, 2); opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3000):
    opt.zero_grad(); loss = torch.nn.functional.cross_entropy(net(x), y); (loss * (float("nan") if step == 2500 else 1)).backward(); opt.step()
    if step % 500 == 499:
        net.eval(); net(x); net.train()
"""
        done, record = run(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(of(record, "trouble"), [])
        losses = [one for line in of(record, "series") for one in line["loss"]]
        self.assertEqual(len(losses), 3000)
        self.assertEqual(losses.index("NaN"), 2500)
        self.assertEqual(of(record, "nonfinite")[0]["step"], 2501)
        self.assertEqual(of(record, "summary")[0]["steps"], 3000)
        self.assertEqual(of(record, "ring")[0]["steps"][-1][0], 2500)

    def test_the_producer_of_nan_is_named_with_its_line(self):
        program = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.a = torch.nn.Linear(4, 4); self.b = torch.nn.Linear(4, 2)
    def forward(self, x):
        h = torch.relu(self.a(x)) * 0
        h = torch.log(h)
        return self.b(h)
torch.manual_seed(0); net = Net(); opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad(); loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))); loss.backward(); opt.step()
"""
        done, record = run(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = of(record, "nonfinite")[0]
        self.assertEqual((found["operation"], found["source"]), ("log", "train.py:8"))
        self.assertTrue(of(record, "ring"))

    def test_an_operation_whose_gradient_is_not_finite_is_named_before_the_weights_are_spoilt(self):
        program = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.a = torch.nn.Linear(4, 8); self.b = torch.nn.Linear(8, 2)
    def forward(self, x):
        h = torch.relu(self.a(x))
        h = torch.sqrt(h.sum(1, keepdim=True) * FACTOR) + h
        return self.b(h)
torch.manual_seed(0); net = Net(); opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(AT + 3):
    FACTOR = 0.0 if step == AT else 1.0
    opt.zero_grad(); loss = torch.nn.functional.cross_entropy(net(torch.rand(8, 4)), torch.randint(0, 2, (8,))); loss.backward(); opt.step()
    if step == AT - 1: torch.save(net.state_dict(), "w.pt")
print(torch.rand(1))
"""
        for at in (2, 1500):  # among the first steps, and where most steps are only counted
            text = program.replace("AT", str(at))
            plain, _ = run(text, watched=False)
            done, record = run(text)
            self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
            found = of(record, "nonfinite")[0]
            self.assertEqual((found["what"], found["operation"], found["source"], found["step"]), ("backward", "sqrt", "train.py:8", at + 1))
            self.assertEqual((found["checkpoint"], found["checkpoint_step"]), ("w.pt", at))
            self.assertTrue(of(record, "ring"))

    def test_the_probe_changes_nothing_and_finds_what_it_looks_for(self):
        program = TRAIN.replace("WORKERS", "0").replace("MORE", "")
        plain, _ = run(program, watched=False)
        os.environ["NETMEND_WATCH_PROBE"] = "1"
        try:
            done, record = run(program)
            wrong, other = run("import runpy, sys; sys.path.append(%r); sys.argv = ['p', 'wrong-gradient']; runpy.run_module('netmend.planted', run_name='__main__')" % HERE)
        finally:
            del os.environ["NETMEND_WATCH_PROBE"]
        self.assertEqual(done.stdout, plain.stdout)
        found = {line["probe"]: line for line in of(record, "probe")}
        self.assertEqual((found["one-batch"]["error"], found["gradient"]["names"]), (0.0, []), found)
        self.assertLess(found["one-batch"]["blind_p"], 0.01)
        self.assertEqual(wrong.returncode, 0, wrong.stderr)
        self.assertIn("0.weight", {line["probe"]: line for line in of(other, "probe")}["gradient"]["names"])

    def test_inputs_are_compared_by_all_their_bits(self):
        import torch
        from netmend.watch._torch_stats import row_keys
        draw = torch.Generator().manual_seed(3)
        for make in (lambda: torch.randn(2000, 7, generator=draw), lambda: torch.randint(0, 3, (2000, 7), generator=draw),
                     lambda: torch.randn(2000, 7, generator=draw).bfloat16(), lambda: torch.rand(2000, 7, generator=draw) > 0.5):
            x = make()
            keys = row_keys(torch, x)
            self.assertEqual(len(set(keys)), len({tuple(row) for row in x.tolist()}))
            self.assertEqual(keys[:9], row_keys(torch, x[:9].clone()))
        x = torch.randn(1, 50, generator=draw)
        other = x.clone()
        other[0, 17] = torch.nextafter(other[0, 17], torch.tensor(9.0))
        self.assertNotEqual(row_keys(torch, x), row_keys(torch, other))

    def test_sound_programs_violate_nothing(self):
        for name, program in SOUND.items():
            done, record = run("import torch\nfrom torch import nn\nF = nn.functional\ntorch.manual_seed(0)\n" + program)
            self.assertEqual(done.returncode, 0, (name, done.stderr[-800:]))
            broken = [line for line in of(record, "fact") if not line["holds"] and line["check"] != "U3"]  # clipping is told as a note
            self.assertEqual(broken, [], name)
            self.assertEqual([line["what"] for line in of(record, "trouble")], [], name)


KERAS = """
import os
os.environ["KERAS_BACKEND"] = "BACKEND"; os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras, numpy
keras.utils.set_random_seed(0)
x = numpy.random.randn(400, 8).astype("float32"); y = (x[:, 0] > 0).astype("int32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
loss_of, opt = keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.SGD(0.1)
BODY
print([float(numpy.abs(one).sum()) for one in model.get_weights()], numpy.random.rand())
"""
FIT = "model.compile(opt, loss_of, metrics=['accuracy']); model.fit(x, y, epochs=4, batch_size=20, verbose=0, validation_data=(x[:50] + 1, y[:50]))"
TAPE = """
import tensorflow as tf
DECORATED
def step(a, b):
    with tf.GradientTape() as tape: loss = loss_of(b, model(a, training=True))
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
    return loss
for i in range(100): step(x[i % 20 * 20:i % 20 * 20 + 20], y[i % 20 * 20:i % 20 * 20 + 20])
"""


class WithKeras(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tensorflow()

    def same(self, backend, body):
        program = KERAS.replace("BACKEND", backend).replace("BODY", body)
        plain, _ = run(program, watched=False)
        self.assertEqual(plain.returncode, 0, plain.stderr[-800:])
        done, record = run(program)
        self.assertEqual(done.stdout, plain.stdout, "weights, random numbers or output differ")
        return record

    def test_fit(self):
        record = self.same("tensorflow", FIT)
        self.assertEqual([len(of(record, event)) for event in ("fit", "epoch", "trouble", "end")], [1, 4, 0, 1])
        self.assertEqual(sum(len(line["loss"]) for line in of(record, "series")), 80)
        self.assertTrue(all("g" in row for row in of(record, "step")[0]["layers"].values() if "w" in row))

    def test_a_loop_with_a_gradient_tape(self):
        record = self.same("tensorflow", TAPE.replace("DECORATED", ""))
        self.assertEqual(sum(len(line["loss"]) for line in of(record, "series")), 100)
        self.assertEqual((of(record, "fit")[0]["loss"], of(record, "fit")[0]["from_logits"]), ("sparse_categorical_crossentropy", True))
        self.assertEqual([line["role"] for line in of(record, "model")[0]["layers"]], ["linear", "linear"])
        self.assertTrue(all(row["g"] > 0 and row["u"] > 0 for row in of(record, "step")[0]["layers"].values()))
        self.assertEqual(of(record, "trouble"), [])

    def test_a_loop_inside_a_function_of_tensorflow(self):
        record = self.same("tensorflow", TAPE.replace("DECORATED", "@tf.function"))
        self.assertEqual(of(record, "summary")[0]["steps"], 100)
        self.assertEqual(["tf.function" in line["what"] for line in of(record, "trouble")], [True])

    def test_each_condition_ends_a_run_that_meets_it(self):
        hook = """
class Change(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 6: self.model.save_weights("w.weights.h5")
        if epoch > 6: self.model.set_weights([CHANGED for one in self.model.get_weights()])
"""
        fit = "model.compile(opt, loss_of); model.fit(x, y, epochs=30, batch_size=20, verbose=0, callbacks=[HOOKS])"
        changed = lambda how: hook.replace("CHANGED", how) + fit.replace("HOOKS", "Change()")
        bodies = {"nan": changed("one * numpy.nan"), "diverged": changed("one + 8 * numpy.random.randn(*one.shape)"),
                  "dead": "model.layers[0].set_weights([model.layers[0].get_weights()[0], numpy.full(16, -20.0)]);" + fit.replace("HOOKS", ""),
                  "constant": "opt = keras.optimizers.SGD(0.0);" + fit.replace("HOOKS", "")}
        for word, body in bodies.items():
            with self.subTest(word):
                done, record = run(KERAS.replace("BACKEND", "tensorflow").replace("BODY", body), NETMEND_STOP_WHEN=word)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr[-500:])
                stopped, = of(record, "stopped")
                self.assertEqual(stopped["checkpoint"], "w.weights.h5" if word in ("nan", "diverged") else "")
                self.assertEqual(of(record, "fit-failed"), [])
        done, record = run(KERAS.replace("BACKEND", "tensorflow").replace("BODY", fit.replace("HOOKS", "")), NETMEND_STOP_WHEN="nan,diverged,dead,constant")
        self.assertEqual((done.returncode, of(record, "stopped")), (0, []), "a sound run is ended")

    def test_one_batch_is_learnt_by_heart_after_the_run(self):
        program = KERAS.replace("BACKEND", "tensorflow").replace("BODY", FIT)
        plain, _ = run(program, watched=False)
        done, record = run(program, NETMEND_WATCH_PROBE="1")
        self.assertEqual(done.stdout, plain.stdout)
        probe, = of(record, "probe")
        self.assertEqual((probe["rows"], probe["error"], of(record, "trouble")), (16, 0, []))
        self.assertLess(probe["blind_p"], 0.01)
        _, record = run(program.replace("Dense(2)", "Dense(2, activation='softplus', bias_initializer=keras.initializers.Constant(-80))"), NETMEND_WATCH_PROBE="1")
        self.assertGreater(of(record, "probe")[0]["error"], 0.2, "outputs that are 0 cannot be learnt")

    @needs_torch
    def test_fit_on_pytorch(self):
        import torch
        if tuple(int(one) for one in torch.__version__.split("+")[0].split(".")[:2] if one.isdigit()) < (2, 1):
            self.skipTest("Keras 3 needs PyTorch 2.1")
        record = self.same("torch", FIT)
        self.assertEqual([len(of(record, event)) for event in ("fit", "epoch", "trouble", "end")], [1, 4, 0, 1])
        self.assertTrue(all("g" in row for row in of(record, "step")[0]["layers"].values() if "w" in row))


# Programs that do unusual things on purpose.
SOUND = {
    "gan": """
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)); D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
g = torch.optim.Adam(G.parameters()); d = torch.optim.Adam(D.parameters()); bce = nn.BCEWithLogitsLoss()
for _ in range(20):
    real, fake = torch.randn(16, 2), G(torch.randn(16, 4))
    d.zero_grad(); (bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))).backward(); d.step()
    g.zero_grad(); bce(D(fake), torch.ones(16, 1)).backward(); g.step()
""",
    "accumulation": """
net = nn.Linear(4, 2); opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(40):
    (F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))) / 4).backward()
    if i % 4 == 3: opt.step(); opt.zero_grad()
""",
    "gradients set to None by hand": """
net = nn.Linear(4, 2); opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(20):
    for p in net.parameters(): p.grad = None
    F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward(); opt.step()
""",
    "lora on a frozen base": """
class Lora(nn.Module):
    def __init__(self):
        super().__init__(); self.base = nn.Linear(8, 8); self.base.requires_grad_(False); self.a = nn.Linear(8, 2, bias=False); self.b = nn.Linear(2, 8, bias=False); nn.init.zeros_(self.b.weight)
    def forward(self, x): return self.base(x) + self.b(self.a(x))
net = nn.Sequential(Lora(), nn.ReLU(), nn.Linear(8, 2)); opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2)
for _ in range(20):
    opt.zero_grad(); F.cross_entropy(net(torch.randn(16, 8)), torch.randint(0, 2, (16,))).backward(); opt.step()
""",
    "moving average of weights": """
import copy
net = nn.Linear(4, 2); ema = copy.deepcopy(net); opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(20):
    opt.zero_grad(); F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward(); opt.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), net.parameters()): a.mul_(0.9).add_(b, alpha=0.1)
        ema(torch.randn(2, 4))
""",
    "l-bfgs": """
net = nn.Linear(4, 1); opt = torch.optim.LBFGS(net.parameters()); x, y = torch.randn(32, 4), torch.randn(32, 1)
def closure():
    opt.zero_grad(); loss = F.mse_loss(net(x), y); loss.backward(); return loss
for _ in range(5): opt.step(closure)
""",
    "recurrent": """
rnn, head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 2); opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for _ in range(10):
    opt.zero_grad(); F.cross_entropy(head(rnn(torch.randn(8, 5, 3))[0][:, -1]), torch.randint(0, 2, (8,))).backward(); opt.step()
""",
    "schedule, clipping, autocast": """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)); opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
for _ in range(20):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16): loss = F.cross_entropy(net(torch.randn(16, 4)), torch.randint(0, 2, (16,)))
    loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step(); plan.step()
torch.save(net, "/dev/null")
""",
}


if __name__ == "__main__":
    unittest.main()
