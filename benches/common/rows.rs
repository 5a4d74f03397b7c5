//! Converts a workload to a form that every runtime accepts: a matrix, a list of row numbers, and
//! a matrix of updates. The conversion is not timed, so it costs the runtimes nothing.

use ndscatter::Reduction;

use super::inputs::{Inputs, SETS};

pub(crate) struct Rows<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) updates: &'a [f32],
    /// Destination row in `data` of every row of `updates`, for each index set.
    pub(crate) numbers: [Vec<i64>; SETS],
    /// Elements of a row.
    pub(crate) window: usize,
    pub(crate) reduction: Reduction,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(inputs: &'a Inputs) -> Self {
        Self {
            data: &inputs.data,
            updates: &inputs.updates,
            numbers: std::array::from_fn(|set| numbers(inputs, set)),
            window: inputs.workload.window(),
            reduction: inputs.workload.reduction,
        }
    }

    /// Returns the shape of the data.
    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.data.len() / self.window, self.window]
    }

    /// Returns the shape of the updates.
    pub(crate) fn updates_shape(&self) -> [usize; 2] {
        [self.updates.len() / self.window, self.window]
    }

    /// Whether a row is one element, so that element scatters apply.
    pub(crate) fn are_elements(&self) -> bool {
        self.window == 1
    }
}

/// Returns the row numbers of the tuples of an index set, for every repetition.
#[allow(
    clippy::cast_possible_wrap,
    reason = "sizes of workloads are far from the limits of i64"
)]
fn numbers(inputs: &Inputs, set: usize) -> Vec<i64> {
    let workload = &inputs.workload;
    let sizes = &workload.data[workload.indexed_axes()];
    let first_repetition = inputs.indices(set).chunks_exact(sizes.len()).map(|tuple| {
        (tuple.iter().zip(sizes)).fold(0, |number, (index, &size)| number * size as i64 + index)
    });
    (0..workload.repetitions())
        .map(|repetition| (repetition * workload.slices()) as i64)
        .flat_map(|start| first_repetition.clone().map(move |number| start + number))
        .collect()
}
