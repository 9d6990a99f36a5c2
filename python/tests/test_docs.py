"""The Python of docs/python.md and of the first lines of README.md, run in order on a network with a fault."""
import os
import re

import numpy as np

import netmend as nm

from .program import InFolder
from .support import HERE, missing, needs_torch, torch

DOCS = os.path.join(os.path.dirname(HERE), "docs", "python.md")


def blocks():
    with open(DOCS, encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.S | re.M)


@needs_torch
class Docs(InFolder):
    def test_every_block_runs(self):
        draw = np.random.default_rng(0)
        centres, y = draw.random((10, 784)).astype(np.float32), np.arange(1500) % 10
        x = (centres[y] + draw.normal(0, 1.5, (1500, 784))).astype(np.float32)
        module = torch.nn.Sequential(torch.nn.Linear(784, 10))
        with torch.no_grad():
            module[0].weight.copy_(torch.from_numpy(centres) / 10)
            module[0].bias.copy_(torch.from_numpy(-(centres ** 2).sum(1) / 20))
            module[0].bias[3] += 4
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), batch_size=64)
        data = nm.Data((x, y), classes=["truck"] + ["class %d" % i for i in range(1, 10)])
        try:
            model = nm.Model(module, data=data)
        except nm.NetmendMissingError as error:
            self.skipTest(missing(str(error)))
        names = {"nm": nm, "module": module, "loader": data, "x": x, "y": y, "model": model, "data": data}
        before = module[0].bias.detach().clone()
        os.environ["BROWSER"] = "true"
        self.addCleanup(os.environ.pop, "BROWSER")
        self.assertGreaterEqual(len(blocks()), 3)
        for block in blocks():
            exec(compile(block, DOCS, "exec"), names)
        self.assertFalse(torch.equal(before, module[0].bias))
        names["test_model"]()
        self.assertTrue(nm.eval(module, loader).passed)
