//! The workload of a transfer: the sizes and properties of the transfer, as plain numbers.
//! Schedules are chosen from these numbers.
//!
//! This module knows which data a transfer moves. This module does not know addresses, workers, or
//! the schedules that the choice compares.

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
    /// Reads the windows of the listed tensor and writes the windows of the numbered tensor. The
    /// listed tensor has one window per tuple, in the order of the tuples: the updates of a
    /// scatter, or the output of a gather. Destination numbers address the windows of the numbered
    /// tensor: the output of a scatter, or the data of a gather.
    Scatter,
    /// Reads the windows of the numbered tensor and writes the windows of the listed tensor.
    Gather,
}

/// Known order of the destination numbers in the list of tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Each destination number is greater than the destination number of the previous tuple.
    Increasing,
    /// Each destination number is at least the destination number of the previous tuple.
    Ascending,
    /// The list is not known to be in ascending order.
    Unordered,
}

/// Whether the operation can be applied group by group, or must be. A group has all tuples of one
/// destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    Impossible,
    Possible,
    Needed,
}

/// The sizes and properties of one transfer.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    pub(super) direction: Direction,
    pub(super) in_place: bool,
    /// Number of tuples that are applied in each repetition.
    pub(super) tuples: usize,
    pub(super) repetitions: usize,
    pub(super) element_bytes: usize,
    pub(super) window_elements: usize,
    /// Maximum number of parts that a window can be cut into: the size of its longest dim. 1 if the
    /// window cannot be cut.
    pub(super) columns: usize,
    /// Bytes of data that are copied to the output. 0 for a call in place.
    pub(super) copied_bytes: usize,
    /// Exclusive upper bound of the destination numbers.
    pub(super) slices: u64,
    /// Bytes of the region that the slices of all destination numbers span.
    pub(super) region_bytes: u64,
    pub(super) order: Order,
    /// Whether the plan already knows that the destinations are distinct.
    pub(super) known_distinct: bool,
    /// Bytes of scratch memory for detecting duplicates.
    pub(super) detection_bytes: usize,
    /// Number of strands: equal, consecutive parts of the list of tuples that share no destination,
    /// whatever the values of the indices are. 1 if tuples were skipped.
    pub(super) strands: usize,
    /// Whether updates replace the existing values.
    pub(super) replaces: bool,
    /// Whether the reduction of one vector of elements requires several machine instructions.
    pub(super) is_heavy: bool,
    /// Number of runs of a window.
    pub(super) runs: usize,
    /// Whether the windows of successive tuples with successive destination numbers are contiguous
    /// in the source and in the destination, and fewer than half of the tuples count in `breaks`.
    pub(super) joins: bool,
    /// Number of tuples whose destination number is not the destination number of the previous
    /// tuple plus one.
    pub(super) breaks: usize,
    /// Whether the detection of duplicates requires a sort.
    pub(super) looks_by_sort: bool,
    pub(super) grouping: Grouping,
    /// Whether the operation has streaming stores for these elements.
    pub(super) can_stream: bool,
    /// Whether data can be copied slice by slice. Repetitions and windows must have the full sizes
    /// of the output. Slices must begin at a constant stride, in data and in the output.
    pub(super) has_slices: bool,
    /// Whether workers can reduce into private copies and merge these copies, with the same bits as
    /// the reference loop. The operation must have private copies, windows must be rows, no tuple
    /// may be skipped, and the windows in the destination and in the source must begin at constant
    /// strides.
    pub(super) can_merge: bool,
    pub(super) context: Context,
    pub(super) destinations: &'a Destinations,
    /// Sample of the destinations. The first use takes the sample, or reads it from a kept plan.
    pub(super) sample: OnceCell<Cow<'a, Sample>>,
    /// Field of a kept plan that stores the sample of the destinations. `None` if the plan is not
    /// kept.
    pub(super) sample_slot: Option<&'a Slot>,
}

/// Sizes that determine the time of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Number of windows: tuples times repetitions.
    pub(crate) windows: usize,
    /// Bytes of one window.
    pub(crate) window_bytes: usize,
    /// Bytes of data that are copied to the output. 0 for a call in place.
    pub(crate) copied_bytes: usize,
}

impl Sizes {
    /// Returns the bytes of all windows plus the bytes of copied data.
    fn moved_bytes(self) -> usize {
        (self.windows.saturating_mul(self.window_bytes)).saturating_add(self.copied_bytes)
    }

    /// Returns an estimate of the bytes that a transfer reads or writes. A window counts once, and
    /// as at least one cache line. Copied data counts twice, because it is read and written.
    #[inline(always)]
    fn touched_bytes(self) -> usize {
        (self.windows)
            .saturating_mul(self.window_bytes.max(LINE_BYTES))
            .saturating_add(self.copied_bytes.saturating_mul(2))
    }

    /// Whether a transfer touches fewer than `SMALL_CALL_BYTES` bytes. For such a transfer, setting
    /// up a schedule costs more than the schedule saves.
    #[inline(always)] // On the path of small calls.
    pub(crate) fn touch_little(self) -> bool {
        self.touched_bytes() < SMALL_CALL_BYTES
    }

    /// Whether a transfer is so small that the choice of a schedule costs more than it saves. A
    /// scatter is small if it touches few bytes ([`Self::touch_little`]). A gather is small if its
    /// windows and the copied data have fewer than `SMALL_CALL_BYTES` bytes. The rule for gathers
    /// was not measured.
    pub(crate) fn are_small(self, direction: Direction) -> bool {
        match direction {
            Direction::Scatter => self.touch_little(),
            Direction::Gather => self.moved_bytes() < SMALL_CALL_BYTES,
        }
    }
}

impl<'a> Workload<'a> {
    /// Returns the workload of a transfer. `copy` describes the copy of data to the output. `copy`
    /// is `None` for a call in place.
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

    /// Returns the number of windows: tuples times repetitions.
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

    /// Returns the bytes of all windows plus the bytes of copied data.
    pub(crate) fn bytes(&self) -> usize {
        self.sizes().moved_bytes()
    }

    /// Returns the number of pieces into which each task of `division` cuts its part of the work. A
    /// single task does not cut its work.
    pub(super) fn pieces(&self, division: Division) -> usize {
        match division.tasks() {
            1 => 1,
            tasks => (self.bytes() / tasks / PIECE_BYTES).clamp(1, MOST_PIECES),
        }
    }

    /// Whether all workers share the copy of data, even if one worker then applies the updates. The
    /// copy must read and write at least `PARALLEL_BYTES` bytes in total.
    pub(super) fn copies_much(&self) -> bool {
        self.copied_bytes.saturating_mul(2) >= PARALLEL_BYTES
    }

    /// Returns the sample of the destinations.
    pub(super) fn sample(&self) -> &Sample {
        let unit = self.region_bytes / self.slices.max(1);
        (self.sample).get_or_init(|| sample_of(self.destinations, unit, self.sample_slot))
    }

    /// Returns the destination numbers at which a division cuts its ranges of destinations, so that
    /// the ranges have about equal work. Returns `None` if ranges of equal length are good enough,
    /// or if the division has no ranges of destinations.
    pub(super) fn cuts(&self, division: Division) -> Option<Cuts> {
        let Division::Destinations { parts, .. } = division else {
            return None;
        };
        let work = [self.copied_bytes, self.applied_bytes()];
        self.sample().cuts(parts, self.slices, work)
    }

    /// Whether duplicates are certain: two sampled tuples have the same destination, or there are
    /// more tuples than slices.
    pub(super) fn has_duplicates(&self) -> bool {
        self.tuples as u64 > self.slices || self.sample().has_duplicates()
    }

    /// Returns the number of distinct destinations. The number is an estimate, unless the plan
    /// knows that destinations are distinct.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn distinct(&self) -> f64 {
        match self.known_distinct {
            true => self.tuples as f64,
            false => self.sample().distinct(self.tuples, self.slices),
        }
    }

    /// Whether most of a large output is copied data. The copy must be large enough for streaming
    /// stores. Updates, if there are any, must replace the existing values and have at most a
    /// fraction `1 / SPARSE` of the copied bytes.
    pub(super) fn is_sparse(&self) -> bool {
        let (copied, applied) = (self.copied_bytes, self.applied_bytes());
        let replaced = self.replaces || applied == 0;
        replaced && self.streams(copied) && applied <= copied / SPARSE
    }

    /// Returns the variants of kernels for this call. The region of a scatter is the memory that
    /// the slices of all destinations span. If this region is large but the windows need no
    /// prefetch, the returned variants disable the prefetching of the output's windows.
    pub(super) fn prefetch_variants(&self, mut variants: Variants) -> Variants {
        let is_far = self.region_bytes > variants.near_bytes;
        if self.direction == Direction::Scatter && is_far && self.needs_no_prefetch(variants) {
            variants.near_bytes = u64::MAX;
        }
        variants
    }

    /// Whether windows need no prefetch, although the region that the slices of all destinations
    /// span is large. One of three conditions is enough:
    ///
    /// - A window has at most one cache line, and the region has at most `near_short_bytes` bytes.
    /// - The windows of all distinct destinations, each counted as at least one cache line, have at
    ///   most `near_bytes` bytes in total. A cache soon holds such windows. On a Xeon (Skylake),
    ///   sums of integers into 80 Mi slices of 16 bytes took three times as long with prefetching
    ///   as without. One of the slices was a frequent destination.
    /// - Destinations are in ascending order, and at least a quarter (`DENSE`) of the windows begin
    ///   in the cache line of the previous window. On Zen 4, calls that meet this condition took
    ///   0.4 to 0.9 times as long without prefetching as with prefetching. Calls with one or two
    ///   cache lines between successive windows took 1.0 to 1.7 times as long without prefetching
    ///   as with prefetching, so their windows are prefetched.
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

    /// Whether a step that writes `bytes` bytes, each byte once, uses streaming stores.
    pub(super) fn streams(&self, bytes: usize) -> bool {
        bytes as u64 >= self.context.variants.stream_bytes
    }

    /// Whether the windows to write are expected to be in memory, not in a cache. Out of place, the
    /// result is true if most of a large output is copied data ([`Self::is_sparse`]), because the
    /// copy then uses streaming stores. In place, three conditions must hold. Updates replace the
    /// existing values. The windows have enough bytes in total for streaming stores. The region
    /// that the slices of all destinations span has at least `SPARSE` times the bytes of the
    /// windows.
    fn is_beyond_caches(&self) -> bool {
        let written = self.bytes();
        let is_large_in_place = self.in_place
            && self.replaces
            && self.streams(written)
            && self.region_bytes / SPARSE as u64 >= written as u64;
        is_large_in_place || self.is_sparse()
    }

    /// Returns whether windows that are written in the order of tuples are streamed. Streaming
    /// stores are not ordered with one another, so the destinations of a scatter must be distinct.
    /// If the plan does not know whether the destinations are distinct, duplicates are detected
    /// first. If the detection requires more than `STREAMED_DETECTION_BYTES` of memory, windows are
    /// not streamed.
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

    /// Returns the bytes of one worker's private copy, which has one window for each slice.
    pub(super) fn copy_bytes(&self) -> u64 {
        self.slices.saturating_mul(self.window_bytes() as u64)
    }
}

/// Returns a sample of the destinations. The slices of neighbouring destination numbers are `unit`
/// bytes apart.
///
/// A kept plan stores the sample in `slot` for later executions, because reading each sampled tuple
/// may cost a cache miss. A stored sample with another `unit` is not used.
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

/// Whether a call of a kept plan is faster if it moves only the last window of each destination.
/// Updates must replace the existing values, the call must have at least [`MANY_WINDOWS`] windows,
/// and there must be at least [`WINDOWS_PER_DESTINATION`] tuples per distinct destination
/// (estimated).
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
    // The stored sample may be for elements of another size. This size does not affect the
    // estimated number of distinct destinations.
    let sample = (plan.sample.get()).map_or_else(taken, Cow::Borrowed);
    let distinct = sample.distinct(tuples, scale.count);
    distinct * WINDOWS_PER_DESTINATION as f64 <= tuples as f64
}

/// Whether windows that are written in the order of tuples use streaming stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Never,
    /// Duplicates are detected before the first write. Windows are streamed if there are none.
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

    /// Sums, in place, of 1166243 unordered rows of 64 `f32` into a table of 169343 rows.
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

    /// Assignments of the same rows as in [`sums`]: updates replace the existing values.
    pub(in super::super) fn moves(destinations: &Destinations) -> Workload<'_> {
        Workload {
            replaces: true,
            grouping: Grouping::Impossible,
            ..sums(destinations)
        }
    }

    /// 4096 distinct destinations, spread over the whole table.
    pub(in super::super) fn spread() -> Destinations {
        Destinations::Narrow((0..4096).map(|tuple| tuple * 7919 % 169_343).collect())
    }
}
