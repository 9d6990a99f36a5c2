"""When a run need not go on: what `netmend watch --stop-when` knows beside NaN."""
import math

BLOCK = 50  # steps whose mean loss is one value
GROWN = 3.0  # times the best value, and above the first one
SAME = 100  # steps with the same loss to the last bit
LOOKS = 5  # looks in a row at a dead layer, or at outputs that are all equal


class StopRules:
    """Fed with losses and looks; `why` is empty until there is a reason to stop."""

    def __init__(self, words):
        self.words = set(words)
        self.why = ""
        self.sum = self.count = 0
        self.first = self.best = math.nan
        self.grown, self.last, self.same, self.dead, self.equal = 0, None, 0, {}, 0

    def needs_losses(self):
        return bool(self.words & {"diverged", "constant"})

    def add(self, loss):
        self.same = self.same + 1 if loss == self.last else 1
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
