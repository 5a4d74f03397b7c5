//! The operators, one call each.

use ndscatter::{CacheMode, Operator};
use ndscatter_host::dlpack::DLTensor;

use crate::border;
use crate::dlpack;
use crate::failure::Failure;
use crate::options::{Options, nds_options, one_of};
use crate::status::nds_status;

/// An operator as C asks for it, by numbers that nobody has checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Nd { batch_dims: i64 },
    Along { axis: i64 },
    Elements { axis: i64 },
    Cache { axis: i64, circular: i32 },
}

use Asked::{Along, Cache, Elements, Nd};

impl Asked {
    pub(crate) fn operator(self) -> Result<Operator, Failure> {
        // An axis that does not fit is out of range for any rank.
        let axis_of = |axis| isize::try_from(axis).unwrap_or(isize::MAX);
        Ok(match self {
            Self::Nd { batch_dims } => Operator::Nd {
                batch_dims: usize::try_from(batch_dims)
                    .map_err(|_| Failure::invalid(format_args!("`batch_dims` is {batch_dims}")))?,
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

/// What C calls data, indices and updates.
type Names = [&'static str; 3];

const NAMES: Names = ["data", "indices", "updates"];
const NAMES_OF_CACHE: Names = ["past_cache", "write_indices", "update"];

/// # Safety
///
/// As the interface asks: every pointer is null or points to what it should.
unsafe fn scatter(
    asked: Asked,
    names: &'static Names,
    [data, indices, updates]: [*const DLTensor; 3],
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    border::cross(|| {
        // SAFETY: the caller vouches for all pointers, and for the memory of
        // the tensors during the call.
        unsafe {
            let options = Options::new(options)?;
            let operator = asked.operator()?;
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

/// A gather, or, where there is a factor, its gradient.
///
/// # Safety
///
/// As for [`scatter`].
unsafe fn gather(
    asked: Asked,
    [read, indices]: [*const DLTensor; 2],
    scale: Option<f64>,
    written: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    border::cross(|| {
        // SAFETY: as in `scatter`.
        unsafe {
            let options = Options::new(options)?;
            let gather = options.gather(asked.operator()?)?;
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

/// Writes slices of updates into a copy of data, in output, at the places that
/// the tuples along the last dim of indices name: ONNX ScatterND. An output
/// with the address, shape and strides of data is written in place. No struct,
/// shape or strides of any tensor may lie in the memory of output, here and in
/// all functions that write one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let tensors = [data, indices, updates];
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(Nd { batch_dims: 0 }, &NAMES, tensors, output, options) }
}

/// Slices along one axis: OpenVINO ScatterUpdate, torch index_add_.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(Along { axis }, &NAMES, tensors, output, options) }
}

/// Element by element: ONNX ScatterElements, torch scatter_reduce_.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(Elements { axis }, &NAMES, tensors, output, options) }
}

/// Rows written into a cache, for each sequence from its own position on: ONNX
/// TensorScatter. write_indices may be null: all sequences from position 0 on.
/// With bounds 1 a sequence whose position is negative is left out.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(operator, &NAMES_OF_CACHE, tensors, output, options) }
}

/// The slices that the tuples along the last dim of indices name: ONNX GatherND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_nd(
    data: *const DLTensor,
    indices: *const DLTensor,
    batch_dims: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather(Nd { batch_dims }, [data, indices], None, output, options) }
}

/// Slices along one axis: ONNX Gather.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather(Along { axis }, [data, indices], None, output, options) }
}

/// Element by element: ONNX GatherElements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_gather_elements(
    data: *const DLTensor,
    indices: *const DLTensor,
    axis: i64,
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather(Elements { axis }, [data, indices], None, output, options) }
}

/// The gradient for data of nds_gather_nd, given that of its output: into grad_data, of
/// the shape of data, the sums of what was gathered from each place, from zero and in
/// the order of indices, times scale. float16 and bfloat16 are summed in float32. Only
/// floats and complex numbers have gradients.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather(Nd { batch_dims }, tensors, Some(scale), grad_data, options) }
}

/// The same of nds_gather: the gradient of an embedding.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather(Along { axis }, tensors, Some(scale), grad_data, options) }
}

/// The same of nds_gather_elements.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather(Elements { axis }, tensors, Some(scale), grad_data, options) }
}
