"""A bar chart of ratios between two times. Requires matplotlib."""

from __future__ import annotations


def plot(ratios: list[tuple[str, float]], label: str, file: str) -> None:
    """Save a chart with one bar per name to `file`. A ratio is the other library's time divided by
    ndscatter's time. A bar is red if its ratio is below 1, so if ndscatter is slower."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.fonttype"] = "none"
    bars = ratios[::-1]
    figure, axes = pyplot.subplots(figsize=(8, 0.2 * len(bars) + 0.8), layout="constrained")
    colours = ["tab:blue" if ratio >= 1 else "tab:red" for _, ratio in bars]
    axes.barh(range(len(bars)), [ratio - 1 for _, ratio in bars], left=1, color=colours)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=7)
    axes.margins(y=0.01)
    axes.set_xscale("log")
    ticks = (0.5, 1, 2, 5, 10, 20, 50)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", linewidth=0.3)
    axes.set_xlabel(label)
    axes.axvline(1, color="black", linewidth=0.8)
    figure.savefig(file)
