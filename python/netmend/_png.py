"""Images for people, as PNG files, without an imaging library."""
import struct
import zlib

import numpy as np

from ._arrays import to_numpy
from ._errors import RecorderError

_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> PNG colour type
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) & 0xFFFFFFFF)


def encode(pixels):
    """uint8 height x width x channels -> the bytes of a PNG file."""
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, width * channels)
    # Each row as its difference to the one above: photographs shrink by a third more than as they are.
    lines = np.empty((height, width * channels + 1), np.uint8)
    lines[:, 0] = 2
    lines[0, 1:] = rows[0]
    lines[1:, 1:] = rows[1:] - rows[:-1]
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + _chunk(b"IEND", b"")


def _from_pil(image):
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        grey = image.mode in ("1", "F") or image.mode.startswith("I")
        image = image.convert("L" if grey else "RGBA" if "transparency" in image.info else "RGB")
    return np.asarray(image)


def png_of(image, where):
    """A PIL image, a uint8 array (height x width, or with 1 to 4 channels last), or PNG bytes -> PNG bytes."""
    if isinstance(image, (bytes, bytearray)):
        if bytes(image[:8]) == _SIGNATURE:
            return bytes(image)
        raise RecorderError("bytes to display are not a PNG file", where, "give uint8 arrays, PIL images or PNG files")
    pixels = _from_pil(image) if hasattr(image, "mode") and hasattr(image, "convert") else to_numpy(image)
    if pixels.dtype != np.uint8:
        raise RecorderError("an image to display holds %s, not uint8" % pixels.dtype, where,
                            "give the raw pixels, for floats between 0 and 1: (x * 255).round().astype('uint8')")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in _COLOURS or 0 in pixels.shape:
        hint = "give height x width, or height x width x channels"
        if pixels.ndim == 3 and pixels.shape[0] in _COLOURS:
            hint += "; channels come last: x.permute(1, 2, 0) or x.transpose(1, 2, 0)"
        raise RecorderError("an image to display has the shape %s" % (tuple(pixels.shape),), where, hint)
    return encode(np.ascontiguousarray(pixels))
