"""Tests of element types with separate code paths: 8-bit floats, which a scatter copies but does
not reduce, 4-bit elements, and strings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import reference
from common import (
    BFLOAT16,
    FLOAT8,
    FOUR_BITS,
    HAS_CACHE,
    HAS_RAW_VALUES,
    OWN,
    STRING,
    UNOPTIMISED,
    any_indices,
    assert_same,
    counting,
    needs_cache,
    one_node,
    raw_bytes,
    raw_value,
    run,
    run_in_one_buffer,
    session,
    values,
)

DOMAINS = {"standard": "", "own": OWN}


def by_domain(domain: str, opset: int = 18) -> dict[str, Any]:
    return {"domain": DOMAINS[domain], "opset": 24 if HAS_CACHE else opset}


# 8-bit floats


@pytest.mark.parametrize("element", FLOAT8, ids=str)
@pytest.mark.parametrize("domain", DOMAINS)
def test_float8_nd(rng, element, domain) -> None:
    serialized = one_node("ScatterND", element, ([6, 5], [4, 1], [4, 5]), **by_domain(domain, 19))
    data, updates = (values(rng, element, shape).astype("f4") for shape in ((6, 5), (4, 5)))
    indices = any_indices(rng, 6, (4, 1))
    with counting() as count:
        ran = session(serialized, graph_optimization_level=UNOPTIMISED)
        found = run(ran, data=data, updates=updates, indices=indices)
    assert count.done.runs == 1
    assert_same(found, reference.scatter_nd(data, indices, updates))


@pytest.mark.parametrize("element", FLOAT8, ids=str)
@pytest.mark.parametrize("op", ["ScatterElements", "Scatter"])
def test_float8_elements(rng, element, op) -> None:
    serialized = one_node(op, element, ([6, 5], [9, 5], [9, 5]), domain=OWN, opset=19)
    data, updates = (values(rng, element, shape).astype("f4") for shape in ((6, 5), (9, 5)))
    indices = any_indices(rng, 6, (9, 5))
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    found = run(ran, data=data, updates=updates, indices=indices)
    assert_same(found, reference.scatter_elements(data, indices, updates))


@needs_cache
@pytest.mark.parametrize("element", FLOAT8, ids=str)
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_float8_cache(rng, element, mode, domain) -> None:
    shapes = (2, 3, 8, 5), (2, 3, 4, 5)
    data, updates = (values(rng, element, shape).astype("f4") for shape in shapes)
    indices = np.array([4, 1] if mode == "linear" else [6, 99])
    serialized = one_node(
        "TensorScatter", element, (shapes[0], [2], shapes[1]), mode=mode, **by_domain(domain)
    )
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    found = run(ran, data=data, updates=updates, indices=indices)
    assert_same(found, reference.tensor_scatter(data, updates, indices, mode=mode))


@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max", "sub", "mean"])
@pytest.mark.parametrize("element", FLOAT8, ids=str)
def test_float8_is_not_reduced(rng, element, reduction) -> None:
    serialized = one_node(
        "ScatterND", element, ([4], [2, 1], [2]), domain=OWN, opset=19, reduction=reduction
    )
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    feeds = {"data": np.ones(4, "f4"), "updates": np.ones(2, "f4")}
    with pytest.raises(Exception, match="NOT_IMPLEMENTED.*ndscatter|reduction"):
        run(ran, indices=np.array([[0], [1]]), **feeds)


@pytest.mark.parametrize("element", [BFLOAT16, *FLOAT8], ids=str)
def test_every_pattern_is_moved(element) -> None:
    """Checks that a scatter without a reduction keeps all bits of bfloat16 and 8-bit float
    elements, also of NaN. Older versions of onnxruntime's Python interface cannot make tensors of
    these types. With such a version, the model casts its inputs from float32 and its output to
    float32. The test then compares the float32 values."""
    size = 8 * element.dtype.itemsize
    patterns = np.arange(2**size, dtype=f"u{element.dtype.itemsize}")
    if HAS_RAW_VALUES:
        order = np.random.default_rng(1).permutation(patterns.size)
        opset = 24 if HAS_CACHE else 19
        proto = one_node("ScatterND", element._replace(is_cast=False), ([None], [None, 1], [None]),
                         domain=OWN, opset=opset)  # fmt: skip
        feeds = {
            "data": raw_value(element.code, patterns.shape, bytes(patterns.nbytes)),
            "updates": raw_value(element.code, patterns.shape, patterns.tobytes()),
            "indices": raw_value(TensorProto.INT64, (order.size, 1), order.tobytes()),
        }
        (found,) = session(proto).run_with_ort_values(None, feeds)
        wanted = np.zeros_like(patterns)
        wanted[order] = patterns
        assert raw_bytes(found) == wanted.tobytes()
    else:
        proto = one_node("ScatterND", element, ([None], [None, 1], [None]), domain=OWN, opset=19)
        updates = patterns.view(element.dtype).astype("f4")
        # Updates without infinities, because a cast to an 8-bit float converts infinity to the
        # largest finite number.
        updates = updates[~np.isinf(updates)]
        order = np.random.default_rng(1).permutation(updates.size)
        ran = session(proto, graph_optimization_level=UNOPTIMISED)
        found = run(ran, data=np.zeros_like(updates), updates=updates, indices=order[:, None])
        wanted = np.zeros_like(updates)
        wanted[order] = updates
        assert_same(found, wanted)


# 4-bit elements. The models use opset 24, which supports all three 4-bit types: UINT4, INT4 and
# FLOAT4E2M1.


def pack(nibbles: reference.Array) -> bytes:
    """Packs two 4-bit elements per byte. The first element of a pair is in the lower four bits."""
    flat = nibbles.ravel()
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8).tobytes()


def nibbles(rng: np.random.Generator, shape: tuple[int, ...]) -> reference.Array:
    return rng.integers(0, 16, shape).astype(np.uint8)


def run_packed(
    name: str, op: str, domain: str, tensors: dict[str, reference.Array], **attributes: Any
) -> bytes:
    code = FOUR_BITS[name]
    element = STRING._replace(name=name)
    shapes = tuple(list(tensors[each].shape) for each in ("data", "indices", "updates"))
    serialized = one_node(op, element, shapes, domain=domain, opset=24, **attributes)
    feeds = {each: raw_value(code, tensors[each].shape, pack(tensors[each]))
             for each in ("data", "updates")}  # fmt: skip
    indices = tensors["indices"].astype(np.int64)
    feeds["indices"] = raw_value(TensorProto.INT64, indices.shape, indices.tobytes())
    (found,) = session(serialized).run_with_ort_values(None, feeds)
    assert found.shape() == list(tensors["data"].shape)
    return raw_bytes(found)


@needs_cache
@pytest.mark.parametrize("name", FOUR_BITS)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize(
    ("depth", "shape"), [(1, (5, 6)), (1, (4, 3, 2)), (2, (3, 5, 2, 3)), (1, (3, 8))]
)
def test_four_bits_nd(rng, name, domain, depth, shape) -> None:
    indices = any_indices(rng, shape[:depth], (4, 2, depth))
    tensors = {"data": nibbles(rng, shape), "updates": nibbles(rng, (4, 2, *shape[depth:]))}
    wanted = reference.scatter_nd(tensors["data"], indices, tensors["updates"])
    with counting() as count:
        found = run_packed(name, "ScatterND", DOMAINS[domain], {**tensors, "indices": indices})
    assert count.done.runs == 1
    assert found == pack(wanted)


@needs_cache
@pytest.mark.parametrize("name", FOUR_BITS)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(
    ("axis", "shape"), [(-2, (3, 5, 2)), (1, (2, 7, 3, 4)), (2, (2, 2, 5, 6)), (-1, (2, 3, 4))]
)
def test_four_bits_cache(rng, name, domain, mode, axis, shape) -> None:
    length = 2
    moved = [*shape]
    moved[axis] = length
    data, updates = nibbles(rng, shape), nibbles(rng, tuple(moved))
    most = shape[axis] - length if mode == "linear" else 50
    indices = rng.integers(0, most, shape[0], endpoint=True)
    tensors = {"data": data, "updates": updates, "indices": indices}
    given = {"axis": axis, "mode": mode}
    if axis == -1:
        with pytest.raises(Exception, match="NOT_IMPLEMENTED.*ndscatter: .*whole bytes"):
            run_packed(name, "TensorScatter", DOMAINS[domain], tensors, **given)
        return
    found = run_packed(name, "TensorScatter", DOMAINS[domain], tensors, **given)
    assert found == pack(reference.tensor_scatter(data, updates, indices, axis, mode))


@needs_cache
@pytest.mark.parametrize("name", FOUR_BITS)
@pytest.mark.parametrize(
    ("op", "data", "indices", "updates", "attributes"),
    [
        ("ScatterND", (4, 3), (2, 1), (2, 3), {}),
        ("ScatterND", (4, 2), (2, 2), (2,), {}),
        ("ScatterElements", (4, 2), (2, 2), (2, 2), {}),
        ("ScatterND", (4, 2), (2, 1), (2, 2), {"reduction": "add"}),
    ],
    ids=["odd_window", "single", "elements", "reduction"],
)
def test_four_bits_refused(rng, name, op, data, indices, updates, attributes) -> None:
    tensors = {"data": nibbles(rng, data), "updates": nibbles(rng, updates)}
    tensors["indices"] = np.zeros(indices, np.int64)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED.*(ndscatter: |reduction)"):
        run_packed(name, op, OWN, tensors, **attributes)


@needs_cache
@pytest.mark.parametrize("name", FOUR_BITS)
def test_four_bits_out_of_bounds(rng, name) -> None:
    tensors = {"data": nibbles(rng, (4, 2)), "updates": nibbles(rng, (1, 2))}
    tensors["indices"] = np.array([[4]])
    with pytest.raises(Exception, match="ndscatter: index 4 of tuple 0 is out of bounds"):
        run_packed(name, "ScatterND", OWN, tensors)


# Strings

LENGTHS = (0, 1, 15, 16, 22, 23, 1000, 100_000)
TEXTS = ["x" * length for length in LENGTHS] + ["zażółć gęślą jaźń", "散布", "🦀🦀", "é" * 40_000]

# The host never chooses to run a scatter of strings in place. A caller can request a run in place
# by binding the output to the memory of data. `WAYS` runs a scatter of strings in both ways.
WAYS = {"apart": run, "in_place": run_in_one_buffer}


def texts(rng: np.random.Generator, shape: tuple[int, ...]) -> reference.Array:
    made = np.empty(shape, dtype=object)
    made.ravel()[:] = [TEXTS[at] for at in rng.integers(0, len(TEXTS), made.size)]
    return made


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
@pytest.mark.parametrize("way", WAYS)
def test_strings(rng, domain, reduction, op, way) -> None:
    """Scatters empty strings, long strings and strings with multi-byte characters, with duplicate
    indices. A session runs twice, and the second run must not use strings of the first run."""
    given = {"reduction": reduction} | ({"axis": 1} if op == "ScatterElements" else {})
    shapes = ([None, 4], [None, None], [None, None])
    serialized = one_node(op, STRING, shapes, **by_domain(domain), **given)
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    for rows in (6, 3):
        data = texts(rng, (rows, 4))
        before = data.copy()
        rules = reference.Rules(reduction=reduction)
        if op == "ScatterND":
            indices, updates = any_indices(rng, rows, (5, 1)), texts(rng, (5, 4))
            wanted = reference.scatter_nd(data, indices, updates, rules)
        else:
            indices, updates = any_indices(rng, 4, (rows, 7)), texts(rng, (rows, 7))
            wanted = reference.scatter_elements(data, indices, updates, 1, rules)
        with counting() as count:
            found = WAYS[way](ran, data=data, indices=indices, updates=updates)
        assert count.done == (1, int(way == "in_place"), 0)
        assert_same(found, wanted)
        assert_same(data, before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("include_self", [0, 1])
@pytest.mark.parametrize("bounds", ["skip", "clamp"])
def test_strings_own(rng, reduction, include_self, bounds, way) -> None:
    serialized = one_node(
        "ScatterND", STRING, ([None, 2], [None, 1], [None, 2]), domain=OWN,
        reduction=reduction, include_self=include_self, bounds=bounds,
    )  # fmt: skip
    data, updates = texts(rng, (4, 2)), texts(rng, (9, 2))
    indices = np.array([0, 1, 1, 7, -9, 0, 2, -1, -4])[:, None]
    rules = reference.Rules(reduction, include_self, bounds)
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    found = WAYS[way](ran, data=data, indices=indices, updates=updates)
    assert_same(found, reference.scatter_nd(data, indices, updates, rules))


@needs_cache
@pytest.mark.parametrize("way", WAYS)
def test_strings_cache(rng, way) -> None:
    serialized = one_node("TensorScatter", STRING, ([2, 5, 2], [2], [2, 3, 2]), opset=24)
    data, updates = texts(rng, (2, 5, 2)), texts(rng, (2, 3, 2))
    indices = np.array([2, 0])
    ran = session(serialized, graph_optimization_level=UNOPTIMISED)
    with counting() as count:
        found = WAYS[way](ran, data=data, indices=indices, updates=updates)
    assert count.done == (1, int(way == "in_place"), 0)
    assert_same(found, reference.tensor_scatter(data, updates, indices))


@pytest.mark.parametrize("reduction", ["mul", "min", "max", "sub", "mean"])
def test_strings_refused(reduction) -> None:
    serialized = one_node("ScatterND", STRING, ([1], [1, 1], [1]), domain=OWN, reduction=reduction)
    word = np.array(["a"], dtype=object)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED.*ndscatter: .*of strings"):
        run(session(serialized), data=word, updates=word, indices=np.array([[0]]))


def test_strings_bad_index_writes_nothing(rng) -> None:
    serialized = one_node("ScatterND", STRING, ([2], [2, 1], [2]), reduction="add")
    ran = session(serialized)
    data, updates = texts(rng, (2,)), texts(rng, (2,))
    with pytest.raises(Exception, match="ndscatter: index 2 of tuple 1 is out of bounds"):
        run(ran, data=data, updates=updates, indices=np.array([[0], [2]]))
    found = run(ran, data=data, updates=updates, indices=np.array([[0], [1]]))
    assert_same(found, data + updates)
