"""A small transformer on rt-polarity: writes rt.onnx, and its 2,000 tests as rt-test.npz.

usage: rt_transformer.py DATA FOLDER, DATA being what NETMEND_DATA names. For lab study planted-faults."""
import collections, os, re, sys

import numpy as np, torch

LENGTH, WIDTH, HEADS = 32, 32, 2
torch.manual_seed(0); torch.set_num_threads(1)
rows = []
for label, name in enumerate(("neg", "pos")):
    with open(os.path.join(sys.argv[1], "rt-polarity", "rt-polarity." + name), encoding="latin-1") as file:
        rows += [(re.findall(r"[a-z']+", line.lower()), label) for line in file]
order = np.random.RandomState(1).permutation(len(rows))
rows = [rows[i] for i in order]
train, test = rows[:-2000], rows[-2000:]
count = collections.Counter(w for words, _ in train for w in words)
vocab = {w: i + 2 for i, (w, n) in enumerate(c for c in count.most_common(6000))}


def ids(part):
    return np.array([([vocab.get(w, 1) for w in words] + [0] * LENGTH)[:LENGTH] for words, _ in part], np.int64)


def labels(part):
    return np.array([l for _, l in part], np.int64)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(len(vocab) + 2, WIDTH)
        self.places = torch.nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = torch.nn.Linear(WIDTH, 64), torch.nn.Linear(64, WIDTH)
        self.n1, self.n2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.drop, self.hidden, self.out = torch.nn.Dropout(0.4), torch.nn.Linear(WIDTH, 32), torch.nn.Linear(32, 2)

    def forward(self, ids):
        x = self.drop(self.words(ids) + self.places)
        def split(y):
            return y.reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        a = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5, -1)
        x = self.n1(x + self.o((a @ v).transpose(1, 2).reshape(-1, LENGTH, WIDTH)))
        x = self.n2(x + self.down(torch.relu(self.up(x))))
        return self.out(torch.relu(self.hidden(self.drop(x.mean(1)))))


net = Net()
x, y, tx, ty = torch.from_numpy(ids(train)), torch.from_numpy(labels(train)), torch.from_numpy(ids(test)), labels(test)
optimiser = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.05)
for epoch in range(6):
    net.train()
    for batch in torch.randperm(len(x)).split(64):
        optimiser.zero_grad(); torch.nn.functional.cross_entropy(net(x[batch]), y[batch]).backward(); optimiser.step()
    net.eval()
    with torch.no_grad(): print(epoch, "accuracy", (net(tx).argmax(1).numpy() == ty).mean(), flush=True)
out = sys.argv[2]
torch.onnx.export(net, (tx[:4],), os.path.join(out, "rt.onnx"), input_names=["ids"], output_names=["logits"], opset_version=17,
                  dynamic_axes={"ids": {0: "batch"}, "logits": {0: "batch"}}, dynamo=False)
np.savez(os.path.join(out, "rt-test.npz"), x=ids(test), y=ty)
