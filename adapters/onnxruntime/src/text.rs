//! Scatters of strings. Each string is an object of the host.
//!
//! With the reduction none, the last update of an element replaces the existing string. The
//! reduction add concatenates all updates of an element, in their order. The existing string comes
//! before the updates, unless the attribute `include_self` is 0.
//!
//! To find the destination of each update, this module scatters or gathers integers instead of
//! strings. Each integer is the position of a string in its tensor. The crate therefore checks the
//! indices as for other element types.

use ndscatter::{Reduction, ScatterError, TensorView};
use ort_sys::OrtValue;

use crate::api::Api;
use crate::attributes::Attributes;
use crate::failure::Failure;
use crate::tensor::Tensor;

/// The input tensors of a run.
#[derive(Debug)]
pub(crate) struct Strings<'a> {
    pub(crate) data: &'a Tensor,
    pub(crate) updates: &'a Tensor,
    pub(crate) indices: ndscatter::AnyView<'a>,
}

impl Strings<'_> {
    /// Checks the indices, and computes from which strings each string of the output is copied or
    /// concatenated. Writes nothing. The caller calls this function before [`Self::write`].
    pub(crate) fn plan(&self, attributes: &Attributes) -> Result<Work, Failure> {
        let joins = match attributes.reduction {
            Reduction::None => false,
            Reduction::Add => true,
            other => {
                return Err(Failure::unsupported(format_args!(
                    "the reduction {other} of strings is not supported; use none or add"
                )));
            }
        };
        let (data, updates) = (numbers(0, self.data.len())?, self.data.len());
        let updates = numbers(updates, self.updates.len())?;
        let scatter = attributes.scatter(attributes.operator)?;
        let last = scatter.reduction(Reduction::None).allocate(
            TensorView::contiguous(&data, &self.data.shape)?,
            self.indices,
            TensorView::contiguous(&updates, &self.updates.shape)?,
        )?;
        if !joins {
            return Ok(Work::Moves(last));
        }
        // Gathers the positions of the elements of data, counted from 1. The result is one position
        // per update: the position of its destination, or 0 if the update is skipped.
        let destinations = numbers(1, self.data.len())?;
        let destinations = attributes.gather()?.allocate(
            TensorView::contiguous(&destinations, &self.data.shape)?,
            self.indices,
        )?;
        Ok(Work::Joins {
            destinations,
            with_self: attributes.include_self,
        })
    }

    /// Writes the strings of `output`. `in_place`: whether `output` has the memory of the data. If
    /// `in_place` is true, this function writes only the strings that have updates. Otherwise this
    /// function writes all strings.
    ///
    /// # Safety
    ///
    /// `data`, `updates` and `output` are tensors of strings of the host. `output` is the output of
    /// the run and has the shape of the data. `work` was computed by [`Self::plan`].
    pub(crate) unsafe fn write(
        &self,
        api: Api,
        work: &Work,
        output: *mut OrtValue,
        in_place: bool,
    ) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let mut copy = |from, position, to| {
            bytes.clear();
            // SAFETY: the tensors are valid (contract of this function). The index `position` is
            // less than the number of strings of `from`, because `plan` computed it or it is a
            // position in the data. The index `to` is a position in the data, and `output` has the
            // shape of the data.
            unsafe {
                api.append_string(from, position, &mut bytes)?;
                api.set_string(output, to, &bytes)
            }
        };
        let len = self.data.len();
        match work {
            Work::Moves(last) => {
                for (to, &number) in last.iter().enumerate() {
                    if number >= len {
                        copy(self.updates.value, number - len, to)?;
                    } else if !in_place {
                        copy(self.data.value, number, to)?;
                    }
                }
            }
            Work::Joins {
                destinations,
                with_self,
            } => {
                // Groups the updates by destination. The updates of one destination keep their order.
                let mut order = numbers(0, destinations.len())?;
                order.sort_unstable_by_key(|&update| (destinations[update], update));
                let mut groups = order
                    .chunk_by(|&a, &b| destinations[a] == destinations[b])
                    .peekable();
                while groups
                    .next_if(|group| destinations[group[0]] == 0)
                    .is_some()
                {}
                for to in 0..len {
                    let Some(group) = groups.next_if(|group| destinations[group[0]] == to + 1)
                    else {
                        if !in_place {
                            copy(self.data.value, to, to)?;
                        }
                        continue;
                    };
                    let mut joined = Vec::new();
                    // SAFETY: the tensors are valid (contract of this function). The index `to` is
                    // less than the number of strings of the data, and `output` has the shape of
                    // the data. The index `update` is less than the number of updates, because
                    // `plan` computed one destination per update.
                    unsafe {
                        if *with_self {
                            api.append_string(self.data.value, to, &mut joined)?;
                        }
                        for &update in group {
                            api.append_string(self.updates.value, update, &mut joined)?;
                        }
                        api.set_string(output, to, &joined)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The strings of the data and the updates from which a scatter makes the strings of its output.
#[derive(Debug)]
pub(crate) enum Work {
    /// Source strings of a scatter with the reduction none: for each string of the output, the
    /// position of the string that is copied. A position below the number of elements of data is a
    /// position in data. Positions in updates follow: the first update has the number of elements
    /// of data as its position.
    Moves(ndscatter::Tensor<usize>),
    /// Destinations of the strings that a scatter with the reduction add concatenates. For each
    /// update, `destinations` has the position of the update's destination in data, counted from 1,
    /// or 0 if the update is skipped. The field `with_self` states whether each concatenated string
    /// begins with the existing string.
    Joins {
        destinations: ndscatter::Tensor<usize>,
        with_self: bool,
    },
}

/// Returns a vector of the integers `first..first + len`.
fn numbers(first: usize, len: usize) -> Result<Vec<usize>, ScatterError> {
    let mut numbers = Vec::new();
    let bytes = len.saturating_mul(size_of::<usize>());
    numbers
        .try_reserve_exact(len)
        .map_err(|_| ScatterError::OutOfMemory { bytes })?;
    numbers.extend(first..first + len);
    Ok(numbers)
}
