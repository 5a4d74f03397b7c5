"""Tests of a session's config entries: the entries `ndscatter.ops` and `ndscatter.threads` of the
library, and the host's entry `session.set_denormal_as_zero`, which must not change results of
scatters. Also tests the library's lines in the log and in the profile of a session."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

import reference
import subnormal_cases
from common import (
    FLOAT,
    HAS_CACHE,
    HOST,
    LIBRARY,
    OWN,
    ROOT,
    any_indices,
    assert_same,
    counting,
    model,
    node,
    one_node,
    options,
    run,
    session,
    value,
    values,
)

sys.path.append(str(ROOT / "adapters/onnxruntime/examples"))
from rewrite_domain import rewrite_model  # noqa: E402

# A host from onnxruntime 1.24 on reports all config entries to the library. The library asks an
# older host for a list of likely keys.
lists_entries = pytest.mark.skipif(HOST < (1, 24), reason="this host does not list config entries")

F32, I64 = TensorProto.FLOAT, TensorProto.INT64

# The operators of ONNX's domain in the test model. The operator Scatter is missing, because the
# model's opset does not contain it.
OPERATORS = ["ScatterND", "ScatterElements", *(["TensorScatter"] if HAS_CACHE else [])]
NAMES = ["ScatterND", "ScatterElements", "Scatter", "TensorScatter"]


def all_operators() -> bytes:
    """Returns a model with one node of each operator in `OPERATORS`, and one ScatterND node of the
    domain `ndscatter`."""
    nodes = [
        node("ScatterND", ["data", "tuples", "updates"], ["a"]),
        node("ScatterElements", ["a", "indices", "updates"], ["b"]),
        node("ScatterND", ["b", "tuples", "updates"], ["c"], domain=OWN, reduction="sub"),
    ]
    last = "c"
    if HAS_CACHE:
        nodes.append(node("TensorScatter", ["cache", "step"], ["d"]))
        nodes.append(node("ReduceSum", ["d"], ["e"], keepdims=0))
        nodes.append(node("Add", ["c", "e"], ["f"]))
        last = "f"
    nodes.append(node("Identity", [last], ["output"]))
    inputs = [
        value("data", F32, [4, 3]),
        value("tuples", I64, [2, 1]),
        value("indices", I64, [2, 3]),
        value("updates", F32, [2, 3]),
    ]
    if HAS_CACHE:
        inputs += [value("cache", F32, [2, 4, 3]), value("step", F32, [2, 1, 3])]
    return model(nodes, inputs, [value("output", F32, None)], opset=24 if HAS_CACHE else 18)


def all_feeds(rng: np.random.Generator) -> dict[str, Any]:
    feeds = {
        "data": values(rng, FLOAT, (4, 3)),
        "tuples": np.array([[3], [0]]),
        "indices": np.array([[0, 1, 2], [3, 2, 1]]),
        "updates": values(rng, FLOAT, (2, 3)),
    }
    if HAS_CACHE:
        feeds |= {"cache": values(rng, FLOAT, (2, 4, 3)), "step": values(rng, FLOAT, (2, 1, 3))}
    return feeds


@pytest.mark.parametrize(
    ("entry", "replaced"),
    [
        (None, OPERATORS),
        ("", []),
        (",", []),
        ("Scatter", []),
        ("ScatterND", ["ScatterND"]),
        ("ScatterElements", ["ScatterElements"]),
        ("TensorScatter", ["TensorScatter"]),
        ("ScatterND,ScatterElements", ["ScatterND", "ScatterElements"]),
        (" ScatterElements , ScatterND ,", ["ScatterND", "ScatterElements"]),
        ("ScatterND,ScatterND", ["ScatterND"]),
        ("ScatterND,ScatterElements,Scatter,TensorScatter", OPERATORS),
    ],
    ids=str,
)
def test_operators(rng, entry, replaced) -> None:
    """Of the operators in ONNX's domain, the library runs only those that the config entry
    `ndscatter.ops` names, and the host's built-in kernels run the others. Without this entry, the
    library runs all of them. The library always runs the operators of the domain `ndscatter`."""
    entries = {} if entry is None else {"ndscatter.ops": entry}
    ran = session(all_operators(), entries=entries)
    with counting() as count:
        found = run(ran, **(feeds := all_feeds(rng)))
    assert count.done.runs == 1 + len(set(replaced) & set(OPERATORS))
    assert_same(found, run(session(all_operators()), **feeds))


@pytest.mark.parametrize("entry", ["Foo", "scatternd", "ScatterND,Foo", "ScatterND;Scatter", "all"])
def test_unknown_operator(entry) -> None:
    with pytest.raises(Exception) as raised:
        options(entries={"ndscatter.ops": entry})
    message = str(raised.value)
    assert 'ndscatter: the config entry "ndscatter.ops" names' in message
    assert "use ScatterND, ScatterElements, Scatter, TensorScatter" in message


@pytest.mark.parametrize("entry", ["", "0", "-1", "two", "1.5", "1e3", "99999999999999999999999"])
def test_wrong_number_of_threads(entry) -> None:
    with pytest.raises(Exception) as raised:
        options(entries={"ndscatter.threads": entry})
    assert 'ndscatter: the config entry "ndscatter.threads" is' in str(raised.value)


@pytest.mark.parametrize("entry", ["1", "2", " 4 ", "64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_number_of_threads(rng, entry, threads) -> None:
    """The results do not depend on the config entry `ndscatter.threads`, even if it differs from
    the session's number of threads."""
    serialized = one_node("ScatterND", FLOAT, (None, None, None), reduction="add")
    ran = session(serialized, threads=threads, entries={"ndscatter.threads": entry})
    for rows, columns, count in ((5, 3, 9), (3000, 40, 30_000)):
        data, updates = values(rng, FLOAT, (rows, columns)), values(rng, FLOAT, (count, columns))
        indices = any_indices(rng, rows, (count, 1))
        wanted = reference.fast_nd(data, indices, updates, "add")
        assert_same(run(ran, data=data, indices=indices, updates=updates), wanted)


def test_options_differ(rng) -> None:
    """Sessions with different config entries exist at the same time. Runs of these sessions
    alternate, and each session keeps the effect of its own entries."""
    entries: list[dict[str, str]] = [
        {},
        {"ndscatter.ops": "ScatterND"},
        {"ndscatter.ops": ""},
        {"ndscatter.ops": "ScatterElements", "ndscatter.threads": "2"},
    ]
    replaced = [len(OPERATORS), 1, 0, 1]
    sessions = [session(all_operators(), entries=entry) for entry in entries * 3]
    feeds = all_feeds(rng)
    wanted = run(session(all_operators()), **feeds)
    forwards = [*zip(sessions, replaced * 3)]
    for ran, runs in forwards + forwards[::-1]:
        with counting() as count:
            assert_same(run(ran, **feeds), wanted)
        assert count.done.runs == 1 + runs


def check_one_run(rng, ran) -> None:
    """Runs a session with one ScatterND. Checks that the library runs it, once."""
    feeds = {
        "data": values(rng, FLOAT, (4, 2)),
        "indices": np.array([[1]]),
        "updates": values(rng, FLOAT, (1, 2)),
    }
    with counting() as count:
        assert_same(run(ran, **feeds), reference.scatter_nd(*feeds.values()))
    assert count.done.runs == 1


def test_library_given_twice(rng) -> None:
    """The second registration on the same options changes nothing."""
    made = options(entries={"ndscatter.threads": "1"})
    made.register_custom_ops_library(str(LIBRARY))
    serialized = one_node("ScatterND", FLOAT, (None, None, None))
    ran = ort.InferenceSession(serialized, made, providers=["CPUExecutionProvider"])
    check_one_run(rng, ran)


def test_second_registration_with_other_entries() -> None:
    made = options(entries={"ndscatter.ops": "Scatter"})
    made.add_session_config_entry("ndscatter.ops", "Scatter,ScatterND")
    with pytest.raises(Exception) as raised:
        made.register_custom_ops_library(str(LIBRARY))
    assert "before the first registration" in str(raised.value)
    made.add_session_config_entry("ndscatter.ops", " Scatter ,")
    made.register_custom_ops_library(str(LIBRARY))


@pytest.mark.parametrize(
    "key",
    [
        "ndscatter.thread",
        "ndscatter_threads",
        "ndscatter.num_threads",
        "ndscatter.operators",
        pytest.param("NDScatter.ops", marks=lists_entries),
        pytest.param("ndscater.anything", marks=lists_entries),
    ],
)
def test_misspelt_entry(key) -> None:
    with pytest.raises(Exception) as raised:
        options(entries={key: "1"})
    message = f'no config entry "{key}"; use "ndscatter.ops" or "ndscatter.threads"'
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("before", "key", "entry", "message"),
    [
        (
            None,
            "ndscatter.threads",
            "1",
            'threads: 1"; set "ndscatter.ops" and "ndscatter.threads" before',
        ),
        (None, "ndscatter.ops", "ScatterND", 'ops: ScatterND, threads: measured"; set'),
        (None, "ndscatter.thread", "1", 'no config entry "ndscatter.thread"'),
        ("2", "ndscatter.threads", "1", 'threads: 2", but now specify "'),
        ("ScatterND", "ndscatter.ops", "ScatterND,Scatter", "ops: ScatterND,Scatter, threads"),
    ],
)
def test_late_entry(before, key, entry, message) -> None:
    """An entry that is added or changed after the registration prevents the creation of the
    session. `before` is the value of the entry at the registration, or `None` if the entry is added
    later. A host before 1.24 ignores a late entry."""
    made = options(entries={} if before is None else {key: before})
    made.add_session_config_entry(key, entry)
    serialized = one_node("ScatterND", FLOAT, (None, None, None))

    def create() -> None:
        ort.InferenceSession(serialized, made, providers=["CPUExecutionProvider"])

    if HOST < (1, 24):
        create()
        return
    with pytest.raises(Exception) as raised:
        create()
    assert message in str(raised.value)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinities")
def test_affinity_after_the_registration(rng) -> None:
    """The number of processors that a thread may use can become smaller after the registration. The
    session is created nevertheless, and a second registration changes nothing."""
    made = options(threads=2, entries={"ndscatter.threads": "2"})
    serialized = one_node("ScatterND", FLOAT, (None, None, None))
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        made.register_custom_ops_library(str(LIBRARY))
        ran = ort.InferenceSession(serialized, made, providers=["CPUExecutionProvider"])
    finally:
        os.sched_setaffinity(0, processors)
    assert made.get_session_config_entry("ndscatter.registered").endswith("threads: 2")
    check_one_run(rng, ran)


# The host's log and its profile


@pytest.mark.parametrize(("entry", "threads"), [(None, "measured"), ("1", "1")])
def test_log(capfd, entry, threads) -> None:
    """At the severities VERBOSE (0) and INFO (1), the log of a session has the library's config
    entry and one line for each node."""
    entries = {"ndscatter.threads": entry} if entry else {}
    serialized = one_node("ScatterND", FLOAT, (None, None, None))
    for severity, lines in ((0, 1), (1, 1), (2, 0)):
        session(serialized, entries=entries, log_severity_level=severity)
        found = capfd.readouterr().err
        node_line = rf'ndscatter [\d.]+ runs the node "scatter" \(ScatterND\), threads: {threads}\n'
        assert len(re.findall(node_line, found)) == lines
        registered = rf"ndscatter [\d.]+, ops: {','.join(NAMES)}, threads: {threads}\b"
        assert len(re.findall(registered, found)) == lines


def chain(names: list[str]) -> onnx.ModelProto:
    """Returns a model of one ScatterND per name. Each scatter writes into the result of the scatter
    before it. The name of a node can be empty."""
    made = onnx.load_from_string(one_node("ScatterND", FLOAT, (None, None, None)))
    first = onnx.NodeProto()
    first.CopyFrom(made.graph.node[0])
    del made.graph.node[:]
    for number, name in enumerate(names):
        added = made.graph.node.add()
        added.CopyFrom(first)
        added.name = name
        added.input[0] = f"between{number}" if number else "data"
        added.output[0] = f"between{number + 1}" if number + 1 < len(names) else "output"
    return made


def profiled_nodes(rng, tmp_path, made: onnx.ModelProto, library: bool) -> list[tuple[str, str]]:
    """Runs a model of `chain`. Returns the names and the operators of the profile's node events."""
    ran = session(
        made.SerializeToString(),
        library=library,
        enable_profiling=True,
        profile_file_prefix=str(tmp_path / "profile"),
    )
    data, updates = values(rng, FLOAT, (4, 2)), values(rng, FLOAT, (1, 2))
    with counting() as count:
        run(ran, data=data, indices=np.array([[1]]), updates=updates)
    assert count.done.runs == (len(made.graph.node) if library else 0)
    events = json.loads(Path(ran.end_profiling()).read_text())
    found = [(event["name"], event["args"]) for event in events if event["cat"] == "Node"]
    assert {args["provider"] for _, args in found if "provider" in args} == {"CPUExecutionProvider"}
    return [(name, args["op_name"]) for name, args in found]


def test_profile(rng, tmp_path) -> None:
    """The profile names a node by its name in the model and by its operator, with and without the
    library. `rewrite_domain.py` puts "ndscatter" in the name of the node."""
    made = chain(["scatter", ""])
    plain = profiled_nodes(rng, tmp_path, made, library=False)
    assert ("scatter_kernel_time", "ScatterND") in plain
    assert profiled_nodes(rng, tmp_path, made, library=True) == plain
    rewritten, count = rewrite_model(made)
    assert count == 2
    nodes = profiled_nodes(rng, tmp_path, rewritten, library=True)
    assert ("ndscatter/scatter_kernel_time", "ScatterND") in nodes
    assert ("ndscatter/output_kernel_time", "ScatterND") in nodes


def test_names_of_rewritten_nodes() -> None:
    """The names of rewritten nodes are unique. A second call of `rewrite_model` changes nothing. A
    third call rewrites a node that was added after the first call."""
    made, count = rewrite_model(chain(["1", "", "ndscatter/1", "between2"]))
    wanted = [
        "ndscatter/1_2",
        "ndscatter/between2",
        "ndscatter/ndscatter/1",
        "ndscatter/between2_2",
    ]
    assert count == 4
    assert [rewritten.name for rewritten in made.graph.node] == wanted
    session(made.SerializeToString())
    again, count = rewrite_model(made)
    assert count == 0
    assert [rewritten.name for rewritten in again.graph.node] == wanted
    again.graph.node[1].domain, again.graph.node[1].name = "", "1_2"
    again, count = rewrite_model(again)
    assert count == 1
    wanted[1] = "ndscatter/1_2_2"
    assert [rewritten.name for rewritten in again.graph.node] == wanted
    session(again.SerializeToString())


# Subnormal numbers


@pytest.fixture(scope="module")
def subnormals() -> dict[str, str]:
    """Returns the error message of each case. The message is empty if the case passed.

    The cases run in a separate process, because the first session of a process sets the
    floating-point mode of the thread that creates the session.
    """
    command = [sys.executable, subnormal_cases.__file__]
    done = subprocess.run(command, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", subnormal_cases.CASES)
def test_subnormals_stay(subnormals, case) -> None:
    """A scatter keeps subnormal numbers, even if the session flushes subnormal numbers to zero."""
    assert subnormals[case] == ""


def test_mode_of_the_host_is_kept(subnormals) -> None:
    """In a session that flushes subnormal numbers to zero, a host's node after a scatter still does
    so: the scatter restores the host's floating-point mode."""
    assert subnormals["host"] == ""
