"""Replacement kernels for PyTorch's CPU operators that are Python functions.

`enable` uses these kernels if the native kernels (`shim.cpp`) have not been built. This module
knows the arguments of PyTorch's operators. The extension module decides which calls the crate runs.
PyTorch's original kernel runs all other calls, and the calls that the crate refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import profiler

from .._native import torch as native

Kernel = Callable[..., Any]
# Types of a scalar argument of an operator.
Scalar = bool | int | float | complex
Indices = Sequence[Tensor | None]
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
    """A replacement for PyTorch's CPU kernel of one operator, and the limits for its use.

    The fields describe the kernel that is a Python function. Native kernels have no such limits.
    """

    # None if only a native kernel exists.
    make: Make | None
    # Smallest number of elements for which the replacement is called. PyTorch's original kernel
    # runs a call if every tensor at the positions `counted` has fewer elements. With `always=True`,
    # `enable` ignores this limit.
    least: int = 0
    # Positions of the arguments whose numbers of elements are compared with `least`. Position 0 is
    # the dispatch key set.
    counted: tuple[int, ...] = ()
    # Whether `enable()` registers the Python function. If this is false, `enable` registers it only
    # if `only` names the function, or if `only` is None and `always` is true.
    by_default: bool = True


# Smallest numbers of elements for which the kernels of this module are called. A call through
# Python costs 1 to 3 us. The extension module has lower limits, which also hold for the native
# kernels.
SMALLEST = 2048
SLICES = 4096
EMBEDDING = 1 << 14


# Whether a profiler is active on this thread.
_is_profiled: Callable[[], bool] = torch._C._autograd._profiler_enabled


def _run(trace: str, function: str, step: str, *call: Any, **options: Any) -> bool:
    """Perform the step "run" or "decide and run" of a call. Return whether the crate has run the call.

    While a profiler is active, the run is a range `trace` of the profiler's trace. The range begins
    after the decision, so that a call that gains nothing has no range.
    """
    if not _is_profiled():
        return bool(native.attempt(function, step, *call, **options))
    if step == "decide and run" and not native.attempt(function, "decide", *call, **options):
        return False
    with profiler.record_function(trace):
        return bool(native.attempt(function, "run", *call, **options))


def _overflows(value: Scalar, dtype: torch.dtype) -> bool:
    """Return whether `value` is finite and too large for `dtype`.

    `torch.full` would make such a value infinite. PyTorch's `scatter` raises an error for such a
    value.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return False
    largest = float(torch.finfo(dtype).max)
    return largest < abs(value.real) < math.inf or largest < abs(value.imag) < math.inf


def _full(value: Scalar, dtype: torch.dtype) -> Tensor | None:
    """Return a tensor of rank 0, or None if PyTorch's `scatter` refuses the value."""
    if _overflows(value, dtype):
        return None
    try:
        return torch.full((), value, dtype=dtype, device="cpu")
    except (RuntimeError, TypeError):
        return None


def _itself(self: Tensor, out: Tensor | None) -> Placed:
    return self, None


def _new(self: Tensor, out: Tensor | None) -> Placed:
    # The output is row-major, as PyTorch's own results are. The crate copies `self` and applies the
    # updates in one pass.
    return torch.empty(self.shape, dtype=self.dtype, device="cpu"), self


def _given(self: Tensor, out: Tensor | None) -> Placed | None:
    # An `out` of another shape than `self` must be resized. PyTorch's original kernel does this.
    if out is None or out.shape != self.shape:
        return None
    return out, None if out is self else self


def _kernel(function: str, trace: str, options: tuple[str, ...], place: Place) -> Make:
    """Return a maker of kernels for a function with one index tensor.

    `trace` is the name of a call in the profiler's trace. `options` has the names of the arguments
    that follow the updates.
    """

    def make(fall_back: Kernel, always: bool) -> Kernel:
        def kernel(
            keyset: Any,
            self: Tensor,
            dim: int,
            index: Tensor,
            updates: Tensor | Scalar,
            *rest: Any,
            out: Tensor | None = None,
            **named: Any,
        ) -> Any:
            more = {**dict(zip(options, rest, strict=False)), **named}
            call = (dim, [index])
            known = updates if isinstance(updates, Tensor) else None
            if native.attempt(function, "decide", self, None, *call, known, always, **more):
                placed = place(self, out)
                if not isinstance(updates, Tensor):
                    known = _full(updates, self.dtype)
                if not placed:
                    native.decline(function, "shape")
                elif known is None:
                    native.decline(function, "argument")
                elif _run(trace, function, "run", *placed, *call, known, always, **more):
                    return placed[0]
            if out is not None:
                named["out"] = out
            return fall_back(keyset, self, dim, index, updates, *rest, **named)

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
        call = (self, None, 0, list(indices), values, always)
        trace = "ndscatter::_index_put_impl_"
        if _run(trace, "index_put", "decide and run", *call, accumulate=accumulate):
            return self
        return fall_back(keyset, self, indices, values, accumulate, unsafe)

    return kernel


def _embedding(fall_back: Kernel, always: bool) -> Kernel:
    def kernel(
        keyset: Any,
        grad_output: Tensor,
        indices: Tensor,
        num_weights: int,
        padding_idx: int,
        scale_grad_by_freq: bool,
    ) -> Any:
        function = "embedding_dense_backward"
        if scale_grad_by_freq:
            native.decline(function, "argument")
        else:
            shape = (num_weights, grad_output.size(-1))
            output = torch.empty(shape, dtype=grad_output.dtype, device="cpu")
            call = (output, None, padding_idx, [indices], grad_output, always)
            if _run(f"ndscatter::{function}", function, "decide and run", *call):
                return output
        return fall_back(
            keyset, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
        )

    return kernel


def _variants(
    name: str,
    overload: str,
    options: tuple[str, ...],
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
    function = "scatter_value" if overload.startswith("value") else name

    def override(place: Place, by_default: bool = True) -> Override:
        trace = f"ndscatter::{name}_" if place is _itself else f"ndscatter::{name}"
        make = _kernel(function, trace, options, place)
        return Override(make, least, (counted,), by_default)

    return {
        f"{name}{dot}": override(_new, functional),
        f"{name}_{dot}": override(_itself),
        f"{name}{out}": override(_given),
    }


# Positions of the arguments `index` and `updates` of an operator, counted from 0. The arguments are
# key set, self, dim, index, updates.
_INDEX, _SOURCE = 3, 4


def _native(*operators: str) -> dict[str, Override]:
    """Return overrides of operators that only native kernels replace."""
    return {operator: Override(None) for operator in operators}


# All replacements of PyTorch's operators. The outer key is the name of a function, such as
# ``index_add``. The inner key is the name of one of its operators, such as ``index_add_``.
OVERRIDES: dict[str, dict[str, Override]] = dict(
    scatter_add=_variants("scatter_add", "", (), SMALLEST, _INDEX, functional=False),
    scatter_reduce=_variants(
        "scatter_reduce", "two", ("reduce", "include_self"), SMALLEST, _INDEX, functional=False
    ),
    scatter={
        **_variants("scatter", "src", (), SMALLEST, _INDEX),
        **_variants("scatter", "reduce", ("reduce",), SMALLEST, _INDEX),
        **_variants("scatter", "value", (), SMALLEST, _INDEX),
        **_variants("scatter", "value_reduce", ("reduce",), SMALLEST, _INDEX),
    },
    index_add=_variants("index_add", "", ("alpha",), SMALLEST, _SOURCE),
    index_copy=_variants("index_copy", "", (), SLICES, _SOURCE),
    index_reduce=_variants("index_reduce", "", ("reduce", "include_self"), SLICES, _SOURCE),
    # `SLICES` is compared with the number of elements of each index tensor and of the values. The
    # largest of these numbers decides, because one value may be broadcast to all indices.
    index_put={"_index_put_impl_": Override(_put, SLICES, (2, 3))},
    embedding_dense_backward={
        "embedding_dense_backward": Override(_embedding, EMBEDDING, (1,), by_default=False)
    },
    index_fill=_native("index_fill_.int_Scalar", "index_fill_.int_Tensor"),
    put=_native("put_"),
    index=_native("index.Tensor", "index.Tensor_out"),
    index_select=_native("index_select", "index_select.out"),
    take=_native("take", "take.out"),
    gather=_native("gather", "gather.out"),
)

# The names of the functions, and for each function the names of its operators. The argument `only` of
# `enable` accepts the names of functions.
FUNCTIONS: dict[str, tuple[str, ...]] = {name: tuple(item) for name, item in OVERRIDES.items()}
