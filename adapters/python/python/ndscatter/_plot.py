"""Bar charts of ratios between two times, and of the parts of times. They require matplotlib, which
the extra `plot` installs."""

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


def plot_stacked(
    panels: dict[str, dict[str, dict[str, float]]],
    totals: dict[str, float],
    labels: tuple[str, str],
    title: str,
    file: str,
) -> None:
    """Save a chart of milliseconds to `file`. Each panel has one stacked bar per name, and each bar has
    the same parts. `totals` has the height of a line for the key ``f"{panel}, {name}"``. `labels` are
    those of the names and of the lines.
    """
    pyplot = find_pyplot()
    # Equal results give equal files.
    pyplot.rcParams.update({"svg.hashsalt": "ndscatter", "svg.fonttype": "none", "font.size": 9})
    figure, axes = pyplot.subplots(1, len(panels), figsize=(9, 3.4), layout="constrained", squeeze=False)
    for axis, (panel, bars) in zip(axes[0], panels.items(), strict=True):
        bottoms = [0.0] * len(bars)
        for part in next(iter(bars.values())):
            heights = [bar[part] for bar in bars.values()]
            axis.bar(list(bars), heights, bottom=bottoms, label=part, width=0.6)
            bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
        for at, name in enumerate(bars):
            label = labels[1] if at == 0 else None
            axis.hlines(totals[f"{panel}, {name}"], at - 0.4, at + 0.4, colors="black", label=label)
        axis.set(title=panel, xlabel=labels[0], ylabel="ms")
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(title)
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)
