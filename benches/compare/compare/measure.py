"""Measures one workload: checks its contenders, times them, and checks them again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from . import roofs
from .contenders import Call, Contender
from .libraries import native
from .machine import Others
from .oracle import Oracle, Verdict
from .problem import SETS, Problem
from .timing import Entry, calls_of_a_sample, once, sample, take_turns
from .words import ALLOCATING, INTO, OURS, WRONG

# Nanoseconds of the best correct peer below which a row has the kind "call".
CALL_NS = 500_000
QUICK_CALL_NS = 10_000

# Calls of a contender whose first time is at most this multiple of the fastest one are timed again.
CLOSE = 4

COMPILED = "compiled caller"


@dataclass
class Chosen:
    """The fastest correct call of a contender, or its fastest call if none is correct."""

    name: str
    call: Call
    verdict: Verdict
    estimate: float
    ways: dict[str, float | str] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        return self.verdict.status != WRONG


class Measurement:
    """One workload and its contenders."""

    def __init__(self, problem: Problem, contenders: list[Contender], rounds: int, quick: bool):
        self.problem = problem
        self.contenders = contenders
        self.rounds = rounds
        self.call_ns = QUICK_CALL_NS if quick else CALL_NS
        self.oracles = [Oracle(problem, numbers) for numbers in problem.numbers]

    def rows(self, forms: list[str], then_sum: bool) -> list[dict]:
        before = self.problem.data.copy(), self.problem.updates.copy()
        rows = [self._row(form, then_sum) for form in forms]
        for array, was in zip([self.problem.data, self.problem.updates], before):
            assert np.array_equal(array, was), "a contender changed its inputs"
        return rows

    def _row(self, form: str, then_sum: bool) -> dict:
        chosen = [found for each in self.contenders if (found := self._choose(each, form))]
        is_call = self._is_call(chosen)
        entries = {one.name: self._entry(one, is_call) for one in chosen}
        if is_call and OURS in entries and entries[OURS].call.time_calls is not None:
            entries[COMPILED] = replace(entries[OURS], compiled=True, samples=[])
        if not is_call and form != ALLOCATING:
            for name, call in roofs.calls(self.problem).items():
                entries[name] = Entry(call, estimate=0)
        fastest = min((one.estimate for one in chosen), default=0)
        for entry in entries.values():
            entry.estimate = max(entry.estimate, fastest)
        others = Others()
        take_turns(list(entries.values()), self.rounds)
        disturbed = others.cpus()
        for one in chosen:
            one.verdict = one.verdict.worse(self._check(one.name, one.call, 0)[0])
        row = {
            "workload": self.problem.workload.name,
            "form": form,
            "kind": "call" if is_call else "throughput",
            "others": round(disturbed, 3),
            "contenders": {one.name: _figures(one, entries[one.name]) for one in chosen},
        }
        if COMPILED in entries:
            row["contenders"][OURS]["compiled"] = entries[COMPILED].times
        if roofs.READ in entries:
            names = [name for name in [*roofs.COPIES, roofs.READ] if name in entries]
            times = {name: entries[name].times["min"] for name in names}
            row["roof"] = roofs.summary(self.problem, form, times)
        if then_sum and form == INTO and not is_call:
            row["then sum"] = self._then_sum(chosen, entries)
        return row

    def _is_call(self, chosen: list[Chosen]) -> bool:
        peers = [one.estimate for one in chosen if one.counts and one.name != OURS]
        return min(peers or [one.estimate for one in chosen]) < self.call_ns

    def _entry(self, one: Chosen, is_call: bool) -> Entry:
        calls = calls_of_a_sample(one.estimate) if is_call else 1
        return Entry(one.call, one.estimate, calls)

    def _check(self, name: str, call: Call, index_set: int) -> tuple[Verdict, int]:
        """Runs a call once. Returns the verdict on its result, and its nanoseconds."""
        self.problem.target.view(np.uint8).fill(0xFF)  # NaN for floats
        if call.reset is not None:
            call.reset()
        output, taken = once(call, index_set)
        oracle = self.oracles[index_set]
        return oracle.verdict(call.result(output), bit_for_bit=name == OURS), taken

    def _choose(self, contender: Contender, form: str) -> Chosen | None:
        ways, found = {}, []
        for call in contender.calls(self.problem, form):
            try:
                verdict, taken = self._check(contender.name, call, 0)
            except Exception as error:  # noqa: BLE001 - each runtime raises other types
                ways[call.how] = f"{type(error).__name__}: {str(error)[:200]}"
                continue
            found.append(Chosen(contender.name, call, verdict, taken, ways))
        if not found:
            return None
        close = CLOSE * min(one.estimate for one in found)
        for one in found:
            if one.estimate <= close:
                one.estimate = self._brief(one)
        found.sort(key=lambda one: one.estimate)
        for one in found:
            for index_set in range(1, SETS):
                if one.counts:
                    verdict, _ = self._check(one.name, one.call, index_set)
                    one.verdict = one.verdict.worse(verdict)
            ways[one.call.how] = one.estimate if one.counts else f"{WRONG}: {one.verdict.why}"
            if one.counts:
                break
        best = next((one for one in found if one.counts), found[0])
        ways.update((one.call.how, one.estimate) for one in found if one.call.how not in ways)
        return best

    @staticmethod
    def _brief(one: Chosen) -> float:
        """Measures a call briefly: two samples. Short calls are repeated in the second."""
        entry = Entry(one.call, one.estimate)
        first = sample(entry, 1)
        entry.calls = calls_of_a_sample(first)
        return min(first, sample(entry, 0))

    def _then_sum(self, chosen: list[Chosen], entries: dict[str, Entry]) -> dict:
        """Times calls together with a sum over the output. The cost of a streaming store may only
        move to the next reader."""
        peers = [one for one in chosen if one.counts and one.name != OURS]
        best = min(peers, key=lambda one: min(entries[one.name].samples), default=None)
        pair = [one for one in chosen if one.name == OURS] + ([best] if best else [])
        turns = [Entry(_and_sum(one.call), one.estimate) for one in pair]
        take_turns(turns, self.rounds)
        return {one.name: entry.times for one, entry in zip(pair, turns)}


def _and_sum(call: Call) -> Call:
    library = native()

    def run(index_set: int):
        output = call.runs[index_set]()
        if call.wait is not None:
            call.wait(output)
        values = call.result(output)
        library.compare_read(values.ctypes.data, values.nbytes // roofs.WORD)
        return output

    return Call(
        how=f"{call.how}, then a sum",
        runs=[lambda index_set=index_set: run(index_set) for index_set in range(SETS)],
        result=call.result,
    )


def _figures(one: Chosen, entry: Entry) -> dict:
    figures = {"how": one.call.how, "status": one.verdict.status, **entry.times}
    if entry.calls > 1:
        figures["calls"] = entry.calls
    if one.verdict.why:
        figures["why"] = one.verdict.why
    if len(one.ways) > 1:
        figures["ways"] = one.ways
    return figures
