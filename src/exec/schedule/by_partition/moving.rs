//! Sorts tuples, stably, into partitions. The first step counts the tuples of each partition, the
//! second step moves them.
//!
//! This module knows partitions, and what is moved with destination numbers. It does not know how
//! partitions are applied.

use std::ops::Range;

use super::super::super::scratch::Scratch;
use super::super::super::shared_slots::SharedSlots;
use super::super::super::tasks::Workers;
use super::super::super::tile::part;
use super::super::super::transfer::Transfer;
use crate::error::ScatterError;
use crate::kernel::Spread;
use crate::memory::with_room;
use crate::plan::Number;
use crate::work::{self, Work};

/// Bytes of the largest value that is moved with its destination number. A call then needs at
/// most 16 bytes per tuple.
pub(super) const CARRIED_BYTES: usize = 8;

/// Maximum number of partitions. While tuples are moved, each partition needs an entry of the
/// translation buffer.
pub(super) const MOST_PARTITIONS: u32 = 256;

/// Number of empty places before each partition: a memory page and a cache line of narrow numbers.
/// Without the gap, partitions with a power of two of tuples begin a power of two of bytes apart.
/// Such partitions share a small number of sets of the translation buffer and of the first-level
/// cache, and moving the tuples takes three times as long.
const PARTITION_GAP: u32 = (4096 + 64) / 4;

/// Maximum number of tuples in a list that is sorted into partitions. The places of the tuples,
/// gaps included, have 32 bits. A place is a position in the sorted list.
pub(super) const MOST_PARTITIONED: usize =
    (u32::MAX - (MOST_PARTITIONS + 1) * PARTITION_GAP) as usize;

/// Returns the number of ranges of `1 << shift` numbers below `count`, at least 1.
pub(in super::super::super) fn partitions(count: u64, shift: u32) -> usize {
    usize::try_from(count.div_ceil(1 << shift).max(1)).unwrap_or(usize::MAX)
}

/// Returns the number of places for `tuples` tuples in `partitions` partitions, gaps included.
pub(super) fn places(tuples: usize, partitions: usize) -> usize {
    tuples.saturating_add(partitions.saturating_mul(PARTITION_GAP as usize))
}

/// All tuples, sorted into partitions. The tuples of a partition keep their order.
#[derive(Debug)]
pub(super) struct Partitions<N> {
    pub(super) shift: u32,
    /// Places of the tuples of each partition.
    pub(super) ranges: Vec<Range<usize>>,
    /// Destination number at each place.
    pub(super) numbers: Vec<N>,
    pub(super) carried: Carried,
}

/// The data that is stored with the destination numbers.
#[derive(Debug)]
pub(super) enum Carried {
    /// The value at each place. A word may hold several values.
    Values(Vec<u64>),
    /// The position in the plan's list of the tuple at each place.
    Tuples(Vec<u32>),
    /// The place of each tuple of the list. Every execution of a kept plan moves its values to
    /// these places.
    Targets(Vec<u32>),
}

impl<N: Scratch> Partitions<N> {
    /// Returns the buffers to the cache of scratch buffers.
    pub(super) fn put_back(self) {
        N::put_back(self.numbers);
        match self.carried {
            Carried::Values(values) => Scratch::put_back(values),
            Carried::Tuples(list) | Carried::Targets(list) => Scratch::put_back(list),
        }
    }
}

/// The parameters of sorting tuples into partitions.
#[derive(Clone, Copy)]
pub(super) struct Sorting<'p, 'w> {
    pub(super) transfer: &'w Transfer<'p>,
    pub(super) workers: &'w Workers<'w>,
    /// Number of parts of the list of tuples. One task moves each part.
    pub(super) parts: usize,
    pub(super) partitions: usize,
    pub(super) shift: u32,
}

impl Sorting<'_, '_> {
    /// Sorts all tuples into partitions. `take` allocates the buffer of the numbers, and
    /// `take_carried` allocates the buffer of what is stored with them. Both get the number of
    /// places.
    pub(super) fn sort<N: Number>(
        &self,
        numbers: &[N],
        take: impl FnOnce(usize) -> Result<Vec<N>, ScatterError>,
        take_carried: impl FnOnce(usize) -> Result<Carried, ScatterError>,
    ) -> Result<Partitions<N>, ScatterError> {
        let places = places(numbers.len(), self.partitions);
        let mut moved = take(places)?;
        let mut carried = take_carried(places)?;
        let (mut cursors, ranges) = self.count(numbers, places)?;
        // Scratch memory may be longer.
        self.move_all(numbers, &mut cursors, &mut moved[..places], &mut carried)?;
        Ok(Partitions {
            shift: self.shift,
            ranges,
            numbers: moved,
            carried,
        })
    }

    /// Returns the number of words that hold `values` values.
    pub(super) fn words(&self, values: usize) -> usize {
        let bytes = values.saturating_mul(self.transfer.kernels().size);
        bytes.div_ceil(size_of::<u64>())
    }

    fn partition(&self, number: u64) -> usize {
        usize::try_from(number >> self.shift).unwrap_or(usize::MAX)
    }

    /// Counts the tuples of each part in each partition.
    ///
    /// Returns two lists. The first list has, for each part and partition, the place of the first
    /// tuple. The second list has the places of each partition, all below `places`.
    fn count<N: Number>(
        &self,
        numbers: &[N],
        places: usize,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>), ScatterError> {
        work::note(Work::Partitioning);
        let mut cursors = crate::memory::zeroed(self.parts * self.partitions)?;
        (self.workers).run_chunks(&mut cursors, self.partitions, &|index, counts| {
            let numbers = &numbers[part(numbers.len(), self.parts, index)];
            self.count_into(counts, numbers);
        })?;
        let ranges = ranges_of(self.parts, self.partitions, &mut cursors)?;
        check_ranges(&ranges, numbers.len(), places);
        Ok((cursors, ranges))
    }

    /// Sets `counts` to the number of `numbers` in each partition.
    ///
    /// Four tables count in turn, because the next increment of a counter would wait for the store
    /// of the last one. Measured in a loop without the rest of the crate (Zen 4, 4 M numbers, 128
    /// partitions, two workers): 0.8 ms, and 1.5 ms with one table of counters.
    fn count_into<N: Number>(&self, counts: &mut [u32], numbers: &[N]) {
        let mut tables = [[0_u32; MOST_PARTITIONS as usize]; 4];
        let mut blocks = numbers.chunks_exact(tables.len());
        for block in &mut blocks {
            for (table, number) in tables.iter_mut().zip(block) {
                table[self.partition(number.get())] += 1;
            }
        }
        for number in blocks.remainder() {
            tables[0][self.partition(number.get())] += 1;
        }
        for (partition, count) in counts.iter_mut().enumerate() {
            *count = tables.iter().map(|table| table[partition]).sum();
        }
    }

    /// Moves the tuples of all parts to their partitions, in order.
    fn move_all<N: Number>(
        &self,
        numbers: &[N],
        cursors: &mut [u32],
        moved: &mut [N],
        carried: &mut Carried,
    ) -> Result<(), ScatterError> {
        // The moves write without a check. `count` has checked that all places are below
        // `moved.len()`.
        let has_room = match carried {
            Carried::Values(words) => words.len() >= self.words(moved.len()),
            Carried::Tuples(list) => list.len() >= moved.len(),
            Carried::Targets(places) => places.len() >= numbers.len(),
        };
        assert!(has_room, "a buffer is too short for its places");
        let moved = SharedSlots::new(moved);
        match carried {
            // Plain elements have 1, 2, 4, 8 or 16 bytes. `carries_values` excludes elements of
            // more than `CARRIED_BYTES`.
            Carried::Values(words) => {
                let words = SharedSlots::new(words);
                let size = self.transfer.kernels().size;
                self.each(numbers, cursors, &moved, &|tuples, cursors| match size {
                    1 => self.move_values::<N, 1>(tuples, cursors, &words),
                    2 => self.move_values::<N, 2>(tuples, cursors, &words),
                    4 => self.move_values::<N, 4>(tuples, cursors, &words),
                    _ => self.move_values::<N, CARRIED_BYTES>(tuples, cursors, &words),
                })
            }
            Carried::Tuples(list) => {
                let list = SharedSlots::new(list);
                self.each(numbers, cursors, &moved, &|tuples, cursors| {
                    tuples.each(cursors, |place, tuple| {
                        let tuple = u32::try_from(tuples.first + tuple).unwrap_or(u32::MAX);
                        #[expect(unsafe_code, reason = "parts write to separate places")]
                        // SAFETY: `Moving::each` passes a place below `moved.len()` that no other
                        // task writes. `list` is at least as long as `moved` (`has_room`).
                        unsafe {
                            list.set(place as usize, tuple);
                        }
                    });
                })
            }
            Carried::Targets(places) => {
                let places = SharedSlots::new(places);
                self.each(numbers, cursors, &moved, &|tuples, cursors| {
                    tuples.each(cursors, |place, tuple| {
                        #[expect(unsafe_code, reason = "parts write for separate tuples")]
                        // SAFETY: `places` has an entry for every tuple (`has_room`), and each
                        // tuple belongs to exactly one part (`part`).
                        unsafe {
                            places.set(tuples.first + tuple, place);
                        }
                    });
                })
            }
        }
    }

    /// Runs `task` for each part of the tuples, with the cursors of the part.
    fn each<N: Number>(
        &self,
        numbers: &[N],
        cursors: &mut [u32],
        moved: &SharedSlots<'_, N>,
        task: &(dyn Fn(&Moving<'_, N>, &[u32]) + Sync),
    ) -> Result<(), ScatterError> {
        (self.workers).run_chunks(cursors, self.partitions, &|index, cursors| {
            let range = part(numbers.len(), self.parts, index);
            let tuples = Moving {
                first: range.start,
                numbers: &numbers[range],
                shift: self.shift,
                moved,
            };
            task(&tuples, cursors);
        })
    }

    /// Moves the tuples of a part with their values of `W` bytes.
    fn move_values<N: Number, const W: usize>(
        &self,
        tuples: &Moving<'_, N>,
        cursors: &[u32],
        words: &SharedSlots<'_, u64>,
    ) {
        debug_assert_eq!(self.transfer.kernels().size, W, "a value of another width");
        let source = self.source(tuples.first).cast::<[u8; W]>();
        let moved = words.start().cast::<[u8; W]>();
        tuples.each(cursors, |place, tuple| {
            #[expect(unsafe_code, reason = "parts write to separate places")]
            // SAFETY: `Moving::each` passes a place that no other task writes. The buffer has room
            // for a value at each place (`has_room` in `move_all`). `source` is the address of the
            // values of this part's tuples. Each value has `W` bytes: `move_all` has chosen `W`.
            unsafe {
                *moved.add(place as usize) = *source.add(tuple);
            }
        });
    }

    /// Moves the values of all tuples to `places`, in scratch memory. An earlier sort has found the
    /// places, which are all below `count`.
    pub(super) fn move_values_to(
        &self,
        places: &[u32],
        count: usize,
    ) -> Result<Vec<u64>, ScatterError> {
        let mut values: Vec<u64> = Scratch::take(self.words(count))?;
        let words = SharedSlots::new(&mut values);
        let parts = self.workers.parts();
        self.workers.run(parts, &|index| {
            let range = part(places.len(), parts, index);
            let Some(copy) = self.transfer.kernels().copy_elements else {
                return;
            };
            let source = self.source(range.start);
            let places = &places[range];
            debug_assert!(
                places.iter().all(|&place| (place as usize) < count),
                "a place past the values"
            );
            #[expect(unsafe_code, reason = "the kernel writes to separate places")]
            // SAFETY: the buffer has room for `count` values, and all places are below `count`
            // (`sort`). Each tuple has a different place, and each task has different tuples.
            unsafe {
                (copy.u32)(words.start().cast(), source, places, Spread::NEIGHBOURS);
            }
        })?;
        Ok(values)
    }

    /// Returns the address of the update of tuple `first`. Windows must be single elements with
    /// contiguous sources, in one repetition.
    fn source(&self, first: usize) -> *const u8 {
        let geometry = self.transfer.geometry();
        let (_, src) = geometry.repetition(0);
        (self.transfer.access()).read_at(geometry.window.src + src + first.cast_signed())
    }
}

/// The tuples of one part, which are moved to their partitions.
struct Moving<'a, N> {
    /// Position of the first tuple in the plan's list.
    first: usize,
    numbers: &'a [N],
    shift: u32,
    moved: &'a SharedSlots<'a, N>,
}

impl<N: Number> Moving<'_, N> {
    /// Moves each number, in order. Passes the new place, and the position of the tuple in this
    /// part, to `record`.
    #[inline(always)]
    fn each(&self, cursors: &[u32], record: impl Fn(u32, usize)) {
        let mut next = [0_u32; MOST_PARTITIONS as usize];
        next[..cursors.len()].copy_from_slice(cursors);
        for (index, &number) in self.numbers.iter().enumerate() {
            let partition = usize::try_from(number.get() >> self.shift).unwrap_or(usize::MAX);
            let cursor = &mut next[partition];
            let place = *cursor;
            *cursor += 1;
            #[expect(unsafe_code, reason = "parts write to separate places")]
            // SAFETY: the cursor of a part and partition goes from its start to the start of the
            // next part (`ranges_of`). So no other part writes this place. The place is below the
            // length of the buffer (`check_ranges`).
            unsafe {
                self.moved.set(place as usize, number);
            }
            record(place, index);
        }
    }
}

/// Replaces the counts of each part and partition by the place of the first tuple of the part in
/// the partition, and returns the places of each partition. Within a partition, the parts follow
/// one another, which keeps the order of the tuples.
fn ranges_of(
    parts: usize,
    partitions: usize,
    cursors: &mut [u32],
) -> Result<Vec<Range<usize>>, ScatterError> {
    let mut ranges = with_room(partitions)?;
    let mut next = 0_u32;
    for partition in 0..partitions {
        next += PARTITION_GAP;
        let start = next;
        for part in 0..parts {
            let cursor = &mut cursors[part * partitions + partition];
            next += std::mem::replace(cursor, next);
        }
        ranges.push(start as usize..next as usize);
    }
    Ok(ranges)
}

/// Checks that every tuple was counted once and that all places exist. The moves write without a
/// check.
fn check_ranges(ranges: &[Range<usize>], tuples: usize, places: usize) {
    let counted: usize = ranges.iter().map(Range::len).sum();
    let end = ranges.last().map_or(0, |range| range.end);
    assert!(
        counted == tuples && end <= places,
        "{counted} of {tuples} tuples were counted, up to {end} of {places} places"
    );
}

#[cfg(test)]
mod tests {
    use super::{PARTITION_GAP, check_ranges, ranges_of};

    #[test]
    fn places_keep_partitions_together_and_parts_in_order() {
        // Part 0 has 1, 2 and 0 tuples in the partitions, part 1 has 3, 0 and 4.
        let mut cursors = [1, 2, 0, 3, 0, 4];
        let ranges = ranges_of(2, 3, &mut cursors).expect("memory for three");
        let gaps = |gaps: u32, place: u32| gaps * PARTITION_GAP + place;
        let expected = [(1, 0, 4), (2, 4, 6), (3, 6, 10)]
            .map(|(count, start, end)| gaps(count, start) as usize..gaps(count, end) as usize);
        assert_eq!(ranges, expected, "ranges");
        let expected = [(1, 0), (2, 4), (3, 6), (1, 1), (2, 6), (3, 6)];
        let expected = expected.map(|(count, place)| gaps(count, place));
        assert_eq!(cursors, expected, "cursors");
    }

    #[test]
    #[should_panic(expected = "3 of 4 tuples were counted")]
    fn a_tuple_that_was_not_counted_is_not_moved() {
        check_ranges(&[8..10, 18..19], 4, 19);
    }

    #[test]
    #[should_panic(expected = "up to 19 of 18 places")]
    fn places_that_do_not_exist_are_not_written() {
        check_ranges(&[8..10, 18..19], 3, 18);
    }
}
