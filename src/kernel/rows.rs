//! Rows of one length, each at a multiple of a number: what is left of a list
//! of jobs when all of them look alike.
//!
//! Knows numbers and pointers. Knows nothing of any one type or reduction.

#![allow(unsafe_code, reason = "makes slices of addresses")]

use std::marker::PhantomData;
use std::mem::take;

use super::RowsForm;
use super::copy::copy_bytes;
use super::dispatch::Kernel;
use super::prefetch::{Distance, Lines};
use super::reduce::Loop;
use super::runs::slices;

/// Where rows of elements of type `T` lie: on the side that the numbers address, and on the
/// other one.
struct Rows<'a, T> {
    numbered: *mut T,
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

    /// The first element of the row of `number`.
    #[inline(always)]
    fn row_of(&self, number: u32) -> *mut T {
        let number = (number as usize).cast_signed();
        (self.numbered).wrapping_offset(number.wrapping_mul(self.form.unit))
    }

    /// The first element of the row that `position` in the list has on the other
    /// side.
    #[inline(always)]
    fn source_of(&self, position: usize) -> *const T {
        let number = match self.form.sources {
            Some(sources) => sources[position] as usize,
            None => position,
        };
        (self.other).wrapping_offset(number.cast_signed().wrapping_mul(self.form.step))
    }

    /// Calls `f` with the addresses of every row, in order, and prefetches those that
    /// come up. Touches none itself.
    #[inline(always)]
    fn each(self, f: impl Fn(*mut T, *const T)) {
        let prefetching = Prefetching::new(&self);
        for (position, &number) in self.numbers.iter().enumerate() {
            prefetching.later(&self, position);
            f(self.row_of(number), self.source_of(position));
        }
    }
}

/// Which rows are prefetched: those that come up, where the form says so of their side;
/// of the other side only where they are listed, as the machine itself prefetches those
/// in order.
#[derive(Clone, Copy)]
struct Prefetching {
    distance: Distance,
    lines: Lines,
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

    /// Prefetches rows that come up after `position`.
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

    /// With `AVX2`, or where a machine has but one set of instructions (there they were not
    /// measured), rows in a cache have loops of lengths.
    #[inline(always)]
    unsafe fn run<const AVX2: bool>(
        dst: *mut u8,
        src: *const u8,
        numbers: &[u32],
        form: RowsForm<'_>,
    ) {
        /// The loop for each of these lengths, else one that learns it from memory.
        macro_rules! by_length {
            ($($len:literal)*) => {
                match form.len {
                    0 => {}
                    $($len if const { by_length(AVX2) && has_loops_of_lengths::<T>() } => {
                        Self::each_array::<$len>(dst, src, numbers, form);
                    }
                    $len if const { by_length(AVX2) && has_near_loop::<T>($len) }
                        && form.is_near && form.sources.is_none() => {
                        let form = RowsForm { is_near: true, sources: None, ..form };
                        Self::each_array::<$len>(dst, src, numbers, form);
                    })*
                    len => Rows::<T>::new(dst, src, numbers, form).each(|dst, src| {
                        let (dst, src) = slices(dst, src, len);
                        if const { goes_in_arrays::<T>() } && len < SHORT {
                            reduce_short::<T, L, R>(dst, src);
                        } else {
                            L::reduce(dst, src);
                        }
                    }),
                }
            };
        }
        // SAFETY: each address is that of a row. The caller vouches that each row has
        // `form.len` elements on both sides, and that the sides share no byte.
        unsafe { by_length!(1 2 3 4 8 16 24 32 64) };
    }
}

impl<T, L: Loop<T, R>, R> Reduce<T, L, R> {
    /// Rows of a length that is known.
    ///
    /// # Safety
    ///
    /// As for [`Reduce`], for rows of `LEN`.
    #[inline(always)]
    unsafe fn each_array<const LEN: usize>(
        dst: *mut u8,
        src: *const u8,
        numbers: &[u32],
        form: RowsForm<'_>,
    ) {
        let form = RowsForm { len: LEN, ..form };
        Rows::<T>::new(dst, src, numbers, form).each(|dst, src| {
            // SAFETY: the caller vouches for `LEN` neighbours on both sides, and for the
            // sides being apart.
            unsafe { L::reduce_array(&mut *dst.cast::<[T; LEN]>(), &*src.cast::<[T; LEN]>()) };
        });
    }
}

/// Whether an instance has loops of lengths.
const fn by_length(avx2: bool) -> bool {
    avx2 || !cfg!(target_arch = "x86_64")
}

/// Elements of 4 bytes alone: with those of 2 and of 8 the library that C links grew by
/// 2 MB, and was larger than it shall be.
const fn has_loops_of_lengths<T>() -> bool {
    size_of::<T>() == 4
}

/// Whether rows of `len` elements of another size have such a loop, for ordered rows in a
/// cache and the best instruction set of the machine. The loop has no prefetch and is short:
/// all such loops take 80 KB of code. Rows of up to 8 elements of 8 bytes take 0.5 to 0.85 of
/// the time. Rows of 8 to 32 elements of 2 bytes take 0.65 to 0.95, and rows of 16 to 64
/// bytes 0.5 to 0.65. Rows of 8 bytes of small elements took up to twice the time. (A Xeon,
/// Skylake.)
const fn has_near_loop<T>(len: usize) -> bool {
    size_of::<T>() >= 8 || len * size_of::<T>() != 8
}

/// Whether short rows go in arrays instead of the compiler's own loop. Measured on a Xeon
/// (Skylake). Arrays take 1.1 to 1.5 of the loop's time for elements of 1 byte, and up to 1.4
/// for 2 bytes. They take 0.5 to 1.07 for 4 and 8 bytes. Elements of 16 bytes were not
/// measured.
const fn goes_in_arrays<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8)
}

/// Elements of a row from which on it has the compiler's own loop. Longer rows were not
/// measured in arrays.
const SHORT: usize = 64;

/// Goes through a short row in arrays of 8 and, at its end, of 4, 2 and 1.
#[inline(always)]
fn reduce_short<T: Copy, L: Loop<T, R>, R>(dst: &mut [T], src: &[T]) {
    let (blocks, mut dst) = dst.as_chunks_mut::<8>();
    let (updates, mut src) = src.as_chunks::<8>();
    for (dst, src) in blocks.iter_mut().zip(updates) {
        L::reduce_array(dst, src);
    }
    /// The rest, which has a length of these, each no more than once.
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
    debug_assert!(dst.is_empty() && src.is_empty(), "all of the row");
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
    form: RowsForm<'_>,
) {
    let bytes = |elements: isize| elements.wrapping_mul(W.cast_signed());
    let form = RowsForm {
        unit: bytes(form.unit),
        step: bytes(form.step),
        len: form.len * W,
        ..form
    };
    // SAFETY: the same rows, counted in bytes.
    unsafe { copy_rows(dst, src, numbers, form) }
}

/// [`copy`] of rows that are counted in bytes.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn copy_rows(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>) {
    /// A loop of its own for each of these lengths, and for rows in a cache that lie
    /// in order: beside what others need, the values of that one went through the
    /// stack, 148 instructions a row of 256 bytes where it takes 127. Rows that wait
    /// for memory took up to 1.05 of their time so (on a Xeon, Skylake).
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
    // SAFETY: handed on as it is.
    unsafe { by_length!(4 8 12 16 24 32 48 64 96 128 256) };
}

/// # Safety
///
/// As for [`copy_rows`].
#[inline(always)]
unsafe fn copy_each(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>) {
    Rows::<u8>::new(dst, src, numbers, form).each(|dst, src| {
        // SAFETY: the caller vouches for `form.len` neighbours on both sides, and
        // for the sides being apart.
        unsafe { copy_bytes(dst, src, form.len) };
    });
}

/// The `RowsFn` that gathers rows of elements of `W` bytes: those of `src`
/// that the numbers name, one after another into `dst`.
///
/// # Safety
///
/// As for `RowsFn` with the sides exchanged, for elements of `W` bytes of any
/// alignment; those of `dst` need not be initialised.
pub(super) unsafe fn gather<const W: usize>(
    dst: *mut u8,
    src: *const u8,
    numbers: &[u32],
    form: RowsForm<'_>,
) {
    let sources = None;
    let form = RowsForm { sources, ..form };
    // The numbers address what is read.
    let rows = Rows::<[u8; W]>::new(src.cast_mut(), dst.cast_const(), numbers, form);
    if form.len == 1 {
        for (position, &number) in numbers.iter().enumerate() {
            // SAFETY: the caller vouches for both elements.
            unsafe { *rows.source_of(position).cast_mut() = *rows.row_of(number) };
        }
        return;
    }
    rows.each(|src, dst| {
        // SAFETY: the caller vouches for `form.len` neighbours on both sides,
        // and for the sides being apart.
        unsafe { copy_bytes(dst.cast_mut().cast(), src.cast(), form.len * W) };
    });
}
