"""The rules of ``np.ufunc.at`` for arguments that the native functions do not handle.

The native functions `add_at`, `subtract_at`, `multiply_at`, `minimum_at` and `maximum_at`
call this module for arguments that they do not handle, such as most slices, ``None`` in indices,
and an array ``b`` of another dtype than ``a``. If all arrays and lists of such a call have fewer
than 2000 elements, the native function calls `by_numpy`. Otherwise it calls `general`, which
converts the arguments with numpy. `general` then runs a kernel, or numpy's own loop if a kernel
could give another result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native

#: numpy's type characters (`dtype.char`) of the dtypes for which a kernel computes the same results
#: as numpy.
_COMPUTED = frozenset("bhilqBHILQefdFD?")
_WRAPPING = frozenset(("add", "subtract", "multiply"))
_ORDERING = frozenset(("minimum", "maximum"))
#: For each ufunc, the name of the same reduction in ``ndscatter.scatter_update``.
_REDUCTIONS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "minimum": "min",
    "maximum": "max",
}


def general(name: str, a: Any, indices: Any, b: Any, threads: int | None) -> None:
    """Compute ``np.<name>.at(a, indices, b)``, by a kernel or by numpy's own loop."""
    if not isinstance(a, np.ndarray):
        # The message begins with the text of numpy's message. For a tensor of another library, the
        # message names the function to call instead.
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
        # Basic indexing gives a view of `a` and selects no element twice. One call of the ufunc on
        # the view therefore computes the result.
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

    `b` is first broadcast to the shape of ``a[indices]``. This avoids a bug of numpy 2.4: its loop
    reads past the end of a `b` that has fewer dimensions than `indices`.

    Another bug of numpy 2.4 ends the process if an array of the call has more than 32 dimensions. An
    array of indices may add a dimension, so `a` must have fewer than 32.
    """
    if a.ndim >= 32:
        raise ValueError(f"numpy does not support this call on an array of {a.ndim} dimensions")
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
    """Convert one part of an index: a list or an array of another library to a numpy array."""
    if part is None or part is Ellipsis or isinstance(part, (slice, int, np.ndarray)):
        return part
    if isinstance(part, np.integer):
        return int(part)
    array = np.asarray(part)
    # `np.asarray` converts an empty list to floats, which are not an index.
    return array.astype(np.intp) if array.size == 0 and isinstance(part, list) else array


def _into_view(name: str, a: Any, index: tuple[Any, ...], values: Any) -> None:
    # `a[index]` is a scalar if all parts of the index are integers. A trailing ellipsis makes the
    # result a view. It is not added to an index that has an ellipsis, because numpy allows only
    # one.
    has_ellipsis = any(part is Ellipsis for part in index)
    view = a[index if has_ellipsis else (*index, ...)]
    getattr(np, name)(view, _spread(values, view.shape), out=view)


def _spread(values: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError("array is not broadcastable to correct shape") from None


def _coordinates(a: np.ndarray[Any, Any], index: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Return the coordinates in `a` of each element of ``a[index]``.

    The last axis of the result has one coordinate per axis of `a`. The other axes are those of
    ``a[index]``.
    """
    coordinates = []
    for axis, size in enumerate(a.shape):
        shape = [1] * a.ndim
        shape[axis] = size
        line = np.arange(size).reshape(shape)
        coordinates.append(np.broadcast_to(line, a.shape)[index])
    if not coordinates:
        # `a` has rank 0, so each tuple has 0 coordinates.
        return np.empty((*np.empty(())[index].shape, 0), np.intp)
    return np.stack(coordinates, axis=-1)


def _converted(
    name: str, dtype: np.dtype[Any], b: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """Convert `b` to `dtype`, the dtype of `a`.

    Returns None if the result of a kernel could differ from numpy's result. numpy computes in the
    dtype that `a` and `b` promote to, and casts to the dtype of `a` after each update.
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
        # numpy computes these integer operations in a wider dtype and truncates each result to
        # `dtype`. The same operations in `dtype`, with wrapping, give the same bits.
        return b.astype(dtype)
    # numpy computes in `loop`, which is wider than `dtype`, and rounds each result to `dtype`. A
    # kernel computes in `dtype`. If `dtype` represents all values of `b` exactly, both give the
    # same bits. For a sum, a difference or a product of real floats, the reason is that `loop` has
    # more than twice as many significand bits as `dtype`. For a complex product the bits may
    # differ, because each part is a sum of two products.
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
