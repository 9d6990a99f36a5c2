"""Targets of every kind, as the numbers that are saved."""
import numpy as np

from ._arrays import is_array, to_numpy
from ._errors import RecorderError

KINDS = ("class", "number", "multi", "none")


def as_rows(target, where):
    """A batch's target as an array with samples first; words become an array of str."""
    try:
        if isinstance(target, (list, tuple)) and any(is_array(t) for t in target):
            array = np.stack([to_numpy(t) for t in target])
        else:
            array = to_numpy(target)
    except (ValueError, TypeError, RuntimeError) as error:
        raise RecorderError("cannot make labels of the targets: %s" % error, where,
                            "give one number, one word or one row of fixed width per sample, or labels='none'")
    if array.dtype.kind in "OS":
        words = [w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w) for w in array.reshape(-1)]
        array = np.array(words).reshape(array.shape)
    if array.dtype.kind not in "biufU":
        raise RecorderError("targets of type %s are neither numbers nor words" % array.dtype, where,
                            "give class numbers, names of classes or numbers, or labels='none'")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    return array


def _zero_one(rows):
    return bool(((rows == 0) | (rows == 1)).all())


class Labels:
    """Turns targets into labels. The kind is settled by the first part's targets and holds for all others."""

    def __init__(self, kind, classes):
        if kind is not None and kind not in KINDS:
            raise RecorderError("labels=%r is not a kind of label" % (kind,), "the argument labels",
                                "one of %s" % ", ".join(repr(k) for k in KINDS))
        self.classes = [str(c) for c in classes] if classes is not None else []
        twice = sorted({c for c in self.classes if self.classes.count(c) > 1}) if len(self.classes) < 10000 else []
        if twice:
            raise RecorderError("the class '%s' is named twice" % twice[0], "the argument classes", "name every class once")
        self.numbers = {name: i for i, name in enumerate(self.classes)}
        self.kind, self.width, self.settled = kind, 1, kind == "none"
        self.lowest, self.broken = None, 0
        self.guessed, self.all_whole = kind is None, True

    def restore(self, kind, width):
        """Goes on as data.json says."""
        self.kind, self.width, self.settled = kind, width, True

    def settle(self, rows, start):
        """Decides the kind from all targets of the first part (None: there are none)."""
        if self.settled:
            return
        self.settled = True
        if rows is None:
            if self.kind is not None:
                raise RecorderError("labels='%s', but the loader gives no targets" % self.kind, "sample %d" % start,
                                    "let it give (input, target), or labels='none'")
            self.kind = "none"
            return
        if self.kind is None:
            self.kind = self._guess(rows, start)
        self.width = int(np.prod(rows.shape[1:])) if self.kind in ("number", "multi") else 1
        if self.kind == "number" and self.classes:
            raise RecorderError("targets are numbers, but classes are named", "sample %d" % start,
                                "leave classes= out, or give class numbers as targets")
        if self.kind == "multi" and self.classes and self.width != len(self.classes):
            self._wrong_width(self.width, start)

    def _guess(self, rows, start):
        where = "sample %d" % start
        if rows.dtype.kind == "U" or rows.ndim == 1:
            return "class" if rows.dtype.kind != "f" or self.classes else "number"
        if rows.ndim > 2:
            raise RecorderError("targets of shape %s per sample are not labels" % (rows.shape[1:],), where,
                                "labels='none' to leave them out, or labels='number' to keep them as plain numbers")
        if _zero_one(rows):
            return "class" if bool((rows.sum(axis=1) == 1).all()) else "multi"
        if rows.dtype.kind == "f":
            return "number"
        raise RecorderError("targets are rows of %d whole numbers, not all of them 0 or 1" % rows.shape[1], where,
                            "labels='number' to keep them as numbers, or labels='none' to leave them out")

    def _wrong_width(self, width, start):
        raise RecorderError("targets have %d columns, but there are %d classes" % (width, len(self.classes)),
                            "sample %d" % start, "name exactly one class for each column in classes=")

    def encode(self, rows, start):
        """Rows of a part, whose first sample has the position `start`, as they are saved; None for kind none."""
        if self.kind == "none":
            return None
        if rows is None:
            raise RecorderError("targets are missing here, but the samples before had some", "sample %d" % start,
                                "let every batch be (input, target)")
        return {"class": self._classes, "number": self._numbers, "multi": self._multi}[self.kind](rows, start)

    def _classes(self, rows, start):
        if rows.dtype.kind == "U":
            return self._words(rows, start)
        if rows.ndim == 2:
            rows = self._one_hot(rows, start)
        if rows.ndim != 1:
            raise RecorderError("targets of shape %s per sample are not class numbers" % (rows.shape[1:],), "sample %d" % start,
                                "one class number per sample, or labels='number' or labels='none'")
        whole = rows.astype(np.int64) if rows.dtype.kind != "f" or np.isfinite(rows).all() else None
        if whole is None or (rows.dtype.kind == "f" and not (whole == rows).all()):
            at = int(np.nonzero(~(np.isfinite(rows) & (np.floor(rows) == rows)))[0][0])
            raise RecorderError("the target %s is not a class number" % rows[at], "sample %d" % (start + at),
                                "labels='number' (and overwrite=True) when targets are quantities")
        self._check_range(whole, start)
        return whole

    def _check_range(self, whole, start):
        if len(whole):
            lowest = int(whole.min())
            self.lowest = lowest if self.lowest is None else min(lowest, self.lowest)
        bad = whole < 0
        if bad.any():
            at = int(np.nonzero(bad)[0][0])
            raise RecorderError("the class number %d is negative" % whole[at], "sample %d" % (start + at),
                                "leave samples without a label out, or labels='number' when targets are quantities")
        bad = whole >= len(self.classes)
        if self.classes and bad.any():
            at, count = int(np.nonzero(bad)[0][0]), len(self.classes)
            hint = "name all classes in classes="
            if whole[at] == count and self.lowest >= 1:
                hint = "class numbers seem to start at 1: subtract 1 from the targets, numbers start at 0"
            raise RecorderError("the class number %d has no name: there are %d classes, 0 to %d"
                                % (whole[at], count, count - 1), "sample %d" % (start + at), hint)

    def _words(self, rows, start):
        if not self.classes:
            raise RecorderError("targets are words ('%s'), and it is not known which class number each has" % rows.reshape(-1)[0],
                                "sample %d" % start, "name the classes in the order of the network's outputs: classes=[...]")
        if rows.ndim != 1:
            raise RecorderError("several words per sample", "sample %d" % start, "give 0/1 rows for several classes per sample")
        for i, word in enumerate(rows):
            if str(word) not in self.numbers:
                raise RecorderError("the target '%s' is none of the %d classes" % (word, len(self.classes)),
                                    "sample %d" % (start + i), "add it to classes=, or correct the target")
        whole = np.array([self.numbers[str(word)] for word in rows], np.int64)
        self._check_range(whole, start)
        return whole

    def _one_hot(self, rows, start):
        ones = (rows == 1).sum(axis=1)
        bad = (ones != 1) | ~((rows == 0) | (rows == 1)).all(axis=1)
        if bad.any():
            at = int(np.nonzero(bad)[0][0])
            raise RecorderError("a target that is not one-hot: %s; the others have a single 1 and 0 elsewhere"
                                % np.array2string(rows[at], threshold=8), "sample %d" % (start + at),
                                "labels='multi' for several classes per sample, labels='number' for quantities "
                                "(with overwrite=True)")
        if self.classes and rows.shape[1] != len(self.classes):
            self._wrong_width(rows.shape[1], start)
        return rows.argmax(axis=1)

    def _flat(self, rows, start):
        if rows.dtype.kind == "U":
            raise RecorderError("the target '%s' is a word, not a number" % rows.reshape(-1)[0], "sample %d" % start,
                                "labels='class' and classes=[...]")
        flat = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
        if flat.shape[1] != self.width:
            raise RecorderError("targets have %d numbers, but had %d before" % (flat.shape[1], self.width),
                                "sample %d" % start, "give rows of one width")
        return flat

    def _numbers(self, rows, start):
        flat = self._flat(rows, start).astype(np.float32)
        self.broken += int((~np.isfinite(flat)).sum())
        self.all_whole = self.all_whole and bool((flat == np.floor(flat)).all())
        return flat[:, 0] if self.width == 1 else flat

    def _multi(self, rows, start):
        flat = self._flat(rows, start)
        bad = ~((flat == 0) | (flat == 1)).all(axis=1)
        if bad.any():
            at = int(np.nonzero(bad)[0][0])
            raise RecorderError("a target with other values than 0 and 1: %s" % np.array2string(flat[at], threshold=8),
                                "sample %d" % (start + at), "labels='number' (and overwrite=True) when targets are quantities")
        return flat.astype(np.uint8)
