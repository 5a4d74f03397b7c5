"""Tests calls with tensors of PyTorch and JAX."""

import gc

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import ndscatter


TYPES = [
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "bool", "complex64",
]  # fmt: skip


@pytest.mark.parametrize("name", [*TYPES, "float8_e4m3fn", "float8_e5m2"])
def test_torch_types(name):
    dtype = getattr(torch, name)
    data = torch.arange(6, dtype=torch.float32).reshape(3, 2).to(dtype)
    updates = torch.ones(2, 2).to(dtype)
    result = ndscatter.scatter_update(data, torch.tensor([2, 0]), updates)
    assert type(result) is torch.Tensor and result.dtype == dtype
    expected = data.float() if dtype.is_floating_point else data.clone()
    expected[torch.tensor([2, 0])] = updates.to(expected.dtype)
    assert torch.equal(result.to(expected.dtype), expected)
    if "float8" in name:
        with pytest.raises(TypeError):
            ndscatter.scatter_update(data, [0], updates[:1], reduction="add")


def test_torch_outputs_and_strides():
    data = torch.zeros(4, 3).T
    assert ndscatter.scatter_update(data, [1, 1], 2.0, reduction="add", out=data) is data
    assert data[1].tolist() == [4] * 4 and not data[0].any()
    with pytest.raises(ValueError, match="shares memory"):
        ndscatter.scatter_update(data[:2], [0], 1.0, out=data[1:])
    with pytest.raises(TypeError):
        ndscatter.scatter_update(data, [0], torch.zeros(1, 4, dtype=torch.float64))
    out = np.zeros((3, 4), "f4")
    assert ndscatter.gather(data, torch.tensor([1, 0, 1]), out=out) is out
    assert out[:, 0].tolist() == [4, 0, 4]
    rows = ndscatter.gather(data, torch.tensor([1], dtype=torch.int32))
    del data
    gc.collect()
    assert rows.tolist() == [[4] * 4]
    rows.add_(1)


def test_torch_empty_and_rank_0():
    data = torch.zeros(0, 3)
    assert ndscatter.gather(data, torch.zeros(0, dtype=torch.int64)).shape == (0, 3)
    scalar = torch.tensor(1.0)
    indices = torch.zeros(2, 0, dtype=torch.int64)
    updates = torch.tensor([1.0, 2.0])
    assert ndscatter.scatter_nd(scalar, indices, updates, reduction="add").item() == 4


def test_torch_tensors_that_are_refused():
    learned = torch.zeros(3, requires_grad=True)
    for call in (
        lambda: ndscatter.scatter_update(learned, [0], 1.0),
        lambda: ndscatter.scatter_update(torch.zeros(3), [0], learned[:1]),
        lambda: ndscatter.scatter_update(learned, [0], 1.0, out=learned),
    ):
        with pytest.raises(ValueError, match="gradient; use an operator of `ndscatter.torch`"):
            call()
    with pytest.raises(ValueError, match="ndscatter.torch.scatter_update"):
        ndscatter.gather(torch.nn.Parameter(torch.ones(3)), [0])
    assert ndscatter.scatter_update(learned.detach(), [0], 1.0)[0] == 1
    conjugate = torch.zeros(3, dtype=torch.complex64).conj()
    with pytest.raises(ValueError):
        ndscatter.gather(conjugate, [0])
    with pytest.raises(ValueError, match="resolve_neg"):
        ndscatter.gather(conjugate.imag, [0])
    with pytest.raises(ValueError, match="no memory"):
        ndscatter.gather(torch._efficientzerotensor((3,)), [0])
    parameter = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    assert ndscatter.gather(parameter, [0, 1]).tolist() == [1, 1]
    with pytest.raises((ValueError, TypeError)):
        ndscatter.gather(torch.zeros(3, device="meta"), [0])
    with pytest.raises((ValueError, TypeError)):
        ndscatter.gather(torch.eye(3).to_sparse(), [0])
    with pytest.raises(IndexError):
        ndscatter.gather(torch.zeros(3), torch.tensor([3]))


def test_a_tensor_of_another_type_names_the_method_of_torch():
    with pytest.raises(TypeError, match=r"torch.float64.*`updates.to\(data.dtype\)`"):
        ndscatter.scatter_update(torch.zeros(3), [0], torch.ones(1, dtype=torch.float64))


def test_torch_in_the_functions_of_numpy():
    a = np.zeros(4)
    ndscatter.add_at(a, torch.tensor([1, 1]), torch.ones(2, dtype=torch.float64))
    assert a.tolist() == [0, 2, 0, 0]
    assert ndscatter.bincount(torch.tensor([1, 1, 3])).tolist() == [0, 2, 0, 1]


def test_a_tensor_as_first_argument_of_the_functions_of_numpy():
    ours = ndscatter.subtract_at, ndscatter.maximum_at
    for function, reduction in zip(ours, ("sub", "max"), strict=True):
        with pytest.raises(TypeError, match=f'reduction="{reduction}", out=tensor') as error:
            function(torch.zeros(4), [1, 1], 1.0)
        assert str(error.value).startswith("first operand must be array; for a tensor, use")


def test_torch_plans():
    plan = ndscatter.plan_scatter_update((3, 2), torch.tensor([1, 1]), reduction="add")
    assert plan(torch.zeros(3, 2), torch.ones(2, 2))[1].tolist() == [2, 2]
    plan = ndscatter.plan_gather(torch.zeros(2, 3).T, [2])
    assert plan(torch.arange(6).reshape(2, 3).T).tolist() == [[2, 5]]


@pytest.mark.parametrize("name", [*(t for t in TYPES if "64" not in t), "complex64", "float8_e4m3fn"])
def test_jax(name):
    dtype = getattr(jnp, "bool_" if name == "bool" else name)
    data, updates = jnp.zeros((3, 2), dtype), jnp.ones((2, 2), dtype)
    result = ndscatter.scatter_update(data, jnp.array([2, 0]), updates)
    assert isinstance(result, type(data)) and result.dtype == data.dtype
    assert (result == data.at[jnp.array([2, 0])].set(updates)).all()
    assert not data.any()
    with pytest.raises(ValueError, match="read-only"):
        ndscatter.scatter_update(data, [0], updates[:1], out=data)
    with pytest.raises(ValueError, match="read-only"):
        ndscatter.gather(data, [0], out=data[:1])
    out = np.asarray(data).copy()
    ndscatter.scatter_update(data, [1], updates[:1], out=out)
    assert out[1].all()
