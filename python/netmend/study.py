"""How often the doctor is right: runs broken trainings under `netmend watch` and prints tables. `netmend lab study broken-trainings`
starts it.

usage: python3 -m netmend.study planted [--frameworks netmend,torch,keras] [--networks mlp,deep,cnn] [--data blobs,stripes] [--seeds 1,2,3]
                                        [--healthy 6] [--jobs 2] [--out DIR] [--python P] [--keras-python P]
       python3 -m netmend.study heal [--networks …] [--data …] [--seeds …] [--out DIR]
       python3 -m netmend.study real --folder DIR --labels labels.json [--rivals rivals.csv] [--half seen|unseen] [--seconds 60] [--out DIR]
       python3 -m netmend.study forest [--frameworks netmend,torch] [--data blobs] [--seeds 11,12,…] [--kept-data blobs,stripes] [--kept-seeds 21,22]
                                       [--out DIR] [--forest FILE]

`planted` trains the programs of netmend.planted, each in one of the frameworks by turns. `heal` puts planted trainings of netmend's own
trainer right, beside random search at equal cost. `real` runs DIR/<id>/bug.py of other people, each in a copy of its folder, without
network where the kernel allows it; `--half` takes those whose id has an even (seen) or odd (unseen) last digit of its SHA-256. `forest`
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
import shutil
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


def watch(words, folder, program, cwd, seconds=None, alone=False, python=None):
    if os.path.exists(os.path.join(folder, "record.jsonl")) or os.path.exists(os.path.join(folder, "run.json")):
        return
    command = [words.netmend, "watch", "--quiet", "--out", folder, "--"]
    if alone and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0:
        command += ["unshare", "-n"]
    if seconds:
        command += ["timeout", "-s", "KILL", str(seconds)]
    environment = dict(os.environ, OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", MPLBACKEND="Agg")
    subprocess.run([*command, python or words.python, *program], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def findings_of(words, folder, rules, plain=False):
    """(kind, category, level) as ranked; what watch said itself for netmend's own rules, which knows the program's text too."""
    if not plain and rules == SETS[0] and os.path.exists(os.path.join(folder, "findings.json")):
        with open(os.path.join(folder, "findings.json")) as file:
            found = json.load(file)["findings"]
    elif os.path.exists(os.path.join(folder, "record.jsonl")):
        done = subprocess.run([words.netmend, "diagnose", folder, "--json", "--fail-on", "never", *(["--rules", rules] if rules != SETS[0] else [])],
                              capture_output=True, text=True)
        found = json.loads(done.stdout)["findings"] if done.returncode == 0 else []
    else:
        found = []
    return [(one["kind"], one["numbers"].get("category", ""), one["level"]) for one in found]


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
        watch(words, folder, program, words.out, python=python)
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
            kinds = [kind for kind, _, _ in findings_of(words, early(place_of(words, case)), "exact,netmend", plain=True)]
            soon.setdefault(case[0], []).append(bool(set(programs.FAULTS[case[0]].split("|")) & set(kinds[:3])))
    result["early"] = {fault: [sum(seen), len(seen)] for fault, seen in soon.items()}
    half = sum(2 * sum(seen) >= len(seen) for seen in soon.values())
    text = ["| rules | first | in the first three | healthy runs with anything above a note |", "|---|---|---|---|"]
    text += ["| %s | %s | %s | %s |" % (one["set"], interval(one["first"], one["count"]), interval(one["third"], one["count"]),
                                       interval(one["alarms"], one["healthy"])) for one in result["rules"]]
    text += ["", "| framework | first | in the first three |", "|---|---|---|"]
    text += ["| %s | %s | %s |" % (name, interval(first, count), interval(third, count)) for name, (first, third, count) in sorted(result["frameworks"].items())]
    text += ["", "Seen within the first 20 % of the steps, in most of the runs: %d of %d kinds that can show by then. %d runs, %d s."
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
            subprocess.run([words.netmend, "heal", folder, "--random", "--json", "--tries", str(words.tries), "--seed", str(case[3]), "--out", folder + ".heal",
                            "-o", folder + ".files/healed.onnx"], cwd=folder + ".files", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run_all(words, one, sorted(sound) + cases)
    rows, text = [], ["| fault | healed | by random search | tries | cost, epochs of inputs |", "|---|---|---|---|---|"]
    for case in cases:
        folder = place_of(words, case)
        healthy = judged(words, place_of(words, ("none",) + case[1:]), place_of(words, ("none",) + case[1:]) + ".files/trained.onnx", folder, case)
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
        done = subprocess.run([words.netmend, "eval", model, "--data", "npz:%s,x=x,y=y" % os.path.join(own, "judge.npz"), "--json", "--anyway", "--out", model + ".eval"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        value = None
        if done.returncode == 0:
            document = json.loads(done.stdout)
            value = document.get("accuracy") if document.get("accuracy") is not None else document.get("r2")
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


def real(words):
    with open(words.labels) as file:
        labels = json.load(file)
    names = [name for name in sorted(labels) if os.path.exists(os.path.join(words.folder, name, "bug.py"))
             and (not words.half or is_seen(name) == (words.half == "seen"))]

    def one(name):
        home = os.path.join(words.out, "work-" + name)
        if not os.path.exists(home):
            shutil.copytree(os.path.join(words.folder, name), home)
        watch(words, os.path.join(words.out, name), ["bug.py"], home, words.seconds, alone=True)

    if not words.score_only:
        run_all(words, one, names)
    text = ["| rules | right first | in the first three | mean recall of categories | programs with two wrong names or more |", "|---|---|---|---|---|"]
    text += [real_row(words, labels, names, rules) for rules in SETS]
    constant = sum("wrong-output-activation" in labels[name]["faults"] + labels[name]["also_acceptable"] for name in names)
    text.append("| always `wrong-output-activation` | %s | | | |" % interval(constant, len(names)))
    if words.rivals:
        with open(words.rivals) as file:
            rows = [row for row in csv.DictReader(file) if row["id"] in names]
        for tool in [column for column in rows[0] if column != "id"]:
            text.append("| %s, published | %s | | | |" % (tool, interval(sum(row[tool] == "TRUE" for row in rows), len(rows))))
    return finish(words, {"study": "real", "programs": names}, text)


def real_row(words, labels, names, rules):
    first = third = wrong_names = 0
    recall = {}
    for name in names:
        found = findings_of(words, os.path.join(words.out, name), rules)
        categories = list(dict.fromkeys(category for _, category, _ in found))
        label = labels[name]
        right = set(label["faults"]) | set(label["also_acceptable"])
        first += bool(categories) and categories[0] in right
        third += bool(set(categories[:3]) & right)
        above = {category for _, category, level in found if level != "note"}
        wrong_names += len(above - right - set(label["contributing"])) > 1
        for category in label["faults"]:
            recall.setdefault(category, []).append(category in categories[:3])
        if rules == SETS[0]:
            print("  %s: %s; label %s" % (name, ", ".join(categories[:3]) or "nothing", ", ".join(label["faults"])), file=sys.stderr)
    shares = [sum(hits) / len(hits) for hits in recall.values() if len(hits) >= 2]
    return "| %s | %s | %s | %.2f of %d | %d |" % (rules, interval(first, len(names)), interval(third, len(names)),
                                                    sum(shares) / max(1, len(shares)), len(shares), wrong_names)


def run_all(words, one, cases):
    os.makedirs(words.out, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        for _ in pool.map(one, cases):
            pass


def main():
    parser = argparse.ArgumentParser(prog="python3 -m netmend.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["planted", "heal", "real", "forest"])
    for name, value in (("frameworks", "netmend,torch,keras"), ("networks", "mlp,deep,cnn"), ("data", "blobs,stripes"), ("seeds", "1,2,3"), ("kinds", ""), ("folder", ""), ("labels", ""),
                        ("rivals", ""), ("half", ""), ("kept-data", "blobs,stripes"), ("kept-seeds", "21,22"), ("out", "netmend-study"), ("python", sys.executable), ("keras-python", ""), ("netmend", "netmend"), ("forest", "")):
        parser.add_argument("--" + name, default=value)
    for name, value in (("jobs", 2), ("seconds", 60), ("healthy", 6), ("tries", 12)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--vary", action="store_true", help="strengths of faults and settings around them are drawn, by the seed (always for forest)")
    parser.add_argument("--score-only", action="store_true", help="only what is in DIR already")
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
