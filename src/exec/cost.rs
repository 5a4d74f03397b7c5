//! The cost model: predicts the elapsed time and the CPU time of a call with each schedule.
//!
//! A cost adds up the nanoseconds of cache lines moved from each level of memory, of instructions,
//! of barriers and of the preparation. The cost also depends on the balance of the work among
//! workers. A note describes the model (`docs/notes/2026-11-23-costs.md`).
//!
//! This module computes with plain numbers, without tensors, plans or threads. A wrong cost cannot
//! change a result, because all schedules give the bits of the sequential reference loop.

use super::sample::{Neighbours, PAGE_BYTES};
use super::schedule::{partition_shift, partitions};
use super::thresholds::STREAMED_WINDOW_BYTES;
use super::tile::LINE_BYTES;
use super::workload::{Order, Streaming, Workload};
use crate::machine::{Machine, PAGE_REACH};
use crate::schedule::Schedule;

/// Bytes of a cache line.
const LINE: f64 = LINE_BYTES as f64;
/// Bytes of a memory page. The hardware prefetcher does not prefetch beyond the end of a page.
const PAGE: f64 = PAGE_BYTES as f64;
/// Bytes of a vector in the loops over rows.
const VECTOR: f64 = 32.0;

/// The input of the cost model: the sizes of a workload as floats, and estimates from a sample of
/// its destinations. The fields about partitions and strands depend on the number of workers.
#[derive(Debug)]
pub(super) struct Load<'a, 'w> {
    work: &'a Workload<'w>,
    tuples: f64,
    repetitions: f64,
    /// Bytes of an element, and bytes of the window of one tuple.
    element: f64,
    window: f64,
    /// Number of runs of a window.
    runs: f64,
    /// Fraction of the tuples whose destination number is not the previous tuple's number plus one.
    /// The windows of such a tuple and of the previous tuple are not joined into one contiguous
    /// window.
    breaks: f64,
    /// Bytes that a call out of place copies from data to the output. 0 in place.
    copied: f64,
    /// Exclusive upper bound of the destination numbers, and bytes of the region over which the
    /// windows of all these numbers are spread.
    slices: f64,
    region: f64,
    /// Estimated number of distinct destinations, and the bytes of the cache lines of all their
    /// windows.
    distinct: f64,
    destinations: f64,
    /// Fractions of the tuples whose destination is equal, or close, to the destination of the next
    /// tuple.
    neighbours: Neighbours,
    /// Largest fraction of the sampled tuples with one destination, and with destinations in one
    /// partition.
    largest_group: f64,
    largest_partition: f64,
    /// Number of partitions of the output.
    partitions: f64,
    /// Whether the list has at least one strand per worker. Strands share no destination, whatever
    /// the indices. The schedule by tuple then detects no duplicates.
    has_strands: bool,
}

#[expect(clippy::cast_precision_loss, reason = "estimates")]
impl<'a, 'w> Load<'a, 'w> {
    /// Returns the load of `work` for `parts` workers.
    pub(super) fn new(work: &'a Workload<'w>, parts: usize) -> Self {
        let (sample, shift) = (work.sample(), partition_shift(work, parts));
        let distinct = work.distinct();
        let region = work.region_bytes as f64;
        let tuples = work.tuples as f64;
        Self {
            work,
            tuples,
            repetitions: work.repetitions as f64,
            element: work.element_bytes as f64,
            window: work.window_bytes() as f64,
            runs: work.runs as f64,
            breaks: work.breaks as f64 / tuples.max(1.0),
            copied: work.copied_bytes as f64,
            slices: work.slices as f64,
            region,
            distinct,
            destinations: (distinct * written_bytes(work)).min(region),
            neighbours: sample.neighbours,
            largest_group: sample.largest_fraction(0),
            largest_partition: sample.largest_fraction(shift),
            partitions: partitions(work.slices, shift) as f64,
            has_strands: work.strands >= parts,
        }
    }

    fn is_ordered(&self) -> bool {
        self.work.order != Order::Unordered
    }

    fn is_increasing(&self) -> bool {
        self.work.order == Order::Increasing
    }

    fn is_kept(&self) -> bool {
        self.work.context.is_kept
    }

    /// Whether windows are single elements. The model assumes that the schedule by partition then
    /// moves values instead of positions with the tuples.
    fn is_single(&self) -> bool {
        self.work.window_elements == 1
    }

    /// Whether the schedule by last write writes slices with streaming stores.
    fn streams_slices(&self) -> bool {
        let work = self.work;
        if !work.in_place {
            return work.streams(work.copied_bytes);
        }
        let written = self.distinct * self.repetitions * written_bytes(work);
        work.window_bytes() >= STREAMED_WINDOW_BYTES
            && written >= work.context.variants.stream_bytes as f64
    }
}

/// Estimates the bytes that writing one window moves: the bytes of the window, but at least one
/// cache line. Larger windows are not rounded up to whole cache lines.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn written_bytes(work: &Workload<'_>) -> f64 {
    work.window_bytes().max(LINE_BYTES) as f64
}

/// Predicted nanoseconds of a call or a step: the elapsed time, and the CPU time of all workers
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) time: f64,
    pub(super) cpu: f64,
}

impl Cost {
    /// Returns the cost of a step that takes `time` nanoseconds on each of `workers` workers.
    fn new(time: f64, workers: f64) -> Self {
        let cpu = time * workers;
        Self { time, cpu }
    }
}

/// Time of one worker in nanoseconds: for instructions, and for moving cache lines.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerTime {
    instructions: f64,
    memory: f64,
}

impl WorkerTime {
    fn all(self) -> f64 {
        self.instructions + self.memory
    }

    fn times(self, factor: f64) -> Self {
        Self {
            instructions: self.instructions * factor,
            memory: self.memory * factor,
        }
    }
}

impl std::ops::Add for WorkerTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            instructions: self.instructions + other.instructions,
            memory: self.memory + other.memory,
        }
    }
}

/// One pass of one worker over some tuples. For each tuple, the worker reads a window of the
/// updates and writes the window of the destination.
#[derive(Clone, Copy, Debug)]
struct Walk {
    tuples: f64,
    /// Bytes of a window.
    window: f64,
    /// Bytes of the written cache lines, of the region over which they are spread, and of the
    /// updates that are read.
    destinations: f64,
    region: f64,
    updates: f64,
    /// Fraction of the tuples that are the first tuple of their destination in the list.
    first_fraction: f64,
    /// Bytes that the copy of data reads plus bytes that it writes, just before the walk.
    copied: f64,
    /// Number of workers that share the last-level cache and access separate bytes.
    sharers: f64,
    /// Whether the walk reads the positions of its tuples from a list.
    is_listed: bool,
    /// Whether the walk writes windows with streaming stores.
    is_streamed: bool,
}

/// The cost model for one load, one machine and one number of workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model<'a, 'w> {
    load: &'a Load<'a, 'w>,
    machine: &'a Machine,
    /// Number of workers that a call may use. All of them copy data before the first update.
    workers: f64,
    /// Number of workers that the division of the schedule gives work to, at most `workers`.
    busy: f64,
}

/// Returns `factor` if `applies` is true, else 1.
fn factor_if(applies: bool, factor: f64) -> f64 {
    if applies { factor } else { 1.0 }
}

/// Returns `term` if `applies` is true, else 0.
fn term_if(applies: bool, term: f64) -> f64 {
    if applies { term } else { 0.0 }
}

/// Estimates the mean number of cache lines that `bytes` contiguous bytes touch, at least 1.
fn lines(bytes: f64) -> f64 {
    let crosses = term_if(bytes % LINE != 0.0, 0.5);
    (bytes / LINE + crosses).max(1.0)
}

impl<'a, 'w> Model<'a, 'w> {
    pub(super) fn new(load: &'a Load<'a, 'w>, machine: &'a Machine, workers: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a small number of workers")]
        let workers = workers.max(1) as f64;
        Self {
            load,
            machine,
            workers,
            busy: workers,
        }
    }

    /// Returns the model for a schedule that divides the call into `tasks` tasks. If there are
    /// fewer tasks than workers, the other workers have no work.
    pub(super) fn with_tasks(self, tasks: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a small number of tasks")]
        let busy = self.workers.min(tasks.max(1) as f64);
        Self { busy, ..self }
    }

    /// Returns the predicted cost of the call with `schedule`, which can run the call.
    pub(super) fn cost(&self, schedule: Schedule) -> Cost {
        match schedule {
            Schedule::Serial => self.serial(),
            Schedule::ByBatch => self.by_batch(),
            Schedule::ByTuple => self.by_tuple(),
            Schedule::LastWrite => self.last_write(),
            Schedule::ByColumn => self.by_column(),
            Schedule::ByDestination => self.by_destination(),
            Schedule::ByPartition => self.by_partition(),
            Schedule::Grouped => self.grouped(),
            Schedule::Private => self.private(),
        }
    }

    /// Returns the mean nanoseconds per cache line if a worker accesses `bytes` bytes again and
    /// again.
    ///
    /// Each cache level holds the bytes that fit in it, except the bytes that an earlier level
    /// holds. Memory holds the rest. `rates` has the nanoseconds per cache line for each level.
    /// `sharers` workers share the last-level cache and access separate bytes.
    fn line_cost(&self, bytes: f64, sharers: f64, rates: [f64; 4]) -> f64 {
        let mut below = 0.0;
        let mut sum = 0.0;
        for (rate, level) in rates.into_iter().zip(self.machine.levels(sharers)) {
            let held = (level / bytes.max(1.0)).clamp(below, 1.0);
            sum += rate * (held - below);
            below = held;
        }
        sum
    }

    /// Returns the mean nanoseconds per cache line in random order, with misses of the translation
    /// buffer (TLB). `bytes` and `sharers` are as in [`Self::line_cost`]. The cache lines are
    /// spread over a region of `region` bytes.
    fn random_line_cost(&self, bytes: f64, sharers: f64, region: f64) -> f64 {
        let rates = &self.machine.rates;
        let beyond = |reach: f64| 1.0 - (reach / region.max(1.0)).min(1.0);
        let [near, far] = rates.page_walk;
        self.line_cost(bytes, sharers, rates.random)
            + near * beyond(PAGE_REACH)
            + far * beyond(self.machine.page_table_reach())
    }

    /// Returns the ratio for the costs per tuple of lists, of the schedule by destination and of the
    /// schedule by partition.
    fn tuple_factor(&self) -> f64 {
        factor_if(self.load.is_single(), self.machine.rates.single_tuple)
    }

    /// Returns the nanoseconds of reading `rows` rows of `window` bytes at random positions in
    /// updates of `bytes` bytes. The worker knows the positions well before it reads the rows.
    fn random_rows_cost(&self, rows: f64, window: f64, bytes: f64) -> f64 {
        let next = self.machine.rates.next_line * (lines(window) - 1.0);
        rows * self.random_line_cost(bytes, 1.0, bytes) * (1.0 + next)
    }

    /// Returns the walk over all tuples of one repetition, in the order of the list.
    fn walk(&self) -> Walk {
        let load = self.load;
        Walk {
            tuples: load.tuples,
            window: load.window,
            destinations: load.destinations,
            region: load.region,
            updates: load.tuples * load.window,
            first_fraction: (load.distinct / load.tuples.max(1.0)).min(1.0),
            copied: 2.0 * load.copied / load.repetitions.max(1.0),
            sharers: 1.0,
            is_listed: false,
            is_streamed: load.work.streaming() != Streaming::Never,
        }
    }

    /// Returns the time that one worker needs for `walk`.
    fn walk_time(&self, walk: Walk) -> WorkerTime {
        let (load, rates) = (self.load, &self.machine.rates);
        let ordered_part = load.neighbours.in_page;
        let others = 1.0 - ordered_part;
        // Mean bytes that are read or written between two writes to one destination.
        let index_bytes = 4.0 * walk.tuples;
        let reuse = walk.destinations + (walk.updates + index_bytes) * walk.first_fraction;
        // At the first write to a destination after the copy of data, a cache holds the destination
        // only if it was copied near the end of the copy.
        let first_reuse = reuse.max(walk.copied);
        let mean = |first: f64, later: f64| {
            walk.first_fraction * first + (1.0 - walk.first_fraction) * later
        };
        let ordered = mean(
            self.line_cost(first_reuse, walk.sharers, rates.ordered),
            self.line_cost(reuse, walk.sharers, rates.ordered),
        );
        let mut random = mean(
            self.random_line_cost(first_reuse, walk.sharers, walk.region),
            self.random_line_cost(reuse, walk.sharers, walk.region),
        );
        if load.is_ordered() {
            random *= rates.ascending;
        }
        if load.is_single() {
            random *= rates.single_line;
        }
        let new_line = factor_if(walk.window < LINE, 1.0 - load.neighbours.in_line);
        let first = new_line * (ordered_part * ordered + others * random);
        let next = ordered_part * ordered
            + others * (ordered + (random - ordered).max(0.0) * rates.next_line);
        let streamed = factor_if(walk.is_streamed, rates.streamed);
        let written = streamed * walk.tuples * (first + (lines(walk.window) - 1.0) * next);
        let working_set = walk.updates + walk.destinations;
        let read = walk.updates / LINE * self.line_cost(working_set, walk.sharers, rates.read);
        let listed = walk.tuples * rates.listed * self.tuple_factor();
        let listed = term_if(walk.is_listed, listed);
        let is_joined = load.work.joins && !walk.is_listed;
        let each = if is_joined {
            rates.joined + load.breaks * rates.joined_run
        } else if load.is_single() && !walk.is_listed {
            rates.element
        } else {
            rates.row + (load.runs - 1.0) * rates.run
        };
        let combined = if load.work.replaces {
            walk.window / VECTOR * rates.vector * rates.moved
        } else {
            self.combined(walk.window, is_joined)
        };
        let waits = term_if(
            !load.work.replaces && !is_joined,
            load.neighbours.same * rates.chain,
        );
        WorkerTime {
            instructions: walk.tuples * (each + waits + combined),
            memory: written + read + listed,
        }
    }

    /// Returns the nanoseconds of combining the elements of one window with the output: whole
    /// vectors, then the remaining elements one by one. Joined windows count as having no remaining
    /// elements.
    fn combined(&self, window: f64, is_joined: bool) -> f64 {
        let (load, rates) = (self.load, &self.machine.rates);
        let (vector, element) = if load.work.is_heavy {
            (rates.vector * rates.heavy, rates.heavy_element)
        } else {
            (rates.vector, rates.last_element)
        };
        if is_joined {
            return window / VECTOR * vector;
        }
        let vectors = (window / VECTOR).floor();
        vectors * vector + (window - vectors * VECTOR) / load.element * element
    }

    /// Returns the cost of work that is split among the busy workers. One worker alone would need the
    /// time `spent`. The busiest worker gets at least the fraction `busiest` of the work.
    fn shared(&self, spent: WorkerTime, busiest: f64) -> Cost {
        let alone = spent.all();
        let (speed, memory_speed) = self.speedups();
        let even = spent.instructions / speed + spent.memory / memory_speed;
        Cost {
            time: even.max(alone * busiest),
            cpu: even.max(alone * busiest).max(alone),
        }
    }

    /// Returns how many times as fast as one worker all busy workers together are: for
    /// instructions, and for memory.
    fn speedups(&self) -> (f64, f64) {
        let rates = &self.machine.rates;
        let speed = 1.0 + (self.busy - 1.0) * rates.parallel;
        (speed, speed.min(rates.memory_workers.max(1.0)))
    }

    /// Returns the cost of work that every busy worker does in full, at the same time. A worker that
    /// works alone needs the time `spent`.
    fn replicated(&self, spent: WorkerTime) -> Cost {
        let (speed, memory_speed) = self.speedups();
        let (slower, memory_slower) = (self.busy / speed, self.busy / memory_speed);
        let time = spent.instructions * slower + spent.memory * memory_slower;
        Cost::new(time, self.busy)
    }

    /// Returns the cost of starting tasks on all busy workers and waiting for the end of all tasks.
    fn barrier(&self) -> Cost {
        let wake = term_if(self.busy > 1.0, self.machine.rates.wake);
        Cost::new(wake, self.busy)
    }

    /// Returns the time that one worker needs to copy `bytes` bytes of data.
    fn copy(&self, bytes: f64, is_streamed: bool) -> WorkerTime {
        let rates = &self.machine.rates;
        let [_, second, last, _] = self.machine.levels(1.0);
        let level = match 2.0 * self.load.copied {
            touched if touched < second => 0,
            touched if touched < last => 1,
            _ => 2,
        };
        WorkerTime {
            instructions: 0.0,
            memory: bytes / LINE * rates.copied[level] * factor_if(is_streamed, rates.streamed),
        }
    }

    /// Returns the cost of copying all data before the tasks begin, on all workers. The cost is 0 in
    /// place.
    fn copy_before(&self) -> Cost {
        if self.load.work.in_place {
            return Cost::default();
        }
        let copy = self.copy(self.load.copied, self.load.work.is_sparse());
        let all = Self {
            busy: self.workers,
            ..*self
        };
        all.shared(copy, 0.0) + all.barrier()
    }

    /// Returns the time of a copy in pieces, divided by the time of one copy of all data.
    fn pieces_factor(&self) -> f64 {
        factor_if(
            self.load.work.context.is_new,
            self.machine.rates.new_in_pieces,
        )
    }

    fn serial(&self) -> Cost {
        let spent = self.walk_time(self.walk()).times(self.load.repetitions);
        if self.load.work.copies_much() && self.workers > 1.0 {
            return self.copy_before() + Cost::new(spent.all(), 1.0);
        }
        let copy = self.copy(self.load.copied, self.load.work.is_sparse());
        Cost::new((copy + spent).all(), 1.0)
    }

    /// A repetition is not divided. The busiest worker has the number of repetitions per busy
    /// worker, rounded up.
    fn by_batch(&self) -> Cost {
        let repetitions = self.load.repetitions.max(1.0);
        let spent = self.walk_time(self.walk()).times(repetitions);
        let busiest = (repetitions / self.busy).ceil() / repetitions;
        self.barrier() + self.shared(spent + self.copy(self.load.copied, false), busiest)
    }

    /// Returns the cost of detecting duplicates in the schedule by tuple. The cost is 0 if the
    /// schedule does not have to detect them.
    fn detection(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        if load.is_kept() || load.work.known_distinct || load.is_ordered() || load.has_strands {
            return Cost::default();
        }
        let bits = load.slices / 8.0;
        let each = if load.work.looks_by_sort {
            rates.sort
        } else {
            rates.look + rates.look_line * self.random_line_cost(bits, 1.0, bits)
        };
        Cost::new(load.tuples * each, 1.0)
    }

    fn by_tuple(&self) -> Cost {
        let load = self.load;
        let spent = self.walk_time(self.walk()).times(load.repetitions);
        let busiest = term_if(
            load.is_ordered() && !load.is_increasing(),
            load.largest_group,
        );
        self.detection() + self.barrier() + self.copy_before() + self.shared(spent, busiest)
    }

    /// Each worker reads a part of every row of the updates. The hardware prefetcher restarts at
    /// each part.
    fn by_column(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        let walk = self.walk();
        let part = Walk {
            window: (walk.window / self.busy).max(1.0),
            destinations: walk.destinations / self.busy,
            updates: walk.updates / self.busy,
            sharers: self.busy,
            ..walk
        };
        let restart = self.line_cost(walk.updates, 1.0, rates.restart);
        let mut each = self.walk_time(part);
        each.memory += walk.tuples * restart;
        let each = each.times(load.repetitions);
        self.barrier() + self.copy_before() + self.replicated(each)
    }

    /// Each worker reads the destination numbers of all tuples. If a destination is frequent, one
    /// worker has more tuples than the others. When the others have finished, this worker has the
    /// whole memory bandwidth.
    fn by_destination(&self) -> Cost {
        let load = self.load;
        let each = self.range_time(1.0 / self.busy);
        let busiest = self.range_time(load.largest_group.max(1.0 / self.busy));
        let cost = self.replicated(each.times(load.repetitions));
        let slowest = Cost {
            time: cost.time.max(busiest.times(load.repetitions).all()),
            ..cost
        };
        self.barrier() + self.shared(self.copy(load.copied, false), 0.0) + slowest
    }

    /// Returns the time of a worker whose range of destinations has the fraction `part` of the
    /// tuples.
    fn range_time(&self, part: f64) -> WorkerTime {
        let (rates, walk) = (&self.machine.rates, self.walk());
        let own = Walk {
            tuples: walk.tuples * part,
            destinations: walk.destinations / self.busy,
            copied: walk.copied / self.busy,
            updates: walk.updates * part,
            sharers: self.busy,
            is_listed: true,
            ..walk
        };
        let mut spent = self.walk_time(own);
        let filtered = walk.tuples * rates.filtered + own.tuples * rates.kept;
        spent.instructions += filtered * self.tuple_factor();
        // A worker with half of the tuples reads about every second row of the updates. Reading
        // every second row costs no more per row than reading all rows in order. With many workers,
        // the rows of a worker are as far apart as the rows of a partition.
        let apart = (1.0 - 2.0 * part).max(0.0);
        spent.memory += apart * self.spread_rows_cost(own.tuples);
        spent
    }

    fn by_partition(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        let walk = self.walk();
        let partitions = load.partitions;
        let values = factor_if(load.is_single(), load.window / 4.0);
        let moved = rates.partition_move + rates.partition_value * values;
        let prepared = match (load.is_kept(), load.is_single()) {
            (false, _) => rates.partition_count + moved,
            (true, true) => moved * rates.values_again,
            (true, false) => 0.0,
        };
        let prepared = WorkerTime {
            instructions: walk.tuples * prepared * self.tuple_factor()
                + partitions * rates.partition,
            memory: 0.0,
        };
        let mut spent = self.walk_time(Walk {
            is_streamed: false,
            destinations: walk.destinations / partitions,
            region: walk.region / partitions,
            copied: walk.copied / partitions,
            is_listed: true,
            ..walk
        });
        // The rows of a partition are spread over the updates. In a very large partition, rows are
        // on average less than a memory page apart, and reading them has no additional cost.
        let largest = load.largest_partition;
        let dense = term_if(walk.window < largest * PAGE, largest);
        spent.memory += (1.0 - dense) * self.spread_rows_cost(walk.tuples);
        let busiest = if load.is_ordered() {
            load.largest_group
        } else {
            load.largest_group.max(load.largest_partition)
        };
        // A one-shot call counts tuples, moves them and applies them, in three parallel steps. A
        // call with a kept plan moves the values of single elements and applies them, or only
        // applies windows.
        let preparing = match (load.is_kept(), load.is_single()) {
            (false, _) => self.barrier() + self.barrier(),
            (true, true) => self.barrier(),
            (true, false) => Cost::default(),
        };
        // While one worker applies the largest partition, the other workers copy data. `busiest`
        // becomes a fraction of applying and copying together.
        let applied = spent.times(load.repetitions);
        let copied = self.copy(load.copied, false).times(self.pieces_factor());
        let busiest = busiest * applied.all() / (applied + copied).all().max(1.0);
        preparing
            + self.barrier()
            + self.shared(prepared, 0.0)
            + self.shared(applied + copied, busiest)
    }

    /// Returns the nanoseconds that reading the rows of `tuples` tuples costs in addition to
    /// reading in order, because the rows are spread over the updates.
    fn spread_rows_cost(&self, tuples: f64) -> f64 {
        let (load, walk) = (self.load, self.walk());
        if load.is_single() || load.neighbours.in_page >= 0.5 {
            return 0.0;
        }
        self.random_rows_cost(tuples, walk.window, walk.updates) * self.machine.rates.partition_rows
    }

    /// Returns the cost of sorting tuples by destination. The cost is 0 for a kept plan, which
    /// sorts once, and for increasing destinations.
    fn sorting(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        let each = match (load.is_kept() || load.is_increasing(), load.is_ordered()) {
            (true, _) => 0.0,
            (false, true) => rates.sort_ordered,
            (false, false) => rates.sort,
        };
        Cost::new(load.tuples * each, 1.0)
    }

    /// Out of place, this schedule copies only the slices that no update replaces.
    fn last_write(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        let rows = load.distinct.min(load.tuples);
        let walk = Walk {
            tuples: rows,
            updates: rows * load.window,
            first_fraction: 1.0,
            copied: 0.0,
            is_listed: true,
            ..self.walk()
        };
        let mut spent = self.walk_time(Walk {
            is_streamed: load.work.in_place && load.streams_slices(),
            ..walk
        });
        spent.instructions += rows * rates.last_write;
        if !load.is_ordered() && load.neighbours.in_page < 0.5 {
            let all = load.tuples * load.window;
            spent.memory += self.random_rows_cost(rows, load.window, all) * rates.last_write_rows;
        }
        if !load.work.in_place {
            spent.instructions += rows * rates.slice;
        }
        let moved = spent.times(load.repetitions);
        let kept = (load.copied - load.repetitions * rows * load.window).max(0.0);
        let copy = self.copy(kept, load.streams_slices());
        let copy = copy.times(self.pieces_factor());
        self.sorting() + self.barrier() + self.shared(moved + copy, 0.0)
    }

    fn grouped(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        let updates = load.tuples * load.window;
        let read = if load.is_ordered() || load.neighbours.in_page >= 0.5 {
            updates / LINE * self.line_cost(updates, 1.0, rates.read)
        } else {
            rates.group_rows * self.random_rows_cost(load.tuples, load.window, updates)
        };
        let heavy = factor_if(load.work.is_heavy, rates.group_heavy);
        let vectors = load.window / VECTOR * rates.vector * rates.group_vector * heavy;
        let spent = WorkerTime {
            instructions: load.tuples * (rates.grouped * load.runs + vectors)
                + load.distinct * rates.group * load.runs,
            memory: read,
        };
        let spent = spent.times(load.repetitions);
        self.sorting()
            + self.barrier()
            + self.copy_before()
            + self.shared(spent, load.largest_group)
    }

    fn private(&self) -> Cost {
        let (load, rates) = (self.load, &self.machine.rates);
        let spent = self.walk_time(self.walk()).times(load.repetitions);
        let vectors = load.region / VECTOR * load.repetitions;
        // Each worker clears its private copy. After the walk, all workers merge all private
        // copies.
        let merged = Cost::new(vectors * rates.merged, self.busy);
        let barriers = self.barrier() + self.barrier();
        barriers + self.copy_before() + self.shared(spent, 0.0) + merged
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            time: self.time + other.time,
            cpu: self.cpu + other.cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Model};
    use crate::exec::sample::Neighbours;
    use crate::exec::workload::{Order, Workload, fixtures};
    use crate::machine::{Machine, Vendor};
    use crate::schedule::Schedule;

    /// A load with tuples that are spread evenly over all slices.
    fn even<'a, 'w>(work: &'a Workload<'w>) -> Load<'a, 'w> {
        #[expect(clippy::cast_precision_loss, reason = "a test")]
        let slices = work.slices as f64;
        let load = Load::new(work, 2);
        Load {
            distinct: slices,
            destinations: slices * load.window.max(64.0),
            neighbours: Neighbours::default(),
            largest_group: 1.0 / 256.0,
            largest_partition: 0.02,
            partitions: 83.0,
            ..load
        }
    }

    /// Calls `check` with several kinds of loads. `is_kept`: whether the loads are of a kept plan.
    fn each_load(is_kept: bool, check: &mut dyn FnMut(&Load<'_, '_>)) {
        let spread = &fixtures::spread();
        let sums = || {
            let mut work = fixtures::sums(spread);
            work.context.is_kept = is_kept;
            work
        };
        let out_of_place = || Workload {
            in_place: false,
            copied_bytes: 169_343 * 256,
            ..sums()
        };
        let nothing = Workload {
            tuples: 0,
            breaks: 0,
            ..out_of_place()
        };
        let elements = Workload {
            window_elements: 1,
            columns: 1,
            region_bytes: 4 * sums().slices,
            ..sums()
        };
        let to_one_place = Workload {
            order: Order::Ascending,
            ..sums()
        };
        let vast = Workload {
            tuples: 1 << 60,
            repetitions: 1 << 60,
            slices: 1 << 60,
            region_bytes: u64::MAX,
            ..sums()
        };
        for work in [&sums(), &out_of_place(), &elements, &vast] {
            check(&even(work));
        }
        check(&Load {
            distinct: 1.0,
            destinations: 0.0,
            ..even(&nothing)
        });
        check(&Load {
            distinct: 1.0,
            destinations: 256.0,
            neighbours: Neighbours {
                same: 1.0,
                ..Neighbours::default()
            },
            largest_group: 1.0,
            largest_partition: 1.0,
            ..even(&to_one_place)
        });
    }

    fn server() -> Machine {
        Machine::of(Vendor::Intel, [32 << 10, 1 << 20, 32 << 20])
    }

    #[test]
    fn costs_can_be_compared() {
        for machine in [server(), Machine::of(Vendor::Amd, [0, 0, 0])] {
            each_load(false, &mut |load| {
                for workers in [1, 2, 16, 1024] {
                    for schedule in Schedule::ALL {
                        let cost = Model::new(load, &machine, workers).cost(schedule);
                        let what = format!("{schedule}, {workers}: {cost:?} of {load:?}");
                        assert!(cost.time.is_finite() && cost.time >= 0.0, "{what}");
                        assert!(cost.cpu.is_finite() && cost.cpu >= cost.time, "{what}");
                    }
                }
            });
        }
    }

    #[test]
    fn a_kept_plan_pays_for_its_preparation_once() {
        let machine = server();
        let times = |is_kept| {
            let mut times = Vec::new();
            each_load(is_kept, &mut |load| {
                let time = |schedule| Model::new(load, &machine, 2).cost(schedule).time;
                times.push(Schedule::ALL.map(time));
            });
            times
        };
        let (once, kept) = (times(false), times(true));
        for (once, kept) in once.iter().zip(&kept) {
            for ((schedule, once), kept) in Schedule::ALL.into_iter().zip(once).zip(kept) {
                assert!(kept <= once, "{schedule}: {kept} > {once}");
            }
        }
        let position = |wanted| Schedule::ALL.iter().position(|&other| other == wanted);
        for schedule in [Schedule::Grouped, Schedule::LastWrite, Schedule::ByTuple] {
            let at = position(schedule).expect("a schedule of `ALL`");
            let saved = once[0][at] - kept[0][at];
            assert!(
                saved > 1e6,
                "{schedule}: kept plans save a pass over a million tuples"
            );
        }
    }

    #[test]
    fn work_is_divided_evenly_except_for_the_largest_part() {
        let (machine, spread) = (server(), &fixtures::spread());
        let mut work = fixtures::sums(spread);
        work.context.is_kept = true;
        let time = |most, workers| {
            let load = Load {
                largest_partition: most,
                ..even(&work)
            };
            let model = Model::new(&load, &machine, workers);
            model.cost(Schedule::ByPartition).time
        };
        assert!(
            time(0.02, 2) < 0.6 * time(0.02, 1),
            "two workers need about half of the time"
        );
        assert!(
            time(0.9, 2) > 0.8 * time(0.9, 1),
            "one worker has most of the work"
        );
    }

    /// Two repetitions keep two of sixteen workers busy. If four workers have five repetitions, one
    /// worker has two of them.
    #[test]
    fn repetitions_are_not_divided() {
        let (machine, spread) = (server(), &fixtures::spread());
        let time = |repetitions: usize, workers| {
            let work = Workload {
                repetitions,
                ..fixtures::sums(spread)
            };
            let load = even(&work);
            let model = Model::new(&load, &machine, workers);
            let model = model.with_tasks(workers.min(repetitions));
            model.cost(Schedule::ByBatch).time
        };
        assert_eq!(time(2, 16), time(2, 2), "fourteen workers have no work");
        let [even, uneven] = [4, 5].map(|repetitions| time(repetitions, 4));
        assert!(uneven > 1.5 * even, "one worker has twice the work");
    }

    #[test]
    fn workers_that_all_read_all_tuples_gain_less_with_their_number() {
        let (machine, spread) = (server(), &fixtures::spread());
        let work = fixtures::sums(spread);
        let of = |schedule, workers, most| {
            let load = Load {
                largest_group: most,
                ..self::even(&work)
            };
            Model::new(&load, &machine, workers).cost(schedule)
        };
        let even = |schedule, workers| of(schedule, workers, 1e-4).time;
        let (destination, partition) = (Schedule::ByDestination, Schedule::ByPartition);
        assert!(even(destination, 2) < even(partition, 2), "two workers");
        assert!(even(destination, 16) > even(partition, 16), "sixteen");
        // All workers wait for the worker whose range has half of the tuples. The predicted CPU
        // time does not change.
        let (frequent, even) = (of(destination, 16, 0.5), of(destination, 16, 1e-4));
        assert!(frequent.time > 1.5 * even.time, "one worker has more work");
        assert_eq!(
            frequent.cpu, even.cpu,
            "the other workers have the same work"
        );
    }

    /// 165 MiB of rows fit in a last-level cache of 480 MiB, but not in one of 32 MiB (`server`).
    #[test]
    fn a_larger_cache_takes_no_longer() {
        let large = Machine::of(Vendor::Intel, [32 << 10, 1 << 20, 480 << 20]);
        let spread = &fixtures::spread();
        let sums = fixtures::sums(spread);
        let work = Workload {
            slices: 4 * sums.slices,
            region_bytes: 4 * sums.region_bytes,
            ..sums
        };
        let load = even(&work);
        let time = |machine| Model::new(&load, machine, 2).cost(Schedule::Serial).time;
        assert!(time(&large) < 0.9 * time(&server()));
    }
}
