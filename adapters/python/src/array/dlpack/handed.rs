//! Results that other libraries take over.
//!
//! Knows memory, and which function of a library takes a tensor.

use std::alloc::{Layout as Block, alloc, dealloc};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use ndscatter_host::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::{ffi, intern};

use super::exchange::Exchange;
use super::{OLD, VERSIONED};
use crate::array::elements_of;

/// Rows of results begin where vectors like it.
const ALIGNMENT: usize = 64;

/// A block of memory that results of other libraries lie in.
struct Memory {
    first: NonNull<u8>,
    block: Block,
}

// SAFETY: memory that nobody else has.
unsafe impl Send for Memory {}
// SAFETY: as above; what lies in it is shared as the libraries that have it do.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.first.as_ptr(), self.block) };
    }
}

/// A result that a library takes over by `__dlpack__`.
#[pyclass(frozen, module = "ndscatter._native", name = "Result")]
pub(in crate::array) struct Handed {
    memory: Arc<Memory>,
    shape: Vec<i64>,
    code: DLDataType,
}

impl Handed {
    /// One with room for the elements, which are not initialised.
    pub(in crate::array) fn new(shape: &[usize], size: usize, code: DLDataType) -> PyResult<Self> {
        let failed = || PyMemoryError::new_err("no memory for the result");
        let bytes = elements_of(shape).checked_mul(size);
        let bytes = bytes.ok_or_else(failed)?.max(1);
        let block = Block::from_size_align(bytes, ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: of at least one byte.
        let first = NonNull::new(unsafe { alloc(block) }).ok_or_else(failed)?;
        Ok(Self {
            memory: Arc::new(Memory { first, block }),
            shape: shape
                .iter()
                .map(|&size| size.cast_signed() as i64)
                .collect(),
            code,
        })
    }

    pub(in crate::array) fn address(&self) -> *mut u8 {
        self.memory.first.as_ptr()
    }

    /// The tensor, and what keeps it alive.
    fn exported(&self) -> (DLTensor, *mut c_void) {
        let rank = self.shape.len();
        let mut numbers = [&self.shape[..], &vec![1; rank]].concat();
        for axis in (1..rank).rev() {
            // Where there is no element, strides mean nothing and may wrap.
            numbers[rank + axis - 1] = numbers[rank + axis].wrapping_mul(self.shape[axis].max(1));
        }
        let mut kept = Box::new(Kept {
            numbers,
            _memory: self.memory.clone(),
        });
        let shape = kept.numbers.as_mut_ptr();
        let tensor = DLTensor {
            data: self.address().cast(),
            device: DLDevice::CPU,
            ndim: i32::try_from(rank).unwrap_or(0),
            dtype: self.code,
            shape,
            strides: shape.wrapping_add(rank),
            byte_offset: 0,
        };
        (tensor, Box::into_raw(kept).cast())
    }

    pub(super) fn versioned(&self) -> Box<DLManagedTensorVersioned> {
        let (tensor, context) = self.exported();
        Box::new(DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: context,
            deleter: Some(delete_versioned),
            flags: 0,
            dl_tensor: tensor,
        })
    }
}

/// What a tensor that was handed out keeps alive.
struct Kept {
    /// Sizes, then strides.
    numbers: Vec<i64>,
    _memory: Arc<Memory>,
}

#[pymethods]
impl Handed {
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if copy == Some(true) || dl_device.is_some_and(|(kind, _)| kind != 1) {
            return Err(PyBufferError::new_err("a result is handed over as it is"));
        }
        if max_version.is_some_and(|(major, _)| major >= 1) {
            let tensor = Box::into_raw(self.versioned());
            return capsule(py, tensor.cast(), VERSIONED, drop_versioned);
        }
        let (tensor, context) = self.exported();
        let managed = Box::new(DLManagedTensor {
            dl_tensor: tensor,
            manager_ctx: context,
            deleter: Some(delete_old),
        });
        capsule(py, Box::into_raw(managed).cast(), OLD, drop_old)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}

fn capsule<'py>(
    py: Python<'py>,
    tensor: *mut c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the name stays; the destructor frees what nobody has taken over.
    unsafe {
        let capsule = ffi::PyCapsule_New(tensor, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `__dlpack__` from two boxes, and deleted once.
    unsafe {
        drop(Box::from_raw((*tensor).manager_ctx.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn delete_old(tensor: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe {
        drop(Box::from_raw((*tensor).manager_ctx.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that still has its name still has its tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_old(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) != 0 {
            delete_old(ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast());
        }
    }
}

/// Hands a result to the library that `like` is of.
pub(in crate::array) fn hand_over<'py>(
    result: Handed,
    like: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.py();
    if let Some(exchange) = Exchange::of(like) {
        return exchange.take_over(py, &result);
    }
    let result = Bound::new(py, result)?;
    let take = from_dlpack(like)?;
    take.call1((result,))
}

/// The function by which the library of an array takes tensors over.
fn from_dlpack<'py>(like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, name) = (like.py(), intern!(like.py(), "from_dlpack"));
    let module: String = like.get_type().getattr("__module__")?.extract()?;
    let root = match module.split('.').next().unwrap_or_default() {
        // The module of its arrays' type is not the one that users import.
        "jaxlib" | "jax" => "jax.numpy",
        root => root,
    };
    if let Ok(take) = py.import(root).and_then(|library| library.getattr(name)) {
        return Ok(take);
    }
    if let Ok(namespace) = like.call_method0("__array_namespace__") {
        return namespace.getattr(name);
    }
    py.import("numpy")?.getattr(name)
}
