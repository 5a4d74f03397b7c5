//! The factor that gradients are multiplied by.
//!
//! This module knows in which type the gradients of an element type are computed. It does not know
//! tensors.

use crate::element::DType;
use crate::error::ScatterError;
use crate::operand::Elements;

/// Factor of gradients: the caller's `scale`, rounded to the type that gradients are computed in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub(super) dtype: DType,
    /// The rounded factor of gradients, or 1 if the rounded factor is zero.
    pub(super) value: f64,
    /// Whether the rounded factor of gradients is zero. All gradients are then +0, even where the
    /// gradient of the output is infinite or NaN.
    pub(super) is_zero: bool,
}

impl Factor {
    /// Rounds `scale`, the factor of gradients, to the type that gradients are computed in. Returns
    /// an error if the elements have no gradient, or if `scale` is not finite before or after
    /// rounding.
    #[expect(clippy::cast_possible_truncation, reason = "rounded to f32")]
    pub(super) fn new(elements: Elements, scale: f64) -> Result<Self, ScatterError> {
        let Elements::Plain(dtype) = elements else {
            return Err(ScatterError::GradientOfClones);
        };
        let computed = dtype.computed().ok_or(ScatterError::NoGradient { dtype })?;
        let value = match computed {
            DType::F32 => f64::from(scale as f32),
            _ => scale,
        };
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
