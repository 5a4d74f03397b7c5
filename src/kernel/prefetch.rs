//! Prefetching: runs and elements are asked of memory before their turn; and, for
//! measurements, sent back to it.
//!
//! Knows addresses and jobs, and at which distance prefetching pays. Knows
//! nothing of what is done with what arrives.

#![allow(unsafe_code, reason = "prefetches addresses")]

use super::Job;

/// Which cache a line is prefetched into.
#[derive(Clone, Copy)]
pub(super) enum Level {
    First,
    /// A core waits for many more lines there at once.
    Second,
}

/// Runs are prefetched twice: so many bytes before their turn into the second
/// cache, where a core waits for many more lines at once than in the first,
/// and fewer before it into the first. In bare loops 1166243 maxima of rows of
/// 64 `f32` in 43 MB take 27 ms so on one core, and 42 ms if prefetched into the
/// first cache alone, at a distance of 16 rows; partitioned, on two cores, 16 ms
/// for 24 (Zen 4). Two thirds and 1.3 times the distance took 1.03 to 1.12 times
/// as long.
const SECOND_CACHE_DISTANCE: usize = 6 * 1024;
const FIRST_CACHE_DISTANCE: usize = 1536;

/// The same in runs, for those of so many bytes and fewer.
const FAR_RUNS: usize = SECOND_CACHE_DISTANCE / SHORT_BYTES;
const NEAR_RUNS: usize = FIRST_CACHE_DISTANCE / SHORT_BYTES;
const SHORT_BYTES: usize = 256;

/// Longer runs are left to the machine's own prefetcher: prefetching the first
/// 2 KiB of rows of 8 KiB took up to 1.17 times as long.
const PREFETCHED_BYTES: usize = 2048;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// How many runs before their turn runs are prefetched.
#[derive(Clone, Copy)]
pub(super) struct Distance {
    far: usize,
    near: usize,
}

impl Distance {
    /// For runs of so many bytes.
    #[inline(always)]
    pub(super) fn of(bytes: usize) -> Self {
        // Small calls have short runs, and no time for divisions.
        if bytes <= SHORT_BYTES {
            return Self {
                far: FAR_RUNS,
                near: NEAR_RUNS,
            };
        }
        Self {
            far: (SECOND_CACHE_DISTANCE / bytes).max(2),
            near: (FIRST_CACHE_DISTANCE / bytes).max(1),
        }
    }

    /// For a list of jobs, by the length of the first, in elements of `size`
    /// bytes.
    #[inline(always)]
    pub(super) fn of_jobs(jobs: &[Job], size: usize) -> Self {
        Self::of(jobs.first().map_or(0, |job| job.len.saturating_mul(size)))
    }

    /// Both distances, and the cache that each is for.
    #[inline(always)]
    pub(super) fn each(self) -> [(usize, Level); 2] {
        [(self.far, Level::Second), (self.near, Level::First)]
    }
}

/// Prefetches the line of `address`, which need not be valid.
#[inline(always)]
pub(super) fn prefetch<T>(address: *const T, level: Level) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch never faults.
        unsafe {
            match level {
                Level::First => _mm_prefetch::<_MM_HINT_T0>(address.cast()),
                Level::Second => _mm_prefetch::<_MM_HINT_T1>(address.cast()),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, level);
}

/// Prefetches so many bytes, which need not be valid, into the second cache.
#[inline(always)]
pub(crate) fn prefetch_bytes(address: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        prefetch(address.wrapping_add(line), Level::Second);
    }
}

/// Sends the lines of words to memory, where the machine can be told to; for
/// measurements of what memory takes.
pub(crate) fn flush(words: &[u64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        for line in words.chunks(LINE / size_of::<u64>()) {
            // SAFETY: SSE2 is part of x86-64, and the line is that of a reference.
            unsafe { _mm_clflush(line.as_ptr().cast()) };
        }
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_mfence() };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = words;
}

/// Whether runs of so many bytes are not left to the machine.
#[inline(always)]
pub(super) fn are_prefetched(bytes: usize) -> bool {
    bytes <= PREFETCHED_BYTES
}

/// How many lines a run has; none where it is left to the machine.
#[derive(Clone, Copy)]
pub(super) struct Lines(usize);

impl Lines {
    /// Of runs of so many bytes that begin so far behind the start of a line.
    #[inline(always)]
    fn new(bytes: usize, skipped: usize) -> Self {
        Self(if are_prefetched(bytes) {
            (skipped + bytes).div_ceil(LINE)
        } else {
            0
        })
    }

    /// Of rows of `len` elements at multiples of `step` from `base`: those that
    /// begin within a line may have one more. Where each begins elsewhere in
    /// its line, half a line stands for all.
    #[inline(always)]
    pub(super) fn of_rows<T>(base: *const T, step: isize, len: usize) -> Self {
        let step = step.unsigned_abs().wrapping_mul(size_of::<T>());
        let skipped = if step.is_multiple_of(LINE) {
            base.addr() % LINE
        } else {
            LINE / 2
        };
        Self::new(len.saturating_mul(size_of::<T>()), skipped)
    }

    /// Prefetches them. The run need not be valid. Four at a time: with a step
    /// of the loop for each line, this took so many instructions that sums of
    /// partitioned rows of 64 `f32` took 1.2 times as long.
    #[inline(always)]
    pub(super) fn prefetch<T>(self, run: *const T, level: Level) {
        let mut line = run.cast::<u8>();
        for _ in 0..self.0 / 4 {
            for offset in [0, LINE, 2 * LINE, 3 * LINE] {
                prefetch(line.wrapping_add(offset), level);
            }
            line = line.wrapping_add(4 * LINE);
        }
        for _ in 0..self.0 % 4 {
            prefetch(line, level);
            line = line.wrapping_add(LINE);
        }
    }
}

/// Prefetches the lines of a run, which need not be valid.
#[inline(always)]
pub(super) fn prefetch_run<T>(run: *const T, len: usize, level: Level) {
    Lines::new(len.saturating_mul(size_of::<T>()), 0).prefetch(run, level);
}

/// Prefetches the source of a job that is copied soon, unless it follows the one
/// before: such sources the machine prefetches. Copies wait for nothing that
/// they read, so that the second cache is near enough.
#[inline(always)]
pub(super) fn prefetch_source<T>(src: *const T, jobs: &[Job], position: usize, distance: Distance) {
    let later = position + distance.far;
    if later >= jobs.len() {
        return;
    }
    let (before, later) = (&jobs[later - 1], &jobs[later]);
    if before.src.wrapping_add(before.len.cast_signed()) != later.src {
        let run = src.wrapping_offset(later.src);
        prefetch_run(run, later.len, Level::Second);
    }
}

#[cfg(test)]
mod tests {
    use super::{Distance, LINE, Lines, PREFETCHED_BYTES};

    #[test]
    fn runs_are_prefetched_before_their_turn() {
        for bytes in [0, 1, 64, 256, 600, 2048, 1 << 20, usize::MAX] {
            let Distance { far, near } = Distance::of(bytes);
            assert!(0 < near && near < far, "{near} and {far} for {bytes}");
        }
    }

    #[test]
    fn rows_that_begin_within_a_line_have_one_more() {
        let aligned = std::ptr::without_provenance::<f32>(4096);
        let within = std::ptr::without_provenance::<f32>(4096 + 16);
        for (base, step, len, expected) in [
            (aligned, 64, 64, 4),
            (within, 64, 64, 5),
            (within, -64, 64, 5),
            (within, 16, 4, 1),
            (aligned, 4, 4, 1),
            (aligned, 150, 150, 10),
            (within, 0, 0, 1),
            (
                within,
                512,
                PREFETCHED_BYTES / 4,
                PREFETCHED_BYTES / LINE + 1,
            ),
            (aligned, 1024, PREFETCHED_BYTES / 4 + 1, 0),
        ] {
            let Lines(lines) = Lines::of_rows(base, step, len);
            assert_eq!(lines, expected, "{len} elements, {step} apart");
        }
    }
}
