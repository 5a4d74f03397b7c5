//! Copies `data` to the output: whole, in parallel, or the part of a tile.

use super::Call;
use super::sink::Sink;
use super::tasks::Workers;
use super::tile::{Tile, can_be_cut, columns};
use crate::error::ScatterError;
use crate::kernel::RunsFn;
use crate::plan::{CopyGeometry, Span};

impl Call<'_> {
    /// Copies the elements of `span`, `origin` away on either side.
    ///
    /// # Safety
    ///
    /// They are elements of the output and of data, and nothing else reads or
    /// writes those of the output meanwhile.
    #[expect(unsafe_code, reason = "as the sink that it fills")]
    pub(super) unsafe fn copy_span(&self, span: &Span, origin: (isize, isize), streams: bool) {
        let kernel = self.streaming(self.kernels.copy, span, streams);
        // SAFETY: the caller vouches for the one window that is pushed.
        if let Some(mut sink) = unsafe { self.data_sink(kernel, span) } {
            sink.push(origin.0, origin.1);
            sink.finish();
        }
    }

    /// The streaming form of `copy` where it is wanted and `span` allows it.
    pub(super) fn streaming(&self, copy: RunsFn, span: &Span, wanted: bool) -> RunsFn {
        let run = span.run();
        let contiguous = run.dst == 1 && run.src == 1;
        self.kernels
            .stream
            .filter(|_| wanted && contiguous)
            .unwrap_or(copy)
    }

    /// A sink from data to the output; `None` in place.
    ///
    /// # Safety
    ///
    /// All that is pushed are elements of the output and of data, each of the
    /// output once, and nothing else reads or writes those of the output until
    /// the sink is gone.
    #[expect(unsafe_code, reason = "the one sink from data to the output")]
    pub(super) unsafe fn data_sink<'s>(
        &self,
        kernel: RunsFn,
        window: &'s Span,
    ) -> Option<Sink<'s>> {
        let data = self.buffers.data?;
        let dst = self.output_at(0);
        // SAFETY: `Call::new` vouches for the buffers; the caller for the rest.
        Some(unsafe { Sink::new(kernel, self.kernels.size, dst, data, window) })
    }

    /// All of `data`, in as many parts as there are workers.
    pub(super) fn copy_in_parallel(
        &self,
        workers: &Workers<'_>,
        copy: &CopyGeometry,
    ) -> Result<(), ScatterError> {
        let whole = &copy.whole;
        let parts = if can_be_cut(whole) {
            workers.parts()
        } else {
            1
        };
        let streams = self.workload().is_sparse();
        workers.run(parts, &|index| {
            let cut = (parts > 1).then(|| {
                let phase = self.output_at(whole.dst).addr();
                columns(whole, self.kernels.size, phase, parts, index).of(whole)
            });
            #[expect(unsafe_code, reason = "tasks copy columns of their own")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have; columns share none, and nothing else runs.
            unsafe {
                self.copy_span(cut.as_ref().unwrap_or(whole), (0, 0), streams);
            }
        })
    }

    /// The part of `data` that belongs to a tile of repetitions or of
    /// destinations ([`Choice::fuses_copy`](super::Choice::fuses_copy), which
    /// has seen that the slices of a tile are found without memory).
    ///
    /// # Panics
    ///
    /// If they are not: other tiles write the rest of the repetition.
    pub(super) fn copy_tile(&self, copy: &CopyGeometry, tile: &Tile) {
        let slices = tile.numbers().and_then(|numbers| {
            let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            copy.span_of_slices(position(numbers.start), position(numbers.end))
        });
        let is_found = slices.is_some() || tile.numbers().is_none();
        assert!(is_found, "the slices of a tile");
        let span = slices.as_ref().unwrap_or(&copy.inner);
        for number in tile.outer() {
            let (dst, src) = Span::at(&copy.outer.dims, number);
            let origin = (copy.outer.dst + dst, copy.outer.src + src);
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have, and these are the slices or the repetition
            // that the tile reaches.
            unsafe {
                self.copy_span(span, origin, false);
            }
        }
    }
}
