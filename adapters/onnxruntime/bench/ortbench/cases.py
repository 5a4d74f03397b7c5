"""The arrays of a row, which both kernels share, and the check of a result.

Knows arrays and the oracle, which computes the expected results. Knows nothing of models or timing.
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

# Seed of the random arrays. This seed differs from the seeds of the benchmark package `compare`.
SEED = 2


@dataclass
class Case:
    """A row of the tables with its arrays.

    `numbers` are the destination numbers of the row's tuples, for the oracle.
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
        """Returns memory for a result. All its pages are mapped."""
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
    # Frees two arrays of the problem that are not used here.
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
    """Returns a problem of float16, which is converted from random float32."""
    problem = Problem(replace(workload, dtype="float32"))
    problem.data = _paged(problem.data.astype(np.float16))
    problem.updates = _paged(problem.updates.astype(np.float16))
    return problem


def _paged(array: np.ndarray) -> np.ndarray:
    """Returns a copy of `array` on small pages. All arrays of the benchmark are on small pages."""
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
    """Returns data and updates in the form of the oracle: a list of rows of `window` elements."""
    tail = (window,) if window > 1 else ()
    # The oracle, which computes the expected result, reads from the pattern whether destinations
    # have duplicates.
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
    """Returns the row-major number of each element's destination."""
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
    # In a circular cache a sequence may begin anywhere, so some sequences wrap around.
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
