//! Options of an operator: how an update is combined with the existing value, and the rules for
//! duplicates, indices out of bounds, accumulation, gradients and caches.
//!
//! This module knows the values of options and their names. It does not implement the options.

use crate::names::named;

/// How an update is combined with the current value of its destination.
///
/// Updates of one destination are applied one after another, in the row-major order of
/// `indices`. Integers wrap. `Min` and `Max` give NaN if the current value or the update is NaN. If
/// the current value and the update are equal (as 0 and -0 are), the current value stays.
///
/// | elements | reductions |
/// |---|---|
/// | integers, floats | all |
/// | complex numbers | all except `Min` and `Max` |
/// | `bool` | all except `Mean`: `Add` and `Max` are OR, `Sub` is XOR, `Mul` and `Min` are AND |
/// | unknown types ([`DType::is_opaque`](crate::DType::is_opaque)), [`Cloned`](crate::Cloned) | only `None` |
///
/// Complex numbers need the feature `complex`, 16-bit floats need `float16`, and integers of 8 and
/// 16 bits need `narrow-integers`. Without the feature, the elements have only the reduction `None`.
///
/// If an element type does not have a reduction, the call returns
/// [`ScatterError::UnsupportedReduction`] or [`ScatterError::ReductionOfClones`].
///
/// If ONNX has the reduction, [`as_str`](Self::as_str) returns its name in ONNX. The method
/// `from_str` also reads names of OpenVINO (such as `sum`, `prod`), torch (`amax`, `multiply`) and
/// JAX (`update`). The page `docs/semantics.md` lists all names.
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
    /// The minimum of the current value and the update.
    Min,
    /// The maximum of the current value and the update.
    Max,
    /// The sum of the existing value and all updates of the destination, divided by the number of
    /// summands. Without `include_self`, the existing value is not a summand.
    ///
    /// The sum is computed as `Add` computes it. The summands are counted exactly. Means of
    /// integers are rounded towards negative infinity. For `f32` and `f64`, the sum is divided
    /// once, by the number of summands rounded to the type. For 16-bit floats, the division is
    /// computed in `f32`. For complex numbers, each component is divided.
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
    // The first name of each row is what `as_str` returns: the ONNX name, if ONNX has the
    // reduction. The other names are those of JAX, CoreML, OpenVINO, TensorFlow, numpy and torch.
    None => "none" | "update" | "set" | "assign" | "copy",
    Add => "add" | "sum",
    Sub => "sub" | "subtract",
    Mul => "mul" | "multiply" | "prod",
    Min => "min" | "amin" | "minimum",
    Max => "max" | "amax" | "maximum",
    Mean => "mean" | "average" | "avg",
}

/// Rule for duplicates: several tuples with the same destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Updates of tuples with the same destination are applied in the row-major order of `indices`.
    /// Without a reduction, the last update stays.
    #[default]
    Allow,
    /// Two tuples with the same destination are an error
    /// ([`ScatterError::DuplicateIndex`](crate::ScatterError::DuplicateIndex)), found before the
    /// first write.
    Reject,
}

named! { Duplicates, "rule for duplicates":
    Allow => "allow",
    Reject => "reject",
}

/// Type in which a reduction of 16-bit floats computes the value of a destination.
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

/// Which updates of a destination receive a gradient if updates replace the existing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoneGradient {
    /// Only the last update, because it is the final value of the destination. This gradient is
    /// exact.
    #[default]
    LastWrite,
    /// Every update receives the gradient of its destination, as torch documents.
    EveryDuplicate,
}

named! { NoneGradient, "gradient without a reduction":
    LastWrite => "last write",
    EveryDuplicate => "every duplicate",
}

/// Options of how updates are combined with the existing values.
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

/// Options that select how updates are combined with the existing values, and which updates receive
/// a gradient.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) reducing: Reducing,
    pub(crate) none_gradient: NoneGradient,
}

/// Rule for an index outside its axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// An index outside its axis is an error
    /// ([`ScatterError::IndexOutOfBounds`](crate::ScatterError::IndexOutOfBounds)). It is found
    /// before the first write, unless the output is new memory.
    #[default]
    Error,
    /// A tuple with an index outside its axis is skipped. A scatter does not apply the window of
    /// updates of this tuple. A gather writes a window of zeros for this tuple (zero bytes for an
    /// unknown type). Plans report [how many tuples were skipped](crate::ScatterPlan::skipped).
    Skip,
    /// A coordinate outside its axis becomes the nearest position on the axis. If negative
    /// coordinates are allowed, the size of the axis is first added to a negative coordinate. If
    /// the sum is still negative, or negative coordinates are not allowed, the position is 0. A
    /// coordinate on an axis without elements is still an error.
    Clamp,
    /// A tuple with an index below its axis is skipped, as by [`Skip`](Self::Skip). An index beyond
    /// the end of its axis is an error, as by [`Error`](Self::Error). Inference servers fill the
    /// unused entries of a list of slots with -1.
    SkipNegative,
}

impl Bounds {
    /// Whether the rule skips some tuples.
    pub(crate) fn skips(self) -> bool {
        matches!(self, Self::Skip | Self::SkipNegative)
    }

    /// Whether an index out of bounds can be an error, on an axis with elements.
    pub(crate) fn can_fail(self) -> bool {
        matches!(self, Self::Error | Self::SkipNegative)
    }
}

named! { Bounds, "rule for bounds":
    // The other names are those of numpy (`raise`, `clip`), JAX (`drop`, `clip`) and TensorFlow
    // (`ignore`).
    Error => "error" | "raise",
    Skip => "skip" | "drop" | "ignore",
    Clamp => "clamp" | "clip",
    SkipNegative => "skip negative",
}

/// How [`Scatter::cache`](crate::Scatter::cache) writes an update near the end of the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// The update must fit between its start position and the end of the axis.
    #[default]
    Linear,
    /// The update continues at the beginning of the axis: positions are taken modulo the length of
    /// the axis.
    Circular,
}

named! { CacheMode, "mode of a cache":
    Linear => "linear",
    Circular => "circular",
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Reduction};

    #[test]
    fn every_runtime_spelling_is_understood() {
        let cases = [
            ("sum", Reduction::Add),      // OpenVINO, torch
            ("prod", Reduction::Mul),     // OpenVINO, torch
            ("AMAX", Reduction::Max),     // torch, any case
            ("multiply", Reduction::Mul), // torch scatter_
            ("minimum", Reduction::Min),  // numpy
            ("update", Reduction::None),  // JAX, CoreML
            ("copy", Reduction::None),    // torch index_copy_
        ];
        for (name, expected) in cases {
            assert_eq!(name.parse(), Ok(expected), "{name}");
        }
        let cases = [
            ("raise", Bounds::Error),                // numpy
            ("clip", Bounds::Clamp),                 // numpy, JAX
            ("drop", Bounds::Skip),                  // JAX
            ("IGNORE", Bounds::Skip),                // TensorFlow
            ("skip-negative", Bounds::SkipNegative), // one word on a command line
        ];
        for (name, expected) in cases {
            assert_eq!(name.parse(), Ok(expected), "{name}");
        }
    }
}
