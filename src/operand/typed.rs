//! Borrowed views of tensors whose element type is a Rust type.

#![expect(
    unsafe_code,
    reason = "views of memory; every constructor establishes what a view promises"
)]

use std::fmt;
use std::marker::PhantomData;

use super::layout::{Layout, offset_of};
use super::memory::{Contents, Elements, Output, Readable, Source, Target, Writable, sealed};
use super::overlap::{self, Overlap};
use crate::element::Element;
use crate::error::ScatterError;
use crate::memory::{copied, with_room};

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
/// // All of them as one dimension, and one value that stands for six.
/// TensorView::from(&values);
/// TensorView::splat(&7, &[2, 3])?;
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub struct TensorView<'a, T> {
    pub(super) memory: Readable<'a>,
    elements: PhantomData<&'a [T]>,
}

/// A tensor to write: as [`TensorView`], and no two of its elements are the
/// same memory.
pub struct TensorViewMut<'a, T> {
    pub(super) memory: Writable<'a>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: a view gives what `&[T]` gives, which is `Send` for `T: Sync`.
unsafe impl<T: Sync> Send for TensorView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for TensorView<'_, T> {}
// SAFETY: a mutable view gives what `&mut [T]` gives, which is `Send` for `T: Send`.
unsafe impl<T: Send> Send for TensorViewMut<'_, T> {}
// SAFETY: behind a shared reference it gives what `&&mut [T]` gives.
unsafe impl<T: Sync> Sync for TensorViewMut<'_, T> {}

/// Strides of a value that stands for a whole tensor.
pub(super) static ZEROS: [isize; 64] = [0; 64];

impl<'a, T> TensorView<'a, T> {
    /// Row-major over the whole of `data`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::SliceLength`] if `data` has another number of elements
    /// than `shape`, [`ScatterError::ShapeOverflow`] if that number overflows.
    #[inline]
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
    /// [`ScatterError::StridesRank`] if strides and shape differ in length,
    /// [`ScatterError::ShapeOverflow`] if the sizes multiply to more than memory
    /// can address.
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

    /// One value for every element, of at most 64 dimensions: updates that are
    /// all the same, as for a histogram.
    ///
    /// # Errors
    ///
    /// [`ScatterError::ShapeOverflow`], and [`ScatterError::StridesRank`] for
    /// more dimensions.
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

    /// Every element that `layout` places around `ptr` is readable for `'a`.
    #[inline]
    pub(super) fn new(ptr: *const T, layout: Layout<'a>) -> Self {
        let ptr = ptr.cast();
        Self {
            memory: Readable { ptr, layout },
            elements: PhantomData,
        }
    }

    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    /// Shape and strides.
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
    /// Clones of the elements, in row-major order.
    pub(super) fn to_vec(self) -> Result<Vec<T>, ScatterError> {
        let layout = self.layout();
        let elements = layout.check(size_of::<T>())?;
        let mut values = with_room(elements)?;
        for position in 0..elements {
            let offset = offset_of(layout.dims_from_last(), position);
            // SAFETY: `offset` is that of an element of the layout, which the
            // view keeps readable.
            values.push(unsafe { &*self.as_ptr().offset(offset) }.clone());
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
    #[inline]
    pub fn contiguous(data: &'a mut [T], shape: &'a [usize]) -> Result<Self, ScatterError> {
        check_contiguous(data.len(), shape)?;
        Ok(Self::new(data.as_mut_ptr(), Layout::contiguous(shape)))
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    ///
    /// # Errors
    ///
    /// As [`TensorView::strided`]; also [`ScatterError::SelfOverlap`] if two
    /// elements are the same memory, and [`ScatterError::SelfOverlapUndecided`]
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

    /// Every element that `layout` places around `ptr` is writable for `'a`, by
    /// this view alone, and no two of them overlap.
    #[inline]
    pub(super) fn new(ptr: *mut T, layout: Layout<'a>) -> Self {
        let ptr = ptr.cast();
        Self {
            memory: Writable { ptr, layout },
            elements: PhantomData,
        }
    }

    /// The same view for a shorter time, so that this one can be used again.
    pub fn reborrow(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(self.memory.ptr.cast(), self.memory.layout)
    }

    /// A view to read, for as long as this one is not used.
    pub fn as_view(&self) -> TensorView<'_, T> {
        TensorView::new(self.memory.ptr.cast_const().cast(), self.memory.layout)
    }

    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    #[inline]
    pub(super) fn as_target(&mut self, elements: Elements) -> Target<'_> {
        Target::new(&self.memory, elements, Contents::Rust)
    }
}

/// The layout of a slice. Slices of elements without bytes may be longer than
/// any layout: nobody can tell the rest from these.
fn line<'a>(len: usize) -> Layout<'a> {
    Layout::line(len.min(isize::MAX.unsigned_abs()))
}

/// Rank 1, over the whole of a slice.
impl<'a, T> From<&'a [T]> for TensorView<'a, T> {
    #[inline]
    fn from(data: &'a [T]) -> Self {
        Self::new(data.as_ptr(), line(data.len()))
    }
}

/// Rank 1, over the whole of a vector.
impl<'a, T> From<&'a Vec<T>> for TensorView<'a, T> {
    #[inline]
    fn from(data: &'a Vec<T>) -> Self {
        data.as_slice().into()
    }
}

/// Rank 1, over the whole of an array.
impl<'a, T, const N: usize> From<&'a [T; N]> for TensorView<'a, T> {
    #[inline]
    fn from(data: &'a [T; N]) -> Self {
        data.as_slice().into()
    }
}

/// Rank 1, over the whole of a slice.
impl<'a, T> From<&'a mut [T]> for TensorViewMut<'a, T> {
    #[inline]
    fn from(data: &'a mut [T]) -> Self {
        Self::new(data.as_mut_ptr(), line(data.len()))
    }
}

/// Rank 1, over the whole of a vector.
impl<'a, T> From<&'a mut Vec<T>> for TensorViewMut<'a, T> {
    #[inline]
    fn from(data: &'a mut Vec<T>) -> Self {
        data.as_mut_slice().into()
    }
}

/// Rank 1, over the whole of an array.
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
    fn target(&mut self) -> Target<'_> {
        self.as_target(Elements::Plain(T::DTYPE))
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
