//! A few of the tuples, to judge all of them by.
//!
//! Knows destination numbers. Knows nothing of windows or workers' schedules.

use crate::plan::Destinations;

/// Tuples that are looked at.
const SAMPLE: usize = 256;

/// The destinations of some tuples from all over the list, or of all.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// In order.
    numbers: [u64; SAMPLE],
    len: usize,
    is_all: bool,
}

impl Sample {
    pub(super) fn new(destinations: &Destinations) -> Self {
        let tuples = destinations.len();
        let len = tuples.min(SAMPLE);
        let mut numbers = [0; SAMPLE];
        for (position, number) in numbers[..len].iter_mut().enumerate() {
            *number = destinations.get(position * (tuples / len));
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

    /// How many destinations there are, estimated from how many have one and two
    /// tuples of the sample (Chao 1984): rather too few where some have most of
    /// the tuples. `None` where there is nothing to go by.
    pub(super) fn distinct(&self) -> Option<u64> {
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
            let distinct = uniform(count).distinct().expect("some have two");
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
