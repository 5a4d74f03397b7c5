"""Benchmark of PyTorch's functions with PyTorch's kernels and under `ndscatter.torch.enable()`.

    python bench/pytorch.py            # the workloads of docs/performance.md
    python bench/pytorch.py --gathers  # gathers from the tables of these workloads
    python bench/pytorch.py --sizes    # ratios by number of elements; src/torch has limits from these ratios
    python bench/pytorch.py --calls    # overhead of `enable` for calls that PyTorch runs

A ratio is the time with PyTorch's kernels divided by the time under `enable`. Each round measures the
call several times with PyTorch's kernels, then several times under `enable`. A reported time is the
minimum over the rounds of the mean of these calls. The first calls after a switch are not measured:
new results then lie in memory that the allocator has just obtained, and page faults take longer than
the call. Both results are compared before the times are measured.
"""

from __future__ import annotations

import argparse
import math
import time

import torch

import ndscatter.torch
from ndscatter._plot import plot, processor

def zipf(rows: int, count: int, generator: torch.Generator) -> torch.Tensor:
    weights = torch.arange(1, rows + 1, dtype=torch.float64).pow(-1.2)
    order = torch.randperm(rows, generator=generator)
    picks = torch.multinomial(weights[: 1 << 24], count, replacement=True, generator=generator)
    return order[picks]


def workloads(scale: int):
    """Yield name, table, index and reduction of each workload along axis 0 of a table or vector."""
    g = torch.Generator().manual_seed(7)
    uniform = lambda high, *shape: torch.randint(0, high, shape, generator=g)
    normal = lambda *shape: torch.randn(*shape, generator=g)
    yield "emb_grad_add", normal(200_000, 64), zipf(200_000, 262_144 // scale, g), "add"
    yield "gnn_add", normal(169_343, 64), uniform(169_343, 1_166_243 // scale), "add"
    yield "gnn_max", normal(169_343, 64), uniform(169_343, 1_166_243 // scale), "amax"
    rows = torch.arange(2048).repeat(4 // min(scale, 4))
    yield "moe_add", normal(2048, 2048), rows[torch.randperm(len(rows), generator=g)], "add"
    inf = torch.full((100_000, 64), -math.inf)
    yield "voxel_max", inf, uniform(100_000, 400_000 // scale), "amax"
    unique = torch.randperm(500_000, generator=g)[: 65_536 // scale]
    yield "emb_update", normal(500_000, 64), unique, "none"
    yield "elem_random_add", normal(16_777_216), uniform(16_777_216, 4_194_304 // scale), "add"
    unique = torch.randperm(16_777_216, generator=g)[: 4_194_304 // scale]
    yield "elem_unique", normal(16_777_216), unique, "none"
    yield "histogram_add", normal(1024), uniform(1024, 4_194_304 // scale), "add"


def programs(table, index, updates, reduction):
    """Yield name and call of each PyTorch function that is measured for a workload."""
    wide = index.reshape(-1, *[1] * (table.dim() - 1)).expand_as(updates)
    if reduction == "add":
        yield "index_add_", lambda: table.index_add_(0, index, updates)
        yield "scatter_add_", lambda: table.scatter_add_(0, wide, updates)
        yield "index_put_ add", lambda: table.index_put_((index,), updates, accumulate=True)
        yield "scatter_add", lambda: table.scatter_add(0, wide, updates)
        if table.dim() == 2:
            yield "embedding backward", lambda: torch.ops.aten.embedding_dense_backward(
                updates, index, table.shape[0], -1, False
            )
    elif reduction == "none":
        yield "index_put_", lambda: table.index_put_((index,), updates)
        yield "index_copy_", lambda: table.index_copy_(0, index, updates)
        yield "scatter_", lambda: table.scatter_(0, wide, updates)
    else:
        yield "scatter_reduce_", lambda: table.scatter_reduce_(0, wide, updates, reduction)
        yield "index_reduce_", lambda: table.index_reduce_(0, index, updates, reduction)
        yield "scatter_reduce", lambda: table.scatter_reduce(0, wide, updates, reduction)


def caches():
    """Yield workload, function, call and written tensor of workloads that `workloads` lacks.

    The workloads `kv_decode` and `kv_prefill` write new rows into a key-value cache. `seed_update`
    writes slices along axis 1. `seed_nd` writes slices at tuples of coordinates. `small_add` adds
    rows to a small table.
    """
    g = torch.Generator().manual_seed(8)
    cache, steps = torch.zeros(16, 2048, 1024), torch.randn(16, 1024, generator=g)
    at = torch.randint(0, 2048, (16,), generator=g)
    yield "kv_decode", "index_put_", lambda: cache.index_put_((torch.arange(16), at), steps), cache
    prefill, tokens = torch.zeros(4, 4096, 1024), torch.randn(4, 2048, 1024, generator=g)
    rows, line = torch.arange(4)[:, None], torch.arange(100, 2148)[None]
    yield "kv_prefill", "index_put_", lambda: prefill.index_put_((rows, line), tokens), prefill
    lines, planes = torch.zeros(100, 256, 150), torch.randn(100, 2500, 150, generator=g)
    tokens_at = torch.randint(0, 256, (2500,), generator=g)
    yield "seed_update", "index_copy_", lambda: lines.index_copy_(1, tokens_at, planes), lines
    yield "seed_update", "lines[:, at] =", lambda: lines.__setitem__((slice(None), tokens_at), planes), lines
    grid, values = torch.zeros(1000, 256, 10, 15), torch.randn(25, 125, 15, generator=g)
    cells = [torch.randint(0, size, (25, 125), generator=g) for size in (1000, 256, 10)]
    yield "seed_nd", "index_put_", lambda: grid.index_put_(tuple(cells), values), grid
    small, more = torch.zeros(256, 64), torch.randn(128, 64, generator=g)
    index = torch.randint(0, 256, (128,), generator=g)
    yield "small_add", "index_add_", lambda: small.index_add_(0, index, more), small


def timed(call, repeats: int) -> float:
    """Return the mean time of a call over `repeats` calls, in seconds.

    The result of a call is freed after the next call has returned, as in a typical program.
    """
    start = time.perf_counter()
    for _ in range(repeats):
        kept = call()  # noqa: F841
    return (time.perf_counter() - start) / repeats


def compare(call, rounds: int, repeats: int = 0, always: bool = False) -> tuple[float, float]:
    """Return the time of `call` with PyTorch's kernels and under `enable`, in seconds.

    Each time is the minimum over the rounds.
    """
    if not repeats:
        call()
        repeats = max(3, round(2e-3 / timed(call, 1)))
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for at, is_enabled in enumerate((False, True)):
            handle = ndscatter.torch.enable(always=always) if is_enabled else None
            timed(call, 2)
            best[at] = min(best[at], timed(call, repeats))
            if handle:
                handle.disable()
    return best[0], best[1]


def check(name: str, call, written: torch.Tensor) -> None:
    """Compare the results of `call` with PyTorch's kernels and under `enable`.

    `written` is the tensor that a call in place writes. It has its old values afterwards. PyTorch uses
    one thread, because its threads do not define which of two assignments to one element stays.
    """
    before, threads = written.clone(), torch.get_num_threads()
    results = []
    for is_enabled in (False, True):
        torch.set_num_threads(threads if is_enabled else 1)
        handle = ndscatter.torch.enable() if is_enabled else None
        result = call()
        results.append((written if result is None else result).clone())
        written.copy_(before)
        if handle:
            handle.disable()
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-2, msg=lambda text: f"{name}: {text}")


def mean(ratios) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def rows(scale: int):
    """Yield workload, function, call and written tensor of each row of the table of `table`."""
    generator = torch.Generator().manual_seed(9)
    for name, data, index, reduction in workloads(scale):
        updates = torch.randn(len(index), *data.shape[1:], generator=generator)
        for function, call in programs(data, index, updates, reduction):
            yield name, function, call, data
    yield from caches()


def table(rounds: int, scale: int) -> list[tuple[str, float]]:
    """Print one row per workload and function, and one ratio per workload.

    The ratio of a workload is the shortest time of its in-place functions with PyTorch's kernels,
    divided by the shortest time of its in-place functions under `enable`. The two shortest times
    may belong to different functions.
    """
    ratios, names, fastest = [], [], {}
    print("| workload | function | torch, ms | enabled, ms | ratio |\n|---|---|---|---|---|")
    for name, function, call, written in rows(scale):
        check(f"{name}, {function}", call, written)
        theirs, ours = compare(call, rounds)
        ratios.append(theirs / ours)
        names.append(f"{name}: {function}")
        print(f"| {name} | {function} | {theirs * 1e3:.3f} | {ours * 1e3:.3f} | {ratios[-1]:.2f} |", flush=True)
        if function.split()[0].endswith("_") or function.endswith("="):
            best = fastest.get(name, (math.inf, math.inf))
            fastest[name] = min(best[0], theirs), min(best[1], ours)
    print(f"\ngeometric mean of {len(ratios)} rows: {mean(ratios):.2f}, minimum: {min(ratios):.2f}")
    best = {name: theirs / ours for name, (theirs, ours) in fastest.items()}
    print("fastest in-place functions: ", ", ".join(f"{name} {ratio:.2f}" for name, ratio in best.items()))
    long = [ratio for name, ratio in best.items() if fastest[name][0] > 5e-4]
    print(f"geometric mean of {len(long)} workloads of more than 0.5 ms: {mean(long):.2f}")
    return list(zip(names, ratios, strict=True))


def small_calls(count: int, width: int):
    """Yield name and call of each function, with updates of `count` rows of `width` elements."""
    g = torch.Generator().manual_seed(count)
    rows = max(count // 2, 4)
    shape = (rows, width) if width > 1 else (rows,)
    data, updates = torch.zeros(shape), torch.randn(count, *shape[1:], generator=g)
    index = torch.randint(0, rows, (count,), generator=g)
    wide = index.reshape(-1, *[1] * (data.dim() - 1)).expand_as(updates)
    same = torch.arange(rows).repeat(3)[:count]
    yield "scatter_add", lambda: data.scatter_add_(0, wide, updates)
    yield "scatter_reduce", lambda: data.scatter_reduce_(0, wide, updates, "amax")
    yield "scatter", lambda: data.scatter_(0, wide, updates)
    yield "index_add", lambda: data.index_add_(0, index, updates)
    yield "index_copy", lambda: data.index_copy_(0, same, updates)
    yield "index_reduce", lambda: data.index_reduce_(0, index, updates, "amax")
    yield "index_put", lambda: data.index_put_((index,), updates)
    yield "index_put add", lambda: data.index_put_((index,), updates, accumulate=True)
    if width > 1:
        yield "embedding_dense_backward", lambda: torch.ops.aten.embedding_dense_backward(
            updates, index, rows, -1, False
        )


def sizes(rounds: int) -> None:
    """Print a ratio for each function, row width and number of elements of the updates.

    A ratio is PyTorch's time divided by the time under `enable(always=True)`. With `always=True`,
    ndscatter's kernels also run the calls that PyTorch's kernels run by default.
    """
    elements = [1 << power for power in range(6, 17)]
    for width in (1, 16, 64):
        print(f"\nrows of {width}: " + " ".join(f"{n:>6}" for n in elements))
        found: dict[str, list[float]] = {}
        for n in elements:
            for name, call in small_calls(max(n // width, 1), width):
                theirs, ours = compare(call, rounds, max(5, 200_000 // n // 10), always=True)
                found.setdefault(name, []).append(theirs / ours)
        for name, ratios in found.items():
            print(f"{name:>25} " + " ".join(f"{ratio:6.2f}" for ratio in ratios), flush=True)


def staying():
    """Yield name and call of calls that PyTorch's kernels run also under `enable`."""
    g = torch.Generator().manual_seed(5)
    table, line = torch.zeros(64, 64), torch.zeros(1000)
    few, lanes = torch.randint(0, 64, (8,), generator=g), torch.randint(0, 64, (64, 8), generator=g)
    many, updates = torch.randint(0, 1000, (200,), generator=g), torch.randn(200, generator=g)
    mask = torch.rand(64, generator=g) > 0.5
    yield "scatter_add_, lanes", lambda: table.scatter_add_(1, lanes, table[:, :8])
    yield "scatter_, lanes, value", lambda: table.scatter_(1, lanes, 1.0)
    yield "scatter_reduce_, 200 elements", lambda: line.scatter_reduce_(0, many, updates, "amax")
    yield "scatter_add, 200 elements", lambda: line.scatter_add(0, many, updates)
    yield "index_add_, 200 elements", lambda: line.index_add_(0, many, updates)
    yield "index_add_, last axis", lambda: table.index_add_(1, few, table[:, :8])
    yield "index_fill_, 8 rows", lambda: table.index_fill_(0, few, 0.0)
    yield "put_, 200 elements", lambda: line.put_(many, updates)
    yield "t[i], 8 elements", lambda: line[few]
    yield "t[mask]", lambda: table[mask]
    yield "t[mask] = 0", lambda: table.index_put_((mask,), line[0])
    yield "index_select, 8 rows", lambda: table.index_select(0, few)
    yield "take, 8 elements", lambda: line.take(few)
    yield "gather, lanes", lambda: table.gather(1, lanes)
    yield "embedding_dense_backward, 8 rows", lambda: torch.ops.aten.embedding_dense_backward(
        table[:8], few, 64, -1, False
    )


def calls(rounds: int) -> None:
    """Print times of calls that PyTorch's kernels run, in nanoseconds.

    The columns are the time without `enable`, the time with `enable`, and the difference: the
    overhead of `enable`. A median over the rounds is less noisy here than a minimum.
    """
    count = 20_000
    for name, call in staying():
        ndscatter.torch.reset_counts()
        with ndscatter.torch.enable():
            call()
        counts = ndscatter.torch.counts().values()
        assert not any(count.ndscatter for count in counts), f"{name} stays with PyTorch"
        differences, times = [], []
        for _ in range(rounds):
            theirs, ours = compare(call, 1, count // 10)
            differences.append(ours - theirs)
            times.append(theirs)
        theirs, difference = min(times), sorted(differences)[rounds // 2]
        print(f"{name:>35} {theirs * 1e9:7.0f} {(theirs + difference) * 1e9:7.0f} {difference * 1e9:+7.0f}")


def gathers(rounds: int) -> None:
    """Print one row per gather from the tables of the workloads."""
    print("| workload | function | torch, ms | enabled, ms | ratio |\n|---|---|---|---|---|")
    ratios = []
    for name, table, index, _ in workloads(1):
        wide = index.reshape(-1, *[1] * (table.dim() - 1)).expand(-1, *table.shape[1:])
        programs = {
            "t[i]": lambda: table[index],
            "index_select": lambda: table.index_select(0, index),
            "gather": lambda: table.gather(0, wide),
        }
        if table.dim() == 1:
            programs["take"] = lambda: table.take(index)
        for function, call in programs.items():
            check(f"{name}, {function}", call, table)
            theirs, ours = compare(call, rounds)
            ratios.append(theirs / ours)
            print(f"| {name} | {function} | {theirs * 1e3:.3f} | {ours * 1e3:.3f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\ngeometric mean of {len(ratios)} rows: {mean(ratios):.2f}, minimum: {min(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--gathers", action="store_true")
    parser.add_argument("--deterministic", action="store_true", help="in PyTorch's deterministic mode")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", metavar="FILE", help="draw a bar chart; needs matplotlib")
    parser.add_argument("--scale", type=int, default=1, help="divides the number of updates")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(options.deterministic)
    print(f"PyTorch {torch.__version__}, {options.threads} threads; {ndscatter.torch.enable()}\n")
    ndscatter.torch.disable()
    if options.sizes:
        sizes(options.rounds)
    elif options.calls:
        calls(options.rounds)
    elif options.gathers:
        gathers(options.rounds)
    else:
        ratios = table(options.rounds, options.scale)
        if options.plot:
            title = f"{processor()}, {options.threads} threads, PyTorch {torch.__version__}"
            plot(ratios, "PyTorch's time / time when enabled", title, options.plot)


if __name__ == "__main__":
    main()
