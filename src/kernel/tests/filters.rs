//! Tests that compare the filters of `kernel::filter` with a filter by iterators, on every
//! instruction set of this machine.

use std::fmt::Debug;
use std::ops::Range;

use super::super::InstructionSet;
use super::super::filter::{Filtered, NoEntries, PositionEntries, ValueEntries, filter};
use super::Bits;

/// Returns lengths of lists: around the number of lanes of each vector, and around 1024, the length
/// of the blocks that the schedule by destination filters.
fn lengths() -> impl Iterator<Item = usize> {
    (0..70).chain(1023..=1025)
}

/// Returns `len` random numbers in `lowest..lowest + count`.
fn random_numbers(bits: &mut Bits, len: usize, lowest: u64, count: u64) -> Vec<u64> {
    (0..len).map(|_| lowest + bits.next() % count).collect()
}

/// Returns ranges for a list of numbers. Some ranges contain no number, all numbers, or some
/// numbers. One range contains only the first number, and one range contains only the last number.
fn ranges(numbers: &[u64], lowest: u64, count: u64) -> Vec<Range<u64>> {
    let (middle, end) = (lowest + count / 2, lowest + count);
    let mut ranges = vec![
        lowest..lowest,
        0..lowest,
        end..u64::MAX,
        lowest..end,
        0..u64::MAX,
        lowest..middle,
        middle..end,
        lowest + 1..end - 1,
    ];
    let ends = numbers.first().into_iter().chain(numbers.last());
    ranges.extend(ends.map(|&number| number..number + 1));
    ranges
}

/// Checks that `run` keeps the numbers of `numbers` that are in `range`, as integers of type `K`,
/// and the entry of each kept number. The function `run` gets room for all numbers and all entries.
fn check<N, K, E>(
    numbers: &[N],
    range: &Range<u64>,
    entries: &[E],
    run: impl Fn(InstructionSet, &mut [K], &mut [E]) -> usize,
) where
    N: Copy + Into<u64>,
    K: Copy + TryFrom<u64> + PartialEq + Debug + Default,
    E: Copy + PartialEq + Debug,
{
    let keep = |(&number, &entry): (&N, &E)| {
        let kept = K::try_from(number.into()).ok()?;
        range.contains(&number.into()).then_some((kept, entry))
    };
    let (expected, expected_entries): (Vec<K>, Vec<E>) =
        numbers.iter().zip(entries).filter_map(keep).unzip();
    for &set in InstructionSet::available() {
        let mut kept = vec![K::default(); numbers.len()];
        let mut kept_entries = entries.to_vec();
        kept_entries.reverse();
        let len = run(set, &mut kept, &mut kept_entries);
        let case = format!("{set}, {} numbers, {range:?}", numbers.len());
        assert_eq!(kept[..len], expected, "numbers, {case}");
        assert_eq!(kept_entries[..len], expected_entries, "entries, {case}");
    }
}

/// Returns `len` values of `W` bytes. If `W` is at least 2, the values are distinct (for up to
/// 65536 values).
fn values<const W: usize>(len: usize) -> Vec<[u8; W]> {
    let value = |at: usize| {
        let bytes = (at as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(9)
            ^ at as u64;
        std::array::from_fn(|byte| {
            if byte < 2 {
                at.to_le_bytes()[byte]
            } else {
                bytes.to_le_bytes()[byte]
            }
        })
    };
    (0..len).map(value).collect()
}

fn check_values<N, K, const W: usize>(numbers: &[N], range: &Range<u64>)
where
    N: Filtered<K> + Into<u64>,
    K: Copy + TryFrom<u64> + PartialEq + Debug + Default,
{
    let values = &values::<W>(numbers.len());
    check(numbers, range, values, |set, kept, kept_values| {
        let entries = ValueEntries {
            values,
            kept: kept_values,
        };
        filter(set, numbers, range, kept, entries)
    });
}

fn check_all<N, K>(numbers: &[u64], range: &Range<u64>)
where
    N: Filtered<K> + Into<u64> + TryFrom<u64>,
    K: Copy + TryFrom<u64> + PartialEq + Debug + Default,
{
    let fitting = |&number: &u64| N::try_from(number).unwrap_or_else(|_| panic!("{number} fits"));
    let numbers = &numbers.iter().map(fitting).collect::<Vec<N>>();
    let first = 3_000_000_000_u32;
    let position = |at: usize| first + u32::try_from(at).expect("a short list");
    let positions: Vec<u32> = (0..numbers.len()).map(position).collect();
    check(numbers, range, &positions, |set, kept, kept_positions| {
        let entries = PositionEntries {
            first,
            kept: kept_positions,
        };
        filter(set, numbers, range, kept, entries)
    });
    let nothing = vec![(); numbers.len()];
    check(numbers, range, &nothing, |set, kept, _| {
        filter(set, numbers, range, kept, NoEntries)
    });
    check_values::<N, K, 1>(numbers, range);
    check_values::<N, K, 2>(numbers, range);
    check_values::<N, K, 4>(numbers, range);
    check_values::<N, K, 8>(numbers, range);
}

#[test]
fn numbers_of_32_bits() {
    let mut bits = Bits(1);
    // Numbers from 0 on, numbers around 2^31 (the sign bit), and numbers up to `u32::MAX`.
    for (lowest, count) in [(0, 5), ((1 << 31) - 9, 18), (u64::from(u32::MAX) - 9, 10)] {
        for len in lengths() {
            let numbers = random_numbers(&mut bits, len, lowest, count);
            for range in ranges(&numbers, lowest, count) {
                check_all::<u32, u32>(&numbers, &range);
            }
        }
    }
}

#[test]
fn numbers_of_64_bits() {
    let mut bits = Bits(2);
    // Numbers from 0 on, numbers around 2^32, 2^33 and 2^63 (the sign bit), and numbers up to
    // `u64::MAX - 1`.
    let cases = [
        (0, 5),
        ((1 << 32) - 9, 18),
        ((1 << 33) - 9, 18),
        ((1 << 63) - 9, 18),
        (u64::MAX - 9, 9),
    ];
    for (lowest, count) in cases {
        for len in lengths() {
            let numbers = random_numbers(&mut bits, len, lowest, count);
            for range in ranges(&numbers, lowest, count) {
                check_all::<u64, u64>(&numbers, &range);
                check_all::<u64, u32>(&numbers, &range);
            }
        }
    }
    // All numbers have equal low 32 bits. Only the high 32 bits decide which numbers are in the
    // range.
    let numbers: Vec<u64> = (0..99).map(|at| (at % 3) << 32 | 7).collect();
    check_all::<u64, u64>(&numbers, &((1 << 32)..(2 << 32)));
    check_all::<u64, u32>(&numbers, &((1 << 32)..(2 << 32)));
}

/// Each of the 256 combinations of kept numbers among eight numbers.
#[test]
fn every_mask() {
    for mask in 0..256_u64 {
        let numbers: Vec<u64> = (0..16).map(|lane| mask >> (lane % 8) & 1).collect();
        check_all::<u32, u32>(&numbers, &(1..2));
        check_all::<u64, u64>(&numbers, &(1..2));
        check_all::<u64, u32>(&numbers, &(1..2));
    }
}

#[test]
#[should_panic(expected = "one entry for each number")]
fn room_is_checked() {
    let range = 0..1;
    filter(
        InstructionSet::LAST,
        &[0_u32; 20],
        &range,
        &mut [0; 19],
        NoEntries,
    );
}

#[test]
#[should_panic(expected = "one entry for each number")]
fn room_beside_is_checked() {
    let entries = ValueEntries {
        values: &[[0_u8; 4]; 19],
        kept: &mut [[0; 4]; 20],
    };
    filter(
        InstructionSet::LAST,
        &[0_u32; 20],
        &(0..1),
        &mut [0; 20],
        entries,
    );
}
