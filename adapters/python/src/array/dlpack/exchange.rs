//! The functions in C that a library may have beside its methods.
//!
//! Knows their table, and what they do not look at.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

use ndscatter_host::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{ffi, intern};

use super::{Handed, Lent};

/// Functions in C by which a library hands tensors out and takes them over: DLPack 1.3. They
/// take a tenth of the time of the methods.
#[repr(C)]
struct Functions {
    major: u32,
    minor: u32,
    older: *const c_void,
    allocate: *const c_void,
    from_object: FromObject,
    to_object: ToObject,
    describe: Option<Describe>,
    // More follow.
}

type FromObject =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut DLManagedTensorVersioned) -> c_int;
/// Fills a struct with what is told of an array, for a look as long as the array is borrowed;
/// returns 0 where it has.
pub(crate) type Describe = unsafe extern "C" fn(*mut ffi::PyObject, *mut DLTensor) -> c_int;
type ToObject =
    unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut ffi::PyObject) -> c_int;

/// Those that are used.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    from_object: FromObject,
    to_object: ToObject,
    describe: Option<Describe>,
}

/// The functions of the first library that was seen to have them, and the type of its arrays.
/// One whose arrays are seen later is asked by its methods.
static EXCHANGE: PyOnceLock<(Py<PyType>, Exchange)> = PyOnceLock::new();

impl Exchange {
    /// Those for an array of just that type: what a subclass means is for its methods.
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

    /// The tensor of an array, if nothing about it is unusual: the functions do not look at
    /// gradients, nor at signs and conjugates that are still to be worked out, and say less
    /// than the methods where they fail.
    pub(super) fn ask(self, object: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
        let py = object.py();
        let says_yes = |answer: PyResult<Bound<'_, PyAny>>| {
            answer.is_ok_and(|answer| answer.is_truthy().unwrap_or(true))
        };
        if says_yes(object.getattr(intern!(py, "requires_grad"))) {
            return Ok(None);
        }
        if says_yes(object.call_method0(intern!(py, "is_neg"))) {
            // torch's methods hand it out with the signs as they lie.
            return Err(PyBufferError::new_err(
                "a tensor whose signs are still to be changed is not taken; use its \
                 `resolve_neg()`",
            ));
        }
        let mut tensor = std::ptr::null_mut();
        // SAFETY: the object is of the type that the functions are for.
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
        result: &Handed,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut object = std::ptr::null_mut();
        let tensor = Box::into_raw(result.versioned());
        // SAFETY: the function owns the tensor from now on, also where it fails.
        unsafe {
            let code = (self.to_object)(tensor, &raw mut object);
            if code != 0 {
                return Err(PyErr::fetch(py));
            }
            Bound::from_owned_ptr_or_err(py, object)
        }
    }
}

/// The functions of a type of arrays, if it has them in a version that is known.
fn functions(kind: &Bound<'_, PyType>) -> Option<&'static Functions> {
    const NAME: &CStr = c"dlpack_exchange_api";
    let capsule = kind.getattr(intern!(kind.py(), "__dlpack_c_exchange_api__"));
    let capsule = capsule.ok()?;
    // SAFETY: a capsule of that name holds the functions, which stay as long as the library;
    // version and older functions can be read whatever the version.
    let functions = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) == 0 {
            return None;
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr());
        &*pointer.cast::<Functions>()
    };
    // The capsule may own them.
    std::mem::forget(capsule);
    (functions.major == 1).then_some(functions)
}

/// Where a library says now that the elements of an array lie, if it says so without running
/// Python code.
pub(in crate::array) fn described_address(object: &Bound<'_, PyAny>) -> Option<*const u8> {
    let describe = Exchange::of(object)?.describe?;
    described(describe, object).map(|tensor| tensor.address().cast_const())
}

/// What a library tells of an array, for a look as long as the array is borrowed and not
/// changed.
pub(crate) fn described(describe: Describe, object: &Bound<'_, PyAny>) -> Option<DLTensor> {
    let mut found = std::mem::MaybeUninit::<DLTensor>::uninit();
    // SAFETY: the function looks at the object's type itself, and fills the struct where it
    // returns 0.
    unsafe {
        if describe(object.as_ptr(), found.as_mut_ptr()) != 0 {
            drop(PyErr::take(object.py()));
            return None;
        }
        Some(found.assume_init())
    }
}

/// The function that describes arrays of this type, without what keeps them.
pub(crate) fn describe_of(kind: &Bound<'_, PyType>) -> Option<Describe> {
    functions(kind)?.describe
}
