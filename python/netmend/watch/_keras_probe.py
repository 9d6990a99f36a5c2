"""`netmend watch --probe` in Keras: whether one batch of 16 inputs can be learnt by heart, tried after the program has ended.

Only start weights and 16 rows are kept while it runs. At the end the network itself gets them back, so that nothing has to be drawn at
random while the program could notice.
"""
import math
import time

from . import complain
from ._torch_probe import ITERATIONS, ROWS, SECONDS, rank_test

MOST = 20_000_000  # weights


class Probe:
    def __init__(self, watch):
        self.watch, self.model = watch, None

    def before_fit(self, model, entry, x, y):
        """The first network that is fitted to arrays; rows from everywhere in them, since they may be sorted."""
        import numpy
        if self.model is not None or not getattr(model, "built", False) or x is None or y is None or len(x) < 2 or len(x) != len(y):
            return
        if sum(int(numpy.prod(one.shape)) for one in model.weights) > MOST or getattr(model, "stateful", False):
            return
        rows = numpy.unique(numpy.linspace(0, len(x) - 1, ROWS).astype(int))
        self.start, self.x, self.y = model.get_weights(), x[rows].copy(), y[rows].copy()
        self.model, self.entry = model, entry

    def run(self):
        watch = self.watch
        if self.model is None:
            watch.record.say("trouble", what="the probe saw no call of fit with arrays and a network whose inputs' shape was known by then")
            return
        watch.nested = True
        watch.recorder.silent, silent = True, watch.recorder.silent
        try:
            found = self.one_batch()
        except Exception as error:
            found = None
            complain("probe one_batch: %s: %s" % (type(error).__name__, str(error)[:200]))
        finally:
            watch.nested, watch.recorder.silent = False, silent
        if found:
            watch.record.say("probe", **found)

    def one_batch(self):
        losses, error = self.train(self.x, SECONDS, ITERATIONS)
        told = len(losses) >= 20 and bool((self.y != self.y[:1]).any())  # equal targets need no inputs
        others, _ = self.train(self.x * 0, SECONDS / 2, min(len(losses), 300)) if told else ([], 0)
        count = min(len(losses), len(others))
        last = min(100, count)
        return {"probe": "one-batch", "rows": len(self.x), "iterations": len(losses), "first_loss": losses[0], "last_loss": losses[-1], "error": error,
                "numbers": self.kind() == "numbers", "blind_loss": others[-1] if others else None,
                "blind_p": rank_test(losses[count - last:count], others[-last:]) if last >= 10 else None}

    def train(self, x, seconds, iterations):
        """Losses of every iteration and the error at the end, with the program's loss and its optimiser as it started, without dropout."""
        model, begin, losses, error = self.model, time.perf_counter(), [], 1.0
        model.set_weights(self.start)
        for layer in self.watch.layers_of(model):
            for one in (layer, getattr(layer, "cell", None)):
                for name in ("rate", "dropout", "recurrent_dropout"):
                    if isinstance(getattr(one, name, None), float):
                        setattr(one, name, 0.0)
        kind = type(model.optimizer)
        model.compile(optimizer=kind.from_config(model.optimizer.get_config()), loss=self.entry["given_loss"])
        for step in range(iterations):
            value = model.train_on_batch(x, self.y)
            losses.append(float(value[0] if isinstance(value, (list, tuple)) else value))
            if not math.isfinite(losses[-1]) or time.perf_counter() - begin > seconds:
                break
            if step >= 100 and losses[-1] < 1e-4:
                break
        if all(map(math.isfinite, losses)):
            error = self.error(self.watch.value(model(x, training=True)))
        return losses, error

    def kind(self):
        loss = self.entry["loss"]
        if loss.startswith("sparse_categorical"):
            return "labels"
        return "classes" if loss.startswith("categorical") else ("binary" if loss.startswith("binary") else "numbers")

    def error(self, out):
        """Share of wrong classes; of numbers the share of their variance that is left."""
        kind, y = self.kind(), self.y
        if kind == "labels":
            return 1.0 - float((out.argmax(-1) == y.reshape(out.shape[:-1])).mean())
        if kind == "classes":
            return 1.0 - float((out.argmax(-1) == y.argmax(-1)).mean()) if out.shape == y.shape else math.nan
        y = y.reshape(out.shape) if y.size == out.size else y
        if kind == "binary":
            return float(((out > (0.0 if self.entry["from_logits"] else 0.5)) != (y > 0.5)).mean())
        variance = float(y.astype("f8").var())
        return float(((out - y) ** 2).mean()) / variance if variance > 0 else math.nan
