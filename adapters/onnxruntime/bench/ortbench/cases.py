"""Creates the input arrays of a workload and checks results.

The built-in kernel of onnxruntime and the kernel of ndscatter use the same input arrays. This
module contains the code for the arrays and for the oracle, which computes the expected results.
This module contains no code for models or timing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from types import SimpleNamespace

import numpy as np
from compare import problem as arrays
from compare.contenders import tuples_with_repetitions
from compare.oracle import Oracle
from compare.problem import Problem
from compare.workloads import Workload

from .rows import Cache, Elements, Row

# Seed of the random arrays of ScatterElements and TensorScatter. The benchmark package `compare`
# has another seed for its arrays.
SEED = 2


@dataclass
class Case:
    """A workload (one row of the result tables) with the input arrays of the workload.

    `indices` has one array for each set of indices. `numbers` has the destination numbers of the
    tuples of each set of indices, for the oracle, which computes the expected results.
    """

    row: Row
    operator: str
    attributes: dict
    opset: int
    data: np.ndarray
    updates: np.ndarray
    indices: list[np.ndarray]
    numbers: list[np.ndarray]
    flat: object  # the problem of the oracle
    target: np.ndarray = field(init=False)

    def __post_init__(self):
        self.target = self.new_target()

    def new_target(self) -> np.ndarray:
        """Returns an array for a result. The array is filled with zeros, so that all its memory
        pages are mapped."""
        target = arrays.empty(self.data.shape, self.data.dtype)
        target.fill(0)
        return target

    def oracle(self, index_set: int) -> Oracle:
        return Oracle(self.flat, self.numbers[index_set])

    def judge(self, oracle: Oracle, result: np.ndarray, bit_for_bit: bool):
        return oracle.judge(result.reshape(self.flat.data.shape), bit_for_bit)


def build(row: Row) -> Case:
    match row.what:
        case Workload():
            return _nd(row, row.what)
        case Elements():
            return _elements(row, row.what)
        case Cache():
            return _cache(row, row.what)


def _nd(row: Row, workload: Workload) -> Case:
    if workload.dtype == "float16":
        problem = _halved(workload)
    else:
        problem = Problem(workload)
    sets = [tuples_with_repetitions(problem, array)[0] for array in problem.indices[: row.sets]]
    updates = tuples_with_repetitions(problem, problem.indices[0])[1]
    numbers = problem.numbers[: row.sets]
    # Frees the arrays `indices` and `target` of the problem, because this benchmark does not use
    # these two arrays.
    del problem.indices, problem.target
    return Case(
        row,
        "ScatterND",
        {"reduction": workload.reduction},
        18,
        problem.data,
        updates,
        sets,
        numbers,
        problem,
    )


def _halved(workload: Workload) -> Problem:
    """Returns the problem of `workload` with data and updates in float16. The values are random
    float32 values, rounded to float16."""
    problem = Problem(replace(workload, dtype="float32"))
    problem.data = _paged(problem.data.astype(np.float16))
    problem.updates = _paged(problem.updates.astype(np.float16))
    return problem


def _paged(array: np.ndarray) -> np.ndarray:
    """Returns a copy of `array` in memory with small pages, like the other data of the
    benchmark."""
    copy = arrays.empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "float16":
        return _paged(_random(random, shape, "float32").astype(np.float16))
    array = arrays.empty(shape, np.dtype(dtype))
    arrays.fill(random, array)
    return array


def _flat(
    row: Row, data: np.ndarray, updates: np.ndarray, numbers: np.ndarray, window: int = 1
) -> object:
    """Returns a problem for the oracle. Data and updates are reshaped to rows of `window` elements,
    or to one dimension if `window` is 1."""
    tail = (window,) if window > 1 else ()
    # `pattern` states for the oracle whether two tuples may have the same destination: "uniform" if
    # two tuples may have the same destination, "unique" if not.
    pattern = "uniform" if len(np.unique(numbers)) < len(numbers) else "unique"
    shape = (data.size // window, *tail)
    dtype = str(data.dtype)
    workload = Workload(row.name, shape, (len(numbers), 1), row.reduction, pattern, dtype=dtype)
    return SimpleNamespace(
        workload=workload,
        data=data.reshape(workload.data),
        updates=updates.reshape(workload.updates),
    )


def _elements(row: Row, what: Elements) -> Case:
    random = np.random.default_rng(SEED)
    data = _random(random, what.data, what.dtype)
    updates = _random(random, what.indices, what.dtype)
    indices = [_indices(random, what) for _ in range(row.sets)]
    numbers = [_destinations(what, array) for array in indices]
    attributes = {"axis": what.axis, "reduction": what.reduction}
    flat = _flat(row, data, updates, numbers[0])
    return Case(
        row, "ScatterElements", attributes, 18, data, updates, indices, numbers, flat
    )


def _indices(random: np.random.Generator, what: Elements) -> np.ndarray:
    size = what.data[what.axis]
    indices = arrays.empty(what.indices, np.int64)
    match what.pattern:
        case "unique":
            indices[...] = random.permutation(size)[: prod(what.indices)]
        case "rows":
            column = random.integers(0, size, what.indices[0])
            indices[...] = column.reshape(-1, *[1] * (len(what.indices) - 1))
        case "uniform":
            indices[...] = random.integers(0, size, what.indices)
    return indices


def _destinations(what: Elements, indices: np.ndarray) -> np.ndarray:
    """Returns for each element of the updates its destination number: the row-major position in
    data, counted from 0, of the element to which the update is applied."""
    strides = [prod(what.data[axis + 1 :]) for axis in range(len(what.data))]
    numbers = indices * strides[what.axis]
    for axis, length in enumerate(what.indices):
        if axis != what.axis:
            others = [1] * len(what.indices)
            others[axis] = length
            numbers += np.arange(length).reshape(others) * strides[axis]
    return numbers.reshape(-1)


def _cache(row: Row, what: Cache) -> Case:
    random = np.random.default_rng(SEED)
    batch, heads, room, width = what.data
    data = _random(random, what.data, what.dtype)
    updates = _random(random, (batch, heads, what.length, width), what.dtype)
    # In a circular cache the new positions may begin at any position of the cache. New positions
    # that reach the end of the cache continue at the start of the cache.
    starts = room if what.mode == "circular" else room - what.length + 1
    indices = [random.integers(0, starts, batch) for _ in range(row.sets)]
    numbers = [_positions(what, array) for array in indices]
    flat = _flat(row, data, updates, numbers[0], width)
    attributes = {"mode": what.mode, "axis": -2}
    return Case(row, "TensorScatter", attributes, 24, data, updates, indices, numbers, flat)


def _positions(what: Cache, starts: np.ndarray) -> np.ndarray:
    batch, heads, room, _ = what.data
    positions = (starts[:, None] + np.arange(what.length)) % room
    sequences = np.arange(batch * heads).reshape(batch, heads, 1) * room
    return (sequences + positions[:, None, :]).reshape(-1)
