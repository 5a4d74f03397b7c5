"""numpy, which uses one thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..problem import Problem
from ..words import INTO, IN_PLACE
from . import Call, reset_target, shared_target

Scatter = Callable[[np.ndarray, Any, np.ndarray], None]


class NumPy:
    name = "numpy"
    version = np.__version__

    def __init__(self, threads: int):
        pass

    def calls(self, problem: Problem, form: str) -> list[Call]:
        return [_call(problem, form, how, scatter, keys) for how, (scatter, keys) in _ways(problem)]


def _call(problem: Problem, form: str, how: str, scatter: Scatter, keys: list) -> Call:
    data, updates, target = problem.data, problem.updates, problem.target

    def into(key: Any) -> None:
        np.copyto(target, data)
        scatter(target, key, updates)

    def allocating(key: Any) -> np.ndarray:
        output = data.copy()
        scatter(output, key, updates)
        return output

    if form == IN_PLACE:
        runs = [partial(scatter, target, key, updates) for key in keys]
        return Call(how, runs, shared_target(problem), reset=reset_target(problem))
    if form == INTO:
        runs = [partial(into, key) for key in keys]
        return Call(f"copyto, {how}", runs, shared_target(problem))
    runs = [partial(allocating, key) for key in keys]
    return Call(f"copy, {how}", runs, lambda output: output)


def _ways(problem: Problem) -> list[tuple[str, tuple[Scatter, list]]]:
    """Returns functions that scatter in place, with their keys for each index set."""
    workload = problem.workload
    if workload.axis is None:
        # Views: one array of coordinates per axis.
        keys = [tuple(np.moveaxis(indices, -1, 0)) for indices in problem.indices]
    else:
        before = (slice(None),) * workload.axis
        keys = [(*before, indices) for indices in problem.indices]
    if workload.reduction == "none":
        return [("data[i] = updates", (np.ndarray.__setitem__, keys))]
    ufunc = {"add": np.add, "max": np.maximum}[workload.reduction]
    name = ufunc.__name__
    ways = [(f"{name}.at", (ufunc.at, keys))]
    assert len(workload.indexed_sizes) == 1, "a list of rows or of elements"
    rows = [indices[:, 0] for indices in problem.indices]
    ways.append((f"sort, {name}.reduceat", (partial(_reduceat, ufunc), rows)))
    if workload.reduction == "add" and workload.window == 1:
        ways.append(("bincount", (_bincount, rows)))
    return ways


def _reduceat(ufunc: np.ufunc, data: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    """Sorts by row, and reduces all updates of a row together."""
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    hit = rows[starts]
    data[hit] = ufunc(data[hit], ufunc.reduceat(updates[order], starts, axis=0))


def _bincount(data: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    data += np.bincount(rows, updates, minlength=len(data))


CONTENDER = NumPy
