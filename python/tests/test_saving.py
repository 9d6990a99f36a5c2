import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
import zlib

import numpy as np

from netmend import RecorderError, save_data
from tests.killed import long_loader
from tests.support import Saved, missing, needs_torch, tensorflow, torch

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.dir = os.path.join(self.scratch.name, "saved")
        self.rng = np.random.default_rng(7)

    def save(self, loader, **options):
        with warnings.catch_warnings(record=True) as self.warned:
            warnings.simplefilter("always")
            self.summary = save_data(loader, self.dir, **options)
        return Saved(self.dir)

    def refused(self, loader, *parts, **options):
        with self.assertRaises(RecorderError) as caught:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                save_data(loader, options.pop("dir", self.dir), **options)
        text = str(caught.exception)
        for part in ("where:", "try:") + parts:
            self.assertIn(part, text)
        return text

    def same(self, saved, expected, name="input"):
        self.assertEqual(len(saved.inputs[name]), len(expected))
        for a, b in zip(saved.inputs[name], expected):
            np.testing.assert_array_equal(a, b)
            self.assertEqual(a.shape, np.shape(b))


def batches(x, y, size):
    return [(x[i:i + size], y[i:i + size]) for i in range(0, len(x), size)]


class Forms(Case):
    def test_random_shapes_types_and_batch_sizes(self):
        types = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool", ">f4", ">i8"]
        for seed in range(40):
            rng = np.random.default_rng(seed)
            count = int(rng.choice([1, 2, 17, 1023, 1024, 1025, 2048, 2500]))
            shape = tuple(rng.integers(1, 5, rng.integers(0, 4)))
            x = (rng.standard_normal((count,) + shape) * 50).astype(types[seed % len(types)])
            if seed % 3 == 0:
                x = np.asfortranarray(x)
            y = rng.integers(0, 5, count)
            with tempfile.TemporaryDirectory() as self.dir:
                saved = self.save(batches(x, y, int(rng.choice([1, 3, 64, 1000, 5000]))))
                self.same(saved, list(x))
                self.assertEqual(saved.labels, list(y))
                self.assertEqual(saved.meta["inputs"][0]["type"], np.dtype(types[seed % len(types)]).name)
                self.assertEqual(self.summary.samples, count)
                self.assertEqual(saved.extra, [])

    def test_random_ragged_lists_and_padded_batches(self):
        for seed in range(30):
            rng = np.random.default_rng(seed)
            count, rest = int(rng.choice([5, 1100, 2300])), tuple(rng.integers(1, 4, rng.integers(0, 3)))
            loader, expected, at = [], [], 0
            steady = int(rng.integers(0, count))  # up to here all have one length: found out late
            while at < count:
                size = min(int(rng.integers(1, 200)), count - at)
                if seed % 2:
                    length = 4 if at < steady else int(rng.integers(0, 7))
                    x = rng.standard_normal((size, length) + rest).astype(np.float32)
                else:
                    x = [rng.standard_normal((4 if at + i < steady else int(rng.integers(0, 7)),) + rest).astype(np.float32)
                         for i in range(size)]
                loader.append((x, np.zeros(size, int)))
                expected += list(x)
                at += size
            with tempfile.TemporaryDirectory() as self.dir:
                saved = self.save(loader, inputs=["x"])
                self.same(saved, expected, "x")
                self.assertEqual(saved.extra, [])
                if len({len(e) for e in expected}) > 1:
                    self.assertEqual(saved.meta["inputs"][0]["shape"], [-1] + list(rest))

    def test_several_inputs_as_tuple_list_and_dict(self):
        a, b, y = self.rng.random((9, 3)), self.rng.integers(0, 9, (9, 2, 2)), np.arange(9)
        for inputs in ((a, b), [a, b], {"input0": a, "input1": b}):
            saved = self.save([(inputs, y)], overwrite=True)
            self.same(saved, list(a), "input0")
            self.same(saved, list(b), "input1")
        saved = self.save([(a, b, y)], inputs=["left", "right"], overwrite=True)
        self.same(saved, list(b), "right")
        self.assertEqual(saved.labels, list(y))
        self.assertIn("which of them are inputs", self.refused([(a, b, y)], overwrite=True))

    def test_weights_after_the_target_are_left_out_aloud(self):
        saved = self.save([(np.ones((2, 3)), [0, 1], np.ones(2))], inputs=["x"])
        self.assertEqual(saved.labels, [0, 1])
        self.assertIn("left out", str(self.summary))

    def test_dicts_of_tokens(self):
        rows = [{"input_ids": list(range(n)), "attention_mask": [1] * n, "label": n % 3} for n in (3, 5, 0, 4)]
        saved = self.save(rows)
        self.same(saved, [np.arange(n) for n in (3, 5, 0, 4)], "input_ids")
        self.assertEqual(saved.meta["inputs"][1], {"name": "attention_mask", "type": "int64", "shape": [-1]})
        self.assertEqual(saved.labels, [0, 2, 0, 1])
        batch = {"input_ids": [[1, 2], [3]], "text": ["a", "b"], "labels": np.array([1, 0])}
        self.refused([batch], "'text'", "inputs=", overwrite=True)
        saved = self.save([batch], inputs=["input_ids"], overwrite=True)
        self.same(saved, [[1, 2], [3]], "input_ids")
        saved = self.save([{"x": np.ones((2, 1)), "fine": [1, 2], "coarse": [0, 1]}], inputs=["x"], target="coarse", overwrite=True)
        self.assertEqual(saved.labels, [0, 1])

    def test_single_samples(self):
        class Set:  # never raises IndexError, has no __iter__
            def __len__(self):
                return 1500

            def __getitem__(self, i):
                return np.full((2, 3), i, np.float32), i % 7

        saved = self.save(Set())
        self.assertEqual(len(saved.labels), 1500)
        self.assertEqual(saved.inputs["input"][1499][0, 0], 1499)
        self.refused([(np.ones((3, 4)), [0.0, 1.0, 0, 0, 0])], "batched=False", overwrite=True)
        saved = self.save([(np.ones((3, 4)), [0.0, 1.0, 0, 0, 0])] * 3, batched=False, overwrite=True)
        self.assertEqual(saved.labels, [1, 1, 1])
        saved = self.save([((np.ones(3), np.ones(2)), 1)] * 3, overwrite=True)
        self.assertEqual(list(saved.inputs), ["input0", "input1"])

    def test_arrays_of_arrays(self):
        rows = np.array([np.ones(2), np.ones(3)], dtype=object)
        self.assertEqual([len(s) for s in self.save([(rows, [0, 1])]).inputs["input"]], [2, 3])

    def test_no_targets(self):
        for batch in ((np.ones((2, 3)),), (np.ones((2, 3)), None), np.ones((2, 3)), {"input": np.ones((2, 3))}):
            saved = self.save([batch], overwrite=True)
            self.assertEqual((saved.meta["labels"]["kind"], len(saved.inputs["input"])), ("none", 2))
        saved = self.save([(np.ones((2, 3)), [4, 5])], labels="none", overwrite=True)
        self.assertEqual(saved.labels, [])

    def test_things_that_are_no_loader(self):
        x, y = np.ones((2, 3)), np.ones(2)
        for thing in ((x, y), x, {"input": x}, 5, "data"):
            self.refused(thing, "the argument loader")
        self.refused([], "no samples")
        self.refused(iter(()), "no samples")

    def test_shapes_and_types_that_change(self):
        self.refused([(np.ones((2, 3, 4)), [0, 0]), (np.ones((2, 3, 5)), [0, 0])], "sample 2", "[3, 5]", "first axis")
        self.refused([(np.ones((2, 3), "f4"), [0, 0]), (np.ones((2, 3)), [0, 0])], "float64", "float32")
        saved = self.save([(np.ones((2, 3)), [0, 0]), (np.ones((2, 3), "f4"), [0, 0])])  # widening loses nothing
        self.assertEqual(saved.meta["inputs"][0]["type"], "float64")
        self.refused([(np.ones((2, 3)), [0, 0, 0])], "input 'input' has 2", "target has 3", overwrite=True)

    def test_not_finite_is_counted_and_told_once(self):
        x = np.ones((2000, 2), np.float32)
        x[3, 1], x[1999, 0] = np.nan, np.inf
        saved = self.save(batches(x, np.zeros(2000, int), 7))
        self.assertEqual(self.summary.not_finite, 2)
        self.assertEqual(sum("NaN" in str(w.message) for w in self.warned), 1)
        self.same(saved, list(x))

    def test_a_loader_that_uses_its_memory_again(self):
        def loader():
            x = np.zeros((4, 2), np.float32)
            for i in range(10):
                x[:] = i
                yield x, np.full(4, i)

        saved = self.save(loader())
        self.assertEqual([int(s[0]) for s in saved.inputs["input"]], [i for i in range(10) for _ in range(4)])

    def test_standard_error_stays_silent_in_a_pipe(self):
        done = subprocess.run([sys.executable, "-c", "import numpy as n, netmend as r;"
                               "r.save_data([(n.ones((2, 3)), [0, 1])], %r)" % self.dir], cwd=HERE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


class Targets(Case):
    def kind(self, target, **options):
        count = len(target["only"] if isinstance(target, dict) else target)
        saved = self.save([(np.zeros((count, 1), "f4"), target)], overwrite=True, **options)
        return saved.meta["labels"]["kind"], [np.asarray(v).tolist() for v in saved.labels]

    def test_kinds(self):
        self.assertEqual(self.kind([2, 0, 1]), ("class", [2, 0, 1]))
        self.assertEqual(self.kind(np.array([[2], [0]], "u1")), ("class", [2, 0]))
        self.assertEqual(self.kind(np.array([True, False])), ("class", [1, 0]))
        self.assertEqual(self.kind(np.eye(4)[[3, 1]]), ("class", [3, 1]))
        self.assertEqual(self.kind(np.eye(4, dtype=int)[[3, 1]]), ("class", [3, 1]))
        self.assertEqual(self.kind([[1, 0, 1], [0, 0, 0]]), ("multi", [[1, 0, 1], [0, 0, 0]]))
        self.assertEqual(self.kind(np.eye(3), labels="multi"), ("multi", np.eye(3).tolist()))
        self.assertEqual(self.kind([0.5, 2.0]), ("number", [0.5, 2.0]))
        self.assertEqual(self.kind([[0.5, 2.0]]), ("number", [[0.5, 2.0]]))
        self.assertEqual(self.kind([3, 4], labels="number"), ("number", [3, 4]))
        self.assertEqual(self.kind([1.0, 0.0], classes=["no", "yes"]), ("class", [1, 0]))
        self.assertEqual(self.kind(["b", "a", "b"], classes=["a", "b"]), ("class", [1, 0, 1]))
        self.assertEqual(self.kind(np.array([b"b", b"a"]), classes=["a", "b"]), ("class", [1, 0]))
        self.assertEqual(self.kind({"only": [1, 0]}), ("class", [1, 0]))

    def test_refusals(self):
        x = np.zeros((2, 1))
        self.refused([(x, ["cat", "dog"])], "classes=", "sample 0")
        self.refused([(x, ["cat", "cow"])], "'cow'", "sample 1", classes=["cat", "dog"])
        self.refused([(x, [1, 2])], "start at 1", "subtract 1", classes=["a", "b"])
        self.refused([(x, [0, 7])], "class number 7", "sample 1", classes=["a", "b"])
        self.refused([(x, [0, -1])], "-1 is negative")
        self.refused([(x, [[1, 2], [3, 4]])], "labels='number'")
        self.refused([(x, np.zeros((2, 4, 4)))], "labels='none'")
        self.refused([(x, np.eye(2))], "2 columns", "3 classes", classes=["a", "b", "c"])
        self.refused([(x, [0, 1])], "named twice", classes=["a", "a"])
        self.refused([(x, [0, 1])], "labels='classes'", labels="classes")
        self.refused([(x, None)], "no targets", labels="class")
        self.refused([(x, [0, 1]), (x, None)], "some batches have targets")
        self.assertFalse(os.path.exists(self.dir))

    def test_kind_is_settled_by_the_first_part_and_then_holds(self):
        x = np.zeros((1500, 1))
        y = np.eye(3)[self.rng.integers(0, 3, 1500)]
        y[900] = 1  # still in the first part: several classes per sample after all
        self.assertEqual(self.save(batches(x, y, 100)).meta["labels"], {"kind": "multi", "width": 3})
        y[900], y[1400] = [1, 0, 0], 1
        self.refused(batches(x, y, 100), "sample 1400", "labels='multi'", overwrite=True)

    def test_several_targets(self):
        x, a, b = np.zeros((2, 1)), np.array([1, 0]), np.array([0.5, 0.25])
        for several in ((a, b), [a, b]):
            self.refused([(x, several)], "2 targets", "target=0", overwrite=True)
            self.assertEqual(self.save([(x, several)], target=0, overwrite=True).labels, [1, 0])
            self.assertEqual(self.save([(x, several)], target=1, overwrite=True).labels, [0.5, 0.25])
        self.refused([(x, {"a": a, "b": b})], "several targets", overwrite=True)
        self.assertEqual(self.save([(x, {"a": a, "b": b})], target="b", overwrite=True).labels, [0.5, 0.25])

    def test_fractions_that_may_be_classes(self):
        self.save([(np.zeros((2, 1)), [[1.0], [0.0]])])
        self.assertIn("labels='class'", str(self.summary))
        self.refused([(np.zeros((2, 1)), [[1.5, 1], [0.0, 0]])], "classes=", classes=["a"], overwrite=True)

    def test_classes_that_never_begin(self):
        self.save([(np.zeros((2, 1)), [1, 2])])
        self.assertIn("class 0 never occurs", str(self.summary))


class Sides(Case):
    def loader(self, count):
        return batches(np.zeros((count, 1), "f4"), np.zeros(count, int), 100)

    def test_ids_groups_and_texts(self):
        count = 1300
        names = ["sample-é-%d" % i for i in range(count)]
        groups = {"camera": ["A", None] * (count // 2), "dose": [float("nan"), 3.0] * (count // 2)}
        saved = self.save(self.loader(count), ids=iter(names), groups=groups, display=("text %d" % i for i in range(count)))
        self.assertEqual(saved.ids, names)
        self.assertEqual(saved.groups["camera"], ["A", ""] * (count // 2))
        self.assertEqual(saved.groups["dose"], ["", "3"] * (count // 2))
        self.assertEqual(saved.display[1299], b"text 1299")
        self.assertEqual(saved.meta["display"], "text")

    def test_groups_as_table_and_as_rows(self):
        class Table:  # what pandas looks like from here
            columns = ["a", 1]

            def __getitem__(self, name):
                return np.array([1.5, np.nan]) if name == "a" else np.array(["x", None], object)

        saved = self.save(self.loader(2), groups=Table())
        self.assertEqual(saved.groups, {"a": ["1.5", ""], "1": ["x", ""]})
        saved = self.save(self.loader(2), groups=[{"a": 1}, {"b": True}], overwrite=True)
        self.assertEqual(saved.groups, {"a": ["1", ""], "b": ["", "True"]})
        self.refused(self.loader(2), "groups", groups=[1, 2], overwrite=True)

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest(missing("pandas"))
        table = pandas.DataFrame({"n": [1, None, 3], "s": ["a", None, "c"], "t": pandas.to_datetime(["2020-01-02", None, None])})
        table["i"] = pandas.array([1, None, 2], dtype="Int64")
        saved = self.save(self.loader(3), groups=table, ids=table.index + 10)
        self.assertEqual(saved.groups["n"], ["1", "", "3"])
        self.assertEqual(saved.groups["s"], ["a", "", "c"])
        self.assertEqual(saved.groups["i"], ["1", "", "2"])
        self.assertEqual(saved.groups["t"], ["2020-01-02 00:00:00", "", ""])
        self.assertEqual(saved.ids, ["10", "11", "12"])
        self.refused(self.loader(4), "3 values", "4 samples", groups=table, overwrite=True)

    def test_lengths_that_do_not_match(self):
        for count in (99, 101, 1500):
            for options in ({"ids": range(count)}, {"display": ["x"] * count}, {"groups": {"g": iter(["x"] * count)}}):
                text = self.refused(self.loader(100), **options)
                self.assertIn("100 samples", text)
                self.assertIn("%d values" % count, text)
        self.assertFalse(os.path.exists(self.dir))
        single = [(np.zeros(1), 0)] * 5
        self.refused(single, "4 values", "5 samples", ids=range(4))

    def test_repeated_ids(self):
        names = ["n%d" % i for i in range(1200)]
        names[1100] = "n3"
        self.refused(self.loader(1200), "'n3'", "3 and 1100", ids=names)

    def test_images(self):
        pictures = [self.rng.integers(0, 256, shape).astype("u1") for shape in ((5, 7), (5, 7, 1), (1, 1, 3), (9, 2, 4), (3, 3, 2))]
        saved = self.save(self.loader(5), display=pictures)
        for png, picture in zip(saved.display, pictures):
            np.testing.assert_array_equal(decode(png), picture.reshape(picture.shape[:2] + (-1,)))
        self.refused(self.loader(1), "uint8", "astype", display=[np.ones((4, 4))], overwrite=True)
        self.refused(self.loader(1), "channels come last", display=[np.ones((3, 8, 8), "u1")], overwrite=True)
        self.refused(self.loader(2), "position 1", display=[pictures[0], "text"], overwrite=True)

    def test_pil_images(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest(missing("PIL"))
        import io

        rgb = Image.fromarray(self.rng.integers(0, 256, (6, 5, 3)).astype("u1"))
        saved = self.save(self.loader(4), display=[rgb, rgb.convert("P"), rgb.convert("1"), rgb.convert("CMYK")])
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(saved.display[0]))), np.asarray(rgb))
        self.assertEqual([decode(p).shape[2] for p in saved.display], [3, 3, 1, 3])


def decode(png):
    """A slow plain PNG reader for the filters 0 and 2."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        data += body if kind == b"IDAT" else b""
        at += 12 + size
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    raw, rows = zlib.decompress(data), []
    for y in range(height):
        line = raw[y * (width * channels + 1):(y + 1) * (width * channels + 1)]
        above = rows[-1] if rows and line[0] == 2 else [0] * (width * channels)
        rows.append([(v + a) % 256 for v, a in zip(line[1:], above)])
    return np.array(rows, "u1").reshape(height, width, channels)


class Killed(Case):
    def kill(self, place, times, ragged=False):
        done = subprocess.run([sys.executable, "-m", "tests.killed", place, str(times), self.dir, str(int(ragged))], cwd=HERE)
        self.assertEqual(done.returncode, 9)

    def finish(self, ragged=False):
        return self.save(long_loader(ragged), ids=range(4500), groups={"g": list(range(4500))})

    def check(self, saved, ragged=False):
        expected = [s for x, _ in long_loader(ragged) for s in x]
        self.same(saved, expected)
        self.assertEqual(saved.labels, list(range(4500)))
        self.assertEqual(saved.ids, [str(i) for i in range(4500)])
        self.assertEqual(saved.groups["g"], saved.ids)
        self.assertEqual(saved.extra, [])

    def test_killed_anywhere(self):
        for ragged in (False, True):
            for place, times, whole in (("before rename", 1, 0), ("before rename", 3, 1), ("before rename", 6, 2),
                                        ("part without json", 3, 2), ("part done", 1, 1), ("part done", 4, 4)):
                with tempfile.TemporaryDirectory() as self.dir:
                    self.kill(place, times, ragged)
                    if whole:
                        self.assertEqual(Saved(self.dir, complete=False).meta["samples"], 1024 * whole)
                    self.check(self.finish(ragged), ragged)
                    self.assertEqual(self.summary.resumed_from, 1024 * whole)

    def test_killed_while_lengths_are_added(self):
        for place in ("ragged beside", "ragged in json"):
            with tempfile.TemporaryDirectory() as self.dir:
                self.kill(place, 1, ragged=True)
                self.check(self.finish(ragged=True), ragged=True)
                self.assertEqual(self.summary.resumed_from, 2048)

    def test_damaged_parts_are_saved_again(self):
        for damage in (lambda p: os.truncate(p, 100), os.unlink, self.flip):
            with tempfile.TemporaryDirectory() as self.dir:
                self.kill("part done", 3)
                damage(os.path.join(self.dir, "part-00001.npz"))
                self.check(self.finish())
                self.assertEqual(self.summary.resumed_from, 1024)
                self.assertTrue(any("part-00001.npz" in str(w.message) for w in self.warned))

    @staticmethod
    def flip(path):
        with open(path, "r+b") as file:
            file.seek(500)
            byte = file.read(1)[0]
            file.seek(500)
            file.write(bytes([byte ^ 4]))

    def test_other_data_or_arguments_are_refused(self):
        self.kill("part done", 2)
        whole = list(long_loader(False))
        options = {"ids": range(4500), "groups": {"g": list(range(4500))}}
        shuffled = list(whole)
        random.Random(1).shuffle(shuffled)
        self.refused(shuffled, "shuffle=False", **options)
        late = [(x + (i * 90 == 1530), y) for i, (x, y) in enumerate(whole)]  # the same at first, other values later
        self.refused(late, "shuffle=False", "samples 1024 to 2047", **options)
        self.refused(whole[:5], "450 samples", "2048", ids=range(450), groups={"g": list(range(450))})
        self.refused(whole, "groups were", ids=range(4500))
        self.refused(whole, "classes were", classes=["a"], **options)
        self.refused(whole, "inputs were", inputs=["other"], **options)
        self.refused(whole, "labels were", labels="number", **options)
        self.refused(whole, "id.bytes differs", ids=range(1, 4501), groups=options["groups"])
        self.check(self.finish())

    def test_complete_and_foreign_folders(self):
        self.check(self.finish())
        self.refused([(np.ones((2, 3)), [0, 1])], "4500 samples is already here", "overwrite=True")
        self.refused([(np.ones((2, 3)), ["a", "b"])], overwrite=True)  # fails before anything is removed
        self.assertEqual(Saved(self.dir).meta["samples"], 4500)
        open(os.path.join(self.dir, "mine.txt"), "w").close()
        self.assertEqual(self.save([(np.ones((2, 3)), [0, 1])], overwrite=True).extra, ["mine.txt"])
        other = os.path.join(self.scratch.name, "other")
        os.mkdir(other)
        with open(os.path.join(other, "data.json"), "w") as file:
            file.write('{"my": "own"}')
        self.refused([(np.ones((2, 3)), [0, 1])], "not written by netmend", dir=other, overwrite=True)
        self.refused([(np.ones((2, 3)), [0, 1])], "a file, not a folder", dir=os.path.join(other, "data.json"))

    def test_exactly_full_parts(self):
        saved = self.save(batches(np.zeros((2048, 1)), np.zeros(2048, int), 512))
        self.assertEqual([p["samples"] for p in saved.meta["parts"]], [1024, 1024])

    def test_interrupted_by_an_error_of_the_loader(self):
        def broken():
            for i, batch in enumerate(long_loader(False)):
                if i == 20:
                    raise OSError("lost the network drive")
                yield batch

        with self.assertRaises(OSError):
            save_data(broken(), self.dir, ids=range(4500), groups={"g": list(range(4500))})
        self.assertEqual(Saved(self.dir, complete=False).meta["samples"], 1024)
        self.check(self.finish())


@needs_torch
class Torch(Case):
    def test_data_loader(self):
        x, y = torch.randn(2100, 3, 4), torch.randint(0, 5, (2100,))
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64)
        saved = self.save(loader, ids=range(2100))
        self.same(saved, list(x.numpy()))
        self.assertEqual(saved.labels, y.tolist())
        # The mismatch is known before anything is written.
        self.refused(loader, "2099 values", "2100 samples", ids=range(2099), overwrite=True)
        dropping = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64, drop_last=True)
        self.assertEqual(len(self.save(dropping, ids=range(2048), overwrite=True).labels), 2048)

    def test_several_inputs_nested_and_flat(self):
        class Pairs(torch.utils.data.Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, i):
                return (torch.full((3,), i), torch.full((2, 2), float(i))), i

        for loader in (Pairs(), torch.utils.data.DataLoader(Pairs(), batch_size=2), torch.utils.data.DataLoader(Pairs(), batch_size=4)):
            saved = self.save(loader, overwrite=True)
            self.assertEqual([s["shape"] for s in saved.meta["inputs"]], [[3], [2, 2]])
            self.assertEqual(saved.inputs["input1"][7][0, 0], 7)
            self.assertEqual(saved.labels, list(range(10)))

    def test_batches_of_tokens_padded_to_differing_lengths(self):
        class Tokens(torch.utils.data.Dataset):
            def __len__(self):
                return 50

            def __getitem__(self, i):
                return {"input_ids": torch.arange(1, 2 + i % 7), "labels": torch.tensor(i % 2)}

        def collate(rows):
            ids = torch.nn.utils.rnn.pad_sequence([r["input_ids"] for r in rows], batch_first=True)
            return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.stack([r["labels"] for r in rows])}

        loader = torch.utils.data.DataLoader(Tokens(), batch_size=3, collate_fn=collate)
        saved = self.save(loader)
        expected = [row for batch in loader for row in batch["attention_mask"].numpy()]
        self.same(saved, expected, "attention_mask")
        self.assertEqual(saved.meta["inputs"][0]["shape"], [-1])
        self.assertEqual(saved.labels, [i % 2 for i in range(50)])
        unpadded = self.save(Tokens(), overwrite=True)
        self.same(unpadded, [np.arange(1, 2 + i % 7) for i in range(50)], "input_ids")

    def test_odd_types(self):
        x = torch.randn(6, 3).to(torch.bfloat16)
        saved = self.save([(x, torch.arange(6).float().requires_grad_())], labels="class")
        self.assertEqual(saved.meta["inputs"][0]["type"], "float32")
        self.same(saved, list(x.float().numpy()))
        saved = self.save([([torch.randn(i + 1, 2) for i in range(6)], torch.arange(6))], overwrite=True)
        self.assertEqual([len(s) for s in saved.inputs["input"]], [1, 2, 3, 4, 5, 6])


class TensorFlow(Case):
    def setUp(self):
        self.tf, self.keras = tensorflow()
        super().setUp()

    def test_tf_data(self):
        tf = self.tf
        x, y = self.rng.random((1500, 4, 2)).astype("f4"), self.rng.integers(0, 4, 1500)
        whole = tf.data.Dataset.from_tensor_slices((x, y))
        for loader in (whole.batch(32), whole):
            saved = self.save(loader, ids=range(1500), overwrite=True)
            self.same(saved, list(x))
            self.assertEqual(saved.labels, list(y))
        named = tf.data.Dataset.from_tensor_slices(({"a": x, "b": x[:, 0]}, tf.one_hot(y, 4))).batch(100)
        saved = self.save(named, overwrite=True)
        self.same(saved, list(x[:, 0]), "b")
        self.assertEqual(saved.labels, list(y))
        words = tf.data.Dataset.from_tensor_slices((x[:3], ["b", "a", "b"]))
        for loader in (words, words.batch(2)):
            self.assertEqual(self.save(loader, classes=["a", "b"], overwrite=True).labels, [1, 0, 1])

    def test_ragged_tensor(self):
        tf = self.tf
        rows = tf.ragged.constant([[1, 2, 3], [4], []])
        saved = self.save([(rows, [0, 1, 0])])
        self.same(saved, [np.array([1, 2, 3]), np.array([4]), np.array([], int)])

    def test_keras_sequence(self):
        class Sequence(self.keras.utils.PyDataset):
            def __len__(self):
                return 13

            def __getitem__(self, i):
                return np.full((100, 3), i, "f4"), np.full(100, i)

        saved = self.save(Sequence())
        self.assertEqual(saved.labels, [i for i in range(13) for _ in range(100)])


if __name__ == "__main__":
    unittest.main()
