"""Source of Python programs with its positions: reading files in any encoding and code cells of notebooks, the tree, exact offsets
of nodes and operators, statements and the lines they own. Needs nothing but Python's standard library, so that it runs as a plain
script beside any interpreter from 3.9 on."""
import ast
import bisect
import functools
import io
import re
import tokenize

try:
    from . import _files
except ImportError:
    import _files


class Unreadable(Exception):
    """The program cannot be read; the text is a sentence for its user."""


class Source:
    """A program's text, its lines and its tree. Offsets count characters of `text`."""

    def __init__(self, path, text, encoding, newline="\n"):
        self.path, self.text, self.encoding, self.newline = path, text, encoding, newline
        self.lines = text.split("\n")
        self.starts, self.columns = [0], {}
        for line in self.lines[:-1]:
            self.starts.append(self.starts[-1] + len(line) + 1)
        try:
            self.tree = ast.parse(text)
        except (RecursionError, MemoryError):  # Python's parser says either
            raise Unreadable(f"{path}: it is nested too deeply for this interpreter") from None
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            raise Unreadable(f"{path}{f', line {line}' if line else ''}: not valid Python for this interpreter: "
                             f"{getattr(error, 'msg', error)}") from None
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node

    def offset(self, line, column):
        """The character at a 1-based line and a column in bytes of UTF-8, as `ast` counts."""
        text = self.lines[line - 1]
        if text.isascii():
            return self.starts[line - 1] + column
        if line not in self.columns:  # of each byte, the character: a line may be asked about once for each of its words
            counts = [len(one.encode()) for one in text]
            self.columns[line] = [at for at, count in enumerate(counts) for _ in range(count)] + [len(text)]
        return self.starts[line - 1] + self.columns[line][column]

    def span(self, node):
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node):
        first, end = self.span(node)
        return self.text[first:end]

    def line_of(self, offset):
        low, high = 0, len(self.starts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle - 1)
        return low + 1

    def find_operator(self, first, end, word):
        """Where an operator stands between two operands: comments, brackets and line ends are passed over."""
        at = first
        while at < end:
            if self.text[at] == "#":
                at = self.text.find("\n", at, end)
                at = end if at < 0 else at
            elif hit := re.compile(word).match(self.text, at, end):
                return at, hit.end()
            else:
                at += 1
        return None

    @functools.cached_property
    def bound(self):
        """Where each imported name comes from: (module, name there); of modules themselves the name is "". Both are empty for names
        that the program defines, or imports by relation. Under "*" stands the library's module all of which is imported, if any."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for one in node.names:
                    own = node.level > 0 or one.name == "*" and node.module.split(".")[0] not in ("torch", "tensorflow", "keras")
                    found[one.asname or one.name] = ("", "") if own else (node.module, one.name)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    found[one.asname or one.name.split(".")[0]] = (one.name if one.asname else one.name.split(".")[0], "")
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found[node.name] = ("", "")
        return found

    def imported(self, name):
        """(module, name there) of a bare name, both empty where it is not imported; the module is `torch.nn.*` when only an import
        of all that this module has can have brought it."""
        module, there = self.bound.get(name, (None, ""))
        if module is None:
            module = self.bound.get("*", ("", ""))[0]
            return (module + ".*", name) if module else ("", "")
        return (module, there) if there else ("", "")

    def full_name(self, call):
        """`torch.nn.ReLU` of `nn.ReLU()`, as imports tell; as it is written where they do not."""
        first, _, rest = called_name(call).partition(".")
        module, name = self.bound.get(first, self.imported(first))
        return ".".join(part for part in (module.removesuffix(".*"), name, rest) if part) if module else called_name(call)

    def encode(self, text):
        return text.replace("\n", self.newline).encode(self.encoding)


def notebook_text(path, raw):
    """The code cells of a notebook one behind the other; lines for the notebook itself (%magic, !shell) become comments."""
    try:
        cells = _files.parse_json(raw)["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable(f"{path}: not a notebook that can be read") from None
    lines = []
    for number, cell in enumerate(code):
        lines.append(f"# cell {number + 1}")
        lines += [("# " + line) if line.lstrip().startswith(("%", "!")) else line for line in cell.split("\n")]
    return "\n".join(lines) + "\n"


def read_source(path):
    """A .py file in the encoding that it declares, or a notebook. Raises Unreadable."""
    notebook = str(path).endswith(".ipynb")
    try:
        raw = _files.read_bytes(path, _files.MOST_JSON) if notebook else _files.read_program(path)
        if notebook:
            text = notebook_text(path, raw)
            _files.bounded_program(text.encode("utf-8", "replace"))
            return Source(path, text, "utf-8")
    except _files.Unfit as error:
        raise Unreadable(f"{path}: {error}") from None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise Unreadable(f"{path}: cannot be decoded: {error}") from None
    newline = "\r\n" if "\r\n" in text else "\n"
    return Source(path, text.replace("\r\n", "\n").replace("\r", "\n"), encoding, newline)


def called_name(node):
    """`torch.nn.Linear` of a call, `step` of `opt.step()` as `opt.step`; "" for what is not a name."""
    parts, at = [], node.func if isinstance(node, ast.Call) else node
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        parts.append(at.id)
    elif not parts:
        return ""
    return ".".join(reversed(parts))


def last_name(node):
    return called_name(node).rsplit(".", 1)[-1]


def statement_of(node):
    """The innermost statement that holds a node."""
    while not isinstance(node, ast.stmt):
        node = node.parent
    return node


def header_lines(statement):
    """Lines of a statement without those of statements inside it."""
    last = statement.end_lineno
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(statement, name, None)
        if isinstance(inner, list) and inner and hasattr(inner[0], "lineno"):
            last = min(last, inner[0].lineno - 1)
    return range(statement.lineno, max(statement.lineno, last) + 1)


def inside(node, kinds):
    """Whether a node stands in one of these kinds of nodes."""
    while hasattr(node, "parent"):
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


# ---- phases of a training program

PHASES = ("preprocessing", "construction", "learning")
_MARK = re.compile(r"#\s*netmend:\s*(preprocessing|construction|learning)\b")
_LEARNING = {"fit", "fit_generator", "backward", "step", "zero_grad", "train_on_batch", "evaluate", "predict", "train", "eval",
             "train_step", "minimize", "argmax"}
_CONSTRUCTION = re.compile(r"(^|\.)(nn|layers|optim|optimizers|models|losses|Module|Sequential|Model)(\.|$)|"
                           r"(Loss|Optimizer|Linear|Dense|Conv\d[dD]|LSTM|GRU|Embedding|SGD|Adam\w*|RMSprop)$|(^|\.)compile$")


def _calls(node):
    return [called_name(inner) for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _phase_of(statement):
    """By the calls of a statement; None when they do not tell."""
    if isinstance(statement, ast.ClassDef):
        bases = [called_name(base) for base in statement.bases]
        return "construction" if any(base.endswith(("Module", "Model", "Layer")) for base in bases) else None
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Import, ast.ImportFrom)):
        return None
    calls = _calls(statement)
    if any(name.rsplit(".", 1)[-1] in _LEARNING for name in calls):
        return "learning"
    return "construction" if any(_CONSTRUCTION.search(name) for name in calls) else None


def phase_lines(source):
    """The phase of every line that drives the program: module-level code and the functions that it only hands over to. Marks
    `# netmend: learning` hold until the next mark; without marks calls tell."""
    marks = {number: hit.group(1) for number, line in enumerate(source.lines, 1) if (hit := _MARK.search(line))}
    functions = {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}
    lines, state = {}, {"phase": "preprocessing", "open": set()}

    places = sorted(marks)

    def marked(line):
        at = bisect.bisect_right(places, line)
        return marks[places[at - 1]] if at else "preprocessing"

    def hand_over(statement):
        """The function that a statement does nothing but call."""
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return functions.get(value.func.id)
        return None

    def walk(statements, depth):
        for statement in statements:
            target = hand_over(statement)
            if target is not None and depth < 4 and target.name not in state["open"]:
                state["open"].add(target.name)
                walk(target.body, depth + 1)
                continue
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if isinstance(statement, ast.ClassDef) and marks:
                lines[statement.lineno] = marked(statement.lineno)  # its methods run in the phase that calls them
                walk(statement.body, depth)
                continue
            if isinstance(statement, (ast.If, ast.With, ast.Try)) and not marks:
                walk(statement.body + getattr(statement, "orelse", []), depth)
                continue
            if not marks:
                state["phase"] = _phase_of(statement) or state["phase"]
            last = statement.lineno if isinstance(statement, ast.ClassDef) else statement.end_lineno
            for line in range(statement.lineno, last + 1):
                lines[line] = marked(line) if marks else state["phase"]

    walk(source.tree.body, 0)
    return lines
