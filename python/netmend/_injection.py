"""What `netmend inject` runs beside and inside a program. Standard library only; run as a plain script:

    python3 _injection.py inspect PROGRAM OUT      what the program is; a notebook becomes OUT/program.py
    python3 _injection.py mutants < request.json   all mutants of executed lines, sampled, written as files
    python3 _injection.py trace PLAN -- PROGRAM …  runs the program and reports the lines it executes, by phase
"""
import importlib.util
import json
import os
import random
import sys

try:
    from . import _operators, _syntax, _tracing
except ImportError:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _operators
    import _syntax
    import _tracing

CONTEXT = 3


# ---- mutants

def hunk(source, first, end, text, name):
    """The unified diff of one replacement."""
    begin, last = source.line_of(first), source.line_of(end)
    line_start = source.starts[begin - 1]
    line_end = source.starts[last - 1] + len(source.lines[last - 1])
    before = source.text[line_start:line_end].split("\n")
    after = (source.text[line_start:first] + text + source.text[end:line_end]).split("\n")
    top = source.lines[max(0, begin - 1 - CONTEXT):begin - 1]
    bottom = source.lines[last:last + CONTEXT]
    if last + len(bottom) == len(source.lines) and bottom and bottom[-1] == "":
        bottom.pop()
    old, new = len(top) + len(before) + len(bottom), len(top) + len(after) + len(bottom)
    start = begin - len(top)
    lines = [f"--- a/{name}", f"+++ b/{name}", f"@@ -{start},{old} +{start},{new} @@"]
    lines += [" " + line for line in top] + ["-" + line for line in before] + ["+" + line for line in after]
    return "\n".join(lines + [" " + line for line in bottom]) + "\n"


def executed_phases(node, lines):
    """Phases in which the statement of a node runs; none when it never does."""
    found = set()
    for line in _syntax.header_lines(_syntax.statement_of(node) if hasattr(node, "parent") or isinstance(node, _syntax.ast.stmt)
                                     else node):
        phases = lines.get(str(line), ())
        if isinstance(phases, list):  # the program ran beside whoever wrote them
            found.update(phase for phase in phases if isinstance(phase, str))
    return found


def mutants_of(path, name, lines, names):
    """All mutants of one file; `lines` maps executed lines to phases, None takes every line."""
    source = _syntax.read_source(path)
    found = []
    for operator, line, column, index, first, end, text, node in _operators.sites(source, names):
        phases = set(_syntax.PHASES) if lines is None else executed_phases(node, lines) & set(_syntax.PHASES)
        if not phases:
            continue
        found.append({"id": f"{name}:{line}:{column}:{operator}:{index}", "file": path, "name": name, "line": line,
                      "column": column, "operator": operator, "index": index, "first": first, "end": end, "text": text,
                      "phases": [phase for phase in _syntax.PHASES if phase in phases],
                      "node": node, "in_condition": _syntax.inside(node, (_syntax.ast.If, _syntax.ast.While)) or
                      isinstance(node, (_syntax.ast.If, _syntax.ast.While))})
    return source, found


def parses(source, one, node):
    """Whether the statement of a mutant still parses. Only its own text is looked at: whole files a thousand times over would
    take minutes."""
    statement = _syntax.statement_of(node)
    first, end = source.span(statement)
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        inner = body[0].decorator_list[0] if getattr(body[0], "decorator_list", None) else body[0]
        end = source.span(inner)[0]
    if one["first"] < first or one["end"] > end:
        return True
    text = source.text[first:one["first"]] + one["text"] + source.text[one["end"]:end]
    if text.startswith("elif"):
        text = text[2:]
    try:
        _syntax.ast.parse(text + " pass" if isinstance(body, list) and body else text)
    except (SyntaxError, ValueError):
        return False
    return True


def operators_named(names):
    """All of them where none are named."""
    known = [row[0] for row in _operators.OPERATORS]
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise _syntax.Unreadable(f"there is no operator {unknown[0]}; choose from {', '.join(known)}")
    return set(names or known)


def list_mutants(request):
    """Per file at most `per_file`, then `sample` of all, both drawn by the seed; files are written for those that stay."""
    names = operators_named(request.get("operators"))
    chosen, sources, total, skipped = [], {}, 0, []
    for file in request["files"]:
        try:
            source, found = mutants_of(file["path"], file["name"], file.get("lines"), names)
        except _syntax.Unreadable as error:
            skipped.append(str(error))
            continue
        sources[file["path"]] = source
        total += len(found)
        limit = request.get("per_file") or len(found)
        if len(found) > limit:
            keep = random.Random(f"{request['seed']}/{file['name']}").sample(range(len(found)), limit)
            found = [found[i] for i in sorted(keep)]
        chosen += found
    if request.get("sample") and len(chosen) > request["sample"]:
        keep = random.Random(str(request["seed"])).sample(range(len(chosen)), len(chosen))
    else:
        keep = range(len(chosen))
    mutants, wanted = [], request.get("sample") or len(chosen)
    for i in keep:
        if len(mutants) >= wanted:
            break
        one = chosen[i]
        source = sources[one["file"]]
        if not parses(source, one, one.pop("node")):
            continue
        text = source.text[:one["first"]] + one["text"] + source.text[one["end"]:]
        one["diff"] = hunk(source, one["first"], one["end"], one["text"], one["name"])
        if request.get("out"):
            one["written"] = os.path.join(request["out"], f"mutant{len(mutants)}.py")
            with open(one["written"], "wb") as file:
                file.write(source.encode(text))
        mutants.append({key: one[key] for key in one if key not in ("first", "end")})
    return {"mutants": mutants, "possible": total, "skipped": skipped}


def inspect(path, out):
    source = _syntax.read_source(path)
    written = path
    if str(path).endswith(".ipynb"):
        written = os.path.join(out, "program.py")
        with open(written, "wb") as file:
            file.write(source.encode(source.text))
    phases = _syntax.phase_lines(source)
    counts = {phase: sum(1 for value in phases.values() if value == phase) for phase in _syntax.PHASES}
    return {"program": written, "lines": len(source.lines), "encoding": source.encoding, "phase_lines": counts,
            "marked": bool(_syntax._MARK.search(source.text)), "version": ".".join(map(str, sys.version_info[:2])),
            "reads": sorted({os.path.realpath(one) for one in sys.path + [sys.prefix, sys.base_prefix] if one and
                             os.path.exists(one)})}


# ---- the trace

def traced_roots(folder, packages):
    """The folders, or files of single modules, whose lines count: the program's own and those of packages."""
    roots = [folder + os.sep]
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise _syntax.Unreadable(f"--also {package}: there is no such package")
        if spec.submodule_search_locations:
            roots += [os.path.realpath(place) + os.sep for place in spec.submodule_search_locations]
        else:
            roots.append(os.path.realpath(spec.origin))
    return roots


def run_program(path, words):
    """As `python3 PROGRAM words` would."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    import types
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.argv[:] = [path, *words]
    sys.path.insert(0, os.path.dirname(path))
    exec(code, module.__dict__)


def trace(plan, program, words):
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [one for one in sys.path if os.path.abspath(one or ".") != here]  # our modules are none of the program's

    def tell(report):
        with os.fdopen(int(os.environ["NETMEND_REPORT_FD"]), "w") as out:
            json.dump(report, out)

    _tracing.trace(lambda: run_program(program, words), tell, program, traced_roots(os.path.realpath(os.path.dirname(program)), plan["also"]),
                   _syntax.phase_lines(_syntax.read_source(program)), plan.get("scratch"))


def main():
    verb = sys.argv[1]
    try:
        if verb == "inspect":
            operators_named([name for name in sys.argv[4:5] for name in name.split(",") if name])  # before anything runs
            print(json.dumps(inspect(sys.argv[2], sys.argv[3])))
        elif verb == "mutants":
            print(json.dumps(list_mutants(json.load(sys.stdin))))
        elif verb == "trace":
            trace(json.loads(sys.argv[2]), sys.argv[4], sys.argv[5:])
    except _syntax.Unreadable as error:
        print(json.dumps({"error": str(error)}))
        sys.exit(2)


if __name__ == "__main__":
    main()
