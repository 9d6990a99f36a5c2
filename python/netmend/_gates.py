"""Gates: limits given in Python, a decorator for tests, and what did not pass as SARIF."""
import functools
import json
import os

from ._errors import NetmendInputError
from ._workspace import Workspace


def with_limits(plain):
    """nm.gate: the command, with limits as further keyword arguments or as limits={"recall[truck]": ">= 0.94"}.

    With limits and no model it is a decorator: the test returns what is to be judged.
    """
    command = plain.command

    @functools.wraps(plain)
    def gate(*args, limits=None, **kwargs):
        limits = dict(limits or {})
        for name in [n for n in kwargs if n not in command.by_name and n != "progress" and _is_limit(kwargs[n])]:
            limits[name] = kwargs.pop(name)
        if not limits:
            return plain(*args, **kwargs)
        if not args and "model" not in kwargs:
            return _decorator(gate, limits, kwargs)
        if kwargs.get("config") is not None:
            raise NetmendInputError("Limits and config= were both given", "Write the limits into netmend.toml, or leave config= out.")
        workspace = Workspace()
        kwargs["config"] = _write_limits(workspace.path("netmend.toml"), limits)
        return plain(*args, **kwargs)

    gate.__doc__ = plain.__doc__ + _MORE
    gate.command = command
    return gate


_MORE = """

Limits are those of netmend.toml, or given here: as arguments, or by name in limits=.

    nm.gate(module, loader, accuracy=">= 0.90", limits={"recall[truck]": ">= 0.94"})

Without a model it decorates a test, which returns the model and the data:

    @nm.gate(accuracy=">= 0.90")
    def test_model():
        return module, loader
"""


def _is_limit(value):
    return isinstance(value, str)


def _write_limits(path, limits):
    lines = ["[gate]"]
    for name, value in limits.items():
        if not isinstance(value, str):
            raise NetmendInputError("The limit %s = %r is not a string" % (name, value), "Write it as in netmend.toml: '>= 0.90'.")
        if name == "must_pass":
            value = os.path.abspath(value)
        lines.append("%s = %s" % (json.dumps(name, ensure_ascii=False), json.dumps(value, ensure_ascii=False)))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def _decorator(gate, limits, options):
    def decorate(test):
        @functools.wraps(test)
        def judged(*args, **kwargs):
            given = test(*args, **kwargs)
            if isinstance(given, dict):
                result = gate(limits=limits, **{**options, **given})
            elif isinstance(given, tuple) and 1 <= len(given) <= 2:
                result = gate(*given, limits=limits, **options)
            else:
                raise NetmendInputError("%s returns a %s" % (test.__name__, type(given).__name__),
                                        "Let it return the model and the data: return model, loader.")
            judged.result = result
            assert_passed(result)

        return judged

    return decorate


def assert_passed(result):
    """Raises AssertionError with a line per limit that is not met."""
    if not result.passed:
        raise AssertionError("\n".join(["the gate did not pass"] + failures(result.document)))


def failures(document):
    if document.get("reason"):
        return ["  " + document["reason"]]
    return ["  %s: %s" % (row["criterion"], sentence(row)) for row in document.get("criteria", []) if row["verdict"] != "pass"]


def sentence(row):
    value, low, high = row.get("value"), row.get("low"), row.get("high")
    text = "measured %.4g" % value if isinstance(value, (int, float)) else "not measured"
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low != high:
        text += " (%.4g–%.4g)" % (low, high)
    text += ", limit %s" % row["limit"]
    return text + ("; " + row["about"] if row.get("about") else "")


# ---- SARIF ----

_LEVELS = {"blocker": "error", "serious": "error", "minor": "warning", "note": "note"}


def sarif(documents, version):
    """SARIF 2.1.0 of documents of gate and check, as (document, file that it is about) pairs."""
    results, rules = [], {}
    for document, about in documents:
        place = [{"physicalLocation": {"artifactLocation": {"uri": about.replace(os.sep, "/")}}}]
        for row in document.get("criteria", []):
            if row["verdict"] != "pass":
                _add(results, rules, "gate/" + row["criterion"].split("[")[0], "A limit of the gate", "error",
                     "%s: %s" % (row["criterion"], sentence(row)), place)
        for finding in document.get("findings", []):
            _add(results, rules, finding["kind"], finding.get("title", finding["kind"]), _LEVELS.get(finding["level"], "warning"),
                 "%s: %s" % (finding["id"], finding["brief"]), place)
    driver = {"name": "netmend", "version": version, "rules": list(rules.values())}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}]}


def _add(results, rules, rule, title, level, text, place):
    rules.setdefault(rule, {"id": rule, "shortDescription": {"text": title}})
    results.append({"ruleId": rule, "level": level, "message": {"text": text}, "locations": place})


def write_sarif(path, documents, version):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(sarif(documents, version), file, indent=1, ensure_ascii=False)
        file.write("\n")
