//! Checks contenders, and times the correct ones in interleaved rounds.
//!
//! Knows results and clocks. Knows no runtimes.

use std::error::Error;
use std::time::Instant;

use super::contenders::{CALL_BYTES, Time, calls_a_sample};
use super::inputs::{Form, Inputs, SETS};

/// Result of a runtime's function, or its error.
pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// A call that can be repeated.
pub(crate) trait Contender {
    /// Restores data that the call changes, and drops the last allocated result. Never timed.
    fn reset(&mut self);

    /// Runs the call once, with an index set.
    fn run(&mut self, set: usize) -> Fallible<()>;

    /// Returns a copy of the last result.
    fn result(&self) -> Vec<f32>;
}

/// A contender, and the runtime's name of the call.
pub(crate) struct Entry<'a> {
    pub(crate) call: String,
    pub(crate) contender: Box<dyn Contender + 'a>,
}

/// A runtime with the tensors of a workload.
pub(crate) trait Entrant {
    /// Returns the calls that compute the workload in a form, or the reason why there is none.
    fn entries(&self, form: Form) -> Result<Vec<Entry<'_>>, &'static str>;
}

/// Returns the fastest call whose results are correct for every index set. If there is none,
/// returns the error of the last call.
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

/// Runs and checks a call with every index set. Returns the minimum time.
fn trial(contender: &mut dyn Contender, expected: &[Vec<f32>; SETS]) -> Fallible<f64> {
    let mut fastest = f64::INFINITY;
    for (set, expected) in expected.iter().enumerate() {
        fastest = fastest.min(sample(contender, set, 1)?);
        compare(&contender.result(), expected).map_err(|wrong| format!("set {set}: {wrong}"))?;
    }
    contender.reset();
    Ok(fastest)
}

/// Compares results bit for bit. Every contender applies updates in the order of the loop.
fn compare(result: &[f32], expected: &[f32]) -> Result<(), String> {
    if result.len() != expected.len() {
        return Err(format!(
            "the result has {} elements; expected {}",
            result.len(),
            expected.len()
        ));
    }
    let wrong = (result.iter().zip(expected))
        .position(|(value, expected)| value.to_bits() != expected.to_bits());
    wrong.map_or(Ok(()), |at| {
        let (value, expected) = (result[at], expected[at]);
        Err(format!("element {at} is {value}; expected {expected}"))
    })
}

/// Returns the calls per sample: at most `most`, and one if a call moves much memory.
pub(crate) fn calls(inputs: &Inputs, form: Form, most: u32) -> u32 {
    match inputs.traffic(form, 0).total() {
        bytes @ ..CALL_BYTES => calls_a_sample(bytes, most),
        _ => 1,
    }
}

/// Times all entries, interleaved. Each round uses the next index set, and begins with the next
/// entry, so the order changes.
pub(crate) fn time(entries: &mut [&mut Entry<'_>], rounds: usize, calls: u32) -> Vec<Time> {
    let mut samples = vec![Vec::with_capacity(rounds); entries.len()];
    for round in 0..rounds {
        for turn in 0..entries.len() {
            let which = (round + turn) % entries.len();
            let contender = entries[which].contender.as_mut();
            let nanoseconds =
                sample(contender, round % SETS, calls).expect("a call that succeeded before");
            samples[which].push(nanoseconds);
        }
    }
    samples.into_iter().map(Time::of).collect()
}

/// Resets the contender. Returns the nanoseconds per call of `calls` calls.
fn sample(contender: &mut dyn Contender, set: usize, calls: u32) -> Fallible<f64> {
    contender.reset();
    let start = Instant::now();
    for _ in 0..calls {
        contender.run(set)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls))
}
