"""Times contenders in interleaved rounds.

Knows calls. Knows nothing of their results.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .contenders import Call
from .problem import SETS

# A contender that is slower than the fastest by this factor takes part in the first rounds only. It
# cannot be the best peer.
SLOW = 8
SLOW_ROUNDS = 3

# Approximate nanoseconds of a sample of short calls, and its maximum number of calls.
SAMPLE_NS = 2_000_000
MOST_CALLS = 20_000

# Seconds of one pause, and the maximum number of pauses, before a sample.
_PAUSE_S = 0.002
_MOST_PAUSES = 50


@dataclass
class Entry:
    """A call to time, with its samples."""

    call: Call
    estimate: float  # approximate nanoseconds per call
    calls: int = 1  # calls per sample
    compiled: bool = False  # whether compiled code makes the calls
    samples: list[float] = field(default_factory=list)  # nanoseconds per call

    @property
    def times(self) -> dict:
        return {
            "min": min(self.samples),
            "median": statistics.median(self.samples),
            "samples": len(self.samples),
        }


def calls_of_a_sample(estimate: float) -> int:
    return int(min(max(SAMPLE_NS / max(estimate, 1), 1), MOST_CALLS))


def quiet() -> None:
    """Waits until no thread of this process is busy. Threads of some runtimes spin for a while
    after a call."""
    for _ in range(_MOST_PAUSES):
        busy, start = time.process_time_ns(), time.perf_counter_ns()
        time.sleep(_PAUSE_S)
        if time.process_time_ns() - busy < 0.1 * (time.perf_counter_ns() - start):
            return


def sample(entry: Entry, index_set: int) -> float:
    """Returns nanoseconds per call. Untimed calls before wake the threads, and fill the caches with
    this contender's data."""
    call = entry.call
    if call.reset is not None:
        call.reset()
    quiet()
    if entry.compiled:
        call.time_calls(max(entry.calls // 4, 1), (index_set + 1) % SETS)
        return call.time_calls(entry.calls, index_set) / entry.calls
    _time_calls(call, (index_set + 1) % SETS, max(entry.calls // 4, 1))
    return _time_calls(call, index_set, entry.calls) / entry.calls


def _time_calls(call: Call, index_set: int, calls: int) -> int:
    run, wait = call.runs[index_set], call.wait
    start = time.perf_counter_ns()
    if wait is None:
        for _ in range(calls):
            output = run()
    else:
        for _ in range(calls):
            output = wait(run())
    taken = time.perf_counter_ns() - start
    del output  # an allocated output is freed after the clock has stopped
    return taken


def once(call: Call, index_set: int) -> tuple[object, int]:
    """Runs a call once. Returns its output and its nanoseconds."""
    start = time.perf_counter_ns()
    output = call.runs[index_set]()
    if call.wait is not None:
        call.wait(output)
    return output, time.perf_counter_ns() - start


def take_turns(entries: list[Entry], rounds: int) -> None:
    """Samples all entries, interleaved. Each round begins with the next entry, and every second
    round has the reverse order."""
    fastest = min(entry.estimate for entry in entries)
    for turn in range(rounds):
        start = turn % len(entries)
        order = entries[start:] + entries[:start]
        for entry in order[:: -1 if turn % 2 else 1]:
            if turn < SLOW_ROUNDS or entry.estimate < SLOW * fastest:
                entry.samples.append(sample(entry, turn % SETS))
