"""ONNX models: ScatterND, ScatterElements, Scatter and TensorScatter."""

import numpy as np
import openvino as ov
import pytest
from onnx import TensorProto, helper

import reference
from conftest import kernels
from ndscatter.openvino import enable, runs

ROWS = 40_000
NAMES = {"none": "none", "add": "sum", "mul": "prod", "min": "min", "max": "max"}


def model(tmp_path, op, arrays, opset, **attributes):
    """Write a model of one operator. Return its path."""
    names = [chr(ord("a") + number) for number in range(len(arrays))]
    more = [""] * attributes.pop("empty_inputs", 0)
    kinds = {np.dtype("f4"): TensorProto.FLOAT, np.dtype("i8"): TensorProto.INT64}
    inputs = [
        helper.make_tensor_value_info(name, kinds[array.dtype], array.shape)
        for name, array in zip(names, arrays)
    ]
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, arrays[0].shape)
    node = helper.make_node(op, names + more, ["output"], **attributes)
    graph = helper.make_graph([node], "graph", inputs, [output])
    path = tmp_path / "model.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    path.write_bytes(made.SerializeToString())
    return path


def run(core, path, inputs):
    compiled = core.compile_model(core.read_model(path), "CPU")
    return compiled(inputs)[0], "Reference" in kernels(compiled)


def nd(reduction, random):
    count = 50
    indices = random.integers(-ROWS, ROWS, (count, 1))
    if reduction == "none":
        indices = random.permutation(ROWS)[:count, None] - ROWS
    data = random.standard_normal((ROWS, 8), np.float32)
    return [data, indices, random.standard_normal((count, 8), np.float32)]


def elements(reduction, random):
    index = random.integers(-8, 8, (ROWS, 3))
    if reduction == "none":
        index = np.argsort(random.random((ROWS, 8)), 1)[:, :3] - 8
    data = random.standard_normal((ROWS, 8), np.float32)
    return [data, index, random.standard_normal(index.shape, np.float32)]


# The opsets that have each reduction.
OPSETS = {"none": [11, 13, 16, 18], "add": [16, 18], "mul": [16, 18], "min": [18], "max": [18]}


@pytest.mark.parametrize("reduction, opset", [(name, opset) for name in OPSETS for opset in OPSETS[name]])
def test_scatters(plain, extended, tmp_path, reduction, opset):
    random = np.random.default_rng(3)
    attributes = {} if opset < 16 else {"reduction": reduction}
    for op, make, axis in (("ScatterND", nd, None), ("ScatterElements", elements, 1), ("ScatterElements", elements, -1)):
        inputs = make(reduction, random)
        more = attributes if axis is None else attributes | {"axis": axis}
        path = model(tmp_path, op, inputs, opset, **more)
        found, is_ours = run(extended, path, inputs)
        assert is_ours
        try:
            theirs, is_extension = run(plain, path, inputs)
        except RuntimeError as error:
            # Before 2026.3, OpenVINO has no reductions of ScatterND.
            assert op == "ScatterND" and "Only `none` is supported" in str(error)
        else:
            assert not is_extension
            np.testing.assert_array_equal(found, theirs)
        if axis is None:
            expected = reference.scatter_nd(*inputs, NAMES[reduction])
        else:
            expected = reference.scatter_elements(*inputs, axis, NAMES[reduction])
        np.testing.assert_array_equal(found, expected)


def test_enable_twice(plain, extended, tmp_path):
    """The second call with the same core changes nothing. The model is read as ONNX and as IR."""
    core = ov.Core()
    enable(core)
    enable(core)
    inputs = nd("none", np.random.default_rng(8))
    path = model(tmp_path, "ScatterND", inputs, 18)
    saved = tmp_path / "saved.xml"
    ov.save_model(plain.read_model(path), saved, compress_to_fp16=False)
    for path in (path, saved):
        kinds = [[node.get_type_name() for node in made.read_model(path).get_ordered_ops()] for made in (core, extended)]
        assert kinds[0] == kinds[1]
        before = runs()
        found, is_ours = run(core, path, inputs)
        assert is_ours
        assert runs() == before | {"ScatterNDUpdate": before["ScatterNDUpdate"] + 1}
        np.testing.assert_array_equal(found, run(extended, path, inputs)[0])


def test_scatter_9(plain, extended, tmp_path):
    inputs = elements("none", np.random.default_rng(4))
    path = model(tmp_path, "Scatter", inputs, 9, axis=1)
    found, is_ours = run(extended, path, inputs)
    assert is_ours
    np.testing.assert_array_equal(found, run(plain, path, inputs)[0])


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("has_positions", [True, False])
def test_tensor_scatter(extended, tmp_path, mode, has_positions):
    random = np.random.default_rng(5)
    cache = random.standard_normal((3, 2, 10, 4), np.float32)
    update = random.standard_normal((3, 2, 3, 4), np.float32)
    first = np.array([0, 7, 9 if mode == "circular" else 4]) if has_positions else np.zeros(3, int)
    inputs = [cache, update] + [first] * has_positions
    path = model(tmp_path, "TensorScatter", inputs, 24, mode=mode, empty_inputs=0 if has_positions else 1)
    before = runs()["TensorScatter"]
    found, is_ours = run(extended, path, inputs)
    assert runs()["TensorScatter"] == before + 1
    expected = cache.copy()
    for sequence, start in enumerate(first):
        for row in range(3):
            expected[sequence, :, (start + row) % 10] = update[sequence, :, row]
    assert is_ours
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op", ["GatherND", "GatherElements"])
def test_gathers(plain, extended, tmp_path, op):
    random = np.random.default_rng(6)
    shape = (ROWS, 1) if op == "GatherND" else (ROWS, 8)
    inputs = [random.standard_normal((ROWS, 8), np.float32), random.integers(-8, 8, shape)]
    path = model(tmp_path, op, inputs, 13, **({} if op == "GatherND" else {"axis": 1}))
    found, is_ours = run(extended, path, inputs)
    assert is_ours
    np.testing.assert_array_equal(found, run(plain, path, inputs)[0])


def test_tensor_scatter_beyond_the_end(extended, tmp_path):
    inputs = [np.zeros((2, 10, 4), np.float32), np.zeros((2, 3, 4), np.float32), np.array([0, 8])]
    path = model(tmp_path, "TensorScatter", inputs, 24)
    with pytest.raises(RuntimeError, match="sequence 1"):
        run(extended, path, inputs)
