//! The builder of scatters.
//!
//! This module knows options. It does not know how candle runs a scatter.

use candle_core::{CpuStorage, Layout, Result, Tensor};
use ndscatter::{Accumulate, Bounds, CacheMode, Operator, Reduction, Scatter};

use crate::indices::{IndexRules, IndexTensor, Rule};

/// Name of the operator in candle's messages.
pub(crate) const NAME: &str = "nd-scatter";

/// A scatter and its options.
///
/// | function | destination of an update | shape of updates |
/// |---|---|---|
/// | [`nd`](Self::nd) | the slice at a tuple of coordinates | `indices.dims[..-1] ++ data.dims[k..]` |
/// | [`along`](Self::along) | the slice at a position along one axis | `data.dims[..axis] ++ indices.dims ++ data.dims[axis + 1..]` |
/// | [`elements`](Self::elements) | one element: the index replaces its position along one axis | `indices.dims` |
/// | [`cache`](Self::cache) | rows of each sequence, from a start position on | `data.dims`, shorter along `axis` |
///
/// [`index_add`](Self::index_add), [`scatter`](Self::scatter) and
/// [`scatter_add`](Self::scatter_add) make scatters with the index rules of candle's methods of
/// these names. The other functions make scatters with the rules of ONNX. An `axis` below 0 counts
/// from the end. The page of [`ndscatter::Scatter`] has the shape rules in full.
///
/// [`apply`](Self::apply) returns a new tensor. [`apply_set`](Self::apply_set) writes into a tensor.
/// `tensor.apply_op3(&indices, &updates, op)` and `tensor.inplace_op3(&indices, &updates, &op)` do
/// the same.
///
/// # Examples
///
/// ```
/// use candle_core::{Device, Tensor};
/// use ndscatter_candle::{Reduction, ScatterOp};
///
/// let data = Tensor::new(&[[1_f32, 2.], [3., 4.]], &Device::Cpu)?;
/// let column = Tensor::new(&[-1_i64], &Device::Cpu)?;
/// let updates = Tensor::new(&[[10_f32], [20.]], &Device::Cpu)?;
/// let product = ScatterOp::along(1).reduction(Reduction::Mul);
/// let result = product.apply(&data, &column, &updates)?;
/// assert_eq!(result.to_vec2::<f32>()?, [[1., 20.], [3., 80.]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ScatterOp {
    operator: Operator,
    reduction: Reduction,
    include_self: bool,
    accumulate: Accumulate,
    rules: IndexRules,
}

/// Constructors.
impl ScatterOp {
    fn of(operator: Operator) -> Self {
        Self {
            operator,
            reduction: Reduction::None,
            include_self: true,
            accumulate: Accumulate::Native,
            rules: IndexRules::default(),
        }
    }

    /// Returns a scatter into slices. The last dim of `indices` holds the `k` coordinates of a
    /// slice. This is ONNX ScatterND.
    pub fn nd() -> Self {
        Self::of(Operator::Nd { batch_dims: 0 })
    }

    /// Returns a scatter into slices along one axis. `indices` may have any rank. This is OpenVINO
    /// ScatterUpdate, and torch `index_copy`, `index_add` and `index_reduce`.
    pub fn along(axis: isize) -> Self {
        Self::of(Operator::Along { axis })
    }

    /// Returns a scatter of single elements. The dims of `indices` and `updates` are equal. Along
    /// each axis other than `axis`, they are at most as long as `data`. This is ONNX
    /// ScatterElements and torch `scatter_reduce`.
    pub fn elements(axis: isize) -> Self {
        Self::of(Operator::Elements { axis })
    }

    /// Returns a write of new rows into a cache of keys or values. Axis 0 is the axis of the
    /// sequences, and `axis` is the axis of the positions. `indices` holds the start position of
    /// each sequence. Its shape is `[data.dims[0]]`, or `[]` for one start of all sequences. This
    /// is ONNX TensorScatter.
    ///
    /// In [`CacheMode::Linear`] the rows must fit between the start and the end of the axis. In
    /// [`CacheMode::Circular`] positions are taken modulo the length of the axis. A negative start
    /// is an error. With [`bounds`](Self::bounds)`(Bounds::Skip)`, the rows of a sequence with a
    /// negative start are skipped. A cache has no reduction.
    pub fn cache(axis: isize, mode: CacheMode) -> Self {
        Self::of(Operator::Cache {
            axis,
            mode,
            update_len: 1,
        })
    }

    /// Returns the scatter of [`Tensor::index_add`]: [`along`](Self::along) with
    /// [`Reduction::Add`], [`skip_max`](Self::skip_max), and negative indices as errors.
    pub fn index_add(dim: isize) -> Self {
        Self::along(dim)
            .reduction(Reduction::Add)
            .with_candle_indices()
    }

    /// Returns the scatter of [`Tensor::scatter`]: [`elements`](Self::elements) with
    /// [`skip_max`](Self::skip_max), and negative indices as errors.
    pub fn scatter(dim: isize) -> Self {
        Self::elements(dim).with_candle_indices()
    }

    /// Returns the scatter of [`Tensor::scatter_add`]: [`scatter`](Self::scatter) with
    /// [`Reduction::Add`].
    pub fn scatter_add(dim: isize) -> Self {
        Self::scatter(dim).reduction(Reduction::Add)
    }

    fn with_candle_indices(mut self) -> Self {
        self.rules = IndexRules::CANDLE;
        self
    }
}

/// Options.
impl ScatterOp {
    /// Sets how an update is combined with the value of its destination. The default is
    /// [`Reduction::None`], also for [`scatter`](Self::scatter): the update replaces the value.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }

    /// Sets whether the value of a destination takes part in a reduction. The default is `true`.
    /// With `false`, the first update of a destination replaces the value.
    #[must_use]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.include_self = include_self;
        self
    }

    /// Sets whether sums and products of 16-bit floats are computed in `f32` and rounded once. The
    /// default is `false`: each update is rounded, as in candle.
    #[must_use]
    pub fn wide_sums(mut self, wide: bool) -> Self {
        self.accumulate = if wide {
            Accumulate::Wide
        } else {
            Accumulate::Native
        };
        self
    }

    /// Sets whether negative indices count from the end of their axis. With `false`, every negative
    /// index is out of bounds. The starts of a cache never count from the end.
    #[must_use]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        self.rules.negative = allowed;
        self
    }

    /// Sets the rule for an index outside its axis. The default is [`Bounds::Error`]. The last call
    /// of this method and of [`skip_max`](Self::skip_max) counts.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.rules.bounds = Rule::Bounds(bounds);
        self
    }

    /// Skips each update whose index is the maximum of the index type, such as `u32::MAX`, and each
    /// tuple with such a coordinate. Any other index outside its axis is an error.
    ///
    /// This is the rule of candle's CPU kernels. As in candle, the maximum is never a position: 255
    /// in `u8` is skipped also if the axis has 256 or more elements.
    #[must_use]
    pub fn skip_max(mut self) -> Self {
        self.rules.bounds = Rule::SkipMax;
        self
    }
}

/// Calls.
impl ScatterOp {
    /// Returns a new tensor: `data` with the updates applied. The result has gradients for `data`
    /// and `updates`.
    ///
    /// # Errors
    ///
    /// An error about shapes, options, types or indices.
    pub fn apply(self, data: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        if data.track_op() || updates.track_op() {
            data.apply_op3(indices, updates, self)
        } else {
            data.apply_op3_no_bwd(indices, updates, &self)
        }
    }

    /// Applies the updates to `data` itself. `data` may be a view of another tensor. The call has no
    /// gradient.
    ///
    /// # Errors
    ///
    /// An error about shapes, options, types or indices. Also an error if elements of `data` share
    /// memory, or if `indices` or `updates` have the storage of `data`. After an error, `data` is
    /// unchanged.
    pub fn apply_set(self, data: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<()> {
        match data.inplace_op3(indices, updates, &self) {
            // candle refuses a target without elements, because of its strides of 0.
            Err(_) if data.elem_count() == 0 => {
                data.apply_op3_no_bwd(indices, updates, &self).map(drop)
            }
            result => result,
        }
    }

    /// Returns the scatter for a call with a rule for indices out of bounds.
    #[inline]
    pub(crate) fn with_bounds(
        &self,
        bounds: Bounds,
    ) -> std::result::Result<Scatter<'static>, ndscatter::ScatterError> {
        let scatter = Scatter::new(self.operator)?
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .negative_indices(self.rules.negative)
            .bounds(bounds);
        Ok(scatter)
    }

    /// Whether the gradient for data is the gradient of the result.
    pub(crate) fn passes_gradient(&self) -> bool {
        self.include_self && matches!(self.reduction, Reduction::Add | Reduction::Sub)
    }

    pub(crate) fn index_tensor<'a>(
        &self,
        storage: &'a CpuStorage,
        layout: &'a Layout,
        shape: &'a [usize],
    ) -> IndexTensor<'a> {
        IndexTensor {
            name: NAME,
            operator: self.operator,
            rules: self.rules,
            storage,
            layout,
            shape,
        }
    }
}
