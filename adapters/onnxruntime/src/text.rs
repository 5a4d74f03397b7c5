//! Scatters of strings, which are the host's objects: moved, or, for `add`, joined to what
//! is there, in order.
//!
//! Where updates go is what a scatter of their numbers says, so that indices are checked
//! as always.

use ndscatter::{Reduction, ScatterError, TensorView};
use ort_sys::OrtValue;

use crate::api::Api;
use crate::attributes::Attributes;
use crate::failure::Failure;
use crate::tensor::Tensor;

/// The tensors of a run; `indices` as the crate has them.
#[derive(Debug)]
pub(crate) struct Strings<'a> {
    pub(crate) data: &'a Tensor,
    pub(crate) updates: &'a Tensor,
    pub(crate) indices: ndscatter::AnyView<'a>,
}

impl Strings<'_> {
    /// What is to be written, worked out before any of it is.
    pub(crate) fn plan(&self, attributes: &Attributes) -> Result<Work, Failure> {
        let joins = match attributes.reduction {
            Reduction::None => false,
            Reduction::Add => true,
            other => {
                return Err(Failure::unsupported(format_args!(
                    "no reduction {other} of strings; use none or add"
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
        // 0 stands for an update that is skipped.
        let places = numbers(1, self.data.len())?;
        let places = attributes.gather()?.allocate(
            TensorView::contiguous(&places, &self.data.shape)?,
            self.indices,
        )?;
        Ok(Work::Joins {
            places: places.to_vec(),
            with_self: attributes.include_self,
        })
    }

    /// Writes all strings of `output`, or, where it is data itself, those that change.
    ///
    /// # Safety
    ///
    /// All three are tensors of strings of the host's, and `output` is that of the run.
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
            // SAFETY: the caller vouches for the tensors; positions are theirs.
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
            Work::Joins { places, with_self } => {
                // Grouped by destination, each in the order of updates.
                let mut order: Vec<usize> = (0..places.len()).collect();
                order.sort_by_key(|&update| places[update]);
                let mut groups = order.chunk_by(|&a, &b| places[a] == places[b]).peekable();
                while groups.next_if(|group| places[group[0]] == 0).is_some() {}
                for to in 0..len {
                    let Some(group) = groups.next_if(|group| places[group[0]] == to + 1) else {
                        if !in_place {
                            copy(self.data.value, to, to)?;
                        }
                        continue;
                    };
                    let mut joined = Vec::new();
                    // SAFETY: as above.
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

/// What a scatter of strings writes.
#[derive(Debug)]
pub(crate) enum Work {
    /// For each element its number among data and, behind them, updates.
    Moves(Vec<usize>),
    /// For each update its destination, counted from 1; 0 where it is skipped.
    Joins { places: Vec<usize>, with_self: bool },
}

/// The numbers from `first` on.
fn numbers(first: usize, len: usize) -> Result<Vec<usize>, ScatterError> {
    let mut numbers = Vec::new();
    let bytes = len.saturating_mul(size_of::<usize>());
    numbers
        .try_reserve_exact(len)
        .map_err(|_| ScatterError::OutOfMemory { bytes })?;
    numbers.extend(first..first + len);
    Ok(numbers)
}
