"""PyTorch 1.13 and newer, watched from outside: optimisers, modules, losses, data loaders.

Most steps cost about 10 microseconds: a wrapper around backward, step and the outermost module. Some steps are looked at
closely (Budget); what that needs is only in place for those. Nothing here draws a random number, and whatever runs the
network once more runs a copy of it, with the generators put back afterwards.
"""
import contextlib
import copy
import functools
import io
import math
import os
import sys
import threading
import time
import warnings
import weakref

from . import complain
from ._record import Budget, Series, number, user_source
from ._stop import StopRules, stop_program
from ._torch_probe import Probe
from ._torch_schedule import Schedules
from ._torch_stats import (activation_stats, describe_model, finite, layer_role, loss_facts, MUTED, row_keys,
                           tensor_range, tensors_in, Trace)

LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
          "smooth_l1_loss", "huber_loss", "kl_div")
MOST_CLONED = 64 * 1024 * 1024  # elements of parameters that are kept to see how a step changes them


def guarded(function):
    """A program never fails because it is watched: our own mistakes go into the record."""

    @functools.wraps(function)
    def call(self, *arguments, **named):
        try:
            return function(self, *arguments, **named)
        except Exception as error:
            if self.mistakes < 20:
                self.mistakes += 1
                complain("%s: %s: %s" % (function.__name__, type(error).__name__, str(error)[:200]))

    return call


@contextlib.contextmanager
def warnings_of_caller():
    """A warning that names the line of the caller means the program's, not the one of our wrapper."""
    warn = warnings.warn

    def further(message, category=None, stacklevel=1, *arguments, **named):
        warn(message, category, stacklevel + 2, *arguments, **named)

    warnings.warn = further
    try:
        yield
    finally:
        warnings.warn = warn


class Watched:
    """An optimiser and what is known of it."""

    def __init__(self, watch, optimizer, index):
        self.index, self.ref = index, weakref.ref(optimizer)
        self.steps, self.look, self.cloned, self.kept = 0, True, None, None
        self.series, self.budget = Series(watch.recorder.record, index), Budget()
        self.dirty = self.accumulated = False
        self.before, self.backwards, self.seen_gradient = None, 0, False
        self.facts, self.zero_gradient, self.no_gradient, self.lost = {}, {}, {}, {}
        self.cleared = 0  # steps before whose first backward pass the gradients were seen to be 0
        self.loss, self.time, self.described = math.nan, time.perf_counter(), False
        self.names, self.waiting, self.drain_at = {}, [], 0.0
        self.largest = None  # the largest gradient of all looks: value, step, parameter
        self.canary = next((p for p in self.parameters() if p.requires_grad and p.numel() <= 4096 and not p.is_cuda), None)

    def parameters(self):
        optimizer = self.ref()
        return [p for group in optimizer.param_groups for p in group["params"]] if optimizer is not None else []

    def rate(self):
        optimizer = self.ref()
        rate = optimizer.param_groups[0].get("lr", math.nan) if optimizer is not None else math.nan
        return float(rate) if isinstance(rate, (int, float)) else math.nan

    def markers(self):
        """Two small parameters stand for all when it is asked whether gradients were cleared."""
        own = [p for p in self.parameters() if p.requires_grad]
        small = [p for p in own if p.numel() <= 4096]
        return ([small[-1]] if small else []) + ([min(own, key=lambda p: p.numel())] if own else [])


class TorchWatch:
    def __init__(self, torch, recorder):
        self.torch, self.recorder, self.record = torch, recorder, recorder.record
        self.root_classes, self.base_patched, self.foreign, self.handle = {}, False, {}, None
        self.schedules = Schedules(self)
        self.forget()
        recorder.at_revival.append(self.revive)

    def revive(self):
        """In a forked process: the hooks are in place, what they saw in the parent is forgotten."""
        self.remove_frames()
        self.schedules.rows.clear()
        self.forget()
        self.say_framework()

    def forget(self):
        torch, recorder = self.torch, self.recorder
        self.main, self.inside, self.stepping, self.mistakes = threading.get_ident(), False, False, 0
        self.optimizers, self.models, self.module_names = {}, {}, {}
        self.loss_tensor, self.unscaled, self.deferred = None, None, []
        self.frames = {}
        self.loss_info, self.loss_calls, self.label_steps = {}, 0, []
        self.prints, self.print_done, self.train_rows, self.eval_rows = [], False, set(), []
        self.modes = {"eval_calls": 0, "no_grad_training": 0, "eval_backward": 0, "eval_with_grad": 0, "repeated": 0, "names": []}
        self.eval_pending, self.seen_inputs, self.seen_step = False, set(), -1
        self.last_call, self.last_training, self.mode_training = None, True, True
        self.nonfinite = self.compiled = self.quiet = False
        self.evaluation = {"loss": 0.0, "right": 0, "count": 0, "rows": 0}
        self.training = {"loss": 0.0, "right": 0, "count": 0, "rows": 0}
        self.epoch_mark = (0, 0.0)
        self.epoch, self.loaders, self.saved, self.checked_mixing = 0, {}, "", False
        self.targets, self.last_loss, self.scaled = {}, None, False
        self.stop = StopRules(recorder.stop_when) if recorder.stop_when else None
        self.probe = Probe(self) if recorder.probe else None
        self.outputs_equal = False
        self.sound_file = None  # the last file written while all was finite
        self.fast, self.fast_backward, self.fast_loss, self.checked_eval, self.checked_save = None, False, math.nan, False, False
        self.frozen = {}
        recorder.at_end.append(self.end)

    def say_framework(self):
        torch = self.torch
        self.record.say("framework", held=True, name="torch", version=str(torch.__version__), threads=torch.get_num_threads(),
                        seed=torch.initial_seed())

    # ---- putting the hooks in place ----

    def patch(self):
        torch = self.torch
        self.say_framework()
        self.original_call = torch.nn.Module.__call__
        self.patch_base()
        watch, Optimizer = self, torch.optim.Optimizer
        first = Optimizer.__init__

        @functools.wraps(first)
        def init(optimizer, *arguments, **named):
            first(optimizer, *arguments, **named)
            watch.new_optimizer(optimizer)

        Optimizer.__init__ = init
        backward, tensor_type, ident = torch.autograd.backward, torch.Tensor, threading.get_ident

        @functools.wraps(backward)
        def watched_backward(*arguments, **named):
            fast = watch.fast
            if fast is not None and watch.last_training and watch.mode_training and arguments and type(arguments[0]) is tensor_type and watch.unscaled is None and ident() == watch.main:
                watch.fast_loss = value = watch.value_of(arguments[0])
                if value == value and -math.inf < value < math.inf:  # anything else is looked into below
                    watch.fast_backward = True
                    result = backward(*arguments, **named)
                    canary = fast.canary
                    if canary is not None and canary.grad is not None and not canary.grad.is_cuda and not watch.is_sound(canary.grad):
                        watch.leave_fast()
                        watch.not_finite_backward(arguments[0])
                    return result
            if fast is not None and ident() == watch.main:
                watch.leave_fast()
            if watch.recorder.silent or watch.stepping == "own" or threading.get_ident() != watch.main:
                return backward(*arguments, **named)
            watch.before_backward(arguments[0] if arguments else named.get("tensors"))
            result = backward(*arguments, **named)
            watch.after_backward(arguments[0] if arguments else named.get("tensors"))
            return result

        torch.autograd.backward = watched_backward
        self.patch_losses()
        self.patch_rest()
        self.schedules.patch(torch)

    def patch_base(self):
        """Every module's call, until the outermost ones are known; afterwards only their classes."""
        if not self.base_patched and not self.compiled:
            self.torch.nn.Module.__call__ = self.wrap_call(self.original_call)
            self.base_patched = True

    def unpatch_base(self):
        if self.base_patched:
            self.torch.nn.Module.__call__ = self.original_call
            self.base_patched = False

    def wrap_call(self, original):
        watch, ident = self, threading.get_ident

        def call(module, *arguments, **named):
            if watch.quiet and module.training:  # most steps: only what a search for NaN would need
                model = watch.models.get(id(module))
                if model is not None and not watch.inside:
                    watch.last_call, watch.last_training, watch.mode_training = (model["ref"], arguments, named), True, True
                return original(module, *arguments, **named)
            if watch.inside or watch.recorder.silent or ident() != watch.main or watch.is_no_model(module):
                return original(module, *arguments, **named)
            watch.inside = True
            try:
                trace = watch.before_call(module, arguments, named)
                if trace is not None:
                    with trace:
                        out = original(module, *arguments, **named)
                else:
                    out = original(module, *arguments, **named)
            finally:
                watch.inside = False
            watch.after_call(module, arguments, named, out, trace)
            return out

        return functools.wraps(original)(call)

    def patch_losses(self):
        functional, watch = self.torch.nn.functional, self

        def wrap(name, original):
            by_element = name.endswith(("mse_loss", "l1_loss", "huber_loss"))

            @functools.wraps(original)
            def loss(*arguments, **named):
                if by_element and len(arguments) > 1 and getattr(arguments[0], "shape", 0) != getattr(arguments[1], "shape", 0):
                    with warnings_of_caller():
                        out = original(*arguments, **named)
                else:
                    out = original(*arguments, **named)
                if len(arguments) > 1 and watch.stepping != "own":
                    watch.last_loss = (name, arguments[1:], named)
                if not (watch.quiet and watch.mode_training or watch.inside or watch.recorder.silent or watch.stepping) and threading.get_ident() == watch.main:
                    watch.after_loss(name, arguments, named, out)
                return out

            return loss

        originals = {name: getattr(functional, name) for name in LOSSES if hasattr(functional, name)}
        wrapped = {name: wrap(name, one) for name, one in originals.items()}
        for name, one in wrapped.items():
            setattr(functional, name, one)
        script = self.torch.jit.script

        @functools.wraps(script)
        def watched_script(*arguments, **named):  # compiles sources: it must see the functions as they are
            for name, one in originals.items():
                setattr(functional, name, one)
            try:
                return script(*arguments, **named)
            finally:
                for name, one in wrapped.items():
                    setattr(functional, name, one)

        self.torch.jit.script = watched_script

    def patch_rest(self):
        torch, watch = self.torch, self
        DataLoader = torch.utils.data.DataLoader
        iterate = DataLoader.__iter__

        @functools.wraps(iterate)
        def watched_iterate(loader):
            watch.new_pass(loader)
            return iterate(loader)

        DataLoader.__iter__ = watched_iterate
        for place in (getattr(torch, "amp", None), getattr(getattr(torch, "cuda", None), "amp", None)):
            scaler = getattr(place, "GradScaler", None)
            if scaler is not None and "scale" in scaler.__dict__:
                self.patch_scaler(scaler)
        if hasattr(torch, "compile"):
            compile = torch.compile

            @functools.wraps(compile)
            def watched_compile(*arguments, **named):
                watch.leave_modules("torch.compile is used: modules and losses inside are not looked at")
                return compile(*arguments, **named)

            torch.compile = watched_compile
        save = torch.save

        @functools.wraps(save)
        def watched_save(value, file, *arguments, **named):
            result = save(value, file, *arguments, **named)
            if isinstance(file, (str, os.PathLike)) and not watch.recorder.silent:
                watch.saved_file(value, str(file))
                watch.check_saved(value, file)
            return result

        torch.save = watched_save

    @guarded
    def saved_file(self, value, file):
        """The last one that was written while loss and weights were finite is the one to go on from."""
        torch = self.torch
        self.saved = file
        tensors = [one for one in tensors_in(torch, [value], 400) if not one.is_cuda]
        small = sum(one.numel() for one in tensors) <= 20_000_000
        loss = next((one.loss for one in self.optimizers.values()), math.nan)
        sound = not self.nonfinite and not math.isinf(loss) and (not small or all(finite(torch, one) for one in tensors))
        if sound:
            self.sound_file = {"file": file, "step": self.last_step()}
        self.record.say("checkpoint", file=file, step=self.last_step(), loss=loss, finite=sound)

    @guarded
    def check_saved(self, value, file):
        """The first file of weights is read back once: it holds what memory holds."""
        torch = self.torch
        if self.checked_save or not isinstance(value, dict) or not value or not all(isinstance(one, torch.Tensor) for one in value.values()) \
                or sum(one.numel() for one in value.values()) > 5_000_000:
            return
        self.checked_save = True
        with self.undisturbed():
            again = torch.load(file, map_location="cpu")
            same = set(again) == set(value) and all(torch.equal(again[name], one.detach().cpu()) or bool(torch.isnan(one.float()).any()) for name, one in value.items())
        self.record.say("fact", check="C1", holds=same, step=self.last_step(), source=user_source(4))

    def patch_scaler(self, scaler):
        scale, watch = scaler.scale, self

        @functools.wraps(scale)
        def watched_scale(self_, outputs, *arguments, **named):
            watch.unscaled, watch.scaled = outputs, True
            return scale(self_, outputs, *arguments, **named)

        scaler.scale = watched_scale

    @guarded
    def leave_modules(self, why):
        self.compiled = True
        self.unpatch_base()
        self.remove_frames()
        self.record.say("trouble", what=why)

    # ---- optimisers ----

    @guarded
    def new_optimizer(self, optimizer):
        if self.recorder.silent and not self.recorder.revive() or id(optimizer) in self.optimizers and self.optimizers[id(optimizer)].ref() is optimizer:
            return
        self.leave_fast()
        info = Watched(self, optimizer, len(self.optimizers))
        self.optimizers[id(optimizer)] = info
        self.quiet = False
        kind = type(optimizer)
        if not getattr(kind.step, "_netmend", False):
            kind.step = self.wrap_step(kind.step)
        settings = {key: value for key, value in optimizer.defaults.items()
                    if isinstance(value, (int, float, str, bool, tuple, type(None)))}
        self.record.say("optimizer", optimizer=info.index, type=kind.__name__, lr=info.rate(), settings=settings,
                        groups=len(optimizer.param_groups), parameters=sum(p.numel() for p in info.parameters()),
                        source=user_source(4))
        self.patch_base()
        self.add_frames()

    def wrap_step(self, original):
        watch = self

        @functools.wraps(original)
        def step(optimizer, *arguments, **named):
            info = watch.fast
            if info is not None:
                if watch.fast_backward and not arguments and not named and info.ref() is optimizer and not watch.recorder.silent:
                    result = original(optimizer)
                    watch.fast_backward = False
                    info.steps += 1
                    info.waiting.append(watch.fast_loss)
                    if len(info.waiting) >= 64 or time.perf_counter() > info.drain_at:
                        watch.drain(info)
                    return result
                watch.leave_fast()
            if watch.recorder.silent and watch.recorder.forked:
                watch.new_optimizer(optimizer)  # made before the fork, used after it: this process trains too
            info = watch.optimizers.get(id(optimizer))
            if info is None or watch.stepping or watch.recorder.silent or threading.get_ident() != watch.main:
                return original(optimizer, *arguments, **named)
            watch.stepping = True
            closure = bool(arguments or named.get("closure"))
            try:
                watch.before_step(info, closure)
                watch.stepping = "closure" if closure else True
                result = original(optimizer, *arguments, **named)
                watch.stepping = True
                watch.after_step(info, closure, result)
            finally:
                watch.stepping = False
            return result

        step._netmend = True
        return step

    # Most steps of a long run: a loss is kept, and everything else waits for the next drain.

    def value_of(self, loss):
        """NaN for what is no single number on the CPU: the usual way takes care of it."""
        try:
            return math.nan if loss.is_cuda else float(loss)
        except Exception:
            return math.nan

    def leave_fast(self):
        info, self.fast = self.fast, None
        if info is not None:
            self.drain(info)
            self.fast = None
            info.dirty, info.backwards, self.fast_backward = True, 1 if self.fast_backward else 0, False

    @guarded
    def drain(self, info):
        rate = info.rate()
        if info.waiting:
            info.series.add_many(info.waiting, rate)
            info.loss = info.waiting[-1]
            self.feed_stop(info, info.waiting)
        info.waiting = []
        info.drain_at = time.perf_counter() + 0.2
        info.look = info.budget.due(info.steps + 1)
        if info.look:
            self.fast, self.quiet = None, False
            info.dirty, info.backwards = True, 0
            self.add_frames()

    @guarded
    def before_backward(self, tensors):
        torch = self.torch
        loss = tensors if isinstance(tensors, torch.Tensor) else (tensors[0] if tensors else None)
        if self.unscaled is not None:
            loss, self.unscaled = self.unscaled if isinstance(self.unscaled, torch.Tensor) else loss, None
        self.loss_tensor = loss.detach() if isinstance(loss, torch.Tensor) and loss.numel() == 1 else None
        if self.last_call is not None and not self.last_training:
            self.modes["eval_backward"] += 1
        if self.eval_pending and not self.mode_training:  # what was computed in evaluation mode is differentiated: an attack, frozen layers
            self.modes["eval_with_grad"] -= 1
        self.eval_pending = False
        if self.loss_tensor is not None and not self.loss_tensor.is_cuda and not math.isfinite(float(self.loss_tensor)):
            self.not_finite(loss)
        for info in self.optimizers.values():
            if info.dirty and (info.steps <= 200 or info.look):
                gradients = [p.grad for p in info.markers()]
                if all(g is None or not bool(g.any()) for g in gradients):
                    info.dirty, info.accumulated, info.before = False, False, None
                    info.cleared += 1
                else:
                    info.before = [None if g is None else g.detach().clone() for g in gradients]

    def is_sound(self, tensor):
        value = float(tensor.detach().sum())
        return value - value == 0.0

    @guarded
    def after_backward(self, tensors=None):
        for info in self.optimizers.values():
            own = info.canary.grad if info.canary is not None else None
            if own is not None and not own.is_cuda and not own.is_sparse and not self.is_sound(own):
                self.not_finite_backward(tensors if isinstance(tensors, self.torch.Tensor) else (tensors[0] if tensors else None))
            gradients = [p.grad for p in info.markers()] if info.steps <= 200 or info.look else []
            if any(g is not None for g in gradients):
                info.seen_gradient = True
            if info.dirty and info.before is not None:
                for old, new in zip(info.before, gradients):
                    if new is not None and (old is None or not self.torch.equal(old, new)):
                        info.accumulated = True
                info.before = None
            info.backwards += 1

    @guarded
    def before_step(self, info, closure):
        torch = self.torch
        if info.accumulated and not closure:
            self.violated(info, "Z1", what="gradients of the step before were still there")
        if info.steps and not info.backwards and not closure and info.seen_gradient:
            self.violated(info, "Z2", what="step without a backward pass since the last one")
        info.accumulated = False
        own = info.parameters()
        if info.kept is not None:  # what changed since the last step, outside of it
            changed = [self.name_of(info, p) for p, old in info.kept if not torch.equal(p.detach(), old)]
            if changed:
                self.violated(info, "U3", what="parameters changed outside of step", names=changed[:8])
            info.kept = None
        info.cloned = None
        if info.look:
            info.clock = time.perf_counter()
            room, info.cloned = MOST_CLONED, []
            for p in own:
                room -= p.numel()
                info.cloned.append(p.detach().clone() if room >= 0 else None)

    @guarded
    def after_step(self, info, closure, result):
        info.steps += 1
        info.dirty, info.backwards = True, 0
        if self.loss_tensor is None and isinstance(result, self.torch.Tensor) and result.numel() == 1:
            self.loss_tensor = result.detach()
        loss = self.loss_tensor
        rate = info.rate()
        if loss is not None and loss.is_cuda:
            self.deferred.append((info, loss, rate))
            if len(self.deferred) >= 64 or info.look:
                self.read_deferred()
        else:
            info.loss = math.nan if loss is None else float(loss)
            info.series.add(info.loss, rate)
            self.feed_stop(info, [info.loss])
        if info.look:
            self.look(info, rate)
        info.look = info.budget.due(info.steps + 1)
        self.quiet = self.print_done and self.loss_calls >= 64 and not any(one.look for one in self.optimizers.values())
        if info.look:
            self.add_frames()
        elif not any(one.look for one in self.optimizers.values()):
            self.remove_frames()
            if info.steps >= 3:
                self.unpatch_base()
            if self.quiet and info.steps > 200 and len(self.optimizers) == 1 and info.kept is None and self.last_training \
                    and loss is not None and not loss.is_cuda and not closure:
                self.fast, self.fast_backward = info, False
                info.drain_at = time.perf_counter() + 0.2

    def read_deferred(self):
        values = self.torch.stack([loss.float().reshape(()) for _, loss, _ in self.deferred]).tolist()
        for (info, _, rate), value in zip(self.deferred, values):
            info.loss = value
            info.series.add(value, rate)
            self.feed_stop(info, [value])
            if not math.isfinite(value):
                self.not_finite(None)
        self.deferred = []

    def feed_stop(self, info, losses):
        """Losses of the first optimiser; ends the program where there is a reason to."""
        if self.stop is None or info.index != 0:
            return
        if self.stop.needs_losses():
            for loss in losses:
                self.stop.add(loss)
        if self.stop.why:
            why, self.stop = self.stop.why, None
            info.series.write_ring()
            self.say_stopped(why)

    def say_stopped(self, why):
        stop_program(self.record, why, self.last_step(), self.sound_file)

    def violated(self, info, check, **more):
        info.facts[check] = info.facts.get(check, 0) + 1
        if info.facts[check] == 1:
            info.series.write()
            self.record.say("fact", check=check, holds=False, optimizer=info.index, step=info.steps + 1,
                            source=user_source(5), **more)

    # ---- a close look at a step ----

    def name_of(self, info, parameter):
        if id(parameter) not in info.names:
            for model in self.models.values():
                module = model["ref"]()
                if module is not None:
                    for name, one in module.named_parameters():
                        info.names[id(one)] = model["prefix"] + name
        return info.names.get(id(parameter), "parameter %d" % len(info.names))

    def look(self, info, rate):
        torch, layers = self.torch, {}
        seconds = info.clock - info.time
        info.time = info.clock
        own = info.parameters()
        with torch.no_grad():
            for position, (p, old) in enumerate(zip(own, info.cloned or [])):
                name = self.name_of(info, p)
                row = {"n": p.numel()}
                g = p.grad
                if g is not None and not g.is_sparse:
                    norm = float(g.norm())
                    row["g"] = number(norm)
                    row["gz"] = number(float((g == 0).float().mean()))
                    if info.largest is None or norm > info.largest["value"]:
                        info.largest = {"value": norm, "step": info.steps, "parameter": name}
                    if norm == 0:
                        info.zero_gradient[name] = info.zero_gradient.get(name, 0) + 1
                elif g is None and p.requires_grad:
                    info.no_gradient[name] = info.no_gradient.get(name, 0) + 1
                row["w"] = number(float(p.norm()))
                if old is not None:
                    delta = p.detach() - old
                    row["u"] = number(float(delta.norm()))
                    if row.get("g") and rate > 0 and torch.equal(p.detach(), old):
                        info.lost[name] = info.lost.get(name, 0) + 1
                layers[name] = row
        self.check_frozen(info, own)
        self.check_equal_units(info)
        if not info.described:
            self.describe(info)
        for name, row in self.frames.items():
            layers.setdefault(name, {}).update(row)
        self.frames = {}
        if self.stop is not None:
            self.stop.look(layers, self.outputs_equal)
        memory = torch.cuda.max_memory_allocated() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        self.record.say("step", optimizer=info.index, step=info.steps, loss=info.loss, lr=rate, layers=layers,
                        memory=memory, gap=seconds)
        if info.steps <= 3 and info.cloned:
            info.kept = [(p, p.detach().clone()) for p in own if p.numel() <= 1_000_000][:200]
        info.cloned = None
        if info.steps == 2:
            self.check_mixing()
        info.budget.spent(time.perf_counter() - info.clock)

    def check_equal_units(self, info):
        """Units that started equal: have they become different, as those of a layer of zeros before random ones do?"""
        if info.steps < 3 or info.steps > 100_000:
            return
        for model in self.models.values():
            module = model["ref"]() if model["equal"] else None
            for name, one in module.named_modules() if module is not None else ():
                shown = model["prefix"] + (name or type(one).__name__)
                if shown in model["equal"]:
                    weight = one.weight.detach().float()
                    if float((weight - weight[:1]).abs().max()) > 1e-3 * float(weight.abs().max()):
                        model["equal"].remove(shown)

    def check_frozen(self, info, own):
        """What asks for no gradient and is in no optimiser stays as it is, in a network that is trained."""
        held = {id(p) for one in self.optimizers.values() for p in one.parameters()}
        for model in self.models.values():
            module = model["ref"]()
            parameters = list(module.named_parameters()) if module is not None else []
            if not any(id(p) in held for _, p in parameters):
                continue  # a teacher, a moving average
            for name, p in parameters:
                if p.requires_grad or id(p) in held or p.numel() > 1_000_000 or p.is_cuda:
                    continue
                sum_ = float(p.detach().double().sum())
                if self.frozen.setdefault(model["prefix"] + name, sum_) != sum_ and sum_ == sum_:
                    self.violated(info, "U2", what="frozen parameters changed", names=[model["prefix"] + name])
                    self.frozen[model["prefix"] + name] = sum_

    def describe(self, info):
        """Which parameters belong to whom, after the first step."""
        info.described = True
        held = {id(p) for one in self.optimizers.values() for p in one.parameters()}
        trainable, called = {}, set()
        for model in self.models.values():
            module = model["ref"]()
            if module is None:
                continue
            own = dict(module.named_parameters())
            if not any(id(p) in held for p in own.values()):
                model["untouched"] = True
            called.update(id(p) for p in own.values())
            for name, p in own.items():
                if p.requires_grad and id(p) not in held:
                    trainable[model["prefix"] + name] = p
        mine = info.parameters()
        foreign = [p for p in mine if id(p) not in called]
        missing = [name for name, p in trainable.items()
                   if not self.models_untouched(name)]
        order = [model["prefix"] + name for model in self.models.values() if model["ref"]() is not None
                 for name, _ in model["ref"]().named_parameters()]
        last_held = max([i for i, name in enumerate(order) if name not in trainable] or [-1])
        later = [name for name in missing if order.index(name) > 0 and
                 any(one not in trainable for one in order[:order.index(name)])]
        all_foreign = bool(mine) and bool(called) and len(foreign) == len(mine)
        self.record.say("held", optimizer=info.index, parameters=len(mine), foreign=len(foreign), all_foreign=all_foreign,
                        missing=missing[:20], missing_count=len(missing), not_a_prefix=bool(later), last=last_held,
                        trainable_without_gradient=[name for name, p in trainable.items() if p.grad is None][:8])

    def models_untouched(self, name):
        for model in self.models.values():
            if name.startswith(model["prefix"]) and model.get("untouched"):
                # with optimisers whose parameters nobody called this model is the one they were meant for
                called = {id(p) for one in self.models.values() if one["ref"]() is not None for p in one["ref"]().parameters()}
                return any(id(p) in called for one in self.optimizers.values() for p in one.parameters())
        return False

    # ---- modules ----

    def add_frames(self):
        if self.handle is None and not self.compiled:
            self.handle = self.torch.nn.modules.module.register_module_forward_hook(self.after_module)

    def remove_frames(self):
        if self.handle is not None:
            self.handle.remove()
            self.handle = None

    def after_module(self, module, arguments, out):
        try:
            if self.recorder.silent or not self.inside or not module.training or not self.torch.is_grad_enabled():
                return
            if next(module.children(), None) is not None and layer_role(module) == "other":
                return
            name = self.module_names.get(id(module))
            if name and not self.torch.jit.is_tracing():
                MUTED[0] = True
                try:
                    row = activation_stats(self.torch, module, arguments, out)
                finally:
                    MUTED[0] = False
                if row:
                    self.frames[name] = row
        except Exception as error:
            if self.mistakes < 20:
                self.mistakes += 1
                complain("after_module: %s: %s" % (type(error).__name__, error))

    def is_no_model(self, module):
        """Losses, metrics, single activations: nothing to train."""
        if id(module) in self.models:
            return False
        kind = type(module)
        if kind not in self.foreign:  # Keras on PyTorch has modules and calls of its own; _keras.py watches it
            self.foreign[kind] = any(one.__module__.split(".")[0] in ("keras", "tf_keras") for one in kind.__mro__)
        return self.foreign[kind] or next(module.parameters(), None) is None

    @guarded
    def before_call(self, module, arguments, named):
        torch = self.torch
        model = self.models.get(id(module))
        if model is None or model["ref"]() is not module:
            model = self.new_model(module)
        grad = torch.is_grad_enabled()
        self.last_call = (weakref.ref(module), arguments, named)
        self.last_training = module.training or not model["modes"]
        self.mode_training = module.training
        self.eval_pending = grad and not module.training and not self.compiled and self.asks_gradients(model, module)
        self.modes["eval_with_grad"] += self.eval_pending
        if not grad:
            self.note_repeated(arguments)
            self.modes["eval_calls"] += 1
            if module.training and model["modes"]:
                self.modes["no_grad_training"] += 1
                self.modes["names"] = model["modes"][:4]
        if grad and module.training and not model["traced"] and not self.compiled:
            model["traced"] = True
            return Trace(torch) if Trace is not None else None
        return None

    def asks_gradients(self, model, module):
        if "asks" not in model:
            model["asks"] = any(p.requires_grad for p in module.parameters())
        return model["asks"]

    def note_repeated(self, arguments):
        """Inputs that come again without a step in between: predicted several times on purpose, as Monte Carlo dropout does."""
        step, inputs = self.last_step(), tensors_in(self.torch, (arguments,), 1)
        if not inputs or inputs[0].is_cuda:
            return
        if step != self.seen_step or len(self.seen_inputs) > 4096:
            self.seen_step, self.seen_inputs = step, set()
        values = inputs[0].detach()
        while values.dim() > 1 and len(values):
            values = values[0]
        key = (tuple(inputs[0].shape), tuple(values[:64].tolist()))
        self.modes["repeated"] += key in self.seen_inputs
        self.seen_inputs.add(key)

    def new_model(self, module):
        index = len(self.models)
        prefix = "" if index == 0 else "model%d." % index
        model = {"ref": weakref.ref(module), "index": index, "prefix": prefix, "traced": False,
                 "modes": [name for name, one in module.named_modules() if layer_role(one) in ("dropout", "norm")]}
        self.models[id(module)] = model
        for name, one in module.named_modules():
            self.module_names[id(one)] = prefix + (name or type(one).__name__)
        kind = type(module)
        if kind not in self.root_classes and kind is not self.torch.nn.Module and not self.compiled:
            self.root_classes[kind] = True
            # A class that has a way of its own to be called, or inherits one, keeps it.
            if all("__call__" not in one.__dict__ for one in kind.__mro__ if one not in (self.torch.nn.Module, object)):
                kind.__call__ = self.wrap_call(self.original_call)
        facts = describe_model(self.torch, module, prefix)
        model["equal"] = [row["name"] for row in facts["layers"] if row.get("same_units")]
        self.record.say("model", model=index, **facts)
        return model

    @guarded
    def after_call(self, module, arguments, named, out, trace):
        model = self.models.get(id(module))
        if model is None:
            return
        torch = self.torch
        if self.probe is not None and module.training and torch.is_grad_enabled():
            self.probe.after_call(model, module, arguments, named, out)
        if trace is not None:
            self.record.say("graph", model=model["index"], **trace.summary(out))
        inputs = tensors_in(torch, (arguments,))
        if not inputs:
            return
        x = inputs[0]
        training = torch.is_grad_enabled() and module.training
        looking = any(one.look for one in self.optimizers.values())
        if training and model["index"] == 0 and not self.print_done:
            self.fingerprint(x)
        if training and looking and x.dim() >= 1 and not x.is_cuda:
            self.targets.setdefault("input", {"min": math.inf, "max": -math.inf})
            tensor_range(torch, x, self.targets["input"])
        if x.dim() >= 2 and not x.is_cuda:
            if training and len(self.train_rows) < 20_000 and x.numel() < 1_000_000:
                self.train_rows.update(row_keys(torch, x))
            elif not training and len(self.eval_rows) < 32 and self.train_rows and x.numel() < 1_000_000:
                self.eval_rows.append(row_keys(torch, x))

        if not training and not torch.is_grad_enabled() and not module.training and model["index"] == 0 and not self.checked_eval:
            self.checked_eval = True
            self.check_evaluation(module, arguments)

    @guarded
    def check_evaluation(self, module, arguments):
        """In evaluation the same inputs give the same outputs, whatever the generators' states. A copy is run, twice."""
        torch = self.torch
        if (self.last_call is None or self.last_call[2] or self.compiled or sum(p.numel() for p in module.parameters()) > 5_000_000
                or any(x.is_cuda or x.numel() > 500_000 for x in tensors_in(torch, (arguments,)))):
            return
        with self.undisturbed():
            twin, outs = copy.deepcopy(module), []
            for seed in (11, 12):
                torch.manual_seed(seed)
                with torch.no_grad():
                    outs.append(tensors_in(torch, (self.original_call(twin, *arguments),), 1))
        if all(outs) and outs[0][0].shape == outs[1][0].shape:
            self.record.say("fact", check="E1", holds=bool(torch.equal(outs[0][0], outs[1][0])), step=self.last_step())

    def fingerprint(self, x):
        """Enough of a batch to see it come again."""
        values = x.detach()
        while values.dim() > 1:
            values = values[0]
        whole = x.detach()
        self.prints.append((tuple(x.shape), tuple(values[:16].tolist()),
                            float(whole.double().sum()) if whole.numel() <= 100_000 else 0.0))
        if len(self.prints) >= 600:
            self.print_done = True
            self.say_order()

    def say_order(self):
        prints, self.prints = self.prints, []
        for period in range(1, len(prints) - 2):
            if prints[period] == prints[0]:
                again = sum(a == b for a, b in zip(prints, prints[period:]))
                same = again == len(prints) - period
                self.record.say("order", period=period, repeated=again, steps=len(prints), same=bool(same))
                return
        self.record.say("order", period=0, repeated=0, steps=len(prints), same=False)

    # ---- losses ----

    @guarded
    def after_loss(self, name, arguments, named, out):
        torch = self.torch
        if not isinstance(out, torch.Tensor) or out.is_meta or len(arguments) + ("target" in named) + ("input" in named) < 2:
            return
        given = arguments[0] if arguments else named["input"]
        target = arguments[1] if len(arguments) > 1 else named.get("target")
        training = torch.is_grad_enabled() and given.requires_grad and (self.mode_training or self.modes["eval_backward"] > 0)
        looking = any(one.look for one in self.optimizers.values()) or not self.optimizers
        if training and not looking and self.loss_calls >= 64:
            return
        self.loss_calls += training
        if not training and given.is_cuda:
            return
        facts = loss_facts(torch, name, given, target, named, out)
        if training:
            self.outputs_equal = bool(facts.get("all_outputs_equal"))
            if self.probe is not None:
                self.probe.after_loss(name, given, arguments[1:], named)
        kept = self.training if training else self.evaluation
        if facts.get("loss") is not None:
            kept["loss"] += facts["loss"]
            kept["count"] += 1
        if facts.get("right") is not None:
            kept["right"] += facts["right"]
            kept["rows"] += facts["rows"]
        if not training:
            return
        key = name
        info = self.loss_info.get(key)
        if info is None:
            self.loss_info[key] = info = {"source": user_source(4), "calls": 0, "facts": {}, "counts": {}, "order": []}
        info["calls"] += 1
        for field, value in facts.items():
            if field in ("min_output", "min_target"):
                value = min(value, info["facts"].get(field, value))
            elif field in ("max_output", "max_target"):
                value = max(value, info["facts"].get(field, value))
            elif isinstance(value, bool) and field.startswith("all_"):
                value = value and info["facts"].get(field, True)
            elif isinstance(value, bool):
                value = value or info["facts"].get(field, False)
            elif field == "counts":
                for label, count in value.items():
                    info["counts"][label] = info["counts"].get(label, 0) + count
                continue
            elif field == "order":
                if len(info["order"]) < 64:
                    info["order"].append(value)
                continue
            elif field in ("first_loss", "spread") and field in info["facts"]:
                continue
            info["facts"][field] = value
        if info["calls"] in (1, 8, 64):
            self.say_loss(key)

    def say_loss(self, key):
        info = self.loss_info[key]
        order = info["order"]
        # Sorted within a pass over the data; a new pass begins again at the smallest label.
        again = [b for a, b in zip(order, order[1:]) if a[1] > b[0]]
        least, most = (min(a[0] for a in order), max(a[1] for a in order)) if order else (0, 0)
        ordered = len(order) >= 3 * (len(again) + 1) and least < most and all(b[0] == least for b in again)
        self.record.say("loss", type=key, source=info["source"], calls=info["calls"], ordered=ordered,
                        counts={str(label): count for label, count in sorted(info["counts"].items())[:1000]},
                        **info["facts"])

    # ---- passes over the data ----

    @guarded
    def new_pass(self, loader):
        if self.recorder.silent or threading.get_ident() != self.main or self.torch.utils.data.get_worker_info() is not None:
            return
        if self.evaluation["count"] and (self.training["count"] or self.last_step() > self.epoch_mark[0]):
            self.end_epoch()
        known = self.loaders.get(id(loader))
        if known is None:
            sampler = type(getattr(loader, "sampler", None)).__name__
            try:
                rows = len(loader.dataset)
            except Exception:
                rows = None
            self.loaders[id(loader)] = known = {"passes": 0, "steps": 0}
            self.record.say("loader", loader=len(self.loaders) - 1, sampler=sampler, batch=getattr(loader, "batch_size", None),
                            workers=getattr(loader, "num_workers", 0), rows=rows, shuffled="Random" in sampler,
                            source=user_source(4))
        known["passes"] += 1

    def last_step(self):
        return max([one.steps for one in self.optimizers.values()] or [0])

    def end_epoch(self):
        def share(kept, prefix):
            row = {}
            if kept["count"]:
                row[prefix + "loss"] = kept["loss"] / kept["count"]
            if kept["rows"]:
                row[prefix + "accuracy"] = kept["right"] / kept["rows"]
            for key in kept:
                kept[key] = 0
            return row

        if self.fast is not None:
            self.drain(self.fast)
        metrics = share(self.training, "")
        first = next((one for one in self.optimizers.values() if one.index == 0), None)
        if first is not None and first.steps > self.epoch_mark[0]:  # the mean of all steps, not of those that were looked at
            metrics["loss"] = (first.series.total - self.epoch_mark[1]) / (first.steps - self.epoch_mark[0])
            self.epoch_mark = (first.steps, first.series.total)
        metrics.update(share(self.evaluation, "val_"))
        if metrics:
            self.epoch += 1
            self.record.say("epoch", epoch=self.epoch, step=self.last_step(), metrics=metrics)

    # ---- NaN and Inf ----

    def not_finite(self, loss):
        if self.nonfinite:
            return
        self.nonfinite = True
        torch = self.torch
        found = {"what": "loss", "step": self.last_step() + 1, "source": user_source(4)}
        bad = [name for model in self.models.values() if model["ref"]() is not None
               for name, p in model["ref"]().named_parameters() if not finite(torch, p)]
        inputs = tensors_in(torch, self.last_call[1:]) if self.last_call else []
        if bad:
            found.update(what="weights", layer=bad[0], operation="the step before")
        elif any(not finite(torch, x) for x in inputs):
            found.update(what="input", operation="the data")
        else:
            found.update(self.replay() or self.after_model(loss))
        self.say_not_finite(found)

    def say_not_finite(self, found):
        for info in self.optimizers.values():
            info.series.write_ring()
        if self.sound_file:
            found.update(checkpoint=self.sound_file["file"], checkpoint_step=self.sound_file["step"])
        self.record.say("nonfinite", now=True, **found)
        if "nan" in self.recorder.stop_when:
            self.say_stopped("gradients are NaN or Inf" if found["what"] == "backward" else "loss is NaN or Inf")

    def not_finite_backward(self, loss):
        """The loss was finite, a gradient is not; the weights are still those that made it."""
        if self.nonfinite or self.scaled:  # a GradScaler skips such steps by itself
            return
        self.nonfinite = True
        found = {"what": "backward", "step": self.last_step() + 1, "source": user_source(4), "operation": ""}
        try:
            found.update(self.replay_backward() or self.backward_of_loss(loss))
        except Exception as error:
            complain("replay_backward: %s: %s" % (type(error).__name__, str(error)[:200]))
        self.say_not_finite(found)

    def replay_backward(self):
        """A copy of the network on the last inputs, forward and backward, with every gradient looked at."""
        torch = self.torch
        if self.last_call is None or self.compiled:
            return None
        root, arguments, named = self.last_call
        module = root()
        if module is None:
            return None
        with self.undisturbed(), torch.enable_grad():
            twin, trace = copy.deepcopy(module), Trace(torch, back=True)
            with trace:
                out = self.original_call(twin, *arguments, **named)
                first = tensors_in(torch, (out,), 1)
                loss = None
                if first and self.last_loss is not None and len(self.loss_info) == 1:
                    name, more, options = self.last_loss
                    try:
                        loss = getattr(torch.nn.functional, name)(first[0], *more, **options).sum()
                    except Exception:
                        loss = None
                if loss is None and first:
                    loss = first[0].float().sum()
            if loss is None or not loss.requires_grad:
                return None
            loss.backward()
            found = trace.backward_producer()
        if found is None:
            return None
        weight = found.pop("weight")
        for name, p in twin.named_parameters():
            if p is weight:
                found["layer"] = name.rsplit(".", 1)[0]
        return found

    def backward_of_loss(self, loss):
        """The network's own gradients are finite: an operation between its output and the loss, of a kind that divides by what can be 0."""
        steep = ("sqrt", "norm", "pow", "log", "div", "acos", "asin", "reciprocal", "std", "var")
        queue, seen = [getattr(loss, "grad_fn", None)], set()
        while queue and len(seen) < 200:
            node = queue.pop(0)
            if node is None or node in seen:
                continue
            seen.add(node)
            name = node.name().replace("Backward0", "").replace("Backward1", "").lower()
            if any(part in name for part in steep) and "softmax" not in name and "batchnorm" not in name:
                return {"operation": name, "layer": "loss"}
            queue.extend(one for one, _ in node.next_functions)
        return {}

    def replay(self):
        """Runs a copy of the network on the last inputs again and looks at every operation."""
        torch = self.torch
        if self.last_call is None:  # a network of Keras: its own watch looks at it
            return None
        root, arguments, named = self.last_call
        module = root()
        if module is None:
            return None
        with self.undisturbed():
            twin = copy.deepcopy(module)
            trace = Trace(torch, find=True)
            with trace, torch.no_grad():
                self.original_call(twin, *arguments, **named)
        if trace.producer:
            found = dict(trace.producer)
            found["what"] = "operation"
            weight = found.pop("weight", None)
            if weight is not None:
                for name, p in twin.named_parameters():
                    if p is weight:
                        found["layer"] = name.rsplit(".", 1)[0]
            return found
        return None

    def after_model(self, loss):
        """The network's own output is finite: an operation behind it, by what autograd kept of its inputs."""
        node, seen, queue = getattr(loss, "grad_fn", None), set(), []
        queue.append(node)
        while queue and len(seen) < 200:
            node = queue.pop(0)
            if node is None or node in seen:
                continue
            seen.add(node)
            name = node.name().replace("Backward0", "").replace("Backward1", "").lower() if hasattr(node, "name") else ""
            for attribute, bad in (("_saved_self", lambda x: name in ("log", "sqrt", "rsqrt", "reciprocal", "pow") and bool((x <= 0).any())),
                                   ("_saved_other", lambda x: name == "div" and bool((x == 0).any())),
                                   ("_saved_result", lambda x: not finite(self.torch, x))):
                try:
                    value = getattr(node, attribute)
                    if isinstance(value, self.torch.Tensor) and bad(value):
                        return {"what": "operation", "operation": name, "layer": "loss"}
                except Exception:
                    continue
            queue.extend(one for one, _ in getattr(node, "next_functions", ()))
        return {"what": "operation", "operation": "loss", "layer": "loss"}

    @contextlib.contextmanager
    def undisturbed(self):
        """Generators, output and our own hooks as they were."""
        torch, numpy = self.torch, sys.modules.get("numpy")
        import random
        states = (random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None,
                  torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None)
        inside, stepping, silent = self.inside, self.stepping, self.recorder.silent
        self.inside, self.stepping, self.recorder.silent = True, "own", True
        warn, warnings.warn = warnings.warn, lambda *arguments, **named: None
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                yield
        finally:
            warnings.warn = warn
            self.inside, self.stepping, self.recorder.silent = inside, stepping, silent
            random.setstate(states[0])
            torch.set_rng_state(states[1])
            if numpy:
                numpy.random.set_state(states[2])
            if states[3] is not None:
                torch.cuda.set_rng_state_all(states[3])

    # ---- does a sample influence another ----

    @guarded
    def check_mixing(self):
        torch = self.torch
        if self.checked_mixing or self.last_call is None or self.compiled:
            return
        self.checked_mixing = True
        root, arguments, named = self.last_call
        module = root()
        if (module is None or named or len(arguments) != 1 or not isinstance(arguments[0], torch.Tensor)
                or not arguments[0].is_floating_point() or arguments[0].dim() < 2 or arguments[0].shape[0] < 2
                or sum(p.numel() for p in module.parameters()) > 5_000_000 or arguments[0].numel() > 2_000_000):
            return
        if any(layer_role(one) in ("recurrent", "attention") and not getattr(one, "batch_first", True) for one in module.modules()):
            return  # the first axis is time
        with self.undisturbed():
            twin = copy.deepcopy(module).eval()
            x = arguments[0].detach()[:8].clone().requires_grad_(True)
            with torch.enable_grad():
                out = self.original_call(twin, x)
                if not isinstance(out, torch.Tensor) or out.dim() < 1 or out.shape[0] != x.shape[0]:
                    return
                grad, = torch.autograd.grad(out[0].sum(), x, allow_unused=True)
        if grad is not None:
            others = float(grad[1:].abs().sum())
            if not math.isfinite(others):
                return  # what NaN passes on says nothing
            self.record.say("fact", check="B1", holds=others == 0.0, step=self.last_step(), value=others)

    # ---- the end ----

    def end(self):
        self.stop = None
        self.leave_fast()
        if self.deferred:
            self.read_deferred()
        self.schedules.say()
        if self.training["count"] or self.evaluation["count"] or self.last_step() > self.epoch_mark[0] > 0:
            self.end_epoch()
        if self.prints and not self.print_done:
            self.say_order()
        for key in self.loss_info:
            self.say_loss(key)
        if "input" in self.targets:
            self.record.say("data", split="train", inputs=self.targets["input"])
        if self.modes["eval_calls"] or self.modes["eval_backward"] or self.modes["eval_with_grad"]:
            self.record.say("modes", **self.modes)
        self.say_overlap()
        for info in self.optimizers.values():
            info.series.write()
            self.record.say("summary", optimizer=info.index, steps=info.steps, lr=info.rate(), largest_gradient=info.largest,
                            largest_loss={"value": info.series.peak[0], "step": info.series.peak[1]} if info.series.peak[1] else None,
                            equal_units=[name for model in self.models.values() for name in model["equal"]] if info.steps >= 3 else None,
                            violations={"Z1": 0, **info.facts}, cleared=info.cleared,
                            zero_gradient=dict(list(info.zero_gradient.items())[:200]),
                            no_gradient=dict(list(info.no_gradient.items())[:200]), lost=dict(list(info.lost.items())[:200]))
        if self.probe is not None:
            self.record.flush()
            self.probe.run()

    def say_overlap(self):
        shares = [sum(key in self.train_rows for key in keys) / len(keys) for keys in self.eval_rows if keys]
        rows = sum(len(keys) for keys in self.eval_rows)
        if rows:
            some = [share for share in shares if 0 < share < 0.9]
            self.record.say("overlap", rows=rows, train_rows=len(self.train_rows), batches=len(shares),
                            mixed=len(some), all_in_train=bool(shares) and min(shares) >= 0.9,
                            overlapping=sum(key in self.train_rows for keys in self.eval_rows for key in keys))


def patch(torch, recorder):
    TorchWatch(torch, recorder).patch()
