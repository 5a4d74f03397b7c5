//! Memory that may not be had: an error, never an abort.

use bytemuck::Zeroable;

use crate::error::ScatterError;

/// Buffers of at least so many bytes ask for huge pages, which cost a fraction
/// when they are first touched: a result of 128 MB takes 12 ms for 35, and a
/// call whose scratch memory is more than a thread keeps 28 ms for 37.
const HUGE_BYTES: usize = 4 << 20;

/// A vector of `len` zeros; pages are touched only when written.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>, ScatterError> {
    let buffer = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| out_of_memory::<T>(len))?;
    ask_for_huge_pages(&buffer);
    Ok(buffer)
}

/// An empty vector with room for `len` elements of a result.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>, ScatterError> {
    let mut buffer = Vec::new();
    (buffer.try_reserve_exact(len)).map_err(|_| out_of_memory::<T>(len))?;
    ask_for_huge_pages(&buffer);
    Ok(buffer)
}

/// A copy of a few values, such as the sizes that an error speaks of.
pub(crate) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>, ScatterError> {
    joined([values])
}

/// A copy of several lists, one behind the other.
pub(crate) fn joined<T: Copy, const N: usize>(parts: [&[T]; N]) -> Result<Vec<T>, ScatterError> {
    let len = parts.iter().map(|part| part.len()).sum();
    let mut all = with_room(len)?;
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Ok(all)
}

/// The error for `len` elements that found no memory.
pub(crate) fn out_of_memory<T>(len: usize) -> ScatterError {
    ScatterError::OutOfMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    }
}

/// A wish, for the whole pages of a buffer; no harm if it is not granted.
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
    /// The smallest pages are no larger than this on any Linux, so that whole
    /// multiples of it are whole pages.
    const PAGE: usize = 64 << 10;
    let skipped = start.addr().next_multiple_of(PAGE) - start.addr();
    let len = bytes.saturating_sub(skipped) / PAGE * PAGE;
    let first = start.wrapping_add(skipped).cast_mut().cast();
    // SAFETY: the range lies in an allocation of the caller's; the advice
    // changes how it is mapped, not what it holds.
    unsafe {
        libc::madvise(first, len, libc::MADV_HUGEPAGE);
    }
}
