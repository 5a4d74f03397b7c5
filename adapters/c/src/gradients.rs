//! The C functions of gradients of scatters.
//!
//! Each C function converts its arguments, checks which tensors may be null, and makes one call of
//! the crate.

use ndscatter::{AnyViewMut, Forward, Gradients, Operator, Reduction};
use ndscatter_host::dlpack::DLTensor;

use crate::boundary;
use crate::dlpack::{self, Description};
use crate::failure::Failure;
use crate::operators::Request::{self, Along, Cache, Elements, Nd};
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// The unchecked tensors of a gradient call. A tensor whose argument name differs between the C
/// functions is stored with this name.
struct Tensors {
    grad_output: *const DLTensor,
    data: *const DLTensor,
    indices: (&'static str, *const DLTensor),
    updates: *const DLTensor,
    output: *const DLTensor,
    grad_data: (&'static str, *mut DLTensor),
    grad_updates: (&'static str, *mut DLTensor),
}

/// Returns a view of a tensor to write, or `None` for a null pointer.
///
/// # Safety
///
/// The contract of [`dlpack::view_mut`] holds.
unsafe fn view_mut<'a>(
    (name, tensor): (&'static str, *mut DLTensor),
) -> Result<Option<AnyViewMut<'a>>, Failure> {
    // SAFETY: this function has the contract of `dlpack::view_mut`.
    (!tensor.is_null())
        .then(|| unsafe { dlpack::view_mut(name, tensor) })
        .transpose()
}

/// Computes the gradients whose pointers are not null.
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

/// Checks that `output` is not null for min and max, and that it has the type and shape of
/// `grad_output`.
///
/// # Safety
///
/// The contract of [`backward`] holds.
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

/// Computes the gradients of every scatter except that of a cache.
///
/// # Safety
///
/// The contract of [`backward`] holds. `options` is null or valid.
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

/// Computes the gradients of nds_scatter_nd for data and updates, and multiplies both gradients by
/// scale. The tensor grad_output is the gradient of the output of nds_scatter_nd. The tensor
/// grad_data has the shape of data, and grad_updates has the shape of updates. One of grad_data and
/// grad_updates may be null and is then not computed. The tensor grad_data may have the address,
/// shape and strides of grad_output. Only floats and complex numbers have gradients.
///
/// For the reductions mul, min and max, the tensor updates is required. For the same reductions,
/// the tensor data is required if the option exclude_self is 0. For min and max, the tensor output
/// is required. Any of these three tensors that is not required may be null. After a call of
/// nds_scatter_nd in place, pass the values that data had before that call.
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
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter_backward(Nd { batch_dims: 0 }, inputs, scale, gradients, options) }
}

/// Computes the gradients of nds_scatter_update. The rules of nds_scatter_nd_backward hold.
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
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter_backward(Along { axis }, inputs, scale, gradients, options) }
}

/// Computes the gradients of nds_scatter_elements. The rules of nds_scatter_nd_backward hold.
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
    // SAFETY: the caller satisfies the contract of the pointers (docs/c.md).
    unsafe { scatter_backward(Elements { axis }, inputs, scale, gradients, options) }
}

/// Computes the gradients of nds_tensor_scatter for past_cache and update, each multiplied by
/// scale. grad_past is 0 for the rows that the forward call wrote. Only the shape of update is
/// read. One of grad_past and grad_update may be null and is then not computed.
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
        // SAFETY: the caller satisfies the contract of the pointers and of the tensors' memory
        // (docs/c.md).
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
