"""Counts the values of files that are larger than the memory of one step, in actors of Ray.

    python ray_histogram.py [--quick]

The program writes files of random keys, starts Ray on this machine, and counts the keys. Tasks read the
files and count the keys of each file. The counts are divided among four actors. `ndscatter.ray.histogram`
also reads datasets of ``ray.data``: ``histogram(ray.data.read_parquet(folder), "key", bins)``.
"""

import argparse
import functools
import tempfile
import time
from pathlib import Path

import numpy as np

try:
    import ray
except ImportError:
    raise SystemExit("this example requires ray: pip install ray") from None

from ndscatter.ray import histogram

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--files", type=int, default=20)
parser.add_argument("--rows", type=int, default=5_000_000, help="keys of each file")
parser.add_argument("--bins", type=int, default=1_000_000)
parser.add_argument("--quick", action="store_true", help="small sizes, for tests")
options = parser.parse_args()
if options.quick:
    options.files, options.rows, options.bins = 4, 20_000, 1000


def read(path):
    return {"key": np.load(path, mmap_mode="r")}


ray.init(include_dashboard=False, log_to_driver=False)
with tempfile.TemporaryDirectory() as folder:
    random, expected = np.random.default_rng(0), np.zeros(options.bins, np.int64)
    paths = [Path(folder) / f"keys-{number}.npy" for number in range(options.files)]
    for path in paths:
        keys = (options.bins ** random.random(options.rows)).astype(np.int64) - 1
        np.save(path, keys)
        expected += np.bincount(keys, minlength=options.bins)
    begin = time.perf_counter()
    counts = histogram([functools.partial(read, path) for path in paths], "key", options.bins)
    seconds = time.perf_counter() - begin
assert np.array_equal(counts, expected)
total = options.files * options.rows
print(f"{total:,} keys in {seconds:.1f} s; the counts are those of numpy")
print(f"the most frequent key, {counts.argmax()}, occurs {counts.max():,} times")
