//! What lines take here, beside what they take where the rates are from.
//!
//! Knows a clock and memory of its own. Knows nothing of calls.

use std::array::from_fn;
use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{Rates, Vendor};
use crate::kernel::flush;
use crate::memory::zeroed;

/// Bytes of a line, in words of 8.
const LINE_WORDS: usize = 8;

/// Most bytes that are gone through: to get 8 MiB from the system takes 6 of the 50
/// milliseconds on a slow virtual machine.
const MOST_BYTES: u64 = 8 << 20;

/// Most words gone through by one round, 1 MiB.
const ROUND_WORDS: usize = 1 << 17;

/// Time for one kind of line in one level, and the fewest rounds of it.
const ENOUGH: Duration = Duration::from_micros(400);
const ROUNDS: usize = 3;

/// By how much a machine may differ from the one that the rates are from. What is
/// further off was disturbed.
const MOST_APART: f64 = 5.0;

/// Nanoseconds a line, for each of [`KINDS`].
type Lines = [f64; 4];

/// How lines are gone through.
const KINDS: [fn(&mut [u64]); 4] = [read_in_order, write_in_order, write_anywhere, copy_half];

/// Of the machines that the rates were fitted to, in the first, second and last cache,
/// and from memory: an Intel Xeon (Skylake) at 2.5 GHz, and an AMD EPYC (Zen 4).
const INTEL: [Lines; 4] = [
    [1.05, 1.33, 1.60, 0.41],
    [1.38, 1.63, 1.62, 0.73],
    [5.7, 5.3, 11.8, 3.9],
    [5.8, 6.1, 12.2, 6.3],
];
const AMD: [Lines; 4] = [
    [0.58, 1.14, 1.05, 0.31],
    [0.58, 1.10, 1.17, 0.57],
    [0.64, 1.11, 1.97, 0.71],
    [1.66, 1.72, 12.9, 1.65],
];

fn reference(vendor: Vendor) -> &'static [Lines; 4] {
    match vendor {
        Vendor::Amd => &AMD,
        Vendor::Intel | Vendor::Other => &INTEL,
    }
}

/// Rates that are typical of a vendor's machines, by what lines take here in what they
/// take there; steps as lines in the first cache. `None` without memory to measure in.
pub(super) fn rates(caches: [u64; 3], vendor: Vendor) -> Option<Rates> {
    lines(caches).map(|here| scaled(&here, vendor))
}

fn scaled(here: &[Lines; 4], vendor: Vendor) -> Rates {
    let there = reference(vendor);
    let [read, ordered, random, copied] = from_fn(|kind| {
        from_fn::<f64, 4, _>(|level| {
            let ratio = here[level][kind] / there[level][kind];
            ratio.clamp(MOST_APART.recip(), MOST_APART)
        })
    });
    let mut rates = Rates::of(vendor);
    scale(&mut rates.read, &read);
    scale(&mut rates.ordered, &ordered);
    scale(&mut rates.random, &random);
    scale(&mut rates.restart, &random);
    scale(&mut rates.copied, &copied[1..]);
    let core = (read[0] + ordered[0] + random[0]) / 3.0;
    for rate in rates.steps_mut() {
        *rate *= core;
    }
    rates
}

fn scale(rates: &mut [f64], ratios: &[f64]) {
    for (rate, ratio) in rates.iter_mut().zip(ratios) {
        *rate *= ratio;
    }
}

/// What they take here, in each level.
fn lines(caches: [u64; 3]) -> Option<[Lines; 4]> {
    let sizes = caches.map(|bytes| {
        let words = usize::try_from((bytes / 2).min(MOST_BYTES) / 8).unwrap_or(0);
        words.max(2 * LINE_WORDS)
    });
    let mut memory = zeroed::<u64>(sizes[2]).ok()?;
    Some(from_fn(|level| {
        // From memory comes what was flushed, wherever it was before.
        let is_flushed = level == sizes.len();
        let region = &mut memory[..sizes[level.min(2)]];
        if !is_flushed {
            write_in_order(region);
        }
        KINDS.map(|go_through| line(region, go_through, is_flushed))
    }))
}

/// Nanoseconds a line of a region takes in the fastest round.
fn line(region: &mut [u64], go_through: fn(&mut [u64]), is_flushed: bool) -> f64 {
    let len = region.len().min(ROUND_WORDS);
    let parts = region.len() / len;
    let repeated = if is_flushed { 1 } else { ROUND_WORDS / len };
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    for number in 0.. {
        if number >= ROUNDS && begun.elapsed() >= ENOUGH {
            break;
        }
        let part = &mut region[number % parts * len..][..len];
        if is_flushed {
            flush(part);
        }
        let start = Instant::now();
        for _ in 0..repeated {
            go_through(black_box(part));
        }
        #[expect(clippy::cast_precision_loss, reason = "few lines")]
        let gone_through = (repeated * len / LINE_WORDS) as f64;
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / gone_through);
    }
    best
}

fn read_in_order(part: &mut [u64]) {
    black_box(part.iter().fold(0_u64, |sum, &word| sum.wrapping_add(word)));
}

fn write_in_order(part: &mut [u64]) {
    for word in part {
        *word = word.wrapping_add(1);
    }
}

/// As many lines as there are, in no order; none waits for the one before.
fn write_anywhere(part: &mut [u64]) {
    let lines = part.len() / LINE_WORDS;
    for number in 0..lines as u64 {
        let mixed = (number ^ (number >> 7)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let word = &mut part[((mixed * lines as u64) >> 32) as usize * LINE_WORDS];
        *word = word.wrapping_add(1);
    }
}

/// A line of a copy is one that is read and one that is written, so that the half
/// counts as all.
fn copy_half(part: &mut [u64]) {
    let (to, from) = part.split_at_mut(part.len() / 2);
    let len = to.len().min(from.len());
    to[..len].copy_from_slice(&from[..len]);
}

#[cfg(test)]
mod tests {
    use super::{lines, rates, reference, scaled};
    use crate::machine::{Rates, Vendor};

    #[test]
    fn every_line_takes_time() {
        for caches in [
            [32 << 10, 1 << 20, 32 << 20],
            [1, 1, 1],
            [64, 1 << 10, 1 << 12],
        ] {
            let lines = lines(caches).expect("memory");
            let all = lines.as_flattened();
            assert!(
                all.iter().all(|&line| line > 0.0 && line.is_finite()),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn what_lines_take_scales_rates() {
        for vendor in Vendor::ALL {
            let (there, typical) = (reference(vendor), Rates::of(vendor));
            assert_eq!(scaled(there, vendor), typical);
            let slow = scaled(&there.map(|lines| lines.map(|line| 2.0 * line)), vendor);
            for ((name, slow), (_, typical)) in slow.each().zip(typical.each()) {
                let factor = match name {
                    "random" | "ordered" | "read" | "copied" | "restart" | "row" | "sort" => 2.0,
                    "wake" | "parallel" | "streamed" | "ascending" | "moved" => 1.0,
                    _ => continue,
                };
                let expected: Vec<f64> = typical.iter().map(|rate| factor * rate).collect();
                assert_eq!(slow, expected, "{name}");
            }
        }
    }

    #[test]
    fn rates_stay_near_typical_ones() {
        let vendor = Vendor::here();
        let measured = rates([32 << 10, 1 << 20, 32 << 20], vendor).expect("memory");
        for ((name, found), (_, typical)) in measured.each().zip(Rates::of(vendor).each()) {
            for (found, typical) in found.iter().zip(typical) {
                assert!(
                    (typical / 6.0..=typical * 6.0).contains(found),
                    "{name}: {found} for {typical}"
                );
            }
        }
    }
}
