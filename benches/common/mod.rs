//! What the benches share: the workloads, the plain loop that judges every
//! result, the roof of the machine, and how contenders are timed.

#![allow(dead_code, reason = "each bench uses its own part of this module")]

pub(crate) mod aligned;
pub(crate) mod contenders;
pub(crate) mod inputs;
pub(crate) mod numbers;
pub(crate) mod random;
pub(crate) mod roof;
pub(crate) mod workloads;

use std::num::NonZero;

use ndscatter::{TensorView, TensorViewMut};

pub(crate) fn view<'a, T>(values: &'a [T], shape: &'a [usize]) -> TensorView<'a, T> {
    TensorView::contiguous(values, shape).expect("a value for each place")
}

pub(crate) fn view_mut<'a, T>(values: &'a mut [T], shape: &'a [usize]) -> TensorViewMut<'a, T> {
    TensorViewMut::contiguous(values, shape).expect("a value for each place")
}

/// Starts rayon's pool with `threads`, or with one a core; how many that are.
pub(crate) fn start_pool(threads: Option<NonZero<usize>>) -> usize {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZero::get);
    (rayon::ThreadPoolBuilder::new().num_threads(threads))
        .build_global()
        .expect("no pool has been started before");
    threads
}
