//! Measures the cost of accessing a cache line on this machine. Multiplies typical rates by the
//! ratio of this cost to the cost on a reference machine.
//!
//! The module uses a clock, and allocates the memory that it accesses. It does not know scatters or
//! gathers.

use std::array::from_fn;
use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{Rates, Vendor};
use crate::kernel::flush;
use crate::memory::zeroed;

/// Number of 8-byte words in a cache line.
const LINE_WORDS: usize = 8;

/// Maximum size, in bytes, of a measured region. On a slow virtual machine, allocating 8 MiB takes
/// 6 of the 50 milliseconds of the whole measurement.
const MAX_BYTES: u64 = 8 << 20;

/// Maximum number of 8-byte words that one round of a measurement accesses: 1 MiB.
const ROUND_WORDS: usize = 1 << 17;

/// Minimum total time of the rounds for one kind of access in one cache level or in memory.
const MIN_TIME: Duration = Duration::from_micros(400);
/// Minimum number of rounds for one kind of access in one cache level or in memory.
const MIN_ROUNDS: usize = 3;

/// Largest credible ratio of the cost of a cache line on this machine to its cost on the reference
/// machine. The smallest is its reciprocal. A ratio outside these limits is attributed to a
/// disturbed measurement, and is replaced by the nearer limit.
const MAX_RATIO: f64 = 5.0;

/// Nanoseconds per cache line, for each kind of access in [`KINDS`].
type Lines = [f64; 4];

/// Kinds of access. Each function makes about as many accesses to cache lines as the slice has
/// cache lines.
const KINDS: [fn(&mut [u64]); 4] = [read_in_order, write_in_order, write_anywhere, copy_half];

/// Costs of cache lines on the Intel reference machine, a Xeon (Skylake) at 2.5 GHz. The typical
/// rates for Intel were fitted to this machine. The four rows are for the first-level, second-level
/// and last-level cache, and for memory.
const INTEL: [Lines; 4] = [
    [1.05, 1.33, 1.60, 0.41],
    [1.38, 1.63, 1.62, 0.73],
    [5.7, 5.3, 11.8, 3.9],
    [5.8, 6.1, 12.2, 6.3],
];
/// Costs of cache lines on the AMD reference machine, an EPYC (Zen 4). The typical rates for AMD
/// were fitted to this machine. The four rows are for the first-level, second-level and last-level
/// cache, and for memory.
const AMD: [Lines; 4] = [
    [0.58, 1.14, 1.05, 0.31],
    [0.58, 1.10, 1.17, 0.57],
    [0.64, 1.11, 1.97, 0.71],
    [1.66, 1.72, 12.9, 1.65],
];

/// Returns the costs of cache lines on the reference machine of a vendor.
fn reference(vendor: Vendor) -> &'static [Lines; 4] {
    match vendor {
        Vendor::Amd => &AMD,
        Vendor::Intel | Vendor::Other => &INTEL,
    }
}

/// Measures this machine, and returns the typical [`Rates`] of `vendor` after [`scaled`] has
/// adapted them to the measured costs. `None`: the memory for the measurement could not be
/// allocated.
pub(super) fn rates(caches: [u64; 3], vendor: Vendor) -> Option<Rates> {
    lines(caches).map(|here| scaled(&here, vendor))
}

/// Returns the typical rates of `vendor`, adapted to the costs of cache lines `here`. The rates
/// `read`, `ordered`, `random`, `restart` and `copied` are multiplied by ratios of costs: the cost
/// here divided by the cost on the reference machine. Rates that are marked as `step` depend on the
/// speed of the core. They are multiplied by the mean ratio of reads, ordered writes and random
/// writes in the first-level cache. The other rates stay typical.
fn scaled(here: &[Lines; 4], vendor: Vendor) -> Rates {
    let there = reference(vendor);
    let [read, ordered, random, copied] = from_fn(|kind| {
        from_fn::<f64, 4, _>(|level| {
            let ratio = here[level][kind] / there[level][kind];
            ratio.clamp(MAX_RATIO.recip(), MAX_RATIO)
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

/// Multiplies each rate by the ratio at the same position.
fn scale(rates: &mut [f64], ratios: &[f64]) {
    for (rate, ratio) in rates.iter_mut().zip(ratios) {
        *rate *= ratio;
    }
}

/// Measures the nanoseconds per cache line on this machine, for each of the three cache levels and
/// for memory, and for each kind of access. The argument `caches` has the bytes of the cache
/// levels. Returns `None` if the memory for the measurement could not be allocated.
fn lines(caches: [u64; 3]) -> Option<[Lines; 4]> {
    let sizes = caches.map(|bytes| {
        let words = usize::try_from((bytes / 2).min(MAX_BYTES) / 8).unwrap_or(0);
        words.max(2 * LINE_WORDS)
    });
    let mut memory = zeroed::<u64>(sizes[2]).ok()?;
    Some(from_fn(|level| {
        // To measure memory, the cache lines are flushed from the caches before each round.
        let is_flushed = level == sizes.len();
        let region = &mut memory[..sizes[level.min(2)]];
        if !is_flushed {
            write_in_order(region);
        }
        KINDS.map(|access| line(region, access, is_flushed))
    }))
}

/// Measures one kind of access to a region in several rounds. Returns the nanoseconds per cache
/// line of the fastest round.
fn line(region: &mut [u64], access: fn(&mut [u64]), is_flushed: bool) -> f64 {
    let len = region.len().min(ROUND_WORDS);
    let parts = region.len() / len;
    let repeated = if is_flushed { 1 } else { ROUND_WORDS / len };
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    for number in 0.. {
        if number >= MIN_ROUNDS && begun.elapsed() >= MIN_TIME {
            break;
        }
        let part = &mut region[number % parts * len..][..len];
        if is_flushed {
            flush(part);
        }
        let start = Instant::now();
        for _ in 0..repeated {
            access(black_box(part));
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 2^14 cache lines")]
        let accessed = (repeated * len / LINE_WORDS) as f64;
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / accessed);
    }
    best
}

/// Reads all words of the slice, in order.
fn read_in_order(part: &mut [u64]) {
    black_box(part.iter().fold(0_u64, |sum, &word| sum.wrapping_add(word)));
}

/// Increments all words of the slice, in order.
fn write_in_order(part: &mut [u64]) {
    for word in part {
        *word = word.wrapping_add(1);
    }
}

/// Increments one word of a pseudorandom cache line, as often as the slice has cache lines. The
/// address of an access does not depend on earlier accesses.
fn write_anywhere(part: &mut [u64]) {
    let lines = part.len() / LINE_WORDS;
    for number in 0..lines as u64 {
        let mixed = (number ^ (number >> 7)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let word = &mut part[((mixed * lines as u64) >> 32) as usize * LINE_WORDS];
        *word = word.wrapping_add(1);
    }
}

/// Copies the second half of the slice to the first half. A copied cache line counts as two
/// accessed lines: one is read, and one is written.
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
    fn costs_are_positive() {
        for caches in [
            [32 << 10, 1 << 20, 32 << 20],
            [1, 1, 1],
            [64, 1 << 10, 1 << 12],
        ] {
            let lines = lines(caches).expect("memory for the measurement");
            let all = lines.as_flattened();
            assert!(
                all.iter().all(|&line| line > 0.0 && line.is_finite()),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn costs_scale_rates() {
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
        let measured =
            rates([32 << 10, 1 << 20, 32 << 20], vendor).expect("memory for the measurement");
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
