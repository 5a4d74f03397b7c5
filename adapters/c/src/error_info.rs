//! The C functions that report the last failure of the calling thread.
//!
//! This module returns a pointer to the stored message, and copies the stored facts (status, tuple,
//! axis and index) to a C struct. This module does not know the causes of failures.

use std::ffi::c_char;

use crate::last_error;
use crate::status::{Facts, nds_status};
use crate::structs::{self, Sized32};

/// Facts of a failure: its status, and the tuple, the axis and the index that caused it. A fact
/// that is unknown, or that the kind of failure does not have, is -1. Before a call of
/// nds_last_error_info, set `size` to sizeof(nds_error_info).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_error_info {
    /// sizeof(nds_error_info), as the caller's header defines it.
    pub size: u32,
    /// Status of the failure: a value of nds_status. NDS_OK before the first failure.
    pub status: i32,
    /// Number of the failing tuple, counted from 0 in the row-major order of indices. For
    /// nds_tensor_scatter: number of the failing sequence, counted from 0. For slots and for
    /// moves: position in the list of slots or of moves.
    pub tuple: i64,
    /// For a duplicate: number of the earlier tuple that has the same destination as `tuple`.
    pub other_tuple: i64,
    /// Axis of data for which the index is out of range, or along which another tensor is too long.
    pub axis: i64,
    /// Size of data along that axis. For an invalid position of nds_tensor_scatter, `axis` is -1
    /// and this field is the length of the cache. For an invalid slot or row number, `axis` is -1
    /// and this field is the number of slots or rows.
    pub axis_size: i64,
    /// Failing index as the caller passed it, clamped to the range of int64.
    pub index: i64,
}

// SAFETY: the struct is `repr(C)` and begins with its size. All fields are integers, so any bytes
// are valid. The fields end at the bytes 4, 8, 16, 24, 32, 40 and 48, without padding.
unsafe impl Sized32 for nds_error_info {
    const NAME: &'static str = "nds_error_info";
    // `ENDS` does not list 4, the end of the field `size`, because a struct without the field
    // `status` is refused.
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

/// Writes the facts of the last failure of the calling thread (its status, tuple, axis and index)
/// to *info. Fails if info is null or info->size is invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_last_error_info(info: *mut nds_error_info) -> nds_status {
    let (status, facts) = last_error::facts();
    let info_of_last = nds_error_info::new(status, facts);
    // SAFETY: docs/c.md obliges the caller to pass a null pointer, or a struct of the size that its
    // field `size` declares.
    match unsafe { structs::write("info", info, info_of_last) } {
        Ok(()) => nds_status::NDS_OK,
        Err(failure) => failure.status(),
    }
}
