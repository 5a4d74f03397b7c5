"""Writes of slots, reads of slots and moves of rows, for tensors of PyTorch.

The functions are those of the package `ndscatter`, with one difference: by default, a call uses at
most `torch.get_num_threads()` threads. The functions have no gradients, and refuse tensors that
require a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

import ndscatter
from ndscatter import Write as Write


def _with_threads(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("threads") is None:
        options["threads"] = torch.get_num_threads()
    return options


def write_paged(
    data: torch.Tensor, slots: torch.Tensor, updates: torch.Tensor, **options: Any
) -> None:
    """Write new rows to slots of a paged cache, in place, as `ndscatter.write_paged` does.

    `options` are the keyword arguments of `ndscatter.write_paged`.
    """
    ndscatter.write_paged(data, slots, updates, **_with_threads(options))


def write_all(indices: torch.Tensor, writes: Sequence[Write], **options: Any) -> None:
    """Run several writes with the same indices, in place, as `ndscatter.write_all` does.

    `options` are the keyword arguments of `ndscatter.write_all`.
    """
    ndscatter.write_all(indices, writes, **_with_threads(options))


def gather_paged(data: torch.Tensor, slots: torch.Tensor, **options: Any) -> torch.Tensor:
    """Return the rows of a paged cache at the positions `slots`, as `ndscatter.gather_paged` does.

    `options` are the keyword arguments of `ndscatter.gather_paged`.
    """
    return ndscatter.gather_paged(data, slots, **_with_threads(options))


def move_rows(
    tensors: torch.Tensor | Iterable[torch.Tensor],
    src: torch.Tensor,
    dst: torch.Tensor,
    **options: Any,
) -> None:
    """Move rows of tensors onto rows of the same tensors, as `ndscatter.move_rows` does.

    `options` are the keyword arguments of `ndscatter.move_rows`.
    """
    ndscatter.move_rows(tensors, src, dst, **_with_threads(options))
