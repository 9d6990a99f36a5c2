"""Watches a training run from outside and writes a record of it: `netmend watch -- python train.py`, or
`python -m netmend.watch train.py`, or two lines in the program:

    from netmend.watch import watch
    watch("my-run")          # before the optimiser or the Keras model is made

Imports no framework by itself; changes no result, no random number and no output of the program (docs/training.md).
"""
import atexit
import os
import re
import sys

_recorder = None
_complaints = []


def complain(text):
    """What we could not do goes into the record, never to the program's output."""
    if _recorder is None:
        _complaints.append(text)
    else:
        _recorder.record.say("trouble", what=text)


class Recorder:
    """What the parts for each framework share."""

    def __init__(self, path):
        from ._record import Record
        self.record = Record(path)
        self.silent = self.forked = self.ended = False
        self.at_end, self.at_revival = [], []
        self.failed = ""
        self.stop_when = [one for one in os.environ.get("NETMEND_STOP_WHEN", "").split(",") if one]
        self.probe = os.environ.get("NETMEND_WATCH_PROBE") == "1"

    def fork(self):
        self.silent = self.forked = True  # data loaders and the like: the parent speaks

    def revive(self):
        """A forked process that trains by itself writes a record of its own. Whether this is one."""
        if not self.forked:
            return False
        self.silent = self.forked = self.ended = False
        self.failed, self.at_end = "", []
        self.record.begin()
        from multiprocessing import util
        util.Finalize(None, self.end, exitpriority=0)  # such a process ends without atexit
        for one in self.at_revival:
            one()
        return True

    def end(self):
        if self.silent or self.ended:
            return
        self.ended = True
        for one in self.at_end:
            try:
                one()
            except Exception as error:
                complain("%s: %s" % (type(error).__name__, error))
        if self.record.file is None and not self.record.spoken and not _is_first():
            return  # a helper process that trained nothing
        for text in _complaints:
            self.record.say("trouble", what=text)
        self.record.say("end", now=True, error=self.failed)


def _look_after(recorder):
    """The end of the run, and how it came."""
    previous = sys.excepthook

    def failed_again(kind, value, trace):
        try:
            failed_quietly(kind, value, trace)
        except Exception:
            pass
        previous(kind, value, trace)

    def failed_quietly(kind, value, trace):
        recorder.failed = "%s: %s" % (kind.__name__, str(value)[:300])
        line, at = "", trace
        while at is not None:
            name = at.tb_frame.f_code.co_filename
            if "-packages" + os.sep not in name:
                line = "%s:%d" % (os.path.basename(name), at.tb_lineno)
            at = at.tb_next
        recorder.record.say("failed", now=True, error=recorder.failed, source=line)

    sys.excepthook = failed_again

    atexit.register(recorder.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.fork)


def _is_first():
    """Whether this is the process that `netmend watch` started, or that watches itself."""
    parent = os.environ.get("NETMEND_WATCH_PARENT", "")
    return not parent or parent == str(os.getppid())


def watch(out="netmend-run"):
    """Starts to record this process into the folder `out`. A second call changes nothing."""
    global _recorder
    other = sys.modules.get("_netmend_watch")
    if other is not None and other.__dict__ is not globals():
        return other.watch(out)  # `netmend watch` is at work already
    if _recorder is not None:
        return _recorder
    from ._imports import after_import
    _recorder = Recorder(os.path.join(out, "record.jsonl"))
    _look_after(_recorder)

    def with_torch(module):
        from . import _torch
        _torch.patch(module, _recorder)

    def with_keras(module):
        from . import _keras
        _keras.patch(module, _recorder)

    modules = {"torch": with_torch}
    for name in ("keras.engine.training", "keras.src.engine.training", "tf_keras.src.engine.training",
                 "keras.src.models.model"):
        modules[name] = with_keras
    after_import(modules)
    return _recorder


_NAMES = {"lr": "rate", "learning_rate": "rate", "optimizer": "optimiser", "batch_size": "batch", "initializer": "init",
          "kernel_initializer": "init", "weight_decay": "decay", "l2": "decay", "clip_value": "clip", "clipvalue": "clip",
          "batch_normalization": "batch_norm", "standardize": "scale_inputs", "normalize": "scale_inputs"}


def refuse(what, hint):
    """Ends the program as netmend does: a sentence, what to try, status 2. Names within it are not ours."""
    text = "error: %s\n" % re.sub("[\x00-\x1f\x7f-\x9f\u200e-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda hit: ascii(hit.group())[1:-1], what)
    sys.stderr.write(text + "  %s\n" % hint)
    raise SystemExit(2)


def _given_settings():
    """What NETMEND_SETTINGS says. Who set it wants other values: a program that went on without them would deceive him."""
    import json
    text = os.environ.get("NETMEND_SETTINGS")
    if not text:
        return {}
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)
        wrong = "" if isinstance(found, dict) else "it is no JSON object"
    except RecursionError:
        wrong = "it is nested too deeply"
    except ValueError as error:
        wrong = "it is no JSON: %s" % error
    if wrong:
        refuse("the settings in NETMEND_SETTINGS cannot be read: %s" % wrong, """NETMEND_SETTINGS='{"lr": 0.01}' sets one; unset it for those of the program.""")
    return found


def settings(choices=None, **values):
    """Settings of a training that may be changed, with their values: `s = settings(rate=0.1, optimizer="sgd")`, then
    `s["rate"]`. `netmend heal` runs the program again with other values; otherwise they keep the values given here.
    `choices={"activation": ["relu", "tanh"]}` says which values a setting takes."""
    given, others = dict(values), _given_settings()
    for name in values:
        usual = _NAMES.get(name.lower(), name.lower())
        if name in others or usual in others:
            given[name] = others[name] if name in others else others[usual]
    other = sys.modules.get("_netmend_watch")
    recorder = _recorder if _recorder is not None else getattr(other, "_recorder", None)
    if recorder is not None and not recorder.silent:
        recorder.record.say("settings", values=given, choices=choices or {})
    return given


def record_metrics(**metrics):
    """Metrics of an epoch, by name: `record_metrics(val_loss=0.3, val_accuracy=0.9)`."""
    recorder = watch()
    recorder.record.say("epoch", metrics=metrics)


def keras_callback(out="netmend-run"):
    """For `model.fit(callbacks=[keras_callback()])`: starts to record; fit itself is watched from here on."""
    watch(out)
    from . import _keras
    return _keras.no_callback()


def lightning_callback(out="netmend-run"):
    """For `Trainer(callbacks=[lightning_callback()])`: writes the metrics of every epoch beside what is watched."""
    watch(out)
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

    class Metrics(Callback):
        def on_validation_epoch_end(self, trainer, module):
            if not trainer.sanity_checking:
                record_metrics(**{name: float(value) for name, value in trainer.callback_metrics.items()})

    return Metrics()


def hugging_face_callback(out="netmend-run"):
    """For `Trainer(callbacks=[hugging_face_callback()])`: writes what the trainer logs beside what is watched."""
    watch(out)
    from transformers import TrainerCallback

    class Metrics(TrainerCallback):
        def on_log(self, arguments, state, control, logs=None, **more):
            record_metrics(**{name: value for name, value in (logs or {}).items() if isinstance(value, (int, float))})

    return Metrics()
