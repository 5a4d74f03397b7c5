"""Benchmark of scatters, gathers and counts: numpy compared with ndscatter.

    python bench/arrays.py                      # all workloads except calls on 4 elements
    python bench/arrays.py --threads 1 --only bincount
    python bench/arrays.py --plot ratios.svg    # also save a bar chart; needs matplotlib
    python bench/arrays.py --calls              # only calls on 4 elements, in nanoseconds

A ratio is numpy's time divided by ndscatter's time. Each round measures numpy, then ndscatter. A reported
time is the minimum over the rounds. Before a workload is measured, the benchmark checks that numpy's result
and ndscatter's result are equal element for element. If the two results differ, the benchmark stops.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import ndscatter as nd
from ndscatter._plot import plot, processor

#: Names of the workloads of docs/performance.md that this benchmark measures. The table of this
#: benchmark also has gathers, counts, and scatters of single elements at other sizes.
WORKLOADS = frozenset(
    "small_add kv_decode kv_prefill emb_update emb_grad_add gnn_add gnn_max moe_add voxel_max elem_unique"
    " elem_random_add histogram_add seed_nd seed_update".split()
)

Array = npt.NDArray[Any]
Call = Callable[[], Any]


@dataclass
class Pair:
    """A workload: a call of numpy (`theirs`) and a call of ndscatter (`ours`) that computes the same result.
    Both functions return their result. `numpy` is the text of numpy's call, for the table."""

    name: str
    numpy: str
    theirs: Call
    ours: Call


#: A function without arguments that makes a `Pair`: a `partial` that binds all arguments. The first bound
#: argument is the name of the pair.
Workload = partial[Pair]


@dataclass
class Row:
    name: str
    numpy: str
    theirs: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def is_workload(self) -> bool:
        return self.name.split(",")[0] in WORKLOADS


def assigned(data: Array, index: Any, updates: Array) -> Array:
    data[index] = updates
    return data


def copied(data: Array, index: Any, updates: Array) -> Array:
    return assigned(data.copy(), index, updates)


def reduced(ufunc: np.ufunc, data: Array, index: Any, updates: Array) -> Array:
    ufunc.at(data, index, updates)
    return data


def reduced_by_us(at: Callable[..., None], data: Array, index: Any, updates: Array, threads: int) -> Array:
    at(data, index, updates, threads=threads)
    return data


def zipf(rng: np.random.Generator, rows: int, count: int) -> Array:
    weights = np.cumsum(np.arange(1, rows + 1, dtype=float) ** -1.2)
    picks = np.searchsorted(weights, rng.random(count) * weights[-1])
    picked: Array = rng.permutation(rows)[picks]
    return picked


def normal(rng: np.random.Generator, *shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return rng.standard_normal(shape, np.float32).astype(dtype, copy=False)


def at(name: str, ufunc: np.ufunc, ours: Callable[..., None], data: Array, index: Any, updates: Array, threads: int) -> Pair:
    """Return a `Pair` of two calls that reduce `updates` into an array in place. The first call is
    numpy's `ufunc.at`, which writes to `data`. The second call is ndscatter's function `ours`, which
    writes to a copy of `data`."""
    mine = data.copy()
    return Pair(
        name,
        f"np.{ufunc.__name__}.at",
        lambda: reduced(ufunc, data, index, updates),
        lambda: reduced_by_us(ours, mine, index, updates, threads),
    )


def assign(name: str, data: Array, index: Any, updates: Array, ours: Callable[..., Array]) -> Pair:
    """Return a `Pair` of two calls that assign `updates` to elements of an array in place. The first
    call is numpy's `data[index] = updates`. The second call is `ours`, a function that calls ndscatter.
    The argument of `ours` is the array that ndscatter writes to: a copy of `data`."""
    mine = data.copy()
    return Pair(name, "a[i] = u", lambda: assigned(data, index, updates), lambda: ours(mine))


def rows(threads: int) -> Iterator[Workload]:
    """Yield workloads that reduce updates into rows of a table, or assign rows of a table, in place."""
    rng = np.random.default_rng(7)

    def adds(name: str, shape: tuple[int, int], index: Callable[[], Array]) -> Pair:
        places = index()
        return at(name, np.add, nd.add_at, normal(rng, *shape), places, normal(rng, len(places), shape[1]), threads)

    def maxima(name: str, shape: tuple[int, int], count: int, fill: float) -> Pair:
        data, places = np.full(shape, fill, np.float32), rng.integers(0, shape[0], count)
        return at(name, np.maximum, nd.maximum_at, data, places, normal(rng, count, shape[1]), threads)

    def table(name: str, shape: tuple[int, int], count: int) -> Pair:
        index, updates = rng.permutation(shape[0])[:count], normal(rng, count, shape[1])
        ours = lambda out: nd.scatter_update(out, index, updates, out=out, threads=threads)
        return assign(name, normal(rng, *shape), index, updates, ours)

    shuffled = lambda: rng.permutation(np.repeat(np.arange(2048), 4))
    yield partial(adds, "small_add", (256, 64), lambda: rng.integers(0, 256, 128))
    yield partial(table, "emb_update", (500_000, 64), 65_536)
    yield partial(adds, "emb_grad_add", (200_000, 64), lambda: zipf(rng, 200_000, 262_144))
    yield partial(adds, "gnn_add", (169_343, 64), lambda: rng.integers(0, 169_343, 1_166_243))
    yield partial(maxima, "gnn_max", (169_343, 64), 1_166_243, 0.0)
    yield partial(adds, "moe_add", (2048, 2048), shuffled)
    yield partial(maxima, "voxel_max", (100_000, 64), 400_000, -math.inf)


def tensors(threads: int) -> Iterator[Workload]:
    """Yield workloads that assign slices at tuples of coordinates, in place and into a copy of the data.
    The last workload, `seed_update`, assigns slices along one axis, in place."""
    rng = np.random.default_rng(8)

    def nd_pair(name: str, shape: tuple[int, ...], coordinates: Call) -> Pair:
        index = tuple(coordinates())
        tuples = np.stack(index, axis=-1)
        updates, data = normal(rng, *index[0].shape, *shape[len(index) :]), normal(rng, *shape)
        if name.endswith("copied"):
            theirs: Call = lambda: copied(data, index, updates)
            ours: Call = lambda: nd.scatter_nd(data, tuples, updates, threads=threads)
            return Pair(name, "b = a.copy(); b[i] = u", theirs, ours)
        return assign(name, data, index, updates, lambda out: nd.scatter_nd(out, tuples, updates, out=out, threads=threads))

    decode = lambda: (np.arange(16), rng.integers(0, 2048, 16))
    prefill = lambda: np.broadcast_arrays(np.arange(4)[:, None], np.arange(100, 2148)[None])
    seed = lambda: np.unravel_index(rng.permutation(1000 * 256 * 10)[:3125].reshape(25, 125), (1000, 256, 10))
    one = lambda: (rng.permutation(500_000)[:65_536],)
    for kind in ("", ", copied"):
        yield partial(nd_pair, f"kv_decode{kind}", (16, 2048, 1024), decode)
        yield partial(nd_pair, f"kv_prefill{kind}", (4, 4096, 1024), prefill)
        yield partial(nd_pair, f"seed_nd{kind}", (1000, 256, 10, 15), seed)
    yield partial(nd_pair, "emb_update, copied", (500_000, 64), one)

    def seed_update(name: str) -> Pair:
        index = rng.permutation(256)[:125].reshape(5, 25)
        data, updates = normal(rng, 100, 256, 10, 15), normal(rng, 100, 5, 25, 10, 15)
        ours = lambda out: nd.scatter_update(out, index, updates, axis=1, out=out, threads=threads)
        pair = assign(name, data, (slice(None), index), updates, ours)
        return Pair(pair.name, "a[:, i] = u", pair.theirs, pair.ours)

    yield partial(seed_update, "seed_update")


def elements(threads: int) -> Iterator[Workload]:
    """Yield workloads that assign or add single elements of a vector, in place."""
    rng = np.random.default_rng(9)

    def places(name: str, size: int, index: Callable[[], Array], dtype: npt.DTypeLike = np.float32) -> Pair:
        places = index()
        updates = normal(rng, len(places), dtype=dtype)
        ours = lambda out: nd.scatter_update(out, places, updates, out=out, threads=threads)
        return assign(name, np.zeros(size, dtype), places, updates, ours)

    def sums(name: str, size: int, count: int, dtype: npt.DTypeLike = np.float32) -> Pair:
        index, updates = rng.integers(0, size, count), normal(rng, count, dtype=dtype)
        return at(name, np.add, nd.add_at, np.zeros(size, dtype), index, updates, threads)

    million = 1_000_000
    anywhere = lambda: rng.integers(0, million, million)
    yield partial(places, "elem_unique", 1 << 24, lambda: rng.permutation(1 << 24)[: 1 << 22])
    yield partial(sums, "elem_random_add", 1 << 24, 1 << 22)
    yield partial(sums, "histogram_add", 1024, 1 << 22)
    yield partial(places, "assign 1M f32", million, anywhere)
    yield partial(places, "assign 1M f64", million, anywhere, np.float64)
    yield partial(sums, "add 1M f64, 4096 places", 4096, million, np.float64)
    yield partial(sums, "add 1M f64, 250k places", 250_000, million, np.float64)


def counts(threads: int) -> Iterator[Workload]:
    """Yield workloads that compare `np.bincount` with `ndscatter.bincount`, without and with weights."""
    rng = np.random.default_rng(10)

    def count(name: str, bins: int, length: int, weighted: bool) -> Pair:
        numbers = rng.integers(0, bins, length)
        weights = normal(rng, length, dtype=np.float64) if weighted else None
        called = "np.bincount(i, w)" if weighted else "np.bincount(i)"
        theirs = lambda: np.bincount(numbers, weights)
        return Pair(name, called, theirs, lambda: nd.bincount(numbers, weights, threads=threads))

    for weighted in (False, True):
        kind = ", weights" if weighted else ""
        yield partial(count, f"histogram_add, bincount{kind}", 1024, 1 << 22, weighted)
        for bins in (1024, 4096, 65_536, 250_000):
            yield partial(count, f"bincount 1M, {bins} bins{kind}", bins, 1_000_000, weighted)
        yield partial(count, f"bincount 2000, 100 bins{kind}", 100, 2000, weighted)


def gathers(threads: int) -> Iterator[Workload]:
    """Yield workloads that gather rows of a table or single elements of a vector."""
    rng = np.random.default_rng(11)

    def take(name: str, called: str, shape: tuple[int, ...], count: int) -> Pair:
        dtype = np.float64 if len(shape) == 1 else np.float32
        data, index = normal(rng, *shape, dtype=dtype), rng.integers(0, shape[0], count)
        theirs: Call = (lambda: data[index]) if called == "a[i]" else (lambda: np.take(data, index, axis=0))
        return Pair(name, called, theirs, lambda: nd.gather(data, index, threads=threads))

    for called in ("a[i]", "np.take"):
        for count in (2_000, 16_000, 130_000, 1_000_000):
            yield partial(take, f"gather {count} f64", called, (max(count, 4096),), count)
        yield partial(take, "gather 65536 rows of 64", called, (500_000, 64), 65_536)


def small(threads: int) -> Iterator[Workload]:
    """Yield the workload `tiny` and other calls with 4 indices. Only `--calls` measures these calls, so
    the geometric means of the ratios do not include these calls."""
    data, index, updates = np.zeros(8, np.float32), np.array([1, 7, 3, 1]), np.ones(4, np.float32)
    tuples, square = index[:, None].copy(), np.zeros((4, 2), np.float32)
    pair = (index % 4, index % 2)
    set_nd = lambda out: nd.scatter_nd(out, tuples, updates, out=out, threads=threads)
    update = lambda out: nd.scatter_update(out, index, updates, out=out, threads=threads)
    yield partial(assign, "tiny", data, index, updates, set_nd)
    yield partial(assign, "tiny, scatter_update", data, index, updates, update)
    yield partial(at, "tiny, add_at", np.add, nd.add_at, data, index, updates, threads)
    yield partial(at, "tiny, maximum_at", np.maximum, nd.maximum_at, data, index, updates, threads)
    yield partial(at, "tiny, add_at of pairs", np.add, nd.add_at, square, pair, updates, threads)
    count, take = lambda: nd.bincount(index, threads=threads), lambda: nd.gather(data, index, threads=threads)
    yield partial(Pair, "tiny, bincount", "np.bincount(i)", lambda: np.bincount(index), count)
    yield partial(Pair, "tiny, gather", "a[i]", lambda: data[index], take)
    yield partial(Pair, "tiny, gather", "np.take", lambda: np.take(data, index), take)


def timed(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def compare(pair: Pair, rounds: int, budget: float) -> Row:
    """Return a `Row` with numpy's time and ndscatter's time: minima over at most `rounds` rounds. The
    measurement stops before the last round if `budget` seconds have passed and 4 rounds are done."""
    if not np.array_equal(pair.theirs(), pair.ours()):
        raise SystemExit(f"{pair.name}: the results differ")
    once = max(timed(pair.theirs, 1), timed(pair.ours, 1))
    repeats = max(1, min(2000, int(0.002 / once)))
    best, end = [math.inf, math.inf], time.perf_counter() + budget
    for number in range(rounds):
        best[0] = min(best[0], timed(pair.theirs, repeats))
        best[1] = min(best[1], timed(pair.ours, repeats))
        if number >= 3 and time.perf_counter() > end:
            break
    return Row(pair.name, pair.numpy, *best)


def summary(name: str, found: list[Row]) -> None:
    if found:
        mean = math.exp(sum(math.log(row.ratio) for row in found) / len(found))
        least = min(found, key=lambda row: row.ratio)
        print(f"{name}, {len(found)}: geometric mean {mean:.2f}, minimum {least.ratio:.2f} ({least.name})")


def table(workloads: Iterator[Workload], options: argparse.Namespace) -> list[Row]:
    found = []
    print("| workload | numpy's call | numpy, ms | ndscatter, ms | ratio |\n|---|---|---|---|---|")
    for make in workloads:
        if options.only not in make.args[0]:
            continue
        row = compare(make(), options.rounds, options.budget)
        found.append(row)
        print(f"| {row.name} | `{row.numpy}` | {row.theirs * 1e3:.4g} | {row.ours * 1e3:.4g} | {row.ratio:.2f} |", flush=True)
    print()
    summary("workloads", [row for row in found if row.is_workload])
    summary("others", [row for row in found if not row.is_workload])
    summary("all", found)
    return found


def calls(workloads: Iterator[Workload], options: argparse.Namespace) -> None:
    print("| call | numpy's | numpy, ns | ndscatter, ns | more |\n|---|---|---|---|---|")
    for make in workloads:
        row = compare(make(), options.rounds, options.budget)
        ns = [side * 1e9 for side in (row.theirs, row.ours)]
        print(f"| {row.name} | `{row.numpy}` | {ns[0]:.0f} | {ns[1]:.0f} | {ns[1] - ns[0]:+.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds per row; at least 4 rounds are measured")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--plot", metavar="FILE")
    options = parser.parse_args()
    if options.calls:
        calls(small(options.threads), options)
        return
    kinds = (tensors, rows, elements, counts, gathers)
    workloads = (make for kind in kinds for make in kind(options.threads))
    found = table(workloads, options)
    if options.plot and found:
        ratios = [(f"{row.name}: {row.numpy}", row.ratio) for row in found]
        title = f"{processor()}, {options.threads} threads, numpy {np.__version__}"
        plot(ratios, "numpy's time / ndscatter's time", title, options.plot)


if __name__ == "__main__":
    main()
