//! C structs whose first field is their size, so that later versions can append fields.
//!
//! Reads a struct of an older or a newer caller. Knows nothing of the meaning of the fields.

use std::mem::MaybeUninit;

use crate::failure::Failure;

/// A C struct of the interface whose first field is its size.
///
/// # Safety
///
/// - The struct is `repr(C)` and begins with a `u32` size.
/// - Any bytes make a valid value.
/// - Each offset in `ENDS` is the end of a field. Only padding follows the last field.
pub(crate) unsafe trait Sized32: Copy {
    const NAME: &'static str;
    /// Sizes below the full size that a caller may declare, in bytes.
    const ENDS: &'static [usize];
}

/// Returns a struct whose fields are all zero or null.
pub(crate) fn zero<S: Sized32>() -> S {
    // SAFETY: any bytes make a valid struct (`Sized32`).
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Returns the size in bytes that the struct at `given` declares. Fails for a size that is neither
/// in `ENDS` nor at least the full size.
///
/// # Safety
///
/// `given` points to at least four readable bytes.
pub(crate) unsafe fn size_of_given<S: Sized32>(given: *const S) -> Result<usize, Failure> {
    // SAFETY: the first four bytes are readable (contract of this function).
    let size = unsafe { given.cast::<u32>().read_unaligned() } as usize;
    if size >= size_of::<S>() || S::ENDS.contains(&size) {
        return Ok(size);
    }
    let name = S::NAME;
    Err(Failure::invalid(format_args!(
        "`{name}.size` is {size}; set it to sizeof({name})"
    )))
}

/// Reads a struct that a caller made with an older or newer header.
///
/// Fields beyond the caller's size are zero. Bytes beyond the size of `S` must be zero.
///
/// # Safety
///
/// `given` points to readable memory of the size that its first field declares, and of at least
/// four bytes.
pub(crate) unsafe fn read<S: Sized32>(given: *const S) -> Result<S, Failure> {
    // SAFETY: the first four bytes are readable (contract of this function).
    let size = unsafe { size_of_given(given) }?;
    for position in size_of::<S>()..size {
        // SAFETY: `position` is below the declared size, whose bytes are readable.
        if unsafe { given.cast::<u8>().add(position).read() } != 0 {
            return Err(Failure::unsupported(format_args!(
                "`{name}` has bytes that are not 0 beyond byte {known}, where this version has no \
                 fields; set them to 0",
                name = S::NAME,
                known = size_of::<S>(),
            )));
        }
    }
    let mut value = zero::<S>();
    let known = size.min(size_of::<S>());
    // SAFETY: `known` is at most the declared size and at most the size of `value`. Any bytes make
    // a valid struct (`Sized32`).
    unsafe {
        std::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut value).cast(), known);
    }
    Ok(value)
}
