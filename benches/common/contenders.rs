//! Times contenders against one another in one interleaved run: the speed of
//! a shared machine drifts, and only what runs side by side can be compared.

use std::time::Instant;

use super::inputs::SETS;

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

impl Contender<'_> {
    /// Panics unless a run on a copy of `data` gives `expected`, bit for bit.
    pub(crate) fn check(&self, target: &mut [f32], data: &[f32], set: usize, expected: &[f32]) {
        target.copy_from_slice(data);
        let allocated = (self.run)(target, set);
        let result = allocated.as_deref().unwrap_or(target);
        let wrong = (result.iter().zip(expected))
            .position(|(value, expected)| value.to_bits() != expected.to_bits());
        if let Some(at) = wrong {
            panic!(
                "{}, index set {set}: element {at} is {}, not {}",
                self.name, result[at], expected[at]
            );
        }
    }
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
