//! Runs a transfer tile by tile, in the order of tuples: what most schedules do.

use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::tile::{Tile, Whole};
use super::super::workload::{Streaming, Workload};
use super::Transfer;
use crate::error::ScatterError;
use crate::work::{self, Work};

impl Transfer<'_> {
    /// Every task one tile, whose windows it applies in the order of tuples;
    /// data is copied with the tile where a tile is a region of its own, else
    /// before.
    pub(in super::super) fn run_tiles(
        &self,
        work: &Workload<'_>,
        division: Division,
        workers: &Workers<'_>,
    ) -> Result<(), ScatterError> {
        let streams = self.streams(work);
        let fused = self.fused_copy(division);
        if fused.is_none() {
            self.copy_before(work, division.tasks(), workers)?;
        }
        let cuts = work.cuts(division);
        let whole = Whole {
            cuts: cuts.as_ref(),
            ..self.whole(None)
        };
        let pieces = division.finer(work.pieces(division));
        workers.run_pieces(division.tasks(), pieces.tasks(), &|index| {
            #[expect(unsafe_code, reason = "every piece is a tile of its own")]
            // SAFETY: the schedule has divided this transfer and prepared what
            // that rests on, for any number of parts; `run_pieces` hands out every
            // number once.
            let tile = unsafe { Tile::new(pieces, index, &whole) };
            self.fill_tile(fused, &tile, || self.apply(&tile, streams));
        })
    }

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
