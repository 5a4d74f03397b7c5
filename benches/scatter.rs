//! Times several sets of calls with criterion. Most calls are compared with a reference loop, a
//! copy, or a call with other types.
//!
//! ```sh
//! cargo bench --bench scatter                    # all sets: a quarter of an hour
//! cargo bench --bench scatter -- family          # one set
//! cargo bench --bench scatter -- types/gnn_add   # some calls of one set
//! ```
//!
//! - `workloads`: every workload, compared with the fastest copy of its data.
//! - `types`: other element types and `i32` indices, compared with `f32` and `i64`.
//! - `family`: element scatters, a KV cache and a gather, compared with the reference loop.
//! - `gradients`: gradients of every reduction, one-shot and with a kept plan.
//! - `planning`: plans, compared with a loop that only reads the indices.
//!
//! Results of all sets except `planning` are checked with a sequential reference loop before
//! they are timed. Criterion prints the time of a call, and its throughput. The next line has
//! the ratio to the compared call, if there is one. The samples of both calls are interleaved,
//! because the speed of a shared machine drifts. The ratio uses the minimum times.

mod common;
#[path = "scatter/family.rs"]
mod family;
#[path = "scatter/gradients.rs"]
mod gradients;
#[path = "scatter/planning.rs"]
mod planning;
#[path = "scatter/tensors.rs"]
mod tensors;

use std::cell::Cell;
use std::time::{Duration, Instant};

use common::contenders::Time;
use common::inputs::SETS as INDEX_SETS;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};

type Set = fn(&mut Criterion);

/// The sets. The names of their calls begin with the name of the set.
const SETS: [(&str, Set); 5] = [
    ("workloads", tensors::workloads),
    ("types", tensors::types),
    ("family", family::family),
    ("gradients", gradients::gradients),
    ("planning", planning::planning),
];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(15)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    // A set that no filter names allocates no tensors.
    let is_named = |name: &str| std::env::args().any(|argument| argument.starts_with(name));
    let is_any_named = SETS.iter().any(|(name, _)| is_named(name));
    for (name, set) in SETS {
        if !is_any_named || is_named(name) {
            set(&mut criterion);
        }
    }
    criterion.final_summary();
}

pub(crate) type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// A call to time.
pub(crate) struct Call<'a> {
    name: String,
    /// Bytes or elements that one call moves.
    throughput: Option<Throughput>,
    check: Box<dyn Fn() + 'a>,
    run: Box<dyn Fn(usize) + 'a>,
    /// The call that this one is compared with.
    compared_with: Option<&'a Call<'a>>,
}

impl<'a> Call<'a> {
    /// Creates a call. `run` runs it; its argument is the number of an index set.
    pub(crate) fn new(name: impl Into<String>, run: impl Fn(usize) + 'a) -> Self {
        Self {
            name: name.into(),
            throughput: None,
            check: Box::new(|| ()),
            run: Box::new(run),
            compared_with: None,
        }
    }

    pub(crate) fn moving(mut self, throughput: Throughput) -> Self {
        self.throughput = Some(throughput);
        self
    }

    /// Sets `check`, which panics if the result of the call is wrong.
    pub(crate) fn checked(mut self, check: impl Fn() + 'a) -> Self {
        self.check = Box::new(check);
        self
    }

    /// Sets the compared call. Its samples are interleaved with those of this call.
    pub(crate) fn compared_with(mut self, other: &'a Call<'a>) -> Self {
        self.compared_with = Some(other);
        self
    }

    /// Checks the call, times it, and prints its ratio to the other call.
    pub(crate) fn bench(&self, group: &mut Group<'_>) {
        if let Some(throughput) = &self.throughput {
            group.throughput(throughput.clone());
        }
        let calls: Vec<&Call<'_>> = self.compared_with.into_iter().chain([self]).collect();
        let mut samples = vec![Vec::new(); calls.len()];
        let round = Cell::new(0);
        group.bench_function(&self.name, |bencher| {
            if round.get() == 0 {
                calls.iter().for_each(|call| (call.check)());
            }
            bencher.iter_custom(|count| {
                round.set(round.get() + 1);
                let mut last = Duration::ZERO;
                for (call, samples) in calls.iter().zip(&mut samples) {
                    last = call.time(round.get(), count);
                    samples.push(last.as_secs_f64() * 1e9 / count as f64);
                }
                last
            });
        });
        if let Some(other) = self.compared_with
            && round.get() > 1
        {
            let [other_time, time] = [0, 1].map(|at| Time::of(samples[at].clone()).min);
            self.print_ratio(time / other_time, other, other_time);
        }
    }

    /// Returns the time of `count` calls, which rotate through the index sets.
    fn time(&self, round: usize, count: u64) -> Duration {
        let start = Instant::now();
        let sets = (0..INDEX_SETS).cycle().skip(round % INDEX_SETS);
        (0..count).zip(sets).for_each(|(_, set)| (self.run)(set));
        start.elapsed()
    }

    fn print_ratio(&self, ratio: f64, other: &Self, other_time: f64) {
        let (name, ms) = (&other.name, other_time * 1e-6);
        print!("{:24}time / time of {name} ({ms:.5} ms): {ratio:.2}", "");
        if let (Some(Throughput::Bytes(bytes)), Some(Throughput::Bytes(others))) =
            (&self.throughput, &other.throughput)
        {
            let of_bytes = *bytes as f64 / *others as f64;
            let quotient = ratio / of_bytes;
            print!("; bytes / its bytes: {of_bytes:.2}");
            print!("; time per byte / its time per byte: {quotient:.2}");
        }
        println!();
    }
}
