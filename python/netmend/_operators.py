"""Mutation operators for Python programs. The first eight are those of "How Do Injected Bugs Affect Deep Learning?" (Jia et al.,
SANER 2022), Table II; the others make the real faults of deep-learning programs. An operator is a function that yields, for a node,
replacements of a span: (first, end, text). `OPERATORS` is the table: a new operator is one row."""
import ast
import re

try:
    from . import _syntax
except ImportError:  # run as a script, beside an interpreter that may have no NumPy
    import _syntax

ARITHMETIC = {ast.Add: ("+", ["-"]), ast.Sub: ("-", ["+"]), ast.Mult: ("*", ["/"]), ast.Div: ("/", ["*", "%", "//"]),
              ast.Mod: ("%", ["/"]), ast.FloorDiv: ("//", ["/"])}
BITWISE = {ast.BitAnd: ("&", ["|", "^"]), ast.BitOr: ("|", ["&"]), ast.BitXor: ("^", ["&"]), ast.LShift: ("<<", [">>"]),
           ast.RShift: (">>", ["<<"])}
COMPARISON = {ast.Gt: (">", [">="]), ast.GtE: (">=", [">"]), ast.Lt: ("<", ["<="]), ast.LtE: ("<=", ["<"]),
              ast.Eq: ("==", ["!="]), ast.NotEq: ("!=", ["=="]), ast.Is: (r"is\b", ["is not"]),
              ast.IsNot: (r"is\s+not\b", ["is"])}
MEMBER = {ast.In: (r"in\b", ["not in"]), ast.NotIn: (r"not\s+in\b", ["in"])}
ASSIGNMENT = {ast.Add: ("+=", ["-=", "="]), ast.Sub: ("-=", ["+=", "="]), ast.Mult: ("*=", ["/=", "="]),
              ast.Div: ("/=", ["*=", "="])}


def pattern(word):
    return word if word.endswith(r"\b") else re.escape(word)


def between(source, left, right, word, choices):
    """The operator between two operands, replaced by each of the choices."""
    place = source.find_operator(source.span(left)[1], source.span(right)[0], pattern(word))
    if place:
        for choice in choices:
            yield (*place, choice)


def whole(source, node, *texts):
    first, end = source.span(node)
    for text in texts:
        yield first, end, text


def binary(table):
    def operator(source, node):
        if isinstance(node, ast.BinOp) and type(node.op) in table:
            yield from between(source, node.left, node.right, *table[type(node.op)])
    return operator


def comparisons(table):
    def operator(source, node):
        if isinstance(node, ast.Compare):
            left = node.left
            for op, right in zip(node.ops, node.comparators):
                if type(op) in table:
                    yield from between(source, left, right, *table[type(op)])
                left = right
    return operator


def logical(source, node):
    """and ↔ or; not ↔ nothing, in conditions that have no other operator of these."""
    if isinstance(node, ast.BoolOp):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:]):
            yield from between(source, left, right, word + r"\b", [other])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield source.span(node)[0], source.span(node)[1], f"({source.segment(node.operand)})"
    if isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(node.test, (ast.BoolOp, ast.Compare, ast.Constant)):
        if not (isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)):
            yield from whole(source, node.test, f"not ({source.segment(node.test)})")


def assignment(source, node):
    """`=` stays as it is: the paper's counts have few bugs of this operator, and a name's first `+=` would only be a NameError."""
    if isinstance(node, ast.AugAssign) and type(node.op) in ASSIGNMENT:
        yield from between(source, node.target, node.value, *ASSIGNMENT[type(node.op)])


def boolean(source, node):
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield from whole(source, node, "False" if node.value else "True")


def in_plain_code(node):
    """Not a part of an f-string or of a pattern, whose positions tell nothing."""
    return not _syntax.inside(node, (ast.JoinedStr,))


def signed(node):
    """The value of a number with its sign, which is an operator in Python's grammar; None for what is no number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = signed(node.operand) if isinstance(node.operand, ast.Constant) else None
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) in (int, float) else None


def number(source, node):
    value = signed(node)
    if value is None or not in_plain_code(node) or signed(node.parent) is not None:
        return
    first, end = source.span(node)
    if re.fullmatch(r"-?\s*\(*[0-9_.eExXa-fA-FoObB+-]+\)*", source.text[first:end]):
        apart = " " if re.match(r"\w", source.text[first - 1:first]) else ""  # `return-1`
        yield first, end, apart + repr(value + 1)


# ---- deep learning

TORCH_ACTIVATIONS = {"ReLU": "Sigmoid", "Sigmoid": "ReLU", "Tanh": "ReLU", "LeakyReLU": "Sigmoid", "ELU": "Sigmoid",
                     "GELU": "Sigmoid", "SELU": "Sigmoid"}
FUNCTIONS = {"relu": "sigmoid", "sigmoid": "relu", "tanh": "relu", "gelu": "sigmoid", "elu": "sigmoid", "leaky_relu": "sigmoid"}
KERAS_LAYERS = {"Identity": "linear", "Sigmoid": "sigmoid", "ReLU": "relu"}
NO_ACTIVATIONS = ("math", "cmath", "numpy", "np", "scipy")  # their tanh has no relu beside it
KERAS_NAMES = {"relu": "sigmoid", "sigmoid": "relu", "tanh": "relu", "elu": "sigmoid", "selu": "sigmoid", "gelu": "sigmoid",
               "softmax": "sigmoid"}


def keywords(node, *names):
    return [word for word in node.keywords if word.arg in names] if isinstance(node, ast.Call) else []


def own_name(source, node):
    """The last name of what is called, by the name that its library gives it; "" for what is no call."""
    if not isinstance(node, ast.Call):
        return ""
    return source.imported(node.func.id)[1] or node.func.id if isinstance(node.func, ast.Name) else _syntax.last_name(node)


HOMES = ("torch.nn.functional", "torch.nn.init", "torch.nn", "torch.optim")  # what stands in modules below is here too


def sibling(source, node, name):
    """An expression for `name` of the module that a call's function is of; "" when nobody can tell that module."""
    if isinstance(node.func, ast.Attribute):
        return f"{source.segment(node.func.value)}.{name}"
    if not isinstance(node.func, ast.Name):
        return ""
    module, _ = source.imported(node.func.id)
    if module.endswith(".*"):  # which brings the others too
        return name
    home = next((home for home in HOMES if (module + ".").startswith(home + ".")), module)
    return f'__import__("{home}", fromlist=["{name}"]).{name}' if module else ""


def of_keras(source, node):
    return bool(re.match(r"(tensorflow|tf|keras)\b", source.full_name(node)))


def layer(source, node, name):
    """A layer without settings from the library of another: a torch.nn class by its name, of Keras an Activation; "" for none."""
    if not of_keras(source, node):
        made = sibling(source, node, name)
        return made and made + "()"
    made = sibling(source, node, "Activation")
    return made and f'{made}("{KERAS_LAYERS[name]}")'


def attribute(source, node):
    """The span of the last name of `a.b.c`: what stands before it may have brackets that its own span does not show."""
    end = source.span(node)[1]
    return end - len(node.attr), end


def some(source, node, text):
    """The replacement of a whole node, where there is one."""
    if text:
        yield from whole(source, node, text)


def removed_activation(source, node):
    name = own_name(source, node)
    if name in TORCH_ACTIVATIONS:
        yield from some(source, node, layer(source, node, "Identity"))
    elif name in FUNCTIONS and node.args:
        yield from whole(source, node, f"({source.segment(node.args[0])})")
    elif name in FUNCTIONS and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        yield from whole(source, node, f"({source.segment(node.func.value)})")
    for word in keywords(node, "activation"):
        if not (isinstance(word.value, ast.Constant) and word.value.value is None):
            yield from whole(source, word.value, "None")


def replaced_activation(source, node):
    name = own_name(source, node)
    if name in TORCH_ACTIVATIONS:
        yield from some(source, node, layer(source, node, TORCH_ACTIVATIONS[name]))
    elif name in FUNCTIONS and source.full_name(node).split(".")[0] not in NO_ACTIVATIONS and (node.args or not node.keywords):
        other = sibling(source, node, FUNCTIONS[name])
        inputs = source.segment(node.args[0]) if node.args else ""  # what follows are settings of the first function
        yield from some(source, node, other and f"{other}({inputs})")
    for word in keywords(node, "activation"):
        if isinstance(word.value, ast.Constant) and word.value.value in KERAS_NAMES:
            yield from whole(source, word.value, repr(KERAS_NAMES[word.value.value]))


def added_activation(source, node):
    name = own_name(source, node)
    if name == "Linear" and own_name(source, node.parent) == "Sequential":
        added = layer(source, node, "Sigmoid")
        yield from some(source, node, added and f"{source.segment(node)}, {added}")
    if name in ("Dense", "Conv1D", "Conv2D") and not keywords(node, "activation") and (node.args or node.keywords):
        text = source.segment(node)
        yield from whole(source, node, text[:-1].rstrip().rstrip(",") + ', activation="sigmoid")')


def name_swap(table):
    """A call's last name, replaced by others."""
    def operator(source, node):
        for other in table.get(own_name(source, node), ()):
            if isinstance(node.func, ast.Attribute):
                yield (*attribute(source, node.func), other)
            else:
                yield from some(source, node.func, sibling(source, node, other))
    return operator


TORCH_LOSSES = {"CrossEntropyLoss": ["NLLLoss", "MultiMarginLoss"], "NLLLoss": ["CrossEntropyLoss"], "MSELoss": ["L1Loss"],
                "BCELoss": ["MSELoss"], "BCEWithLogitsLoss": ["MSELoss"], "L1Loss": ["MSELoss"],
                "cross_entropy": ["nll_loss", "multi_margin_loss"], "nll_loss": ["cross_entropy"], "mse_loss": ["l1_loss"],
                "binary_cross_entropy": ["mse_loss"], "binary_cross_entropy_with_logits": ["mse_loss"],
                "CategoricalCrossentropy": ["MeanSquaredError"], "BinaryCrossentropy": ["MeanSquaredError"]}
OPTIMISERS = {"SGD": ["Adam"], "Adam": ["SGD"], "AdamW": ["SGD"], "RMSprop": ["SGD"], "Adagrad": ["SGD"], "Adadelta": ["SGD"]}
NAMED_LOSSES = {"categorical_crossentropy": "mse", "sparse_categorical_crossentropy": "mse", "binary_crossentropy": "mse",
                "mse": "mae", "mean_squared_error": "mean_absolute_error"}
NAMED_OPTIMISERS = {"adam": "sgd", "sgd": "adam", "rmsprop": "sgd", "adagrad": "sgd", "adadelta": "sgd"}


def named_string(keyword, table):
    def operator(source, node):
        for word in keywords(node, keyword):
            if isinstance(word.value, ast.Constant) and isinstance(word.value.value, str) and word.value.value.lower() in table:
                yield from whole(source, word.value, repr(table[word.value.value.lower()]))
    return operator


def both(*operators):
    def operator(source, node):
        for one in operators:
            yield from one(source, node)
    return operator


def flag_names(node):
    """`batch_size` of `parser.add_argument("-b", "--batch-size", default=32)`."""
    if not isinstance(node, ast.Call) or _syntax.last_name(node) not in ("add_argument", "option"):
        return []
    words = [*node.args, *(word.value for word in keywords(node, "dest"))]
    return [word.value.lstrip("-").replace("-", "_").lower() for word in words
            if isinstance(word, ast.Constant) and isinstance(word.value, str)]


def setting(names, *changes):
    """A number that is given by keyword, assigned to a name, or a flag's default, changed in several ways."""
    def values(node):
        for word in keywords(node, *names):
            yield word.value
        if any(name in names for name in flag_names(node)):
            for word in keywords(node, "default"):
                yield word.value
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id.lower() in names:
                yield node.value

    def operator(source, node):
        for value in values(node):
            if isinstance(value, ast.Constant) and type(value.value) in (int, float):
                for change in changes:
                    changed = change(value.value)
                    if changed != value.value:
                        yield from whole(source, value, repr(changed))
    return operator


def optimiser_rate(source, node):
    """The rate as the second argument: `SGD(net.parameters(), 0.1)`, `Adam(1e-3)` of Keras."""
    if own_name(source, node) in OPTIMISERS:
        for value in node.args:
            if isinstance(value, ast.Constant) and isinstance(value.value, float):
                yield from whole(source, value, repr(value.value * 10), repr(value.value / 10))


def initialiser(source, node):
    name = own_name(source, node)
    if name.endswith("_") and name != "zeros_" and node.args and source.full_name(node).split(".")[-2:-1] == ["init"]:
        other = sibling(source, node, "zeros_")
        yield from some(source, node, other and f"{other}({source.segment(node.args[0])})")
    for word in keywords(node, "kernel_initializer", "bias_initializer"):
        yield from whole(source, word.value, '"zeros"')


NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "InstanceNorm2d")


def removed_norm(source, node):
    name = own_name(source, node)
    if name in NORMS:
        yield from some(source, node, layer(source, node, "Identity"))
    elif name == "Normalize":
        yield from whole(source, node, "(lambda x: x)")


def removed_shuffle(source, node):
    for word in keywords(node, "shuffle"):
        if isinstance(word.value, ast.Constant) and word.value.value is True:
            yield from whole(source, word.value, "False")
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _syntax.last_name(node.value) == "shuffle":
        yield from whole(source, node, "pass")
    name = own_name(source, node)
    if name in ("randperm", "permutation") and node.args:
        home = _syntax.called_name(node).split(".")[0]
        if source.full_name(node).split(".")[0] not in ("torch", "numpy", "np") or isinstance(node.func, ast.Name):
            home = '__import__("torch")' if name == "randperm" else '__import__("numpy")'  # generators have no arange
        yield from whole(source, node, f"{home}.arange({source.segment(node.args[0])})")


def scaling(source, node):
    """x / 255 missing, and by the wrong number; (x − mean) / std without its division."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        right = node.right
        constant = isinstance(right, ast.Constant) and right.value in (255, 127.5, 256, 128)
        spread = isinstance(right, ast.Call) and _syntax.last_name(right) == "std" or \
            isinstance(right, ast.Name) and "std" in right.id.lower()
        if constant or spread:
            yield from whole(source, node, f"({source.segment(node.left)})")
        if constant:
            yield from whole(source, right, repr(right.value / 10))


def is_loss_call(node):
    if not isinstance(node, ast.Call) or len(node.args) != 2:
        return False
    short = _syntax.last_name(node).lower()
    return ("loss" in short or "criterion" in short or "cross_entropy" in short)


def label_noise(source, node):
    """Labels that belong to other inputs: each batch's moved by one."""
    if is_loss_call(node):
        yield from whole(source, node.args[1], f"({source.segment(node.args[1])}).roll(1, 0)")
    if isinstance(node, ast.Call) and _syntax.last_name(node) == "fit" and len(node.args) >= 2:
        yield from whole(source, node.args[1], f"({source.segment(node.args[1])})[::-1]")


def removed_call(*names):
    def operator(source, node):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            if node.value.func.attr in names:
                yield from whole(source, node, "pass")
    return operator


def removed_eval(source, node):
    """`net.eval()` and what it stands for, `net.train(False)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        given = call.args + [word.value for word in call.keywords]
        off = [isinstance(value, ast.Constant) and value.value is False for value in given]
        if (call.func.attr, off) in (("eval", []), ("train", [True])):
            yield from whole(source, node, "pass")


REDUCTIONS = {"argmax", "softmax", "log_softmax", "sum", "mean", "max", "min", "cat", "stack", "concatenate", "squeeze", "std"}


def wrong_axis(source, node):
    def other(value):
        return "0" if value != 0 else "1"
    for word in keywords(node, "dim", "axis"):
        if isinstance(word.value, ast.Constant) and type(word.value.value) is int:
            yield from whole(source, word.value, other(word.value.value))
    if isinstance(node, ast.Call) and _syntax.last_name(node) in REDUCTIONS and node.args:
        value = node.args[-1]
        if isinstance(value, ast.Constant) and type(value.value) is int:
            yield from whole(source, value, other(value.value))
        if isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant):
            yield from whole(source, value, "0")


CASTS = {"float": "double", "double": "float", "long": "int", "half": "float"}
TYPES = {"float32": "float64", "float64": "float32", "int64": "int32", "float": "float64", "long": "int32", "int32": "int64",
         "float16": "float32"}


def wrong_dtype(source, node):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CASTS and not node.args:
        yield (*attribute(source, node.func), CASTS[node.func.attr])
    if isinstance(node, ast.Attribute) and node.attr in TYPES and isinstance(node.value, ast.Name):
        if node.value.id in ("torch", "np", "numpy", "tf"):
            yield (*attribute(source, node), TYPES[node.attr])
    if isinstance(node, ast.Call) and _syntax.last_name(node) == "astype" and node.args:
        value = node.args[0]
        if isinstance(value, ast.Constant) and value.value in TYPES:
            yield from whole(source, value, repr(TYPES[value.value]))


def slice_off_by_one(source, node):
    if not isinstance(node, ast.Slice):
        return
    first, end = source.span(node)
    colon = source.find_operator(source.span(node.lower)[1] if node.lower else first, end, ":")
    if not colon:
        return
    if node.lower is not None:
        yield from whole(source, node.lower, f"({source.segment(node.lower)}) + 1")
    elif node.upper is not None or node.step is None:
        yield colon[0], colon[0], "1"
    if node.upper is not None:
        yield from whole(source, node.upper, f"({source.segment(node.upper)}) - 1")


RATE = ("lr", "learning_rate")
BATCH = ("batch_size", "batch", "bs")
EPOCHS = ("epochs", "n_epochs", "num_epochs", "nb_epoch")

# name, from the paper's Table II or not, what it does, function
OPERATORS = [
    ("ArOR", True, "arithmetic operator replaced", binary(ARITHMETIC)),
    ("BitOR", True, "bitwise operator replaced", binary(BITWISE)),
    ("ComOR", True, "comparison replaced", comparisons(COMPARISON)),
    ("LogOR", True, "logical operator replaced, removed or added", logical),
    ("AsOR", True, "assignment operator replaced", assignment),
    ("MemOR", True, "in and not in swapped", comparisons(MEMBER)),
    ("BVR", True, "True and False swapped", boolean),
    ("NVR", True, "number plus 1", number),
    ("activation-removed", False, "activation function removed", removed_activation),
    ("activation-replaced", False, "activation function replaced", replaced_activation),
    ("activation-added", False, "activation function added", added_activation),
    ("loss-replaced", False, "loss replaced", both(name_swap(TORCH_LOSSES), named_string("loss", NAMED_LOSSES))),
    ("optimiser-replaced", False, "optimiser replaced", both(name_swap(OPTIMISERS), named_string("optimizer", NAMED_OPTIMISERS))),
    ("rate-changed", False, "learning rate times or divided by 10",
     both(setting(RATE, lambda x: x * 10, lambda x: x / 10), optimiser_rate)),
    ("batch-changed", False, "batch size a quarter or four times",
     setting(BATCH, lambda x: max(1, int(x) // 4), lambda x: int(x) * 4)),
    ("epochs-changed", False, "one epoch", setting(EPOCHS, lambda x: 1)),
    ("initialiser-replaced", False, "weights start at zero", initialiser),
    ("normalisation-removed", False, "normalisation removed", removed_norm),
    ("shuffle-removed", False, "data in order", removed_shuffle),
    ("scaling-wrong", False, "scaling missing or by the wrong number", scaling),
    ("label-noise", False, "labels that belong to other inputs", label_noise),
    ("zero-grad-removed", False, "gradients are never cleared", removed_call("zero_grad")),
    ("eval-removed", False, "the network stays in training mode", removed_eval),
    ("wrong-axis", False, "another axis", wrong_axis),
    ("wrong-dtype", False, "another element type", wrong_dtype),
    ("slice-off-by-one", False, "slice one element short", slice_off_by_one),
]


def sites(source, names):
    """All replacements in a program: (operator, line, column, index, first, end, text), in the order of the source. Docstrings,
    annotations and imports have none that matter and are passed over."""
    chosen = [(name, function) for name, _, _, function in OPERATORS if name in names]
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for name, function in chosen:
            seen = 0
            for first, end, text in function(source, node):
                if source.text[first:end] == text:
                    continue
                line = source.line_of(first)
                found.append((name, line, first - source.starts[line - 1], seen, first, end, text, node))
                seen += 1
    found.sort(key=lambda one: (one[4], one[5], [row[0] for row in OPERATORS].index(one[0]), one[3]))
    return found
