"""Measures one row of the result tables: checks its results, then runs the rounds of each table.

This module contains the code for rounds and timing. It contains no code for graphs or reports.
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

# Approximate duration of a sample in tables A to C, in seconds.
SAMPLE_S = 0.002
MOST_RUNS = 5_000
# Number of samples of each session per round in table C, whose rows have short runs. The clock
# frequency of the CPU changes within milliseconds. Table C therefore states the difference of times
# between adjacent samples of the two sessions.
CALL_TURNS = 8
# Mean number of CPUs that other processes use during a measurement. Above this number, the row is
# marked as busy, and the measurement may be repeated.
BUSY = 0.1
# Duration of a sample of table D (concurrent callers), in seconds.
SERVED_S = 0.4
CALLERS = 4


class WrongResult(Exception):
    """Raised if a result of ndscatter is wrong, or if ndscatter did not run as expected."""


@dataclass
class Turn:
    """One of the sessions that are measured alternately. It has a binding for each set of
    indices."""

    session: Session
    bindings: list[Binding]
    runs: int = 1  # number of runs in a sample
    samples: list[float] = field(default_factory=list)  # nanoseconds per run
    timed: list[range] = field(default_factory=list)  # numbers of the timed runs of the session

    def estimate(self) -> float:
        """Runs the session twice and returns the time of the second run in seconds."""
        self.bindings[0].run()
        start = time.perf_counter()
        self.bindings[-1].run()
        return time.perf_counter() - start

    def sample(self, turn: int) -> None:
        """Measures one sample. Untimed runs before the sample wake the threads and load the
        kernel's data into the caches."""
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
    """Returns the median of the differences between adjacent samples. A difference is the time of
    ndscatter minus the time of the built-in kernel."""
    return statistics.median(a - b for a, b in zip(ours, built_in))


def take_turns(turns: dict[str, Turn], rounds: int) -> None:
    """Measures one sample of each session per round. The session that is measured first alternates
    from round to round."""
    for number in range(rounds):
        names = list(turns) if number % 2 == 0 else list(turns)[::-1]
        for name in names:
            turns[name].sample(number)


def sized(turns: dict[str, Turn]) -> None:
    """Sets the number of runs in a sample. Both sessions get the same number: the number of runs
    that the slower session makes in about `SAMPLE_S`, at most `MOST_RUNS`."""
    slowest = max(turn.estimate() for turn in turns.values())
    runs = max(min(math.ceil(SAMPLE_S / max(slowest, 1e-9)), MOST_RUNS), 1)
    for turn in turns.values():
        turn.runs = runs


@dataclass
class Bench:
    """Measurement of one row of the result tables, with the row's arrays and the settings of
    sessions. An oracle computes the expected result for one set of indices."""

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
        """Returns the oracle of a set of indices. Keeps the oracle of set 0, because a check after
        the rounds uses it again."""
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
        """Calls `run` once, and checks with the counters of ndscatter's library that the kernel of
        session `name` ran: ndscatter's kernel or the built-in kernel. Also checks that ndscatter
        used a plan if and only if the indices are constant."""
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
        """Measures table A. A node of the graph writes the data, so the scatter may write its
        result into the memory of the data."""
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
        """Returns the node times of a session from its profile, in nanoseconds. For each sample,
        the value is the mean over the runs of the sample. "node" is the scatter, "producer" is the
        Concat."""
        nodes = turn.session.node_times()

        def of(operator: str) -> list[float]:
            every = nodes[operator]
            return [statistics.fmean(every[runs.start : runs.stop]) for runs in turn.timed]

        return {"node": of(self.case.operator), "producer": of("Concat")}

    def _check_produced(self) -> None:
        """Checks the results of table A with a second graph, which returns the whole result of the
        scatter."""
        model = models.produced(self.case, models.COPIED)
        output = self.case.target.reshape(-1)
        self._check(self._turns(model, self._halves(), output))

    def into(self) -> dict:
        """Measures table B. Data is an input of the model, and the output is another buffer of the
        caller."""
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
        """Measures one form of table C, which has short runs. A sample contains several runs,
        except in the form `AFTER_COPY`."""
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
        """Measures the time of the scatter's node in runs in which a Concat writes 64 MiB before
        the scatter. If the caches are smaller, the Concat evicts the code of the scatter's kernel,
        the indices and the updates from all caches. A sample is one run."""
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
        """Measures table D: `CALLERS` concurrent sessions, each with its own calling thread and
        output."""
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
    """Calls all `bindings` at the same time, each on its own thread, for about `seconds`. Returns
    the runs per second of all threads together. Each thread makes at least one run."""
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
    """Measures one row for one table by calling `table`. Repeats the measurement at most `again`
    times, until the load of other processes is at most `BUSY`. Returns the figures of the
    measurement with the lowest load of other processes."""
    best = table()
    for _ in range(again):
        if best["others"] <= BUSY:
            break
        gc.collect()
        best = min(best, table(), key=lambda found: found["others"])
    gc.collect()
    return best


def measure(case: Case, settings: Settings, rounds: int, tables: str, again: int) -> dict:
    """Measures a row and returns its figures for the requested tables. A row with short runs has
    only table C. The other rows have tables A, B and D."""
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
