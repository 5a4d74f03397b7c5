//! The traits that a backend of burn implements to run scatters, and to compute their gradients.
//!
//! This module does not know any backend.

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Backend, Shape};
use ndscatter::Scatter;

use crate::Error;

/// A backend whose tensors can be scattered.
///
/// The backends are [`Flex`](burn_flex::Flex), and
/// [`Autodiff`](burn_autodiff::Autodiff)`<B>` for a backend `B` that has [`ScatterGradient`].
///
/// In every function, `updates` have the shape that
/// [`Scatter::updates_shape`](ndscatter::Scatter::updates_shape) returns. Each function returns
/// `data` with the updates applied. The result has the memory of `data` if `data` has no other
/// owner. Otherwise the result is a new tensor. `indices` may have any integer type of 8 to 64 bits.
/// Tensors may have any strides.
///
/// # Errors
///
/// Every function returns an [`Error`] for bad arguments. No other owner of a tensor sees a change
/// then.
///
/// # Examples
///
/// ```
/// use burn_backend::TensorData;
/// use burn_flex::{Flex, FlexTensor};
/// use ndscatter_burn::{Reduction, Scatter, ScatterBackend};
///
/// let counts = FlexTensor::from_data(TensorData::from([0_i32, 0, 0]));
/// let keys = FlexTensor::from_data(TensorData::from([2_u8, 0, 2]));
/// let ones = FlexTensor::from_data(TensorData::from([1_i32, 1, 1]));
/// let add = Scatter::along(0).reduction(Reduction::Add);
/// let counts = Flex::int_nd_scatter(&add, counts, keys, ones)?;
/// assert_eq!(counts.storage::<i32>(), [1, 0, 2]);
/// # Ok::<(), ndscatter_burn::Error>(())
/// ```
pub trait ScatterBackend: Backend {
    /// Scatters floats.
    ///
    /// # Errors
    ///
    /// See the documentation of the trait.
    fn float_nd_scatter(
        scatter: &Scatter<'_>,
        data: FloatTensor<Self>,
        indices: IntTensor<Self>,
        updates: FloatTensor<Self>,
    ) -> Result<FloatTensor<Self>, Error>;

    /// Scatters integers. A reduction wraps around.
    ///
    /// # Errors
    ///
    /// See the documentation of the trait.
    fn int_nd_scatter(
        scatter: &Scatter<'_>,
        data: IntTensor<Self>,
        indices: IntTensor<Self>,
        updates: IntTensor<Self>,
    ) -> Result<IntTensor<Self>, Error>;

    /// Scatters booleans. `Add` and `Max` are OR, `Mul` and `Min` are AND, `Sub` is XOR.
    ///
    /// # Errors
    ///
    /// See the documentation of the trait.
    fn bool_nd_scatter(
        scatter: &Scatter<'_>,
        data: BoolTensor<Self>,
        indices: IntTensor<Self>,
        updates: BoolTensor<Self>,
    ) -> Result<BoolTensor<Self>, Error>;
}

/// Tensors of a scatter that its gradient reads.
#[derive(Clone, Debug)]
pub struct Forward<B: Backend> {
    /// Indices of the scatter.
    pub indices: IntTensor<B>,
    /// Data before the scatter. Only the gradients of `Mul`, `Min` and `Max` with the existing value
    /// read it.
    pub data: Option<FloatTensor<B>>,
    /// Updates of the scatter. Only the gradients of `Mul`, `Min` and `Max` read them.
    pub updates: Option<FloatTensor<B>>,
    /// Shape of the updates.
    pub updates_shape: Shape,
}

/// A backend that computes gradients of scatters of floats.
pub trait ScatterGradient: ScatterBackend {
    /// Returns the gradients for data and for updates, as far as `wanted` requests them.
    ///
    /// `grad` is the gradient of the output, in the shape of data. The gradients have the shapes of
    /// data and of the updates. [`Scatter::backward_into`] states the rules of the gradients.
    ///
    /// # Errors
    ///
    /// Any [`Error`] about the arguments, or about an allocation.
    ///
    /// # Examples
    ///
    /// ```
    /// use burn_backend::{Shape, TensorData};
    /// use burn_flex::{Flex, FlexTensor};
    /// use ndscatter_burn::{Forward, Reduction, Scatter, ScatterGradient};
    ///
    /// let forward = Forward::<Flex> {
    ///     indices: FlexTensor::from_data(TensorData::from([2_u8, 0])),
    ///     data: None,
    ///     updates: None,
    ///     updates_shape: Shape::new([2]),
    /// };
    /// let grad = FlexTensor::from_data(TensorData::from([1.0_f32, 2.0, 3.0]));
    /// let add = Scatter::along(0).reduction(Reduction::Add);
    /// let [_, updates] = Flex::float_nd_scatter_backward(&add, grad, forward, [false, true])?;
    /// assert_eq!(updates.expect("a gradient").storage::<f32>(), [3.0, 1.0]);
    /// # Ok::<(), ndscatter_burn::Error>(())
    /// ```
    fn float_nd_scatter_backward(
        scatter: &Scatter<'_>,
        grad: FloatTensor<Self>,
        forward: Forward<Self>,
        wanted: [bool; 2],
    ) -> Result<[Option<FloatTensor<Self>>; 2], Error>;
}
