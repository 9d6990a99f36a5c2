"""What arrays that are handed to `fit` look like: ranges, scales, labels, rows that two sets share. NumPy is there
already when a framework is."""
MOST = 20000  # rows that are looked at


def as_array(value):
    """NumPy's array for arrays, lists of numbers and data frames that are in memory; None for everything else."""
    import numpy
    if value is None:
        return None
    kind = type(value).__module__.split(".")[0]
    try:
        if isinstance(value, numpy.ndarray):
            array = value
        elif kind == "pandas":
            array = value.to_numpy()
        elif kind in ("tensorflow", "torch", "jax") and hasattr(value, "numpy") and hasattr(value, "shape"):
            array = value.numpy()
        elif isinstance(value, list) and value and all(isinstance(one, (int, float, list)) for one in value[:10]):
            array = numpy.asarray(value)
        else:
            return None
    except Exception:
        return None
    return array if array.ndim >= 1 and array.dtype.kind in "fiub" and len(array) else None


def some_rows(array):
    return array[:: max(1, len(array) // MOST)][:MOST] if len(array) > MOST else array


def data_facts(x):
    import numpy
    some = some_rows(x).astype("f8")
    facts = {"shape": list(x.shape), "dtype": str(x.dtype), "min": float(numpy.nanmin(some)), "max": float(numpy.nanmax(some)),
             "mean": float(numpy.nanmean(some)), "std": float(numpy.nanstd(some)), "nan": bool(not numpy.isfinite(some).all())}
    if facts["max"] > 2:
        facts["whole"] = bool((some == numpy.round(some)).all())
    if some.ndim == 2 and len(some) > 1:
        deviations = some.std(0)
        positive = deviations[deviations > 0]
        if len(positive):
            facts["std_ratio"], facts["std_max"] = float(positive.max() / positive.min()), float(positive.max())
            facts["mean_max"] = float(numpy.abs(some.mean(0)).max())
    facts["duplicates"] = int(len(some) - len({row.tobytes() for row in some.reshape(len(some), -1)}))
    return facts


def class_facts(y):
    import numpy
    some = some_rows(y)
    facts = {"shape": list(y.shape), "dtype": str(y.dtype), "min": float(numpy.nanmin(some)), "max": float(numpy.nanmax(some)),
             "mean": float(numpy.nanmean(some)), "std": float(numpy.nanstd(some)),
             "whole": bool((some == numpy.round(some)).all()), "nan": bool(not numpy.isfinite(some.astype("f8")).all())}
    wide = some.reshape(len(some), -1)
    facts["width"] = int(wide.shape[1]) if some.ndim > 1 else 1
    if facts["width"] > 1:
        facts["one_hot"] = bool(((wide == 0) | (wide == 1)).all() and (wide.sum(1) == 1).all())
        facts["binary"] = bool(((wide == 0) | (wide == 1)).all())
    labels = wide.argmax(1) if facts.get("one_hot") else (wide[:, 0] if facts["width"] == 1 else None)
    if labels is not None and facts["whole"]:
        values, counts = numpy.unique(labels, return_counts=True)
        facts["classes"] = int(len(values))
        if len(values) <= 1000:
            facts["counts"] = {str(int(value)): int(count) for value, count in zip(values, counts)}
        steps = numpy.diff(labels)
        facts["sorted"] = bool(len(values) > 1 and len(labels) >= 20 and ((steps >= 0).all() or (steps <= 0).all()))
    elif facts["width"] == 1:
        facts["distinct"] = int(len(numpy.unique(wide[:, 0])))
    return facts


def overlap(train, other):
    """How many rows of `other` are rows of `train`."""
    if train.shape[1:] != other.shape[1:] or not len(train) or not len(other):
        return None
    some = some_rows(other).astype("f8")
    known = {row.tobytes() for row in train.astype("f8").reshape(len(train), -1)} if len(train) <= 200000 else set()
    if not known:
        return None
    common = sum(row.tobytes() in known for row in some.reshape(len(some), -1))
    return {"rows": int(len(some)), "train_rows": int(len(train)), "overlapping": int(common), "batches": 1,
            "mixed": int(0 < common < 0.9 * len(some)), "all_in_train": bool(common >= 0.9 * len(some)), "arrays": True}
