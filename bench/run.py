#!/usr/bin/env python3
"""Ratios of netmend to plain PyTorch on this machine, both on all its cores, interleaved in one run.

usage: run.py BUILD [forward|train|workers|memory|locate|whatif|relevance|attacks|coverage|check|mutants|inject]…     (default: all)

Every figure is the median of ROUNDS rounds; within a round one side runs right after the other, so that whatever else the
machine does hits both. A gate is 85 % of the figure we promise. Exit 1 when a gate is missed.
"""
import json, os, statistics, subprocess, sys, tempfile, time

import numpy
import torch

from networks import NETWORKS

ROUNDS, SECONDS, SLACK = 5, 1.0, 0.85
FORWARD = {"lenet5": 3.0, "dnn1": 1.3, "cifar-convnet": 1.5, "resnet20": 1.5}
TRAIN = {"lenet5": 2.0, "dnn1": 1.5, "cifar-convnet": 1.6, "resnet20": 1.1}
TRAIN_INPUTS = {"lenet5": 12000, "dnn1": 12000, "cifar-convnet": 1600, "resnet20": 1600}
WORKERS = 1.6
ATTACKS = 1.5  # of foolbox's images a second
LOCATE = 1.15  # at most, of a plain pass
WHATIF = {("lenet5", 0): 40, ("cifar-convnet", 0): 6, ("cifar-convnet", 4): 40}  # at least, over evaluating each; 4: the last four layers
PATCHES = 50
MUTANTS = {"gf,ws,neb,nai,ns,dhn,cb,cw": (2000, 15), "gfl,la,afr": (95, 1.5)}  # at least, over evaluating each: single units and weights, whole layers
MUTANT_SECONDS = 10  # at most, of the 2,000 on two cores
INJECT_SECONDS, INJECT_SHARE, INJECT_MORE = 2, 0.05, 0.1  # 1,000 mutants of a program; a run over the bare program: a share or seconds
RELEVANCE = {"layers": 4.0, "inputs": 6.0}  # at most, of a forward pass: down to the first layer, down to the pixels
CRITERIA, SURPRISE = 1.5, 6.0  # at most: of two plain passes; seconds on two cores
CHECK = {"lenet5": 15, "resnet20": 90}  # at most, seconds on two cores: quick, with all training data
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
    for name in ("lenet5",):  # networks that take microseconds per input have nothing to hide the counting behind
        ratios = []
        for _ in range(3 * ROUNDS):
            plain, located = (engine.ask("pass", models[name], data, CORES, what)["processor"] for what in ("plain", "spectra"))
            ratios.append(located / plain)
        ratio = statistics.median(ratios)
        held = ratio <= LOCATE / SLACK
        print(f"  {name:<28} {ratio:5.2f}×  ({min(ratios):.2f}–{max(ratios):.2f})  promised {LOCATE:.2f}×  {'ok' if held else 'MISSED'}", flush=True)
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


def torch_twin(engine, model, folder):
    """The same network in PyTorch, with the weights of the file."""
    weights = os.path.join(folder, "weights.npz")
    engine.run("weights", model, "-o", weights)
    network = NETWORKS["lenet5"][0]().eval()
    arrays = list(numpy.load(weights).values())
    for module in (m for m in network.modules() if hasattr(m, "weight")):
        for parameter in (module.weight, module.bias):
            found = next(a for a in arrays if a.shape == tuple(parameter.shape) or (a.ndim == 2 and a.T.shape == tuple(parameter.shape)))
            arrays = [a for a in arrays if a is not found]
            found = found if found.shape == tuple(parameter.shape) else found.T
            parameter.data = torch.from_numpy(found.copy())
            parameter.requires_grad_(False)  # attacks need the gradient of the input alone
    return network


def foolbox_attack(attack, model, x, y, eps, batch):
    """Seconds, success rate, median L2 of the successful perturbations."""
    changed, distances, start = [], [], time.perf_counter()
    for first in range(0, len(x), batch):
        rows = slice(first, first + batch)
        _, adversarial, success = attack(model, x[rows], y[rows], epsilons=eps)
        success = success & (adversarial != 0).flatten(1).any(1)  # C&W gives a black picture where it found nothing
        changed.append(success)
        distances.append((adversarial - x[rows]).flatten(1).norm(dim=1)[success])
    seconds = time.perf_counter() - start
    return seconds, torch.cat(changed).float().mean().item(), torch.cat(distances).median().item()


def bench_attacks(engine, models):
    print("attacks on a trained LeNet-5   netmend        foolbox     ratio")
    try:
        import foolbox
    except ImportError:
        return print("  SKIPPED, needs foolbox (./dev bench installs it where PyPI can be reached)") or True
    data, folder = "mnist" if os.environ.get("NETMEND_DATA") else "glyphs", tempfile.mkdtemp()
    model = os.path.join(folder, "trained.onnx")
    engine.run("train", models["lenet5"], "--data", data, "--epochs", 1, "-o", model, "--out", os.path.join(folder, "run"))
    network, ok = torch_twin(engine, model, folder), True
    cases = {"fgsm": (1200, {"eps": 0.1}, lambda: foolbox.attacks.LinfFastGradientAttack()),
             "pgd": (300, {"eps": 0.1}, lambda: foolbox.attacks.LinfPGD()),
             "cw": (64, {"steps": 60, "step-size": 0.1}, lambda: foolbox.attacks.L2CarliniWagnerAttack(steps=60, stepsize=0.1))}
    setting = (1, 64)
    for name, (inputs, options, make) in cases.items():
        flags = [word for key, value in options.items() for word in ("--" + key, value)]
        file = os.path.join(folder, name + ".npz")

        def ours():
            return engine.run("stress", model, "--data", data + ":test", "--limit", inputs, "--method", name, *flags, "-o", file, "--out",
                              os.path.join(folder, "stress"))["methods"][0]

        ours()
        saved = numpy.load(file)
        images = torch.from_numpy(raw_images(engine, data, saved["sample"], folder)).float() / 255
        labels, attack = torch.from_numpy(saved["before"]), make()
        wrapped = foolbox.PyTorchModel(network, bounds=(0, 1))

        def theirs():
            torch.set_num_threads(setting[0])
            return foolbox_attack(attack, wrapped, images, labels, options.get("eps"), setting[1])

        if name != "cw":  # it does the same steps, more of them
            settings = [(t, b) for t in range(1, CORES + 1) for b in (64, 256)]
            times = []
            for setting in settings:
                times.append(theirs()[0])
            setting = settings[times.index(min(times))]
        rates, rivals, outcomes = [], [], []
        for _ in range(ROUNDS):
            mine, rival = ours(), theirs()
            rates.append(mine["inputs_per_second"])
            rivals.append(len(images) / rival[0])
            outcomes.append((mine["success"]["rate"], rival[1], mine["distortion"]["l2"]["median"], rival[2]))
        own, other, near, far = (statistics.median(column) for column in zip(*outcomes))
        equal = own >= other - 0.02 and near <= far * 1.05
        ok &= report(name, rates, rivals, ATTACKS, f"   success {own:.1%} against {other:.1%}, L2 {near:.3f} against {far:.3f}"
                     f"{'' if equal else '  NOT AS GOOD'}; {len(images)} inputs, foolbox {setting[0]} threads, batch {setting[1]}") and equal
    return ok


def raw_images(engine, data, samples, folder):
    """The originals, by an attack that changes nothing to speak of."""
    file = os.path.join(folder, "originals.npz")
    engine.run("stress", os.path.join(folder, "trained.onnx"), "--data", data + ":test", "--limit", int(samples.max()) + 1, "--method",
               "white-noise", "--eps", 1e-9, "--round", "-o", file, "--out", os.path.join(folder, "stress"))
    stored = numpy.load(file)
    place = {int(sample): row for row, sample in enumerate(stored["sample"])}
    return stored["x"][[place[int(sample)] for sample in samples]]


def bench_coverage(engine, models):
    if not os.environ.get("NETMEND_DATA"):
        return print("criteria: SKIPPED, needs MNIST and CIFAR-10 in NETMEND_DATA") or True
    print("criteria of coverage          of two plain passes (LeNet-5: 60,000 training and 10,000 test images)")
    folder, ok = tempfile.mkdtemp(), True
    trained, data = {}, {"lenet5": "mnist", "cifar-convnet": "cifar10"}
    for name in data:  # surprise compares inputs by predicted class, so predictions must mean something
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


def bench_whatif(engine, models):
    """Every unit's weights changed once, all inputs judged under each change, against a plain pass for each."""
    print("what-if of one-unit edits     of evaluating each")
    images, ok = ("mnist:test", "cifar10:test") if os.environ.get("NETMEND_DATA") else ("glyphs:test", None), True

    def line(name, found, goal, note):
        ratios = sorted(one["ratio"] for one in found)
        held = statistics.median(ratios) >= SLACK * goal
        print(f"  {name:<28} {statistics.median(ratios):6.1f}×  ({ratios[0]:.1f}–{ratios[-1]:.1f})  promised {goal}×  {'ok' if held else 'MISSED'}   {note}", flush=True)
        return held

    for (name, last), goal in WHATIF.items():
        data = images[0] if name == "lenet5" else images[1]
        if not data:
            print(f"  {name}: SKIPPED, needs CIFAR-10 in NETMEND_DATA")
            continue
        inputs = 10000 if name == "lenet5" else 512 if last else 256
        found = [engine.ask("whatif", models[name], data, inputs, last, CORES) for _ in range(ROUNDS)]
        ok &= line(name + (f", last {last} layers" if last else ""), found, goal,
                   f"{found[0]['edits']} edits, {found[0]['inputs']} inputs; operations allow {found[0]['operations_allow']:.0f}×")
    found = [engine.ask("patches", models["lenet5"], images[0], 10000, 12, 100, CORES) for _ in range(ROUNDS)]
    ok &= line("lenet5, 12 weights a patch", found, PATCHES, f"last two layers, 100 patches, {found[0]['kept'] / 1e6:.0f} MB kept")
    return ok


def bench_mutants(engine, models):
    """Mutants of a trained LeNet-5, all tests judged under each, against a plain pass for each."""
    print("mutants                       of evaluating each")
    data, folder, ok = "mnist" if os.environ.get("NETMEND_DATA") else "glyphs", tempfile.mkdtemp(), True
    model = os.path.join(folder, "trained.onnx")
    engine.run("train", models["lenet5"], "--train", data + ":train", "--limit", TRAIN_INPUTS["lenet5"], "--epochs", 1, "-o", model, "--out",
               os.path.join(folder, "run"))
    for operators, (count, goal) in MUTANTS.items():
        found = [engine.ask("mutants", model, data + ":test", 10000, count, operators, CORES) for _ in range(3)]
        ratios, seconds = sorted(one["ratio"] for one in found), statistics.median(one["seconds"] for one in found)
        held = statistics.median(ratios) >= SLACK * goal and (goal < 15 or seconds <= MUTANT_SECONDS / SLACK * max(1, 2 / CORES))
        print(f"  {operators:<28} {statistics.median(ratios):6.1f}×  ({ratios[0]:.1f}–{ratios[-1]:.1f})  promised {goal}×  {'ok' if held else 'MISSED'}   "
              f"{found[0]['mutants']} mutants, {found[0]['inputs']} inputs: {seconds:.1f} s, listed in {found[0]['generating']:.2f} s; a pass {found[0]['pass']:.3f} s", flush=True)
        ok &= held
    return ok


def bench_inject(engine, models):
    """Listing the mutants of a long program, and what the sandbox adds to a run of a short one."""
    print("bugs in a program")
    python, folder = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable, tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    source = os.path.join(folder, "long.py")
    with open(source, "w") as file:
        file.write("import time\n")
        for part in range(166):
            file.write(f"def part{part}(value, limit={part}):\n    total = value * {part} + 1\n    if total > limit and value != 3:\n"
                       f"        total -= 2\n    return total if not limit else total / 2\n\n")
        file.write("right = sum(part0(step) > 0 for step in range(40))\ntime.sleep(1)\nprint('accuracy', right / 40)\n")
    with open(source) as file:
        lines = sum(1 for _ in file)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "netmend", "_injection.py")
    took = []
    for _ in range(ROUNDS):
        request = json.dumps({"files": [{"path": source, "name": "long.py"}], "operators": [], "per_file": 0, "sample": 1000, "seed": 1,
                              "out": tempfile.mkdtemp()})
        begin = time.time()
        made = json.loads(subprocess.run([python, script, "mutants"], input=request, capture_output=True, text=True, check=True).stdout)
        took.append(time.time() - begin)
    held = statistics.median(took) <= INJECT_SECONDS / SLACK and len(made["mutants"]) == 1000
    print(f"  {len(made['mutants']):,} mutants of {lines:,} lines   {statistics.median(took):5.2f} s ({min(took):.2f}–{max(took):.2f})  promised {INJECT_SECONDS} s  "
          f"{'ok' if held else 'MISSED'}", flush=True)
    ok = held
    bare = []
    for _ in range(10):
        begin = time.time()
        subprocess.run([python, source], capture_output=True, check=True, env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"})
        bare.append(time.time() - begin)
    found = engine.run("inject", source, "--python", python, "--metric", "accuracy ([0-9.]+)", "--clean-runs", 10, "--sample", 1, "--doctor", 0, "--jobs", 1,
                       "--out", os.path.join(folder, "run"))
    more = found["clean"]["seconds"] - statistics.mean(bare)
    held = more <= max(INJECT_SHARE * statistics.mean(bare), INJECT_MORE) / SLACK
    print(f"  a run in the sandbox          {1000 * more:5.0f} ms more than {statistics.mean(bare):.2f} s  promised {1000 * INJECT_MORE:.0f} ms or {INJECT_SHARE:.0%}  "
          f"{'ok' if held else 'MISSED'}", flush=True)
    return ok and held


def bench_check(engine, models):
    """The whole command as a user starts it, on a network that was trained a little, and where its time goes."""
    print("check --budget quick          seconds")
    folder, ok = tempfile.mkdtemp(), True
    if not os.environ.get("NETMEND_DATA"):
        return print("  SKIPPED, needs MNIST and CIFAR-10 in NETMEND_DATA") or True
    for name, goal in CHECK.items():
        data, inputs = ("mnist", 20000) if name == "lenet5" else ("cifar10", 2000)
        trained = os.path.join(folder, name + ".onnx")
        engine.run("train", models[name], "--train", data + ":train", "--limit", inputs, "--epochs", 1, "-o", trained, "--out", os.path.join(folder, "train"))
        took, parts = [], []
        for _ in range(3 if name == "lenet5" else 1):
            begin = time.time()
            found = engine.run("check", trained, "--data", data, "--budget", "quick", "--fail-on", "never", "--out", os.path.join(folder, "run"))
            took.append(time.time() - begin)
            parts.append(found["times"])
        held = statistics.median(took) <= goal / SLACK
        where = ", ".join(f"{part['what']} {part['seconds']:.1f}" for part in parts[took.index(statistics.median_low(took))] if part["seconds"] >= 0.1)
        print(f"  {name + ', ' + data:<28} {statistics.median(took):5.1f}  ({min(took):.1f}–{max(took):.1f})  promised {goal}  {'ok' if held else 'MISSED'}   {where}", flush=True)
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
    parts = {"forward": bench_forward, "workers": bench_workers, "train": bench_train, "memory": bench_memory, "locate": bench_locate, "whatif": bench_whatif,
             "relevance": bench_relevance, "coverage": bench_coverage, "attacks": bench_attacks, "check": bench_check, "mutants": bench_mutants, "inject": bench_inject}
    wanted = sys.argv[2:] or list(parts)
    results = [parts[part](engine, models) for part in wanted]
    sys.exit(0 if all(results) else 1)


main()
