"""Functions for the program's commands, made of the program's own description of them (netmend lab commands --json), so
that names, defaults and help are the program's."""
import difflib
import hashlib
import inspect
import json
import keyword
import os
import re
import shlex

from . import _program
from ._data import Data, spec_of
from ._errors import NetmendInputError, NetmendInternalError
from ._files import Unfit, read_json
from ._gates import with_limits
from ._models import model_file
from ._results import result_of
from ._workspace import Workspace

_OURS = ("json", "wide", "quiet")  # flags that make no difference here
_EVERYWHERE = ("config", "out", "seed", "jobs", "device", "precision", "memory")
_TYPES = {"flag": "bool", "int": "int", "float": "float", "text": "str"}


def describe():
    """All commands: the document beside the program where its package has one, else asked of the program and kept."""
    path = os.path.realpath(_program.program())
    folder = os.path.dirname(path)
    for kept in (os.path.join(folder, "commands.json"), os.path.join(folder, "..", "share", "netmend", "commands.json")):
        if os.path.exists(kept):
            return _read(kept)
    engine = os.path.join(os.path.dirname(path), "netmend-engine")
    about = os.stat(engine if os.path.exists(engine) else path)
    name = hashlib.sha256(("%s %d %d" % (path, about.st_mtime_ns, about.st_size)).encode()).hexdigest()[:16]
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "netmend")
    kept = os.path.join(cache, "commands-%s.json" % name)
    if os.path.exists(kept):
        try:
            return _read(kept)
        except NetmendInternalError:
            pass  # somebody else's, or half a file: it is made again
    document = _program.run(["lab", "commands"], progress=False).document
    try:
        os.makedirs(cache, exist_ok=True)
        with open("%s.%d" % (kept, os.getpid()), "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.replace("%s.%d" % (kept, os.getpid()), kept)
    except OSError:
        pass  # a home that cannot be written to: half a second more each time
    return document


def _read(path):
    try:
        document = read_json(path, 16 << 20)
    except Unfit as error:
        raise NetmendInternalError("%s cannot be read: %s" % (path, error)) from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != ("netmend-commands", 1) or \
            not isinstance(document.get("commands"), list):
        raise NetmendInternalError("%s is not a description of netmend's commands" % path)
    return document


class Option:
    """An argument of a command under Python's name for it."""

    def __init__(self, entry):
        self.entry = entry
        self.positional = not entry["flags"]
        self.role, self.kind = entry.get("role", ""), entry["type"]
        self.list = bool(entry.get("list"))
        self.required = entry["required"]
        names = [flag.lstrip("-") for flag in entry["flags"]] or [entry["name"]]
        self.names = [_python_name(name) for name in names]
        self.name = self.names[0]
        # What a command makes: where a file must be named, Python may leave it out and finds it in the result. The edits
        # of a repair are always kept, because they can be applied to a module.
        self.made_up = self.role == "product" and (self.required or self.name == "plan")

    def default(self):
        """As Python writes it, for people: what is not given is not passed on, so the program's default counts."""
        text = self.entry.get("default")
        if self.kind == "flag":
            return False
        if text is None or self.list:
            return None
        try:
            return {"int": int, "float": float}.get(self.kind, str)(text)
        except ValueError:
            return text

    def hint(self):
        one = {"model": "ModelLike", "data": "DataLike"}.get(self.role, _TYPES[self.kind])
        if self.entry.get("choices"):
            one = "Literal[%s]" % ", ".join(repr(c) for c in self.entry["choices"])
        elif one == "str":
            one = "Path" if self.role else "Text"
        if self.list:
            one = "Union[%s, Sequence[%s]]" % (one, one)
        return one if self.kind == "flag" else "Optional[%s]" % one

    def words(self, value, workspace, limit):
        if value is None or (self.kind == "flag" and not value):
            return []
        if self.kind == "flag":
            if value is not True:
                raise NetmendInputError("%s=%r: this is either True or False" % (self.name, value))
            return [self.entry["flags"][0]]
        several = value if self.list and isinstance(value, (list, tuple)) else [value]
        words = []
        flag = next(iter(self.entry["flags"]), None)
        if flag is None and self.list and any(str(one).startswith("-") for one in several):
            return ["--"] + [self._text(one, workspace, limit) for one in several]  # a program's own options
        for one in several:
            text = self._text(one, workspace, limit)
            if flag is None:
                words.append("./" + text if text.startswith("-") else text)
            elif flag.startswith("--"):
                words.append("%s=%s" % (flag, text))
            else:
                words += [flag, "./" + text if text.startswith("-") else text]
        return words

    def _text(self, value, workspace, limit):
        if self.role == "data":
            return spec_of(value, workspace, limit)
        if self.role == "model":
            return model_file(value, workspace)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) and not hasattr(value, "item"):
            raise NetmendInputError("%s is a %s" % (self.name, type(value).__name__),
                                    "Give a %s%s." % (_TYPES[self.kind], " or a list of them" if self.list else ""))
        text = str(value.item() if hasattr(value, "item") and not isinstance(value, str) else value)
        if "\0" in text:
            raise NetmendInputError("%s holds a NUL character" % self.name)
        return text


def _python_name(name):
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


class Command:
    """One command: its options in the order of Python's parameters."""

    def __init__(self, entry):
        self.words = entry["name"].split()
        self.name, self.about, self.examples = entry["name"], entry["about"], entry["examples"]
        options = [Option(o) for o in entry["options"] if o["name"] not in _OURS]
        first = [o for o in options if o.positional]
        first += [o for o in options if o.name == "data" and not o.positional]
        rest = [o for o in options if o not in first]
        self.options = first + sorted(rest, key=lambda o: o.name in _EVERYWHERE)
        self.first = len(first)
        self.by_name = {name: option for option in self.options for name in option.names}

    def function_name(self):
        return _python_name(self.words[-1])

    def signature(self):
        parameters = []
        for number, option in enumerate(self.options):
            # Only what the program must have, and what stands before it, is without a default.
            must = option.required and not option.made_up and (number < self.first or not option.positional)
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if number < self.first else inspect.Parameter.KEYWORD_ONLY
            if number < self.first and any(p.default is not inspect.Parameter.empty for p in parameters):
                must = False
            default = inspect.Parameter.empty if must else option.default()
            parameters.append(inspect.Parameter(option.name, kind, default=default, annotation=option.hint()))
        parameters.append(inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=None,
                                            annotation="Optional[bool]"))
        return inspect.Signature(parameters, return_annotation="Result")

    def bind(self, args, kwargs):
        """The arguments by the options' names; Python's own error for what does not fit, with the nearest name."""
        named = {}
        for name, value in kwargs.items():
            option = self.by_name.get(name)
            if option is None and name != "progress":
                near = difflib.get_close_matches(name, list(self.by_name), 1)
                raise TypeError("netmend.%s() has no argument %r%s; it has %s"
                                % (".".join(self.words), name, " (did you mean %s?)" % near[0] if near else "",
                                   ", ".join(o.name for o in self.options)))
            named[option.name if option else name] = value
        return self.signature().bind(*args, **named).arguments

    def run(self, given):
        workspace = Workspace()
        progress = given.pop("progress", None)
        limit = given.get("limit")
        words, made, later, last = list(self.words), {}, [], []
        # Data first: a module is exported for the inputs that its data has.
        order = sorted(self.options, key=lambda o: (o.role == "model", not o.positional))
        placed = {}
        for option in order:
            value = given.get(option.name)
            if value is None and option.made_up:
                value = made[option.name] = workspace.path(_product_name(self.name, option))
            placed[option] = option.words(value, workspace, limit)
        for option in self.options:
            (last if placed[option][:1] == ["--"] else words if option.positional else later).extend(placed[option])
        words += later + last
        answer = _program.run(words, progress)
        return result_of(self.name, words, answer, workspace, given, made)

    def function(self):
        def call(*args, **kwargs):
            return self.run(dict(self.bind(args, kwargs)))

        call.__name__ = self.function_name()
        call.__qualname__ = ".".join(_python_name(word) for word in self.words)
        call.__module__ = "netmend"
        call.__doc__ = self.doc()
        call.__signature__ = self.signature()
        call.command = self
        return call

    def doc(self):
        lines = [self.about + ".", ""]
        for option in self.options:
            default = option.entry.get("default")
            lines.append("%s: %s%s" % (option.name, option.entry["about"], " (default: %s)" % default if default else ""))
        lines.append("progress: True or False: show a bar, or do not (default: only on a terminal or in a notebook)")
        calls = [call for call in (self.python_call(words) for words in self.example_words()) if call]
        if calls:
            lines += ["", "Examples:"] + ["    " + call for call in calls]
        return "\n".join(lines)

    def example_words(self):
        """The lines of the examples that call this command, as words without `netmend` and its name."""
        for line in self.examples.splitlines():
            for part in line.split("&&"):
                try:
                    words = shlex.split(part)
                except ValueError:
                    continue
                head = ["netmend"] + self.words
                if words[:len(head)] == head:
                    yield words[len(head):]

    def python_call(self, words):
        """The same call in Python; None where the words are not all options of ours."""
        first, named, places = [], [], [o for o in self.options if o.positional]
        flags = {flag: option for option in self.options for flag in option.entry["flags"]}
        words = list(words)
        while words:
            word = words.pop(0)
            if word == "--":  # what follows belongs to a program
                first += [(places[0], one) for one in words]
                break
            if not word.startswith("-"):
                first.append((places[0], word))
                if not places[0].list:
                    places.pop(0)
                continue
            flag, equals, value = word.partition("=")
            option = flags.get(flag)
            if option is None:
                if flag.lstrip("-") in _OURS:
                    continue
                return None
            values = [value] if equals or option.kind == "flag" else [words.pop(0)]
            while option.list and not equals and words and not words[0].startswith("-"):
                values.append(words.pop(0))
            literals = ["True"] if option.kind == "flag" else [_literal(option, one) for one in values]
            named.append("%s=%s" % (option.name, literals[0] if len(literals) == 1 else "[%s]" % ", ".join(literals)))
        several = [_literal(option, word) for option, word in first if option.list]
        given = [_literal(option, word) for option, word in first if not option.list]
        given += ["[%s]" % ", ".join(several)] if several else []
        return "nm.%s(%s)" % (".".join(_python_name(word) for word in self.words), ", ".join(given + named))


def _literal(option, text):
    if option.kind in ("int", "float") and re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _product_name(command, option):
    """A file for what the user did not name, by what the command makes."""
    about = option.entry["about"].lower()
    ending = "npz" if "npz" in about else "csv" if "csv" in about else "json" if "json" in about else "onnx"
    return "%s-%s.%s" % (command.replace(" ", "-"), option.name, ending)


class Group:
    """Commands that stand under one word: nm.lab."""

    def __init__(self, name):
        self.__name__ = name

    def __repr__(self):
        return "<commands of netmend %s: %s>" % (self.__name__, ", ".join(k for k in vars(self) if not k.startswith("_")))


def build(document=None):
    """All functions by name, groups as objects with functions."""
    top = {}
    for entry in (document or describe())["commands"]:
        command = Command(entry)
        place = top
        for number, word in enumerate(command.words[:-1]):
            name = _python_name(word)
            group = place.setdefault(name, Group(" ".join(command.words[:number + 1])))
            place = vars(group)
        place[command.function_name()] = command.function()
    if "gate" in top:
        top["gate"] = with_limits(top["gate"])
    return top
