"""Element types for tests, random values and strides, and random shapes for hypothesis."""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
COMPLEX = ["c8", "c16"]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
#: Element types for which ndscatter has arithmetic.
COMPUTED = [np.dtype(name) for name in INTEGERS + FLOATS + COMPLEX + ["?"]] + [BFLOAT16]
#: Element types that ndscatter only copies, without arithmetic.
MOVED = [
    np.dtype(name)
    for name in ("M8[s]", "m8[ns]", "g", "G", "S1", "S3", "U2", "V5", "V16", ">f8", ">i2", "f4,i2")
] + [np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]


def reductions(dtype: np.dtype) -> list[str]:
    """Return the reductions that ndscatter defines for an element type with arithmetic."""
    if dtype.kind == "c":
        return ["none", "add", "sub", "mul", "mean"]
    if dtype.kind == "b":
        return ["none", "add", "sub", "mul", "min", "max"]
    return ["none", "add", "sub", "mul", "min", "max", "mean"]


def values(random: np.random.Generator, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """Return a random array: small numbers for a type with arithmetic, and arbitrary values for a
    type without."""
    if dtype not in COMPUTED:
        count = int(np.prod(shape))
        raw = random.integers(97, 122, count * dtype.itemsize).astype("u1")
        if dtype.kind == "U":
            raw = random.integers(97, 122, count * dtype.itemsize // 4).astype("u4").view("u1")
        if dtype.kind in "gG" or dtype.char in "gG":
            return random.integers(-99, 99, shape).astype(dtype)
        return raw.view(dtype).reshape(shape)
    numbers = random.integers(-9, 10, shape)
    if dtype.kind in "fcV":
        numbers = numbers + random.integers(0, 8, shape) / 8 + 0.01
    if dtype.kind == "c":
        numbers = numbers + 1j * random.integers(-9, 10, shape)
    array = np.asarray(numbers).astype(dtype)
    if dtype.kind in "fV" and array.size and random.random() < 0.1:
        array[tuple(random.integers(0, s) for s in shape)] = np.nan
    return array


def strided(random: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return an array with the elements of `array` in a random layout: unchanged, in Fortran order,
    with gaps between the elements, reversed along each axis, or misaligned by one byte."""
    kind = int(random.integers(0, 5))
    if kind == 0 or array.ndim == 0:
        return array
    if kind == 1:
        return np.asfortranarray(array)
    if kind == 2:
        wide = np.zeros([2 * size + 1 for size in array.shape], array.dtype)
        view = wide[tuple(slice(1, 2 * size + 1, 2) for size in array.shape)]
    elif kind == 3:
        view = np.zeros_like(array)[tuple(slice(None, None, -1) for _ in array.shape)]
    else:
        raw = np.zeros(array.nbytes + 1, "u1")
        view = raw[1 : 1 + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(0, 5)
shapes = st.lists(sizes, min_size=0, max_size=4).map(tuple)
shapes_with_axis = st.lists(sizes, min_size=1, max_size=4).map(tuple)
