"""Functions and types that all tests share: models, sessions, counters, element types and values.

This module depends on ONNX Runtime's Python interface and on the path of the library. It computes
no expected results: `reference` computes them.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import reference

ROOT = Path(__file__).resolve().parents[3]


def library_path() -> Path:
    if given := os.environ.get("NDSCATTER_ORT_LIBRARY"):
        return Path(given)
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    return target / "release" / "libndscatter_onnxruntime.so"


LIBRARY = library_path()
OWN = "ndscatter"
HOST = tuple(int(number) for number in ort.__version__.split(".")[:2])
# Log level of all sessions: only fatal errors. Tests cause errors on purpose, and read the messages
# from the exceptions.
QUIET = 4
ort.set_default_logger_severity(QUIET)

HAS_CACHE = HOST >= (1, 24)
needs_cache = pytest.mark.skipif(not HAS_CACHE, reason="this host has no TensorScatter")

Array = reference.Array
Feeds = Mapping[str, Any]

if not LIBRARY.is_file():
    pytest.exit(f"{LIBRARY} is missing; run: cargo build --release -p ndscatter-onnxruntime", 2)
_exported = ctypes.CDLL(str(LIBRARY))
for _name in ("runs", "in_place", "planned"):
    getattr(_exported, f"ndscatter_onnxruntime_{_name}").restype = ctypes.c_uint64


class Counts(NamedTuple):
    """Numbers of successful runs of the library's kernels: all runs, the runs that wrote in place,
    and the runs with a kept plan."""

    runs: int
    in_place: int
    planned: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(*(now - then for now, then in zip(self, before)))


def counts() -> Counts:
    return Counts(
        *(getattr(_exported, f"ndscatter_onnxruntime_{name}")() for name in Counts._fields)
    )


class counting:
    """Counts the kernel runs inside a `with` block. After `with counting() as count: ...`, the
    counts are in `count.done`."""

    done: Counts

    def __enter__(self) -> counting:
        self.before = counts()
        return self

    def __exit__(self, *_: object) -> None:
        self.done = counts() - self.before


# Models

value = helper.make_tensor_value_info
node = helper.make_node


def ir_version(opset: int) -> int:
    """Returns the IR version for a model of this opset. The IR version has all types of the opset.
    Every onnxruntime that supports the opset can read the IR version."""
    return 8 if opset < 21 else 10 if opset < 23 else 11


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    opset: int = 18,
    constants: Mapping[str, Array] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> bytes:
    initializers = [
        onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()
    ]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(OWN, 1)]
    opsets += [helper.make_opsetid(function.domain, 1) for function in functions]
    made = helper.make_model(
        graph,
        opset_imports=opsets,
        functions=list(functions),
        ir_version=ir_version(opset),
    )
    return made.SerializeToString()


def options(
    library: bool = True,
    threads: int = 1,
    entries: Mapping[str, str] | None = None,
    **attributes: Any,
) -> ort.SessionOptions:
    """Returns the options of a session. `library`: whether the options register ndscatter's
    library. `entries`: config entries. `attributes`: other attributes of `SessionOptions`."""
    made = ort.SessionOptions()
    made.intra_op_num_threads = threads
    made.log_severity_level = QUIET
    for name, given in attributes.items():
        setattr(made, name, given)
    for key, entry in (entries or {}).items():
        made.add_session_config_entry(key, entry)
    if library:
        made.register_custom_ops_library(str(LIBRARY))
    return made


def session(serialized: bytes, **given: Any) -> ort.InferenceSession:
    """Returns a session of a model. `given`: the arguments of `options`."""
    return ort.InferenceSession(serialized, options(**given), providers=["CPUExecutionProvider"])


UNOPTIMISED = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


@functools.cache
def newest_opset() -> int:
    """Returns the newest opset that the installed onnxruntime supports. Tries to create sessions
    with increasing opsets until one fails."""
    opset = 21
    while True:
        identity = model(
            [node("Identity", ["x"], ["y"])],
            [value("x", TensorProto.FLOAT, [1])],
            [value("y", TensorProto.FLOAT, [1])],
            opset=opset + 1,
        )
        try:
            session(identity, library=False)
        except Exception:  # noqa: BLE001  (hosts raise different types)
            return opset
        opset += 1


# Element types


class ElementType(NamedTuple):
    """An element type: its ONNX name and its numpy dtype. `is_cast`: whether the inputs and the
    output of a test model are float32, and the graph casts them to and from this type."""

    name: str
    dtype: np.dtype[Any]
    is_cast: bool = False

    @property
    def code(self) -> int:
        return TensorProto.DataType.Value(self.name)

    @property
    def fed(self) -> np.dtype[Any]:
        """Numpy dtype of the feeds and of the result of a run: float32 if `is_cast`."""
        return np.dtype(np.float32) if self.is_cast else self.dtype

    @property
    def fed_code(self) -> int:
        return TensorProto.FLOAT if self.is_cast else self.code

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f" or self.is_cast

    def __str__(self) -> str:
        return self.name.lower()


FLOAT = ElementType("FLOAT", np.dtype(np.float32))
INT64 = ElementType("INT64", np.dtype(np.int64))
STRING = ElementType("STRING", np.dtype(object))
BOOL = ElementType("BOOL", np.dtype(np.bool_))
FLOAT16 = ElementType("FLOAT16", np.dtype(np.float16))
BFLOAT16 = ElementType("BFLOAT16", np.dtype(ml_dtypes.bfloat16), is_cast=True)
NUMBERS = [
    FLOAT,
    ElementType("UINT8", np.dtype(np.uint8)),
    ElementType("INT8", np.dtype(np.int8)),
    ElementType("UINT16", np.dtype(np.uint16)),
    ElementType("INT16", np.dtype(np.int16)),
    ElementType("INT32", np.dtype(np.int32)),
    INT64,
    FLOAT16,
    ElementType("DOUBLE", np.dtype(np.float64)),
    ElementType("UINT32", np.dtype(np.uint32)),
    ElementType("UINT64", np.dtype(np.uint64)),
]
FLOAT8 = [
    ElementType("FLOAT8E4M3FN", np.dtype(ml_dtypes.float8_e4m3fn), is_cast=True),
    ElementType("FLOAT8E4M3FNUZ", np.dtype(ml_dtypes.float8_e4m3fnuz), is_cast=True),
    ElementType("FLOAT8E5M2", np.dtype(ml_dtypes.float8_e5m2), is_cast=True),
    ElementType("FLOAT8E5M2FNUZ", np.dtype(ml_dtypes.float8_e5m2fnuz), is_cast=True),
]


def values(rng: np.random.Generator, element: ElementType, shape: Iterable[int]) -> Array:
    """Returns random values of a type. Integers are drawn from the whole range of their type. About
    5% of the floats are +0 or -0. The magnitudes of the floats vary, so a float sum depends on the
    order of the additions."""
    shape, dtype = tuple(shape), element.dtype
    if dtype.kind == "O":
        words = ["", "a", "bc", "zażółć", "散布", "🦀", "a string that is too long for small ones"]
        return np.array(rng.choice(words, size=shape), dtype=object).reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    made = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, shape)
    if element in FLOAT8:
        made = made.clip(-100, 100)
    return np.asarray(np.where(rng.random(shape) < 0.05, made * 0.0, made)).astype(dtype)


# Tensors of types without a numpy dtype. Only newer versions of onnxruntime's Python interface can
# make such tensors. `FOUR_BITS`: codes of the 4-bit types in ONNX.
HAS_RAW_VALUES = hasattr(ort.OrtValue, "ortvalue_from_numpy_with_onnx_type")
FOUR_BITS = {"UINT4": 21, "INT4": 22, "FLOAT4E2M1": 23}


def raw_value(code: int, shape: Sequence[int], content: bytes) -> ort.OrtValue:
    """Returns a tensor whose memory contains the bytes `content`. `code`: element type in ONNX."""
    made = ort.OrtValue.ortvalue_from_shape_and_type(list(shape), code)
    assert made.tensor_size_in_bytes() == len(content)
    ctypes.memmove(made.data_ptr(), content, len(content))
    return made


def raw_bytes(given: ort.OrtValue) -> bytes:
    return ctypes.string_at(given.data_ptr(), given.tensor_size_in_bytes())


def bits(array: Array) -> Array:
    """Returns the bit patterns of the elements as unsigned integers. Returns an array of strings
    unchanged."""
    array = np.ascontiguousarray(array)
    return array if array.dtype.kind == "O" else array.view(f"u{array.dtype.itemsize}")


def assert_same(found: Array, wanted: Array, what: str = "") -> None:
    """Checks that two arrays have the same dtype, shape and bits. Any two NaN values are equal,
    also with different signs or payloads."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, what
    assert found.dtype == wanted.dtype, what
    same = bits(found) == bits(wanted)
    if found.dtype.kind == "f":
        same |= np.isnan(found) & np.isnan(wanted)
    if not np.all(same):
        places = np.argwhere(~np.atleast_1d(same))
        first = tuple(places[0]) if found.ndim else ()
        raise AssertionError(
            f"{what} {len(places)} elements differ, first at {first}: "
            f"{found[first]!r} instead of {wanted[first]!r}"
        )


# One scatter

INDEX_CODES = {"i32": TensorProto.INT32, "i64": TensorProto.INT64}
INDEX_DTYPES = {"i32": np.dtype(np.int32), "i64": np.dtype(np.int64)}


def one_node(
    op: str,
    element: ElementType,
    shapes: tuple[Any, Any, Any],
    *,
    opset: int = 18,
    domain: str = "",
    index_type: str = "i64",
    indices: Array | None = None,
    output: Any = None,
    between: bool = False,
    **attributes: Any,
) -> bytes:
    """Returns a model with one scatter node.

    `shapes`: declared shapes of the inputs `data`, `indices` and `updates`, in this order. The
    shape `None` is unknown. Exception: a TensorScatter with the shape `None` for indices, and
    without the argument `indices`, has no indices. `indices`: indices that are a constant of the
    model instead of an input. `output`: declared shape of the output.

    `between`: whether the model has a node before the scatter, which makes the data, and a node
    after the scatter, which reads the result. The host may then run the scatter in place.
    """
    data, listed, updates = shapes
    constants = {} if indices is None else {"indices": indices}
    has_indices = op != "TensorScatter" or listed is not None or indices is not None
    names = {"data": "data", "updates": "updates", "output": "output"}
    nodes: list[onnx.NodeProto] = []
    nodes_behind: list[onnx.NodeProto] = []
    if element.is_cast:
        for name in ("data", "updates"):
            names[name] = f"cast_{name}"
            nodes.append(node("Cast", [name], [names[name]], to=element.code))
        names["output"] = "cast_output"
        nodes_behind = [node("Cast", ["cast_output"], ["output"], to=element.fed_code)]
    if between:
        # The nodes before and after the scatter are Transpose nodes with the identity permutation.
        # Transpose supports every element type. It copies its input.
        order_of_axes = list(range(len(data)))
        nodes.append(node("Transpose", [names["data"]], ["inside"], perm=order_of_axes))
        names["data"] = "inside"
        behind = node("Transpose", ["result"], [names["output"]], perm=order_of_axes)
        nodes_behind.insert(0, behind)
        names["output"] = "result"
    order = ["data", "indices", "updates"]
    if op == "TensorScatter":
        order = ["data", "updates"] + (["indices"] if has_indices else [])
    read = [names.get(name, name) for name in order]
    nodes.append(node(op, read, [names["output"]], domain=domain, name="scatter", **attributes))
    nodes += nodes_behind
    inputs = [value("data", element.fed_code, data), value("updates", element.fed_code, updates)]
    if has_indices and indices is None:
        inputs.append(value("indices", INDEX_CODES[index_type], listed))
    return model(
        nodes,
        inputs,
        [value("output", element.fed_code, output)],
        opset=opset,
        constants=constants,
    )


def run(made: ort.InferenceSession, **feeds: Any) -> Array:
    """Runs a session and returns its first output."""
    return made.run(None, feeds)[0]


def ort_value(array: Array) -> ort.OrtValue:
    """Returns a tensor of the host (`OrtValue`) with the elements of an array. The Python interface
    cannot convert an array of strings, so for strings this function runs a model that outputs
    them."""
    if array.dtype.kind != "O":
        return ort.OrtValue.ortvalue_from_numpy(array)
    gather = model(
        [
            node("Gather", ["strings", "order"], ["flat"]),
            node("Reshape", ["flat", "shape"], ["output"]),
        ],
        [value("order", TensorProto.INT64, [None])],
        [value("output", TensorProto.STRING, None)],
        constants={"strings": array.ravel(), "shape": np.array(array.shape)},
    )
    made = session(gather)
    binding = made.io_binding()
    binding.bind_cpu_input("order", np.arange(array.size))
    binding.bind_output("output")
    made.run_with_iobinding(binding)
    return binding.get_outputs()[0]


def run_in_one_buffer(made: ort.InferenceSession, **feeds: Any) -> Array:
    """Runs a session with `output` bound to the memory of `data`. Returns the output."""
    binding = made.io_binding()
    bound = {name: ort_value(array) for name, array in feeds.items()}
    for name, given in bound.items():
        binding.bind_ortvalue_input(name, given)
    binding.bind_ortvalue_output("output", bound["data"])
    made.run_with_iobinding(binding)
    return bound["data"].numpy()


def unique_elements_indices(
    rng: np.random.Generator, data: Sequence[int], listed: Sequence[int], axis: int
) -> Array:
    """Returns indices without duplicates. Some are negative."""
    size = data[axis]
    line = np.argsort(rng.random([*listed[:axis], size, *listed[axis + 1 :]]), axis=axis)
    found = np.take(line, range(listed[axis]), axis=axis)
    return np.where(rng.random(found.shape) < 0.3, found - size, found)


def unique_nd_indices(
    rng: np.random.Generator, data: Sequence[int], depth: int, listed: Sequence[int]
) -> Array:
    """Returns tuples without duplicates. Some coordinates are negative."""
    sizes = np.array(data[:depth])
    count = int(np.prod(listed))
    flat = rng.permutation(int(np.prod(sizes)))[:count]
    found = np.stack(np.unravel_index(flat, tuple(sizes)), axis=-1).reshape(*listed, depth)
    return np.where(rng.random(found.shape) < 0.3, found - sizes, found)


def any_indices(rng: np.random.Generator, sizes: Any, shape: Sequence[int]) -> Array:
    """Returns random indices from `-size` to `size - 1`. They may contain duplicates."""
    sizes = np.asarray(sizes)
    return rng.integers(-sizes, sizes, tuple(shape), dtype=np.int64)
