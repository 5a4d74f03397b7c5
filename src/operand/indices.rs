//! Index tensors: where they lie and which integers they hold.
//!
//! Knows memory and layout of an index tensor, and the types it can have.
//! Knows nothing of what its values address.

#![expect(
    unsafe_code,
    reason = "reads elements at offsets that the caller takes from the layout"
)]

use super::any::AnyView;
use super::layout::Layout;
use super::memory::{Contents, Source};
use super::typed::TensorView;
use crate::element::{Element, IndexType};
use crate::error::ScatterError;
use crate::foreign;

/// Calls a function that is generic over the type of indices.
macro_rules! for_index_type {
    ($kind:expr, $index:ident => $call:expr) => {
        $crate::operand::indices::for_index_type!(
            $kind, $index => $call;
            I8 = i8, I16 = i16, I32 = i32, I64 = i64, U8 = u8, U16 = u16, U32 = u32, U64 = u64
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

/// A Rust integer type that indices can have.
pub trait Index: Element {}

macro_rules! impl_index {
    ($($type:ty),*) => {$( impl Index for $type {} )*};
}

impl_index!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

/// A tensor of indices: any integers, as a [`TensorView`] or as an [`AnyView`].
///
/// An [`AnyView`] of something else is refused by the call that is given it
/// ([`ScatterError::IndexType`]).
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
    /// The tensor as others see it.
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

    /// The same tensor, which has been found to be one of integers.
    #[inline]
    pub(crate) fn integers(&self) -> Result<Integers<'_>, ScatterError> {
        let (indices, actual) = (&self.0, self.0.dtype);
        match IndexType::of(actual) {
            Some(kind) => Ok(Integers { indices, kind }),
            None => Err(ScatterError::IndexType { actual }),
        }
    }
}

/// Indices that are integers: of the type that `kind` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers<'a> {
    indices: &'a AnyView<'a>,
    kind: IndexType,
}

impl<'a> Integers<'a> {
    pub(crate) fn kind(&self) -> IndexType {
        self.kind
    }

    /// Whether somebody may write them while they are read.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        !self.indices.contents.is_borrowed()
    }

    #[inline]
    pub(crate) fn layout(&self) -> &'a Layout<'a> {
        &self.indices.memory.layout
    }

    /// Where element `number` of a contiguous view lies, if it has so many.
    #[inline]
    pub(crate) fn address(&self, number: usize) -> *const u8 {
        let size = for_index_type!(self.kind, I => size_of::<I>());
        (self.indices.memory.ptr).wrapping_add(number.wrapping_mul(size))
    }

    /// The `len` elements from offset `first` on, side by side.
    ///
    /// # Safety
    ///
    /// As for [`Self::read_run`], with a step of 1; they are not foreign.
    #[inline]
    pub(crate) unsafe fn neighbours<I: Index>(&self, first: isize, len: usize) -> &'a [I] {
        debug_assert_eq!(IndexType::of(I::DTYPE), Some(self.kind), "another type");
        debug_assert!(!self.is_foreign(), "a slice of what others may write");
        if len == 0 {
            // A view without elements may have no memory.
            return &[];
        }
        // SAFETY: the caller vouches for the elements, which the view borrows.
        unsafe {
            std::slice::from_raw_parts(self.indices.memory.ptr.cast::<I>().offset(first), len)
        }
    }

    /// Copies the elements at offsets `first`, `first + step`, ... to `run`. What
    /// is checked and used is the copy: foreign memory, which may change at any
    /// time, is read once for it.
    ///
    /// # Safety
    ///
    /// Those offsets are offsets of elements of the layout, and `I` is the
    /// type of [`Self::kind`].
    #[inline]
    pub(crate) unsafe fn read_run<I: Index>(&self, first: isize, step: isize, run: &mut [I]) {
        debug_assert_eq!(IndexType::of(I::DTYPE), Some(self.kind), "another type");
        let base = self.indices.memory.ptr.cast::<I>();
        if self.is_foreign() {
            // SAFETY: the caller vouches for the offsets. A single one, which may have any
            // step, is read here, and costs no call.
            unsafe {
                let first = base.offset(first);
                match (run, step) {
                    ([value], _) => *value = foreign::load(first),
                    (run, 1) => foreign::copy(first, run),
                    (run, _) => foreign::copy_strided(first, step, run),
                }
            }
        } else if step == 1 {
            // SAFETY: as above; `run` is exclusive, so the two do not overlap.
            unsafe { (base.offset(first)).copy_to_nonoverlapping(run.as_mut_ptr(), run.len()) };
        } else {
            let mut offset = first;
            for value in run {
                // SAFETY: as above, for one element.
                *value = unsafe { base.offset(offset).read() };
                offset = offset.wrapping_add(step);
            }
        }
    }
}
