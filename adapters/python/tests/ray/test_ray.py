"""Tests of `ndscatter.ray`: several raylets on this machine. `check.sh full` runs them."""

import functools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

# An earlier start of Ray leaves a token in the home folder. A driver in another process than the test
# cluster then cannot start actors.
os.environ["RAY_AUTH_MODE"] = "disabled"
ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster

import ndscatter
from ndscatter.ray import RankError, ShardedTable, TransportError, group_by, histogram

DTYPES = (np.float32, np.int64)
REDUCTIONS = ("add", "sub", "mul", "min", "max", "mean", "none")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Three raylets with two workers each."""
    options = {"num_cpus": 2, "object_store_memory": 200 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(**options)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def values(random, shape, dtype):
    if np.dtype(dtype).kind == "i":
        return random.integers(-9, 10, shape)
    return (random.standard_normal(shape) * 8).astype(dtype)


@pytest.mark.parametrize("seed", range(30))
def test_random_cases_have_the_bits_of_one_process(seed):
    random = np.random.default_rng(seed)
    rows, width, actors = int(random.integers(1, 40)), int(random.integers(1, 5)), int(random.integers(1, 5))
    dtype, reduction = DTYPES[seed % 2], REDUCTIONS[seed % 7]
    sharding = (ndscatter.Sharding.blocks, ndscatter.Sharding.modulo)[seed % 2](actors)
    combine = reduction in ("min", "max", "none") and bool(random.integers(2))
    start = values(random, (rows, width), dtype)
    counts = random.integers(0, 30, random.integers(1, 4))
    indices = [random.integers(-rows, rows, count) for count in counts]
    updates = [values(random, (count, width), dtype) for count in counts]
    table = ShardedTable(rows, width, dtype, actors=actors, sharding=sharding)
    table.index_copy_(np.arange(rows), start)
    # References to arrays in the object store, and arrays.
    sent = [ray.put(each) if number % 2 else each for number, each in enumerate(updates)]
    table.scatter_reduce_(indices, sent, reduction, combine=combine)
    expected = ndscatter.scatter_update(
        start, np.concatenate(indices), np.concatenate(updates), reduction=reduction
    )
    assert table.rows_of_all().tobytes() == expected.tobytes()
    read = table.gather(indices[0], combine=bool(seed % 3))
    assert read.tobytes() == expected[indices[0]].tobytes()


def test_an_error_of_one_sender_changes_no_row():
    table = ShardedTable(10, 2, actors=3)
    good = np.array([1, 9]), np.ones((2, 2), np.float32)
    wrong = {
        "IndexError": (np.array([0, 10]), good[1]),
        "ValueError": (good[0], np.ones((3, 2), np.float32)),
        "TypeError": (good[0], np.ones((2, 2))),
    }
    for name, (indices, updates) in wrong.items():
        with pytest.raises(RankError) as raised:
            table.scatter_add_([good[0], indices], [good[1], updates])
        assert (raised.value.rank, raised.value.error) == (1, name)
    assert "10" in str(raised.value) or "updates" in str(raised.value)
    assert not table.rows_of_all().any()
    table.scatter_add_(*good)
    assert table.rows_of_all().sum() == 4


def test_an_actor_that_ends_changes_no_other_row(tmp_path):
    table = ShardedTable(9, actors=3)
    table.scatter_add_(np.arange(9), np.arange(9, dtype=np.float32))
    table.save(tmp_path)
    ray.kill(table._parts[1])
    with pytest.raises(TransportError) as raised:
        table.scatter_add_(np.arange(9), np.ones(9, np.float32))
    assert raised.value.missing == [1] and not table.is_torn
    assert ray.get(table._parts[0].rows.remote()).tolist() == [0, 1, 2]
    again = ShardedTable(9, actors=2)
    again.load(tmp_path, ndscatter.Sharding.blocks(3))
    assert again.rows_of_all().tolist() == list(range(9))


def test_a_dataset_larger_than_a_step():
    random = np.random.default_rng(5)
    keys, numbers = random.integers(0, 50, 20_000), random.standard_normal(20_000)
    columns = {"key": keys, "value": numbers, "size": keys * 3}
    dataset = ray.data.from_numpy(keys).rename_columns({"data": "key"})
    counts = histogram(dataset, "key", 50, batch_size=3000)
    assert counts.tolist() == np.bincount(keys, minlength=50).tolist()
    import pandas

    dataset = ray.data.from_pandas(pandas.DataFrame(columns)).repartition(7)
    sums = group_by(dataset, "key", "value", 50, batch_size=3000).rows_of_all()
    expected = np.zeros(50)
    np.add.at(expected, keys, numbers)
    assert sums.tobytes() == expected.tobytes()
    least = group_by(dataset, "key", "value", 50, "amin", batch_size=3000).rows_of_all()
    expected = np.full(50, np.inf)
    np.minimum.at(expected, keys, numbers)
    assert least.tobytes() == expected.tobytes()
    batches = [{"key": keys[:9000]}, functools.partial(dict, key=keys[9000:])]
    assert histogram(batches, "key", 50).tolist() == counts.tolist()
    for name in ("mean", "average"):
        with pytest.raises(ValueError, match="histogram"):
            group_by(dataset, "key", "value", 50, name)


def test_the_example():
    example = pathlib.Path(__file__).parents[2] / "examples/ray_histogram.py"
    done = subprocess.run([sys.executable, str(example), "--quick"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "the counts are those of numpy" in done.stdout, done.stderr
