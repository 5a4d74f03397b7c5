//! Loops over rows of one length. A list of destination numbers selects the rows of one tensor. The
//! offset of a selected row is the destination number of this row times a stride.
//!
//! Other loops read a list of jobs. A job has the position to write, the position to read, and the
//! length of one run of elements. The loops of this module read destination numbers instead,
//! because all rows have one length, so jobs would differ only in the two positions. The module
//! knows destination numbers and pointers. The module does not know element types or reductions.

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
    /// Base address of the tensor in which the destination numbers (`numbers`) select rows: the
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

    /// Returns the address of the first element of the row that the destination number `number`
    /// selects.
    #[inline(always)]
    fn row_of(&self, number: u32) -> *mut T {
        let number = (number as usize).cast_signed();
        (self.numbered).wrapping_offset(number.wrapping_mul(self.form.unit))
    }

    /// The loops process pairs of rows: one row of `numbered` and one row of `other`. Returns the
    /// address of the first element of the row of `other` in the pair `position`. The number of
    /// this row is `form.sources[position]`, or `position` if `form.sources` is `None`.
    #[inline(always)]
    fn source_of(&self, position: usize) -> *const T {
        let number = match self.form.sources {
            Some(sources) => sources[position] as usize,
            None => position,
        };
        (self.other).wrapping_offset(number.cast_signed().wrapping_mul(self.form.step))
    }

    /// For each destination number in order, prefetches later rows, and then calls `f` with the
    /// address of the row of `numbered` and the address of the row of `other`. The method itself
    /// accesses no element.
    #[inline(always)]
    fn each(self, f: impl Fn(*mut T, *const T)) {
        let prefetching = Prefetching::new(&self);
        for (position, &number) in self.numbers.iter().enumerate() {
            prefetching.later(&self, position);
            f(self.row_of(number), self.source_of(position));
        }
    }
}

/// Prefetch distances, and numbers of cache lines to prefetch per row. The rows that the
/// destination numbers select are prefetched unless `RowsForm::is_near` is true. The rows of the
/// other tensor are prefetched only if `RowsForm::prefetches_sources` is true and
/// `RowsForm::sources` lists the rows, because the hardware prefetches rows that are in order.
#[derive(Clone, Copy)]
struct Prefetching {
    distance: Distance,
    /// Cache lines per row of the tensor in which the destination numbers select rows.
    lines: Lines,
    /// Cache lines per row of the other tensor.
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

    /// Prefetches the rows that belong to the positions `position` plus each prefetch distance.
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

    /// Some row lengths have a separate loop, see [`has_fixed_lengths`].
    #[inline(always)]
    unsafe fn run<const AVX2: bool>(
        dst: *mut u8,
        src: *const u8,
        numbers: &[u32],
        form: RowsForm<'_>,
    ) {
        /// Runs the separate loop for `form.len` if `$len` lists this length and the loop exists.
        /// Otherwise runs a loop that reads the length at run time.
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
        // of `dst` and each row of `src` has `form.len` valid elements, and that the rows of `dst`
        // and `src` do not overlap.
        unsafe { by_length!(1 2 3 4 8 16 24 32 64) };
    }
}

impl<T, L: Loop<T, R>, R> Reduce<T, L, R> {
    /// Reduces rows of `LEN` elements. The length is known at compile time.
    ///
    /// # Safety
    ///
    /// As for the `RowsFn` of [`Reduce`], for rows of `LEN` elements.
    #[inline(always)]
    unsafe fn each_array<const LEN: usize>(
        dst: *mut u8,
        src: *const u8,
        numbers: &[u32],
        form: RowsForm<'_>,
    ) {
        let form = RowsForm { len: LEN, ..form };
        Rows::<T>::new(dst, src, numbers, form).each(|dst, src| {
            // SAFETY: the caller guarantees that the row of `dst` and the row of `src` have `LEN`
            // valid contiguous elements each, and that the two rows do not overlap.
            unsafe { L::reduce_array(&mut *dst.cast::<[T; LEN]>(), &*src.cast::<[T; LEN]>()) };
        });
    }
}

/// Checks whether an instance of the kernel has loops for fixed row lengths. On x86-64, only the
/// instance for AVX2 has these loops. On other targets, the only instance has these loops, but was
/// not measured.
const fn has_fixed_lengths(avx2: bool) -> bool {
    avx2 || !cfg!(target_arch = "x86_64")
}

/// Checks whether rows of elements of type `T` have a loop for each fixed length. Only elements of
/// 4 bytes have these loops. With such loops for elements of 2 and 8 bytes too, the C library was 2
/// MB larger and exceeded its size limit.
const fn has_fixed_loop<T>() -> bool {
    size_of::<T>() == 4
}

/// Checks whether rows of `len` elements have a near loop. A near loop is a loop for one fixed
/// length. A near loop runs only if a cache holds the rows that the destination numbers select, and
/// the rows of the other tensor are in order. Near loops serve elements of sizes other than 4
/// bytes: elements of 4 bytes have loops for fixed lengths in every case, see [`has_fixed_loop`]. A
/// near loop does not prefetch and is short: all near loops together take 80 KB of code.
///
/// On a Xeon (Skylake), near loops (loops for one fixed row length) were compared with the loop for
/// any length. The ratio is the time of a near loop divided by the time of the loop for any length.
/// The ratio is 0.5 to 0.85 for rows of up to 8 elements of 8 bytes. The ratio is 0.65 to 0.95 for
/// rows of 8 to 32 elements of 2 bytes, and 0.5 to 0.65 for rows of 16 to 64 bytes. The ratio was
/// up to 2 for rows of 8 bytes with elements of less than 8 bytes, so these rows have no near loop.
const fn has_near_fixed_loop<T>(len: usize) -> bool {
    size_of::<T>() >= 8 || len * size_of::<T>() != 8
}

/// Checks whether short rows are processed in arrays of fixed lengths ([`reduce_short`]), instead
/// of by one loop over the whole row, which the compiler vectorises. On a Xeon (Skylake), the ratio
/// of the time with arrays to the time of the loop over the whole row is 1.1 to 1.5 for elements of
/// 1 byte. This ratio is up to 1.4 for elements of 2 bytes. The ratio is 0.5 to 1.07 for elements
/// of 4 and 8 bytes. Elements of 16 bytes were not measured.
const fn uses_arrays<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// Minimum number of elements of a row that is reduced by one loop over the whole row, which the
/// compiler vectorises. [`reduce_short`] reduces shorter rows in arrays of 8, 4, 2 and 1 elements
/// if [`uses_arrays`] is true. Rows of at least `SHORT` elements were not measured in arrays.
const SHORT: usize = 64;

/// Reduces a short row in arrays of 8 elements. The remaining elements are reduced in at most one
/// array each of 4, 2 and 1 elements.
#[inline(always)]
fn reduce_short<T: Copy, L: Loop<T, R>, R>(dst: &mut [T], src: &[T]) {
    let (blocks, mut dst) = dst.as_chunks_mut::<8>();
    let (updates, mut src) = src.as_chunks::<8>();
    for (dst, src) in blocks.iter_mut().zip(updates) {
        L::reduce_array(dst, src);
    }
    /// Reduces the remaining elements, in at most one array of each length `$len`.
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

/// The `RowsFn` that replaces each row of `dst` by its row of `src`. Elements have `W` bytes.
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
    // SAFETY: the caller guarantees that the rows of `src` can be read and the rows of `dst` can be
    // written, as `RowsFn` requires. The new `form` describes the same rows in bytes.
    unsafe { copy_rows(dst, src, numbers, form) }
}

/// As [`copy`], with the row length and the strides of `form` in bytes.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn copy_rows(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>) {
    /// Runs a separate loop for each row length in `$len`. Rows of other lengths have two more
    /// loops. The first of these two loops runs if a cache holds the rows that the destination
    /// numbers select (`is_near`) and the rows of the other tensor are in order. The second of
    /// these two loops runs in all other cases. A single loop for all cases spilled registers and
    /// executed 148 instructions per row of 256 bytes instead of 127. For rows that wait for
    /// memory, the single loop took up to 1.05 times as long as the separate loops (Xeon, Skylake).
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
    // SAFETY: the caller guarantees that the rows of `src` can be read and the rows of `dst` can be
    // written, as `RowsFn` requires.
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
        // SAFETY: the caller guarantees that `form.len` bytes can be read from `src` on and written
        // from `dst` on, and that the two rows do not overlap.
        unsafe { copy_bytes(dst, src, form.len) };
    });
}

/// The `RowsFn` that gathers rows of elements of `W` bytes. For each destination number in order,
/// the function copies the row of `src` that this number selects to the next row of `dst`.
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
    // In a gather, the destination numbers select the rows of `src`, which are read.
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
        // SAFETY: the caller guarantees that `form.len` elements can be read from `src` on and
        // written from `dst` on, and that the two rows do not overlap.
        unsafe { copy_bytes(dst.cast_mut().cast(), src.cast(), form.len * W) };
    });
}
