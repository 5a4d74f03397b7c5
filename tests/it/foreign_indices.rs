//! Indices of a foreign runtime that change while a call reads them: what comes
//! out is unspecified, but nothing outside the output is written.

#![allow(
    unsafe_code,
    reason = "views of foreign memory are made by unsafe calls"
)]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use ndscatter::{
    AnyView, AnyViewMut, Bounds, CallingThread, DType, Execution, Gather, Layout, Reduction,
    Scatter, ScatterError, TensorView, TensorViewMut,
};

const BINS: usize = 1000;
const TUPLES: usize = 100_000;

/// An index that lies far outside of all memory.
const WILD: i64 = 1 << 44;

/// Calls `call` while another thread makes an index wild and right again.
fn while_they_change(call: impl Fn(AnyView<'_>) -> Result<(), ScatterError>) {
    let indices: Vec<AtomicI64> = (0..TUPLES).map(|_| AtomicI64::new(7)).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Always the same one: about as often as not it is right when it is
            // read first, and wild when it is read again.
            let index = &indices[TUPLES / 2];
            while !stop.load(Ordering::Relaxed) {
                index.store(WILD, Ordering::Relaxed);
                index.store(7, Ordering::Relaxed);
            }
        });
        let shape = [TUPLES, 1];
        for _ in 0..300 {
            // SAFETY: the memory is there for as long as the view. That another
            // thread writes it stands for a host that does what it must not.
            let view = unsafe {
                AnyView::from_raw_parts(
                    indices.as_ptr().cast(),
                    DType::I64,
                    Layout::contiguous(&shape),
                )
            };
            match call(view.expect("aligned")) {
                Ok(()) | Err(ScatterError::IndexOutOfBounds { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Long lists of single elements, which are applied as they are read, and rows.
#[test]
fn scatters_stay_inside_their_output() {
    for run in [1, 3] {
        let updates = vec![1_u32; TUPLES * run];
        let (shape, updates_shape) = ([BINS, run], [TUPLES, run]);
        for bounds in [Bounds::Error, Bounds::Skip, Bounds::Clamp] {
            let scatter = Scatter::nd()
                .reduction(Reduction::Add)
                .bounds(bounds)
                .execution(Execution::new().pool(&CallingThread));
            while_they_change(|indices| {
                let mut data = vec![0_u32; BINS * run];
                let view = TensorViewMut::contiguous(&mut data, &shape)?;
                let updates = TensorView::contiguous(&updates, &updates_shape)?;
                scatter.in_place(AnyViewMut::from(view), indices, updates.into())
            });
        }
    }
}

#[test]
fn gathers_stay_inside_their_data() {
    let data = vec![1_u32; BINS];
    while_they_change(|indices| {
        let mut output = vec![0_u32; TUPLES];
        let view = TensorViewMut::contiguous(&mut output, &[TUPLES, 1])?;
        let data = TensorView::contiguous(&data, &[BINS])?;
        Gather::along(0).write_into(data.into(), indices, AnyViewMut::from(view))
    });
}
