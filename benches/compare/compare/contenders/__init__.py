"""The contenders: one file with one class per runtime.

Knows the calls of contenders. Knows nothing of clocks and rounds.
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
    """A call of a runtime that computes a workload in one form."""

    how: str  # name of the runtime's function
    runs: Sequence[Callable[[], Any]]  # one per index set; the returned output is freed untimed
    result: Callable[[Any], np.ndarray]  # converts the output of a run to numpy
    wait: Callable[[Any], Any] | None = None  # waits for the end of a run that returns early
    reset: Callable[[], Any] | None = None  # restores the data, in place
    # Makes a number of calls with an index set from compiled code. Returns their nanoseconds.
    time_calls: Callable[[int, int], int] | None = None


class Contender(Protocol):
    """A runtime, limited to `threads` threads."""

    name: str
    version: str

    def __init__(self, threads: int): ...

    def calls(self, problem: Problem, form: str) -> list[Call]:
        """Returns all calls that may be the fastest. Empty if the runtime does not have the form."""


# Displayed name and module of each contender.
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
    """Loads contenders. Also returns the errors of those that cannot be imported."""
    found, left_out = [], {}
    for name in names:
        try:
            module = importlib.import_module(f"{__name__}.{NAMES[name]}")
            found.append(module.CONTENDER(threads))
        except Exception as error:  # a broken installation can raise any type
            if name == OURS:
                raise
            left_out[name] = f"{type(error).__name__}: {error}"
    return found, left_out


def shared_target(problem: Problem) -> Callable[[Any], np.ndarray]:
    """Returns the `result` function of calls that write into the target."""
    return lambda _: problem.target


def reset_target(problem: Problem) -> Callable[[], None]:
    """Returns the `reset` function of calls in place, which copies the data to the target."""
    return lambda: np.copyto(problem.target, problem.data)


def tuples_with_repetitions(problem: Problem, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Converts a ScatterUpdate to a ScatterND, for runtimes that have only the latter.

    Returns an index tensor whose first coordinate is the repetition, and the updates, flattened over
    tuples. Returns the arguments of a ScatterND unchanged."""
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
