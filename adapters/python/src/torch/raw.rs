//! PyTorch's tensors as addresses and layouts, and PyTorch's parallel-for as a pool.
//!
//! Knows PyTorch's DLPack function that describes a tensor, and two functions of its stable C
//! interface. Does not know operators.

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

/// PyTorch's type of tensors, and the functions that this module calls.
#[derive(Debug)]
struct Connection {
    /// The type of tensors.
    tensor: Py<PyType>,
    describe: Describe,
    parallel_for: ParallelFor,
    num_threads: GetNumThreads,
    /// Identifier of the process that made the connection. A forked child has none of its threads.
    process: u32,
}

static CONNECTION: OnceLock<Connection> = OnceLock::new();

#[cfg(unix)]
unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Returns the address of a symbol of a library that is already loaded.
#[cfg(unix)]
fn symbol(library: &str, name: &CStr) -> Option<*mut c_void> {
    const RTLD_NOW: c_int = 2;
    /// Mode of `dlopen` that finds a loaded library and loads none.
    #[cfg(target_os = "linux")]
    const RTLD_NOLOAD: c_int = 4;
    #[cfg(not(target_os = "linux"))]
    const RTLD_NOLOAD: c_int = 0x10;
    let path = CString::new(library).ok()?;
    // SAFETY: both names end with a zero. `RTLD_NOLOAD` runs no code of the library. The handle is
    // never closed, so the symbol stays valid.
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

/// Finds PyTorch's functions. `tensor` is PyTorch's type of tensors, `library` the path of its CPU
/// library.
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
    // Another thread may have set an equal connection meanwhile.
    let _ = CONNECTION.set(connection);
    Ok(())
}

/// Returns the number of elements of a tensor, or `None` for another object. A tensor that cannot
/// be described has `usize::MAX` elements.
pub(super) fn elements(object: &Bound<'_, PyAny>) -> Option<usize> {
    let connection = CONNECTION.get()?;
    // SAFETY: both pointers are living objects, and the second is a type.
    let is_tensor =
        unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), connection.tensor.as_ptr().cast()) } != 0;
    if !is_tensor {
        return None;
    }
    let elements = described(connection.describe, object).and_then(|found| {
        (0..usize::try_from(found.ndim).ok()?).try_fold(1_usize, |all, dim| {
            // SAFETY: the description has `ndim` sizes. They are valid until the tensor is resized,
            // which no other thread does while this thread holds Python's lock.
            all.checked_mul(usize::try_from(unsafe { *found.shape.add(dim) }).ok()?)
        })
    });
    Some(elements.unwrap_or(usize::MAX))
}

/// The description of a CPU tensor. This description does not keep the memory alive. The Python
/// object keeps the memory alive while the object is borrowed.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    address: *mut u8,
    code: DLDataType,
    pub(super) dtype: DType,
    pub(super) shape: Dims<usize>,
    /// Strides in elements.
    pub(super) strides: Dims<isize>,
}

// SAFETY: a tensor is an address and its description. The methods that make views of the memory
// state why they may.
unsafe impl Send for Tensor {}
// SAFETY: as for `Send`.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Reads the description of a PyTorch tensor. Returns `None` for a tensor on another device, of
    /// an unknown element type, or without memory.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let found = described(CONNECTION.get()?.describe, object)?;
        let is_on_cpu = found.device.device_type == DLDevice::CPU.device_type;
        let dtype = found.dtype.dtype().filter(|_| is_on_cpu)?;
        let rank = usize::try_from(found.ndim).ok()?;
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for dim in 0..rank {
            // SAFETY: the description has `ndim` sizes and strides. They are valid until the tensor
            // is resized, which no other thread does while this thread holds Python's lock.
            let (size, stride) = unsafe { (*found.shape.add(dim), *found.strides.add(dim)) };
            shape.push(usize::try_from(size).ok()?);
            strides.push(isize::try_from(stride).ok()?);
        }
        // The memory of the tensor was freed, but the tensor kept its shape.
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

    /// Returns the number of elements that the tensor has in memory. An expanded dimension has
    /// stride 0 and counts as one element.
    pub(super) fn stored_elements(&self) -> usize {
        let sizes = self.shape.iter().zip(&self.strides);
        let stored = sizes.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
        stored.fold(1, usize::saturating_mul)
    }

    /// Checks whether both tensors begin at one address but have different strides. PyTorch refuses
    /// some such pairs of input and output.
    pub(super) fn aliases_with_other_strides(&self, other: &Self) -> bool {
        self.address == other.address && self.strides != other.strides
    }

    /// Checks whether all of PyTorch's scatter kernels support the element type. Some of them
    /// refuse other types.
    pub(super) fn has_common_type(&self) -> bool {
        !matches!(self.dtype, DType::U16 | DType::U32 | DType::U64) && !self.dtype.is_opaque()
    }

    /// Keeps the first elements along each axis, up to `shape`. Returns `None` if an axis has
    /// fewer.
    pub(super) fn narrow(&mut self, shape: &[usize]) -> Option<()> {
        let fits = self.shape.len() == shape.len()
            && (self.shape.iter().zip(shape)).all(|(&size, &wanted)| wanted <= size);
        fits.then(|| self.shape = shape.into())
    }

    /// Broadcasts to `shape` by PyTorch's rules. Returns `None` if the shapes do not fit.
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

    /// Returns a view for reading.
    pub(super) fn view(&self) -> Result<AnyView<'_>, ScatterError> {
        // SAFETY: PyTorch described address, shape and strides (`Tensor::of`), and the Python
        // object keeps the memory alive until the end of the call. The program must not write the
        // tensor meanwhile, as with PyTorch's own kernels.
        unsafe { AnyView::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Returns a view for writing to initialised elements.
    pub(super) fn view_mut(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as in `view`. The call of the crate checks whether other views of the call share
        // memory with this one.
        unsafe { AnyViewMut::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Returns a view for writing to elements that are not read: new memory, or an output that is
    /// overwritten.
    pub(super) fn view_new(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as in `view_mut`.
        unsafe { AnyViewMut::uninit_from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Checks whether the elements are aligned for their type. PyTorch aligns its own allocations,
    /// but accepts memory of other libraries with any alignment.
    pub(super) fn is_aligned(&self) -> bool {
        self.address.addr().is_multiple_of(self.dtype.alignment())
    }

    /// Returns row `row`: a line of elements along the last axis. Rows are numbered in row-major
    /// order. The tensor must be aligned.
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

    /// Merges the first `axes` axes to one, if their elements are evenly strided. Otherwise returns
    /// `None`. The strides of axes of size 1 have no meaning.
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

/// PyTorch's threads as a pool: its parallel-for, with the number of threads of
/// `torch.set_num_threads`.
#[derive(Debug, Default)]
struct Threads {
    tasks: HostTasks,
}

/// Number of running calls. Concurrent calls of several Python threads share PyTorch's threads.
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        let connection = CONNECTION.get()?;
        // A forked child does not have OpenMP's threads, and OpenMP would wait for them forever.
        if std::process::id() != connection.process {
            return Some(1);
        }
        let mut threads = 1;
        // SAFETY: the function writes one number to the pointer.
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
            // SAFETY: `parallel_for` calls `drain` with the context, and returns after all these
            // calls have returned. `shared` outlives it.
            unsafe { (connection.parallel_for)(0, workers, 1, drain, context) == 0 }
        });
    }
}

/// The tasks of one parallel-for. Each thread takes the next task from a counter.
struct Shared {
    function: HostTask,
    argument: *mut c_void,
    next: AtomicUsize,
    tasks: usize,
}

/// Runs tasks until none is left. PyTorch may call this function several times on one thread. Later
/// calls find no task.
///
/// # Safety
///
/// `context` is a [`Shared`] of a parallel-for that has not returned.
unsafe extern "C" fn drain(_: i64, _: i64, context: *mut c_void) {
    // SAFETY: `context` is a `Shared` that lives, by the contract of this function.
    let shared = unsafe { &*context.cast_const().cast::<Shared>() };
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= shared.tasks {
            break;
        }
        // SAFETY: the parallel-for that made the argument has not returned.
        unsafe { (shared.function)(shared.argument, index) };
    }
}

/// Runs a call on PyTorch's threads, without Python's lock.
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
