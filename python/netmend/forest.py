"""Trains the doctor's second opinion: a forest over what `netmend diagnose --json` measures of planted trainings.

    python3 -m netmend.study forest --netmend build/release/netmend --frameworks netmend,torch --seeds 11,12,13,14,15,16 --data blobs --out forest-runs

`python/netmend/doctor_forest.json` is made by it; --forest names another file. Needs scikit-learn. What only an exact check can see
(gradients that are not cleared, say) is not among the classes. --kept-data and --kept-seeds name runs that are set aside and judged."""
import argparse
import json
import os
import subprocess
import sys

CLASSES = ["none", "wrong-loss", "no-nonlinearity", "dead-relu", "saturated", "vanishing-gradient", "exploding-gradient", "constant-init", "inputs-not-scaled",
           "targets-not-scaled", "learning-rate-high", "learning-rate-low", "too-few-epochs", "over-fitting", "random-labels", "unstable", "one-batch", "unbalanced",
           "little-data", "softmax-twice", "wrong-output-size"]
TREES, DEPTH, LEAF = 60, 9, 3


def class_of(fault):
    from .planted import FAULTS
    return FAULTS[fault].split("|")[0] or "none"


def rows_of(words, study, cases):
    """Features and class of each case; what left no record is left out."""
    rows = []
    for case in cases:
        folder = study.place_of(words, case)
        if not os.path.exists(os.path.join(folder, "record.jsonl")):
            continue
        done = subprocess.run([words.netmend, "diagnose", folder, "--json", "--fail-on", "never"], capture_output=True, text=True)
        if done.returncode == 0:
            rows.append((json.loads(done.stdout)["features"], class_of(case[0]), case))
    return rows


def matrix(rows, names):
    return [[row[0].get(name, -99.0) for name in names] for row in rows], [row[1] for row in rows]


def tree_of(estimator, rename):
    """Nodes as [feature, threshold, left, right] and leaves as [-1, class, share, …]; children come after their parents."""
    tree, out = estimator.tree_, []
    for node in range(tree.node_count):
        if tree.children_left[node] >= 0:
            out.append([int(tree.feature[node]), round(float(tree.threshold[node]), 4), int(tree.children_left[node]), int(tree.children_right[node])])
            continue
        counts = tree.value[node][0]
        shares = counts / counts.sum()
        leaf = [-1]
        for one in shares.argsort()[::-1][:4]:
            if shares[one] >= 0.02:
                leaf += [rename[one], round(float(shares[one]), 3)]
        out.append(leaf)
    return out


def vote(document, features):
    """Classes with their shares of the vote, most likely first, as `netmend diagnose` counts them."""
    values, shares = [features[name] for name in document["features"]], [0.0] * len(document["classes"])
    for tree in document["trees"]:
        node = tree[0]
        while node[0] >= 0:
            node = tree[node[2] if values[node[0]] <= node[1] else node[3]]
        for one, share in zip(node[1::2], node[2::2]):
            shares[one] += share / len(document["trees"])
    return sorted(zip(document["classes"], shares), key=lambda row: -row[1])


def judge(document, rows):
    """On runs that no tree has seen: the kind first, among the first three, told (half of the votes and more), told rightly; healthy
    runs, and those that are told to have a fault."""
    count = {"runs": 0, "first": 0, "third": 0, "told": 0, "told_right": 0, "healthy": 0, "alarms": 0}
    for features, kind, _ in rows:
        votes = vote(document, features)
        names, told = [one for one, _ in votes[:3]], votes[0][1] >= 0.5 and votes[0][0] != "none"
        if kind == "none":
            count["healthy"], count["alarms"] = count["healthy"] + 1, count["alarms"] + told
            continue
        count["runs"] += 1
        count["first"] += names[0] == kind
        count["third"] += kind in names
        count["told"] += told
        count["told_right"] += told and names[0] == kind
    return count


def train(words, study):
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        print("error: scikit-learn is needed to train the forest: pip install scikit-learn", file=sys.stderr)
        return 2
    kinds = [one for one in CLASSES if one != "none"]

    def records(data, seeds):
        cases = study.cases_of(argparse.Namespace(**dict(vars(words), data=data, seeds=seeds)), kinds)
        study.run_all(words, lambda case: study.run_planted(words, case), cases)
        return rows_of(words, study, cases)

    rows = records(words.data, words.seeds)
    if not rows:
        print("error: no training left a record; is %s a netmend that trains?" % words.netmend, file=sys.stderr)
        return 1
    names = list(rows[0][0])
    x, y = matrix(rows, names)
    forest = RandomForestClassifier(n_estimators=TREES, max_depth=DEPTH, min_samples_leaf=LEAF, class_weight="balanced_subsample", random_state=1).fit(x, y)
    classes = [str(one) for one in forest.classes_]
    path = words.forest or os.path.join(os.path.dirname(os.path.abspath(__file__)), "doctor_forest.json")
    document = {"format": "netmend.forest/1", "made": "python3 -m netmend.study forest --frameworks %s --networks %s --data %s --seeds %s --healthy %d"
                % (words.frameworks, words.networks, words.data, words.seeds, words.healthy), "runs": len(rows), "classes": classes, "features": names,
                "trees": [tree_of(one, list(range(len(classes)))) for one in forest.estimators_]}
    text = []
    # Seeds and data that no tree has seen: each set of data alone, since one of them the forest was never trained on.
    for data in words.kept_data.split(",") if words.kept_data else []:
        count = judge(document, records(data, words.kept_seeds))
        document.setdefault("kept", {})[data] = dict(count, seeds=words.kept_seeds)
        text.append("| %s | %s | %s | %s | %s |" % (data, study.interval(count["first"], count["runs"]), study.interval(count["third"], count["runs"]),
                                                   study.interval(count["told_right"], count["told"]), study.interval(count["alarms"], count["healthy"])))
    with open(path, "w") as file:
        json.dump(document, file, separators=(",", ":"))
        file.write("\n")
    print("%s: %d trees from %d runs, %d KB" % (path, TREES, len(rows), os.path.getsize(path) // 1024))
    if text:
        print("\n".join(["", "Runs with seeds %s, which were not trained on:" % words.kept_seeds, "",
                         "| data | kind first | in the first three | right where half of the trees agree | healthy runs with a fault told |", "|---|---|---|---|---|", *text]))
    return 0
