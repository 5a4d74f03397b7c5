//! What a schedule is chosen by, and divided along.
//!
//! Facts and sizes of one call. Knows nothing of which schedule they speak for.

use super::choose::{CARRIED_BYTES, Choice, SPARSE, STREAM_BYTES};
use crate::kernel::{Kernels, Row};
use crate::plan::{CopyGeometry, Destinations, Geometry, ScatterPlan};
use crate::schedule::Schedule;

/// Tuples that are looked at to judge all of them.
const SAMPLE: usize = 256;

/// What the choice of a schedule depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload<'a> {
    pub(crate) plan: &'a ScatterPlan,
    pub(crate) geometry: &'a Geometry,
    /// `None` in place.
    pub(crate) copy: Option<&'a CopyGeometry>,
    pub(crate) row: &'a Row,
    pub(crate) kernels: &'a Kernels,
}

/// The destinations of some tuples from all over the list.
pub(super) struct Sample {
    /// Sorted; `None` where there are too few to judge by.
    numbers: Option<[u64; SAMPLE]>,
}

impl Sample {
    /// Whether a few destinations have most of the tuples, so that their
    /// windows stay in cache.
    pub(super) fn is_skewed(&self) -> bool {
        self.numbers.is_some_and(|numbers| {
            let repeats = numbers.windows(2).filter(|pair| pair[0] == pair[1]);
            repeats.count() >= SAMPLE / 4
        })
    }

    /// Whether the tuples fall into several ranges of `1 << shift` destination
    /// numbers, and not nearly all of them into one.
    pub(super) fn is_spread(&self, shift: u32) -> bool {
        self.numbers.is_none_or(|numbers| {
            let same_range = |a: &u64, b: &u64| a >> shift == b >> shift;
            let most = numbers.chunk_by(same_range).map(<[u64]>::len).max();
            most.unwrap_or(0) <= SAMPLE / 16 * 15
        })
    }
}

impl Workload<'_> {
    /// Bytes of one window.
    pub(super) fn window_bytes(&self) -> usize {
        self.geometry.window.elements() * self.row.size
    }

    /// Bytes that the call writes, at least.
    pub(crate) fn bytes(&self) -> usize {
        let windows = self.plan.tuples() * self.geometry.outer.elements();
        let copied = self
            .copy
            .map_or(0, |copy| copy.whole.elements() * self.row.size);
        windows
            .saturating_mul(self.window_bytes())
            .saturating_add(copied)
    }

    /// Bytes of the output that destinations spread over.
    pub(super) fn region_bytes(&self) -> u64 {
        self.plan.scale().bytes(self.row.size)
    }

    /// Whether destinations have two tuples each or more, on average: then
    /// most updates need not be moved at all.
    pub(super) fn is_crowded(&self) -> bool {
        self.plan.tuples() as u64 / 2 >= self.plan.scale().count
    }

    /// What to judge the destinations by, the same for every run.
    pub(super) fn sample(&self) -> Sample {
        let tuples = self.plan.tuples();
        let mut numbers = [0; SAMPLE];
        if tuples < SAMPLE {
            return Sample { numbers: None };
        }
        for (position, number) in numbers.iter_mut().enumerate() {
            *number = self.plan.destinations().get(position * (tuples / SAMPLE));
        }
        numbers.sort_unstable();
        Sample {
            numbers: Some(numbers),
        }
    }

    /// Whether a large output is mostly copied: few of its bytes are touched
    /// again by updates, which replace what is there.
    pub(super) fn is_sparse(&self) -> bool {
        let copied = (self.copy).map_or(0, |copy| copy.whole.elements() * self.row.size);
        let applied = self.bytes() - copied;
        let replaced = self.row.replaces || applied == 0;
        replaced && copied >= STREAM_BYTES && applied <= copied / SPARSE
    }

    /// Whether windows pass the caches by: after a copy of data that did, and
    /// in place where they are many and lie so far apart that no cache would
    /// hold them.
    pub(super) fn passes_caches(&self) -> bool {
        let written = self.bytes();
        let is_wide = || self.region_bytes() / SPARSE as u64 >= written as u64;
        let is_large_in_place =
            self.copy.is_none() && self.row.replaces && written >= STREAM_BYTES && is_wide();
        is_large_in_place || self.is_sparse()
    }

    /// Bytes of one worker's copy of all windows.
    pub(super) fn copy_bytes(&self) -> u64 {
        (self.plan.scale().count).saturating_mul(self.window_bytes() as u64)
    }

    /// Most bytes that a run needs besides the tensors and a fresh plan, with
    /// what the first run of a plan works out and leaves in it.
    pub(crate) fn scratch_bytes(&self, choice: &Choice) -> usize {
        let (tuples, parts) = (self.plan.tuples(), choice.grid.tasks());
        let count = self.plan.scale().count;
        match choice.schedule {
            Schedule::ByPartition => {
                let narrow = count <= Destinations::NARROW;
                let number = if narrow { 4 } else { 8 };
                let places = choice.places(tuples, count);
                // Single elements take their values along, and a kept plan
                // remembers where to; windows the numbers of their tuples.
                let carries =
                    self.geometry.window.elements() == 1 && self.row.size <= CARRIED_BYTES;
                let (load, order) = if carries {
                    (self.row.size, tuples)
                } else {
                    (0, places)
                };
                places
                    .saturating_mul(number + load)
                    .saturating_add(order.saturating_mul(4))
            }
            Schedule::ByTuple if self.plan.lanes() < parts => self.plan.looking_bytes(),
            // The sorted list, which the plan keeps, and the sort's own.
            Schedule::Grouped | Schedule::Winner if !self.plan.facts().increasing => {
                tuples.saturating_mul(16)
            }
            Schedule::Private => usize::try_from(self.copy_bytes().saturating_mul(parts as u64))
                .unwrap_or(usize::MAX),
            _ => 0,
        }
    }
}
