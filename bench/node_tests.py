#!/usr/bin/env python3
"""Writes the ONNX project's node tests as folders for `netmend lab conformance`.

usage: node_tests.py FOLDER [FILTER]      (needs the packages onnx and ml_dtypes; FILTER: only names that contain it)

The installed version of onnx decides which cases there are. Example:
    pip install onnx && bench/node_tests.py /tmp/node && netmend lab conformance /tmp/node
"""
import os, sys, warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def as_message(value, info):
    kind = info.type.WhichOneof("value")
    if isinstance(value, onnx.TensorProto):
        return value
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def write(case, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(data, exist_ok=True)
        graph = case.model.graph
        for name, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for j, (value, info) in enumerate(zip(values, infos)):
                with open(os.path.join(data, f"{name}_{j}.pb"), "wb") as file:
                    file.write(as_message(value, info).SerializeToString())


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")  # cases divide by zero on purpose
    cases = [case for case in collect_testcases(None) if len(sys.argv) < 3 or sys.argv[2] in case.name]
    for case in cases:
        write(case, os.path.join(sys.argv[1], case.name))
    print(f"{len(cases)} cases of onnx {onnx.__version__} in {sys.argv[1]}")


if __name__ == "__main__":
    main()
