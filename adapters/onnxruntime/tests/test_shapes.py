"""Tests of shapes: every kind of declared shape, the output shapes that a session reports, nodes
that need the shape of a scatter's output, ranks from 0 to 6, and tensors without elements.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import reference
from common import (
    FLOAT,
    INT64,
    UNOPTIMISED,
    any_indices,
    assert_same,
    counting,
    model,
    needs_cache,
    node,
    one_node,
    run,
    session,
    value,
    values,
)

F32, I64 = TensorProto.FLOAT, TensorProto.INT64

DECLARED = {
    "static": ([5, 3], [5, 3]),
    "symbolic": (["n", "m"], ["n", "m"]),
    "one_symbol_twice": (["n", "n"], ["n", "n"]),
    "mixed": (["n", 3], ["n", 3]),
    "partly_unnamed": ([None, 3], [None, 3]),
    "unnamed": ([None, None], [None, None]),
    "unknown_rank": (None, None),
}
OUTPUTS = {"undeclared": None, "agrees": "as data", "unnamed": [None, None], "static": [3, 3]}


@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("level", ["plain", "optimised"])
def test_declared(rng, op, declared, output, level) -> None:
    shape, agreeing = DECLARED[declared]
    said = agreeing if output == "agrees" else OUTPUTS[output]
    if output == "static":
        # If the declared shapes of data and of the output are both static, they must be equal.
        shape = [3, 3] if declared == "static" else shape
    serialized = one_node(op, FLOAT, (shape, None, None), output=said)
    given = {} if level == "optimised" else {"graph_optimization_level": UNOPTIMISED}
    ran = session(serialized, **given)
    size = 3 if output == "static" or declared == "one_symbol_twice" else 5
    data = values(rng, FLOAT, (size, 3))
    tuples = (4, 1) if op == "ScatterND" else (4, 3)
    indices, updates = any_indices(rng, size, tuples), values(rng, FLOAT, (4, 3))
    scatter = reference.scatter_nd if op == "ScatterND" else reference.scatter_elements
    assert_same(
        run(ran, data=data, indices=indices, updates=updates), scatter(data, indices, updates)
    )


def kind(dim: object) -> str:
    """Describes a size that a session reports: its value, its name in the model, or `not known`.
    Names that begin with `ndscatter_unknown` are the library's names for unknown sizes without a
    name."""
    if isinstance(dim, int):
        return f"size {dim}"
    is_named = isinstance(dim, str) and not dim.startswith("ndscatter_unknown")
    return f"name {dim}" if is_named else "not known"


OPERATORS = ["ScatterND", "ScatterElements", pytest.param("TensorScatter", marks=needs_cache)]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    "shape", [[4, 5, 6], ["n", 5, "m"], [None, 5, 6], [None, "m", None]], ids=str
)
def test_reported(op, shape) -> None:
    """The session reports an output shape with the same known sizes and names as the shape of
    data."""
    indices = None if op == "TensorScatter" else [None, 1]
    opset = 24 if op == "TensorScatter" else 18
    serialized = one_node(op, FLOAT, (shape, indices, None), opset=opset)
    (output,) = session(serialized).get_outputs()
    assert [kind(dim) for dim in output.shape] == [kind(dim) for dim in shape]
    assert output.type == "tensor(float)"
    # The host assumes that sizes with the same name are equal, so different sizes have different
    # names.
    named = [dim for dim in output.shape if isinstance(dim, str)]
    assert len(set(named)) == len(named)


def test_reported_through_other_nodes() -> None:
    nodes = [
        node("ScatterND", ["data", "indices", "updates"], ["a"]),
        node("Transpose", ["a"], ["b"], perm=[1, 0]),
        node("ScatterElements", ["b", "columns", "updates2"], ["c"], axis=1),
        node("Concat", ["c", "c"], ["output"], axis=0),
    ]
    inputs = [
        value("data", F32, ["n", 3]),
        value("indices", I64, None),
        value("updates", F32, None),
        value("columns", I64, None),
        value("updates2", F32, None),
    ]
    made = session(model(nodes, inputs, [value("output", F32, None)]))
    assert made.get_outputs()[0].shape == [6, "n"]


def test_unnamed_sizes_are_not_taken_for_equal(rng) -> None:
    """The host must not assume that two unknown sizes without a name are equal. Here the model adds
    a row and a column, both of unknown sizes. By broadcasting, their sum may be larger than each of
    them. The host must therefore not write the sum to the memory of the row or of the column."""
    nodes = [
        node("ScatterND", ["row", "indices", "update"], ["a"]),
        node("ScatterND", ["column", "indices", "update2"], ["b"]),
        node("Add", ["a", "b"], ["sum"]),
        node("Neg", ["sum"], ["output"]),
    ]
    inputs = [
        value("row", F32, [None, None]),
        value("column", F32, [None, None]),
        value("indices", I64, [None, 1]),
        value("update", F32, [None, None]),
        value("update2", F32, [None, None]),
    ]
    ran = session(model(nodes, inputs, [value("output", F32, [None, None])]))
    for rows, columns in ((4, 7), (7, 4), (1, 1)):
        feeds = {
            "row": values(rng, FLOAT, (1, columns)),
            "column": values(rng, FLOAT, (rows, 1)),
            "indices": np.array([[0]]),
            "update": values(rng, FLOAT, (1, columns)),
            "update2": values(rng, FLOAT, (1, 1)),
        }
        left = reference.scatter_nd(feeds["row"], feeds["indices"], feeds["update"])
        right = reference.scatter_nd(feeds["column"], feeds["indices"], feeds["update2"])
        assert_same(run(ran, **feeds), -(left + right))


@pytest.mark.parametrize("shape", [["n", "m"], [None, None], None, [4, 3]], ids=str)
def test_nodes_that_need_shapes(rng, shape) -> None:
    """The results of the nodes after the scatter (among them Shape, Expand, MatMul and Reshape)
    depend on the shape of the scatter's output."""
    nodes = [
        node("ScatterND", ["data", "indices", "updates"], ["a"], reduction="add"),
        node("Shape", ["a"], ["dims"]),
        node("Expand", ["one", "dims"], ["ones"]),
        node("Add", ["a", "ones"], ["b"]),
        node("Transpose", ["b"], ["t"], perm=[1, 0]),
        node("MatMul", ["b", "t"], ["product"]),
        node("Shape", ["product"], ["square"]),
        node("Reshape", ["product", "minus_one"], ["flat"]),
        node("ReduceMax", ["flat"], ["most"], keepdims=0),
        node("Identity", ["square"], ["output"]),
    ]
    inputs = [
        value("data", F32, shape),
        value("indices", I64, None),
        value("updates", F32, None),
    ]
    outputs = [value("output", I64, None), value("most", F32, None)]
    constants = {"one": np.ones(1, np.float32), "minus_one": np.array([-1])}
    ran = session(model(nodes, inputs, outputs, constants=constants))
    data, updates = (rng.integers(-9, 9, (4, 3)).astype(np.float32) for _ in range(2))
    indices = any_indices(rng, 4, (4, 1))
    dims, most = ran.run(None, {"data": data, "indices": indices, "updates": updates})
    summed = reference.scatter_nd(data, indices, updates, reference.Rules("add")) + 1
    assert dims.tolist() == [4, 4]
    # The elements of the matrix are small integers. The sums in the matrix product are therefore
    # exact, whatever the order of the additions.
    assert most == (summed @ summed.T).max()


SHAPE = (3, 2, 4, 2, 3, 2)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("rank", range(1, 7))
def test_nd_ranks(rng, rank, reduction) -> None:
    """One session runs tuples of every length from 0 to the rank of data, and indices of several
    shapes."""
    serialized = one_node("ScatterND", FLOAT, ([None] * rank, None, None), reduction=reduction)
    ran = session(serialized)
    shape = SHAPE[:rank]
    for depth in range(rank + 1):
        for listed in ((), (3,), (2, 3), (0,), (2, 1, 2)):
            data = values(rng, FLOAT, shape)
            indices = any_indices(rng, shape[:depth], (*listed, depth))
            updates = values(rng, FLOAT, (*listed, *shape[depth:]))
            rules = reference.Rules(reduction)
            wanted = reference.scatter_nd(data, indices, updates, rules)
            with counting() as count:
                found = run(ran, data=data, indices=indices, updates=updates)
            assert count.done.runs == 1
            assert_same(found, wanted, f"depth {depth}, tuples {listed}")


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_nd_scalar(rng, reduction) -> None:
    """For data of rank 0, a tuple has no coordinates. Here three tuples select the only element."""
    ran = session(one_node("ScatterND", FLOAT, ([], None, None), reduction=reduction))
    data = values(rng, FLOAT, ())
    indices, updates = np.zeros((3, 0), np.int64), values(rng, FLOAT, (3,))
    wanted = reference.scatter_nd(data, indices, updates, reference.Rules(reduction))
    assert_same(run(ran, data=data, indices=indices, updates=updates), wanted)


@pytest.mark.parametrize("index_type", ["i32", "i64"])
@pytest.mark.parametrize("rank", range(1, 7))
def test_elements_ranks(rng, rank, index_type) -> None:
    """ScatterElements with every axis from `-rank` to `rank - 1`."""
    shape = SHAPE[:rank]
    for axis in range(-rank, rank):
        serialized = one_node(
            "ScatterElements", FLOAT, ([None] * rank, None, None),
            index_type=index_type, axis=axis, reduction="add",
        )  # fmt: skip
        ran = session(serialized)
        for length in (0, 1, 5):
            listed = [max(1, size - at % 2) for at, size in enumerate(shape)]
            listed[axis] = length
            data, updates = values(rng, FLOAT, shape), values(rng, FLOAT, listed)
            indices = any_indices(rng, shape[axis], listed)
            rules = reference.Rules("add")
            wanted = reference.scatter_elements(data, indices, updates, axis, rules)
            indices = indices.astype(np.int32 if index_type == "i32" else np.int64)
            found = run(ran, data=data, indices=indices, updates=updates)
            assert_same(found, wanted, f"axis {axis}, length {length}")


EMPTY = {
    "nothing_at_all": ("ScatterND", (0,), (0, 1), (0,)),
    "no_tuples": ("ScatterND", (4, 3), (0, 1), (0, 3)),
    "empty_windows": ("ScatterND", (4, 0), (3, 1), (3, 0)),
    "empty_windows_of_two": ("ScatterND", (4, 2, 0), (3, 2), (3, 0)),
    "no_rows": ("ScatterND", (0, 3), (0, 1), (0, 3)),
    "elements_nothing": ("ScatterElements", (0, 3), (0, 3), (0, 3)),
    "elements_no_updates": ("ScatterElements", (4, 3), (0, 3), (0, 3)),
    "elements_empty_rows": ("ScatterElements", (4, 0), (2, 0), (2, 0)),
}


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("case", EMPTY)
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
def test_empty(rng, case, reduction, constant) -> None:
    op, shape, listed, moved = EMPTY[case]
    indices = np.zeros(listed, np.int64)
    given = {"indices": indices} if constant else {}
    shapes = ([None] * len(shape), [None] * len(listed), [None] * len(moved))
    serialized = one_node(op, FLOAT, shapes, reduction=reduction, **given)
    data, updates = values(rng, FLOAT, shape), values(rng, FLOAT, moved)
    feeds = {"data": data, "updates": updates} | ({} if constant else {"indices": indices})
    with counting() as count:
        found = run(session(serialized), **feeds)
    assert count.done == (1, 0, int(constant))
    assert_same(found, data)


def test_indices_of_empty_windows_are_checked() -> None:
    ran = session(one_node("ScatterND", FLOAT, ([4, 0], [1, 1], [1, 0])))
    feeds = {"data": np.zeros((4, 0), np.float32), "updates": np.zeros((1, 0), np.float32)}
    with pytest.raises(Exception, match="ndscatter: index 4 of tuple 0 is out of bounds"):
        run(ran, indices=np.array([[4]]), **feeds)


@needs_cache
@pytest.mark.parametrize("shape", [(0, 4, 2), (2, 4, 0), (2, 3, 0, 5)], ids=str)
def test_empty_cache(rng, shape) -> None:
    axis = -2
    moved = list(shape)
    moved[axis] = min(1, moved[axis])
    serialized = one_node("TensorScatter", FLOAT, (None, [None], None), opset=24)
    data, updates = values(rng, FLOAT, shape), values(rng, FLOAT, moved)
    indices = np.zeros(shape[0], np.int64)
    assert_same(run(session(serialized), data=data, indices=indices, updates=updates), data)


def test_sizes_change_between_runs(rng) -> None:
    ran = session(one_node("ScatterND", INT64, (["n", "m"], None, None), reduction="add"))
    for rows, columns, count in ((1, 1, 1), (100, 3, 7), (2, 50, 300), (100, 3, 0)):
        data, updates = values(rng, INT64, (rows, columns)), values(rng, INT64, (count, columns))
        indices = any_indices(rng, rows, (count, 1))
        wanted = reference.scatter_nd(data, indices, updates, reference.Rules("add"))
        assert_same(run(ran, data=data, indices=indices, updates=updates), wanted)
