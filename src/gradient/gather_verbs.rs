//! The verbs of gathers that send gradients back.
//!
//! Knows operators, their plans and views. Knows nothing of how gradients are summed.

use crate::error::ScatterError;
use crate::operand::{Indices, Input, Output, Start};
use crate::ops::Gather;
use crate::run::GatherRun;

/// Gradients.
impl Gather<'_> {
    /// Returns the gradient for data of the shape `data`, row-major, given that of the
    /// gather's result: [`backward_into`](Self::backward_into) a new tensor.
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), or no memory for the result.
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

    /// Writes the gradient for data, given that of the gather's result, into
    /// `grad_data`, whose shape is that of data. What it held before is not read.
    ///
    /// Each element of `grad_data` is a sum, multiplied by `scale` last. The sum begins at
    /// zero and adds the gradients of all elements that were gathered from there, in the
    /// row-major order of `indices`. 16-bit floats are summed in `f32` and rounded once. An
    /// index that was [skipped](crate::Bounds::Skip) adds nothing. An index that was
    /// [moved to an end](crate::Bounds::Clamp) adds its gradient there.
    ///
    /// `scale` is first rounded to the type that is computed in (`f32`, or `f64` for
    /// elements of it); 1 costs nothing. Where it is zero, all of the gradient is +0,
    /// whatever the gradient of the result holds.
    ///
    /// The rule is that of the gradients of torch `gather` and `index_select`, and of
    /// `embedding`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::NoGradient`] and [`ScatterError::GradientOfClones`] for elements
    /// that are neither floats nor complex. [`ScatterError::Scale`] for a factor that is
    /// not finite. [`ScatterError::GradientShape`], or any [`ScatterError`] about
    /// shapes, indices or memory that is shared. After an error `grad_data` is unchanged.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Gather, TensorView, TensorViewMut};
    ///
    /// // Rows 2, 0 and 2 of a table were looked up.
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
        mut grad_data: O,
    ) -> Result<(), ScatterError> {
        let (gradient, indices) = (grad_output.source(), indices.into());
        self.sum(&gradient, &indices, scale, &grad_data.target())
    }
}

/// Gradients.
impl GatherRun<'_> {
    /// Returns the gradient for data, row-major, of a gather by this plan: as
    /// [`Gather::backward`](crate::Gather::backward).
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), with [`ScatterError::PlanMismatch`]
    /// for a plan of another layout than a contiguous one; no memory for the result.
    pub fn backward<V: Input>(&self, grad_output: V, scale: f64) -> Result<V::Owned, ScatterError> {
        V::allocate(self.plan.shape(), Start::Like(&grad_output), |sums, _| {
            self.sum(&grad_output.source(), scale, &sums)
        })
    }

    /// Writes the gradient for data into `grad_data`, of the layout of the plan's data:
    /// as [`Gather::backward_into`](crate::Gather::backward_into).
    ///
    /// # Errors
    ///
    /// As [`Gather::backward_into`](crate::Gather::backward_into), with
    /// [`ScatterError::PlanMismatch`] for a gradient of another layout, and
    /// [`ScatterError::PoolFailed`].
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
        mut grad_data: O,
    ) -> Result<(), ScatterError> {
        self.sum(&grad_output.source(), scale, &grad_data.target())
    }
}
