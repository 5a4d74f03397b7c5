"""Scatter for CPUs: parallel, SIMD, and the same bits at every thread count.

- Operators for numpy arrays and arrays with ``__dlpack__``: the scatters `scatter_nd`,
  `scatter_update`, `scatter_elements` and `tensor_scatter`, and the gathers `gather_nd`,
  `gather` and `gather_elements`.
- Plans of all operators, for several calls with the same indices: `plan_scatter_nd` etc.
- Functions with numpy's rules: `add_at`, `subtract_at`, `multiply_at`, `minimum_at`,
  `maximum_at` and `bincount`.

`ndscatter.torch` registers the kernels under PyTorch's operators, and has operators with
gradients. `ndscatter.onnxruntime` has the library of custom operators for ONNX Runtime.
"""

from ._native import (
    GatherPlan,
    ScatterPlan,
    __version__,
    add_at,
    bincount,
    gather,
    gather_elements,
    gather_nd,
    instruction_set,
    machine,
    maximum_at,
    minimum_at,
    multiply_at,
    plan_gather,
    plan_gather_elements,
    plan_gather_nd,
    plan_scatter_elements,
    plan_scatter_nd,
    plan_scatter_update,
    plan_tensor_scatter,
    release_scratch,
    scatter_elements,
    scatter_nd,
    scatter_update,
    subtract_at,
    tensor_scatter,
    threads,
)

__all__ = [
    "GatherPlan",
    "ScatterPlan",
    "__version__",
    "add_at",
    "bincount",
    "gather",
    "gather_elements",
    "gather_nd",
    "instruction_set",
    "machine",
    "maximum_at",
    "minimum_at",
    "multiply_at",
    "plan_gather",
    "plan_gather_elements",
    "plan_gather_nd",
    "plan_scatter_elements",
    "plan_scatter_nd",
    "plan_scatter_update",
    "plan_tensor_scatter",
    "release_scratch",
    "scatter_elements",
    "scatter_nd",
    "scatter_update",
    "subtract_at",
    "tensor_scatter",
    "threads",
]
