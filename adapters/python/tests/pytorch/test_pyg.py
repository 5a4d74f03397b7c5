"""Graph networks of PyG, trained with PyTorch's kernels and then with ndscatter's kernels. With the
option -s of pytest, the tests print the times of both."""

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


def train(layer):
    """Train a network. Return the loss of each epoch, and the time of the shortest epoch in
    seconds."""
    torch.manual_seed(0)
    features, edges, labels = graph()
    network = Network(layer)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    losses, times = [], []
    for _ in range(EPOCHS):
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
    with ndscatter.torch.enable():
        found, after = train(LAYERS[name])
        again, _ = train(LAYERS[name])
    assert spy.done, "some call has run on the kernels"
    assert found == pytest.approx(expected, rel=1e-3)
    assert again == found, "two runs have the same bits"
    assert found[-1] < found[0]
    print(f"{name}: {before * 1e3:.1f} ms per epoch, enabled {after * 1e3:.1f} ms, ratio {before / after:.2f}")
