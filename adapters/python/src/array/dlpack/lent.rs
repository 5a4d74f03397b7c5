//! Tensors that other libraries hand out.
//!
//! Knows capsules, and what becomes of the tensor in one.

use std::ptr::NonNull;

use ndscatter::DType;
use ndscatter_host::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};

use super::exchange::Exchange;
use super::{OLD, OLD_USED, VERSIONED, VERSIONED_USED};

/// Flags of memory that is no output: writes fail, or nobody sees them.
const NOT_WRITABLE: u64 = DLManagedTensorVersioned::READ_ONLY | DLManagedTensorVersioned::IS_COPIED;

/// A tensor that another library has handed out. It is given back when this is dropped.
pub(in crate::array) enum Lent {
    Old(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: this owns the tensor, and its deleter is called once.
        unsafe {
            match *self {
                Self::Old(tensor) => {
                    if let Some(deleter) = tensor.as_ref().deleter {
                        deleter(tensor.as_ptr());
                    }
                }
                Self::Versioned(tensor) => {
                    if let Some(deleter) = tensor.as_ref().deleter {
                        deleter(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

impl Lent {
    /// Asks `object` for its tensor, which must lie in the memory of the CPU.
    pub(in crate::array) fn ask(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Some(exchange) = Exchange::of(object)
            && let Some(lent) = exchange.ask(object)?
        {
            return Ok(lent);
        }
        check_device(object)?;
        let method = object.getattr(intern!(py, "__dlpack__"))?;
        let options = PyDict::new(py);
        options.set_item(intern!(py, "max_version"), (1, 0))?;
        let capsule = match method.call((), Some(&options)) {
            // Older than versions.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
            other => other?,
        };
        Self::take(&capsule)
    }

    fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let object = capsule.as_ptr();
        // SAFETY: a capsule of that name holds such a tensor, which whoever renames the
        // capsule owns.
        unsafe {
            if ffi::PyCapsule_IsValid(object, VERSIONED.as_ptr()) != 0 {
                let tensor = ffi::PyCapsule_GetPointer(object, VERSIONED.as_ptr()).cast();
                ffi::PyCapsule_SetName(object, VERSIONED_USED.as_ptr());
                let lent = Self::Versioned(NonNull::new_unchecked(tensor));
                return lent.of_known_version();
            }
            if ffi::PyCapsule_IsValid(object, OLD.as_ptr()) != 0 {
                let tensor = ffi::PyCapsule_GetPointer(object, OLD.as_ptr()).cast();
                ffi::PyCapsule_SetName(object, OLD_USED.as_ptr());
                return Ok(Self::Old(NonNull::new_unchecked(tensor)));
            }
        }
        Err(PyBufferError::new_err(
            "`__dlpack__` returned no capsule of a tensor",
        ))
    }

    /// Refuses a tensor whose elements lie nowhere, or not where their type may.
    pub(in crate::array) fn check_memory(&self, elements: usize, dtype: DType) -> PyResult<()> {
        if elements == 0 {
            return Ok(());
        }
        if self.tensor().data.is_null() {
            return Err(PyBufferError::new_err("a tensor has no memory"));
        }
        if !self.address().addr().is_multiple_of(dtype.alignment()) {
            return Err(PyBufferError::new_err(format!(
                "a tensor of {dtype} begins at an address that is no multiple of {}; pass a copy",
                dtype.alignment()
            )));
        }
        Ok(())
    }

    /// Of another major version only version and deleter can be relied on.
    pub(super) fn of_known_version(self) -> PyResult<Self> {
        if let Self::Versioned(tensor) = &self {
            // SAFETY: the tensor is this one's.
            let major = unsafe { tensor.as_ref().version.major };
            if major != 1 {
                return Err(PyBufferError::new_err(format!(
                    "DLPack {major} was handed out, and 1 asked for"
                )));
            }
        }
        Ok(self)
    }

    pub(super) fn tensor(&self) -> &DLTensor {
        // SAFETY: the tensor is this one's, of a version that has these fields.
        unsafe {
            match self {
                Self::Old(tensor) => &tensor.as_ref().dl_tensor,
                Self::Versioned(tensor) => &tensor.as_ref().dl_tensor,
            }
        }
    }

    /// Whether it has flags, which say whether it may be written.
    pub(in crate::array) fn is_versioned(&self) -> bool {
        matches!(self, Self::Versioned(_))
    }

    /// Whether it may be written, as far as it tells.
    pub(in crate::array) fn is_writable(&self) -> bool {
        match self {
            Self::Old(_) => true,
            // SAFETY: as above.
            Self::Versioned(tensor) => unsafe { tensor.as_ref().flags & NOT_WRITABLE == 0 },
        }
    }

    pub(in crate::array) fn code(&self) -> DLDataType {
        self.tensor().dtype
    }

    pub(in crate::array) fn address(&self) -> *mut u8 {
        self.tensor().address()
    }

    pub(in crate::array) fn shape(&self) -> PyResult<impl Iterator<Item = usize>> {
        let sizes = self.numbers(self.tensor().shape);
        let sizes = match (sizes, self.tensor().ndim) {
            (Some(sizes), 0..) => sizes,
            (None, 0) => &[],
            _ => return Err(PyBufferError::new_err("a DLPack tensor has no shape")),
        };
        if sizes.iter().any(|&size| size < 0) {
            return Err(PyBufferError::new_err(
                "a DLPack tensor has a negative size",
            ));
        }
        Ok(sizes.iter().map(|&size| usize::try_from(size).unwrap_or(0)))
    }

    /// In elements; `None` where the tensor is contiguous.
    pub(in crate::array) fn strides(&self) -> Option<impl Iterator<Item = isize>> {
        let strides = self.numbers(self.tensor().strides)?;
        Some(
            strides
                .iter()
                .map(|&stride| isize::try_from(stride).unwrap_or(0)),
        )
    }

    fn numbers(&self, first: *mut i64) -> Option<&[i64]> {
        let rank = usize::try_from(self.tensor().ndim).unwrap_or(0);
        // SAFETY: a tensor has as many sizes, and as many strides or none at all.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, rank) })
    }
}

/// Refuses what does not lie in the memory of the CPU, before it is asked for: libraries
/// would wait for a device, or say less.
fn check_device(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let kind: i32 = (device.cast::<PyTuple>()?)
        .get_item(0)?
        .call_method0(intern!(py, "__index__"))?
        .extract()?;
    if DLDevice::is_host(kind) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "an array of {} lies on a device (DLPack kind {kind}); copy it to the CPU first",
        object.get_type().fully_qualified_name()?
    )))
}
