"""save_data.reference: outputs of the original framework, so that netmend can be compared with it."""
import json
import os
import sys

import numpy as np

from ._arrays import is_array, to_numpy
from ._batches import Reader, is_mapping, is_sequence
from ._errors import RecorderError
from ._store import write_beside, write_npz

_CHUNK = 16  # samples that go through the network together


class Reference:
    """What was recorded; `left_out` says what was not, and why."""

    def __init__(self, file, framework, samples, inputs, outputs, layers, left_out):
        self.file, self.framework, self.samples = file, framework, samples
        self.inputs, self.outputs, self.layers, self.left_out = inputs, outputs, layers, left_out

    def __repr__(self):
        lines = ["%d samples of %s in %s: inputs %s; outputs %s; %d layers"
                 % (self.samples, self.framework, self.file, ", ".join(self.inputs), ", ".join(self.outputs), len(self.layers))]
        return "\n".join(lines + ["  left out: " + what for what in self.left_out])


def reference(model, loader, FILE, n=64, layers=True, outputs=None, inputs=None, batched=None, target=None,
              layer_bytes=1 << 30):
    """Runs the first n samples of the loader through the model and writes its outputs to FILE (an NPZ file).

    model: a PyTorch module, a Keras model, or anything that can be called with arrays. PyTorch and Keras models also give
        what their layers gave (layers=True); modules are put into evaluation mode for it and then back as they were.
    outputs: names for the outputs, in order; for a model that returns a dict, the keys to keep.
    inputs, batched, target: as for save_data. Inputs that are dicts are given to PyTorch modules by name.
    layer_bytes: the most that recorded layers may take; layers beyond it are left out.

    Samples of differing lengths are padded with zeros to the longest, which is what the network was given then. Returns a
    Reference; print it to see what was left out.
    """
    if not isinstance(n, int) or n < 1:
        raise RecorderError("n=%r is not a number of samples" % (n,), "the argument n", "a whole number above 0")
    reader = Reader(inputs, target, batched, targets_wanted=False)
    given = _first(reader, loader, n)
    count = len(next(iter(given.values())))
    runner = _runner(model, layers, reader.by_name)
    answers, gathered = _Gathered(None), _Gathered(layer_bytes)
    with runner:
        at = 0
        for size in _chunks(count):
            _run_chunk(runner, {name: v[at:at + size] for name, v in given.items()}, size, outputs, answers, gathered)
            at += size
    answers.finish(count)
    gathered.finish(count)
    if not answers.pieces:
        raise RecorderError("no output of the model has one row per sample", "the model's output",
                            "let it return a tensor, a tuple or a dict of tensors, samples first")
    meta = {"format": "netmend-reference", "version": 1, "framework": runner.framework, "samples": list(range(count)),
            "inputs": list(given), "outputs": list(answers.pieces), "layers": list(gathered.pieces)}
    members = {"meta.bytes": np.frombuffer(json.dumps(meta).encode(), np.uint8)}
    members.update(("input." + name, values) for name, values in given.items())
    members.update(("output." + name, pieces) for name, pieces in answers.pieces.items())
    members.update(("layer." + name, pieces) for name, pieces in gathered.pieces.items())
    write_beside(os.fspath(FILE), lambda file: write_npz(file, members))
    left_out = reader.left_out + runner.left_out + answers.left_out("output") + gathered.left_out("layer")
    return Reference(os.fspath(FILE), runner.framework, count, meta["inputs"], meta["outputs"], meta["layers"], left_out)


def _first(reader, loader, n):
    """The first n samples, each input as one array."""
    columns, count = {}, 0
    for batch in reader.batches(loader):
        for name, values in zip(batch.names, batch.columns):
            columns.setdefault(name, []).extend(np.array(values[i]) for i in range(min(batch.count, n - count)))
        count += min(batch.count, n - count)
        if count >= n:
            break
    if not count:
        raise RecorderError("the loader gave no samples", "the argument loader",
                            "give one that still has batches: a generator is used up after one pass")
    return {name: _padded(name, samples) for name, samples in columns.items()}


def _padded(name, samples):
    if len({s.shape for s in samples}) == 1:
        return np.stack(samples)
    if len({s.shape[1:] for s in samples}) != 1 or not all(s.ndim for s in samples):
        raise RecorderError("samples have the shapes %s" % ", ".join(sorted({str(list(s.shape)) for s in samples})),
                            "input '%s'" % name, "only the first axis of a sample may differ in length")
    kind = max((s.dtype for s in samples if s.size), key=lambda d: d.itemsize, default=samples[0].dtype)
    whole = np.zeros((len(samples), max(len(s) for s in samples)) + samples[0].shape[1:], kind)
    for row, sample in zip(whole, samples):
        row[:len(sample)] = sample
    return whole


def _chunks(count):
    """Sizes of the chunks. Two of them differ where that is possible: a tensor whose first axis follows the size of the
    chunk has samples first, one that does not (time first, say) only looked like it."""
    pieces = max(-(-count // _CHUNK), 2 if count >= 4 else 1)
    sizes = [len(piece) for piece in np.array_split(np.arange(count), pieces)]
    if pieces > 1 and len(set(sizes)) == 1:
        sizes[0] -= 1
        sizes[1] += 1
    return sizes


def _run_chunk(runner, given, size, outputs, answers, gathered):
    try:
        answer = runner.call(given)
    except Exception as error:
        raise RecorderError("the model failed: %s: %s" % (type(error).__name__, error),
                            "given " + ", ".join("%s %s%s" % (k, v.dtype, list(v.shape)) for k, v in given.items()),
                            "choose or order its inputs with inputs=[...], and check that it takes these types") from error
    for name, value in _named_outputs(answer, outputs).items():
        answers.add(name, value, size)
    for name, value in runner.take_layers():
        gathered.add(name, value, size)


def _named_outputs(answer, names):
    """Every tensor of the outputs by name; those in nested tuples get the names of the way to them."""
    found = {}

    def visit(value, path):
        if value is None:
            return
        if is_mapping(value):
            for key in value:
                visit(value[key], path + [str(key)])
        elif is_sequence(value):
            for i, item in enumerate(value):
                visit(item, path + [str(i)])
        else:
            found[".".join(path)] = value

    if is_mapping(answer):
        visit(answer, [])
        if names is not None:
            missing = [n for n in names if n not in found]
            if missing:
                raise RecorderError("there is no output '%s'; the model has %s" % (missing[0], ", ".join(found)),
                                    "the argument outputs", "name existing ones")
            found = {n: found[n] for n in names}
        return found
    visit(answer, [])
    if names is None:
        return {"output" + name: value for name, value in found.items()}
    names = [names] if isinstance(names, str) else list(names)
    if len(names) > len(found):
        raise RecorderError("outputs= names %d outputs, but the model has %d" % (len(names), len(found)),
                            "the argument outputs", "name as many as there are, or fewer")
    return dict(zip(names, found.values()))


class _Gathered:
    """Arrays by name, chunk after chunk; what does not have samples first is dropped with a reason."""

    def __init__(self, limit):
        self.pieces, self.dropped, self.limit, self.size = {}, {}, limit, 0

    def add(self, name, value, rows):
        if name in self.dropped:
            return
        try:
            array = value if isinstance(value, np.ndarray) else to_numpy(value)
        except Exception as error:  # symbolic tensors, sparse ones, objects of the model's own
            return self._drop(name, "not an array (%s)" % type(error).__name__)
        if array.dtype.kind not in "biuf":
            return self._drop(name, "values of type %s" % array.dtype)
        if array.ndim == 0 or len(array) != rows:
            return self._drop(name, "its shape %s does not have samples first" % (list(array.shape),))
        known = self.pieces.get(name)
        if known is not None and known[0].shape[1:] != array.shape[1:]:
            return self._drop(name, "its shape differs from sample to sample")
        if self.limit is not None and self.size + array.nbytes > self.limit:
            return self._drop(name, "beyond layer_bytes=%d; a smaller n keeps more" % self.limit)
        self.size += array.nbytes
        self.pieces.setdefault(name, []).append(np.array(array, order="C"))

    def _drop(self, name, why):
        self.size -= sum(p.nbytes for p in self.pieces.pop(name, []))
        self.dropped[name] = why

    def finish(self, count):
        """Drops what only some of the samples went through."""
        for name, pieces in list(self.pieces.items()):
            if sum(len(p) for p in pieces) != count:
                self._drop(name, "not all samples went through it")

    def left_out(self, kind):
        return ["%s %s: %s" % (kind, name, why) for name, why in self.dropped.items()]


class _Names:
    """name, name:2, name:3 ... for what runs several times in one pass."""

    def __init__(self):
        self.used = {}

    def next(self, name):
        self.used[name] = self.used.get(name, 0) + 1
        return name if self.used[name] == 1 else "%s:%d" % (name, self.used[name])


def _first_tensor(value):
    """The main output of a layer: attention and recurrent layers give it first in a tuple."""
    while (is_sequence(value) or is_mapping(value)) and len(value):
        value = next(iter(value.values())) if is_mapping(value) else value[0]
    return value if is_array(value) else None


class _Runner:
    """A plain callable: outputs only."""

    framework = "python"

    def __init__(self, model, layers, by_name):
        self.model, self.layers, self.by_name = model, layers, by_name
        self.left_out, self.gave = [], []

    def __enter__(self):
        if self.layers:
            self.left_out.append("all layers: the model is a plain callable")
        return self

    def __exit__(self, *unused):
        return False

    def call(self, given):
        copies = {name: values.copy() for name, values in given.items()}  # the model may write into what it is given
        return self.model(**copies) if self.by_name else self.model(*copies.values())

    def take_layers(self):
        gave, self.gave = self.gave, []
        return gave


class _TorchRunner(_Runner):
    framework = "torch"

    def __init__(self, model, layers, by_name):
        super().__init__(model, layers, by_name)
        self.torch = sys.modules["torch"]
        self.framework = "torch " + str(self.torch.__version__)
        self.modes, self.hooks, self.frames, self.names = [], [], [], _Names()
        self.partly = set()

    def __enter__(self):
        self.modes = [(module, module.training) for module in self.model.modules()]
        self.mha = getattr(getattr(self.torch.backends, "mha", None), "get_fastpath_enabled", lambda: None)()
        try:
            self.model.eval()
            if self.layers:
                if self.mha:  # fused layers would hide the ones inside them
                    self.torch.backends.mha.set_fastpath_enabled(False)
                self._hook()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for hook in self.hooks:
            hook.remove()
        self.hooks = []
        if self.mha and self.layers:
            self.torch.backends.mha.set_fastpath_enabled(True)
        for module, mode in self.modes:
            module.training = mode
        return False

    def _hook(self):
        root = getattr(self.model, "_orig_mod", self.model)  # the module within what torch.compile made
        for name, module in root.named_modules():
            if module is root and next(root.children(), None) is not None:
                continue
            try:
                self.hooks.append(module.register_forward_pre_hook(self._enter))
                self.hooks.append(module.register_forward_hook(self._leaver(name or type(module).__name__)))
            except RuntimeError as error:  # compiled by TorchScript
                self.left_out.append("layer %s: it takes no hooks (%s)" % (name, str(error).split("\n")[0]))

    def _enter(self, module, given):
        self.frames.append(False)

    def _leaver(self, name):
        def leave(module, given, answer):
            inner_ran = self.frames.pop()
            self.frames[:] = [True] * len(self.frames)
            # A leaf is what ran without any other module inside it. That also finds layers which have children but use
            # their weights directly, as attention does.
            if inner_ran:
                return
            tensor = _first_tensor(answer)
            name_now = self.names.next(name)
            if tensor is None:
                self._note("layer %s: its output is not a tensor but a %s" % (name_now, type(answer).__name__))
                return
            if tensor is not answer:
                self._note("layer %s: only the first of its output tensors is kept" % name_now)
            # A copy at once: the next layer may work in place.
            self.gave.append((name_now, np.array(to_numpy(tensor))))

        return leave

    def _note(self, text):
        if text not in self.partly:
            self.partly.add(text)
            self.left_out.append(text)

    def call(self, given):
        self.names, self.frames, self.gave = _Names(), [], []
        first = next(iter(self.model.parameters()), None)
        device = first.device if first is not None else "cpu"
        tensors = {name: self.torch.tensor(values, device=device) for name, values in given.items()}
        with self.torch.no_grad():
            return self.model(**tensors) if self.by_name else self.model(*tensors.values())


class _KerasRunner(_Runner):
    framework = "keras"

    def __init__(self, model, layers, by_name):
        super().__init__(model, layers, by_name)
        self.framework = "keras " + str(getattr(sys.modules.get("keras"), "__version__", ""))
        self.wrapped, self.names, self.watching = [], _Names(), False

    def __enter__(self):
        return self

    def _watch(self):
        for name, layer in _keras_layers(self.model, ""):
            self._wrap(name, layer)

    def _wrap(self, name, layer):
        original = layer.call

        def call(*args, **kwargs):
            answer = original(*args, **kwargs)
            name_now, tensor = self.names.next(name), _first_tensor(answer)
            if tensor is not None:
                self.gave.append((name_now, tensor))
            return answer

        try:
            # Past the layer's own __setattr__, which would track it as a part of the layer.
            object.__setattr__(layer, "call", call)
            self.wrapped.append(layer)
        except Exception as error:
            self.left_out.append("layer %s: it cannot be watched (%s)" % (name, error))

    def __exit__(self, *unused):
        for layer in self.wrapped:
            object.__delattr__(layer, "call")
        self.wrapped = []
        return False

    def call(self, given):
        values = list(given.values())
        whole = dict(given) if self.by_name else values[0] if len(values) == 1 else values
        if self.layers and not self.watching:
            self.model(whole, training=False)  # builds what was never built, which calls layers with symbols
            self.watching = True
            self._watch()
        self.names, self.gave = _Names(), []
        return self.model(whole, training=False)


def _keras_layers(model, prefix):
    """The layers of a model, and those of models within it; recurrent cells stay parts of their layer."""
    for layer in model.layers:
        if type(layer).__name__ == "InputLayer":
            continue
        if hasattr(layer, "layers"):
            yield from _keras_layers(layer, prefix + layer.name + "/")
        else:
            yield prefix + layer.name, layer


def _runner(model, layers, by_name):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return _TorchRunner(model, layers, by_name)
    if any(c.__module__.split(".")[0] in ("keras", "tensorflow", "tf_keras") and c.__name__ == "Model" for c in type(model).__mro__):
        return _KerasRunner(model, layers, by_name)
    if not callable(model):
        raise RecorderError("a %s is not a model" % type(model).__name__, "the argument model",
                            "a PyTorch module, a Keras model, or a function of arrays")
    return _Runner(model, layers, by_name)
