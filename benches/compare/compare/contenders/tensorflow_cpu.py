"""tensorflow, in eager mode. Its operations have ended when they return."""

from __future__ import annotations

from functools import partial

import numpy as np
import tensorflow as tf

from ..problem import Problem
from ..words import IN_PLACE
from . import Call, tuples_with_repetitions

_ALLOCATING = {
    "none": tf.tensor_scatter_nd_update,
    "add": tf.tensor_scatter_nd_add,
    "max": tf.tensor_scatter_nd_max,
}

# Operations on a variable: with tuples, and with row numbers.
_ND_IN_PLACE = {
    "none": tf.raw_ops.ResourceScatterNdUpdate,
    "add": tf.raw_ops.ResourceScatterNdAdd,
    "max": tf.raw_ops.ResourceScatterNdMax,
}
_ROWS_IN_PLACE = {
    "none": tf.raw_ops.ResourceScatterUpdate,
    "add": tf.raw_ops.ResourceScatterAdd,
    "max": tf.raw_ops.ResourceScatterMax,
}


class TensorFlow:
    name = "tensorflow"
    version = tf.__version__

    def __init__(self, threads: int):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.set_visible_devices([], "GPU")

    def calls(self, problem: Problem, form: str) -> list[Call]:
        return _in_place(problem) if form == IN_PLACE else [_allocating(problem)]


def _view(array: np.ndarray) -> tf.Tensor:
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def _copy(array: np.ndarray) -> tf.Tensor:
    """Copies an array for a variable, which would otherwise write into the shared array."""
    return tf.raw_ops.DeepCopy(x=_view(array))


def _tensors(problem: Problem) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Returns indices and updates of each index set."""
    pairs = [tuples_with_repetitions(problem, indices) for indices in problem.indices]
    return [(_aligned(indices), _view(updates)) for indices, updates in pairs]


def _aligned(indices: np.ndarray) -> tf.Tensor:
    """Views aligned indices (the shared arrays), and copies others."""
    return _view(indices) if indices.ctypes.data % 64 == 0 else tf.constant(indices)


def _allocating(problem: Problem) -> Call:
    function = _ALLOCATING[problem.workload.reduction]
    data = _view(problem.data)
    return Call(
        function.__name__,
        [partial(function, data, *tensors) for tensors in _tensors(problem)],
        lambda output: np.asarray(memoryview(output)),
    )


def _in_place(problem: Problem) -> list[Call]:
    workload = problem.workload
    variable = tf.Variable(_copy(problem.data))
    handle = variable.handle
    ways = [(_ND_IN_PLACE[workload.reduction], _tensors(problem))]
    if workload.axis is None and workload.indices[-1] == 1:
        rows = [(tf.squeeze(indices, -1), updates) for indices, updates in _tensors(problem)]
        ways.append((_ROWS_IN_PLACE[workload.reduction], rows))
    return [
        Call(
            function.__name__,
            [
                partial(function, **{first: handle}, indices=indices, updates=updates)
                for indices, updates in tensors
            ],
            lambda _: variable.numpy(),
            reset=lambda: variable.assign(_copy(problem.data)),
        )
        for function, tensors in ways
        for first in ["ref" if function in _ND_IN_PLACE.values() else "resource"]
    ]


CONTENDER = TensorFlow
