#!/usr/bin/env python3
"""netmend on a GPU beside plain PyTorch on the same GPU, and netmend with all cores beside one, in one run.

usage: device.py BUILD FOLDER [forward_passes|training|attack|criteria|whatif|check]…     BUILD has netmend and netmend-bench built with a LibTorch with CUDA; FOLDER is a scratch folder

Needs PyTorch with CUDA in this Python, and MNIST below NETMEND_DATA. Sides run in turns; figures are medians. Starting the
program and CUDA is not counted: a pass is timed inside, a whole command is said to be one.
"""
import json, os, statistics, subprocess, sys, time

import numpy
import torch
import torch.nn.functional as F

from networks import NETWORKS

BUILD, FOLDER = sys.argv[1], sys.argv[2]
NETMEND = os.path.join(BUILD, "netmend")
CORES = len(os.sched_getaffinity(0))


def netmend(*words, device="cuda", code=(0,)):
    done = subprocess.run([NETMEND, *map(str, words), "--json", "--quiet", "--device", device], capture_output=True, text=True, cwd=FOLDER)
    if done.returncode not in code:
        sys.exit(f"netmend {' '.join(map(str, words))}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def seconds_of(run):
    """The median of three, after one that prepares."""
    run()
    torch.cuda.synchronize()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def best_rate(network, shape, count, batches, **how):
    """Inputs per second of PyTorch's forward pass with inputs on the GPU: the best of batches, layouts and CUDA graphs."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = how.get("tf32", False)
    best = (0, "")
    for channels_last in (False, True):
        layout = torch.channels_last if channels_last else torch.contiguous_format
        net = network().cuda().eval().to(memory_format=layout)
        for batch in batches:
            x = torch.rand(batch, *shape, device="cuda").contiguous(memory_format=layout)
            with torch.no_grad():
                for _ in range(3):
                    net(x)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    net(x)
                for run, name in ((lambda: net(x), "plain"), (graph.replay, "graph")):
                    rounds = max(1, count // batch)
                    rate = rounds * batch / seconds_of(lambda: [run() for _ in range(rounds)])
                    best = max(best, (rate, f"batch {batch}, {'channels last, ' if channels_last else ''}{name}"))
    return best


def row(what, ours, theirs="", note=""):
    print(f"  {what:<58} {ours:<26} {theirs:<26} {note}", flush=True)


def m(rate):
    return f"{rate / 1e6:.2f} M/s" if rate >= 1e6 else f"{rate:,.0f}/s"


def forward_passes():
    netmend("lab", "new", "lenet5", "-o", "lenet5.onnx")
    found = netmend("lab", "benchmark", "lenet5.onnx", "--data", "mnist:train", "--seconds", 0.5, "--anyway")
    rate, how = best_rate(NETWORKS["lenet5"][0], (1, 28, 28), 60000, (1000, 4000, 20000, 60000))
    row("LeNet-5, 60,000 images: judged pass, data on the GPU", m(found["pass"]["from_memory"]), m(rate), f"{found['pass']['from_memory'] / rate:.2f}×; PyTorch forward alone, {how}")
    row("  from the file", m(found["pass"]["from_file"]))
    fastest = max(found["rates"], key=lambda r: r["inputs_per_second"])
    row("  forward alone", m(fastest["inputs_per_second"]), m(rate), f"{fastest['inputs_per_second'] / rate:.2f}×; {100 * fastest['inputs_per_second'] * found['flops_per_input'] / found['peak_flops']:.0f} % of {found['peak_flops'] / 1e12:.0f} TFLOP/s")
    try:
        from torchvision.models import resnet50
    except ImportError:
        return
    netmend("lab", "new", "resnet50", "-o", "resnet50.onnx")
    numpy.savez(os.path.join(FOLDER, "images.npz"), x=numpy.random.rand(512, 3, 224, 224).astype("float32"), y=numpy.arange(512) % 1000)
    found = netmend("lab", "benchmark", "resnet50.onnx", "--data", "npz:images.npz,x=x,y=y", "--seconds", 1, "--anyway", "--precision", "tf32")
    rate, how = best_rate(lambda: resnet50(weights=None), (3, 224, 224), 1024, (64, 128, 256), tf32=True)
    fastest = max(found["rates"], key=lambda r: r["inputs_per_second"])
    row("ResNet-50, 224×224, TF32: forward", m(fastest["inputs_per_second"]), m(rate), f"{fastest['inputs_per_second'] / rate:.2f}×; batch {fastest['batch']}; PyTorch {how}")


def attack():
    told = netmend("stress", "trained.onnx", "--data", "mnist:test", "--method", "pgd", "--eps", 0.1, "-o", "adv.npz", "--all", "--out", "s")
    net = NETWORKS["lenet5"][0]().cuda().eval()
    x = torch.rand(10000, 1, 28, 28, device="cuda")

    def pgd():
        labels, at = net(x).argmax(1), x + 0.1 * (2 * torch.rand_like(x) - 1)
        for _ in range(40):
            at.requires_grad_(True)
            gradient, = torch.autograd.grad(F.cross_entropy(net(at), labels, reduction="sum"), at)
            at = torch.minimum(torch.maximum(at.detach() + 0.01 * gradient.sign(), x - 0.1), x + 0.1).clamp(0, 1)

    one = told["methods"][0]
    row("PGD, 40 steps, LeNet-5, 10,000 MNIST images", f"{one['seconds']:.2f} s", f"{seconds_of(pgd):.2f} s", "PyTorch: all at once, no judging")


def criteria():
    start = time.perf_counter()
    netmend("coverage", "trained.onnx", "--data", "mnist", "--all", "--out", "c")
    whole = time.perf_counter() - start
    run = json.load(open(os.path.join(FOLDER, "c", "run.json")))
    row("all criteria, LeNet-5, 70,000 inputs", f"{run['seconds']:.2f} s", "", f"whole command {whole:.1f} s; {slowest(run)}")


def whatif():
    rng = numpy.random.default_rng(1)
    numpy.savez(os.path.join(FOLDER, "cifar.npz"), x=rng.random((10000, 3, 32, 32), dtype="float32"), y=rng.integers(0, 10, 10000))
    netmend("lab", "new", "resnet20", "-o", "resnet20.onnx")
    for precision in ("float32", "tf32"):
        engine = subprocess.run([os.path.join(BUILD, "netmend-bench"), "cuda", precision], capture_output=True, text=True, cwd=FOLDER,
                                input=f"whatif resnet20.onnx npz:cifar.npz,x=x,y=y 0 0 {CORES}\n")
        found = json.loads(engine.stdout)
        row(f"what-if of {found['edits']} units, resnet20, 10,000 inputs, {precision}", f"{found['seconds']:.1f} s", "", f"one pass {found['pass']:.3f} s: {found['ratio']:.1f}× over evaluating each")


def training():
    for batch in (64, 256, 1024):
        told = netmend("train", "lenet5.onnx", "--data", "mnist", "--batch", batch, "--epochs", 2, "-o", "trained.onnx", "--out", "t")
        ours = 60000 / told["epochs"][-1]["seconds"]
        net = NETWORKS["lenet5"][0]().cuda().train()
        x, y = torch.rand(60000, 1, 28, 28, device="cuda"), torch.randint(10, (60000,), device="cuda")
        optimiser = torch.optim.Adam(net.parameters(), 1e-3)

        def epoch():
            order = torch.randperm(60000, device="cuda")
            for first in range(0, 60000, batch):
                rows = order[first:first + batch]
                optimiser.zero_grad()
                F.cross_entropy(net(x[rows]), y[rows]).backward()
                optimiser.step()

        theirs = 60000 / seconds_of(epoch)
        row(f"training epoch, LeNet-5, batch {batch}", m(ours), m(theirs), f"{ours / theirs:.2f}×")


def slowest(run):
    """Where a command's time went, as its run.json has it."""
    parts = [(t["seconds"], t.get("name") or f"{t.get('split')} {t.get('reason')}") for t in run.get("times", []) + run.get("traversals", [])]
    return ", ".join(f"{name} {seconds:.2f}" for seconds, name in sorted(parts, reverse=True)[:9])


def check():
    for device in ("cpu", "cuda"):
        start = time.perf_counter()
        netmend("check", "trained.onnx", "--data", "mnist", "--budget", "quick", "--fail-on", "never", "--out", f"check-{device}", device=device)
        run = json.load(open(os.path.join(FOLDER, f"check-{device}", "run.json")))
        row(f"check --budget quick, LeNet-5, all of MNIST, {device}", f"{time.perf_counter() - start:.1f} s", "", slowest(run))


print(f"{torch.cuda.get_device_name()}, {CORES} cores, PyTorch {torch.__version__}\n  {'':<58} {'netmend':<26} PyTorch")
for part in (forward_passes, training, attack, criteria, whatif, check):
    if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
        part()
