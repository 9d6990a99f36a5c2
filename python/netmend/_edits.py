"""edits.json: read with care, and written (for programs that make changes of their own, and for tests)."""
import math
import os

import numpy as np

from ._errors import PatchError
from ._files import Unfit, read_json


class Edit:
    def __init__(self, number, unit, axis, index, before, after):
        self.number, self.unit, self.axis, self.index = number, unit, axis, index
        self.before, self.after = before, after  # in the shape of the slice

    def place(self):
        """Where to write in the whole parameter."""
        return (slice(None),) * self.axis + (self.index,)


class Target:
    """One parameter of the ONNX file with its edits in order. `whole`: all its values before, where they are known."""

    def __init__(self, name, shape, whole):
        self.name, self.shape, self.whole, self.edits = name, shape, whole, []

    def turned_round(self):
        """The same, from after to before."""
        whole = None if self.whole is None else self.whole.copy()
        other = Target(self.name, self.shape, whole)
        for edit in self.edits:
            if whole is not None:
                whole[edit.place()] = edit.after
        other.edits = [Edit(e.number, e.unit, e.axis, e.index, e.after, e.before) for e in reversed(self.edits)]
        return other


def _wrong(what, where):
    raise PatchError(what, where, "write the file again with netmend; it may have been cut off or changed by hand")


_WORDS = ("nan", "inf", "-inf")


def _numbers(values, count, where):
    if isinstance(values, np.ndarray):
        values = values.reshape(-1).tolist()
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) or
                                                        isinstance(v, str) and v in _WORDS for v in values):
        _wrong("the values are not numbers", where)
    if len(values) != count:
        _wrong("%d values where the slice has %d" % (len(values), count), where)
    try:
        return np.array([float(v) for v in values], np.float64)
    except OverflowError:
        _wrong("a value is too large for any type", where)


def _field(holder, name, kind, where):
    """A field that must be there and of a type."""
    words = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}
    value = holder.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        _wrong("`%s` is %s, expected %s" % (name, "missing" if value is None else "%.60r" % (value,), words[kind]), where)
    return value


def _shape(about, where):
    shape = _field(about, "shape", list, where)
    if len(shape) > 32 or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape) or math.prod(shape) >= 1 << 53:
        _wrong("`shape` is %.60r, expected a list of sizes" % (shape,), where)
    return tuple(shape) or (1,)  # a parameter without axes is its own only slice


def load_edits(path):
    """The targets of a file (or of a dict that was read from one), in order of their first edits."""
    if isinstance(path, dict):
        text, path = path, "the given edits"
    else:
        path = os.fspath(path)
        try:
            text = read_json(path)
        except Unfit as error:
            raise PatchError("cannot read the edits: %s" % error, path,
                             "check the name of the file; it may have been cut off or changed by hand")
    if not isinstance(text, dict) or text.get("format") != "netmend-edits":
        raise PatchError("this is not a file of edits", path, "give the edits.json that netmend wrote")
    if text.get("version") != 1:
        raise PatchError("edits of version %.60r, but this netmend reads version 1" % (text.get("version"),), path, "use a newer netmend")
    return _targets(text, path)


def _targets(text, path):
    targets = {}
    edits = _field(text, "edits", list, path)
    described = _field(text, "parameters", dict, path) if edits else {}  # only `edits` must be there
    for number, edit in enumerate(edits):
        where = "%s, edit %d" % (path, number)
        if not isinstance(edit, dict):
            _wrong("an edit is %.60r, expected an object" % (edit,), where)
        unit = _field(edit, "unit", str, where) if "unit" in edit else ""
        where += " (%.200s)" % (unit or "?")
        name, axis, index = _field(edit, "parameter", str, where), _field(edit, "axis", int, where), _field(edit, "index", int, where)
        if name not in described:
            _wrong("the parameter '%.200s' is not described" % name, where)
        if name not in targets:
            about = _field(described, name, dict, path)
            shape = _shape(about, where)
            whole = _numbers(about["before"], math.prod(shape), where).reshape(shape) if "before" in about else None
            targets[name] = Target(name, shape, whole)
        shape = targets[name].shape
        if not (0 <= axis < len(shape) and 0 <= index < shape[axis]):
            _wrong("slice %d of axis %d lies outside the shape %s" % (index, axis, list(shape)), where)
        rest = shape[:axis] + shape[axis + 1:]
        before, after = (_numbers(edit.get(key), math.prod(rest), where).reshape(rest) for key in ("before", "after"))
        targets[name].edits.append(Edit(number, unit, axis, index, before, after))
    return list(targets.values())


def make_edits(before, after, axes=None, units=None, file=""):
    """The inverse of applying: the edits that lead from one set of parameters to the other, a slice each where they
    differ. axes: by name, the axis to cut along (0 where not given). units: by name, what people call the layer."""
    text = {"format": "netmend-edits", "version": 1, "model": {"file": file, "checksum": ""}, "parameters": {}, "edits": []}
    for name, old in before.items():
        old, new, axis = np.asarray(old), np.asarray(after[name]), (axes or {}).get(name, 0)
        for index in range(old.shape[axis]):
            a, b = old.take(index, axis), new.take(index, axis)
            if np.array_equal(a, b):
                continue
            about = text["parameters"].setdefault(name, {"shape": list(old.shape)})
            if old.ndim == 1:
                about["before"] = [float(v) for v in old]
            unit = "%s/%d" % ((units or {}).get(name, name), index)
            text["edits"].append({"parameter": name, "unit": unit, "axis": axis, "index": index,
                                  "before": [float(v) for v in a.reshape(-1)], "after": [float(v) for v in b.reshape(-1)]})
    return text
