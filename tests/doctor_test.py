"""The training doctor: watch, diagnose, lint, heal. Records are written here by hand; the slow part trains with PyTorch.

usage: doctor_test.py NETMEND [fast|slow]
"""
import json, os, subprocess, sys, threading, time

from shell import NETMEND, PYTHON, Case, main, needs, parse, read, read_json, start, write

sys.path.insert(0, os.path.join(PYTHON, "netmend"))
import forest as doctor_forest
import planted  # its table of faults; imports no framework

HEADER = {"netmend": "training-record", "version": 1, "time": 1.0}


def record(folder, *lines, end=True):
    """A record as the recorder writes it."""
    os.makedirs(folder, exist_ok=True)
    rows = [HEADER, *({"e": line[0], **line[1]} for line in lines), *([{"e": "end"}] if end else [])]
    write(os.path.join(folder, "record.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    return folder


def losses(*values, **more):
    return ("series", {"optimizer": 0, "from": 1, "every": 1, "loss": list(values), **more})


FALLING = [2.0 / (1 + 0.2 * i) for i in range(100)]
KERAS = [("model", {"parameters": 9, "trainable": 9, "layers": [{"name": "d", "role": "linear", "units": 1}]}),
         ("graph", {"last": "softmax", "weighted": 1, "pair_count": 0}),
         ("data", {"targets": {"min": 0, "max": 1, "whole": True, "width": 1, "classes": 2, "counts": {"0": 50, "1": 50}}}),
         ("fit", {"epochs": 5, "rows": 100, "batch": 32, "loss": "binary_crossentropy", "validation": True})]


class Diagnose(Case):
    def kinds(self, folder, *more, code=0):
        return [(one["kind"], one["level"]) for one in self.json("diagnose", folder, *more, code=code)["findings"]]

    def test_a_sound_record_raises_nothing(self):
        self.assertEqual(self.kinds(record("r", losses(*FALLING))), [])
        self.assertIn("Nothing above a note was found", self.ok("diagnose", "r").stdout)

    def test_findings_are_ranked_and_decide_the_exit_status(self):
        record("r", *KERAS, losses(*[0.7] * 30))
        found = self.json("diagnose", "r")
        first = found["findings"][0]
        self.assertEqual((first["kind"], first["level"], first["certainty"]), ("output-activation", "serious", "confirmed"))
        self.assertIn("netmend why output-activation", first["next"])
        self.assertEqual(self.kinds("r", "--fail-on", "serious", code=1)[0][0], "output-activation")
        for line in self.ok("diagnose", "r", env={**os.environ, "COLUMNS": "80"}).stdout.splitlines():
            self.assertNotIn("\x1b", line)

    def test_records_that_are_damaged_cut_or_strange(self):
        record("r", losses(*FALLING), end=False)
        self.assertIn("no end", " ".join(self.json("diagnose", "r")["unknown"]))
        whole = read("r/record.jsonl")
        write("r/record.jsonl", whole[:-20])
        self.assertIn("no end", " ".join(self.json("diagnose", "r")["unknown"]))
        write("r/record.jsonl", whole + "\x00garbage\n{}\n[1]\n")
        self.assertIn("damaged", " ".join(self.json("diagnose", "r")["unknown"]))
        record("n", losses(*["NaN"] * 50))
        self.assertEqual(self.kinds("n")[0], ("non-finite-training", "serious"))
        record("one", losses(0.5))
        self.assertIn("only 1 step", " ".join(self.json("diagnose", "one")["unknown"]))
        record("bad", ("step", {"layers": {"\x1b[31mred\u202e": {"d": 1.0, "act": "relu"}}}), losses(*[1.0] * 20))
        self.assertNotIn("\x1b", self.ok("diagnose", "bad").stdout)
        write("r/record.jsonl", json.dumps({**HEADER, "version": 9}) + "\n")
        self.refused("diagnose", "r", words=["version 9"])
        self.refused("diagnose", "nowhere")
        os.makedirs("empty")
        self.refused("diagnose", "empty", words=["netmend watch"])

    def test_a_million_steps(self):
        record("r", *[("series", {"optimizer": 0, "from": 1 + 500 * i, "every": 1, "loss": [2.0 / (1 + i)] * 500}) for i in range(2000)])
        begin = time.time()
        self.assertEqual(self.json("diagnose", "r")["summary"]["steps"], 1_000_000)
        self.assertLess(time.time() - begin, 20)

    def test_a_csv_of_epochs(self):
        rows = ["epoch,loss,val_loss"] + [f"{i},{1 / (i + 1)},{1.0 - 0.1 * i if i < 3 else 0.7 + 0.15 * i}" for i in range(10)]
        write("log.csv", "\n".join(rows) + "\n")
        self.assertEqual(self.kinds("log.csv")[0], ("over-fitting-run", "minor"))

    def test_sets_of_rules_and_thresholds(self):
        record("r", ("loss", {"type": "cross_entropy", "shape": [8, 2], "min_target": 0, "max_target": 1, "all_targets_whole": True,
                              "counts": {"0": 400, "1": 60}}), losses(*FALLING))
        self.assertEqual(self.kinds("r"), [])
        write("t.toml", "imbalance = 3\n")
        self.assertIn("unbalanced-training", [kind for kind, _ in self.kinds("r", "--thresholds", "t.toml")])
        write("t.toml", "imbalanse = 3\n")
        self.refused("diagnose", "r", "--thresholds", "t.toml", words=["did you mean imbalance"])
        self.refused("diagnose", "r", "--rules", "autotrainr", words=["did you mean autotrainer"])
        listed = self.json("diagnose", "--list")
        self.assertGreaterEqual(len(listed["rules"]), 60)
        for set in {row["set"] for row in listed["rules"]}:
            self.json("diagnose", "r", "--rules", set)

    def test_two_trainings_are_compared(self):
        record("a", *KERAS, losses(0.7, 0.7, 0.7, 0.7))
        record("b", losses(0.7, 0.7, *(0.6 / (1 + 0.2 * i) for i in range(100))))
        found = self.json("compare", "a", "b")
        self.assertEqual((found["first_difference"], found["gone"], found["new"]), (3, ["output-activation"], []))
        self.assertIn("differ from step 3", self.ok("compare", "a", "b").stdout)

    def test_live_ends_with_the_run(self):
        record("r", losses(*FALLING), end=False)

        def finish():
            time.sleep(1.5)
            with open("r/record.jsonl", "a") as file:
                file.write('{"e":"nonfinite","step":101,"what":"operation","operation":"log"}\n{"e":"end"}\n')

        writer = threading.Thread(target=finish)
        writer.start()
        said = self.ok("diagnose", "r", "--live", timeout=60).stdout
        writer.join()
        self.assertIn("non-finite-training", said)


def fits(value, rule, root, path="document"):
    """What of the report schema's keywords concerns the training section."""
    if "$ref" in rule:
        return fits(value, root["$defs"][rule["$ref"].split("/")[-1]], root, path)
    kinds = {"string": str, "integer": int, "number": (int, float), "object": dict, "array": list, "null": type(None), "boolean": bool}
    if "type" in rule:
        types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        assert any(isinstance(value, kinds[one]) for one in types), f"{path} is {value!r}"
    if "enum" in rule:
        assert value in rule["enum"], f"{path} is {value!r}"
    if isinstance(value, dict) and "properties" in rule:
        assert set(rule["required"]) <= set(value), f"{path} lacks {set(rule['required']) - set(value)}"
        if rule.get("additionalProperties") is False:
            assert set(value) <= set(rule["properties"]), f"{path} has {set(value) - set(rule['properties'])}"
        for key, one in value.items():
            if key in rule["properties"]:
                fits(one, rule["properties"][key], root, f"{path}.{key}")
    if isinstance(value, list) and "items" in rule:
        for at, one in enumerate(value):
            fits(one, rule["items"], root, f"{path}[{at}]")


class Page(Case):
    def test_a_record_becomes_a_page(self):
        record("r", *KERAS, ("step", {"step": 1, "layers": {"d": {"g": 0.5, "n": 4, "w": 1.0, "u": 0.01, "a": "NaN", "d": 0.5}}}),
               losses(0.7, 0.7, "NaN", 0.6, 0.5), ("nonfinite", {"step": 3, "what": "operation", "operation": "</script><b>log", "layer": "d"}))
        self.ok("diagnose", "r", "-o", "page.html")
        page = read("page.html")
        document = json.loads(page.split('id="report">')[1].split("</script>")[0])
        with open(os.path.join(os.path.dirname(PYTHON), "report", "evidence.schema.json")) as file:
            schema = json.load(file)
        fits(document, schema, schema)
        self.assertEqual([one["name"] for one in document["training"]["curves"]], ["loss"])
        self.assertEqual(document["training"]["curves"][0]["value"][2], None)
        self.assertEqual(document["training"]["events"][0]["step"], 3)
        self.assertNotIn("</script><b>", page)
        self.refused("diagnose", "nowhere", "-o", "other.html")


OWN = ["train", "m.onnx", "--data", "glyphs", "--limit", "400", "--epochs", "4", "--optimiser", "sgd", "--quiet"]


class OwnTrainer(Case):
    def setUp(self):
        super().setUp()
        self.ok("lab", "new", "mlp:784-12-10", "-o", "m.onnx")

    def test_a_training_leaves_the_record_that_watch_writes(self):
        self.ok(*OWN, "--rate", "0.05", "-o", "t.onnx", "--out", "r")
        found = self.json("diagnose", "r")
        self.assertEqual((found["summary"]["steps"], found["summary"]["epochs"], found["summary"]["complete"]), (52, 4, True))
        self.assertEqual(found["unknown"], [])
        self.assertTrue(os.path.exists("r/report.html"))
        self.ok(*OWN, "--rate", "0.05", "-o", "u.onnx", "--out", "s")
        self.assertEqual(self.json("compare", "r", "s")["first_difference"], 0)

    def test_one_that_diverges_is_healed(self):
        self.refused(*OWN, "--rate", "1e35", "-o", "t.onnx", "--out", "r", words=["diverged"])
        found = self.json("diagnose", "r", "--fail-on", "never")["findings"]
        self.assertEqual(found[0]["kind"], "learning-rate-high")
        healed = self.json("heal", "r", "--out", "h", "-o", "healed.onnx", "--random")
        self.assertTrue(healed["healed"], healed)
        self.assertEqual(healed["product"], "healed.onnx")
        self.assertGreater(healed["after"]["held_out"]["accuracy"], 0.3)
        self.assertGreaterEqual(healed["random"]["cost"], 0)
        self.assertGreater(self.json("eval", "healed.onnx", "--data", "glyphs:test,limit=200")["accuracy"], 0.3)
        self.assertIn("kept", self.ok("heal", "r", "--out", "g").stdout)
        os.makedirs("elsewhere")
        self.refused("heal", "../r", cwd="elsewhere", words=["the training ran in"])

    def test_heal_while_training(self):
        done = self.ok(*OWN, "--rate", "1e-9", "-o", "t.onnx", "--heal")
        self.assertIn("Healed", done.stdout)
        self.refused(*OWN, "--rate", "1", "-o", "t.onnx", "--heal", "--json", words=["--heal and --json"])


TUNABLE = """import sys, json
from netmend.watch import settings, record_metrics
s = settings(lr=10.0, optimizer="sgd", choices={"optimizer": ["sgd", "adam"]})
open("used.txt", "a").write(json.dumps(s) + "\\n")
for epoch in range(1, 11):
    value = 1 / epoch if s["lr"] < 0.5 else float(epoch * epoch)
    record_metrics(loss=value, val_loss=value)
"""


class HealPrograms(Case):
    def setUp(self):
        super().setUp()
        os.environ["PYTHONPATH"] = PYTHON
        self.addCleanup(os.environ.pop, "PYTHONPATH")

    def watched(self, text, folder="r"):
        write("train.py", text)
        self.ok("watch", "--quiet", "--out", folder, "--", sys.executable, "train.py")

    def test_a_program_that_exposes_its_settings_runs_again_in_a_copy(self):
        self.watched(TUNABLE)
        self.assertIn("10.0", read("used.txt"))
        self.refused("heal", "r", "--out", "h", words=["netmend heal r -- " + sys.executable + " train.py"])  # not because a file says so
        self.refused("heal", "r", "--out", "h", "--", sys.executable, "other.py", words=["another program"])
        self.assertEqual(len(read("used.txt").splitlines()), 1)
        healed = parse(self.ok("heal", "r", "--json", "--out", "h", "--", sys.executable, "train.py").stdout)
        self.assertTrue(healed["healed"], healed)
        self.assertLess(healed["after"]["settings"]["rate"], 0.5)
        self.assertIn("NETMEND_SETTINGS=", healed["command"])
        self.assertEqual(len(read("used.txt").splitlines()), 1)  # only copies were run
        done = subprocess.run(healed["command"], shell=True, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(json.loads(read("used.txt").splitlines()[-1])["lr"], 0.5)

    def test_ask_proposes_and_waits(self):
        self.watched(TUNABLE)
        asked = subprocess.run([NETMEND, "heal", "r", "--out", "h", "--ask", "--", sys.executable, "train.py"], input="n\nn\nn\nn\nn\nn\nn\nn\nn\nn\n", capture_output=True, text=True)
        self.assertEqual(asked.returncode, 1, asked.stderr)
        self.assertIn("[y/N]", asked.stderr)
        self.assertEqual(read_json("h/heal.json")["tries"], [])

    def test_other_programs_get_a_diff_and_stay_as_they_are(self):
        text = ("import keras\nm = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1, activation='softmax')])\n"
                "m.compile(loss='binary_crossentropy', optimizer='sgd')\nm.fit(x, y)\n")
        write("train.py", "raise SystemExit(0)\n" + text)
        self.ok("watch", "--quiet", "--out", "r", "--", sys.executable, "train.py")
        proposal = self.json("heal", "r", "--out", "h")
        self.assertEqual(proposal["way"], "proposal")
        self.assertIn("+m = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1, activation='sigmoid')])", proposal["diff"])
        self.assertEqual(read("train.py"), "raise SystemExit(0)\n" + text)
        self.assertEqual(read("h/heal.diff"), proposal["diff"])
        self.assertIn("nothing was changed", self.ok("heal", "r", "--out", "g").stdout)

    def test_what_cannot_be_healed_is_said(self):
        record("r", losses(*FALLING))
        self.refused("heal", "r", words=["does not say how it was made"])
        self.refused("heal", "nowhere")
        self.watched(TUNABLE.replace("lr=10.0", "lr=0.1"), "sound")
        healed = parse(self.ok("heal", "sound", "--json", "--out", "h", "--", sys.executable, "train.py", code=1).stdout)
        self.assertEqual((healed["healed"], healed["tries"]), (False, []))


class Watch(Case):
    def test_the_programs_status_and_output_pass_through(self):
        write("dies.py", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)\n")
        done = self.ok("watch", "--quiet", "--out", "r", "--", sys.executable, "dies.py", code=7)
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))
        self.assertEqual(read_json("r/run.json")["program_status"], 7)
        done = self.ok("watch", "--out", "s", "--", "sh", "-c", "kill -9 $$", code=137)
        self.assertIn("nothing was recorded", done.stderr)
        self.refused("watch", words=["no program"])
        self.refused("watch", "--out", "t", "--", "no-such-program-here", words=["cannot start"])
        self.refused("watch", "--out", "r", "--", sys.executable, "dies.py", words=["another run"])

    def test_a_program_without_training(self):
        done = self.ok("watch", "--out", "r", "--", sys.executable, "-c", "print(1)")
        self.assertEqual(done.stdout, "1\n")
        self.assertIn("no training was seen", done.stderr)

    def test_a_program_that_fails_before_training_is_read(self):
        write("early.py", "raise SystemExit(3)\nimport keras\nm = keras.Sequential([keras.layers.Dense(1, activation='softmax')])\n"
                          "m.compile(loss='binary_crossentropy')\nm.fit(x, y)\n")
        self.ok("watch", "--out", "r", "--", sys.executable, "early.py", code=3)
        self.assertIn("output-activation", [one["kind"] for one in read_json("r/findings.json")["findings"]])

    def test_standard_input_and_the_environment_are_the_programs_own(self):
        write("echo.py", "import os, sys; print(sys.stdin.read(), os.environ.get('OPENBLAS_NUM_THREADS'))\n")
        environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
        done = subprocess.run([NETMEND, "watch", "--quiet", "--out", "r", "--", sys.executable, "echo.py"], input="hello", capture_output=True, text=True, env=environment)
        self.assertEqual(done.stdout, "hello None\n")

    def test_a_signal_reaches_the_program(self):
        write("waits.py", "import time; print('ready', flush=True); time.sleep(60)\n")
        process = start("watch", "--quiet", "--out", "r", "--", sys.executable, "waits.py")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        process.communicate(timeout=20)
        self.assertEqual((process.returncode, read_json("r/run.json")["program_status"]), (130, 128 + 15))
        self.ok("watch", "--quiet", "--out", "own", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 15)", code=128 + 15)
        write("ready.py", "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(9)); print('ready', flush=True); time.sleep(60)\n")
        process = start("watch", "--quiet", "--out", "handled", "--", sys.executable, "ready.py")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 9)


LINTED = {  # program: kind and line
    "import torch\nfor x in d:\n    loss.backward()\n    opt.step()\n": ("gradients-accumulate", 4),
    "import torch\nloss_fn = torch.nn.CrossEntropyLoss()\nopt.zero_grad()\nout = torch.softmax(net(x), 1)\nloss_fn(out, y).backward()\n": ("output-activation", 4),
    "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(1))\nopt.zero_grad()\nout = net(x)\ntorch.nn.functional.cross_entropy(out, y).backward()\n": ("output-activation", 2),
    "import torch\nd = torch.nn.Dropout()\nwith torch.no_grad():\n    net(x)\n": ("evaluated-in-train-mode", 3),
    "import torch\ntrain_loader = torch.utils.data.DataLoader(d, batch_size=2)\n": ("not-shuffled", 2),
    "import keras\nm.add(keras.layers.Dense(10))\nm.compile('adam', 'categorical_crossentropy')\n": ("output-activation", 2),
    "import keras\nm.add(keras.layers.Dense(1, activation='sigmoid'))\nm.compile(loss='categorical_crossentropy')\n": ("wrong-loss", 3),
    "import keras, cv2\nx = cv2.imread('a')\n": ("inputs-not-scaled", 2),
    "import keras\nm.fit(x, y, validation_data=(x, y))\n": ("validation-overlap", 2),
    "import torch\nopt = torch.optim.SGD(p, lr=1)\n": ("random-seed", 2),
}
SOUND = """import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 2))
train_loader = torch.utils.data.DataLoader(d, batch_size=2, shuffle=True)
for x, y in train_loader:
    opt.zero_grad(); torch.nn.functional.cross_entropy(net(x), y).backward(); opt.step()
net.eval()
with torch.no_grad():
    print(torch.softmax(net(x), 1))
"""


class Lint(Case):
    def test_what_can_be_seen_is_named_with_its_line(self):
        for number, (text, (kind, line)) in enumerate(LINTED.items()):
            lines = text.splitlines()
            write(f"p{number}.py", text)
            lines[line - 1] += f"  # netmend: ignore[{kind}]"
            write(f"q{number}.py", "\n".join(lines) + "\n")
        files = sorted(os.listdir("."))
        found = {(one["file"], one["kind"], one["line"]) for one in self.json("lint", *files, "--fail-on", "never")["findings"]}
        for number, (text, (kind, line)) in enumerate(LINTED.items()):
            self.assertIn((f"p{number}.py", kind, line), found, text)
            self.assertNotIn((f"q{number}.py", kind, line), found, text)

    def test_a_sound_program_passes(self):
        write("p.py", SOUND)
        self.assertEqual(self.json("lint", "p.py")["findings"], [])

    def test_sarif_exit_status_and_bad_files(self):
        write("p.py", next(iter(LINTED)))
        self.ok("lint", "p.py", "--sarif", "o.sarif", code=1)
        sarif = read_json("o.sarif")
        self.assertEqual(sarif["version"], "2.1.0")
        places = {one["ruleId"]: one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in sarif["runs"][0]["results"]}
        self.assertEqual(places["gradients-accumulate"], 4)
        self.ok("lint", "p.py", "--fail-on", "never")
        write("q.py", "def f(:\n")
        self.refused("lint", "q.py", words=["q.py"])
        self.refused("lint", "none.py")
        write("large.py", "x = 1\n" * 60000)
        self.refused("lint", "large.py", words=["more than 50000 lines"])
        write("larger.py", "x = 1\n" * 2000000)
        self.refused("lint", "larger.py", words=["larger than 1 MB"])
        self.refused("lint", "p.py", "--python", "false", words=["false ended with status 1"])


# Programs that do unusual things on purpose, and learn what they should: nothing above a note.
START = """
import copy, torch
from torch import nn
F = nn.functional
torch.manual_seed(0); torch.set_num_threads(1)
x = torch.randn(800, 8); y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0).long()
held = torch.randn(200, 8); right = (held[:, 0] + held[:, 1] > 0).long() + (held[:, 2] > 0).long()
def batches(epochs=12, size=32):
    for epoch in range(epochs):
        for i in torch.randperm(800).split(size): yield x[i], y[i]
def evaluate(net):
    net.eval()
    with torch.no_grad(): F.cross_entropy(net(held), right)
    net.train()
def new(*more): return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), *more, nn.Linear(32, 3))
"""
LEARNS = {
    "a GAN": """
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)); D = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)); bce = nn.BCEWithLogitsLoss()
g = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.5, 0.9)); d = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.5, 0.9))
for a, _ in batches(8):
    fake = G(torch.randn(len(a), 4)); d.zero_grad(); (bce(D(a + 2), torch.ones(len(a), 1)) + bce(D(fake.detach()), torch.zeros(len(a), 1))).backward(); d.step()
    g.zero_grad(); bce(D(fake), torch.ones(len(a), 1)).backward(); g.step()
""",
    "gradient accumulation": """
net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.5)
for k, (a, b) in enumerate(batches(30)):
    (F.cross_entropy(net(a), b) / 4).backward()
    if k % 4 == 3: opt.step(); opt.zero_grad()
evaluate(net)
""",
    "a moving average of weights": """
net = new(); mean = copy.deepcopy(net).requires_grad_(False); opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
for a, b in batches():
    opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
    with torch.no_grad():
        for p, q in zip(mean.parameters(), net.parameters()): p.lerp_(q, 0.05)
evaluate(mean)
""",
    "low-rank changes of a frozen layer": """
class Lora(nn.Module):
    def __init__(self):
        super().__init__(); self.base = nn.Linear(8, 32).requires_grad_(False); self.a = nn.Linear(8, 4, bias=False); self.b = nn.Linear(4, 32, bias=False); nn.init.zeros_(self.b.weight)
    def forward(self, x): return self.base(x) + self.b(self.a(x))
net = nn.Sequential(Lora(), nn.ReLU(), nn.Linear(32, 3)); opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=2e-2)
for a, b in batches(): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
evaluate(net)
""",
    "mixed precision on the CPU": """
net = new(); opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for a, b in batches():
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16): loss = F.cross_entropy(net(a), b)
    loss.backward(); opt.step()
evaluate(net)
""",
    "Monte Carlo dropout": """
net = new(nn.Dropout(0.2)); opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for a, b in batches(): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
net.train()
with torch.no_grad(): print(torch.stack([net(held).softmax(1) for _ in range(20)]).std(0).mean())
""",
    "evaluation without no_grad": """
net = new(nn.Dropout(0.1)); opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for k, (a, b) in enumerate(batches()):
    opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
    if k % 25 == 24: net.eval(); F.cross_entropy(net(held), right); net.train()
""",
    "adversarial training": """
net = new(nn.BatchNorm1d(32)); opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for a, b in batches():
    net.eval(); a = a.clone().requires_grad_(True); g, = torch.autograd.grad(F.cross_entropy(net(a), b), a); net.train()
    opt.zero_grad(); F.cross_entropy(net((a + 0.05 * g.sign()).detach()), b).backward(); opt.step()
evaluate(net)
""",
    "warm-up and a cosine per batch": """
net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9); S = torch.optim.lr_scheduler
plan = S.SequentialLR(opt, [S.LinearLR(opt, 0.01, total_iters=30), S.CosineAnnealingLR(opt, 270)], [30])
for a, b in batches(): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step(); plan.step()
evaluate(net)
""",
    "a teacher and a student": """
teacher, net = new(), new(); first = torch.optim.Adam(teacher.parameters(), lr=5e-3); opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for a, b in batches(6): first.zero_grad(); F.cross_entropy(teacher(a), b).backward(); first.step()
teacher.requires_grad_(False).eval()
for a, b in batches(): opt.zero_grad(); F.kl_div(net(a).log_softmax(1), teacher(a).softmax(1), reduction="batchmean").backward(); opt.step()
evaluate(net)
""",
}


@needs("torch")
class SlowSound(Case):
    def test_programs_that_do_unusual_things_on_purpose_raise_nothing(self):
        for number, (name, text) in enumerate(LEARNS.items()):
            write("p.py", START + text)
            self.ok("watch", "--quiet", "--probe", "--out", f"r{number}", "--", sys.executable, "p.py")
            found = self.json("diagnose", f"r{number}")
            self.assertEqual([one["id"] for one in found["findings"] if one["level"] != "note"], [], (name, found["findings"][:1]))
            self.assertEqual([one for one in found["unknown"] if "optimisers" not in one and "the probe saw" not in one], [], name)
        notes = {one["kind"]: one["brief"] for one in self.json("diagnose", "r5")["findings"]}
        self.assertIn("Monte Carlo", notes["evaluated-in-train-mode"])
        self.assertIn("evaluated-with-gradients", [one["kind"] for one in self.json("diagnose", "r6")["findings"]])


# A program, and what is wrong with its schedule.
SCHEDULES = {
    "plan = S.StepLR(opt, 4)": "StepLR is never stepped",
    "plan = S.ExponentialLR(opt, 0.9); IN_BATCH = plan.step": "ExponentialLR is stepped in every step",
    "plan = S.OneCycleLR(opt, 0.3, total_steps=300); IN_EPOCH = plan.step": "OneCycleLR is stepped once per epoch",
    "plan = S.StepLR(torch.optim.SGD(net.parameters(), lr=0.1), 4); IN_EPOCH = plan.step": "StepLR drives an optimiser that makes no steps",
    "plan = S.CosineAnnealingLR(opt, 12); IN_BATCH = plan.step": "CosineAnnealingLR is stepped in every step",
    "plan = S.StepLR(opt, 4, 0.5); IN_EPOCH = plan.step": "",
    "plan = S.OneCycleLR(opt, 0.3, total_steps=301); IN_BATCH = plan.step": "",
    "plan = S.ReduceLROnPlateau(opt); IN_EPOCH = lambda: plan.step(1.0)": "",
}


@needs("torch")
class SlowSchedules(Case):
    def test_a_schedule_does_what_it_says(self):
        for number, (text, what) in enumerate(SCHEDULES.items()):
            write("p.py", START + f"""
S = torch.optim.lr_scheduler; IN_BATCH = IN_EPOCH = lambda: None
net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
{text}
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True)
for epoch in range(12):
    for a, b in data: opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step(); IN_BATCH()
    evaluate(net); IN_EPOCH()
""")
            self.ok("watch", "--quiet", "--out", f"r{number}", "--", sys.executable, "p.py")
            found = [one["brief"] for one in self.json("diagnose", f"r{number}")["findings"] if one["kind"] == "schedule-not-followed"]
            self.assertEqual(found, [what] if what else [], text)


@needs("torch")
class SlowLaunched(Case):
    def test_the_process_that_trained_is_the_run(self):
        write("train.py", START + """
import multiprocessing, sys
def work(epochs):
    net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.2)
    for a, b in batches(epochs): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
if __name__ == "__main__":
    every = [multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(n,)) for n in (2, 9)]
    for one in every: one.start()
    for one in every: one.join()
""")
        for way in ("fork", "spawn"):
            self.ok("watch", "--quiet", "--out", way, "--", sys.executable, "train.py", way)
            found = self.json("diagnose", way)
            self.assertEqual((found["summary"]["steps"], found["summary"]["complete"]), (225, True), way)
            self.assertIn("(50 steps)", " ".join(found["unknown"]))

    def test_ranks_of_torchrun_leave_a_record_each(self):
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
        write("ranks.py", START + """
import torch.distributed as dist
dist.init_process_group("gloo"); torch.manual_seed(0)
net = torch.nn.parallel.DistributedDataParallel(new()); opt = torch.optim.SGD(net.parameters(), lr=0.2)
torch.manual_seed(dist.get_rank())
for a, b in batches(6): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
if dist.get_rank() == 0: print(sum(float(p.detach().abs().sum()) for p in net.parameters()))
dist.destroy_process_group()
""")
        plain = subprocess.run([*launcher, "ranks.py"], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if plain.returncode and "to_map" in plain.stderr:
            self.skipTest("torchrun of this PyTorch does not work with this Python")
        self.assertEqual(plain.returncode, 0, plain.stderr[-800:])
        watched = self.ok("watch", "--quiet", "--out", "r", "--", *launcher, "ranks.py", env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(watched.stdout, plain.stdout, "weights differ")
        found = self.json("diagnose", "r")
        self.assertEqual((found["summary"]["steps"], found["summary"]["complete"]), (150, True))
        self.assertIn("(150 steps)", " ".join(found["unknown"]))
        ranks = [json.loads(read(os.path.join("r", name)).split("\n")[0])["rank"] for name in os.listdir("r") if name.endswith(".jsonl")]
        self.assertTrue({"0", "1"} <= set(ranks), ranks)
        self.assertEqual([one["id"] for one in found["findings"] if one["level"] != "note"], [])

    def test_a_script_that_starts_python_twice(self):
        write("p.py", START + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.2)\n"
              "for a, b in batches(4): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()\n")
        self.ok("watch", "--quiet", "--out", "r", "--", "sh", "-c", f"{sys.executable} -c 'import torch' && {sys.executable} p.py")
        self.assertEqual(self.json("diagnose", "r")["summary"]["steps"], 100)


@needs("torch")
class SlowStopped(Case):
    def test_each_condition_ends_a_run_that_meets_it(self):
        write("diverged.py", START + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
              "for k, (a, b) in enumerate(batches(40)):\n    opt.zero_grad(); F.cross_entropy(net(a), b).backward()\n"
              "    if k == 300: torch.save(net.state_dict(), 'w.pt')\n    for p in net.parameters(): p.grad.mul_(1 if k < 300 else -0.2)\n    opt.step()\n")
        write("constant.py", START + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.0)\n"
              "for a, b in batches(400, 800): opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()\n")
        write("dead.py", "import runpy, sys; sys.argv = ['p', 'dead-relu']; runpy.run_module('netmend.planted', run_name='__main__')\n")
        for word in ("diverged", "constant", "dead"):
            self.ok("watch", "--quiet", "--stop-when", word, "--out", word, "--", sys.executable, word + ".py", code=1)
            self.assertTrue(self.json("diagnose", word)["summary"]["stopped"], word)
            self.assertIn("  stopped  ", self.ok("diagnose", word).stdout)
        self.assertIn("w.pt, saved after step 300", self.ok("diagnose", "diverged").stdout)


class SecondOpinion(Case):
    def test_the_shipped_forest_votes_as_its_trees_say(self):
        path = os.path.join(PYTHON, "netmend", "doctor_forest.json")
        self.assertLess(os.path.getsize(path), 300_000)
        forest = read_json(path)
        for number, lines in enumerate(([losses(*FALLING)], [*KERAS, losses(*[0.7] * 30)], [("optimizer", {"type": "SGD", "lr": 60.0}), losses(*[2.0 ** i for i in range(30)])])):
            found = self.json("diagnose", record(f"r{number}", *lines), "--fail-on", "never")
            told = {one["kind"]: one["share"] for one in found["second_opinion"]}
            self.assertTrue(told)
            for kind, share in doctor_forest.vote(forest, found["features"]):
                if share >= 0.05:
                    self.assertAlmostEqual(told[kind], share, places=9)
            confirmed = any(one["certainty"] == "confirmed" and one["level"] != "note" for one in found["findings"])
            self.assertEqual([one["outvoted"] for one in found["second_opinion"]], [confirmed] * len(told))
            shown = "  opinion  " in self.ok("diagnose", f"r{number}", "--fail-on", "never").stdout
            self.assertEqual(shown, max(told.values()) >= 0.5 and not confirmed)


SOCKET = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError as error: reached = error.errno\nopen('mark.txt', 'w').write('x')\n"


@needs("numpy")
class SlowStudies(Case):
    """The studies of planted trainings, on a few of netmend's own trainer."""

    def test_planted_and_healed_ones_are_counted(self):
        few = ["--", "--frameworks", "netmend", "--networks", "mlp", "--data", "blobs", "--seeds", "1", "--healthy", "1", "--kinds"]
        begin = ["lab", "study", "broken-trainings", "--python", sys.executable, "--json"]
        found = parse(self.ok(*begin, "--out", "p", *few, "learning-rate-high,targets-not-scaled,dead-relu", timeout=300).stdout)
        own = found["rules"][0]
        self.assertEqual((own["count"], own["healthy"], own["alarms"], sorted(found["early"])), (3, 1, 0, ["dead-relu", "learning-rate-high", "targets-not-scaled"]))
        self.assertEqual(own["third"], 3, found["missed"])
        healed = parse(self.ok(*begin, "--part", "heal", "--out", "h", *few, "learning-rate-high,targets-not-scaled", timeout=300).stdout)
        self.assertEqual([(row["fault"], row["ok"]) for row in healed["rows"]], [("learning-rate-high", True), ("targets-not-scaled", True)], healed["rows"])


@needs("torch")
class SlowStrangers(Case):
    """Programs of other people, which the study runs in the sandbox."""

    def study(self, *more):
        words = ["lab", "study", "broken-trainings", "--part", "real", "--python", sys.executable, "--out", "s", "--jobs", "2", "--json", "--"]
        words += ["--folder", "programs", "--labels", "labels.json", "--seconds", "15", *more]
        done = subprocess.run([NETMEND, *words], capture_output=True, text=True, timeout=600)
        if done.returncode == 2 and "bubblewrap" in done.stderr:
            self.skipTest(done.stderr.splitlines()[0])
        self.assertEqual(done.returncode, 0, done.stderr[-800:])
        return parse(done.stdout)

    def test_they_are_run_cut_repaired_and_counted(self):
        loop = "for a, b in batches(6): ZERO F.cross_entropy(net(a), b).backward(); opt.step()\n"
        begin = START + SOCKET + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.2)\n"
        os.makedirs("programs")
        for name, text in (("accumulates", begin + loop.replace("ZERO ", "")), ("endless", begin + "while True:\n    " + loop.replace("ZERO ", "opt.zero_grad(); ")),
                           ("gone", "import a_module_that_left\n"), ("crash", "1 / 0\n")):
            os.makedirs("programs/" + name)
            write(f"programs/{name}/bug.py", text)
        os.makedirs("repaired/accumulates")
        write("repaired/accumulates/bug.py", begin + loop.replace("ZERO ", "opt.zero_grad(); "))
        label = {"faults": ["other:gradients-accumulate"], "also_acceptable": [], "contributing": [], "symptom": "slow"}
        write("labels.json", json.dumps({"accumulates": label, "endless": {**label, "faults": ["too-few-epochs"]}, "gone": label, "crash": {**label, "symptom": "crash"}}))
        found = self.study("--repaired", "repaired")
        self.assertEqual({name: one["ending"] for name, one in found["runs"].items()}, {"accumulates": "ended", "endless": "cut", "gone": "failed", "crash": "failed"})
        self.assertEqual((sorted(found["programs"]), list(found["apart"])), (["accumulates", "crash", "endless"], ["gone"]))
        own = found["rules"][0]
        self.assertEqual((own["first"], own["repaired"], own["serious"]), (1, 1, 0), own)
        self.assertEqual(self.json("diagnose", "s/endless", "--fail-on", "never")["summary"]["complete"], False)
        self.assertEqual([name for _, _, names in os.walk("programs") for name in names if name != "bug.py"], [], "a program wrote beside itself")
        before = os.path.getmtime("s/endless/outcome.json")
        self.study()
        self.assertEqual(os.path.getmtime("s/endless/outcome.json"), before, "what has run is not run again")


@needs("torch")
class SlowPlanted(Case):
    """Small trainings with a known fault, under netmend watch."""

    def test_each_is_among_the_first_three(self):
        for fault, kinds in planted.FAULTS.items():
            if fault in planted.ONLY_KERAS:
                continue
            self.ok("watch", "--quiet", *(["--probe"] if fault in planted.NEED_PROBE else []), "--out", fault, "--", sys.executable, "-m", "netmend.planted", fault)
            found = read_json(fault + "/findings.json")["findings"]
            if fault == "none":
                self.assertEqual([one["id"] for one in found if one["level"] != "note"], [])
            else:
                self.assertTrue(set(kinds.split("|")) & {one["kind"] for one in found[:3]}, (fault, [one["id"] for one in found]))

    def test_a_program_that_goes_on_all_the_same(self):
        write("p.py", START + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.1); k = 0\ntry:\n    for a, b in batches(2):\n"
              "        opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step(); k += 1\n        if k == 20: net[0].weight.data.fill_(float('nan'))\n"
              "except BaseException as error: print(type(error).__name__)\n")
        done = self.ok("watch", "--stop-when", "nan", "--out", "r", "--", sys.executable, "p.py", code=1)
        self.assertEqual(done.stdout, "Stopped\n")
        self.assertIn("went on: loss is NaN or Inf", done.stderr)

    def test_weights_that_are_nan_from_the_start_mix_no_inputs(self):
        write("p.py", START + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.1); net[0].weight.data.fill_(float('nan'))\n"
              "for a, b in batches(2): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()\n")
        self.ok("watch", "--quiet", "--out", "r", "--", sys.executable, "p.py")
        self.assertEqual([one["kind"] for one in read_json("r/findings.json")["findings"] if one["level"] != "note"], ["non-finite-training"])

    def test_a_bare_fork_that_trains_on_with_the_same_optimiser(self):
        write("p.py", "import os\n" + START + "net = new(); opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
              "def train(n):\n    for a, b in batches(n): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()\n"
              "train(2); child = os.fork(); train(3 if child else 5)\nif child: os.waitpid(child, 0)\n")
        self.ok("watch", "--quiet", "--out", "r", "--", sys.executable, "p.py")
        found = self.json("diagnose", "r")
        self.assertEqual((found["summary"]["steps"], found["summary"]["complete"]), (125, True))
        self.assertIn("(125 steps)", " ".join(found["unknown"]))

    def test_a_run_that_cannot_recover_is_ended(self):
        self.ok("watch", "--stop-when", "nan", "--out", "r", "--", sys.executable, "-m", "netmend.planted", "log-of-zero", code=1)
        self.assertIn('"e":"stopped"', read("r/record.jsonl"))
        self.refused("watch", "--stop-when", "boredom", "--", "true")


if __name__ == "__main__":
    main()
