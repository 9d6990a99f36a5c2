"""What all tests of the program share: running netmend in an empty folder, what its answers must look like, files for
it and from it, what a test needs to be there, and levels.

A test is called as x_test.py NETMEND [fast|slow [part of a test's name …]]. NETMEND_DATA names the folder of public
data sets; NETMEND_KEEP=FOLDER keeps what tests with one folder for their class made.
"""
import atexit, csv, functools, importlib.util, json, os, re, shutil, struct, subprocess, sys, tempfile, threading, time, unittest, zlib

NETMEND = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "netmend"
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
PYTHON = os.path.join(SOURCE, "python")  # the folder of the package
DATA = os.path.abspath(os.environ["NETMEND_DATA"]) if os.environ.get("NETMEND_DATA") else ""
KEEP = os.path.abspath(os.environ["NETMEND_KEEP"]) if os.environ.get("NETMEND_KEEP") else ""


# ---- running ----

ENGINES = threading.Lock()


def engine(*shims):
    """The socket of an engine that is loaded once, with these libraries before all others, and forked for each run
    (shim/forked.cc); none under a sanitizer."""
    with ENGINES:  # tests may run it in several threads
        return _engine(*shims)


@functools.cache
def _engine(*shims):
    shim = os.path.join(os.path.dirname(NETMEND), "libforked.so")
    if not os.path.exists(shim) or os.environ.get("NETMEND_FORKED") == "no":
        return None
    socket = os.path.join(shared(), "-".join(["engine", *map(os.path.basename, shims)]))
    shim = ":".join([*shims, shim])
    server = subprocess.Popen([NETMEND, "check"], stdin=subprocess.DEVNULL, env={**os.environ, "LD_PRELOAD": shim, "NETMEND_FORKS": socket})
    atexit.register(server.kill)
    while not os.path.exists(socket):
        assert server.poll() is None, "the engine did not start"
        time.sleep(0.01)
    return {"LD_PRELOAD": shim, "NETMEND_FORKED_BY": socket}


def quick(environment=None):
    """The environment in which netmend does not load its libraries anew. NETMEND_FORKED=no goes without."""
    environment = os.environ if environment is None else environment
    return environment if "LD_PRELOAD" in environment else {**environment, **(engine() or {})}


def run(*arguments, program=NETMEND, timeout=600, **how):
    """netmend, or another program; its output is text, and nobody is at its keyboard."""
    if program == NETMEND and "preexec_fn" not in how:
        how["env"] = quick(how.get("env"))
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **how)


def start(*arguments, **how):
    """netmend at work, for those who want to disturb it."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "stdin": subprocess.DEVNULL, **how}
    return subprocess.Popen([NETMEND, *map(str, arguments)], **how)


def must(*arguments, **how):
    """run, for steps that prepare a test."""
    done = run(*arguments, **how)
    assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done


def parse(text):
    """JSON as the standard has it, without NaN and Infinity."""
    def no_such(number):
        raise AssertionError(f"{number} in JSON")

    return json.loads(text, parse_constant=no_such)


def shared():
    """A folder for what is made once for all tests of the program."""
    if not hasattr(shared, "folder"):
        shared.folder = tempfile.mkdtemp(prefix="netmend-shared-")
        atexit.register(shutil.rmtree, shared.folder, ignore_errors=True)
    return shared.folder


def model(network, *training, epochs=1, seed=1):
    """A network of the zoo, made once for all tests of the program, and trained if there is something to train with."""
    name = re.sub(r"\W+", "-", " ".join(map(str, (network, *training, epochs, seed))))
    file = os.path.join(shared(), name + ".onnx")
    if not os.path.exists(file):
        raw = file + ".raw"
        must("lab", "new", network, "-o", raw, "--seed", seed)
        if training:
            must("train", raw, *training, "--epochs", epochs, "-o", raw + ".trained", "--out", raw + ".run", "--quiet")
            raw += ".trained"
        os.rename(raw, file)
    return file


class Case(unittest.TestCase):
    """Every test in an empty folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="netmend-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def ok(self, *arguments, code=0, **how):
        done = run(*arguments, **how)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-1500:], done.stderr[-1500:]))
        return done

    def json(self, *arguments, code=0, **how):
        return parse(self.ok(*arguments, "--json", code=code, **how).stdout)

    def refused(self, *arguments, words=(), **how):
        said = self.ok(*arguments, code=2, **how).stderr
        self.assertEqual(sum(line.startswith("error: ") for line in said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)
        return said


class OneFolder(Case):
    """One folder for all tests of the class, which `make` fills."""

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(os.chdir, os.getcwd())
        if KEEP:
            cls.folder = os.path.join(KEEP, cls.__name__)
            shutil.rmtree(cls.folder, ignore_errors=True)
            os.makedirs(cls.folder)
        else:
            cls.folder = tempfile.mkdtemp(prefix="netmend-")
            cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        os.chdir(cls.folder)
        cls.make()

    @classmethod
    def make(cls):
        pass

    def setUp(self):
        pass


# ---- files ----

def read(path):
    with open(path, encoding="utf8") as file:
        return file.read()


def write(path, text, mode="w"):
    with open(path, mode, encoding="utf8") as file:
        file.write(text)
    return path


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write_bytes(path, content):
    with open(path, "wb") as file:
        file.write(content)


def read_json(path):
    return parse(read(path))


def write_json(path, value):
    write(path, json.dumps(value))


def read_csv(path):
    """Rows by the names of the columns."""
    with open(path, encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path, *rows):
    with open(path, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_npy(path, kind, shape, values):
    """kind: a letter of struct for numbers of 4 or 8 bytes."""
    described = {"f": "<f4", "q": "<i8"}[kind]
    text = f"{{'descr': '{described}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    body = struct.pack(f"<{len(values)}{kind}", *values)
    write_bytes(path, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body)


def read_floats(path):
    """The values of an NPY file of float32."""
    raw = read_bytes(path)
    start = 10 + struct.unpack("<H", raw[8:10])[0]
    return struct.unpack(f"<{(len(raw) - start) // 4}f", raw[start:])


def write_png(path, rows):
    """A grey picture."""
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_bytes(path, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


# ---- what has to be there ----

def data(*parts):
    """A path below the folder of public data sets."""
    return os.path.join(DATA, *parts)


def lacking(*packages, files=()):
    """What is missing of Python's packages and of the public data, as a sentence; empty if all is there."""
    lost = [name for name in packages if importlib.util.find_spec(name) is None]
    if lost:
        return f"this Python has no {lost[0]} (Debian: python3-{lost[0]})"
    if files and not DATA:
        return "NETMEND_DATA names no folder of public data sets"
    lost = [name for name in files if not os.path.exists(data(*name.split("/")))]
    return f"NETMEND_DATA holds no {lost[0]}" if lost else ""


def needs(*packages, files=()):
    """For tests and classes of them: skipped without these packages, and these files below NETMEND_DATA."""
    lost = lacking(*packages, files=files)
    return unittest.skipIf(lost, lost)


def need(*packages, files=()):
    """For programs that cannot even be read without them: skips all there is."""
    lost = lacking(*packages, files=files)

    def everything():
        raise unittest.SkipTest(lost)

    if lost:
        finish(unittest.FunctionTestCase(everything))


# ---- levels ----

times = []


class Result(unittest.TextTestResult):
    passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        times.append((time.monotonic() - self.began, test.id().split(".", 1)[-1]))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def finish(suite):
    """Runs the tests and ends the program: with 77, which ctest counts as skipped, where all of them were."""
    done = unittest.TextTestRunner(verbosity=2, resultclass=Result, warnings="ignore").run(suite)
    print("slowest:", ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(times)[:-8:-1]))
    if not done.wasSuccessful():
        sys.exit(1)
    if done.passed:
        sys.exit(0)
    if done.skipped:
        sys.exit(77)
    sys.exit("there is no such test at this level")


def main(slow=False):
    """Classes named Slow… run when the second argument says slow, all others otherwise; with `slow` all are slow."""
    level = sys.argv[2] if len(sys.argv) > 2 else "slow" if slow else "fast"
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in sys.argv[3:]] or None
    suite = unittest.TestSuite()
    for name, thing in sorted(vars(sys.modules["__main__"]).items()):
        if isinstance(thing, type) and issubclass(thing, Case) and thing.__module__ == "__main__":
            if level == ("slow" if slow or name.startswith("Slow") else "fast"):
                suite.addTests(loader.loadTestsFromTestCase(thing))
    finish(suite)
