//! What lines take here, beside what they take where the rates are from.
//!
//! Knows a clock and memory of its own. Knows nothing of calls.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::Rates;
use crate::memory::zeroed;

/// Bytes of a line, in words of 8.
const LINE_WORDS: usize = 8;

/// Most bytes that are gone through: to get 64 MiB from the system takes some 10
/// milliseconds. Caches that hold as much hide what memory takes.
const MOST_BYTES: u64 = 64 << 20;

/// Time for one kind of line in one level, three rounds at least; and most lines of one
/// round.
const ENOUGH: Duration = Duration::from_micros(1000);
const ROUNDS: usize = 3;
const MOST_LINES: usize = 1 << 16;

/// Nanoseconds a line in the first, second and last cache and in memory: read in order,
/// written in order, written in no order, copied.
#[derive(Clone, Copy, Debug)]
struct Lines {
    read: [f64; 4],
    ordered: [f64; 4],
    random: [f64; 4],
    copied: [f64; 4],
}

/// Of the machine that the rates were fitted to, an Intel Xeon (Skylake) at 2.5 GHz.
const REFERENCE: Lines = Lines {
    read: [1.1, 1.4, 5.4, 6.0],
    ordered: [1.4, 1.6, 5.9, 6.3],
    random: [1.4, 1.6, 10.0, 10.8],
    copied: [1.0, 1.4, 11.0, 12.4],
};

/// Typical rates, by what lines take here in what they take there; steps as lines
/// in the first cache. `None` without memory to measure in.
pub(super) fn rates(caches: [u64; 3]) -> Option<Rates> {
    let here = Lines::measured(caches)?;
    let mut rates = Rates::TYPICAL;
    let ratios = |here: [f64; 4], there: [f64; 4]| {
        std::array::from_fn::<f64, 4, _>(|level| here[level] / there[level])
    };
    scale(&mut rates.read, ratios(here.read, REFERENCE.read));
    scale(&mut rates.ordered, ratios(here.ordered, REFERENCE.ordered));
    let random = ratios(here.random, REFERENCE.random);
    scale(&mut rates.random, random);
    scale(&mut rates.restart, random);
    let [_, second, last, memory] = ratios(here.copied, REFERENCE.copied);
    for (rate, ratio) in rates.copied.iter_mut().zip([second, last, memory]) {
        *rate *= ratio;
    }
    for rate in rates.steps_mut() {
        *rate *= random[0];
    }
    Some(rates)
}

fn scale(rates: &mut [f64; 4], ratios: [f64; 4]) {
    for (rate, ratio) in rates.iter_mut().zip(ratios) {
        *rate *= ratio;
    }
}

impl Lines {
    fn measured(caches: [u64; 3]) -> Option<Self> {
        let [first, second, last] = caches;
        let beyond = last.saturating_mul(2).min(MOST_BYTES);
        let sizes = [first / 2, second / 2, (last / 2).min(beyond), beyond];
        let words = |bytes: u64| usize::try_from(bytes / 8).unwrap_or(0).max(2 * LINE_WORDS);
        let mut memory =
            zeroed::<u64>(words(beyond).max(words(last / 2).min(words(MOST_BYTES)))).ok()?;
        let mut lines = Self {
            read: [0.0; 4],
            ordered: [0.0; 4],
            random: [0.0; 4],
            copied: [0.0; 4],
        };
        // From memory on, so that its pages are there when caches are measured.
        for level in (0..4).rev() {
            let words = words(sizes[level]).min(memory.len());
            let region = &mut memory[..words];
            let region_len = region.len();
            let parts = region.len().div_ceil(MOST_LINES * LINE_WORDS);
            let part = |round: usize| {
                let len = region_len / parts;
                let start = round % parts * len;
                start..start + len
            };
            lines.ordered[level] = best(|round| write_in_order(&mut region[part(round)]));
            lines.read[level] = best(|round| read_in_order(&region[part(round)]));
            lines.random[level] = best(|_| write_anywhere(region));
            lines.copied[level] = best(|round| copy_half(&mut region[part(round)]));
        }
        Some(lines)
    }
}

/// Nanoseconds a line of the fastest round.
fn best(mut round: impl FnMut(usize) -> usize) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    for number in 0.. {
        if number >= ROUNDS && begun.elapsed() >= ENOUGH {
            break;
        }
        let start = Instant::now();
        let lines = round(number);
        #[expect(clippy::cast_precision_loss, reason = "few lines")]
        let each = start.elapsed().as_secs_f64() * 1e9 / lines.max(1) as f64;
        best = best.min(each);
    }
    // A clock that does not tell.
    best.max(0.01)
}

fn read_in_order(region: &[u64]) -> usize {
    let mut sum = 0_u64;
    for &word in black_box(region) {
        sum = sum.wrapping_add(word);
    }
    black_box(sum);
    region.len() / LINE_WORDS
}

fn write_in_order(region: &mut [u64]) -> usize {
    for word in black_box(&mut *region) {
        *word = word.wrapping_add(1);
    }
    region.len() / LINE_WORDS
}

fn write_anywhere(region: &mut [u64]) -> usize {
    let lines = region.len() / LINE_WORDS;
    let touched = lines.min(MOST_LINES);
    let region = black_box(region);
    for number in 0..touched as u64 {
        // No two steps alike, and none waits for the one before.
        let mixed = (number ^ (number >> 7)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let line = (mixed * lines as u64) >> 32;
        #[expect(clippy::cast_possible_truncation, reason = "below the length")]
        let word = &mut region[line as usize * LINE_WORDS];
        *word = word.wrapping_add(1);
    }
    touched
}

fn copy_half(region: &mut [u64]) -> usize {
    let (to, from) = region.split_at_mut(region.len() / 2);
    let len = to.len().min(from.len());
    black_box(&mut *to)[..len].copy_from_slice(&black_box(&*from)[..len]);
    len / LINE_WORDS
}
