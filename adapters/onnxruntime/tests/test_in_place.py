"""Tests of in-place runs. If the host allows it, a run writes its output to the memory of data.
Otherwise a run writes to a separate output.

A run never changes data that another node still reads. It changes data of the caller only if the
caller binds the output to the memory of data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

import reference
from common import (
    BOOL,
    FLOAT,
    FLOAT16,
    NUMBERS,
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
    run_in_one_buffer,
    session,
    value,
    values,
)

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
SHAPE = (6, 4)
REDUCTIONS = ["none", "add", "mul", "min", "max"]
ADD = reference.Rules("add")


def scatter_feeds(rng: np.random.Generator, element: Any = FLOAT) -> dict[str, Array]:
    return {
        "data": values(rng, element, SHAPE),
        "indices": any_indices(rng, SHAPE[0], (9, 1)),
        "updates": values(rng, element, (9, SHAPE[1])),
    }


def of_nodes(*nodes: onnx.NodeProto, outputs: tuple[str, ...] = ("output",)) -> bytes:
    inputs = [
        value("data", F32, ["n", "m"]),
        value("indices", I64, [None, 1]),
        value("updates", F32, [None, "m"]),
    ]
    return model(nodes, inputs, [value(name, F32, None) for name in outputs])


def scatter(data: str, output: str, reduction: str = "add") -> onnx.NodeProto:
    return node("ScatterND", [data, "indices", "updates"], [output], reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("element", [*NUMBERS, BOOL], ids=str)
def test_between_nodes(rng, element, reduction) -> None:
    serialized = one_node(
        "ScatterND", element, (["n", "m"], [None, 1], [None, "m"]), between=True,
        reduction=reduction,
    )  # fmt: skip
    feeds = scatter_feeds(rng, element)
    before = feeds["data"].copy()
    with counting() as count:
        found = run(session(serialized, graph_optimization_level=UNOPTIMISED), **feeds)
    assert count.done == (1, 1, 0)
    rules = reference.Rules(reduction)
    assert_same(found, reference.scatter_nd(before, feeds["indices"], feeds["updates"], rules))
    assert_same(feeds["data"], before)


def test_negated_before_and_behind(rng) -> None:
    serialized = of_nodes(
        node("Neg", ["data"], ["a"]), scatter("a", "b"), node("Neg", ["b"], ["output"])
    )
    feeds = scatter_feeds(rng)
    ran = session(serialized)
    for _ in range(3):
        with counting() as count:
            found = run(ran, **feeds)
        assert count.done == (1, 1, 0)
        wanted = -reference.scatter_nd(-feeds["data"], feeds["indices"], feeds["updates"], ADD)
        assert_same(found, wanted)


def test_input_is_kept(rng) -> None:
    """The data is an input of the model, and the scatter is its last reader. The run still does not
    change the caller's data."""
    feeds = scatter_feeds(rng)
    before = {name: array.copy() for name, array in feeds.items()}
    with counting() as count:
        found = run(session(of_nodes(scatter("data", "output"))), **feeds)
    assert count.done == (1, 0, 0)
    assert_same(found, reference.scatter_nd(*before.values(), ADD))
    for name, array in before.items():
        assert_same(feeds[name], array, name)


def test_initializer_is_kept(rng) -> None:
    """The data is a constant of the model. A run does not change it, so repeated runs give the same
    result."""
    feeds = scatter_feeds(rng)
    data = feeds.pop("data")
    inputs = [value("indices", I64, [None, 1]), value("updates", F32, [None, SHAPE[1]])]
    nodes = [scatter("data", "a"), node("Neg", ["a"], ["output"])]
    serialized = model(nodes, inputs, [value("output", F32, None)], constants={"data": data})
    ran = session(serialized)
    wanted = -reference.scatter_nd(data, feeds["indices"], feeds["updates"], ADD)
    for _ in range(3):
        with counting() as count:
            assert_same(run(ran, **feeds), wanted)
        assert count.done == (1, 0, 0)


CHAINS: dict[str, tuple[list[onnx.NodeProto], tuple[str, ...], int, Any]] = {
    # For each case: the nodes, the outputs, the number of scatters that run in place (`None`: not
    # checked), and a function that computes the expected outputs. The arguments of the function are
    # the negated data d and a function s, which returns the result of a scatter into its argument.
    "data_used_behind": (
        [node("Neg", ["data"], ["a"]), scatter("a", "b"), node("Add", ["a", "b"], ["output"])],
        ("output",), 0, lambda d, s: [d + s(d)],
    ),
    "data_is_an_output": (
        [node("Neg", ["data"], ["a"]), scatter("a", "b"), node("Neg", ["b"], ["output"])],
        ("output", "a"), 0, lambda d, s: [-s(d), d],
    ),
    "result_is_an_output": (
        [node("Neg", ["data"], ["a"]), scatter("a", "b"), node("Neg", ["b"], ["output"])],
        ("output", "b"), 0, lambda d, s: [-s(d), s(d)],
    ),
    "two_scatters_of_one": (
        [node("Neg", ["data"], ["a"]), scatter("a", "b"), scatter("a", "c"),
         node("Add", ["b", "c"], ["output"])],
        ("output",), None, lambda d, s: [s(d) + s(d)],
    ),
    "chain": (
        [node("Neg", ["data"], ["a"]), scatter("a", "b"), scatter("b", "c"), scatter("c", "e"),
         node("Neg", ["e"], ["output"])],
        ("output",), 3, lambda d, s: [-s(s(s(d)))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHAINS)
@pytest.mark.parametrize("level", ["plain", "optimised"])
def test_chains(rng, case, level) -> None:
    nodes, outputs, in_place, wanted = CHAINS[case]
    given = {"graph_optimization_level": UNOPTIMISED} if level == "plain" else {}
    ran = session(of_nodes(*nodes, outputs=outputs), **given)
    feeds = scatter_feeds(rng)

    def scattered(data: Array) -> Array:
        return reference.scatter_nd(data, feeds["indices"], feeds["updates"], ADD)

    for _ in range(2):
        with counting() as count:
            found = ran.run(None, feeds)
        for output, right in zip(found, wanted(-feeds["data"], scattered), strict=True):
            assert_same(output, right)
        if in_place is not None:
            assert count.done.in_place == in_place


def test_data_and_updates_are_one_tensor(rng) -> None:
    """One tensor is both the data and the updates of a scatter. The scatter must not run in place,
    because an in-place run would overwrite the updates before it has read all of them."""
    nodes = [
        node("Neg", ["data"], ["a"]),
        node("ScatterND", ["a", "indices", "a"], ["b"], reduction="add"),
        node("Neg", ["b"], ["output"]),
    ]
    inputs = [value("data", F32, ["n", "m"]), value("indices", I64, ["n", 1])]
    ran = session(model(nodes, inputs, [value("output", F32, None)]))
    data, indices = values(rng, FLOAT, SHAPE), any_indices(rng, SHAPE[0], (SHAPE[0], 1))
    with counting() as count:
        found = run(ran, data=data, indices=indices)
    assert count.done == (1, 0, 0)
    assert_same(found, -reference.scatter_nd(-data, indices, -data, ADD))


def test_data_and_indices_are_one_tensor() -> None:
    nodes = [
        node("Neg", ["data"], ["a"]),
        node("ScatterElements", ["a", "a", "updates"], ["b"], reduction="add"),
        node("Neg", ["b"], ["output"]),
    ]
    inputs = [value("data", I64, ["n"]), value("updates", I64, ["n"])]
    ran = session(model(nodes, inputs, [value("output", I64, None)]))
    data, updates = np.array([-2, 0, -1, -2]), np.array([10, 20, 30, 40])
    wanted = -reference.scatter_elements(-data, -data, updates, 0, ADD)
    assert_same(run(ran, data=data, updates=updates), wanted)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("element", NUMBERS, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_bound_to_one_buffer(rng, element, reduction, threads) -> None:
    serialized = one_node(
        "ScatterND", element, (["n", "m"], [None, 1], [None, "m"]), reduction=reduction
    )
    feeds = scatter_feeds(rng, element)
    with counting() as count:
        found = run_in_one_buffer(session(serialized, threads=threads), **{
            name: array.copy() for name, array in feeds.items()
        })  # fmt: skip
    assert count.done == (1, 1, 0)
    assert_same(found, reference.scatter_nd(*feeds.values(), reference.Rules(reduction)))


def test_bound_to_one_buffer_again_and_again(rng) -> None:
    """The output is bound to the memory of data, so each run scatters into the result of the
    previous run."""
    ran = session(one_node("ScatterND", FLOAT, ([6, 4], [9, 1], [9, 4]), reduction="add"))
    feeds = scatter_feeds(rng)
    bound = {name: ort.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feeds.items()}
    binding = ran.io_binding()
    for name, given in bound.items():
        binding.bind_ortvalue_input(name, given)
    binding.bind_ortvalue_output("output", bound["data"])
    wanted = feeds["data"]
    with counting() as count:
        for _ in range(10):
            ran.run_with_iobinding(binding)
            wanted = reference.scatter_nd(wanted, feeds["indices"], feeds["updates"], ADD)
    assert count.done == (10, 10, 0)
    assert_same(bound["data"].numpy(), wanted)


def test_error_in_place_writes_nothing(rng) -> None:
    ran = session(one_node("ScatterND", FLOAT, ([6, 4], [9, 1], [9, 4]), reduction="add"))
    feeds = scatter_feeds(rng)
    feeds["indices"][8] = 6
    bound = {name: ort.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feeds.items()}
    binding = ran.io_binding()
    for name, given in bound.items():
        binding.bind_ortvalue_input(name, given)
    binding.bind_ortvalue_output("output", bound["data"])
    with pytest.raises(Exception, match="ndscatter: index 6 of tuple 8 is out of bounds"):
        ran.run_with_iobinding(binding)
    assert_same(bound["data"].numpy(), feeds["data"])


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_output_bound_to_updates(rng, reduction) -> None:
    """The output is bound to the memory of updates. The run fails and does not change the updates.
    The next run, with an output in separate memory, is correct."""
    ran = session(one_node("ScatterND", FLOAT, ([9, 4], [9, 1], [9, 4]), reduction=reduction))
    data, updates = values(rng, FLOAT, (9, 4)), values(rng, FLOAT, (9, 4))
    indices = any_indices(rng, 9, (9, 1))
    wanted = reference.scatter_nd(data, indices, updates, reference.Rules(reduction))
    bound = ort.OrtValue.ortvalue_from_numpy(updates.copy())
    binding = ran.io_binding()
    binding.bind_cpu_input("data", data)
    binding.bind_cpu_input("indices", indices)
    binding.bind_ortvalue_input("updates", bound)
    binding.bind_ortvalue_output("output", bound)
    with pytest.raises(Exception, match="ndscatter: "):
        ran.run_with_iobinding(binding)
    assert_same(bound.numpy(), updates)
    binding.bind_cpu_input("updates", updates)
    binding.bind_output("output")
    ran.run_with_iobinding(binding)
    assert_same(binding.copy_outputs_to_cpu()[0], wanted)


@needs_cache
@pytest.mark.parametrize("element", [FLOAT, FLOAT16], ids=str)
def test_cache_step_by_step(rng, element) -> None:
    """Each of 20 runs writes one token per sequence into a key-value cache of two sequences, in
    place. The mode is circular, so later tokens overwrite the first tokens."""
    serialized = one_node(
        "TensorScatter", element, ([2, 3, 8, 4], [2], [2, 3, 1, 4]), opset=24, mode="circular"
    )
    ran = session(serialized)
    cache = values(rng, element, (2, 3, 8, 4))
    bound = ort.OrtValue.ortvalue_from_numpy(cache.copy())
    wanted = cache
    for step in range(20):
        token = values(rng, element, (2, 3, 1, 4))
        indices = np.array([step, step + 3])
        binding = ran.io_binding()
        binding.bind_ortvalue_input("data", bound)
        binding.bind_cpu_input("updates", token)
        binding.bind_cpu_input("indices", indices)
        binding.bind_ortvalue_output("output", bound)
        with counting() as count:
            ran.run_with_iobinding(binding)
        assert count.done == (1, 1, 0)
        wanted = reference.tensor_scatter(wanted, token, indices, mode="circular")
        assert_same(bound.numpy(), wanted, f"step {step}")
