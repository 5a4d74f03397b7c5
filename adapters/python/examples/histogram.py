# %% [markdown]
# # A histogram in two dimensions
#
# The Clifford attractor is the set of points that the map
#
# x' = sin(a y) + c cos(a x), y' = sin(b x) + d cos(b y)
#
# reaches after many steps. This example draws the density of the attractor by counting: each point
# adds one to its pixel. All points of a pixel must count. `image[row, column] += 1` counts only one
# of them.
#
# Run it in a folder with `common.py`: `python histogram.py [--out FOLDER] [--quick]`, or cell by
# cell in Jupyter, VS Code or Spyder. It needs numpy and matplotlib. torch is compared if it is
# installed.

# %%
import numpy as np
from common import Contender, check, find_torch, finish, options, print_table, race
from matplotlib import pyplot
from matplotlib.colors import LogNorm

import ndscatter

args = options("A histogram in two dimensions: an attractor's density.")
torch = find_torch()
orbits, steps, size = (2_000, 30, 128) if args.quick else (20_000, 220, 512)

# %% [markdown]
# ## Points
#
# All orbits are computed at once, from random points. The first 20 steps lead to the attractor and
# are dropped. |x| is at most 1 + |c|, and |y| is at most 1 + |d|. All points are therefore inside of
# the square from -2 to 2.

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

# The width of a pixel is a power of two, so rounding moves no point to another pixel.
row, column = ((points + 2) * (size / 4)).astype(np.int64).reshape(2, -1)[::-1]
print(f"{len(row):,} points, {size} x {size} pixels")

# %% [markdown]
# ## From pairs of coordinates
#
# `ndscatter.add_at` accepts all indices of `np.add.at`. This one is a tuple of coordinates.


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
# ## From numbers of pixels
#
# If each pixel has one number, the image is a vector of bins. `ndscatter.bincount` has the
# arguments of `np.bincount`. With `out=` it writes to existing bins of any numeric type.

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
# The scale is logarithmic, as the counts of pixels differ by a factor of ten thousand.

# %%
figure, axes = pyplot.subplots(figsize=(7.6, 6.0), layout="constrained")
axes.set_title(f"The Clifford attractor: how often {len(row) / 1e6:.1f} million points come by", fontsize=11)
hits = np.ma.masked_equal(counts, 0)
colours = pyplot.get_cmap("inferno", 128)
drawn = axes.imshow(hits, origin="lower", extent=(-2, 2, -2, 2), cmap=colours, norm=LogNorm())
axes.set(facecolor="black", xlim=(-1.5, 2.1), ylim=(-1.4, 1.65), xlabel="x", ylabel="y")
figure.colorbar(drawn, label="points in a pixel", shrink=0.8)
finish(figure, args.out, "histogram")
