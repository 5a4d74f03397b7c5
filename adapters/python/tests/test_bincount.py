"""Compares `bincount` with `np.bincount`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndscatter
import reference as ref
from strategies import INTEGERS, seeds, strided


@settings(max_examples=300, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_random(draw, seed):
    random = np.random.default_rng(seed)
    dtype = draw.draw(st.sampled_from([*INTEGERS, "?"]))
    size = draw.draw(st.sampled_from([0, 1, 7, 100, 5000]))
    x = strided(random, random.integers(0, 100, size).astype(dtype))
    minlength = draw.draw(st.sampled_from([0, 1, 50, 200]))
    weights = None
    if draw.draw(st.booleans()):
        kind = draw.draw(st.sampled_from(["f8", "f4", "i4", "?"]))
        weights = strided(random, (random.standard_normal(size) * 9).astype(kind))
    expected = np.bincount(x.astype(np.intp), weights, minlength)
    result = ndscatter.bincount(x, weights, minlength)
    if x.size == 0 and weights is not None:
        # If `x` is empty, `np.bincount` ignores the weights and returns integers. ndscatter's
        # `bincount` returns floats.
        expected = expected.astype(float)
    assert ref.same_bits(result, expected)
    out = np.full(len(expected) + 3, 7, result.dtype)
    assert ndscatter.bincount(x, weights, minlength, out=out) is out
    assert ref.same_bits(out[:-3], expected) and not out[-3:].any()


@pytest.mark.parametrize("size", [8191, 8192, 20_011, 600_011])
@pytest.mark.parametrize("bins", [7, 60_013])
def test_long_lists_on_several_threads(size, bins):
    random = np.random.default_rng(size)
    weights = random.standard_normal(size)
    for dtype in ["i8", "i4", "u2"]:
        x = random.integers(0, bins, size).astype(dtype)
        x[size // 2] = bins
        for threads in (1, 2, 5):
            assert ref.same_bits(ndscatter.bincount(x, threads=threads), np.bincount(x))
            sums = ndscatter.bincount(x[::-1], weights, threads=threads)
            assert ref.same_bits(sums, np.bincount(x[::-1], weights))
    for wrong in (0, size // 3, size - 1):
        x = x.astype("i8")
        x[wrong] = -1
        for arguments in ((x,), (x, weights)):
            with pytest.raises(ValueError, match="negative"):
                ndscatter.bincount(*arguments)


def test_lists():
    assert ndscatter.bincount([1, 1, 3]).tolist() == [0, 2, 0, 1]
    assert ndscatter.bincount([1, 1, 3]).dtype == np.intp
    assert ndscatter.bincount([]).tolist() == []
    assert ndscatter.bincount([], minlength=2).tolist() == [0, 0]
    assert ndscatter.bincount([1, 1], [0.5, 2]).tolist() == [0, 2.5]


@pytest.mark.parametrize("dtype", ["u1", "u4", "f4", "f8", "f2"])
def test_an_output_of_another_type(dtype):
    out = np.ones(5, dtype)
    ndscatter.bincount([0, 1, 1], out=out)
    assert out.tolist() == [1, 2, 0, 0, 0]


@pytest.mark.parametrize(
    "arguments, error",
    [
        (([1, -1],), ValueError),
        ((np.array([1] * 5000 + [-1]),), ValueError),
        ((np.array([1.0]),), TypeError),
        ((["a"],), TypeError),
        ((3,), ValueError),
        (([[1]],), ValueError),
        (([1], [1, 2]), ValueError),
        (([1], [1j]), TypeError),
        (([1], None, -1), ValueError),
        (([1], None, None), TypeError),
        (([1], None, 1.5), TypeError),
        (([2**45],), MemoryError),
        ((np.array([2**64 - 1], "u8"),), MemoryError),
    ],
)
def test_errors(arguments, error):
    with pytest.raises(error):
        ndscatter.bincount(*arguments)


def test_errors_of_outputs():
    for out, error in [
        (np.zeros(2, int), IndexError),
        (np.zeros((4, 1), int), ValueError),
        ([0] * 4, TypeError),
        (np.zeros(4, "S1"), TypeError),
        (np.broadcast_to(np.zeros(1, int), 4), ValueError),
    ]:
        with pytest.raises(error):
            ndscatter.bincount([1, 3], out=out)
    out = np.full(4, 7)
    with pytest.raises(ValueError):
        ndscatter.bincount([1, -3], out=out)
    with pytest.raises(ValueError):
        ndscatter.bincount([1, 3], minlength=5, out=out)
    assert out.tolist() == [7] * 4
