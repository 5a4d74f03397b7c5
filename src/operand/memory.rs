//! A tensor of any kind as a call sees it: an address, a layout, what its
//! elements are, and what is known of their bytes.

use std::mem::MaybeUninit;

use super::layout::Layout;
use super::overlap::Footprint;
use crate::element::DType;
use crate::error::ScatterError;
use crate::kernel::Kernels;

/// The memory of a tensor.
#[derive(Debug)]
pub(crate) struct Memory<'a, P> {
    /// The address of element `[0, 0, ...]`.
    pub(super) ptr: P,
    pub(super) layout: Layout<'a>,
}

/// Memory to read: every element of `layout` around `ptr` is readable for `'a`.
pub(crate) type Readable<'a> = Memory<'a, *const u8>;

/// Memory to write: every element of `layout` around `ptr` is writable for `'a`, and no
/// two of them overlap.
pub(crate) type Writable<'a> = Memory<'a, *mut MaybeUninit<u8>>;

impl Clone for Readable<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Readable<'_> {}

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

/// A tensor of a call.
#[doc(hidden)] // Public for the sealed traits below.
#[derive(Debug)]
pub struct Operand<'a, P> {
    // Lent, as it lies in the view: to copy it takes longer than the smallest
    // calls.
    memory: &'a Memory<'a, P>,
    elements: Elements,
    contents: Contents,
    /// Nobody looks at it unless the call succeeds.
    pub(super) is_new: bool,
}

/// A tensor that a call reads.
pub(crate) type Source<'a> = Operand<'a, *const u8>;

/// A tensor that a call writes.
pub(crate) type Target<'a> = Operand<'a, *mut MaybeUninit<u8>>;

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

impl<'a, P> Operand<'a, P> {
    #[inline]
    pub(super) fn new(memory: &'a Memory<'a, P>, elements: Elements, contents: Contents) -> Self {
        Self {
            memory,
            elements,
            contents,
            is_new: false,
        }
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

    fn footprint_at(&self, address: usize) -> Footprint<'_> {
        Footprint {
            address,
            layout: &self.memory.layout,
            size: self.elements.size(),
        }
    }
}

impl<'a> Source<'a> {
    /// Plain elements that are zeros.
    pub(crate) fn of_zeros(zeros: &'a Readable<'a>, dtype: DType) -> Self {
        Self::new(zeros, Elements::Plain(dtype), Contents::Rust)
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.memory.ptr
    }

    pub(crate) fn footprint(&self) -> Footprint<'_> {
        self.footprint_at(self.memory.ptr.addr())
    }
}

impl<'a> Target<'a> {
    /// The memory of a result. No element is written yet.
    #[inline]
    pub(super) fn unwritten(memory: &'a Writable<'a>, elements: Elements) -> Self {
        Self {
            is_new: true,
            ..Self::new(memory, elements, Contents::Unwritten)
        }
    }

    /// Hands it to `call` as a tensor to read: of elements that are values, before any is
    /// written.
    pub(crate) fn read<T>(&self, call: impl FnOnce(&Source<'_>) -> T) -> T {
        let memory = Readable {
            ptr: self.memory.ptr.cast_const().cast(),
            layout: self.memory.layout,
        };
        call(&Source::new(&memory, self.elements, self.contents))
    }

    #[inline]
    pub(crate) fn as_mut_ptr(&self) -> *mut MaybeUninit<u8> {
        self.memory.ptr
    }

    pub(crate) fn footprint(&self) -> Footprint<'_> {
        self.footprint_at(self.memory.ptr.addr())
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
