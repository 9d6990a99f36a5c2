"""save_data: every form in which a loader may hand over its samples, plain or of a framework."""
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from tests.support import HERE, SavingCase, batches, needs_torch, tensorflow, torch


class Forms(SavingCase):
    def test_random_shapes_types_and_batch_sizes(self):
        types = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool", ">f4", ">i8"]
        for seed in range(40):
            rng = np.random.default_rng(seed)
            count = int(rng.choice([1, 2, 17, 1023, 1024, 1025, 2048, 2500]))
            shape = tuple(rng.integers(1, 5, rng.integers(0, 4)))
            x = (rng.standard_normal((count,) + shape) * 50).astype(types[seed % len(types)])
            if seed % 3 == 0:
                x = np.asfortranarray(x)
            y = rng.integers(0, 5, count)
            with tempfile.TemporaryDirectory() as self.dir:
                saved = self.save(batches(x, y, int(rng.choice([1, 3, 64, 1000, 5000]))))
                self.same(saved, list(x))
                self.assertEqual(saved.labels, list(y))
                self.assertEqual(saved.meta["inputs"][0]["type"], np.dtype(types[seed % len(types)]).name)
                self.assertEqual(self.summary.samples, count)
                self.assertEqual(saved.extra, [])

    def test_random_ragged_lists_and_padded_batches(self):
        for seed in range(30):
            rng = np.random.default_rng(seed)
            count, rest = int(rng.choice([5, 1100, 2300])), tuple(rng.integers(1, 4, rng.integers(0, 3)))
            loader, expected, at = [], [], 0
            steady = int(rng.integers(0, count))  # up to here all have one length: found out late
            while at < count:
                size = min(int(rng.integers(1, 200)), count - at)
                if seed % 2:
                    length = 4 if at < steady else int(rng.integers(0, 7))
                    x = rng.standard_normal((size, length) + rest).astype(np.float32)
                else:
                    lengths = [4 if at + i < steady else int(rng.integers(0, 7)) for i in range(size)]
                    x = [rng.standard_normal((length,) + rest).astype(np.float32) for length in lengths]
                loader.append((x, np.zeros(size, int)))
                expected += list(x)
                at += size
            with tempfile.TemporaryDirectory() as self.dir:
                saved = self.save(loader, inputs=["x"])
                self.same(saved, expected, "x")
                self.assertEqual(saved.extra, [])
                if len({len(e) for e in expected}) > 1:
                    self.assertEqual(saved.meta["inputs"][0]["shape"], [-1] + list(rest))

    def test_several_inputs_as_tuple_list_and_dict(self):
        a, b, y = self.rng.random((9, 3)), self.rng.integers(0, 9, (9, 2, 2)), np.arange(9)
        for inputs in ((a, b), [a, b], {"input0": a, "input1": b}):
            saved = self.save([(inputs, y)], overwrite=True)
            self.same(saved, list(a), "input0")
            self.same(saved, list(b), "input1")
        saved = self.save([(a, b, y)], inputs=["left", "right"], overwrite=True)
        self.same(saved, list(b), "right")
        self.assertEqual(saved.labels, list(y))
        self.assertIn("which of them are inputs", self.refused([(a, b, y)], overwrite=True))

    def test_weights_after_the_target_are_left_out_aloud(self):
        saved = self.save([(np.ones((2, 3)), [0, 1], np.ones(2))], inputs=["x"])
        self.assertEqual(saved.labels, [0, 1])
        self.assertIn("left out", str(self.summary))

    def test_dicts_of_tokens(self):
        rows = [{"input_ids": list(range(n)), "attention_mask": [1] * n, "label": n % 3} for n in (3, 5, 0, 4)]
        saved = self.save(rows)
        self.same(saved, [np.arange(n) for n in (3, 5, 0, 4)], "input_ids")
        self.assertEqual(saved.meta["inputs"][1], {"name": "attention_mask", "type": "int64", "shape": [-1]})
        self.assertEqual(saved.labels, [0, 2, 0, 1])
        batch = {"input_ids": [[1, 2], [3]], "text": ["a", "b"], "labels": np.array([1, 0])}
        self.refused([batch], "'text'", "inputs=", overwrite=True)
        saved = self.save([batch], inputs=["input_ids"], overwrite=True)
        self.same(saved, [[1, 2], [3]], "input_ids")
        batch = {"x": np.ones((2, 1)), "fine": [1, 2], "coarse": [0, 1]}
        saved = self.save([batch], inputs=["x"], target="coarse", overwrite=True)
        self.assertEqual(saved.labels, [0, 1])

    def test_single_samples(self):
        class Set:  # never raises IndexError, has no __iter__
            def __len__(self):
                return 1500

            def __getitem__(self, i):
                return np.full((2, 3), i, np.float32), i % 7

        saved = self.save(Set())
        self.assertEqual(len(saved.labels), 1500)
        self.assertEqual(saved.inputs["input"][1499][0, 0], 1499)
        self.refused([(np.ones((3, 4)), [0.0, 1.0, 0, 0, 0])], "batched=False", overwrite=True)
        saved = self.save([(np.ones((3, 4)), [0.0, 1.0, 0, 0, 0])] * 3, batched=False, overwrite=True)
        self.assertEqual(saved.labels, [1, 1, 1])
        saved = self.save([((np.ones(3), np.ones(2)), 1)] * 3, overwrite=True)
        self.assertEqual(list(saved.inputs), ["input0", "input1"])

    def test_arrays_of_arrays(self):
        rows = np.array([np.ones(2), np.ones(3)], dtype=object)
        self.assertEqual([len(s) for s in self.save([(rows, [0, 1])]).inputs["input"]], [2, 3])

    def test_no_targets(self):
        for batch in ((np.ones((2, 3)),), (np.ones((2, 3)), None), np.ones((2, 3)), {"input": np.ones((2, 3))}):
            saved = self.save([batch], overwrite=True)
            self.assertEqual((saved.meta["labels"]["kind"], len(saved.inputs["input"])), ("none", 2))
        saved = self.save([(np.ones((2, 3)), [4, 5])], labels="none", overwrite=True)
        self.assertEqual(saved.labels, [])

    def test_things_that_are_no_loader(self):
        x, y = np.ones((2, 3)), np.ones(2)
        for thing in ((x, y), x, {"input": x}, 5, "data"):
            self.refused(thing, "the argument loader")
        self.refused([], "no samples")
        self.refused(iter(()), "no samples")

    def test_shapes_and_types_that_change(self):
        self.refused([(np.ones((2, 3, 4)), [0, 0]), (np.ones((2, 3, 5)), [0, 0])], "sample 2", "[3, 5]", "first axis")
        self.refused([(np.ones((2, 3), "f4"), [0, 0]), (np.ones((2, 3)), [0, 0])], "float64", "float32")
        saved = self.save([(np.ones((2, 3)), [0, 0]), (np.ones((2, 3), "f4"), [0, 0])])  # widening loses nothing
        self.assertEqual(saved.meta["inputs"][0]["type"], "float64")
        self.refused([(np.ones((2, 3)), [0, 0, 0])], "input 'input' has 2", "target has 3", overwrite=True)

    def test_not_finite_is_counted_and_told_once(self):
        x = np.ones((2000, 2), np.float32)
        x[3, 1], x[1999, 0] = np.nan, np.inf
        saved = self.save(batches(x, np.zeros(2000, int), 7))
        self.assertEqual(self.summary.not_finite, 2)
        self.assertEqual(sum("NaN" in str(w.message) for w in self.warned), 1)
        self.same(saved, list(x))

    def test_a_loader_that_uses_its_memory_again(self):
        def loader():
            x = np.zeros((4, 2), np.float32)
            for i in range(10):
                x[:] = i
                yield x, np.full(4, i)

        saved = self.save(loader())
        self.assertEqual([int(s[0]) for s in saved.inputs["input"]], [i for i in range(10) for _ in range(4)])

    def test_standard_error_stays_silent_in_a_pipe(self):
        program = "import numpy as n, netmend as r; r.save_data([(n.ones((2, 3)), [0, 1])], %r)" % self.dir
        done = subprocess.run([sys.executable, "-c", program], cwd=HERE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


@needs_torch
class Torch(SavingCase):
    def test_data_loader(self):
        x, y = torch.randn(2100, 3, 4), torch.randint(0, 5, (2100,))
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64)
        saved = self.save(loader, ids=range(2100))
        self.same(saved, list(x.numpy()))
        self.assertEqual(saved.labels, y.tolist())
        # The mismatch is known before anything is written.
        self.refused(loader, "2099 values", "2100 samples", ids=range(2099), overwrite=True)
        dropping = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64, drop_last=True)
        self.assertEqual(len(self.save(dropping, ids=range(2048), overwrite=True).labels), 2048)

    def test_several_inputs_nested_and_flat(self):
        class Pairs(torch.utils.data.Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, i):
                return (torch.full((3,), i), torch.full((2, 2), float(i))), i

        batched = [torch.utils.data.DataLoader(Pairs(), batch_size=size) for size in (2, 4)]
        for loader in [Pairs()] + batched:
            saved = self.save(loader, overwrite=True)
            self.assertEqual([s["shape"] for s in saved.meta["inputs"]], [[3], [2, 2]])
            self.assertEqual(saved.inputs["input1"][7][0, 0], 7)
            self.assertEqual(saved.labels, list(range(10)))

    def test_batches_of_tokens_padded_to_differing_lengths(self):
        class Tokens(torch.utils.data.Dataset):
            def __len__(self):
                return 50

            def __getitem__(self, i):
                return {"input_ids": torch.arange(1, 2 + i % 7), "labels": torch.tensor(i % 2)}

        def collate(rows):
            ids = torch.nn.utils.rnn.pad_sequence([r["input_ids"] for r in rows], batch_first=True)
            labels = torch.stack([r["labels"] for r in rows])
            return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": labels}

        loader = torch.utils.data.DataLoader(Tokens(), batch_size=3, collate_fn=collate)
        saved = self.save(loader)
        expected = [row for batch in loader for row in batch["attention_mask"].numpy()]
        self.same(saved, expected, "attention_mask")
        self.assertEqual(saved.meta["inputs"][0]["shape"], [-1])
        self.assertEqual(saved.labels, [i % 2 for i in range(50)])
        unpadded = self.save(Tokens(), overwrite=True)
        self.same(unpadded, [np.arange(1, 2 + i % 7) for i in range(50)], "input_ids")

    def test_odd_types(self):
        x = torch.randn(6, 3).to(torch.bfloat16)
        saved = self.save([(x, torch.arange(6).float().requires_grad_())], labels="class")
        self.assertEqual(saved.meta["inputs"][0]["type"], "float32")
        self.same(saved, list(x.float().numpy()))
        saved = self.save([([torch.randn(i + 1, 2) for i in range(6)], torch.arange(6))], overwrite=True)
        self.assertEqual([len(s) for s in saved.inputs["input"]], [1, 2, 3, 4, 5, 6])


class TensorFlow(SavingCase):
    def setUp(self):
        self.tf, self.keras = tensorflow()
        super().setUp()

    def test_tf_data(self):
        tf = self.tf
        x, y = self.rng.random((1500, 4, 2)).astype("f4"), self.rng.integers(0, 4, 1500)
        whole = tf.data.Dataset.from_tensor_slices((x, y))
        for loader in (whole.batch(32), whole):
            saved = self.save(loader, ids=range(1500), overwrite=True)
            self.same(saved, list(x))
            self.assertEqual(saved.labels, list(y))
        named = tf.data.Dataset.from_tensor_slices(({"a": x, "b": x[:, 0]}, tf.one_hot(y, 4))).batch(100)
        saved = self.save(named, overwrite=True)
        self.same(saved, list(x[:, 0]), "b")
        self.assertEqual(saved.labels, list(y))
        words = tf.data.Dataset.from_tensor_slices((x[:3], ["b", "a", "b"]))
        for loader in (words, words.batch(2)):
            self.assertEqual(self.save(loader, classes=["a", "b"], overwrite=True).labels, [1, 0, 1])

    def test_ragged_tensor(self):
        tf = self.tf
        rows = tf.ragged.constant([[1, 2, 3], [4], []])
        saved = self.save([(rows, [0, 1, 0])])
        self.same(saved, [np.array([1, 2, 3]), np.array([4]), np.array([], int)])

    def test_keras_sequence(self):
        class Sequence(self.keras.utils.PyDataset):
            def __len__(self):
                return 13

            def __getitem__(self, i):
                return np.full((100, 3), i, "f4"), np.full(100, i)

        saved = self.save(Sequence())
        self.assertEqual(saved.labels, [i for i in range(13) for _ in range(100)])


if __name__ == "__main__":
    unittest.main()
