"""Measures the bandwidth on the arrays of a problem: three kinds of copy and a read are contenders in
the same rounds."""

from __future__ import annotations

from functools import partial

from .contenders import Call
from .libraries import native
from .problem import SETS, Problem

# In the order of `Copying::ALL` in benches/common/roof.rs.
COPIES = ["memcpy", "streaming copy", "rep movsb"]
READ = "read"

# Bytes of one unit of the helpers' lengths.
WORD = 4


def calls(problem: Problem) -> dict[str, Call]:
    library = native()
    target, data = problem.target, problem.data
    read_from = _longest_input(problem)
    words = data.nbytes // WORD
    runs = {
        name: partial(library.compare_copy, way, target.ctypes.data, data.ctypes.data, words)
        for way, name in enumerate(COPIES)
    }
    if not runs[COPIES[-1]]():  # the target has memcpy only
        runs = {COPIES[0]: runs[COPIES[0]]}
    runs[READ] = partial(library.compare_read, read_from.ctypes.data, read_from.nbytes // WORD)
    return {name: Call(name, [run] * SETS, lambda _: problem.target) for name, run in runs.items()}


def _longest_input(problem: Problem):
    return max(problem.data, problem.updates, key=lambda array: array.nbytes)


def summary(problem: Problem, form: str, times: dict[str, float]) -> dict:
    """Computes the minimum nanoseconds to move the bytes of a call. Written bytes count at the speed
    of a copy, which also reads an equal number of bytes. The rest counts at the speed of a read."""
    read, written = problem.traffic(form)
    copy = min(times[name] for name in COPIES if name in times) / problem.data.nbytes
    reading = times[READ] / _longest_input(problem).nbytes
    return {
        **times,
        "bytes_read": read,
        "bytes_written": written,
        "nanoseconds": copy * written + reading * max(read - written, 0),
    }
