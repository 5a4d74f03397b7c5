"""Writes the tables of docs/performance.md and the picture of README.md from recorded figures.

    python3 benches/compare/run.py --page            writes the tables and the picture
    python3 benches/compare/run.py --page --check    fails if they differ from the figures

Reads docs/compare/*/results.json and backward.json: one folder per kind of machine. Measures
nothing, and needs nothing but Python itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from html import escape
from math import log2
from pathlib import Path

from . import places
from .results import best_peer, geometric_mean, ours, ratio, rows
from .words import FORMS, IN_PLACE, INTO, OURS
from .workloads import WORKLOADS

NONE = "–"

# The kinds of machines, in the order of the tables, with the names of their processors.
MACHINES = {
    "zen-5": "AMD EPYC (Zen 5)",
    "zen-4": "AMD EPYC (Zen 4)",
    "xeon-480": "Intel Xeon, L3 480 MiB",
    "xeon-skylake": "Intel Xeon (Skylake)",
}

FIRST_ROW, FIRST_COUNT = "row2_add", "counts_u8"
_names = [workload.name for workload in WORKLOADS]
_rows_at, _counts_at = _names.index(FIRST_ROW), _names.index(FIRST_COUNT)
SETS = {
    "main": _names[:_rows_at],
    "short rows": _names[_rows_at:_counts_at],
    "integer counts": _names[_counts_at:],
}

Results = dict[str, dict]


def write(is_checked: bool) -> int:
    """Writes the page and the picture, or compares them with the files. Returns the exit code."""
    page, picture = places.ROOT / "docs" / "performance.md", _folder() / "lead.svg"
    results = {name: _read(name, "results.json") for name in MACHINES}
    results = {name: found for name, found in results.items() if found}
    made = {page: _filled(page.read_text(), results), picture: lead(results)}
    stale = [file for file, text in made.items() if not file.is_file() or file.read_text() != text]
    for file in stale:
        if is_checked:
            print(f"{file} differs from the recorded figures; run benches/compare/run.py --page")
        else:
            file.write_text(made[file])
            print(f"written: {file}")
    return int(bool(stale) and is_checked)


def _folder() -> Path:
    return places.ROOT / "docs" / "compare"


def _read(machine: str, name: str) -> dict | None:
    file = _folder() / machine / name
    return json.loads(file.read_text()) if file.is_file() else None


def _filled(text: str, results: Results) -> str:
    """Replaces the text between the markers of each table."""
    for name, table in TABLES.items():
        start, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
        before, rest = text.split(start)
        _, after = rest.split(end, 1)
        text = f"{before}{start}\n{table(results)}\n\n{end}{after}"
    return text


def summary(results: Results) -> str:
    """Geometric means over the workloads of each set, with the slowest workload."""
    lines = []
    for machine, found in results.items():
        for name, workloads in SETS.items():
            for run in found["runs"]:
                cells = [_mean(run, form, workloads) for form in FORMS]
                if any(cell != NONE for cell in cells):
                    lines.append([MACHINES[machine], _version(run, workloads), name, run["threads"], *cells])
    return _table(["machine", "measured", "workloads", "threads", *FORMS], _without_repeats(lines, 3))


def _mean(run: dict, form: str, workloads: list[str]) -> str:
    found = [(ratio(row), row["workload"]) for row in rows(run, "throughput", form)]
    found = [pair for pair in found if pair[0] is not None and pair[1] in workloads]
    if not found:
        return NONE
    least, name = min(found)
    mean = geometric_mean([pair[0] for pair in found])
    return f"**{mean:.2f}** of {len(found)} ({least:.2f} {name})"


def _version(run: dict, workloads: list[str]) -> str:
    """The version and the commits that were measured."""
    found = {row.get("source", "") for row in run["rows"] if row["workload"] in workloads}
    commits = ", ".join(sorted(found - {""}))
    return f"{run['versions'][OURS]} ({commits})"


def workloads(results: Results) -> str:
    """The ratio of each workload, with the largest number of threads."""
    head = ["workload", *(f"{MACHINES[name]}: {form}" for name in _main(results) for form in (INTO, IN_PLACE))]
    lines = []
    for name in SETS["main"]:
        cells = [_peer(found, name, form) for found in _main(results).values() for form in (INTO, IN_PLACE)]
        if any(cell != NONE for cell in cells):
            lines.append([name, *cells])
    return _table(head, lines)


def _main(results: Results) -> Results:
    """The machines whose record has most of the main set with several threads."""
    return {name: found for name, found in results.items() if len(_ratios(found, INTO)) > 10}


def _last_run(found: dict) -> dict:
    return max(found["runs"], key=lambda run: run["threads"])


def _ratios(found: dict, form: str) -> dict[str, float]:
    """The ratios of the main set with the largest number of threads."""
    pairs = {row["workload"]: ratio(row) for row in rows(_last_run(found), "throughput", form)}
    return {name: pairs[name] for name in SETS["main"] if pairs.get(name) is not None}


def _peer(found: dict, workload: str, form: str) -> str:
    for row in rows(_last_run(found), "throughput", form):
        if row["workload"] == workload and ratio(row) is not None:
            return f"{ratio(row):.2f} {best_peer(row)}"
    return NONE


def calls(results: Results) -> str:
    """Small calls: nanoseconds, in place, with the largest number of threads."""
    lines = []
    for machine, found in results.items():
        for row in rows(_last_run(found), "call", IN_PLACE):
            own, peer = ours(row), best_peer(row)
            if own and peer:
                compiled = own.get("compiled", {}).get("min")
                compiled = NONE if compiled is None else f"{compiled:.0f}"
                best = f"{peer} {row['contenders'][peer]['min']:.0f}"
                line = [MACHINES[machine], row["workload"], compiled, f"{own['min']:.0f}", best, f"{ratio(row):.2f}"]
                lines.append(line)
    head = ["machine", "call", "compiled caller, ns", "Python (ctypes), ns", "best peer from Python, ns", "ratio"]
    return _table(head, _without_repeats(lines, 1))


def gradients(_: Results) -> str:
    """Forward passes with both gradients: milliseconds with the largest number of threads."""
    lines = []
    for machine, name in MACHINES.items():
        found = _read(machine, "backward.json")
        for row in _last_run(found)["rows"] if found else []:
            times = {title: figures["min"] for title, figures in row["contenders"].items() if "min" in figures}
            best = {library: _least(times, library) for library in (OURS, "torch", "jax")}
            lead = min(best["torch"], best["jax"]) / best[OURS]
            lines.append([name, row["workload"], *(f"{time * 1e-6:.1f}" for time in best.values()), f"{lead:.2f}"])
    return _table(["machine", "workload", f"{OURS}, ms", "torch, ms", "jax, ms", "ratio"], _without_repeats(lines, 1))


def _least(times: dict[str, float], library: str) -> float:
    return min(time for title, time in times.items() if title.startswith(f"{library}:"))


TABLES: dict[str, Callable[[Results], str]] = {
    "summary": summary,
    "workloads": workloads,
    "calls": calls,
    "gradients": gradients,
}


def _table(head: Iterable, lines: Iterable[Iterable]) -> str:
    head = list(head)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] * len(head), *lines])


def _without_repeats(lines: list[list], columns: int) -> list[list]:
    """Leaves out leading cells that repeat the line above."""
    shown, above = [], [None] * columns
    for line in lines:
        same = True
        cells = list(line)
        for at in range(columns):
            same = same and line[at] == above[at]
            if same:
                cells[at] = ""
        shown.append(cells)
        above = line[:columns]
    return shown


# The picture: widths and heights in pixels.
WIDTH, LABELS, BAR, GAP, TOP, BOTTOM = 760, 130, 11, 7, 46, 34
LEAST, MOST = 0.5, 9.0
COLOURS = ["#c44e52", "#dd8452", "#4c72b0", "#64b5cd"]


def lead(results: Results) -> str:
    """Draws the ratios of the main set, into an existing output, on a logarithmic scale."""
    bars = {MACHINES[name]: _ratios(found, INTO) for name, found in _main(results).items()}
    names = [name for name in SETS["main"] if any(name in one for one in bars.values())]
    row = BAR * len(bars) + GAP
    height = TOP + row * len(names) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for at, machine in enumerate(bars):
        x = LABELS + at * 210
        parts.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{COLOURS[at]}"/>')
        parts.append(f'<text x="{x + 18}" y="22">{escape(machine)}</text>')
    bottom = height - BOTTOM
    for mark in (0.5, 1, 2, 4, 8):
        x, dash = _x(mark), "" if mark == 1 else ' stroke-dasharray="2 3"'
        ends = f'x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"'
        parts.append(f'<line {ends} stroke="black" stroke-width="0.7"{dash}/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{mark:g}</text>')
    title = "time of the best correct runtime / time of ndscatter, two threads"
    parts.append(f'<text x="{LABELS}" y="{bottom + 29}">{title}</text>')
    for line, name in enumerate(names):
        y = TOP + line * row
        middle = y + BAR * len(bars) / 2 + 4
        parts.append(f'<text x="{LABELS - 8}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>')
        for at, values in enumerate(bars.values()):
            if name in values:
                parts += _bar(y + at * BAR, values[name], COLOURS[at])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(value: float) -> float:
    """The position of a ratio on the logarithmic axis."""
    return LABELS + (WIDTH - LABELS - 40) * (log2(value) - log2(LEAST)) / (log2(MOST) - log2(LEAST))


def _bar(y: float, value: float, colour: str) -> list[str]:
    """A bar from 1 to the ratio, with its number."""
    start, end = sorted((_x(1), _x(value)))
    label, anchor = (end + 4, "start") if value >= 1 else (start - 4, "end")
    return [
        f'<rect x="{start:.1f}" y="{y}" width="{max(end - start, 1):.1f}" height="{BAR - 1}" fill="{colour}"/>',
        f'<text x="{label:.1f}" y="{y + BAR - 2}" text-anchor="{anchor}" font-size="10">{value:.2f}</text>',
    ]
