"""What commands give back: the program's document as an object, findings, tables, arrays, and the report."""
import html
import json
import os
import sys
import webbrowser
import zipfile

import numpy as np

from . import _program
from ._errors import NetmendInputError
from ._files import MOST_JSON, open_regular, parse_json, printable, read_bytes
from ._patching import patch_state_dict

_COLOURS = {"blocker": "#b3261e", "serious": "#b3261e", "minor": "#8a5a00", "note": "#5f6368"}


def table(rows):
    """Rows as a pandas DataFrame where pandas is installed, else as the list of dicts that they are."""
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


class Finding:
    """One finding. Its keys are attributes: id, kind, where, level, certainty, brief, evidence, meaning, next, inputs …"""

    def __init__(self, document, run=None):
        self._document, self._run = document, run

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._document:
            raise AttributeError("a finding has no %r; it has %s" % (name, ", ".join(self._document)))
        return self._document[name]

    def __getitem__(self, name):
        return self._document[name]

    def __dir__(self):
        return list(self._document) + ["why"]

    def __repr__(self):
        return printable("%s %s: %s (%s)" % (self.level, self.id, self.brief, self.certainty))

    def why(self):
        """The explanation of this finding: meaning, cause, how to confirm, how to repair."""
        words = ["why", self.id] + (["--run=" + self._run] if self._run else [])
        return Result("why", words, _program.run(words, progress=False), None, {}, {})


class Result:
    """What a command found. The keys of its document are attributes: lists of rows come as tables (pandas DataFrames where
    pandas is installed), `findings` as a list of Finding. `document` is the whole of it as it was printed.

    passed: whether the exit status was 0. partial: Ctrl-C came before the end. notes: what the program said beside it.
    run: the run folder. files: paths of what was made, by the name of the argument.
    """

    def __init__(self, command, words, answer, workspace, given, made):
        self.command, self.words, self.document = command, words, answer.document
        self.status, self.notes = answer.status, answer.notes
        run = self.document.get("run")
        self.run = os.path.abspath(run) if isinstance(run, str) else None
        self._workspace, self._given = workspace, given
        self.files = made

    # -- the document

    @property
    def passed(self):
        return self.status == 0

    @property
    def partial(self):
        return bool(self.document.get("partial")) or self.status == 130

    @property
    def findings(self):
        return [Finding(one, self.run) for one in self.document.get("findings", []) if isinstance(one, dict)]

    def __getattr__(self, name):
        if name.startswith("_") or name == "document" or name not in self.document:
            raise AttributeError("the result of netmend %s has no %r; it has %s"
                                 % (self.__dict__.get("command"), name, ", ".join(self.__dict__.get("document", {}))))
        value = self.document[name]
        return table(value) if _is_rows(value) else value

    def __getitem__(self, name):
        return self.document[name]

    def table(self, name):
        """A list of rows of the document as a table, also where its name is an attribute of ours, as `passed` of check is."""
        return table(self.document[name])

    def __contains__(self, name):
        return name in self.document

    def __dir__(self):
        return sorted(set(object.__dir__(self)) | set(map(str, self.document)))

    # -- files

    def read(self, name):
        """A file of the run folder: CSV as a table, NPZ as arrays (read when they are asked for), JSON as Python's objects.

        `result.read("samples.csv")` has a row per input after eval, for example.
        """
        if self.run is None:
            raise NetmendInputError("netmend %s leaves no run folder" % self.command)
        path = os.path.join(self.run, name)
        if not os.path.exists(path):
            raise NetmendInputError("There is no %s in the run folder" % name, "There are: %s." % ", ".join(sorted(os.listdir(self.run))))
        return _read(path)

    @property
    def arrays(self):
        """Arrays as NumPy: what the command wrote as NPZ, else one row per input of the run."""
        for path in list(self.files.values()) + [v for v in self._given.values() if isinstance(v, (str, os.PathLike))]:
            if str(path).endswith(".npz") and os.path.exists(path):
                return _read(str(path))
        if self.run and os.path.exists(os.path.join(self.run, "samples.npz")):
            return _read(os.path.join(self.run, "samples.npz"))
        raise NetmendInputError("netmend %s wrote no arrays" % self.command)

    # -- for people

    def __repr__(self):
        return printable("\n".join(_lines(self)))

    def _repr_html_(self):
        return _screen(self)

    @property
    def page(self):
        """The path of the report page, or None where the command draws none."""
        path = os.path.join(self.run, "report.html") if self.run else None
        return path if path and os.path.exists(path) else None

    def show(self, height=800):
        """The report: inside the notebook where there is one, else in the browser. Returns the path of the page."""
        page = self.page
        if page is None:
            raise NetmendInputError("netmend %s writes no report page" % self.command, "netmend.check(…) does.")
        if "ipykernel" in sys.modules:
            from IPython.display import display

            display(_Frame(page, height))
        else:
            webbrowser.open("file://" + os.path.abspath(page))
        return page

    # -- repairs

    def apply(self, module, dry_run=False, force=False):
        """Writes the change that repair found into a module in memory (or a dict of names and arrays). Returns what was
        placed where; print it. Raises PatchError, and changes nothing, where a change cannot be placed. A repair that did
        not help on the hold-out set is only written with force=True."""
        edits = self.files.get("plan") or self._given.get("plan")
        if edits is None:
            raise NetmendInputError("netmend %s makes no edits" % self.command, "netmend.repair(…) does.")
        if not os.path.exists(edits):
            raise NetmendInputError("There is nothing to apply: repair found no change", "Print the result to see what was tried.")
        if not self.passed and not force:
            raise NetmendInputError("The change was refused on the hold-out set: %s" % self.document.get("reason", ""),
                                    "apply(module, force=True) writes it anyway.")
        return patch_state_dict(module, os.fspath(edits), dry_run=dry_run)


def result_of(command, words, answer, workspace, given, made):
    if not isinstance(answer.document, dict):
        answer.document = {"rows": answer.document}
    return Result(command, words, answer, workspace, given, made)


def _is_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _read(path):
    try:
        open_regular(path).close()  # a pipe or a device would never end
        return _content(path)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise NetmendInputError("%s cannot be read: %s" % (path, error)) from None


def _content(path):
    if path.endswith(".csv"):
        try:
            import pandas

            return pandas.read_csv(path)
        except ImportError:
            import csv

            with open(path, newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
    if path.endswith((".npz", ".npy")):
        return np.load(path)
    content = read_bytes(path, MOST_JSON)
    return parse_json(content) if path.endswith(".json") else content.decode("utf-8")


# ---- text ----


def _figure(value):
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return str(value)
    return "%.4g" % value


def _metric(document):
    metric = document.get("metric")
    if isinstance(metric, str) and isinstance(document.get("metrics"), dict):
        metric = dict(document["metrics"].get(metric) or {}, name=metric)
    if not isinstance(metric, dict) or not isinstance(metric.get("value"), (int, float)):
        return ""
    bounds = ""
    if isinstance(metric.get("low"), (int, float)) and isinstance(metric.get("high"), (int, float)):
        bounds = " (%.4g–%.4g)" % (metric["low"], metric["high"])
    return "%s %.4g%s" % (metric.get("name", "metric"), metric["value"], bounds)


def _lines(result):
    document = result.document
    state = "stopped early" if result.partial else "" if result.passed else "did not pass"
    lines = ["netmend %s%s" % (result.command, ": " + state if state else "")]
    for text in (document.get("verdict"), _metric(document)):
        if isinstance(text, str) and text:
            lines.append("  " + text)
    lines += ["  %r" % finding for finding in result.findings]
    if len(lines) == 1:
        for name, value in document.items():
            if isinstance(value, (int, float, str)) and name not in ("run", "verdict"):
                lines.append("  %s: %s" % (name, _figure(value)))
    tables = ["%s (%d rows)" % (name, len(value)) for name, value in document.items()
              if _is_rows(value) and name not in ("findings",)]
    if tables:
        lines.append("  tables: " + ", ".join(tables))
    if result.run:
        lines.append("  run folder: " + result.run)
    return lines


def _screen(result):
    """The first screen for a notebook: verdict, metric, findings. Names come from files, so all of it is escaped."""
    document, escape = result.document, html.escape
    parts = ["<div style='font-family:sans-serif;max-width:60em'>"]
    head = document.get("verdict") if isinstance(document.get("verdict"), str) else "netmend " + result.command
    mark = " <em>(stopped early)</em>" if result.partial else "" if result.passed else " <em>(did not pass)</em>"
    parts.append("<p><strong>%s</strong>%s</p>" % (escape(head), mark))
    if _metric(document):
        parts.append("<p>%s</p>" % escape(_metric(document)))
    if result.findings:
        rows = "".join("<tr><td style='color:%s'>%s</td><td style='text-align:left'><code>%s</code></td>"
                       "<td style='text-align:left'>%s (%s)</td></tr>"
                       % (_COLOURS.get(f.level, "inherit"), escape(f.level), escape(f.id), escape(f.brief), escape(f.certainty))
                       for f in result.findings)
        parts.append("<table>%s</table>" % rows)
    elif "verdict" not in document:
        parts.append("<pre>%s</pre>" % escape("\n".join(_lines(result)[1:])))
    if result.page:
        parts.append("<p>The whole report: <code>.show()</code></p>")
    return "".join(parts) + "</div>"


class _Frame:
    """The page in a frame of its own: inside the notebook's file, so that it is there wherever the notebook is read."""

    def __init__(self, page, height):
        self.page, self.height = page, height

    def __repr__(self):
        return self.page

    def _repr_html_(self):
        text = html.escape(_read(self.page), quote=True)
        return ("<iframe sandbox='allow-scripts allow-popups' style='width:100%%;height:%dpx;border:1px solid #ccc' srcdoc=\"%s\">"
                "</iframe>" % (int(self.height), text))
