//! Runs a transfer tile by tile, in the order of tuples: what most schedules do.

use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::tile::{Tile, Whole};
use super::super::workload::{Streaming, Workload};
use super::Transfer;
use crate::error::ScatterError;
use crate::work::{self, Work};

/// A transfer that a schedule has divided, and who runs it.
///
/// `division` is that of `Scheduler::divide` for this transfer, in any number of parts, or
/// the whole. `Candidate::run` sets it, and `ByPartition` for the partitions that a plan
/// keeps.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Divided<'a, 'w> {
    pub(in super::super) transfer: &'a Transfer<'a>,
    pub(in super::super) work: &'a Workload<'w>,
    pub(in super::super) division: Division,
    pub(in super::super) workers: Workers<'a>,
}

impl Divided<'_, '_> {
    /// Applies the windows of every tile in the order of tuples. Data is copied with each
    /// tile where tiles are separate regions of the output, and before all tiles otherwise.
    #[expect(unsafe_code, reason = "every piece is a tile of its own")]
    pub(in super::super) fn run_tiles(&self) -> Result<(), ScatterError> {
        let (transfer, work) = (self.transfer, self.work);
        let streams = transfer.streams(work);
        let fused = self.fused_copy();
        if fused.is_none() {
            self.copy_before()?;
        }
        let cuts = work.cuts(self.division);
        let whole = Whole {
            cuts: cuts.as_ref(),
            ..transfer.whole(None)
        };
        let pieces = self.division.finer(work.pieces(self.division));
        let apply = |tile: &Tile| transfer.fill_tile(fused, tile, || transfer.apply(tile, streams));
        // SAFETY: `division` is that of a schedule for this transfer. The schedule calls this
        // function after it has established what the division requires: `ByTuple::run` looks
        // for duplicates, the others need no more than `divide` has seen.
        unsafe { self.each_tile(pieces, &whole, apply) }
    }

    /// Runs a task with each tile of `pieces`, shared out among the tasks of the division.
    ///
    /// # Safety
    ///
    /// `pieces` is the division, or the same in more parts. A schedule has made the division
    /// of this transfer, and what it rests on has been prepared.
    #[expect(unsafe_code, reason = "as the tiles that it makes")]
    pub(in super::super) unsafe fn each_tile(
        &self,
        pieces: Division,
        whole: &Whole<'_>,
        task: impl Fn(&Tile) + Sync,
    ) -> Result<(), ScatterError> {
        (self.workers).run_pieces(self.division.tasks(), pieces.tasks(), &|index| {
            // SAFETY: the caller vouches for the division; `run_pieces` hands out every
            // number once.
            let tile = unsafe { Tile::new(pieces, index, whole) };
            task(&tile);
        })
    }
}

impl Transfer<'_> {
    /// Whether windows are streamed, found out once before any task begins.
    fn streams(&self, work: &Workload<'_>) -> bool {
        let streams = match work.streaming() {
            Streaming::Never => false,
            Streaming::Always => true,
            Streaming::IfDistinct => self.plan.first_duplicate() == Ok(None),
        };
        if streams {
            work::note(Work::Streaming);
        }
        streams
    }
}
