//! Results of this package that other libraries take over.
//!
//! This module allocates the memory of a result, and calls the function by which another library
//! takes over the result.

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

/// Alignment of the memory of a result, in bytes. A cache line has 64 bytes. An AVX-512 register,
/// the widest vector register of x86-64, also has 64 bytes.
const ALIGNMENT: usize = 64;

/// The allocation of one result. The drop of this value frees the allocation.
struct Memory {
    first: NonNull<u8>,
    block: Block,
}

// SAFETY: this value is the only owner of the allocation.
unsafe impl Send for Memory {}
// SAFETY: `Memory` has no method that accesses the elements. A library that takes over a tensor
// synchronises the accesses to its elements.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `Exported::new` allocated the memory with the layout `block`. The memory is freed
        // only here.
        unsafe { dealloc(self.first.as_ptr(), self.block) };
    }
}

/// A result that another library takes over, through `__dlpack__` or through the function
/// `to_object` of the other library's exchange table.
#[pyclass(frozen, module = "ndscatter._native", name = "Result")]
pub(in crate::array) struct Exported {
    memory: Arc<Memory>,
    shape: Vec<i64>,
    code: DLDataType,
}

impl Exported {
    /// Allocates a contiguous result of shape `shape`, with elements of `size` bytes and of the
    /// DLPack type `code`. The elements are not initialised.
    pub(in crate::array) fn new(shape: &[usize], size: usize, code: DLDataType) -> PyResult<Self> {
        let failed = || PyMemoryError::new_err("the memory of the result could not be allocated");
        let bytes = elements_of(shape).checked_mul(size);
        let bytes = bytes.ok_or_else(failed)?.max(1);
        let block = Block::from_size_align(bytes, ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: the size in `block` is at least one byte.
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

    /// Returns a DLPack description of this result, and a pointer to a [`Kept`]. The deleter of the
    /// tensor must free the [`Kept`].
    fn tensor_and_context(&self) -> (DLTensor, *mut c_void) {
        let rank = self.shape.len();
        let mut numbers = [&self.shape[..], &vec![1; rank]].concat();
        for axis in (1..rank).rev() {
            // No element uses the strides of a tensor without elements, so their overflow is
            // allowed.
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

/// The context of an exported tensor. The context keeps the memory of the result alive.
struct Kept {
    /// The sizes of all axes, then the strides of all axes.
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
    // SAFETY: the name is static. The destructor frees the tensor unless another library has taken
    // over the tensor.
    unsafe {
        let capsule = ffi::PyCapsule_New(tensor, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: `versioned` allocated the tensor and its context as two boxes. The owner of a tensor
    // calls the deleter once.
    unsafe {
        drop(Box::from_raw((*tensor).manager_ctx.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn delete_old(tensor: *mut DLManagedTensor) {
    // SAFETY: `__dlpack__` allocated the tensor and its context as two boxes. The owner of a tensor
    // calls the deleter once.
    unsafe {
        drop(Box::from_raw((*tensor).manager_ctx.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule with the name `VERSIONED` still owns its tensor, because a library that
    // takes over the tensor renames the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_old(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `drop_versioned`, with the name `OLD`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) != 0 {
            delete_old(ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast());
        }
    }
}

/// Passes `result` to the library of the array `like`. Returns the array that this library makes
/// from the result.
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

/// Returns the function `from_dlpack` of the library of the array `like`.
///
/// The function comes from the top-level module of the array's type. If this module has no
/// `from_dlpack`, the function comes from the namespace that `__array_namespace__` of the array
/// returns. If the array has no `__array_namespace__`, numpy's `from_dlpack` is returned.
fn from_dlpack<'py>(like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, name) = (like.py(), intern!(like.py(), "from_dlpack"));
    let module: String = like.get_type().getattr("__module__")?.extract()?;
    let root = match module.split('.').next().unwrap_or_default() {
        // JAX defines its array type in a private module. Its function `from_dlpack` is in
        // `jax.numpy`.
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
