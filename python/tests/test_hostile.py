"""Files of others that the package opens: pipes, devices, links, files without end, deep, large or of another type. Each is a
sentence, in no time, and nothing but what was named is written to."""
import copy
import io
import json
import os
import signal
import subprocess
import sys
import time
import unittest
import zipfile

import numpy as np

from netmend import NetmendInputError, PatchError, RecorderError, _files, _program, _results, _store, _syntax, _tracing
from netmend._edits import load_edits, make_edits

from .support import HERE, SavingCase

DEEP = "[" * 100000


def python(*words, **environment):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": HERE, **environment})


class HostileCase(SavingCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.scratch.name)
        before = signal.signal(signal.SIGALRM, self.hangs)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.alarm, 0)
        signal.alarm(120)

    def hangs(self, *unused):
        raise AssertionError("it hangs")

    def no_files(self, path):
        """Makes what is no file, one after the other."""
        for make in (os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink("/dev/null", p),
                     lambda p: os.symlink(path, p), lambda p: os.symlink("nowhere", p)):
            make(path)
            yield path
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            elif os.path.lexists(path):
                os.unlink(path)

    def says(self, done, *words):
        self.assertEqual((done.returncode, done.stderr[:7]), (2, "error: "), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class Files(HostileCase):
    def test_only_regular_files_of_bounded_size_are_read(self):
        for path in self.no_files("x"):
            with self.assertRaises(_files.Unfit):
                _files.read_bytes(path, 100)
        for name in ("", "a\0b", "none"):
            with self.assertRaises(_files.Unfit):
                _files.read_bytes(name, 100)
        with open("hole", "wb") as file:
            file.truncate(1 << 40)
        with self.assertRaisesRegex(_files.Unfit, "larger than 256 MB"):
            _files.read_json("hole")
        with open("small", "wb") as file:
            file.write(b"x" * 100)
        self.assertEqual(len(_files.read_bytes("small", 100)), 100)
        with self.assertRaisesRegex(_files.Unfit, "larger than 99 bytes"):
            _files.read_bytes("small", 99)
        with self.assertRaises(_files.Unfit):  # says that it has no bytes
            _files.read_bytes("/proc/self/maps", 100)

    def test_json_that_is_none(self):
        for text in (DEEP, "", "{", '{"a": 1, "a": 2}', "1" * 5000, "\xff", "[]," * 3_000_000):
            with self.assertRaises(_files.Unfit):
                _files.parse_json(text.encode("latin-1"))
        self.assertEqual(_files.parse_json(b'{"a": [1, 2.5, "\\u00e9"]}'), {"a": [1, 2.5, "\xe9"]})

    def test_messages_are_printable(self):
        name = "a\x1b[31m\x9b\u202e\ud800\x07"
        for error in (NetmendInputError(name, name), RecorderError(name, name, name), PatchError(name, name, name)):
            self.assertEqual(set(str(error)) & set("\x1b\x9b\u202e\ud800\x07"), set())
        self.assertEqual(_files.printable("é\tà\n"), "é\tà\n")
        self.assertEqual(_files.printable_name("a\nb"), "a\\nb")

    def test_files_of_a_run_folder(self):
        for name in ("x.json", "x.npz", "x.csv", "x.txt"):
            for path in self.no_files(name):
                with self.assertRaises(NetmendInputError):
                    _results._read(path)
        for name, content in (("x.json", DEEP), ("x.npz", "PK"), ("x.txt", "\xff")):
            with open(name, "wb") as file:
                file.write(content.encode("latin-1"))
            with self.assertRaises(NetmendInputError):
                _results._read(name)

    def test_a_program_that_is_none(self):
        os.mkdir("folder")
        os.mkfifo("pipe", 0o755)
        self.assertFalse(_program._is_binary("pipe"))
        before = os.environ.get("NETMEND_PROGRAM")
        try:
            os.environ["NETMEND_PROGRAM"] = "folder"
            with self.assertRaisesRegex(ImportError, "not a program"):
                _program.program()
        finally:
            os.environ.pop("NETMEND_PROGRAM")
            if before is not None:
                os.environ["NETMEND_PROGRAM"] = before

    def test_gates_of_a_repository(self):
        try:
            from netmend._pytest import limits_of
        except ImportError:
            raise unittest.SkipTest("pytest is not installed")
        for path in self.no_files("netmend.toml"):
            self.assertEqual(limits_of(path), [""])
        for text in ("a = " + DEEP, "\xff", "gate = 3"):
            with open("netmend.toml", "w", encoding="latin-1") as file:
                file.write(text)
            self.assertEqual(limits_of("netmend.toml"), [""])


class SavedFolders(HostileCase):
    def setUp(self):
        super().setUp()
        self.x = np.arange(3000, dtype=np.float32).reshape(1500, 2)
        self.index = os.path.join(self.dir, "data.json")
        self.part = os.path.join(self.dir, "part-00000.npz")

        def broken():
            yield self.x[:1100], np.zeros(1100, int)
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.save(broken())
        with open(self.index) as file:
            self.meta = json.load(file)
        with open(self.part, "rb") as file:
            self.bytes = file.read()

    def loader(self):
        return [(self.x, np.zeros(1500, int))]

    def put(self, meta):
        with open(self.index, "w") as file:
            json.dump(meta, file)

    def test_an_index_that_is_no_file(self):
        os.unlink(self.index)
        for _ in self.no_files(self.index):
            for overwrite in (False, True):
                self.refused(self.loader(), "data.json cannot be read", overwrite=overwrite)
        with open(self.index, "wb") as file:
            file.truncate(1 << 40)
        self.refused(self.loader(), "larger than 256 MB")

    def test_every_field_has_its_type(self):
        cases = [(("complete",), (None, 0, 1, "false", [])), (("display",), (None, 3, "film", ["none"])),
                 (("classes",), (None, "a", [1])), (("groups",), (None, {}, [None])), (("samples",), (None, -1, "1024", 1024.0, True)),
                 (("inputs",), (None, {}, [], [3])), (("parts",), (None, {}, [3])), (("labels",), (None, [], "class")),
                 (("labels", "kind"), (None, 3, "words", ["class"])), (("labels", "width"), (None, -1, True, "1", 1.5, 1 << 60)),
                 (("inputs", 0, "name"), (None, 3, [], "a\0b")),
                 (("inputs", 0, "type"), (None, 3, "nonsense", "object", "O", "V8", "float32,int8", "datetime64", "", ["float32"], {})),
                 (("inputs", 0, "shape"), (None, 2, "2", [2.0], [True], [-2], [2, -1], [None], [1 << 60], [1] * 40)),
                 (("inputs", 0, "columns"), (None, "ab", ["a"], [1, 2])),
                 (("parts", 0, "file"), (None, 3, "../x", "part-00001.npz")), (("parts", 0, "samples"), (None, 0, 1, True, 1 << 60)),
                 (("parts", 0, "bytes"), (None, 0, -1, True, "9")), (("parts", 0, "crc32"), (None, 3, "x", "0" * 9, "0" * 8 + "\n"))]
        for path, values in cases:
            for value in values:
                meta = copy.deepcopy(self.meta)
                at = meta
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = value
                self.put(meta)
                with self.subTest(path=path, value=value):
                    self.refused(self.loader(), "data.json is damaged", "`%s" % path[0])
        twice = copy.deepcopy(self.meta)
        twice["inputs"] *= 2
        self.put(twice)
        self.refused(self.loader(), "no other input")
        self.put(self.meta)
        self.assertEqual(len(self.save(self.loader()).labels), 1500)

    def test_names_in_an_index_do_not_reach_the_terminal(self):
        self.put(dict(self.meta, version="\x1b[31m"))
        self.assertNotIn("\x1b", self.refused(self.loader()))
        self.put(dict(self.meta, classes=["\x1b[31m"]))
        self.assertNotIn("\x1b", self.refused(self.loader()))

    def test_parts_that_are_no_files_are_saved_again(self):
        for _ in self.no_files(self.part + ".ragged"):
            self.assertIsNone(self.begun().keep_whole_parts())
        os.unlink(self.part)
        for path in self.no_files(self.part):
            self.assertEqual(self.begun().keep_whole_parts(), "part-00000.npz")

    def begun(self):
        store = _store.Store(self.dir)
        store.load(False)
        return store

    def test_parts_that_would_take_more_than_they_have(self):
        def archive(*members, packed=zipfile.ZIP_STORED):
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w", packed) as out:
                for name, data in members:
                    out.writestr(name, data)
            return content.getvalue()

        def array(head):
            head = head.encode() + b"\n"
            return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head

        huge = array("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}")
        objects = array("{'descr': '|O', 'fortran_order': False, 'shape': ()}")
        deep = array("{'descr': %s" % ("(" * 5000))
        sound = array("{'descr': '|u1', 'fortran_order': False, 'shape': (0,)}")
        good = archive(("a.npy", sound))
        for content in (archive(("a.npy", bytes(10_000_000)), packed=zipfile.ZIP_DEFLATED), archive(("a.npy", huge)),
                        archive(("a.npy", objects)), archive(("a.npy", deep)), archive(("a.npy", b"")), b"", b"PK", good[:-5],
                        good.replace(b"'|u1'", b"'|m1'"), self.doubled(archive)):
            with open("p.npz", "wb") as file:
                file.write(content)
            with self.assertRaises(_files.Unfit):
                _store.read_npz("p.npz")
        with open("p.npz", "wb") as file:
            file.write(good)
        self.assertEqual(_store.read_npz("p.npz")["a"].shape, (0,))

    @staticmethod
    def doubled(archive):
        return archive(("a.npy", b"1"), ("b.npy", b"2")).replace(b"b.npy", b"a.npy")

    def test_nothing_is_written_through_links(self):
        with open("mine", "w") as file:
            file.write("mine")
        for name in ("data.json.tmp", "part-00001.npz.tmp"):
            os.symlink(os.path.abspath("mine"), os.path.join(self.dir, name))
        os.mkfifo(os.path.join(self.dir, "part-00002.npz.tmp"))
        self.assertEqual(len(self.save(self.loader()).labels), 1500)
        with open("mine") as file:
            self.assertEqual(file.read(), "mine")
        os.mkfifo("reference.npz.tmp")
        _store.write_beside("reference.npz", lambda out: out.write(b"x"))
        self.assertEqual(_files.read_bytes("reference.npz", 9), b"x")


class EditsFiles(HostileCase):
    def refuses(self, text, *words):
        with open("edits.json", "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        with self.assertRaises(PatchError) as caught:
            load_edits("edits.json")
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertNotIn("\x1b", str(caught.exception))

    def test_files_that_are_none(self):
        for path in self.no_files("edits.json"):
            with self.assertRaises(PatchError):
                load_edits(path)
        for text in (DEEP, '{"a":' * 100000, "", "[]", "null", '{"format": "netmend-edits", "version": 1, "edits": [' + DEEP):
            self.refuses(text)

    def test_every_field_has_its_type(self):
        whole = make_edits({"w": np.zeros((2, 2)), "b": np.zeros(2)}, {"w": np.ones((2, 2)), "b": np.ones(2)})
        self.assertEqual(len(load_edits(whole)), 2)
        self.assertEqual(load_edits({"format": "netmend-edits", "version": 1, "edits": []}), [])
        cases = [(("edits",), (None, {}, 3, "x", [3], [[]])), (("parameters",), (None, [], {})), (("version",), (None, 2, "\x1b")),
                 (("parameters", "w"), (None, 3, [])), (("parameters", "w", "shape"), (None, 4, "22", [2, "2"], [2.0, 2], [-2, -2],
                                                                                   [1 << 40, 1 << 40], [True, 2], [1] * 40)),
                 (("parameters", "b", "before"), (None, 0, [0], ["0", "0"], [[0, 0]], {})),
                 (("edits", 0, "parameter"), (None, 3, [], "other", "\x1b[31m")), (("edits", 0, "unit"), (3, [], {"\x1b": 1})),
                 (("edits", 0, "axis"), (None, "0", 0.0, True, -1, 2, 1 << 70)), (("edits", 0, "index"), (None, "0", 1.5, True, -1, 2)),
                 (("edits", 0, "before"), (None, 0, "00", [0], [True, False], ["0", "0"], [None, 0], [[0], [0]], [10 ** 350, 0])),
                 (("edits", 0, "after"), (None, 0, {}, [0, 0, 0], [{}, {}]))]
        for path, values in cases:
            for value in values:
                text = copy.deepcopy(whole)
                at = text
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = value
                with self.subTest(path=path, value=value):
                    self.refuses(text)
        text = copy.deepcopy(whole)
        text["edits"][0]["before"] = ["nan", "-inf"]
        self.assertTrue(np.isnan(load_edits(text)[0].edits[0].before[0]))


class Programs(HostileCase):
    def lint(self, text, most=30):
        with open("p.py", "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        begin = time.process_time(), time.time()
        done = subprocess.run([sys.executable, os.path.join(HERE, "netmend", "lint.py"), "p.py"], capture_output=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertLess(time.time() - begin[1], most * 4, text[:60])
        return json.loads(done.stdout)

    def test_what_is_too_large_is_said_before_it_is_parsed(self):
        for text, words in (("x=1\n" * 2_000_000, "larger than 1 MB"), ("x=1\n" * 60_000, "more than 50000 lines"),
                            ("x=1\r" * 60_000, "more than 50000 lines"), ("x=f'" + "{a}" * 300_000 + "'", "opening braces")):
            self.assertIn(words, self.lint(text, 2)["errors"][0])
        self.assertEqual(self.lint("x=1\r\n" * 49_000)["errors"], [])

    def test_time_follows_the_length(self):
        head = "import torch, keras\nloss = torch.nn.MSELoss()\n"
        loops = "".join(" " * i + "for x in y:\n" for i in range(90)) + (" " * 90 + "a.step();" * 100 + "\n") * 30
        for text in (("f" + "()" * 90 + "\n") * 1300, ("f" + ".step()" * 90 + "\n") * 400, "x=f(x);" * 30_000, loops,
                     "f(" + "1," * 100_000 + ")" + ".step()" * 900, "a.compile(loss='mse');Dense(1);" * 8_000, "loss(x);x=f()\n" * 15_000):
            self.assertEqual(self.lint(head + text, 10)["errors"], [])

    def test_what_cannot_be_parsed_or_written_down(self):
        for text in (b"x=" + b"(" * 100_000, b"x=" + b"-" * 100_000 + b"1", b"\xff", b"x\0", b"x=", b"x=" + b"1" * 100_000 + b"\n"):
            self.assertTrue(self.lint(text)["errors"] or text[-1:] == b"\n")
        self.assertEqual(self.lint(b"\xef\xbb\xbfimport torch\n")["errors"], [])
        self.assertEqual(self.lint("import keras\nm.add(Dense(1))\nm.compile(loss='\\ud800categorical\\x1b')\n")["errors"], [])
        for _ in self.no_files("q.py"):
            self.says(python("-m", "netmend.lint", "q.py"), "q.py")

    def test_lint_as_a_module(self):
        self.says(python("-m", "netmend.lint", "nope.py"), "nope.py cannot be read: No such file")
        self.says(python("-m", "netmend.lint"), "no file")
        self.says(python("-m", "netmend.lint", "a\x1b[31m\nb.py"), "a\\x1b[31m\\nb.py")

    def test_proposals_for_programs_that_are_none(self):
        with open("f.json", "w") as file:
            json.dump({"findings": [{"kind": "learning-rate-high", "level": "serious"}]}, file)
        for text in (b"x=" + b"-" * 100_000 + b"1", b"\xff", b"x=\n", b"x=1\n" * 60_000, b"x=1\n" * 2_000_000):
            with open("p.py", "wb") as file:
                file.write(text)
            self.assertIn("p.py cannot be", self.proposed()["error"])
        for text in (b"o = torch.optim.SGD(p, lr=1e308)\n", b"o = torch.optim.SGD(p, lr=1" + b"0" * 400 + b")\n"):
            with open("p.py", "wb") as file:
                file.write(text)
            self.assertNotIn("inf", self.proposed()["diff"])
        with open("p.py", "wb") as file:
            file.write(b"\xef\xbb\xbfimport torch\ro = torch.optim.SGD(p, lr=10)\r")
        self.assertIn("lr=1)", self.proposed()["diff"])

    def proposed(self):
        done = python(os.path.join(HERE, "netmend", "proposal.py"), "p.py", "f.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_sources_and_notebooks(self):
        for name in ("s.py", "s.ipynb"):
            for path in self.no_files(name):
                with self.assertRaises(_syntax.Unreadable):
                    _syntax.read_source(path)
        for text in (DEEP, '{"cells": [3]}', '{"cells": [{"cell_type": "code", "source": 3}]}', '{"cells": 3}', "[]", '{"cells": [[]]}'):
            with open("s.ipynb", "w") as file:
                file.write(text)
            with self.assertRaises(_syntax.Unreadable):
                _syntax.read_source("s.ipynb")
        begin = time.process_time()
        source = _syntax.Source("s.py", "x = (a" + " " * 200_000 + "+ b)\n", "utf-8")
        self.assertEqual(source.find_operator(6, len(source.text) - 3, r"\+")[0], 200_006)
        source = _syntax.Source("s.py", "x = ['é'" + ", a" * 20_000 + "]\n", "utf-8")
        names = [source.segment(node) for node in _syntax.ast.walk(source.tree) if isinstance(node, _syntax.ast.Name)]
        self.assertEqual(names, ["x"] + ["a"] * 20_000)
        _syntax.phase_lines(_syntax.Source("s.py", "x = 1  # netmend: learning\n" * 10_000, "utf-8"))
        self.assertLess(time.process_time() - begin, 10)

    def test_traces_that_a_program_wrote_to(self):
        rows = ["[]", "3", "null", "{}", DEEP, '["line"]', '["line", [], 1, 2]', '["line", {}, 1e999, 2]', '["other"]', '["child"]', "\xff"]
        with open("lines", "w", encoding="latin-1") as file:
            file.write("\n".join(rows + ['["line", "p.py", 3, "learning"]']) + "\n")
        found = _tracing.Tracer({"program": "p.py", "roots": ["/"], "file": "lines"}, {}, "learning").report()
        self.assertEqual((found["lines"]["p.py"], found["children"]), ({"3": ["learning"]}, 1))
        os.unlink("lines")
        os.mkfifo("lines")
        self.assertEqual(_tracing.Tracer({"program": "p.py", "roots": ["/"], "file": "lines"}, {}, "learning").report()["lines"], {})


class Watched(HostileCase):
    def setUp(self):
        super().setUp()
        with open("p.py", "w") as file:
            file.write("print('ran')\n")
        with open("s.py", "w") as file:
            file.write("from netmend.watch import settings\nprint(settings(lr=1))\n")

    def test_words_that_name_nothing(self):
        for words in (["-m"], ["-m", "no.such"], ["-m", "nosuch"], ["-m", ""], ["-m", ".x"], ["none\x1b[31m\n.py"], ["."],
                      ["--out", "", "p.py"], ["--out", "p.py", "p.py"], ["--out", "p.py/x", "p.py"], ["--out", "/proc/x", "p.py"]):
            done = python("-m", "netmend.watch", *words)
            self.says(done)
            self.assertEqual((done.stdout, os.path.exists("netmend-run/record.jsonl")), ("", False), words)
        done = python("-m", "netmend.watch", "--out", "r", "p.py")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ran\n", ""))
        self.says(python("-m", "netmend.watch", "--out", "r", "p.py"), "another run")

    def test_settings_that_are_none(self):
        for text in ("null", "[", "[1]", "3", '"x"', '{"lr": NaN}', DEEP[:50000], '{"a":' + "[" * 900 + "]" * 900 + "x}"):
            self.says(python("s.py", NETMEND_SETTINGS=text), "NETMEND_SETTINGS")
        for text, value in (('{"lr": 2}', 2), ('{"rate": 3}', 3), ("{}", 1), ("", 1)):
            self.assertEqual(python("s.py", NETMEND_SETTINGS=text).stdout, "{'lr': %d}\n" % value)

    def test_whatever_a_program_says_it_goes_on(self):
        with open("q.py", "w") as file:
            file.write("from netmend.watch import watch, settings, record_metrics\nimport sys\nwatch(sys.argv[1])\n"
                       "a = []; a.append(a); d = 0\nfor i in range(5000): d = [d]\n"
                       "class Odd:\n    def __str__(self): raise ValueError\n"
                       "settings(a=a, d=d, odd=Odd(), n=10 ** 6000, **{'\\ud800': 1})\nrecord_metrics(x=float('nan'), y=a)\nprint('on')\n")
        for out in ("r", "q.py"):  # the second one is no folder
            done = python("q.py", out)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "on\n", ""))
        with open("r/record.jsonl") as file:
            self.assertEqual([json.loads(line).get("e") for line in file], [None, "settings", "epoch", "end"])


if __name__ == "__main__":
    unittest.main()
