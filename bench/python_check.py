"""What nm.check(module, loader) costs beside the command line on saved data: a ResNet-20 of PyTorch on CIFAR-10's images.

usage: NETMEND_DATA=… python3 bench/python_check.py [INPUTS [BUDGET]]
Needs torch and onnx, and the program (build/release, or NETMEND_PROGRAM). Seconds of the clock and of the processor, of this process and
of those it started.
"""
import gzip, os, subprocess, sys, tempfile, time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import torch

import netmend as nm
from netmend import _program


class Block(torch.nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(after)
        self.conv2 = torch.nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(after)
        self.short = torch.nn.Conv2d(before, after, 1, stride, bias=False) if before != after else torch.nn.Identity()

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + self.short(x))


def resnet20():
    blocks = [Block(b, a, s) for b, a, s in ((16, 16, 1),) * 3 + ((16, 32, 2),) + ((32, 32, 1),) * 2 + ((32, 64, 2),) + ((64, 64, 1),) * 2]
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), *blocks,
                               torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))


def images(count):
    with gzip.open(os.path.join(os.environ["NETMEND_DATA"], "cifar10", "cifar10_train_10000.bin.gz")) as file:
        rows = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)[:count]
    return torch.from_numpy((rows[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255) - 0.45) / np.float32(0.26)), torch.from_numpy(rows[:, 0].astype(np.int64))


def timed(call):
    before, began = os.times(), time.monotonic()
    call()
    after = os.times()
    return time.monotonic() - began, sum(after[:4]) - sum(before[:4])


def main():
    count, budget = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, sys.argv[2] if len(sys.argv) > 2 else "normal"
    x, y = images(count)
    torch.manual_seed(0)
    module = resnet20()
    optimiser = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    for batch in torch.randperm(len(x))[:640].split(64):  # what it predicts does not matter here: --anyway
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(x[batch]), y[batch]).backward()
        optimiser.step()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=256)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        data, model = nm.Data(loader, keep="test.data"), nm.Model(module, data=loader)
        words = [_program.program(), "check", model.file, "--data=" + data.spec, "--budget=" + budget, "--anyway", "--json"]
        line = timed(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        python = timed(lambda: nm.check(module, loader, budget=budget, anyway=True))
    print("%d inputs, budget %s: command line %.1f s (processor %.1f s), from Python %.1f s (%.1f s), ratio %.2f (%.2f)"
          % (count, budget, *line, *python, python[0] / line[0], python[1] / line[1]))


main()
