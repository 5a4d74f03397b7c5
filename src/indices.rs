//! Index tensors: where they lie and which integers they hold.
//!
//! Knows memory and layout of an index tensor, and the types it can have.
//! Knows nothing of what its values address.

#![expect(
    unsafe_code,
    reason = "reads elements at offsets that the caller takes from the layout"
)]

use crate::element::{Element, ElementType, Index};
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::tensor::{AnyView, TensorView};

/// The integer types that indices can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl IndexType {
    const fn of(element: ElementType) -> Option<Self> {
        Some(match element {
            ElementType::I8 => Self::I8,
            ElementType::I16 => Self::I16,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
            ElementType::U8 => Self::U8,
            ElementType::U16 => Self::U16,
            ElementType::U32 => Self::U32,
            ElementType::U64 => Self::U64,
            _ => return None,
        })
    }
}

/// Calls a function that is generic over the type of indices.
macro_rules! for_index_type {
    ($kind:expr, $index:ident => $call:expr) => {
        match $kind {
            $crate::indices::IndexType::I8 => {
                type $index = i8;
                $call
            }
            $crate::indices::IndexType::I16 => {
                type $index = i16;
                $call
            }
            $crate::indices::IndexType::I32 => {
                type $index = i32;
                $call
            }
            $crate::indices::IndexType::I64 => {
                type $index = i64;
                $call
            }
            $crate::indices::IndexType::U8 => {
                type $index = u8;
                $call
            }
            $crate::indices::IndexType::U16 => {
                type $index = u16;
                $call
            }
            $crate::indices::IndexType::U32 => {
                type $index = u32;
                $call
            }
            $crate::indices::IndexType::U64 => {
                type $index = u64;
                $call
            }
        }
    };
}

pub(crate) use for_index_type;

/// A view of integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indices<'a> {
    view: AnyView<'a>,
    kind: IndexType,
}

impl<'a, I: Index> From<TensorView<'a, I>> for Indices<'a> {
    /// No `Result`: to copy one out waits for the stores of its fields, which
    /// the smallest calls feel.
    #[inline]
    fn from(view: TensorView<'a, I>) -> Self {
        Self {
            view: view.into(),
            kind: const { IndexType::of(I::TYPE).expect("every index type is listed") },
        }
    }
}

impl<'a> Indices<'a> {
    pub(crate) fn new(view: AnyView<'a>) -> Result<Self, ScatterError> {
        let actual = view.element();
        match IndexType::of(actual) {
            Some(kind) => Ok(Self { view, kind }),
            None => Err(ScatterError::IndexType { actual }),
        }
    }

    pub(crate) fn kind(&self) -> IndexType {
        self.kind
    }

    /// Whether somebody may write them while they are read.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.view.is_foreign()
    }

    pub(crate) fn layout(&self) -> Layout<'a> {
        self.view.layout()
    }

    /// The `len` elements from offset `first` on, side by side.
    ///
    /// # Safety
    ///
    /// As for [`Self::read_run`], with a step of 1; they are not foreign.
    #[inline]
    pub(crate) unsafe fn neighbours<I: Index>(&self, first: isize, len: usize) -> &'a [I] {
        debug_assert_eq!(<I as Element>::TYPE, self.view.element(), "another type");
        debug_assert!(!self.is_foreign(), "a slice of what others may write");
        if len == 0 {
            // A view without elements may have no memory.
            return &[];
        }
        // SAFETY: the caller vouches for the elements, which the view borrows.
        unsafe { std::slice::from_raw_parts(self.view.as_ptr().cast::<I>().offset(first), len) }
    }

    /// Copies the elements at offsets `first`, `first + step`, ... to `run`.
    ///
    /// # Safety
    ///
    /// Those offsets are offsets of elements of the layout, and `I` is the
    /// type of [`Self::kind`].
    #[inline]
    pub(crate) unsafe fn read_run<I: Index>(&self, first: isize, step: isize, run: &mut [I]) {
        debug_assert_eq!(<I as Element>::TYPE, self.view.element(), "another type");
        let base = self.view.as_ptr().cast::<I>();
        if step == 1 {
            // SAFETY: the caller vouches for the offsets; `run` is exclusive,
            // so the two do not overlap.
            unsafe { (base.offset(first)).copy_to_nonoverlapping(run.as_mut_ptr(), run.len()) };
            return;
        }
        let mut offset = first;
        for value in run {
            // SAFETY: as above, for one element.
            *value = unsafe { base.offset(offset).read() };
            offset = offset.wrapping_add(step);
        }
    }
}
