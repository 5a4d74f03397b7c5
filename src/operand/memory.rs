//! A tensor of any kind as a call sees it: an address, a layout, what its
//! elements are, and what is known of their bytes.

use std::mem::MaybeUninit;

use super::layout::Layout;
use super::overlap::Footprint;
use crate::element::DType;
use crate::error::ScatterError;
use crate::kernel::Kernels;

/// Memory to read: whoever has it may read every element of the layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readable<'a> {
    /// Element `[0, 0, ...]`. Every element of `layout` around it is readable
    /// for `'a`.
    pub(super) ptr: *const u8,
    pub(super) layout: Layout<'a>,
}

/// Memory to write: whoever has it may write every element of the layout.
#[derive(Debug)]
pub(crate) struct Writable<'a> {
    /// Element `[0, 0, ...]`. Every element of `layout` around it is writable
    /// for `'a`, and no two of them overlap.
    pub(super) ptr: *mut MaybeUninit<u8>,
    pub(super) layout: Layout<'a>,
}

/// Zero bytes for an element of any plain type, which is aligned for it.
static ZERO: u128 = 0;

/// The 16-bit float that is zero and negative.
static NEGATIVE_HALF: u16 = 0x8000;

impl<'a> Readable<'a> {
    /// One zero that stands for all elements of a shape; `strides` are zeros.
    pub(crate) fn zeros(shape: &'a [usize], strides: &'a [isize]) -> Self {
        Self::one((&raw const ZERO).cast(), shape, strides)
    }

    /// The same, of 16-bit floats, negative.
    pub(crate) fn negative_halves(shape: &'a [usize], strides: &'a [isize]) -> Self {
        Self::one((&raw const NEGATIVE_HALF).cast(), shape, strides)
    }

    fn one(ptr: *const u8, shape: &'a [usize], strides: &'a [isize]) -> Self {
        debug_assert!(strides.iter().all(|&stride| stride == 0), "one element");
        let layout = Layout::of_parts(shape, strides);
        Self { ptr, layout }
    }
}

/// What the elements of a tensor are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elements {
    /// Plain bytes of a type that has a name.
    Plain(DType),
    /// Values of one Rust type that are cloned by these functions. Operands of
    /// one call have the same: their views' type is the same.
    Cloned(&'static Kernels),
}

/// What is known of the bytes of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// They are values of the Rust type, borrowed as Rust borrows.
    Rust,
    /// Borrowed as Rust borrows, but a boolean may be any byte.
    Bytes,
    /// A foreign runtime owns them: a boolean may be any byte, and what is read
    /// twice may differ.
    Foreign,
    /// They may not be initialised, and become whatever is written.
    Unwritten,
}

/// A tensor that a call reads.
#[doc(hidden)] // Public for the sealed traits below.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    // Lent, as it lies in the view: to copy it takes longer than the smallest
    // calls.
    pub(super) memory: &'a Readable<'a>,
    pub(super) elements: Elements,
    pub(super) contents: Contents,
}

/// A tensor that a call writes.
#[doc(hidden)]
#[derive(Debug)]
pub struct Target<'a> {
    pub(super) memory: &'a Writable<'a>,
    pub(super) elements: Elements,
    pub(super) contents: Contents,
    /// Nobody looks at it unless the call succeeds.
    pub(super) is_new: bool,
}

impl Elements {
    /// Bytes of one.
    #[inline]
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Plain(dtype) => dtype.size(),
            Self::Cloned(kernels) => kernels.size,
        }
    }
}

impl Contents {
    /// Whether the memory is borrowed as Rust borrows: nothing that is written
    /// through a borrow can be read through another.
    #[inline]
    pub(crate) fn is_borrowed(self) -> bool {
        matches!(self, Self::Rust | Self::Bytes)
    }
}

impl<'a> Source<'a> {
    /// Plain elements that are zeros.
    pub(crate) fn of_zeros(zeros: &'a Readable<'a>, dtype: DType) -> Self {
        Self {
            memory: zeros,
            elements: Elements::Plain(dtype),
            contents: Contents::Rust,
        }
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.memory.ptr
    }

    #[inline]
    pub(crate) fn layout(&self) -> &Layout<'a> {
        &self.memory.layout
    }

    #[inline]
    pub(crate) fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    #[inline]
    pub(crate) fn elements(&self) -> Elements {
        self.elements
    }

    #[inline]
    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    pub(crate) fn footprint(&self) -> Footprint<'_> {
        Footprint {
            address: self.memory.ptr.addr(),
            layout: &self.memory.layout,
            size: self.elements.size(),
        }
    }
}

impl<'a> Target<'a> {
    /// The memory of a result. No element is written yet.
    #[inline]
    pub(super) fn unwritten(memory: &'a Writable<'a>, elements: Elements) -> Self {
        Self {
            memory,
            elements,
            contents: Contents::Unwritten,
            is_new: true,
        }
    }

    /// Hands it to `call` as a tensor to read: of elements that are values, before any is
    /// written.
    pub(crate) fn read<T>(&self, call: impl FnOnce(&Source<'_>) -> T) -> T {
        let memory = Readable {
            ptr: self.memory.ptr.cast_const().cast(),
            layout: self.memory.layout,
        };
        call(&Source {
            memory: &memory,
            elements: self.elements,
            contents: self.contents,
        })
    }

    #[inline]
    pub(crate) fn as_mut_ptr(&self) -> *mut MaybeUninit<u8> {
        self.memory.ptr
    }

    #[inline]
    pub(crate) fn layout(&self) -> &Layout<'a> {
        &self.memory.layout
    }

    #[inline]
    pub(crate) fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    #[inline]
    pub(crate) fn elements(&self) -> Elements {
        self.elements
    }

    #[inline]
    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    /// Whether it may be written before all indices have been read: it is memory that
    /// nobody looks at unless the call succeeds.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn footprint(&self) -> Footprint<'_> {
        Footprint {
            address: self.memory.ptr.addr(),
            layout: &self.memory.layout,
            size: self.elements.size(),
        }
    }
}

/// A tensor that a call reads: a [`TensorView`](crate::TensorView) of elements
/// that have a [`DType`], an [`AnyView`](crate::AnyView), or a view in
/// [`Cloned`](crate::Cloned).
pub trait Input: sealed::Sealed + Copy {
    /// The tensor that a call allocates for its result.
    type Owned;

    /// The view as a call sees it.
    #[doc(hidden)]
    fn source(&self) -> Source<'_>;

    /// A row-major result of elements like these. With a `start` it begins as a
    /// copy of that, made now or by the call; else the call writes every element
    /// of it.
    #[doc(hidden)]
    fn allocate(
        shape: &[usize],
        start: Start<&Self>,
        fill: impl FnOnce(Target<'_>, Option<Source<'_>>) -> Result<(), ScatterError>,
    ) -> Result<Self::Owned, ScatterError>;
}

/// A tensor that a call writes: a [`TensorViewMut`](crate::TensorViewMut), an
/// [`AnyViewMut`](crate::AnyViewMut), or one in [`Cloned`](crate::Cloned).
pub trait Output: sealed::Sealed {
    /// What the call reads beside it: views of the same kind and of the same
    /// elements.
    type Input: Input;

    /// The view as a call sees it.
    #[doc(hidden)]
    fn target(&mut self) -> Target<'_>;
}

/// What a result holds before updates are applied. It has no name outside of the
/// crate, so that nobody else allocates results and says that they are written.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Start<V> {
    /// A copy of this tensor.
    CopyOf(V),
    /// Anything: every element will be written, from elements like these.
    Like(V),
}

pub(crate) mod sealed {
    /// Views are told apart inside of the crate.
    pub trait Sealed {}
}
