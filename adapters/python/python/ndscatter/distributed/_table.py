"""`ShardedTable`: a table whose rows are divided among the ranks of a process group.

This module knows the order of the steps of a call. It does not know how rows are sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from .. import Sharding, gather, plan_sharded, scatter_update
from .._native import _reduction_name
from ._embedding import Lookup
from ._exchange import Exchange
from ._plan import Piece, Ranges, TablePlan, make_plan, threads


class ShardedTable(torch.nn.Module):
    """A table of `rows` rows of `width` elements, divided among the ranks of a process group.

    Every rank must make the table with equal arguments, and must call each method together with all
    other ranks, with indices and updates of its own. An error of one rank is a `RankError` in every
    rank, and no rank then changes its rows. After a `TransportError`, the rows are unchanged unless
    `is_torn` is true.

    Args:
        rows: number of rows of the whole table.
        width: number of elements of a row.
        dtype: element type.
        group: the process group, by default the group of all ranks. Its transport must accept
            tensors on the CPU.
        sharding: the division of the rows, with one part for each rank. The default is
            ``Sharding.blocks(ranks)``.
        piece_bytes: number of bytes of updates that a rank sends or receives in one step. A call
            with more bytes exchanges the updates of a range of rows at a time, and a range with more
            bytes some columns at a time.
        sparse_gradient: whether the gradient of `weight` is a sparse tensor with the rows that have
            a gradient.

    Attributes:
        weight: the rows of this rank, a parameter of shape ``(local rows, width)``.

    >>> import torch, torch.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> from ndscatter.distributed import ShardedTable
    >>> table = ShardedTable(4, 2)
    >>> table.scatter_add_(torch.tensor([3, 0, 3]), torch.ones(3, 2))
    >>> table.gather(torch.tensor([3]))
    tensor([[2., 2.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        rows: int,
        width: int,
        dtype: torch.dtype = torch.float32,
        group: dist.ProcessGroup | None = None,
        *,
        sharding: Sharding | None = None,
        piece_bytes: int = 16 << 20,
        sparse_gradient: bool = False,
    ) -> None:
        super().__init__()
        self._exchange = Exchange(group)
        ranks = self._exchange.ranks
        if sharding is None:
            sharding = Sharding.blocks(ranks)
        if sharding.parts != ranks:
            raise ValueError(f"`sharding` has {sharding.parts} parts, but the process group has {ranks} ranks")
        self.rows, self.width = rows, width
        self.sharding = sharding
        self.piece_bytes = piece_bytes
        self.sparse_gradient = sparse_gradient
        self._is_torn = False
        self._memory = RowMemory()
        row_bytes = width * torch.empty(0, dtype=dtype).element_size()
        self._ranges = Ranges(sharding, rows, row_bytes, piece_bytes)
        local = sharding.rows_of(self._exchange.rank, rows)
        self.weight = torch.nn.Parameter(
            torch.zeros(local, width, dtype=dtype), requires_grad=dtype.is_floating_point
        )

    @property
    def is_torn(self) -> bool:
        """Whether a transport failed after a call had changed some columns. The rows of the table are
        then undefined. `load_state_dict` makes them valid again."""
        return self._is_torn

    def extra_repr(self) -> str:
        return f"{self.rows}, {self.width}, {self.weight.dtype}, {self.sharding}"

    # Plans.

    def plan(
        self, indices: torch.Tensor, *, combine: bool = False, reduce: str = "none"
    ) -> TablePlan:
        """Return a plan for several calls with the same indices.

        Args:
            indices: rows of the whole table: integers of any shape. A negative index counts from the
                end.
            combine: whether the updates of one row are combined before they are sent. The calls then
                must have the reduction `reduce`. For floats with ``"sum"`` or ``"prod"``, this
                changes the rounding errors.
            reduce: the reduction that combines updates, and ``"none"`` for `index_copy_` and
                `gather`.
        """
        return self._plan(indices, combine, reduce, is_kept=True)

    def _plan(
        self,
        indices: torch.Tensor | TablePlan,
        combine: bool,
        reduction: str,
        *,
        is_kept: bool = False,
    ) -> TablePlan:
        if isinstance(indices, TablePlan):
            return indices
        return make_plan(
            self._exchange,
            self.rows,
            self._ranges,
            indices,
            row_bytes=self.width * self.weight.element_size(),
            piece_bytes=self.piece_bytes,
            combine=combine,
            reduction=reduction,
            is_kept=is_kept,
        )

    # Scatters.

    def scatter_add_(
        self, indices: torch.Tensor | TablePlan, updates: torch.Tensor, *, combine: bool = False
    ) -> None:
        """Add an update to each row that `indices` names.

        Args:
            indices: rows of the whole table, or a plan of them.
            updates: tensor of shape ``(*indices.shape, width)``, of the element type of the table.
            combine: whether the updates of one row are added before they are sent. For floats, this
                changes the rounding errors.
        """
        self._scatter(indices, updates, "add", True, combine)

    def scatter_reduce_(
        self,
        indices: torch.Tensor | TablePlan,
        updates: torch.Tensor,
        reduce: str,
        *,
        include_self: bool = True,
        combine: bool = False,
    ) -> None:
        """Combine an update with each row that `indices` names.

        Args:
            indices: rows of the whole table, or a plan of them.
            updates: tensor of shape ``(*indices.shape, width)``, of the element type of the table.
            reduce: ``"sum"``, ``"prod"``, ``"amin"``, ``"amax"`` or ``"mean"``. The names of
                `ndscatter.scatter_update` are accepted too.
            include_self: whether the existing rows take part in the reduction.
            combine: whether the updates of one row are combined before they are sent.
        """
        self._scatter(indices, updates, reduce, include_self, combine)

    def index_copy_(
        self, indices: torch.Tensor | TablePlan, updates: torch.Tensor, *, combine: bool = True
    ) -> None:
        """Replace each row that `indices` names by its update. If a row has several updates, the last
        one stays: the last update of the highest rank.

        Args:
            indices: rows of the whole table, or a plan of them.
            updates: tensor of shape ``(*indices.shape, width)``, of the element type of the table.
            combine: whether only the last update of each row is sent. This does not change the
                result.
        """
        self._scatter(indices, updates, "none", True, combine)

    def _scatter(
        self,
        indices: torch.Tensor | TablePlan,
        updates: torch.Tensor,
        reduction: str,
        include_self: bool,
        combine: bool,
    ) -> None:
        plan = self._plan(indices, combine, reduction)
        rows, error = self._checked(plan, updates, reduction)
        options = {"reduction": reduction, "include_self": include_self}
        self._scatter_into(self.weight.detach(), None, plan, rows, options, error)

    def _scatter_into(
        self,
        target: torch.Tensor,
        numbers: torch.Tensor | None,
        plan: TablePlan,
        updates: torch.Tensor,
        options: dict[str, Any],
        error: Exception | None,
    ) -> None:
        """Scatter the updates of all ranks into `target`. `numbers` has the local rows that `target` has, in
        ascending order. None: `target` has all rows of this rank."""
        entries = updates
        try:
            entries = plan.combined(updates)
        except Exception as refused:
            error = error or refused

        def pack(piece: Piece, columns: slice, packed: torch.Tensor) -> None:
            gather(entries[:, columns], piece.order, out=packed, threads=threads())

        def apply(piece: Piece, columns: slice, received: torch.Tensor) -> None:
            rows = None if numbers is None else torch.searchsorted(numbers, piece.rows)
            piece.scatter(target[:, columns], rows, received, options, plan._is_kept)

        self._in_pieces(plan, pack, apply, error, is_answer=False)

    def _checked(
        self, plan: TablePlan, updates: torch.Tensor, reduction: str
    ) -> tuple[torch.Tensor, Exception | None]:
        """Return the updates as one row for each index, and the error of wrong updates."""
        try:
            updates = torch.as_tensor(updates).detach()
            expected = (*plan.shape, self.width)
            if tuple(updates.shape) != expected:
                raise ValueError(f"`updates` has shape {tuple(updates.shape)}, but must have {expected}")
            if updates.dtype != self.weight.dtype:
                raise TypeError(f"`updates` is {updates.dtype}, but the table is {self.weight.dtype}")
            if plan._slots is not None and plan._reduction != _reduction_name(reduction):
                raise ValueError(f"the plan combines updates for {plan._reduction!r}, not for {reduction!r}")
            if plan._slots is not None and plan._reduction == "sub" and updates.dtype == torch.bool:
                raise ValueError("a subtraction of booleans cannot be combined; make the call without `combine`")
            self._try_reduction(reduction)
            return updates.reshape(plan.tuples, self.width), None
        except Exception as error:
            shape = (plan.tuples, self.width)
            return self.weight.detach().new_zeros(()).expand(shape), error

    def _try_reduction(self, reduction: str) -> None:
        """Raise the error of a reduction that the element type does not have."""
        sample = torch.zeros(1, 1, dtype=self.weight.dtype)
        scatter_update(sample, torch.zeros(0, dtype=torch.int64), sample[:0], reduction=reduction)

    # Gathers.

    def gather(self, indices: torch.Tensor | TablePlan, *, combine: bool = False) -> torch.Tensor:
        """Return the rows that `indices` names, a tensor of shape ``(*indices.shape, width)``.

        Args:
            indices: rows of the whole table, or a plan of them.
            combine: whether each row is sent once, if several indices name it.
        """
        plan = self.plan(indices, combine=combine) if not isinstance(indices, TablePlan) else indices
        weight = self.weight.detach()
        entries, error = weight.new_empty((0, self.width)), None
        try:
            entries = weight.new_empty((plan._entries, self.width))
        except Exception as refused:
            error = refused

        def pack(piece: Piece, columns: slice, packed: torch.Tensor) -> None:
            gather(weight[:, columns], piece.rows, negative_indices=False, out=packed, threads=threads())

        def put_back(piece: Piece, columns: slice, answers: torch.Tensor) -> None:
            target = entries[:, columns]
            scatter_update(target, piece.order, answers, out=target, threads=threads())

        self._in_pieces(plan, pack, put_back, error, is_answer=True)
        return plan.separated(entries).reshape(*plan.shape, self.width)

    # Embeddings.

    def embedding(self, indices: torch.Tensor | TablePlan) -> torch.Tensor:
        """Return the rows that `indices` names, with a gradient for `weight`. The backward pass adds
        the gradients of all ranks, in the order of the loop over the ranks. Every rank must run the
        backward pass.

        Args:
            indices: rows of the whole table, or a plan of them that does not combine updates.
        """
        plan = indices if isinstance(indices, TablePlan) else self.plan(indices)
        if plan._slots is not None:
            raise ValueError("the plan combines updates, which changes gradients; make a plan without `combine`")
        rows: torch.Tensor = Lookup.apply(
            self.weight, lambda: self.gather(plan), lambda gradient: self._gradient(plan, gradient)
        )
        return rows

    def embedding_bag(
        self, indices: torch.Tensor, offsets: torch.Tensor | None = None, mode: str = "mean"
    ) -> torch.Tensor:
        """Return the reduced rows of each bag, as ``torch.nn.functional.embedding_bag`` does, with a
        gradient for `weight`.

        Args:
            indices: rows of the whole table: of rank 2 with a bag in each row, or of rank 1 with
                `offsets`.
            offsets: the position of the first index of each bag.
            mode: ``"sum"``, ``"mean"`` or ``"max"``.
        """
        rows = self.embedding(indices).reshape(indices.numel(), self.width)
        numbers = torch.arange(len(rows)).reshape(indices.shape)
        return torch.nn.functional.embedding_bag(numbers, rows, offsets, mode=mode)

    def _gradient(self, plan: TablePlan, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of `weight` for the gradients of the rows of a lookup."""
        weight, updates = self.weight.detach(), gradient.detach().reshape(plan.tuples, self.width)
        options = {"reduction": "add"}
        if not self.sparse_gradient:
            result = torch.zeros_like(weight)
            self._scatter_into(result, None, plan, updates, options, None)
            return result
        # The distinct rows with a gradient, in ascending order.
        rows = torch.cat([piece.rows for piece in plan._pieces])
        distinct = plan_sharded(len(weight), rows, Sharding.blocks(1), combine=True, reduction="add")
        numbers = torch.from_numpy(distinct.destinations)
        values = weight.new_zeros((len(numbers), self.width))
        self._scatter_into(values, numbers, plan, updates, options, None)
        return torch.sparse_coo_tensor(
            numbers[None], values, weight.shape, is_coalesced=True, check_invariants=False
        )

    # Exchanges.

    def _in_pieces(
        self,
        plan: TablePlan,
        pack: Callable[[Piece, slice, torch.Tensor], None],
        apply: Callable[[Piece, slice, torch.Tensor], None],
        error: Exception | None,
        *,
        is_answer: bool,
    ) -> None:
        """Exchange all rows in pieces. `pack` writes the rows that this rank sends, and `apply` uses the
        rows that it has received. The next piece is packed while one is in transit. Before the first
        piece is applied, all ranks agree that no rank has an error.

        `is_answer`: the owners of rows send them to the ranks that have the indices."""
        exchange, size = self._exchange, self.weight.element_size()
        steps = [
            (piece, columns)
            for piece in plan._pieces
            for columns in piece.columns(self.width, size, self.piece_bytes)
        ]
        memory, is_single = self._memory, len(steps) == 1
        try:
            elements = max((p.most * (c.stop - c.start) for p, c in steps), default=0)
            memory.reserve(self.weight.detach(), elements, 1 if is_single else 2)
        except Exception as refused:
            error = error or refused
        exchange.agree(error)
        was_torn, before = self._is_torn, None
        for step in [*steps, None]:
            current = None
            if step is not None:
                piece, columns = step
                outgoing, incoming = piece.outgoing, piece.incoming
                if is_answer:
                    outgoing, incoming = incoming, outgoing
                width = columns.stop - columns.start
                sent, received = memory.next(sum(outgoing), sum(incoming), width)
                pack(piece, columns, sent)
                work = exchange.start(received, sent, incoming, outgoing, width * size)
                current = piece, columns, received, work
            if before is not None:
                exchange.finish(before[3])
                if is_single:
                    # Now every rank has all rows. A rank that ends later has no effect on the others.
                    exchange.agree(None)
                elif not is_answer:
                    self._is_torn = True
                apply(*before[:3])
            before = current
        self._is_torn = was_torn

    # Checkpoints.

    def _mesh(self) -> DeviceMesh:
        return DeviceMesh.from_group(self._exchange.group, "cpu")

    def _block(self) -> range:
        """Return the rows that this rank has in a checkpoint, which divides the table into blocks."""
        rank, blocks = self._exchange.rank, Sharding.blocks(self._exchange.ranks)
        first = blocks.row(rank, 0, self.rows)
        return range(0) if first is None else range(first, first + blocks.rows_of(rank, self.rows))

    def _has_blocks(self) -> bool:
        return self.sharding == Sharding.blocks(self._exchange.ranks)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        weight = self.weight.detach()
        if not self._has_blocks():
            weight = self.gather(torch.arange(self._block().start, self._block().stop))
        shape = torch.Size((self.rows, self.width))
        destination[prefix + "weight"] = DTensor.from_local(
            weight, self._mesh(), [Shard(0)], run_check=False, shape=shape, stride=(self.width, 1)
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        key = prefix + "weight"
        if key not in state_dict:
            missing_keys.append(key)
            return
        saved = state_dict[key]
        if tuple(saved.shape) != (self.rows, self.width):
            expected = (self.rows, self.width)
            error_msgs.append(f"{key} has shape {tuple(saved.shape)}, but the table has shape {expected}")
            return
        with torch.no_grad():
            self._load(saved)
        self._is_torn = False

    def _load(self, saved: torch.Tensor) -> None:
        weight, block = self.weight.detach(), self._block()
        if isinstance(saved, DTensor):
            saved = saved.redistribute(self._mesh(), [Shard(0)]).to_local()
        else:
            saved = saved[block.start : block.stop]
        if self._has_blocks():
            weight.copy_(saved)
        else:
            self.index_copy_(torch.arange(block.start, block.stop), saved.to(weight.dtype))


class RowMemory:
    """Memory for the rows in transit: the pieces that this rank sends, and those that it receives. Calls
    use the memory again, because the first write to new memory costs more than the exchange of rows
    inside one machine."""

    def __init__(self) -> None:
        self._memory: list[torch.Tensor] = []
        self._copies = 1
        self._used = 0

    def reserve(self, like: torch.Tensor, elements: int, copies: int) -> None:
        """Make room for `copies` pieces to send, and as many to receive, of at most `elements` elements."""
        self._copies, self._used = copies, 0
        for at in range(2 * copies):
            if at == len(self._memory):
                self._memory.append(like.new_empty(0))
            if self._memory[at].numel() < elements:
                self._memory[at] = like.new_empty(elements)

    def next(self, sent: int, received: int, columns: int) -> list[torch.Tensor]:
        """Return the memory of the next piece: the rows to send, and the rows to receive."""
        first = 2 * (self._used % self._copies)
        self._used += 1
        return [
            memory[: rows * columns].view(rows, columns)
            for memory, rows in zip(self._memory[first:], (sent, received), strict=False)
        ]
