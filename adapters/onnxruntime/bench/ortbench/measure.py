"""Measures one row of the result tables: checks its results, then runs the rounds of each table.

This module knows rounds and timing. It knows nothing of graphs or reports.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
from compare.machine import Others
from compare.oracle import OK, Oracle, Verdict
from compare.timing import quiet

from . import models
from .cases import Case
from .rows import AFTER_COPY, INTO
from .sessions import BOTH, BUILT_IN, NDSCATTER, Binding, Session, Settings, profiles

# Approximate duration of a sample.
SAMPLE_S = 0.002
MOST_RUNS = 5_000
# Number of samples per round in table C, whose rows have short runs. The clock frequency changes
# within milliseconds, so differences are taken between adjacent samples.
CALL_TURNS = 8
# Number of CPUs in use by other processes above which a row is marked and may be repeated.
BUSY = 0.1
# Duration of a sample of concurrent callers.
SERVED_S = 0.4
CALLERS = 4


class WrongResult(Exception):
    """A result of ndscatter is wrong, or ndscatter did not run as expected."""


@dataclass
class Turn:
    """A session in interleaved measurements, with a binding for each set of indices."""

    session: Session
    bindings: list[Binding]
    runs: int = 1  # number of runs in a sample
    samples: list[float] = field(default_factory=list)  # nanoseconds per run
    timed: list[range] = field(default_factory=list)  # numbers of the timed runs of the session

    def estimate(self) -> float:
        """Runs twice and returns the seconds of the second run."""
        self.bindings[0].run()
        start = time.perf_counter()
        self.bindings[-1].run()
        return time.perf_counter() - start

    def sample(self, turn: int) -> None:
        """Times a sample. Untimed runs before the sample wake the threads and fill the caches."""
        quiet()
        count = len(self.bindings)
        self.bindings[(turn + 1) % count].repeat(max(self.runs // 4, 1))
        binding, first = self.bindings[turn % count], self.session.runs
        start = time.perf_counter_ns()
        binding.repeat(self.runs)
        self.samples.append((time.perf_counter_ns() - start) / self.runs)
        self.timed.append(range(first, self.session.runs))


def times(samples: list[float]) -> dict:
    return {"min": min(samples), "median": statistics.median(samples), "samples": len(samples)}


def _slower(ours: list[float], built_in: list[float]) -> float:
    """Returns the median of the differences between adjacent samples: the time of ndscatter minus
    the time of the built-in kernel."""
    return statistics.median(a - b for a, b in zip(ours, built_in))


def take_turns(turns: dict[str, Turn], rounds: int) -> None:
    """Takes samples in rounds. Each session is first in every second round."""
    for number in range(rounds):
        names = list(turns) if number % 2 == 0 else list(turns)[::-1]
        for name in names:
            turns[name].sample(number)


def sized(turns: dict[str, Turn]) -> None:
    """Sets the number of runs in a sample, which is equal for both sessions."""
    slowest = max(turn.estimate() for turn in turns.values())
    runs = max(min(math.ceil(SAMPLE_S / max(slowest, 1e-9)), MOST_RUNS), 1)
    for turn in turns.values():
        turn.runs = runs


@dataclass
class Bench:
    """One row of the result tables: its arrays, its oracles (checks of results) and settings."""

    case: Case
    settings: Settings
    rounds: int

    def __post_init__(self):
        self.verdicts = dict.fromkeys(BOTH, Verdict(OK))
        self._first_oracle: Oracle | None = None

    # Inputs and bindings.

    def _inputs(self, index_set: int, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        inputs = {**data, "updates": self.case.updates}
        if not self.case.row.constant:
            inputs["indices"] = self.case.indices[index_set]
        return inputs

    def _bindings(
        self, session: Session, data: dict[str, np.ndarray], output: np.ndarray
    ) -> list[Binding]:
        sets = range(len(self.case.indices))
        return [session.binding(self._inputs(number, data), output) for number in sets]

    def _turns(
        self,
        model: bytes,
        data: dict[str, np.ndarray],
        output: np.ndarray,
        profile: Path | None = None,
    ) -> dict[str, Turn]:
        sessions = {name: self.settings.session(name, model, profile) for name in BOTH}
        return {
            name: Turn(session, self._bindings(session, data, output))
            for name, session in sessions.items()
        }

    def _halves(self) -> dict[str, np.ndarray]:
        return dict(zip(("first", "second"), models.halves(self.case.data)))

    # Checks.

    def _oracle(self, index_set: int) -> Oracle:
        """Returns the oracle of an index set. Keeps the oracle of set 0, which is used again after
        the rounds."""
        if index_set:
            return self.case.oracle(index_set)
        if self._first_oracle is None:
            self._first_oracle = self.case.oracle(0)
        return self._first_oracle

    def _judge(self, name: str, oracle: Oracle, result: np.ndarray) -> None:
        verdict = self.case.judge(oracle, result, bit_for_bit=name == NDSCATTER)
        if name == NDSCATTER and verdict.status != OK:
            raise WrongResult(f"{self.case.row.name}: {verdict.why}")
        self.verdicts[name] = self.verdicts[name].worse(verdict)

    def _check(
        self,
        turns: dict[str, Turn],
        reset: Callable[[], None] | None = None,
        sets: int | None = None,
        negated: bool = False,
    ) -> None:
        for index_set in range(len(self.case.indices))[:sets]:
            oracle = self._oracle(index_set)
            for name, turn in turns.items():
                binding = turn.bindings[index_set]
                if reset is None:
                    binding.output.fill(0)
                else:
                    reset()
                self._took_over(name, binding.run)
                result = -binding.output if negated else binding.output
                self._judge(name, oracle, result)

    def _took_over(self, name: str, run: Callable[[], None]) -> None:
        """Calls `run` once, and checks that the kernel of the expected library ran."""
        count = self.settings.library.count
        before = count("runs"), count("planned")
        run()
        runs, planned = count("runs") - before[0], count("planned") - before[1]
        expected = (0, 0) if name == BUILT_IN else (1, int(self.case.row.constant))
        if (runs, planned) != expected:
            raise WrongResult(
                f"{self.case.row.name}, {name}: {runs} runs by ndscatter, {planned} planned; "
                f"expected {expected}"
            )

    # Tables.

    def produced(self) -> dict:
        """Measures table A: the graph makes the data, so its memory may be reused."""
        self._check_produced()
        with profiles() as folder:
            peeked = np.zeros((1,) * self.case.data.ndim, self.case.data.dtype)
            model = models.produced(self.case, models.PEEKED)
            turns = self._turns(model, self._halves(), peeked, Path(folder))
            before = self.settings.library.count("in_place")
            sized(turns)
            others = Others()
            take_turns(turns, self.rounds)
            found = {"others": others.cpus()}
            reused = self.settings.library.count("in_place") - before
            if reused != turns[NDSCATTER].session.runs:
                raise WrongResult(f"{self.case.row.name}: {reused} runs in place")
            for name, turn in turns.items():
                nodes = self._of_profile(turn)
                found[name] = {what: times(samples) for what, samples in nodes.items()}
                found[name]["run"] = times(turn.samples)
        return found

    def _of_profile(self, turn: Turn) -> dict[str, list[float]]:
        """Returns the nanoseconds of nodes in the samples of a session."""
        nodes = turn.session.node_times()

        def of(operator: str) -> list[float]:
            every = nodes[operator]
            return [statistics.fmean(every[runs.start : runs.stop]) for runs in turn.timed]

        return {"node": of(self.case.operator), "producer": of("Concat")}

    def _check_produced(self) -> None:
        """Checks results with a graph that returns the whole result."""
        model = models.produced(self.case, models.COPIED)
        output = self.case.target.reshape(-1)
        self._check(self._turns(model, self._halves(), output))

    def into(self) -> dict:
        """Measures table B: data is an input, and the output is memory of the caller."""
        turns = self._turns(models.direct(self.case), {"data": self.case.data}, self.case.target)
        self._check(turns)
        sized(turns)
        others = Others()
        take_turns(turns, self.rounds)
        found = {"others": others.cpus()}
        self._check(turns, sets=1)
        for name, turn in turns.items():
            found[name] = {"run": times(turn.samples)}
        return found

    def calls(self, form: str) -> dict:
        """Measures table C: short runs, with many runs in a sample."""
        if form == AFTER_COPY:
            return self._after_copy()
        model = models.direct(self.case)
        if form == INTO:
            turns = self._turns(model, {"data": self.case.data}, self.case.target)
            self._check(turns)
        else:
            turns = self._turns(model, {"data": self.case.target}, self.case.target)
            self._check(turns, self._reset)
        sized(turns)
        self._reset()
        others = Others()
        take_turns(turns, self.rounds * CALL_TURNS)
        found = {"others": others.cpus()}
        for name, turn in turns.items():
            found[name] = {"run": times(turn.samples)}
        found["slower"] = _slower(turns[NDSCATTER].samples, turns[BUILT_IN].samples)
        return found

    def _after_copy(self) -> dict:
        """Measures the node of the scatter in a run that first copies more bytes than the caches
        hold. The copy evicts the code and data of the kernel (the built-in kernel or ndscatter's
        kernel) from all caches."""
        large = np.zeros(models.COPIED_ELEMENTS // 2, self.case.data.dtype)
        inputs = {"first": large, "second": large, "data": self.case.data}
        with profiles() as folder:
            model = models.after_copy(self.case)
            turns = self._turns(model, inputs, self.case.target, Path(folder))
            self._check(turns, negated=True)
            others = Others()
            take_turns(turns, self.rounds * CALL_TURNS)
            found = {"others": others.cpus()}
            nodes = {name: self._of_profile(turn)["node"] for name, turn in turns.items()}
        found["slower"] = _slower(nodes[NDSCATTER], nodes[BUILT_IN])
        for name, samples in nodes.items():
            found[name] = {"run": times(samples)}
        return found

    def _reset(self) -> None:
        np.copyto(self.case.target, self.case.data)

    def served(self) -> dict:
        """Measures table D: concurrent sessions, each with a separate calling thread."""
        model = models.direct(self.case)
        data = {"data": self.case.data}
        outputs = [self.case.new_target() for _ in range(CALLERS)]
        callers = {}
        for name in BOTH:
            sessions = [self.settings.session(name, model) for _ in outputs]
            callers[name] = [
                self._bindings(session, data, output)[0]
                for session, output in zip(sessions, outputs)
            ]
        rates: dict[str, list[float]] = {name: [] for name in BOTH}
        for bindings in callers.values():
            serve(bindings, 0)
        others = Others()
        for number in range(self.rounds):
            for name in BOTH if number % 2 == 0 else BOTH[::-1]:
                quiet()
                rates[name].append(serve(callers[name], SERVED_S))
        found = {"others": others.cpus()}
        for name in BOTH:
            serve(callers[name], 0)
            for output in outputs:
                self._judge(name, self._oracle(0), output)
            found[name] = {
                "runs a second": {
                    "max": max(rates[name]),
                    "median": statistics.median(rates[name]),
                    "samples": len(rates[name]),
                }
            }
        return found


def serve(bindings: list[Binding], seconds: float) -> float:
    """Returns the runs per second of all callers together. Each caller runs at least once."""
    rates = [0.0] * len(bindings)
    barrier = Barrier(len(bindings))

    def call(number: int) -> None:
        run = bindings[number].run
        barrier.wait()
        start, runs = time.perf_counter(), 0
        while True:
            run()
            runs += 1
            taken = time.perf_counter() - start
            if taken >= seconds:
                break
        rates[number] = runs / taken

    threads = [Thread(target=call, args=(number,)) for number in range(len(bindings))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def _quietest(table: Callable[[], dict], again: int) -> dict:
    """Measures a table. Repeats it up to `again` times while other processes are busy. Returns the
    attempt with the least other load, whatever its figures are."""
    best = table()
    for _ in range(again):
        if best["others"] <= BUSY:
            break
        gc.collect()
        best = min(best, table(), key=lambda found: found["others"])
    gc.collect()
    return best


def measure(case: Case, settings: Settings, rounds: int, tables: str, again: int) -> dict:
    """Returns the figures of a row for the requested tables."""
    bench = Bench(case, settings, rounds)
    found: dict = {"name": case.row.name, "operator": case.operator, "constant": case.row.constant}
    if case.row.small:
        found["C"] = {
            form: _quietest(partial(bench.calls, form), again) for form in case.row.small
        }
    else:
        makers = {"A": bench.produced, "B": bench.into, "D": bench.served}
        for table in sorted(set(tables) & set(makers)):
            found[table] = _quietest(makers[table], again)
    found["verdicts"] = {name: vars(verdict) for name, verdict in bench.verdicts.items()}
    return found
