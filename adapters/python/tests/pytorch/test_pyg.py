"""Graph networks of PyG, trained with PyTorch's kernels and with ndscatter's kernels in turns. With the
option -s of pytest, the tests print the times of both, and the share of scatters and gathers in an
epoch."""

import itertools
import statistics
import time

import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import ndscatter.torch

NODES, EDGES, FEATURES, CLASSES = 20_000, 200_000, 64, 7

# Number of rounds, and number of epochs of each network in each round.
ROUNDS, EPOCHS = 4, 3


def graph():
    """Return random features of the nodes, random edges, and the label of each node.

    Each class has one random direction. The label of a node is the class whose direction has the
    largest dot product with the features of the node.
    """
    g = torch.Generator().manual_seed(0)
    features = torch.randn(NODES, FEATURES, generator=g)
    edges = torch.randint(0, NODES, (2, EDGES), generator=g)
    directions = torch.randn(FEATURES, CLASSES, generator=g)
    return features, edges, (features @ directions).argmax(dim=1)


LAYERS = {
    "GCN": GCNConv,
    "GraphSAGE": SAGEConv,
    "GraphSAGE max": lambda a, b: SAGEConv(a, b, aggr="max"),
    "GAT": lambda a, b: GATConv(a, b, heads=2, concat=False),
}


class Network(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.second = layer(FEATURES, 64), layer(64, CLASSES)

    def forward(self, features, edges):
        return self.second(self.first(features, edges).relu(), edges)


# Names of the events of scatters and gathers in PyTorch's profiler.
EVENTS = {f"aten::{name}" for name in (
    "scatter_add_", "scatter_reduce_", "scatter_reduce", "index_add_", "scatter_add",
    "_index_put_impl_", "index_select", "index", "gather", "embedding_dense_backward",
)}  # fmt: skip


def share(layer):
    """Return the fraction of the time of two epochs that scatters and gathers take."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        train(training(layer), epochs=2)
    times = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
    return sum(times.get(name, 0) for name in EVENTS) / sum(times.values())


def training(layer):
    """Train a network. Yield the loss and the time of each epoch, in seconds."""
    torch.manual_seed(0)
    features, edges, labels = graph()
    network = Network(layer)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    while True:
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(features, edges), labels)
        loss.backward()
        optimizer.step()
        yield loss.item(), time.perf_counter() - start


def train(network, epochs=EPOCHS):
    """Return the losses of the next epochs, and the shortest time of these epochs except the first.

    The first epoch after a switch between kernels is not measured: its tensors lie in memory that the
    allocator has just obtained.
    """
    losses, times = zip(*itertools.islice(network, epochs), strict=True)
    return list(losses), min(times[1:])


@pytest.mark.parametrize("name", LAYERS)
def test_losses_are_the_same(name, spy):
    layer = LAYERS[name]
    plain, enabled = training(layer), training(layer)
    expected, found, before, after = [], [], [], []
    for _ in range(ROUNDS):
        losses, seconds = train(plain)
        expected += losses
        before.append(seconds)
        with ndscatter.torch.enable():
            losses, seconds = train(enabled)
        found += losses
        after.append(seconds)
    assert spy.done, "some call has run on the kernels"
    assert found == pytest.approx(expected, rel=1e-3)
    assert found[-1] < found[0]
    shares = [share(layer)]
    with ndscatter.torch.enable():
        again, _ = train(training(layer))
        shares.append(share(layer))
    assert again == found[:EPOCHS], "two runs have the same bits"
    ratio = statistics.median(ours / theirs for ours, theirs in zip(after, before, strict=True))
    print(
        f"{name}: {min(before) * 1e3:.1f} ms per epoch, enabled {min(after) * 1e3:.1f} ms, "
        f"median of enabled / PyTorch {ratio:.2f}; share of scatters and gathers "
        f"{shares[0]:.0%}, enabled {shares[1]:.0%}"
    )
