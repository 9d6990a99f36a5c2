"""Relevance in networks that PyTorch exported, against PyTorch's own derivatives of the same network with what
relevance holds still (gates, attention, the deviations of norms) detached.

usage: explain_models_test.py NETMEND
"""
from models_for_walks import *
from shell import Case, main, read_csv, write_csv
from netmend import save_data

F = nn.functional


def held(function, x, zero=0.0):
    """The line from (0, f(0)) to (x, f(x)): what relevance sees of an activation."""
    y = function(x)
    slope = torch.where(x.abs() < 1e-9, torch.zeros_like(x), (y - zero) / x).detach()
    return x * slope + (y - x * slope).detach()


def layer_norm(x, norm):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + norm.eps).detach() * norm.weight + norm.bias


def read(network, ids, mask):
    """Reader.forward from its embedding of words, held."""
    layer = network.encoder.layers[0]
    words = network.words(ids).detach().requires_grad_()
    x = words + network.places(torch.arange(ids.shape[1]))
    attention = layer.self_attn
    q, k, v = (x @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, -1)
    heads = [part.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2) for part in (q, k, v)]
    scores = heads[0] @ heads[1].transpose(2, 3) / heads[0].shape[-1] ** 0.5
    scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
    mixed = (scores.softmax(-1).detach() @ heads[2]).transpose(1, 2).flatten(2)
    x = layer_norm(x + attention.out_proj(mixed), layer.norm1)
    x = layer_norm(x + layer.linear2(held(F.gelu, layer.linear1(x))), layer.norm2)
    weight = mask.unsqueeze(2).to(x.dtype)
    return words, network.head((x * weight).sum(1) / weight.sum(1).clamp(min=1))


def recur(cell, x):
    """The last hidden state of an LSTM or GRU, its gates held."""
    size = cell.hidden_size
    w, r, b, c_bias = cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0
    h = c = x.new_zeros(x.shape[0], size)
    for t in range(x.shape[1]):
        a, p = x[:, t] @ w.T + b, h @ r.T + c_bias
        if isinstance(cell, nn.LSTM):
            i, f, g, o = (a + p).split(size, 1)
            c = torch.sigmoid(f).detach() * c + torch.sigmoid(i).detach() * held(torch.tanh, g)
            h = torch.sigmoid(o).detach() * held(torch.tanh, c)
        else:
            (ar, az, an), (pr, pz, pn) = a.split(size, 1), p.split(size, 1)
            z = torch.sigmoid(az + pz).detach()
            h = (1 - z) * held(torch.tanh, an + torch.sigmoid(ar + pr).detach() * pn) + z * h
    return h


class Listener(nn.Module):
    def __init__(self, kind, features, outputs):
        super().__init__()
        self.cell, self.head = kind(features, 16, batch_first=True), nn.Linear(16, outputs)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Explained(Case):
    def explain(self, model, *arguments):
        rule = () if "--method" in arguments or "--rule" in arguments else ("--rule", "z")
        return self.json("explain", model, *arguments, *rule, "--out", "run", "--anyway")

    def units(self):
        found = {}
        for row in read_csv("run/importance.csv"):
            found.setdefault(row["layer"], {})[int(row["unit"].rsplit("/", 1)[1])] = float(row["score"])
        return [numpy.array([units[u] for u in range(len(units))]) for units in found.values()]

    def close(self, ours, theirs, tolerance=1e-3):
        numpy.testing.assert_allclose(ours, theirs, atol=tolerance * numpy.abs(theirs).max())

    def test_residual_network_with_batch_norm(self):
        """With rectifiers and norms folded, the z rule is the derivative times the value."""
        x, y = cifar("train")
        torch.manual_seed(0)
        network = train(Residual(), [normalised(x[:3000], CIFAR_MEAN, CIFAR_STD)], y[:3000])
        few = normalised(x[:200], CIFAR_MEAN, CIFAR_STD)
        numpy.savez("d.npz", x=few.numpy(), y=y[:200])
        export(network, [few], "m.onnx")
        told = self.explain("m.onnx", "--data", "npz:d.npz,x=x,y=y", "--predictions", "all", "--float64")
        inside = []

        def keep(module, given, output):
            output.retain_grad()
            inside.append(output)
        network.relu.register_forward_hook(keep)
        double = few.double()
        network = network.double()
        double.requires_grad_()
        logits = network(double)
        logits.max(1).values.sum().backward()
        self.assertEqual(len(told["layers"]), 10)
        first = inside[0]
        self.close(self.units()[0], (first * first.grad).sum((2, 3)).mean(0).detach().numpy())
        # Of single pictures, where nothing but pictures is shown, the sum is known.
        pixel = (double * double.grad).flatten(1).sum(1).detach()
        for map in told["maps"]:
            self.assertAlmostEqual(map["start"] - map["absorbed"], pixel[map["sample"]].item(),
                                   delta=1e-3 * abs(map["start"]) + 1e-4)

    def test_channels_last(self):
        x, y = cifar("train")
        torch.manual_seed(1)
        pixels = torch.from_numpy(x[:2000].transpose(0, 2, 3, 1).astype(numpy.float32) / 255)
        network = train(ChannelsLast(), [pixels], y[:2000])
        network.softmax = nn.Softmax(1)
        numpy.savez("d.npz", x=x[:100].transpose(0, 2, 3, 1), y=y[:100])
        export(network, [pixels], "m.onnx", free=True)
        told = self.explain("m.onnx", "--data", "npz:d.npz,x=x,y=y,scale=1/255", "--predictions", "all", "--float64",
                            "--input", 7)
        leaf = pixels[:100].double().requires_grad_()
        network = network.double()
        network.softmax = nn.Identity()
        inside = network.features[:2](leaf.permute(0, 3, 1, 2))
        inside.retain_grad()
        network.head(network.features[2:](inside)).max(1).values.sum().backward()
        self.close(self.units()[0], (inside * inside.grad).sum((2, 3)).mean(0).detach().numpy())
        self.assertEqual(told["maps"][0]["kind"], "image")
        arrived = (leaf * leaf.grad)[7].sum().item()
        self.assertAlmostEqual(told["maps"][0]["start"] - told["maps"][0]["absorbed"], arrived, delta=1e-3)

    def test_text_by_word(self):
        texts = sentences()
        words = Vocabulary(texts["train"][0])
        ids, mask = padded([words.ids(text) for text in texts["train"][0]])
        torch.manual_seed(2)
        network = Reader(len(words.words))
        for table in (network.words, network.places):
            nn.init.normal_(table.weight, std=0.05)
        train(network, [ids, mask], texts["train"][1], 2, 4e-3)
        some, labels = texts["test"][0][:120], texts["test"][1][:120]
        rows = [words.ids(text) for text in some]
        export(network, padded(rows), "m.onnx", ["input_ids", "attention_mask"], ["logits"], free=True)
        save_data([({"input_ids": rows, "attention_mask": [numpy.ones_like(row) for row in rows]}, labels)], "d",
                  classes=["no", "yes"], display=some, ids=[f"review-{i}" for i in range(120)])
        told = self.explain("m.onnx", "--data", "saved:d", "--float64", "--input", "review-5", "--input", "review-77")
        network = network.double()
        for map in told["maps"]:
            row = torch.from_numpy(rows[map["sample"]])[None]
            leaf, logits = read(network, row, torch.ones_like(row))
            self.assertAlmostEqual(map["start"], logits.max().item(), places=4)
            logits.max().backward()
            self.assertEqual((map["kind"], len(map["parts"])), ("tokens", row.shape[1]))
            self.close([part["relevance"] for part in map["parts"]], (leaf * leaf.grad).sum(2)[0].detach().numpy())

    def test_recurrent(self):
        draw = numpy.random.RandomState(3)
        x = draw.randn(400, 7, 5).astype(numpy.float32)
        y = (x[:, -1, 0] + x[:, 2, 1] > 0).astype(numpy.int64)
        numpy.savez("d.npz", x=x[:100], y=y[:100])
        for kind in (nn.LSTM, nn.GRU):
            torch.manual_seed(4)
            network = train(Listener(kind, 5, 2), [torch.from_numpy(x)], y, 4, 1e-2)
            export(network, [torch.from_numpy(x)], "m.onnx", free=True)
            told = self.explain("m.onnx", "--data", "npz:d.npz,x=x,y=y", "--float64", "--input", 3, "--input", 60)
            network = network.double()
            for map in told["maps"]:
                leaf = torch.from_numpy(x[map["sample"]][None]).double().requires_grad_()
                logits = network.head(recur(network.cell, leaf))
                self.assertAlmostEqual(map["start"], logits.max().item(), places=4)
                logits.max().backward()
                parts = {part["name"]: part["relevance"] for part in map["parts"]}
                self.close([parts[f"x[{i}]"] for i in range(35)], (leaf * leaf.grad).flatten().detach().numpy())

    def test_table_by_column(self):
        rows = {split: adult_rows(split)[:6000] for split in ("train", "test")}
        for split in rows:
            write_csv(f"adult-{split}.csv", ADULT, *rows[split])
        code = Encoding(rows["train"], ADULT[:14])
        torch.manual_seed(3)
        network = perceptron(code(rows["test"]).shape[1], 32, 1)
        train(network, [code(rows["train"])], adult_labels(rows["train"]), 2, 3e-3, batch=128, binary=True)
        network = nn.Sequential(*network, nn.Sigmoid())
        export(network, [code(rows["test"])], "risk.onnx", outputs=["risk"], free=True)
        data = "csv:adult-test.csv,label=income,train=adult-train.csv,standardize=yes"
        told = self.explain("risk.onnx", "--data", data, "--input", 0, "--input", 7, "--float64")
        network = network[:-1].double()
        names = [name if words is None else f"{name}={word}"
                 for name, _, _, words in code.columns for word in (words or [""])]
        for map in told["maps"]:
            leaf = code(rows["test"])[map["sample"]][None].double().requires_grad_()
            logit = network(leaf)[0, 0]
            sign = 1 if logit.item() > 0 else -1  # no is explained by the negative
            self.assertAlmostEqual(map["start"], sign * logit.item(), places=3)
            (sign * logit).backward()
            parts = {part["name"]: part["relevance"] for part in map["parts"]}
            expected = dict(zip(names, (leaf * leaf.grad)[0].detach().tolist()))
            self.close([parts.get(name, 0) for name in names], numpy.array([expected[name] for name in names]), 1e-2)

    def test_numbers(self):
        draw = numpy.random.RandomState(5)
        x = draw.rand(300, 6).astype(numpy.float32)
        network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        with torch.no_grad():
            y = network(torch.from_numpy(x)).numpy()[:, 0] + 0.01 * draw.randn(300)
        numpy.savez("d.npz", x=x, y=y.astype(numpy.float32))
        export(network, [torch.from_numpy(x)], "m.onnx", free=True)
        told = self.explain("m.onnx", "--data", "npz:d.npz,x=x,y=y,kind=number", "--float64", "--input", 2)
        self.assertEqual(told["explained"], 300)
        leaf = torch.from_numpy(x[2:3]).double().requires_grad_()
        network.double()(leaf).sum().backward()
        parts = {part["name"]: part["relevance"] for part in told["maps"][0]["parts"]}
        self.close([parts[f"x[{i}]"] for i in range(6)], (leaf * leaf.grad)[0].detach().numpy())


if __name__ == "__main__":
    main(slow=True)
