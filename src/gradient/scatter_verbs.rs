//! The methods of scatters that compute gradients, and the methods that run a forward pass and
//! return a [`Saved`] for the gradient of this pass.
//!
//! This module knows operators, their plans and views. This module does not know how gradients are
//! computed.

use super::saved::{Saved, forward_once};
use super::views::{Forward, Gradients, allocate, allocate_updates, lend};
use crate::error::ScatterError;
use crate::operand::{Dims, Indices, Input, Output, Source, Start, Target};
use crate::ops::Scatter;
use crate::plan::Form;
use crate::run::{Operands, ScatterRun, operation};

/// Methods that compute gradients.
impl Scatter<'_> {
    /// Returns the gradients for data and for updates, as new row-major tensors.
    ///
    /// `grad_output` is the gradient of the output. The results are those of
    /// [`backward_into`](Self::backward_into). For a [`cache`](Self::cache) without updates in
    /// `forward`, the gradient for updates has the length [`update_len`](Self::update_len) along
    /// the axis of the cache.
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), and [`ScatterError::OutOfMemory`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Forward, Reduction, Scatter, TensorView};
    ///
    /// let at = TensorView::contiguous(&[2_i64, 0, 2], &[3, 1])?;
    /// let product = Scatter::nd().reduction(Reduction::Mul);
    /// let forward = Forward::new(
    ///     TensorView::from(&[1.0_f32, 2.0, 3.0]),
    ///     TensorView::from(&[0.0, 5.0, 7.0]),
    /// );
    /// let grad_output = TensorView::from(&[1.0; 3]);
    /// let (grad_data, grad_updates) = product.backward(grad_output, forward, at, 1.0)?;
    /// assert_eq!(grad_data, [5.0, 1.0, 0.0]);
    /// assert_eq!(grad_updates, [21.0, 1.0, 0.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn backward<'i, V: Input>(
        &self,
        grad_output: V,
        forward: Forward<V>,
        indices: impl Into<Indices<'i>>,
        scale: f64,
    ) -> Result<(V::Owned, V::Owned), ScatterError> {
        let indices = indices.into();
        let gradient = grad_output.source();
        let (form, updates_shape) = self.form_for(&grad_output, &forward, &indices)?;
        let shapes = [gradient.shape(), &updates_shape];
        allocate(&grad_output, &forward, shapes, |tensors| {
            self.compute_gradients(&form, tensors, &indices, scale)
        })
    }

    /// Returns the gradient for updates alone, as a new row-major tensor.
    ///
    /// The gradient for data needs no call if the reduction is `add` or `sub` and
    /// [includes the existing value](Self::include_self) of data. The gradient for data is then
    /// `grad_output` times the factor `scale`.
    ///
    /// # Errors
    ///
    /// As [`backward`](Self::backward).
    pub fn backward_updates<'i, V: Input>(
        &self,
        grad_output: V,
        forward: Forward<V>,
        indices: impl Into<Indices<'i>>,
        scale: f64,
    ) -> Result<V::Owned, ScatterError> {
        let indices = indices.into();
        let (form, shape) = self.form_for(&grad_output, &forward, &indices)?;
        allocate_updates(&grad_output, &forward, &shape, |tensors| {
            self.compute_gradients(&form, tensors, &indices, scale)
        })
    }

    /// Writes the requested gradients for data and for updates.
    ///
    /// `grad_output` is the gradient of the output, and has the shape of data. The call overwrites
    /// the requested gradients. The call does not add to the previous contents.
    ///
    /// In this table, `g` is the value of `grad_output` at one element of a destination. The values
    /// `u` are the updates of that element, and "updates" is the number of these updates. The word
    /// "ties" stands for the number of values that are equal to the result. Every entry is
    /// multiplied by `scale`.
    ///
    /// | reduction | for data | for an update |
    /// |---|---|---|
    /// | none | 0, or `g` without updates | `g` for the last update, or [for all](crate::NoneGradient) |
    /// | add, sub | `g` | `g`, `-g` |
    /// | mul | `g` × the product of all `u` | `g` × the product of data and all other `u` |
    /// | min, max | `g` / ties, if data is the result | `g` / ties, if the update is the result |
    /// | mean | `g` / (updates + 1) | `g` / (updates + 1) |
    ///
    /// With [`include_self(false)`](Self::include_self), the existing value of data is not a factor
    /// of a product, not counted in ties, and not counted in a mean. The gradient for data is then
    /// 0 where there are updates.
    ///
    /// - The gradient for one factor of a product is computed as a product with all other factors,
    ///   without a division. Zeros among the factors therefore need no special case. Each
    ///   multiplication is rounded.
    /// - In the search for ties, +0 and -0 count as equal, and so do any two NaN.
    /// - The gradient for an update that was [skipped](crate::Bounds::Skip) is 0. The gradient for
    ///   an update that was [moved to an end](crate::Bounds::Clamp) of an axis is computed at the
    ///   update's new destination.
    /// - Gradients of 16-bit floats are computed in `f32` and rounded once, whatever
    ///   [`accumulate`](Self::accumulate) says.
    /// - In the gradient of a product of complex numbers, `g` is multiplied by the complex
    ///   conjugates of the other factors, as in torch.
    ///
    /// `scale` is first rounded to the type of the computation. The type of the computation is
    /// `f64` for elements of `f64` and complex numbers of `f64`, and `f32` for all other elements.
    /// The multiplication by `scale` is the last step before a gradient is rounded to its element
    /// type. A scale of 1 adds no pass over the tensors. If the rounded scale is zero, all
    /// gradients are +0, even where `grad_output` is infinite or NaN.
    ///
    /// The gradient for data may be an [`AnyViewMut`](crate::AnyViewMut) at the address of
    /// `grad_output`, with the same shape and strides. For `add` and `sub` with the existing value
    /// and a scale of 1, `grad_output` already is the gradient for data, so the call then writes
    /// nothing for data.
    ///
    /// The rules are those of torch `scatter_reduce` and of JAX, except where torch or JAX computes
    /// a wrong gradient.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::NoGradient`] or [`ScatterError::GradientOfClones`] for elements that are
    ///   neither floats nor complex numbers.
    /// - [`ScatterError::UnsupportedReduction`] for minima and maxima of complex numbers.
    /// - [`ScatterError::MissingInput`] if the gradient depends on a tensor that `forward` lacks.
    /// - [`ScatterError::Scale`] if `scale` is not finite in the type of the computation.
    /// - [`ScatterError::GradientShape`] if a tensor has a wrong shape.
    /// - Any [`ScatterError`] about shapes, options, indices or shared memory.
    ///
    /// After an error, no gradient has changed, except after [`ScatterError::PoolFailed`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Forward, Gradients, Scatter, TensorView, TensorViewMut};
    ///
    /// // Element 1 was written twice. Only the last update has a gradient.
    /// let at = TensorView::from(&[1_i64, 1]);
    /// let grad_output = TensorView::from(&[1.0, 2.0, 3.0]);
    /// let (mut grad_data, mut grad_updates) = ([9.0; 3], [9.0; 2]);
    /// let wanted = Gradients::new(
    ///     TensorViewMut::from(&mut grad_data),
    ///     TensorViewMut::from(&mut grad_updates),
    /// );
    /// Scatter::along(0).backward_into(grad_output, Forward::none(), at, 0.5, wanted)?;
    /// assert_eq!(grad_data, [0.5, 0.0, 1.5]);
    /// assert_eq!(grad_updates, [0.0, 1.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn backward_into<'i, O: Output>(
        &self,
        grad_output: O::Input,
        forward: Forward<O::Input>,
        indices: impl Into<Indices<'i>>,
        scale: f64,
        gradients: Gradients<O>,
    ) -> Result<(), ScatterError> {
        let indices = indices.into();
        lend(&grad_output, &forward, gradients, |tensors| {
            let updates = tensors.updates.map(Source::shape);
            let updates = updates.or(tensors.grad_updates.map(Target::shape));
            let form = self.form_of(tensors.grad_output.shape(), &indices, updates)?;
            self.compute_gradients(&form, tensors, &indices, scale)
        })
    }

    /// Runs a forward pass as [`allocate`](Self::allocate) does. Returns the output, and a
    /// [`Saved`] for the gradient.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), and [`ScatterError::NoGradient`] or
    /// [`ScatterError::GradientOfClones`] for elements that have no gradient.
    pub fn forward<'i, V: Input>(
        &self,
        data: V,
        indices: impl Into<Indices<'i>>,
        updates: V,
    ) -> Result<(V::Owned, Saved), ScatterError> {
        let indices = indices.into();
        let mut saved = None;
        let shape = data.source();
        let output = V::allocate(shape.shape(), Start::CopyOf(&data), |output, data| {
            let updates = updates.source();
            saved = Some(self.forward_on(&output, data.as_ref(), &indices, &updates)?);
            Ok(())
        })?;
        // The closure has set `saved`, or an error was returned above.
        let saved = saved.ok_or(ScatterError::OutOfMemory { bytes: 0 })?;
        Ok((output, saved))
    }

    /// Runs a forward pass as [`write_into`](Self::write_into) does. Returns a [`Saved`] for the
    /// gradient.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward) and [`write_into`](Self::write_into).
    pub fn forward_into<'i, O: Output>(
        &self,
        data: O::Input,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
        output: O,
    ) -> Result<Saved, ScatterError> {
        let (data, updates) = (data.source(), updates.source());
        let indices = indices.into();
        output.with_target(|output| self.forward_on(output, Some(&data), &indices, &updates))
    }

    /// Runs a forward pass as [`in_place`](Self::in_place) does. Returns a [`Saved`] for the
    /// gradient.
    ///
    /// If `mul`, `min` or `max` combines the existing value with updates, the [`Saved`] holds the
    /// previous values of data at the destinations. If, in addition, data is not evenly strided
    /// along the indexed axes, the [`Saved`] holds the previous values of all elements of data.
    /// Data is evenly strided along these axes if one constant stride leads from each indexed
    /// position to the next position in row-major order.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward) and [`in_place`](Self::in_place).
    pub fn forward_in_place<'i, O: Output>(
        &self,
        data: O,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
    ) -> Result<Saved, ScatterError> {
        let (indices, updates) = (indices.into(), updates.source());
        data.with_target(|data| self.forward_on(data, None, &indices, &updates))
    }

    /// Runs a forward pass. Without `data`, the pass is in place.
    fn forward_on(
        &self,
        output: &Target<'_>,
        data: Option<&Source<'_>>,
        indices: &Indices<'_>,
        updates: &Source<'_>,
    ) -> Result<Saved, ScatterError> {
        let element = data.map_or(output.elements(), |data| data.elements());
        let operation = operation(element, self.meaning.reducing, &self.execution)?;
        let at = Some(indices);
        Operands::lend(&operation, output, data, at, updates, |operands| {
            let updates = Some(operands.listed_shape());
            let form = self.form_of(operands.shape(), indices, updates)?;
            forward_once(self, &form, operands, indices.integers()?)
        })
    }

    /// Returns the form of the scatter, and the shape of the gradient for updates. The form states
    /// which axes of data are repetitions, which axes the tuples address, and which axes are the
    /// window.
    fn form_for<V: Input>(
        &self,
        grad_output: &V,
        forward: &Forward<V>,
        indices: &Indices<'_>,
    ) -> Result<(Form, Dims<usize>), ScatterError> {
        let gradient = grad_output.source();
        let updates = forward.updates.as_ref().map(Input::source);
        let updates = updates.as_ref().map(Source::shape);
        let form = self.form_of(gradient.shape(), indices, updates)?;
        let shape = form.updates_shape(gradient.shape(), indices.layout().shape())?;
        Ok((form, shape))
    }
}

/// Methods that compute gradients.
impl ScatterRun<'_> {
    /// Returns the gradients for data and for updates, as new row-major tensors.
    ///
    /// The results are those of [`Scatter::backward`](crate::Scatter::backward).
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), and [`ScatterError::OutOfMemory`].
    pub fn backward<V: Input>(
        &self,
        grad_output: V,
        forward: Forward<V>,
        scale: f64,
    ) -> Result<(V::Owned, V::Owned), ScatterError> {
        let shapes = [self.plan.shape(), self.plan.updates_shape()];
        allocate(&grad_output, &forward, shapes, |tensors| {
            self.compute_gradients(tensors, scale)
        })
    }

    /// Returns the gradient for updates alone, as a new row-major tensor.
    ///
    /// The result is that of [`Scatter::backward_updates`](crate::Scatter::backward_updates).
    ///
    /// # Errors
    ///
    /// As [`backward`](Self::backward).
    pub fn backward_updates<V: Input>(
        &self,
        grad_output: V,
        forward: Forward<V>,
        scale: f64,
    ) -> Result<V::Owned, ScatterError> {
        let shape = self.plan.updates_shape();
        allocate_updates(&grad_output, &forward, shape, |tensors| {
            self.compute_gradients(tensors, scale)
        })
    }

    /// Writes the requested gradients for data and for updates.
    ///
    /// The results are those of [`Scatter::backward_into`](crate::Scatter::backward_into).
    ///
    /// The tensors of the call may have other strides than the output of the plan. The exception is
    /// an output that is not evenly strided along the indexed axes. In such an output, no constant
    /// stride leads from each indexed position to the next position in row-major order. The tensor
    /// `grad_output`, the data in `forward` and the gradient for data must then have the strides of
    /// the output of the plan.
    ///
    /// # Errors
    ///
    /// As [`Scatter::backward_into`](crate::Scatter::backward_into), and
    /// [`ScatterError::PlanMismatch`] for a tensor with strides that the plan cannot use.
    pub fn backward_into<O: Output>(
        &self,
        grad_output: O::Input,
        forward: Forward<O::Input>,
        scale: f64,
        gradients: Gradients<O>,
    ) -> Result<(), ScatterError> {
        lend(&grad_output, &forward, gradients, |tensors| {
            self.compute_gradients(tensors, scale)
        })
    }
}
