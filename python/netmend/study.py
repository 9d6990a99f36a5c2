"""How often the doctor is right: runs broken trainings under `netmend watch` and prints tables.

usage: python3 -m netmend.study planted [--framework torch|keras] [--networks mlp,deep,cnn] [--data blobs] [--seeds 1,2] [--jobs 2] [--out DIR]
       python3 -m netmend.study real FOLDER --labels labels.json [--rivals rivals.csv] [--half seen|unseen] [--seconds 60] [--out DIR]

`planted` trains the programs of netmend.planted. `real` runs FOLDER/<id>/bug.py of other people, each in a copy of its folder, without
network where the kernel allows it; `--half` takes those whose id has an even (seen) or odd (unseen) last digit of its SHA-256. `--python` is the Python that
trains, `--netmend` the program. What is in DIR already is not run again.
"""
import argparse
import concurrent.futures
import csv
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys

SETS = ("exact,netmend", "autotrainer", "deeplocalize", "deepdiagnosis", "umlaut", "deepchecker", "neuralint", "sagemaker")


def interval(hits, count):
    """`12/20 (60 %, 39–78)`: Wilson's 95 % interval."""
    if not count:
        return "–"
    z, p = 1.96, hits / count
    middle = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return "%d/%d (%.0f %%, %.0f–%.0f)" % (hits, count, 100 * p, 100 * (middle - half), 100 * (middle + half))


def watch(words, folder, program, cwd, seconds=None, alone=False):
    if os.path.exists(os.path.join(folder, "record.jsonl")) or os.path.exists(os.path.join(folder, "run.json")):
        return
    command = [words.netmend, "watch", "--quiet", "--out", folder, "--"]
    if alone and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0:
        command += ["unshare", "-n"]
    if seconds:
        command += ["timeout", "-s", "KILL", str(seconds)]
    environment = dict(os.environ, OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", MPLBACKEND="Agg")
    subprocess.run([*command, words.python, *program], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def findings_of(words, folder, rules):
    """(kind, category, level) as ranked; what watch said itself for netmend's own rules, which knows the program's text too."""
    if rules == SETS[0] and os.path.exists(os.path.join(folder, "findings.json")):
        with open(os.path.join(folder, "findings.json")) as file:
            found = json.load(file)["findings"]
    elif os.path.exists(os.path.join(folder, "record.jsonl")):
        done = subprocess.run([words.netmend, "diagnose", folder, "--json", "--fail-on", "never", *(["--rules", rules] if rules != SETS[0] else [])],
                              capture_output=True, text=True)
        found = json.loads(done.stdout)["findings"] if done.returncode == 0 else []
    else:
        found = []
    return [(one["kind"], one["numbers"].get("category", ""), one["level"]) for one in found]


def planted(words):
    from . import planted as programs
    other = programs.ONLY_KERAS if words.framework == "torch" else programs.ONLY_TORCH
    cases = [(fault, network, data, seed) for fault in programs.FAULTS if fault not in other for network in words.networks.split(",")
             for data in words.data.split(",") for seed in words.seeds.split(",")]
    cases += [("none", network, data, str(int(seed) + more)) for network in words.networks.split(",") for data in words.data.split(",")
              for seed in words.seeds.split(",") for more in range(1000, 1000 + words.healthy)]

    def one(case):
        folder = os.path.join(words.out, "+".join(case))
        watch(words, folder, ["-m", "netmend.planted", case[0], "--framework", words.framework, "--network", case[1], "--data", case[2], "--seed", case[3]],
              words.out)

    run_all(words, one, cases)
    print("| rules | first | in the first three | healthy runs with anything above a note |\n|---|---|---|---|")
    for rules in SETS:
        first = third = count = alarms = healthy = 0
        for case in cases:
            found = findings_of(words, os.path.join(words.out, "+".join(case)), rules)
            kinds = [kind for kind, _, _ in found]
            if case[0] == "none":
                healthy += 1
                alarms += any(level != "note" for _, _, level in found)
                continue
            wanted = set(programs.FAULTS[case[0]].split("|"))
            count += 1
            first += bool(kinds) and kinds[0] in wanted
            third += bool(wanted & set(kinds[:3]))
            if rules == SETS[0] and not (kinds and kinds[0] in wanted):
                print("  not first: %s: %s" % ("+".join(case), ", ".join(kinds[:3]) or "nothing"), file=sys.stderr)
        print("| %s | %s | %s | %s |" % (rules, interval(first, count), interval(third, count), interval(alarms, healthy)))


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
    print("| rules | right first | in the first three | mean recall of categories | programs with two wrong names or more |\n|---|---|---|---|---|")
    for rules in SETS:
        print(real_row(words, labels, names, rules))
    constant = sum("wrong-output-activation" in labels[name]["faults"] + labels[name]["also_acceptable"] for name in names)
    print("| always `wrong-output-activation` | %s | | | |" % interval(constant, len(names)))
    if words.rivals:
        with open(words.rivals) as file:
            rows = [row for row in csv.DictReader(file) if row["id"] in names]
        for tool in [column for column in rows[0] if column != "id"]:
            print("| %s, published | %s | | | |" % (tool, interval(sum(row[tool] == "TRUE" for row in rows), len(rows))))


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
    parser.add_argument("study", choices=["planted", "real"])
    parser.add_argument("folder", nargs="?", default="")
    for name, value in (("framework", "torch"), ("networks", "mlp,deep,cnn"), ("data", "blobs"), ("seeds", "1"), ("labels", ""), ("rivals", ""),
                        ("half", ""), ("out", "netmend-study"), ("python", sys.executable), ("netmend", "netmend")):
        parser.add_argument("--" + name, default=value)
    for name, value in (("jobs", 2), ("seconds", 60), ("healthy", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--score-only", action="store_true", help="only what is in DIR already")
    words = parser.parse_args()
    words.out = os.path.abspath(words.out)
    if words.study == "real" and not (words.folder and words.labels):
        parser.error("real needs a folder of programs and --labels")
    (planted if words.study == "planted" else real)(words)


if __name__ == "__main__":
    main()
