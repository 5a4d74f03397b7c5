//! The tensors of a run, as views.
//!
//! A tensor in a buffer of the caller may be misaligned for its element type. Such a tensor is
//! copied. Knows memory and shapes. Knows nothing of operators.

use ndscatter::{AnyView, AnyViewMut, DType, Layout, ScatterError};
use ort_sys::OrtValue;

use crate::api::{Api, Shape};
use crate::failure::Failure;

/// A tensor of the host: its value, its shape and the address of its elements.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) value: *const OrtValue,
    pub(crate) shape: Shape,
    /// Address of the elements, or of their aligned copy.
    address: *mut u8,
    /// Aligned copy of the elements. Empty if the host's elements are aligned.
    copy: Vec<u64>,
}

impl Tensor {
    /// Returns an input of a run. Fails for a null value.
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

    /// Returns the output of a run, which the host made with this shape.
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

    /// Allocates the aligned copy, makes it the address of this tensor, and returns the previous
    /// address. The values of the copy are unspecified.
    fn use_copy(&mut self, dtype: DType) -> Result<*mut u8, ScatterError> {
        let bytes = self.len().saturating_mul(dtype.size());
        let words = bytes.div_ceil(size_of::<u64>());
        let reserved = self.copy.try_reserve_exact(words);
        reserved.map_err(|_| ScatterError::OutOfMemory { bytes })?;
        self.copy.resize(words, 0);
        let room = self.copy.as_mut_ptr().cast();
        Ok(std::mem::replace(&mut self.address, room))
    }

    /// Copies an input whose address is misaligned for `dtype`.
    ///
    /// # Safety
    ///
    /// The tensor holds the number of elements of type `dtype` that its shape states.
    pub(crate) unsafe fn align(&mut self, dtype: DType) -> Result<(), ScatterError> {
        if self.is_aligned(dtype) {
            return Ok(());
        }
        let bytes = self.len() * dtype.size();
        let given = self.use_copy(dtype)?;
        // SAFETY: `given` holds `bytes` bytes (contract of this function), and so does the new
        // copy.
        unsafe { self.address.copy_from_nonoverlapping(given, bytes) };
        Ok(())
    }

    /// Calls `write` with an output that is aligned for `dtype`. Afterwards copies the elements of
    /// a misaligned output to the host's address.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::align`] holds.
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
        // SAFETY: the host's address holds `bytes` bytes (contract of this function), and so does
        // the copy.
        unsafe { wanted.copy_from_nonoverlapping(self.address, bytes) };
        Ok(())
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether both tensors have the same address and are not empty.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.address == other.address && self.len() > 0
    }

    /// Returns a view of the elements.
    ///
    /// # Safety
    ///
    /// The tensor holds the number of elements of type `dtype` that `shape` states.
    pub(crate) unsafe fn view<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
    ) -> Result<AnyView<'a>, ScatterError> {
        // SAFETY: the tensor holds the elements (contract of this function). The host has
        // initialised them and keeps them during the run.
        unsafe { AnyView::from_raw_parts(self.address, dtype, Layout::contiguous(shape)) }
    }

    /// Returns a view of the elements to write. `initialised`: whether the elements are
    /// initialised, as those of an output that is also an input.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::view`] holds. The tensor is an output of the run. Its elements are
    /// initialised if `initialised` is true.
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
