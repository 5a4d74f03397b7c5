//! The tuples of a list: coordinates checked, destinations numbered.
//!
//! Knows where coordinates lie in an index tensor, and what each adds to a number. Knows
//! nothing of what the numbers are for.
//!
//! Blocks of tuples are numbered axis by axis, in loops without branches: every coordinate
//! is read once, checked against its own axis, and multiplied. A block in which a check
//! failed is read again and numbered tuple by tuple, by the rule for such coordinates.

#![expect(
    unsafe_code,
    reason = "reads indices through a view whose layout the loops follow"
)]

use std::hint::select_unpredictable;
use std::slice::from_mut;

use super::coordinate::{Coordinate, IndexRules};
use super::piece::Piece;
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::operand::Layout;
use crate::operand::indices::{Integers, for_index_type};
use crate::plan::flat::Extents;
use crate::plan::form::Form;
use crate::plan::geometry::{Dim, signed};
use crate::plan::number::Number;
use crate::plan::scale::Multipliers;
use crate::reduction::Bounds;

/// Most tuples of a short list: a block of them takes no time to clear.
pub(crate) const SHORT_LIST: usize = 16;

/// Tuples of a long list that are copied together: enough for vector loops.
pub(super) const COPIED_TUPLES: usize = 128;

/// Tuples whose coordinates lie side by side, and are numbered together without a copy.
const IN_PLACE_TUPLES: usize = 256;

/// A list of tuples. It takes no preparations: dims and strides are looked at when they
/// are needed. Functions that are not inlined take a copy of it, so that the list of the
/// smallest calls need not lie in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuples<'a> {
    pub(super) indices: Integers<'a>,
    /// Dims of `indices`, or of a part of them.
    layout: &'a Layout<'a>,
    form: &'a Form,
    pub(super) multipliers: Multipliers<'a>,
    rules: IndexRules,
}

/// How the tuples of a list lie.
#[derive(Clone, Copy)]
struct Spacing {
    /// The innermost dim of the list, with the dims around it that continue it: a step adds
    /// `dst` to the number, and goes `src` on in `indices`.
    row: Dim,
    /// The same for the dims around those.
    rows: Dim,
    axes: ReadAxes,
}

/// The tuple axes whose coordinates are read.
#[derive(Clone, Copy)]
struct ReadAxes {
    first: usize,
    len: usize,
    /// Distance from one coordinate of a tuple to the next.
    stride: isize,
}

/// A tuple of a list, and how the next ones follow it.
#[derive(Clone, Copy)]
struct Cursor {
    /// Where its first coordinate lies.
    offset: isize,
    /// Its number if its coordinates that are read are zero.
    number: u64,
    spacing: Spacing,
    /// Tuples to the end of its row.
    left: usize,
}

/// A tuple axis.
#[derive(Clone, Copy)]
struct Axis {
    tuple_axis: usize,
    size: usize,
    /// What is added to negative coordinates.
    wrap: u64,
    /// What one step along the axis adds to the number.
    multiplier: u64,
}

impl<'a> Tuples<'a> {
    /// `form` describes `indices`; `multipliers` are those of the output.
    #[inline(always)]
    pub(crate) fn new(
        form: &'a Form,
        multipliers: Multipliers<'a>,
        indices: Integers<'a>,
        rules: IndexRules,
    ) -> Self {
        Self {
            indices,
            layout: indices.layout(),
            form,
            multipliers,
            rules,
        }
    }

    /// Numbers are those of slices.
    #[inline(always)]
    pub(crate) fn of_slices(
        extents: &Extents<'a>,
        indices: &Integers<'a>,
        rules: IndexRules,
    ) -> Self {
        let multipliers = Multipliers::of_slices(extents.sizes());
        Self::new(extents.form, multipliers, *indices, rules)
    }

    /// The tuples at some positions of the list alone, which has these dims.
    pub(super) fn within(self, layout: &'a Layout<'a>) -> Self {
        Self { layout, ..self }
    }

    /// Whether the indices are a contiguous tensor and list all coordinates.
    #[inline(always)]
    fn are_contiguous(&self) -> bool {
        self.form.coordinates == Form::ALL_EXPLICIT && self.layout.is_contiguous()
    }

    /// Whether they are contiguous and have one coordinate each.
    #[inline(always)]
    pub(crate) fn are_neighbours(&self) -> bool {
        self.are_contiguous() && self.multipliers.sizes.len() == 1
    }

    /// Numbers all tuples of a small call, which [are neighbours](Self::are_neighbours).
    /// Returns how many are skipped.
    #[inline(always)]
    pub(crate) fn resolve_neighbours(self, numbers: &mut [u32]) -> Result<usize, ScatterError> {
        self.resolve_contiguous(1, numbers)
    }

    /// Numbers all tuples of a small call, which are contiguous and have `tuple_len`
    /// coordinates each. Returns how many are skipped.
    #[inline(always)]
    fn resolve_contiguous(
        self,
        tuple_len: usize,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        let spacing = Spacing::contiguous(tuple_len);
        for_index_type!(self.indices.kind(), I => {
            self.number::<I, u32, SHORT_LIST>(spacing, 0, numbers, None)
        })
    }

    /// Numbers all tuples of a small call. Returns how many are skipped.
    #[inline(always)]
    pub(crate) fn resolve_all(
        self,
        set: InstructionSet,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        match numbers.len() {
            0 => Ok(0),
            1..=SHORT_LIST if self.are_contiguous() => {
                self.resolve_contiguous(self.multipliers.sizes.len(), numbers)
            }
            1..=SHORT_LIST => {
                for_index_type!(self.indices.kind(), I => self.number_each::<I>(numbers))
            }
            _ => Ok(self.resolve(set, 0, numbers)?.skipped),
        }
    }

    /// Numbers the tuples from `first` on, with instructions of `set`, if the machine has
    /// them.
    pub(crate) fn resolve<N: Number>(
        &self,
        set: InstructionSet,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        // The baseline of x86-64 has no vectors that compare 64-bit indices.
        for_index_type!(self.indices.kind(), I => {
            set.run(#[inline(always)] || self.resolve_as::<I, N>(first, numbers))
        })
    }

    #[inline(always)]
    fn resolve_as<I: Coordinate, N: Number>(
        &self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        let (mut piece, spacing) = (Piece::EMPTY, self.spacing());
        piece.skipped =
            self.number::<I, N, COPIED_TUPLES>(spacing, first, numbers, Some(&mut piece))?;
        Ok(piece)
    }

    /// Numbers the tuples from `first` on, which are contiguous.
    #[inline(always)]
    pub(super) fn number_contiguous<I: Coordinate>(
        &self,
        first: usize,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        debug_assert!(self.are_contiguous(), "a list without gaps");
        let spacing = Spacing::contiguous(self.multipliers.sizes.len());
        self.number::<I, u32, COPIED_TUPLES>(spacing, first, numbers, None)
    }

    fn spacing(&self) -> Spacing {
        if self.are_contiguous() {
            return Spacing::contiguous(self.multipliers.sizes.len());
        }
        let (mut level, mut levels) = (0, [Dim::ONE; 3]);
        let stride = self.each_dim(|dim| {
            let inner = &mut levels[level];
            if inner.size == 1 {
                *inner = dim;
            } else if inner.is_continued_by(dim) {
                *inner = inner.continued(dim);
            } else if level < 2 {
                level += 1;
                levels[level] = dim;
            }
        });
        let [row, rows, _] = levels;
        let axes = self.read_axes(stride);
        Spacing { row, rows, axes }
    }

    /// The axes whose coordinates are read, which lie `stride` apart.
    fn read_axes(&self, stride: isize) -> ReadAxes {
        let read = self.form.read();
        ReadAxes {
            first: read.start,
            len: read.len(),
            stride,
        }
    }

    /// Shows each dim of the list, from the last one on, but those of size 1. Returns the
    /// distance from one coordinate of a tuple to the next.
    #[inline(always)]
    fn each_dim(&self, mut show: impl FnMut(Dim)) -> isize {
        let (first, end) = self.form.list;
        let (mut coordinate_stride, mut dim) = (0, self.layout.shape().len());
        for (size, src) in self.layout.dims_from_last() {
            dim -= 1;
            if dim >= end {
                coordinate_stride = src;
            } else if dim >= first && size != 1 {
                let is_implied = self.form.is_implied(dim - first);
                let step = is_implied.then(|| self.multipliers.along(dim - first));
                let dst = signed(step.unwrap_or(0));
                show(Dim { size, dst, src });
            }
        }
        coordinate_stride
    }

    /// Each axis that is read, with the place of its coordinate in a tuple.
    #[inline(always)]
    fn axes(self, axes: ReadAxes) -> impl Iterator<Item = (Axis, isize)> {
        (0..axes.len).map(move |at| {
            let place = axes.stride.wrapping_mul(at.cast_signed());
            (self.axis(axes.first + at), place)
        })
    }

    #[inline(always)]
    fn axis(self, tuple_axis: usize) -> Axis {
        let size = self.multipliers.sizes[tuple_axis];
        Axis {
            tuple_axis,
            size,
            wrap: self.rules.wrap(size),
            multiplier: self.multipliers.along(tuple_axis),
        }
    }

    #[inline(always)]
    fn cursor(&self, spacing: Spacing, tuple: usize) -> Cursor {
        let Spacing { row, rows, .. } = spacing;
        let (line, at) = if tuple < row.size {
            (0, tuple)
        } else {
            (tuple / row.size, tuple % row.size)
        };
        let mut cursor = Cursor {
            offset: 0,
            number: self.multipliers.origin,
            spacing,
            left: row.size - at,
        };
        if line == 0 || line < rows.size {
            cursor.go(row, at);
            cursor.go(rows, line);
        } else {
            let mut rest = tuple;
            self.each_dim(|dim| {
                cursor.go(dim, rest % dim.size);
                rest /= dim.size;
            });
        }
        cursor
    }

    /// Numbers the tuples from `first` on, block by block, and has `piece` learn from each
    /// block. Returns how many are skipped. The list has a tuple for every entry of
    /// `numbers`.
    #[inline(always)]
    fn number<I: Coordinate, N: Number, const BLOCK: usize>(
        &self,
        spacing: Spacing,
        first: usize,
        numbers: &mut [N],
        mut piece: Option<&mut Piece>,
    ) -> Result<usize, ScatterError> {
        let mut copy;
        let (most, copy): (usize, &mut [I]) = if spacing.row.src == 1 && !self.indices.is_foreign()
        {
            (IN_PLACE_TUPLES, &mut [])
        } else {
            copy = [I::default(); BLOCK];
            (BLOCK, &mut copy)
        };
        let (mut skipped, mut done) = (0, 0);
        while done < numbers.len() {
            let tuple = first + done;
            let cursor = self.cursor(spacing, tuple);
            let len = most.min(cursor.left).min(numbers.len() - done);
            let block = &mut numbers[done..done + len];
            // SAFETY: the cursor follows dims and strides of the view, and the block stays
            // within a row.
            if !unsafe { self.number_block(cursor, copy, block) } {
                // SAFETY: as above.
                skipped += unsafe { self.settle_row::<I, N, BLOCK>(tuple, block) }?;
            }
            if let Some(piece) = &mut piece {
                piece.extend(block);
            }
            done += len;
        }
        Ok(skipped)
    }

    /// Numbers the tuples from the cursor on. Returns whether all coordinates are inside
    /// their axes. `copy` has room for a coordinate of each tuple. It is empty where
    /// coordinates are read in place.
    ///
    /// # Safety
    ///
    /// `I` is the type of the indices; the offsets of all the coordinates are offsets of
    /// elements of their layout. Coordinates that are read in place lie side by side, and
    /// are not foreign.
    #[inline(always)]
    unsafe fn number_block<I: Coordinate, N: Number>(
        &self,
        cursor: Cursor,
        copy: &mut [I],
        numbers: &mut [N],
    ) -> bool {
        let Spacing { row, axes, .. } = cursor.spacing;
        if axes.len == 1 && row.dst == 0 {
            // SAFETY: handed on as it is.
            let run = unsafe { self.read(cursor, 0, copy, numbers.len()) };
            let axis = self.axis(axes.first);
            return axis.add(run.iter().copied(), numbers, |_| cursor.number);
        }
        cursor.start(numbers);
        let mut inside = true;
        for (axis, place) in self.axes(axes) {
            // SAFETY: handed on as it is.
            let run = unsafe { self.read(cursor, place, copy, numbers.len()) };
            inside &= axis.add(run.iter().copied(), numbers, N::get);
        }
        inside
    }

    /// One coordinate of each of the tuples from the cursor on, in place or in `copy`.
    ///
    /// # Safety
    ///
    /// As for [`Self::number_block`].
    #[inline(always)]
    unsafe fn read<'c, I: Coordinate>(
        &self,
        cursor: Cursor,
        place: isize,
        copy: &'c mut [I],
        len: usize,
    ) -> &'c [I]
    where
        'a: 'c,
    {
        let offset = cursor.offset.wrapping_add(place);
        if copy.is_empty() {
            // SAFETY: the caller vouches for the coordinates.
            return unsafe { self.indices.neighbours(offset, len) };
        }
        let copy = &mut copy[..len];
        // SAFETY: as above.
        unsafe { (self.indices).read_run(offset, cursor.spacing.row.src, copy) };
        copy
    }

    /// Numbers tuples of a row by the rule for coordinates outside their axes. The first one
    /// is number `first` of the list. Returns how many are skipped.
    ///
    /// # Safety
    ///
    /// As for [`Self::number_block`].
    #[cold]
    #[inline(never)]
    unsafe fn settle_row<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<usize, ScatterError> {
        let spacing = self.spacing();
        let (Spacing { row, axes, .. }, mut cursor) = (spacing, self.cursor(spacing, first));
        let (mut skipped, mut done) = (0, 0);
        for block in numbers.chunks_mut(BLOCK) {
            cursor.start(block);
            let offset = |tuple: usize| {
                let steps = row.src.wrapping_mul(tuple.cast_signed());
                cursor.offset.wrapping_add(steps)
            };
            // SAFETY: handed on as it is.
            skipped += unsafe { self.settle::<I, N, BLOCK>(axes, first + done, offset, block) }?;
            done += block.len();
            cursor.go(row, block.len());
        }
        Ok(skipped)
    }

    /// Numbers all tuples of a short list that is not contiguous. Returns how many are skipped.
    #[inline(always)]
    fn number_each<I: Coordinate>(&self, numbers: &mut [u32]) -> Result<usize, ScatterError> {
        let mut offsets = [0; SHORT_LIST];
        let axes = self.spread(&mut offsets, numbers);
        let mut inside = true;
        for (axis, place) in self.axes(axes) {
            let run = offsets[..numbers.len()].iter().map(|offset| {
                let mut index = I::default();
                let offset = offset.wrapping_add(place);
                // SAFETY: the offset follows dims and strides of the view.
                unsafe { (self.indices).read_run(offset, 0, from_mut(&mut index)) };
                index
            });
            inside &= axis.add(run, numbers, Number::get);
        }
        if inside {
            Ok(0)
        } else {
            self.settle_each::<I>(numbers)
        }
    }

    /// Writes where the first coordinate of each tuple of a short list lies, and its number if
    /// the coordinates that are read are zero.
    #[inline(always)]
    fn spread(&self, offsets: &mut [isize], numbers: &mut [u32]) -> ReadAxes {
        numbers[0] = Number::new(self.multipliers.origin);
        let mut len = 1;
        let stride = self.each_dim(|dim| {
            // What has been written is what the dims behind this one make: once more for
            // each position along it.
            for at in len..len * dim.size {
                offsets[at] = offsets[at - len].wrapping_add(dim.src);
                numbers[at] = Number::new(steps(numbers[at - len].get(), 1, dim.dst));
            }
            len *= dim.size;
        });
        self.read_axes(stride)
    }

    /// Numbers all tuples of a short list by the rule for coordinates outside their axes.
    #[cold]
    #[inline(never)]
    fn settle_each<I: Coordinate>(self, numbers: &mut [u32]) -> Result<usize, ScatterError> {
        let mut offsets = [0; SHORT_LIST];
        let axes = self.spread(&mut offsets, numbers);
        // SAFETY: the offsets follow dims and strides of the view.
        unsafe { self.settle::<I, _, SHORT_LIST>(axes, 0, |tuple| offsets[tuple], numbers) }
    }

    /// Numbers a block by the rule for coordinates outside their axes. Skipped tuples get no
    /// number. `numbers` hold the number of each tuple if its coordinates that are read are
    /// zero. `offset` returns where the first coordinate of a tuple lies. The first tuple is
    /// number `first` of the list. Returns how many are skipped.
    ///
    /// # Safety
    ///
    /// As for [`Self::number_block`], where coordinates are copied.
    #[inline(always)]
    unsafe fn settle<I: Coordinate, N: Number, const BLOCK: usize>(
        &self,
        axes: ReadAxes,
        first: usize,
        offset: impl Fn(usize) -> isize,
        numbers: &mut [N],
    ) -> Result<usize, ScatterError> {
        let rules = self.rules;
        let (mut applied, mut run) = ([true; BLOCK], [I::default(); BLOCK]);
        let run = &mut run[..numbers.len()];
        let mut outlier: Option<(usize, Axis, I)> = None;
        for (axis, place) in self.axes(axes) {
            let (size, mut inside) = (axis.size as u64, true);
            let tuples = numbers.iter_mut().zip(&mut applied).zip(&mut *run);
            for (tuple, ((number, applied), index)) in tuples.enumerate() {
                let offset = offset(tuple).wrapping_add(place);
                // SAFETY: the caller vouches for the coordinates.
                unsafe { (self.indices).read_run(offset, 0, from_mut(index)) };
                let position = rules.position(*index, axis.size);
                *applied &= position < size;
                inside &= position < size;
                let sum = position.wrapping_mul(axis.multiplier);
                *number = N::new(number.get().wrapping_add(sum));
            }
            if !inside && rules.bounds != Bounds::Skip {
                let is_outside = |&index: &I| rules.position(index, axis.size) >= size;
                let before = outlier.map_or(run.len(), |(tuple, ..)| tuple);
                let found = run[..before].iter().position(is_outside);
                outlier = found.map(|tuple| (tuple, axis, run[tuple])).or(outlier);
            }
        }
        if let Some((tuple, axis, index)) = outlier {
            return Err(self.out_of_bounds(first + tuple, axis, index.into()));
        }
        let mut skipped = 0;
        for (number, applied) in numbers.iter_mut().zip(applied) {
            *number = select_unpredictable(applied, *number, N::SKIPPED);
            skipped += usize::from(!applied);
        }
        Ok(skipped)
    }

    #[cold]
    fn out_of_bounds(&self, tuple: usize, axis: Axis, index: i128) -> ScatterError {
        ScatterError::IndexOutOfBounds {
            tuple: tuple * self.form.indices_each(self.layout.shape()),
            axis: self.form.batch_rank + axis.tuple_axis,
            index,
            size: axis.size,
        }
    }
}

impl Spacing {
    /// That of contiguous tuples of so many coordinates.
    #[inline(always)]
    fn contiguous(len: usize) -> Self {
        let row = Dim {
            size: usize::MAX,
            dst: 0,
            src: len.cast_signed(),
        };
        let (first, stride) = (0, 1);
        Self {
            row,
            rows: Dim::ONE,
            axes: ReadAxes { first, len, stride },
        }
    }
}

impl Cursor {
    /// Goes some steps on along a dim.
    #[inline(always)]
    fn go(&mut self, dim: Dim, count: usize) {
        let offset = dim.src.wrapping_mul(count.cast_signed());
        self.offset = self.offset.wrapping_add(offset);
        self.number = steps(self.number, count, dim.dst);
    }

    /// Writes the numbers of the tuples from here on if their coordinates that are read are
    /// zero.
    #[inline(always)]
    fn start<N: Number>(self, numbers: &mut [N]) {
        let mut next = self.number;
        for number in numbers {
            *number = N::new(next);
            next = steps(next, 1, self.spacing.row.dst);
        }
    }
}

impl Axis {
    /// Numbers are what `before` gives for the old ones, and what the coordinates of `run` add.
    /// Returns whether all coordinates are inside the axis.
    #[inline(always)]
    fn add<I: Coordinate, N: Number>(
        self,
        run: impl Iterator<Item = I>,
        numbers: &mut [N],
        mut before: impl FnMut(N) -> u64,
    ) -> bool {
        let mut inside = true;
        for (number, index) in numbers.iter_mut().zip(run) {
            let position = index.position(self.wrap);
            inside &= position < self.size as u64;
            let sum = position.wrapping_mul(self.multiplier);
            *number = N::new(before(*number).wrapping_add(sum));
        }
        inside
    }
}

/// A number, some steps on. Numbers wrap, as steps may be negative.
#[inline(always)]
fn steps(number: u64, count: usize, step: isize) -> u64 {
    number.wrapping_add((count as u64).wrapping_mul((step as i64).cast_unsigned()))
}
