//! The gradients of groups: each worker some destinations, and all that their updates and
//! the values that were there get.

use super::super::super::gradients::GroupGradients;
use super::super::super::tile::{Part, Tile};
use super::super::super::transfer::Transfer;
use super::{GROUPS, groups_of};
use crate::kernel::GradientGroup;

/// Shares out the gradients of the destinations of a tile.
pub(super) fn share(transfer: &Transfer<'_>, gradients: &GroupGradients<'_>, tile: &Tile) {
    let Part::Sorted(positions) = tile.part() else {
        debug_assert!(false, "a division of another schedule");
        return;
    };
    let window = &transfer.geometry().window;
    let cut = tile.columns().map(|columns| columns.of(window));
    let part = cut.as_ref().unwrap_or(window);
    // Windows are counted as they lie in none of the tensors: from 0 on.
    let first = part.dst.unsigned_abs();
    let columns = first..first + part.elements();
    let destinations = transfer.plan().destinations();
    let mut ordinal = first_ordinal(transfer, gradients, positions.start);
    let mut groups = [GradientGroup::default(); GROUPS];
    let mut len = 0;
    for (number, tuples) in groups_of(gradients.sorted, destinations, positions.clone()) {
        let is_last = tuples.end == positions.end;
        groups[len] = gradients.group(number, ordinal, tuples);
        (len, ordinal) = (len + 1, ordinal + 1);
        if len == GROUPS || is_last {
            for repetition in tile.repetitions() {
                #[expect(unsafe_code, reason = "a tile is its task's own")]
                // SAFETY: the tile has whole groups, and these columns of them.
                unsafe {
                    share_runs(gradients, repetition, columns.clone(), &groups[..len]);
                }
            }
            len = 0;
        }
    }
}

/// How many destinations come before that of the tuple at a position, where the windows of
/// data are those of destinations that have tuples.
fn first_ordinal(
    transfer: &Transfer<'_>,
    gradients: &GroupGradients<'_>,
    position: usize,
) -> usize {
    let destinations = transfer.plan().destinations();
    if !gradients.data_in_order || position >= destinations.len() {
        return 0;
    }
    let Ok(distinct) = transfer.plan().last_writes() else {
        debug_assert!(false, "found when windows were saved");
        return 0;
    };
    distinct.first_from(destinations, gradients.sorted.get(destinations, position).0)
}

/// # Safety
///
/// Who calls may write these columns of the windows of these groups, and of their tuples,
/// in this repetition.
#[expect(unsafe_code, reason = "the one call of a kernel for gradients")]
unsafe fn share_runs(
    gradients: &GroupGradients<'_>,
    repetition: usize,
    columns: std::ops::Range<usize>,
    groups: &[GradientGroup],
) {
    let each = gradients.run();
    let mut position = columns.start;
    while position < columns.end {
        let len = (each - position % each).min(columns.end - position);
        let tensors = gradients.tensors(repetition, position, len);
        // SAFETY: who made the gradients vouches for the tensors, the plan for the
        // destinations and for their tuples; the caller vouches for what is written.
        unsafe { (gradients.kernel)(&tensors, groups, &gradients.shares) };
        position += len;
    }
}
