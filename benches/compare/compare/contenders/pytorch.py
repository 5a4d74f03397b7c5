"""torch, in eager mode: every call that applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ..problem import Problem
from ..words import ALLOCATING, INTO, IN_PLACE
from . import Call, reset_target, shared_target


@dataclass
class Way:
    """A function of torch in place, and its counterpart out of place if torch has one."""

    how: str
    in_place: Callable[..., Any]
    arguments: list[tuple]  # arguments after the tensor, for each index set
    allocating: Callable[..., torch.Tensor] | None = None


class Torch:
    name = "torch"
    version = torch.__version__.split("+")[0]

    def __init__(self, threads: int):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def calls(self, problem: Problem, form: str) -> list[Call]:
        data, target = torch.from_numpy(problem.data), torch.from_numpy(problem.target)
        made = []
        for way in _ways(problem):
            made += _calls(problem, form, way, data, target)
        return made


def _calls(
    problem: Problem, form: str, way: Way, data: torch.Tensor, target: torch.Tensor
) -> list[Call]:
    def into(arguments: tuple) -> None:
        way.in_place(target.copy_(data), *arguments)

    def cloning(arguments: tuple) -> torch.Tensor:
        return way.in_place(data.clone(), *arguments)

    if form == IN_PLACE:
        runs = [partial(way.in_place, target, *arguments) for arguments in way.arguments]
        return [Call(way.how, runs, shared_target(problem), reset=reset_target(problem))]
    if form == INTO:
        runs = [partial(into, arguments) for arguments in way.arguments]
        return [Call(f"copy_, {way.how}", runs, shared_target(problem))]
    assert form == ALLOCATING
    runs = [partial(cloning, arguments) for arguments in way.arguments]
    calls = [Call(f"clone, {way.how}", runs, torch.Tensor.numpy)]
    if way.allocating is not None:
        runs = [partial(way.allocating, data, *arguments) for arguments in way.arguments]
        calls.append(Call(way.how.rstrip("_"), runs, torch.Tensor.numpy))
    return calls


def _ways(problem: Problem) -> list[Way]:
    workload = problem.workload
    indices = [torch.from_numpy(array) for array in problem.indices]
    updates = torch.from_numpy(problem.updates)
    if workload.axis is not None:
        return _along_axis(problem, indices, updates)
    ways = [_index_put(workload.reduction, indices, updates)]
    if len(workload.indexed_sizes) == 1:
        ways += _rows(problem, indices, updates)
    else:
        ways += _flattened(problem, indices, updates)
    return [way for way in ways if way is not None]


def _index_put(reduction: str, indices: list[torch.Tensor], updates: torch.Tensor) -> Way | None:
    if reduction == "max":
        return None
    accumulate = reduction == "add"
    arguments = [(tuple(array.unbind(-1)), updates, accumulate) for array in indices]
    return Way("index_put_", torch.Tensor.index_put_, arguments, torch.index_put)


def _rows(problem: Problem, indices: list[torch.Tensor], updates: torch.Tensor) -> list[Way]:
    """Returns the functions for a list of rows or elements."""
    rows = [array.flatten() for array in indices]
    like_updates = (-1,) + (1,) * (updates.ndim - 1)
    expanded = [array.view(like_updates).expand_as(updates) for array in rows]
    by_row = [(0, array, updates) for array in rows]
    by_element = [(0, array, updates) for array in expanded]
    tensor = torch.Tensor
    match problem.workload.reduction:
        case "none":
            return [
                Way("index_copy_", tensor.index_copy_, by_row, torch.index_copy),
                Way("scatter_", tensor.scatter_, by_element, torch.scatter),
            ]
        case "add":
            by_sum = [(*arguments, "sum") for arguments in by_element]
            ways = [
                Way("index_add_", tensor.index_add_, by_row, torch.index_add),
                Way("scatter_add_", tensor.scatter_add_, by_element, torch.scatter_add),
                Way("scatter_reduce_", tensor.scatter_reduce_, by_sum, torch.scatter_reduce),
            ]
            if updates.ndim == 1:
                ways.append(Way("bincount", _bincount, [(array, updates) for array in rows]))
            return ways
        case _:
            by_row = [(*arguments, "amax") for arguments in by_row]
            by_element = [(*arguments, "amax") for arguments in by_element]
            return [
                Way("index_reduce_", tensor.index_reduce_, by_row, torch.index_reduce),
                Way("scatter_reduce_", tensor.scatter_reduce_, by_element, torch.scatter_reduce),
            ]


def _bincount(tensor: torch.Tensor, rows: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    return tensor.add_(torch.bincount(rows, updates, len(tensor)))


def _flattened(problem: Problem, indices: list[torch.Tensor], updates: torch.Tensor) -> list[Way]:
    """Flattens several indexed axes into one. The arithmetic on indices is timed."""
    sizes, window = problem.workload.indexed_sizes, problem.workload.window
    rows = updates.view(-1, window)

    def index_copy(tensor: torch.Tensor, tuples: torch.Tensor) -> torch.Tensor:
        number, *others = tuples.view(-1, len(sizes)).unbind(-1)
        for size, index in zip(sizes[1:], others):
            number = number * size + index
        tensor.view(-1, window).index_copy_(0, number, rows)
        return tensor

    return [Way("index_copy_ on flattened axes", index_copy, [(array,) for array in indices])]


def _along_axis(problem: Problem, indices: list[torch.Tensor], updates: torch.Tensor) -> list[Way]:
    workload = problem.workload
    axis, before = workload.axis, (None,) * workload.axis
    by_place = [((*before, array), updates) for array in indices]
    flat = updates.flatten(axis, axis + len(workload.tuple_shape) - 1)
    by_row = [(axis, array.flatten(), flat) for array in indices]

    def put(tensor: torch.Tensor, place: tuple, values: torch.Tensor) -> torch.Tensor:
        tensor[tuple(slice(None) if index is None else index for index in place)] = values
        return tensor

    return [
        Way("tensor[:, i] = updates", put, by_place),
        Way("index_copy_", torch.Tensor.index_copy_, by_row, torch.index_copy),
    ]


CONTENDER = Torch
