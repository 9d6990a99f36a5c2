#!/usr/bin/env python3
"""usage: seeds.py NETMEND FOLDER: valid files of every kind for the fuzzers to start from, small ones, and a dictionary
of the words in them. Files that netmend writes are products of real runs, made as tests/hostile_test.py makes them."""
import base64, contextlib, glob, json, os, re, shutil, sqlite3, struct, sys, tempfile, zipfile, zlib

netmend, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.argv = [sys.argv[0], netmend]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import hostile_test as products

BETWEEN = b"\n====\n"


def put(reader, name, data):
    os.makedirs(os.path.join(folder, reader), exist_ok=True)
    with open(os.path.join(folder, reader, name), "wb") as out:
        out.write(data if isinstance(data, bytes) else data.encode())


def read(path):
    with open(path, "rb") as file:
        return file.read()


# ---- data ----

put("idx", "images", struct.pack(">IIII", 0x803, 2, 3, 3) + bytes(range(18)))
put("idx", "labels", struct.pack(">II", 0x801, 4) + bytes(4))
put("idx", "floats", struct.pack(">II3f", 0xD01, 3, 1, 2, 3))


def npy(kind, shape, data, version=1):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + data


def archive(members, method=zipfile.ZIP_STORED):
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", method) as out:
            for name, content in members.items():
                out.writestr(name + ".npy", content)
        file.seek(0)
        return file.read()


def text_array(text):
    return npy("|u1", (len(text),), text.encode())


floats = npy("<f4", (2, 3), struct.pack("<6f", *range(6)))
labels = npy("<i8", (2,), struct.pack("<2q", 0, 1))
put("npy", "floats", floats)
put("npy", "big", npy(">i8", (4,), struct.pack(">4q", *range(4)), 2))
put("npy", "fortran", npy("|u1", (2, 2), bytes(4)).replace(b"False", b"True "))
put("npy", "half", npy("<f2", (3,), bytes(6)))
for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
    put("npz", name, b"\1" + archive({"x": floats, "y": labels}, method))
put("npz", "as it is", b"\0" + archive({"x": floats}))

put("csv", "plain", b"\x14age,job,income\n39,clerk,<=50K\n50,\"farmer, own\",>50K\n")
put("csv", "quotes", b'\x15a\tb\r\n"x ""y"""\t1\r\n?\t2\r\n')
put("csv", "blanks", b"\x3ca b\n1  2\n|x\n\n3 4\n")


def png(color, bits, rows, extra=b""):
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    width = len(rows[0]) * 8 // bits // {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    head = struct.pack(">IIBBBBB", width, len(rows), bits, color, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(b"".join(b"\1" + row for row in rows))) +
            chunk(b"IEND", b""))


palette = struct.pack(">I", 6) + b"PLTE" + bytes(6) + struct.pack(">I", zlib.crc32(b"PLTE" + bytes(6)))
for name, color, bits, width in (("grey", 0, 8, 5), ("colour", 2, 8, 15), ("alpha", 6, 8, 20), ("deep", 0, 16, 8), ("bits", 0, 1, 2)):
    put("png", name, png(color, bits, [bytes(range(width))] * 3))
put("png", "palette", png(3, 8, [bytes([0, 1, 0])] * 2, palette))

JPEG = {
    "grey": "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/"
            "wAALCAAJAAsBAREA/8QAFgABAQEAAAAAAAAAAAAAAAAABQME/8QAHBAAAgICAwAAAAAAAAAAAAAAAAQBAiEiMTJB/9oACAEBAAA/AMSanGBaimsYIp+C1OsH/9k=",
    "colour": "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/"
              "2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAJAAsDASIAAhEBAxEB/8QAFQAB"
              "AQAAAAAAAAAAAAAAAAAABQT/xAAbEAACAgMBAAAAAAAAAAAAAAAAAgEEIjEyQf/EABUBAQEAAAAAAAAAAAAAAAAAAAED/8QAGBEAAwEBAAAAAAAAAAAAAAAAAAID"
              "BBL/2gAMAwEAAhEDEQA/AJazaEVbGAut4IrzAa5L0WWCn//Z",
    "cmyk": "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAbEhQXFBEbFxYXHhwbIChCKyglJShROj0wQmBVZWRfVV1baniZgWpxkHNbXYW1hpCeo6utq2eAvMm6pseZqKuk/8AAFAgA"
            "CQALBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAUDBP/EABwQAAICAgMAAAAAAAAAAAAAAAAEAQIhIjEyQf/aAA4EQwBNAFkASwAAPwDa43zk2uN8"
            "5NrjfOTa43zkJu3tOQm7e05Cbt7TkJu3tOSznpZz0s56Wc9Cb9pCb9pCb9pCb9pP/9k="}
for name, text in JPEG.items():
    put("jpeg", name, base64.b64decode(text))

SAVED = {"format": "netmend-saved", "version": 1, "complete": True, "samples": 2, "classes": ["a", "b"], "groups": [],
         "inputs": [{"name": "x", "type": "float32", "shape": [3]}], "labels": {"kind": "class", "width": 1}, "display": "none",
         "parts": [{"file": "part-0.npz", "samples": 2, "bytes": "@", "crc32": "CRC32"}], "writer": "netmend"}


def saved(index, members):
    return json.dumps(index).replace('"@"', "BYTES").encode() + BETWEEN + b"\1" + archive(members)


words = lambda name, *parts: {name + ".bytes": text_array("".join(parts)),
                              name + ".ends": npy("<i8", (len(parts),), struct.pack(f"<{len(parts)}q", *[len("".join(parts[:i + 1])) for i in range(len(parts))]))}
put("saved", "plain", saved(SAVED, {"input.x": floats, "label": labels}))
put("saved", "words", saved({**SAVED, "groups": ["sex"], "display": "text", "labels": {"kind": "none", "width": 1}, "classes": []},
                            {"input.x": floats, **words("id", "one", "two"), **words("group.sex", "f", ""), **words("display", "a row", "b")}))
ragged = {**SAVED, "inputs": [{"name": "x", "type": "float32", "shape": [-1]}]}
put("saved", "ragged", saved(ragged, {"input.x": npy("<f4", (6,), bytes(24)), "label": labels, "length.x": npy("<i8", (2,), struct.pack("<2q", 2, 4))}))

meta = {"format": "netmend-reference", "version": 1, "framework": "torch", "samples": [0, 1], "inputs": ["x"], "outputs": ["y"], "layers": ["fc"]}
put("reference", "whole", b"\1" + archive({"input.x": floats, "output.y": floats, "layer.fc": floats, "meta.bytes": text_array(json.dumps(meta))}))

# ---- texts by hand ----

put("preprocessor", "image", json.dumps({"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.2],
                                         "do_resize": True, "size": {"shortest_edge": 8}, "do_center_crop": True, "crop_size": {"height": 8, "width": 8}, "resample": 3}))
put("preprocessor", "size", json.dumps({"size": {"height": 8, "width": 9}, "resample": 2, "do_rescale": False}))
put("config", "labels", json.dumps({"id2label": {"0": "cat", "1": "say \"hi\"", "2": "dög"}, "architectures": ["ViT"]}))
put("names", "plain", "3\n5\nx.png\n")
put("names", "table", 'id,why\n3,"a ""b"""\n\'=x,seen\n')
put("text", "plain", b"text,label\nthe cat sat,0\n\"a dog, ran\",1\n" + BETWEEN + b"[PAD]\n[UNK]\nthe\ncat\n##s\n")
put("output", "normal", b"\0epoch 3\naccuracy: 0.75\n" + BETWEEN)
put("output", "crash", b"\6x\n" + BETWEEN + b'Traceback (most recent call last):\n  File "a.py", line 3\n    raise ValueError(x)\nValueError: shape 3\n')
put("words", "list", "['cat', \"dog\", 'it\\'s']")
put("words", "dictionary", "{0: 'cat', 1: 'dog'}")
put("words", "json", '{"0": "cat", "1": "d\\u00f6g"}')
put("toml", "full", """model = { file = "m.onnx", output = "logits", kind = "classes", reference = "ref.npz" }
classes = ["cat", "dog"]
input.x = { scale = "1/255", mean = [0.5], std = [0.25], layout = "NCHW", resize = { short = 8, crop = 8, filter = "bilinear" } }
[data]
test = "images:test"
train = "images:train"
groups = ["sex"]
id = "name"
[goal]
metric = "accuracy"
expect = 0.9
[gate]
accuracy = ">= 0.9"
"recall.cat" = ">= 0.8"
[checks]
skip = ["labels"]
[accept]
"weak-class:cat" = { reason = "known", until = "2099-01-31", value = 0.2, factor = "2x" }
"inputs:known.csv" = { reason = '''old''', until = 2099-01-31 }
""")

# ---- networks ----

kinds = ("if", "loop", "scan", "sequence_map", "function", "expanded")
for case in sorted(glob.glob("/usr/share/libonnx-testdata/data/node/*/model.onnx")):
    name = os.path.basename(os.path.dirname(case))
    if os.path.getsize(case) < 4000 and (any(kind in name for kind in kinds) or zlib.crc32(name.encode()) % 6 == 0):
        put("onnx", name, read(case))
p = products
function = p.field(1, "twice") + p.field(4, "a") + p.field(5, "b") + p.field(7, p.node("Add", ["a", "a"], ["b"])) + p.field(9, p.field(1, "") + p.field(2, 17)) + p.field(10, "mine")
put("onnx", "function", p.onnx_model([p.node("twice", ["x"], ["y"], domain="mine")], [p.value_info("x", 1, 2)], [p.value_info("y", 1, 2)],
                                     functions=[function], metadata=[("names", "['a', 'b']")], domains=["mine"]))
for i in range(40):  # decisions: any bytes are some
    put("graphs", str(i), bytes((i * 31 + k * k * 7 + (k * i) % 13) % 256 for k in range(20 + 3 * i)))


# ---- products of real runs ----

def short(value):
    """At most two entries of every list: pages of numbers are no news to a parser."""
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [short(inner) for inner in value[:2]]
    return value[:60] if isinstance(value, str) else value


def short_json(path):
    return json.dumps(short(json.loads(read(path))))


here = os.getcwd()
with tempfile.TemporaryDirectory() as made:
    os.chdir(made)
    products.make_sound(study=False)
    put("model", "m.onnx", read("m.onnx"))
    put("model", "data.npz", read("t.npz"))
    put("onnx", "mlp", read("m.onnx"))
    for reader, path in (("state", "one.state"), ("profile", "m.profile")):
        put(reader, "hashed", b"\1" + read(path)[:-8])
        put(reader, "as it is", b"\0" + read(path))
    products.must("eval", "m.onnx", "--data", products.DATA_SPEC, "--anyway", "--shard", "1/1", "-o", "all.state")
    put("state", "whole", b"\1" + read("all.state")[:-8])
    checkpoint = read("m.ckpt")
    content = checkpoint.split(b"\n", 2)[2]
    put("checkpoint", "hashed", b"\3" + content)
    put("checkpoint", "short", b"\1" + content.split(b"\n")[0] + b"\n" + bytes(44))
    put("checkpoint", "as it is", b"\2" + checkpoint)
    put("baseline", "real", read("baseline.json"))
    put("eval", "real", read("evaluated/eval.json") + BETWEEN + b"".join(read("evaluated/samples.csv").splitlines(True)[:4]))
    put("findings", "real", short_json("checked/findings.json"))
    put("evidence", "real", short_json("checked/evidence.json"))
    put("edits", "real", short_json("edits.json"))
    put("toml", "real", read("netmend.toml"))
    put("external", "matmul", read("external.onnx") + BETWEEN + read("weights.bin"))
    put("record", "whole", read("recorded/record.jsonl"))
    put("record", "short", b"".join(read("recorded/record.jsonl").splitlines(True)[i] for i in (0, 4, 12, 13, 17)))
    put("epochs", "keras", read("epochs.csv"))
    put("epochs", "lightning", "epoch,step,train_loss_epoch,val_acc,val_loss\n0,9,1.0,,\n0,9,,0.5,1.2\n1,19,0.8,,\n")
    put("events", "scalars", read("events.out.tfevents.1"))
    with contextlib.closing(sqlite3.connect("small.db")) as store:
        store.execute("PRAGMA page_size = 512")
        with store:
            store.execute("CREATE TABLE about (study TEXT NOT NULL, version TEXT NOT NULL)")
            store.execute("CREATE TABLE trials (key TEXT PRIMARY KEY, result TEXT NOT NULL) WITHOUT ROWID")
            store.execute("INSERT INTO about VALUES ('inject', '1')")
            store.execute("INSERT INTO trials VALUES ('a', '{\"outcome\":\"normal\"}')")
    put("trials", "database", b"\0" + read("small.db"))
    put("trials", "row", b'\1{"outcome":"crash","seconds":0.5,"peak":1,"metric":null,"exception":"x","message":"","cause":""}')
    put("preprocessor", "real", read("named/preprocessor_config.json"))
    os.chdir(here)

entry = lambda root, fresh: struct.pack("<6q", root, root, fresh, 1, 0, 0) + struct.pack("<4f", 0, 1, 2, 3)
round_of = lambda picked, kept: struct.pack("<q", len(picked)) + struct.pack(f"<{len(picked)}q", *picked) + struct.pack("<3q", 16, 1, len(kept)) + b"".join(kept)
record = lambda content: struct.pack("<H", len(content)) + content
put("queue", "two rounds", b"\1" + record(round_of([0, 1], [entry(0, 3)])) + record(round_of([2], [entry(1, 1), entry(0, 2)])))
put("queue", "none", b"\1")
put("queue", "as it is", b"\0netmend-queue 2\n" + bytes(24))

# ---- dictionaries ----

TOKENS = {
    "json": ["null", "true", "false", "1e999", "-1", "9223372036854775807", "18446744073709551616", "[]", "{}", "[[", "\\u0000", "\\ud800", '""'],
    "toml": ["nan", "inf", "[[", "]]", "'''", '"""', "1979-05-27", "0x7f", "1_000", "\\u0000", "={", ".", "="],
    "npz": ["PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "\x93NUMPY", "'descr'", "'<f4'", "'<i8'", "True", "shape"],
    "npy": ["'<f4'", "'>i8'", "'|u1'", "'<f2'", "'|b1'", "'|S4'", "True", "(,)", "shape", "9223372036854775807"],
    "csv": ['""', '",', "?", "nan", "inf", "1e309", "\r\n", "|"],
    "png": ["IHDR", "IDAT", "IEND", "PLTE", "tRNS", "gAMA", "acTL"],
    "jpeg": ["\xff\xd8", "\xff\xdb", "\xff\xc0", "\xff\xc2", "\xff\xc4", "\xff\xda", "\xff\xd9", "\xff\xdd", "\xff\xee"],
    "onnx": ["Conv", "Gemm", "If", "Loop", "Scan", "axis", "axes", "then_branch", "body", "ai.onnx.ml", "strides", "pads", "group", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"]}
LIKE = {"saved": ("json", "npz"), "reference": ("json", "npz"), "state": ("json",), "profile": ("json",), "checkpoint": ("json",), "eval": ("json", "csv"),
        "edits": ("json",), "baseline": ("json",), "findings": ("json",), "record": ("json",), "trials": ("json",), "external": ("onnx",), "epochs": ("csv",), "names": ("csv",), "text": ("csv",), "evidence": ("json",), "preprocessor": ("json",), "config": ("json",), "words": ("json",)}
escape = lambda raw: "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\x{c:02x}" for c in raw)
for reader in sorted(os.listdir(folder)):
    if reader in ("model", "dictionaries"):
        continue
    found = {token.encode("latin-1") for kind in LIKE.get(reader, (reader,)) for token in TOKENS.get(kind, ())}
    for name in os.listdir(os.path.join(folder, reader)):
        content = read(os.path.join(folder, reader, name))
        found |= {word for word in re.findall(rb'"[A-Za-z_][\w-]{1,30}"', content)[:200]}
        if reader == "toml":
            found |= set(re.findall(rb"[a-z_]{3,}", content))
    put("dictionaries", reader, "".join(f'"{escape(word)}"\n' for word in sorted(found)))
