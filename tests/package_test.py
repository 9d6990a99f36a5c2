"""What people install: the .deb in a clean Debian 12, the container's steps in the same, the tarball, the wheels in clean
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


class SlowTorchWheel(OneFolder):
    """The wheel without LibTorch, in environments with the PyTorch that it was built with, another one, and none."""

    @classmethod
    def make(cls):
        build = os.path.join(SOURCE, "build", "torch")
        if not os.path.exists(os.path.join(build, "netmend-engine")):
            raise unittest.SkipTest("nothing was built with PyPI's torch (./dev build --torch pip netmend)")
        if not shutil.which("patchelf"):
            raise unittest.SkipTest("patchelf is not installed")
        cls.torch = re.search(r"^NETMEND_LIBTORCH:PATH=(.+)$", read(os.path.join(build, "CMakeCache.txt")), re.M).group(1)
        cls.site = os.path.dirname(cls.torch)  # an environment for one version of Python, NumPy in it too
        version = re.search(r"python(3\.\d+)", cls.torch)
        cls.python = version and shutil.which("python" + version.group(1), path="/usr/bin:" + os.environ["PATH"])
        if not cls.python:
            raise unittest.SkipTest(f"no Python here fits {cls.torch}")
        print(must(os.path.join(SOURCE, "scripts", "wheel"), build, ".", cls.torch, program="/usr/bin/python3").stdout.strip())
        cls.wheel = glob.glob("*.whl")[0]
        cls.series = re.search(r"\+torch([\d.]+)-", cls.wheel).group(1)

    def environment(self, *paths):
        """A clean environment with the wheel, whose Python also finds these folders."""
        folder = os.path.abspath(tempfile.mkdtemp(dir="."))
        self.addCleanup(shutil.rmtree, folder)
        must("-m", "venv", os.path.join(folder, "env"), program=self.python)
        packages = glob.glob(os.path.join(folder, "env", "lib", "python3*", "site-packages"))[0]
        must("install", "-q", "--no-deps", "--no-index", self.wheel, program=os.path.join(folder, "env", "bin", "pip"))
        with open(os.path.join(packages, "others.pth"), "w") as file:
            file.write("".join(path + "\n" for path in paths))
        return folder, packages

    def inside(self, folder, program, *words):
        return run(*words, program=os.path.join(folder, "env", "bin", program), cwd=folder,
                   env={"PATH": "/usr/bin:/bin", "HOME": folder})

    def refuses(self, done, *says):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for text in (f"needs an installed PyTorch {self.series}", f"pip install 'torch=={self.series}.*'", *says):
            self.assertIn(text, done.stderr)

    def test_with_the_version_that_fits(self):
        folder, packages = self.environment(self.site)
        done = self.inside(folder, "python", "-c", FINDING)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.strip())
        loaded = run("-c", f"LD_TRACE_LOADED_OBJECTS=1 {packages}/netmend/_bin/netmend-engine", program="bash",
                     env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": self.torch + "/lib"}).stdout
        self.assertNotIn("not found", loaded)
        self.assertRegex(loaded, r"libtorch_cpu\.so => " + re.escape(self.torch) + "/lib/")
        self.assertRegex(loaded, r"libstdc\+\+\.so\.6 => .*site-packages/netmend/.*_lib/")
        self.assertEqual([name for name in os.listdir(packages + "/netmend/_lib") if "torch" in name or "c10" in name], [])

    def test_with_another_version(self):
        folder, packages = self.environment(self.site)
        os.makedirs(os.path.join(folder, "other", "torch"))
        open(os.path.join(folder, "other", "torch", "__init__.py"), "w").close()
        with open(os.path.join(folder, "other", "torch", "version.py"), "w") as file:
            file.write("__version__ = '2.6.1+cpu'\n")
        with open(os.path.join(packages, "others.pth"), "w") as file:
            file.write(folder + "/other\n" + self.site + "\n")
        call = "import netmend as nm\ntry:\n    nm.info('m.onnx')\nexcept nm.NetmendMissingError as error:\n    print(error)"
        done = self.inside(folder, "python", "-c", call)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"needs an installed PyTorch {self.series}, but {folder}/other/torch is 2.6.1", done.stdout)
        self.refuses(self.inside(folder, "netmend", "info", "m.onnx"), "/other/torch is 2.6.1")

    def test_with_none(self):
        folder, packages = self.environment()
        self.refuses(self.inside(folder, "netmend", "info", "m.onnx"), "the Python that started it has none")
        self.assertIn("netmend", self.inside(folder, "netmend", "--version").stdout)
        self.assertEqual(self.inside(folder, "netmend", "why", "--list").returncode, 0)  # needs no model

    def test_without_python(self):
        folder, packages = self.environment()
        program = packages + "/netmend/_bin/netmend"
        bare = {"PATH": "/usr/bin:/bin", "HOME": folder}
        words = ("lab", "new", "lenet1", "-o", "m.onnx")
        self.refuses(run(*words, program=program, env=bare, cwd=folder), "there is none in " + packages)
        self.refuses(run(*words, program=program, env={**bare, "NETMEND_TORCH": folder}, cwd=folder), "there is none in " + folder)
        os.symlink(self.torch, packages + "/torch")  # beside the package it is found
        done = run(*words, program=program, env=bare, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)


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
