# %% [markdown]
# # A key-value cache
#
# A language model caches the keys and values of all earlier tokens of a sequence. The batch has a fixed
# number of slots, and each slot holds one sequence at a time. Each decoding step writes one row per head
# for each busy slot, at the current position of the slot's sequence. Sequences begin and end at different
# steps. A slot without a sequence is idle, and its position is -1.
#
# To run this example, `common.py` must be in the same folder. Run `python kv_cache.py [--out FOLDER]
# [--quick]`, or run the file cell by cell in Jupyter, VS Code or Spyder. The example requires numpy,
# and matplotlib for the picture. If torch is installed, its functions are measured too.

# %%
import numpy as np
from common import Contender, check, find_pyplot, find_torch, finish, options, print_table, race

import ndscatter

args = options("A key-value cache, written step by step.")
torch = find_torch()
steps, slots, heads, positions, depth, layers = (40, 4, 2, 32, 8, 2) if args.quick else (400, 16, 8, 160, 64, 4)

# %% [markdown]
# ## Positions of the slots
#
# A slot holds one sequence at a time. The length of each sequence is random. After a sequence ends, its
# slot is idle for a random number of steps.

# %%
random = np.random.default_rng(0)
schedule = np.full((steps, slots), -1)
for slot in range(slots):
    step = random.integers(0, positions // 3)
    while step < steps:
        length = random.integers(positions // 3, positions)
        line = schedule[step : step + length, slot]
        line[:] = np.arange(len(line))
        step += length + random.integers(1, positions // 4)
print(f"{steps} steps, {slots} slots, {np.count_nonzero(schedule < 0) / schedule.size:.0%} of them idle")

# %% [markdown]
# ## Caches
#
# Each layer has one cache of keys and one cache of values. Each cache has the shape
# `(slots, heads, positions, depth)`. A row has `depth` numbers. No model computes the rows: they have
# random numbers. The first number of each row is instead the number of the step that writes the row,
# counted from 1, so the picture can show which step wrote a row.

# %%
caches = [np.zeros((slots, heads, positions, depth), np.float32) for _ in range(2 * layers)]
tokens = random.normal(size=(steps, slots, heads, 1, depth)).astype(np.float32)
tokens[..., 0] = np.arange(1, steps + 1)[:, None, None, None]
written = len(caches) * tokens[0].nbytes // 1024
print(f"{len(caches)} caches of {caches[0].nbytes / 2**20:.0f} MiB; a step writes {written} KiB")

# %% [markdown]
# ## Writing a step
#
# `tensor_scatter` accepts the positions of all slots. With `bounds="skip"` it writes nothing for idle slots,
# whose position is -1. With `out=cache` it writes to `cache` in place, without a copy. In one step, all
# caches are written at the same positions. `by_plan` therefore makes one plan per step, which checks the
# positions once for all caches. The functions that use numpy or torch first compute a list of the busy
# slots.


# %%
def by_call():
    for where, token in zip(schedule, tokens):
        for cache in caches:
            ndscatter.tensor_scatter(cache, where, token, bounds="skip", out=cache)


def by_plan():
    for where, token in zip(schedule, tokens):
        plan = ndscatter.plan_tensor_scatter(caches[0].shape, where, bounds="skip")
        for cache in caches:
            plan(cache, token, out=cache)


def by_numpy():
    for where, token in zip(schedule, tokens):
        (busy,) = np.nonzero(where >= 0)
        at, rows = where[busy], token[busy, :, 0]
        for cache in caches:
            cache[busy, :, at] = rows


contenders = [
    Contender("ndscatter, planned", by_plan),
    Contender("ndscatter.tensor_scatter", by_call),
    Contender("numpy: cache[busy, :, at] = rows", by_numpy),
]

if torch is not None:
    # The tensors in `torch_caches` share the memory of the arrays in `caches`.
    torch_caches = [torch.from_numpy(cache) for cache in caches]
    lines = [cache.view(-1, depth) for cache in torch_caches]
    torch_schedule, torch_tokens = torch.from_numpy(schedule), torch.from_numpy(tokens)
    head = torch.arange(heads)

    def by_index_put():
        for where, token in zip(torch_schedule, torch_tokens):
            (busy,) = torch.nonzero(where >= 0, as_tuple=True)
            index, rows = (busy[:, None], head, where[busy, None]), token[busy, :, 0]
            for cache in torch_caches:
                cache.index_put_(index, rows)

    def by_index_copy():
        for where, token in zip(torch_schedule, torch_tokens):
            (busy,) = torch.nonzero(where >= 0, as_tuple=True)
            index = (busy[:, None] * heads + head) * positions + where[busy, None]
            index, rows = index.flatten(), token[busy].view(-1, depth)
            for line in lines:
                line.index_copy_(0, index, rows)

    for name, call in (("index_put_", by_index_put), ("index_copy_", by_index_copy)):
        contenders += [
            Contender(f"torch {name}", call),
            Contender(f"torch {name}, enabled", call, is_enabled=True),
        ]

by_numpy()
expected = caches[0].copy()


def is_right(_):
    """Return whether all caches equal `expected`, and set them to 0 for the next contender."""
    equal = all(np.array_equal(cache, expected) for cache in caches)
    for cache in caches:
        cache[:] = 0
    return equal


is_right(None)
check(contenders, is_right)
print_table("a step", race(contenders, rounds=2 if args.quick else 7), per=steps, unit="us")

# %% [markdown]
# ## Contents of the cache
#
# The left plot shows the position at which each slot was written in each step. The right plot shows the
# cache of the first layer's keys after the last step: the number of the step that wrote each position of
# the first head.
#
# Each sequence of a slot begins at position 0, and overwrites the rows of earlier sequences of the slot. A
# red mark is at the last position that was written in the slot. The rows to the right of the red mark
# are of earlier sequences, or were never written.

# %%
by_call()
written = caches[0][:, 0, :, 0]
pyplot = find_pyplot()
figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.5, 5.2), layout="constrained", sharey=True)
panels = (
    (left, schedule.T, "step", "every step: which position each slot writes", "written position; grey: idle"),
    (right, written - 1, "position", "in the end: which step wrote each position; red: the newest", "step that wrote; grey: none"),
)
for axes, values, label, title, meaning in panels:
    shown = np.ma.masked_less(values, 0)
    colours = pyplot.get_cmap("viridis").with_extremes(bad="0.9")
    drawn = axes.imshow(shown, aspect="auto", interpolation="nearest", cmap=colours, origin="lower")
    # Below the plot, the label cannot be read as the label of the other plot's vertical axis.
    figure.colorbar(drawn, ax=axes, pad=0.02, aspect=40, location="bottom", label=meaning)
    axes.set_title(title, fontsize=11)
    axes.set(xlabel=label, yticks=range(0, slots, 2))
    axes.hlines(np.arange(slots + 1) - 0.5, *axes.get_xlim(), color="white", linewidth=1.5)
newest = written.argmax(axis=1)
right.plot(newest + 0.5, np.arange(slots), "|", color="red", markersize=11, markeredgewidth=2)
left.set(ylabel="slot of the batch")
finish(figure, args.out, "kv_cache")
