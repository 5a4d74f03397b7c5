"""Numbers of calls of the functions that `enable` replaces."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._native import torch as native


@dataclass(frozen=True)
class Counts:
    """Numbers of calls of one function, since the start of the process or `reset_counts`.

    `ndscatter` is the number of calls that ran on ndscatter's kernels. `pytorch` is the number of
    calls that ndscatter's kernel passed on to PyTorch's own kernel. `reasons` is the dict of the
    numbers of the passed calls by reason, so `pytorch` is the sum of its values. The keys are:

    - ``size``: the call has fewer or more elements than the calls that run on ndscatter.
    - ``slower``: PyTorch's kernel was measured to be as fast for such a call: the last axis, a sum
      of 16-bit floats, or a table that fits into the cache.
    - ``dtype``: an element type that ndscatter does not support, or a combination of types.
    - ``mask``: an index is a mask.
    - ``layout``: strides or alignment that the kernel does not support, or memory that was freed.
    - ``shape``: the shapes do not fit, or `out` must be resized.
    - ``argument``: the value of another argument: `alpha`, `reduce`, `dim`, `accumulate`,
      `scale_grad_by_freq`, or a number that is too large.
    - ``overlap``: tensors of the call share memory.
    - ``error``: ndscatter has refused the call, for example for an index out of bounds. PyTorch's
      kernel then raises the error.
    """

    ndscatter: int
    pytorch: int = field(init=False)
    reasons: dict[str, int]

    def __post_init__(self) -> None:
        # The dataclass is frozen, so `self.pytorch = ..` is an error.
        object.__setattr__(self, "pytorch", sum(self.reasons.values()))


def counts() -> dict[str, Counts]:
    """Return the numbers of calls of each function that was called while it was enabled.

    The calls of all threads and of all registrations count. A function without a call has no item.
    Calls without `enable` and calls on tensors of other devices do not count. A call that raises an
    error of PyTorch counts with its reason.

    Returns:
        A dict from names of `FUNCTIONS` to `Counts`.

    >>> import torch, ndscatter.torch
    >>> ndscatter.torch.reset_counts()
    >>> with ndscatter.torch.enable(always=True):
    ...     _ = torch.zeros(3).index_add_(0, torch.tensor([0, 2]), torch.ones(2))
    ...     _ = torch.zeros(3).index_add_(0, torch.tensor([0, 2]), torch.ones(2), alpha=2)
    >>> ndscatter.torch.counts()
    {'index_add': Counts(ndscatter=1, pytorch=1, reasons={'argument': 1})}
    """
    run: dict[str, int] = {}
    declined: dict[str, dict[str, int]] = {}
    for function, reason, count in native.counts():
        # The extension module has a separate entry for `scatter` with a number.
        name = "scatter" if function == "scatter_value" else function
        run.setdefault(name, 0)
        reasons = declined.setdefault(name, {})
        if reason is None:
            run[name] += count
        else:
            reasons[reason] = reasons.get(reason, 0) + count
    return {name: Counts(run[name], reasons) for name, reasons in declined.items()}


def reset_counts() -> None:
    """Set all numbers of `counts` to 0."""
    native.reset_counts()
