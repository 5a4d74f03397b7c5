"""Builds ONNX models whose graph contains one scatter node.

This module contains the code for graphs. It contains no code for sessions, which run the models.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .cases import Case

IR_VERSION = 10
# The first IR version of ONNX that supports opset 24.
IR_VERSION_24 = 12

# Values of the parameter `then` of `produced`: the part of the scatter's result that the graph
# returns.
PEEKED = "peeked"  # one element
COPIED = "copied"  # all elements, as a list

# Number of elements in the output of the Concat in `after_copy`: 64 MiB of `f32`.
COPIED_ELEMENTS = 1 << 24


def direct(case: Case) -> bytes:
    """Returns a model in which the scatter's data is an input of the model, and the scatter's
    result is the output of the model. The scatter must copy the data, unless the caller binds the
    input and the output to one buffer."""
    nodes = [_scatter(case, "data", "output")]
    data = _value("data", case.data.dtype, case.data.shape)
    output = _value("output", case.data.dtype, case.data.shape)
    return _model(case, nodes, [data], [output], [])


def produced(case: Case, then: str) -> bytes:
    """Returns a model in which a Concat node writes the data of the scatter.

    The scatter may write its result over the output of the Concat (in place), because no other node
    reads the output of the Concat, and the scatter's result is not an output of the model. The
    Concat joins two inputs of the model. The Concat copies each input once, and supports every
    element type.
    """
    first, second = halves(case.data)
    inputs = [
        _value("first", case.data.dtype, first.shape),
        _value("second", case.data.dtype, second.shape),
    ]
    nodes = [
        helper.make_node("Concat", ["first", "second"], ["data"], axis=0),
        _scatter(case, "data", "result"),
    ]
    if then == PEEKED:
        rank = case.data.ndim
        constants = [_numbers("begin", [0] * rank), _numbers("end", [1] * rank)]
        nodes.append(helper.make_node("Slice", ["result", "begin", "end"], ["output"]))
        shape = (1,) * rank
    else:
        constants = [_numbers("line", [-1])]
        nodes.append(helper.make_node("Reshape", ["result", "line"], ["output"]))
        shape = (case.data.size,)
    return _model(case, nodes, inputs, [_value("output", case.data.dtype, shape)], constants)


def after_copy(case: Case) -> bytes:
    """Returns a model that runs a large Concat before the scatter. The result of the Concat has
    `COPIED_ELEMENTS` elements, to exceed the size of the caches. An Add node adds one element of
    this result, a zero, to the data of the scatter. The Concat must therefore run before the
    scatter."""
    large = [_value(name, case.data.dtype, (COPIED_ELEMENTS // 2,)) for name in ("first", "second")]
    data = _value("data", case.data.dtype, case.data.shape)
    nodes = [
        helper.make_node("Concat", ["first", "second"], ["joined"], axis=0),
        helper.make_node("Slice", ["joined", "begin", "end"], ["zero"]),
        helper.make_node("Add", ["data", "zero"], ["made"]),
        _scatter(case, "made", "result"),
        helper.make_node("Neg", ["result"], ["output"]),
    ]
    constants = [_numbers("begin", [0]), _numbers("end", [1])]
    output = _value("output", case.data.dtype, case.data.shape)
    return _model(case, nodes, [*large, data], [output], constants)


def halves(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = data.shape[0] // 2
    return data[:middle], data[middle:]


def _scatter(case: Case, data: str, output: str):
    order = [data, "indices", "updates"]
    if case.operator == "TensorScatter":
        order = [data, "updates", "indices"]
    return helper.make_node(case.operator, order, [output], name="scatter", **case.attributes)


def _value(name: str, dtype: np.dtype, shape: tuple[int, ...]):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def _numbers(name: str, numbers: list[int]):
    return helper.make_tensor(name, TensorProto.INT64, [len(numbers)], numbers)


def _model(case: Case, nodes: list, inputs: list, outputs: list, constants: list) -> bytes:
    indices = case.indices[0]
    if case.row.constant:
        constants = [*constants, numpy_helper.from_array(indices, "indices")]
    else:
        inputs = [*inputs, _value("indices", indices.dtype, indices.shape)]
    inputs = [*inputs, _value("updates", case.updates.dtype, case.updates.shape)]
    graph = helper.make_graph(nodes, "scatter", inputs, outputs, constants)
    version = IR_VERSION_24 if case.opset >= 24 else IR_VERSION
    opsets = [helper.make_opsetid("", case.opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
    return model.SerializeToString()
