"""Tests DLPack tensors of other libraries as outputs, and malformed tensors."""

import datetime

import numpy as np
import pytest

import capsules
import ndscatter

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("flags", [None, capsules.READ_ONLY, capsules.COPIED])
def test_outputs_that_may_be_immutable(flags):
    """An output is refused if it is an unversioned, a read-only or a copied tensor.

    An unversioned tensor has no read-only flag, so it may be immutable. TensorFlow exports its
    immutable tensors as unversioned tensors.
    """
    memory = np.zeros(3)
    tensor = capsules.Array(memory, flags=flags)
    plan, gathered = ndscatter.plan_scatter_update((3,), [0]), ndscatter.plan_gather((3,), [0, 1, 2])
    for call in (
        lambda: ndscatter.scatter_update(tensor, [0], 1.0, out=tensor),
        lambda: ndscatter.scatter_update(np.zeros(3), [0], 1.0, out=tensor),
        lambda: ndscatter.tensor_scatter(np.zeros((3, 1)), None, np.ones((3, 1)), -1, out=tensor),
        lambda: ndscatter.gather(np.ones(3), [0, 1, 2], out=tensor),
        lambda: plan(np.zeros(3), 1.0, out=tensor),
        lambda: gathered(np.ones(3), out=tensor),
        lambda: ndscatter.bincount([1], out=tensor),
    ):
        with pytest.raises(ValueError, match="pass a numpy array, a PyTorch tensor"):
            call()
    assert not memory.any()
    # An unversioned, read-only or copied tensor is accepted as an input of a call.
    assert ndscatter.scatter_update(tensor, [0], 1.0).tolist() == [1, 0, 0]


def test_outputs_that_are_writable():
    memory = np.zeros(3)
    tensor = capsules.Array(memory)
    assert ndscatter.scatter_update(tensor, [1], 2.0, out=tensor) is tensor
    assert memory.tolist() == [0, 2, 0]
    result = torch.zeros(3, dtype=torch.float64)
    assert ndscatter.gather(memory, [1, 1, 0], out=result) is result
    assert result.tolist() == [2, 2, 0]


class OldTensor(torch.Tensor):
    """A PyTorch tensor whose `__dlpack__` exports an unversioned tensor, as in old PyTorch."""

    def __dlpack__(self, *, stream=None, **options):
        if options:
            raise TypeError("no such argument")
        return super().__dlpack__()


def test_unversioned_tensors_of_pytorch():
    tensor = torch.zeros(3).as_subclass(OldTensor)
    ndscatter.scatter_update(tensor, [1], 2.0, out=tensor)
    assert tensor.tolist() == [0, 2, 0]


def changed_after_it_was_saved(change):
    """Check that the backward pass raises an error if `change` has written a tensor that autograd
    has saved for this pass."""
    weights = torch.ones(3, requires_grad=True)
    saved = torch.tensor([1.0, 2.0, 3.0])
    loss = (weights * saved).sum()
    change(saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_autograd_sees_that_an_output_was_written():
    scatter = ndscatter.plan_scatter_update((3,), [0])
    gather = ndscatter.plan_gather((3,), [0, 1, 2])
    other = torch.zeros(3)
    for change in (
        lambda t: ndscatter.scatter_update(t, [0], 9.0, out=t),
        lambda t: ndscatter.scatter_nd(other, [[0]], 9.0, reduction="add", out=t),
        lambda t: ndscatter.scatter_elements(t, [0], 9.0, out=t),
        lambda t: ndscatter.gather(other, [0, 1, 2], out=t),
        lambda t: scatter(t, 9.0, out=t),
        lambda t: gather(other, out=t),
        lambda t: ndscatter.scatter_update(t, [0], 9.0, out=t.detach()),
        lambda t: ndscatter.scatter_update(t.view(3, 1)[1:], [0], 9.0, out=t.view(3, 1)[1:]),
    ):
        changed_after_it_was_saved(change)


def test_autograd_ignores_an_output_of_a_failed_call():
    weights, saved = torch.ones(3, requires_grad=True), torch.tensor([1.0, 2.0, 3.0])
    loss = (weights * saved).sum()
    with pytest.raises(IndexError):
        ndscatter.scatter_update(saved, [7], 9.0, out=saved)
    ndscatter.scatter_update(saved, [0], 9.0)
    loss.backward()
    assert weights.grad.tolist() == [1, 2, 3]


def test_tensors_of_inference_have_no_version():
    with torch.inference_mode():
        tensor = torch.zeros(3)
        ndscatter.scatter_update(tensor, [1], 2.0, out=tensor)
    assert tensor.tolist() == [0, 2, 0]


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "u8", "f4", "f8"])
def test_elements_that_are_not_aligned(dtype):
    tensor = capsules.unaligned(dtype, [0, 1, 1])
    calls = [
        lambda: ndscatter.scatter_update(tensor, [0], np.ones(1, dtype)),
        lambda: ndscatter.scatter_update(np.zeros(3, dtype), [0, 1, 2], tensor),
        lambda: ndscatter.gather(tensor, [0]),
        lambda: ndscatter.add_at(np.zeros(5000, dtype), [0, 1, 2], tensor),
        lambda: ndscatter.bincount(np.zeros(3, int), tensor),
    ]
    if dtype[0] in "iu":
        calls += [
            lambda: ndscatter.bincount(tensor),
            lambda: ndscatter.gather(np.zeros(3), tensor),
            lambda: ndscatter.add_at(np.zeros(5000), tensor, 1.0),
        ]
    for call in calls:
        with pytest.raises((ValueError, TypeError)):
            call()


# Shapes of tensors that exceed the address space, and the strides of these tensors. The number of
# bytes of such a tensor, or the absolute value of an offset in bytes, overflows a signed integer of
# 64 bits. For some of the tensors, the overflow occurs only if an element has several bytes.
TOO_LARGE = [
    ((2**32, 2**32), (0, 0)),
    ((2**62, 4), (0, 0)),
    ((2**40, 2**40), None),
    ((2**63 - 1,), None),
    ((2**61,), (1,)),
    ((2, 2), (2**62, 2**62)),
    ((2,), (-(2**63),)),
    ((3,), (2**62,)),
]


@pytest.mark.parametrize(("shape", "strides"), TOO_LARGE)
@pytest.mark.parametrize("dtype", ["i1", "i8", "f8"])
def test_tensors_larger_than_the_address_space(shape, strides, dtype):
    if dtype == "i1" and len(shape) == 1 and strides in ((1,), None):
        pytest.skip("this number of bytes does not overflow")
    memory = np.zeros(4, dtype)
    tensor = capsules.Array(memory, shape=shape, strides=strides)
    rank = len(shape)
    calls = [
        lambda: ndscatter.scatter_nd(tensor, np.zeros((0, rank), int), np.zeros(0, dtype)),
        lambda: ndscatter.scatter_nd(np.zeros(3, dtype), np.zeros((1, 1), int), tensor),
        lambda: ndscatter.gather(tensor, [0]),
        lambda: ndscatter.gather_nd(tensor, np.zeros((1, rank), int)),
        lambda: ndscatter.plan_gather_nd(tensor, np.zeros((1, rank), int)),
        lambda: ndscatter.add_at(np.zeros(5000, dtype), [0], tensor),
        lambda: ndscatter.scatter_update(np.zeros(3, dtype), [0], 1, out=tensor),
        lambda: ndscatter.bincount(np.zeros(3, int), tensor),
    ]
    if dtype[0] == "i":
        calls += [
            lambda: ndscatter.bincount(tensor),
            lambda: ndscatter.gather(np.zeros(3), tensor),
            lambda: ndscatter.add_at(np.zeros(5000), tensor, 1.0),
        ]
    for call in calls:
        with pytest.raises((ValueError, MemoryError, IndexError, TypeError)):
            call()
    assert not memory.any()


def test_strides_of_a_tensor_without_elements_are_ignored():
    tensor = capsules.Array(np.zeros(1), shape=(2**20, 2**20, 0), strides=(2**62, -(2**63), 5))
    assert ndscatter.gather(tensor, np.zeros(0, int), axis=2).size == 0
    assert ndscatter.scatter_nd(np.zeros(3), np.zeros((0, 1), int), np.zeros(0)).size == 3


def test_strides_of_axes_of_one_element_are_ignored():
    tensor = capsules.Array(np.arange(3.0), shape=(1, 3, 1), strides=(2**62, 1, -(2**63)))
    assert ndscatter.gather(tensor, [2], axis=1).tolist() == [[[2.0]]]
    other = capsules.Array(np.zeros(3, "i1"), shape=(1, 3), strides=(2**62, 1))
    assert ndscatter.scatter_nd(other, [[0, 1]], np.ones(1, "i1")).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("rank", [-1, -(2**31)])
def test_a_negative_rank(rank):
    with pytest.raises(ValueError):
        ndscatter.gather(capsules.Array(np.zeros(3), rank=rank), [0])


def pairs_of_four_bits(values):
    """Return an `Array` of the DLPack type kDLFloat4_e2m1fn with 2 lanes: each byte has two values
    of 4 bits."""
    tensor = capsules.Array(np.array(values, "u1"))
    of = tensor.made.tensor
    of.code, of.bits, of.lanes = 17, 4, 2
    return tensor


def test_pairs_of_four_bits_are_moved():
    data, updates = pairs_of_four_bits([0x12, 0x34, 0x56]), pairs_of_four_bits([0x78])
    assert ndscatter.scatter_update(data, [-1], updates, out=data) is data
    assert data.array.tolist() == [0x12, 0x34, 0x78]
    with pytest.raises(TypeError):
        ndscatter.scatter_update(data, [0], updates, reduction="add", out=data)
    updates.made.tensor.code = 16
    with pytest.raises(TypeError):
        ndscatter.scatter_update(data, [0], updates, out=data)
    updates.made.tensor.lanes = 1
    with pytest.raises(TypeError, match="type code 16 with 4 bits and lanes 1"):
        ndscatter.scatter_update(data, [0], updates, out=data)
    assert data.array.tolist() == [0x12, 0x34, 0x78]


def used_capsule():
    """Returns a capsule whose tensor a library has taken over."""
    capsule = np.zeros(3).__dlpack__()
    np.from_dlpack(Exporting(capsule))
    return capsule


class Exporting:
    """An object whose `__dlpack__` returns a given object."""

    def __init__(self, exported):
        self.exported = exported

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return self.exported


@pytest.mark.parametrize("make", [lambda: None, lambda: np.zeros(3), lambda: datetime.datetime_CAPI, used_capsule])
def test_exports_that_are_no_tensor(make):
    """`__dlpack__` returns None, an array, a capsule of another kind, or a capsule that was used."""
    exporting, data = Exporting(make()), np.zeros(3)
    for call in (
        lambda: ndscatter.gather(exporting, [0]),
        lambda: ndscatter.gather(data, exporting),
        lambda: ndscatter.scatter_update(data, [0], exporting, out=data),
        lambda: ndscatter.gather(data, [0, 1, 2], out=exporting),
        lambda: ndscatter.move_rows(exporting, [0], [1]),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert not data.any()
