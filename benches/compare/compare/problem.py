"""A workload in memory: the arrays that all contenders share.

Knows shapes and patterns; knows no contender and no clock.
"""

from __future__ import annotations

import mmap
from math import prod

import numpy as np

from .workloads import Workload

# Index sets that calls rotate through, so that no predictor learns one.
SETS = 3

ZIPF_EXPONENT = 1.2


class Problem:
    """Data, updates and index sets; `target` is the output, or the data in place."""

    def __init__(self, workload: Workload, huge_pages: bool = False):
        self.workload = workload
        random = np.random.default_rng(1)
        dtype = np.dtype(workload.dtype)
        self.data = empty(workload.data, dtype, huge_pages)
        if workload.starts_lowest:
            self.data.fill(-np.inf)
        else:
            fill(random, self.data)
        self.updates = empty(workload.updates, dtype, huge_pages)
        fill(random, self.updates)
        self.target = empty(workload.data, dtype, huge_pages)
        self.target.fill(0)
        self.numbers = [_destinations(workload, random) for _ in range(SETS)]
        self.indices = [self._tuples(numbers, huge_pages) for numbers in self.numbers]

    def _tuples(self, numbers: np.ndarray, huge_pages: bool) -> np.ndarray:
        """Destination numbers as an index tensor of the workload's shape."""
        indices = empty(self.workload.indices, np.int64, huge_pages)
        coordinates = np.unravel_index(numbers, self.workload.indexed_sizes)
        if self.workload.axis is None:
            for axis, column in enumerate(coordinates):
                indices[..., axis] = column.reshape(self.workload.tuple_shape)
        else:
            indices[...] = coordinates[0].reshape(self.workload.tuple_shape)
        return indices

    def traffic(self, form: str) -> tuple[int, int]:
        """Bytes that a call must read and write: each that it needs once in,
        each that it changes once out. As in `benches/common/inputs.rs`."""
        workload = self.workload
        row = workload.window * workload.repetitions * self.data.itemsize
        touched = len(np.unique(self.numbers[0])) * row
        kept = self.data.nbytes - touched
        if workload.reduction == "none":
            # Of several updates of one destination only the last is needed.
            needed = touched
        else:
            needed = self.updates.nbytes + touched
        needed += self.indices[0].nbytes
        if form == "in place":
            return needed, touched
        return needed + kept, kept + touched


def empty(shape: tuple[int, ...], dtype: np.dtype | type, huge_pages: bool = False) -> np.ndarray:
    """An array on pages of its own: aligned for every runtime, and of small
    pages unless others are asked for. numpy's own memory asks for huge ones,
    which what the other contenders allocate has not."""
    length = prod(shape) * np.dtype(dtype).itemsize
    memory = mmap.mmap(-1, max(length, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if huge_pages:
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, count=prod(shape)).reshape(shape)


def fill(random: np.random.Generator, array: np.ndarray) -> None:
    """Numbers of [-1, 1): sums of many stay finite and far from denormal. Of
    integers ones."""
    if array.dtype.kind != "f":
        array.fill(1)
        return
    random.random(dtype=np.float32, out=array)
    array *= 2
    array -= 1


def _destinations(workload: Workload, random: np.random.Generator) -> np.ndarray:
    """The row-major number of each tuple's destination."""
    tuples, slices = workload.tuples, workload.slices
    match workload.pattern:
        case "unique":
            return random.permutation(slices)[:tuples]
        case "uniform":
            return random.integers(0, slices, tuples)
        case "zipf":
            weights = np.arange(1, slices + 1, dtype=np.float64) ** -ZIPF_EXPONENT
            sums = np.cumsum(weights)
            found = np.searchsorted(sums, random.random(tuples) * sums[-1], side="right")
            return np.minimum(found, slices - 1)
        case "sorted":
            return np.sort(random.integers(0, slices, tuples))
        case "even":
            return random.permutation(tuples) % slices
        case "stretches":
            sequences, room = workload.data[:2]
            length = tuples // sequences
            starts = random.integers(0, room - length + 1, sequences) + np.arange(sequences) * room
            return (starts[:, None] + np.arange(length)).reshape(-1)
    raise ValueError(f"no pattern is called {workload.pattern}")
