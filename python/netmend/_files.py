"""The one way to open a file that may be somebody else's: a regular file, of bounded size, told in one sentence when it is
neither. Standard library only, because scripts of this folder use it too."""
import json
import os
import re
import stat

MOST_JSON = 256 << 20  # bytes of a JSON file, as the program reads it
MOST_VALUES = 20_000_000  # a list or an object counts as eight values, as in the program
MOST_TEXT = 1 << 20  # bytes of a Python program; its syntax tree takes some 500 times as much memory
MOST_LINES = 50_000
MOST_BRACES = 50_000  # Pythons before 3.12 take the square of their number for those of an f-string

# What ends a line, moves the cursor, turns the order of the text behind it, or is no text at all. A tab and a line end stay.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


class Unfit(ValueError):
    """A file that is not read. Its text is a sentence without the file's name."""


def printable(text):
    """Text for a terminal: what is no character that a person can see stands as its number."""
    return _UNPRINTABLE.sub(lambda hit: ("\\x%02x" if ord(hit.group()) < 256 else "\\u%04x") % ord(hit.group()), str(text))


def printable_name(name):
    """A name within a sentence: it ends no line either."""
    return printable(os.fsdecode(name)).replace("\n", "\\n").replace("\t", "\\t")


def open_regular(path, most=None):
    """The file, open for reading bytes. Raises Unfit when it is missing, a folder, a pipe, a device or larger than `most`."""
    try:
        # A pipe that nobody writes to would never open otherwise; for regular files O_NONBLOCK means nothing.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:  # ValueError: a name with NUL
        raise Unfit(getattr(error, "strerror", None) or str(error)) from None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise Unfit("it is a folder" if stat.S_ISDIR(about.st_mode) else "it is not a regular file")
        if most is not None and about.st_size > most:
            raise _too_large(most)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _too_large(most):
    return Unfit("it is larger than %d %s" % ((most >> 20, "MB") if most >= 1 << 20 else (most, "bytes")))


def read_bytes(path, most):
    """The whole file. What grows while it is read, or says 0 bytes as files of /proc do, is bounded too."""
    try:
        with open_regular(path, most) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise Unfit(error.strerror or str(error)) from None
    if len(content) > most:
        raise _too_large(most)
    return content


def _without_twins(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unfit("a key stands twice in one object")
    return found


def _whole(digits):
    if len(digits) > 400:  # older Pythons take the square of their number for it
        raise Unfit("a number has %d digits" % len(digits))
    return int(digits)


def parse_json(text, values=MOST_VALUES):
    """What JSON bytes say. Raises Unfit for what is none, is nested too deeply, or would take far more memory than bytes."""
    if text.count(b",") + 8 * (text.count(b"[") + text.count(b"{")) > values:
        raise Unfit("it holds more than %d values" % values)
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_without_twins, parse_int=_whole)
    except RecursionError:
        raise Unfit("this is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise error if isinstance(error, Unfit) else Unfit("this is not JSON: %s" % error) from None


def read_json(path, most=MOST_JSON):
    return parse_json(read_bytes(path, most))


def bounded_program(content):
    """The bytes of a Python program, when they are few enough for its syntax tree."""
    if len(content) > MOST_TEXT:
        raise _too_large(MOST_TEXT)
    if max(content.count(b"\n"), content.count(b"\r")) > MOST_LINES:
        raise Unfit("it has more than %d lines" % MOST_LINES)
    if content.count(b"{") > MOST_BRACES:
        raise Unfit("it has more than %d opening braces" % MOST_BRACES)
    return content


def read_program(path):
    return bounded_program(read_bytes(path, MOST_TEXT))
