"""What is computed from PyTorch's modules and tensors: roles of layers, statistics, facts about a loss."""
import math
import os
import sys

_FACTORS = {}
MUTED = [False]  # while we compute ourselves, nothing is traced

ROLES = (("linear", ("Linear", "Bilinear", "LazyLinear")), ("conv", ("Conv",)), ("norm", ("Norm",)),
         ("dropout", ("Dropout",)), ("recurrent", ("RNN", "LSTM", "GRU")), ("embedding", ("Embedding",)),
         ("pool", ("Pool",)), ("attention", ("MultiheadAttention", "Transformer")))
ACTIVATIONS = {"ReLU": "relu", "ReLU6": "relu", "LeakyReLU": "leaky_relu", "Sigmoid": "sigmoid", "Tanh": "tanh",
               "Softmax": "softmax", "LogSoftmax": "log_softmax", "GELU": "gelu", "ELU": "elu", "SELU": "selu",
               "Softplus": "softplus", "SiLU": "silu", "Hardtanh": "hardtanh", "Hardsigmoid": "hardsigmoid",
               "Softsign": "softsign", "Threshold": "threshold", "PReLU": "prelu", "Mish": "mish"}


def layer_role(module):
    name = type(module).__name__
    if name in ACTIVATIONS:
        return "activation"
    if not type(module).__module__.startswith("torch."):
        return "other"
    for role, parts in ROLES:
        if any(part in name for part in parts):
            return role
    return "other"


def tensors_in(torch, values, most=8):
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(tensors_in(torch, value, most - len(found)))
        elif isinstance(value, dict):
            found.extend(tensors_in(torch, list(value.values()), most - len(found)))
        if len(found) >= most:
            break
    return found


def finite(torch, tensor):
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor.detach()).all())


def describe_model(torch, module, prefix):
    layers = []
    with torch.no_grad():
        for name, one in module.named_modules():
            if next(one.children(), None) is not None and layer_role(one) == "other" or len(layers) >= 2000:
                continue
            row = {"name": prefix + (name or type(one).__name__), "type": type(one).__name__, "role": layer_role(one)}
            if row["role"] == "activation":
                row["activation"] = ACTIVATIONS[row["type"]]
            if row["role"] == "dropout":
                row["rate"] = getattr(one, "p", None)
            own = list(one.named_parameters(recurse=False))
            if own:
                row["parameters"] = sum(p.numel() for _, p in own)
                row["trainable"] = any(p.requires_grad for _, p in own)
                weight = getattr(one, "weight", None)
                if isinstance(weight, torch.Tensor) and weight.dim() >= 2 and weight.numel() <= 20_000_000:
                    row["units"] = weight.shape[0]
                    row["fan_in"] = weight[0].numel()
                    values = weight.detach().float()
                    row["weight_std"] = float(values.std()) if values.numel() > 1 else 0.0
                    row["weight_mean"] = float(values.mean())
                    row["same_units"] = bool(values.shape[0] > 1 and (values == values[:1]).all())
                bias = getattr(one, "bias", None)
                if isinstance(bias, torch.Tensor) and bias.numel():
                    row["bias_mean"] = float(bias.detach().float().mean())
            layers.append(row)
    return {"name": type(module).__name__, "layers": layers,
            "parameters": sum(p.numel() for p in module.parameters()),
            "trainable": sum(p.numel() for p in module.parameters() if p.requires_grad)}


def activation_stats(torch, module, arguments, out):
    outs = tensors_in(torch, (out,), 1)
    if not outs or not outs[0].is_floating_point() or outs[0].numel() == 0 or outs[0].numel() > 4_000_000:
        return None
    with torch.no_grad():
        x = outs[0].detach()
        absolute = x.abs()
        row = {"a": float(absolute.mean()), "m": float(absolute.max()), "s": float(x.std()) if x.numel() > 1 else 0.0}
        role = layer_role(module)
        if role == "activation" and x.dim() >= 2 and x.shape[0] > 1:
            kind = ACTIVATIONS[type(module).__name__]
            row["act"] = kind
            if kind in ("relu", "threshold"):
                row["z"] = float((x == 0).float().mean())
                units = x.transpose(0, 1).reshape(x.shape[1], -1)
                row["d"] = float((units == 0).all(1).float().mean())
            elif kind == "tanh":
                row["sat"] = float((absolute > 0.995).float().mean())
            elif kind == "sigmoid":
                row["sat"] = float(((x < 0.0025) | (x > 0.9975)).float().mean())
        if role == "recurrent":
            row["act"] = type(module).__name__.lower()
        return row


def tensor_range(torch, x, row):
    if not x.is_floating_point():
        row["integer"] = True
        row["min"], row["max"] = min(row["min"], int(x.min())), max(row["max"], int(x.max()))
        return
    with torch.no_grad():
        x = x.detach()
        row["min"], row["max"] = min(row["min"], float(x.min())), max(row["max"], float(x.max()))
        row["mean"], row["std"] = float(x.mean()), float(x.std()) if x.numel() > 1 else 0.0
        row["shape"] = list(x.shape)
        if x.dim() == 2 and x.shape[0] > 1:
            deviations = x.std(0)
            positive = deviations[deviations > 0]
            if positive.numel():
                row["std_ratio"] = float(positive.max() / positive.min())
                row["std_max"] = float(positive.max())
        if not finite(torch, x):
            row["nan"] = True
        if row["max"] > 2:
            row["whole"] = bool((x == x.round()).all())


def row_keys(torch, x):
    """128 bits for each input, of all its bits: equal inputs have equal keys, others practically never."""
    rows = x.detach().reshape(x.shape[0], -1).contiguous()
    if rows.dtype.is_complex:
        rows = torch.view_as_real(rows).reshape(x.shape[0], -1)
    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[rows.element_size()]
    bits = rows.view(whole).to(torch.int64)
    width = bits.shape[1]
    if width not in _FACTORS:
        _FACTORS.clear()
        own = torch.Generator().manual_seed(20011)  # of its own: the program's generators stay where they are
        _FACTORS[width] = torch.randint(-(2 ** 62), 2 ** 62, (2, width), generator=own) * 2 + 1
    high, low = _FACTORS[width]
    return list(zip((bits * high).sum(1).tolist(), ((bits ^ (bits << 23)) * low).sum(1).tolist()))


def loss_facts(torch, name, given, target, named, out):
    """What a loss was given, as facts: shapes, ranges, labels, whether rows are probabilities."""
    facts = {"shape": list(given.shape), "loss": float(out.detach()) if out.numel() == 1 else None}
    if not isinstance(target, torch.Tensor):
        return facts
    with torch.no_grad():
        given, target = given.detach(), target.detach()
        facts["target_shape"] = list(target.shape)
        facts["first_loss"] = facts["loss"]
        facts["reduction"] = str(named.get("reduction", "mean"))
        facts["weighted"] = any(named.get(one) is not None for one in ("weight", "pos_weight"))
        if given.numel() == 0 or target.numel() == 0 or given.numel() > 20_000_000:
            return facts
        facts["min_output"], facts["max_output"] = float(given.min()), float(given.max())
        facts["min_target"], facts["max_target"] = float(target.min()), float(target.max())
        facts["all_targets_whole"] = not target.is_floating_point() or bool((target == target.round()).all())
        facts["all_outputs_equal"] = bool(given.shape[0] > 1 and (given == given[:1]).all())
        if name in ("cross_entropy", "nll_loss") and given.dim() >= 2:
            _class_facts(torch, name, given, target, facts)
        elif name.startswith("binary"):
            right = ((given > (0.5 if name == "binary_cross_entropy" else 0.0)) == (target > 0.5))
            facts["right"], facts["rows"] = int(right.sum()), right.numel()
            facts["all_outputs_in_unit"] = bool((given >= 0).all() and (given <= 1).all())
            facts["counts"] = {"1": int((target > 0.5).sum()), "0": int((target <= 0.5).sum())}
            if given.dim() == 2 and given.shape[1] > 2:
                facts["all_one_hot"] = bool(facts["all_targets_whole"] and (target.sum(1) == 1).all())
        else:
            facts["broadcast"] = list(given.shape) != list(target.shape)
            if target.is_floating_point() and target.numel() > 1:
                facts["target_std"], facts["target_mean"] = float(target.std()), float(target.mean())
            if given.dim() == 2 and given.shape[1] > 1:
                facts["all_rows_sum_to_one"] = bool((given >= 0).all() and ((given.sum(1) - 1).abs() < 1e-4).all())
                if target.dim() == 2:
                    facts["all_one_hot"] = bool(((target == 0) | (target == 1)).all() and (target.sum(1) == 1).all())
        if target.dim() == 1 and facts["all_targets_whole"] and not name.startswith("binary"):
            facts["order"] = (int(facts["min_target"]), int(facts["max_target"]))
    return facts


def _class_facts(torch, name, given, target, facts):
    sums = given.sum(1) if name == "cross_entropy" else given.exp().sum(1)
    unit = bool((given >= 0).all()) if name == "cross_entropy" else True
    facts["all_rows_sum_to_one"] = unit and bool(((sums - 1).abs() < 1e-3).all())
    facts["classes"] = given.shape[1]
    facts["spread"] = float(given.float().var(1, unbiased=False).mean())
    if name == "nll_loss":
        facts["negative"] = facts["loss"] is not None and facts["loss"] < 0
    if not target.is_floating_point():
        right = given.argmax(1) == target
        kept = target >= 0
        facts["right"], facts["rows"] = int(right[kept].sum()), int(kept.sum())
        labels, counts = target[kept].reshape(-1).unique(return_counts=True)
        if labels.numel() <= 1000:
            facts["counts"] = {str(label): count for label, count in zip(labels.tolist(), counts.tolist())}


def _make_trace():
    torch = sys.modules.get("torch")
    try:
        from torch.overrides import TorchFunctionMode
    except ImportError:
        return None
    THROUGH = {"view", "reshape", "flatten", "unflatten", "permute", "transpose", "contiguous", "squeeze", "unsqueeze",
               "dropout", "dropout2d", "dropout3d", "__getitem__", "to", "float", "clone", "t", "detach", "batch_norm",
               "layer_norm", "group_norm", "expand", "chunk", "split", "mean", "avg_pool2d", "adaptive_avg_pool2d"}
    SHAPES = THROUGH - {"batch_norm", "layer_norm", "group_norm", "mean", "avg_pool2d", "adaptive_avg_pool2d", "dropout",
                        "dropout2d", "dropout3d"}
    WEIGHTED = {"linear", "conv1d", "conv2d", "conv3d", "addmm", "matmul", "mm", "conv_transpose2d"}

    class Trace(TorchFunctionMode):
        """The functions that a network calls, in order, and what feeds what. With `find` the first one that makes NaN or
        Inf of finite values; with `back` the one whose gradient does."""

        def __init__(self, torch, find=False, back=False):
            super().__init__()
            self.torch, self.find, self.back, self.producer = torch, find, back, None
            self.made, self.calls, self.kept, self.sound, self.first_bad = {}, [], [], {}, None

        def __torch_function__(self, function, types, arguments=(), named=None):
            out = function(*arguments, **(named or {}))
            if MUTED[0]:
                return out
            try:
                self.note(function, arguments, named or {}, out)
            except Exception:
                pass
            return out

        def note(self, function, arguments, named, out):
            name = getattr(function, "__name__", str(function))
            if name.startswith("__get__") or name in ("is_floating_point", "dim", "size", "is_cuda", "__set__", "numel"):
                return
            made = tensors_in(self.torch, (out,), 4)
            if not made or len(self.calls) > 20000:
                return
            given = tensors_in(self.torch, (arguments, named))
            if self.find:
                if self.producer is None and not all(finite(self.torch, one) for one in made) \
                        and all(finite(self.torch, one) for one in given):
                    self.producer = {"operation": name, "source": _source()}
                    weights = [one for one in given if isinstance(one, self.torch.nn.Parameter)]
                    if weights:
                        self.producer["weight"] = weights[0]
                return
            if self.back:
                return self.note_back(name, given, made)
            weight = next((one for one in given if isinstance(one, self.torch.nn.Parameter) and one.dim() >= 2), None)
            groups = named.get("groups", arguments[6] if len(arguments) > 6 else 1) if name.startswith("conv") else 1
            call = {"op": name, "from": [self.made[id(one)] for one in given if id(one) in self.made],
                    "weighted": weight is not None and name in WEIGHTED and groups == 1,
                    "units": weight.shape[0] if weight is not None else 0,
                    "fan_in": weight[0].numel() if weight is not None else 0, "source": _source()}
            self.calls.append(call)
            for one in made:
                self.made[id(one)] = len(self.calls) - 1
            self.kept.extend(made)

        def note_back(self, name, given, made):
            index = len(self.calls)
            self.calls.append({"op": name, "from": [self.made[id(one)] for one in given if id(one) in self.made], "source": _source(),
                               "leaves": [one for one in given if one.is_leaf and one.requires_grad]})
            for one in made:
                self.made[id(one)] = index
                if one.requires_grad and one.is_floating_point():
                    one.register_hook(lambda gradient: self.note_gradient(index, gradient))
            self.kept.extend(made)

        def note_gradient(self, index, gradient):
            good = finite(self.torch, gradient)
            if not good and self.first_bad is None:
                self.first_bad = index
            self.sound[index] = self.sound.get(index, True) and good

        def backward_producer(self):
            """The call whose own gradient was finite and that of its inputs, the first in the backward pass, was not."""
            for index in sorted(self.sound, reverse=True):
                call = self.calls[index]
                leaves = [one for one in call["leaves"] if one.grad is not None and not finite(self.torch, one.grad)]
                if self.sound[index] and (self.first_bad in call["from"] if self.first_bad is not None else leaves):
                    weight = next((one for one in leaves if isinstance(one, self.torch.nn.Parameter)), None)
                    return {"operation": call["op"], "source": call["source"], "weight": weight}
            return None

        def origin(self, index, through):
            while self.calls[index]["op"] in through and self.calls[index]["from"]:
                index = self.calls[index]["from"][0]
            return index

        def summary(self, out):
            calls, pairs, weighted = self.calls, [], 0
            for call in calls:
                weighted += call["weighted"]
                if call["weighted"] and call["from"]:
                    other = calls[self.origin(call["from"][0], THROUGH)]
                    narrow = other["units"] < other["fan_in"] and other["units"] < call["units"]  # low rank, on purpose
                    if other["weighted"] and not narrow:
                        pairs.append([other["source"], call["source"]])
            outs = tensors_in(self.torch, (out,), 1)
            last, before = "", ""
            if outs and id(outs[0]) in self.made:
                at = self.origin(self.made[id(outs[0])], SHAPES)
                last = calls[at]["op"]
                if calls[at]["from"]:
                    before = calls[self.origin(calls[at]["from"][0], SHAPES)]["op"]
            result = {"ops": [call["op"] for call in calls[:400]], "last": last, "before_last": before, "weighted": weighted,
                      "pairs": pairs[:8], "pair_count": len(pairs), "shape": list(outs[0].shape) if outs else [],
                      "last_source": calls[-1]["source"] if calls else ""}
            self.kept, self.made = [], {}
            return result

    return Trace


def _source():
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not ("-packages" + os.sep in name or name.startswith("<") or os.sep + "watch" + os.sep in name
                or os.sep + "lib" + os.sep + "python" in name):
            return "%s:%d" % (os.path.basename(name), frame.f_lineno)
        frame = frame.f_back
    return ""


class _Late:
    """The class can only be made when torch is there."""

    made = None

    def __call__(self, torch, find=False, back=False):
        if _Late.made is None:
            _Late.made = _make_trace()
        return _Late.made(torch, find, back)


Trace = _Late()
