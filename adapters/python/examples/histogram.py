# %% [markdown]
# # A histogram in two dimensions
#
# The Clifford attractor is the set of points that the map
#
# x' = sin(a y) + c cos(a x), y' = sin(b x) + d cos(b y)
#
# reaches after many steps. This example draws the density of the attractor: it counts the points in
# each pixel. Every point must add 1 to its pixel. `image[row, column] += 1` is wrong, because it adds 1
# only once to a pixel that has several points.
#
# To run this example, `common.py` must be in the same folder. Run `python histogram.py [--out FOLDER]
# [--quick]`, or run the file cell by cell in Jupyter, VS Code or Spyder. The example requires numpy,
# and matplotlib for the picture. If torch is installed, its functions are measured too.

# %%
import numpy as np
from common import Contender, check, find_pyplot, find_torch, finish, options, print_table, race

import ndscatter

args = options("A histogram in two dimensions: an attractor's density.")
torch = find_torch()
orbits, steps, size = (2_000, 30, 128) if args.quick else (20_000, 220, 512)

# %% [markdown]
# ## Points
#
# An orbit is a sequence of points that begins at a random point. One array operation computes a step of
# all orbits. The first 20 points of each orbit are dropped, because they may not be on the attractor yet.
#
# |x| is at most 1 + |c|, and |y| is at most 1 + |d|. With the constants c and d below, the coordinates x
# and y of all points are therefore between -2 and 2.

# %%
a, b, c, d = -1.4, 1.6, 1.0, 0.7
random = np.random.default_rng(0)
x, y = random.uniform(-1, 1, (2, orbits))
points = np.empty((2, steps, orbits))
for step in range(-20, steps):
    x, y = np.sin(a * y) + c * np.cos(a * x), np.sin(b * x) + d * np.cos(b * y)
    if step >= 0:
        points[:, step] = x, y
xs, ys = points.reshape(2, -1)

# `size / 4` is a power of two, so the multiplication is exact.
row, column = ((points + 2) * (size / 4)).astype(np.int64).reshape(2, -1)[::-1]
print(f"{len(row):,} points, {size} x {size} pixels")

# %% [markdown]
# ## From pairs of coordinates
#
# `ndscatter.add_at` accepts all indices that `np.add.at` accepts. Here the index is a tuple of two arrays:
# the rows and the columns of the points.


# %%
def by_add_at(add_at):
    image = np.zeros((size, size), np.int64)
    add_at(image, (row, column), 1)
    return image


def by_histogram2d():
    square = [[-2, 2], [-2, 2]]
    return np.histogram2d(ys, xs, bins=size, range=square)[0]


pairs = [
    Contender("ndscatter.add_at", lambda: by_add_at(ndscatter.add_at)),
    Contender("np.add.at", lambda: by_add_at(np.add.at)),
    Contender("np.histogram2d", by_histogram2d),
]

if torch is not None:
    indices, one = (torch.from_numpy(row), torch.from_numpy(column)), torch.tensor(1)

    def by_index_put():
        image = torch.zeros(size, size, dtype=torch.int64)
        return image.index_put_(indices, one, accumulate=True).numpy()

    pairs += [
        Contender("torch index_put_", by_index_put),
        Contender("torch index_put_, enabled", by_index_put, is_enabled=True),
    ]

counts = by_add_at(ndscatter.add_at)
assert counts.sum() == len(row)
rounds = 2 if args.quick else 5
check(pairs, lambda found: np.array_equal(found, counts))
print_table("pairs of coordinates", race(pairs, rounds))

# %% [markdown]
# ## From pixel numbers
#
# The number of a pixel is `row * size + column`, so the image is a vector of bins. `ndscatter.bincount`
# accepts the arguments of `np.bincount`. An additional argument `out=` is an array of any numeric type. The
# function overwrites the elements of `out` with the counts.

# %%
pixel = row * size + column
bins = np.empty(size * size, np.uint32)
numbers = [
    Contender("ndscatter.bincount", lambda: ndscatter.bincount(pixel, minlength=size * size)),
    Contender("ndscatter.bincount, out=", lambda: ndscatter.bincount(pixel, out=bins)),
    Contender("np.bincount", lambda: np.bincount(pixel, minlength=size * size)),
]
if torch is not None:
    pixels = torch.from_numpy(pixel)
    numbers += [Contender("torch.bincount", lambda: torch.bincount(pixels, minlength=size * size).numpy())]
check(numbers, lambda found: np.array_equal(found, counts.ravel()))
print_table("numbered pixels", race(numbers, rounds))

# %% [markdown]
# ## The density
#
# The colour scale is logarithmic, because the largest count of a pixel is about ten thousand times the
# smallest.

# %%
pyplot = find_pyplot()
figure, axes = pyplot.subplots(figsize=(7.6, 6.0), layout="constrained")
axes.set_title(f"The Clifford attractor: how often {len(row) / 1e6:.1f} million points come by", fontsize=11)
hits = np.ma.masked_equal(counts, 0)
colours = pyplot.get_cmap("inferno", 128)
drawn = axes.imshow(hits, origin="lower", extent=(-2, 2, -2, 2), cmap=colours, norm="log")
axes.set(facecolor="black", xlim=(-1.5, 2.1), ylim=(-1.4, 1.65), xlabel="x", ylabel="y")
figure.colorbar(drawn, label="points in a pixel", shrink=0.8)
finish(figure, args.out, "histogram")
