//! Borrowed views of tensors: typed, and with the element type as a value.
//!
//! A view's constructor is the one place where memory and layout are held
//! against each other; whoever holds a view may touch every element of it.

#![expect(
    unsafe_code,
    reason = "views of raw memory; every constructor establishes what a view promises"
)]

mod any;
#[cfg(feature = "ndarray")]
mod ndarray;

use std::fmt;
use std::marker::PhantomData;

pub use any::{AnyView, AnyViewMut};

use crate::error::ScatterError;
use crate::layout::Layout;
use crate::layout::overlap::{self, Overlap};
use crate::memory::{copied, out_of_memory};

/// A tensor to read: memory, shape, and strides in elements.
///
/// # Examples
///
/// ```
/// use ndscatter::TensorView;
///
/// let values = [1, 2, 3, 4, 5, 6];
/// // Two rows of three, the same memory as three rows of two, transposed, and
/// // one row seen four times.
/// TensorView::contiguous(&values, &[2, 3])?;
/// TensorView::strided(&values, 0, &[2, 3], &[1, 2])?;
/// TensorView::strided(&values, 0, &[4, 3], &[0, 1])?;
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub struct TensorView<'a, T> {
    /// Element `[0, 0, ...]`. Every element of `layout` around it is readable
    /// for `'a`.
    ptr: *const T,
    layout: Layout<'a>,
    memory: PhantomData<&'a [T]>,
}

/// A tensor to write: as [`TensorView`], and no two of its elements are the
/// same memory.
pub struct TensorViewMut<'a, T> {
    /// Element `[0, 0, ...]`. Every element of `layout` around it belongs to
    /// this view alone for `'a`, and no two of them overlap.
    ptr: *mut T,
    layout: Layout<'a>,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: a view gives what `&[T]` gives, which is `Send` for `T: Sync`.
unsafe impl<T: Sync> Send for TensorView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for TensorView<'_, T> {}
// SAFETY: a mutable view gives what `&mut [T]` gives, which is `Send` for `T: Send`.
unsafe impl<T: Send> Send for TensorViewMut<'_, T> {}
// SAFETY: behind a shared reference it gives what `&&mut [T]` gives.
unsafe impl<T: Sync> Sync for TensorViewMut<'_, T> {}

impl<'a, T> TensorView<'a, T> {
    /// Row-major over the whole of `data`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::SliceLength`] if `data` has another number of elements
    /// than `shape`, [`ScatterError::ShapeOverflow`] if that number overflows.
    pub fn contiguous(data: &'a [T], shape: &'a [usize]) -> Result<Self, ScatterError> {
        check_contiguous(data.len(), shape)?;
        Ok(Self::new(data.as_ptr(), Layout::contiguous(shape)))
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    ///
    /// Strides may be negative, and zero: one element then stands for a whole
    /// dimension.
    ///
    /// # Errors
    ///
    /// [`ScatterError::OutsideSlice`] if an element lies outside `data`,
    /// [`ScatterError::StridesRank`] if strides and shape differ in length.
    pub fn strided(
        data: &'a [T],
        offset: usize,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Result<Self, ScatterError> {
        let layout = Layout::strided(shape, strides)?;
        let first = check_strided(data.len(), offset, &layout)?;
        // Through the slice's own pointer, so that elements below `first` stay
        // within its provenance.
        Ok(Self::new(data.as_ptr().wrapping_add(first), layout))
    }

    /// `ptr` and `layout` keep what the field `ptr` promises.
    fn new(ptr: *const T, layout: Layout<'a>) -> Self {
        Self {
            ptr,
            layout,
            memory: PhantomData,
        }
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.layout
    }

    pub(crate) fn as_ptr(&self) -> *const T {
        self.ptr
    }
}

impl<T: Clone> TensorView<'_, T> {
    /// Clones of the elements, in row-major order.
    pub(crate) fn to_vec(self) -> Result<Vec<T>, ScatterError> {
        let elements = self.layout.check(size_of::<T>())?;
        let mut values = Vec::new();
        (values.try_reserve_exact(elements)).map_err(|_| out_of_memory::<T>(elements))?;
        let strides = self.layout.all_strides()?;
        for position in 0..elements {
            let mut rest = position;
            let mut offset = 0;
            for (&size, &stride) in self.shape().iter().zip(&*strides).rev() {
                offset += (rest % size).cast_signed() * stride;
                rest /= size;
            }
            // SAFETY: `offset` is that of an element of the layout, which the
            // view keeps readable.
            values.push(unsafe { &*self.ptr.offset(offset) }.clone());
        }
        Ok(values)
    }
}

impl<'a, T> TensorViewMut<'a, T> {
    /// Row-major over the whole of `data`.
    ///
    /// # Errors
    ///
    /// As [`TensorView::contiguous`].
    pub fn contiguous(data: &'a mut [T], shape: &'a [usize]) -> Result<Self, ScatterError> {
        check_contiguous(data.len(), shape)?;
        Ok(Self::new(data.as_mut_ptr(), Layout::contiguous(shape)))
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    ///
    /// # Errors
    ///
    /// As [`TensorView::strided`]; also [`ScatterError::SelfOverlap`] if two
    /// elements are the same memory, and [`ScatterError::OverlapUndecided`]
    /// if a bounded search cannot tell.
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

    /// `ptr` and `layout` keep what the field `ptr` promises.
    fn new(ptr: *mut T, layout: Layout<'a>) -> Self {
        Self {
            ptr,
            layout,
            memory: PhantomData,
        }
    }

    /// The same view for a shorter time, so that this one can be used again.
    pub fn reborrow(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(self.ptr, self.layout)
    }

    /// A view to read, for as long as this one is not used.
    pub fn as_view(&self) -> TensorView<'_, T> {
        TensorView::new(self.ptr, self.layout)
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.layout
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.ptr
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
    match Layout::contiguous(shape).checked_elements() {
        Err(error) => error,
        Ok(expected) => ScatterError::with_facts(|| {
            Ok(ScatterError::SliceLength {
                shape: copied(shape)?,
                expected,
                actual: len,
            })
        }),
    }
}

/// Returns the position of element `[0, 0, ...]`, at most `len`.
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

/// Refuses layouts that put two elements at one address.
fn check_distinct(layout: &Layout<'_>) -> Result<(), ScatterError> {
    match overlap::with_itself(layout)? {
        Overlap::Disjoint => Ok(()),
        Overlap::Shared => Err(ScatterError::SelfOverlap {
            shape: copied(layout.shape())?,
            strides: copied(&layout.all_strides()?)?,
        }),
        Overlap::Undecided => Err(ScatterError::OverlapUndecided { tensor: "output" }),
    }
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
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TensorViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("TensorViewMut"))
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
