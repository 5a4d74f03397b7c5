"""Writes ONNX's conformance cases as plain files, one folder per case.

    pip install onnx==1.23.2 numpy==2.4.6
    python generate.py [OPERATOR ...]        (default: all of OPERATORS)

The cases come from `onnx.backend.test.case.node`, the generator of ONNX's
backend tests. This script computes no values. README.md describes the format.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case import node as cases

ONNX_VERSION = "1.23.2"
OPERATORS = [
    "ScatterND",
    "ScatterElements",
    "Scatter",
    "TensorScatter",
    "GatherND",
    "Gather",
    "GatherElements",
]
HERE = Path(__file__).resolve().parent


def collect(op):
    """Returns the cases of one operator. Importing its module creates them."""
    np.random.seed(0)  # some operators draw their inputs with numpy
    importlib.import_module(f"{cases.__name__}.{op.lower()}")
    return [case for case in cases._NodeTestCases if is_single(case, op)]


def is_single(case, op):
    """Returns False for variants that ONNX expands into other operators."""
    return [node.op_type for node in case.model.graph.node] == [op]


def attributes(node, schema):
    """Yields every attribute of the operator: the node's value, else the default."""
    stated = {a.name: a for a in node.attribute}
    for name, definition in sorted(schema.attributes.items()):
        value = onnx.helper.get_attribute_value(
            stated.get(name, definition.default_value)
        )
        yield name, value.decode() if isinstance(value, bytes) else value


def tensors(names, parameters, values):
    """Yields the tensors with the operator's names, without omitted optional ones."""
    given = [p.name for name, p in zip(names, parameters) if name]
    for name, value in zip(given, values, strict=True):
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        array = np.asarray(value, order="C")
        if array.dtype.kind not in "biufc":
            sys.exit(f"{name}: the .npy format does not support {array.dtype}")
        yield name, array


def write(case):
    """Writes the tensors of a case and its `case.txt`."""
    (node,) = case.model.graph.node
    (opset,) = (o.version for o in case.model.opset_import if o.domain == "")
    schema = onnx.defs.get_schema(node.op_type, opset)
    ((inputs, outputs),) = case.data_sets

    folder = HERE / case.name
    folder.mkdir(exist_ok=True)
    lines = [f"op = {node.op_type}", f"opset = {opset}"]
    lines += [f"{name} = {value}" for name, value in attributes(node, schema)]
    for role, found in [
        ("input", tensors(node.input, schema.inputs, inputs)),
        ("output", tensors(node.output, schema.outputs, outputs)),
    ]:
        for name, array in found:
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
            lines.append(f"{role}.{name} = {array.dtype} {list(array.shape)}")
    (folder / "case.txt").write_text("\n".join(lines) + "\n", newline="\n")
    print(case.name)


if __name__ == "__main__":
    if onnx.__version__ != ONNX_VERSION:
        sys.exit(f"needs onnx {ONNX_VERSION}, found {onnx.__version__}")
    for op in sys.argv[1:] or OPERATORS:
        for case in collect(op):
            write(case)
