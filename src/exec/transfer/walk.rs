//! Applies the windows of a tile in the order of its tuples. For each list of tuples, this module
//! chooses one of three loops: over single elements, over contiguous rows, or over lists of jobs
//! for all other windows.

use super::super::one_value::OneValue;
use super::super::scratch::Scratch;
use super::super::thresholds::{STREAMED_RUN_BYTES, STREAMED_WINDOW_BYTES};
use super::super::tile::{LINE_BYTES, Part, Tile};
use super::super::workload::Direction;
use super::Transfer;
use crate::kernel::filter::Filtered;
use crate::kernel::{Elements, ElementsFn, RowsFn, RowsForm, Spread};
use crate::plan::{Destinations, Number, Span, signed};

/// Number of tuples whose positions in the updates are collected on the stack for one call of a
/// kernel for rows, if tuples were skipped.
const LISTED_TUPLES: usize = 256;

/// Number of tuples whose values are collected on the stack for one call of a kernel for single
/// elements, if tuples were skipped.
const COLLECTED_TUPLES: usize = 1024;

/// Integer type of destination numbers (`u32` or `u64`), and the kernels for this type.
pub(in super::super) trait Width: Number + Scratch + Filtered {
    /// Returns the kernel for single elements with destination numbers of this type.
    fn kernel(elements: Elements) -> ElementsFn<Self>;
    /// Returns the destination numbers `numbers` as `u32`, the only type that kernels over rows
    /// support. Returns `None` for `u64`.
    fn for_rows(numbers: &[Self]) -> Option<&[u32]>;
}

impl Width for u32 {
    fn kernel(elements: Elements) -> ElementsFn<Self> {
        elements.u32
    }

    fn for_rows(numbers: &[Self]) -> Option<&[u32]> {
        Some(numbers)
    }
}

impl Width for u64 {
    fn kernel(elements: Elements) -> ElementsFn<Self> {
        elements.u64
    }

    fn for_rows(_: &[Self]) -> Option<&[u32]> {
        None
    }
}

/// A list of tuples: the destination number of each tuple, and the position of each tuple in the
/// plan's list.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TupleList<'l, N> {
    pub(in super::super) numbers: &'l [N],
    pub(in super::super) positions: Positions<'l>,
}

/// Positions of tuples in the plan's list.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Positions<'l> {
    /// Consecutive positions that begin at this position.
    From(usize),
    /// One position for each destination number.
    Each(&'l [u32]),
}

impl Transfer<'_> {
    /// Applies the windows of a tile in the order of its tuples. `streams` requests streaming
    /// stores for windows that are long enough. If `streams` is set, no two tuples may write the
    /// same window: the destinations of a scatter must be distinct.
    pub(in super::super) fn apply(&self, tile: &Tile, streams: bool) {
        match self.plan.destinations() {
            Destinations::Narrow(numbers) => self.apply_part(numbers, tile, streams),
            Destinations::Wide(numbers) => self.apply_part(numbers, tile, streams),
        }
    }

    fn apply_part<N: Width>(&self, numbers: &[N], tile: &Tile, streams: bool) {
        let cut = (tile.columns()).map(|columns| columns.of(&self.geometry.window));
        let window = cut.as_ref().unwrap_or(&self.geometry.window);
        match tile.part() {
            Part::Tuples(tuples) => {
                let list = TupleList {
                    numbers: &numbers[tuples.clone()],
                    positions: Positions::From(tuples.start),
                };
                let joins = cut.is_none() && self.joins();
                for repetition in tile.repetitions() {
                    let origin = self.geometry.repetition(repetition);
                    #[expect(unsafe_code, reason = "only one task has the tile")]
                    // SAFETY: no other task has the tile, so no other task accesses the windows
                    // that the tile writes. `window` has only the columns of the tile. If `streams`
                    // is set, the caller has established that no two tuples write the same window.
                    unsafe {
                        self.apply_listed(list, window, origin, joins, streams);
                    }
                }
            }
            Part::Destinations(range) => {
                self.apply_filtered(numbers, range, window, tile.repetitions(), streams);
            }
            Part::Sorted(_) => debug_assert!(
                false,
                "tiles of sorted tuples are not applied in the order of tuples"
            ),
        }
    }

    /// Whether windows of consecutive tuples are joined to one run. Joining pays if fewer than half
    /// of the tuples begin a new run. Gathers do not join, because the gain was not measured.
    fn joins(&self) -> bool {
        self.direction == Direction::Scatter
            && self.geometry.joins
            && self.plan.facts().breaks * 2 < self.plan.tuples()
    }

    /// Returns the kernels for single elements, under two conditions. The windows of a scatter are
    /// single elements that are not joined. The sources of the windows are contiguous or are all
    /// the same element.
    pub(in super::super) fn single_elements(&self) -> Option<Elements> {
        let elements = self.element_kernels()?;
        (self.source_step() == Some(1) || self.is_one_value()).then_some(elements)
    }

    /// Returns the kernels for single elements, if the windows of a scatter are single elements
    /// that are not joined.
    fn element_kernels(&self) -> Option<Elements> {
        let is_single = self.direction == Direction::Scatter
            && self.geometry.window.elements() == 1
            && !self.joins();
        self.kernels().apply_elements.filter(|_| is_single)
    }

    /// Whether the listed tensor has stride 0 between tuples. All tuples then have the same window
    /// of this tensor, for example one value for all updates.
    pub(in super::super) fn is_one_value(&self) -> bool {
        self.geometry.source_step() == Some(0)
    }

    /// Whether the windows of all destination numbers span at most `near_bytes` bytes. A cache
    /// holds such a region after the first tuples, so its windows are not prefetched.
    pub(super) fn is_near(&self) -> bool {
        self.plan.scale().bytes(self.kernels().size) <= self.access.context.variants.near_bytes
    }

    /// Whether prefetching the rows of the listed tensor pays, if these rows are not read in order.
    /// Each row must be longer than a cache line, and all rows together must have at least
    /// `far_bytes` bytes.
    fn are_sources_far(&self, window: &Span) -> bool {
        let bytes = window.elements() * self.kernels().size;
        let updates = self.plan.tuples().saturating_mul(bytes) as u64;
        bytes > LINE_BYTES && updates >= self.access.context.variants.far_bytes
    }

    /// Whether the window of a scatter, or a run of a gather's window, is long enough for streaming
    /// stores. An ordinary store first reads the old contents of a cache line, although the window
    /// overwrites them.
    fn is_streamed(&self, window: &Span) -> bool {
        let size = self.kernels().size;
        match self.direction {
            Direction::Scatter => window.elements() * size >= STREAMED_WINDOW_BYTES,
            Direction::Gather => window.run().size * size >= STREAMED_RUN_BYTES,
        }
    }

    /// Returns the kernel for rows, and the placement of the rows. Windows must be contiguous rows,
    /// and the listed tensor must have a constant stride between tuples. Gathers that skip tuples
    /// or multiply by a factor have no such kernel.
    fn rows(&self, window: &Span) -> Option<(RowsFn, RowsForm<'static>)> {
        let kernel = match self.direction {
            Direction::Scatter => self.kernels().apply_rows,
            Direction::Gather if self.access.operation.multiplying.is_some() => None,
            Direction::Gather => self.kernels().gather_rows,
        };
        let has_positions =
            self.direction == Direction::Scatter && self.listed_positions().is_some();
        if !(self.plan.skips_none() || has_positions) {
            return None;
        }
        let is_near = self.is_near();
        let form = RowsForm {
            unit: self.geometry.unit,
            step: self.geometry.source_step()?,
            len: window.run().size,
            sources: None,
            is_near,
            prefetches_sources: !is_near || self.are_sources_far(window),
        };
        let kernel = kernel.filter(|_| window.is_row())?;
        Some((kernel, form))
    }

    /// Applies the windows of a list of tuples in one repetition. If `joins` is set, consecutive
    /// windows that are contiguous in the source and in the destination become one run.
    ///
    /// # Safety
    ///
    /// - `list.positions` are positions in the plan's list. `list.numbers` are the destination
    ///   numbers of the tuples at these positions.
    /// - `window` is the form of the tuples' windows. `origin` has the offsets of the repetition.
    ///   During the call, nothing else writes the windows that are read, and nothing else reads or
    ///   writes the windows that are written (see [`Tile`]).
    /// - If `streams` is set, no two tuples write the same window.
    #[expect(unsafe_code, reason = "passes elements and rows directly to a kernel")]
    pub(in super::super) unsafe fn apply_listed<N: Width>(
        &self,
        list: TupleList<'_, N>,
        window: &Span,
        origin: (isize, isize),
        joins: bool,
        streams: bool,
    ) {
        let (written, read) = (window.dst + origin.0, window.src + origin.1);
        let first = match list.positions {
            _ if self.is_one_value() => Some(0),
            Positions::From(first) => Some(first.cast_signed()),
            Positions::Each(_) => None,
        };
        if let (Some(elements), Some(first)) = (self.single_elements(), first) {
            let source = self.access.read_at(read + first);
            // SAFETY: the caller of `Transfer::new` guarantees that the tensors are valid, and the
            // plan has checked the destination numbers against their layout. The method
            // `single_elements` has checked that windows are single elements with contiguous
            // sources or one source. The caller guarantees that nothing else accesses the written
            // windows.
            return unsafe {
                self.apply_elements(elements, list.numbers, written, source, self.is_near());
            };
        }
        if let Some((elements, listed)) = self.listed_elements() {
            // SAFETY: the caller guarantees that nothing else writes the read windows or accesses
            // the written windows, as `apply_listed` requires. `listed_elements` has returned
            // `elements` and `listed`.
            return unsafe { self.apply_listed_elements(elements, listed, list, (written, read)) };
        }
        let streams = streams && self.is_streamed(window);
        if let (false, false, Some((kernel, form)), Some(numbers)) =
            (joins, streams, self.rows(window), N::for_rows(list.numbers))
        {
            // SAFETY: the caller guarantees that nothing else writes the read windows or accesses
            // the written windows, as `apply_listed` requires. The method `rows` has returned
            // `kernel` and `form` after it checked that windows are contiguous in the source and in
            // the destination.
            return unsafe {
                self.apply_rows(kernel, form, (numbers, list.positions), (written, read));
            };
        }
        // SAFETY: the caller guarantees that nothing else writes the read windows or accesses the
        // written windows, as `apply_listed` requires.
        unsafe { self.walk(list, window, origin, joins, streams) }
    }

    /// Applies contiguous rows. Their tuples have the destination numbers `numbers`, and the
    /// positions `positions` in the plan's list. `origin` has an offset in the written tensor, then
    /// an offset in the read tensor. In the numbered tensor, this is the offset of window number 0.
    /// In the listed tensor, this is the offset of the first window.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_listed`] requires. [`Self::rows`] has returned
    /// `kernel` and `form` for the window.
    #[expect(unsafe_code, reason = "passes rows directly to a kernel")]
    unsafe fn apply_rows(
        &self,
        kernel: RowsFn,
        form: RowsForm<'_>,
        (numbers, positions): (&[u32], Positions<'_>),
        origin: (isize, isize),
    ) {
        let apply = |numbers: &[u32], first: usize, sources: Option<&[u32]>| {
            let first = first.cast_signed() * form.step;
            let (dst, src) = self.placed(0, first, origin);
            let (dst, src) = (self.access.written_at(dst), self.access.read_at(src));
            let form = RowsForm { sources, ..form };
            // SAFETY: the caller guarantees that the read rows of the tuples can be read, that the
            // written rows can be written, and that nothing else accesses the written rows. The
            // field `sources` has the position of each tuple in the listed tensor. If `sources` is
            // `None`, the positions are consecutive, and `src` is the address of the first row.
            unsafe { kernel(dst, src, numbers, form) };
        };
        let listed = self.listed_positions();
        match (listed, positions) {
            (None, Positions::From(first)) => apply(numbers, first, None),
            (None, Positions::Each(positions)) => apply(numbers, 0, Some(positions)),
            (Some(listed), Positions::From(first)) => {
                apply(numbers, 0, Some(&listed[first..first + numbers.len()]));
            }
            (Some(listed), Positions::Each(positions)) => {
                let mut sources = [0_u32; LISTED_TUPLES];
                let blocks = numbers.chunks(LISTED_TUPLES);
                for (numbers, positions) in blocks.zip(positions.chunks(LISTED_TUPLES)) {
                    for (source, &position) in sources.iter_mut().zip(positions) {
                        *source = listed[position as usize];
                    }
                    apply(numbers, 0, Some(&sources[..numbers.len()]));
                }
            }
        }
    }

    /// Returns the position in the updates of each tuple of the plan's list. Returns `None` if no
    /// tuple was skipped, or if positions have 64 bits.
    pub(in super::super) fn listed_positions(&self) -> Option<&[u32]> {
        let listed = self.plan.positions().and_then(Destinations::narrow);
        debug_assert!(
            listed.is_none_or(|listed| listed
                .first()
                .is_none_or(|&position| { self.plan.tuple_at(0) == position as usize })),
            "the list begins behind the first tuple"
        );
        listed
    }

    /// Returns the kernels for single elements, and the position of each tuple in the updates.
    /// Returns `None` unless tuples were skipped, the updates are contiguous, and the windows of a
    /// scatter are single elements of 1, 2, 4 or 8 bytes that are not joined.
    pub(in super::super) fn listed_elements(&self) -> Option<(Elements, &[u32])> {
        let has_values =
            self.geometry.source_step() == Some(1) && matches!(self.kernels().size, 1 | 2 | 4 | 8);
        let elements = self.element_kernels().filter(|_| has_values)?;
        Some((elements, self.listed_positions()?))
    }

    /// Applies single elements of a plan that skipped tuples. Their values are not contiguous in
    /// the updates, so they are first collected on the stack. The argument `written` is the offset
    /// of window number 0 in the output. The argument `read` is the offset of the first update.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_listed`] requires. [`Self::listed_elements`] has
    /// returned `elements` and `listed`.
    #[expect(unsafe_code, reason = "reads values at their positions")]
    #[inline(never)]
    unsafe fn apply_listed_elements<N: Width>(
        &self,
        elements: Elements,
        listed: &[u32],
        list: TupleList<'_, N>,
        (written, read): (isize, isize),
    ) {
        let (source, size) = (self.access.read_at(read), self.kernels().size);
        let mut values = [0_u64; COLLECTED_TUPLES];
        for (block, numbers) in list.numbers.chunks(COLLECTED_TUPLES).enumerate() {
            let block = block * COLLECTED_TUPLES;
            let position = |tuple: usize| match list.positions {
                Positions::From(first) => listed[first + block + tuple] as usize,
                Positions::Each(positions) => listed[positions[block + tuple] as usize] as usize,
            };
            macro_rules! collect {
                ($bytes:literal) => {{
                    let source = source.cast::<[u8; $bytes]>();
                    let values = bytemuck::cast_slice_mut::<_, [u8; $bytes]>(&mut values);
                    for (tuple, value) in values[..numbers.len()].iter_mut().enumerate() {
                        // SAFETY: `position` returns a position in the updates, whose elements have
                        // this size.
                        *value = unsafe { *source.add(position(tuple)) };
                    }
                }};
            }
            match size {
                1 => collect!(1),
                2 => collect!(2),
                4 => collect!(4),
                _ => collect!(8),
            }
            let source = values.as_ptr().cast();
            // SAFETY: `source` has one value for each of `numbers`, and is aligned for all types of
            // at most 8 bytes. The caller guarantees that the written windows are in the output and
            // that nothing else accesses them.
            unsafe { self.apply_elements(elements, numbers, written, source, self.is_near()) };
        }
    }

    /// Applies single elements. If all tuples have one value, `source` is its address. Otherwise
    /// the values are contiguous, and `source` is the address of the first value.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_listed`] requires, for windows that are single
    /// elements. In the output, window number 0 begins at the offset `written`. At `source` there
    /// is one element for each of `numbers`, or one element if all tuples have one value.
    #[expect(unsafe_code, reason = "passes single elements directly to a kernel")]
    pub(in super::super) unsafe fn apply_elements<N: Width>(
        &self,
        elements: Elements,
        numbers: &[N],
        written: isize,
        source: *const u8,
        is_near: bool,
    ) {
        let spread = Spread {
            scale: self.geometry.unit,
            is_near,
        };
        let (kernel, dst) = (N::kernel(elements), self.access.written_at(written));
        // SAFETY: the caller guarantees that `source` has the elements to read, that the
        // destinations of `numbers` are in the output, and that nothing else accesses these
        // destinations.
        unsafe {
            if self.is_one_value() {
                let size = self.kernels().size;
                OneValue::apply_once(kernel, size, dst, source, numbers, spread);
            } else {
                kernel(dst, source, numbers, spread);
            }
        }
    }

    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_listed`] requires.
    #[expect(unsafe_code, reason = "fills a sink")]
    unsafe fn walk<N: Width>(
        &self,
        list: TupleList<'_, N>,
        window: &Span,
        origin: (isize, isize),
        joins: bool,
        streams: bool,
    ) {
        // SAFETY: the caller guarantees that the windows of the tuples are in the tensors, that
        // nothing else writes the read windows, and that nothing else accesses the written windows.
        let mut sink = unsafe { self.window_sink(self.kernels().apply, window, streams) };
        let numbers = list.numbers.iter().map(|number| number.get());
        let window_at = |(number, position)| self.window_at(number, position, origin);
        match (list.positions, self.source_step()) {
            (Positions::From(first), Some(step)) if joins => {
                let (unit, len) = (self.geometry.unit, window.run().size);
                let follows = |before: &N, after: &N| before.get().wrapping_add(1) == after.get();
                let mut first = first.cast_signed();
                for joined in list.numbers.chunk_by(follows) {
                    let number = signed(joined[0].get());
                    let (dst, src) = self.placed(number * unit, first * step, origin);
                    sink.push_run(dst, src, joined.len() * len);
                    first += joined.len().cast_signed();
                }
            }
            (Positions::From(first), None) if joins => {
                for (dst, src) in numbers.zip(first..).map(window_at) {
                    sink.push_joined(dst, src);
                }
            }
            (Positions::From(first), Some(step)) => {
                let unit = self.geometry.unit;
                sink.push_all(numbers.zip(first..).map(|(number, tuple)| {
                    self.placed(signed(number) * unit, tuple.cast_signed() * step, origin)
                }));
            }
            (Positions::From(first), None) => sink.push_all(numbers.zip(first..).map(window_at)),
            (Positions::Each(positions), _) => {
                let positions = positions.iter().map(|&position| position as usize);
                sink.push_all(numbers.zip(positions).map(window_at));
            }
        }
        sink.finish();
    }
}
