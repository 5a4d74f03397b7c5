//! C structs whose first field is the size of the struct, so that later versions can append fields.
//!
//! This file reads and writes structs of callers that were compiled with an older or newer header. It
//! does not depend on the meaning of the fields.

use std::mem::MaybeUninit;

use crate::failure::Failure;

/// A struct of the C interface whose first field is the size of the struct in bytes.
///
/// # Safety
///
/// - The struct is `repr(C)` and begins with a `u32` size.
/// - Any bytes make a valid value.
/// - Each offset in `ENDS` is the end of a field. Only padding follows the last field.
pub(crate) unsafe trait Sized32: Copy {
    const NAME: &'static str;
    /// Sizes in bytes that a caller may declare although they are less than the size of this
    /// struct.
    const ENDS: &'static [usize];
}

/// Returns a struct with all fields 0 or null.
pub(crate) fn zero<S: Sized32>() -> S {
    // SAFETY: any bytes are a valid value of the struct (contract of `Sized32`).
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Returns the size in bytes that the first field of the struct at `given` declares. Fails if this
/// size is less than the size of `S` and not in `ENDS`.
///
/// # Safety
///
/// `given` points to at least four readable bytes.
pub(crate) unsafe fn size_of_given<S: Sized32>(given: *const S) -> Result<usize, Failure> {
    // SAFETY: the first four bytes at `given` are readable (contract of this function).
    let size = unsafe { given.cast::<u32>().read_unaligned() } as usize;
    if size >= size_of::<S>() || S::ENDS.contains(&size) {
        return Ok(size);
    }
    let name = S::NAME;
    Err(Failure::invalid(format_args!(
        "`{name}.size` is {size}; set it to sizeof({name})"
    )))
}

/// Reads a struct of a caller that may have been compiled with an older or newer header.
///
/// If the caller's struct is smaller than `S`, the missing fields of the result are 0 or null. If
/// the caller's struct is larger than `S`, each of its bytes beyond the size of `S` must be 0, or
/// the call fails.
///
/// # Safety
///
/// `given` points to readable memory. The memory has the size that the first field declares, but at
/// least four bytes.
pub(crate) unsafe fn read<S: Sized32>(given: *const S) -> Result<S, Failure> {
    // SAFETY: the first four bytes at `given` are readable (contract of this function).
    let size = unsafe { size_of_given(given) }?;
    for position in size_of::<S>()..size {
        // SAFETY: `position` is less than the declared size, and all bytes of that size are
        // readable (contract of this function).
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
    // SAFETY: `known` is at most the declared size, so the source bytes are readable (contract of
    // this function). `known` is at most the size of `value`. Any bytes are a valid value of the
    // struct (contract of `Sized32`).
    unsafe {
        std::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut value).cast(), known);
    }
    Ok(value)
}

/// Writes `value` to the struct of a caller that may have been compiled with an older or newer header.
/// Writes no more bytes than the struct has. Keeps the field `size`, which the caller has set. Sets the
/// bytes of the struct after the last field of `S` to 0.
///
/// # Safety
///
/// `given` is null, or points to memory of at least four bytes that is readable and writable up to the
/// size that the first field declares.
pub(crate) unsafe fn write<S: Sized32>(
    name: &'static str,
    given: *mut S,
    value: S,
) -> Result<(), Failure> {
    if given.is_null() {
        return Err(Failure::invalid(format_args!("`{name}` is null")));
    }
    // SAFETY: `given` is not null. Its bytes below `size` are therefore readable and writable (contract
    // of this function). `size_of_given` accepts no size below 4, so `known` is at least 4. `known` is
    // the minimum of `size` and the size of `value`.
    unsafe {
        let size = size_of_given(given)?;
        let known = size.min(size_of::<S>());
        let (from, to) = ((&raw const value).cast::<u8>(), given.cast::<u8>());
        std::ptr::copy_nonoverlapping(from.add(4), to.add(4), known - 4);
        to.add(known).write_bytes(0, size - known);
    }
    Ok(())
}
