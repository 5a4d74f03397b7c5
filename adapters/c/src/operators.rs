//! The operators, one call each.

use ndscatter::{AnyView, AnyViewMut, CacheMode, Gather, Layout, Scatter, ScatterError};

use crate::border;
use crate::dlpack::{self, DLTensor};
use crate::failure::Failure;
use crate::options::{Options, nds_options, one_of};
use crate::status::nds_status;

/// The tensors of a scatter, as C hands them over.
struct Tensors {
    data: *const DLTensor,
    indices: *const DLTensor,
    updates: *const DLTensor,
    output: *mut DLTensor,
}

/// # Safety
///
/// As the interface asks: every pointer is null or points to what it should.
unsafe fn scatter(
    operator: Scatter<'static>,
    tensors: &Tensors,
    options: *const nds_options,
) -> nds_status {
    border::cross(|| {
        // SAFETY: the caller vouches for all pointers, and for the memory of
        // the tensors during the call.
        unsafe {
            let options = Options::new(options)?;
            let operator = options.scatter(operator);
            let data = dlpack::view("data", tensors.data)?;
            let indices = dlpack::view("indices", tensors.indices)?;
            let updates = dlpack::view("updates", tensors.updates)?;
            let output = dlpack::view_mut("output", tensors.output)?;
            let inputs = [
                ("data", tensors.data),
                ("indices", tensors.indices),
                ("updates", tensors.updates),
            ];
            let moved = [
                ("updates", tensors.updates),
                ("output", tensors.output.cast_const()),
            ];
            dlpack::check_types((*tensors.data).dtype, moved)?;
            dlpack::check_descriptions(tensors.output, inputs)?;
            let done = operator.write_into(data, indices, updates, output);
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// A call of a gather that reads two tensors and writes one.
///
/// # Safety
///
/// As for [`scatter`].
unsafe fn gather(
    operator: impl FnOnce() -> Result<Gather<'static>, Failure>,
    inputs: [(&'static str, *const DLTensor); 2],
    (name, output): (&'static str, *mut DLTensor),
    options: *const nds_options,
    call: impl FnOnce(Gather<'_>, [AnyView<'_>; 2], AnyViewMut<'_>) -> Result<(), ScatterError>,
) -> nds_status {
    border::cross(|| {
        // SAFETY: as in `scatter`.
        unsafe {
            let options = Options::new(options)?;
            let operator = options.gather(operator()?)?;
            let [(first, values), (second, indices)] = inputs;
            let read = [dlpack::view(first, values)?, dlpack::view(second, indices)?];
            let written = dlpack::view_mut(name, output)?;
            dlpack::check_types((*values).dtype, [(name, output.cast_const())])?;
            dlpack::check_descriptions(output, inputs)?;
            let done = call(operator, read, written);
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// # Safety
///
/// As for [`scatter`].
unsafe fn gather_forward(
    operator: impl FnOnce() -> Result<Gather<'static>, Failure>,
    [data, indices]: [*const DLTensor; 2],
    output: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let inputs = [("data", data), ("indices", indices)];
    // SAFETY: handed on as it is.
    unsafe {
        gather(
            operator,
            inputs,
            ("output", output),
            options,
            |gather, [data, at], output| gather.write_into(data, at, output),
        )
    }
}

/// # Safety
///
/// As for [`scatter`].
unsafe fn gather_backward(
    operator: impl FnOnce() -> Result<Gather<'static>, Failure>,
    [grad_output, indices]: [*const DLTensor; 2],
    scale: f64,
    grad_data: *mut DLTensor,
    options: *const nds_options,
) -> nds_status {
    let inputs = [("grad_output", grad_output), ("indices", indices)];
    // SAFETY: handed on as it is.
    unsafe {
        gather(
            operator,
            inputs,
            ("grad_data", grad_data),
            options,
            |gather, [gradient, at], sums| gather.backward_into(gradient, at, scale, sums),
        )
    }
}

/// An axis of C. One that does not fit is out of range for any rank.
pub(crate) fn axis(axis: i64) -> isize {
    isize::try_from(axis).unwrap_or(isize::MAX)
}

/// A number of batch dims of C.
pub(crate) fn batch_dims(batch_dims: i64) -> Result<usize, Failure> {
    usize::try_from(batch_dims)
        .map_err(|_| Failure::invalid(format_args!("`batch_dims` is {batch_dims}")))
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
    let tensors = Tensors {
        data,
        indices,
        updates,
        output,
    };
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(Scatter::nd(), &tensors, options) }
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
    let tensors = Tensors {
        data,
        indices,
        updates,
        output,
    };
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(Scatter::update(self::axis(axis)), &tensors, options) }
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
    let tensors = Tensors {
        data,
        indices,
        updates,
        output,
    };
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { scatter(Scatter::elements(self::axis(axis)), &tensors, options) }
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
    border::cross(|| {
        // SAFETY: the caller of this function vouches for its pointers, and
        // for the memory of the tensors during the call.
        unsafe {
            let options = Options::new(options)?;
            let mode = one_of(
                "circular",
                circular,
                [CacheMode::Linear, CacheMode::Circular],
            )?;
            let operator = options.scatter(Scatter::cache(self::axis(axis), mode));
            let inputs = [
                ("past_cache", past_cache),
                ("update", update),
                ("write_indices", write_indices),
            ];
            let moved = [("update", update), ("output", output.cast_const())];
            let cache = dlpack::view("past_cache", past_cache)?;
            let rows = dlpack::view("update", update)?;
            let indices = if write_indices.is_null() {
                start()?
            } else {
                dlpack::view("write_indices", write_indices)?
            };
            let written = dlpack::view_mut("output", output)?;
            dlpack::check_types((*past_cache).dtype, moved)?;
            dlpack::check_descriptions(output, inputs)?;
            let done = operator.write_into(cache, indices, rows, written);
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// Position 0 for every sequence.
pub(crate) fn start() -> Result<AnyView<'static>, Failure> {
    static ZERO: i64 = 0;
    let ptr = (&raw const ZERO).cast();
    // SAFETY: one element, of a static.
    let view =
        unsafe { AnyView::from_raw_parts(ptr, ndscatter::DType::I64, Layout::contiguous(&[])) };
    Ok(view?)
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
    let operator = || Ok(Gather::nd(self::batch_dims(batch_dims)?));
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather_forward(operator, [data, indices], output, options) }
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
    let operator = || Ok(Gather::along(self::axis(axis)));
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather_forward(operator, [data, indices], output, options) }
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
    let operator = || Ok(Gather::elements(self::axis(axis)));
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather_forward(operator, [data, indices], output, options) }
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
    let operator = || Ok(Gather::nd(self::batch_dims(batch_dims)?));
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather_backward(operator, [grad_output, indices], scale, grad_data, options) }
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
    let operator = || Ok(Gather::along(self::axis(axis)));
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather_backward(operator, [grad_output, indices], scale, grad_data, options) }
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
    let operator = || Ok(Gather::elements(self::axis(axis)));
    // SAFETY: the caller of this function vouches for its pointers.
    unsafe { gather_backward(operator, [grad_output, indices], scale, grad_data, options) }
}
