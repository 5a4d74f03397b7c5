"""Runs the scatter operators of OpenVINO's models on ndscatter's kernels. The models do not change.

>>> import openvino as ov
>>> import ndscatter.openvino
>>> core = ov.Core()
>>> ndscatter.openvino.enable(core)

Every model that ``core`` reads afterwards uses the kernels. Models that are not read from a file, for example
models that were converted from PyTorch, need :func:`replace`.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import openvino
from openvino.utils.node_factory import NodeFactory

from ._built_with import OPENVINO

__all__ = ["enable", "library_path", "replace", "runs"]

# The operators of OpenVINO that have a replacement: name, versions, and the name of the replacement.
_REPLACEMENTS = {
    (name, version): f"ndscatter.{name}"
    for name, versions in {
        "ScatterNDUpdate": ("opset4", "opset15"),
        "ScatterUpdate": ("opset3",),
        "ScatterElementsUpdate": ("opset3", "opset12"),
        "GatherND": ("opset8",),
        "GatherElements": ("opset6",),
    }.items()
    for version in versions
}


def library_path() -> str:
    """Return the path of the extension, for ``Core.add_extension`` and ``ov_core_add_extension``.

    Raises
    ------
    ImportError
        The installed OpenVINO is not the release that the extension was built with.
    """
    found = openvino.get_version().split("-")[0]
    if not f"{found}.".startswith(f"{OPENVINO}."):
        raise ImportError(
            f"ndscatter-openvino was built with OpenVINO {OPENVINO}, and OpenVINO {found} is installed; "
            "build it again: pip install --no-build-isolation --force-reinstall ./adapters/openvino"
        )
    for path in Path(__file__).parent.glob("*ndscatter_openvino.*"):
        return str(path)
    raise ImportError("the package ndscatter-openvino has no library; install it again")


def enable(core: openvino.Core) -> None:
    """Make all models that ``core`` reads later use ndscatter's kernels.

    The device must be a CPU, because other devices do not run operators of extensions. A second call with the
    same core changes nothing.
    """
    core.add_extension(library_path())


def runs() -> dict[str, int]:
    """Return the number of successful runs of each operator on ndscatter's kernels.

    The numbers count the runs of all models since the process began. A node that OpenVINO computes while it
    reads or compiles a model (constant folding) counts too. An operator that stays 0 while its model runs is
    computed by OpenVINO's own kernel.
    """
    count = ctypes.CDLL(library_path()).ndscatter_openvino_runs
    count.restype = ctypes.c_uint64
    names = dict.fromkeys(name for name, _ in _REPLACEMENTS)
    return {name: count(name.encode()) for name in (*names, "TensorScatter")}


def replace(model: openvino.Model) -> int:
    """Replace the scatters and gathers of a model. Return the number of replaced operators.

    Use this function for models that were not read by a ``Core`` with the extension: converted models of
    PyTorch, TensorFlow and JAX, and models that a program makes. The model changes in place. Operators that
    compute shapes, and small operators, stay. The bodies of If, Loop and TensorIterator change too.
    """
    factory = NodeFactory("opset15")
    factory.add_extension(library_path())
    return _replace(model, factory)


def _bodies(node: openvino.Node) -> list[openvino.Model]:
    """Return the models in an If, a Loop or a TensorIterator."""
    if node.get_type_name() == "If":
        return [node.get_then_body(), node.get_else_body()]
    return [node.get_function()] if hasattr(node, "get_function") else []


def _replace(model: openvino.Model, factory: NodeFactory) -> int:
    replaced = 0
    for node in model.get_ordered_ops():
        replaced += sum(_replace(body, factory) for body in _bodies(node))
        kind = node.get_type_info()
        name = _REPLACEMENTS.get((kind.name, kind.version_id))
        if name is None:
            continue
        inputs = [node.input_value(number) for number in range(node.get_input_size())]
        new = factory.create(name, inputs, node.get_attributes())
        if new.get_type_name() != name:
            continue
        new.set_friendly_name(node.get_friendly_name())
        # OpenVINO's Python interface writes only texts and integers.
        for key, kept in node.get_rt_info().items():
            if isinstance(kept.value, (str, int)):
                new.get_rt_info()[key] = kept.value
        new.output(0).get_tensor().set_names(node.output(0).get_tensor().get_names())
        for reader in list(node.output(0).get_target_inputs()):
            reader.replace_source_output(new.output(0))
        replaced += 1
    model.validate_nodes_and_infer_types()
    return replaced
