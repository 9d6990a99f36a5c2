"""netmend from Python: is this network tested well enough, what is wrong, where, why, and what repairs it?

Every command of the program is a function here: `nm.check(model, data)`, `nm.eval`, `nm.coverage`, `nm.locate`, `nm.repair` …
`help(nm.check)` shows its arguments, which are the program's flags. A model is an ONNX file, an onnx.ModelProto, a
torch.nn.Module or a Keras model; data is a spec, arrays, a DataLoader, a tf.data.Dataset, a DataFrame or a Hugging Face data set.

>>> import netmend as nm
>>> result = nm.eval("model.onnx", "glyphs:test", limit=500)
>>> result.passed, result.metric
(True, 'accuracy')
>>> x, y = np.random.default_rng(0).random((64, 1, 28, 28), np.float32), np.arange(64) % 10
>>> nm.eval("model.onnx", (x, y), anyway=True).samples
64
"""
from ._data import Data
from ._errors import (NetmendError, NetmendInputError, NetmendInternalError, NetmendMissingError, PatchError,
                      RecorderError)
from ._models import Model
from ._patching import patch_state_dict
from ._reference import reference
from ._results import Finding, Result
from ._saving import VERSION as __version__
from ._saving import save_data

save_data.reference = reference

__all__ = ["save_data", "patch_state_dict", "Data", "Model", "Result", "Finding", "NetmendError", "NetmendInputError",
           "NetmendInternalError", "NetmendMissingError", "RecorderError", "PatchError"]


def __getattr__(name):
    """The commands. They are asked of the program when the first one is used, so that save_data needs no program."""
    if name.startswith("_"):
        raise AttributeError(name)
    import importlib
    import importlib.util

    if importlib.util.find_spec("netmend." + name) is not None:
        return importlib.import_module("netmend." + name)
    from . import _commands, _gates

    functions = _commands.build()
    if "gate" in functions:
        functions["gate"] = _gates.with_limits(functions["gate"])
    globals().update((key, value) for key, value in functions.items() if key not in globals())
    if name not in globals():
        import difflib

        near = difflib.get_close_matches(name, list(functions), 1)
        raise AttributeError("netmend has no command %r%s" % (name, "; did you mean %s?" % near[0] if near else ""))
    return globals()[name]


def __dir__():
    try:
        from ._commands import build

        return sorted(set(globals()) | set(build()))
    except NetmendError:
        return sorted(globals())
