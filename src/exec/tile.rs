//! Tiles: the parts of a divided transfer. Each tile is processed by one task. A task may process
//! several tiles, one after another.
//!
//! The module knows how each [`Division`] is cut, and why tiles share no element. The module does
//! not know what a task does with a tile.

use std::marker::PhantomData;
use std::ops::Range;

use num_traits::{AsPrimitive, PrimInt};
use smallvec::SmallVec;

use super::division::{Cut, Division};
use crate::plan::{IndexPlan, Sorted, Span};

/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;

/// A part of the elements that a transfer writes. A tile has some or all repetitions, tuples, and
/// columns of the windows of these tuples.
///
/// **No two tiles of a division share an element that is written.** The task that has a tile may
/// therefore write to all elements of the tile without a check. In its repetitions, a tile has
/// these elements:
///
/// - A tile with a range of destination numbers has the slices of all these numbers. A slice is all
///   elements of one repetition that one destination number addresses.
/// - A tile of [`Division::Repetitions`] has all elements of the output.
/// - Any other tile has the windows of its tuples, cut to the columns of the tile.
///
/// Tiles are disjoint for these reasons:
///
/// - A tensor that is written does not overlap itself. Different repetitions are therefore
///   disjoint. Different columns of one window are disjoint. Slices of different destination
///   numbers are disjoint.
/// - The tuples of a scatter are cut [anywhere](Cut::Anywhere) only if their destinations are
///   distinct: the plan knows this, or a check before the first task has shown it. The tuples of a
///   gather may be cut anywhere, because each tuple writes its own window.
/// - Other lists of tuples are cut between different destinations. Such a list is in ascending
///   order ([`IndexPlan::start_of_equals`]), is sorted by destination ([`Sorted`]), or consists of
///   strands ([`IndexPlan::strands`]).
#[derive(Debug)]
pub(super) struct Tile {
    repetitions: Range<usize>,
    part: Part,
    columns: Option<Columns>,
    /// Makes the type neither `Send` nor `Sync`: a tile stays on the thread of its task.
    not_shared: PhantomData<*mut ()>,
}

/// The tuples of a tile.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The tuples at these positions of the plan's list.
    Tuples(Range<usize>),
    /// The tuples whose destination number is in this range.
    Destinations(Range<u64>),
    /// The tuples at these positions of the list that is sorted by destination.
    Sorted(Range<usize>),
}

impl Tile {
    /// Returns tile `index` of a division. For [`Division::Partitions`], `index` is the number of a
    /// partition. For other divisions, `index` is below [`Division::tasks`].
    ///
    /// # Safety
    ///
    /// - While the tile exists, no other tile with this `index` of this division exists, and the
    ///   output is written only through tiles of this division.
    /// - A schedule has made the division for this transfer and has prepared what the division
    ///   requires. If the tuples of a scatter are cut anywhere, no two tuples have the same
    ///   destination.
    #[expect(
        unsafe_code,
        reason = "the holder of a tile writes to it without a check"
    )]
    pub(super) unsafe fn new(division: Division, index: usize, whole: &Whole<'_>) -> Self {
        let count = whole.plan.scale().count;
        let mut tile = Self {
            repetitions: 0..whole.repetitions,
            part: Part::Tuples(0..whole.plan.tuples()),
            columns: None,
            not_shared: PhantomData,
        };
        match division {
            Division::Whole => {}
            Division::Repetitions { parts } => {
                tile.repetitions = part(whole.repetitions, parts, index);
            }
            Division::Tuples { parts, cut } => {
                tile.part = Part::Tuples(part_of_tuples(whole.plan, cut, parts, index));
            }
            Division::Columns { parts } => tile.columns = whole.columns(parts, index),
            Division::Destinations { repetitions, parts } => {
                let range = index % parts;
                tile.repetitions = part(whole.repetitions, repetitions, index / parts);
                tile.part = Part::Destinations(match whole.cuts {
                    Some(cuts) => cuts.range(range, count),
                    None => part(count, parts, range),
                });
            }
            Division::Sorted {
                repetitions,
                parts,
                columns,
            } => {
                let (rest, column) = (index / columns, index % columns);
                tile.repetitions = part(whole.repetitions, repetitions, rest / parts);
                tile.part = Part::Sorted(whole.part_of_sorted(parts, rest % parts));
                tile.columns = whole.columns(columns, column);
            }
            Division::Partitions { shift, .. } => {
                let first = (index as u64) << shift;
                tile.part = Part::Destinations(first..(first + (1 << shift)).min(count));
            }
            Division::Copies { parts } => {
                tile.part = Part::Destinations(part(count, parts, index));
            }
        }
        tile
    }

    pub(super) fn repetitions(&self) -> Range<usize> {
        self.repetitions.clone()
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    /// Returns the range of destination numbers, if the tile has one.
    pub(super) fn destinations(&self) -> Option<Range<u64>> {
        match &self.part {
            Part::Destinations(numbers) => Some(numbers.clone()),
            _ => None,
        }
    }

    /// Returns the columns of every window that belong to the tile. `None`: all columns.
    pub(super) fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }
}

/// A whole transfer, which is cut into tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<'a> {
    pub(super) plan: &'a IndexPlan,
    pub(super) repetitions: usize,
    pub(super) window: &'a Span,
    /// Bytes of an element.
    pub(super) size: usize,
    /// Address of the first element of window 0 of repetition 0, in the tensor that is written.
    pub(super) address: usize,
    /// The tuples sorted by destination, for divisions that cut this list.
    pub(super) sorted: Option<&'a Sorted>,
    /// The destination numbers at which ranges begin. `None`: ranges of nearly equal size.
    pub(super) cuts: Option<&'a Cuts>,
}

/// The destination numbers at which all destination numbers, `0..count`, are cut into ranges. The
/// ranges are disjoint, whatever numbers [`Cuts::at`] gets.
#[derive(Clone, Debug)]
pub(super) struct Cuts(SmallVec<[u64; 15]>);

impl Cuts {
    /// Makes cuts before each of `numbers`. The number of ranges is the number of cuts plus 1.
    pub(super) fn at(mut numbers: SmallVec<[u64; 15]>) -> Self {
        numbers.sort_unstable();
        Self(numbers)
    }

    /// Returns range `index` of the ranges into which `0..count` is cut.
    pub(super) fn range(&self, index: usize, count: u64) -> Range<u64> {
        let cut = |index: usize| self.0.get(index).map_or(count, |&cut| cut.min(count));
        let start = index.checked_sub(1).map_or(0, cut);
        start..cut(index)
    }
}

impl Whole<'_> {
    fn columns(&self, parts: usize, index: usize) -> Option<Columns> {
        (parts > 1).then(|| columns(self.window, self.size, self.address, parts, index))
    }

    /// Returns part `index` of `parts` parts of the list that is sorted by destination, as
    /// positions in this list. The list is first cut into nearly equal parts. Each cut then moves
    /// back to the first tuple of the destination that it divides, so that no destination has
    /// tuples in two parts.
    fn part_of_sorted(&self, parts: usize, index: usize) -> Range<usize> {
        let Some(sorted) = self.sorted else {
            debug_assert!(false, "the division needs sorted tuples");
            return 0..0;
        };
        let destinations = self.plan.destinations();
        let len = sorted.len(self.plan.tuples());
        let start = |position: usize| {
            if position >= len {
                return len;
            }
            sorted.first_from(destinations, sorted.get(destinations, position).0)
        };
        let part = part(len, parts, index);
        start(part.start)..start(part.end)
    }
}

/// Columns of a window: a range of positions along one of its dims, and all positions along the
/// other dims.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    axis: usize,
    part: Range<usize>,
}

impl Columns {
    /// Returns the window reduced to these columns. The caller has checked that the window [can be
    /// cut](can_be_cut).
    pub(super) fn of(&self, window: &Span) -> Span {
        window.restricted(self.axis, self.part.start, self.part.end)
    }
}

/// Returns part `index` of `parts` nearly equal parts of `0..total`.
pub(crate) fn part<N: PrimInt + 'static>(total: N, parts: usize, index: usize) -> Range<N>
where
    usize: AsPrimitive<N>,
{
    let (each, extra) = (total / parts.as_(), total % parts.as_());
    let start = |index: N| each * index + index.min(extra);
    start(index.as_())..start(index.as_() + N::one())
}

/// Returns the positions of part `index` of `parts` parts of the plan's list of tuples, cut only at
/// places that `cut` allows.
fn part_of_tuples(plan: &IndexPlan, cut: Cut, parts: usize, index: usize) -> Range<usize> {
    let even = part(plan.tuples(), parts, index);
    match cut {
        Cut::Anywhere => even,
        Cut::BetweenDestinations => {
            plan.start_of_equals(even.start)..plan.start_of_equals(even.end)
        }
        Cut::BetweenStrands => {
            let each = plan.tuples() / plan.strands();
            let strands = part(plan.strands(), parts, index);
            strands.start * each..strands.end * each
        }
    }
}

/// Whether tasks may cut a span into columns. Each task that cuts a span makes a copy of the span.
/// A span with many loops stores its loops in an allocation, and tasks may not cut it. The reason
/// is that the allocation for the copy might fail after other tasks have begun to write.
pub(super) fn can_be_cut(span: &Span) -> bool {
    span.dims.is_inline_with(0)
}

/// Returns part `index` of `parts` parts of a span. The parts are cut along the outermost dim with
/// at least `parts` positions, or along the longest dim if no dim has so many. Elements have `size`
/// bytes, and the first element is at `address`.
///
/// If the dim is contiguous in the output and has at least one cache line for each part, it is cut
/// only at the beginning of cache lines. A cache line that two workers write would move between the
/// caches of their cores.
pub(super) fn columns(
    span: &Span,
    size: usize,
    address: usize,
    parts: usize,
    index: usize,
) -> Columns {
    let axis = span.axis_to_split(parts);
    let dim = span.dims[axis];
    let line = (LINE_BYTES / size.max(1)).max(1);
    let part = if dim.dst == 1 && dim.size >= parts * line {
        let skipped = address % LINE_BYTES / size.max(1);
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
    #![allow(unsafe_code, reason = "makes tiles but does not write to them")]

    use std::collections::BTreeMap;

    use smallvec::SmallVec;

    use super::{Cut, Cuts, Division, LINE_BYTES, Part, Tile, Whole, columns, part};
    use crate::plan::{Dim, IndexPlan, Span};
    use crate::{Layout, Scatter, ScatterPlan, TensorView};

    /// Checks every division of up to 200 positions into up to 200 parts.
    #[test]
    fn parts_cover_everything_once() {
        for total in 0..=200 {
            for parts in 1..=200 {
                let mut end = 0;
                for index in 0..parts {
                    let range = part(total, parts, index);
                    assert_eq!(range.start, end, "{total} in {parts}");
                    let sizes = total / parts..=total.div_ceil(parts);
                    assert!(
                        sizes.contains(&range.len()),
                        "{total} in {parts}: {range:?}"
                    );
                    let numbers = part(total as u64, parts, index);
                    assert_eq!(numbers.end, range.end as u64, "{total} in {parts}");
                    end = range.end;
                }
                assert_eq!(end, total, "{total} in {parts}");
            }
        }
    }

    #[test]
    fn parts_of_the_largest_numbers_are_exact() {
        for total in [u64::MAX - 1, u64::MAX, i64::MAX as u64] {
            for parts in [1, 2, 3, 64, 1000, u32::MAX as usize] {
                let (each, extra) = (total / parts as u64, total % parts as u64);
                let start = |index| u128::from(each) * index + u128::from(extra).min(index);
                for index in [0, parts / 2, parts - 1] {
                    let range = part(total, parts, index);
                    let expected = start(index as u128)..start(index as u128 + 1);
                    assert_eq!(u128::from(range.start), expected.start, "{total}");
                    assert_eq!(u128::from(range.end), expected.end, "{total}");
                }
            }
        }
    }

    fn run_of(size: usize) -> Span {
        let dim = Dim {
            size,
            dst: 1,
            src: 1,
        };
        Span::new(std::iter::once(dim)).expect("one dim")
    }

    /// Checks a division of `total` columns into `parts` parts. If each part has a cache line of
    /// columns, and cache lines have whole columns, the parts begin at cache lines.
    fn check_columns(total: usize, size: usize, address: usize, parts: usize) {
        let case = format!("{total} of {size} bytes at {address} in {parts}");
        let is_even = address.is_multiple_of(size) && LINE_BYTES.is_multiple_of(size);
        let is_cut_at_lines = is_even && total * size >= parts * LINE_BYTES;
        let mut end = 0;
        for index in 0..parts {
            let part = columns(&run_of(total), size, address, parts, index).part;
            assert_eq!(part.start, end, "{case}");
            if is_cut_at_lines && index > 0 {
                let start = address + size * part.start;
                assert!(start.is_multiple_of(LINE_BYTES), "{case}: {part:?}");
            }
            end = part.end;
        }
        assert_eq!(end, total, "{case}");
    }

    /// Checks every division of up to 200 columns into up to 6 parts.
    #[test]
    fn wide_columns_are_whole_cache_lines() {
        for size in [1, 2, 4, 8, 16, 24, 100] {
            for address in (0..LINE_BYTES).step_by(4) {
                for total in 1..=200 {
                    (1..=6).for_each(|parts| check_columns(total, size, address, parts));
                }
            }
        }
    }

    const SLICES: usize = 40;
    const REPETITIONS: usize = 3;
    const COLUMNS: usize = 70;

    fn plan(rows: impl Iterator<Item = usize>) -> ScatterPlan {
        let rows: Vec<i64> = rows
            .map(|row| i64::try_from(row).expect("a small number"))
            .collect();
        let shape = [rows.len(), 1];
        let indices = TensorView::contiguous(&rows, &shape).expect("a column");
        let plan = Scatter::nd().plan(Layout::contiguous(&[SLICES]), indices);
        plan.expect("in range")
    }

    /// Checks, for each repetition and column, that each tuple is in exactly one tile, and that all
    /// tuples of a destination are in the same tile.
    fn check(division: Division, tiles: usize, plan: &IndexPlan) {
        check_cut(division, tiles, plan, None);
    }

    fn check_cut(division: Division, tiles: usize, plan: &IndexPlan, cuts: Option<&Cuts>) {
        let window = run_of(COLUMNS);
        let sorted = match division {
            Division::Sorted { .. } => Some(plan.groups().expect("memory")),
            _ => None,
        };
        let whole = Whole {
            plan,
            repetitions: REPETITIONS,
            window: &window,
            size: 4,
            address: 20,
            sorted,
            cuts,
        };
        let mut owners = BTreeMap::new();
        let mut slices = BTreeMap::new();
        for index in 0..tiles {
            // SAFETY: the test writes nothing.
            let tile = unsafe { Tile::new(division, index, &whole) };
            let destinations = plan.destinations();
            let tuples: Vec<usize> = match tile.part() {
                Part::Tuples(range) => range.clone().collect(),
                Part::Destinations(range) => (0..plan.tuples())
                    .filter(|&tuple| range.contains(&destinations.get(tuple)))
                    .collect(),
                Part::Sorted(range) => (range.clone())
                    .map(|at| sorted.expect("sorted").get(destinations, at).1)
                    .collect(),
            };
            let columns = (tile.columns()).map_or(0..COLUMNS, |columns| columns.part.clone());
            for repetition in tile.repetitions() {
                for column in columns.clone() {
                    for &tuple in &tuples {
                        let before = owners.insert((repetition, tuple, column), index);
                        assert_eq!(before, None, "{division:?}: tuple {tuple} twice");
                        let slice = (repetition, destinations.get(tuple), column);
                        let owner = *slices.entry(slice).or_insert(index);
                        assert_eq!(owner, index, "{division:?}: {slice:?} is shared");
                    }
                }
            }
        }
        let all = REPETITIONS * plan.tuples() * COLUMNS;
        assert_eq!(owners.len(), all, "{division:?} omits tuples");
    }

    fn tiles(division: Division) -> usize {
        match division {
            Division::Partitions { shift, .. } => SLICES.div_ceil(1 << shift),
            _ => division.tasks(),
        }
    }

    #[test]
    fn divisions_cover_everything_once_and_share_nothing() {
        let duplicates = plan((0..90).map(|tuple| tuple * tuple % SLICES));
        let ordered = plan((0..90).map(|tuple| tuple / 7));
        let distinct = plan((0..SLICES).map(|tuple| tuple * 7 % SLICES));
        for parts in [1, 2, 3, 5, 8] {
            let of_any = [
                Division::Repetitions { parts },
                Division::Columns { parts },
                Division::Destinations {
                    repetitions: 1,
                    parts,
                },
                Division::Destinations {
                    repetitions: parts,
                    parts: 2,
                },
                Division::Sorted {
                    repetitions: 2,
                    parts,
                    columns: 3,
                },
                Division::Partitions { parts, shift: 3 },
                Division::Copies { parts },
                Division::Whole,
            ];
            let finer = of_any.map(|division| division.finer(5));
            for division in of_any.into_iter().chain(finer) {
                for plan in [&duplicates, &ordered, &distinct] {
                    check(division, tiles(division), plan.indices());
                }
            }
            let between = Division::Tuples {
                parts,
                cut: Cut::BetweenDestinations,
            };
            check(between, parts, ordered.indices());
            check(between.finer(30), 30 * parts, ordered.indices());
            let anywhere = Division::Tuples {
                parts,
                cut: Cut::Anywhere,
            };
            check(anywhere, parts, distinct.indices());
            check(anywhere.finer(30), 30 * parts, distinct.indices());
        }
    }

    #[test]
    fn ranges_that_are_cut_anywhere_share_nothing() {
        let plan = plan((0..90).map(|tuple| tuple * tuple % SLICES));
        for cuts in [&[3, 20, 20][..], &[0, 0, 0], &[7, 39, 1 << 30], &[25, 3, 9]] {
            let division = Division::Destinations {
                repetitions: 2,
                parts: 4,
            };
            let cuts = Cuts::at(SmallVec::from(cuts));
            check_cut(division, tiles(division), plan.indices(), Some(&cuts));
        }
    }

    #[test]
    fn strands_are_not_cut() {
        let indices: Vec<i64> = (0..6 * 9).map(|at| at * at % 5).collect();
        let plan = Scatter::elements(1)
            .plan(
                Layout::contiguous(&[6, 5]),
                TensorView::contiguous(&indices, &[6, 9]).expect("six rows"),
            )
            .expect("in range");
        let plan = plan.indices();
        assert_eq!(plan.strands(), 6, "one strand per row");
        for parts in 1..=12 {
            let cut = Cut::BetweenStrands;
            check(Division::Tuples { parts, cut }, parts, plan);
        }
    }
}
