//! Walks the tuples of a tile in order and applies their windows.

use std::ops::Range;

use super::Call;
use super::choose::{NEAR_BYTES, STREAMED_WINDOW_BYTES};
use super::sink::Sink;
use super::tile::Tile;
use crate::kernel::{Elements, ElementsFn, RowsFn, RowsForm, RunsFn, Spread};
use crate::plan::{Destinations, Number, Span, signed};

/// Tuples that are filtered together, without a branch on each.
const FILTER_BLOCK: usize = 128;

impl Call<'_> {
    /// Applies the updates of a tile, in the order of its tuples.
    pub(super) fn apply(&self, tile: &Tile) {
        let part = (tile.columns()).map(|columns| columns.of(&self.geometry.window));
        let window = part.as_ref().unwrap_or(&self.geometry.window);
        let selects = tile.columns().is_some() || tile.numbers().is_some();
        for number in tile.outer() {
            let origin = self.geometry.repetition(number);
            match self.single_elements().filter(|_| !selects) {
                Some(elements) => self.apply_elements(elements, origin, tile),
                None => self.apply_windows(window, origin, tile),
            }
        }
    }

    /// Whether joining neighbouring tuples pays: runs at least twice as long.
    fn joins(&self) -> bool {
        self.geometry.joins && self.plan.facts().breaks * 2 < self.plan.tuples()
    }

    /// The loops over single elements, where windows are single elements whose
    /// sources lie side by side.
    pub(super) fn single_elements(&self) -> Option<Elements> {
        let is_single =
            self.geometry.window.elements() == 1 && self.source_step() == Some(1) && !self.joins();
        self.kernels.apply_elements.filter(|_| is_single)
    }

    fn apply_elements(&self, elements: Elements, origin: (isize, isize), tile: &Tile) {
        match self.plan.destinations() {
            Destinations::Narrow(numbers) => {
                self.apply_numbers(elements.u32, numbers, origin, tile);
            }
            Destinations::Wide(numbers) => {
                self.apply_numbers(elements.u64, numbers, origin, tile);
            }
        }
    }

    /// `numbers` are those of the plan.
    fn apply_numbers<N: Number>(
        &self,
        kernel: ElementsFn<N>,
        numbers: &[N],
        (dst, src): (isize, isize),
        tile: &Tile,
    ) {
        let window = &self.geometry.window;
        let first = tile.tuples().start;
        let dst = self.output_at(window.dst + dst);
        let src = self.updates_at(window.src + src + first.cast_signed());
        let numbers = &numbers[tile.tuples()];
        #[expect(unsafe_code, reason = "single elements go straight to the kernel")]
        // SAFETY: `Call::new` vouches for the buffers; the plan has checked the
        // destinations against the output's layout; `single_elements` has found
        // one element a window and sources side by side; they are those that
        // the tile reaches.
        unsafe {
            let spread = Spread {
                scale: self.geometry.unit,
                is_near: self.workload().region_bytes() <= NEAR_BYTES,
            };
            kernel(dst, src, numbers, spread);
        }
    }

    fn apply_windows(&self, window: &Span, origin: (isize, isize), tile: &Tile) {
        match self.plan.destinations() {
            Destinations::Narrow(numbers) => match self
                .rows(window, tile)
                .filter(|_| !self.streams_windows(window))
            {
                Some((kernel, rows)) => {
                    let (numbers, first) = (&numbers[tile.tuples()], tile.tuples().start);
                    #[expect(unsafe_code, reason = "a tile is its task's own")]
                    // SAFETY: the tile reaches the windows of its tuples.
                    unsafe {
                        self.apply_rows(kernel, rows, numbers, window, origin, first);
                    }
                }
                None => self.walk(numbers, window, origin, tile),
            },
            Destinations::Wide(numbers) => self.walk(numbers, window, origin, tile),
        }
    }

    /// Whether windows are long enough to pass the caches by where they should
    /// ([`Workload::streams_windows`](super::workload::Workload::streams_windows)):
    /// to read what is there into the caches first would be for nothing.
    fn streams_windows(&self, window: &Span) -> bool {
        self.streams && window.elements() * self.kernels.size >= STREAMED_WINDOW_BYTES
    }

    /// The loop over rows, where the windows of a tile are rows whose sources
    /// are evenly spaced and whose destinations need no selection.
    fn rows(&self, window: &Span, tile: &Tile) -> Option<(RowsFn, RowsForm<'_>)> {
        let joined = tile.columns().is_none() && self.joins();
        let selects = joined || tile.numbers().is_some();
        self.evenly_spaced(window).filter(|_| !selects)
    }

    /// The loop over rows, where windows are rows whose sources are evenly
    /// spaced.
    pub(super) fn evenly_spaced(&self, window: &Span) -> Option<(RowsFn, RowsForm<'static>)> {
        let rows = RowsForm {
            unit: self.geometry.unit,
            step: self.source_step()?,
            len: window.run().size,
            sources: None,
            is_near: self.workload().region_bytes() <= NEAR_BYTES,
        };
        let kernel = self.kernels.apply_rows.filter(|_| window.is_row());
        kernel.map(|kernel| (kernel, rows))
    }

    /// Rows of updates from number `first` on; where `rows` lists them, its
    /// list counts from there.
    ///
    /// # Safety
    ///
    /// - `kernel` and `rows` are what [`Self::evenly_spaced`] has for `window`;
    ///   a list it was given has the number of the tuple of each of `numbers`.
    /// - No one else reads or writes the windows at `numbers` in the repetition
    ///   that begins at `origin` ([`Tile`]).
    #[expect(unsafe_code, reason = "rows go straight to the kernel")]
    pub(super) unsafe fn apply_rows(
        &self,
        kernel: RowsFn,
        rows: RowsForm<'_>,
        numbers: &[u32],
        window: &Span,
        (dst, src): (isize, isize),
        first: usize,
    ) {
        let dst = self.output_at(window.dst + dst);
        let src = self.updates_at(window.src + src + first.cast_signed() * rows.step);
        // SAFETY: `Call::new` vouches for the buffers; the plan has checked the
        // destinations against the output's layout; `evenly_spaced` has found
        // windows that are contiguous on both sides; the caller vouches for
        // listed sources and for the windows being its own.
        unsafe {
            kernel(dst, src, numbers, rows);
        }
    }

    fn walk<N: Number>(&self, numbers: &[N], window: &Span, origin: (isize, isize), tile: &Tile) {
        let kernel = self.streaming(self.kernels.apply, window, self.streams_windows(window));
        #[expect(unsafe_code, reason = "a tile is its task's own")]
        // SAFETY: what is pushed below are windows of the tile's tuples, cut to
        // its columns as `window` is; where they are streamed, no two have one
        // destination (`Call::streams`).
        let mut sink = unsafe { self.updates_sink(kernel, window) };
        let whole_windows = tile.columns().is_none();
        if let Some(range) = tile.numbers() {
            self.walk_filtered(numbers, range, origin, &mut sink);
        } else if whole_windows && self.joins() {
            for tuple in tile.tuples() {
                let (dst, src) = self.window_at(numbers[tuple].get(), tuple, origin);
                sink.push_joined(dst, src);
            }
        } else {
            let tuples = numbers[tile.tuples()].iter().zip(tile.tuples());
            match self.source_step() {
                Some(step) => sink.push_all(tuples.map(|(number, tuple)| {
                    let dst = origin.0 + signed(number.get()) * self.geometry.unit;
                    (dst, origin.1 + tuple.cast_signed() * step)
                })),
                None => sink.push_all(
                    tuples.map(|(number, tuple)| self.window_at(number.get(), tuple, origin)),
                ),
            }
        }
        sink.finish();
    }

    /// The tuples whose number lies in `range`. Half of them may, at random:
    /// positions are gathered first, without a branch to mispredict.
    fn walk_filtered<N: Number>(
        &self,
        numbers: &[N],
        range: Range<u64>,
        origin: (isize, isize),
        sink: &mut Sink<'_>,
    ) {
        let length = range.end - range.start;
        let mut kept = [0_usize; FILTER_BLOCK];
        for (block, numbers_of_block) in numbers.chunks(FILTER_BLOCK).enumerate() {
            let mut len = 0;
            for (position, number) in numbers_of_block.iter().enumerate() {
                kept[len] = block * FILTER_BLOCK + position;
                len += usize::from(number.get().wrapping_sub(range.start) < length);
            }
            sink.push_all(
                (kept[..len].iter())
                    .map(|&tuple| self.window_at(numbers[tuple].get(), tuple, origin)),
            );
        }
    }

    /// Offsets of the window at `position` of the list, whose destination is
    /// `number`.
    #[inline]
    pub(super) fn window_at(
        &self,
        number: u64,
        position: usize,
        origin: (isize, isize),
    ) -> (isize, isize) {
        let tuple = self.plan.tuple_at(position);
        self.geometry.window_at(number, tuple, origin)
    }

    /// The distance between the sources of neighbours in the list, where it is
    /// constant.
    pub(super) fn source_step(&self) -> Option<isize> {
        let step = self.geometry.source_step();
        step.filter(|_| self.plan.keeps_all())
    }

    /// A sink for windows of updates.
    ///
    /// # Safety
    ///
    /// - What is pushed are offsets of windows of tuples, from
    ///   [`Call::window_at`] or as it has them.
    /// - No one else reads or writes those of the output until the sink is gone
    ///   ([`Tile`]).
    /// - Where `kernel` streams, no two of them have one destination.
    #[expect(unsafe_code, reason = "the one sink from updates to the output")]
    pub(super) unsafe fn updates_sink<'s>(&self, kernel: RunsFn, window: &'s Span) -> Sink<'s> {
        let (dst, src) = (self.output_at(0), self.updates_at(0));
        // SAFETY: `Call::new` vouches for the buffers; windows lie inside the
        // output because the plan has checked every destination against the
        // layout it is bound to, and inside the updates because their shape is
        // the plan's; the caller vouches for the rest.
        unsafe { Sink::new(kernel, self.kernels.size, dst, src, window) }
    }

    /// Address `elements` away from element `[0, 0, ...]` of the output.
    pub(super) fn output_at(&self, elements: isize) -> *mut u8 {
        let bytes = elements * self.kernels.size.cast_signed();
        self.buffers.output.cast::<u8>().wrapping_offset(bytes)
    }

    /// Address of the update of tuple `first`, where windows are single
    /// elements whose sources lie side by side and there is one repetition.
    pub(super) fn single_source(&self, first: usize) -> *const u8 {
        let (_, src) = self.geometry.repetition(0);
        self.updates_at(self.geometry.window.src + src + first.cast_signed())
    }

    pub(super) fn updates_at(&self, elements: isize) -> *const u8 {
        let bytes = elements * self.kernels.size.cast_signed();
        self.buffers.updates.wrapping_offset(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "calls a kernel")]

    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::{Buffers, Call};
    use crate::element::ElementType;
    use crate::exec::tasks::Workers;
    use crate::kernel::{InstructionSet, Job, Kernels, Operation, Steps};
    use crate::{CallingThread, Layout, Reduction, ScatterNd, ScatterPlan, Schedule, TensorView};

    const SLICES: usize = 4096;
    const LEN: usize = 1024;
    const TUPLES: usize = 64;

    /// Windows that were streamed, and those of one list that had an element
    /// in common with an earlier one.
    static STREAMED: AtomicUsize = AtomicUsize::new(0);
    static TWICE: AtomicUsize = AtomicUsize::new(0);

    fn plain() -> &'static Kernels {
        Kernels::plain(ElementType::F32, Reduction::None, InstructionSet::best()).expect("copies")
    }

    unsafe fn watched(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps) {
        for (position, job) in jobs.iter().enumerate() {
            let shares = |other: &Job| (job.dst - other.dst).unsigned_abs() < job.len;
            let is_twice = jobs[..position].iter().any(shares);
            TWICE.fetch_add(usize::from(is_twice), Ordering::Relaxed);
        }
        // Data is one long job.
        let windows = jobs.iter().filter(|job| job.len <= LEN).count();
        STREAMED.fetch_add(windows, Ordering::Relaxed);
        // SAFETY: handed on as it is.
        unsafe { (plain().copy)(dst, src, jobs, steps) };
    }

    /// A row whose streaming copies are watched.
    static WATCHED: LazyLock<Kernels> = LazyLock::new(|| Kernels {
        stream: Some(watched),
        ..*plain()
    });

    fn plan(place: impl Fn(usize) -> usize) -> ScatterPlan {
        let indices: Vec<i64> = (0..TUPLES)
            .map(|tuple| i64::try_from(place(tuple)).expect("it fits"))
            .collect();
        let indices = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("indices");
        (ScatterNd::new().plan(Layout::contiguous(&[SLICES, LEN]), indices)).expect("in range")
    }

    /// Runs a plan out of place and returns how many windows were streamed
    /// beside the data.
    fn streamed(plan: &ScatterPlan, schedule: Schedule) -> usize {
        let plan = plan.indices();
        let strides = [LEN.cast_signed(), 1];
        let geometry = plan.geometry(&strides).expect("few dims");
        let copy = plan.copy_geometry(&strides).expect("few dims");
        let data = vec![0.0_f32; SLICES * LEN];
        let updates: Vec<f32> = (0..TUPLES * LEN).map(|at| at as f32).collect();
        let mut output = vec![1.0_f32; SLICES * LEN];
        STREAMED.store(0, Ordering::Relaxed);
        // SAFETY: contiguous tensors of the plan's shapes, initialised.
        let call = unsafe {
            Call::new(
                plan,
                Operation::moving(&WATCHED),
                Buffers {
                    output: output.as_mut_ptr().cast(),
                    updates: updates.as_ptr().cast(),
                    data: Some(data.as_ptr().cast()),
                },
                geometry,
                Some(copy),
            )
        };
        (call.run(&Workers::new(&CallingThread, None), Some(schedule))).expect("no memory needed");
        let mut expected = data.clone();
        for tuple in 0..TUPLES {
            let slice = usize::try_from(plan.destinations().get(tuple)).expect("it fits");
            expected[slice * LEN..][..LEN].copy_from_slice(&updates[tuple * LEN..][..LEN]);
        }
        assert!(output == expected, "{schedule}");
        STREAMED.load(Ordering::Relaxed)
    }

    #[test]
    fn windows_are_streamed_only_where_none_is_met_twice() {
        let distinct = plan(|tuple| tuple * 77 % SLICES);
        let increasing = plan(|tuple| tuple * 5);
        let repeating = plan(|tuple| tuple * 77 % 40);
        for schedule in [
            Schedule::Serial,
            Schedule::ByColumn,
            Schedule::ByDestination,
        ] {
            assert_eq!(
                streamed(&distinct, schedule),
                TUPLES,
                "{schedule}: distinct"
            );
            assert_eq!(
                streamed(&increasing, schedule),
                TUPLES,
                "{schedule}: in order"
            );
            assert_eq!(streamed(&repeating, schedule), 0, "{schedule}: repeating");
        }
        assert_eq!(
            TWICE.load(Ordering::Relaxed),
            0,
            "not ordered with one another"
        );
    }
}
