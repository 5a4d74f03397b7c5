//! Allocations that may fail. A failure is an error, never an abort.
//!
//! The module knows lengths and element sizes. It does not know what a buffer is for.

use bytemuck::{Pod, Zeroable};

use crate::error::ScatterError;

/// The memory of a cache line. A vector of cache lines begins at the start of a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct CacheLine([u64; 8]);

#[expect(unsafe_code, reason = "states that every pattern of bytes is a value")]
// SAFETY: eight integers are valid for every pattern of bytes, and for zeros.
unsafe impl Zeroable for CacheLine {}

#[expect(unsafe_code, reason = "states that every pattern of bytes is a value")]
// SAFETY: as above. The integers have 64 bytes, so the alignment adds no padding.
unsafe impl Pod for CacheLine {}

/// Returns the number of cache lines that hold `len` elements of `size` bytes.
pub(crate) fn lines_of(len: usize, size: usize) -> usize {
    len.saturating_mul(size).div_ceil(size_of::<CacheLine>())
}

/// Minimum size in bytes of a buffer that requests huge pages. The first write to huge pages costs
/// less. A result of 128 MB takes 12 ms instead of 35 ms. A call with fresh scratch memory takes
/// 28 ms instead of 37 ms.
const HUGE_BYTES: usize = 4 << 20;

/// Allocates a vector of `len` zeros. The system provides its pages at the first write.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>, ScatterError> {
    let buffer = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| out_of_memory::<T>(len))?;
    ask_for_huge_pages(&buffer);
    Ok(buffer)
}

/// Allocates an empty vector with room for `len` elements.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>, ScatterError> {
    let mut buffer = Vec::new();
    (buffer.try_reserve_exact(len)).map_err(|_| out_of_memory::<T>(len))?;
    ask_for_huge_pages(&buffer);
    Ok(buffer)
}

/// Copies a few values, for example the sizes in an error.
pub(crate) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>, ScatterError> {
    joined([values])
}

/// Copies several lists into one vector.
pub(crate) fn joined<T: Copy, const N: usize>(parts: [&[T]; N]) -> Result<Vec<T>, ScatterError> {
    let len = parts.iter().map(|part| part.len()).sum();
    let mut all = with_room(len)?;
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Ok(all)
}

/// Returns the error for a failed allocation of `len` elements.
pub(crate) fn out_of_memory<T>(len: usize) -> ScatterError {
    ScatterError::OutOfMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    }
}

/// Requests huge pages for the whole pages in a buffer. The system may refuse, without harm.
fn ask_for_huge_pages<T>(buffer: &Vec<T>) {
    let bytes = buffer.capacity().saturating_mul(size_of::<T>());
    if bytes >= HUGE_BYTES {
        #[cfg(target_os = "linux")]
        advise_huge_pages(buffer.as_ptr().cast(), bytes);
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a system call that no safe function offers")]
fn advise_huge_pages(start: *const u8, bytes: usize) {
    /// Largest base page of 64-bit Linux systems, in bytes. Every multiple of this size is also a
    /// multiple of the actual page size, so the advised range has only whole pages.
    const PAGE: usize = 64 << 10;
    let skipped = start.addr().next_multiple_of(PAGE) - start.addr();
    let len = bytes.saturating_sub(skipped) / PAGE * PAGE;
    let first = start.wrapping_add(skipped).cast_mut().cast();
    // SAFETY: the range is inside an allocation of the caller. The advice changes how the range is
    // mapped, but not its contents.
    unsafe {
        libc::madvise(first, len, libc::MADV_HUGEPAGE);
    }
}
