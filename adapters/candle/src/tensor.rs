//! Methods of candle's tensors for frequent scatters.
//!
//! This module knows the operators by name. It does not know storages.

use candle_core::shape::Dim;
use candle_core::{Error, Result, Tensor};
use ndscatter::{CacheMode, Reduction};

use crate::gather::GatherOp;
use crate::scatter::ScatterOp;

/// Methods of [`Tensor`] that scatter and gather on ndscatter's kernels. As in candle, a name that
/// ends with `_set` writes into the tensor.
///
/// [`ScatterOp`] and [`GatherOp`] have the other operators and all options.
pub trait NdScatter {
    /// Returns the tensor with slices of `updates` applied at the tuples of coordinates in the last
    /// dim of `indices`. This is ONNX ScatterND: negative indices count from the end, and an index
    /// out of bounds is an error. The operator is [`ScatterOp::nd`].
    ///
    /// # Errors
    ///
    /// As [`ScatterOp::apply`].
    ///
    /// # Examples
    ///
    /// ```
    /// use candle_core::{Device, Tensor};
    /// use ndscatter_candle::{NdScatter, Reduction};
    ///
    /// let data = Tensor::new(&[[1_f32, 2., 3.], [4., 5., 6.]], &Device::Cpu)?;
    /// // The elements [0, 2] and [1, 0].
    /// let indices = Tensor::new(&[[0_i64, -1], [1, 0]], &Device::Cpu)?;
    /// let updates = Tensor::new(&[9_f32, 1.], &Device::Cpu)?;
    /// let result = data.nd_scatter(&indices, &updates, Reduction::Max)?;
    /// assert_eq!(result.to_vec2::<f32>()?, [[1., 2., 9.], [4., 5., 6.]]);
    /// # Ok::<(), candle_core::Error>(())
    /// ```
    fn nd_scatter(
        &self,
        indices: &Tensor,
        updates: &Tensor,
        reduction: Reduction,
    ) -> Result<Tensor>;

    /// Returns [`nd_scatter`](Self::nd_scatter) with [`Reduction::Add`].
    ///
    /// # Errors
    ///
    /// As [`ScatterOp::apply`].
    fn nd_scatter_add(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self.nd_scatter(indices, updates, Reduction::Add)
    }

    /// As [`nd_scatter`](Self::nd_scatter), in place.
    ///
    /// # Errors
    ///
    /// As [`ScatterOp::apply_set`].
    ///
    /// # Examples
    ///
    /// ```
    /// use candle_core::{DType, Device, Tensor};
    /// use ndscatter_candle::{NdScatter, Reduction};
    ///
    /// let counts = Tensor::zeros(4, DType::U32, &Device::Cpu)?;
    /// let keys = Tensor::new(&[[3_u8], [0], [3]], &Device::Cpu)?;
    /// let ones = Tensor::ones(1, DType::U32, &Device::Cpu)?.broadcast_as(3)?;
    /// counts.nd_scatter_set(&keys, &ones, Reduction::Add)?;
    /// assert_eq!(counts.to_vec1::<u32>()?, [1, 0, 0, 2]);
    /// # Ok::<(), candle_core::Error>(())
    /// ```
    fn nd_scatter_set(
        &self,
        indices: &Tensor,
        updates: &Tensor,
        reduction: Reduction,
    ) -> Result<()>;

    /// Returns what [`Tensor::index_add`] returns, also for strided tensors. The operator is
    /// [`ScatterOp::index_add`].
    ///
    /// # Errors
    ///
    /// As [`ScatterOp::apply`].
    fn nd_index_add<D: Dim>(&self, indices: &Tensor, updates: &Tensor, dim: D) -> Result<Tensor>;

    /// As [`nd_index_add`](Self::nd_index_add), in place.
    ///
    /// # Errors
    ///
    /// As [`ScatterOp::apply_set`].
    fn nd_index_add_set<D: Dim>(&self, indices: &Tensor, updates: &Tensor, dim: D) -> Result<()>;

    /// Writes new rows into a cache of keys or values, in place. Sequence `i` of the batch receives
    /// `updates[i]`, from position `starts[i]` along `dim` on. Rows that do not fit are an error.
    /// The operator is [`ScatterOp::cache`] with [`CacheMode::Linear`].
    ///
    /// # Errors
    ///
    /// As [`ScatterOp::apply_set`].
    ///
    /// # Examples
    ///
    /// ```
    /// use candle_core::{DType, Device, Tensor};
    /// use ndscatter_candle::NdScatter;
    ///
    /// // Two sequences of at most 3 positions, with one head of size 1.
    /// let keys = Tensor::zeros((2, 1, 3, 1), DType::F32, &Device::Cpu)?;
    /// let (starts, new) = (Tensor::new(&[2_u32, 0], &Device::Cpu)?, Tensor::new(&[7_f32, 8.], &Device::Cpu)?);
    /// keys.nd_cache_set(&starts, &new.reshape((2, 1, 1, 1))?, 2)?;
    /// assert_eq!(keys.flatten_all()?.to_vec1::<f32>()?, [0., 0., 7., 8., 0., 0.]);
    /// # Ok::<(), candle_core::Error>(())
    /// ```
    fn nd_cache_set<D: Dim>(&self, starts: &Tensor, updates: &Tensor, dim: D) -> Result<()>;

    /// Returns the slices at the tuples of coordinates in the last dim of `indices`. This is ONNX
    /// GatherND. The operator is [`GatherOp::nd`].
    ///
    /// # Errors
    ///
    /// As [`GatherOp::apply`].
    ///
    /// # Examples
    ///
    /// ```
    /// use candle_core::{Device, Tensor};
    /// use ndscatter_candle::NdScatter;
    ///
    /// let data = Tensor::new(&[[1_f32, 2.], [3., 4.]], &Device::Cpu)?;
    /// let elements = data.nd_gather(&Tensor::new(&[[0_u32, 1], [1, 0]], &Device::Cpu)?)?;
    /// assert_eq!(elements.to_vec1::<f32>()?, [2., 3.]);
    /// # Ok::<(), candle_core::Error>(())
    /// ```
    fn nd_gather(&self, indices: &Tensor) -> Result<Tensor>;
}

impl NdScatter for Tensor {
    fn nd_scatter(
        &self,
        indices: &Tensor,
        updates: &Tensor,
        reduction: Reduction,
    ) -> Result<Tensor> {
        ScatterOp::nd()
            .reduction(reduction)
            .apply(self, indices, updates)
    }

    fn nd_scatter_set(
        &self,
        indices: &Tensor,
        updates: &Tensor,
        reduction: Reduction,
    ) -> Result<()> {
        ScatterOp::nd()
            .reduction(reduction)
            .apply_set(self, indices, updates)
    }

    fn nd_index_add<D: Dim>(&self, indices: &Tensor, updates: &Tensor, dim: D) -> Result<Tensor> {
        ScatterOp::index_add(axis(self, dim)?).apply(self, indices, updates)
    }

    fn nd_index_add_set<D: Dim>(&self, indices: &Tensor, updates: &Tensor, dim: D) -> Result<()> {
        ScatterOp::index_add(axis(self, dim)?).apply_set(self, indices, updates)
    }

    fn nd_cache_set<D: Dim>(&self, starts: &Tensor, updates: &Tensor, dim: D) -> Result<()> {
        ScatterOp::cache(axis(self, dim)?, CacheMode::Linear).apply_set(self, starts, updates)
    }

    fn nd_gather(&self, indices: &Tensor) -> Result<Tensor> {
        GatherOp::nd(0).apply(self, indices)
    }
}

/// Returns the number of an axis.
fn axis(tensor: &Tensor, dim: impl Dim) -> Result<isize> {
    let axis = dim.to_index(tensor.shape(), "nd-scatter")?;
    isize::try_from(axis).map_err(Error::wrap)
}
