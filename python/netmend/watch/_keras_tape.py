"""Loops that a program writes itself with TensorFlow's GradientTape: `tape.gradient`, `optimizer.apply_gradients`.

What runs eagerly is seen step by step; inside tf.function Python runs only while it is traced, so that there only the number of steps is
known at the end.
"""
import functools
import math
import sys
import time
import weakref

from . import complain
from ._datasets import as_array, class_facts, data_facts
from ._record import Budget, Series, number, user_source
from ._stop import stop_program


class TapeWatch:
    def __init__(self, watch):
        self.watch, self.record, self.recorder = watch, watch.record, watch.recorder
        self.busy, self.mistakes = 0, 0
        self.model, self.given, self.loss, self.target, self.rows = None, None, None, math.nan, {}
        self.patch()
        self.recorder.at_end.append(self.end)

    def patch(self):
        tf = sys.modules.get("tensorflow")
        Model, losses, optimizers = self.watch.module.Model, None, set()
        for name, module in list(sys.modules.items()):
            if module is None or name.split(".")[0] != self.watch.package:
                continue
            if name.endswith((".losses.loss", ".src.losses", ".losses")) and losses is None:
                losses = getattr(module, "Loss", None)
            for kind in ("BaseOptimizer", "_BaseOptimizer", "OptimizerV2"):
                if kind in getattr(module, "__dict__", {}):
                    optimizers.add(module.__dict__[kind])
        self.tf = tf
        self.wrap(Model, "__call__", self.called)
        if losses is not None:
            self.wrap(losses, "__call__", self.judged)
        for kind in optimizers:
            if "apply_gradients" in kind.__dict__:
                self.wrap(kind, "apply_gradients", None, self.applied)

    def tape_patched(self):
        """TensorFlow is loaded only when it is used: its tape is wrapped with the first step that is seen."""
        tf = self.tf = sys.modules.get("tensorflow")
        tape = getattr(tf, "GradientTape", None)
        if tape is not None and not getattr(tape.gradient, "_netmend", False):
            self.wrap(tape, "gradient", self.differentiated)

    def wrap(self, kind, name, after, around=None):
        original, watch = getattr(kind, name), self

        @functools.wraps(original)
        def call(one, *arguments, **named):
            if watch.busy or watch.watch.nested or watch.recorder.silent:
                return original(one, *arguments, **named)
            if around is not None:
                return around(original, one, arguments, named)
            watch.busy += 1  # models inside models, losses inside losses
            try:
                out = original(one, *arguments, **named)
            finally:
                watch.busy -= 1
            watch.quietly(after, one, arguments, named, out)
            return out

        call._netmend = True
        setattr(kind, name, call)

    def quietly(self, what, *arguments):
        try:
            return what(*arguments)
        except Exception as error:
            if self.mistakes < 20:
                self.mistakes += 1
                complain("%s: %s: %s" % (what.__name__, type(error).__name__, str(error)[:200]))

    # ---- what is seen ----

    def called(self, model, arguments, named, out):
        self.tape_patched()
        if named.get("training") is False or not arguments:
            return
        self.model, self.given = weakref.ref(model), arguments[0]

    def judged(self, loss, arguments, named, out):
        target = arguments[0] if arguments else named.get("y_true")
        self.loss = (loss, target)

    def differentiated(self, tape, arguments, named, out):
        target = arguments[0] if arguments else named.get("target")
        self.target = self.number(target)

    def number(self, value):
        if hasattr(value, "numpy") and getattr(value, "shape", None) is not None:
            try:
                return float(value.numpy().mean())
            except Exception:
                return math.nan
        return math.nan

    def applied(self, original, optimizer, arguments, named):
        pairs = arguments[0] if arguments else named.get("grads_and_vars")
        if pairs is not None and not isinstance(pairs, (list, tuple)):  # zip: it can be read once
            pairs = list(pairs)
            if arguments:
                arguments = (pairs,) + arguments[1:]
            else:
                named = dict(named, grads_and_vars=pairs)
        row = self.quietly(self.before_step, optimizer, pairs)
        self.busy += 1
        try:
            out = original(optimizer, *arguments, **named)
        finally:
            self.busy -= 1
        if row is not None:
            self.quietly(self.after_step, row, pairs)
        return out

    def before_step(self, optimizer, pairs):
        row = self.rows.get(id(optimizer))
        if row is None:
            with self.tf.init_scope():  # outside of a function that is traced
                row = self.rows[id(optimizer)] = self.new(optimizer)
        row["eager"] = bool(pairs) and all(one is None or hasattr(one, "numpy") for one, _ in pairs) and self.tf.executing_eagerly()
        if not row["eager"]:
            row["traced"] = True
            return None
        row["steps"] += 1
        row["look"] = row["budget"].due(row["steps"])
        if row["look"]:
            row["clock"] = time.perf_counter()
            row["old"] = [self.watch.value(variable).copy() for _, variable in pairs]
        return row

    def new(self, optimizer):
        watch = self.watch
        model = self.model() if self.model is not None else None
        row = {"steps": 0, "index": len(self.rows), "series": Series(self.record, len(self.rows)), "budget": Budget(), "traced": False, "look": False, "bad": False,
               "optimizer": weakref.ref(optimizer), "source": user_source(5)}
        rate = watch.rate(type("Of", (), {"optimizer": optimizer}))
        self.record.say("optimizer", optimizer=row["index"], type=type(optimizer).__name__, lr=rate, settings={}, source=row["source"])
        if row["index"] == 0:
            self.describe(model, row)
        return row

    def describe(self, model, row):
        """Model, data of the first batch, and the loss, as fit would be told them."""
        from ._keras import keras_graph, short_name
        if model is not None:
            rows = self.watch.rows_of(model)
            self.record.say("model", model=0, name=type(model).__name__, layers=rows, keras=True, parameters=sum(one["parameters"] for one in rows),
                            trainable=sum(one["parameters"] for one in rows if one["trainable"]))
            self.record.say("graph", model=0, **keras_graph(rows))
        x, y = as_array(self.given), as_array(self.loss[1]) if self.loss else None
        if x is not None:
            self.record.say("data", split="train", inputs=data_facts(x), targets=class_facts(y) if y is not None else {})
        loss = self.loss[0] if self.loss else None
        name = type(loss).__name__ if loss is not None else ""
        usual = "".join("_" + one.lower() if one.isupper() else one for one in name).lstrip("_")
        self.record.say("fit", fit=0, epochs=0, by_hand=True, optimizer=0, loss=usual or short_name(loss), metrics=[], from_logits=self.watch.from_logits(loss), source=row["source"])

    def after_step(self, row, pairs):
        import numpy
        optimizer, loss = row["optimizer"](), self.target
        rate = self.watch.rate(type("Of", (), {"optimizer": optimizer}))
        row["series"].add(loss, rate)
        if not math.isfinite(loss) and loss == loss or (loss != loss and row["steps"] > 1 and not row["bad"] and self.seen_loss(row)):
            self.not_finite(row)
        if row["index"] == 0 and math.isfinite(loss):
            self.watch.feed_stop(self.state_of(row), loss, exact=True)
        if not row["look"]:
            return
        layers = {}
        for (g, variable), old in zip(pairs, row["old"]):
            value = self.watch.value(variable)
            one = {"n": int(value.size), "w": float(numpy.linalg.norm(value.astype("f8"))), "u": float(numpy.linalg.norm((value - old).astype("f8"))),
                   "same": bool((value == old).all())}
            if g is None:
                one["none"] = True
            else:
                gradient = numpy.asarray(self.tf.convert_to_tensor(g)).astype("f8")
                one["g"], one["gz"] = number(float(numpy.linalg.norm(gradient))), float((gradient == 0).mean())
            layers[getattr(variable, "path", variable.name)] = one
        self.record.say("step", optimizer=row["index"], step=row["steps"], loss=loss, lr=rate, layers=layers)
        row["budget"].spent(time.perf_counter() - row["clock"])

    def seen_loss(self, row):
        return any(one == one for _, one, _ in row["series"].ring)

    def not_finite(self, row):
        if row["bad"]:
            return
        row["bad"] = True
        row["series"].write_ring()
        self.watch.bad = True
        self.record.say("nonfinite", now=True, what="loss", step=row["steps"], source=row["source"])
        if "nan" in self.recorder.stop_when:
            stop_program(self.record, "loss is NaN or Inf", row["steps"], self.watch.sound_file)

    def state_of(self, row):
        return {"steps": row["steps"], "series": row["series"]}

    def end(self):
        for row in self.rows.values():
            row["series"].write()
            optimizer = row["optimizer"]()
            steps = row["steps"]
            if row["traced"]:
                try:
                    steps = max(steps, int(self.watch.value(optimizer.iterations)))
                except Exception:
                    pass
                self.record.say("trouble", what="the training loop runs inside tf.function: its losses and gradients are not seen")
            self.record.say("summary", optimizer=row["index"], steps=steps)
