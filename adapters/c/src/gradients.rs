//! The gradients of scatters, one call each.

use ndscatter::{AnyViewMut, Forward, Gradients, Operator, Reduction};
use ndscatter_host::dlpack::DLTensor;

use crate::border;
use crate::dlpack::{self, Described};
use crate::failure::Failure;
use crate::operators::Asked::{self, Along, Cache, Elements, Nd};
use crate::options::{Options, nds_options};
use crate::status::nds_status;

/// The tensors of a gradient, as C hands them over.
struct Tensors {
    grad_output: *const DLTensor,
    data: *const DLTensor,
    indices: (&'static str, *const DLTensor),
    updates: *const DLTensor,
    output: *const DLTensor,
    grad_data: (&'static str, *mut DLTensor),
    grad_updates: (&'static str, *mut DLTensor),
}

/// A tensor to write, unless it is null.
///
/// # Safety
///
/// As for [`dlpack::view_mut`].
unsafe fn view_mut<'a>(
    (name, tensor): (&'static str, *mut DLTensor),
) -> Result<Option<AnyViewMut<'a>>, Failure> {
    // SAFETY: handed on as it is.
    (!tensor.is_null())
        .then(|| unsafe { dlpack::view_mut(name, tensor) })
        .transpose()
}

/// # Safety
///
/// As the interface asks: every pointer is null or points to what it should.
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
            "`{data}` and `{updates}` are both null: no gradient is wanted"
        )));
    }
    // SAFETY: the caller vouches for all pointers, and for the memory of the tensors
    // during the call.
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

/// Refuses to do without the output of min and max, and one that cannot be theirs.
///
/// # Safety
///
/// As for [`backward`].
unsafe fn check_output(tensors: &Tensors, options: &Options) -> Result<(), Failure> {
    let is_extreme = matches!(options.reduction, Reduction::Min | Reduction::Max);
    if tensors.output.is_null() {
        return match is_extreme {
            true => Err(Failure::invalid(format_args!(
                "`output` is null; the gradient of {} asks for it",
                options.reduction
            ))),
            false => Ok(()),
        };
    }
    // SAFETY: handed on as it is.
    let [output, gradient]: [Described<'_>; 2] = unsafe {
        [
            dlpack::described("output", tensors.output)?,
            dlpack::described("grad_output", tensors.grad_output)?,
        ]
    };
    if output.layout.shape() != gradient.layout.shape() || output.element != gradient.element {
        return Err(Failure::invalid(format_args!(
            "`output` has {} and shape {:?}, but `grad_output` {} and shape {:?}",
            output.element,
            output.layout.shape(),
            gradient.element,
            gradient.layout.shape()
        )));
    }
    Ok(())
}

/// The gradients of every operator except a cache.
///
/// # Safety
///
/// As for [`backward`], with options.
unsafe fn scatter_backward(
    asked: Asked,
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
    border::cross(|| {
        // SAFETY: handed on as it is.
        unsafe {
            let options = Options::new(options)?;
            dlpack::described("indices", indices)?;
            backward(asked.operator()?, &tensors, scale, &options)
        }
    })
}

/// The gradients of nds_scatter_nd, given that of its output: into grad_data, of the shape
/// of data, and into grad_updates, of that of updates, each times scale. data may be null
/// but for mul, min and max with self, updates but for mul, min and max, output but for min
/// and max; after a call in place data is what it held before. A gradient that is not wanted
/// is null. grad_data may have the address, shape and strides of grad_output. Only floats
/// and complex numbers have gradients.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter_backward(Nd { batch_dims: 0 }, inputs, scale, gradients, options) }
}

/// The same of nds_scatter_update.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter_backward(Along { axis }, inputs, scale, gradients, options) }
}

/// The same of nds_scatter_elements.
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
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter_backward(Elements { axis }, inputs, scale, gradients, options) }
}

/// The gradients of nds_tensor_scatter: for the cache, 0 where it was written, and for
/// update, of which the shape alone is read.
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
    border::cross(|| {
        // SAFETY: the caller of this function vouches for its pointers, and for the
        // memory of the tensors during the call.
        unsafe {
            let options = Options::new(options)?;
            let rows = dlpack::described("update", update)?;
            let asked = Cache { axis, circular };
            let operator = asked.operator()?.for_updates(rows.layout.shape());
            let cache = dlpack::described("grad_output", grad_output)?;
            let expected = operator.updates_shape(cache.layout.shape(), &[])?;
            let written = [
                ("update", update),
                ("grad_update", grad_update.cast_const()),
            ];
            for (name, tensor) in written {
                if !tensor.is_null() && dlpack::described(name, tensor)?.layout.shape() != expected
                {
                    return Err(Failure::invalid(format_args!(
                        "`{name}` has another shape than {expected:?}"
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
