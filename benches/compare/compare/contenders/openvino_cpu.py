"""OpenVINO: a compiled model of one ScatterNDUpdate-15 or ScatterUpdate-3.

OpenVINO has no form in place and no allocating form, because a request keeps its output.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import openvino
from openvino import opset3, opset15

from ..problem import Problem
from ..words import INTO
from . import Call, shared_target

_REDUCTIONS = {"none": "none", "add": "sum", "max": "max"}


class OpenVino:
    name = "openvino"
    version = openvino.__version__.split("-")[0]

    def __init__(self, threads: int):
        self.core = openvino.Core()
        self.config = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }

    def calls(self, problem: Problem, form: str) -> list[Call]:
        if form != INTO:
            return []
        model = _model(problem)
        requests = [self._request(model, problem, indices) for indices in problem.indices]
        operator = "ScatterNDUpdate-15" if problem.workload.axis is None else "ScatterUpdate-3"
        runs = [partial(request.infer, share_outputs=True) for request in requests]
        return [Call(operator, runs, shared_target(problem))]

    def _request(self, model: openvino.Model, problem: Problem, indices: np.ndarray):
        request = self.core.compile_model(model, "CPU", self.config).create_infer_request()
        for at, array in enumerate([problem.data, indices, problem.updates]):
            request.set_input_tensor(at, openvino.Tensor(array, shared_memory=True))
        request.set_output_tensor(0, openvino.Tensor(problem.target, shared_memory=True))
        return request


def _model(problem: Problem) -> openvino.Model:
    workload = problem.workload
    data = opset15.parameter(list(workload.data), problem.data.dtype)
    indices = opset15.parameter(list(workload.indices), np.int64)
    updates = opset15.parameter(list(workload.updates), problem.data.dtype)
    if workload.axis is None:
        reduction = _REDUCTIONS[workload.reduction]
        scatter = opset15.scatter_nd_update(data, indices, updates, reduction)
    else:
        axis = opset15.constant(np.int64(workload.axis))
        scatter = opset3.scatter_update(data, indices, updates, axis)
    return openvino.Model([scatter], [data, indices, updates], "scatter")


CONTENDER = OpenVino
