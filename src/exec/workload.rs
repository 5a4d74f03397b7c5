//! The workload of a transfer: its sizes and facts, as plain numbers. Schedules are chosen from
//! these numbers.
//!
//! This module knows what a call moves. It knows nothing of addresses, of workers, and of the
//! schedules that the choice compares.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::context::Context;
use super::division::Division;
use super::sample::Sample;
use super::thresholds::{
    DENSE, MANY_WINDOWS, MOST_PIECES, PARALLEL_BYTES, PIECE_BYTES, SMALL_CALL_BYTES, SPARSE,
    STREAMED_DETECTION_BYTES, STREAMED_WINDOW_BYTES, WINDOWS_PER_DESTINATION,
};
use super::tile::{Cuts, LINE_BYTES, can_be_cut};
use crate::kernel::Operation;
use crate::machine::Variants;
use crate::plan::{CopyGeometry, Destinations, Geometry, IndexPlan, Slot};

/// The direction in which elements move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the windows of the listed tensor to the windows of the numbered tensor. The listed
    /// tensor has one window per tuple, in the order of the tuples: the updates of a scatter, or
    /// the output of a gather. Destination numbers address the windows of the numbered tensor: the
    /// output of a scatter, or the data of a gather.
    Scatter,
    /// From the windows of the numbered tensor to the windows of the listed tensor.
    Gather,
}

/// The known order of the destination numbers in the list of tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Each destination number is greater than the previous number.
    Increasing,
    /// No destination number is less than the previous number.
    Ascending,
    /// The order is not known.
    Unordered,
}

/// Whether the operation can, or must, be applied group by group. A group has all tuples of one
/// destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    Impossible,
    Possible,
    Needed,
}

/// The sizes and facts of one transfer.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    pub(super) direction: Direction,
    pub(super) in_place: bool,
    /// Number of applied tuples, and number of repetitions. Each repetition applies all these
    /// tuples.
    pub(super) tuples: usize,
    pub(super) repetitions: usize,
    pub(super) element_bytes: usize,
    pub(super) window_elements: usize,
    /// Most parts that a window can be cut into.
    pub(super) columns: usize,
    /// Bytes of data that are copied to the output.
    pub(super) copied_bytes: usize,
    /// Destination numbers are below `slices`. The windows of all destinations spread over
    /// `region_bytes` bytes.
    pub(super) slices: u64,
    pub(super) region_bytes: u64,
    pub(super) order: Order,
    /// Whether destinations are known to be distinct, and the bytes of scratch memory for
    /// detecting duplicates.
    pub(super) known_distinct: bool,
    pub(super) detection_bytes: usize,
    /// Number of strands: equal parts of the list that share no destination, whatever the
    /// indices.
    pub(super) strands: usize,
    /// Whether updates replace the existing values. Whether a reduction of these elements
    /// requires several machine instructions.
    pub(super) replaces: bool,
    pub(super) is_heavy: bool,
    /// Number of runs of a window, and whether most windows are contiguous with the window of the
    /// previous tuple in the source and in the destination.
    pub(super) runs: usize,
    pub(super) joins: bool,
    /// Number of tuples whose window is not contiguous with the window of the previous tuple.
    pub(super) breaks: usize,
    /// Whether the detection of duplicates requires a sort.
    pub(super) looks_by_sort: bool,
    pub(super) grouping: Grouping,
    /// Whether there are streaming stores for these elements.
    pub(super) can_stream: bool,
    /// Whether slices can be copied one by one: each slice of the output has its slice of data,
    /// and slices of data begin at a constant stride.
    pub(super) has_slices: bool,
    /// Whether partial results in private copies can be merged to the bits of the reference
    /// loop. Windows must be rows, destinations and sources must have constant strides, and the
    /// operation must allow it.
    pub(super) can_merge: bool,
    pub(super) context: Context,
    pub(super) destinations: &'a Destinations,
    /// Sample of the destinations. The sample is taken at its first use. All executions of a plan
    /// have the same sample.
    pub(super) sample: OnceCell<Cow<'a, Sample>>,
    /// Slot in which a kept plan stores the sample.
    pub(super) sample_slot: Option<&'a Slot>,
}

/// Sizes that determine the time of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Number of windows of all tuples in all repetitions, and bytes of one window.
    pub(crate) windows: usize,
    pub(crate) window_bytes: usize,
    /// Bytes of data that are copied to the output first.
    pub(crate) copied_bytes: usize,
}

impl Sizes {
    /// Returns the bytes of all windows and of copied data.
    fn moved_bytes(self) -> usize {
        (self.windows.saturating_mul(self.window_bytes)).saturating_add(self.copied_bytes)
    }

    /// Returns the bytes that are read or written. A window counts as its number of bytes, but at
    /// least as one cache line. Copied data counts twice: as bytes read and as bytes written.
    #[inline(always)]
    fn touched_bytes(self) -> usize {
        (self.windows)
            .saturating_mul(self.window_bytes.max(LINE_BYTES))
            .saturating_add(self.copied_bytes.saturating_mul(2))
    }

    /// Whether a transfer touches so few bytes that setting up a schedule is not worth its cost.
    #[inline(always)] // On the path of small calls.
    pub(crate) fn touch_little(self) -> bool {
        self.touched_bytes() < SMALL_CALL_BYTES
    }

    /// Whether a transfer is so short that the choice of a schedule is not worth its cost. For a
    /// gather, a window counts as its number of bytes, without the minimum of one cache line, and
    /// copied data counts once (not measured).
    pub(crate) fn are_small(self, direction: Direction) -> bool {
        match direction {
            Direction::Scatter => self.touch_little(),
            Direction::Gather => self.moved_bytes() < SMALL_CALL_BYTES,
        }
    }
}

impl<'a> Workload<'a> {
    /// Returns the workload of a transfer. `copy` describes the data that is copied to the output,
    /// and is `None` for a call in place.
    pub(crate) fn new(
        direction: Direction,
        plan: &'a IndexPlan,
        geometry: &Geometry,
        copy: Option<&CopyGeometry>,
        operation: &Operation,
        context: Context,
    ) -> Self {
        let (scale, facts, kernels) = (plan.scale(), plan.facts(), operation.kernels);
        let window = &geometry.window;
        let repetitions = geometry.outer.elements();
        Self {
            direction,
            in_place: copy.is_none(),
            tuples: plan.tuples(),
            repetitions,
            element_bytes: kernels.size,
            window_elements: window.elements(),
            columns: match window.dims.iter().map(|dim| dim.size).max() {
                Some(longest) if can_be_cut(window) => longest.max(1),
                _ => 1,
            },
            copied_bytes: copy.map_or(0, |copy| copy.whole.elements() * kernels.size),
            slices: scale.count,
            region_bytes: scale.bytes(kernels.size),
            order: match (facts.increasing, facts.ordered) {
                (true, _) => Order::Increasing,
                (_, true) => Order::Ascending,
                _ => Order::Unordered,
            },
            known_distinct: plan.is_known_unique(),
            detection_bytes: plan.detection_bytes(),
            strands: plan.strands(),
            replaces: kernels.replaces,
            is_heavy: operation.is_heavy(),
            runs: window.runs(),
            joins: geometry.joins && facts.breaks * 2 < plan.tuples(),
            breaks: facts.breaks,
            looks_by_sort: plan.detects_by_sort(),
            grouping: match operation.group {
                _ if operation.needs_groups => Grouping::Needed,
                None => Grouping::Impossible,
                Some(_) => Grouping::Possible,
            },
            can_stream: kernels.stream.is_some(),
            has_slices: copy.is_some_and(|copy| {
                copy.slices.is_some() && copy.outer.elements() == repetitions && plan.is_whole()
            }),
            can_merge: scale.numbers_slices
                && window.is_row()
                && geometry.source_step().is_some()
                && plan.skips_none()
                && operation.private().is_some(),
            context,
            destinations: plan.destinations(),
            sample: OnceCell::new(),
            sample_slot: context.is_kept.then_some(&plan.sample),
        }
    }

    /// Returns the bytes of one window.
    pub(super) fn window_bytes(&self) -> usize {
        self.window_elements.saturating_mul(self.element_bytes)
    }

    /// Returns the number of windows of all tuples in all repetitions.
    pub(super) fn windows(&self) -> usize {
        self.tuples.saturating_mul(self.repetitions)
    }

    /// Returns the bytes of all windows.
    pub(super) fn applied_bytes(&self) -> usize {
        self.windows().saturating_mul(self.window_bytes())
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            windows: self.windows(),
            window_bytes: self.window_bytes(),
            copied_bytes: self.copied_bytes,
        }
    }

    /// Returns the bytes of all windows and of copied data.
    pub(crate) fn bytes(&self) -> usize {
        self.sizes().moved_bytes()
    }

    /// Returns the number of pieces into which each task of a division cuts its part.
    pub(super) fn pieces(&self, division: Division) -> usize {
        match division.tasks() {
            1 => 1,
            tasks => (self.bytes() / tasks / PIECE_BYTES).clamp(1, MOST_PIECES),
        }
    }

    /// Whether the copy of data is large enough for all workers, even if one worker then applies
    /// the updates.
    pub(super) fn copies_much(&self) -> bool {
        self.copied_bytes.saturating_mul(2) >= PARALLEL_BYTES
    }

    /// Returns the sample of the destinations.
    pub(super) fn sample(&self) -> &Sample {
        let unit = self.region_bytes / self.slices.max(1);
        (self.sample).get_or_init(|| sample_of(self.destinations, unit, self.sample_slot))
    }

    /// Returns the places at which to cut the ranges of a division into about equal work. Returns
    /// `None` if even ranges are good enough. Also returns `None` for a division without ranges of
    /// destinations.
    pub(super) fn cuts(&self, division: Division) -> Option<Cuts> {
        let Division::Destinations { parts, .. } = division else {
            return None;
        };
        let work = [self.copied_bytes, self.applied_bytes()];
        self.sample().cuts(parts, self.slices, work)
    }

    /// Whether duplicates are certain: the sample has some, or there are more tuples than
    /// slices.
    pub(super) fn has_duplicates(&self) -> bool {
        self.tuples as u64 > self.slices || self.sample().has_duplicates()
    }

    /// Returns the estimated number of distinct destinations.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn distinct(&self) -> f64 {
        match self.known_distinct {
            true => self.tuples as f64,
            false => self.sample().distinct(self.tuples, self.slices),
        }
    }

    /// Whether a large output is mostly copied. The copy then uses streaming stores, and updates
    /// replace at most a fraction `1 / SPARSE` of the copied bytes.
    pub(super) fn is_sparse(&self) -> bool {
        let (copied, applied) = (self.copied_bytes, self.applied_bytes());
        let replaced = self.replaces || applied == 0;
        replaced && self.streams(copied) && applied <= copied / SPARSE
    }

    /// Returns the variants of kernels for this call. The result prefetches no window of a scatter
    /// whose windows need no prefetch although their region is large.
    pub(super) fn prefetch_variants(&self, mut variants: Variants) -> Variants {
        let is_far = self.region_bytes > variants.near_bytes;
        if self.direction == Direction::Scatter && is_far && self.needs_no_prefetch(variants) {
            variants.near_bytes = u64::MAX;
        }
        variants
    }

    /// Whether windows in a large region need no prefetch. Windows need no prefetch in three cases.
    ///
    /// - Windows have at most one cache line, and their region is not very large.
    /// - There are few destinations, which are soon in a cache. On a Xeon (Skylake), sums of
    ///   integers into 80 Mi places of 16 bytes, one of them frequent, took three times as long
    ///   with prefetches.
    /// - Windows are ordered, and many windows begin in the cache line of the previous window. On
    ///   Zen 4, the time of calls with such windows was, without prefetching, 0.4 to 0.9 times the
    ///   time with prefetching. For windows with one or two cache lines between them, the ratio of
    ///   the same two times was 1.0 to 1.7, so these windows are prefetched.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn needs_no_prefetch(&self, variants: Variants) -> bool {
        let window = self.window_bytes();
        let written = || self.distinct() * window.max(LINE_BYTES) as f64;
        let is_dense =
            || self.order != Order::Unordered && self.sample().neighbours.in_line >= DENSE;
        (window <= LINE_BYTES && self.region_bytes <= variants.near_short_bytes)
            || written() <= variants.near_bytes as f64
            || is_dense()
    }

    /// Whether a step that writes `bytes` bytes, each once, uses streaming stores.
    pub(super) fn streams(&self, bytes: usize) -> bool {
        bytes as u64 >= self.context.variants.stream_bytes
    }

    /// Whether windows are beyond the caches. Out of place, windows are beyond the caches after a
    /// copy of data with streaming stores. In place, windows are beyond the caches if they are
    /// large in total and are spread over a much larger region.
    fn is_beyond_caches(&self) -> bool {
        let written = self.bytes();
        let is_large_in_place = self.in_place
            && self.replaces
            && self.streams(written)
            && self.region_bytes / SPARSE as u64 >= written as u64;
        is_large_in_place || self.is_sparse()
    }

    /// Returns whether windows that are written in the order of tuples are streamed. Streaming
    /// stores are not ordered with one another, so destinations must be distinct. Duplicates are
    /// detected if the detection costs less than streaming gains.
    pub(super) fn streaming(&self) -> Streaming {
        let is_gather = self.direction == Direction::Gather;
        let pays = if is_gather {
            self.streams(self.bytes())
        } else {
            self.can_stream
                && self.window_bytes() >= STREAMED_WINDOW_BYTES
                && self.is_beyond_caches()
        };
        match pays {
            true if is_gather || self.known_distinct => Streaming::Always,
            true if self.detection_bytes <= STREAMED_DETECTION_BYTES => Streaming::IfDistinct,
            _ => Streaming::Never,
        }
    }

    /// Returns the bytes of one worker's private copy of all windows.
    pub(super) fn copy_bytes(&self) -> u64 {
        self.slices.saturating_mul(self.window_bytes() as u64)
    }
}

/// Returns a sample of the destinations. Neighbouring destination numbers are `unit` bytes apart.
///
/// A kept plan stores the sample in `slot`, because reading each sampled tuple may cost a cache
/// miss.
fn sample_of<'a>(
    destinations: &Destinations,
    unit: u64,
    slot: Option<&'a Slot>,
) -> Cow<'a, Sample> {
    let taken = || Sample::new(destinations, unit);
    let kept = slot.and_then(|slot| slot.get().or_else(|| slot.get_or_put(taken())));
    match kept.filter(|sample| sample.unit == unit) {
        Some(sample) => Cow::Borrowed(sample),
        None => Cow::Owned(taken()),
    }
}

/// Whether a kept plan has [`WINDOWS_PER_DESTINATION`] windows for each destination. A call that
/// moves only the last window of each destination is then faster.
#[inline]
pub(crate) fn is_mostly_overwritten(
    plan: &IndexPlan,
    operation: &Operation,
    windows: usize,
) -> bool {
    operation.kernels.replaces
        && windows >= MANY_WINDOWS
        && !plan.is_known_unique()
        && has_few_destinations(plan, operation)
}

#[inline(never)]
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn has_few_destinations(plan: &IndexPlan, operation: &Operation) -> bool {
    let (tuples, scale) = (plan.tuples(), plan.scale());
    let taken = || {
        let unit = scale.bytes(operation.kernels.size) / scale.count.max(1);
        sample_of(plan.destinations(), unit, Some(&plan.sample))
    };
    // The number of destinations does not depend on the size of elements.
    let sample = (plan.sample.get()).map_or_else(taken, Cow::Borrowed);
    let distinct = sample.distinct(tuples, scale.count);
    distinct * WINDOWS_PER_DESTINATION as f64 <= tuples as f64
}

/// Whether windows are written by streaming stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Never,
    /// Windows are streamed if a detection before the first write finds no duplicates.
    IfDistinct,
    Always,
}

/// Workloads for the tests of the choice and of the cost model.
#[cfg(test)]
pub(super) mod fixtures {
    use std::cell::OnceCell;

    use super::{Direction, Grouping, Order, Workload};
    use crate::exec::context::Context;
    use crate::plan::Destinations;

    /// Sums of unordered rows of 64 `f32` into a table of 169343 rows.
    pub(in super::super) fn sums(destinations: &Destinations) -> Workload<'_> {
        let slices = 169_343;
        Workload {
            direction: Direction::Scatter,
            in_place: true,
            tuples: 1_166_243,
            repetitions: 1,
            element_bytes: 4,
            window_elements: 64,
            columns: 64,
            copied_bytes: 0,
            slices,
            region_bytes: slices * 256,
            order: Order::Unordered,
            known_distinct: false,
            detection_bytes: 1 << 18,
            strands: 1,
            replaces: false,
            is_heavy: false,
            runs: 1,
            joins: false,
            breaks: 1_166_243,
            looks_by_sort: false,
            grouping: Grouping::Possible,
            can_stream: true,
            has_slices: false,
            can_merge: false,
            context: Context::new(false, false),
            destinations,
            sample: OnceCell::new(),
            sample_slot: None,
        }
    }

    /// Assignments of the same rows.
    pub(in super::super) fn moves(destinations: &Destinations) -> Workload<'_> {
        Workload {
            replaces: true,
            grouping: Grouping::Impossible,
            ..sums(destinations)
        }
    }

    /// Distinct destinations, spread over the whole table.
    pub(in super::super) fn spread() -> Destinations {
        Destinations::Narrow((0..4096).map(|tuple| tuple * 7919 % 169_343).collect())
    }
}
