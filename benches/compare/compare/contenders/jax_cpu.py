"""jax: a compiled `x.at[i].op(updates)`. In place, `x` is donated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import Problem
from ..words import IN_PLACE
from . import Call

_METHODS = {"none": "set", "add": "add", "max": "max"}

# Modes for indices out of bounds: None drops them. The other mode promises valid indices.
_MODES = [None, "promise_in_bounds"]


class Jax:
    name = "jax"
    version = jax.__version__

    def __init__(self, threads: int):
        # XLA counts the processors that it may run on.
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)  # the indices are i64

    def calls(self, problem: Problem, form: str) -> list[Call]:
        make = _in_place if form == IN_PLACE else _allocating
        return [make(problem, mode) for mode in _MODES]


def _scatter(problem: Problem, mode: str | None) -> Callable:
    workload = problem.workload
    method = _METHODS[workload.reduction]

    def scatter(data: jax.Array, indices: jax.Array, updates: jax.Array) -> jax.Array:
        if workload.axis is None:
            place = tuple(jnp.moveaxis(indices, -1, 0))
        else:
            place = (slice(None),) * workload.axis + (indices,)
        return getattr(data.at[place], method)(updates, mode=mode)

    return scatter


def _how(problem: Problem, mode: str | None) -> str:
    method = f"at[i].{_METHODS[problem.workload.reduction]}"
    return method if mode is None else f"{method}, {mode}"


# Makes a view. The arrays have the alignment that XLA requires.
_view = jax.dlpack.from_dlpack


def _allocating(problem: Problem, mode: str | None) -> Call:
    scatter = jax.jit(_scatter(problem, mode))
    data, updates = _view(problem.data), _view(problem.updates)
    return Call(
        _how(problem, mode),
        [partial(scatter, data, _view(indices), updates) for indices in problem.indices],
        np.asarray,
        wait=jax.block_until_ready,
    )


def _in_place(problem: Problem, mode: str | None) -> Call:
    scatter = jax.jit(_scatter(problem, mode), donate_argnums=0)
    updates = _view(problem.updates)
    held: list[jax.Array] = []

    def run(indices: jax.Array) -> jax.Array:
        held[0] = scatter(held[0], indices, updates)
        return held[0]

    def reset() -> None:
        held[:] = [jnp.array(problem.data, copy=True)]

    reset()
    return Call(
        f"{_how(problem, mode)}, donated",
        [partial(run, _view(indices)) for indices in problem.indices],
        np.array,  # a copy, because the next run reuses the memory
        wait=jax.block_until_ready,
        reset=reset,
    )


CONTENDER = Jax
