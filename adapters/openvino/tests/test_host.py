"""What OpenVINO does with models beyond their inference: compilation, caches, files, precisions, threads."""

import os
import threading
import time

import numpy as np
import openvino as ov
import pytest
from openvino import opset1, opset3, opset4, opset6, opset8, opset12, opset15

import ndscatter.openvino
import reference
from conftest import kernels, parameters

RANDOM = np.random.default_rng(11)
DATA = RANDOM.standard_normal((20_000, 16), np.float32)
INDICES = RANDOM.integers(0, 20_000, (30_000, 1)).astype(np.int32)
UPDATES = RANDOM.standard_normal((30_000, 16), np.float32)
SUM = reference.scatter_nd(DATA, INDICES, UPDATES, "sum")


def sums(saved, is_dynamic=False):
    """Return the path of a model that computes `SUM`."""
    ps = parameters([DATA, INDICES, UPDATES], is_dynamic)
    return saved([opset15.scatter_nd_update(*ps, "sum")], ps)


def types(model):
    return [node.get_type_name() for node in model.get_ordered_ops()]


AXIS = opset1.constant(np.int32(0))
# For each operator: the node, the shapes of data, indices and updates for `rows` rows of 64 `f32`, and the
# number of rows from which the node is replaced. A scatter counts its data and one row of updates.
LIMITS = {
    "ScatterNDUpdate": (lambda ps: opset15.scatter_nd_update(*ps, "sum"), lambda rows: ([rows, 64], [1, 1], [1, 64]), 4095),
    "ScatterUpdate": (lambda ps: opset3.scatter_update(*ps, AXIS), lambda rows: ([rows, 64], [1], [1, 64]), 4095),
    "ScatterElementsUpdate": (
        lambda ps: opset12.scatter_elements_update(*ps, AXIS, "sum"), lambda rows: ([rows, 64], [1, 64], [1, 64]), 511
    ),
    "GatherND": (lambda ps: opset8.gather_nd(*ps[:2], 0), lambda rows: ([9, 64], [rows, 1]), 2048),
    "GatherElements": (lambda ps: opset6.gather_elements(*ps[:2], 0), lambda rows: ([9, 64], [rows, 64]), 512),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_both_sides_of_the_limits(extended, saved, name):
    build, shapes, first = LIMITS[name]
    for bounds, limit in ((lambda rows: rows, first), (lambda rows: ov.Dimension(0, rows), 4095 if "Scatter" in name else 4096)):
        for rows in (limit - 1, limit):
            kinds = [np.float32, np.int32, np.float32]
            shape = lambda sizes: ov.PartialShape([bounds(size) if size == rows else size for size in sizes])
            ps = [opset1.parameter(shape(sizes), kind) for sizes, kind in zip(shapes(rows), kinds)]
            model = extended.read_model(saved([build(ps)], ps))
            assert (f"ndscatter.{name}" in types(model)) == (rows == limit), rows


def test_constants_are_folded(extended, saved):
    at, row = np.array([[1]], np.int32), np.ones((1, 16), np.float32)
    parts = [opset1.constant(part) for part in (DATA, at, row)]
    p = opset1.parameter([20_000, 16], np.float32)
    path = saved([opset1.add(opset4.scatter_nd_update(*parts), p)], [p])
    before = ndscatter.openvino.runs()
    compiled = extended.compile_model(extended.read_model(path), "CPU")
    assert "Reference" not in kernels(compiled), "the scatter is a constant"
    folded = ndscatter.openvino.runs()
    assert folded["ScatterNDUpdate"] > before["ScatterNDUpdate"], "OpenVINO computes the constant with ndscatter"
    found = compiled([np.zeros_like(DATA)])[0]
    np.testing.assert_array_equal(found, reference.scatter_nd(DATA, at, row))
    assert ndscatter.openvino.runs() == folded


@pytest.mark.parametrize("integers", "i1 i2 i4 i8 u1 u2 u4 u8".split())
def test_axes_of_each_type(extended, saved, integers):
    """The inputs are constants, so that no pass of OpenVINO converts the axis before it is read."""
    axis = opset1.constant(np.array(0, integers))
    at, row = np.array([1], np.int32), np.ones((1, 16), np.float32)
    update = opset3.scatter_update(*(opset1.constant(part) for part in (DATA, at, row)), axis)
    wide = opset1.constant(np.full((1, 16), 2, np.int32))
    node = opset12.scatter_elements_update(update, wide, opset1.constant(row), axis, "sum")
    p = opset1.parameter([20_000, 16], np.float32)
    compiled = extended.compile_model(extended.read_model(saved([opset1.add(node, p)], [p])), "CPU")
    found = compiled([np.zeros_like(DATA)])[0]
    expected = DATA.copy()
    expected[1] = 1
    expected[2] += 1
    np.testing.assert_array_equal(found, expected)


def test_tuples_of_length_0(extended, saved):
    """Each update is for the whole data. OpenVINO's reference does this. Its CPU kernel drops the updates."""
    inputs = [np.zeros((3, 2), np.float32), np.zeros((2, 0), np.int32), np.ones((2, 3, 2), np.float32)]
    ps = [opset1.parameter(shape, array.dtype) for shape, array in zip(([-1, 2], [-1, 0], [-1, -1, 2]), inputs)]
    model = ov.Model([opset15.scatter_nd_update(*ps, "sum")], ps)
    outputs = [ov.Tensor(np.zeros((3, 2), np.float32))]
    assert model.evaluate(outputs, [ov.Tensor(array) for array in inputs])
    path = saved([opset15.scatter_nd_update(*ps, "sum")], ps)
    compiled = extended.compile_model(extended.read_model(path), "CPU")
    np.testing.assert_array_equal(compiled(inputs)[0], outputs[0].data)
    assert (outputs[0].data == 2).all()


def test_shapes_are_computed_by_openvino(plain, extended, saved):
    """A scatter into the shape of a tensor stays, so that the shapes of the model are known."""
    x = opset1.parameter([-1, 4, 2], np.float32)
    shape = opset3.shape_of(x, "i64")
    at, size = opset1.constant(np.array([[0]])), opset1.constant(np.array([6]))
    path = saved([opset1.reshape(x, opset4.scatter_nd_update(shape, at, size), False)], [x])
    for core in (plain, extended):
        model = core.read_model(path)
        assert "ScatterNDUpdate" in types(model)
        assert str(model.output(0).partial_shape) == "[6,4,2]"
        model.reshape([6, 4, 2])
        compiled = core.compile_model(model, "CPU")
        assert compiled([np.zeros((6, 4, 2), np.float32)])[0].shape == (6, 4, 2)


def test_values_of_a_replaced_node_are_known(plain, extended, saved):
    """OpenVINO infers the shape of a reshape from the values that a replaced node computes."""
    x = opset1.parameter([-1, 4, 2], np.float32)
    shape = opset1.unsqueeze(opset3.shape_of(x, "i64"), opset1.constant(np.array(0)))
    wide = opset1.tile(shape, opset1.constant(np.array([60_000, 1])))
    at, sizes = opset1.constant(np.array([[0, 0]])), opset1.constant(np.array([6]))
    scattered = opset4.scatter_nd_update(wide, at, sizes)
    first = opset1.gather(scattered, opset1.constant(np.array(0)), opset1.constant(np.array(0)))
    path = saved([opset1.reshape(x, first, False)], [x])
    before = ndscatter.openvino.runs()
    models = [core.read_model(path) for core in (plain, extended)]
    assert ndscatter.openvino.runs()["ScatterNDUpdate"] > before["ScatterNDUpdate"]
    assert "ndscatter.ScatterNDUpdate" in types(models[1])
    assert [str(model.output(0).partial_shape) for model in models] == ["[6,4,2]"] * 2


def test_elements_without_a_reduction_stay_replaced(extended, saved):
    """A pass of OpenVINO replaces ScatterElementsUpdate-12 without a reduction by version 3."""
    index = np.argsort(RANDOM.random((20_000, 16)), 1)[:, :3].astype(np.int32)
    updates = RANDOM.standard_normal(index.shape, np.float32)
    ps = parameters([DATA, index, updates], False)
    node = opset12.scatter_elements_update(*ps, opset1.constant(np.int32(1)), "none", True)
    compiled = extended.compile_model(extended.read_model(saved([node], ps)), "CPU")
    assert "Reference" in kernels(compiled)
    expected = reference.scatter_elements(DATA, index, updates, 1)
    np.testing.assert_array_equal(compiled([DATA, index, updates])[0], expected)


def test_runs_and_profiles(plain, extended, saved):
    """`runs` counts the runs of the kernels. A profile names a node of an extension "Reference"."""
    for core, ran, kind in ((plain, 0, "ScatterNDUpdate"), (extended, 2, "Reference")):
        compiled = core.compile_model(core.read_model(sums(saved)), "CPU", {"PERF_COUNT": True})
        before = ndscatter.openvino.runs()
        request = compiled.create_infer_request()
        for _ in range(2):
            np.testing.assert_array_equal(request.infer([DATA, INDICES, UPDATES])[0], SUM)
        profile = [info for info in request.get_profiling_info() if info.node_name.startswith("ScatterNDUpdate")]
        assert [info.node_type for info in profile] == [kind]
        assert ndscatter.openvino.runs() == before | {"ScatterNDUpdate": before["ScatterNDUpdate"] + ran}


def test_a_property_that_does_not_exist(extended, saved):
    with pytest.raises(RuntimeError, match="Unsupported property ndscatter.threads"):
        extended.compile_model(extended.read_model(sums(saved)), "CPU", {"ndscatter.threads": 2})


def test_saved_models(plain, extended, saved, tmp_path):
    path = tmp_path / "own.xml"
    ov.serialize(extended.read_model(sums(saved)), path)
    compiled = extended.compile_model(extended.read_model(path), "CPU")
    np.testing.assert_array_equal(compiled([DATA, INDICES, UPDATES])[0], SUM)
    assert "Reference" in kernels(compiled)
    with pytest.raises(RuntimeError, match="ndscatter.ScatterNDUpdate"):
        plain.read_model(path)


def test_cached_models(saved, tmp_path):
    path = sums(saved)
    for _ in range(2):
        core = ov.Core()
        ndscatter.openvino.enable(core)
        core.set_property({"CACHE_DIR": str(tmp_path / "cache")})
        compiled = core.compile_model(path, "CPU")
        assert "Reference" in kernels(compiled)
        np.testing.assert_array_equal(compiled([DATA, INDICES, UPDATES])[0], SUM)
    assert list((tmp_path / "cache").glob("*.blob"))


@pytest.mark.parametrize("hint", ["f32", "f16", "bf16"])
def test_precisions(plain, extended, saved, hint):
    """The scatter is between two products of matrices, so that it runs in the type of the hint."""
    ps = parameters([DATA, INDICES, UPDATES], False)
    eye = opset1.constant(np.eye(16, dtype=np.float32))
    product = opset1.matmul(ps[0], eye, False, False)
    scattered = opset15.scatter_nd_update(product, ps[1], ps[2], "max")
    path = saved([opset1.matmul(scattered, eye, False, False)], ps)
    results = []
    for core in (plain, extended):
        compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": hint})
        results.append(compiled([DATA, INDICES, UPDATES])[0])
    np.testing.assert_array_equal(*results)


def test_shapes_that_change(extended, saved):
    compiled = extended.compile_model(extended.read_model(sums(saved, True)), "CPU")
    for rows, count in ((5, 3), (20_000, 30_000), (1, 0), (7, 7)):
        data, updates = DATA[:rows].copy(), UPDATES[:count].copy()
        indices = INDICES[:count] % rows
        expected = reference.scatter_nd(data, indices, updates, "sum")
        np.testing.assert_array_equal(compiled([data, indices, updates])[0], expected)


def test_one_tensor_as_input_and_output(extended, saved):
    """The data and the output are one tensor, so that nothing is copied."""
    compiled = extended.compile_model(extended.read_model(sums(saved)), "CPU")
    request = compiled.create_infer_request()
    cache = ov.Tensor(DATA.copy())
    for number, tensor in enumerate((cache, ov.Tensor(INDICES), ov.Tensor(UPDATES))):
        request.set_input_tensor(number, tensor)
    request.set_output_tensor(0, cache)
    request.infer()
    np.testing.assert_array_equal(cache.data, SUM)
    request.infer()
    np.testing.assert_array_equal(cache.data, reference.scatter_nd(SUM, INDICES, UPDATES, "sum"))


def test_states(extended, saved):
    """A cache in a state: each inference adds the updates once more."""
    zeros = opset1.broadcast(opset1.constant(np.float32(0)), opset1.constant(np.array(DATA.shape)))
    state = opset6.read_value(zeros, "cache", np.float32, list(DATA.shape))
    ps = parameters([INDICES, UPDATES], False)
    scattered = opset15.scatter_nd_update(state, *ps, "sum")
    path = saved([opset1.result(scattered)], ps, [opset6.assign(scattered, "cache")])
    request = extended.compile_model(extended.read_model(path), "CPU").create_infer_request()
    expected = np.zeros_like(DATA)
    for _ in range(3):
        expected = reference.scatter_nd(expected, INDICES, UPDATES, "sum")
        np.testing.assert_array_equal(request.infer([INDICES, UPDATES])[0], expected)
    request.reset_state()
    request.infer([INDICES, UPDATES])


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_bits_do_not_depend_on_threads(extended, saved, threads):
    config = {"INFERENCE_NUM_THREADS": threads}
    compiled = extended.compile_model(extended.read_model(sums(saved)), "CPU", config)
    np.testing.assert_array_equal(compiled([DATA, INDICES, UPDATES])[0], SUM)


def test_streams_and_queues(extended, saved):
    config = {"NUM_STREAMS": 2, "INFERENCE_NUM_THREADS": 4}
    compiled = extended.compile_model(extended.read_model(sums(saved)), "CPU", config)
    queue, found = ov.AsyncInferQueue(compiled, 4), []
    queue.set_callback(lambda request, _: found.append(request.get_output_tensor(0).data.copy()))
    for _ in range(20):
        queue.start_async([DATA, INDICES, UPDATES])
    queue.wait_all()
    assert len(found) == 20
    assert all(np.array_equal(result, SUM) for result in found)


def test_soak(extended, saved):
    """Eight threads share two compiled models. Every second, one of them has an index out of bounds.

    The environment variable NDSCATTER_SOAK is the time in seconds.
    """
    path = sums(saved, True)
    config = {"NUM_STREAMS": 2}
    compiled = [extended.compile_model(extended.read_model(path), "CPU", config) for _ in range(2)]
    end = time.monotonic() + float(os.environ.get("NDSCATTER_SOAK", 3))
    failures = []

    def work(number):
        random = np.random.default_rng(number)
        request = compiled[number % 2].create_infer_request()
        while time.monotonic() < end and not failures:
            rows, count = random.integers(1, 3000, 2)
            inputs = [DATA[:rows].copy(), INDICES[:count] % rows, UPDATES[:count].copy()]
            if random.random() < 0.05:
                with pytest.raises(RuntimeError, match="out of bounds"):
                    request.infer([inputs[0], inputs[1] + rows, inputs[2]])
                continue
            expected = reference.scatter_nd(*inputs, "sum")
            if not np.array_equal(request.infer(inputs)[0], expected):
                failures.append((number, rows, count))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
