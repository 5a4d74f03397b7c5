//! Copies of whole cache lines with streaming (non-temporal) stores, which bypass the caches.
//!
//! The module knows bytes. It does not know when streaming pays. The stored data is in memory
//! and not in a cache, so streaming pays only for cache lines that no worker uses soon.

#![allow(unsafe_code, reason = "copies bytes through raw pointers")]

use std::arch::x86_64 as x86;

use super::copy::copy_bytes;
use super::dispatch::Kernel;
use super::prefetch::{Distance, LINE, prefetch_source};
use super::{Job, Steps};

/// Bytes of the shortest run that is streamed. Shorter runs have too few whole cache lines.
const SHORTEST_BYTES: usize = 256;

/// Prefetch distance of the source, in bytes.
const DISTANCE: usize = 512;

/// Copies one cache line with streaming stores. `AVX2`: whether to use the stores of AVX.
///
/// # Safety
///
/// A cache line can be read from `src` on and written from `dst` on. `dst` is aligned to the size
/// of a cache line. If `AVX2`, the machine has AVX2.
#[inline(always)]
unsafe fn stream_line<const AVX2: bool>(dst: *mut u8, src: *const u8) {
    // SAFETY: the loads and stores are the two halves or the four quarters of the cache line. The
    // caller guarantees AVX2. SSE2 is part of x86-64.
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
/// As for `copy_bytes`. `bytes` is a multiple of the size of a cache line, and `dst` is aligned to
/// it.
#[cfg(not(miri))]
#[inline(always)]
pub(crate) unsafe fn stream_lines(dst: *mut u8, src: *const u8, bytes: usize) {
    debug_assert!(dst.addr().is_multiple_of(LINE), "inside a cache line");
    for position in (0..bytes).step_by(LINE) {
        // SAFETY: the caller guarantees the bytes and the alignment.
        unsafe { stream_line::<false>(dst.add(position), src.add(position)) };
    }
}

/// Orders the streaming stores of this thread before its later stores.
#[cfg(not(miri))]
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: SSE is part of x86-64.
    unsafe { x86::_mm_sfence() };
}

/// The `RunsFn` that streams elements of `W` bytes. `PREFETCHES`: whether it prefetches inside long
/// sources. The function has the contract of `copy`. In addition, strides are 1 and two jobs share
/// no `dst` element ([`Streams`](super::Streams)). The function ends with a fence of its stores.
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
            // and written in the destination. The caller guarantees that the machine has AVX2 if
            // `AVX2`.
            unsafe { stream_bytes::<AVX2, PREFETCHES>(dst, src, job.len * W) };
        }
        // Streaming stores are not ordered with later stores. Without this fence, a thread that
        // learns of the end of the copy could read old data.
        // SAFETY: SSE is part of x86-64.
        unsafe { x86::_mm_sfence() };
    }
}

/// Copies `len` bytes: the whole cache lines of `dst` with streaming stores, the head and the tail
/// with ordinary stores.
///
/// # Safety
///
/// As for `copy_bytes`. If `AVX2`, the machine has AVX2.
#[inline(always)]
unsafe fn stream_bytes<const AVX2: bool, const PREFETCHES: bool>(
    dst: *mut u8,
    src: *const u8,
    len: usize,
) {
    if len < SHORTEST_BYTES {
        // SAFETY: the caller guarantees the contract of `copy_bytes`.
        return unsafe { copy_bytes(dst, src, len) };
    }
    let head = dst.align_offset(LINE).min(len);
    let tail = (len - head) % LINE;
    // SAFETY: the head, the whole cache lines and the tail divide `0..len` into three parts. The
    // cache lines begin at an aligned address.
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
