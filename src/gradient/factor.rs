//! The factor that gradients are multiplied by.

use crate::element::DType;
use crate::error::ScatterError;
use crate::operand::Elements;

/// What gradients are multiplied by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub(super) dtype: DType,
    /// In the type that they are computed in; 1 where nothing counts.
    pub(super) value: f64,
    /// Whether nothing counts, neither infinity nor NaN.
    pub(super) is_zero: bool,
}

impl Factor {
    /// Refuses elements that have no gradient, and factors that are not finite.
    #[expect(clippy::cast_possible_truncation, reason = "rounded, as the rule asks")]
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
