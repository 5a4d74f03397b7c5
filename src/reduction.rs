//! How an update meets the value that is already there, and what a repeated
//! destination or an index out of bounds means.

use std::fmt;
use std::str::FromStr;

/// How an update is combined with the current value of its destination.
///
/// Updates of one destination are applied in the row-major order of
/// `indices`, one after another. Integers wrap. `Min` and `Max` propagate NaN
/// from either side and keep the current value on a tie. On `bool`, `Add` and
/// `Max` are OR, `Sub` is XOR, `Mul` and `Min` are AND; it has no `Mean`. Complex
/// numbers have no `Min` and `Max`. Types that the crate does not know
/// ([`DType::is_opaque`](crate::DType::is_opaque)) and elements that are cloned
/// have `None` alone.
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
    /// Every reduction, in the order of their declaration.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Min,
        Self::Max,
        Self::Mean,
    ];

    /// The name that ONNX gives it, where ONNX has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text given to [`Reduction::from_str`] names no reduction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no reduction is called {0:?}; use none, add, sub, mul, min, max or mean")]
pub struct UnknownReduction(pub String);

impl FromStr for Reduction {
    type Err = UnknownReduction;

    /// Reads a name in the spelling of any runtime: ONNX (`add`, `mul`),
    /// OpenVINO (`sum`, `prod`), torch (`amax`, `multiply`), JAX (`update`).
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.to_ascii_lowercase().as_str() {
            "none" | "update" | "set" | "assign" => Ok(Self::None),
            "add" | "sum" => Ok(Self::Add),
            "sub" | "subtract" => Ok(Self::Sub),
            "mul" | "multiply" | "prod" => Ok(Self::Mul),
            "min" | "amin" | "minimum" => Ok(Self::Min),
            "max" | "amax" | "maximum" => Ok(Self::Max),
            "mean" | "average" | "avg" => Ok(Self::Mean),
            _ => Err(UnknownReduction(name.to_owned())),
        }
    }
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

/// How a cache is written at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// Updates must fit between their position and the end.
    #[default]
    Linear,
    /// Positions go on at the beginning, modulo the length of the axis.
    Circular,
}

#[cfg(test)]
mod tests {
    use super::Reduction;

    #[test]
    fn names_round_trip() {
        for reduction in Reduction::ALL {
            assert_eq!(
                reduction.as_str().parse(),
                Ok(reduction),
                "its own name must parse"
            );
        }
    }

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
        assert!("median".parse::<Reduction>().is_err(), "not a reduction");
    }
}
