"""The gradient of a lookup in a table: the scatter of the gradients of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Lookup(torch.autograd.Function):
    """A gather of rows of a table. Every rank must run the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: torch.Tensor,
        gather: Callable[[], torch.Tensor],
        scatter: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """Return the rows that `gather` returns. `scatter` returns the gradient of `weight` for the
        gradients of these rows."""
        ctx.scatter = scatter
        return gather()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.scatter(gradients[0]), None, None
