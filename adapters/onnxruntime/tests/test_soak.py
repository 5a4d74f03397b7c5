"""Tests of many runs from several threads: results stay correct, and memory does not grow.

`NDSCATTER_SOAK_SECONDS` sets the duration of a stretch (see `STRETCH`).
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto

import reference
from common import (
    FLOAT,
    STRING,
    Array,
    any_indices,
    assert_same,
    counting,
    model,
    node,
    one_node,
    session,
    value,
    values,
)

SECONDS = float(os.environ.get("NDSCATTER_SOAK_SECONDS", "3"))
# Maximum growth of memory in bytes, in the tests of failing runs and of strings. Allocators may
# keep this amount. A leak of one output tensor per run would exceed this amount.
ROOM = 48 << 20
# The growth of memory is measured in `STRETCH` consecutive time windows together. The host's memory
# arena grows by up to 100 MiB when more runs are concurrent than ever before, and the allocator adds
# memory for new threads. Both end after some windows, and a leak does not. The test therefore
# continues for up to `WINDOWS` windows, and passes when the last stretch has little growth.
STRETCH = 3
WINDOWS = 24
# Limit of the growth of memory in a stretch, in bytes per run of that stretch.
LEAK_PER_RUN = 256


def resident() -> int:
    """Returns the resident memory of the process in bytes. Before the measurement, the allocator
    returns its free memory to the operating system."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


Case = tuple[dict[str, Array], Array]


def scatter_model(indices: Array | None) -> bytes:
    """Returns a model with two scatters: the first writes to a new output, because its data belongs
    to the caller, and the second runs in place."""
    nodes = [
        node("ScatterND", ["data", "indices", "updates"], ["a"], reduction="add"),
        node("Neg", ["a"], ["b"]),
        node("ScatterND", ["b", "indices", "updates"], ["c"], reduction="max"),
        node("Neg", ["c"], ["output"]),
    ]
    inputs = [
        value("data", TensorProto.FLOAT, ["n", "m"]),
        value("updates", TensorProto.FLOAT, [None, "m"]),
    ]
    inputs += [value("indices", TensorProto.INT64, [None, 1])] if indices is None else []
    constants = {} if indices is None else {"indices": indices}
    return model(nodes, inputs, [value("output", TensorProto.FLOAT, None)], constants=constants)


def cases(rng: np.random.Generator, constant: bool) -> tuple[bytes, list[Case]]:
    """Returns a model, and feeds of six shapes with the expected results. The last shape is large
    enough to use all threads of a session."""
    held = any_indices(rng, 20, (50, 1)) if constant else None
    made: list[Case] = []
    for rows, columns in ((20, 3), (21, 8), (40, 1), (100, 16), (33, 5), (400, 3000)):
        indices = any_indices(rng, rows, (50, 1)) if held is None else held
        data, updates = values(rng, FLOAT, (rows, columns)), values(rng, FLOAT, (50, columns))
        if data.size < 10_000:
            once = reference.scatter_nd(data, indices, updates, reference.Rules("add"))
            twice = reference.scatter_nd(-once, indices, updates, reference.Rules("max"))
        else:
            updates = np.where(updates == 0, np.float32(1), updates)
            once = reference.fast_nd(data, indices, updates, "add")
            twice = reference.fast_nd(-once, indices, updates, "max")
        feeds = {"data": data, "updates": updates}
        made.append((feeds if constant else {**feeds, "indices": indices}, -twice))
    return scatter_model(held), made


def work(sessions: list[ort.InferenceSession], made: list[Case], seconds: float) -> int:
    """Runs one session from eight threads, or several sessions from one thread each, for this
    number of seconds. Returns the number of runs."""
    callers = 8 if len(sessions) == 1 else len(sessions)
    end = time.monotonic() + seconds

    def call(caller: int) -> int:
        runs = 0
        while time.monotonic() < end:
            # The large case replaces only some runs, because it costs as much time as many small
            # cases.
            at = (caller + runs) % len(made)
            if at == len(made) - 1 and runs % 7:
                at = 0
            feeds, wanted = made[at]
            (found,) = sessions[caller % len(sessions)].run(None, feeds)
            assert_same(found, wanted, f"run {runs} of caller {caller}, case {at}")
            runs += 1
        return runs

    with ThreadPoolExecutor(callers) as pool:
        return sum(pool.map(call, range(callers)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("sessions", [1, 4], ids=["one_session", "four_sessions"])
def test_soak(rng, constant, sessions) -> None:
    serialized, made = cases(rng, constant)
    ran = [session(serialized, threads=2) for _ in range(sessions)]
    work(ran, made, 1.0)
    held, done = [resident()], [0]
    while len(done) <= WINDOWS:
        with counting() as count:
            runs = work(ran, made, SECONDS / STRETCH)
        assert runs > 10
        assert count.done == (2 * runs, runs, 2 * runs if constant else 0)
        held.append(resident())
        done.append(done[-1] + runs)
        if len(done) > STRETCH and held[-1] - held[-1 - STRETCH] < LEAK_PER_RUN * (done[-1] - done[-1 - STRETCH]):
            return
    pytest.fail(f"memory grows; resident bytes {held} after runs {done}")


def test_failing_runs_keep_no_memory(rng) -> None:
    """Checks the growth of memory in 500 failed runs. A leak of the output (400 kB) in each run
    would exceed `ROOM`."""
    serialized = one_node("ScatterND", FLOAT, ([None, 1000], [None, 1], [None, 1000]))
    ran = session(serialized, threads=2)
    feeds = {"data": values(rng, FLOAT, (100, 1000)), "updates": values(rng, FLOAT, (2, 1000))}

    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(Exception, match="ndscatter: index 100"):
                ran.run(None, {**feeds, "indices": np.array([[1], [100]])})

    fail(100)
    before = resident()
    fail(500)
    assert resident() - before < ROOM


def test_strings_keep_no_memory(rng) -> None:
    """Checks the growth of memory in 40 runs with strings of 0.5 to 1.5 megabytes. A leak of the
    output strings (4 megabytes) in each run would exceed `ROOM`."""
    ran = session(one_node("ScatterND", STRING, ([None], [None, 1], [None]), reduction="add"))
    data, updates = (np.array([letter * 500_000] * 4, dtype=object) for letter in "ab")
    indices = np.array([[0], [0], [1], [3]])
    wanted = reference.scatter_nd(data, indices, updates, reference.Rules("add"))

    def repeat(times: int) -> None:
        for _ in range(times):
            (found,) = ran.run(None, {"data": data, "indices": indices, "updates": updates})
            assert_same(found, wanted)

    repeat(5)
    before = resident()
    repeat(40)
    assert resident() - before < ROOM
