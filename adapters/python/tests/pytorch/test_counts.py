"""Tests of `ndscatter.torch.counts`, and of the ranges of the profiler."""

import doctest
import threading

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import ndscatter.torch
from ndscatter.torch import Counts, _counts, counts, reset_counts


@pytest.fixture(autouse=True)
def at_zero():
    reset_counts()


def edges(dtype=torch.float32):
    return torch.zeros(500, 64, dtype=dtype), torch.arange(3000) % 500, torch.ones(3000, 64, dtype=dtype)


def wide(index):
    return index[:, None].expand(-1, 64)


def embedding(gradient, index, scale=False):
    return torch.ops.aten.embedding_dense_backward(gradient, index, 500, -1, scale)


# Calls that stay with PyTorch: the function, the reason, and the call. Kernels of both kinds give the
# same reasons.
STAYING = {
    "few elements": ("embedding_dense_backward", "size", lambda t, i, u: embedding(u[:8], i[:8])),
    "halves": ("index_add", "slower", lambda t, i, u: t.half().index_add_(0, i, u.half())),
    "last axis": ("index_add", "slower", lambda t, i, u: t.index_add_(1, i[:64], u[:500])),
    "lanes": ("scatter_add", "slower", lambda t, i, u: t.scatter_add_(1, wide(i[:500]).contiguous() % 64, u)),
    "types": ("index_add", "dtype", lambda t, i, u: t.index_add_(0, i, u.double())),
    "type of the index": ("index_copy", "dtype", lambda t, i, u: t.index_copy_(0, i.int(), u)),
    "8-bit floats": (
        "index_put", "dtype",
        lambda t, i, u: t.to(torch.float8_e5m2).index_put_((i,), u.to(torch.float8_e5m2)),
    ),
    "mask": ("index_put", "mask", lambda t, i, u: t.index_put_((torch.ones(500, 64).bool(),), t.flatten() + 1)),
    "axes that do not merge": (
        "index_put", "layout",
        lambda t, i, u: t.t()[None].expand(4, -1, -1).clone(memory_format=torch.preserve_format)
        .permute(0, 2, 1)[::2, ::2].index_put_((i % 2, i % 250), u),
    ),
    "shape": ("index_add", "shape", lambda t, i, u: t.index_add_(0, i[:, None], u)),
    "out of another shape": (
        "index_add", "shape", lambda t, i, u: torch.index_add(t, 0, i, u, out=torch.empty(0))
    ),
    "alpha": ("index_add", "argument", lambda t, i, u: t.index_add_(0, i, u, alpha=2)),
    "axis": ("index_add", "argument", lambda t, i, u: t.index_add_(-3, i, u)),
    "too large": ("scatter", "argument", lambda t, i, u: t.scatter_(0, wide(i), 1e39)),
    "frequencies": ("embedding_dense_backward", "argument", lambda t, i, u: embedding(u, i, True)),
    "overlap": ("index_add", "overlap", lambda t, i, u: t.index_add_(0, i[:500], t)),
    "out of bounds": ("index_add", "error", lambda t, i, u: t.index_add_(0, i + 1, u)),
    "tuples out of bounds": ("index_put", "error", lambda t, i, u: t.index_put_((i.repeat(2), i.repeat(2)), u[0, 0])),
}  # fmt: skip
# Calls that only native kernels run.
NATIVE_STAYING = {
    "few single elements": ("take", "size", lambda t, i, u: t.take(i[:8])),
    "mask": ("index", "mask", lambda t, i, u: t[t == 0]),
    "strides": ("index", "layout", lambda t, i, u: t.t()[i % 64]),
    "put without accumulate": ("put", "argument", lambda t, i, u: t.put_(i, u[:, 0])),
    "tensor of rank 1": ("index_fill", "shape", lambda t, i, u: t.index_fill_(0, i, u[0])),
    "no axis": ("index_select", "argument", lambda t, i, u: t.index_select(2, i.repeat(100))),
    "out of another shape": ("take", "shape", lambda t, i, u: torch.take(t, i, out=torch.empty(0))),
    "out of bounds": ("take", "error", lambda t, i, u: t.take(i + 40_000)),
}


def check(function, reason, call):
    with ndscatter.torch.enable(only=function):
        try:
            call(*edges())
        except (RuntimeError, IndexError):
            pass
    assert counts()[function] == Counts(0, {reason: 1})


@pytest.mark.parametrize("name", STAYING)
def test_reasons(name, kernels):
    check(*STAYING[name])


@pytest.mark.parametrize("name", NATIVE_STAYING)
def test_reasons_of_native_kernels(name):
    check(*NATIVE_STAYING[name])


def test_a_call_that_a_python_function_gates():
    with ndscatter.torch.enable(native=False):
        torch.zeros(3).index_add_(0, torch.tensor([1]), torch.ones(1))
    assert counts() == {"index_add": Counts(0, {"size": 1})}


def test_calls_on_ndscatter(kernels):
    table, index, updates = edges()
    table.index_add_(0, index, updates)
    assert counts() == {}, "nothing is enabled"
    with ndscatter.torch.enable():
        table.index_add_(0, index, updates)
        table.index_add(0, index, updates)
        table.scatter_(0, wide(index), 2.0)
        table.scatter_(0, wide(index), updates)
        table[index] = updates
        table.index_add_(0, index, updates, alpha=3)
        # Gradients do not matter: the kernels run below autograd.
        table.clone().requires_grad_().index_add(0, index, updates)
    with ndscatter.torch.enable(only="index_copy"):
        table.index_add_(0, index, updates)
    assert counts() == {
        "index_add": Counts(3, {"argument": 1}),
        "scatter": Counts(2, {}),
        "index_put": Counts(1, {}),
    }
    found = {name: item.pytorch for name, item in counts().items()}
    assert found == {"index_add": 1, "scatter": 0, "index_put": 0}
    assert repr(counts()["index_add"]) == "Counts(ndscatter=3, pytorch=1, reasons={'argument': 1})"
    assert Counts(0, {"size": 2, "mask": 3}).pytorch == 5
    reset_counts()
    assert counts() == {}


def test_names_of_counts_are_those_of_functions():
    table, index, updates = edges()
    with ndscatter.torch.enable(always=True):
        for call in (
            lambda: table.index_fill_(0, index, 1.0),
            lambda: table.put_(index, updates[:, 0], accumulate=True),
            lambda: (table[index], table.index_select(0, index), table.take(index)),
            lambda: table.gather(0, wide(index)),
            lambda: table.scatter_reduce_(0, wide(index), updates, "amax"),
            lambda: table.index_reduce_(0, index, updates, "amax"),
            lambda: (table.index_copy_(0, index, updates), table.scatter_add_(0, wide(index), updates)),
            lambda: embedding(updates, index),
            lambda: (table.index_put_((index,), updates), table.index_add_(0, index, updates)),
            lambda: table.scatter_(0, wide(index), 1.0),
        ):
            call()
    found = counts()
    assert found.keys() == ndscatter.torch.FUNCTIONS.keys()
    assert all(item == Counts(1, {}) for item in found.values())


def test_calls_of_several_threads(kernels):
    table, index, updates = edges()

    def work():
        for _ in range(50):
            table.index_add(0, index[:64], updates[:64])
            table.index_add(0, index[:64], updates[:64], alpha=2)

    with ndscatter.torch.enable():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts() == {"index_add": Counts(200, {"argument": 200})}


# Calls that run on ndscatter, and the names of their ranges.
TRACED = {
    "index_add": lambda t, i, u: t.index_add(0, i, u),
    "index_add_": lambda t, i, u: t.index_add_(0, i, u),
    "index_copy": lambda t, i, u: torch.index_copy(t, 0, i, u, out=torch.empty_like(t)),
    "scatter_": lambda t, i, u: t.scatter_(0, wide(i), 1.0),
    "_index_put_impl_": lambda t, i, u: t.index_put_((i,), u),
    "embedding_dense_backward": lambda t, i, u: embedding(u, i),
    "index": lambda t, i, u: t[i],
    "take": lambda t, i, u: t.take(i),
}
# Functions with Python kernels. `only` must name `embedding_dense_backward` there.
IN_PYTHON = ["index_add", "index_copy", "scatter", "index_put", "embedding_dense_backward"]


def names(call):
    """Return the names of all events of a trace of `call` that begin with "ndscatter"."""
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        call()
    return [event.name for event in trace.events() if event.name.startswith("ndscatter")]


@pytest.mark.filterwarnings("ignore")
def test_ranges_of_the_profiler(kernels):
    table, index, updates = edges()
    only, traced = (None, list(TRACED)) if kernels == "native" else (IN_PYTHON, list(TRACED)[:-2])
    with ndscatter.torch.enable(only=only):
        found = names(lambda: [TRACED[name](table, index, updates) for name in traced])
        assert found == [f"ndscatter::{name}" for name in traced]
        assert sum(item.ndscatter for item in counts().values()) == len(traced)
        # Calls that stay with PyTorch have no range.
        assert not names(lambda: table.index_add_(0, index, updates, alpha=2))
        assert not names(lambda: table.index_put_((table == 7,), updates[0, 0]))
    assert not names(lambda: table.index_add_(0, index, updates))


def test_examples_of_the_docstrings():
    results = doctest.testmod(_counts, verbose=False)
    assert results.attempted and not results.failed
