"""Scatters of the rows of a dataset.

This module knows datasets, batches and columns. It does not know actors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import ray

from .. import Sharding, plan_sharded
from .._native import _reduction_name
from ._table import ShardedTable, combined

# Number of batches of an iterable that tasks prepare at the same time.
_IN_FLIGHT = 8


def _combined(
    batch: dict[str, Any], keys: str, values: str | None, rows: int, dtype: str, reduction: str
) -> dict[str, Any]:
    """Return the distinct keys of a batch, and the combined values of each."""
    updates = np.ones(len(batch[keys]), dtype) if values is None else np.asarray(batch[values], dtype)
    plan = plan_sharded(rows, batch[keys], Sharding.blocks(1), combine=True, reduction=reduction)
    return {"key": plan.destinations, "value": combined(plan, updates)}


def _separate(batch: dict[str, Any], keys: str, values: str, dtype: str) -> dict[str, Any]:
    return {"key": batch[keys], "value": np.asarray(batch[values], dtype)}


def _first_value(reduction: str, dtype: np.dtype[Any]) -> Any:
    """Return the value that does not change an update that it is combined with."""
    if reduction not in ("min", "max"):
        return 1 if reduction == "mul" else 0
    if dtype.kind == "f":
        return np.inf if reduction == "min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if reduction == "min" else limits.min


def group_by(
    dataset: Any,
    keys: str,
    values: str,
    groups: int,
    reduce: str = "sum",
    *,
    dtype: Any = np.float64,
    table: ShardedTable | None = None,
    batch_size: int = 1 << 18,
) -> ShardedTable:
    """Reduce the values of each group of the rows of a dataset.

    The values of a group are combined in the order of the dataset, so the result does not depend on the
    number of workers. Integers, minima and maxima are combined in the workers, which gives the same bits.

    Args:
        dataset: a dataset of ``ray.data``, or an iterable of batches. A batch is a dict of arrays, or a
            function that returns one, which a task calls. The dataset may be larger than memory.
        keys: the column of the groups: integers from 0 to ``groups - 1``.
        values: the column of the values.
        groups: number of groups.
        reduce: ``"sum"``, ``"prod"``, ``"amin"`` or ``"amax"``.
        dtype: the type in which values are combined.
        table: the table of the groups, with values that take part in the reduction. None: a new table
            with four actors. A group without rows then has the value 0, or 1 for a product, or the
            largest or smallest value of the type.
        batch_size: number of rows of a step for a dataset of ``ray.data``.

    Returns:
        The table, with one row for each group.
    """
    reduction, kind = _reduction_name(reduce), np.dtype(dtype)
    if reduction == "mean":
        raise ValueError("the mean of a group is its sum, divided by its count of `histogram`")
    if table is None:
        table = ShardedTable(groups, dtype=dtype, fill=_first_value(reduction, kind))
    name = kind.name
    if kind.kind in "iu" or reduction in ("min", "max"):
        arguments = {"keys": keys, "values": values, "rows": groups, "dtype": name, "reduction": reduction}
        _scatter(dataset, _combined, arguments, table, reduction, batch_size)
    else:
        arguments = {"keys": keys, "values": values, "dtype": name}
        _scatter(dataset, _separate, arguments, table, reduction, batch_size)
    return table


def histogram(
    dataset: Any,
    keys: str,
    bins: int,
    *,
    table: ShardedTable | None = None,
    batch_size: int = 1 << 18,
) -> Any:
    """Count the rows of a dataset for each value of a column. Return an array of int64.

    Args:
        dataset: a dataset of ``ray.data``, or an iterable of batches, as in `group_by`.
        keys: the column of the bins: integers from 0 to ``bins - 1``.
        bins: number of bins.
        table: the table of the counts. None: a new table of zeros with four actors.
        batch_size: number of rows of a step for a dataset of ``ray.data``.
    """
    if table is None:
        table = ShardedTable(bins, dtype=np.int64)
    arguments = {"keys": keys, "values": None, "rows": bins, "dtype": "int64", "reduction": "add"}
    _scatter(dataset, _combined, arguments, table, "add", batch_size)
    return table.rows_of_all()


def _scatter(
    dataset: Any,
    prepare: Any,
    arguments: dict[str, Any],
    table: ShardedTable,
    reduction: str,
    batch_size: int,
) -> None:
    """Scatter the batches of a dataset in their order."""
    if hasattr(dataset, "map_batches"):
        prepared = dataset.map_batches(
            prepare, batch_format="numpy", batch_size=batch_size, fn_kwargs=arguments
        )
        prepared.context.execution_options.preserve_order = True
        batches = prepared.iter_batches(batch_format="numpy", batch_size=batch_size)
    else:
        batches = _prepared(dataset, prepare, arguments)
    for batch in batches:
        table.scatter_reduce_(batch["key"], batch["value"], reduction)


def _prepared(batches: Iterable[Any], prepare: Any, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Prepare batches in tasks. Yield the results in the order of the batches."""

    def prepare_one(batch: dict[str, Any] | Callable[[], dict[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = prepare(batch() if callable(batch) else batch, **arguments)
        return result

    task: Any = ray.remote(prepare_one)
    waiting: deque[Any] = deque()
    for batch in batches:
        waiting.append(task.remote(batch))
        if len(waiting) == _IN_FLIGHT:
            yield ray.get(waiting.popleft())
    while waiting:
        yield ray.get(waiting.popleft())
