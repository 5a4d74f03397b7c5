//! What a schedule is chosen by, and divided along.
//!
//! Facts and sizes of one call. Knows nothing of which schedule they speak for.

use super::choose::{
    CARRIED_BYTES, Choice, PARALLEL_BYTES, SPARSE, STREAM_BYTES, STREAMED_WINDOW_BYTES,
};
use super::private::copy_words;
use super::tile::LINE_BYTES;
use crate::kernel::{Kernels, Operation};
use crate::plan::{CopyGeometry, Destinations, Geometry, IndexPlan};
use crate::schedule::Schedule;

/// Most bytes for looking for repeats before windows are written past the
/// caches: a bitmap, or a sort of 32768 tuples.
const LOOKING_BYTES: usize = 512 * 1024;

/// Tuples that are looked at to judge all of them.
const SAMPLE: usize = 256;

/// What the choice of a schedule depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload<'a> {
    pub(crate) plan: &'a IndexPlan,
    pub(crate) geometry: &'a Geometry,
    /// `None` in place.
    pub(crate) copy: Option<&'a CopyGeometry>,
    pub(crate) kernels: &'a Kernels,
    pub(crate) operation: &'a Operation,
}

/// Bytes that say how long a call takes: of each window whole lines, and what is
/// copied on both sides.
#[inline]
pub(super) fn touched_bytes(windows: usize, window_bytes: usize, copied_bytes: usize) -> usize {
    windows
        .saturating_mul(window_bytes.max(LINE_BYTES))
        .saturating_add(copied_bytes.saturating_mul(2))
}

/// The destinations of some tuples from all over the list, or of all.
pub(super) struct Sample {
    numbers: [u64; SAMPLE],
    len: usize,
    is_all: bool,
}

impl Sample {
    fn new(plan: &IndexPlan) -> Self {
        let tuples = plan.tuples();
        let len = tuples.min(SAMPLE);
        let mut numbers = [0; SAMPLE];
        for (position, number) in numbers[..len].iter_mut().enumerate() {
            *number = plan.destinations().get(position * (tuples / len));
        }
        numbers[..len].sort_unstable();
        Self {
            numbers,
            len,
            is_all: len == tuples,
        }
    }

    fn numbers(&self) -> &[u64] {
        &self.numbers[..self.len]
    }

    /// How many destinations there are, estimated from how many are met once
    /// and twice (Chao 1984): rather too few where some have most of the
    /// tuples. `None` where there is nothing to go by.
    fn distinct(&self) -> Option<u64> {
        let (mut distinct, mut once, mut twice) = (0_u64, 0_u64, 0_u64);
        for same in self.numbers().chunk_by(|a, b| a == b) {
            distinct += 1;
            match same.len() {
                1 => once += 1,
                2 => twice += 1,
                _ => {}
            }
        }
        let unseen = match twice {
            _ if self.is_all => 0,
            0 if once == distinct => return None,
            0 => once * once.saturating_sub(1) / 2,
            _ => once * once / (2 * twice),
        };
        Some(distinct + unseen)
    }

    /// Whether the tuples fall into several ranges of `1 << shift` destination
    /// numbers, and not nearly all of them into one.
    pub(super) fn is_spread(&self, shift: u32) -> bool {
        self.most_in_one(shift) <= self.len * 15 / 16
    }

    /// Whether so many workers that have whole groups of tuples, of one
    /// destination each, have about as much to do.
    pub(super) fn groups_balance(&self, parts: usize) -> bool {
        self.most_in_one(0) <= self.len.div_ceil(2 * parts)
    }

    /// Whether workers, of which each takes the next range of `1 << shift`
    /// destination numbers when it is done with one, have about as much to do.
    pub(super) fn balances(&self, shift: u32, parts: usize) -> bool {
        let mut loads = [0; SAMPLE];
        let loads = &mut loads[..parts.clamp(1, SAMPLE)];
        for tuples in self.in_ranges(shift) {
            if let Some(least) = loads.iter_mut().min() {
                *least += tuples;
            }
        }
        let most = loads.iter().max().map_or(0, |&most| most);
        most * loads.len() <= self.len * 5 / 4
    }

    /// How many fall into one range of `1 << shift` destination numbers.
    fn most_in_one(&self, shift: u32) -> usize {
        self.in_ranges(shift).max().unwrap_or(0)
    }

    /// How many fall into each range that any fall into.
    fn in_ranges(&self, shift: u32) -> impl Iterator<Item = usize> {
        let same_range = move |a: &u64, b: &u64| a >> shift == b >> shift;
        self.numbers().chunk_by(same_range).map(<[u64]>::len)
    }
}

impl Workload<'_> {
    /// Bytes of one window.
    pub(super) fn window_bytes(&self) -> usize {
        self.geometry.window.elements() * self.kernels.size
    }

    /// Windows of all tuples, in all repetitions.
    pub(super) fn windows(&self) -> usize {
        (self.plan.tuples()).saturating_mul(self.geometry.outer.elements())
    }

    /// Bytes of updates that are applied.
    pub(super) fn applied_bytes(&self) -> usize {
        self.windows().saturating_mul(self.window_bytes())
    }

    /// Bytes of data that are copied.
    pub(super) fn copied_bytes(&self) -> usize {
        (self.copy).map_or(0, |copy| copy.whole.elements() * self.kernels.size)
    }

    /// Bytes that the call writes, at least.
    pub(crate) fn bytes(&self) -> usize {
        self.applied_bytes().saturating_add(self.copied_bytes())
    }

    /// Bytes of the lines that windows lie in.
    pub(super) fn line_bytes(&self) -> usize {
        touched_bytes(self.windows(), self.window_bytes(), 0)
    }

    /// [`touched_bytes`] of the call.
    pub(super) fn touched_bytes(&self) -> usize {
        touched_bytes(self.windows(), self.window_bytes(), self.copied_bytes())
    }

    /// Whether several workers copy data, though one then applies the updates.
    pub(super) fn copies_much(&self) -> bool {
        touched_bytes(0, 0, self.copied_bytes()) >= PARALLEL_BYTES
    }

    /// Bytes of the output that destinations spread over.
    pub(super) fn region_bytes(&self) -> u64 {
        self.plan.scale().bytes(self.kernels.size)
    }

    /// What to judge the destinations by, the same for every run.
    pub(super) fn sample(&self) -> Sample {
        Sample::new(self.plan)
    }

    /// Bytes of the lines of the output that tuples meet, about.
    pub(super) fn met_bytes(&self, sample: &Sample) -> u64 {
        let line = self.window_bytes().max(LINE_BYTES) as u64;
        let met = self.distinct(sample).saturating_mul(line);
        met.min(self.region_bytes())
    }

    /// How many destinations tuples have, about.
    pub(super) fn distinct(&self, sample: &Sample) -> u64 {
        let count = self.plan.scale().count;
        sample.distinct().map_or(count, |met| met.min(count))
    }

    /// Whether a large output is mostly copied: few of its bytes are touched
    /// again by updates, which replace what is there.
    pub(super) fn is_sparse(&self) -> bool {
        let (copied, applied) = (self.copied_bytes(), self.applied_bytes());
        let replaced = self.kernels.replaces || applied == 0;
        replaced && copied >= STREAM_BYTES && applied <= copied / SPARSE
    }

    /// Whether windows pass the caches by: after a copy of data that did, and
    /// in place where they are many and lie so far apart that no cache would
    /// hold them.
    pub(super) fn passes_caches(&self) -> bool {
        let written = self.bytes();
        let is_wide = || self.region_bytes() / SPARSE as u64 >= written as u64;
        let is_large_in_place =
            self.copy.is_none() && self.kernels.replaces && written >= STREAM_BYTES && is_wide();
        is_large_in_place || self.is_sparse()
    }

    /// Whether a run by `schedule` writes long windows past the caches. Stores
    /// past them are not ordered with one another, so that it takes
    /// destinations that are known to be unique, and looks for repeats where
    /// that costs less than it gains.
    pub(super) fn streams_windows(&self, schedule: Schedule) -> bool {
        self.would_stream(schedule)
            && (self.plan.is_known_unique()
                || self.looks_before_streaming() && self.plan.first_repeat() == Ok(None))
    }

    /// Whether it would, but for what is not known of its destinations.
    fn would_stream(&self, schedule: Schedule) -> bool {
        let in_order_of_tuples = !matches!(
            schedule,
            Schedule::LastWrite | Schedule::ByPartition | Schedule::Grouped | Schedule::Private
        );
        in_order_of_tuples
            && self.kernels.stream.is_some()
            && self.window_bytes() >= STREAMED_WINDOW_BYTES
            && self.passes_caches()
    }

    /// Not where it takes a long sort.
    fn looks_before_streaming(&self) -> bool {
        self.plan.looking_bytes() <= LOOKING_BYTES
    }

    /// Bytes of one worker's copy of all windows.
    pub(super) fn copy_bytes(&self) -> u64 {
        (self.plan.scale().count).saturating_mul(self.window_bytes() as u64)
    }

    /// Words of scratch memory for that copy.
    pub(super) fn copy_words(&self) -> usize {
        copy_words(usize::try_from(self.copy_bytes()).unwrap_or(usize::MAX))
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
                    self.geometry.window.elements() == 1 && self.kernels.size <= CARRIED_BYTES;
                let (load, order) = if carries {
                    (self.kernels.size, tuples)
                } else {
                    (0, places)
                };
                places
                    .saturating_mul(number + load)
                    .saturating_add(order.saturating_mul(4))
            }
            Schedule::ByTuple if self.plan.lanes() < parts => self.plan.looking_bytes(),
            // The sorted list, which the plan keeps, and the sort's own.
            Schedule::Grouped if !self.plan.facts().ordered => tuples.saturating_mul(16),
            Schedule::LastWrite if !self.plan.facts().increasing => tuples.saturating_mul(16),
            Schedule::Private => {
                (self.copy_words().saturating_mul(parts)).saturating_mul(size_of::<u64>())
            }
            schedule
                if self.would_stream(schedule)
                    && self.looks_before_streaming()
                    && !self.plan.facts().increasing =>
            {
                self.plan.looking_bytes()
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE, Sample};

    fn sample(mut numbers: [u64; SAMPLE]) -> Sample {
        numbers.sort_unstable();
        Sample {
            numbers,
            len: SAMPLE,
            is_all: false,
        }
    }

    /// A sample of tuples that have `count` destinations alike.
    fn uniform(count: u64) -> Sample {
        let mut state = 1_u64;
        sample([0; SAMPLE].map(|_: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % count
        }))
    }

    #[test]
    fn destinations_are_estimated() {
        for (count, least, most) in [
            (1, 1, 1),
            (16, 16, 16),
            (128, 100, 160),
            (1024, 600, 1700),
            (4096, 1500, 12_000),
        ] {
            let distinct = uniform(count).distinct().expect("some are met again");
            assert!((least..=most).contains(&distinct), "{distinct} of {count}");
        }
        assert_eq!(uniform(1 << 40).distinct(), None, "nothing to go by");
        let all = Sample {
            len: 9,
            is_all: true,
            ..uniform(1 << 40)
        };
        assert_eq!(all.distinct(), Some(9), "nothing to estimate");
    }

    #[test]
    fn ranges_are_shared_out() {
        let two = uniform(1 << 20);
        assert!(two.balances(19, 2), "one range each");
        assert!(!two.balances(20, 2), "one has them all");
        let three = uniform(3 << 19);
        assert!(!three.balances(19, 2), "two ranges and one");
        assert!(three.balances(19, 3), "one range each");
        assert!(three.balances(18, 2), "three ranges each");
        let skewed = sample(std::array::from_fn(|tuple| (tuple as u64 / 200) << 19));
        assert!(!skewed.balances(19, 2), "one has most of them");
    }

    /// Half of the tuples have one destination, the others one each.
    #[test]
    fn a_long_tail_is_seen() {
        let numbers = std::array::from_fn(|tuple| (tuple as u64).saturating_sub(127));
        let sample = sample(numbers);
        assert!(sample.distinct().is_some_and(|distinct| distinct > 4096));
        assert!(!sample.groups_balance(2), "one has half of them");
        assert!(sample.is_spread(0), "not nearly all");
        assert!(!sample.is_spread(8), "all in one range");
    }
}
