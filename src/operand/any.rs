//! Views with an element type known at run time, for callers such as runtimes.
//!
//! This module knows memory, layouts and element types. Every constructor checks alignment and
//! layout, except the bounds of raw parts, which the caller guarantees.

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

/// A tensor to read, with an element type known at run time.
///
/// An `AnyView` is made from a [`TensorView`], from [bytes](Self::from_bytes) or from [raw
/// parts](Self::from_raw_parts). The constructor checks layout and alignment once. Any strides are
/// allowed, 0 included.
#[derive(Clone, Copy, Debug)]
pub struct AnyView<'a> {
    /// Memory with the alignment of `dtype`. `contents` describes its bytes.
    pub(super) memory: Readable<'a>,
    pub(super) dtype: DType,
    pub(super) contents: Contents,
}

/// A tensor to write, with an element type known at run time.
///
/// An `AnyViewMut` is made from a [`TensorViewMut`], from [bytes](Self::from_bytes) or from [raw
/// parts](Self::from_raw_parts). No two elements share memory. Strides may be negative.
#[derive(Debug)]
pub struct AnyViewMut<'a> {
    /// Memory with the alignment of `dtype`. `contents` describes its bytes, now and after the
    /// lifetime of the view.
    memory: Writable<'a>,
    dtype: DType,
    contents: Contents,
    /// Whether the caller ignores the memory after an error.
    is_new: bool,
}

// SAFETY: a view is a shared borrow of plain bytes.
unsafe impl Send for AnyView<'_> {}
// SAFETY: a view is a shared borrow of plain bytes.
unsafe impl Sync for AnyView<'_> {}
// SAFETY: a mutable view is an exclusive borrow of plain bytes.
unsafe impl Send for AnyViewMut<'_> {}
// SAFETY: a shared reference to a mutable view gives no access to the bytes.
unsafe impl Sync for AnyViewMut<'_> {}

impl<'a> AnyView<'a> {
    /// Returns a view of bytes. The element with the lowest address is at the start of
    /// `bytes`. `bytes` may be longer than the tensor.
    ///
    /// Elements of [`DType::Bool`] may be any byte. A call that would move them into a view of
    /// Rust's `bool` is refused ([`ScatterError::ForeignBool`]).
    ///
    /// # Errors
    ///
    /// - [`ScatterError::BytesLength`]: an element is outside `bytes`.
    /// - [`ScatterError::Misaligned`]: the address of `bytes` is not aligned for `dtype`.
    /// - [`ScatterError::ShapeOverflow`]: the layout reaches beyond the address space.
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

    /// Returns a view in which every element is one value, as [`TensorView::splat`] does.
    ///
    /// `value` holds the bytes of the value. `shape` has at most 64 dimensions.
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

    /// Returns a view of `memory`, which has the alignment of `dtype` and the bytes that
    /// `contents` describes.
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
    /// Elements of [`DType::Bool`] may be any byte. A call that would move them into a view of
    /// Rust's `bool` is refused ([`ScatterError::ForeignBool`]).
    ///
    /// # Errors
    ///
    /// - [`ScatterError::Misaligned`]: `ptr` is not aligned for `dtype`.
    /// - [`ScatterError::ShapeOverflow`]: the layout reaches beyond the address space.
    ///
    /// # Safety
    ///
    /// `layout` places elements around `ptr`. For `'a`, all of them are readable, initialised
    /// and part of one allocation. For `'a`, nothing writes them, except an in-place scatter of
    /// this crate.
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
    /// Returns a view of bytes, as [`AnyView::from_bytes`] does. `bytes` may be longer than the
    /// tensor. Bytes after the tensor are not touched.
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

    /// Returns a view of `memory`, which has the alignment of `dtype` and the bytes that
    /// `contents` describes.
    #[inline]
    pub(super) fn new(memory: Writable<'a>, dtype: DType, contents: Contents) -> Self {
        Self {
            memory,
            dtype,
            contents,
            is_new: false,
        }
    }

    /// Returns a view of memory that a foreign runtime owns. `ptr` is the address of element
    /// `[0, 0, ...]`. The memory is not touched if the shape has no elements.
    ///
    /// Elements of [`DType::Bool`] may be any byte, before and after the call.
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
    /// `layout` places elements around `ptr`. For `'a`, all of them are initialised, writable
    /// and part of one allocation. For `'a`, only the call of this crate touches them.
    #[inline]
    pub unsafe fn from_raw_parts(
        ptr: *mut u8,
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        // SAFETY: the contract of this function includes that of the called function.
        let view = unsafe { Self::uninit_from_raw_parts(ptr, dtype, layout) }?;
        Ok(Self {
            contents: Contents::Foreign,
            ..view
        })
    }

    /// Returns a view of an output that is only written. Its elements may be uninitialised,
    /// unlike those of [`from_raw_parts`](Self::from_raw_parts).
    ///
    /// An in-place call reads its output. Such a call refuses this view with
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
    /// uninitialised. A call with this view as its output initialises them if it returns
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

    /// Returns the same view, marked as new memory: the caller ignores the elements after an
    /// error.
    ///
    /// After an error, the elements may have any values, because a call may write before it has
    /// checked all indices.
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

    /// Returns the same view with a shorter lifetime, so that `self` can be used again later.
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
}

/// Checks layout and alignment.
#[inline]
fn check_raw(address: usize, dtype: DType, layout: &Layout<'_>) -> Result<(), ScatterError> {
    let elements = layout.check(dtype.size())?;
    // The alignment is a power of two. A division would cost more than the rest of the check.
    if elements != 0 && address & (dtype.alignment() - 1) != 0 {
        return Err(ScatterError::Misaligned {
            address,
            dtype,
            alignment: dtype.alignment(),
        });
    }
    Ok(())
}

/// Returns the position in bytes of element `[0, 0, ...]`. The lowest element is at position 0.
fn check_bytes(bytes: &[u8], dtype: DType, layout: &Layout<'_>) -> Result<usize, ScatterError> {
    check_raw(bytes.as_ptr().addr(), dtype, layout)?;
    // `None` for a shape without elements.
    let Some((low, high)) = layout.extent() else {
        return Ok(0);
    };
    // No overflow: `check_raw` has checked that these bytes fit in `isize`.
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
    fn target(&mut self) -> Target<'_> {
        let mut target = Target::new(&self.memory, Elements::Plain(self.dtype), self.contents);
        target.is_new = self.is_new;
        target
    }
}
