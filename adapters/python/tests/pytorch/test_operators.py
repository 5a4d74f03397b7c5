"""Tests of the operators that the package adds to PyTorch: their values, their gradients, their use
in compiled and exported programs, and their fakes (kernels that compute only shapes)."""

import itertools

import pytest
import torch

import ndscatter
import ndscatter.torch as nt

REDUCTIONS = ("none", "add", "sub", "mul", "min", "max", "mean")


def numbers(seed=0):
    return torch.Generator().manual_seed(seed)


def scatters(dtype=torch.float64, requires_grad=False):
    """Yield one case for each scatter function: the function for PyTorch, the function for arrays,
    the options, data, indices and updates.

    The indices of each case contain duplicates.
    """
    g = numbers()
    normal = lambda *shape: torch.randn(*shape, generator=g).to(dtype).requires_grad_(requires_grad)
    pick = lambda high, *shape: torch.randint(-high, high, shape, generator=g)
    pairs = torch.stack([pick(3, 4, 2), pick(4, 4, 2)], dim=-1)
    yield nt.scatter_nd, ndscatter.scatter_nd, {}, normal(3, 4, 2), pairs, normal(4, 2, 2)
    yield nt.scatter_update, ndscatter.scatter_update, {"axis": 1}, normal(2, 3, 2), pick(3, 5), (
        normal(2, 5, 2)
    )
    yield nt.scatter_elements, ndscatter.scatter_elements, {"axis": -1}, normal(3, 4), pick(
        4, 2, 6
    ), normal(2, 6)


def gathers(dtype=torch.float64, requires_grad=False):
    g = numbers()
    normal = lambda *shape: torch.randn(*shape, generator=g).to(dtype).requires_grad_(requires_grad)
    pick = lambda high, *shape: torch.randint(-high, high, shape, generator=g)
    yield nt.gather_nd, ndscatter.gather_nd, {"batch_dims": 1}, normal(3, 4, 2), pick(4, 3, 5, 1)
    yield nt.gather, ndscatter.gather, {"axis": 1}, normal(2, 3, 2), pick(3, 2, 4)
    yield nt.gather_elements, ndscatter.gather_elements, {"axis": 0}, normal(3, 4), pick(3, 5, 4)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int16])
def test_values_are_those_for_arrays(reduction, include_self, dtype):
    options = {"reduction": reduction, "include_self": include_self}
    for function, reference, more, *tensors in scatters(dtype):
        for data in (tensors[0], tensors[0].mT.contiguous().mT):
            found = function(data, *tensors[1:], **more, **options)
            assert torch.equal(found, reference(data, *tensors[1:], **more, **options))
            assert found.is_contiguous()


def test_gathered_values_are_those_for_arrays():
    for function, reference, more, *tensors in gathers():
        assert torch.equal(function(*tensors, **more), reference(*tensors, **more))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
def test_gradients(reduction, include_self):
    # Complex numbers have no order, so they have no minimum and maximum.
    types = [torch.float64] + [torch.complex128] * (reduction not in ("min", "max"))
    for dtype in types:
        check_gradients(dtype, reduction, include_self)


def check_gradients(dtype, reduction, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    for function, _, more, data, indices, updates in scatters(dtype, requires_grad=True):
        call = lambda d, u: function(d, indices, u, **more, **options)
        assert torch.autograd.gradcheck(call, (data, updates))
        assert torch.autograd.gradcheck(lambda u: call(data.detach(), u), (updates,))
        assert torch.autograd.gradcheck(lambda d: call(d, updates.detach()), (data,))


def test_gradients_of_gathers():
    for function, _, more, data, indices in gathers(requires_grad=True):
        assert torch.autograd.gradcheck(lambda d: function(d, indices, **more), (data,))


@pytest.mark.parametrize("reduction", ["none", "add", "sub", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_gradients(reduction, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    for function, _, more, data, indices, updates in scatters(requires_grad=True):
        call = lambda d, u: function(d, indices, u, **more, **options)
        assert torch.autograd.gradgradcheck(call, (data, updates))
        assert torch.autograd.gradgradcheck(lambda u: call(data.detach(), u), (updates,))
        assert torch.autograd.gradgradcheck(lambda d: call(d, updates.detach()), (data,))
    for function, _, more, data, indices in gathers(requires_grad=True):
        assert torch.autograd.gradgradcheck(lambda d: function(d, indices, **more), (data,))


@pytest.mark.parametrize("reduction", ["mul", "min", "max"])
def test_gradients_of_nonlinear_gradients_are_refused(reduction):
    for function, _, more, data, indices, updates in scatters(requires_grad=True):
        result = function(data, indices, updates, **more, reduction=reduction)
        (gradient,) = torch.autograd.grad(result.square().sum(), updates, create_graph=True)
        with pytest.raises(RuntimeError, match="has no gradient"):
            (gradient * updates).sum().backward()


LINEAR = ("none", "add", "sub", "mean")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("reduction", LINEAR)
@pytest.mark.parametrize("include_self", [True, False])
def test_forward_mode(reduction, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    modes = {"check_forward_ad": True, "check_backward_ad": False}
    for dtype in (torch.float64, torch.complex128):
        for function, _, more, data, indices, updates in scatters(dtype, requires_grad=True):
            call = lambda d, u: function(d, indices, u, **more, **options)
            assert torch.autograd.gradcheck(call, (data, updates), **modes)
            assert torch.autograd.gradcheck(lambda u: call(data.detach(), u), (updates,), **modes)
            assert torch.autograd.gradcheck(lambda d: call(d, updates.detach()), (data,), **modes)
            assert torch.autograd.gradgradcheck(call, (data, updates), check_fwd_over_rev=True)


def test_forward_mode_of_gathers():
    for function, _, more, data, indices in gathers(requires_grad=True):
        call = lambda d: function(d, indices, **more)
        assert torch.autograd.gradcheck(call, (data,), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(call, (data,), check_fwd_over_rev=True)


RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))
# Before PyTorch 2.14, `inductor` computes wrong tangents of custom operators in forward mode.
BACKENDS = [None, "eager", "aot_eager", *(["inductor"] if RELEASE >= (2, 14) else [])]


def ways_of_forward_mode(call, backend):
    """Yield functions that compute the forward-mode derivative of `call`. All tangents are ones.

    `torch.compile` compiles `call` or its derivative with `backend`. If `backend` is None, nothing
    is compiled.
    """
    from torch.autograd import forward_ad

    compiled = torch.compile(call, backend=backend) if backend else call

    def dual(function):
        def derivative(*primals):
            duals = []
            with forward_ad.dual_level():
                # The code uses a loop, because dynamo drops tangents that are made in a list
                # comprehension.
                for one in primals:
                    duals.append(forward_ad.make_dual(one, torch.ones_like(one)))  # noqa: PERF401
                return forward_ad.unpack_dual(function(*duals)).tangent

        return derivative

    def jvp(function):
        return lambda *primals: torch.func.jvp(
            function, primals, tuple(torch.ones_like(one) for one in primals)
        )[1]

    def warm(function):
        """Return a function that first calls `function` without tangents, and then computes the
        derivative.

        PyTorch may cache the compiled graph of the first call. The derivative must not use this
        graph, which has no tangents.
        """
        def derivative(*primals):
            function(*primals)
            return jvp(function)(*primals)

        return derivative

    yield jvp(compiled)
    yield dual(compiled)
    yield warm(compiled)
    yield lambda *primals: torch.func.jvp(
        lambda *moved: jvp(compiled)(*primals), primals, primals
    )[0]
    if backend:
        yield torch.compile(jvp(call), backend=backend)
        yield torch.compile(dual(call), backend=backend)


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_forward_mode_is_computed_or_refused(reduction, backend):
    """A linear reduction has a correct derivative in forward mode. Any other reduction raises an
    error. Without that error, PyTorch would use 0 as the tangent of the result."""
    index = torch.tensor([0, 1, 0])
    call = lambda d, u: nt.scatter_update(d, index, u, reduction=reduction).sin()
    data, updates = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])
    tangents = torch.ones(2), torch.ones(3)
    for derivative in ways_of_forward_mode(call, backend):
        torch._dynamo.reset()
        if reduction not in LINEAR:
            with pytest.raises(Exception, match="no derivative in forward mode"):
                derivative(data, updates)
            continue
        value = nt.scatter_update(data, index, updates, reduction=reduction)
        tangent = nt.scatter_update(*tangents[:1], index, *tangents[1:], reduction=reduction)
        torch.testing.assert_close(derivative(data, updates), value.cos() * tangent)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
def test_forward_mode_of_a_gather_that_is_compiled(backend):
    index, data = torch.tensor([0, 1, 1]), torch.tensor([1.0, 2.0])
    for derivative in ways_of_forward_mode(lambda d: nt.gather(d, index).sin(), backend):
        torch._dynamo.reset()
        torch.testing.assert_close(derivative(data), data[index].cos())


def test_forward_mode_without_tangents():
    index = torch.tensor([0, 1, 0])
    with torch.autograd.forward_ad.dual_level():
        assert nt.gather(torch.ones(3), index).sum() == 3
        assert nt.scatter_update(torch.ones(2), index, torch.ones(3), reduction="mul").sum() == 2


def test_products_and_jacobians():
    index, data = torch.tensor([0, 1, 0]), torch.tensor([1.0, 2.0, 3.0])
    call = lambda u: nt.scatter_update(torch.zeros(2), index, u, reduction="add")
    assert torch.func.jacfwd(call)(data).tolist() == [[1, 0, 1], [0, 1, 0]]
    nested = lambda v: torch.func.jvp(call, (v,), (v * v,))[1]
    assert torch.func.jvp(nested, (data,), (torch.ones(3),))[1].tolist() == [8, 4]
    _, product = torch.autograd.functional.vhp(lambda u: (call(u) ** 2).sum(), data, torch.ones(3))
    assert product.tolist() == [4, 2, 4]


def test_tensors_on_several_devices_are_refused():
    data, index, updates = torch.zeros(3), torch.tensor([0, 1]), torch.ones(2)
    with pytest.raises(RuntimeError, match="different devices: cpu, meta"):
        nt.scatter_update(data, index, updates.to("meta"))
    with pytest.raises(RuntimeError, match="different devices: cpu, meta"):
        nt.gather(data, index.to("meta"))
    assert nt.gather(data.to("meta"), index.to("meta")).shape == (2,)


def test_errors_of_fakes():
    index = torch.tensor([0, 1]).to("meta")
    with pytest.raises(ValueError, match="out of range for data of rank 0"):
        nt.gather(torch.zeros((), device="meta"), index)
    with pytest.raises(ValueError, match="out of range for data of rank 1"):
        nt.gather_elements(torch.zeros(3, device="meta"), index, 1)
    with pytest.raises(ValueError, match="rank 1 or more"):
        nt.gather_nd(torch.zeros(3, device="meta"), index[0])


def test_a_gradient_is_exact_where_a_factor_is_zero():
    data = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    updates = torch.tensor([0.0, 5.0, 7.0], requires_grad=True)
    nt.scatter_nd(data, torch.tensor([[2], [0], [2]]), updates, reduction="mul").sum().backward()
    assert data.grad.tolist() == [5.0, 1.0, 0.0]
    assert updates.grad.tolist() == [21.0, 1.0, 0.0]


def test_ties_share_and_skipped_updates_have_none():
    data = torch.tensor([2.0, 0.0], requires_grad=True)
    updates = torch.tensor([2.0, 2.0, 9.0], requires_grad=True)
    index = torch.tensor([0, 0, 5])
    result = nt.scatter_update(data, index, updates, reduction="amax", bounds="skip")
    result.sum().backward()
    assert updates.grad.tolist() == pytest.approx([1 / 3, 1 / 3, 0.0])
    assert data.grad.tolist() == pytest.approx([1 / 3, 1.0])


def cases():
    for (function, _, more, *tensors), reduction in itertools.product(
        scatters(torch.float32, requires_grad=True), ("none", "mul", "mean")
    ):
        yield pytest.param(
            function, tensors, {**more, "reduction": reduction}, id=f"{function.__name__}-{reduction}"
        )
    for function, _, more, *tensors in gathers(torch.float32, requires_grad=True):
        yield pytest.param(function, tensors, more, id=function.__name__)


def arguments(function, tensors, options):
    """Return the registered torch operator that the public `function` calls, and the arguments that
    `function` passes to this operator."""
    found = []
    name = "scatter" if len(tensors) == 3 else "gather"

    class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is getattr(torch.ops.ndscatter, name).default:
                found.append(args)
            return func(*args, **(kwargs or {}))

    with Recorder():
        function(*[tensor.detach() for tensor in tensors], **options)
    return getattr(torch.ops.ndscatter, name).default, (*tensors, *found[0][len(tensors) :])


@pytest.mark.parametrize(("function", "tensors", "options"), list(cases()))
def test_opcheck(function, tensors, options):
    operator, inputs = arguments(function, tensors, options)
    torch.library.opcheck(operator, inputs)


@pytest.mark.parametrize(("function", "tensors", "options"), list(cases()))
def test_compiled(function, tensors, options):
    torch._dynamo.reset()
    call = lambda *tensors: function(*tensors, **options) * 2
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True, dynamic=True)
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    results = [
        (result, *torch.autograd.grad(result.sum(), leaves))
        for result in (call(*tensors), compiled(*tensors))
    ]
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_compiled_by_inductor():
    torch._dynamo.reset()
    data, index = torch.randn(50, 8, requires_grad=True), torch.randint(0, 50, (300,))
    updates = torch.randn(300, 8, requires_grad=True)

    def layer(data, index, updates):
        sums = nt.scatter_update(data * 2, index, updates.relu(), reduction="max")
        return nt.gather(sums, index).tanh()

    compiled = torch.compile(layer, fullgraph=True)
    results = [
        (result, *torch.autograd.grad(result.sum(), (data, updates)))
        for result in (layer(data, index, updates), compiled(data, index, updates))
    ]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("function", "tensors", "options"), list(cases()))
def test_exported(function, tensors, options):
    class Module(torch.nn.Module):
        def forward(self, *tensors):
            return function(*tensors, **options)

    tensors = tuple(tensor.detach() for tensor in tensors)
    program = torch.export.export(Module(), tensors)
    assert any("ndscatter" in str(node.target) for node in program.graph.nodes)
    assert torch.equal(program.module()(*tensors), function(*tensors, **options))


def test_errors():
    data, index, updates = torch.zeros(3), torch.tensor([1, 5]), torch.ones(2)
    with pytest.raises(IndexError):
        nt.scatter_update(data, index, updates)
    with pytest.raises(IndexError):
        nt.gather(data, index)
    types = "`updates` has elements of torch.float64, but `data` has elements of torch.float32"
    with pytest.raises(TypeError, match=types):
        nt.scatter_update(data, index, updates.double())
    with pytest.raises(ValueError):
        nt.scatter_update(data, index[:1], updates)
    with pytest.raises(ValueError):
        nt.scatter_update(data, index, updates, axis=1)
    with pytest.raises(ValueError):
        nt.scatter_update(data, index, updates, reduction="median")
    with pytest.raises(ValueError):
        nt.scatter_update(data, index, updates, bounds="wrap")
    with pytest.raises((TypeError, NotImplementedError)):
        nt.scatter_update(data.to_sparse(), index, updates)


def test_errors_of_arguments_of_a_wrong_type():
    data, index, updates = torch.zeros(3), torch.tensor([1, 0]), torch.ones(2)
    for error, match, call in (
        (TypeError, "`data` is of type list", lambda: nt.scatter_update([0.0], index, updates)),
        (TypeError, "`data` is of type ndarray", lambda: nt.gather(data.numpy(), index)),
        (TypeError, "`updates` is of type float", lambda: nt.scatter_update(data, index, 1.0)),
        (TypeError, "^`axis` is 'x'; pass an integer$", lambda: nt.gather(data, index, "x")),
        (TypeError, "^`batch_dims` is 0.0; pass an integer$", lambda: nt.gather_nd(data, index[:, None], batch_dims=0.0)),
        (ValueError, "^`axis` is 1180591620717411303424; PyTorch's tensors have at most", lambda: nt.gather(data, index, 1 << 70)),
        (TypeError, "True or False, not 'no'", lambda: nt.gather(data, index, negative_indices="no")),
        (TypeError, "are strings, not 3", lambda: nt.gather(data, index, bounds=3)),
        (TypeError, "are strings, not \\[\\]", lambda: nt.scatter_update(data, index, updates, reduction=[])),
        (TypeError, "invalid data type 'str'", lambda: nt.gather(data, "text")),
        (TypeError, "cannot be converted", lambda: nt.gather(data, None)),
        (TypeError, "^`indices` has elements of float32; pass integers, such as int64$", lambda: nt.gather(data, [0.5])),
        (ValueError, "expected sequence of length 1 at dim 1", lambda: nt.gather(data, [[1], [1, 2]])),
        ((TypeError, ValueError), "[Oo]verflow", lambda: nt.gather(data, [1 << 70])),
        (IndexError, "index 7 .* is out of bounds", lambda: nt.gather(data, [7])),
    ):
        with pytest.raises(error, match=match):
            call()


def test_functions_without_gradients_name_the_operators_that_have_them():
    leaf, index = torch.ones(3, requires_grad=True), torch.tensor([0])
    for call in (
        lambda: ndscatter.gather(leaf, index),
        lambda: ndscatter.scatter_update(torch.zeros(3), index, leaf[:1]),
        lambda: ndscatter.scatter_update(torch.zeros(3), index, 1.0, out=leaf),
        lambda: nt.move_rows(leaf, index, index),
    ):
        with pytest.raises(ValueError, match="use an operator of `ndscatter.torch`, such as `ndscatter.torch.scatter_update`"):
            call()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_indices_that_are_lists(device):
    data, updates = torch.arange(6.0, device=device).reshape(3, 2), torch.ones(2, 2, device=device)
    for function, indices, *more in (
        (nt.scatter_nd, [[2], [0]], updates),
        (nt.scatter_update, (2, 0), updates),
        (nt.scatter_elements, [[1, 0], [0, 2]], updates),
        (nt.gather_nd, [[2], [0]]),
        (nt.gather, [2, 0]),
        (nt.gather, 1),
        (nt.gather, []),
        (nt.gather_elements, [[1, 0], [0, 2]]),
    ):
        tensor = torch.tensor(indices, dtype=torch.long, device=device)
        found, expected = function(data, indices, *more), function(data, tensor, *more)
        assert found.shape == expected.shape
        assert device == "meta" or torch.equal(found, expected)


@pytest.mark.parametrize(
    "alias, name", [("multiply", "mul"), ("AVG", "mean"), ("set", "none"), ("sum", "add"), ("amax", "max")]
)
def test_other_names_of_reductions(alias, name):
    torch._dynamo.reset()
    data, index = torch.arange(4.0) + 1, torch.tensor([1, 1])
    updates = torch.tensor([5.0, 2.0], requires_grad=True)

    def call(data, index, updates, reduction=alias):
        return nt.scatter_update(data, index, updates, reduction=reduction)

    expected = call(data, index, updates, name)
    (gradient,) = torch.autograd.grad(expected.sum(), updates)
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for function in (call, compiled):
        found = function(data, index, updates)
        assert torch.equal(found, expected)
        assert torch.equal(*torch.autograd.grad(found.sum(), updates), gradient)
    assert torch.equal(expected, torch.from_numpy(ndscatter.scatter_update(
        data.numpy(), index.numpy(), updates.detach().numpy(), reduction=alias,
    )))  # fmt: skip
    with pytest.raises(ValueError, match='`reduction`: no reduction is called "median"; use'):
        call(data, index, updates, "median")


def test_an_axis_that_varies_is_compiled():
    torch._dynamo.reset()
    data, index = torch.arange(16.0).reshape(4, 4), torch.tensor([1, 3])
    call = lambda data, index, axis: nt.gather(data, index, axis)
    compiled = torch.compile(call, backend="eager", fullgraph=True)
    for axis in (0, 1, -1, -2):
        assert torch.equal(compiled(data, index, axis), data.index_select(axis, index))


def test_a_list_of_indices_is_compiled():
    torch._dynamo.reset()
    data = torch.tensor([5.0, 6.0])
    compiled = torch.compile(lambda data: nt.gather(data, [1, 1, 0]), backend="eager", fullgraph=True)
    assert compiled(data).tolist() == [6.0, 6.0, 5.0]


def test_types_that_are_only_moved():
    data = torch.zeros(3).to(torch.float8_e4m3fn)
    result = nt.scatter_update(data, torch.tensor([1]), torch.ones(1).to(torch.float8_e4m3fn))
    assert result.float().tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(TypeError, match="float8_e5m2, but `data` has elements of torch.float8_e4m3fn"):
        nt.scatter_update(data, torch.tensor([1]), torch.ones(1).to(torch.float8_e5m2))
