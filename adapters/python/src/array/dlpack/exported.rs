//! Results that other libraries take over.
//!
//! This module knows the memory of a result of this package, and the function with which another
//! library takes over the result.

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

/// Alignment of the memory of a result, in bytes: one cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// The memory of one result.
struct Memory {
    first: NonNull<u8>,
    block: Block,
}

// SAFETY: the block is owned by this value alone.
unsafe impl Send for Memory {}
// SAFETY: `Memory` has no method that accesses the elements. The libraries that take over a tensor
// synchronise their own accesses.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the block was allocated with this layout in `Exported::new` and is freed once.
        unsafe { dealloc(self.first.as_ptr(), self.block) };
    }
}

/// A result that a library takes over through `__dlpack__`.
#[pyclass(frozen, module = "ndscatter._native", name = "Result")]
pub(in crate::array) struct Exported {
    memory: Arc<Memory>,
    shape: Vec<i64>,
    code: DLDataType,
}

impl Exported {
    /// Allocates a result. The elements of the result are not initialised.
    pub(in crate::array) fn new(shape: &[usize], size: usize, code: DLDataType) -> PyResult<Self> {
        let failed = || PyMemoryError::new_err("the memory of the result could not be allocated");
        let bytes = elements_of(shape).checked_mul(size);
        let bytes = bytes.ok_or_else(failed)?.max(1);
        let block = Block::from_size_align(bytes, ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: the block has at least one byte.
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

    /// Returns a tensor, and the context that its deleter frees.
    fn tensor_and_context(&self) -> (DLTensor, *mut c_void) {
        let rank = self.shape.len();
        let mut numbers = [&self.shape[..], &vec![1; rank]].concat();
        for axis in (1..rank).rev() {
            // The strides of a tensor without elements have no meaning and may wrap.
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
        let (tensor, context) = self.tensor_and_context();
        Box::new(DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: context,
            deleter: Some(delete_versioned),
            flags: 0,
            dl_tensor: tensor,
        })
    }
}

/// The context of an exported tensor.
struct Kept {
    /// Sizes, then strides.
    numbers: Vec<i64>,
    _memory: Arc<Memory>,
}

#[pymethods]
impl Exported {
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
            return Err(PyBufferError::new_err(
                "a result is neither copied nor moved to a device",
            ));
        }
        if max_version.is_some_and(|(major, _)| major >= 1) {
            let tensor = Box::into_raw(self.versioned());
            return capsule(py, tensor.cast(), VERSIONED, drop_versioned);
        }
        let (tensor, context) = self.tensor_and_context();
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
    // SAFETY: the name is static. The destructor frees the tensor unless it was taken over.
    unsafe {
        let capsule = ffi::PyCapsule_New(tensor, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: `versioned` made the tensor and its context from two boxes. A deleter is called once.
    unsafe {
        drop(Box::from_raw((*tensor).manager_ctx.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn delete_old(tensor: *mut DLManagedTensor) {
    // SAFETY: `__dlpack__` made the tensor and its context from two boxes. A deleter is called
    // once.
    unsafe {
        drop(Box::from_raw((*tensor).manager_ctx.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule with this name still owns its tensor: a library that takes over the tensor
    // renames the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_old(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `drop_versioned`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) != 0 {
            delete_old(ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast());
        }
    }
}

/// Passes a result to the library of `like`, and returns that library's array.
pub(in crate::array) fn export<'py>(
    result: Exported,
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

/// Returns `from_dlpack` of the library of an array.
fn from_dlpack<'py>(like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, name) = (like.py(), intern!(like.py(), "from_dlpack"));
    let module: String = like.get_type().getattr("__module__")?.extract()?;
    let root = match module.split('.').next().unwrap_or_default() {
        // JAX defines its array type in a private module.
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
