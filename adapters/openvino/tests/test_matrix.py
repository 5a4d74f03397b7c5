"""Every operator, type, reduction and kind of shape, against OpenVINO's own kernel and against a loop."""

import numpy as np
import pytest
from openvino import opset1, opset3, opset4, opset6, opset8, opset12, opset15

import reference
from conftest import kernels, parameters
from ndscatter.openvino import runs

TYPES = [np.dtype(name) for name in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ?".split()]
# Types that OpenVINO converts before the operator: floats to f32, large integers to i32, and booleans to u8.
CONVERTED = [np.dtype(name) for name in "f2 f8 i8 u4 u8 ?".split()]
KINDS = ["static", "small", "dynamic"]


def rows_of(kind, dtype):
    """Return the number of rows of 35 or 36 elements. Static shapes have more bytes than the limit below
    which a node stays with OpenVINO's kernel, or fewer."""
    return 32_000 // dtype.itemsize if kind == "static" else 6


def values(random, dtype, shape):
    if dtype == bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return (random.standard_normal(shape) * 4).astype(dtype)
    return random.integers(-50 if dtype.kind == "i" else 0, 50, shape).astype(dtype)


def nd(random, dtype, integers, rows, reduction):
    """Return data, indices and updates. Assignments have distinct tuples."""
    count = 40 if reduction != "none" else 7
    tuples = np.stack([random.integers(-rows, rows, count), random.integers(-5, 5, count)], -1)
    if reduction == "none":
        cells = random.permutation(min(rows, 20) * 5)[:count]
        tuples = np.stack([cells // 5 - rows, cells % 5], -1)
    return [values(random, dtype, (rows, 5, 7)), tuples.astype(integers), values(random, dtype, (count, 7))]


def elements(random, dtype, integers, rows, reduction):
    index = random.integers(-9, 9, (rows, 4, 3))
    if reduction == "none":
        index = np.argsort(random.random((rows, 9, 3)), 1)[:, :4] - 9
    return [values(random, dtype, (rows, 9, 4)), index.astype(integers), values(random, dtype, index.shape)]


def cases():
    for reduction in ("none", "sum", "sub", "prod", "min", "max"):
        yield (
            f"ScatterNDUpdate-15 {reduction}",
            lambda *at, red=reduction: nd(*at, red),
            lambda ps, red=reduction: opset15.scatter_nd_update(*ps, red),
            lambda *ins, red=reduction: reference.scatter_nd(*ins, red),
        )
    yield (
        "ScatterNDUpdate-4",
        lambda *at: nd(*at, "none"),
        lambda ps: opset4.scatter_nd_update(*ps),
        reference.scatter_nd,
    )
    axis = opset1.constant(np.int32(1))
    yield (
        "ScatterUpdate-3",
        lambda random, dtype, integers, rows: [
            values(random, dtype, (rows, 9, 4)),
            np.array([[0, 3], [8, 4]], integers),
            values(random, dtype, (rows, 2, 2, 4)),
        ],
        lambda ps: opset3.scatter_update(*ps, axis),
        lambda *ins: reference.scatter_update(*ins, 1),
    )
    yield (
        "ScatterElementsUpdate-3",
        lambda *at: elements(*at, "none"),
        lambda ps: opset3.scatter_elements_update(*ps, axis),
        lambda *ins: reference.scatter_elements(*ins, 1),
    )
    for reduction in ("none", "sum", "prod", "min", "max", "mean"):
        for init in (True, False):
            yield (
                f"ScatterElementsUpdate-12 {reduction} {init}",
                lambda *at, red=reduction: elements(*at, red),
                lambda ps, red=reduction, init=init: opset12.scatter_elements_update(*ps, axis, red, init),
                lambda *ins, red=reduction, init=init: reference.scatter_elements(*ins, 1, red, init),
            )


def gathers():
    for batch_dims in (0, 1):
        yield (
            f"GatherND-8 {batch_dims}",
            lambda random, dtype, integers, rows, batch=batch_dims: [
                values(random, dtype, (rows, 5, 7)),
                random.integers(-5, 5, (rows, 9 - batch, 2 - batch)).astype(integers),
            ],
            lambda ps, batch=batch_dims: opset8.gather_nd(*ps, batch),
            lambda data, at, batch=batch_dims: (
                data[np.arange(len(data))[:, None], at[..., 0]] if batch else data[at[..., 0], at[..., 1]]
            ),
        )
    for axis in (0, 1, -1):
        yield (
            f"GatherElements-6 {axis}",
            lambda random, dtype, integers, rows: [
                values(random, dtype, (rows, 5, 7)),
                random.integers(-5, 5, (rows, 5, 7)).astype(integers),
            ],
            lambda ps, axis=axis: opset6.gather_elements(*ps, axis),
            lambda data, at, axis=axis: np.take_along_axis(data, at % data.shape[axis], axis),
        )


CASES = {name: rest for name, *rest in [*cases(), *gathers()]}


def differs_from_openvino(name, dtype):
    """Whether OpenVINO's kernel has another result than its own reference: it rounds means of negative
    integers towards zero, and its reference rounds them down, as ndscatter does."""
    return " mean " in name and dtype.kind == "i"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integers", [np.int32, np.int64])
@pytest.mark.parametrize("name", CASES)
def test_results(plain, extended, saved, name, integers, kind):
    make, build, expected = CASES[name]
    for dtype in TYPES:
        if dtype == bool and " mean " in name:
            continue  # OpenVINO refuses the model.
        inputs = make(np.random.default_rng(7), dtype, integers, rows_of(kind, dtype))
        ps = parameters(inputs, kind == "dynamic")
        if "GatherND" in name and kind == "dynamic":
            # OpenVINO's plugin needs the size of a tuple.
            ps[1] = opset1.parameter([-1, -1, inputs[1].shape[-1]], integers)
        path = saved([build(ps)], ps)
        compiled = extended.compile_model(extended.read_model(path), "CPU")
        assert ("Reference" in kernels(compiled)) == (kind != "small"), dtype
        before = runs()[name.split("-")[0]]
        found = compiled(inputs)[0]
        assert runs()[name.split("-")[0]] - before == (kind != "small"), dtype
        theirs = plain.compile_model(plain.read_model(path), "CPU")(inputs)[0]
        assert found.dtype == theirs.dtype
        if not differs_from_openvino(name, dtype):
            np.testing.assert_array_equal(found, theirs, err_msg=f"{name} {dtype}")
        elif kind != "small":
            assert not np.array_equal(found, theirs), "OpenVINO's kernel is mended"
        if kind == "dynamic" and dtype not in CONVERTED:
            np.testing.assert_array_equal(found, expected(*inputs), err_msg=f"{name} {dtype}")
