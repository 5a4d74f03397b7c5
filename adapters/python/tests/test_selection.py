"""Tests which tests of the adapters run without NDSCATTER_FULL=1."""

import types

import pytest
import pytest_selection


def case(test, name, **marks):
    """Return what the hook reads of a pytest item. `marks` maps the name of a marker to its argument."""
    markers = {mark: types.SimpleNamespace(args=(value,)) for mark, value in marks.items()}
    return types.SimpleNamespace(
        nodeid=f"file::{test}[{name}]",
        name=f"{test}[{name}]",
        originalname=test,
        parent=types.SimpleNamespace(nodeid="file"),
        get_closest_marker=markers.get,
    )


def select(items):
    """Return the names of the items that run, in the order in which they run."""
    left_out = []
    hook = types.SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    kept = list(items)
    pytest_selection.pytest_collection_modifyitems(types.SimpleNamespace(hook=hook), kept)
    assert [item for item in items if item not in left_out] == kept
    return [item.name for item in kept]


@pytest.fixture(autouse=True)
def short_run(monkeypatch):
    monkeypatch.delenv("NDSCATTER_FULL", raising=False)


@pytest.mark.parametrize("slow", range(3))
def test_one_case_of_a_test_is_long(slow):
    items = [case("f", str(i), **({"long": None} if i == slow else {})) for i in range(3)]
    assert select(items) == [f"f[{i}]" for i in range(3) if i != slow]


@pytest.mark.parametrize(("cases", "runs"), [(1, 1), (3, 1), (4, 2), (8, 3), (9, 3)])
def test_one_of_three_cases_runs(cases, runs):
    items = [case("f", str(i), sampled=3) for i in range(cases)]
    others = [case("g", str(i)) for i in range(4)]
    found = select([*items, *others])
    assert len(found) == runs + 4
    assert found == select([*items, *others])
    assert found[-4:] == [f"g[{i}]" for i in range(4)]


def test_tests_with_the_same_cases_are_sampled_separately():
    items = [case(test, str(i), sampled=4) for test in "fg" for i in range(4)]
    assert sorted(name[0] for name in select(items)) == ["f", "g"]


def test_all_tests_run(monkeypatch):
    monkeypatch.setenv("NDSCATTER_FULL", "1")
    items = [case("f", "0", long=None), *(case("g", str(i), sampled=3) for i in range(3))]
    assert len(select(items)) == 4
