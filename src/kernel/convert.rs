//! Converts runs of elements from one type to another: `f32`, `f16` or `bf16` to a [`Format`].
//!
//! This module knows runs of elements and their strides, scales and zero points. `load` knows the
//! types of the source and the scaling. `narrow` knows the formats and the roundings. No module here
//! knows which runs belong together, or which worker converts a run.
//!
//! A run is divided into blocks. Each block passes through two loops, with the values of the block
//! in between as `f32` on the stack:
//!
//! ```text
//! source ──load: widen, scale──> f32 values ──narrow: round──> codes ──> destination
//! ```
//!
//! 6 loops load and 36 loops narrow, so their combinations share code. There would be 324 loops that
//! do both at once, for each instruction set. Values that need no loading are narrowed where they
//! are.

#![allow(unsafe_code, reason = "dereferences raw pointers")]

mod load;
mod narrow;

use std::mem::MaybeUninit;
use std::ops::Range;
use std::slice;

use self::load::{Apply, Dividing, Load, Multiplying, Source};
use self::narrow::{E4m3Fn, E5m2, Integer, Narrow, Round, Target};
use self::narrow::{NearestEven, Saturate, SaturateNan, Truncate};
use super::InstructionSet;
use super::dispatch::compiled_for_avx512;
use super::half::{Bf16, F16};
use crate::conversion::{Format, Rounding, Scaling};
use crate::element::DType;

/// Maximum number of elements of a block. The buffers of a block stay in the L1 cache.
const BLOCK: usize = 512;

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
/// On Zen 5, conversions with AVX-512 are 1.1 to 2.6 times as fast as with AVX2: 2.3 times from `bf16`
/// to `f8e4m3fn`. The exception is `f32` to `f32`: AVX-512 takes 1.05 to 1.2 times as long as AVX2.
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

/// The [`ConvertFn`] for one combination of types and options. The functions of all combinations
/// with one source type share [`convert`].
///
/// # Safety
///
/// As for [`ConvertFn`]. `ISA` is the position of the instruction set in [`InstructionSet::ALL`].
unsafe fn run<S: Source, T: Target, R: Round, A: Apply, const ISA: usize>(
    dst: *mut u8,
    src: *const u8,
    run: &ConvertRun,
) {
    let loops = const {
        let isa = InstructionSet::ALL[ISA];
        &Loops {
            load: compiled_for_avx512::<Load<S, A>>(isa),
            narrow: compiled_for_avx512::<Narrow<T, R>>(isa),
            size: size_of::<T::Stored>(),
            packed: T::PACKED,
            reciprocal: A::RECIPROCAL,
        }
    };
    // SAFETY: the caller guarantees the contract of `ConvertFn`. The loops are those of `S`.
    unsafe { convert::<S>(loops, dst, src.cast(), run) }
}

/// The loops of one conversion, and facts about its types.
struct Loops {
    /// Widens source elements, and scales them. The list has one scale for each element, or is
    /// empty: there is no scale. The form is the number of elements. The caller guarantees as many
    /// initialised, aligned source elements, room for as many aligned `f32`, and that they share no
    /// memory.
    load: unsafe fn(*mut u8, *const u8, &[f32], usize),
    /// Rounds `f32` values to the format. The list has one zero point for each value. The caller
    /// guarantees one initialised, aligned value and room for one aligned element of the format for
    /// each entry of the list, and that they share no memory.
    narrow: unsafe fn(*mut u8, *const u8, &[i32], ()),
    /// Bytes of a destination element.
    size: usize,
    /// Whether a destination element has two values of 4 bits.
    packed: bool,
    /// Whether the loop that loads gets reciprocals of scales.
    reciprocal: bool,
}

/// Converts a run, line by line, and each line block by block.
///
/// # Safety
///
/// As for [`ConvertFn`]. `loops` are the loops of a conversion from `S`.
unsafe fn convert<S: Source>(loops: &Loops, dst: *mut u8, src: *const S, run: &ConvertRun) {
    let packing = Packing::of(loops.packed, run);
    let mut scratch = [const { Scratch::new() }; 2];
    let mut sides = packing.sides(src, run, &mut scratch);
    let mut codes = [const { [const { MaybeUninit::uninit() }; BLOCK] }; 3];
    let size = loops.size.cast_signed();
    for line in 0..run.lines {
        let line = dst.wrapping_offset(line.cast_signed() * run.line_steps.dst * size);
        for start in (0..run.len).step_by(packing.block()) {
            let range = start..Ord::min(run.len, start + packing.block());
            let to = line.wrapping_offset(start.cast_signed() * run.dst_step * size);
            // SAFETY: the caller guarantees the elements of the run, which include those of `range`
            // of this line.
            unsafe { packing.convert(loops, &mut sides, range, (to, run.dst_step), &mut codes) };
        }
        sides.iter_mut().for_each(Side::next_line);
    }
}

/// Memory for the codes of a block: those of the block, of the low 4 bits and of the high 4 bits.
type Codes = [[MaybeUninit<u32>; BLOCK]; 3];

/// How the two values of a byte follow one another in the source.
#[derive(Clone, Copy)]
enum Packing {
    /// A destination element has one value.
    None,
    /// The low and the high 4 bits come from two sequences.
    Apart,
    /// The low and the high 4 bits come alternately from one sequence.
    Neighbours,
}

impl Packing {
    fn of(packed: bool, run: &ConvertRun) -> Self {
        let is_double = |step: isize, pair: isize| step == pair.wrapping_mul(2);
        let alternates = is_double(run.src_step, run.src_pair)
            && (run.scale.is_null() || is_double(run.scale_step, run.scale_pair))
            && (run.zero.is_null() || is_double(run.zero_step, run.zero_pair));
        match (packed, alternates) {
            (false, _) => Self::None,
            (true, false) => Self::Apart,
            (true, true) => Self::Neighbours,
        }
    }

    /// Maximum number of destination elements of a block, whose sequences have at most [`BLOCK`]
    /// values.
    fn block(self) -> usize {
        match self {
            Self::None | Self::Apart => BLOCK,
            Self::Neighbours => BLOCK / 2,
        }
    }

    /// Converts the block `range` of a line to the elements from `to` on, at the stride `step`.
    ///
    /// # Safety
    ///
    /// As for [`Side::convert`], for each of `sides` that the packing uses. The destination
    /// elements are aligned, valid for writes, and nothing else accesses them.
    unsafe fn convert<S: Source>(
        self,
        loops: &Loops,
        [low, high]: &mut [Side<'_, S>; 2],
        range: Range<usize>,
        (to, step): (*mut u8, isize),
        codes: &mut Codes,
    ) {
        let len = range.len();
        let [codes, low_codes, high_codes] =
            codes.each_mut().map(|codes| codes.as_mut_ptr().cast());
        let out = if step == 1 { to } else { codes };
        // SAFETY: the caller guarantees the sources of `range` and the destination elements. `out`
        // has room for `len` elements: in the destination, or in `codes`. The other buffers have
        // room for `BLOCK` bytes, and each call of `Side::convert` writes the bytes that `join` and
        // `join_neighbours` read.
        unsafe {
            match self {
                Self::None => low.convert(loops, range, out),
                Self::Apart => {
                    low.convert(loops, range.clone(), low_codes);
                    high.convert(loops, range, high_codes);
                    join(out, low_codes, high_codes, len);
                }
                Self::Neighbours => {
                    low.convert(loops, 2 * range.start..2 * range.end, low_codes);
                    join_neighbours(out, low_codes, len);
                }
            }
            if step != 1 {
                store_at_stride(loops.size, out, len, to, step);
            }
        }
    }

    /// Returns the sequences of the low and of the high 4 bits. Only [`Apart`](Self::Apart) uses
    /// the second sequence.
    fn sides<'b, S: Source>(
        self,
        src: *const S,
        run: &ConvertRun,
        [low, high]: &'b mut [Scratch<S>; 2],
    ) -> [Side<'b, S>; 2] {
        let pairs = [run.src_pair, run.scale_pair, run.zero_pair];
        let steps = match self {
            Self::None | Self::Apart => [run.src_step, run.scale_step, run.zero_step],
            Self::Neighbours => pairs,
        };
        [
            Side::new(src, run, [0; 3], steps, low),
            Side::new(src, run, pairs, steps, high),
        ]
    }
}

/// Writes `len` bytes to `out`. Byte `i` has the byte `i` of `low` in the low 4 bits, and the byte
/// `i` of `high` in the high 4 bits.
///
/// # Safety
///
/// `out` is valid for writes of `len` bytes. `low` and `high` have `len` initialised bytes, less
/// than 16. The three do not overlap.
unsafe fn join(out: *mut u8, low: *const u8, high: *const u8, len: usize) {
    for i in 0..len {
        // SAFETY: the caller guarantees `len` bytes.
        unsafe { out.add(i).write(*low.add(i) | *high.add(i) << 4) };
    }
}

/// As [`join`], with the bytes of `low` and `high` alternately in `codes`.
///
/// # Safety
///
/// As for [`join`]. `codes` has `2 * len` initialised bytes, less than 16.
unsafe fn join_neighbours(out: *mut u8, codes: *const u8, len: usize) {
    for i in 0..len {
        // SAFETY: the caller guarantees `len` and `2 * len` bytes.
        unsafe {
            out.add(i)
                .write(*codes.add(2 * i) | *codes.add(2 * i + 1) << 4)
        };
    }
}

/// Copies `len` contiguous elements of `size` bytes to elements at the stride `step`.
///
/// # Safety
///
/// The elements at `from` are initialised. The elements at `to` are aligned and valid for writes,
/// and do not overlap the elements at `from`. `size` is 1, 2 or 4, and `from` has this alignment.
unsafe fn store_at_stride(size: usize, from: *const u8, len: usize, to: *mut u8, step: isize) {
    /// Copies elements of the type `T`.
    unsafe fn store<T: Copy>(from: *const T, len: usize, to: *mut T, step: isize) {
        for i in 0..len {
            // SAFETY: the caller guarantees the elements `0..len` on both sides.
            unsafe { *to.wrapping_offset(i.cast_signed() * step) = *from.add(i) };
        }
    }
    // SAFETY: the caller guarantees the elements, which have `size` bytes.
    unsafe {
        match size {
            1 => store(from, len, to, step),
            2 => store(from.cast::<u16>(), len, to.cast(), step),
            _ => store(from.cast::<u32>(), len, to.cast(), step),
        }
    }
}

/// A sequence of values to convert: sources, scales and zero points.
struct Side<'b, S> {
    source: Column<'b, S>,
    scale: Option<Column<'b, f32>>,
    zero: Option<Column<'b, i32>>,
}

/// Memory for the buffers of a [`Side`]. It is never moved, because a move would copy it.
struct Scratch<S> {
    sources: [MaybeUninit<S>; BLOCK],
    scales: [MaybeUninit<f32>; BLOCK],
    zeros: [MaybeUninit<i32>; BLOCK],
}

impl<S> Scratch<S> {
    const fn new() -> Self {
        Self {
            sources: [const { MaybeUninit::uninit() }; BLOCK],
            scales: [const { MaybeUninit::uninit() }; BLOCK],
            zeros: [const { MaybeUninit::uninit() }; BLOCK],
        }
    }
}

impl<'b, S: Source> Side<'b, S> {
    /// Returns the sequence of the sources, scales and zero points at the strides `steps`. The first
    /// of them are at `offsets` from those of the run. Strides and offsets are in elements.
    fn new(
        src: *const S,
        run: &ConvertRun,
        offsets: [isize; 3],
        steps: [isize; 3],
        scratch: &'b mut Scratch<S>,
    ) -> Self {
        let scale = (!run.scale.is_null()).then_some(run.scale);
        let zero = (!run.zero.is_null()).then_some(run.zero);
        let lines = run.line_steps;
        let (scales, zeros) = (&mut scratch.scales, &mut scratch.zeros);
        let (scale_steps, zero_steps) = ((steps[1], lines.scale), (steps[2], lines.zero));
        Self {
            source: Column::new(src, offsets[0], (steps[0], lines.src), &mut scratch.sources),
            scale: scale.map(|scale| Column::new(scale, offsets[1], scale_steps, scales)),
            zero: zero.map(|zero| Column::new(zero, offsets[2], zero_steps, zeros)),
        }
    }

    /// Goes on to the next line of the run.
    fn next_line(&mut self) {
        self.source.next_line();
        self.scale.iter_mut().for_each(Column::next_line);
        self.zero.iter_mut().for_each(Column::next_line);
    }

    /// Converts the elements of `range` to contiguous elements at `out`. A packed format has one
    /// value in the low 4 bits of each byte. The calls for one line are in ascending order, and no
    /// range is longer than the first.
    ///
    /// # Safety
    ///
    /// The caller of [`ConvertFn`] guarantees its contract for the elements of `range`. `range` has
    /// 1 to [`BLOCK`] elements. `out` is aligned and valid for writes of this number of elements.
    unsafe fn convert(&mut self, loops: &Loops, range: Range<usize>, out: *mut u8) {
        const NO_ZERO: [i32; BLOCK] = [0; BLOCK];
        let len = range.len();
        let mut values = [const { MaybeUninit::<f32>::uninit() }; BLOCK];
        let values = values.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller guarantees the elements of the run, and `out`. `values` has room for
        // `BLOCK` elements. The first loop writes `len` of them, and the second loop reads these,
        // or the source.
        unsafe {
            let source = self.source.block(range.clone());
            let scales = match &mut self.scale {
                None => &[],
                Some(scale) if loops.reciprocal => scale.copied(range.clone(), |scale| 1.0 / scale),
                Some(scale) => scale.block(range.clone()),
            };
            let zeros = match &mut self.zero {
                None => &NO_ZERO[..len],
                Some(zero) => zero.block(range),
            };
            let mut loaded: *const u8 = source.as_ptr().cast();
            if !(S::IS_F32 && scales.is_empty()) {
                (loops.load)(values, loaded, scales, len);
                loaded = values;
            }
            (loops.narrow)(out, loaded, zeros, ());
        }
    }
}

/// Elements at a stride, and a buffer that makes them contiguous block by block.
struct Column<'b, T> {
    /// First element of the line.
    first: *const T,
    step: isize,
    /// Stride from the first element of a line to that of the next line.
    line_step: isize,
    /// Whether `buffer` has the elements of this line, which are all one element.
    is_filled: bool,
    buffer: &'b mut [MaybeUninit<T>; BLOCK],
}

impl<'b, T: Copy> Column<'b, T> {
    /// Returns the column whose first element is at `offset` from `base`. `steps` are the strides
    /// of the elements and of the lines.
    fn new(
        base: *const T,
        offset: isize,
        (step, line_step): (isize, isize),
        buffer: &'b mut [MaybeUninit<T>; BLOCK],
    ) -> Self {
        Self {
            first: base.wrapping_offset(offset),
            step,
            line_step,
            is_filled: false,
            buffer,
        }
    }

    fn next_line(&mut self) {
        self.first = self.first.wrapping_offset(self.line_step);
        self.is_filled &= self.line_step == 0;
    }

    /// Returns the elements of `range`.
    ///
    /// # Safety
    ///
    /// As for [`copied`](Self::copied).
    unsafe fn block(&mut self, range: Range<usize>) -> &[T] {
        if self.step == 1 {
            // SAFETY: the caller guarantees the elements of `range`, which are contiguous.
            return unsafe { slice::from_raw_parts(self.first.add(range.start), range.len()) };
        }
        // SAFETY: the caller guarantees the contract of `copied`.
        unsafe { self.copied(range, |element| element) }
    }

    /// Returns copies of the elements of `range`, changed by `change`. With the stride 0, only the
    /// first call for each element copies: the first range is the longest.
    ///
    /// # Safety
    ///
    /// `range` has at most [`BLOCK`] elements. They are initialised, aligned and valid for reads. If
    /// the stride is 0, no range of a run is longer than the first range of its line, and all lines
    /// have one length.
    unsafe fn copied(&mut self, range: Range<usize>, change: impl Fn(T) -> T) -> &[T] {
        let len = range.len();
        let buffer = &mut self.buffer[..len];
        if self.step != 0 {
            for (element, i) in buffer.iter_mut().zip(range) {
                let from = self.first.wrapping_offset(i.cast_signed() * self.step);
                // SAFETY: the caller guarantees the elements of `range`.
                element.write(change(unsafe { *from }));
            }
        } else if !self.is_filled {
            // SAFETY: as above.
            buffer.fill(MaybeUninit::new(change(unsafe { *self.first })));
            self.is_filled = true;
        }
        // SAFETY: this call has written `len` elements, or an earlier call, whose range was at least
        // as long, has written them.
        unsafe { slice::from_raw_parts(self.buffer.as_ptr().cast(), len) }
    }
}
