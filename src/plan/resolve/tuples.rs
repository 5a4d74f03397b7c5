//! Checks the coordinates of tuples and computes the destination numbers of tuples.
//!
//! This module uses the offsets of coordinates in the index tensor and the multiplier of each tuple
//! axis. This module does not depend on how destination numbers are used.
//!
//! The destination numbers of a block of tuples are computed axis by axis, in loops without
//! branches. The loop for an axis reads the coordinate of every tuple once, compares it with the
//! size of the axis, and multiplies it by the multiplier of the axis. If a coordinate of the block
//! is outside its axis, the module reads the coordinates of the block again and applies the bounds
//! rule. The bounds rule is the treatment that [`Bounds`] selects for a coordinate outside its
//! axis: an error, a skipped tuple or a clamped position.

#![expect(
    unsafe_code,
    reason = "reads indices at offsets that the loops take from the layout of their view"
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

/// Maximum number of tuples of a short list. The loops for short lists fill arrays of this length
/// with initial values, at a negligible cost.
pub(crate) const SHORT_LIST: usize = 16;

/// Maximum number of tuples of a long list whose coordinates are copied together. This number is
/// large enough for vector loops.
pub(super) const COPIED_TUPLES: usize = 128;

/// Maximum number of tuples whose destination numbers are computed together if the coordinates are
/// read in place. Coordinates are read in place if the coordinates of successive tuples are
/// adjacent and no other code can write the memory of the coordinates.
const IN_PLACE_TUPLES: usize = 256;

/// A list of tuples. The constructor computes nothing: methods read dims and strides when they need
/// them. The methods that a small call runs are usually inlined or take the list by value, so that
/// the list of a small call can stay in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuples<'a> {
    pub(super) indices: Integers<'a>,
    /// Layout of `indices`, or of the part of `indices` that belongs to the tuples of this list.
    layout: &'a Layout<'a>,
    form: &'a Form,
    pub(super) multipliers: Multipliers<'a>,
    rules: IndexRules,
}

/// Sizes and strides of the loops over a list of tuples, and the tuple axes that are read. A loop
/// has two strides: `dst` for the base number ([`Cursor::number`]) and `src` for the offset in
/// `indices`.
#[derive(Clone, Copy)]
struct Spacing {
    /// The innermost dim of the list, merged with the dims around it where possible. A row of the
    /// list is one pass through this dim. From one tuple of a row to the next, the base number
    /// increases by `dst` and the offset in `indices` by `src`.
    row: Dim,
    /// The next dim outside `row`, also merged with the dims around it where possible.
    rows: Dim,
    axes: ReadAxes,
}

/// The tuple axes whose coordinates are read from `indices`.
#[derive(Clone, Copy)]
struct ReadAxes {
    /// First tuple axis that is read.
    first: usize,
    /// Number of tuple axes that are read.
    len: usize,
    /// Stride between the coordinates of one tuple, in elements of `indices`.
    stride: isize,
}

/// A tuple of the list, and the strides to the next tuples.
#[derive(Clone, Copy)]
struct Cursor {
    /// Offset in `indices` of the first coordinate of the tuple that is read.
    offset: isize,
    /// Base number of the tuple: the destination number that the tuple would have if all
    /// coordinates that are read from `indices` were 0.
    number: u64,
    spacing: Spacing,
    /// Number of tuples from this tuple (included) to the end of its row.
    left_in_row: usize,
}

/// A tuple axis whose coordinate is read from `indices`.
#[derive(Clone, Copy)]
struct Axis {
    tuple_axis: usize,
    size: usize,
    /// Number to add to negative coordinates: the size of the axis, or 0 if negative coordinates
    /// are out of bounds.
    wrap: u64,
    /// Increment of the destination number from one position on the axis to the next.
    multiplier: u64,
}

impl<'a> Tuples<'a> {
    /// Makes a list of all tuples of `indices`. `form` describes how the tuples address the output.
    /// `multipliers` are the multipliers of the tuple axes of the output.
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

    /// Makes a list of all tuples of `indices`. The destination number of a tuple is the number of
    /// the slice that the tuple addresses, in row-major order.
    #[inline(always)]
    pub(crate) fn of_slices(
        extents: &Extents<'a>,
        indices: &Integers<'a>,
        rules: IndexRules,
    ) -> Self {
        let multipliers = Multipliers::of_slices(extents.sizes());
        Self::new(extents.form, multipliers, *indices, rules)
    }

    /// Restricts the list to the tuples of `layout`, a smaller layout of the same indices.
    pub(super) fn within(self, layout: &'a Layout<'a>) -> Self {
        Self { layout, ..self }
    }

    /// Whether `indices` has a contiguous layout and holds every coordinate of every tuple. In
    /// other lists, the position of a tuple in the list implies some of its coordinates. A layout
    /// with explicit strides does not count as contiguous.
    #[inline(always)]
    fn are_contiguous(&self) -> bool {
        self.form.coordinates == Form::ALL_EXPLICIT && self.layout.is_contiguous()
    }

    /// Whether [`Self::are_contiguous`] is true and every tuple has one coordinate.
    #[inline(always)]
    pub(crate) fn are_neighbours(&self) -> bool {
        self.are_contiguous() && self.multipliers.sizes.len() == 1
    }

    /// Computes the destination numbers of all tuples of a small call. The tuples must be
    /// [neighbours](Self::are_neighbours): the indices are contiguous, and each tuple has one
    /// coordinate. Returns the number of skipped tuples.
    #[inline(always)]
    pub(crate) fn resolve_neighbours(self, numbers: &mut [u32]) -> Result<usize, ScatterError> {
        self.resolve_contiguous(1, numbers)
    }

    /// Computes the destination numbers of all tuples of a small call. The tuples must be
    /// [contiguous](Self::are_contiguous) and have `tuple_len` coordinates each. Returns the number
    /// of skipped tuples.
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

    /// Computes the destination numbers of all tuples of a small call. Returns the number of
    /// skipped tuples.
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

    /// Computes one destination number for each entry of `numbers`, for the tuples from tuple
    /// `first` on. Returns facts about the destination numbers of these tuples: their order and the
    /// number of skipped tuples. The method uses instructions of `set` if the machine has them.
    pub(crate) fn resolve<N: Number>(
        &self,
        set: InstructionSet,
        first: usize,
        numbers: &mut [N],
    ) -> Result<Piece, ScatterError> {
        // The baseline instruction set of x86-64 has no vector comparison of 64-bit integers. The
        // loops are therefore compiled for `set`.
        for_index_type!(self.indices.kind(), I => {
            set.run(#[inline(always)] || self.resolve_as::<I, N>(first, numbers))
        })
    }

    /// Implements [`Self::resolve`] for one type of indices.
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

    /// Computes one destination number for each entry of `numbers`, for the tuples from tuple
    /// `first` on. The indices must be contiguous and hold every coordinate of every tuple, so that
    /// the position of a tuple implies none of its coordinates ([`Self::are_contiguous`]). Returns
    /// the number of skipped tuples.
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

    /// Computes the sizes and strides of the loops over the list.
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

    /// Returns the tuple axes whose coordinates are read. `stride` is the stride between the
    /// coordinates of one tuple, in elements of `indices`.
    fn read_axes(&self, stride: isize) -> ReadAxes {
        let read = self.form.read();
        ReadAxes {
            first: read.start,
            len: read.len(),
            stride,
        }
    }

    /// Calls `visit` with each dim of the list whose size is not 1, from the last dim to the first.
    /// Returns the stride between the coordinates of one tuple, in elements of `indices`.
    #[inline(always)]
    fn each_dim(&self, mut visit: impl FnMut(Dim)) -> isize {
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
                visit(Dim { size, dst, src });
            }
        }
        coordinate_stride
    }

    /// Returns each tuple axis whose coordinates are read, with an offset in `indices`. The offset
    /// is the distance from the first coordinate of a tuple that is read to the coordinate for this
    /// axis.
    #[inline(always)]
    fn axes(self, axes: ReadAxes) -> impl Iterator<Item = (Axis, isize)> {
        (0..axes.len).map(move |at| {
            let place = axes.stride.wrapping_mul(at.cast_signed());
            (self.axis(axes.first + at), place)
        })
    }

    /// Returns tuple axis `tuple_axis`, with its size and its multiplier.
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

    /// Returns a cursor at tuple `tuple` of the list.
    #[inline(always)]
    fn cursor(&self, spacing: Spacing, tuple: usize) -> Cursor {
        let Spacing { row, rows, .. } = spacing;
        let (row_index, at) = if tuple < row.size {
            (0, tuple)
        } else {
            (tuple / row.size, tuple % row.size)
        };
        let mut cursor = Cursor {
            offset: 0,
            number: self.multipliers.origin,
            spacing,
            left_in_row: row.size - at,
        };
        if row_index == 0 || row_index < rows.size {
            cursor.advance(row, at);
            cursor.advance(rows, row_index);
        } else {
            let mut rest = tuple;
            self.each_dim(|dim| {
                cursor.advance(dim, rest % dim.size);
                rest /= dim.size;
            });
        }
        cursor
    }

    /// Computes one destination number for each entry of `numbers`, for the tuples from tuple
    /// `first` on, block by block. If `piece` is given, the function adds facts about the
    /// destination numbers of each block to `piece`. Returns the number of skipped tuples. The list
    /// must have a tuple for every entry of `numbers`.
    #[inline(always)]
    fn number<I: Coordinate, N: Number, const BLOCK: usize>(
        &self,
        spacing: Spacing,
        first: usize,
        numbers: &mut [N],
        mut piece: Option<&mut Piece>,
    ) -> Result<usize, ScatterError> {
        let mut copy;
        let (block_len, copy): (usize, &mut [I]) =
            if spacing.row.src == 1 && !self.indices.is_copied() {
                (IN_PLACE_TUPLES, &mut [])
            } else {
                copy = [I::default(); BLOCK];
                (BLOCK, &mut copy)
            };
        let (mut skipped, mut done) = (0, 0);
        while done < numbers.len() {
            let tuple = first + done;
            let cursor = self.cursor(spacing, tuple);
            let len = block_len.min(cursor.left_in_row).min(numbers.len() - done);
            let block = &mut numbers[done..done + len];
            // SAFETY: `cursor` computes its offset from the sizes and strides of the view. The
            // block ends at the end of the row at the latest, and the list has a tuple for each
            // entry of the block. The type `I` is the type of the indices, because all callers have
            // dispatched on it. If `copy` is empty, the stride of the row in `indices` is 1, and no
            // other code can write the memory of the indices ([`Integers::is_copied`] is false).
            if !unsafe { self.number_block(cursor, copy, block) } {
                // SAFETY: `bound_block` requires the same as `number_block`, and the comment above
                // shows these conditions.
                skipped += match unsafe { self.bound_block(cursor, copy, block) } {
                    Some(skipped) => skipped,
                    // SAFETY: `apply_bounds_to_row` requires the same as `number_block`, and the
                    // first comment of this loop shows these conditions. `apply_bounds_to_row`
                    // reads only copies of the coordinates.
                    None => unsafe { self.apply_bounds_to_row::<I, N, BLOCK>(tuple, block) }?,
                };
            }
            if let Some(piece) = &mut piece {
                piece.extend(block);
            }
            done += len;
        }
        Ok(skipped)
    }

    /// Computes one destination number for each entry of `numbers`, for the tuples from the cursor
    /// on, without the bounds rule. Returns whether all coordinates are inside their axes. `copy`
    /// is a buffer for one coordinate of each tuple. An empty `copy` means that coordinates are
    /// read in place.
    ///
    /// # Safety
    ///
    /// `I` is the type of the indices. Each offset at which a coordinate is read is the offset of
    /// an element of the index tensor. If coordinates are read in place, the coordinates of
    /// successive tuples are adjacent, and no other code can write the memory of the coordinates.
    #[inline(always)]
    unsafe fn number_block<I: Coordinate, N: Number>(
        &self,
        cursor: Cursor,
        copy: &mut [I],
        numbers: &mut [N],
    ) -> bool {
        let Spacing { row, axes, .. } = cursor.spacing;
        if axes.len == 1 && row.dst == 0 {
            // SAFETY: the caller guarantees that the coordinates are elements of type `I`, and can
            // be read in place if `copy` is empty, as the Safety section of `number_block` states.
            let run = unsafe { self.read(cursor, 0, copy, numbers.len()) };
            let axis = self.axis(axes.first);
            return axis.add(run.iter().copied(), numbers, |_| cursor.number);
        }
        cursor.write_base_numbers(numbers);
        let mut inside = true;
        for (axis, place) in self.axes(axes) {
            // SAFETY: the caller guarantees that the coordinates are elements of type `I`, and can
            // be read in place if `copy` is empty, as the Safety section of `number_block` states.
            let run = unsafe { self.read(cursor, place, copy, numbers.len()) };
            inside &= axis.add(run.iter().copied(), numbers, N::get);
        }
        inside
    }

    /// Computes one destination number for each entry of `numbers`, for the tuples from the cursor
    /// on, and applies the bounds rule without a branch. Skipped tuples get [`Number::SKIPPED`].
    /// Returns the number of skipped tuples.
    ///
    /// Returns `None` if the function cannot apply the bounds rule. `numbers` then holds arbitrary
    /// values. The function applies the rule only if [`Bounds`] is not `Error`, one coordinate of
    /// each tuple is read, and no other coordinate varies along the row. Clamping also requires an
    /// axis that is not empty.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::number_block`] requires.
    #[inline(always)]
    unsafe fn bound_block<I: Coordinate, N: Number>(
        &self,
        cursor: Cursor,
        copy: &mut [I],
        numbers: &mut [N],
    ) -> Option<usize> {
        let Spacing { row, axes, .. } = cursor.spacing;
        let rules = self.rules;
        if axes.len != 1 || row.dst != 0 || rules.bounds == Bounds::Error {
            return None;
        }
        // SAFETY: the caller guarantees that the coordinates are elements of type `I`, and can be
        // read in place if `copy` is empty, as the Safety section of `number_block` states.
        let run = unsafe { self.read(cursor, 0, copy, numbers.len()) };
        let axis = self.axis(axes.first);
        let (mut skipped, mut is_error) = (0_u32, false);
        for (number, &index) in numbers.iter_mut().zip(run) {
            let position = rules.position(index, axis.size);
            let is_inside = position < axis.size as u64;
            is_error |= !is_inside & !rules.skips(index);
            let sum = position.wrapping_mul(axis.multiplier);
            let inside = N::new(cursor.number.wrapping_add(sum));
            *number = if is_inside { inside } else { N::SKIPPED };
            skipped += u32::from(!is_inside);
        }
        // With `Bounds::Clamp`, a coordinate is outside only if its axis is empty. Such a
        // coordinate is an error.
        (!is_error).then_some(skipped as usize)
    }

    /// Returns one coordinate of each of the `len` tuples from the cursor on. If `copy` is not
    /// empty, the coordinates are copied to `copy`. Otherwise the result is the memory of the
    /// indices. `place` is the offset of the coordinate, relative to the first coordinate of its
    /// tuple that is read.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::number_block`] requires.
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
            // SAFETY: the caller guarantees two facts. The `len` coordinates from `offset` on are
            // elements of type `I` at adjacent offsets. No other code can write the memory of the
            // coordinates.
            return unsafe { self.indices.neighbours(offset, len) };
        }
        let copy = &mut copy[..len];
        // SAFETY: the caller guarantees that the `len` coordinates at the stride of the row are
        // elements of type `I`.
        unsafe { (self.indices).read_run(offset, cursor.spacing.row.src, copy) };
        copy
    }

    /// Computes one destination number for each entry of `numbers` and applies the bounds rule. The
    /// tuples are in one row of the list. The first tuple is tuple `first` of the list. Returns the
    /// number of skipped tuples.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::number_block`] requires.
    #[cold]
    #[inline(never)]
    unsafe fn apply_bounds_to_row<I: Coordinate, N: Number, const BLOCK: usize>(
        self,
        first: usize,
        numbers: &mut [N],
    ) -> Result<usize, ScatterError> {
        let spacing = self.spacing();
        let (Spacing { row, axes, .. }, mut cursor) = (spacing, self.cursor(spacing, first));
        let (mut skipped, mut done) = (0, 0);
        for block in numbers.chunks_mut(BLOCK) {
            cursor.write_base_numbers(block);
            let offset = |tuple: usize| {
                let steps = row.src.wrapping_mul(tuple.cast_signed());
                cursor.offset.wrapping_add(steps)
            };
            // SAFETY: the caller guarantees two facts for all tuples of `numbers`. `I` is the type
            // of the indices. Each offset is the offset of an element of the index tensor.
            skipped +=
                unsafe { self.apply_bounds::<I, N, BLOCK>(axes, first + done, offset, block) }?;
            done += block.len();
            cursor.advance(row, block.len());
        }
        Ok(skipped)
    }

    /// Computes the destination numbers of all tuples of a short list whose indices are not
    /// contiguous or do not hold every coordinate of every tuple. Returns the number of skipped
    /// tuples.
    #[inline(always)]
    fn number_each<I: Coordinate>(&self, numbers: &mut [u32]) -> Result<usize, ScatterError> {
        let mut offsets = [0; SHORT_LIST];
        let axes = self.write_offsets(&mut offsets, numbers);
        let mut inside = true;
        for (axis, place) in self.axes(axes) {
            let run = offsets[..numbers.len()].iter().map(|offset| {
                let mut index = I::default();
                let offset = offset.wrapping_add(place);
                // SAFETY: `write_offsets` computes the offsets from the sizes and strides of the
                // view. The type `I` is the type of the indices, because `resolve_all` has
                // dispatched on it.
                unsafe { (self.indices).read_run(offset, 0, from_mut(&mut index)) };
                index
            });
            inside &= axis.add(run, numbers, Number::get);
        }
        if inside {
            Ok(0)
        } else {
            self.apply_bounds_to_each::<I>(numbers)
        }
    }

    /// For each tuple of a short list, writes the offset of the first coordinate that is read to
    /// `offsets`, and the base number ([`Cursor::number`]) to `numbers`. Returns the tuple axes
    /// that are read.
    #[inline(always)]
    fn write_offsets(&self, offsets: &mut [isize], numbers: &mut [u32]) -> ReadAxes {
        numbers[0] = Number::new(self.multipliers.origin);
        let mut len = 1;
        let stride = self.each_dim(|dim| {
            // The first `len` entries are the tuples at position 0 along this dim. Each further
            // position along this dim adds `len` entries: the entries of the position before, moved
            // by the strides.
            for at in len..len * dim.size {
                offsets[at] = offsets[at - len].wrapping_add(dim.src);
                numbers[at] = Number::new(add_times(numbers[at - len].get(), 1, dim.dst));
            }
            len *= dim.size;
        });
        self.read_axes(stride)
    }

    /// Computes the destination numbers of all tuples of a short list and applies the bounds rule.
    /// Returns the number of skipped tuples.
    #[cold]
    #[inline(never)]
    fn apply_bounds_to_each<I: Coordinate>(
        self,
        numbers: &mut [u32],
    ) -> Result<usize, ScatterError> {
        let mut offsets = [0; SHORT_LIST];
        let axes = self.write_offsets(&mut offsets, numbers);
        // SAFETY: `write_offsets` computes the offsets from the sizes and strides of the view. The
        // type `I` is the type of the indices, because `resolve_all` has dispatched on it.
        unsafe { self.apply_bounds::<I, _, SHORT_LIST>(axes, 0, |tuple| offsets[tuple], numbers) }
    }

    /// Computes the destination numbers of a block of tuples and applies the bounds rule. Skipped
    /// tuples get [`Number::SKIPPED`]. Returns the number of skipped tuples.
    ///
    /// On entry, `numbers` holds the base number of each tuple. The base number is the destination
    /// number that the tuple would have if all coordinates that are read were 0. The function
    /// `offset` returns the offset of the first coordinate that is read, for a position in the
    /// block. The first tuple of the block is tuple `first` of the list.
    ///
    /// # Safety
    ///
    /// `I` is the type of the indices. Each offset at which a coordinate is read is the offset of
    /// an element of the index tensor.
    #[inline(always)]
    unsafe fn apply_bounds<I: Coordinate, N: Number, const BLOCK: usize>(
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
                // SAFETY: the caller guarantees that the coordinate is an element of type `I`.
                unsafe { (self.indices).read_run(offset, 0, from_mut(index)) };
                let position = rules.position(*index, axis.size);
                *applied &= position < size;
                inside &= position < size;
                let sum = position.wrapping_mul(axis.multiplier);
                *number = N::new(number.get().wrapping_add(sum));
            }
            if !inside && rules.bounds != Bounds::Skip {
                let is_error =
                    |&index: &I| rules.position(index, axis.size) >= size && !rules.skips(index);
                let before = outlier.map_or(run.len(), |(tuple, ..)| tuple);
                let found = run[..before].iter().position(is_error);
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

    /// Returns the error for a coordinate that is out of bounds.
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
    /// Returns the strides of a contiguous list whose tuples have `len` coordinates each.
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
    /// Moves the cursor forward by `count` positions along `dim`.
    #[inline(always)]
    fn advance(&mut self, dim: Dim, count: usize) {
        let offset = dim.src.wrapping_mul(count.cast_signed());
        self.offset = self.offset.wrapping_add(offset);
        self.number = add_times(self.number, count, dim.dst);
    }

    /// Writes the base numbers of successive tuples of a row to `numbers`, beginning with the tuple
    /// of the cursor. The base number of a tuple is the destination number that the tuple would
    /// have if all coordinates that are read from `indices` were 0.
    #[inline(always)]
    fn write_base_numbers<N: Number>(self, numbers: &mut [N]) {
        let mut next = self.number;
        for number in numbers {
            *number = N::new(next);
            next = add_times(next, 1, self.spacing.row.dst);
        }
    }
}

impl Axis {
    /// Adds the coordinates of this axis to destination numbers: each entry of `numbers` becomes
    /// `before(entry)` plus the product of a position and the multiplier of the axis. The positions
    /// come from the coordinates in `run`, one for each entry. Returns whether all coordinates are
    /// inside the axis.
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

/// Returns `number` plus `count` times `increment`. The sum wraps, because increments can be
/// negative.
#[inline(always)]
fn add_times(number: u64, count: usize, increment: isize) -> u64 {
    number.wrapping_add((count as u64).wrapping_mul((increment as i64).cast_unsigned()))
}
