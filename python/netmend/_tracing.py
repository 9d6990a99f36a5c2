"""Which lines of a program run, and in which phase: in its own process and in those that it starts. Standard library only.

Forks keep Python's trace function. Other interpreters find `sitecustomize.py` of a folder that the first process puts in PYTHONPATH.
The first process keeps its lines in memory; what others see for the first time, they append to one file at once, since a process
may end without a word. A Python that is started without our environment is counted: nobody can see its lines.
"""
import json
import os
import shutil
import sys
import tempfile
import threading

SITE = """import importlib.util, os, sys
try:
    spec = importlib.util.spec_from_file_location("_netmend_tracing", {path!r})
    sys.modules["_netmend_tracing"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.start_in_child()
except Exception:  # a program never fails because it is watched
    pass
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [one for one in sys.path if os.path.abspath(one or ".") != here]
own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = own
"""
PLAN, PHASE = "NETMEND_TRACE", "NETMEND_TRACE_PHASE"
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system")  # Python's audit events


class Tracer:
    """`plan`: the program, the folders whose files count (the first one without installed packages), the file of child processes."""

    def __init__(self, plan, labels, phase, child=False):
        self.plan, self.labels, self.current, self.child = plan, labels, phase, child
        self.program, self.roots = plan["program"], plan["roots"]
        self.known, self.lines, self.popen = {}, {}, None

    def wanted(self, name):
        if name not in self.known:
            real = os.path.realpath(name) if os.path.exists(name) else ""
            own = real.startswith(self.roots[0]) and "site-packages" not in real[len(self.roots[0]):]
            take = real.endswith(".py") and (own or any(real.startswith(root) for root in self.roots[1:]))
            self.known[name] = (real, self.lines.setdefault(real, {})) if take or name == self.program else None
        return self.known[name]

    def enter(self, frame, event, arg):
        known = self.wanted(frame.f_code.co_filename)
        if known is None:
            return None
        real, lines = known
        main = frame.f_code.co_filename == self.program

        def step(frame, event, arg):
            if event == "line":
                line = frame.f_lineno or 0
                if main and self.labels.get(line, self.current) != self.current:
                    self.current = os.environ[PHASE] = self.labels[line]
                if line not in lines or self.current not in lines[line]:
                    self.see(real, lines, line)
            return step

        self.see(real, lines, frame.f_lineno or 0)
        return step

    def see(self, real, lines, line):
        phases = lines.setdefault(line, set())
        if self.child and self.current not in phases:
            self.append("line", real, line, self.current)
        phases.add(self.current)

    def append(self, *words):
        """To the file that all child processes share. Opened each time: programs close descriptors that they do not know."""
        try:
            file = os.open(self.plan["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, (json.dumps(words) + "\n").encode())
            finally:
                os.close(file)
        except OSError:
            pass

    def forked(self):
        self.child = True
        self.append("child")

    def heard(self, event, args):
        if event in STARTS:
            words = [args[0], *args[1]] if event != "os.system" else [args[0]]
            words = [os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike))]
            again = event == "os.posix_spawn" and words == self.popen  # subprocess may start programs by it
            self.popen = words if event == "subprocess.Popen" else None
            if not again and any("python" in word or word.endswith(".py") or word == sys.executable for word in words):
                self.append("started")

    def start(self):
        os.register_at_fork(after_in_child=self.forked)
        sys.addaudithook(self.heard)
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def report(self):
        """{lines: {file: {line: phases}}, children, untraced}, of all processes."""
        counts = {"child": 0, "program": 0, "started": 0}
        try:
            with open(os.open(self.plan["file"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8", errors="replace") as file:
                for row in file:
                    try:
                        what, *rest = json.loads(row)
                        if what == "line":
                            name, line, phase = rest
                            self.lines.setdefault(str(name), {}).setdefault(int(line), set()).add(str(phase))
                        else:
                            counts[what] += 1
                    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
                        continue  # a program may write there too
        except OSError:
            pass
        lines = {name: {str(line): sorted(phases) for line, phases in sorted(found.items())}
                 for name, found in sorted(self.lines.items()) if found}
        return {"lines": lines, "children": counts["child"] + counts["program"],
                "untraced": max(0, counts["started"] - counts["program"])}


def start_in_child():
    """In an interpreter that the program started, before anything of its own."""
    if not os.environ.get(PLAN):
        return
    tracer = Tracer(json.loads(os.environ[PLAN]), {}, os.environ.get(PHASE, "preprocessing"), child=True)
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().decode(errors="replace")
    if "multiprocessing.spawn" in words:
        tracer.append("child")
    elif "multiprocessing.resource_tracker" not in words and "multiprocessing.forkserver" not in words:
        tracer.append("program")
    tracer.start()


def trace(run, tell, program, roots, labels, scratch):
    """Calls `run`, then `tell` with the report; not in forks of this process that come to the end too."""
    folder = tempfile.mkdtemp(prefix="netmend-trace-", dir=scratch)
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(SITE.format(path=os.path.abspath(__file__)))
    plan = {"program": program, "roots": roots, "file": os.path.join(folder, "lines")}
    paths = [folder] + [path for path in [os.environ.get("PYTHONPATH")] if path]
    os.environ.update({PLAN: json.dumps(plan), PHASE: "preprocessing", "PYTHONPATH": os.pathsep.join(paths)})
    tracer = Tracer(plan, labels, "preprocessing")
    tracer.start()
    try:
        run()
    finally:
        sys.settrace(None)
        threading.settrace(None)
        if not tracer.child:
            tell(tracer.report())
            shutil.rmtree(folder, ignore_errors=True)
