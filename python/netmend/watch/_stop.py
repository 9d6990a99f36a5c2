"""When a run need not go on: what `netmend watch --stop-when` knows beside NaN."""
import math

BLOCK = 50  # steps whose mean loss is one value
GROWN = 3.0  # times the best value, and above the first one
SAME = 100  # steps with the same loss to the last bit
LOOKS = 5  # looks in a row at a dead layer, or at outputs that are all equal
EPOCHS = 5  # with the same loss to six digits: what Keras hands out is a mean, and not the same to the last bit


class Stopped(SystemExit):
    """Ends the program with status 1. No `except Exception` of the program's stands in the way."""


def stop_program(record, why, step, sound_file):
    """`sound_file`: the last one that was written while all was finite, with its step; None where there is none."""
    record.say("stopped", now=True, why=why, step=step, checkpoint=sound_file["file"] if sound_file else "",
               checkpoint_step=sound_file["step"] if sound_file else None)
    record.flush()
    raise Stopped(1)


class StopRules:
    """Fed with losses and looks; `why` is empty until there is a reason to stop."""

    def __init__(self, words):
        self.words = set(words)
        self.why = ""
        self.sum = self.count = 0
        self.first = self.best = math.nan
        self.grown, self.last, self.same, self.dead, self.equal = 0, None, 0, {}, 0
        self.epochs = []

    def needs_looks(self):
        return bool(self.words & {"dead", "constant"})

    def needs_losses(self):
        return bool(self.words & {"diverged", "constant"})

    def add(self, loss, exact=True):
        """`exact`: the loss is known to the last bit."""
        self.same = self.same + 1 if exact and loss == self.last else 1
        self.last = loss
        if "constant" in self.words and self.same >= SAME:
            self.why = self.why or "the loss was %.6g in %d steps in a row" % (loss, SAME)
        if not math.isfinite(loss):
            return
        self.sum, self.count = self.sum + loss, self.count + 1
        if self.count < BLOCK:
            return
        mean, self.sum, self.count = self.sum / BLOCK, 0.0, 0
        if self.first != self.first:
            self.first = self.best = mean
        self.best = min(self.best, mean)
        self.grown = self.grown + 1 if self.best > 0 and mean > GROWN * self.best and mean > self.first else 0
        if "diverged" in self.words and self.grown >= 2:
            self.why = self.why or "the loss grew to %.4g (mean of %d steps), from %.4g at its best" % (mean, BLOCK, self.best)

    def epoch(self, loss):
        """The mean loss of an epoch, where single losses are not known to the last bit."""
        self.epochs = (self.epochs + ["%.6g" % loss])[-EPOCHS:]
        if "constant" in self.words and self.epochs == [self.epochs[0]] * EPOCHS:
            self.why = self.why or "the loss was %s in %d epochs in a row" % (self.epochs[0], EPOCHS)

    def look(self, layers, equal):
        """`layers`: rows of a look by name; `equal`: all outputs of the batch were the same."""
        for name, row in layers.items():
            if "d" in row:
                self.dead[name] = self.dead.get(name, 0) + 1 if row["d"] >= 1.0 else 0
                if "dead" in self.words and self.dead[name] >= LOOKS:
                    self.why = self.why or "every unit of %s gives 0 for every input" % name
        self.equal = self.equal + 1 if equal else 0
        if "constant" in self.words and self.equal >= LOOKS:
            self.why = self.why or "all outputs of a batch are the same"
