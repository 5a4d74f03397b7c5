//! Huge pages for large results, on Linux.
//!
//! This module knows ranges of memory. It does not know tensors.

#![expect(unsafe_code, reason = "a system call that no safe function offers")]

/// Size in bytes of the smallest result for which huge pages are requested. The first write to new
/// memory costs less in huge pages than in ordinary pages. The same limit holds for results that
/// ndscatter allocates.
const HUGE_BYTES: usize = 4 << 20;

/// Requests huge pages for `bytes` bytes from `start` on. If the system refuses, the memory keeps
/// its ordinary pages. Other systems than Linux have no such request.
///
/// # Safety
///
/// The range is inside one allocation.
pub(crate) unsafe fn request(start: *mut u8, bytes: usize) {
    if bytes >= HUGE_BYTES {
        #[cfg(target_os = "linux")]
        // SAFETY: the contract of this function.
        unsafe {
            advise(start, bytes);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = start;
    }
}

/// Gives the advice `MADV_HUGEPAGE`.
///
/// # Safety
///
/// The range is inside one allocation.
#[cfg(target_os = "linux")]
unsafe fn advise(start: *mut u8, bytes: usize) {
    /// Bytes of the largest ordinary memory page of 64-bit Linux systems. The range that is passed
    /// to `madvise` is aligned to this size, so it has only whole pages.
    const PAGE: usize = 64 << 10;
    let skipped = start.addr().next_multiple_of(PAGE) - start.addr();
    let len = bytes.saturating_sub(skipped) / PAGE * PAGE;
    // SAFETY: the range is inside the caller's allocation (contract of this function). The advice
    // changes the size of the pages that hold the range, but not the contents of the range.
    unsafe {
        libc::madvise(start.wrapping_add(skipped).cast(), len, libc::MADV_HUGEPAGE);
    }
}
