//! The C functions of scatters, of gathers, and of gradients of gathers.
//!
//! Each function converts its arguments and makes one call of the crate `ndscatter`. Error messages
//! use the argument names of C, which this file defines.

use ndscatter::{CacheMode, Operator};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack;
use crate::failure::Failure;
use crate::options::{Options, nds_options, one_of};
use crate::status::nds_status;

/// An operator with the arguments that C passed: an axis, a number of batch dims, or the flag
/// `circular`. These arguments are unchecked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Nd { batch_dims: i64 },
    Along { axis: i64 },
    Elements { axis: i64 },
    Cache { axis: i64, circular: i32 },
    Paged,
}

use Request::{Along, Cache, Elements, Nd, Paged};

impl Request {
    /// Checks that `batch_dims` is not negative and that `circular` is 0 or 1. Returns the operator
    /// of the crate `ndscatter`, which checks the axis later.
    pub(crate) fn operator(self) -> Result<Operator, Failure> {
        // An axis that does not fit in `isize` is replaced by `isize::MAX`, which is out of range
        // for every rank.
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
            Self::Paged => Operator::Paged,
        })
    }
}

/// Argument names in C of the data, the indices and the updates.
type Names = [&'static str; 3];

const NAMES: Names = ["data", "indices", "updates"];
const CACHE_NAMES: Names = ["past_cache", "write_indices", "update"];

/// Runs one scatter. `names` are the argument names of the data, the indices and the updates in C.
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
        // call (contract of this function). This code reads `*data` after `dlpack::view` has
        // refused a null `data`.
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

/// Runs one gather if `scale` is `None`. Otherwise computes the gradient of this gather, multiplied
/// by `scale`.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn gather(
    request: Request,
    [read, indices]: [*const DLTensor; 2],
    scale: Option<f64>,
    written: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of the tensors is valid during the
        // call (contract of this function). This code reads `*read` after `dlpack::view` has
        // refused a null `read`.
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

/// Writes a copy of data to output and applies updates to output (ONNX ScatterND). Each tuple along
/// the last dim of indices selects one slice of output, and one slice of updates changes it. The
/// call is in place if output has the address, shape and strides of data. The DLTensor struct, the
/// shape and the strides of every tensor must be stored outside the memory that a function writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [data, indices, updates];
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter(Nd { batch_dims: 0 }, &NAMES, tensors, output, options) }
}

/// Writes a copy of data to output and applies updates to output (OpenVINO ScatterUpdate, torch
/// index_add_). Each index selects one slice of output along axis, and one slice of updates changes
/// it.
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
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter(Along { axis }, &NAMES, tensors, output, options) }
}

/// Writes a copy of data to output and applies updates to output (ONNX ScatterElements, torch
/// scatter_reduce_). Each element of updates changes one element of output. The index at the same
/// position as the element of updates is the position of the element of output along axis. Along
/// every other axis, the element of output has the position of the element of updates.
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
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter(Elements { axis }, &NAMES, tensors, output, options) }
}

/// Writes a copy of past_cache to output, and then the rows of update to output (ONNX
/// TensorScatter). The tensor write_indices holds one position along axis for each sequence, where
/// the first row of update for this sequence is written. If write_indices is null, this position is
/// 0 for all sequences. If circular is 1, positions wrap around at the end of axis. If circular is
/// 0, they do not. With the option NDS_BOUNDS_SKIP, a sequence with a negative position is skipped.
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
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter(operator, &CACHE_NAMES, tensors, output, options) }
}

/// Writes a copy of data to output and applies updates to output. The tensor data is a paged cache
/// of shape [blocks, block_size, ..], and each index is a slot: slot s is the slice
/// [s / block_size, s % block_size, ..]. The shape of updates is the shape of indices, followed by
/// the shape of data without its first two dims. With the default options, negative slots are
/// skipped, and the call fails if a slot is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_paged(
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [data, indices, updates];
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter(Paged, &NAMES, tensors, output, options) }
}

/// Copies slices of data to output (ONNX GatherND). Each tuple along the last dim of indices
/// selects one slice of data. The first batch_dims dims of data and of indices are batch dims and
/// must have equal sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Nd { batch_dims }, [data, indices], None, output, options) }
}

/// Copies slices of data to output (ONNX Gather). Each index selects one slice of data along axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Along { axis }, [data, indices], None, output, options) }
}

/// Copies elements of data to output (ONNX GatherElements). Each index selects one element of data:
/// the index is the position of this element along axis. Along every other axis, the element of
/// data has the position of the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Elements { axis }, [data, indices], None, output, options) }
}

/// Copies the slots of a paged cache to output. The descriptions of data, of indices and of the
/// options of nds_scatter_paged also apply to this function. For a slot that is skipped, the call
/// writes bytes of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_paged(
    data: *const DLTensor,
    indices: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Paged, [data, indices], None, output, options) }
}

/// Computes the gradient of nds_gather_nd with respect to data. The tensor grad_output is the
/// gradient with respect to the output of nds_gather_nd. The tensor grad_data has the shape of
/// data. Each element of grad_data is a sum multiplied by scale. The sum contains the gradient of
/// every output element that nds_gather_nd copied from this element of data. Each sum begins at 0
/// and adds these gradients in the order of indices. Sums of float16 and bfloat16 are computed in
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
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Nd { batch_dims }, tensors, Some(scale), grad_data, options) }
}

/// Computes the gradient of nds_gather with respect to data, for example of an embedding table. The
/// description of nds_gather_nd_backward also applies to this function.
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
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Along { axis }, tensors, Some(scale), grad_data, options) }
}

/// Computes the gradient of nds_gather_elements with respect to data. The description of
/// nds_gather_nd_backward also applies to this function.
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
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { gather(Elements { axis }, tensors, Some(scale), grad_data, options) }
}
