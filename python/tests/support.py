"""What the tests share: a slow plain reader of saved folders, saving into one, and frameworks that may be missing."""
import json
import os
import sys
import tempfile
import unittest
import warnings
import zlib

import numpy as np

from netmend import RecorderError, save_data

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def missing(package):
    """Says it where nobody overlooks it: unittest itself shows skipped tests as a single letter."""
    text = "SKIPPED, NOT TESTED: %s is not installed" % package
    print("\n" + text, file=sys.stderr)
    return text


try:
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipIf(torch is None, missing("torch") if torch is None else "")


def tensorflow():
    """Imported only by the tests that need it: it takes seconds."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    try:
        import keras
        import tensorflow
    except ImportError:
        raise unittest.SkipTest(missing("tensorflow"))
    return tensorflow, keras


def words(archive, name):
    raw, start, found = archive[name + ".bytes"].tobytes(), 0, []
    for end in archive[name + ".ends"].tolist():
        found.append(raw[start:end])
        start = end
    assert start == len(raw)
    return found


class Saved:
    """Everything in a folder as plain lists, after checking each rule of the format."""

    def __init__(self, folder, complete=True):
        with open(os.path.join(folder, "data.json")) as file:
            self.meta = meta = json.load(file)
        assert (meta["format"], meta["version"], meta["complete"]) == ("netmend-saved", 1, complete), meta
        assert meta["writer"].startswith("netmend ")
        self.inputs = {i["name"]: [] for i in meta["inputs"]}
        self.labels, self.ids, self.display = [], [], []
        self.groups = {g: [] for g in meta["groups"]}
        listed = {"data.json"}
        for number, part in enumerate(meta["parts"]):
            assert part["file"] == "part-%05d.npz" % number
            listed.add(part["file"])
            self.read_part(os.path.join(folder, part["file"]), part, last=number + 1 == len(meta["parts"]))
        self.extra = sorted(set(os.listdir(folder)) - listed)
        assert sum(p["samples"] for p in meta["parts"]) == meta["samples"]

    def read_part(self, path, part, last):
        with open(path, "rb") as file:
            raw = file.read()
        assert len(raw) == part["bytes"] and "%08x" % zlib.crc32(raw) == part["crc32"]
        assert part["samples"] == 1024 or last
        with np.load(path) as archive:
            for spec in self.meta["inputs"]:
                self.inputs[spec["name"]] += self.samples(archive, spec, part["samples"])
            if self.meta["labels"]["kind"] != "none":
                assert len(archive["label"]) == part["samples"]
                self.labels += list(archive["label"])
            if "id.bytes" in archive.files:
                self.ids += [w.decode() for w in words(archive, "id")]
            for name, column in self.groups.items():
                column += [w.decode() for w in words(archive, "group." + name)]
            if self.meta["display"] != "none":
                self.display += words(archive, "display")

    @staticmethod
    def samples(archive, spec, count):
        values = archive["input." + spec["name"]]
        assert values.dtype.name == spec["type"] and values.dtype.byteorder in "<=|"
        shape = spec["shape"]
        if shape and shape[0] == -1:
            lengths = archive["length." + spec["name"]]
            assert lengths.dtype == np.int64 and len(lengths) == count and lengths.sum() == len(values)
            assert list(values.shape[1:]) == shape[1:]
            return np.split(values, np.cumsum(lengths)[:-1])
        assert "length." + spec["name"] not in archive.files
        assert list(values.shape) == [count] + shape
        return list(values)


class SavingCase(unittest.TestCase):
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
