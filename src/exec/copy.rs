//! Copies `data` to the output: whole, in parallel, or the part of a tile.

use super::Call;
use super::sink::Sink;
use super::tasks::Workers;
use super::tile::{Tile, columns};
use crate::error::ScatterError;
use crate::kernel::RunsFn;
use crate::plan::{CopyGeometry, Span};

impl Call<'_> {
    /// Copies the elements of `span`, `origin` away on either side.
    pub(super) fn copy_span(&self, span: &Span, origin: (isize, isize), streams: bool) {
        if let Some(mut sink) = self.data_sink(self.streaming(self.row.copy, span, streams), span) {
            sink.push(origin.0, origin.1);
            sink.finish();
        }
    }

    /// The streaming form of `copy` where it is wanted and `span` allows it.
    pub(super) fn streaming(&self, copy: RunsFn, span: &Span, wanted: bool) -> RunsFn {
        let run = span.run();
        let contiguous = run.dst == 1 && run.src == 1;
        self.row
            .stream
            .filter(|_| wanted && contiguous)
            .unwrap_or(copy)
    }

    /// A sink from data to the output; `None` in place.
    pub(super) fn data_sink<'s>(&self, kernel: RunsFn, window: &'s Span) -> Option<Sink<'s>> {
        let data = self.buffers.data?;
        let dst = self.output_at(0);
        #[expect(unsafe_code, reason = "the one sink from data to the output")]
        // SAFETY: `Call::new` vouches for the buffers, which have one shape;
        // spans of a `CopyGeometry` place elements of that shape; a task copies
        // elements of its own tile, or nothing else runs meanwhile.
        Some(unsafe { Sink::new(kernel, self.row.size, dst, data, window) })
    }

    /// All of `data`, in as many parts as there are workers.
    pub(super) fn copy_in_parallel(
        &self,
        workers: &Workers<'_>,
        copy: &CopyGeometry,
    ) -> Result<(), ScatterError> {
        let parts = workers.parts();
        let streams = self.workload().is_sparse();
        workers.run(parts, &|index| {
            let phase = self.output_at(copy.whole.dst).addr();
            let part = columns(&copy.whole, self.row.size, phase, parts, index);
            let span = (copy.whole).restricted(part.axis, part.part.start, part.part.end);
            self.copy_span(&span, (0, 0), streams);
        })
    }

    /// The part of `data` that belongs to a tile of repetitions or of
    /// destinations ([`choose::Choice::fuses_copy`]).
    pub(super) fn copy_tile(&self, copy: &CopyGeometry, tile: &Tile) {
        let slices = tile.numbers.as_ref().and_then(|numbers| {
            let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            copy.span_of_slices(position(numbers.start), position(numbers.end))
        });
        let span = slices.as_ref().unwrap_or(&copy.inner);
        for number in tile.outer.clone() {
            let (dst, src) = Span::at(&copy.outer.dims, number);
            let origin = (copy.outer.dst + dst, copy.outer.src + src);
            self.copy_span(span, origin, false);
        }
    }
}
