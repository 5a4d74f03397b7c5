"""Tests of all operators of ONNX's domain, with every reduction, element type and index type, and
with several opsets.

Every result is compared with the reference. A result of indices without duplicates is also compared
with the result of onnxruntime's built-in kernel, if such a kernel exists. Both results have the
same bits, except that the sign of a zero may differ in float min and max, and that NaN values may
differ in their bits. Results with duplicates are not compared with the built-in kernel, because the
standard does not define the order of duplicates.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import reference
from common import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    HAS_CACHE,
    INDEX_DTYPES,
    NUMBERS,
    STRING,
    UNOPTIMISED,
    Array,
    ElementType,
    any_indices,
    assert_same,
    counting,
    needs_cache,
    newest_opset,
    one_node,
    run,
    session,
    unique_elements_indices,
    unique_nd_indices,
    values,
)

TYPES = [*NUMBERS, BOOL, STRING, BFLOAT16]
NEWEST = newest_opset()
OPSETS = {"ScatterND": (11, 13, 16, 18, NEWEST), "ScatterElements": (11, 13, 16, 18, NEWEST)}
OPSETS |= {"Scatter": (9,)}
INDEX_TYPES = {"ScatterND": ["i64"], "ScatterElements": ["i64", "i32"], "Scatter": ["i64", "i32"]}


def reductions(opset: int) -> list[str]:
    if opset < 16:
        return ["none"]
    return ["none", "add", "mul"] if opset < 18 else ["none", "add", "mul", "min", "max"]


def parameters() -> list[Any]:
    return [
        pytest.param(
            op, opset, reduction, element, index_type,
            id=f"{op}-{opset}-{reduction}-{element}-{index_type}",
        )
        for op, opsets in OPSETS.items()
        for opset in opsets
        for reduction in reductions(opset)
        for element in TYPES
        for index_type in INDEX_TYPES[op]
        if element != BFLOAT16 or opset >= 13
        if element != STRING or reduction in ("none", "add")
    ]  # fmt: skip


def wanted(
    op: str, axis: int, reduction: str, element: ElementType, feeds: dict[str, Array]
) -> Array:
    rules = reference.Rules(reduction=reduction)
    data, updates = (feeds[name].astype(element.dtype) for name in ("data", "updates"))
    if op == "ScatterND":
        found = reference.scatter_nd(data, feeds["indices"], updates, rules)
    else:
        found = reference.scatter_elements(data, feeds["indices"], updates, axis, rules)
    return found.astype(element.fed)


def feeds_of(
    rng: np.random.Generator, op: str, element: ElementType, axis: int, unique: bool
) -> dict[str, Array]:
    """Returns the inputs of a node. `unique`: whether the indices have no duplicates. The rows of
    data have 3 or 7 elements, so their length is not a multiple of a vector width."""
    if op == "ScatterND":
        shape = (5, 4, 3)
        indices = unique_nd_indices(rng, shape, 2, (7,)) if unique else None
        indices = any_indices(rng, shape[:2], (4, 9, 2)) if indices is None else indices
        moved = (*indices.shape[:-1], shape[2])
    else:
        shape = (5, 7)
        moved = (4, 3) if unique else (4, 7) if axis == 0 else (4, 30)
        indices = unique_elements_indices(rng, shape, moved, axis) if unique else None
        indices = any_indices(rng, shape[axis], moved) if indices is None else indices
    made = {"data": values(rng, element, shape), "updates": values(rng, element, moved)}
    made = {name: array.astype(element.fed) for name, array in made.items()}
    return {**made, "indices": indices}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("op", "opset", "reduction", "element", "index_type"), parameters())
def test_matrix(rng, op, opset, reduction, element, index_type) -> None:
    axis = 0 if op == "ScatterND" else int(rng.integers(2))
    attributes: dict[str, Any] = {} if op == "ScatterND" else {"axis": axis}
    if opset >= 16:
        attributes["reduction"] = reduction
    serialized = one_node(
        op, element, ([None] * (3 if op == "ScatterND" else 2), None, None),
        opset=opset, index_type=index_type, **attributes,
    )  # fmt: skip
    # Graph optimisation is off, because it could change the Cast nodes around the scatter.
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    for unique in (True, False):
        feeds = feeds_of(rng, op, element, axis, unique)
        feeds["indices"] = feeds["indices"].astype(INDEX_DTYPES[index_type])
        with counting() as count:
            found = run(ran, **feeds)
        assert count.done.runs == 1
        assert_same(found, wanted(op, axis, reduction, element, feeds), f"unique: {unique}")
        if unique:
            assert_as_built_in(found, op, reduction, element, serialized, feeds)


def is_refused(op: str, reduction: str, element: ElementType) -> bool:
    """Whether onnxruntime, in all tested versions, lacks a built-in kernel for this operator,
    reduction and element type."""
    if op == "TensorScatter":
        return element == STRING
    if element == FLOAT16:
        return reduction != "none" and (op == "ScatterND" or reduction in ("add", "mul"))
    if element == BFLOAT16:
        return reduction != "none"
    return element == BOOL and reduction in ("min", "max")


def built_in(serialized: bytes, feeds: dict[str, Array]) -> Array:
    ran = session(serialized, library=False, graph_optimization_level=UNOPTIMISED)
    with counting() as count:
        found = run(ran, **feeds)
    assert count.done.runs == 0
    return found


def assert_as_built_in(
    found: Array,
    op: str,
    reduction: str,
    element: ElementType,
    serialized: bytes,
    feeds: dict[str, Array],
) -> None:
    if is_refused(op, reduction, element):
        with pytest.raises(Exception, match="not supported|NOT_IMPLEMENTED"):
            built_in(serialized, feeds)
        return
    elsewhere = built_in(serialized, feeds)
    if reduction in ("min", "max") and element.is_float:
        # The minimum or maximum of +0 and -0 may be either zero, and the built-in kernel may return
        # another zero than the library. Adding 0 converts -0 to +0 in both results.
        found, elsewhere = found + found.dtype.type(0), elsewhere + found.dtype.type(0)
    assert_same(found, elsewhere, "built-in")


@needs_cache
@pytest.mark.sampled(6)
@pytest.mark.parametrize("element", TYPES, ids=str)
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("indices", ["given", "left_out"])
@pytest.mark.parametrize(("rank", "axis"), [(4, -2), (4, 1), (3, None), (3, 2)])
def test_cache(rng, element, mode, indices, rank, axis) -> None:
    shape = (3, 5, 4, 6)[:rank]
    attributes = {"mode": mode} | ({} if axis is None else {"axis": axis})
    axis = -2 if axis is None else axis
    moved = tuple(2 if at == axis % rank else size for at, size in enumerate(shape))
    serialized = one_node(
        "TensorScatter", element, ([None] * rank, None if indices == "left_out" else [None], None),
        opset=24, **attributes,
    )  # fmt: skip
    feeds = {"data": values(rng, element, shape), "updates": values(rng, element, moved)}
    feeds = {name: array.astype(element.fed) for name, array in feeds.items()}
    if indices == "given":
        most = shape[axis] - 2 if mode == "linear" else 40
        feeds["indices"] = rng.integers(0, most, 3, endpoint=True)
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    with counting() as count:
        found = run(ran, **feeds)
    assert count.done.runs == 1
    right = reference.tensor_scatter(
        feeds["data"], feeds["updates"], feeds.get("indices"), axis, mode
    )
    assert_same(found, right)
    assert_as_built_in(found, "TensorScatter", "none", element, serialized, feeds)


def test_newest_is_newer() -> None:
    assert NEWEST > 18
    assert NEWEST >= 24 or not HAS_CACHE


FLOATS = [element for element in TYPES if element.is_float]


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", reductions(18))
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_special_values(rng, op, reduction, element) -> None:
    """Combines all pairs of special values: infinities, NaN, +0, -0, a subnormal number, the
    largest numbers and some others. Results are compared bit by bit, but any two NaN are equal."""
    info = ml_dtypes.finfo(element.dtype)
    special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, info.max, info.min]
    special += [info.smallest_subnormal, info.smallest_normal]
    numbers = np.array(special, dtype=element.dtype).astype(element.fed)
    data, updates = (each.ravel() for each in np.meshgrid(numbers, numbers))
    feeds = {"data": data, "updates": np.concatenate([updates, updates[::-1]])}
    indices = np.tile(np.arange(len(data)), 2)
    feeds["indices"] = indices[:, None] if op == "ScatterND" else indices
    serialized = one_node(
        op, element, ([None], [None] * feeds["indices"].ndim, [None]), reduction=reduction
    )
    found = run(session(serialized, graph_optimization_level=UNOPTIMISED), **feeds)
    with np.errstate(all="ignore"):
        assert_same(found, wanted(op, 0, reduction, element, feeds))
