"""How often the doctor is right: runs broken trainings under `netmend watch` and prints tables. `netmend lab study broken-trainings`
starts it.

usage: python3 -m netmend.study planted [--frameworks netmend,torch,keras] [--networks mlp,deep,cnn] [--data blobs,stripes] [--seeds 1,2,3]
                                        [--healthy 6] [--jobs 2] [--out DIR] [--python P] [--keras-python P]
       python3 -m netmend.study heal [--networks …] [--data …] [--seeds …] [--out DIR]
       netmend lab study broken-trainings --part real -- --folder DIR --labels labels.json [--repaired DIR] [--rivals rivals.csv]
                                        [--half seen|unseen] [--seconds 60]
       python3 -m netmend.study forest [--frameworks netmend,torch] [--data blobs] [--seeds 11,12,…] [--kept-data blobs,stripes] [--kept-seeds 21,22]
                                       [--out DIR] [--forest FILE]

`planted` trains the programs of netmend.planted, each in one of the frameworks by turns. `heal` puts planted trainings of netmend's own
trainer right, beside random search at equal cost. `real` is about programs of other people, DIR/<id>/bug.py, which netmend runs in its sandbox
before it counts here; `--repaired` has a repaired bug.py for some of them, in folders of the same names; `--half` takes those whose id has an even
(seen) or odd (unseen) last digit of its SHA-256. `forest`
trains the second opinion on planted trainings, writes it and judges it on runs that it keeps aside (needs scikit-learn). `--python` is the Python that trains, `--netmend` the
program. What is in DIR already is not run again.
"""
import argparse
import concurrent.futures
import csv
import hashlib
import importlib
import json
import math
import os
import subprocess
import sys
import threading
import time

OWN_SETTINGS = threading.Lock()
SETS = ("exact,netmend", "autotrainer", "deeplocalize", "deepdiagnosis", "umlaut", "deepchecker", "neuralint", "sagemaker")


def interval(hits, count):
    """`12/20 (60 %, 39–78)`: Wilson's 95 % interval."""
    if not count:
        return "–"
    z, p = 1.96, hits / count
    middle = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return "%d/%d (%.0f %%, %.0f–%.0f)" % (hits, count, 100 * p, 100 * (middle - half), 100 * (middle + half))


def watch(words, folder, program, cwd, python):
    if os.path.exists(os.path.join(folder, "record.jsonl")) or os.path.exists(os.path.join(folder, "run.json")):
        return
    command = [words.netmend, "watch", "--quiet", "--out", folder, "--", python, *program]
    environment = dict(os.environ, OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", MPLBACKEND="Agg")
    subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def rows_of(found):
    return [(one["kind"], one["numbers"].get("category", ""), one["level"]) for one in found]


def findings_of(words, folder, rules):
    """(kind, category, level) as ranked."""
    if not os.path.exists(os.path.join(folder, "record.jsonl")):
        return []
    done = subprocess.run([words.netmend, "diagnose", folder, "--json", "--fail-on", "never", *(["--rules", rules] if rules != SETS[0] else [])],
                          capture_output=True, text=True)
    return rows_of(json.loads(done.stdout)["findings"]) if done.returncode == 0 else []


def cases_of(words, kinds):
    """(fault, network, data, seed, framework): the frameworks by turns, those that a fault can be planted with."""
    programs = part("planted")
    frameworks, cases = words.frameworks.split(","), []
    able = {"netmend": set(programs.OWN), "torch": set(programs.FAULTS) - programs.ONLY_KERAS, "keras": set(programs.FAULTS) - programs.ONLY_TORCH}
    places = [(network, data, int(seed)) for network in words.networks.split(",") for data in words.data.split(",") for seed in words.seeds.split(",")]
    for number, fault in enumerate(kinds):
        own = [one for one in frameworks if fault in able[one]]
        for at, (network, data, seed) in enumerate(places):
            if own:
                cases.append((fault, network, data, seed, own[(at + number) % len(own)]))
    for at, (network, data, seed) in enumerate(places):
        for more in range(words.healthy):
            cases.append(("none", network, data, seed + 1000 * (more + 1), frameworks[(at + more) % len(frameworks)]))
    return cases


def place_of(words, case):
    return os.path.join(words.out, "+".join(str(one) for one in case))


def run_planted(words, case):
    fault, network, data, seed, framework = case
    folder = place_of(words, case)
    if os.path.exists(os.path.join(folder, "record.jsonl")):
        return
    program = ["-m", "netmend.planted", fault, "--framework", framework, "--network", network, "--data", data, "--seed", str(seed), *(["--vary"] if words.vary else [])]
    if framework != "netmend":
        python = words.keras_python or words.python if framework == "keras" else words.python
        watch(words, folder, program, words.out, python)
        return
    work = folder + ".files"
    os.makedirs(work, exist_ok=True)
    programs = part("planted")
    with OWN_SETTINGS:  # they are drawn into a place of the module
        programs.vary(fault, seed) if words.vary else programs._own.clear()
        command = programs.own_command(fault, network, data, seed, programs.EPOCHS, words.netmend, work)
    subprocess.run([*command, "--quiet", "--out", folder], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def part(name):
    """A module of this package; `from . import` would ask the program first whether that is one of its commands."""
    return importlib.import_module("%s.%s" % (__package__, name))


def package():
    return os.pathsep.join([os.path.dirname(os.path.dirname(os.path.abspath(__file__)))] + [one for one in [os.environ.get("PYTHONPATH")] if one])


def early(folder, share=0.2):
    """The record as it was after a share of the steps, in a folder of its own."""
    other = folder + ".early"
    if os.path.exists(os.path.join(other, "record.jsonl")):
        return other
    with open(os.path.join(folder, "record.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    steps = max([one.get("from", 0) + one.get("every", 1) * len(one["loss"]) - 1 for one in lines if one.get("e") == "series"]
                + [one.get("step", 0) for one in lines if one.get("e") == "epoch"] or [0])
    most, kept = max(1, int(steps * share)), []
    for one in lines:
        if one.get("e") in ("summary", "end", "modes", "order", "overlap", "checkpoint", "ring") or one.get("step", 0) > most:
            continue
        if one.get("e") == "series":
            count = (most - one.get("from", 1) + 1) // one.get("every", 1)
            if count < 1:
                continue
            one["loss"] = one["loss"][:count]
        kept.append(one)
    os.makedirs(other, exist_ok=True)
    with open(os.path.join(other, "record.jsonl"), "w") as file:
        file.write("".join(json.dumps(one) + "\n" for one in kept))
    return other


def planted(words):
    programs = part("planted")
    kinds = words.kinds.split(",") if words.kinds else [one for one in programs.FAULTS if one != "none" and one not in programs.NEED_PROBE]
    cases = cases_of(words, kinds)
    begin = time.time()
    run_all(words, lambda case: run_planted(words, case), cases)
    seconds = time.time() - begin
    result = {"study": "planted", "cases": len(cases), "seconds": round(seconds), "rules": [], "missed": [], "frameworks": {}}
    for rules in SETS:
        score = {"first": 0, "third": 0, "count": 0, "alarms": 0, "healthy": 0}
        for case in cases:
            found = findings_of(words, place_of(words, case), rules)
            kinds = [kind for kind, _, _ in found]
            if case[0] == "none":
                score["healthy"] += 1
                score["alarms"] += any(level != "note" for _, _, level in found)
                if rules == SETS[0] and any(level != "note" for _, _, level in found):
                    result["missed"].append("+".join(map(str, case)) + ": healthy, told " + ", ".join(kinds[:3]))
                continue
            wanted = set(programs.FAULTS[case[0]].split("|"))
            first, third = bool(kinds) and kinds[0] in wanted, bool(wanted & set(kinds[:3]))
            score["count"] += 1
            score["first"] += first
            score["third"] += third
            if rules == SETS[0]:
                own = result["frameworks"].setdefault(case[4], [0, 0, 0])
                own[0], own[1], own[2] = own[0] + first, own[1] + third, own[2] + 1
                if not first:
                    result["missed"].append("+".join(map(str, case)) + ": " + (", ".join(kinds[:3]) or "nothing"))
        result["rules"].append(dict(score, set=rules))
    soon = {}
    for case in cases:
        if case[0] in programs.EARLY and os.path.exists(os.path.join(place_of(words, case), "record.jsonl")):
            kinds = [kind for kind, _, _ in findings_of(words, early(place_of(words, case)), SETS[0])]
            soon.setdefault(case[0], []).append(bool(set(programs.FAULTS[case[0]].split("|")) & set(kinds[:3])))
    result["early"] = {fault: [sum(seen), len(seen)] for fault, seen in soon.items()}
    half = sum(2 * sum(seen) >= len(seen) for seen in soon.values())
    text = ["| rules | first | in the first three | healthy runs with anything above a note |", "|---|---|---|---|"]
    text += ["| %s | %s | %s | %s |" % (one["set"], interval(one["first"], one["count"]), interval(one["third"], one["count"]),
                                       interval(one["alarms"], one["healthy"])) for one in result["rules"]]
    text += ["", "| framework | first | in the first three |", "|---|---|---|"]
    text += ["| %s | %s | %s |" % (name, interval(first, count), interval(third, count)) for name, (first, third, count) in sorted(result["frameworks"].items())]
    text += ["", "Seen within the first 20 %% of the steps, in most of the runs: %d of %d kinds that can show by then. %d runs, %d s."
             % (half, len(soon), len(cases), seconds)]
    text += ["", "Not first:"] + ["  " + one for one in result["missed"]]
    return finish(words, result, text)


def heal(words):
    """Planted trainings of netmend's own trainer: are they put right, and does random search do as well at equal cost?"""
    programs = part("planted")
    kinds = words.kinds.split(",") if words.kinds else programs.HEALABLE
    words.frameworks, words.healthy = "netmend", 0
    cases = cases_of(words, kinds)
    sound = {("none",) + case[1:] for case in cases}

    def one(case):
        run_planted(words, case)
        folder = place_of(words, case)
        if case[0] != "none" and os.path.exists(os.path.join(folder, "run.json")) and not os.path.exists(folder + ".heal/heal.json"):
            subprocess.run([words.netmend, "heal", folder, "--random", "--json", "--tries", str(words.tries), "--seed", str(own_seed(case)), "--out", folder + ".heal",
                            "-o", folder + ".files/healed.onnx"], cwd=folder + ".files", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run_all(words, one, sorted(sound) + cases)
    rows, text = [], ["| fault | healed | by random search | tries | cost, epochs of inputs |", "|---|---|---|---|---|"]
    for case in cases:
        folder = place_of(words, case)
        sound = place_of(words, ("none",) + case[1:])  # of numbers a sound network explains nearly all of the variance
        healthy = 1.0 if case[0] in programs.NUMBERS else judged(words, sound, sound + ".files/trained.onnx", folder, case)
        broken = judged(words, folder, folder + ".files/trained.onnx", folder, case)
        try:
            with open(folder + ".heal/heal.json") as file:
                document = json.load(file)
        except (OSError, ValueError):
            document = {"healed": False, "tries": [], "cost": 0, "random": {"healed": False, "tries": []}}
        ours = judged(words, folder, best_model(document), folder, case)
        other = judged(words, folder, best_model(document.get("random", {})), folder, case)
        rows.append({"fault": case[0], "case": "+".join(map(str, case)), "found": document["healed"], "healthy": healthy, "broken": broken, "healed": ours, "random": other,
                     "ok": won_back(case, healthy, broken, ours), "random_ok": won_back(case, healthy, broken, other), "tries": len(document["tries"]),
                     "cost": document["cost"], "random_tries": len(document.get("random", {}).get("tries", []))})
    # Where the fault costs nothing there is nothing to win back: counted apart.
    harmless = [row for row in rows if row["healthy"] is not None and row["broken"] is not None and row["broken"] >= row["healthy"] - 0.02]
    for row in harmless:
        rows.remove(row)
    for fault in kinds:
        own = [row for row in rows if row["fault"] == fault]
        if own:
            text.append("| %s | %d/%d | %d/%d | %.1f | %.0f |" % (fault, sum(row["ok"] for row in own), len(own), sum(row["random_ok"] for row in own), len(own),
                                                                  sum(row["tries"] for row in own) / len(own), sum(row["cost"] for row in own) / len(own) / 800))
    better, worse = sum(row["ok"] > row["random_ok"] for row in rows), sum(row["ok"] < row["random_ok"] for row in rows)
    text.append("| all | %s | %s | | |" % (interval(sum(row["ok"] for row in rows), len(rows)), interval(sum(row["random_ok"] for row in rows), len(rows))))
    text += ["", "Only healed by netmend: %d, only by random search: %d; McNemar's exact p = %.3g." % (better, worse, mcnemar(better, worse)),
             "%d more runs lost less than two points by their fault: nothing to win back." % len(harmless), "", "Not healed:"]
    text += ["  %s: judged %s, broken %s, healthy %s" % (row["case"], row["healed"], row["broken"], row["healthy"]) for row in rows if not row["ok"]]
    return finish(words, {"study": "heal", "rows": rows, "harmless": harmless}, text)


def own_seed(case):
    """Of the search: with one seed for all, random search would draw the same settings every time."""
    return int(hashlib.sha256("+".join(map(str, case)).encode()).hexdigest()[:7], 16)


def mcnemar(better, worse):
    count = better + worse
    return min(1.0, 2 * sum(math.comb(count, i) for i in range(min(better, worse) + 1)) / 2 ** count) if count else 1.0


def best_model(document):
    kept = [one for one in document.get("tries", []) if one["kept"]]
    return os.path.join(kept[-1]["run"], "model.onnx") if kept else ""


def judged(words, folder, model, data, case):
    """Accuracy on inputs that no training and no search saw; of numbers the share of variance that is explained."""
    if not model or not os.path.exists(model):
        return None
    store = model + ".judged.json" if case[0] != "none" else folder + ".judged.json"
    key = "judge"
    if not os.path.exists(store):
        own = data + ".files" if os.path.exists(data + ".files/judge.npz") else folder + ".files"
        if os.path.basename(model) == "trained.onnx":
            own = os.path.dirname(model)
        spec = "npz:%s,x=x,y=y" % os.path.join(own, "judge.npz") + (",kind=number" if case[0] in part("planted").NUMBERS else "")
        done = subprocess.run([words.netmend, "eval", model, "--data", spec, "--json", "--anyway", "--out", model + ".eval"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        value = None
        if done.returncode == 0:
            document = json.loads(done.stdout)
            value = document.get("accuracy")
            if case[0] in part("planted").NUMBERS:
                import numpy
                value = 1 - (document["rmse"] / float(numpy.load(os.path.join(own, "judge.npz"))["y"].std())) ** 2
        with open(store, "w") as file:
            json.dump({key: value}, file)
    with open(store) as file:
        return json.load(file)[key]


def won_back(case, healthy, broken, healed):
    """At least half of what the fault cost, and no more than ten points left."""
    if healed is None or healthy is None:
        return False
    return healed >= healthy - max(0.02, min(0.1, (healthy - (broken or 0)) / 2))


def finish(words, result, text):
    result["text"] = "\n".join(text) + "\n"
    with open(os.path.join(words.out, result["study"] + ".json"), "w") as file:
        json.dump(result, file, indent=1)
    print(json.dumps(result) if words.json else result["text"])


def is_seen(name):
    return int(hashlib.sha256(name.encode()).hexdigest()[-1], 16) % 2 == 0


# ---- programs of other people

SECONDS = (5, 10, 20, 40, 60)  # after the first step of a training: what was known by then?
NEW_OPTIMISERS = (2, 11)  # the Keras from which on optimisers ignore `lr=` and refuse `decay=`


def names_of(words, labels):
    return [name for name in sorted(labels) if os.path.exists(os.path.join(words.folder, name, "bug.py"))
            and (not words.half or is_seen(name) == (words.half == "seen"))]


def repaired_of(words, name):
    """The repaired program that stands in for bug.py; "" where there is none."""
    path = os.path.abspath(os.path.join(words.repaired, name, "bug.py")) if words.repaired else ""
    return path if os.path.exists(path) else ""


def strangers(words, labels):
    """What `netmend lab study broken-trainings --part real` runs in its sandbox, and what this Python is made of."""
    runs = []
    for name in names_of(words, labels):
        home = os.path.abspath(os.path.join(words.folder, name))
        versions = [("", os.path.join(words.out, name))]
        if repaired_of(words, name):
            versions.append((repaired_of(words, name), os.path.join(words.out, name + ".repaired")))
        runs += [{"folder": home, "program": "bug.py", "replaced": replaced, "out": out, "seconds": words.seconds} for replaced, out in versions]
    reads = {os.path.realpath(one) for one in sys.path + [sys.prefix, sys.base_prefix] if one and os.path.exists(one)}
    print(json.dumps({"runs": runs, "reads": sorted(reads)}))


def lines_of(folder):
    """The record of a run, as far as it can be read."""
    lines = []
    try:
        with open(os.path.join(folder, "record.jsonl")) as file:
            for line in file:
                try:
                    one = json.loads(line)
                except ValueError:
                    continue
                if isinstance(one, dict):
                    lines.append(one)
    except OSError:
        pass
    return lines


def outcome_of(folder):
    try:
        with open(os.path.join(folder, "outcome.json")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"ending": "not run", "seconds": 0, "errors": ""}


def told_of(words, folder, rules):
    """What a user of `watch` is told, which for netmend's own rules knows the text of a program that did not train."""
    if rules == SETS[0] and os.path.exists(os.path.join(folder, "findings.json")):
        with open(os.path.join(folder, "findings.json")) as file:
            return rows_of(json.load(file)["findings"])
    return findings_of(words, folder, rules)


def changed_meaning(words, name, label):
    """Why a program does not mean under this Keras what it meant when it was written; "" where it does."""
    lines, outcome = lines_of(os.path.join(words.out, name)), outcome_of(os.path.join(words.out, name))
    trained = any(one.get("e") in ("series", "epoch", "step") for one in lines)
    errors = outcome["errors"]
    if not trained and "crash" not in (label["symptom"], *label.get("also_symptoms", [])) and label.get("runs_without_network") != "no":
        for kind in ("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "ValueError: decay"):
            if kind + ":" in errors or kind in errors and ":" in kind:
                return [line for line in errors.splitlines() if line.strip()][-1][:120]
    version = next((str(one.get("version", "")) for one in lines if one.get("e") == "framework" and one.get("name") == "keras"), "")
    parts = version.split(".")
    if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() and (int(parts[0]), int(parts[1])) >= NEW_OPTIMISERS and ignored_rate(words, name):
        return "`lr=` is ignored, so that the default learning rate is used"
    return ""


def ignored_rate(words, name):
    import ast
    with open(os.path.join(words.folder, name, "bug.py"), encoding="utf-8", errors="replace") as file:
        try:
            tree = ast.parse(file.read())
        except (SyntaxError, ValueError):
            return False
    return any(isinstance(one, ast.Call) and any(key.arg == "lr" for key in one.keywords) for one in ast.walk(tree))


def known_after(words, folder, seconds):
    """The record as it was so many seconds after the first step, in a folder of its own; None where it had ended by then."""
    lines = lines_of(folder)
    begin = next((one.get("t", 0) for one in lines if one.get("e") == "fit"), None) or next((one.get("t", 0) for one in lines if one.get("e") == "optimizer"), 0)
    if not lines or max(one.get("t", 0) for one in lines) <= begin + seconds:
        return None
    other = "%s.after-%d" % (folder, seconds)
    os.makedirs(other, exist_ok=True)
    with open(os.path.join(other, "record.jsonl"), "w") as file:
        file.write("".join(json.dumps(one) + "\n" for one in lines if one.get("t", 0) <= begin + seconds))
    return other


def real(words):
    with open(words.labels) as file:
        labels = json.load(file)
    if words.list:
        return strangers(words, labels)
    names = names_of(words, labels)
    absent = [name for name in names if not os.path.exists(os.path.join(words.out, name, "findings.json"))]
    if absent:
        raise SystemExit("%s has not run: `netmend lab study broken-trainings --part real` runs programs in its sandbox" % absent[0])
    apart = {name: changed_meaning(words, name, labels[name]) for name in names}
    apart = {name: why for name, why in apart.items() if why}
    kept = [name for name in names if name not in apart]
    result = {"study": "real", "programs": kept, "apart": apart, "rules": [real_score(words, labels, kept, rules) for rules in (*SETS, "all")]}
    text = real_table(words, labels, kept, result)
    if apart:
        text += ["", "Counted apart, because they do not mean the same under this TensorFlow:"] + ["  %s: %s" % row for row in apart.items()]
    result["runs"] = {name: run_summary(words, labels, name) for name in names}
    text += ["", "| program | ended | seconds | told | label |", "|---|---|---|---|---|"]
    text += ["| %s | %s | %.0f | %s | %s |" % (name, one["ending"], one["seconds"], ", ".join(one["told"][:3]) or "nothing", ", ".join(one["label"]))
             for name, one in result["runs"].items()]
    return finish(words, result, text)


def run_summary(words, labels, name):
    outcome = outcome_of(os.path.join(words.out, name))
    found = told_of(words, os.path.join(words.out, name), SETS[0])
    again = told_of(words, os.path.join(words.out, name + ".repaired"), SETS[0]) if repaired_of(words, name) else None
    return {"ending": outcome["ending"], "seconds": outcome["seconds"], "told": list(dict.fromkeys(category for _, category, _ in found)),
            "levels": [[kind, level] for kind, _, level in found], "label": labels[name]["faults"], "also": labels[name]["also_acceptable"],
            "repaired": None if again is None else [[kind, level] for kind, _, level in again]}


def real_table(words, labels, names, result):
    text = ["| rules | right first | in the first three | mean recall of categories | two wrong names or more | repaired programs with a serious finding |",
            "|---|---|---|---|---|---|"]
    for one in result["rules"]:
        text.append("| %s | %s | %s | %.2f of %d | %d | %s |" % (one["set"], interval(one["first"], one["count"]), interval(one["third"], one["count"]), one["recall"],
                                                             one["categories"], one["wrong"], interval(one["serious"], one["repaired"])))
    constant = sum("wrong-output-activation" in labels[name]["faults"] + labels[name]["also_acceptable"] for name in names)
    text.append("| always `wrong-output-activation` | %s | | | | |" % interval(constant, len(names)))
    if words.rivals and names:
        with open(words.rivals) as file:
            rows = [row for row in csv.DictReader(file) if row["id"] in names]
        for tool in [column for column in (rows[0] if rows else {}) if column != "id"]:
            text.append("| %s, published | %s | | | | |" % (tool, interval(sum(row[tool] == "TRUE" for row in rows), len(rows))))
    text += ["", "| category | programs | among the first three |", "|---|---|---|"]
    text += ["| %s | %d | %d |" % (category, len(hits), sum(hits)) for category, hits in sorted(result["rules"][0]["by_category"].items())]
    result["early"] = early_counts(words, labels, names)
    text += ["", "| after the first step | right first | in the first three |", "|---|---|---|"]
    text += ["| %s | %s | %s |" % (after, interval(first, count), interval(third, count)) for after, first, third, count in result["early"]]
    return text


def early_counts(words, labels, names):
    """How much was known after some seconds of training; a run that had ended by then counts as it ended."""
    rows = []
    for seconds in SECONDS:
        if seconds > words.seconds:
            break
        first = third = 0
        for name in names:
            folder = os.path.join(words.out, name)
            other = known_after(words, folder, seconds)
            categories = list(dict.fromkeys(category for _, category, _ in told_of(words, other or folder, SETS[0])))
            right = set(labels[name]["faults"]) | set(labels[name]["also_acceptable"])
            first += bool(categories) and categories[0] in right
            third += bool(set(categories[:3]) & right)
        rows.append(["%d s" % seconds, first, third, len(names)])
    return rows


def votes(words, folder):
    """All sets together: categories by the number of sets that name one, netmend's own order where they are equal."""
    counts, order, levels = {}, [], {}
    for rules in SETS:
        for category in dict.fromkeys(category for _, category, level in told_of(words, folder, rules) if level != "note" or rules == SETS[0]):
            counts[category] = counts.get(category, 0) + 1
            if category not in order:
                order.append(category)
    for _, category, level in told_of(words, folder, SETS[0]):
        levels.setdefault(category, level)
    return [("", category, levels.get(category, "minor")) for category in sorted(order, key=lambda one: (-counts[one], order.index(one)))]


def real_score(words, labels, names, rules):
    said = (lambda folder: votes(words, folder)) if rules == "all" else (lambda folder: told_of(words, folder, rules))
    score = {"set": rules, "count": len(names), "first": 0, "third": 0, "wrong": 0, "serious": 0, "repaired": 0}
    recall = {}
    for name in names:
        found, label = said(os.path.join(words.out, name)), labels[name]
        categories = list(dict.fromkeys(category for _, category, _ in found))
        right = set(label["faults"]) | set(label["also_acceptable"])
        score["first"] += bool(categories) and categories[0] in right
        score["third"] += bool(set(categories[:3]) & right)
        above = {category for _, category, level in found if level != "note"}
        score["wrong"] += len(above - right - set(label["contributing"])) > 1
        for category in label["faults"]:
            recall.setdefault(category, []).append(category in categories[:3])
        again = os.path.join(words.out, name + ".repaired")
        if repaired_of(words, name) and os.path.exists(os.path.join(again, "findings.json")):
            score["repaired"] += 1
            score["serious"] += any(level in ("serious", "blocker") for _, _, level in said(again))
    shares = [sum(hits) / len(hits) for hits in recall.values() if len(hits) >= 2]
    return dict(score, recall=sum(shares) / max(1, len(shares)), categories=len(shares), by_category=recall)


def run_all(words, one, cases):
    os.makedirs(words.out, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        for _ in pool.map(one, cases):
            pass


def main():
    parser = argparse.ArgumentParser(prog="python3 -m netmend.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["planted", "heal", "real", "forest"])
    for name, value in (("frameworks", "netmend,torch,keras"), ("networks", "mlp,deep,cnn"), ("data", "blobs,stripes"), ("seeds", "1,2,3"), ("kinds", ""), ("folder", ""), ("labels", ""),
                        ("rivals", ""), ("repaired", ""), ("half", ""), ("kept-data", "blobs,stripes"), ("kept-seeds", "21,22"), ("out", "netmend-study"), ("python", sys.executable), ("keras-python", ""), ("netmend", "netmend"), ("forest", "")):
        parser.add_argument("--" + name, default=value)
    for name, value in (("jobs", 2), ("seconds", 60), ("healthy", 6), ("tries", 12)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--vary", action="store_true", help="strengths of faults and settings around them are drawn, by the seed (always for forest)")
    parser.add_argument("--list", action="store_true", help="real: what is to be run, and nothing else")
    parser.add_argument("--json", action="store_true", help="one document")
    words = parser.parse_args()
    words.out = os.path.abspath(words.out)
    os.makedirs(words.out, exist_ok=True)
    if os.path.exists(words.netmend):
        words.netmend = os.path.abspath(words.netmend)
    if words.study == "real" and not (words.folder and words.labels):
        parser.error("real needs --folder, programs of other people, and --labels")
    if words.study == "forest":
        words.vary = True
        return part("forest").train(words, sys.modules[__name__])
    {"planted": planted, "heal": heal, "real": real}[words.study](words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
