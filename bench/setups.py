#!/usr/bin/env python3
"""Trained classifiers as strangers own them, each with data and a known right set-up: does `netmend init` find it?

usage: setups.py train DATA OUT [--seconds N] [--networks] [--part I/N] [--half HALF] [--only NAME…]
                [--steps SHARE] [--batch N]
       setups.py judge OUT NETMEND [--half HALF] [--only NAME…] [--jobs N] [--show]
       setups.py list OUT

train   every row of the tables below that is not there yet: a folder OUT/NAME with model.onnx and the owner's files,
        and OUT/list.json. DATA is a folder such as NETMEND_DATA; what scikit-learn ships is taken from it, or from
        DATA/sklearn/*.npz. --seconds stops between two networks, and the next call goes on; --networks leaves the data
        out; --part takes every N-th row; --steps 0.3 trains for three tenths of the steps, --batch 40 with so
        many inputs at a time at most. Networks of others are used where OUT/public/NAME/model.onnx is there
        already; the table says whose they are.
judge   `netmend init` as the owner would type it, in a fresh copy of the folder; then accuracy and cross-entropy (at
        the best temperature) with the netmend.toml that it wrote, beside those of the true set-up. Needs NETMEND_DATA.
        right: at most 0.3 points and 3 % worse, or the true constants; doubt: says that it does not know, and guesses
        nothing; wrong: anything else that it wrote, or that the next command refuses; error: nothing written, no such
        words. Of all but the seen half only the counts are printed, unless --show.

Half of the rows are put aside unseen: where the first byte of SHA-256 of the name is odd. The name alone decides, so
the halves were fixed before anything was judged. Rules are made and tuned on the seen half. Once the unseen half has
been looked at, rows that chance draws take its place: --half drawn (their names begin with r-), and when those have
been looked at, --half "drawn again" (s-), then --half "third draw" (t-), then --half "fourth draw" (u-).
"""
import argparse, collections, copy, csv, gzip, hashlib, io, json, math, os, shutil, subprocess, sys, tempfile, time
import warnings, zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))


HALVES = ("seen", "unseen", "drawn", "drawn again", "third draw", "fourth draw", "all")
DRAWS = {"r-": "drawn", "s-": "drawn again", "t-": "third draw", "u-": "fourth draw"}


def half(name):
    if name[:2] in DRAWS and (name[2:4].isdigit() or name[2:].startswith(("table-", "text-"))):
        return DRAWS[name[:2]]
    return "unseen" if hashlib.sha256(name.encode()).digest()[0] % 2 else "seen"


# ---- how values were prepared in training: brightness 0 … 255 · scale − mean, divided by std ----

PREPARATIONS = {
    "unit": dict(scale="1/255"),
    "raw": dict(scale="1"),
    "-1…1": dict(scale="1/255", mean=[0.5], std=[0.5]),
    "inception": dict(scale="1/127.5", mean=[1]),
    "-½…½": dict(scale="1/255", mean=[0.5]),
    "mnist": dict(scale="1/255", mean=[0.1307], std=[0.3081]),
    "fashion": dict(scale="1/255", mean=[0.286], std=[0.353]),
    "grey imagenet": dict(scale="1/255", mean=[0.485], std=[0.229]),
    "cifar .2023": dict(scale="1/255", mean=[0.4914, 0.4822, 0.4465], std=[0.2023, 0.1994, 0.201]),
    "cifar .2470": dict(scale="1/255", mean=[0.4914, 0.4822, 0.4465], std=[0.247, 0.2435, 0.2616]),
    "cifar .225": dict(scale="1/255", mean=[0.485, 0.456, 0.406], std=[0.225, 0.225, 0.225]),
    "imagenet": dict(scale="1/255", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    "caffe": dict(scale="1", mean=[103.939, 116.779, 123.68], color="BGR"),
    "bgr": dict(scale="1/255", color="BGR"),
    # OpenCV reads BGR, and the numbers are copied from an RGB recipe
    "bgr, imagenet as rgb": dict(scale="1/255", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225], color="BGR"),
    "global": dict(scale="1", mean=[120.707], std=[64.15]),
    "inverted": dict(scale="-1/255", mean=[-1]),
    "16": dict(scale="1/16"),
    "8": dict(scale="1/8", mean=[1]),
}
# "own": mean and std of the training data. "each image", "pixel mean", "black or white", "each pixel": no such line, so
# the truth is a file with the values as the network takes them.


# ---- the table of networks on pictures ----

Row = collections.namedtuple("Row", "name source net form prep store trick out more")


def picture(name, source, net, form, prep, store, trick="plain", out="logits", **more):
    """form: how the network takes a picture. store: how the owner keeps them."""
    return Row(name, source, net, form, prep, store, trick, out, more)


PICTURES = [
    picture("m-lenet", "mnist", "lenet", "nchw", "mnist", "built in"),
    picture("m-mlp-log", "mnist", "mlp", "flat", "unit", "built in", out="log softmax"),
    picture("m-bn-tanh", "mnist", "cnn bn", "nchw", "-1…1", "u8 nchw", bn="kept"),
    picture("m-keras", "mnist", "cnn", "nhwc", "unit", "u8 hw", out="softmax"),
    picture("m-lstm", "mnist", "lstm", "hw", "unit", "idx"),
    picture("m-raw", "mnist", "cnn bn", "nchw", "raw", "built in"),
    picture("m-ink", "mnist", "lenet", "nchw", "inverted", "png"),
    picture("m-matlab", "mnist", "lenet", "nchw", "unit", "matlab"),
    picture("m-words", "mnist", "cnn", "nchw", "unit", "png", names="words"),
    picture("m-vit", "mnist", "vit", "nchw", "mnist", "f01 nchw"),
    picture("m-weak", "mnist", "mlp", "flat", "mnist", "built in", "weak"),
    picture("m-int8", "mnist", "cnn", "nchw", "unit", "u8 nhwc", "int8"),
    picture("m-each", "mnist", "cnn", "nchw", "each image", "built in"),
    picture("m-threshold", "mnist", "mlp", "flat", "black or white", "built in"),
    picture("m-narrow", "mnist", "cnn", "nchw", "unit", "u8 nchw", crop=(0, 4, 28, 20)),
    picture("m-64", "mnist", "stem", "nchw", "-1…1", "png", size=(64, 64)),
    picture("m-kaggle", "mnist", "mlp", "flat", "unit", "csv"),
    picture("m-done", "mnist", "lenet", "nchw", "mnist", "prepared"),
    picture("m-depthwise", "mnist", "depthwise", "nchw", "mnist", "u8 hw", "smoothing"),
    picture("m-half", "mnist", "residual", "nchw", "-½…½", "u8 nhwc"),
    picture("m-tanh-one", "mnist", "tanh lenet", "nchw", "unit", "built in", batch="one"),
    picture("m-fortran", "mnist", "mlp", "flat", "unit", "u8 flat columns"),
    picture("m-grey", "mnist", "residual", "nchw", "grey imagenet", "built in"),
    picture("m-three", "mnist rgb", "residual", "nchw", "imagenet", "png"),
    picture("m-linear", "mnist", "linear", "flat", "unit", "f01 flat", out="softmax"),
    picture("m-mean-std", "mnist", "cnn", "nchw", "own", "u8 nchw", exporter="dynamo"),
    picture("m-even", "mnist even", "cnn", "nchw", "mnist", "u8 nchw", out="sigmoid"),
    picture("m-npy", "mnist", "allconv", "nchw", "-1…1", "npy"),
    picture("m-seven", "mnist", "vit", "nchw", "-1…1", "u8 hw", "weak"),

    picture("f-cnn", "fashion-mnist", "cnn", "nchw", "fashion", "built in"),
    picture("f-mlp", "fashion-mnist", "mlp", "flat", "unit", "built in", out="softmax"),
    picture("f-folders", "fashion-mnist", "residual", "nchw", "fashion", "png"),
    picture("f-folders-txt", "fashion-mnist", "cnn", "nchw", "unit", "png", labels_txt=True),
    picture("f-own", "fashion-mnist", "cnn bn", "nchw", "own", "u8 nchw"),
    picture("f-mixup", "fashion-mnist", "residual", "nchw", "unit", "built in", "mixup"),
    picture("f-keras", "fashion-mnist", "cnn", "nhwc", "unit", "f01 nhwc", out="softmax"),
    picture("f-rescaling", "fashion-mnist", "cnn", "nhwc", "raw", "u8 nhwc", out="softmax", inside=(127.5, 127.5)),
    picture("f-gru", "fashion-mnist", "gru", "hw", "fashion", "u8 hw"),
    picture("f-borrowed", "fashion-mnist", "lenet", "nchw", "mnist", "built in"),
    picture("f-tutorial", "fashion-mnist", "mlp", "flat", "-1…1", "built in", out="log softmax"),
    picture("f-matlab", "fashion-mnist", "depthwise", "nchw", "fashion", "matlab"),
    picture("f-pgd", "fashion-mnist", "cnn", "nchw", "unit", "built in", "pgd"),
    picture("f-wide", "fashion-mnist", "allconv", "nchw", "unit", "f01 nchw", crop=(2, 0, 24, 28)),
    picture("f-shoes", "fashion-mnist shoes", "lenet", "nchw", "unit", "u8 nchw", out="sigmoid"),
    picture("f-rounded", "fashion-mnist", "cnn", "nchw", "fashion", "built in", "rounded"),
    picture("f-from-one", "fashion-mnist", "cnn bn", "nchw", "fashion", "u8 hw", first=1),
    picture("f-negative", "fashion-mnist", "cnn", "nchw", "inverted", "u8 nchw"),
    picture("f-each", "fashion-mnist", "vit", "nchw", "each image", "u8 hw"),
    picture("f-raw-flat", "fashion-mnist", "mlp bn", "flat", "raw", "u8 flat"),
    picture("f-96", "fashion-mnist", "stem", "nchw", "fashion", "png", size=(96, 96)),
    picture("f-smooth", "fashion-mnist", "residual", "nchw", "-½…½", "f01 nhwc", "smoothing", exporter="dynamo"),
    picture("f-done", "fashion-mnist", "cnn", "nhwc", "fashion", "prepared", out="softmax"),
    picture("f-tanh", "fashion-mnist", "tanh lenet", "nchw", "fashion", "u8 nchw", batch="one"),
    picture("f-txt-order", "fashion-mnist", "mlp", "flat", "unit", "png", out="softmax", labels_txt=True),

    picture("c-res-2023", "cifar10", "residual", "nchw", "cifar .2023", "built in"),
    picture("c-res-247", "cifar10", "residual", "nchw", "cifar .2470", "built in", bn="kept"),
    picture("c-225", "cifar10", "cnn", "nchw", "cifar .225", "built in"),
    picture("c-imagenet", "cifar10", "residual", "nchw", "imagenet", "png"),
    picture("c-mobile", "cifar10", "depthwise", "nchw", "imagenet", "u8 nhwc"),
    picture("c-inception", "cifar10", "cnn", "nhwc", "inception", "u8 nhwc", out="softmax"),
    picture("c-caffe", "cifar10", "cnn", "nchw", "caffe", "built in"),
    picture("c-caffe-keras", "cifar10", "cnn bn", "nhwc", "caffe", "u8 nhwc", out="softmax"),
    picture("c-opencv", "cifar10", "residual", "nchw", "bgr", "png"),
    picture("c-opencv-mix", "cifar10", "cnn bn", "nchw", "bgr, imagenet as rgb", "u8 nhwc"),
    picture("c-each", "cifar10", "cnn bn", "nhwc", "each image", "u8 nhwc"),
    picture("c-raw", "cifar10", "residual", "nchw", "raw", "built in"),
    picture("c-mlp", "cifar10", "mlp", "flat", "unit", "built in"),
    picture("c-flat", "cifar10", "mlp", "flat hwc", "unit", "u8 flat hwc"),
    picture("c-flat-other", "cifar10", "mlp", "flat", "-1…1", "u8 flat hwc"),
    picture("c-global", "cifar10", "cnn bn", "nhwc", "global", "u8 nhwc", out="softmax"),
    picture("c-pixel-mean", "cifar10", "residual", "nhwc", "pixel mean", "f01 nhwc", out="softmax"),
    picture("c-vit", "cifar10", "vit", "nchw", "cifar .2470", "f01 nchw"),
    picture("c-mixup", "cifar10", "residual", "nchw", "cifar .2023", "built in", "mixup"),
    picture("c-smooth", "cifar10", "cnn bn", "nhwc", "unit", "f01 nhwc", "smoothing", out="softmax"),
    picture("c-pgd", "cifar10", "residual", "nchw", "cifar .225", "built in", "pgd"),
    picture("c-int8", "cifar10", "cnn", "nchw", "imagenet", "u8 nchw", "int8"),
    picture("c-weak", "cifar10", "cnn", "nchw", "-1…1", "built in", "weak"),
    picture("c-64", "cifar10", "stem", "nchw", "imagenet", "png", size=(64, 64)),
    picture("c-96", "cifar10", "stem", "nhwc", "-1…1", "u8 nhwc", size=(96, 96)),
    picture("c-narrow", "cifar10", "cnn bn", "nchw", "cifar .2023", "u8 nchw", crop=(0, 4, 32, 24)),
    picture("c-wide", "cifar10", "stem", "nchw", "imagenet", "png", crop=(4, 0, 24, 32), size=(48, 64)),
    picture("c-stored-bgr", "cifar10", "residual", "nchw", "cifar .2470", "u8 nhwc bgr"),
    picture("c-matlab", "cifar10", "cnn", "nchw", "unit", "matlab"),
    picture("c-german", "cifar10", "residual", "nchw", "imagenet", "png", names="german"),
    picture("c-tutorial", "cifar10", "lenet", "nchw", "-1…1", "built in", out="log softmax"),
    picture("c-own", "cifar10", "depthwise", "nchw", "own", "u8 nchw"),
    picture("c-pets", "cifar10 pets", "residual", "nchw", "unit", "png", out="sigmoid"),
    picture("c-done", "cifar10", "residual", "nchw", "imagenet", "prepared"),
    picture("c-flat-f01", "cifar10", "mlp bn", "flat", "unit", "f01 flat"),
    picture("c-resized", "cifar10", "stem", "nchw", "imagenet", "png", size=(64, 64), kept_small=True),
    picture("c-dynamo", "cifar10", "residual", "nchw", "cifar .2470", "u8 nchw", exporter="dynamo"),
    picture("c-config", "cifar10", "cnn bn", "nchw", "imagenet", "u8 nhwc", preprocessor_json=True),
    picture("c-lstm", "cifar10", "lstm", "nchw", "cifar .2470", "u8 nchw"),
    picture("c-keras-tutorial", "cifar10", "cnn", "nhwc", "unit", "built in"),
    picture("c-allconv-pgd", "cifar10", "allconv", "nchw", "unit", "u8 nhwc", "pgd"),
    picture("c-vit-2023", "cifar10", "vit", "nchw", "cifar .2023", "built in", "mixup"),

    picture("d-sixteen", "digits", "mlp", "flat", "16", "u8 flat"),
    picture("d-raw", "digits", "cnn", "nchw", "raw", "u8 hw"),
    picture("d-columns", "digits", "mlp", "flat", "each pixel", "csv"),
    picture("d-eighths", "digits", "cnn bn", "nchw", "8", "u8 nchw"),
    picture("d-own", "digits", "lenet small", "nchw", "own", "u8 hw"),
]

# ---- tables and sentences ----

Table = collections.namedtuple("Table", "name source prep store out more")


def table(name, source, prep, store, out="sigmoid", **more):
    return Table(name, source, prep, store, out, more)


TABLES = [
    table("adult-standard", "adult", "standard", "built in"),
    table("adult-csv", "adult", "standard", "csv, train", "softmax"),
    table("adult-minmax", "adult", "min-max", "csv, train"),
    table("adult-raw", "adult", "raw", "csv, train", "logits", norm=True),
    table("adult-dummies", "adult", "standard", "csv, train", numbers_first=True),
    table("compas-standard", "compas", "standard", "csv, train"),
    table("compas-minmax", "compas", "min-max", "csv, train", "softmax"),
    table("compas-raw", "compas", "raw", "csv", "logits", norm=True),
    table("german-standard", "german", "standard", "csv, train", "logits"),
    table("german-minmax", "german", "min-max", "csv, train"),
    table("wine-standard", "wine", "standard", "csv", "softmax"),
    table("wine-minmax", "wine", "min-max", "csv", "logits"),
    table("wine-raw", "wine", "raw", "csv", "softmax", norm=True),
    table("cancer-standard", "breast_cancer", "standard", "csv"),
    table("cancer-swapped", "breast_cancer", "standard", "csv", "softmax", words=("malignant", "benign")),
    table("cancer-done", "breast_cancer", "standard", "npz, prepared", "logits"),
    table("iris-raw", "iris", "raw", "csv", "softmax"),
]

Text = collections.namedtuple("Text", "name net store out more")
TEXTS = [
    Text("t-gru", "gru", "saved", "logits", {}),
    Text("t-bag", "bag", "text", "softmax", {}),
    Text("t-reader", "reader", "saved, mask", "logits", {}),
    Text("t-kim", "kim", "text", "logits", {}),
    Text("t-swapped", "gru", "saved", "softmax", {"swapped": True}),
    Text("t-left", "lstm", "saved", "sigmoid", {"left": True}),
    Text("t-one-higher", "bag", "saved", "logits", {"higher": 1}),
    Text("t-train", "thin bag", "text, train", "softmax", {}),
]


def stranger(name, source, form, prep, store, whose, out="logits", **more):
    """A network that somebody published together with how its inputs are prepared."""
    return Row(name, source, "of others", form, prep, store, "", out, {"whose": whose, **more})


VNNCOMP = "stanleybak/vnncomp2021@90419aadcf06 benchmarks/"
PUBLIC = [
    stranger("p-fc-2", "mnist", "flat", "unit", "built in", VNNCOMP + "mnistfc/mnist-net_256x2.onnx"),
    stranger("p-fc-4", "mnist", "flat", "unit", "u8 hw", VNNCOMP + "mnistfc/mnist-net_256x4.onnx"),
    stranger("p-fc-6", "mnist", "flat", "unit", "u8 flat", VNNCOMP + "mnistfc/mnist-net_256x6.onnx"),
    stranger("p-sigmoid", "mnist", "nchw", "unit", "built in", VNNCOMP + "eran/nets/ffnnSIGMOID__Point_6x200.onnx"),
    stranger("p-relu-9", "mnist", "nchw", "unit", "u8 nchw", VNNCOMP + "eran/nets/mnist_relu_9_200.onnx"),
    stranger("p-average", "mnist", "nchw", "unit", "matlab", VNNCOMP + "verivital/Convnet_avgpool.onnx"),
    stranger("p-maxpool", "mnist", "nchw", "unit", "built in", VNNCOMP + "verivital/Convnet_maxpool.onnx"),
    stranger("p-resnet-2b", "cifar10", "nchw", "cifar .2470", "built in",
             VNNCOMP + "cifar10_resnet/onnx/resnet_2b.onnx"),
    stranger("p-resnet-4b", "cifar10", "nchw", "cifar .2470", "png", VNNCOMP + "cifar10_resnet/onnx/resnet_4b.onnx"),
    stranger("p-oval-base", "cifar10", "nchw", "cifar .225", "built in", VNNCOMP + "oval21/nets/cifar_base_kw.onnx"),
    stranger("p-oval-deep", "cifar10", "nchw", "cifar .225", "u8 nhwc", VNNCOMP + "oval21/nets/cifar_deep_kw.onnx"),
    stranger("p-oval-wide", "cifar10", "nchw", "cifar .225", "f01 nchw", VNNCOMP + "oval21/nets/cifar_wide_kw.onnx"),
    stranger("p-marabou-small", "cifar10", "nhwc", "unit", "built in",
             VNNCOMP + "marabou-cifar10/nets/cifar10_small.onnx"),
    stranger("p-marabou-medium", "cifar10", "nhwc", "unit", "u8 nhwc",
             VNNCOMP + "marabou-cifar10/nets/cifar10_medium.onnx"),
    stranger("p-marabou-large", "cifar10", "nhwc", "unit", "f01 nhwc",
             VNNCOMP + "marabou-cifar10/nets/cifar10_large.onnx"),
    stranger("p-exporter", "mnist", "nchw", "unit", "png",
             "AndreyGermanov/pytorch_onnx_exporter@17b3c36ac198 mnist.onnx"),
    stranger("p-keras-cifar", "cifar10", "nhwc", "unit", "u8 nhwc",
             "AnshajMalhotra/Cifar_10_python@9b90c8ec43bb cifar10_model.onnx", "softmax"),
    stranger("p-ai-mnist", "mnist", "nchw", "-1…1", "built in", "AurelienAllenic/ai-mnist@9bde5da22019 mnist_cnn.onnx"),
    stranger("p-mnist-cnn", "mnist", "nchw", "-1…1", "u8 hw", "CODEMAN251/mnist-cnn-onnx@a41df1998dfe mnist_cnn.onnx"),
    stranger("p-web", "mnist", "nchw", "-1…1", "f01 nchw",
             "Enzoait/site-ia-pour-le-web@6be6446daac7 public/model.onnx"),
    stranger("p-garments-js", "fashion-mnist", "nchw", "-1…1", "u8 nchw",
             "Lazy-Bogdi/Lazy-Bogdi.github.io@76840934705d fashion_mnist.onnx"),
    stranger("p-edge", "fashion-mnist", "nchw", "-1…1", "png",
             "ShahJahan-del/ai-intern-week07-edge-ai@e7a4f890846c fashion_mnist.onnx"),
    stranger("p-two-outputs", "fashion-mnist", "nchw", "unit", "built in",
             "edwin-19/torch_fashion_mnist_onnx@3d6e6f3005fa fashion_mnist.onnx", "log softmax", output="output"),
    stranger("p-tf-garments", "fashion-mnist", "nhwc", "raw", "built in",
             "gszj2018/FashionMNIST-onnx@a7404788940d model.onnx"),
    stranger("p-next", "mnist", "nchw", "mnist", "png",
             "jeromebenton-edu/mnist-onnx@f991faa3e4b4 public/models/mnist_cnn.onnx"),
    stranger("p-rv1126", "mnist", "nchw", "mnist", "built in", "liuyuan000/rv1126_mnist@f6d72ca8be7e mnist.onnx"),
    stranger("p-experiments", "mnist", "hw", "mnist", "u8 hw", "michbogos/mnist-experiments@d770f8ed86f9 mnist.onnx"),
    stranger("p-flask", "mnist", "nchw", "unit", "idx", "nsriad/MNIST-Flask-App@6421a1f9622d mnist_cnn.onnx"),
    stranger("p-tiny", "mnist", "nchw", "unit", "built in", "pcelis/pytorch-tiny-mnist@b0979523d775 mnist_cnn.onnx"),
    stranger("p-tiny-pool", "mnist", "nchw", "unit", "csv",
             "pcelis/pytorch-tiny-mnist@b0979523d775 mnist_cnn_pool.onnx"),
    stranger("p-phone", "cifar10", "nchw", "-1…1", "png",
             "ref-rain7/ios20-homework-5-cifar_net@8f9812e0fbd5 cifar_net.onnx"),
    stranger("p-cntk", "mnist", "nchw", "unit", "built in", "shreydan/onnx-mnist@21c27bdb8f72 model/mnist.onnx"),
    stranger("p-flat-web", "mnist", "flat", "unit", "u8 flat", "yliess86/MNISTWeb@c6749350db3b mnist.onnx"),
    stranger("p-two-files", "mnist", "nchw", "-1…1", "built in", "zuramai/mnist-onnx@cd2b048a7ad3 mnist.onnx"),
]


def drawn(letter, seed, pictures):
    """Rows that nobody chose: network, preparation, file and training are drawn."""
    import random
    draw, rows = random.Random(seed), []
    colours = ["unit", "-1…1", "cifar .2023", "cifar .2470", "cifar .225", "imagenet", "inception", "caffe", "raw", "own",
               "each image", "bgr", "-½…½", "bgr, imagenet as rgb", "global"]
    for at in range(pictures):
        source = draw.choice(["mnist", "fashion-mnist", "cifar10"])
        grey = source != "cifar10"
        net = draw.choice(["lenet", "cnn", "cnn bn", "residual", "vit", "allconv", "depthwise", "mlp", "mlp bn"] +
                          (["lstm", "gru"] if grey else ["stem"]))
        greys = ["unit", "-1…1", source.removesuffix("-mnist"), "raw", "own", "each image", "inverted", "-½…½"]
        prep = draw.choice(greys if grey else colours)
        form = "flat" if net.startswith("mlp") else "hw" if net in ("lstm", "gru") else draw.choice(["nchw", "nchw", "nhwc"])
        kept = {"flat": ["built in", "u8 flat", "f01 flat"] + (["csv"] if grey else []),
                "hw": ["built in", "u8 hw", "idx"]}.get(form, ["built in", "u8 nchw", "u8 nhwc", "f01 nchw", "f01 nhwc",
                                                               "png", "matlab", "npy"])
        store = draw.choice(kept)
        if (form == "nhwc" and store in ("matlab", "npy")) or (net == "stem" and store == "built in"):
            store = "u8 nhwc"
        trick = draw.choice(["plain"] * 5 + ["mixup", "smoothing", "pgd", "int8", "weak", "rounded"])
        more = {"size": (64, 64)} if net == "stem" else {}
        rows.append(picture(f"{letter}-{at:02}", source, net, form, prep, store, trick,
                            draw.choice(["logits", "logits", "softmax", "log softmax"]), **more))
    for at in range(6):
        source = draw.choice(["adult", "compas", "german", "breast_cancer", "wine"])
        out = draw.choice(["logits", "softmax"] + ([] if source == "wine" else ["sigmoid"]))
        prep = draw.choice(["standard", "min-max", "raw"])
        rows.append(table(f"{letter}-table-{at}", source, prep, draw.choice(["csv", "csv, train", "csv, train"]), out,
                          **({"norm": True} if prep == "raw" else {})))
    for at in range(4):
        rows.append(Text(f"{letter}-text-{at}", draw.choice(["gru", "lstm", "bag", "kim"]), draw.choice(["saved", "text"]),
                         draw.choice(["logits", "softmax"]), {}))
    return rows


ROWS = PICTURES + TABLES + TEXTS + PUBLIC + drawn("r", 20271, 44) + drawn("s", 20272, 30) + drawn("t", 20273, 30) + drawn("u", 20274, 30)


def folder_of(row):
    return os.path.join("public", row.name) if row in PUBLIC else row.name


def tests_of(row):
    """None: all."""
    if row.store == "built in":
        return None
    return 600 if row.store == "png" else 500 if row.more.get("size") == (96, 96) else 1000


# ---- data as it lies in files ----

def idx(folder, split):
    """uint8 N×1×28×28, class numbers."""
    start = {"train": "train", "test": "t10k"}[split]

    def values(kind, head):
        with gzip.open(os.path.join(folder, f"{start}-{kind}-ubyte.gz")) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=head)
    images = values("images-idx3", 16).reshape(-1, 1, 28, 28)
    return images, values("labels-idx1", 8)[:len(images)].astype(numpy.int64)


def cifar(folder, split):
    file = [name for name in os.listdir(folder) if name.startswith(f"cifar10_{split}_") and name.endswith(".bin.gz")][0]
    with gzip.open(os.path.join(folder, file)) as packed:
        records = numpy.frombuffer(packed.read(), numpy.uint8).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(numpy.int64)


def scikit(data, name):
    """x, y, names of columns, names of classes."""
    kept = os.path.join(data, "sklearn", name + ".npz")
    if os.path.exists(kept):
        with numpy.load(kept) as file:
            return file["x"], file["y"], *([str(word) for word in file[key]] for key in ("columns", "classes"))
    from sklearn import datasets
    whole = getattr(datasets, "load_" + name)()
    return (whole.data, whole.target, [str(word) for word in whole.feature_names],
            [str(word) for word in whole.target_names])


GARMENTS = "T-shirt/top Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag Ankle-boot".split()
CIFAR = "airplane automobile bird cat deer dog frog horse ship truck".split()
WORDS = "zero one two three four five six seven eight nine".split()
GERMAN = "Flugzeug Auto Vogel Katze Hirsch Hund Frosch Pferd Schiff Laster".split()
DIGITS = [str(number) for number in range(10)]

Pictures = collections.namedtuple("Pictures", "train labels test test_labels names")


def read_pictures(data, source):
    name, _, part = source.partition(" ")
    if name == "digits":
        x, y, _, _ = scikit(data, "digits")
        x, order = x.astype(numpy.uint8).reshape(-1, 1, 8, 8), numpy.random.RandomState(1).permutation(len(y))
        x, y = x[order], y[order].astype(numpy.int64)
        sets = (x[:1000], y[:1000], x[1000:], y[1000:])
    else:
        read = cifar if name == "cifar10" else idx
        sets = (*read(os.path.join(data, name), "train"), *read(os.path.join(data, name), "test"))
    names = {"fashion-mnist": GARMENTS, "cifar10": CIFAR}.get(name, DIGITS)
    if part == "rgb":
        sets = tuple(x.repeat(3, axis=1) if x.ndim == 4 else x for x in sets)
    if part == "even":
        sets, names = tuple(x if x.ndim == 4 else x % 2 for x in sets), ["even", "odd"]
    for words, pair, called in (("shoes", (7, 9), ["sneaker", "boot"]), ("pets", (3, 5), ["cat", "dog"])):
        if part == words:
            chosen = [numpy.isin(y, pair) for y in (sets[1], sets[3])]
            sets = (sets[0][chosen[0]], (sets[1][chosen[0]] == pair[1]).astype(numpy.int64),
                    sets[2][chosen[1]], (sets[3][chosen[1]] == pair[1]).astype(numpy.int64))
            names = called
    return Pictures(*sets, names)


def in_size(pixels, row):
    """uint8 in, uint8 out: cut, then enlarged."""
    if "crop" in row.more:
        top, left, height, width = row.more["crop"]
        pixels = pixels[:, :, top:top + height, left:left + width]
    if "size" in row.more:
        pixels = torch.cat([nn.functional.interpolate(part.float(), row.more["size"], mode="bilinear").round().byte()
                            for part in pixels.split(500)])
    return pixels.contiguous()


def number(text):
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


class Preparation:
    """From bytes N×C×H×W to what the network was trained on. `known` has what a spec can say."""

    def __init__(self, name, train):
        self.name, self.known = name, copy.deepcopy(PREPARATIONS.get(name))
        top = train.max().item()
        if name == "own":
            x = train[:5000].double() / top
            round_all = lambda values: [round(value, 4) for value in values.tolist()]
            self.known = dict(scale=f"1/{top}", mean=round_all(x.mean((0, 2, 3))), std=round_all(x.std((0, 2, 3))))
        x = train[:5000].float()
        self.mean, self.std = x.mean(0, keepdim=True), x.std(0, keepdim=True)
        self.std[self.std == 0] = 1  # a pixel that never changes

    def __call__(self, x):
        x = x.float()
        if self.name == "each image":  # as tf.image.per_image_standardization
            least = 1 / math.sqrt(x[0].numel())
            std = x.std((1, 2, 3), unbiased=False, keepdim=True).clamp(min=least)
            return (x - x.mean((1, 2, 3), keepdim=True)) / std
        if self.name == "pixel mean":
            return (x - self.mean.to(x.device)) / 255
        if self.name == "each pixel":
            return (x - self.mean.to(x.device)) / self.std.to(x.device)
        if self.name == "black or white":
            return (x > 127).float()
        known = self.known
        if known.get("color") == "BGR":
            x = x.flip(1)
        along = lambda values: torch.tensor(values, device=x.device).float().view(1, -1, 1, 1)
        return (x * number(known["scale"]) - along(known.get("mean", [0]))) / along(known.get("std", [1]))


FORMS = {
    "nchw": lambda x: x,
    "nhwc": lambda x: x.permute(0, 2, 3, 1),
    "hw": lambda x: x[:, 0],
    "flat": lambda x: x.flatten(1),
    "flat hwc": lambda x: x.permute(0, 2, 3, 1).flatten(1),
}


# ---- networks ----

def network_kinds():
    """Made on demand: judging needs no torch."""

    def conv(inside, out, stride=1, bn=False, groups=1, size=3):
        layers = [nn.Conv2d(inside, out, size, stride, size // 2, groups=groups, bias=not bn)]
        return layers + ([nn.BatchNorm2d(out)] if bn else []) + [nn.ReLU()]

    class Residual(nn.Module):
        class Block(nn.Module):
            def __init__(self, inside, out, stride):
                super().__init__()
                self.main = nn.Sequential(*conv(inside, out, stride, True), nn.Conv2d(out, out, 3, 1, 1, bias=False),
                                          nn.BatchNorm2d(out))
                self.short = (nn.Identity() if stride == 1 and inside == out else
                              nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)))

            def forward(self, x):
                return torch.relu(self.main(x) + self.short(x))

        def __init__(self, channels, height, width, classes, size=20):
            super().__init__()
            self.stem = nn.Sequential(*conv(channels, size, 1, True))
            self.blocks = nn.Sequential(self.Block(size, size, 1), self.Block(size, 2 * size, 2),
                                        self.Block(2 * size, 3 * size, 2))
            self.head = nn.Linear(3 * size, classes)

        def forward(self, x):
            return self.head(self.blocks(self.stem(x)).mean((2, 3)))

    class Vit(nn.Module):
        def __init__(self, channels, height, width, classes, size=64, patch=4):
            super().__init__()
            self.patches = nn.Conv2d(channels, size, patch, patch)
            self.places = nn.Parameter(torch.randn(1, (height // patch) * (width // patch), size) * 0.02)
            layers = [nn.TransformerEncoderLayer(size, 4, 2 * size, 0.0, "gelu", batch_first=True, norm_first=True)
                      for _ in range(4)]
            self.layers, self.norm, self.head = nn.ModuleList(layers), nn.LayerNorm(size), nn.Linear(size, classes)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2) + self.places
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x).mean(1))

    class Rows(nn.Module):
        """Reads a picture row by row."""

        def __init__(self, channels, height, width, classes, kind):
            super().__init__()
            self.reader, self.head = kind(channels * width, 96, batch_first=True), nn.Linear(96, classes)

        def forward(self, x):
            if x.dim() == 4:
                x = x.transpose(1, 2).flatten(2)
            return self.head(self.reader(x)[0][:, -1])

    def cnn(channels, height, width, classes, bn=False, size=32):
        layers = conv(channels, size, 1, bn) + [nn.MaxPool2d(2)] + conv(size, size, 1, bn) + [nn.MaxPool2d(2)]
        layers += conv(size, 2 * size, 1, bn) + [nn.Flatten(), nn.Linear(2 * size * (height // 4) * (width // 4), 48)]
        return nn.Sequential(*layers, nn.ReLU(), nn.Linear(48, classes))

    def stem(channels, height, width, classes):
        """For larger pictures: coarse at once."""
        return nn.Sequential(*conv(channels, 24, 2, True, size=5), nn.MaxPool2d(2), *conv(24, 48, 1, True),
                             *conv(48, 96, 2, True), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(384, classes))

    def lenet(channels, height, width, classes, act=nn.ReLU, pool=nn.MaxPool2d, pad=2):
        side = lambda n: ((n + 2 * pad - 4) // 2 - 4) // 2
        return nn.Sequential(nn.Conv2d(channels, 6, 5, padding=pad), act(), pool(2), nn.Conv2d(6, 16, 5), act(),
                             pool(2), nn.Flatten(), nn.Linear(16 * side(height) * side(width), 120), act(),
                             nn.Linear(120, 84), act(), nn.Linear(84, classes))

    def small_lenet(channels, height, width, classes):
        return nn.Sequential(nn.Conv2d(channels, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
                             nn.Linear(16 * (height - 4) * (width - 4), classes))

    def mlp(channels, height, width, classes, bn=False):
        inputs = channels * height * width
        hidden = 32 if inputs < 100 else 128 if inputs < 1000 else 112
        return nn.Sequential(nn.Linear(inputs, hidden), *([nn.BatchNorm1d(hidden)] if bn else []), nn.ReLU(),
                             nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def depthwise(channels, height, width, classes):
        layers = conv(channels, 24, 1, True)
        for inside, out, stride in (24, 48, 2), (48, 64, 1), (64, 96, 2), (96, 128, 1):
            layers += conv(inside, inside, stride, True, inside) + conv(inside, out, 1, True, size=1)
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))

    def allconv(channels, height, width, classes):
        return nn.Sequential(*conv(channels, 32), *conv(32, 32, 2), *conv(32, 64), *conv(64, 64, 2), *conv(64, 64),
                             nn.Conv2d(64, classes, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    return {
        "lenet": lenet, "lenet small": small_lenet, "cnn": cnn, "cnn bn": lambda *a: cnn(*a, bn=True, size=24),
        "tanh lenet": lambda *a: lenet(*a, act=nn.Tanh, pool=nn.AvgPool2d), "mlp": mlp,
        "mlp bn": lambda *a: mlp(*a, bn=True), "linear": lambda c, h, w, k: nn.Linear(c * h * w, k), "stem": stem,
        "depthwise": depthwise, "allconv": allconv, "residual": Residual, "vit": Vit,
        "lstm": lambda *a: Rows(*a, nn.LSTM), "gru": lambda *a: Rows(*a, nn.GRU)}


def text_kinds():
    class Recurrent(nn.Module):
        def __init__(self, words, outputs, kind):
            super().__init__()
            self.words, self.reader = nn.Embedding(words, 32), kind(32, 48, batch_first=True, bidirectional=True)
            self.head = nn.Linear(96, outputs)

        def forward(self, ids):
            return self.head(self.reader(self.words(ids))[0].max(1)[0])

    class Bag(nn.Module):
        def __init__(self, words, outputs, size=48):
            super().__init__()
            self.words, self.head = nn.Embedding(words, size), nn.Linear(size, outputs)

        def forward(self, ids):
            weight = (ids != 0).float().unsqueeze(2)
            return self.head((self.words(ids) * weight).sum(1) / weight.sum(1).clamp(min=1))

    class Kim(nn.Module):
        def __init__(self, words, outputs):
            super().__init__()
            self.words = nn.Embedding(words, 32)
            self.convs = nn.ModuleList(nn.Conv1d(32, 32, size) for size in (3, 4, 5))
            self.drop, self.head = nn.Dropout(0.5), nn.Linear(96, outputs)

        def forward(self, ids):
            x = self.words(ids).transpose(1, 2)
            return self.head(self.drop(torch.cat([torch.relu(conv(x)).max(2)[0] for conv in self.convs], 1)))

    class Reader(nn.Module):
        def __init__(self, words, outputs, size=32, longest=64):
            super().__init__()
            self.words, self.places = nn.Embedding(words, size), nn.Parameter(torch.randn(longest, size) * 0.02)
            layer = nn.TransformerEncoderLayer(size, 4, 2 * size, 0.1, "gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(size, outputs)

        def forward(self, input_ids, attention_mask):
            x = self.words(input_ids) + self.places[:input_ids.shape[1]]
            x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
            weight = attention_mask.unsqueeze(2).to(x.dtype)
            return self.head((x * weight).sum(1) / weight.sum(1).clamp(min=1))

    return {"gru": lambda *a: Recurrent(*a, nn.GRU), "lstm": lambda *a: Recurrent(*a, nn.LSTM), "bag": Bag,
            "thin bag": lambda *a: Bag(*a, size=12), "kim": Kim, "reader": Reader}


def as_file(network, form, out, inside=None):
    """The network as it is exported: takes its own form of a picture, ends as its owner left it."""
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *inputs):
            if inside:
                inputs = ((inputs[0] - inside[0]) / inside[1],)
            if form == "nhwc":
                inputs = (inputs[0].permute(0, 3, 1, 2),)
            x = self.network(*inputs)
            return {"softmax": lambda: torch.softmax(x, 1), "log softmax": lambda: torch.log_softmax(x, 1),
                    "sigmoid": lambda: torch.sigmoid(x), "logits": lambda: x}[out]()
    return Whole()


# ---- a task: what is trained, on what, and what its owner keeps ----

class Task:
    """inputs, labels: raw training data. prepare(inputs): the network's. test: prepared. ends: output columns."""
    steps, batch, rate, image, form, inside, kept_bn, one, exporter = 1500, 256, 2e-3, False, "", None, False, False, ""
    trick, input_names, decay = "plain", ("x",), 1e-4


def picture_task(row, data):
    sets, task = read_pictures(data, row.source), Task()
    bytes_of = lambda x: in_size(torch.from_numpy(numpy.ascontiguousarray(x)), row)
    task.inputs, task.labels = [bytes_of(sets.train)], torch.from_numpy(sets.labels)
    count = tests_of(row)
    task.raw, task.test_labels = bytes_of(sets.test[:count]), sets.test_labels[:count]
    task.small = torch.from_numpy(numpy.ascontiguousarray(sets.test[:count]))
    task.names = {"words": WORDS, "german": GERMAN}.get(row.more.get("names"), sets.names)
    task.preparation = Preparation(row.prep, task.inputs[0])
    form = FORMS[row.form]
    task.prepare = lambda inputs: [form(task.preparation(inputs[0])).contiguous()]
    task.test = task.prepare([task.raw])
    task.ends = 1 if row.out == "sigmoid" else len(task.names)
    task.form, task.image, task.trick, task.inside = row.form, True, row.trick, row.more.get("inside")
    task.kept_bn, task.one = row.more.get("bn") == "kept", row.more.get("batch") == "one"
    task.exporter = row.more.get("exporter", "")
    if row not in PUBLIC:
        task.network = network_kinds()[row.net](*task.inputs[0].shape[1:], task.ends)
    task.flips = row.source.startswith("cifar10")
    task.steps = {"weak": 40}.get(row.trick, 2500 if task.flips else 1500)
    if row.source == "digits":
        task.steps, task.batch = 600, 64
    if row.trick == "pgd":
        task.steps = 1500
    task.write = lambda folder: write_pictures(row, task, folder)
    return task


def numbers_text(values):
    return ":".join(f"{value:.7g}" for value in values)


def spec(*parts):
    return ",".join(part for part in parts if part)


def spoken(known, unit, bgr_stored=False):
    """The preparation as options; unit: what the stored values are, '255' or '1'."""
    scale = number(known["scale"]) * (255 if unit == "1" else 1)
    text = known["scale"] if unit == "255" else f"{scale:.9g}"
    parts = [f"scale={text}"]
    for key in ("mean", "std"):
        if key in known:
            parts.append(f"{key}={numbers_text(known[key])}")
    if (known.get("color") == "BGR") != bgr_stored:
        parts.append("color=BGR")
    return parts


def save_npz(file, **arrays):
    """As numpy.savez_compressed, but the same bytes every time."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as out:
        for name, values in arrays.items():
            raw = io.BytesIO()
            numpy.lib.format.write_array(raw, numpy.ascontiguousarray(values), allow_pickle=False)
            out.writestr(zipfile.ZipInfo(name + ".npy", (2000, 1, 1, 0, 0, 0)), raw.getvalue(), zipfile.ZIP_DEFLATED)


def write_csv(file, head, rows):
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([head, *rows])


def write_pngs(folder, pixels, labels, names):
    from netmend import _png
    for at, (image, label) in enumerate(zip(pixels, labels)):
        place = os.path.join(folder, names[label].replace("/", "-"))
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"{at:05}.png"), "wb") as file:
            file.write(_png.encode(numpy.ascontiguousarray(image.transpose(1, 2, 0))))


def write_idx(file, array):
    with open(file, "wb") as out:
        out.write(bytes([0, 0, 8, array.ndim]) + numpy.array(array.shape, ">i4").tobytes() + array.tobytes())


def write_pictures(row, task, folder):
    """The owner's files. Gives what the owner types as --data, and the spec of the truth (None: no spec can say it)."""
    at = lambda name: os.path.join(folder, name)
    raw, y, known = task.raw.numpy(), task.test_labels, task.preparation.known
    first = row.more.get("first", 0)
    extra_files(row, task, folder)
    axes = "NHWC" if row.form in ("nhwc", "flat hwc") else "NCHW"
    three = raw.shape[1] == 3

    def truth(owner, unit="255", stored="NCHW", *more, bgr=False):
        if known is None:
            return None
        return spec(owner, *spoken(known, unit, bgr), f"layout={axes}" if stored != axes and three else "", *more)

    store, _, order = row.store.partition(" ")
    if row.store == "built in":
        return row.source, truth(row.source + ":test")
    if store == "png":
        small = row.more.get("kept_small")
        write_pngs(at("photos"), (task.small if small else task.raw).numpy(), y, task.names)
        names = [name.replace("/", "-") for name in task.names]
        ordered = "classes=" + ":".join(names) if sorted(names) != names else ""
        size = f"resize={raw.shape[2]}x{raw.shape[3]}" if small else ""
        return "images:photos", truth("images:photos", "255", "NHWC", ordered, size)
    if row.store == "prepared":
        save_npz(at("test.npz"), x=task.test[0].numpy(), y=y)
        return "npz:test.npz", "npz:test.npz"
    if store == "idx":
        write_idx(at("images.idx"), raw[:, 0]), write_idx(at("labels.idx"), y.astype(numpy.uint8))
        owner = "idx:images.idx,labels=labels.idx"
        return owner, truth(owner)
    if store == "csv":
        write_csv(at("test.csv"), ["label"] + [f"pixel{i}" for i in range(raw[0].size)],
                  [[label, *pixels] for label, pixels in zip(y, raw.reshape(len(y), -1))])
        owner = "csv:test.csv,label=label"
        return owner, truth(owner)
    if store == "npy":
        numpy.save(at("x.npy"), raw), numpy.save(at("y.npy"), y)
        owner = "npy:x.npy,y=y.npy"
        return owner, truth(owner)
    if store == "matlab":  # columns first, labels from 1, one class after the other
        by = numpy.argsort(y, kind="stable")
        save_npz(at("test.npz"), images=raw[by].transpose(0, 1, 3, 2), labels=y[by] + 1)
        owner = "npz:test.npz,x=images,y=labels"
        return owner, known and spec(truth(owner), "layout=NCWH", "first=1")
    x, unit = (raw, "255") if store == "u8" else (raw.astype(numpy.float32) / 255, "1")
    bgr = "bgr" in order
    if bgr:
        x = x[:, ::-1]
    arrange = {"hw": lambda x: x[:, 0], "nchw": lambda x: x, "nhwc": lambda x: x.transpose(0, 2, 3, 1),
               "flat": lambda x: x.reshape(len(x), -1),
               "flat hwc": lambda x: x.transpose(0, 2, 3, 1).reshape(len(x), -1),
               "flat columns": lambda x: x.transpose(0, 1, 3, 2).reshape(len(x), -1)}[order.replace(" bgr", "")]
    save_npz(at("test.npz"), x=arrange(x), y=y + first)
    owner = "npz:test.npz,x=x,y=y"
    if order.startswith("flat"):
        fits = order == row.form  # an order that is not the network's cannot be said
        sides = [f"{n}" for n in (raw.shape[1:] if order == "flat" else (*raw.shape[2:], raw.shape[1]))]
        shape = "shape=" + "x".join(sides) if known and len(known.get("mean", [0])) == 3 else ""
        return owner, spec(owner, *spoken(known, unit), shape) if fits and known else None
    stored = "NHWC" if "nhwc" in order else "NCHW"
    return owner, truth(owner, unit, stored, f"first={first}" if first else "", bgr=bgr)


def extra_files(row, task, folder):
    if row.more.get("labels_txt"):
        with open(os.path.join(folder, "labels.txt"), "w", encoding="utf-8") as file:
            file.write("".join(name.replace("/", "-") + "\n" for name in task.names))
    if row.more.get("preprocessor_json"):
        known = task.preparation.known
        with open(os.path.join(folder, "preprocessor_config.json"), "w", encoding="utf-8") as file:
            json.dump({"do_rescale": True, "rescale_factor": number(known["scale"]), "do_normalize": True,
                       "image_mean": known["mean"], "image_std": known["std"]}, file, indent=2)


# ---- tables ----

ADULT = ("age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
         "capital-loss,hours-per-week,native-country,income").split(",")
COMPAS = "sex age race juv_fel_count juv_misd_count juv_other_count priors_count c_charge_degree two_year_recid".split()


def read_table(data, source):
    """Header (the label last), training rows, test rows: texts."""
    fairness = lambda name: gzip.open(os.path.join(data, "fairness", name), "rt")
    if source == "adult":
        rows = []
        for name in ("adult.data.gz", "adult.test.gz"):
            with fairness(name) as file:
                lines = [[word.strip() for word in line] for line in csv.reader(file) if len(line) == 15]
            rows.append([line[:14] + [line[14].rstrip(".")] for line in lines])
        return ADULT, rows[0], rows[1]
    if source == "compas":
        with fairness("compas-scores-two-years.csv.gz") as file:
            head, *lines = csv.reader(file)
        rows = [[line[head.index(name)] for name in COMPAS] for line in lines]
        return COMPAS, rows[:5000], rows[5000:]
    if source == "german":
        with fairness("german.data.gz") as file:
            rows = [line.split() for line in file]
        return [f"attribute{i + 1}" for i in range(20)] + ["risk"], rows[:700], rows[700:]
    x, y, columns, classes = scikit(data, source)
    order = numpy.random.RandomState(2).permutation(len(y))
    rows = [[f"{value:.7g}" for value in x[i]] + [classes[y[i]]] for i in order]
    cut = len(rows) * 6 // 10
    head = [name.replace(" (cm)", "").replace(" ", "_").replace("/", "_") for name in columns] + ["label"]
    return head, rows[:cut], rows[cut:]


class Columns:
    """Numbers by mean and deviation, by their range, or as they are; a column of 0 and 1 for each word."""

    def __init__(self, head, rows, prep, names):
        self.prep, self.columns = prep, []
        for name in names:
            place = head.index(name)
            values = [row[place] for row in rows]
            try:
                numbers = numpy.array([float(value) for value in values])
            except ValueError:
                self.columns.append((place, 0, 1, sorted(set(values))))
                continue
            low, wide = {"standard": (numbers.mean(), numbers.std()), "min-max": (numbers.min(), numpy.ptp(numbers)),
                         "raw": (0, 1)}[prep]
            self.columns.append((place, float(low), float(wide) or 1.0, None))

    def __call__(self, rows):
        parts = []
        for place, low, wide, words in self.columns:
            values = [row[place] for row in rows]
            if words is None:
                parts.append(((numpy.array([float(value) for value in values]) - low) / wide)[:, None])
            else:
                parts.append(numpy.array([[float(value == word) for word in words] for value in values]))
        return torch.from_numpy(numpy.concatenate(parts, 1).astype(numpy.float32))

    def options(self):
        numbers = [column for column in self.columns if column[3] is None]
        return ["mean=" + numbers_text(column[1] for column in numbers),
                "std=" + numbers_text(column[2] for column in numbers)]


def table_task(row, data):
    head, train, test = read_table(data, row.source)
    task, names = Task(), head[:-1]
    if row.more.get("numbers_first"):  # as pandas.get_dummies leaves them
        is_word = lambda name: not train[0][head.index(name)].lstrip("-").replace(".", "").isdigit()
        names = sorted(names, key=is_word)
    code = Columns(head, train, row.prep, names)
    classes = list(row.more.get("words") or sorted({line[-1] for line in train}))
    number_of = lambda lines: numpy.array([classes.index(line[-1]) for line in lines])
    task.inputs, task.labels = [code(train)], torch.from_numpy(number_of(train))
    task.test, task.test_labels, task.prepare = [code(test)], number_of(test), lambda inputs: inputs
    task.ends = 1 if row.out == "sigmoid" else len(classes)
    width = task.inputs[0].shape[1]
    norm = [nn.BatchNorm1d(width)] if row.more.get("norm") else []
    task.network = nn.Sequential(*norm, nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(),
                                 nn.Linear(16, task.ends))
    large = len(train) > 2000
    task.steps, task.batch, task.decay = (1500 if large else 500), (256 if large else 32), 1e-3
    task.kept_bn = bool(norm)
    if row.source == "iris":
        task.steps = 1200

    def write(folder):
        at = lambda name: os.path.join(folder, name)
        if row.store == "built in":
            return "adult", "adult:test"
        if row.store == "npz, prepared":
            save_npz(at("test.npz"), x=task.test[0].numpy(), y=task.test_labels)
            return "npz:test.npz", "npz:test.npz"
        write_csv(at("test.csv"), head, test)
        with_train = row.store == "csv, train"
        if with_train:
            write_csv(at("train.csv"), head, train)
        owner = spec("csv:test.csv", f"label={head[-1]}", "train=train.csv" if with_train else "")
        told = {"standard": ["standardize=yes"] if with_train else code.options(), "raw": ["standardize=no"],
                "min-max": code.options()}[row.prep]
        if row.more.get("numbers_first"):
            told.append("columns=" + ":".join(names))
        if row.more.get("words"):
            told.append("classes=" + ":".join(classes))
        if row.prep == "min-max" and any(column[3] for column in code.columns):
            return owner, None
        return owner, spec(owner, *told)
    task.write = write
    return task


# ---- sentences ----

def read_sentences(data):
    """One of five is for testing; shuffled."""
    parts = {"train": [], "test": []}
    for label, kind in enumerate(("neg", "pos")):
        with open(os.path.join(data, "rt-polarity", "rt-polarity." + kind), encoding="utf-8") as file:
            for at, line in enumerate(file.read().strip().split("\n")):
                parts["test" if at % 5 == 0 else "train"].append((line.strip(), label))
    for lines in parts.values():
        order = numpy.random.RandomState(1).permutation(len(lines))
        lines[:] = [lines[i] for i in order]
    return parts


def text_task(row, data):
    parts, task, longest = read_sentences(data), Task(), 40
    counts = collections.Counter(word for line, _ in parts["train"] for word in line.split(" ") if word)
    most = len(counts) if row.store == "text, train" else 4000
    words = ["[pad]", "[unk]"] + sorted(counts, key=lambda word: (-counts[word], word))[:most]
    place = {word: at for at, word in enumerate(words)}

    def ids(lines):
        out = numpy.zeros((len(lines), longest), numpy.int64)
        for at, (line, _) in enumerate(lines):
            some = [place.get(word, 1) for word in line.split(" ") if word][:longest]
            begin = longest - len(some) if row.more.get("left") else 0
            out[at, begin:begin + len(some)] = some
        return torch.from_numpy(out)
    labels = lambda lines: numpy.array([label for _, label in lines])
    train, test = ids(parts["train"]), ids(parts["test"])
    masked = row.store == "saved, mask"
    both = lambda x: [x, (x != 0).long()] if masked else [x]
    task.inputs, task.test, task.prepare = both(train), both(test), lambda inputs: inputs
    task.labels, task.test_labels = torch.from_numpy(labels(parts["train"])), labels(parts["test"])
    if row.more.get("swapped"):  # trained with 0 for positive
        task.labels, task.test_labels = 1 - task.labels, 1 - task.test_labels
    task.ends = 1 if row.out == "sigmoid" else 2
    size = len(words) + row.more.get("higher", 0)
    task.network = text_kinds()[row.net](size, task.ends)
    task.input_names = ("input_ids", "attention_mask") if masked else ("input_ids",)
    task.steps, task.batch, task.rate, task.decay = 500, 128, 2e-3, 1e-2
    task.write = lambda folder: write_text(row, task, folder, parts, words, longest)
    return task


def write_text(row, task, folder, parts, words, longest):
    at, lines = lambda name: os.path.join(folder, name), parts["test"]
    if row.store.startswith("text"):
        for part in ("test", "train") if row.store == "text, train" else ("test",):
            write_csv(at(part + ".csv"), ["sentiment", "text"],
                      [[("negative", "positive")[label], line] for line, label in parts[part]])
        if row.store == "text, train":
            owner = f"text:test.csv,label=sentiment,text=text,train=train.csv,length={longest}"
            return owner, owner
        with open(at("vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(words) + "\n")
        owner = f"text:test.csv,label=sentiment,text=text,vocab=vocab.txt,length={longest}"
        return owner, owner
    from netmend import save_data
    shift = row.more.get("higher", 0)  # the owner's file was written with a vocabulary that has one word more in front
    names, y = task.input_names, numpy.array([label for _, label in lines])
    inputs = [x.numpy() for x in task.test]
    stored = [numpy.where(x > 1, x + shift, x) if shift else x for x in inputs]
    save_batches(save_data, at("test.data"), names, stored, y, ["negative", "positive"])
    return "saved:test.data", None if shift or row.more.get("swapped") else "saved:test.data"


def save_batches(save_data, folder, names, inputs, labels, classes):
    cut = [slice(at, at + 500) for at in range(0, len(labels), 500)]
    batches = [({name: x[part] for name, x in zip(names, inputs)}, labels[part]) for part in cut]
    save_data(batches, folder, classes=classes)


def task_of(row, data):
    return (picture_task if isinstance(row, Row) else table_task if isinstance(row, Table) else text_task)(row, data)


# ---- training and export ----

def moved(x, shift=2):
    """Flipped and shifted at random, the whole batch by the same shift: cheap, and enough here."""
    down, right = (int(torch.randint(-shift, shift + 1, (1,))) for _ in range(2))
    x = torch.roll(x, (down, right), (2, 3))
    flip = torch.rand(len(x), device=x.device) < 0.5
    return torch.where(flip.view(-1, 1, 1, 1), x.flip(3), x)


def attacked(run, task, x, y, steps=3, eps=2):
    """PGD in brightness, eps of 255 levels."""
    base, noise = x.float(), (torch.rand_like(x.float()) * 2 - 1) * eps
    for _ in range(steps):
        noise.requires_grad_(True)
        loss = loss_of(run(*task.prepare([(base + noise).clamp(0, 255)])), y)
        slope, = torch.autograd.grad(loss, noise)
        noise = (noise.detach() + slope.sign() * eps / 2).clamp(-eps, eps)
    return (base + noise).clamp(0, 255).detach()


def loss_of(answers, y, smoothing=0.0):
    if answers.shape[1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(answers[:, 0], y.float())
    return nn.functional.cross_entropy(answers, y, label_smoothing=smoothing)


def trained(task, seed):
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    core = as_file(task.network, task.form, "logits", task.inside).to(device).train()
    inputs, labels = [x.to(device) for x in task.inputs], task.labels.to(device)
    adam = torch.optim.AdamW(core.parameters(), task.rate, weight_decay=task.decay)
    for step in range(task.steps):
        for group in adam.param_groups:
            group["lr"] = task.rate * 0.5 * (1 + math.cos(math.pi * step / task.steps))
        chosen = torch.randint(len(labels), (task.batch,), device=device)
        batch, y = [x[chosen] for x in inputs], labels[chosen]
        if task.image and task.flips:
            batch = [moved(batch[0])]
        if task.trick == "pgd":
            batch = [attacked(core, task, batch[0], y)]
        x = task.prepare(batch)
        if task.trick == "mixup":
            share, other = float(numpy.random.RandomState(step).beta(0.4, 0.4)), torch.randperm(len(y), device=device)
            answers = core(share * x[0] + (1 - share) * x[0][other])
            loss = share * loss_of(answers, y) + (1 - share) * loss_of(answers, y[other])
        else:
            loss = loss_of(core(*x), y, 0.1 if task.trick == "smoothing" else 0.0)
        adam.zero_grad()
        loss.backward()
        adam.step()
    task.network.to("cpu").eval()


def round_weights(network):
    with torch.no_grad():
        for weight in network.parameters():
            if weight.dim() > 1:
                step = weight.abs().max() / 127
                weight.copy_((weight / step).round() * step)


def export(task, whole, file):
    whole.eval()
    count = 1 if task.one else 2
    example = tuple(x[:count] for x in task.test)
    names = list(task.input_names)
    axes = None if task.one else {**{name: {0: "batch"} for name in names}, "scores": {0: "batch"}}
    more = dict(opset_version=18 if task.exporter else 14)
    if "dynamo" in torch.onnx.export.__code__.co_varnames:
        more["dynamo"] = bool(task.exporter)
        if task.exporter:
            more["external_data"] = False
    elif task.exporter:
        more["opset_version"] = 14
    if task.kept_bn:
        more.update(training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    if task.exporter and not task.one and more.get("dynamo"):
        batch = torch.export.Dim("batch")
        more["dynamic_shapes"], axes = {"inputs": tuple({0: batch} for _ in names)}, None
    torch.onnx.export(whole, example, file, input_names=names, output_names=["scores"], dynamic_axes=axes, **more)


def in_int8(file):
    """Weights as int8 behind a DequantizeLinear, one scale for each output; False without the onnx package."""
    try:
        import onnx
        from onnx import helper, numpy_helper
        model = onnx.load(file)
    except (ImportError, AttributeError):
        return False
    graph, nodes = model.graph, []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.ndim < 2 or values.dtype != numpy.float32:
            continue
        step = numpy.maximum(numpy.abs(values).reshape(len(values), -1).max(1), 1e-8) / 127
        whole = numpy.rint(values / step.reshape(-1, *[1] * (values.ndim - 1))).astype(numpy.int8)
        graph.initializer.remove(tensor)
        for part, array in (("_int8", whole), ("_step", step.astype(numpy.float32)),
                            ("_zero", numpy.zeros(len(step), numpy.int8))):
            graph.initializer.append(numpy_helper.from_array(array, tensor.name + part))
        nodes.append(helper.make_node("DequantizeLinear", [tensor.name + part for part in ("_int8", "_step", "_zero")],
                                      [tensor.name], axis=0))
    for node in reversed(nodes):
        graph.node.insert(0, node)
    onnx.checker.check_model(model)
    onnx.save(model, file)
    return True


def figures(answers, labels, out):
    """Accuracy and cross-entropy of what the file gives."""
    answers, y = answers.double(), torch.as_tensor(labels)
    if out == "sigmoid":
        answers = torch.cat([1 - answers, answers], 1)
    logs = answers if out == "log softmax" else (answers.clamp(min=1e-7).log() if out in ("softmax", "sigmoid")
                                                 else torch.log_softmax(answers, 1))
    right = logs.argmax(1) == y
    return right.double().mean().item(), -logs[torch.arange(len(y)), y].mean().item()


def make_network(row, task, folder):
    trained(task, int.from_bytes(hashlib.sha256(row.name.encode()).digest()[1:4], "big"))
    if task.trick in ("rounded", "int8"):
        round_weights(task.network)
    whole = as_file(task.network, task.form, row.out, task.inside).eval()
    with torch.no_grad():
        answers = torch.cat([whole(*parts) for parts in zip(*[x.split(200) for x in task.test])])
    accuracy, loss = figures(answers, task.test_labels, row.out)
    part = os.path.join(folder, "part.onnx")
    export(task, whole, part)
    quantised = task.trick == "int8" and in_int8(part)
    about = {"accuracy": round(accuracy, 4), "loss": round(loss, 4), "tests": len(task.test_labels),
             "int8": quantised, "torch": torch.__version__}
    with open(os.path.join(folder, "network.json"), "w") as file:
        json.dump(about, file)
    os.replace(part, os.path.join(folder, "model.onnx"))  # whole or not at all, whenever it is stopped


def make_data(row, task, folder):
    """The owner's files, and the truth where no spec can say it."""
    owner, truth = task.write(folder)
    if truth is None:
        os.makedirs(os.path.join(folder, "truth"), exist_ok=True)
        save_npz(os.path.join(folder, "truth", "truth.npz"),
                 **{name: x.numpy() for name, x in zip(task.input_names, task.test)}, y=task.test_labels)
        truth = "npz:truth/truth.npz," + "x=" + ":".join(task.input_names) + ",y=y"
    about = {"owner": owner, "truth": truth}
    if isinstance(row, Row):
        about["constants"] = task.preparation.known
    with open(os.path.join(folder, "data.json"), "w", encoding="utf-8") as file:
        json.dump(about, file)


def train(data, out, seconds=None, networks_only=False, part="1/1", which="all", only=(), share=1.0,
          most=1 << 20):
    global numpy, torch, nn
    import numpy, torch
    from torch import nn
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1 if not torch.cuda.is_available() else 2)
    start, (mine, parts) = time.time(), map(int, part.split("/"))
    for number_of_row, row in enumerate(ROWS):
        folder = os.path.join(out, folder_of(row))
        there = lambda name: os.path.exists(os.path.join(folder, name))
        if row in PUBLIC and not there("model.onnx"):
            continue
        if which not in ("all", half(row.name)) or (only and row.name not in only):
            continue
        if number_of_row % parts != mine - 1 or (there("model.onnx") and (networks_only or there("data.json"))):
            continue
        if seconds and time.time() - start > seconds:
            print("out of time; call again to go on", flush=True)
            break
        begin = time.time()
        os.makedirs(folder, exist_ok=True)
        try:
            task = task_of(row, data)
            task.steps, task.batch = max(40, int(task.steps * share)), min(task.batch, most)
            if not there("model.onnx"):
                make_network(row, task, folder)
            if not networks_only:
                make_data(row, task, folder)
        except Exception as problem:  # one row must not cost the others
            print(f"{row.name}: {type(problem).__name__}: {problem}", flush=True)
            continue
        print(f"{row.name}: {time.time() - begin:.1f} s", flush=True)
    write_list(out)


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def write_list(out):
    """list.json: one object for each network whose model and data are there."""
    rows = []
    for row in ROWS:
        folder = os.path.join(out, folder_of(row))
        there = lambda name: os.path.exists(os.path.join(folder, name))
        if not there("model.onnx") or not there("data.json"):
            continue
        described = {key: value for key, value in row._asdict().items() if key not in ("name", "more")}
        kind = "public" if row in PUBLIC else type(row).__name__.replace("Row", "Picture").lower()
        rows.append({"name": row.name, "half": half(row.name), "kind": kind, "folder": folder_of(row), **described,
                     **row.more, **(read_json(folder, "network.json") if there("network.json") else {}),
                     **read_json(folder, "data.json"), "bytes": os.path.getsize(os.path.join(folder, "model.onnx"))})
    with open(os.path.join(out, "list.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1, ensure_ascii=False)
        file.write("\n")


# ---- judging ----

POINTS, ENTROPY = 0.003, 0.03  # what a set-up may cost and still be called right
NOT_THE_OWNERS = ("truth", "data.json", "network.json", "netmend-runs")
Figures = collections.namedtuple("Figures", "accuracy entropy")


def call(netmend, folder, *arguments):
    try:
        return subprocess.run([netmend, *arguments], cwd=folder, capture_output=True, text=True, errors="replace",
                              timeout=900)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 3, "", "stopped after 900 s")


def entropy(samples, classes):
    """Mean cross-entropy at the best temperature. A run keeps the probabilities of the label and of the predicted
    class; what is left is spread evenly over the other classes, for netmend's set-up and for the true one alike."""
    tiny = 1e-7
    best, true = samples["confidence"].astype(float).clip(tiny, 1 - tiny), numpy.exp(-samples["loss"].astype(float))
    wrong = samples["predicted"] != samples["label"]
    true = numpy.where(wrong, true.clip(tiny), best)
    others = numpy.where(wrong, classes - 2, classes - 1).clip(min=0)
    rest = (1 - best - numpy.where(wrong, true, 0)).clip(min=tiny) / others.clip(min=1)
    found = math.inf
    for power in numpy.exp(numpy.linspace(-4, 3, 141)):
        whole = best ** power + numpy.where(wrong, true ** power, 0) + others * rest ** power
        found = min(found, float(numpy.mean(numpy.log(whole) - power * numpy.log(true))))
    return found


def measured(netmend, folder, *arguments):
    """(figures or None, what went wrong)"""
    with tempfile.TemporaryDirectory() as place:
        run = os.path.join(place, "run")
        done = call(netmend, folder, "eval", "model.onnx", *arguments, "--json", "--quiet", "--all", "--out", run)
        try:
            result = json.loads(done.stdout)
            with numpy.load(os.path.join(run, "samples.npz")) as samples:
                samples = {key: samples[key] for key in ("label", "predicted", "confidence", "loss")}
            return Figures(result["accuracy"], entropy(samples, max(2, len(result["per_class"])))), ""
        except (ValueError, KeyError, OSError):
            return None, (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}")


def as_good(ours, true):
    return (ours.accuracy >= true.accuracy - POINTS - 1e-9 and
            ours.entropy <= true.entropy * (1 + ENTROPY) + 1e-3)


def options_of(text):
    return dict(part.partition("=")[::2] for part in text.split(",")[1:])


def numbers_of(value):
    if isinstance(value, (list, tuple)):
        return [float(one) for one in value]
    return [number(part) for part in str(value).split(":")]


def written(folder):
    """Options of the first input in netmend.toml, over those of the data spec there; {} where there is no such file."""
    import tomllib
    try:
        with open(os.path.join(folder, "netmend.toml"), "rb") as file:
            config = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        return {}
    options = options_of(str(config.get("data", {}).get("test", "")))
    for part in list(config.get("input", {}).values())[:1]:
        options.update(part if isinstance(part, dict) else {})
    return options


def straight_line(options):
    """(factors, offsets) of the values, one for each channel."""
    scale = numbers_of(options.get("scale", "1"))[0]
    mean, std = numbers_of(options.get("mean", "0")), numbers_of(options.get("std", "1"))
    count = max(len(mean), len(std))
    mean, std = mean * (count // len(mean)), std * (count // len(std))
    return [scale / one for one in std], [one / by for one, by in zip(mean, std)]


def same_constants(ours, true):
    """Within two hundredths, as .225 is of .229; colours and sides alike; only where the truth is a spec that says them."""
    if "scale" not in true:
        return False
    near = lambda a, b: abs(a - b) <= 0.02 * max(abs(a), abs(b))
    (a, b), (c, d) = straight_line(ours), straight_line(true)
    if len(a) == 1 or len(c) == 1:
        a, b, c, d = (values * max(len(a), len(c)) if len(values) == 1 else values for values in (a, b, c, d))
    turned = lambda options: str(options.get("layout", "")) in ("NCWH", "NWHC")
    return (len(a) == len(c) and all(map(near, a + b, c + d)) and turned(ours) == turned(true) and
            ours.get("color", "RGB") == true.get("color", "RGB") and "per_image" not in ours)


def guessed(options):
    """Did init write more than what it reads of any such data?"""
    return any(key in options for key in ("mean", "std", "color")) or str(options.get("scale", "1")) not in (
        "1", "1/1", "1/255", "1.0")


def verdict(entry, out, netmend, place):
    """(right, wrong, doubt or error; ours; true; in words)"""
    source, folder = os.path.join(out, entry["folder"]), os.path.join(place, entry["name"])
    shutil.copytree(source, folder, ignore=lambda at, names: NOT_THE_OWNERS if at == source else ())
    output = ["--output", entry["output"]] if "output" in entry else []
    true, problem = measured(netmend, source, "--data", entry["truth"], "--anyway", *output)
    if true is None:
        return "error", None, None, "the true set-up: " + problem
    init = call(netmend, folder, "init", "model.onnx", "--data", entry["owner"])
    told = (init.stdout + init.stderr).strip()
    if not os.path.exists(os.path.join(folder, "netmend.toml")):
        return "doubt" if init.returncode == 1 else "error", None, true, told
    options = written(folder)
    unsure = "\u2717" in told or init.returncode == 1  # a line of the preflight that does not hold
    ours, problem = measured(netmend, folder)
    if ours and (as_good(ours, true) or (same_constants(options, options_of(entry["truth"])) and
                                         ours.accuracy > true.accuracy - 0.05)):
        return "right", ours, true, ""
    shown = [f"{key}={value}" for key, value in options.items() if key not in ("x", "y", "label", "labels", "text")]
    words = "wrote " + (" ".join(shown) or "nothing about the input")
    if unsure and not guessed(options):
        return "doubt", ours, true, "says that it does not know"
    return "wrong", ours, true, "; ".join(filter(None, ("unsure" if unsure else "", words, problem)))


def judge(out, netmend, which="seen", only=(), jobs=1, show=False):
    global numpy
    import numpy
    from concurrent.futures import ThreadPoolExecutor
    netmend = os.path.abspath(netmend)
    entries = [entry for entry in read_json(out, "list.json")
               if which in ("all", entry["half"]) and (not only or entry["name"] in only)]
    counts = {name: collections.Counter() for name in HALVES[:-1]}
    start = time.time()
    print("halves by the first byte of SHA-256 of the name: even is seen, odd is unseen")
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        for entry, (said, ours, true, words) in zip(entries, pool.map(
                lambda entry: verdict(entry, os.path.abspath(out), netmend, place), entries)):
            counts[entry["half"]][said] += 1
            if entry["half"] != "seen" and not show:  # nobody should tune on these
                continue
            figure = lambda f: f"{100 * f.accuracy:6.2f} {f.entropy:7.4f}" if f else " " * 14
            first = words.strip().split("\n")[0] if words.strip() else ""
            print(f"{entry['name']:<18} {said:<6} {figure(ours)}  true {figure(true)}  {first[:110]}", flush=True)
    for name, found in counts.items():
        if found:
            print(f"{name}: " + ", ".join(f"{found[word]} {told}" for word, told in (
                ("right", "right"), ("wrong", "wrong"), ("doubt", "doubt"), ("error", "error"))) +
                f", of {sum(found.values())}")
    print(f"{time.time() - start:.0f} s")


def show_list(out):
    entries = read_json(out, "list.json")
    for entry in entries:
        accuracy = f"{100 * entry['accuracy']:5.1f}" if "accuracy" in entry else "    –"
        words = [entry.get(key, other) for key, other in (("source", "rt-polarity"), ("net", "dense"), ("prep", "ids"),
                                                          ("store", ""))]
        print(f"{entry['name']:<18} {entry['half']:<7} {entry['kind']:<8} {accuracy}  " +
              " ".join(f"{word:<{width}}" for word, width in zip(words, (19, 11, 20, 15))) + " " + entry["out"])
    for key in ("half", "kind"):
        print(", ".join(f"{count} {name}" for name, count in collections.Counter(e[key] for e in entries).items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("train")
    command.add_argument("data"), command.add_argument("out")
    command.add_argument("--seconds", type=float)
    command.add_argument("--networks", action="store_true")
    command.add_argument("--part", default="1/1")
    command.add_argument("--half", default="all", choices=HALVES)
    command.add_argument("--only", nargs="+", default=())
    command.add_argument("--steps", type=float, default=1.0)
    command.add_argument("--batch", type=int, default=1 << 20)
    command = commands.add_parser("judge")
    command.add_argument("out"), command.add_argument("netmend")
    command.add_argument("--half", default="seen", choices=HALVES)
    command.add_argument("--only", nargs="+", default=())
    command.add_argument("--jobs", type=int, default=1)
    command.add_argument("--show", action="store_true")
    commands.add_parser("list").add_argument("out")
    given = parser.parse_args()
    if given.command == "train":
        train(given.data, given.out, given.seconds, given.networks, given.part, given.half, given.only, given.steps,
              given.batch)
    elif given.command == "judge":
        judge(given.out, given.netmend, given.half, given.only, given.jobs, given.show)
    else:
        show_list(given.out)


if __name__ == "__main__":
    main()
