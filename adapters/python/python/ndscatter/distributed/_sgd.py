"""Plain stochastic gradient descent on the rows that have a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import Sharding, plan_sharded, scatter_update


class SGD(torch.optim.Optimizer):
    """Plain stochastic gradient descent: ``row += -lr * gradient``, with both operations rounded.

    If the gradient of a parameter is sparse, the step changes only the rows that have a gradient. The
    gradients of one row are added in their order.

    Args:
        params: parameters, for example those of a `ShardedTable`, or groups of parameters.
        lr: the learning rate.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters. If there is a `closure`, call it first, and return its result."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    _descend(parameter, parameter.grad, group["lr"])
        return loss


def _descend(parameter: torch.Tensor, gradient: torch.Tensor, lr: float) -> None:
    if not gradient.is_sparse:
        parameter.add_(gradient * -lr)
        return
    rows, values = distinct_rows(parameter.shape[0], gradient._indices()[0], gradient._values())
    parameter = parameter.detach()
    scatter_update(parameter, rows, values.mul_(-lr), reduction="add", out=parameter)


def distinct_rows(
    rows: int, indices: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distinct indices in ascending order, and the sum of the values of each index."""
    plan = plan_sharded(rows, indices, Sharding.blocks(1), combine=True, reduction="add")
    assert plan.slots is not None, "a plan that combines has slots"
    sums = values.new_zeros((len(plan.destinations), *values.shape[1:]))
    scatter_update(sums, plan.slots, values, reduction="add", out=sums)
    return torch.from_numpy(plan.destinations), sums
