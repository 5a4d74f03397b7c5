//! Thread-local storage for the last failure: its message, its status and its facts (the tuple, the
//! axis and the index that caused it).
//!
//! The storage needs no allocation and no destructor. It can therefore be read at any time, also
//! while the thread ends. Knows nothing of the causes of failures or of C structs.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::fmt::{self, Write};

use crate::status::{Facts, nds_status};

/// Capacity of the stored message in bytes, including its NUL.
const MESSAGE_BYTES: usize = 1024;

/// The last failure of a thread. A NUL ends the message.
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

/// Stores a failure for the calling thread.
///
/// Formats the message directly into the storage, because memory for a copy may be exhausted.
pub(crate) fn store(status: nds_status, facts: Facts, message: fmt::Arguments<'_>) {
    LAST.with(|last| {
        // SAFETY: only this thread accesses the cell. No reference to it outlives a function of
        // this file. While this reference lives, no other function of this file runs: the
        // arguments of the message are names and numbers, whose formatting calls none of them.
        let last = unsafe { &mut *last.get() };
        (last.status, last.facts) = (status, facts);
        let mut text = Truncated {
            buffer: &mut last.message[..MESSAGE_BYTES - 1],
            len: 0,
        };
        // An error means that the message was truncated.
        let _ = text.write_fmt(message);
        let len = text.len;
        last.message[len] = 0;
    });
}

/// A writer that truncates a text to its buffer, at a character boundary.
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

/// Returns the message of the calling thread's last failure, ended by a NUL. The pointer is valid
/// until the next failure of the thread or until the thread ends.
pub(crate) fn message() -> *const c_char {
    LAST.with(|last| {
        // SAFETY: this takes the address of the message and makes no reference.
        unsafe { (&raw const (*last.get()).message).cast() }
    })
}

/// Returns the status and the facts of the calling thread's last failure.
pub(crate) fn facts() -> (nds_status, Facts) {
    LAST.with(|last| {
        // SAFETY: only this thread accesses the cell, and no reference to it lives (see `store`).
        // The values are copied.
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
