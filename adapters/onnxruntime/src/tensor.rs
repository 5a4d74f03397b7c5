//! Tensors of a run, as views.

use ndscatter::{AnyView, AnyViewMut, DType, Layout, ScatterError};
use ort_sys::OrtValue;

use crate::api::{Api, Shape};
use crate::failure::Failure;

/// A tensor of the host's: where its elements are, and their shape.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) value: *const OrtValue,
    pub(crate) shape: Shape,
    address: *mut u8,
}

impl Tensor {
    /// # Safety
    ///
    /// `value` is a tensor of the host's, for as long as this is used.
    pub(crate) unsafe fn new(api: Api, value: *const OrtValue) -> Result<Self, Failure> {
        if value.is_null() {
            return Err(Failure::invalid("an input is missing"));
        }
        // SAFETY: the caller vouches for the value.
        unsafe {
            Ok(Self {
                value,
                shape: api.shape(value)?,
                address: api.address(value)?,
            })
        }
    }

    /// As many elements as the shape says.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether both lie at one address.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.address == other.address && self.len() > 0
    }

    /// # Safety
    ///
    /// The tensor holds as many elements of this type as `shape` says.
    pub(crate) unsafe fn view<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
    ) -> Result<AnyView<'a>, ScatterError> {
        // SAFETY: the host has initialised its tensor and keeps it during the run.
        unsafe { AnyView::from_raw_parts(self.address, dtype, Layout::contiguous(shape)) }
    }

    /// `holds`: whether it holds values, as where it is also an input.
    ///
    /// # Safety
    ///
    /// As for [`Self::view`], and the tensor is an output of the run; where `holds`, it is
    /// initialised.
    pub(crate) unsafe fn view_mut<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        holds: bool,
    ) -> Result<AnyViewMut<'a>, ScatterError> {
        let layout = Layout::contiguous(shape);
        // SAFETY: the host lets no one else touch an output during the run.
        unsafe {
            if holds {
                AnyViewMut::from_raw_parts(self.address, dtype, layout)
            } else {
                AnyViewMut::uninit_from_raw_parts(self.address, dtype, layout)
            }
        }
    }
}
