//! A plan held against the strides of one call: loops and runs.
//!
//! Dims that are adjacent in memory on both sides merge into one run; what is
//! left are loops over runs. The order within a window is free (each element
//! has its own destination), so dims are turned and sorted until the run is as
//! long as it can be.

use crate::error::ScatterError;
use crate::operand::{Dims, offset_of, unravel};

/// A loop: how often, and how far apart on either side, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dim {
    pub(crate) size: usize,
    pub(crate) dst: isize,
    pub(crate) src: isize,
}

/// Nested loops and where they begin. Without elements where a size is 0.
#[derive(Debug, Default)]
pub(crate) struct Span {
    pub(crate) dst: isize,
    pub(crate) src: isize,
    /// Outermost first; the last one is the run.
    pub(crate) dims: Dims<Dim>,
}

/// How the updates of one call lie beside the output of a plan.
#[derive(Debug)]
pub(crate) struct Geometry {
    /// Distance from one destination number to the next.
    pub(crate) unit: isize,
    /// Repetitions: every tuple once in each. Begins where destination
    /// number 0 lies.
    pub(crate) outer: Span,
    /// The window of one tuple; its last dim is the run.
    pub(crate) window: Span,
    /// Source side of the list of tuples: sizes and strides, merged.
    pub(crate) tuples: Dims<(usize, isize)>,
    /// Whether windows of consecutive destinations and consecutive tuples lie
    /// one behind the other on both sides.
    pub(crate) joins: bool,
}

/// How `data` lies beside the output of a plan.
#[derive(Debug)]
pub(crate) struct CopyGeometry {
    /// All elements.
    pub(crate) whole: Span,
    /// Repetitions, as in [`Geometry::outer`].
    pub(crate) outer: Span,
    /// All elements of one repetition.
    pub(crate) inner: Span,
    /// Distance from slice to slice, where both sides have a constant one:
    /// then `window` below is what one slice holds.
    pub(crate) slices: Option<Dim>,
    pub(crate) window: Span,
}

impl Dim {
    pub(super) const ONE: Self = Self {
        size: 1,
        dst: 1,
        src: 1,
    };

    /// Whether a loop around this one goes on where this one ends.
    #[inline]
    pub(super) fn is_continued_by(self, outer: Self) -> bool {
        // A step over all of it may be more than any that is taken.
        let whole = |step: isize| step.checked_mul(self.size.cast_signed());
        (whole(self.dst), whole(self.src)) == (Some(outer.dst), Some(outer.src))
    }

    /// The two as one loop.
    #[inline]
    pub(super) fn continued(self, outer: Self) -> Self {
        Self {
            size: self.size * outer.size,
            ..self
        }
    }
}

impl Span {
    /// Loops in any order, brought into the form with the longest run.
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
            // Into its place, behind those with the same step.
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

    /// All elements of two tensors of one shape, with the strides of each.
    pub(crate) fn over(
        sizes: &[usize],
        dst: &[isize],
        src: &[isize],
    ) -> Result<Self, ScatterError> {
        let strides = dst.iter().zip(src);
        Self::new((sizes.iter().zip(strides)).map(|(&size, (&dst, &src))| Dim { size, dst, src }))
    }

    /// The innermost loop.
    pub(crate) fn run(&self) -> Dim {
        self.dims.last().copied().unwrap_or(Dim::ONE)
    }

    /// Has the elements of a run read side by side.
    pub(crate) fn read_side_by_side(&mut self) {
        if let Some(run) = self.dims.last_mut() {
            run.src = 1;
        }
    }

    /// The loops around the run.
    pub(crate) fn loops(&self) -> &[Dim] {
        self.dims.split_last().map_or(&[], |(_, loops)| loops)
    }

    /// Whether it is one run of neighbours on both sides.
    pub(crate) fn is_row(&self) -> bool {
        let run = self.run();
        self.loops().is_empty() && (run.size == 1 || (run.dst, run.src) == (1, 1))
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.dims.iter().map(|dim| dim.size).product()
    }

    /// Number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.loops().iter().map(|dim| dim.size).product()
    }

    /// Where the `number`-th combination of loop positions begins, the last of
    /// `loops` fastest.
    pub(crate) fn at(loops: &[Dim], number: usize) -> (isize, isize) {
        let (mut dst, mut src) = (0, 0);
        for (dim, position) in unravel(loops.iter().rev(), |dim| dim.size, number) {
            dst += position.cast_signed() * dim.dst;
            src += position.cast_signed() * dim.src;
        }
        (dst, src)
    }

    /// The same loops with the two sides exchanged.
    fn exchanged(mut self) -> Self {
        std::mem::swap(&mut self.dst, &mut self.src);
        for dim in &mut *self.dims {
            std::mem::swap(&mut dim.dst, &mut dim.src);
        }
        self
    }

    /// The same loops, which all read the one element at the base address.
    pub(crate) fn of_one_source(&self) -> Result<Self, ScatterError> {
        let dims = self.dims.iter().map(|&dim| Dim { src: 0, ..dim });
        Ok(Self {
            dst: self.dst,
            src: 0,
            dims: Dims::collect(self.dims.len(), dims)?,
        })
    }

    /// The part of it that has positions `from..to` along dim `axis`. Of loops
    /// that lie inline: tasks have no memory to ask for.
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

    /// The loop to divide among workers: the outermost of those long enough,
    /// else the longest.
    pub(crate) fn axis_to_split(&self, parts: usize) -> usize {
        let enough = |dim: &Dim| dim.size >= parts;
        let fitting = self.dims.iter().position(enough);
        fitting.unwrap_or_else(|| self.longest().0)
    }

    /// The longest dim, the last one of several, and its size.
    fn longest(&self) -> (usize, usize) {
        let sizes = self.dims.iter().map(|dim| dim.size).enumerate();
        sizes.max_by_key(|&(_, size)| size).unwrap_or((0, 1))
    }
}

/// Adds an inner loop, as part of the one around it where they are one.
fn push_merged(dims: &mut Dims<Dim>, dim: Dim) -> Result<(), ScatterError> {
    match dims.last_mut() {
        Some(outer) if dim.is_continued_by(*outer) => {
            *outer = dim.continued(*outer);
            Ok(())
        }
        _ => dims.push(dim),
    }
}

/// Dims in row-major order, with neighbours that have one stride merged.
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

/// Where position `number` of some dims lies, counted in row-major order.
#[inline]
pub(super) fn offset(dims: &[(usize, isize)], number: usize) -> isize {
    if let [(_, step)] = *dims {
        return number.cast_signed() * step;
    }
    offset_of(dims.iter().rev().copied(), number)
}

/// The one step between neighbours of these dims; `None` where they have several.
#[inline]
pub(super) fn one_step(dims: &[(usize, isize)]) -> Option<isize> {
    match *dims {
        [] => Some(0),
        [(_, step)] => Some(step),
        _ => None,
    }
}

/// A destination number as an offset. Numbers are below the number of
/// elements of an output, which fits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers count elements in memory"
)]
#[inline]
pub(crate) fn signed(number: u64) -> isize {
    number.cast_signed() as isize
}

impl CopyGeometry {
    /// The slices `from..to` of one repetition, where slices are evenly spaced.
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

    /// Whether neighbouring slices lie one behind the other on both sides.
    pub(crate) fn slices_join(&self) -> bool {
        let length = self.window.run().size.cast_signed();
        self.window.is_row()
            && self
                .slices
                .is_some_and(|slices| slices.dst == length && slices.src == length)
    }
}

impl Geometry {
    /// Where runs are short, makes the longest loop of the window the run, or,
    /// where a repetition moves a few elements, that of the repetitions: the work
    /// then lies in one kernel call and not in the loops around many. Each element
    /// of a short run then goes once more through the cache lines of the others,
    /// so that it must be short indeed.
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

    /// The same with the sides of its loops exchanged, for a gather: `dst` is
    /// that of the list of windows, `src` that of the numbered ones.
    pub(crate) fn exchanged(self) -> Self {
        Self {
            outer: self.outer.exchanged(),
            window: self.window.exchanged(),
            ..self
        }
    }

    /// Offsets of a repetition on either side, first elements included.
    pub(crate) fn repetition(&self, number: usize) -> (isize, isize) {
        let (dst, src) = Span::at(&self.outer.dims, number);
        (self.outer.dst + dst, self.outer.src + src)
    }

    /// Offset of the window of `tuple` in the list of windows.
    #[inline]
    pub(crate) fn source(&self, tuple: usize) -> isize {
        offset(&self.tuples, tuple)
    }

    /// Whether all windows of the list are the same one element, again and again.
    pub(crate) fn reads_one_element(&self) -> bool {
        let spans = [&self.outer, &self.window];
        let mut loops = spans.into_iter().flat_map(|span| &*span.dims);
        let stays = |dim: &Dim| dim.src == 0 || dim.size == 1;
        loops.all(stays) && self.tuples.iter().all(|&(_, step)| step == 0)
    }

    /// The distance between the sources of neighbouring tuples, where it is constant.
    pub(crate) fn source_step(&self) -> Option<isize> {
        one_step(&self.tuples)
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
    fn spans_become_as_long_as_they_can() {
        let cases = [
            // Row-major on both sides: one run.
            (
                vec![dim(2, 12, 12), dim(3, 4, 4), dim(4, 1, 1)],
                vec![dim(24, 1, 1)],
            ),
            // Padded rows on one side.
            (
                vec![dim(3, 8, 4), dim(4, 1, 1)],
                vec![dim(3, 8, 4), dim(4, 1, 1)],
            ),
            // Transposed on both sides: turned back.
            (vec![dim(4, 1, 1), dim(3, 4, 4)], vec![dim(12, 1, 1)]),
            // Size 1 says nothing.
            (vec![dim(1, 99, 7), dim(4, 1, 1)], vec![dim(4, 1, 1)]),
            (vec![], vec![dim(1, 1, 1)]),
        ];
        for (dims, expected) in cases {
            let span = Span::new(dims.clone().into_iter()).expect("few dims");
            assert_eq!(span.dims[..], expected[..], "{dims:?}");
        }
    }

    /// Steps over a whole dim that no element lies behind.
    #[test]
    fn steps_that_are_never_taken_may_be_as_long_as_they_like() {
        let far = isize::MAX / 2;
        let dims = [dim(2, far, far), dim(2, far - 1, 1)];
        let span = Span::new(dims.into_iter()).expect("few dims");
        assert_eq!(span.dims[..], dims, "two loops");
    }

    #[test]
    fn reversed_outputs_are_written_forwards() {
        let span = Span::new([dim(3, -4, -4), dim(4, -1, -1)].into_iter()).expect("few dims");
        assert_eq!(span.dims[..], [dim(12, 1, 1)], "one run");
        assert_eq!((span.dst, span.src), (-11, -11), "from the lowest address");
    }

    fn dims(shape: &[usize], strides: &[isize]) -> Dims<(usize, isize)> {
        merged(shape, strides).expect("few dims")
    }

    #[test]
    fn dims_merge_where_strides_allow() {
        assert_eq!(dims(&[2, 3, 4], &[12, 4, 1])[..], [(24, 1)], "all");
        assert_eq!(dims(&[2, 3, 4], &[24, 8, 2])[..], [(24, 2)], "every other");
        assert_eq!(dims(&[2, 3], &[1, 2])[..], [(2, 1), (3, 2)], "transposed");
        assert_eq!(dims(&[5, 1, 3], &[3, 77, 1])[..], [(15, 1)], "size 1");
        assert_eq!(dims(&[2, 3], &[0, 0])[..], [(6, 0)], "one for all");
        assert!(dims(&[1, 1], &[9, 9]).is_empty(), "a single tuple");
    }
}
