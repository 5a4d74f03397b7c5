//! The exchange table: C functions that a library may provide in addition to `__dlpack__`
//! (DLPack 1.3).
//!
//! This module reads the exchange table of a library and calls its functions. The functions ignore
//! some properties of a tensor, such as `requires_grad`. This module checks these properties.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

use ndscatter_host::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{ffi, intern};

use super::{Exported, Lent};

/// The exchange table of a library: C functions that lend and take over tensors (DLPack 1.3).
///
/// A call of such a C function takes a tenth of the time of a call of the Python method with the
/// same purpose.
#[repr(C)]
struct Functions {
    major: u32,
    minor: u32,
    older: *const c_void,
    allocate: *const c_void,
    from_object: FromObject,
    to_object: ToObject,
    describe: Option<Describe>,
    // The table of DLPack 1.3 has more fields here. This package does not read these fields.
}

type FromObject =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut DLManagedTensorVersioned) -> c_int;
/// C function that writes the description of an array to a `DLTensor`. Returns 0 on success.
///
/// The description is valid only while the array is alive and not changed.
pub(crate) type Describe = unsafe extern "C" fn(*mut ffi::PyObject, *mut DLTensor) -> c_int;
type ToObject =
    unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut ffi::PyObject) -> c_int;

/// Those functions of a library's exchange table that this package calls. The table contains C
/// functions that lend and take over tensors (DLPack 1.3).
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    from_object: FromObject,
    to_object: ToObject,
    describe: Option<Describe>,
}

/// The array type whose exchange table [`Exchange::of`] uses, and the functions of this table.
///
/// The type is set once per process, by the first argument whose type has an exchange table. Arrays
/// of all other types are used through their Python methods, even if they have an exchange table.
static EXCHANGE: PyOnceLock<(Py<PyType>, Exchange)> = PyOnceLock::new();

impl Exchange {
    /// Returns the functions in [`EXCHANGE`] if the type of `object` is exactly the type in
    /// [`EXCHANGE`]. If [`EXCHANGE`] is not set and the type of `object` has an exchange table,
    /// sets [`EXCHANGE`] first.
    ///
    /// Returns `None` for an object of a subclass, because a subclass may override the Python
    /// methods. The caller then calls the Python methods of the object.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let py = object.py();
        let (kind, exchange) = match EXCHANGE.get(py) {
            Some(known) => known,
            None => Self::find(object)?,
        };
        (object.get_type_ptr() == kind.as_ptr().cast()).then_some(*exchange)
    }

    #[cold]
    fn find(object: &Bound<'_, PyAny>) -> Option<&'static (Py<PyType>, Self)> {
        let (py, kind) = (object.py(), object.get_type());
        let functions = functions(&kind)?;
        let exchange = Self {
            from_object: functions.from_object,
            to_object: functions.to_object,
            describe: functions.describe,
        };
        Some(EXCHANGE.get_or_init(py, || (kind.unbind(), exchange)))
    }

    /// Requests the tensor of an array by the function `from_object` of the table. Returns `None`
    /// if the caller must call `__dlpack__` instead.
    ///
    /// `from_object` ignores `requires_grad`, the negative bit and the conjugate bit of a PyTorch
    /// tensor. This function therefore returns `None` if `requires_grad` is true or the elements
    /// are complex, and an error if the negative bit is set.
    ///
    /// This function also returns `None` if `from_object` fails or if the CPU cannot access the
    /// memory of the tensor. The caller then checks the device and calls `__dlpack__`, which give
    /// more precise errors.
    pub(super) fn request(self, object: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
        let py = object.py();
        let says_yes = |answer: PyResult<Bound<'_, PyAny>>| {
            answer.is_ok_and(|answer| answer.is_truthy().unwrap_or(true))
        };
        if says_yes(object.getattr(intern!(py, "requires_grad"))) {
            return Ok(None);
        }
        if says_yes(object.call_method0(intern!(py, "is_neg"))) {
            // A call of PyTorch's `__dlpack__` instead would not help, because `__dlpack__` ignores
            // the negative bit too.
            return Err(PyValueError::new_err(
                "the tensor has the negative bit set; pass `tensor.resolve_neg()`",
            ));
        }
        let mut tensor = std::ptr::null_mut();
        // SAFETY: `Exchange::of` has checked that the type of the object is the type whose exchange
        // table contains this function.
        let code = unsafe { (self.from_object)(object.as_ptr(), &raw mut tensor) };
        let lent = match NonNull::new(tensor) {
            Some(tensor) if code == 0 => Lent::Versioned(tensor).of_known_version()?,
            _ => {
                drop(PyErr::take(py));
                return Ok(None);
            }
        };
        let tensor = lent.tensor();
        let is_complex = tensor.dtype.code == DLDataType::COMPLEX;
        let is_usual = DLDevice::is_host(tensor.device.device_type) && !is_complex;
        Ok(is_usual.then_some(lent))
    }

    pub(super) fn take_over<'py>(
        self,
        py: Python<'py>,
        result: &Exported,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut object = std::ptr::null_mut();
        let tensor = Box::into_raw(result.versioned());
        // SAFETY: the tensor is valid. `to_object` takes over the ownership of the tensor, also if
        // the call fails.
        unsafe {
            let code = (self.to_object)(tensor, &raw mut object);
            if code != 0 {
                return Err(PyErr::fetch(py));
            }
            Bound::from_owned_ptr_or_err(py, object)
        }
    }
}

/// Returns the exchange table of the array type `kind`. Returns `None` if the type has no exchange
/// table, or if the major version of the table is not 1.
fn functions(kind: &Bound<'_, PyType>) -> Option<&'static Functions> {
    const NAME: &CStr = c"dlpack_exchange_api";
    let capsule = kind.getattr(intern!(kind.py(), "__dlpack_c_exchange_api__"));
    let capsule = capsule.ok()?;
    // SAFETY: a capsule with the name `NAME` holds the address of an exchange table. The table
    // lives as long as the library, and the capsule is never freed (`forget` below). Every version
    // of the table begins with `major` and `minor`.
    let functions = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) == 0 {
            return None;
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr());
        &*pointer.cast::<Functions>()
    };
    // The capsule may own the table. The capsule is therefore never freed.
    std::mem::forget(capsule);
    (functions.major == 1).then_some(functions)
}

/// Returns the present address of an array's elements, read by the function `describe` of the
/// library's exchange table. This function runs no Python code.
///
/// Returns `None` if the array's type is not the type in [`EXCHANGE`], if the table has no function
/// `describe`, or if `describe` fails.
pub(in crate::array) fn described_address(object: &Bound<'_, PyAny>) -> Option<*const u8> {
    let describe = Exchange::of(object)?.describe?;
    described(describe, object).map(|tensor| tensor.address().cast_const())
}

/// Returns the description of an array that `describe` writes, or `None` if `describe` fails. The
/// description is valid only while the array is alive and not changed.
pub(crate) fn described(describe: Describe, object: &Bound<'_, PyAny>) -> Option<DLTensor> {
    let mut found = std::mem::MaybeUninit::<DLTensor>::uninit();
    // SAFETY: `describe` itself checks the type of the object. If `describe` returns 0, all fields
    // of `found` have been written.
    unsafe {
        if describe(object.as_ptr(), found.as_mut_ptr()) != 0 {
            drop(PyErr::take(object.py()));
            return None;
        }
        Some(found.assume_init())
    }
}

/// Returns the C function that describes arrays of type `kind`: address, shape, strides and dtype.
/// The description does not keep the array alive. Returns `None` if the type has no such function.
pub(crate) fn describe_of(kind: &Bound<'_, PyType>) -> Option<Describe> {
    functions(kind)?.describe
}
