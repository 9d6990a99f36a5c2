"""edits.json: read with care, and written (for programs that make changes of their own, and for tests)."""
import json
import os

import numpy as np

from ._errors import PatchError


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


def _numbers(values, count, where):
    try:
        array = np.array(values, np.float64).reshape(-1)
    except (TypeError, ValueError):
        _wrong("the values are not numbers", where)
    if array.size != count:
        _wrong("%d values where the slice has %d" % (array.size, count), where)
    return array


def load_edits(path):
    """The targets of a file (or of a dict that was read from one), in order of their first edits."""
    if isinstance(path, dict):
        text, path = path, "the given edits"
    else:
        path = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                text = json.load(file)
        except OSError as error:
            raise PatchError("cannot read the edits: %s" % (error.strerror or error), path, "check the name of the file")
        except (ValueError, RecursionError) as error:
            _wrong("this is not JSON: %s" % error, path)
    if not isinstance(text, dict) or text.get("format") != "netmend-edits":
        raise PatchError("this is not a file of edits", path, "give the edits.json that netmend wrote")
    if text.get("version") != 1:
        raise PatchError("edits of version %s, but this netmend reads version 1" % text.get("version"), path, "use a newer netmend")
    try:
        return _targets(text, path)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        _wrong("something is missing or has the wrong form: %s" % error, path)


def _targets(text, path):
    targets = {}
    for number, edit in enumerate(text["edits"]):
        where = "%s, edit %d (%s)" % (path, number, edit.get("unit", "?"))
        name, axis, index = edit["parameter"], int(edit["axis"]), int(edit["index"])
        if name not in text["parameters"]:
            _wrong("the parameter '%s' is not described" % name, where)
        if name not in targets:
            about = text["parameters"][name]
            shape = tuple(int(n) for n in about["shape"]) or (1,)  # a parameter without axes is its own only slice
            whole = _numbers(about["before"], int(np.prod(shape)), where).reshape(shape) if "before" in about else None
            targets[name] = Target(name, shape, whole)
        shape = targets[name].shape
        if not (0 <= axis < len(shape) and 0 <= index < shape[axis]):
            _wrong("slice %d of axis %d lies outside the shape %s" % (index, axis, list(shape)), where)
        rest = shape[:axis] + shape[axis + 1:]
        count = int(np.prod(rest)) if rest else 1
        before, after = (_numbers(edit[key], count, where).reshape(rest) for key in ("before", "after"))
        targets[name].edits.append(Edit(number, str(edit.get("unit", "")), axis, index, before, after))
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
