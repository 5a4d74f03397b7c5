//! The schedule by partition. Tuples are first sorted, stably, into partitions: ranges of
//! destinations. The tuples of each partition are then applied in order, while the part of the
//! output that they write is in a cache.
//!
//! The schedule makes three passes over the tuples: it counts them, moves them to their partitions,
//! and applies them. Single elements are usually moved with their values, wider windows with the
//! positions of their tuples. A kept plan stores the result of the first two passes, except the
//! values.

mod gatherer;
mod moving;

use std::any::Any;
use std::ops::Range;

use self::gatherer::bytes_of_task;
use self::moving::{CARRIED_BYTES, MOST_PARTITIONED, MOST_PARTITIONS, Partitions, Sorting};
use super::super::scratch::Scratch;
use super::super::thresholds::{
    FETCHED_TUPLES, FETCHING_TUPLES, MOST_PIECES, PAGED_BYTES, PARTITION_BYTES, READ_THROUGH_BYTES,
    READING_PARTS, UPDATES_OF_REGION,
};
use super::super::tile::{LINE_BYTES, Tile, part};
use super::super::transfer::Transfer;
use super::super::transfer::walk::{Positions, TupleList, Width};
use super::{Divided, Division, Preparation, Reason, Scheduler, Step, Stop, Workload};
use crate::error::ScatterError;
use crate::kernel::prefetch_bytes;
use crate::memory::CacheLine;
use crate::plan::{Destinations, signed};

pub(in super::super) use self::moving::partitions;

pub(super) struct ByPartition;

impl Scheduler for ByPartition {
    /// Windows with different destination numbers share no element. Destination numbers are either
    /// numbers of separate slices, or offsets of windows that do not overlap.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.tuples == 0 {
            return Err(Reason("there are no tuples"));
        }
        if work.tuples > MOST_PARTITIONED {
            return Err(Reason("there are too many tuples"));
        }
        Ok(Division::Partitions {
            parts,
            shift: shift(work, parts),
        })
    }

    fn preparation(&self, work: &Workload<'_>, division: Division) -> Preparation {
        let Division::Partitions { parts, shift } = division else {
            return Preparation::NOTHING;
        };
        let number = match work.slices <= Destinations::NARROW {
            true => size_of::<u32>(),
            false => size_of::<u64>(),
        };
        // Single elements may be moved with their values. Other windows are moved with the
        // positions of their tuples, which have 32 bits.
        let entry = match work.window_elements {
            1 => work.element_bytes.clamp(size_of::<u32>(), CARRIED_BYTES),
            _ => size_of::<u32>(),
        };
        let partitions = partitions(work.slices, shift);
        let gathered = parts.saturating_mul(bytes_of_task(partitions, number + entry));
        let bytes = work.tuples.saturating_mul(number + entry);
        Preparation::new(Step::Partition, bytes.saturating_add(gathered))
    }

    fn run(&self, divided: &Divided<'_, '_>) -> Result<(), Stop> {
        match divided.transfer.plan().destinations() {
            Destinations::Narrow(numbers) => run(numbers, divided),
            Destinations::Wide(numbers) => run(numbers, divided),
        }
    }
}

/// Returns the shift of the partitions. A partition has `1 << shift` destination numbers.
///
/// The region of a partition, its part of the output, is about half of a second-level cache of 1
/// MiB, a typical size. For single elements, the region is about a quarter of the cache, because
/// the cache also holds the region of the next partition. Regions are smaller if workers need more
/// partitions, about four per worker. Regions are larger if there would be more than
/// [`MOST_PARTITIONS`] partitions.
///
/// If [`reads_through`] is true, partitions are as large as possible without making the work of the
/// workers uneven.
pub(in super::super) fn shift(work: &Workload<'_>, parts: usize) -> u32 {
    let count = work.slices.max(1);
    let by_cache = work.region_bytes.div_ceil(match work.window_elements {
        1 => PARTITION_BYTES / 2,
        _ => PARTITION_BYTES,
    });
    let partitions = by_cache
        .max(4 * parts as u64)
        .clamp(1, MOST_PARTITIONS.into());
    let shift = shift_of(count, partitions);
    if !reads_through(work, parts) {
        return shift;
    }
    let fewest = work.region_bytes.div_ceil(PAGED_BYTES / 2);
    (shift..=shift_of(count, fewest.max(parts as u64)))
        .rev()
        .find(|&shift| work.sample().balances(shift, parts))
        .unwrap_or(shift)
}

/// Returns the smallest shift for which ranges of `1 << shift` numbers divide `0..count` into at
/// most `partitions` ranges.
fn shift_of(count: u64, partitions: u64) -> u32 {
    count
        .div_ceil(partitions)
        .next_power_of_two()
        .trailing_zeros()
}

/// Whether reading updates in the order of the tuples saves more time than keeping the output in
/// the caches. With small partitions, each partition reads rows from memory pages all over the
/// updates. With large partitions, the reads are closer to the order of the tuples.
fn reads_through(work: &Workload<'_>, parts: usize) -> bool {
    let updates = work.applied_bytes() as u64;
    parts < READING_PARTS
        && updates > PAGED_BYTES
        && updates / UPDATES_OF_REGION >= work.region_bytes
        && work.window_bytes() >= READ_THROUGH_BYTES
}

fn run<N: Width + Any>(numbers: &[N], divided: &Divided<'_, '_>) -> Result<(), Stop> {
    let transfer = divided.transfer;
    let Division::Partitions { parts, shift } = divided.division else {
        debug_assert!(false, "a division of another schedule");
        return Ok(());
    };
    let sorting = Sorting {
        transfer,
        workers: &divided.workers,
        parts,
        partitions: partitions(divided.work.slices, shift),
        shift,
        carries_values: carries_values(transfer),
    };
    let mut scratch = None;
    let partitions = match kept_partitions(&sorting, numbers).map_err(Stop::unprepared)? {
        Some(partitions) => partitions,
        None => scratch.insert(sorting.sort(numbers).map_err(Stop::unprepared)?),
    };
    let mut moved = None;
    let values = match partitions.first_places() {
        Some(first_places) => {
            // The partitions of a kept plan may have been made for another number of workers.
            let sorting = Sorting {
                parts: first_places.len() / partitions.ranges.len().max(1),
                partitions: partitions.ranges.len(),
                shift: partitions.shift,
                ..sorting
            };
            let values = sorting.move_values_again(numbers, first_places);
            Some(&moved.insert(values.map_err(Stop::unprepared)?)[..])
        }
        None => partitions.values(),
    };
    let partitioned = Partitioned {
        transfer,
        partitions,
        values,
    };
    partitioned.apply(divided)?;
    if let Some(values) = moved {
        Scratch::put_back(values);
    }
    if let Some(scratch) = scratch {
        scratch.put_back();
    }
    Ok(())
}

/// Returns the partitions that a kept plan stores. If the plan stores none, first sorts the tuples
/// and stores the result in the plan.
///
/// Returns `None` if the plan is not kept, or if the partitions cannot be stored. Also returns
/// `None` if this call moves values and the stored partitions have positions, or the other way
/// round.
fn kept_partitions<'p, N: Width + Any>(
    sorting: &Sorting<'p, '_>,
    numbers: &[N],
) -> Result<Option<&'p Partitions<N>>, ScatterError> {
    if !sorting.transfer.access().context.is_kept {
        return Ok(None);
    }
    let slot = &sorting.transfer.plan().slot;
    let kept = match slot.get() {
        Some(kept) => Some(kept),
        None => slot.get_or_put(sorting.sort_to_keep(numbers)?),
    };
    Ok(
        kept.filter(|kept: &&Partitions<N>| {
            sorting.carries_values == kept.first_places().is_some()
        }),
    )
}

/// Whether tuples are moved with their values. Windows must be single elements of at most
/// [`CARRIED_BYTES`] bytes with contiguous sources. There must be one repetition, and not one value
/// for all updates.
fn carries_values(transfer: &Transfer<'_>) -> bool {
    (transfer.single_elements().is_some() || transfer.listed_elements().is_some())
        && !transfer.is_one_value()
        && transfer.kernels().size <= CARRIED_BYTES
        && transfer.kernels().copy_elements.is_some()
        && transfer.repetitions() == 1
}

/// The prefetching of regions (parts of the output) while one partition is applied.
#[derive(Clone, Copy)]
struct Fetching {
    /// Whether the region of the applied partition was prefetched while the previous partition was
    /// applied.
    is_done: bool,
    /// The partition whose region is prefetched during this time.
    next: Option<usize>,
}

/// A part of the output that is prefetched in the order of its addresses.
struct Region {
    address: *const u8,
    bytes: usize,
}

impl Region {
    /// Prefetches the first `bytes` bytes of the region, and removes these bytes from the region.
    fn prefetch(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        prefetch_bytes(self.address, bytes);
        self.address = self.address.wrapping_add(bytes);
        self.bytes -= bytes;
    }
}

/// A transfer, and its tuples sorted into partitions.
struct Partitioned<'a, N> {
    transfer: &'a Transfer<'a>,
    partitions: &'a Partitions<N>,
    /// Memory with the value of the tuple at each place (position in the sorted list). `None` if
    /// tuples are not moved with their values.
    values: Option<&'a [CacheLine]>,
}

impl<N: Width> Partitioned<'_, N> {
    /// Applies all partitions. Out of place, each partition's data is copied just before the
    /// partition is applied, or all data is copied before the first partition.
    fn apply(&self, divided: &Divided<'_, '_>) -> Result<(), ScatterError> {
        let (transfer, partitions) = (self.transfer, self.partitions);
        // Partitions of a kept plan may have been made for another number of workers.
        let division = Division::Partitions {
            parts: divided.division.tasks(),
            shift: partitions.shift,
        };
        let divided = Divided {
            division,
            ..*divided
        };
        let fused = divided.fused_copy();
        if fused.is_none() {
            divided.copy_before()?;
        }
        let whole = transfer.whole(None);
        let count = partitions.ranges.len();
        let tasks = division.tasks().min(count);
        // If each partition copies its data (`fused`), the copy has just written the region, which
        // is then in a cache.
        let fetches = fused.is_none() && self.values.is_some();
        let is_fetched = |index: usize| fetches && self.is_dense(index);
        // The worker that prefetches the next region must also apply the next partition. A piece
        // therefore has consecutive partitions.
        let pieces = match fetches {
            true => (tasks * MOST_PIECES).min(count),
            false => count,
        };
        (divided.workers).run_pieces(tasks, pieces, &|piece| {
            let piece = part(count, pieces, piece);
            for index in piece.clone() {
                #[expect(unsafe_code, reason = "every partition is a separate tile")]
                // SAFETY: `ByPartition::divide` has made this division, for this call or for
                // another execution of its plan. `run_pieces` passes every piece to one task, once.
                // Each partition is in one piece.
                let tile = unsafe { Tile::new(division, index, &whole) };
                let next = index + 1;
                let fetching = Fetching {
                    is_done: index > piece.start
                        && is_fetched(index)
                        && self.fetches_next(index - 1),
                    next: (next < piece.end && is_fetched(next)).then_some(next),
                };
                transfer.fill_tile(fused, &tile, || {
                    self.apply_partition(&tile, partitions.ranges[index].clone(), fetching);
                });
            }
        })
    }

    /// Whether the region of the next partition can be prefetched while `partition` is applied. An
    /// empty partition has no blocks of tuples between which cache lines are prefetched.
    fn fetches_next(&self, partition: usize) -> bool {
        !self.partitions.ranges[partition].is_empty()
    }

    /// Whether windows have ascending addresses and a partition has at least [`FETCHED_TUPLES`]
    /// tuples for each cache line of its region. Prefetching the whole region in order then costs
    /// less than fetching the written cache lines at random.
    fn is_dense(&self, partition: usize) -> bool {
        let tuples = self.partitions.ranges[partition].len();
        let is_ascending = self.transfer.geometry().unit > 0;
        is_ascending && tuples / FETCHED_TUPLES >= self.region(partition).bytes / LINE_BYTES
    }

    /// Returns the region of a partition (the part of the output that it writes), for windows that
    /// are single elements with ascending addresses.
    fn region(&self, partition: usize) -> Region {
        let (geometry, size) = (self.transfer.geometry(), self.transfer.kernels().size);
        let shift = self.partitions.shift;
        let start = self.first_window() + signed((partition as u64) << shift) * geometry.unit;
        let unit = geometry.unit.unsigned_abs().saturating_mul(size);
        Region {
            address: self.transfer.access().written_at(start),
            bytes: unit.saturating_mul(1 << shift),
        }
    }

    /// Returns the offset of the window of destination number 0, if there is one repetition.
    fn first_window(&self) -> isize {
        let geometry = self.transfer.geometry();
        geometry.repetition(0).0 + geometry.window.dst
    }

    /// Applies the tuples of one partition, in order. `tile` has all destinations of the partition.
    /// `places` are the places of the partition's tuples in the sorted list.
    fn apply_partition(&self, tile: &Tile, places: Range<usize>, fetching: Fetching) {
        let numbers = &self.partitions.numbers()[places.clone()];
        debug_assert!(
            (tile.destinations()).is_some_and(|range| {
                (numbers.iter()).all(|number| range.contains(&number.get()))
            }),
            "a tuple outside its partition"
        );
        match (self.values, self.partitions.tuples()) {
            (Some(values), _) => self.apply_values(numbers, values, places.start, fetching),
            (None, Some(tuples)) => self.apply_tuples(tile, numbers, &tuples[places]),
            (None, None) => debug_assert!(false, "values were not moved"),
        }
    }

    /// Applies single elements. `values` has the values of all partitions, and the values of
    /// `numbers` begin at place `first`. Meanwhile, prefetches the region of the next partition in
    /// order.
    fn apply_values(&self, numbers: &[N], values: &[CacheLine], first: usize, fetching: Fetching) {
        let transfer = self.transfer;
        let Some(elements) = transfer.kernels().apply_elements else {
            debug_assert!(false, "no kernel for single elements");
            return;
        };
        let (written, size) = (self.first_window(), transfer.kernels().size);
        let values = values.as_ptr().cast::<u8>().wrapping_add(first * size);
        let mut ahead = fetching.next.map(|next| self.region(next));
        // If the region of this partition was not prefetched, the kernel prefetches the written
        // elements, except the first elements of each block of tuples. With longer blocks, the
        // kernel therefore prefetches more of the elements.
        let block_len = match (&ahead, fetching.is_done) {
            (None, _) => numbers.len().max(1),
            (Some(_), true) => FETCHING_TUPLES,
            (Some(_), false) => 8 * FETCHING_TUPLES,
        };
        let blocks = numbers.len().div_ceil(block_len).max(1);
        let share = (ahead.as_ref()).map_or(0, |region| region.bytes.div_ceil(blocks));
        for (block, numbers) in numbers.chunks(block_len).enumerate() {
            if let Some(region) = &mut ahead {
                region.prefetch(share.next_multiple_of(LINE_BYTES));
            }
            let values = values.wrapping_add(block * block_len * size);
            #[expect(unsafe_code, reason = "writes to the tile of the task")]
            // SAFETY: windows are single elements of one repetition (`carries_values`). The
            // destinations of `numbers` are in the caller's tile. `Sorting` has written one value
            // for each entry of `numbers`, in the order of `numbers`, from place `first` on.
            unsafe {
                transfer.apply_elements(elements, numbers, written, values, fetching.is_done);
            }
        }
    }

    /// Applies tuples whose windows are read from the updates. `tuples` has their positions in the
    /// plan's list.
    fn apply_tuples(&self, tile: &Tile, numbers: &[N], tuples: &[u32]) {
        let geometry = self.transfer.geometry();
        let list = TupleList {
            numbers,
            positions: Positions::Each(tuples),
        };
        for repetition in tile.repetitions() {
            let origin = geometry.repetition(repetition);
            #[expect(unsafe_code, reason = "writes to the tile of the task")]
            // SAFETY: the tile has the destinations `numbers`. `Sorting::sort` has listed each
            // destination with the position of its tuple. No streaming stores are used.
            unsafe {
                (self.transfer).apply_listed(list, &geometry.window, origin, false, false);
            }
        }
    }
}
