"""Tests of the operators in the domain `ndscatter`, with each attribute that ONNX's operators
lack."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import reference
from common import (
    BFLOAT16,
    BOOL,
    FLOAT,
    FLOAT16,
    INT64,
    NUMBERS,
    OWN,
    UNOPTIMISED,
    Array,
    ElementType,
    any_indices,
    assert_same,
    counting,
    needs_cache,
    one_node,
    run,
    session,
    values,
)

TYPES = [*NUMBERS, BFLOAT16]
HALVES = [FLOAT16, BFLOAT16]
REDUCTIONS = ["none", "add", "sub", "mul", "min", "max", "mean"]
OPERATORS = ["ScatterND", "ScatterElements", "Scatter"]
SHAPE = (5, 4)


def feeds_of(
    rng: np.random.Generator, op: str, element: ElementType, out: bool
) -> dict[str, Array]:
    """Returns feeds with many duplicate indices. If `out` is true, some indices are below the
    bounds and some are above the bounds. Otherwise all indices are within the bounds."""
    rows = 23
    indices = any_indices(rng, 9 if out else 5, (rows, 1 if op == "ScatterND" else 4))
    if out:
        indices.ravel()[rng.integers(indices.size)] = np.iinfo(np.int64).min
        indices.ravel()[rng.integers(indices.size)] = np.iinfo(np.int64).max
    return {
        "data": values(rng, element, SHAPE),
        "indices": indices,
        "updates": values(rng, element, (rows, 4)),
    }


def check(
    rng: np.random.Generator,
    op: str,
    element: ElementType,
    rules: reference.Rules,
    out: bool = False,
    constant: bool = False,
) -> None:
    """Runs a model with one scatter node, and compares the result with the reference. The node
    states only the attributes of `rules` that differ from their default values. `constant`: whether
    the indices are a constant of the model."""
    feeds = feeds_of(rng, op, element, out)
    attributes = {
        name: given
        for name, given in rules._asdict().items()
        if given != getattr(reference.STANDARD, name)
    }
    shapes = (list(SHAPE), None, None)
    serialized = one_node(
        op,
        element,
        shapes,
        domain=OWN,
        indices=feeds["indices"] if constant else None,
        **attributes,
    )
    data, updates = feeds["data"], feeds["updates"]
    if op == "ScatterND":
        wanted = reference.scatter_nd(data, feeds["indices"], updates, rules)
    else:
        wanted = reference.scatter_elements(data, feeds["indices"], updates, 0, rules)
    given = {
        "data": data.astype(element.fed),
        "updates": updates.astype(element.fed),
        "indices": feeds["indices"],
    }
    if constant:
        del given["indices"]
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    with counting() as count:
        found = run(ran, **given)
    assert count.done.runs == 1
    assert count.done.planned == int(constant)
    assert_same(found, wanted.astype(element.fed))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("include_self", [1, 0], ids=["with_self", "without_self"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("element", TYPES, ids=str)
@pytest.mark.parametrize("op", OPERATORS)
def test_reductions(rng, op, element, reduction, include_self) -> None:
    check(rng, op, element, reference.Rules(reduction, include_self))


@pytest.mark.parametrize("include_self", [1, 0], ids=["with_self", "without_self"])
@pytest.mark.parametrize("reduction", [each for each in REDUCTIONS if each != "mean"])
@pytest.mark.parametrize("op", OPERATORS)
def test_bool(rng, op, reduction, include_self) -> None:
    check(rng, op, BOOL, reference.Rules(reduction, include_self))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("bounds", ["skip", "clamp"])
@pytest.mark.parametrize("negative_indices", [1, 0], ids=["negative", "not_negative"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("op", OPERATORS)
def test_bounds(rng, op, reduction, negative_indices, bounds, constant) -> None:
    for element, include_self in product((FLOAT, INT64), (0, 1)):
        rules = reference.Rules(reduction, include_self, bounds, negative_indices=negative_indices)
        check(rng, op, element, rules, out=True, constant=constant)


@pytest.mark.parametrize("include_self", [1, 0], ids=["with_self", "without_self"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("element", [*HALVES, FLOAT, INT64], ids=str)
def test_wide(rng, element, reduction, include_self) -> None:
    for op in OPERATORS:
        rules = reference.Rules(reduction, include_self, accumulate="wide")
        check(rng, op, element, rules)


def test_wide_sums_do_not_stall() -> None:
    """Adds 4096 ones to a float16 element. If each addition is rounded to float16, the sum stays at
    2048, because the next larger float16 number is 2050. With `accumulate="wide"` the sum is
    4096."""
    found = {}
    for accumulate in ("native", "wide"):
        serialized = one_node(
            "ScatterND", FLOAT16, ([1], [4096, 1], [4096]), domain=OWN,
            reduction="add", accumulate=accumulate,
        )  # fmt: skip
        found[accumulate] = run(
            session(serialized),
            data=np.zeros(1, np.float16),
            indices=np.zeros((4096, 1), np.int64),
            updates=np.ones(4096, np.float16),
        )
    assert found["native"] == 2048
    assert found["wide"] == 4096


@pytest.mark.parametrize(
    ("dtype", "updates", "include_self", "mean"),
    [
        (np.int32, [-1, -2], 0, -2),
        (np.int32, [1, 2], 0, 1),
        (np.int32, [-1, -1], 1, 2),
        (np.int8, [100, 100], 0, -28),
        (np.uint8, [255, 255], 0, 127),
        (np.int64, [-7], 1, 1),
    ],
    ids=str,
)
def test_mean_of_integers(dtype, updates, include_self, mean) -> None:
    """The mean of integers is their sum, which wraps at the range of the element type, divided by
    the number of terms and rounded towards negative infinity. The existing element is 10."""
    element = next(each for each in NUMBERS if each.dtype == dtype)
    serialized = one_node(
        "ScatterND", element, ([1], None, None), domain=OWN,
        reduction="mean", include_self=include_self,
    )  # fmt: skip
    found = run(
        session(serialized),
        data=np.array([10], dtype),
        indices=np.zeros((len(updates), 1), np.int64),
        updates=np.array(updates, dtype),
    )
    assert found == mean


@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("op", OPERATORS)
def test_reject_duplicates(rng, op, constant) -> None:
    """With `reject_duplicates=1`, the run fails if two indices select the same destination, here 1
    and -4 on an axis of size 5. Without duplicates, the attribute does not change the result."""
    lists = {True: [3, 1, -4, 0], False: [3, 1, -3, 0]}
    for has_duplicates, listed in lists.items():
        indices = np.array(listed)
        if op == "ScatterND":
            indices = indices[:, None]
        else:
            indices = np.stack([np.array([3, 1, 2, 0]), indices], axis=1)
        data, updates = values(rng, FLOAT, (5, 2)), values(rng, FLOAT, (4, 2))
        serialized = one_node(
            op, FLOAT, ([5, 2], None, None), domain=OWN, reject_duplicates=1, reduction="add",
            indices=indices if constant else None,
        )  # fmt: skip
        feeds = {"data": data, "updates": updates} | ({} if constant else {"indices": indices})
        ran = session(serialized)
        if has_duplicates:
            with pytest.raises(Exception, match="ndscatter: .*tuple"):
                run(ran, **feeds)
            continue
        rules = reference.Rules("add", reject_duplicates=1)
        if op == "ScatterND":
            wanted = reference.scatter_nd(data, indices, updates, rules)
        else:
            wanted = reference.scatter_elements(data, indices, updates, 0, rules)
        assert_same(run(ran, **feeds), wanted)


@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("op", OPERATORS)
def test_negative_indices_forbidden(rng, op, constant) -> None:
    for lowest in (0, -1):
        indices = np.array([[1, 0], [0, 1], [lowest, 0]])
        data, updates = values(rng, FLOAT, (3, 2)), values(rng, FLOAT, (3, 2))
        if op == "ScatterND":
            updates = updates[:, 0]
        serialized = one_node(
            op, FLOAT, ([3, 2], None, None), domain=OWN, negative_indices=0,
            indices=indices if constant else None,
        )  # fmt: skip
        feeds = {"data": data, "updates": updates} | ({} if constant else {"indices": indices})
        ran = session(serialized)
        if lowest < 0:
            with pytest.raises(Exception, match="ndscatter: index -1 of tuple .*out of bounds"):
                run(ran, **feeds)
            continue
        scatter = reference.scatter_nd if op == "ScatterND" else reference.scatter_elements
        assert_same(run(ran, **feeds), scatter(data, indices, updates))


@pytest.mark.parametrize("index_type", ["i32", "i64"])
@pytest.mark.parametrize("op", ["ScatterElements", "Scatter"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_index_types(rng, op, index_type, axis) -> None:
    serialized = one_node(
        op,
        FLOAT,
        (None, None, None),
        domain=OWN,
        index_type=index_type,
        axis=axis,
        reduction="mean",
    )
    data, updates = values(rng, FLOAT, (5, 5)), values(rng, FLOAT, (5, 5))
    indices = any_indices(rng, 5, (5, 5)).astype(np.int32 if index_type == "i32" else np.int64)
    wanted = reference.scatter_elements(data, indices, updates, axis, reference.Rules("mean"))
    assert_same(run(session(serialized), data=data, indices=indices, updates=updates), wanted)


@needs_cache
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
def test_cache_with_idle_slots(rng, mode, constant) -> None:
    """With `bounds="skip"`, TensorScatter does not change the cache of a sequence whose index is
    negative."""
    indices = np.array([2, -1, 0, -7])
    shapes = ([4, 6, 3], [4], [4, 2, 3])
    serialized = one_node(
        "TensorScatter", FLOAT, shapes, domain=OWN, opset=24, mode=mode, bounds="skip",
        indices=indices if constant else None,
    )  # fmt: skip
    data, updates = values(rng, FLOAT, shapes[0]), values(rng, FLOAT, shapes[2])
    feeds = {"data": data, "updates": updates} | ({} if constant else {"indices": indices})
    rules = reference.Rules(bounds="skip")
    wanted = reference.tensor_scatter(data, updates, indices, mode=mode, rules=rules)
    assert_same(run(session(serialized), **feeds), wanted)


@needs_cache
@pytest.mark.parametrize(
    "given", [{"bounds": "clamp"}, {"reject_duplicates": 1}, {"negative_indices": 0}], ids=str
)
def test_cache_options(rng, given: dict[str, Any]) -> None:
    """A run of TensorScatter with `bounds="clamp"` fails. The attributes `reject_duplicates=1` and
    `negative_indices=0` are accepted, and have no effect on valid inputs."""
    serialized = one_node(
        "TensorScatter", FLOAT, ([2, 6, 3], [2], [2, 2, 3]), domain=OWN, opset=24, **given
    )
    data, updates = values(rng, FLOAT, (2, 6, 3)), values(rng, FLOAT, (2, 2, 3))
    indices = np.array([4, 1])
    ran = session(serialized)
    if "bounds" in given:
        with pytest.raises(Exception, match="NOT_IMPLEMENTED.*ndscatter: "):
            run(ran, data=data, updates=updates, indices=indices)
        return
    found = run(ran, data=data, updates=updates, indices=indices)
    assert_same(found, reference.tensor_scatter(data, updates, indices))


def test_mean_of_bool_is_refused() -> None:
    serialized = one_node("ScatterND", BOOL, ([1], [1, 1], [1]), domain=OWN, reduction="mean")
    truth = np.ones(1, np.bool_)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED.*ndscatter: "):
        run(session(serialized), data=truth, updates=truth, indices=np.zeros((1, 1), np.int64))
