//! A stable partition of the tuples into ranges of destinations, each range
//! then applied in order while its part of the output stays in cache.
//!
//! Three passes: count, move, apply. Single elements take their values along;
//! wider windows take the number of their tuple.

use std::ops::Range;

use super::choose::{Choice, LINE_BYTES, PARTITION_GAP};
use super::places::Places;
use super::tasks::Workers;
use super::tile::{Tile, part};
use super::{Call, scratch};
use crate::error::ScatterError;
use crate::kernel::{Elements, ElementsFn, prefetch_lines};
use crate::plan::{Destinations, Number, signed};

/// Positions that are worked out before the values are moved there.
const BLOCK: usize = 256;

/// What goes with each destination number.
enum Load {
    /// The value itself, in words that may hold several.
    Values(Vec<u64>),
    /// The number of its tuple.
    Tuples(Vec<u32>),
}

/// Scratch memory of one call.
struct Room<N> {
    /// For each part of the tuples and each partition, first a count, then
    /// the position where the next of them goes.
    cursors: Vec<u32>,
    numbers: Vec<N>,
    load: Load,
}

/// How the tuples are divided.
#[derive(Clone, Copy)]
struct Division {
    parts: usize,
    partitions: usize,
    shift: u32,
}

impl Division {
    fn partition(self, number: u64) -> usize {
        usize::try_from(number >> self.shift).unwrap_or(usize::MAX)
    }
}

impl Call<'_> {
    /// Where scratch memory cannot be had, the serial schedule needs none.
    pub(super) fn run_partitioned(
        &self,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        match self.plan.destinations() {
            Destinations::Narrow(numbers) => {
                self.partition(numbers, workers, choice, |elements| elements.u32)
            }
            Destinations::Wide(numbers) => {
                self.partition(numbers, workers, choice, |elements| elements.u64)
            }
        }
    }

    fn partition<N: Number + scratch::Kept>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        choice: &Choice,
        width: fn(Elements) -> ElementsFn<N>,
    ) -> Result<(), ScatterError> {
        let count = self.plan.scale().count;
        let division = Division {
            parts: choice.grid.middle,
            partitions: choice.partitions(count),
            shift: choice.shift,
        };
        let places = choice.places(self.plan.tuples(), count);
        let Ok(mut room) = self.room::<N>(division, places) else {
            self.run_serial();
            return Ok(());
        };
        self.count_parts(numbers, workers, division, &mut room.cursors)?;
        let ranges = ranges_of(division, &mut room.cursors);
        self.move_parts(numbers, workers, division, &mut room)?;
        let fused = (self.copy.as_ref()).filter(|copy| choice.fuses_copy(&self.workload(), copy));
        if let (Some(copy), None) = (&self.copy, fused) {
            self.copy_in_parallel(workers, copy)?;
        }
        workers.run_each(division.partitions, &|index| {
            let first = (index as u64) << division.shift;
            let tile = Tile {
                outer: 0..self.geometry.outer.elements(),
                tuples: ranges[index].clone(),
                numbers: Some(first..(first + (1 << division.shift)).min(count)),
                columns: None,
            };
            match fused {
                Some(copy) => self.copy_tile(copy, &tile),
                None => self.fetch(first..first + (1 << division.shift), tile.tuples.len()),
            }
            self.apply_partition(&room, &tile, width);
        })?;
        room.put_back();
        Ok(())
    }

    fn room<N: scratch::Kept>(
        &self,
        division: Division,
        places: usize,
    ) -> Result<Room<N>, ScatterError> {
        let load = if self.carries_values() {
            let bytes = places * self.row.size;
            Load::Values(scratch::Kept::take(bytes.div_ceil(size_of::<u64>()))?)
        } else {
            Load::Tuples(scratch::Kept::take(places)?)
        };
        Ok(Room {
            cursors: crate::memory::zeroed(division.parts * division.partitions)?,
            numbers: N::take(places)?,
            load,
        })
    }

    /// Values go along where they are single elements, each used once.
    fn carries_values(&self) -> bool {
        self.single_elements().is_some()
            && self.row.copy_elements.is_some()
            && self.geometry.outer.elements() == 1
    }

    /// First pass: how many tuples of each part fall into each partition.
    fn count_parts<N: Number>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        division: Division,
        counts: &mut [u32],
    ) -> Result<(), ScatterError> {
        workers.run_chunks(counts, division.partitions, &|index, counts| {
            for number in &numbers[part(numbers.len(), division.parts, index)] {
                counts[division.partition(number.get())] += 1;
            }
        })
    }

    /// Second pass: moves every part's tuples to their partitions, in order.
    fn move_parts<N: Number>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        division: Division,
        room: &mut Room<N>,
    ) -> Result<(), ScatterError> {
        let moved = Places::new(&mut room.numbers);
        let load = match &mut room.load {
            Load::Values(words) => Destined::Values(Places::new(words)),
            Load::Tuples(tuples) => Destined::Tuples(Places::new(tuples)),
        };
        workers.run_chunks(&mut room.cursors, division.partitions, &|index, cursors| {
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
                self.move_block(block, first, positions, &moved, &load);
                first += block.len();
            }
        })
    }

    /// Moves the tuples from `first` on, of one part, to `positions`.
    fn move_block<N: Number>(
        &self,
        numbers: &[N],
        first: usize,
        positions: &[u32],
        moved: &Places<'_, N>,
        load: &Destined<'_>,
    ) {
        for (&position, &number) in positions.iter().zip(numbers) {
            #[expect(unsafe_code, reason = "parts write to positions of their own")]
            // SAFETY: cursors run from one part's start in a partition to the
            // next part's (`ranges_of`), so positions are in range and no
            // other part writes them.
            unsafe {
                moved.set(position as usize, number);
            }
        }
        match load {
            Destined::Tuples(tuples) => {
                for (&position, tuple) in positions.iter().zip(first..) {
                    let tuple = u32::try_from(tuple).unwrap_or(u32::MAX);
                    #[expect(unsafe_code, reason = "parts write to positions of their own")]
                    // SAFETY: as above.
                    unsafe {
                        tuples.set(position as usize, tuple);
                    }
                }
            }
            Destined::Values(words) => {
                let Some(copy) = self.row.copy_elements else {
                    return;
                };
                let source = self.single_source(first);
                #[expect(unsafe_code, reason = "the kernel writes to positions of their own")]
                // SAFETY: as above; `room` has made the buffer long enough for
                // one value a tuple, `single_source` is where those begin.
                unsafe {
                    (copy.u32)(words.start().cast(), source, positions, 1);
                }
            }
        }
    }

    /// Asks for a range of single elements that `tuples` tuples are about to
    /// meet in any order, where they will meet most of its lines: memory is
    /// faster in order. 4 M sums in 64 MB took 0.93 of the time of the call.
    fn fetch(&self, numbers: Range<u64>, tuples: usize) {
        let scale = self.plan.scale();
        let end = numbers.end.min(scale.count);
        let elements = usize::try_from(end - numbers.start).unwrap_or(usize::MAX);
        let bytes = elements * self.row.size;
        let is_dense = tuples >= bytes / LINE_BYTES;
        if self.geometry.unit == 1 && self.carries_values() && is_dense {
            let (dst, _) = self.geometry.repetition(0);
            let first = self.geometry.window.dst + dst + signed(numbers.start);
            prefetch_lines(self.output_at(first), bytes);
        }
    }

    /// Third pass: the tuples of one partition, in order.
    fn apply_partition<N: Number>(
        &self,
        room: &Room<N>,
        tile: &Tile,
        width: fn(Elements) -> ElementsFn<N>,
    ) {
        let numbers = &room.numbers[tile.tuples.clone()];
        match (&room.load, self.row.apply_elements) {
            (Load::Values(words), Some(elements)) => {
                let bytes = tile.tuples.start * self.row.size;
                let values = words.as_ptr().cast::<u8>().wrapping_add(bytes);
                let (dst, _) = self.geometry.repetition(0);
                let dst = self.output_at(self.geometry.window.dst + dst);
                #[expect(unsafe_code, reason = "single elements go straight to the kernel")]
                // SAFETY: `Call::new` vouches for the output and the plan for
                // the numbers; `move_block` has filled one value for each; no
                // other partition has these numbers.
                unsafe {
                    width(elements)(dst, values, numbers, self.geometry.unit);
                }
            }
            (Load::Tuples(tuples), _) => {
                let tuples = &tuples[tile.tuples.clone()];
                self.apply_listed(numbers, tuples, tile.outer.clone());
            }
            (Load::Values(_), None) => {}
        }
    }

    fn apply_listed<N: Number>(&self, numbers: &[N], tuples: &[u32], outer: Range<usize>) {
        for repetition in outer {
            let origin = self.geometry.repetition(repetition);
            let mut sink = self.updates_sink(self.row.apply, &self.geometry.window);
            for (number, &tuple) in numbers.iter().zip(tuples) {
                let (dst, src) = self.window_at(number.get(), tuple as usize, origin);
                sink.push(dst, src);
            }
            sink.finish();
        }
    }
}

/// [`Load`] while it is being filled.
enum Destined<'a> {
    Values(Places<'a, u64>),
    Tuples(Places<'a, u32>),
}

impl<N: scratch::Kept> Room<N> {
    fn put_back(self) {
        N::put_back(self.numbers);
        match self.load {
            Load::Values(words) => scratch::Kept::put_back(words),
            Load::Tuples(tuples) => scratch::Kept::put_back(tuples),
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
