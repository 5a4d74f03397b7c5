//! Scatters and gathers with the options that follow the published rules of one runtime.
//!
//! Each function returns a builder of a scatter or a gather. In most runtimes the reduction is an
//! attribute of the operator, so the caller sets the reduction of the builder. If a function sets
//! the reduction itself, the table lists the reduction as a set option.
//!
//! In everything that the table does not list, the rules of this crate apply. Updates of one
//! destination are applied in the row-major order of `indices`. Without a reduction the last update
//! of a destination stays. A call checks all shapes, options and indices before its first write
//! into existing memory.
//!
//! The column "set options" lists the options that a function sets on the builder. The column
//! "difference" lists how the runtime then still differs from this crate.
//!
//! | profile | set options | difference |
//! |---|---|---|
//! | [`onnx::scatter_nd`] | – | |
//! | [`onnx::scatter_elements`] | – | `Min` and `Max`: the ONNX reference drops a NaN update; here NaN propagates, as in ScatterND |
//! | [`onnx::scatter`] | – | |
//! | [`onnx::tensor_scatter`] | – | the circular mode of the ONNX reference wraps every coordinate; here only the position along the axis wraps, as in ONNX Runtime |
//! | [`onnx::gather_nd`], [`onnx::gather`], [`onnx::gather_elements`] | – | |
//! | [`openvino_3::scatter_nd_update`] | negative indices are errors | the specification leaves duplicates undefined; the implementation accepts negative indices since 2023 |
//! | [`openvino_3::scatter_update`] | negative indices are errors | the specification leaves the order of duplicates undefined |
//! | [`openvino_3::scatter_elements_update`] | negative indices are errors | the implementation accepts negative indices |
//! | [`openvino_12::scatter_elements_update`] | `include_self` is `use_init_val` | `Min` and `Max`: the specification has no rule for NaN. Integer means: here they round down, as in the specification; the CPU plugin truncates |
//! | [`openvino_15::scatter_nd_update`] | – | `Min` and `Max`: the specification drops a NaN update. Three results in its examples are wrong |
//! | [`openvino_8::gather_nd`] | – | OpenVINO broadcasts batch dims; here they must be equal |
//! | [`tensorflow::tensor_scatter_nd`] | negative indices are errors | the TensorFlow kernel may have written before it reports an error |
//! | [`tensorflow::scatter_nd`] | `Add`; negative indices are errors | the caller passes a tensor of zeros as `data` |
//! | [`tensorflow::unsorted_segment`] | negative indices are errors | TensorFlow drops negative ids, and ids beyond the end are errors. Empty segments keep `data` |
//! | [`torch::index_put`] | `Add` if `accumulate` | the caller broadcasts the indices |
//! | [`torch::index_add`], [`torch::index_copy`], [`torch::index_reduce`] | negative indices are errors; `index_add`: `Add`; `index_reduce`: `include_self` | the caller applies `alpha` |
//! | [`torch::scatter`] | negative indices are errors | torch leaves the order of duplicates undefined |
//! | [`torch::scatter_add`], [`torch::scatter_reduce`] | negative indices are errors; 16-bit floats are summed in `f32`; `scatter_add`: `Add`; `scatter_reduce`: `include_self` | without self, a sum of -0 alone is -0 here |
//! | [`torch::gather`], [`torch::index_select`] | negative indices are errors | |
//! | [`jax::at`] | indices out of bounds are skipped | JAX leaves the order of duplicates undefined |
//! | [`jax::scatter`] | negative indices are out of bounds; indices out of bounds are skipped | JAX leaves the order of duplicates undefined |
//! | [`jax::segment`] | negative indices are out of bounds; indices out of bounds are skipped | empty segments keep `data`, which the caller fills |
//! | [`stablehlo::scatter`] | negative indices are out of bounds; indices out of bounds are skipped | full windows only. `Min` and `Max` order -0 before +0 in StableHLO |
//! | [`stablehlo::gather`] | negative indices are out of bounds; indices out of bounds are clamped | full windows only |
//!
//! # Examples
//!
//! ```
//! use ndscatter::{ScatterError, TensorView, TensorViewMut, profile};
//!
//! let mut data = [1.0_f32, 2.0];
//! let result = profile::torch::index_add(0).in_place(
//!     TensorViewMut::from(&mut data),
//!     TensorView::from(&[-1_i64]),
//!     TensorView::from(&[5.0]),
//! );
//! assert!(matches!(result, Err(ScatterError::IndexOutOfBounds { index: -1, .. })));
//! ```

use super::gather::Gather;
use super::scatter::Scatter;
use crate::reduction::{Accumulate, Bounds, CacheMode, Reduction};

/// Operators of ONNX, opsets up to 24.
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

    /// TensorScatter 24. In ONNX, the default of `axis` is -2.
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

    /// ScatterElementsUpdate-12. `use_init_val` is the attribute of this name.
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

    /// `tensor_scatter_nd_update`, `_add`, `_sub`, `_min` and `_max`. The caller sets the
    /// reduction.
    pub fn tensor_scatter_nd() -> Scatter<'static> {
        Scatter::nd().negative_indices(false)
    }

    /// `scatter_nd`. The caller passes a tensor of zeros as `data`.
    pub fn scatter_nd() -> Scatter<'static> {
        tensor_scatter_nd().reduction(Reduction::Add)
    }

    /// `unsorted_segment_sum`, `_prod`, `_min` and `_max`. The caller sets the reduction.
    pub fn unsorted_segment() -> Scatter<'static> {
        Scatter::along(0).negative_indices(false)
    }
}

/// PyTorch.
pub mod torch {
    use super::{Accumulate, Gather, Reduction, Scatter};

    /// `index_put_`. The caller stacks the index tensors along a new last dim of `indices`. The
    /// index tensors address the first dims of `data`.
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

    /// `x.at[...]` and its methods, in the default mode, which drops updates out of bounds.
    pub fn at() -> Scatter<'static> {
        Scatter::nd().bounds(Bounds::Skip)
    }

    /// `lax.scatter` and its variants in mode `drop`. Only full windows are supported: a window has
    /// the full size of `data` along each dim of the window.
    pub fn scatter() -> Scatter<'static> {
        at().negative_indices(false)
    }

    /// `ops.segment_sum`, `_prod`, `_min` and `_max`. The caller sets the reduction.
    pub fn segment() -> Scatter<'static> {
        Scatter::along(0)
            .negative_indices(false)
            .bounds(Bounds::Skip)
    }
}

/// StableHLO. Only full windows are supported: a window has the full size of `data` along each dim
/// of the window.
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
