"""Indices out of bounds: the message of the exception, and an output that is not written."""

import numpy as np
import openvino as ov
import pytest
from openvino import opset1, opset3, opset12, opset15

from conftest import parameters

AXIS = opset1.constant(np.int32(1))
CASES = {
    "nd": (
        lambda ps: opset15.scatter_nd_update(*ps, "sum"),
        [np.zeros((6, 5, 4), np.float32), np.array([[0, 1], [2, 5], [-7, 0]], np.int32), np.ones((3, 4), np.float32)],
        "index 5 of tuple 1 is out of bounds for axis 1 of size 5",
    ),
    "update": (
        lambda ps: opset3.scatter_update(*ps, AXIS),
        [np.zeros((6, 5, 4), np.float32), np.array([0, -1], np.int32), np.ones((6, 2, 4), np.float32)],
        "index -1 of tuple 1 is out of bounds for axis 1 of size 5",
    ),
    "elements": (
        lambda ps: opset12.scatter_elements_update(*ps, AXIS, "max"),
        [np.zeros((6, 5), np.float32), np.full((6, 2), 7, np.int32), np.ones((6, 2), np.float32)],
        "index 7 of tuple 0 is out of bounds for axis 1 of size 5",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_message_names_the_index(extended, saved, name):
    build, inputs, message = CASES[name]
    ps = parameters(inputs, True)
    compiled = extended.compile_model(extended.read_model(saved([build(ps)], ps)), "CPU")
    request = compiled.create_infer_request()
    output = ov.Tensor(np.full(inputs[0].shape, 9.0, np.float32))
    request.set_output_tensor(0, output)
    with pytest.raises(RuntimeError, match=message):
        request.infer(inputs)
    assert (output.data == 9).all(), "nothing was written"
    # The request works after the error.
    request.infer([inputs[0], np.zeros_like(inputs[1]), inputs[2]])
    assert (output.data != 9).all()
