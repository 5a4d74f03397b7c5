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


def all_nodes(nodes):
    """Yields `nodes`, and the nodes of the graphs that their attributes contain, at any depth."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from all_nodes(body.node)


def scatters(nodes):
    """Returns the scatters of the ONNX standard among `nodes` and in their bodies, at any depth."""
    return [
        node
        for node in all_nodes(nodes)
        if node.domain in STANDARD and node.op_type in SCATTERS
    ]


def new_name(node, taken):
    """Returns the name of a rewritten scatter. The name is not in `taken`."""
    name = first = f"{DOMAIN}/{node.name or node.output[0]}"
    number = 2
    while name in taken:
        name = f"{first}_{number}"
        number += 1
    return name


def rewrite_model(model):
    """Returns the rewritten model and the number of rewritten scatters."""
    # Inlines the model's local functions if one of them contains a scatter, because onnxruntime
    # infers types inside a local function only for the operators of the ONNX standard.
    if any(scatters(function.node) for function in model.functions):
        model = onnx.inliner.inline_local_functions(model)
    found = scatters(model.graph.node)
    taken = {node.name for node in all_nodes(model.graph.node)}
    for node in found:
        node.domain = DOMAIN
        # Profiles and logs of onnxruntime show the names of nodes, and do not show domains.
        # onnxruntime refuses a model if two of its nodes have the same name.
        node.name = new_name(node, taken)
        taken.add(node.name)
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
