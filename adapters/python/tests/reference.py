"""The reference of all functions: a sequential loop over the tuples in numpy.

The reference shares no code with the kernels. `pairs_nd`, `pairs_along` and `pairs_elements` list
pairs of a slice of the output and a slice of the updates, in order. `apply` and `take` process the
pairs.
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
    """Return a place with non-negative coordinates, or None if the place is skipped."""
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
        # Ties keep the current value.
        wins = update < current if reduction == "min" else update > current
        wins |= np.not_equal(update, update)
        return np.where(wins, update, current)
    if current.dtype.kind == "c" and reduction == "mul":
        return product(current, update)
    ufunc = {"add": np.add, "mean": np.add, "sub": np.subtract, "mul": np.multiply}[reduction]
    return ufunc(current, update).astype(current.dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply complex numbers, with each operation rounded once.

    numpy's complex multiplication fuses some multiplications and additions into one operation,
    which rounds once. Which operations are fused depends on the shape and the machine.
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
    """Return a copy of `data` with the updates applied one after another."""
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
    """Gather: for each pair of a slice of `data` and a position in the result, copy the slice to
    the position."""
    output = np.zeros(shape, data.dtype)
    for place, position in pairs:
        place = resolve(place, data.shape, bounds, negative)
        if place is not None:
            output[(*position, ...)] = data[(*place, ...)]
    return output


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays have the same bits. All NaN count as equal."""
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
