//! Copies data to the output and multiplies it there: whole, in parallel, or the part of
//! a tile.
//!
//! Knows where data and output lie. Knows nothing of updates.

use super::super::access::Access;
use super::super::division::Division;
use super::super::sink::Sink;
use super::super::tasks::Workers;
use super::super::thresholds::{PARALLEL_BYTES, SMALL_CALL_BYTES};
use super::super::tile::{Tile, can_be_cut, columns};
use super::{Divided, Transfer};
use crate::error::ScatterError;
use crate::plan::{CopyGeometry, Span};

impl Access {
    /// Copies all data to the output, which places it by `whole`, and multiplies it on its
    /// way or then, as the operation has it. Without data the output is multiplied where it
    /// lies.
    ///
    /// # Safety
    ///
    /// - `whole` places elements of the operation in the output and, if there is any, in
    ///   data, each of the output once.
    /// - The output is this call's alone; data can be read, and shares no byte with it.
    /// - Without data, or where the operation clones, the output's elements are
    ///   initialised.
    #[expect(unsafe_code, reason = "who calls it has checked the tensors")]
    pub(crate) unsafe fn copy_all(
        mut self,
        whole: &Span,
        workers: &Workers<'_>,
    ) -> Result<(), ScatterError> {
        let bytes = whole.elements() * self.operation.kernels.size;
        if bytes == 0 {
            return Ok(());
        }
        let touched = bytes.saturating_mul(2);
        if touched >= SMALL_CALL_BYTES {
            self.context = self.context.on(workers.machine());
        }
        let streams = bytes as u64 >= self.context.variants.stream_bytes;
        self.each_cut(whole, touched >= PARALLEL_BYTES, workers, &|span| {
            // SAFETY: the caller vouches for all elements; cuts share none.
            unsafe {
                self.copy_span(span, (0, 0), streams);
                self.multiply_span(span, 0);
            }
        })
    }

    /// Hands all elements of the output to a task, or, where they are shared out, to each
    /// worker's columns of them, which have none in common.
    fn each_cut(
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
                columns(whole, self.operation.kernels.size, address, parts, index).of(whole)
            });
            task(cut.as_ref().unwrap_or(whole));
        })
    }

    /// Copies the elements of `span`, `origin` away on either side, if there is data.
    ///
    /// # Safety
    ///
    /// They are elements of the output and of data, and nothing else reads or
    /// writes those of the output meanwhile.
    #[expect(unsafe_code, reason = "as the sink that it fills")]
    unsafe fn copy_span(&self, span: &Span, origin: (isize, isize), streams: bool) {
        // SAFETY: the caller vouches for the one window that is pushed.
        if let Some(mut sink) = unsafe { self.data_sink(span, streams) } {
            sink.push(origin.0, origin.1);
            sink.finish();
        }
    }

    /// A sink from data to the output, which streams where that is wanted and `window`
    /// allows it; `None` where no data is copied.
    ///
    /// # Safety
    ///
    /// All that is pushed are elements of the output and of data. Each element of the output
    /// is pushed once. Nothing else reads or writes it until the sink is gone.
    #[expect(unsafe_code, reason = "as the sink that it makes")]
    pub(in super::super) unsafe fn data_sink<'s>(
        &self,
        window: &'s Span,
        streams: bool,
    ) -> Option<Sink<'s>> {
        let streaming = || self.streaming(self.operation.kernels.copy, window, streams);
        let kernel = self.multiplying().unwrap_or_else(streaming);
        // SAFETY: handed on as it is.
        Some(unsafe { Sink::new(self, kernel, self.buffers.data?, window) })
    }

    /// Multiplies the elements of `span`, `origin` away, if the operation does so.
    ///
    /// # Safety
    ///
    /// They are elements of the output that hold values, and nothing else reads or writes
    /// them meanwhile.
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

impl<'a> Divided<'a, '_> {
    /// Copies all data, if there is any, before tasks begin: by several workers where
    /// several will work anyway, or where it is worth to wake them.
    pub(in super::super) fn copy_before(&self) -> Result<(), ScatterError> {
        let streams = self.work.is_sparse();
        self.each_cut_of_output(&|span| {
            #[expect(unsafe_code, reason = "tasks copy columns of their own")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have; cuts share none, and nothing else runs.
            unsafe {
                self.transfer.access.copy_span(span, (0, 0), streams);
            }
        })
    }

    /// Multiplies all of the output, after the tasks of the division, by as many workers,
    /// if it is to be and they have not.
    pub(in super::super) fn multiply_after(&self) -> Result<(), ScatterError> {
        if self.transfer.access.operation.multiply.is_none() || self.fused_copy().is_some() {
            return Ok(());
        }
        self.each_cut_of_output(&|span| {
            #[expect(unsafe_code, reason = "tasks multiply columns of their own")]
            // SAFETY: a `CopyGeometry` places elements of the output, which hold values
            // by now; cuts share none, and nothing else runs.
            unsafe {
                self.transfer.access.multiply_span(span, 0);
            }
        })
    }

    /// Hands the output of a transfer that copies data to a task, cut as
    /// [`Access::each_cut`] has it.
    fn each_cut_of_output(&self, task: &(dyn Fn(&Span) + Sync)) -> Result<(), ScatterError> {
        let Some(copy) = &self.transfer.copy else {
            return Ok(());
        };
        let is_shared = self.division.tasks() > 1 || self.work.copies_much();
        (self.transfer.access).each_cut(&copy.whole, is_shared, &self.workers, task)
    }

    /// How data lies, where the tiles of tasks are separate regions of the output. Each task
    /// then copies its part of data just before it applies its windows.
    pub(in super::super) fn fused_copy(&self) -> Option<&'a CopyGeometry> {
        let transfer = self.transfer;
        let copy = transfer.copy.as_ref()?;
        let one_region = match self.division {
            Division::Repetitions { .. } => true,
            // With a loop more for the slices, that of the window must still fit
            // in place (`can_be_cut`).
            Division::Destinations { .. } | Division::Partitions { .. } => {
                copy.slices.is_some() && copy.window.dims.is_inline_with(1)
            }
            _ => false,
        };
        let same_repetitions = transfer.repetitions() == copy.outer.elements();
        (one_region && same_repetitions && transfer.plan.is_whole()).then_some(copy)
    }
}

impl Transfer<'_> {
    /// Applies the windows of a tile: where the copy is [fused](Divided::fused_copy), after
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
        // A division that fuses the copy has seen that slices are found without memory.
        let slices = tile.destinations().map(|numbers| {
            let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let slices = copy.span_of_slices(position(numbers.start), position(numbers.end));
            slices.expect("slices of a tile are found without memory")
        });
        let span = slices.as_ref().unwrap_or(&copy.inner);
        let origins = || {
            tile.repetitions().map(|repetition| {
                let (dst, src) = Span::at(&copy.outer.dims, repetition);
                (copy.outer.dst + dst, copy.outer.src + src)
            })
        };
        for origin in origins() {
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: a `CopyGeometry` places elements of the one shape that
            // data and output have, and these are the slices or the repetition
            // that the tile has.
            unsafe {
                self.access.copy_span(span, origin, false);
            }
        }
        apply();
        if self.access.operation.multiply.is_none() {
            return;
        }
        for (origin, _) in origins() {
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: these are the elements that have been copied for the same tile, and
            // no one else's.
            unsafe {
                self.access.multiply_span(span, origin);
            }
        }
    }
}
