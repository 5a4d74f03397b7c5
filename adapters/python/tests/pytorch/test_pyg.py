"""Graph networks of PyG, trained with PyTorch's kernels and then with ndscatter's kernels. With the
option -s of pytest, the tests print the times of both, and the share of scatters and gathers in an
epoch."""

import time

import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import ndscatter.torch

NODES, EDGES, FEATURES, CLASSES, EPOCHS = 20_000, 200_000, 64, 7, 8


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
        train(layer, epochs=2)
    times = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
    return sum(times.get(name, 0) for name in EVENTS) / sum(times.values())


def train(layer, epochs=EPOCHS):
    """Train a network. Return the loss of each epoch, and the time of the shortest epoch in
    seconds."""
    torch.manual_seed(0)
    features, edges, labels = graph()
    network = Network(layer)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    losses, times = [], []
    for _ in range(epochs):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(features, edges), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    return losses, min(times)


@pytest.mark.parametrize("name", LAYERS)
def test_losses_are_the_same(name, spy):
    expected, before = train(LAYERS[name])
    shares = [share(LAYERS[name])]
    with ndscatter.torch.enable():
        found, after = train(LAYERS[name])
        again, more = train(LAYERS[name])
        shares.append(share(LAYERS[name]))
    _, once_more = train(LAYERS[name])
    before, after = min(before, once_more), min(after, more)
    assert spy.done, "some call has run on the kernels"
    assert found == pytest.approx(expected, rel=1e-3)
    assert again == found, "two runs have the same bits"
    assert found[-1] < found[0]
    print(
        f"{name}: {before * 1e3:.1f} ms per epoch, enabled {after * 1e3:.1f} ms, "
        f"enabled / PyTorch {after / before:.2f}; share of scatters and gathers "
        f"{shares[0]:.0%}, enabled {shares[1]:.0%}"
    )
