//! The one place that chooses a schedule.
//!
//! Every number here has a name; `docs/performance.md` says which of them are
//! measured, which are arguments, and which measurements speak against one.

use std::cell::LazyCell;
use std::ops::RangeInclusive;

use super::tasks::Workers;
use super::tile::{Grid, LINE_BYTES, can_be_cut};
use super::workload::{Sample, Workload};
use crate::plan::CopyGeometry;
use crate::schedule::Schedule;

/// Calls that touch fewer bytes than this are over before a choice is worth
/// making.
pub(crate) const SMALL_BYTES: usize = 2 << 20;

/// Calls that touch fewer bytes than this
/// ([`Workload::touched_bytes`](super::workload::Workload::touched_bytes))
/// stay on the calling thread: a worker that sleeps begins some 30
/// microseconds late, at each step of a schedule.
pub(crate) const PARALLEL_BYTES: usize = 12 << 20;

/// Tuples a destination, on average, that make groups: with more, a serial
/// loop was as fast or faster.
const GROUP_TUPLES: RangeInclusive<u64> = 2..=16;

/// Out of place, where so many times as much is copied as is then touched,
/// workers that have ranges of destinations may all look at every tuple.
const MOSTLY_COPIED: usize = 32;

/// Where few destinations are met again and again, all that is left to do is
/// to read updates. Workers that share the rows of updates among them read
/// them no faster, unless rows are this wide or there are so many workers.
const WIDE_BYTES: usize = 1024;
const READING_PARTS: usize = 4;

/// Outputs of at least this many bytes are written past the caches where no
/// later step of the call touches them: they would push out what is there.
pub(crate) const STREAM_BYTES: usize = 16 << 20;

/// Windows of at least this many bytes may be worth finding the winner first,
/// and what must be saved by it for each tuple: with one worker, with several,
/// and where there are few destinations to sort tuples by.
const WINNER_WINDOW_BYTES: usize = 64;
const SAVED_BYTES_ALONE: u64 = 160;
const SAVED_BYTES: u64 = 128;
const SAVED_BYTES_FEW: u64 = 48;

/// Most destinations that are few, and fewest tuples for each.
const FEW_WINNERS: u64 = 16 * 1024;
const FEW_WINNERS_TUPLES: u64 = 4;

/// Out of place the winners are worth finding where there are as many bytes of
/// output for each tuple, and windows are not single elements: else, sorting
/// tuples costs more than the copy saves.
const WINNER_OUTPUT_BYTES: usize = 4096;
const REWRITTEN_WINDOW_BYTES: usize = 32;

/// Out of place, windows of so many bytes are written past the caches where
/// data was copied past them; that beats the winner where updates come in no
/// order and are at most this part of the output.
pub(super) const STREAMED_WINDOW_BYTES: usize = 256;
pub(super) const SPARSE: usize = 4;

/// Narrowest part of a window that a worker takes: two cache lines, which
/// hardware fetches together.
const COLUMN_BYTES: usize = 128;

/// Where windows lie within a line and all that is read and written of the
/// output in so many bytes, a serial loop finds them in its caches and beats
/// any division.
const SERIAL_REGION_BYTES: u64 = 16 << 20;

/// The same for longer windows: one core's first cache.
const SERIAL_ROWS_BYTES: u64 = 32 * 1024;

/// Windows that lie in so many bytes are in a core's caches after a while: to
/// ask for them ahead costs more than it gains.
pub(super) const NEAR_BYTES: u64 = 1 << 20;

/// Windows that lie in more bytes than this are worth bringing together.
const PARTITIONED_BYTES: u64 = 256 * 1024;

/// Bytes of the output that one partition covers: half of a common
/// second-level cache.
const PARTITION_BYTES: u64 = 512 * 1024;

/// Updates of more bytes than this, in windows of at least so many, and so many
/// times those of the region that they are for, are read through in few
/// partitions. Their page table, 8 bytes for 4 KiB, outgrows a second-level
/// cache; that of half as many bytes of a partition does not.
const PAGED_BYTES: u64 = 512 << 20;
const READ_THROUGH_BYTES: usize = 256;
const UPDATES_OF_REGION: u64 = 4;

/// Largest values that go along with the numbers of their destinations: a call
/// is to need no more than 16 bytes a tuple.
pub(super) const CARRIED_BYTES: usize = 8;

/// Most partitions: what the translation buffer holds while they are filled.
pub(super) const MOST_PARTITIONS: u32 = 256;

/// Places left empty before each partition: a page and a line, counted in
/// numbers. Without them, partitions of a power of two of tuples begin a power
/// of two of bytes apart, share a few sets of the translation buffer and of
/// the first-level cache, and are filled at a third of the speed.
pub(super) const PARTITION_GAP: u32 = (4096 + 64) / 4;

/// Most tuples of partitions: their positions, gaps included, have 32 bits.
const MOST_PARTITIONED: usize = (u32::MAX - (MOST_PARTITIONS + 1) * PARTITION_GAP) as usize;

/// Largest copy that a worker makes of all windows: what a first-level and a
/// part of a second-level cache hold.
const PRIVATE_BYTES: u64 = 256 * 1024;

/// Tuples from which copies of the windows pay.
const PRIVATE_TUPLES: usize = 128 * 1024;

/// A schedule and its division into tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) schedule: Schedule,
    pub(crate) grid: Grid,
    /// Partitions are ranges of `1 << shift` destination numbers.
    pub(crate) shift: u32,
}

impl Choice {
    const SERIAL: Self = Self {
        schedule: Schedule::Serial,
        grid: Grid::ONE,
        shift: 0,
    };

    fn new(schedule: Schedule, grid: Grid) -> Self {
        Self {
            schedule,
            grid,
            shift: 0,
        }
    }

    /// Partitions of `count` destination numbers.
    pub(super) fn partitions(&self, count: u64) -> usize {
        usize::try_from(count.div_ceil(1 << self.shift)).unwrap_or(usize::MAX)
    }

    /// Places for so many tuples in partitions of `count` numbers, gaps
    /// included.
    pub(super) fn places(&self, tuples: usize, count: u64) -> usize {
        let gaps = self
            .partitions(count)
            .saturating_mul(PARTITION_GAP as usize);
        tuples.saturating_add(gaps)
    }

    /// Whether a task's tile is a region of the output of its own, so that it
    /// copies its part of `data` just before it applies its updates.
    pub(super) fn fuses_copy(&self, work: &Workload<'_>, copy: &CopyGeometry) -> bool {
        let same_repetitions = work.geometry.outer.elements() == copy.outer.elements();
        let one_region = match self.schedule {
            Schedule::ByBatch => self.grid.middle == 1,
            // With a loop more for the slices, that of the window must still fit
            // in place (`can_be_cut`).
            Schedule::ByDestination | Schedule::ByPartition => {
                copy.slices.is_some() && copy.window.dims.is_inline_with(1)
            }
            _ => false,
        };
        same_repetitions && one_region && self.grid.columns == 1 && work.plan.is_whole()
    }
}

/// The ranges of a power of two of `count` numbers that make at most so many
/// partitions.
fn shift_of(count: u64, partitions: u64) -> u32 {
    count
        .div_ceil(partitions)
        .next_power_of_two()
        .trailing_zeros()
}

/// Chooses the schedule and its tiles; `forced` where it applies and keeps
/// the bits, else serial.
pub(crate) fn choose(
    work: &Workload<'_>,
    workers: &Workers<'_>,
    forced: Option<Schedule>,
) -> Choice {
    if work.operation.needs_groups {
        let parts = match forced {
            None => work.useful_parts(workers),
            Some(_) => workers.parts(),
        };
        return Choice::new(Schedule::Grouped, work.group_grid(parts));
    }
    if let Some(schedule) = forced {
        return work
            .divide(schedule, workers.parts())
            .unwrap_or(Choice::SERIAL);
    }
    if work.touched_bytes() < SMALL_BYTES {
        return Choice::SERIAL;
    }
    let parts = work.useful_parts(workers);
    let preferred = work.preferred(parts);
    preferred
        .into_iter()
        .flatten()
        .find_map(|schedule| work.divide(schedule, work.parts_of(schedule, parts)))
        .unwrap_or(Choice::SERIAL)
}

impl Workload<'_> {
    /// How many workers the call is worth. Asks for their number only if
    /// several are.
    fn useful_parts(&self, workers: &Workers<'_>) -> usize {
        if self.touched_bytes() < PARALLEL_BYTES {
            1
        } else {
            workers.parts()
        }
    }

    /// How many of the workers a schedule is worth: winners may be few however
    /// many updates they are chosen from.
    fn parts_of(&self, schedule: Schedule, parts: usize) -> usize {
        let repetitions = self.geometry.outer.elements() as u64;
        let winners = self.copy_bytes().saturating_mul(repetitions);
        let written = winners.max(self.copied_bytes() as u64 * 2);
        match schedule {
            Schedule::LastWrite if written < PARALLEL_BYTES as u64 => 1,
            _ => parts,
        }
    }

    /// Schedules worth trying, best first.
    fn preferred(&self, parts: usize) -> [Option<Schedule>; 2] {
        let moves_rows = self.kernels.replaces && self.window_bytes() >= WINNER_WINDOW_BYTES;
        let repetitions = self.geometry.outer.elements();
        // Taken once a choice, if at all.
        let sample = LazyCell::new(|| self.sample());
        if self.overwrites_a_copy() {
            return match parts {
                1 => [None, None],
                _ => [Some(Schedule::ByTuple), Some(Schedule::LastWrite)],
            };
        }
        if moves_rows && self.winners_pay(&sample, parts) || self.rewrites() {
            return [Some(Schedule::LastWrite), self.divided(&sample, parts)];
        }
        if moves_rows && self.plan.facts().increasing && self.bytes() >= STREAM_BYTES {
            return [Some(Schedule::LastWrite), Some(Schedule::ByTuple)];
        }
        if parts == 1 {
            return [None, None];
        }
        if repetitions.is_multiple_of(parts) || repetitions >= 4 * parts {
            return [Some(Schedule::ByBatch), None];
        }
        let lanes = self.plan.lanes();
        let enough_lanes = lanes >= 4 * parts || (lanes >= parts && lanes.is_multiple_of(parts));
        let stands_together = self.plan.facts().ordered && sample.groups_balance(parts);
        if enough_lanes || stands_together || self.plan.is_known_unique() {
            return [Some(Schedule::ByTuple), None];
        }
        if !moves_rows {
            return [self.divided(&sample, parts), None];
        }
        // To find repeats costs less than to sort out winners, which write
        // past the caches where there is enough to write.
        let streams = self.window_bytes() >= WIDE_BYTES || self.is_sparse();
        let otherwise = if streams {
            Some(Schedule::LastWrite)
        } else {
            self.divided(&sample, parts)
        };
        [Some(Schedule::ByTuple), otherwise]
    }

    /// Whether so many updates are written over by later ones that it costs
    /// less to find out first which ones stay.
    fn winners_pay(&self, sample: &Sample, parts: usize) -> bool {
        let tuples = self.plan.tuples() as u64;
        let count = self.distinct(sample);
        let Some(lost) = tuples.checked_sub(count).filter(|&lost| lost > 0) else {
            return false;
        };
        let saved = (self.window_bytes() as u64).saturating_mul(lost) / tuples;
        let are_few = count <= FEW_WINNERS && tuples / FEW_WINNERS_TUPLES >= count;
        if are_few {
            saved >= SAVED_BYTES_FEW
        } else if self.touched_bytes() < PARALLEL_BYTES || self.plan.facts().ordered {
            false
        } else if parts == 1 {
            saved >= SAVED_BYTES_ALONE
        } else {
            saved >= SAVED_BYTES
        }
    }

    /// Whether one pass over the output, which takes every slice from `data` or
    /// from its winner, beats a copy that updates are then written over.
    fn rewrites(&self) -> bool {
        self.kernels.replaces
            && self.window_bytes() >= REWRITTEN_WINDOW_BYTES
            && (self.copy).is_some_and(|copy| {
                copy.whole.elements() * self.kernels.size
                    >= self.windows().saturating_mul(WINNER_OUTPUT_BYTES)
            })
    }

    /// Whether to copy past the caches and then to write windows over it past
    /// them beats one pass in order, for which the updates lie all over memory.
    fn overwrites_a_copy(&self) -> bool {
        self.is_sparse()
            && self.window_bytes() >= STREAMED_WINDOW_BYTES
            && !self.plan.facts().increasing
    }

    /// A schedule that needs to know nothing about duplicates.
    fn divided(&self, sample: &Sample, parts: usize) -> Option<Schedule> {
        if parts == 1 {
            return None;
        }
        let window = self.window_bytes();
        if self.line_bytes() <= self.copied_bytes() / MOSTLY_COPIED {
            return Some(Schedule::ByDestination);
        }
        if self.groups_pay() {
            return Some(Schedule::Grouped);
        }
        if window < 2 * COLUMN_BYTES && self.private_pays(parts) {
            return Some(Schedule::Private);
        }
        let met = self.met_bytes(sample);
        // Workers that have ranges of destinations all find something to do. It
        // need not be as much for each: where many tuples have few
        // destinations, these stay in the caches of who has them.
        let spreads = sample.is_spread(self.partition_shift(parts));
        if window < LINE_BYTES {
            let region = (self.region_bytes()).saturating_add(self.copied_bytes() as u64);
            let is_cached = region <= SERIAL_REGION_BYTES || met <= PARTITIONED_BYTES;
            (spreads && !is_cached).then_some(Schedule::ByPartition)
        } else if spreads && met > SERIAL_ROWS_BYTES && self.region_bytes() > PARTITIONED_BYTES {
            Some(Schedule::ByPartition)
        } else {
            self.divided_windows(parts, met)
        }
    }

    /// The same for windows that lie in so few bytes that to bring them
    /// together gains nothing.
    fn divided_windows(&self, parts: usize, met: u64) -> Option<Schedule> {
        let window = self.window_bytes();
        let is_read_alone =
            met <= SERIAL_ROWS_BYTES && window < WIDE_BYTES && parts < READING_PARTS;
        if is_read_alone || window < 2 * COLUMN_BYTES {
            None
        } else if window / COLUMN_BYTES >= parts {
            Some(Schedule::ByColumn)
        } else {
            Some(Schedule::ByDestination)
        }
    }

    /// Whether to add up the updates of one destination after another pays:
    /// the sort costs little beside wide windows.
    fn groups_pay(&self) -> bool {
        let (tuples, count) = (self.plan.tuples() as u64, self.plan.scale().count);
        self.window_bytes() >= WIDE_BYTES
            && self.operation.group.is_some()
            && GROUP_TUPLES.contains(&(tuples / count.max(1)))
    }

    /// Whether copies of the windows for every worker pay.
    fn private_pays(&self, parts: usize) -> bool {
        let tuples = self.plan.tuples();
        tuples >= PRIVATE_TUPLES
            && tuples as u64 / 8 >= self.plan.scale().count
            && self.private_applies(parts)
    }

    /// The tiles of `schedule` on `parts` workers; `None` where it does not
    /// apply or would not keep the bits.
    fn divide(&self, schedule: Schedule, parts: usize) -> Option<Choice> {
        let repetitions = self.geometry.outer.elements();
        let tuples = self.plan.tuples();
        let middle = |middle| Grid {
            middle,
            ..Grid::ONE
        };
        let grid = match schedule {
            Schedule::Serial => Grid::ONE,
            Schedule::ByBatch if repetitions > 1 => Grid {
                outer: parts.min(repetitions),
                ..Grid::ONE
            },
            Schedule::ByTuple if self.plan.lanes() >= parts.max(2) => middle(parts),
            Schedule::ByTuple if tuples > 1 && self.plan.facts().ordered => {
                middle(parts.min(tuples))
            }
            Schedule::ByTuple if tuples > 1 && self.plan.first_repeat() == Ok(None) => {
                middle(parts.min(tuples))
            }
            Schedule::LastWrite if self.winners_apply() => self.winner_grid(parts),
            Schedule::ByColumn => self.column_grid(parts)?,
            Schedule::ByDestination if tuples > 0 => self.destination_grid(parts),
            Schedule::ByPartition if self.partitions_apply() => {
                return Some(Choice {
                    shift: self.partition_shift(parts),
                    ..Choice::new(schedule, middle(parts))
                });
            }
            Schedule::Grouped if tuples > 0 && self.operation.group.is_some() => {
                self.group_grid(parts)
            }
            Schedule::Private if self.private_applies(parts) => middle(parts),
            _ => return None,
        };
        Some(Choice::new(schedule, grid))
    }

    /// Groups for every worker; columns where windows are wide, which serve a
    /// few long groups as well.
    fn group_grid(&self, parts: usize) -> Grid {
        let columns = match self.column_grid(parts) {
            Some(grid) if self.window_bytes() >= WIDE_BYTES * parts => grid.columns,
            _ => 1,
        };
        Grid {
            outer: 1,
            middle: (parts / columns).clamp(1, self.plan.tuples().max(1)),
            columns,
        }
    }

    /// Whether each worker can have a copy of all windows.
    fn private_applies(&self, parts: usize) -> bool {
        self.plan.scale().numbers_slices
            && self.geometry.window.is_row()
            && self.geometry.source_step().is_some()
            && self.plan.keeps_all()
            && self.plan.tuples() >= parts
            && self.copy_bytes() <= PRIVATE_BYTES
            && self.operation.private().is_some()
    }

    fn winners_apply(&self) -> bool {
        let moves_rows = self.copy.is_none_or(|copy| {
            copy.slices.is_some()
                && copy.outer.elements() == self.geometry.outer.elements()
                && self.plan.is_whole()
        });
        self.kernels.replaces && moves_rows && self.plan.last_writes().is_some()
    }

    fn winner_grid(&self, parts: usize) -> Grid {
        let repetitions = self.geometry.outer.elements();
        let outer = if repetitions >= 4 * parts || repetitions == parts {
            parts
        } else {
            1
        };
        Grid {
            outer,
            middle: parts / outer,
            columns: 1,
        }
    }

    fn column_grid(&self, parts: usize) -> Option<Grid> {
        let window = &self.geometry.window;
        let longest = window.dims[window.axis_to_split(parts)].size;
        (longest > 1 && can_be_cut(window)).then(|| Grid {
            columns: parts.min(longest),
            ..Grid::ONE
        })
    }

    /// Columns as wide as they should be, and ranges of destinations for the
    /// workers that are left.
    fn destination_grid(&self, parts: usize) -> Grid {
        let window = &self.geometry.window;
        let columns = if self.copy.is_some() || !can_be_cut(window) {
            1
        } else {
            let longest = window.dims[window.axis_to_split(parts)].size;
            (self.window_bytes() / COLUMN_BYTES)
                .clamp(1, parts)
                .min(longest.max(1))
        };
        let count = usize::try_from(self.plan.scale().count).unwrap_or(usize::MAX);
        Grid {
            outer: 1,
            middle: (parts / columns).clamp(1, count.max(1)),
            columns,
        }
    }

    fn partitions_apply(&self) -> bool {
        let tuples = self.plan.tuples();
        (1..=MOST_PARTITIONED).contains(&tuples)
    }

    /// Partitions of half a cache, but enough of them for every worker; where
    /// updates are to be read once through, as few as keep all workers busy.
    fn partition_shift(&self, parts: usize) -> u32 {
        let count = self.plan.scale().count.max(1);
        let by_cache = self.region_bytes().div_ceil(PARTITION_BYTES);
        let partitions = by_cache
            .max(4 * parts as u64)
            .clamp(1, MOST_PARTITIONS.into());
        let shift = shift_of(count, partitions);
        if !self.reads_through(parts) {
            return shift;
        }
        let sample = self.sample();
        let fewest = self.region_bytes().div_ceil(PAGED_BYTES / 2);
        (shift..=shift_of(count, fewest.max(parts as u64)))
            .rev()
            .find(|&shift| sample.balances(shift, parts))
            .unwrap_or(shift)
    }

    /// Whether to read updates in their order costs less than to have the
    /// output in the caches: each partition reads in pages all over them.
    fn reads_through(&self, parts: usize) -> bool {
        let updates = self.applied_bytes() as u64;
        parts < READING_PARTS
            && updates > PAGED_BYTES
            && updates / UPDATES_OF_REGION >= self.region_bytes()
            && self.window_bytes() >= READ_THROUGH_BYTES
    }
}
