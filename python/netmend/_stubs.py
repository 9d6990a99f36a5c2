"""Type hints of the functions that are made at run time: python -m netmend._stubs FILE writes the stub file of the package."""
import inspect
import sys

from ._commands import Command, _python_name, describe

_HEAD = '''# Made of the program's description of its commands; do not edit.
import os
from typing import Any, Callable, Dict, List, Literal, Optional, Sequence, Tuple, Union

from ._data import Data as Data
from ._errors import NetmendError as NetmendError
from ._errors import NetmendInputError as NetmendInputError
from ._errors import NetmendInternalError as NetmendInternalError
from ._errors import NetmendMissingError as NetmendMissingError
from ._errors import PatchError as PatchError
from ._errors import RecorderError as RecorderError
from ._models import Model as Model
from ._patching import patch_state_dict as patch_state_dict
from ._results import Finding as Finding
from ._results import Result as Result
from ._saving import save_data as save_data

__version__: str
Text = Union[str, int, float]
Path = Union[str, os.PathLike[str]]
ModelLike = Union[str, os.PathLike[str], Model, Any]  # an onnx.ModelProto, a torch.nn.Module, a Keras model
DataLike = Union[str, os.PathLike[str], Data, Any]  # arrays, loaders, data sets, tables
'''


def _written(command, method):
    signature = command.signature()
    parameters, star = (["self"] if method else []), False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parameters.append("*")
            star = True
        default = "" if parameter.default is inspect.Parameter.empty else " = ..."
        parameters.append("%s: %s%s" % (parameter.name, parameter.annotation, default))
    if command.name == "gate":
        parameters += ["limits: Optional[Dict[str, str]] = ...", "**more_limits: str"]
    result = "Any" if command.name == "gate" else "Result"  # a decorator where no model is given
    indent = "    " if method else ""
    doc = command.about.replace("\\", "\\\\").replace('"', '\\"')
    return "%sdef %s(%s) -> %s:\n%s    \"%s.\"\n" % (indent, command.function_name(), ", ".join(parameters), result, indent, doc)


def text(document=None):
    groups, top = {}, []
    for entry in (document or describe())["commands"]:
        command = Command(entry)
        if len(command.words) == 1:
            top.append(_written(command, False))
        else:
            groups.setdefault(tuple(command.words[:-1]), []).append(_written(command, True))
            for depth in range(1, len(command.words) - 1):
                groups.setdefault(tuple(command.words[:depth]), [])
    classes = []
    for path in sorted(groups, key=len, reverse=True):
        inner = ["    %s: %s\n" % (_python_name(other[-1]), _class(other)) for other in groups if other[:-1] == path]
        classes.append("class %s:\n%s" % (_class(path), "".join(inner + groups[path])))
    tops = ["%s: %s\n" % (_python_name(path[0]), _class(path)) for path in groups if len(path) == 1]
    return _HEAD + "\n" + "\n".join(top) + "\n" + "\n".join(classes) + "\n" + "".join(tops)


def _class(path):
    return "_" + "".join(word.capitalize() for word in path)


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text())
