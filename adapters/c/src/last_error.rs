//! What failed last on a thread: a message and its facts.
//!
//! Kept without an allocation and without a destructor, so that it can be
//! asked for at any time, also while the thread ends.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::fmt::{self, Write};

use crate::status::{Facts, Failure, nds_status};
use crate::structs::{self, Sized32};

/// Bytes kept of a message, its NUL included.
const MESSAGE_BYTES: usize = 1024;

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
    const DEFAULT: Self = Self::new(nds_status::NDS_OK, Facts::UNKNOWN);
}

impl nds_error_info {
    const fn new(status: nds_status, facts: Facts) -> Self {
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

/// The message, ended by a NUL, and the facts.
struct Kept {
    message: [u8; MESSAGE_BYTES],
    info: nds_error_info,
}

thread_local! {
    static LAST: UnsafeCell<Kept> = const {
        UnsafeCell::new(Kept {
            message: [0; MESSAGE_BYTES],
            info: nds_error_info::DEFAULT,
        })
    };
}

/// Keeps a failure for the calling thread, its message written where it stays:
/// there may be no memory for another copy.
pub(crate) fn keep(status: nds_status, facts: Facts, message: fmt::Arguments<'_>) {
    LAST.with(|last| {
        // SAFETY: this thread's alone; no reference outlives a function of
        // this file, and none of them calls another meanwhile: what is
        // formatted are names and numbers.
        let last = unsafe { &mut *last.get() };
        last.info = nds_error_info::new(status, facts);
        let mut text = Truncated {
            buffer: &mut last.message[..MESSAGE_BYTES - 1],
            len: 0,
        };
        // An error says that the rest was too long.
        let _ = text.write_fmt(message);
        let len = text.len;
        last.message[len] = 0;
    });
}

/// A text that ends, between two characters, where its buffer does.
struct Truncated<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl fmt::Write for Truncated<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.buffer.len() - self.len;
        let mut fits = text.len().min(room);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.buffer[self.len..][..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        if fits < text.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// What failed last on the calling thread, in words; "" if nothing has. Never
/// null. Valid until the thread's next failure or its end; calls that succeed
/// do not change it.
#[unsafe(no_mangle)]
pub extern "C" fn nds_last_error() -> *const c_char {
    LAST.with(|last| {
        // SAFETY: only the address of the message is taken.
        unsafe { (&raw const (*last.get()).message).cast() }
    })
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
    // SAFETY: as in `keep`; the facts are copied.
    let kept = LAST.with(|last| unsafe { (*last.get()).info });
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::Truncated;

    #[test]
    fn a_long_text_ends_between_two_characters() {
        let whole = "abéé end";
        let kept = [(0, ""), (3, "ab"), (5, "abé"), (6, "abéé"), (9, "abéé en")];
        for (room, expected) in kept.into_iter().chain([(whole.len(), whole)]) {
            let mut buffer = [b'x'; 16];
            let mut text = Truncated {
                buffer: &mut buffer[..room],
                len: 0,
            };
            let (start, end) = ("ab", "é end");
            let done = write!(text, "{start}é{end}");
            assert_eq!(
                done.is_ok(),
                expected == whole,
                "{room}: whether all of it fits"
            );
            let len = text.len;
            let kept = std::str::from_utf8(&buffer[..len]).expect("whole characters");
            assert_eq!(kept, expected, "room for {room} bytes");
            assert_eq!(buffer[len], b'x', "{room}: nothing behind it");
        }
    }
}
