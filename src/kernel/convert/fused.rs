//! Converts contiguous elements to formats of 8 bits in one loop, with one scale and one zero point.
//!
//! The module knows lines of contiguous elements. `load` knows the types of the source and the
//! scaling. `narrow` knows the formats and the roundings. The values stay in registers, so the code
//! for each combination of types and rules is compiled. The combinations are limited to formats of 8
//! bits and common roundings.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use super::ConvertRun;
use super::load::{Apply, Source, scaled_with_sign};
use super::narrow::{Round, Target};
use crate::kernel::InstructionSet;
use crate::kernel::dispatch::{Kernel, compiled_for_avx512};

/// Lines of contiguous elements that have one scale and one zero point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// Number of elements of a line.
    len: usize,
    /// Number of lines.
    lines: usize,
    /// Strides from one line to the next, in elements.
    dst_step: isize,
    src_step: isize,
    /// The scale, or its reciprocal if [`Fused::reciprocal`] is true.
    scale: f32,
    zero: i32,
}

/// A function that converts the lines of a list, from the source to the destination.
///
/// # Safety
///
/// All source elements of the lines are initialised, aligned and valid for reads. All destination
/// elements are aligned and valid for writes. They share no memory, and nothing else accesses the
/// destination elements. The machine has the instruction set of the function.
type LinesFn = unsafe fn(dst: *mut u8, src: *const u8, list: &[Lines], ());

/// The loops of one conversion.
pub(super) struct Fused {
    /// Ignores the scale.
    unscaled: LinesFn,
    scaled: LinesFn,
    /// Whether `scaled` gets reciprocals of scales.
    reciprocal: bool,
}

impl Fused {
    /// Returns the loops from `S` to `T` by the rules `R` and `A`, if there are such loops. Only
    /// machines with `isa` may call them.
    ///
    /// x86-64 without AVX2 has none, because such machines are rare.
    pub(super) const fn of<S: Source, T: Target, R: Round, A: Apply>(
        isa: InstructionSet,
    ) -> Option<Self> {
        let is_rare = cfg!(target_arch = "x86_64") && matches!(isa, InstructionSet::Portable);
        if is_rare || T::PACKED || size_of::<T::Stored>() != 1 || !R::IS_COMMON {
            return None;
        }
        Some(Self {
            unscaled: compiled_for_avx512::<Unscaled<S, T, R>>(isa),
            scaled: compiled_for_avx512::<Scaled<S, T, R, A>>(isa),
            reciprocal: A::RECIPROCAL,
        })
    }

    /// Returns whether the loops convert runs with the strides of `run`.
    pub(super) fn takes(run: &ConvertRun) -> bool {
        (run.dst_step, run.src_step) == (1, 1)
            && (run.scale.is_null() || run.scale_step == 0)
            && (run.zero.is_null() || run.zero_step == 0)
    }

    /// Converts a run.
    ///
    /// # Safety
    ///
    /// As for [`ConvertFn`](super::ConvertFn). The loops are those of a conversion from `S` for an
    /// instruction set of the machine, and [`takes`](Self::takes) has returned true for `run`.
    pub(super) unsafe fn convert<S: Source>(&self, dst: *mut u8, src: *const S, run: &ConvertRun) {
        let steps = run.line_steps;
        let scale_varies = !run.scale.is_null() && steps.scale != 0;
        let zero_varies = !run.zero.is_null() && steps.zero != 0;
        let (calls, lines) = match scale_varies || zero_varies {
            true => (run.lines, 1),
            false => (1, run.lines),
        };
        for line in 0..calls.cast_signed() {
            // SAFETY: the caller guarantees a scale and a zero point for each line, unless the
            // pointers are null.
            let (scale, zero) = unsafe {
                (
                    value_at(run.scale, line * steps.scale).unwrap_or(1.0),
                    value_at(run.zero, line * steps.zero).unwrap_or(0),
                )
            };
            let scale = if self.reciprocal { 1.0 / scale } else { scale };
            // Neither the product with 1 nor the quotient by 1 differs from the value.
            let function = match scale.to_bits() == 1.0_f32.to_bits() {
                true => self.unscaled,
                false => self.scaled,
            };
            let lines = Lines {
                len: run.len,
                lines,
                dst_step: steps.dst,
                src_step: steps.src,
                scale,
                zero,
            };
            let dst = dst.wrapping_offset(line * steps.dst);
            let src = src.wrapping_offset(line * steps.src).cast();
            // SAFETY: the caller guarantees the elements of the run, which include those of these
            // lines. Elements of the format have one byte.
            unsafe { function(dst, src, &[lines], ()) };
        }
    }
}

/// Returns the value at `offset` from `first`. `None`: `first` is null.
///
/// # Safety
///
/// Unless `first` is null, the value is initialised, aligned and valid for reads.
unsafe fn value_at<T: Copy>(first: *const T, offset: isize) -> Option<T> {
    // SAFETY: the caller guarantees the value.
    (!first.is_null()).then(|| unsafe { *first.wrapping_offset(offset) })
}

/// The loop that converts elements of type `S` to the format `T` by the rule `R`, and applies scales
/// by the rule `A`.
struct Scaled<S, T, R, A>(PhantomData<(S, T, R, A)>);

impl<S: Source, T: Target, R: Round, A: Apply> Kernel for Scaled<S, T, R, A> {
    type Entry = Lines;
    type Form<'a> = ();

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, list: &[Lines], (): ()) {
        for entry in list {
            for line in 0..entry.lines {
                // SAFETY: the caller guarantees the elements of each line.
                let (codes, elements) = unsafe { entry.line::<S, T>(dst, src, line) };
                for (code, element) in codes.iter_mut().zip(elements) {
                    let value = scaled_with_sign::<A>(element.widened(), entry.scale);
                    code.write(T::narrowed::<R>(value, entry.zero));
                }
            }
        }
    }
}

/// The loop that converts elements of type `S` to the format `T` by the rule `R`, without a scale.
struct Unscaled<S, T, R>(PhantomData<(S, T, R)>);

impl<S: Source, T: Target, R: Round> Kernel for Unscaled<S, T, R> {
    type Entry = Lines;
    type Form<'a> = ();

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, list: &[Lines], (): ()) {
        for entry in list {
            for line in 0..entry.lines {
                // SAFETY: the caller guarantees the elements of each line.
                let (codes, elements) = unsafe { entry.line::<S, T>(dst, src, line) };
                let mut done = 0;
                for (codes, block) in codes
                    .as_chunks_mut::<32>()
                    .0
                    .iter_mut()
                    .zip(S::blocks(elements))
                {
                    let Some(new) = T::narrowed_block::<R>(block) else {
                        break;
                    };
                    for (code, new) in codes.iter_mut().zip(new) {
                        code.write(new);
                    }
                    done += block.len();
                }
                for (code, element) in codes[done..].iter_mut().zip(&elements[done..]) {
                    code.write(T::narrowed::<R>(element.widened(), entry.zero));
                }
            }
        }
    }
}

impl Lines {
    /// Returns the destination and the source of a line.
    ///
    /// # Safety
    ///
    /// The caller guarantees the contract of [`LinesFn`] for a conversion from `S` to `T`. The
    /// argument `line` is less than the number of lines. The caller uses the result during the call
    /// of the loop only.
    #[inline(always)]
    unsafe fn line<'a, S: Source, T: Target>(
        &self,
        dst: *mut u8,
        src: *const u8,
        line: usize,
    ) -> (&'a mut [MaybeUninit<T::Stored>], &'a [S]) {
        let line = line.cast_signed();
        let dst = dst.cast::<MaybeUninit<T::Stored>>();
        let dst = dst.wrapping_offset(line * self.dst_step);
        let src = src.cast::<S>().wrapping_offset(line * self.src_step);
        // SAFETY: the caller guarantees the elements of the line, which share no memory.
        unsafe {
            (
                slice::from_raw_parts_mut(dst, self.len),
                slice::from_raw_parts(src, self.len),
            )
        }
    }
}
