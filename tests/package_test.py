"""What people install: the .deb in a clean Debian 12, the container's steps in the same, the tarball, the wheel in clean
environments, and what is made of the description of the commands.

usage: package_test.py NETMEND, in its build folder
"""
import glob, os, re, shutil, subprocess, sys, tempfile, time, unittest, zipfile

from shell import NETMEND, SOURCE, Case, OneFolder, main, must, parse, read, run

BUILD = os.path.dirname(NETMEND)
FINDING = """
import netmend as nm
raw = nm.lab.new("mlp:784-16-10", seed=1)
trained = nm.train(raw.files["o"], "glyphs", limit=2000, epochs=1)
result = nm.check(trained.files["o"], "glyphs:test", budget="quick", limit=1000)
print(result.findings[0].id)
"""


def script(name, *words, **how):
    return must(*words, program=os.path.join(SOURCE, "scripts", name), **how)


class FromCommands(OneFolder):
    @classmethod
    def make(cls):
        script("from_commands", NETMEND, "made")

    def test_the_description_is_the_help(self):
        document = parse(run("lab", "commands", "--json").stdout)
        described = {command["name"]: command for command in document["commands"]}
        self.assertEqual(document["program"], run("--version").stdout.split()[1])
        for name in re.findall(r"^(?:  [A-Z][a-z]+(?: here)? +| {14})((?:lab )?[a-z]+)  ", run().stdout, re.M):
            self.assertTrue(name in described or name == "lab study", name)
        for name in ("check", "repair", "lab plant"):
            told = set(re.findall(r"^ +(?:-\w,)?(--[a-z0-9-]+)", run(*name.split(), "--help").stdout, re.M)) - {"--help"}
            self.assertEqual(told - {flag for option in described[name]["options"] for flag in option["flags"]}, set(), name)
        options = {option["name"]: option for option in described["locate"]["options"]}
        self.assertEqual([options[name]["type"] for name in ("all", "top", "threshold", "data")], ["flag", "int", "float", "text"])
        self.assertEqual((options["tap"]["choices"], options["tap"]["default"]), (["pre", "post"], "post"))
        self.assertEqual([options[name]["role"] for name in ("model", "data")], ["model", "data"])

    def complete(self, *words):
        """What bash offers for the last of the words."""
        line = " ".join(f"'{word}'" for word in words)
        program = f"source made/netmend.bash; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _netmend; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return run("-c", program, program="bash").stdout.split()

    def test_bash(self):
        self.assertIn("check", self.complete("netmend", "ch"))
        self.assertEqual(self.complete("netmend", "lab", "me"), ["merge"])
        self.assertEqual(self.complete("netmend", "lab", "study", "sb"), ["sbfl-repair"])
        self.assertIn("--fail-on", self.complete("netmend", "check", "model.onnx", "--f"))
        self.assertEqual(self.complete("netmend", "check", "--fail-on", "ser"), ["serious"])
        self.assertNotIn("--epochs", self.complete("netmend", "check", "--e"))
        open("model.onnx", "w").close()
        self.assertIn("model.onnx", self.complete("netmend", "check", "mod"))

    def test_zsh_and_fish_read_theirs(self):
        for shell, file in (("zsh", "_netmend"), ("fish", "netmend.fish")):
            if not shutil.which(shell):
                print(f"SKIPPED: {shell} is not installed")
                continue
            done = run("-n", os.path.join("made", file), program=shell)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_manual_page(self):
        page = read("made/netmend.1")
        for flag in re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", run("repair", "--help").stdout, re.M):
            self.assertIn(flag.replace("-", "\\-"), page, flag)
        if shutil.which("man"):
            said = run("--warnings=mac", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "made/netmend.1", program="man")
            self.assertEqual(said.stderr, "")


class SlowWheel(OneFolder):
    @classmethod
    def make(cls):
        if not shutil.which("patchelf"):
            raise unittest.SkipTest("patchelf is not installed")
        with_numpy = next((p for p in (sys.executable, "/usr/bin/python3") if run("-c", "import numpy", program=p).returncode == 0), None)
        if with_numpy is None:
            raise unittest.SkipTest("no Python here has NumPy")
        said = must(os.path.join(SOURCE, "scripts", "wheel"), BUILD, ".", program=with_numpy).stdout
        print(said.strip())
        cls.wheel = glob.glob("*.whl")[0]
        assert "netmend/doctor_forest.json" in zipfile.ZipFile(cls.wheel).namelist()

    def pythons(self):
        found = {}
        for version in ("3.9", "3.10", "3.11", "3.12", "3.13"):
            for path in [shutil.which("python" + version), *glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python"))]:
                if path and run("-c", "import venv, ensurepip", program=path).returncode == 0:
                    found.setdefault(version, path)
        return found

    def test_it_is_small_enough(self):
        self.assertLess(os.path.getsize(self.wheel), 300e6)

    def test_clean_environments(self):
        tried = 0
        for version, python in self.pythons().items():
            with self.subTest(version):
                folder = tempfile.mkdtemp(dir=".")
                must("-m", "venv", os.path.join(folder, "env"), program=python)
                bin = os.path.abspath(os.path.join(folder, "env", "bin"))
                got = run("install", "-q", "numpy", program=os.path.join(bin, "pip"))
                if got.returncode:
                    self.skipTest("PyPI cannot be reached")
                began = time.monotonic()
                must("install", "-q", "--no-deps", self.wheel, program=os.path.join(bin, "pip"))
                environment = {"PATH": "/usr/bin:/bin", "HOME": os.path.abspath(folder)}
                done = run("-c", FINDING, program=os.path.join(bin, "python"), env=environment, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.strip())
                seconds = time.monotonic() - began
                print(f"{version}: {seconds:.0f} s from pip install to {done.stdout.strip()}")
                self.assertLess(seconds, 60)
                self.assertIn("netmend", run("--version", program=os.path.join(bin, "netmend"), env=environment).stdout)
                loaded = run("-c", f"LD_TRACE_LOADED_OBJECTS=1 {glob.glob(bin + '/../lib/*/site-packages/netmend/_bin/netmend-engine')[0]}",
                             program="bash", env={**environment, "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu"}).stdout
                self.assertNotIn("not found", loaded)
                ours = [line for line in loaded.splitlines() if "=>" in line and not re.search(r"(ld-linux|lib(c|m|dl|rt|pthread|resolv|util)\.so)", line)]
                self.assertTrue(ours)
                for line in ours:  # even where LD_LIBRARY_PATH offers others
                    self.assertRegex(line, "site-packages/netmend/.*_lib/")
                tried += 1
                shutil.rmtree(folder)
        self.assertGreater(tried, 0)


@unittest.skipIf(os.getuid() != 0 or not shutil.which("mmdebstrap"), "a clean root needs mmdebstrap and root")
class SlowDebian(OneFolder):
    @classmethod
    def make(cls):
        script("package", BUILD, "made")
        root = os.path.abspath("root")
        done = run("--variant=apt", "--mode=root", "bookworm", root, program="mmdebstrap", timeout=1200)
        if done.returncode:
            raise unittest.SkipTest("Debian's archive cannot be reached: " + done.stderr.strip().splitlines()[-1])
        cls.root = root
        cls.addClassCleanup(shutil.rmtree, root, ignore_errors=True)

    def inside(self, *words, user=None, folder="/", code=0):
        """A command in the clean root, with /proc as in a container and nothing of this machine's environment."""
        who = ["--userspec=" + user] if user else []
        shell = "cd " + folder + ' && exec "$@"'
        proc = ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$@"', self.root]
        done = subprocess.run([*proc, *who, self.root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "DEBIAN_FRONTEND=noninteractive",
                               "/bin/sh", "-c", shell, "sh", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1800)
        self.assertEqual(done.returncode, code, (words, done.stdout[-1500:], done.stderr[-1500:]))
        return done.stdout

    def test_steps_of_the_container_file(self):
        user, entry, folder = None, None, "/"
        for line in read("made/Containerfile").splitlines():
            word, _, rest = line.partition(" ")
            if word == "COPY":
                source, target = rest.split()
                for file in glob.glob(os.path.join("made", source)):
                    shutil.copy(file, self.root + target)
            elif word == "RUN":
                self.inside("sh", "-c", rest)
            elif word == "USER":
                user = rest
            elif word == "WORKDIR":
                folder = rest
            elif word == "ENTRYPOINT":
                entry = rest.strip('["]')
            else:
                self.assertIn(word, ("FROM", "#", ""), line)
        self.assertEqual((user, folder, entry), ("netmend", "/data", "netmend"))
        self.assertEqual(self.inside("id", "-un", user=user).strip(), "netmend")
        said = self.inside(entry, "demo", "--epochs", "1", user=user, folder=folder)
        self.assertIn("repair", said)
        self.assertTrue(os.listdir(self.root + "/data"))
        for file in ("man/man1/netmend.1.gz", "bash-completion/completions/netmend"):
            self.assertTrue(os.path.exists(self.root + "/usr/share/" + file), file)
        self.inside("apt-get", "-y", "remove", "netmend")
        self.assertFalse(os.path.exists(self.root + "/usr/bin/netmend-engine"))


class SlowTarball(Case):
    def test_it_runs_where_it_is_unpacked(self):
        script("package", BUILD, "made")
        must("xf", glob.glob("made/*.tar.gz")[0], program="tar")
        done = run("lab", "new", "lenet1", "-o", "m.onnx", program=os.path.abspath("usr/bin/netmend"))
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
