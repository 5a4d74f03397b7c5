"""The package: the library, its symbols, releases of OpenVINO, and `replace`."""

import ctypes
import subprocess
import sys

import numpy as np
import openvino as ov
import pytest
from openvino import opset1, opset3, opset8, opset12, opset15

import ndscatter.openvino
import reference


def test_the_library_exports_two_functions():
    nm = subprocess.run(
        ["nm", "-D", "--defined-only", ndscatter.openvino.library_path()], capture_output=True, text=True, check=True
    )
    assert [line.split()[-1] for line in nm.stdout.splitlines()] == ["create_extensions", "ndscatter_openvino_runs"]


def test_another_release_is_an_error(monkeypatch):
    monkeypatch.setattr(ov, "get_version", lambda: "2024.0.0-1-releases/2024/0")
    with pytest.raises(ImportError, match="OpenVINO 2024.0.0 is installed"):
        ndscatter.openvino.library_path()
    with pytest.raises(ImportError, match="build it again"):
        ndscatter.openvino.enable(ov.Core())


def test_runs_of_an_unknown_operator():
    """The exported function returns 0 for a name that is not an operator, and for a null pointer."""
    count = ctypes.CDLL(ndscatter.openvino.library_path()).ndscatter_openvino_runs
    count.restype = ctypes.c_uint64
    assert [count(name) for name in (b"Add", b"", None)] == [0, 0, 0]


def built(size):
    """Return a model that a program makes: three scatters, and a scatter of a shape."""
    data = opset1.parameter([size, 8], np.float32, name="data")
    rows, updates = opset1.parameter([3, 1], np.int64), opset1.parameter([3, 8], np.float32)
    axis = opset1.constant(np.int32(0))
    nd = opset15.scatter_nd_update(data, rows, updates, "sum", name="first")
    flat = opset1.squeeze(rows, opset1.constant(np.array([1])))
    update = opset3.scatter_update(nd, flat, updates, axis)
    wide = opset1.concat([rows] * 8, 1)
    elements = opset12.scatter_elements_update(update, wide, updates, axis, "mean", False)
    shape = opset15.scatter_nd_update(
        opset3.shape_of(elements, "i64"), opset1.constant(np.array([[1]])), opset1.constant(np.array([8]))
    )
    result = opset1.reshape(elements, shape, False)
    result.output(0).get_tensor().set_names({"result"})
    return ov.Model([result], [data, rows, updates])


def test_replace():
    model = built(50_000)
    assert ndscatter.openvino.replace(model) == 3
    names = [node.get_type_name() for node in model.get_ordered_ops()]
    assert names.count("ScatterNDUpdate") == 1, "the scatter of a shape stays"
    assert [node.get_friendly_name() for node in model.get_ordered_ops() if node.get_type_name() == "ndscatter.ScatterNDUpdate"] == ["first"]
    random = np.random.default_rng(1)
    data, updates = random.standard_normal((50_000, 8), np.float32), random.standard_normal((3, 8), np.float32)
    rows = np.array([[5], [7], [9]])
    # A core without the extension runs the model.
    found = ov.Core().compile_model(model, "CPU")({"data": data, 1: rows, 2: updates})["result"]
    expected = ov.Core().compile_model(built(50_000), "CPU")({"data": data, 1: rows, 2: updates})["result"]
    np.testing.assert_array_equal(found, expected)
    expected = reference.scatter_nd(data, rows, updates, "none")
    np.testing.assert_array_equal(found, expected)
    assert ndscatter.openvino.replace(model) == 0


def test_replace_in_bodies():
    """The body of an If has a scatter. Its information at run time is kept."""
    bodies = [built(50_000), built(50_000)]
    for body in bodies:
        scatter = next(node for node in body.get_ops() if node.get_friendly_name() == "first")
        scatter.get_rt_info()["mark"] = "kept"
    inputs = [opset1.parameter(p.get_partial_shape(), p.get_element_type()) for p in bodies[0].inputs]
    condition = opset1.parameter([], np.bool_)
    branch = opset8.if_op(condition)
    branch.set_then_body(bodies[0])
    branch.set_else_body(bodies[1])
    for number, value in enumerate(inputs):
        branch.set_input(value.output(0), bodies[0].get_parameters()[number], bodies[1].get_parameters()[number])
    result = branch.set_output(bodies[0].get_results()[0], bodies[1].get_results()[0])
    model = ov.Model([result], [condition, *inputs])
    assert ndscatter.openvino.replace(model) == 6
    body = branch.get_then_body()
    scatter = next(node for node in body.get_ops() if node.get_friendly_name() == "first")
    assert scatter.get_type_name() == "ndscatter.ScatterNDUpdate"
    assert scatter.get_rt_info()["mark"].value == "kept"


def test_small_operators_stay():
    model = built(50)
    assert ndscatter.openvino.replace(model) == 0
    assert not any(node.get_type_name().startswith("ndscatter.") for node in model.get_ops())


# A model outlives the factory or the core that loaded the library.
REPLACED = """
import gc, numpy as np, openvino as ov, ndscatter.openvino as nds
from openvino import opset1, opset15
ps = [opset1.parameter(shape, type) for shape, type in (([-1, 8], np.float32), ([-1, 1], np.int32), ([-1, 8], np.float32))]
model = ov.Model([opset15.scatter_nd_update(*ps, "sum")], ps)
assert nds.replace(model) == 1
gc.collect()
compiled = ov.Core().compile_model(model, "CPU")
inputs = [np.zeros((4, 8), "f4"), np.array([[1]], "i4"), np.ones((1, 8), "f4")]
assert compiled(inputs)[0].sum() == 8
"""
EXTENDED = """
import openvino as ov, ndscatter.openvino as nds
core = ov.Core()
nds.enable(core)
"""


@pytest.mark.parametrize("program", [REPLACED, EXTENDED])
def test_the_library_stays_loaded(program):
    subprocess.run([sys.executable, "-c", program], check=True)
