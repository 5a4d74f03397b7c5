//! Loops over rows of one length. The offset of a row is its destination number times a stride.
//!
//! A list of destination numbers replaces a list of jobs that differ only in their positions. The
//! module knows destination numbers and pointers. It does not know element types or reductions.

#![allow(unsafe_code, reason = "makes slices from raw pointers")]

use std::marker::PhantomData;
use std::mem::take;

use super::RowsForm;
use super::copy::copy_bytes;
use super::dispatch::Kernel;
use super::prefetch::{Distance, Lines};
use super::reduce::Loop;
use super::runs::slices;

/// Placement of rows of elements of type `T` in the source and in the destination.
struct Rows<'a, T> {
    /// Base address of the tensor whose rows the destination numbers (`numbers`) select: the
    /// destination of a scatter, or the source of a gather.
    numbered: *mut T,
    /// Base address of the other tensor: the source of a scatter, or the destination of a gather.
    other: *const T,
    numbers: &'a [u32],
    form: RowsForm<'a>,
}

impl<'a, T> Rows<'a, T> {
    #[inline(always)]
    fn new(dst: *mut u8, src: *const u8, numbers: &'a [u32], form: RowsForm<'a>) -> Self {
        Self {
            numbered: dst.cast(),
            other: src.cast(),
            numbers,
            form,
        }
    }

    /// Returns the address of the first element of the row with the destination number `number`.
    #[inline(always)]
    fn row_of(&self, number: u32) -> *mut T {
        let number = (number as usize).cast_signed();
        (self.numbered).wrapping_offset(number.wrapping_mul(self.form.unit))
    }

    /// Returns the address of the first element of a row of `other`, the tensor that destination
    /// numbers do not address. The row belongs to the destination number at `position` in the list.
    #[inline(always)]
    fn source_of(&self, position: usize) -> *const T {
        let number = match self.form.sources {
            Some(sources) => sources[position] as usize,
            None => position,
        };
        (self.other).wrapping_offset(number.cast_signed().wrapping_mul(self.form.step))
    }

    /// Calls `f` with both addresses of every row, in order, and prefetches later rows. `each`
    /// itself does not access any element.
    #[inline(always)]
    fn each(self, f: impl Fn(*mut T, *const T)) {
        let prefetching = Prefetching::new(&self);
        for (position, &number) in self.numbers.iter().enumerate() {
            prefetching.later(&self, position);
            f(self.row_of(number), self.source_of(position));
        }
    }
}

/// Prefetch distance, and number of cache lines to prefetch per row. [`RowsForm`] says whether to
/// prefetch the rows that the destination numbers address, and whether to prefetch the rows of the
/// other tensor. Rows of the other tensor are prefetched only if `sources` lists them, because the
/// hardware prefetches rows that are in order.
#[derive(Clone, Copy)]
struct Prefetching {
    distance: Distance,
    /// Cache lines of a row of the tensor that the destination numbers address.
    lines: Lines,
    /// Cache lines of a row of the other tensor.
    source_lines: Lines,
}

impl Prefetching {
    #[inline(always)]
    fn new<T>(rows: &Rows<'_, T>) -> Self {
        let form = &rows.form;
        Self {
            distance: Distance::of(form.len * size_of::<T>()),
            lines: Lines::of_rows(rows.numbered.cast_const(), form.unit, form.len),
            source_lines: Lines::of_rows(rows.other, form.step, form.len),
        }
    }

    /// Prefetches the rows at the prefetch distances behind `position`.
    #[inline(always)]
    fn later<T>(&self, rows: &Rows<'_, T>, position: usize) {
        let form = &rows.form;
        let prefetches_source = form.prefetches_sources && form.sources.is_some();
        if form.is_near && !prefetches_source {
            return;
        }
        for (distance, level) in self.distance.each() {
            let later = position + distance;
            let Some(&number) = rows.numbers.get(later) else {
                continue;
            };
            if !form.is_near {
                self.lines.prefetch(rows.row_of(number), level);
            }
            if prefetches_source {
                self.source_lines.prefetch(rows.source_of(later), level);
            }
        }
    }
}

/// The `RowsFn` of a reduction, for elements of type `T`.
pub(super) struct Reduce<T, L, R>(PhantomData<(T, L, R)>);

impl<T: Copy, L: Loop<T, R>, R> Kernel for Reduce<T, L, R> {
    type Entry = u32;
    type Form<'a> = RowsForm<'a>;

    /// Some lengths have their own loop, see [`has_fixed_lengths`].
    #[inline(always)]
    unsafe fn run<const AVX2: bool>(
        dst: *mut u8,
        src: *const u8,
        numbers: &[u32],
        form: RowsForm<'_>,
    ) {
        /// Runs the loop for a length in the list, or else a loop that reads the length at run
        /// time.
        macro_rules! by_length {
            ($($len:literal)*) => {
                match form.len {
                    0 => {}
                    $($len if const { has_fixed_lengths(AVX2) && has_fixed_loop::<T>() } => {
                        Self::each_array::<$len>(dst, src, numbers, form);
                    }
                    $len if const { has_fixed_lengths(AVX2) && has_near_fixed_loop::<T>($len) }
                        && form.is_near && form.sources.is_none() => {
                        let form = RowsForm { is_near: true, sources: None, ..form };
                        Self::each_array::<$len>(dst, src, numbers, form);
                    })*
                    len => Rows::<T>::new(dst, src, numbers, form).each(|dst, src| {
                        let (dst, src) = slices(dst, src, len);
                        if const { uses_arrays::<T>() } && len < SHORT {
                            reduce_short::<T, L, R>(dst, src);
                        } else {
                            L::reduce(dst, src);
                        }
                    }),
                }
            };
        }
        // SAFETY: `Rows::each` passes only addresses of rows. The caller guarantees that each row
        // has `form.len` elements on both sides, and that the sides do not overlap.
        unsafe { by_length!(1 2 3 4 8 16 24 32 64) };
    }
}

impl<T, L: Loop<T, R>, R> Reduce<T, L, R> {
    /// Reduces rows of a length that is known at compile time.
    ///
    /// # Safety
    ///
    /// As for [`Reduce`], for rows of `LEN` elements.
    #[inline(always)]
    unsafe fn each_array<const LEN: usize>(
        dst: *mut u8,
        src: *const u8,
        numbers: &[u32],
        form: RowsForm<'_>,
    ) {
        let form = RowsForm { len: LEN, ..form };
        Rows::<T>::new(dst, src, numbers, form).each(|dst, src| {
            // SAFETY: the caller guarantees `LEN` contiguous elements on both sides, and that the
            // sides do not overlap.
            unsafe { L::reduce_array(&mut *dst.cast::<[T; LEN]>(), &*src.cast::<[T; LEN]>()) };
        });
    }
}

/// Checks whether an instance of the kernel has loops for fixed row lengths. Instances for AVX2
/// have these loops. Instances for targets with only one instruction set have them too, but were
/// not measured.
const fn has_fixed_lengths(avx2: bool) -> bool {
    avx2 || !cfg!(target_arch = "x86_64")
}

/// Checks whether rows of elements of type `T` have a loop for each fixed length. Only elements of
/// 4 bytes have these loops. Loops for elements of 2 and 8 bytes made the C library 2 MB larger,
/// which exceeds its size limit.
const fn has_fixed_loop<T>() -> bool {
    size_of::<T>() == 4
}

/// Checks whether rows of `len` elements have a near loop: a loop for this fixed length that is
/// used only if a cache holds the rows and the sources are in order. Near loops are for elements of
/// sizes other than 4 bytes, because rows of 4-byte elements have a loop for every case (see
/// [`has_fixed_loop`]). A near loop has no prefetching and is short: all near loops together take
/// 80 KB of code.
///
/// Measured on a Xeon (Skylake), relative to the loop for any length: rows of up to 8 elements of
/// 8 bytes take 0.5 to 0.85 of the time. Rows of 8 to 32 elements of 2 bytes take 0.65 to 0.95.
/// Rows of 16 to 64 bytes take 0.5 to 0.65. Rows of 8 bytes with elements of less than 8 bytes took
/// up to twice the time, so these rows have no near loop.
const fn has_near_fixed_loop<T>(len: usize) -> bool {
    size_of::<T>() >= 8 || len * size_of::<T>() != 8
}

/// Checks whether short rows are processed in arrays of fixed lengths, instead of by a loop that
/// the compiler vectorises. Measured on a Xeon (Skylake), relative to the loop of the compiler:
/// arrays take 1.1 to 1.5 of the time for elements of 1 byte, and up to 1.4 for 2 bytes. Arrays
/// take 0.5 to 1.07 of the time for 4 and 8 bytes. Elements of 16 bytes were not measured.
const fn uses_arrays<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// Elements of the shortest row that uses the loop of the compiler instead of arrays. Longer rows
/// were not measured in arrays.
const SHORT: usize = 64;

/// Reduces a short row in arrays of 8 elements, and at its end of 4, 2 and 1 elements.
#[inline(always)]
fn reduce_short<T: Copy, L: Loop<T, R>, R>(dst: &mut [T], src: &[T]) {
    let (blocks, mut dst) = dst.as_chunks_mut::<8>();
    let (updates, mut src) = src.as_chunks::<8>();
    for (dst, src) in blocks.iter_mut().zip(updates) {
        L::reduce_array(dst, src);
    }
    /// Reduces the rest of the row, which is at most one array of each length.
    macro_rules! rest {
        ($($len:literal)*) => {$(
            if let Some((update, later)) = src.split_first_chunk::<$len>()
                && let Some((value, others)) = take(&mut dst).split_first_chunk_mut::<$len>()
            {
                L::reduce_array(value, update);
                (dst, src) = (others, later);
            }
        )*};
    }
    rest!(4 2 1);
    debug_assert!(dst.is_empty() && src.is_empty(), "the whole row is reduced");
}

/// The `RowsFn` that replaces elements of `W` bytes.
///
/// # Safety
///
/// As for `RowsFn`, for elements of `W` bytes of any alignment. The elements of `dst` need not be
/// initialised.
pub(super) unsafe fn copy<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    numbers: &[u32],
    form: RowsForm<'_>,
) {
    let bytes = |elements: isize| elements.wrapping_mul(W.cast_signed());
    let form = RowsForm {
        unit: bytes(form.unit),
        step: bytes(form.step),
        len: form.len * W,
        ..form
    };
    // SAFETY: the caller guarantees the rows. `form` has the same rows, with sizes in bytes.
    unsafe { copy_rows(dst, src, numbers, form) }
}

/// [`copy`] of rows whose sizes are in bytes.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn copy_rows(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>) {
    /// Runs a separate loop for each length in the list, and another loop for rows that are in a
    /// cache and whose sources are in order. One loop for all forms spills registers: 148
    /// instructions per row of 256 bytes instead of 127. The one loop took up to 1.05 times as long
    /// for rows that wait for memory (on a Xeon, Skylake).
    macro_rules! by_length {
        ($($len:literal)*) => {
            match form {
                $(RowsForm { len: $len, .. } => {
                    copy_each(dst, src, numbers, RowsForm { len: $len, ..form });
                })*
                RowsForm { sources: None, is_near: true, .. } => {
                    let form = RowsForm { sources: None, is_near: true, ..form };
                    copy_each(dst, src, numbers, form);
                }
                _ => copy_each(dst, src, numbers, form),
            }
        };
    }
    // SAFETY: the caller guarantees the contract of this function.
    unsafe { by_length!(4 8 12 16 24 32 48 64 96 128 256) };
}

/// Copies each row.
///
/// # Safety
///
/// As for [`copy_rows`].
#[inline(always)]
unsafe fn copy_each(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>) {
    Rows::<u8>::new(dst, src, numbers, form).each(|dst, src| {
        // SAFETY: the caller guarantees `form.len` contiguous bytes on both sides, and that the
        // sides do not overlap.
        unsafe { copy_bytes(dst, src, form.len) };
    });
}

/// The `RowsFn` that gathers rows of elements of `W` bytes. For each destination number in order,
/// the function copies the row of `src` with this number to the next row of `dst`.
///
/// # Safety
///
/// As for `RowsFn` with source and destination exchanged, for elements of `W` bytes of any
/// alignment. The elements of `dst` need not be initialised.
pub(super) unsafe fn gather<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    numbers: &[u32],
    form: RowsForm<'_>,
) {
    let sources = None;
    let form = RowsForm { sources, ..form };
    // The destination numbers address the rows to read.
    let rows = Rows::<[u8; W]>::new(src.cast_mut(), dst.cast_const(), numbers, form);
    if form.len == 1 {
        for (position, &number) in numbers.iter().enumerate() {
            // SAFETY: the caller guarantees that the source element can be read and that the
            // destination element can be written.
            unsafe { *rows.source_of(position).cast_mut() = *rows.row_of(number) };
        }
        return;
    }
    rows.each(|src, dst| {
        // SAFETY: the caller guarantees `form.len` contiguous elements on both sides, and that the
        // sides do not overlap.
        unsafe { copy_bytes(dst.cast_mut().cast(), src.cast(), form.len * W) };
    });
}
