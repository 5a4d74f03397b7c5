//! Operands: tensors of any kind of view, as a call uses them.
//!
//! This module knows the address, the layout and the element type of a tensor, and what is known
//! about its bytes. It does not know operators.

use std::mem::MaybeUninit;

use super::layout::Layout;
use super::overlap::Footprint;
use crate::element::DType;
use crate::error::ScatterError;
use crate::kernel::Kernels;

/// Address and layout of a tensor. The constructors of views check that the layout stays within
/// the memory.
#[derive(Debug)]
pub(crate) struct Memory<'a, P> {
    /// Address of element `[0, 0, ...]`.
    pub(super) ptr: P,
    pub(super) layout: Layout<'a>,
}

/// Memory to read. Every element of `layout` around `ptr` is readable for `'a`.
pub(crate) type Readable<'a> = Memory<'a, *const u8>;

/// Memory to write. Every element of `layout` around `ptr` is writable for `'a`, and no two
/// elements overlap. `Writable` is not `Copy`, so that only one view may write.
pub(crate) type Writable<'a> = Memory<'a, *mut MaybeUninit<u8>>;

impl Clone for Readable<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Readable<'_> {}

/// Zero bytes, with the size and alignment of any plain type.
static ZERO: u128 = 0;

/// Bits of a negative zero of `f16` and `bf16`.
static NEGATIVE_HALF: u16 = 0x8000;

impl<'a> Readable<'a> {
    /// Returns memory in which one zero is every element of a shape. `strides` are all 0.
    pub(crate) fn zeros(shape: &'a [usize], strides: &'a [isize]) -> Self {
        Self::one((&raw const ZERO).cast(), shape, strides)
    }

    /// Returns memory in which one negative zero of 16-bit floats is every element of a shape.
    /// `strides` are all 0.
    pub(crate) fn negative_halves(shape: &'a [usize], strides: &'a [isize]) -> Self {
        Self::one((&raw const NEGATIVE_HALF).cast(), shape, strides)
    }

    fn one(ptr: *const u8, shape: &'a [usize], strides: &'a [isize]) -> Self {
        debug_assert!(strides.iter().all(|&stride| stride == 0), "strides of 0");
        let layout = Layout::of_parts(shape, strides);
        Self { ptr, layout }
    }
}

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elements {
    /// Plain bytes of a [`DType`].
    Plain(DType),
    /// Values of a Rust type that these functions clone. All operands of a call have one such
    /// type, because their views have one type.
    Cloned(&'static Kernels),
}

/// What is known about the bytes of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Values of the Rust type, in memory that Rust has borrowed.
    Rust,
    /// Bytes in memory that Rust has borrowed. A boolean may be any byte.
    Bytes,
    /// Bytes that a foreign runtime owns. A boolean may be any byte, and two reads of one
    /// element may differ.
    Foreign,
    /// Bytes that may be uninitialised. A call only writes them.
    Unwritten,
}

/// A tensor of a call.
#[doc(hidden)] // Public because the sealed traits below have it in their signatures.
#[derive(Debug)]
pub struct Operand<'a, P> {
    // Borrowed from the view. A copy would cost more time than the smallest calls have.
    memory: &'a Memory<'a, P>,
    elements: Elements,
    contents: Contents,
    /// Whether the caller ignores the memory after an error.
    pub(super) is_new: bool,
}

/// A tensor that a call reads.
pub(crate) type Source<'a> = Operand<'a, *const u8>;

/// A tensor that a call writes.
pub(crate) type Target<'a> = Operand<'a, *mut MaybeUninit<u8>>;

impl Elements {
    /// Returns the size of one element, in bytes.
    #[inline]
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Plain(dtype) => dtype.size(),
            Self::Cloned(kernels) => kernels.size,
        }
    }
}

impl Contents {
    /// Whether Rust has borrowed the memory. Then memory that is written through one borrow
    /// cannot be read through another.
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

    /// Whether the caller ignores the memory after an error. Then a call may write the memory
    /// before it has checked all indices.
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
    /// Returns an operand in which every element is zero. `zeros` was made by [`Readable::zeros`]
    /// or by [`Readable::negative_halves`], for elements of type `dtype`.
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
    /// Returns the target for a result in new memory, whose elements are not yet written.
    #[inline]
    pub(super) fn unwritten(memory: &'a Writable<'a>, elements: Elements) -> Self {
        Self {
            is_new: true,
            ..Self::new(memory, elements, Contents::Unwritten)
        }
    }

    /// Calls `call` with this tensor as a tensor to read. The caller ensures that its elements
    /// are initialised, and that nothing writes them before `call` returns.
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

/// A view that a call reads: a [`TensorView`](crate::TensorView) of an
/// [`Element`](crate::Element) type, an [`AnyView`](crate::AnyView), or a `TensorView` in
/// [`Cloned`](crate::Cloned).
///
/// The trait is sealed.
pub trait Input: sealed::Sealed + Copy {
    /// Type of the tensor that a call allocates for its result: [`Tensor`](crate::Tensor) or
    /// [`AnyTensor`](crate::AnyTensor).
    type Owned;

    /// Returns the view as an operand.
    #[doc(hidden)]
    fn source(&self) -> Source<'_>;

    /// Allocates a row-major result and has `fill` write it.
    ///
    /// For [`Start::CopyOf`], the result begins as a copy of a tensor: either this method copies
    /// the tensor, or `fill` gets the tensor and copies it. For [`Start::Like`], `fill` writes
    /// every element.
    #[doc(hidden)]
    fn allocate(
        shape: &[usize],
        start: Start<&Self>,
        fill: impl FnOnce(Target<'_>, Option<Source<'_>>) -> Result<(), ScatterError>,
    ) -> Result<Self::Owned, ScatterError>;
}

/// A view that a call writes: a [`TensorViewMut`](crate::TensorViewMut) of an
/// [`Element`](crate::Element) type, an [`AnyViewMut`](crate::AnyViewMut), or a `TensorViewMut`
/// in [`Cloned`](crate::Cloned).
///
/// The trait is sealed.
pub trait Output: sealed::Sealed {
    /// Type of the views that the call reads: of the kind and the elements of the output.
    type Input: Input;

    /// Returns the view as an operand.
    #[doc(hidden)]
    fn target(&mut self) -> Target<'_>;
}

/// Values of a result before updates are applied. The type has no public path, so that other
/// crates cannot call [`Input::allocate`] with a `fill` that leaves elements unwritten.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Start<V> {
    /// A copy of this tensor.
    CopyOf(V),
    /// Any values, because every element will be written. The elements have the type of this
    /// tensor.
    Like(V),
}

pub(crate) mod sealed {
    /// Seals the traits of views.
    pub trait Sealed {}
}
