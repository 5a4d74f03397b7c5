//! PyTorch's memory and threads: its tensors as addresses and layouts, its parallel-for as a
//! pool.
//!
//! Knows what PyTorch tells of a tensor by DLPack, and two functions of its stable C interface.
//! Knows nothing of operators.

#![allow(
    unsafe_code,
    reason = "functions of another library, and views of the memory that they tell of"
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

/// What is used of PyTorch.
#[derive(Debug)]
struct Connection {
    /// The type of tensors.
    tensor: Py<PyType>,
    describe: Describe,
    parallel_for: ParallelFor,
    num_threads: GetNumThreads,
    /// That in which the connection was made. A child that it forks has none of its threads.
    process: u32,
}

static CONNECTION: OnceLock<Connection> = OnceLock::new();

#[cfg(unix)]
unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The address of a symbol of a library that has been loaded.
#[cfg(unix)]
fn symbol(library: &str, name: &CStr) -> Option<*mut c_void> {
    const RTLD_NOW: c_int = 2;
    /// Finds what is loaded, and loads nothing.
    #[cfg(target_os = "linux")]
    const RTLD_NOLOAD: c_int = 4;
    #[cfg(not(target_os = "linux"))]
    const RTLD_NOLOAD: c_int = 0x10;
    let path = CString::new(library).ok()?;
    // SAFETY: both names end with a zero; a library that is loaded is not loaded again, and
    // it is never closed here.
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

/// Finds PyTorch's functions: `tensor` is its type of tensors, `library` the path of its
/// library for the CPU.
#[pyfunction]
pub(super) fn connect(tensor: &Bound<'_, PyType>, library: &str) -> PyResult<()> {
    if CONNECTION.get().is_some() {
        return Ok(());
    }
    let describe = describe_of(tensor)
        .ok_or_else(|| PyRuntimeError::new_err("PyTorch has no DLPack that is known"))?;
    let missing = || PyRuntimeError::new_err(format!("{library} lacks what ndscatter needs"));
    let parallel_for = symbol(library, c"torch_parallel_for").ok_or_else(missing)?;
    let num_threads = symbol(library, c"torch_get_num_threads").ok_or_else(missing)?;
    // SAFETY: functions of these names have these types, by the header
    // torch/csrc/stable/c/shim.h, which keeps them.
    let connection = unsafe {
        Connection {
            tensor: tensor.clone().unbind(),
            describe,
            parallel_for: std::mem::transmute::<*mut c_void, ParallelFor>(parallel_for),
            num_threads: std::mem::transmute::<*mut c_void, GetNumThreads>(num_threads),
            process: std::process::id(),
        }
    };
    // Another thread may have been faster.
    let _ = CONNECTION.set(connection);
    Ok(())
}

/// How many elements a tensor has; `None` for other objects. One that cannot be described has
/// as many as there are numbers.
pub(super) fn elements(object: &Bound<'_, PyAny>) -> Option<usize> {
    let connection = CONNECTION.get()?;
    // SAFETY: both are objects, the second a type.
    let is_tensor =
        unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), connection.tensor.as_ptr().cast()) } != 0;
    if !is_tensor {
        return None;
    }
    let elements = described(connection.describe, object).and_then(|found| {
        (0..usize::try_from(found.ndim).ok()?).try_fold(1_usize, |all, dim| {
            // SAFETY: PyTorch gives `rank` sizes, which stay as long as nobody resizes the
            // tensor; Python's lock is held.
            all.checked_mul(usize::try_from(unsafe { *found.shape.add(dim) }).ok()?)
        })
    });
    Some(elements.unwrap_or(usize::MAX))
}

/// A tensor on the CPU, as it was described. It does not keep its memory: the object that it
/// was made from does, for as long as that is borrowed.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    address: *mut u8,
    code: DLDataType,
    pub(super) dtype: DType,
    pub(super) shape: Dims<usize>,
    /// In elements.
    pub(super) strides: Dims<isize>,
}

// SAFETY: an address and what is told of it; views of it are made by those that say why
// they may.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// What PyTorch says of a tensor of its, or `None` if that is nothing for the crate: it
    /// lies on another device, or its type is not known.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let found = described(CONNECTION.get()?.describe, object)?;
        let is_on_cpu = found.device.device_type == DLDevice::CPU.device_type;
        let dtype = found.dtype.dtype().filter(|_| is_on_cpu)?;
        let rank = usize::try_from(found.ndim).ok()?;
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for dim in 0..rank {
            // SAFETY: PyTorch gives both, `rank` numbers each, which stay as long as nobody
            // resizes the tensor; Python's lock is held.
            let (size, stride) = unsafe { (*found.shape.add(dim), *found.strides.add(dim)) };
            shape.push(usize::try_from(size).ok()?);
            strides.push(isize::try_from(stride).ok()?);
        }
        // Memory that was given back while the tensor kept its shape.
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

    pub(super) fn has_type_of(&self, other: &Self) -> bool {
        self.code == other.code
    }

    /// Elements that the tensor holds in memory. An expanded dimension has stride 0 and repeats
    /// its elements.
    pub(super) fn stored_elements(&self) -> usize {
        let sizes = self.shape.iter().zip(&self.strides);
        let stored = sizes.map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
        stored.fold(1, usize::saturating_mul)
    }

    /// Whether it begins where the other does, and has other strides: PyTorch refuses some such
    /// pairs.
    pub(super) fn lies_differently(&self, other: &Self) -> bool {
        self.address == other.address && self.strides != other.strides
    }

    /// Whether it is of a type that all of PyTorch's kernels have. Others they share
    /// unevenly, and refuse some.
    pub(super) fn is_shared(&self) -> bool {
        !matches!(self.dtype, DType::U16 | DType::U32 | DType::U64) && !self.dtype.is_opaque()
    }

    /// The first elements along every axis: no more than there are.
    pub(super) fn narrow(&mut self, shape: &[usize]) -> Option<()> {
        let fits = self.shape.len() == shape.len()
            && (self.shape.iter().zip(shape)).all(|(&size, &wanted)| wanted <= size);
        fits.then(|| self.shape = shape.into())
    }

    /// The same elements in a larger shape, as PyTorch broadcasts.
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

    /// The axes in another order.
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

    /// To read.
    pub(super) fn view(&self) -> Result<AnyView<'_>, ScatterError> {
        // SAFETY: PyTorch has told where the elements lie, and the object keeps them for as
        // long as the call lasts. That others do not write them meanwhile is for the program,
        // as with PyTorch's own kernels.
        unsafe { AnyView::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// To write.
    pub(super) fn view_mut(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as above; what it shares with other views of the call, the call finds out.
        unsafe { AnyViewMut::from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// To write alone: new memory, or what is written over.
    pub(super) fn view_new(&self) -> Result<AnyViewMut<'_>, ScatterError> {
        // SAFETY: as above.
        unsafe { AnyViewMut::uninit_from_raw_parts(self.address, self.dtype, self.layout()?) }
    }

    /// Whether its elements lie where their type may. PyTorch aligns its own memory, and takes
    /// that of others as it is.
    pub(super) fn is_aligned(&self) -> bool {
        self.address.addr().is_multiple_of(self.dtype.alignment())
    }

    /// The elements of a row that it has, along the last axis; rows are counted in row-major
    /// order. The tensor is aligned.
    pub(super) fn line(&self, mut row: usize) -> Line {
        debug_assert!(self.is_aligned());
        let (mut place, outer) = (0, self.shape.len().saturating_sub(1));
        for (&size, &stride) in self.shape[..outer].iter().zip(&self.strides).rev() {
            place += (row % size).cast_signed() * stride;
            row /= size;
        }
        let len = self.shape.last().copied().unwrap_or(1);
        let step = self.strides.last().copied().unwrap_or(1);
        let bytes = place * self.dtype.size().cast_signed();
        let address = self.address.wrapping_offset(bytes).cast_const();
        // SAFETY: PyTorch has told where the elements lie, and the object keeps them for as
        // long as the call lasts.
        unsafe { Line::from_raw_parts(address, len, step, self.dtype) }
    }

    /// The first so many axes as one, if their elements are evenly spaced. Strides of axes of
    /// size 1 mean nothing.
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

/// PyTorch's threads: its parallel-for, and as many as `torch.set_num_threads` says.
#[derive(Debug, Default)]
struct Threads {
    tasks: HostTasks,
}

/// Calls at work: threads of Python's side by side share PyTorch's out.
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Pool for Threads {
    fn workers(&self) -> Option<usize> {
        let connection = CONNECTION.get()?;
        // OpenMP waits forever for threads that a fork has not taken along.
        if std::process::id() != connection.process {
            return Some(1);
        }
        let mut threads = 1;
        // SAFETY: writes the number.
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
            // SAFETY: it calls `drain` with the context and returns when all calls have.
            unsafe { (connection.parallel_for)(0, workers, 1, drain, context) == 0 }
        });
    }
}

/// The tasks of one parallel-for, which threads take one by one.
struct Shared {
    function: HostTask,
    argument: *mut c_void,
    next: AtomicUsize,
    tasks: usize,
}

/// Takes tasks until there are none. One of PyTorch's threads may be told to do the work of
/// several, and then finds it done.
///
/// # Safety
///
/// `context` is a [`Shared`] of a parallel-for that has not returned.
unsafe extern "C" fn drain(_: i64, _: i64, context: *mut c_void) {
    // SAFETY: the caller vouches for it.
    let shared = unsafe { &*context.cast_const().cast::<Shared>() };
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= shared.tasks {
            break;
        }
        // SAFETY: inside the parallel-for that made the argument.
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
            "PyTorch's parallel-for failed; the result is incomplete",
        )),
    }
}
