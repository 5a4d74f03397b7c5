//! Names of the values of options and conversions: the constants of the C header.
//!
//! The fields of `nds_options`, `nds_conversion` and `nds_sharding` are `int32_t`, because a C compiler
//! may choose another size for an enum. The files `options.rs`, `writes.rs` and `sharding.rs` read the
//! number of a field as a position in an array of values. At compile time, this file checks that the
//! number of each constant is the position of its value.

use ndscatter::{Accumulate, Bounds, Format, Goal, NoneGradient, Reduction, Rounding, Scaling};

use crate::options::GOALS;
use crate::writes::FORMATS;

/// Values of nds_options.reduction: how an update is combined with the value at its destination.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_reduction {
    /// The update replaces the value. The last update of a destination stays.
    NDS_REDUCTION_NONE = 0,
    /// value + update
    NDS_REDUCTION_ADD = 1,
    /// value - update
    NDS_REDUCTION_SUB = 2,
    /// value * update
    NDS_REDUCTION_MUL = 3,
    /// The smaller of value and update, or NaN.
    NDS_REDUCTION_MIN = 4,
    /// The larger of value and update, or NaN.
    NDS_REDUCTION_MAX = 5,
    /// The mean of the value and all updates of a destination.
    NDS_REDUCTION_MEAN = 6,
}

/// Values of nds_options.bounds: treatment of an index out of bounds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_bounds {
    /// The call fails. For slots of a paged cache, this value and forbid_negative 0 are
    /// NDS_BOUNDS_SKIP_NEGATIVE.
    NDS_BOUNDS_ERROR = 0,
    /// The tuple of the index is skipped. A gather writes zeros for this tuple.
    NDS_BOUNDS_SKIP = 1,
    /// The index is clamped to the nearest valid index.
    NDS_BOUNDS_CLAMP = 2,
    /// The tuple of an index below its axis is skipped. The call fails if an index is beyond the end
    /// of its axis.
    NDS_BOUNDS_SKIP_NEGATIVE = 3,
}

/// Values of nds_options.accumulate: type in which the values of float16 and bfloat16 are
/// accumulated.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_accumulate {
    /// The type of the elements: the value is rounded after every update.
    NDS_ACCUMULATE_NATIVE = 0,
    /// float32: the value is rounded once, after all updates.
    NDS_ACCUMULATE_WIDE = 1,
}

/// Values of nds_options.none_gradient: updates that receive a gradient in a scatter without a
/// reduction.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_none_gradient {
    /// The last update of each destination. The gradients of the other updates are 0.
    NDS_NONE_GRADIENT_LAST_WRITE = 0,
    /// Every update receives the gradient of its destination.
    NDS_NONE_GRADIENT_EVERY_DUPLICATE = 1,
}

/// Values of nds_options.goal: use of the pool's threads. No result depends on the goal.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_goal {
    /// Calls that run at the same time on the library's pool divide its threads.
    NDS_GOAL_SHARE = 0,
    /// The call uses all threads that max_threads allows, also if other calls run.
    NDS_GOAL_LATENCY = 1,
    /// The call runs on the calling thread.
    NDS_GOAL_THROUGHPUT = 2,
}

/// Values of nds_conversion.format: format of the elements of data.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_format {
    /// The element type of data.
    NDS_FORMAT_OF_DATA = 0,
    /// IEEE binary32.
    NDS_FORMAT_FLOAT32 = 1,
    /// IEEE binary16.
    NDS_FORMAT_FLOAT16 = 2,
    /// The upper 16 bits of a float32.
    NDS_FORMAT_BFLOAT16 = 3,
    /// 8-bit float with 4 exponent bits, without infinity. Data may have the type int8 or uint8.
    NDS_FORMAT_FLOAT8_E4M3FN = 4,
    /// 8-bit float with 5 exponent bits. Data may have the type int8 or uint8.
    NDS_FORMAT_FLOAT8_E5M2 = 5,
    /// Integers -128 to 127.
    NDS_FORMAT_INT8 = 6,
    /// Integers 0 to 255.
    NDS_FORMAT_UINT8 = 7,
    /// 4-bit integers -8 to 7. Data has the type int8 or uint8. One element of data has two 4-bit
    /// integers, the first of them in the low 4 bits.
    NDS_FORMAT_INT4 = 8,
    /// 4-bit integers 0 to 15, stored as those of NDS_FORMAT_INT4.
    NDS_FORMAT_UINT4 = 9,
}

/// Values of nds_conversion.rounding.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_rounding {
    /// To the nearest value, ties to even. A value that is too large becomes infinity, or NaN in
    /// float8_e4m3fn.
    NDS_ROUNDING_NEAREST_EVEN = 0,
    /// To the nearest value, ties to even. The magnitude of a value that is too large becomes the
    /// largest finite value, as in ONNX Cast with saturate.
    NDS_ROUNDING_SATURATE = 1,
    /// As NDS_ROUNDING_SATURATE, and NaN becomes the largest finite value, as in vLLM.
    NDS_ROUNDING_SATURATE_NAN = 2,
    /// Toward zero, and otherwise as NDS_ROUNDING_SATURATE_NAN.
    NDS_ROUNDING_TRUNCATE = 3,
}

/// Values of nds_conversion.scaling: use of the scale.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_scaling {
    /// value / scale
    NDS_SCALING_DIVIDE = 0,
    /// value * (1 / scale)
    NDS_SCALING_RECIPROCAL = 1,
}

/// Values of nds_sharding.rule: division of the rows of a table among parts.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum nds_sharding_rule {
    /// Every part has a block of consecutive rows. A block has rows / parts rows, rounded up. The
    /// last blocks may have fewer rows, or none.
    NDS_SHARDING_BLOCKS = 0,
    /// Part r % parts has row r, as its row r / parts.
    NDS_SHARDING_MODULO = 1,
    /// Each part has the rows from its start to the start of the next part. The last part has all
    /// rows from its start to the end of the table.
    NDS_SHARDING_STARTS = 2,
}

impl nds_sharding_rule {
    /// All rules, at the positions of their numbers. The crate `ndscatter` has a constructor for each
    /// rule, and no type of rules.
    pub(crate) const ALL: [Self; 3] = [
        Self::NDS_SHARDING_BLOCKS,
        Self::NDS_SHARDING_MODULO,
        Self::NDS_SHARDING_STARTS,
    ];
}

/// Checks that the array has one value for each constant, in the order of the numbers of the
/// constants.
macro_rules! positions {
    ($all:expr, $enum:ident: $($constant:ident = $value:pat,)*) => {
        const _: () = {
            let constants = [$($enum::$constant as usize),*];
            assert!(constants.len() == $all.len(), "one constant for each value");
            $(match $all[$enum::$constant as usize] {
                $value => {}
                _ => panic!("the constant is not the position of its value"),
            })*
        };
    };
}

positions! { Reduction::ALL, nds_reduction:
    NDS_REDUCTION_NONE = Reduction::None,
    NDS_REDUCTION_ADD = Reduction::Add,
    NDS_REDUCTION_SUB = Reduction::Sub,
    NDS_REDUCTION_MUL = Reduction::Mul,
    NDS_REDUCTION_MIN = Reduction::Min,
    NDS_REDUCTION_MAX = Reduction::Max,
    NDS_REDUCTION_MEAN = Reduction::Mean,
}
positions! { Bounds::ALL, nds_bounds:
    NDS_BOUNDS_ERROR = Bounds::Error,
    NDS_BOUNDS_SKIP = Bounds::Skip,
    NDS_BOUNDS_CLAMP = Bounds::Clamp,
    NDS_BOUNDS_SKIP_NEGATIVE = Bounds::SkipNegative,
}
positions! { Accumulate::ALL, nds_accumulate:
    NDS_ACCUMULATE_NATIVE = Accumulate::Native,
    NDS_ACCUMULATE_WIDE = Accumulate::Wide,
}
positions! { NoneGradient::ALL, nds_none_gradient:
    NDS_NONE_GRADIENT_LAST_WRITE = NoneGradient::LastWrite,
    NDS_NONE_GRADIENT_EVERY_DUPLICATE = NoneGradient::EveryDuplicate,
}
positions! { GOALS, nds_goal:
    NDS_GOAL_SHARE = None,
    NDS_GOAL_LATENCY = Some(Goal::Latency),
    NDS_GOAL_THROUGHPUT = Some(Goal::Throughput),
}
positions! { FORMATS, nds_format:
    NDS_FORMAT_OF_DATA = None,
    NDS_FORMAT_FLOAT32 = Some(Format::F32),
    NDS_FORMAT_FLOAT16 = Some(Format::F16),
    NDS_FORMAT_BFLOAT16 = Some(Format::BF16),
    NDS_FORMAT_FLOAT8_E4M3FN = Some(Format::F8E4M3Fn),
    NDS_FORMAT_FLOAT8_E5M2 = Some(Format::F8E5M2),
    NDS_FORMAT_INT8 = Some(Format::I8),
    NDS_FORMAT_UINT8 = Some(Format::U8),
    NDS_FORMAT_INT4 = Some(Format::I4),
    NDS_FORMAT_UINT4 = Some(Format::U4),
}
positions! { Rounding::ALL, nds_rounding:
    NDS_ROUNDING_NEAREST_EVEN = Rounding::NearestEven,
    NDS_ROUNDING_SATURATE = Rounding::Saturate,
    NDS_ROUNDING_SATURATE_NAN = Rounding::SaturateNan,
    NDS_ROUNDING_TRUNCATE = Rounding::Truncate,
}
positions! { Scaling::ALL, nds_scaling:
    NDS_SCALING_DIVIDE = Scaling::Divide,
    NDS_SCALING_RECIPROCAL = Scaling::Reciprocal,
}
positions! { nds_sharding_rule::ALL, nds_sharding_rule:
    NDS_SHARDING_BLOCKS = nds_sharding_rule::NDS_SHARDING_BLOCKS,
    NDS_SHARDING_MODULO = nds_sharding_rule::NDS_SHARDING_MODULO,
    NDS_SHARDING_STARTS = nds_sharding_rule::NDS_SHARDING_STARTS,
}
