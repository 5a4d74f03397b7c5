//! Structs of C that grow at their end and say how long they are.

use std::mem::MaybeUninit;

use crate::failure::Failure;

/// A struct of the interface.
///
/// # Safety
///
/// `repr(C)`, begins with its `u32` size, valid with any bytes in it, and
/// `ENDS` are the offsets behind its fields; the last one is followed by
/// padding at most.
pub(crate) unsafe trait Sized32: Copy {
    const NAME: &'static str;
    const ENDS: &'static [usize];
}

/// A struct whose fields are all zero, or null.
pub(crate) fn zero<S: Sized32>() -> S {
    // SAFETY: any bytes make a valid struct (`Sized32`).
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The size that the struct at `given` claims to have, refused if it cuts a
/// field in two.
///
/// # Safety
///
/// `given` points to a struct at least four bytes long.
pub(crate) unsafe fn size_of_given<S: Sized32>(given: *const S) -> Result<usize, Failure> {
    // SAFETY: the caller vouches for the first four bytes.
    let size = unsafe { given.cast::<u32>().read_unaligned() } as usize;
    if size >= size_of::<S>() || S::ENDS.contains(&size) {
        return Ok(size);
    }
    let name = S::NAME;
    Err(Failure::invalid(format_args!(
        "`{name}.size` is {size}; set it to sizeof({name})"
    )))
}

/// Reads a struct that a caller made with an older or newer header. Fields that the caller does
/// not know are zero.
///
/// # Safety
///
/// `given` points to as many bytes as its first field says.
pub(crate) unsafe fn read<S: Sized32>(given: *const S) -> Result<S, Failure> {
    // SAFETY: the caller vouches for the bytes.
    let size = unsafe { size_of_given(given) }?;
    for position in size_of::<S>()..size {
        // SAFETY: as above.
        if unsafe { given.cast::<u8>().add(position).read() } != 0 {
            return Err(Failure::unsupported(format_args!(
                "`{}` has fields that this version does not know, and they are not zero",
                S::NAME
            )));
        }
    }
    let mut value = zero::<S>();
    let known = size.min(size_of::<S>());
    // SAFETY: `known` bytes are readable, as above, and `value` is as long;
    // any bytes make a valid struct (`Sized32`).
    unsafe {
        std::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut value).cast(), known);
    }
    Ok(value)
}
