//! Copies `data` to the output: whole, in parallel, or the part of a tile.

use super::super::division::Division;
use super::super::sink::{Runs, Sink};
use super::super::tasks::Workers;
use super::super::tile::{Tile, can_be_cut, columns};
use super::super::workload::Workload;
use super::Transfer;
use crate::error::ScatterError;
use crate::plan::{CopyGeometry, Span};

impl Transfer<'_> {
    /// Copies all data, if there is any, before so many tasks begin: by several
    /// workers where several will work anyway, or where it is worth to wake
    /// them.
    pub(in super::super) fn copy_before(
        &self,
        work: &Workload<'_>,
        tasks: usize,
        workers: &Workers<'_>,
    ) -> Result<(), ScatterError> {
        let Some(copy) = &self.copy else {
            return Ok(());
        };
        let is_shared = tasks > 1 || work.copies_much();
        let streams = work.is_sparse();
        self.each_cut(&copy.whole, is_shared, workers, &|span| {
            #[expect(unsafe_code, reason = "tasks copy columns of their own")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have; cuts share none, and nothing else runs.
            unsafe {
                self.copy_span(span, (0, 0), streams);
            }
        })
    }

    /// Hands all elements of the output to a task, or, where they are shared out, to each
    /// worker's columns of them, which have none in common.
    pub(super) fn each_cut(
        &self,
        whole: &Span,
        is_shared: bool,
        workers: &Workers<'_>,
        task: &(dyn Fn(&Span) + Sync),
    ) -> Result<(), ScatterError> {
        let is_shared = is_shared && can_be_cut(whole);
        let parts = if is_shared { workers.parts() } else { 1 };
        workers.run(parts, &|index| {
            let cut = (parts > 1).then(|| {
                let address = self.written_at(whole.dst).addr();
                columns(whole, self.kernels().size, address, parts, index).of(whole)
            });
            task(cut.as_ref().unwrap_or(whole));
        })
    }

    /// The slices of each repetition that a tile has, `None` where it has all, of a
    /// division that [fuses](Self::fused_copy) the copy, which has seen that they are
    /// found without memory.
    ///
    /// # Panics
    ///
    /// If they are not: other tiles write the rest of the repetition.
    pub(super) fn slices_of_tile(copy: &CopyGeometry, tile: &Tile) -> Option<Span> {
        let slices = tile.destinations().and_then(|numbers| {
            let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            copy.span_of_slices(position(numbers.start), position(numbers.end))
        });
        let is_found = slices.is_some() || tile.destinations().is_none();
        assert!(is_found, "the slices of a tile");
        slices
    }

    /// How data lies, where each task's tile is a region of the output of its
    /// own, so that it copies its part of data just before it applies its
    /// windows.
    pub(in super::super) fn fused_copy(&self, division: Division) -> Option<&CopyGeometry> {
        let copy = self.copy.as_ref()?;
        let one_region = match division {
            Division::Repetitions { .. } => true,
            // With a loop more for the slices, that of the window must still fit
            // in place (`can_be_cut`).
            Division::Destinations { .. } | Division::Partitions { .. } => {
                copy.slices.is_some() && copy.window.dims.is_inline_with(1)
            }
            _ => false,
        };
        let same_repetitions = self.repetitions() == copy.outer.elements();
        (one_region && same_repetitions && self.plan.is_whole()).then_some(copy)
    }

    /// Applies the windows of a tile: where the copy is [fused](Self::fused_copy), after
    /// that of the tile's part of data, and with what was written multiplied at last.
    pub(in super::super) fn fill_tile(
        &self,
        fused: Option<&CopyGeometry>,
        tile: &Tile,
        apply: impl FnOnce(),
    ) {
        let Some(copy) = fused else {
            return apply();
        };
        self.copy_tile(copy, tile);
        apply();
        self.multiply_tile(copy, tile);
    }

    /// The part of `data` that belongs to a tile of a division that
    /// [fuses](Self::fused_copy) the copy.
    fn copy_tile(&self, copy: &CopyGeometry, tile: &Tile) {
        let slices = Self::slices_of_tile(copy, tile);
        let span = slices.as_ref().unwrap_or(&copy.inner);
        for repetition in tile.repetitions() {
            let (dst, src) = Span::at(&copy.outer.dims, repetition);
            let origin = (copy.outer.dst + dst, copy.outer.src + src);
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have, and these are the slices or the repetition
            // that the tile has.
            unsafe {
                self.copy_span(span, origin, false);
            }
        }
    }

    /// Copies the elements of `span`, `origin` away on either side.
    ///
    /// # Safety
    ///
    /// They are elements of the output and of data, and nothing else reads or
    /// writes those of the output meanwhile.
    #[expect(unsafe_code, reason = "as the sink that it fills")]
    unsafe fn copy_span(&self, span: &Span, origin: (isize, isize), streams: bool) {
        let kernel = self.data_kernel(span, streams);
        // SAFETY: the caller vouches for the one window that is pushed.
        if let Some(mut sink) = unsafe { self.data_sink(kernel, span) } {
            sink.push(origin.0, origin.1);
            sink.finish();
        }
    }

    /// A sink from data to the output; `None` where no data is copied.
    ///
    /// # Safety
    ///
    /// All that is pushed are elements of the output and of data, each of the
    /// output once, and nothing else reads or writes those of the output until
    /// the sink is gone.
    #[expect(unsafe_code, reason = "as the sink that it makes")]
    pub(in super::super) unsafe fn data_sink<'s>(
        &self,
        kernel: Runs,
        window: &'s Span,
    ) -> Option<Sink<'s>> {
        let data = self.data?;
        // SAFETY: handed on as it is.
        Some(unsafe { self.sink(kernel, data, window) })
    }
}
