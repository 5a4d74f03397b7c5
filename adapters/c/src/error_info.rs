//! What failed last on a thread, as C asks for it.

use std::ffi::c_char;

use crate::failure::Failure;
use crate::last_error;
use crate::status::{Facts, nds_status};
use crate::structs::{self, Sized32};

/// Facts of a failure, -1 where unknown. Set `size` to sizeof(nds_error_info)
/// before asking for them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_error_info {
    /// sizeof(nds_error_info) as the caller knows it.
    pub size: u32,
    /// The status of the failure.
    pub status: i32,
    /// The tuple of indices at fault, counted in row-major order; of
    /// nds_tensor_scatter the sequence.
    pub tuple: i64,
    /// The earlier tuple that it repeats.
    pub other_tuple: i64,
    /// The axis of data.
    pub axis: i64,
    /// How many elements data has along that axis.
    pub axis_size: i64,
    /// The index as given, clamped to int64.
    pub index: i64,
}

// SAFETY: `repr(C)`, integers only, fields end at 4 and then every 8 bytes.
unsafe impl Sized32 for nds_error_info {
    const NAME: &'static str = "nds_error_info";
    // The status is the least that can be asked for.
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

/// What failed last on the calling thread, in words; "" if nothing has. Never
/// null. Valid until the thread's next failure or its end; calls that succeed
/// do not change it.
#[unsafe(no_mangle)]
pub extern "C" fn nds_last_error() -> *const c_char {
    last_error::message()
}

/// The facts of what failed last on the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_last_error_info(info: *mut nds_error_info) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointer.
    match unsafe { fill(info) } {
        Ok(()) => nds_status::NDS_OK,
        Err(failure) => failure.status(),
    }
}

/// # Safety
///
/// `info` is null or points to as many bytes as its `size` says.
unsafe fn fill(info: *mut nds_error_info) -> Result<(), Failure> {
    if info.is_null() {
        return Err(Failure::invalid(format_args!("`info` is null")));
    }
    let (status, facts) = last_error::facts();
    let kept = nds_error_info::new(status, facts);
    // SAFETY: the caller vouches for the bytes.
    unsafe {
        let size = structs::size_of_given(info)?;
        let known = size.min(size_of::<nds_error_info>());
        // All but the size, which stays the caller's.
        let (from, to) = ((&raw const kept).cast::<u8>(), info.cast::<u8>());
        std::ptr::copy_nonoverlapping(from.add(4), to.add(4), known - 4);
        to.add(known).write_bytes(0, size - known);
    }
    Ok(())
}
