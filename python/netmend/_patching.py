"""patch_state_dict: writes changes that netmend made to an ONNX file back into the weights they were exported from.

ONNX files forget the names of parameters, transpose matrices and fold batch norms into the layers before them. So
parameters are found by their values: every way in which a stored tensor could have become the one in the file is a
View, and a view is right when it shows the values that stood there before the change.
"""
import re

import numpy as np

from ._edits import load_edits
from ._errors import PatchError
from ._files import printable
from ._views import find_norms, find_slots, views_of

# -- comparing

# Tolerances, tried in order: float32 weights, then weights that went through float16. Folding was computed in float32
# by somebody else, where sums may cancel, so it is also allowed an error that follows the largest value.
_STAGES = (("", 1e-6, 1e-12, 2e-5, 2e-6), (" (within float16)", 1.5e-3, 1e-7, 2e-3, 2e-3))


def _distance(view, values, expected, stage):
    """0 for equal, up to 1 for equal within the tolerance, above 1 for different. Also notes the gap in the view."""
    _, relative, absolute, folded_relative, folded_absolute = stage
    largest = max(view.terms(), float(np.max(np.abs(expected), initial=0.0)))
    if view.norm is not None:
        relative, absolute = folded_relative, largest * folded_absolute + 1e-12
    allowed = np.abs(expected) * relative + absolute
    gap = np.abs(values - expected)
    gap = np.where(np.isnan(values) & np.isnan(expected), 0.0, gap)
    view.gap = max(view.gap, float(np.max(gap, initial=0.0)) / (largest + 1e-12))
    worst = gap / allowed
    return float(np.max(worst)) if worst.size and not np.isnan(worst).any() else (np.inf if worst.size else 0.0)


def _fits(view, target, stage):
    """Whether the view shows the values from before, edit after edit; remembers how well."""
    first, seen = target.edits[0], set()
    view.error, view.gap, later = 0.0, 0.0, False
    for edit in target.edits:
        # Slices side by side are compared one by one; whole tensors are only made for what survives that.
        if edit.axis != first.axis or edit.index in seen:
            later = True
            continue
        seen.add(edit.index)
        view.error = max(view.error, _distance(view, view.part(edit.axis, edit.index), edit.before, stage))
        if view.error > 1:
            return False
    if target.whole is not None:
        view.error = max(view.error, _distance(view, view.whole(), target.whole, stage))
    return view.error <= 1 and (not later or _fits_in_turn(view, target, stage))


def _fits_in_turn(view, target, stage):
    """The same where edits write over one another."""
    whole, written = view.whole(), np.zeros(target.shape, bool)
    for edit in target.edits:
        shown, fresh = whole[edit.place()], ~written[edit.place()]
        # What an earlier edit wrote is known exactly and no longer a matter of tolerance.
        if not np.allclose(np.where(fresh, edit.before, shown), edit.before, rtol=1e-6, atol=1e-12, equal_nan=True):
            return False
        view.error = max(view.error, _distance(view, np.where(fresh, shown, edit.before), edit.before, stage))
        whole[edit.place()] = edit.after
        written[edit.place()] |= np.asarray(edit.after != edit.before)
    return view.error <= 1


def _outcome(target):
    """(changed, values) of the parameter after all edits. Only what really changed is written: all else keeps the
    digits that the export may have lost."""
    changed, values = np.zeros(target.shape, bool), np.zeros(target.shape)
    for edit in target.edits:
        values[edit.place()] = np.where(edit.after != edit.before, edit.after, values[edit.place()])
        changed[edit.place()] |= np.asarray(edit.after != edit.before)
    return changed, values


# -- choosing


def _plain(name):
    """A name from an ONNX file with the dots of a module's: '/layer1/layer1.0/conv1/Conv' -> 'layer1.0.conv1'."""
    words = [w for w in name.split("/") if w]
    if len(words) > 1 and re.fullmatch(r"[A-Z][A-Za-z0-9]*(_\d+)?", words[-1]):
        words.pop()
    joined = []
    for w in words:
        if joined and w.startswith(joined[-1] + "."):
            joined[-1] = w
        else:
            joined.append(w)
    return ".".join(joined)


def _likeness(onnx, own):
    own = own.replace("/", ".")
    if not onnx or not own:
        return 0
    if onnx == own:
        return 2
    return 1 if onnx.endswith("." + own) or own.endswith("." + onnx) else 0


def _best(views, score):
    """The one view with the highest score, if it is above 0 and no other has it."""
    scores = [score(view) for view in views]
    top = max(scores)
    return views[scores.index(top)] if top > 0 and scores.count(top) == 1 else None


def _by_name(views, target):
    parameter = _plain(target.name)
    units = {_plain(re.sub(r"/\d+$", "", edit.unit)) for edit in target.edits}
    return (_best(views, lambda v: max(_likeness(parameter, n) for n in v.slot.names))
            or _best(views, lambda v: max(_likeness(u, layer) for u in units for layer in v.layers())))


def _distinct(views, target, digits):
    """One view for each different outcome, the closest of them first. digits: to how much values are known at all."""
    kept, outcome = [], _outcome(target)
    for view in sorted(views, key=lambda v: v.gap):
        change = view.home(*outcome)  # None if the batch norm stands in the way
        same = [o for o, seen in kept if _same_change(view, change, o, seen, 4 * digits)]
        # The same batch norm with another epsilon: the closer one is right, unless both fit equally well (zeros do).
        if not same and not any(view.key() == o.key() and _clearly_worse(view, o) for o, _ in kept):
            kept.append((view, change))
        for other in same[:1]:
            if view.norm and other.norm and view.norm.prefix != other.norm.prefix and not _clearly_worse(view, other):
                other.norm_unsure = True
    return kept


def _clearly_worse(view, other):
    return view.gap > 2 * other.gap + 1e-7


def _same_change(view, change, other, seen, tolerance):
    """Whether two views of one stored tensor lead to the same values, as far as values are known."""
    if view.slot is not other.slot or change is None or seen is None or not np.array_equal(change[0], seen[0]):
        return False
    largest = max(view.terms(), float(np.max(np.abs(seen[1]), initial=0.0)))
    return np.allclose(change[1], seen[1], rtol=tolerance, atol=1e-12 + largest * tolerance)


class Search:
    """Finds the view of each target. What is not clear by itself waits until its neighbours are placed."""

    def __init__(self, slots, norms):
        self.slots, self.norms = slots, norms
        self.layers = {}  # unit's layer in the ONNX file -> layers of the module it was found in

    def candidates(self, target):
        for stage in _STAGES:
            fitting = [v for v in views_of(target, self.slots, self.norms) if _fits(v, target, stage)]
            if fitting:
                return _distinct(fitting, target, stage[3]), stage[0]
        return [], ""

    def remember(self, target, view):
        for edit in target.edits:
            if "/" in edit.unit:
                self.layers.setdefault(edit.unit.rsplit("/", 1)[0], set()).update(view.marks())

    def choose(self, found, target):
        """(view, change, remark) or None when it stays ambiguous."""
        if len(found) == 1:
            return found[0] + ("",)
        views = [view for view, _ in found]
        view, remark = _by_name(views, target), ", distinguished by its name"
        if view is None:
            known = set().union(*[self.layers.get(e.unit.rsplit("/", 1)[0], set()) for e in target.edits])
            view = _best(views, lambda v: len(known.intersection(v.marks())))
            remark = ", distinguished by the rest of its layer"
        return None if view is None else (view, dict((id(v), c) for v, c in found)[id(view)], remark)


# -- the report


class Placed:
    def __init__(self, edit, target, view, how):
        self.edit, self.unit, self.onnx = edit.number, edit.unit, target.name
        self.name = view.slot.name
        self.axis, self.index = view.place(edit)
        self.how = how
        if len(view.slot.names) > 1:
            self.how += "; also known as " + ", ".join(view.slot.names[1:])

    @property
    def slice(self):
        return "[%s%d]" % (":, " * self.axis, self.index)

    def __repr__(self):
        return printable("%s -> %s%s: %s" % (self.unit or self.onnx, self.name, self.slice, self.how))


class NotPlaced:
    def __init__(self, edit, target, reason):
        self.edit, self.unit, self.onnx, self.reason = edit.number, edit.unit, target.name, reason

    def __repr__(self):
        return printable("%s (%s): %s" % (self.unit or "edit %d" % self.edit, self.onnx, self.reason))


class PatchReport:
    """placed, not_placed: one entry for each edit. applied: whether anything was written."""

    def __init__(self):
        self.placed, self.not_placed, self.applied = [], [], False

    def __str__(self):
        state = "written" if self.applied else "nothing written"
        lines = ["%d of %d changes placed, %s" % (len(self.placed), len(self.placed) + len(self.not_placed), state)]
        lines += ["  placed      %r" % p for p in self.placed]
        lines += ["  not placed  %r" % p for p in self.not_placed]
        return "\n".join(lines)

    __repr__ = __str__


def _reason_nothing_fits(target, search):
    if search.candidates(target.turned_round())[0]:
        return "already there: the weights hold the new values"
    same = [v for v in views_of(target, search.slots, search.norms) if v.norm is None]
    if not same:
        return "no parameter has the shape %s" % list(target.shape)
    first = target.edits[0]
    gap, name = min((float(np.max(np.abs(v.part(first.axis, first.index) - first.before), initial=0.0)), v.slot.name)
                    for v in same)
    return "no parameter holds the values from before; the nearest, %s, is off by up to %.3g" % (name, gap)


def _place_all(targets, search, report):
    """Fills the report and the slots' new values."""
    waiting = []
    for target in targets:
        found, stage = search.candidates(target)
        if not found:
            _refuse(report, target, _reason_nothing_fits(target, search))
        elif len(found) == 1:
            search.remember(target, found[0][0])
            waiting.append((target, found, stage))
        else:
            waiting.append((target, found, stage))
    for target, found, stage in waiting:
        chosen = search.choose(found, target)
        if chosen is None:
            names = sorted({"%s (%s)" % (view.slot.name, view.how()) for view, _ in found})
            told = ", ".join(names[:4]) + (" and %d more" % (len(names) - 4) if len(names) > 4 else "")
            _refuse(report, target, "ambiguous: %s hold the same values" % told)
            continue
        view, change, remark = chosen
        if change is None:
            _refuse(report, target, "batch norm %s scales this channel by 0, so no weight before it can do this"
                    % view.norm.prefix)
        elif view.slot.would_clash(*change):
            _refuse(report, target, "another edit has other values for the same place of %s" % view.slot.name)
        else:
            view.slot.change(*change)
            report.placed += [Placed(edit, target, view, view.how() + stage + remark) for edit in target.edits]
    report.placed.sort(key=lambda p: p.edit)
    report.not_placed.sort(key=lambda p: p.edit)


def _refuse(report, target, reason):
    report.not_placed += [NotPlaced(edit, target, reason) for edit in target.edits]


def _require_finite(slots, where, report):
    """A NaN or Inf in one weight is a network that predicts nothing, and nobody sees it in a file."""
    bad = [slot for slot in slots if slot.new is not None and not np.isfinite(slot.written()).all()]
    if bad:
        raise PatchError("%s would hold NaN or Inf, so nothing was written" % ", ".join(slot.name for slot in bad[:4]),
                         where, "allow_nonfinite=True writes them anyway", report)


def patch_state_dict(module, edits, strict=True, dry_run=False, revert=False, allow_nonfinite=False):
    """Writes the changes of an edits.json into a torch module, or into a dict of names and tensors or arrays, in place.

    edits: the file's name, or what json.load made of it.
    strict: if a change cannot be placed, write nothing at all and raise PatchError (its .report says why). strict=False
        writes the others; if none can be placed, that is still an error.
    dry_run: only look, and return the report.
    revert: undo the changes.
    allow_nonfinite: also write NaN and Inf, which are refused otherwise; numbers too large for the type become Inf.

    Parameters are found by their values: as they are, transposed, or with the batch norm that the export folded into
    them taken out again. Where two fit, the names in the ONNX file or the rest of the same layer decide;
    nothing is guessed. Returns a PatchReport.
    """
    where = "the given edits" if isinstance(edits, dict) else str(edits)
    targets = load_edits(edits)
    if revert:
        targets = [target.turned_round() for target in targets]
    slots = find_slots(module)
    report = PatchReport()
    _place_all(targets, Search(slots, find_norms(slots, module)), report)
    if dry_run:
        return report
    if targets and not report.placed:
        raise PatchError("none of the %d changes fits these weights\n%s" % (len(report.not_placed), report), where,
                         "give the weights that the ONNX file was exported from, before any further training", report)
    if strict and report.not_placed:
        raise PatchError("%d of %d changes could not be placed, so none was written\n%s"
                         % (len(report.not_placed), len(report.placed) + len(report.not_placed), report), where,
                         "strict=False to write the others, or give the weights the ONNX file was exported from",
                         report)
    if not allow_nonfinite:
        _require_finite(slots, where, report)
    for slot in slots:
        if slot.new is not None:
            slot.write()
    report.applied = bool(report.placed)
    return report
