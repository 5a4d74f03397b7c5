"""ndscatter, through its C interface. The allocating form calls `allocate` of the crate."""

from __future__ import annotations

from ctypes import addressof, byref, c_int64, c_void_p, cast
from functools import partial

import numpy as np

from .. import libraries
from ..problem import Problem
from ..words import ALLOCATING, IN_PLACE, OURS
from . import Call, reset_target


class NdScatter:
    name = OURS

    def __init__(self, threads: int):
        # The library's default pool has RAYON_NUM_THREADS threads, which the parent process sets.
        self.library = libraries.ndscatter_c()
        self.version = self.library.nds_version().decode()

    def calls(self, problem: Problem, form: str) -> list[Call]:
        if form == ALLOCATING:
            return [_allocating(problem)] if problem.data.dtype == np.float32 else []
        return [self._on_tensors(problem, in_place=form == IN_PLACE)]

    def _on_tensors(self, problem: Problem, in_place: bool) -> Call:
        axis = problem.workload.axis
        output = libraries.dl_tensor(problem.target)
        data = output if in_place else libraries.dl_tensor(problem.data)
        updates = libraries.dl_tensor(problem.updates)
        options = libraries.options(problem.workload.reduction)
        sets = [libraries.dl_tensor(indices) for indices in problem.indices]

        if axis is None:
            function, between = self.library.nds_scatter_nd, []
        else:
            function, between = self.library.nds_scatter_update, [c_int64(axis)]
        outside = [byref(output), byref(options)]
        runs = [
            partial(function, byref(data), byref(indices), byref(updates), *between, *outside)
            for indices in sets
        ]

        def result(status: int) -> np.ndarray:
            assert status == 0, self.library.nds_last_error().decode()
            return problem.target

        def time_calls(calls: int, index_set: int) -> int:
            tensors = [data, sets[index_set], updates, output, options]
            nanoseconds = libraries.native().compare_time_scatter_nd(
                cast(function, c_void_p), *map(addressof, tensors), calls
            )
            assert nanoseconds >= 0, self.library.nds_last_error().decode()
            return nanoseconds

        return Call(
            how=function.__name__,
            runs=runs,
            result=result,
            reset=reset_target(problem) if in_place else None,
            time_calls=time_calls if axis is None else None,
        )


class _Result:
    """Handle of a `Vec` that the crate allocated."""

    def __init__(self, handle: int | None):
        assert handle is not None, "the call of ndscatter failed"
        self.handle = handle

    def __del__(self):
        libraries.native().compare_free(self.handle)


def _allocating(problem: Problem) -> Call:
    workload, native = problem.workload, libraries.native()
    data, updates = map(libraries.native_tensor, (problem.data, problem.updates))
    axis = -1 if workload.axis is None else workload.axis
    reduction = libraries.REDUCTIONS[workload.reduction]

    def run(indices: libraries.NativeTensor) -> _Result:
        return _Result(native.compare_allocate(data, indices, updates, axis, reduction))

    def result(made: _Result) -> np.ndarray:
        values = native.compare_values(made.handle)
        return np.ctypeslib.as_array(values, workload.data).copy()

    operator = "nd()" if workload.axis is None else f"update({workload.axis})"
    sets = map(libraries.native_tensor, problem.indices)
    return Call(
        how=f"Scatter::{operator}.allocate",
        runs=[partial(run, indices) for indices in sets],
        result=result,
    )


CONTENDER = NdScatter
