//! Without a reduction only the last tuple of each destination counts: one
//! pass over the output writes each slice once, from `data` or its winner.

use std::ops::Range;

use super::Call;
use super::choose::{Choice, STREAM_BYTES};
use super::sink::Sink;
use super::tasks::Workers;
use super::tile::{part, part_of_numbers};
use crate::error::ScatterError;
use crate::plan::{CopyGeometry, Sorted, Span, signed};

impl Call<'_> {
    /// [`choose`] has seen to it that there are winners and, in the functional
    /// form, evenly spaced slices.
    pub(super) fn run_winners(
        &self,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let Some(winners) = self.plan.last_writes() else {
            return Err(crate::memory::out_of_memory::<u64>(self.plan.tuples()));
        };
        let grid = choice.grid;
        let repetitions = self.geometry.outer.elements();
        workers.run(grid.tasks(), &|index| {
            let outer = part(repetitions, grid.outer, index / grid.middle);
            let middle = index % grid.middle;
            for number in outer {
                #[expect(unsafe_code, reason = "tasks write to windows of their own")]
                // SAFETY: tasks differ in repetitions, in winners or in slices:
                // winners have different destinations.
                unsafe {
                    match &self.copy {
                        Some(copy) => {
                            let count = self.plan.scale().count;
                            let slices = part_of_numbers(count, grid.middle, middle);
                            self.rewrite(copy, winners, number, slices);
                        }
                        None => self.overwrite(winners, number, grid.middle, middle),
                    }
                }
            }
        })
    }

    /// In place: moves the updates of part `index` of the winners.
    ///
    /// # Safety
    ///
    /// `winners` are those of the plan, and no one else reads or writes the
    /// windows of this part in this repetition.
    #[expect(unsafe_code, reason = "as the sink that it fills")]
    unsafe fn overwrite(&self, winners: &Sorted, repetition: usize, parts: usize, index: usize) {
        let origin = self.geometry.repetition(repetition);
        let window = &self.geometry.window;
        let count = winners.len(self.plan.tuples());
        let bytes = count * window.elements() * self.kernels.size;
        let kernel = self.streaming(self.kernels.copy, window, bytes >= STREAM_BYTES);
        // SAFETY: what is pushed are the windows of this part, which the caller
        // vouches for, each destination once.
        let mut sink = unsafe { self.updates_sink(kernel, window) };
        for position in part(count, parts, index) {
            let (number, tuple) = winners.get(self.plan.destinations(), position);
            let (dst, src) = self.window_at(number, tuple, origin);
            if self.geometry.joins {
                sink.push_joined(dst, src);
            } else {
                sink.push(dst, src);
            }
        }
        sink.finish();
    }

    /// Out of place: writes the slices of a range, in order, each once.
    ///
    /// # Safety
    ///
    /// `winners` are those of the plan, and no one else reads or writes these
    /// slices in this repetition.
    #[expect(unsafe_code, reason = "as the sinks that it fills")]
    unsafe fn rewrite(
        &self,
        copy: &CopyGeometry,
        winners: &Sorted,
        repetition: usize,
        slices: Range<u64>,
    ) {
        let streams = copy.whole.elements() * self.kernels.size >= STREAM_BYTES;
        let window = &self.geometry.window;
        let destinations = self.plan.destinations();
        let origin = self.geometry.repetition(repetition);
        let kernel = self.streaming(self.kernels.copy, window, streams);
        // SAFETY: what is pushed are the windows of winners in the range, which
        // the caller vouches for, each destination once.
        let mut updates = unsafe { self.updates_sink(kernel, window) };
        let kernel = self.streaming(self.kernels.copy, &copy.window, streams);
        // SAFETY: a `CopyGeometry` places slices that data and output both
        // have; what is pushed are those of the range that have no winner.
        let Some(mut data) = (unsafe { self.data_sink(kernel, &copy.window) }) else {
            return;
        };
        let mut next = slices.start;
        let first = winners.first_from(destinations, slices.start);
        for position in first..winners.len(self.plan.tuples()) {
            let (number, tuple) = winners.get(destinations, position);
            if number >= slices.end {
                break;
            }
            keep(&mut data, copy, repetition, next..number);
            let (dst, src) = self.window_at(number, tuple, origin);
            if self.geometry.joins {
                updates.push_joined(dst, src);
            } else {
                updates.push(dst, src);
            }
            next = number + 1;
        }
        keep(&mut data, copy, repetition, next..slices.end);
        data.finish();
        updates.finish();
    }
}

/// Copies a range of slices from `data`, as one run where they join.
fn keep(data: &mut Sink<'_>, copy: &CopyGeometry, repetition: usize, slices: Range<u64>) {
    let Some(dim) = copy.slices.filter(|_| !slices.is_empty()) else {
        return;
    };
    let (dst, src) = Span::at(&copy.outer.dims, repetition);
    let at = |slice: u64| {
        let slice = signed(slice);
        (
            copy.outer.dst + dst + slice * dim.dst,
            copy.outer.src + src + slice * dim.src,
        )
    };
    if copy.slices_join() {
        let (dst, src) = at(slices.start);
        let count = usize::try_from(slices.end - slices.start).unwrap_or(usize::MAX);
        data.push_run(dst, src, count * copy.window.run().size);
    } else {
        for slice in slices {
            let (dst, src) = at(slice);
            data.push(dst, src);
        }
    }
}
