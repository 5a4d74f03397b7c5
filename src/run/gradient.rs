//! Gradients: what was gathered is summed up where it came from.
//!
//! Knows how a factor is rounded, and which tensors take part. How sums are made is
//! that of a scatter, into zeros.

use super::making::Planning;
use super::operands::Operands;
use super::scattered::{execute, once};
use crate::element::DType;
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::memory::copied;
use crate::operand::{Dims, Elements, Indices, Readable, Source, Target};
use crate::plan::{Form, IndexPlan};

/// Sums of gradients, multiplied by a factor.
#[derive(Debug)]
pub(crate) struct Summing {
    dtype: DType,
    operation: Operation,
    /// Whether the factor is zero, so that nothing counts, neither infinity nor NaN.
    is_zero: bool,
}

impl Summing {
    /// Refuses elements that have no gradient, and factors that are not finite.
    pub(crate) fn new(
        elements: Elements,
        scale: f64,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        let Elements::Plain(dtype) = elements else {
            return Err(ScatterError::GradientOfClones);
        };
        let computed = dtype.computed().ok_or(ScatterError::NoGradient { dtype })?;
        let factor = rounded(scale, computed);
        if !factor.is_finite() {
            return Err(ScatterError::Scale { dtype: computed });
        }
        let is_zero = factor == 0.0;
        let factor = if is_zero { 1.0 } else { factor };
        let operation = Operation::gradient(dtype, factor, execution.instructions());
        Ok(Self {
            dtype,
            operation: operation.ok_or(ScatterError::NoGradient { dtype })?,
            is_zero,
        })
    }

    /// Hands the operands of a scatter to `call`: `sums` as its output, which begins
    /// as zeros, and `gradient` as its updates.
    fn lend(
        &self,
        sums: &Target<'_>,
        gradient: &Source<'_>,
        indices: Option<&Indices<'_>>,
        call: impl FnOnce(&Operands<'_>) -> Result<(), ScatterError>,
    ) -> Result<(), ScatterError> {
        let [shape, listed] = [sums.shape(), gradient.shape()];
        let [strides, listed_strides] = [zeros(shape)?, zeros(listed)?];
        // What nothing came from is an empty sum, times the factor. Groups multiply
        // their own sums alone.
        let is_negative = self.operation.needs_groups && self.operation.factor < 0.0;
        let start = if is_negative {
            Readable::negative_halves(shape, &strides)
        } else {
            Readable::zeros(shape, &strides)
        };
        let start = Source::of_zeros(&start, self.dtype);
        let nothing = Readable::zeros(listed, &listed_strides);
        let nothing = Source::of_zeros(&nothing, self.dtype);
        let lent = Operands::lend(
            &self.operation,
            sums,
            Some(&start),
            indices,
            gradient,
            |operands| {
                call(&Operands {
                    updates: if self.is_zero { &nothing } else { gradient },
                    ..*operands
                })
            },
        );
        lent.map_err(named)
    }
}

/// As many zeros as a shape has sizes.
fn zeros(shape: &[usize]) -> Result<Dims<isize>, ScatterError> {
    Dims::collect(shape.len(), shape.iter().map(|_| 0))
}

/// The factor in the type that gradients are computed in.
#[expect(clippy::cast_possible_truncation, reason = "rounded, as the rule asks")]
fn rounded(scale: f64, computed: DType) -> f64 {
    match computed {
        DType::F32 => f64::from(scale as f32),
        _ => scale,
    }
}

/// An error about the tensors of a scatter, in the words of a gradient.
fn named(error: ScatterError) -> ScatterError {
    let gradient = |tensor: &'static str| match tensor {
        "updates" => "grad_output",
        "output" => "grad_data",
        other => other,
    };
    match error {
        ScatterError::InputOverlap { tensor } => ScatterError::InputOverlap {
            tensor: gradient(tensor),
        },
        ScatterError::OverlapUndecided { tensor } => ScatterError::OverlapUndecided {
            tensor: gradient(tensor),
        },
        ScatterError::DTypeMismatch {
            tensor,
            expected,
            actual,
        } => ScatterError::DTypeMismatch {
            tensor: gradient(tensor),
            expected,
            actual,
        },
        other => other,
    }
}

/// Of a gradient that has another shape.
#[cold]
fn other_shape(expected: &[usize], gradient: &Source<'_>) -> ScatterError {
    ScatterError::with_facts(|| {
        Ok(ScatterError::GradientShape {
            tensor: "grad_output",
            expected: copied(expected)?,
            actual: copied(gradient.shape())?,
        })
    })
}

/// Plans and sums once.
pub(crate) fn sum_once(
    form: &Form,
    sums: &Target<'_>,
    gradient: &Source<'_>,
    indices: &Indices<'_>,
    scale: f64,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let summing = Summing::new(sums.elements(), scale, execution)?;
    let (shape, listed) = (sums.shape(), indices.layout().shape());
    if !form.is_updates_shape(shape, listed, gradient.shape()) {
        return Err(other_shape(&form.updates_shape(shape, listed)?, gradient));
    }
    summing.lend(sums, gradient, Some(indices), |operands| {
        once(form, operands, &indices.integers()?, planning, execution)
    })
}

/// Sums by a plan that is kept.
pub(super) fn sum_planned(
    plan: &IndexPlan,
    sums: &Target<'_>,
    gradient: &Source<'_>,
    scale: f64,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let summing = Summing::new(sums.elements(), scale, execution)?;
    if gradient.shape() != plan.updates_shape() {
        return Err(other_shape(plan.updates_shape(), gradient));
    }
    summing.lend(sums, gradient, None, |operands| {
        execute(plan, true, operands, execution)
    })
}
