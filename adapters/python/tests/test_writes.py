"""Compares writes of slots, writes of rows and moves of rows with a loop in numpy."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndscatter
from strategies import COMPUTED, INTEGERS, MOVED, seeds, strided, values

FLOAT8 = {"float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 448.0), "float8_e5m2": (ml_dtypes.float8_e5m2, 57344.0)}
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}
SOURCES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
#: The element type of a cache of each format. `None` is the type that the format names.
CACHES = [
    ("float32", None, np.float32),
    ("float16", None, np.float16),
    ("bfloat16", None, ml_dtypes.bfloat16),
    ("float8_e4m3fn", None, ml_dtypes.float8_e4m3fn),
    ("float8_e4m3fn", "float8_e4m3fn", np.uint8),
    ("float8_e5m2", None, ml_dtypes.float8_e5m2),
    ("float8_e5m2", "fp8_e5m2", np.int8),
    ("int8", None, np.int8),
    ("int8", "int8", np.int8),
    ("uint8", "uint8", np.uint8),
    ("int4", "int4", np.uint8),
    ("uint4", "uint4", np.int8),
]


def converted(updates, format, scale, zero_point, scaling, rounding):
    """Return the elements of a cache: bytes for the formats of 8 and 4 bits. Values are in the range
    of the format, or are clamped."""
    x = updates.astype(np.float32)
    if scale is not None:
        x = x / scale if scaling == "divide" else x * (np.float32(1) / scale)
    if format in RANGES:
        low, high = RANGES[format]
        whole = np.clip(np.rint(x) + (0 if zero_point is None else zero_point), low, high).astype(int)
        if format in ("int8", "uint8"):
            return (whole & 0xFF).astype(np.uint8)
        return ((whole[..., 0::2] & 0xF) | (whole[..., 1::2] & 0xF) << 4).astype(np.uint8)
    if format in FLOAT8:
        dtype, largest = FLOAT8[format]
        if rounding == "saturate":
            x = np.clip(x, -largest, largest)
        return x.astype(dtype).view(np.uint8)
    return x.astype({"bfloat16": ml_dtypes.bfloat16}.get(format, format))


def in_bytes(array):
    return array.view(np.uint8) if array.dtype.itemsize == 1 else array


@pytest.mark.parametrize("format, name, dtype", CACHES)
@settings(max_examples=60, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_converting_writes(format, name, dtype, draw, seed):
    random = np.random.default_rng(seed)
    blocks, size, heads = (int(random.integers(1, 5)) for _ in range(3))
    dim = 2 * int(random.integers(1, 12))
    slots = random.integers(-2, blocks * size, int(random.integers(0, 9))).astype(random.choice(INTEGERS[:4]))
    source = draw.draw(st.sampled_from(SOURCES))
    updates = (random.normal(size=(len(slots), heads, dim)) * 30).astype(source)
    rounding = draw.draw(st.sampled_from(["nearest even", "saturate"]))
    scaling = draw.draw(st.sampled_from(["divide", "reciprocal"]))
    shape = draw.draw(st.sampled_from([None, (), (len(slots), 1, 1), (heads, dim)]))
    scale = None if shape is None else np.asarray(random.uniform(0.5, 2, shape), np.float32)
    has_zero = format in RANGES and draw.draw(st.booleans())
    zero_point = random.integers(0, 8, (heads, 1)).astype(np.int32) if has_zero else None
    width = dim // 2 if format in ("int4", "uint4") else dim
    cache = np.zeros((blocks, size, heads, width), dtype)
    expected = in_bytes(cache.copy())
    rows = converted(updates, format, scale, zero_point, scaling, rounding)
    for row, slot in zip(rows, slots, strict=True):
        if slot >= 0:
            expected[slot // size, slot % size] = row
    options = dict(format=name, rounding=rounding, scaling=scaling, scale=scale, zero_point=zero_point)
    given = strided(random, updates)
    for threads in (1, None):
        outcome = cache.copy()
        ndscatter.write_paged(outcome, slots, given, threads=threads, **options)
        assert np.array_equal(in_bytes(outcome), expected)
    # The same cache, stored as `[blocks, heads, block_size, dim]`, by a plan.
    stored = np.zeros((blocks, heads, size, width), dtype)
    view = stored.transpose(0, 2, 1, 3)
    plan = ndscatter.plan_scatter_paged(view, slots)
    assert plan.skipped == np.count_nonzero(slots < 0)
    plan.write_all([ndscatter.Write(view, given, **options)])
    assert np.array_equal(in_bytes(stored).transpose(0, 2, 1, 3), expected)
    # The same cache as rows along axis 0.
    flat = np.zeros((blocks * size, heads, width), dtype)
    ndscatter.write_all(slots, [ndscatter.Write(flat, given, **options)], axis=0)
    assert np.array_equal(in_bytes(flat).reshape(expected.shape), expected)


@settings(max_examples=200, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_copies(draw, seed):
    """Updates of the type of the cache keep their bytes, for every type that can be moved."""
    random = np.random.default_rng(seed)
    dtype = draw.draw(st.sampled_from([*COMPUTED, *MOVED]))
    blocks, size = int(random.integers(1, 5)), int(random.integers(1, 5))
    slots = random.integers(-2, blocks * size, (2, 3))
    cache, updates = values(random, (blocks, size, 3), dtype), values(random, (2, 3, 3), dtype)
    expected = cache.copy()
    for at in np.ndindex(2, 3):
        if slots[at] >= 0:
            expected[slots[at] // size, slots[at] % size] = updates[at]
    given = strided(random, updates)
    try:
        ndscatter.write_paged(cache, slots, given)
    except TypeError as error:
        # Elements of other sizes, and misaligned elements without arithmetic.
        assert "not changed in place" in str(error)
        assert dtype.itemsize not in (1, 2, 4, 8, 16) or dtype in MOVED
        return
    assert cache.tobytes() == expected.tobytes()
    valid = np.maximum(slots, 0)
    assert ndscatter.gather_paged(cache, valid).tobytes() == cache[valid // size, valid % size].tobytes()


def test_byte_orders():
    for cache_order in "<>":
        for updates_order in "<>":
            cache = np.zeros((2, 2), f"{cache_order}i4")
            if cache_order == ">" and updates_order == "<":
                with pytest.raises((TypeError, ValueError)):
                    ndscatter.write_paged(cache, [3], np.array([7], f"{updates_order}i4"))
                continue
            ndscatter.write_paged(cache, [3], np.array([7], f"{updates_order}i4"))
            assert cache.tolist() == [[0, 0], [0, 7]]


def test_lists_and_numbers():
    cache = np.zeros((2, 2, 2), np.float32)
    ndscatter.write_paged(cache, [3, 0], [[1, 2], [3, 4]])
    ndscatter.write_paged(cache, [1], 5.5)
    assert cache.reshape(4, 2).tolist() == [[3, 4], [5.5, 5.5], [0, 0], [1, 2]]
    small = np.zeros((2, 2), ml_dtypes.float8_e4m3fn)
    ndscatter.write_paged(small, [3, 0], [1, 1000], scale=2, rounding="saturate")
    assert small.astype(float).tolist() == [[448, 0], [0, 0.5]]
    packed = np.zeros((1, 2, 2), np.uint8)
    ndscatter.write_paged(packed, [1], [[1, 2, -3, 4]], format="int4")
    assert packed.tolist() == [[[0, 0], [0x21, 0x4D]]]
    ndscatter.write_paged(packed, 0, 1.0, format="uint4", zero_point=[1])
    assert packed.tolist() == [[[0x22, 0x22], [0x21, 0x4D]]]
    with pytest.raises(TypeError):
        ndscatter.write_paged(np.zeros((2, 2), int), [0], [1.5])


@pytest.mark.parametrize("threads", [1, 2, None])
def test_keys_and_values_of_several_layers(threads):
    random = np.random.default_rng(1)
    tokens, heads, dim = 300, 4, 32
    slots = random.permutation(512)[:tokens]
    slots[::7] = -1
    rows = random.normal(size=(6, tokens, heads, dim)).astype(np.float32)
    keys = [np.zeros((32, heads, 16, dim), np.int8).transpose(0, 2, 1, 3) for _ in range(3)]
    values = [np.zeros((32, 16, heads, dim), ml_dtypes.bfloat16) for _ in range(3)]
    scale = np.float32(0.05)
    writes = [ndscatter.Write(key, row, scale=scale) for key, row in zip(keys, rows[:3])]
    writes += [ndscatter.Write(value, row) for value, row in zip(values, rows[3:])]
    ndscatter.write_all(slots, writes, threads=threads)
    kept = slots >= 0
    for caches, given, format in ((keys, rows[:3], "int8"), (values, rows[3:], "bfloat16")):
        for cache, updates in zip(caches, given):
            expected = np.zeros((512, heads, dim), cache.dtype)
            stored = converted(updates, format, scale if format == "int8" else None, None, "divide", "")
            in_bytes(expected)[slots[kept]] = stored[kept]
            assert np.array_equal(cache.reshape(512, heads, dim), expected)


U8 = np.uint8


@pytest.mark.parametrize(
    "error, words, cache, slots, updates, options",
    [
        (IndexError, "slot 4", np.zeros((2, 2), np.float32), [0, 4], [1.0, 2.0], {}),
        (IndexError, "slot -1", np.zeros((2, 2), np.float32), [0, -1], [1.0, 2.0], {"bounds": "error"}),
        (ValueError, "destination", np.zeros((2, 2), np.float32), [1, 1], [1.0, 2.0], {"duplicates": "reject"}),
        (ValueError, "pass `format`", np.zeros((2, 2), U8), [0], np.ones(1, np.float32), {}),
        (TypeError, "float32, float16 or bfloat16", np.zeros((2, 2), np.int8), [0], np.ones(1), {}),
        (TypeError, "float32, float16 or bfloat16", np.zeros((2, 2), np.int8), [0], np.ones(1, np.int8), {"scale": 2.0}),
        (TypeError, "int4", np.zeros((2, 2), ml_dtypes.int4), [0], np.ones(1, np.float32), {}),
        (TypeError, "float8_e4m3fnuz", np.zeros((2, 2), ml_dtypes.float8_e4m3fnuz), [0], np.ones(1, np.float32), {}),
        (TypeError, "float8_e4m3fn", np.zeros((2, 2), ml_dtypes.float8_e4m3fn), [0], [1.0], {"format": "fp8_e5m2"}),
        (TypeError, "float32 cannot hold elements of format int8", np.zeros((2, 2), np.float32), [0], np.ones(1, np.float32), {"format": "int8"}),
        (ValueError, "positive", np.zeros((2, 2), np.int8), [0], [1.0], {"scale": 0.0, "format": "int8"}),
        (ValueError, "positive", np.zeros((2, 2), np.int8), [0], [1.0], {"scale": np.nan, "format": "int8"}),
        (ValueError, "broadcast", np.zeros((2, 2), np.int8), [0], [1.0], {"scale": [1.0, 2.0], "format": "int8"}),
        (ValueError, "zero point 128 .* of int8", np.zeros((2, 2), np.int8), [0], [1.0], {"zero_point": 128, "format": "int8"}),
        (ValueError, "zero_point", np.zeros((2, 2), np.float32), [0], [1.0], {"zero_point": 1}),
        (TypeError, "^`scale` has elements of float64; pass elements of float32$", np.zeros((2, 2), np.int8), [0], [1.0], {"scale": np.ones(1), "format": "int8"}),
        (TypeError, "^`zero_point` has elements of float64; pass elements of int32$", np.zeros((2, 2), np.int8), [0], [1.0], {"zero_point": np.ones(1), "format": "int8"}),
        (ValueError, "no format", np.zeros((2, 2), U8), [0], [1.0], {"format": "fp4"}),
        (ValueError, "no rounding", np.zeros((2, 2), U8), [0], [1.0], {"format": "uint8", "rounding": "up"}),
        (ValueError, "no scaling", np.zeros((2, 2), U8), [0], [1.0], {"format": "uint8", "scaling": "up"}),
        (ValueError, "shape", np.zeros((2, 2, 3), np.float32), [0], np.ones((1, 2), np.float32), {}),
        (ValueError, "rank 1", np.zeros(4, np.float32), [0], [1.0], {}),
        (TypeError, "indices", np.zeros((2, 2), np.float32), [0.5], [1.0], {}),
        (TypeError, "not an array", [[0.0]], [0], [1.0], {}),
        (TypeError, "object", np.zeros((2, 2), object), [0], [1.0], {}),
        (ValueError, "read-only", np.broadcast_to(np.float32(0), (2, 2)), [0], [1.0], {}),
        (ValueError, "threads", np.zeros((2, 2), np.float32), [0], [1.0], {"threads": 0}),
    ],
)
def test_errors(error, words, cache, slots, updates, options):
    before = np.array(cache).tobytes()
    with pytest.raises(error, match=words):
        ndscatter.write_paged(cache, slots, updates, **options)
    assert np.array(cache).tobytes() == before


def test_errors_of_several_writes():
    caches, row = np.zeros((2, 2, 2, 3), np.float32), np.ones((1, 3), np.float32)
    first = ndscatter.Write(caches[0], row)
    for second, error in (
        (ndscatter.Write(caches[0, ::-1], row), ValueError),
        (ndscatter.Write(caches[1], row, scale=-1.0), ValueError),
        (ndscatter.Write(caches[1], np.ones((2, 3), np.float32)), ValueError),
        (ndscatter.Write(caches[1, :1], row), IndexError),
        (ndscatter.Write([1], row), TypeError),
    ):
        with pytest.raises(error):
            ndscatter.write_all([3], [first, second])
        assert not caches.any()
    with pytest.raises(ValueError):
        ndscatter.Write(caches[0], row, format="?")
    with pytest.raises(TypeError):
        ndscatter.write_all([3], [(caches[0], row)])
    with pytest.raises(ValueError):
        ndscatter.plan_scatter_paged((2, 3, 3), [3]).write_all([first])
    with pytest.raises(ValueError):
        ndscatter.plan_scatter_update((2, 2, 2, 3), [1], reduction="add").write_all([first])
    ndscatter.write_all([3], [])
    assert not caches.any()


def test_a_write_keeps_its_arrays_and_can_be_collected():
    class Tagged(np.ndarray):
        pass

    cache = np.zeros((2, 2), np.float32).view(Tagged)
    write = ndscatter.Write(cache, [1.0])
    assert write.data is cache and write.updates == [1.0]
    cache.write = write
    gone = weakref.ref(cache)
    del cache, write
    gc.collect()
    assert gone() is None


@settings(max_examples=200, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_moves(draw, seed):
    random = np.random.default_rng(seed)
    blocks, size = int(random.integers(1, 5)), int(random.integers(1, 5))
    rows, count = blocks * size, int(random.integers(0, 12))
    rule = draw.draw(st.sampled_from(["skip", "skip negative"]))
    end = rows + (rule == "skip")
    src, dst = random.integers(-1, end, count), random.integers(-1, end, count)
    dtypes = [draw.draw(st.sampled_from([*COMPUTED, np.dtype("S16"), np.dtype(">f8")])) for _ in range(3)]
    arrays = [values(random, (rows, 2), dtype) for dtype in dtypes]
    expected = [array.copy() for array in arrays]
    for array, new in zip(arrays, expected):
        for read, write in zip(src, dst):
            if 0 <= read < rows and 0 <= write < rows:
                new[write] = array[read]
    paged = [array.copy().reshape(blocks, size, 2) for array in arrays]
    last = [np.ascontiguousarray(array.T) for array in arrays]
    ndscatter.move_rows(arrays, src, dst, bounds=rule)
    ndscatter.move_rows(iter(paged), src, dst, axis=None, bounds=rule, threads=1)
    for array in last:
        ndscatter.move_rows(array, src.astype(np.int32), dst, axis=-1, bounds=rule)
    for found, flat, column, new in zip(arrays, paged, last, expected):
        assert found.tobytes() == flat.tobytes() == np.ascontiguousarray(column.T).tobytes() == new.tobytes()


def test_errors_of_moves():
    a, b = np.arange(4), np.arange(4)
    for error, arguments, options in (
        (IndexError, (a, [0], [4]), {}),
        (IndexError, (a, [-1], [0]), {}),
        (IndexError, (a, [4], [0]), {"bounds": "skip negative"}),
        (ValueError, (a, [0], [1]), {"bounds": "clamp"}),
        (ValueError, (a, [0, 1], [1]), {}),
        (ValueError, (a, [0, 1], [2, 2]), {"duplicates": "reject"}),
        (ValueError, ([a, a], [0], [1]), {}),
        (ValueError, ([a, b[:3]], [0], [1]), {}),
        (ValueError, (a, [0], [1]), {"axis": 1}),
        (ValueError, (a, [0], [1]), {"axis": None}),
        (ValueError, (a, a[:1], [1]), {}),
        (TypeError, (a, [0.5], [1]), {}),
        (TypeError, ([a, [1]], [0], [1]), {}),
        (TypeError, (1, [0], [1]), {}),
        (TypeError, (np.zeros(2, object), [0], [1]), {}),
        (ValueError, (np.broadcast_to(1, 4), [0], [1]), {}),
    ):
        with pytest.raises(error):
            ndscatter.move_rows(*arguments, **options)
    assert a.tolist() == b.tolist() == [0, 1, 2, 3]
    ndscatter.move_rows([], [], [])
