//! The method of burn's tensors, and the route from a tensor to its backend.
//!
//! burn's tensors know their backend at run time. This module knows the variants of such tensors. It
//! does not know their memory.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{BalancedCheckpointing, NoCheckpointing};
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, TensorMetadata};
use burn_dispatch::{
    BackendTensor, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
    GradientCheckpointingStrategy,
};
use burn_flex::Flex;
use burn_tensor::kind::Basic;
use burn_tensor::{Int, Tensor};
use ndscatter::Scatter;

use crate::{Error, ScatterBackend};

/// Scatters of burn's tensors: floats, integers and booleans on devices of the backend Flex, with or
/// without autodiff.
pub trait NdScatter<K: Basic>: Sized {
    /// Returns the tensor with `updates` applied at the positions that `indices` gives.
    ///
    /// `scatter` states which positions an index addresses, how an update is combined with the
    /// existing value, and the shape of `updates`
    /// ([`Scatter::updates_shape`](ndscatter::Scatter::updates_shape)). Updates of one destination
    /// are applied in the row-major order of `indices`. Without a reduction the last one stays. The
    /// number of threads does not change the bits of the result. `indices` may have any integer type
    /// of 8 to 64 bits. Tensors may have any strides.
    ///
    /// The result has the memory of the tensor if no other tensor has this memory. Otherwise the
    /// result is a new tensor.
    ///
    /// If the tensor or `updates` are on an autodiff device, burn's `backward` computes the
    /// gradients by the rules of [`Scatter::backward_into`]. The gradients of `Mul`, `Min` and `Max`
    /// read data, so these scatters allocate their result if a gradient is required. The backward
    /// pass panics if an allocation fails, because burn has no error for it.
    ///
    /// # Errors
    ///
    /// - [`Error::Scatter`] for wrong shapes, an option that the operator does not have, an index
    ///   out of bounds, or an allocation that failed.
    /// - [`Error::Backend`] for a tensor of another backend, and [`Error::DType`] for quantised
    ///   floats.
    /// - [`Error::Checkpointing`] if the strategies for gradient checkpointing differ.
    ///
    /// A clone of the tensor that was made before the call is unchanged.
    ///
    /// # Examples
    ///
    /// The largest message of each node of a graph, with its gradient:
    ///
    /// ```
    /// use burn_tensor::{Device, Int, Tensor};
    /// use ndscatter_burn::{NdScatter, Reduction, Scatter};
    ///
    /// let device = Device::flex().autodiff();
    /// let messages = Tensor::<2>::from_floats([[3.0], [5.0], [4.0]], &device).require_grad();
    /// let nodes = Tensor::<1, Int>::from_ints([1, 0, 1], &device);
    /// let none = Tensor::<2>::zeros([2, 1], &device);
    ///
    /// let largest = Scatter::along(0).reduction(Reduction::Max).include_self(false);
    /// let output = none.nd_scatter(&largest, nodes, messages.clone())?;
    /// assert_eq!(output.to_data().try_to_vec::<f32>()?, [5.0, 4.0]);
    ///
    /// let gradient = messages.grad(&output.sum().backward()).expect("a gradient");
    /// assert_eq!(gradient.to_data().try_to_vec::<f32>()?, [0.0, 1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "select_assign")]
    #[doc(alias = "scatter_nd")]
    #[doc(alias = "index_add")]
    fn nd_scatter<const I: usize, const U: usize>(
        self,
        scatter: &Scatter<'_>,
        indices: Tensor<I, Int>,
        updates: Tensor<U, K>,
    ) -> Result<Self, Error>;
}

impl<const D: usize, K: Basic> NdScatter<K> for Tensor<D, K> {
    fn nd_scatter<const I: usize, const U: usize>(
        self,
        scatter: &Scatter<'_>,
        indices: Tensor<I, Int>,
        updates: Tensor<U, K>,
    ) -> Result<Self, Error> {
        let (data, updates) = (self.into_dispatch(), updates.into_dispatch());
        let output = dispatch(scatter, data, indices.into_dispatch(), updates)?;
        Ok(Self::from_dispatch(output))
    }
}

/// Scatters on the backend of the tensors.
fn dispatch(
    scatter: &Scatter<'_>,
    data: DispatchTensor,
    indices: DispatchTensor,
    updates: DispatchTensor,
) -> Result<DispatchTensor, Error> {
    let autodiff = merged([data.autodiff, indices.autodiff, updates.autodiff])?;
    let (data, updates) = (flex(data, "data")?, flex(updates, "updates")?);
    let BackendTensor::Int(indices) = flex(indices, "indices")? else {
        return Err(Error::Backend { tensor: "indices" });
    };
    let output = match (data, updates) {
        (BackendTensor::Int(data), BackendTensor::Int(updates)) => {
            BackendTensor::Int(Flex::int_nd_scatter(scatter, data, indices, updates)?)
        }
        (BackendTensor::Bool(data), BackendTensor::Bool(updates)) => {
            BackendTensor::Bool(Flex::bool_nd_scatter(scatter, data, indices, updates)?)
        }
        (BackendTensor::Float(data), BackendTensor::Float(updates))
            if autodiff == DispatchAutodiffContext::Disabled =>
        {
            BackendTensor::Float(Flex::float_nd_scatter(scatter, data, indices, updates)?)
        }
        (data, updates) => {
            let (data, updates) = (recorded(data, "data")?, recorded(updates, "updates")?);
            let run = match autodiff {
                DispatchAutodiffContext::Enabled(GradientCheckpointingStrategy::Balanced) => {
                    Autodiff::<Flex, BalancedCheckpointing>::float_nd_scatter
                }
                _ => Autodiff::<Flex, NoCheckpointing>::float_nd_scatter,
            };
            BackendTensor::Autodiff(run(scatter, data, indices, updates)?)
        }
    };
    let is_recorded = matches!(output, BackendTensor::Autodiff(_));
    let kind = DispatchTensorKind::Flex(output);
    let kind = if is_recorded {
        DispatchTensorKind::Autodiff(Box::new(kind))
    } else {
        kind
    };
    Ok(DispatchTensor { kind, autodiff })
}

/// Returns the context of the output. A tensor without autodiff is a constant.
fn merged(contexts: [DispatchAutodiffContext; 3]) -> Result<DispatchAutodiffContext, Error> {
    let mut enabled = contexts
        .into_iter()
        .filter(|&context| context != DispatchAutodiffContext::Disabled);
    let Some(first) = enabled.next() else {
        return Ok(DispatchAutodiffContext::Disabled);
    };
    if enabled.any(|context| context != first) {
        return Err(Error::Checkpointing);
    }
    Ok(first)
}

/// Returns the tensor of the backend Flex.
fn flex(tensor: DispatchTensor, name: &'static str) -> Result<BackendTensor<Flex>, Error> {
    let kind = match tensor.kind {
        DispatchTensorKind::Autodiff(kind) => *kind,
        kind => kind,
    };
    match kind {
        DispatchTensorKind::Flex(tensor) => Ok(tensor),
        _ => Err(Error::Backend { tensor: name }),
    }
}

/// Returns floats as a tensor of autodiff. A tensor without autodiff becomes a constant.
fn recorded(
    tensor: BackendTensor<Flex>,
    name: &'static str,
) -> Result<FloatTensor<Autodiff<Flex>>, Error> {
    match tensor {
        BackendTensor::Autodiff(tensor) => Ok(tensor),
        BackendTensor::Float(tensor) => Ok(Autodiff::<Flex>::from_inner(tensor)),
        other => Err(Error::DType {
            tensor: name,
            dtype: other.dtype(),
        }),
    }
}
