//! Copies with streaming (non-temporal) stores, which leave the caches alone:
//! whole lines.
//!
//! Knows bytes. Knows nothing of when this pays: the stores are slow to reach
//! a reader, and only worth it for lines that nobody touches again soon.

#![allow(unsafe_code, reason = "moves bytes between addresses")]

use std::arch::x86_64 as x86;

use super::copy::copy_bytes;
use super::dispatch::Kernel;
use super::prefetch::{Distance, LINE, prefetch_source};
use super::{Job, Steps};

/// Shorter runs have too few whole lines, and are copied.
const SHORTEST_BYTES: usize = 256;

/// Bytes before their turn at which sources are prefetched, where that gains.
const DISTANCE: usize = 512;

/// Stores a line by streaming stores, of AVX if `AVX2`.
///
/// # Safety
///
/// `src` has a readable line, `dst` a writable one that is aligned to its
/// size. With `AVX2`, the machine has it.
#[inline(always)]
unsafe fn stream_line<const AVX2: bool>(dst: *mut u8, src: *const u8) {
    // SAFETY: the two halves or the four parts of the line; the caller vouches for AVX,
    // and SSE2 is part of x86-64.
    unsafe {
        if AVX2 {
            let (dst, src) = (dst.cast::<x86::__m256i>(), src.cast::<x86::__m256i>());
            let halves = [
                x86::_mm256_loadu_si256(src),
                x86::_mm256_loadu_si256(src.add(1)),
            ];
            x86::_mm256_stream_si256(dst, halves[0]);
            x86::_mm256_stream_si256(dst.add(1), halves[1]);
        } else {
            let (dst, src) = (dst.cast::<x86::__m128i>(), src.cast::<x86::__m128i>());
            let parts = [
                x86::_mm_loadu_si128(src),
                x86::_mm_loadu_si128(src.add(1)),
                x86::_mm_loadu_si128(src.add(2)),
                x86::_mm_loadu_si128(src.add(3)),
            ];
            x86::_mm_stream_si128(dst, parts[0]);
            x86::_mm_stream_si128(dst.add(1), parts[1]);
            x86::_mm_stream_si128(dst.add(2), parts[2]);
            x86::_mm_stream_si128(dst.add(3), parts[3]);
        }
    }
}

/// The `RunsFn` that streams elements of `W` bytes. `PREFETCHES`: whether sources are
/// prefetched. Its contract is that of `copy`, with steps of 1 and no `dst` element in two
/// jobs ([`Streams`](super::Streams)). The stores are fenced when it returns.
pub(super) struct Stream<const W: usize, const PREFETCHES: bool>;

impl<const W: usize, const PREFETCHES: bool> Kernel for Stream<W, PREFETCHES> {
    type Entry = Job;
    type Form<'a> = Steps;

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps) {
        debug_assert_eq!(steps, Steps::UNIT, "only contiguous runs are streamed");
        let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
        let distance = Distance::of_jobs(jobs, W);
        for (position, job) in jobs.iter().enumerate() {
            prefetch_source(src, jobs, position, distance);
            let dst = dst.wrapping_offset(job.dst).cast();
            let src = src.wrapping_offset(job.src).cast();
            // SAFETY: the caller vouches for the run and the instruction set.
            unsafe { stream_bytes::<AVX2, PREFETCHES>(dst, src, job.len * W) };
        }
        // Non-temporal stores are not ordered with others: without this fence, a
        // reader that was told of them could miss them.
        // SAFETY: SSE is part of x86-64.
        unsafe { x86::_mm_sfence() };
    }
}

/// Whole lines of `dst` by streaming stores, head and tail by ordinary stores.
///
/// # Safety
///
/// As for `copy_bytes`. With `AVX2`, the machine has it.
#[inline(always)]
unsafe fn stream_bytes<const AVX2: bool, const PREFETCHES: bool>(
    dst: *mut u8,
    src: *const u8,
    len: usize,
) {
    if len < SHORTEST_BYTES {
        // SAFETY: handed on as it is.
        return unsafe { copy_bytes(dst, src, len) };
    }
    let head = dst.align_offset(LINE).min(len);
    let tail = (len - head) % LINE;
    // SAFETY: head, whole lines and tail are `0..len` cut in three, and the
    // lines begin at an aligned address.
    unsafe {
        copy_bytes(dst, src, head);
        for position in (head..len - tail).step_by(LINE) {
            if PREFETCHES {
                let later = src.wrapping_add(position + DISTANCE);
                x86::_mm_prefetch::<{ x86::_MM_HINT_NTA }>(later.cast());
            }
            stream_line::<AVX2>(dst.add(position), src.add(position));
        }
        copy_bytes(dst.add(len - tail), src.add(len - tail), tail);
    }
}
