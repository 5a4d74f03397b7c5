//! The options that make an operator follow one runtime's published rules.
//!
//! Each function returns the operator with those options set. Reductions are the
//! caller's, as they are attributes there, but where the name says one. What is
//! not named below is as
//! everywhere in this crate: duplicates in order, the last one stays without a
//! reduction, everything checked before the first write.
//!
//! | profile | changes | differs |
//! |---|---|---|
//! | [`onnx::scatter_nd`] | – | |
//! | [`onnx::scatter_elements`] | – | the reference drops a NaN update of min and max; here it propagates, as in ScatterND |
//! | [`onnx::scatter`] | – | |
//! | [`onnx::tensor_scatter`] | – | the reference's circular mode wraps every coordinate; here the axis alone, as in ONNX Runtime |
//! | [`onnx::gather_nd`], [`onnx::gather`], [`onnx::gather_elements`] | – | |
//! | [`openvino_3::scatter_nd_update`] | negative indices are errors | the page leaves duplicates undefined; the code has taken negative indices since 2023 |
//! | [`openvino_3::scatter_update`] | negative indices are errors | the page leaves the order of duplicates undefined |
//! | [`openvino_3::scatter_elements_update`] | negative indices are errors | the code takes negative indices |
//! | [`openvino_12::scatter_elements_update`] | – | min and max: the page has no rule for NaN; integer means round down, as the page says, the CPU plugin truncates |
//! | [`openvino_15::scatter_nd_update`] | – | min and max: the text drops a NaN update; three results on the page are wrong |
//! | [`openvino_8::gather_nd`] | – | batch dims broadcast there; here they must be the same |
//! | [`tensorflow::tensor_scatter_nd`] | negative indices are errors | the kernel may have written before it reports one |
//! | [`tensorflow::scatter_nd`] | add; negative indices are errors | `data` is a tensor of zeros, given by the caller |
//! | [`tensorflow::unsorted_segment`] | negative indices are errors | there they are dropped, and ids beyond the end are errors; empty segments keep `data` |
//! | [`torch::index_put`] | add, with `accumulate` | broadcasting is the caller's |
//! | [`torch::index_add`], [`torch::index_copy`], [`torch::index_reduce`] | negative indices are errors; `index_add`: add | `alpha` is the caller's |
//! | [`torch::scatter`] | negative indices are errors | the order of duplicates is undefined there |
//! | [`torch::scatter_add`], [`torch::scatter_reduce`] | `scatter_add`: add; negative indices are errors; 16-bit floats are summed in `f32` | a sum of only -0 without self is -0 here |
//! | [`torch::gather`], [`torch::index_select`] | negative indices are errors | |
//! | [`jax::at`] | indices out of bounds are skipped | the order of duplicates is undefined there |
//! | [`jax::scatter`] | negative indices are out of bounds; those are skipped | as above |
//! | [`jax::segment`] | as `jax::scatter` | empty segments keep `data`, which the caller fills |
//! | [`stablehlo::scatter`] | as `jax::scatter` | full windows only; min and max order -0 before +0 there |
//! | [`stablehlo::gather`] | negative indices are out of bounds; those are clamped | full windows only |

use super::gather::Gather;
use super::scatter::Scatter;
use crate::reduction::{Accumulate, Bounds, CacheMode, Reduction};

/// ONNX, opsets up to 24.
pub mod onnx {
    use super::{CacheMode, Gather, Scatter};

    /// ScatterND 11 to 18.
    pub fn scatter_nd() -> Scatter<'static> {
        Scatter::nd()
    }

    /// ScatterElements 11 to 18.
    pub fn scatter_elements(axis: isize) -> Scatter<'static> {
        Scatter::elements(axis)
    }

    /// Scatter 9 and 11.
    pub fn scatter(axis: isize) -> Scatter<'static> {
        Scatter::elements(axis)
    }

    /// TensorScatter 24; its default axis is -2.
    pub fn tensor_scatter(axis: isize, mode: CacheMode) -> Scatter<'static> {
        Scatter::cache(axis, mode)
    }

    /// GatherND 11 to 13.
    pub fn gather_nd(batch_dims: usize) -> Gather<'static> {
        Gather::nd(batch_dims)
    }

    /// Gather 1 to 13.
    pub fn gather(axis: isize) -> Gather<'static> {
        Gather::along(axis)
    }

    /// GatherElements 11 to 13.
    pub fn gather_elements(axis: isize) -> Gather<'static> {
        Gather::elements(axis)
    }
}

/// OpenVINO opset 3.
pub mod openvino_3 {
    use super::Scatter;

    /// ScatterNDUpdate-3.
    pub fn scatter_nd_update() -> Scatter<'static> {
        Scatter::nd().negative_indices(false)
    }

    /// ScatterUpdate-3.
    pub fn scatter_update(axis: isize) -> Scatter<'static> {
        Scatter::along(axis).negative_indices(false)
    }

    /// ScatterElementsUpdate-3.
    pub fn scatter_elements_update(axis: isize) -> Scatter<'static> {
        Scatter::elements(axis).negative_indices(false)
    }
}

/// OpenVINO opset 8.
pub mod openvino_8 {
    use super::Gather;

    /// GatherND-8.
    pub fn gather_nd(batch_dims: usize) -> Gather<'static> {
        Gather::nd(batch_dims)
    }
}

/// OpenVINO opset 12.
pub mod openvino_12 {
    use super::Scatter;

    /// ScatterElementsUpdate-12, with its `use_init_val`.
    pub fn scatter_elements_update(axis: isize, use_init_val: bool) -> Scatter<'static> {
        Scatter::elements(axis).include_self(use_init_val)
    }
}

/// OpenVINO opset 15.
pub mod openvino_15 {
    use super::Scatter;

    /// ScatterNDUpdate-15.
    pub fn scatter_nd_update() -> Scatter<'static> {
        Scatter::nd()
    }
}

/// TensorFlow.
pub mod tensorflow {
    use super::{Reduction, Scatter};

    /// `tensor_scatter_nd_update`, `_add`, `_sub`, `_min` and `_max`.
    pub fn tensor_scatter_nd() -> Scatter<'static> {
        Scatter::nd().negative_indices(false)
    }

    /// `scatter_nd`, into zeros.
    pub fn scatter_nd() -> Scatter<'static> {
        tensor_scatter_nd().reduction(Reduction::Add)
    }

    /// `unsorted_segment_sum`, `_prod`, `_min` and `_max`.
    pub fn unsorted_segment() -> Scatter<'static> {
        Scatter::along(0).negative_indices(false)
    }
}

/// PyTorch.
pub mod torch {
    use super::{Accumulate, Gather, Reduction, Scatter};

    /// `index_put_`, of leading indices that were stacked along a last dim.
    pub fn index_put(accumulate: bool) -> Scatter<'static> {
        Scatter::nd().reduction(if accumulate {
            Reduction::Add
        } else {
            Reduction::None
        })
    }

    /// `index_add_`.
    pub fn index_add(dim: isize) -> Scatter<'static> {
        index_copy(dim).reduction(Reduction::Add)
    }

    /// `index_copy_`.
    pub fn index_copy(dim: isize) -> Scatter<'static> {
        Scatter::along(dim).negative_indices(false)
    }

    /// `index_reduce_`.
    pub fn index_reduce(dim: isize, include_self: bool) -> Scatter<'static> {
        index_copy(dim).include_self(include_self)
    }

    /// `scatter_`.
    pub fn scatter(dim: isize) -> Scatter<'static> {
        Scatter::elements(dim).negative_indices(false)
    }

    /// `scatter_add_`.
    pub fn scatter_add(dim: isize) -> Scatter<'static> {
        scatter_reduce(dim, true).reduction(Reduction::Add)
    }

    /// `scatter_reduce_`.
    pub fn scatter_reduce(dim: isize, include_self: bool) -> Scatter<'static> {
        scatter(dim)
            .include_self(include_self)
            .accumulate(Accumulate::Wide)
    }

    /// `gather`.
    pub fn gather(dim: isize) -> Gather<'static> {
        Gather::elements(dim).negative_indices(false)
    }

    /// `index_select`.
    pub fn index_select(dim: isize) -> Gather<'static> {
        Gather::along(dim).negative_indices(false)
    }
}

/// JAX.
pub mod jax {
    use super::{Bounds, Scatter};

    /// `x.at[...]` and its methods, in their default mode.
    pub fn at() -> Scatter<'static> {
        Scatter::nd().bounds(Bounds::Skip)
    }

    /// `lax.scatter` and its kin in mode `drop`, with full windows.
    pub fn scatter() -> Scatter<'static> {
        at().negative_indices(false)
    }

    /// `ops.segment_sum`, `_prod`, `_min` and `_max`.
    pub fn segment() -> Scatter<'static> {
        Scatter::along(0)
            .negative_indices(false)
            .bounds(Bounds::Skip)
    }
}

/// StableHLO, with windows that span their dims.
pub mod stablehlo {
    use super::{Bounds, Gather, Scatter};

    /// `scatter`.
    pub fn scatter() -> Scatter<'static> {
        Scatter::nd().negative_indices(false).bounds(Bounds::Skip)
    }

    /// `gather`.
    pub fn gather() -> Gather<'static> {
        Gather::nd(0).negative_indices(false).bounds(Bounds::Clamp)
    }
}
