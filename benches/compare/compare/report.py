"""Formats the tables, in Markdown."""

from __future__ import annotations

from collections.abc import Callable

from . import machine
from .results import best_peer, disturbed, geometric_mean, ours, ratio, rows, share
from .words import ALLOCATING, FORMS, INTO, IN_PLACE, OTHER_WINNER, OURS, WRONG
from .workloads import BRIEF

NONE = "–"

_TITLES = {
    INTO: "Into an existing output",
    ALLOCATING: "Into an allocated output",
    IN_PLACE: "In place",
}

_DISTURBED = "- ²: other processes used the CPUs meanwhile. The row should be measured again."

_LEGEND = f"""\
- Times are minima over rounds in milliseconds. The median of ndscatter is in brackets.
- *Ratio*: the time of the best correct peer, in bold, divided by the time of ndscatter.
- *Roof*: the minimum time to move the bytes of the call, divided by the time of ndscatter. It is
  computed from a copy and a read in the same rounds on the same arrays.
- –: the runtime does not have this form. jax and tensorflow always allocate their output, and openvino
  never does.
- *wrong*: the runtime computed a wrong result. The time of the runtime is in brackets. A runtime with
  a wrong result is never the best peer.
- ¹: indices have duplicates, and the result has a whole update of each destination, but not always the
  last one.
{_DISTURBED}"""

_BRIEF_LEGEND = f"""\
- Times are minima over rounds in milliseconds. All calls are made from Python.
- *Ratio*: the time of the best correct peer divided by the time of ndscatter.
- *wrong*: the runtimes with a wrong result.
{_DISTURBED}"""

_CALL_LEGEND = """\
Times are minima over rounds in nanoseconds per call. Peers are called from Python. ndscatter is
called from compiled code, and from Python through ctypes. The ratio uses the calls from Python."""


def markdown(results: dict) -> str:
    return f"{machine.sentence(results['machine'])}\n\n{tables(results['runs'])}"


def brief(results: dict) -> str:
    """Returns one table of all rows, with the best correct peer of each."""
    parts = [machine.sentence(results["machine"])]
    for run in results["runs"]:
        lines = []
        for row in run["rows"]:
            name, own = best_peer(row), ours(row)
            peer = f"{name} {_ms(row['contenders'][name]['min'])}" if name else NONE
            lines.append(
                [
                    row["workload"] + (" ²" if disturbed(row) else ""),
                    BRIEF.get(row["workload"], ""),
                    _number(own and own["min"], _ms),
                    peer,
                    _number(ratio(row), "{:.2f}".format),
                    ", ".join(name for name, one in row["contenders"].items() if one["status"] == WRONG) or NONE,
                ]
            )
        head = ["workload", "what it stands for", OURS, "best correct peer", "ratio", WRONG]
        parts += [f"{_threads(run)}, in place. {_versions([run])}", _table(head, lines), _BRIEF_LEGEND]
    return "\n\n".join(parts) + "\n"


def tables(runs: list[dict], legend: str = _LEGEND, call_legend: str = _CALL_LEGEND) -> str:
    parts = [_versions(runs), _sources(runs), _summary(runs), legend]
    for run in runs:
        if run["quick"]:
            parts.append("**A test of the harness with small shapes. Do not use these figures.**")
        parts += [_throughput_part(run, form) for form in FORMS]
        parts += [_call_part(run, call_legend), _sum_part(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(runs: list[dict]) -> str:
    """Returns a table with the geometric mean of the throughput rows, and the lowest ratio."""
    lines = []
    for run in runs:
        for form in FORMS:
            found = [(ratio(row), row["workload"]) for row in rows(run, "throughput", form)]
            found = [pair for pair in found if pair[0] is not None]
            if found:
                mean = geometric_mean([pair[0] for pair in found])
                worst, name = min(found)
                lines.append(
                    [
                        str(run["threads"]),
                        form,
                        len(found),
                        f"**{mean:.2f}**",
                        f"{worst:.2f} {name}",
                    ]
                )
    head = ["threads", "form", "rows", "geometric mean of ratios", "lowest ratio"]
    return _table(head, lines) if lines else ""


def _versions(runs: list[dict]) -> str:
    versions, left_out = {}, {}
    for run in runs:
        versions |= run["versions"]
        left_out |= run["left out"]
    text = ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
    for name, why in left_out.items():
        text += f" {name} is left out ({why})."
    return text


def _sources(runs: list[dict]) -> str:
    """Names the measured commits. There are several if rows were appended."""
    found = sorted({row["source"] for run in runs for row in run["rows"] if "source" in row})
    return f"Commit: {', '.join(found)}." if found else ""


def _peer_names(run: dict) -> list[str]:
    return [name for name in run["versions"] if name != OURS]


def _threads(run: dict) -> str:
    return "1 thread" if run["threads"] == 1 else f"{run['threads']} threads"


def _throughput_part(run: dict, form: str) -> str:
    found = rows(run, "throughput", form)
    if not found:
        return ""
    names = _peer_names(run)
    with_roof = any("roof" in row for row in found)
    head = ["workload", OURS, *names, "ratio", *(["roof"] if with_roof else [])]
    table = _table(head, [_row(row, names, with_roof) for row in found])
    return f"### {_TITLES[form]}, {_threads(run)}\n\n{table}"


def _row(row: dict, names: list[str], with_roof: bool) -> list[str]:
    own, best = ours(row), best_peer(row)
    cells = [row["workload"] + (" ²" if disturbed(row) else "")]
    if own:
        cells.append(f"{_ms(own['min'])} ({_ms(own['median'])})")
    else:
        cells.append(_cell(row["contenders"].get(OURS), False, _ms))
    cells += [_cell(row["contenders"].get(name), name == best, _ms) for name in names]
    cells.append(_number(ratio(row), "{:.2f}".format))
    if with_roof:
        cells.append(_number(share(row), "{:.0%}".format))
    return cells


def _call_part(run: dict, legend: str) -> str:
    found = rows(run, "call")
    if not found:
        return ""
    names = _peer_names(run)
    from_python = any("compiled" in (ours(row) or {}) for row in found)
    own = ["ndscatter, compiled", "ndscatter, ctypes"] if from_python else [OURS]
    head = ["call", "form", *own, *names, "ratio"]
    table = _table(head, [_call_row(row, names, from_python) for row in found])
    return f"### Calls, {_threads(run)}\n\n{legend}\n\n{table}"


def _call_row(row: dict, names: list[str], from_python: bool) -> list[str]:
    own, best = ours(row) or {}, best_peer(row)
    compiled = own.get("compiled", {}).get("min")
    return [
        row["workload"] + (" ²" if disturbed(row) else ""),
        row["form"],
        *([_number(compiled, "{:.0f}".format)] if from_python else []),
        _number(own.get("min"), "{:.0f}".format),
        *(_cell(row["contenders"].get(name), name == best, "{:.0f}".format) for name in names),
        _number(ratio(row), "{:.2f}".format),
    ]


def _sum_part(run: dict) -> str:
    lines = []
    for row in rows(run, "throughput", INTO):
        times = row.get("then sum", {})
        peer = next((name for name in times if name != OURS), None)
        if peer and OURS in times:
            own, other = times[OURS]["min"], times[peer]["min"]
            lines.append([row["workload"], _ms(own), f"{peer} {_ms(other)}", f"{other / own:.2f}"])
    if not lines:
        return ""
    table = _table(["workload", OURS, "best peer", "ratio"], lines)
    return f"### With a sum over the output, {_threads(run)}\n\n{table}"


def _cell(figures: dict | None, best: bool, show: Callable[[float], str]) -> str:
    if figures is None:
        return NONE
    if "min" not in figures:
        return figures["status"]
    time = show(figures["min"])
    if figures["status"] == WRONG:
        return f"wrong ({time})"
    mark = " ¹" if figures["status"] == OTHER_WINNER else ""
    return f"**{time}**{mark}" if best else f"{time}{mark}"


def _ms(nanoseconds: float) -> str:
    ms = nanoseconds * 1e-6
    for least, digits in [(100, 0), (10, 1), (0.01, 2)]:
        if ms >= least:
            return f"{ms:.{digits}f}"
    return f"{ms:.4f}"


def _number(value: float | None, show: Callable[[float], str]) -> str:
    return NONE if value is None else show(value)


def _table(head: list[str], lines: list[list]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, rule, *lines])
