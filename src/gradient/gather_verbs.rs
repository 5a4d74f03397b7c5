//! The methods of gathers that compute gradients.
//!
//! This module knows operators, their plans and views. It does not know how gradients are summed.

use crate::error::ScatterError;
use crate::operand::{Indices, Input, Output, Start};
use crate::ops::Gather;
use crate::run::GatherRun;

/// Methods that compute gradients.
impl Gather<'_> {
    /// Returns the gradient for data, as a new row-major tensor.
    ///
    /// `grad_output` is the gradient of the gather's result, and `data` is the shape of data. The
    /// result has the same values as with [`backward_into`](Self::backward_into).
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), and [`ScatterError::OutOfMemory`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView};
    ///
    /// let grad_output = TensorView::from(&[1.0_f32, 2.0, 4.0]);
    /// let taken = TensorView::from(&[1_i64, 3, 1]);
    /// let grad_data = Gather::along(0).backward(grad_output, &[4], taken, 1.0)?;
    /// assert_eq!(grad_data, [0.0, 5.0, 0.0, 2.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn backward<'i, V: Input>(
        &self,
        grad_output: V,
        data: &[usize],
        indices: impl Into<Indices<'i>>,
        scale: f64,
    ) -> Result<V::Owned, ScatterError> {
        let indices = indices.into();
        V::allocate(data, Start::Like(&grad_output), |sums, _| {
            self.sum(&grad_output.source(), &indices, scale, &sums)
        })
    }

    /// Writes the gradient for data into `grad_data`, which has the shape of data.
    ///
    /// `grad_output` is the gradient of the gather's result. The previous contents of `grad_data`
    /// are not read.
    ///
    /// Each element of `grad_data` becomes a sum multiplied by `scale`. The sum begins at zero and
    /// adds the gradients of all elements that the gather read from this element of data, in the
    /// row-major order of `indices`. Gradients of 16-bit floats are summed and multiplied in `f32`,
    /// and rounded once at the end.
    ///
    /// An index that was [skipped](crate::Bounds::Skip) adds nothing. An index that was [moved to
    /// an end](crate::Bounds::Clamp) adds its gradient to the element at that end.
    ///
    /// `scale` is first rounded to the type in which gradients are computed. This type is `f64` for
    /// elements of `f64` and complex numbers of `f64`, and `f32` for all other elements. A scale of
    /// 1 has no cost. If the rounded scale is zero, all elements of `grad_data` become +0, even
    /// where `grad_output` is infinite or NaN.
    ///
    /// The rule is the same as for the gradients of torch `gather`, `index_select` and `embedding`.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::NoGradient`] for elements that are neither floats nor complex numbers, and
    ///   [`ScatterError::GradientOfClones`] for elements in [`Cloned`](crate::Cloned).
    /// - [`ScatterError::Scale`] if `scale` is not finite after it is rounded.
    /// - [`ScatterError::GradientShape`] if `grad_output` does not have the shape of the result.
    /// - Any [`ScatterError`] about shapes, indices or shared memory.
    ///
    /// After an error, `grad_data` is usually unchanged. [`ScatterError`] describes the exceptions.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView, TensorViewMut};
    ///
    /// // Rows 2, 0 and 2 of a table were gathered.
    /// let rows = [2_i64, 0, 2];
    /// let grad_output = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0];
    /// let mut grad_table = [9.0; 6];
    /// Gather::along(0).backward_into(
    ///     TensorView::contiguous(&grad_output, &[3, 2])?,
    ///     TensorView::from(&rows),
    ///     0.5,
    ///     TensorViewMut::contiguous(&mut grad_table, &[3, 2])?,
    /// )?;
    /// assert_eq!(grad_table, [1.0, 1.0, 0.0, 0.0, 2.0, 2.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[doc(alias = "embedding_dense_backward")]
    pub fn backward_into<'i, O: Output>(
        &self,
        grad_output: O::Input,
        indices: impl Into<Indices<'i>>,
        scale: f64,
        grad_data: O,
    ) -> Result<(), ScatterError> {
        let (gradient, indices) = (grad_output.source(), indices.into());
        grad_data.with_target(|grad_data| self.sum(&gradient, &indices, scale, grad_data))
    }
}

/// Methods that compute gradients.
impl GatherRun<'_> {
    /// Returns the gradient for data of a gather with this plan, as a new row-major tensor.
    ///
    /// The result has the same values as with [`Gather::backward`](crate::Gather::backward).
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), and:
    ///
    /// - [`ScatterError::PlanMismatch`] if the plan's layout of data is not contiguous.
    /// - [`ScatterError::OutOfMemory`] if there is no memory for the result.
    pub fn backward<V: Input>(&self, grad_output: V, scale: f64) -> Result<V::Owned, ScatterError> {
        V::allocate(self.plan.shape(), Start::Like(&grad_output), |sums, _| {
            self.sum(&grad_output.source(), scale, &sums)
        })
    }

    /// Writes the gradient for data into `grad_data`, which has the layout of the plan's data.
    ///
    /// The result has the same values as with
    /// [`Gather::backward_into`](crate::Gather::backward_into).
    ///
    /// # Errors
    ///
    /// As [`Gather::backward_into`](crate::Gather::backward_into), and:
    ///
    /// - [`ScatterError::PlanMismatch`] if `grad_data` has another layout.
    /// - [`ScatterError::PoolFailed`] if the pool has not run every task exactly once.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, Layout, TensorView, TensorViewMut};
    ///
    /// let taken = TensorView::from(&[1_i64, 3, 1]);
    /// let plan = Gather::along(0).plan(Layout::contiguous(&[4]), taken)?;
    /// let mut grad_data = [9.0; 4];
    /// plan.run().backward_into(
    ///     TensorView::from(&[1.0, 2.0, 4.0]),
    ///     0.5,
    ///     TensorViewMut::from(&mut grad_data),
    /// )?;
    /// assert_eq!(grad_data, [0.0, 2.5, 0.0, 1.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn backward_into<O: Output>(
        &self,
        grad_output: O::Input,
        scale: f64,
        grad_data: O,
    ) -> Result<(), ScatterError> {
        grad_data.with_target(|grad_data| self.sum(&grad_output.source(), scale, grad_data))
    }
}
