//! Code that the benches share: the workloads, the reference loop that checks every result,
//! the bandwidth of the machine, and the timing of contenders.

#![allow(dead_code, reason = "each bench uses its own part of this module")]

pub(crate) mod aligned;
pub(crate) mod contenders;
pub(crate) mod contest;
pub(crate) mod hosts;
pub(crate) mod inputs;
pub(crate) mod numbers;
pub(crate) mod peer;
pub(crate) mod random;
pub(crate) mod roof;
pub(crate) mod rows;
pub(crate) mod workloads;

use std::num::NonZero;

use ndscatter::{TensorView, TensorViewMut};

pub(crate) fn view<'a, T>(values: &'a [T], shape: &'a [usize]) -> TensorView<'a, T> {
    TensorView::contiguous(values, shape).expect("one value per element")
}

pub(crate) fn view_mut<'a, T>(values: &'a mut [T], shape: &'a [usize]) -> TensorViewMut<'a, T> {
    TensorViewMut::contiguous(values, shape).expect("one value per element")
}

/// Starts rayon's global pool with `threads`, or with one thread per core. Returns the number
/// of threads.
pub(crate) fn start_pool(threads: Option<NonZero<usize>>) -> usize {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZero::get);
    (rayon::ThreadPoolBuilder::new().num_threads(threads))
        .build_global()
        .expect("no earlier pool");
    threads
}
