"""Tests of constant indices in the main graph and in subgraphs, and with several threads.

For constant indices, the first run with data of a new shape makes a kept plan. An invalid constant
index does not prevent the creation of a session. Each run for which the index is invalid fails.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import reference
from common import (
    FLOAT,
    INT64,
    NUMBERS,
    OWN,
    UNOPTIMISED,
    Array,
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

F32, I64, BOOLEAN = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ADD = reference.Rules("add")


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("element", NUMBERS, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_planned(rng, element, reduction, threads) -> None:
    indices = any_indices(rng, 6, (9, 1))
    serialized = one_node(
        "ScatterND", element, ([None, None], None, None), indices=indices, reduction=reduction
    )
    ran = session(serialized, threads=threads)
    for _ in range(2):
        data, updates = values(rng, element, (6, 4)), values(rng, element, (9, 4))
        with counting() as count:
            found = run(ran, data=data, updates=updates)
        assert count.done == (1, 0, 1)
        wanted = reference.scatter_nd(data, indices, updates, reference.Rules(reduction))
        assert_same(found, wanted)


def test_more_shapes_than_plans(rng) -> None:
    """One session runs data of seven shapes. A node keeps fewer than seven plans, so runs also
    replace plans. Some shapes differ although they have the same number of elements."""
    indices = any_indices(rng, 3, (5, 1))
    ran = session(
        one_node("ScatterND", FLOAT, (None, None, None), indices=indices, reduction="add")
    )
    shapes = [(3,), (4, 2), (8, 1), (5, 3, 2), (3, 0), (6, 2, 2), (3, 8)]
    order = [*range(7), *range(7), *reversed(range(7)), *rng.integers(0, 7, 20)]
    for at in order:
        shape = shapes[at]
        data = values(rng, FLOAT, shape)
        updates = values(rng, FLOAT, (5, *shape[1:]))
        with counting() as count:
            found = run(ran, data=data, updates=updates)
        assert count.done == (1, 0, 1)
        assert_same(found, reference.scatter_nd(data, indices, updates, ADD), f"{shape}")


@needs_cache
def test_cache_with_constant_indices(rng) -> None:
    """Runs one TensorScatter node with several sizes of the key-value cache and several numbers of
    rows of updates per sequence. The plan depends on both numbers."""
    indices = np.array([2, 0])
    ran = session(
        one_node("TensorScatter", FLOAT, ([2, None, 3], None, None), indices=indices, opset=24)
    )
    for size, length in ((8, 3), (8, 1), (8, 6), (5, 3), (8, 3), (5, 0), (4, 2)):
        data, updates = values(rng, FLOAT, (2, size, 3)), values(rng, FLOAT, (2, length, 3))
        with counting() as count:
            found = run(ran, data=data, updates=updates)
        assert count.done == (1, 0, 1)
        assert_same(found, reference.tensor_scatter(data, updates, indices))
    with pytest.raises(Exception, match="ndscatter: "):
        run(ran, data=values(rng, FLOAT, (2, 4, 3)), updates=values(rng, FLOAT, (2, 3, 3)))


@pytest.mark.parametrize("threads", [1, 2])
def test_from_several_threads(rng, threads) -> None:
    """Eight threads run one session concurrently. Each thread cycles through data of nine shapes,
    and each thread begins with a different shape."""
    indices = any_indices(rng, 16, (40, 1))
    ran = session(
        one_node("ScatterND", INT64, ([None, None], None, None), indices=indices, reduction="add"),
        threads=threads,
    )
    cases = []
    for at in range(9):
        data, updates = values(rng, INT64, (16 + at, 3)), values(rng, INT64, (40, 3))
        cases.append((data, updates, reference.scatter_nd(data, indices, updates, ADD)))

    def work(caller: int) -> None:
        for step in range(60):
            data, updates, wanted = cases[(caller + step) % len(cases)]
            assert_same(run(ran, data=data, updates=updates), wanted)

    with counting() as count, ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert count.done == (480, 0, 480)


BAD = {
    "out_of_bounds": ("ScatterND", np.array([[1], [4]]), "index 4 of tuple 1 is out of bounds"),
    "too_low": ("ScatterND", np.array([[-5]]), "index -5 of tuple 0 is out of bounds"),
    "lowest": ("ScatterND", np.array([[np.iinfo(np.int64).min]]), "is out of bounds"),
    "too_deep": ("ScatterND", np.zeros((1, 3), np.int64), "rank"),
    "scalar": ("ScatterND", np.array(0), "rank"),
    "elements": ("ScatterElements", np.array([[0, 9]]), "index 9 .*out of bounds"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("domain", ["", OWN], ids=["standard", "own"])
def test_bad_constant_fails_the_run(rng, case, domain) -> None:
    op, indices, message = BAD[case]
    serialized = one_node(op, FLOAT, ([None, None], None, None), indices=indices, domain=domain)
    ran = session(serialized)
    data = values(rng, FLOAT, (4, 2))
    updates = values(rng, FLOAT, indices.shape if op == "ScatterElements" else (len(indices), 2)
                     if indices.ndim else (2,))  # fmt: skip
    for _ in range(3):
        with counting() as count, pytest.raises(Exception, match=f"ndscatter: .*{message}"):
            run(ran, data=data, updates=updates)
        assert count.done.runs == 0


def test_constant_that_suits_some_shapes(rng) -> None:
    """The constant index 5 is out of bounds for data with fewer than 6 rows. The run then fails,
    and the next run of the session with more rows is correct."""
    indices = np.array([[5]])
    ran = session(one_node("ScatterND", FLOAT, ([None, 2], None, None), indices=indices))
    updates = values(rng, FLOAT, (1, 2))
    for rows in (6, 4, 7, 5, 6):
        data = values(rng, FLOAT, (rows, 2))
        if rows > 5:
            found = run(ran, data=data, updates=updates)
            assert_same(found, reference.scatter_nd(data, indices, updates))
        else:
            with pytest.raises(Exception, match="ndscatter: index 5 .*out of bounds"):
                run(ran, data=data, updates=updates)


# Subgraphs


def scatter(data: str, output: str, indices: str = "indices", **given: Any) -> onnx.NodeProto:
    return node("ScatterND", [data, indices, "updates"], [output], reduction="add", **given)


def constant(name: str, array: Array) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(array))


def branch(name: str, output: str, *nodes: onnx.NodeProto, **constants: Array) -> onnx.GraphProto:
    held = [onnx.numpy_helper.from_array(array, given) for given, array in constants.items()]
    return helper.make_graph(
        list(nodes), name, [], [value(output, F32, ["n", 2])], initializer=held
    )


DATA_AND_UPDATES = [value("data", F32, ["n", 2]), value("updates", F32, [None, 2])]


@pytest.mark.parametrize("place", ["initializer", "constant_node", "outer", "outer_node", "fed"])
@pytest.mark.parametrize("level", ["plain", "optimised"])
def test_inside_if(rng, place, level) -> None:
    """Both branches of an If contain a scatter. The indices of the scatter are a constant of the
    branch, a constant of the outer graph, or an input of the model."""
    ways = {"then": any_indices(rng, 4, (5, 1)), "else": any_indices(rng, 4, (7, 1))}
    branches, constants, nodes, inputs = {}, {}, [], list(DATA_AND_UPDATES)
    for way, indices in ways.items():
        name, inner, held = f"{way}_indices", [], {}
        match place:
            case "initializer":
                held[name] = indices
            case "constant_node":
                inner.append(constant(name, indices))
            case "outer":
                constants[name] = indices
            case "outer_node":
                nodes.append(constant(name, indices))
            case "fed":
                inputs.append(value(name, I64, [None, 1]))
        inner.append(scatter("data", f"{way}_output", name))
        branches[f"{way}_branch"] = branch(way, f"{way}_output", *inner, **held)
    nodes.append(node("If", ["condition"], ["output"], **branches))
    serialized = model(
        nodes,
        [*inputs, value("condition", BOOLEAN, [])],
        [value("output", F32, None)],
        constants=constants,
    )
    given = {"graph_optimization_level": UNOPTIMISED} if level == "plain" else {}
    ran = session(serialized, **given)
    planned = 0
    for condition in (True, False, True):
        indices = ways["then" if condition else "else"]
        data, updates = values(rng, FLOAT, (4, 2)), values(rng, FLOAT, (len(indices), 2))
        feeds = {"data": data, "updates": updates, "condition": np.array(condition)}
        if place == "fed":
            feeds |= {f"{way}_indices": indices for way, indices in ways.items()}
        with counting() as count:
            found = run(ran, **feeds)
        assert count.done.runs == 1
        planned += count.done.planned
        assert_same(found, reference.scatter_nd(data, indices, updates, ADD))
    assert planned == 0 if place == "fed" else planned in (0, 3)
    if place == "initializer":
        assert planned == 3


@pytest.mark.parametrize("place", ["initializer", "outer", "counter"])
@pytest.mark.parametrize("level", ["plain", "optimised"])
def test_inside_loop(rng, place, level) -> None:
    """Each iteration of a Loop scatters into the result of the previous iteration. The indices are
    a constant of the loop body, a constant of the outer graph, or computed from the loop
    counter."""
    indices = any_indices(rng, 4, (5, 1))
    constants = {"indices": indices} if place == "outer" else {}
    held = {"indices": indices} if place == "initializer" else {}
    inner: list[onnx.NodeProto] = []
    if place == "counter":
        held = {"shape": np.array([1, 1]), "four": np.array(4)}
        inner = [
            node("Mod", ["step", "four"], ["row"]),
            node("Reshape", ["row", "shape"], ["indices"]),
        ]
    body = helper.make_graph(
        [*inner, scatter("carried", "next"), node("Identity", ["go_on"], ["goes_on"])],
        "body",
        [value("step", I64, []), value("go_on", BOOLEAN, []), value("carried", F32, ["n", 2])],
        [value("goes_on", BOOLEAN, []), value("next", F32, ["n", 2])],
        initializer=[onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    serialized = model(
        [node("Loop", ["steps", "", "data"], ["output"], body=body)],
        [*DATA_AND_UPDATES, value("steps", I64, [])],
        [value("output", F32, None)],
        constants=constants,
    )
    given = {"graph_optimization_level": UNOPTIMISED} if level == "plain" else {}
    ran = session(serialized, **given)
    for steps in (0, 1, 7):
        data = values(rng, FLOAT, (4, 2))
        before = data.copy()
        updates = values(rng, FLOAT, (1 if place == "counter" else 5, 2))
        with counting() as count:
            found = run(ran, data=data, updates=updates, steps=np.array(steps))
        assert count.done.runs == steps
        if place == "initializer":
            assert count.done.planned == steps
        wanted = data
        for step in range(steps):
            listed = np.array([[step % 4]]) if place == "counter" else indices
            wanted = reference.scatter_nd(wanted, listed, updates, ADD)
        assert_same(found, wanted)
        assert_same(data, before)


def test_inside_scan(rng) -> None:
    """Each iteration of a Scan scatters one row of updates into the result of the previous
    iteration."""
    indices = any_indices(rng, 4, (1, 1))
    body = helper.make_graph(
        [
            node("Reshape", ["row", "shape"], ["one"]),
            node("ScatterND", ["state", "indices", "one"], ["next"], reduction="add"),
            node("Identity", ["next"], ["seen"]),
        ],
        "body",
        [value("state", F32, [4, 2]), value("row", F32, [2])],
        [value("next", F32, [4, 2]), value("seen", F32, [4, 2])],
        initializer=[
            onnx.numpy_helper.from_array(indices, "indices"),
            onnx.numpy_helper.from_array(np.array([1, 2]), "shape"),
        ],
    )
    serialized = model(
        [node("Scan", ["data", "updates"], ["output", "steps"], body=body, num_scan_inputs=1)],
        [value("data", F32, [4, 2]), value("updates", F32, [None, 2])],
        [value("output", F32, None), value("steps", F32, None)],
    )
    data, updates = values(rng, FLOAT, (4, 2)), values(rng, FLOAT, (6, 2))
    with counting() as count:
        last, seen = session(serialized).run(None, {"data": data, "updates": updates})
    assert count.done.runs == 6
    wanted = data
    for step in range(6):
        wanted = reference.scatter_nd(wanted, indices, updates[step : step + 1], ADD)
        assert_same(seen[step], wanted)
    assert_same(last, wanted)


@pytest.mark.parametrize("level", ["plain", "optimised"])
def test_inside_function(rng, level) -> None:
    """The scatter nodes are in a function of the model. The host inlines this function."""
    function = helper.make_function(
        "models", "AddTwice", ["data", "indices", "updates"], ["output"],
        [scatter("data", "once"), scatter("once", "output")],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    serialized = model(
        [node("AddTwice", ["data", "indices", "updates"], ["output"], domain="models")],
        [*DATA_AND_UPDATES, value("indices", I64, [None, 1])],
        [value("output", F32, None)],
        functions=[function],
    )
    given = {"graph_optimization_level": UNOPTIMISED} if level == "plain" else {}
    data, updates = values(rng, FLOAT, (4, 2)), values(rng, FLOAT, (5, 2))
    indices = any_indices(rng, 4, (5, 1))
    with counting() as count:
        found = run(session(serialized, **given), data=data, indices=indices, updates=updates)
    assert count.done.runs == 2
    once = reference.scatter_nd(data, indices, updates, ADD)
    assert_same(found, reference.scatter_nd(once, indices, updates, ADD))


@pytest.mark.parametrize("rows", [4, 300_000])
@pytest.mark.parametrize("level", ["plain", "optimised"])
def test_all_inputs_are_constants(rng, rows, level) -> None:
    """All inputs of the scatter are constants. The host may then run the scatter while it creates
    the session (constant folding), without the threads of the session."""
    data, updates = values(rng, FLOAT, (rows, 2)), values(rng, FLOAT, (2 * rows, 2))
    indices = any_indices(rng, rows, (2 * rows, 1))
    serialized = model(
        [scatter("data", "a"), node("Add", ["a", "b"], ["output"])],
        [value("b", F32, [])],
        [value("output", F32, None)],
        constants={"data": data, "indices": indices, "updates": updates},
    )
    given = {"graph_optimization_level": UNOPTIMISED} if level == "plain" else {}
    with counting() as count:
        ran = session(serialized, threads=2, **given)
        found = [run(ran, b=np.zeros((), np.float32)) for _ in range(2)]
    assert count.done.runs in (1, 2)
    wanted = reference.fast_nd(data, indices, updates, "add")
    for each in found:
        assert_same(each, wanted + np.float32(0))
