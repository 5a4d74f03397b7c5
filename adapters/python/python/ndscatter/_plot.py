"""A bar chart of ratios between two times. Requires matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def processor() -> str:
    """Return the name of the processor, for the title of a chart."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def find_pyplot() -> Any:
    """Return the module `matplotlib.pyplot`, or end the program with a message that it is missing."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise SystemExit('a plot needs matplotlib: pip install "ndscatter[plot]"') from None
    return pyplot


def plot(ratios: list[tuple[str, float]], label: str, title: str, file: str) -> None:
    """Save a chart with one bar per name to `file`.

    A ratio is the other library's time divided by ndscatter's time. The axis is logarithmic, so
    that a large ratio does not hide the others. A bar is red if its ratio is below 1, so if
    ndscatter is slower.
    """
    pyplot = find_pyplot()
    pyplot.rcParams["svg.fonttype"] = "none"
    names, values = zip(*reversed(ratios), strict=True)
    figure, axes = pyplot.subplots(figsize=(8, 0.2 * len(names) + 1.1), layout="constrained")
    colours = ["tab:blue" if ratio >= 1 else "tab:red" for ratio in values]
    bars = axes.barh(range(len(names)), [ratio - 1 for ratio in values], left=1, color=colours)
    axes.bar_label(bars, [f"{ratio:.2f}" for ratio in values], fontsize=6, padding=2)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.margins(y=0.01)
    axes.set_xscale("log")
    low, high = min(0.5, *values) * 0.9, max(2, *values) * 1.5
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", linewidth=0.3)
    axes.set_xlabel(label)
    axes.set_title(title, fontsize=9)
    axes.axvline(1, color="black", linewidth=0.8)
    figure.savefig(file)
