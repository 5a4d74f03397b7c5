//! Contenders against one another: who is right is timed, in interleaved
//! rounds.
//!
//! Knows results and clocks; knows no runtime.

use std::error::Error;
use std::time::Instant;

use crate::common::contenders::Time;
use crate::common::inputs::{Form, SETS};

/// What a runtime returns, or the error that it reports.
pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// A call that is repeated.
pub(crate) trait Contender {
    /// Puts the data back where the call changes it, and drops what the last
    /// call allocated. Never timed.
    fn reset(&mut self);

    /// Runs the call with an index set, once.
    fn run(&mut self, set: usize) -> Fallible<()>;

    /// A copy of what the last call gave.
    fn result(&self) -> Vec<f32>;
}

/// A contender, and what its runtime names the call.
pub(crate) struct Entry<'a> {
    pub(crate) call: String,
    pub(crate) contender: Box<dyn Contender + 'a>,
}

/// A runtime.
pub(crate) trait Entrant {
    /// Its calls that compute the workload in this form, or why there is none.
    fn entries(&self, form: Form) -> Result<Vec<Entry<'_>>, &'static str>;
}

/// The fastest of the calls whose results are right for every index set, or
/// what is wrong with the last of them.
pub(crate) fn qualify<'a>(
    entries: Vec<Entry<'a>>,
    expected: &[Vec<f32>; SETS],
) -> Result<Entry<'a>, String> {
    let mut best = None;
    let mut complaint = String::new();
    for mut entry in entries {
        match trial(entry.contender.as_mut(), expected) {
            Ok(time) if best.as_ref().is_none_or(|(fastest, _)| time < *fastest) => {
                best = Some((time, entry));
            }
            Ok(_) => {}
            Err(reason) => {
                complaint = format!("{}: {reason}", entry.call);
                eprintln!("wrong: {complaint}");
            }
        }
    }
    best.map(|(_, entry)| entry).ok_or(complaint)
}

/// Checks every index set; the time of the fastest.
fn trial(contender: &mut dyn Contender, expected: &[Vec<f32>; SETS]) -> Fallible<f64> {
    let mut fastest = f64::INFINITY;
    for (set, expected) in expected.iter().enumerate() {
        fastest = fastest.min(sample(contender, set, 1)?);
        compare(&contender.result(), expected).map_err(|wrong| format!("set {set}: {wrong}"))?;
    }
    contender.reset();
    Ok(fastest)
}

/// Bit for bit: every contender applies updates in the order of the loop.
fn compare(result: &[f32], expected: &[f32]) -> Result<(), String> {
    if result.len() != expected.len() {
        return Err(format!("{} elements, not {}", result.len(), expected.len()));
    }
    let wrong = (result.iter().zip(expected))
        .position(|(value, expected)| value.to_bits() != expected.to_bits());
    wrong.map_or(Ok(()), |at| {
        let (value, expected) = (result[at], expected[at]);
        Err(format!("element {at} is {value}, not {expected}"))
    })
}

/// Rounds over all entries, every round with the next index set and beginning
/// with the next entry, so that none always follows the same.
pub(crate) fn time(entries: &mut [&mut Entry<'_>], rounds: usize, calls: u32) -> Vec<Time> {
    let mut samples = vec![Vec::with_capacity(rounds); entries.len()];
    for round in 0..rounds {
        for turn in 0..entries.len() {
            let which = (round + turn) % entries.len();
            let contender = entries[which].contender.as_mut();
            let nanoseconds = sample(contender, round % SETS, calls).expect("it has qualified");
            samples[which].push(nanoseconds);
        }
    }
    samples.into_iter().map(Time::of).collect()
}

/// Nanoseconds of a call, from a fresh start.
fn sample(contender: &mut dyn Contender, set: usize, calls: u32) -> Fallible<f64> {
    contender.reset();
    let start = Instant::now();
    for _ in 0..calls {
        contender.run(set)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls))
}
