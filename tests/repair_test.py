"""netmend lab plant, repair, whatif, apply as a user runs them: a known fault in, a confirmed repair out, and the words
for what cannot be repaired.

usage: repair_test.py NETMEND
"""
import os, shlex, subprocess, sys, time

from shell import Case, main, model, must, needs, parse, read_csv, read_json, run, shared, start, write

SOUND = FAULTY = TRUTH = None
DATA = ("--data", "glyphs:test")


def setUpModule():
    """A network that reads drawn digits, and the same with a fault whose place is known."""
    global SOUND, FAULTY, TRUTH
    SOUND = model("mlp:784-24-16-10", "--data", "glyphs", "--limit", 8000, "--rate", 0.003, epochs=3)
    FAULTY, TRUTH = (os.path.join(shared(), name) for name in ("faulty.onnx", "truth.json"))
    must("lab", "plant", SOUND, "--kind", "random-weights", "--layer", "fc2", *DATA, "--at-least", 3, "-o", FAULTY,
         "--truth", TRUTH, "--quiet")


class Repair(Case):
    def test_a_planted_fault_is_found_and_repaired(self):
        truth = read_json(TRUTH)
        self.assertGreaterEqual(truth["points_lost"], 3)
        found = self.json("locate", FAULTY, *DATA)
        self.assertIn(truth["units"][0], [row["unit"] for row in found["ranking"][:5]])
        done = self.json("repair", FAULTY, *DATA, "--budget", "12s", "-o", "fixed.onnx", "--plan", "plan.json",
                         "--out", "r")
        self.assertEqual(done["verdict"], "repaired", done)
        self.assertGreater(done["after"]["accuracy"], done["before"]["accuracy"] + 0.6 * truth["points_lost"] / 100)
        self.assertEqual(done["net"], done["fixed"] - done["broken"])
        self.assertLess(done["p"], 0.05)
        self.assertEqual({one["method"] for one in done["tried"]} & {"bias", "temperature"}, {"bias", "temperature"})
        rows = read_csv("r/flips.csv")
        self.assertEqual(sum(row["change"] == "fixed" for row in rows), done["fixed"])
        self.assertEqual(sum(row["change"] == "broken" for row in rows), done["broken"])
        # The next command judges it on what the search did not see.
        compared = self.ok(*shlex.split(done["next"][0])[1:])
        said = compared.stdout
        self.assertNotIn("the search for this model's repair saw", compared.stderr)  # none of these inputs
        parts = done["inputs"]
        self.assertEqual(parts["search"] + parts["selection"] + parts["holdout"] + parts["unused"], 4000)
        self.assertRegex(said, rf"on {DATA[1]}\S*, {done['inputs']['holdout']:,} inputs")
        self.assertIn(f"{done['fixed']} fixes", said)
        # The plan is the repair.
        self.ok("apply", FAULTY, "plan.json", "-o", "applied.onnx")
        a, b = (self.json("eval", name, *DATA, "--out", "e") for name in ("fixed.onnx", "applied.onnx"))
        self.assertEqual((a["accuracy"], a["loss"]), (b["accuracy"], b["loss"]))
        tried = self.json("whatif", FAULTY, "plan.json", *DATA)
        self.assertAlmostEqual(tried["after"]["value"], a["accuracy"], places=6)
        self.assertEqual(tried["inputs"], 4000)
        # It remembers what its search saw.
        warned = lambda *what: "warning" in self.ok("eval", *what, "--out", "e").stderr
        self.assertTrue(warned("fixed.onnx", *DATA))
        whole = self.ok("compare", FAULTY, "fixed.onnx", *DATA).stderr
        self.assertIn(f"saw about {parts['search'] + parts['selection']:,} of these 4,000 inputs", whole)
        self.assertFalse(warned("fixed.onnx", "--data", "glyphs:train", "--limit", 500))
        self.assertFalse(warned(FAULTY, *DATA))

    def test_what_does_not_help_is_not_written(self):
        done = self.json("repair", SOUND, *DATA, "--method", "temperature", "-o", "t.onnx", code=1)
        self.assertIn(done["verdict"], ("no real change", "refused"))
        self.assertFalse(os.path.exists("t.onnx"))
        self.ok("repair", SOUND, *DATA, "--method", "temperature", "-o", "t.onnx", "--force")
        self.assertTrue(os.path.exists("t.onnx"))

    def test_methods_and_units(self):
        def repaired(*how):
            """Whether it helped or not."""
            done = run("repair", FAULTY, *DATA, "--method", *how, "--json")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            return parse(done.stdout)

        self.assertEqual(repaired("surgical", "--unit", "fc2/3", "--budget", "6s")["units"], ["fc2/3"])
        told = repaired("sbfl-mutation", "--measure", "ochiai", "--mutation", "scale-weights", "--value", 0.5,
                        "--stop", "both")
        self.assertIn("sbfl-mutation", [one["method"] for one in told["tried"]])
        told = repaired("sbfl-mutation", "--as-published")
        self.assertIn("sbfl-mutation", [one["method"] for one in told["tried"]])
        weights = self.json("locate", FAULTY, *DATA, "--measure", "arachne")["weights"]
        self.assertTrue(weights and all(row["impact"] >= 0 and row["gradient"] >= 0 for row in weights))

    def test_the_user_stays_in_the_loop(self):
        reviewed = ("repair", FAULTY, *DATA, "--method", "bias", "--review", "-o", "b.onnx", "--force")
        self.refused(*reviewed, words=("not a terminal", "--yes"))
        self.assertFalse(os.path.exists("b.onnx"))
        self.ok(*reviewed, "--yes")
        self.assertTrue(os.path.exists("b.onnx"))

    def test_words_for_what_cannot_be_done(self):
        self.refused("repair", FAULTY, *DATA, "--method", "surgcal", words=("surgcal", "surgical"))
        self.refused("repair", FAULTY, *DATA, "--unit", "fc9/1", words=("fc9", "LAYER/NUMBER"))
        self.refused("repair", FAULTY, *DATA, "--unit", "fc2/99", words=("fc2/99", "fc2/15"))
        self.refused("repair", FAULTY, *DATA, "--on", "class=nonsense", words=("nonsense",))
        self.refused("repair", FAULTY, *DATA, "--limit", 3, "--anyway", words=())
        self.refused("lab", "plant", SOUND, "--kind", "zero", "-o", "x.onnx", words=("zero", "zeroed"))
        self.refused("lab", "plant", SOUND, "--kind", "zeroed", "--at-least", 5, "-o", "x.onnx", words=("--data",))
        self.refused("lab", "plant", SOUND, "--kind", "zeroed", "--layer", "fc8", "-o", "x.onnx", words=("fc8", "fc"))
        self.refused("lab", "plant", SOUND, "--kind", "zeroed", "--count", 100, "-o", "x.onnx", words=("100", "40"))

    def test_every_kind_can_be_planted(self):
        for kind in ("zeroed", "sign-flipped", "saturated", "scaled", "layer-noise", "swapped-classes"):
            told = self.json("lab", "plant", SOUND, "--kind", kind, *DATA, "--limit", 500, "-o", "f.onnx",
                             "--truth", "t.json")
            self.assertEqual(told["kind"], kind)
            truth = read_json("t.json")
            self.assertTrue(truth["units"] or truth["layer"])
            self.assertGreater(self.json("diff", SOUND, "f.onnx")["total"]["changed"], 0, kind)
        told = self.json("lab", "plant", SOUND, "--kind", "poisoned-labels", "--data", "glyphs:train", "--limit", 2000,
                         "-o", "p.onnx")
        self.assertRegex(told["classes"], r"^\d:\d$")

    def test_studies_go_on_where_they_stopped(self):
        flags = ("lab", "study", "planted-faults", "--models", f"{SOUND}@glyphs:test",
                 "--kinds", "random-weights,scaled", "--runs", 1, "--repairs", "none", "--out", "s")
        process = start(*flags, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)
        process.kill()
        process.wait()
        first = self.json(*flags)
        self.assertEqual(first["faults"], 2)
        again = self.json(*flags)
        self.assertEqual(first["measures"], again["measures"])
        self.refused("lab", "study", "sbfl-repair", "--sample", 0, "--out", "s",
                     words=("planted-faults", "sbfl-repair"))
        write("s/trials.db", "x" * 5000)
        self.refused(*flags, words=("trials.db",))



RECURRENT = """
import sys
import numpy as np, torch

kind, both, name = sys.argv[1], sys.argv[2] == "both", sys.argv[3]
torch.manual_seed(0), torch.set_num_threads(1)
draw = np.random.default_rng(1)
y = draw.integers(0, 3, 1500)
x = np.stack([np.sin(np.arange(12) * (0.3 + 0.25 * k) + draw.uniform(0, 6)) + 0.3 * draw.normal(size=12) for k in y])
x = x.astype("f")[..., None]
np.savez(name + ".npz", x=x, y=y)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.r = getattr(torch.nn, kind)(1, 12, batch_first=True, bidirectional=both)
        self.fc = torch.nn.Linear(24 if both else 12, 3)

    def forward(self, x):
        out, last = self.r(x)
        last = last[0] if isinstance(last, tuple) else last
        return self.fc(torch.cat([last[-2], last[-1]], 1) if both else out[:, -1])


net = Net()
step = torch.optim.Adam(net.parameters(), 1e-2)
X, Y = torch.tensor(x), torch.tensor(y)
for _ in range(8):
    for at in range(0, 1500, 50):
        step.zero_grad()
        torch.nn.functional.cross_entropy(net(X[at:at + 50]), Y[at:at + 50]).backward()
        step.step()
net.r.weight_ih_l0.data[3::12] *= -6  # a unit of the hidden layer, in all of its gates
net.r.weight_hh_l0.data[3::12] *= 4
torch.onnx.export(net.eval(), torch.zeros(1, 12, 1), name + ".onnx", input_names=["x"], output_names=["y"],
                  dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, opset_version=14)
"""


@needs("numpy", "torch")
class SlowRecurrent(Case):
    def test_units_of_lstm_and_gru_can_be_repaired(self):
        for kind, directions in (("LSTM", "one"), ("GRU", "both")):
            name = f"{kind}-{directions}"
            subprocess.run([sys.executable, "-c", RECURRENT, kind, directions, name], check=True, capture_output=True)
            data = ("--data", f"npz:{name}.npz,x=x,y=y")
            layer = self.json("info", name + ".onnx")["layers"][0]["name"]
            done = self.json("repair", name + ".onnx", *data, "--method", "surgical", "--unit", f"{layer}/3", "--budget",
                             "quick", "--plan", "plan.json", "--force", "-o", "fixed.onnx", "--anyway", "--quiet")
            tried = {one["method"]: one for one in done["tried"]}
            self.assertNotIn("why_not", tried["surgical"], name)
            self.assertGreater(tried["surgical"]["weights"], 0)
            self.assertGreaterEqual(tried["surgical"]["after"]["accuracy"], done["before"]["accuracy"] - 0.01)
            self.json("whatif", name + ".onnx", "plan.json", *data)
            self.json("locate", name + ".onnx", *data, "--resamples", 5, "--anyway")


if __name__ == "__main__":
    main()
