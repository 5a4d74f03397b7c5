"""Collective calls of a process group: counts, rows, and agreement about errors.

This module knows bytes and ranks. It does not know tables.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .._shards import RankError, TransportError

# Time that a rank waits for signs of life of other ranks, after a failed transport.
_PATIENCE = timedelta(seconds=3)


class Exchange:
    """The collective calls of one process group."""

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group: Any = group if group is not None else dist.group.WORLD
        self.rank = dist.get_rank(self.group)
        self.ranks = dist.get_world_size(self.group)
        self._failures = 0

    def counts(self, counts: np.ndarray[Any, Any], error: Exception | None) -> np.ndarray[Any, Any]:
        """Send some counts to each rank, one row of `counts`, and return the counts of each rank. Every
        rank raises a `RankError` if one rank has an error."""
        sent = torch.zeros(self.ranks, counts.shape[1] + 1, dtype=torch.int64)
        sent[:, 0] = error is not None
        sent[:, 1:] = torch.from_numpy(counts)
        received = torch.empty_like(sent)
        self._wait("counts", self._start("counts", received, sent, None, None))
        if bool(received[:, 0].any()):
            self._raise(error)
        return received[:, 1:].numpy()

    def agree(self, error: Exception | None, numbers: Sequence[int] = ()) -> list[int]:
        """Return the largest of each number of all ranks. Every rank raises a `RankError` if one rank has
        an error."""
        largest = torch.tensor([error is not None, *numbers], dtype=torch.int64)
        self._call("agreement", lambda: dist.all_reduce(largest, dist.ReduceOp.MAX, self.group))
        if int(largest[0]):
            self._raise(error)
        return largest[1:].tolist()

    def rows(
        self, received: torch.Tensor, sent: torch.Tensor, incoming: Sequence[int], outgoing: Sequence[int]
    ) -> None:
        """Exchange numbers of rows."""
        self.finish(self.start(received, sent, incoming, outgoing, sent.element_size()))

    def start(
        self,
        received: torch.Tensor,
        sent: torch.Tensor,
        incoming: Sequence[int],
        outgoing: Sequence[int],
        row_bytes: int,
    ) -> Any:
        """Begin an exchange of rows of `row_bytes` bytes: ``outgoing[r]`` rows of `sent` go to rank
        ``r``, and ``incoming[r]`` rows of `received` come from it. Both tensors are contiguous. Return
        the argument of `finish`."""
        # As bytes, rows of every element type can be sent.
        return self._start(
            "rows",
            _as_bytes(received),
            _as_bytes(sent),
            [count * row_bytes for count in incoming],
            [count * row_bytes for count in outgoing],
        )

    def finish(self, work: Any) -> None:
        """Wait until the rows of an exchange have arrived."""
        self._wait("rows", work)

    def _start(self, stage: str, received: Any, sent: Any, incoming: Any, outgoing: Any) -> Any:
        return self._call(
            stage,
            lambda: dist.all_to_all_single(
                received, sent, incoming, outgoing, group=self.group, async_op=True
            ),
        )

    def _wait(self, stage: str, work: Any) -> None:
        self._call(stage, work.wait)

    def _call(self, stage: str, function: Any) -> Any:
        try:
            return function()
        except Exception as error:
            self._failures += 1
            raise TransportError(stage, error, self._missing()) from error

    def _raise(self, error: Exception | None) -> None:
        """Raise the error of the first rank that has one."""
        mine = None if error is None else (type(error).__name__, str(error))
        errors: list[Any] = [None] * self.ranks
        self._call("errors", lambda: dist.all_gather_object(errors, mine, group=self.group))
        rank, (name, message) = next((r, found) for r, found in enumerate(errors) if found)
        raise RankError(rank, name, message) from error

    def _missing(self) -> list[int]:
        """Return the ranks that do not report to the store of the group within some seconds."""
        try:
            store = dist.distributed_c10d._get_process_group_store(self.group)
            keys = [f"ndscatter/alive/{self._failures}/{rank}" for rank in range(self.ranks)]
            store.set(keys[self.rank], "1")
            end = time.monotonic() + _PATIENCE.total_seconds()
            while time.monotonic() < end and not store.check(keys):
                time.sleep(0.05)
            return [rank for rank, key in enumerate(keys) if not store.check([key])]
        except Exception:
            # The process that has the store has ended too.
            return []


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of the bytes of a contiguous tensor. The strides of an empty tensor allow no view."""
    if not tensor.numel():
        return tensor.new_empty(0, dtype=torch.uint8)
    return tensor.reshape(-1).view(torch.uint8)
