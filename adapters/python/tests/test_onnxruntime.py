"""Tests `ndscatter.onnxruntime`: sessions of ONNX Runtime that run scatters on ndscatter's kernels."""

import numpy as np
import onnx
import onnxruntime as runtime
import pytest

from ndscatter.onnxruntime import enable, library_path, runs


def run(options):
    """Run a ScatterND in a session with `options`. Return the difference of `runs()`."""
    before = runs()
    model = scatter_nd_model()
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    data = np.zeros((3, 2), "f4")
    indices, updates = np.array([[1], [1]]), np.ones((2, 2), "f4")
    (result,) = session.run(None, {"data": data, "indices": indices, "updates": updates})
    assert result.tolist() == [[0, 0], [2, 2], [0, 0]]
    return {name: count - before[name] for name, count in runs().items() if count != before[name]}


def test_the_library_can_be_registered_directly():
    options = runtime.SessionOptions()
    options.register_custom_ops_library(library_path())
    assert run(options) == {"ScatterND": 1}


def test_enable():
    assert run(runtime.SessionOptions()) == {}
    options = runtime.SessionOptions()
    for _ in range(2):
        enable(options)
        assert run(options) == {"ScatterND": 1}
    options.register_custom_ops_library(library_path())
    assert run(options) == {"ScatterND": 1}


def test_enable_with_operators_and_threads():
    for operators, expected in ((["ScatterND", "Scatter"], {"ScatterND": 1}), ([], {})):
        options = runtime.SessionOptions()
        for names in (operators, set(operators), None):
            enable(options, threads=np.int64(1), operators=names)
            assert run(options) == expected
        registered = options.get_session_config_entry("ndscatter.registered")
        assert registered.endswith(f", ops: {','.join(operators)}, threads: 1")


def test_enable_with_wrong_arguments():
    options = runtime.SessionOptions()
    for threads in (0, -1):
        with pytest.raises(ValueError, match=f"threads is {threads}"):
            enable(options, threads=threads)
    for wrong in ({"threads": 1.5}, {"threads": "2"}, {"operators": "ScatterND"}, {"thread": 2}):
        with pytest.raises(TypeError):
            enable(options, **wrong)
    with pytest.raises(ValueError, match="'scatternd'; use Scatter, ScatterElements, ScatterND"):
        enable(options, operators=["scatternd"])
    assert run(options) == {}, "after an error, the options are unchanged"
    enable(options, threads=1)
    with pytest.raises(ValueError, match="'ndscatter.threads' set to '1', not '2'"):
        enable(options, threads=2)
    with pytest.raises(ValueError, match="'ndscatter.ops' set to None, not 'ScatterND'"):
        enable(options, operators=["ScatterND"])
    assert run(options) == {"ScatterND": 1}


def scatter_nd_model(element=onnx.TensorProto.FLOAT, reduction="add"):
    helper, types = onnx.helper, onnx.TensorProto
    node = helper.make_node("ScatterND", ["data", "indices", "updates"], ["out"], reduction=reduction)
    inputs = [
        helper.make_tensor_value_info("data", element, ["r", "w"]),
        helper.make_tensor_value_info("indices", types.INT64, ["n", 1]),
        helper.make_tensor_value_info("updates", element, ["n", "w"]),
    ]
    outputs = [helper.make_tensor_value_info("out", element, ["r", "w"])]
    graph = helper.make_graph([node], "scatter", inputs, outputs)
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
