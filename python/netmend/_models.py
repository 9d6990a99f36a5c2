"""Models of a Python program as ONNX files: modules are exported as they are in evaluation mode, and the file is compared
with the module before anything is said about it."""
import functools
import inspect
import os
import re
import sys
import warnings

import numpy as np

from . import _program
from ._arrays import to_numpy
from ._data import Data, spec_of
from ._errors import NetmendError, NetmendInputError, NetmendMissingError
from ._reference import reference
from ._workspace import Workspace

_OPSET = 17
_TRIED = 16  # samples on which a module and its export are compared


class Model:
    """A model for any number of calls, exported once.

    source: an ONNX file, an onnx.ModelProto, a torch.nn.Module or a Keras model.
    data: what the module is going to be judged on (as for every command), or `example`: a batch as the module takes it.
        An export needs one of them.
    inputs: names of the inputs, in the order of the module's arguments (default: those of the data).
    match: compare the exported file with the module (default), to 1e-3.

    >>> Model("model.onnx").file
    'model.onnx'
    """

    def __init__(self, source, data=None, example=None, inputs=None, match=True):
        self.source, self._workspace, self.matched = source, Workspace(), None
        if isinstance(source, Model):
            raise NetmendInputError("This is a Model already")
        if isinstance(source, (str, os.PathLike)):
            self.file = os.fspath(source)
        elif hasattr(source, "SerializeToString") and hasattr(source, "graph"):
            self.file = self._workspace.path("model.onnx", source.ByteSize())
            _write(self.file, source.SerializeToString())
        else:
            if example is None:
                example = _example(source, data, self._workspace)
            example = _by_name(example, inputs)
            self.file = self._workspace.path(_file_name(source))
            _export(source, example, self.file)
            if match:
                self.matched = _match(source, example, self.file, self._workspace)

    def __repr__(self):
        return "Model(%r)" % self.file

    def __fspath__(self):
        return self.file


def model_file(value, workspace):
    """The ONNX file of whatever a user gives as a model. Modules are exported for the data of the same call."""
    if isinstance(value, (str, os.PathLike)) and not isinstance(value, Model):
        return os.fspath(value)
    if not isinstance(value, Model):
        if isinstance(value, Data) or not (hasattr(value, "SerializeToString") or is_module(value) or is_keras(value)):
            raise NetmendInputError("A %s is not a model" % type(value).__name__,
                                    "Give an ONNX file, an onnx.ModelProto, a torch.nn.Module or a Keras model.")
        value = Model(value, data=next(iter(workspace.data.values()), None) or workspace.spec)
    workspace.kept.append(value)
    return value.file


def is_module(value):
    return any(c.__module__ == "torch.nn.modules.module" and c.__name__ == "Module" for c in type(value).__mro__)


def is_keras(value):
    return any(c.__name__ == "Model" and c.__module__.split(".")[0] in ("keras", "tensorflow", "tf_keras")
               for c in type(value).__mro__)


def _write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def _file_name(source):
    name = "".join(c for c in type(source).__name__ if c.isalnum() or c in "_-") or "model"
    return name + ".onnx"


# ---- an example to export with ----


def _example(source, data, workspace):
    if data is None:
        raise NetmendInputError("%s cannot be exported without an example of its input" % type(source).__name__,
                                "Give the data too, or Model(module, example=a_batch).")
    if not isinstance(data, (Data, str)):
        spec_of(data, workspace)
        data = workspace.data[id(data)]
    found = data.first(_TRIED) if isinstance(data, Data) else None
    return found if found is not None else _example_of_spec(data if isinstance(data, str) else data.spec, workspace)


def _example_of_spec(spec, workspace):
    """For data that only the program reads: numbers drawn at random, of its shape, its type and its range."""
    words = ["data", spec, "--limit=64", "--count=1", "--sheet=" + workspace.path("sheet.png")]
    about = _program.run(words, progress=False).document
    draw, found = np.random.default_rng(0), {}
    for entry in about["inputs"]:
        shape = [_TRIED] + [int(n) if n > 0 else 8 for n in entry["shape"]]
        low, high = entry["values"]["min"] or 0, entry["values"]["max"] or 0
        if str(entry["type"]).startswith(("int", "uint")):
            found[entry["name"]] = draw.integers(int(low), int(high) + 1, shape)
        else:
            found[entry["name"]] = draw.uniform(low, high, shape).astype(np.float32)
    return found


def _by_name(example, inputs):
    """Arrays by the names of inputs, of whatever the user calls an example."""
    if not hasattr(example, "items"):
        parts = list(example) if isinstance(example, (list, tuple)) else [example]
        names = list(inputs) if inputs else ["input"] if len(parts) == 1 else ["input%d" % i for i in range(len(parts))]
        if len(names) != len(parts):
            raise NetmendInputError("inputs= names %d inputs, but the example has %d" % (len(names), len(parts)))
        return {name: to_numpy(part) for name, part in zip(names, parts)}
    missing = [name for name in inputs or [] if name not in example]
    if missing:
        raise NetmendInputError("The data has no input %r; it has %s" % (missing[0], ", ".join(example)))
    return {str(name): to_numpy(example[name]) for name in inputs or example}


# ---- export ----


def _export(source, example, path):
    if is_module(source):
        return _export_torch(source, example, path)
    if is_keras(source):
        return _export_keras(source, example, path)
    raise NetmendInputError("A %s is not a model" % type(source).__name__,
                            "Give an ONNX file, an onnx.ModelProto, a torch.nn.Module or a Keras model.")


class _Evaluating:
    """A module in evaluation mode, each part put back as it was afterwards."""

    def __init__(self, module):
        self.module = module

    def __enter__(self):
        self.modes = [(part, part.training) for part in self.module.modules()]
        self.module.eval()

    def __exit__(self, *unused):
        for part, mode in self.modes:
            part.training = mode


def _arguments(module, example):
    """The example as the module takes it: by position, or by name where it has parameters of these names."""
    torch = sys.modules["torch"]
    place = next((p.device for p in module.parameters()), torch.device("cpu"))
    tensors = {name: torch.from_numpy(np.ascontiguousarray(values)).to(place) for name, values in example.items()}
    try:
        known = inspect.signature(module.forward).parameters
    except (TypeError, ValueError):
        known = {}
    if len(tensors) < 2 or not all(name in known for name in tensors):
        return tensors, False
    return {name: tensors[name] for name in known if name in tensors}, True


def _export_torch(module, example, path):
    torch = sys.modules["torch"]
    tensors, by_name = _arguments(module, example)
    options = {"input_names": list(tensors), "opset_version": _OPSET, "do_constant_folding": True,
               "dynamic_axes": {name: {0: "batch"} for name in tensors}}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False  # the other exporter needs packages that few have
    given = ({**tensors},) if by_name else tuple(tensors.values())
    with _Evaluating(module), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module(**tensors) if by_name else module(*tensors.values())
        except Exception as error:
            raise NetmendInputError("The module fails on the first %d inputs: %s: %s"
                                    % (len(next(iter(tensors.values()))), type(error).__name__, _first_line(error)),
                                    "They are %s; choose inputs with Data(…, inputs=[…])."
                                    % ", ".join("%s %s%s" % (n, str(t.dtype).split(".")[-1], list(t.shape)) for n, t in tensors.items()))
        try:
            torch.onnx.export(module, given, path, **options)
        except ImportError as error:
            raise NetmendMissingError("PyTorch cannot export: %s (pip install onnx)" % error)
        except Exception as error:
            raise _not_exported(error)


def _not_exported(error):
    text = str(error)
    operator = re.search(r"operator '?([\w:.]+)'?", text) or re.search(r"(aten::\w+)", text)
    if operator:
        return NetmendInputError("The module cannot be exported to ONNX (opset %d): it uses %s, which PyTorch cannot export"
                                 % (_OPSET, operator.group(1)),
                                 "Write that step with other operators, move it into the preprocessing, or export the part before it.")
    return NetmendInputError("PyTorch cannot export the module: %s: %s" % (type(error).__name__, _first_line(error)),
                             "Export it yourself with torch.onnx.export and give the file.")


def _first_line(error):
    return (str(error).strip() or "no message").splitlines()[0][:300]


def _export_keras(model, example, path):
    try:
        import tf2onnx
    except ImportError:
        raise NetmendMissingError("Keras models are exported by tf2onnx, which is not installed: pip install tf2onnx, or give "
                                  "an ONNX file")
    import tensorflow as tf

    def signature(tensors):
        return [tf.TensorSpec([None] + list(t.shape[1:]), tf.as_dtype(t.dtype), name=n) for n, t in tensors.items()]

    try:
        names = [t.name.split(":")[0] for t in model.inputs] if getattr(model, "inputs", None) else list(example)
        specs = signature(dict(zip(names, example.values())))

        @tf.function(input_signature=specs)
        def call(*values):
            return model(values[0] if len(values) == 1 else list(values), training=False)

        tf2onnx.convert.from_function(call, input_signature=specs, opset=_OPSET, output_path=path)
    except NetmendError:
        raise
    except Exception as error:
        raise NetmendInputError("tf2onnx cannot export the model: %s: %s" % (type(error).__name__, _first_line(error)),
                                "Export it yourself and give the ONNX file.")


# ---- the file against the module ----


def _match(source, example, path, workspace):
    """What `netmend match` says of the export. Outputs that differ are a user's error: nothing that is found in the file
    would hold for the module."""
    recorded = workspace.path("reference.npz")
    batch = dict(example) if is_module(source) and _arguments(source, example)[1] else tuple(example.values())
    record = functools.partial(reference, source, [batch], recorded, n=_TRIED, inputs=list(example), batched=True)
    record(layers=False)
    answer = _program.run(["match", path, "--reference=" + recorded], progress=False)
    if answer.status == 0:
        return answer.document
    record(layers=True)
    found = _program.run(["match", path, "--reference=" + recorded, "--layers"], progress=False).document
    where = found.get("first_departure")
    raise NetmendInputError("The outputs of the exported file differ from those of the module: %s%s"
                            % (found.get("reason", ""), " (from %s on)" % where if where else ""),
                            "Model(module, data, match=False) continues anyway; `netmend match` shows more.")
