//! Counts the successful runs of nodes by this library since the process began.
//!
//! The exported functions of this module return the number of successful runs, the number of
//! successful runs in place and the number of successful runs with a kept plan. With these numbers,
//! a program can check whether this library or the host's own kernels ran its nodes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::definition::{DEFINITIONS, Definition};

static IN_PLACE: AtomicU64 = AtomicU64::new(0);
static PLANNED: AtomicU64 = AtomicU64::new(0);

/// Counts a successful run of the operator `definition`. `in_place` is whether the run wrote into
/// the memory of the data. `planned` is whether the run used a kept plan.
pub(crate) fn count(definition: &'static Definition, in_place: bool, planned: bool) {
    definition.runs.fetch_add(1, Ordering::Relaxed);
    if in_place {
        IN_PLACE.fetch_add(1, Ordering::Relaxed);
    }
    if planned {
        PLANNED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the name and the number of successful runs of each operator of the library.
pub fn runs() -> impl Iterator<Item = (&'static str, u64)> {
    DEFINITIONS.iter().map(|definition| {
        let runs = definition.runs.load(Ordering::Relaxed);
        (definition.text(), runs)
    })
}

/// Returns the number of successful runs of all operators.
#[unsafe(no_mangle)]
pub extern "C" fn ndscatter_onnxruntime_runs() -> u64 {
    runs().map(|(_, runs)| runs).sum()
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
