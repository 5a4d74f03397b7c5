//! The C functions of scatters, gathers, and gradients of gathers.
//!
//! Each function converts its arguments and makes one call of the crate. Knows the names of the
//! arguments in C.

use ndscatter::{CacheMode, Operator};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack;
use crate::failure::Failure;
use crate::options::{Options, nds_options, one_of};
use crate::status::nds_status;

/// An operator as C requests it, with an unchecked axis, number of batch dims or flag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Nd { batch_dims: i64 },
    Along { axis: i64 },
    Elements { axis: i64 },
    Cache { axis: i64, circular: i32 },
}

use Request::{Along, Cache, Elements, Nd};

impl Request {
    /// Checks the axis, number of batch dims or flag, and returns the operator of the crate.
    pub(crate) fn operator(self) -> Result<Operator, Failure> {
        // An axis that does not fit in `isize` is out of range for any rank.
        let axis_of = |axis| isize::try_from(axis).unwrap_or(isize::MAX);
        Ok(match self {
            Self::Nd { batch_dims } => Operator::Nd {
                batch_dims: usize::try_from(batch_dims).map_err(|_| {
                    Failure::invalid(format_args!(
                        "`batch_dims` is {batch_dims}; use 0 or a positive number"
                    ))
                })?,
            },
            Self::Along { axis } => Operator::Along {
                axis: axis_of(axis),
            },
            Self::Elements { axis } => Operator::Elements {
                axis: axis_of(axis),
            },
            Self::Cache { axis, circular } => Operator::Cache {
                axis: axis_of(axis),
                mode: one_of("circular", circular, CacheMode::ALL)?,
                update_len: 1,
            },
        })
    }
}

/// Names in C of data, indices and updates.
type Names = [&'static str; 3];

const NAMES: Names = ["data", "indices", "updates"];
const CACHE_NAMES: Names = ["past_cache", "write_indices", "update"];

/// Makes one scatter call. `names` are the names of the three inputs.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn scatter(
    request: Request,
    names: &'static Names,
    [data, indices, updates]: [*const DLTensor; 3],
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of the tensors is valid during the
        // call (contract of this function). `data` is dereferenced after `view` has accepted it.
        unsafe {
            let options = Options::new(options)?;
            let operator = request.operator()?;
            let scatter = options.scatter(operator)?;
            let inputs = [(names[0], data), (names[1], indices), (names[2], updates)];
            let moved = [inputs[2], ("output", output.cast_const())];
            let from = dlpack::view(names[0], data)?;
            let at = match operator {
                Operator::Cache { .. } => dlpack::positions(names[1], indices)?,
                _ => dlpack::view(names[1], indices)?,
            };
            let updates = dlpack::view(names[2], updates)?;
            let written = dlpack::view_mut("output", output)?;
            dlpack::check_types((*data).dtype, moved)?;
            dlpack::check_descriptions(output, inputs)?;
            let done = scatter.write_into(from, at, updates, written);
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// Makes one gather call. With a `scale`, computes the gradient of the gather instead.
///
/// # Safety
///
/// The contract of [`scatter`] holds.
unsafe fn gather(
    request: Request,
    [read, indices]: [*const DLTensor; 2],
    scale: Option<f64>,
    written: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of the tensors is valid during the
        // call (contract of this function). `read` is dereferenced after `view` has accepted it.
        unsafe {
            let options = Options::new(options)?;
            let gather = options.gather(request.operator()?)?;
            let (name, name_of_written) = match scale {
                None => ("data", "output"),
                Some(_) => ("grad_output", "grad_data"),
            };
            let from = dlpack::view(name, read)?;
            let at = dlpack::view("indices", indices)?;
            let into = dlpack::view_mut(name_of_written, written)?;
            dlpack::check_types((*read).dtype, [(name_of_written, written.cast_const())])?;
            dlpack::check_descriptions(written, [(name, read), ("indices", indices)])?;
            let done = match scale {
                None => gather.write_into(from, at, into),
                Some(scale) => gather.backward_into(from, at, scale, into),
            };
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// Writes a copy of data to output and applies updates to it (ONNX ScatterND). Each tuple along the
/// last dim of indices addresses the slice of output that one slice of updates changes. The call is
/// in place if output has the address, shape and strides of data. No struct, shape or strides of
/// any tensor may lie in the memory that a function writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [data, indices, updates];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter(Nd { batch_dims: 0 }, &NAMES, tensors, output, options) }
}

/// Writes a copy of data to output and applies updates to it (OpenVINO ScatterUpdate, torch
/// index_add_). Each index addresses one slice of output along axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_update(
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [data, indices, updates];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter(Along { axis }, &NAMES, tensors, output, options) }
}

/// Writes a copy of data to output and applies updates to it (ONNX ScatterElements, torch
/// scatter_reduce_). Each index is the position, along axis, of the element of output that one
/// element of updates changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [data, indices, updates];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter(Elements { axis }, &NAMES, tensors, output, options) }
}

/// Writes a copy of past_cache to output and the rows of update into it (ONNX TensorScatter).
/// write_indices holds the position along axis where the rows of each sequence begin. A null
/// write_indices selects position 0 for all sequences. circular is 0 or 1: with 1, positions wrap
/// around. With bounds 1, a sequence with a negative position is skipped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_tensor_scatter(
    past_cache: *const DLTensor,
    update: *const DLTensor,
    write_indices: *const DLTensor,
    axis: i64,
    circular: i32,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let operator = Cache { axis, circular };
    let tensors = [past_cache, write_indices, update];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter(operator, &CACHE_NAMES, tensors, output, options) }
}

/// Copies to output the slices of data that the tuples along the last dim of indices address (ONNX
/// GatherND). The first batch_dims dims of indices are those of data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { gather(Nd { batch_dims }, [data, indices], None, output, options) }
}

/// Copies to output the slices of data along axis that indices address (ONNX Gather).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { gather(Along { axis }, [data, indices], None, output, options) }
}

/// Copies to output the elements of data whose positions along axis are indices (ONNX
/// GatherElements).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { gather(Elements { axis }, [data, indices], None, output, options) }
}

/// Computes the gradient of nds_gather_nd for data. grad_output is the gradient of the output of
/// nds_gather_nd, and grad_data has the shape of data. Each element of grad_data is the sum of the
/// gradients of all output elements that the gather read from this element of data, multiplied by
/// scale. Sums begin at 0 and follow the order of indices. float16 and bfloat16 are summed in
/// float32. Only floats and complex numbers have gradients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_nd_backward(
    grad_output: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    scale: f64,
    grad_data: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [grad_output, indices];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { gather(Nd { batch_dims }, tensors, Some(scale), grad_data, options) }
}

/// Computes the gradient of nds_gather for data, for example of an embedding. The rules of
/// nds_gather_nd_backward hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_backward(
    grad_output: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    scale: f64,
    grad_data: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [grad_output, indices];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { gather(Along { axis }, tensors, Some(scale), grad_data, options) }
}

/// Computes the gradient of nds_gather_elements for data. The rules of nds_gather_nd_backward hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_elements_backward(
    grad_output: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    scale: f64,
    grad_data: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [grad_output, indices];
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { gather(Elements { axis }, tensors, Some(scale), grad_data, options) }
}
