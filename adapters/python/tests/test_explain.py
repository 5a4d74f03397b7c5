"""Tests reports of how calls would run."""

import numpy as np
import pytest

import ndscatter

KEYS = {"dtype", "route", "schedule", "tasks", "bytes_written", "scratch_bytes", "machine"}


def test_a_scatter_is_explained_and_does_not_run():
    data = np.zeros((4, 8), np.float32)
    explanation = ndscatter.explain(
        ndscatter.scatter_update, data, [2, 2], 1.0, reduction="add", out=data, threads=1
    )
    assert isinstance(explanation, ndscatter.Explanation)
    assert not data.any()
    text = str(explanation)
    assert text == repr(explanation)
    assert text.startswith("scatter into float32 [4, 8], reduction add, in place\n")
    assert "with duplicates" in text
    facts = explanation.to_dict()
    assert set(facts) == KEYS
    assert (facts["dtype"], facts["tasks"], facts["bytes_written"]) == ("float32", 1, 64)
    assert facts["machine"] == ndscatter.machine()


def test_a_call_out_of_place_also_copies():
    data = np.zeros((4, 8), np.float32)
    for out in (None, np.ones((4, 8), np.float32)):
        explanation = ndscatter.explain("scatter_update", data, [2, 1], 1.0, out=out)
        assert "out of place" in str(explanation)
        assert explanation.to_dict()["bytes_written"] == 64 + data.nbytes


@pytest.mark.parametrize(
    ("name", "arguments", "first"),
    [
        ("scatter_nd", ([[1, 2]], [5.0]), "scatter into float64 [4, 8]"),
        ("scatter_elements", ([[1, 2]], 5.0, 1), "scatter into float64 [4, 8]"),
        ("tensor_scatter", (None, np.ones((4, 3)), 1), "scatter into float64 [4, 8]"),
        ("gather_nd", ([[1, 2]],), "gather from float64 [4, 8]"),
        ("gather", ([1, 2], 1), "gather from float64 [4, 8]"),
        ("gather_elements", ([[1, 2]],), "gather from float64 [4, 8]"),
        ("gather_paged", ([31, 1],), "gather from float64 [4, 8]"),
    ],
)
def test_all_operators(name, arguments, first):
    data = np.zeros((4, 8))
    explanation = ndscatter.explain(getattr(ndscatter, name), data, *arguments)
    assert str(explanation).startswith(first)
    written = getattr(ndscatter, name)(data, *arguments)
    bytes_written = explanation.to_dict()["bytes_written"]
    assert bytes_written == (written.nbytes if "gather" in name else data.nbytes + changed(name))


def changed(name):
    """Return the bytes of the updates of a call in `test_all_operators`."""
    return {"scatter_nd": 8, "scatter_elements": 16, "tensor_scatter": 4 * 3 * 8}[name]


def test_elements_without_arithmetic_are_explained():
    explanation = ndscatter.explain("gather", np.zeros(4, "S3"), [1, 1])
    assert explanation.to_dict()["dtype"] == "bytes1"


def test_the_errors_are_those_of_the_call():
    data = np.zeros((4, 8))
    with pytest.raises(IndexError):
        ndscatter.explain("gather", data, [4])
    with pytest.raises(ValueError, match="no reduction is called"):
        ndscatter.explain("scatter_update", data, [0], 1.0, reduction="median")
    with pytest.raises(ValueError, match="require"):
        ndscatter.explain("scatter_update", data, [0], np.ones(3))
    with pytest.raises(TypeError, match="indices"):
        ndscatter.explain("gather", data)
    for other in ("write_paged", ndscatter.add_at, 5):
        with pytest.raises(ValueError, match="gather_paged, not of"):
            ndscatter.explain(other, data, [0])


def test_plans_are_explained():
    data = np.zeros((4, 8), np.int16)
    plan = ndscatter.plan_scatter_update(data.shape, [2, 2], reduction="add")
    explanation = plan.explain(data, 1, out=data)
    assert str(explanation).startswith("scatter into int16 [4, 8], reduction add, in place")
    assert "out of place" in str(plan.explain(data, 1, threads=1))
    with pytest.raises(TypeError, match="not defined"):
        plan.explain(np.zeros((4, 8), "M8[s]"), np.zeros((2, 8), "M8[s]"))
    plan = ndscatter.plan_gather(data.shape, [2, 2])
    assert plan.explain(data).to_dict()["bytes_written"] == 2 * 8 * 2
    assert not data.any()
