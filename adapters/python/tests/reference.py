"""The reference for the results of all functions: a sequential loop over the tuples in numpy.

The reference shares no code with the kernels. `pairs_nd`, `pairs_along` and `pairs_elements` yield
one pair per tuple, in the order of the tuples. The first item of a pair is the place of a slice in
`data` and in the output of a scatter. The second item is the place of a slice in the updates, or in
the result of a gather. `apply` scatters and `take` gathers the slices of the pairs.
"""

from collections.abc import Iterator

import numpy as np

Pair = tuple[tuple, tuple]


def pairs_nd(data: np.ndarray, indices: np.ndarray) -> Iterator[Pair]:
    for position in np.ndindex(indices.shape[:-1]):
        yield tuple(int(i) for i in indices[position]), position


def pairs_along(data: np.ndarray, indices: np.ndarray, axis: int = 0) -> Iterator[Pair]:
    axis %= data.ndim
    before = (slice(None),) * axis
    for position in np.ndindex(indices.shape):
        yield (*before, int(indices[position])), (*before, *position)


def pairs_elements(data: np.ndarray, indices: np.ndarray, axis: int = 0) -> Iterator[Pair]:
    axis %= data.ndim
    for position in np.ndindex(indices.shape):
        place = list(position)
        place[axis] = int(indices[position])
        yield tuple(place), position


def resolve(
    place: tuple, shape: tuple, bounds: str = "error", negative: bool = True
) -> tuple | None:
    """Return `place` with non-negative coordinates in bounds.

    If `negative` is true, negative coordinates count from the end of their axis. For a coordinate
    out of bounds, `bounds` decides: "skip" returns None, "clamp" uses the nearest coordinate in
    bounds, and "error" raises an IndexError. An axis of size 0 has nothing to clamp to, so "clamp"
    also raises an IndexError for it.
    """
    resolved = []
    for size, index in zip(shape, place, strict=False):
        if isinstance(index, slice):
            resolved.append(index)
            continue
        if index < 0 and negative:
            index += size
        if not 0 <= index < size:
            if bounds == "skip":
                return None
            if bounds == "error" or size == 0:
                raise IndexError
            index = min(max(index, 0), size - 1)
        resolved.append(index)
    return tuple(resolved)


def combine(reduction: str, current: np.ndarray, update: np.ndarray) -> np.ndarray:
    if reduction == "none":
        return update
    if current.dtype == bool:
        ufunc = {
            "add": np.logical_or,
            "sub": np.logical_xor,
            "mul": np.logical_and,
            "min": np.logical_and,
            "max": np.logical_or,
        }[reduction]
        return ufunc(current, update)
    if reduction in ("min", "max"):
        # If the update equals the current value, the current value stays. This matters for zeros of
        # different sign.
        wins = update < current if reduction == "min" else update > current
        wins |= np.not_equal(update, update)
        return np.where(wins, update, current)
    if current.dtype.kind == "c" and reduction == "mul":
        return product(current, update)
    ufunc = {"add": np.add, "mean": np.add, "sub": np.subtract, "mul": np.multiply}[reduction]
    return ufunc(current, update).astype(current.dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply complex numbers. Each multiplication, addition and subtraction of real numbers is
    rounded separately, as in ndscatter's kernels.

    numpy's own complex multiplication fuses some multiplications with an addition, and rounds only
    after the addition. Which operations numpy fuses depends on the shape and the machine.
    """
    a, b = np.asarray(a), np.asarray(b)
    result = np.empty_like(a)
    result.real = a.real * b.real - a.imag * b.imag
    result.imag = a.real * b.imag + a.imag * b.real
    return result


def divide(total: np.ndarray, count: int) -> np.ndarray:
    if total.dtype.kind in "iu":
        return np.asarray(total.astype(object) // count).astype(total.dtype)
    if total.dtype.itemsize == 2:
        return (total.astype(np.float32) / np.float32(count)).astype(total.dtype)
    if total.dtype.kind == "c":
        result = np.empty_like(total)
        result.real, result.imag = divide(total.real, count), divide(total.imag, count)
        return result
    return (total / total.dtype.type(count)).astype(total.dtype)


def apply(
    pairs,
    data: np.ndarray,
    updates: np.ndarray,
    reduction: str = "none",
    include_self: bool = True,
    bounds: str = "error",
    negative: bool = True,
) -> np.ndarray:
    """Scatter: return a copy of `data` to which the updates are applied in the order of `pairs`."""
    output = data.copy()
    counts: dict[str, int] = {}
    places: dict[str, tuple] = {}
    with np.errstate(all="ignore"):
        for place, position in pairs:
            place = resolve(place, data.shape, bounds, negative)
            if place is None:
                continue
            key = repr(place)
            is_first = key not in counts
            counts[key] = counts.get(key, int(include_self)) + 1
            places[key] = (*place, ...)
            current, update = output[places[key]], updates[(*position, ...)]
            if not is_first or include_self or reduction == "none":
                update = combine(reduction, current, update)
            elif reduction == "sub":
                update = combine(reduction, np.zeros_like(current), update)
            output[places[key]] = update
        if reduction == "mean":
            for key, place in places.items():
                output[place] = divide(output[place], counts[key])
    return output


def take(
    pairs, data: np.ndarray, shape: tuple, bounds: str = "error", negative: bool = True
) -> np.ndarray:
    """Gather: return an array of the shape `shape`. For each pair, copy the slice of `data` at the
    first place to the second place in the result. Elements of skipped pairs are zero."""
    output = np.zeros(shape, data.dtype)
    for place, position in pairs:
        place = resolve(place, data.shape, bounds, negative)
        if place is not None:
            output[(*position, ...)] = data[(*place, ...)]
    return output


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays have the same shape, dtype and bits. Two NaN count as equal even if
    their bits differ."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.dtype.kind == "c":
        part = a.real.dtype
        a, b = a.reshape(-1).view(part), b.reshape(-1).view(part)
    if a.dtype.kind == "f" or a.dtype.name == "bfloat16":
        nan = np.isnan(a)
        if not np.array_equal(nan, np.isnan(b)):
            return False
        a, b = a[~nan], b[~nan]
    return a.tobytes() == b.tobytes()
