from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import distributed as distributed
from . import onnxruntime as onnxruntime
from . import ray as ray
from . import torch as torch

__all__ = [
    "Explanation",
    "GatherPlan",
    "ScatterPlan",
    "ShardedPlan",
    "Sharding",
    "Write",
    "__version__",
    "add_at",
    "bincount",
    "explain",
    "gather",
    "gather_elements",
    "gather_nd",
    "gather_paged",
    "instruction_set",
    "machine",
    "maximum_at",
    "minimum_at",
    "move_rows",
    "multiply_at",
    "plan_gather",
    "plan_gather_elements",
    "plan_gather_nd",
    "plan_gather_paged",
    "plan_scatter_elements",
    "plan_scatter_nd",
    "plan_scatter_paged",
    "plan_scatter_update",
    "plan_sharded",
    "plan_tensor_scatter",
    "release_scratch",
    "scatter_elements",
    "scatter_nd",
    "scatter_update",
    "subtract_at",
    "tensor_scatter",
    "threads",
    "write_all",
    "write_paged",
]

__version__: str

class _Array(Protocol):
    """A numpy array, or an array of another library with `__dlpack__`."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...
    # The type is Any, because the arguments of `__dlpack__` differ between libraries.
    @property
    def __dlpack__(self) -> Any: ...

_A = TypeVar("_A", bound=_Array)
_O = TypeVar("_O", bound=np.ndarray[Any, Any])

_Values: TypeAlias = _Array | ArrayLike
# The functions also accept the names that OpenVINO, torch and JAX have for these reductions, so the
# type includes `str`.
_Reduction: TypeAlias = (
    Literal["none", "add", "sub", "mul", "min", "max", "mean"] | str
)
_Accumulate: TypeAlias = Literal["native", "wide"]
_Bounds: TypeAlias = (
    Literal["error", "raise", "skip", "drop", "ignore", "clamp", "clip", "skip negative"]
)
_Duplicates: TypeAlias = Literal["allow", "reject"]
_Mode: TypeAlias = Literal["linear", "circular"]
# The functions also accept the names that torch, ONNX and vLLM have for these formats.
_Format: TypeAlias = (
    Literal[
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int8",
        "uint8",
        "int4",
        "uint4",
    ]
    | str
)
_Rounding: TypeAlias = Literal["nearest even", "saturate", "saturate nan", "truncate"]
_Scaling: TypeAlias = Literal["divide", "reciprocal"]
_IndexPart: TypeAlias = _Values | slice | EllipsisType | None
_Index: TypeAlias = _IndexPart | tuple[_IndexPart, ...]
_Layout: TypeAlias = tuple[SupportsIndex, ...] | int | _Array

def scatter_nd(
    data: _A,
    indices: _Values,
    updates: _Values,
    *,
    reduction: _Reduction = "none",
    include_self: bool = True,
    accumulate: _Accumulate = "native",
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Write slices of `updates` to the destinations that tuples of coordinates address.

    With ``k = indices.shape[-1]``, update ``i`` is written to ``data[tuple(indices[i])]``,
    a slice of shape ``data.shape[k:]``. If several tuples have the same destination, their
    updates are applied in the row-major order of the tuples in `indices`. Without a reduction,
    the destination keeps the last of these updates.

    Args:
        data: array of any shape, of any element type except numpy's ``object``.
        indices: integers of any integer type, of shape ``(..., k)`` with ``k <= data.ndim``.
        updates: array of the element type of `data`, of shape
            ``indices.shape[:-1] + data.shape[k:]`` or a shape that broadcasts to it. A list
            or a number is converted to the element type of `data`. Indices with one axis are
            one tuple, and are refused if `updates` is a number.
        reduction: how an update is combined with the existing value. ``"none"`` replaces the
            existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
            ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
            ``"sum"`` and ``"amax"``, are accepted too.
        include_self: whether the existing value takes part in a reduction.
        accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
            of a destination after every update. ``"wide"`` computes the value in float32, and
            rounds it once, after the last update.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
            ``"clip"``) replaces the index by the nearest valid index.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        out: array to write the result to. ``out=data`` updates `data` in place.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: the element types of `data`, `updates` and `out` differ, the element type
            does not have the reduction, indices are not integers, or an argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, `out`
            shares memory with an argument in another way than ``out=data``, or two updates have
            the same destination with ``duplicates="reject"``.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `scatter_nd` are those of ONNX ScatterND 18 and OpenVINO ScatterNDUpdate
    15.

    >>> import numpy as np, ndscatter
    >>> table = np.zeros((3, 2))
    >>> rows = np.array([[0], [2], [2]])
    >>> ndscatter.scatter_nd(table, rows, [[1, 1], [2, 2], [3, 3]], reduction="add")
    array([[1., 1.],
           [0., 0.],
           [5., 5.]])
    """
def scatter_update(
    data: _A,
    indices: _Values,
    updates: _Values,
    axis: int = 0,
    *,
    reduction: _Reduction = "none",
    include_self: bool = True,
    accumulate: _Accumulate = "native",
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Write slices of `updates` to the positions `indices` along the axis `axis`.

    For each position ``i`` in `indices`, update ``[.., i, ..]`` is written to
    ``data[.., indices[i], ..]``. With ``axis=0``, each update is one row of a table. If several
    indices select the same position, their updates are applied in the row-major order of
    `indices`. Without a reduction, the position keeps the last of these updates.

    Args:
        data: array of rank 1 or more, of any element type except numpy's ``object``.
        indices: integers of any integer type and any shape.
        updates: array of the element type of `data`, of shape
            ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]`` or a shape that
            broadcasts to it.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        reduction: how an update is combined with the existing value. ``"none"`` replaces the
            existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
            ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
            ``"sum"`` and ``"amax"``, are accepted too.
        include_self: whether the existing value takes part in a reduction.
        accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
            of a destination after every update. ``"wide"`` computes the value in float32, and
            rounds it once, after the last update.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
            ``"clip"``) replaces the index by the nearest valid index.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        out: array to write the result to. ``out=data`` updates `data` in place.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: the element types of `data`, `updates` and `out` differ, the element type
            does not have the reduction, indices are not integers, or an argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, `out`
            shares memory with an argument in another way than ``out=data``, or two updates have
            the same destination with ``duplicates="reject"``.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `scatter_update` are those of OpenVINO ScatterUpdate 3, torch
    ``index_add_`` and segment sums. OpenVINO ScatterUpdate 3 forbids negative indices.

    >>> import numpy as np, ndscatter
    >>> data = np.zeros((2, 3), np.int32)
    >>> ndscatter.scatter_update(data, [2, 0], [[30, 10], [60, 40]], axis=1)
    array([[10,  0, 30],
           [40,  0, 60]], dtype=int32)
    """
def scatter_elements(
    data: _A,
    indices: _Values,
    updates: _Values,
    axis: int = 0,
    *,
    reduction: _Reduction = "none",
    include_self: bool = True,
    accumulate: _Accumulate = "native",
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Write each element of `updates` to one element of `data`. The index of the update is the
    position of the destination along the axis `axis`.

    For rank 3 and ``axis=1``, update ``[i, j, k]`` is written to
    ``data[i, indices[i, j, k], k]``. If several updates have the same destination, the updates
    are applied in the row-major order of `indices`. Without a reduction, the destination keeps
    the last of these updates.

    Args:
        data: array of rank 1 or more, of any element type except numpy's ``object``.
        indices: integers of any integer type, of the rank of `data`. Along `axis`, `indices`
            may have any size. Along every other axis, the size of `indices` is at most the size
            of `data`.
        updates: array of the element type of `data`, of the shape of `indices` or a shape
            that broadcasts to it.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        reduction: how an update is combined with the existing value. ``"none"`` replaces the
            existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
            ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
            ``"sum"`` and ``"amax"``, are accepted too.
        include_self: whether the existing value takes part in a reduction.
        accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
            of a destination after every update. ``"wide"`` computes the value in float32, and
            rounds it once, after the last update.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
            ``"clip"``) replaces the index by the nearest valid index.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        out: array to write the result to. ``out=data`` updates `data` in place.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: the element types of `data`, `updates` and `out` differ, the element type
            does not have the reduction, indices are not integers, or an argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, `out`
            shares memory with an argument in another way than ``out=data``, or two updates have
            the same destination with ``duplicates="reject"``.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `scatter_elements` are those of ONNX ScatterElements 18, OpenVINO
    ScatterElementsUpdate 12, torch ``scatter_reduce_`` and numpy ``put_along_axis``.

    >>> import numpy as np, ndscatter
    >>> data = np.array([1.0, 2.0, 3.0])
    >>> ndscatter.scatter_elements(data, [1, 1, -1], [0.5, 0.25, 1.0], reduction="add")
    array([1.  , 2.75, 4.  ])
    """
def tensor_scatter(
    data: _A,
    indices: _Values | None,
    updates: _Values,
    axis: int = -2,
    *,
    mode: _Mode = "linear",
    bounds: _Bounds = "error",
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Write the new rows of each sequence to consecutive positions of the sequence in a KV cache.

    Row ``s`` of the updates of sequence ``b`` is written to
    ``data[b, .., indices[b] + s, ..]``, where ``indices[b] + s`` is the position along `axis`. No
    two updates of a call have the same destination.

    Args:
        data: the cache, of rank 2 or more. Axis 0 is the axis of sequences.
        indices: integers of shape ``(data.shape[0],)``. The integer of a sequence is the position
            of its first new row. A single integer is the position for all sequences. None is
            position 0 for all sequences.
        updates: array of the element type and shape of `data`, except that `updates` may be
            shorter along `axis`.
        axis: the axis of positions. Axis 0 is not allowed.
        mode: ``"linear"`` requires that the updates of a sequence fit between its position
            and the end of the axis. ``"circular"`` takes positions modulo the length of the axis.
        bounds: treatment of a negative position: ``"error"`` raises an IndexError, and ``"skip"``
            drops the updates of the sequence. In linear mode, a position at which the updates do
            not fit raises an IndexError, whatever `bounds` is.
        out: array to write the result to. ``out=data`` updates `data` in place.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: a position is negative with ``bounds="error"``, or the updates do not fit at a
            position in linear mode.
        TypeError: the element types of `data`, `updates` and `out` differ, positions are not
            integers, or an argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
            shares memory with an argument in another way than ``out=data``.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `tensor_scatter` are those of ONNX TensorScatter 24.

    >>> import numpy as np, ndscatter
    >>> cache = np.zeros((2, 4, 1), np.float32)
    >>> step = np.ones((2, 1, 1), np.float32)
    >>> _ = ndscatter.tensor_scatter(cache, [0, 3], step, out=cache)
    >>> cache[..., 0]
    array([[1., 0., 0., 0.],
           [0., 0., 0., 1.]], dtype=float32)
    """
def gather_nd(
    data: _A,
    indices: _Values,
    *,
    batch_dims: int = 0,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Return the slices of `data` that tuples of coordinates address.

    With ``k = indices.shape[-1]`` and ``b = batch_dims``, the result has the shape
    ``indices.shape[:-1] + data.shape[b + k:]``. The first ``b`` dimensions of `data` must equal
    the first ``b`` dimensions of `indices`. Each position along these batch dimensions is a
    separate gather.

    Args:
        data: array of any shape, of any element type except numpy's ``object``.
        indices: integers of any integer type, of shape ``(..., k)``.
        batch_dims: number of leading dimensions that `data` and `indices` share.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
            (or ``"clip"``) replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        out: array to write the result to.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: `out` has another element type than `data`, indices are not integers, or an
            argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
            shares memory with `data` or `indices`.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `gather_nd` are those of ONNX GatherND 13.

    >>> import numpy as np, ndscatter
    >>> data = np.array([[0, 1], [2, 3]])
    >>> ndscatter.gather_nd(data, [[1, 0], [0, 1]])
    array([2, 1])
    """
def gather(
    data: _A,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Return the slices of `data` at the positions `indices` along the axis `axis`.

    The result has the shape
    ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``.

    Args:
        data: array of rank 1 or more, of any element type except numpy's ``object``.
        indices: integers of any integer type and any shape.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
            (or ``"clip"``) replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        out: array to write the result to.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: `out` has another element type than `data`, indices are not integers, or an
            argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
            shares memory with `data` or `indices`.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `gather` are those of ONNX Gather 13, numpy ``take`` and torch
    ``index_select``.

    >>> import numpy as np, ndscatter
    >>> ndscatter.gather(np.array([[1, 2], [3, 4], [5, 6]]), [2, 0])
    array([[5, 6],
           [1, 2]])
    """
def gather_elements(
    data: _A,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Return one element of `data` for each element of `indices`. The index is the position of the
    returned element along the axis `axis`.

    For rank 3 and ``axis=1``, element ``[i, j, k]`` of the result is
    ``data[i, indices[i, j, k], k]``. The result has the shape of `indices`.

    Args:
        data: array of rank 1 or more, of any element type except numpy's ``object``.
        indices: integers of any integer type, of the rank of `data`. Along `axis`, `indices`
            may have any size. Along every other axis, the size of `indices` is at most the size
            of `data`.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
            (or ``"clip"``) replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        out: array to write the result to.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: `out` has another element type than `data`, indices are not integers, or an
            argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
            shares memory with `data` or `indices`.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.
    The semantics of `gather_elements` are those of ONNX GatherElements 13, numpy
    ``take_along_axis`` and torch ``gather``.

    >>> import numpy as np, ndscatter
    >>> data = np.array([[1, 2], [3, 4]])
    >>> ndscatter.gather_elements(data, [[0, 0], [1, 0]], axis=1)
    array([[1, 1],
           [4, 3]])
    """
def gather_paged(
    data: _A,
    slots: _Values,
    *,
    bounds: _Bounds = "skip negative",
    out: _Array | None = None,
    threads: int | None = None,
) -> _A:
    """Return the rows of a paged cache at the positions `slots`.

    The cache has the shape ``(blocks, block_size, ...)``, as for `write_paged`. Row ``i`` of the
    result is slot ``slots[i]``. The result has the shape ``slots.shape + data.shape[2:]``.

    Args:
        data: the cache, of any element type except numpy's ``object``.
        slots: integers of any integer type and any shape.
        bounds: treatment of a slot that does not exist: ``"skip negative"`` fills the rows of
            negative slots with zeros, and raises an IndexError for a slot that is too large.
            ``"error"`` raises an IndexError for both, ``"skip"`` fills the rows of both with zeros,
            and ``"clamp"`` replaces the slot by the nearest valid slot. A negative slot never
            counts from the end.
        out: array to write the result to.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or the cache
            has no slots with ``bounds="clamp"``.
        TypeError: `out` has another element type than `data`, slots are not integers, or an
            argument is a masked array.
        ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
            shares memory with `data` or `slots`.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.

    >>> import numpy as np, ndscatter
    >>> ndscatter.gather_paged(np.array([[1, 2], [3, 4]]), [3, -1, 0])
    array([4, 0, 1])
    """
@final
class Write:
    """One write of a call of `write_all`: an array, its updates, and how the updates are converted.

    A `Write` keeps its arrays, so it can be used again after their values have changed. The call of
    `write_all` checks the arrays. Updates of the element type of `data` are copied, if no argument
    asks for a conversion. Other updates are converted, and must be float32, float16 or bfloat16.

    Args:
        data: the array that the write changes.
        updates: array of the shape that the indices and `data` require, or of a shape that broadcasts
            to it. For slots of a paged cache, this shape is ``slots.shape + data.shape[2:]``.
        format: what the elements of `data` are: ``"float32"``, ``"float16"``, ``"bfloat16"``,
            ``"float8_e4m3fn"``, ``"float8_e5m2"``, ``"int8"``, ``"uint8"``, ``"int4"`` or
            ``"uint4"``. None is the element type of `data`, but uint8 needs a format. 8-bit floats
            may be stored as uint8 or int8. 4-bit integers are stored as uint8 or int8, two in an
            element, the first of them in the low 4 bits. The last axis of `updates` is then twice
            as long as the last axis of `data`.
        rounding: ``"nearest even"`` rounds as torch. A value that is too large becomes infinity, or
            NaN in float8_e4m3fn. ``"saturate"`` clamps to the largest finite value, as ONNX, and as
            torch 2.12 and newer for float8_e4m3fn. ``"saturate nan"`` also replaces NaN by this
            value, as vLLM. ``"truncate"`` rounds toward zero, and otherwise as ``"saturate nan"``.
            Integers are clamped with every rounding.
        scaling: ``"divide"`` divides a value by its scale. ``"reciprocal"`` multiplies it by
            ``1 / scale``, as vLLM.
        scale: float32 numbers of a shape that broadcasts to the shape of `updates`: a number for the
            whole cache, shape ``(tokens, 1, 1)`` for one number for each row, or ``(heads, dim)``
            for each channel.
        zero_point: int32 numbers of a shape that broadcasts to the shape of `updates`. They are
            added to integers after the rounding.

    Raises:
        ValueError: `format`, `rounding` or `scaling` has an unknown name.

    >>> import numpy as np, ndscatter
    >>> keys, step = np.zeros((2, 2, 1), np.int8), np.zeros((1, 1), np.float32)
    >>> write = ndscatter.Write(keys, step, scale=0.5)
    >>> for slot, value in ((3, 1.0), (0, 2.5)):
    ...     step[:] = value
    ...     ndscatter.write_all([slot], [write])
    >>> keys[..., 0]
    array([[5, 0],
           [0, 2]], dtype=int8)
    """
    def __new__(
        cls,
        data: _Array,
        updates: _Values,
        *,
        format: _Format | None = None,
        rounding: _Rounding = "nearest even",
        scaling: _Scaling = "divide",
        scale: _Values | None = None,
        zero_point: _Values | None = None,
    ) -> Write: ...
    @property
    def data(self) -> Any:
        """The array that the write changes."""
    @property
    def updates(self) -> Any:
        """The values that the write stores in `data`."""

def write_paged(
    data: _Array,
    slots: _Values,
    updates: _Values,
    *,
    format: _Format | None = None,
    rounding: _Rounding = "nearest even",
    scaling: _Scaling = "divide",
    scale: _Values | None = None,
    zero_point: _Values | None = None,
    bounds: _Bounds = "skip negative",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> None:
    """Write new rows to slots of a paged cache, in place, and convert them to the cache's elements.

    A paged cache has the shape ``(blocks, block_size, ...)``. Slot ``s`` is
    ``data[s // block_size, s % block_size]``. A cache that stores another order of axes is passed as
    a view: ``cache.transpose(0, 2, 1, 3)`` in numpy or ``cache.transpose(1, 2)`` in PyTorch for
    ``(blocks, heads, block_size, dim)``. If several updates have the same slot, the last one stays.

    Args:
        data: the cache.
        slots: integers of any integer type and any shape.
        updates: array of shape ``slots.shape + data.shape[2:]`` or a shape that broadcasts to it.
            Updates of the element type of `data` are copied, if no argument asks for a conversion.
            Other updates are converted, and must be float32, float16 or bfloat16.
        format: what the elements of `data` are: ``"float32"``, ``"float16"``, ``"bfloat16"``,
            ``"float8_e4m3fn"``, ``"float8_e5m2"``, ``"int8"``, ``"uint8"``, ``"int4"`` or
            ``"uint4"``. None is the element type of `data`, but uint8 needs a format. 8-bit floats
            may be stored as uint8 or int8. 4-bit integers are stored as uint8 or int8, two in an
            element, the first of them in the low 4 bits. The last axis of `updates` is then twice
            as long as the last axis of `data`.
        rounding: ``"nearest even"`` rounds as torch. A value that is too large becomes infinity, or
            NaN in float8_e4m3fn. ``"saturate"`` clamps to the largest finite value, as ONNX, and as
            torch 2.12 and newer for float8_e4m3fn. ``"saturate nan"`` also replaces NaN by this
            value, as vLLM. ``"truncate"`` rounds toward zero, and otherwise as ``"saturate nan"``.
            Integers are clamped with every rounding.
        scaling: ``"divide"`` divides a value by its scale. ``"reciprocal"`` multiplies it by
            ``1 / scale``, as vLLM.
        scale: float32 numbers of a shape that broadcasts to the shape of `updates`: a number for the
            whole cache, shape ``(tokens, 1, 1)`` for one number for each row, or ``(heads, dim)``
            for each channel.
        zero_point: int32 numbers of a shape that broadcasts to the shape of `updates`. They are
            added to integers after the rounding.
        bounds: treatment of a slot that does not exist: ``"skip negative"`` skips negative slots
            and raises an IndexError for a slot that is too large. ``"error"`` raises an IndexError
            for both, ``"skip"`` skips both, and ``"clamp"`` replaces the slot by the nearest valid
            slot. A negative slot never counts from the end.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or there are
            no slots with ``bounds="clamp"``.
        TypeError: element types do not fit, slots are not integers, or an argument is a masked
            array.
        ValueError: a shape, an option, a scale or a zero point is wrong, `data` is read-only or may
            be read-only, `data` shares memory with another argument, or two updates have the same
            destination with ``duplicates="reject"``.
        MemoryError: an allocation failed.

    After each of these errors, no array has changed.
    The rule for slots is that of vLLM's ``reshape_and_cache``.

    >>> import numpy as np, ndscatter
    >>> cache = np.zeros((2, 2, 2), np.int8)
    >>> rows = np.array([[0.25, -1.0], [9.0, 9.0], [1.0, 70.0]], np.float32)
    >>> ndscatter.write_paged(cache, [3, -1, 0], rows, scale=0.5)
    >>> cache
    array([[[  2, 127],
            [  0,   0]],
    <BLANKLINE>
           [[  0,   0],
            [  0,  -2]]], dtype=int8)
    """
def write_all(
    indices: _Values,
    writes: Sequence[Write],
    *,
    axis: int | None = None,
    bounds: _Bounds = "skip negative",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> None:
    """Run several writes with the same indices, each in place and with its own arrays.

    All writes are checked before the first element is written. The threads divide the work of all
    writes, for example of the keys and values of all layers of a model.

    Args:
        indices: integers of any integer type and any shape.
        writes: a sequence of `Write`. The arrays that they change must not share memory.
        axis: the indexed axis, as in `scatter_update`. None: the indices are slots, as in
            `write_paged`. For a cache of shape ``(slots, heads, dim)``, pass ``axis=0``.
        bounds: treatment of a slot that does not exist: ``"skip negative"`` skips negative slots
            and raises an IndexError for a slot that is too large. ``"error"`` raises an IndexError
            for both, ``"skip"`` skips both, and ``"clamp"`` replaces the slot by the nearest valid
            slot. A negative slot never counts from the end.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    If several updates have the same destination, the last one stays.

    Raises:
        IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or there are
            no slots with ``bounds="clamp"``.
        TypeError: element types do not fit, slots are not integers, or an argument is a masked
            array.
        ValueError: a shape, an option, a scale or a zero point is wrong, `data` is read-only or may
            be read-only, `data` shares memory with another argument, or two updates have the same
            destination with ``duplicates="reject"``.
        MemoryError: an allocation failed.

    After each of these errors, no array has changed.

    >>> import numpy as np, ndscatter
    >>> keys, values = np.zeros((4, 1), np.float16), np.zeros((4, 1), np.float32)
    >>> step = np.array([[1.5], [2.5]], np.float32)
    >>> writes = [ndscatter.Write(keys, step), ndscatter.Write(values, -step)]
    >>> ndscatter.write_all([2, 0], writes, axis=0)
    >>> keys[:, 0], values[:, 0]
    (array([2.5, 0. , 1.5, 0. ], dtype=float16), array([-2.5,  0. , -1.5,  0. ], dtype=float32))
    """
def move_rows(
    tensors: _Array | Iterable[_Array],
    src: _Values,
    dst: _Values,
    *,
    axis: int | None = 0,
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> None:
    """Move rows of arrays onto rows of the same arrays, in place, as if all rows were read first.

    Row ``dst[i]`` of every array gets the old row ``src[i]``. A row may be both a source and a
    destination. If several moves have one destination, the last of them stays. One call moves the
    same rows of several arrays, for example of the keys and values of all layers of a model.

    Args:
        tensors: an array, or a sequence of arrays of any element types, shapes and strides. All
            have the same number of rows, and share no memory.
        src: integers of any integer type and any shape: the numbers of the rows to read.
        dst: integers of the shape of `src`: the numbers of the rows to write.
        axis: the axis of the rows. A negative axis counts from the end. None: the rows are the slots
            of paged caches, as in `write_paged`.
        bounds: treatment of a row number that is out of bounds: ``"error"`` raises an IndexError, and
            ``"skip"`` drops the move. ``"skip negative"`` drops the move of a negative row number,
            and raises an IndexError for a row number that is too large.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two moves have the same
            destination.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: a row number is out of bounds.
        TypeError: row numbers are not integers, the elements of an array are references, or an
            argument is a masked array.
        ValueError: a shape or an option is wrong, two arrays share memory, or an array is read-only
            or may be read-only.
        MemoryError: an allocation failed.

    After each of these errors, the arrays are unchanged. The rule is that of torch's
    ``cache[dst] = cache[src]`` and of the ``reorder_cache`` of transformers.

    >>> import numpy as np, ndscatter
    >>> beams = np.array([[1, 1], [2, 2], [3, 3]])
    >>> ndscatter.move_rows(beams, [2, 0, 0], [0, 1, 2])
    >>> beams
    array([[3, 3],
           [1, 1],
           [1, 1]])
    """
@final
class Explanation:
    """A report of how a call would run.

    `explain` and the method `explain` of plans return this report. ``str(explanation)`` is a text
    for people, which may change between versions. ``explanation.to_dict()`` has the facts by name.

    >>> import numpy as np, ndscatter
    >>> explanation = ndscatter.explain("gather", np.zeros((4, 8), np.float32), [3, 1])
    >>> print(explanation)  # doctest: +ELLIPSIS
    gather from float32 [4, 8]
      tuples     2, in each of 1 repetition(s)
      ...
    """
    def to_dict(self) -> dict[str, Any]:
        """Return the facts of the report.

        The keys are:

        - ``dtype``: numpy's name of the element type. Elements without arithmetic are moved as
          parts of 1, 2, 4, 8 or 16 bytes, such as ``bytes4``.
        - ``route``: ``"nothing"`` (nothing is written), ``"small"`` (the calling thread moves rows),
          ``"stream"`` (each element is moved when its index is checked) or ``"planned"`` (a
          schedule moves the elements).
        - ``schedule``: how the work is divided if the route is ``"planned"``, such as ``"serial"``.
        - ``tasks``: number of tasks of the schedule, if the route is ``"planned"``. A single task
          runs on the calling thread.
        - ``bytes_written``: bytes of all updates, or of all slices of a gather, plus the bytes of
          `data` that the call copies. The call writes fewer bytes if its schedule omits overwritten
          updates, or combines updates before it writes the results.
        - ``scratch_bytes``: largest number of bytes of memory that the schedule needs in addition to
          the arrays, if the route is ``"planned"``.
        - ``machine``: text that describes the machine for which the schedule was chosen.
        """

def explain(
    function: str | Callable[..., Any], /, *arguments: Any, **options: Any
) -> Explanation:
    """Report how a call of a scatter or a gather would run. The call does not run.

    Args:
        function: the function of this package to explain, or its name: `scatter_nd`,
            `scatter_update`, `scatter_elements`, `tensor_scatter`, `gather_nd`, `gather`,
            `gather_elements` or `gather_paged`.
        arguments: the positional arguments of the call.
        options: the keyword arguments of the call.

    Returns:
        An `Explanation`: ``str`` gives a text, and ``to_dict()`` gives the facts by name. The
        report assumes contiguous updates and no other call at the same time. For a call of a plan,
        use the method `explain` of the plan.

    Raises:
        TypeError: the arguments are not those of `function`.
        ValueError: calls of `function` are not explained.

    A call whose indices, options, shapes or element types are wrong has its own error here too.
    Shared memory of the arrays is not checked.

    >>> import numpy as np, ndscatter
    >>> table = np.zeros((4, 8), np.float32)
    >>> explanation = ndscatter.explain(
    ...     ndscatter.scatter_update, table, [2, 2], 1.0, reduction="add", out=table
    ... )
    >>> print(explanation)  # doctest: +ELLIPSIS
    scatter into float32 [4, 8], reduction add, in place
      tuples     2 (with duplicates), in each of 1 repetition(s)
      ...
    >>> explanation.to_dict()["bytes_written"]
    64
    """
@final
class ScatterPlan:
    """A scatter whose indices have been read and checked. `plan_scatter_nd` and the similar functions
    return it.

    Call the plan as ``plan(data, updates, out=None, threads=None)``, with `data` and `updates` of any
    element type that has the reduction of the plan. Without a reduction, an element must have 1, 2,
    4, 8 or 16 bytes, and the strides in bytes must be multiples of this size. Several threads may
    call the plan at the same time. A copy of a plan is the plan itself. A plan cannot be pickled.

    Args:
        data: array of the shape of the plan.
        updates: array of the element type of `data`, of shape `updates_shape` or a shape that
            broadcasts to it.
        out: array to write the result to, of the shape and strides of the plan. ``out=data`` updates
            `data` in place. `out` is required if the plan was made for an array that is not
            contiguous.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        TypeError: the element types of `data`, `updates` and `out` differ, the element type does
            not have the reduction of the plan, or the plan refuses the size of the elements.
        ValueError: a shape or the strides of `out` are wrong, `out` is read-only or may be
            read-only, or `out` shares memory with an argument in another way than ``out=data``.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_scatter_update((3, 2), [2, 2], reduction="add")
    >>> plan(np.zeros((3, 2)), [[1, 2], [3, 4]])
    array([[0., 0.],
           [0., 0.],
           [4., 6.]])
    """
    def __call__(
        self,
        data: _A,
        updates: _Values,
        out: _Array | None = None,
        threads: int | None = None,
    ) -> _A:
        """A scatter whose indices have been read and checked. `plan_scatter_nd` and the similar functions
        return it.

        Call the plan as ``plan(data, updates, out=None, threads=None)``, with `data` and `updates` of any
        element type that has the reduction of the plan. Without a reduction, an element must have 1, 2,
        4, 8 or 16 bytes, and the strides in bytes must be multiples of this size. Several threads may
        call the plan at the same time. A copy of a plan is the plan itself. A plan cannot be pickled.

        Args:
            data: array of the shape of the plan.
            updates: array of the element type of `data`, of shape `updates_shape` or a shape that
                broadcasts to it.
            out: array to write the result to, of the shape and strides of the plan. ``out=data`` updates
                `data` in place. `out` is required if the plan was made for an array that is not
                contiguous.
            threads: largest number of threads that the call uses: 1 is the calling thread alone,
                None is all threads of the thread pool.

        Returns:
            `out` if it was passed. Otherwise a new array of the library of `data`.

        Raises:
            TypeError: the element types of `data`, `updates` and `out` differ, the element type does
                not have the reduction of the plan, or the plan refuses the size of the elements.
            ValueError: a shape or the strides of `out` are wrong, `out` is read-only or may be
                read-only, or `out` shares memory with an argument in another way than ``out=data``.
            MemoryError: an allocation failed.

        After each of the errors listed under "Raises", `out` is unchanged.

        >>> import numpy as np, ndscatter
        >>> plan = ndscatter.plan_scatter_update((3, 2), [2, 2], reduction="add")
        >>> plan(np.zeros((3, 2)), [[1, 2], [3, 4]])
        array([[0., 0.],
               [0., 0.],
               [4., 6.]])
        """
    def explain(
        self,
        data: _Array,
        updates: _Values,
        out: _Array | None = None,
        threads: int | None = None,
    ) -> Explanation:
        """Report how a call of the plan would run. The arrays are not changed.

        Args:
            data: the argument of the call.
            updates: the argument of the call.
            out: the argument of the call.
            threads: the argument of the call.

        Returns:
            An `Explanation`. It depends on the element type of `data` and on whether `out` is
            `data`. It does not depend on the values of `data` and `updates`.

        Raises:
            TypeError: as the call.
            ValueError: as the call, except that the strides and shared memory are not checked.
            MemoryError: an allocation failed.

        >>> import numpy as np, ndscatter
        >>> plan = ndscatter.plan_scatter_update((4, 8), [1, 3], reduction="add")
        >>> plan.explain(np.zeros((4, 8)), 1.0).to_dict()["schedule"]
        'serial'
        """
    def __copy__(self) -> ScatterPlan: ...
    def __deepcopy__(self, memo: Any) -> ScatterPlan: ...
    def write_all(
        self, writes: Sequence[Write], *, threads: int | None = None
    ) -> None:
        """Run several writes with the indices of the plan, each in place and with its own arrays.

        Args:
            writes: a sequence of `Write`. The `data` of each has the shape and strides of the plan.
            threads: largest number of threads that the call uses: 1 is the calling thread alone,
                None is all threads of the thread pool.

        Raises:
            TypeError: element types do not fit, or an argument is a masked array.
            ValueError: a shape, the strides of `data`, a scale or a zero point is wrong, the plan has a
                reduction, `data` is read-only or may be read-only, or `data` shares memory with another
                argument.
            MemoryError: an allocation failed.

        After each of these errors, no array has changed.
        """
    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `data` and of the result in a call of the plan."""
    @property
    def updates_shape(self) -> tuple[int, ...]:
        """Shape of `updates` in a call of the plan. A call also accepts `updates` of a shape that
        broadcasts to this shape.
        """
    @property
    def tuples(self) -> int:
        """Number of tuples of `indices` that a call of the plan applies, which are all tuples that
        ``bounds="skip"`` did not drop. In `tensor_scatter`, and in `scatter_elements` if one index
        stands for a whole row, the row counts as one tuple.
        """
    @property
    def skipped(self) -> int:
        """Number of tuples that ``bounds="skip"`` dropped."""
    def has_duplicates(self) -> bool:
        """Return whether two or more tuples of the plan have the same destination. The plan stores the
        answer, so that later calls of this method do not compute it again.
        """

@final
class GatherPlan:
    """A gather whose indices have been read and checked. `plan_gather` and the similar functions return
    it.

    Call the plan as ``plan(data, out=None, threads=None)``, with `data` of any element type whose
    elements have 1, 2, 4, 8 or 16 bytes. The strides in bytes must be multiples of this size. Several
    threads may call the plan at the same time. A copy of a plan is the plan itself. A plan cannot be
    pickled.

    Args:
        data: array of the shape and strides of the plan.
        out: array to write the result to, of shape `output_shape`.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of the library of `data`.

    Raises:
        TypeError: `out` has another element type than `data`, or the plan refuses the size of the
            elements.
        ValueError: a shape or the strides of `data` are wrong, `out` is read-only or may be
            read-only, or `out` shares memory with `data`.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_gather((3,), [2, 2, 0])
    >>> plan(np.array([1.0, 2.0, 3.0]))
    array([3., 3., 1.])
    """
    def __call__(
        self,
        data: _A,
        out: _Array | None = None,
        threads: int | None = None,
    ) -> _A:
        """A gather whose indices have been read and checked. `plan_gather` and the similar functions return
        it.

        Call the plan as ``plan(data, out=None, threads=None)``, with `data` of any element type whose
        elements have 1, 2, 4, 8 or 16 bytes. The strides in bytes must be multiples of this size. Several
        threads may call the plan at the same time. A copy of a plan is the plan itself. A plan cannot be
        pickled.

        Args:
            data: array of the shape and strides of the plan.
            out: array to write the result to, of shape `output_shape`.
            threads: largest number of threads that the call uses: 1 is the calling thread alone,
                None is all threads of the thread pool.

        Returns:
            `out` if it was passed. Otherwise a new array of the library of `data`.

        Raises:
            TypeError: `out` has another element type than `data`, or the plan refuses the size of the
                elements.
            ValueError: a shape or the strides of `data` are wrong, `out` is read-only or may be
                read-only, or `out` shares memory with `data`.
            MemoryError: an allocation failed.

        After each of the errors listed under "Raises", `out` is unchanged.

        >>> import numpy as np, ndscatter
        >>> plan = ndscatter.plan_gather((3,), [2, 2, 0])
        >>> plan(np.array([1.0, 2.0, 3.0]))
        array([3., 3., 1.])
        """
    def explain(
        self,
        data: _Array,
        out: _Array | None = None,
        threads: int | None = None,
    ) -> Explanation:
        """Report how a call of the plan would run. The arrays are not changed.

        Args:
            data: the argument of the call.
            out: the argument of the call.
            threads: the argument of the call.

        Returns:
            An `Explanation`. It depends on the element type of `data`, and does not depend on the
            values of `data`.

        Raises:
            TypeError: as the call.
            ValueError: as the call, except that the strides and shared memory are not checked.
            MemoryError: an allocation failed.

        >>> import numpy as np, ndscatter
        >>> plan = ndscatter.plan_gather((4, 8), [1, 3])
        >>> plan.explain(np.zeros((4, 8))).to_dict()["schedule"]
        'serial'
        """
    def __copy__(self) -> GatherPlan: ...
    def __deepcopy__(self, memo: Any) -> GatherPlan: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `data` in a call of the plan."""
    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the result of a call of the plan."""
    @property
    def skipped(self) -> int:
        """Number of tuples that ``bounds="skip"`` dropped."""

@final
class Sharding:
    """Division of the rows of a table among parts, for example the processes of a cluster. The class
    methods `blocks`, `modulo` and `starts` make one.

    >>> import ndscatter
    >>> sharding = ndscatter.Sharding.blocks(2)
    >>> [sharding.rows_of(part, 7) for part in range(2)]
    [4, 3]
    >>> sharding.owner(5, 7), sharding.row(1, 1, 7)
    ((1, 1), 5)
    """
    @classmethod
    def blocks(cls, parts: SupportsIndex) -> Sharding:
        """Divide the rows into `parts` blocks of consecutive rows. Every block has
        ``ceil(rows / parts)`` rows. The last blocks may have fewer rows, or none. This is the
        division of ``torch.chunk``, and of a ``DTensor`` with the placement ``Shard(0)``.

        Args:
            parts: number of parts, at least 1.

        Raises:
            ValueError: `parts` is 0 or too large.
        """
    @classmethod
    def modulo(cls, parts: SupportsIndex) -> Sharding:
        """Give row ``r`` to part ``r % parts``. Row ``r`` is row ``r // parts`` of this part.

        Args:
            parts: number of parts, at least 1.

        Raises:
            ValueError: `parts` is 0 or too large.
        """
    @classmethod
    def starts(cls, starts: Iterable[SupportsIndex]) -> Sharding:
        """Give the rows from ``starts[p]`` to ``starts[p + 1] - 1`` to part ``p``. The last part has all
        rows from its start to the end of the table.

        Args:
            starts: the first row of each part: 0, and then integers in ascending order.

        Raises:
            ValueError: `starts` is empty, does not begin with 0, or does not ascend.
        """
    @property
    def parts(self) -> int:
        """Number of parts."""
    def rows_of(self, part: SupportsIndex, rows: SupportsIndex) -> int:
        """Return the number of rows that part `part` has of a table of `rows` rows."""
    def owner(self, row: SupportsIndex, rows: SupportsIndex) -> tuple[int, int] | None:
        """Return the part that has row `row` of a table of `rows` rows, and the position of the row in
        this part. Return None if the table has no such row.
        """
    def row(self, part: SupportsIndex, local: SupportsIndex, rows: SupportsIndex) -> int | None:
        """Return the row of the table that is row `local` of part `part`. `rows` is the number of rows
        of the table. Return None if the part has no such row.
        """

@final
class ShardedPlan:
    """The tuples of one sender, split by the parts of a table that have their destinations.
    `plan_sharded` returns it.

    The plan has a list of entries in the order of the parts. The owner of a part applies the entries
    of sender 0, then those of sender 1, and so on. The result then has the bits of one loop over the
    tuples of all senders in this order.

    Do not change the arrays of a plan.
    """
    @property
    def counts(self) -> tuple[int, ...]:
        """Number of entries of each part."""
    @property
    def destinations(self) -> NDArray[np.int64]:
        """Array of int64: the number of each entry's destination among the slices of its part. A slice
        is a row, or for tuples of several coordinates a part of a row.
        """
    @property
    def order(self) -> NDArray[np.int64] | None:
        """Array of int64: the tuple of each entry. The packed updates are
        ``gather(updates, order)``, and the results of a gather are scattered to these positions.
        None if `slots` is not None.
        """
    @property
    def slots(self) -> NDArray[np.int64] | None:
        """Array of int64: the entry of each tuple, or -1 for a skipped tuple. The updates of an entry
        are combined with `packing_reduction`. In a gather, several tuples use one answer. None if
        each entry has one tuple: without `combine`, and in a scatter without a reduction, which sends
        the last update of a destination.
        """
    @property
    def packing_reduction(self) -> str:
        """Name of the reduction that combines the updates of an entry."""
    @property
    def tuples(self) -> int:
        """Number of all tuples. The number includes skipped tuples."""
    @property
    def skipped(self) -> int:
        """Number of tuples that ``bounds="skip"`` dropped."""

def plan_sharded(
    shape: tuple[SupportsIndex, ...] | int,
    indices: _Values,
    sharding: Sharding,
    *,
    operator: Literal["rows", "tuples", "slots"] = "rows",
    reads: bool = False,
    combine: bool = False,
    reduction: _Reduction = "none",
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> ShardedPlan:
    """Split the tuples of `indices` by the parts of a table that have their destinations. The table
    itself is not needed, and may be larger than memory. Tuples with the same destination keep their
    order.

    Args:
        shape: shape of the whole table: a tuple, or an integer for one axis. The rows are on axis 0.
        indices: integers of any integer type, which address the whole table.
        sharding: the division of the rows.
        operator: ``"rows"`` reads indices as rows, like `scatter_update` and `gather`. ``"tuples"``
            reads the last axis of `indices` as tuples of coordinates, like `scatter_nd` and
            `gather_nd`. ``"slots"`` reads slots of a paged cache, like `write_paged` and
            `gather_paged`.
        reads: whether the plan is for a gather.
        combine: whether the plan has one entry for each destination instead of one for each tuple.
            In a scatter, the updates of a destination are combined before they are sent. For floats
            with ``"add"``, ``"sub"`` or ``"mul"``, this changes the rounding errors. A combined
            ``"sub"`` of booleans has another result than the loop.
        reduction: the reduction of the scatter. It has an effect only if `combine` is true.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError, ``"skip"``
            drops the tuple, ``"skip negative"`` drops the tuples of negative indices, and
            ``"clamp"`` replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: an index is out of bounds.
        TypeError: indices are not integers.
        ValueError: a shape or an option is wrong, or `combine` is true for ``"mean"``.
        MemoryError: an allocation failed.

    >>> import ndscatter
    >>> sharding = ndscatter.Sharding.blocks(2)
    >>> plan = ndscatter.plan_sharded((5, 64), [4, 0, 4], sharding)
    >>> plan.counts, plan.destinations, plan.order
    ((1, 2), array([0, 1, 1]), array([1, 0, 2]))
    """

def plan_scatter_nd(
    data: _Layout,
    indices: _Values,
    *,
    reduction: _Reduction = "none",
    include_self: bool = True,
    accumulate: _Accumulate = "native",
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    negative_indices: bool = True,
    threads: int | None = None,
) -> ScatterPlan:
    """Return a plan of `scatter_nd` for several calls with the same indices.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of any integer type, of shape ``(..., k)`` with ``k <= data.ndim``.
            This function reads and checks the indices. The calls of the plan do not read
            `indices` again.
        reduction: how an update is combined with the existing value. ``"none"`` replaces the
            existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
            ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
            ``"sum"`` and ``"amax"``, are accepted too.
        include_self: whether the existing value takes part in a reduction.
        accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
            of a destination after every update. ``"wide"`` computes the value in float32, and
            rounds it once, after the last update.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
            ``"clip"``) replaces the index by the nearest valid index.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `ScatterPlan`. Call it with `data`, `updates` and `out`. If several updates have the
        same destination, a call applies them in the row-major order of `indices`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: indices are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong, or two updates have the same destination with
            ``duplicates="reject"``.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_scatter_nd((4,), [[3], [1], [3]], reduction="add")
    >>> plan(np.zeros(4, int), [1, 1, 1])
    array([0, 1, 0, 2])
    """
def plan_scatter_update(
    data: _Layout,
    indices: _Values,
    axis: int = 0,
    *,
    reduction: _Reduction = "none",
    include_self: bool = True,
    accumulate: _Accumulate = "native",
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    negative_indices: bool = True,
    threads: int | None = None,
) -> ScatterPlan:
    """Return a plan of `scatter_update` for several calls with the same indices.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of any integer type, and any shape.
            This function reads and checks the indices. The calls of the plan do not read
            `indices` again.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        reduction: how an update is combined with the existing value. ``"none"`` replaces the
            existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
            ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
            ``"sum"`` and ``"amax"``, are accepted too.
        include_self: whether the existing value takes part in a reduction.
        accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
            of a destination after every update. ``"wide"`` computes the value in float32, and
            rounds it once, after the last update.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
            ``"clip"``) replaces the index by the nearest valid index.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `ScatterPlan`. Call it with `data`, `updates` and `out`. If several updates have the
        same destination, a call applies them in the row-major order of `indices`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: indices are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong, or two updates have the same destination with
            ``duplicates="reject"``.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_scatter_update((2, 3), [2, 0], axis=1)
    >>> plan(np.zeros((2, 3), int), [[30, 10], [60, 40]])
    array([[10,  0, 30],
           [40,  0, 60]])
    """
def plan_scatter_elements(
    data: _Layout,
    indices: _Values,
    axis: int = 0,
    *,
    reduction: _Reduction = "none",
    include_self: bool = True,
    accumulate: _Accumulate = "native",
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    negative_indices: bool = True,
    threads: int | None = None,
) -> ScatterPlan:
    """Return a plan of `scatter_elements` for several calls with the same indices.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of any integer type, of the rank of `data`. Along every axis except
            `axis`, the size of `indices` is at most the size of `data`.
            This function reads and checks the indices. The calls of the plan do not read
            `indices` again.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        reduction: how an update is combined with the existing value. ``"none"`` replaces the
            existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
            ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
            ``"sum"`` and ``"amax"``, are accepted too.
        include_self: whether the existing value takes part in a reduction.
        accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
            of a destination after every update. ``"wide"`` computes the value in float32, and
            rounds it once, after the last update.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
            ``"clip"``) replaces the index by the nearest valid index.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `ScatterPlan`. Call it with `data`, `updates` and `out`. If several updates have the
        same destination, a call applies them in the row-major order of `indices`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: indices are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong, or two updates have the same destination with
            ``duplicates="reject"``.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_scatter_elements((3,), [1, 1, -1], reduction="max")
    >>> plan(np.array([1.0, 2.0, 3.0]), [9.0, 4.0, 1.0])
    array([1., 9., 3.])
    """
def plan_tensor_scatter(
    data: _Layout,
    indices: _Values | None = None,
    axis: int = -2,
    *,
    mode: _Mode = "linear",
    update_len: int = 1,
    bounds: _Bounds = "error",
    threads: int | None = None,
) -> ScatterPlan:
    """Return a plan of `tensor_scatter` for several calls with the same positions.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of shape ``(data.shape[0],)``: the position of the first new row of each
            sequence. A single integer is the position for all sequences. None is position 0 for
            all sequences.
        axis: the axis of positions. Axis 0 is the axis of sequences, and is not allowed.
        mode: ``"linear"`` requires that the updates of a sequence fit between its position
            and the end of the axis. ``"circular"`` takes positions modulo the length of the axis.
        update_len: size of the updates along `axis`, which is the number of rows per sequence.
        bounds: treatment of a negative position: ``"error"`` raises an IndexError, and ``"skip"``
            drops the updates of the sequence. In linear mode, a position at which the updates do
            not fit raises an IndexError, whatever `bounds` is.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `ScatterPlan`. Call it with `data`, `updates` and `out`.

    Raises:
        IndexError: a position is negative with ``bounds="error"``, or the updates do not fit at a
            position in linear mode.
        TypeError: positions are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_tensor_scatter((2, 4, 1), [0, 3])
    >>> plan.updates_shape
    (2, 1, 1)
    """
def plan_gather_nd(
    data: _Layout,
    indices: _Values,
    *,
    batch_dims: int = 0,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> GatherPlan:
    """Return a plan of `gather_nd` for several calls with the same indices.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of any integer type, of shape ``(..., k)``.
            This function reads and checks the indices. The calls of the plan do not read
            `indices` again.
        batch_dims: number of leading dimensions that `data` and `indices` share.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
            (or ``"clip"``) replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `GatherPlan`. Call it with `data` and `out`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: indices are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_gather_nd((2, 2), [[1, 0], [0, 1]])
    >>> plan(np.array([[0, 1], [2, 3]]))
    array([2, 1])
    """
def plan_gather(
    data: _Layout,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> GatherPlan:
    """Return a plan of `gather` for several calls with the same indices.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of any integer type, and any shape.
            This function reads and checks the indices. The calls of the plan do not read
            `indices` again.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
            (or ``"clip"``) replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `GatherPlan`. Call it with `data` and `out`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: indices are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> ndscatter.plan_gather((3,), [2, 2, 0])(np.array([1.0, 2.0, 3.0]))
    array([3., 3., 1.])
    """
def plan_gather_elements(
    data: _Layout,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> GatherPlan:
    """Return a plan of `gather_elements` for several calls with the same indices.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        indices: integers of any integer type, of the rank of `data`. Along every axis except
            `axis`, the size of `indices` is at most the size of `data`.
            This function reads and checks the indices. The calls of the plan do not read
            `indices` again.
        axis: the indexed axis. A negative axis counts from the end: -1 is the last axis.
        bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
            ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
            (or ``"clip"``) replaces the index by the nearest valid index.
        negative_indices: whether a negative index counts from the end of its axis. If False, a
            negative index is out of bounds.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `GatherPlan`. Call it with `data` and `out`.

    Raises:
        IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
            empty with ``bounds="clamp"``.
        TypeError: indices are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> ndscatter.plan_gather_elements((3,), [2, 2, 0])(np.array([1.0, 2.0, 3.0]))
    array([3., 3., 1.])
    """
def plan_scatter_paged(
    data: _Layout,
    slots: _Values,
    *,
    bounds: _Bounds = "skip negative",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> ScatterPlan:
    """Return a plan of `write_paged` or `write_all` for several calls with the same slots.

    Call ``plan.write_all(writes)`` to write in place, or the plan itself to copy `data`.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        slots: integers of any integer type and any shape. This function reads and checks the
            slots. The calls of the plan do not read `slots` again.
        bounds: treatment of a slot that does not exist: ``"skip negative"`` skips negative slots
            and raises an IndexError for a slot that is too large. ``"error"`` raises an IndexError
            for both, ``"skip"`` skips both, and ``"clamp"`` replaces the slot by the nearest valid
            slot. A negative slot never counts from the end.
        duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
            same destination.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `ScatterPlan`. If several updates have the same slot, the last one stays.

    Raises:
        IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or the cache
            has no slots with ``bounds="clamp"``.
        TypeError: slots are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong, or two updates have the same slot with
            ``duplicates="reject"``.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> plan = ndscatter.plan_scatter_paged((2, 2, 1), [3, -1, 0])
    >>> layers = [np.zeros((2, 2, 1), np.int8) for _ in range(2)]
    >>> step = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> plan.write_all([ndscatter.Write(layer, step) for layer in layers])
    >>> plan.skipped, layers[1][..., 0]
    (1, array([[3, 0],
           [0, 1]], dtype=int8))
    """
def plan_gather_paged(
    data: _Layout,
    slots: _Values,
    *,
    bounds: _Bounds = "skip negative",
    threads: int | None = None,
) -> GatherPlan:
    """Return a plan of `gather_paged` for several calls with the same slots.

    Args:
        data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
            if these arrays are contiguous. Otherwise an array with their shape and strides.
        slots: integers of any integer type and any shape. This function reads and checks the
            slots. The calls of the plan do not read `slots` again.
        bounds: treatment of a slot that does not exist: ``"skip negative"`` fills the rows of
            negative slots with zeros, and raises an IndexError for a slot that is too large.
            ``"error"`` raises an IndexError for both, ``"skip"`` fills the rows of both with zeros,
            and ``"clamp"`` replaces the slot by the nearest valid slot. A negative slot never
            counts from the end.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        A `GatherPlan`. Call it with `data` and `out`.

    Raises:
        IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or the cache
            has no slots with ``bounds="clamp"``.
        TypeError: slots are not integers, or `data` is neither an array nor a shape.
        ValueError: a shape or an option is wrong.
        MemoryError: an allocation failed.

    >>> import numpy as np, ndscatter
    >>> ndscatter.plan_gather_paged((2, 2), [3, -1, 0])(np.array([[1, 2], [3, 4]]))
    array([4, 0, 1])
    """
def add_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None:
    """Add `b` to ``a[indices]`` in place, once for each occurrence of an index: ``np.add.at``.

    Args:
        a: writable numpy array of any shape.
        indices: any index that numpy accepts: integers, booleans, slices, arrays, None, and
            tuples of these.
        b: array, list or number that broadcasts to the shape of ``a[indices]``. If `b` may
            share memory with `a`, a copy of `b` is used.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: an index is out of bounds, or numpy does not accept `indices` as an index.
        TypeError: `a` is not a numpy array or is a masked array, numpy does not define the
            operation for the types of `a` and `b`, or numpy refuses to convert the result to the
            type of `a`. For a tensor of another library, use `scatter_update` with ``out=a``.
        ValueError: `b` does not broadcast to the shape of ``a[indices]``, `a` is read-only, or numpy's
            own function would run and `a` has 32 or more dimensions.
        MemoryError: an allocation failed.

    If several values of `b` belong to one element of `a`, they are applied in the row-major order
    of ``a[indices]``. The result is equal to numpy's result in every bit, and does not depend on the
    number of threads. If a kernel of ndscatter runs the call and the call raises an error, `a` is
    unchanged. A kernel gives no warning if a float overflows.

    In some calls, numpy's own function runs instead of a kernel. One reason is a type for which
    ndscatter has no arithmetic. Another reason is a type for which a kernel's result could differ from
    numpy's result. A kernel's result could differ for an `a` of float32 and a `b` of float64, if
    float32 does not represent `b` exactly.

    >>> import numpy as np, ndscatter
    >>> a = np.array([1, 2, 3, 4])
    >>> ndscatter.add_at(a, [0, 1, 1], 10)
    >>> a
    array([11, 22,  3,  4])
    """
def subtract_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None:
    """Subtract `b` from ``a[indices]`` in place, once for each occurrence of an index:
    ``np.subtract.at``.

    Args:
        a: writable numpy array of any shape.
        indices: any index that numpy accepts: integers, booleans, slices, arrays, None, and
            tuples of these.
        b: array, list or number that broadcasts to the shape of ``a[indices]``. If `b` may
            share memory with `a`, a copy of `b` is used.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: an index is out of bounds, or numpy does not accept `indices` as an index.
        TypeError: `a` is not a numpy array or is a masked array, numpy does not define the
            operation for the types of `a` and `b`, or numpy refuses to convert the result to the
            type of `a`. For a tensor of another library, use `scatter_update` with ``out=a``.
        ValueError: `b` does not broadcast to the shape of ``a[indices]``, `a` is read-only, or numpy's
            own function would run and `a` has 32 or more dimensions.
        MemoryError: an allocation failed.

    If several values of `b` belong to one element of `a`, they are applied in the row-major order
    of ``a[indices]``. The result is equal to numpy's result in every bit, and does not depend on the
    number of threads. If a kernel of ndscatter runs the call and the call raises an error, `a` is
    unchanged. A kernel gives no warning if a float overflows.

    In some calls, numpy's own function runs instead of a kernel. One reason is a type for which
    ndscatter has no arithmetic. Another reason is a type for which a kernel's result could differ from
    numpy's result. A kernel's result could differ for an `a` of float32 and a `b` of float64, if
    float32 does not represent `b` exactly.

    >>> import numpy as np, ndscatter
    >>> a = np.array([10, 20, 30])
    >>> ndscatter.subtract_at(a, [0, 0, 2], [1, 2, 3])
    >>> a
    array([ 7, 20, 27])
    """
def multiply_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None:
    """Multiply ``a[indices]`` by `b` in place, once for each occurrence of an index:
    ``np.multiply.at``.

    Args:
        a: writable numpy array of any shape.
        indices: any index that numpy accepts: integers, booleans, slices, arrays, None, and
            tuples of these.
        b: array, list or number that broadcasts to the shape of ``a[indices]``. If `b` may
            share memory with `a`, a copy of `b` is used.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: an index is out of bounds, or numpy does not accept `indices` as an index.
        TypeError: `a` is not a numpy array or is a masked array, numpy does not define the
            operation for the types of `a` and `b`, or numpy refuses to convert the result to the
            type of `a`. For a tensor of another library, use `scatter_update` with ``out=a``.
        ValueError: `b` does not broadcast to the shape of ``a[indices]``, `a` is read-only, or numpy's
            own function would run and `a` has 32 or more dimensions.
        MemoryError: an allocation failed.

    If several values of `b` belong to one element of `a`, they are applied in the row-major order
    of ``a[indices]``. The result is equal to numpy's result in every bit, and does not depend on the
    number of threads. If a kernel of ndscatter runs the call and the call raises an error, `a` is
    unchanged. A kernel gives no warning if a float overflows.

    In some calls, numpy's own function runs instead of a kernel. One reason is a type for which
    ndscatter has no arithmetic. Another reason is a type for which a kernel's result could differ from
    numpy's result. A kernel's result could differ for an `a` of float32 and a `b` of float64, if
    float32 does not represent `b` exactly.

    >>> import numpy as np, ndscatter
    >>> a = np.array([1.0, 2.0, 3.0])
    >>> ndscatter.multiply_at(a, [0, 2, 2], 10)
    >>> a
    array([ 10.,   2., 300.])
    """
def minimum_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None:
    """Replace ``a[indices]`` by the minimum of ``a[indices]`` and `b` in place:
    ``np.minimum.at``.

    Args:
        a: writable numpy array of any shape.
        indices: any index that numpy accepts: integers, booleans, slices, arrays, None, and
            tuples of these.
        b: array, list or number that broadcasts to the shape of ``a[indices]``. If `b` may
            share memory with `a`, a copy of `b` is used.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: an index is out of bounds, or numpy does not accept `indices` as an index.
        TypeError: `a` is not a numpy array or is a masked array, numpy does not define the
            operation for the types of `a` and `b`, or numpy refuses to convert the result to the
            type of `a`. For a tensor of another library, use `scatter_update` with ``out=a``.
        ValueError: `b` does not broadcast to the shape of ``a[indices]``, `a` is read-only, or numpy's
            own function would run and `a` has 32 or more dimensions.
        MemoryError: an allocation failed.

    If several values of `b` belong to one element of `a`, they are applied in the row-major order
    of ``a[indices]``. The result is equal to numpy's result in every bit, and does not depend on the
    number of threads. If a kernel of ndscatter runs the call and the call raises an error, `a` is
    unchanged. A kernel gives no warning if a float overflows.

    In some calls, numpy's own function runs instead of a kernel. One reason is a type for which
    ndscatter has no arithmetic. Another reason is a type for which a kernel's result could differ from
    numpy's result. A kernel's result could differ for an `a` of float32 and a `b` of float64, if
    float32 does not represent `b` exactly.

    If the element of `a` or the value of `b` is NaN, the result is NaN. If the element and the
    value are zeros of different signs, a kernel of ndscatter keeps the element. numpy's result
    for such zeros depends on the type and the machine.

    >>> import numpy as np, ndscatter
    >>> a = np.array([5, 5, 5])
    >>> ndscatter.minimum_at(a, [0, 0, 2], [3, 4, 9])
    >>> a
    array([3, 5, 5])
    """
def maximum_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None:
    """Replace ``a[indices]`` by the maximum of ``a[indices]`` and `b` in place:
    ``np.maximum.at``.

    Args:
        a: writable numpy array of any shape.
        indices: any index that numpy accepts: integers, booleans, slices, arrays, None, and
            tuples of these.
        b: array, list or number that broadcasts to the shape of ``a[indices]``. If `b` may
            share memory with `a`, a copy of `b` is used.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Raises:
        IndexError: an index is out of bounds, or numpy does not accept `indices` as an index.
        TypeError: `a` is not a numpy array or is a masked array, numpy does not define the
            operation for the types of `a` and `b`, or numpy refuses to convert the result to the
            type of `a`. For a tensor of another library, use `scatter_update` with ``out=a``.
        ValueError: `b` does not broadcast to the shape of ``a[indices]``, `a` is read-only, or numpy's
            own function would run and `a` has 32 or more dimensions.
        MemoryError: an allocation failed.

    If several values of `b` belong to one element of `a`, they are applied in the row-major order
    of ``a[indices]``. The result is equal to numpy's result in every bit, and does not depend on the
    number of threads. If a kernel of ndscatter runs the call and the call raises an error, `a` is
    unchanged. A kernel gives no warning if a float overflows.

    In some calls, numpy's own function runs instead of a kernel. One reason is a type for which
    ndscatter has no arithmetic. Another reason is a type for which a kernel's result could differ from
    numpy's result. A kernel's result could differ for an `a` of float32 and a `b` of float64, if
    float32 does not represent `b` exactly.

    If the element of `a` or the value of `b` is NaN, the result is NaN. If the element and the
    value are zeros of different signs, a kernel of ndscatter keeps the element. numpy's result
    for such zeros depends on the type and the machine.

    >>> import numpy as np, ndscatter
    >>> a = np.array([5, 5, 5])
    >>> ndscatter.maximum_at(a, [0, 0, 2], [3, 7, 9])
    >>> a
    array([7, 5, 9])
    """
@overload
def bincount(
    x: _Values,
    weights: None = None,
    minlength: int = 0,
    out: None = None,
    *,
    threads: int | None = None,
) -> NDArray[np.intp]:
    """Count how often each number occurs in `x`, or sum the weights of each number: ``np.bincount``.

    Args:
        x: integers or booleans of shape ``(n,)``, not negative. Each element of `x` is the
            number of a bin.
        weights: array of shape ``(n,)``. The weights of one bin are added in the order of
            their positions in `x`. The sums have the element type of `out`, or float64 without
            `out`.
        minlength: smallest number of bins.
        out: numpy array of shape ``(bins,)`` with ``bins >= minlength``, of any numeric type.
            All elements of `out` are overwritten.
        threads: largest number of threads that the call uses: 1 is the calling thread alone,
            None is all threads of the thread pool.

    Returns:
        `out` if it was passed. Otherwise a new array of ``max(max(x) + 1, minlength)`` bins: counts
        of type ``intp``, or sums of type float64 if there are weights.

    Raises:
        IndexError: an element of `x` is not smaller than the number of bins of `out`.
        TypeError: the elements of `x` are neither integers nor booleans, numpy refuses to
            convert the weights to the element type of the result, or `out` is not a numpy array
            of numbers.
        ValueError: an element of `x` or `minlength` is negative, a shape is wrong, `out` is
            read-only or may be read-only, or `out` shares memory with `x` or `weights`.
        MemoryError: an allocation failed.

    After each of the errors listed under "Raises", `out` is unchanged.

    >>> import numpy as np, ndscatter
    >>> ndscatter.bincount([0, 1, 1, 3, 2, 1, 7])
    array([1, 3, 1, 1, 0, 0, 0, 1])
    >>> ndscatter.bincount([0, 1, 1, 2], weights=[0.3, 0.5, 0.2, 0.7])
    array([0.3, 0.7, 0.7])
    """
@overload
def bincount(
    x: _Values,
    weights: _Values,
    minlength: int = 0,
    out: None = None,
    *,
    threads: int | None = None,
) -> NDArray[np.float64]: ...
@overload
def bincount(
    x: _Values,
    weights: _Values | None = None,
    minlength: int = 0,
    *,
    out: _O,
    threads: int | None = None,
) -> _O: ...
def instruction_set() -> str:
    """Return the name of the instruction set that the kernels use on this machine."""
def threads() -> int:
    """Return the largest number of threads that a call uses.

    The environment variable ``RAYON_NUM_THREADS`` sets this number. The variable must be set before
    the process calls this function or runs a kernel for the first time.
    """
def machine() -> str:
    """Return a text that describes the machine for which the cost model chooses schedules.

    The text states the sizes of the caches in KiB. The text also states whether the rates of the
    cost model are the typical rates of the CPU's vendor or other rates, such as rates from a
    machine file.
    """
def release_scratch() -> None:
    """Free the unused scratch memory that the process keeps for later calls."""
