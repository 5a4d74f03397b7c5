//! Times contenders against one another in one interleaved run: the speed of
//! a shared machine drifts, and only what runs side by side can be compared.

use std::time::Instant;

use super::inputs::SETS;
use super::numbers::{Number, assert_bits};

/// Something to time: runs on a target with one index set.
pub(crate) struct Contender<'a, T = f32> {
    pub(crate) name: String,
    run: Box<Run<'a, T>>,
}

/// What a run allocates is returned, to be dropped outside the timing.
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

    /// What the run allocated, if anything, for the caller to drop.
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

/// Rows that move fewer bytes measure the call itself.
pub(crate) const CALL_BYTES: usize = 1 << 20;

/// Calls of a sample of some milliseconds, about, each of which moves `bytes`: at most
/// `most`.
pub(crate) fn calls_a_sample(bytes: usize, most: u32) -> u32 {
    const SAMPLE_BYTES: usize = 16 << 20;
    let calls = u32::try_from(SAMPLE_BYTES / bytes.max(1));
    calls.unwrap_or(most).clamp(1, most)
}

/// Rounds over all contenders, every round with the next index set and
/// beginning with the next contender, so that none always follows the same.
/// Each sample is of `calls` calls.
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
    /// Of at least one sample.
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self {
            min: samples[0],
            median: samples[samples.len() / 2],
        }
    }
}
