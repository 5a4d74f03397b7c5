//! Compiled helpers of the comparison, for `ctypes`: copies and reads that measure the
//! bandwidth, callers without an interpreter, the crate's allocating methods, and plain loops.
//!
//! No function checks its pointers. Callers guarantee that pointers are valid for their
//! lengths, and that outputs overlap no other argument.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::time::Instant;

use ndscatter::{Forward, Reduction, Scatter, ScatterError, TensorView};

#[path = "../../../common/roof.rs"]
#[allow(dead_code, reason = "names are for the benches in Rust")]
mod roof;
mod rows;

use roof::Copying;

/// Copies `len` floats. `way` is 0 for memcpy, 1 for streaming stores, 2 for `rep movsb`. Returns
/// false if the target does not have this kind of copy.
///
/// # Safety
///
/// `dst` is valid for writes of `len` floats, and `src` for reads of `len` floats. They do not
/// overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_copy(
    way: usize,
    dst: *mut f32,
    src: *const f32,
    len: usize,
) -> bool {
    let Some(copying) = Copying::ALL.get(way) else {
        return false;
    };
    // SAFETY: the caller guarantees both lengths, and that the slices do not overlap.
    let (dst, src) = unsafe {
        (
            slice::from_raw_parts_mut(dst, len),
            slice::from_raw_parts(src, len),
        )
    };
    copying.run(dst, src);
    true
}

/// Reads `len` floats.
///
/// # Safety
///
/// `src` is valid for reads of `len` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_read(src: *const f32, len: usize) {
    // SAFETY: the caller guarantees the length.
    roof::read(unsafe { slice::from_raw_parts(src, len) });
}

/// Type of `nds_scatter_nd` of the C interface, with opaque structs.
type ScatterNdFn = unsafe extern "C" fn(
    data: *const c_void,
    indices: *const c_void,
    updates: *const c_void,
    output: *mut c_void,
    options: *const c_void,
) -> c_int;

/// Returns the nanoseconds of `calls` calls, or -1 if a call failed.
///
/// # Safety
///
/// `scatter_nd` is `nds_scatter_nd` of the library, and the arguments fulfil its requirements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_time_scatter_nd(
    scatter_nd: ScatterNdFn,
    data: *const c_void,
    indices: *const c_void,
    updates: *const c_void,
    output: *mut c_void,
    options: *const c_void,
    calls: u32,
) -> i64 {
    let mut statuses = 0;
    let start = Instant::now();
    for _ in 0..calls {
        // SAFETY: the caller guarantees the function and its arguments.
        statuses |= unsafe { scatter_nd(data, indices, updates, output, options) };
    }
    let nanoseconds = start.elapsed().as_nanos();
    if statuses == 0 {
        i64::try_from(nanoseconds).unwrap_or(i64::MAX)
    } else {
        -1
    }
}

/// A row-major tensor. The function that receives it determines the element type.
#[repr(C)]
pub struct Tensor {
    memory: *const c_void,
    shape: *const usize,
    rank: usize,
}

impl Tensor {
    /// Views the tensor.
    ///
    /// # Safety
    ///
    /// `shape` has `rank` sizes. `memory` has elements of type `T`; their number is the product
    /// of the sizes. Both outlive `'a`, and nobody writes to them during `'a`.
    unsafe fn view<'a, T>(&self) -> TensorView<'a, T> {
        // SAFETY: the caller guarantees `rank` sizes that outlive `'a`.
        let shape = unsafe { slice::from_raw_parts(self.shape, self.rank) };
        let len = shape.iter().product();
        // SAFETY: the caller guarantees `len` elements of type `T` that outlive `'a`.
        let memory = unsafe { slice::from_raw_parts(self.memory.cast(), len) };
        TensorView::contiguous(memory, shape).expect("a slice with the length of the shape")
    }
}

/// Scatters into a new `Vec`. Returns its handle, or null if the call failed. `axis` is -1 for
/// `Scatter::nd`. `reduction` is 0 for none, 1 for add, 5 for max.
///
/// # Safety
///
/// The tensors are valid during the call. `data` and `updates` have elements of type `f32`, and
/// `indices` of type `i64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_allocate(
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    axis: isize,
    reduction: c_int,
) -> *mut Vec<f32> {
    // SAFETY: the caller guarantees valid tensors of `f32`.
    let (data, updates) = unsafe { (data.view::<f32>(), updates.view::<f32>()) };
    // SAFETY: the caller guarantees a valid tensor of `i64`.
    let indices = unsafe { indices.view::<i64>() };
    let Some(scatter) = scatter(axis, reduction) else {
        return ptr::null_mut();
    };
    let result = scatter.allocate(data, indices, updates);
    result.map_or(ptr::null_mut(), |result| {
        Box::into_raw(Box::new(result.into_vec()))
    })
}

/// Returns the scatter of `axis` and `reduction`, or `None` for an unknown reduction.
fn scatter(axis: isize, reduction: c_int) -> Option<Scatter<'static>> {
    let reduction = match reduction {
        0 => Reduction::None,
        1 => Reduction::Add,
        5 => Reduction::Max,
        _ => return None,
    };
    let scatter = if axis < 0 {
        Scatter::nd()
    } else {
        Scatter::along(axis)
    };
    Some(scatter.reduction(reduction))
}

/// The output of a forward pass, the gradient for data, and the gradient for updates.
type Pass = [Vec<f32>; 3];

/// Computes a forward pass and its gradients, each into a new `Vec`. Returns their handle, or null
/// if a call failed. The gradient of a sum for data equals `grad_output`. Its `Vec` is empty.
///
/// # Safety
///
/// As for [`compare_allocate`]. `grad_output` has elements of type `f32`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_train(
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    grad_output: &Tensor,
    axis: isize,
    reduction: c_int,
) -> *mut Pass {
    let Some(scatter) = scatter(axis, reduction) else {
        return ptr::null_mut();
    };
    // SAFETY: the caller guarantees valid tensors of these types.
    let pass = unsafe {
        let (data, updates) = (data.view::<f32>(), updates.view::<f32>());
        let (indices, gradient) = (indices.view::<i64>(), grad_output.view::<f32>());
        train(&scatter, reduction == 1, data, indices, updates, gradient)
    };
    pass.map_or(ptr::null_mut(), |pass| Box::into_raw(Box::new(pass)))
}

fn train(
    scatter: &Scatter<'_>,
    is_sum: bool,
    data: TensorView<'_, f32>,
    indices: TensorView<'_, i64>,
    updates: TensorView<'_, f32>,
    gradient: TensorView<'_, f32>,
) -> Result<Pass, ScatterError> {
    let (output, saved) = scatter.forward(data, indices, updates)?;
    let run = saved.run();
    if !is_sum {
        let (of_data, of_updates) = run.backward(gradient, Forward::new(data, updates), 1.0)?;
        return Ok([output.into_vec(), of_data.into_vec(), of_updates.into_vec()]);
    }
    let of_updates = run.backward_updates(gradient, Forward::none(), 1.0)?;
    Ok([output.into_vec(), Vec::new(), of_updates.into_vec()])
}

/// Returns the values of result `which` (0, 1 or 2) of a pass. Aborts for other numbers.
///
/// # Safety
///
/// `pass` is a handle of [`compare_train`] that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_pass_values(pass: *const Pass, which: usize) -> *const f32 {
    // SAFETY: the caller guarantees a valid handle.
    unsafe { (&(*pass))[which].as_ptr() }
}

/// Frees the results of a pass.
///
/// # Safety
///
/// `pass` is a handle of [`compare_train`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_pass_free(pass: *mut Pass) {
    // SAFETY: `compare_train` made the handle with `Box::into_raw`. The caller guarantees that it
    // is not used again.
    drop(unsafe { Box::from_raw(pass) });
}

/// Returns the values of a result.
///
/// # Safety
///
/// `result` is a handle of [`compare_allocate`] that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_values(result: *const Vec<f32>) -> *const f32 {
    // SAFETY: the caller guarantees a valid handle.
    unsafe { (*result).as_ptr() }
}

/// Frees a result.
///
/// # Safety
///
/// `result` is a handle of [`compare_allocate`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_free(result: *mut Vec<f32>) {
    // SAFETY: `compare_allocate` made the handle with `Box::into_raw`. The caller guarantees that
    // it is not used again.
    drop(unsafe { Box::from_raw(result) });
}
