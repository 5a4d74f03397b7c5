"""Tests that create many sessions: memory does not grow, and the library stays usable."""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort
import pytest

import reference
from common import (
    FLOAT,
    FLOAT16,
    LIBRARY,
    OWN,
    any_indices,
    assert_same,
    counting,
    one_node,
    options,
    run,
    session,
    values,
)
from test_soak import resident

ADD = reference.Rules("add")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("runs", [0, 1], ids=["unused", "used"])
def test_many_sessions(rng, constant, runs) -> None:
    indices = any_indices(rng, 50, (4000, 1))
    serialized = one_node(
        "ScatterND", FLOAT, ([50, 4], None, None), reduction="add",
        indices=indices if constant else None,
    )  # fmt: skip
    data, updates = values(rng, FLOAT, (50, 4)), values(rng, FLOAT, (4000, 4))
    feeds = {"data": data, "updates": updates} | ({} if constant else {"indices": indices})
    wanted = reference.scatter_nd(data, indices, updates, ADD)

    def come_and_go(count: int) -> None:
        for at in range(count):
            entries = [{}, {"ndscatter.threads": "2"}, {"ndscatter.ops": "ScatterND"}][at % 3]
            ran = session(serialized, threads=2, entries=entries)
            for _ in range(runs):
                assert_same(run(ran, **feeds), wanted)

    come_and_go(60)
    before = resident()
    come_and_go(150)
    # The limit is about 160 KiB of memory growth per session. Sessions with the same config entries
    # share their operators, which occupy 69 KB for each combination of entries.
    assert resident() - before < 24 << 20


def test_thread_numbers_above_the_number_of_processors_share_operators() -> None:
    """The library makes one set of operators for each configured number of threads. A set occupies
    69 KB and is never freed. The library limits the number of threads to the number of processors,
    so all numbers above it share one set."""

    def register(numbers: range) -> None:
        for number in numbers:
            options(entries={"ndscatter.threads": str(number)})

    register(range(1, 200))
    before = resident()
    numbers = range(200, 2200)
    register(numbers)
    assert (resident() - before) / len(numbers) < 4096


def test_session_outlives_its_options(rng) -> None:
    serialized = one_node("ScatterND", FLOAT, (None, None, None), reduction="add")
    made = [session(serialized) for _ in range(5)]
    gc.collect()
    data, updates = values(rng, FLOAT, (6, 2)), values(rng, FLOAT, (9, 2))
    indices = any_indices(rng, 6, (9, 1))
    wanted = reference.scatter_nd(data, indices, updates, ADD)
    while made:
        assert_same(run(made[0], data=data, indices=indices, updates=updates), wanted)
        del made[0]
        gc.collect()


def test_one_options_object_for_many_sessions(rng) -> None:
    shared = options(threads=2)
    data, updates = values(rng, FLOAT, (6, 2)), values(rng, FLOAT, (9, 2))
    indices = any_indices(rng, 6, (9, 1))
    for op in ("ScatterND", "ScatterElements"):
        listed = indices if op == "ScatterND" else np.repeat(indices, 2, axis=1)
        serialized = one_node(op, FLOAT, (None, None, None), reduction="add")
        ran = ort.InferenceSession(serialized, shared, providers=["CPUExecutionProvider"])
        wanted = reference.scatter_nd(data, indices, updates, ADD)
        assert_same(run(ran, data=data, indices=listed, updates=updates), wanted)


def test_made_from_several_threads(rng) -> None:
    """Eight threads concurrently create the first sessions with new values of the config entry
    `ndscatter.threads`."""
    data, updates = values(rng, FLOAT, (6, 2)), values(rng, FLOAT, (9, 2))
    indices = any_indices(rng, 6, (9, 1))
    serialized = one_node("ScatterND", FLOAT, (None, None, None), domain=OWN, reduction="add")
    wanted = reference.scatter_nd(data, indices, updates, ADD)

    def make(caller: int) -> None:
        for at in range(10):
            entries = {"ndscatter.threads": str(100 + at % 3)}
            ran = session(serialized, entries=entries)
            assert_same(run(ran, data=data, indices=indices, updates=updates), wanted)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(8)))


@pytest.mark.parametrize("file_format", ["ORT", "ONNX"])
@pytest.mark.parametrize("saved_with", ["built_in", "library"])
@pytest.mark.parametrize("element", [FLOAT, FLOAT16], ids=str)
def test_saved_models(rng, tmp_path, file_format, saved_with, element) -> None:
    """A session saves a model, with or without ndscatter's library. A session with the library then
    loads the file. Loading fails only for a file in onnxruntime's own format (ORT) that was saved
    without the library, because such a file needs the operators with which it was saved."""
    serialized = one_node("ScatterND", element, (["n", 2], None, None), opset=13)
    path = tmp_path / f"model.{file_format.lower()}"
    session(
        serialized,
        library=saved_with == "library",
        optimized_model_filepath=str(path),
        entries={"session.save_model_format": file_format},
        graph_optimization_level=ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    )
    if (file_format, saved_with) == ("ORT", "built_in"):
        with pytest.raises(Exception, match="ScatterND"):
            session(path.read_bytes())
        return
    ran = session(path.read_bytes())
    data, updates = values(rng, element, (6, 2)), values(rng, element, (9, 2))
    indices = any_indices(rng, 6, (9, 1))
    with counting() as count:
        found = run(ran, data=data, indices=indices, updates=updates)
    assert count.done.runs == 1
    assert_same(found, reference.scatter_nd(data, indices, updates))


PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
ort.set_default_logger_severity(4)
options = ort.SessionOptions()
options.register_custom_ops_library(sys.argv[1])
session = ort.InferenceSession(sys.stdin.buffer.read(), options, providers=["CPUExecutionProvider"])
if sys.argv[2] == "dropped":
    del options
feeds = {
    "data": np.zeros(4, np.float32),
    "indices": np.array([[1], [1]]),
    "updates": np.ones(2, np.float32),
}
print(session.run(None, feeds)[0].tolist())
if sys.argv[2] == "dropped":
    del session
"""


@pytest.mark.parametrize("end", ["dropped", "kept"])
def test_process_ends(end) -> None:
    """A separate process exits with status 0. `dropped`: the process deletes the session and its
    options before the exit. `kept`: it does not delete them."""
    serialized = one_node("ScatterND", FLOAT, (None, None, None), reduction="add")
    command = [sys.executable, "-c", PROGRAM, str(LIBRARY), end]
    done = subprocess.run(command, input=serialized, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == "[0.0, 2.0, 0.0, 0.0]"
