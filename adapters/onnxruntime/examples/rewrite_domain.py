#!/usr/bin/env python3
"""Moves the scatters of a model from ONNX's standard domain to the library's domain "ndscatter".

    rewrite_domain.py in.onnx out.onnx

Rewrite a model only in one of two cases. In the first case, the host does not let the library
replace the operators of the ONNX standard. In the second case, you want to use attributes that only
the operators of the domain "ndscatter" have. The rewritten model runs only in sessions that have
registered the library. The script requires the onnx package.
"""

import sys

import onnx
import onnx.inliner

DOMAIN = "ndscatter"
STANDARD = ("", "ai.onnx")
SCATTERS = ("ScatterND", "ScatterElements", "Scatter", "TensorScatter")


def bodies(node):
    """Yields the graphs in the attributes of a node, such as the body of a Loop."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def scatters(nodes):
    """Yields the scatters of the ONNX standard among `nodes`. Also yields the scatters of the ONNX
    standard in the graphs that the attributes of `nodes` contain, at any depth."""
    for node in nodes:
        if node.domain in STANDARD and node.op_type in SCATTERS:
            yield node
        for body in bodies(node):
            yield from scatters(body.node)


def rewrite_model(model):
    """Returns the rewritten model and the number of rewritten scatters."""
    # Inlines the model's local functions if one of them contains a scatter, because onnxruntime
    # infers types inside a local function only for the operators of the ONNX standard.
    if any(list(scatters(function.node)) for function in model.functions):
        model = onnx.inliner.inline_local_functions(model)
    found = list(scatters(model.graph.node))
    for number, node in enumerate(found):
        node.domain = DOMAIN
        # Profiles and logs of onnxruntime show the names of nodes, and do not show domains.
        node.name = f"{DOMAIN}/{node.name or number}"
    opsets = model.opset_import
    if found and all(opset.domain != DOMAIN for opset in opsets):
        opsets.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return model, len(found)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: {sys.argv[0]} in.onnx out.onnx")
    source, target = sys.argv[1:]
    # The script does not copy the files of external weights. The paths of these files are relative
    # to the model, so `out.onnx` must be in the folder of `in.onnx`.
    model = onnx.load(source, load_external_data=False)
    model, count = rewrite_model(model)
    onnx.save(model, target)
    print(f"moved {count} scatters to the domain {DOMAIN}")


if __name__ == "__main__":
    main()
