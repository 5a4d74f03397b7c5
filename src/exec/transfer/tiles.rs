//! Cuts a divided transfer into tiles and runs the tiles on the workers. Most schedules apply the
//! windows of each tile in the order of its tuples.
//!
//! A division states how a transfer is cut into parts. A tile is one of these parts. The module
//! knows divisions, tiles and workers. The module does not know how a tile's windows are applied.

use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::tile::{Tile, Whole};
use super::super::workload::{Streaming, Workload};
use super::Transfer;
use crate::error::ScatterError;
use crate::work::{self, Work};

/// A transfer that a schedule has divided, and the workers that run it.
///
/// `division` is the result of `Scheduler::divide` for this transfer and some number of parts, or
/// is [`Division::Whole`]. The method `Candidate::run` sets `division`. The schedule `ByPartition`
/// changes its partition size if a kept plan has stored partitions of another size.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Divided<'a, 'w> {
    pub(in super::super) transfer: &'a Transfer<'a>,
    pub(in super::super) work: &'a Workload<'w>,
    pub(in super::super) division: Division,
    pub(in super::super) workers: Workers<'a>,
}

impl Divided<'_, '_> {
    /// Runs all tiles. The windows of each tile are applied in the order of its tuples. If tiles
    /// are separate regions of the output ([`Self::fused_copy`]), the data of each tile is copied
    /// just before its windows are applied. Otherwise all data is copied before the first tile.
    #[expect(unsafe_code, reason = "every piece is one tile")]
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
        // SAFETY: a schedule has made `division` for this transfer. Before the schedule calls this
        // function, it has established what the division requires. `ByTuple::run` has detected
        // duplicates where it must. The other schedules that call this function require only what
        // `divide` has checked.
        unsafe { self.each_tile(pieces, &whole, apply) }
    }

    /// Runs `task` once with each tile of `pieces`. The tiles are distributed among
    /// `self.division.tasks()` tasks of the pool.
    ///
    /// # Safety
    ///
    /// `pieces` is `self.division`, or the same division with more parts. A schedule has made the
    /// division for this transfer and has prepared what the division requires.
    #[expect(
        unsafe_code,
        reason = "makes tiles, which need the caller's guarantees"
    )]
    pub(in super::super) unsafe fn each_tile(
        &self,
        pieces: Division,
        whole: &Whole<'_>,
        task: impl Fn(&Tile) + Sync,
    ) -> Result<(), ScatterError> {
        (self.workers).run_pieces(self.division.tasks(), pieces.tasks(), &|index| {
            // SAFETY: the caller guarantees that a schedule has made and prepared the division.
            // `run_pieces` passes no tile number (`index`) twice, so no tile is made twice.
            let tile = unsafe { Tile::new(pieces, index, whole) };
            task(&tile);
        })
    }
}

impl Transfer<'_> {
    /// Whether windows are written by streaming stores. If this depends on duplicates, the function
    /// detects duplicates, and returns `false` if the detection fails. The function is called
    /// before any task begins.
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
