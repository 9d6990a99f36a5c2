"""`netmend watch --probe`: two experiments of TheDeepChecker with a copy of the network as it started, after the program has ended.

One batch of 16 inputs is to be learnt by heart; and the gradients of a few weights are compared with differences of the loss. The copy
and the batch are taken in the first training pass; the run itself is not touched.
"""
import copy
import math
import time

from . import complain
from ._torch_stats import layer_role, tensors_in

ROWS, ITERATIONS, SECONDS = 16, 1000, 20.0
ENTRIES, DELTA = 8, 1e-4  # weights of a parameter that are moved, and by how much


class Probe:
    def __init__(self, watch):
        self.watch, self.twin, self.given, self.loss = watch, None, None, None
        self.optimizer, self.out = None, None

    def after_call(self, model, module, arguments, named, out):
        """The first training pass of the first network with one batch of inputs."""
        torch, watch = self.watch.torch, self.watch
        if self.loss is not None or model["index"] != 0 or named or not arguments or watch.last_step() > 0:
            return
        if not all(isinstance(one, torch.Tensor) and one.dim() >= 1 and len(one) == len(arguments[0]) for one in arguments):
            return
        if sum(p.numel() for p in module.parameters()) > 20_000_000:
            return
        with watch.undisturbed():
            self.twin = copy.deepcopy(module)
        self.given = [one.detach()[:ROWS].clone() for one in arguments]
        self.rows, self.out = len(arguments[0]), out

    def after_loss(self, name, given, more, named):
        """The loss of that pass: of the network's output and of a row of targets for each input."""
        torch = self.watch.torch
        if self.twin is None or self.loss is not None or given is not self.out:
            return
        kept = [one.detach()[:ROWS].clone() if isinstance(one, torch.Tensor) and one.dim() >= 1 and len(one) == self.rows else one for one in more]
        if not kept or not isinstance(kept[0], torch.Tensor) or len(kept[0]) != len(self.given[0]):
            return
        self.loss = (name, kept, dict(named))
        self.out = None

    def run(self):
        watch = self.watch
        if self.loss is None:
            watch.record.say("trouble", what="the probe saw no training pass whose loss is a function of torch.nn.functional of the network's output")
            return
        for probe in (self.one_batch, self.gradient):
            try:
                with watch.undisturbed():
                    found = probe()
            except Exception as error:
                complain("probe %s: %s: %s" % (probe.__name__, type(error).__name__, str(error)[:200]))
                continue
            watch.record.say("probe", **found)

    def value(self, net, given, double=False):
        torch = self.watch.torch
        name, more, named = self.loss
        wide = lambda one: one.double() if double and isinstance(one, torch.Tensor) and one.is_floating_point() else one
        out = self.watch.original_call(net, *given)
        return out, getattr(torch.nn.functional, name)(out, *[wide(one) for one in more], **{key: wide(one) for key, one in named.items()})

    # ---- one batch by heart ----

    def new_optimizer(self, net):
        """The program's own, with its settings at the start; Adam where it cannot be made again."""
        torch, found = self.watch.torch, None
        own = [p for p in net.parameters() if p.requires_grad]
        info = next(iter(self.watch.optimizers.values()), None)
        optimizer = info.ref() if info is not None else None
        if optimizer is not None and type(optimizer).__name__ != "LBFGS":
            try:
                found = type(optimizer)(own, **optimizer.defaults)
            except Exception:
                found = None
        return found if found is not None else torch.optim.Adam(own, lr=1e-3)

    def train(self, given, seconds, iterations):
        """Losses of every iteration and the error at the end, with dropout off."""
        torch = self.watch.torch
        net = copy.deepcopy(self.twin).train()
        for one in net.modules():
            if layer_role(one) == "dropout":
                one.eval()
        optimizer, losses, begin, error = self.new_optimizer(net), [], time.perf_counter(), 1.0
        with torch.enable_grad():
            for step in range(iterations):
                optimizer.zero_grad()
                out, loss = self.value(net, given)
                loss = loss.sum() if loss.numel() > 1 else loss
                loss.backward()
                optimizer.step()
                losses.append(float(loss))
                error = self.error(out.detach())
                if not math.isfinite(losses[-1]) or time.perf_counter() - begin > seconds or (error == 0 and losses[-1] < 1e-4 and step >= 100):
                    break
        return losses, error

    def error(self, out):
        """Share of wrong classes; of numbers the share of their variance that is left."""
        name, more, _ = self.loss
        target = more[0]
        if name in ("cross_entropy", "nll_loss"):
            right = out.argmax(1) == (target if not target.is_floating_point() else target.argmax(1))
            kept = target >= 0 if not target.is_floating_point() else right == right
            return 1.0 - float(right[kept].float().mean())
        if name.startswith("binary"):
            return float(((out > (0.5 if name == "binary_cross_entropy" else 0.0)) != (target > 0.5)).float().mean())
        variance = float(target.float().var(unbiased=False))
        return float((out.float() - target.float()).pow(2).mean()) / variance if variance > 0 else math.nan

    def one_batch(self):
        losses, error = self.train(self.given, SECONDS, ITERATIONS)
        blind = [one * 0 for one in self.given]
        others, _ = self.train(blind, SECONDS / 2, min(len(losses), 300)) if len(losses) >= 20 else ([], 0)
        last = min(100, len(losses), len(others))
        real = losses[min(len(losses), len(others)) - last:min(len(losses), len(others))] if last else []
        return {"probe": "one-batch", "rows": len(self.given[0]), "iterations": len(losses), "first_loss": losses[0], "last_loss": losses[-1], "error": error,
                "numbers": self.loss[0] not in ("cross_entropy", "nll_loss") and not self.loss[0].startswith("binary"),
                "blind_loss": others[-1] if others else None, "blind_p": rank_test(real, others[-last:]) if last >= 10 else None}

    # ---- gradients against differences of the loss ----

    def gradient(self):
        torch = self.watch.torch
        net = copy.deepcopy(self.twin).double().eval()
        given = [one.double() if one.is_floating_point() else one for one in self.given]
        draw = torch.Generator().manual_seed(7)
        with torch.enable_grad():
            loss = self.value(net, given, double=True)[1].sum()
        named = [(name, p) for name, p in net.named_parameters() if p.requires_grad and p.numel()]
        begin, rows = time.perf_counter(), []
        for (name, p), g in zip(named, torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)):
            if g is None or time.perf_counter() - begin > SECONDS:
                continue
            errors = [self.difference(net, given, p, int(i), float(g.reshape(-1)[i])) for i in torch.randperm(p.numel(), generator=draw)[:ENTRIES]]
            rows.append((sorted(errors)[len(errors) // 2], name))  # the median: where ReLU bends, single ones may differ
        worst = max(rows, default=(math.nan, ""))
        return {"probe": "gradient", "parameters": len(rows), "worst": worst[0], "parameter": worst[1], "names": [name for error, name in rows if error > 1e-2][:8]}

    def difference(self, net, given, p, i, g):
        torch, flat, values = self.watch.torch, p.data.view(-1), []
        old = float(flat[i])
        for step in (DELTA, -DELTA):
            flat[i] = old + step
            with torch.no_grad():
                values.append(float(self.value(net, given, double=True)[1].sum()))
        flat[i] = old
        measured = (values[0] - values[1]) / (2 * DELTA)
        return abs(measured - g) / max(abs(measured) + abs(g), 1e-7)


def rank_test(a, b):
    """Mann and Whitney's: how likely values as low as those of `a` are if they came from where those of `b` did."""
    both = sorted([(value, 0) for value in a] + [(value, 1) for value in b])
    ranks, at = 0.0, 0
    while at < len(both):
        end = at
        while end < len(both) and both[end][0] == both[at][0]:
            end += 1
        ranks += sum(1 for value in both[at:end] if value[1] == 0) * (at + 1 + end) / 2
        at = end
    n, m = len(a), len(b)
    u = ranks - n * (n + 1) / 2
    z = (u - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
    return 0.5 * math.erfc(-z / math.sqrt(2))
