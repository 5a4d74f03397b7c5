//! Offsets of the windows of tuples, for kernels that process tuples sorted by destination.
//!
//! The windows belong to the tensor that has one window per tuple, in the order of the tuples: the
//! updates of a scatter. This module knows plans, sorted tuples and offsets. This module does not
//! know elements.

use crate::error::ScatterError;
use crate::kernel::Sources;
use crate::memory::zeroed;
use crate::plan::{IndexPlan, Sorted};

/// Returns the offset of each tuple's window, in the order of `sorted`. Returns `None` if kernels
/// can compute each offset as a tuple's position times `step`.
///
/// - `step`: stride between the windows of consecutive tuples. `None`: the stride is not constant.
/// - `offset`: returns the offset of the window of the tuple at a given position of the plan's
///   list.
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

/// Returns the positions of the windows of sorted tuples, in the form that kernels use. `offsets`
/// is the result of [`offsets()`] for the same `sorted` and `step`. If `offsets` is `None`, the
/// offset of a window is its tuple's position in the plan's list times `step`.
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
