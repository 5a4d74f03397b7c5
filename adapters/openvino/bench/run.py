#!/usr/bin/env python3
"""Measures OpenVINO's scatter operators and ndscatter's extension in the same models.

    python adapters/openvino/bench/run.py            # the workloads of docs/performance.md
    python adapters/openvino/bench/run.py --small    # small calls, static and dynamic shapes
    python adapters/openvino/bench/run.py --gathers  # gathers of the rows that the workloads update
    python adapters/openvino/bench/run.py --state    # a step of a decoder with a key/value cache

A ratio is the time of an inference with OpenVINO's operator divided by the time with the extension: above
1, the extension is faster. Both compiled models run in turns in one process, with the same input tensors.
A time is the minimum over the rounds. The results are compared before the times are measured.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset1, opset3, opset4, opset6, opset8, opset12, opset15

import ndscatter.openvino

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "benches" / "compare"))

from compare import workloads
from compare.oracle import Oracle
from compare.problem import Problem

REDUCTIONS = {"none": "none", "add": "sum", "max": "max"}


class Cores:
    """OpenVINO without and with the extension, and the threads of both."""

    def __init__(self, threads: int):
        self.plain, self.extended = ov.Core(), ov.Core()
        ndscatter.openvino.enable(self.extended)
        self.config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        self.folder = tempfile.TemporaryDirectory()

    def requests(self, model, inputs):
        """Return an infer request with OpenVINO's operator, and one with the extension."""
        path = f"{self.folder.name}/model.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        requests = []
        for core in (self.plain, self.extended):
            compiled = core.compile_model(core.read_model(path), "CPU", self.config)
            request = compiled.create_infer_request()
            for number, array in enumerate(inputs):
                request.set_input_tensor(number, ov.Tensor(array, shared_memory=True))
            requests.append(request)
        return requests


def parameter(array, is_dynamic=False):
    return opset1.parameter([-1] * array.ndim if is_dynamic else list(array.shape), array.dtype)


def infer(request):
    """Run an inference. Without `share_outputs`, OpenVINO's Python interface copies each output."""
    return request.infer(share_outputs=True)


def output(request):
    infer(request)
    return request.get_output_tensor(0).data


def compare(requests, rounds: int, repeats: int = 1) -> tuple[float, float]:
    """Return the time of an inference of each request, in seconds."""
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for number, request in enumerate(requests):
            infer(request)
            start = time.perf_counter()
            for _ in range(repeats):
                infer(request)
            best[number] = min(best[number], (time.perf_counter() - start) / repeats)
    return best[0], best[1]


def mean(ratios) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def operators(problem):
    """Yield the name, the node, the parameters and the inputs of each operator of a workload."""
    workload = problem.workload
    indices, reduction = problem.indices[0].astype(np.int32), REDUCTIONS[workload.reduction]
    inputs = [problem.data, indices, problem.updates]
    ps = [parameter(array) for array in inputs]
    if workload.axis is not None:
        yield "ScatterUpdate-3", opset3.scatter_update(*ps, opset1.constant(np.int32(workload.axis))), ps, inputs
        return
    yield "ScatterNDUpdate-15", opset15.scatter_nd_update(*ps, reduction), ps, inputs
    if workload.indexed_axes == slice(0, 1):
        wide = np.repeat(indices, workload.window, 1).reshape(problem.updates.shape)
        inputs = [problem.data, wide, problem.updates]
        ps = [parameter(array) for array in inputs]
        node = opset12.scatter_elements_update(*ps, opset1.constant(np.int32(0)), reduction, True)
        yield "ScatterElementsUpdate-12", node, ps, inputs
    if workload.reduction == "none" and indices.shape[-1] == 1:
        inputs = [problem.data, indices[:, 0].copy(), problem.updates]
        ps = [parameter(array) for array in inputs]
        yield "ScatterUpdate-3", opset3.scatter_update(*ps, opset1.constant(np.int32(0))), ps, inputs


def table(cores, rounds: int, only: list[str], quick: bool) -> None:
    print("| workload | operator | OpenVINO, ms | ndscatter, ms | ratio |\n|---|---|---|---|---|")
    ratios, long = [], []
    for workload in workloads.chosen(only or [w.name for w in workloads.WORKLOADS[:15]], quick):
        problem = Problem(workload)
        expected = Oracle(problem, problem.numbers[0]).sequential
        for name, node, ps, inputs in operators(problem):
            requests = cores.requests(ov.Model([node], ps), inputs)
            assert np.array_equal(output(requests[1]), expected.reshape(workload.data)), (workload.name, name)
            output(requests[0])
            repeats = 200 if workload.tuples < 1000 and problem.data.nbytes < 1 << 20 else 1
            theirs, ours = compare(requests, rounds, repeats)
            ratios.append(theirs / ours)
            if theirs > 5e-4:
                long.append(ratios[-1])
            print(f"| {workload.name} | {name} | {theirs * 1e3:.3f} | {ours * 1e3:.3f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\n{len(ratios)} rows: geometric mean {mean(ratios):.2f}, minimum {min(ratios):.2f}")
    if long:
        print(f"{len(long)} rows of more than 0.5 ms: geometric mean {mean(long):.2f}")


def gathers(cores, rounds: int, only: list[str], quick: bool) -> None:
    """Print one row per gather of the rows that a workload updates."""
    print("| workload | operator | OpenVINO, ms | ndscatter, ms | ratio |\n|---|---|---|---|---|")
    ratios = []
    for workload in workloads.chosen(only or [w.name for w in workloads.WORKLOADS[:15]], quick):
        if workload.axis is not None:
            continue
        problem = Problem(workload)
        indices = problem.indices[0].astype(np.int32)
        cases = [("GatherND-8", lambda ps: opset8.gather_nd(*ps, 0), indices)]
        if workload.indexed_axes == slice(0, 1):
            wide = np.repeat(indices, workload.window, 1).reshape(problem.updates.shape)
            cases.append(("GatherElements-6", lambda ps: opset6.gather_elements(*ps, 0), wide))
        for name, make, at in cases:
            ps = [parameter(problem.data), parameter(at)]
            requests = cores.requests(ov.Model([make(ps)], ps), [problem.data, at])
            assert np.array_equal(output(requests[0]), output(requests[1])), (workload.name, name)
            theirs, ours = compare(requests, rounds, 200 if workload.tuples < 1000 else 1)
            ratios.append(theirs / ours)
            print(f"| {workload.name} | {name} | {theirs * 1e3:.3f} | {ours * 1e3:.3f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\n{len(ratios)} rows: geometric mean {mean(ratios):.2f}, minimum {min(ratios):.2f}")


def small(cores, rounds: int) -> None:
    random = np.random.default_rng(3)
    print("| rows x elements | updates | operator | shapes | OpenVINO, us | ndscatter, us | ratio |\n|---|---|---|---|---|---|---|")
    ratios = []
    for rows, width in ((8, 4), (64, 16), (256, 64), (1024, 64), (1024, 1), (16384, 1)):
        for count in (1, rows // 4, rows):
            data = random.standard_normal((rows, width), np.float32)
            updates = random.standard_normal((count, width), np.float32)
            at = random.permutation(rows)[:count].astype(np.int32)
            wide = np.repeat(at[:, None], width, 1)
            axis = opset1.constant(np.int32(0))
            for is_dynamic in (False, True):
                cases = {
                    "ND none": (lambda ps: opset15.scatter_nd_update(*ps, "none"), at[:, None]),
                    "ND sum": (lambda ps: opset15.scatter_nd_update(*ps, "sum"), at[:, None]),
                    "Elements sum": (lambda ps: opset12.scatter_elements_update(*ps, axis, "sum"), wide),
                    "Elements none": (lambda ps: opset12.scatter_elements_update(*ps, axis), wide),
                    "Update": (lambda ps: opset3.scatter_update(*ps, axis), at),
                }
                for name, (make, indices) in cases.items():
                    inputs = [data, indices.copy(), updates]
                    ps = [parameter(array, is_dynamic) for array in inputs]
                    requests = cores.requests(ov.Model([make(ps)], ps), inputs)
                    assert np.array_equal(output(requests[0]), output(requests[1])), (rows, width, name)
                    theirs, ours = compare(requests, rounds, 200)
                    ratios.append(theirs / ours)
                    shapes = "dynamic" if is_dynamic else "static"
                    print(f"| {rows} x {width} | {count} | {name} | {shapes} | {theirs * 1e6:.1f} | {ours * 1e6:.1f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\n{len(ratios)} rows: geometric mean {mean(ratios):.2f}, minimum {min(ratios):.2f}")


def state(cores, rounds: int) -> None:
    """Print times of an inference that writes one row per sequence of a cache of 64 MiB, and reads one row.

    The cache is a state of the model (ReadValue, Assign), or a tensor that is the input and the output.
    """
    shape, steps = (8, 2048, 1024), np.ones((8, 1024), np.float32)
    at = np.stack([np.arange(8), np.arange(8) * 100], -1).astype(np.int32)
    ps = [parameter(at), parameter(steps)]
    zeros = opset1.broadcast(opset1.constant(np.float32(0)), opset1.constant(np.array(shape)))
    cache = opset6.read_value(zeros, "cache", np.float32, list(shape))
    written = opset15.scatter_nd_update(cache, *ps, "none")
    row = opset8.gather_nd(written, opset1.constant(at[:1]), 0)
    model = ov.Model([opset1.result(row)], [opset6.assign(written, "cache")], ps)
    requests = cores.requests(model, [at, steps])
    assert all((output(request) == 1).all() for request in requests)
    theirs, ours = compare(requests, rounds)
    print(f"a state: OpenVINO {theirs * 1e6:.0f} us, ndscatter {ours * 1e6:.0f} us, ratio {theirs / ours:.2f}")
    tensor = np.zeros(shape, np.float32)
    ps = [parameter(tensor), *ps]
    written = opset15.scatter_nd_update(*ps, "none")
    requests = cores.requests(ov.Model([written], ps), [tensor, at, steps])
    for request in requests:
        request.set_output_tensor(0, request.get_input_tensor(0))
        assert (output(request)[tuple(at.T)] == 1).all()
    theirs, ours = compare(requests, rounds)
    print(f"one tensor: OpenVINO {theirs * 1e6:.0f} us, ndscatter {ours * 1e6:.0f} us, ratio {theirs / ours:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--gathers", action="store_true")
    parser.add_argument("--state", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="names of workloads")
    parser.add_argument("--quick", action="store_true", help="small shapes, to test the harness")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    cores = Cores(options.threads)
    print(f"OpenVINO {ov.get_version()}, {options.threads} threads\n")
    if options.small:
        small(cores, options.rounds)
    elif options.gathers:
        gathers(cores, options.rounds, options.only, options.quick)
    elif options.state:
        state(cores, options.rounds)
    else:
        table(cores, options.rounds, options.only, options.quick)


if __name__ == "__main__":
    main()
