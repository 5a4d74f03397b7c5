//! The C functions that report the last failure of the calling thread.
//!
//! Copies the stored message and facts to C. Knows nothing of how a failure is made.

use std::ffi::c_char;

use crate::failure::Failure;
use crate::last_error;
use crate::status::{Facts, nds_status};
use crate::structs::{self, Sized32};

/// Facts of a failure: its status, and the tuple, the axis and the index that caused it. An unknown
/// fact is -1. Set `size` to sizeof(nds_error_info) before the call of nds_last_error_info.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_error_info {
    /// sizeof(nds_error_info) in the caller's header.
    pub size: u32,
    /// Status of the failure.
    pub status: i32,
    /// Number of the failing tuple of indices, in row-major order. For nds_tensor_scatter: the
    /// number of the sequence.
    pub tuple: i64,
    /// Number of the earlier tuple with the same destination.
    pub other_tuple: i64,
    /// Axis of data.
    pub axis: i64,
    /// Number of elements of data along that axis.
    pub axis_size: i64,
    /// Index as the caller passed it, clamped to int64.
    pub index: i64,
}

// SAFETY: the struct is `repr(C)` and begins with its size. All fields are integers. The fields end
// at the bytes 4, 8, 16, 24, 32, 40 and 48.
unsafe impl Sized32 for nds_error_info {
    const NAME: &'static str = "nds_error_info";
    // A caller reads at least the status.
    const ENDS: &'static [usize] = &[8, 16, 24, 32, 40, 48];
}

impl nds_error_info {
    fn new(status: nds_status, facts: Facts) -> Self {
        Self {
            size: 0,
            status: status as i32,
            tuple: facts.tuple,
            other_tuple: facts.other_tuple,
            axis: facts.axis,
            axis_size: facts.axis_size,
            index: facts.index,
        }
    }
}

/// Returns the message of the last failure of the calling thread, or "" before the first failure.
/// The pointer is never null. The pointer is valid until the next failure of the thread or until
/// the thread ends. Calls that succeed do not change the message.
#[unsafe(no_mangle)]
pub extern "C" fn nds_last_error() -> *const c_char {
    last_error::message()
}

/// Writes the facts of the last failure of the calling thread to *info.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_last_error_info(info: *mut nds_error_info) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointer (docs/c.md).
    match unsafe { fill(info) } {
        Ok(()) => nds_status::NDS_OK,
        Err(failure) => failure.status(),
    }
}

/// Writes the facts to `info`, up to the size that `info` declares.
///
/// # Safety
///
/// `info` is null or points to writable memory of the size that its `size` declares.
unsafe fn fill(info: *mut nds_error_info) -> Result<(), Failure> {
    if info.is_null() {
        return Err(Failure::invalid(format_args!("`info` is null")));
    }
    let (status, facts) = last_error::facts();
    let kept = nds_error_info::new(status, facts);
    // SAFETY: `info` is not null, so the bytes below `size` are readable and writable (contract of
    // this function). `known` is at least 4 (`size_of_given`). It is at most `size` and at most the
    // size of `kept`.
    unsafe {
        let size = structs::size_of_given(info)?;
        let known = size.min(size_of::<nds_error_info>());
        // Every field except the size, which stays as the caller set it.
        let (from, to) = ((&raw const kept).cast::<u8>(), info.cast::<u8>());
        std::ptr::copy_nonoverlapping(from.add(4), to.add(4), known - 4);
        to.add(known).write_bytes(0, size - known);
    }
    Ok(())
}
