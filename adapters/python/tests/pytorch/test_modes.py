"""Tests of `ndscatter.torch.enable` under modes of PyTorch: deterministic algorithms, automatic
mixed precision, `torch.func`, and several processes."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

import ndscatter.torch


def inputs(rows=500, count=3000, width=32, dtype=torch.float32):
    g = torch.Generator().manual_seed(0)
    table = torch.randn(rows, width, generator=g).to(dtype)
    index = torch.randint(0, rows, (count,), generator=g)
    return table, index, torch.randn(count, width, generator=g).to(dtype)


def wide(index, updates):
    return index[:, None].expand_as(updates)


CALLS = {
    "scatter_add": lambda t, i, u: t.scatter_add(0, wide(i, u), u),
    "index_add": lambda t, i, u: t.index_add(0, i, u),
    "index_put": lambda t, i, u: t.index_put((i,), u),
    "index_put add": lambda t, i, u: t.index_put((i,), u, accumulate=True),
    "scatter": lambda t, i, u: t.scatter(0, wide(i, u), u),
    "index_copy": lambda t, i, u: t.index_copy(0, i, u),
    "index": lambda t, i, u: t[i],
    "embedding": lambda t, i, u: torch.ops.aten.embedding_dense_backward(u, i, len(t), -1, False),
}


@pytest.mark.parametrize("name", CALLS)
def test_deterministic_algorithms(name, spy):
    """In this mode, PyTorch's kernels apply duplicates in the order of the indices, as ndscatter's
    kernels always do. Sums may be rounded differently: PyTorch sorts the updates first."""
    call, arguments = CALLS[name], inputs()
    torch.use_deterministic_algorithms(True)
    try:
        expected = call(*arguments)
        with ndscatter.torch.enable(always=True):
            spy.reset()
            found = call(*arguments)
    finally:
        torch.use_deterministic_algorithms(False)
    assert spy.done == 1
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    if name in ("index_put", "index_copy", "scatter", "index"):
        with ndscatter.torch.enable(always=True):
            assert torch.equal(call(*arguments), found)


def test_automatic_mixed_precision(spy):
    table, index, updates = inputs()
    weights = torch.randn(32, 32, generator=torch.Generator().manual_seed(1))

    def loss():
        leaf = updates.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            messages = leaf @ weights
            assert messages.dtype is torch.bfloat16
            sums = torch.zeros(500, 32, dtype=messages.dtype).index_add(0, index, messages)
            result = (sums @ weights).float().pow(2).mean()
        result.backward()
        return result.detach(), leaf.grad

    expected = loss()
    with ndscatter.torch.enable(always=True):
        found = loss()
    assert spy.done >= 2
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=0.1, atol=0.1)


def test_functions_of_torch_func(spy):
    table, index, updates = inputs(rows=20, count=60, width=4, dtype=torch.float64)

    def loss(t, u):
        return (t.index_add(0, index, u).scatter_reduce(0, wide(index, u), u, "amax") ** 2).sum()

    tangents = (table * 2, updates * 3)
    programs = [
        lambda: torch.func.grad(loss, argnums=(0, 1))(table, updates),
        lambda: torch.func.jvp(lambda t, u: t.index_add(0, index, u), (table, updates), tangents),
        lambda: torch.func.vmap(lambda u: table.index_add(0, index, u))(torch.stack([updates] * 3)),
        lambda: torch.func.vmap(lambda t: t[index])(torch.stack([table] * 3)),
        lambda: torch.func.hessian(lambda t: loss(t, updates))(table + 1),
        lambda: torch.func.functionalize(lambda t, u: t.clone().index_add_(0, index, u))(
            table, updates
        ),
    ]
    for program in programs:
        expected = program()
        spy.reset()
        with ndscatter.torch.enable(always=True):
            found = program()
        assert spy.done
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


# Two processes train a network (DDP), and add rows to tables whose rows or columns they share
# (DTensor).
PROCESSES = """
import os, sys, torch, ndscatter.torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

dist.init_process_group("gloo")
torch.set_num_threads(1)
g = torch.Generator().manual_seed(0)
table, updates = torch.randn(64, 8, generator=g), torch.randn(96, 8, generator=g)
index = torch.randint(0, 64, (96,), generator=g)

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rows, self.out = torch.nn.Embedding(64, 8), torch.nn.Linear(8, 1)

    def forward(self, index):
        sums = torch.zeros(16, 8).index_add(0, index % 16, self.rows(index))
        return self.out(sums).sum()

def results():
    network = torch.nn.parallel.DistributedDataParallel(Network())
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        network(index + dist.get_rank() if dist.get_rank() == 0 else index).backward()
        optimizer.step()
    found = [parameter.detach().clone() for parameter in network.parameters()]
    mesh = init_device_mesh("cpu", (2,))
    for placement in (Replicate(), Shard(1)):
        parts = [distribute_tensor(tensor, mesh, [placement]) for tensor in (table, updates)]
        at = distribute_tensor(index, mesh, [Replicate()])
        found.append(parts[0].index_add(0, at, parts[1]).full_tensor())
    return found

expected = results()
with ndscatter.torch.enable(always=True):
    found = results()
    assert sum(counts.ndscatter for counts in ndscatter.torch.counts().values()) >= 8
for one, other in zip(expected, found, strict=True):
    torch.testing.assert_close(other, one)
# gloo's threads may abort a process that ends normally while the other process disconnects.
dist.barrier()
os._exit(0)
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch has no torch.distributed")
def test_two_processes():
    environment = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20_000 + os.getpid() % 20_000),
        "WORLD_SIZE": "2",
    }  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROCESSES)],
            env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
