//! Walks the tuples of a tile in order and applies their windows.

use std::ops::Range;

use super::Call;
use super::choose::{NEAR_BYTES, STREAMED_WINDOW_BYTES};
use super::sink::Sink;
use super::tile::Tile;
use crate::kernel::{Elements, ElementsFn, Rows, RowsFn, Spread};
use crate::plan::{Destinations, Number, Span, signed};

/// Tuples that are filtered together, without a branch on each.
const FILTER_BLOCK: usize = 128;

impl Call<'_> {
    /// Applies the updates of a tile, in the order of its tuples.
    pub(super) fn apply(&self, tile: &Tile) {
        let part;
        let window = match &tile.columns {
            Some(columns) => {
                part = columns.of(&self.geometry.window);
                &part
            }
            None => &self.geometry.window,
        };
        for number in tile.outer.clone() {
            let origin = self.geometry.repetition(number);
            if tile.columns.is_none() && tile.numbers.is_none() {
                match self.single_elements() {
                    Some(elements) => self.apply_elements(elements, origin, tile.tuples.clone()),
                    None => self.apply_windows(window, origin, tile),
                }
            } else {
                self.apply_windows(window, origin, tile);
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
        self.row.apply_elements.filter(|_| is_single)
    }

    fn apply_elements(&self, elements: Elements, origin: (isize, isize), tuples: Range<usize>) {
        match self.plan.destinations() {
            Destinations::Narrow(numbers) => {
                self.apply_numbers(elements.u32, &numbers[tuples.clone()], origin, tuples.start);
            }
            Destinations::Wide(numbers) => {
                self.apply_numbers(elements.u64, &numbers[tuples.clone()], origin, tuples.start);
            }
        }
    }

    fn apply_numbers<N: Number>(
        &self,
        kernel: ElementsFn<N>,
        numbers: &[N],
        (dst, src): (isize, isize),
        first: usize,
    ) {
        let window = &self.geometry.window;
        let dst = self.output_at(window.dst + dst);
        let src = self.updates_at(window.src + src + first.cast_signed());
        #[expect(unsafe_code, reason = "single elements go straight to the kernel")]
        // SAFETY: `Call::new` vouches for the buffers; the plan has checked the
        // destinations against the output's layout; `single_elements` has found
        // one element a window and sources side by side; no other task has a
        // tile with these elements.
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
                    let numbers = &numbers[tile.tuples.clone()];
                    self.apply_rows(kernel, rows, numbers, window, origin, tile.tuples.start);
                }
                None => self.walk(numbers, window, origin, tile),
            },
            Destinations::Wide(numbers) => self.walk(numbers, window, origin, tile),
        }
    }

    /// Whether windows are long enough to pass the caches by where they should
    /// ([`Workload::passes_caches`](super::workload::Workload::passes_caches)):
    /// to read what is there into the caches first would be for nothing.
    fn streams_windows(&self, window: &Span) -> bool {
        window.elements() * self.row.size >= STREAMED_WINDOW_BYTES
            && self.workload().passes_caches()
    }

    /// The loop over rows, where the windows of a tile are rows whose sources
    /// are evenly spaced and whose destinations need no selection.
    fn rows(&self, window: &Span, tile: &Tile) -> Option<(RowsFn, Rows<'_>)> {
        let joined = tile.columns.is_none() && self.joins();
        let selects = joined || tile.numbers.is_some();
        self.evenly_spaced(window).filter(|_| !selects)
    }

    /// The loop over rows, where windows are rows whose sources are evenly
    /// spaced.
    pub(super) fn evenly_spaced(&self, window: &Span) -> Option<(RowsFn, Rows<'static>)> {
        let rows = Rows {
            unit: self.geometry.unit,
            step: self.source_step()?,
            len: window.run().size,
            sources: None,
            is_near: self.workload().region_bytes() <= NEAR_BYTES,
        };
        let kernel = self.row.apply_rows.filter(|_| window.is_row());
        kernel.map(|kernel| (kernel, rows))
    }

    /// Rows of updates from number `first` on; where `rows` lists them, its
    /// list counts from there.
    pub(super) fn apply_rows(
        &self,
        kernel: RowsFn,
        rows: Rows<'_>,
        numbers: &[u32],
        window: &Span,
        (dst, src): (isize, isize),
        first: usize,
    ) {
        let dst = self.output_at(window.dst + dst);
        let src = self.updates_at(window.src + src + first.cast_signed() * rows.step);
        #[expect(unsafe_code, reason = "rows go straight to the kernel")]
        // SAFETY: `Call::new` vouches for the buffers; the plan has checked the
        // destinations against the output's layout; `evenly_spaced` has found
        // windows that are contiguous on both sides; listed sources are numbers
        // of tuples, one for each destination; tiles share no element.
        unsafe {
            kernel(dst, src, numbers, rows);
        }
    }

    fn walk<N: Number>(&self, numbers: &[N], window: &Span, origin: (isize, isize), tile: &Tile) {
        let kernel = self.streaming(self.row.apply, window, self.streams_windows(window));
        let mut sink = self.updates_sink(kernel, window);
        let whole_windows = tile.columns.is_none();
        if let Some(range) = &tile.numbers {
            self.walk_filtered(numbers, range.clone(), origin, &mut sink);
        } else if whole_windows && self.joins() {
            for tuple in tile.tuples.clone() {
                let (dst, src) = self.window_at(numbers[tuple].get(), tuple, origin);
                sink.push_joined(dst, src);
            }
        } else {
            let tuples = numbers[tile.tuples.clone()].iter().zip(tile.tuples.clone());
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

    /// A sink for windows of updates. Whoever pushes to it pushes windows of
    /// its own tile, at offsets from [`Call::window_at`].
    pub(super) fn updates_sink<'s>(
        &self,
        kernel: crate::kernel::RunsFn,
        window: &'s Span,
    ) -> Sink<'s> {
        let (dst, src) = (self.output_at(0), self.updates_at(0));
        #[expect(unsafe_code, reason = "the one sink from updates to the output")]
        // SAFETY: `Call::new` vouches for the buffers; windows lie inside the
        // output because the plan has checked every destination against the
        // layout it is bound to, and inside the updates because their shape is
        // the plan's; tiles share no element of the output.
        unsafe {
            Sink::new(kernel, self.row.size, dst, src, window)
        }
    }

    /// Address `elements` away from element `[0, 0, ...]` of the output.
    pub(super) fn output_at(&self, elements: isize) -> *mut u8 {
        let bytes = elements * self.row.size.cast_signed();
        self.buffers.output.cast::<u8>().wrapping_offset(bytes)
    }

    /// Address of the update of tuple `first`, where windows are single
    /// elements whose sources lie side by side and there is one repetition.
    pub(super) fn single_source(&self, first: usize) -> *const u8 {
        let (_, src) = self.geometry.repetition(0);
        self.updates_at(self.geometry.window.src + src + first.cast_signed())
    }

    pub(super) fn updates_at(&self, elements: isize) -> *const u8 {
        let bytes = elements * self.row.size.cast_signed();
        self.buffers.updates.wrapping_offset(bytes)
    }
}
