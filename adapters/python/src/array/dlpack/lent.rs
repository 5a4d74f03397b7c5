//! Tensors that other libraries lend to this package.
//!
//! This module takes over the tensor of a DLPack capsule. Before the take-over, the capsule must
//! free the tensor. After the take-over, this package must free the tensor.

use std::ptr::NonNull;

use ndscatter::DType;
use ndscatter_host::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};

use super::exchange::Exchange;
use super::{OLD, OLD_USED, VERSIONED, VERSIONED_USED};

/// Flags of a DLPack tensor. A tensor with one or both of these flags must not be an output.
///
/// `READ_ONLY` forbids writing. `IS_COPIED` means that the library lent a copy of the array, so the
/// caller's array would not change.
const NOT_WRITABLE: u64 = DLManagedTensorVersioned::READ_ONLY | DLManagedTensorVersioned::IS_COPIED;

/// A tensor of another library, owned by this value. The drop of this value calls the tensor's
/// deleter.
pub(in crate::array) enum Lent {
    Old(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: this value owns the tensor (`Lent::take`, `Exchange::request`). The deleter is
        // called only here.
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

/// Returns the error for a failed call of `__dlpack__`. If the attribute `requires_grad` of
/// `object` is true, returns an error of this package. Otherwise returns `error` unchanged.
///
/// PyTorch's own error suggests only `tensor.detach()`. With `detach()`, the program would run
/// without an error, but would compute no gradient.
#[cold]
fn refused(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let flag = object.getattr(intern!(object.py(), "requires_grad"));
    match flag.is_ok_and(|flag| flag.is_truthy().unwrap_or(false)) {
        true => PyValueError::new_err(
            "the tensor requires a gradient; use an operator of `ndscatter.torch`, such as \
             `ndscatter.torch.scatter_update`, or pass `tensor.detach()` to compute no gradient",
        ),
        false => error,
    }
}

impl Lent {
    /// Requests the tensor of `object`. Returns an error if the CPU cannot access the memory of the
    /// tensor.
    pub(in crate::array) fn request(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Some(exchange) = Exchange::of(object)
            && let Some(lent) = exchange.request(object)?
        {
            return Ok(lent);
        }
        check_device(object)?;
        let method = object.getattr(intern!(py, "__dlpack__"))?;
        let options = PyDict::new(py);
        options.set_item(intern!(py, "max_version"), (1, 0))?;
        let capsule = match method.call((), Some(&options)) {
            // The `__dlpack__` of this library may not have the argument `max_version`.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0(),
            other => other,
        };
        Self::take(&capsule.map_err(|error| refused(object, error))?)
    }

    fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let object = capsule.as_ptr();
        // SAFETY: a capsule with the name `VERSIONED` holds a `DLManagedTensorVersioned`, and a
        // capsule with the name `OLD` holds a `DLManagedTensor`. Renaming the capsule transfers the
        // ownership of the tensor to this package.
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
        Err(PyValueError::new_err(
            "`__dlpack__` returned no capsule with a tensor",
        ))
    }

    /// Returns an error if the tensor has elements, and its address is null or is not aligned for
    /// `dtype`. `elements` is the number of elements of the tensor.
    pub(in crate::array) fn check_memory(&self, elements: usize, dtype: DType) -> PyResult<()> {
        if elements == 0 {
            return Ok(());
        }
        if self.tensor().data.is_null() {
            return Err(PyValueError::new_err("a DLPack tensor has no memory"));
        }
        if !self.address().addr().is_multiple_of(dtype.alignment()) {
            return Err(PyValueError::new_err(format!(
                "the address of a tensor of {dtype} is not a multiple of {}; pass a copy",
                dtype.alignment()
            )));
        }
        Ok(())
    }

    /// Returns an error for a versioned tensor whose major version is not 1. In such a tensor, only
    /// the positions of the version and of the deleter are known.
    pub(super) fn of_known_version(self) -> PyResult<Self> {
        if let Self::Versioned(tensor) = &self {
            // SAFETY: this value owns the tensor. `version` is the first field of the struct in all
            // versions of DLPack with versioned tensors.
            let major = unsafe { tensor.as_ref().version.major };
            if major != 1 {
                return Err(PyValueError::new_err(format!(
                    "`__dlpack__` returned a tensor of DLPack {major}, but version 1 was requested"
                )));
            }
        }
        Ok(self)
    }

    pub(super) fn tensor(&self) -> &DLTensor {
        // SAFETY: this value owns the tensor. For a versioned tensor, `of_known_version` has
        // checked that the major version is 1, so the struct has the field `dl_tensor`.
        unsafe {
            match self {
                Self::Old(tensor) => &tensor.as_ref().dl_tensor,
                Self::Versioned(tensor) => &tensor.as_ref().dl_tensor,
            }
        }
    }

    /// Checks whether the tensor is versioned (DLPack 1.0 and later). Only the struct of a
    /// versioned tensor has the field `flags`, which contains the read-only flag.
    pub(in crate::array) fn is_versioned(&self) -> bool {
        matches!(self, Self::Versioned(_))
    }

    /// Checks whether the flags of the tensor allow writing. Returns true for an unversioned
    /// tensor, which has no flags.
    pub(in crate::array) fn is_writable(&self) -> bool {
        match self {
            Self::Old(_) => true,
            // SAFETY: as in `tensor`.
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
            _ => return Err(PyValueError::new_err("a DLPack tensor has no shape")),
        };
        if sizes.iter().any(|&size| size < 0) {
            return Err(PyValueError::new_err("a DLPack tensor has a negative size"));
        }
        Ok(sizes.iter().map(|&size| usize::try_from(size).unwrap_or(0)))
    }

    /// Returns the strides in units of one element. Returns `None` if the pointer to the strides is
    /// null. A tensor with such a pointer is contiguous.
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
        // SAFETY: `first` is the field `shape` or the field `strides` of the tensor. Each of these
        // fields is null or points to `ndim` numbers.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, rank) })
    }
}

/// Returns an error for an array in memory that the CPU cannot access.
///
/// This function must run before the call of the array's method `__dlpack__`. If this function has
/// not run before, `__dlpack__` may wait for the device, or raise a less precise error.
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
        "a {} is on a device (DLPack device type {kind}); copy it to the CPU first",
        object.get_type().fully_qualified_name()?
    )))
}
