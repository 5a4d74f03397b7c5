"""Plans of calls of a table: the owner of each index, the rows that this rank receives, and the pieces
in which they are exchanged.

This module knows indices, counts and the order of entries. It does not know how rows are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from .. import ScatterPlan, ShardedPlan, Sharding, gather, plan_scatter_update, plan_sharded, scatter_update
from .._native import _reduction_name
from ._exchange import Exchange

# Largest number of ranges of rows of one rank. The counts of all ranges are sent before the rows.
_MOST_RANGES = 64

# Bytes of a cache line of most processors.
_LINE_BYTES = 64


def threads() -> int:
    """Return the number of threads of PyTorch, which a call uses too. With several ranks on one machine,
    the ranks would otherwise use more threads than the machine has cores."""
    return torch.get_num_threads()


class Ranges:
    """Ranges of consecutive rows in the part of each rank. A call exchanges the rows of one range or of
    several ranges at a time. All updates of a row are in one range, so the order of the ranges does not
    change the result."""

    def __init__(self, sharding: Sharding, rows: int, row_bytes: int, piece_bytes: int) -> None:
        parts = range(sharding.parts)
        most = max(sharding.rows_of(part, rows) for part in parts)
        # A range has at most half of the bytes of a piece, so that pieces of several ranges can be full.
        count = min(_MOST_RANGES, most, 2 * most * row_bytes // max(1, piece_bytes) + 1)
        firsts = [sharding.row(part, 0, rows) for part in parts]
        is_consecutive = all(
            sharding.row(part, rows_of - 1, rows) == first + rows_of - 1
            for part, first in zip(parts, firsts, strict=True)
            if first is not None and (rows_of := sharding.rows_of(part, rows))
        )
        # The ranges of a part must be consecutive rows of the table.
        self.count = max(1, count) if is_consecutive else 1
        self.rows = -(-most // self.count)
        self.sharding = sharding
        if self.count > 1:
            starts: list[int] = []
            end = rows
            for known in reversed(firsts):
                first = end if known is None else known
                starts[:0] = [min(first + self.rows * at, end) for at in range(self.count)]
                end = first
            self.sharding = Sharding.starts(starts)

    def local(self, plan: ShardedPlan) -> np.ndarray[Any, Any]:
        """Return the local row of each entry of a plan, in the part of its rank."""
        if self.count == 1:
            return plan.destinations
        ranges = np.arange(len(plan.counts)) % self.count
        offsets: np.ndarray[Any, Any] = np.repeat(ranges * self.rows, plan.counts)
        return offsets + plan.destinations


@dataclass
class Piece:
    """The rows of some ranges, which a call exchanges together."""

    order: np.ndarray[Any, Any]
    """The tuples or combined entries that this rank sends, in the order of the ranks."""
    rows: torch.Tensor
    """The local rows that this rank receives, in the order of the ranks."""
    outgoing: list[int]
    incoming: list[int]
    most: int
    """Largest number of rows that one rank sends or receives."""
    kept: dict[Any, ScatterPlan] = field(default_factory=dict)

    def columns(self, width: int, size: int, piece_bytes: int) -> Iterator[slice]:
        """Yield slices of columns of elements of `size` bytes, such that a piece has at most `piece_bytes`
        bytes, or one column."""
        columns = max(1, min(width, piece_bytes // max(1, self.most * size)))
        if _LINE_BYTES // size < columns < width:
            columns -= columns % (_LINE_BYTES // size)
        for start in range(0, max(width, 1), columns):
            yield slice(start, min(start + columns, width))

    def scatter(
        self,
        target: torch.Tensor,
        rows: torch.Tensor | None,
        received: torch.Tensor,
        options: dict[str, Any],
        is_kept: bool,
    ) -> None:
        """Scatter the received rows into `target`. `rows` has the row of `target` of each received row.
        None: `target` has the rows of this rank."""
        options = {**options, "negative_indices": False, "threads": threads()}
        if not is_kept or rows is not None:
            rows = self.rows if rows is None else rows
            scatter_update(target, rows, received, out=target, **options)
            return
        key = (*options.values(), target.shape, target.stride())
        if key not in self.kept:
            self.kept[key] = plan_scatter_update(target, self.rows, **options)
        self.kept[key](target, received, out=target, threads=threads())


@dataclass(frozen=True)
class TablePlan:
    """What a call of a `ShardedTable` computes from its indices. `ShardedTable.plan` returns it.

    The plan serves any number of calls of the table that made it, with `scatter_add_`,
    `scatter_reduce_`, `index_copy_`, `gather` and `embedding`. Every rank must use the plan that it
    made in the same call of `ShardedTable.plan`.

    Attributes:
        shape: the shape of the indices.
        tuples: number of indices.
    """

    shape: torch.Size
    tuples: int
    _pieces: list[Piece]
    # The entry of each tuple, if tuples of one row are combined.
    _slots: np.ndarray[Any, Any] | None
    _entries: int
    # The reduction for which updates are combined, and the reduction that combines them.
    _reduction: str
    _packing_reduction: str
    _is_kept: bool

    def combined(self, updates: torch.Tensor) -> torch.Tensor:
        """Return the rows of which pieces send some: the updates, combined if the plan combines them."""
        if self._slots is None:
            return updates
        entries = updates.new_empty((self._entries, updates.shape[1]))
        return scatter_update(
            entries,
            self._slots,
            updates,
            reduction=self._packing_reduction,
            include_self=False,
            out=entries,
            threads=threads(),
        )

    def separated(self, entries: torch.Tensor) -> torch.Tensor:
        """Return the rows of all tuples, for the rows of the entries."""
        if self._slots is None:
            return entries
        return gather(entries, self._slots, threads=threads())


def make_plan(
    exchange: Exchange,
    rows: int,
    ranges: Ranges,
    indices: Any,
    *,
    row_bytes: int,
    piece_bytes: int,
    combine: bool,
    reduction: str,
    is_kept: bool,
) -> TablePlan:
    """Split the indices of this rank, and exchange the numbers of rows. Every rank raises a
    `RankError` if the indices of one rank are wrong. A kept plan without a reduction also serves
    gathers, so it has an entry for all tuples of a row and not only for the last of them."""
    error: Exception | None = None
    plan: ShardedPlan | None = None
    shape, sent = torch.Size(), np.empty(0, np.int64)
    try:
        indices = torch.as_tensor(indices)
        shape = indices.shape
        reduction = _reduction_name(reduction)
        plan = plan_sharded(
            rows,
            indices,
            ranges.sharding,
            combine=combine,
            reduction=reduction,
            reads=reduction == "none" and is_kept,
            threads=threads(),
        )
        sent = ranges.local(plan)
    except Exception as refused:
        error = refused
    counts = plan.counts if plan else (0,) * (exchange.ranks * ranges.count)
    outgoing = np.array(counts).reshape(exchange.ranks, ranges.count)
    incoming = exchange.counts(outgoing, error)
    assert plan is not None, "`counts` has raised the error"
    received = torch.empty(0, dtype=torch.int64)
    try:
        received = torch.empty(incoming.sum(), dtype=torch.int64)
    except Exception as refused:
        error = refused
    most = exchange.agree(error, np.maximum(outgoing.sum(0), incoming.sum(0)).tolist())
    exchange.rows(received, torch.from_numpy(sent), incoming.sum(1).tolist(), outgoing.sum(1).tolist())
    order = plan.order if plan.slots is None else np.arange(len(plan.destinations))
    return TablePlan(
        shape=shape,
        tuples=plan.tuples,
        _pieces=list(_pieces(order, received, outgoing, incoming, most, piece_bytes // max(1, row_bytes))),
        _slots=plan.slots,
        _entries=len(plan.destinations),
        _reduction=reduction,
        _packing_reduction=plan.packing_reduction,
        _is_kept=is_kept,
    )


def _pieces(
    order: Any, received: torch.Tensor, outgoing: Any, incoming: Any, most: Sequence[int], capacity: int
) -> Iterator[Piece]:
    """Group consecutive ranges into pieces. A piece of several ranges has at most `capacity` rows."""
    sent_starts = np.append(0, outgoing.cumsum()).tolist()
    received_starts = np.append(0, incoming.cumsum()).tolist()
    ranks, ranges = outgoing.shape

    def segments(starts: list[int], first: int, end: int) -> list[slice]:
        return [slice(starts[rank * ranges + first], starts[rank * ranges + end]) for rank in range(ranks)]

    for first, end in _groups(most, capacity):
        is_all = end - first == ranges
        sent = segments(sent_starts, first, end)
        taken = segments(received_starts, first, end)
        yield Piece(
            order=order if is_all else np.concatenate([order[segment] for segment in sent]),
            rows=received if is_all else torch.cat([received[segment] for segment in taken]),
            outgoing=outgoing[:, first:end].sum(1).tolist(),
            incoming=incoming[:, first:end].sum(1).tolist(),
            most=sum(most[first:end]),
        )


def _groups(most: Sequence[int], capacity: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each group of ranges."""
    totals = [0, *accumulate(most)]
    first = 0
    for end in range(1, len(totals)):
        is_last = end == len(most)
        if is_last or totals[end + 1] - totals[first] > capacity:
            yield first, end
            first = end
