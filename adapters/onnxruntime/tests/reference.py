"""The sequential reference: applies the updates of a scatter in their order, one after another.

The reference computes 16-bit floats in float32. The reference rounds to 16 bits after every update,
or once at the end if `accumulate` is `wide`, as docs/semantics.md specifies. This module depends
only on numpy, not on the library or on ONNX Runtime.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class OutOfBounds(Exception):
    """Raised if an index is outside its axis, or if updates do not fit into a cache."""


class Duplicate(Exception):
    """Raised if two updates have the same destination and `reject_duplicates` is 1."""


class Rules(NamedTuple):
    """The attributes of a node, except `axis` and `mode`. With the default values, a node computes
    what the ONNX standard specifies."""

    reduction: str = "none"
    include_self: int = 1
    bounds: str = "error"
    accumulate: str = "native"
    reject_duplicates: int = 0
    negative_indices: int = 1


STANDARD = Rules()


def coordinate(index: int, size: int, rules: Rules) -> int | None:
    """Returns the position that an index selects on an axis of this size. Returns `None` if the
    index is out of bounds and `rules.bounds` is `skip`."""
    position = index + size if index < 0 and rules.negative_indices else index
    if 0 <= position < size:
        return position
    if rules.bounds == "skip":
        return None
    if rules.bounds == "clamp" and size > 0:
        return min(max(position, 0), size - 1)
    raise OutOfBounds(index)


def nd_destinations(data: Array, indices: Array, rules: Rules) -> list[int | None]:
    """Returns one entry per element of updates, in their order: the flat position of its
    destination in data, or `None` if the element is skipped."""
    depth = indices.shape[-1]
    window = math.prod(data.shape[depth:])
    places: list[int | None] = []
    for place in np.ndindex(*indices.shape[:-1]):
        found = [
            coordinate(int(index), size, rules)
            for index, size in zip(indices[place], data.shape[:depth])
        ]
        if None in found:
            places += [None] * window
            continue
        start = 0
        for position, size in zip(found, data.shape[:depth]):
            start = start * size + position
        places += range(start * window, (start + 1) * window)
    return places


def elements_destinations(data: Array, indices: Array, axis: int, rules: Rules) -> list[int | None]:
    numbers = np.arange(data.size).reshape(data.shape)
    axis %= data.ndim
    places: list[int | None] = []
    for place in np.ndindex(*indices.shape):
        found = coordinate(int(indices[place]), data.shape[axis], rules)
        at = (*place[:axis], found, *place[axis + 1 :])
        places.append(None if found is None else int(numbers[at]))
    return places


def combine(reduction: str, current: Any, update: Any) -> Any:
    """Returns the new value of an element after one update. `current` is the value of the element
    before this update. `current` and `update` have the type of the computation: float32 for 16-bit
    floats, else the element type."""
    if isinstance(current, str):
        return {"none": update, "add": current + update}[reduction]
    if isinstance(current, np.bool_):
        both, either = current & update, current | update
        results = {"none": update, "add": either, "sub": current ^ update, "mul": both}
        return {**results, "min": both, "max": either}[reduction]
    match reduction:
        case "none":
            return update
        case "add" | "mean":
            return current + update
        case "sub":
            return current - update
        case "mul":
            return current * update
        case "min" | "max":
            if current != current or update != update:
                return current * update  # NaN
            is_less = update < current if reduction == "min" else update > current
            return update if is_less else current
    raise ValueError(reduction)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is float16 or bfloat16."""
    return dtype.itemsize == 2 and dtype.kind not in "iub"


def apply(data: Array, updates: Array, places: list[int | None], rules: Rules) -> Array:
    """Returns data after all updates. `places[i]`: flat position in data of the destination of
    element i of updates, or `None` if the element is skipped."""
    half = is_half(data.dtype) and rules.reduction != "none"
    wide = half and rules.accumulate == "wide" and rules.reduction not in ("min", "max")
    computed = data.astype(np.float32) if half else data.copy()
    flat = computed.reshape(-1)
    moved = (updates.astype(np.float32) if half else updates).reshape(-1)
    counts: dict[int, int] = {}

    def rounded(value: Any) -> Any:
        return value.astype(data.dtype).astype(np.float32) if half and not wide else value

    with np.errstate(all="ignore"):
        for update, place in zip(moved, places, strict=True):
            if place is None:
                continue
            if place in counts and rules.reject_duplicates:
                raise Duplicate(place)
            is_first = place not in counts and not rules.include_self
            counts[place] = counts.get(place, 0) + 1
            if is_first and rules.reduction == "sub":
                flat[place] = rounded(combine("sub", flat.dtype.type(0), update))
            elif is_first:
                flat[place] = update
            else:
                flat[place] = rounded(combine(rules.reduction, flat[place], update))
        if rules.reduction == "mean":
            for place, count in counts.items():
                terms = count + rules.include_self
                if computed.dtype.kind in "iu":
                    flat[place] = int(flat[place]) // terms
                else:
                    flat[place] = flat[place] / computed.dtype.type(terms)
    result = computed.reshape(data.shape)
    return result.astype(data.dtype) if half else result


def scatter_nd(data: Array, indices: Array, updates: Array, rules: Rules = STANDARD) -> Array:
    return apply(data, updates, nd_destinations(data, indices, rules), rules)


def scatter_elements(
    data: Array, indices: Array, updates: Array, axis: int = 0, rules: Rules = STANDARD
) -> Array:
    return apply(data, updates, elements_destinations(data, indices, axis, rules), rules)


def tensor_scatter(
    data: Array,
    updates: Array,
    indices: Array | None,
    axis: int = -2,
    mode: str = "linear",
    rules: Rules = STANDARD,
) -> Array:
    """Returns the cache `data` with the rows of updates written into it. `indices` holds one
    position per sequence, at which the rows of the sequence begin. If `indices` is `None`, the
    rows of all sequences begin at position 0."""
    axis %= data.ndim
    size, length = data.shape[axis], updates.shape[axis]
    result = data.copy()
    for sequence in range(data.shape[0]):
        start = 0 if indices is None else int(indices[sequence])
        if start < 0 and rules.bounds == "skip":
            continue
        if start < 0 or (mode == "linear" and start > size - length):
            raise OutOfBounds(start)
        between = product(*map(range, data.shape[1:axis]))
        for place in between:
            for row in range(length):
                to = (start + row) % size if mode == "circular" else start + row
                result[(sequence, *place, to)] = updates[(sequence, *place, row)]
    return result


UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def fast(data: Array, where: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """Returns data after updates of `data[where]`. Tests use this function for large arrays,
    because `apply` is too slow for large arrays.

    numpy applies the updates in their order. For `min` and `max`, data and updates must not contain
    zeros, because numpy may return either zero for the pair +0 and -0.
    """
    result = data.copy()
    if reduction == "none":
        result[where] = updates
    else:
        UFUNCS[reduction].at(result, where, updates)
    return result


def fast_nd(data: Array, indices: Array, updates: Array, reduction: str) -> Array:
    return fast(data, tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


def fast_elements(data: Array, indices: Array, updates: Array, axis: int, reduction: str) -> Array:
    where = list(np.indices(indices.shape, sparse=True))
    where[axis] = indices
    return fast(data, tuple(where), updates, reduction)
