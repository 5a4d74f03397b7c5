//! What a schedule is chosen by: the sizes and facts of one transfer, as plain
//! numbers.
//!
//! Knows what a call moves. Knows nothing of where it lies, of who works on it,
//! and of the schedules that it is held against.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::context::Context;
use super::copies::copy_words;
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

/// Which way elements go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the list of windows to the numbered ones.
    Scatter,
    /// From numbered windows to those of the list.
    Gather,
}

/// What is known of the order of destination numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Each is greater than the one before.
    Increasing,
    /// None is less than the one before.
    Ascending,
    /// Any.
    Unordered,
}

/// Which sorted groups of tuples the operation can or must be applied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    Impossible,
    Possible,
    Needed,
}

/// What one transfer moves.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    pub(super) direction: Direction,
    pub(super) in_place: bool,
    /// Tuples that are applied, and how often all of them are.
    pub(super) tuples: usize,
    pub(super) repetitions: usize,
    pub(super) element_bytes: usize,
    pub(super) window_elements: usize,
    /// Parts that windows can be cut into.
    pub(super) columns: usize,
    /// Bytes of data that are copied.
    pub(super) copied_bytes: usize,
    /// Destination numbers are below `slices`. They spread over `region_bytes` bytes.
    pub(super) slices: u64,
    pub(super) region_bytes: u64,
    pub(super) order: Order,
    /// Whether no two tuples are known to have one destination, and the bytes
    /// that it takes to find out.
    pub(super) known_distinct: bool,
    pub(super) detection_bytes: usize,
    /// Parts of the list that share no destination by its shape alone.
    pub(super) strands: usize,
    /// Whether updates replace what is there, and whether machines cannot calculate
    /// with the elements.
    pub(super) replaces: bool,
    pub(super) is_heavy: bool,
    /// Runs of a window, and whether most tuples follow the previous tuple on both sides.
    pub(super) runs: usize,
    pub(super) joins: bool,
    /// Number of tuples that do not follow the previous tuple.
    pub(super) breaks: usize,
    /// Whether it takes a sort to look for duplicates.
    pub(super) looks_by_sort: bool,
    pub(super) grouping: Grouping,
    /// Whether there are streaming stores for these elements.
    pub(super) can_stream: bool,
    /// Whether each slice of the output is one of data, evenly spaced there, so
    /// that slices can be written one by one.
    pub(super) has_slices: bool,
    /// Whether windows are rows at slices of one distance, with evenly spaced
    /// sources and an operation whose partial results can be merged.
    pub(super) can_merge: bool,
    pub(super) context: Context,
    pub(super) destinations: &'a Destinations,
    /// Taken when first asked for, the same for every run.
    pub(super) sample: OnceCell<Cow<'a, Sample>>,
    /// Where a plan that stays keeps it.
    pub(super) samples: Option<&'a Slot>,
}

/// Sizes that say how long a transfer takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Windows of all tuples, in all repetitions, and the bytes of each.
    pub(crate) windows: usize,
    pub(crate) window_bytes: usize,
    /// Bytes of data that are copied first.
    pub(crate) copied_bytes: usize,
}

impl Sizes {
    /// Bytes that are moved or copied.
    fn moved_bytes(self) -> usize {
        (self.windows.saturating_mul(self.window_bytes)).saturating_add(self.copied_bytes)
    }

    /// Bytes that are read or written: of each window whole lines, and of copied data both
    /// sides.
    #[inline(always)]
    fn touched_bytes(self) -> usize {
        (self.windows)
            .saturating_mul(self.window_bytes.max(LINE_BYTES))
            .saturating_add(self.copied_bytes.saturating_mul(2))
    }

    /// Whether so little is touched that nothing is worth setting up.
    #[inline(always)] // As all that is on the way of the smallest calls.
    pub(crate) fn touch_little(self) -> bool {
        self.touched_bytes() < SMALL_CALL_BYTES
    }

    /// Whether a transfer is over before the choice of a schedule is worth making. A
    /// gather counts the bytes that it moves, and not whole lines (an argument).
    pub(crate) fn are_small(self, direction: Direction) -> bool {
        match direction {
            Direction::Scatter => self.touch_little(),
            Direction::Gather => self.moved_bytes() < SMALL_CALL_BYTES,
        }
    }
}

impl<'a> Workload<'a> {
    /// `copy` is how data lies, if it is copied.
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
        let longest = || window.dims.iter().map(|dim| dim.size).max();
        Self {
            direction,
            in_place: copy.is_none(),
            tuples: plan.tuples(),
            repetitions,
            element_bytes: kernels.size,
            window_elements: window.elements(),
            columns: if can_be_cut(window) {
                longest().map_or(1, |longest| longest.max(1))
            } else {
                1
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
            samples: context.is_kept.then_some(&plan.sample),
        }
    }

    /// Bytes of one window.
    pub(super) fn window_bytes(&self) -> usize {
        self.window_elements.saturating_mul(self.element_bytes)
    }

    /// Windows of all tuples, in all repetitions.
    pub(super) fn windows(&self) -> usize {
        self.tuples.saturating_mul(self.repetitions)
    }

    /// Bytes of windows that are moved or combined.
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

    /// Bytes that the call writes, at least.
    pub(crate) fn bytes(&self) -> usize {
        self.sizes().moved_bytes()
    }

    /// In how many pieces each task of a division takes its part.
    pub(super) fn pieces(&self, division: Division) -> usize {
        match division.tasks() {
            1 => 1,
            tasks => (self.bytes() / tasks / PIECE_BYTES).clamp(1, MOST_PIECES),
        }
    }

    /// Whether several workers copy data, though one then applies the updates.
    pub(super) fn copies_much(&self) -> bool {
        self.copied_bytes.saturating_mul(2) >= PARALLEL_BYTES
    }

    /// Whether destination numbers are stored in 32 bits.
    pub(super) fn is_narrow(&self) -> bool {
        self.slices <= Destinations::NARROW
    }

    pub(super) fn sample(&self) -> &Sample {
        let unit = self.region_bytes / self.slices.max(1);
        (self.sample).get_or_init(|| sample_of(self.destinations, unit, self.samples))
    }

    /// Where to cut the ranges of a division, so that each is about as much work:
    /// `None` where that is evenly.
    pub(super) fn cuts(&self, division: Division) -> Option<Cuts> {
        let Division::Destinations { parts, .. } = division else {
            return None;
        };
        let work = [self.copied_bytes, self.applied_bytes()];
        self.sample().cuts(parts, self.slices, work)
    }

    /// Whether two tuples are seen to have one destination, or must have.
    pub(super) fn has_duplicates(&self) -> bool {
        self.tuples as u64 > self.slices || self.sample().has_duplicates()
    }

    /// How many destinations tuples have, about.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn distinct(&self) -> f64 {
        match self.known_distinct {
            true => self.tuples as f64,
            false => self.sample().distinct(self.tuples, self.slices),
        }
    }

    /// Whether a large output is mostly copied: few of its bytes are touched
    /// again by updates, which replace what is there.
    pub(super) fn is_sparse(&self) -> bool {
        let (copied, applied) = (self.copied_bytes, self.applied_bytes());
        let replaced = self.replaces || applied == 0;
        replaced && self.streams(copied) && applied <= copied / SPARSE
    }

    /// The variants of kernels for this call: of a scatter whose windows need no prefetch
    /// though they are spread far.
    pub(super) fn near_or_far(&self, variants: Variants) -> Variants {
        let is_far = self.region_bytes > variants.near_bytes;
        match self.direction == Direction::Scatter && is_far && self.is_near_by(variants) {
            true => Variants {
                near_bytes: u64::MAX,
                ..variants
            },
            false => variants,
        }
    }

    /// Whether windows are near, wherever they lie: short ones in a larger region too;
    /// those of few destinations, which are in a cache soon (with a frequent one among
    /// 80 Mi places of 16 bytes, sums of integers took three times as long prefetched, on
    /// a Xeon, Skylake); and those in order of which many begin in the line of the one
    /// before (0.4 to 0.9 of the time on Zen 4, with a line or two between them 1.0 to 1.7).
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn is_near_by(&self, variants: Variants) -> bool {
        let window = self.window_bytes();
        let written = || self.distinct() * window.max(LINE_BYTES) as f64;
        let is_dense =
            || self.order != Order::Unordered && self.sample().neighbours.in_line >= DENSE;
        (window <= LINE_BYTES && self.region_bytes <= variants.near_short_bytes)
            || written() <= variants.near_bytes as f64
            || is_dense()
    }

    /// Whether a write of `bytes` bytes that are written once is streamed.
    pub(super) fn streams(&self, bytes: usize) -> bool {
        bytes as u64 >= self.context.variants.stream_bytes
    }

    /// Whether windows are beyond the caches: after a copy of data that was streamed, and in
    /// place where windows are many and far apart.
    fn is_beyond_caches(&self) -> bool {
        let written = self.bytes();
        let is_wide = || self.region_bytes / SPARSE as u64 >= written as u64;
        let is_large_in_place =
            self.in_place && self.replaces && self.streams(written) && is_wide();
        is_large_in_place || self.is_sparse()
    }

    /// Whether windows that are written in the order of tuples are streamed.
    /// Streaming stores are not ordered with one another, so that it takes
    /// distinct destinations. They are looked for where that costs less than it
    /// gains.
    pub(super) fn streaming(&self) -> Streaming {
        if self.direction == Direction::Gather {
            return match self.streams(self.bytes()) {
                true => Streaming::Always,
                false => Streaming::Never,
            };
        }
        let pays = self.can_stream
            && self.window_bytes() >= STREAMED_WINDOW_BYTES
            && self.is_beyond_caches();
        match pays {
            true if self.known_distinct => Streaming::Always,
            true if self.detection_bytes <= STREAMED_DETECTION_BYTES => Streaming::IfDistinct,
            _ => Streaming::Never,
        }
    }

    /// Bytes of one worker's copy of all windows.
    pub(super) fn copy_bytes(&self) -> u64 {
        self.slices.saturating_mul(self.window_bytes() as u64)
    }

    /// Words of scratch memory for that copy.
    pub(super) fn copy_words(&self) -> usize {
        copy_words(usize::try_from(self.copy_bytes()).unwrap_or(usize::MAX))
    }
}

/// A sample of destinations that lie `unit` bytes apart. A plan that stays keeps it in
/// `slot`: each of its tuples is a line that waits for memory, the first time.
fn sample_of<'a>(
    destinations: &Destinations,
    unit: u64,
    slot: Option<&'a Slot>,
) -> Cow<'a, Sample> {
    let taken = || Sample::new(destinations, unit);
    let kept = slot.and_then(|slot| slot.get().or_else(|| slot.get_or_put(taken())));
    match kept.filter(|sample| sample.is_of(unit)) {
        Some(sample) => Cow::Borrowed(sample),
        None => Cow::Owned(taken()),
    }
}

/// Whether a kept plan has [`WINDOWS_PER_DESTINATION`] windows for each destination. It is
/// then faster to move only the last window of each destination.
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
    // How many destinations there are does not depend on the size of elements.
    let sample = (plan.sample.get()).map_or_else(taken, Cow::Borrowed);
    let distinct = sample.distinct(tuples, scale.count);
    distinct * WINDOWS_PER_DESTINATION as f64 <= tuples as f64
}

/// Whether windows are streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Never,
    /// Where no two tuples turn out to have one destination.
    IfDistinct,
    Always,
}

/// Workloads that tests of the choice and of its cost model begin with.
#[cfg(test)]
pub(super) mod fixtures {
    use std::cell::OnceCell;

    use super::{Direction, Grouping, Order, Workload};
    use crate::exec::context::Context;
    use crate::plan::Destinations;

    /// Sums of rows of 64 `f32` in no order, in a table of 169343.
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
            samples: None,
        }
    }

    pub(in super::super) fn moves(destinations: &Destinations) -> Workload<'_> {
        Workload {
            replaces: true,
            grouping: Grouping::Impossible,
            ..sums(destinations)
        }
    }

    /// Destinations all over a table, none twice.
    pub(in super::super) fn spread() -> Destinations {
        Destinations::Narrow((0..4096).map(|tuple| tuple * 7919 % 169_343).collect())
    }
}
