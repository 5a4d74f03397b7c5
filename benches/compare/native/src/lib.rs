//! What the comparison needs from a compiled language, for `ctypes`: how fast
//! the machine moves bytes, a caller without an interpreter, and the crate's
//! own verbs that allocate their results.
//!
//! Every function trusts its caller: pointers are valid for the lengths that
//! come with them, and outputs overlap nothing.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::time::Instant;

use ndscatter::{Forward, Reduction, Scatter, ScatterError, TensorView};

#[path = "../../../common/roof.rs"]
#[allow(dead_code, reason = "names are for the benches in Rust")]
mod roof;

use roof::Copying;

/// Copies `len` floats in the way of this number: memcpy, streaming stores,
/// `rep movsb`. False if the machine has no such way.
///
/// # Safety
///
/// Both pointers are valid for `len` floats, which do not overlap.
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
    // SAFETY: as the caller promises.
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
/// The pointer is valid for `len` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_read(src: *const f32, len: usize) {
    // SAFETY: as the caller promises.
    roof::read(unsafe { slice::from_raw_parts(src, len) });
}

/// `nds_scatter_nd` of the C interface; the structs stay closed here.
type ScatterNdFn = unsafe extern "C" fn(
    data: *const c_void,
    indices: *const c_void,
    updates: *const c_void,
    output: *mut c_void,
    options: *const c_void,
) -> c_int;

/// Nanoseconds that `calls` calls take; -1 if one of them failed.
///
/// # Safety
///
/// `scatter_nd` is that function of the library, and may be called with these
/// arguments.
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
        // SAFETY: as the caller promises.
        statuses |= unsafe { scatter_nd(data, indices, updates, output, options) };
    }
    let nanoseconds = start.elapsed().as_nanos();
    if statuses == 0 {
        i64::try_from(nanoseconds).unwrap_or(i64::MAX)
    } else {
        -1
    }
}

/// A tensor, row-major, of whichever element type the field is for.
#[repr(C)]
pub struct Tensor {
    memory: *const c_void,
    shape: *const usize,
    rank: usize,
}

impl Tensor {
    /// # Safety
    ///
    /// The memory holds elements of type `T`, as many as the shape says, and
    /// lives as long as is made of it.
    unsafe fn view<'a, T>(&self) -> TensorView<'a, T> {
        // SAFETY: as the caller promises.
        let shape = unsafe { slice::from_raw_parts(self.shape, self.rank) };
        let len = shape.iter().product();
        // SAFETY: as the caller promises.
        let memory = unsafe { slice::from_raw_parts(self.memory.cast(), len) };
        TensorView::contiguous(memory, shape).expect("as many elements as the shape says")
    }
}

/// A scatter into a new `Vec`, of which this is the handle: null on failure.
/// `axis` is -1 for `Scatter::nd`, `reduction` 0 for none, 1 for add, 5 for max.
///
/// # Safety
///
/// The tensors are valid; `data` and `updates` hold `f32`, `indices` `i64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_allocate(
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    axis: isize,
    reduction: c_int,
) -> *mut Vec<f32> {
    // SAFETY: as the caller promises.
    let (data, updates) = unsafe { (data.view::<f32>(), updates.view::<f32>()) };
    // SAFETY: as the caller promises.
    let indices = unsafe { indices.view::<i64>() };
    let Some(scatter) = scatter(axis, reduction) else {
        return ptr::null_mut();
    };
    let result = scatter.allocate(data, indices, updates);
    result.map_or(ptr::null_mut(), |result| {
        Box::into_raw(Box::new(result.into_vec()))
    })
}

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

/// The output of a forward pass, and the gradients for data and for updates.
type Pass = [Vec<f32>; 3];

/// A forward pass and its gradients, each into a new `Vec`: null on failure. The gradient
/// for data of a sum is that of the output, which lies there already: its `Vec` is empty.
///
/// # Safety
///
/// As for [`compare_allocate`]; `grad_output` holds `f32`, and is written by nobody.
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
    // SAFETY: as the caller promises.
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
        let (of_data, of_updates) =
            run.backward(gradient, Forward::new(data, updates), 1.0)?;
        return Ok([
            output.into_vec(),
            of_data.into_vec(),
            of_updates.into_vec(),
        ]);
    }
    let of_updates = run.backward_updates(gradient, Forward::none(), 1.0)?;
    Ok([output.into_vec(), Vec::new(), of_updates.into_vec()])
}

/// The values of one of the three results of a pass.
///
/// # Safety
///
/// The handle is one of [`compare_train`], and `which` less than 3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_pass_values(pass: *const Pass, which: usize) -> *const f32 {
    // SAFETY: as the caller promises.
    unsafe { (&(*pass))[which].as_ptr() }
}

/// Frees the results of a pass.
///
/// # Safety
///
/// The handle is one of [`compare_train`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_pass_free(pass: *mut Pass) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(pass) });
}

/// The values of a result.
///
/// # Safety
///
/// The handle is one of [`compare_allocate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_values(result: *const Vec<f32>) -> *const f32 {
    // SAFETY: as the caller promises.
    unsafe { (*result).as_ptr() }
}

/// Frees a result.
///
/// # Safety
///
/// The handle is one of [`compare_allocate`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compare_free(result: *mut Vec<f32>) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(result) });
}
