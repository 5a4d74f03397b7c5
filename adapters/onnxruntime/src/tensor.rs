//! Tensors of the host, and the crate's views of their elements.
//!
//! A caller may bind a buffer that is misaligned for its element type. For such a tensor, this
//! module uses an aligned copy of the elements. This module depends on memory and shapes, not on
//! operators.

use ndscatter::{AnyView, AnyViewMut, DType, Layout, ScatterError};
use ort_sys::OrtValue;

use crate::api::{Api, Shape};
use crate::failure::Failure;

/// A tensor of the host: its value, its shape and the address of its elements.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) value: *const OrtValue,
    pub(crate) shape: Shape,
    /// Address of the elements: the host's address, or the address of `copy` if `copy` is in use.
    address: *mut u8,
    /// Buffer of an aligned copy of the elements. The buffer is empty while `address` is the host's
    /// address.
    copy: Vec<u64>,
}

impl Tensor {
    /// Returns the input tensor of a run that the host passes as `value`. Returns an error if
    /// `value` is null.
    ///
    /// # Safety
    ///
    /// `value` is null or a tensor of the host that outlives the result.
    pub(crate) unsafe fn new(api: Api, value: *const OrtValue) -> Result<Self, Failure> {
        if value.is_null() {
            return Err(Failure::invalid("an input is missing; pass a tensor"));
        }
        // SAFETY: `value` is valid (contract of this function).
        unsafe {
            Ok(Self {
                value,
                shape: api.shape(value)?,
                address: api.address(value)?,
                copy: Vec::new(),
            })
        }
    }

    /// Returns the output tensor of a run. The host has allocated `value` with the shape `shape`.
    ///
    /// # Safety
    ///
    /// `value` is a tensor of the host that outlives the result.
    pub(crate) unsafe fn output(
        api: Api,
        value: *const OrtValue,
        shape: Shape,
    ) -> Result<Self, Failure> {
        Ok(Self {
            value,
            shape,
            // SAFETY: `value` is valid (contract of this function).
            address: unsafe { api.address(value)? },
            copy: Vec::new(),
        })
    }

    fn is_aligned(&self, dtype: DType) -> bool {
        self.address.addr().is_multiple_of(dtype.alignment())
    }

    /// Allocates an aligned buffer, makes it the address of this tensor, and returns the previous
    /// address. The elements are not copied, so the values in the buffer are unspecified.
    fn use_copy(&mut self, dtype: DType) -> Result<*mut u8, ScatterError> {
        let bytes = self.len().saturating_mul(dtype.size());
        let words = bytes.div_ceil(size_of::<u64>());
        let reserved = self.copy.try_reserve_exact(words);
        reserved.map_err(|_| ScatterError::OutOfMemory { bytes })?;
        self.copy.resize(words, 0);
        let room = self.copy.as_mut_ptr().cast();
        Ok(std::mem::replace(&mut self.address, room))
    }

    /// Makes the address of an input aligned for `dtype`: copies the elements to an aligned buffer
    /// if the host's address is misaligned.
    ///
    /// # Safety
    ///
    /// The elements of the tensor have the type `dtype`.
    pub(crate) unsafe fn align(&mut self, dtype: DType) -> Result<(), ScatterError> {
        if self.is_aligned(dtype) {
            return Ok(());
        }
        let bytes = self.len() * dtype.size();
        let given = self.use_copy(dtype)?;
        // SAFETY: `given` holds `bytes` bytes (contract of this function). The new buffer has at
        // least `bytes` bytes.
        unsafe { self.address.copy_from_nonoverlapping(given, bytes) };
        Ok(())
    }

    /// Calls `write` with this output, at an address that is aligned for `dtype`. If the host's
    /// address is misaligned, `write` writes to an aligned buffer. After `write` succeeds, this
    /// function copies the buffer to the host's address.
    ///
    /// # Safety
    ///
    /// The elements of the tensor have the type `dtype`.
    pub(crate) unsafe fn write_aligned<E: From<ScatterError>>(
        &mut self,
        dtype: DType,
        write: impl FnOnce(&Self) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_aligned(dtype) {
            return write(self);
        }
        let bytes = self.len() * dtype.size();
        let wanted = self.use_copy(dtype)?;
        write(self)?;
        // SAFETY: the host's address has space for `bytes` bytes (contract of this function). The
        // buffer has at least `bytes` bytes.
        unsafe { wanted.copy_from_nonoverlapping(self.address, bytes) };
        Ok(())
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether this tensor is not empty and has the same address as `other`. The address is that of
    /// the aligned copy if the host's address was misaligned.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.address == other.address && self.len() > 0
    }

    /// Returns a view of the elements.
    ///
    /// # Safety
    ///
    /// The tensor holds a contiguous array of shape `shape` with elements of type `dtype`.
    pub(crate) unsafe fn view<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
    ) -> Result<AnyView<'a>, ScatterError> {
        // SAFETY: the tensor holds the elements (contract of this function). The host has
        // initialised the elements of each input and keeps them during the run.
        unsafe { AnyView::from_raw_parts(self.address, dtype, Layout::contiguous(shape)) }
    }

    /// Returns a writable view of the elements of an output. `initialised`: whether the elements
    /// are already initialised. Elements are initialised if the output has the memory of an input.
    ///
    /// # Safety
    ///
    /// The tensor is an output of the run, and has space for a contiguous array of shape `shape`
    /// with elements of type `dtype`. If `initialised` is true, the elements are initialised.
    pub(crate) unsafe fn view_mut<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        initialised: bool,
    ) -> Result<AnyViewMut<'a>, ScatterError> {
        let layout = Layout::contiguous(shape);
        // SAFETY: the tensor has space for the elements (contract of this function). The host gives
        // only this run access to its output.
        unsafe {
            if initialised {
                AnyViewMut::from_raw_parts(self.address, dtype, layout)
            } else {
                AnyViewMut::uninit_from_raw_parts(self.address, dtype, layout)
            }
        }
    }
}
