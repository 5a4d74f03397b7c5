"""Tests of invalid attributes, shapes, indices, element types and inputs.

For an invalid attribute, shape or index, the library raises an exception with its own message. The
process stays usable. A session stays usable after a failed run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import reference
from common import (
    FLOAT,
    INT64,
    OWN,
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

LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max

# Invalid attributes. They prevent the creation of the session.

WRONG_ATTRIBUTES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "unknown_reduction": ("ScatterND", "", {"reduction": "foo"}, '"reduction" is "foo"; use one of none, add, mul, min, max'),
    "reduction_in_capitals": ("ScatterND", "", {"reduction": "ADD"}, '"ADD"; use one of'),
    "empty_reduction": ("ScatterND", "", {"reduction": ""}, '"reduction"'),
    "reduction_of_own": ("ScatterElements", "", {"reduction": "mean"}, '"mean"; use one of none, add, mul, min, max'),
    "reduction_int": ("ScatterND", "", {"reduction": 1}, '"reduction" has a type that the operator does not allow'),
    "reduction_float": ("ScatterElements", "", {"reduction": 1.5}, '"reduction" has a type that the operator does not allow'),
    "axis_float": ("ScatterElements", "", {"axis": 1.5}, '"axis" has a type that the operator does not allow'),
    "axis_text": ("ScatterElements", "", {"axis": "1"}, '"axis" has a type that the operator does not allow'),
    "scatter_axis": ("Scatter", "", {"axis": "x"}, '"axis" has a type that the operator does not allow'),
    "own_reduction": ("ScatterND", OWN, {"reduction": "foo"}, "use one of none, add, sub, mul, min, max, mean"),
    "own_bounds": ("ScatterND", OWN, {"bounds": "wrap"}, '"bounds" is "wrap"; use one of error, skip, clamp'),
    "own_bounds_int": ("ScatterND", OWN, {"bounds": 1}, '"bounds" has a type that the operator does not allow'),
    "own_accumulate": ("ScatterND", OWN, {"accumulate": "f32"}, '"accumulate" is "f32"; use one of native, wide'),
    "own_include_self": ("ScatterND", OWN, {"include_self": 2}, '"include_self" is 2; use 0 or 1'),
    "own_include_self_text": ("ScatterElements", OWN, {"include_self": "1"}, '"include_self" has a type that the operator does not allow'),
    "own_reject": ("ScatterND", OWN, {"reject_duplicates": -1}, '"reject_duplicates" is -1; use 0 or 1'),
    "own_negative": ("ScatterND", OWN, {"negative_indices": 7}, '"negative_indices" is 7; use 0 or 1'),
    "own_negative_float": ("ScatterND", OWN, {"negative_indices": 1.0}, '"negative_indices" has a type that the operator does not allow'),
}  # fmt: skip

LISTS = {
    "axis_list": ("ScatterElements", {"axis": [1]}),
    "reduction_list": ("ScatterElements", {"reduction": ["add"]}),
    "bounds_list": ("ScatterND", {"bounds": ["skip"]}),
    "include_self_floats": ("ScatterND", {"include_self": [0.0, 1.0]}),
}


def attributes_model(op: str, domain: str, given: dict[str, Any]) -> bytes:
    opset = 9 if op == "Scatter" and not domain else 18
    shapes = ([None, None], [None, 1] if op == "ScatterND" else [None, None], [None, None])
    return one_node(op, FLOAT, shapes, opset=opset, domain=domain, **given)


@pytest.mark.parametrize("case", WRONG_ATTRIBUTES)
def test_wrong_attribute(case) -> None:
    op, domain, given, message = WRONG_ATTRIBUTES[case]
    with pytest.raises(Exception) as raised:
        session(attributes_model(op, domain, given))
    assert "ndscatter: the attribute " in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize("case", LISTS)
def test_attribute_that_is_a_list(case) -> None:
    op, given = LISTS[case]
    with pytest.raises(Exception, match="ndscatter: the attribute .*has a type"):
        session(attributes_model(op, OWN, given))


@needs_cache
@pytest.mark.parametrize("domain", ["", OWN], ids=["standard", "own"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "ring"}, '"mode" is "ring"; use one of linear, circular'),
        ({"mode": 1}, '"mode" has a type'),
        ({"axis": 0.5}, '"axis" has a type'),
    ],
    ids=["mode", "mode_int", "axis_float"],
)
def test_wrong_attribute_of_a_cache(domain, given, message) -> None:
    serialized = one_node(
        "TensorScatter", FLOAT, ([2, 4, 3], [2], [2, 1, 3]), opset=24, domain=domain, **given
    )
    with pytest.raises(Exception) as raised:
        session(serialized)
    assert "ndscatter: " in str(raised.value)
    assert message in str(raised.value)


# Invalid shapes and indices. The run fails. The next run of the session with valid inputs is
# correct.

D, U = (4, 3), (2, 3)
RUNS: dict[str, tuple[str, tuple[int, ...], Any, tuple[int, ...], dict[str, Any], str]] = {
    # For each case: operator, shape of data, indices, shape of updates, attributes, and a pattern
    # of the error message.
    "index_too_large": ("ScatterND", D, [[0], [4]], U, {}, "index 4 of tuple 1 is out of bounds for axis 0 of size 4"),
    "index_too_low": ("ScatterND", D, [[-5], [0]], U, {}, "index -5 of tuple 0 is out of bounds for axis 0 of size 4"),
    "lowest_index": ("ScatterND", D, [[0], [LOW]], U, {}, f"index {LOW} of tuple 1"),
    "highest_index": ("ScatterND", D, [[0], [HIGH]], U, {}, f"index {HIGH} of tuple 1"),
    "inner_index": ("ScatterND", D, [[0, 0], [0, 3]], (2,), {}, "index 3 of tuple 1 is out of bounds for axis 1 of size 3"),
    "index_of_an_empty_axis": ("ScatterND", (0, 3), [[0], [0]], U, {}, "out of bounds for axis 0 of size 0"),
    "element_index": ("ScatterElements", D, [[0, 0, 4]], (1, 3), {}, "index 4 of tuple 2 is out of bounds for axis 0 of size 4"),
    "element_index_on_axis_1": ("ScatterElements", D, [[0, -4, 0]], (1, 3), {"axis": 1}, "index -4 of tuple 1 is out of bounds for axis 1 of size 3"),
    "axis_too_large": ("ScatterElements", D, [[0, 0, 0]], (1, 3), {"axis": 2}, "axis 2 is out of range for data of rank 2"),
    "axis_too_low": ("ScatterElements", D, [[0, 0, 0]], (1, 3), {"axis": -3}, "axis -3 is out of range for data of rank 2"),
    "highest_axis": ("ScatterElements", D, [[0, 0, 0]], (1, 3), {"axis": HIGH}, "axis"),
    "lowest_axis": ("ScatterElements", D, [[0, 0, 0]], (1, 3), {"axis": LOW}, "axis"),
    "tuple_too_deep": ("ScatterND", D, [[0, 0, 0]], (1,), {}, "rank"),
    "indices_of_rank_0": ("ScatterND", D, 0, (3,), {}, "rank"),
    "updates_too_short": ("ScatterND", D, [[0], [1]], (1, 3), {}, "shape"),
    "updates_too_long": ("ScatterND", D, [[0], [1]], (3, 3), {}, "shape"),
    "updates_transposed": ("ScatterND", D, [[0], [1]], (3, 2), {}, "shape"),
    "updates_of_other_rank": ("ScatterND", D, [[0], [1]], (6,), {}, "shape"),
    "elements_of_other_rank": ("ScatterElements", D, [0, 0, 0], (3,), {}, "rank"),
    "elements_too_wide": ("ScatterElements", D, [[0, 0, 0, 0]], (1, 4), {}, "shape|axis|size"),
    "elements_updates": ("ScatterElements", D, [[0, 0, 0]], (1, 2), {}, "shape"),
    "scalar_elements": ("ScatterElements", (), 0, (), {}, "rank|axis"),
    "own_index": ("own ScatterND", D, [[0], [-1]], U, {"negative_indices": 0}, "index -1 of tuple 1 is out of bounds"),
    "own_duplicate": ("own ScatterND", D, [[1], [-3]], U, {"reject_duplicates": 1}, "duplicate|same|repeat"),
    "own_empty_clamp": ("own ScatterND", (0, 3), [[0], [0]], U, {"bounds": "clamp"}, "out of bounds for axis 0 of size 0"),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("case", RUNS)
def test_wrong_run(rng, case, constant, reduction) -> None:
    op, shape, indices, moved, given, message = RUNS[case]
    *own, op = op.split()
    indices = np.array(indices, np.int64)
    serialized = one_node(
        op, FLOAT, (None, None, None), domain=OWN if own else "", reduction=reduction,
        indices=indices if constant else None, **given,
    )  # fmt: skip
    ran = session(serialized, threads=2)
    feeds = {"data": values(rng, FLOAT, shape), "updates": values(rng, FLOAT, moved)}
    feeds |= {} if constant else {"indices": indices}
    before = {name: array.copy() for name, array in feeds.items()}
    for _ in range(2):
        with counting() as count, pytest.raises(Exception, match=f"ndscatter: .*({message})"):
            run(ran, **feeds)
        assert count.done.runs == 0
    for name, array in before.items():
        assert_same(feeds[name], array, name)
    if constant or "axis" in case:
        return
    # After the failed runs, the session gives correct results for valid inputs.
    good = {"data": values(rng, FLOAT, D), "updates": values(rng, FLOAT, (1, 3))}
    good["indices"] = np.zeros((1, 1 if op == "ScatterND" else 3), np.int64)
    rules = reference.Rules(reduction)
    if op == "ScatterND":
        wanted = reference.scatter_nd(good["data"], good["indices"], good["updates"], rules)
    else:
        wanted = reference.scatter_elements(
            good["data"], good["indices"], good["updates"], given.get("axis", 0), rules
        )
    assert_same(run(ran, **good), wanted)


C = (2, 5, 3)
CACHES: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...], dict[str, Any], str]] = {
    "no_room": (C, [0, 4], (2, 2, 3), {}, "index 4"),
    "negative": (C, [0, -1], (2, 1, 3), {}, "index -1"),
    "negative_circular": (C, [0, -1], (2, 1, 3), {"mode": "circular"}, "index -1"),
    "more_rows_than_cache": (C, [0, 0], (2, 6, 3), {}, "does not fit"),
    "more_rows_than_cache_circular": (C, [0, 0], (2, 6, 3), {"mode": "circular"}, "does not fit"),
    "other_width": (C, [0, 0], (2, 1, 2), {}, "shape"),
    "other_batch": (C, [0, 0, 0], (3, 1, 3), {}, "shape"),
    "other_rank": (C, [0, 0], (2, 3), {}, "shape"),
    "few_indices": (C, [0], (2, 1, 3), {}, "shape"),
    "axis_0": (C, [0, 0], (2, 5, 3), {"axis": 0}, "axis"),
    "axis_3": (C, [0, 0], (2, 5, 3), {"axis": 3}, "axis"),
    "axis_of_batch": (C, [0, 0], (2, 5, 3), {"axis": -3}, "axis"),
    "line": ((5,), [0], (1,), {}, "axis|rank"),
    "highest": (C, [0, HIGH], (2, 1, 3), {}, f"index {HIGH}"),
}  # fmt: skip


@needs_cache
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("case", CACHES)
def test_wrong_cache(rng, case, constant) -> None:
    shape, indices, moved, given, message = CACHES[case]
    indices = np.array(indices, np.int64)
    serialized = one_node(
        "TensorScatter", FLOAT, (None, [None], None), opset=24,
        indices=indices if constant else None, **given,
    )  # fmt: skip
    ran = session(serialized)
    feeds = {"data": values(rng, FLOAT, shape), "updates": values(rng, FLOAT, moved)}
    feeds |= {} if constant else {"indices": indices}
    for _ in range(2):
        with pytest.raises(Exception, match=f"ndscatter: .*({message})"):
            run(ran, **feeds)


def of_types(op: str, *types: int) -> bytes:
    inputs = [value(name, of, None) for name, of in zip("diu", types, strict=True)]
    return model([node(op, list("diu"), ["o"])], inputs, [value("o", types[0], None)])


F32, F64, I64, I32 = (TensorProto.DataType.Value(n) for n in ("FLOAT", "DOUBLE", "INT64", "INT32"))


@pytest.mark.parametrize(
    ("op", "types"),
    [
        ("ScatterND", (F32, I64, F64)),
        ("ScatterND", (F32, F32, F32)),
        ("ScatterND", (F32, I32, F32)),
        ("ScatterElements", (F32, I64, I64)),
        ("ScatterElements", (F32, F64, F32)),
    ],
    ids=["other_updates", "float_indices", "i32_tuples", "int_updates", "double_indices"],
)
def test_types_that_do_not_fit(op, types) -> None:
    with pytest.raises(Exception, match=r"Type|type|implementation"):
        session(of_types(op, *types))


@pytest.mark.parametrize("inputs", [1, 2, 4])
@pytest.mark.parametrize("library", [False, True], ids=["built_in", "library"])
def test_wrong_number_of_inputs(inputs, library) -> None:
    names = list("diux")[:inputs]
    types = dict(zip("diux", (F32, I64, F32, F32)))
    serialized = model(
        [node("ScatterND", names, ["o"])],
        [value(name, types[name], None) for name in names],
        [value("o", F32, None)],
    )
    with pytest.raises(Exception, match=r"ScatterND|input"):
        session(serialized, library=library)


@pytest.mark.parametrize("missing", ["data", "indices", "updates"])
def test_input_left_out(rng, missing) -> None:
    """The node omits a required input. Either the host refuses to create the session, or the run
    fails."""
    names = [name if name != missing else "" for name in ("data", "indices", "updates")]
    types = {"data": F32, "indices": I64, "updates": F32}
    serialized = model(
        [node("ScatterND", names, ["output"])],
        [value(name, types[name], None) for name in names if name],
        [value("output", F32, None)],
    )
    feeds = {"data": values(rng, FLOAT, D), "updates": values(rng, FLOAT, U)}
    feeds["indices"] = np.zeros((2, 1), np.int64)
    del feeds[missing]
    with pytest.raises(Exception, match=r"ndscatter: an input is missing|ScatterND|[Ii]nput"):
        run(session(serialized), **feeds)


def test_wrong_declared_output(rng) -> None:
    """The model declares an output shape that differs from the shape of data. Either the host
    refuses to create the session, or the run returns an output with the shape of data."""
    serialized = one_node("ScatterND", FLOAT, ([4, 3], [1, 1], [1, 3]), output=[5, 3])
    feeds = {"data": values(rng, FLOAT, D), "updates": values(rng, FLOAT, (1, 3))}
    feeds["indices"] = np.array([[2]])
    try:
        ran = session(serialized)
    except Exception as error:  # noqa: BLE001  (hosts raise different types)
        assert "shape" in str(error).lower() or "dim" in str(error).lower()
        return
    wanted = reference.scatter_nd(feeds["data"], feeds["indices"], feeds["updates"])
    assert_same(run(ran, **feeds), wanted)


def test_many_failed_runs(rng) -> None:
    """Every second run of a session has an invalid index and fails. The results of the other runs
    are correct."""
    ran = session(one_node("ScatterND", INT64, ([None], [None, 1], [None]), reduction="add"))
    data, updates = values(rng, INT64, (10,)), values(rng, INT64, (20,))
    for at in range(200):
        indices = rng.integers(-10, 10, (20, 1))
        if at % 2:
            indices[rng.integers(20)] = rng.choice([10, -11, LOW, HIGH])
            with pytest.raises(Exception, match="ndscatter: index .*out of bounds"):
                run(ran, data=data, indices=indices, updates=updates)
        else:
            wanted = reference.scatter_nd(data, indices, updates, reference.Rules("add"))
            assert_same(run(ran, data=data, indices=indices, updates=updates), wanted)
