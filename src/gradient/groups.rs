//! Prepares the pass that computes the gradients of a scatter group by group. A group has all
//! tuples of one destination.
//!
//! This module knows which tensors the pass over groups reads and writes, and where the windows of
//! these tensors are stored.

use super::passes::Pass;
use super::placed::{GradientPass, Sharing, TensorAt, TensorsAt};
use super::scatters::{Backward, ByGroups};
use super::tensors::gradient_kernel;
use crate::error::ScatterError;
use crate::exec::{Context, Transfer};
use crate::kernel::{Operation, Shares};
use crate::operand::{Layout, Source, Target};
use crate::plan::Sorted;
use crate::reduction::Reduction;
use crate::run::{Overwritten, Prepared};

impl Backward<'_> {
    /// Returns the address and the window offsets of each tensor that the pass over groups reads or
    /// writes (a group has all tuples of one destination). `None` stands for a tensor that the pass
    /// does not access, for example a gradient that another pass writes.
    pub(super) fn locate(
        &self,
        by_groups: ByGroups,
        grad_output: &Source<'_>,
        sorted: &Sorted,
    ) -> Result<TensorsAt, ScatterError> {
        let (tensors, reducing) = (self.tensors, self.forward.meaning.reducing);
        let depends = reducing.reduction.depends_on_values();
        let read = |source: &Source<'_>| source.as_ptr().cast_mut();
        let written = |target: &Target<'_>| target.as_mut_ptr().cast();
        let data = match (self.forward.overwritten, tensors.data) {
            _ if !depends || !reducing.include_self => None,
            (Some(saved), _) => Some(self.locate_saved(saved)?),
            (None, Some(data)) => Some(self.numbered(read(data), data.layout())?),
            (None, None) => None,
        };
        let updates = tensors.updates.filter(|_| depends);
        let updates = updates.map(|updates| self.listed(read(updates), updates.layout(), sorted));
        let grad_data = tensors.grad_data.filter(|_| by_groups.data);
        let grad_data = grad_data.map(|data| self.numbered(written(data), data.layout()));
        let grad_updates = tensors.grad_updates.filter(|_| by_groups.updates);
        let grad_updates =
            grad_updates.map(|updates| self.listed(written(updates), updates.layout(), sorted));
        Ok(TensorsAt {
            grad_output: self.numbered(read(grad_output), grad_output.layout())?,
            data,
            updates: updates.transpose()?,
            grad_data: grad_data.transpose()?,
            grad_updates: grad_updates.transpose()?,
        })
    }

    /// Returns the kernel that computes the gradients of groups (all tuples of one destination),
    /// and the parameters of the kernel.
    pub(super) fn sharing(&self) -> Result<Sharing, ScatterError> {
        let (reduction, overwritten) = (self.reduction(), self.forward.overwritten);
        let (dtype, set) = (self.factor.dtype, self.forward.execution.instructions());
        Ok(Sharing {
            kernel: gradient_kernel(dtype, reduction, set)?,
            shares: Shares {
                include_self: !self.is_replaced(),
                last_only: self.last_only(),
                divides: reduction == Reduction::Mean,
                smallest: reduction == Reduction::Min,
                factor: self.factor.value,
                factor_of_updates: self.factor_of_updates(),
            },
            size: dtype.size(),
            data_in_order: overwritten.is_some_and(|saved| saved.windows.is_some()),
        })
    }

    /// Returns the address and the window offsets of the data that the forward pass saved: all of
    /// data, or the overwritten windows.
    fn locate_saved(&self, saved: &Overwritten) -> Result<TensorAt, ScatterError> {
        let base = saved.tensor.as_bytes().as_ptr().cast_mut();
        match &saved.windows {
            Some(place) => Ok(TensorAt::numbered(base, place.copied()?)),
            None => self.numbered(base, &Layout::contiguous(saved.tensor.shape())),
        }
    }

    /// Returns the address of a tensor, and the offsets of its windows for all destination numbers.
    /// `base`: address of element `[0, 0, ...]` of the tensor.
    fn numbered(&self, base: *mut u8, layout: &Layout<'_>) -> Result<TensorAt, ScatterError> {
        match self.forward.plan.numbered(&layout.all_strides()?)? {
            Some(place) => Ok(TensorAt::numbered(base, place)),
            None => Err(self.forward.plan.mismatch(layout)),
        }
    }

    /// Returns the address of a tensor, and the offsets of its windows for all tuples. `base`:
    /// address of element `[0, 0, ...]` of the tensor.
    fn listed(
        &self,
        base: *mut u8,
        layout: &Layout<'_>,
        sorted: &Sorted,
    ) -> Result<TensorAt, ScatterError> {
        let place = self.forward.plan.listed(&layout.all_strides()?)?;
        TensorAt::listed(base, place, self.forward.plan, sorted)
    }

    /// Makes a transfer that runs `pass`, the pass over groups (a group has all tuples of one
    /// destination).
    pub(super) fn over_groups<'p>(
        &'p self,
        pass: &'p GradientPass<'p>,
    ) -> Result<Pass<'p>, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.forward.execution.instructions());
        let operation = Operation::gradient_groups(dtype, set);
        let operation = operation.ok_or(ScatterError::NoGradient { dtype })?;
        let context = Context::new(self.is_kept, false);
        let transfer =
            Transfer::by_groups(self.forward.plan, operation, pass, pass.address(), context)?;
        Ok(Pass::Transfer(Prepared {
            transfer,
            one_run: None,
        }))
    }
}
