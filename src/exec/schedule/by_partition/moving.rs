//! Sorts tuples, stably, into partitions. The first step counts the tuples of each partition. The
//! second step moves the tuples to their partitions.
//!
//! This module knows partitions, and what is moved with the destination number of a tuple. It does
//! not know how partitions are applied.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;

use super::super::super::scratch::Scratch;
use super::super::super::shared_slots::SharedSlots;
use super::super::super::tasks::Workers;
use super::super::super::tile::part;
use super::super::super::transfer::Transfer;
use super::gatherer::{Discard, Gather, Gatherer, bytes_of_task, ends_line};
use crate::error::ScatterError;
use crate::memory::{CacheLine, lines_of, with_room, zeroed};
use crate::plan::Number;
use crate::work::{self, Work};

/// Bytes of the largest value that is moved with its destination number. The sorted tuples then
/// need at most 16 bytes of memory per tuple.
pub(super) const CARRIED_BYTES: usize = 8;

/// Maximum number of partitions. With this number, the gathered lines of all partitions (see
/// [`Gatherer`]) fit in the second-level cache while tuples are moved.
pub(super) const MOST_PARTITIONS: u32 = 512;

/// Maximum number of tuples in a list that is sorted into partitions. The limit exists because the
/// place of a tuple, its position in the sorted list, is a 32-bit number.
pub(super) const MOST_PARTITIONED: usize = u32::MAX as usize;

/// Returns the number of ranges of `1 << shift` numbers that cover `0..count`, at least 1.
pub(in super::super::super) fn partitions(count: u64, shift: u32) -> usize {
    usize::try_from(count.div_ceil(1 << shift).max(1)).unwrap_or(usize::MAX)
}

/// All tuples, sorted into partitions. Within a partition, tuples keep the order of the plan's
/// list.
#[derive(Debug)]
pub(super) struct Partitions<N> {
    pub(super) shift: u32,
    /// Places of the tuples of each partition in the sorted list.
    pub(super) ranges: Vec<Range<usize>>,
    /// Memory of the sorted destination numbers, which have the type `N`.
    numbers: Vec<CacheLine>,
    carried: Carried,
    number_type: PhantomData<N>,
}

/// The data that is stored beside the sorted destination numbers.
#[derive(Debug)]
enum Carried {
    /// Memory of the value of the tuple at each place.
    Values(Vec<CacheLine>),
    /// Memory of the position of the tuple at each place. The positions are 32-bit positions in the
    /// plan's list.
    Tuples(Vec<CacheLine>),
    /// No data per tuple, but the first place of each part of the list in each partition. With
    /// these first places, every execution of a kept plan moves its own values.
    FirstPlaces(Vec<u32>),
}

impl<N: Number> Partitions<N> {
    /// Returns the destination number of the tuple at each place.
    pub(super) fn numbers(&self) -> &[N] {
        bytemuck::cast_slice(&self.numbers)
    }

    /// Returns the memory of the value of the tuple at each place. Returns `None` if no values are
    /// stored.
    pub(super) fn values(&self) -> Option<&[CacheLine]> {
        match &self.carried {
            Carried::Values(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the position, in the plan's list, of the tuple at each place. Returns `None` if no
    /// positions are stored.
    pub(super) fn tuples(&self) -> Option<&[u32]> {
        match &self.carried {
            Carried::Tuples(tuples) => Some(bytemuck::cast_slice(tuples)),
            _ => None,
        }
    }

    /// Returns the first place of each part of the list in each partition. Returns `None` unless
    /// each execution of the kept plan moves its own values.
    pub(super) fn first_places(&self) -> Option<&[u32]> {
        match &self.carried {
            Carried::FirstPlaces(places) => Some(places),
            _ => None,
        }
    }

    /// Returns the buffers of the partitions to the cache of scratch buffers.
    pub(super) fn put_back(self) {
        Scratch::put_back(self.numbers);
        match self.carried {
            Carried::Values(memory) | Carried::Tuples(memory) => Scratch::put_back(memory),
            Carried::FirstPlaces(_) => {}
        }
    }
}

/// The parameters of sorting tuples into partitions.
#[derive(Clone, Copy)]
pub(super) struct Sorting<'p, 'w> {
    pub(super) transfer: &'w Transfer<'p>,
    pub(super) workers: &'w Workers<'w>,
    /// Number of parts into which the list of tuples is cut. One task moves the tuples of each
    /// part.
    pub(super) parts: usize,
    pub(super) partitions: usize,
    pub(super) shift: u32,
    /// Whether tuples are moved with their values instead of their positions.
    pub(super) carries_values: bool,
}

impl Sorting<'_, '_> {
    /// Sorts all tuples into partitions, with their values or their positions. The result is in
    /// scratch memory.
    pub(super) fn sort<N: Number>(&self, numbers: &[N]) -> Result<Partitions<N>, ScatterError> {
        self.sort_into(numbers, Scratch::take, self.carries_values)
    }

    /// Sorts all tuples into partitions for a kept plan. The result is in memory of the plan.
    /// Values are not moved, because each execution of the plan has different values.
    pub(super) fn sort_to_keep<N: Number>(
        &self,
        numbers: &[N],
    ) -> Result<Partitions<N>, ScatterError> {
        self.sort_into(numbers, zeroed, false)
    }

    /// Sorts all tuples into partitions, in memory that `take` allocates. `moves_values`: whether
    /// values are moved now, if tuples are moved with their values.
    fn sort_into<N: Number>(
        &self,
        numbers: &[N],
        take: fn(usize) -> Result<Vec<CacheLine>, ScatterError>,
        moves_values: bool,
    ) -> Result<Partitions<N>, ScatterError> {
        let tuples = numbers.len();
        let mut moved = take(lines_of(tuples, size_of::<N>()))?;
        let mut carried = match (self.carries_values, moves_values) {
            (false, _) => Carried::Tuples(take(lines_of(tuples, size_of::<u32>()))?),
            (true, true) => Carried::Values(take(self.value_lines(tuples))?),
            (true, false) => Carried::FirstPlaces(Vec::new()),
        };
        let (first_places, ranges) = self.count(numbers)?;
        let list = PartitionedList {
            numbers,
            first_places: &first_places,
        };
        let slots = SharedSlots::new(&mut bytemuck::cast_slice_mut(&mut moved)[..tuples]);
        match &mut carried {
            Carried::Values(values) => self.move_values(&list, Some(&slots), values)?,
            Carried::Tuples(memory) => {
                let positions = SharedSlots::new(&mut bytemuck::cast_slice_mut(memory)[..tuples]);
                let position = |_, tuple| u32::try_from(tuple).unwrap_or(u32::MAX);
                self.move_entries(&list, Some(&slots), Some(&positions), position)?;
            }
            Carried::FirstPlaces(_) => {
                self.move_entries(&list, Some(&slots), None, |_, _| 0_u8)?;
                carried = Carried::FirstPlaces(first_places);
            }
        }
        Ok(Partitions {
            shift: self.shift,
            ranges,
            numbers: moved,
            carried,
            number_type: PhantomData,
        })
    }

    /// Returns the number of cache lines of memory for `count` values.
    fn value_lines(&self, count: usize) -> usize {
        lines_of(count, self.transfer.kernels().size)
    }

    fn partition(&self, number: u64) -> usize {
        usize::try_from(number >> self.shift).unwrap_or(usize::MAX)
    }

    /// Counts the tuples of each part of the list in each partition.
    ///
    /// Returns two lists. The first list has, for each part and each partition, the place of the
    /// part's first tuple in the partition. The second list has the range of places of each
    /// partition.
    fn count<N: Number>(
        &self,
        numbers: &[N],
    ) -> Result<(Vec<u32>, Vec<Range<usize>>), ScatterError> {
        work::note(Work::Partitioning);
        let mut first_places = zeroed(self.parts * self.partitions)?;
        (self.workers).run_chunks(&mut first_places, self.partitions, &|index, counts| {
            let numbers = &numbers[part(numbers.len(), self.parts, index)];
            self.count_into(counts, numbers);
        })?;
        let ranges = ranges_of(self.parts, self.partitions, &mut first_places)?;
        check_ranges(&ranges, numbers.len());
        Ok((first_places, ranges))
    }

    /// For each partition, sets the entry of `counts` to the number of `numbers` in the partition.
    ///
    /// Four tables of counters are used in turn. With one table, incrementing a counter twice in
    /// succession would wait for the store of the first increment. In a loop without the rest of
    /// the crate, four tables took 0.8 ms and one table took 1.5 ms (Zen 4, 4 M numbers, 128
    /// partitions, two workers).
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

    /// Moves the values of all tuples, in scratch memory, to the places that an earlier sort has
    /// determined. The argument `first_places` has the first place of each part of the list in each
    /// partition.
    pub(super) fn move_values_again<N: Number>(
        &self,
        numbers: &[N],
        first_places: &[u32],
    ) -> Result<Vec<CacheLine>, ScatterError> {
        let mut values = Scratch::take(self.value_lines(numbers.len()))?;
        let list = PartitionedList {
            numbers,
            first_places,
        };
        self.move_values(&list, None, &mut values)?;
        Ok(values)
    }

    /// Moves the values of all tuples to `values`. Also moves the destination numbers to `moved`,
    /// unless `moved` is `None`.
    fn move_values<N: Number>(
        &self,
        list: &PartitionedList<'_, N>,
        moved: Option<&SharedSlots<'_, N>>,
        values: &mut [CacheLine],
    ) -> Result<(), ScatterError> {
        // Plain elements have 1, 2, 4, 8 or 16 bytes. `carries_values` has excluded elements of
        // more than `CARRIED_BYTES`, so elements of 16 bytes do not occur here.
        match self.transfer.kernels().size {
            1 => self.move_values_of::<N, u8>(list, moved, values),
            2 => self.move_values_of::<N, u16>(list, moved, values),
            4 => self.move_values_of::<N, u32>(list, moved, values),
            _ => self.move_values_of::<N, u64>(list, moved, values),
        }
    }

    /// Implements [`Self::move_values`] for values that have the size of `V`.
    fn move_values_of<N: Number, V: Pod + Send>(
        &self,
        list: &PartitionedList<'_, N>,
        moved: Option<&SharedSlots<'_, N>>,
        values: &mut [CacheLine],
    ) -> Result<(), ScatterError> {
        debug_assert_eq!(
            self.transfer.kernels().size,
            size_of::<V>(),
            "a value of another width"
        );
        let values = SharedSlots::new(&mut bytemuck::cast_slice_mut(values)[..list.numbers.len()]);
        let read = |source: *const u8, position: usize| {
            #[expect(unsafe_code, reason = "reads the value of a tuple")]
            // SAFETY: windows are single elements with contiguous sources, beginning at `source`
            // (`carries_values`). There is an element at the position of each tuple. The elements
            // have the size of `V` (`move_values`).
            unsafe {
                source.cast::<V>().add(position).read_unaligned()
            }
        };
        // There are two separate loops, because one loop with a branch for each tuple took 1.1
        // times as long.
        match self.transfer.listed_positions() {
            None => self.move_entries(list, moved, Some(&values), read),
            Some(listed) => self.move_entries(list, moved, Some(&values), |source, tuple| {
                read(source, listed[tuple] as usize)
            }),
        }
    }

    /// Moves the destination numbers of all tuples to `moved`, and one entry per tuple to
    /// `entries`. If one of these buffers is `None`, nothing is moved to it. The function `entry`
    /// returns the entry of a tuple, given the address of the first update and the position of the
    /// tuple in the plan's list.
    fn move_entries<N: Number, V: Pod + Send>(
        &self,
        list: &PartitionedList<'_, N>,
        moved: Option<&SharedSlots<'_, N>>,
        entries: Option<&SharedSlots<'_, V>>,
        entry: impl Fn(*const u8, usize) -> V + Sync,
    ) -> Result<(), ScatterError> {
        let lines = |size| lines_of(bytes_of_task(self.partitions, size), 1);
        let number_lines = moved.map_or(0, |_| lines(size_of::<N>()));
        let task_lines = number_lines + entries.map_or(0, |_| lines(size_of::<V>()));
        let mut gathered: Vec<CacheLine> = Scratch::take(task_lines * self.parts)?;
        let shared = SharedSlots::new(&mut gathered);
        self.workers.run(self.parts, &|index| {
            #[expect(unsafe_code, reason = "gives each task its chunk")]
            // SAFETY: `run` passes every `index` once, so no other task has this chunk.
            let (for_numbers, for_entries) =
                unsafe { shared.chunk(index, task_lines) }.split_at_mut(number_lines);
            let first = &list.first_places[index * self.partitions..][..self.partitions];
            let source = self.source();
            let entry = |tuple| entry(source, tuple);
            let tuples = part(list.numbers.len(), self.parts, index);
            let numbers = &list.numbers[tuples.clone()];
            let moving = Moving {
                first_tuple: tuples.start,
                numbers,
                first,
                shift: self.shift,
            };
            let for_numbers = moved.map(|moved| Gatherer::new(for_numbers, first, moved));
            let for_entries = entries.map(|moved| Gatherer::new(for_entries, first, moved));
            #[expect(unsafe_code, reason = "parts write to separate places")]
            // SAFETY: in a partition, the places of a part end where the places of the next part
            // begin (`ranges_of`). So no other part writes these places. The places are in the
            // buffers (`check_ranges`).
            unsafe {
                match (for_numbers, for_entries) {
                    (Some(numbers), Some(entries)) => moving.run(numbers, entries, entry),
                    (Some(numbers), None) => moving.run(numbers, Discard, |_| ()),
                    (None, Some(entries)) => moving.run(Discard, entries, entry),
                    (None, None) => {}
                }
            }
        })?;
        Scratch::put_back(gathered);
        Ok(())
    }

    /// Returns the address of the first update. The address may be read only if windows are single
    /// elements with contiguous sources, in one repetition.
    fn source(&self) -> *const u8 {
        let geometry = self.transfer.geometry();
        let (_, src) = geometry.repetition(0);
        self.transfer.access().read_at(geometry.window.src + src)
    }
}

/// The list of tuples, and the places to which its parts are moved.
struct PartitionedList<'a, N> {
    numbers: &'a [N],
    /// First place of each part of the list in each partition.
    first_places: &'a [u32],
}

/// The tuples of one part of the list, which one task moves to their partitions.
struct Moving<'a, N> {
    /// Position of the part's first tuple in the plan's list.
    first_tuple: usize,
    numbers: &'a [N],
    /// First place of the part in each partition.
    first: &'a [u32],
    shift: u32,
}

impl<N: Number> Moving<'_, N> {
    /// Moves the destination number and the entry of each tuple of the part.
    ///
    /// # Safety
    ///
    /// The destination buffers have all places of the part, and no other task writes these places.
    #[expect(unsafe_code, reason = "parts write to separate places")]
    #[inline(always)]
    unsafe fn run<V>(
        &self,
        mut numbers: impl Gather<N>,
        mut entries: impl Gather<V>,
        entry: impl Fn(usize) -> V,
    ) {
        let mut next = [0_u32; MOST_PARTITIONS as usize];
        let next = &mut next[..self.first.len()];
        next.copy_from_slice(self.first);
        for (tuple, &number) in (self.first_tuple..).zip(self.numbers) {
            let partition = usize::try_from(number.get() >> self.shift).unwrap_or(usize::MAX);
            let place = next[partition];
            next[partition] += 1;
            numbers.gather(partition, place, number);
            entries.gather(partition, place, entry(tuple));
            if ends_line(place) {
                // SAFETY: the caller guarantees that the destination buffers have all places of the
                // part, and that no other task writes these places.
                unsafe {
                    numbers.write_line(partition, place);
                    entries.write_line(partition, place);
                }
            }
        }
        // SAFETY: the caller guarantees that the destination buffers have all places of the part,
        // and that no other task writes these places.
        unsafe {
            numbers.finish(next);
            entries.finish(next);
        }
    }
}

/// Replaces each count, of the tuples of a part in a partition, by the place of the first of these
/// tuples. Returns the range of places of each partition. Within a partition, the tuples of part 0
/// come first, then the tuples of part 1, and so on, which keeps the order of the list.
fn ranges_of(
    parts: usize,
    partitions: usize,
    counts: &mut [u32],
) -> Result<Vec<Range<usize>>, ScatterError> {
    let mut ranges = with_room(partitions)?;
    let mut next = 0_u32;
    for partition in 0..partitions {
        let start = next;
        for part in 0..parts {
            let count = &mut counts[part * partitions + partition];
            next += std::mem::replace(count, next);
        }
        ranges.push(start as usize..next as usize);
    }
    Ok(ranges)
}

/// Panics if the number of counted tuples is not the number of tuples. After this check, every
/// place is in the buffers, so the moves write without a bounds check.
fn check_ranges(ranges: &[Range<usize>], tuples: usize) {
    let counted: usize = ranges.iter().map(Range::len).sum();
    assert!(
        counted == tuples,
        "{counted} of {tuples} tuples were counted"
    );
}

#[cfg(test)]
mod tests {
    use super::{check_ranges, ranges_of};

    /// Checks the places of the tuples of two parts in three partitions. The places are those of a
    /// stable sort by partition.
    fn check(counts: [u32; 6]) {
        let keys = (0..3).flat_map(|partition| [(partition, 0), (partition, 1)]);
        let sorted: Vec<(usize, usize)> = keys
            .flat_map(|key| std::iter::repeat_n(key, counts[key.1 * 3 + key.0] as usize))
            .collect();
        let place = |key| sorted.partition_point(|entry| *entry < key);
        let mut places = counts;
        let ranges = ranges_of(2, 3, &mut places).expect("memory for three");
        for partition in 0..3 {
            let range = place((partition, 0))..place((partition + 1, 0));
            assert_eq!(ranges[partition], range, "{counts:?}");
            for part in 0..2 {
                let first = places[part * 3 + partition] as usize;
                assert_eq!(first, place((partition, part)), "{counts:?}");
            }
        }
    }

    /// Checks every table of counts from 0 to 3.
    #[test]
    fn places_are_those_of_a_stable_sort() {
        for table in 0..4_u32.pow(6) {
            check([0, 1, 2, 3, 4, 5].map(|at| table >> (2 * at) & 3));
        }
    }

    #[test]
    #[should_panic(expected = "3 of 4 tuples were counted")]
    fn a_tuple_that_was_not_counted_is_not_moved() {
        check_ranges(&[8..10, 18..19], 4);
    }
}
