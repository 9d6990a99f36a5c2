"""save_data: targets, what belongs to each sample besides, and going on after an interruption."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np

from netmend import save_data
from tests.killed import long_loader
from tests.support import HERE, Saved, SavingCase, batches, missing


class Targets(SavingCase):
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


class Sides(SavingCase):
    def loader(self, count):
        return batches(np.zeros((count, 1), "f4"), np.zeros(count, int), 100)

    def test_ids_groups_and_texts(self):
        count = 1300
        names = ["sample-é-%d" % i for i in range(count)]
        groups = {"camera": ["A", None] * (count // 2), "dose": [float("nan"), 3.0] * (count // 2)}
        texts = ("text %d" % i for i in range(count))
        saved = self.save(self.loader(count), ids=iter(names), groups=groups, display=texts)
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
        days = pandas.to_datetime(["2020-01-02", None, None])
        table = pandas.DataFrame({"n": [1, None, 3], "s": ["a", None, "c"], "t": days})
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
        shapes = (5, 7), (5, 7, 1), (1, 1, 3), (9, 2, 4), (3, 3, 2)
        pictures = [self.rng.integers(0, 256, shape).astype("u1") for shape in shapes]
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


class Killed(SavingCase):
    def kill(self, place, times, ragged=False):
        words = [place, str(times), self.dir, str(int(ragged))]
        done = subprocess.run([sys.executable, "-m", "tests.killed", *words], cwd=HERE)
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

    def test_an_index_that_somebody_changed_writes_nothing_elsewhere(self):
        self.kill("part done", 2)
        index = os.path.join(self.dir, "data.json")
        with open(index) as file:
            whole = json.load(file)
        outside = os.path.join(os.path.dirname(self.dir), "x")
        with open(outside, "w") as file:
            file.write("mine")

        def change(*path, to):
            meta, at = json.loads(json.dumps(whole)), None
            at = meta
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = to
            return json.dumps(meta)

        deep = '{"format": "netmend-saved", "version": 1, "x": ' + "[" * 100000
        for text in (change("parts", 0, "file", to="../x"), change("parts", 0, "file", to="/etc/passwd"),
                     change("parts", 1, "file", to="part-00000.npz"), change("parts", 0, "file", to=3),
                     change("parts", 0, "samples", to="9"), change("parts", 0, "crc32", to=None),
                     change("parts", to=None), change("parts", 0, to=[]), change("inputs", to={}), change("samples", to=7),
                     change("inputs", 0, "shape", to="x"), change("labels", to=None), change("classes", to=[1]), deep, "[", "7"):
            with open(index, "w") as file:
                file.write(text)
            self.refused(list(long_loader(False)), "data.json", ids=range(4500), groups={"g": list(range(4500))})
        with open(outside) as file:
            self.assertEqual(file.read(), "mine")

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


if __name__ == "__main__":
    unittest.main()
