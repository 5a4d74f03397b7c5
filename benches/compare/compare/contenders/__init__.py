"""The contenders: one file a runtime, one class each.

Knows what a contender offers; knows nothing of clocks and rounds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..problem import Problem
from ..words import OURS


@dataclass
class Call:
    """One way to do a workload in one form."""

    how: str  # the function of the runtime
    runs: Sequence[Callable[[], Any]]  # one an index set; what it returns outlives the timing
    result: Callable[[Any], np.ndarray]  # the result in numpy, of what a run returned
    wait: Callable[[Any], Any] | None = None  # until a run has ended, if it returns before
    reset: Callable[[], Any] | None = None  # in place: the data as it was at first
    # Nanoseconds of this many calls on this index set, from a compiled caller.
    time_calls: Callable[[int, int], int] | None = None


class Contender(Protocol):
    """A runtime, limited to `threads` threads."""

    name: str
    version: str

    def __init__(self, threads: int): ...

    def calls(self, problem: Problem, form: str) -> list[Call]:
        """All that may be its fastest; none if it has not this form."""


# Modules, and the names under which they are shown.
NAMES = {
    "ndscatter": "ours",
    "onnxruntime": "onnx_runtime",
    "openvino": "openvino_cpu",
    "torch": "pytorch",
    "jax": "jax_cpu",
    "tensorflow": "tensorflow_cpu",
    "numpy": "numpy_calls",
}


def load(names: Sequence[str], threads: int) -> tuple[list[Contender], dict[str, str]]:
    """Those that can be imported, and why others cannot."""
    found, left_out = [], {}
    for name in names:
        try:
            module = importlib.import_module(f"{__name__}.{NAMES[name]}")
            found.append(module.CONTENDER(threads))
        except Exception as error:  # a broken installation raises whatever it likes
            if name == OURS:
                raise
            left_out[name] = f"{type(error).__name__}: {error}"
    return found, left_out


def shared_target(problem: Problem) -> Callable[[Any], np.ndarray]:
    """The result of calls that write into the target."""
    return lambda _: problem.target


def reset_target(problem: Problem) -> Callable[[], None]:
    """The data as at first, where it is written in place in the target."""
    return lambda: np.copyto(problem.target, problem.data)


def tuples_with_repetitions(problem: Problem, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A ScatterUpdate as ScatterND, for runtimes without the former: its
    index tensor with the repetition as a first coordinate, and its updates,
    flattened over tuples. A scatter_nd is returned as it is."""
    workload = problem.workload
    if workload.axis is None:
        return indices, problem.updates
    assert workload.axis == 1, "one leading axis"
    repetitions = workload.repetitions
    tuples = np.empty((repetitions, workload.tuples, 2), np.int64)
    tuples[..., 0] = np.arange(repetitions)[:, None]
    tuples[..., 1] = indices.reshape(-1)
    shape = (repetitions, workload.tuples, *workload.window_shape)
    return tuples, problem.updates.reshape(shape)
