//! Measures the overhead of the C interface. The call writes four elements in place. It is made
//! through the C function `nds_scatter_nd`, and through the Rust interface. The measurements of the
//! two interfaces are interleaved.
//!
//! ```sh
//! cargo bench -p ndscatter-c
//! ```

#![allow(unsafe_code, reason = "calls functions with the C calling convention")]

use std::hint::black_box;
use std::time::Instant;

use ndscatter::{Scatter, TensorView, TensorViewMut};
use ndscatter_c::{DLDataType, DLDevice, DLTensor, nds_scatter_nd, nds_status};

const ROUNDS: usize = 40;
const CALLS: u32 = 50_000;

const INT64: DLDataType = DLDataType {
    code: 0,
    bits: 64,
    lanes: 1,
};
const FLOAT32: DLDataType = DLDataType {
    code: 2,
    ..DLDataType { bits: 32, ..INT64 }
};

/// Returns a tensor with explicit strides. numpy and torch also export tensors with explicit
/// strides.
fn tensor<T>(
    memory: &mut [T],
    dtype: DLDataType,
    shape: &mut [i64],
    strides: &mut [i64],
) -> DLTensor {
    DLTensor {
        data: memory.as_mut_ptr().cast(),
        device: DLDevice {
            device_type: 1,
            device_id: 0,
        },
        ndim: i32::try_from(shape.len()).expect("a small rank"),
        dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

/// Returns the mean time of one call in nanoseconds, over [`CALLS`] calls.
fn nanoseconds(call: impl Fn()) -> f64 {
    let start = Instant::now();
    (0..CALLS).for_each(|_| call());
    start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

fn main() {
    let mut memory = [0.0_f32; 8];
    let mut indices = [4_i64, 3, 1, 7];
    let mut updates = [9.0_f32, 10.0, 11.0, 12.0];
    let (mut length, mut unit) = ([8], [1]);
    let (mut tuples, mut pairs) = ([4, 1], [1, 1]);
    let mut four = [4];
    let mut unit_of_updates = [1];
    let mut data = tensor(&mut memory, FLOAT32, &mut length, &mut unit);
    let indices_of_c = tensor(&mut indices, INT64, &mut tuples, &mut pairs);
    let updates_of_c = tensor(&mut updates, FLOAT32, &mut four, &mut unit_of_updates);
    let output = &raw mut data;
    let through_c = || {
        // SAFETY: all tensors and their memory are local variables, which outlive the call. The
        // output has the memory of data, so the call is in place. No other tensor shares this
        // memory.
        let status = unsafe {
            nds_scatter_nd(
                black_box(output),
                &raw const indices_of_c,
                &raw const updates_of_c,
                output,
                std::ptr::null(),
            )
        };
        assert_eq!(status, nds_status::NDS_OK, "a valid call");
    };
    let through_rust = || {
        let mut memory = black_box([0.0_f32; 8]);
        let output = TensorViewMut::contiguous(&mut memory, &[8]).expect("a view");
        let indices = TensorView::contiguous(&[4_i64, 3, 1, 7], &[4, 1]).expect("a view");
        let updates = TensorView::contiguous(&[9.0, 10.0, 11.0, 12.0], &[4]).expect("a view");
        let done = Scatter::nd().in_place(output, indices, updates);
        done.expect("a valid call");
        black_box(memory);
    };
    let (mut c, mut rust) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        c = c.min(nanoseconds(through_c));
        rust = rust.min(nanoseconds(through_rust));
    }
    assert_eq!(
        memory,
        [0.0, 11.0, 0.0, 10.0, 9.0, 0.0, 0.0, 12.0],
        "the example of ScatterNDUpdate's specification, on zeros"
    );
    println!(
        "tiny in place: {c:.0} ns from C, {rust:.0} ns from Rust, difference {:.0} ns",
        c - rust
    );
}
