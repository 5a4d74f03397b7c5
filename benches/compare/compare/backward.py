"""Measures forward passes with their gradients: ndscatter, torch's autograd and jax.

    python -m compare.backward '{"threads": 2, ...}'

Runs in a separate process, like `child`. Each contender allocates all results: the output, the
gradient for data, and the gradient for updates. There is one exception: the gradient of a sum for
data is the gradient of the output, and torch and ndscatter return that tensor.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from . import libraries
from .contenders import Call
from .machine import Others
from .oracle import Oracle
from .problem import SETS, Problem, empty, fill
from .results import geometric_mean
from .timing import Entry, once, sample, take_turns
from .words import OK, OURS, WRONG
from .workloads import Workload, chosen

WORKLOADS = ["emb_grad_add", "gnn_add", "gnn_max", "moe_add"]

# Relative and absolute. Runtimes round gradients of maxima more than once.
TOLERANCE = 1e-6

# The output, the gradient for data, the gradient for updates.
Pass = tuple[np.ndarray, np.ndarray, np.ndarray]


def ours(problem: Problem, gradient: np.ndarray) -> list[Call]:
    native, workload = libraries.native(), problem.workload
    tensors = [libraries.native_tensor(array) for array in (problem.data, problem.updates, gradient)]
    data, updates, grad_output = tensors
    reduction = libraries.REDUCTIONS[workload.reduction]

    class Made:
        def __init__(self, handle: int | None):
            assert handle is not None, "the call of ndscatter failed"
            self.handle = handle

        def __del__(self):
            native.compare_pass_free(self.handle)

    def run(indices: libraries.NativeTensor) -> Made:
        return Made(native.compare_train(data, indices, updates, grad_output, -1, reduction))

    def result(made: Made) -> Pass:
        def values(which: int, shape: tuple[int, ...]) -> np.ndarray:
            return np.ctypeslib.as_array(native.compare_pass_values(made.handle, which), shape).copy()

        is_sum = workload.reduction == "add"
        of_data = gradient if is_sum else values(1, workload.data)
        return values(0, workload.data), of_data, values(2, workload.updates)

    sets = map(libraries.native_tensor, problem.indices)
    return [Call("train, backward", [partial(run, indices) for indices in sets], result)]


def torch_ways(problem: Problem, gradient: np.ndarray) -> list[Call]:
    import torch

    torch.set_grad_enabled(True)
    data = torch.from_numpy(problem.data).requires_grad_()
    updates = torch.from_numpy(problem.updates).requires_grad_()
    grad_output = torch.from_numpy(gradient)
    rows = [torch.from_numpy(indices).flatten() for indices in problem.indices]
    wide = [array.view(-1, 1).expand_as(updates) for array in rows]
    ways: dict[str, tuple[Callable, list]] = {
        "add": {
            "index_add": (lambda at: data.index_add(0, at, updates), rows),
            "scatter_add": (lambda at: data.scatter_add(0, at, updates), wide),
            "index_put": (lambda at: data.index_put((at,), updates, accumulate=True), rows),
        },
        "max": {
            "scatter_reduce": (lambda at: data.scatter_reduce(0, at, updates, "amax"), wide),
            "index_reduce": (lambda at: data.index_reduce(0, at, updates, "amax"), rows),
        },
    }[problem.workload.reduction]

    def run(forward: Callable, at) -> tuple:
        output = forward(at)
        return output, *torch.autograd.grad(output, (data, updates), grad_output)

    def result(made: tuple) -> Pass:
        return tuple(tensor.detach().numpy() for tensor in made)

    return [
        Call(how, [partial(run, forward, at) for at in sets], result)
        for how, (forward, sets) in ways.items()
    ]


def jax_ways(problem: Problem, gradient: np.ndarray) -> list[Call]:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    view = jax.dlpack.from_dlpack
    method = problem.workload.reduction

    def call(mode: str | None) -> Call:
        def both(data, updates, indices, grad_output):
            def forward(data, updates):
                return getattr(data.at[indices[..., 0]], method)(updates, mode=mode)

            output, backward = jax.vjp(forward, data, updates)
            return output, *backward(grad_output)

        compiled = jax.jit(both)
        data, updates, grad_output = map(view, (problem.data, problem.updates, gradient))
        return Call(
            f"jit of vjp of at[i].{method}" + (f", {mode}" if mode else ""),
            [partial(compiled, data, updates, view(at), grad_output) for at in problem.indices],
            lambda made: tuple(map(np.asarray, made)),
            wait=jax.block_until_ready,
        )

    return [call(mode) for mode in (None, "promise_in_bounds")]


CONTENDERS = {OURS: ours, "torch": torch_ways, "jax": jax_ways}


class Checker:
    """Checks passes with one set of indices."""

    def __init__(self, problem: Problem, numbers: np.ndarray, gradient: np.ndarray):
        self.oracle = Oracle(problem, numbers)
        self.numbers, self.gradient = numbers, gradient

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        problem, at = self.oracle.problem, self.numbers
        if problem.workload.reduction == "add":
            return self.gradient, self.gradient[at]
        output = self.oracle.sequential
        of_data, of_updates = problem.data == output, problem.updates == output[at]
        order = np.argsort(at, kind="stable")
        starts = np.flatnonzero(np.diff(at[order], prepend=-1))
        ties = of_data.astype(np.float32)
        ties[at[order][starts]] += np.add.reduceat(of_updates[order].astype(np.float32), starts)
        share = self.gradient / ties
        return np.where(of_data, share, 0), np.where(of_updates, share[at], 0)

    def why_wrong(self, made: Pass, bit_for_bit: bool) -> str | None:
        output, *gradients = made
        verdict = self.oracle.verdict(output, bit_for_bit)
        if verdict.status == WRONG:
            return f"the output is wrong: {verdict.why}"
        for name, got, expected in zip(("data", "updates"), gradients, self.expected()):
            if bit_for_bit:
                same = got.shape == expected.shape and np.array_equal(got, expected)
            else:
                same = np.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)
            if not same:
                return f"the gradient for {name} differs"
        return None


def measure(workload: Workload, threads: int, rounds: int) -> dict:
    problem = Problem(workload)
    gradient = empty(workload.data, np.float32)
    fill(np.random.default_rng(2), gradient)
    checkers = [Checker(problem, numbers, gradient) for numbers in problem.numbers]
    entries, figures = {}, {}
    for name, make in CONTENDERS.items():
        best = None
        for call in make(problem, gradient):
            made, _ = once(call, 0)
            why = checkers[0].why_wrong(call.result(made), name == OURS)
            del made
            taken = min(sample(Entry(call, 1), at) for at in range(2))
            key = f"{name}: {call.how}"
            figures[key] = {"status": WRONG if why else OK, "why": why or "", "first": taken}
            if not why and (best is None or taken < best[1]):
                best = (key, taken, call)
        if best is not None:
            key, taken, call = best
            entries[key] = Entry(call, taken)
    others = Others()
    take_turns(list(entries.values()), rounds)
    for key, entry in entries.items():
        if key.startswith(OURS):
            for index_set in range(1, SETS):
                made, _ = once(entry.call, index_set)
                why = checkers[index_set].why_wrong(entry.call.result(made), True)
                assert why is None, why
        figures[key].update(entry.times)
    return {"workload": workload.name, "others": round(others.cpus(), 3), "contenders": figures}


def main() -> None:
    options = json.loads(sys.argv[1])
    cpus = sorted(os.sched_getaffinity(0))[: options["threads"]]
    os.sched_setaffinity(0, cpus)
    import torch

    torch.set_num_threads(options["threads"])
    wanted = chosen(options["only"] or WORKLOADS, options["quick"])
    run = {"threads": options["threads"], "rounds": options["rounds"], "rows": []}
    run["quick"], run["source"] = options["quick"], options["source"]
    for workload in wanted:
        print(f"{options['threads']} threads, {workload.name}", file=sys.stderr)
        run["rows"].append(measure(workload, options["threads"], options["rounds"]))
        with open(options["json"], "w") as file:
            json.dump(run, file, indent=1)


def _best(row: dict, name: str) -> tuple[str, float] | None:
    found = [
        (how.split(": ", 1)[1], figures["min"])
        for how, figures in row["contenders"].items()
        if how.startswith(f"{name}: ") and "min" in figures
    ]
    return min(found, key=lambda pair: pair[1], default=None)


def markdown(results: dict) -> str:
    lines = []
    for run in results["runs"]:
        lines += [f"{run['threads']} threads, {run['rounds']} rounds, {run['source']}:", ""]
        lines += ["| workload | ndscatter | torch | jax | ratio |", "|---|---|---|---|---|"]
        ratios = []
        for row in run["rows"]:
            own = _best(row, OURS)
            peers = {name: _best(row, name) for name in CONTENDERS if name != OURS}
            cells = [
                f"{found[1] / 1e6:.1f} ({found[0]})" if found else "wrong" for found in peers.values()
            ]
            right = [found[1] for found in peers.values() if found]
            ratio = min(right) / own[1] if own and right else None
            ratios += [ratio] if ratio else []
            ours_cell = f"{own[1] / 1e6:.1f}" if own else "wrong"
            lines.append(
                f"| {row['workload']} | {ours_cell} | {' | '.join(cells)} | {ratio:.2f} |"
                if ratio
                else f"| {row['workload']} | {ours_cell} | {' | '.join(cells)} | – |"
            )
        if ratios:
            mean, lowest = geometric_mean(ratios), min(ratios)
            lines += ["", f"Geometric mean {mean:.2f}, lowest ratio {lowest:.2f}.", ""]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
