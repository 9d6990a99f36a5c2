"""netmend match: references written as docs/formats.md says, for networks exported by PyTorch. Needs torch and numpy.

usage: match_test.py NETMEND
"""
import json, os, warnings

from shell import Case, main, need, parse, read_bytes, write, write_bytes

need("numpy", "torch")
import numpy, torch
from torch import nn

warnings.filterwarnings("ignore")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x + self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class Small(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.layer1, self.layer2 = nn.Sequential(Block(8), Block(8)), nn.Sequential(Block(8))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, classes)

    def forward(self, x):
        x = self.layer2(self.layer1(torch.relu(self.norm(self.stem(x)))))
        return self.fc(self.pool(x).flatten(1))


def network(seed=0, **more):
    torch.manual_seed(seed)
    net = Small(**more)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2), module.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5), nn.init.uniform_(module.bias, -0.2, 0.2)
    return net.eval()


def export(net, file, fold=True, batch=1):
    torch.onnx.export(net, torch.zeros(batch, 3, 8, 8), file, input_names=["x"], output_names=["scores"],
                      training=torch.onnx.TrainingMode.EVAL if fold else torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=fold)


def recorded_layers(net, x):
    layers, hooks = {}, []

    def keep(name):
        def hook(module, given, output):
            layers.setdefault(name, output.detach().numpy().copy())
        return hook

    for name, module in net.named_modules():
        if name and not list(module.children()) or isinstance(module, Block):
            hooks.append(module.register_forward_hook(keep(name)))
    with torch.no_grad():
        scores = net(x)
    for hook in hooks:
        hook.remove()
    return scores.numpy(), layers


def write_reference(file, inputs, outputs, layers=None, samples=None, **meta):
    count = len(next(iter(inputs.values())))
    about = {"format": "netmend-reference", "version": 1, "framework": "torch " + torch.__version__,
             "samples": list(range(count)) if samples is None else samples,
             "inputs": list(inputs), "outputs": list(outputs), "layers": list(layers or {}), **meta}
    members = {"meta.bytes": numpy.frombuffer(json.dumps(about).encode(), numpy.uint8)}
    for kind, values in (("input", inputs), ("output", outputs), ("layer", layers or {})):
        members.update({f"{kind}.{name}": value for name, value in values.items()})
    numpy.savez(file, **members)


class Matching(Case):
    def setUp(self):
        super().setUp()
        self.net = network()
        self.x = torch.rand(20, 3, 8, 8, generator=torch.Generator().manual_seed(1))
        self.scores, self.layers = recorded_layers(self.net, self.x)

    def match(self, *arguments, code=0):
        return self.json("match", "m.onnx", "--reference", "ref.npz", "--quiet", *arguments, code=code)

    def refused(self, *arguments, words=()):
        return super().refused("match", "m.onnx", "--reference", "ref.npz", "--quiet", *arguments, words=words)

    def reference(self, **more):
        write_reference("ref.npz", {"x": self.x.numpy()}, {"scores": self.scores}, self.layers, **more)

    def test_the_exported_network_matches(self):
        for fold in (True, False):
            export(self.net, "m.onnx", fold)
            self.reference()
            found = self.match("--layers", "--tolerance", "1e-5")
            self.assertTrue(found["matches"])
            self.assertEqual(found["inputs"], 20)
            self.assertEqual([output["name"] for output in found["outputs"]], ["scores"])
            self.assertLess(found["outputs"][0]["max"], 1e-5)
            self.assertEqual(found["outputs"][0]["predictions_differ"], 0)
            self.assertIsNone(found["first_departure"], found["layers"])
            self.assertEqual(len(found["layers"]), len(self.layers))
            for layer in found["layers"]:
                self.assertTrue(layer["folded"] or layer["relative"] < 1e-5, layer)
                if fold and layer["name"].split(".")[-1].startswith("conv"):
                    self.assertTrue(layer["folded"], layer)

    def test_for_people(self):
        export(self.net, "m.onnx")
        self.reference()
        said = self.ok("match", "m.onnx", "--reference", "ref.npz", "--layers").stdout
        for word in ("scores", "layer1.0.conv1", "20×8×8×8", "matches: the outputs agree"):
            self.assertIn(word, said)

    def test_names_may_differ_and_layers_be_absent(self):
        export(self.net, "m.onnx")
        write_reference("ref.npz", {"pixels": self.x.numpy()}, {"logits": self.scores})
        self.assertTrue(self.match()["matches"])
        self.scores[3] += 1
        write_reference("ref.npz", {"pixels": self.x.numpy()}, {"logits": self.scores})
        self.assertIn("holds no layers", self.match(code=1)["reason"])

    def test_an_altered_weight_is_found_in_its_layer(self):
        for fold in (True, False):
            for name in ("layer1.1.conv2", "layer2.0.conv1", "fc"):
                self.reference()
                other = network()
                module = other.get_submodule(name)
                with torch.no_grad():
                    module.weight.view(-1)[::7] += 0.5
                export(other, "m.onnx", fold)
                found = self.match(code=1)
                # Where batch norm is folded into it, a convolution's own values are not in the file.
                self.assertEqual(found["first_departure"], name, (fold, found))
                self.assertIn(f"`{name}`", found["reason"])
                self.assertIn("is to blame", found["reason"])

    def test_a_reference_from_before_the_repair_is_no_mismatch(self):
        self.reference()
        with torch.no_grad():
            self.net.fc.weight.view(-1)[::7] += 0.5
        export(self.net, "m.onnx")
        exported = read_bytes("m.onnx")

        def repaired(*units):
            record = json.dumps({"units": list(units), "inputs": 0, "hashes": ""}).encode()
            entry = b"\x0a\x0enetmend.repair\x12" + bytes([len(record)]) + record
            write_bytes("m.onnx", exported + b"\x72" + bytes([len(entry)]) + entry)  # metadata_props of the model

        repaired("fc/0", "fc/2")
        found = self.match(code=0)
        self.assertEqual((found["matches"], found["repaired"]), (False, True), found)
        self.assertEqual(found["reason"], "the model was repaired after the reference was written; `fc` was changed, "
                                          "so its outputs differ from the reference")
        said = self.ok("match", "m.onnx", "--reference", "ref.npz").stdout
        self.assertIn("differs as a repaired model does (exit 0)", said)
        repaired()  # a repair of other weights than units' may have changed any layer
        self.assertTrue(self.match(code=0)["repaired"])
        repaired("layer1.0.conv1/3")  # which is not the layer that differs
        found = self.match(code=1)
        self.assertFalse(found["repaired"])
        self.assertIn("`fc`", found["reason"])

    def test_convolutions_alone_are_enough(self):
        self.layers = {name: value for name, value in self.layers.items() if "conv" in name or name == "fc"}
        self.reference()
        with torch.no_grad():
            self.net.get_submodule("layer1.1.conv1").weight.view(-1)[::7] += 0.5
        export(self.net, "m.onnx")
        found = self.match(code=1)
        self.assertEqual(found["first_departure"], "layer1.1.conv1")
        self.assertIn("`layer1.1.conv1` (Conv", found["reason"])

    def test_layers_without_known_names_are_paired_by_value(self):
        order = list(self.layers)
        self.layers = {f"op{i:02}": self.layers[name] for i, name in enumerate(order)}
        self.reference()
        for fold in (True, False):
            export(self.net, "m.onnx", fold)
            found = self.match("--layers")
            self.assertIsNone(found["first_departure"], found["layers"])
            other = network()
            with torch.no_grad():
                other.get_submodule("layer2.0.conv1").weight.view(-1)[::7] += 0.5
            export(other, "m.onnx", fold)
            found = self.match(code=1)
            self.assertEqual(found["first_departure"], f"op{order.index('layer2.0.conv1'):02}", (fold, found["layers"]))

    def test_preprocessing_is_fitted(self):
        export(self.net, "m.onnx")
        raw = numpy.random.RandomState(0).randint(0, 256, (20, 3, 8, 8)).astype(numpy.uint8)
        numpy.savez("data.npz", x=raw, y=numpy.arange(20) % 5)
        mean, std = (numpy.float32(part).reshape(3, 1, 1) for part in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))

        def reference(values):
            self.x = torch.from_numpy(numpy.ascontiguousarray(values.astype(numpy.float32)))
            self.scores, self.layers = recorded_layers(self.net, self.x)
            self.reference()

        reference((raw / 255 - mean) / std)
        right = "npz:data.npz,scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225"
        self.assertTrue(self.match("--data", right)["matches"])
        found = self.match("--data", "npz:data.npz,scale=1/255", code=1)
        self.assertIn("the framework's input = (yours − [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]",
                      found["reason"])
        line = 'input.x = { scale = "1/255", mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225] }'
        self.assertEqual(found["preprocessing"]["config"], line)
        found = self.match("--data", "npz:data.npz", code=1)
        self.assertEqual(found["preprocessing"]["config"], line)
        write("netmend.toml", line + '\ndata = { test = "npz:data.npz" }\n')
        self.assertTrue(self.match()["matches"])
        os.remove("netmend.toml")
        reference(raw[:, ::-1] / 255)
        found = self.match("--data", "npz:data.npz,scale=1/255", code=1)
        self.assertIn("the colour channels are reversed", found["reason"])
        self.assertEqual(found["preprocessing"]["config"], 'input.x = { color = "BGR", scale = "1/255" }')
        reference(raw.transpose(0, 1, 3, 2) / 255)
        found = self.match("--data", "npz:data.npz,scale=1/255", code=1)
        self.assertIn("rows and columns are swapped", found["reason"])
        reference(raw[::-1] / 255)
        self.assertIn("another order", self.match("--data", "npz:data.npz,scale=1/255", code=1)["reason"])
        self.refused("--data", "npz:data.npz,scale=1/255,limit=7", words=["has only 7"])

    def test_channels_last_is_recognised(self):
        export(self.net, "m.onnx")
        layers = {name: value.transpose(0, 2, 3, 1) if value.ndim == 4 else value
                  for name, value in self.layers.items()}
        write_reference("ref.npz", {"x": self.x.numpy().transpose(0, 2, 3, 1).copy()}, {"scores": self.scores}, layers)
        found = self.match("--layers")
        self.assertTrue(found["matches"])
        self.assertIn("channels last", " ".join(found["notes"]))
        self.assertIsNone(found["first_departure"], found["layers"])

    def test_rounded_weights_are_precision(self):
        self.reference()
        other = network()
        with torch.no_grad():
            for value in other.parameters():
                value.copy_(value.half().float())
        export(other, "m.onnx", fold=False)
        self.assertTrue(self.match("--tolerance", "1e-2")["matches"])
        found = self.match("--tolerance", "1e-6", code=1)
        self.assertTrue(found["reason"].startswith("precision:"), found["reason"])
        self.assertIn("float16", found["reason"])

    def test_training_mode_is_recognised(self):
        for fold in (True, False):
            export(self.net.eval(), "m.onnx", fold)
            self.scores, self.layers = recorded_layers(self.net.train(), self.x)
            self.reference()
            found = self.match(code=1)
            self.assertIn("batch norm in training mode", found["reason"])
            self.assertEqual(found["first_departure"], "norm", found["layers"])

    def test_a_softmax_at_the_end(self):
        export(self.net, "m.onnx")
        self.scores = torch.softmax(torch.from_numpy(self.scores), 1).numpy()
        self.reference()
        self.assertIn("with a softmax at the end", self.match(code=1)["reason"])

    def test_another_checkpoint(self):
        for fold in (True, False):
            export(network(seed=7), "m.onnx", fold)
            self.reference()
            found = self.match(code=1)
            self.assertTrue(found["reason"].startswith("another model"), found["reason"])
            self.assertGreater(found["outputs"][0]["predictions_differ"], 0.1)

    def test_a_reference_of_another_network_is_refused(self):
        export(self.net, "m.onnx")
        write_reference("ref.npz", {"x": numpy.zeros((4, 1, 28, 28), numpy.float32)},
                        {"scores": numpy.zeros((4, 5), numpy.float32)})
        self.refused(words=["N×3×8×8", "4×1×28×28", "another model"])
        write_reference("ref.npz", {"x": self.x.numpy(), "z": self.x.numpy()}, {"scores": self.scores})
        self.refused(words=["the model has 1 input (x)"])
        write_reference("ref.npz", {"x": self.x.numpy()}, {"scores": numpy.zeros((20, 9), numpy.float32)})
        self.refused(words=["20×9"])

    def test_broken_files_are_refused(self):
        export(self.net, "m.onnx")
        self.reference()
        whole = read_bytes("ref.npz")
        for broken in (whole[:len(whole) // 2], b"", b"PK\5\6" + bytes(18), b"nonsense" * 10):
            write_bytes("ref.npz", broken)
            self.refused()
        for change in ({"format": "other"}, {"version": 2}, {"inputs": "x"}, {"outputs": []}, {"outputs": ["y"]},
                       {"samples": [-1]}, {"samples": [1, 2]}, {"layers": ["missing"]}, {"inputs": ["x", "x"]}):
            self.reference()
            about = dict(numpy.load("ref.npz"))
            meta = {**parse(bytes(about["meta.bytes"])), **change}
            about["meta.bytes"] = numpy.frombuffer(json.dumps(meta).encode(), numpy.uint8)
            numpy.savez("ref.npz", **about)
            self.refused()
        numpy.savez("ref.npz", x=self.x.numpy())
        self.refused(words=["meta.bytes"])


if __name__ == "__main__":
    main(slow=True)
