//! Gradients of gathers. The gradient for an element of data is the sum of the gradients of all
//! output elements that the gather read from that element.
//!
//! A scatter computes the gradient for data: the scatter adds the gradient of the gather's output
//! to a tensor of zeros. This module knows operators, their plans, and the tensors of that scatter.
//! This module does not know how a scatter runs.

use super::factor::Factor;
use super::tensors::{shape_error, zero_strides};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::{Elements, Indices, Readable, Source, Target};
use crate::ops::Gather;
use crate::run::{GatherRun, Operands, Planning, execute, once};

/// Operation that sums gradients and multiplies the sums by a factor.
#[derive(Debug)]
struct Summing {
    factor: Factor,
    operation: Operation,
}

impl Summing {
    /// Makes the operation that sums gradients of type `elements` and multiplies the sums by
    /// `scale`. Returns an error if the elements have no gradient, or if `scale` is not finite.
    fn new(
        elements: Elements,
        scale: f64,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        let factor = Factor::new(elements, scale)?;
        let (dtype, set) = (factor.dtype, execution.instructions());
        let operation = Operation::gradient_sum(dtype, factor.value, set);
        Ok(Self {
            factor,
            operation: operation.ok_or(ScatterError::NoGradient { dtype })?,
        })
    }

    /// Makes the operands of the scatter that computes the gradient for data, and passes these
    /// operands to `call`. The output of the scatter is `sums`, and all elements of `sums` begin as
    /// zero. The updates are `gradient`, or zeros if the factor of the gradient (`scale`) is zero.
    fn lend(
        &self,
        sums: &Target<'_>,
        gradient: &Source<'_>,
        indices: Option<&Indices<'_>>,
        call: impl FnOnce(&Operands<'_>) -> Result<(), ScatterError>,
    ) -> Result<(), ScatterError> {
        let [shape, listed] = [sums.shape(), gradient.shape()];
        let [strides, listed_strides] = [zero_strides(shape)?, zero_strides(listed)?];
        // If no index has gathered an element of data, the sum for this element is 0. The gradient
        // is then 0 times the factor, which is -0 if the factor is negative. If the operation needs
        // groups (all updates of one destination together), only the sums of groups are multiplied,
        // and an element that no index has gathered has no group. For a negative factor, all
        // elements of `sums` therefore begin as -0 in such an operation.
        let is_negative = self.operation.needs_groups && self.operation.factor < 0.0;
        let start = if is_negative {
            Readable::negative_halves(shape, &strides)
        } else {
            Readable::zeros(shape, &strides)
        };
        let start = Source::of_zeros(&start, self.factor.dtype);
        let no_gradient = Readable::zeros(listed, &listed_strides);
        let no_gradient = Source::of_zeros(&no_gradient, self.factor.dtype);
        let lent = Operands::lend(
            &self.operation,
            sums,
            Some(&start),
            indices,
            gradient,
            |operands| {
                call(&Operands {
                    source: if self.factor.is_zero {
                        &no_gradient
                    } else {
                        gradient
                    },
                    ..*operands
                })
            },
        );
        lent.map_err(rename_tensors)
    }
}

/// Replaces the names of a scatter's tensors in an error by the names of a gradient's tensors.
fn rename_tensors(mut error: ScatterError) -> ScatterError {
    if let ScatterError::InputOverlap { tensor }
    | ScatterError::OverlapUndecided { tensor }
    | ScatterError::DTypeMismatch { tensor, .. } = &mut error
    {
        *tensor = match *tensor {
            "updates" => "grad_output",
            "output" => "grad_data",
            other => other,
        };
    }
    error
}

impl Gather<'_> {
    /// Computes `sums`, the gradient for data, without a kept plan. Each element of `sums` is the
    /// sum of the elements of `gradient` for all output elements that the gather read from this
    /// element of data, times `scale`.
    pub(super) fn sum(
        &self,
        gradient: &Source<'_>,
        indices: &Indices<'_>,
        scale: f64,
        sums: &Target<'_>,
    ) -> Result<(), ScatterError> {
        let (shape, listed) = (sums.shape(), indices.layout().shape());
        let form = self.form_of(shape, indices)?;
        let summing = Summing::new(sums.elements(), scale, &self.execution)?;
        if !form.is_updates_shape(shape, listed, gradient.shape()) {
            let expected = form.updates_shape(shape, listed)?;
            return Err(shape_error("grad_output", &expected, gradient.shape()));
        }
        let planning = Planning {
            gathers: false,
            ..self.planning
        };
        summing.lend(sums, gradient, Some(indices), |operands| {
            let indices = indices.integers()?;
            once(&form, operands, &indices, planning, &self.execution)
        })
    }
}

impl GatherRun<'_> {
    /// Computes `sums`, the gradient for data, with a kept plan. Each element of `sums` is the sum
    /// of the elements of `gradient` for all output elements that the gather read from this element
    /// of data, times `scale`.
    pub(super) fn sum(
        &self,
        gradient: &Source<'_>,
        scale: f64,
        sums: &Target<'_>,
    ) -> Result<(), ScatterError> {
        let (plan, execution) = (&self.plan.plan, &self.execution);
        let summing = Summing::new(sums.elements(), scale, execution)?;
        if gradient.shape() != plan.updates_shape() {
            let expected = plan.updates_shape();
            return Err(shape_error("grad_output", expected, gradient.shape()));
        }
        summing.lend(sums, gradient, None, |operands| {
            execute(plan, operands, execution)
        })
    }
}
