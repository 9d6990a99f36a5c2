"""Trains the doctor's second opinion: a forest over what `netmend diagnose --json` measures of planted trainings.

    python3 -m netmend.study forest --netmend build/release/netmend --frameworks netmend,torch --seeds 11,12,13,14,15,16 --data blobs --out forest-runs

`python/netmend/doctor_forest.json` is made by it; --forest names another file. Needs scikit-learn. What only an exact check can see
(gradients that are not cleared, say) is not among the classes."""
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


def train(words, study):
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import GroupKFold
    except ImportError:
        print("error: scikit-learn is needed to train the forest: pip install scikit-learn", file=sys.stderr)
        return 2
    cases = study.cases_of(words, [one for one in CLASSES if one != "none"])
    study.run_all(words, lambda case: study.run_planted(words, case), cases)
    rows = rows_of(words, study, cases)
    names = list(rows[0][0])
    x, y = matrix(rows, names)
    make = lambda: RandomForestClassifier(n_estimators=TREES, max_depth=DEPTH, min_samples_leaf=LEAF, class_weight="balanced_subsample", random_state=1)
    # Split by seed: no run of a data set that a tree has seen is judged by it.
    seeds = [case[3] % 1000 for _, _, case in rows]
    hits = 0
    if len(set(seeds)) > 1:
        for learn, judge in GroupKFold(min(5, len(set(seeds)))).split(x, y, seeds):
            forest = make().fit([x[i] for i in learn], [y[i] for i in learn])
            hits += sum(a == y[i] for a, i in zip(forest.predict([x[i] for i in judge]), judge))
    forest = make().fit(x, y)
    classes = [str(one) for one in forest.classes_]
    path = words.forest or os.path.join(os.path.dirname(os.path.abspath(__file__)), "doctor_forest.json")
    document = {"format": "netmend.forest/1", "made": "python3 -m netmend.study forest --frameworks %s --networks %s --data %s --seeds %s --healthy %d"
                % (words.frameworks, words.networks, words.data, words.seeds, words.healthy), "runs": len(rows), "classes": classes, "features": names,
                "trees": [tree_of(one, list(range(len(classes)))) for one in forest.estimators_]}
    with open(path, "w") as file:
        json.dump(document, file, separators=(",", ":"))
        file.write("\n")
    print("%s: %d trees from %d runs, %d KB; by seed, on runs left out: %s right" % (path, TREES, len(rows), os.path.getsize(path) // 1024, study.interval(hits, len(rows))))
    return 0


def judge(words, study, cases):
    """How often the shipped forest is right on these cases: right, certain (half of the votes and more), right where certain."""
    right = certain = both = count = 0
    for case in cases:
        folder = study.place_of(words, case)
        if case[0] not in CLASSES or not os.path.exists(os.path.join(folder, "record.jsonl")):
            continue
        done = subprocess.run([words.netmend, "diagnose", folder, "--json", "--fail-on", "never"], capture_output=True, text=True)
        votes = json.loads(done.stdout).get("second_opinion", []) if done.returncode == 0 else []
        if votes:
            hit, sure = votes[0]["kind"] == class_of(case[0]), votes[0]["share"] >= 0.5
            right, certain, both, count = right + hit, certain + sure, both + (hit and sure), count + 1
    return right, certain, both, count
