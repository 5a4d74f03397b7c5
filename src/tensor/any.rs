//! Views whose element type is a value: what runtimes hand over.

use std::fmt;
use std::marker::PhantomData;

use super::{TensorView, TensorViewMut, check_distinct};
use crate::element::{Element, ElementType};
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::layout::overlap::Footprint;

/// A tensor to read, its element type a value.
///
/// Made from a [`TensorView`], or from raw parts, which are checked once.
#[derive(Clone, Copy)]
pub struct AnyView<'a> {
    /// Element `[0, 0, ...]`, aligned for `element`. Every element of `layout`
    /// around it is readable for `'a`.
    ptr: *const u8,
    element: ElementType,
    layout: Layout<'a>,
    memory: PhantomData<&'a [u8]>,
}

/// A tensor to write, its element type a value; no two of its elements are the
/// same memory.
pub struct AnyViewMut<'a> {
    /// Element `[0, 0, ...]`, aligned for `element`. Every element of `layout`
    /// around it may be written during `'a`, and no two of them overlap.
    ptr: *mut u8,
    element: ElementType,
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
    /// The elements need not be initialised where the view is only written
    /// into (`any_write_into`).
    ///
    /// # Errors
    ///
    /// As [`AnyView::from_raw_parts`]; also [`ScatterError::SelfOverlap`] and
    /// [`ScatterError::OverlapUndecided`].
    ///
    /// # Safety
    ///
    /// Every element that `layout` places around `ptr` is writable, as part of
    /// one allocation, for `'a`, and nothing but this crate's call touches it
    /// meanwhile.
    #[inline]
    pub unsafe fn from_raw_parts(
        ptr: *mut u8,
        element: ElementType,
        layout: Layout<'a>,
    ) -> Result<Self, ScatterError> {
        check_raw(ptr.addr(), element, &layout)?;
        check_distinct(&layout)?;
        Ok(Self {
            ptr,
            element,
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
