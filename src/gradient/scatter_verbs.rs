//! The verbs of scatters that send gradients back, and those of a forward pass that keeps
//! what they need.
//!
//! Knows operators, their plans and views. Knows nothing of how gradients are worked out.

use super::saved::{Saved, forward_once};
use super::views::{Forward, Gradients, allocate, allocate_updates, lend};
use crate::error::ScatterError;
use crate::operand::{Dims, Indices, Input, Output, Source, Start, Target};
use crate::ops::Scatter;
use crate::plan::Form;
use crate::run::{Operands, ScatterRun, operation};

/// Gradients.
impl Scatter<'_> {
    /// Returns the gradients for data and for updates, row-major, given that of the
    /// output: [`backward_into`](Self::backward_into) new tensors. Without the updates of the
    /// forward pass, the gradients of a [`cache`](Self::cache) have
    /// [`update_len`](Self::update_len) rows.
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into), or no memory for the results.
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
            self.share(&form, tensors, &indices, scale)
        })
    }

    /// Returns the gradient for updates alone, row-major. The gradient for the data of sums
    /// with self is `grad_output` times the factor.
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
            self.share(&form, tensors, &indices, scale)
        })
    }

    /// Writes those that are wanted of the gradients for data and for updates, given that
    /// of the output, which has the shape of data. What they held before is not read.
    ///
    /// With `g` that of a destination's element and `u` its updates there, in order, each
    /// times `scale`:
    ///
    /// | reduction | for data | for an update |
    /// |---|---|---|
    /// | none | 0, `g` without updates | `g` for the last, or [for all](crate::NoneGradient) |
    /// | add, sub | `g` | `g`, `-g` |
    /// | mul | `g` × the product of all `u` | `g` × the product of data and all other `u` |
    /// | min, max | `g` / ties, where data is the result | `g` / ties, where it is the result |
    /// | mean | `g` / (updates + 1) | the same |
    ///
    /// Without [self](Self::include_self), data has no part in products, ties and counts,
    /// and 0 as its gradient where there are updates. Products are exact whatever zeros
    /// they have; ties are all that are equal to the result, zeros of either sign and any
    /// two NaN among them. What was [skipped](crate::Bounds::Skip) has 0; what was
    /// [moved to an end](crate::Bounds::Clamp) has that of where it went. 16-bit floats
    /// are computed in `f32` and rounded once, whatever
    /// [`accumulate`](Self::accumulate) says; of complex numbers the other factors are
    /// conjugated, as torch does.
    ///
    /// `scale` is first rounded to the type that is computed in (`f32`, or `f64` for
    /// elements of it), and multiplied last; 1 costs nothing. Where it is zero, all
    /// gradients are +0, whatever the gradient of the output holds.
    ///
    /// The gradient for data may be an [`AnyViewMut`](crate::AnyViewMut) at the address of
    /// `grad_output`, with its shape and strides: of sums it is then already there.
    ///
    /// The rules are those of torch `scatter_reduce` and of JAX, without their faults.
    ///
    /// # Errors
    ///
    /// [`ScatterError::NoGradient`] and [`ScatterError::GradientOfClones`] for elements
    /// that are neither floats nor complex, [`ScatterError::UnsupportedReduction`] for
    /// extremes of complex numbers, [`ScatterError::MissingInput`],
    /// [`ScatterError::Scale`] for a factor that is not finite,
    /// [`ScatterError::GradientShape`], or any [`ScatterError`] about shapes, options,
    /// indices or memory that is shared; nothing is written then.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Forward, Gradients, Scatter, TensorView, TensorViewMut};
    ///
    /// // Element 1 was written twice: what stayed has the gradient.
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
            self.share(&form, tensors, &indices, scale)
        })
    }

    /// [`allocate`](Self::allocate) of a forward pass: returns, beside the output, what its
    /// gradient needs.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), and [`ScatterError::NoGradient`] or
    /// [`ScatterError::GradientOfClones`] for elements that have none.
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
        // The call above has made it, or failed.
        let saved = saved.ok_or(ScatterError::OutOfMemory { bytes: 0 })?;
        Ok((output, saved))
    }

    /// [`write_into`](Self::write_into) of a forward pass: returns what its gradient needs.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward), and as [`write_into`](Self::write_into).
    pub fn forward_into<'i, O: Output>(
        &self,
        data: O::Input,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
        mut output: O,
    ) -> Result<Saved, ScatterError> {
        let (data, updates) = (data.source(), updates.source());
        self.forward_on(&output.target(), Some(&data), &indices.into(), &updates)
    }

    /// [`in_place`](Self::in_place) of a forward pass: returns what its gradient needs.
    /// Where the value that is there takes part in `mul`, `min` or `max`, this includes what
    /// data holds at the destinations. If data is not evenly spaced along the axes that are
    /// indexed, it includes all of data.
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward), and as [`in_place`](Self::in_place).
    pub fn forward_in_place<'i, O: Output>(
        &self,
        mut data: O,
        indices: impl Into<Indices<'i>>,
        updates: O::Input,
    ) -> Result<Saved, ScatterError> {
        self.forward_on(&data.target(), None, &indices.into(), &updates.source())
    }

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

    /// What the shapes mean, and the shape of the gradient for updates.
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

/// Gradients.
impl ScatterRun<'_> {
    /// Returns the gradients for data and for updates, row-major:
    /// as [`Scatter::backward`](crate::Scatter::backward).
    ///
    /// # Errors
    ///
    /// As [`backward_into`](Self::backward_into); no memory for the results.
    pub fn backward<V: Input>(
        &self,
        grad_output: V,
        forward: Forward<V>,
        scale: f64,
    ) -> Result<(V::Owned, V::Owned), ScatterError> {
        let shapes = [self.plan.shape(), self.plan.updates_shape()];
        allocate(&grad_output, &forward, shapes, |tensors| {
            self.share(tensors, scale)
        })
    }

    /// Returns the gradient for updates alone, row-major:
    /// as [`Scatter::backward_updates`](crate::Scatter::backward_updates).
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
            self.share(tensors, scale)
        })
    }

    /// Writes those that are wanted of the gradients for data and for updates:
    /// as [`Scatter::backward_into`](crate::Scatter::backward_into).
    ///
    /// `grad_output` and the gradients may have other strides than the output of the plan.
    /// They must have the plan's strides where that output is not evenly spaced along the
    /// indexed axes.
    ///
    /// # Errors
    ///
    /// As [`Scatter::backward_into`](crate::Scatter::backward_into), and
    /// [`ScatterError::PlanMismatch`].
    pub fn backward_into<O: Output>(
        &self,
        grad_output: O::Input,
        forward: Forward<O::Input>,
        scale: f64,
        gradients: Gradients<O>,
    ) -> Result<(), ScatterError> {
        lend(&grad_output, &forward, gradients, |tensors| {
            self.share(tensors, scale)
        })
    }
}
