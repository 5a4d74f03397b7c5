"""The rules of ``np.ufunc.at`` for arguments that the native functions do not handle.

The native functions `add_at`, `subtract_at`, `multiply_at`, `minimum_at` and `maximum_at`
call `general` for other indices than integer arrays, and for other types of ``b`` than that
of ``a``. numpy converts the arguments for a kernel, or runs the call itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native

#: Characters of the types for which a kernel computes the same results as numpy.
_COMPUTED = frozenset("bhilqBHILQefdFD?")
_WRAPPING = frozenset(("add", "subtract", "multiply"))
_ORDERING = frozenset(("minimum", "maximum"))
#: Names of the reductions of ``ndscatter.scatter_update``.
_REDUCTIONS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "minimum": "min",
    "maximum": "max",
}


def general(name: str, a: Any, indices: Any, b: Any, threads: int | None) -> None:
    """Run ``np.<name>.at(a, indices, b)``, by a kernel or by numpy."""
    if not isinstance(a, np.ndarray):
        # numpy's text. A tensor of another library has a function for the same purpose.
        message = "first operand must be array"
        if hasattr(a, "__dlpack__"):
            message += (
                "; for a tensor, use `ndscatter.scatter_update(tensor, indices, updates, "
                f'reduction="{_REDUCTIONS[name]}", out=tensor)`'
            )
        raise TypeError(message)
    if not a.flags.writeable:
        raise ValueError("the output is read-only; pass an array that can be written")
    values = _converted(name, a.dtype, np.asarray(b))
    if values is None or not _is_regular(a):
        by_numpy(name, a, indices, b)
        return
    index = indices if isinstance(indices, tuple) else (indices,)
    index = tuple(_as_numpy(part) for part in index)
    if all(part is None or part is Ellipsis or isinstance(part, (slice, int)) for part in index) and not any(
        isinstance(part, bool) for part in index
    ):
        # Basic indexing gives a view, which contains no element twice.
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
    """Run numpy's own loop.

    The values are broadcast first: numpy 2.4 reads past the end of values with fewer
    dimensions than `indices`.
    """
    if np.ndim(b) != 0:
        b = np.asarray(b)
        shape = a[indices].shape
        if b.shape != shape:
            b = _spread(b, shape).copy()
    getattr(np, name).at(a, indices, b)


def _is_regular(a: np.ndarray[Any, Any]) -> bool:
    """Return whether a kernel can write to `a` without a copy."""
    dims = zip(a.shape, a.strides, strict=True)
    return (
        a.flags.aligned
        and a.dtype.isnative
        and all(size < 2 or stride % a.itemsize == 0 for size, stride in dims)
    )


def _as_numpy(part: Any) -> Any:
    """Convert a part of an index: lists and arrays of other libraries become numpy arrays."""
    if part is None or part is Ellipsis or isinstance(part, (slice, int, np.ndarray)):
        return part
    if isinstance(part, np.integer):
        return int(part)
    array = np.asarray(part)
    # numpy converts an empty list to floats.
    return array.astype(np.intp) if array.size == 0 and isinstance(part, list) else array


def _into_view(name: str, a: Any, index: tuple[Any, ...], values: Any) -> None:
    # An index of integers alone would give a scalar. An ellipsis makes it a view. An index has at
    # most one ellipsis.
    has_ellipsis = any(part is Ellipsis for part in index)
    view = a[index if has_ellipsis else (*index, ...)]
    getattr(np, name)(view, _spread(values, view.shape), out=view)


def _spread(values: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError("array is not broadcastable to correct shape") from None


def _coordinates(a: np.ndarray[Any, Any], index: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Return the coordinates of the elements of ``a[index]``, along a last axis."""
    coordinates = []
    for axis, size in enumerate(a.shape):
        shape = [1] * a.ndim
        shape[axis] = size
        line = np.arange(size).reshape(shape)
        coordinates.append(np.broadcast_to(line, a.shape)[index])
    if not coordinates:
        # The tuples of an array of rank 0 are empty.
        return np.empty((*np.empty(())[index].shape, 0), np.intp)
    return np.stack(coordinates, axis=-1)


def _converted(
    name: str, dtype: np.dtype[Any], b: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """Convert `b` to the type `dtype` of `a`, or return None where the result could differ.

    numpy computes in the type that `a` and `b` promote to, and casts to the type of `a` after
    each update.
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
        # Truncating the result of a wrapping operation in a wider type gives the same bits as the
        # wrapping operation in the narrow type.
        return b.astype(dtype)
    # If `dtype` represents all values of `b`, computing in `dtype` gives the same bits as computing
    # in the wider type and rounding the result to `dtype`. For a sum, a difference, or a product of
    # real floats, this holds because the wider type has more than twice as many significand bits
    # as `dtype`. It does not hold for a complex product: each part is a sum of two products.
    if dtype.kind == "c" and name == "multiply":
        return None
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
