"""Rounds in which all contenders take turns.

Knows calls; knows nothing of what they compute.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .contenders import Call
from .problem import SETS

# A contender that is slower than the fastest by this factor takes part in the
# first rounds only: its figures do not decide anything.
SLOW = 8
SLOW_ROUNDS = 3

# Samples of small calls last about as long as this.
SAMPLE_NS = 2_000_000
MOST_CALLS = 20_000

_PAUSE_S = 0.002
_MOST_PAUSES = 50


@dataclass
class Entry:
    """One that takes turns; `estimate` is about what a call of it takes."""

    call: Call
    estimate: float
    calls: int = 1  # of a sample
    compiled: bool = False  # called by the compiled caller
    samples: list[float] = field(default_factory=list)  # nanoseconds a call

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
    """Waits until no thread of this process is busy: some runtimes' threads
    look out for more work for a while."""
    for _ in range(_MOST_PAUSES):
        busy, start = time.process_time_ns(), time.perf_counter_ns()
        time.sleep(_PAUSE_S)
        if time.process_time_ns() - busy < 0.1 * (time.perf_counter_ns() - start):
            return


def sample(entry: Entry, index_set: int) -> float:
    """Nanoseconds a call, after calls that are not timed: they wake threads,
    and leave the caches as this contender leaves them."""
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
    del output  # what a call allocates is freed after the clock has stopped
    return taken


def once(call: Call, index_set: int) -> tuple[object, int]:
    """What a single run returns, and its nanoseconds."""
    start = time.perf_counter_ns()
    output = call.runs[index_set]()
    if call.wait is not None:
        call.wait(output)
    return output, time.perf_counter_ns() - start


def take_turns(entries: list[Entry], rounds: int, progress: Callable[[], None]) -> None:
    """Everyone begins once, and every other round goes backwards."""
    fastest = min(entry.estimate for entry in entries)
    for turn in range(rounds):
        start = turn % len(entries)
        order = entries[start:] + entries[:start]
        for entry in order[:: -1 if turn % 2 else 1]:
            if turn < SLOW_ROUNDS or entry.estimate < SLOW * fastest:
                entry.samples.append(sample(entry, turn % SETS))
        progress()
