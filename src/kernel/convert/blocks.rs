//! Converts any run block by block, in two loops.
//!
//! The module knows strides, lists of scales and zero points, and packed formats. `load` and `narrow`
//! know the types and have the loops. The values of a block are `f32` on the stack between the loops:
//!
//! ```text
//! source ──load: widen, scale──> f32 values ──narrow: round──> codes ──> destination
//! ```
//!
//! 6 loops load and 36 loops narrow, so their combinations share code. There would be 324 loops that
//! do both at once, for each instruction set. Values that need no loading are narrowed where they
//! are.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::slice;

use super::ConvertRun;
use super::load::{Apply, Load, Source};
use super::narrow::{Narrow, Round, Target};
use crate::kernel::InstructionSet;
use crate::kernel::dispatch::compiled_for_avx512;

/// Maximum number of elements of a block. The buffers of a block stay in the L1 cache.
const BLOCK: usize = 512;

/// The loops of one conversion, and facts about its types.
pub(super) struct Loops {
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

impl Loops {
    /// Returns the loops from `S` to `T` by the rules `R` and `A`. Only machines with `isa` may call
    /// them.
    pub(super) const fn of<S: Source, T: Target, R: Round, A: Apply>(isa: InstructionSet) -> Self {
        Self {
            load: compiled_for_avx512::<Load<S, A>>(isa),
            narrow: compiled_for_avx512::<Narrow<T, R>>(isa),
            size: size_of::<T::Stored>(),
            packed: T::PACKED,
            reciprocal: A::RECIPROCAL,
        }
    }

    /// Converts a run, line by line, and each line block by block.
    ///
    /// # Safety
    ///
    /// As for [`ConvertFn`](super::ConvertFn). The loops are those of a conversion from `S` for an
    /// instruction set of the machine.
    #[inline(never)]
    pub(super) unsafe fn convert<S: Source>(&self, dst: *mut u8, src: *const S, run: &ConvertRun) {
        let packing = Packing::of(self.packed, run);
        let mut scratch = [const { Scratch::new() }; 2];
        let mut sides = packing.sides(src, run, &mut scratch);
        let mut codes = [const { [const { MaybeUninit::uninit() }; BLOCK] }; 3];
        let size = self.size.cast_signed();
        for line in 0..run.lines {
            let line = dst.wrapping_offset(line.cast_signed() * run.line_steps.dst * size);
            for start in (0..run.len).step_by(packing.block()) {
                let range = start..Ord::min(run.len, start + packing.block());
                let to = line.wrapping_offset(start.cast_signed() * run.dst_step * size);
                let to = (to, run.dst_step);
                // SAFETY: the caller guarantees the elements of the run, which include those of
                // `range` of this line.
                unsafe { packing.convert(self, &mut sides, range, to, &mut codes) };
            }
            sides.iter_mut().for_each(Side::next_line);
        }
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
    /// The caller of [`ConvertFn`](super::ConvertFn) guarantees its contract for the elements of
    /// `range`. `range` has 1 to [`BLOCK`] elements. `out` is aligned and valid for writes of this
    /// number of elements.
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
