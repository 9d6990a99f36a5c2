"""The folder on disk: parts, data.json, and what is still whole after a program was killed (docs/formats.md)."""
import json
import os
import re
import sys
import zipfile
import zlib

import numpy as np

from ._errors import RecorderError

_PART = re.compile(r"part-\d{5,}\.npz(\.ragged|\.tmp)?$")
_LARGEST = 256 << 20  # bytes of data.json, as the program reads it
_RAGGED = ".ragged"  # a part rewritten with lengths, waiting for data.json to speak of it


def fault_point(name):
    """Tests replace this to stop the program at a named place; it does nothing otherwise."""


def write_beside(path, produce):
    """Replaces a file completely or not at all: `produce` fills a file next to it, which is then renamed."""
    beside = path + ".tmp"
    try:
        with open(beside, "wb") as file:
            produce(file)
            file.flush()
            os.fsync(file.fileno())
        fault_point("before rename")
        os.replace(beside, path)
    except OSError as error:
        _forget(beside)
        raise RecorderError("cannot write: %s" % (error.strerror or error), path,
                            "check that there is room on the disk and that you may write there")
    except BaseException:
        _forget(beside)
        raise


def _forget(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def write_npz(file, members):
    """An NPZ archive as numpy.savez writes it. A member is an array, or a list of arrays that follow one another along
    their first axis: those are never joined in memory."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, pieces in members.items():
            pieces = pieces if isinstance(pieces, list) else [pieces]
            first = pieces[0]
            shape = (sum(len(p) for p in pieces),) + first.shape[1:] if first.ndim else ()
            head = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False, "shape": shape}
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, head)
                for piece in pieces:
                    if piece.size:
                        member.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


def words_to_members(name, words):
    """Words (str or bytes) as the two arrays that stand for them."""
    raw = [w if isinstance(w, bytes) else w.encode("utf-8", "backslashreplace") for w in words]
    ends = np.cumsum([len(w) for w in raw], dtype=np.int64) if raw else np.zeros(0, np.int64)
    return {name + ".bytes": np.frombuffer(b"".join(raw), np.uint8), name + ".ends": ends}


def words_of(archive, name):
    """The words back, as bytes."""
    raw, start, words = archive[name + ".bytes"].tobytes(), 0, []
    for end in archive[name + ".ends"]:
        words.append(raw[start:end])
        start = int(end)
    return words


def checksum(path):
    crc = 0
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            crc = zlib.crc32(block, crc)
    return "%08x" % (crc & 0xFFFFFFFF)


def _wrong_in(meta):
    """What is wrong with a data.json that somebody may have changed, or None. What it says is written to later: a part
    is a file of this folder under the name that it was given, and nothing else."""
    lists = {"inputs": dict, "classes": str, "groups": str, "parts": dict}
    for key, kind in lists.items():
        if not isinstance(meta.get(key), list) or not all(isinstance(entry, kind) for entry in meta[key]):
            return "`%s` is not a list of what it should hold" % key
    labels = meta.get("labels")
    if not isinstance(labels, dict) or not isinstance(labels.get("kind"), str) or not _is_count(labels.get("width")):
        return "`labels` does not say what they are"
    if not isinstance(meta.get("display"), str):
        return "`display` is not a string"
    for entry in meta["inputs"]:
        shape = entry.get("shape")
        if not isinstance(entry.get("name"), str) or not isinstance(entry.get("type"), str) or \
                not isinstance(shape, list) or not all(isinstance(n, int) and n >= -1 for n in shape):
            return "an input has no name, type or shape"
    for number, part in enumerate(meta["parts"]):
        if part.get("file") != "part-%05d.npz" % number:
            return "part %d is called %.60r" % (number, part.get("file"))
        if not _is_count(part.get("samples")) or not _is_count(part.get("bytes")) or \
                not re.fullmatch("[0-9a-f]{8}", str(part.get("crc32"))):
            return "part %d has no size or checksum" % number
    if meta.get("samples") != sum(part["samples"] for part in meta["parts"]):
        return "`samples` is not the sum of its parts"
    return None


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


class Store:
    """One folder. `meta` is what data.json says, or will say."""

    def __init__(self, folder):
        self.folder = os.fspath(folder)
        self.json = os.path.join(self.folder, "data.json")
        self.meta = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def load(self, overwrite):
        """Reads data.json if there is one; leaves `meta` None when writing starts from nothing."""
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise RecorderError("this is a file, not a folder", self.folder, "name another folder")
        if not os.path.exists(self.json):
            return
        try:
            if os.path.getsize(self.json) > _LARGEST:
                raise ValueError("it has more than %d bytes" % _LARGEST)
            with open(self.json, encoding="utf-8") as file:
                meta = json.load(file)
        except (ValueError, OSError, RecursionError) as error:
            if overwrite:
                return
            raise RecorderError("data.json cannot be read: %s" % error, self.json, "name another folder, or overwrite=True")
        if not isinstance(meta, dict) or meta.get("format") != "netmend-saved":
            # Even overwrite=True must not remove what somebody else's program wrote.
            raise RecorderError("this data.json was not written by netmend", self.json, "name another folder")
        if overwrite:
            return
        if meta.get("version") != 1:
            raise RecorderError("this data.json has version %s, but this netmend reads version 1" % meta.get("version"), self.json,
                                "use a newer netmend, or overwrite=True")
        if meta.get("complete"):
            raise RecorderError("a complete data set of %s samples is already here" % meta.get("samples"), self.folder,
                                "name another folder, or overwrite=True to replace it")
        wrong = _wrong_in(meta)
        if wrong:
            raise RecorderError("data.json is damaged: %s" % wrong, self.json, "name another folder, or overwrite=True")
        self.meta = meta

    def keep_whole_parts(self):
        """Drops the listed parts from the first damaged one on; returns its name, or None if all are whole."""
        damaged = None
        for i, part in enumerate(self.meta["parts"]):
            if not self._whole(part):
                self.meta["parts"] = self.meta["parts"][:i]
                self.meta["samples"] = sum(p["samples"] for p in self.meta["parts"])
                damaged = part["file"]
                break
        for name in os.listdir(self.folder):
            if _PART.match(name) and name.endswith((_RAGGED, ".tmp")):
                _forget(self.path(name))
        return damaged

    def _whole(self, part):
        path = self.path(part["file"])
        if os.path.exists(path + _RAGGED) and checksum(path + _RAGGED) == part["crc32"]:
            os.replace(path + _RAGGED, path)  # finish what was under way when the program was killed
        return os.path.exists(path) and os.path.getsize(path) == part["bytes"] and checksum(path) == part["crc32"]

    def begin(self, meta):
        """Starts from nothing: removes what an earlier data set left, and only that."""
        try:
            os.makedirs(self.folder, exist_ok=True)
            _forget(self.json)  # first, so that no data.json ever speaks of parts that are gone
            for name in os.listdir(self.folder):
                if _PART.match(name):
                    os.unlink(self.path(name))
        except OSError as error:
            raise RecorderError("cannot prepare the folder: %s" % (error.strerror or error), self.folder,
                                "name a folder that you may write to")
        self.meta = meta

    def write_json(self):
        text = json.dumps(self.meta, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
        write_beside(self.json, lambda file: file.write(text.encode("ascii")))

    def _describe(self, path, file, samples):
        return {"file": file, "samples": samples, "bytes": os.path.getsize(path), "crc32": checksum(path)}

    def add_part(self, members, samples, complete):
        file = "part-%05d.npz" % len(self.meta["parts"])
        path = self.path(file)
        write_beside(path, lambda out: write_npz(out, members))
        fault_point("part without json")
        self.meta["parts"].append(self._describe(path, file, samples))
        self.meta["samples"] += samples
        self.meta["complete"] = complete
        self.write_json()

    def read_part(self, number):
        with np.load(self.path(self.meta["parts"][number]["file"])) as archive:
            return {name: archive[name] for name in archive.files}

    def make_ragged(self, names):
        """Rewrites the parts when inputs that had one length so far turn out to differ. New parts are all written
        beside the old ones before data.json changes, so that a kill at any moment leaves one whole set."""
        parts = []
        for number, part in enumerate(self.meta["parts"]):
            members = self.read_part(number)
            for name in names:
                values = members["input." + name]
                members["length." + name] = np.full(len(values), values.shape[1], np.int64)
                members["input." + name] = values.reshape((values.shape[0] * values.shape[1],) + values.shape[2:])
            path = self.path(part["file"]) + _RAGGED
            write_beside(path, lambda out: write_npz(out, members))
            parts.append(self._describe(path, part["file"], part["samples"]))
        fault_point("ragged beside")
        self.meta["parts"] = parts
        self.write_json()
        fault_point("ragged in json")
        for part in parts:
            os.replace(self.path(part["file"]) + _RAGGED, self.path(part["file"]))


class Progress:
    """A line that is written over and over, only where a person watches."""

    def __init__(self):
        self.shown = sys.stderr is not None and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()

    def show(self, text, last=False):
        if self.shown:
            sys.stderr.write("\r%s%s" % (text, "\n" if last else ""))
            sys.stderr.flush()
