//! Single elements, each at an offset of its own.
//!
//! Knows offsets and pointers. Knows nothing of any one type or reduction.
//!
//! Prefetching destinations 8 to 32 elements ahead was tried: within 5 % for
//! 4 M random elements of 64 MiB (Zen 4: 33 against 31 ms for `f32` sums, 29
//! against 28 to 31 for copies), as nothing keeps the processor from running
//! ahead by itself, and 50 % slower where the destinations are in cache.

#![allow(unsafe_code, reason = "goes to addresses")]

use super::reduce::Reducer;

/// An offset as plans store it.
pub(super) trait Offset: Copy {
    fn get(self) -> isize;
}

impl Offset for u32 {
    #[expect(
        clippy::cast_possible_wrap,
        reason = "the product with the scale lies in an allocation"
    )]
    #[inline(always)]
    fn get(self) -> isize {
        self as isize
    }
}

impl Offset for u64 {
    #[expect(
        clippy::cast_possible_wrap,
        clippy::cast_possible_truncation,
        reason = "the product with the scale lies in an allocation"
    )]
    #[inline(always)]
    fn get(self) -> isize {
        self as isize
    }
}

/// The `ElementsFn` of a reduction.
///
/// # Safety
///
/// As for `ElementsFn`, for elements of type `T`.
#[inline(always)]
pub(super) unsafe fn reduce<O, T, R>(dst: *mut u8, src: *const u8, offsets: &[O], scale: isize)
where
    O: Offset,
    T: Copy,
    R: Reducer<T>,
{
    let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
    for (position, offset) in offsets.iter().enumerate() {
        // SAFETY: the caller vouches for both elements.
        unsafe {
            let destination = dst.offset(offset.get() * scale);
            *destination = R::apply(*destination, *src.add(position));
        }
    }
}

/// The `ElementsFn` that replaces elements of `W` bytes.
///
/// # Safety
///
/// As for `ElementsFn`, for elements of `W` bytes of any alignment; those of
/// `dst` need not be initialised.
pub(super) unsafe fn copy<O, const W: usize>(
    dst: *mut u8,
    src: *const u8,
    offsets: &[O],
    scale: isize,
) where
    O: Offset,
{
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    for (position, offset) in offsets.iter().enumerate() {
        // SAFETY: the caller vouches for both elements.
        unsafe { *dst.offset(offset.get() * scale) = *src.add(position) };
    }
}

/// [`reduce`], compiled for AVX2 and F16C.
///
/// # Safety
///
/// As for [`reduce`], and the machine has both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn reduce_avx2<O, T, R>(dst: *mut u8, src: *const u8, offsets: &[O], scale: isize)
where
    O: Offset,
    T: Copy,
    R: Reducer<T>,
{
    // SAFETY: handed on as it is.
    unsafe { reduce::<O, T, R>(dst, src, offsets, scale) }
}
