#!/usr/bin/env python3
"""Networks and data that no rule of netmend was tuned on, for `netmend lab study check-quality`.

usage: NETMEND_DATA=FOLDER unseen_networks.py NETMEND FOLDER

Writes models, their splits and `models.txt` into FOLDER, one line per network as --models and --faulty take it: COMPAS,
German credit (NETMEND_DATA/fairness), scikit-learn's breast cancer and digits, rt-polarity. Needs scikit-learn and torch.
"""
import csv, gzip, os, random, subprocess, sys

import numpy as np
import torch
from sklearn import datasets
from torch import nn

NETMEND, FOLDER = os.path.abspath(sys.argv[1]), sys.argv[2]
DATA = os.path.abspath(os.environ["NETMEND_DATA"])
os.makedirs(FOLDER, exist_ok=True)
os.chdir(FOLDER)
torch.manual_seed(3)


def netmend(*arguments):
    subprocess.run([NETMEND, *map(str, arguments), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def export(network, inputs, file):
    network.eval()
    torch.onnx.export(network, inputs, file, input_names=["x"], output_names=["y"], opset_version=13,
                      dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})


def split(name, head, rows):
    """Seven tenths to train on, the rest to test."""
    random.Random(1).shuffle(rows)
    first = len(rows) * 7 // 10
    for part, some in ("train", rows[:first]), ("test", rows[first:]):
        with open(f"{name}_{part}.csv", "w", newline="") as file:
            csv.writer(file).writerows([head, *some])


def fairness(file):
    return gzip.open(os.path.join(DATA, "fairness", file), "rt")


def table(name, label, layers):
    """A dense network on the table, exported by PyTorch and trained by netmend."""
    export(nn.Sequential(*layers), torch.zeros(1, layers[0].in_features), "fresh.onnx")
    netmend("train", "fresh.onnx", "--train", f"csv:{name}_train.csv,label={label}", "--epochs", 12, "-o", f"{name}.onnx")
    return f"{name}.onnx@csv:{name}_test.csv,label={label},train={name}_train.csv@csv:{name}_train.csv,label={label}"


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.an = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.b, self.bn = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.c, self.out = nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.an(self.a(x)))
        x = torch.relu(x + self.bn(self.b(x)))
        return self.out(torch.relu(self.c(x)).mean((2, 3)))


def digits():
    whole = datasets.load_digits()
    x, y = (whole.images / 16).astype("float32")[:, None], whole.target.astype("int64")
    order, first = np.random.RandomState(0).permutation(len(x)), 1200
    np.savez("digits_train.npz", x=x[order[:first]], y=y[order[:first]])
    np.savez("digits_test.npz", x=x[order[first:]], y=y[order[first:]])
    inputs, labels, network = torch.tensor(x[order[:first]]), torch.tensor(y[order[:first]]), Residual()
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(30):
        for batch in torch.randperm(first).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimiser.step()
    export(network, inputs[:1], "digits.onnx")
    return "digits.onnx@npz:digits_test.npz,x=x,y=y@npz:digits_train.npz,x=x,y=y"


with fairness("compas-scores-two-years.csv.gz") as file:
    head, *rows = csv.reader(file)
columns = ["sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree"]
split("compas", [*columns, "two_year_recid"],
      [[row[head.index(c)] for c in columns] + ["yes" if row[head.index("two_year_recid")] == "1" else "no"]
       for row in rows])
with fairness("german.data.gz") as file:
    rows = [line.split() for line in file if line.strip()]
head = ("status duration history purpose amount savings employment rate personal debtors residence property age plans "
        "housing credits job people phone foreign risk").split()
split("german", head, [[*row[:-1], {"1": "good", "2": "bad"}[row[-1]]] for row in rows])
cancer = datasets.load_breast_cancer()
split("cancer", [name.replace(" ", "_") for name in cancer.feature_names] + ["class"],
      [[*map(float, x), cancer.target_names[y]] for x, y in zip(cancer.data, cancer.target)])
models = [
    digits(),
    table("compas", "two_year_recid", [nn.Linear(15, 24), nn.Tanh(), nn.Linear(24, 12), nn.Tanh(), nn.Linear(12, 2)]),
    table("german", "risk", [nn.Linear(61, 40), nn.LeakyReLU(), nn.Linear(40, 20), nn.LeakyReLU(), nn.Linear(20, 2)]),
    table("cancer", "class", [nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2)]),
]
netmend("lab", "new", "textcnn", "-o", "fresh.onnx")
netmend("train", "fresh.onnx", "--data", "rt-polarity", "--epochs", 3, "-o", "rt.onnx")
with open("models.txt", "w") as file:
    file.write("\n".join([*models, "rt.onnx@rt-polarity"]) + "\n")
print(f"{FOLDER}/models.txt")
