//! Copies data to the output, and multiplies elements of the output by the operation's factor. A
//! function copies or multiplies either the whole output, in parallel, or the part of one tile. A
//! tile is a part of the transfer that one task processes.
//!
//! This module knows the layouts of data and output. This module does not know updates.

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
    /// Copies all data to the output. `whole` describes all elements of the output and of data. If
    /// the operation multiplies by a factor, the elements are multiplied during the copy or after
    /// it. If there is no data, nothing is copied, and the output is multiplied in place.
    ///
    /// # Safety
    ///
    /// - `whole` describes positions of elements in the output and, if there is data, in data. The
    ///   elements have the operation's element type. `whole` has each element of the output once.
    /// - Only this call uses the output. Data can be read, and shares no byte with the output.
    /// - If there is no data, the output's elements are initialised, because the function
    ///   multiplies them in place.
    /// - If the operation clones, the output's elements are initialised, because the assignment of
    ///   a clone drops the old element.
    #[expect(unsafe_code, reason = "its caller has checked the tensors")]
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
            // SAFETY: as the function's Safety section states, the elements of `whole` are elements
            // of the output and of data, and only this call uses the output. The method `each_cut`
            // gives each task a separate part of `whole`, so no other task uses the elements of
            // `span`.
            unsafe {
                self.copy_span(span, (0, 0), streams);
                self.multiply_span(span, 0);
            }
        })
    }

    /// Runs `task` on all elements of the output. If `is_shared` is set and [`can_be_cut`] accepts
    /// `whole`, `whole` is cut into one part per worker, and each worker runs `task` on one part.
    /// No two parts share an element.
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

    /// Copies the elements of `span` from data to the output. `origin` has two offsets, which are
    /// added to the positions in the output and in data. If there is no data, the function does
    /// nothing.
    ///
    /// # Safety
    ///
    /// At `origin`, `span` describes elements of the output and of data. Nothing else reads or
    /// writes these elements of the output during the call.
    #[expect(unsafe_code, reason = "fills a sink")]
    unsafe fn copy_span(&self, span: &Span, origin: (isize, isize), streams: bool) {
        // SAFETY: the caller guarantees that `span` describes elements of the output and of data.
        // The pushed window has these elements.
        if let Some(mut sink) = unsafe { self.data_sink(span, streams) } {
            sink.push(origin.0, origin.1);
            sink.finish();
        }
    }

    /// Returns a sink that copies windows of the form `window` from data to the output, or `None`
    /// if there is no data. If `streams` is set, the sink usually writes by streaming stores, if
    /// the runs of `window` are contiguous (see [`Access::streaming`]). A copy that multiplies
    /// ignores `streams`.
    ///
    /// # Safety
    ///
    /// All windows that are pushed to the sink consist of elements of the output and of data. No
    /// element of the output is pushed twice. While the sink exists, nothing else reads or writes
    /// the pushed elements of the output.
    #[expect(
        unsafe_code,
        reason = "makes a sink, which needs the caller's guarantees"
    )]
    pub(in super::super) unsafe fn data_sink<'s>(
        &self,
        window: &'s Span,
        streams: bool,
    ) -> Option<Sink<'s>> {
        let streaming = || self.streaming(self.operation.kernels.copy, window, streams);
        let kernel = self.multiplying().unwrap_or_else(streaming);
        // SAFETY: the caller guarantees that pushed windows consist of elements of the output and
        // of data, and that no element of the output is pushed twice. The caller also guarantees
        // that nothing else uses the pushed elements of the output.
        Some(unsafe { Sink::new(self, kernel, self.buffers.data?, window) })
    }

    /// Multiplies elements of the output by the operation's factor, in place: the elements of
    /// `span`, with the offset `origin` added to their positions. If the operation has no function
    /// that multiplies (`Operation::multiply`), nothing is multiplied.
    ///
    /// # Safety
    ///
    /// The elements to multiply are initialised elements of the output. Nothing else reads or
    /// writes these elements during the call.
    #[expect(
        unsafe_code,
        reason = "calls a kernel that needs the caller's guarantees"
    )]
    unsafe fn multiply_span(&self, span: &Span, origin: isize) {
        let Some(multiply) = self.operation.multiply else {
            return;
        };
        let run = span.run();
        for number in 0..span.runs() {
            let (dst, _) = Span::at(span.loops(), number);
            let first = self.written_at(origin + span.dst + dst);
            // SAFETY: the caller guarantees that the elements of `span` are initialised elements of
            // the output, and that nothing else uses these elements. The elements have the type of
            // the operation.
            unsafe { multiply(first, run.size, run.dst, self.operation.factor) };
        }
    }
}

impl<'a> Divided<'a, '_> {
    /// Copies all data to the output, before the tasks of the division begin. A call in place
    /// copies nothing. Several workers usually copy if the division has several tasks, or if the
    /// copy reads and writes at least [`PARALLEL_BYTES`] in total.
    pub(in super::super) fn copy_before(&self) -> Result<(), ScatterError> {
        let streams = self.work.is_sparse();
        self.each_cut_of_output(&|span| {
            #[expect(unsafe_code, reason = "tasks copy disjoint columns")]
            // SAFETY: a `CopyGeometry` describes elements of data and output, which have one shape.
            // The method `each_cut` gives each worker a separate part of the output, and the tasks
            // of the division have not begun. So nothing else uses the elements of `span`.
            unsafe {
                self.transfer.access.copy_span(span, (0, 0), streams);
            }
        })
    }

    /// Multiplies the whole output by the operation's factor after the tasks of the division have
    /// ended. The function multiplies nothing if the operation has no factor for the output, or if
    /// the tasks have already multiplied their parts. A call in place multiplies nothing here. The
    /// output is divided among the workers as in [`Self::copy_before`].
    pub(in super::super) fn multiply_after(&self) -> Result<(), ScatterError> {
        if self.transfer.access.operation.multiply.is_none() || self.fused_copy().is_some() {
            return Ok(());
        }
        self.each_cut_of_output(&|span| {
            #[expect(unsafe_code, reason = "tasks multiply disjoint columns")]
            // SAFETY: a `CopyGeometry` describes elements of the output, which the copy and the
            // tasks of the division have initialised. The method `each_cut` gives each worker a
            // separate part of the output, and the tasks of the division have ended. So nothing
            // else uses the elements of `span`.
            unsafe {
                self.transfer.access.multiply_span(span, 0);
            }
        })
    }

    /// Runs `task` on each of the parts into which [`Access::each_cut`] cuts the output of the
    /// transfer. If the transfer copies no data, the function does nothing.
    fn each_cut_of_output(&self, task: &(dyn Fn(&Span) + Sync)) -> Result<(), ScatterError> {
        let Some(copy) = &self.transfer.copy else {
            return Ok(());
        };
        let is_shared = self.division.tasks() > 1 || self.work.copies_much();
        (self.transfer.access).each_cut(&copy.whole, is_shared, &self.workers, task)
    }

    /// Returns the loops of the copy of data, if tiles (the parts of the transfer that tasks
    /// process) are separate regions of the output. Each task then copies the data of a tile just
    /// before it applies the windows of the tile. The result is `None` if there is no data, or if
    /// all data is copied before the first tile.
    pub(in super::super) fn fused_copy(&self) -> Option<&'a CopyGeometry> {
        let transfer = self.transfer;
        let copy = transfer.copy.as_ref()?;
        let one_region = match self.division {
            Division::Repetitions { .. } => true,
            // Each task makes a span for a range of slices. The span has the loops of the window
            // and one loop over slices. The span must store these loops without an allocation,
            // because an allocation in a task might fail after the first write (see `can_be_cut`).
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
    /// Calls `apply`, which applies the windows of a tile. If `fused` is the result of
    /// [`Divided::fused_copy`], the function first copies the tile's part of data. If the
    /// operation has a factor for the output, the function multiplies the tile's part of the output
    /// by this factor after `apply`.
    pub(in super::super) fn fill_tile(
        &self,
        fused: Option<&CopyGeometry>,
        tile: &Tile,
        apply: impl FnOnce(),
    ) {
        let Some(copy) = fused else {
            return apply();
        };
        // A slice is all elements of one repetition that one destination number addresses. For a
        // tile with a range of destination numbers, only the slices of these numbers are copied. A
        // copy of the whole repetition would overwrite slices of other tiles. The method
        // `fused_copy` has checked that the loops over slices need no allocation.
        let slices = tile.destinations().map(|numbers| {
            let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let slices = copy.span_of_slices(position(numbers.start), position(numbers.end));
            slices.expect("the slices of a tile are found without an allocation")
        });
        let span = slices.as_ref().unwrap_or(&copy.inner);
        let origins = || {
            tile.repetitions().map(|repetition| {
                let (dst, src) = Span::at(&copy.outer.dims, repetition);
                (copy.outer.dst + dst, copy.outer.src + src)
            })
        };
        for origin in origins() {
            #[expect(unsafe_code, reason = "only one task has the tile")]
            // SAFETY: a `CopyGeometry` describes elements of data and output, which have one shape.
            // If the tile has a range of destinations, the copied elements are the slices of these
            // destinations, which belong to this tile alone. Otherwise the copied elements are a
            // whole repetition, which belongs to this tile alone.
            unsafe {
                self.access.copy_span(span, origin, false);
            }
        }
        apply();
        if self.access.operation.multiply.is_none() {
            return;
        }
        for (origin, _) in origins() {
            #[expect(unsafe_code, reason = "only one task has the tile")]
            // SAFETY: the elements to multiply are the elements that were copied for this tile. No
            // other tile has these elements.
            unsafe {
                self.access.multiply_span(span, origin);
            }
        }
    }
}
