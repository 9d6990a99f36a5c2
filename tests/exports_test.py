"""Networks exported by PyTorch, run by netmend: the outputs must be PyTorch's own. Run by a Python that has torch.

usage: exports_test.py NETMEND
"""
import os, sys, warnings

from shell import SOURCE, Case, main, need, parse

need("numpy", "torch")
import numpy, torch
from torch import nn

sys.path.insert(0, os.path.join(SOURCE, "bench"))
import networks

warnings.filterwarnings("ignore")


class Reader(nn.Module):
    """A transformer that takes ids and a mask, as text classifiers do."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 24), nn.Embedding(12, 24)
        layer = nn.TransformerEncoderLayer(24, 4, 48, activation="gelu", batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(24, 3)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        weight = attention_mask.unsqueeze(2).to(x.dtype)
        return torch.softmax(self.head((x * weight).sum(1) / weight.sum(1)), 1)


class Listener(nn.Module):
    def __init__(self, kind, **more):
        super().__init__()
        self.cell = kind(5, 7, batch_first=True, bidirectional=True, **more)
        self.head = nn.Linear(14, 2)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Sharpener(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 8, 3, 2, 1), nn.ConvTranspose2d(8, 4, 4, 2, 1)
        self.norms = nn.ModuleList([nn.GroupNorm(2, 8), nn.InstanceNorm2d(4, affine=True)])

    def forward(self, x):
        y = self.norms[1](self.up(nn.functional.silu(self.norms[0](self.down(x)))))
        y = torch.cat([y, nn.functional.interpolate(y, scale_factor=2, mode="bilinear")[:, :, ::2, ::2]], 1)
        return nn.functional.adaptive_avg_pool2d(nn.functional.leaky_relu(y), 1).flatten(1)


class Patches(nn.Module):
    """A class token joined to patches, exported for a batch of one."""

    def __init__(self):
        super().__init__()
        self.cut, self.token = nn.Conv2d(3, 16, 8, 8), nn.Parameter(torch.randn(1, 1, 16))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x):
        tokens = self.cut(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), tokens], 1)
        mixed = torch.softmax(tokens @ tokens.transpose(1, 2) / 4, -1) @ tokens
        return self.head(self.norm(mixed)[:, 0])


class Exports(Case):
    def agree(self, network, inputs, free_batch, opset=15, tolerance=2e-5):
        torch.manual_seed(0)
        network.eval()  # with gradients on, PyTorch keeps its attention exportable
        names = ["input_ids", "attention_mask"] if len(inputs) == 2 else ["x"]
        one = tuple(x[:1] for x in inputs)
        axes = {name: {0: "batch"} for name in names + ["y"]} if free_batch else None
        torch.onnx.export(network, tuple(inputs) if free_batch else one, "m.onnx", input_names=names,
                          output_names=["y"], dynamic_axes=axes, opset_version=opset)
        expected = network(*inputs).detach().numpy()
        arguments = []
        for name, x in zip(names, inputs if free_batch else one):
            numpy.save(name + ".npy", x.numpy())
            arguments += ["--input", f"{name}={name}.npy"]
        listed = self.json("lab", "run", "m.onnx", *arguments, "--out", ".")
        got = numpy.load(listed["outputs"][0]["file"])
        error = numpy.abs(got - expected[:len(got)]).max()
        self.assertLess(error, tolerance * max(1, numpy.abs(expected).max()))
        self.assertGreater(len(self.json("info", "m.onnx")["layers"]), 0)
        # Through the pass too: with labels that are PyTorch's own answers everything is right, batched or not.
        if len(inputs) != 1 or expected.ndim != 2 or expected.shape[1] == 1:
            return ""
        numpy.savez("d.npz", x=inputs[0].numpy(), y=expected.argmax(1))
        done = self.ok("eval", "m.onnx", "--data", "npz:d.npz,x=x,y=y", "--out", "run", "--json")
        self.assertEqual(parse(done.stdout)["accuracy"], 1)
        return done.stderr

    def test_residual_network_with_a_batch_of_one(self):
        said = self.agree(networks.resnet20(), [torch.randn(9, 3, 32, 32)], False)
        self.assertIn("generalised", said)

    def test_lenet_and_convnet(self):
        self.agree(networks.lenet5(), [torch.randn(9, 1, 28, 28)], True)
        self.agree(networks.cifar_convnet(), [torch.randn(9, 3, 32, 32)], False)

    def test_transformer_with_ids_and_mask(self):
        ids = torch.randint(50, (6, 12))
        mask = (torch.arange(12) < torch.randint(4, 12, (6, 1))).long()
        self.agree(Reader(), [ids, mask], True, opset=14)

    def test_recurrent_networks(self):
        x = torch.randn(7, 11, 5)
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            self.agree(Listener(kind), [x], True)
            self.agree(Listener(kind, num_layers=2), [x], False)

    def test_class_token_with_a_batch_of_one(self):
        self.assertIn("generalised", self.agree(Patches(), [torch.randn(9, 3, 32, 32)], False))

    def test_norms_upsampling_and_slices(self):
        for opset in (11, 13, 16):
            self.agree(Sharpener(), [torch.randn(9, 3, 16, 16)], False, opset)


if __name__ == "__main__":
    main(slow=True)
