"""Compares scatters and gathers with the reference loop, for random types, shapes, strides and
options."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndscatter
import reference as ref
from strategies import COMPUTED, INTEGERS, MOVED, reductions, seeds, shapes, shapes_with_axis
from strategies import strided, values

OPERATORS = ["nd", "update", "elements"]
SCATTERS = {
    "nd": (ndscatter.scatter_nd, ref.pairs_nd),
    "update": (ndscatter.scatter_update, ref.pairs_along),
    "elements": (ndscatter.scatter_elements, ref.pairs_elements),
}
GATHERS = {
    "nd": (ndscatter.gather_nd, ref.pairs_nd),
    "update": (ndscatter.gather, ref.pairs_along),
    "elements": (ndscatter.gather_elements, ref.pairs_elements),
}


def integers(random, shape, sizes, bounds):
    """Return one array of random indices per size in `sizes`. Indices may be out of bounds, unless
    `bounds` is "error"."""
    slack = 2 if bounds != "error" else 0
    low = [-(size + slack) if random.random() < 0.5 else 0 for size in sizes]
    high = [size + slack for size in sizes]
    parts = [random.integers(lo, max(hi, lo + 1), shape) for lo, hi in zip(low, high, strict=True)]
    dtype = INTEGERS[int(random.integers(0, 4))]
    return [part.astype(dtype) for part in parts]


def case(random, operator, shape, bounds):
    """Return random indices for data of the shape `shape`, the keyword arguments of the operator,
    and the shape of the updates."""
    if operator == "nd":
        k = int(random.integers(0, len(shape) + 1))
        listed = tuple(random.integers(0, 4, int(random.integers(0, 3))))
        if 0 in shape[:k] and bounds != "skip":
            listed = (0, *listed)
        parts = integers(random, listed, shape[:k], bounds)
        indices = np.stack(parts, -1) if parts else np.zeros((*listed, 0), np.int64)
        return indices, {}, (*listed, *shape[k:])
    axis = int(random.integers(-len(shape), len(shape)))
    place = axis % len(shape)
    if operator == "update":
        listed = tuple(random.integers(0, 4, int(random.integers(0, 3))))
        if shape[place] == 0 and bounds != "skip":
            listed = (0, *listed)
        updates = (*shape[:place], *listed, *shape[place + 1 :])
    else:
        listed = tuple(int(random.integers(0, size + 1)) for size in shape)
        count = int(random.integers(0, 7)) if shape[place] or bounds == "skip" else 0
        listed = updates = (*listed[:place], count, *listed[place + 1 :])
    (indices,) = integers(random, listed, [shape[place]], bounds)
    return indices, {"axis": axis}, updates


def any_shape(operator):
    return shapes if operator == "nd" else shapes_with_axis


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=400, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_scatters(operator, draw, seed):
    random = np.random.default_rng(seed)
    dtype = draw.draw(st.sampled_from(COMPUTED))
    reduction = draw.draw(st.sampled_from(reductions(dtype)))
    bounds = draw.draw(st.sampled_from(["error", "skip", "clamp"]))
    include_self = draw.draw(st.booleans())
    shape = draw.draw(any_shape(operator))
    indices, keywords, updates_shape = case(random, operator, shape, bounds)
    data, updates = values(random, shape, dtype), values(random, updates_shape, dtype)
    scatter, pairs = SCATTERS[operator]
    expected = ref.apply(
        pairs(data, indices, **keywords), data, updates, reduction, include_self, bounds
    )
    meaning = dict(keywords, reduction=reduction, include_self=include_self, bounds=bounds)
    before = data.copy()
    result = scatter(strided(random, data), strided(random, indices), strided(random, updates), **meaning)
    assert type(result) is np.ndarray
    assert ref.same_bits(result, expected), (reduction, dtype)
    assert ref.same_bits(data, before), "data is unchanged"

    output = strided(random, np.zeros_like(data))
    assert scatter(data, indices, updates, out=output, threads=1, **meaning) is output
    assert ref.same_bits(output, expected), "into an output"

    place = strided(random, data.copy())
    assert scatter(place, indices, updates, out=place, threads=3, **meaning) is place
    assert ref.same_bits(place, expected), "in place"


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=200, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_scatters_of_types_that_are_moved(operator, draw, seed):
    random = np.random.default_rng(seed)
    dtype = draw.draw(st.sampled_from(MOVED))
    shape = draw.draw(any_shape(operator))
    indices, keywords, updates_shape = case(random, operator, shape, "error")
    data, updates = values(random, shape, dtype), values(random, updates_shape, dtype)
    scatter, pairs = SCATTERS[operator]
    expected = ref.apply(pairs(data, indices, **keywords), data, updates)
    result = scatter(strided(random, data), indices, strided(random, updates), **keywords)
    assert result.dtype == dtype
    assert result.tobytes() == expected.tobytes()
    place = strided(random, data)
    scatter(place, indices, updates, out=place, **keywords)
    assert place.tobytes() == expected.tobytes()


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=300, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_gathers(operator, draw, seed):
    random = np.random.default_rng(seed)
    dtype = draw.draw(st.sampled_from(COMPUTED + MOVED))
    bounds = draw.draw(st.sampled_from(["error", "skip", "clamp"]))
    shape = draw.draw(any_shape(operator))
    indices, keywords, result_shape = case(random, operator, shape, bounds)
    data = values(random, shape, dtype)
    gather, pairs = GATHERS[operator]
    expected = ref.take(pairs(data, indices, **keywords), data, result_shape, bounds)
    result = gather(strided(random, data), strided(random, indices), bounds=bounds, **keywords)
    assert result.dtype == dtype
    assert result.tobytes() == expected.tobytes()
    output = strided(random, np.zeros_like(expected))
    assert gather(data, indices, bounds=bounds, out=output, **keywords) is output
    assert output.tobytes() == expected.tobytes()


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_gathers_with_batch_dims(seed):
    random = np.random.default_rng(seed)
    batch, rows, width = (int(n) for n in random.integers(1, 5, 3))
    data = random.standard_normal((batch, rows, width))
    indices = random.integers(-rows, rows, (batch, 3, 1))
    expected = np.stack([data[b][indices[b, :, 0]] for b in range(batch)])
    assert ref.same_bits(ndscatter.gather_nd(data, indices, batch_dims=1), expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "S3", "g"])
@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_caches(dtype, seed):
    random = np.random.default_rng(seed)
    batch, heads, length, width = (int(n) for n in random.integers(1, 5, 4))
    count = int(random.integers(0, length + 1))
    mode = ("linear", "circular")[int(random.integers(2))]
    dtype = np.dtype(dtype)
    cache = values(random, (batch, heads, length, width), dtype)
    updates = values(random, (batch, heads, count, width), dtype)
    top = length - count + 1 if mode == "linear" else 3 * length
    positions = random.integers(0, top, batch)
    expected = cache.copy()
    for b in range(batch):
        for s in range(count):
            expected[b, :, (positions[b] + s) % length] = updates[b, :, s]
    result = ndscatter.tensor_scatter(cache, positions, updates, mode=mode)
    assert result.tobytes() == expected.tobytes()
    turned = np.ascontiguousarray(cache.swapaxes(1, 2))
    ndscatter.tensor_scatter(
        turned, positions, updates.swapaxes(1, 2), axis=1, mode=mode, out=turned
    )
    assert turned.swapaxes(1, 2).tobytes() == expected.tobytes()


def test_a_cache_without_positions_begins_at_0_and_idle_slots_are_skipped():
    cache, step = np.zeros((2, 3, 1), "f4"), np.ones((2, 1, 1), "f4")
    assert ndscatter.tensor_scatter(cache, None, step)[:, 0].all()
    result = ndscatter.tensor_scatter(cache, [-1, 2], step, bounds="skip")
    assert result[..., 0].tolist() == [[0, 0, 0], [0, 0, 1]]


def test_updates_are_broadcast_by_numpys_rules():
    data = np.zeros((3, 4))
    assert ndscatter.scatter_update(data, [0, 2], 1.5)[[0, 2]].tolist() == [[1.5] * 4] * 2
    row = ndscatter.scatter_update(data, [0, 2], np.arange(4.0))
    assert row[2].tolist() == [0, 1, 2, 3]
    column = ndscatter.scatter_nd(data, [[0], [2]], np.array([[1.0], [2.0]]))
    assert column[2].tolist() == [2] * 4
    one = ndscatter.scatter_nd(data, [[1, 1]], 7.0)
    assert one[1, 1] == 7
    text = ndscatter.scatter_update(np.array(["abc", "de"]), [0], np.array("xyz"))
    assert text.tolist() == ["xyz", "de"]
    with pytest.raises(ValueError, match="updates"):
        ndscatter.scatter_update(data, [0, 2], np.zeros(3))


def test_lists_and_scalars_take_the_type_of_data():
    data = np.zeros(3, np.float32)
    assert ndscatter.scatter_update(data, [1], [2]).tolist() == [0, 2, 0]
    assert ndscatter.scatter_update(data, 1, 2.5).dtype == np.float32
    assert ndscatter.scatter_update([1, 2], [], []).tolist() == [1, 2]
    with pytest.raises(TypeError):
        ndscatter.scatter_update(np.zeros(3, int), [1], [2.5])


def test_wide_sums_are_rounded_once():
    data = np.array([2048], np.float16)
    ones = np.ones(10, np.float16)
    zeros = np.zeros(10, int)
    native = ndscatter.scatter_update(data, zeros, ones, reduction="add")
    wide = ndscatter.scatter_update(data, zeros, ones, reduction="add", accumulate="wide")
    assert (native[0], wide[0]) == (2048, 2058)


def test_reductions_have_the_names_of_other_runtimes():
    data = np.ones(2)
    for name in ("mul", "prod", "multiply", "MUL"):
        assert ndscatter.scatter_update(data, [0], [3.0], reduction=name)[0] == 3


@pytest.mark.parametrize("size", [513, 5003, 140_007])
@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "c16"])
def test_long_gathers(size, dtype):
    random = np.random.default_rng(size)
    data = (random.standard_normal(9001) * 100).astype(dtype)
    for kind in ("i8", "i4", "i2", "u4"):
        index = random.integers(0, 9001, size).astype(kind)
        if kind != "u4":
            index[::100] -= 9001
        for threads in (1, 2, 5):
            assert ref.same_bits(ndscatter.gather(data, index, threads=threads), data[index])
        index[size // 2] = 9001
        with pytest.raises(IndexError, match=f"{size // 2}"):
            ndscatter.gather(data, index)
        out = np.full(size, 7, dtype)
        with pytest.raises(IndexError):
            ndscatter.gather(data, index, out=out)
        assert (out == 7).all(), "out is not written"


def test_large_calls_have_the_same_bits_at_every_number_of_threads():
    random = np.random.default_rng(7)
    data = random.standard_normal((5000, 16)).astype("f4")
    indices = random.integers(-5000, 5000, 40_000)
    updates = random.standard_normal((40_000, 16)).astype("f4")
    expected = data.copy()
    np.add.at(expected, indices, updates)
    for threads in (None, 1, 2, 3, 8):
        result = ndscatter.scatter_update(data, indices, updates, reduction="add", threads=threads)
        assert ref.same_bits(result, expected), threads
