//! The exchange table: C functions that a library may provide in addition to `__dlpack__`
//! (DLPack 1.3).
//!
//! This module knows the exchange table, and the properties of a tensor that the functions of the
//! table ignore.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

use ndscatter_host::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{ffi, intern};

use super::{Exported, Lent};

/// The exchange table of a library: C functions that lend and take over tensors (DLPack 1.3). A
/// call of one of these functions costs a tenth of a call of the Python method.
#[repr(C)]
struct Functions {
    major: u32,
    minor: u32,
    older: *const c_void,
    allocate: *const c_void,
    from_object: FromObject,
    to_object: ToObject,
    describe: Option<Describe>,
    // The table has more functions.
}

type FromObject =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut DLManagedTensorVersioned) -> c_int;
/// Fills a struct with the description of an array, and returns 0 on success. The description is
/// valid while the array is borrowed and not changed.
pub(crate) type Describe = unsafe extern "C" fn(*mut ffi::PyObject, *mut DLTensor) -> c_int;
type ToObject =
    unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut ffi::PyObject) -> c_int;

/// The functions that this package calls of a library's exchange table (the table of C functions
/// that lend and take over tensors, DLPack 1.3).
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    from_object: FromObject,
    to_object: ToObject,
    describe: Option<Describe>,
}

/// An array type and the functions of its exchange table: the type of the first argument, in the
/// process, whose library has an exchange table. Arrays of all other types are used through their
/// Python methods.
static EXCHANGE: PyOnceLock<(Py<PyType>, Exchange)> = PyOnceLock::new();

impl Exchange {
    /// Returns the functions if the type of `object` is exactly the type in [`EXCHANGE`]. A
    /// subclass may override the Python methods, so an array of a subclass is used through its
    /// methods.
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

    /// Requests the tensor of an array. Returns `None` if the caller must call `__dlpack__`
    /// instead.
    ///
    /// The functions of the table ignore `requires_grad`, the negative bit and the conjugate bit of
    /// a tensor. The error messages of the functions are less precise than those of the Python
    /// methods.
    pub(super) fn request(self, object: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
        let py = object.py();
        let says_yes = |answer: PyResult<Bound<'_, PyAny>>| {
            answer.is_ok_and(|answer| answer.is_truthy().unwrap_or(true))
        };
        if says_yes(object.getattr(intern!(py, "requires_grad"))) {
            return Ok(None);
        }
        if says_yes(object.call_method0(intern!(py, "is_neg"))) {
            // PyTorch's `__dlpack__` ignores the negative bit too.
            return Err(PyBufferError::new_err(
                "the tensor has the negative bit set; pass `tensor.resolve_neg()`",
            ));
        }
        let mut tensor = std::ptr::null_mut();
        // SAFETY: `Exchange::of` checked that the object is of the type of these functions.
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
        // SAFETY: the tensor is valid. `to_object` takes over the tensor, also if the call fails.
        unsafe {
            let code = (self.to_object)(tensor, &raw mut object);
            if code != 0 {
                return Err(PyErr::fetch(py));
            }
            Bound::from_owned_ptr_or_err(py, object)
        }
    }
}

/// Returns the exchange table of an array type: C functions that lend and take over tensors.
/// `None`: the type has no exchange table, or the table has another major version than 1.
fn functions(kind: &Bound<'_, PyType>) -> Option<&'static Functions> {
    const NAME: &CStr = c"dlpack_exchange_api";
    let capsule = kind.getattr(intern!(kind.py(), "__dlpack_c_exchange_api__"));
    let capsule = capsule.ok()?;
    // SAFETY: a capsule with this name holds an exchange table, which lives as long as the library,
    // and the capsule is never freed (below). Every version of the table begins with `major` and
    // `minor`.
    let functions = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) == 0 {
            return None;
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr());
        &*pointer.cast::<Functions>()
    };
    // The capsule may own the table.
    std::mem::forget(capsule);
    (functions.major == 1).then_some(functions)
}

/// Returns the address of an array's elements as its library describes the array now. `None` if the
/// library has no function that describes arrays without running Python code.
pub(in crate::array) fn described_address(object: &Bound<'_, PyAny>) -> Option<*const u8> {
    let describe = Exchange::of(object)?.describe?;
    described(describe, object).map(|tensor| tensor.address().cast_const())
}

/// Returns the description of an array, or `None` if `describe` fails. The description is valid
/// while the array is borrowed and not changed.
pub(crate) fn described(describe: Describe, object: &Bound<'_, PyAny>) -> Option<DLTensor> {
    let mut found = std::mem::MaybeUninit::<DLTensor>::uninit();
    // SAFETY: the function checks the object's type itself, and fills the struct if it returns 0.
    unsafe {
        if describe(object.as_ptr(), found.as_mut_ptr()) != 0 {
            drop(PyErr::take(object.py()));
            return None;
        }
        Some(found.assume_init())
    }
}

/// Returns the function that describes arrays of type `kind`: address, shape, strides and dtype.
/// The description holds no reference to the array. `None` if the type has no such function.
pub(crate) fn describe_of(kind: &Bound<'_, PyType>) -> Option<Describe> {
    functions(kind)?.describe
}
