"""Keras 2 (2.6 to 2.15, with TensorFlow), tf_keras and Keras 3, watched from outside: compile, fit, evaluate.

`fit` runs a compiled step: what happens inside is not seen. Instead a few rows of the data are sent through the network
between epochs, with the functions as they are in use (inference mode, so that nothing is drawn at random), and gradients
are taken there.
"""
import contextlib
import functools
import math
import sys
import time
import warnings

from . import complain
from ._datasets import as_array, class_facts, data_facts, overlap
from ._record import Budget, Series, number, user_source
from ._stop import Stopped, StopRules, stop_program

PROBE = 64  # rows


def guarded(function):
    @functools.wraps(function)
    def call(self, *arguments, **named):
        try:
            return function(self, *arguments, **named)
        except Exception as error:
            if self.mistakes < 20:
                self.mistakes += 1
                complain("%s: %s: %s" % (function.__name__, type(error).__name__, str(error)[:200]))

    return call


def short_name(value):
    """The name of a loss, a metric, an activation or an initialiser, however it was given."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None)
    if name and not isinstance(value, type):
        return str(name)
    own = getattr(value, "name", None)
    return str(own) if isinstance(own, str) and own else type(value).__name__


def metric_name(metric):
    """The class Accuracy, which compares for equality, goes by its class; the word "accuracy" means another in compile."""
    return "Accuracy" if type(metric).__name__ == "Accuracy" else short_name(metric)


class KerasWatch:
    def __init__(self, module, recorder):
        self.module, self.recorder, self.record = module, recorder, recorder.record
        self.package = module.__name__.split(".")[0]
        self.three = module.__name__ == "keras.src.models.model"
        self.mistakes, self.models, self.fits, self.weights = 0, {}, 0, {}
        self.nested = False
        self.backend, self.tape = "tensorflow", None
        self.stop = StopRules(recorder.stop_when) if recorder.stop_when else None
        self.sound_file, self.bad = None, False  # the last file written while all was finite; whether a loss was not
        self.experiment = None

    def patch(self):
        watch, Model = self, self.module.Model
        library = sys.modules.get(self.package)
        backend = ""
        if self.three:
            try:
                backend = sys.modules["keras.src.backend.config"].backend()
            except Exception:
                backend = ""
        self.backend = backend or "tensorflow"
        tensorflow = sys.modules.get("tensorflow")
        self.record.say("framework", held=True, name="keras", version=str(getattr(library, "__version__", "")), backend=backend,
                        tensorflow=str(getattr(tensorflow, "__version__", "")))

        def wrap(name, before):
            original = getattr(Model, name)

            @functools.wraps(original)
            def call(model, *arguments, **named):
                if watch.recorder.silent or watch.nested:
                    return original(model, *arguments, **named)
                return before(original, model, arguments, named)

            setattr(Model, name, call)

        wrap("compile", self.compile)
        wrap("fit", self.fit)
        for name in ("train_on_batch", "fit_generator"):
            if hasattr(Model, name):
                wrap(name, functools.partial(self.by_hand, name))
        for name in ("save", "save_weights"):
            wrap(name, self.save)
        if self.recorder.probe:
            from ._keras_probe import Probe
            self.experiment = Probe(self)
            self.recorder.at_end.append(self.experiment.run)
        if self.backend == "tensorflow":
            from ._keras_tape import TapeWatch
            self.tape = TapeWatch(self)

    # ---- compile ----

    def compile(self, original, model, arguments, named):
        result = original(model, *arguments, **named)
        self.after_compile(model, arguments, named)
        return result

    @guarded
    def after_compile(self, model, arguments, named):
        names = ("optimizer", "loss", "metrics")
        given = dict(zip(names, arguments), **{key: value for key, value in named.items()})
        loss = given.get("loss")
        kind = [short_name(one) for one in loss] if isinstance(loss, (list, tuple)) else short_name(loss)
        metrics = given.get("metrics") or []
        if not isinstance(metrics, (list, tuple)):
            metrics = [metrics]
        entry = self.entry(model)
        entry.update(loss=kind if isinstance(kind, str) else (kind[0] if kind else ""), given_loss=loss,
                     metrics=[metric_name(one) for one in metrics if not isinstance(one, (list, tuple, dict))],
                     source=user_source(5), from_logits=self.from_logits(loss))

    def from_logits(self, loss):
        for one in (loss, getattr(loss, "fn", None)):
            flag = getattr(one, "from_logits", None)
            if isinstance(flag, bool):
                return flag
        more = getattr(loss, "_fn_kwargs", None)
        return bool(more.get("from_logits", False)) if isinstance(more, dict) else False

    def entry(self, model):
        known = self.models.get(id(model))
        if known is None or known["model"] is not model:
            self.models[id(model)] = known = {"model": model, "index": len(self.models), "loss": "", "metrics": [],
                                              "given_loss": None, "source": "", "from_logits": False, "described": False}
        return known

    # ---- what there is ----

    def layers_of(self, model):
        found = []
        for layer in getattr(model, "layers", []):
            inner = getattr(layer, "layers", None)
            if inner and not hasattr(layer, "cell"):
                found.extend(self.layers_of(layer))
            else:
                found.append(layer)
        return found

    def describe(self, model, entry):
        """As soon as fit is called, so that a program that fails in its first step is known too; again when its weights are there."""
        built = bool(getattr(model, "built", False))
        if entry["described"] and (entry["described"] == "built" or not built):
            return
        entry["described"] = "built" if built else "unbuilt"
        rows = self.rows_of(model)
        self.record.say("model", model=entry["index"], name=type(model).__name__, layers=rows, keras=True,
                        parameters=sum(row["parameters"] for row in rows),
                        trainable=sum(row["parameters"] for row in rows if row["trainable"]))
        self.record.say("graph", model=entry["index"], **keras_graph(rows))
        optimizer = model.optimizer
        rate = self.rate(model)
        settings = {}
        try:
            for key, value in optimizer.get_config().items():
                if isinstance(value, (int, float, str, bool)) or hasattr(value, "item"):
                    settings[key] = value if not hasattr(value, "item") else value.item()
        except Exception:
            pass
        self.record.say("optimizer", optimizer=entry["index"], type=type(optimizer).__name__, lr=rate, settings=settings,
                        source=entry["source"], parameters=sum(row["parameters"] for row in rows if row["trainable"]))

    def rows_of(self, model):
        """The layers as a record has them."""
        rows = []
        for layer in self.layers_of(model)[:2000]:
            weights = [self.value(one) for one in layer.weights]
            row = {"name": layer.name, "type": type(layer).__name__, "role": role_of(layer),
                   "trainable": bool(layer.trainable), "parameters": int(sum(one.size for one in weights))}
            for field, attribute in (("activation", "activation"), ("recurrent_activation", "recurrent_activation")):
                if getattr(layer, attribute, None) is not None:
                    row[field] = short_name(getattr(layer, attribute))
            if getattr(layer, "rate", None) is not None and row["role"] == "dropout":
                row["rate"] = layer.rate
            for field in ("units", "filters", "kernel_size", "strides", "pool_size", "return_sequences", "stateful"):
                if getattr(layer, field, None) is not None:
                    row["units" if field == "filters" else field] = getattr(layer, field)
            if getattr(layer, "kernel_initializer", None) is not None:
                row["initializer"] = type(layer.kernel_initializer).__name__
            regular = getattr(layer, "kernel_regularizer", None)
            if regular is not None:
                row["regularizer"] = {key: float(getattr(regular, key)) for key in ("l1", "l2") if hasattr(regular, key)}
            if weights and weights[0].ndim >= 2:
                first = weights[0].reshape(-1, weights[0].shape[-1])
                row["fan_in"] = int(first.shape[0])
                row["weight_std"], row["weight_mean"] = float(first.std()), float(first.mean())
                row["zero_bias"] = bool(len(weights) > 1 and weights[1].ndim == 1 and not weights[1].any())
                row["same_units"] = bool(first.shape[1] > 1 and (first == first[:, :1]).all())
            rows.append(row)
        return rows

    def rate(self, model):
        for name in ("learning_rate", "lr", "_learning_rate"):
            try:
                return float(self.value(getattr(model.optimizer, name)))
            except Exception:
                continue
        return math.nan

    def value(self, variable):
        import numpy
        if self.backend == "torch":
            tensor = getattr(variable, "value", variable)
            return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else numpy.asarray(tensor)
        if hasattr(variable, "numpy"):
            try:
                return numpy.asarray(variable.numpy())
            except Exception:
                pass
        try:
            return numpy.asarray(variable)
        except Exception:
            return numpy.asarray(self.module.backend.convert_to_numpy(variable))

    # ---- fit ----

    def fit(self, original, model, arguments, named):
        names = ("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle")
        given = dict(zip(names, arguments), **named)
        state = self.before_fit(model, given)
        if state is None:
            return original(model, *arguments, **named)
        callbacks = given.get("callbacks")
        own = [*callbacks] if isinstance(callbacks, (list, tuple)) else ([callbacks] if callbacks is not None else [])
        if type(callbacks).__name__ == "CallbackList":
            return original(model, *arguments, **named)
        own.append(make_callback(self, model, state))
        if len(arguments) > 5:
            arguments = arguments[:5] + (own,) + arguments[6:]
        else:
            named = dict(named, callbacks=own)
        try:
            with self.apart():
                result = original(model, *arguments, **named)
        except Stopped:
            raise
        except BaseException as error:
            self.record.say("fit-failed", now=True, error="%s: %s" % (type(error).__name__, str(error)[:300]))
            raise
        self.after_fit(state)
        return result

    @contextlib.contextmanager
    def apart(self):
        """Inside fit and train_on_batch: a loop of the program's own is elsewhere."""
        if self.tape is not None:
            self.tape.busy += 1
        try:
            yield
        finally:
            if self.tape is not None:
                self.tape.busy -= 1

    def by_hand(self, name, original, model, arguments, named):
        entry = self.entry(model)
        if not entry.get("by_hand"):
            entry["by_hand"] = True
            self.record.say("trouble", what="%s is used: batches are only seen by their loss, data by the first one" % name)
            entry["series"] = Series(self.record, entry["index"])
            self.first_by_hand(model, entry, dict(zip(("x", "y"), arguments), **named))
        with self.apart():
            result = original(model, *arguments, **named)
        try:
            value = result[0] if isinstance(result, (list, tuple)) else result
            value = float(value)
            entry["series"].add(value, math.nan)
            state = {"steps": entry["series"].step, "source": entry["source"], "series": entry["series"], "x": entry["x"], "y": entry["y"]}
            if not math.isfinite(value) and not entry.get("bad"):
                entry["bad"] = True
                self.not_finite(model, state)
            self.feed_stop(state, value, exact=True)
        except Exception:
            pass
        return result

    @guarded
    def first_by_hand(self, model, entry, given):
        entry["x"], entry["y"] = as_array(given.get("x")), as_array(given.get("y"))
        self.describe(model, entry)
        if entry["x"] is not None:
            self.record.say("data", split="train", inputs=data_facts(entry["x"]),
                            targets=class_facts(entry["y"]) if entry["y"] is not None else {})
        self.record.say("fit", fit=0, epochs=0, by_hand=True, optimizer=entry["index"], loss=entry["loss"], metrics=entry["metrics"],
                        from_logits=entry["from_logits"], source=entry["source"])
        self.recorder.at_end.append(entry["series"].write)

    @guarded
    def before_fit(self, model, given):
        self.fits += 1
        entry = self.entry(model)
        x, y = as_array(given.get("x")), as_array(given.get("y"))
        state = {"entry": entry, "x": x, "y": y, "fit": self.fits, "epochs": int(given.get("epochs") or 1), "epoch": 0,
                 "series": Series(self.record, entry["index"]), "budget": Budget(first=(1, 2, 3, 6, 12)), "seen": [],
                 "batch": given.get("batch_size"), "start": time.perf_counter(), "source": user_source(4)}
        if state["fit"] > 1 and entry.get("last"):
            state["epoch"] = 0
        validation = given.get("validation_data")
        split = float(given.get("validation_split") or 0.0)
        fields = {"fit": self.fits, "epochs": state["epochs"], "batch": state["batch"] or (32 if x is not None else None),
                  "shuffle": bool(given.get("shuffle", True)), "validation_split": split, "source": state["source"],
                  "validation": validation is not None or split > 0, "class_weight": bool(given.get("class_weight")),
                  "optimizer": entry["index"], "loss": entry["loss"], "metrics": entry["metrics"],
                  "from_logits": entry["from_logits"], "stateful": bool(getattr(model, "stateful", False)),
                  "version": str(getattr(sys.modules.get(self.package), "__version__", ""))}
        if x is not None:
            fields["rows"] = len(x)
            self.record.say("data", split="train", inputs=data_facts(x),
                            targets=class_facts(y) if y is not None else {}, rows=len(x))
            if split > 0:
                at = int(len(x) * (1 - split))
                common = overlap(x[:at], x[at:])
            elif isinstance(validation, (list, tuple)) and len(validation) >= 2 and as_array(validation[0]) is not None:
                common = overlap(x, as_array(validation[0]))
            else:
                common = None
            if common is not None:
                self.record.say("overlap", **common)
        else:
            kind = type(given.get("x")).__name__
            self.record.say("trouble", what="the data of fit is a %s: its values are not looked at" % kind)
        try:
            self.describe(model, entry)
        except Exception as error:
            complain("describe: %s: %s" % (type(error).__name__, error))
        self.record.say("fit", now=True, **fields)
        if self.experiment is not None:
            self.experiment.before_fit(model, entry, x, y)
        if getattr(model, "built", False):  # before the first step, and outside of what Keras times
            try:
                self.probe(model, state, 0)
            except Exception as error:
                complain("probe: %s: %s" % (type(error).__name__, error))
        return state

    @guarded
    def batch_end(self, model, state, logs):
        state["steps"] = state["entry"]["steps"] = state.get("steps", 0) + 1
        loss = logs.get("loss") if logs else None
        if loss is not None:
            # Keras hands out the running mean of the epoch: the loss of the batch follows from it.
            mean, n = float(loss), state["seen"].append(None) or len(state["seen"])
            previous = state.get("mean", 0.0)
            value = mean * n - previous * (n - 1) if math.isfinite(mean) and math.isfinite(previous) else mean
            state["mean"] = mean
            state["series"].add(value, state.get("rate", math.nan))
            if not math.isfinite(mean) and not state.get("bad"):
                state["bad"] = True
                self.not_finite(model, state)
            self.feed_stop(state, value)

    @guarded
    def epoch_begin(self, model, state):
        self.describe(model, state["entry"])
        state["seen"], state["mean"] = [], 0.0
        state["rate"] = self.rate(model)
        state["epoch_start"] = time.perf_counter()

    @guarded
    def epoch_end(self, model, state, logs):
        state["epoch"] += 1
        state["series"].write()
        metrics = {str(key): float(value) for key, value in (logs or {}).items() if isinstance(value, (int, float)) or hasattr(value, "item")}
        epoch = state["epoch"]
        self.record.say("epoch", epoch=epoch, fit=state["fit"], step=state.get("steps", 0), metrics=metrics, lr=state.get("rate"),
                        seconds=time.perf_counter() - state["epoch_start"])
        if self.stop is not None and "loss" in metrics:
            self.stop.epoch(metrics["loss"])
            self.end_if_stopped(state)
        if epoch == state["epochs"] or state["budget"].due(epoch) or (self.stop is not None and self.stop.needs_looks()):
            start = time.perf_counter()
            self.probe(model, state, epoch)
            state["budget"].spent(time.perf_counter() - start)

    @guarded
    def after_fit(self, state):
        state["series"].write()
        state["entry"]["last"] = True
        self.record.say("summary", now=True, optimizer=state["entry"]["index"], steps=state.get("steps", 0), lr=state.get("rate"),
                        epochs=state["epoch"])

    # ---- a few rows through the network ----

    def probe(self, model, state, epoch):
        x, y = state["x"], state["y"]
        import numpy
        weights = {}
        for layer in self.layers_of(model):
            for one in layer.weights:
                weights[one.name if "/" in one.name else layer.name + "/" + one.name] = (one, self.value(one))
        self.names = {id(variable): name for name, (variable, _) in weights.items()}
        layers, trainable = {}, {id(one) for one in model.trainable_weights}
        for name, (variable, value) in weights.items():
            if value.dtype.kind != "f":
                continue
            row = {"n": int(value.size), "w": float(numpy.linalg.norm(value.astype("f8")))}
            old = self.weights.get((id(model), name))
            if old is not None and old.shape == value.shape:
                row["u"] = float(numpy.linalg.norm((value - old).astype("f8")))
                row["same"] = bool((value == old).all())
            if id(variable) not in trainable:
                row["frozen"] = True
            if value.size <= 20_000_000:
                self.weights[(id(model), name)] = value.copy()
            layers[name] = row
        fields = {}
        if x is not None:
            fields = self.forward(model, state, layers) or {}
        self.record.say("step", optimizer=state["entry"]["index"], step=state.get("steps", 0), epoch=epoch, probe=True,
                        lr=state.get("rate", self.rate(model)), layers=layers, **fields)
        if self.stop is not None and epoch > 0:
            self.stop.look(layers, fields.get("same_outputs", False))
            self.end_if_stopped(state)

    @guarded
    def forward(self, model, state, layers):
        import numpy
        x, y = state["x"], state["y"]
        tf = sys.modules.get("tensorflow")
        rows = x[:PROBE]
        if len(rows) == 0 or getattr(model, "stateful", False) or self.backend not in ("tensorflow", "torch") or (self.backend == "tensorflow" and tf is None):
            return {}
        base = self.layer_class(model)
        frames, original, names = {}, base.__call__, {id(one): one.name for one in self.layers_of(model)}
        watch = self

        def call(layer, *arguments, **named):
            out = original(layer, *arguments, **named)
            if id(layer) in names and (hasattr(out, "numpy") or hasattr(out, "detach")):
                frames[names[id(layer)]] = keras_stats(layer, watch.value(out), arguments, watch)
            return out

        fields, self.nested = {}, True
        base.__call__ = call
        silent, self.recorder.silent = self.recorder.silent, True  # what watches PyTorch is not meant
        warn, warnings.warn = warnings.warn, lambda *arguments, **named: None  # what the program itself causes it will hear
        try:
            if self.backend == "torch":
                fields = self.forward_torch(model, state, layers, rows)
                return fields
            batch = tf.convert_to_tensor(rows.astype("float32") if rows.dtype.kind in "fiub" else rows)
            if y is not None and self.can_differentiate(state):
                with tf.GradientTape() as tape:
                    out = model(batch, training=False)
                    loss = self.loss_of(model, state, y[:len(rows)], out)
                if loss is not None:
                    own = model.trainable_weights
                    for variable, g in zip(own, tape.gradient(loss, own)):
                        name = self.names.get(id(variable), variable.name)
                        row = layers.setdefault(name, {})
                        if g is None:
                            row["none"] = True
                            continue
                        g = numpy.asarray(tf.convert_to_tensor(g)).astype("f8")
                        row["g"], row["gz"] = float(numpy.linalg.norm(g)), float((g == 0).mean())
                    fields["probe_loss"] = float(tf.reduce_mean(loss))
            else:
                out = model(batch, training=False)
            fields.update(output_facts(self.value(out), None if y is None else y[:len(rows)]))
        finally:
            base.__call__ = original
            warnings.warn = warn
            self.nested, self.recorder.silent = False, silent
            for name, row in frames.items():
                layers.setdefault(name, {}).update(row)
        return fields

    def forward_torch(self, model, state, layers, rows):
        torch, y = sys.modules["torch"], state["y"]
        ops = sys.modules[self.package].ops
        batch = ops.convert_to_tensor(rows.astype("float32") if rows.dtype.kind in "fiub" else rows)
        fields = {}
        with torch.enable_grad():
            out = model(batch, training=False)
            if y is not None and self.can_differentiate(state):
                given = state["entry"]["given_loss"]
                given = sys.modules[self.package].losses.get(given) if isinstance(given, str) else given
                target = ops.convert_to_tensor(y[:len(rows)] if state["entry"]["loss"].startswith("sparse") else y[:len(rows)].astype("float32"))
                if target.ndim == 1 and out.ndim == 2 and not state["entry"]["loss"].startswith("sparse"):
                    target = target[:, None]
                loss = given(target, out).mean()
                own = list(model.trainable_weights)
                for variable, g in zip(own, torch.autograd.grad(loss, [one.value for one in own], allow_unused=True)):
                    name = self.names.get(id(variable), variable.path)
                    row = layers.setdefault(name, {})
                    if g is None:
                        row["none"] = True
                        continue
                    row["g"], row["gz"] = float(g.norm()), float((g == 0).float().mean())
                fields["probe_loss"] = float(loss.detach())
        fields.update(output_facts(self.value(out), None if y is None else y[:len(rows)]))
        return fields

    def can_differentiate(self, state):
        return state["entry"]["given_loss"] is not None and state["y"].dtype.kind in "fiub"

    def loss_of(self, model, state, y, out):
        tf = sys.modules["tensorflow"]
        given = state["entry"]["given_loss"]
        if isinstance(given, str):
            library = sys.modules.get(self.package)
            given = library.losses.get(given)
        target = tf.convert_to_tensor(y.astype("float32") if not state["entry"]["loss"].startswith("sparse") else y)
        if target.ndim == 1 and len(out.shape) == 2 and not state["entry"]["loss"].startswith("sparse"):
            target = tf.expand_dims(target, -1)
        return tf.reduce_mean(given(target, out))

    def layer_class(self, model):
        for kind in type(model).__mro__:
            if kind.__name__ in ("Layer",) and "__call__" in kind.__dict__:
                return kind
        for kind in type(model).__mro__[::-1]:
            if "__call__" in kind.__dict__:
                return kind
        raise TypeError("no layer class")

    # ---- NaN and Inf ----

    def not_finite(self, model, state):
        import numpy
        found = {"what": "loss", "step": state.get("steps", 0), "source": state["source"]}
        x, y = state["x"], state["y"]
        bad = [one.name for one in model.weights if not numpy.isfinite(self.value(one)).all()]
        if x is not None and x.dtype.kind == "f" and not numpy.isfinite(x).all():
            found.update(what="input", operation="the data")
        elif y is not None and y.dtype.kind == "f" and not numpy.isfinite(y).all():
            found.update(what="input", operation="the labels")
        elif bad:
            found.update(what="weights", layer=bad[0], operation="the step before")
        self.bad = True
        state["series"].write_ring()
        if self.sound_file:
            found.update(checkpoint=self.sound_file["file"], checkpoint_step=self.sound_file["step"])
        self.record.say("nonfinite", now=True, **found)
        if "nan" in self.recorder.stop_when:
            stop_program(self.record, "loss is NaN or Inf", state.get("steps", 0), self.sound_file)

    # ---- reasons to stop, and the file to go on from ----

    def feed_stop(self, state, loss, exact=False):
        """A batch's loss. `exact`: to the last bit, not worked out from the mean that fit hands out."""
        if self.stop is None or not self.stop.needs_losses():
            return
        if exact or "diverged" in self.stop.words:
            self.stop.add(loss, exact)
        self.end_if_stopped(state)

    def end_if_stopped(self, state):
        if self.stop is not None and self.stop.why:
            why, self.stop = self.stop.why, None
            state["series"].write_ring()
            stop_program(self.record, why, state.get("steps", 0), self.sound_file)

    def save(self, original, model, arguments, named):
        result = original(model, *arguments, **named)
        self.after_save(model, arguments, named)
        return result

    @guarded
    def after_save(self, model, arguments, named):
        import numpy
        file = str(arguments[0] if arguments else named.get("filepath", ""))
        step = self.entry(model).get("steps", 0)
        sound = not self.bad and all(numpy.isfinite(self.value(one)).all() for one in model.weights)
        if sound:
            self.sound_file = {"file": file, "step": step}
        self.record.say("checkpoint", file=file, step=step, finite=sound)


def role_of(layer):
    name = type(layer).__name__
    for role, parts in (("conv", ("Conv",)), ("linear", ("Dense",)), ("norm", ("Normalization",)), ("dropout", ("Dropout",)),
                        ("recurrent", ("LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional")), ("embedding", ("Embedding",)),
                        ("pool", ("Pooling",)), ("activation", ("Activation", "ReLU", "Softmax", "ELU")),
                        ("shape", ("Flatten", "Reshape", "Permute", "RepeatVector", "InputLayer", "TimeDistributed"))):
        if any(part in name for part in parts):
            return role
    return "other"


def keras_graph(rows):
    """Chains of layers without a non-linear function between them; the last function. True for sequences of layers."""
    pairs, previous, last, before, weighted = [], None, "", "", 0
    for row in rows:
        activation = row.get("activation", "")
        if row["role"] == "activation":
            activation = activation or {"ReLU": "relu", "Softmax": "softmax"}.get(row["type"], row["type"].lower())
        if row["role"] in ("linear", "conv"):
            weighted += 1
            if previous is not None:
                pairs.append([previous["name"], row["name"]])
            previous = row if activation in ("", "linear") else None
        elif row["role"] in ("activation", "recurrent", "embedding") or row["role"] == "pool" and "Max" in row["type"]:
            previous = None
        if row["role"] in ("linear", "conv", "activation", "recurrent"):
            before, last = last, activation or "linear"
    return {"last": last, "before_last": before, "weighted": weighted, "pairs": pairs[:8], "pair_count": len(pairs)}


def keras_stats(layer, out, arguments, watch):
    import numpy
    if out.dtype.kind != "f" or out.size == 0:
        return {}
    absolute = numpy.abs(out)
    row = {"a": float(absolute.mean()), "m": float(absolute.max()), "s": float(out.std())}
    kind = short_name(getattr(layer, "activation", None)) or {"ReLU": "relu"}.get(type(layer).__name__, "")
    if out.ndim >= 2 and len(out) > 1:
        units = out.reshape(-1, out.shape[-1])
        row["same_rows"] = bool((out == out[:1]).all())
        if kind == "relu":
            row["act"], row["z"], row["d"] = kind, float((out == 0).mean()), float((units == 0).all(0).mean())
        elif kind == "tanh":
            row["act"], row["sat"] = kind, float((absolute > 0.995).mean())
        elif kind == "sigmoid":
            row["act"], row["sat"] = kind, float(((out < 0.0025) | (out > 0.9975)).mean())
    return row


def output_facts(out, y):
    import numpy
    if out.dtype.kind != "f" or out.size == 0:
        return {}
    row = {"output_shape": list(out.shape), "output_min": float(out.min()), "output_max": float(out.max()),
           "output_std": float(out.std()), "same_outputs": bool(len(out) > 1 and (out == out[:1]).all()),
           "near_outputs": bool(len(out) > 1 and float((out.max(0) - out.min(0)).max()) < 1e-4)}
    if out.ndim == 2 and out.shape[1] > 1:
        row["rows_sum_to_one"] = bool((out >= 0).all() and (numpy.abs(out.sum(1) - 1) < 1e-3).all())
        row["predicted_classes"] = int(len(numpy.unique(out.argmax(1))))
    return row


def make_callback(watch, model, state):
    # The class of callbacks that belongs to this Keras.
    library = sys.modules[watch.package]
    Callback = library.callbacks.Callback

    class Watching(Callback):
        def on_epoch_begin(self, epoch, logs=None):
            watch.epoch_begin(model, state)

        def on_train_batch_end(self, batch, logs=None):
            watch.batch_end(model, state, logs)

        def on_epoch_end(self, epoch, logs=None):
            watch.epoch_end(model, state, logs)

    return Watching()


def no_callback():
    library = sys.modules.get("keras") or sys.modules.get("tf_keras")
    return library.callbacks.Callback()


def patch(module, recorder):
    KerasWatch(module, recorder).patch()
