"""Computes the expected results, and checks results.

Results of assignments, maxima and integers must be exact. For float sums there are two references.
ndscatter must give the bits of the sequential loop in f32. Every other contender may differ from
the sum in f64 by

    8 * 2^-24 * (addends + 1).

Addends are uniform in [-1, 1). The sequential sum of m addends in f32 has an error of about
0.4 * m * 2^-24 (one standard deviation). Other orders have smaller errors. The tolerance is twenty
times that error. A lost addend is 0.5 on average, far above the tolerance of every workload.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .problem import Problem
from .words import OK, OTHER_WINNER, WRONG


# From best to worst.
_VERDICTS = [OK, OTHER_WINNER, WRONG]


@dataclass(frozen=True)
class Verdict:
    status: str
    why: str = ""

    def worse(self, other: Verdict) -> Verdict:
        return max(self, other, key=lambda verdict: _VERDICTS.index(verdict.status))


class Oracle:
    """The expected results of one index set."""

    def __init__(self, problem: Problem, numbers: np.ndarray):
        self.problem = problem
        self.workload = problem.workload
        self.numbers = numbers

    def _rows(self, array: np.ndarray, count: int) -> np.ndarray:
        """Reshapes to [repetitions, count, window]; `count` counts destinations or tuples."""
        return array.reshape(self.workload.repetitions, count, self.workload.window)

    def _scattered(self, data: np.ndarray, updates: np.ndarray) -> np.ndarray:
        """Runs the sequential loop over tuples, in the type of `data`."""
        workload = self.workload
        result = data.copy()
        rows = self._rows(result, workload.slices)
        updates = self._rows(updates, workload.tuples)
        # Drop the last axis of windows of one element: numpy's loops over single elements are
        # several times faster than its loops over rows of one element.
        if workload.window == 1:
            rows, updates = rows[..., 0], updates[..., 0]
        match workload.reduction:
            case "none":
                last = np.full(workload.slices, -1)
                np.maximum.at(last, self.numbers, np.arange(workload.tuples))
                hit = np.flatnonzero(last >= 0)
                rows[:, hit] = updates[:, last[hit]]
            case "add":
                for row, update in zip(rows, updates):
                    np.add.at(row, self.numbers, update)
            case "max":
                for row, update in zip(rows, updates):
                    np.maximum.at(row, self.numbers, update)
        return result

    @cached_property
    def sequential(self) -> np.ndarray:
        """Result of the sequential loop, in the type of the data."""
        return self._scattered(self.problem.data, self.problem.updates)

    @cached_property
    def exact_sum(self) -> np.ndarray:
        data = self.problem.data.astype(np.float64)
        if self.workload.window == 1:
            return data + np.bincount(
                self.numbers, self.problem.updates.reshape(-1), minlength=data.size
            ).reshape(data.shape)
        return self._scattered(data, self.problem.updates.astype(np.float64))

    @cached_property
    def tolerance(self) -> np.ndarray:
        """Tolerance of the sum at each destination."""
        addends = np.bincount(self.numbers, minlength=self.workload.slices)
        return 8 * 2.0**-24 * (addends + 1)

    def verdict(self, result: np.ndarray, bit_for_bit: bool) -> Verdict:
        data = self.problem.data
        if result.shape != data.shape or result.dtype != data.dtype:
            return Verdict(WRONG, f"a result of {result.dtype} {list(result.shape)}")
        result = np.ascontiguousarray(result)
        if np.array_equal(result.view(np.uint8), self.sequential.view(np.uint8)):
            return Verdict(OK)
        if bit_for_bit:
            return self._count(result != self.sequential, "not the bits of the sequential loop")
        if self.workload.reduction == "add" and data.dtype.kind == "f":
            return self._sum_verdict(result)
        # Zeros of both signs are equal values with different bits.
        different = result != self.sequential
        if not different.any():
            return Verdict(OK)
        if self.workload.reduction == "none" and self.workload.repeats:
            return self._winner_verdict(result, different)
        return self._count(different)

    def _sum_verdict(self, result: np.ndarray) -> Verdict:
        error = np.abs(self._rows(result - self.exact_sum, self.workload.slices))
        # NaN is wrong too: the comparison is false for it.
        different = ~(error <= self.tolerance[:, None])
        return self._count(different) if different.any() else Verdict(OK)

    def _winner_verdict(self, result: np.ndarray, different: np.ndarray) -> Verdict:
        """Whether each slice is a whole update of its destination."""
        workload = self.workload
        rows = self._rows(result, workload.slices)
        updates = self._rows(self.problem.updates, workload.tuples)
        slices = self._rows(different, workload.slices).any(axis=2)
        for number in np.flatnonzero(slices.any(axis=0)):
            candidates = updates[:, self.numbers == number]
            whole = (candidates == rows[:, number, None]).all(axis=2).any(axis=1)
            if not whole.all():
                return self._count(different, "slices equal no update")
        return Verdict(OTHER_WINNER, f"{slices.mean():.0%} of slices have an earlier update")

    def _count(self, different: np.ndarray, what: str = "") -> Verdict:
        found = f"{np.count_nonzero(different)} of {different.size} elements differ"
        return Verdict(WRONG, f"{what}: {found}" if what else found)
