"""A program that runs scatters of subnormal numbers in sessions that flush them to zero.

The program prints a JSON object with one entry per case: the error message, or an empty string if
the case passed. `test_config` runs this program in a separate process, because the first session of
a process sets the floating-point mode of the thread that creates the session.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from onnx import TensorProto

import reference
from common import (
    BFLOAT16,
    NUMBERS,
    UNOPTIMISED,
    Array,
    ElementType,
    assert_same,
    counting,
    model,
    node,
    one_node,
    run,
    session,
    value,
)

ENTRIES = {"session.set_denormal_as_zero": "1"}
FLOATS = [*(element for element in NUMBERS if element.is_float), BFLOAT16]
REDUCTIONS = ["none", "add", "mul", "min", "max"]
# Elements per row of data and updates. With 40,000 elements per row, a scatter uses all threads of
# the session.
WIDTHS = {"small": 1, "large": 40_000}
CASES = {
    f"{element}-{reduction}-{threads}-{width}": (element, reduction, threads, WIDTHS[width])
    for element, reduction, threads, width in product(FLOATS, REDUCTIONS, (1, 2), WIDTHS)
}


def is_flushed() -> bool:
    """Whether the calling thread flushes subnormal numbers to zero."""
    return bool((np.full(64, 1e-39, np.float32) * np.ones(64, np.float32) == 0).all())


def pairs(element: ElementType) -> dict[str, Array]:
    """Returns the inputs of a scatter of 81 rows with one element each. Row i of data and row i of
    updates are one pair of 9 special numbers. All pairs occur."""
    info = ml_dtypes.finfo(element.dtype)
    least, normal = float(info.smallest_subnormal), float(info.smallest_normal)
    special = [least, -least, 3 * least, normal - least, normal, -normal, 0.5, 1.0, 2.0]
    numbers = np.array(special).astype(element.dtype)
    data, updates = (each.ravel()[:, None] for each in np.meshgrid(numbers, numbers))
    return {"data": data, "indices": np.arange(len(data))[:, None], "updates": updates}


class Prepared(NamedTuple):
    """Feeds and expected result of a scatter with one element per row. `check` repeats the element
    to make wider rows.

    numpy must compute the feeds and the expected result before the first session is created. That
    session makes this thread flush subnormal numbers to zero, also in numpy.
    """

    feeds: dict[str, Array]
    right: Array

    @classmethod
    def new(cls, element: ElementType, reduction: str) -> Prepared:
        made = pairs(element)
        right = reference.scatter_nd(*made.values(), reference.Rules(reduction))
        feeds = {name: made[name].astype(element.fed) for name in ("data", "updates")}
        return cls({**feeds, "indices": made["indices"]}, right.astype(element.fed))


def check(
    element: ElementType, reduction: str, threads: int, width: int, prepared: Prepared
) -> None:
    feeds = {name: np.repeat(array, width if name != "indices" else 1, axis=1)
             for name, array in prepared.feeds.items()}  # fmt: skip
    serialized = one_node("ScatterND", element, (None, None, None), reduction=reduction)
    ran = session(
        serialized, threads=threads, entries=ENTRIES, graph_optimization_level=UNOPTIMISED
    )
    with counting() as count:
        found = run(ran, **feeds)
    assert count.done.runs == 1
    assert is_flushed(), "the host has not set the mode"
    assert_same(found, np.repeat(prepared.right, width, axis=1))


def check_host() -> None:
    nodes = [
        node("ScatterND", ["data", "indices", "updates"], ["a"], reduction="add"),
        node("Mul", ["a", "one"], ["output"]),
    ]
    inputs = [
        value("data", TensorProto.FLOAT, [None]),
        value("indices", TensorProto.INT64, [None, 1]),
        value("updates", TensorProto.FLOAT, [None]),
    ]
    serialized = model(
        nodes,
        inputs,
        [value("output", TensorProto.FLOAT, None)],
        constants={"one": np.ones(1, np.float32)},
    )
    # With the larger size, the host runs its own node (Mul) on both threads of the session.
    for size, threads in ((100, 1), (10_000_000, 2)):
        feeds = {
            "data": np.full(size, 1e-39, np.float32),
            "indices": np.zeros((1, 1), np.int64),
            "updates": np.ones(1, np.float32),
        }
        ran = session(serialized, threads=threads, entries=ENTRIES)
        with counting() as count:
            found = run(ran, **feeds)
        assert count.done.runs == 1
        assert found[0] == 1
        assert not found[1:].any(), f"{np.count_nonzero(found[1:])} of {size} not zero"


def outcome(call: Any, *given: Any) -> str:
    try:
        call(*given)
    except Exception as error:  # noqa: BLE001  (returned to the caller)
        return str(error) or type(error).__name__
    return ""


def main() -> None:
    assert not is_flushed()
    prepared = {name: Prepared.new(*case[:2]) for name, case in CASES.items()}
    outcomes = {name: outcome(check, *case, prepared[name]) for name, case in CASES.items()}
    outcomes["host"] = outcome(check_host)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
