//! Access to PyTorch's tensors (as addresses and layouts) and to PyTorch's threads (as a pool).
//!
//! This module calls PyTorch's DLPack function that describes a tensor, and two functions of
//! PyTorch's stable C interface. The module does not depend on operators.

#![allow(
    unsafe_code,
    reason = "functions of another library, and views of the memory that they describe"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndscatter::{AnyView, AnyViewMut, DType, Layout, Pool, ScatterError};
use ndscatter_host::dlpack::{DLDataType, DLDevice};
use ndscatter_host::{HostTask, HostTasks, cross};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use smallvec::SmallVec;

use crate::array::{Describe, Dims, Line, describe_of, described};
use crate::failure::panicked;

type Range = unsafe extern "C" fn(begin: i64, end: i64, context: *mut c_void);
type ParallelFor =
    unsafe extern "C" fn(begin: i64, end: i64, grain: i64, range: Range, *mut c_void) -> i32;
type GetNumThreads = unsafe extern "C" fn(*mut u32) -> i32;

/// The Python class `torch.Tensor`, and the functions of PyTorch that this module calls.
#[derive(Debug)]
struct Connection {
    /// The Python class `torch.Tensor`.
    tensor: Py<PyType>,
    describe: Describe,
    parallel_for: ParallelFor,
    num_threads: GetNumThreads,
    /// Identifier of the process that called [`connect`]. A forked child has another identifier,
    /// and has none of the threads of this process.
    process: u32,
}

static CONNECTION: OnceLock<Connection> = OnceLock::new();

#[cfg(unix)]
unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Returns the address of the symbol `name` of a library. Returns `None` if the process has not
/// loaded the library, or if the library has no such symbol.
#[cfg(unix)]
fn symbol(library: &str, name: &CStr) -> Option<*mut c_void> {
    const RTLD_NOW: c_int = 2;
    /// Flag of `dlopen`: `dlopen` returns a handle only if the library is already loaded.
    #[cfg(target_os = "linux")]
    const RTLD_NOLOAD: c_int = 4;
    #[cfg(not(target_os = "linux"))]
    const RTLD_NOLOAD: c_int = 0x10;
    let path = CString::new(library).ok()?;
    // SAFETY: `path` and `name` end with a zero byte. With `RTLD_NOLOAD`, `dlopen` loads no
    // library, so it runs no code of a library. The handle is never closed, so the symbol stays
    // valid.
    let found = unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW | RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}

#[cfg(not(unix))]
fn symbol(_: &str, _: &CStr) -> Option<*mut c_void> {
    None
}

/// Finds PyTorch's functions and stores them in `CONNECTION`. `tensor` is the Python class
/// `torch.Tensor`. `library` is the path of PyTorch's CPU library.
#[pyfunction]
pub(super) fn connect(tensor: &Bound<'_, PyType>, library: &str) -> PyResult<()> {
    if CONNECTION.get().is_some() {
        return Ok(());
    }
    let describe = describe_of(tensor)
        .ok_or_else(|| PyRuntimeError::new_err("PyTorch has no DLPack functions of version 1"))?;
    let missing = || {
        PyRuntimeError::new_err(format!(
            "{library} lacks `torch_parallel_for` or `torch_get_num_threads`"
        ))
    };
    let parallel_for = symbol(library, c"torch_parallel_for").ok_or_else(missing)?;
    let num_threads = symbol(library, c"torch_get_num_threads").ok_or_else(missing)?;
    // SAFETY: the stable header torch/csrc/stable/c/shim.h declares functions of these names with
    // these types.
    let connection = unsafe {
        Connection {
            tensor: tensor.clone().unbind(),
            describe,
            parallel_for: std::mem::transmute::<*mut c_void, ParallelFor>(parallel_for),
            num_threads: std::mem::transmute::<*mut c_void, GetNumThreads>(num_threads),
            process: std::process::id(),
        }
    };
    // `set` fails if another thread has set `CONNECTION` meanwhile. The failure is ignored, because
    // that thread has set an equal value.
    let _ = CONNECTION.set(connection);
    Ok(())
}

/// Returns the number of elements of a PyTorch tensor. Returns `None` if `object` is not a tensor,
/// or before the first call of [`connect`].
///
/// Returns `usize::MAX` if PyTorch's DLPack function cannot describe the tensor, or if the number
/// of elements exceeds `usize::MAX`.
pub(super) fn elements(object: &Bound<'_, PyAny>) -> Option<usize> {
    let connection = CONNECTION.get()?;
    // SAFETY: both pointers point to living Python objects, and the second object is a type.
    let is_tensor =
        unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), connection.tensor.as_ptr().cast()) } != 0;
    if !is_tensor {
        return None;
    }
    let elements = described(connection.describe, object).and_then(|found| {
        (0..usize::try_from(found.ndim).ok()?).try_fold(1_usize, |all, dim| {
            // SAFETY: the array `shape` has `ndim` sizes. The array is valid until the tensor is
            // resized. No other thread resizes the tensor while this thread holds Python's lock.
            all.checked_mul(usize::try_from(unsafe { *found.shape.add(dim) }).ok()?)
        })
    });
    Some(elements.unwrap_or(usize::MAX))
}

/// Address, element type, shape and strides of a CPU tensor of PyTorch.
///
/// A value of this type does not keep the memory of the tensor alive. The Python object of the
/// tensor keeps the memory alive, so the caller must borrow this object until the end of the call.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    address: *mut u8,
    code: DLDataType,
    pub(super) dtype: DType,
    pub(super) shape: Dims<usize>,
    /// Strides in elements.
    pub(super) strides: Dims<isize>,
}

// SAFETY: a `Tensor` only stores an address, a type, a shape and strides. The methods that make a
// view of the memory each prove in a SAFETY comment that the view is valid.
unsafe impl Send for Tensor {}
// SAFETY: as for `Send`.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Reads the description of a PyTorch tensor. Returns `None` if the tensor is not on the CPU,
    /// if its memory was freed, or if PyTorch cannot describe it. Also returns `None` if the crate
    /// has no dtype for the element type.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let found = described(CONNECTION.get()?.describe, object)?;
        let is_on_cpu = found.device.device_type == DLDevice::CPU.device_type;
        let dtype = found.dtype.dtype().filter(|_| is_on_cpu)?;
        let rank = usize::try_from(found.ndim).ok()?;
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for dim in 0..rank {
            // SAFETY: the arrays `shape` and `strides` have `ndim` values each. The arrays are
            // valid until the tensor is resized. No other thread resizes the tensor while this
            // thread holds Python's lock.
            let (size, stride) = unsafe { (*found.shape.add(dim), *found.strides.add(dim)) };
            shape.push(usize::try_from(size).ok()?);
            strides.push(isize::try_from(stride).ok()?);
        }
        // PyTorch can free the memory of a tensor (`resize_` of its storage) without a change of
        // its shape. The address is then null, although the tensor has elements.
        if found.data.is_null() && !shape.contains(&0) {
            return None;
        }
        Some(Self {
            address: found.address(),
            code: found.dtype,
            dtype,
            shape,
            strides,
        })
    }

    /// Checks whether both tensors have the same element type.
    pub(super) fn has_type_of(&self, other: &Self) -> bool {
        self.code == other.code
    }

    /// Returns the number of elements without the copies of a broadcast: the product of the sizes,
    /// where the size of an expanded dimension (stride 0) counts as at most 1.
    pub(super) fn stored_elements(&self) -> usize {
        let sizes = self.shape.iter().zip(&self.strides);
        let stored = sizes.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
        stored.fold(1, usize::saturating_mul)
    }

    /// Checks whether both tensors begin at the same address but have different strides. If an
    /// input and the output of a call are such a pair, PyTorch raises an error for some calls.
    pub(super) fn aliases_with_other_strides(&self, other: &Self) -> bool {
        self.address == other.address && self.strides != other.strides
    }

    /// Checks whether every scatter kernel of PyTorch supports the element type of this tensor. If
    /// not, at least one of PyTorch's scatter kernels raises an error for this type.
    pub(super) fn has_common_type(&self) -> bool {
        !matches!(self.dtype, DType::U16 | DType::U32 | DType::U64) && !self.dtype.is_opaque()
    }

    /// Shortens each axis to its size in `shape`, and keeps the first elements of the axis. Returns
    /// `None` if `shape` has another rank, or if an axis is shorter than its size in `shape`.
    pub(super) fn narrow(&mut self, shape: &[usize]) -> Option<()> {
        let fits = self.shape.len() == shape.len()
            && (self.shape.iter().zip(shape)).all(|(&size, &wanted)| wanted <= size);
        fits.then(|| self.shape = shape.into())
    }

    /// Broadcasts the tensor to `shape` by PyTorch's rules. Returns `None` if these rules do not
    /// allow the broadcast.
    pub(super) fn expand(&mut self, shape: &[usize]) -> Option<()> {
        let new = shape.len().checked_sub(self.shape.len())?;
        let mut strides: Dims<isize> = SmallVec::from_elem(0, new);
        for (dim, &wanted) in shape.iter().enumerate().skip(new) {
            let (size, stride) = (self.shape[dim - new], self.strides[dim - new]);
            match size {
                _ if size == wanted => strides.push(stride),
                1 => strides.push(0),
                _ => return None,
            }
        }
        (self.shape, self.strides) = (shape.into(), strides);
        Some(())
    }

    /// Permutes the axes.
    pub(super) fn permute(&mut self, order: &[usize]) {
        self.shape = order.iter().map(|&axis| self.shape[axis]).collect();
        self.strides = order.iter().map(|&axis| self.strides[axis]).collect();
    }

    fn layout(&self) -> Result<Layout<'_>, ScatterError> {
        let mut row_major = 1;
        let is_contiguous = (self.shape.iter().zip(&self.strides).rev()).all(|(&size, &stride)| {
            let fits = size == 1 || stride == row_major;
            row_major = row_major.wrapping_mul(size.cast_signed());
            fits
        });
        match is_contiguous {
            true => Ok(Layout::contiguous(&self.shape)),
            false => Layout::strided(&self.shape, &self.strides),
        }
    }

    /// Returns a view that a call of the crate reads.
    pub(super) fn view(&self) -> Result<AnyView<'_>, ScatterError> {
        // SAFETY: PyTorch described address, shape and strides (`Tensor::of`), and the Python
        // object keeps the memory alive until the end of the call. During the call, no thread of
        // the program may write to the tensor. PyTorch's own kernels have the same requirement.
        unsafe { AnyView::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Returns a view that a call of the crate reads and writes. The elements must be initialised.
    pub(super) fn view_mut(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as in `view`. The crate's scatter returns an error if a view of an input shares
        // memory with this view.
        unsafe { AnyViewMut::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Returns a view whose elements a call of the crate writes before it reads them. The elements
    /// may be uninitialised: the tensor is new memory, or an output that the call overwrites.
    pub(super) fn view_new(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as in `view_mut`.
        unsafe { AnyViewMut::uninit_from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Checks whether the address is a multiple of the alignment of the element type. PyTorch
    /// aligns the memory that it allocates. Memory that PyTorch receives from other libraries can
    /// be unaligned.
    pub(super) fn is_aligned(&self) -> bool {
        self.address.addr().is_multiple_of(self.dtype.alignment())
    }

    /// Returns the elements of row `row`, which are the elements along the last axis for one
    /// position on the other axes. Rows are numbered in row-major order. The tensor must be aligned
    /// ([`is_aligned`](Self::is_aligned)).
    pub(super) fn line(&self, mut row: usize) -> Line {
        debug_assert!(self.is_aligned());
        let (mut offset, outer) = (0, self.shape.len().saturating_sub(1));
        for (&size, &stride) in self.shape[..outer].iter().zip(&self.strides).rev() {
            offset += (row % size).cast_signed() * stride;
            row /= size;
        }
        let len = self.shape.last().copied().unwrap_or(1);
        let stride = self.strides.last().copied().unwrap_or(1);
        let bytes = offset * self.dtype.size().cast_signed();
        let address = self.address.wrapping_offset(bytes).cast_const();
        // SAFETY: PyTorch described address, shape and strides (`Tensor::of`), and the Python
        // object keeps the memory alive until the end of the call. Callers check `is_aligned`.
        unsafe { Line::from_raw_parts(address, len, stride, self.dtype) }
    }

    /// Merges the first `axes` axes into one axis. Returns `None`, and changes nothing, if the
    /// elements along the merged axis would not be at a constant stride, if `axes` is 0, or if the
    /// merged size overflows. The strides of axes of size 1 are ignored.
    pub(super) fn merge_first(&mut self, axes: usize) -> Option<()> {
        let last = axes.checked_sub(1)?;
        let (mut all, mut step, mut span) = (1_usize, self.strides[last], None);
        for (&size, &stride) in self.shape[..axes].iter().zip(&self.strides).rev() {
            all = all.checked_mul(size)?;
            if size == 1 {
                continue;
            }
            match span {
                None => step = stride,
                Some(span) if span == stride => {}
                Some(_) => return None,
            }
            span = Some(stride.checked_mul(size.cast_signed())?);
        }
        (self.shape[last], self.strides[last]) = (all, step);
        self.shape.drain(..last);
        self.strides.drain(..last);
        Some(())
    }
}

/// A pool that runs tasks with PyTorch's parallel-for. Its number of workers is the number of
/// threads that `torch.set_num_threads` has set.
#[derive(Debug, Default)]
struct Threads {
    tasks: HostTasks,
}

/// Number of calls of the crate that currently run on PyTorch's threads. If several Python threads
/// make calls at the same time, the crate divides PyTorch's threads among these calls.
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        let connection = CONNECTION.get()?;
        // A forked child process has none of OpenMP's threads, and OpenMP would wait for them
        // forever. One worker means that the calling thread runs all tasks, without OpenMP.
        if std::process::id() != connection.process {
            return Some(1);
        }
        let mut threads = 1;
        // SAFETY: the function writes one `u32` to the pointer.
        let code = unsafe { (connection.num_threads)(&raw mut threads) };
        Some(if code == 0 { threads as usize } else { 1 })
    }

    fn calls(&self) -> Option<&AtomicUsize> {
        Some(&CALLS)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let workers = self.workers().unwrap_or(1).min(tasks);
        let connection = CONNECTION.get().filter(|_| workers > 1);
        let Some(connection) = connection else {
            return (0..tasks).for_each(task);
        };
        self.tasks.run(task, |function, argument| {
            let shared = Shared {
                function,
                argument,
                next: AtomicUsize::new(0),
                tasks,
            };
            let context = (&raw const shared).cast_mut().cast::<c_void>();
            let workers = workers.cast_signed() as i64;
            // SAFETY: `parallel_for` calls `drain` with `context`, and returns only after all calls
            // of `drain` have returned. `shared` lives until after `parallel_for` has returned.
            unsafe { (connection.parallel_for)(0, workers, 1, drain, context) == 0 }
        });
    }
}

/// The tasks of one parallel-for. The threads share the counter `next`, which is the number of the
/// next task that no thread has taken.
struct Shared {
    function: HostTask,
    argument: *mut c_void,
    next: AtomicUsize,
    tasks: usize,
}

/// Takes and runs tasks of a parallel-for until no task is left. PyTorch may call this function
/// several times on one thread. The second and later calls on that thread find no task and return.
///
/// # Safety
///
/// `context` must point to the [`Shared`] of a parallel-for that has not returned.
unsafe extern "C" fn drain(_: i64, _: i64, context: *mut c_void) {
    // SAFETY: the caller guarantees that `context` points to a `Shared` that still lives.
    let shared = unsafe { &*context.cast_const().cast::<Shared>() };
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= shared.tasks {
            break;
        }
        // SAFETY: `HostTasks::run` made `argument` for this parallel-for. The parallel-for has not
        // returned, so `argument` is still valid.
        unsafe { (shared.function)(shared.argument, index) };
    }
}

/// Runs `call` on PyTorch's threads. This function releases Python's lock during the call.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    call: impl FnOnce(&dyn Pool) -> Result<T, ScatterError> + Send,
) -> PyResult<Result<T, ScatterError>> {
    let done = py.detach(|| {
        let threads = Threads::default();
        let done = cross(|| call(&threads));
        (done, threads.tasks.has_failed())
    });
    match done {
        (Ok(done), false) => Ok(done),
        (Err(panic), _) => Err(panicked(panic)),
        (_, true) => Err(PyRuntimeError::new_err(
            "PyTorch's parallel-for failed, and the result is incomplete; do not use the output",
        )),
    }
}
