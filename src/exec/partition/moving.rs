//! Brings tuples together, in order, by ranges of their destinations: one pass
//! counts them, one moves them.

use std::ops::Range;

use super::super::Call;
use super::super::choose::{Choice, PARTITION_GAP};
use super::super::places::Places;
use super::super::tasks::Workers;
use super::super::tile::part;
use crate::error::ScatterError;
use crate::kernel::Spread;
use crate::plan::Number;
use crate::work::{self, Work};

/// Positions that are worked out before the values are moved there.
const BLOCK: usize = 256;

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
    /// finds out where they go and where each partition will lie.
    pub(super) fn count_partitions<N: Number>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        division: Division,
    ) -> Result<(Cursors, Vec<Range<usize>>), ScatterError> {
        work::note(Work::Partitioning);
        let mut cursors = crate::memory::zeroed(division.parts * division.partitions)?;
        workers.run_chunks(&mut cursors, division.partitions, &|index, counts| {
            for number in &numbers[part(numbers.len(), division.parts, index)] {
                counts[division.partition(number.get())] += 1;
            }
        })?;
        let ranges = ranges_of(division, &mut cursors);
        Ok((Cursors(cursors), ranges))
    }

    /// Moves every part's tuples to their partitions, in order.
    pub(super) fn move_tuples<N: Number>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        division: Division,
        cursors: &mut Cursors,
        moved: &mut [N],
        load: &Destined<'_>,
    ) -> Result<(), ScatterError> {
        let moved = Places::new(moved);
        workers.run_chunks(&mut cursors.0, division.partitions, &|index, cursors| {
            let range = part(numbers.len(), division.parts, index);
            let mut positions = [0_u32; BLOCK];
            let mut first = range.start;
            for block in numbers[range].chunks(BLOCK) {
                let positions = &mut positions[..block.len()];
                for (position, number) in positions.iter_mut().zip(block) {
                    let cursor = &mut cursors[division.partition(number.get())];
                    *position = *cursor;
                    *cursor += 1;
                }
                move_numbers(block, positions, &moved);
                self.move_load(first, positions, load);
                first += block.len();
            }
        })
    }

    /// What belongs to the tuples from `first` on, to their `positions`.
    fn move_load(&self, first: usize, positions: &[u32], load: &Destined<'_>) {
        match load {
            Destined::Values(words) => self.move_values(first, positions, words),
            Destined::Tuples(tuples) => {
                for (&position, tuple) in positions.iter().zip(first..) {
                    let tuple = u32::try_from(tuple).unwrap_or(u32::MAX);
                    #[expect(unsafe_code, reason = "parts write to positions of their own")]
                    // SAFETY: as in `move_numbers`.
                    unsafe {
                        tuples.set(position as usize, tuple);
                    }
                }
            }
            Destined::Nothing(places) => {
                for (&position, tuple) in positions.iter().zip(first..) {
                    #[expect(unsafe_code, reason = "parts write to tuples of their own")]
                    // SAFETY: there is a place for every tuple, and a tuple
                    // belongs to one part.
                    unsafe {
                        places.set(tuple, position);
                    }
                }
            }
        }
    }

    /// The values of the tuples from `first` on, to their `positions`.
    fn move_values(&self, first: usize, positions: &[u32], words: &Places<'_, u64>) {
        let Some(copy) = self.row.copy_elements else {
            return;
        };
        let source = self.single_source(first);
        #[expect(unsafe_code, reason = "the kernel writes to positions of their own")]
        // SAFETY: positions are places of these tuples alone, in a buffer that
        // was made long enough for a value each (`take_values`);
        // `single_source` is where the tuples' values begin.
        unsafe {
            (copy.u32)(words.start().cast(), source, positions, Spread::FAR);
        }
    }

    /// Moves the values of all tuples to `places` that were found before.
    pub(super) fn move_all_values(
        &self,
        places: &[u32],
        workers: &Workers<'_>,
        values: &mut [u64],
    ) -> Result<(), ScatterError> {
        let words = Places::new(values);
        let parts = workers.parts();
        workers.run(parts, &|index| {
            let range = part(places.len(), parts, index);
            self.move_values(range.start, &places[range], &words);
        })
    }
}

/// Destination numbers to their `positions`.
fn move_numbers<N: Number>(numbers: &[N], positions: &[u32], moved: &Places<'_, N>) {
    for (&position, &number) in positions.iter().zip(numbers) {
        #[expect(unsafe_code, reason = "parts write to positions of their own")]
        // SAFETY: cursors run from one part's start in a partition to the
        // next part's (`ranges_of`), so positions are in range and no other
        // part writes them.
        unsafe {
            moved.set(position as usize, number);
        }
    }
}

/// Turns counts into positions: partition by partition, and in each part by
/// part, which keeps the order of the tuples. Returns where the tuples of each
/// partition will lie.
fn ranges_of(division: Division, cursors: &mut [u32]) -> Vec<Range<usize>> {
    let mut ranges = Vec::with_capacity(division.partitions);
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
    ranges
}

#[cfg(test)]
mod tests {
    use super::{Division, PARTITION_GAP, ranges_of};

    #[test]
    fn positions_keep_partitions_together_and_parts_in_order() {
        let division = Division {
            parts: 2,
            partitions: 3,
            shift: 0,
        };
        // Part 0 has 1, 2 and 0 tuples in the partitions, part 1 has 3, 0 and 4.
        let mut cursors = [1, 2, 0, 3, 0, 4];
        let ranges = ranges_of(division, &mut cursors);
        let gaps = |gaps: u32, position: u32| gaps * PARTITION_GAP + position;
        let expected = [(1, 0, 4), (2, 4, 6), (3, 6, 10)]
            .map(|(count, start, end)| gaps(count, start) as usize..gaps(count, end) as usize);
        assert_eq!(ranges, expected, "ranges");
        let expected = [(1, 0), (2, 4), (3, 6), (1, 1), (2, 6), (3, 6)];
        let expected = expected.map(|(count, position)| gaps(count, position));
        assert_eq!(cursors, expected, "cursors");
    }
}
