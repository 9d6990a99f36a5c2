"""Anything that holds numbers, as a NumPy array, without importing the framework it came from."""
import numpy as np

from ._errors import RecorderError


def is_torch(value):
    """Whether the value is a torch tensor. Asks its type, so that torch is never imported on our account."""
    return any(c.__module__ == "torch" and c.__name__ == "Tensor" for c in type(value).__mro__)


def is_array(value):
    """Whether the value has axes of its own: an array or a tensor, not a list or a number."""
    return hasattr(value, "shape") and not isinstance(value, np.generic) and not callable(value.shape)


def to_numpy(value):
    """A little-endian array, which may share memory with the value. Nested lists become arrays too."""
    if is_torch(value):
        value = value.detach()
        if value.layout is not _strided(value):
            value = value.to_dense()
        if str(value.dtype) == "torch.bfloat16":  # NumPy has no such type; every value fits a float32
            value = value.float()
        array = value.cpu().numpy()
    elif hasattr(value, "numpy") and callable(value.numpy) and not isinstance(value, np.ndarray):
        array = np.asarray(value.numpy())
    else:
        array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and not np.little_endian):
        array = array.astype(array.dtype.newbyteorder("<"))
    return array


def _strided(tensor):
    import sys

    return sys.modules["torch"].strided


def numbers(value, where):
    """The same for what must be numbers: words and lists of unequal lengths are refused."""
    try:
        array = to_numpy(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise RecorderError("cannot make an array of a %s: %s" % (type(value).__name__, error), where,
                            "give arrays, tensors or lists of numbers; leave other columns out with inputs=[...]")
    if array.dtype.kind not in "biuf":
        raise RecorderError("values of type %s are not numbers a network can take" % array.dtype, where,
                            "turn them into numbers first, or leave this input out with inputs=[...]")
    return array
