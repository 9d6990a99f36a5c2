"""Writes small networks as ONNX files, with NumPy alone: for trainings that are planted for netmend's own trainer."""
import struct

FLOAT, INT, STRING, INTS = 1, 2, 3, 7


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    """A whole number, or bytes or text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    out = field(1, name)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, FLOAT)
    if isinstance(value, int):
        return out + field(3, value) + field(20, INT)
    return out + b"".join(field(8, one) for one in value) + field(20, INTS)


def tensor(name, array):
    """float32 or int64."""
    kind = 1 if array.dtype == "float32" else 7
    return b"".join(field(1, int(size)) for size in array.shape) + field(2, kind) + field(8, name) + field(9, array.tobytes())


def value(name, shape):
    dims = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


class Network:
    """Nodes one behind the other: each reads what the one before made, and its constants."""

    def __init__(self, width):
        self.nodes, self.tensors, self.last, self.width, self.count = [], [], "x", width, 0

    def add(self, op, constants=(), **attributes):
        name = "%s%d" % (op.lower(), self.count)
        self.count += 1
        inputs = [self.last]
        for part, array in constants:
            inputs.append("%s.%s" % (name, part))
            self.tensors.append(tensor(inputs[-1], array))
        node = b"".join(field(1, one) for one in inputs) + field(2, name + ".out") + field(3, name) + field(4, op)
        self.nodes.append(node + b"".join(field(5, attribute(key, one)) for key, one in attributes.items()))
        self.last = name + ".out"

    def write(self, path, outputs):
        self.nodes.append(field(1, self.last) + field(2, "y") + field(3, "y") + field(4, "Identity"))
        graph = b"".join(field(1, one) for one in self.nodes) + field(2, "planted") + b"".join(field(5, one) for one in self.tensors)
        graph += field(11, value("x", ("N", self.width))) + field(12, value("y", ("N", outputs)))
        with open(path, "wb") as file:
            file.write(field(1, 8) + field(2, "netmend.planted") + field(7, graph) + field(8, field(1, "") + field(2, 17)))
