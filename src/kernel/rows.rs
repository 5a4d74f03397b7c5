//! Rows of one length, each at a multiple of a number: what is left of a list
//! of jobs when all of them look alike.
//!
//! Knows numbers and pointers. Knows nothing of any one type or reduction.

#![allow(unsafe_code, reason = "makes slices of addresses")]

use super::Rows;
use super::copy::copy_bytes;
use super::reduce::Loop;
use super::reduce::Reducer;
use super::runs::prefetch_run;

/// Rows are fetched as many numbers before their turn. On one core, 262144
/// sums of rows of 64 `f32`, most of them to a few rows, take 2.9 ms so,
/// 3.7 ms with 6 and 4.1 with 4 (Zen 4); where the output is beyond all caches
/// it makes no difference from 6 on.
const AHEAD: usize = 16;

/// The first element of the row of `number`.
#[inline(always)]
fn row_of<T>(dst: *mut T, number: u32, unit: isize) -> *mut T {
    dst.wrapping_offset((number as usize).cast_signed().wrapping_mul(unit))
}

/// The `RowsFn` of a reduction.
///
/// # Safety
///
/// As for `RowsFn`, for elements of type `T`.
#[inline(always)]
pub(super) unsafe fn reduce<T, L, R>(dst: *mut u8, src: *const u8, numbers: &[u32], form: Rows)
where
    T: Copy,
    L: Loop<T, R>,
    R: Reducer<T>,
{
    if form.len == 0 {
        return;
    }
    let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
    for (position, &number) in numbers.iter().enumerate() {
        if let Some(&later) = numbers.get(position + AHEAD) {
            prefetch_run(row_of(dst, later, form.unit), form.len);
        }
        let dst = row_of(dst, number, form.unit);
        let src = src.wrapping_offset(position.cast_signed().wrapping_mul(form.step));
        // SAFETY: the caller vouches for `form.len` neighbours on both sides,
        // and for the sides being apart.
        let (dst, src) = unsafe {
            (
                std::slice::from_raw_parts_mut(dst, form.len),
                std::slice::from_raw_parts(src, form.len),
            )
        };
        L::reduce(dst, src);
    }
}

/// The `RowsFn` that replaces elements of `W` bytes.
///
/// # Safety
///
/// As for `RowsFn`, for elements of `W` bytes of any alignment; those of
/// `dst` need not be initialised.
pub(super) unsafe fn copy<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    numbers: &[u32],
    form: Rows,
) {
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    for (position, &number) in numbers.iter().enumerate() {
        if let Some(&later) = numbers.get(position + AHEAD) {
            prefetch_run(row_of(dst, later, form.unit), form.len);
        }
        let dst = row_of(dst, number, form.unit);
        let src = src.wrapping_offset(position.cast_signed().wrapping_mul(form.step));
        // SAFETY: the caller vouches for `form.len` neighbours on both sides,
        // and for the sides being apart.
        unsafe { copy_bytes(dst.cast(), src.cast(), form.len * W) };
    }
}

/// The `RowsFn` that collects rows of elements of `W` bytes: those of `src`
/// that the numbers name, one after another into `dst`.
///
/// # Safety
///
/// As for `RowsFn` with the sides exchanged, for elements of `W` bytes of any
/// alignment; those of `dst` need not be initialised.
pub(super) unsafe fn collect<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    numbers: &[u32],
    form: Rows,
) {
    let (dst, src) = (dst.cast::<[u8; W]>(), src.cast::<[u8; W]>());
    if form.len == 1 {
        for (position, &number) in numbers.iter().enumerate() {
            let dst = dst.wrapping_offset(position.cast_signed().wrapping_mul(form.step));
            // SAFETY: the caller vouches for both elements.
            unsafe { *dst = *row_of(src.cast_mut(), number, form.unit) };
        }
        return;
    }
    for (position, &number) in numbers.iter().enumerate() {
        if let Some(&later) = numbers.get(position + AHEAD) {
            prefetch_run(row_of(src.cast_mut(), later, form.unit), form.len);
        }
        let dst = dst.wrapping_offset(position.cast_signed().wrapping_mul(form.step));
        let src = row_of(src.cast_mut(), number, form.unit);
        // SAFETY: the caller vouches for `form.len` neighbours on both sides,
        // and for the sides being apart.
        unsafe { copy_bytes(dst.cast(), src.cast(), form.len * W) };
    }
}

/// [`reduce`], compiled for AVX2 and F16C.
///
/// # Safety
///
/// As for [`reduce`], and the machine has both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn reduce_avx2<T, L, R>(dst: *mut u8, src: *const u8, numbers: &[u32], form: Rows)
where
    T: Copy,
    L: Loop<T, R>,
    R: Reducer<T>,
{
    // SAFETY: handed on as it is.
    unsafe { reduce::<T, L, R>(dst, src, numbers, form) }
}
