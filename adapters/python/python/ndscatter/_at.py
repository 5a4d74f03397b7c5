"""What `add_at` and its kin do with arguments that are not plain arrays of integers: the
rules of ``np.ufunc.at``, by numpy's own means.

The native functions come here with an array ``a``, whatever `indices` and `b` are. What is
not done by a kernel is done by numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native

#: Types that kernels compute with as numpy does.
_COMPUTED = frozenset("bhilqBHILQefdFD?")
_WRAPPING = frozenset(("add", "subtract", "multiply"))
_ORDERING = frozenset(("minimum", "maximum"))


def general(name: str, a: Any, indices: Any, b: Any, threads: int | None) -> None:
    """``np.<name>.at(a, indices, b)``."""
    if not isinstance(a, np.ndarray):
        raise TypeError("first operand must be array")
    if not a.flags.writeable:
        raise ValueError("the output is read-only; give one that can be written")
    values = _converted(name, a.dtype, np.asarray(b))
    if values is None or not _is_regular(a):
        by_numpy(name, a, indices, b)
        return
    index = indices if isinstance(indices, tuple) else (indices,)
    index = tuple(_as_numpy(part) for part in index)
    if all(part is None or part is Ellipsis or isinstance(part, (slice, int)) for part in index) and not any(
        isinstance(part, bool) for part in index
    ):
        # A view names no place twice.
        _into_view(name, a, index, values)
        return
    positions = _coordinates(a, index)
    shape = positions.shape[:-1]
    spread = _spread(values, shape)
    if np.may_share_memory(spread, a):
        spread = spread.copy()
    if not _native._scatter_at(name, a, positions, spread, threads):
        by_numpy(name, a, indices, b)


def by_numpy(name: str, a: Any, indices: Any, b: Any) -> None:
    """numpy's own loop.

    It is given values of the full shape: from fewer dimensions than `indices` has numpy 2.4
    reads past the end.
    """
    if np.ndim(b) != 0:
        b = np.asarray(b)
        shape = a[indices].shape
        if b.shape != shape:
            b = _spread(b, shape).copy()
    getattr(np, name).at(a, indices, b)


def _is_regular(a: np.ndarray[Any, Any]) -> bool:
    steps = zip(a.shape, a.strides, strict=True)
    return (
        a.flags.aligned
        and a.dtype.isnative
        and all(size < 2 or step % a.itemsize == 0 for size, step in steps)
    )


def _as_numpy(part: Any) -> Any:
    """An index as numpy takes it: arrays of other libraries and lists are arrays."""
    if part is None or part is Ellipsis or isinstance(part, (slice, int, np.ndarray)):
        return part
    if isinstance(part, np.integer):
        return int(part)
    array = np.asarray(part)
    # An empty list is one of integers.
    return array.astype(np.intp) if array.size == 0 and isinstance(part, list) else array


def _into_view(name: str, a: Any, index: tuple[Any, ...], values: Any) -> None:
    # An ellipsis makes a view of what would be a scalar; an index has at most one.
    has_ellipsis = any(part is Ellipsis for part in index)
    view = a[index if has_ellipsis else (*index, ...)]
    getattr(np, name)(view, _spread(values, view.shape), out=view)


def _spread(values: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError("array is not broadcastable to correct shape") from None


def _coordinates(a: np.ndarray[Any, Any], index: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """The coordinates of the elements of ``a[index]``, along a last axis."""
    coordinates = []
    for axis, size in enumerate(a.shape):
        shape = [1] * a.ndim
        shape[axis] = size
        line = np.arange(size).reshape(shape)
        coordinates.append(np.broadcast_to(line, a.shape)[index])
    if not coordinates:
        # Of rank 0, each hit is an empty tuple.
        return np.empty((*np.empty(())[index].shape, 0), np.intp)
    return np.stack(coordinates, axis=-1)


def _converted(
    name: str, dtype: np.dtype[Any], b: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """`b` in the type of `a`, if that gives the bits of numpy's loop; else None.

    numpy computes in the type that both promote to and casts what comes out to that of
    `a`, after each update.
    """
    if dtype.kind == "c" and name in _ORDERING:
        return None
    if dtype == b.dtype:
        return b if _is_computed(dtype, name) else None
    if not (_is_computed(dtype, name) and _is_computed(b.dtype, "add")):
        return None
    if dtype.kind == "V" or b.dtype.kind == "V":
        return None
    loop = np.result_type(dtype, b.dtype)
    if loop == dtype:
        return b.astype(dtype)
    if loop.kind in "iu" and dtype.kind in "iu" and name in _WRAPPING:
        # What wraps in a wider type and is cut off has wrapped.
        return b.astype(dtype)
    # A wider type gives the same bits where both sides have them: sums and products of
    # floats, as it has more than twice the digits.
    same_kind = (loop.kind in "iu" and dtype.kind in "iu") or (
        loop.kind == dtype.kind and dtype.kind in "fc"
    )
    if not same_kind:
        return None
    with np.errstate(all="ignore"):
        values = b.astype(dtype)
    return values if np.array_equal(values.astype(loop), b.astype(loop)) else None


def _is_computed(dtype: np.dtype[Any], name: str) -> bool:
    if dtype.kind == "b" and name == "subtract":
        return False
    return dtype.isnative and (dtype.char in _COMPUTED or dtype.name == "bfloat16")
