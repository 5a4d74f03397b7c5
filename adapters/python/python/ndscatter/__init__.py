"""Scatter for CPUs: parallel, SIMD, and the same bits at every thread count.

By name, for arrays of numpy and whatever has ``__dlpack__``: `scatter_nd`,
`scatter_update`, `scatter_elements`, `tensor_scatter`, the gathers `gather_nd`, `gather`
and `gather_elements`, plans of each, and `add_at`, `subtract_at`, `multiply_at`,
`minimum_at`, `maximum_at` and `bincount` with the rules of numpy's.

`ndscatter.onnxruntime` has the library that puts the kernels under the operators of ONNX
Runtime.
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
