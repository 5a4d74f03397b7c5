"""Tests which exceptions are raised, and that their messages say what to do."""

import copy
import pickle

import numpy as np
import pytest

import ndscatter

HINT = r"did you mean `scatter_update`( or `gather`)?, or `indices\[:, None\]`\?"


def test_indices_with_one_axis():
    table, line = np.zeros((4, 5)), np.zeros(4)
    with pytest.raises(ValueError, match=HINT):
        ndscatter.scatter_nd(line, [0, 3], [1.0, 2.0])
    for out in (None, table):
        with pytest.raises(ValueError, match=HINT):
            ndscatter.scatter_nd(table, np.array([0, 3]), [1.0, 2.0], out=out)
    with pytest.raises(ValueError, match=HINT):
        ndscatter.plan_scatter_nd(4, [0, 3])
    plan = ndscatter.plan_scatter_nd((4, 5), [0, 3])
    with pytest.raises(ValueError, match=HINT):
        plan(table, [1.0, 2.0])
    for call in (ndscatter.gather_nd, lambda line, at: ndscatter.plan_gather_nd(4, at)(line)):
        with pytest.raises(ValueError, match=HINT):
            call(line, [0, 3])
    with pytest.raises(ValueError, match=HINT):
        ndscatter.explain("scatter_nd", table, [0, 3], [1.0, 2.0])
    with pytest.raises(ValueError) as error:
        ndscatter.scatter_nd(table, [[0], [3]], [1.0, 2.0])
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize("number", [5, 5.0, True, 5j, np.float32(5)])
def test_a_flat_list_and_a_number(number):
    table = np.zeros((4, 5), complex)
    for indices in ([0, 3], np.array([0, 3]), (0, 3)):
        with pytest.raises(ValueError, match=HINT):
            ndscatter.scatter_nd(table, indices, number, out=table)
        with pytest.raises(ValueError, match=HINT):
            ndscatter.plan_scatter_nd((4, 5), indices)(table, number, out=table)
    assert not table.any()
    ndscatter.scatter_nd(table, [[0, 3]], number, out=table)
    assert np.argwhere(table).tolist() == [[0, 3]]
    ndscatter.scatter_nd(table, [1, 1], np.array(7 + 0j), out=table)
    assert table[1, 1] == 7


def test_element_types_have_their_names_in_numpy():
    data = np.zeros(3, "f4")
    wrong = r"`updates` has elements of float64.*float32.*`updates.astype\(data.dtype\)`"
    for reduction in ("none", "add"):
        with pytest.raises(TypeError, match=wrong):
            ndscatter.scatter_update(data, [0], np.ones(1), reduction=reduction)
    with pytest.raises(TypeError, match=wrong):
        ndscatter.plan_scatter_update(3, [0])(data, np.ones(1))
    with pytest.raises(TypeError, match="`updates` of float64 are not converted to int32.*convert one of them to another type$"):
        ndscatter.scatter_update(data.astype("i4"), [0], 1.5)
    with pytest.raises(TypeError, match=r"`out` has elements of int8.*`out.astype"):
        ndscatter.gather(data, [0], out=np.zeros(1, "i1"))
    with pytest.raises(TypeError, match="^`indices` has elements of float32; pass integers, such as int64$"):
        ndscatter.gather(data, data)
    with pytest.raises(TypeError, match='"mean" is not defined for elements of bool; .*convert the arrays to another type$'):
        ndscatter.scatter_update(data > 0, [0], True, reduction="mean")
    with pytest.raises(TypeError, match=r"elements of datetime64\[s\]; .*convert the arrays to another type$"):
        ndscatter.scatter_update(data.astype("M8[s]"), [0], 1, reduction="add")
    with pytest.raises(TypeError, match="updates of int32 .*; pass updates of float32, float16 or bfloat16$"):
        ndscatter.write_paged(np.zeros((1, 1), "i1"), [0], np.ones(1, "i4"), scale=2.0)


def test_idle_slots():
    cache, step = np.zeros((2, 4, 1)), np.ones((2, 1, 1))
    with pytest.raises(IndexError, match='pass `bounds="skip"`'):
        ndscatter.tensor_scatter(cache, [-1, 3], step)
    assert ndscatter.tensor_scatter(cache, [-1, 3], step, bounds="skip").sum() == 1
    with pytest.raises(IndexError) as error:
        ndscatter.tensor_scatter(cache, [0, 4], step)
    assert "bounds=" not in str(error.value), "skip does not apply"
    with pytest.raises(IndexError, match='pass `bounds="skip negative"`'):
        ndscatter.write_paged(cache, [-1], np.ones((1, 1)), bounds="error")
    with pytest.raises(IndexError, match='pass `bounds="skip negative"`'):
        ndscatter.move_rows(cache, [-1], [0])


def test_masked_arrays():
    data = np.zeros(3)
    masked = np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)
    at = np.ma.masked_equal([0, 1, 2], 1)
    for call in (
        lambda: ndscatter.scatter_update(masked, [0], 1.0),
        lambda: ndscatter.scatter_update(data, at, 1.0),
        lambda: ndscatter.scatter_update(data, [0, 1, 2], masked),
        lambda: ndscatter.scatter_update(data, [0], 1.0, out=masked),
        lambda: ndscatter.plan_gather(masked, [0]),
        lambda: ndscatter.bincount(at),
        lambda: ndscatter.add_at(data, at, 1.0),
        lambda: ndscatter.add_at(data, [0, 1, 2], masked),
        lambda: ndscatter.add_at(masked, [0], 1.0),
        lambda: ndscatter.add_at(data, (at,), 1.0),
        lambda: ndscatter.move_rows([masked], [0], [1]),
    ):
        with pytest.raises(TypeError, match=r"filled\(value\)` or `array.compressed\(\)"):
            call()
    assert not data.any()


def test_copies_of_plans():
    for plan in (ndscatter.plan_scatter_update(4, [1]), ndscatter.plan_gather((4,), [1])):
        assert plan.shape == (4,)
        assert copy.copy(plan) is plan and copy.deepcopy([plan])[0] is plan
        with pytest.raises(TypeError, match="cannot be pickled.*make the plan again"):
            pickle.dumps(plan)


LARGE = 1 << 70


class Odd:
    """An object whose attribute `__dlpack__` or conversion by numpy raises an exception."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error

    def __dlpack_device__(self):
        raise self.error

    def __dlpack__(self, **options):
        raise self.error


class OddArray(Odd):
    __dlpack__ = property(lambda self: self.__array__())


@pytest.mark.parametrize("error", [BufferError, OverflowError, RuntimeError, KeyError, AttributeError])
@pytest.mark.parametrize("kind", [Odd, OddArray])
def test_exceptions_of_arguments_are_converted(kind, error):
    odd, data = kind(error("odd")), np.zeros(3)
    expected = TypeError if error is AttributeError else ValueError
    for call in (
        lambda: ndscatter.gather(odd, [0]),
        lambda: ndscatter.gather(data, odd),
        lambda: ndscatter.scatter_update(data, [0], odd),
        lambda: ndscatter.plan_gather(odd, [0]),
        lambda: ndscatter.bincount(odd),
    ):
        with pytest.raises((TypeError, ValueError)) as raised:
            call()
        assert raised.type is expected or kind is OddArray and error is AttributeError
        if str(raised.value).startswith("`data` of a plan is neither an array nor a shape"):
            assert kind is OddArray and error is AttributeError, "an object without `__dlpack__`"
        else:
            assert isinstance(raised.value.__cause__, error)
    for call in (
        lambda: ndscatter.gather(data, [0], out=odd),
        lambda: ndscatter.move_rows(odd, [0], [1]),
        lambda: ndscatter.write_paged(odd, [0], 1.0),
    ):
        with pytest.raises((TypeError, ValueError)) as raised:
            call()
        if kind is OddArray and error is AttributeError:
            assert raised.type is TypeError and "is not" in str(raised.value), "an object without `__dlpack__`"
        else:
            assert isinstance(raised.value.__cause__, error)


def test_exceptions_of_integers_and_sequences_are_converted():
    class Number:
        def __index__(self):
            raise KeyError("odd")

    data = np.zeros(3)
    for call in (
        lambda: ndscatter.gather(data, [0], axis=Number()),
        lambda: ndscatter.gather(data, [0], threads=Number()),
        lambda: ndscatter.plan_gather((Number(),), [0]),
        lambda: ndscatter.move_rows(({}[number] for number in [9]), [0], [1]),
    ):
        with pytest.raises(ValueError, match="cannot be read: KeyError") as raised:
            call()
        assert isinstance(raised.value.__cause__, KeyError)


def test_exceptions_that_end_the_program_stay():
    with pytest.raises(KeyboardInterrupt):
        ndscatter.gather(Odd(KeyboardInterrupt()), [0])


@pytest.mark.parametrize("number", [LARGE, -LARGE])
def test_integers_that_are_too_large(number):
    data = np.zeros((2, 2))
    for call in (
        lambda: ndscatter.scatter_update(data, [0], 1.0, number),
        lambda: ndscatter.gather(data, [0], axis=number),
        lambda: ndscatter.gather(data, [0], threads=number),
        lambda: ndscatter.gather_nd(data, [[0]], batch_dims=number),
        lambda: ndscatter.gather_nd(data, [[0]], batch_dims=-1),
        lambda: ndscatter.plan_gather(number, [0]),
        lambda: ndscatter.plan_gather((2, number), [0]),
        lambda: ndscatter.plan_gather(-1, [0]),
        lambda: ndscatter.plan_scatter_update((2, 2), [0], threads=number),
        lambda: ndscatter.plan_tensor_scatter((2, 2), axis=1, update_len=number),
        lambda: ndscatter.bincount([0], minlength=number),
        lambda: ndscatter.bincount([0], threads=number),
        lambda: ndscatter.add_at(data, [0], 1.0, threads=number),
        lambda: ndscatter.move_rows(data, [0], [1], axis=number),
        lambda: ndscatter.write_all([0], [], axis=number),
    ):
        with pytest.raises(ValueError, match="too large|negative"):
            call()
    for call in (
        lambda: ndscatter.gather(data, [number]),
        lambda: ndscatter.scatter_update(data.astype("i8"), [0], number),
    ):
        with pytest.raises((TypeError, ValueError, IndexError)):
            call()


def test_read_only_outputs():
    data = np.zeros(3)
    frozen = data.copy()
    frozen.flags.writeable = False
    for call in (
        lambda: ndscatter.scatter_update(data, [0], 1.0, out=frozen),
        lambda: ndscatter.gather(data, [0], out=frozen[:1]),
        lambda: ndscatter.add_at(frozen, [0], 1.0),
        lambda: ndscatter.bincount([0], out=frozen),
        lambda: ndscatter.move_rows(frozen, [0], [1]),
        lambda: ndscatter.plan_gather(3, [0])(data, out=frozen[:1]),
    ):
        with pytest.raises(ValueError, match="read-only"):
            call()


@pytest.mark.parametrize("alias", ["sum", "SUM", "amax", "prod", "multiply", "subtract", "minimum", "avg", "set"])
def test_other_names_of_reductions(alias):
    names = {"sum": "add", "amax": "max", "prod": "mul", "multiply": "mul", "subtract": "sub"}
    names |= {"minimum": "min", "avg": "mean", "set": "none"}
    data, updates = np.arange(4.0), np.array([5.0, 2.0])
    expected = ndscatter.scatter_update(data, [1, 1], updates, reduction=names[alias.lower()])
    found = ndscatter.scatter_update(data, [1, 1], updates, reduction=alias)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "name, alias", [("clamp", "clip"), ("skip", "drop"), ("skip", "ignore"), ("skip negative", "skip_negative")]
)
def test_other_names_of_bounds(name, alias):
    data = np.arange(4.0)
    indices = [3, -1] if name == "skip negative" else [3, 9]
    expected = ndscatter.gather(data, indices, bounds=name, negative_indices=False)
    assert ndscatter.gather(data, indices, bounds=alias, negative_indices=False).tolist() == expected.tolist()


def test_unknown_names():
    for option in ("reduction", "bounds", "duplicates", "accumulate"):
        with pytest.raises(ValueError, match=f"`{option}`: no .* is called \"other\"; use .* or "):
            ndscatter.scatter_update(np.zeros(3), [0], 1.0, **{option: "other"})
