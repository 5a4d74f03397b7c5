from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "GatherPlan",
    "ScatterPlan",
    "Write",
    "__version__",
    "add_at",
    "bincount",
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
_Bounds: TypeAlias = Literal["error", "skip", "clamp", "skip negative"]
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
_Layout: TypeAlias = tuple[SupportsIndex, ...] | _Array

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
) -> _A: ...
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
) -> _A: ...
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
) -> _A: ...
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
) -> _A: ...
def gather_nd(
    data: _A,
    indices: _Values,
    *,
    batch_dims: int = 0,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A: ...
def gather(
    data: _A,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A: ...
def gather_elements(
    data: _A,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    out: _Array | None = None,
    threads: int | None = None,
) -> _A: ...
def gather_paged(
    data: _A,
    slots: _Values,
    *,
    bounds: _Bounds = "skip negative",
    out: _Array | None = None,
    threads: int | None = None,
) -> _A: ...
@final
class Write:
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
    def data(self) -> Any: ...
    @property
    def updates(self) -> Any: ...

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
) -> None: ...
def write_all(
    indices: _Values,
    writes: Sequence[Write],
    *,
    axis: int | None = None,
    bounds: _Bounds = "skip negative",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> None: ...
def move_rows(
    tensors: _Array | Iterable[_Array],
    src: _Values,
    dst: _Values,
    *,
    axis: int | None = 0,
    bounds: _Bounds = "error",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> None: ...
@final
class ScatterPlan:
    def __call__(
        self,
        data: _A,
        updates: _Values,
        out: _Array | None = None,
        threads: int | None = None,
    ) -> _A: ...
    def write_all(
        self, writes: Sequence[Write], *, threads: int | None = None
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def updates_shape(self) -> tuple[int, ...]: ...
    @property
    def tuples(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    def has_duplicates(self) -> bool: ...

@final
class GatherPlan:
    def __call__(
        self,
        data: _A,
        out: _Array | None = None,
        threads: int | None = None,
    ) -> _A: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def output_shape(self) -> tuple[int, ...]: ...
    @property
    def skipped(self) -> int: ...

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
) -> ScatterPlan: ...
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
) -> ScatterPlan: ...
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
) -> ScatterPlan: ...
def plan_tensor_scatter(
    data: _Layout,
    indices: _Values | None = None,
    axis: int = -2,
    *,
    mode: _Mode = "linear",
    update_len: int = 1,
    bounds: _Bounds = "error",
    threads: int | None = None,
) -> ScatterPlan: ...
def plan_gather_nd(
    data: _Layout,
    indices: _Values,
    *,
    batch_dims: int = 0,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> GatherPlan: ...
def plan_gather(
    data: _Layout,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> GatherPlan: ...
def plan_gather_elements(
    data: _Layout,
    indices: _Values,
    axis: int = 0,
    *,
    bounds: _Bounds = "error",
    negative_indices: bool = True,
    threads: int | None = None,
) -> GatherPlan: ...
def plan_scatter_paged(
    data: _Layout,
    slots: _Values,
    *,
    bounds: _Bounds = "skip negative",
    duplicates: _Duplicates = "allow",
    threads: int | None = None,
) -> ScatterPlan: ...
def plan_gather_paged(
    data: _Layout,
    slots: _Values,
    *,
    bounds: _Bounds = "skip negative",
    threads: int | None = None,
) -> GatherPlan: ...
def add_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None: ...
def subtract_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None: ...
def multiply_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None: ...
def minimum_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None: ...
def maximum_at(
    a: np.ndarray[Any, Any],
    indices: _Index,
    b: _Values,
    *,
    threads: int | None = None,
) -> None: ...
@overload
def bincount(
    x: _Values,
    weights: None = None,
    minlength: int = 0,
    out: None = None,
    *,
    threads: int | None = None,
) -> NDArray[np.intp]: ...
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
def instruction_set() -> str: ...
def threads() -> int: ...
def machine() -> str: ...
def release_scratch() -> None: ...
