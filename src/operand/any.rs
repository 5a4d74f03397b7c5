//! Views whose element type is a value: what runtimes hand over.

#![expect(
    unsafe_code,
    reason = "views of memory; every constructor establishes what a view promises"
)]

use super::layout::Layout;
use super::memory::{Contents, Elements, Output, Readable, Source, Target, Writable, sealed};
use super::typed::{TensorView, TensorViewMut, ZEROS, check_distinct};
use crate::element::{DType, Element};
use crate::error::ScatterError;
use crate::memory::copied;

/// A tensor to read, its element type a value.
///
/// Made from a [`TensorView`], from bytes, or from raw parts, which are checked
/// once.
#[derive(Clone, Copy, Debug)]
pub struct AnyView<'a> {
    /// Aligned for `dtype`; holds what `contents` says.
    pub(super) memory: Readable<'a>,
    pub(super) dtype: DType,
    pub(super) contents: Contents,
}

/// A tensor to write, its element type a value; no two of its elements are the
/// same memory.
#[derive(Debug)]
pub struct AnyViewMut<'a> {
    /// Aligned for `dtype`; each element holds, now and when the view is gone,
    /// what `contents` says.
    memory: Writable<'a>,
    dtype: DType,
    contents: Contents,
    is_new: bool,
}

// SAFETY: a view is a shared borrow of plain bytes.
unsafe impl Send for AnyView<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnyView<'_> {}
// SAFETY: a mutable view is an exclusive borrow of plain bytes.
unsafe impl Send for AnyViewMut<'_> {}
// SAFETY: behind a shared reference it gives no access.
unsafe impl Sync for AnyViewMut<'_> {}

impl<'a> AnyView<'a> {
    /// A view of bytes: the element with the lowest address lies at the start
    /// of `bytes`, which may be longer than the tensor.
    ///
    /// Elements of [`DType::Bool`] may be any byte. They are not moved into
    /// views of Rust's `bool` ([`ScatterError::ForeignBool`]).
    ///
    /// # Errors
    ///
    /// [`ScatterError::BytesLength`] if an element lies outside `bytes`,
    /// [`ScatterError::Misaligned`] if their address does not suit `dtype`,
    /// [`ScatterError::ShapeOverflow`] if the layout exceeds the address space.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{AnyView, AnyViewMut, DType, Layout, Reduction, Scatter};
    ///
    /// // What a runtime has: buffers of bytes, and types and shapes as values.
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

    /// One value for a whole tensor of any shape of up to 64 dimensions, as
    /// [`TensorView::splat`] has it.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`](Self::from_bytes), and [`ScatterError::StridesRank`] for more
    /// dimensions.
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

    /// `memory` is aligned for `dtype`, and holds what `contents` says.
    #[inline]
    pub(super) fn new(memory: Readable<'a>, dtype: DType, contents: Contents) -> Self {
        Self {
            memory,
            dtype,
            contents,
        }
    }

    /// A view of memory that a foreign runtime owns. `ptr` is the address of
    /// element `[0, 0, ...]`; it is not read where the shape has no elements.
    ///
    /// Elements of [`DType::Bool`] may be any byte. They are not moved
    /// into views of Rust's `bool` ([`ScatterError::ForeignBool`]).
    ///
    /// # Errors
    ///
    /// [`ScatterError::Misaligned`] if the address does not suit `dtype`,
    /// [`ScatterError::ShapeOverflow`] if the layout exceeds the address space.
    ///
    /// # Safety
    ///
    /// Every element that `layout` places around `ptr` is readable and
    /// initialised, as part of one allocation, for `'a`, and is not written
    /// meanwhile except by an in-place scatter through this crate.
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

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    /// The sizes of the dimensions.
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
    /// A view of bytes, as [`AnyView::from_bytes`]: `bytes` may be longer than
    /// the tensor, and what lies behind it is not touched.
    ///
    /// # Errors
    ///
    /// As there; also [`ScatterError::SelfOverlap`] and
    /// [`ScatterError::SelfOverlapUndecided`].
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

    /// `memory` is aligned for `dtype`, and holds what `contents` says.
    #[inline]
    pub(super) fn new(memory: Writable<'a>, dtype: DType, contents: Contents) -> Self {
        Self {
            memory,
            dtype,
            contents,
            is_new: false,
        }
    }

    /// A view of memory that a foreign runtime owns. `ptr` is the address of
    /// element `[0, 0, ...]`; it is not touched where the shape has no elements.
    ///
    /// Elements of [`DType::Bool`] may be any byte, and may become any.
    ///
    /// # Errors
    ///
    /// As [`AnyView::from_raw_parts`]; also [`ScatterError::SelfOverlap`] and
    /// [`ScatterError::SelfOverlapUndecided`].
    ///
    /// # Safety
    ///
    /// Every element that `layout` places around `ptr` is initialised and
    /// writable, as part of one allocation, for `'a`, and nothing but this
    /// crate's call touches it meanwhile.
    #[inline]
    pub unsafe fn from_raw_parts(
        ptr: *mut u8,
        dtype: DType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        // SAFETY: the caller vouches for more than what is asked.
        let view = unsafe { Self::uninit_from_raw_parts(ptr, dtype, layout) }?;
        Ok(Self {
            contents: Contents::Foreign,
            ..view
        })
    }

    /// [`from_raw_parts`](Self::from_raw_parts) for an output that is only
    /// written: its elements need not be initialised. A call in place, which
    /// reads them, is refused with [`ScatterError::Uninitialized`].
    ///
    /// # Errors
    ///
    /// As [`from_raw_parts`](Self::from_raw_parts).
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
    /// // SAFETY: three floats, borrowed, that the call alone touches.
    /// let output = unsafe { AnyViewMut::uninit_from_raw_parts(ptr, DType::F32, layout) }?;
    /// Scatter::nd().write_into(data.into(), indices, updates.into(), output)?;
    /// // SAFETY: the call has written all of them.
    /// let result = memory.map(|element| unsafe { element.assume_init() });
    /// assert_eq!(result, [1.0, 9.0, 3.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`from_raw_parts`](Self::from_raw_parts), except that elements may be
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

    /// The same view, of memory that nobody looks at unless the call succeeds: its
    /// elements may be any values when the call returns an error. Calls need not read all
    /// indices before they write then.
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

    /// The same view for a shorter time, so that this one can be used again.
    pub fn reborrow(&mut self) -> AnyViewMut<'_> {
        AnyViewMut {
            memory: Writable { ..self.memory },
            ..*self
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.memory.layout
    }

    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.memory.layout.shape()
    }
}

/// Returns the number of elements.
#[inline]
fn check_raw(address: usize, dtype: DType, layout: &Layout<'_>) -> Result<usize, ScatterError> {
    let elements = layout.check(dtype.size())?;
    // A power of two; a division would cost more than the rest of the check.
    if elements != 0 && address & (dtype.alignment() - 1) != 0 {
        return Err(ScatterError::Misaligned {
            address,
            dtype,
            alignment: dtype.alignment(),
        });
    }
    Ok(elements)
}

/// Position of element `[0, 0, ...]` in bytes that begin with the lowest.
fn check_bytes(bytes: &[u8], dtype: DType, layout: &Layout<'_>) -> Result<usize, ScatterError> {
    if check_raw(bytes.as_ptr().addr(), dtype, layout)? == 0 {
        return Ok(0);
    }
    // `check_raw` has found all of it to fit in memory.
    let (low, high) = layout.extent().unwrap_or((0, 0));
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
