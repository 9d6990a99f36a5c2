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
from ._errors import (NetmendError, NetmendInputError, NetmendInternalError, NetmendMissingError, PatchError,
                      RecorderError)
from ._version import VERSION as __version__

# Loaded when they are used: the command `netmend` of the wheel passes through here and should not wait for NumPy.
_HOMES = {"save_data": "_saving", "patch_state_dict": "_patching", "Data": "_data", "Model": "_models", "Result": "_results",
          "Finding": "_results"}

__all__ = ["save_data", "patch_state_dict", "Data", "Model", "Result", "Finding", "NetmendError", "NetmendInputError",
           "NetmendInternalError", "NetmendMissingError", "RecorderError", "PatchError"]


def __getattr__(name):
    import importlib
    import importlib.util

    if name in _HOMES:
        globals()[name] = getattr(importlib.import_module("netmend." + _HOMES[name]), name)
        return globals()[name]
    if name.startswith("_"):
        raise AttributeError(name)
    found = importlib.util.find_spec("netmend." + name)
    if found is not None and found.submodule_search_locations:  # a part for Python, such as watch, goes before the command
        return importlib.import_module("netmend." + name)
    functions = _functions()
    if name not in functions and found is not None:
        return importlib.import_module("netmend." + name)
    if name not in functions:
        import difflib

        near = difflib.get_close_matches(name, list(functions), 1)
        raise AttributeError("netmend has no command %r%s" % (name, "; did you mean %s?" % near[0] if near else ""))
    globals()[name] = functions[name]
    return functions[name]


def _functions():
    """The commands, as the program describes them; asked once."""
    global _made
    try:
        return _made
    except NameError:
        from ._commands import build

        _made = build()
        return _made


def __dir__():
    try:
        return sorted(set(globals()) | set(_HOMES) | set(_functions()))
    except NetmendError:
        return sorted(set(globals()) | set(_HOMES))
