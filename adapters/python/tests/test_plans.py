"""Tests the results of plans, their properties, and concurrent calls."""

import threading

import numpy as np
import pytest

import ndscatter
import reference as ref


def test_plans_have_the_results_of_the_functions():
    random = np.random.default_rng(0)
    data = random.standard_normal((50, 6))
    rows = random.integers(-50, 50, 200)
    updates = random.standard_normal((200, 6))
    for reduction in ("none", "add", "mul", "max", "mean"):
        plan = ndscatter.plan_scatter_update(data.shape, rows, reduction=reduction)
        expected = ndscatter.scatter_update(data, rows, updates, reduction=reduction)
        assert ref.same_bits(plan(data, updates), expected)
        place = data.copy()
        assert plan(place, updates, out=place, threads=1) is place
        assert ref.same_bits(place, expected)
        assert ref.same_bits(plan(data, updates, np.empty_like(data)), expected)
    columns = random.integers(-6, 6, (50, 3))
    plan = ndscatter.plan_scatter_elements(data, columns, axis=1)
    assert ref.same_bits(
        plan(data, 1.0), ndscatter.scatter_elements(data, columns, np.ones((50, 3)), axis=1)
    )
    for make, function in (
        (ndscatter.plan_gather, ndscatter.gather),
        (ndscatter.plan_gather_elements, ndscatter.gather_elements),
    ):
        indices = columns if "elements" in function.__name__ else rows
        axis = 1 if "elements" in function.__name__ else 0
        expected = function(data, indices, axis)
        plan = make(data.shape, indices, axis)
        assert ref.same_bits(plan(data), expected)
        out = np.empty_like(expected)
        assert plan(data, out=out, threads=2) is out and ref.same_bits(out, expected)
    plan = ndscatter.plan_gather_nd((50, 6), np.stack([rows, rows % 6], -1))
    assert ref.same_bits(plan(data), data[rows, rows % 6])


def test_a_plan_has_any_element_type():
    plan = ndscatter.plan_scatter_update((4,), [1, 3])
    for dtype in ("f4", "i1", "?", "c16", "M8[s]", "S8", "f2", ">f8"):
        data = np.zeros(4, dtype)
        ones = np.ones(2, "i8").astype(dtype)
        assert plan(data, ones).tolist() == ndscatter.scatter_update(data, [1, 3], ones).tolist()
    with pytest.raises(TypeError, match="1, 2, 4, 8 or 16"):
        plan(np.zeros(4, "S3"), np.zeros(2, "S3"))


def test_properties_of_plans():
    plan = ndscatter.plan_scatter_nd((4, 5), [[1], [9], [1]], bounds="skip")
    assert (plan.shape, plan.updates_shape) == ((4, 5), (3, 5))
    assert (plan.tuples, plan.skipped, plan.has_duplicates()) == (2, 1, True)
    assert "ScatterPlan" in repr(plan)
    plan = ndscatter.plan_gather((4, 5), [9, 1], bounds="skip")
    assert (plan.shape, plan.output_shape, plan.skipped) == ((4, 5), (2, 5), 1)
    assert "GatherPlan" in repr(plan)
    plan = ndscatter.plan_tensor_scatter((2, 8, 3), update_len=4)
    assert plan.updates_shape == (2, 4, 3)
    with pytest.raises(TypeError):
        ndscatter.ScatterPlan()
    with pytest.raises(AttributeError):
        plan.shape = (1,)


def test_errors_of_plans():
    plan = ndscatter.plan_scatter_update((4, 5), [1, 3])
    with pytest.raises(ValueError):
        plan(np.zeros((5, 4)), 1.0)
    with pytest.raises(ValueError, match="plan again"):
        plan(np.zeros((4, 5)), 1.0, out=np.zeros((5, 4)).T)
    with pytest.raises(ValueError):
        plan(np.zeros((4, 5)), np.zeros(3))
    with pytest.raises(IndexError):
        ndscatter.plan_scatter_update((4, 5), [4])
    with pytest.raises(TypeError, match="neither an array nor a shape"):
        ndscatter.plan_scatter_update([4], [0])
    turned = ndscatter.plan_scatter_update(np.zeros((5, 4)).T, [1, 3])
    data = np.zeros((5, 4)).T
    assert turned(data, 1.0, out=data)[1].tolist() == [1] * 5


def test_eight_threads_on_shared_plans():
    random = np.random.default_rng(1)
    rows = random.integers(0, 2000, 20_000)
    plan = ndscatter.plan_scatter_update((2000, 8), rows, reduction="add")
    back = ndscatter.plan_gather((2000, 8), rows)
    updates = [random.standard_normal((20_000, 8)).astype("f4") for _ in range(8)]
    zeros = np.zeros((2000, 8), "f4")
    expected = [zeros.copy() for _ in updates]
    for sums, part in zip(expected, updates, strict=True):
        np.add.at(sums, rows, part)
    wrong = []

    def work(number):
        for turn in range(10):
            threads = (None, 1, 2)[turn % 3]
            sums = plan(zeros, updates[number], threads=threads)
            taken = back(sums, threads=threads)
            if not ref.same_bits(sums, expected[number]) or not ref.same_bits(taken, sums[rows]):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_other_threads_run_during_a_kernel():
    data = np.zeros((1000, 2000))
    rows = np.arange(1000).repeat(10)
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    ticker = threading.Thread(target=tick)
    ticker.start()
    updates = np.ones((10_000, 2000))
    ticks.clear()
    ndscatter.scatter_update(data, rows, updates, reduction="mul", out=data, threads=1)
    count = len(ticks)
    done.set()
    ticker.join()
    assert count > 0


@pytest.mark.parametrize("count", [6, 5000], ids=["short", "long"])
def test_indices_that_another_thread_writes(count):
    """Another thread changes the indices during the calls. ndscatter reads each index once, so it
    uses the value that it has checked. No call writes memory outside `data`."""
    memory = np.zeros((300, 4))
    data, indices = memory[100:200], np.zeros(count, np.int64)
    wild = np.array([-(1 << 62), 1 << 62, 150, -150, 99])
    is_done = threading.Event()

    def write():
        number = 0
        while not is_done.is_set():
            indices[number % count :: 7] = wild[number % 5] if number % 2 else number % 100
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    errors = 0
    try:
        for _ in range(300):
            for call in (
                lambda: ndscatter.scatter_update(data, indices, 1.0, reduction="add", out=data),
                lambda: ndscatter.add_at(data, indices, 1.0),
                lambda: ndscatter.gather(data, indices),
            ):
                try:
                    call()
                except IndexError:
                    errors += 1
    finally:
        is_done.set()
        writer.join()
    assert errors, "some calls have read indices out of bounds"
    assert not memory[:100].any() and not memory[200:].any()
