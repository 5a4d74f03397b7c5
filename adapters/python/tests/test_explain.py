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
    for call, missing in (
        (ndscatter.scatter_update, ([0], None)),
        (ndscatter.scatter_update, (None, 1.0)),
        (ndscatter.gather, (None,)),
    ):
        with pytest.raises(TypeError, match="of object are not") as of_call:
            call(data, *missing)
        with pytest.raises(TypeError) as of_explain:
            ndscatter.explain(call, data, *missing)
        assert str(of_explain.value) == str(of_call.value)

    def gather(data, indices):
        raise NotImplementedError

    for other in ("write_paged", ndscatter.add_at, 5, gather):
        with pytest.raises(ValueError, match="gather_paged, not of"):
            ndscatter.explain(other, data, [0])


def test_updates_with_one_element_are_explained_if_the_call_accepts_them():
    data = np.zeros((4, 5))
    for updates in ([5.0], np.full((1, 1, 1), 5.0), np.array(5.0)):
        assert ndscatter.scatter_nd(data, [1, 1], updates)[1, 1] == 5
        explanation = ndscatter.explain("scatter_nd", data, [1, 1], updates)
        assert explanation.to_dict()["bytes_written"] == 8 + data.nbytes
        plan = ndscatter.plan_scatter_nd(data.shape, [1, 1])
        assert plan(data, updates)[1, 1] == 5
        assert plan.explain(data, updates).to_dict() == explanation.to_dict()
    for updates in ([5.0, 6.0], []):
        for call in (ndscatter.scatter_nd, lambda *arguments: ndscatter.explain("scatter_nd", *arguments)):
            with pytest.raises(ValueError, match="require"):
                call(data, [1, 1], updates)


@pytest.mark.parametrize("dtype", ["f8", "S3", "M8[s]"])
def test_the_shape_of_out_is_checked(dtype):
    data, out = np.zeros((4, 5), dtype), np.zeros((3, 5), dtype)
    updates = np.zeros((1, 5), dtype)
    for name, arguments in (("scatter_update", ([0], updates)), ("gather", ([0],))):
        for call in (getattr(ndscatter, name), lambda *a, **o: ndscatter.explain(name, *a, **o)):
            with pytest.raises(ValueError, match=r"has shape \[[345, ]*\] but"):
                call(data, *arguments, out=out)
    right = np.zeros((1, 5), dtype)
    assert "gather" in str(ndscatter.explain("gather", data, [0], out=right))
    assert "scatter" in str(ndscatter.explain("scatter_update", data, [0], updates, out=data.copy()))


def test_the_shapes_of_the_arrays_of_plans_are_checked():
    data, out = np.zeros((4, 5)), np.zeros((3, 5))
    plan = ndscatter.plan_scatter_update(data.shape, [0])
    for arguments in ((out, 1.0), (data, 1.0, out), (data, np.ones((2, 5)))):
        for call in (plan, plan.explain):
            with pytest.raises(ValueError, match="shape"):
                call(*arguments)
    plan = ndscatter.plan_gather(data.shape, [0])
    for arguments in ((out,), (data, out)):
        for call in (plan, plan.explain):
            with pytest.raises(ValueError, match="shape"):
                call(*arguments)


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
