//! Index tensors.
//!
//! This module knows the memory, the layout and the integer types of indices, and how to read
//! indices. This module does not know what an index addresses.

#![expect(
    unsafe_code,
    reason = "reads elements at offsets that are taken from the layout"
)]

use super::any::AnyView;
use super::layout::{Layout, offset_of};
use super::memory::{Contents, Source};
use super::typed::TensorView;
use crate::element::{DType, Element, IndexType};
use crate::error::ScatterError;
use crate::foreign;

/// Number of elements that [`Integers::for_each`] reads at a time.
const BLOCK: usize = 128;

/// Evaluates `$call`. In `$call`, `$index` is the Rust type that the [`IndexType`] `$kind` names.
macro_rules! for_index_type {
    ($kind:expr, $index:ident => $call:expr) => {
        $crate::operand::indices::for_index_type!(
            $kind, $index => $call; I32 = i32, I64 = i64, U32 = u32, U64 = u64
        )
    };
    ($kind:expr, $index:ident => $call:expr; $($variant:ident = $type:ty),*) => {
        match $kind {
            $($crate::element::IndexType::$variant => {
                type $index = $type;
                $call
            })*
        }
    };
}

pub(crate) use for_index_type;

/// A Rust integer type that indices may have: `i8` to `i64`, `isize`, `u8` to `u64` or `usize`.
pub trait Index: Element {}

macro_rules! impl_index {
    ($($type:ty),*) => {$( impl Index for $type {} )*};
}

impl_index!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

/// A Rust type in which indices are read: the type of an [`IndexType`].
pub(crate) trait Widened: Index + Default {
    /// Converts an integer of a narrower type than `Self`.
    fn widened(narrow: i32) -> Self;
}

macro_rules! impl_widened {
    ($($type:ty),*) => {$(
        impl Widened for $type {
            #[allow(
                clippy::cast_lossless,
                clippy::cast_sign_loss,
                reason = "an unsigned type gets only integers from unsigned types"
            )]
            #[inline(always)]
            fn widened(narrow: i32) -> Self {
                narrow as Self
            }
        }
    )*};
}

impl_widened!(i32, i64, u32, u64);

/// A tensor of indices of any integer type.
///
/// A [`TensorView`] of an [`Index`] type and an [`AnyView`] convert into `Indices`. With the
/// feature `ndarray`, a reference to an array of integers also converts into `Indices`. A call
/// returns [`ScatterError::IndexType`] if the elements are not integers. Strides may be positive,
/// negative or 0.
#[derive(Clone, Copy, Debug)]
pub struct Indices<'a>(AnyView<'a>);

impl<'a, I: Index> From<TensorView<'a, I>> for Indices<'a> {
    #[inline]
    fn from(view: TensorView<'a, I>) -> Self {
        Self(view.into())
    }
}

impl<'a> From<AnyView<'a>> for Indices<'a> {
    #[inline]
    fn from(view: AnyView<'a>) -> Self {
        Self(view)
    }
}

impl<'a> Indices<'a> {
    /// Returns the index tensor as an operand of a call.
    #[inline]
    pub(crate) fn as_source(&self) -> Source<'_> {
        self.0.as_source()
    }

    #[inline]
    pub(crate) fn layout(&self) -> &Layout<'a> {
        &self.0.memory.layout
    }

    #[inline]
    pub(crate) fn contents(&self) -> Contents {
        self.0.contents
    }

    /// Checks that the elements are integers of a type that indices may have.
    #[inline]
    pub(crate) fn integers(&self) -> Result<Integers<'_>, ScatterError> {
        let (indices, actual) = (&self.0, self.0.dtype);
        match IndexType::of(actual) {
            Some(kind) => Ok(Integers { indices, kind }),
            None => Err(ScatterError::IndexType { actual }),
        }
    }
}

/// Indices whose elements are read as integers of the type `kind`. [`Indices::integers`] has checked
/// the type of the elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers<'a> {
    indices: &'a AnyView<'a>,
    kind: IndexType,
}

impl<'a> Integers<'a> {
    pub(crate) fn kind(&self) -> IndexType {
        self.kind
    }

    /// Number of bytes of an index in memory.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.indices.dtype.size()
    }

    /// Whether the indices are in foreign memory. Other code, such as a foreign runtime, may write
    /// foreign memory while this crate reads the indices.
    #[inline]
    fn is_foreign(&self) -> bool {
        !self.indices.contents.is_borrowed()
    }

    /// Whether integers in memory have fewer bytes than integers of the type `kind`.
    #[inline]
    fn is_widened(&self) -> bool {
        self.size() < size_of::<u32>()
    }

    /// Whether the indices are copied before they are used: they are in foreign memory, or must be
    /// widened. Other indices can be used where they are.
    #[inline]
    pub(crate) fn is_copied(&self) -> bool {
        self.is_foreign() || self.is_widened()
    }

    #[inline]
    pub(crate) fn layout(&self) -> &'a Layout<'a> {
        &self.indices.memory.layout
    }

    /// Returns the address of element `number` (from 0 on) of a contiguous view. If `number` is not
    /// less than the number of elements, the address is outside the view and must not be read.
    #[inline]
    pub(crate) fn address(&self, number: usize) -> *const u8 {
        (self.indices.memory.ptr).wrapping_add(number.wrapping_mul(self.size()))
    }

    /// Returns the `len` adjacent elements that begin at offset `first`, without a copy.
    ///
    /// # Safety
    ///
    /// The conditions of [`Self::read_run`] with `step` 1. [`Self::is_copied`] is `false`, so no
    /// other code can write the memory of the indices, and the memory has integers of the type `I`.
    #[inline]
    pub(crate) unsafe fn neighbours<I: Widened>(&self, first: isize, len: usize) -> &'a [I] {
        debug_assert_eq!(IndexType::of(I::DTYPE), Some(self.kind), "index type");
        debug_assert!(!self.is_copied(), "a slice of foreign or narrower memory");
        if len == 0 {
            // A view without elements may have an invalid pointer.
            return &[];
        }
        // SAFETY: the caller guarantees that the `len` elements from offset `first` on are elements
        // of the layout. The view borrows its memory for `'a`.
        unsafe {
            std::slice::from_raw_parts(self.indices.memory.ptr.cast::<I>().offset(first), len)
        }
    }

    /// Calls `visit` with each element and its position, in row-major order. Each element is read
    /// once.
    ///
    /// # Panics
    ///
    /// Panics if `I` is not the Rust type that [`Self::kind`] names.
    pub(crate) fn for_each<I: Widened>(&self, mut visit: impl FnMut(usize, I)) {
        assert_eq!(IndexType::of(I::DTYPE), Some(self.kind), "index type");
        let elements = self.layout().elements().unwrap_or(0);
        let mut outer = self.layout().dims_from_last();
        let inner = outer.by_ref().find(|&(size, _)| size != 1);
        let (len, step) = inner.unwrap_or((1, 1));
        let mut block = [I::default(); BLOCK];
        for position in (0..elements).step_by(len.max(1)) {
            let first = offset_of(outer.clone(), position / len);
            for start in (0..len).step_by(BLOCK) {
                let block = &mut block[..BLOCK.min(len - start)];
                // SAFETY: the layout has `elements` elements. `position` is the position of the first
                // element of a dim of `len` elements. `start` and the elements of `block` are inside
                // this dim. The assertion above has checked the type.
                unsafe { self.read_run(first + start.cast_signed() * step, step, block) };
                for (at, &value) in block.iter().enumerate() {
                    visit(position + start + at, value);
                }
            }
        }
    }

    /// Copies `run.len()` elements, at offsets `first`, `first + step` and so on, to `run`.
    ///
    /// Foreign memory may change at any time. Each element is therefore read once, and the
    /// caller checks and uses only the copy.
    ///
    /// # Safety
    ///
    /// Each of the offsets is the offset of an element of the layout. `I` is the Rust type that
    /// [`Self::kind`] names (`i32` for [`IndexType::I32`]).
    #[inline]
    pub(crate) unsafe fn read_run<I: Widened>(&self, first: isize, step: isize, run: &mut [I]) {
        debug_assert_eq!(IndexType::of(I::DTYPE), Some(self.kind), "index type");
        // SAFETY: the caller guarantees that each offset is the offset of an element of the layout,
        // and that `I` is the type that `kind` names. If the integers are not widened, they have
        // this type: `IndexType::of` has mapped only narrower types to another type.
        unsafe {
            if const { size_of::<I>() == size_of::<u32>() } && self.is_widened() {
                self.read_widened(first, step, run);
            } else {
                self.read_stored(first, step, run);
            }
        }
    }

    /// Implements [`Self::read_run`] for integers of 8 and 16 bits.
    ///
    /// # Safety
    ///
    /// Each of the offsets is the offset of an element of the layout. [`Self::is_widened`] is true.
    #[inline(never)]
    unsafe fn read_widened<I: Widened>(&self, first: isize, step: isize, run: &mut [I]) {
        // SAFETY: the caller guarantees that each offset is the offset of an element of the layout,
        // and that the elements are narrow. `Indices::integers` has checked that they are integers.
        // So the first type of each arm is the type of the elements.
        unsafe {
            match self.indices.dtype {
                DType::I8 => self.widen::<i8, I>(first, step, run),
                DType::I16 => self.widen::<i16, I>(first, step, run),
                DType::U8 => self.widen::<u8, I>(first, step, run),
                _ => self.widen::<u16, I>(first, step, run),
            }
        }
    }

    /// Copies and widens `run.len()` elements of the type `T`.
    ///
    /// # Safety
    ///
    /// Each of the offsets is the offset of an element of the layout. `T` is the type of the
    /// elements.
    #[inline(always)]
    unsafe fn widen<T, I>(&self, mut first: isize, step: isize, run: &mut [I])
    where
        T: Index + Default + Into<i32>,
        I: Widened,
    {
        if let [value] = run {
            let mut narrow = [T::default()];
            // SAFETY: the caller guarantees that the element can be read, and that `T` is its type.
            unsafe { self.read_stored(first, step, &mut narrow) };
            *value = I::widened(narrow[0].into());
            return;
        }
        if step == 1 && !self.is_foreign() {
            // SAFETY: the caller guarantees that the `run.len()` elements from `first` on can be
            // read, and that `T` is their type. No other code writes the memory of the indices.
            let narrow = unsafe {
                let first = self.indices.memory.ptr.cast::<T>().offset(first);
                std::slice::from_raw_parts(first, run.len())
            };
            for (value, &narrow) in run.iter_mut().zip(narrow) {
                *value = I::widened(narrow.into());
            }
            return;
        }
        let mut narrow = [T::default(); BLOCK];
        for values in run.chunks_mut(BLOCK) {
            let narrow = &mut narrow[..values.len()];
            // SAFETY: the caller guarantees that the elements can be read, and that `T` is their
            // type.
            unsafe { self.read_stored(first, step, narrow) };
            for (value, &narrow) in values.iter_mut().zip(&*narrow) {
                *value = I::widened(narrow.into());
            }
            first = first.wrapping_add(step.wrapping_mul(BLOCK.cast_signed()));
        }
    }

    /// Copies `run.len()` elements of the type `T`.
    ///
    /// # Safety
    ///
    /// Each of the offsets is the offset of an element of the layout. `T` is the type of the
    /// elements.
    #[inline]
    unsafe fn read_stored<T: Index>(&self, first: isize, step: isize, run: &mut [T]) {
        debug_assert_eq!(size_of::<T>(), self.size(), "the type in memory");
        let base = self.indices.memory.ptr.cast::<T>();
        if self.is_foreign() {
            // SAFETY: the caller guarantees that each offset is the offset of an element of the
            // layout. A run of one element is loaded directly, whatever `step` is, without a
            // function call.
            unsafe {
                let first = base.offset(first);
                match (run, step) {
                    ([value], _) => *value = foreign::load(first),
                    (run, 1) => foreign::copy(first, run),
                    (run, _) => foreign::copy_strided(first, step, run),
                }
            }
        } else if step == 1 {
            // SAFETY: the caller guarantees that each offset is the offset of an element of the
            // layout. `run` is borrowed exclusively, so the indices and `run` do not overlap.
            unsafe { (base.offset(first)).copy_to_nonoverlapping(run.as_mut_ptr(), run.len()) };
        } else {
            let mut offset = first;
            for value in run {
                // SAFETY: the caller guarantees that each offset is the offset of an element of the
                // layout.
                *value = unsafe { base.offset(offset).read() };
                offset = offset.wrapping_add(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AnyView, BLOCK, Index, Indices, Layout, TensorView, Widened};

    /// Reads runs of all lengths around [`BLOCK`] from `values`, at several strides, from borrowed
    /// and from foreign memory.
    fn check<T: Index, I: Widened + From<T> + PartialEq>(values: &[T]) {
        let many = values.repeat(3 * BLOCK);
        for step in [1, -1, 0, 3] {
            for len in [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1] {
                let first = if step < 0 { len.saturating_sub(1) } else { 0 };
                let (shape, strides) = ([len], [step]);
                let borrowed = TensorView::strided(&many, first, &shape, &strides);
                // SAFETY: the view has the elements of `borrowed`, and `many` lives longer.
                let foreign = unsafe {
                    let layout = Layout::strided(&shape, &strides).expect("a layout");
                    AnyView::from_raw_parts(many[first..].as_ptr().cast(), T::DTYPE, layout)
                };
                let places = (0..).map(|at: isize| first.wrapping_add_signed(at * step));
                let wanted: Vec<I> = places.take(len).map(|at| many[at].into()).collect();
                for view in [borrowed.expect("a view").into(), foreign.expect("a view")] {
                    let indices = Indices::from(view);
                    let integers = indices.integers().expect("integers");
                    let mut run = vec![I::default(); len];
                    // SAFETY: the offsets are those of the elements of the view, and the caller
                    // passes the type in which integers of type `T` are read.
                    unsafe { integers.read_run(0, step, &mut run) };
                    assert_eq!(run, wanted, "{} {step} {len}", T::DTYPE);
                    let mut visited = Vec::new();
                    integers.for_each::<I>(|_, value| visited.push(value));
                    assert_eq!(visited, wanted, "{} {step} {len}, each", T::DTYPE);
                }
            }
        }
    }

    #[test]
    fn integers_of_every_type_are_read() {
        check::<i8, i32>(&[0, 1, -1, i8::MIN, i8::MAX]);
        check::<i16, i32>(&[0, 1, -1, i16::MIN, i16::MAX]);
        check::<i32, i32>(&[0, 1, -1, i32::MIN, i32::MAX]);
        check::<i64, i64>(&[0, 1, -1, i64::MIN, i64::MAX]);
        check::<u8, u32>(&[0, 1, u8::MAX]);
        check::<u16, u32>(&[0, 1, u16::MAX]);
        check::<u32, u32>(&[0, 1, u32::MAX]);
        check::<u64, u64>(&[0, 1, u64::MAX]);
    }
}
