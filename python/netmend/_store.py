"""The folder on disk: parts, data.json, and what is still whole after a program was killed (docs/formats.md)."""
import io
import json
import math
import os
import re
import sys
import zipfile
import zlib

import numpy as np

from ._errors import RecorderError
from ._files import Unfit, open_regular, read_json

_PART = re.compile(r"part-\d{5,}\.npz(\.ragged|\.tmp)?$")
_MOST_IN_PART = 1024  # samples; every part of an unfinished data set has as many
_TYPES = {"bool", "float16", "float32", "float64"} | {sign + bits for sign in ("int", "uint") for bits in ("8", "16", "32", "64")}
_RAGGED = ".ragged"  # a part rewritten with lengths, waiting for data.json to speak of it


def fault_point(name):
    """Tests replace this to stop the program at a named place; it does nothing otherwise."""


def write_beside(path, produce):
    """Replaces a file completely or not at all: `produce` fills a file next to it, which is then renamed."""
    beside = path + ".tmp"
    _forget(beside)
    try:
        with open(beside, "xb") as file:  # never through a link, which leads to a file of somebody else
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
    with open_regular(path) as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            crc = zlib.crc32(block, crc)
    return "%08x" % (crc & 0xFFFFFFFF)


def _is_whole(value, least, most=1 << 53):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(value):
    return isinstance(value, str) and "\0" not in value


def _is_shape(value):
    """Of one sample: -1 stands for its first axis alone, and what it comes to can be counted."""
    return isinstance(value, list) and len(value) <= 31 and all(_is_whole(n, 0 if at else -1) for at, n in enumerate(value)) and \
        math.prod(abs(n) for n in value) < 1 << 53


def _wrong_in(meta):
    """What is wrong with a data.json that somebody may have changed, or None: every field that is gone on from has its type.
    What it says is written to later: a part is a file of this folder under the name that it was given, and nothing else."""
    lists = {"inputs": dict, "classes": str, "groups": str, "parts": dict}
    for key, kind in lists.items():
        if not isinstance(meta.get(key), list) or not all(isinstance(entry, kind) for entry in meta[key]):
            return "`%s` is not a list of %s" % (key, "objects" if kind is dict else "strings")
    for key, known in (("complete", (False,)), ("display", ("none", "image", "text"))):
        if not any(meta.get(key) is word or isinstance(word, str) and meta.get(key) == word for word in known):
            return "`%s` is %.60r, expected %s" % (key, meta.get(key), " or ".join(map(repr, known)))
    return _wrong_in_labels(meta["labels"] if "labels" in meta else None) or _wrong_in_inputs(meta["inputs"]) or _wrong_in_parts(meta)


def _wrong_in_labels(labels):
    if not isinstance(labels, dict):
        return "`labels` is not an object"
    if labels.get("kind") not in ("class", "number", "multi", "none"):
        return "`labels.kind` is %.60r, expected 'class', 'number', 'multi' or 'none'" % (labels.get("kind"),)
    if not _is_whole(labels.get("width"), 0):
        return "`labels.width` is %.60r, expected a whole number" % (labels.get("width"),)
    return None


def _wrong_in_inputs(inputs):
    names = set()
    for number, entry in enumerate(inputs):
        name, kind, shape, columns = (entry.get(key) for key in ("name", "type", "shape", "columns"))
        at = "`inputs[%d]." % number
        if not _is_text(name) or name in names:
            return "%sname` is %.60r, expected a string that no other input has" % (at, name)
        names.add(name)
        if not isinstance(kind, str) or kind not in _TYPES:
            return "%stype` is %.60r, expected a type of numbers such as 'float32'" % (at, kind)
        if not _is_shape(shape):
            return "%sshape` is %.60r, expected whole numbers, of which only the first may be -1" % (at, shape)
        if "columns" in entry and (not isinstance(columns, list) or not all(isinstance(one, str) for one in columns)
                                   or shape != [len(columns)]):
            return "%scolumns` are not strings, one for each value of a sample" % at
    return None if inputs else "`inputs` is empty"


def _wrong_in_parts(meta):
    for number, part in enumerate(meta["parts"]):
        at = "`parts[%d]." % number
        if part.get("file") != "part-%05d.npz" % number:
            return "%sfile` is %.60r, expected 'part-%05d.npz'" % (at, part.get("file"), number)
        if not _is_whole(part.get("samples"), _MOST_IN_PART, _MOST_IN_PART):
            return "%ssamples` is %.60r, expected %d" % (at, part.get("samples"), _MOST_IN_PART)
        if not _is_whole(part.get("bytes"), 1):
            return "%sbytes` is %.60r, expected a size" % (at, part.get("bytes"))
        if not isinstance(part.get("crc32"), str) or not re.fullmatch("[0-9a-f]{8}", part["crc32"]):
            return "%scrc32` is %.60r, expected eight hex digits" % (at, part.get("crc32"))
    if not _is_whole(meta.get("samples"), 0) or meta["samples"] != sum(part["samples"] for part in meta["parts"]):
        return "`samples` is %.60r, expected the sum of its parts" % (meta.get("samples"),)
    return None


def read_npz(path):
    """The arrays of an archive as write_npz writes it: nothing is packed, so it takes no more memory than the file has bytes.
    Raises Unfit for anything else."""
    with open_regular(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                names = {entry.filename for entry in entries}
                if len(names) != len(entries) or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries) or \
                        sum(entry.file_size for entry in entries) > os.fstat(file.fileno()).st_size:
                    raise Unfit("it is packed, or a name stands twice in it")
                return {name[:-4] if name.endswith(".npy") else name: _read_npy(archive.read(name)) for name in names}
        except Unfit:
            raise
        except Exception as error:  # whatever zipfile and NumPy make of damage
            raise Unfit("it is damaged: %s" % (str(error) or type(error).__name__)) from None


def _read_npy(content):
    """An array of numbers; its header says how many, and nothing is taken for them before they were seen to be there."""
    end = 10 + int.from_bytes(content[8:10], "little")
    if content[:7] != b"\x93NUMPY\x01" or end > min(len(content), 1 << 14):
        raise Unfit("a member is no array")
    stream = io.BytesIO(content[8:end])
    shape, fortran, kind = np.lib.format.read_array_header_1_0(stream)
    if kind.kind not in "biuf" or fortran or not all(n >= 0 for n in shape) or math.prod(shape) * kind.itemsize != len(content) - end:
        raise Unfit("a member is no array of numbers, or not as large as it says")
    return np.frombuffer(content, kind, offset=end).reshape(shape)


def _is_part(path, part):
    """Whether a file is the part that data.json speaks of."""
    try:
        with open_regular(path, part["bytes"]) as file:
            return os.fstat(file.fileno()).st_size == part["bytes"] and checksum(path) == part["crc32"]
    except (Unfit, OSError):
        return False


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
        if not os.path.lexists(self.json):
            return
        try:
            meta = read_json(self.json)
        except Unfit as error:
            if overwrite and os.path.isfile(self.json):
                return
            raise RecorderError("data.json cannot be read: %s" % error, self.json, "name another folder, or overwrite=True")
        if not isinstance(meta, dict) or meta.get("format") != "netmend-saved":
            # Even overwrite=True must not remove what somebody else's program wrote.
            raise RecorderError("this data.json was not written by netmend", self.json, "name another folder")
        if overwrite:
            return
        if meta.get("version") != 1:
            raise RecorderError("this data.json has version %.60r, but this netmend reads version 1" % (meta.get("version"),), self.json,
                                "use a newer netmend, or overwrite=True")
        if meta.get("complete") is True:
            raise RecorderError("a complete data set of %.60r samples is already here" % (meta.get("samples"),), self.folder,
                                "name another folder, or overwrite=True to replace it")
        wrong = _wrong_in(meta)
        if wrong:
            raise RecorderError("data.json is damaged: %s" % wrong, self.json, "name another folder, or overwrite=True")
        self.meta = meta

    def keep_whole_parts(self):
        """Drops the listed parts from the first damaged one on; returns its name, or None if all are whole."""
        try:
            return self._keep_whole_parts()
        except OSError as error:
            raise RecorderError("cannot go on in this folder: %s" % (error.strerror or error), self.folder,
                                "name another folder, or overwrite=True to start over")

    def _keep_whole_parts(self):
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
        if _is_part(path + _RAGGED, part):
            os.replace(path + _RAGGED, path)  # finish what was under way when the program was killed
        return _is_part(path, part)

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
        path = self.path(self.meta["parts"][number]["file"])
        try:
            return read_npz(path)
        except Unfit as error:
            raise RecorderError("a part cannot be read: %s" % error, path, "overwrite=True to start over")

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
