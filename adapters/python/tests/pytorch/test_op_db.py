"""PyTorch's own test cases of its operators. Each case runs with PyTorch's kernels and with
ndscatter's kernels. The results must agree, and the gradients must pass `gradcheck`.

By default, one of 16 cases runs, the same cases each time. With NDSCATTER_FULL=1, all
cases run.
"""

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import ndscatter.torch

# Names of the tested operators of PyTorch. ndscatter has kernels for the operators in `TAKEN`. The
# gradients or the implementations of the other operators call operators that ndscatter has kernels
# for.
NAMES = {
    "gather", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select",
    "masked_scatter", "nn.functional.embedding", "nn.functional.embedding_bag", "put", "scatter",
    "scatter_add", "scatter_reduce", "take", "take_along_dim",
}  # fmt: skip
TAKEN = {
    "gather", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select",
    "put", "scatter", "scatter_add", "scatter_reduce", "take", "take_along_dim",
}  # fmt: skip
# Types of PyTorch without kernels of ndscatter.
UNSUPPORTED = (torch.complex32,)
OPERATORS = [op for op in op_db if op.name in NAMES]

pytestmark = pytest.mark.sampled(16)


def title(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def by_type(operators):
    return [
        pytest.param(op, dtype, id=f"{title(op)}-{str(dtype).removeprefix('torch.')}")
        for op in operators
        for dtype in sorted(op.supported_dtypes("cpu"), key=str)
    ]


def by_name(operators):
    return [pytest.param(op, id=title(op)) for op in operators]


def copied(value):
    """Return a copy of `value`. The copy of a tensor has the strides and the storage offset of the
    tensor. If elements of the tensor share memory, the same elements of the copy share memory."""
    if isinstance(value, torch.Tensor):
        detached = value.detach()
        place = detached.storage_offset(), detached.size(), detached.stride()
        return detached.new_empty(0).set_(detached.untyped_storage().clone(), *place)
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value


def same(expected, found):
    torch.testing.assert_close(found, expected, equal_nan=True)
    for one, other in zip(flat(expected), flat(found), strict=True):
        assert one.stride() == other.stride(), "the results have the same strides"


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in flat(item)]


def outcome(function, sample, **more):
    """Call `function` with copies of the arguments of `sample`. Return the result of the call, and
    the copy of the first argument, `sample.input`, as this copy is after the call.

    If the call raises an error, return the type of the error, and None.
    """
    data, arguments = copied(sample.input), copied(sample.args)
    keywords = {name: copied(value) for name, value in sample.kwargs.items()}
    try:
        result = function(data, *arguments, **keywords, **more)
    except Exception as error:
        return type(error), None
    return result, data


def compare(function, sample, **more):
    expected, data = outcome(function, sample, **more)
    with ndscatter.torch.enable(always=True):
        found, changed = outcome(function, sample, **more)
    if isinstance(expected, type):
        assert found == expected
    else:
        same(expected, found)
        same(data, changed)
        return expected
    return None


@pytest.mark.parametrize(("op", "dtype"), by_type(OPERATORS))
def test_samples(op, dtype, spy):
    samples = list(op.sample_inputs("cpu", dtype))
    for sample in samples + [sample.noncontiguous() for sample in samples]:
        result = compare(op, sample)
        if op.inplace_variant is not None:
            compare(op.inplace_variant, sample)
        if op.supports_out and result is not None:
            for shape in (result.shape, (0,)):
                out = torch.empty(shape, dtype=result.dtype)
                compare(op, sample, out=out)
    if op.name in TAKEN and dtype not in UNSUPPORTED:
        assert spy.done, "some call has run on the kernels"


@pytest.mark.parametrize("op", by_name([op for op in OPERATORS if op.error_inputs_func]))
def test_errors(op, spy):
    for case in op.error_inputs("cpu"):
        compare(op, case.sample_input)


@pytest.mark.parametrize("op", by_name([op for op in OPERATORS if op.supports_autograd]))
def test_gradients(op, spy):
    for dtype in (torch.float64, torch.complex128):
        if dtype not in op.supported_backward_dtypes("cpu"):
            continue
        for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
            inputs = [sample.input, *sample.args]
            differentiable = [
                at
                for at, value in enumerate(inputs)
                if isinstance(value, torch.Tensor) and value.requires_grad
            ]

            def function(*tensors):
                arguments = list(inputs)
                for at, tensor in zip(differentiable, tensors, strict=True):
                    arguments[at] = tensor
                result = op(*arguments, **sample.kwargs)
                if sample.output_process_fn_grad is not None:
                    result = sample.output_process_fn_grad(result)
                return result

            tensors = [inputs[at] for at in differentiable]
            # A case is skipped if PyTorch's gradient without ndscatter fails `gradcheck`.
            options = {"nondet_tol": op.gradcheck_nondet_tol, "raise_exception": False}
            if not torch.autograd.gradcheck(function, tensors, **options):
                continue
            with ndscatter.torch.enable(always=True):
                assert torch.autograd.gradcheck(function, tensors, **options), sample
