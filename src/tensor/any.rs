//! Views whose element type is a value: what runtimes hand over.

use std::fmt;
use std::marker::PhantomData;

use super::{TensorView, TensorViewMut, check_distinct};
use crate::element::{Element, ElementType};
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::layout::overlap::Footprint;

/// What is known of the bytes of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// They are values of the Rust type, and nobody else writes them.
    Rust,
    /// A foreign runtime wrote them: a `Bool` may be any byte, and what is read
    /// twice may differ.
    Foreign,
    /// They may not be initialised, and become whatever is written.
    Unwritten,
}

/// A tensor to read, its element type a value.
///
/// Made from a [`TensorView`], or from raw parts, which are checked once.
#[derive(Clone, Copy)]
pub struct AnyView<'a> {
    /// Element `[0, 0, ...]`, aligned for `element`. Every element of `layout`
    /// around it is readable for `'a`, and holds what `contents` says.
    ptr: *const u8,
    element: ElementType,
    contents: Contents,
    layout: Layout<'a>,
    memory: PhantomData<&'a [u8]>,
}

/// A tensor to write, its element type a value; no two of its elements are the
/// same memory.
pub struct AnyViewMut<'a> {
    /// Element `[0, 0, ...]`, aligned for `element`. Every element of `layout`
    /// around it may be written during `'a`, no two of them overlap, and each
    /// holds, now and when the view is gone, what `contents` says.
    ptr: *mut u8,
    element: ElementType,
    contents: Contents,
    layout: Layout<'a>,
    memory: PhantomData<&'a mut [u8]>,
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
    /// A view of memory that a foreign runtime owns. `ptr` is the address of
    /// element `[0, 0, ...]`; it is not read where the shape has no elements.
    ///
    /// Elements of [`ElementType::Bool`] may be any byte. They are not moved
    /// into views of Rust's `bool` ([`ScatterError::ForeignBool`]).
    ///
    /// # Errors
    ///
    /// [`ScatterError::Misaligned`] if the address does not suit `element`,
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
        element: ElementType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        check_raw(ptr.addr(), element, &layout)?;
        Ok(Self {
            ptr,
            element,
            contents: Contents::Foreign,
            layout,
            memory: PhantomData,
        })
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.layout
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// Whether a foreign runtime owns the memory: booleans may be any byte, and
    /// what is read twice may differ.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.contents != Contents::Rust
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.ptr
    }

    pub(crate) fn footprint(&self) -> Footprint<'a> {
        Footprint {
            address: self.ptr.addr(),
            layout: self.layout,
            size: self.element.size(),
        }
    }
}

impl<'a> AnyViewMut<'a> {
    /// A view of memory that a foreign runtime owns. `ptr` is the address of
    /// element `[0, 0, ...]`; it is not touched where the shape has no elements.
    ///
    /// Elements of [`ElementType::Bool`] may be any byte, and may become any.
    ///
    /// # Errors
    ///
    /// As [`AnyView::from_raw_parts`]; also [`ScatterError::SelfOverlap`] and
    /// [`ScatterError::OverlapUndecided`].
    ///
    /// # Safety
    ///
    /// Every element that `layout` places around `ptr` is initialised and
    /// writable, as part of one allocation, for `'a`, and nothing but this
    /// crate's call touches it meanwhile.
    #[inline]
    pub unsafe fn from_raw_parts(
        ptr: *mut u8,
        element: ElementType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        // SAFETY: the caller vouches for more than what is asked.
        let view = unsafe { Self::uninit_from_raw_parts(ptr, element, layout) }?;
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
    /// use ndscatter::{AnyViewMut, ElementType, Layout, ScatterNd, TensorView};
    ///
    /// let data = TensorView::contiguous(&[1.0_f32, 2.0, 3.0], &[3])?;
    /// let indices = TensorView::contiguous(&[1_i64], &[1, 1])?;
    /// let updates = TensorView::contiguous(&[9.0_f32], &[1])?;
    /// let mut memory = [MaybeUninit::<f32>::uninit(); 3];
    /// let (ptr, layout) = (memory.as_mut_ptr().cast(), Layout::contiguous(&[3]));
    /// // SAFETY: three floats, borrowed, that the call alone touches.
    /// let output = unsafe { AnyViewMut::uninit_from_raw_parts(ptr, ElementType::F32, layout) }?;
    /// ScatterNd::new().any_write_into(data.into(), indices.into(), updates.into(), output)?;
    /// // SAFETY: the call has written all of them.
    /// let result = memory.map(|element| unsafe { element.assume_init() });
    /// assert_eq!(result, [1.0, 9.0, 3.0]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`from_raw_parts`](Self::from_raw_parts), but for the elements'
    /// being initialised. They are, once a call that was given this view as its
    /// output has returned without an error.
    #[inline]
    pub unsafe fn uninit_from_raw_parts(
        ptr: *mut u8,
        element: ElementType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        check_raw(ptr.addr(), element, &layout)?;
        check_distinct(&layout)?;
        Ok(Self {
            ptr,
            element,
            contents: Contents::Unwritten,
            layout,
            memory: PhantomData,
        })
    }

    /// The same view for a shorter time, so that this one can be used again.
    pub fn reborrow(&mut self) -> AnyViewMut<'_> {
        AnyViewMut { ..*self }
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Shape and strides.
    pub fn layout(&self) -> Layout<'a> {
        self.layout
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// Whether the elements may be read.
    #[inline]
    pub(crate) fn is_initialized(&self) -> bool {
        self.contents != Contents::Unwritten
    }

    /// Whether booleans must stay 0 or 1.
    #[inline]
    pub(crate) fn holds_rust_bools(&self) -> bool {
        self.element == ElementType::Bool && self.contents == Contents::Rust
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr
    }

    pub(crate) fn footprint(&self) -> Footprint<'a> {
        Footprint {
            address: self.ptr.addr(),
            layout: self.layout,
            size: self.element.size(),
        }
    }
}

#[inline]
fn check_raw(
    address: usize,
    element: ElementType,
    layout: &Layout<'_>,
) -> Result<(), ScatterError> {
    let elements = layout.check(element.size())?;
    // A power of two; a division would cost more than the rest of the check.
    if elements != 0 && address & (element.alignment() - 1) != 0 {
        return Err(ScatterError::Misaligned {
            element,
            alignment: element.alignment(),
        });
    }
    Ok(())
}

impl<'a, T: Element> From<TensorView<'a, T>> for AnyView<'a> {
    fn from(view: TensorView<'a, T>) -> Self {
        Self {
            ptr: view.as_ptr().cast(),
            element: T::TYPE,
            contents: Contents::Rust,
            layout: view.layout(),
            memory: PhantomData,
        }
    }
}

impl<'a, T: Element> From<TensorViewMut<'a, T>> for AnyViewMut<'a> {
    fn from(mut view: TensorViewMut<'a, T>) -> Self {
        Self {
            ptr: view.as_mut_ptr().cast(),
            element: T::TYPE,
            contents: Contents::Rust,
            layout: view.layout(),
            memory: PhantomData,
        }
    }
}

impl fmt::Debug for AnyView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("AnyView"))
            .field("element", &self.element)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AnyViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("AnyViewMut"))
            .field("element", &self.element)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
