//! How an update meets the value that is already there, and what a repeated
//! destination or an index out of bounds means.

use crate::names::named;

/// How an update is combined with the current value of its destination.
///
/// Updates of one destination are applied in the row-major order of
/// `indices`, one after another. Integers wrap. `Min` and `Max` propagate NaN
/// from either side and keep the current value on a tie. On `bool`, `Add` and
/// `Max` are OR, `Sub` is XOR, `Mul` and `Min` are AND; it has no `Mean`. Complex
/// numbers have no `Min` and `Max`. Types that the crate does not know
/// ([`DType::is_opaque`](crate::DType::is_opaque)) and elements that are cloned
/// have `None` alone.
///
/// Its name is that of ONNX, where ONNX has it. The names of other runtimes are read too:
/// OpenVINO's (`sum`, `prod`), torch's (`amax`, `multiply`), JAX's (`update`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// The update replaces the value; of several, the last one stays.
    #[default]
    None,
    /// `current + update`.
    Add,
    /// `current - update`.
    Sub,
    /// `current * update`.
    Mul,
    /// The smaller of the two.
    Min,
    /// The larger of the two.
    Max,
    /// The sum of the current value and the updates, divided by their number.
    ///
    /// The sum is that of `Add`, the number is exact. Integers round towards
    /// negative infinity; `f32` and `f64` divide once by the number rounded to
    /// the type; 16-bit floats divide in `f32`; complex numbers by component.
    Mean,
}

impl Reduction {
    /// Whether its gradients depend on the values that are combined.
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

/// What two tuples with one destination mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// They are applied in order; without a reduction the last one stays.
    #[default]
    Allow,
    /// They are an error, reported before anything is written.
    Reject,
}

named! { Duplicates, "rule for duplicates":
    Allow => "allow",
    Reject => "reject",
}

/// In what type the running value of a 16-bit float destination is kept.
///
/// For other element types there is no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// In its own: rounded after every update, as numpy and OpenVINO do.
    #[default]
    Native,
    /// In `f32`: rounded once, when all updates of the destination are in, as
    /// torch's scatter does.
    Wide,
}

named! { Accumulate, "kind of accumulation":
    Native => "native",
    Wide => "wide",
}

/// Which of several updates of one destination have a gradient, where they replace what is
/// there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoneGradient {
    /// The last, which is what the destination holds: exact.
    #[default]
    LastWrite,
    /// Each that of the destination, as torch documents it.
    EveryDuplicate,
}

named! { NoneGradient, "gradient without a reduction":
    LastWrite => "last write" | "last_write",
    EveryDuplicate => "every duplicate" | "every_duplicate",
}

/// What updates do to their destinations: the part of a scatter's meaning that
/// has nothing to do with where those are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reducing {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
}

impl Default for Reducing {
    /// They replace what is there.
    fn default() -> Self {
        Self {
            reduction: Reduction::None,
            include_self: true,
            accumulate: Accumulate::Native,
        }
    }
}

/// What updates do to their destinations, and which updates have a gradient.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) reducing: Reducing,
    pub(crate) none_gradient: NoneGradient,
}

/// What becomes of an index that lies outside its axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// It is an error, reported before anything is written.
    #[default]
    Error,
    /// Its tuple is dropped with its whole window; a gather writes zeros, bytes
    /// of zeros where it does not know the type. Plans say
    /// [how many](crate::ScatterPlan::skipped).
    Skip,
    /// Each coordinate, once negative ones have been counted from the end, is
    /// moved to the nearest end of its axis: a negative one that is forbidden
    /// or too low to 0. An axis without elements is still an error.
    Clamp,
}

named! { Bounds, "rule for bounds":
    Error => "error",
    Skip => "skip",
    Clamp => "clamp",
}

/// How a cache is written at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// Updates must fit between their position and the end.
    #[default]
    Linear,
    /// Positions go on at the beginning, modulo the length of the axis.
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
