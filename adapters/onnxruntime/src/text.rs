//! Scatters of strings, which are objects of the host.
//!
//! Without a reduction, updates replace existing strings. The reduction add appends the updates of
//! an element to the existing string, in the order of the updates. To find the destination of each
//! update, this module calls the crate with integers, the numbers of the elements, instead of
//! strings. The crate therefore checks the indices as for other element types.

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
    /// Computes the strings to write, before the first write.
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
            return Ok(Work::Moves(last.to_vec()));
        }
        // The gather gives each update the number of its destination, counted from 1. For a skipped
        // update, the gather writes 0.
        let destinations = numbers(1, self.data.len())?;
        let destinations = attributes.gather()?.allocate(
            TensorView::contiguous(&destinations, &self.data.shape)?,
            self.indices,
        )?;
        Ok(Work::Joins {
            destinations: destinations.to_vec(),
            with_self: attributes.include_self,
        })
    }

    /// Writes all strings of `output`. If `in_place` is true, `output` is the tensor of the data,
    /// and this function writes only the strings that updates address.
    ///
    /// # Safety
    ///
    /// The inputs and `output` are tensors of strings of the host. `output` is the output of the
    /// run.
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
            // SAFETY: the tensors are valid (contract of this function). `position` is below the
            // number of elements of `from`: it is computed by `plan`, or is the number of an
            // element of the data. `to` is the number of an element of the data, and `output` has
            // the shape of the data.
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
                // Groups the updates by destination. The stable sort keeps their order in a group.
                let mut order: Vec<usize> = (0..destinations.len()).collect();
                order.sort_by_key(|&update| destinations[update]);
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
                    // SAFETY: the tensors are valid (contract of this function). `to` is below the
                    // number of elements of the data, which `output` has too. `update` is below the
                    // number of updates, because `plan` computed one destination per update.
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

/// The strings that a scatter writes.
#[derive(Debug)]
pub(crate) enum Work {
    /// For each element of the output, the number of the element that it is copied from. These
    /// numbers count the elements of data and then the elements of updates.
    Moves(Vec<usize>),
    /// For each update, the number of its destination, counted from 1. The number is 0 for a
    /// skipped update. `with_self`: whether the existing string is the beginning of the result.
    Joins {
        destinations: Vec<usize>,
        with_self: bool,
    },
}

/// Returns the numbers `first..first + len`.
fn numbers(first: usize, len: usize) -> Result<Vec<usize>, ScatterError> {
    let mut numbers = Vec::new();
    let bytes = len.saturating_mul(size_of::<usize>());
    numbers
        .try_reserve_exact(len)
        .map_err(|_| ScatterError::OutOfMemory { bytes })?;
    numbers.extend(first..first + len);
    Ok(numbers)
}
