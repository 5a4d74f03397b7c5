//! Runs a transfer tile by tile, in the order of tuples, as most schedules do.
//!
//! A division states how a transfer is cut into parts. A tile is the part that one task runs. The
//! module knows divisions, tiles and workers. The module does not know how a tile's windows are
//! applied.

use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::tile::{Tile, Whole};
use super::super::workload::{Streaming, Workload};
use super::Transfer;
use crate::error::ScatterError;
use crate::work::{self, Work};

/// A transfer that a schedule has divided, and the workers that run it.
///
/// `division` is the result of `Scheduler::divide` for this transfer, in any number of parts, or
/// [`Division::Whole`]. `Candidate::run` sets the division. `ByPartition` replaces it if a plan
/// keeps partitions of another size.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Divided<'a, 'w> {
    pub(in super::super) transfer: &'a Transfer<'a>,
    pub(in super::super) work: &'a Workload<'w>,
    pub(in super::super) division: Division,
    pub(in super::super) workers: Workers<'a>,
}

impl Divided<'_, '_> {
    /// Applies the windows of every tile in the order of tuples. If tiles are separate regions of
    /// the output, data is copied with each tile. Otherwise all data is copied before the first
    /// tile.
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
        // SAFETY: a schedule has made `division` for this transfer. The schedule calls this
        // function after it has established what the division requires: `ByTuple::run` detects
        // duplicates, and the other schedules require no more than `divide` has checked.
        unsafe { self.each_tile(pieces, &whole, apply) }
    }

    /// Runs `task` once with each tile of `pieces`. The tasks of the division share the tiles.
    ///
    /// # Safety
    ///
    /// `pieces` is the division, or the division in more parts. A schedule has made the division
    /// for this transfer and has prepared what the division requires.
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
            // `run_pieces` passes each tile number (`index`) to one task once, so each tile is made
            // once.
            let tile = unsafe { Tile::new(pieces, index, whole) };
            task(&tile);
        })
    }
}

impl Transfer<'_> {
    /// Whether windows are written by streaming stores. The function decides this once, before any
    /// task begins.
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
