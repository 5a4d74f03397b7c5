//! Offsets of windows for kernels that process tuples sorted by destination.
//!
//! The windows belong to the tensor that has one window per tuple, in the order of the tuples: the
//! updates of a scatter. The module knows plans, sorted tuples and offsets. It does not know
//! elements.

use crate::error::ScatterError;
use crate::kernel::Sources;
use crate::memory::zeroed;
use crate::plan::{IndexPlan, Sorted};

/// Returns the offsets of the windows of all sorted tuples. Returns `None` if kernels can compute
/// the offsets from a list of tuple positions and `step`. `step` is the constant stride between the
/// windows of consecutive tuples, if there is one. `offset` returns the offset of the window of the
/// tuple at a position of the plan's list.
pub(crate) fn offsets(
    plan: &IndexPlan,
    sorted: &Sorted,
    step: Option<isize>,
    offset: impl Fn(usize) -> isize,
) -> Result<Option<Vec<u64>>, ScatterError> {
    let is_list = sorted.packed().is_some() || matches!(sorted, Sorted::InOrder);
    if is_list && step.is_some() {
        return Ok(None);
    }
    let mut offsets: Vec<u64> = zeroed(plan.tuples())?;
    for (at, window) in offsets.iter_mut().enumerate() {
        let (_, position) = sorted.get(plan.destinations(), at);
        *window = (offset(position) as i64).cast_unsigned();
    }
    Ok(Some(offsets))
}

/// Returns the placement of the windows of sorted tuples for a kernel. The offsets of the windows
/// are `offsets`. If `offsets` is `None`, an offset is a tuple position from `sorted` times `step`.
pub(crate) fn sources<'s>(
    sorted: &'s Sorted,
    step: Option<isize>,
    offsets: Option<&'s [u64]>,
) -> Sources<'s> {
    let step = step.unwrap_or(1);
    let (list, mask, step) = match (offsets, sorted.packed()) {
        (Some(offsets), _) => (Some(offsets), u64::MAX, 1),
        (None, Some((list, mask))) => (Some(list), mask, step),
        (None, None) => (None, 0, step),
    };
    Sources { list, mask, step }
}
