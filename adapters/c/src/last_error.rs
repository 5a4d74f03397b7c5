//! Thread-local storage for the last failure of each thread: its message, its status and its facts
//! (such as the tuple, the axis and the index that caused it).
//!
//! The storage needs no allocation and no destructor. Therefore, a thread can read it at any time,
//! also while the thread ends. This file does not depend on the causes of failures or on C structs.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::fmt::{self, Write};

use crate::status::{Facts, nds_status};

/// Capacity of the stored message in bytes, including the NUL that ends it.
const MESSAGE_BYTES: usize = 1024;

/// The last failure of a thread. A NUL ends `message`.
struct LastFailure {
    message: [u8; MESSAGE_BYTES],
    status: nds_status,
    facts: Facts,
}

thread_local! {
    static LAST: UnsafeCell<LastFailure> = const {
        UnsafeCell::new(LastFailure {
            message: [0; MESSAGE_BYTES],
            status: nds_status::NDS_OK,
            facts: Facts::UNKNOWN,
        })
    };
}

/// Stores a failure as the last failure of the calling thread.
///
/// Formats the message directly into the thread-local storage, without an allocation, because the
/// failure may be exhausted memory.
pub(crate) fn store(status: nds_status, facts: Facts, message: fmt::Arguments<'_>) {
    LAST.with(|last| {
        // SAFETY: only this thread accesses the cell. The reference ends before this function
        // returns. Until then, no other code accesses the cell: the arguments of the message are
        // names and numbers, and formatting them calls neither `store`, `message` nor `facts`.
        let last = unsafe { &mut *last.get() };
        (last.status, last.facts) = (status, facts);
        let mut text = Truncated {
            buffer: &mut last.message[..MESSAGE_BYTES - 1],
            len: 0,
        };
        // `write_fmt` fails only if it truncates the message, which is not an error here.
        let _ = text.write_fmt(message);
        let len = text.len;
        last.message[len] = 0;
    });
}

/// A writer into `buffer`. Text that does not fit is cut at a character boundary.
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

/// Returns the message of the calling thread's last failure. A NUL ends the message. The pointer is
/// valid until the thread ends, and the next failure of the thread overwrites the message.
pub(crate) fn message() -> *const c_char {
    LAST.with(|last| {
        // SAFETY: the block computes the address of the message. It creates no reference and reads
        // nothing.
        unsafe { (&raw const (*last.get()).message).cast() }
    })
}

/// Returns the status and the facts of the calling thread's last failure.
pub(crate) fn facts() -> (nds_status, Facts) {
    LAST.with(|last| {
        // SAFETY: only this thread accesses the cell. The reference in `store` has ended. The block
        // copies the values and creates no reference.
        unsafe { ((*last.get()).status, (*last.get()).facts) }
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::Truncated;

    #[test]
    fn truncation_keeps_whole_characters() {
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
                "{room}: whether the whole text fits"
            );
            let len = text.len;
            let kept = std::str::from_utf8(&buffer[..len]).expect("whole characters");
            assert_eq!(kept, expected, "room for {room} bytes");
            assert_eq!(buffer[len], b'x', "{room}: no byte after the text");
        }
    }
}
