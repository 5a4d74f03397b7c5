//! Brings tuples together, in order, by ranges of their destinations: one pass
//! counts them, one moves them.

use std::ops::Range;

use super::super::Call;
use super::super::choose::{CARRIED_BYTES, Choice, MOST_PARTITIONS, PARTITION_GAP};
use super::super::places::Places;
use super::super::tasks::Workers;
use super::super::tile::part;
use crate::error::ScatterError;
use crate::kernel::Spread;
use crate::memory::with_room;
use crate::plan::Number;
use crate::work::{self, Work};

/// How the tuples are divided.
#[derive(Clone, Copy)]
pub(super) struct Division {
    pub(super) parts: usize,
    pub(super) partitions: usize,
    pub(super) shift: u32,
}

impl Division {
    /// Of destination numbers below `count`.
    pub(super) fn new(choice: &Choice, count: u64) -> Self {
        Self {
            parts: choice.grid.middle,
            partitions: choice.partitions(count),
            shift: choice.shift,
        }
    }

    fn partition(self, number: u64) -> usize {
        usize::try_from(number >> self.shift).unwrap_or(usize::MAX)
    }
}

/// For each part of the tuples and each partition, the position where the
/// next of them goes.
pub(super) struct Cursors(Vec<u32>);

/// What goes to the places of the tuples, beside their numbers.
pub(super) enum Destined<'a> {
    /// The values themselves, in words that may hold several.
    Values(Places<'a, u64>),
    /// The numbers of the tuples.
    Tuples(Places<'a, u32>),
    /// Nothing; each tuple learns its place.
    Nothing(Places<'a, u32>),
}

impl Call<'_> {
    /// Counts how many tuples of each part fall into each partition, and so
    /// finds out where they go and where each partition will lie: below
    /// `places`.
    pub(super) fn count_partitions<N: Number>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        division: Division,
        places: usize,
    ) -> Result<(Cursors, Vec<Range<usize>>), ScatterError> {
        work::note(Work::Partitioning);
        let mut cursors = crate::memory::zeroed(division.parts * division.partitions)?;
        workers.run_chunks(&mut cursors, division.partitions, &|index, counts| {
            let numbers = &numbers[part(numbers.len(), division.parts, index)];
            count_into(counts, numbers, division);
        })?;
        let ranges = ranges_of(division, &mut cursors)?;
        check_ranges(&ranges, numbers.len(), places);
        Ok((Cursors(cursors), ranges))
    }

    /// Moves every part's tuples to their partitions, in order. `moved` has the
    /// places that they were counted for.
    pub(super) fn move_tuples<N: Number>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        division: Division,
        cursors: &mut Cursors,
        moved: &mut [N],
        load: &Destined<'_>,
    ) -> Result<(), ScatterError> {
        // The moves write without a check of their own, below the number of
        // places that `count_partitions` was told.
        let has_room = match load {
            Destined::Values(words) => self.holds_values(words.len(), moved.len()),
            Destined::Tuples(list) => list.len() >= moved.len(),
            Destined::Nothing(places) => places.len() >= numbers.len(),
        };
        assert!(has_room, "a place for all that is moved");
        let moved = Places::new(moved);
        workers.run_chunks(&mut cursors.0, division.partitions, &|index, cursors| {
            let range = part(numbers.len(), division.parts, index);
            let first = range.start;
            let tuples = Moving {
                numbers: &numbers[range],
                division,
                moved: &moved,
            };
            match load {
                // Plain elements have 1, 2, 4, 8 or 16 bytes, and
                // `carries_values` lets none above `CARRIED_BYTES` come here.
                Destined::Values(words) => match self.kernels.size {
                    1 => self.move_values::<N, 1>(&tuples, first, cursors, words),
                    2 => self.move_values::<N, 2>(&tuples, first, cursors, words),
                    4 => self.move_values::<N, 4>(&tuples, first, cursors, words),
                    _ => self.move_values::<N, CARRIED_BYTES>(&tuples, first, cursors, words),
                },
                Destined::Tuples(list) => tuples.each(cursors, |position, tuple| {
                    let tuple = u32::try_from(first + tuple).unwrap_or(u32::MAX);
                    #[expect(unsafe_code, reason = "parts write to positions of their own")]
                    // SAFETY: as in `Moving::each`; the list is as long as
                    // that of the numbers.
                    unsafe {
                        list.set(position as usize, tuple);
                    }
                }),
                Destined::Nothing(places) => tuples.each(cursors, |position, tuple| {
                    #[expect(unsafe_code, reason = "parts write to tuples of their own")]
                    // SAFETY: there is a place for every tuple, and a tuple
                    // belongs to one part.
                    unsafe {
                        places.set(first + tuple, position);
                    }
                }),
            }
        })
    }

    /// Tuples with their values, of `W` bytes, which begin with that of tuple
    /// `first`.
    fn move_values<N: Number, const W: usize>(
        &self,
        tuples: &Moving<'_, N>,
        first: usize,
        cursors: &mut [u32],
        words: &Places<'_, u64>,
    ) {
        debug_assert_eq!(self.kernels.size, W, "`carries_values` has the widths");
        let source = self.single_source(first).cast::<[u8; W]>();
        let moved = words.start().cast::<[u8; W]>();
        tuples.each(cursors, |position, tuple| {
            #[expect(unsafe_code, reason = "parts write to positions of their own")]
            // SAFETY: as in `Moving::each`, in a buffer that was made long
            // enough for a value each (`take_values`); `single_source` is where
            // the values of this part's tuples begin, of `W` bytes as
            // `move_tuples` has chosen it.
            unsafe {
                *moved.add(position as usize) = *source.add(tuple);
            }
        });
    }

    /// Whether so many words hold so many values.
    fn holds_values(&self, words: usize, values: usize) -> bool {
        words.saturating_mul(size_of::<u64>()) >= values.saturating_mul(self.kernels.size)
    }

    /// Moves the values of all tuples to `places` that were found before, all
    /// below `count`.
    pub(super) fn move_all_values(
        &self,
        places: &[u32],
        count: usize,
        workers: &Workers<'_>,
        values: &mut [u64],
    ) -> Result<(), ScatterError> {
        assert!(
            self.holds_values(values.len(), count),
            "a place for every value"
        );
        let words = Places::new(values);
        let parts = workers.parts();
        workers.run(parts, &|index| {
            let range = part(places.len(), parts, index);
            let Some(copy) = self.kernels.copy_elements else {
                return;
            };
            let source = self.single_source(range.start);
            #[expect(unsafe_code, reason = "the kernel writes to positions of their own")]
            // SAFETY: as in `move_values`; the kept places are those of these
            // tuples, each its own.
            unsafe {
                (copy.u32)(
                    words.start().cast(),
                    source,
                    &places[range],
                    Spread::NEIGHBOURS,
                );
            }
        })
    }
}

/// Adds to `counts` how many of `numbers` fall into each partition.
///
/// Several tables take turns: a count that is wanted again at once would wait
/// for its last store. In a bare loop 4 M numbers, 128 partitions, two workers
/// take 0.8 ms, and 1.5 ms with one table (Zen 4).
fn count_into<N: Number>(counts: &mut [u32], numbers: &[N], division: Division) {
    let mut tables = [[0_u32; MOST_PARTITIONS as usize]; 4];
    let mut blocks = numbers.chunks_exact(tables.len());
    for block in &mut blocks {
        for (table, number) in tables.iter_mut().zip(block) {
            table[division.partition(number.get())] += 1;
        }
    }
    for number in blocks.remainder() {
        tables[0][division.partition(number.get())] += 1;
    }
    for (partition, count) in counts.iter_mut().enumerate() {
        *count = tables.iter().map(|table| table[partition]).sum();
    }
}

/// The tuples of one part on their way to their partitions.
struct Moving<'a, N> {
    numbers: &'a [N],
    division: Division,
    moved: &'a Places<'a, N>,
}

impl<N: Number> Moving<'_, N> {
    /// Moves each number, in order, and tells `also` its new position and
    /// which one of this part it was.
    #[inline(always)]
    fn each(&self, cursors: &mut [u32], also: impl Fn(u32, usize)) {
        let mut next = [0_u32; MOST_PARTITIONS as usize];
        next[..cursors.len()].copy_from_slice(cursors);
        for (index, &number) in self.numbers.iter().enumerate() {
            let cursor = &mut next[self.division.partition(number.get())];
            let position = *cursor;
            *cursor += 1;
            #[expect(unsafe_code, reason = "parts write to positions of their own")]
            // SAFETY: cursors run from one part's start in a partition to the
            // next part's (`ranges_of`), so positions are in range and no
            // other part writes them.
            unsafe {
                self.moved.set(position as usize, number);
            }
            also(position, index);
        }
    }
}

/// Turns counts into positions: partition by partition, and in each part by
/// part, which keeps the order of the tuples. Returns where the tuples of each
/// partition will lie.
fn ranges_of(division: Division, cursors: &mut [u32]) -> Result<Vec<Range<usize>>, ScatterError> {
    let mut ranges = with_room(division.partitions)?;
    let mut next = 0_u32;
    for partition in 0..division.partitions {
        next += PARTITION_GAP;
        let start = next;
        for part in 0..division.parts {
            let cursor = &mut cursors[part * division.partitions + partition];
            next += std::mem::replace(cursor, next);
        }
        ranges.push(start as usize..next as usize);
    }
    Ok(ranges)
}

/// That every tuple was counted once and all places exist: the moves that
/// follow write without a check of their own.
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
    use super::{Division, PARTITION_GAP, check_ranges, ranges_of};

    #[test]
    fn positions_keep_partitions_together_and_parts_in_order() {
        let division = Division {
            parts: 2,
            partitions: 3,
            shift: 0,
        };
        // Part 0 has 1, 2 and 0 tuples in the partitions, part 1 has 3, 0 and 4.
        let mut cursors = [1, 2, 0, 3, 0, 4];
        let ranges = ranges_of(division, &mut cursors).expect("memory for three");
        let gaps = |gaps: u32, position: u32| gaps * PARTITION_GAP + position;
        let expected = [(1, 0, 4), (2, 4, 6), (3, 6, 10)]
            .map(|(count, start, end)| gaps(count, start) as usize..gaps(count, end) as usize);
        assert_eq!(ranges, expected, "ranges");
        let expected = [(1, 0), (2, 4), (3, 6), (1, 1), (2, 6), (3, 6)];
        let expected = expected.map(|(count, position)| gaps(count, position));
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
