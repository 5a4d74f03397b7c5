//! Options of an operator: how an update is combined with the existing value, and the rules for
//! duplicates, indices out of bounds, accumulation, gradients and caches.
//!
//! This module knows names and values. This module does not know how a rule is carried out.

use crate::names::named;

/// How an update is combined with the current value of its destination.
///
/// Updates of one destination are applied one after another, in the row-major order of
/// `indices`. Integers wrap. `Min` and `Max` propagate NaN from either side and keep the current
/// value on a tie.
///
/// | elements | reductions |
/// |---|---|
/// | integers, floats | all |
/// | complex numbers | all except `Min` and `Max` |
/// | `bool` | all except `Mean`: `Add` and `Max` are OR, `Sub` is XOR, `Mul` and `Min` are AND |
/// | unknown types ([`DType::is_opaque`](crate::DType::is_opaque)), [`Cloned`](crate::Cloned) | only `None` |
///
/// A reduction of elements that the table does not list is refused with
/// [`ScatterError::UnsupportedReduction`] or [`ScatterError::ReductionOfClones`].
///
/// [`as_str`](Self::as_str) is the name in ONNX, where ONNX has the reduction. `from_str` also
/// reads the names of OpenVINO (`sum`, `prod`), torch (`amax`, `multiply`) and JAX (`update`),
/// in any case.
///
/// [`ScatterError::UnsupportedReduction`]: crate::ScatterError::UnsupportedReduction
/// [`ScatterError::ReductionOfClones`]: crate::ScatterError::ReductionOfClones
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// The update replaces the value. If a destination has several updates, the last one stays.
    #[default]
    None,
    /// `current + update`.
    Add,
    /// `current - update`.
    Sub,
    /// `current * update`.
    Mul,
    /// The smaller one of the current value and the update.
    Min,
    /// The larger one of the current value and the update.
    Max,
    /// The sum of the current value and the updates, divided by the number of summands.
    ///
    /// The sum is computed as `Add` computes it. The number of summands is exact. Integers round
    /// towards negative infinity. `f32` and `f64` divide once, by the number rounded to the
    /// type. 16-bit floats divide in `f32`. Complex numbers divide each component.
    Mean,
}

impl Reduction {
    /// Whether the gradients of this reduction depend on the values that it combines: the existing
    /// values and the updates.
    pub(crate) fn depends_on_values(self) -> bool {
        matches!(self, Self::Mul | Self::Min | Self::Max)
    }
}

named! { Reduction, "reduction":
    // The names of ONNX, then those of JAX and CoreML, OpenVINO, and torch.
    None => "none" | "update" | "set" | "assign",
    Add => "add" | "sum",
    Sub => "sub" | "subtract",
    Mul => "mul" | "multiply" | "prod",
    Min => "min" | "amin" | "minimum",
    Max => "max" | "amax" | "maximum",
    Mean => "mean" | "average" | "avg",
}

/// Rule for two tuples with one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Updates of tuples with one destination are applied in the row-major order of `indices`.
    /// Without a reduction the last update stays.
    #[default]
    Allow,
    /// Two tuples with one destination are an error
    /// ([`ScatterError::DuplicateIndex`](crate::ScatterError::DuplicateIndex)), found before the
    /// first write.
    Reject,
}

named! { Duplicates, "rule for duplicates":
    Allow => "allow",
    Reject => "reject",
}

/// Type of the running value of a destination of 16-bit floats.
///
/// This option makes no difference for other element types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// The element type. The value is rounded after every update, as in numpy and OpenVINO.
    #[default]
    Native,
    /// `f32`. The value is rounded once, after all updates of the destination, as in torch's
    /// scatter.
    Wide,
}

named! { Accumulate, "kind of accumulation":
    Native => "native",
    Wide => "wide",
}

/// Which updates of one destination have a gradient when updates replace the existing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoneGradient {
    /// The last update, which is the value of the destination. With this rule, the gradient is
    /// exact.
    #[default]
    LastWrite,
    /// Every update, each with the gradient of its destination, as torch documents it.
    EveryDuplicate,
}

named! { NoneGradient, "gradient without a reduction":
    LastWrite => "last write" | "last_write",
    EveryDuplicate => "every duplicate" | "every_duplicate",
}

/// How updates change their destinations, whatever the destinations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reducing {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
}

impl Default for Reducing {
    /// Returns the options with which updates replace the existing value.
    fn default() -> Self {
        Self {
            reduction: Reduction::None,
            include_self: true,
            accumulate: Accumulate::Native,
        }
    }
}

/// How updates change their destinations, and which updates have a gradient.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) reducing: Reducing,
    pub(crate) none_gradient: NoneGradient,
}

/// Rule for an index outside its axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// An index outside its axis is an error
    /// ([`ScatterError::IndexOutOfBounds`](crate::ScatterError::IndexOutOfBounds)), found before
    /// the first write.
    #[default]
    Error,
    /// A scatter drops the tuple of the index with its whole window. A gather writes a window of
    /// zeros, or of zero bytes for an unknown type. Plans report [how many tuples were
    /// skipped](crate::ScatterPlan::skipped).
    Skip,
    /// A coordinate outside its axis is moved to the nearest end of the axis. If negative
    /// coordinates are allowed, the size of the axis is first added to a negative coordinate. A
    /// negative coordinate that is forbidden or too low becomes 0. An axis without elements is
    /// still an error.
    Clamp,
}

named! { Bounds, "rule for bounds":
    Error => "error",
    Skip => "skip",
    Clamp => "clamp",
}

/// How a cache is written at the end of its axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// The update must fit between its position and the end.
    #[default]
    Linear,
    /// Positions continue at the beginning: they are taken modulo the length of the axis.
    Circular,
}

named! { CacheMode, "mode of a cache":
    Linear => "linear",
    Circular => "circular",
}

#[cfg(test)]
mod tests {
    use super::Reduction;

    #[test]
    fn every_runtime_spelling_is_understood() {
        let cases = [
            ("sum", Reduction::Add),      // OpenVINO, torch
            ("prod", Reduction::Mul),     // OpenVINO, torch
            ("AMAX", Reduction::Max),     // torch, any case
            ("multiply", Reduction::Mul), // torch scatter_
            ("update", Reduction::None),  // JAX, CoreML
        ];
        for (name, expected) in cases {
            assert_eq!(name.parse(), Ok(expected), "{name}");
        }
    }
}
