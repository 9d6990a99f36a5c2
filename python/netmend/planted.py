"""Small training programs with a known fault, in PyTorch or Keras, or for netmend's own trainer: for the examples of `netmend why`,
for tests, and for the study of broken trainings.

usage: netmend watch -- python3 -m netmend.planted FAULT [--framework torch|keras] [--network mlp|deep|cnn]
                                                   [--data blobs|stripes|patches] [--seed N] [--epochs N] [--vary]
       python3 -m netmend.planted FAULT --framework netmend […] [--netmend PROGRAM] [--out RUN]
The second writes model.onnx and two NPZ files into the working folder and starts `netmend train`. FAULT `none` is a sound program; `--list` lists the faults.
"""
import argparse
import sys

EPOCHS = 12
FAULTS = {  # fault: the kind of finding that it should raise; where two are right, both
    "none": "",
    "no-zero-grad": "gradients-accumulate", "double-step": "step-without-backward", "layer-not-in-optimizer": "untrained-parameters",
    "lost-updates": "lost-updates", "changed-outside-step": "changed-outside-step", "no-eval": "evaluated-in-train-mode",
    "no-train-mode": "trained-in-eval-mode", "sorted-labels": "not-shuffled", "validation-is-training": "validation-overlap",
    "samples-mixed": "samples-mixed", "softmax-twice": "output-activation", "wrong-loss": "wrong-loss",
    "wrong-output-size": "wrong-output-size", "label-encoding": "label-encoding", "shape-broadcast": "shape-broadcast",
    "wrong-metric": "metric-mismatch", "log-of-zero": "non-finite-training", "no-nonlinearity": "missing-nonlinearity",
    "dead-relu": "dead-relu", "saturated": "saturated-training", "vanishing-gradient": "vanishing-gradient",
    "exploding-gradient": "exploding-gradient|bad-initialization", "constant-init": "bad-initialization", "inputs-not-scaled": "inputs-not-scaled",
    "targets-not-scaled": "targets-not-scaled", "learning-rate-high": "learning-rate-high", "learning-rate-low": "learning-rate-low",
    "too-few-epochs": "still-learning", "over-fitting": "over-fitting-run", "random-labels": "not-learning",
    "unstable": "unstable-training|learning-rate-high", "one-batch": "batch-size", "unbalanced": "unbalanced-training", "little-data": "little-data",
    "no-validation": "evaluation-missing", "schedule-never-stepped": "schedule-not-followed", "eval-with-gradients": "evaluated-with-gradients",
    "wrong-gradient": "wrong-gradient",
}
NEED_PROBE = {"wrong-gradient"}  # seen by `netmend watch --probe` alone
NUMBERS = {"shape-broadcast", "targets-not-scaled", "wrong-metric"}  # regressions
ONLY_KERAS = {"wrong-metric"}
# What netmend's own trainer can be given: it clears gradients, holds all parameters and shuffles by itself.
OWN = ["none", "validation-is-training", "wrong-loss", "wrong-output-size", "no-nonlinearity", "dead-relu", "saturated", "vanishing-gradient",
       "exploding-gradient", "constant-init", "inputs-not-scaled", "targets-not-scaled", "learning-rate-high", "learning-rate-low",
       "too-few-epochs", "over-fitting", "random-labels", "unstable", "one-batch", "unbalanced", "little-data", "no-validation"]
# A change of settings can answer these: the network, the data and the task are sound.
HEALABLE = ["wrong-loss", "no-nonlinearity", "dead-relu", "saturated", "vanishing-gradient", "exploding-gradient", "constant-init",
            "inputs-not-scaled", "targets-not-scaled", "learning-rate-high", "learning-rate-low", "too-few-epochs", "unstable", "one-batch"]
# These can show within the first fifth of a run: what is wrong is there from the first steps on.
EARLY = ["no-zero-grad", "double-step", "layer-not-in-optimizer", "lost-updates", "changed-outside-step", "samples-mixed", "softmax-twice",
         "wrong-loss", "wrong-output-size", "label-encoding", "shape-broadcast", "wrong-metric", "log-of-zero", "no-nonlinearity", "dead-relu",
         "saturated", "vanishing-gradient", "exploding-gradient", "constant-init", "inputs-not-scaled", "targets-not-scaled",
         "learning-rate-high", "sorted-labels", "unbalanced", "little-data", "validation-is-training", "no-eval", "no-train-mode"]
ONLY_TORCH = {"no-zero-grad", "double-step", "layer-not-in-optimizer", "lost-updates", "changed-outside-step", "no-eval", "no-train-mode",
              "samples-mixed", "shape-broadcast", "log-of-zero", "schedule-never-stepped", "eval-with-gradients", "wrong-gradient"}


_own = {}  # strengths and settings that are drawn, by name; what is not there has its usual value


def strength(name, usual):
    return _own.get(name, usual)


def vary(fault, seed):
    """Draws how strong a fault is and the settings of the training around it, so that no single value gives the fault away."""
    import zlib

    import numpy
    draw = numpy.random.RandomState((zlib.crc32(fault.encode()) + 7919 * seed) % 2 ** 32)
    between = lambda low, high: float(numpy.exp(draw.uniform(numpy.log(low), numpy.log(high))))
    adam = bool(draw.rand() < 0.4) and fault not in ("learning-rate-high", "learning-rate-low", "unstable", "over-fitting", "too-few-epochs", "one-batch")
    _own.clear()
    _own.update(adam=adam, rate=between(1e-3, 8e-3) if adam else between(0.03, 0.3), number_rate=between(2e-3, 8e-3) if adam else between(0.005, 0.03),
                momentum=float(draw.choice([0.0, 0.5, 0.8])), epochs=int(draw.randint(8, 25)), batch=int(draw.choice([16, 32, 64])),
                rows=int(between(500, 2000)), hidden=float(draw.choice([0.5, 1, 2])), spread=between(0.4, 2.0))
    _own.update({"learning-rate-high": {"rate": between(4, 100)}, "learning-rate-low": {"rate": between(1e-8, 2e-5)},
                 "too-few-epochs": {"rate": between(0.002, 0.02), "few": int(draw.randint(1, 4))}, "one-batch": {"rate": between(1e-3, 1e-2)},
                 "unstable": {"rate": between(0.15, 1.0)}, "over-fitting": {"rate": between(1e-3, 4e-3), "rows": int(between(60, 200))},
                 "little-data": {"rows": int(between(20, 80))}, "dead-relu": {"bias": -between(8, 40)}, "saturated": {"scale": between(20, 60)},
                 "exploding-gradient": {"scale": between(10, 40)}, "constant-init": {"constant": between(0.01, 0.2)},
                 "inputs-not-scaled": {"spread": between(60, 2000)}, "targets-not-scaled": {"number_rate": 1e-3, "target": between(300, 20000)},
                 "unbalanced": {"keep": between(0.01, 0.05)}, "wrong-output-size": {"outputs": int(draw.randint(8, 60))}}.get(fault, {}))


def make_data(name, fault, seed, more=0):
    """Inputs as rows of floats near 0, labels; the last fifth is for validation. `more` rows for other ends."""
    import numpy
    draw = numpy.random.RandomState(seed)
    rows = strength("rows", {"little-data": 40, "over-fitting": 120}.get(fault, 1000)) + more
    if name == "stripes":  # 8 × 8 images of four directions
        classes, side = 4, 8
        y = draw.randint(0, classes, rows)
        i, j = numpy.mgrid[0:side, 0:side]
        waves = [i, j, i + j, i - j]
        phase = draw.rand(rows) * 6.28
        x = numpy.stack([numpy.sin(waves[k] * 1.5 + p) for k, p in zip(y, phase)]).reshape(rows, -1) + 0.4 * draw.randn(rows, side * side)
    elif name == "patches":  # 8 × 8 images with a bright patch in one of five places
        classes, side = 5, 8
        y = draw.randint(0, classes, rows)
        i, j = numpy.mgrid[0:side, 0:side]
        places = numpy.array([(1.5, 1.5), (1.5, 5.5), (5.5, 1.5), (5.5, 5.5), (3.5, 3.5)])[y] + 0.5 * draw.randn(rows, 2)
        apart = (i[None] - places[:, 0, None, None]) ** 2 + (j[None] - places[:, 1, None, None]) ** 2
        x = (2 * numpy.exp(-apart / 3)).reshape(rows, -1) + 0.5 * draw.randn(rows, side * side)
    else:
        classes, width = 3, 16
        y = draw.randint(0, classes, rows)
        centres = draw.randn(classes, width) * 0.9
        x = centres[y] + draw.randn(rows, width)
    if fault in ("random-labels", "over-fitting"):
        y = draw.randint(0, classes, rows)
    if fault == "unbalanced":
        keep = (y == 0) | (draw.rand(rows) < strength("keep", 0.04))
        x, y = x[keep], y[keep]
    numbers = x[:, :4].sum(1) + 0.1 * draw.randn(len(x))
    if fault == "targets-not-scaled":
        numbers = numbers * strength("target", 4000) + 5 * strength("target", 4000)
    x = x * strength("spread", 255 if fault == "inputs-not-scaled" else 1)
    if fault == "sorted-labels":
        order = numpy.argsort(y[: len(y) * 4 // 5], kind="stable")
        x[: len(order)], y[: len(order)] = x[order], y[order]
    target = numbers if fault in NUMBERS else y
    return x.astype("float32"), (target.astype("float32") if fault in NUMBERS else y), classes


# ---- PyTorch ----

def torch_network(torch, fault, network, width, classes):
    nn = torch.nn
    act = {"saturated": nn.Tanh, "vanishing-gradient": nn.Sigmoid}.get(fault, nn.ReLU)
    outputs = 1 if fault in NUMBERS or fault == "label-encoding" else (strength("outputs", 30) if fault == "wrong-output-size" else classes)
    layers, units = [], width
    if network == "cnn" and width == 64 and fault not in ("vanishing-gradient",):
        layers += [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), act(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), act(), nn.Flatten()]
        units = 256
        hidden = [32]
    else:
        hidden = [64, 64, 64, 64] if network == "deep" else [64, 32]
    hidden = [max(8, int(size * strength("hidden", 1))) for size in hidden]
    if fault == "vanishing-gradient":
        hidden = [32] * 8
    if fault == "over-fitting":
        hidden = [256, 256]
    for size in hidden:
        layers.append(nn.Linear(units, size))
        if fault != "no-nonlinearity":
            layers.append(act())
        units = size
    if fault in ("no-eval", "no-train-mode"):
        layers.append(nn.Dropout(0.3))
    layers.append(nn.Linear(units, outputs))
    if fault == "softmax-twice":
        layers.append(nn.Softmax(dim=1))
    if fault == "no-nonlinearity":
        layers = [one for one in layers if not isinstance(one, (nn.ReLU, nn.MaxPool2d))]
        if network == "cnn" and width == 64:
            layers = [nn.Linear(width, 64), nn.Linear(64, outputs)]
    net = nn.Sequential(*layers)
    if fault == "wrong-gradient":
        net = nn.Sequential(*[_wrong_relu(torch) if isinstance(one, nn.ReLU) else one for one in net])
    weighted = [one for one in net if hasattr(one, "weight")]
    with torch.no_grad():
        for one in weighted[:-1]:
            if fault == "dead-relu":
                one.bias.fill_(strength("bias", -20.0))
            if fault == "saturated":
                one.weight.mul_(strength("scale", 40))
            if fault == "exploding-gradient":
                one.weight.mul_(strength("scale", 30))
            if fault == "constant-init":
                one.weight.fill_(strength("constant", 0.05))
                one.bias.zero_()
    return net


def train_torch(fault, network, data, seed, epochs):
    import torch
    torch.manual_seed(seed)
    F = torch.nn.functional
    x, y, classes = make_data(data, fault, seed)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    cut = len(x) * 4 // 5
    train = torch.utils.data.TensorDataset(x[:cut], y[:cut])
    batch = cut if fault == "one-batch" else strength("batch", 32)
    epochs = strength("epochs", epochs)
    loader = torch.utils.data.DataLoader(train, batch_size=batch, shuffle=fault != "sorted-labels")
    net = torch_network(torch, fault, network, x.shape[1], classes)
    rate = {"learning-rate-high": 60.0, "learning-rate-low": 1e-6, "lost-updates": 1e-11, "unstable": 1.2, "too-few-epochs": 0.01,
            "targets-not-scaled": 1e-3, "one-batch": 0.003}.get(fault, 0.1 if fault not in NUMBERS else 0.02)
    rate = strength("number_rate" if fault in NUMBERS else "rate", rate)
    parameters = list(net.parameters())
    if fault == "layer-not-in-optimizer":
        parameters = parameters[:-2]
    adam = fault in ("over-fitting", "unstable") or strength("adam", False)
    usual = {"over-fitting": 2e-3, "unstable": 0.5}.get(fault, rate)
    optimizer = (torch.optim.Adam(parameters, lr=strength("number_rate" if fault in NUMBERS else "rate", usual)) if adam
                 else torch.optim.SGD(parameters, lr=rate, momentum=strength("momentum", 0.5) if fault not in ("lost-updates", "learning-rate-low") else 0.0))
    plan = torch.optim.lr_scheduler.StepLR(optimizer, 4) if fault == "schedule-never-stepped" else None
    held_x, held_y = x[cut:], y[cut:]
    if fault == "validation-is-training":
        held_x, held_y = torch.stack([x[:len(held_x)], held_x], 1).flatten(0, 1), torch.stack([y[:len(held_y)], held_y], 1).flatten()
    if fault == "too-few-epochs":
        epochs = strength("few", 2)

    def loss_of(out, target):
        if fault in NUMBERS:
            return F.mse_loss(out, target if fault == "shape-broadcast" else target.unsqueeze(1))
        if fault == "wrong-loss":
            return F.mse_loss(out, F.one_hot(target, out.shape[1]).float())
        if fault == "label-encoding":
            return F.binary_cross_entropy_with_logits(out.squeeze(1), (target > 0).float() * 2 - 1)
        if fault == "log-of-zero":
            return -torch.log(F.relu(F.softmax(out, 1)[torch.arange(len(out)), target] - 0.05)).mean()
        return F.cross_entropy(out, target)

    def forward(inputs):
        return net(inputs)

    if fault == "samples-mixed":
        net = _mixing(torch, net)
    for epoch in range(epochs):
        net.train(fault != "no-train-mode")
        for inputs, target in loader:
            if fault != "no-zero-grad":
                optimizer.zero_grad()
            loss = loss_of(forward(inputs), target)
            loss.backward()
            optimizer.step()
            if fault == "double-step":
                optimizer.step()
            if fault == "changed-outside-step":
                with torch.no_grad():
                    parameters[1].zero_()
        if fault != "no-validation":
            if fault != "no-eval":
                net.eval()
            with torch.set_grad_enabled(fault == "eval-with-gradients"):
                total = 0.0
                for i in range(0, len(held_x), 50):
                    total += float(loss_of(forward(held_x[i:i + 50]), held_y[i:i + 50]))
    print("last loss %.4f%s" % (float(loss), ", rate %g" % plan.optimizer.param_groups[0]["lr"] if plan else ""))


def _wrong_relu(torch):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(context, gradient):
            x, = context.saved_tensors
            return gradient * (x < 0)  # the wrong side

    class WrongReLU(torch.nn.Module):
        def forward(self, x):
            return Function.apply(x)

    return WrongReLU()


def _mixing(torch, net):
    class Mixing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(x - x.mean(0))

    return Mixing()


# ---- Keras ----

def train_keras(fault, network, data, seed, epochs):
    import os
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import keras
    import numpy
    keras.utils.set_random_seed(seed)
    x, y, classes = make_data(data, fault, seed)
    cut = len(x) * 4 // 5
    layers, L = [], keras.layers
    act = {"saturated": "tanh", "vanishing-gradient": "sigmoid", "no-nonlinearity": None}.get(fault, "relu")
    init = {"constant-init": keras.initializers.Constant(0.05), "saturated": keras.initializers.RandomNormal(stddev=5.0),
            "exploding-gradient": keras.initializers.RandomNormal(stddev=6.0)}.get(fault, "glorot_uniform")
    bias = keras.initializers.Constant(-20.0) if fault == "dead-relu" else "zeros"
    numbers = fault in NUMBERS
    outputs = 1 if numbers or fault == "label-encoding" or fault == "wrong-output-size" else classes
    layers.append(keras.Input(shape=(x.shape[1],)))
    if network == "cnn" and x.shape[1] == 64 and fault != "vanishing-gradient":
        layers += [L.Reshape((8, 8, 1)), L.Conv2D(8, 3, padding="same", activation=act, kernel_initializer=init, bias_initializer=bias),
                   L.MaxPooling2D() if fault != "no-nonlinearity" else L.AveragePooling2D(),
                   L.Conv2D(16, 3, padding="same", activation=act, kernel_initializer=init, bias_initializer=bias), L.Flatten()]
        hidden = [32]
    else:
        hidden = [64] * 4 if network == "deep" else [64, 32]
    hidden = [32] * 8 if fault == "vanishing-gradient" else ([256, 256] if fault == "over-fitting" else hidden)
    layers += [L.Dense(size, activation=act, kernel_initializer=init, bias_initializer=bias) for size in hidden]
    last = None if numbers else ("sigmoid" if outputs == 1 else "softmax")
    layers.append(L.Dense(outputs, activation=last))
    model = keras.Sequential(layers)
    loss = "mse" if numbers else ("binary_crossentropy" if outputs == 1 else "sparse_categorical_crossentropy")
    if fault == "softmax-twice":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if fault == "label-encoding":
        y = numpy.where(y > 0, 1.0, -1.0).astype("float32")
    if fault == "wrong-loss":
        loss, y = "mse", numpy.eye(classes, dtype="float32")[y]
    rate = {"learning-rate-high": 60.0, "learning-rate-low": 1e-6, "too-few-epochs": 0.01, "one-batch": 0.003,
            "targets-not-scaled": 1e-3}.get(fault, 0.1 if not numbers else 0.02)
    optimizer = keras.optimizers.SGD(learning_rate=rate, momentum=0.0 if fault == "learning-rate-low" else 0.5)
    if fault in ("over-fitting", "unstable"):
        optimizer = keras.optimizers.Adam(learning_rate=2e-3 if fault == "over-fitting" else 0.5)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"] if not numbers or fault == "wrong-metric" else None)
    held = (x[cut:], y[cut:])
    if fault == "validation-is-training":
        held = (x[:cut], y[:cut])
    model.fit(x[:cut], y[:cut], epochs=2 if fault == "too-few-epochs" else epochs, batch_size=cut if fault == "one-batch" else 32, verbose=0,
              shuffle=fault != "sorted-labels", validation_data=None if fault == "no-validation" else held)
    print("done")


# ---- netmend's own trainer ----

def own_network(numpy, fault, network, width, classes, draw, path):
    try:
        from .onnx_file import Network
    except ImportError:  # run as a file
        from onnx_file import Network
    act = {"saturated": "Tanh", "vanishing-gradient": "Sigmoid"}.get(fault, "Relu")
    act = None if fault == "no-nonlinearity" else act
    outputs = 1 if fault in NUMBERS else (strength("outputs", 30) if fault == "wrong-output-size" else classes)
    net, units = Network(width), width
    scale = strength("scale", {"saturated": 40, "exploding-gradient": 30}.get(fault, 1))

    def weights(*shape):
        fan = int(numpy.prod(shape[1:]))
        limit = 1 / fan ** 0.5  # as PyTorch starts
        w = draw.uniform(-limit, limit, shape) * scale
        return (numpy.full(shape, strength("constant", 0.05)) if fault == "constant-init" else w).astype("float32")

    def bias(size):
        return numpy.full(size, strength("bias", -20.0) if fault == "dead-relu" else 0.0, "float32")

    if network == "cnn" and width == 64 and fault not in ("vanishing-gradient",):
        net.add("Reshape", [("shape", numpy.array([-1, 1, 8, 8], "int64"))])
        net.add("Conv", [("weight", weights(8, 1, 3, 3)), ("bias", bias(8))], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if act:
            net.add(act)
            net.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
        else:
            net.add("AveragePool", kernel_shape=[2, 2], strides=[2, 2])
        net.add("Conv", [("weight", weights(16, 8, 3, 3)), ("bias", bias(16))], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if act:
            net.add(act)
        net.add("Flatten")
        units, hidden = 256, [32]
    else:
        hidden = [64, 64, 64, 64] if network == "deep" else [64, 32]
    hidden = [max(8, int(size * strength("hidden", 1))) for size in hidden]
    hidden = [32] * 8 if fault == "vanishing-gradient" else ([256, 256] if fault == "over-fitting" else hidden)
    for size in hidden:
        net.add("Gemm", [("weight", weights(size, units)), ("bias", bias(size))], transB=1)
        if act:
            net.add(act)
        units = size
    scale, last = 1, (draw.uniform(-1, 1, (outputs, units)) / units ** 0.5).astype("float32")
    net.add("Gemm", [("weight", last), ("bias", numpy.zeros(outputs, "float32"))], transB=1)
    net.write(path, outputs)


def own_command(fault, network, data, seed, epochs, program, folder="."):
    """Writes the files of a training into a folder; the words that start it there."""
    import os

    import numpy
    draw = numpy.random.RandomState(seed + 7)
    x, y, classes = make_data(data, fault, seed, more=600)
    own = len(x) - 600 if fault != "unbalanced" else len(x) * 5 // 8
    cut = own * 4 // 5
    own_network(numpy, fault, network, x.shape[1], classes, draw, os.path.join(folder, "model.onnx"))
    held_x, held_y = x[cut:own], y[cut:own]
    if fault == "validation-is-training":
        held_x, held_y = numpy.concatenate([x[:len(held_x)], held_x]), numpy.concatenate([y[:len(held_y)], held_y])
    numpy.savez(os.path.join(folder, "train.npz"), x=x[:cut], y=y[:cut])
    numpy.savez(os.path.join(folder, "held.npz"), x=held_x, y=held_y)
    numpy.savez(os.path.join(folder, "judge.npz"), x=x[own:], y=y[own:])  # no training and no search sees it
    rate = {"learning-rate-high": 60.0, "learning-rate-low": 1e-6, "too-few-epochs": 0.01, "targets-not-scaled": 1e-3, "one-batch": 0.003}
    spec = "npz:%s.npz,x=x,y=y" + (",kind=number" if fault in NUMBERS else "")
    words = [program, "train", "model.onnx", "--train", spec % "train", "-o", "trained.onnx", "--seed", str(seed),
             "--epochs", str(strength("few", 2) if fault == "too-few-epochs" else strength("epochs", epochs)),
             "--batch", str(cut if fault == "one-batch" else strength("batch", 32))]
    usual = {"over-fitting": 2e-3, "unstable": 0.5}.get(fault, rate.get(fault, 0.1 if fault not in NUMBERS else 0.02))
    words += ["--rate", "%g" % strength("number_rate" if fault in NUMBERS else "rate", usual)]
    if fault in ("over-fitting", "unstable") or strength("adam", False):
        words += ["--optimiser", "adam"]
    elif fault == "learning-rate-low" or strength("momentum", 0.5) == 0:
        words += ["--optimiser", "sgd"]
    else:
        words += ["--optimiser", "momentum", "--momentum", str(strength("momentum", 0.5))]
    words += ["--validation", "0"] if fault == "no-validation" else ["--test", spec % "held"]
    return words + (["--loss", "mse"] if fault == "wrong-loss" else [])


def main():
    parser = argparse.ArgumentParser(prog="python -m netmend.planted", description="A small training with a known fault.")
    parser.add_argument("fault", nargs="?", default="none", choices=sorted(FAULTS))
    parser.add_argument("--framework", default="", choices=["", "torch", "keras", "netmend"])
    parser.add_argument("--network", default="mlp", choices=["mlp", "deep", "cnn"])
    parser.add_argument("--data", default="blobs", choices=["blobs", "stripes", "patches"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--vary", action="store_true", help="draw the strength of the fault and the settings around it, by the seed")
    parser.add_argument("--netmend", default="netmend", help="the program that trains, with --framework netmend")
    parser.add_argument("--out", default="", help="its run folder")
    parser.add_argument("--list", action="store_true")
    words = parser.parse_args()
    if words.list:
        print("\n".join("%s\t%s" % row for row in FAULTS.items()))
        return 0
    if words.vary:
        vary(words.fault, words.seed)
    framework = words.framework or ("keras" if words.fault in ONLY_KERAS else "torch")
    if framework == "netmend":
        if words.fault not in OWN:
            parser.error("%s cannot be planted with netmend's own trainer" % words.fault)
        import subprocess
        command = own_command(words.fault, words.network, words.data, words.seed, words.epochs, words.netmend)
        return subprocess.call(command + (["--out", words.out] if words.out else []))
    if (words.fault in ONLY_KERAS) != (framework == "keras") and words.fault in ONLY_KERAS | ONLY_TORCH:
        parser.error("%s cannot be planted with %s" % (words.fault, framework))
    (train_keras if framework == "keras" else train_torch)(words.fault, words.network, words.data, words.seed, words.epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
