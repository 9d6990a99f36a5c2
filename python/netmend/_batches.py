"""Takes batches apart: whatever a loader gives becomes named inputs and a target."""
import collections.abc

import numpy as np

from ._arrays import is_array, numbers, to_numpy
from ._errors import RecorderError

# Under these keys loaders that give dicts keep their targets.
_TARGETS = ("labels", "label", "targets", "target")


def is_mapping(value):
    return isinstance(value, collections.abc.Mapping)


def is_sequence(value):
    return isinstance(value, (list, tuple))


def walk(loader):
    """The elements of a loader, each once. What has a length and an index is read by index, because the Python protocol
    would go on until an IndexError, which Keras sequences and many data sets never raise."""
    if is_mapping(loader) or is_array(loader) or isinstance(loader, (str, bytes)):
        raise RecorderError("a %s is not a loader of batches" % type(loader).__name__, "the argument loader",
                            "give an iterable of (input, target) batches; one batch alone is [(x, y)] or [batch]")
    if isinstance(loader, tuple) and len(loader) == 2 and all(is_array(v) and len(v.shape) for v in loader):
        raise RecorderError("two arrays are not a loader of batches", "the argument loader",
                            "put them in a list as one batch: [(x, y)]")
    if not is_sequence(loader) and hasattr(loader, "__getitem__") and hasattr(loader, "__len__"):
        return (loader[i] for i in range(len(loader)))
    try:
        return iter(loader)
    except TypeError:
        raise RecorderError("a %s cannot be iterated over" % type(loader).__name__, "the argument loader",
                            "give a DataLoader, a tf.data.Dataset, a Keras sequence or a list of (input, target) batches")


def samples_of(loader):
    """How many samples a PyTorch DataLoader is going to give, or None where that is not certain."""
    if not (hasattr(loader, "sampler") and hasattr(loader, "batch_sampler") and hasattr(loader, "dataset")):
        return None
    if type(loader.batch_sampler).__name__ not in ("BatchSampler", "NoneType"):
        return None
    try:
        count, size = len(loader.sampler), getattr(loader, "batch_size", None)
    except TypeError:
        return None
    if not size:  # what the data set gives are batches or samples, nobody knows
        return None
    return count - count % size if getattr(loader, "drop_last", False) else count


def _scalar(value):
    """Whether a target stands for one sample: a number, a word or an array without axes."""
    if isinstance(value, (str, bytes, int, float, bool, np.generic)):
        return True
    return is_array(value) and len(value.shape) == 0


def _rows(value):
    """How many samples a batch's target or input holds, or None when it has no first axis."""
    if is_array(value):
        return int(value.shape[0]) if len(value.shape) else None
    return len(value) if is_sequence(value) else None


class Batch:
    """names; columns: for each input one array (samples first) or a list of one array a sample; target: array, list or
    None; count."""

    def __init__(self, names, columns, target, count):
        self.names, self.columns, self.target, self.count = names, columns, target, count


class Reader:
    """Reads elements of one loader. What is ambiguous is settled at the first element and kept for all."""

    def __init__(self, inputs=None, target=None, batched=None, targets_wanted=True):
        self.inputs = None if inputs is None else [inputs] if isinstance(inputs, str) else list(inputs)
        if self.inputs is not None and (not self.inputs or len(set(self.inputs)) != len(self.inputs)):
            raise RecorderError("inputs=%r names no input, or one twice" % (self.inputs,), "the argument inputs",
                                "give one name for each input")
        self.target, self.batched, self.targets_wanted = target, batched, targets_wanted
        self.by_name = False  # whether inputs came in a dict: frameworks then want them by name
        self.several = None  # whether a list of arrays is several inputs (True) or one sample each (False)
        self.names = None
        self.left_out = []

    def batches(self, loader):
        for number, element in enumerate(walk(loader)):
            yield self.read(element, "element %d of the loader" % number)

    def read(self, element, where):
        inputs, target = self._split(element, where)
        if is_mapping(target):
            target = self._pick_target(target, where)
        elif isinstance(self.target, int) and is_sequence(target) and self.target < len(target):
            target = target[self.target]
        if self.batched is None:
            # A scalar target is one sample's; anything else, or no target, means batches.
            self.batched = not _scalar(target)
        if not self.targets_wanted:
            rows, target = (_rows(target) if target is not None and not _scalar(target) else None), None
        else:
            rows = _rows(target) if target is not None else None
        names, values = self._named(inputs, rows, where)
        if self.names is None:
            self.names = names
        elif names != self.names:
            raise RecorderError("the inputs are %s, but were %s before" % (names, self.names), where,
                                "with inputs=[...], choose those that every batch has")
        if not self.batched:
            columns = [numbers(v, "%s, input '%s'" % (where, n))[None] for n, v in zip(names, values)]
            return Batch(names, columns, None if target is None else [target], 1)
        return self._whole(names, values, target, where)

    # -- inputs and target apart

    def _split(self, element, where):
        if is_mapping(element):
            return self._split_mapping(element, where)
        if not is_sequence(element):
            return element, None
        if len(element) == 0:
            raise RecorderError("an empty batch", where, "let every element be (input, target)")
        if len(element) == 1:
            return element[0], None
        structured = is_mapping(element[0]) or isinstance(element[0], tuple)
        wanted = 1 if self.inputs is None or structured else len(self.inputs)
        if isinstance(element[0], list) and wanted > 1 and len(element[0]) == wanted:
            wanted = 1  # ([a, b], target): the names are those of the inner list
        if self.inputs is None and len(element) > 2 and element[2] is not None:
            raise RecorderError("a batch of %d elements: it is not clear which of them are inputs" % len(element), where,
                                "name the inputs, inputs=['a', 'b'] takes the first two, and the next one as the target")
        if wanted > len(element):
            raise RecorderError("inputs= names %d inputs, but a batch has %d elements" % (wanted, len(element)), where,
                                "name as many inputs as there are")
        target = element[wanted] if wanted < len(element) else None
        extra = [e for e in element[wanted + 1:] if e is not None]
        if extra:
            self._leave_out("elements after the target in every batch: %d" % len(extra))
        return (element[0] if wanted == 1 else tuple(element[:wanted])), target

    def _split_mapping(self, element, where):
        key = self.target
        if key is None:
            key = next((k for k in _TARGETS if k in element), None)
        elif key not in element:  # also a number, which only makes sense for targets in a tuple
            raise RecorderError("there is no '%s' in the batch; it has %s" % (key, ", ".join(map(str, element))), where,
                                "name the key of the targets with target=")
        target = element[key] if key is not None else None
        return {k: element[k] for k in element if k != key}, target

    def _pick_target(self, target, where):
        if self.target is not None and self.target in target:
            return target[self.target]
        if len(target) == 1:
            return next(iter(target.values()))
        raise RecorderError("there are several targets: %s" % ", ".join(map(str, target)), where,
                            "choose one with target=, or none with labels='none'")

    def _leave_out(self, what):
        if what not in self.left_out:
            self.left_out.append(what)

    # -- names

    def _named(self, inputs, rows, where):
        if is_mapping(inputs):
            self.by_name = True
            keys = self.inputs if self.inputs is not None else [str(k) for k in inputs]
            found = {str(k): v for k, v in inputs.items()}
            for key in keys:
                if key not in found:
                    raise RecorderError("there is no input '%s'; the batch has %s" % (key, ", ".join(found)), where,
                                        "name existing ones in inputs=[...]")
            for key in found:
                if key not in keys:
                    self._leave_out("'%s' of every batch" % key)
            if not keys:
                raise RecorderError("a batch without inputs", where, "give {'input': x, 'labels': y} or (x, y)")
            return list(keys), [found[k] for k in keys]
        values = list(inputs) if self._is_several(inputs, rows) else [inputs]
        names = self.inputs
        if names is None:
            names = ["input"] if len(values) == 1 else ["input%d" % i for i in range(len(values))]
        if len(names) != len(values):
            raise RecorderError("inputs= names %d inputs, but a batch has %d" % (len(names), len(values)), where,
                                "name as many inputs as there are")
        return list(names), values

    def _is_several(self, inputs, rows):
        if isinstance(inputs, tuple):
            return not all(_scalar(v) for v in inputs)
        if not isinstance(inputs, list) or not inputs:
            return False
        if self.several is None:
            self.several = self._list_is_several(inputs, rows)
        return self.several

    def _list_is_several(self, inputs, rows):
        if not all(is_array(v) and len(v.shape) for v in inputs):
            return False  # numbers, or lists of numbers: samples
        if not self.batched:
            return True
        if self.inputs is not None and (len(self.inputs) > 1 or len(inputs) > 1):
            return len(self.inputs) > 1
        firsts = {int(v.shape[0]) for v in inputs}
        if rows is None:
            return len(firsts) == 1 and firsts != {len(inputs)}
        return firsts == {rows}

    # -- one batch

    def _whole(self, names, values, target, where):
        columns = [self._column(v, "%s, input '%s'" % (where, n)) for n, v in zip(names, values)]
        if target is not None and _scalar(target):
            raise RecorderError("the target is one value, so this is a single sample and not a batch", where,
                                "give batched=False, or batches that all have the same form")
        counts = {"input '%s'" % n: len(c) for n, c in zip(names, columns)}
        if target is not None:
            self._refuse_several(target, len(columns[0]), where)
            counts["target"] = _rows(target)
        if len(set(counts.values())) != 1:
            told = ", ".join("%s has %s" % pair for pair in counts.items())
            raise RecorderError("inputs and targets do not have the same number of samples: %s" % told, where,
                                "if every element of the loader is one sample, give batched=False")
        return Batch(names, columns, target, len(columns[0]))

    @staticmethod
    def _refuse_several(target, rows, where):
        if is_sequence(target) and len(target) > 1 and all(is_array(t) and _rows(t) == rows for t in target):
            raise RecorderError("there seem to be %d targets per sample" % len(target), where,
                                "choose one with target=0, or none with labels='none'; rows of numbers must be one array")

    def _column(self, value, where):
        if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
            value = list(value)  # how NumPy holds arrays of unequal lengths
        if isinstance(value, list) and value and not all(_scalar(v) for v in value):
            samples = [numbers(v, where + ", sample %d of it" % i) for i, v in enumerate(value)]
            if len({(s.shape, s.dtype) for s in samples}) == 1:
                return np.stack(samples)
            return samples
        if hasattr(value, "to_list") and type(value).__name__ == "RaggedTensor":
            return [to_numpy(row) for row in value]
        array = numbers(value, where)
        if array.ndim == 0:
            raise RecorderError("a single number where a batch is expected", where,
                                "give batched=False if every element of the loader is one sample")
        return array
