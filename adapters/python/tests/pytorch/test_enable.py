"""Tests of `ndscatter.torch.enable`: which calls run on ndscatter's kernels, the bits of their
results, their errors, and their threads."""

import itertools
import math
import os
import subprocess
import sys
import threading

import pytest
import torch

import ndscatter.torch
from ndscatter.torch import _kernels, _library, _switch


def numbers(seed=0):
    return torch.Generator().manual_seed(seed)


def edges(rows=500, count=3000, width=64, dtype=torch.float32):
    """Return a table, row numbers, and one row of updates per row number. The row numbers contain
    duplicates, and the rounded sums of the updates depend on the order of the additions."""
    g = numbers()
    table = torch.randn(rows, width, generator=g).to(dtype)
    index = torch.randint(0, rows, (count,), generator=g)
    updates = (torch.randn(count, width, generator=g) * 1e3).to(dtype)
    return table, index, updates


def wide(index, updates):
    return index.reshape(-1, *[1] * (updates.dim() - 1)).expand_as(updates)


# Calls of every PyTorch function that `enable` can replace. The arguments are a table `t`, row
# numbers `i` and updates `u`.
CALLS = {
    "scatter_add": lambda t, i, u: t.scatter_add(0, wide(i, u), u),
    "scatter_add_": lambda t, i, u: t.clone().scatter_add_(0, wide(i, u), u),
    "scatter_add.out": lambda t, i, u: torch.scatter_add(
        t, 0, wide(i, u), u, out=torch.empty_like(t)
    ),
    "scatter_reduce": lambda t, i, u: t.scatter_reduce(0, wide(i, u), u, "prod"),
    "scatter_reduce_": lambda t, i, u: t.clone().scatter_reduce_(0, wide(i, u), u, "amax"),
    "scatter_reduce mean": lambda t, i, u: t.scatter_reduce(
        0, wide(i, u), u, "mean", include_self=False
    ),
    "scatter": lambda t, i, u: t.scatter(0, wide(i, u), u),
    "scatter value": lambda t, i, u: t.scatter(0, wide(i, u), 7),
    "scatter reduce": lambda t, i, u: t.scatter(0, wide(i, u), u, reduce="add"),
    "scatter value reduce": lambda t, i, u: t.scatter(0, wide(i, u), 1, reduce="multiply"),
    "index_add": lambda t, i, u: t.index_add(0, i, u),
    "index_add_ alpha": lambda t, i, u: t.clone().index_add_(0, i, u, alpha=-1),
    "index_copy": lambda t, i, u: t.index_copy(0, i, u),
    "index_reduce": lambda t, i, u: t.index_reduce(0, i, u, "amin"),
    "index_put": lambda t, i, u: t.index_put((i,), u),
    "index_put add": lambda t, i, u: t.index_put((i,), u, accumulate=True),
    "index_put tuples": lambda t, i, u: t.index_put(
        (wide(i, u).contiguous(), torch.arange(u.shape[1]).expand_as(u).contiguous()),
        u,
        accumulate=True,
    ),
    "embedding": lambda t, i, u: torch.ops.aten.embedding_dense_backward(
        u, i, t.shape[0], 3, False
    ),
}
# Calls of the functions that only native kernels replace.
NATIVE_CALLS = {
    "index_fill_": lambda t, i, u: t.clone().index_fill_(0, i - 400, 2.5),
    "index_fill_ tensor": lambda t, i, u: t.clone().index_fill_(1, i[:3] % 64, u[0, 0]),
    "put_ add": lambda t, i, u: t.clone().put_(i.reshape(2, -1), u[:, :1], accumulate=True),
    "index": lambda t, i, u: t[i - 500],
    "index column": lambda t, i, u: t[:, i % 64],
    "index tuples": lambda t, i, u: t[i, i % 64 - 64],
    "index broadcast": lambda t, i, u: t[i[:, None], torch.arange(5)],
    "index.out": lambda t, i, u: torch.ops.aten.index.Tensor_out(t, [i], out=torch.empty_like(u)),
    "index_select": lambda t, i, u: t.index_select(0, i),
    "index_select.out": lambda t, i, u: torch.index_select(t, 0, i, out=torch.empty_like(u)),
    "take": lambda t, i, u: t.take(i.reshape(3, -1) - 30_000),
    "take.out": lambda t, i, u: torch.take(t, i, out=torch.empty(len(i), dtype=t.dtype)),
    "gather": lambda t, i, u: t.gather(0, wide(i, u)),
    "gather lanes": lambda t, i, u: t.gather(1, wide(i, u)[:500] % 64),
    "gather.out": lambda t, i, u: torch.gather(t, 0, wide(i, u), out=torch.empty_like(u)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits_at_any_number_of_threads(name, spy, kernels):
    call, inputs = CALLS[name], edges()
    with ndscatter.torch.enable(always=True):
        results = []
        for threads in (1, 2, 2, 3):
            torch.set_num_threads(threads)
            results.append(call(*inputs))
    assert spy.done == 4, "all calls are large enough for the kernels"
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("name", NATIVE_CALLS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_functions_with_native_kernels_only(name, threads, spy):
    call = NATIVE_CALLS[name]
    for dtype in (torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex128):
        inputs = edges(dtype=dtype)
        torch.set_num_threads(1)
        expected = call(*inputs)
        torch.set_num_threads(threads)
        with ndscatter.torch.enable(always=True):
            found = call(*inputs)
        if dtype is torch.bfloat16 and name == "put_ add":
            torch.testing.assert_close(found, expected, rtol=0.1, atol=10)
        else:
            assert torch.equal(found, expected)
        assert found.stride() == expected.stride()
    assert spy.done == 5


@pytest.mark.parametrize("name", CALLS)
def test_the_order_is_that_of_the_indices(name, kernels):
    """The reference is PyTorch on one thread, which applies updates in the order of the indices.

    If the name of a call contains "reduce", PyTorch may use another order, and so round the result
    differently. For these calls, results are compared with a relative tolerance of 1e-12. The bits
    of all other results must be equal.
    """
    call, inputs = CALLS[name], edges(dtype=torch.float64)
    torch.set_num_threads(1)
    expected = call(*inputs)
    with ndscatter.torch.enable(always=True):
        found = call(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    if "reduce" not in name:
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "name", ["scatter_add", "scatter_reduce", "index_add", "index_put add", "embedding"]
)
def test_type_of_sums_of_halves(dtype, name):
    # A 16-bit sum that is rounded after each addition stays at 2048 (float16) or 256 (bfloat16)
    # when 1 is added. A sum in float32 does not, so the test finds where PyTorch sums in float32.
    large = 2048.0 if dtype is torch.float16 else 256.0
    table = torch.full((1, 32), large, dtype=dtype)
    updates = torch.ones(64, 32, dtype=dtype)
    if name == "embedding":
        updates = torch.cat([table, updates])
    index = torch.zeros(len(updates), dtype=torch.long)
    expected = CALLS[name](table, index, updates)
    with ndscatter.torch.enable(always=True):
        assert torch.equal(CALLS[name](table, index, updates), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1, -1])
def test_halves_along_each_axis(dtype, alpha, spy):
    """`index_add` of PyTorch sums 16-bit floats in float32 only along the first or the last axis,
    and only with `alpha` 1. In all other cases it rounds to 16 bits after each update."""
    large = (2048.0 if dtype is torch.float16 else 256.0) * alpha
    index = torch.zeros(64, dtype=torch.long)
    for dim in (0, 1, 2, -1, -2, -3):
        shape, wanted = [2, 2, 2], [2, 2, 2]
        shape[dim], wanted[dim] = 1, 64
        table, updates = torch.full(shape, large, dtype=dtype), torch.ones(wanted, dtype=dtype)
        expected = table.index_add(dim, index, updates, alpha=alpha)
        with ndscatter.torch.enable(always=True):
            assert torch.equal(table.index_add(dim, index, updates, alpha=alpha), expected)
    assert spy.done == 6


def test_halves_in_a_line_and_at_short_indices():
    line = torch.full((1,), 2048.0, dtype=torch.half)
    ones, zeros = torch.ones(64, dtype=torch.half), torch.zeros(64, dtype=torch.long)
    table, rows = line.reshape(1, 1), ones.reshape(64, 1)
    for call in (
        lambda: line.index_add(0, zeros, ones),
        lambda: table.index_add(0, zeros.int(), rows),
        lambda: table.index_add(0, zeros, rows),
    ):
        expected = call()
        with ndscatter.torch.enable(always=True):
            assert torch.equal(call(), expected)


def test_small_calls_stay_with_pytorch(spy, monkeypatch):
    """Small calls of Python functions do not reach the extension module."""
    reached = []
    monkeypatch.setattr(_kernels.native, "attempt", lambda *arguments, **_: reached.append(arguments))
    with ndscatter.torch.enable(native=False):
        for call in CALLS.values():
            call(*edges(rows=4, count=4, width=4))
        assert not reached
        CALLS["index_add"](*edges())
        assert reached
    assert spy.done == 0


def line(name, count, table=1 << 12, dtype=torch.float32):
    """Call a function on a tensor of rank 1."""
    data, index = torch.zeros(table, dtype=dtype), torch.arange(count) % table
    updates = torch.ones(count, dtype=dtype)
    if name == "scatter value":
        return data.scatter_(0, index, 1.0)
    if name == "put_":
        return data.put_(index, updates, accumulate=True)
    if name in ("index", "take", "gather", "index_select"):
        return {
            "index": lambda: data[index],
            "take": lambda: data.take(index),
            "gather": lambda: data.gather(0, index),
            "index_select": lambda: data.index_select(0, index),
        }[name]()
    more = ("amax",) if name in ("scatter_reduce", "index_reduce") else ()
    return getattr(data, f"{name}_")(0, index, updates, *more)


# Both sides of every limit of the native kernels: a call, and whether it runs on ndscatter. The
# limits are in src/torch.
LARGE = (32 << 20) // 4
SIDES = {
    "few": [
        (lambda name=name, count=count: line(name, count), count == 128)
        for name in ("scatter", "scatter_add", "scatter_reduce")
        for count in (128, 129)
    ],
    "many": [
        (lambda name=name, count=count: line(name, count, LARGE + 1), count == 1 << 18)
        for name in ("scatter", "scatter_add", "scatter_reduce", "scatter value", "index_add")
        for count in ((1 << 18) - 1, 1 << 18)
    ],
    "histogram": [(lambda n=n: line("index_add", n), n == 1 << 18) for n in ((1 << 18) - 1, 1 << 18)],
    "cache": [
        (lambda table=table: line("scatter", 1 << 18, table), table > LARGE)
        for table in (LARGE, LARGE + 1)
    ],
    "index_copy": [
        (lambda: line("index_copy", 1 << 15), True),
        (lambda: line("index_copy", (1 << 15) + 1), False),
    ],
    "no limit": [
        (lambda: line("index_reduce", 1), True),
        (lambda: torch.zeros(9).index_put_((torch.tensor([1]),), torch.ones(1)), True),
        (lambda: torch.zeros(9, 2).index_add_(0, torch.tensor([1]), torch.ones(1, 2)), True),
        (lambda: torch.zeros(9, 2).scatter_(0, torch.ones(1, 1).long().expand(1, 2), 1.0), True),
    ],
    "short slices": [
        (lambda rows=rows, width=width, table=table, add=add: torch.zeros(table, width).index_put_(
            (torch.arange(rows),), torch.ones(rows, width), accumulate=add), taken)
        for rows, width, table, add, taken in [
            (2184, 15, LARGE // 15 + 1, False, True),
            (2185, 15, LARGE // 15 + 1, False, False),
            (8738, 15, LARGE // 15 + 1, False, False),
            (8739, 15, LARGE // 15 + 1, False, True),
            (2185, 15, LARGE // 15, False, True),
            (2185, 15, LARGE // 15 + 1, True, True),
            (2048, 16, LARGE // 16 + 1, False, True),
        ]
    ],
    "mean": [
        (lambda: torch.zeros(2, 64 * 150).scatter_reduce_(
            1, torch.zeros(2, 150).long(), torch.ones(2, 150), "mean"), True),
        (lambda: torch.zeros(2, 64 * 150 - 1).scatter_reduce_(
            1, torch.zeros(2, 150).long(), torch.ones(2, 150), "mean"), False),
    ],
    "lanes": [(lambda: torch.zeros(99, 99).scatter_add_(
        1, torch.zeros(99, 99).long(), torch.ones(99, 99)), False)],
    "last axis": [(lambda: torch.zeros(9, 99).index_add_(
        1, torch.zeros(99).long(), torch.ones(9, 99)), False)],
    "halves": [(lambda: torch.zeros(9, 9).half().index_add_(
        0, torch.zeros(9).long(), torch.ones(9, 9).half()), False)],
    "embedding": [
        (lambda rows=rows: torch.ops.aten.embedding_dense_backward(
            torch.ones(rows, 32), torch.zeros(rows).long(), 9, -1, False), rows == 64)
        for rows in (63, 64)
    ],
    "index_fill": [
        (lambda rows=rows, width=width: torch.zeros(9, width).index_fill_(
            0, torch.zeros(rows).long(), 1.0), taken)
        for rows, width, taken in [
            (128, 64, True), (127, 64, False), (131, 63, False), (131_072, 2, True), (131_071, 2, False)
        ]
    ],
    "put_": [(lambda n=n: line("put_", n), n == 4096) for n in (4095, 4096)],
    "index": [
        *((lambda n=n: line("index", n), n == 256) for n in (255, 256)),
        *((lambda n=n: torch.zeros(9, 4)[torch.zeros(n).long()], n == 256) for n in (255, 256)),
    ],
    "single gathers": [
        (lambda name=name, n=n: line(name, n), n == 1024)
        for name in ("take", "gather") for n in (1023, 1024)
    ],
    "gathers beyond the cache": [
        (lambda name=name, n=n: line(name, n, LARGE + 1), n == 1 << 18)
        for name in ("take", "gather") for n in ((1 << 18) - 1, 1 << 18)
    ],
    "index_select": [
        (lambda n=n: line("index_select", n), n == 1 << 18) for n in ((1 << 18) - 1, 1 << 18)
    ],
    "rows selected": [
        (lambda n=n, rows=rows: torch.zeros(rows, 2).index_select(0, torch.zeros(n).long()), taken)
        for n, rows, taken in [
            (1 << 18, LARGE // 2, False),
            (1 << 18, LARGE // 2 + 1, True),
            ((1 << 18) - 1, LARGE // 2 + 1, False),
        ]
    ],
    "rows gathered": [
        (lambda n=n, rows=rows: torch.zeros(rows, 2).gather(
            0, torch.zeros(n, 1).long().expand(n, 2)), taken)
        for n, rows, taken in [
            (1 << 17, LARGE // 2, False),
            (1 << 17, LARGE // 2 + 1, True),
            ((1 << 17) - 1, LARGE // 2 + 1, False),
        ]
    ],
    "gathers of lanes": [(lambda: torch.zeros(99, 99).gather(1, torch.zeros(99, 99).long()), False)],
}  # fmt: skip


@pytest.mark.parametrize("name", SIDES)
def test_both_sides_of_each_limit(name, spy, monkeypatch):
    for call, taken in SIDES[name]:
        spy.reset()
        with ndscatter.torch.enable():
            call()
        assert spy.done == int(taken), call
        with ndscatter.torch.enable(always=True):
            call()
        assert spy.done == int(taken) + 1, call


def test_set_num_threads_is_obeyed():
    """With `set_num_threads(1)`, only the calling thread uses CPU time. `share` returns the
    fraction of the process's CPU time that other threads used."""
    code = """
import time, torch, ndscatter.torch
g = torch.Generator().manual_seed(0)
table, updates = torch.zeros(100_000, 64), torch.randn(400_000, 64)
index = torch.randint(0, 100_000, (400_000,), generator=g)
ndscatter.torch.enable()
def share(threads):
    torch.set_num_threads(threads)
    table.index_add_(0, index, updates)
    own, total = time.thread_time(), time.process_time()
    for _ in range(10):
        table.index_add_(0, index, updates)
    return 1 - (time.thread_time() - own) / (time.process_time() - total)
print(share(1), share(2))
"""
    one, two = map(float, python(code).split())
    assert one < 0.05 < 0.1 < two


def python(code):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def takes_over(spy, call=CALLS["scatter_add_"]):
    before = spy.done
    call(*edges())
    return spy.done > before


def test_disable_restores_pytorchs_kernels(spy, kernels):
    handle = ndscatter.torch.enable()
    is_native = kernels == "native"
    assert handle.native == is_native
    missing = {"embedding_dense_backward", "index_fill", "put", "index", "index_select", "take", "gather"}
    expected = frozenset(ndscatter.torch.FUNCTIONS) - (frozenset() if is_native else missing)
    assert takes_over(spy) and ndscatter.torch.enabled() == expected
    ndscatter.torch.disable()
    assert not takes_over(spy) and not ndscatter.torch.enabled()
    handle.disable()
    ndscatter.torch.disable()


def test_names_are_those_of_the_native_kernels():
    operators = {name for names in ndscatter.torch.FUNCTIONS.values() for name in names}
    assert _library.load().operators == operators


def test_results_have_the_strides_of_pytorch(spy):
    """The strides of PyTorch's `t[i]` follow those of the table and of the indices."""
    g = numbers()
    images = torch.randn(64, 3, 8, 8, generator=g)
    tables = [
        images, images.to(memory_format=torch.channels_last), images.transpose(1, 2), images[:, :1],
        images[:, :, ::2], images[:, :, :, :1], images[:1].expand(64, 3, 8, 8), images[:, 0, 0, 0],
    ]  # fmt: skip
    i, j = torch.randint(0, 64, (6, 5), generator=g), torch.randint(0, 3, (6, 5), generator=g)
    lists = [
        [i], [i.t()], [i[0, 0]], [i[:, :1]], [i[:0]], [i[::2]], [i.expand(2, 6, 5)], [None, j],
        [i, j], [i.t(), j.t()], [i[:, :1], j[:1]], [i, None, j], [None, j, j],
    ]  # fmt: skip
    for table in tables:
        for indices in lists:
            used = indices[: table.dim()]
            if len(used) < len(indices) or (len(used) > 1 and table.shape[1] < 3 and used[1] is not None):
                continue
            expected = torch.ops.aten.index(table, used)
            with ndscatter.torch.enable(always=True):
                found = torch.ops.aten.index(table, used)
            assert torch.equal(found, expected)
            assert found.stride() == expected.stride(), (table.stride(), used)
    assert spy.done >= 5


def test_a_storage_that_was_freed(kernels):
    """Calls of which PyTorch raises an error instead of an access to memory that does not exist."""
    index = torch.randint(0, 256, (100,))
    calls = {
        "t[i]": lambda t: t[index],
        "index_put_": lambda t: t.index_put_((index,), torch.ones(100, 64)),
        "index_copy_": lambda t: t.index_copy_(0, index, torch.ones(100, 64)),
        "take": lambda t: t.take(index),
        "index_select": lambda t: t.index_select(0, index),
    }
    for name, call in calls.items():
        flat = torch.zeros(20_000)
        view = flat[100:16_484].view(256, 64)
        flat.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError) as expected:
            call(view)
        with ndscatter.torch.enable(always=True), pytest.raises(RuntimeError) as found:
            call(view)
        assert str(found.value) == str(expected.value), name


def test_copies_on_the_first_write(kernels):
    table = torch.arange(16.0).reshape(4, 4)
    clone = torch._lazy_clone(table)
    index = torch.tensor([[0], [1]]).expand(2, 4)
    with ndscatter.torch.enable(always=True):
        clone.scatter_add_(0, index, torch.ones(2, 4))
    assert torch.equal(table, torch.arange(16.0).reshape(4, 4))
    assert torch.equal(clone[:2], table[:2] + 1)
    shared = torch._lazy_clone(torch.arange(16).reshape(4, 4) % 4)
    with ndscatter.torch.enable(always=True), pytest.raises(RuntimeError, match="internal overlap|single memory"):
        shared.scatter_add_(0, shared, torch.ones(4, 4, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_means_whose_count_wraps_around(dtype):
    table, index = torch.zeros(2, 4, dtype=dtype), torch.zeros(300, dtype=torch.long)
    call = lambda: table.index_reduce(
        0, index, torch.ones(300, 4, dtype=dtype), "mean", include_self=False
    )
    expected = call()
    with ndscatter.torch.enable(always=True):
        assert torch.equal(call(), expected)


def test_only_named_functions_are_registered(spy, kernels):
    with ndscatter.torch.enable(only=["index_add"]):
        assert not takes_over(spy)
        assert takes_over(spy, CALLS["index_add"])
    with pytest.raises(ValueError, match="no function is called 'cumsum'"):
        ndscatter.torch.enable(only=["cumsum"])
    if kernels == "python":
        with pytest.raises(RuntimeError, match="'gather' has native kernels only"):
            ndscatter.torch.enable(only=["gather"])
    assert not ndscatter.torch.enabled()


def test_only_accepts_one_name(spy):
    with ndscatter.torch.enable(only="index_add") as enabled:
        assert enabled.functions == {"index_add"}
        assert takes_over(spy, CALLS["index_add"])
    # The name of the form in place names the same function.
    with ndscatter.torch.enable(only="index_add_") as enabled:
        assert enabled.functions == {"index_add"}
    with pytest.raises(ValueError, match="no function is called 'index_add__'; use scatter_add, "):
        ndscatter.torch.enable(only="index_add__")
    with pytest.raises(TypeError, match="`only` contains 3; pass names of functions"):
        ndscatter.torch.enable(only=[3])


def test_the_printed_form_of_functions_has_names_only():
    printed = repr(ndscatter.torch.FUNCTIONS)
    assert "'index_add': ('index_add', 'index_add_', 'index_add.out')" in printed
    assert " at 0x" not in printed


def test_a_registration_reports_its_present_state():
    with ndscatter.torch.enable(only="index_add") as outer:
        assert outer.state == "active"
        with ndscatter.torch.enable(only=["take"]) as inner:
            assert (outer.state, inner.state) == ("suspended", "active")
            assert repr(outer) == "Enabled(index_add, native=True, state='suspended')"
        assert (outer.state, inner.state) == ("active", "ended")
    assert repr(outer) == "Enabled(index_add, native=True, state='ended')"


def test_forms_that_python_functions_do_not_run_by_default(spy):
    for name in ("scatter_add", "scatter_reduce", "embedding"):
        spy.reset()
        with ndscatter.torch.enable(native=False):
            CALLS[name](*edges())
        assert spy.done == 0
        with ndscatter.torch.enable(native=False, always=True):
            CALLS[name](*edges())
        assert spy.done == 1
        with ndscatter.torch.enable():
            CALLS[name](*edges())
        assert spy.done == 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("call", ["put", "add", "index"])
@pytest.mark.parametrize(
    ("columns", "width", "taken"),
    # A call with broadcast indices runs on ndscatter's kernel in two cases. In the first case, the
    # broadcast makes at most 4 tuples per stored element of the index tensors. In the second case,
    # a slice has at least 4 elements.
    [(4, 1, True), (5, 1, False), (64, 1, False), (64, 3, False), (64, 4, True), (64, 64, True)],
)
def test_spread_indices_stay_with_pytorch(columns, width, taken, call, spy):
    count = 40_000
    g = numbers()
    table, rows = torch.zeros(count, columns, width), torch.randperm(count, generator=g)[:, None]
    values = torch.randn(count, columns, width, generator=g)
    line = torch.arange(columns)

    def run(into, indices):
        if call == "index":
            return into[indices]
        return into.index_put_(indices, values, accumulate=call == "add")

    table.copy_(values)
    expected = run(table.clone(), (rows, line))
    # `expand` only sets strides to 0, so an expanded index tensor stores no more elements than the
    # original. The decision is therefore the same for expanded indices.
    expanded = (rows.expand(count, columns), line.expand(count, columns))
    for indices in [(rows, line), (rows, expanded[1]), expanded]:
        spy.reset()
        into = table.clone()
        with ndscatter.torch.enable():
            found = run(into, indices)
        assert torch.equal(found, expected)
        # An expanded index tensor is not row-major, so `t[i]` has other strides in PyTorch.
        is_row_major = call != "index" or all(index.is_contiguous() for index in indices)
        assert spy.done == int(taken and is_row_major)


def test_indices_whose_positions_do_not_fit_into_memory(spy):
    """ndscatter cannot allocate the positions of 2**40 or more tuples, so PyTorch runs the call.
    PyTorch reads broadcast indices without a copy, and raises an error for the first index, which
    is out of bounds."""
    for count in (1 << 20, 1 << 29):
        outside = torch.full((), 10**6).expand(count)
        table, one = torch.zeros(3, 3, 8), torch.ones(8)
        with ndscatter.torch.enable(always=True), pytest.raises(IndexError, match="out of bounds"):
            table.index_put_((outside[:, None], outside), one)
    assert spy.done == 0


def test_nested_enable(spy, kernels):
    with ndscatter.torch.enable():
        with ndscatter.torch.enable(only=["index_add"]):
            assert not takes_over(spy)
            with pytest.raises(KeyError), ndscatter.torch.enable():
                raise KeyError
            assert not takes_over(spy)
        assert takes_over(spy)
    assert not takes_over(spy)


def test_a_failed_enable_changes_nothing(spy, monkeypatch, kernels):
    override = _kernels.Override(lambda fall_back, always: None)
    broken = {"wrong": {"no_such_operator": override}}
    monkeypatch.setattr(_switch, "OVERRIDES", {**broken, **_kernels.OVERRIDES})
    for before in (None, ["scatter_add"]):
        if before:
            ndscatter.torch.enable(only=before)
        with pytest.raises(Exception, match="no_such_operator"):
            ndscatter.torch.enable(only=["index_copy", "wrong"])
        assert ndscatter.torch.enabled() == frozenset(before or [])
        assert takes_over(spy) == bool(before)
        assert not takes_over(spy, CALLS["index_copy"])


def test_another_release_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "1.13.0")
    monkeypatch.setattr(_switch, "_is_connected", False)
    with pytest.raises(RuntimeError, match="is for PyTorch"):
        ndscatter.torch.enable()


def test_eight_threads(kernels):
    table, index, updates = edges(rows=2000, count=20_000)
    with ndscatter.torch.enable():
        expected = table.index_add(0, index, updates)
        results = [None] * 8

        def work(number):
            for _ in range(10):
                results[number] = table.index_add(0, index, updates)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(torch.equal(result, expected) for result in results)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("native", [True, False])
def test_switched_while_other_threads_call(native):
    """By itself, PyTorch frees a deregistered kernel even while another thread runs the kernel or
    is about to run it. ndscatter keeps the kernel alive."""
    code = f"native = {native}" + """
import threading, time, torch, ndscatter.torch
g = torch.Generator().manual_seed(0)
table, updates = torch.randn(300, 16, generator=g), torch.randn(2000, 16, generator=g)
index = torch.randint(0, 300, (2000,), generator=g)
wide = index[:, None].expand_as(updates)
calls = [
    lambda: table.scatter_add(0, wide, updates),
    lambda: table.clone().scatter_reduce_(0, wide, updates, "amax"),
    lambda: table.clone().index_put_((index,), updates, accumulate=True),
    lambda: table.index_add(0, index, updates),
]
expected = [call() for call in calls]
is_over, wrong = threading.Event(), []
def work():
    while not is_over.is_set():
        try:
            for call, result in zip(calls, expected):
                torch.testing.assert_close(call(), result, rtol=1e-3, atol=1e-3)
        except BaseException as error:
            wrong.append(error)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(600):
    with ndscatter.torch.enable(always=number % 2 == 0, native=native):
        time.sleep(0.001 * (number % 3))
is_over.set()
for thread in threads:
    thread.join()
print(wrong[:1])
"""
    assert python(code).strip() == "[]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork():
    """A forked child process has none of OpenMP's threads. A kernel of PyTorch that uses several
    threads waits for them forever in the child. ndscatter's kernel must not wait."""
    code = """
import os, sys, torch, ndscatter.torch
g = torch.Generator().manual_seed(0)
table, updates = torch.zeros(5000, 64), torch.randn(20_000, 64, generator=g)
index = torch.randint(0, 5000, (20_000,), generator=g)
ndscatter.torch.enable()
torch.set_num_threads(2)
expected = table.index_add(0, index, updates)
child = os.fork()
if not child:
    # torch.equal is a kernel of PyTorch. With two threads, it would wait forever for OpenMP's
    # threads in the child, so the child sets one thread before it calls torch.equal.
    result = table.index_add_(0, index, updates)
    torch.set_num_threads(1)
    os._exit(0 if torch.equal(result, expected) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code).strip() == "0"


def test_tensors_that_require_grad(spy, kernels):
    table, index, updates = edges(dtype=torch.float64)
    gradients = []
    for is_enabled in (False, True):
        leaf, messages = table.clone().requires_grad_(), updates.clone().requires_grad_()
        if is_enabled:
            ndscatter.torch.enable(always=True)
        sums = leaf.index_add(0, index, messages)
        sums = sums.scatter_reduce(0, wide(index, messages), messages, "amax")
        loss = (sums * sums).sum() + torch.nn.functional.embedding(index, sums).sum()
        loss.backward()
        with torch.no_grad():
            leaf.index_add_(0, index, messages)
        gradients.append((sums.detach(), leaf.grad, messages.grad, leaf.detach()))
    assert spy.done > 3
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-9)


REFUSED = {
    "too large": lambda t, i, u: t.index_add_(0, i + 1_000_000, u),
    "negative": lambda t, i, u: t.index_add_(0, i - 1, u),
    "scatter": lambda t, i, u: t.scatter_add_(0, wide(i - 1, u), u),
    "put": lambda t, i, u: t.index_put_((i + 1_000_000,), u),
    "tuples": lambda t, i, u: t.index_put_((i[:, None], torch.arange(64) + 1), u),
    "types": lambda t, i, u: t.index_add_(0, i, u.double()),
    "put types": lambda t, i, u: t.index_put_((i,), u.double()),
    "index type": lambda t, i, u: t.index_copy_(0, i.int(), u),
    "shape": lambda t, i, u: t.index_add_(0, i[1:], u),
    "overlap": lambda t, i, u: t[:1].expand(500, 64).index_add_(0, i, u),
    "shared": lambda t, i, u: t.index_add_(0, i[:500], t),
    "name": lambda t, i, u: t.scatter_reduce_(0, wide(i, u), u, "multiply"),
    "name of index_reduce": lambda t, i, u: t.index_reduce_(0, i, u, "sum"),
    "name of scatter": lambda t, i, u: t.scatter_(0, wide(i, u), u, reduce="amax"),
    "axis": lambda t, i, u: t.index_add_(2, i, u),
    "mean of bool": lambda t, i, u: t.bool().scatter_reduce_(
        0, wide(i, u), u.bool(), "mean"
    ),
    "no name of scatter": lambda t, i, u: t.scatter_(0, wide(i, u), u, reduce=""),
    "no name of scatter, value": lambda t, i, u: t.scatter_(0, wide(i, u), 1, reduce=""),
    "bool": lambda t, i, u: t.bool().index_reduce_(0, i, u.bool(), "prod", include_self=False),
    "complex": lambda t, i, u: t.cfloat().index_reduce(
        0, i, u.cfloat(), "mean", include_self=False
    ),
    "other strides": lambda t, i, u: torch.scatter_add(
        t[:1].as_strided((1, 64), (1, 1)), 0, wide(i * 0, u), u, out=t[:1]
    ),
    "too large for halves": lambda t, i, u: t.half().scatter_(0, wide(i, u), 65505),
    "too large for floats": lambda t, i, u: t.scatter_(0, wide(i, u), -1e39),
    "too large for complex": lambda t, i, u: t.cfloat().scatter(0, wide(i, u), 1e39j),
    "value": lambda t, i, u: t.byte().scatter_(0, wide(i, u), 1j),
    "gather": lambda t, i, u: t[i + 1_000_000],
    "gather tuples": lambda t, i, u: t[i, i],
    "select": lambda t, i, u: t.index_select(0, i - 1),
    "select type": lambda t, i, u: t.index_select(0, u[0]),
    "take": lambda t, i, u: t.take(i - 40_000),
    "take type": lambda t, i, u: t.take(i.int()),
    "gather negative": lambda t, i, u: t.gather(0, wide(i - 1, u)),
    "gather shape": lambda t, i, u: t.gather(0, torch.zeros(3, 65).long()),
    "gather into itself": lambda t, i, u: torch.gather(t, 0, wide(i[:500], t), out=t),
    "fill": lambda t, i, u: t.index_fill_(0, i + 1_000_000, 1.0),
    "fill type": lambda t, i, u: t.index_fill_(0, i.int(), 1.0),
    "fill too large": lambda t, i, u: t.half().index_fill_(0, i, 65505),
    "fill shape": lambda t, i, u: t.index_fill_(0, i, u),
    "flat put": lambda t, i, u: t.put_(i + 1_000_000, u[:, 0]),
    "flat put shape": lambda t, i, u: t.put_(i, u[1:, 0]),
    "flat put type": lambda t, i, u: t.put_(i, u[:, 0].double()),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_those_of_pytorch(name, kernels):
    # With several threads and several invalid indices, the error that PyTorch reports depends on
    # which thread finds an invalid index first.
    torch.set_num_threads(1)
    with pytest.raises(Exception) as expected:  # noqa: PT011
        REFUSED[name](*edges())
    with ndscatter.torch.enable(always=True), pytest.raises(expected.type) as found:
        REFUSED[name](*edges())
    assert str(found.value) == str(expected.value)


def test_unsupported_types_stay_with_pytorch():
    index = torch.tensor([2, 0])
    for dtype in (torch.complex32, torch.uint16, torch.float8_e4m3fn):
        table, updates = torch.zeros(3, 2).to(dtype), torch.ones(2, 2).to(dtype)
        for call in (
            lambda t, u: t.index_add(0, index, u),
            lambda t, u: t.index_put((index,), u),
            lambda t, u: t.scatter(0, index[:, None].expand(2, 2), u),
        ):
            results = []
            for always in (False, True):
                if always:
                    ndscatter.torch.enable(always=True)
                try:
                    results.append(call(table, updates).to(torch.complex64).tolist())
                except (RuntimeError, NotImplementedError) as error:
                    results.append(type(error))
                ndscatter.torch.disable()
            assert results[0] == results[1]


def test_views_with_the_negative_or_conjugate_bit():
    table = torch.randn(4, 3, dtype=torch.complex64, generator=numbers())
    index, updates = torch.tensor([1, 1, 3]), torch.randn(3, 3, dtype=torch.complex64)
    calls = [
        lambda: table.conj().index_add(0, index, updates.conj()),
        lambda: table.conj().clone().scatter_add_(0, wide(index, updates), updates.conj()),
        lambda: table.conj().imag.index_add(0, index, updates.conj().imag),
        lambda: table.clone().conj().index_put_((index,), updates.conj(), accumulate=True),
        lambda: table.conj().imag.clone().index_put_((index,), updates.conj().imag),
    ]
    for call in calls:
        expected = call()
        with ndscatter.torch.enable(always=True):
            assert torch.equal(call(), expected)


def test_masks_and_gaps_between_indices():
    table = torch.randn(6, 5, 4, generator=numbers())
    mask = torch.rand(6, generator=numbers()) > 0.5
    i, j = torch.tensor([0, -1, 3]), torch.tensor([[1], [2]])
    puts = [
        ([mask], torch.tensor(1.0)),
        ([mask.byte()], torch.randn(5, 4)),
        ([i], torch.randn(5, 4)),
        ([i.int()], torch.tensor(2.0)),
        ([None, i], torch.randn(6, 3, 4)),
        ([None, i, j], torch.randn(6, 2, 3)),
        ([i, None, j], torch.randn(2, 3, 5)),
        ([i, j], torch.randn(1, 3, 1)),
        ([i, j, torch.tensor(1)], torch.randn(2, 3)),
        ([None, None, torch.tensor(-4)], torch.randn(6, 5)),
        ([i[:0]], torch.randn(0, 5, 4)),
    ]
    for indices, values in puts:
        for accumulate in (False, True):
            for data in (table, table.permute(2, 0, 1).contiguous().permute(1, 2, 0)):
                expected = torch.ops.aten.index_put(data, indices, values, accumulate)
                with ndscatter.torch.enable(always=True):
                    found = torch.ops.aten.index_put(data, indices, values, accumulate)
                torch.testing.assert_close(found, expected)
                assert found.stride() == expected.stride()


@pytest.mark.parametrize("shape", list(itertools.product((1, 2, 3), repeat=3)))
def test_indexed_axes_with_any_strides(shape, spy):
    """Indexed axes with any strides, so that some cannot be merged. Some axes have size 1. Their
    strides have no meaning."""
    order = torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij")).reshape(3, -1)
    values = torch.arange(1.0, order.shape[1] + 1)
    for strides in itertools.product((1, 2, 3, 4, 6, 9), repeat=3):
        length = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
        places = (order.T * torch.tensor(strides)).sum(1)
        if len(places.unique()) < len(places):
            continue
        memory = torch.zeros(length + 64)
        with ndscatter.torch.enable(always=True):
            memory.as_strided(shape, strides, 32).index_put_(tuple(order), values)
        expected = torch.zeros(length + 64)
        expected[places + 32] = values
        assert torch.equal(memory, expected)
    assert spy.done


def test_unaligned_indices_stay_with_pytorch(spy, kernels):
    rows, columns = torch.tensor([2, -1, 0]), torch.tensor([[1], [3]])
    table, values = torch.zeros(4, 5), torch.arange(6.0).reshape(2, 3)
    odd = torch.frombuffer(bytearray(1) + rows.numpy().tobytes(), dtype=torch.long, offset=1)
    assert odd.data_ptr() % 8
    expected = table.index_put((rows, columns), values)
    with ndscatter.torch.enable(always=True):
        assert torch.equal(table.index_put((odd, columns), values), expected)
        assert spy.done == 0
        assert torch.equal(
            table.index_add(0, odd.abs(), torch.ones(3, 5)),
            table.index_add(0, rows.abs(), torch.ones(3, 5)),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("alpha", [1, -1, 2, 1.0, -1.0, 0.5, True, 0, 1j])
def test_factors(dtype, alpha):
    table, updates = torch.ones(3, 4).to(dtype), torch.full((5, 4), 3).to(dtype)
    index = torch.tensor([0, 1, 0, 2, 0])

    def outcome():
        try:
            return table.index_add(0, index, updates, alpha=alpha).tolist()
        except RuntimeError as error:
            return str(error)

    expected = outcome()
    with ndscatter.torch.enable(always=True):
        assert outcome() == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("value", [1, -1, 300, 1.5, True, math.inf, 1j])
@pytest.mark.parametrize("reduce", [None, "add", "multiply"])
def test_values(dtype, value, reduce):
    table, index = torch.ones(3, 4).to(dtype), torch.tensor([0, 1, 0, 2, 0])[:, None]
    options = {"reduce": reduce} if reduce else {}

    def outcome():
        try:
            return table.scatter(0, index.expand(5, 4), value, **options).tolist()
        except RuntimeError as error:
            return str(error)

    expected = outcome()
    with ndscatter.torch.enable(always=True):
        assert outcome() == expected


def test_an_embedding_skips_indices_out_of_bounds():
    g = numbers()
    index = torch.randint(-2, 12, (7, 5), generator=g)
    gradient = torch.randn(7, 5, 3, generator=g)
    for padding in (-1, 0, 9, 50):
        arguments = gradient, index, 10, padding, False
        expected = torch.ops.aten.embedding_dense_backward(*arguments)
        with ndscatter.torch.enable(always=True):
            found = torch.ops.aten.embedding_dense_backward(*arguments)
        assert torch.equal(found, expected)


def test_the_kernels_ignore_flush_to_zero():
    tiny = torch.full((3,), 1e-40)
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor has no such mode")
    try:
        with ndscatter.torch.enable(always=True):
            result = torch.zeros(3).index_add_(0, torch.arange(3), tiny)
    finally:
        torch.set_flush_denormal(False)
    assert result.tolist() == tiny.tolist()


def test_nan_and_ties():
    data = torch.tensor([1.0, math.nan, -0.0, 2.0])
    index, updates = torch.tensor([0, 1, 2, 3]), torch.tensor([math.nan, 5.0, 0.0, 2.0])
    for reduce in ("amax", "amin"):
        expected = data.scatter_reduce(0, index, updates, reduce)
        with ndscatter.torch.enable(always=True):
            found = data.scatter_reduce(0, index, updates, reduce)
        assert torch.equal(found.isnan(), expected.isnan())
        assert torch.equal(found[2:].signbit(), expected[2:].signbit())


def test_vmap_and_modes():
    table, index, updates = edges(rows=5, count=8, width=3)
    batch = torch.stack([updates, updates * 2])
    call = torch.vmap(lambda u: table.index_add(0, index, u))
    expected = call(batch)
    with ndscatter.torch.enable(always=True):
        torch.testing.assert_close(call(batch), expected)
        with torch.device("meta"):
            assert table.index_add(0, index, updates).device.type == "cpu"
        meta = table.to("meta").index_add(0, index.to("meta"), updates.to("meta"))
        assert meta.device.type == "meta"
        with torch.inference_mode():
            torch.testing.assert_close(
                table.index_add(0, index, updates), table.clone().index_add_(0, index, updates)
            )


def test_an_output_of_another_shape_is_resized():
    table, index, updates = edges(rows=5, count=8, width=3)
    expected = table.index_add(0, index, updates)
    with ndscatter.torch.enable(always=True):
        out = torch.empty(0)
        assert torch.index_add(table, 0, index, updates, out=out) is out
        assert torch.equal(out, expected)
        same = table.clone()
        assert torch.index_add(same, 0, index, updates, out=same) is same
        assert torch.equal(same, expected)
        column = torch.empty(3, 5).t()
        torch.index_add(table, 0, index, updates, out=column)
        assert torch.equal(column, expected)
