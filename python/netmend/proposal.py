"""Proposes edits of a training program for what the doctor found in its run, where the edit is plain. Nothing is written: the
answer is a unified diff. `netmend heal` runs it; it needs nothing but Python 3.9.

usage: python proposal.py PROGRAM FINDINGS      FINDINGS: {"findings": […]} as `netmend diagnose --json` has it
prints {"diff": "…", "edits": [{"kind", "line", "what"}], "left": [kinds that no plain edit answers]} as JSON, or {"error": "…"}
"""
import ast
import difflib
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _files  # noqa: E402
from lint import CROSS, constant, keyword, name_of, owner_of, text_of, written  # noqa: E402

OPTIMIZERS = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Nadam", "Adamax"}
ACTIVATED = ("Dense", "Conv1D", "Conv2D", "Conv3D", "SimpleRNN", "LSTM", "GRU")


class Editor:
    """Replaces text by places of the syntax tree; each place at most once."""

    def __init__(self, file, text):
        self.file, self.text, self.edits, self.said = file, text, [], []
        bare = text.removeprefix("\ufeff")
        self.tree = ast.parse(bare, file)
        self.nodes = list(ast.walk(self.tree))
        self.calls = sorted((node for node in self.nodes if isinstance(node, ast.Call)), key=lambda call: (call.lineno, call.col_offset))
        data = self.text.encode()
        self.starts = [len(data) - len(bare.encode())] + [end.end() for end in re.finditer(rb"\r\n|\r|\n", data)]

    def span(self, node):
        return (self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset)

    def replace(self, node, new, kind, what):
        return self.put(*self.span(node), new, kind, node.lineno, what)

    def put(self, start, end, new, kind, line, what):
        if any(not (end <= a or start >= b) if start != end else a < start < b for a, b, _ in self.edits):
            return False
        self.edits.append((start, end, new))
        self.said.append({"kind": kind, "line": line, "what": what})
        return True

    def before(self, node, lines, kind, what):
        """Lines before the statement, indented as it is."""
        start = self.starts[node.lineno - 1]
        margin = self.text.encode()[start:start + node.col_offset].decode()
        if margin.strip():
            return False
        return self.put(start, start, "".join(margin + line + "\n" for line in lines), kind, node.lineno, what)

    def source(self, node):
        start, end = self.span(node)
        return self.text.encode()[start:end].decode()

    def result(self):
        data, pieces, at = self.text.encode(), [], 0
        for start, end, new in sorted(self.edits):
            pieces += [data[at:start], new.encode()]
            at = end
        return b"".join(pieces + [data[at:]]).decode()

    def statement(self, call):
        return next((node for node in self.nodes if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and node.value is call), None)

    def argument(self, call, name, value, kind, what, position=None):
        """Sets a keyword argument, or adds it."""
        old = keyword(call, name, position)
        if old is not None:
            return self.replace(old, value, kind, what)
        end = self.span(call)[1] - 1
        comma = ", " if call.args or call.keywords else ""
        return self.put(end, end, "%s%s=%s" % (comma, name, value), kind, call.lineno, what)


def rate(editor, kind, factor):
    for call in editor.calls:
        if name_of(call) not in OPTIMIZERS:
            continue
        for name in ("lr", "learning_rate"):
            value = keyword(call, name)
            if value is None and "optim" not in written(call.func) and name == "learning_rate" and call.args:
                value = call.args[0]
            if isinstance(constant(value), (int, float)) and not isinstance(constant(value), bool) and math.isfinite(constant(value) * factor):
                new = "%g" % (constant(value) * factor)
                return editor.replace(value, new, kind, "learning rate %s → %s" % (editor.source(value), new))
        if not keyword(call, "lr") and not keyword(call, "learning_rate") and "optim" in written(call.func) and name_of(call) != "SGD":
            usual = {"RMSprop": 0.01, "Adagrad": 0.01}.get(name_of(call), 0.001)
            return editor.argument(call, "lr" if "torch" in written(call.func) or "optim." in written(call.func) and "keras" not in editor.text
                                   else "learning_rate", "%g" % (usual * factor), kind, "learning rate %g → %g" % (usual, usual * factor))
    for call in editor.calls:  # compile(optimizer='sgd')
        optimizer = keyword(call, "optimizer", 0) if name_of(call) == "compile" else None
        if isinstance(constant(optimizer), str) and constant(optimizer).lower() in ("sgd", "adam", "rmsprop"):
            word = {"sgd": "SGD", "adam": "Adam", "rmsprop": "RMSprop"}[constant(optimizer).lower()]
            usual = 0.01 if word == "SGD" else 0.001
            prefix = "tf.keras" if "import tensorflow as tf" in editor.text else "keras"
            return editor.replace(optimizer, "%s.optimizers.%s(learning_rate=%g)" % (prefix, word, usual * factor), kind,
                                  "learning rate %g → %g" % (usual, usual * factor))
    return False


def output_activation(editor, kind):
    """The last layer's function that fits the loss."""
    compiles = [call for call in editor.calls if name_of(call) == "compile" and keyword(call, "loss", 1) is not None]
    layers = [call for call in editor.calls if name_of(call) in ("Dense", "Activation")]
    if compiles and layers:
        compile = compiles[-1]
        before = [call for call in layers if call.lineno <= compile.lineno]
        dense = [call for call in before if name_of(call) == "Dense"]
        if not before or not dense:
            return False
        last, units = before[-1], constant(keyword(dense[-1], "units", 0))
        loss = keyword(compile, "loss", 1)
        name = text_of(loss).replace("_", "")
        logits = isinstance(loss, ast.Call) and constant(keyword(loss, "from_logits")) is True
        if logits:
            wanted = "linear"
        elif units == 1:
            wanted = "sigmoid" if "crossentropy" in name else "linear"
        else:
            wanted = "softmax" if "categorical" in name else ("sigmoid" if "binary" in name else "linear")
        what = "the last layer gets %s, which %s expects" % (wanted, text_of(loss))
        old = keyword(last, "activation", 1 if name_of(last) == "Dense" else 0)
        if text_of(old) == wanted or (old is None and wanted == "linear"):
            return False
        if name_of(last) == "Activation":
            return editor.replace(old, repr(wanted), kind, what) if old is not None else False
        return editor.argument(last, "activation", repr(wanted), kind, what, position=1 if len(last.args) > 1 else None)
    for call in editor.calls:  # softmax before cross-entropy: softmax(x, 1) → x
        if name_of(call) in ("softmax", "sigmoid", "log_softmax") and call.args and (editor_names(editor) & (CROSS | {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits"})):
            if isinstance(call.func, ast.Attribute) and name_of(call.func.value) not in ("torch", "F", "functional") and not isinstance(call.args[0], (ast.Name, ast.Call)):
                continue
            return editor.replace(call, editor.source(call.args[0]), kind, "%s is left out: the loss applies it" % name_of(call))
    for call in editor.calls:  # nn.Sequential(…, nn.Softmax())
        if name_of(call) == "Sequential" and len(call.args) > 1 and name_of(call.args[-1]) in ("Softmax", "Sigmoid", "LogSoftmax"):
            start, end = editor.span(call.args[-2])[1], editor.span(call.args[-1])[1]
            return editor.put(start, end, "", kind, call.args[-1].lineno, "%s is left out: the loss applies it" % name_of(call.args[-1]))
    return False


def editor_names(editor):
    return {name_of(call) for call in editor.calls}


def loss(editor, kind):
    for call in editor.calls:
        old = keyword(call, "loss", 1) if name_of(call) == "compile" else None
        if old is None:
            continue
        dense = [one for one in editor.calls if name_of(one) == "Dense" and one.lineno <= call.lineno]
        units = constant(keyword(dense[-1], "units", 0)) if dense else None
        hot = bool(editor_names(editor) & {"to_categorical", "get_dummies", "OneHotEncoder", "one_hot", "LabelBinarizer"})
        activation = text_of(keyword(dense[-1], "activation", 1)) if dense else ""
        if units == 1:
            wanted = "binary_crossentropy" if activation == "sigmoid" or "crossentropy" in text_of(old) else "mean_squared_error"
        else:
            wanted = "categorical_crossentropy" if hot else "sparse_categorical_crossentropy"
        if text_of(old).replace("_", "") == wanted.replace("_", ""):
            return False
        return editor.replace(old, repr(wanted), kind, "loss %s → %s" % (editor.source(old), wanted))
    return False


def scale_inputs(editor, kind, pixels):
    """The arrays that fit is given, and those that the network is asked about later."""
    fits = [call for call in editor.calls if name_of(call) in ("fit", "train_on_batch") and (call.args or keyword(call, "x") is not None)
            and "scaler" not in owner_of(call).lower() and "encoder" not in owner_of(call).lower()]
    if not fits:
        return False
    given = keyword(fits[0], "x", 0)
    if not isinstance(given, ast.Name):
        return False
    place = editor.statement(fits[0])
    others = []
    for call in editor.calls:
        if name_of(call) in ("evaluate", "predict") and owner_of(call) == owner_of(fits[0]):
            others.append(keyword(call, "x", 0))
    data = keyword(fits[0], "validation_data")
    if isinstance(data, (ast.Tuple, ast.List)) and data.elts:
        others.append(data.elts[0])
    names = list(dict.fromkeys([given.id] + [one.id for one in others if isinstance(one, ast.Name)]))
    if place is None:
        return False
    if pixels:
        lines = ["%s = %s / 255.0" % (name, name) for name in names]
        return editor.before(place, lines, kind, "inputs are divided by 255")
    lines = ["input_mean, input_deviation = %s.mean(axis=0), %s.std(axis=0) + 1e-7" % (given.id, given.id)]
    lines += ["%s = (%s - input_mean) / input_deviation" % (name, name) for name in names]
    return editor.before(place, lines, kind, "inputs are standardised with the mean and standard deviation of the training data")


def hidden_activation(editor, kind):
    dense = [call for call in editor.calls if name_of(call) in ACTIVATED]
    for call in dense[:-1]:
        old = keyword(call, "activation", 1 if name_of(call) == "Dense" else None)
        if kind == "missing-nonlinearity" and old is None and name_of(call) in ("Dense", "Conv1D", "Conv2D", "Conv3D"):
            editor.argument(call, "activation", "'relu'", kind, "%s gets relu" % name_of(call))
        elif kind != "missing-nonlinearity" and old is not None and text_of(old) in ("sigmoid", "softmax", "hard_sigmoid"):
            editor.replace(old, "'relu'", kind, "hidden %s → relu" % text_of(old))
    return any(one["kind"] == kind for one in editor.said)


def clear_gradients(editor, kind):
    backward = [call for call in editor.calls if name_of(call) == "backward"]
    steps = [call for call in editor.calls if name_of(call) == "step" and not call.args and "sched" not in owner_of(call).lower()]
    place = editor.statement(backward[0]) if backward else None
    if place is None or not steps:
        return False
    return editor.before(place, [owner_of(steps[0]) + ".zero_grad()"], kind, "gradients are cleared before backward")


def shuffle(editor, kind):
    for call in editor.calls:
        if name_of(call) == "fit" and constant(keyword(call, "shuffle")) is False:
            return editor.argument(call, "shuffle", "True", kind, "fit shuffles")
    for node in editor.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name_of(node.value) == "DataLoader" and \
                any(isinstance(one, ast.Name) and "val" not in one.id.lower() and "test" not in one.id.lower() for one in node.targets):
            return editor.argument(node.value, "shuffle", "True", kind, "the loader shuffles", position=2 if len(node.value.args) > 2 else None)
    return False


def epochs(editor, kind, factor):
    for call in editor.calls:
        value = keyword(call, "epochs") or keyword(call, "nb_epoch") if name_of(call) == "fit" else None
        if isinstance(constant(value), int):
            new = max(1, round(constant(value) * factor))
            return editor.replace(value, str(new), kind, "epochs %d → %d" % (constant(value), new))
    return False


def propose(editor, finding):
    kind = finding["kind"]
    what = str(finding.get("title", "")) + " " + str(finding.get("evidence", ""))
    if kind == "learning-rate-high" or kind == "unstable-training":
        return rate(editor, kind, 0.1)
    if kind == "learning-rate-low":
        return rate(editor, kind, 10)
    if kind in ("output-activation", "wrong-output-activation"):
        return output_activation(editor, kind)
    if kind == "wrong-loss":
        return loss(editor, kind)
    if kind == "inputs-not-scaled":
        return scale_inputs(editor, kind, "0 to 255" in what or "0 and 255" in what)
    if kind in ("missing-nonlinearity", "vanishing-gradient", "saturated-training"):
        return hidden_activation(editor, kind)
    if kind == "gradients-accumulate":
        return clear_gradients(editor, kind)
    if kind == "not-shuffled":
        return shuffle(editor, kind)
    if kind == "still-learning":
        return epochs(editor, kind, 3)
    return False


def propose_all(file, findings):
    try:
        text = _files.read_program(file).decode("utf-8")
        editor, left = Editor(file, text), []
    except (_files.Unfit, OSError) as error:
        return {"error": "%s cannot be read: %s" % (file, error)}
    except (RecursionError, MemoryError):
        return {"error": "%s cannot be parsed: it is nested too deeply" % file}
    except (SyntaxError, ValueError) as error:
        return {"error": "%s cannot be parsed: %s" % (file, error)}
    for finding in findings:
        try:
            found = finding.get("level") == "note" or propose(editor, finding)
        except (ValueError, ArithmeticError, RecursionError):  # a learning rate of 400 digits, say
            found = False
        if not found:
            left.append(finding["kind"])
    changed = editor.result()
    try:
        ast.parse(changed.removeprefix("\ufeff"), file)  # what we propose is a program
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {"diff": "", "edits": [], "left": [one["kind"] for one in findings if one.get("level") != "note"]}
    name = os.path.basename(file)
    diff = "".join(difflib.unified_diff(text.splitlines(True), changed.splitlines(True), "a/" + name, "b/" + name))
    return {"diff": diff, "edits": editor.said, "left": left}


def main():
    text = json.dumps(propose_all(sys.argv[1], _files.read_json(sys.argv[2])["findings"]), ensure_ascii=False)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
