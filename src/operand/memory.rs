//! Operands: the tensors of a call, made from any kind of view.
//!
//! This module knows the address, the layout and the element type of a tensor. It also knows
//! whether the bytes are borrowed, foreign or uninitialised. It does not know operators.

use std::mem::MaybeUninit;

use super::layout::Layout;
use super::overlap::Footprint;
use crate::element::DType;
use crate::error::ScatterError;
use crate::kernel::Kernels;

/// Address and layout of a tensor. The constructors of views check that all elements are inside
/// the memory. For raw parts, the caller guarantees this.
#[derive(Debug)]
pub(crate) struct Memory<'a, P> {
    /// Address of element `[0, 0, ...]`.
    pub(super) ptr: P,
    pub(super) layout: Layout<'a>,
}

/// A tensor to read. Every element of `layout`, with offsets from `ptr`, is readable for `'a`.
pub(crate) type Readable<'a> = Memory<'a, *const u8>;

/// A tensor to write. Every element of `layout`, with offsets from `ptr`, is writable for `'a`.
/// No two elements overlap. `Writable` is not `Copy`, so that only one view can write the memory.
pub(crate) type Writable<'a> = Memory<'a, *mut MaybeUninit<u8>>;

impl Clone for Readable<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Readable<'_> {}

/// A value of 16 zero bytes. Its size and alignment suffice for every plain type.
static ZERO: u128 = 0;

/// Bits of a negative zero, which are the same in `f16` and `bf16`.
static NEGATIVE_HALF: u16 = 0x8000;

impl<'a> Readable<'a> {
    /// Returns a tensor of `shape` whose elements are all one shared zero. All `strides` must be 0.
    pub(crate) fn zeros(shape: &'a [usize], strides: &'a [isize]) -> Self {
        Self::one((&raw const ZERO).cast(), shape, strides)
    }

    /// Returns a tensor of `shape` whose elements are all one shared negative zero of `f16` or
    /// `bf16`. All `strides` must be 0.
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
    /// Values of a Rust type. These kernels clone the values. All operands of a call have the same
    /// Rust type, because the types of their views require this.
    Cloned(&'static Kernels),
}

/// Ownership and possible values of the bytes of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Valid values of the Rust type, in memory borrowed through a Rust reference.
    Rust,
    /// Bytes in memory borrowed through a Rust reference. A boolean may have any byte value.
    Bytes,
    /// Bytes that a foreign runtime owns. A boolean may have any byte value. Two reads of one
    /// element may return different values, because other code may write the element.
    Foreign,
    /// Bytes that may be uninitialised. A call never reads a byte that is still uninitialised.
    Unwritten,
}

/// A tensor of a call.
#[doc(hidden)] // Public because the signatures of the sealed traits below contain this type.
#[derive(Debug)]
pub struct Operand<'a, P> {
    // Borrowed from the view, because a copy would cost too much time in the smallest calls.
    memory: &'a Memory<'a, P>,
    elements: Elements,
    contents: Contents,
    /// Whether the caller ignores the values in the memory after an error.
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
    /// Whether the memory is borrowed through a Rust reference. A borrowed output of a call never
    /// overlaps a borrowed input, because the borrow rules of Rust forbid it.
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

    /// Whether the caller ignores the values in the memory after an error. If so, a call may
    /// write the memory before it has checked all indices.
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
    /// Returns `zeros` as an operand with elements of type `dtype`. `zeros` must come from
    /// [`Readable::zeros`], or from [`Readable::negative_halves`] for 16-bit floats.
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
    /// Returns the target for a result in new memory. The elements of the memory may be
    /// uninitialised.
    #[inline]
    pub(super) fn unwritten(memory: &'a Writable<'a>, elements: Elements) -> Self {
        Self {
            is_new: true,
            ..Self::new(memory, elements, Contents::Unwritten)
        }
    }

    /// Passes this tensor to `call` as a tensor to read. The caller ensures that all elements are
    /// initialised, and that nothing writes the elements before `call` returns.
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
/// [`Element`](crate::Element) type, an [`AnyView`](crate::AnyView), or a `TensorView` wrapped in
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

    /// Allocates a row-major result of `shape` and calls `fill` to write the result.
    ///
    /// For [`Start::CopyOf`], the result begins as a copy of a tensor. Either this method copies
    /// the tensor, or this method passes the tensor to `fill`, and `fill` copies it. For
    /// [`Start::Like`], `fill` writes every element.
    #[doc(hidden)]
    fn allocate(
        shape: &[usize],
        start: Start<&Self>,
        fill: impl FnOnce(Target<'_>, Option<Source<'_>>) -> Result<(), ScatterError>,
    ) -> Result<Self::Owned, ScatterError>;
}

/// A tensor that a call writes: a [`TensorViewMut`](crate::TensorViewMut) of an
/// [`Element`](crate::Element) type, an [`AnyViewMut`](crate::AnyViewMut), or a `TensorViewMut`
/// wrapped in [`Cloned`](crate::Cloned). With the feature `ndarray`, the tensor may also be a
/// mutably borrowed array of `ndarray`, or a view `ArrayViewMut`.
///
/// The trait is sealed.
pub trait Output: sealed::Sealed + Sized {
    /// Type of the views that the call reads. These views have the same kind and the same element
    /// type as the output.
    type Input: Input;

    /// Passes the tensor to `call` as an operand.
    #[doc(hidden)]
    fn with_target<R>(
        self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError>;
}

/// Values of a new result before `fill` writes the result. The type has no public path. Other
/// crates therefore cannot call [`Input::allocate`] with a `fill` that leaves elements unwritten.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Start<V> {
    /// A copy of this tensor.
    CopyOf(V),
    /// Any values, because `fill` writes every element. The result has the element type of this
    /// tensor.
    Like(V),
}

pub(crate) mod sealed {
    /// Supertrait of `Input` and `Output`. Other crates cannot implement it.
    pub trait Sealed {}
}
