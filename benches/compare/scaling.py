"""Draws the points of `cargo bench --bench scaling -- --json PATH`, one SVG per sweep.

    python3 benches/compare/scaling.py PATH FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

Point = dict[str, Any]

# Equal points give equal files.
STYLE = {
    "svg.hashsalt": "ndscatter",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

MARKERS = {
    "serial": "o",
    "by batch": "<",
    "by tuple": ">",
    "last write": "^",
    "by column": "s",
    "by destination": "D",
    "by partition": "v",
    "grouped": "X",
    "private": "*",
}
DASHES = ["-", "--", "-.", ":"]


class Axis(NamedTuple):
    """An axis: its label, and the function that computes the value of a point."""

    label: str
    of: Callable[[Point], float]


PER_TUPLE = Axis("nanoseconds per tuple", lambda point: point["median_ns"] / point["tuples"])
PER_BYTE = Axis("nanoseconds per moved byte", lambda point: point["median_ns"] / point["bytes"])
THROUGHPUT = Axis("gigabytes per second", lambda point: point["bytes"] / point["median_ns"])

# Label of x and axis of y, for each first word of a sweep's name.
AXES = {
    "tuples": ("tuples", PER_TUPLE),
    "window": ("bytes of a window", PER_BYTE),
    "width": ("bytes of a window", PER_BYTE),
    "duplicates": ("tuples per destination", PER_TUPLE),
    "data": ("bytes of data", PER_BYTE),
    "workers": ("workers", THROUGHPUT),
}


def draw(json_path: str | Path, out_dir: str | Path) -> list[Path]:
    """Writes `scaling-<sweep>.svg` for each sweep among the points. Returns the files."""
    points: list[Point] = json.loads(Path(json_path).read_text())
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _draw_sweep(sweep, list(of_sweep), folder)
        for sweep, of_sweep in groupby(points, key=lambda point: point["sweep"])
    ]


def _draw_sweep(sweep: str, points: list[Point], folder: Path) -> Path:
    x_label, y = AXES[sweep.split("_")[0]]
    with matplotlib.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
        _draw_lines(axes, y, points)
        _explain_markers(axes, points)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel=x_label, ylabel=y.label)
        axes.set_title(sweep.replace("_", " "), loc="left")
        path = folder / f"scaling-{sweep}.svg"
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return path


def _draw_lines(axes: Axes, y: Axis, points: list[Point]) -> None:
    """Draws the lines. The colour shows form and reduction, the dash shows the number of workers
    (unless that is x), and the marker shows the schedule."""
    lines: dict[tuple, list[Point]] = {}
    for point in points:
        workers = None if point["sweep"].startswith("workers") else point["workers"]
        lines.setdefault((point["form"], point["reduction"], workers), []).append(point)
    calls = list(dict.fromkeys(key[:2] for key in lines))
    counts = list(dict.fromkeys(key[2] for key in lines))
    for (form, reduction, workers), line in lines.items():
        color = f"C{calls.index((form, reduction))}"
        dash = DASHES[counts.index(workers) % len(DASHES)]
        label = f"{form}, {reduction}" + (f", {workers} worker(s)" if workers else "")
        xs, ys = [point["x"] for point in line], [y.of(point) for point in line]
        axes.plot(xs, ys, dash, color=color, linewidth=1, label=label)
        for point, x, value in zip(line, xs, ys, strict=True):
            axes.plot(x, value, MARKERS[point["schedule"]], color=color, markersize=4)


def _explain_markers(axes: Axes, points: list[Point]) -> None:
    """Adds the legend: first the lines, then the schedules that occur."""
    for schedule, marker in MARKERS.items():
        if any(point["schedule"] == schedule for point in points):
            axes.plot([], [], marker, color="grey", markersize=4, label=schedule)
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


if __name__ == "__main__":
    for written in draw(*sys.argv[1:3]):
        print(written)
