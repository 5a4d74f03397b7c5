//! Gradients: what is sent back from a result to what it was made of.
//!
//! Knows operators, plans, and the passes that the executor runs. No other room imports
//! this one.

mod gather_verbs;
mod gathers;
mod groups;
mod overwritten;
mod passes;
mod placed;
mod saved;
mod scatter_verbs;
mod scatters;
mod tensors;
mod views;

pub use saved::Saved;
pub use views::{Forward, Gradients};

use crate::element::DType;
use crate::error::ScatterError;
use crate::memory::copied;
use crate::operand::{Dims, Elements};

/// What gradients are multiplied by.
#[derive(Clone, Copy, Debug)]
struct Factor {
    dtype: DType,
    /// In the type that they are computed in; 1 where nothing counts.
    value: f64,
    /// Whether nothing counts, neither infinity nor NaN.
    is_zero: bool,
}

impl Factor {
    /// Refuses elements that have no gradient, and factors that are not finite.
    fn new(elements: Elements, scale: f64) -> Result<Self, ScatterError> {
        let Elements::Plain(dtype) = elements else {
            return Err(ScatterError::GradientOfClones);
        };
        let computed = dtype.computed().ok_or(ScatterError::NoGradient { dtype })?;
        let value = rounded(scale, computed);
        if !value.is_finite() {
            return Err(ScatterError::Scale { dtype: computed });
        }
        let is_zero = value == 0.0;
        Ok(Self {
            dtype,
            value: if is_zero { 1.0 } else { value },
            is_zero,
        })
    }
}

/// The factor in the type that gradients are computed in.
#[expect(clippy::cast_possible_truncation, reason = "rounded, as the rule asks")]
fn rounded(scale: f64, computed: DType) -> f64 {
    match computed {
        DType::F32 => f64::from(scale as f32),
        _ => scale,
    }
}

/// As many zeros as a shape has sizes.
fn zeros(shape: &[usize]) -> Result<Dims<isize>, ScatterError> {
    Dims::collect(shape.len(), shape.iter().map(|_| 0))
}

/// The error for a gradient that has another shape.
#[cold]
fn other_shape(tensor: &'static str, expected: &[usize], actual: &[usize]) -> ScatterError {
    ScatterError::with_facts(|| {
        Ok(ScatterError::GradientShape {
            tensor,
            expected: copied(expected)?,
            actual: copied(actual)?,
        })
    })
}
