//! Tuples sorted, in order, by destination: the updates of one destination are
//! combined one after another, while its window stays close.

use std::ops::Range;

use super::super::sources;
use super::super::thresholds::WIDE_BYTES;
use super::super::tile::{Part, Tile};
use super::super::transfer::{GroupPass, Transfer};
use super::super::workload::{Grouping, Order};
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::kernel::{Group, GroupFn, GroupRun, Sources, Steps};
use crate::plan::{Sorted, Span};

/// Groups of one kernel call: enough to hide the call.
const GROUPS: usize = 64;

pub(super) struct Grouped;

impl Scheduler for Grouped {
    /// Groups for every worker; columns where windows are wide, which serve a
    /// few long groups as well.
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

    /// The sorted list, which the plan keeps, and the sort's own.
    fn preparation(&self, work: &Workload<'_>, _: Division) -> Preparation {
        match work.order {
            Order::Unordered => Preparation::new(Step::Sort, work.tuples.saturating_mul(16)),
            _ => Preparation::NOTHING,
        }
    }

    #[expect(unsafe_code, reason = "every piece is a tile of its own")]
    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        let (transfer, division) = (divided.transfer, divided.division);
        let sorted = transfer.plan().groups().map_err(Stop::unprepared)?;
        let whole = transfer.whole(Some(sorted));
        let pieces = division.finer(divided.work.pieces(division));
        // SAFETY: `divide` has made the division of this transfer.
        let each_tile =
            |task: &(dyn Fn(&Tile) + Sync)| unsafe { divided.each_tile(pieces, &whole, task) };
        if let Some(pass) = transfer.pass() {
            each_tile(&|tile| hand_over(transfer, pass, tile))?;
            return Ok(());
        }
        let Some(kernel) = transfer.operation().group else {
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
        each_tile(&|tile| groups.fold(tile))?;
        Ok(())
    }
}

/// Hands the groups of a tile to a pass.
fn hand_over(transfer: &Transfer<'_>, pass: &dyn GroupPass, tile: &Tile) {
    let Part::Sorted(positions) = tile.part() else {
        debug_assert!(false, "a division of another schedule");
        return;
    };
    let window = &transfer.geometry().window;
    let cut = tile.columns().map(|columns| columns.of(window));
    let part = cut.as_ref().unwrap_or(window);
    // Windows are counted as they lie in none of the tensors: from 0 on.
    let first = part.dst.unsigned_abs();
    let columns = first..first + part.elements();
    #[expect(unsafe_code, reason = "a tile is its task's own")]
    // SAFETY: the tile has whole groups, and these columns of them.
    unsafe {
        pass.run(positions.clone(), columns, tile.repetitions());
    }
}

/// What all tasks of a call read.
struct Groups<'a> {
    transfer: &'a Transfer<'a>,
    kernel: GroupFn,
    sorted: &'a Sorted,
    sources: Sources<'a>,
}

impl Groups<'_> {
    /// Combines the groups of a tile of sorted tuples.
    fn fold(&self, tile: &Tile) {
        let Part::Sorted(positions) = tile.part() else {
            debug_assert!(false, "a division of another schedule");
            return;
        };
        let window = &self.transfer.geometry().window;
        let cut = tile.columns().map(|columns| columns.of(window));
        let window = cut.as_ref().unwrap_or(window);
        for repetition in tile.repetitions() {
            let origin = self.transfer.geometry().repetition(repetition);
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: the tile has whole groups, and these columns of them.
            unsafe {
                self.fold_all(window, origin, positions.clone());
            }
        }
    }

    /// Applies whole groups, in one repetition.
    ///
    /// # Safety
    ///
    /// No one else reads or writes `window` at the destinations of these
    /// positions in the repetition that begins at `origin`.
    #[expect(unsafe_code, reason = "as the kernel that it calls")]
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
                // SAFETY: the caller vouches for the windows of these groups.
                unsafe { self.fold_runs(window, origin.1, &groups[..len]) };
                len = 0;
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::fold_all`], which has found these groups.
    #[expect(unsafe_code, reason = "the one call of a kernel for groups")]
    unsafe fn fold_runs(&self, window: &Span, src: isize, groups: &[Group]) {
        let run = window.run();
        let run_of_groups = GroupRun {
            sources: self.sources,
            len: run.size,
            steps: Steps {
                dst: run.dst,
                src: run.src,
            },
            include_self: self.transfer.operation().include_self,
            factor: self.transfer.operation().factor,
        };
        for number in 0..window.runs() {
            let (loop_dst, loop_src) = Span::at(window.loops(), number);
            let dst = self.transfer.written_at(window.dst + loop_dst);
            let src = self.transfer.read_at(window.src + loop_src + src);
            // SAFETY: who made the transfer vouches for the tensors, the plan
            // for the destinations; sources are those of its tuples, as
            // `sources` has it; the caller vouches for the windows being its
            // own.
            unsafe { (self.kernel)(dst, src, groups, run_of_groups) };
        }
    }
}
