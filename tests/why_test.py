"""Every kind of finding shows itself: the example of each row of the table, run as `netmend why` prints it, raises that
kind, and a sound network raises none of them above a note.

usage: why_test.py NETMEND

Examples run in empty folders of their own, without a user's data or configuration; WHY_JOBS of them at a time
(default: 2).
"""
import concurrent.futures, functools, os, re, shlex, subprocess, sys, tempfile

from shell import NETMEND, Case, main, must, parse, read_json, run

SECONDS = 300  # an example; alone on two cores each takes less than 60
SHELL_LINES = 16

# What a sound network may raise above a note, and why that is no false alarm.
SOUND = {
    "dead-units": "about a third of the 120 ReLU units of fc1 die: the layer is wider than digits need",
}


def environment(folder):
    """netmend first on the PATH; no data folder and no configuration of the user's."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("NETMEND")}
    path = os.pathsep.join([os.path.dirname(NETMEND), os.path.dirname(sys.executable), os.environ["PATH"]])
    return {**own, "PATH": path, "HOME": folder, "XDG_CONFIG_HOME": folder}


def find_from(script):
    """The findings that the last check of a script leaves, those merged into others included, as (level, id); what it
    said."""
    with tempfile.TemporaryDirectory(prefix="netmend-why-") as folder:
        done = run("-c", script, program="sh", timeout=SECONDS, cwd=folder, env=environment(folder))
        said = done.stdout[-1500:] + done.stderr[-1500:]
        file = os.path.join(folder, "netmend-runs", "latest", "findings.json")
        if not os.path.exists(file):  # netmend lint leaves no run folder
            return [("", kind) for kind in re.findall(r"\[([a-z-]+)\]$", done.stdout, re.M)], said
        findings = read_json(file)["findings"]
        return [(one["level"], id) for one in findings for id in [one["id"], *one["related"]]], said


class Why(Case):
    """Filled below with a test for each kind."""

    def test_a_sound_network_raises_nothing_above_a_note(self):
        found, said = SOUND_RUN.result()
        self.assertTrue(found, said)
        for level, id in found:
            kind = id.split(":")[0]
            self.assertTrue(level == "note" or kind in SOUND, f"{level} {id}\n{said}")
            self.assertIn(level, ("note", "minor"), f"{id}\n{said}")

    def test_next_commands_exist_with_these_flags(self):
        helps = {}
        for kind in KINDS.values():
            for command in kind["next"]:
                words = shlex.split(command)
                self.assertEqual(words[0], "netmend", command)
                help = helps[words[1]] = helps.get(words[1]) or self.ok(words[1], "--help").stdout
                for flag in words[2:]:
                    if flag.startswith("-"):
                        self.assertRegex(help, rf"(?m)^\s+(\S+,)?{re.escape(flag)}[ ,\n]", command)

    def test_texts_are_sentences(self):
        for name, kind in KINDS.items():
            for part in ("title", "meaning", "cause", "confirm", "repair"):
                self.assertRegex(kind[part], r"(?s)^([A-Z]|netmend |goal\.).*[.?]$", (name, part))
            self.assertRegex(kind["example"][-1], r"^netmend (check|watch|lint) ", name)
            self.assertLessEqual(len(kind["example"]), SHELL_LINES, name)


def framework_of(command):
    """What the example of a training needs."""
    if "netmend.planted" not in command:
        return ""
    return "keras" if command.endswith("wrong-metric") else "torch"


@functools.cache
def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def test_of(name):
    def test(self):
        framework = framework_of(KINDS[name]["example"][-1])
        if framework and not has(framework):
            self.skipTest(f"SKIPPED, NOT TESTED: {framework} is not installed")
        found, said = RUNS[name].result()
        kinds = [id.split(":")[0] for _, id in found]
        self.assertIn(name, kinds, "\n".join([str(found), *KINDS[name]["example"], said]))

    return test


if __name__ == "__main__":
    assert os.path.basename(NETMEND) == "netmend", "the examples call it by this name"
    names = [one["kind"] for one in parse(must("why", "--list", "--json").stdout)["kinds"]]
    KINDS = {name: parse(must("why", name, "--json").stdout) for name in names}
    for name in names:
        setattr(Why, "test_" + name.replace("-", "_"), test_of(name))
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WHY_JOBS", 2))) as pool:
        SOUND_RUN = pool.submit(find_from, "netmend lab new lenet5 -o fresh.onnx && "
                                           "netmend train fresh.onnx --data glyphs --epochs 4 -o sound.onnx && "
                                           "netmend check sound.onnx --data glyphs")
        scripts = {}  # kinds that share an example run it once
        for name in sorted(names):
            script = "\n".join(KINDS[name]["example"])
            scripts[script] = scripts.get(script) or pool.submit(find_from, script)
        RUNS = {name: scripts["\n".join(KINDS[name]["example"])] for name in names}
        main(slow=True)
