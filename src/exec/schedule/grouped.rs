//! The grouped schedule. A group has all tuples of one destination. Tuples are sorted by
//! destination with a stable sort. The updates of one group are then combined one after another, so
//! that the elements of the destination stay in a cache.

use std::ops::Range;

use super::super::sources;
use super::super::thresholds::WIDE_BYTES;
use super::super::tile::{Part, Tile};
use super::super::transfer::Transfer;
use super::super::workload::{Grouping, Order};
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::kernel::{Group, GroupFn, GroupRun, Sources, Steps};
use crate::plan::{Sorted, Span};

/// Maximum number of groups in one kernel call. A group has all tuples of one destination. If a
/// call has this number of groups, the overhead of the call is negligible.
const GROUPS: usize = 64;

pub(super) struct Grouped;

impl Scheduler for Grouped {
    /// Cuts the list of sorted tuples between groups (all tuples of one destination). If a window
    /// has at least [`WIDE_BYTES`] bytes per part, windows are also cut into columns, and the list
    /// is cut into fewer parts. Each column has a range of elements of every window. Columns also
    /// balance the work if a small number of groups has most of the tuples.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.grouping == Grouping::Impossible {
            return Err(Reason("updates are not combined"));
        }
        if work.tuples == 0 && work.grouping != Grouping::Needed {
            return Err(Reason("there are no tuples"));
        }
        let is_wide = work.window_bytes() >= WIDE_BYTES.saturating_mul(parts);
        let columns = if is_wide { parts.min(work.columns) } else { 1 };
        Ok(Division::Sorted {
            repetitions: 1,
            parts: (parts / columns).clamp(1, work.tuples.max(1)),
            columns,
        })
    }

    /// The step [`Step::Sort`] allocates the sorted list and the scratch memory of the sort. The
    /// plan keeps the sorted list.
    fn preparation(&self, work: &Workload<'_>, _: Division) -> Preparation {
        match work.order {
            Order::Unordered => Preparation::new(Step::Sort, work.tuples.saturating_mul(16)),
            _ => Preparation::NOTHING,
        }
    }

    #[expect(unsafe_code, reason = "every piece is a separate tile")]
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        let transfer = divided.transfer;
        let sorted = transfer.plan().groups().map_err(Stop::unprepared)?;
        if let Some(pass) = transfer.pass() {
            return each_part(divided, sorted, |tile, positions, window| {
                // In a transfer of `Transfer::by_groups`, offsets of elements are positions in a
                // whole window, counted from 0. `window.dst` is the position of the first element
                // of the tile's columns.
                let first = window.dst.unsigned_abs();
                let columns = first..first + window.elements();
                // SAFETY: each destination has all its tuples in the tile, or none
                // (`Whole::part_of_sorted`). No other task has the tile. So no other task accesses
                // `columns` in the windows of the tile's destinations and tuples.
                unsafe { pass.run(positions.clone(), columns, tile.repetitions()) };
            });
        }
        let Some(kernel) = transfer.access().operation.group else {
            debug_assert!(false, "a division of another schedule");
            return Ok(());
        };
        let (plan, step) = (transfer.plan(), transfer.source_step());
        let source = |position| transfer.window_at(0, position, (0, 0)).1;
        let offsets = sources::offsets(plan, sorted, step, source).map_err(Stop::unprepared)?;
        divided.copy_before()?;
        let groups = Groups {
            transfer,
            kernel,
            sorted,
            sources: sources::sources(sorted, step, offsets.as_deref()),
        };
        each_part(divided, sorted, |tile, positions, window| {
            for repetition in tile.repetitions() {
                let origin = transfer.geometry().repetition(repetition);
                // SAFETY: each destination has all its tuples in the tile, or none
                // (`Whole::part_of_sorted`). No other task has the tile. So no other task accesses
                // `window`, the tile's columns, at the tile's destinations.
                unsafe { groups.fold_all(window, origin, positions.clone()) };
            }
        })
    }
}

/// Calls `task` once for each tile. `sorted` is the list of all tuples, sorted by destination. The
/// arguments of `task` are the tile, the positions of the tile's tuples in `sorted`, and the part
/// of a window (its columns) that belongs to the tile.
fn each_part(
    divided: &Divided<'_, '_>,
    sorted: &Sorted,
    task: impl Fn(&Tile, &Range<usize>, &Span) + Sync,
) -> Result<(), Stop> {
    let (whole, division) = (divided.transfer.whole(Some(sorted)), divided.division);
    let pieces = division.finer(divided.work.pieces(division));
    let run_tile = |tile: &Tile| {
        let Part::Sorted(positions) = tile.part() else {
            debug_assert!(false, "a division of another schedule");
            return;
        };
        let cut = tile.columns().map(|columns| columns.of(whole.window));
        task(tile, positions, cut.as_ref().unwrap_or(whole.window));
    };
    #[expect(unsafe_code, reason = "every piece is a separate tile")]
    // SAFETY: `Grouped::divide` has made the division of this transfer. The division cuts the list
    // `sorted`, which `run` has prepared before this call.
    Ok(unsafe { divided.each_tile(pieces, &whole, run_tile) }?)
}

/// Data that all tasks of one call read and no task changes.
struct Groups<'a> {
    transfer: &'a Transfer<'a>,
    kernel: GroupFn,
    sorted: &'a Sorted,
    sources: Sources<'a>,
}

impl Groups<'_> {
    /// Combines the updates of whole groups in one repetition. A group has all tuples of one
    /// destination. The argument `positions` is the range of the sorted list that has the tuples of
    /// these groups. The argument `origin` has the offsets of the repetition in the output and in
    /// the updates.
    ///
    /// # Safety
    ///
    /// No other code reads or writes `window` at the destinations of the tuples at `positions`, in
    /// the repetition that begins at `origin`.
    #[expect(
        unsafe_code,
        reason = "the contract of the kernel passes to the caller"
    )]
    unsafe fn fold_all(&self, window: &Span, origin: (isize, isize), positions: Range<usize>) {
        let destinations = self.transfer.plan().destinations();
        let last = positions.end;
        let mut groups = [Group::default(); GROUPS];
        let mut len = 0;
        for (number, tuples) in self.sorted.groups(destinations, positions) {
            let (dst, _) = self.transfer.window_at(number, 0, origin);
            groups[len] = Group {
                dst,
                start: tuples.start,
                end: tuples.end,
            };
            len += 1;
            if len == GROUPS || tuples.end == last {
                // SAFETY: the caller of `fold_all` guarantees exclusive access to the windows of
                // the destinations of `groups`.
                unsafe { self.fold_runs(window, origin.1, &groups[..len]) };
                len = 0;
            }
        }
    }

    /// Combines the updates of at most [`GROUPS`] groups. A group has all tuples of one
    /// destination. The function calls the kernel once for each run of `window`. A run is an
    /// innermost loop over elements at one stride. The argument `src` is the offset at which the
    /// repetition begins in the updates.
    ///
    /// # Safety
    ///
    /// No other code reads or writes the elements of `window` at the destination offsets in
    /// `groups`.
    #[expect(unsafe_code, reason = "the only call of a kernel for groups")]
    unsafe fn fold_runs(&self, window: &Span, src: isize, groups: &[Group]) {
        let run = window.run();
        let run_of_groups = GroupRun {
            sources: self.sources,
            len: run.size,
            steps: Steps {
                dst: run.dst,
                src: run.src,
            },
            include_self: self.transfer.access().operation.include_self,
            factor: self.transfer.access().operation.factor,
        };
        for number in 0..window.runs() {
            let (loop_dst, loop_src) = Span::at(window.loops(), number);
            let dst = self.transfer.access().written_at(window.dst + loop_dst);
            let src = self.transfer.access().read_at(window.src + loop_src + src);
            // SAFETY: `Transfer::new` requires valid tensors. The plan has checked all
            // destinations. `self.sources`, which `sources::sources` returned, gives the offset in
            // the updates of each sorted tuple's window. The caller guarantees that no other code
            // reads or writes the elements of `window` at the destination offsets in `groups`.
            unsafe { (self.kernel)(dst, src, groups, run_of_groups) };
        }
    }
}
