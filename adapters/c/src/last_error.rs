//! What failed last on a thread: a message and its facts.
//!
//! Kept without an allocation and without a destructor, so that it can be
//! asked for at any time, also while the thread ends. Knows nothing of what
//! can fail, or of how C asks.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::fmt::{self, Write};

use crate::status::{Facts, nds_status};

/// Bytes kept of a message, its NUL included.
const MESSAGE_BYTES: usize = 1024;

/// The message, ended by a NUL, and the facts.
struct Kept {
    message: [u8; MESSAGE_BYTES],
    status: nds_status,
    facts: Facts,
}

thread_local! {
    static LAST: UnsafeCell<Kept> = const {
        UnsafeCell::new(Kept {
            message: [0; MESSAGE_BYTES],
            status: nds_status::NDS_OK,
            facts: Facts::UNKNOWN,
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
        (last.status, last.facts) = (status, facts);
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

/// The message that is kept for the calling thread, ended by a NUL: valid until
/// the thread's next failure, or its end.
pub(crate) fn message() -> *const c_char {
    LAST.with(|last| {
        // SAFETY: only the address of the message is taken.
        unsafe { (&raw const (*last.get()).message).cast() }
    })
}

/// The status and the facts that are kept for the calling thread.
pub(crate) fn facts() -> (nds_status, Facts) {
    LAST.with(|last| {
        // SAFETY: as in `keep`; both are copied.
        unsafe { ((*last.get()).status, (*last.get()).facts) }
    })
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
