"""The tensors that a module holds, and every way in which one of them could have become a parameter of an ONNX file:
as it is, transposed, or with a batch norm folded in. A View also knows the way back.
"""
import collections.abc
import re
import sys

import numpy as np

from ._arrays import is_array, is_torch, to_numpy
from ._errors import PatchError

_PERMUTATIONS = {2: [(1, 0)], 3: [(2, 1, 0)], 4: [(3, 2, 0, 1)]}  # matrices; kernels of TensorFlow
_EPSILONS = (1e-5, 1e-3)  # PyTorch's and Keras's, where no module tells
_NORMS = (("running_var", "running_mean", "weight", "bias"), ("moving_variance", "moving_mean", "gamma", "beta"))


class Slot:
    """One stored tensor. `names`: all it goes by; tied weights have several."""

    def __init__(self, name, holder, value, array):
        self.name, self.names, self.holder, self.value = name, [name], holder, value
        self.array = array
        self.new, self.changed = None, None
        self.out = None  # the axis of the outputs, where a module tells

    def would_clash(self, where, values):
        return self.new is not None and bool((self.changed[where] & (np.abs(self.new[where] - values)
                                                                     > 1e-6 * np.abs(values))).any())

    def change(self, where, values):
        if self.new is None:
            self.new, self.changed = self.array.astype(np.float64), np.zeros(self.array.shape, bool)
        self.new[where] = values
        self.changed[where] = True

    def written(self):
        """The values that write() puts into the changed places."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.new[self.changed].astype(self.array.dtype)

    def write(self):
        result = self.array.copy()
        result[self.changed] = self.written()
        if is_torch(self.value):
            torch = sys.modules["torch"]
            with torch.no_grad():
                self.value.copy_(torch.from_numpy(np.ascontiguousarray(result)).reshape(self.value.shape))
        elif isinstance(self.value, np.ndarray) and self.value.flags.writeable:
            self.value[...] = result
        else:
            for name in self.names:
                self.holder[name] = result


class Norm:
    """A batch norm that may have been folded away: y = x * scale + shift."""

    def __init__(self, prefix, mean, var, gamma, beta, eps):
        self.prefix, self.mean, self.beta, self.eps = prefix, mean.array.astype(np.float64), beta, eps
        self.size = len(var.array)
        root = np.sqrt(np.maximum(var.array.astype(np.float64) + eps, 1e-300))
        self.scale = (gamma.array if gamma is not None else 1.0) / root


class View:
    """A stored tensor as the ONNX file could hold it. For weights: transposed, and scaled by a batch norm along
    `out`."""

    def __init__(self, slot, order=None, norm=None, out=0):
        self.slot, self.norm, self.out = slot, norm, out
        self.order = order if order is not None else tuple(range(slot.array.ndim))
        self.error, self.gap = 0.0, 0.0  # against the tolerance; against the largest value
        self.norm_unsure = False  # another batch norm would lead to the same weights

    def shape(self):
        return tuple(self.slot.array.shape[a] for a in self.order)

    def key(self):
        return (id(self.slot), self.order, self.norm.prefix if self.norm else None, self.out)

    def layers(self):
        """The names of the layers this has to do with."""
        found = [_layer(name) for name in self.slot.names]
        return found + [self.norm.prefix] if self.norm and not self.norm_unsure else found

    def marks(self):
        """What else of the same layer must have in common with this."""
        found = [name for name in self.layers() if name]
        if self.norm is None:
            return found + [(name, "nothing folded in") for name in found]
        return found if self.norm_unsure else found + [(self.norm.prefix, self.norm.eps)]

    def part(self, axis, index):
        """One slice, without making the whole."""
        values = self.slot.array.transpose(self.order).take(index, axis).astype(np.float64)
        if self.norm is None:
            return values
        out = self.order.index(self.out)
        if out == axis:
            return values * self.norm.scale[index]
        out -= out > axis
        return values * self.norm.scale.reshape([-1 if a == out else 1 for a in range(values.ndim)])

    def terms(self):
        """How large the terms of a sum are in which digits may cancel; a product has none."""
        return 0.0

    def whole(self):
        values = self.slot.array.astype(np.float64)
        if self.norm is not None:
            values *= self._factor()
        return values.transpose(self.order).copy()

    def _factor(self):
        return self.norm.scale.reshape([-1 if a == self.out else 1 for a in range(self.slot.array.ndim)])

    def home(self, changed, values):
        """Where in the stored tensor the changed values go and what is written there; None if nothing can be."""
        back = np.argsort(self.order)
        where, values = changed.transpose(back), values.transpose(back)
        values = values[where]
        if self.norm is not None:
            factor = np.broadcast_to(self._factor(), where.shape)[where]
            if (factor == 0).any():
                return None
            values = values / factor
        return where, values

    def how(self):
        text = "the same tensor" if self.order == tuple(range(len(self.order))) else "transposed"
        return text if self.norm is None else text + ", batch norm %s unfolded" % self.norm.prefix

    def place(self, edit):
        return self.order[edit.axis], edit.index


class ShiftView(View):
    """A bias with a batch norm folded in: beta + (bias - mean) * scale. Changes go into beta, or into the bias of the
    layer where the batch norm has no beta."""

    def __init__(self, norm, bias):
        super().__init__(norm.beta if norm.beta is not None else bias, None, norm)
        self.bias = bias

    def key(self):
        return ("shift", id(self.slot), self.norm.prefix, id(self.bias))

    def layers(self):
        found = [_layer(name) for name in self.bias.names] if self.bias is not None else []
        return found + [self.norm.prefix]

    def whole(self):
        beta = self.norm.beta.array.astype(np.float64) if self.norm.beta is not None else 0.0
        bias = self.bias.array.astype(np.float64) if self.bias is not None else 0.0
        return beta + (bias - self.norm.mean) * self.norm.scale

    def terms(self):
        bias = self.bias.array.astype(np.float64) if self.bias is not None else 0.0
        return float(np.max(np.abs((bias - self.norm.mean) * self.norm.scale), initial=0.0))

    def part(self, axis, index):
        return self.whole()[index]

    def home(self, changed, values):
        if self.norm.beta is not None:
            bias = self.bias.array.astype(np.float64) if self.bias is not None else 0.0
            values = values - (bias - self.norm.mean) * self.norm.scale
        elif (self.norm.scale[changed] == 0).any():
            return None
        else:
            values = self.norm.mean + values / np.where(self.norm.scale == 0, 1, self.norm.scale)
        return changed, values[changed]

    def how(self):
        return "bias into the %s of batch norm %s" % ("shift", self.norm.prefix) if self.norm.beta is not None else \
            "bias before batch norm %s" % self.norm.prefix

    def place(self, edit):
        return 0, edit.index


# -- what the user's module holds


def _layer(name):
    return re.split(r"[./](?=[^./]*$)", name)[0] if re.search("[./]", name) else ""


def _pointer(value):
    """Equal for two names of one tensor."""
    if is_torch(value):
        return ("torch", value.data_ptr(), tuple(value.shape), value.stride()) if value.numel() else ("id", id(value))
    if isinstance(value, np.ndarray) and value.size:
        return ("numpy", value.__array_interface__["data"][0], value.shape, value.strides)
    return ("id", id(value))


def find_slots(module):
    holder, is_module = module, hasattr(module, "state_dict") and callable(module.state_dict)
    if is_module:
        holder = module.state_dict()  # shares its memory with the module
    if not isinstance(holder, collections.abc.Mapping):
        raise PatchError("a %s is neither a module nor a state dict" % type(module).__name__, "the argument module",
                         "a torch module, or a dict of names and tensors or arrays")
    slots, seen = [], {}
    for name, value in holder.items():
        if not is_array(value):
            continue
        try:
            array = to_numpy(value)
        except Exception:  # quantized tensors and the like: no floats to change
            continue
        if array.dtype.kind != "f" or array.ndim == 0:
            continue
        pointer = _pointer(value)
        if pointer in seen:
            seen[pointer].names.append(str(name))
            continue
        seen[pointer] = Slot(str(name), holder, value, np.array(array))
        slots.append(seen[pointer])
    if is_module and hasattr(module, "named_modules"):
        kinds = {name: type(m).__name__ for name, m in module.named_modules()}
        for slot in slots:
            kind = kinds.get(_layer(slot.name), "")
            if re.match(r"(Lazy)?(Conv|Linear)", kind):
                slot.out = 1 if "Transpose" in kind else 0
    if not slots:
        nested = [str(k) for k, v in holder.items() if isinstance(v, collections.abc.Mapping)]
        hint = "give checkpoint['%s'], which holds more" % nested[0] if nested else "give the state dict of the network"
        raise PatchError("there are no weights in it", "the argument module", hint)
    return slots


def find_norms(slots, module):
    by_name = {name: slot for slot in slots for name in slot.names}
    eps_of = {}
    if hasattr(module, "named_modules"):
        eps_of = {name: m.eps for name, m in module.named_modules() if hasattr(m, "running_var") and hasattr(m, "eps")}
    norms = []
    for name in by_name:
        for var, mean, gamma, beta in _NORMS:
            if not name.endswith(var) or name[:-len(var)] + mean not in by_name:
                continue
            stem = name[:-len(var)]
            prefix = stem[:-1]
            for eps in [eps_of[prefix]] if prefix in eps_of else _EPSILONS:
                norms.append(Norm(prefix, by_name[stem + mean], by_name[name], by_name.get(stem + gamma),
                                  by_name.get(stem + beta), eps))
    return norms


def views_of(target, slots, norms):
    """Every way in which a stored tensor could have become this parameter."""
    shape, prefixes = target.shape, {n.prefix for n in norms}
    for slot in slots:
        orders = [tuple(range(slot.array.ndim))] + _PERMUTATIONS.get(slot.array.ndim, [])
        for number, order in enumerate(orders):
            view = View(slot, order)
            if view.shape() != shape:
                continue
            yield view
            if len(shape) == 1:
                continue
            # Outputs are the first axis, or the second of a transposed convolution, or the last of a TensorFlow kernel.
            outs = {0} | ({1} if len(shape) > 2 else set()) | ({len(shape) - 1} if number else set())
            outs = outs if slot.out is None else {slot.out}
            for norm in norms:
                for out in outs:
                    if norm.size == slot.array.shape[out]:
                        yield View(slot, order, norm, out)
    if len(shape) == 1:
        biases = [s for s in slots if s.array.shape == shape and not prefixes.intersection(map(_layer, s.names))]
        for norm in norms:
            if norm.size == shape[0]:
                for bias in [None] + biases:
                    if norm.beta is not None or bias is not None:
                        yield ShiftView(norm, bias)
