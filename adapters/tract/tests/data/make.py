"""Writes the conformance cases of ONNX for scatters and gathers into this folder.

    pip install onnx==1.23.2 && python make.py

Each case has two files: `NAME.onnx` is the model, and `NAME.pb` is a GraphProto whose initializers
are the inputs and the expected outputs of the model. The cases are from the package `onnx`, which
has the Apache-2.0 licence.
"""

import pathlib
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

OPERATORS = {"ScatterND", "ScatterElements", "Scatter", "TensorScatter", "GatherND", "GatherElements"}

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    cases = collect_testcases(None)
for case in cases:
    types = [node.op_type for node in case.model.graph.node]
    if len(types) != 1 or types[0] not in OPERATORS:
        continue
    [(inputs, outputs)] = case.data_sets
    named = [(f"input_{i}", array) for i, array in enumerate(inputs)]
    named += [(f"output_{i}", array) for i, array in enumerate(outputs)]
    tensors = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in named]
    pathlib.Path(f"{case.name}.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    graph = onnx.helper.make_graph([], case.name, [], [], initializer=tensors)
    pathlib.Path(f"{case.name}.pb").write_bytes(graph.SerializeToString(deterministic=True))
    print(case.name, types, [array.dtype.name for array in inputs])
