# %% [markdown]
# # A layer of a graph network
#
# Each node of a graph has a vector of features. For each node, a layer computes the mean of the
# feature vectors of the node's neighbours. The layer gathers the neighbours' rows, and scatters them
# to the rows of the nodes.
#
# The graph is random. Each node belongs to one of six communities. Most edges connect two nodes of the
# same community. The feature vector of one node contains little information about the node's
# community, because its noise is larger than the differences between communities.
#
# To run this example, `common.py` must be in the same folder. Run `python graph_layer.py [--out FOLDER]
# [--quick]`, or run the file cell by cell in Jupyter, VS Code or Spyder. The example requires numpy and
# torch, and matplotlib for the picture.

# %%
import numpy as np
from common import Contender, check, find_pyplot, finish, options, print_table, race

import ndscatter

try:
    import torch
    from torch import nn
except ImportError:
    raise SystemExit("this example requires torch: pip install torch") from None

args = options("A layer of a graph network, by hand and in a network that is trained.")
nodes, degree, width, epochs = (900, 12, 16, 8) if args.quick else (20_000, 12, 32, 30)
communities, share = 6, 0.75

# %% [markdown]
# ## The graph
#
# The graph is drawn from a stochastic block model. Each edge has a sender and a receiver. With
# probability 0.75, the sender of an edge is a random node of the receiver's community. With probability
# 0.25, the sender is a random node of any community.

# %%
random = np.random.default_rng(0)
community = np.arange(nodes) % communities
receiver = random.permutation(np.repeat(np.arange(nodes), random.poisson(degree, nodes)))
edges = len(receiver)
is_inside = random.random(edges) < share
block = np.where(is_inside, community[receiver], random.integers(0, communities, edges))
sender = random.integers(0, nodes // communities, edges) * communities + block
centres = random.normal(size=(communities, width))
features = (centres[community] + random.normal(scale=5, size=(nodes, width))).astype(np.float32)
print(f"{nodes:,} nodes, {edges:,} edges, {width} features")

# %% [markdown]
# ## One layer by hand
#
# One call of `scatter_update` with `reduction="mean"` computes the means. numpy needs three operations: a
# sum, a count and a division. The option `include_self=False` excludes the existing zeros of the output
# from the means. The rows of nodes without a neighbour keep these zeros.
#
# The edges of the graph do not change. A program can therefore make one plan and use it for all layers
# and all epochs.

# %%
zeros = np.zeros_like(features)
mean = {"reduction": "mean", "include_self": False}
plan = ndscatter.plan_scatter_update(zeros.shape, receiver, **mean)


def by_numpy():
    sums = np.zeros_like(features)
    np.add.at(sums, receiver, features[sender])
    counts = np.bincount(receiver, minlength=nodes)
    return sums / np.maximum(counts, 1).astype(np.float32)[:, None]


def by_ndscatter():
    return ndscatter.scatter_update(zeros, receiver, ndscatter.gather(features, sender), **mean)


table, to, source = (torch.from_numpy(array) for array in (features, receiver, sender))
counts = torch.bincount(to, minlength=nodes).clamp(min=1)[:, None]


def by_torch(table=table):
    messages = table.index_select(0, source)
    return torch.zeros_like(table).index_add(0, to, messages) / counts


layers = [
    Contender("ndscatter", by_ndscatter),
    Contender("ndscatter, planned", lambda: plan(zeros, ndscatter.gather(features, sender))),
    Contender("numpy", by_numpy),
    Contender("torch", by_torch),
    Contender("torch, enabled", by_torch, is_enabled=True),
]
smooth = by_ndscatter()
check(layers[:3], lambda found: np.array_equal(found, smooth))
check(layers[3:], lambda found: np.allclose(found, smooth, rtol=1e-4, atol=1e-4))
print_table("one layer", race(layers, rounds=2 if args.quick else 7))

# %% [markdown]
# ## Two layers that learn
#
# The layers of the network call `by_torch`: torch's `index_select` gathers the rows, `index_add` sums them,
# and a division gives the means. torch's autograd computes the gradients. One node in twenty has a label.
#
# Two networks with equal initial weights are trained. The first network is trained under
# `ndscatter.torch.enable()`, which runs `index_add` and the gradient of `index_select` on ndscatter's
# kernels. The second network is trained with PyTorch's kernels. The epochs of the two networks are
# interleaved.
#
# The second layer computes two numbers per node. The plot below shows these numbers.


# %%
class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.others = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, table):
        return self.own(table) + self.others(by_torch(table))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(width, 32), Layer(32, 2)
        self.last = nn.Linear(2, communities)

    def forward(self, table):
        places = self.second(self.first(table).relu())
        return places, self.last(places)


labels, is_known = torch.from_numpy(community), torch.arange(nodes) // communities % 20 == 0


class Training:
    def __init__(self):
        torch.manual_seed(3)
        self.network, self.losses = Network(), []
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=0.02)

    def epoch(self):
        scores = self.network(table)[1]
        loss = nn.functional.cross_entropy(scores[is_known], labels[is_known])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


one, other = Training(), Training()
before = one.network(table)
epoch = [Contender("torch, enabled", one.epoch, is_enabled=True), Contender("torch", other.epoch)]
times = race(epoch, rounds=epochs)
after = one.network(table)
assert np.allclose(one.losses, other.losses, rtol=1e-2), "the losses are equal except for the rounding of sums"
print_table("an epoch", times)
print(f"loss {one.losses[0]:.3f}, after {epochs} epochs {one.losses[-1]:.3f}")

# %% [markdown]
# ## What was learnt
#
# The plot shows the two numbers that the second layer computes for each node, before and after training.
# It has one point per node, for at most 3000 nodes without a label. The colour of a point is the
# community of its node.

# %%
palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]
shown = random.permutation(np.flatnonzero(~is_known.numpy()))[:3000]
pyplot = find_pyplot()
figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
for panel, (places, scores), when in zip(axes, (before, after), ("before training", f"after {epochs} epochs")):
    right = (scores.argmax(1) == labels)[~is_known].float().mean()
    for number, colour in enumerate(palette):
        rows = shown[community[shown] == number]
        panel.scatter(*places.detach()[rows].T, s=9, alpha=0.8, color=colour, linewidths=0, label=f"{number + 1}")
    panel.set(title=f"{when}: accuracy {right:.0%}", xlabel="first number", ylabel="second number")
    panel.axis("equal")
    panel.spines[["top", "right"]].set_visible(False)
axes[1].legend(title="community", markerscale=3, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
finish(figure, args.out, "graph_layer")
