//! Counts the successful runs of nodes by this library since the process began.
//!
//! The exported functions of this module return the number of successful runs, the number of
//! successful runs in place and the number of successful runs with a kept plan. With these numbers,
//! a program can check whether this library or the host's own kernels ran its nodes.

use std::sync::atomic::{AtomicU64, Ordering};

static RUNS: AtomicU64 = AtomicU64::new(0);
static IN_PLACE: AtomicU64 = AtomicU64::new(0);
static PLANNED: AtomicU64 = AtomicU64::new(0);

/// Counts a successful run. `in_place` is whether the run wrote into the memory of the data.
/// `planned` is whether the run used a kept plan.
pub(crate) fn count(in_place: bool, planned: bool) {
    RUNS.fetch_add(1, Ordering::Relaxed);
    if in_place {
        IN_PLACE.fetch_add(1, Ordering::Relaxed);
    }
    if planned {
        PLANNED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the number of successful runs.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_runs() -> u64 {
    RUNS.load(Ordering::Relaxed)
}

/// Returns the number of successful runs that wrote in place, that is, into the memory of the data.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_in_place() -> u64 {
    IN_PLACE.load(Ordering::Relaxed)
}

/// Returns the number of successful runs with a kept plan, that is, with a plan that a node keeps
/// for later runs. The number includes the runs that made such a plan.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_planned() -> u64 {
    PLANNED.load(Ordering::Relaxed)
}
