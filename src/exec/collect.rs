//! The other direction: the indexed tensor is read and the list of windows is
//! written.
//!
//! Every element of the result is written by one task, whatever the indices:
//! any division of repetitions, tuples and columns will do.

use std::ops::Range;

use super::choose::{NEAR_BYTES, SMALL_BYTES, STREAM_BYTES};
use super::sink::Sink;
use super::tasks::Workers;
use super::tile::{Grid, can_be_cut, columns, part};
use crate::error::ScatterError;
use crate::kernel::{Kernels, RowsFn, RowsForm, RunsFn};
use crate::plan::{Destinations, Geometry, IndexPlan, Number, Span};

/// Runs of at least this many bytes are written past the caches where the
/// result is as long as [`STREAM_BYTES`].
const STREAMED_RUN_BYTES: usize = 1024;

/// What stands for elements that no index names.
static ZERO: [u8; 16] = [0; 16];

/// One such call, ready to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collecting<'a> {
    plan: &'a IndexPlan,
    kernels: &'static Kernels,
    /// Its `dst` side is that of the indexed tensor.
    geometry: &'a Geometry,
    data: *const u8,
    result: *mut u8,
}

#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
mod shared {
    use super::Collecting;

    // SAFETY: the addresses are only used through `Sink` and the kernels, and
    // no two tasks write the same element of the result (`part`).
    unsafe impl Sync for Collecting<'_> {}
}

/// Which part of the result a task writes. *Parts share no element of it*: they
/// differ in repetitions, in tuples or in columns, and a result does not overlap
/// itself.
struct Part<'s> {
    outer: Range<usize>,
    tuples: Range<usize>,
    window: &'s Span,
    /// The window with its sides exchanged.
    exchanged: &'s Span,
}

impl<'a> Collecting<'a> {
    /// Collects by `plan` from data of its layout to a result of its shape.
    ///
    /// # Safety
    ///
    /// - `data` has the layout that the plan is bound to and holds elements of
    ///   `row`; `result` has the shape that the plan asks of updates, with the
    ///   strides that `geometry` was made for, and is this call's alone. They
    ///   share no byte.
    /// - Where `row` clones, the result is initialised and no tuple is skipped.
    #[expect(
        unsafe_code,
        reason = "the contract of every later access is made here"
    )]
    pub(crate) unsafe fn new(
        plan: &'a IndexPlan,
        kernels: &'static Kernels,
        geometry: &'a Geometry,
        data: *const u8,
        result: *mut u8,
    ) -> Self {
        Self {
            plan,
            kernels,
            geometry,
            data,
            result,
        }
    }

    pub(crate) fn run(&self, workers: &Workers<'_>) -> Result<(), ScatterError> {
        let geometry = self.geometry;
        let (outer, window) = (geometry.outer.elements(), &geometry.window);
        let tuples = self.plan.tuples();
        // Whatever memory loops take is had before the first write, and lent
        // to the tasks.
        let exchanged = window.exchanged()?;
        self.clear_skipped()?;
        if outer == 0 || tuples == 0 || window.elements() == 0 {
            return Ok(());
        }
        let bytes = (outer.saturating_mul(tuples))
            .saturating_mul(window.elements())
            .saturating_mul(self.kernels.size);
        let parts = if bytes < SMALL_BYTES {
            1
        } else {
            workers.parts()
        };
        let streams = bytes >= STREAM_BYTES;
        let grid = self.grid(parts);
        workers.run(grid.tasks(), &|index| {
            let (outer_part, middle, column) = grid.place(index);
            let cut = (grid.columns > 1).then(|| {
                let columns = columns(window, self.kernels.size, 0, grid.columns, column);
                (columns.of(window), columns.of(&exchanged))
            });
            let cut = cut.as_ref();
            let part = Part {
                outer: part(outer, grid.outer, outer_part),
                tuples: part(tuples, grid.middle, middle),
                window: cut.map_or(window, |(window, _)| window),
                exchanged: cut.map_or(&exchanged, |(_, exchanged)| exchanged),
            };
            #[expect(unsafe_code, reason = "every task has a part of its own")]
            // SAFETY: parts share no element, and `run` hands out every number
            // once.
            unsafe {
                self.collect(&part, streams);
            }
        })
    }

    /// Repetitions for every worker, else tuples, else columns.
    fn grid(&self, parts: usize) -> Grid {
        if self.geometry.outer.elements() >= parts {
            return Grid {
                outer: parts,
                ..Grid::ONE
            };
        }
        let window = &self.geometry.window;
        let middle = parts.min(self.plan.tuples());
        let columns = parts.min(window.dims[window.axis_to_split(parts)].size);
        if columns > middle && can_be_cut(window) {
            Grid {
                columns,
                ..Grid::ONE
            }
        } else {
            Grid {
                middle,
                ..Grid::ONE
            }
        }
    }

    /// # Safety
    ///
    /// No one else reads or writes the elements of the result that the part
    /// has.
    #[expect(unsafe_code, reason = "as the kernels that it calls")]
    unsafe fn collect(&self, part: &Part<'_>, streams: bool) {
        // SAFETY: handed on as it is, with the numbers of the part's tuples.
        unsafe {
            match self.plan.destinations() {
                Destinations::Narrow(numbers) => {
                    let numbers = &numbers[part.tuples.clone()];
                    match self.rows(part.window) {
                        Some((kernel, rows)) if !(streams && self.streams(part.window)) => {
                            self.gather_rows(kernel, rows, numbers, part);
                        }
                        _ => self.walk(numbers, part, streams),
                    }
                }
                Destinations::Wide(numbers) => {
                    self.walk(&numbers[part.tuples.clone()], part, streams);
                }
            }
        }
    }

    /// Whether a window is long enough for stores past the caches to pay.
    fn streams(&self, window: &Span) -> bool {
        window.run().size * self.kernels.size >= STREAMED_RUN_BYTES && self.kernels.stream.is_some()
    }

    /// The loop over rows, where windows are rows that lie evenly spaced in
    /// the result.
    fn rows(&self, window: &Span) -> Option<(RowsFn, RowsForm<'_>)> {
        let rows = RowsForm {
            unit: self.geometry.unit,
            step: self.geometry.source_step()?,
            len: window.run().size,
            sources: None,
            is_near: self.plan.scale().bytes(self.kernels.size) <= NEAR_BYTES,
        };
        (self.kernels.gather_rows)
            .filter(|_| window.is_row() && self.plan.keeps_all())
            .map(|kernel| (kernel, rows))
    }

    /// # Safety
    ///
    /// As for [`Self::collect`], with what [`Self::rows`] has for the window.
    #[expect(unsafe_code, reason = "rows go straight to the kernel")]
    unsafe fn gather_rows(
        &self,
        kernel: RowsFn,
        rows: RowsForm<'_>,
        numbers: &[u32],
        part: &Part<'_>,
    ) {
        for repetition in part.outer.clone() {
            let (data, result) = self.geometry.repetition(repetition);
            let first = part.tuples.start.cast_signed() * rows.step;
            let data = self.data_at(part.window.dst + data);
            let result = self.result_at(part.window.src + result + first);
            // SAFETY: `new` vouches for both tensors, the plan has checked the
            // numbers, `rows` has found contiguous windows; the caller vouches
            // for the part.
            unsafe {
                kernel(result, data, numbers, rows);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::collect`].
    #[expect(unsafe_code, reason = "as the sink that it fills")]
    unsafe fn walk<N: Number>(&self, numbers: &[N], part: &Part<'_>, streams: bool) {
        let window = part.exchanged;
        let run = window.run();
        let contiguous = (run.dst, run.src) == (1, 1);
        let stream = (self.kernels.stream).filter(|_| streams && contiguous);
        let data = self.data_at(0);
        // SAFETY: what is pushed are windows of the part, each once, and of the
        // data at numbers of the plan.
        let mut sink = unsafe { self.sink(stream.unwrap_or(self.kernels.copy), data, window) };
        for repetition in part.outer.clone() {
            let origin = self.geometry.repetition(repetition);
            sink.push_all(
                (numbers.iter().zip(part.tuples.clone())).map(|(number, position)| {
                    let tuple = self.plan.tuple_at(position);
                    let (data, result) = self.geometry.window_at(number.get(), tuple, origin);
                    (result, data)
                }),
            );
        }
        sink.finish();
    }

    /// Zeros where a tuple was skipped, before any task begins. Without memory
    /// for the loops nothing is written.
    fn clear_skipped(&self) -> Result<(), ScatterError> {
        if self.plan.keeps_all() {
            return Ok(());
        }
        let mut window = self.geometry.window.exchanged()?;
        window.src = 0;
        for dim in &mut *window.dims {
            dim.src = 0;
        }
        #[expect(unsafe_code, reason = "as the sink that it fills")]
        // SAFETY: what is pushed are windows of the result; zeros are one
        // element, and all strides on that side are 0; no task is running.
        let mut sink = unsafe { self.sink(self.kernels.copy, ZERO.as_ptr(), &window) };
        for repetition in 0..self.geometry.outer.elements() {
            let origin = self.geometry.repetition(repetition);
            let mut kept = (0..self.plan.tuples()).map(|position| self.plan.tuple_at(position));
            let mut next = kept.next();
            for tuple in 0..self.plan.listed_tuples() {
                if next == Some(tuple) {
                    next = kept.next();
                } else {
                    let (_, result) = self.geometry.window_at(0, tuple, origin);
                    sink.push(result, 0);
                }
            }
        }
        sink.finish();
        Ok(())
    }

    /// A sink into the result for windows of its tuples.
    ///
    /// # Safety
    ///
    /// All that is pushed are windows of the result, each once, that no one
    /// else reads or writes until the sink is gone, and around `src` elements
    /// to read.
    #[expect(unsafe_code, reason = "the one sink into a result")]
    unsafe fn sink<'s>(&self, kernel: RunsFn, src: *const u8, window: &'s Span) -> Sink<'s> {
        // SAFETY: `new` vouches for both tensors, and the plan has checked the
        // numbers against the layout of the data; the caller for the rest.
        unsafe { Sink::new(kernel, self.kernels.size, self.result, src, window) }
    }

    fn data_at(&self, elements: isize) -> *const u8 {
        let bytes = elements * self.kernels.size.cast_signed();
        self.data.wrapping_offset(bytes)
    }

    fn result_at(&self, elements: isize) -> *mut u8 {
        let bytes = elements * self.kernels.size.cast_signed();
        self.result.wrapping_offset(bytes)
    }
}
