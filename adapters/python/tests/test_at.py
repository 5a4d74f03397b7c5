"""Compares `add_at` and the other functions of src/at.rs with `np.ufunc.at`."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndscatter
import reference as ref
from strategies import COMPUTED, INTEGERS, seeds, strided, values

FUNCTIONS = {
    "add": ndscatter.add_at,
    "subtract": ndscatter.subtract_at,
    "multiply": ndscatter.multiply_at,
    "minimum": ndscatter.minimum_at,
    "maximum": ndscatter.maximum_at,
}
EXTREMES = ("minimum", "maximum")
NAMES = list(FUNCTIONS)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def same(name, a, b):
    """Return whether two results have the same bits. For minima and maxima, zeros of different sign
    count as equal."""
    if name in EXTREMES and a.dtype.kind in "fV":
        a, b = a + a.dtype.type(0), b + b.dtype.type(0)
    return ref.same_bits(a, b)


def check(name, a, indices, b):
    """Check that ndscatter's function and numpy's `ufunc.at` write the same result, or raise the
    same type of error. After an error, ndscatter must have written nothing."""
    ours, theirs = a.copy(), a.copy()
    try:
        full = b
        if np.ndim(b):
            # `ufunc.at` of numpy 2.4 reads past the end of `b` if `b` has fewer dimensions than
            # `indices`. numpy therefore gets `b` broadcast to the shape of `a[indices]`.
            full = np.array(np.broadcast_to(b, a[indices].shape))
        getattr(np, name).at(theirs, indices, full)
    except Exception as error:
        expected = type(error)
    else:
        expected = None
    if expected is None:
        assert FUNCTIONS[name](ours, indices, b) is None
        assert same(name, ours, theirs), (name, a, indices, b, ours, theirs)
        return
    kind = next(k for k in (IndexError, ValueError, TypeError) if issubclass(expected, k))
    with pytest.raises(kind):
        FUNCTIONS[name](ours, indices, b)
    assert ref.same_bits(ours, a), "nothing is written"


def index_of(random, size, shape):
    dtype = INTEGERS[int(random.integers(0, 4))]
    return random.integers(-size, size, shape).astype(dtype) if size else np.zeros((0,), dtype)


def part_of(random, size, shape):
    """Return a random index for one axis of size `size`: a slice, an integer, or an array of shape
    `shape`."""
    kind = int(random.integers(0, 6))
    if kind == 0:
        return slice(None)
    if kind == 1:
        return slice(int(random.integers(-3, 3)), None, int(random.integers(1, 3)))
    if kind == 2 and size:
        return int(random.integers(-size, size))
    return index_of(random, size, shape)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=400, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_any_index(name, draw, seed):
    random = np.random.default_rng(seed)
    dtype = draw.draw(st.sampled_from(COMPUTED))
    shape = tuple(int(n) for n in random.integers(1, 6, int(random.integers(1, 4))))
    a = strided(random, values(random, shape, dtype))
    kind = draw.draw(st.sampled_from(["array", "tuple", "mixed", "mask", "new", "ellipsis", "list"]))
    listed = tuple(int(n) for n in random.integers(1, 4, int(random.integers(0, 3))))
    if kind == "array":
        indices = strided(random, index_of(random, shape[0], listed))
    elif kind == "list":
        indices = index_of(random, shape[0], listed).tolist()
    elif kind == "tuple":
        count = int(random.integers(0, len(shape) + 1))
        indices = tuple(index_of(random, size, listed) for size in shape[:count])
    elif kind == "mask":
        indices = random.random(shape[: int(random.integers(1, len(shape) + 1))]) < 0.5
    elif kind == "ellipsis":
        indices = (..., index_of(random, shape[-1], listed))
    else:
        count = int(random.integers(1, len(shape) + 1))
        indices = tuple(part_of(random, size, listed) for size in shape[:count])
        if kind == "new":
            indices = (None, *indices)
    places = np.empty(shape)[indices].shape
    cut = int(random.integers(0, len(places) + 1))
    b_shape = tuple(1 if random.random() < 0.2 else n for n in places[cut:])
    b = strided(random, values(random, b_shape, dtype))
    check(name, a, indices, b)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=300, deadline=None)
@given(draw=st.data(), seed=seeds)
def test_types_are_promoted_by_numpys_rules(name, draw, seed):
    random = np.random.default_rng(seed)
    builtin = [dtype for dtype in COMPUTED if dtype.kind != "V"]
    a = values(random, (6,), draw.draw(st.sampled_from(builtin)))
    b = values(random, (4,), draw.draw(st.sampled_from(builtin)))
    if draw.draw(st.booleans()):
        b = b * b.dtype.type(100) if b.dtype.kind != "b" else b
    for values_ in (b, b[0], b[0].item(), b.tolist()):
        check(name, a, np.array([0, 3, 3, 5]), values_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "dtype, b",
    [
        ("f4", 0.1), ("f4", 0.5), ("f4", 3), ("f4", 2**24 + 1), ("f4", 2**60 + 1),
        ("f8", 2**60 + 1), ("f8", True), ("i1", 1000), ("i1", np.int64(1000)), ("i1", -1),
        ("u1", -1), ("i8", 1.5), ("i8", 2**62), ("u8", 1), ("u8", np.uint64(3)), ("i8", np.uint64(1)),
        ("?", True), ("?", 1), ("?", 0), ("f2", 0.1), ("f2", 1.0), ("f2", 70000), ("c8", 1j),
        ("c16", 0.1), ("c8", 0.1), ("i4", np.float32(2.5)), ("f8", np.longdouble(1) / 3),
    ],
)  # fmt: skip
def test_scalars(name, dtype, b):
    check(name, np.arange(1, 7).astype(dtype), np.array([0, 3, 3, 5]), b)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("dtypes", [("c8", "c16"), ("c8", "c8"), ("c16", "c8"), ("f2", "f4"), ("f4", "f8")])
def test_large_arrays_of_two_types(name, dtypes):
    """If `a` and `b` have different types, the narrower type represents all values of the array
    with the wider type. numpy rounds to the type of `a` after each update."""
    random = np.random.default_rng(5)

    def numbers(size, dtype):
        parts = random.standard_normal((2, size)).astype("f2").astype("f4")
        return (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)

    a, b = numbers(20_000, dtypes[0]), numbers(50_000, dtypes[1])
    if dtypes == ("c8", "c16"):
        b = (random.standard_normal(b.size) + 1j * random.standard_normal(b.size)).astype("c8").astype("c16")
        a = (random.standard_normal(a.size) + 1j * random.standard_normal(a.size)).astype("c8")
    check(name, a, random.integers(0, a.size, b.size), b)


@pytest.mark.parametrize("name", NAMES)
def test_large_arrays(name):
    random = np.random.default_rng(3)
    a = random.standard_normal((300, 40)).astype("f4")
    rows = random.integers(-300, 300, 7000)
    columns = random.integers(-40, 40, 7000)
    rows_of = random.standard_normal((7000, 40)).astype("f4")
    points = random.standard_normal(7000).astype("f4")
    check(name, a, rows, rows_of)
    check(name, a, (rows, columns), points)
    check(name, a, (slice(None), columns), random.standard_normal((300, 7000)).astype("f4"))
    check(name, a, a > 0.5, 2.0)
    check(name, a.T, (columns, rows), points)
    check(name, a[::2], (rows % 150, columns), points)
    check(name, a, rows.tolist(), 1.5)
    check(name, a.astype("f8"), rows, rows_of)
    check(name, a, rows, rows_of.astype("f8") / 3)
    check(name, (a * 99).astype("i4"), (rows, columns), (points * 99).astype("i8"))
    for threads in (1, 2, 5):
        ours, theirs = a.copy(), a.copy()
        FUNCTIONS[name](ours, (rows, columns), points, threads=threads)
        getattr(np, name).at(theirs, (rows, columns), points)
        assert same(name, ours, theirs)


@pytest.mark.parametrize("name", ["add", "maximum"])
def test_large_arrays_out_of_bounds(name):
    a = np.zeros((300, 40))
    good, bad = np.zeros(90_000, int), np.zeros(90_000, int)
    for value in (40, -41, 2**40):
        bad[-1] = value
        check(name, a, (good, bad), 1.0)
        check(name, a.T, (bad, good), 1.0)
    check(name, a, (good, np.full(90_000, 2**64 - 1, "u8")), 1.0)


# Shapes with 1978, 2000, 2021 and 2500 elements. `SHORT` in src/at.rs is 2000. If the kernels do
# not support a call directly, numpy's own loop runs it if all arguments have fewer than `SHORT`
# elements.
SHAPES = [(43, 46), (40, 50), (43, 47), (50, 50)]
PARTS = [
    ..., slice(None), slice(0, 3), slice(None, None, -2), slice(7, 7), 0, -3, None, True, False,
    np.array([0, 2, 2]), [1, -1, 1], np.array([[5], [-2]]), np.arange(43) % 3 == 0,
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_combination_of_parts_of_an_index(shape, count):
    a = np.arange(float(np.prod(shape))).reshape(shape)
    for parts in itertools.product(PARTS, repeat=count):
        check("add", a, parts, 0.5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_ellipsis_beside_slices_and_integers(name, shape):
    a = np.arange(float(np.prod(shape))).reshape(shape)
    rows = np.array([0, 2, 2])
    for indices in (
        ..., (...,), (..., 0), (0, ...), (..., slice(0, 3)), (..., None), (None, ..., 3),
        # Indices with two ellipses, which are errors.
        (..., ...), (..., 0, ...), (..., ..., rows), (..., rows, ...), (rows, ..., ...),
    ):  # fmt: skip
        check(name, a, indices, 2.0)


@pytest.mark.parametrize("name", NAMES)
def test_the_second_operand_is_missing(name):
    for size in (5, 1999, 2000, 5000):
        for a in (np.zeros(size), np.zeros(size, object)):
            with pytest.raises(ValueError, match="second operand needed for ufunc") as theirs:
                getattr(np, name).at(a, [1])
            with pytest.raises(ValueError) as ours:
                FUNCTIONS[name](a, [1])
            assert str(ours.value) == str(theirs.value)
            # `b=None` is not a missing argument. numpy raises an error, because it cannot compute
            # with None. ndscatter must raise the same type of error.
            check(name, a, [1], None)
            with pytest.raises(TypeError):
                FUNCTIONS[name](a)
    a = np.zeros(3)
    FUNCTIONS[name](a, indices=[1], b=1.0, threads=1)
    with pytest.raises(TypeError):
        FUNCTIONS[name](a, [1], 1.0, 1)


def test_values_and_indices_may_share_memory_with_the_array():
    for size in (10, 10_000):
        a = np.arange(float(size))
        indices = np.zeros(size // 2, int)
        check_shared(a, indices, lambda a: a[: size // 2])
        check_shared(a, np.arange(size - 1), lambda a: a[1:])
        check_shared(a, np.arange(size), lambda a: a[::-1])
        check_shared(a, np.arange(size), lambda a: a[:1])
        own, theirs = np.arange(size)[::-1].copy(), np.arange(size)[::-1].copy()
        ndscatter.add_at(own, own, 1)
        np.add.at(theirs, theirs, 1)
        assert np.array_equal(own, theirs)


def check_shared(a, indices, part):
    ours, theirs = a.copy(), a.copy()
    ndscatter.add_at(ours, indices, part(ours))
    np.add.at(theirs, indices, part(theirs))
    assert ref.same_bits(ours, theirs)


def test_an_array_that_overlaps_itself_is_left_to_numpy():
    ours, theirs = np.zeros(3), np.zeros(3)
    for a, add in ((ours, ndscatter.add_at), (theirs, np.add.at)):
        view = np.lib.stride_tricks.as_strided(a, (3, 3), (8, 0))
        add(view, ([0, 0], [1, 2]), 1.0)
        add(view, np.array([1, 1]), 1.0)
    assert ours.tolist() == theirs.tolist()


def test_a_read_only_array_is_refused():
    # `add_at` raises an error for a read-only array. `np.add.at` writes to such an array.
    for a in (np.zeros(3), np.zeros(3, "M8[s]"), np.zeros(3, object)):
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            ndscatter.add_at(a, [0], a[0])
        assert not a.astype(bool).any()


def test_zeros_of_either_sign():
    # If the existing value and the update are zeros of different sign, ndscatter's maximum keeps
    # the existing value. The sign of numpy's result depends on the element type and the machine.
    a = np.array([-0.0, 0.0])
    ndscatter.maximum_at(a, np.array([0, 1]), np.array([0.0, -0.0]))
    assert np.signbit(a).tolist() == [True, False]


@pytest.mark.parametrize("name", NAMES)
def test_nan(name):
    a = np.array([np.nan, 1.0, 2.0])
    check(name, a, [0, 1, 2], np.array([1.0, np.nan, 3.0]))


def test_bfloat16():
    a = np.zeros(3, ml_dtypes.bfloat16)
    check("add", a, np.array([0, 0, 2]), np.array([1, 2, 256.5], ml_dtypes.bfloat16))
    check("multiply", a + 3, np.array([0, 0, 2]), np.array([1.5, 2, 3], ml_dtypes.bfloat16))


# The cases of numpy's own tests of `ufunc.at`, rewritten as calls of `check`. Source:
# numpy/_core/tests/test_ufunc.py, `test_inplace_fancy_indexing` and the following tests.
NUMPYS = [
    ("add", np.arange(10), [2, 5, 2], 1),
    ("add", np.arange(10), [2, 5, 2], [1, 2, 3]),
    ("add", np.arange(9).reshape(3, 3), ([0, 1], slice(None)), [[1, 1, 1], [2, 2, 2]]),
    ("add", np.arange(9).reshape(3, 3), (slice(None), [1, 2, 1]), [100, 200, 300]),
    ("add", np.arange(9).reshape(3, 3), (0, [1, 2, 1]), [1, 2, 3]),
    ("add", np.arange(27).reshape(3, 3, 3), ([1, 2, 1], slice(None), slice(None)), 1),
    ("add", np.arange(27).reshape(3, 3, 3), (slice(None), [1, 2, 1], slice(None)), 1),
    ("add", np.arange(27).reshape(3, 3, 3), (slice(None), slice(None), [1, 2, 1]), 1),
    ("add", np.arange(27).reshape(3, 3, 3), (slice(None), 2, [1, 2, 1]), [[1], [2], [3]]),
    ("add", np.arange(27).reshape(3, 3, 3), ([0, 2], slice(None), [1, 1]), 5),
    ("add", np.arange(9).reshape(3, 3), ([0, 0], slice(None)), np.arange(3)),
    ("add", np.arange(9).reshape(3, 3), slice(0, 2), 7),
    ("add", np.arange(9).reshape(3, 3), (..., [0, 0]), 7),
    ("add", np.arange(9).reshape(3, 3), (None, 1), 7),
    ("add", np.arange(10, dtype="u2"), [0, 0, 3], np.uint16(65535)),
    ("add", np.arange(6), np.arange(6) > 2, 10),
    ("add", np.array(3), (), 2),
    ("add", np.array(3), True, 2),
    ("add", np.array(3), False, 2),
    ("add", np.array(3.0), ([True],), 2),
    ("add", np.zeros(0), [], 1),
    ("add", np.zeros(0), np.zeros(0, int), np.zeros(0)),
    ("add", np.zeros((0, 3)), np.zeros(0, int), 1.0),
    ("add", np.zeros((3, 0)), [0, 2], 1.0),
    ("add", np.zeros((3, 0)), [7], 1.0),
    ("add", np.zeros((3, 0)), np.array([7]), 1.0),
    ("multiply", np.arange(10), [3, 3], 2),
    ("subtract", np.arange(5), [4, 4, 0], [1, 2, 3]),
    ("maximum", np.arange(5), [0, 0, 4], [9, 3, 1]),
    # Arguments that numpy casts, among them the case of numpy's issue 4493.
    ("add", np.arange(5, dtype="i4"), [0, 1], np.array([1.7, 2.7])),
    ("add", np.arange(5, dtype="c8"), [0, 0], 1 + 2j),
    ("add", np.array([True, False]), [0, 1, 1], [True, False, True]),
    ("subtract", np.array([True, False]), [0], True),
    ("maximum", np.array([1 + 2j, 0]), [0, 1], 1 + 3j),
    # Byte order and alignment.
    ("add", np.arange(5, dtype=">f8"), [0, 0, 4], 2),
    ("add", np.arange(5, dtype="f8"), np.array([0, 0, 4], ">i8"), np.array([1, 2, 3], ">f8")),
    ("add", np.zeros(3, "i4,f8")["f1"], [0, 0, 2], 1.5),
    # Times, objects, long doubles.
    ("add", np.zeros(3, "M8[s]"), [0, 0], np.timedelta64(5, "s")),
    ("add", np.zeros(3, "m8[s]"), [0, 0], np.timedelta64(5, "m")),
    ("add", np.array([1, "a"], object)[:1], [0, 0], 3),
    ("add", np.zeros(3, "g"), [0, 0], 3),
    # Errors.
    ("add", np.zeros(3), [3], 1),
    ("add", np.zeros(3), [-4], 1),
    ("add", np.zeros(3), 5, 1),
    ("add", np.zeros(3), np.array([0, 3]), 1.0),
    ("add", np.zeros((3, 3)), (np.array([0]), np.array([3])), 1.0),
    ("add", np.zeros(3), [1.0], 1),
    ("add", np.zeros(3), np.zeros(0), 1),
    ("add", np.zeros(3), "x", 1),
    ("add", np.zeros(3), [0], "x"),
    ("add", np.zeros(3), [0, 1], [1, 2, 3]),
    ("add", np.zeros(3), np.array([0, 1]), np.zeros(3)),
    ("add", np.zeros((3, 3)), np.array([0, 1]), np.zeros((1, 2, 3))),
    ("add", np.zeros((3, 3)), ([0], [0], [0]), 1),
    ("add", np.array(3.0), [0], 1),
    ("add", np.zeros(3), [True, False], 1),
    ("add", np.zeros(3), [[0], [0, 1]], 1),
    ("add", np.zeros(3, "S3"), [0], "x"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(NUMPYS)))
def test_cases_of_numpys_own_tests(case):
    name, a, indices, b = NUMPYS[case]
    check(name, a, indices, b)


def test_a_list_as_first_argument_is_refused():
    with pytest.raises(TypeError, match="first operand must be array"):
        ndscatter.add_at([0, 1], [0], 1)


def test_nothing_is_written_if_one_index_is_out_of_bounds():
    a = np.zeros(5000)
    indices = np.arange(5001)
    with pytest.raises(IndexError, match="5000"):
        ndscatter.add_at(a, indices, 1.0)
    assert not a.any()


def test_ranks_that_numpy_does_not_support():
    """numpy's own loop ends the process for arrays of more than 32 dimensions."""
    a = np.zeros((1,) * 40)
    ndscatter.add_at(a, np.array([0, 0]), 1.0)
    assert a.item() == 2
    with pytest.raises(ValueError, match="40 dimensions"):
        ndscatter.add_at(a, [0], np.array([1], object))
