//! Times contenders in one interleaved run. The speed of a shared machine drifts, so only
//! interleaved times can be compared.

use std::time::Instant;

use super::inputs::SETS;
use super::numbers::{Number, assert_bits};

/// A function to time. It runs on a target with one index set.
pub(crate) struct Contender<'a, T = f32> {
    pub(crate) name: String,
    run: Box<Run<'a, T>>,
}

/// Function of a contender: target and number of the index set. It returns its allocated
/// result, which is dropped outside the timing.
type Run<'a, T> = dyn Fn(&mut [T], usize) -> Option<Vec<T>> + 'a;

/// Nanoseconds of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    pub(crate) min: f64,
    pub(crate) median: f64,
}

impl<'a, T> Contender<'a, T> {
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl Fn(&mut [T], usize) -> Option<Vec<T>> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// Runs once. Returns the allocated result, if any.
    pub(crate) fn run(&self, target: &mut [T], set: usize) -> Option<Vec<T>> {
        (self.run)(target, set)
    }

    fn time(&self, target: &mut [T], set: usize, calls: u32) -> f64 {
        let start = Instant::now();
        for _ in 1..calls {
            (self.run)(target, set);
        }
        let allocated = (self.run)(target, set);
        let elapsed = start.elapsed();
        drop(allocated);
        elapsed.as_secs_f64() * 1e9 / f64::from(calls)
    }
}

impl<T: Number> Contender<'_, T> {
    /// Panics unless a run on a copy of `data` gives `expected`, bit for bit.
    pub(crate) fn check(&self, target: &mut [T], data: &[T], set: usize, expected: &[T]) {
        target.copy_from_slice(data);
        let allocated = (self.run)(target, set);
        let result = allocated.as_deref().unwrap_or(target);
        let name = &self.name;
        assert_bits(format_args!("{name}, index set {set}"), result, expected);
    }
}

/// Bytes below which a workload measures the overhead of a call.
pub(crate) const CALL_BYTES: usize = 1 << 20;

/// Returns the calls per sample, between 1 and `most`. A call moves `bytes`, and a sample moves
/// about 16 MiB.
pub(crate) fn calls_a_sample(bytes: usize, most: u32) -> u32 {
    const SAMPLE_BYTES: usize = 16 << 20;
    let calls = u32::try_from(SAMPLE_BYTES / bytes.max(1));
    calls.unwrap_or(most).clamp(1, most)
}

/// Times all contenders, interleaved, with `calls` calls per sample. Each round uses the next
/// index set. Each round also begins with the next contender, so the order changes.
pub(crate) fn time<T>(
    contenders: &[Contender<'_, T>],
    target: &mut [T],
    rounds: usize,
    calls: u32,
) -> Vec<Time> {
    let mut samples = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let which = (round + turn) % contenders.len();
            samples[which].push(contenders[which].time(target, round % SETS, calls));
        }
    }
    samples.into_iter().map(Time::of).collect()
}

impl Time {
    /// Computes the minimum and the median of at least one sample.
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self {
            min: samples[0],
            median: samples[samples.len() / 2],
        }
    }
}
