//! Tensors that calls allocate for their results. These tensors are row-major and own their memory.
//!
//! This module knows how to allocate a result. This module does not know operators.

#![expect(
    unsafe_code,
    reason = "a call writes elements into spare capacity, which then become part of a vector"
)]

use std::fmt;
use std::ops::Deref;

use super::any::{AnyView, AnyViewMut};
use super::dims::Dims;
use super::layout::Layout;
use super::memory::{Contents, Elements, Input, Readable, Source, Start, Target, Writable};
use super::typed::{TensorView, TensorViewMut};
use crate::element::{DType, Element};
use crate::error::ScatterError;
use crate::memory::with_room;

/// A row-major tensor that owns its elements. A call that allocates its result returns a `Tensor`.
///
/// A `Tensor` dereferences to the slice of its elements in row-major order.
///
/// # Examples
///
/// ```
/// use ndscatter::{Gather, TensorView};
///
/// let table = [1.0, 1.5, 2.0, 2.5];
/// let rows = Gather::along(0).allocate(
///     TensorView::contiguous(&table, &[2, 2])?,
///     TensorView::from(&[1_u32, 1, 0]),
/// )?;
/// assert_eq!(rows.shape(), [3, 2]);
/// assert_eq!(rows[..2], [2.0, 2.5]);
/// assert_eq!(rows.into_vec(), [2.0, 2.5, 2.0, 2.5, 1.0, 1.5]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct Tensor<T> {
    shape: Dims<usize>,
    elements: Vec<T>,
}

impl<T> Tensor<T> {
    /// Returns a tensor of `shape` that `fill` has written. `fill` must write every element or
    /// return an error.
    pub(super) fn filled(
        shape: &[usize],
        elements: Elements,
        fill: impl FnOnce(Target<'_>) -> Result<(), ScatterError>,
    ) -> Result<Self, ScatterError> {
        let layout = Layout::contiguous(shape);
        let count = layout.check(size_of::<T>())?;
        let shape = Dims::copied(shape)?;
        let mut result: Vec<T> = with_room(count)?;
        let ptr = result.as_mut_ptr().cast();
        fill(Target::unwritten(&Writable { ptr, layout }, elements))?;
        // SAFETY: the capacity is at least `count`. `fill` has returned no error. A scatter or
        // gather that returns no error has written every element of a target in new memory
        // ([`Target::unwritten`]).
        unsafe { result.set_len(count) };
        Ok(Self {
            elements: result,
            shape,
        })
    }

    /// Returns a tensor of `shape` with `elements`. The caller ensures that `elements` has the
    /// length that `shape` requires.
    pub(super) fn of_parts(shape: &[usize], elements: Vec<T>) -> Result<Self, ScatterError> {
        let shape = Dims::copied(shape)?;
        Ok(Self { elements, shape })
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns a view to read.
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView::new(self.elements.as_ptr(), Layout::contiguous(&self.shape))
    }

    /// Returns a view to write.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(self.elements.as_mut_ptr(), Layout::contiguous(&self.shape))
    }

    /// Converts the tensor to the vector of its elements in row-major order, without a copy.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }
}

impl<T: Element> Input for TensorView<'_, T> {
    type Owned = Tensor<T>;

    #[inline]
    fn source(&self) -> Source<'_> {
        self.as_source(Elements::Plain(T::DTYPE))
    }

    fn allocate(
        shape: &[usize],
        start: Start<&Self>,
        fill: impl FnOnce(Target<'_>, Option<Source<'_>>) -> Result<(), ScatterError>,
    ) -> Result<Tensor<T>, ScatterError> {
        let data = match start {
            Start::CopyOf(data) => Some(data.source()),
            Start::Like(_) => None,
        };
        Tensor::filled(shape, Elements::Plain(T::DTYPE), |target| {
            fill(target, data)
        })
    }
}

impl<T> Deref for Tensor<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements
    }
}

impl<T: PartialEq> PartialEq for Tensor<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape() == other.shape() && self.elements == other.elements
    }
}

/// Compares only the elements, in row-major order. The shape of the tensor has no effect.
impl<T: PartialEq<U>, U, const N: usize> PartialEq<[U; N]> for Tensor<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        self.elements == *other
    }
}

/// Compares only the elements, in row-major order. The shape of the tensor has no effect.
impl<T: PartialEq<U>, U> PartialEq<Vec<U>> for Tensor<T> {
    fn eq(&self, other: &Vec<U>) -> bool {
        self.elements == *other
    }
}

/// Unit of the memory of an [`AnyTensor`]. The alignment of a `Word` suffices for every element
/// type.
type Word = u128;

/// A row-major tensor that owns its elements, with an element type known at run time. A call on
/// [`AnyView`]s that allocates its result returns an `AnyTensor`.
///
/// # Examples
///
/// ```
/// use ndscatter::{AnyView, DType, Gather, TensorView};
///
/// let table = AnyView::from(TensorView::from(&[1.5_f32, 2.5]));
/// let picked = Gather::along(0).allocate(table, TensorView::from(&[1_u8, 1, 0]))?;
/// assert_eq!((picked.dtype(), picked.shape()), (DType::F32, &[3][..]));
/// assert_eq!(picked.as_bytes()[..4], 2.5_f32.to_ne_bytes());
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub struct AnyTensor {
    words: Vec<Word>,
    /// Total size of the elements, in bytes.
    len: usize,
    shape: Dims<usize>,
    dtype: DType,
}

impl AnyTensor {
    /// Returns a tensor of `shape` that `fill` has written. `fill` must write every element or
    /// return an error.
    pub(crate) fn filled(
        shape: &[usize],
        dtype: DType,
        fill: impl FnOnce(Target<'_>) -> Result<(), ScatterError>,
    ) -> Result<Self, ScatterError> {
        let layout = Layout::contiguous(shape);
        let len = layout.check(dtype.size())? * dtype.size();
        let count = len.div_ceil(size_of::<Word>());
        let shape = Dims::copied(shape)?;
        let mut words: Vec<Word> = with_room(count)?;
        if count > 0 {
            // Initialises the bytes of the last word after the last element.
            words.spare_capacity_mut()[count - 1].write(0);
        }
        let (ptr, elements) = (words.as_mut_ptr().cast(), Elements::Plain(dtype));
        fill(Target::unwritten(&Writable { ptr, layout }, elements))?;
        // SAFETY: the capacity is at least `count`. `fill` has returned no error. A scatter or
        // gather that returns no error has written every element of a target in new memory
        // ([`Target::unwritten`]). The write of 0 above has initialised the bytes of the last word
        // after the last element.
        unsafe { words.set_len(count) };
        Ok(Self {
            words,
            len,
            shape,
            dtype,
        })
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the bytes of the elements, in row-major order.
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// Returns a view to read.
    pub fn view(&self) -> AnyView<'_> {
        let (ptr, layout) = (self.words.as_ptr().cast(), Layout::contiguous(&self.shape));
        AnyView::new(Readable { ptr, layout }, self.dtype, Contents::Bytes)
    }

    /// Returns a view to write.
    pub fn view_mut(&mut self) -> AnyViewMut<'_> {
        let (ptr, layout) = (
            self.words.as_mut_ptr().cast(),
            Layout::contiguous(&self.shape),
        );
        AnyViewMut::new(Writable { ptr, layout }, self.dtype, Contents::Bytes)
    }
}

impl Input for AnyView<'_> {
    type Owned = AnyTensor;

    #[inline]
    fn source(&self) -> Source<'_> {
        self.as_source()
    }

    fn allocate(
        shape: &[usize],
        start: Start<&Self>,
        fill: impl FnOnce(Target<'_>, Option<Source<'_>>) -> Result<(), ScatterError>,
    ) -> Result<AnyTensor, ScatterError> {
        let (like, data) = match start {
            Start::CopyOf(data) => (data, Some(data.source())),
            Start::Like(like) => (like, None),
        };
        AnyTensor::filled(shape, like.dtype(), |target| fill(target, data))
    }
}

impl fmt::Debug for AnyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("AnyTensor"))
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
