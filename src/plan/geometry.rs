//! Loops over the elements of one call: the plan combined with the strides of the call's tensors.
//!
//! A dim has one stride in the tensor that is written (`dst`) and one stride in the tensor that is
//! read (`src`). Two neighbouring dims merge if, in each of the two tensors, one stride describes
//! the two dims. The innermost merged dim is the run. The other dims are loops around the run. No
//! two elements of a window are written to one element, so the order of the elements within a
//! window is free. Therefore dims with a negative stride are reversed, and dims are sorted by
//! stride, to make the run as long as possible. This module knows sizes and strides. This module
//! does not know the indices.

use crate::error::ScatterError;
use crate::operand::{Dims, offset_of, unravel};

/// Loop with its number of iterations and its two strides, in elements. The field `dst` is the
/// stride in the tensor that is written. The field `src` is the stride in the tensor that is read.
/// For a gather, `dst` and `src` have these meanings only after [`Geometry::exchanged`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dim {
    pub(crate) size: usize,
    pub(crate) dst: isize,
    pub(crate) src: isize,
}

/// Nested loops and the two offsets of their first iteration. A span has no elements if the size of
/// a loop is 0.
#[derive(Debug, Default)]
pub(crate) struct Span {
    /// Offset of the first written element, in elements.
    pub(crate) dst: isize,
    /// Offset of the first read element, in elements.
    pub(crate) src: isize,
    /// Loops, the outermost loop first. The last loop is the run.
    pub(crate) dims: Dims<Dim>,
}

/// Loops over the output (`dst`) and the updates (`src`) of a scatter. For a gather, the loops go
/// over data (`dst`) and the output (`src`) until [`Self::exchanged`] exchanges `dst` and `src`.
#[derive(Debug)]
pub(crate) struct Geometry {
    /// Stride between the windows of successive destination numbers, in elements of the numbered
    /// tensor. The numbered tensor is the tensor whose windows destination numbers address: the
    /// output of a scatter, or the data of a gather.
    pub(crate) unit: isize,
    /// Loops over repetitions. The offset of the first iteration in the numbered tensor includes
    /// the offset of destination number 0. This offset is `outer.dst`, or `outer.src` after
    /// [`Self::exchanged`]. [`Self::lengthen_run`] can move the offset to `window`.
    pub(crate) outer: Span,
    /// Loops over the window of one tuple. The last loop is the run. The run can also be a loop
    /// over repetitions (see [`Self::lengthen_run`]).
    pub(crate) window: Span,
    /// Sizes and strides of the list of tuples in the updates of a scatter or in the output of a
    /// gather. Dims are merged where possible.
    pub(crate) tuples: Dims<(usize, isize)>,
    /// Whether the windows of successive tuples with successive destination numbers follow each
    /// other without a gap, in the written tensor and in the read tensor.
    pub(crate) joins: bool,
}

/// Loops over the output and `data` of one call, for the copy of `data` to the output.
#[derive(Debug)]
pub(crate) struct CopyGeometry {
    /// Loops over all elements of the output.
    pub(crate) whole: Span,
    /// Loops over all repetitions of the output. [`Geometry::outer`] can have fewer repetitions.
    pub(crate) outer: Span,
    /// Loops over all elements of one repetition.
    pub(crate) inner: Span,
    /// Loop over the slices of one repetition. `None` if the stride between neighbouring slices is
    /// not constant in `data` or in the output.
    pub(crate) slices: Option<Dim>,
    /// Loops over the elements of one slice.
    pub(crate) window: Span,
}

impl Dim {
    /// A loop over one element.
    pub(crate) const ONE: Self = Self {
        size: 1,
        dst: 1,
        src: 1,
    };

    /// Whether this loop and the loop `outer` around it form one longer loop. The two loops form
    /// one loop if, both for `dst` and for `src`, the stride of `outer` is the size of this loop
    /// times the stride of this loop.
    #[inline]
    pub(super) fn is_continued_by(self, outer: Self) -> bool {
        // The product of size and stride may overflow, because the tensor need not have an element
        // at that distance. After an overflow the loops do not merge.
        let whole = |stride: isize| stride.checked_mul(self.size.cast_signed());
        (whole(self.dst), whole(self.src)) == (Some(outer.dst), Some(outer.src))
    }

    /// Returns the longer loop that this loop and the loop `outer` around it form.
    #[inline]
    pub(super) fn continued(self, outer: Self) -> Self {
        Self {
            size: self.size * outer.size,
            ..self
        }
    }
}

impl Span {
    /// Makes a span with the longest possible run. Reverses loops with a negative `dst`, sorts
    /// loops by `dst` and merges neighbouring loops.
    pub(crate) fn new(dims: impl Iterator<Item = Dim>) -> Result<Self, ScatterError> {
        let mut span = Self::default();
        let mut loose: Dims<Dim> = Dims::new();
        for mut dim in dims {
            if dim.size == 1 {
                continue;
            }
            if dim.dst < 0 {
                let steps = dim.size.cast_signed() - 1;
                span.dst += steps * dim.dst;
                span.src += steps * dim.src;
                (dim.dst, dim.src) = (-dim.dst, -dim.src);
            }
            // Insert the loop so that the strides `dst` descend. Loops with equal strides keep
            // their order.
            let place = loose.partition_point(|before| before.dst >= dim.dst);
            loose.push(dim)?;
            loose[place..].rotate_right(1);
        }
        for &dim in &*loose {
            push_merged(&mut span.dims, dim)?;
        }
        if span.dims.is_empty() {
            span.dims.push(Dim::ONE)?;
        }
        Ok(span)
    }

    /// Returns the loops over all elements of two tensors of the shape `sizes`. `dst` and `src` are
    /// the strides of the written and of the read tensor.
    pub(crate) fn over(
        sizes: &[usize],
        dst: &[isize],
        src: &[isize],
    ) -> Result<Self, ScatterError> {
        let strides = dst.iter().zip(src);
        Self::new((sizes.iter().zip(strides)).map(|(&size, (&dst, &src))| Dim { size, dst, src }))
    }

    /// Returns the run, which is the innermost loop.
    pub(crate) fn run(&self) -> Dim {
        self.dims.last().copied().unwrap_or(Dim::ONE)
    }

    /// Sets the read stride of the run to 1.
    pub(crate) fn read_side_by_side(&mut self) {
        if let Some(run) = self.dims.last_mut() {
            run.src = 1;
        }
    }

    /// Returns all loops except the run, which is the innermost loop.
    pub(crate) fn loops(&self) -> &[Dim] {
        self.dims.split_last().map_or(&[], |(_, loops)| loops)
    }

    /// Whether the span is one run whose elements are contiguous in the written tensor and in the
    /// read tensor. A span of one element is also a row.
    pub(crate) fn is_row(&self) -> bool {
        let run = self.run();
        self.loops().is_empty() && (run.size == 1 || (run.dst, run.src) == (1, 1))
    }

    /// Returns the number of elements that the loops visit.
    pub(crate) fn elements(&self) -> usize {
        self.dims.iter().map(|dim| dim.size).product()
    }

    /// Returns the number of executions of the run, which is the innermost loop.
    pub(crate) fn runs(&self) -> usize {
        self.loops().iter().map(|dim| dim.size).product()
    }

    /// Returns the offsets, in the written tensor and in the read tensor, of iteration `number` of
    /// the nested loops `loops`. The offsets are relative to iteration 0. The last loop varies
    /// fastest.
    pub(crate) fn at(loops: &[Dim], number: usize) -> (isize, isize) {
        let (mut dst, mut src) = (0, 0);
        for (dim, position) in unravel(loops.iter().rev(), |dim| dim.size, number) {
            dst += position.cast_signed() * dim.dst;
            src += position.cast_signed() * dim.src;
        }
        (dst, src)
    }

    /// Exchanges the offset and the strides in the written tensor (`dst`) with those in the read
    /// tensor (`src`).
    fn exchanged(mut self) -> Self {
        std::mem::swap(&mut self.dst, &mut self.src);
        for dim in &mut *self.dims {
            std::mem::swap(&mut dim.dst, &mut dim.src);
        }
        self
    }

    /// Returns the same loops with a read offset of 0 and read strides of 0. Every iteration then
    /// reads the element at the base address.
    pub(crate) fn of_one_source(&self) -> Result<Self, ScatterError> {
        let dims = self.dims.iter().map(|&dim| Dim { src: 0, ..dim });
        Ok(Self {
            dst: self.dst,
            src: 0,
            dims: Dims::collect(self.dims.len(), dims)?,
        })
    }

    /// Returns the part of the span at positions `from..to` along loop `axis`. The loops must be
    /// stored inline, because tasks call this function and must not allocate memory.
    pub(crate) fn restricted(&self, axis: usize, from: usize, to: usize) -> Self {
        let mut part = Self {
            dst: self.dst,
            src: self.src,
            dims: self.dims.clone_inline(),
        };
        let dim = &mut part.dims[axis];
        dim.size = to - from;
        part.dst += from.cast_signed() * dim.dst;
        part.src += from.cast_signed() * dim.src;
        part
    }

    /// Returns the index in `dims` of the loop to divide among `parts` tasks: the outermost loop
    /// with at least `parts` iterations. If all loops are shorter, the function takes the longest
    /// loop.
    pub(crate) fn axis_to_split(&self, parts: usize) -> usize {
        let enough = |dim: &Dim| dim.size >= parts;
        let fitting = self.dims.iter().position(enough);
        fitting.unwrap_or_else(|| self.longest().0)
    }

    /// Returns the index in `dims` and the size of the longest loop. If several loops are longest,
    /// the function takes the innermost one.
    fn longest(&self) -> (usize, usize) {
        let sizes = self.dims.iter().map(|dim| dim.size).enumerate();
        sizes.max_by_key(|&(_, size)| size).unwrap_or((0, 1))
    }
}

/// Adds `dim` to `dims` as the innermost loop. Merges `dim` with the previous innermost loop of
/// `dims` if the two loops form one longer loop.
fn push_merged(dims: &mut Dims<Dim>, dim: Dim) -> Result<(), ScatterError> {
    match dims.last_mut() {
        Some(outer) if dim.is_continued_by(*outer) => {
            *outer = dim.continued(*outer);
            Ok(())
        }
        _ => dims.push(dim),
    }
}

/// Merges neighbouring dims that one size and one stride can describe. `shape` and `strides` are in
/// row-major order. Dims of size 1 are left out.
pub(super) fn merged(
    shape: &[usize],
    strides: &[isize],
) -> Result<Dims<(usize, isize)>, ScatterError> {
    let mut dims = Dims::new();
    for (&size, &src) in shape.iter().zip(strides).filter(|&(&size, _)| size != 1) {
        push_merged(&mut dims, Dim { size, dst: 0, src })?;
    }
    Dims::collect(dims.len(), dims.iter().map(|dim| (dim.size, dim.src)))
}

/// Returns the offset of position `number` in the row-major order of `dims`. `dims` are pairs of a
/// size and a stride.
#[inline]
pub(super) fn offset(dims: &[(usize, isize)], number: usize) -> isize {
    if let [(_, step)] = *dims {
        return number.cast_signed() * step;
    }
    offset_of(dims.iter().rev().copied(), number)
}

/// Returns the stride of merged dims. Returns 0 if there are no dims, and `None` if there are
/// several dims.
#[inline]
pub(super) fn single_stride(dims: &[(usize, isize)]) -> Option<isize> {
    match *dims {
        [] => Some(0),
        [(_, step)] => Some(step),
        _ => None,
    }
}

/// Converts a destination number to an offset. Destination numbers are smaller than the number of
/// elements that an output spans, so the conversion is exact.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a number is smaller than the number of elements that an output spans"
)]
#[inline]
pub(crate) fn signed(number: u64) -> isize {
    number.cast_signed() as isize
}

impl CopyGeometry {
    /// Returns the loops over the slices `from..to` of a repetition. Returns `None` if the stride
    /// between slices is not constant, or if an allocation failed.
    pub(crate) fn span_of_slices(&self, from: usize, to: usize) -> Option<Span> {
        let slices = self.slices?;
        let range = Dim {
            size: to - from,
            ..slices
        };
        let window = self.window.dims.iter().copied();
        let mut span = Span::new(std::iter::once(range).chain(window)).ok()?;
        span.dst += self.window.dst + from.cast_signed() * slices.dst;
        span.src += self.window.src + from.cast_signed() * slices.src;
        Some(span)
    }

    /// Whether each slice is a contiguous row and the next slice follows without a gap, both in
    /// data and in the output.
    pub(crate) fn slices_join(&self) -> bool {
        let length = self.window.run().size.cast_signed();
        self.window.is_row()
            && self
                .slices
                .is_some_and(|slices| slices.dst == length && slices.src == length)
    }
}

impl Geometry {
    /// Replaces a short run by a longer loop. The run is the innermost loop of the window, and one
    /// kernel call processes the elements of one run. `tuples` is the number of tuples.
    ///
    /// The new run is usually the longest loop of the window. If `tuples` times the size of the old
    /// run is at most four, the new run can be the longest loop over repetitions. This loop over
    /// repetitions must be longer than every loop of the window. In all cases, the new run must be
    /// more than twice as long as the old run.
    ///
    /// A longer run needs fewer kernel calls. But each element of the old run then needs a separate
    /// pass over the same cache lines. Therefore a longer run replaces the old run only if the old
    /// run has at most five elements.
    pub(super) fn lengthen_run(&mut self, tuples: usize) -> Result<(), ScatterError> {
        const SHORT_RUN: usize = 5;
        const FEW_ELEMENTS: usize = 4;
        let run = self.window.run().size;
        if run > SHORT_RUN {
            return Ok(());
        }
        let (window_axis, window_size) = self.window.longest();
        let (outer_axis, outer_size) = self.outer.longest();
        let repeats_few = tuples.saturating_mul(run) <= FEW_ELEMENTS;
        if repeats_few && outer_size > window_size && outer_size > 2 * run {
            let dim = self.outer.dims.remove(outer_axis);
            if self.outer.dims.is_empty() {
                self.outer.dims.push(Dim::ONE)?;
            }
            self.window.dst += std::mem::take(&mut self.outer.dst);
            self.window.src += std::mem::take(&mut self.outer.src);
            self.window.dims.push(dim)?;
            self.joins = false;
        } else if window_size > 2 * run {
            let dim = self.window.dims.remove(window_axis);
            self.window.dims.push(dim)?;
        }
        Ok(())
    }

    /// Exchanges `dst` and `src` of all loops, for a gather. After the exchange, `dst` has offsets
    /// and strides in the output, which has one window for each tuple. The field `src` has offsets
    /// and strides in the data, whose windows destination numbers address.
    pub(crate) fn exchanged(self) -> Self {
        Self {
            outer: self.outer.exchanged(),
            window: self.window.exchanged(),
            ..self
        }
    }

    /// Returns the offsets of repetition `number` in the written tensor and in the read tensor. The
    /// offsets `dst` and `src` of `outer` are included.
    pub(crate) fn repetition(&self, number: usize) -> (isize, isize) {
        let (dst, src) = Span::at(&self.outer.dims, number);
        (self.outer.dst + dst, self.outer.src + src)
    }

    /// Returns the offset of the window of `tuple`, relative to the window of tuple 0, in the
    /// updates of a scatter or in the output of a gather.
    #[inline]
    pub(crate) fn source(&self, tuple: usize) -> isize {
        offset(&self.tuples, tuple)
    }

    /// Whether all elements of the updates of a scatter are one and the same element of memory.
    pub(crate) fn reads_one_element(&self) -> bool {
        let spans = [&self.outer, &self.window];
        let mut loops = spans.into_iter().flat_map(|span| &*span.dims);
        let stays = |dim: &Dim| dim.src == 0 || dim.size == 1;
        loops.all(stays) && self.tuples.iter().all(|&(_, step)| step == 0)
    }

    /// Returns the stride between the windows of neighbouring tuples in the updates of a scatter or
    /// in the output of a gather. Returns `None` if this stride is not constant.
    pub(crate) fn source_step(&self) -> Option<isize> {
        single_stride(&self.tuples)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dim, Span, merged};
    use crate::operand::Dims;

    fn dim(size: usize, dst: isize, src: isize) -> Dim {
        Dim { size, dst, src }
    }

    #[test]
    fn runs_become_as_long_as_possible() {
        let cases = [
            // All dims are row-major and contiguous in the destination and in the source, so the
            // dims are merged into one run.
            (
                vec![dim(2, 12, 12), dim(3, 4, 4), dim(4, 1, 1)],
                vec![dim(24, 1, 1)],
            ),
            // Rows of 4 elements are padded to 8 in the destination and contiguous in the source,
            // so the dims are not merged.
            (
                vec![dim(3, 8, 4), dim(4, 1, 1)],
                vec![dim(3, 8, 4), dim(4, 1, 1)],
            ),
            // The dims are transposed in the destination and in the source. The dims are sorted to
            // row-major order and then merged.
            (vec![dim(4, 1, 1), dim(3, 4, 4)], vec![dim(12, 1, 1)]),
            // Dims of size 1 are left out.
            (vec![dim(1, 99, 7), dim(4, 1, 1)], vec![dim(4, 1, 1)]),
            (vec![], vec![dim(1, 1, 1)]),
        ];
        for (dims, expected) in cases {
            let span = Span::new(dims.clone().into_iter()).expect("inline dims");
            assert_eq!(span.dims[..], expected[..], "{dims:?}");
        }
    }

    /// The size of a dim times its stride is close to `isize::MAX`. The two dims do not merge.
    #[test]
    fn strides_that_no_element_uses_may_overflow() {
        let far = isize::MAX / 2;
        let dims = [dim(2, far, far), dim(2, far - 1, 1)];
        let span = Span::new(dims.into_iter()).expect("inline dims");
        assert_eq!(span.dims[..], dims, "two loops");
    }

    #[test]
    fn reversed_outputs_are_written_forwards() {
        let span = Span::new([dim(3, -4, -4), dim(4, -1, -1)].into_iter()).expect("inline dims");
        assert_eq!(span.dims[..], [dim(12, 1, 1)], "one run");
        assert_eq!((span.dst, span.src), (-11, -11), "from the lowest address");
    }

    fn dims(shape: &[usize], strides: &[isize]) -> Dims<(usize, isize)> {
        merged(shape, strides).expect("inline dims")
    }

    #[test]
    fn dims_merge_where_strides_allow() {
        assert_eq!(dims(&[2, 3, 4], &[12, 4, 1])[..], [(24, 1)], "all");
        assert_eq!(dims(&[2, 3, 4], &[24, 8, 2])[..], [(24, 2)], "stride 2");
        assert_eq!(dims(&[2, 3], &[1, 2])[..], [(2, 1), (3, 2)], "transposed");
        assert_eq!(
            dims(&[5, 1, 3], &[3, 77, 1])[..],
            [(15, 1)],
            "a dim of size 1"
        );
        assert_eq!(dims(&[2, 3], &[0, 0])[..], [(6, 0)], "stride 0");
        assert!(dims(&[1, 1], &[9, 9]).is_empty(), "a single tuple");
    }
}
