//! Borrowed views of tensors whose element type is a Rust type.
//!
//! This module knows slices and layouts. Every public constructor ensures that all elements of the
//! view are inside the given memory.

#![expect(
    unsafe_code,
    reason = "views of memory; every constructor checks the promise of its view"
)]

use std::fmt;
use std::marker::PhantomData;

use super::layout::{Layout, offset_of};
use super::memory::{Contents, Elements, Output, Readable, Source, Target, Writable, sealed};
use super::overlap::{self, Overlap};
use crate::element::Element;
use crate::error::ScatterError;
use crate::memory::{copied, with_room};

/// A tensor to read, with elements of a Rust type: memory, shape, and strides in elements.
///
/// A call accepts a view of an [`Element`] type. A view of another type must be wrapped in
/// [`Cloned`](crate::Cloned). Any strides are allowed, 0 included.
///
/// # Examples
///
/// ```
/// use ndscatter::TensorView;
///
/// let values = [1, 2, 3, 4, 5, 6];
/// // Two rows of three elements.
/// TensorView::contiguous(&values, &[2, 3])?;
/// // The transpose of a matrix with three rows of two elements.
/// TensorView::strided(&values, 0, &[2, 3], &[1, 2])?;
/// // Four rows that are all the first three elements.
/// TensorView::strided(&values, 0, &[4, 3], &[0, 1])?;
/// // All elements in one dimension.
/// TensorView::from(&values);
/// // Two rows of three elements that are all the value 7.
/// TensorView::splat(&7, &[2, 3])?;
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub struct TensorView<'a, T> {
    pub(super) memory: Readable<'a>,
    elements: PhantomData<&'a [T]>,
}

/// A tensor to write, with elements of a Rust type: memory, shape, and strides in elements.
///
/// No two elements share memory. Strides may be negative.
pub struct TensorViewMut<'a, T> {
    pub(super) memory: Writable<'a>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: a view gives the access of `&[T]`, which is `Send` for `T: Sync`.
unsafe impl<T: Sync> Send for TensorView<'_, T> {}
// SAFETY: a view gives the access of `&[T]`, which is `Sync` for `T: Sync`.
unsafe impl<T: Sync> Sync for TensorView<'_, T> {}
// SAFETY: a mutable view gives the access of `&mut [T]`, which is `Send` for `T: Send`.
unsafe impl<T: Send> Send for TensorViewMut<'_, T> {}
// SAFETY: a shared reference to a mutable view gives the access of `&&mut [T]`, which is
// `Send` for `T: Sync`.
unsafe impl<T: Sync> Sync for TensorViewMut<'_, T> {}

/// Strides of 0 for at most 64 dimensions. With these strides, all elements of a tensor are one
/// value in memory.
pub(super) static ZEROS: [isize; 64] = [0; 64];

impl<'a, T> TensorView<'a, T> {
    /// Returns a row-major view of all elements of `data`.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::SliceLength`]: the length of `data` is not the number of elements of
    ///   `shape`.
    /// - [`ScatterError::ShapeOverflow`]: the number of elements of `shape` overflows.
    #[inline]
    pub fn contiguous(data: &'a [T], shape: &'a [usize]) -> Result<Self, ScatterError> {
        check_contiguous(data.len(), shape)?;
        Ok(Self::new(data.as_ptr(), Layout::contiguous(shape)))
    }

    /// Returns a view in which element `[i, j, ...]` is
    /// `data[offset + i * strides[0] + j * strides[1] + ...]`.
    ///
    /// Offset and strides are in elements. Strides may be negative. With stride 0, all positions
    /// along a dimension share the same element of `data`.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::StridesRank`]: `shape` and `strides` have different lengths.
    /// - [`ScatterError::ShapeOverflow`]: the number of elements of `shape` overflows.
    /// - [`ScatterError::OutsideSlice`]: an element is outside `data`.
    pub fn strided(
        data: &'a [T],
        offset: usize,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<Self, ScatterError> {
        let layout = Layout::strided(shape, strides)?;
        let first = check_strided(data.len(), offset, &layout)?;
        // The pointer is derived from the pointer to the whole slice. Its provenance therefore
        // includes the elements before `first`, which negative strides address.
        Ok(Self::new(data.as_ptr().wrapping_add(first), layout))
    }

    /// Returns a view in which every element is `value`. `shape` has at most 64 dimensions.
    ///
    /// Such a view serves as updates that are all equal, for example as the 1s of a histogram.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::ShapeOverflow`]: the number of elements of `shape` overflows.
    /// - [`ScatterError::StridesRank`]: `shape` has more than 64 dimensions.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_update};
    ///
    /// let keys = [2_u8, 0, 2, 2];
    /// let mut counts = [0_u32; 3];
    /// scatter_update(
    ///     TensorViewMut::from(&mut counts),
    ///     TensorView::from(&keys),
    ///     TensorView::splat(&1, &[keys.len()])?,
    ///     0,
    ///     Reduction::Add,
    /// )?;
    /// assert_eq!(counts, [1, 0, 3]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn splat(value: &'a T, shape: &'a [usize]) -> Result<Self, ScatterError> {
        let strides = &ZEROS[..shape.len().min(ZEROS.len())];
        Self::strided(std::slice::from_ref(value), 0, shape, strides)
    }

    /// Returns a view of the elements of `layout`, with offsets from `ptr`. The caller ensures
    /// that all these elements are readable for `'a`.
    #[inline]
    pub(super) fn new(ptr: *const T, layout: Layout<'a>) -> Self {
        let ptr = ptr.cast();
        Self {
            memory: Readable { ptr, layout },
            elements: PhantomData,
        }
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    /// Returns the shape and the strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    pub(super) fn as_ptr(&self) -> *const T {
        self.memory.ptr.cast()
    }

    #[inline]
    pub(super) fn as_source(&self, elements: Elements) -> Source<'_> {
        Source::new(&self.memory, elements, Contents::Rust)
    }
}

impl<T: Clone> TensorView<'_, T> {
    /// Returns clones of the elements, in row-major order.
    pub(super) fn to_vec(self) -> Result<Vec<T>, ScatterError> {
        let layout = self.layout();
        let elements = layout.check(size_of::<T>())?;
        let mut values = with_room(elements)?;
        for position in 0..elements {
            let offset = offset_of(layout.dims_from_last(), position);
            // SAFETY: `offset` is the offset of an element of the layout, and the view keeps all
            // elements of the layout readable.
            values.push(unsafe { &*self.as_ptr().offset(offset) }.clone());
        }
        Ok(values)
    }
}

impl<'a, T> TensorViewMut<'a, T> {
    /// Returns a row-major view of all elements of `data`.
    ///
    /// # Errors
    ///
    /// The errors of [`TensorView::contiguous`].
    #[inline]
    pub fn contiguous(data: &'a mut [T], shape: &'a [usize]) -> Result<Self, ScatterError> {
        check_contiguous(data.len(), shape)?;
        Ok(Self::new(data.as_mut_ptr(), Layout::contiguous(shape)))
    }

    /// Returns a view in which element `[i, j, ...]` is
    /// `data[offset + i * strides[0] + j * strides[1] + ...]`.
    ///
    /// Offset and strides are in elements. Strides may be negative.
    ///
    /// # Errors
    ///
    /// The errors of [`TensorView::strided`], and:
    ///
    /// - [`ScatterError::SelfOverlap`]: two elements share memory.
    /// - [`ScatterError::SelfOverlapUndecided`]: a search of limited effort could not decide
    ///   whether two elements share memory.
    pub fn strided(
        data: &'a mut [T],
        offset: usize,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<Self, ScatterError> {
        let layout = Layout::strided(shape, strides)?;
        let first = check_strided(data.len(), offset, &layout)?;
        check_distinct(&layout)?;
        Ok(Self::new(data.as_mut_ptr().wrapping_add(first), layout))
    }

    /// Returns a view of the elements of `layout`, with offsets from `ptr`. The caller ensures
    /// that, for `'a`, this view alone accesses these elements and may write all of them. The
    /// caller also ensures that no two elements overlap.
    #[inline]
    pub(super) fn new(ptr: *mut T, layout: Layout<'a>) -> Self {
        let ptr = ptr.cast();
        Self {
            memory: Writable { ptr, layout },
            elements: PhantomData,
        }
    }

    /// Returns the same view with a shorter lifetime. `self` can be used again when the returned
    /// view is no longer used.
    pub fn reborrow(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(self.memory.ptr.cast(), self.memory.layout)
    }

    /// Returns a view to read the same elements. The returned view borrows `self`.
    pub fn as_view(&self) -> TensorView<'_, T> {
        TensorView::new(self.memory.ptr.cast_const().cast(), self.memory.layout)
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    /// Returns the shape and the strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    #[inline]
    pub(super) fn as_target(&mut self, elements: Elements) -> Target<'_> {
        Target::new(&self.memory, elements, Contents::Rust)
    }
}

/// Returns the layout of rank 1 of a slice of `len` elements, limited to `isize::MAX` elements.
/// Only a slice of elements of 0 bytes can be longer. For such a slice the limit makes no
/// difference, because all elements of 0 bytes are equal.
fn line<'a>(len: usize) -> Layout<'a> {
    Layout::line(len.min(isize::MAX.unsigned_abs()))
}

/// A view of rank 1 of all elements of a slice.
impl<'a, T> From<&'a [T]> for TensorView<'a, T> {
    #[inline]
    fn from(data: &'a [T]) -> Self {
        Self::new(data.as_ptr(), line(data.len()))
    }
}

/// A view of rank 1 of all elements of a vector.
impl<'a, T> From<&'a Vec<T>> for TensorView<'a, T> {
    #[inline]
    fn from(data: &'a Vec<T>) -> Self {
        data.as_slice().into()
    }
}

/// A view of rank 1 of all elements of an array.
impl<'a, T, const N: usize> From<&'a [T; N]> for TensorView<'a, T> {
    #[inline]
    fn from(data: &'a [T; N]) -> Self {
        data.as_slice().into()
    }
}

/// A view of rank 1 of all elements of a slice.
impl<'a, T> From<&'a mut [T]> for TensorViewMut<'a, T> {
    #[inline]
    fn from(data: &'a mut [T]) -> Self {
        Self::new(data.as_mut_ptr(), line(data.len()))
    }
}

/// A view of rank 1 of all elements of a vector.
impl<'a, T> From<&'a mut Vec<T>> for TensorViewMut<'a, T> {
    #[inline]
    fn from(data: &'a mut Vec<T>) -> Self {
        data.as_mut_slice().into()
    }
}

/// A view of rank 1 of all elements of an array.
impl<'a, T, const N: usize> From<&'a mut [T; N]> for TensorViewMut<'a, T> {
    #[inline]
    fn from(data: &'a mut [T; N]) -> Self {
        data.as_mut_slice().into()
    }
}

impl<T: Element> sealed::Sealed for TensorView<'_, T> {}
impl<T: Element> sealed::Sealed for TensorViewMut<'_, T> {}

impl<'a, T: Element> Output for TensorViewMut<'a, T> {
    type Input = TensorView<'a, T>;

    #[inline]
    fn with_target<R>(
        mut self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError> {
        call(&self.as_target(Elements::Plain(T::DTYPE)))
    }
}

#[inline]
fn check_contiguous(len: usize, shape: &[usize]) -> Result<(), ScatterError> {
    match Layout::contiguous(shape).elements() {
        Some(expected) if expected == len => Ok(()),
        _ => Err(other_length(len, shape)),
    }
}

#[cold]
fn other_length(len: usize, shape: &[usize]) -> ScatterError {
    ScatterError::with_facts(|| {
        Ok(ScatterError::SliceLength {
            expected: Layout::contiguous(shape).checked_elements()?,
            shape: copied(shape)?,
            actual: len,
        })
    })
}

/// Checks that all elements of `layout` are inside a slice of `len` elements, if element
/// `[0, 0, ...]` is at `offset`. Returns `offset`, limited to `len` for a shape without elements.
fn check_strided(len: usize, offset: usize, layout: &Layout<'_>) -> Result<usize, ScatterError> {
    if layout.checked_elements()? == 0 {
        return Ok(offset.min(len));
    }
    let inside = layout.extent().is_some_and(|(low, high)| {
        let lowest = offset.checked_add_signed(low);
        let highest = offset.checked_add_signed(high);
        lowest.is_some() && highest.is_some_and(|highest| highest < len)
    });
    if inside {
        Ok(offset)
    } else {
        Err(ScatterError::OutsideSlice {
            offset,
            shape: copied(layout.shape())?,
            strides: copied(&layout.all_strides()?)?,
            len,
        })
    }
}

/// Refuses a layout in which two elements have the same address, or may have it.
pub(super) fn check_distinct(layout: &Layout<'_>) -> Result<(), ScatterError> {
    let overlap = overlap::with_itself(layout)?;
    if overlap == Overlap::Disjoint {
        return Ok(());
    }
    let (shape, strides) = (copied(layout.shape())?, copied(&layout.all_strides()?)?);
    Err(match overlap {
        Overlap::Shared => ScatterError::SelfOverlap { shape, strides },
        _ => ScatterError::SelfOverlapUndecided { shape, strides },
    })
}

impl<T> Clone for TensorView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TensorView<'_, T> {}

impl<T> fmt::Debug for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("TensorView"))
            .field("layout", &self.memory.layout)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TensorViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("TensorViewMut"))
            .field("layout", &self.memory.layout)
            .finish_non_exhaustive()
    }
}
