//! Multiplies what was written, once all of it is: the part of a tile, or all.

use super::super::division::Division;
use super::super::tasks::Workers;
use super::super::tile::Tile;
use super::super::workload::Workload;
use super::Transfer;
use crate::error::ScatterError;
use crate::plan::{CopyGeometry, Span};

impl Transfer<'_> {
    /// Multiplies all of the output, after tasks of this division, by as many workers,
    /// if it is to be and they have not.
    pub(in super::super) fn multiply_after(
        &self,
        work: &Workload<'_>,
        division: Division,
        workers: &Workers<'_>,
    ) -> Result<(), ScatterError> {
        let (Some(_), Some(copy)) = (self.operation.multiply, &self.copy) else {
            return Ok(());
        };
        if self.fused_copy(division).is_some() {
            return Ok(());
        }
        let is_shared = division.tasks() > 1 || work.copies_much();
        self.each_cut(&copy.whole, is_shared, workers, &|span| {
            #[expect(unsafe_code, reason = "tasks multiply columns of their own")]
            // SAFETY: a `CopyGeometry` places elements of the output, which hold values
            // by now; cuts share none, and nothing else runs.
            unsafe {
                self.multiply_span(span, 0);
            }
        })
    }

    /// Multiplies the part of the output that belongs to a tile whose data was
    /// [copied with it](Self::copy_tile), once its windows have been applied.
    pub(super) fn multiply_tile(&self, copy: &CopyGeometry, tile: &Tile) {
        if self.operation.multiply.is_none() {
            return;
        }
        let slices = Self::slices_of_tile(copy, tile);
        let span = slices.as_ref().unwrap_or(&copy.inner);
        for repetition in tile.repetitions() {
            let (dst, _) = Span::at(&copy.outer.dims, repetition);
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: these are the elements that `copy_tile` has written for the same
            // tile, and no one else's.
            unsafe {
                self.multiply_span(span, copy.outer.dst + dst);
            }
        }
    }

    /// # Safety
    ///
    /// The elements of `span`, `origin` away, are elements of the output that hold
    /// values, and nothing else reads or writes them meanwhile.
    #[expect(unsafe_code, reason = "as the kernel that it calls")]
    unsafe fn multiply_span(&self, span: &Span, origin: isize) {
        let Some(multiply) = self.operation.multiply else {
            return;
        };
        let run = span.run();
        for number in 0..span.runs() {
            let (dst, _) = Span::at(span.loops(), number);
            let first = self.written_at(origin + span.dst + dst);
            // SAFETY: the caller vouches for the elements, which are those of the
            // operation.
            unsafe { multiply(first, run.size, run.dst, self.operation.factor) };
        }
    }
}
