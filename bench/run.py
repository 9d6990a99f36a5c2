#!/usr/bin/env python3
"""Ratios of netmend to plain PyTorch on this machine, both on all its cores, interleaved in one run.

usage: run.py BUILD [forward|train|workers|memory|locate|relevance|coverage]…     (default: all)

Every figure is the median of ROUNDS rounds; within a round one side runs right after the other, so that whatever else the
machine does hits both. A gate is 85 % of the figure we promise. Exit 1 when a gate is missed.
"""
import json, os, statistics, subprocess, sys, tempfile, time

import numpy
import torch

from networks import NETWORKS

ROUNDS, SECONDS, SLACK = 5, 1.0, 0.85
FORWARD = {"lenet5": 3.0, "dnn1": 1.3, "cifar-convnet": 1.5, "resnet20": 1.5}
TRAIN = {"lenet5": 1.5, "dnn1": 1.2, "cifar-convnet": 1.2, "resnet20": 1.2}
TRAIN_INPUTS = {"lenet5": 12000, "dnn1": 12000, "cifar-convnet": 1600, "resnet20": 1600}
WORKERS = 1.6
LOCATE = 1.15  # at most, of a plain pass
CRITERIA, SURPRISE = 1.5, 6.0  # at most: of two plain passes; seconds on two cores
RELEVANCE = {"layers": 4.0, "inputs": 6.0}  # at most, of a forward pass: down to the first layer, down to the pixels
CORES = len(os.sched_getaffinity(0))


class Engine:
    """netmend's side: a process that answers requests, asleep while PyTorch runs."""

    def __init__(self, build):
        self.netmend = os.path.join(build, "netmend")
        self.process = subprocess.Popen([os.path.join(build, "netmend-bench")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def forward(self, model, batch, jobs=CORES, seconds=SECONDS):
        return self.ask("forward", model, batch, jobs, seconds)["rate"]

    def run(self, *arguments):
        done = subprocess.run([self.netmend, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"netmend {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def torch_forward(network, shape, batch, threads, seconds=SECONDS):
    torch.set_num_threads(threads)
    x = torch.rand(batch, *shape)
    with torch.no_grad():
        network(x)
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            network(x)
            done += batch
        return done / (time.perf_counter() - start)


def torch_train(network, shape, batch, threads, inputs):
    torch.set_num_threads(threads)
    network.train()
    x, y = torch.rand(inputs, *shape), torch.randint(10, (inputs,))
    optimiser, loss = torch.optim.Adam(network.parameters(), 1e-3), torch.nn.CrossEntropyLoss()
    order, start = torch.randperm(inputs), time.perf_counter()
    for first in range(0, inputs, batch):
        rows = order[first:first + batch]
        optimiser.zero_grad()
        loss(network(x[rows]), y[rows]).backward()
        optimiser.step()
    return inputs / (time.perf_counter() - start)


def best(candidates, measure):
    return max(candidates, key=measure)


def report(name, ours, theirs, goal, note=""):
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    ratio = statistics.median(ratios)
    ok = ratio >= SLACK * goal
    print(f"  {name:<28} {statistics.median(ours):>12,.0f}/s {statistics.median(theirs):>12,.0f}/s   {ratio:5.2f}×  "
          f"({ratios[0]:.2f}–{ratios[-1]:.2f})  promised {goal:.1f}×  {'ok' if ok else 'MISSED'}{note}", flush=True)
    return ok


def bench_forward(engine, models):
    print(f"forward, {CORES} cores          netmend        PyTorch     ratio")
    peak = engine.ask("peak", 1)["flops"]
    ok = True
    for name, goal in FORWARD.items():
        make, shape = NETWORKS[name]
        network = make().eval()
        threads, batch = best([(t, b) for t in range(1, CORES + 1) for b in (32, 64, 256, 1000)],
                              lambda s: torch_forward(network, shape, s[1], s[0], 0.3))
        our_batch = best((32, 64, 128, 256), lambda b: engine.forward(models[name], b, seconds=0.3)) if name == "dnn1" else 64
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(engine.forward(models[name], our_batch))
            theirs.append(torch_forward(network, shape, batch, threads))
        share = statistics.median(ours) * engine.ask("flops", models[name])["flops"] / (peak * CORES)
        ok &= report(name, ours, theirs, goal, f"   {share:.0%} of FMA peak; PyTorch {threads} threads, batch {batch}")
    print(f"  FMA peak of one core: {peak / 1e9:.0f} GFLOP/s")
    return ok


def bench_workers(engine, models):
    print("workers                       all cores            one")
    ok = True
    for name in FORWARD:
        many, one = [], []
        for _ in range(ROUNDS):
            many.append(engine.forward(models[name], 64))
            one.append(engine.forward(models[name], 64, jobs=1))
        ok &= report(name, many, one, WORKERS * CORES / 2)
    return ok


def train_once(engine, model, data, inputs, folder):
    out = engine.run("train", model, "--train", data, "--test", data + ",limit=64", "--limit", inputs, "--epochs", 1, "--batch", 32,
                     "-o", os.path.join(folder, "t.onnx"), "--out", os.path.join(folder, "run"))
    return inputs / out["epochs"][0]["seconds"]


def bench_train(engine, models):
    print("training, Adam, batch 32      netmend        PyTorch     ratio")
    ok = True
    folder = tempfile.mkdtemp()
    for name, goal in TRAIN.items():
        make, shape = NETWORKS[name]
        inputs = TRAIN_INPUTS[name]
        data = "glyphs:train" if shape[0] == 1 else "cifar10:train"
        if shape[0] == 3 and not os.environ.get("NETMEND_DATA"):
            print(f"  {name}: SKIPPED, needs CIFAR-10 in NETMEND_DATA")
            continue
        threads = best(range(1, CORES + 1), lambda t: torch_train(make(), shape, 32, t, inputs // 4))
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(train_once(engine, models[name], data, inputs, folder))
            theirs.append(torch_train(make(), shape, 32, threads, inputs))
        ok &= report(name, ours, theirs, goal, f"   PyTorch {threads} threads")
    return ok


def bench_memory(engine, models):
    print("peak memory of eval")
    peaks, folder = [], tempfile.mkdtemp()
    for inputs in (10000, 200000):
        numpy.save(os.path.join(folder, "x.npy"), numpy.random.randint(0, 255, (inputs, 28, 28), dtype=numpy.uint8))
        numpy.save(os.path.join(folder, "y.npy"), numpy.arange(inputs) % 10)
        command = [engine.netmend, "eval", models["lenet5"], "--data", f"npy:{folder}/x.npy,y={folder}/y.npy,scale=1/255", "--json", "--quiet",
                   "--out", os.path.join(folder, "run")]
        process, peak = subprocess.Popen(command, stdout=subprocess.DEVNULL), 0
        while process.poll() is None:  # not ru_maxrss, which begins with this process's own size
            try:
                lines = open(f"/proc/{process.pid}/status").read().splitlines()
            except OSError:
                break
            peak = max([peak] + [int(line.split()[1]) for line in lines if line.startswith("VmHWM")])
            time.sleep(0.01)
        if process.wait() != 0:
            return print("  eval failed") or False
        peaks.append(peak / 1024)
        print(f"  {inputs:>7,} inputs: {peaks[-1]:.0f} MB")
    grew = peaks[1] >= peaks[0] * 1.1 + 8
    print("  MISSED: it grows with the data" if grew else "  ok: it does not grow with the data")
    return not grew


def bench_locate(engine, models):
    print("spectra and all measures      of a plain pass")
    data, ok = "mnist:test" if os.environ.get("NETMEND_DATA") else "glyphs:test", True
    for name in ("lenet5",):  # networks that take microseconds an input have nothing to hide the counting behind
        ratios = []
        for _ in range(3 * ROUNDS):
            plain, located = (engine.ask("pass", models[name], data, CORES, what)["processor"] for what in ("plain", "spectra"))
            ratios.append(located / plain)
        ratio = statistics.median(ratios)
        held = ratio <= LOCATE / SLACK
        print(f"  {name:<28} {ratio:5.2f}×  ({min(ratios):.2f}–{max(ratios):.2f})  promised {LOCATE:.2f}×  {'ok' if held else 'MISSED'}", flush=True)
        ok &= held
    return ok


def bench_coverage(engine, models):
    if not os.environ.get("NETMEND_DATA"):
        return print("criteria: SKIPPED, needs MNIST and CIFAR-10 in NETMEND_DATA") or True
    print("criteria of coverage          of two plain passes (LeNet-5: 60,000 training and 10,000 test images)")
    folder, ok = tempfile.mkdtemp(), True
    trained, data = {}, {"lenet5": "mnist", "cifar-convnet": "cifar10"}
    for name in data:  # surprise needs answers that mean something
        trained[name] = os.path.join(folder, name + ".onnx")
        engine.run("train", models[name], "--data", data[name], "--epochs", 1, "--limit", TRAIN_INPUTS[name], "-o", trained[name],
                   "--out", os.path.join(folder, "run"))
    for name in trained:
        ratios, seconds = [], []
        for _ in range(2 * ROUNDS + 1 if name == "lenet5" else ROUNDS):
            plain, full = (engine.ask("criteria", trained[name], data[name] + ":train", data[name] + ":test", CORES, what) for what in ("plain", "all"))
            ratios.append(full["processor"] / plain["processor"])
            seconds.append(full["seconds"])
        ratio = statistics.median(ratios)
        held = ratio <= CRITERIA / SLACK
        print(f"  {name:<28} {ratio:5.2f}×  ({min(ratios):.2f}–{max(ratios):.2f})  {statistics.median(seconds):.2f} s  promised {CRITERIA:.2f}×  {'ok' if held else 'MISSED'}", flush=True)
        ok &= held
    print("surprise by distance and likelihood, all tests against all training inputs")
    for name in trained:
        runs = [engine.ask("surprise", trained[name], data[name] + ":train", data[name] + ":test", CORES) for _ in range(ROUNDS)]
        seconds = statistics.median(run["seconds"] for run in runs)
        held = seconds <= SURPRISE / SLACK * max(1, 2 / CORES)
        print(f"  {name:<28} {seconds:5.2f} s  ({min(r['seconds'] for r in runs):.2f}–{max(r['seconds'] for r in runs):.2f}), distance {statistics.median(r['distance'] for r in runs):.2f} s, "
              f"{runs[0]['units']} units, {statistics.median(r['processor'] for r in runs):.1f} s of processor time  promised {SURPRISE:.0f} s on two cores  {'ok' if held else 'MISSED'}", flush=True)
        ok &= held
    return ok


def bench_relevance(engine, models):
    print("relevance                     of a forward pass")
    ok = True
    for name in ("lenet5", "cifar-convnet", "resnet20"):
        for depth, goal in RELEVANCE.items():
            ratios = engine.ask("relevance", models[name], 64, CORES, ROUNDS + 4, depth)["ratios"]
            ratio = statistics.median(ratios)
            held = ratio <= goal / SLACK
            print(f"  {name + ', to the ' + depth:<28} {ratio:5.2f}×  ({min(ratios):.2f}–{max(ratios):.2f})  promised {goal:.2f}×  "
                  f"{'ok' if held else 'MISSED'}", flush=True)
            ok &= held
    return ok


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    engine, folder = Engine(sys.argv[1]), tempfile.mkdtemp()
    models = {}
    for name in NETWORKS:
        models[name] = os.path.join(folder, name + ".onnx")
        engine.run("lab", "new", name, "-o", models[name])
    parts = {"forward": bench_forward, "workers": bench_workers, "train": bench_train, "memory": bench_memory, "locate": bench_locate,
             "relevance": bench_relevance, "coverage": bench_coverage}
    wanted = sys.argv[2:] or list(parts)
    results = [parts[part](engine, models) for part in wanted]
    sys.exit(0 if all(results) else 1)


main()
