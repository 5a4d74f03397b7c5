"""Formats measured times and rates as tables.

This module computes ratios (the speed of ndscatter divided by the speed of the built-in kernel) and
states their targets (the constants `AIM...`). This module contains no code for timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from compare.oracle import OTHER_WINNER, WRONG

from .measure import BUSY
from .rows import AFTER_COPY
from .sessions import BUILT_IN, NDSCATTER

# Maximum ratio in a geometric mean. A ratio above `CAP` counts as `CAP`.
CAP = 5.0
# Targets. The numbers in `AIMS` are minima of the geometric mean of a table's ratios. The number
# `AIM_WRONG` is the minimum of a ratio if the built-in kernel's result is wrong. The number
# `AIM_SLOWER_US` is the maximum of ndscatter's time minus the built-in time in table C (short
# runs), in microseconds.
AIMS = {"A": 2.0, "B": 1.5, "D": 1.0}
AIM_WRONG = 1.0
AIM_SLOWER_US = 2.0
# Limit of the built-in kernel's node time in table A (data made inside the graph), in nanoseconds.
# A row below this limit counts in no mean. For such a row, the report states ndscatter's node time
# minus the built-in node time.
SHORT_NS = 50_000


def tables(results: dict) -> str:
    """Returns the text of all measured tables, in markdown."""
    rows = results["rows"]
    parts = [_heading(results)]
    makers: dict[str, Callable[[list[dict]], list[str]]] = {
        "A": _produced,
        "B": _into,
        "C": _calls,
        "D": _served,
    }
    for table, make in makers.items():
        if measured := [row for row in rows if table in row]:
            parts.append("\n".join(make(measured)))
    return "\n\n".join(parts) + "\n"


def _heading(results: dict) -> str:
    text = (
        f"onnxruntime {results['onnxruntime']}, ndscatter {results['commit']}. "
        f"{results['machine']} {results['threads']} intra-op threads, {results['rounds']} rounds"
    )
    if not results["spinning"]:
        text += ", threads do not spin"
    if results["told"]:
        text += ", the number of threads is configured"
    if results["quick"]:
        text += ". **Small shapes, to test the harness: the figures have no meaning**"
    return text + "."


# Ratios.


def ratio(row: dict, table: str, of: str = "run", figure: str = "min") -> float:
    """Returns the built-in time divided by ndscatter's time. For table D (four concurrent
    sessions), returns ndscatter's median rate of runs divided by the built-in median rate. A ratio
    above 1 means that ndscatter is faster."""
    found = row[table]
    if table == "D":
        rates = [found[name]["runs a second"]["median"] for name in (NDSCATTER, BUILT_IN)]
        return rates[0] / rates[1]
    taken = [found[name][of][figure] for name in (BUILT_IN, NDSCATTER)]
    return taken[0] / taken[1]


def is_short(row: dict) -> bool:
    """Whether the built-in kernel's minimum node time is less than `SHORT_NS` in table A (data made
    inside the graph). Such a row counts in no mean. The report states ndscatter's node time minus
    the built-in node time."""
    return row["A"][BUILT_IN]["node"]["min"] < SHORT_NS


def is_wrong(row: dict) -> bool:
    return row["verdicts"][BUILT_IN]["status"] == WRONG


def mean(ratios: Iterable[float]) -> float:
    """Returns the geometric mean of the ratios. A ratio above `CAP` counts as `CAP`."""
    logarithms = [math.log(min(one, CAP)) for one in ratios]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def _means(rows: list[dict], table: str, ratios: Callable[[dict], float]) -> list[str]:
    right = [row for row in rows if not is_wrong(row)]
    wrong = [row for row in rows if is_wrong(row)]
    aim = AIMS[table]
    parts = []
    groups = {
        "all rows": right,
        "changing indices": [row for row in right if not row["constant"]],
        "constant indices": [row for row in right if row["constant"]],
    }
    for name, group in groups.items():
        if group:
            parts.append(f"{name} {mean(map(ratios, group)):.2f} ({len(group)})")
    lines = [f"Geometric means, each ratio capped at {CAP:g}, aim {aim}: {', '.join(parts)}."]
    if right:
        worst = min(right, key=ratios)
        lines.append(f"Worst: {worst['name']}, {ratios(worst):.2f}.")
    if wrong:
        worst = min(wrong, key=ratios)
        lines.append(
            f"{len(wrong)} rows with a wrong built-in result are not in the means; aim {AIM_WRONG}, "
            f"worst {worst['name']}, {ratios(worst):.2f}."
        )
    return ["", " ".join(lines)]


# Cells.


def _ms(taken: dict) -> str:
    return f"{taken['min'] / 1e6:.2f} ({taken['median'] / 1e6:.2f})"


def _us(taken: dict) -> str:
    return f"{taken['min'] / 1e3:.2f} ({taken['median'] / 1e3:.2f})"


def _name(row: dict, found: dict) -> str:
    marks = ""
    if is_wrong(row):
        marks += " **wrong**"
    if row["verdicts"][BUILT_IN]["status"] == OTHER_WINNER:
        marks += " *other winner*"
    if found["others"] > BUSY:
        marks += f" ({found['others']:.1f} busy)"
    return row["name"] + marks


def _grid(heads: list[str], lines: Iterable[list[str]]) -> list[str]:
    texts = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return texts + ["| " + " | ".join(line) + " |" for line in lines]


# Tables.


def _produced(rows: list[dict]) -> list[str]:
    long = [row for row in rows if not is_short(row)]
    short = [row for row in rows if is_short(row)]

    def line(row: dict) -> list[str]:
        found = row["A"]
        built_in, ours = found[BUILT_IN], found[NDSCATTER]
        return [
            _name(row, found),
            row["operator"],
            _ms(built_in["node"]),
            _ms(ours["node"]),
            f"**{ratio(row, 'A', 'node'):.2f}**",
            f"{ratio(row, 'A', 'node', 'median'):.2f}",
            _ms(ours["producer"]),
            _ms(built_in["run"]),
            _ms(ours["run"]),
            f"{ratio(row, 'A', 'run'):.2f}",
        ]

    heads = ["row", "operator", "node: built-in", "ndscatter", "ratio", "of medians", "producer"]
    heads += ["run: built-in", "ndscatter", "ratio"]
    return [
        "## A: data made inside the graph",
        "",
        "Milliseconds, minimum (median).",
        "",
        *_grid(heads, map(line, rows)),
        *(_means(long, "A", lambda row: ratio(row, "A", "node")) if long else []),
        *_short_nodes(short),
    ]


def _short_nodes(rows: list[dict]) -> list[str]:
    if not rows:
        return []
    differences = []
    for row in rows:
        nodes = [row["A"][name]["node"]["min"] / 1e3 for name in (NDSCATTER, BUILT_IN)]
        differences.append(f"{row['name']} {nodes[0] - nodes[1]:+.0f} µs")
    limit = f"{SHORT_NS / 1e3:g} µs"
    what = f"Rows with a built-in node time below {limit} are in no mean. ndscatter minus built-in"
    return ["", f"{what}: {', '.join(differences)}."]


def _into(rows: list[dict]) -> list[str]:
    def line(row: dict) -> list[str]:
        found = row["B"]
        return [
            _name(row, found),
            row["operator"],
            _ms(found[BUILT_IN]["run"]),
            _ms(found[NDSCATTER]["run"]),
            f"**{ratio(row, 'B'):.2f}**",
            f"{ratio(row, 'B', figure='median'):.2f}",
        ]

    heads = ["row", "operator", "built-in", "ndscatter", "ratio", "of medians"]
    return [
        "## B: data is an input",
        "",
        "Milliseconds of a run, minimum (median).",
        "",
        *_grid(heads, map(line, rows)),
        *_means(rows, "B", lambda row: ratio(row, "B")),
    ]


def _calls(rows: list[dict]) -> list[str]:
    lines, slower = [], {True: [], False: []}
    for row in rows:
        for form, found in row["C"].items():
            built_in, ours = found[BUILT_IN]["run"], found[NDSCATTER]["run"]
            difference = (ours["min"] - built_in["min"]) / 1e3
            slower[form == AFTER_COPY].append((difference, f"{row['name']}, {form}"))
            lines.append(
                [
                    _name(row, found),
                    form,
                    row["operator"],
                    _us(built_in),
                    _us(ours),
                    f"**{difference:+.2f}**",
                    f"{found['slower'] / 1e3:+.2f}",
                ]
            )
    heads = ["row", "form", "operator", "built-in", "ndscatter", "difference", "of pairs"]
    return [
        "## C: short runs",
        "",
        "Microseconds of a run from Python, minimum (median). After a copy: of the node only. The "
        "columns of differences: of the minima, and the median difference of adjacent samples.",
        "",
        *_grid(heads, lines),
        "",
        _slowest(slower[False], f"aim at most {AIM_SLOWER_US:+}"),
        *([_slowest(slower[True], "after a copy, without an aim")] if slower[True] else []),
    ]


def _slowest(differences: list[tuple[float, str]], what: str) -> str:
    difference, name = max(differences)
    return f"Slowest compared with the built-in ({what}): {name}, {difference:+.2f} µs."


def _served(rows: list[dict]) -> list[str]:
    def line(row: dict) -> list[str]:
        found = row["D"]
        rates = [found[name]["runs a second"] for name in (BUILT_IN, NDSCATTER)]
        return [
            _name(row, found),
            row["operator"],
            *(f"{rate['median']:.1f} ({rate['max']:.1f})" for rate in rates),
            f"**{ratio(row, 'D'):.2f}**",
        ]

    return [
        "## D: four concurrent sessions",
        "",
        "Runs per second of all four together, median (maximum).",
        "",
        *_grid(["row", "operator", "built-in", "ndscatter", "ratio"], map(line, rows)),
        *_means(rows, "D", lambda row: ratio(row, "D")),
    ]
