//! Detection of duplicates, and lists of tuples sorted by destination.
//!
//! The detection is exact for the destination numbers of a plan. For a list of at most 64 tuples,
//! the detection compares each tuple with all earlier tuples. For a longer list, the detection uses
//! a bitmap with one bit per destination number, unless the bitmap would be too large. If the
//! bitmap would be too large, the detection sorts the list. In a list that is known to be in
//! ascending order, the detection only compares neighbours.
//!
//! This module knows destination numbers. This module does not know what data tuples move.

use std::ops::Range;

use super::destinations::{Destinations, for_numbers};
use super::number::Number;
use super::sort;
use crate::error::ScatterError;
use crate::memory::{with_room, zeroed};
use crate::work::{self, Work};

/// Two tuples with the same destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// Position in the list of the later of the two tuples.
    pub(crate) tuple: usize,
    /// Position in the list of the last tuple before `tuple` that has the destination of `tuple`.
    pub(crate) earlier: usize,
}

/// Maximum size of a bitmap for a list of any length, in bytes: half of a second-level cache (L2)
/// of 1 MiB, a typical size. [`BITMAP_BYTES_EACH`] permits larger bitmaps for long lists.
const BITMAP_BYTES: u64 = 512 * 1024;

/// Maximum size of a bitmap for a long list, in bytes per tuple of the list. This bitmap can be
/// larger than a cache. But accesses to different bits of the bitmap can overlap their cache
/// misses. A sort would instead pass several times over 16 bytes of scratch memory per tuple.
const BITMAP_BYTES_EACH: u64 = 4;

/// Maximum number of tuples of a list that is checked by comparing each tuple with all earlier
/// tuples.
const COMPARED_TUPLES: usize = 64;

/// Whether a bitmap of `count` bits is small enough for a list of `tuples` tuples.
fn fits_bitmap(tuples: usize, count: u64) -> bool {
    let limit = (tuples as u64).saturating_mul(BITMAP_BYTES_EACH);
    count.div_ceil(8) <= limit.max(BITMAP_BYTES)
}

/// Whether [`first_duplicate`] sorts a list of `tuples` tuples whose destination numbers are below
/// `count`.
pub(crate) fn detects_by_sort(tuples: usize, count: u64) -> bool {
    tuples > COMPARED_TUPLES && !fits_bitmap(tuples, count)
}

/// Returns the bytes of scratch memory that [`first_duplicate`] needs for `tuples` tuples whose
/// destination numbers are below `count`.
pub(crate) fn detection_bytes(tuples: usize, count: u64) -> usize {
    if tuples <= COMPARED_TUPLES {
        0
    } else if fits_bitmap(tuples, count) {
        usize::try_from(count.div_ceil(8)).unwrap_or(usize::MAX)
    } else {
        tuples.saturating_mul(2 * size_of::<u64>())
    }
}

/// Returns the first duplicate (a tuple with the destination of a tuple before it), and the last
/// tuple before it with the same destination. Returns `None` if all destinations are distinct.
/// `count` is the exclusive upper bound of the destination numbers.
pub(crate) fn first_duplicate(
    destinations: &Destinations,
    count: u64,
) -> Result<Option<Duplicate>, ScatterError> {
    let found = for_numbers!(destinations, numbers => first_position(numbers, count))?;
    Ok(found.map(|tuple| {
        let number = destinations.get(tuple);
        let earlier = (0..tuple).rev().find(|&t| destinations.get(t) == number);
        // If no earlier tuple has this number, the number is not below `count`. No plan contains a
        // number that is not below `count`. The function still returns a duplicate, because without
        // a duplicate the caller would treat the list as distinct and divide the list among tasks.
        let earlier = earlier.unwrap_or(tuple);
        Duplicate { tuple, earlier }
    }))
}

/// Returns the first duplicate of a list whose destination numbers are in ascending order.
pub(crate) fn first_of_ordered(destinations: &Destinations) -> Option<Duplicate> {
    work::note(Work::Looking);
    let repeats = |tuple: &usize| destinations.get(*tuple) == destinations.get(tuple - 1);
    let tuple = (1..destinations.len()).find(repeats)?;
    Some(Duplicate {
        tuple,
        earlier: tuple - 1,
    })
}

/// Returns the position of the first number that is equal to a number before it in `numbers`.
/// Returns `None` if all numbers are distinct.
///
/// No plan contains a number that is not below `count`. If `numbers` contains such a number, the
/// bitmap reports a number past the end of the bitmap as a duplicate. The sort of packed entries
/// reports the first number that is not below `count`.
fn first_position<N: Number>(numbers: &[N], count: u64) -> Result<Option<usize>, ScatterError> {
    work::note(Work::Looking);
    if numbers.len() <= COMPARED_TUPLES {
        return Ok(by_comparing_all(numbers));
    }
    if fits_bitmap(numbers.len(), count) {
        return by_bitmap(numbers, count);
    }
    by_sort(numbers, count)
}

/// Returns the position of the first duplicate. Compares each number with all earlier numbers.
fn by_comparing_all<N: Number>(numbers: &[N]) -> Option<usize> {
    (1..numbers.len()).find(|&t| numbers[..t].contains(&numbers[t]))
}

/// Returns whether a short check proves that the destination numbers are distinct. The check can
/// prove this for strictly increasing numbers, and for lists of at most 64 numbers. For all other
/// lists the result is `false`.
pub(crate) fn known_distinct(numbers: &[u32]) -> bool {
    numbers.is_sorted_by(|before, after| before < after)
        || numbers.len() <= COMPARED_TUPLES && by_comparing_all(numbers).is_none()
}

/// Returns the position of the first duplicate. Marks each number in a bitmap and stops at the
/// first number that is already marked.
fn by_bitmap<N: Number>(numbers: &[N], count: u64) -> Result<Option<usize>, ScatterError> {
    let words = usize::try_from(count.div_ceil(64)).unwrap_or(usize::MAX);
    let mut seen: Vec<u64> = zeroed(words)?;
    Ok(numbers.iter().position(|number| {
        let number = number.get();
        let word = usize::try_from(number / 64).ok();
        let Some(word) = word.and_then(|word| seen.get_mut(word)) else {
            return true;
        };
        let bit = 1_u64 << (number % 64);
        let repeated = *word & bit != 0;
        *word |= bit;
        repeated
    }))
}

/// Returns the position of the first duplicate. Sorts packed numbers and tuples by number, and then
/// compares neighbours.
fn by_sort<N: Number>(numbers: &[N], count: u64) -> Result<Option<usize>, ScatterError> {
    let Some(packing) = Packing::new(numbers.len(), count) else {
        return by_comparisons(numbers);
    };
    // The sort below would ignore the upper bits of a number that is not below `count`.
    if let Some(outside) = numbers.iter().position(|number| number.get() >= count) {
        return Ok(Some(outside));
    }
    let list = packing.sorted(numbers)?;
    Ok((list.windows(2))
        .filter(|pair| packing.number(pair[0]) == packing.number(pair[1]))
        .map(|pair| packing.tuple(pair[1]))
        .min())
}

/// Returns the position of the first duplicate. Sorts positions by a comparison sort, and then
/// compares neighbours. This sort is for numbers and positions that together need more than 64
/// bits.
fn by_comparisons<N: Number>(numbers: &[N]) -> Result<Option<usize>, ScatterError> {
    let order = positions_by_number(numbers)?;
    Ok((order.windows(2))
        .filter(|pair| numbers[pair[0]] == numbers[pair[1]])
        .map(|pair| pair[1])
        .min())
}

/// Returns the positions of the list, sorted by the number at each position. Positions with equal
/// numbers are in ascending order.
fn positions_by_number<N: Number>(numbers: &[N]) -> Result<Vec<usize>, ScatterError> {
    let mut order = with_room(numbers.len())?;
    order.extend(0..numbers.len());
    order.sort_unstable_by_key(|&tuple| (numbers[tuple], tuple));
    Ok(order)
}

/// Packing of a destination number and a tuple into an entry of 64 bits. The number has the upper
/// bits and the tuple has the lower bits. Sorted entries of one destination are therefore in the
/// order of their tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    tuple_bits: u32,
    number_bits: u32,
}

impl Packing {
    /// Chooses the number of bits for each part of an entry, for `tuples` tuples and destination
    /// numbers below `count`. Returns `None` if a tuple and a number together need more than 64
    /// bits.
    pub(crate) fn new(tuples: usize, count: u64) -> Option<Self> {
        let bits = |values: u64| 64 - values.saturating_sub(1).leading_zeros();
        let packing = Self {
            tuple_bits: bits(tuples as u64),
            number_bits: bits(count),
        };
        (packing.tuple_bits + packing.number_bits <= 64 && packing.tuple_bits < 64)
            .then_some(packing)
    }

    /// Packs each number with its position in the list, and returns the entries sorted by number.
    fn sorted<N: Number>(self, numbers: &[N]) -> Result<Vec<u64>, ScatterError> {
        let low = self.tuple_bits;
        let mut list = with_room(numbers.len())?;
        let pack = |(tuple, number): (u64, &N)| (number.get() << low) | tuple;
        list.extend((0..).zip(numbers).map(pack));
        let mut spare: Vec<u64> = zeroed(numbers.len())?;
        sort::by_bits(&mut list, &mut spare, low, low + self.number_bits);
        Ok(list)
    }

    /// Returns the destination number of a packed entry.
    fn number(self, packed: u64) -> u64 {
        packed >> self.tuple_bits
    }

    /// Returns the tuple of a packed entry.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number of tuples fits a `usize`"
    )]
    fn tuple(self, packed: u64) -> usize {
        (packed & self.tuple_mask()) as usize
    }

    /// Returns the mask of the low bits of an entry, which hold the tuple.
    fn tuple_mask(self) -> u64 {
        (1 << self.tuple_bits) - 1
    }
}

/// List of tuples sorted by destination. Tuples of one destination keep their order. The list has
/// one entry for each tuple. After [`Self::keep_last`], the list has one entry for each
/// destination.
#[derive(Debug)]
pub(crate) enum Sorted {
    /// The original list of tuples, which is already sorted by destination.
    InOrder,
    /// Sorted entries. Each entry packs a destination number and a tuple in 64 bits.
    Packed { packing: Packing, list: Vec<u64> },
    /// Positions of tuples, sorted by destination. This form is for destination numbers and
    /// positions that together need more than 64 bits.
    Positions(Vec<usize>),
}

impl Sorted {
    /// Sorts tuples by destination. `count` is the exclusive upper bound of the destination
    /// numbers. `in_order`: the destination numbers are already in ascending order.
    pub(crate) fn new(
        destinations: &Destinations,
        count: u64,
        in_order: bool,
    ) -> Result<Self, ScatterError> {
        if in_order {
            return Ok(Self::InOrder);
        }
        work::note(Work::Sorting);
        for_numbers!(destinations, numbers => Ok(match Packing::new(numbers.len(), count) {
            Some(packing) => Self::Packed {
                list: packing.sorted(numbers)?,
                packing,
            },
            None => Self::Positions(positions_by_number(numbers)?),
        }))
    }

    /// Sorts tuples by destination with a comparison sort, which is faster for short lists.
    pub(crate) fn by_comparisons(destinations: &Destinations) -> Result<Self, ScatterError> {
        for_numbers!(destinations, numbers => positions_by_number(numbers).map(Self::Positions))
    }

    /// Removes all entries of the sorted list except the last entry of each destination.
    /// [`Self::InOrder`] stays unchanged, so its destinations must be distinct.
    pub(crate) fn keep_last(&mut self, destinations: &Destinations) {
        match self {
            Self::InOrder => {}
            Self::Packed { packing, list } => keep_last(list, |packed| packing.number(packed)),
            Self::Positions(list) => keep_last(list, |tuple| destinations.get(tuple)),
        }
    }

    /// Returns the number of entries of the sorted list. `tuples` is the number of tuples of the
    /// plan, without skipped tuples.
    pub(crate) fn len(&self, tuples: usize) -> usize {
        match self {
            Self::InOrder => tuples,
            Self::Packed { list, .. } => list.len(),
            Self::Positions(list) => list.len(),
        }
    }

    /// Returns the destination number and the tuple of the entry at `position` in the sorted list.
    #[inline]
    pub(crate) fn get(&self, destinations: &Destinations, position: usize) -> (u64, usize) {
        match self {
            Self::InOrder => (destinations.get(position), position),
            Self::Packed { packing, list } => {
                let packed = list[position];
                (packing.number(packed), packing.tuple(packed))
            }
            Self::Positions(list) => (destinations.get(list[position]), list[position]),
        }
    }

    /// Returns the groups in a range of entries of the sorted list. A group consists of all entries
    /// of one destination. The range must consist of complete groups. Each item is the destination
    /// number of a group and the range of the group's entries.
    pub(crate) fn groups<'s>(
        &'s self,
        destinations: &'s Destinations,
        mut positions: Range<usize>,
    ) -> impl Iterator<Item = (u64, Range<usize>)> + 's {
        let number_at = move |position: usize| self.get(destinations, position).0;
        std::iter::from_fn(move || {
            let start = positions.next()?;
            let number = number_at(start);
            while positions.start < positions.end && number_at(positions.start) == number {
                positions.start += 1;
            }
            Some((number, start..positions.start))
        })
    }

    /// Returns the position in the sorted list of the first entry whose destination number is at
    /// least `number`.
    pub(crate) fn first_from(&self, destinations: &Destinations, number: u64) -> usize {
        match self {
            Self::InOrder => for_numbers!(destinations, numbers => {
                numbers.partition_point(|other| other.get() < number)
            }),
            Self::Packed { packing, list } => {
                list.partition_point(|&packed| packing.number(packed) < number)
            }
            Self::Positions(list) => list.partition_point(|&at| destinations.get(at) < number),
        }
    }

    /// Returns the sorted entries of [`Self::Packed`], each a destination number and a tuple packed
    /// in 64 bits, and the mask of the bits that hold the tuple. Returns `None` if the list is not
    /// [`Self::Packed`].
    pub(crate) fn packed(&self) -> Option<(&[u64], u64)> {
        match self {
            Self::Packed { packing, list } => Some((list, packing.tuple_mask())),
            _ => None,
        }
    }
}

/// Removes all entries except the last entry of each sequence of neighbouring entries with equal
/// numbers.
fn keep_last<E: Copy>(list: &mut Vec<E>, number: impl Fn(E) -> u64) {
    let mut kept = 0;
    for at in 0..list.len() {
        let is_last = (list.get(at + 1)).is_none_or(|&next| number(next) != number(list[at]));
        list[kept] = list[at];
        kept += usize::from(is_last);
    }
    list.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::{
        Packing, Sorted, by_bitmap, by_comparisons, by_sort, first_duplicate, known_distinct,
        positions_by_number,
    };
    use crate::plan::Destinations;
    use crate::plan::duplicates::Duplicate;

    fn destinations(numbers: &[u32]) -> Destinations {
        Destinations::Narrow(numbers.into())
    }

    #[test]
    fn the_short_check_is_right() {
        let few: Vec<u32> = (0..64).rev().collect();
        let many: Vec<u32> = (0..65).rev().collect();
        let increasing: Vec<u32> = (0..500).collect();
        assert!(known_distinct(&few), "at most 64");
        assert!(known_distinct(&increasing), "increasing");
        assert!(!known_distinct(&many), "more than 64, not increasing");
        assert!(!known_distinct(&[3, 1, 3]), "a duplicate among three");
        assert!(!known_distinct(&[1, 1]), "neighbouring duplicates");
    }

    #[test]
    fn reports_the_first_duplicate_and_the_last_earlier_tuple() {
        let cases = [
            (vec![3, 1, 2], None),
            (vec![3, 1, 1, 3], Some((2, 1))),
            (vec![0, 0, 0], Some((1, 0))),
            (vec![5, 4, 3, 2, 5, 2], Some((4, 0))),
        ];
        for (numbers, expected) in cases {
            let expected = expected.map(|(tuple, earlier)| Duplicate { tuple, earlier });
            assert_eq!(
                first_duplicate(&destinations(&numbers), 8),
                Ok(expected),
                "{numbers:?}"
            );
        }
    }

    #[test]
    fn all_methods_of_detection_agree() {
        for seed in 0..200_u32 {
            let numbers: Vec<u32> = (0..90_u32)
                .map(|i| {
                    (i + 1)
                        .wrapping_mul(seed * 2 + 1)
                        .wrapping_mul(2_654_435_761)
                        % 4099
                })
                .collect();
            let expected = by_comparisons(&numbers);
            assert_eq!(by_bitmap(&numbers, 4099), expected, "bitmap, seed {seed}");
            assert_eq!(by_sort(&numbers, 4099), expected, "sort, seed {seed}");
        }
    }

    /// A list must not be divided among tasks if one of its numbers is far above `count`. The
    /// detection therefore reports this number as a duplicate.
    #[test]
    fn a_number_that_no_plan_contains_is_a_duplicate() {
        let count = 200;
        let mut numbers: Vec<u32> = (0..90).collect();
        numbers[70] = 5_000;
        assert_eq!(by_bitmap(&numbers, count), Ok(Some(70)), "past the bitmap");
        assert_eq!(by_sort(&numbers, count), Ok(Some(70)), "past the bits");
        let repeat = first_duplicate(&destinations(&numbers), count).expect("memory");
        assert_eq!(repeat.map(|repeat| repeat.tuple), Some(70), "a duplicate");
    }

    #[test]
    fn last_writes_are_the_last_of_each_destination() {
        let list = destinations(&[7, 2, 7, 0, 2, 9]);
        let mut last_writes = Sorted::new(&list, 10, false).expect("memory for six");
        let Destinations::Narrow(numbers) = &list else {
            panic!("the numbers have 32 bits");
        };
        let mut apart = Sorted::Positions(positions_by_number(numbers).expect("memory for six"));
        for (position, (number, tuple)) in [(0, 3), (2, 1), (2, 4), (7, 0), (7, 2), (9, 5)]
            .into_iter()
            .enumerate()
        {
            assert_eq!(last_writes.get(&list, position), (number, tuple), "grouped");
            assert_eq!(
                apart.get(&list, position),
                (number, tuple),
                "by comparisons"
            );
        }
        last_writes.keep_last(&list);
        apart.keep_last(&list);
        assert_eq!(apart.len(6), last_writes.len(6), "equal lengths");
        let found: Vec<_> = (0..last_writes.len(6))
            .map(|p| last_writes.get(&list, p))
            .collect();
        assert_eq!(found, [(0, 3), (2, 4), (7, 2), (9, 5)], "sorted by number");
        assert_eq!(
            last_writes.first_from(&list, 3),
            2,
            "the first number that is at least 3 is 7"
        );
        assert_eq!(last_writes.first_from(&list, 10), 4, "past the end");
    }

    #[test]
    fn packing_needs_at_most_64_bits() {
        assert!(Packing::new(1 << 20, 1 << 44).is_some(), "64 bits exactly");
        assert!(Packing::new(1 << 20, (1 << 44) + 1).is_none(), "65 bits");
        assert!(Packing::new(1, 1).is_some(), "no bits at all");
    }
}
