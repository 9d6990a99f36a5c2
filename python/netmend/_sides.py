"""What travels beside the samples: ids, group columns, and what a person should see. Read in step with the loader."""
import itertools
import math

from ._arrays import is_array, to_numpy
from ._batches import is_mapping
from ._errors import RecorderError


def word(value):
    """One value of a group column as a word; a missing one is the empty word."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if is_array(value) and len(value.shape) == 0:
        value = to_numpy(value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # Tables turn whole numbers into floats as soon as one of them is missing; people still mean 3, not 3.0.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Side:
    """An iterable with one value per sample."""

    def __init__(self, name, values):
        self.name, self.given = name, 0
        try:
            self.length = len(values)
        except TypeError:
            self.length = None
        if isinstance(values, (str, bytes)):
            raise RecorderError("one word is not a value for every sample", "the argument %s" % name, "give a list")
        try:
            self.values = iter(values)
        except TypeError:
            raise RecorderError("a %s cannot be iterated over" % type(values).__name__, "the argument %s" % name,
                                "give one value per sample, in the order of the loader")

    def take(self, count, total_so_far):
        """The next values. `total_so_far` counts the loader's samples up to and with these."""
        values = list(itertools.islice(self.values, count))
        self.given += len(values)
        if len(values) < count:
            raise Mismatch(self, total_so_far)
        return values

    def rest(self):
        """How many values there are in all, once the loader has ended."""
        self.given += sum(1 for _ in self.values)
        return self.given

    def refuse(self, samples, at_least=False):
        raise RecorderError("%d values, but the loader gives %s%d samples"
                            % (self.length if self.length is not None else self.given, "at least " if at_least else "", samples),
                            "the argument %s" % self.name, "give exactly one value for each sample, in the loader's order")


class Mismatch(Exception):
    """A side ended before the loader; whoever knows the loader's length turns it into a message."""

    def __init__(self, side, samples):
        super().__init__(side.name)
        self.side, self.samples = side, samples


class Ids(Side):
    def __init__(self, values):
        super().__init__("ids", values)
        self.seen = {}

    def take(self, count, total_so_far):
        words = []
        for value in super().take(count, total_so_far):
            position, name = len(self.seen), word(value)
            if not name:
                raise RecorderError("an id is missing", "ids, position %d" % position, "name every sample, or leave ids out")
            first = self.seen.setdefault(name, position)
            if first != position:
                raise RecorderError("the id '%s' stands for two samples" % name, "ids, positions %d and %d" % (first, position),
                                    "name every sample differently; a name several samples share belongs in groups=")
            words.append(name)
        return words


class Display(Side):
    def __init__(self, values):
        super().__init__("display", values)
        first = list(itertools.islice(self.values, 1))
        self.kind = "text" if first and isinstance(first[0], str) else "image"
        self.values = itertools.chain(first, self.values)

    def take(self, count, total_so_far):
        values = super().take(count, total_so_far)
        for i, value in enumerate(values):
            if isinstance(value, str) != (self.kind == "text"):
                raise RecorderError("a %s among what to display, the first was %s"
                                    % (type(value).__name__, "a text" if self.kind == "text" else "an image"),
                                    "display, position %d" % (total_so_far - count + i), "give only images or only texts")
        return values


def group_columns(groups):
    """Columns by name, from a dict of columns, a table with .columns (pandas), or a list of dicts."""
    if groups is None:
        return {}
    if hasattr(groups, "columns") and hasattr(groups, "__getitem__"):
        names = [str(c) for c in groups.columns]
        columns = {str(c): groups[c] for c in groups.columns}
    elif is_mapping(groups):
        names = [str(c) for c in groups]
        columns = {str(c): groups[c] for c in groups}
    else:
        rows = list(groups)
        if not all(is_mapping(row) for row in rows):
            raise RecorderError("groups are neither columns nor a list of dicts", "the argument groups",
                                "give {'camera': [...]}, a table, or [{'camera': 'A'}, ...]")
        names = list(dict.fromkeys(str(key) for row in rows for key in row))
        rows = [{str(k): v for k, v in row.items()} for row in rows]
        columns = {name: [row.get(name) for row in rows] for name in names}
    if len(columns) != len(names):
        raise RecorderError("a column is named twice among %s" % ", ".join(names), "the argument groups", "name columns differently")
    return {name: Side("groups['%s']" % name, column) for name, column in columns.items()}
