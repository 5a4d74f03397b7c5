//! Scratch memory that calls leave for the next: one shelf for the process, and
//! some small ones for short buffers, so that threads that make many small
//! calls do not meet at it.
//!
//! A buffer is taken out and put back, never borrowed: a worker that waits in
//! a join may enter the crate again on the same thread. Nobody waits for a
//! shelf, and it takes no memory of its own. While someone else has it, or for
//! good where a process was forked meanwhile, calls have fresh buffers and drop
//! them.

use std::mem;
use std::sync::{Mutex, TryLockError};

use bytemuck::Zeroable;

use crate::error::ScatterError;
use crate::memory::zeroed;
use crate::plan::{Destinations, Spare};

/// Most bytes that are kept between calls, of all threads together.
const KEPT_BYTES: usize = 256 << 20;

/// Buffers of fewer bytes are short.
const SHORT_BYTES: usize = 64 << 10;

/// Shelves for short buffers, of which every thread has one by chance, and the
/// most bytes on one of them.
const SHORT_SHELVES: usize = 16;
const SHORT_KEPT_BYTES: usize = 4 * SHORT_BYTES;

/// Most buffers of one kind on a shelf: a call needs up to three, so that as
/// many callers as a machine has cores find theirs.
const KEPT_BUFFERS: usize = 48;

/// How often [`release_scratch`] asks for a shelf while others have it.
const TRIES: usize = 1000;

/// On lines of their own: to pass a line to and fro between cores is what
/// several of them are for.
#[repr(align(128))]
struct Place(Mutex<Shelf>);

/// The shelf for long buffers, then those for short ones.
static SHELVES: [Place; 1 + SHORT_SHELVES] =
    [const { Place(Mutex::new(Shelf::EMPTY)) }; 1 + SHORT_SHELVES];

pub(crate) struct Shelf {
    narrow: Slots<u32>,
    wide: Slots<u64>,
}

/// Buffers of one kind, in the order in which they were left.
pub(crate) struct Slots<T> {
    buffers: [Vec<T>; KEPT_BUFFERS],
    /// So many at the front hold one.
    used: usize,
    bytes: usize,
}

impl Shelf {
    const EMPTY: Self = Self {
        narrow: Slots::EMPTY,
        wide: Slots::EMPTY,
    };
}

/// Which shelf is for buffers of so many bytes, by the calling thread.
fn shelf_for(bytes: usize) -> usize {
    thread_local! {
        /// Lies where no other thread has one.
        static HERE: u8 = const { 0 };
    }
    if bytes >= SHORT_BYTES {
        return 0;
    }
    let here = HERE.with(|here| std::ptr::from_ref(here).addr());
    // Addresses of different threads differ in some bits in the middle.
    let mixed = (here as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    1 + usize::try_from(mixed).unwrap_or(0) % SHORT_SHELVES
}

/// Most bytes on a shelf.
fn room_of(shelf: usize) -> usize {
    match shelf {
        0 => KEPT_BYTES - SHORT_SHELVES * SHORT_KEPT_BYTES,
        _ => SHORT_KEPT_BYTES,
    }
}

/// Calls `f` with a shelf, unless someone else has it.
fn with_shelf<R>(shelf: usize, f: impl FnOnce(&mut Shelf) -> R) -> Option<R> {
    match SHELVES[shelf].0.try_lock() {
        Ok(mut shelf) => Some(f(&mut shelf)),
        // Nothing that is done with it stops half-way.
        Err(TryLockError::Poisoned(poisoned)) => Some(f(&mut poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Frees the scratch memory that is kept for later calls.
///
/// Calls keep what they needed besides their tensors, at most 256 MiB for the
/// whole process, so that the next one need not ask the system for it. A
/// program that will not scatter for a while may want it back. What calls of
/// other threads need at this moment is theirs, and kept when they return.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, release_scratch, scatter_nd};
///
/// let mut data = [0, 0];
/// scatter_nd(
///     TensorViewMut::contiguous(&mut data, &[2])?,
///     TensorView::contiguous(&[1_i64], &[1, 1])?,
///     TensorView::contiguous(&[7], &[1])?,
///     Reduction::None,
/// )?;
/// // No call is due for a while.
/// release_scratch();
/// assert_eq!(data, [0, 7]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub fn release_scratch() {
    for shelf in 0..SHELVES.len() {
        for _ in 0..TRIES {
            // Dropped when the shelf is free again.
            let all = with_shelf(shelf, |shelf| mem::replace(shelf, Shelf::EMPTY));
            if all.is_some() {
                break;
            }
            std::thread::yield_now();
        }
    }
}

/// A type of which calls have buffers.
pub(crate) trait Scratch: Zeroable {
    /// The buffers of this type on a shelf.
    fn slots(shelf: &mut Shelf) -> &mut Slots<Self>;

    /// A buffer of at least `len` elements, of any value.
    fn take(len: usize) -> Result<Vec<Self>, ScatterError> {
        take_kept(len).map_or_else(|| zeroed(len), Ok)
    }

    /// Leaves a buffer for the next call. Room is made by those that have lain there
    /// longest: calls have become larger or smaller since. They are freed one by
    /// one while nobody has the shelf, as that may take a while.
    fn put_back(mut buffer: Vec<Self>) {
        let new = bytes(&buffer);
        // By its length, as it will be looked for; what it holds counts.
        let shelf = shelf_for(buffer.len() * size_of::<Self>());
        if new == 0 || new > room_of(shelf) {
            return;
        }
        // Others may fill the room that was made; then the buffer is freed.
        for _ in 0..=2 * KEPT_BUFFERS {
            let freed = with_shelf(shelf, |content| {
                let kept = content.narrow.bytes + content.wide.bytes;
                let slots = Self::slots(content);
                if slots.used < KEPT_BUFFERS && kept + new <= room_of(shelf) {
                    slots.push(mem::take(&mut buffer));
                    return None;
                }
                let same = slots.remove(0);
                let other =
                    (same.is_none()).then(|| (content.narrow.remove(0), content.wide.remove(0)));
                Some((same, other))
            });
            if freed.flatten().is_none() {
                return;
            }
        }
    }
}

impl Scratch for u32 {
    fn slots(shelf: &mut Shelf) -> &mut Slots<u32> {
        &mut shelf.narrow
    }
}

impl Scratch for u64 {
    fn slots(shelf: &mut Shelf) -> &mut Slots<u64> {
        &mut shelf.wide
    }
}

/// A buffer of at least `len` elements, if one is kept.
fn take_kept<T: Scratch>(len: usize) -> Option<Vec<T>> {
    let shelf = shelf_for(len.saturating_mul(size_of::<T>()));
    with_shelf(shelf, |shelf| T::slots(shelf).take(len)).flatten()
}

/// A buffer for `tuples` destinations below `count`, if one is kept and needed.
pub(crate) fn take_spare(tuples: usize, count: u64) -> Spare {
    let mut spare = Spare::default();
    match tuples {
        ..=Destinations::INLINE => {}
        _ if count <= Destinations::NARROW => spare.narrow = take_kept(tuples).unwrap_or_default(),
        _ => spare.wide = take_kept(tuples).unwrap_or_default(),
    }
    spare
}

/// Leaves the buffers of a plan for the next call.
pub(crate) fn put_back(spare: Spare) {
    Scratch::put_back(spare.narrow);
    Scratch::put_back(spare.wide);
}

impl<T> Slots<T> {
    const EMPTY: Self = Self {
        buffers: [const { Vec::new() }; KEPT_BUFFERS],
        used: 0,
        bytes: 0,
    };

    /// The shortest buffer that is long enough, and not so long that most of it
    /// would be lost: a plan cuts its buffer to length. Buffers keep their
    /// length on the shelf, and their old values.
    fn take(&mut self, len: usize) -> Option<Vec<T>> {
        let fitting = (self.buffers[..self.used].iter().enumerate())
            .filter(|(_, buffer)| (len..=len.saturating_mul(2)).contains(&buffer.len()));
        let (at, _) = fitting.min_by_key(|(_, buffer)| buffer.len())?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<Vec<T>> {
        let used = self.buffers.get_mut(at..self.used)?;
        let buffer = mem::take(used.first_mut()?);
        used.rotate_left(1);
        self.used -= 1;
        self.bytes -= bytes(&buffer);
        Some(buffer)
    }

    /// There is a slot for it.
    fn push(&mut self, buffer: Vec<T>) {
        self.bytes += bytes(&buffer);
        self.buffers[self.used] = buffer;
        self.used += 1;
    }
}

fn bytes<T>(buffer: &Vec<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::{KEPT_BUFFERS, KEPT_BYTES, SHELVES, SHORT_BYTES, SHORT_KEPT_BYTES, Scratch, Slots};
    use super::{bytes, release_scratch, shelf_for, take_spare, with_shelf};

    /// Whoever looks at the shelf wants it alone; other tests may still put
    /// their buffers there, of other lengths.
    fn turn() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks again where another test had the shelf.
    fn until<R>(mut found: impl FnMut() -> Option<R>) -> R {
        (0..1_000_000)
            .find_map(|_| found())
            .expect("others do not have it for long")
    }

    fn kept_bytes() -> usize {
        (0..SHELVES.len())
            .map(|shelf| until(|| with_shelf(shelf, |it| it.narrow.bytes + it.wide.bytes)))
            .sum()
    }

    #[test]
    fn the_shortest_that_fits_is_taken() {
        let mut slots = Slots::<u32>::EMPTY;
        for len in [1000, 3000, 1500, 2000] {
            slots.push(vec![0; len]);
        }
        assert_eq!(slots.take(1100).map(|buffer| buffer.len()), Some(1500));
        assert_eq!(slots.take(1100).map(|buffer| buffer.len()), Some(2000));
        assert!(slots.take(1100).is_none(), "most would be cut off");
        assert!(slots.take(4000).is_none(), "too short");
        let left: Vec<_> = slots.buffers[..slots.used].iter().map(Vec::len).collect();
        assert_eq!(left, [1000, 3000], "in their order");
        assert_eq!(slots.bytes, 16_000, "counted");
    }

    #[test]
    fn small_calls_take_nothing() {
        let _turn = turn();
        Scratch::put_back(vec![0_u32; 60]);
        let few = take_spare(60, 1000);
        assert!(few.narrow.is_empty() && few.wide.is_empty(), "kept inline");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let _turn = turn();
        for _ in 0..3 {
            Scratch::put_back(<u64 as Scratch>::take(KEPT_BYTES / 16).expect("memory"));
            Scratch::put_back(<u32 as Scratch>::take(KEPT_BYTES / 8 + 1).expect("memory"));
            Scratch::put_back(<u32 as Scratch>::take(KEPT_BYTES / 4 + 1).expect("memory"));
            assert!(kept_bytes() <= KEPT_BYTES, "too much");
        }
        for len in [77_777, SHORT_BYTES / 8] {
            for _ in 0..2 * KEPT_BUFFERS {
                Scratch::put_back(vec![0_u32; len]);
            }
        }
        assert!(kept_bytes() <= KEPT_BYTES, "still");
        release_scratch();
        assert!(kept_bytes() < KEPT_BYTES / 8, "freed");
    }

    /// As where a process was forked while another thread had the shelf.
    #[test]
    fn nobody_waits_for_the_shelf() {
        let _turn = turn();
        for len in [1000, SHORT_BYTES] {
            let shelf = &SHELVES[shelf_for(len * 8)].0;
            let shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            let buffer = <u64 as Scratch>::take(len).expect("fresh memory");
            assert_eq!(bytes(&buffer), len * 8, "fresh");
            Scratch::put_back(buffer);
            release_scratch();
            drop(shelf);
        }
    }

    /// A long buffer of which a short call used the beginning stays a long one.
    #[test]
    fn short_shelves_hold_little() {
        let _turn = turn();
        let mut buffer = vec![0_u32; SHORT_KEPT_BYTES];
        buffer.truncate(500);
        Scratch::put_back(buffer);
        let shelf = shelf_for(2000);
        assert_ne!(shelf, 0, "a short one");
        let kept = until(|| with_shelf(shelf, |it| it.narrow.bytes + it.wide.bytes));
        assert!(kept <= SHORT_KEPT_BYTES, "{kept} bytes");
    }
}
