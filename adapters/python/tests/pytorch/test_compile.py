"""Tests which functions in a graph compiled by `torch.compile` run on ndscatter's kernels."""

import pytest
import torch
import torch._inductor.config

import ndscatter.torch


@pytest.fixture(autouse=True)
def no_cache():
    """Disables inductor's cache. Before PyTorch 2.13, the cache ignores the number of threads: with
    2 threads, the cache returns loops that inductor compiled for 1 thread."""
    with torch._inductor.config.patch(force_disable_caches=True):
        yield


def wide(index, updates):
    return index[:, None].expand_as(updates)


CALLS = {
    "scatter_add": lambda t, i, u: t.scatter_add(0, wide(i, u), u),
    "scatter_reduce sum": lambda t, i, u: t.scatter_reduce(0, wide(i, u), u, "sum"),
    "scatter_reduce prod": lambda t, i, u: t.scatter_reduce(0, wide(i, u), u, "prod"),
    "scatter_reduce mean": lambda t, i, u: t.scatter_reduce(0, wide(i, u), u, "mean"),
    "scatter_reduce amax": lambda t, i, u: t.scatter_reduce(0, wide(i, u), u, "amax"),
    "scatter": lambda t, i, u: t.scatter(0, wide(i, u), u),
    "scatter reduce": lambda t, i, u: t.scatter(0, wide(i, u), u, reduce="add"),
    "index_add": lambda t, i, u: t.index_add(0, i, u),
    "index_copy": lambda t, i, u: t.index_copy(0, i, u),
    "index_reduce": lambda t, i, u: t.index_reduce(0, i, u, "amin"),
    "index_put": lambda t, i, u: t.index_put((i,), u),
    "index_put add": lambda t, i, u: t.index_put((i,), u, accumulate=True),
}
# Key: number of threads. Value: names in `CALLS` of the functions that run on ndscatter's kernels.
# The compiled graph calls PyTorch's operator for these functions, and ndscatter replaces the kernel
# of the operator. Inductor compiles all other functions to C++ loops.
CALLED = {
    1: {"scatter_reduce prod", "scatter_reduce mean", "scatter_reduce amax", "index_reduce"},
    2: {
        "scatter_add", "scatter_reduce sum", "scatter_reduce prod", "scatter_reduce mean",
        "scatter_reduce amax", "scatter reduce", "index_reduce",
    },
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", [pytest.param("inductor", marks=pytest.mark.long), "aot_eager"])
def test_functions_that_run_on_the_kernels(backend, threads, spy):
    g = torch.Generator().manual_seed(0)
    table, index = torch.randn(500, 64, generator=g), torch.randint(0, 500, (3000,), generator=g)
    updates = torch.randn(3000, 64, generator=g)
    torch.set_num_threads(threads)
    called = set()
    for name, call in CALLS.items():
        torch._dynamo.reset()
        compiled = torch.compile(call, backend=backend)
        with ndscatter.torch.enable(only=ndscatter.torch.FUNCTIONS):
            before = spy.done
            found = compiled(table, index, updates)
            if spy.done > before:
                called.add(name)
            expected = call(table, index, updates)
        if name in called:
            # The result of a function that inductor compiles to C++ loops is not compared. If two
            # updates replace one row of the table, inductor's loops and PyTorch's kernels do not
            # define which update stays.
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert called == (CALLED[threads] if backend == "inductor" else set(CALLS))


@pytest.mark.long
def test_a_graph_compiled_before_and_after(spy):
    torch._dynamo.reset()
    g = torch.Generator().manual_seed(0)
    table, index = torch.randn(500, 64, generator=g), torch.randint(0, 500, (3000,), generator=g)
    updates = torch.randn(3000, 64, generator=g)
    compiled = torch.compile(CALLS["scatter_reduce amax"])
    compiled(table, index, updates)
    with ndscatter.torch.enable(only=["scatter_reduce"]):
        compiled(table, index, updates)
        assert spy.done == 1, "a compiled graph calls the dispatcher at run time"
    compiled(table, index, updates)
    assert spy.done == 1
