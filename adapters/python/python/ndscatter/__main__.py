"""``python -m ndscatter``: the installed version, a self test, and a comparison with numpy."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ndscatter
from ndscatter._plot import find_pyplot, plot, processor

#: Duration of the self test, in seconds.
TEST_SECONDS = 2.0
#: Duration of one measurement, in seconds. Each operation is measured twice: with numpy and with
#: ndscatter.
TIMING_SECONDS = 0.2

Row = tuple[str, float, float]


def describe() -> None:
    """Print the versions of ndscatter, Python and numpy, and properties of the machine."""
    print(f"ndscatter {ndscatter.__version__}")
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print(f"instruction set: {ndscatter.instruction_set()}")
    print(f"threads: {ndscatter.threads()}")
    print(f"machine: {ndscatter.machine()}")


def self_test() -> None:
    """Check for TEST_SECONDS that random calls of ndscatter give numpy's results."""
    random = np.random.default_rng(0)
    end = time.perf_counter() + TEST_SECONDS
    cases = 0
    while time.perf_counter() < end:
        check_one(random)
        cases += 1
    print(f"self test: {cases} random calls give numpy's results")


def check_one(random: np.random.Generator) -> None:
    """Check one random sum or product of rows against numpy: the elements must be equal.

    ndscatter computes the result three times: by a one-shot call on all threads, by a one-shot
    call on one thread, and by a plan.
    """
    rows, width, count = (int(n) for n in random.integers(1, [2000, 20, 4000]))
    name, reduction = (("add", "add"), ("multiply", "mul"))[int(random.integers(2))]
    dtype = ("f4", "f8", "i4", "u1")[int(random.integers(4))]
    data = (random.standard_normal((rows, width)) * 9).astype("i4").astype(dtype)
    updates = (random.standard_normal((count, width)) * 9).astype("i4").astype(dtype)
    indices = random.integers(-rows, rows, count)
    expected = data.copy()
    with np.errstate(all="ignore"):
        getattr(np, name).at(expected, indices, updates)
    plan = ndscatter.plan_scatter_update(data.shape, indices, reduction=reduction)
    for result in (
        ndscatter.scatter_update(data, indices, updates, reduction=reduction),
        ndscatter.scatter_update(data, indices, updates, reduction=reduction, threads=1),
        plan(data, updates),
    ):
        if not np.array_equal(result, expected, equal_nan=dtype[0] == "f"):
            raise SystemExit(f"self test: {reduction} of {dtype} differs from numpy's result")


def seconds(call: Callable[[], Any]) -> float:
    """Return the shortest time of repeated calls, in seconds."""
    best = float("inf")
    end = time.perf_counter() + TIMING_SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def compare() -> list[Row]:
    """Measure operations with numpy and with ndscatter.

    Returns one row per operation: name, numpy's time and ndscatter's time, in seconds.
    """
    random = np.random.default_rng(1)
    table = np.zeros((100_000, 32), np.float32)
    rows = random.integers(0, len(table), 50_000)
    messages = random.standard_normal((len(rows), 32)).astype(np.float32)
    bins = np.zeros(4096)
    keys = random.integers(0, len(bins), 1_000_000)
    weights = random.standard_normal(len(keys))
    pixels = np.zeros((512, 512), np.float32)
    y, x = random.integers(0, 512, (2, 500_000))
    light = random.standard_normal(len(x)).astype(np.float32)

    def assign() -> None:
        table[rows] = messages

    cases: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        (
            "add rows of 32 floats: np.add.at",
            lambda: np.add.at(table, rows, messages),
            lambda: ndscatter.add_at(table, rows, messages),
        ),
        (
            "write rows of 32 floats: table[rows] = ..",
            assign,
            lambda: ndscatter.scatter_update(table, rows, messages, out=table),
        ),
        ("read rows of 32 floats: table[rows]", lambda: table[rows], lambda: ndscatter.gather(table, rows)),
        (
            "add points to an image: np.add.at",
            lambda: np.add.at(pixels, (y, x), light),
            lambda: ndscatter.add_at(pixels, (y, x), light),
        ),
        (
            "maximum of each group: np.maximum.at",
            lambda: np.maximum.at(bins, keys, weights),
            lambda: ndscatter.maximum_at(bins, keys, weights),
        ),
        ("count: np.bincount", lambda: np.bincount(keys), lambda: ndscatter.bincount(keys)),
        (
            "sum by group: np.bincount",
            lambda: np.bincount(keys, weights),
            lambda: ndscatter.bincount(keys, weights),
        ),
    ]
    return [(name, seconds(theirs), seconds(ours)) for name, theirs, ours in cases]


def print_table(rows: list[Row]) -> None:
    """Print one line per measured operation: name, numpy's time, ndscatter's time and a ratio.

    The ratio is numpy's time divided by ndscatter's time.
    """
    width = max(len(name) for name, _, _ in rows)
    print(f"\n{'':{width}}  {'numpy':>9}  {'ndscatter':>9}  ratio")
    for name, theirs, ours in rows:
        print(f"{name:{width}}  {theirs * 1e3:6.2f} ms  {ours * 1e3:6.2f} ms  {theirs / ours:5.1f}")


def draw(rows: list[Row], path: str) -> None:
    """Save a chart with one bar per operation: numpy's time divided by ndscatter's time."""
    ratios = [(name, theirs / ours) for name, theirs, ours in rows]
    title = f"{processor()}, {ndscatter.threads()} threads"
    plot(ratios, "numpy's time / ndscatter's time", title, path)
    print(f"plot: {path}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m ndscatter", description=__doc__)
    parser.add_argument("--plot", metavar="FILE", help="draw the comparison, with matplotlib (the extra `plot`)")
    parser.add_argument("--version", action="version", version=f"ndscatter {ndscatter.__version__}")
    options = parser.parse_args(arguments)
    if options.plot:
        find_pyplot()  # A missing matplotlib is an error before the measurements.
    describe()
    self_test()
    rows = compare()
    print_table(rows)
    if options.plot:
        draw(rows, options.plot)


if __name__ == "__main__":
    main(sys.argv[1:])
