"""Measures writes into caches of inference servers, and moves of their rows.

    python -m compare.caches '{"threads": 2, ...}'

Runs in a separate process, like `child`. The contenders are ndscatter through its C interface,
torch, and plain compiled loops. Every result is compared with the bits that torch's conversions and
numpy's assignments give, before a contender is timed.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from ctypes import byref, c_int64, c_size_t, c_void_p, pointer, sizeof
from functools import partial

import numpy as np

from . import libraries
from .contenders import Call
from .machine import Others
from .problem import SETS, empty
from .timing import Entry, calls_of_a_sample, once, sample, take_turns
from .words import OURS
from .workloads import CACHE_CASES, MOVED, CacheCase

HEADS, DIM, BLOCK = 8, 128, 16
SCALE = 0.03125 * 1.1

# Number of a format in nds_conversion, number in native/src/rows.rs, and numpy's type in memory.
FORMATS = {"bf16": (3, 0, np.uint16), "f8e4m3fn": (4, 1, np.uint8), "i8": (6, 2, np.int8)}

# Blocks of the caches that are written, and of the caches whose rows are moved. The former have 64 MiB,
# or 128 MiB of bfloat16.
BLOCKS = (4096, 1024)

KEPT, PLAIN = "kept plan", "plain"
COMPILED = ", compiled"  # suffix of the times of calls from compiled code


class Problem:
    """Caches and updates that all contenders share, and the expected caches of each index set."""

    def __init__(self, case: CacheCase, blocks: int):
        import torch

        self.case, random = case, np.random.default_rng(1)
        kind = FORMATS["bf16" if case.format == MOVED else case.format][2]
        middle = (HEADS, BLOCK) if case.order == "heads" else (BLOCK, HEADS)
        self.memory = [empty((blocks, *middle, DIM), kind) for _ in range(case.caches)]
        # Views [blocks, rows, heads, dim] of the caches.
        self.caches = [
            cache.transpose(0, 2, 1, 3) if case.order == "heads" else cache for cache in self.memory
        ]
        self.before = [random.integers(0, 120, cache.shape, kind) for cache in self.memory]
        rows = blocks * BLOCK
        if case.format == MOVED:
            # Chains of moves: each row but the first of a chain gets the row before it.
            chains = [random.permutation(rows)[: case.tokens // 4 * 5].reshape(-1, 5) for _ in range(SETS)]
            self.sources = [np.ascontiguousarray(chain[:, :-1]).reshape(-1) for chain in chains]
            self.slots = [np.ascontiguousarray(chain[:, 1:]).reshape(-1) for chain in chains]
            return
        self.slots = [random.permutation(rows)[: case.tokens] for _ in range(SETS)]
        shape = (case.tokens, HEADS, DIM)
        values = [torch.from_numpy(random.normal(size=shape)).bfloat16() for _ in self.caches]
        self.updates = [empty(shape, np.uint16) for _ in self.caches]
        for update, value in zip(self.updates, values):
            update[...] = value.view(torch.int16).numpy().view(np.uint16)

    def reset(self) -> None:
        for memory, before in zip(self.memory, self.before):
            np.copyto(memory, before)

    def expected(self, index_set: int) -> list[np.ndarray]:
        slots, found = self.slots[index_set], [before.copy() for before in self.before]
        for at, memory in enumerate(found):
            if self.case.format == MOVED:
                flat = memory.reshape(-1, HEADS, DIM)
                flat[slots] = flat[self.sources[index_set]]
            else:
                view = memory.transpose(0, 2, 1, 3) if self.case.order == "heads" else memory
                view[slots // BLOCK, slots % BLOCK] = bits(converted(bfloat16(self.updates[at]), self.case.format))
        return found


def bfloat16(array: np.ndarray):
    import torch

    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def converted(key, format: str):
    import torch

    if format == "i8":
        return (key.float() / SCALE).round().clamp(-128, 127).to(torch.int8)
    return key.to({"bf16": torch.bfloat16, "f8e4m3fn": torch.float8_e4m3fn}[format])


def bits(tensor) -> np.ndarray:
    import torch

    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy() if tensor.dtype == torch.int8 else tensor.view(torch.uint8).numpy()


def ours(problem: Problem) -> dict[str, Call]:
    """Returns the calls of the C interface, one-shot and with a kept plan."""
    library, case, native = libraries.ndscatter_c(), problem.case, libraries.native()
    options, count = libraries.options("none"), c_size_t(case.caches)
    code = None if case.format in ("i8", "f8e4m3fn") else libraries.BFLOAT16
    tensors = [libraries.dl_tensor(cache, code) for cache in problem.caches]
    slots = [libraries.dl_tensor(each) for each in problem.slots]

    def checked(function: Callable, *arguments) -> None:
        status = function(*arguments)
        assert status == 0, library.nds_last_error()

    if case.format == MOVED:
        list_type = ctypes.POINTER(libraries.DLTensor) * case.caches
        flat = [cache.reshape(-1, HEADS, DIM) for cache in problem.memory]
        listed = list_type(*(pointer(libraries.dl_tensor(cache, libraries.BFLOAT16)) for cache in flat))
        sources = [libraries.dl_tensor(each) for each in problem.sources]
        move = partial(checked, library.nds_move_rows)
        runs = [
            partial(move, byref(source), byref(to), c_int64(0), listed, count, byref(options))
            for source, to in zip(sources, slots)
        ]
        return {OURS: Call("nds_move_rows", runs, lambda _: problem.memory)}
    conversion = libraries.Conversion(sizeof(libraries.Conversion), FORMATS[case.format][0])
    if case.format == "i8":
        problem.scale = np.full(1, SCALE, np.float32)  # outlives the calls
        conversion.scale = pointer(libraries.dl_tensor(problem.scale))
    updates = [libraries.dl_tensor(each, libraries.BFLOAT16) for each in problem.updates]
    writes = (libraries.Write * case.caches)(
        *(
            libraries.Write(sizeof(libraries.Write), pointer(data), pointer(update), pointer(conversion))
            for data, update in zip(tensors, updates)
        )
    )
    plans = [c_void_p() for _ in slots]
    for plan, each in zip(plans, slots):
        checked(library.nds_plan_scatter_paged, byref(tensors[0]), byref(each), byref(options), byref(plan))

    def call(how: str, function: Callable, first: list) -> Call:
        runs = [partial(checked, function, each, writes, count, byref(options)) for each in first]

        def time_calls(calls: int, index_set: int) -> int:
            taken = native.compare_time_writes(
                ctypes.cast(function, c_void_p), first[index_set], writes, count, byref(options), calls
            )
            assert taken >= 0, library.nds_last_error()
            return taken

        return Call(how, runs, lambda _: problem.memory, time_calls=time_calls)

    return {
        OURS: call("nds_write_paged", library.nds_write_paged, [byref(each) for each in slots]),
        KEPT: call("nds_plan_write", library.nds_plan_write, plans),
    }


def torch_ways(problem: Problem) -> list[Call]:
    import torch

    case = problem.case
    slots = [torch.from_numpy(each) for each in problem.slots]
    if case.format == MOVED:
        buffers = [bfloat16(cache).view(-1, HEADS, DIM) for cache in problem.memory]
        pairs = list(zip(map(torch.from_numpy, problem.sources), slots))

        def assign(source, to) -> None:
            for buffer in buffers:
                buffer[to] = buffer[source]

        def index_copy(source, to) -> None:
            for buffer in buffers:
                buffer.index_copy_(0, to, buffer.index_select(0, source))

        ways = {"buf[to] = buf[from]": assign, "index_copy_": index_copy}
        return [
            Call(how, [partial(way, *pair) for pair in pairs], lambda _: problem.memory)
            for how, way in ways.items()
        ]
    dtype = {"bf16": torch.bfloat16, "i8": torch.int8, "f8e4m3fn": torch.float8_e4m3fn}[case.format]
    as_torch = [
        torch.from_numpy(cache.view(np.int16) if case.format == "bf16" else cache).view(dtype)
        for cache in problem.memory
    ]
    keys = [bfloat16(update) for update in problem.updates]

    def put(views: list, indices: tuple) -> None:
        for cache, key in zip(views, keys):
            cache.index_put_(indices, converted(key, case.format))

    def copy(views: list, indices: tuple) -> None:
        for cache, key in zip(views, keys):
            made = converted(key, case.format)
            # torch has no index_copy_ of 8-bit floats. Their bytes have one.
            made = made.view(torch.uint8) if case.format == "f8e4m3fn" else made
            cache.view(made.dtype).index_copy_(0, *indices, made)

    if case.order == "heads":
        views = [cache.permute(0, 2, 1, 3) for cache in as_torch]
        pairs = [(at // BLOCK, at % BLOCK) for at in slots]
        runs = [partial(put, views, pair) for pair in pairs]
        return [Call("index_put_", runs, lambda _: problem.memory)]
    views = [cache.view(-1, HEADS, DIM) for cache in as_torch]
    return [
        Call(how, [partial(way, views, (at,)) for at in slots], lambda _: problem.memory)
        for how, way in [("index_put_", put), ("index_copy_", copy)]
    ]


def plain(problem: Problem) -> dict[str, Call]:
    """Returns the plain loop. For bf16 to bf16, it copies rows with memcpy on all threads."""
    case, native = problem.case, libraries.native()
    if case.format == MOVED:
        return {}
    sets = []
    for slots in problem.slots:
        rows = []
        for cache, updates in zip(problem.caches, problem.updates):
            block, row, head, _ = (stride // cache.itemsize for stride in cache.strides)
            addresses = (array.ctypes.data for array in (cache, updates, slots))
            sizes = (case.tokens, HEADS, DIM, BLOCK, block, row, head)
            rows.append(libraries.NativeRows(*addresses, *sizes, SCALE, FORMATS[case.format][1]))
        sets.append(rows)

    def run(all_rows: list) -> None:
        for rows in all_rows:
            native.compare_write_rows(byref(rows))

    def time_calls(calls: int, index_set: int) -> int:
        return sum(native.compare_time_rows(byref(rows), calls) for rows in sets[index_set])

    how = "memcpy of rows" if case.format == "bf16" else "loop"
    runs = [partial(run, rows) for rows in sets]
    return {PLAIN: Call(how, runs, lambda _: problem.memory, time_calls=time_calls)}


def check(problem: Problem, calls: list[Call]) -> None:
    """Compares the bits of the caches after each call, with each index set."""
    for index_set in range(SETS):
        expected = problem.expected(index_set)
        for call in calls:
            problem.reset()
            made, _ = once(call, index_set)
            for got, wanted in zip(call.result(made), expected):
                assert np.array_equal(got, wanted), f"{problem.case.name}: {call.how} is wrong"


def measure(case: CacheCase, rounds: int, quick: bool) -> dict:
    problem = Problem(case, BLOCKS[case.format == MOVED] // (2 if quick else 1))
    ways, calls = torch_ways(problem), {**ours(problem), **plain(problem)}
    check(problem, [*ways, *calls.values()])
    calls["torch"] = min(ways, key=lambda way: min(sample(Entry(way, 1), at) for at in range(SETS)))
    entries = {}
    for name, call in calls.items():
        taken = min(sample(Entry(call, 1), at) for at in range(SETS))
        entries[name] = Entry(call, taken, calls_of_a_sample(taken))
        if call.time_calls is not None:
            entries[name + COMPILED] = Entry(call, taken, calls_of_a_sample(taken), compiled=True)
    others = Others()
    take_turns(list(entries.values()), rounds)
    figures = {name: {"how": entry.call.how, **entry.times} for name, entry in entries.items()}
    return {"case": case.name, "others": round(others.cpus(), 3), "contenders": figures}


def main() -> None:
    options = json.loads(sys.argv[1])
    cpus = sorted(os.sched_getaffinity(0))[: options["threads"]]
    os.sched_setaffinity(0, cpus)
    import torch

    torch.set_num_threads(options["threads"])
    torch.set_grad_enabled(False)
    run = {**{key: options[key] for key in ("threads", "rounds", "quick", "source")}, "rows": []}
    for case in CACHE_CASES:
        if options["only"] and case.name not in options["only"]:
            continue
        print(f"{options['threads']} threads, {case.name}", file=sys.stderr)
        run["rows"].append(measure(case, options["rounds"], options["quick"]))
        with open(options["json"], "w") as file:
            json.dump(run, file, indent=1)


def markdown(results: dict) -> str:
    """Prints minima in microseconds, and ratios to the time of one-shot calls of ndscatter."""
    lines = []
    for run in results["runs"]:
        lines += [f"{run['threads']} threads, {run['rounds']} rounds, {run['source']}:", ""]
        heads = ["case", OURS, KEPT, "torch", PLAIN, f"torch / {OURS}", f"{PLAIN} / {OURS}", "more than plain", "others"]
        lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for row in run["rows"]:
            times = {name: figures["min"] / 1e3 for name, figures in row["contenders"].items()}
            cells = [f"{times[name]:.1f}" if name in times else "–" for name in (OURS, KEPT, "torch", PLAIN)]
            cells[2] += f" ({row['contenders']['torch']['how']})"
            cells.append(f"{times['torch'] / times[OURS]:.2f}")
            is_write = PLAIN in times
            cells.append(f"{times[PLAIN] / times[OURS]:.2f}" if is_write else "–")
            extra = [times[name + COMPILED] - times[PLAIN + COMPILED] for name in (OURS, KEPT)] if is_write else []
            cells.append(", ".join(f"{each:.1f}" for each in extra) or "–")
            lines.append(f"| {row['case']} | {' | '.join(cells)} | {row['others']:.2f} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
