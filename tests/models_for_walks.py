"""Small networks trained and exported by PyTorch, with their data: what the tests of walks, wrong set-ups and relevance
share."""
import csv, gzip, inspect, math, os, sys, warnings

from shell import PYTHON, data, need, read, read_bytes, write_bytes

need("numpy", "torch", files=("cifar10", "fairness", "fashion-mnist", "mnist", "rt-polarity"))
import numpy, torch
from torch import nn

sys.path.insert(0, PYTHON)
from netmend import _png

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)
MNIST_MEAN, MNIST_STD = (0.1307,), (0.3081,)


# ---- data, as it lies in the files ----

def cifar(split):
    """uint8 N×3×32×32, class numbers."""
    count = {"train": 10000, "test": 2000}[split]
    with gzip.open(data("cifar10", f"cifar10_{split}_{count}.bin.gz")) as file:
        records = numpy.frombuffer(file.read(), numpy.uint8).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(numpy.int64)


def cifar_names():
    return read(data("cifar10", "batches.meta.txt")).split()


def idx(name, split, limit):
    """uint8 N×1×28×28, class numbers."""
    start = {"train": "train", "test": "t10k"}[split]

    def values(kind, head):
        with gzip.open(data(name, f"{start}-{kind}-ubyte.gz")) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=head)
    images, labels = values("images-idx3", 16).reshape(-1, 1, 28, 28), values("labels-idx1", 8)
    return images[:limit], labels[:limit].astype(numpy.int64)


def sentences():
    """Training and test sentences with their labels, one of five in the test."""
    parts = {"train": ([], []), "test": ([], [])}
    for label, kind in enumerate(("neg", "pos")):
        for number, line in enumerate(read(data("rt-polarity", "rt-polarity." + kind)).strip().split("\n")):
            words, labels = parts["test" if number % 5 == 0 else "train"]
            words.append(line.strip()), labels.append(label)
    for name, (words, labels) in parts.items():
        order = numpy.random.RandomState(1).permutation(len(words))
        parts[name] = [words[i] for i in order], numpy.array(labels)[order]
    return parts


class Vocabulary:
    """0 pads, 1 is unknown, 2 begins every text, as tokenizers have it."""

    def __init__(self, texts, size=3000):
        counts = {}
        for text in texts:
            for word in text.split():
                counts[word] = counts.get(word, 0) + 1
        self.words = ["[pad]", "[unk]", "[cls]"] + sorted(counts, key=lambda word: (-counts[word], word))[:size]
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def ids(self, text, longest=32):
        return numpy.array([2] + [self.numbers.get(word, 1) for word in text.split()][:longest - 1], numpy.int64)


def padded(rows):
    width = max(map(len, rows))
    ids, mask = numpy.zeros((len(rows), width), numpy.int64), numpy.zeros((len(rows), width), numpy.int64)
    for row, values in enumerate(rows):
        ids[row, :len(values)], mask[row, :len(values)] = values, 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


ADULT = ("age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
         "capital-loss,hours-per-week,native-country,income").split(",")


def adult_rows(split):
    """Rows as texts, the label last and without the full stop of the test file."""
    with gzip.open(data("fairness", "adult." + {"train": "data", "test": "test"}[split] + ".gz"), "rt") as file:
        rows = [[word.strip() for word in line] for line in csv.reader(file) if len(line) == 15]
    return [row[:14] + [row[14].rstrip(".")] for row in rows]


def adult_labels(rows):
    return numpy.array([int(row[14] == ">50K") for row in rows])


class Encoding:
    """One column for a number, by mean and deviation in training; one for each word, in the order of the alphabet."""

    def __init__(self, rows, columns):
        self.columns = []
        for name in columns:
            values = [row[ADULT.index(name)] for row in rows]
            try:
                numbers = numpy.array([float(value) for value in values])
                self.columns.append((name, numbers.mean(), numbers.std(), None))
            except ValueError:
                self.columns.append((name, 0, 1, {word: i for i, word in enumerate(sorted(set(values)))}))

    def __call__(self, rows):
        parts = []
        for name, mean, deviation, words in self.columns:
            values = [row[ADULT.index(name)] for row in rows]
            if words is None:
                parts.append(((numpy.array([float(value) for value in values]) - mean) / deviation)[:, None])
                continue
            one = numpy.zeros((len(rows), len(words)))
            for row, word in enumerate(values):
                if word in words:
                    one[row, words[word]] = 1
            parts.append(one)
        return torch.from_numpy(numpy.concatenate(parts, 1).astype(numpy.float32))


def write_images(folder, pixels, labels, names):
    """folder/class/number.png; gives the paths."""
    paths = []
    for number, (image, label) in enumerate(zip(pixels, labels)):
        place = os.path.join(folder, names[label])
        os.makedirs(place, exist_ok=True)
        paths.append(os.path.join(place, f"{number:05}.png"))
        write_bytes(paths[-1], _png.encode(numpy.ascontiguousarray(image.transpose(1, 2, 0))))
    return paths


# ---- networks ----

class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu, self.shortcut = nn.ReLU(), nn.Sequential()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class Residual(nn.Module):
    def __init__(self, width=12, classes=10):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        self.layer1, self.layer2 = nn.Sequential(Block(width, width, 2)), nn.Sequential(Block(width, 2 * width, 2))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(4 * width, classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x))))))
        return self.fc(self.pool(x).flatten(1))


class ChannelsLast(nn.Module):
    """Takes N×H×W×C and begins with a Transpose, as networks that tf2onnx writes. Softmax, as Keras models end."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                      nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head, self.softmax = nn.Linear(512, classes), nn.Identity()

    def forward(self, x):
        return self.softmax(self.head(self.features(x.permute(0, 3, 1, 2))))


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(400, 60), nn.Linear(60, 10)
        self.pool, self.relu = nn.MaxPool2d(2), nn.ReLU()

    def forward(self, x):
        x = self.pool(self.relu(self.conv2(self.pool(self.relu(self.conv1(x))))))
        return self.fc2(self.relu(self.fc1(x.flatten(1))))


def perceptron(inputs=784, hidden=64, outputs=10):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Reader(nn.Module):
    """A transformer that takes ids and a mask, as text classifiers do."""

    def __init__(self, words, width=32, longest=40, classes=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, activation="gelu", batch_first=True, dropout=0.1)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(width, classes)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        weight = attention_mask.unsqueeze(2).to(x.dtype)
        return self.head((x * weight).sum(1) / weight.sum(1).clamp(min=1))


class Twice(nn.Module):
    """A softmax inside the network, and another one after it."""

    def __init__(self, network, times=2):
        super().__init__()
        self.network, self.times = network, times

    def forward(self, *inputs):
        x = self.network(*inputs)
        for _ in range(self.times):
            x = torch.softmax(x, 1)
        return x


class TwoOutputs(nn.Module):
    """An auxiliary head comes first: as wide, but trained for nothing."""

    def __init__(self, network, outputs):
        super().__init__()
        self.network, self.aux = network, nn.Linear(outputs, outputs)

    def forward(self, *inputs):
        x = self.network(*inputs)
        return self.aux(torch.tanh(x)), x


# ---- training and export ----

def train(network, inputs, labels, epochs=1, rate=2e-3, batch=64, seed=0, steps=None, binary=False):
    """inputs: a list of tensors, samples first. Adam with a rate that falls to nothing, as everybody does it."""
    torch.manual_seed(seed)
    labels = torch.as_tensor(labels)
    network.train()
    adam = torch.optim.Adam(network.parameters(), rate)
    whole = steps or epochs * math.ceil(len(labels) / batch)
    done = 0
    while done < whole:
        for chosen in torch.randperm(len(labels)).split(batch):
            if done == whole or (len(chosen) == 1 and len(labels) > 1):
                break
            for group in adam.param_groups:
                group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * done / whole))
            answers = network(*[x[chosen] for x in inputs])
            if binary:
                loss = nn.functional.binary_cross_entropy_with_logits(answers[:, 0], labels[chosen].float())
            else:
                loss = nn.functional.cross_entropy(answers, labels[chosen])
            adam.zero_grad(), loss.backward(), adam.step()
            done += 1
    return network.eval()


def answers(network, inputs, batch=500):
    network.eval()
    with torch.no_grad():
        return torch.cat([network(*parts) for parts in zip(*[x.split(batch) for x in inputs])])


def accuracy(network, inputs, labels, binary=False):
    given = answers(network, inputs)
    predicted = (given[:, 0] > (0.5 if binary == "probability" else 0)).long() if binary else given.argmax(1)
    return (predicted == torch.as_tensor(labels)).float().mean().item()


def export(network, inputs, file, names=("x",), outputs=("scores",), free=False, fold=True):
    """free: batch (and length of ids) of any size; otherwise a batch of one as it is by default."""
    network.eval()
    one = tuple(x[:2] if free else x[:1] for x in inputs)
    axes = None
    if free:
        axes = {name: {0: "batch", 1: "length"} if x.dtype == torch.int64 else {0: "batch"}
                for name, x in zip(names, inputs)}
        axes.update({name: {0: "batch"} for name in outputs})
    mode = torch.onnx.TrainingMode
    older = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(network, one, file, input_names=list(names), output_names=list(outputs), dynamic_axes=axes,
                      opset_version=14, training=mode.EVAL if fold else mode.PRESERVE, do_constant_folding=fold, **older)
    return file


def normalised(pixels, mean=(0,), std=(1,)):
    x = torch.from_numpy(pixels.astype(numpy.float32) / 255)
    return (x - torch.tensor(mean).view(1, -1, 1, 1)) / torch.tensor(std).view(1, -1, 1, 1)


# ---- what is in an ONNX file, as far as it is needed here ----

def _fields(raw):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(raw):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or number()
        yield key >> 3, raw[at:at + size]
        at += size


def initializers(file):
    """Weights by name, float32 only."""
    found = {}
    for field, graph in _fields(read_bytes(file)):
        if field != 7:
            continue
        for inside, tensor in _fields(graph):
            if inside != 5:
                continue
            about = {"dims": []}
            for key, value in _fields(tensor):
                if key == 1:
                    about["dims"] += [value] if isinstance(value, int) else []
                else:
                    about[key] = value
            if about.get(2) == 1 and 9 in about:
                found[bytes(about[8]).decode()] = numpy.frombuffer(about[9], "<f4").reshape(about["dims"]).copy()
    return found
