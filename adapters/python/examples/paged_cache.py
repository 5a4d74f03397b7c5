# %% [markdown]
# # A paged cache
#
# An inference server divides the memory of its key-value cache into blocks of equal size. A sequence gets
# a block when it needs one, and returns its blocks when it ends. The list of the blocks of a sequence is
# its block table. The *slot* of a token is the number of its row in the cache:
# `block * block_size + row`. This example writes a prompt and some decoding steps to such a cache, and
# shows the blocks. The cache has 8-bit floats with one scale.
#
# To run this example, `common.py` must be in the same folder. Run `python paged_cache.py [--out FOLDER]
# [--quick]`, or run the file cell by cell in Jupyter, VS Code or Spyder. The example requires numpy,
# and matplotlib for the picture. If torch is installed, its functions are measured too.

# %%
import numpy as np
from common import Contender, check, find_pyplot, find_torch, finish, options, print_table, race

import ndscatter

args = options("A paged key-value cache of 8-bit floats.")
torch = find_torch()
blocks, size, heads, dim = 12, 4, 2, 16
random = np.random.default_rng(0)
scale = np.float32(1 / 64)

# %% [markdown]
# ## The server
#
# The cache is stored as `[blocks, heads, block_size, dim]`. The first two axes of the view are the blocks
# and the rows of a block. numpy has no 8-bit floats, so the elements are bytes, and `format` names them.

# %%
stored = np.zeros((blocks, heads, size, dim), np.uint8)
cache = stored.transpose(0, 2, 1, 3)
owner = np.full(blocks * size, ".")  # the sequence that wrote each slot
free = list(range(blocks))
tables: dict[str, list[int]] = {}
lengths: dict[str, int] = {}
tokens: dict[str, list[np.ndarray]] = {}


def next_slot(name):
    """Return the slot of the next token of a sequence, which gets a new block if it needs one."""
    block, row = divmod(lengths[name], size)
    if row == 0:
        tables[name].append(free.pop(0))
    lengths[name] += 1
    return tables[name][block] * size + row


def write(names):
    """Write one new token for each name. A name may occur more than once. None is an unused entry."""
    keys = random.normal(size=(len(names), heads, dim)).astype(np.float32)
    slots = np.array([-1 if name is None else next_slot(name) for name in names])
    ndscatter.write_paged(cache, slots, keys, format="float8_e4m3fn", scale=scale, rounding="saturate")
    for name, slot, key in zip(names, slots, keys):
        if name is not None:
            owner[slot] = name
            tokens[name].append(key)


def start(name):
    tables[name], lengths[name], tokens[name] = [], 0, []


def show(title):
    """Print the blocks. A slot is shaded by the size of its first key, and has the letter of its
    sequence. Slots of sequences that have ended are small letters, and unused slots are points."""
    known = decoded()
    shades = " ░▒▓█"
    print(f"\n{title}; free blocks: {free}")
    for block in range(blocks):
        slots = range(block * size, (block + 1) * size)
        size_of = [min(4, 1 + int(np.abs(known[slot]).mean() * 2.5)) if owner[slot] != "." else 0 for slot in slots]
        letters = "".join(owner[slot] for slot in slots)
        print(f"  block {block:2}  {''.join(shades[shade] * 2 for shade in size_of)}  {letters}")


def decoded():
    """Return the values of all slots, `[slots, heads, dim]`. An 8-bit float has 256 values, which are
    looked up in a table."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    value = np.where(exponent > 0, (8 + fraction) * 2.0 ** (exponent - 10), fraction * 2.0**-9)
    value[code & 127 == 127] = np.nan
    value = np.where(code > 127, -value, value) * scale
    return value[cache].reshape(-1, heads, dim)


# %% [markdown]
# ## Prompts, decoding steps, and a sequence that ends
#
# Three prompts are written in one call. Each decoding step writes one token for each sequence. The list of
# a step has four entries, and the entries without a sequence are -1. When sequence B ends, its blocks are
# free. Sequence D uses them again.

# %%
for name in "ABC":
    start(name)
write(["A"] * 6 + ["B"] * 9 + ["C"] * 3)
show("after the prompts")
for _ in range(5):
    write(["A", "B", "C", None])
show("after five steps")

free = tables.pop("B") + free
owner[owner == "B"] = "b"
start("D")
write(["D"] * 7)
for _ in range(2):
    write(["A", None, "C", "D"])
show("B has ended, and D uses its blocks")

# %% [markdown]
# ## The error of 8-bit floats
#
# A value of `float8_e4m3fn` has three fraction bits, so the relative error of a normal number is at most
# 2^-4.

# %%
known = decoded()
errors = []
for name, table in tables.items():
    slots = [table[at // size] * size + at % size for at in range(lengths[name])]
    exact = np.array(tokens[name])
    found = known[slots]
    assert (np.abs(found - exact) <= np.maximum(np.abs(exact) / 16, scale * 2.0**-10) * 1.0001).all()
    errors.append(np.abs(found - exact).ravel())
print(f"\nlargest error {max(map(np.max, errors)):.4f}, mean error {np.concatenate(errors).mean():.4f}")

# %% [markdown]
# ## A decoder step, before and after
#
# Each of the layers writes the keys and values of one step. Before: the program converts the new rows to
# a temporary array, removes the unused entries, and assigns them by index. After: one call writes all
# layers.

# %%
layers, batch = (4, 16) if args.quick else (24, 64)
heads, dim, size = 8, 128, 16
blocks = 2 * batch
slots = random.permutation(blocks * size)[:batch]
slots[::9] = -1
rows = random.normal(size=(2 * layers, batch, heads, dim)).astype(np.float32)
caches = [np.zeros((blocks, size, heads, dim), np.int8) for _ in range(2 * layers)]


def before():
    (used,) = np.nonzero(slots >= 0)
    at = slots[used]
    for cache, row in zip(caches, rows):
        quantised = np.clip(np.rint(row[used] / scale), -128, 127).astype(np.int8)
        cache.reshape(-1, heads, dim)[at] = quantised


def after():
    ndscatter.write_all(slots, [ndscatter.Write(cache, row, scale=scale) for cache, row in zip(caches, rows)])


writes = [ndscatter.Write(cache, row, scale=scale) for cache, row in zip(caches, rows)]
contenders = [
    Contender("ndscatter.write_all", after),
    Contender("ndscatter.write_all, writes kept", lambda: ndscatter.write_all(slots, writes)),
    Contender("numpy: convert, then assign", before),
]
before()
expected = [cache.copy() for cache in caches]


def is_right(_):
    equal = all(map(np.array_equal, caches, expected))
    for cache in caches:
        cache[:] = 0
    return equal


is_right(None)
if torch is not None:
    torch_slots, torch_rows = torch.from_numpy(slots), torch.from_numpy(rows)
    torch_caches = [torch.from_numpy(cache) for cache in caches]

    def by_torch():
        used = torch_slots >= 0
        at = torch_slots[used]
        for cache, row in zip(torch_caches, torch_rows):
            quantised = (row[used] / scale).round_().clamp_(-128, 127).to(torch.int8)
            cache.view(-1, heads, dim)[at] = quantised

    contenders.append(Contender("torch: convert, then index_put_", by_torch))
check(contenders, is_right)
print_table(f"{layers} layers, {batch} sequences", race(contenders, rounds=3 if args.quick else 15), unit="us")

# %% [markdown]
# ## Where the sequences are
#
# The picture shows the blocks of the small cache after the last step. The colour of a slot is the
# sequence that wrote it.

# %%
letters = sorted(set(owner))
numbers = np.array([letters.index(letter) for letter in owner]).reshape(-1, 4)
pyplot = find_pyplot()
figure, axes = pyplot.subplots(figsize=(8, 3), layout="constrained")
colours = pyplot.get_cmap("Pastel1").with_extremes(bad="0.95")
axes.imshow(np.ma.masked_equal(numbers.T, letters.index(".")), cmap=colours, aspect="auto")
for (block, row), number in np.ndenumerate(numbers):
    axes.text(block, row, letters[number], ha="center", va="center", fontsize=11)
axes.set(xlabel="block", ylabel="row of the block", xticks=range(len(numbers)), yticks=range(4))
axes.set_title("the sequence of each slot; small letter: the sequence has ended; point: unused", fontsize=11)
axes.vlines(np.arange(len(numbers) + 1) - 0.5, -0.5, 3.5, color="white", linewidth=3)
finish(figure, args.out, "paged_cache")
