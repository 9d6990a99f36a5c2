"""Data of a Python program as a spec that the program reads: arrays, loaders, tables and data sets are saved into a folder
of their own, in shared memory where there is room; what is on disk as NPY already stays there."""
import itertools
import os
import warnings

import numpy as np

from ._arrays import is_array, is_torch, to_numpy
from ._batches import is_mapping, is_sequence
from ._errors import NetmendInputError
from ._saving import save_data
from ._workspace import Workspace

_CHUNK = 1024
_MOST = 1_000_000  # samples of something without a length before it is called endless
_LABELS = ("label", "labels", "target", "targets", "y", "class")


class Data:
    """Data for any number of calls, saved once.

    source: arrays `x`, `(x, y)` or `{"ids": …, "mask": …, "labels": …}`, a DataLoader, a tf.data.Dataset, a pandas DataFrame,
        a Hugging Face data set, any iterable of (input, target) batches; or a spec, which stays as it is.
    label: the column of a DataFrame (or key of a dict) that holds the labels.
    groups: of a DataFrame, names of columns that are kept aside to compare by; else as for save_data.
    limit: use only the first `limit` samples.
    keep: a folder to keep the data in; without it the data is deleted with this object.

    Everything else as for save_data: classes, ids, display, labels, inputs, batched, target, columns.

    >>> data = Data((np.zeros((4, 2), np.float32), [0, 1, 0, 1]), classes=["no", "yes"])
    >>> data.samples, data.inputs[0]["shape"]
    (4, [2])
    >>> data.spec.startswith("saved:")
    True
    """

    def __init__(self, source, label=None, groups=None, limit=None, keep=None, **options):
        self.summary, self.notes = None, []
        if isinstance(source, (str, os.PathLike)):
            if label is not None or groups is not None or options or keep:
                raise NetmendInputError("A data spec takes no other arguments", "Leave the other arguments out.")
            self.spec = _spec_of_path(source)
            return
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1):
            raise NetmendInputError("limit=%r is not a number of samples" % (limit,))
        self.spec = _mapped(source) if not (label or groups is not None or options or keep) else None
        if self.spec:
            return
        loader, found = _loader_of(source, label, groups)
        for name, value in found.items():
            options.setdefault(name, value)
        if groups is not None:
            options.setdefault("groups", groups)
        self._workspace = Workspace()
        folder = os.path.abspath(keep) if keep else self._workspace.path("data", _bytes_of(source, limit))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.summary = save_data(_bounded(loader, limit, options, self._workspace.folder or folder), folder,
                                     overwrite=not keep, **options)
        self.notes = [str(w.message) for w in said]
        for note in self.notes:
            warnings.warn(note, stacklevel=2)
        self.spec = _spec("saved", folder)
        self.inputs, self.samples, self.classes = self.summary.inputs, self.summary.samples, self.summary.classes
        self.folder = folder

    def __repr__(self):
        return "Data(%r)" % self.spec if self.summary is None else "Data: %r" % self.summary

    def first(self, count):
        """The first samples as arrays by the inputs' names; None for data that is only a spec."""
        if self.summary is None:
            return None
        with np.load(os.path.join(self.folder, "part-00000.npz")) as part:
            found = {}
            for entry in self.inputs:
                values = part["input." + entry["name"]]
                if "length." + entry["name"] in part.files:
                    lengths = part["length." + entry["name"]][:count]
                    rows = np.split(values[:int(lengths.sum())], np.cumsum(lengths)[:-1])
                    values = np.zeros((len(rows), int(lengths.max(initial=1))) + values.shape[1:], values.dtype)
                    for row, one in zip(values, rows):
                        row[:len(one)] = one
                found[entry["name"]] = np.array(values[:count])
        return found


def spec_of(value, workspace, limit=None):
    """The spec of whatever a user gives as data."""
    if isinstance(value, Data):
        workspace.kept.append(value)
        workspace.data.setdefault(id(value), value)
        return value.spec
    if isinstance(value, (str, os.PathLike)):
        workspace.spec = workspace.spec or _spec_of_path(value)
        return _spec_of_path(value)
    if _is_model(value):
        raise NetmendInputError("A model (%s) was given as data" % type(value).__name__, "The model comes first, then the data.")
    if id(value) not in workspace.data:
        workspace.data[id(value)] = Data(value, limit=limit)
        workspace.kept.append((value, workspace.data[id(value)]))
    return workspace.data[id(value)].spec


def _is_model(value):
    return hasattr(value, "state_dict") or hasattr(value, "SerializeToString") or hasattr(value, "get_weights")


def _spec(kind, path):
    """A comma or a quote in a name is quoted."""
    if "," in path or '"' in path:
        path = '"%s"' % path.replace("\\", "\\\\").replace('"', '\\"')
    return "%s:%s" % (kind, path)


def _spec_of_path(value):
    if isinstance(value, str):
        return value
    path = os.fspath(value)
    if os.path.exists(os.path.join(path, "data.json")):
        return _spec("saved", path)
    kinds = {".npz": "npz", ".npy": "npy"}
    kind = kinds.get(os.path.splitext(path)[1].lower())
    if kind:
        return _spec(kind, path)
    raise NetmendInputError("%s: what kind of data this is cannot be seen from its name" % path,
                            "Write it as a spec, for example 'images:%s' or 'csv:%s,label=COLUMN'." % (path, path))


def _mapped(source):
    """Arrays that are whole NPY files on disk are named, not copied: the program maps them itself."""
    parts = source if isinstance(source, tuple) else (source,)
    if len(parts) > 2 or not all(_whole_file(part) for part in parts) or parts[0].dtype != np.float32:
        return None
    names = [os.path.abspath(part.filename) for part in parts]
    if any("," in name for name in names):
        return None
    # What a model's metadata says of raw values does not apply: these are the values that the network is given.
    return "npy:" + names[0] + (",y=" + names[1] if len(names) == 2 else "") + ",scale=1,mean=0,std=1"


def _whole_file(value):
    if not isinstance(value, np.memmap) or not isinstance(value.base, np.memmap) and value.base is None:
        return False
    name = getattr(value, "filename", None)
    if not name or not str(name).endswith(".npy") or not value.flags.c_contiguous:
        return False
    return value.offset + value.nbytes == os.path.getsize(name)


# ---- what there is, as batches ----


def _loader_of(source, label, groups):
    """An iterable for save_data, and options that follow from what it is."""
    if _is_frame(source):
        return _of_frame(source, label, groups)
    if hasattr(source, "column_names") and hasattr(source, "features"):
        return _of_hugging_face(source, label)
    if label is not None and not is_mapping(source):
        raise NetmendInputError("label=%r: only tables and dicts have columns" % (label,))
    if is_mapping(source):
        return _of_mapping(source, label)
    if is_array(source):
        return _chunks({"input": source}, None), {"labels": "none"}
    if is_sequence(source) and len(source) == 2 and is_array(source[0]) and len(source[0].shape):
        return _of_pair(*source)
    if _infinite(source):
        raise NetmendInputError("The data set has no end", "Say how many samples to take: limit=N, or take(N) in tf.data.")
    return _in_order(source), {}


def _of_pair(x, y):
    if len(x) != len(y):
        raise NetmendInputError("%d inputs and %d labels" % (len(x), len(y)), "Give one label per input.")
    if is_array(y) and len(y.shape) == 2 and y.shape[1] == 1:
        y = y[:, 0]
    return _chunks({"input": x}, y), {}


def _of_hugging_face(source, label):
    """Columns are read a thousand rows at a time. A data set that is streamed may have no length."""
    if label is not None and label not in source.column_names:
        raise NetmendInputError("The data set has no column %r, it has %s" % (label, ", ".join(source.column_names)))
    batches = source.iter(batch_size=_CHUNK) if hasattr(source, "iter") else iter(source)
    return batches, {"batched": True, **({"target": label} if label is not None else {})}


def _of_mapping(source, label):
    names = {str(key): value for key, value in source.items()}
    if label is not None and label not in names:
        raise NetmendInputError("There is no %r among %s" % (label, ", ".join(names)))
    label = label if label is not None else next((name for name in _LABELS if name in names), None)
    target = names.pop(label) if label is not None else None
    if not names:
        raise NetmendInputError("The dict holds no input, only %r" % (label,), "Give {'input': x, 'label': y}.")
    wrong = [name for name, value in names.items() if not is_array(value)]
    if wrong:
        raise NetmendInputError("%r is a %s" % (wrong[0], type(names[wrong[0]]).__name__),
                                "Give arrays or tensors, one row per sample; texts and columns to compare by go into groups=.")
    lengths = {name: len(value) for name, value in names.items()}
    lengths.update({label: len(target)} if target is not None else {})
    if len(set(lengths.values())) > 1:
        raise NetmendInputError("The arrays have different numbers of rows: %s"
                                % ", ".join("%s %d" % pair for pair in lengths.items()))
    options = {"inputs": list(names)}
    if target is None:
        options["labels"] = "none"
    return _chunks(names, target), options


def _chunks(inputs, target):
    """Batches as save_data takes them, cut from arrays without copying them."""
    count = len(next(iter(inputs.values())))
    if count == 0:
        raise NetmendInputError("The arrays have no rows")
    one = len(inputs) == 1
    for at in range(0, count, _CHUNK):
        part = {name: _numbers(name, value[at:at + _CHUNK]) for name, value in inputs.items()}
        values = next(iter(part.values())) if one else part
        if target is None:
            yield values if not one else (values,)
            continue
        labels = target[at:at + _CHUNK]
        yield values, to_numpy(labels) if is_array(labels) or is_torch(labels) else list(labels)


def _numbers(name, values):
    values = to_numpy(values)
    if values.dtype.kind not in "biuf":
        raise NetmendInputError("%s holds %s, which a network cannot take" % (name, values.dtype), "Turn it into numbers first.")
    return values.astype(np.float32) if values.dtype == np.float64 else values


# ---- tables ----


def _is_frame(value):
    return hasattr(value, "columns") and hasattr(value, "iloc") and hasattr(value, "dtypes")


def _of_frame(frame, label, groups):
    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        raise NetmendInputError("A column of the table is named twice")
    if label is None:
        label = next((name for name in _LABELS if name in names), None)
    elif label not in names:
        raise NetmendInputError("The table has no column %r, it has %s" % (label, ", ".join(names)))
    aside = [groups] if isinstance(groups, str) else list(groups or [])
    for name in aside:
        if name not in names:
            raise NetmendInputError("The table has no column %r, it has %s" % (name, ", ".join(names)))
    by_name = {str(name): frame[name] for name in frame.columns}
    inputs = [name for name in names if name != label and name not in aside]
    if not inputs:
        raise NetmendInputError("The table has no column left for the network")
    for name in inputs:
        _check_column(name, by_name[name])
    values = np.stack([np.asarray(by_name[name], np.float32) for name in inputs], axis=1)
    options = {"columns": inputs, "groups": {name: list(by_name[name]) for name in aside} or None}
    if label is None:
        options["labels"] = "none"
        return _chunks({"input": values}, None), options
    target = by_name[label]
    if target.isna().any():
        raise NetmendInputError("Column %r (the labels) has %d missing values" % (label, int(target.isna().sum())),
                                "Drop those rows: frame.dropna(subset=[%r])." % label)
    target = np.asarray(target)
    if target.dtype.kind in "OUS":
        words = sorted({str(word) for word in target})
        options["classes"] = words
        target = np.array([words.index(str(word)) for word in target], np.int64)
    return _chunks({"input": values}, target), options


def _check_column(name, column):
    missing = int(column.isna().sum())
    if missing:
        raise NetmendInputError("Column %r has %d missing values (NaN)" % (name, missing),
                                "Fill them as in training, frame[%r].fillna(…), or drop the rows." % name)
    if getattr(column.dtype, "kind", "O") not in "biuf":
        raise NetmendInputError("Column %r holds %s, not numbers" % (name, column.dtype),
                                "Encode it as in training, keep it aside with Data(frame, groups=[%r]), or drop it." % name)


# ---- loaders ----


def _infinite(source):
    cardinality = getattr(source, "cardinality", None)
    if callable(cardinality):
        try:
            return int(cardinality()) == -1  # tf.data.INFINITE_CARDINALITY
        except Exception:
            return False
    return isinstance(source, (itertools.cycle, itertools.repeat, itertools.count))


def _in_order(loader):
    """A DataLoader that shuffles, without shuffling: inputs are named by their place, and results should repeat."""
    sampler = getattr(loader, "sampler", None)
    if sampler is None or not hasattr(loader, "dataset") or not hasattr(loader, "collate_fn"):
        return loader
    kind = type(sampler).__name__
    if kind == "SequentialSampler" or kind.startswith("_Infinite"):
        return loader
    if kind != "RandomSampler" or getattr(sampler, "replacement", False) or getattr(loader, "batch_size", None) is None:
        warnings.warn("the loader draws its samples by a %s: they may come in a different order the next time" % kind)
        return loader
    warnings.warn("the loader shuffles; its data set is read in order instead")
    return type(loader)(loader.dataset, batch_size=loader.batch_size, shuffle=False, collate_fn=loader.collate_fn,
                        num_workers=loader.num_workers)


def _bounded(loader, limit, options, folder):
    """The batches, at most so many samples of them. Something without a length that goes on and on is refused."""
    if limit is None and hasattr(loader, "__len__"):
        return loader
    return _Counted(loader, limit, options)


class _Counted:
    """An iterable that ends after `limit` samples, or complains after a million of them where there is no limit."""

    def __init__(self, loader, limit, options):
        from ._batches import Reader, walk
        self.loader, self.limit, self.walk = loader, limit, walk
        self.reader = Reader(options.get("inputs"), options.get("target"), options.get("batched"),
                             targets_wanted=options.get("labels") != "none")

    def __iter__(self):
        seen = 0
        for number, element in enumerate(self.walk(self.loader)):
            count = self.reader.read(element, "element %d of the loader" % number).count
            if self.limit is not None and seen + count > self.limit:
                if self.limit > seen:
                    yield _cut(element, self.limit - seen, count)
                return
            yield element
            seen += count
            if self.limit is not None and seen >= self.limit:
                return
            if self.limit is None and seen > _MOST:
                raise NetmendInputError("The loader has no length and has given %d samples: it may have no end" % seen,
                                        "Say how many to take: limit=N.")


def _cut(element, rows, count):
    """The first rows of a batch."""
    if is_mapping(element):
        return {key: _cut(value, rows, count) for key, value in element.items()}
    if isinstance(element, tuple):
        return tuple(_cut(part, rows, count) for part in element)
    if is_array(element) and len(element.shape) and element.shape[0] == count:
        return element[:rows]
    if isinstance(element, list):
        return element[:rows] if len(element) == count else [_cut(part, rows, count) for part in element]
    return element


def _bytes_of(source, limit):
    """About how much will be saved, for the choice of the folder."""
    parts = source.values() if is_mapping(source) else source if is_sequence(source) else [source]
    if all(hasattr(p, "nbytes") for p in parts if is_array(p)) and any(is_array(p) for p in parts):
        return sum(int(p.nbytes) for p in parts if is_array(p))
    data_set = getattr(source, "dataset", source)
    try:
        sample, count = data_set[0], len(data_set)
    except Exception:
        return 4 << 30  # nobody knows: only a roomy memory is taken
    sizes = [int(to_numpy(v).nbytes) for v in (sample.values() if is_mapping(sample) else sample if is_sequence(sample) else [sample])
             if is_array(v)]
    return sum(sizes) * min(count, limit or count)
