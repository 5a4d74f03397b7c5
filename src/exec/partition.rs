//! Tuples are first brought together by ranges of destinations, each range
//! then applied in order while its part of the output stays in cache.
//!
//! Three passes: count, move, apply. Single elements take their values along;
//! wider windows take the number of their tuple. A kept plan remembers what
//! the first two passes found.

mod moving;

use std::ops::Range;
use std::sync::OnceLock;

use self::moving::{Destined, Division};
use super::choose::{CARRIED_BYTES, Choice};
use super::places::Places;
use super::tasks::Workers;
use super::tile::Tile;
use super::{Call, scratch};
use crate::error::ScatterError;
use crate::kernel::{Elements, ElementsFn, RowsForm, Spread};
use crate::memory::zeroed;
use crate::plan::{Destinations, IndexPlan, Number, Order, Partitioned};

/// A width of destination numbers.
trait Width: Number + scratch::Kept {
    /// The kernel for single elements that takes them.
    fn kernel(elements: Elements) -> ElementsFn<Self>;
    /// What a plan keeps of them.
    fn kept(plan: &IndexPlan) -> &OnceLock<Partitioned<Self>>;
    /// The numbers as loops over rows take them.
    fn for_rows(numbers: &[Self]) -> Option<&[u32]>;
}

impl Width for u32 {
    fn kernel(elements: Elements) -> ElementsFn<Self> {
        elements.u32
    }

    fn kept(plan: &IndexPlan) -> &OnceLock<Partitioned<Self>> {
        &plan.partitions().narrow
    }

    fn for_rows(numbers: &[Self]) -> Option<&[u32]> {
        Some(numbers)
    }
}

impl Width for u64 {
    fn kernel(elements: Elements) -> ElementsFn<Self> {
        elements.u64
    }

    fn kept(plan: &IndexPlan) -> &OnceLock<Partitioned<Self>> {
        &plan.partitions().wide
    }

    fn for_rows(_: &[Self]) -> Option<&[u32]> {
        None
    }
}

/// Tuples in their partitions, ready to be applied.
struct Ready<'a, N> {
    shift: u32,
    ranges: &'a [Range<usize>],
    numbers: &'a [N],
    load: Load<'a>,
}

/// What goes with each destination number.
enum Load<'a> {
    /// The value itself, in words that may hold several.
    Values(&'a [u64]),
    /// The number of its tuple.
    Tuples(&'a [u32]),
}

impl Call<'_> {
    /// Where memory cannot be had, the serial schedule needs none.
    pub(super) fn run_partitioned(
        &self,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let result = match self.plan.destinations() {
            Destinations::Narrow(numbers) => self.partition(numbers, workers, choice),
            Destinations::Wide(numbers) => self.partition(numbers, workers, choice),
        };
        match result {
            // Nothing has been written yet.
            Err(ScatterError::OutOfMemory { .. }) => {
                self.run_serial();
                Ok(())
            }
            other => other,
        }
    }

    fn partition<N: Width>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        if self.plan_is_kept {
            let kept = self.kept_partitions(numbers, workers, choice)?;
            match (&kept.order, self.carries_values()) {
                (Order::Places(places), true) => {
                    let count = kept.numbers.len();
                    let mut values = self.take_values(count)?;
                    self.move_all_values(places, count, workers, &mut values)?;
                    self.apply_partitions(&kept.ready(Load::Values(&values)), workers, choice)?;
                    scratch::Kept::put_back(values);
                    return Ok(());
                }
                (Order::Tuples(tuples), false) => {
                    let ready = kept.ready(Load::Tuples(tuples));
                    return self.apply_partitions(&ready, workers, choice);
                }
                // Kept by a run with other updates; as if nothing were.
                _ => {}
            }
        }
        self.partition_once(numbers, workers, choice)
    }

    /// In scratch memory.
    fn partition_once<N: Width>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let count = self.plan.scale().count;
        let division = Division::new(choice, count);
        let places = choice.places(numbers.len(), count);
        let mut moved = N::take(places)?;
        let (mut values, mut tuples) = (Vec::new(), Vec::new());
        let destined = if self.carries_values() {
            values = self.take_values(places)?;
            Destined::Values(Places::new(&mut values))
        } else {
            tuples = scratch::Kept::take(places)?;
            Destined::Tuples(Places::new(&mut tuples))
        };
        let (mut cursors, ranges) = self.count_partitions(numbers, workers, division, places)?;
        self.move_tuples(
            numbers,
            workers,
            division,
            &mut cursors,
            // Scratch memory may be longer.
            &mut moved[..places],
            &destined,
        )?;
        let ready = Ready {
            shift: division.shift,
            ranges: &ranges,
            numbers: &moved,
            load: if self.carries_values() {
                Load::Values(&values)
            } else {
                Load::Tuples(&tuples)
            },
        };
        self.apply_partitions(&ready, workers, choice)?;
        N::put_back(moved);
        scratch::Kept::put_back(values);
        scratch::Kept::put_back(tuples);
        Ok(())
    }

    /// The plan's own partitions, made now if it has none.
    fn kept_partitions<N: Width>(
        &self,
        numbers: &[N],
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<&Partitioned<N>, ScatterError> {
        let cell = N::kept(self.plan);
        if let Some(kept) = cell.get() {
            return Ok(kept);
        }
        let count = self.plan.scale().count;
        let division = Division::new(choice, count);
        let places = choice.places(numbers.len(), count);
        let mut moved: Vec<N> = zeroed(places)?;
        let carries = self.carries_values();
        let mut order: Vec<u32> = zeroed(if carries { numbers.len() } else { places })?;
        let list = Places::new(&mut order);
        let destined = if carries {
            Destined::Nothing(list)
        } else {
            Destined::Tuples(list)
        };
        let (mut cursors, ranges) = self.count_partitions(numbers, workers, division, places)?;
        self.move_tuples(
            numbers,
            workers,
            division,
            &mut cursors,
            &mut moved,
            &destined,
        )?;
        // Of runs that are the first at once, any one's will do.
        Ok(cell.get_or_init(|| Partitioned {
            shift: division.shift,
            ranges,
            numbers: moved,
            order: if carries {
                Order::Places(order)
            } else {
                Order::Tuples(order)
            },
        }))
    }

    /// Room for a value at each of so many places.
    fn take_values(&self, places: usize) -> Result<Vec<u64>, ScatterError> {
        scratch::Kept::take((places * self.kernels.size).div_ceil(size_of::<u64>()))
    }

    /// Values go along where they are single elements, each used once.
    fn carries_values(&self) -> bool {
        self.single_elements().is_some()
            && self.kernels.size <= CARRIED_BYTES
            && self.kernels.copy_elements.is_some()
            && self.geometry.outer.elements() == 1
    }

    /// Applies partition after partition, after or with the copy of data.
    fn apply_partitions<N: Width>(
        &self,
        ready: &Ready<'_, N>,
        workers: &Workers<'_>,
        choice: &Choice,
    ) -> Result<(), ScatterError> {
        let count = self.plan.scale().count;
        let fused = (self.copy.as_ref()).filter(|copy| choice.fuses_copy(&self.workload(), copy));
        if let (Some(copy), None) = (&self.copy, fused) {
            self.copy_in_parallel(workers, copy)?;
        }
        workers.run_each(ready.ranges.len(), &|index| {
            let first = (index as u64) << ready.shift;
            let numbers = first..(first + (1 << ready.shift)).min(count);
            let (outer, places) = (
                0..self.geometry.outer.elements(),
                ready.ranges[index].clone(),
            );
            #[expect(unsafe_code, reason = "every task has a tile of its own")]
            // SAFETY: `run_each` hands out every partition once, and no two
            // have a destination number in common; the tuples in the places of
            // this one all have such numbers (`move_tuples`).
            let tile = unsafe { Tile::new(outer, places, Some(numbers), None) };
            if let Some(copy) = fused {
                self.copy_tile(copy, &tile);
            }
            self.apply_partition(ready, &tile);
        })
    }

    /// The tuples of one partition, in order: the tile has their places in
    /// `ready` and all of their destinations.
    fn apply_partition<N: Width>(&self, ready: &Ready<'_, N>, tile: &Tile) {
        let numbers = &ready.numbers[tile.tuples()];
        match (&ready.load, self.kernels.apply_elements) {
            (Load::Values(words), Some(elements)) => {
                let bytes = tile.tuples().start * self.kernels.size;
                let values = words.as_ptr().cast::<u8>().wrapping_add(bytes);
                let (dst, _) = self.geometry.repetition(0);
                let dst = self.output_at(self.geometry.window.dst + dst);
                #[expect(unsafe_code, reason = "single elements go straight to the kernel")]
                // SAFETY: `Call::new` vouches for the output and the plan for
                // the numbers; `move_values` has filled one value for each; the
                // tile reaches these destinations.
                unsafe {
                    let spread = Spread {
                        scale: self.geometry.unit,
                        ..Spread::FAR
                    };
                    N::kernel(elements)(dst, values, numbers, spread);
                }
            }
            (Load::Tuples(tuples), _) => {
                self.apply_listed(numbers, &tuples[tile.tuples()], tile);
            }
            (Load::Values(_), None) => {}
        }
    }

    /// `numbers` are those of `tuples`, which lie in the places of the tile.
    fn apply_listed<N: Width>(&self, numbers: &[N], tuples: &[u32], tile: &Tile) {
        let window = &self.geometry.window;
        let rows = self.evenly_spaced(window).zip(N::for_rows(numbers));
        for repetition in tile.outer() {
            let origin = self.geometry.repetition(repetition);
            if let Some(((kernel, rows), numbers)) = rows {
                let rows = RowsForm {
                    sources: Some(tuples),
                    ..rows
                };
                #[expect(unsafe_code, reason = "a tile is its task's own")]
                // SAFETY: the tile reaches these destinations, each listed with
                // its tuple.
                unsafe {
                    self.apply_rows(kernel, rows, numbers, window, origin, 0);
                }
                continue;
            }
            #[expect(unsafe_code, reason = "a tile is its task's own")]
            // SAFETY: the tile reaches the windows that are pushed; they are
            // not streamed.
            let mut sink = unsafe { self.updates_sink(self.kernels.apply, window) };
            for (number, &tuple) in numbers.iter().zip(tuples) {
                let (dst, src) = self.window_at(number.get(), tuple as usize, origin);
                sink.push(dst, src);
            }
            sink.finish();
        }
    }
}

impl<N> Partitioned<N> {
    fn ready<'a>(&'a self, load: Load<'a>) -> Ready<'a, N> {
        Ready {
            shift: self.shift,
            ranges: &self.ranges,
            numbers: &self.numbers,
            load,
        }
    }
}
