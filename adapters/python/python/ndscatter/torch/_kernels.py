"""Replacement kernels for PyTorch's CPU operators, which call the kernels of the crate.

This module knows the arguments of PyTorch's operators. It also knows which calls were measured to
be faster on the crate's kernels than on PyTorch's kernels. PyTorch's original kernel runs all other
calls, and the calls that the crate refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._native import torch as native

Kernel = Callable[..., Any]
# Types of a scalar argument of an operator.
Scalar = bool | int | float | complex
Indices = Sequence[Tensor | None]
# Function that tries to run a call on the crate's kernels. Returns True if the crate ran the call.
# Returns False if the crate refused the call, and has then written nothing.
# Arguments: output, data (None if the output already contains the data), dim, index, updates and
# the operator's options.
Attempt = Callable[..., bool]
# The output of a call, and the tensor that contains the initial values of the output. The second
# item is None if the output already contains its initial values.
Placed = tuple[Tensor, Tensor | None]
# Function that determines the output of a call from the arguments `self` and `out` of the call.
# Returns None if PyTorch's original kernel must run the call.
# There is one function for each form of a PyTorch operator. The three forms are functional (returns
# a new tensor), in place (writes to `self`), and with an argument `out`.
Place = Callable[[Tensor, Tensor | None], Placed | None]
# Function that makes a replacement kernel. Arguments: PyTorch's original kernel, and whether the
# replacement also runs the calls that were not measured to be faster than PyTorch's.
Make = Callable[[Kernel, bool], Kernel]


class Override(NamedTuple):
    """A replacement for PyTorch's CPU kernel of one operator, and the limits for its use."""

    make: Make
    # Smallest number of elements for which the replacement is called. PyTorch's original kernel
    # runs a call if every tensor at the positions `counted` has fewer elements. With `always=True`,
    # `enable` ignores this limit.
    least: int
    # Positions of the arguments whose numbers of elements are compared with `least`. Position 0 is
    # the dispatch key set.
    counted: tuple[int, ...]
    # Whether `enable()` registers the replacement. If this is false, `enable` registers it only if
    # `only` names the function, or if `only` is None and `always` is true.
    by_default: bool = True


# Limits on the size of a call. By default, PyTorch's original kernel runs calls below the limit.
# The limits were measured by bench/pytorch.py --sizes, with two threads on a Zen 4. ELEMENTS_TABLE
# is compared with the number of elements of the output. The other limits are compared with the
# number of elements of the index for the scatter functions, and of the updates for the other
# functions.
#
# By default, a call runs on PyTorch's original kernel on all machines if ndscatter was slower than
# PyTorch on at least one of three machines. The table has PyTorch's time divided by ndscatter's
# time for such calls. The columns are a Zen 4, a Zen 5 and an Emerald Rapids, in this order.
# "Allocated" means the form that returns a new tensor.
#
#     index_copy_ of 4 Mi single elements         1.43   0.70   0.50
#     scatter_add of moe_add, allocated           1.18   0.59   0.84
#     scatter_reduce of voxel_max, allocated      2.10   0.75   0.37
#     embedding_dense_backward of moe_add         0.83   1.26   0.61
#     index_put_ of seed_nd (src/torch/kernels.rs) 0.64   0.77   0.86

# Minimum number of elements for the functions to which none of the larger limits below applies. A
# call of a replacement kernel through Python costs 2 to 4 us, so PyTorch's kernel is faster for
# every call with fewer than SMALLEST elements.
SMALLEST = 64
# Minimum number of elements for scatters of rows. With ROWS elements, PyTorch's time is twice the
# cost of a call through Python. There is an exception: PyTorch has a special kernel for rows of at
# least 16 floats, which sorts the indices and costs at least 7 us. With fewer than ROWS elements
# too, ndscatter is faster than this special kernel, so SMALLEST is the limit for these rows.
ROWS = 2048
# Minimum number of elements for `index_copy`, `index_reduce` and `index_put`. PyTorch copies whole
# slices fast, one after the other.
SLICES = 4096
# Minimum numbers of elements for scatters of single elements to a tensor of rank 1. PyTorch
# scatters a million single elements in 2 ms. `index_add` requires ELEMENTS updates. The scatter
# functions require ELEMENTS indices and an output of ELEMENTS_TABLE elements, because ndscatter is
# faster only if the output is larger than the cache.
ELEMENTS = 1 << 18
ELEMENTS_TABLE = 1 << 22
# Minimum number of elements for the gradient of an embedding. The replacement kernel has an
# additional cost: a separate call of PyTorch first makes a table of zeros.
EMBEDDING = 1 << 14

# 16-bit floats. PyTorch sums 16-bit floats in f32, and is as fast as ndscatter.
HALVES = frozenset((torch.float16, torch.bfloat16))
FLOATS = frozenset((torch.float32, torch.float64))

# Values of the argument `reduce` that PyTorch accepts, for `scatter_reduce`, `index_reduce` and
# `scatter`.
SCATTER_REDUCE = frozenset(("sum", "prod", "mean", "amax", "amin"))
INDEX_REDUCE = frozenset(("prod", "mean", "amax", "amin"))
SCATTER = frozenset(("add", "multiply"))


def _scatter_add(
    output: Tensor, data: Tensor | None, dim: int, index: Tensor, src: Tensor
) -> bool:
    return bool(native.elements(output, data, dim, index, src, "sum", True, False))


def _scatter_reduce(
    output: Tensor,
    data: Tensor | None,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool = True,
) -> bool:
    if reduce not in SCATTER_REDUCE:
        return False
    return bool(native.elements(output, data, dim, index, src, reduce, include_self, False))


def _scatter_src(
    output: Tensor,
    data: Tensor | None,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str | None = None,
) -> bool:
    if reduce is not None and reduce not in SCATTER:
        return False
    return bool(native.elements(output, data, dim, index, src, reduce or "", True, False))


def _overflows(value: Scalar, dtype: torch.dtype) -> bool:
    """Return whether `value` is finite and too large for `dtype`.

    `torch.full` would make such a value infinite. PyTorch's `scatter` raises an error for such a
    value.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return False
    largest = float(torch.finfo(dtype).max)
    return largest < abs(value.real) < math.inf or largest < abs(value.imag) < math.inf


def _scatter_value(
    output: Tensor,
    data: Tensor | None,
    dim: int,
    index: Tensor,
    value: Scalar,
    reduce: str | None = None,
) -> bool:
    if (reduce is not None and reduce not in SCATTER) or _overflows(value, output.dtype):
        return False
    try:
        updates = torch.full((), value, dtype=output.dtype, device="cpu")
    except (RuntimeError, TypeError):
        return False
    return bool(native.elements(output, data, dim, index, updates, reduce or "", True, True))


def _index_add(
    output: Tensor,
    data: Tensor | None,
    dim: int,
    index: Tensor,
    source: Tensor,
    alpha: Scalar = 1,
) -> bool:
    # Only calls with the factor `alpha` 1 or -1 run here. PyTorch's kernel runs the calls with any
    # other `alpha`, because PyTorch defines how products with `alpha` are rounded, and which types
    # of `alpha` are errors.
    kinds = (int, float) if output.is_floating_point() else (int,)
    if output.dtype is torch.bool:
        if alpha is not True and (type(alpha) is not int or alpha != 1):
            return False
    elif type(alpha) not in kinds or alpha not in (1, -1):
        return False
    reduction = "sum" if alpha == 1 else "subtract"
    return bool(native.slices(output, data, dim, index, source, reduction, True))


def _index_copy(
    output: Tensor, data: Tensor | None, dim: int, index: Tensor, source: Tensor
) -> bool:
    return bool(native.slices(output, data, dim, index, source, "", True))


def _index_reduce(
    output: Tensor,
    data: Tensor | None,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool = True,
) -> bool:
    if reduce not in INDEX_REDUCE:
        return False
    return bool(native.slices(output, data, dim, index, source, reduce, include_self))


def _rows_gain(
    self: Tensor,
    dim: int,
    index: Tensor,
    updates: Tensor | Scalar,
    reduce: str = "",
    include_self: bool = True,
) -> bool:
    """Return whether a `scatter`, `scatter_add` or `scatter_reduce` is faster here than in PyTorch.

    Two kinds of calls are faster. The first kind scatters rows, with an index that is expanded from
    one number per row. The second kind scatters at least ELEMENTS single elements into a tensor of
    rank 1 with at least ELEMENTS_TABLE elements.
    """
    count = index.numel()
    strides = index.stride()
    rank = len(strides)
    if rank < 2:
        return bool(count >= ELEMENTS and self.numel() >= ELEMENTS_TABLE)
    # PyTorch is faster if the index has a separate value for each element of a row, or if `dim` is
    # the last axis. PyTorch then runs the call lane by lane along `dim`.
    if strides[-1] != 0 or dim in (-1, rank - 1):
        return False
    extreme = reduce in ("amax", "amin")
    if reduce and not extreme and self.dtype in HALVES:
        return False
    if count >= ROWS:
        return True
    is_sorted = reduce and dim in (0, -rank) and self.dtype in FLOATS
    return bool(is_sorted) and count >= 16 * index.size(0) and not any(strides[1:])


def _sums_gain(self: Tensor, dim: int, index: Tensor, src: Tensor) -> bool:
    return _rows_gain(self, dim, index, src, "sum")


def _slices_added_gain(
    self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Scalar = 1
) -> bool:
    count = source.numel()
    rank = self.dim()
    if rank < 2:
        return bool(count >= ELEMENTS)
    if dim in (-1, rank - 1) or self.dtype in HALVES:
        return False
    if count >= ROWS:
        return True
    is_sorted = dim in (0, -rank) and self.dtype in FLOATS
    return bool(is_sorted and count >= 16 * index.numel())


def _slices_copied_gain(self: Tensor, dim: int, index: Tensor, source: Tensor) -> bool:
    return self.dim() > 1


def _always(*arguments: Any, **options: Any) -> bool:
    return True


def _itself(self: Tensor, out: Tensor | None) -> Placed:
    return self, None


def _copy(self: Tensor, out: Tensor | None) -> Placed:
    # The output is a row-major copy of `self`, as PyTorch's own results are row-major. PyTorch
    # makes the copy fast, because PyTorch's allocator reuses cached memory. The crate then
    # applies the updates to the copy in place.
    return torch.empty(self.shape, dtype=self.dtype, device="cpu").copy_(self), None


def _given(self: Tensor, out: Tensor | None) -> Placed | None:
    # An `out` of another shape than `self` must be resized. PyTorch's original kernel does this.
    if out is None or out.shape != self.shape:
        return None
    return out, None if out is self else self


def _kernel(attempt: Attempt, gains: Attempt, place: Place) -> Make:
    def make(fall_back: Kernel, always: bool) -> Kernel:
        gain = _always if always else gains

        def kernel(
            keyset: Any,
            self: Tensor,
            dim: int,
            index: Tensor,
            updates: Any,
            *rest: Any,
            out: Tensor | None = None,
            **options: Any,
        ) -> Any:
            if gain(self, dim, index, updates, *rest, **options):
                placed = place(self, out)
                if placed and attempt(*placed, dim, index, updates, *rest, **options):
                    return placed[0]
            if out is not None:
                options["out"] = out
            return fall_back(keyset, self, dim, index, updates, *rest, **options)

        return kernel

    return make


def _put(fall_back: Kernel, always: bool) -> Kernel:
    def kernel(
        keyset: Any,
        self: Tensor,
        indices: Indices,
        values: Tensor,
        accumulate: bool = False,
        unsafe: bool = False,
    ) -> Any:
        if native.put(self, indices, values, accumulate, always):
            return self
        return fall_back(keyset, self, indices, values, accumulate, unsafe)

    return kernel


def _embedding(fall_back: Kernel, _always: bool) -> Kernel:
    def kernel(
        keyset: Any,
        grad_output: Tensor,
        indices: Tensor,
        num_weights: int,
        padding_idx: int,
        scale_grad_by_freq: bool,
    ) -> Any:
        if not scale_grad_by_freq:
            shape = (num_weights, grad_output.size(-1))
            output = torch.zeros(shape, dtype=grad_output.dtype, device="cpu")
            if native.embedding(output, grad_output, indices, padding_idx):
                return output
        return fall_back(
            keyset, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
        )

    return kernel


def _variants(
    name: str,
    overload: str,
    attempt: Attempt,
    gains: Attempt,
    least: int,
    counted: int,
    functional: bool = True,
) -> dict[str, Override]:
    """Return overrides of three forms of an operator: functional, in place, and with `out`.

    `functional` is the value of `by_default` for the functional form. The in-place form and the
    form with `out` are always registered by default.
    """
    dot = f".{overload}" if overload else ""
    out = f".{overload}_out" if overload else ".out"
    return {
        f"{name}{dot}": Override(_kernel(attempt, gains, _copy), least, (counted,), functional),
        f"{name}_{dot}": Override(_kernel(attempt, gains, _itself), least, (counted,)),
        f"{name}{out}": Override(_kernel(attempt, gains, _given), least, (counted,)),
    }


# Positions of the arguments `index` and `updates` of an operator, counted from 0. The arguments are
# key set, self, dim, index, updates.
_INDEX, _SOURCE = 3, 4


class Functions(dict[str, dict[str, Override]]):
    """Replacements of PyTorch's operators, grouped by function.

    The outer key is the name of a function, such as ``index_add``. The inner key is the name of one
    of its operators, such as ``index_add_``.
    """

    def __repr__(self) -> str:
        return f"Functions({', '.join(self)})"


# All replacements. The outer keys are the names that the argument `only` of `enable` accepts.
FUNCTIONS = Functions(
    scatter_add=_variants(
        "scatter_add", "", _scatter_add, _sums_gain, SMALLEST, _INDEX, functional=False
    ),
    scatter_reduce=_variants(
        "scatter_reduce", "two", _scatter_reduce, _rows_gain, SMALLEST, _INDEX, functional=False
    ),
    scatter={
        **_variants("scatter", "src", _scatter_src, _rows_gain, SMALLEST, _INDEX),
        **_variants("scatter", "reduce", _scatter_src, _rows_gain, SMALLEST, _INDEX),
        **_variants("scatter", "value", _scatter_value, _rows_gain, SMALLEST, _INDEX),
        **_variants("scatter", "value_reduce", _scatter_value, _rows_gain, SMALLEST, _INDEX),
    },
    index_add=_variants("index_add", "", _index_add, _slices_added_gain, SMALLEST, _SOURCE),
    index_copy=_variants("index_copy", "", _index_copy, _slices_copied_gain, SLICES, _SOURCE),
    index_reduce=_variants("index_reduce", "", _index_reduce, _always, SLICES, _SOURCE),
    # `SLICES` is compared with the number of elements of each index tensor and of the values. The
    # largest of these numbers decides, because one value may be broadcast to all indices.
    index_put={"_index_put_impl_": Override(_put, SLICES, (2, 3))},
    embedding_dense_backward={
        "embedding_dense_backward": Override(_embedding, EMBEDDING, (1,), by_default=False)
    },
)
