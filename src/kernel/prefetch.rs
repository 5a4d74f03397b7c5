//! Prefetches runs and elements before their use. Also flushes cache lines, for measurements.
//!
//! The module knows addresses, jobs (runs of elements to process), and the distances at which
//! prefetching makes kernels faster. The module does not know what a kernel does with the elements.

#![allow(unsafe_code, reason = "prefetches addresses")]

use super::Job;

/// Cache level that a cache line is prefetched into.
#[derive(Clone, Copy)]
pub(super) enum Level {
    /// First-level cache.
    First,
    /// Second-level cache. A core can have many more prefetches in flight at once into this level
    /// than into the first level.
    Second,
}

/// Prefetch distance for the second-level cache, in bytes.
///
/// Most kernels prefetch a run twice: first into the second-level cache, when the run is this
/// distance ahead of the current run, and later into the first-level cache, at
/// [`FIRST_CACHE_DISTANCE`].
///
/// The distances were measured on Zen 4, for the maxima of 1166243 rows of 64 `f32` into 43 MB. A
/// loop outside the crate takes 27 ms on one core with both prefetches. The loop takes 42 ms with
/// one prefetch, into the first-level cache, 16 rows ahead. Partitioned on two cores, the loop
/// takes 16 ms with both prefetches, and 22 ms with the prefetch into the second-level cache alone.
/// In the crate, calls with both distances multiplied by 2/3 or by 4/3 took 1.03 to 1.12 times as
/// long as calls with these distances.
const SECOND_CACHE_DISTANCE: usize = 6 * 1024;
/// Prefetch distance for the first-level cache, in bytes.
const FIRST_CACHE_DISTANCE: usize = 1536;

/// Prefetch distance for the second-level cache, as a number of runs, for runs of at most
/// [`SHORT_BYTES`] bytes.
const FAR_RUNS: usize = SECOND_CACHE_DISTANCE / SHORT_BYTES;
/// Prefetch distance for the first-level cache, as a number of runs, for runs of at most
/// [`SHORT_BYTES`] bytes.
const NEAR_RUNS: usize = FIRST_CACHE_DISTANCE / SHORT_BYTES;
/// Maximum bytes of a run with the constant prefetch distances [`FAR_RUNS`] and [`NEAR_RUNS`].
const SHORT_BYTES: usize = 256;

/// Maximum bytes of a run that is prefetched. Longer runs are left to the hardware prefetcher. With
/// a prefetch of the first 2 KiB of each row of 8 KiB, sums of rows took up to 1.17 times as long
/// as without this prefetch.
const PREFETCHED_BYTES: usize = 2048;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Prefetch distances, in runs: how far ahead of the current run a run is prefetched.
#[derive(Clone, Copy)]
pub(super) struct Distance {
    /// Prefetch distance for the second-level cache, in runs.
    far: usize,
    /// Prefetch distance for the first-level cache, in runs.
    near: usize,
}

impl Distance {
    /// Returns the prefetch distances for runs of `bytes` bytes.
    #[inline(always)]
    pub(super) fn of(bytes: usize) -> Self {
        // Short runs have constant distances. Small calls usually have short runs. Dividing the
        // bytes of a distance by the bytes of a run would be a large part of the cost of a small
        // call.
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

    /// Returns the prefetch distances for a list of jobs, computed from the length of the first
    /// job. Elements have `size` bytes.
    #[inline(always)]
    pub(super) fn of_jobs(jobs: &[Job], size: usize) -> Self {
        Self::of(jobs.first().map_or(0, |job| job.len.saturating_mul(size)))
    }

    /// Returns the two prefetch distances, in runs, each with its cache level.
    #[inline(always)]
    pub(super) fn each(self) -> [(usize, Level); 2] {
        [(self.far, Level::Second), (self.near, Level::First)]
    }
}

/// Prefetches the cache line that contains `address`. The address need not be valid. Does nothing
/// on machines other than x86-64.
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

/// Prefetches `bytes` bytes from `address` on into the second-level cache. The addresses need not
/// be valid.
#[inline(always)]
pub(crate) fn prefetch_bytes(address: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        prefetch(address.wrapping_add(line), Level::Second);
    }
}

/// Flushes the cache lines of `words` from all caches, for measurements of memory latency and
/// bandwidth. Does nothing on machines other than x86-64.
pub(crate) fn flush(words: &[u64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        for line in words.chunks(LINE / size_of::<u64>()) {
            // SAFETY: SSE2 is part of x86-64. The address is valid because `line` is a reference.
            unsafe { _mm_clflush(line.as_ptr().cast()) };
        }
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_mfence() };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = words;
}

/// Checks whether runs of `bytes` bytes are prefetched. The hardware prefetches runs of more than
/// [`PREFETCHED_BYTES`] bytes.
#[inline(always)]
pub(super) fn are_prefetched(bytes: usize) -> bool {
    bytes <= PREFETCHED_BYTES
}

/// Number of cache lines to prefetch for a run. The number is 0 for runs of more than
/// [`PREFETCHED_BYTES`].
#[derive(Clone, Copy)]
pub(super) struct Lines(usize);

impl Lines {
    /// Returns the number of cache lines that a run of `bytes` bytes touches if the run begins
    /// `skipped` bytes after the start of a cache line. Returns 0 if runs of this length are not
    /// prefetched.
    #[inline(always)]
    fn new(bytes: usize, skipped: usize) -> Self {
        Self(if are_prefetched(bytes) {
            (skipped + bytes).div_ceil(LINE)
        } else {
            0
        })
    }

    /// Returns the number of cache lines to prefetch for each row. Rows have `len` elements and
    /// begin at multiples of `step` elements from `base`. If `step` is a multiple of a cache line,
    /// all rows begin at the same position in a cache line, and the number is exact. Otherwise the
    /// function returns the number for a row that begins in the middle of a cache line.
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

    /// Prefetches `self.0` cache lines, beginning with the cache line that contains `run`. The
    /// addresses need not be valid.
    ///
    /// The loop prefetches four cache lines per iteration. With one cache line per iteration, the
    /// loop executed more instructions, and sums of partitioned rows of 64 `f32` took 1.2 times as
    /// long as with four.
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

/// Prefetches a run of `len` elements, unless the run has more than [`PREFETCHED_BYTES`] bytes. The
/// number of prefetched cache lines is computed as if the run began at the start of a cache line.
/// The addresses need not be valid.
#[inline(always)]
pub(super) fn prefetch_run<T>(run: *const T, len: usize, level: Level) {
    Lines::new(len.saturating_mul(size_of::<T>()), 0).prefetch(run, level);
}

/// Prefetches the source of a later job into the second-level cache, while the kernel processes the
/// job at `position`. The later job is at `position + distance.far` in `jobs`. The function does
/// nothing if there is no such job. The function also does nothing if the source of the later job
/// begins where the source of the job before it ends, because the hardware prefetches contiguous
/// sources. The kernels that call this function copy elements. A copy does not wait for the
/// elements that it reads, so a prefetch into the second-level cache is enough.
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
    fn rows_that_begin_inside_a_cache_line_have_one_more() {
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
