//! A sample of the destinations of at most 256 tuples. The sample gives estimates of the number of
//! distinct destinations, of the fraction of tuples with the most frequent destination, and of the
//! locality of the list.
//!
//! This module knows destination numbers. This module knows nothing of windows or schedules.

use super::tile::{Cuts, LINE_BYTES, part};
use crate::plan::Destinations;

/// Maximum number of sampled tuples.
const SAMPLE: usize = 256;

/// Minimum number of sampled tuples. Shorter lists are sampled completely. In longer lists, one of
/// `TUPLES_EACH` tuples is sampled, at least [`SHORT_SAMPLE`] and at most [`SAMPLE`] in total.
/// Short lists have small samples, because the whole call may take only ten times as long as
/// reading [`SAMPLE`] tuples.
const SHORT_SAMPLE: usize = 64;
const TUPLES_EACH: usize = 256;

/// Tolerance for the work of one range of destinations, as a fraction of the mean work of all
/// ranges. The ranges have about equal work if each range has at most `1 + UNEVEN` times the mean
/// work. For small samples, [`Sample::cuts`] uses a larger tolerance.
const UNEVEN: f64 = 0.25;

/// Destination numbers of some tuples of a plan. The sampled tuples have a constant stride in the
/// plan's list. A list of at most [`SHORT_SAMPLE`] tuples is sampled completely.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Destination numbers of the sampled tuples, in ascending order. Only the first `len` entries
    /// are used.
    numbers: [u64; SAMPLE],
    len: usize,
    /// Whether the sample has all tuples of the list.
    is_all: bool,
    /// Bytes from one slice to the slice of the next destination number.
    pub(super) unit: u64,
    pub(super) neighbours: Neighbours,
    /// Frequencies of the destinations in `numbers`. The sample stores the frequencies, because
    /// every execution of a kept plan reads them.
    counts: Counts,
}

/// Locality of the list: how close the window of a tuple is to the window of the next tuple in the
/// list. Each field is a fraction of the sampled tuples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Neighbours {
    /// Fraction of the tuples whose destination is the destination of the next tuple.
    pub(super) same: f64,
    /// Fraction of the tuples whose window begins in the same cache line as the window of the next
    /// tuple.
    pub(super) in_line: f64,
    /// Fraction of the tuples whose window begins less than a memory page before or after the
    /// window of the next tuple.
    pub(super) in_page: f64,
}

/// Frequencies of destinations in a sample.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Number of distinct destinations.
    distinct: f64,
    /// Number of destinations with exactly one sampled tuple, and number of destinations with
    /// exactly two sampled tuples.
    once: f64,
    twice: f64,
    /// Number of sampled tuples whose destination has three or more sampled tuples.
    more: f64,
}

impl Counts {
    /// Counts the destinations in `numbers`, which are in ascending order.
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

    /// Returns the estimated number of destinations in use among `slices` slices. The estimate
    /// assumes that all destinations in use are equally frequent. If random tuples over all slices
    /// would give about as many repeated destinations as the sample has, the function returns
    /// `slices`.
    fn population(self, slices: f64) -> f64 {
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

    /// Whether some destinations are far more frequent than others. If all destinations were
    /// equally frequent, the numbers of destinations with one and with two sampled tuples would
    /// determine the expected value of `more`. In a skewed sample, `more` is far larger than this
    /// expected value.
    fn is_skewed(self) -> bool {
        if self.once == 0.0 {
            return false;
        }
        let each = 2.0 * self.twice / self.once;
        let expected = self.once * (each.exp() - 1.0 - each);
        self.more > 4.0 * expected + 6.0
    }
}

/// Bytes of a memory page on most machines.
pub(super) const PAGE_BYTES: u64 = 4096;

impl Sample {
    /// Takes a sample of `destinations`. The slices of successive destination numbers are `unit`
    /// bytes apart.
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

    /// Whether two sampled tuples have the same destination.
    pub(super) fn has_duplicates(&self) -> bool {
        !self.numbers().is_sorted_by(|before, after| before < after)
    }

    /// Returns the largest fraction of the sampled tuples in one range of `1 << shift` destination
    /// numbers.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    pub(super) fn largest_fraction(&self, shift: u32) -> f64 {
        let most = self.range_counts(shift).max().unwrap_or(0);
        most as f64 / self.len.max(1) as f64
    }

    fn numbers(&self) -> &[u64] {
        &self.numbers[..self.len]
    }

    /// Returns the estimated number of distinct destinations of `tuples` tuples among `slices`
    /// slices.
    ///
    /// If destinations are about equally frequent, the number of destinations in use is estimated
    /// from the numbers of destinations with one and with two sampled tuples (Chao 1984). The
    /// result excludes the destinations that `tuples` random tuples are expected to miss.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn distinct(&self, tuples: usize, slices: u64) -> f64 {
        let (tuples, slices) = (tuples as f64, slices as f64);
        let counts = self.counts;
        if self.is_all {
            return counts.distinct;
        }
        let reached = |tuples: f64, population: f64| {
            population * (1.0 - (-tuples / population.max(1.0)).exp())
        };
        let found = if counts.is_skewed() {
            // Zipf and similar distributions: tuples of rare destinations may address any slice,
            // but are not spread uniformly. The estimate is half the number of slices that uniform
            // tuples would reach.
            let rest = counts.once / self.len.max(1) as f64;
            (reached(tuples * rest, slices) / 2.0).max(counts.distinct)
        } else {
            reached(tuples, counts.population(slices))
        };
        found.clamp(1.0, tuples.max(1.0))
    }

    /// Whether each of `parts` workers gets at most 1.25 times the mean number of tuples per
    /// worker, as far as the sample shows. The destination numbers are divided into ranges of `1 <<
    /// shift` numbers. A worker that has finished a range takes another range.
    pub(super) fn balances(&self, shift: u32, parts: usize) -> bool {
        let mut loads = [0; SAMPLE];
        let loads = &mut loads[..parts.clamp(1, SAMPLE)];
        for tuples in self.range_counts(shift) {
            if let Some(least) = loads.iter_mut().min() {
                *least += tuples;
            }
        }
        let most = loads.iter().max().map_or(0, |&most| most);
        most * loads.len() <= self.len * 5 / 4
    }

    /// Returns the destination numbers at which to cut the range `0..count` into `ranges` ranges of
    /// about equal work. The item `work[0]` is the work that is proportional to the size of a
    /// range, summed over all ranges. The item `work[1]` is the work that is proportional to the
    /// number of tuples, summed over all tuples. Returns `None` if ranges of equal size have about
    /// equal work, as far as the sample shows.
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
        // With few sampled tuples per range, ranges of equal size have different numbers of sampled
        // tuples by chance. Ranges that are cut to fit such chance differences are worse than
        // ranges of equal size.
        let chance = 3.0 / (self.len as f64 / ranges as f64).sqrt();
        let most = each + (UNEVEN * each).max(chance * tuples / ranges as f64);
        let is_even = (0..ranges).all(|index| load(even(index).start, even(index).end) <= most);
        if is_even || ranges < 2 {
            return None;
        }
        // The destination number below which the destinations have about the fraction `index /
        // ranges` of all work.
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

    /// Returns the number of sampled tuples in each range of `1 << shift` destination numbers.
    /// Ranges without sampled tuples are left out.
    fn range_counts(&self, shift: u32) -> impl Iterator<Item = usize> {
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

    /// Returns a sample of random tuples with `count` equally frequent destinations.
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
            // No two sampled tuples have the same destination.
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
        assert_eq!(all.distinct(9, 1 << 40), 9.0, "a sample of all tuples");
    }

    /// In the sampled lists, the frequency of a destination is proportional to the inverse of its
    /// rank. One random list of 262144 such tuples had 18151 distinct destinations, of 20000
    /// possible destinations.
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
        assert!(even.is_none(), "even tuples");
        // Three quarters of the sampled tuples have destination numbers below 1000.
        let number = |tuple: usize| {
            if tuple % 4 < 3 {
                tuple as u64 * 3
            } else {
                1 << 19
            }
        };
        let skewed = sample(std::array::from_fn(number));
        let in_place = skewed
            .cuts(2, 1 << 20, [0, 1 << 20])
            .expect("uneven tuples");
        let first = in_place.range(0, 1 << 20);
        assert!(
            (400..700).contains(&first.end),
            "{first:?} has half of the tuples"
        );
        // The work of a range of destination numbers has two parts: a part proportional to the size
        // of the range, and a part proportional to its number of tuples. Summed over both ranges,
        // the first part is a third of the work, and the second part is two thirds.
        let copying = skewed.cuts(2, 1 << 20, [1 << 19, 1 << 20]);
        let first = copying.expect("uneven tuples").range(0, 1 << 20);
        assert!(
            (500..2000).contains(&first.end),
            "{first:?} has half of the work"
        );
        let one = sample([77; SAMPLE])
            .cuts(2, 100, [0, 1])
            .expect("uneven tuples");
        let has = |index: usize| one.range(index, 100).contains(&77);
        assert!(has(0) != has(1), "one range with the only destination");
    }

    #[test]
    fn ranges_are_shared_out() {
        let two = uniform(1 << 20);
        assert!(two.balances(19, 2), "one range each");
        assert!(!two.balances(20, 2), "one range with all tuples");
        let three = uniform(3 << 19);
        assert!(!three.balances(19, 2), "two ranges against one");
        assert!(three.balances(19, 3), "one range each");
        assert!(three.balances(18, 2), "three ranges each");
        let skewed = sample(std::array::from_fn(|tuple| (tuple as u64 / 200) << 19));
        assert!(!skewed.balances(19, 2), "one range with most tuples");
    }

    /// Half of the sampled tuples have one destination. The other tuples have distinct
    /// destinations.
    #[test]
    fn a_long_tail_is_seen() {
        let numbers = std::array::from_fn(|tuple| (tuple as u64).saturating_sub(127));
        let sample = sample(numbers);
        assert!(sample.distinct(1 << 20, 1 << 20) > 4096.0);
        assert!(
            (0.49..0.52).contains(&sample.largest_fraction(0)),
            "half of the tuples in one destination"
        );
        assert!(
            (0.99..=1.0).contains(&sample.largest_fraction(8)),
            "all in one range"
        );
    }
}
