"""Tests of threads: no update is lost, and the bits of a result do not depend on the number of
threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reference
from common import (
    FLOAT,
    FLOAT16,
    INT64,
    OWN,
    Array,
    ElementType,
    any_indices,
    assert_same,
    counting,
    one_node,
    run,
    session,
    values,
)

ADDS = 1_000_000
COUNTERS = 1024


@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
def test_million_adds(rng, capsys, constant) -> None:
    """Adds a million ones to 1024 counters, with many duplicates. Checks that ndscatter loses no
    update. Prints the number of updates that onnxruntime's built-in kernel loses with 2 threads."""
    indices = rng.integers(0, COUNTERS, (ADDS, 1))
    feeds = {"data": np.zeros(COUNTERS, np.int64), "updates": np.ones(ADDS, np.int64)}
    feeds |= {} if constant else {"indices": indices}
    serialized = one_node(
        "ScatterND", INT64, ([COUNTERS], [ADDS, 1], [ADDS]), reduction="add",
        indices=indices if constant else None,
    )  # fmt: skip
    wanted = np.bincount(indices[:, 0], minlength=COUNTERS)
    # The number of updates that the built-in kernel loses varies from run to run. The test makes 20
    # runs, and reports the run that loses the most updates.
    elsewhere = session(serialized, library=False, threads=2)
    least = min((run(elsewhere, **feeds) for _ in range(20)), key=np.sum)
    wrong, lost = (least != wanted).sum(), ADDS - least.sum()
    with capsys.disabled():
        print(f"\nbuilt-in, 2 threads: {wrong} of {COUNTERS} counters wrong, {lost} adds lost")
    for threads in (1, 2, 4):
        ran = session(serialized, threads=threads)
        for _ in range(3):
            with counting() as count:
                found = run(ran, **feeds)
            assert count.done == (1, 0, int(constant))
            assert_same(found, wanted, f"{threads} threads")
    with capsys.disabled():
        print(f"ndscatter, 1, 2 and 4 threads: 0 of {COUNTERS} counters wrong")


# For each case: operator, domain, shape of data, and two integers. For ScatterND they are the
# length of a tuple and the number of tuples. For ScatterElements they are the axis and the size of
# updates along the axis.
SHAPES: dict[str, tuple[str, str, tuple[int, ...], int, int]] = {
    "rows": ("ScatterND", "", (5000, 64), 1, 20_000),
    "few_rows": ("ScatterND", "", (7, 256), 1, 6000),
    "one_row": ("ScatterND", "", (1, 4096), 1, 400),
    "singles": ("ScatterND", "", (1000, 30), 2, 1_200_000),
    "few_singles": ("ScatterND", "", (5,), 1, 1_200_000),
    "pairs": ("ScatterND", "", (60_000, 2), 1, 600_000),
    "elements_along_0": ("ScatterElements", "", (3000, 50), 0, 25_000),
    "elements_along_1": ("ScatterElements", "", (50, 3000), 1, 25_000),
}


def large(
    rng: np.random.Generator, case: str, element: ElementType
) -> tuple[dict[str, Array], dict[str, Any]]:
    op, _, shape, at, rows = SHAPES[case]
    if op == "ScatterND":
        indices = any_indices(rng, shape[:at], (rows, at))
        moved: tuple[int, ...] = (rows, *shape[at:])
        given = {}
    else:
        moved = (rows, shape[1]) if at == 0 else (shape[0], rows)
        indices = any_indices(rng, shape[at], moved)
        given = {"axis": at}
    data, updates = (nonzero(values(rng, element, each)) for each in (shape, moved))
    return {"data": data, "indices": indices, "updates": updates}, given


def nonzero(array: Array) -> Array:
    """Returns the array with each zero replaced by 1. numpy's minimum and maximum may return either
    zero for the pair +0 and -0, so the bits of the reference could differ from the library's."""
    return np.where(array == 0, array.dtype.type(1), array)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("case", SHAPES)
def test_same_bits(rng, case, reduction) -> None:
    op, domain, _, axis, _ = SHAPES[case]
    feeds, given = large(rng, case, FLOAT)
    serialized = one_node(
        op, FLOAT, (None, None, None), domain=domain, reduction=reduction, **given
    )
    with np.errstate(all="ignore"):
        if op == "ScatterND":
            wanted = reference.fast_nd(*feeds.values(), reduction)
        else:
            wanted = reference.fast_elements(*feeds.values(), axis, reduction)
    for threads in (1, 2, 3, 4, 8):
        assert_same(
            run(session(serialized, threads=threads), **feeds), wanted, f"{threads} threads"
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "given",
    [
        {"reduction": "mean"},
        {"reduction": "sub", "include_self": 0},
        {"reduction": "mul", "include_self": 0},
        {"reduction": "add", "accumulate": "wide"},
        {"reduction": "mean", "accumulate": "wide", "include_self": 0},
    ],
    ids=lambda given: "-".join(map(str, given.values())),
)
@pytest.mark.parametrize("element", [FLOAT, FLOAT16], ids=str)
@pytest.mark.parametrize("case", ["rows", "few_singles", "elements_along_0"])
@pytest.mark.parametrize("constant", [False, True], ids=["fed", "constant"])
def test_same_bits_of_own(rng, case, element, given, constant) -> None:
    """For operators of the domain `ndscatter`, checks that the result with 2, 3 and 8 threads has
    the same bits as the result with one thread. `test_own_domain.py` compares results of one
    thread, for small shapes, with the reference."""
    op = SHAPES[case][0]
    feeds, attributes = large(rng, case, element)
    indices = feeds.pop("indices") if constant else None
    serialized = one_node(
        op, element, (None, None, None), domain=OWN, indices=indices, **given, **attributes
    )
    alone = run(session(serialized, threads=1), **feeds)
    assert not np.array_equal(alone, feeds["data"])
    for threads in (2, 3, 8):
        found = run(session(serialized, threads=threads), **feeds)
        assert_same(found, alone, f"{threads} threads")
