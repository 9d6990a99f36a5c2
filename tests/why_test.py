"""Every kind of finding shows itself: the example of each row of the table, run as `netmend why` prints it, raises that
kind, and a sound network raises none of them above a note.

usage: why_test.py NETMEND

Examples run in empty folders of their own, without a user's data or configuration; WHY_JOBS of them at a time (default: 2).
"""
import concurrent.futures, json, os, re, shlex, shutil, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shell import NETMEND

SECONDS = 300  # an example; alone on two cores each takes less than 60
SHELL_LINES = 16

# Kinds whose example is not run, and why.
SKIPPED = {}

# What a sound network may raise above a note, and why that is no false alarm.
SOUND = {
    "dead-units": "about a third of the 120 ReLU units of fc1 die: the layer is wider than digits need",
}


def environment(folder):
    """netmend first on the PATH; no data folder and no configuration of the user's."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("NETMEND")}
    return {**own, "PATH": os.path.dirname(NETMEND) + os.pathsep + os.environ["PATH"], "HOME": folder, "XDG_CONFIG_HOME": folder}


def netmend(*arguments):
    done = subprocess.run([NETMEND, *arguments], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def find_from(script):
    """The findings that the last check of a script leaves, those merged into others included, as (level, id); what it said."""
    folder = tempfile.mkdtemp(prefix="netmend-why-")
    try:
        done = subprocess.run(["sh", "-c", script], cwd=folder, env=environment(folder), capture_output=True, text=True,
                              timeout=SECONDS, stdin=subprocess.DEVNULL)
        said = done.stdout[-1500:] + done.stderr[-1500:]
        file = os.path.join(folder, "netmend-runs", "latest", "findings.json")
        if not os.path.exists(file):
            return [], said
        with open(file, encoding="utf8") as opened:
            findings = json.load(opened)["findings"]
        return [(one["level"], id) for one in findings for id in [one["id"], *one["related"]]], said
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Why(unittest.TestCase):
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
                help = helps.setdefault(words[1], None) or netmend(words[1], "--help")
                helps[words[1]] = help
                for flag in words[2:]:
                    if flag.startswith("-"):
                        self.assertRegex(help, rf"(?m)^\s+(\S+,)?{re.escape(flag)}[ ,\n]", command)

    def test_texts_are_sentences(self):
        for name, kind in KINDS.items():
            for part in ("title", "meaning", "cause", "confirm", "repair"):
                self.assertRegex(kind[part], r"(?s)^([A-Z]|netmend |goal\.).*[.?]$", (name, part))
            self.assertRegex(kind["example"][-1], r"^netmend check ", name)
            self.assertLessEqual(len(kind["example"]), SHELL_LINES, name)


def test_of(name):
    def test(self):
        if name in SKIPPED:
            self.skipTest(SKIPPED[name])
        found, said = RUNS[name].result()
        self.assertIn(name, [id.split(":")[0] for _, id in found], f"{found}\n" + "\n".join(KINDS[name]["example"]) + "\n" + said)

    return test


if __name__ == "__main__":
    assert os.path.basename(NETMEND) == "netmend", "the examples call it by this name"
    names = [one["kind"] for one in json.loads(netmend("why", "--list", "--json"))["kinds"]]
    KINDS = {name: json.loads(netmend("why", name, "--json")) for name in names}
    for name in names:
        setattr(Why, "test_" + name.replace("-", "_"), test_of(name))
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WHY_JOBS", 2))) as pool:
        SOUND_RUN = pool.submit(find_from, "netmend lab new lenet5 -o fresh.onnx && netmend train fresh.onnx --data glyphs "
                                           "--epochs 4 -o sound.onnx && netmend check sound.onnx --data glyphs")
        scripts = {}  # kinds that share an example run it once
        for name in sorted(set(names) - set(SKIPPED)):
            script = "\n".join(KINDS[name]["example"])
            scripts[script] = scripts.get(script) or pool.submit(find_from, script)
        RUNS = {name: scripts["\n".join(KINDS[name]["example"])] for name in names if name not in SKIPPED}
        outcome = unittest.TextTestRunner(verbosity=2).run(unittest.TestLoader().loadTestsFromTestCase(Why))
    bad = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - bad - len(outcome.skipped)} passed, {bad} failed, {len(outcome.skipped)} skipped")
    sys.exit(not outcome.wasSuccessful())
