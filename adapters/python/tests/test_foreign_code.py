"""Tests arguments whose conversion runs Python code that resizes another array of the same call.

`ufunc.at` of numpy reads the shape of the array after it has converted the other arguments, and so
do `add_at` and the similar functions. If an array changes after a call has read it, the call either
reads it again or raises an error. No call reads or writes freed memory.
"""

import numpy as np
import pytest

import ndscatter

# Numbers of elements of the arrays, below and above `SHORT` in src/at.rs (2000). When the largest
# array is freed, its memory returns to the system, so that an access to the freed memory crashes.
SIZES = [16, 1999, 2000, 5000, 1 << 20]
FUNCTIONS = [
    ndscatter.add_at,
    ndscatter.subtract_at,
    ndscatter.multiply_at,
    ndscatter.minimum_at,
    ndscatter.maximum_at,
]
REFUSED = (IndexError, ValueError, TypeError)


class Shrinking:
    """An object whose conversion to a numpy array (`__array__`) resizes the array `victim` to one
    element."""

    def __init__(self, victim, values):
        self.victim, self.values = victim, values

    def __array__(self, dtype=None, copy=None):
        self.victim.resize(1, refcheck=False)
        return self.values


class ShrinkingTensor:
    """An object whose `__dlpack__` resizes the array `victim` to one element."""

    def __init__(self, victim, values):
        self.victim, self.values = victim, values

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        self.victim.resize(1, refcheck=False)
        return self.values.__dlpack__(**options)


class ShrinkingItem(np.ndarray):
    """An array whose method `item` resizes the array `victim` to one element."""

    victim = None

    def item(self, *arguments):
        self.victim.resize(1, refcheck=False)
        return 1


class ShrinkingMask(np.ndarray):
    """An array whose method `nonzero` resizes the array `victim` to one element."""

    victim = None

    def nonzero(self):
        self.victim.resize(1, refcheck=False)
        return (np.array([0, 5]),)


class ShrinkingCopy(np.ndarray):
    """An array whose method `astype` and property `dtype` resize the array `victim` to one
    element."""

    victim = None

    def astype(self, *arguments, **options):
        self.victim.resize(1, refcheck=False)
        return np.asarray(self).astype(*arguments, **options)

    @property
    def dtype(self):
        self.victim.resize(1, refcheck=False)
        return super().dtype


def subclass(kind, array, victim):
    made = array.view(kind)
    made.victim = victim
    return made


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [Shrinking, ShrinkingTensor])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_that_shrink_the_array_of_numpys_functions(function, kind, size):
    a = np.zeros(size)
    with pytest.raises(REFUSED):
        function(a, np.array([0, 5, 9]), kind(a, np.ones(3)))
    assert a.tolist() == [0.0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [Shrinking, ShrinkingTensor])
def test_indices_that_shrink_the_array_or_the_values(kind, size):
    a = np.zeros(size)
    with pytest.raises(REFUSED):
        ndscatter.add_at(a, kind(a, np.array([0, 5, 9])), 1.0)
    assert a.tolist() == [0.0]
    a, b = np.zeros(size), np.ones(size)
    try:
        ndscatter.add_at(a, kind(b, np.arange(size)[2:]), b)
    except REFUSED:
        assert not a.any()
    else:
        assert a[2:].all() and not a[:2].any(), "the one remaining value is broadcast"


@pytest.mark.parametrize("size", SIZES)
def test_a_value_without_axes(size):
    """`b` has rank 0. The method `item` of its class resizes `a` to one element. ndscatter and numpy
    read the value of `b` from memory and do not call this method, so `a` keeps its `size` elements.
    """
    a = np.zeros(size, "f8")
    b = subclass(ShrinkingItem, np.array(2, "i4"), a)
    ndscatter.add_at(a, np.array([0, 5, 5]), b)
    assert len(a) == size and a[:6].tolist() == [2, 0, 0, 0, 0, 4]


def test_a_value_without_axes_whose_item_is_itself():
    class Endless(np.ndarray):
        def item(self, *arguments):
            return self

    a = np.zeros(5000)
    ndscatter.add_at(a, np.array([0, 5, 5]), np.array(3, "i4").view(Endless))
    assert a[:6].tolist() == [3, 0, 0, 0, 0, 6]


@pytest.mark.parametrize("size", SIZES)
def test_a_mask(size):
    a = np.zeros(size)
    mask = subclass(ShrinkingMask, np.arange(size) == 3, a)
    ndscatter.add_at(a, mask, 2.0)
    assert len(a) == size and a[3] == 2 and a.sum() == 2


def test_a_mask_whose_nonzero_is_itself():
    class Endless(np.ndarray):
        def nonzero(self):
            return self

    a = np.zeros(5000)
    ndscatter.add_at(a, (np.arange(5000) == 7).view(Endless), 1.0)
    assert a[7] == 1 and a.sum() == 1


def test_deeply_nested_tuples():
    deep = ()
    for _ in range(1_000_000):
        deep = (deep,)
    for size in (10, 5000):
        with pytest.raises(REFUSED + (RecursionError,)):
            ndscatter.add_at(np.zeros(size), deep, 1.0)
    while deep:
        (deep,) = deep


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [Shrinking, ShrinkingTensor])
def test_arguments_of_scatters_and_gathers(kind, size):
    data = np.zeros(size)
    with pytest.raises(REFUSED):
        ndscatter.scatter_update(data, [0, 5, 9], kind(data, np.ones(3)), out=data)
    assert data.tolist() == [0.0]
    data = np.zeros(size)
    with pytest.raises(REFUSED):
        ndscatter.scatter_update(data, kind(data, np.array([0, 5, 9])), np.ones(3), out=data)
    assert data.tolist() == [0.0]
    data = np.zeros(size)
    with pytest.raises(REFUSED):
        ndscatter.scatter_update(data, [0, 5, 9], kind(data, np.ones(3)))
    indices = np.arange(size)
    with pytest.raises(REFUSED):
        ndscatter.scatter_update(np.zeros(size), indices, kind(indices, np.ones(size)))
    updates = np.ones(size)
    # The conversion of the first argument resizes `updates` to one element. The call reads
    # `updates` after that conversion, so it broadcasts this element to all tuples.
    result = ndscatter.scatter_update(kind(updates, np.zeros(size)), np.arange(size), updates)
    assert result.all()
    data = np.zeros(size)
    with pytest.raises(REFUSED):
        ndscatter.gather(data, kind(data, np.array([0, 5, 9])))
    data, out = np.zeros(size), np.ones(3)
    with pytest.raises(REFUSED):
        ndscatter.gather(kind(out, data), [0, 5, 9], out=out)
    assert out.tolist() == [1.0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [Shrinking, ShrinkingTensor])
def test_arguments_of_plans(kind, size):
    plan = ndscatter.plan_scatter_update((size,), [0, 5, 9])
    data = np.zeros(size)
    with pytest.raises(REFUSED):
        plan(data, kind(data, np.ones(3)), out=data)
    assert data.tolist() == [0.0]
    out = np.zeros(size)
    with pytest.raises(REFUSED):
        plan(kind(out, np.zeros(size)), np.ones(3), out=out)
    data = np.zeros(size)
    gathered = ndscatter.plan_gather((size,), [0, 5, 9])
    out = np.ones(3)
    with pytest.raises(REFUSED):
        gathered(kind(out, data), out=out)
    assert out.tolist() == [1.0]


@pytest.mark.parametrize("size", SIZES)
def test_the_shape_of_a_plan(size):
    indices = np.arange(size)

    class Size:
        def __index__(self):
            indices.resize(1, refcheck=False)
            return size

    plan = ndscatter.plan_scatter_update((Size(),), indices)
    assert plan.tuples == 1, "the shape is read before the indices"


@pytest.mark.parametrize("size", [10, 8191, 8192, 600_000])
@pytest.mark.parametrize("kind", [Shrinking, ShrinkingTensor])
def test_arguments_of_bincount(kind, size):
    x = np.zeros(size, int)
    with pytest.raises(REFUSED):
        ndscatter.bincount(x, kind(x, np.ones(size)))
    weights = np.ones(size)
    with pytest.raises(REFUSED):
        ndscatter.bincount(kind(weights, np.zeros(size, int)), weights)
    out = np.zeros(size, int)
    with pytest.raises(REFUSED):
        ndscatter.bincount(kind(out, np.full(size, 3)), out=out)


@pytest.mark.parametrize("size", SIZES)
def test_copies_of_a_subclass(size):
    """The updates or the indices are a `ShrinkingCopy` in foreign byte order. The method `astype` and
    the property `dtype` of this class resize `data` to one element. ndscatter must copy such an
    array without a use of this method or this property, so that `data` keeps its `size` elements.
    """
    data = np.zeros(size)
    updates = subclass(ShrinkingCopy, np.array([1.0, 2.0], ">f8"), data)
    ndscatter.scatter_update(data, [0, 5], updates, reduction="add", out=data)
    assert len(data) == size and data[5] == 2
    ndscatter.scatter_update(data, [0, 5], updates, out=data)
    assert len(data) == size
    indices = subclass(ShrinkingCopy, np.array([0, 5], ">i8"), data)
    ndscatter.scatter_update(data, indices, [1.0, 2.0], out=data)
    assert len(data) == size


def test_a_pytorch_tensor_whose_memory_is_freed():
    torch = pytest.importorskip("torch")

    class Freeing:
        def __array__(self, dtype=None, copy=None):
            tensor.untyped_storage().resize_(0)
            return np.ones(3, "f4")

    class FreeingTensor:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            tensor.untyped_storage().resize_(0)
            return np.ones(3, "f4").__dlpack__(**options)

    for size in SIZES:
        for kind in (Freeing, FreeingTensor):
            tensor = torch.zeros(size)
            with pytest.raises(REFUSED):
                ndscatter.scatter_update(tensor, [0, 5, 9], kind(), out=tensor)
            plan = ndscatter.plan_scatter_update((size,), [0, 5, 9])
            tensor = torch.zeros(size)
            with pytest.raises(REFUSED):
                plan(tensor, kind(), out=tensor)
            tensor = torch.ones(size)
            with pytest.raises(REFUSED):
                ndscatter.scatter_update(tensor, [0, 5, 9], kind())
            tensor = torch.ones(3)
            with pytest.raises(REFUSED):
                ndscatter.scatter_update(kind(), [0, 1, 2], tensor)
