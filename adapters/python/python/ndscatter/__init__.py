"""Scatter for CPUs: parallel, SIMD, and the same bits at every thread count.

- Scatters of numpy arrays and of arrays with ``__dlpack__``: `scatter_nd`, `scatter_update`,
  `scatter_elements` and `tensor_scatter`.
- Gathers of the same arrays: `gather_nd`, `gather` and `gather_elements`.
- Writes of slots of paged caches, which convert, and moves of rows, in place: `write_paged`,
  `write_all`, `gather_paged` and `move_rows`.
- A function per operator that makes a plan, such as `plan_scatter_nd`. A plan serves several
  calls with the same indices.
- Functions with numpy's rules: `add_at`, `subtract_at`, `multiply_at`, `minimum_at`,
  `maximum_at` and `bincount`.
- `plan_sharded` splits a scatter or a gather by the owners of rows, for tables whose rows are
  divided among processes.
- `explain` reports how a call would run.

The package has these submodules. They are imported at their first use:

- `ndscatter.torch` can replace kernels of PyTorch's own operators, and has separate operators with
  gradients. It requires PyTorch.
- `ndscatter.distributed` has tables whose rows are divided among the ranks of a process group of
  PyTorch. It requires PyTorch.
- `ndscatter.onnxruntime` runs the scatters of ONNX Runtime's models on ndscatter: `enable`, `runs`.
- `ndscatter.ray` has tables whose rows are divided among actors of Ray. It requires Ray.
- `ndscatter.openvino` adds operators to OpenVINO. It is part of the separate package
  ndscatter-openvino.

``python -m ndscatter`` prints the versions, tests the installation and compares it with numpy.
"""

from typing import Any

from ._explain import explain
from ._native import (
    Explanation,
    GatherPlan,
    ScatterPlan,
    ShardedPlan,
    Sharding,
    Write,
    __version__,
    add_at,
    bincount,
    gather,
    gather_elements,
    gather_nd,
    gather_paged,
    instruction_set,
    machine,
    maximum_at,
    minimum_at,
    move_rows,
    multiply_at,
    plan_gather,
    plan_gather_elements,
    plan_gather_nd,
    plan_gather_paged,
    plan_scatter_elements,
    plan_scatter_nd,
    plan_scatter_paged,
    plan_scatter_update,
    plan_sharded,
    plan_tensor_scatter,
    release_scratch,
    scatter_elements,
    scatter_nd,
    scatter_update,
    subtract_at,
    tensor_scatter,
    threads,
    write_all,
    write_paged,
)

__all__ = [
    "Explanation",
    "GatherPlan",
    "ScatterPlan",
    "ShardedPlan",
    "Sharding",
    "Write",
    "__version__",
    "add_at",
    "bincount",
    "explain",
    "gather",
    "gather_elements",
    "gather_nd",
    "gather_paged",
    "instruction_set",
    "machine",
    "maximum_at",
    "minimum_at",
    "move_rows",
    "multiply_at",
    "plan_gather",
    "plan_gather_elements",
    "plan_gather_nd",
    "plan_gather_paged",
    "plan_scatter_elements",
    "plan_scatter_nd",
    "plan_scatter_paged",
    "plan_scatter_update",
    "plan_sharded",
    "plan_tensor_scatter",
    "release_scratch",
    "scatter_elements",
    "scatter_nd",
    "scatter_update",
    "subtract_at",
    "tensor_scatter",
    "threads",
    "write_all",
    "write_paged",
]

_SUBMODULES = ("distributed", "onnxruntime", "openvino", "ray", "torch")


def __getattr__(name: str) -> Any:
    """Import a submodule when the program uses it as an attribute of the package."""
    if name in _SUBMODULES:
        from importlib import import_module

        try:
            return import_module(f"{__name__}.{name}")
        except ImportError as error:
            # `hasattr` returns False only for an AttributeError.
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {error}") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
