#!/usr/bin/env python3
"""Moves the scatters of a model into the domain "ndscatter", whose operators the library has too.

    rewrite_domain.py in.onnx out.onnx

No model needs this as long as the library can take over the standard's operators. It is for a
host that does not allow that, and for options that only the library's own operators have. The
new model runs only in sessions that have the library. Needs the onnx package.
"""

import sys

import onnx
import onnx.inliner

DOMAIN = "ndscatter"
STANDARD = ("", "ai.onnx")
SCATTERS = ("ScatterND", "ScatterElements", "Scatter", "TensorScatter")


def bodies(node):
    """The graphs that a node holds, such as the body of a Loop."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def scatters(nodes):
    """The standard scatters among nodes, and in the graphs that they hold."""
    for node in nodes:
        if node.domain in STANDARD and node.op_type in SCATTERS:
            yield node
        for body in bodies(node):
            yield from scatters(body.node)


def rewrite_model(model):
    """The rewritten model, and how many of its nodes were scatters."""
    # Inside a function of a model, onnxruntime can tell types of the standard's operators alone.
    if any(list(scatters(function.node)) for function in model.functions):
        model = onnx.inliner.inline_local_functions(model)
    found = list(scatters(model.graph.node))
    for node in found:
        node.domain = DOMAIN
    opsets = model.opset_import
    if found and all(opset.domain != DOMAIN for opset in opsets):
        opsets.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return model, len(found)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: {sys.argv[0]} in.onnx out.onnx")
    source, target = sys.argv[1:]
    # Weights in files of their own stay there, so that `out.onnx` has to lie beside them.
    model = onnx.load(source, load_external_data=False)
    model, count = rewrite_model(model)
    onnx.save(model, target)
    print(f"{count} scatters are in the domain {DOMAIN}")


if __name__ == "__main__":
    main()
