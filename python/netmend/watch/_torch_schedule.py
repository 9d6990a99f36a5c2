"""Learning-rate schedules of PyTorch: what was made, for how long it was made, and how often it was stepped."""
import functools
import math
import weakref

from ._record import user_source

# Attributes that say how long a schedule is, or when it acts first, in calls of step().
LENGTHS = ("total_steps", "T_max", "T_0", "total_iters", "milestones", "step_size")


def length_of(schedule):
    """(attribute, steps), or ("", 0)."""
    for name in LENGTHS:
        value = getattr(schedule, name, None)
        if name == "milestones" and value:
            value = max(value)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return name, value
    return "", 0


class Schedules:
    def __init__(self, watch):
        self.watch, self.rows, self.depth = watch, {}, 0

    def patch(self, torch):
        module = torch.optim.lr_scheduler
        for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"):
            kind = module.__dict__.get(name)
            if kind is not None and "__init__" in kind.__dict__ and not getattr(kind.__init__, "_netmend", False):
                kind.__init__ = self.wrap(kind.__init__, self.made)

    def wrap(self, original, then):
        """The outermost call counts: a schedule that steps others, or itself while it is made, was stepped once or not at all."""
        @functools.wraps(original)
        def call(schedule, *arguments, **named):
            self.depth += 1
            try:
                return original(schedule, *arguments, **named)
            finally:
                self.depth -= 1
                if not self.depth and not self.watch.recorder.silent:
                    then(schedule)

        call._netmend = True
        return call

    def made(self, schedule):
        kind = type(schedule)
        try:
            for one in getattr(schedule, "_schedulers", []):
                if id(one) in self.rows:
                    self.rows[id(one)]["part"] = True
            if id(schedule) in self.rows and self.rows[id(schedule)]["ref"]() is schedule:
                return
            optimizer = getattr(schedule, "optimizer", None) or getattr(schedule, "_optimizer", None)
            self.rows[id(schedule)] = {"ref": weakref.ref(schedule), "type": kind.__name__, "source": user_source(3), "steps": 0, "part": False, "optimizer": id(optimizer),
                                       "begin": weakref.ref(optimizer) if optimizer is not None else None, "first": rate_of(optimizer), "last": math.nan,
                                       "planned": length_of(schedule), "low": 0, "at": 0}
            if not getattr(kind.step, "_netmend", False):
                kind.step = self.wrap(kind.step, self.stepped)
        except Exception:  # a schedule of an unusual kind is left alone
            self.rows.pop(id(schedule), None)

    def stepped(self, schedule):
        row = self.rows.get(id(schedule))
        if row is None:
            return
        if not row["steps"]:
            row["planned"] = length_of(schedule)  # some are given it after their base class was made
        row["steps"] += 1
        optimizer = row["begin"]() if row["begin"] is not None else None
        rate = row["last"] = rate_of(optimizer)
        if rate > row["first"]:
            row["first"] = rate  # a warm-up: what it falls from
        elif not row["low"] and rate < 0.01 * row["first"]:
            row["low"] = self.watch.last_step()

    def say(self):
        watch = self.watch
        passes = max([one["passes"] for one in watch.loaders.values()] or [0])
        for row in self.rows.values():
            info = watch.optimizers.get(row["optimizer"])
            name, planned = row["planned"]
            watch.record.say("schedule", type=row["type"], source=row["source"], part=row["part"], steps=row["steps"], planned=planned, by=name,
                             optimizer=None if info is None else info.index, optimizer_steps=0 if info is None else info.steps,
                             all_steps=watch.last_step(), passes=passes, first_rate=row["first"], last_rate=row["last"], low_at=row["low"])


def rate_of(optimizer):
    try:
        return float(optimizer.param_groups[0]["lr"])
    except Exception:
        return math.nan
