"""`ShardedTable`: a table whose rows are divided among actors of Ray.

This module knows actors, tasks and references to objects. It does not know datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray

from .. import ShardedPlan, Sharding, gather, plan_sharded, scatter_update
from .._native import _reduction_name
from .._shards import RankError, TransportError

# Reductions that several scatters may apply one after another with the result of one scatter.
_STEPWISE = ("none", "add", "sub", "mul", "min", "max")


class _Part:
    """The rows of one part. Ray runs its methods in an actor, one after another."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, fill: Any) -> None:
        self._rows = np.full(shape, fill, dtype)
        self._waiting: tuple[Any, ...] = ()

    def prepare(self, *entries: Any) -> None:
        """Keep the entries of all senders for `commit`. Each has the local rows and the updates."""
        self._waiting = entries

    def commit(self, reduction: str, include_self: bool) -> None:
        """Apply the entries in the order of the senders."""
        entries, self._waiting = self._waiting, ()
        if reduction not in _STEPWISE or not include_self:
            # The count of a mean, and the first update of a row, concern the entries of all senders.
            entries = (tuple(map(np.concatenate, zip(*entries, strict=True))),)
        for rows, updates in entries:
            scatter_update(
                self._rows,
                rows,
                updates,
                reduction=reduction,
                include_self=include_self,
                negative_indices=False,
                out=self._rows,
            )

    def gather(self, rows: Any) -> Any:
        return gather(self._rows, rows, negative_indices=False)

    def rows(self) -> Any:
        return self._rows

    def load(self, rows: Any) -> None:
        self._rows = np.array(rows)

    def save(self, path: str) -> None:
        np.save(path, self._rows)


def combined(plan: ShardedPlan, updates: Any) -> Any:
    """Return the updates of the entries of a plan that combines tuples."""
    assert plan.slots is not None, "the plan combines tuples"
    packed = np.empty((len(plan.destinations), *updates.shape[1:]), updates.dtype)
    reduction = plan.packing_reduction
    return scatter_update(
        packed, plan.slots, updates, reduction=reduction, include_self=False, out=packed
    )


def _split(
    rows: int,
    width: tuple[int, ...],
    dtype: Any,
    sharding: Sharding,
    indices: Any,
    updates: Any,
    options: dict[str, Any],
) -> list[Any]:
    """Split the tuples of one sender. Return the type and text of an error, or None, and then the local
    rows and the packed updates of each part."""
    try:
        indices = np.asarray(indices)
        plan = plan_sharded(rows, indices.reshape(-1), sharding, **options)
        updates = np.asarray(updates)
        if updates.shape != indices.shape + width:
            expected = indices.shape + width
            raise ValueError(f"`updates` has shape {updates.shape}, but must have {expected}")
        if updates.dtype != dtype:
            raise TypeError(f"`updates` is {updates.dtype}, but the table is {np.dtype(dtype)}")
        updates = updates.reshape(plan.tuples, *width)
        if plan.order is not None:
            packed = gather(updates, plan.order)
        else:
            packed = combined(plan, updates)
        ends = np.cumsum(plan.counts)[:-1]
        parts = zip(np.split(plan.destinations, ends), np.split(packed, ends), strict=True)
        return [None, *parts]
    except Exception as error:
        return [(type(error).__name__, str(error)), *[None] * sharding.parts]


class ShardedTable:
    """A table of `rows` rows, divided among actors of Ray.

    The indices and updates of a method are arrays, references to arrays in the object store, or lists of
    these with one entry for each sender. An error of one sender is a `RankError` with the number of the
    sender, and no row has changed. After a `TransportError`, the rows are unchanged unless `is_torn` is
    true. Only one thread at a time may call the methods that change rows.

    Args:
        rows: number of rows of the whole table.
        width: number of elements of a row. None: a row is one number.
        dtype: element type.
        actors: number of actors.
        sharding: the division of the rows, with one part for each actor. The default is
            ``Sharding.blocks(actors)``.
        fill: the first value of all elements.
        actor_options: options of the actors, such as ``{"num_cpus": 1}``.

    >>> import numpy as np, ray
    >>> from ndscatter.ray import ShardedTable
    >>> table = ShardedTable(4, 2, actors=2)  # doctest: +SKIP
    >>> table.scatter_add_([3, 0, 3], np.ones((3, 2), np.float32))  # doctest: +SKIP
    >>> table.gather([3])  # doctest: +SKIP
    array([[2., 2.]], dtype=float32)
    """

    def __init__(
        self,
        rows: int,
        width: int | None = None,
        dtype: Any = np.float32,
        *,
        actors: int = 4,
        sharding: Sharding | None = None,
        fill: Any = 0,
        actor_options: dict[str, Any] | None = None,
    ) -> None:
        self.rows, self.dtype = rows, np.dtype(dtype)
        self.sharding = Sharding.blocks(actors) if sharding is None else sharding
        if self.sharding.parts != actors:
            raise ValueError(f"`sharding` has {self.sharding.parts} parts, but there are {actors} actors")
        self._width = () if width is None else (width,)
        self._is_torn = False
        options = {"num_cpus": 0, **(actor_options or {})}
        part_of: Any = ray.remote(_Part).options(**options)
        self._split: Any = ray.remote(_split).options(num_returns=actors + 1)
        self._parts = [
            part_of.remote((self.sharding.rows_of(part, rows), *self._width), self.dtype, fill)
            for part in range(actors)
        ]

    @property
    def is_torn(self) -> bool:
        """Whether an actor ended after a call had changed rows of some actors. The rows of the table are
        then undefined. `load` makes them valid again."""
        return self._is_torn

    # Scatters.

    def scatter_add_(self, indices: Any, updates: Any, *, combine: bool = False) -> None:
        """Add an update to each row that `indices` names. `combine` adds the updates of one row before
        they are sent, which changes the rounding errors of floats."""
        self._scatter(indices, updates, "add", True, combine)

    def scatter_reduce_(
        self, indices: Any, updates: Any, reduce: str, *, include_self: bool = True, combine: bool = False
    ) -> None:
        """Combine an update with each row that `indices` names. `reduce` is ``"sum"``, ``"prod"``,
        ``"amin"``, ``"amax"``, ``"mean"``, or a name of `ndscatter.scatter_update`."""
        self._scatter(indices, updates, _reduction_name(reduce), include_self, combine)

    def index_copy_(self, indices: Any, updates: Any, *, combine: bool = True) -> None:
        """Replace each row that `indices` names by its update. If a row has several updates, the last one
        stays: the last update of the last sender."""
        self._scatter(indices, updates, "none", True, combine)

    def _scatter(
        self, indices: Any, updates: Any, reduction: str, include_self: bool, combine: bool
    ) -> None:
        options = {"reduction": reduction, "combine": combine}
        # The error of a reduction that the element type does not have.
        sample = np.zeros((1, *self._width), self.dtype)
        scatter_update(sample, np.zeros(0, np.int64), sample[:0], reduction=reduction)
        described = self.rows, self._width, self.dtype, self.sharding
        split = [
            self._split.remote(*described, *pair, options)
            for pair in zip(*_senders(indices, updates), strict=True)
        ]
        self._check([sender[0] for sender in split])
        for stage, arguments, is_write in (
            ("prepare", [[sender[1 + part] for sender in split] for part in range(len(self._parts))], False),
            ("commit", [[reduction, include_self]] * len(self._parts), True),
        ):
            self._each(stage, arguments, is_write)

    def _check(self, statuses: list[Any]) -> None:
        try:
            errors = ray.get(statuses)
        except ray.exceptions.RayError as error:
            raise TransportError("split updates", error, []) from error
        for rank, found in enumerate(errors):
            if found is not None:
                raise RankError(rank, *found)

    def _each(self, method: str, arguments: Sequence[Sequence[Any]], is_write: bool = False) -> list[Any]:
        """Call a method of each part. Return the results."""
        calls = [
            getattr(part, method).remote(*given)
            for part, given in zip(self._parts, arguments, strict=True)
        ]
        results, missing, cause = [], [], None
        for part, call in enumerate(calls):
            try:
                results.append(ray.get(call))
            except ray.exceptions.RayError as error:
                missing.append(part)
                cause = error
        if missing:
            self._is_torn |= is_write
            raise TransportError(f"{method} of part {missing[0]}", cause, missing)
        return results

    # Gathers.

    def gather(self, indices: Any, *, combine: bool = False) -> Any:
        """Return the rows that `indices` names, an array of shape ``(*indices.shape, width)``. `combine`
        sends each row once, if several indices name it."""
        indices = np.asarray(ray.get(indices) if isinstance(indices, ray.ObjectRef) else indices)
        plan = plan_sharded(self.rows, indices.reshape(-1), self.sharding, reads=True, combine=combine)
        asked = np.split(plan.destinations, np.cumsum(plan.counts)[:-1])
        answers = np.concatenate(self._each("gather", [[rows] for rows in asked]))
        if plan.slots is not None:
            result = gather(answers, plan.slots)
        else:
            assert plan.order is not None, "a plan without slots has an order"
            result = np.empty((plan.tuples, *self._width), self.dtype)
            scatter_update(result, plan.order, answers, out=result)
        return result.reshape(*indices.shape, *self._width)

    def rows_of_all(self) -> Any:
        """Return all rows, as one array in the memory of the caller."""
        return self._in_order(self._each("rows", [()] * len(self._parts)), self.sharding)

    def _in_order(self, parts: Sequence[Any], sharding: Sharding) -> Any:
        """Return the table whose rows `parts` has, divided by `sharding`."""
        whole = np.empty((self.rows, *self._width), self.dtype)
        for part, rows in zip(parts, self._positions(sharding), strict=True):
            whole[rows] = part
        return whole

    def _positions(self, sharding: Sharding) -> list[Any]:
        """Return the rows of the table that each part of a division has."""
        split = plan_sharded(self.rows, np.arange(self.rows), sharding)
        assert split.order is not None, "the plan does not combine rows"
        return np.split(split.order, np.cumsum(split.counts)[:-1])

    # Checkpoints.

    def save(self, folder: str | Path) -> None:
        """Write one file for each part to `folder`, which all actors must reach."""
        paths = [[str(Path(folder).absolute() / f"part-{part}.npy")] for part in range(len(self._parts))]
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._each("save", paths)

    def load(self, folder: str | Path, sharding: Sharding | None = None) -> None:
        """Read the files of `save`. `sharding` is the division of the rows of the saved table, and by
        default that of this table. Another number of actors may have saved the table."""
        sharding = self.sharding if sharding is None else sharding
        files = [Path(folder) / f"part-{part}.npy" for part in range(sharding.parts)]
        whole = self._in_order([np.load(file, mmap_mode="r") for file in files], sharding)
        self._each("load", [[whole[rows]] for rows in self._positions(self.sharding)], is_write=True)
        self._is_torn = False


def _senders(indices: Any, updates: Any) -> tuple[list[Any], list[Any]]:
    """Return the indices and the updates of each sender."""
    is_list = isinstance(indices, list) and len(indices) > 0 and not np.isscalar(indices[0])
    return (indices, list(updates)) if is_list else ([indices], [updates])
