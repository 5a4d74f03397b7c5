"""Holds a workload in memory: the arrays that all contenders share.

Knows shapes and distributions of indices. Knows no contenders and no clock.
"""

from __future__ import annotations

import mmap
from math import prod

import numpy as np

from .workloads import Workload

# Number of index sets. Calls rotate through them, so branch predictors cannot learn one.
SETS = 3

ZIPF_EXPONENT = 1.2


class Problem:
    """Data, updates and index sets. `target` is the output. In place, it is data and output."""

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
        """Converts destination numbers to an index tensor of the workload's shape."""
        indices = empty(self.workload.indices, np.int64, huge_pages)
        coordinates = np.unravel_index(numbers, self.workload.indexed_sizes)
        if self.workload.axis is None:
            for axis, column in enumerate(coordinates):
                indices[..., axis] = column.reshape(self.workload.tuple_shape)
        else:
            indices[...] = coordinates[0].reshape(self.workload.tuple_shape)
        return indices

    def traffic(self, form: str) -> tuple[int, int]:
        """Computes the minimum bytes that a call reads and writes, like `benches/common/inputs.rs`.
        Each needed input byte is read once, and each changed output byte is written once."""
        workload = self.workload
        row = workload.window * workload.repetitions * self.data.itemsize
        touched = len(np.unique(self.numbers[0])) * row
        kept = self.data.nbytes - touched
        if workload.reduction == "none":
            # Only the last update of a destination is needed.
            needed = touched
        else:
            needed = self.updates.nbytes + touched
        needed += self.indices[0].nbytes
        if form == "in place":
            return needed, touched
        return needed + kept, kept + touched


def empty(shape: tuple[int, ...], dtype: np.dtype | type, huge_pages: bool = False) -> np.ndarray:
    """Allocates an array on separate memory pages, so it is aligned for every runtime. Pages are
    small unless `huge_pages` is set. numpy's own allocations request huge pages, and those of the
    other contenders do not."""
    length = prod(shape) * np.dtype(dtype).itemsize
    memory = mmap.mmap(-1, max(length, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if huge_pages:
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, count=prod(shape)).reshape(shape)


def fill(random: np.random.Generator, array: np.ndarray) -> None:
    """Fills floats with numbers in [-1, 1), and integers with ones. Sums of such floats stay finite
    and far from denormal numbers."""
    if array.dtype.kind != "f":
        array.fill(1)
        return
    random.random(dtype=np.float32, out=array)
    array *= 2
    array -= 1


def _destinations(workload: Workload, random: np.random.Generator) -> np.ndarray:
    """Returns the row-major destination number of each tuple."""
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
            sequences, positions = workload.data[:2]
            length = tuples // sequences
            first = random.integers(0, positions - length + 1, sequences)
            starts = first + np.arange(sequences) * positions
            return (starts[:, None] + np.arange(length)).reshape(-1)
    raise ValueError(f"unknown pattern {workload.pattern}")
