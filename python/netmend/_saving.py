"""save_data: what a loader gives, kept in a folder exactly as the network would see it."""
import warnings

import numpy as np

from ._batches import Reader, samples_of
from ._errors import RecorderError
from ._labels import Labels, as_rows
from ._png import png_of
from ._sides import Display, Ids, Mismatch, group_columns, word
from ._reference import reference
from ._store import Progress, Store, fault_point, words_to_members
from ._version import VERSION

PART = 1024  # samples per part


class Summary:
    """What was saved. `notes` says what a person should know about it."""

    def __init__(self, folder, meta, resumed_from, not_finite, notes):
        self.folder, self.samples = folder, meta["samples"]
        self.parts, self.bytes = len(meta["parts"]), sum(p["bytes"] for p in meta["parts"])
        self.inputs, self.labels, self.classes = meta["inputs"], meta["labels"], meta["classes"]
        self.resumed_from, self.not_finite, self.notes = resumed_from, not_finite, notes

    def __repr__(self):
        inputs = ", ".join("%s %s%s" % (i["name"], i["type"], i["shape"]) for i in self.inputs)
        lines = ["%d samples in %s (%d parts, %d bytes): %s; labels: %s"
                 % (self.samples, self.folder, self.parts, self.bytes, inputs, self.labels["kind"])]
        return "\n".join(lines + ["  note: " + note for note in self.notes])


class Column:
    """One input, gathered for the part that is being filled."""

    def __init__(self, name, kind=None, shape=None):
        self.name = name
        self.kind = None if kind is None else np.dtype(kind)
        self.shape = None if shape is None else tuple(shape)  # of one sample; -1 first: lengths differ
        self.pieces = []
        self.not_finite = 0

    def ragged(self):
        return bool(self.shape) and self.shape[0] == -1

    def add(self, values, start):
        """Samples of one batch: an array, or a list of one array a sample. `start`: position of the first of them."""
        if isinstance(values, list):
            for i, value in enumerate(values):
                self._piece(value[None], start + i)
        elif len(values):
            self._piece(values, start)

    def _piece(self, piece, start):
        where = "input '%s', sample %d" % (self.name, start)
        empty = piece.ndim > 1 and piece.shape[1] == 0
        if self.kind is None and not empty:
            self.kind = piece.dtype
        if self.kind is not None and piece.dtype != self.kind:
            # An empty list has no type of its own. Anything else may only be widened: no value changes then.
            if not empty and not np.can_cast(piece.dtype, self.kind, "safe"):
                raise RecorderError("values are %s, but were %s before" % (piece.dtype, self.kind), where,
                                    "let the loader give one type")
            piece = piece.astype(self.kind)
        if self.shape is None and not empty:
            self.shape = piece.shape[1:]
        if self.shape is not None:
            piece = self._fit(piece, empty, where)
        if piece.dtype.kind == "f":
            self.not_finite += int(piece.size - np.isfinite(piece).sum())
        self.pieces.append(np.array(piece, order="C"))  # a copy: loaders may use their memory again

    def _fit(self, piece, empty, where):
        shape = piece.shape[1:]
        if empty and len(shape) != len(self.shape):
            piece = piece.reshape(piece.shape[:2] + self.shape[1:])
            shape = piece.shape[1:]
        if shape != self.shape:
            if len(shape) != len(self.shape) or not shape or shape[1:] != self.shape[1:]:
                raise RecorderError("a sample has the shape %s, but those before had %s" % (list(shape), list(self.shape)), where,
                                    "only the first axis of a sample may differ in length; bring the others to one size")
            self.shape = (-1,) + shape[1:]
        return piece

    def settle(self):
        """Before the first part is written: samples that were all empty still need a type and a shape."""
        if self.kind is None:
            self.kind = np.dtype(np.float32)
            self.shape = (-1,) + self.pieces[0].shape[2:]
        for i, piece in enumerate(self.pieces):  # empty samples from before the type was known
            if piece.dtype != self.kind or piece.ndim != len(self.shape) + 1:
                self.pieces[i] = self._fit(piece.astype(self.kind), True, "input '%s'" % self.name)

    def members(self):
        if not self.ragged():
            return {"input." + self.name: self.pieces}
        lengths = np.concatenate([np.full(len(p), p.shape[1], np.int64) for p in self.pieces])
        flat = [p.reshape((p.shape[0] * p.shape[1],) + p.shape[2:]) for p in self.pieces]
        return {"input." + self.name: flat, "length." + self.name: lengths}

    def spec(self):
        return {"name": self.name, "type": self.kind.name, "shape": [int(n) for n in self.shape]}


class Part:
    """The samples that are being gathered, at most PART of them."""

    def __init__(self):
        self.count = 0
        self.targets, self.ids, self.display = [], [], []
        self.groups = {}

    def rows(self, start):
        """All targets as one array, or None."""
        given = [t for t in self.targets if t is not None]
        if not given:
            return None
        if len(given) != len(self.targets):
            raise RecorderError("some batches have targets and others have none", "samples %d to %d" % (start, start + self.count - 1),
                                "let every batch be (input, target), or labels='none'")
        shapes = {t.shape[1:] for t in given}
        if len(shapes) > 1 or len({t.dtype.kind == "U" for t in given}) > 1:
            raise RecorderError("targets of differing forms: %s" % ", ".join("%s%s" % (t.dtype, list(t.shape[1:])) for t in given[:8]),
                                "samples %d to %d" % (start, start + self.count - 1),
                                "give targets of one form, or labels='none' to leave them out")
        return np.concatenate(given)


class Saver:
    def __init__(self, store, reader, labels, ids, display, groups, names=None):
        self.store, self.reader, self.labels = store, reader, labels
        self.names = names  # of the columns of a table
        self.ids, self.display, self.groups = ids, display, groups
        self.columns, self.part, self.total = None, Part(), 0
        self.saved = 0  # samples in whole parts from an earlier call
        self.number = 0  # of the part being filled
        self.progress = Progress()
        self.fresh = store.meta is None

    def sides(self):
        return [s for s in [self.ids, self.display] + list(self.groups.values()) if s is not None]

    # -- going on after a kill

    def resume(self):
        meta = self.store.meta
        mine = {"classes": self.labels.classes, "groups": list(self.groups), "display": self.display.kind if self.display else "none"}
        for key, value in mine.items():
            if meta[key] != value:
                self._refuse_resume("%s were %s and are %s now" % (key, _short(meta[key]), _short(value)))
        kind = meta["labels"]["kind"]
        if self.labels.kind not in (None, kind):
            self._refuse_resume("labels were '%s' and are '%s' now" % (kind, self.labels.kind))
        self.labels.restore(kind, meta["labels"]["width"])
        self.reader.targets_wanted = kind != "none"
        damaged = self.store.keep_whole_parts()
        if damaged:
            warnings.warn("%s is missing or damaged: saving again from sample %d on" % (damaged, meta["samples"]))
        self.saved = meta["samples"]
        self.columns = [Column(i["name"], i["type"], i["shape"]) for i in meta["inputs"]]

    def _refuse_resume(self, what):
        raise RecorderError("an unfinished data set is here, but %s" % what, self.store.folder,
                            "call with the same arguments to continue, or overwrite=True to start over")

    def _compare(self, members):
        """A part that is already saved must come out of the loader again; the display may have been packed otherwise."""
        stored = self.store.read_part(self.number)
        names = {n for n in set(members) | set(stored) if not n.startswith("display.")}
        for name in sorted(names):
            if name not in members or name not in stored or not _same(members[name], stored[name]):
                raise RecorderError("the loader gives other samples than at the first call (%s differs)" % name,
                                    "samples %d to %d of %s" % (self.number * PART, self.number * PART + self.part.count - 1,
                                                                self.store.folder),
                                    "shuffle=False and no random augmentation, or overwrite=True to start over")

    # -- the stream

    def save(self, loader):
        checked = False
        try:
            for batch in self.reader.batches(loader):
                if not checked:
                    self._check_lengths(loader)
                    checked = True
                self._add(batch)
        except Mismatch as short:
            self._refuse_short(short, loader)
        if self.total == 0:
            raise RecorderError("the loader gave no samples", "the argument loader",
                                "give one that still has batches: a generator is used up after one pass")
        if self.total < self.saved:
            raise RecorderError("the loader gave %d samples, but %d are already saved" % (self.total, self.saved), self.store.folder,
                                "give the same loader as at the first call, or overwrite=True to start over")
        for side in self.sides():
            if side.rest() != self.total:
                side.refuse(self.total)
        if self.part.count:
            self._flush(last=True)
        self.store.meta["complete"] = True
        self.store.write_json()

    def _check_lengths(self, loader):
        """Before any work: where both numbers are known, they must be equal."""
        expected = samples_of(loader)
        if expected is None and not self.reader.batched:
            try:
                expected = len(loader)
            except TypeError:
                return
        for side in self.sides():
            if expected is not None and side.length is not None and side.length != expected:
                side.refuse(expected)

    def _refuse_short(self, short, loader):
        expected = samples_of(loader)
        short.side.refuse(expected if expected is not None else short.samples, at_least=expected is None)

    def _add(self, batch):
        if self.columns is None:
            self.columns = [Column(name) for name in batch.names]
        elif [c.name for c in self.columns] != batch.names:
            self._refuse_resume("inputs were %s and are %s now" % ([c.name for c in self.columns], batch.names))
        target = None if batch.target is None or self.labels.kind == "none" else as_rows(batch.target, "sample %d" % self.total)
        done = 0
        while done < batch.count:
            count = min(PART - self.part.count, batch.count - done)
            for column, values in zip(self.columns, batch.columns):
                column.add(values[done:done + count], self.total)
            self.part.targets.append(None if target is None else np.array(target[done:done + count]))
            self.part.count += count
            self.total += count
            done += count
            self._take_sides(count)
            if self.part.count == PART:
                self._flush(last=False)

    def _take_sides(self, count):
        if self.ids:
            self.part.ids += self.ids.take(count, self.total)
        if self.display:
            self.part.display += self.display.take(count, self.total)
        for name, side in self.groups.items():
            self.part.groups.setdefault(name, []).extend(word(v) for v in side.take(count, self.total))

    # -- one part

    def _flush(self, last):
        start = self.number * PART
        for column in self.columns:
            column.settle()
        if start < self.saved:
            if start == 0 or start + PART >= self.saved:
                self._compare(self._members(start, with_display=False))
        else:
            rows = self.part.rows(start)
            self.labels.settle(rows, start)
            members = self._members(start, with_display=True)
            self._open()
            self.store.add_part(members, self.part.count, complete=last)
            fault_point("part done")
        self.progress.show("%d samples saved" % self.total, last)
        self.part, self.number = Part(), self.number + 1
        for column in self.columns:
            column.pieces = []

    def _members(self, start, with_display):
        members = {}
        for column in self.columns:
            members.update(column.members())
        label = self.labels.encode(self.part.rows(start), start)
        if label is not None:
            members["label"] = label
        if self.ids:
            members.update(words_to_members("id", self.part.ids))
        for name, words in self.part.groups.items():
            members.update(words_to_members("group." + name, words))
        if self.display and with_display:
            shown = self.part.display
            if self.display.kind == "image":
                shown = [png_of(image, "display, position %d" % (start + i)) for i, image in enumerate(shown)]
            members.update(words_to_members("display", shown))
        return members

    def _named(self, spec):
        """What data.json says of an input, with the names of its columns."""
        names = self.names.get(spec["name"]) if isinstance(self.names, dict) else self.names if len(self.columns) == 1 else None
        if names is None:
            if self.names is not None and not isinstance(self.names, dict):
                raise RecorderError("columns= is one list, and there are %d inputs" % len(self.columns), self.store.folder,
                                    "give {\"%s\": [...]}" % spec["name"])
            return spec
        names = [str(name) for name in names]
        if spec["shape"] != [len(names)]:
            raise RecorderError("columns= has %d names, but a sample of input '%s' has the shape %s" % (len(names), spec["name"], spec["shape"]),
                                self.store.folder, "give one name for each value of a row")
        return dict(spec, columns=names)

    def _open(self):
        """The folder before a part is added: made at the first one, rewritten where lengths begin to differ."""
        specs = [self._named(column.spec()) for column in self.columns]
        if self.fresh and not self.number:
            self.store.begin({
                "format": "netmend-saved", "version": 1, "complete": False, "samples": 0, "inputs": specs,
                "labels": {"kind": self.labels.kind, "width": self.labels.width}, "classes": self.labels.classes,
                "groups": list(self.groups), "display": self.display.kind if self.display else "none", "parts": [],
                "writer": "netmend " + VERSION})
            return
        before, self.store.meta["inputs"] = self.store.meta["inputs"], specs
        names = [new["name"] for old, new in zip(before, specs) if old["shape"] != new["shape"]]
        if names:
            self.store.make_ragged(names)


def _same(pieces, stored):
    pieces = pieces if isinstance(pieces, list) else [pieces]
    if any(p.dtype != stored.dtype or p.shape[1:] != stored.shape[1:] for p in pieces):
        return False
    if sum(len(p) for p in pieces) != len(stored):
        return False
    at = 0
    for piece in pieces:  # as bytes, so that NaN equals NaN
        if np.ascontiguousarray(piece).tobytes() != stored[at:at + len(piece)].tobytes():
            return False
        at += len(piece)
    return True


def _short(value):
    text = str(value)
    return text if len(text) < 80 else text[:77] + "..."


def save_data(loader, DIR, classes=None, ids=None, display=None, groups=None, labels=None, inputs=None, overwrite=False,
              batched=None, target=None, columns=None):
    """Saves everything a loader gives into the folder DIR, for netmend to read as `saved:DIR`.

    loader: an iterable of (input, target) batches: a PyTorch DataLoader, a tf.data.Dataset, a Keras sequence, a list, or
        batches that are dicts, whose targets are under labels, label, targets or target. Data sets with a length and an
        index are read by index. It must give the same samples in the same order every time: shuffle=False.
        Several inputs are a tuple, a list or a dict in place of the input. Samples may differ in the length of their first
        axis: lists of arrays, or batches padded to different lengths, which are kept with their padding.
    classes: names of the classes in the order of the network's outputs. Needed when targets are words.
    ids: a name for every sample, no two the same (they are the only thing that is kept in memory for all samples).
    display: what a person should see: for every sample a uint8 image (height x width [x channels]), a PIL image, or a text.
    groups: columns kept aside: {"camera": [...]}, a pandas table, or a list of dicts. None and NaN are missing values.
    labels: "class", "number", "multi" or "none", if the kind that is inferred is wrong. Inferred: whole numbers, words and
        one-hot rows are classes; fractions are numbers, or classes if classes= is given; other rows of 0 and 1 are multi.
    inputs: names of the inputs; for batches that are dicts, the keys to keep. With a flat batch (a, b, y), the first
        len(inputs) elements are inputs and the next one is the target.
    batched: True if every element of the loader is a batch, False if it is one sample. If it is left out, a first target that is a
        single number or word means one sample, everything else (also no target at all) means batches.
    target: the key of the target, where batches or targets are dicts; its position, where targets are a tuple.
    columns: for rows of a table, what each of their values is: ["age", "sex=Male"]; with several inputs
        {"input": [...]}. netmend then speaks of columns by their names.

    A part of 1024 samples is held in memory and written when it is full. Calling again after a kill continues where the
    last part ended, after a check that the loader still gives the same samples. Returns a Summary.
    """
    store = Store(DIR)
    store.load(overwrite)
    rule = Labels(labels, classes)
    reader = Reader(inputs, target, batched, targets_wanted=labels != "none")
    saver = Saver(store, reader, rule, Ids(ids) if ids is not None else None,
                  Display(display) if display is not None else None, group_columns(groups), columns)
    if store.meta is not None:
        saver.resume()
    resumed = saver.saved
    saver.save(loader)
    return Summary(store.folder, store.meta, resumed, sum(c.not_finite for c in saver.columns), _notes(saver))


save_data.reference = reference


def _notes(saver):
    notes = ["left out: " + what for what in saver.reader.left_out]
    for column in saver.columns:
        if column.not_finite:
            notes.append("input '%s' holds %d values that are NaN or infinite" % (column.name, column.not_finite))
    if saver.labels.broken:
        notes.append("the targets hold %d values that are NaN or infinite" % saver.labels.broken)
    rule, whole = saver.labels, not saver.saved  # after a kill not all targets were looked at
    if rule.kind == "number" and rule.guessed and rule.all_whole and whole:
        notes.append("the targets are whole numbers but kept as quantities, because their type is floating-point: "
                     "labels='class' (and overwrite=True) if they are classes")
    if rule.kind == "class" and rule.lowest and not rule.classes and whole:
        notes.append("class 0 never occurs, the lowest is %d: class numbers start at 0" % rule.lowest)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return notes
