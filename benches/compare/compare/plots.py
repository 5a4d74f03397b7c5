"""Draws the plots: ratios to the best correct peer, and shares of the roof."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .results import ratio, rows, share
from .words import INTO, IN_PLACE

# Equal results give equal files, without a date and without random names of elements.
plt.rcParams.update(
    {
        "svg.hashsalt": "ndscatter",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)

_FORMS = {INTO: ("functional", "#1f77b4"), IN_PLACE: ("in place", "#ff7f0e")}


def draw(results: dict, folder: Path) -> list[str]:
    """Draws both plots for the largest number of threads. Returns the names of the files."""
    if not results["runs"]:
        return []
    run = results["runs"][-1]
    _bars(run, ratio, folder / "ratios.svg", _ratio_axis)
    _bars(run, share, folder / "roof.svg", _share_axis)
    return ["ratios.svg", "roof.svg"]


def draw_brief(results: dict, folder: Path) -> list[str]:
    """Draws the plot of `--brief`. Returns the name of the file."""
    _bars(results["runs"][-1], ratio, folder / "brief.svg", _ratio_axis)
    return ["brief.svg"]


def _bars(run: dict, figure_of, path: Path, dress) -> None:
    found = {form: {} for form in _FORMS}
    for form in _FORMS:
        for row in rows(run, "throughput", form):
            if (value := figure_of(row)) is not None:
                found[form][row["workload"]] = value
    # In the order of the workloads.
    names = [row["workload"] for row in rows(run, "throughput")]
    names = [name for name in dict.fromkeys(names) if any(name in one for one in found.values())]
    if not names:
        return
    figure, axes = plt.subplots(figsize=(7, 0.9 + 0.36 * len(names)), layout="constrained")
    for at, (form, (label, color)) in enumerate(_FORMS.items()):
        pairs = [(names.index(name), value) for name, value in found[form].items()]
        places = [place + 0.38 * (at - 0.5) for place, _ in pairs]
        bars = axes.barh(places, [value for _, value in pairs], 0.36, label=label, color=color)
        dress(axes, bars)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)
    axes.set_title(f"{run['threads']} threads", loc="right", fontsize=9)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def _ratio_axis(axes, bars) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("time of the best correct peer / time of ndscatter")
    for at in (1, 2):
        axes.axvline(at, color="black", linewidth=0.8, linestyle="-" if at == 1 else ":", zorder=0)
    axes.bar_label(bars, fmt="{:.2f}", padding=2, fontsize=7)
    _, most = axes.get_xlim()
    axes.set_xlim(0.5, max(most, 4))
    axes.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 4, 8, 16]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _share_axis(axes, bars) -> None:
    axes.set_xlabel("minimum time to move the bytes / time of ndscatter")
    axes.axvline(1, color="black", linewidth=0.8, zorder=0)
    axes.bar_label(bars, fmt="{:.0%}", padding=2, fontsize=7)
    axes.set_xlim(0, max(1.2, axes.get_xlim()[1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
