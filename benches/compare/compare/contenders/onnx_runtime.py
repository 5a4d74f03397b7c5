"""onnxruntime: a model of one ScatterND.

In place, input and output are bound to the same memory, like the KV cache during text generation.
The kernel then skips its copy.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from ..problem import Problem
from ..words import ALLOCATING, IN_PLACE
from . import Call, reset_target, shared_target, tuples_with_repetitions

OPSET = 18
IR_VERSION = 10


class OnnxRuntime:
    name = "onnxruntime"
    version = onnxruntime.__version__

    def __init__(self, threads: int):
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        # Threads spin during a run, and stop at its end, so they do not slow down other contenders.
        self.options.add_session_config_entry("session.force_spinning_stop", "1")

    def calls(self, problem: Problem, form: str) -> list[Call]:
        tuples = [tuples_with_repetitions(problem, array) for array in problem.indices]
        model = _model(problem, *tuples[0])
        session = onnxruntime.InferenceSession(
            model, self.options, providers=["CPUExecutionProvider"]
        )
        of_numpy = onnxruntime.OrtValue.ortvalue_from_numpy  # views the array
        target = of_numpy(problem.target)
        feeds = [
            {
                "data": target if form == IN_PLACE else of_numpy(problem.data),
                "indices": of_numpy(indices),
                "updates": of_numpy(updates),
            }
            for indices, updates in tuples
        ]
        if form == ALLOCATING:
            return [
                Call(
                    "ScatterND-18, run_with_ort_values",
                    [partial(session.run_with_ort_values, ["output"], feed) for feed in feeds],
                    lambda outputs: outputs[0].numpy(),
                )
            ]
        bindings = [_binding(session, feed, target) for feed in feeds]
        return [
            Call(
                "ScatterND-18, run_with_iobinding",
                [partial(session.run_with_iobinding, binding) for binding in bindings],
                shared_target(problem),
                reset=reset_target(problem) if form == IN_PLACE else None,
            )
        ]


def _binding(
    session: onnxruntime.InferenceSession,
    feed: dict[str, onnxruntime.OrtValue],
    target: onnxruntime.OrtValue,
) -> onnxruntime.IOBinding:
    binding = session.io_binding()
    for name, value in feed.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("output", target)
    return binding


def _model(problem: Problem, indices: np.ndarray, updates: np.ndarray) -> bytes:
    element = helper.np_dtype_to_tensor_dtype(problem.data.dtype)

    def elements(name: str, shape: tuple[int, ...]):
        return helper.make_tensor_value_info(name, element, shape)

    scatter = helper.make_node(
        "ScatterND",
        ["data", "indices", "updates"],
        ["output"],
        reduction=problem.workload.reduction,
    )
    graph = helper.make_graph(
        [scatter],
        "scatter",
        [
            elements("data", problem.data.shape),
            helper.make_tensor_value_info("indices", TensorProto.INT64, indices.shape),
            elements("updates", updates.shape),
        ],
        [elements("output", problem.data.shape)],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    return model.SerializeToString()


CONTENDER = OnnxRuntime
