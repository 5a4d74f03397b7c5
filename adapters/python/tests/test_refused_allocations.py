"""Tests of calls in which an allocation of the extension module fails: functions for arrays, and ONNX Runtime.

Attempt n of a call makes the n-th allocation fail. The call then gives the right result, or raises MemoryError (in
sessions, an exception of ONNX Runtime) and leaves its output unchanged. An allocation that cannot fail would end the
process. PyO3 has such allocations, so the test omits calls that convert a list (`write_all`), and wrong calls. The test
starts this file in a process with a replaced allocator (adapters/refusals).
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "refusals"))
import refusals  # noqa: E402

RANDOM = np.random.default_rng(1)


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator is replaced by LD_PRELOAD")
def test_refused_allocations(tmp_path):
    # rayon allocates 16 bytes for each job of its threads, and ends the process if this allocation fails.
    done = refusals.run(Path(__file__), tmp_path, RAYON_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 50, "allocations were refused"


class Case:
    """Arrays for calls that write to `out`. Each call starts with the elements of `data` in `out`."""

    def __init__(self, rows, copies=2):
        self.data = RANDOM.random((rows, 8), np.float32)
        self.rows = RANDOM.integers(0, rows, copies * rows)
        self.updates = RANDOM.random((copies * rows, 8), np.float32)
        self.wrong_rows = np.append(self.rows[:-1], rows)
        self.out = self.data.copy()


def in_place(case):
    """Yield calls that write to `case.out`."""
    import ndscatter

    options = {"out": case.out, "reduction": "add"}
    plan = ndscatter.plan_scatter_update(case.data.shape, case.rows, reduction="add")
    paged = case.out[:, None]
    unique = np.arange(len(case.data))
    yield lambda: ndscatter.add_at(case.out, case.rows, case.updates)
    yield lambda: ndscatter.scatter_update(case.data, case.rows, case.updates, **options)
    yield lambda: ndscatter.scatter_update(case.data, case.rows, case.updates, reduction="mean", out=case.out)
    yield lambda: ndscatter.scatter_nd(case.data, case.rows[:, None], case.updates, **options)
    yield lambda: ndscatter.gather(case.data, case.rows[: len(case.data)], out=case.out)
    yield lambda: plan(case.data, case.updates, out=case.out)
    yield lambda: ndscatter.write_paged(paged, case.rows, case.updates)
    yield lambda: ndscatter.move_rows(case.out, unique, unique[::-1])


def new_results(case):
    """Yield calls that return a new array."""
    import ndscatter

    yield lambda: ndscatter.gather(case.data, case.rows)
    yield lambda: ndscatter.bincount(case.rows)
    yield lambda: ndscatter.plan_scatter_update(case.data.shape, case.rows, reduction="add")(case.data, case.updates)


def sessions(case):
    """Yield runs of new sessions, with fed and with constant indices."""
    import ndscatter.onnxruntime
    import onnx
    import onnxruntime

    from test_onnxruntime import scatter_nd_model

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # The errors are deliberate.
    # With a number of threads, a run does not read the limits of the processors.
    ndscatter.onnxruntime.enable(options, threads=2)
    feeds = {"data": case.data, "indices": case.rows[:, None], "updates": case.updates}
    session = onnxruntime.InferenceSession(scatter_nd_model(), options, providers=["CPUExecutionProvider"])
    yield lambda: session.run(None, feeds)[0], ""
    wrong = {**feeds, "indices": case.wrong_rows[:, None]}
    yield lambda: session.run(None, wrong), f"ndscatter: index {len(case.data)}"
    data, rows, updates = case.data[:6, :2], case.rows[:12, None] % 6, case.updates[:12, :2]
    texts = {"data": data.astype(str), "indices": rows, "updates": updates.astype(str)}
    for reduction in ("none", "add"):
        model = scatter_nd_model(onnx.TensorProto.STRING, reduction)
        writes = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        yield lambda writes=writes: writes.run(None, texts)[0], ""


def expect(case, call, follow, allowed):
    """Make all attempts of a call. Return their number."""
    case.out[:] = case.data
    right = call()
    written = case.out.copy()
    count = 0

    def again():
        case.out[:] = case.data
        return call()

    for number, result, raised in refusals.attempts(LIBRARY, again, follow):
        count += 1
        if raised is None:
            assert np.array_equal(case.out, written), number
            assert result is None or np.array_equal(result, right), number
        else:
            assert isinstance(raised, allowed), (number, raised)
            assert np.array_equal(case.out, case.data), number
    return count


def expect_in_session(call, message, follow):
    """Make all attempts of a run of a session. `message`: the error of the run, or empty. Return their number."""
    right = None if message else call()
    count = 0
    for number, result, raised in refusals.attempts(LIBRARY, call, follow):
        count += 1
        if raised is None:
            assert not message and np.array_equal(result, right), number
        else:
            texts = ["ndscatter: out of memory", "ndscatter: an allocation of", *([message] if message else [])]
            assert any(text in str(raised) for text in texts), (number, raised)
    return count


def main():
    count = 0
    for case in (Case(6), Case(3000), Case(20_000)):
        for call in (*in_place(case), *new_results(case)):
            # The exceptions of Python need memory too, which PyO3 cannot do without.
            count += expect(case, call, False, MemoryError)
        for call, message in sessions(case):
            for follow in (False, True):
                count += expect_in_session(call, message, follow)
    print(count)


if __name__ == "__main__":
    import ndscatter._native  # noqa: F401 - loads the library

    LIBRARY = refusals.watch("ndscatter/_native")
    main()
