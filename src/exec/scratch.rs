//! Caches of scratch buffers. A call puts its scratch buffers into a cache, and later calls reuse
//! the buffers.
//!
//! The process has one cache for long buffers and 16 caches for short buffers. Threads that make
//! many small calls therefore seldom contend for one cache.
//!
//! A call removes a buffer from the cache, uses the buffer, and then puts it back. A call does not
//! keep the cache locked while it uses a buffer. The reason is that a worker that waits in a join
//! of the thread pool may begin another call of this crate on the same thread.
//!
//! No scatter or gather waits for the lock of a cache, and a cache allocates no memory itself. If
//! the cache is locked when a call needs a buffer, the call allocates a new buffer. If the cache is
//! locked when a call puts a buffer back, the buffer is freed. Waiting could last forever in a
//! forked child: a cache that another thread had locked at the fork stays locked.

use std::mem;
use std::sync::TryLockError;

use bytemuck::Zeroable;

use crate::error::ScatterError;
use crate::memory::{CacheLine, zeroed};
use crate::plan::{Destinations, Spare};
use crate::sync::{Mutex, yield_now};

/// Maximum bytes of all scratch buffers in [`CACHES`] together.
const KEPT_BYTES: usize = 256 << 20;

/// Size in bytes. A buffer of fewer bytes is short, any other buffer is long.
const SHORT_BYTES: usize = 64 << 10;

/// Number of caches for short buffers. Each thread uses one of these caches, chosen by a hash of an
/// address.
const SHORT_CACHES: usize = if cfg!(all(test, loom)) { 1 } else { 16 };
/// Maximum bytes of the buffers in each cache for short buffers.
const SHORT_KEPT_BYTES: usize = 4 * SHORT_BYTES;

/// Maximum number of buffers of one element type in a cache. A call needs at most three buffers, so
/// this number is enough for 16 concurrent calls. In the models of loom, two calls compete for one
/// place.
const KEPT_BUFFERS: usize = if cfg!(all(test, loom)) { 1 } else { 48 };

/// Maximum number of times that [`release_scratch`] tries to lock one cache.
const MAX_TRIES: usize = 1000;

/// A cache of buffers, aligned so that no cache line has parts of two caches. Without the
/// alignment, threads that use different caches could contend for one cache line (false sharing).
#[repr(align(128))]
struct Aligned(Mutex<Cache>);

/// All caches. Entry 0 is the cache for long buffers. The other entries are the caches for short
/// buffers.
#[cfg(not(all(test, loom)))]
static CACHES: [Aligned; 1 + SHORT_CACHES] =
    [const { Aligned(Mutex::new(Cache::EMPTY)) }; 1 + SHORT_CACHES];
#[cfg(all(test, loom))]
loom::lazy_static! {
    static ref CACHES: [Aligned; 1 + SHORT_CACHES] =
        std::array::from_fn(|_| Aligned(Mutex::new(Cache::EMPTY)));
}

/// A cache: the scratch buffers of each element type.
pub(crate) struct Cache {
    narrow: Slots<u32>,
    wide: Slots<u64>,
    lines: Slots<CacheLine>,
}

/// Buffers of one element type. The buffer that was put back longest ago is first.
pub(crate) struct Slots<T> {
    buffers: [Vec<T>; KEPT_BUFFERS],
    /// Number of cached buffers. The cached buffers occupy the first slots of `buffers`.
    used: usize,
    /// Total capacity of the cached buffers in bytes.
    bytes: usize,
}

impl Cache {
    const EMPTY: Self = Self {
        narrow: Slots::EMPTY,
        wide: Slots::EMPTY,
        lines: Slots::EMPTY,
    };

    /// Returns the total capacity of all buffers of the cache, in bytes.
    fn bytes(&self) -> usize {
        self.narrow.bytes + self.wide.bytes + self.lines.bytes
    }
}

/// Returns the position in [`CACHES`] of the cache that the calling thread uses for a buffer of
/// `bytes` bytes.
fn cache_for(bytes: usize) -> usize {
    thread_local! {
        /// A thread-local variable. Only the address of the variable is used. The address differs
        /// between threads.
        static HERE: u8 = const { 0 };
    }
    if bytes >= SHORT_BYTES {
        return 0;
    }
    let here = HERE.with(|here| std::ptr::from_ref(here).addr());
    // The addresses for different threads differ in some middle bits. The multiplication carries
    // these bits into the upper half.
    let mixed = (here as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    1 + usize::try_from(mixed).unwrap_or(0) % SHORT_CACHES
}

/// Returns the maximum bytes of the buffers in the cache at position `cache` of [`CACHES`].
fn capacity_of(cache: usize) -> usize {
    match cache {
        0 => KEPT_BYTES - SHORT_CACHES * SHORT_KEPT_BYTES,
        _ => SHORT_KEPT_BYTES,
    }
}

/// Locks the cache at position `cache` of [`CACHES`], calls `f` with this cache, and returns the
/// result of `f`. If the cache is already locked, returns `None` and does not call `f`.
fn with_cache<R>(cache: usize, f: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    match CACHES[cache].0.try_lock() {
        Ok(mut cache) => Some(f(&mut cache)),
        // A panic cannot leave a cache in an inconsistent state, so a cache with a poisoned lock is
        // valid.
        Err(TryLockError::Poisoned(poisoned)) => Some(f(&mut poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Frees the scratch memory that this process keeps for later calls.
///
/// A call may need memory in addition to its tensors. This scratch memory is kept after the call,
/// so that later calls need not allocate it. The process keeps at most 256 MiB. A program can call
/// this function if it will make no further calls of this crate for a while. The function does not
/// free scratch memory that calls on other threads are using. When such a call returns, its scratch
/// memory is kept again.
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
            // The buffers are moved out of the cache here and dropped after the lock is released.
            let all = with_cache(cache, |cache| mem::replace(cache, Cache::EMPTY));
            if all.is_some() {
                break;
            }
            yield_now();
        }
    }
}

/// An element type that scratch buffers can have.
pub(crate) trait Scratch: Zeroable {
    /// Returns the buffers of `cache` that have elements of this type.
    fn slots(cache: &mut Cache) -> &mut Slots<Self>;

    /// Returns a buffer of at least `len` elements with arbitrary values. If the cache for buffers
    /// of this length has a suitable buffer, the function returns this buffer. Otherwise the
    /// function allocates a new buffer.
    fn take(len: usize) -> Result<Vec<Self>, ScatterError> {
        take_kept(len).map_or_else(|| zeroed(len), Ok)
    }

    /// Puts a buffer into the cache for a later call.
    ///
    /// If the cache has no room, the function first removes buffers that were put back longest ago,
    /// because the current calls may need other sizes. The removed buffers are freed after the lock
    /// is released, because freeing memory may be slow. If the cache is locked, or if `buffer` is
    /// larger than the cache may keep, `buffer` is freed.
    fn put_back(mut buffer: Vec<Self>) {
        let new = bytes(&buffer);
        // The length of `buffer` in bytes determines which cache of [`CACHES`] gets `buffer`. The
        // capacity of `buffer` counts towards the maximum bytes of this cache.
        let cache = cache_for(buffer.len() * size_of::<Self>());
        if new == 0 || new > capacity_of(cache) {
            return;
        }
        // Each attempt either stores `buffer`, or removes and frees old buffers to make room.
        // Another thread may use this room before the next attempt. If all attempts fail, `buffer`
        // is freed when the function returns.
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

/// Returns a buffer of at least `len` elements from the cache for buffers of this length. Returns
/// `None` if the cache has no suitable buffer or is locked.
fn take_kept<T: Scratch>(len: usize) -> Option<Vec<T>> {
    let cache = cache_for(len.saturating_mul(size_of::<T>()));
    with_cache(cache, |cache| T::slots(cache).take(len)).flatten()
}

/// Returns a cached buffer for the destination numbers of a plan. The plan has `tuples` destination
/// numbers, all below `count`. The result is empty if the plan stores its numbers inline, or if the
/// cache has no suitable buffer.
pub(crate) fn take_spare(tuples: usize, count: u64) -> Spare {
    let mut spare = Spare::default();
    match tuples {
        ..=Destinations::INLINE => {}
        _ if count <= Destinations::NARROW => spare.narrow = take_kept(tuples).unwrap_or_default(),
        _ => spare.wide = take_kept(tuples).unwrap_or_default(),
    }
    spare
}

/// Puts the buffers that a plan no longer needs into the caches, for later calls.
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

    /// Removes and returns the shortest buffer that has at least `len` and at most twice `len`
    /// elements. Longer buffers are not used, because a plan truncates its buffer to `len`
    /// elements. The truncated buffer would then be cached with this shorter length. The returned
    /// buffer has the length and the values with which it was put back.
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

    /// Adds a buffer behind the cached buffers. The caller has checked that the cache has fewer
    /// than [`KEPT_BUFFERS`] buffers.
    fn push(&mut self, buffer: Vec<T>) {
        self.bytes += bytes(&buffer);
        self.buffers[self.used] = buffer;
        self.used += 1;
    }
}

fn bytes<T>(buffer: &Vec<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::{CACHES, KEPT_BUFFERS, KEPT_BYTES, SHORT_BYTES, SHORT_KEPT_BYTES, Scratch, Slots};
    use super::{bytes, cache_for, release_scratch, take_spare, with_cache};

    /// Returns a lock that only one test of this module can hold at a time. Tests of other modules
    /// do not take this lock, so they may use the caches meanwhile.
    fn lock_tests() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `found` again until `found` returns a value. `found` returns `None` while another test
    /// has the cache locked.
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

    /// The test keeps a cache locked, as in a process that was forked while another thread had the
    /// cache locked.
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

    /// A long buffer that was truncated to a short length is not kept in a cache for short buffers,
    /// because its full capacity counts towards the limit of the cache.
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
