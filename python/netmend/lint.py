"""Mistakes that can be seen in the text of a training program (PyTorch, Keras), by Python's own parser. `netmend lint` runs it;
it needs nothing but Python 3.9.

usage: python lint.py FILE…             prints {"findings": [...], "errors": [...]} as JSON
       python -m netmend.lint FILE…     the same, and errors are sentences on standard error with status 2
"""
import ast
import bisect
import json
import os
import re
import sys

try:
    from . import _files
except ImportError:  # a script
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _files

MOST = 100_000  # findings in all

CROSS = {"CrossEntropyLoss", "cross_entropy"}
TORCH_LOSSES = CROSS | {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "BCELoss", "NLLLoss", "MSELoss", "mse_loss", "L1Loss", "nll_loss"}


def name_of(node):
    """`softmax` of `torch.softmax`, `F.softmax(x)` and `nn.Softmax`."""
    for _ in range(4):  # f()()()()()… has no name
        if not isinstance(node, ast.Call):
            break
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def written(node):
    """`torch.optim.SGD`, `nets[0].step`, `make().step`; "" for what is longer than anything that a program calls things, so that
    a.b().c().d()… takes no more time than its length."""
    parts, at = [], node
    while isinstance(at, ast.Attribute) and len(parts) < 20:
        parts.append(at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        return ".".join([at.id] + parts[::-1])
    return ast.unparse(node) if is_small(node) else ""


def is_small(node, most=24):
    waiting, seen = [node], 1
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            waiting.append(child)
            seen += 1
            if seen > most:
                return False
    return True


def owner_of(node):
    """`opt` of `opt.step`."""
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Attribute):
        return written(node.value)
    return ""


def keyword(call, name, position=None):
    for one in call.keywords:
        if one.arg == name:
            return one.value
    return call.args[position] if position is not None and len(call.args) > position else None


def constant(node):
    return node.value if isinstance(node, ast.Constant) else None


def text_of(node):
    """A string, or the name of a function or class, in lower case: 'softmax', tf.nn.softmax, Softmax()."""
    value = constant(node) if node is not None else None
    return value.lower() if isinstance(value, str) else (name_of(node).lower() if node is not None else "")


class Program:
    def __init__(self, file, text):
        self.file, self.tree, self.found = file, ast.parse(text, file), []
        self.ignored = {}
        for number, line in enumerate(text.splitlines(), 1):
            match = re.search(r"#\s*netmend:\s*ignore(?:\[([^\]]*)\])?", line)
            if match:
                self.ignored[number] = {one.strip() for one in (match.group(1) or "*").split(",")}
        self.nodes = list(ast.walk(self.tree))
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.names = {name_of(call) for call in self.calls}
        imports = {alias.name.split(".")[0] for node in self.nodes if isinstance(node, ast.Import) for alias in node.names}
        imports |= {(node.module or "").split(".")[0] for node in self.nodes if isinstance(node, ast.ImportFrom)}
        self.torch = bool(imports & {"torch", "torchvision"})
        self.keras = bool(imports & {"keras", "tensorflow", "tf_keras"})
        self.other = bool(imports & {"pytorch_lightning", "lightning", "accelerate", "transformers", "ignite", "fastai"})

    def say(self, kind, line, level, what, certainty="likely"):
        ignored = self.ignored.get(line, set())
        if "*" not in ignored and kind not in ignored:
            self.found.append({"file": self.file, "line": line, "kind": kind, "level": level, "what": what[:300], "certainty": certainty})

    def look(self):
        if self.torch:
            self.loops()
            self.torch_outputs()
            self.torch_modes()
            self.loaders()
        if self.keras:
            self.keras_models()
        self.images()
        self.validation()
        self.seeds()
        self.found.sort(key=lambda one: (one["line"], one["kind"]))
        return self.found

    # ---- PyTorch ----

    def loops(self):
        """A loop with backward and step and nothing that clears gradients."""
        steps = [call for call in self.calls if name_of(call) == "step" and not call.args and "sched" not in owner_of(call).lower()
                 and "env" not in owner_of(call).lower()]
        backward = [call for call in self.calls if name_of(call) == "backward"]
        clears = "zero_grad" in self.names or any(isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Store)
                                                  for node in self.nodes)
        if steps and backward and not clears and not self.other:
            self.say("gradients-accumulate", steps[0].lineno, "serious", "zero_grad is never called", "confirmed")
        for loop in self.innermost_loops():
            inside = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
            own = [call for call in inside if name_of(call) in ("SGD", "Adam", "AdamW", "RMSprop") and "optim" in written(call.func)]
            if own and any(name_of(call) == "backward" for call in inside):
                self.say("changed-outside-step", own[0].lineno, "minor", "the optimiser is created anew inside the loop, so it loses its state")
        if steps and not backward and not self.other and not self.keras and "fit" not in self.names and "GradScaler" not in self.names:
            self.say("step-without-backward", steps[0].lineno, "minor", "step is called, but backward never is", "possible")

    def innermost_loops(self):
        """Loops without a loop in them: together no longer than the program."""
        above = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        loops, outer = [node for node in self.nodes if isinstance(node, (ast.For, ast.While))], set()
        for loop in loops:
            node = above.get(loop)
            while node is not None and node not in outer:
                outer.add(node)
                node = above.get(node)
        return [loop for loop in loops if loop not in outer]

    def assigned(self):
        """The last call that was assigned to each name, in the order of the text: `out = softmax(x)`."""
        table = []
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        table.append((node.lineno, target.id, node.value))
        return sorted(table, key=lambda row: row[0])

    def torch_outputs(self):
        table = self.assigned()
        losses = {name: name_of(call) for _, name, call in table if name_of(call) in TORCH_LOSSES}
        for node in self.nodes:  # self.criterion = nn.CrossEntropyLoss()
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name_of(node.value) in TORCH_LOSSES:
                for target in node.targets:
                    losses[written(target)] = name_of(node.value)
        losses.pop("", None)
        ends, by_name = self.module_ends(), {}
        for at, name, call in table:
            lines, values = by_name.setdefault(name, ([], []))
            lines.append(at)
            values.append(call)
        for call in self.calls:
            own = losses and not isinstance(call.func, ast.Call)
            kind = (losses.get(written(call.func)) if own else None) or (name_of(call) if name_of(call) in TORCH_LOSSES and call.args else None)
            if kind is None or not call.args:
                continue
            given, line = call.args[0], call.lineno
            function = text_of(given) if isinstance(given, ast.Call) else ""
            if isinstance(given, ast.Name):
                lines, values = by_name.get(given.id, ([], []))
                at = bisect.bisect_right(lines, line)
                if at:
                    last = values[at - 1]
                    function = name_of(last).lower()
                    line = last.lineno if function in ("softmax", "sigmoid", "log_softmax") else line
                    ended = ends.get(written(last.func))
                    function = ended[0] if ended and function not in ("softmax", "sigmoid") else function
                    line = ended[1] if ended and ended[0] == function else line
            if kind in CROSS and function == "softmax":
                self.say("output-activation", line, "serious", "softmax before cross-entropy, which applies softmax itself", "confirmed")
            if "Logits" in kind or kind.endswith("with_logits"):
                if function == "sigmoid":
                    self.say("output-activation", line, "serious", "sigmoid before a loss that applies sigmoid itself", "confirmed")
            if kind in ("BCELoss", "binary_cross_entropy") and function in ("linear", "relu", "softmax"):
                self.say("output-activation", line, "serious" if function != "softmax" else "minor", "%s with binary cross-entropy, which expects a sigmoid" % function)
            if kind in ("NLLLoss", "nll_loss") and function == "softmax":
                self.say("output-activation", line, "serious", "nll_loss expects log_softmax, not softmax", "confirmed")

    def module_ends(self):
        """The last function of `net = nn.Sequential(…)` and of classes with a `forward`, by the name they are called by."""
        ends, classes = {}, {}
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and item.name == "forward":
                        back = [one for one in ast.walk(item) if isinstance(one, ast.Return) and one.value is not None]
                        if back and isinstance(back[-1].value, ast.Call):
                            classes[node.name] = (name_of(back[-1].value).lower(), back[-1].lineno)
        for _, name, call in self.assigned():
            if name_of(call) == "Sequential" and call.args and isinstance(call.args[-1], ast.Call):
                ends[name] = (name_of(call.args[-1]).lower(), call.args[-1].lineno)
            inner = name_of(call)
            if inner in classes:
                ends[name] = classes[inner]
        return ends

    def torch_modes(self):
        """Dropout or batch normalisation, an evaluation without gradients, and eval() never."""
        layers = [call for call in self.calls if "Dropout" in name_of(call) or "BatchNorm" in name_of(call)]
        quiet = [node for node in self.nodes if isinstance(node, ast.With) and any(name_of(item.context_expr) in ("no_grad", "inference_mode") for item in node.items)]
        if layers and quiet and "eval" not in self.names and not self.other and not any(
                name_of(call) == "train" and call.args and constant(call.args[0]) is False for call in self.calls):
            self.say("evaluated-in-train-mode", quiet[0].lineno, "minor", "eval() is never called, although the network has %s" % name_of(layers[0]), "confirmed")

    def loaders(self):
        for line, name, call in self.assigned():
            if name_of(call) != "DataLoader" or "train" not in name.lower():
                continue
            shuffle = keyword(call, "shuffle", 2)
            if keyword(call, "sampler") is None and keyword(call, "batch_sampler") is None and (shuffle is None or constant(shuffle) is False):
                self.say("not-shuffled", line, "minor", "the training DataLoader does not shuffle")

    # ---- Keras ----

    def keras_models(self):
        layers = [call for call in self.calls if name_of(call) in ("Dense", "Activation", "Softmax") and call is not None]
        layers.sort(key=lambda call: (call.lineno, call.col_offset))
        compiles = sorted((call for call in self.calls if name_of(call) == "compile" and keyword(call, "loss", 1) is not None), key=lambda call: call.lineno)
        lines, first = [call.lineno for call in layers], 0
        for compile in compiles:  # the layers since the one before
            end = bisect.bisect_right(lines, compile.lineno)
            before, first = layers[first:end], end
            if not before:
                continue
            last = before[-1]
            dense = next((call for call in reversed(before) if name_of(call) == "Dense"), None)
            activation = text_of(keyword(last, "activation", 1)) if name_of(last) == "Dense" else (
                "softmax" if name_of(last) == "Softmax" else text_of(keyword(last, "activation", 0)))
            units = constant(keyword(dense, "units", 0)) if dense is not None else None
            self.keras_pair(compile, last, activation or "linear", units)
        for call in self.calls:
            if name_of(call) == "fit" and constant(keyword(call, "shuffle")) is False:
                self.say("not-shuffled", call.lineno, "minor", "fit is called with shuffle=False")

    def keras_pair(self, compile, last, activation, units):
        loss = keyword(compile, "loss", 1)
        name = text_of(loss).replace("_", "")
        logits = isinstance(loss, ast.Call) and constant(keyword(loss, "from_logits")) is True
        line = last.lineno
        if units == 1 and activation == "softmax":
            self.say("output-activation", line, "serious", "softmax over a single unit is always 1", "confirmed")
        elif "categorical" in name and not logits and activation not in ("softmax",):
            self.say("output-activation", line, "serious", "%s with %s, which expects softmax" % (activation, text_of(loss)), "confirmed")
        elif "categorical" in name and logits and activation == "softmax":
            self.say("output-activation", line, "serious", "softmax before a loss with from_logits=True", "confirmed")
        elif "binarycrossentropy" in name and not logits and activation in ("linear", "relu", "tanh"):
            self.say("output-activation", line, "serious", "%s with binary cross-entropy, which expects a sigmoid" % activation, "confirmed")
        elif "binarycrossentropy" in name and activation == "sigmoid" and isinstance(units, int) and units > 1 and "to_categorical" in self.names:
            self.say("output-activation", line, "minor", "sigmoid for classes that exclude each other (to_categorical)")
        elif name in ("mse", "mae", "meansquarederror", "meanabsoluteerror") and activation == "softmax":
            self.say("output-activation", line, "minor", "softmax with %s" % text_of(loss))
        if units == 1 and "categorical" in name:
            self.say("wrong-loss", compile.lineno, "serious", "%s of a single output" % text_of(loss), "confirmed")

    # ---- both ----

    def images(self):
        read = [call for call in self.calls if name_of(call) in ("imread", "load_img")]
        scaled = any(isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)) and
                     constant(node.right) in (255, 255.0, 1 / 255, 127.5) for node in self.nodes)
        scaled = scaled or any(isinstance(node, ast.AugAssign) and constant(node.value) in (255, 255.0) for node in self.nodes)
        helped = self.names & {"ToTensor", "Rescaling", "preprocess_input", "StandardScaler", "Normalization", "per_image_standardization", "ImageDataGenerator", "rescale"}
        if read and not scaled and not helped:
            self.say("inputs-not-scaled", read[0].lineno, "minor", "images are read but never divided by 255", "possible")

    def validation(self):
        for call in self.calls:
            if name_of(call) != "fit":
                continue
            data = keyword(call, "validation_data")
            first = keyword(call, "x", 0)
            if isinstance(data, (ast.Tuple, ast.List)) and data.elts and first is not None and "" != written(data.elts[0]) == written(first):
                self.say("validation-overlap", call.lineno, "serious", "the validation data is the training data", "confirmed")

    def seeds(self):
        trains = self.names & {"fit", "backward", "SGD", "Adam", "AdamW"}
        seeds = {"manual_seed", "seed", "set_seed", "set_random_seed", "seed_everything"}
        if (self.torch or self.keras) and trains and not self.names & seeds:
            lines = [call.lineno for call in self.calls if name_of(call) in trains]
            self.say("random-seed", min(lines), "note", "no random seed is set", "confirmed")


def look_at(file):
    """(findings, error) of a file; one of them is empty."""
    try:
        return Program(file, _files.read_program(file).decode("utf-8-sig")).look(), ""
    except (_files.Unfit, OSError) as error:
        return [], "%s cannot be read: %s" % (file, error)
    except (RecursionError, MemoryError):  # Python's parser says either of what is nested too deeply
        return [], "%s cannot be parsed: it is nested too deeply" % file
    except (SyntaxError, ValueError) as error:
        return [], "%s cannot be parsed: %s" % (file, error)


def main(as_script):
    findings, errors = [], [] if sys.argv[1:] else ["no file is given: python -m netmend.lint FILE…"]
    for file in sys.argv[1:]:
        found, error = look_at(file)
        findings += found
        errors += [error] if error else []
        if len(findings) > MOST:
            findings, errors = findings[:MOST], errors + ["more than %d findings in %s and the files before it" % (MOST, file)]
            break
    # Names of files and strings of programs may hold what is no text.
    text = json.dumps({"findings": findings, "errors": errors}, ensure_ascii=False) + "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    if as_script:
        return 0
    for error in errors:
        print("error: " + _files.printable_name(error), file=sys.stderr)
    return 2 if errors else 0


if __name__ == "__main__":
    sys.exit(main(not __package__))
