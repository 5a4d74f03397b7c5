//! Views whose element type is known only at run time, for callers such as inference runtimes.
//!
//! This module knows memory, layouts and element types. Constructors from bytes check alignment,
//! layout and bounds. Constructors from raw parts check alignment and layout, and the caller
//! guarantees the bounds.

#![expect(
    unsafe_code,
    reason = "views of memory; every constructor checks the promise of its view"
)]

use super::layout::Layout;
use super::memory::{Contents, Elements, Output, Readable, Source, Target, Writable, sealed};
use super::typed::{TensorView, TensorViewMut, ZEROS, check_distinct};
use crate::element::{DType, Element};
use crate::error::ScatterError;
use crate::memory::copied;

/// A read-only view of a tensor whose element type is known only at run time.
///
/// An `AnyView` is made from a [`TensorView`], from [bytes](Self::from_bytes) or from [raw
/// parts](Self::from_raw_parts). The constructor checks layout and alignment, so calls do not check
/// them again. Strides may be positive, negative or 0.
#[derive(Clone, Copy, Debug)]
pub struct AnyView<'a> {
    /// The memory and the layout. If the tensor has elements, the memory is aligned for `dtype`.
    /// `contents` states what is known about the bytes.
    pub(super) memory: Readable<'a>,
    pub(super) dtype: DType,
    pub(super) contents: Contents,
}

/// A mutable view of a tensor whose element type is known only at run time.
///
/// An `AnyViewMut` is made from a [`TensorViewMut`], from [bytes](Self::from_bytes) or from [raw
/// parts](Self::from_raw_parts). Strides may be negative. Constructors refuse a layout in which two
/// elements share memory.
#[derive(Debug)]
pub struct AnyViewMut<'a> {
    /// The memory and the layout. If the tensor has elements, the memory is aligned for `dtype`.
    /// `contents` states what is known about the bytes. A call must leave bytes for which this is
    /// still true.
    memory: Writable<'a>,
    dtype: DType,
    contents: Contents,
    /// Whether the caller ignores the elements after a call that returned an error.
    is_new: bool,
}

// SAFETY: a view is a shared borrow of plain bytes, which is `Send` and `Sync`.
unsafe impl Send for AnyView<'_> {}
// SAFETY: a view is a shared borrow of plain bytes, which is `Send` and `Sync`.
unsafe impl Sync for AnyView<'_> {}
// SAFETY: a mutable view is an exclusive borrow of plain bytes, which is `Send`.
unsafe impl Send for AnyViewMut<'_> {}
// SAFETY: a shared reference to a mutable view gives no access to the bytes.
unsafe impl Sync for AnyViewMut<'_> {}

impl<'a> AnyView<'a> {
    /// Returns a view of `bytes`. The element with the lowest address is at the start of `bytes`.
    /// `bytes` may be longer than the tensor.
    ///
    /// An element of [`DType::Bool`] may be any byte, not only 0 or 1. A call that would move
    /// elements of this view into a view of Rust's `bool` returns [`ScatterError::ForeignBool`].
    ///
    /// # Errors
    ///
    /// - [`ScatterError::BytesLength`]: `bytes` is too short for the elements of `layout`.
    /// - [`ScatterError::Misaligned`]: the address of `bytes` is not aligned for `dtype`.
    /// - [`ScatterError::ShapeOverflow`]: the product of all sizes other than 0, or the bytes from
    ///   the lowest to the highest element, exceeds `isize::MAX`.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{AnyView, AnyViewMut, DType, Layout, Reduction, Scatter};
    ///
    /// // Buffers of bytes, and types and shapes known at run time, as in a runtime.
    /// let (mut table, row, ones) = ([7_u16; 6], 2_i64, [1_u16; 2]);
    /// let table_bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut table);
    /// let (row, ones): (&[u8], &[u8]) = (bytemuck::bytes_of(&row), bytemuck::cast_slice(&ones));
    /// Scatter::along(0).reduction(Reduction::Add).in_place(
    ///     AnyViewMut::from_bytes(table_bytes, DType::U16, Layout::contiguous(&[3, 2]))?,
    ///     AnyView::from_bytes(row, DType::I64, Layout::line(1))?,
    ///     AnyView::from_bytes(ones, DType::U16, Layout::contiguous(&[1, 2]))?,
    /// )?;
    /// assert_eq!(table, [7, 7, 7, 7, 8, 8]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn from_bytes(
        bytes: &'a [u8],
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        let first = check_bytes(bytes, dtype, &layout)?;
        let ptr = bytes.as_ptr().wrapping_add(first);
        Ok(Self::new(Readable { ptr, layout }, dtype, Contents::Bytes))
    }

    /// Returns a view whose elements are all the same value, as [`TensorView::splat`] does.
    ///
    /// `value` holds the bytes of that value, aligned for `dtype`. `shape` has at most 64
    /// dimensions.
    ///
    /// # Errors
    ///
    /// The errors of [`from_bytes`](Self::from_bytes), and [`ScatterError::StridesRank`] for
    /// more than 64 dimensions.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{AnyView, AnyViewMut, DType, Layout, Scatter, TensorView};
    ///
    /// let mut table = [7_u8; 6];
    /// let data = AnyViewMut::from_bytes(&mut table, DType::U8, Layout::contiguous(&[3, 2]))?;
    /// let zeros = AnyView::splat(&[0], DType::U8, &[1, 2])?;
    /// Scatter::along(0).in_place(data, TensorView::from(&[1_i64]), zeros)?;
    /// assert_eq!(table, [7, 7, 0, 0, 7, 7]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    pub fn splat(value: &'a [u8], dtype: DType, shape: &'a [usize]) -> Result<Self, ScatterError> {
        let strides = &ZEROS[..shape.len().min(ZEROS.len())];
        Self::from_bytes(value, dtype, Layout::strided(shape, strides)?)
    }

    /// Returns a view of `memory`. The caller guarantees that `memory` is aligned for `dtype` and
    /// that `contents` is true of its bytes.
    #[inline]
    pub(super) fn new(memory: Readable<'a>, dtype: DType, contents: Contents) -> Self {
        Self {
            memory,
            dtype,
            contents,
        }
    }

    /// Returns a view of memory that a foreign runtime owns. `ptr` is the address of element
    /// `[0, 0, ...]`. The memory is not read if the shape has no elements.
    ///
    /// An element of [`DType::Bool`] may be any byte, not only 0 or 1. A call that would move
    /// elements of this view into a view of Rust's `bool` returns [`ScatterError::ForeignBool`].
    ///
    /// # Errors
    ///
    /// - [`ScatterError::Misaligned`]: `ptr` is not aligned for `dtype`.
    /// - [`ScatterError::ShapeOverflow`]: the product of all sizes other than 0, or the bytes from
    ///   the lowest to the highest element, exceeds `isize::MAX`.
    ///
    /// # Safety
    ///
    /// `layout` gives the offset of each element from `ptr`. During the lifetime `'a`, all elements
    /// are readable, initialised and inside one allocation. During `'a`, nothing writes the
    /// elements, except an in-place scatter of this crate.
    #[inline]
    pub unsafe fn from_raw_parts(
        ptr: *const u8,
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        check_raw(ptr.addr(), dtype, &layout)?;
        Ok(Self::new(
            Readable { ptr, layout },
            dtype,
            Contents::Foreign,
        ))
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape and the strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    #[inline]
    pub(super) fn as_source(&self) -> Source<'_> {
        Source::new(&self.memory, Elements::Plain(self.dtype), self.contents)
    }
}

impl<'a> AnyViewMut<'a> {
    /// Returns a mutable view of `bytes`. As with [`AnyView::from_bytes`], the element with the
    /// lowest address is at the start of `bytes`. `bytes` may be longer than the tensor. Calls do
    /// not access the bytes after the tensor.
    ///
    /// # Errors
    ///
    /// The errors of [`AnyView::from_bytes`], and:
    ///
    /// - [`ScatterError::SelfOverlap`]: two elements share memory.
    /// - [`ScatterError::SelfOverlapUndecided`]: a search of limited effort could not decide
    ///   whether two elements share memory.
    pub fn from_bytes(
        bytes: &'a mut [u8],
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        let first = check_bytes(bytes, dtype, &layout)?;
        check_distinct(&layout)?;
        let ptr = bytes.as_mut_ptr().wrapping_add(first).cast();
        Ok(Self::new(Writable { ptr, layout }, dtype, Contents::Bytes))
    }

    /// Returns a view of `memory`. The caller guarantees that `memory` is aligned for `dtype` and
    /// that `contents` is true of its bytes.
    #[inline]
    pub(super) fn new(memory: Writable<'a>, dtype: DType, contents: Contents) -> Self {
        Self {
            memory,
            dtype,
            contents,
            is_new: false,
        }
    }

    /// Returns a mutable view of memory that a foreign runtime owns. `ptr` is the address of
    /// element `[0, 0, ...]`. The memory is neither read nor written if the shape has no elements.
    ///
    /// An element of [`DType::Bool`] may be any byte, not only 0 or 1, before and after a call.
    ///
    /// # Errors
    ///
    /// The errors of [`AnyView::from_raw_parts`], and:
    ///
    /// - [`ScatterError::SelfOverlap`]: two elements share memory.
    /// - [`ScatterError::SelfOverlapUndecided`]: a search of limited effort could not decide
    ///   whether two elements share memory.
    ///
    /// # Safety
    ///
    /// `layout` gives the offset of each element from `ptr`. During the lifetime `'a`, all elements
    /// are initialised, writable and inside one allocation. During `'a`, only the calls of this
    /// crate that get the view read or write the elements.
    #[inline]
    pub unsafe fn from_raw_parts(
        ptr: *mut u8,
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        // SAFETY: the conditions of this function include all conditions of
        // `uninit_from_raw_parts`.
        let view = unsafe { Self::uninit_from_raw_parts(ptr, dtype, layout) }?;
        Ok(Self {
            contents: Contents::Foreign,
            ..view
        })
    }

    /// Returns a view of an output that calls only write. The elements may be uninitialised, which
    /// [`from_raw_parts`](Self::from_raw_parts) does not allow.
    ///
    /// An in-place call reads its output, so it refuses this view with
    /// [`ScatterError::Uninitialized`].
    ///
    /// # Errors
    ///
    /// The errors of [`from_raw_parts`](Self::from_raw_parts).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::mem::MaybeUninit;
    ///
    /// use ndscatter::{AnyViewMut, DType, Layout, Scatter, TensorView};
    ///
    /// let data = TensorView::contiguous(&[1.0_f32, 2.0, 3.0], &[3])?;
    /// let indices = TensorView::contiguous(&[1_i64], &[1, 1])?;
    /// let updates = TensorView::contiguous(&[9.0_f32], &[1])?;
    /// let mut memory = [MaybeUninit::<f32>::uninit(); 3];
    /// let (ptr, layout) = (memory.as_mut_ptr().cast(), Layout::contiguous(&[3]));
    /// // SAFETY: `memory` has three floats, and only the call touches them.
    /// let output = unsafe { AnyViewMut::uninit_from_raw_parts(ptr, DType::F32, layout) }?;
    /// Scatter::nd().write_into(data.into(), indices, updates.into(), output)?;
    /// // SAFETY: the call has written all three elements.
    /// let result = memory.map(|element| unsafe { element.assume_init() });
    /// assert_eq!(result, [1.0, 9.0, 3.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    ///
    /// # Safety
    ///
    /// The conditions of [`from_raw_parts`](Self::from_raw_parts), except that elements may be
    /// uninitialised. A call that writes this view initialises all its elements if the call returns
    /// without an error.
    #[inline]
    pub unsafe fn uninit_from_raw_parts(
        ptr: *mut u8,
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        check_raw(ptr.addr(), dtype, &layout)?;
        check_distinct(&layout)?;
        let ptr = ptr.cast();
        Ok(Self::new(
            Writable { ptr, layout },
            dtype,
            Contents::Unwritten,
        ))
    }

    /// Marks the view as new memory: if a call returns an error, the caller ignores the elements.
    ///
    /// After an error, the elements may have any values, because a call may write to new memory
    /// before it has checked all indices.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{AnyViewMut, Gather, TensorView, TensorViewMut};
    ///
    /// let mut result = vec![0.0; 2];
    /// let output = AnyViewMut::from(TensorViewMut::from(&mut result[..])).of_new_memory();
    /// let data = TensorView::from(&[1.0, 2.0, 3.0]);
    /// Gather::along(0).write_into(data.into(), TensorView::from(&[2_i64, 0]), output)?;
    /// assert_eq!(result, [3.0, 1.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn of_new_memory(self) -> Self {
        Self {
            is_new: true,
            ..self
        }
    }

    /// Returns a view of the same memory that borrows `self`. `self` can be used again after this
    /// borrow ends.
    pub fn reborrow(&mut self) -> AnyViewMut<'_> {
        AnyViewMut {
            memory: Writable { ..self.memory },
            ..*self
        }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape and the strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }

    /// Returns the view as an operand.
    #[inline]
    pub(crate) fn target(&mut self) -> Target<'_> {
        let mut target = Target::new(&self.memory, Elements::Plain(self.dtype), self.contents);
        target.is_new = self.is_new;
        target
    }
}

/// Checks that memory can hold the layout. Checks that `address` is aligned, if there are elements.
#[inline]
fn check_raw(address: usize, dtype: DType, layout: &Layout<'_>) -> Result<(), ScatterError> {
    let elements = layout.check(dtype.size())?;
    // The alignment is a power of two, so a bit mask gives the remainder. A division would cost
    // more than the rest of the check.
    if elements != 0 && address & (dtype.alignment() - 1) != 0 {
        return Err(ScatterError::Misaligned {
            address,
            dtype,
            alignment: dtype.alignment(),
        });
    }
    Ok(())
}

/// Checks that `bytes` holds all elements of the layout, with the lowest element at byte 0. Returns
/// the byte offset of element `[0, 0, ...]` in `bytes`.
fn check_bytes(bytes: &[u8], dtype: DType, layout: &Layout<'_>) -> Result<usize, ScatterError> {
    check_raw(bytes.as_ptr().addr(), dtype, layout)?;
    // The extent is `None` only for a shape without elements, because `check_raw` refuses overflow.
    let Some((low, high)) = layout.extent() else {
        return Ok(0);
    };
    // `needed` does not overflow: `check_raw` has checked that these bytes fit in `isize`.
    let needed = (high.abs_diff(low) + 1) * dtype.size();
    if needed > bytes.len() {
        return Err(ScatterError::BytesLength {
            shape: copied(layout.shape())?,
            dtype,
            needed,
            actual: bytes.len(),
        });
    }
    Ok(low.unsigned_abs() * dtype.size())
}

impl<'a, T: Element> From<TensorView<'a, T>> for AnyView<'a> {
    #[inline]
    fn from(view: TensorView<'a, T>) -> Self {
        Self::new(view.memory, T::DTYPE, Contents::Rust)
    }
}

impl<'a, T: Element> From<TensorViewMut<'a, T>> for AnyViewMut<'a> {
    #[inline]
    fn from(view: TensorViewMut<'a, T>) -> Self {
        Self::new(view.memory, T::DTYPE, Contents::Rust)
    }
}

impl sealed::Sealed for AnyView<'_> {}
impl sealed::Sealed for AnyViewMut<'_> {}

impl<'a> Output for AnyViewMut<'a> {
    type Input = AnyView<'a>;

    #[inline]
    fn with_target<R>(
        mut self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError> {
        call(&self.target())
    }
}
