//! The C functions that compute the gradients of scatters.
//!
//! Each C function converts its arguments, checks which tensor pointers may be null, and makes one
//! call of the crate `ndscatter`.

use ndscatter::{AnyViewMut, Forward, Gradients, Operator, Reduction};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack::{self, Description};
use crate::failure::Failure;
use crate::operators::Request::{self, Along, Cache, Elements, Nd};
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// The unchecked tensors of a gradient call. If the C functions use different argument names for a
/// tensor, the field also holds the argument name, for error messages.
struct Tensors {
    grad_output: *const DLTensor,
    data: *const DLTensor,
    indices: (&'static str, *const DLTensor),
    updates: *const DLTensor,
    output: *const DLTensor,
    grad_data: (&'static str, *mut DLTensor),
    grad_updates: (&'static str, *mut DLTensor),
}

/// Returns a view for writing the tensor, or `None` for a null pointer.
///
/// # Safety
///
/// `tensor` is null, or satisfies the safety contract of [`dlpack::view_mut`].
unsafe fn view_mut<'a>(
    (name, tensor): (&'static str, *mut DLTensor),
) -> Result<Option<AnyViewMut<'a>>, Failure> {
    // SAFETY: the pointer is not null, so it satisfies the contract of `dlpack::view_mut` (contract
    // of this function).
    (!tensor.is_null())
        .then(|| unsafe { dlpack::view_mut(name, tensor) })
        .transpose()
}

/// Computes each gradient whose pointer is not null. Fails if both pointers are null.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn backward(
    operator: Operator,
    tensors: &Tensors,
    scale: f64,
    options: &Options,
) -> Result<(), Failure> {
    let [of_data, of_updates] = [tensors.grad_data, tensors.grad_updates];
    if of_data.1.is_null() && of_updates.1.is_null() {
        let (data, updates) = (of_data.0, of_updates.0);
        return Err(Failure::invalid(format_args!(
            "`{data}` and `{updates}` are both null; pass at least one gradient to compute"
        )));
    }
    // SAFETY: all pointers are null or valid, and the memory of the tensors is valid during the
    // call (contract of this function).
    unsafe {
        let grad_output = dlpack::view("grad_output", tensors.grad_output)?;
        let forward = Forward {
            data: dlpack::view_if_any("data", tensors.data)?,
            updates: dlpack::view_if_any("updates", tensors.updates)?,
        };
        let (indices, list) = tensors.indices;
        let list = match operator {
            Operator::Cache { .. } => dlpack::positions(indices, list)?,
            _ => dlpack::view(indices, list)?,
        };
        let wanted = Gradients {
            data: view_mut(of_data)?,
            updates: view_mut(of_updates)?,
        };
        check_output(tensors, options)?;
        let read = [
            ("grad_output", tensors.grad_output),
            ("data", tensors.data),
            tensors.indices,
            ("updates", tensors.updates),
            ("output", tensors.output),
            (of_data.0, of_data.1.cast_const()),
            (of_updates.0, of_updates.1.cast_const()),
        ];
        for (_, written) in [of_data, of_updates] {
            if !written.is_null() {
                dlpack::check_descriptions(written, read)?;
            }
        }
        let scatter = options.scatter(operator)?;
        let done = scatter.backward_into(grad_output, forward, list, scale, wanted);
        options.threads.check()?;
        Ok(done?)
    }
}

/// Checks the tensor `output`. For min and max, fails if `output` is null. For every reduction,
/// fails if `output` is not null and has another element type or shape than `grad_output`.
///
/// # Safety
///
/// The pointers satisfy the safety contract of [`backward`].
unsafe fn check_output(tensors: &Tensors, options: &Options) -> Result<(), Failure> {
    let is_extreme = matches!(options.reduction, Reduction::Min | Reduction::Max);
    if tensors.output.is_null() {
        return match is_extreme {
            true => Err(Failure::invalid(format_args!(
                "`output` is null; the gradient of {} requires it",
                options.reduction
            ))),
            false => Ok(()),
        };
    }
    // SAFETY: the pointers are null or valid (contract of this function).
    let [output, gradient]: [Description<'_>; 2] = unsafe {
        [
            dlpack::description("output", tensors.output)?,
            dlpack::description("grad_output", tensors.grad_output)?,
        ]
    };
    if output.layout.shape() != gradient.layout.shape() || output.element != gradient.element {
        return Err(Failure::invalid(format_args!(
            "`output` has {} and shape {:?}, but `grad_output` has {} and shape {:?}",
            output.element,
            output.layout.shape(),
            gradient.element,
            gradient.layout.shape()
        )));
    }
    Ok(())
}

/// Computes the gradients of nds_scatter_nd, nds_scatter_update or nds_scatter_elements, as
/// `request` selects.
///
/// # Safety
///
/// The pointers satisfy the safety contract of [`backward`]. `options` is null or valid.
unsafe fn scatter_backward(
    request: Request,
    [grad_output, data, indices, updates, output]: [*const DLTensor; 5],
    scale: f64,
    [grad_data, grad_updates]: [*mut DLTensor; 2],
    options: *const nds_options,
) -> nds_status {
    let tensors = Tensors {
        grad_output,
        data,
        indices: ("indices", indices),
        updates,
        output,
        grad_data: ("grad_data", grad_data),
        grad_updates: ("grad_updates", grad_updates),
    };
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid (contract of this function).
        unsafe {
            let options = Options::new(options)?;
            dlpack::description("indices", indices)?;
            backward(request.operator()?, &tensors, scale, &options)
        }
    })
}

/// Computes the gradients of nds_scatter_nd with respect to data and updates, and multiplies both
/// gradients by scale. The tensor grad_output is the gradient with respect to the output of
/// nds_scatter_nd. The tensor grad_data has the shape of data, and grad_updates has the shape of
/// updates. If grad_data or grad_updates is null, the call does not compute this gradient. If both
/// are null, the status is NDS_INVALID_ARGUMENT. The call computes grad_data in place if grad_data
/// has the address, shape and strides of grad_output. Only floats and complex numbers have
/// gradients.
///
/// For the reductions mul, min and max, the tensor updates must not be null. For mul, min and max
/// with the option exclude_self 0, the tensor data must not be null. For min and max, the tensor
/// output must not be null. In all other cases, data, updates and output may be null. If
/// nds_scatter_nd ran in place, the argument data must hold the values that data had before
/// nds_scatter_nd ran.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_nd_backward(
    grad_output: *const DLTensor,
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    output: *const DLTensor,
    scale: f64,
    grad_data: *mut DLTensor,
    grad_updates: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let inputs = [grad_output, data, indices, updates, output];
    let gradients = [grad_data, grad_updates];
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter_backward(Nd { batch_dims: 0 }, inputs, scale, gradients, options) }
}

/// Computes the gradients of nds_scatter_update. The description of nds_scatter_nd_backward also
/// applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_update_backward(
    grad_output: *const DLTensor,
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    axis: i64,
    output: *const DLTensor,
    scale: f64,
    grad_data: *mut DLTensor,
    grad_updates: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let inputs = [grad_output, data, indices, updates, output];
    let gradients = [grad_data, grad_updates];
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter_backward(Along { axis }, inputs, scale, gradients, options) }
}

/// Computes the gradients of nds_scatter_elements. The description of nds_scatter_nd_backward also
/// applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_scatter_elements_backward(
    grad_output: *const DLTensor,
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    axis: i64,
    output: *const DLTensor,
    scale: f64,
    grad_data: *mut DLTensor,
    grad_updates: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let inputs = [grad_output, data, indices, updates, output];
    let gradients = [grad_data, grad_updates];
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { scatter_backward(Elements { axis }, inputs, scale, gradients, options) }
}

/// Computes the gradients of nds_tensor_scatter with respect to past_cache and update, and
/// multiplies both gradients by scale. The tensor grad_past is 0 at the rows that
/// nds_tensor_scatter wrote. The call reads the shape of the tensor update, but not its elements.
/// If grad_past or grad_update is null, the call does not compute this gradient. If both are null,
/// the status is NDS_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_tensor_scatter_backward(
    grad_output: *const DLTensor,
    update: *const DLTensor,
    write_indices: *const DLTensor,
    axis: i64,
    circular: i32,
    scale: f64,
    grad_past: *mut DLTensor,
    grad_update: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers, and tensors
        // whose memory is valid during the call.
        unsafe {
            let options = Options::new(options)?;
            let rows = dlpack::description("update", update)?;
            let request = Cache { axis, circular };
            let operator = request.operator()?.for_updates(rows.layout.shape());
            let cache = dlpack::description("grad_output", grad_output)?;
            let expected = operator.updates_shape(cache.layout.shape(), &[])?;
            let written = [
                ("update", update),
                ("grad_update", grad_update.cast_const()),
            ];
            for (name, tensor) in written {
                if !tensor.is_null()
                    && dlpack::description(name, tensor)?.layout.shape() != expected
                {
                    return Err(Failure::invalid(format_args!(
                        "`{name}` does not have the shape {expected:?}"
                    )));
                }
            }
            let tensors = Tensors {
                grad_output,
                data: std::ptr::null(),
                indices: ("write_indices", write_indices),
                updates: std::ptr::null(),
                output: std::ptr::null(),
                grad_data: ("grad_past", grad_past),
                grad_updates: ("grad_update", grad_update),
            };
            backward(operator, &tensors, scale, &options)
        }
    })
}
