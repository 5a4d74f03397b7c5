"""The package's own operators with gradients, registered through `torch.library`.

This module has everything that PyTorch requires of an operator: kernels, fakes (kernels that
compute only the shapes of results), gradients and tangents. The crate computes the values of all
results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from .._native import torch as native
from ._switch import connect

# `torch.library`, typed as Any because its functions have no type annotations.
_registry: Any = torch.library
_LIBRARY = _registry.Library("ndscatter", "FRAGMENT")

_MEANING = (
    "str operator, int axis, str reduction, bool include_self, str accumulate, str bounds, "
    "bool negative_indices"
)
_SCHEMAS = (
    f"scatter(Tensor data, Tensor indices, Tensor updates, {_MEANING}) -> Tensor",
    "scatter_backward(Tensor gradient, Tensor indices, Tensor? data, Tensor? updates, "
    f"SymInt[] updates_shape, bool of_data, bool of_updates, {_MEANING}) -> (Tensor, Tensor)",
    "gather(Tensor data, Tensor indices, str operator, int axis, str bounds, "
    "bool negative_indices) -> Tensor",
    "gather_backward(Tensor gradient, Tensor indices, SymInt[] shape, str operator, int axis, "
    "str bounds, bool negative_indices) -> Tensor",
)
for _schema in _SCHEMAS:
    _LIBRARY.define(_schema, tags=torch.Tag.pt2_compliant_tag)

# Reductions whose gradients read the data and the updates of the forward pass.
_READING = frozenset(("mul", "min", "max"))


def _empty(shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    return torch.empty(shape, dtype=like.dtype, device=like.device)


def _gatherer(operator: str, axis: int, bounds: str, negative_indices: bool) -> Any:
    return native.Options(operator, axis, "none", True, "native", bounds, negative_indices)


# Kernels for the CPU.


def _scatter(
    data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, *meaning: Any
) -> torch.Tensor:
    connect()
    output = _empty(data.shape, data)
    native.Options(*meaning).scatter(output, data, indices, updates)
    return output


def _scatter_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    data: torch.Tensor | None,
    updates: torch.Tensor | None,
    updates_shape: Sequence[int],
    of_data: bool,
    of_updates: bool,
    *meaning: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    connect()
    grad_data, grad_updates = _empty_gradients(gradient, updates_shape, of_data, of_updates)
    native.Options(*meaning).scatter_backward(
        gradient,
        indices,
        data,
        updates,
        grad_data if of_data else None,
        grad_updates if of_updates else None,
    )
    return grad_data, grad_updates


def _gather(
    data: torch.Tensor,
    indices: torch.Tensor,
    operator: str,
    axis: int,
    bounds: str,
    negative_indices: bool,
) -> torch.Tensor:
    connect()
    options = _gatherer(operator, axis, bounds, negative_indices)
    output = _empty(options.output_shape(data.shape, indices.shape), data)
    options.gather(output, data, indices)
    return output


def _gather_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    shape: Sequence[int],
    operator: str,
    axis: int,
    bounds: str,
    negative_indices: bool,
) -> torch.Tensor:
    connect()
    grad_data = _empty(shape, gradient)
    options = _gatherer(operator, axis, bounds, negative_indices)
    options.gather_backward(gradient, indices, grad_data)
    return grad_data


# Fakes: kernels that compute only the shapes of results, for tracing.


def _on_one_device(*tensors: torch.Tensor | None) -> None:
    devices = {str(tensor.device) for tensor in tensors if tensor is not None}
    if len(devices) > 1:
        raise RuntimeError(f"the tensors are on different devices: {', '.join(sorted(devices))}")


def _empty_gradients(
    gradient: torch.Tensor, updates_shape: Sequence[int], of_data: bool, of_updates: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate the requested gradients. A gradient that is not requested is an empty tensor."""
    return (
        _empty(gradient.shape if of_data else (0,), gradient),
        _empty(updates_shape if of_updates else (0,), gradient),
    )


def _fake_scatter(data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, *meaning: Any) -> Any:
    _on_one_device(data, indices, updates)
    return _empty(data.shape, data)


def _fake_scatter_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    data: torch.Tensor | None,
    updates: torch.Tensor | None,
    updates_shape: Sequence[int],
    of_data: bool,
    of_updates: bool,
    *meaning: Any,
) -> Any:
    _on_one_device(gradient, indices, data, updates)
    return _empty_gradients(gradient, updates_shape, of_data, of_updates)


def _fake_gather(
    data: torch.Tensor, indices: torch.Tensor, operator: str, axis: int, *options: Any
) -> Any:
    _on_one_device(data, indices)
    rank = data.dim()
    if operator == "nd":
        if not indices.dim():
            raise ValueError("`indices` has rank 0; pass rank 1 or more")
        inner = axis + int(indices.shape[-1])
        shape = (*indices.shape[:-1], *data.shape[inner:])
    elif not -rank <= axis < rank:
        raise ValueError(f"`axis` is {axis}, which is out of range for data of rank {rank}")
    elif operator == "along":
        axis %= rank
        shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    else:
        shape = tuple(indices.shape)
    return _empty(shape, data)


def _fake_gather_backward(
    gradient: torch.Tensor, indices: torch.Tensor, shape: Sequence[int], *options: Any
) -> Any:
    _on_one_device(gradient, indices)
    return _empty(shape, gradient)


# Gradients.


def _save_scatter(ctx: Any, inputs: Any, output: Any) -> None:
    data, indices, updates, *meaning = inputs
    reduction, include_self = meaning[2], meaning[3]
    reads = reduction in _READING
    ctx.save_for_backward(
        indices, data if reads and include_self else None, updates if reads else None
    )
    ctx.meaning, ctx.updates_shape = meaning, updates.shape


def _share_scatter(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    indices, data, updates = ctx.saved_tensors
    of_data, _, of_updates, *rest = ctx.needs_input_grad
    reduction, include_self = ctx.meaning[2], ctx.meaning[3]
    # For a sum or a difference that includes the existing values, the gradient for `data` equals
    # the gradient of the output.
    is_identity = reduction in ("add", "sub") and include_self
    grad_data = grad_updates = None
    wants_data = of_data and not is_identity
    if wants_data or of_updates:
        grad_data, grad_updates = torch.ops.ndscatter.scatter_backward.default(
            gradient,
            indices,
            data,
            updates,
            ctx.updates_shape,
            wants_data,
            of_updates,
            *ctx.meaning,
        )
    if is_identity:
        grad_data = gradient
    of = (grad_data if of_data else None, None, grad_updates if of_updates else None)
    return (*of, *[None] * len(rest))


def _save_gather(ctx: Any, inputs: Any, output: Any) -> None:
    data, indices, *options = inputs
    ctx.save_for_backward(indices)
    ctx.options, ctx.shape = options, data.shape


def _share_gather(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    (indices,) = ctx.saved_tensors
    grad_data = torch.ops.ndscatter.gather_backward.default(
        gradient, indices, ctx.shape, *ctx.options
    )
    return (grad_data, None, *[None] * len(ctx.options))


# Second derivatives of linear scatters and gathers. The backward operator of a linear scatter or
# gather is linear too. The backward pass of this backward operator is the original scatter or
# gather.


def _save_scatter_backward(ctx: Any, inputs: Any, output: Any) -> None:
    gradient, indices, _, _, ctx.updates_shape, *ctx.rest = inputs
    ctx.save_for_backward(indices)
    ctx.shape = gradient.shape


def _share_scatter_backward(
    ctx: Any, of_grad_data: torch.Tensor, of_grad_updates: torch.Tensor
) -> tuple[Any, ...]:
    of_data, of_updates, *meaning = ctx.rest
    if meaning[2] in _READING:
        raise RuntimeError(f"the gradient of reduction {meaning[2]!r} has no gradient in ndscatter")
    (indices,) = ctx.saved_tensors
    # `scatter_backward` returns an empty tensor for a gradient that was not requested. No value
    # depends on this empty tensor, so the incoming gradient of the empty tensor is replaced by
    # zeros.
    data = of_grad_data if of_data else of_grad_updates.new_zeros(ctx.shape)
    updates = of_grad_updates if of_updates else of_grad_data.new_zeros(ctx.updates_shape)
    of_gradient = torch.ops.ndscatter.scatter.default(data, indices, updates, *meaning)
    return (of_gradient, None, None, None, None, None, None, *[None] * len(meaning))


def _save_gather_backward(ctx: Any, inputs: Any, output: Any) -> None:
    _, indices, _, *ctx.options = inputs
    ctx.save_for_backward(indices)


def _share_gather_backward(ctx: Any, of_grad_data: torch.Tensor) -> tuple[Any, ...]:
    (indices,) = ctx.saved_tensors
    of_gradient = torch.ops.ndscatter.gather.default(of_grad_data, indices, *ctx.options)
    return (of_gradient, None, None, *[None] * len(ctx.options))


# Tangents of forward-mode differentiation. To get the tangent of the result of a linear operator,
# the operator is applied to the tangents of its arguments. Scatters with the reductions `mul`,
# `min` and `max` are not linear, and raise an error in forward mode.


def _refuse_nonlinear(reduction: str) -> None:
    if reduction in _READING:
        raise NotImplementedError(
            f"ndscatter has no derivative in forward mode for reduction {reduction!r}; "
            "use reverse mode"
        )


def _linear_in_scatter(inputs: Sequence[Any]) -> tuple[int, ...]:
    _refuse_nonlinear(inputs[5])
    return 0, 2


def _linear_in_scatter_backward(inputs: Sequence[Any]) -> tuple[int, ...]:
    _refuse_nonlinear(inputs[9])
    return (0,)


def _linear_in_first(inputs: Sequence[Any]) -> tuple[int, ...]:
    return (0,)


# Number of the forward-mode level. PyTorch supports only one level.
_LEVEL = 0


def _may_have_tangents() -> bool:
    """Return False if no argument can have a tangent, and True if one may have a tangent.

    The function avoids reading the tangents in most calls: reading the tangent of one tensor costs
    2.4 us, a fourth of the time of a small call. Tangents exist only inside of a forward-mode
    level. `forward_ad._current_level` is 0 or more inside of a level, except in graphs that dynamo
    has compiled. The function therefore also returns True whenever dynamo has been imported.
    """
    return forward_ad._current_level >= 0 or "torch._dynamo" in sys.modules


def _unpacked(inputs: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """Return a list of the arguments without their tangents, and a list of the tangents.

    The list of tangents has one item per argument. The item is None for an argument without a
    tangent. If no argument has a tangent, the function returns None instead of the two lists.
    """
    unpack: Any = forward_ad.unpack_dual
    primals, tangents = list(inputs), [None] * len(inputs)
    for place, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            primals[place], tangents[place] = unpack(value, level=_LEVEL)
    has_tangents = any(tangent is not None for tangent in tangents)
    return (primals, tangents) if has_tangents else None


def _with_tangents(operator: Any, primals: list[Any], tangents: list[Any], linear: Any) -> Any:
    arguments = list(primals)
    for place in linear(primals):
        if arguments[place] is not None:
            tangent = tangents[place]
            arguments[place] = torch.zeros_like(primals[place]) if tangent is None else tangent
    results, results_tangents = operator(*primals), operator(*arguments)
    dual: Any = forward_ad.make_dual
    if isinstance(results, torch.Tensor):
        return dual(results, results_tangents, level=_LEVEL)
    pairs = zip(results, results_tangents, strict=True)
    return tuple(dual(result, tangent, level=_LEVEL) for result, tangent in pairs)


def _differentiable(name: str, save: Any, share: Any, linear: Any) -> Any:
    """Return an autograd kernel for an operator. PyTorch calls the autograd kernel first, and the
    autograd kernel calls the CPU kernel.

    `torch.library.register_autograd` is not used, because the autograd kernel that it makes drops
    tangents without an error.
    """
    operator = getattr(torch.ops.ndscatter, name).default
    below_autograd: Any = torch._C._AutoDispatchBelowAutograd
    # Dynamo may trace the autograd kernel. If dynamo traced `_with_tangents` too, the tangents that
    # `_with_tangents` makes would be lost. `torch.compiler.disable` therefore excludes
    # `_with_tangents` from tracing.
    uncompiled: Any = torch.compiler.disable

    def forward(ctx: Any, *inputs: Any) -> Any:
        with below_autograd():
            output = operator(*inputs)
        save(ctx, inputs, output)
        return output

    methods = {"forward": staticmethod(forward), "backward": staticmethod(share)}
    function: Any = type(f"_{name}", (torch.autograd.Function,), methods)

    def kernel(*inputs: Any) -> Any:
        if _may_have_tangents() and (duals := _unpacked(inputs)):
            return uncompiled(_with_tangents)(operator, *duals, linear)
        if torch.is_grad_enabled() and any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in inputs
        ):
            return function.apply(*inputs)
        with below_autograd():
            return operator(*inputs)

    return kernel


for _name, _kernel, _fake, *_derivatives in (
    ("scatter", _scatter, _fake_scatter, _save_scatter, _share_scatter, _linear_in_scatter),
    ("gather", _gather, _fake_gather, _save_gather, _share_gather, _linear_in_first),
    (
        "scatter_backward",
        _scatter_backward,
        _fake_scatter_backward,
        _save_scatter_backward,
        _share_scatter_backward,
        _linear_in_scatter_backward,
    ),
    (
        "gather_backward",
        _gather_backward,
        _fake_gather_backward,
        _save_gather_backward,
        _share_gather_backward,
        _linear_in_first,
    ),
):
    _LIBRARY.impl(_name, _kernel, "CPU")
    _registry.register_fake(f"ndscatter::{_name}", _fake, lib=_LIBRARY)
    _LIBRARY.impl(_name, _differentiable(_name, *_derivatives), "Autograd")


# Public functions.


def _reduction_named(name: str) -> str:
    """Return the name of a reduction that the operators use, from any name that the crate accepts."""
    found: str = native.reduction_named(name)
    return found


# Dynamo cannot trace a function of the extension module. It calls a function with this attribute
# while it traces. The decorator `torch.compiler.assume_constant_result` is not used, because it
# imports dynamo.
_reduction_named._dynamo_marked_constant = True  # type: ignore[attr-defined]


# Indices of the public functions: a tensor, or what `torch.as_tensor` converts.
Indices = torch.Tensor | Sequence[Any] | int
# Largest rank of a tensor that the operators accept.
_MOST_AXES = 64


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"`{name}` is of type {type(value).__name__}; pass a tensor")


def _check_options(
    operator: str, axis: int, flags: tuple[object, ...], names: tuple[object, ...]
) -> None:
    """Raise the errors of wrong options. Without this check, each of them would be a `RuntimeError`."""
    name = "batch_dims" if operator == "nd" else "axis"
    # Dynamo of PyTorch 2.10 cannot trace `hasattr` of a number that varies, but `isinstance`.
    if not (isinstance(axis, int) or hasattr(axis, "__index__")):
        raise TypeError(f"`{name}` is {axis!r}; pass an integer")
    if not -_MOST_AXES <= axis <= _MOST_AXES:
        raise ValueError(f"`{name}` is {axis}; PyTorch's tensors have at most {_MOST_AXES} axes")
    for flag in flags:
        if not isinstance(flag, bool):
            raise TypeError(f"`include_self` and `negative_indices` are True or False, not {flag!r}")
    for option in names:
        if not isinstance(option, str):
            raise TypeError(f"`reduction`, `accumulate` and `bounds` are strings, not {option!r}")


def _tensor_of(indices: Indices, data: torch.Tensor) -> torch.Tensor:
    """Return indices as a tensor on the device of `data`."""
    if isinstance(indices, torch.Tensor):
        return indices
    try:
        found = torch.as_tensor(indices, device=data.device)
    except (RuntimeError, OverflowError) as error:
        raise TypeError(f"`indices` cannot be converted to a tensor: {error}") from error
    # PyTorch gives an empty list elements of a float type.
    return found if found.numel() else found.long()


def _call(
    operator: str,
    axis: int,
    tensors: tuple[torch.Tensor, Indices, torch.Tensor],
    reduction: str,
    include_self: bool,
    accumulate: str,
    bounds: str,
    negative_indices: bool,
) -> torch.Tensor:
    data, indices, updates = tensors
    _check_tensor("data", data)
    _check_tensor("updates", updates)
    _check_options(operator, axis, (include_self, negative_indices), (reduction, accumulate, bounds))
    result: torch.Tensor = torch.ops.ndscatter.scatter.default(
        data,
        _tensor_of(indices, data),
        updates,
        operator,
        axis,
        _reduction_named(reduction),
        include_self,
        accumulate,
        bounds,
        negative_indices,
    )
    return result


def scatter_nd(
    data: torch.Tensor,
    indices: Indices,
    updates: torch.Tensor,
    *,
    reduction: str = "none",
    include_self: bool = True,
    accumulate: str = "native",
    bounds: str = "error",
    negative_indices: bool = True,
) -> torch.Tensor:
    """Write slices of `updates` to the destinations that tuples of coordinates address.

    Returns a new tensor: a copy of `data` with these writes. The arguments, the order of updates
    and the errors are those of `ndscatter.scatter_nd`, with two exceptions: updates are not
    broadcast, and the arguments `duplicates`, `out` and `threads` do not exist. `indices` is a tensor
    or a list. `data` and `updates` are tensors on one device.

    The result is differentiable in `data` and `updates`. The gradients are exact, also with
    duplicate indices, with zeros in products, and with ties in minima and maxima. Without a
    reduction, the last update of a destination gets the gradient of the destination, and all
    earlier updates of the destination get 0. The gradients of products, minima and maxima cannot be
    differentiated again.

    >>> import torch, ndscatter.torch
    >>> rows = torch.tensor([[0], [2], [2]])
    >>> updates = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    >>> product = ndscatter.torch.scatter_nd(torch.ones(3), rows, updates, reduction="mul")
    >>> product.detach()
    tensor([ 2.,  1., 12.])
    >>> product.sum().backward()
    >>> updates.grad
    tensor([1., 4., 3.])
    """
    tensors = data, indices, updates
    options = reduction, include_self, accumulate, bounds, negative_indices
    return _call("nd", 0, tensors, *options)


def scatter_update(
    data: torch.Tensor,
    indices: Indices,
    updates: torch.Tensor,
    axis: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    accumulate: str = "native",
    bounds: str = "error",
    negative_indices: bool = True,
) -> torch.Tensor:
    """Write slices of `updates` to the positions `indices` along one axis.

    Returns a new tensor: a copy of `data` with these writes. The arguments, the order of updates
    and the errors are those of `ndscatter.scatter_update`, with two exceptions: updates are not
    broadcast, and the arguments `duplicates`, `out` and `threads` do not exist. Gradients follow
    the rules of `ndscatter.torch.scatter_nd`.

    >>> import torch, ndscatter.torch
    >>> index = torch.tensor([1, 1])
    >>> ndscatter.torch.scatter_update(torch.zeros(3), index, torch.ones(2), reduction="add")
    tensor([0., 2., 0.])
    """
    tensors = data, indices, updates
    options = reduction, include_self, accumulate, bounds, negative_indices
    return _call("along", axis, tensors, *options)


def scatter_elements(
    data: torch.Tensor,
    indices: Indices,
    updates: torch.Tensor,
    axis: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    accumulate: str = "native",
    bounds: str = "error",
    negative_indices: bool = True,
) -> torch.Tensor:
    """Write each update to the position that its index selects along one axis.

    Returns a new tensor: a copy of `data` with these writes. The arguments, the order of updates
    and the errors are those of `ndscatter.scatter_elements`, with two exceptions: updates are not
    broadcast, and the arguments `duplicates`, `out` and `threads` do not exist. Gradients follow
    the rules of `ndscatter.torch.scatter_nd`.

    >>> import torch, ndscatter.torch
    >>> index = torch.tensor([[1, 0]])
    >>> ndscatter.torch.scatter_elements(torch.zeros(2, 2), index, torch.ones(1, 2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    tensors = data, indices, updates
    options = reduction, include_self, accumulate, bounds, negative_indices
    return _call("elements", axis, tensors, *options)


def _gathered(
    operator: str,
    data: torch.Tensor,
    indices: Indices,
    axis: int,
    bounds: str,
    negative_indices: bool,
) -> torch.Tensor:
    _check_tensor("data", data)
    _check_options(operator, axis, (negative_indices,), (bounds,))
    result: torch.Tensor = torch.ops.ndscatter.gather.default(
        data, _tensor_of(indices, data), operator, axis, bounds, negative_indices
    )
    return result


def gather_nd(
    data: torch.Tensor,
    indices: Indices,
    *,
    batch_dims: int = 0,
    bounds: str = "error",
    negative_indices: bool = True,
) -> torch.Tensor:
    """Return the slices of `data` that tuples of coordinates address.

    The arguments and errors are those of `ndscatter.gather_nd`, without the arguments `out` and
    `threads`. The result is differentiable in `data`, any number of times.

    >>> import torch, ndscatter.torch
    >>> ndscatter.torch.gather_nd(torch.eye(2), torch.tensor([[1, 1], [0, 1]]))
    tensor([1., 0.])
    """
    return _gathered("nd", data, indices, batch_dims, bounds, negative_indices)


def gather(
    data: torch.Tensor,
    indices: Indices,
    axis: int = 0,
    *,
    bounds: str = "error",
    negative_indices: bool = True,
) -> torch.Tensor:
    """Return the slices of `data` at the positions `indices` along one axis.

    The arguments and errors are those of `ndscatter.gather`, without the arguments `out` and
    `threads`. The result is differentiable in `data`, any number of times.

    >>> import torch, ndscatter.torch
    >>> ndscatter.torch.gather(torch.tensor([5.0, 6.0]), [1, 1, 0])
    tensor([6., 6., 5.])
    """
    return _gathered("along", data, indices, axis, bounds, negative_indices)


def gather_elements(
    data: torch.Tensor,
    indices: Indices,
    axis: int = 0,
    *,
    bounds: str = "error",
    negative_indices: bool = True,
) -> torch.Tensor:
    """Return one element of `data` per index. The index selects its position along one axis.

    The arguments and errors are those of `ndscatter.gather_elements`, without the arguments `out`
    and `threads`. The result is differentiable in `data`, any number of times.

    >>> import torch, ndscatter.torch
    >>> ndscatter.torch.gather_elements(torch.eye(2), torch.tensor([[1, 0]]))
    tensor([[0., 0.]])
    """
    return _gathered("elements", data, indices, axis, bounds, negative_indices)
