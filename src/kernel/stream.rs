//! Copies of whole cache lines with streaming (non-temporal) stores, which bypass the caches.
//!
//! The module copies bytes. Its callers decide when to stream. After a streaming store, the data is
//! in memory and not in a cache. So streaming pays only for cache lines that no worker uses soon.

#![allow(unsafe_code, reason = "copies bytes through raw pointers")]

use std::arch::x86_64 as x86;

use super::copy::copy_bytes;
use super::dispatch::Kernel;
use super::prefetch::{Distance, LINE, prefetch_source};
use super::{Job, Steps};

/// Minimum size, in bytes, of a run that is copied with streaming stores. Shorter runs have too few
/// whole cache lines, and are copied with ordinary stores.
const SHORTEST_BYTES: usize = 256;

/// Prefetch distance inside a run, in bytes: how far ahead of the current cache line the source is
/// prefetched.
const DISTANCE: usize = 512;

/// Copies one cache line with streaming stores. `AVX2`: whether to use stores of 32 bytes (AVX)
/// instead of 16 bytes (SSE2).
///
/// # Safety
///
/// 64 bytes (one cache line) can be read at `src` and written at `dst`. `dst` is aligned to 64
/// bytes. If `AVX2` is true, the machine has AVX2.
#[inline(always)]
unsafe fn stream_line<const AVX2: bool>(dst: *mut u8, src: *const u8) {
    // SAFETY: the loads and stores access the two halves or the four quarters of the cache line.
    // The caller guarantees that these 64 bytes can be read at `src` and written at `dst`, and that
    // `dst` is aligned to 64 bytes. If `AVX2` is true, the caller guarantees that the machine has
    // AVX2. SSE2 is part of x86-64.
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

/// Copies `bytes` bytes with streaming stores.
///
/// # Safety
///
/// As for `copy_bytes`. In addition, `bytes` is a multiple of 64 (the size of a cache line), and
/// `dst` is aligned to 64 bytes.
#[cfg(not(miri))]
#[inline(always)]
pub(crate) unsafe fn stream_lines(dst: *mut u8, src: *const u8, bytes: usize) {
    debug_assert!(dst.addr().is_multiple_of(LINE), "inside a cache line");
    for position in (0..bytes).step_by(LINE) {
        // SAFETY: the caller guarantees that `bytes` bytes can be read from `src` on and written
        // from `dst` on, and that `dst` is aligned to 64 bytes.
        unsafe { stream_line::<false>(dst.add(position), src.add(position)) };
    }
}

/// Store fence: makes the earlier streaming stores of this thread visible before its later stores.
#[cfg(not(miri))]
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: SSE is part of x86-64.
    unsafe { x86::_mm_sfence() };
}

/// The `RunsFn` that copies runs of elements of `W` bytes with streaming stores. `PREFETCHES`:
/// whether to prefetch the source also inside a run of at least [`SHORTEST_BYTES`]. The contract is
/// that of `copy`, with two more conditions: strides are 1, and no two jobs share a `dst` element
/// ([`Streams`](super::Streams)). The function ends with a store fence.
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
            // SAFETY: the caller guarantees that the elements of each job can be read in the source
            // and written in the destination. If `AVX2` is true, the caller guarantees that the
            // machine has AVX2.
            unsafe { stream_bytes::<AVX2, PREFETCHES>(dst, src, job.len * W) };
        }
        // The processor can make a streaming store visible after later ordinary stores. Without
        // this fence, another thread could learn that the copy has ended, and still read the old
        // data.
        // SAFETY: SSE is part of x86-64.
        unsafe { x86::_mm_sfence() };
    }
}

/// Copies `len` bytes. If `len` is at least [`SHORTEST_BYTES`], the whole cache lines of `dst` are
/// written with streaming stores. The bytes before and after them are written with ordinary stores.
///
/// # Safety
///
/// As for `copy_bytes`. If `AVX2` is true, the machine has AVX2.
#[inline(always)]
unsafe fn stream_bytes<const AVX2: bool, const PREFETCHES: bool>(
    dst: *mut u8,
    src: *const u8,
    len: usize,
) {
    if len < SHORTEST_BYTES {
        // SAFETY: the caller guarantees that `len` bytes can be read from `src` on and written from
        // `dst` on, and that the two ranges do not overlap.
        return unsafe { copy_bytes(dst, src, len) };
    }
    let head = dst.align_offset(LINE).min(len);
    let tail = (len - head) % LINE;
    // SAFETY: the head, the whole cache lines and the tail are three separate parts of `0..len`.
    // The whole cache lines begin at an aligned address of `dst`.
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
