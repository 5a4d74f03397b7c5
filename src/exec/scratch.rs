//! Scratch memory that calls of one thread leave for the next.
//!
//! A buffer is taken out and put back, never borrowed: a worker that waits in
//! a join may enter the crate again on the same thread.

use std::cell::Cell;

use crate::error::ScatterError;
use crate::memory::zeroed;
use crate::plan::{Destinations, Spare};

/// Most bytes that one thread keeps between calls.
const KEPT_BYTES: usize = 96 << 20;

/// Most buffers of one kind that a thread keeps.
const KEPT_BUFFERS: usize = 3;

#[derive(Default)]
struct Shelf {
    narrow: Vec<Vec<u32>>,
    wide: Vec<Vec<u64>>,
}

thread_local! {
    static SHELF: Cell<Shelf> = Cell::default();
}

/// Calls `f` with the shelf taken out. Without one while the thread ends.
fn with_shelf<R: Default>(f: impl FnOnce(&mut Shelf) -> R) -> R {
    let taken = SHELF.try_with(|cell| {
        let mut shelf = cell.take();
        let result = f(&mut shelf);
        cell.set(shelf);
        result
    });
    taken.unwrap_or_default()
}

/// A type of which threads keep buffers.
pub(crate) trait Kept: Sized {
    /// A buffer of at least `len` elements, of any value.
    fn take(len: usize) -> Result<Vec<Self>, ScatterError>;
    /// Leaves a buffer for the next call.
    fn put_back(buffer: Vec<Self>);
}

impl Kept for u32 {
    fn take(len: usize) -> Result<Vec<Self>, ScatterError> {
        with_shelf(|shelf| take(&mut shelf.narrow, len)).map_or_else(|| zeroed(len), Ok)
    }

    fn put_back(buffer: Vec<Self>) {
        with_shelf(|shelf| {
            let room = shelf.room();
            put(&mut shelf.narrow, buffer, room);
        });
    }
}

impl Kept for u64 {
    fn take(len: usize) -> Result<Vec<Self>, ScatterError> {
        with_shelf(|shelf| take(&mut shelf.wide, len)).map_or_else(|| zeroed(len), Ok)
    }

    fn put_back(buffer: Vec<Self>) {
        with_shelf(|shelf| {
            let room = shelf.room();
            put(&mut shelf.wide, buffer, room);
        });
    }
}

/// A buffer for `tuples` destinations below `count`, if one is kept and needed.
pub(crate) fn take_spare(tuples: usize, count: u64) -> Spare {
    let mut spare = Spare::default();
    if tuples <= Destinations::INLINE {
        return spare;
    }
    with_shelf(|shelf| {
        if count <= Destinations::NARROW {
            spare.narrow = take(&mut shelf.narrow, tuples).unwrap_or_default();
        } else {
            spare.wide = take(&mut shelf.wide, tuples).unwrap_or_default();
        }
    });
    spare
}

/// Leaves the buffers of a plan for the next call.
pub(crate) fn put_back(spare: Spare) {
    Kept::put_back(spare.narrow);
    Kept::put_back(spare.wide);
}

impl Shelf {
    /// Bytes that may still be left here.
    fn room(&self) -> usize {
        let narrow: usize = self.narrow.iter().map(Vec::capacity).sum();
        let wide: usize = self.wide.iter().map(Vec::capacity).sum();
        KEPT_BYTES.saturating_sub(narrow * size_of::<u32>() + wide * size_of::<u64>())
    }
}

/// The shortest buffer that is long enough, and not so long that most of it
/// would be lost: a plan cuts its buffer to length. Buffers keep their length
/// on the shelf, and their old values.
fn take<T>(shelf: &mut Vec<Vec<T>>, len: usize) -> Option<Vec<T>> {
    let fitting =
        (shelf.iter().enumerate()).filter(|(_, buffer)| (len..=2 * len).contains(&buffer.len()));
    let (at, _) = fitting.min_by_key(|(_, buffer)| buffer.len())?;
    Some(shelf.swap_remove(at))
}

fn put<T>(shelf: &mut Vec<Vec<T>>, buffer: Vec<T>, room: usize) {
    let bytes = buffer.capacity() * size_of::<T>();
    if bytes == 0 || bytes > room {
        return;
    }
    if shelf.len() == KEPT_BUFFERS {
        let sizes = shelf.iter().enumerate();
        let Some((smallest, _)) = sizes.min_by_key(|(_, kept)| kept.len()) else {
            return;
        };
        shelf.swap_remove(smallest);
    }
    shelf.push(buffer);
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES, Kept, take_spare, with_shelf};

    #[test]
    fn a_buffer_left_is_taken_again() {
        let buffer = <u32 as Kept>::take(1000).expect("memory");
        let address = buffer.as_ptr().addr();
        Kept::put_back(buffer);
        let again = <u32 as Kept>::take(900).expect("memory");
        assert_eq!(again.as_ptr().addr(), address, "the same memory");
        assert!(again.len() >= 900, "long enough");
    }

    #[test]
    fn a_small_call_leaves_a_large_buffer_alone() {
        Kept::put_back(<u32 as Kept>::take(100_000).expect("memory"));
        let few = take_spare(10, 1000);
        let some = take_spare(1000, 1000);
        let wide = take_spare(100_000, u64::MAX);
        assert!(few.narrow.is_empty(), "kept inline");
        assert!(some.narrow.is_empty(), "most of it would be cut off");
        assert!(wide.narrow.is_empty(), "of the other width");
        assert!(
            take_spare(90_000, 1000).narrow.len() >= 90_000,
            "still there"
        );
    }

    #[test]
    fn a_thread_does_not_hoard() {
        for _ in 0..4 {
            Kept::put_back(<u64 as Kept>::take(KEPT_BYTES / 16).expect("memory"));
            Kept::put_back(<u32 as Kept>::take(KEPT_BYTES / 4).expect("memory"));
            Kept::put_back(<u32 as Kept>::take(KEPT_BYTES / 2).expect("memory"));
        }
        let room = with_shelf(|shelf| Some(shelf.room()));
        assert!(
            room.is_some_and(|room| room < KEPT_BYTES),
            "something is kept"
        );
    }
}
