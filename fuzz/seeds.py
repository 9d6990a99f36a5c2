#!/usr/bin/env python3
"""usage: seeds.py NETMEND FOLDER: small valid files of every format, to start the fuzzers from."""
import glob, os, shutil, struct, subprocess, sys, zipfile

netmend, folder = sys.argv[1:]
for reader in ("onnx", "idx", "npy", "csv"):
    os.makedirs(os.path.join(folder, reader), exist_ok=True)


def put(reader, name, data):
    with open(os.path.join(folder, reader, name), "wb") as out:
        out.write(data)


for case in sorted(glob.glob("/usr/share/libonnx-testdata/data/node/*/model.onnx"))[::6]:
    if os.path.getsize(case) < 4000:
        shutil.copy(case, os.path.join(folder, "onnx", os.path.basename(os.path.dirname(case))))
if os.path.exists(netmend):
    subprocess.run([netmend, "lab", "new", "mlp:4-3-2", "-o", os.path.join(folder, "onnx", "mlp")], check=True, stdout=subprocess.DEVNULL)

put("idx", "images", struct.pack(">IIII", 0x803, 2, 3, 3) + bytes(range(18)))
put("idx", "labels", struct.pack(">II", 0x801, 4) + bytes(4))
put("idx", "floats", struct.pack(">II3f", 0xD01, 3, 1, 2, 3))


def npy(kind, shape, data, version=1):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + data


put("npy", "floats", npy("<f4", (2, 3), struct.pack("<6f", *range(6))))
put("npy", "big", npy(">i8", (4,), struct.pack(">4q", *range(4)), 2))
put("npy", "fortran", npy("|u1", (2, 2), bytes(4)).replace(b"False", b"True "))
for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(os.path.join(folder, "npy", name), "w", method) as archive:
        archive.writestr("x.npy", npy("<f4", (2, 3), struct.pack("<6f", *range(6))))
        archive.writestr("y.npy", npy("<i8", (2,), struct.pack("<2q", 0, 1)))

put("csv", "plain", b"age,job,income\n39,clerk,<=50K\n50,\"farmer, own\",>50K\n")
put("csv", "quotes", b'a;b\r\n"x ""y""";1\r\n?;2\r\n')
