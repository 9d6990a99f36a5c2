"""DeepImportance's steps on Dave-2, in form: 216 frames of a drive allow no verdict.

usage: NETMEND_DATA=… python3 bench/dave2.py [EPOCHS]
Every fourth frame is a test, the others are training data (the authors' program takes all frames for training and some of them for tests).
Frames are BGR less ImageNet's means, as their program has them. It trains zoo's dave2, ranks units by relevance, and prints what the tests cover
alone and together with ten noisy copies of each: noise on the relevant pixels (the top 2 %, alpha-beta rule), on as many others, on all.
"""
import csv, gzip, os, sys, tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import netmend as nm

MEANS = np.array([103.939, 116.779, 123.68], np.float32)[:, None, None]  # of ImageNet, in the order BGR
COPIES, SHARE, DEVIATION = 10, 0.02, 192
CRITERIA = "IDC,NC,KMNC,NBC,SNAC,TKNC,LSC"


def frames(folder):
    with gzip.open(os.path.join(folder, "center_100x100_rgb.idx4-ubyte.gz")) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=20).reshape(-1, 100, 100, 3)
    with open(os.path.join(folder, "steering.csv")) as file:
        angles = np.array([float(row["steering_angle"]) for row in csv.DictReader(file)], np.float32)
    return np.ascontiguousarray(pixels[..., ::-1].transpose(0, 3, 1, 2), np.float32) - MEANS, angles


def noisy(x, chosen, random):
    """Noise on the chosen values; each stays a pixel's."""
    changed = x + np.where(chosen, random.normal(0, DEVIATION, x.shape), 0).astype(np.float32)
    return np.clip(changed, -MEANS, 255 - MEANS)


def others(chosen, random):
    """As many values of each frame, drawn from those that were not chosen."""
    drawn = np.zeros_like(chosen)
    for row, taken in zip(drawn.reshape(len(chosen), -1), chosen.reshape(len(chosen), -1)):
        row[random.choice(np.flatnonzero(~taken), taken.sum(), replace=False)] = True
    return drawn


def main():
    x, y = frames(os.path.join(os.environ["NETMEND_DATA"], "driving"))
    test, random = np.arange(len(x)) % 4 == 3, np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        train, tests = nm.Data((x[~test], y[~test]), labels="number"), nm.Data((x[test], y[test]), labels="number")
        fresh = nm.lab.new("dave2", o="dave2.onnx")
        nm.train("dave2.onnx", train=train, epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 6, rate=0.0003, o="trained.onnx")
        judged = nm.eval("trained.onnx", tests, anyway=True)
        print("%d training frames, %d tests, mean absolute error %.3f rad; the mean angle's %.3f"
              % ((~test).sum(), test.sum(), judged.document["mae"], np.abs(y[test] - y[~test].mean()).mean()))
        relevance = np.load(nm.explain("trained.onnx", tests, rule="alpha-beta:3", format="npz", anyway=True, layer="fc3").run + "/relevance.npz")
        values = np.abs(relevance[next(name for name in relevance if relevance[name].shape == x[test].shape)])
        relevant = values > np.quantile(values.reshape(len(values), -1), 1 - SHARE, axis=1)[:, None, None, None]
        sets = {"tests": np.zeros_like(relevant), "relevant": relevant, "random": others(relevant, random), "all": np.ones_like(relevant)}
        rows = []
        for name, chosen in sets.items():
            copies = [noisy(x[test], chosen, random) for _ in range(COPIES if chosen.any() else 0)]
            both = nm.Data((np.concatenate([x[test], *copies]), np.tile(y[test], 1 + len(copies))), labels="number")
            found = nm.coverage("trained.onnx", train=train, test=both, layer="fc3", m="8", criteria=CRITERIA, anyway=True)
            rows.append((name, {one["name"]: one["value"] for one in found.document["criteria"]}))
        print("| set | %s |" % " | ".join(rows[0][1]))
        print("|---|%s" % ("---|" * len(rows[0][1])))
        for name, row in rows:
            print("| %s | %s |" % (name, " | ".join("–" if value is None else "%.1f" % (100 * value) for value in row.values())))


main()
