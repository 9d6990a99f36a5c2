"""Shards as tasks of Ray and Dask: the bits of one process."""
import unittest

import numpy as np

import netmend as nm
from netmend import cluster

from .program import InFolder
from .support import missing


class Shards(InFolder):
    def same(self, merged, direct):
        for key in ("samples", "metrics", "per_class", "accuracy", "loss", "confusion"):
            self.assertEqual(merged.document.get(key), direct.document.get(key), key)

    def data(self):
        draw = np.random.default_rng(0)
        return nm.Data((draw.random((5000, 784), np.float32), np.arange(5000) % 10), keep="kept")

    def test_parts_by_hand(self):
        data = self.data()
        direct = nm.eval("model.onnx", data, anyway=True)
        content, words = cluster._prepare("model.onnx", data, 3, {"anyway": True})
        for shards in (1, 3, 9):  # the last are more than there are chunks
            states = [cluster.shard(content, words, number + 1, shards) for number in range(shards)]
            self.same(cluster._merge("model.onnx", words, states), direct)

    def test_refused(self):
        for arguments, words in ((("model.onnx", (np.zeros((2, 784)), [0, 1])), "keep='/shared"), (("model.onnx", "glyphs:test", 0), "number of parts"),
                                 ((object(), "glyphs:test"), "nm.Model")):
            with self.assertRaisesRegex(nm.NetmendInputError, words):
                cluster._prepare(*arguments[:2], arguments[2] if len(arguments) > 2 else 2, {})
        with self.assertRaisesRegex(nm.NetmendInputError, "by the cluster itself"):
            cluster._prepare("model.onnx", "glyphs:test", 2, {"shard": "1/2"})

    def test_ray(self):
        try:
            import ray
        except ImportError:
            raise unittest.SkipTest(missing("ray"))
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        data = self.data()
        self.same(nm.cluster.ray("model.onnx", data, shards=3, anyway=True), nm.eval("model.onnx", data, anyway=True))
        with self.assertRaisesRegex(nm.NetmendInputError, "missing.data"):
            nm.cluster.ray("model.onnx", "saved:missing.data", shards=2)

    def test_dask(self):
        try:
            from dask.distributed import Client
        except ImportError:
            raise unittest.SkipTest(missing("dask"))
        with Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as client:
            data = self.data()
            self.same(nm.cluster.dask(client, "model.onnx", data, shards=3, anyway=True), nm.eval("model.onnx", data, anyway=True))
            with self.assertRaisesRegex(nm.NetmendInputError, "missing.data"):
                nm.cluster.dask(client, "model.onnx", "saved:missing.data", shards=2)
