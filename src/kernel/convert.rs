//! Converts runs of elements from one type to another: `f32`, `f16` or `bf16` to a [`Format`].
//!
//! This module knows runs of elements, and which loops convert a run. `load` knows the types of the
//! source and the scaling. `narrow` knows the formats and the roundings. No module here knows which
//! runs belong together, or which worker converts a run.
//!
//! Two modules have loops:
//!
//! - `fused` has one loop for each combination of types, from the source to the destination. The
//!   loop converts contiguous elements with one scale to formats of 8 bits.
//! - `blocks` has two loops, with `f32` values between them. They convert all other runs.

#![allow(unsafe_code, reason = "dereferences raw pointers")]

mod blocks;
mod fused;
mod load;
mod narrow;

use self::blocks::Loops;
use self::fused::Fused;
use self::load::{Apply, Dividing, Multiplying, Source};
use self::narrow::{E4m3Fn, E5m2, Integer, Round, Target};
use self::narrow::{NearestEven, Saturate, SaturateNan, Truncate};
use super::InstructionSet;
use super::half::{Bf16, F16};
use crate::conversion::{Format, Rounding, Scaling};
use crate::element::DType;

/// A run of a conversion: one or more lines of elements. Strides are in elements. Unless they are
/// strides of lines, they are those from one destination element to the next. The elements of a
/// packed format are bytes with two values.
///
/// Destination element `i` of a line of a packed format has two sources. The low 4 bits are the
/// source at `src + i * src_step`. The high 4 bits are the source `src_pair` elements after it. The
/// scale and the zero point of the high 4 bits are `scale_pair` and `zero_pair` elements after those
/// of the low 4 bits. Other formats ignore the three `pair` fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvertRun {
    /// Number of destination elements of a line.
    pub(crate) len: usize,
    /// Number of lines.
    pub(crate) lines: usize,
    /// Strides from the first element of a line to that of the next line.
    pub(crate) line_steps: LineSteps,
    pub(crate) dst_step: isize,
    pub(crate) src_step: isize,
    pub(crate) src_pair: isize,
    /// First scale. Null: there is no scale.
    pub(crate) scale: *const f32,
    pub(crate) scale_step: isize,
    pub(crate) scale_pair: isize,
    /// First zero point. Null: the zero point is 0. Floats ignore zero points.
    pub(crate) zero: *const i32,
    pub(crate) zero_step: isize,
    pub(crate) zero_pair: isize,
}

/// Strides from one line of a [`ConvertRun`] to the next, in elements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineSteps {
    pub(crate) dst: isize,
    pub(crate) src: isize,
    pub(crate) scale: isize,
    pub(crate) zero: isize,
}

/// Converts the elements of a run, from the source at `src` to the destination at `dst`.
///
/// Scales are positive and finite, and zero points are in the range of the format. Other scales and
/// zero points give unspecified results, and are not undefined behaviour.
///
/// # Safety
///
/// - All source elements, scales and zero points of the run are initialised, aligned and valid for
///   reads. All destination elements are aligned and valid for writes.
/// - Nothing else reads or writes the destination elements during the call. No destination element
///   shares memory with a source element, a scale or a zero point.
/// - The machine has the instruction set that [`convert_fn`] got.
pub(crate) type ConvertFn = unsafe fn(dst: *mut u8, src: *const u8, run: &ConvertRun);

/// Returns the function that converts `from` to `to`. `None`: `from` is not `F32`, `F16` or `BF16`.
/// The machine must have `isa`.
pub(crate) fn convert_fn(
    from: DType,
    to: Format,
    rounding: Rounding,
    scaling: Scaling,
    isa: InstructionSet,
) -> Option<ConvertFn> {
    let choice = (rounding, scaling, isa);
    Some(match from {
        DType::F32 => by_format::<f32>(to, choice),
        DType::F16 => by_format::<F16>(to, choice),
        DType::BF16 => by_format::<Bf16>(to, choice),
        _ => return None,
    })
}

/// The options that [`by_format`] and the functions below it resolve, one after another.
type Choice = (Rounding, Scaling, InstructionSet);

fn by_format<S: Source>(to: Format, choice: Choice) -> ConvertFn {
    match to {
        Format::F32 => by_rounding::<S, f32>(choice),
        Format::F16 => by_rounding::<S, F16>(choice),
        Format::BF16 => by_rounding::<S, Bf16>(choice),
        Format::F8E4M3Fn => by_rounding::<S, E4m3Fn>(choice),
        Format::F8E5M2 => by_rounding::<S, E5m2>(choice),
        Format::I8 => by_rounding::<S, Integer<-128, 127, false>>(choice),
        Format::U8 => by_rounding::<S, Integer<0, 255, false>>(choice),
        Format::I4 => by_rounding::<S, Integer<-8, 7, true>>(choice),
        Format::U4 => by_rounding::<S, Integer<0, 15, true>>(choice),
    }
}

fn by_rounding<S: Source, T: Target>(choice: Choice) -> ConvertFn {
    match choice.0 {
        Rounding::NearestEven => by_scaling::<S, T, NearestEven>(choice),
        Rounding::Saturate => by_scaling::<S, T, Saturate>(choice),
        Rounding::SaturateNan => by_scaling::<S, T, SaturateNan>(choice),
        Rounding::Truncate => by_scaling::<S, T, Truncate>(choice),
    }
}

fn by_scaling<S: Source, T: Target, R: Round>((_, scaling, isa): Choice) -> ConvertFn {
    match scaling {
        Scaling::Divide => by_isa::<S, T, R, Dividing>(isa),
        Scaling::Reciprocal => by_isa::<S, T, R, Multiplying>(isa),
    }
}

/// Returns the function for `isa`.
///
/// On Zen 5, the loops of `blocks` with AVX-512 are 1.1 to 2.6 times as fast as with AVX2. The
/// exception is `f32` to `f32`: AVX-512 takes 1.05 to 1.2 times as long as AVX2. On Emerald Rapids, calls
/// with the loops of `fused` are 1.1 to 1.5 times as fast.
fn by_isa<S: Source, T: Target, R: Round, A: Apply>(isa: InstructionSet) -> ConvertFn {
    let is_f32_to_f32 = S::IS_F32 && size_of::<T::Stored>() == size_of::<f32>();
    match isa {
        InstructionSet::Portable => run::<S, T, R, A, { InstructionSet::Portable as usize }>,
        InstructionSet::Avx512 if !is_f32_to_f32 => {
            run::<S, T, R, A, { InstructionSet::Avx512 as usize }>
        }
        _ => run::<S, T, R, A, { InstructionSet::Avx2 as usize }>,
    }
}

/// The [`ConvertFn`] for one combination of types and options.
///
/// # Safety
///
/// As for [`ConvertFn`]. `ISA` is the position of the instruction set in [`InstructionSet::ALL`].
unsafe fn run<S: Source, T: Target, R: Round, A: Apply, const ISA: usize>(
    dst: *mut u8,
    src: *const u8,
    run: &ConvertRun,
) {
    let fused = const { &Fused::of::<S, T, R, A>(InstructionSet::ALL[ISA]) };
    let loops = const { &Loops::of::<S, T, R, A>(InstructionSet::ALL[ISA]) };
    let src = src.cast::<S>();
    // SAFETY: the caller guarantees the contract of `ConvertFn`. The loops are those of `S` and `T`
    // for an instruction set of the machine. `takes` has checked the strides of the run.
    unsafe {
        match fused {
            Some(fused) if Fused::takes(run) => fused.convert(dst, src, run),
            _ => loops.convert(dst, src, run),
        }
    }
}
