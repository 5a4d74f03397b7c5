//! Scratch memory that calls of one thread leave for the next.
//!
//! A buffer is taken out and put back, never borrowed: a worker that waits in
//! a join may enter the crate again on the same thread.

use std::cell::Cell;

use crate::error::ScatterError;
use crate::memory::zeroed;
use crate::plan::{Destinations, Spare};

/// Most bytes that one thread keeps between calls.
const KEPT_BYTES: usize = 128 << 20;

/// Most buffers of one kind that a thread keeps.
const KEPT_BUFFERS: usize = 3;

/// Each kind in the order in which its buffers were left.
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
        with_shelf(|shelf| put(&mut shelf.narrow, &mut shelf.wide, buffer));
    }
}

impl Kept for u64 {
    fn take(len: usize) -> Result<Vec<Self>, ScatterError> {
        with_shelf(|shelf| take(&mut shelf.wide, len)).map_or_else(|| zeroed(len), Ok)
    }

    fn put_back(buffer: Vec<Self>) {
        with_shelf(|shelf| put(&mut shelf.wide, &mut shelf.narrow, buffer));
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

/// The shortest buffer that is long enough, and not so long that most of it
/// would be lost: a plan cuts its buffer to length. Buffers keep their length
/// on the shelf, and their old values.
fn take<T>(shelf: &mut Vec<Vec<T>>, len: usize) -> Option<Vec<T>> {
    let fitting =
        (shelf.iter().enumerate()).filter(|(_, buffer)| (len..=2 * len).contains(&buffer.len()));
    let (at, _) = fitting.min_by_key(|(_, buffer)| buffer.len())?;
    Some(shelf.remove(at))
}

/// Room is made by those that have lain there longest: calls have become
/// larger or smaller since.
fn put<T, U>(shelf: &mut Vec<Vec<T>>, others: &mut Vec<Vec<U>>, buffer: Vec<T>) {
    let new = bytes(&buffer);
    if new == 0 || new > KEPT_BYTES {
        return;
    }
    if shelf.len() == KEPT_BUFFERS {
        shelf.remove(0);
    }
    let room = |kept: usize| kept + new <= KEPT_BYTES;
    while !shelf.is_empty() && !room(all_bytes(shelf) + all_bytes(others)) {
        shelf.remove(0);
    }
    while !others.is_empty() && !room(all_bytes(others)) {
        others.remove(0);
    }
    shelf.push(buffer);
}

fn bytes<T>(buffer: &Vec<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

fn all_bytes<T>(shelf: &[Vec<T>]) -> usize {
    shelf.iter().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES, Kept, all_bytes, take_spare, with_shelf};

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
    fn the_latest_buffers_stay() {
        for _ in 0..4 {
            Kept::put_back(<u64 as Kept>::take(KEPT_BYTES / 16).expect("memory"));
            Kept::put_back(<u32 as Kept>::take(KEPT_BYTES / 8).expect("memory"));
            Kept::put_back(<u32 as Kept>::take(KEPT_BYTES / 4 + 1).expect("memory"));
        }
        Kept::put_back(<u32 as Kept>::take(1000).expect("memory"));
        let kept = with_shelf(|shelf| {
            let all = all_bytes(&shelf.narrow) + all_bytes(&shelf.wide);
            Some((all, shelf.narrow.last().map(Vec::len)))
        });
        let (all, last) = kept.expect("a shelf");
        assert!(all <= KEPT_BYTES, "a thread does not hoard");
        assert_eq!(last, Some(1000), "found room");
    }
}
