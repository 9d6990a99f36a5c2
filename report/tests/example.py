#!/usr/bin/env python3
"""Makes an evidence.json for the tests of the page: real MNIST pictures, a real network's answers and activations.

usage: example.py NETMEND DATA RUN_FOLDER [--hostile] [--healthy]

DATA is a folder with mnist/ and onnx/mnist_fc/. The answers come from `netmend eval`, the weights from `netmend weights`; units,
neighbours, clusters and the final-bias repair are computed here with NumPy. Figures that only a check-up could know
(how sure a finding is, which repairs were tried) are plausible, not measured: the page is tested with them, nothing is claimed.
--hostile renames a class, an id, a slice and a finding to things that try to break out of the page; --healthy leaves out
what is wrong.
"""
import base64, gzip, json, math, struct, subprocess, sys, tempfile, zlib
from pathlib import Path

import numpy as np

TEMPERATURE = 0.11  # sharper than the network is, so that the section on confidence has something to show


def idx(path):
    raw = gzip.decompress(Path(path).read_bytes())
    axes = raw[3]
    shape = struct.unpack(f">{axes}I", raw[4:4 + 4 * axes])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def chunk(tag, body):
    return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))


def png(pixels):
    """Grey (h, w) or RGBA (h, w, 4) bytes as a data URI."""
    height, width = pixels.shape[:2]
    colour = 0 if pixels.ndim == 2 else 6
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(data).decode()


def heat_png(relevance):
    scale = np.abs(relevance).max() or 1
    part = relevance / scale
    out = np.zeros(part.shape + (4,), np.uint8)
    out[part > 0, :3] = (214, 69, 65)
    out[part < 0, :3] = (45, 108, 223)
    out[..., 3] = (np.abs(part) ** 0.6 * 230).astype(np.uint8)
    return png(out)


def wilson(right, count):
    if count == 0:
        return {"value": None, "low": None, "high": None}
    z, p = 1.959964, right / count
    middle = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return {"value": round(p, 5), "low": round(middle - half, 5), "high": round(middle + half, 5)}


def text(figure):
    return f"{100 * figure['low']:.1f}–{100 * figure['high']:.1f}"


def rounded(values, digits=4):
    return [None if not np.isfinite(v) else round(float(v), digits) for v in values]


class Network:
    def __init__(self, netmend, model):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([netmend, "weights", model, "-o", f"{folder}/w.npz"], check=True, stdout=subprocess.DEVNULL)
            arrays = dict(np.load(f"{folder}/w.npz"))
        count = len(arrays) // 2
        self.weights = [arrays[f"layers.{2 * i}.weight"] for i in range(count)]
        self.biases = [arrays[f"layers.{2 * i}.bias"] for i in range(count)]

    def layers(self, x):
        values = []
        for i, (w, b) in enumerate(zip(self.weights, self.biases)):
            x = x @ w.T + b
            if i + 1 < len(self.weights):
                x = np.maximum(x, 0)
            values.append(x)
        return values

    def slope(self, x, layers, of):
        """Of one answer, for one input."""
        g = self.weights[-1][of]
        for w, value in zip(self.weights[-2::-1], layers[-2::-1]):
            g = (g * (value > 0)) @ w
        return g * x


def softmax(logits):
    e = np.exp((logits - logits.max(1, keepdims=True)) / TEMPERATURE)
    return e / e.sum(1, keepdims=True)


def kmeans(points, k, rng):
    centres = points[rng.choice(len(points), k, replace=False)]
    for _ in range(30):
        nearest = ((points[:, None] - centres[None]) ** 2).sum(2).argmin(1)
        centres = np.array([points[nearest == c].mean(0) if (nearest == c).any() else centres[c] for c in range(k)])
    return nearest


def main(netmend, data, out, hostile, healthy):
    rng = np.random.default_rng(7)
    data = Path(data)
    models = data / "onnx/mnist_fc"
    model, reference = models / "mnist-net_256x4.onnx", models / "mnist-net_256x2.onnx"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([netmend, "eval", str(model), "--data", "mnist:test", "--out", f"{folder}/eval", "--quiet"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        judged = dict(np.load(f"{folder}/eval/samples.npz"))
    test, labels = idx(data / "mnist/t10k-images-idx3-ubyte.gz"), idx(data / "mnist/t10k-labels-idx1-ubyte.gz")
    train, train_labels = idx(data / "mnist/train-images-idx3-ubyte.gz")[:20000], idx(data / "mnist/train-labels-idx1-ubyte.gz")[:20000]
    flat, train_flat = test.reshape(len(test), -1) / 255.0, train.reshape(len(train), -1) / 255.0
    net, old = Network(netmend, str(model)), Network(netmend, str(reference))
    layers, train_layers = net.layers(flat), net.layers(train_flat)
    chances = softmax(layers[-1])
    predicted = chances.argmax(1)
    assert (predicted == judged["predicted"]).mean() > 0.999, "netmend and NumPy disagree"
    order = np.argsort(-chances, axis=1)
    confidence, loss = chances.max(1), -np.log(np.maximum(chances[np.arange(len(labels)), labels], 1e-12))
    right = predicted == labels
    old_chances = softmax(old.layers(flat)[-1])
    before = old_chances.argmax(1) == labels
    n = len(labels)

    names = [str(c) for c in range(10)]
    ids = [f"test/{i:05d}.png" for i in range(n)]
    wrong_rows = np.flatnonzero(~right)

    # Properties of inputs, and slices made of them.
    ink = flat.mean(1)
    columns = np.arange(28)
    weight = test.reshape(n, 28, 28).sum(1) / np.maximum(test.reshape(n, 28, 28).sum((1, 2)), 1)[:, None]
    width = np.sqrt(((columns - (weight * columns).sum(1, keepdims=True)) ** 2 * weight).sum(1))
    thickness = np.digitize(ink, np.quantile(ink, [0.25, 0.75]))
    writer = (np.arange(n) >= 5000).astype(int)  # the two sources of writers in MNIST's test set
    rules = [("thickness=thin", "group", thickness == 0), ("thickness=medium", "group", thickness == 1), ("thickness=bold", "group", thickness == 2),
             ("writer=clerk", "group", writer == 1), ("writer=student", "group", writer == 0),
             ("width > 5.2 and ink < 0.1", "rule", (width > 5.2) & (ink < 0.1)), ("ink > 0.19", "rule", ink > 0.19)]
    cluster = np.full(n, -1)
    cluster[wrong_rows] = kmeans(layers[-2][wrong_rows], 6, rng)
    slices = []
    for name, source, member in rules:
        slices.append({"name": name, "source": source, "samples": int(member.sum()), "failures": int((~right & member).sum()),
                       "elsewhere": round(float(right[~member].mean()), 5), **wilson(int((right & member).sum()), int(member.sum()))})
    slices.sort(key=lambda s: s["value"])
    rules = [next(r for r in rules if r[0] == s["name"]) for s in slices]
    membership = [[j for j, r in enumerate(rules) if r[2][i]] for i in range(n)]

    # Nearest inputs for failures, by the last hidden layer.
    hidden = layers[-2] / np.linalg.norm(layers[-2], axis=1, keepdims=True)
    near = {}
    for row in wrong_rows:
        closest = np.argsort(-(hidden @ hidden[row]))
        closest = closest[closest != row]
        near[str(row)] = {"right": [int(i) for i in closest[right[closest]][:4]], "wrong": [int(i) for i in closest[~right[closest]][:4]]}

    # Confusions, classes.
    pairs = {}
    for a, b in zip(labels, predicted):
        pairs[(int(a), int(b))] = pairs.get((int(a), int(b)), 0) + 1
    old_pairs = {}
    for a, b in zip(labels, old_chances.argmax(1)):
        old_pairs[(int(a), int(b))] = old_pairs.get((int(a), int(b)), 0) + 1
    per_class = []
    for c in range(10):
        count, correct, said = int((labels == c).sum()), int((right & (labels == c)).sum()), int((predicted == c).sum())
        per_class.append({"name": names[c], "samples": count, "correct": correct, "predicted": said,
                          "precision": round(correct / said, 5), "train": int((train_labels == c).sum()), **wilson(correct, count)})
    accuracy = wilson(int(right.sum()), n)

    # Confidence.
    bins, histogram = [], []
    for low in np.arange(0, 1, 0.1):
        inside = (confidence > low) & (confidence <= low + 0.1)
        if inside.any():
            bins.append({"low": round(low, 2), "high": round(low + 0.1, 2), "count": int(inside.sum()),
                         "confidence": round(float(confidence[inside].mean()), 5), "accuracy": round(float(right[inside].mean()), 5)})
    for low in np.arange(0, 1, 0.05):
        inside = (confidence > low) & (confidence <= low + 0.05)
        histogram.append({"low": round(low, 2), "high": round(low + 0.05, 2), "right": int((inside & right).sum()), "wrong": int((inside & ~right).sum())})
    calibration = sum(b["count"] / n * abs(b["confidence"] - b["accuracy"]) for b in bins)

    # Units: activations of the real network.
    units, layer_rows = [], []
    fail, passed = ~right, right
    for number, values in enumerate(layers):
        trained = train_layers[number]
        active = values > 0
        ef, ep = (active & fail[:, None]).sum(0), (active & passed[:, None]).sum(0)
        ochiai = ef / np.sqrt(np.maximum(fail.sum() * (ef + ep), 1))
        importance = np.abs(values).mean(0) * (np.abs(net.weights[number + 1]).sum(0) if number + 1 < len(layers) else 1)
        importance = importance / importance.max()
        above = (trained > values.max(0)).mean(0)
        order_blame = np.argsort(-ochiai)
        last = number + 1 == len(layers)
        for u in range(values.shape[1]):
            v = values[:, u]
            unit = {"name": f"dense{number + 1}/{u}", "layer": number, "mean": round(float(v.mean()), 5), "sd": round(float(v.std()), 5),
                    "min": round(float(v.min()), 5), "max": round(float(v.max()), 5), "zeros": round(float((v == 0).mean()), 5),
                    "blame": None if last else round(float(ochiai[u]), 5), "rank": None if last else int(np.flatnonzero(order_blame == u)[0]) + 1,
                    "importance": round(float(importance[u]), 5), "untested": round(float(above[u]), 6)}
            if last or unit["rank"] <= 40:
                edges = np.linspace(v.min(), max(v.max(), v.min() + 1e-6), 25)
                unit.update(edges=rounded(edges), right=[int(x) for x in np.histogram(v[right], edges)[0]], wrong=[int(x) for x in np.histogram(v[fail], edges)[0]],
                            by_class=rounded([v[labels == c].mean() for c in range(10)]), drivers=[int(i) for i in np.argsort(-v)[:8]])
            units.append(unit)
        layer_rows.append({"name": f"dense{number + 1}", "kind": "Gemm", "shape": f"N×{values.shape[1]}", "units": values.shape[1],
                           "weights": int(net.weights[number].size + net.biases[number].size), "dead": int((values == 0).all(0).sum()),
                           "blame": None if last else round(float(ochiai.max()), 5), "importance": round(float(np.abs(values).mean()), 5),
                           "untested": int((above > 0.0005).sum()), "from": [f"dense{number}"] if number else []})
    top = max(row["importance"] for row in layer_rows)
    for row in layer_rows:
        row["importance"] = round(row["importance"] / top, 4)

    # Coverage: sections of each hidden unit's training range.
    hidden_tests = np.concatenate(layers[:-1], 1)
    hidden_train = np.concatenate(train_layers[:-1], 1)
    low, high = hidden_train.min(0), hidden_train.max(0)
    section = np.clip(((hidden_tests - low) / np.maximum(high - low, 1e-9) * 10).astype(int), 0, 9)
    seen = np.zeros((hidden_tests.shape[1], 10), bool)
    growth, redundant, useful = [], [], []
    marks = set(np.unique(np.geomspace(1, n, 40).astype(int)))
    cells = np.arange(hidden_tests.shape[1])
    for i in range(n):
        fresh = int((~seen[cells, section[i]]).sum())
        seen[cells, section[i]] = True
        (redundant if fresh == 0 else useful).append(i)
        if i + 1 in marks:
            growth.append({"inputs": i + 1, "share": round(float(seen.mean()), 5)})
    unit_names = [u["name"] for u in units][:hidden_tests.shape[1]]
    never = (hidden_train > hidden_tests.max(0)).mean(0)
    untried = [{"unit": unit_names[u], "low": round(float(hidden_tests[:, u].max()), 4), "high": round(float(high[u]), 4), "train": int((hidden_train[:, u] > hidden_tests[:, u].max()).sum()), "rows": []}
               for u in np.argsort(-never)[:12] if never[u] > 0]

    # Some training inputs join the table of inputs: those that show what tests leave untried.
    far = sorted({int(i) for u in untried for i in np.argsort(-hidden_train[:, unit_names.index(u["unit"])])[:4]})
    for u in untried:
        u["rows"] = [n + far.index(int(i)) for i in np.argsort(-hidden_train[:, unit_names.index(u["unit"])])[:4]]

    # The cheap repair, for real: shift the final biases on one half, judge on the other.
    search, held = np.arange(0, n, 2), np.arange(1, n, 2)
    shift = np.zeros(10)
    for _ in range(3):
        for c in range(10):
            tries = np.linspace(-0.06, 0.06, 25)
            scores = []
            for t in tries:
                moved = shift.copy()
                moved[c] += t
                scores.append(((layers[-1][search] + moved).argmax(1) == labels[search]).sum())
            shift[c] += tries[int(np.argmax(scores))]
    after = (layers[-1] + shift).argmax(1)
    fixed, broken = [i for i in held if not right[i] and after[i] == labels[i]], [i for i in held if right[i] and after[i] != labels[i]]
    repair_classes = [{"name": names[c], "fixed": sum(labels[i] == c for i in fixed), "broken": sum(labels[i] == c for i in broken)} for c in range(10)]
    held_right, held_after = int(right[held].sum()), int((after[held] == labels[held]).sum())
    net_gain = (held_after - held_right) / len(held)
    spread = 1.96 * math.sqrt(len(fixed) + len(broken)) / len(held)

    # Duplicates: nearest pictures within the test set, by distance.
    small = flat[:4000]
    norms = (small ** 2).sum(1)
    distance = norms[:, None] + norms[None] - 2 * small @ small.T
    np.fill_diagonal(distance, 1e9)
    closest = distance.min(1)
    close_pairs, used = [], set()
    for i in np.argsort(closest):
        j = int(distance[i].argmin())
        if i not in used and j not in used:
            close_pairs.append([int(i), j])
            used |= {int(i), j}
        if len(close_pairs) == 8:
            break
    suspects = sorted((int(i) for i in wrong_rows if confidence[i] > 0.9), key=lambda i: -confidence[i])[:24]

    # Findings.
    worst = sorted(((c, a, b) for (a, b), c in pairs.items() if a != b), reverse=True)
    both = {}
    for c, a, b in worst:
        both[(min(a, b), max(a, b))] = both.get((min(a, b), max(a, b)), 0) + c
    (a, b), confused = max(both.items(), key=lambda kv: kv[1])
    weak = min(per_class, key=lambda r: r["value"])
    hard = slices[0]
    spec = "mnist:test"
    if hostile:
        names[a] = '<script>window.hacked=1</script>'
        names[b] = '"><img src=x onerror="window.hacked=2">'
        ids[int(wrong_rows[0])] = "</script><script>window.hacked=3</script>.png"
        ids[int(wrong_rows[1])] = "=cmd()|' /C calc'!A0,\"q\"\n.png"
        slices[0]["name"] = hard["name"] = "</script><svg onload=window.hacked=4>"
        for c in (a, b):
            per_class[c]["name"] = repair_classes[c]["name"] = names[c]

    def shown(rows):
        return [{"split": "test", "sample": int(i), "id": ids[i]} for i in rows]

    def by_loss(member, count=12):
        rows = np.flatnonzero(member & ~right)
        return shown(rows[np.argsort(-loss[rows])][:count])

    def finding(kind, where, level, sureness, title, brief, evidence, meaning, fault, gain, value, following, inputs, numbers):
        return {"id": f"{kind}:{where}" if where else kind, "kind": kind, "where": where, "level": level, "certainty": sureness, "title": title, "brief": brief,
                "evidence": evidence, "meaning": meaning, "fault": fault, "gain": gain, "value": value, "next": following, "inputs": inputs, "numbers": numbers, "related": []}

    confusion_rows = ((labels == a) & (predicted == b)) | ((labels == b) & (predicted == a))
    member = rules[0][2]
    suspect_unit = max((u for u in units if u["blame"] is not None), key=lambda u: u["blame"])
    findings = [
        finding("confused-classes", f"{names[a]}-{names[b]}", "serious", "likely", f"{names[a]} and {names[b]} are taken for each other.",
                f"{confused} of {len(wrong_rows)} failures; worth up to {100 * confused / n:.1f} points",
                f"{pairs.get((a, b), 0)} inputs of {names[a]} are called {names[b]}, {pairs.get((b, a), 0)} the other way round: {100 * confused / len(wrong_rows):.0f} % of all failures.",
                "The two classes lie close together in what the last layers see. Either they look alike, or training had too few examples of the cases between them.",
                "D2", confused / n, confused / n, [f"netmend failures model.onnx --data {spec} --on confusion={a}:{b}", f"netmend repair model.onnx --data {spec} --on confusion={a}:{b} -o fixed.onnx"],
                by_loss(confusion_rows), {"one": pairs.get((a, b), 0), "other": pairs.get((b, a), 0)}),
        finding("weak-slice", hard["name"], "serious", "sure", f"It is weak where {hard['name']}.", f"{100 * hard['value']:.1f} % on {hard['samples']} inputs, elsewhere {100 * hard['elsewhere']:.1f} %",
                f"Accuracy {100 * hard['value']:.1f} % ({text(hard)}) on {hard['samples']} inputs, {100 * hard['elsewhere']:.1f} % elsewhere.",
                "A group of inputs that a rule can describe fails more often than the rest: probably there is too little of it in training.", "D3", 0.004, hard["elsewhere"] - hard["value"],
                [f"netmend slices model.onnx --data {spec}"], by_loss(member), {"samples": hard["samples"], "failures": hard["failures"]}),
        finding("suspicious-unit", suspect_unit["name"], "minor", "hint", f"Unit {suspect_unit['name']} is active on most failures.",
                f"first of {len(units)} units; blame {suspect_unit['blame']:.2f}", f"Active on {100 * suspect_unit['blame']:.0f} % of what fails; a random unit would come in the middle.",
                "One unit takes part in many wrong answers. That alone is no proof: a repair on unseen data decides.", "W1", 0.003, suspect_unit["blame"],
                [f"netmend repair model.onnx --data {spec} --unit {suspect_unit['name']} -o fixed.onnx"], shown(wrong_rows[:8]), {"rank": 1}),
        finding("mislabelled", "test", "minor", "likely", f"{len(suspects)} test labels look wrong.", f"{len(suspects)} labels, the network is over 90 % sure of another class",
                f"The network is confidently of another opinion on {len(suspects)} inputs.", "Labels that are wrong in the test data make a good network look worse than it is. Look before you delete.",
                "L1", len(suspects) / n, len(suspects) / n, [f"netmend failures model.onnx --data {spec} --on labels --export relabel.csv"], shown(suspects[:12]), {"count": len(suspects)}),
        finding("over-confident", "", "minor", "sure", "It is surer than it is right.", f"{100 * confidence.mean():.1f} % sure on average, right {100 * right.mean():.1f} %",
                f"Mean confidence {100 * confidence.mean():.1f} %, accuracy {100 * right.mean():.1f} %; calibration error {calibration:.3f}.",
                "Whoever acts on the confidence is misled. One number, the temperature, repairs it and changes no answer.", "W7", 0, float(calibration),
                [f"netmend repair model.onnx --data {spec} --method temperature -o fixed.onnx"], shown([int(i) for i in wrong_rows[np.argsort(-confidence[wrong_rows])][:8]]), {"temperature": 1.4}),
        finding("untested-region", untried[0]["unit"], "note", "likely", f"The tests never drive {untried[0]['unit']} as high as training does.", f"{untried[0]['train']} training inputs lie above every test",
                "Training reaches values that no test reaches.", "What the tests never try, they cannot vouch for.", "T1", 0, untried[0]["train"], [f"netmend coverage model.onnx --data {spec}"], [], {}),
        finding("weak-class", weak["name"], "note", "sure", f"{weak['name']} is the weakest class.", f"recall {100 * weak['value']:.1f} % ({text(weak)})", f"{weak['samples'] - weak['correct']} of {weak['samples']} are missed.",
                "The class with the lowest recall.", "D2", 0.001, 1 - weak["value"], [f"netmend failures model.onnx --data {spec} --on class={weak['name']}"], by_loss(labels == int(per_class.index(weak))), {}),
    ]
    accepted = [dict(findings[-1], id="class-imbalance:train", title="Training has fewer examples of some classes.", accepted={"reason": "known, the source is so", "until": "2030-01-01", "value": 0.1})]

    # Pictures: all evidence, then neighbours, then the first rows.
    pictured = [row["sample"] for f in findings for row in f["inputs"]] + [int(i) for i in wrong_rows] + [i for p in close_pairs for i in p]
    pictured += [int(i) for i in fixed + broken] + [d for u in units[:400:10] for d in u.get("drivers", [])] + [i for v in near.values() for i in v["right"][:2]]
    pictured = list(dict.fromkeys(pictured))[:600]
    pictures = {str(i): png(test[i]) for i in pictured}
    heat = {str(i): heat_png(net.slope(flat[i], [v[i] for v in layers], predicted[i]).reshape(28, 28)) for i in wrong_rows[:200]}
    flips = [i for i in range(n) if right[i] != before[i]]
    new_fixed, new_broken = sum(right[i] for i in flips), sum(before[i] for i in flips)
    compare_change = wilson(0, 1) | {"value": round((new_fixed - new_broken) / n, 5), "low": round((new_fixed - new_broken) / n - 1.96 * math.sqrt(len(flips)) / n, 5),
                                      "high": round((new_fixed - new_broken) / n + 1.96 * math.sqrt(len(flips)) / n, 5)}

    def flip_row(name, member):
        up, down, count = int((member & right & ~before).sum()), int((member & ~right & before).sum()), int(member.sum())
        change, half = (up - down) / count, 1.96 * math.sqrt(up + down) / count
        return {"name": name, "fixed": up, "broken": down, "change": {"value": round(change, 5), "low": round(change - half, 5), "high": round(change + half, 5)}}

    def ranges(split, x):
        return [{"split": split, "name": name, "min": round(float(v.min()), 4), "max": round(float(v.max()), 4), "mean": round(float(v.mean()), 4), "sd": round(float(v.std()), 4), "missing": 0}
                for name, v in (("pixel", x), ("ink", x.mean(1)))]

    report = {
        "format": "netmend.report/1",
        "run": {"command": f"netmend check model.onnx --data {spec}", "version": "0.1.0", "started": "2026-01-05T09:30:00+0000", "seconds": 13.4, "seed": 42,
                "model": {"name": "mnist-net_256x4.onnx", "checksum": "47c27254e3cbc782", "layers": len(layers), "units": len(units), "weights": int(sum(r["weights"] for r in layer_rows))},
                "data": [{"split": "test", "spec": spec, "size": n, "used": n}, {"split": "train", "spec": "mnist:train", "size": 60000, "used": len(train)}], "pictures": True},
        "verdict": f"Good on average, weak where {hard['name']}; two classes are taken for each other.",
        "task": "classes",
        "metric": {"name": "accuracy", "error": False, **accuracy},
        "tiles": [{"name": "accuracy", "value": f"{100 * accuracy['value']:.1f} %", "detail": text(accuracy), "change": f"{100 * compare_change['value']:+.1f} points"},
                  {"name": "worst class", "value": f"{100 * weak['value']:.1f} %", "detail": weak["name"], "filter": {"class": weak["name"]}},
                  {"name": "worst slice", "value": f"{100 * hard['value']:.1f} %", "detail": hard["name"], "filter": {"slice": hard["name"]}},
                  {"name": "failures", "value": str(len(wrong_rows)), "detail": f"of {n:,} inputs", "filter": {}}],
        "findings": findings, "accepted": accepted,
        "passed": [{"what": "dead units", "value": f"{sum(r['dead'] for r in layer_rows)} of {len(units)}"}, {"what": "exact duplicates", "value": "0 of 10,000"}, {"what": "class imbalance", "value": "1.3 to 1"},
                   {"what": "constant features", "value": "0 that training varies"}, {"what": "noise of 8/255", "value": "0.4 % of answers change"}, {"what": "NaN or infinity", "value": "none"}],
        "skipped": [{"what": "drift", "enable": "a time column: data.meta in netmend.toml"}, {"what": "training labels", "enable": "answers out of sample: --budget deep"}],
        "preflight": {"lines": [{"text": "any batch size", "holds": True}, {"text": "outputs are logits", "holds": True}, {"text": f"accuracy {100 * right.mean():.1f} %, guessing gives 12 %", "holds": True}], "tried": []},
        "classes": names,
        "inputs": {"left_out": 0, "split": [0] * n, "sample": list(range(n)), "id": ids, "label": [int(v) for v in labels], "predicted": [int(v) for v in predicted],
                   "confidence": rounded(confidence), "second": [int(v) for v in order[:, 1]], "loss": rounded(loss), "right": [int(v) for v in right], "before": [int(v) for v in before],
                   "cluster": [None if c < 0 else int(c) for c in cluster], "slices": membership,
                   "groups": {"thickness": {"values": ["thin", "medium", "bold"], "of": [int(v) for v in thickness]}, "writer": {"values": ["student", "clerk"], "of": [int(v) for v in writer]}},
                   "near": near, "pictures": pictures, "heat": heat, "texts": {},
                   "answers": {str(i): [[int(c), round(float(chances[i, c]), 4)] for c in order[i, :5]] for i in wrong_rows}},
        "per_class": per_class, "confusion": [[x, y, c] for (x, y), c in sorted(pairs.items())], "slices": slices,
        "confidence": {"bins": bins, "histogram": histogram, "calibration_error": round(float(calibration), 5), "temperature": 1.4},
        "data": {"splits": [{"name": "test", "size": n, "classes": [int((labels == c).sum()) for c in range(10)]}, {"name": "train", "size": len(train), "classes": [int((train_labels == c).sum()) for c in range(10)]}],
                 "ranges": ranges("test", flat) + ranges("train", train_flat),
                 "duplicates": [{"where": "within test", "exact": 0, "near": len(close_pairs), "effect": "without them accuracy is the same", "pairs": close_pairs}],
                 "suspected": [{"row": i, "given": int(labels[i]), "likely": int(predicted[i]), "confidence": round(float(confidence[i]), 4)} for i in suspects]},
        "network": {"layers": layer_rows, "units": units},
        "tests": {"criteria": [{"name": "sections of units", "value": round(float(seen.mean()), 5), "covered": int(seen.sum()), "goals": int(seen.size), "about": "each hidden unit's training range in ten sections"},
                               {"name": "active units", "value": round(float((hidden_tests > 0).any(0).mean()), 5), "covered": int((hidden_tests > 0).any(0).sum()), "goals": hidden_tests.shape[1], "about": "units that some test drives above 0"}],
                  "growth": growth, "untried": untried, "redundant": len(redundant), "needed": len(useful), "redundant_rows": redundant, "useful_rows": useful},
        "repair": {"verdict": "not worthwhile" if net_gain - spread <= 0 else "worthwhile", "reason": "the gain on unseen inputs may be chance" if net_gain - spread <= 0 else "confirmed on unseen inputs", "method": "final biases",
                   "before": wilson(held_right, len(held)), "after": wilson(held_after, len(held)), "change": {"value": round(net_gain, 5), "low": round(net_gain - spread, 5), "high": round(net_gain + spread, 5)},
                   "fixed": len(fixed), "broken": len(broken), "p": 0.31, "inputs": len(held), "per_class": [{k: (v if k == "name" else int(v)) for k, v in r.items()} for r in repair_classes],
                   "edits": [{"unit": f"dense5/{c}", "words": f"bias {'raised' if shift[c] > 0 else 'lowered'} by {abs(shift[c]):.3f}", "distance": round(abs(float(shift[c])), 4)} for c in range(10) if abs(shift[c]) > 1e-9],
                   "alternatives": [{"method": "temperature", "change": 0.0, "fixed": 0, "broken": 0, "seconds": 0.2, "why_not": "changes no answer"}, {"method": "fine-tuning", "change": 0.0006, "fixed": 9, "broken": 6, "seconds": 21.0, "why_not": "changes every weight"}],
                   "flips": [{"row": int(i), "fixed": bool(after[i] == labels[i]), "before": int(predicted[i]), "after": int(after[i])} for i in fixed + broken], "whatif": f"netmend whatif model.onnx edits.json --data {spec}"},
        "compare": {"reference": "mnist-net_256x2.onnx", "fixed": int(new_fixed), "broken": int(new_broken), "change": compare_change, "verdict": "It got a little worse.",
                    "per_class": [flip_row(names[c], labels == c) for c in range(10)], "groups": [flip_row(slices[j]["name"], r[2]) for j, r in enumerate(rules)],
                    "flips": [{"row": i, "fixed": bool(right[i]), "confidence_before": round(float(old_chances[i].max()), 4)} for i in flips],
                    "confusion": [[x, y, c] for (x, y), c in sorted(old_pairs.items())]},
        "method": [{"name": "accuracy", "text": "Share of inputs whose likeliest class is their label; interval: Wilson, 95 %."}, {"name": "blame", "text": "Ochiai on units active above 0, failing against passing inputs."},
                   {"name": "calibration error", "text": "Mean distance of confidence and accuracy over ten bins, weighted by count."}, {"name": "example", "text": "Made by report/tests/example.py: pictures, answers and activations are real; sureness and repairs tried are not measured."}],
    }
    joined = report["inputs"]
    train_chances = softmax(train_layers[-1][far])
    for i, chance in zip(far, train_chances):
        label, said = int(train_labels[i]), int(chance.argmax())
        joined["pictures"][str(len(joined["id"]))] = png(train[i])
        new = {"split": 1, "sample": i, "id": f"train/{i:05d}.png", "label": label, "predicted": said, "confidence": round(float(chance.max()), 4), "second": int(np.argsort(-chance)[1]),
               "loss": round(float(-np.log(max(chance[label], 1e-12))), 4), "right": int(said == label), "before": None, "cluster": None, "slices": []}
        for key, value in new.items():
            joined[key].append(value)
        for group in joined["groups"].values():
            group["of"].append(0)
    if healthy:
        report.update(verdict="Sound: nothing found that is worth your time.", findings=[], accepted=[])
        for key in ("compare", "repair", "data"):
            del report[key]
        report["tiles"][0].pop("change")
    Path(out).mkdir(parents=True, exist_ok=True)
    (Path(out) / "evidence.json").write_text(json.dumps(report, ensure_ascii=False, separators=(",", ":"), allow_nan=False), encoding="utf8")


if __name__ == "__main__":
    plain = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(plain) != 3:
        sys.exit(__doc__)
    main(*plain, "--hostile" in sys.argv, "--healthy" in sys.argv)
