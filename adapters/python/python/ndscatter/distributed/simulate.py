"""Predicts the time of a scatter to a `ShardedTable` on a cluster, from measurements of one rank.

    python -m ndscatter.distributed.simulate [--bandwidth 12.5e9] [--latency 2e-5] [--zipf 1.1]
    python -m ndscatter.distributed.simulate --plot FILE # also draws the times, with matplotlib
    python -m ndscatter.distributed.simulate --check     # 2 and 4 processes of this machine, measured too

The program measures the steps of one rank on this machine: the split of the indices, the packing and the
application of updates. The network is a model: a rank sends to one rank after another, each message
takes the latency, and all bytes pass the link of the rank. Other traffic is not modelled. The table of
the results has milliseconds:

- split: finding the owners of indices
- pack: copying the updates into the order of the ranks
- messages: the latency of all messages, for counts, row numbers, updates and agreements
- link: bytes of row numbers and updates
- apply: the scatter in the rank that receives the most updates
- total: packing and applying overlap with the link, except for the first and the last piece
"""

from __future__ import annotations

import argparse
import datetime
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .. import Sharding, gather, plan_sharded, scatter_update
from .._plot import find_pyplot, plot_stacked
from ._table import ShardedTable

# Rounds of all steps of a call that exchange a message with every rank: counts and row numbers.
_EXCHANGES = 2
# Agreements of a call. An agreement takes as many rounds as the number of ranks has bits, there and back.
_AGREEMENTS = 3


@dataclass(frozen=True)
class Problem:
    """A scatter: `tuples` indices of each rank for a table of `rows` rows of `width` floats."""

    rows: int
    tuples: int
    width: int
    zipf: float

    def indices(self, rank: int) -> torch.Tensor:
        """Return the indices of a rank. Row ``r`` has a share of ``1 / (r + 1) ** zipf``."""
        return self._drawn(rank, 1)

    def local_rows(self, ranks: int) -> torch.Tensor:
        """Return `tuples` local rows of rank 0, which has the most frequent rows, for updates of all
        ranks."""
        return self._drawn(0, ranks)

    def _drawn(self, seed: int, ranks: int) -> torch.Tensor:
        generator = np.random.default_rng(seed)
        # The distribution function of the continuous distribution with this density, inverted.
        uniform, end = generator.random(self.tuples), float(self.rows + 1)
        if not self.zipf:
            drawn = uniform * self.rows
        elif self.zipf == 1:
            drawn = end**uniform - 1
        else:
            power = 1 - self.zipf
            drawn = (uniform * (end**power - 1) + 1) ** (1 / power) - 1
        return torch.from_numpy(np.minimum(drawn, self.rows - 1).astype(np.int64) // ranks)

    def busiest_share(self, ranks: int) -> float:
        """Return the number of updates that rank 0 receives, divided by the average of all ranks."""
        if not self.zipf:
            return 1.0
        own = _sum_of_powers(ranks, math.ceil(self.rows / ranks), self.zipf)
        return ranks * own / _sum_of_powers(1, self.rows, self.zipf)


def _sum_of_powers(step: int, count: int, exponent: float) -> float:
    """Return the sum of ``1 / (1 + k * step) ** exponent`` for the first `count` numbers k. Terms after
    the first million are replaced by their integral."""
    exact = min(count, 1_000_000)
    total = float((1 / (1 + np.arange(exact, dtype=np.float64) * step) ** exponent).sum())
    low, high = 1 + (exact - 0.5) * step, 1 + (count - 0.5) * step
    if exact == count:
        return total
    if exponent == 1:
        return total + math.log(high / low) / step
    power = 1 - exponent
    return total + (math.pow(high, power) - math.pow(low, power)) / (power * step)


@dataclass(frozen=True)
class Network:
    """A model of the links: bytes of a second, and seconds of a message."""

    bandwidth: float
    latency: float


def sharding_for(ranks: int) -> Sharding:
    """Return the division that spreads frequent rows, which have small numbers, over the ranks."""
    return Sharding.modulo(ranks)


def median_of(call: Callable[[], object], rounds: int = 5) -> float:
    call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


@dataclass(frozen=True)
class Step:
    """Seconds of the steps of a call."""

    split: float
    pack: float
    messages: float
    link: float
    apply: float
    pieces: int

    @property
    def total(self) -> float:
        work = self.pack + self.apply
        # Work on one piece runs while another is in transit.
        overlapped = max(work, self.link) + min(work, self.link) / self.pieces
        return self.split + self.messages + overlapped

    @property
    def bound(self) -> str:
        """Return the name of the step that takes the most time."""
        parts = {
            "split": self.split,
            "memory": self.pack + self.apply,
            "latency": self.messages,
            "link": self.link,
        }
        return max(parts, key=lambda name: parts[name])


def predict(problem: Problem, ranks: int, network: Network, piece_bytes: int = 16 << 20) -> Step:
    """Predict a call of `ranks` ranks. The steps of one rank are measured on this machine."""
    sharding, threads = sharding_for(ranks), torch.get_num_threads()
    indices = problem.indices(0)
    split = median_of(lambda: plan_sharded(problem.rows, indices, sharding, threads=threads))
    order = plan_sharded(problem.rows, indices, sharding, threads=threads).order
    assert order is not None, "the plan does not combine updates"
    updates = torch.randn(problem.tuples, problem.width)
    packed = torch.empty_like(updates)
    pack = median_of(lambda: gather(updates, order, out=packed, threads=threads))
    received, rows = problem.busiest_share(ranks), problem.local_rows(ranks)
    local = torch.zeros(sharding.rows_of(0, problem.rows), problem.width)
    apply = median_of(
        lambda: scatter_update(local, rows, updates, reduction="add", out=local, threads=threads)
    )
    row_bytes = problem.width * 4
    pieces = max(1, math.ceil(problem.tuples * received * row_bytes / piece_bytes))
    bits = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    messages = (_EXCHANGES + pieces) * (ranks - 1) + 2 * _AGREEMENTS * bits
    moved = problem.tuples * received * (row_bytes + 8) * (ranks - 1) / ranks
    return Step(
        split=split,
        pack=pack,
        messages=messages * network.latency,
        link=moved / network.bandwidth,
        apply=apply * received,
        pieces=pieces,
    )


def print_table(title: str, rows: list[tuple[str, Step]]) -> None:
    print(f"\n{title}\n{'ranks':>8} {'split':>8} {'pack':>8} {'messages':>8} {'link':>8} {'apply':>8} {'total':>8}  bound by")
    for name, step in rows:
        figures = (step.split, step.pack, step.messages, step.link, step.apply, step.total)
        print(f"{name:>8} " + " ".join(f"{1000 * figure:8.2f}" for figure in figures) + f"  {step.bound}")


def _draw_predictions(panels: dict[str, list[tuple[str, Step]]], title: str, file: str) -> None:
    bars, totals = {}, {}
    for panel, rows in panels.items():
        bars[panel] = {
            ranks: {part: 1000 * getattr(step, part) for part in ("split", "pack", "apply", "link", "messages")}
            for ranks, step in rows
        }
        totals.update({f"{panel}, {ranks}": 1000 * step.total for ranks, step in rows})
    plot_stacked(bars, totals, ("ranks", "total, with overlap"), title, file)


# Measurements of several processes of this machine.


def run_ranks(ranks: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return the results of ``function(*arguments)`` in the ranks of a group of new processes."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        processes = [
            context.Process(target=_rank, args=(rank, ranks, store, results, function, arguments))
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        found = dict(results.get(timeout=300) for _ in processes)
        for process in processes:
            process.join()
    return [found[rank] for rank in range(ranks)]


def _rank(rank: int, ranks: int, store: str, results: Any, function: Any, arguments: Any) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(minutes=2),
    )
    results.put((rank, function(*arguments)))
    dist.barrier()
    dist.destroy_process_group()


def measure_network(size: int) -> tuple[float, float]:
    """Return the seconds of a message without data, and of `size` bytes to each rank."""
    ranks = dist.get_world_size()

    def exchange(count: int) -> Callable[[], object]:
        sent = torch.zeros(count * ranks, dtype=torch.uint8)
        received = torch.empty_like(sent)
        return lambda: dist.all_to_all_single(received, sent)

    empty = median_of(exchange(1), 50)
    return empty / max(1, ranks - 1), median_of(exchange(size), 9)


def measure_call(problem: Problem) -> float:
    """Return the seconds of `scatter_add_` in this rank."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    table = ShardedTable(problem.rows, problem.width, sharding=sharding_for(ranks))
    indices, updates = problem.indices(rank), torch.randn(problem.tuples, problem.width)

    def call() -> None:
        dist.barrier()
        table.scatter_add_(indices, updates)

    return median_of(call, 9)


def check(problem: Problem) -> None:
    """Compare predictions with measurements of 2 and 4 processes of this machine."""
    size = 4 << 20
    rows = []
    for ranks in (2, 4):
        latencies, seconds = zip(*run_ranks(ranks, measure_network, size), strict=True)
        network = Network(size * (ranks - 1) / max(seconds), max(latencies))
        measured = max(run_ranks(ranks, measure_call, problem))
        # The processes share the cores of this machine.
        share = max(1.0, ranks / (os.cpu_count() or 1))
        step = predict(problem, ranks, network)
        step = Step(step.split * share, step.pack * share, step.messages, step.link, step.apply * share, 1)
        rows.append((str(ranks), step))
        print(
            f"{ranks} processes: {network.bandwidth / 1e9:.1f} GB/s, {1e6 * network.latency:.0f} us; "
            f"predicted {1000 * step.total:.1f} ms, measured {1000 * measured:.1f} ms, "
            f"ratio {step.total / measured:.2f}"
        )
    print_table("predictions", rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m ndscatter.distributed.simulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 32, 128, 512, 2048, 4096])
    parser.add_argument("--bandwidth", type=float, default=12.5e9, help="bytes per second (12.5e9)")
    parser.add_argument("--latency", type=float, default=2e-5, help="seconds of a message (2e-5)")
    parser.add_argument("--cores", type=int, default=1, help="threads of a rank (1)")
    parser.add_argument("--zipf", type=float, default=0.0, help="exponent of the frequencies of rows (0)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table of one rank")
    parser.add_argument("--tuples", type=int, default=200_000, help="indices of each rank")
    parser.add_argument("--width", type=int, default=64, help="floats of a row")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare with processes of this machine")
    what.add_argument("--plot", metavar="FILE", help="draw the predictions, with matplotlib (the extra `plot`)")
    options = parser.parse_args()
    if options.plot:
        find_pyplot()  # A missing matplotlib is an error before the measurements.
    torch.set_num_threads(options.cores)
    if options.check:
        check(Problem(options.rows, options.tuples, options.width, options.zipf))
        return
    network = Network(options.bandwidth, options.latency)
    weak, strong = [], []
    for ranks in options.ranks:
        problem = Problem(options.rows * ranks, options.tuples, options.width, options.zipf)
        weak.append((str(ranks), predict(problem, ranks, network)))
        first = options.ranks[0]
        tuples = max(1, options.tuples * first // ranks)
        problem = Problem(options.rows * first, tuples, options.width, options.zipf)
        strong.append((str(ranks), predict(problem, ranks, network)))
    panels = {
        "weak scaling: the table and the indices grow with the ranks": weak,
        f"strong scaling: the table and the indices of {options.ranks[0]} ranks": strong,
    }
    for title, rows in panels.items():
        print_table(title, rows)
    if options.plot:
        link = f"{options.bandwidth / 1e9:g} GB/s, {1e6 * options.latency:g} us for each message"
        _draw_predictions(panels, f"PREDICTED: scatter_add_, {link}", options.plot)


if __name__ == "__main__":
    main()
