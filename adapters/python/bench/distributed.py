"""Scatters to a table that is divided among ranks: the time of the parts of a call, and ratios to one
process and to a version in plain PyTorch.

    python bench/distributed.py [--ranks 2] [--rows 400000] [--tuples 200000] [--width 64]
    python bench/distributed.py --plot FILE     # draws the times of 1 to 4 processes; needs matplotlib

Each rank has one thread. One process has as many threads as there are ranks. All versions run in turns,
and the figures are medians. The results are compared before they are timed.
"""

import argparse
import collections
import os
import statistics
import time

import torch
import torch.distributed as dist

import ndscatter
from ndscatter._plot import find_pyplot, plot_stacked
from ndscatter.distributed import ShardedTable, _exchange
from ndscatter.distributed.simulate import run_ranks


def tuples_of(options, rank):
    generator = torch.Generator().manual_seed(rank)
    if options.zipf:
        uniform = torch.rand(options.tuples, generator=generator, dtype=torch.float64)
        indices = (options.rows**uniform - 1).long().clamp(0, options.rows - 1)
        # Otherwise the first rank would have most of the rows with many indices.
        indices = indices * 2_654_435_761 % options.rows
    else:
        indices = torch.randint(0, options.rows, (options.tuples,), generator=generator)
    return indices, torch.randn(options.tuples, options.width, generator=generator)


def plain(shard, indices, updates, block, first):
    """The usual version: sort by owner, two exchanges, and `index_add_`."""
    owner = indices // block
    order = torch.argsort(owner, stable=True)
    outgoing = torch.bincount(owner, minlength=dist.get_world_size())
    incoming = torch.empty_like(outgoing)
    dist.all_to_all_single(incoming, outgoing)
    incoming, outgoing = incoming.tolist(), outgoing.tolist()
    rows = indices.new_empty(sum(incoming))
    received = updates.new_empty(sum(incoming), updates.shape[1])
    dist.all_to_all_single(rows, indices[order], incoming, outgoing)
    dist.all_to_all_single(received, updates[order], incoming, outgoing)
    shard.index_add_(0, rows - first, received)


class Transport:
    """Measures the time in collective calls, or leaves the exchanges of rows out."""

    def __init__(self):
        self.seconds = 0.0
        self.is_left_out = False
        call, start = _exchange.Exchange._call, _exchange.Exchange._start

        def timed(exchange, stage, function):
            begin = time.perf_counter()
            try:
                return call(exchange, stage, function)
            finally:
                self.seconds += time.perf_counter() - begin

        def started(exchange, stage, *arguments):
            if self.is_left_out and stage == "rows":
                return Done()
            return start(exchange, stage, *arguments)

        _exchange.Exchange._call = timed
        _exchange.Exchange._start = started


class Done:
    def wait(self):
        pass


def measure(options):
    """Return the median times of this rank."""
    rank = dist.get_rank()
    indices, updates = tuples_of(options, rank)
    table = ShardedTable(options.rows, options.width, piece_bytes=options.piece_bytes)
    shard = table.weight.detach().clone()
    block = -(-options.rows // options.ranks)
    plan = table.plan(indices)
    calls = {
        "scatter_add_": lambda: table.scatter_add_(indices, updates),
        "plan": lambda: table.scatter_add_(plan, updates),
        "gather": lambda: table.gather(plan),
        "plain torch": lambda: plain(shard, indices, updates, block, block * rank),
    }
    calls["scatter_add_"]()
    calls["plain torch"]()
    whole = torch.zeros(options.rows, options.width)
    for other in range(options.ranks):
        ndscatter.scatter_update(whole, *tuples_of(options, other), reduction="add", out=whole)
    assert torch.equal(table.weight, whole[block * rank :][: len(shard)]), "the bits of one process"
    del whole
    transport = Transport()
    times = collections.defaultdict(list)
    for _ in range(options.rounds):
        for name, call in calls.items():
            dist.barrier()
            transport.seconds, begin = 0.0, time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
            if name != "plain torch":
                times[f"{name}, transport"].append(transport.seconds)
        # Without the exchange of rows, a plan of the indices cannot be made: it would have other rows.
        transport.is_left_out = True
        for name in ("plan", "gather"):
            dist.barrier()
            transport.seconds, begin = 0.0, time.perf_counter()
            calls[name]()
            times[f"{name}, without rows"].append(time.perf_counter() - begin - transport.seconds)
        transport.is_left_out = False
        begin = time.perf_counter()
        ndscatter.plan_sharded(options.rows, indices, table.sharding, threads=1)
        times["split of the indices"].append(time.perf_counter() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


def one_process(options):
    """Return the median time of one process with one thread for each rank."""
    torch.set_num_threads(options.ranks)
    table = torch.zeros(options.rows, options.width)
    parts = [tuples_of(options, rank) for rank in range(options.ranks)]
    indices = torch.cat([part[0] for part in parts])
    updates = torch.cat([part[1] for part in parts])
    plan = ndscatter.plan_scatter_update(table, indices, reduction="add")
    times = {"one call": [], "plan": [], "gather": []}
    for _ in range(options.rounds):
        begin = time.perf_counter()
        ndscatter.scatter_update(table, indices, updates, reduction="add", out=table, threads=options.ranks)
        times["one call"].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        plan(table, updates, out=table, threads=options.ranks)
        times["plan"].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        ndscatter.gather(table, indices, threads=options.ranks)
        times["gather"].append(time.perf_counter() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


def plot(options):
    """Draw the times of 1 to 4 processes of one thread each."""
    find_pyplot()  # A missing matplotlib is an error before the measurements.
    counts = [1, 2, 3, 4]
    panels = {
        f"{options.tuples:,} indices of each process": [options.tuples] * len(counts),
        f"{2 * options.tuples:,} indices of all processes": [2 * options.tuples // count for count in counts],
    }
    bars, totals = collections.defaultdict(dict), {}
    for panel, tuples in panels.items():
        for count, each in zip(counts, tuples):
            problem = argparse.Namespace(**{**vars(options), "ranks": count, "tuples": each})
            found = run_ranks(count, measure, problem)
            slowest = {name: 1000 * max(times[name] for times in found) for name in found[0]}
            call, transport = slowest["scatter_add_"], slowest["scatter_add_, transport"]
            bars[panel][str(count)] = {"all except transport": call - transport, "transport": transport}
            totals[f"{panel}, {count}"] = slowest["plain torch"]
            print(f"{panel}, {count} processes: {call:.1f} ms, plain torch {slowest['plain torch']:.1f} ms", flush=True)
    title = f"MEASURED: scatter_add_ with gloo, {os.cpu_count()} cores, table of {options.rows:,} rows of {options.width} f32"
    plot_stacked(bars, totals, ("processes", "plain PyTorch"), title, options.plot)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--tuples", type=int, default=200_000, help="for each rank")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--zipf", action="store_true", help="indices with a Zipf distribution")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--piece-bytes", type=int, default=16 << 20)
    parser.add_argument("--plot", metavar="FILE", help="draw the times of 1 to 4 processes")
    options = parser.parse_args()
    if options.plot:
        plot(options)
        return
    found = run_ranks(options.ranks, measure, options)
    single = one_process(options)
    slowest = {name: max(times[name] for times in found) for name in found[0]}
    for name, seconds in {**slowest, **{f"one process, {name}": t for name, t in single.items()}}.items():
        print(f"{name:40} {1000 * seconds:9.2f} ms")
    splitting = slowest["split of the indices"]
    call = slowest["scatter_add_"]
    print(f"plain torch / scatter_add_: {slowest['plain torch'] / call:.2f}")
    print(f"share of transport: {slowest['scatter_add_, transport'] / call:.2f}")
    rest = slowest["plan, without rows"]
    print(f"one process / all except transport: {single['one call'] / (rest + splitting):.2f}")
    print(f"the same with kept plans: {single['plan'] / rest:.2f}")
    print(f"one process / all except transport, gather: {single['gather'] / slowest['gather, without rows']:.2f}")


if __name__ == "__main__":
    main()
