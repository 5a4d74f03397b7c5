//! Gradients: what is sent back from a result to what it was made of.
//!
//! Knows how a factor is rounded.

mod gathers;
mod groups;
mod passes;
mod saved;
mod scatters;
mod tensors;
mod training;
mod views;

pub(crate) use gathers::sum_once;
pub(super) use gathers::sum_planned;
pub(super) use saved::Overwritten;
pub(crate) use scatters::backward_once;
pub(super) use scatters::backward_planned;
pub(crate) use tensors::{Meaning, Tensors};
pub use training::Saved;
pub(crate) use training::forward_once;
pub use views::{Forward, Gradients};
pub(crate) use views::{allocate, allocate_updates, lend};

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

/// Of a gradient that has another shape.
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
