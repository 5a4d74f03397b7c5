//! Caches of scratch buffers, which calls leave for later calls.
//!
//! The process has one cache for long buffers and several caches for short buffers. Threads that
//! make many small calls therefore seldom contend for a cache.
//!
//! A call removes a buffer from a cache and later puts the buffer back. A call never borrows a
//! buffer from the cache, because a worker that waits in a join may enter the crate again on the
//! same thread.
//!
//! No call waits for a cache, and a cache allocates nothing. If another thread has the cache
//! locked, a call allocates a fresh buffer and drops it afterwards. In a forked child a cache may
//! stay locked for good.

use std::mem;
use std::sync::{Mutex, TryLockError};

use bytemuck::Zeroable;

use crate::error::ScatterError;
use crate::memory::{CacheLine, zeroed};
use crate::plan::{Destinations, Spare};

/// Maximum bytes of the unused scratch buffers in all [`CACHES`] together.
const KEPT_BYTES: usize = 256 << 20;

/// Size in bytes below which a buffer is short.
const SHORT_BYTES: usize = 64 << 10;

/// Number of caches for short buffers. A thread uses one of these caches, chosen by a hash.
const SHORT_CACHES: usize = 16;
/// Maximum bytes of the unused buffers in each cache for short buffers.
const SHORT_KEPT_BYTES: usize = 4 * SHORT_BYTES;

/// Maximum number of buffers of one element type in a cache. A call needs up to three buffers, so
/// 16 concurrent calls find their buffers.
const KEPT_BUFFERS: usize = 48;

/// Maximum number of times that [`release_scratch`] tries to lock a cache that other threads use.
const MAX_TRIES: usize = 1000;

/// A cache of buffers, aligned so that two caches share no cache line. Threads that use different
/// caches would otherwise move the shared line between their cores.
#[repr(align(128))]
struct Aligned(Mutex<Cache>);

/// The cache for long buffers, then the caches for short buffers.
static CACHES: [Aligned; 1 + SHORT_CACHES] =
    [const { Aligned(Mutex::new(Cache::EMPTY)) }; 1 + SHORT_CACHES];

/// Scratch buffers of each element type.
pub(crate) struct Cache {
    narrow: Slots<u32>,
    wide: Slots<u64>,
    lines: Slots<CacheLine>,
}

/// Buffers of one element type, the oldest first.
pub(crate) struct Slots<T> {
    buffers: [Vec<T>; KEPT_BUFFERS],
    /// Number of slots in use. The slots in use are the first slots of `buffers`.
    used: usize,
    /// Capacity of all buffers in bytes.
    bytes: usize,
}

impl Cache {
    const EMPTY: Self = Self {
        narrow: Slots::EMPTY,
        wide: Slots::EMPTY,
        lines: Slots::EMPTY,
    };

    /// Returns the capacity of all buffers in bytes.
    fn bytes(&self) -> usize {
        self.narrow.bytes + self.wide.bytes + self.lines.bytes
    }
}

/// Returns the position in [`CACHES`] of the cache of scratch buffers that the calling thread uses
/// for a buffer of `bytes` bytes.
fn cache_for(bytes: usize) -> usize {
    thread_local! {
        /// A variable whose address differs between threads.
        static HERE: u8 = const { 0 };
    }
    if bytes >= SHORT_BYTES {
        return 0;
    }
    let here = HERE.with(|here| std::ptr::from_ref(here).addr());
    // Addresses of different threads differ in some bits in the middle.
    let mixed = (here as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    1 + usize::try_from(mixed).unwrap_or(0) % SHORT_CACHES
}

/// Returns the maximum bytes of the unused buffers in the cache at position `cache` of [`CACHES`].
fn capacity_of(cache: usize) -> usize {
    match cache {
        0 => KEPT_BYTES - SHORT_CACHES * SHORT_KEPT_BYTES,
        _ => SHORT_KEPT_BYTES,
    }
}

/// Calls `f` with the cache at position `cache` of [`CACHES`]. Returns `None` without a call if
/// another thread has the cache locked.
fn with_cache<R>(cache: usize, f: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    match CACHES[cache].0.try_lock() {
        Ok(mut cache) => Some(f(&mut cache)),
        // A panic cannot leave a cache half changed, so a cache with a poisoned lock is valid.
        Err(TryLockError::Poisoned(poisoned)) => Some(f(&mut poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Frees the scratch memory that is kept for later calls.
///
/// A call keeps the memory that it needed in addition to its tensors, so that the next call need
/// not allocate it. The process keeps at most 256 MiB. A program that will not scatter for a while
/// may want the memory back. The function does not free memory that calls of other threads use at
/// this moment. Such memory is kept when those calls return.
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
/// // No call follows for a while.
/// release_scratch();
/// assert_eq!(data, [0, 7]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub fn release_scratch() {
    for cache in 0..CACHES.len() {
        for _ in 0..MAX_TRIES {
            // The buffers are dropped after the lock is released.
            let all = with_cache(cache, |cache| mem::replace(cache, Cache::EMPTY));
            if all.is_some() {
                break;
            }
            std::thread::yield_now();
        }
    }
}

/// An element type of scratch buffers.
pub(crate) trait Scratch: Zeroable {
    /// Returns the buffers of `cache` that have elements of this type.
    fn slots(cache: &mut Cache) -> &mut Slots<Self>;

    /// Returns a buffer of at least `len` elements, with any values.
    fn take(len: usize) -> Result<Vec<Self>, ScatterError> {
        take_kept(len).map_or_else(|| zeroed(len), Ok)
    }

    /// Puts a buffer into the cache for a later call.
    ///
    /// If the cache is full, the function first frees the oldest buffers: the sizes of calls have
    /// changed since these buffers were used. Each buffer is freed after the lock is released,
    /// because freeing may take a while.
    fn put_back(mut buffer: Vec<Self>) {
        let new = bytes(&buffer);
        // The cache is chosen by the buffer's length in bytes, as in `take`. The memory that the
        // cache keeps is counted by the buffer's capacity.
        let cache = cache_for(buffer.len() * size_of::<Self>());
        if new == 0 || new > capacity_of(cache) {
            return;
        }
        // Each attempt stores the buffer, or frees an old buffer to make room. Another thread may
        // use this room first. If all attempts fail, `buffer` is freed when the function returns.
        for _ in 0..=2 * KEPT_BUFFERS {
            let freed = with_cache(cache, |content| {
                let kept = content.bytes();
                let slots = Self::slots(content);
                if slots.used < KEPT_BUFFERS && kept + new <= capacity_of(cache) {
                    slots.push(mem::take(&mut buffer));
                    return None;
                }
                let same = slots.remove(0);
                let other = (same.is_none()).then(|| {
                    let Cache {
                        narrow,
                        wide,
                        lines,
                    } = content;
                    (narrow.remove(0), wide.remove(0), lines.remove(0))
                });
                Some((same, other))
            });
            if freed.flatten().is_none() {
                return;
            }
        }
    }
}

impl Scratch for u32 {
    fn slots(cache: &mut Cache) -> &mut Slots<u32> {
        &mut cache.narrow
    }
}

impl Scratch for u64 {
    fn slots(cache: &mut Cache) -> &mut Slots<u64> {
        &mut cache.wide
    }
}

impl Scratch for CacheLine {
    fn slots(cache: &mut Cache) -> &mut Slots<CacheLine> {
        &mut cache.lines
    }
}

/// Returns a buffer of at least `len` elements, if the cache for this length has one.
fn take_kept<T: Scratch>(len: usize) -> Option<Vec<T>> {
    let cache = cache_for(len.saturating_mul(size_of::<T>()));
    with_cache(cache, |cache| T::slots(cache).take(len)).flatten()
}

/// Returns a buffer for `tuples` destination numbers below `count`, if a plan needs one and a cache
/// has it.
pub(crate) fn take_spare(tuples: usize, count: u64) -> Spare {
    let mut spare = Spare::default();
    match tuples {
        ..=Destinations::INLINE => {}
        _ if count <= Destinations::NARROW => spare.narrow = take_kept(tuples).unwrap_or_default(),
        _ => spare.wide = take_kept(tuples).unwrap_or_default(),
    }
    spare
}

/// Puts the buffers of a plan into the caches for later calls.
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

    /// Removes and returns the shortest buffer of `len` to `2 * len` elements. A plan truncates its
    /// buffer, so most of a longer buffer would be lost. A cached buffer keeps its length and its
    /// old values.
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

    /// Adds a buffer. The caller has checked that a slot is free.
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

    use super::{CACHES, KEPT_BUFFERS, KEPT_BYTES, SHORT_BYTES, SHORT_KEPT_BYTES, Scratch, Slots};
    use super::{bytes, cache_for, release_scratch, take_spare, with_cache};

    /// Gives a test the caches alone. Other tests may still put buffers of other lengths there.
    fn lock_tests() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries again while another test has the cache locked.
    fn retry<R>(mut found: impl FnMut() -> Option<R>) -> R {
        (0..1_000_000)
            .find_map(|_| found())
            .expect("other tests release the lock soon")
    }

    fn kept_bytes() -> usize {
        (0..CACHES.len())
            .map(|cache| retry(|| with_cache(cache, |it| it.bytes())))
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
        assert!(slots.take(1100).is_none(), "longer than twice the length");
        assert!(slots.take(4000).is_none(), "too short");
        let left: Vec<_> = slots.buffers[..slots.used].iter().map(Vec::len).collect();
        assert_eq!(left, [1000, 3000], "in their old order");
        assert_eq!(slots.bytes, 16_000, "bytes of the two buffers");
    }

    #[test]
    fn small_calls_take_nothing() {
        let _turn = lock_tests();
        Scratch::put_back(vec![0_u32; 60]);
        let few = take_spare(60, 1000);
        assert!(
            few.narrow.is_empty() && few.wide.is_empty(),
            "numbers of small calls are stored inline"
        );
    }

    #[test]
    fn no_more_than_the_maximum_is_kept() {
        let _turn = lock_tests();
        for _ in 0..3 {
            Scratch::put_back(<u64 as Scratch>::take(KEPT_BYTES / 16).expect("memory"));
            Scratch::put_back(<u32 as Scratch>::take(KEPT_BYTES / 8 + 1).expect("memory"));
            Scratch::put_back(<u32 as Scratch>::take(KEPT_BYTES / 4 + 1).expect("memory"));
            assert!(kept_bytes() <= KEPT_BYTES, "more bytes than the maximum");
        }
        for len in [77_777, SHORT_BYTES / 8] {
            for _ in 0..2 * KEPT_BUFFERS {
                Scratch::put_back(vec![0_u32; len]);
            }
        }
        assert!(kept_bytes() <= KEPT_BYTES, "more bytes after many buffers");
        release_scratch();
        assert!(kept_bytes() < KEPT_BYTES / 8, "memory was not freed");
    }

    /// As in a process that was forked while another thread had the cache locked.
    #[test]
    fn no_call_waits_for_a_cache() {
        let _turn = lock_tests();
        for len in [1000, SHORT_BYTES] {
            let cache = &CACHES[cache_for(len * 8)].0;
            let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            let buffer = <u64 as Scratch>::take(len).expect("memory for a fresh buffer");
            assert_eq!(
                bytes(&buffer),
                len * 8,
                "a fresh buffer has exactly this length"
            );
            Scratch::put_back(buffer);
            release_scratch();
            drop(cache);
        }
    }

    /// A long buffer that a short call has truncated counts with its full capacity, so a cache for
    /// short buffers does not keep it.
    #[test]
    fn caches_for_short_buffers_hold_little() {
        let _turn = lock_tests();
        let mut buffer = vec![0_u32; SHORT_KEPT_BYTES];
        buffer.truncate(500);
        Scratch::put_back(buffer);
        let cache = cache_for(2000);
        assert_ne!(cache, 0, "2000 bytes belong in a cache for short buffers");
        let kept = retry(|| with_cache(cache, |it| it.bytes()));
        assert!(kept <= SHORT_KEPT_BYTES, "{kept} bytes");
    }
}
