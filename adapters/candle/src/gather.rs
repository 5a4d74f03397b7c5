//! The builder of gathers, and the operator that candle runs.
//!
//! This module knows options and the order of candle's arguments.

use candle_core::{CpuStorage, CustomOp2, Error, Layout, Result, Shape, Tensor};
use ndscatter::{Bounds, Gather, Operator, ScatterError};

use crate::indices::{IndexRules, IndexTensor, Rule};
use crate::view::{Place, Values, for_values};

/// Name of the operator in candle's messages.
const NAME: &str = "nd-gather";

/// A gather and its options.
///
/// | function | elements that an index reads | shape of the result |
/// |---|---|---|
/// | [`nd`](Self::nd) | the slice at a tuple of coordinates | `indices.dims[..-1] ++ data.dims[batch_dims + k..]` |
/// | [`along`](Self::along) | the slice at a position along one axis | `data.dims[..axis] ++ indices.dims ++ data.dims[axis + 1..]` |
/// | [`elements`](Self::elements) | one element: the index replaces its position along one axis | `indices.dims` |
///
/// [`gather`](Self::gather) and [`index_select`](Self::index_select) make gathers with the index
/// rules of candle's methods of these names. The other functions make gathers with the rules of
/// ONNX. The page of [`ndscatter::Gather`] has the shape rules in full.
///
/// # Examples
///
/// ```
/// use candle_core::{Device, Tensor};
/// use ndscatter_candle::GatherOp;
///
/// let table = Tensor::new(&[[1_f32, 2.], [3., 4.]], &Device::Cpu)?;
/// let rows = Tensor::new(&[[-1_i64, 0], [1, 1]], &Device::Cpu)?;
/// let taken = GatherOp::along(0).apply(&table, &rows)?;
/// assert_eq!(taken.dims(), [2, 2, 2]);
/// assert_eq!(taken.get(0)?.to_vec2::<f32>()?, [[3., 4.], [1., 2.]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GatherOp {
    operator: Operator,
    rules: IndexRules,
}

/// Constructors.
impl GatherOp {
    fn of(operator: Operator) -> Self {
        Self {
            operator,
            rules: IndexRules::default(),
        }
    }

    /// Returns a gather of slices. The last dim of `indices` holds the `k` coordinates of a slice.
    /// The first `batch_dims` dims of `data` and `indices` are equal, and each index reads from its
    /// own position along them. This is ONNX GatherND.
    pub fn nd(batch_dims: usize) -> Self {
        Self::of(Operator::Nd { batch_dims })
    }

    /// Returns a gather of slices along one axis. `indices` may have any rank. This is ONNX Gather.
    pub fn along(axis: isize) -> Self {
        Self::of(Operator::Along { axis })
    }

    /// Returns a gather of single elements. Along each axis other than `axis`, `indices` is at most
    /// as long as `data`. This is ONNX GatherElements and torch `gather`.
    pub fn elements(axis: isize) -> Self {
        Self::of(Operator::Elements { axis })
    }

    /// Returns the gather of [`Tensor::gather`]: [`elements`](Self::elements) with
    /// [`zero_max`](Self::zero_max), and negative indices as errors.
    pub fn gather(dim: isize) -> Self {
        Self {
            rules: IndexRules::CANDLE,
            ..Self::elements(dim)
        }
    }

    /// Returns the gather of [`Tensor::index_select`]: [`along`](Self::along) with
    /// [`zero_max`](Self::zero_max), and negative indices as errors.
    pub fn index_select(dim: isize) -> Self {
        Self {
            rules: IndexRules::CANDLE,
            ..Self::along(dim)
        }
    }
}

/// Options and calls.
impl GatherOp {
    /// Sets whether negative indices count from the end of their axis. With `false`, every negative
    /// index is out of bounds.
    #[must_use]
    pub fn negative_indices(mut self, allowed: bool) -> Self {
        self.rules.negative = allowed;
        self
    }

    /// Sets the rule for an index outside its axis. The default is [`Bounds::Error`]. Under
    /// [`Bounds::Skip`], the result has zeros. The last call of this method and of
    /// [`zero_max`](Self::zero_max) counts.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.rules.bounds = Rule::Bounds(bounds);
        self
    }

    /// Gives zeros for each index that is the maximum of the index type, such as `u32::MAX`. Any
    /// other index outside its axis is an error. This is the rule of candle's CPU kernels.
    #[must_use]
    pub fn zero_max(mut self) -> Self {
        self.rules.bounds = Rule::SkipMax;
        self
    }

    /// Returns the gathered elements. The result has a gradient for `data`.
    ///
    /// # Errors
    ///
    /// An error about shapes, types or indices.
    pub fn apply(self, data: &Tensor, indices: &Tensor) -> Result<Tensor> {
        if data.track_op() {
            data.apply_op2(indices, self)
        } else {
            data.apply_op2_no_bwd(indices, &self)
        }
    }

    fn with_bounds(&self, bounds: Bounds) -> std::result::Result<Gather<'static>, ScatterError> {
        let gather = Gather::new(self.operator)?;
        Ok(gather.negative_indices(self.rules.negative).bounds(bounds))
    }

    fn index_tensor<'a>(
        &self,
        (storage, layout): (&'a CpuStorage, &'a Layout),
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

impl CustomOp2 for GatherOp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cpu_fwd(
        &self,
        data: &CpuStorage,
        data_layout: &Layout,
        indices: &CpuStorage,
        indices_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let place = Place::of(data_layout);
        let indices = self.index_tensor((indices, indices_layout), data_layout.dims());
        for_values!(data, NAME, (values, of) => {
            let data = place.view(values).map_err(Error::wrap)?;
            let result = indices.with(|bounds, indices| {
                self.with_bounds(bounds)?.allocate(data, indices)
            })?;
            let shape = Shape::from(result.shape());
            Ok((of(result.into_vec()), shape))
        })
    }

    fn bwd(
        &self,
        data: &Tensor,
        indices: &Tensor,
        _result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        if !data.track_op() {
            return Ok((None, None));
        }
        let op = GatherBackward {
            op: self,
            shape: data.shape(),
        };
        Ok((Some(gradient.apply_op2_no_bwd(indices, &op)?), None))
    }
}

/// The gradient of a gather for data, as an operator on the gradient of the result and the indices.
struct GatherBackward<'a> {
    op: &'a GatherOp,
    /// Shape of data.
    shape: &'a Shape,
}

impl GatherBackward<'_> {
    fn compute<T: Values>(
        &self,
        gradient: &[T],
        layout: &Layout,
        indices: (&CpuStorage, &Layout),
    ) -> Result<Vec<T>> {
        let (place, dims) = (Place::of(layout), self.shape.dims());
        let gradient = place.view(gradient).map_err(Error::wrap)?;
        let indices = self.op.index_tensor(indices, dims);
        let result = indices.with(|bounds, indices| {
            (self.op.with_bounds(bounds)?).backward(gradient, dims, indices, 1.0)
        })?;
        Ok(result.into_vec())
    }
}

impl CustomOp2 for GatherBackward<'_> {
    fn name(&self) -> &'static str {
        "nd-gather-backward"
    }

    fn cpu_fwd(
        &self,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
        indices: &CpuStorage,
        indices_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let result = for_values!(gradient, NAME, (values, of) => {
            self.compute(values, gradient_layout, (indices, indices_layout)).map(of)
        })?;
        Ok((result, self.shape.clone()))
    }
}
