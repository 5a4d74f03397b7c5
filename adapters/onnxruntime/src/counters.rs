//! What kernels of this library have done since the process began, exported so that a
//! program can tell that it was them.

use std::sync::atomic::{AtomicU64, Ordering};

static RUNS: AtomicU64 = AtomicU64::new(0);
static IN_PLACE: AtomicU64 = AtomicU64::new(0);
static PLANNED: AtomicU64 = AtomicU64::new(0);

/// Counts a run that has succeeded.
pub(crate) fn count(in_place: bool, planned: bool) {
    RUNS.fetch_add(1, Ordering::Relaxed);
    if in_place {
        IN_PLACE.fetch_add(1, Ordering::Relaxed);
    }
    if planned {
        PLANNED.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many runs of operators there were.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_runs() -> u64 {
    RUNS.load(Ordering::Relaxed)
}

/// How many of them wrote where their data lay.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_in_place() -> u64 {
    IN_PLACE.load(Ordering::Relaxed)
}

/// How many of them used a plan that was kept.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_planned() -> u64 {
    PLANNED.load(Ordering::Relaxed)
}
