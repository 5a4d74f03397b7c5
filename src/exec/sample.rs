//! A few of the tuples, to judge all of them by.
//!
//! Knows destination numbers. Knows nothing of windows or workers' schedules.

use super::tile::{Cuts, LINE_BYTES, part};
use crate::plan::Destinations;

/// Tuples that are looked at, at most: of short lists fewer, as a call may take no
/// longer than ten times what it takes to look at all of these.
const SAMPLE: usize = 256;
const SHORT_SAMPLE: usize = 64;
const TUPLES_EACH: usize = 256;

/// Ranges that have so much more to do than others, in the part of one, are even.
const UNEVEN: f64 = 0.25;

/// The destinations of some tuples from all over the list, or of all.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// In order.
    numbers: [u64; SAMPLE],
    len: usize,
    is_all: bool,
    /// Bytes from one number to the next.
    pub(super) unit: u64,
    pub(super) neighbours: Neighbours,
    /// Of `numbers`; a kept sample is asked by every run.
    counts: Counts,
}

/// How far the tuples of a sample are from those that follow them in the list:
/// parts of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Neighbours {
    /// With one destination.
    pub(super) same: f64,
    /// That begin in one line.
    pub(super) in_line: f64,
    /// Less than a page apart.
    pub(super) in_page: f64,
}

/// Destinations of a sample, those of them with one and two of its tuples, and tuples
/// of all others.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    distinct: f64,
    once: f64,
    twice: f64,
    more: f64,
}

impl Counts {
    /// Of numbers in order.
    fn new(numbers: &[u64]) -> Self {
        let mut counts = Self::default();
        for same in numbers.chunk_by(|a, b| a == b) {
            counts.distinct += 1.0;
            match same.len() {
                1 => counts.once += 1.0,
                2 => counts.twice += 1.0,
                #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
                more => counts.more += more as f64,
            }
        }
        counts
    }

    /// How many destinations there are, of so many, if all are as frequent: all, where
    /// those that were met twice may be chance.
    fn among(self, slices: f64) -> f64 {
        let (once, twice, more) = (self.once, self.twice, self.more);
        let tuples = once + 2.0 * twice + more;
        let by_chance = tuples * (tuples - 1.0) / 2.0 / slices.max(1.0);
        if twice + more <= by_chance + 2.0 * by_chance.sqrt() + 0.5 {
            return slices;
        }
        let unseen = match twice {
            0.0 => once * (once - 1.0).max(0.0) / 2.0,
            _ => once * once / (2.0 * twice),
        };
        (self.distinct + unseen).min(slices)
    }

    /// Whether far more tuples share theirs with two others than would if all were as
    /// frequent as one and two tuples suggest.
    fn is_skewed(self) -> bool {
        if self.once == 0.0 {
            return false;
        }
        let each = 2.0 * self.twice / self.once;
        let expected = self.once * (each.exp() - 1.0 - each);
        self.more > 4.0 * expected + 6.0
    }
}

/// Bytes of a page, on most machines.
pub(super) const PAGE_BYTES: u64 = 4096;

impl Sample {
    /// Neighbouring numbers lie `unit` bytes apart.
    pub(super) fn new(destinations: &Destinations, unit: u64) -> Self {
        let tuples = destinations.len();
        let len = (tuples / TUPLES_EACH)
            .clamp(SHORT_SAMPLE, SAMPLE)
            .min(tuples);
        let mut numbers = [0; SAMPLE];
        let [mut same, mut in_line, mut in_page] = [0_u32; 3];
        for (position, number) in numbers[..len].iter_mut().enumerate() {
            let at = position * (tuples / len);
            *number = destinations.get(at);
            let next = if at + 1 < tuples {
                at + 1
            } else {
                at.saturating_sub(1)
            };
            let [this, next] = [*number, destinations.get(next)].map(|n| n.saturating_mul(unit));
            same += u32::from(this == next);
            in_line += u32::from(this / LINE_BYTES as u64 == next / LINE_BYTES as u64);
            in_page += u32::from(this.abs_diff(next) < PAGE_BYTES);
        }
        numbers[..len].sort_unstable();
        let counts = Counts::new(&numbers[..len]);
        #[expect(clippy::cast_possible_truncation, reason = "a few hundred")]
        let part = |count: u32| f64::from(count) / f64::from((len as u32).max(1));
        Self {
            numbers,
            len,
            is_all: len == tuples,
            unit,
            neighbours: Neighbours {
                same: part(same),
                in_line: part(in_line),
                in_page: part(in_page),
            },
            counts,
        }
    }

    /// Whether two of its tuples have one destination.
    pub(super) fn has_duplicates(&self) -> bool {
        !self.numbers().is_sorted_by(|before, after| before < after)
    }

    /// The greatest part of the tuples that fall into one range of `1 << shift`
    /// destination numbers.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    pub(super) fn most(&self, shift: u32) -> f64 {
        let most = self.in_ranges(shift).max().unwrap_or(0);
        most as f64 / self.len.max(1) as f64
    }

    fn numbers(&self) -> &[u64] {
        &self.numbers[..self.len]
    }

    /// How many destinations `tuples` tuples have of so many, about. Where all are as
    /// frequent it is estimated from how many have one and two tuples of the sample
    /// (Chao 1984), of whom not all need have been met.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn distinct(&self, tuples: usize, slices: u64) -> f64 {
        let (tuples, slices) = (tuples as f64, slices as f64);
        let counts = self.counts;
        if self.is_all {
            return counts.distinct;
        }
        let met = |tuples: f64, among: f64| among * (1.0 - (-tuples / among.max(1.0)).exp());
        let found = if counts.is_skewed() {
            // Zipf and its like: the rest of the tuples goes anywhere, if not evenly.
            let rest = counts.once / self.len.max(1) as f64;
            (met(tuples * rest, slices) / 2.0).max(counts.distinct)
        } else {
            met(tuples, counts.among(slices))
        };
        found.clamp(1.0, tuples.max(1.0))
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

    /// Where to cut `0..count` into so many ranges of about as much work, which is
    /// so much for all numbers and so much for all tuples; `None` where even ranges
    /// are no worse than what a sample can tell.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    pub(super) fn cuts(&self, ranges: usize, count: u64, work: [usize; 2]) -> Option<Cuts> {
        let [numbers, tuples] = work.map(|bytes| bytes as f64);
        let per_number = numbers / count.max(1) as f64;
        let per_tuple = tuples / self.len.max(1) as f64;
        let each = (numbers + tuples) / ranges as f64;
        let below = |number: u64| self.numbers().partition_point(|&other| other < number);
        let load = |start: u64, end: u64| {
            per_number * (end - start) as f64 + per_tuple * (below(end) - below(start)) as f64
        };
        let even = |index: usize| part(count, ranges, index);
        // Of few tuples a range has more or fewer by chance, and cuts that follow them
        // are worse than none.
        let chance = 3.0 / (self.len as f64 / ranges as f64).sqrt();
        let most = each + (UNEVEN * each).max(chance * tuples / ranges as f64);
        let is_even = (0..ranges).all(|index| load(even(index).start, even(index).end) <= most);
        if is_even || ranges < 2 {
            return None;
        }
        // The first number below which lies as much as the ranges so far should have.
        let cut = |index: usize| {
            let wanted = each * index as f64;
            let before = (0..self.len)
                .map(|at| per_number * self.numbers[at] as f64 + per_tuple * at as f64);
            let at = before.take_while(|&before| before <= wanted).count();
            let number = (wanted - per_tuple * at as f64) / per_number.max(f64::MIN_POSITIVE);
            let last = at.checked_sub(1).map_or(0, |at| self.numbers[at] + 1);
            let next = self.numbers().get(at).map_or(count, |&next| next);
            (number as u64).clamp(last.min(next), next)
        };
        Some(Cuts::at((1..ranges).map(cut).collect()))
    }

    /// How many fall into each range that any fall into.
    fn in_ranges(&self, shift: u32) -> impl Iterator<Item = usize> {
        let same_range = move |a: &u64, b: &u64| a >> shift == b >> shift;
        self.numbers().chunk_by(same_range).map(<[u64]>::len)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Neighbours, SAMPLE, Sample};

    fn sample(mut numbers: [u64; SAMPLE]) -> Sample {
        numbers.sort_unstable();
        Sample {
            numbers,
            len: SAMPLE,
            is_all: false,
            unit: 4,
            neighbours: Neighbours::default(),
            counts: Counts::new(&numbers),
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
            (1, 1.0, 1.0),
            (16, 16.0, 16.0),
            (128, 100.0, 160.0),
            (1024, 600.0, 1700.0),
            (4096, 1500.0, 12_000.0),
            // Nothing to go by.
            (1 << 40, 999_999.0, 1e6),
        ] {
            let distinct = uniform(count).distinct(1_000_000, 1 << 40);
            assert!((least..=most).contains(&distinct), "{distinct} of {count}");
        }
        let all = Sample {
            len: 9,
            is_all: true,
            counts: Counts::new(&uniform(1 << 40).numbers[..9]),
            ..uniform(1 << 40)
        };
        assert_eq!(all.distinct(9, 1 << 40), 9.0, "nothing to estimate");
    }

    /// Each as often as its rank says: 18151 of 20000 in 262144 tuples, as drawn once.
    #[test]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks"
    )]
    fn destinations_of_skewed_tuples_are_estimated() {
        let rank = |tuple: usize| 20_000_f64.powf((tuple as f64 + 0.5) / SAMPLE as f64);
        let skewed = sample(std::array::from_fn(|tuple| rank(tuple) as u64));
        let distinct = skewed.distinct(262_144, 20_000);
        assert!((9000.0..=20_000.0).contains(&distinct), "{distinct}");
    }

    #[test]
    fn ranges_are_cut_where_tuples_are() {
        let anywhere = sample(std::array::from_fn(|tuple| {
            let mixed = (tuple as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 44
        }));
        for ranges in [2, 3, 16] {
            let even = anywhere.cuts(ranges, 1 << 20, [0, 1 << 20]);
            assert!(even.is_none(), "chance, {ranges} ranges: {even:?}");
        }
        let even = uniform(1 << 20).cuts(2, 1 << 20, [0, 1 << 20]);
        assert!(even.is_none(), "evenly");
        // Three quarters of the tuples below 1000.
        let number = |tuple: usize| {
            if tuple % 4 < 3 {
                tuple as u64 * 3
            } else {
                1 << 19
            }
        };
        let skewed = sample(std::array::from_fn(number));
        let in_place = skewed.cuts(2, 1 << 20, [0, 1 << 20]).expect("unevenly");
        let first = in_place.range(0, 1 << 20);
        assert!(
            (400..700).contains(&first.end),
            "{first:?} has half of the tuples"
        );
        // Of 1.5 in all, 0.5 are for numbers.
        let copying = skewed.cuts(2, 1 << 20, [1 << 19, 1 << 20]);
        let first = copying.expect("unevenly").range(0, 1 << 20);
        assert!(
            (500..2000).contains(&first.end),
            "{first:?} has half of the work"
        );
        let one = sample([77; SAMPLE]).cuts(2, 100, [0, 1]).expect("unevenly");
        let has = |index: usize| one.range(index, 100).contains(&77);
        assert!(has(0) != has(1), "one range has the one destination");
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
        assert!(sample.distinct(1 << 20, 1 << 20) > 4096.0);
        assert!(
            (0.49..0.52).contains(&sample.most(0)),
            "one has half of them"
        );
        assert!((0.99..=1.0).contains(&sample.most(8)), "all in one range");
    }
}
