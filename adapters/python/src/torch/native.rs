//! The entry from C++: PyTorch's dispatcher calls the kernels of `shim.cpp`, and these kernels call
//! the functions of [`TABLE`].
//!
//! This module reads the C structs of a call. `shim.cpp` has the same structs. [`ABI`] changes with
//! these structs, with the lists of functions and reasons, and with the meaning of a value.

#![allow(unsafe_code, reason = "structs that the C++ kernels fill")]

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::slice;

use ndscatter_host::cross;
use ndscatter_host::dlpack::DLTensor;
use pyo3::prelude::*;

use super::call::{Alpha, Arguments, Function, Limits, Stop};
use super::counts::count_declined;
use super::dispatch::{self, Step};
use super::reason::Reason;
use super::tensor::Tensor;

/// Version of the structs of this module. The C++ kernels are used only if their version is equal.
const ABI: u32 = 2;

/// Number of sizes for which a gather has room.
const MOST_AXES: usize = 64;

/// A call of a PyTorch function.
#[repr(C)]
struct RawCall {
    /// Position of the function in [`Function::ALL`].
    function: u32,
    /// 0: decide, 1: run, 2: decide and run.
    step: u8,
    always: bool,
    include_self: bool,
    accumulate: bool,
    is_new: bool,
    /// Type of `alpha`: 0 bool, 1 integer, 2 float, 3 complex.
    alpha_type: u8,
    /// The value of `alpha`. An integer that `f64` cannot represent is rounded. 0 for a complex
    /// number.
    alpha: f64,
    dim: i64,
    /// Start of the argument `reduce`, in UTF-8. Null if the call has no such argument.
    reduce: *const u8,
    reduce_length: usize,
    output: *const DLTensor,
    /// Null if the output contains the initial values.
    data: *const DLTensor,
    /// One pointer per index tensor. A pointer is null for an axis without an index.
    indices: *const *const DLTensor,
    indices_length: usize,
    /// Null if the updates are not known yet.
    updates: *const DLTensor,
    /// Where the step "decide" of a gather writes the shape of the result: at most [`MOST_AXES`]
    /// sizes.
    shape: *mut i64,
    /// Number of sizes that have been written to `shape`.
    rank: usize,
}

/// The functions that the C++ kernels call.
#[repr(C)]
struct Table {
    abi: u32,
    /// Size of [`RawCall`] in bytes.
    call_size: u32,
    attempt: unsafe extern "C" fn(*mut RawCall) -> i32,
    error: extern "C" fn() -> *const c_char,
    decline: extern "C" fn(u32, u32),
    /// The limits of each function of [`Function::ALL`].
    limits: *const Limits,
}

// SAFETY: the pointer of the table points to a constant.
unsafe impl Sync for Table {}

static LIMITS: [Limits; Function::ALL.len()] = {
    let mut limits = [Function::ALL[0].1.limits(); Function::ALL.len()];
    let mut number = 0;
    while number < limits.len() {
        limits[number] = Function::ALL[number].1.limits();
        number += 1;
    }
    limits
};

static TABLE: Table = Table {
    abi: ABI,
    call_size: size_of::<RawCall>() as u32,
    attempt,
    error,
    decline,
    limits: (&raw const LIMITS).cast(),
};

thread_local! {
    /// Text of the last error of a call of this thread.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Performs a step of a call. Returns 1 if the crate has decided to run the call or has run it, and
/// 0 if PyTorch's own kernel must run the call. Returns -1 if the call failed and may have changed
/// the output; [`error`] then returns the text.
///
/// # Safety
///
/// `raw` must point to a call whose pointers are null or point to what the fields describe. The
/// tensors must satisfy the contract of [`Tensor::of_struct`] until this function returns. The step
/// "decide" makes no view of a tensor. `describe` of `shim.cpp` checks that the memory of a tensor has
/// all elements.
unsafe extern "C" fn attempt(raw: *mut RawCall) -> i32 {
    // SAFETY: contract of this function.
    let raw = unsafe { &mut *raw };
    let done = cross(|| {
        // SAFETY: contract of this function.
        let done = unsafe { perform(raw) };
        match done {
            Ok(()) => Ok(true),
            Err(Stop::Declined(_)) => Ok(false),
            Err(Stop::Failed(failed)) => Err(failed.to_string()),
        }
    });
    let failed = match done {
        Ok(Ok(done)) => return done.into(),
        Ok(Err(text)) => text,
        Err(_) => "internal error: this is a bug in ndscatter".to_owned(),
    };
    let text = CString::new(failed).unwrap_or_default();
    // Without thread-local storage (at the end of a thread), the text is lost. The result -1 is not.
    let _ = ERROR.try_with(|error| error.replace(text));
    -1
}

/// Performs a step of a call, and counts a call that PyTorch's own kernel must run.
///
/// # Safety
///
/// As for [`attempt`].
unsafe fn perform(raw: &mut RawCall) -> Result<(), Stop> {
    // A call of an unknown function, which the shim does not make, is not counted.
    let &(_, function) = Function::ALL
        .get(raw.function as usize)
        .ok_or(Reason::Error)?;
    let decline = |reason: Reason| {
        count_declined(function, reason);
        reason
    };
    // SAFETY: contract of this function.
    let (step, arguments) = unsafe { read(raw) }.map_err(decline)?;
    let shape = dispatch::attempt(function, step, &arguments, raw.always)?;
    // SAFETY: contract of this function.
    Ok(unsafe { write_shape(raw, &shape) }.map_err(decline)?)
}

/// Counts a call that a C++ kernel passes to PyTorch's own kernel. The numbers are positions in
/// [`Function::ALL`] and in the list of reasons.
extern "C" fn decline(function: u32, reason: u32) {
    let function = Function::ALL.get(function as usize);
    if let (Some(&(_, function)), Some(reason)) = (function, Reason::at(reason)) {
        count_declined(function, reason);
    }
}

/// Returns the text of the last error of a call of this thread. The text is valid until the next
/// call of this thread.
extern "C" fn error() -> *const c_char {
    let text = ERROR.try_with(|error| error.borrow().as_ptr());
    text.unwrap_or(c"unknown error".as_ptr())
}

/// Reads a call. Returns the reason if PyTorch's own kernel must run the call.
///
/// # Safety
///
/// As for [`attempt`].
unsafe fn read<'a>(raw: &RawCall) -> Result<(Step, Arguments<'a>), Reason> {
    let step = match raw.step {
        0 => Step::Decide,
        1 => Step::Run,
        _ => Step::DecideAndRun,
    };
    let optional = |pointer: *const DLTensor| {
        // SAFETY: contract of this function.
        let found = unsafe { pointer.as_ref() };
        // SAFETY: contract of this function.
        found
            .map(|found| unsafe { Tensor::of_struct(found) })
            .transpose()
    };
    let reduce = match raw.reduce.is_null() {
        true => None,
        // SAFETY: contract of this function.
        false => Some(unsafe { slice::from_raw_parts(raw.reduce, raw.reduce_length) }),
    };
    let indices = match raw.indices_length {
        0 => &[],
        // SAFETY: contract of this function.
        length => unsafe { slice::from_raw_parts(raw.indices, length) },
    };
    let arguments = Arguments {
        output: optional(raw.output)?.ok_or(Reason::Shape)?,
        data: optional(raw.data)?,
        dim: raw.dim,
        indices: indices
            .iter()
            .map(|&index| optional(index))
            .collect::<Result<_, Reason>>()?,
        updates: optional(raw.updates)?,
        reduce: match reduce {
            None => None,
            Some(name) => Some(std::str::from_utf8(name).map_err(|_| Reason::Argument)?),
        },
        include_self: raw.include_self,
        accumulate: raw.accumulate,
        is_new: raw.is_new,
        alpha: match raw.alpha_type {
            0 => Alpha::Bool(raw.alpha != 0.0),
            1 => Alpha::Integer(raw.alpha as i64),
            2 => Alpha::Float(raw.alpha),
            _ => Alpha::Complex,
        },
    };
    Ok((step, arguments))
}

/// Writes the shape of the result of a gather. Returns a reason if the shape does not fit.
///
/// # Safety
///
/// `shape` of `raw` must be null or have room for [`MOST_AXES`] sizes.
unsafe fn write_shape(raw: &mut RawCall, shape: &[usize]) -> Result<(), Reason> {
    if raw.shape.is_null() {
        return Ok(());
    }
    if shape.len() > MOST_AXES {
        return Err(Reason::Shape);
    }
    for (axis, &size) in shape.iter().enumerate() {
        // SAFETY: `axis` is below `MOST_AXES`.
        unsafe { raw.shape.add(axis).write(size.cast_signed() as i64) };
    }
    raw.rank = shape.len();
    Ok(())
}

/// Returns the address of [`TABLE`].
#[pyfunction]
fn table() -> usize {
    (&raw const TABLE).addr()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ABI", ABI)?;
    module.add_function(wrap_pyfunction!(table, module)?)
}
