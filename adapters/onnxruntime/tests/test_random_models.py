"""Tests of random models: chains of ScatterND and ScatterElements nodes of ONNX's domain and of the
domain `ndscatter`.

The models also have other operators between the scatters, tensors with several readers, constant
indices, branches and loops. Most index tensors contain duplicates.

The function that makes a model computes the expected value of every tensor with numpy. The outputs
of a session must have the bits of the expected values. The tests vary the number of threads, the
execution mode, the memory options and the optimisation level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import reference
from common import (
    FLOAT,
    HAS_CACHE,
    INT64,
    OWN,
    Array,
    ElementType,
    any_indices,
    assert_same,
    counting,
    model,
    node,
    session,
    value,
)

MODELS = 500 if HAS_CACHE else 200
LARGE = 6 if HAS_CACHE else 3
# Elements of updates in a scatter that is large enough to use all threads of the session.
MANY = 1_200_000

TYPES = [FLOAT, INT64, ElementType("INT32", np.dtype(np.int32))]
REDUCTIONS = ["none", "add", "mul", "min", "max"]
OWN_REDUCTIONS = [*REDUCTIONS, "sub", "mean"]


def numbers(rng: np.random.Generator, element: ElementType, shape: Any) -> Array:
    """Returns random numbers other than zero. The reference's functions `fast_nd` and
    `fast_elements` require numbers without zeros. The magnitudes are small, so that float products
    stay finite."""
    if element.is_float:
        made = rng.uniform(0.25, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
        return np.asarray(made, np.float32)
    return np.asarray(rng.integers(1, 9, shape) * rng.choice([-1, 1], shape), element.dtype)


@dataclass
class Scattering:
    """Description of a scatter node: operator, domain, indices, attributes and the shape of
    updates. The values of data and updates are not included."""

    op: str
    domain: str
    indices: Array
    axis: int
    rules: reference.Rules
    updates_shape: tuple[int, ...]

    def attributes(self) -> dict[str, Any]:
        given: dict[str, Any] = {"reduction": self.rules.reduction}
        if self.op == "ScatterElements":
            given["axis"] = self.axis
        if self.domain == OWN:
            given["include_self"] = self.rules.include_self
        return given

    def result(self, data: Array, updates: Array) -> Array:
        reduction = self.rules.reduction
        if updates.size > 20_000:
            if self.op == "ScatterND":
                return reference.fast_nd(data, self.indices, updates, reduction)
            return reference.fast_elements(data, self.indices, updates, self.axis, reduction)
        if self.op == "ScatterND":
            return reference.scatter_nd(data, self.indices, updates, self.rules)
        return reference.scatter_elements(data, self.indices, updates, self.axis, self.rules)


def scattering(
    rng: np.random.Generator, shape: tuple[int, ...], moved: int | None = None
) -> Scattering:
    """Returns a random scatter for data of this shape. `moved`: approximate number of elements of
    updates. `None`: a small random number."""
    domain = OWN if rng.random() < 0.3 and moved is None else ""
    reduction = str(rng.choice(OWN_REDUCTIONS if domain else REDUCTIONS))
    rules = reference.Rules(reduction, int(rng.random() < 0.5) if domain else 1)
    if rng.random() < 0.5:
        depth = 1 if moved else int(rng.integers(1, len(shape) + 1))
        window = int(np.prod(shape[depth:]))
        listed = (
            (moved // window,) if moved else (int(rng.integers(1, 6)),) * int(rng.integers(1, 3))
        )
        indices = any_indices(rng, shape[:depth], (*listed, depth))
        return Scattering("ScatterND", domain, indices, 0, rules, (*listed, *shape[depth:]))
    axis = int(rng.integers(-len(shape), len(shape)))
    listed_shape = [int(rng.integers(1, size + 1)) for size in shape]
    listed_shape[axis] = int(rng.integers(1, 2 * shape[axis] + 2))
    if moved:
        listed_shape = list(shape)
        listed_shape[axis] = moved * shape[axis] // int(np.prod(shape))
    indices = any_indices(rng, shape[axis], listed_shape)
    return Scattering("ScatterElements", domain, indices, axis, rules, tuple(listed_shape))


@dataclass
class Maker:
    """Builder of a random model. It stores the nodes of the model, and the expected value of each
    tensor."""

    rng: np.random.Generator
    element: ElementType
    moved: int | None = None
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    tensors: dict[str, Array] = field(default_factory=dict)
    scatters: int = 0
    names: int = 0

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}_{self.names}"

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, many: Any) -> Any:
        many = list(many)
        return many[self.rng.integers(len(many))]

    def feed(self, kind: str, array: Array) -> str:
        """Adds an input of the model. Its declared shape is unknown, or all its sizes are numbers,
        or all are names, or all are unknown. A name contains its size, so equal names mean equal
        sizes."""
        name = self.name(kind)
        declare = self.pick([
            lambda size: size, lambda size: f"size_{size}", lambda size: None,
        ])  # fmt: skip
        shape = None if self.chance(0.1) else [declare(size) for size in array.shape]
        code = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(value(name, code, shape))
        self.feeds[name] = array
        return name

    def hold(self, kind: str, array: Array) -> str:
        name = self.name(kind)
        self.constants[name] = array
        return name

    def fresh(self, shape: Any) -> str:
        """Adds a tensor of random numbers: a constant (probability 0.2) or an input (0.8)."""
        array = numbers(self.rng, self.element, shape)
        name = (self.hold if self.chance(0.2) else self.feed)("numbers", array)
        self.tensors[name] = array
        return name

    def of_shape(self, shape: tuple[int, ...]) -> str:
        """Returns the name of a tensor of this shape: an existing tensor, or a new one."""
        there = [name for name, array in self.tensors.items() if array.shape == shape]
        return self.pick(there) if there and self.chance(0.6) else self.fresh(shape)

    def emit(self, op: str, inputs: list[str], result: Array, **attributes: Any) -> str:
        name = self.name(op.lower())
        self.nodes.append(node(op, inputs, [name], **attributes))
        self.tensors[name] = result
        return name

    # The methods from `scatter` to `loop`, except the helper `cut`, are the possible steps of a
    # random model. A step adds nodes to the model, and returns the name of the last tensor that
    # they compute.

    def scatter(self, data: str) -> str:
        made = scattering(self.rng, self.tensors[data].shape, self.moved)
        indices = (self.hold if self.chance(0.4) else self.feed)("indices", made.indices)
        updates = self.of_shape(made.updates_shape)
        result = made.result(self.tensors[data], self.tensors[updates])
        self.scatters += 1
        return self.emit(
            made.op, [data, indices, updates], result, domain=made.domain, **made.attributes()
        )

    def negate(self, data: str) -> str:
        return self.emit("Neg", [data], -self.tensors[data])

    def identity(self, data: str) -> str:
        return self.emit("Identity", [data], self.tensors[data])

    def combine(self, data: str) -> str:
        other = self.of_shape(self.tensors[data].shape)
        left, right = self.tensors[data], self.tensors[other]
        if self.element.is_float or self.chance(0.5):
            return self.emit("Add", [data, other], left + right)
        return self.emit("Mul", [data, other], left * right)

    def transpose(self, data: str) -> str:
        order = self.rng.permutation(self.tensors[data].ndim).tolist()
        return self.emit(
            "Transpose", [data], self.tensors[data].transpose(order).copy(), perm=order
        )

    def reshape(self, data: str) -> str:
        array = self.tensors[data]
        shape = (array.shape[0], -1) if self.chance(0.5) else (-1, array.shape[-1])
        shape_name = self.hold("shape", np.array(shape))
        return self.emit("Reshape", [data, shape_name], array.reshape(shape))

    def concat(self, data: str) -> str:
        array = self.tensors[data]
        axis = int(self.rng.integers(array.ndim))
        other = self.of_shape(array.shape)
        joined = np.concatenate([array, self.tensors[other]], axis)
        name = self.emit("Concat", [data, other], joined, axis=axis)
        return self.cut(name, axis, array.shape[axis]) if joined.size > 400 else name

    def slice(self, data: str) -> str:
        array = self.tensors[data]
        axis = int(np.argmax(array.shape))
        if array.shape[axis] < 2:
            return data
        return self.cut(data, axis, int(self.rng.integers(1, array.shape[axis])))

    def cut(self, data: str, axis: int, end: int) -> str:
        array = self.tensors[data]
        bounds = [self.hold("bound", np.array([at])) for at in (0, end, axis)]
        return self.emit("Slice", [data, *bounds], array.take(range(end), axis).copy())

    def branch(self, data: str) -> str:
        """Adds an If node. Each branch negates the outer tensor `data` and scatters into the
        negated tensor. The scatters of the branches have different indices and attributes."""
        taken = self.chance(0.5)
        results, graphs = {}, {}
        for way in ("then_branch", "else_branch"):
            made = scattering(self.rng, self.tensors[data].shape, self.moved)
            updates = self.of_shape(made.updates_shape)
            output, indices, inner = self.name(way), self.name("inner_indices"), self.name("inner")
            held = [onnx.numpy_helper.from_array(made.indices, indices)]
            if self.chance(0.4):
                indices, held = self.feed("indices", made.indices), []
            body = [
                node("Neg", [data], [inner]),
                node(made.op, [inner, indices, updates], [output],
                     domain=made.domain, **made.attributes()),
            ]  # fmt: skip
            results[way] = made.result(-self.tensors[data], self.tensors[updates])
            graphs[way] = helper.make_graph(
                body, way, [], [value(output, self.element.code, None)], initializer=held
            )
        condition = self.feed("condition", np.array(taken))
        self.scatters += 1
        return self.emit(
            "If", [condition], results["then_branch" if taken else "else_branch"], **graphs
        )

    def loop(self, data: str) -> str:
        """Adds a Loop node of 0 to 3 iterations. Each iteration scatters into the result of the
        previous iteration, and negates it."""
        steps = int(self.rng.integers(0, 4))
        made = scattering(self.rng, self.tensors[data].shape, self.moved)
        updates = self.of_shape(made.updates_shape)
        carried, scattered, carries, goes = (self.name("body") for _ in range(4))
        step, going = self.name("step"), self.name("going")
        indices = self.name("inner_indices")
        held = [onnx.numpy_helper.from_array(made.indices, indices)]
        if self.chance(0.4):
            indices, held = self.hold("indices", made.indices), []
        body = helper.make_graph(
            [
                node(made.op, [carried, indices, updates], [scattered],
                     domain=made.domain, **made.attributes()),
                node("Neg", [scattered], [carries]),
                node("Identity", [going], [goes]),
            ],
            "body",
            [value(step, TensorProto.INT64, []), value(going, TensorProto.BOOL, []),
             value(carried, self.element.code, None)],
            [value(goes, TensorProto.BOOL, []), value(carries, self.element.code, None)],
            initializer=held,
        )  # fmt: skip
        result = self.tensors[data]
        for _ in range(steps):
            result = -made.result(result, self.tensors[updates])
        self.scatters += steps
        trip = self.feed("steps", np.array(steps))
        return self.emit("Loop", [trip, "", data], result, body=body)

    def step(self) -> None:
        made = [name for name in self.tensors if name not in self.feeds]
        data = self.pick(made[-3:] if self.chance(0.8) else made)
        kinds = [self.scatter] * 6 + [self.negate, self.identity, self.combine, self.transpose]
        kinds += [self.branch, self.loop]
        if self.moved is None:
            kinds += [self.reshape, self.concat, self.slice]
        with np.errstate(all="ignore"):
            self.pick(kinds)(data)


def make(
    rng: np.random.Generator, moved: int | None = None
) -> tuple[bytes, dict[str, Array], dict[str, Array], int]:
    """Returns a random model, its feeds, its expected outputs, and the number of scatters that one
    run executes. `moved`: approximate number of elements of updates per scatter. `None`: a small
    number."""
    maker = Maker(rng, TYPES[rng.integers(len(TYPES))], moved)
    shape = tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 4)))
    maker.fresh((3000, 40) if moved else shape)
    with np.errstate(all="ignore"):
        maker.scatter(next(iter(maker.tensors)))
    for _ in range(3 if moved else int(rng.integers(2, 12))):
        maker.step()
    computed = [name for name in maker.tensors if name not in {**maker.feeds, **maker.constants}]
    outputs = {computed[-1]: maker.tensors[computed[-1]]}
    for name in computed[:-1]:
        # Every tensor that no node reads becomes an output of the model. If the tensor were no
        # output, the host would remove the node that computes it.
        is_read = any(name in each.input for each in maker.nodes)
        inner = (graph for each in maker.nodes for graph in each.attribute if graph.HasField("g"))
        is_read |= any(name in each.input for graph in inner for each in graph.g.node)
        if not is_read or rng.random() < 0.2:
            outputs[name] = maker.tensors[name]
    serialized = model(
        maker.nodes,
        maker.inputs,
        [value(name, maker.element.code, None) for name in outputs],
        constants=maker.constants,
    )
    return serialized, maker.feeds, outputs, maker.scatters


WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "plain": {"graph_optimization_level": ort.GraphOptimizationLevel.ORT_DISABLE_ALL},
    "basic": {"graph_optimization_level": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC},
    "no_reuse": {"enable_mem_reuse": False},
    "no_pattern": {"enable_mem_pattern": False},
    "no_arena": {"enable_cpu_mem_arena": False},
    "no_memory_tricks": {
        "enable_mem_reuse": False,
        "enable_mem_pattern": False,
        "enable_cpu_mem_arena": False,
    },
}
PARALLEL = {"execution_mode": ort.ExecutionMode.ORT_PARALLEL, "inter_op_num_threads": 2}


def check(
    serialized: bytes,
    feeds: dict[str, Array],
    outputs: dict[str, Array],
    scatters: int,
    **given: Any,
) -> None:
    before = {name: array.copy() for name, array in feeds.items()}
    ran = session(serialized, **given)
    for _ in range(2):
        with counting() as count:
            found = ran.run(list(outputs), feeds)
        # The host may merge equal nodes, so fewer scatters may run than the model contains.
        assert 0 < count.done.runs <= scatters
        for output, (name, wanted) in zip(found, outputs.items(), strict=True):
            assert_same(output, wanted, f"{name}, {given}:")
    for name, array in before.items():
        assert_same(feeds[name], array, name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(MODELS))
def test_random_model(seed) -> None:
    rng = np.random.default_rng([1, seed])
    made = make(rng)
    for at, way in enumerate(rng.permutation(list(WAYS))[:3]):
        mode = PARALLEL if rng.random() < 0.4 else {}
        check(*made, threads=(1, 2, 4)[at], **WAYS[way], **mode)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way(threads, mode, way) -> None:
    """Checks the first four random models of `test_random_model` with every combination of an entry
    of `WAYS`, an execution mode and a number of threads."""
    for seed in range(4):
        made = make(np.random.default_rng([1, seed]))
        check(*made, threads=threads, **WAYS[way], **(PARALLEL if mode == "parallel" else {}))


@pytest.mark.parametrize("seed", range(LARGE))
def test_large_model(seed) -> None:
    """Checks a random model whose scatters are large enough to use all threads of the session."""
    made = make(np.random.default_rng([2, seed]), moved=MANY)
    for threads in (1, 2, 4):
        check(*made, threads=threads, **(PARALLEL if threads == 2 else {}))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("element", TYPES, ids=str)
def test_fast_reference_is_the_reference(rng, element, reduction) -> None:
    rules = reference.Rules(reduction)
    data, updates = (numbers(rng, element, shape) for shape in ((6, 5), (9, 5)))
    tuples, listed = any_indices(rng, 6, (9, 1)), any_indices(rng, 6, (9, 5))
    pairs = [
        (reference.fast_nd(data, tuples, updates, reduction),
         reference.scatter_nd(data, tuples, updates, rules)),
        (reference.fast_elements(data, listed, updates, 0, reduction),
         reference.scatter_elements(data, listed, updates, 0, rules)),
    ]  # fmt: skip
    for found, wanted in pairs:
        assert_same(found, wanted)
