//! Tiles: parts of a scatter that share no element of the output.

use std::marker::PhantomData;
use std::ops::Range;

use super::workload::Workload;
use crate::plan::{IndexPlan, Span};
use crate::schedule::Schedule;

/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;

/// One task's part: some repetitions, some tuples (by position or by
/// destination), some columns of the window.
///
/// A tile *reaches* the windows of its tuples in its repetitions, cut to its
/// columns. One of a range of destinations reaches every slice of that range,
/// and one that is neither cut by tuples nor by columns all of its repetitions:
/// such tiles are copied to as well.
///
/// **Tiles share no element**, and whoever has one may write to all that it
/// reaches without looking. What each division rests on:
///
/// | schedule | its tiles have | which share no element because |
/// |---|---|---|
/// | serial | everything | there is one |
/// | by batch | repetitions | an output does not overlap itself |
/// | by tuple | tuples | `divide` has found destinations to be unique; or `part_of_tuples` cuts between lanes, which imply different coordinates, or between groups of equal destinations |
/// | by column | columns of all windows | `columns` cuts one dim, and an output does not overlap itself |
/// | by destination, by partition | ranges of destination numbers | different numbers are different slices, or offsets of windows that are apart |
#[derive(Debug)]
pub(super) struct Tile {
    outer: Range<usize>,
    tuples: Range<usize>,
    numbers: Option<Range<u64>>,
    columns: Option<Columns>,
    /// It stays with the task that has it.
    not_shared: PhantomData<*mut ()>,
}

impl Tile {
    /// All of a call.
    ///
    /// # Safety
    ///
    /// As for [`Self::new`].
    #[expect(unsafe_code, reason = "who has a tile writes to it unchecked")]
    pub(super) unsafe fn whole(work: &Workload<'_>) -> Self {
        let (outer, tuples) = (0..work.geometry.outer.elements(), 0..work.plan.tuples());
        // SAFETY: handed on as it is.
        unsafe { Self::new(outer, tuples, None, None) }
    }

    /// # Safety
    ///
    /// While the tile exists, no one else reads or writes an element of the
    /// output that it reaches, in the call whose methods it is handed to.
    #[expect(unsafe_code, reason = "who has a tile writes to it unchecked")]
    pub(super) unsafe fn new(
        outer: Range<usize>,
        tuples: Range<usize>,
        numbers: Option<Range<u64>>,
        columns: Option<Columns>,
    ) -> Self {
        Self {
            outer,
            tuples,
            numbers,
            columns,
            not_shared: PhantomData,
        }
    }

    /// Repetitions.
    pub(super) fn outer(&self) -> Range<usize> {
        self.outer.clone()
    }

    /// Positions in a list of tuples.
    pub(super) fn tuples(&self) -> Range<usize> {
        self.tuples.clone()
    }

    /// Only tuples whose destination number lies in this range.
    pub(super) fn numbers(&self) -> Option<Range<u64>> {
        self.numbers.clone()
    }

    /// Only this part of the window.
    pub(super) fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }
}

/// Positions along one dim of the window.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) axis: usize,
    pub(super) part: Range<usize>,
}

impl Columns {
    /// What they are of a window that [can be cut](can_be_cut).
    pub(super) fn of(&self, window: &Span) -> Span {
        window.restricted(self.axis, self.part.start, self.part.end)
    }
}

/// How many parts each side is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) outer: usize,
    /// Parts of the list of tuples, or of the range of destinations.
    pub(crate) middle: usize,
    pub(crate) columns: usize,
}

impl Grid {
    pub(crate) const ONE: Self = Self {
        outer: 1,
        middle: 1,
        columns: 1,
    };

    pub(crate) fn tasks(self) -> usize {
        self.outer * self.middle * self.columns
    }

    /// Which outer and middle part and which column task `index` has.
    pub(super) fn place(self, index: usize) -> (usize, usize, usize) {
        let rest = index / self.columns;
        (rest / self.middle, rest % self.middle, index % self.columns)
    }

    /// The tile of task `index`. `phase` is that of the windows, as in
    /// [`columns`].
    ///
    /// # Safety
    ///
    /// The grid was made by `divide` for `schedule` and this work, and no one
    /// else has this task: then its tiles share no element ([`Tile`]).
    #[expect(unsafe_code, reason = "who has a tile writes to it unchecked")]
    pub(super) unsafe fn tile(
        self,
        index: usize,
        schedule: Schedule,
        work: &Workload<'_>,
        phase: usize,
    ) -> Tile {
        let (outer, middle, column) = self.place(index);
        let by_destination = schedule == Schedule::ByDestination;
        let outer = part(work.geometry.outer.elements(), self.outer, outer);
        let tuples = if by_destination {
            0..work.plan.tuples()
        } else {
            part_of_tuples(work.plan, self.middle, middle)
        };
        let numbers =
            by_destination.then(|| part_of_numbers(work.plan.scale().count, self.middle, middle));
        let window = &work.geometry.window;
        let columns = (self.columns > 1)
            .then(|| columns(window, work.kernels.size, phase, self.columns, column));
        // SAFETY: tiles of different tasks differ in repetitions, tuples,
        // destinations or columns, and the caller vouches for the division.
        unsafe { Tile::new(outer, tuples, numbers, columns) }
    }
}

/// Part `index` of `parts` nearly equal ones of `0..total`.
pub(crate) fn part(total: usize, parts: usize, index: usize) -> Range<usize> {
    let (each, extra) = (total / parts, total % parts);
    let start = |index: usize| each * index + index.min(extra);
    start(index)..start(index + 1)
}

/// [`part`] of the list of tuples: of its lanes, where it has enough, and of
/// whole groups, where equal destinations stand together, so that parts share
/// no destination.
fn part_of_tuples(plan: &IndexPlan, parts: usize, index: usize) -> Range<usize> {
    let lanes = plan.lanes();
    if lanes < parts {
        let part = part(plan.tuples(), parts, index);
        return if plan.facts().ordered {
            plan.start_of_equals(part.start)..plan.start_of_equals(part.end)
        } else {
            part
        };
    }
    let each = plan.tuples() / lanes;
    let lanes = part(lanes, parts, index);
    lanes.start * each..lanes.end * each
}

/// [`part`] of a range of destination numbers.
pub(super) fn part_of_numbers(count: u64, parts: usize, index: usize) -> Range<u64> {
    let (each, extra) = (count / parts as u64, count % parts as u64);
    let start = |index: u64| each * index + index.min(extra);
    start(index as u64)..start(index as u64 + 1)
}

/// Whether tasks may cut a span, of which each makes a copy: not where that
/// takes memory (more loops than fit in place), which might be found missing
/// when others have begun to write.
pub(super) fn can_be_cut(span: &Span) -> bool {
    span.dims.is_inline_with(0)
}

/// Part `index` of a span's longest suitable dim. `phase` is how many bytes
/// the first element lies behind the start of a cache line: parts of a run
/// begin and end with lines of memory, since two workers that write to one
/// line would pass it to and fro.
pub(super) fn columns(
    span: &Span,
    size: usize,
    phase: usize,
    parts: usize,
    index: usize,
) -> Columns {
    let axis = span.axis_to_split(parts);
    let dim = span.dims[axis];
    let line = (LINE_BYTES / size.max(1)).max(1);
    let part = if dim.dst == 1 && dim.size >= parts * line {
        let skipped = phase % LINE_BYTES / size.max(1);
        let lines = part((dim.size + skipped).div_ceil(line), parts, index);
        let position = |line_number: usize| (line_number * line).saturating_sub(skipped);
        position(lines.start).min(dim.size)..position(lines.end).min(dim.size)
    } else {
        part(dim.size, parts, index)
    };
    Columns { axis, part }
}

#[cfg(test)]
mod tests {
    use super::{columns, part, part_of_numbers};
    use crate::plan::{Dim, Span};

    #[test]
    fn parts_cover_everything_once() {
        for total in [0, 1, 7, 64, 1000] {
            for parts in [1, 2, 3, 8, 100] {
                let mut end = 0;
                for index in 0..parts {
                    let range = part(total, parts, index);
                    assert_eq!(range.start, end, "{total} in {parts}");
                    let numbers = part_of_numbers(total as u64, parts, index);
                    assert_eq!(numbers.end, range.end as u64, "{total} in {parts}");
                    end = range.end;
                }
                assert_eq!(end, total, "{total} in {parts}");
            }
        }
    }

    #[test]
    fn columns_are_whole_lines_where_there_are_enough() {
        let run = |size| {
            Span::new(std::iter::once(Dim {
                size,
                dst: 1,
                src: 1,
            }))
            .expect("one dim")
        };
        let cases = [
            (64, 2, 0),
            (64, 2, 16),
            (100, 3, 60),
            (33, 2, 4),
            (5, 4, 8),
            (3, 8, 0),
        ];
        for (size, parts, phase) in cases {
            let mut end = 0;
            for index in 0..parts {
                let part = columns(&run(size), 4, phase, parts, index).part;
                assert_eq!(part.start, end, "{size} in {parts}");
                if size >= parts * 16 && index > 0 {
                    let address = phase + 4 * part.start;
                    assert!(address.is_multiple_of(64), "{part:?} begins within a line");
                }
                end = part.end;
            }
            assert_eq!(end, size, "{size} in {parts}");
        }
    }
}
