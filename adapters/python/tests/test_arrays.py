"""Tests which arrays and layouts the functions accept, which errors they raise, and that an error
leaves the output unchanged."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import ndscatter


def refused(error, data, call, match=None):
    """Check that a call raises an error and does not change `data`."""
    before = data.copy()
    with pytest.raises(error, match=match):
        call()
    assert data.tobytes() == before.tobytes()


def test_errors_of_indices():
    data = np.zeros((3, 4))
    for indices in ([3], [-4], [2**40], [0, 1, 3]):
        refused(
            IndexError,
            data,
            lambda indices=indices: ndscatter.scatter_update(data, indices, 1.0, out=data),
            "out of bounds for axis 0 of size 3",
        )
    huge = np.array([2**64 - 1], "u8")
    refused(IndexError, data, lambda: ndscatter.scatter_update(data, huge, 1.0, out=data))
    with pytest.raises(IndexError):
        ndscatter.gather(data, [-1], negative_indices=False)
    with pytest.raises(IndexError):
        ndscatter.tensor_scatter(data, [0, 0, 4], np.zeros((3, 1)), axis=1)
    for indices in ([1.5], np.array([True]), np.array(["a"]), np.array([1], object)):
        with pytest.raises(TypeError):
            ndscatter.scatter_update(data, indices, 1.0)
        with pytest.raises(TypeError):
            ndscatter.gather(data, indices)


def test_errors_of_types():
    data = np.zeros(3)
    for updates in (np.zeros(1, "f4"), np.zeros(1, int), np.zeros(1, "M8[s]"), ["a"], [1j]):
        refused(TypeError, data, lambda u=updates: ndscatter.scatter_update(data, [0], u, out=data))
    refused(
        TypeError, data, lambda: ndscatter.scatter_update(data, [0], 1.0, out=np.zeros(3, "f4"))
    )
    for name, reduction in (
        ("c8", "min"), ("?", "mean"), ("M8[s]", "add"), ("S3", "max"), ("g", "add"), ("V8", "add"),
    ):  # fmt: skip
        array = np.zeros(3, name)
        with pytest.raises(TypeError, match="not defined for"):
            ndscatter.scatter_update(array, [0], array[:1], reduction=reduction)
    float8 = np.zeros(3, ml_dtypes.float8_e4m3fn)
    with pytest.raises(TypeError):
        ndscatter.scatter_update(float8, [0], float8[:1], reduction="add")
    with pytest.raises(TypeError):
        ndscatter.scatter_update(float8, [0], np.zeros(1, ml_dtypes.float8_e5m2))


@pytest.mark.parametrize(
    "one, other",
    [("M8[s]", "M8[ms]"), ("S3", "S4"), ("U2", "S8"), ("V8", "M8[s]"), ("M8[s]", "i8")],
)
def test_types_of_one_size_are_not_mixed(one, other):
    data, updates = np.zeros(3, one), np.zeros(1, other)
    with pytest.raises(TypeError):
        ndscatter.scatter_update(data, [0], updates)
    with pytest.raises(TypeError):
        ndscatter.gather(data, [0], out=updates)


def test_references_are_refused():
    strings = np.array(["a", "bc"], np.dtypes.StringDType()) if hasattr(np.dtypes, "StringDType") else None
    held = np.array([object(), None])
    mixed = np.zeros(2, [("a", "f4"), ("b", object)])
    for data in (held, mixed, strings):
        if data is None:
            continue
        with pytest.raises(TypeError):
            ndscatter.scatter_update(data, [0], data[1:])
        with pytest.raises(TypeError):
            ndscatter.gather(data, [0])
        with pytest.raises(TypeError):
            ndscatter.plan_scatter_nd((2,), [[0]])(data, data[:1])


def test_errors_of_options_and_shapes():
    data = np.zeros((3, 4))
    for keywords in (
        {"reduction": "median"},
        {"bounds": "wrap"},
        {"duplicates": "maybe"},
        {"accumulate": "long"},
        {"threads": 0},
        {"threads": -2},
        {"axis": 2},
        {"axis": -3},
    ):
        with pytest.raises(ValueError, match=r"use|give|pass|axis|called"):
            ndscatter.scatter_update(data, [0], 1.0, **keywords)
    with pytest.raises(ValueError, match='`bounds`: .* called "wrap"; use error, skip, clamp or skip negative'):
        ndscatter.scatter_update(data, [0], 1.0, bounds="wrap")
    with pytest.raises(ValueError, match="tuple 2 has the destination of tuple 0"):
        ndscatter.scatter_update(data, [1, 0, -2], 1.0, duplicates="reject")
    with pytest.raises(ValueError):
        ndscatter.scatter_nd(data, np.zeros((1, 3), int), 1.0)
    with pytest.raises(ValueError):
        ndscatter.scatter_nd(data, 0, 1.0)
    with pytest.raises(ValueError):
        ndscatter.scatter_elements(data, [0], [1.0])
    with pytest.raises(ValueError):
        ndscatter.scatter_update(data, [0], 1.0, out=np.zeros((4, 3)))
    with pytest.raises(ValueError):
        ndscatter.gather(data, [0], out=np.zeros((2, 4)))
    with pytest.raises(ValueError):
        ndscatter.tensor_scatter(data, [0, 0, 0], np.zeros((3, 1)), axis=0)
    with pytest.raises(TypeError):
        ndscatter.scatter_update(data, [0], 1.0, out=[[0.0] * 4] * 3)


def test_options_are_read_in_any_case():
    options = {"reduction": "ADD", "bounds": "Skip", "duplicates": "Reject", "accumulate": "WIDE"}
    assert ndscatter.scatter_update(np.ones(2), [1, 5], [2.0, 3.0], **options).tolist() == [1, 3]
    rows = ndscatter.tensor_scatter(np.zeros((1, 2)), [1], np.ones((1, 2)), -1, mode="Circular")
    assert rows.tolist() == [[1, 1]]


def test_errors_of_elements_that_are_moved_as_several_units():
    # An element of 3 bytes is passed to the kernels as 3 units along an additional last axis. The
    # indices of a caller must not address this axis.
    data = np.zeros((3, 4), "S3")
    with pytest.raises(ValueError, match="tuples of 3"):
        ndscatter.scatter_nd(data, np.zeros((1, 3), int), "a")
    for function in (ndscatter.scatter_update, ndscatter.scatter_elements):
        with pytest.raises(ValueError, match="axis"):
            function(data, [[0]], [["a"]], axis=2)
        with pytest.raises(ValueError, match="axis"):
            function(data, [[0]], [["a"]], axis=-3)
    assert ndscatter.scatter_update(data, [0], [["x"]] * 3, axis=-1)[:, 0].tolist() == [b"x"] * 3
    assert ndscatter.scatter_elements(data, [[3]], [["x"]], axis=-1)[0, 3] == b"x"
    with pytest.raises(ValueError):
        ndscatter.gather_nd(data, np.zeros((1, 3), int))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_read_only_outputs(reduction):
    data = np.zeros(3)
    data.flags.writeable = False
    refused(
        ValueError,
        data,
        lambda: ndscatter.scatter_update(data, [0], 1.0, reduction=reduction, out=data),
        "read-only",
    )
    with pytest.raises(ValueError, match="read-only"):
        ndscatter.gather(data, [0], out=data[:1])
    with pytest.raises(ValueError, match="read-only"):
        ndscatter.scatter_update(np.zeros((2, 3)), [0], 1.0, out=np.broadcast_to(data, (2, 3)))
    # A read-only array is accepted as `data` if it is not the output.
    assert ndscatter.scatter_update(data, [0], 1.0)[0] == 1


def test_memory_that_is_shared():
    data = np.arange(6.0)
    refused(
        ValueError, data, lambda: ndscatter.scatter_update(data[1:], [0], 1.0, out=data[:-1]),
        "shares memory",
    )  # fmt: skip
    refused(
        ValueError, data, lambda: ndscatter.scatter_update(data, [0], data[1:2], out=data)
    )
    refused(ValueError, data, lambda: ndscatter.gather(data, [0, 1], out=data[:2]))
    # `data[::2]` and `data[1::2]` span the same range of addresses, but share no element.
    result = ndscatter.scatter_update(data[::2], [0], 9.0, out=data[1::2])
    assert result.tolist() == [9, 2, 4]
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8))
    with pytest.raises(ValueError, match="overlaps itself"):
        ndscatter.scatter_update(np.zeros((3, 2)), [0], 1.0, out=overlapping)


def test_unaligned_and_swapped_elements():
    record = np.zeros(4, [("flag", "u1"), ("value", "f8")])
    field = record["value"]
    assert not field.flags.aligned
    ndscatter.scatter_update(field, [1, 1, -1], [1.0, 2.0, 3.0], reduction="add", out=field)
    assert record["value"].tolist() == [0, 3, 0, 3]
    ndscatter.scatter_update(field, [0], 5.0, out=field)
    assert record["value"][0] == 5
    assert ndscatter.scatter_update(field, [0], 1.0, reduction="max")[0] == 5
    swapped = np.arange(3, dtype=">i4")
    assert ndscatter.scatter_update(swapped, [0], 7, reduction="add").tolist() == [7, 1, 2]
    ndscatter.scatter_update(swapped, [0], np.array([7], "<i4"), out=swapped)
    assert swapped.tolist() == [7, 1, 2]
    ndscatter.scatter_update(np.arange(3, dtype="i4"), [1], 9, out=swapped)
    assert swapped.tolist() == [0, 9, 2]
    assert ndscatter.gather(swapped, [1]).dtype == swapped.dtype
    with pytest.raises(IndexError):
        ndscatter.scatter_update(swapped, [3], 9, reduction="add", out=swapped)
    assert swapped.tolist() == [0, 9, 2]
    rows = np.zeros((2, 3), "u1,f4,u1")["f1"]
    assert ndscatter.gather(rows, [[1, 0]]).shape == (1, 2, 3)
    indices = np.zeros(3, [("a", "u1"), ("b", ">i8")])["b"]
    assert ndscatter.gather(np.arange(3), indices).tolist() == [0, 0, 0]


def test_strides_that_are_not_a_multiple_of_an_element():
    """The stride of an axis of one element is ignored, and so are all strides of an array without
    elements."""
    for shape, strides in [((1,), (12,)), ((1, 3), (12, 8)), ((3, 1), (8, 12)), ((0, 2), (12, 9))]:
        memory = np.arange(8.0)
        data = np.lib.stride_tricks.as_strided(memory, shape, strides)
        indices = np.lib.stride_tricks.as_strided(np.zeros(8, int), shape[:1], strides[:1])
        updates = np.ones((*indices.shape, *shape[1:]))
        ndscatter.scatter_update(data, indices, updates, reduction="add", out=data)
        assert memory[0] == shape[0] and data.size == updates.size
        ndscatter.add_at(data, indices, updates)
        assert memory[0] == 2 * shape[0]
        assert ndscatter.gather(data, indices).shape == updates.shape


def test_booleans_are_moved_as_bytes():
    data = np.array([0, 2, 255], "u1").view(bool)
    moved = ndscatter.scatter_update(data, [0], data[1:2])
    assert moved.view("u1").tolist() == [2, 2, 255]
    reduced = ndscatter.scatter_update(data, [0, 1], data[1:], reduction="add")
    assert reduced.view("u1").tolist() == [1, 1, 255]


def test_subclasses_are_arrays_and_results_are_plain():
    class Mine(np.ndarray):
        pass

    data = np.zeros(3).view(Mine)
    result = ndscatter.scatter_update(data, [0], 1.0)
    assert type(result) is np.ndarray
    assert ndscatter.scatter_update(data, [0], 1.0, out=data) is data


def test_results_own_their_memory():
    data = np.arange(4.0)
    result = ndscatter.gather(data, [3])
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None and result.tolist() == [3]
    assert result.flags.owndata and result.flags.writeable


def test_nothing_is_kept_of_arguments():
    import sys

    data, indices, updates = np.zeros(3), np.array([0]), np.ones(1)
    counts = [sys.getrefcount(array) for array in (data, indices, updates)]
    for _ in range(10):
        ndscatter.scatter_update(data, indices, updates, out=data)
        ndscatter.add_at(data, indices, updates)
        ndscatter.add_at(data, (indices,), updates)
        ndscatter.bincount(indices, updates)
        with pytest.raises(IndexError):
            ndscatter.gather(data, indices + 3)
    assert counts == [sys.getrefcount(array) for array in (data, indices, updates)]
    descr = data.dtype
    before = sys.getrefcount(descr)
    kept = [ndscatter.gather(data, indices) for _ in range(10)]
    assert sys.getrefcount(descr) <= before + len(kept)


def test_shapes_larger_than_memory():
    data = np.broadcast_to(np.zeros(1), (2**40, 2**10))
    with pytest.raises((MemoryError, ValueError)):
        ndscatter.scatter_nd(data, np.zeros((0, 2), int), [])
    with pytest.raises((MemoryError, ValueError)):
        ndscatter.gather(np.zeros((1, 2**20)), np.broadcast_to(0, 2**40))


class Tensor:
    """A tensor that has `__dlpack__` and is not a numpy array."""

    def __init__(self, array, device=(1, 0), versions=True):
        self.array, self.device, self.versions = array, device, versions

    def __dlpack__(self, **keywords):
        if not self.versions:
            if keywords:
                raise TypeError("no such argument")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device

    def __array_namespace__(self):
        return np


@pytest.mark.parametrize("versions", [True, False])
def test_dlpack(versions):
    array = np.zeros((3, 4), "f4").T
    tensor = Tensor(array, versions=versions)
    if versions:
        assert ndscatter.scatter_update(tensor, [1], 2.0, out=tensor) is tensor
    else:
        ndscatter.scatter_update(array, [1], 2.0, out=array)
    assert array[1].tolist() == [2, 2, 2]
    result = ndscatter.scatter_update(tensor, Tensor(np.array([0])), Tensor(np.ones((1, 3), "f4")))
    assert isinstance(result, np.ndarray)
    assert result[0].tolist() == [1, 1, 1] and not array[0].any()
    assert ndscatter.gather(tensor, [1]).tolist() == [[2, 2, 2]]
    result[...] = 3
    gc.collect()
    assert result.sum() == 36
    counts = np.zeros(3)
    ndscatter.add_at(counts, Tensor(np.array([1, 1])), Tensor(np.ones(2)))
    assert counts.tolist() == [0, 2, 0]


def test_dlpack_devices_and_read_only_tensors():
    cuda = Tensor(np.zeros(3), device=(2, 0))
    for call in (
        lambda: ndscatter.scatter_update(cuda, [0], 1.0),
        lambda: ndscatter.scatter_update(np.zeros(3), [0], cuda),
        lambda: ndscatter.gather(np.zeros(3), cuda),
        lambda: ndscatter.scatter_update(np.zeros(3), [0], 1.0, out=cuda),
    ):
        with pytest.raises(ValueError, match="copy it to the CPU"):
            call()
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ndscatter.scatter_update(np.zeros(3), [0], 1.0, out=Tensor(array))
    with pytest.raises(TypeError):
        ndscatter.scatter_update(Tensor(np.zeros(3)), [0], np.zeros(1, "f4"))


def test_tensors_are_released():
    class Counted(np.ndarray):
        pass

    array = np.zeros(3).view(Counted)
    gone = weakref.ref(array)
    tensor = Tensor(array)
    ndscatter.scatter_update(tensor, [0], 1.0, out=tensor)
    with pytest.raises(IndexError):
        ndscatter.gather(tensor, [3])
    del tensor, array
    gc.collect()
    assert gone() is None
