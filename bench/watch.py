#!/usr/bin/env python3
"""What `netmend watch` costs: programs of four sizes, plain and watched in turn, and whether they end with the same weights.

usage: watch.py NETMEND [ROUNDS]

Needs PyTorch in this Python. Counted are the processor seconds of the training loop, on one thread, so that other work on the machine
matters little; medians of ROUNDS (7), and the quartiles of watched against plain in the same round.
"""
import json, os, statistics, subprocess, sys, tempfile

PROGRAM = """
import hashlib, sys, time, torch
from torch import nn
F = nn.functional
torch.manual_seed(0); torch.set_num_threads(1)
%s
def epochs(): # the same batches in both
    for step in range(STEPS): yield torch.randint(0, len(x), (BATCH,))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
begin = time.process_time()
for i in epochs():
    opt.zero_grad(); loss = F.cross_entropy(net(x[i]), y[i]); loss.backward(); opt.step()
seconds = time.process_time() - begin
digest = hashlib.sha256()
for value in net.state_dict().values(): digest.update(value.double().numpy().tobytes())
print(seconds, digest.hexdigest())
"""
PROGRAMS = {
    "linear, 130 weights": "STEPS, BATCH = 6000, 32\nx = torch.randn(2000, 12); y = torch.randint(0, 10, (2000,)); net = nn.Linear(12, 10)",
    "three layers, 27 thousand": "STEPS, BATCH = 4000, 64\nx = torch.randn(2000, 64); y = torch.randint(0, 10, (2000,))\n"
                                 "net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))",
    "convolutions, 61 thousand": "STEPS, BATCH = 300, 32\nx = torch.randn(600, 3, 32, 32); y = torch.randint(0, 10, (600,))\n"
                                 "net = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), nn.ReLU(), "
                                 "nn.Conv2d(64, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10))",
    "transformer, 3.2 million": "STEPS, BATCH = 60, 16\nx = torch.randint(0, 500, (600, 32)); y = torch.randint(0, 10, (600,))\n"
                                "class Net(nn.Module):\n    def __init__(self):\n        super().__init__(); self.e = nn.Embedding(500, 256); self.t = nn.TransformerEncoder("
                                "nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 4); self.o = nn.Linear(256, 10)\n"
                                "    def forward(self, x): return self.o(self.t(self.e(x)).mean(1))\nnet = Net()",
}


def run(netmend, folder, name, watched):
    file = os.path.join(folder, "p.py")
    with open(file, "w") as opened:
        opened.write(PROGRAM % PROGRAMS[name])
    out = tempfile.mkdtemp(dir=folder)
    words = [netmend, "watch", "--quiet", "--out", os.path.join(out, "run"), "--"] if watched else []
    done = subprocess.run([*words, sys.executable, file], capture_output=True, text=True, cwd=out, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit("%s: %s" % (name, done.stderr[-2000:]))
    seconds, digest = done.stdout.split()
    return float(seconds), digest


def main():
    netmend, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    print("| program | plain | watched | ratio (quartiles) | weights |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            plain, watched, digests = [], [], set()
            for turn in range(rounds):  # each goes first as often
                for one in ((False, True) if turn % 2 else (True, False)):
                    seconds, digest = run(netmend, folder, name, one)
                    (watched if one else plain).append(seconds)
                    digests.add(digest)
            ratios = sorted(b / a for a, b in zip(plain, watched))
            low, middle, high = statistics.quantiles(ratios, n=4)
            print("| %s | %.2f s | %.2f s | %.2f (%.2f–%.2f) | %s |" % (name, statistics.median(plain), statistics.median(watched), middle, low, high,
                                                                       "the same bits" if len(digests) == 1 else "DIFFERENT"), flush=True)


if __name__ == "__main__":
    main()
