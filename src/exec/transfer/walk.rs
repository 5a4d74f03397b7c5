//! Applies the windows of a tile in the order of its tuples. Only this module chooses between the
//! loops over single elements, over rows and over lists of jobs.

use super::super::one_value::OneValue;
use super::super::scratch::Scratch;
use super::super::thresholds::{STREAMED_RUN_BYTES, STREAMED_WINDOW_BYTES};
use super::super::tile::{LINE_BYTES, Part, Tile};
use super::super::workload::Direction;
use super::Transfer;
use crate::kernel::filter::Filtered;
use crate::kernel::{Elements, ElementsFn, RowsFn, RowsForm, Spread};
use crate::plan::{Destinations, Number, Span, signed};

/// Number of tuples whose positions in the updates are listed together, if tuples were skipped.
const LISTED_TUPLES: usize = 256;

/// Number of tuples whose values are collected together, if tuples were skipped.
const COLLECTED_TUPLES: usize = 1024;

/// A width of destination numbers, and the kernels for it.
pub(in super::super) trait Width: Number + Scratch + Filtered {
    /// Returns the kernel for single elements.
    fn kernel(elements: Elements) -> ElementsFn<Self>;
    /// Returns `numbers`, a list of destination numbers, with the type that kernels over rows
    /// require. `None`: kernels over rows do not support destination numbers of this width.
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

/// A list of tuples: the destination number of each, and its position in the plan's list.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TupleList<'l, N> {
    pub(in super::super) numbers: &'l [N],
    pub(in super::super) positions: Positions<'l>,
}

/// Positions of tuples in the plan's list.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Positions<'l> {
    /// Consecutive positions, from this one on.
    From(usize),
    /// One position per number.
    Each(&'l [u32]),
}

impl Transfer<'_> {
    /// Applies the windows of a tile in the order of its tuples. `streams`: whether windows that
    /// are long enough are written by streaming stores. Destinations must then be distinct.
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
                    // SAFETY: the tile has the windows of its tuples. `window` is cut to the
                    // columns of the tile. If windows are streamed, the caller has established that
                    // no two have one destination.
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

    /// Whether joining the windows of consecutive tuples pays: the average run becomes at least
    /// twice as long. Gathers do not join; the gain was not measured.
    fn joins(&self) -> bool {
        self.direction == Direction::Scatter
            && self.geometry.joins
            && self.plan.facts().breaks * 2 < self.plan.tuples()
    }

    /// Returns the kernels for single elements, if windows are single elements and their sources
    /// are contiguous or are one element.
    pub(in super::super) fn single_elements(&self) -> Option<Elements> {
        let elements = self.element_kernels()?;
        (self.source_step() == Some(1) || self.is_one_value()).then_some(elements)
    }

    /// Returns the kernels for single elements, if windows are single elements that are not joined.
    fn element_kernels(&self) -> Option<Elements> {
        let is_single = self.direction == Direction::Scatter
            && self.geometry.window.elements() == 1
            && !self.joins();
        self.kernels().apply_elements.filter(|_| is_single)
    }

    /// Whether all windows of the list are one window.
    pub(in super::super) fn is_one_value(&self) -> bool {
        self.geometry.source_step() == Some(0)
    }

    /// Whether the windows that destination numbers address span little enough memory to be in a
    /// cache soon.
    pub(super) fn is_near(&self) -> bool {
        self.plan.scale().bytes(self.kernels().size) <= self.access.context.variants.near_bytes
    }

    /// Whether rows of the list are worth a prefetch when they are not read in order.
    fn are_sources_far(&self, window: &Span) -> bool {
        let bytes = window.elements() * self.kernels().size;
        let updates = self.plan.tuples().saturating_mul(bytes) as u64;
        bytes > LINE_BYTES && updates >= self.access.context.variants.far_bytes
    }

    /// Whether windows are long enough to be streamed. A plain store would first read the old
    /// contents of their cache lines, in vain.
    fn is_streamed(&self, window: &Span) -> bool {
        let size = self.kernels().size;
        match self.direction {
            Direction::Scatter => window.elements() * size >= STREAMED_WINDOW_BYTES,
            Direction::Gather => window.run().size * size >= STREAMED_RUN_BYTES,
        }
    }

    /// Returns the kernel for rows, if windows are contiguous rows at a constant stride in the
    /// list. If tuples were skipped, only scatters have such a kernel.
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

    /// Applies the windows of a list of tuples in one repetition. `joins`: whether windows that are
    /// contiguous in the source and in the destination become one run.
    ///
    /// # Safety
    ///
    /// - `list.positions` are positions in the plan's list. The tuples at these positions have the
    ///   destination numbers `list.numbers`.
    /// - Nothing else reads or writes the windows of these tuples, of the form `window`, in the
    ///   repetition that begins at `origin` (see [`Tile`]).
    /// - If windows are written by streaming stores (`streams`), no two windows have one
    ///   destination.
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
            // SAFETY: the caller of `Transfer::new` vouches for the tensors, and the plan has
            // checked the numbers against their layout. `single_elements` has checked that windows
            // are single elements with contiguous sources or one source. The caller vouches that
            // nothing else accesses the windows.
            return unsafe {
                self.apply_elements(elements, list.numbers, written, source, self.is_near());
            };
        }
        if let Some((elements, listed)) = self.listed_elements() {
            // SAFETY: the caller guarantees what this call requires.
            return unsafe { self.apply_listed_elements(elements, listed, list, (written, read)) };
        }
        let streams = streams && self.is_streamed(window);
        if let (false, false, Some((kernel, form)), Some(numbers)) =
            (joins, streams, self.rows(window), N::for_rows(list.numbers))
        {
            // SAFETY: as above. `rows` has checked that windows are contiguous in the source and in
            // the destination.
            return unsafe {
                self.apply_rows(kernel, form, (numbers, list.positions), (written, read));
            };
        }
        // SAFETY: the caller guarantees what this call requires.
        unsafe { self.walk(list, window, origin, joins, streams) }
    }

    /// Applies rows whose tuples have `numbers`, at `positions` in the plan's list. `origin` has
    /// the offsets of window number 0 and of the first listed window.
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
            // SAFETY: the caller guarantees the rows of the tuples. `sources` has the position of
            // each tuple in the updates, or the tuples are contiguous from `first` on.
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

    /// Returns the position in the updates of each tuple of the plan's list, if tuples were skipped
    /// and positions have 32 bits.
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

    /// Returns the kernels for single elements and the position of each tuple in the updates, if
    /// windows are single elements with contiguous sources and tuples were skipped.
    pub(in super::super) fn listed_elements(&self) -> Option<(Elements, &[u32])> {
        let has_values =
            self.geometry.source_step() == Some(1) && matches!(self.kernels().size, 1 | 2 | 4 | 8);
        let elements = self.element_kernels().filter(|_| has_values)?;
        Some((elements, self.listed_positions()?))
    }

    /// Applies single elements whose values are not contiguous, because tuples were skipped. The
    /// values are first collected on the stack. `origin` has the offsets of window number 0 and of
    /// the first update.
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
                        // SAFETY: the updates have an element of this size at each position.
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
            // SAFETY: there is one value for each number, aligned for all types of at most 8 bytes.
            // The caller guarantees the windows.
            unsafe { self.apply_elements(elements, numbers, written, source, self.is_near()) };
        }
    }

    /// Applies single elements. Their sources are contiguous from `source` on, or all of them are
    /// the element at `source`.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_listed`] requires, with windows that are single
    /// elements. Window number 0 begins at the offset `written`. `source` has one element per
    /// number, or one element for all numbers.
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
        // SAFETY: the caller guarantees what this call requires.
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
        // SAFETY: the caller vouches for the windows that are pushed.
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
