//! Single elements, each at an offset of its own.
//!
//! Knows offsets and pointers. Knows nothing of any one type or reduction.

#![allow(unsafe_code, reason = "goes to addresses")]

use std::marker::PhantomData;

use num_traits::AsPrimitive;

use super::dispatch::Kernel;
use super::prefetch::{Level, prefetch};
use super::reduce::Reducer;
use super::{GatherBounds, Spread};
use crate::foreign;

/// Elements are prefetched twice, so many before their turn: into the second
/// cache, as runs are (`prefetch`), and into the first.
///
/// Without, the processor reads on by itself as far as it has room for
/// instructions. Sums of 4 M random elements of 64 MiB take 25 ms so, 33 if
/// prefetched once, at a distance of 16 into the first cache, and 36 if not at
/// all; copies 26 ms, 32 to 40 without (Zen 4, one core). Of elements in the
/// first cache prefetching costs 0.2 ns each, hence [`Spread`].
const FAR_DISTANCE: usize = 64;
const NEAR_DISTANCE: usize = 12;

/// Prefetches the element of `offset`.
#[inline(always)]
fn prefetch_element<O: AsPrimitive<isize>, T>(
    dst: *const T,
    offset: O,
    scale: isize,
    level: Level,
) {
    let element = dst.wrapping_offset(offset.as_().wrapping_mul(scale));
    prefetch(element, level);
}

/// The offsets that are prefetched far before their turn, one for each of the
/// first ones; none where all of them are near.
#[inline(always)]
fn far_offsets<O>(offsets: &[O], spread: Spread) -> &[O] {
    let far = offsets.get(FAR_DISTANCE..).filter(|_| !spread.is_near);
    far.unwrap_or_default()
}

/// The `ElementsFn` of a reduction, for elements of type `T`.
pub(super) struct Reduce<O, T, R>(PhantomData<(O, T, R)>);

impl<O: AsPrimitive<isize>, T: Copy, R: Reducer<T>> Kernel for Reduce<O, T, R> {
    type Entry = O;
    type Form<'a> = Spread;

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(dst: *mut u8, src: *const u8, offsets: &[O], spread: Spread) {
        let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
        if offsets.is_empty() {
            return;
        }
        // SAFETY: there is an update for every offset.
        let updates = unsafe { std::slice::from_raw_parts(src, offsets.len()) };
        let scale = spread.scale;
        if spread == Spread::NEIGHBOURS {
            // SAFETY: handed on as it is.
            unsafe { reduce_near::<O, T, R>(dst, offsets, updates) };
            return;
        }
        let later = far_offsets(offsets, spread);
        let nearer = offsets.get(NEAR_DISTANCE..).unwrap_or_default();
        let (early, last) = offsets.split_at(later.len());
        let (first, rest) = updates.split_at(early.len());
        for (((offset, &later), &near), &update) in early.iter().zip(later).zip(nearer).zip(first) {
            prefetch_element(dst, later, scale, Level::Second);
            prefetch_element(dst, near, scale, Level::First);
            // SAFETY: the caller vouches for the element.
            unsafe { reduce_one::<T, R>(dst.offset(offset.as_() * scale), update) };
        }
        for (offset, &update) in last.iter().zip(rest) {
            // SAFETY: the caller vouches for the element.
            unsafe { reduce_one::<T, R>(dst.offset(offset.as_() * scale), update) };
        }
    }
}

/// [`Reduce`] in a cache, at offsets that are not scaled: a product would be
/// half as much work again.
///
/// Offsets are read before the elements that came before them are written:
/// in bare loops 0.51 ns an element for 0.62 one by one, with offsets of 64 bits
/// (Zen 4).
///
/// # Safety
///
/// As for [`Reduce`].
#[inline(always)]
unsafe fn reduce_near<O: AsPrimitive<isize>, T: Copy, R: Reducer<T>>(
    dst: *mut T,
    offsets: &[O],
    updates: &[T],
) {
    const TOGETHER: usize = 4;
    let (offset_blocks, last_offsets) = offsets.as_chunks::<TOGETHER>();
    let (update_blocks, last_updates) = updates.as_chunks::<TOGETHER>();
    for (offsets, updates) in offset_blocks.iter().zip(update_blocks) {
        let offsets = offsets.map(AsPrimitive::as_);
        for (offset, &update) in offsets.into_iter().zip(updates) {
            // SAFETY: the caller vouches for the element.
            unsafe { reduce_one::<T, R>(dst.offset(offset), update) };
        }
    }
    for (offset, &update) in last_offsets.iter().zip(last_updates) {
        // SAFETY: as above.
        unsafe { reduce_one::<T, R>(dst.offset(offset.as_()), update) };
    }
}

/// # Safety
///
/// `dst` is valid for reads and writes.
#[inline(always)]
unsafe fn reduce_one<T: Copy, R: Reducer<T>>(dst: *mut T, update: T) {
    // SAFETY: the caller vouches for it.
    unsafe { *dst = R::apply(*dst, update) };
}

/// The `ElementsFn` that replaces elements of `W` bytes.
///
/// # Safety
///
/// As for `ElementsFn`, for elements of `W` bytes of any alignment; those of
/// `dst` need not be initialised.
pub(super) unsafe fn copy<O: AsPrimitive<isize>, const W: usize>(
    dst: *mut u8,
    src: *const u8,
    offsets: &[O],
    spread: Spread,
) {
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    let later = far_offsets(offsets, spread);
    let (early, offsets) = offsets.split_at(later.len());
    for (position, (offset, &later)) in early.iter().zip(later).enumerate() {
        prefetch_element(dst, later, spread.scale, Level::Second);
        // SAFETY: the caller vouches for both elements.
        unsafe { *dst.offset(offset.as_() * spread.scale) = *src.add(position) };
    }
    let src = src.wrapping_add(early.len());
    for (position, offset) in offsets.iter().enumerate() {
        // SAFETY: the caller vouches for both elements.
        unsafe { *dst.offset(offset.as_() * spread.scale) = *src.add(position) };
    }
}

/// The `CheckedGatherFn` of elements of `W` bytes.
///
/// Whether an offset is right is told while its element is on the way: 0.45 ns an element
/// in the second cache, where a pass over offsets and one over elements take 0.8 (Zen 4).
///
/// # Safety
///
/// As for `CheckedGatherFn`.
pub(super) unsafe fn gather_checked<O: AsPrimitive<isize>, const W: usize>(
    dst: *mut u8,
    src: *const u8,
    offsets: *const u8,
    count: usize,
    bounds: GatherBounds,
) -> bool {
    if bounds.below == 0 {
        return count == 0;
    }
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    let offsets = offsets.cast::<O>();
    let mut are_inside = true;
    let mut gather_one = |position: usize, offset: u64| {
        let offset: isize = offset.as_();
        let is_inside = offset.cast_unsigned() < bounds.below;
        are_inside &= is_inside;
        // Without a branch, which lets the next ones begin.
        let offset = if is_inside { offset } else { 0 };
        // SAFETY: an element of `src`, of which there is one at least; the caller vouches
        // for that of `dst`.
        unsafe { *dst.add(position) = *src.offset(offset) };
    };
    // Offset `$at` of those from `$first` on, loaded once: what is checked is what is followed,
    // though others may write it.
    macro_rules! offset {
        ($first:expr, $at:expr) => {
            // SAFETY: the caller vouches for `count` offsets.
            unsafe { foreign::load_at::<O, { $at }>(offsets.add($first)) }
        };
    }
    let mut gather_four = |first: usize| {
        gather_one(first, offset!(first, 0));
        gather_one(first + 1, offset!(first, 1));
        gather_one(first + 2, offset!(first, 2));
        gather_one(first + 3, offset!(first, 3));
    };
    let prefetch_far = |offset: u64| prefetch_element(src, offset, 1, Level::Second);
    let later = if bounds.is_near {
        0
    } else {
        count.saturating_sub(FAR_DISTANCE) / 4 * 4
    };
    for first in (0..later).step_by(4) {
        prefetch_far(offset!(first, FAR_DISTANCE));
        prefetch_far(offset!(first, FAR_DISTANCE + 1));
        prefetch_far(offset!(first, FAR_DISTANCE + 2));
        prefetch_far(offset!(first, FAR_DISTANCE + 3));
        gather_four(first);
    }
    let together = count / 4 * 4;
    (later..together).step_by(4).for_each(&mut gather_four);
    for position in together..count {
        gather_one(position, offset!(position, 0));
    }
    are_inside
}
