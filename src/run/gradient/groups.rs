//! The pass of a gradient that goes group by group.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

use super::super::scattered::Prepared;
use super::saved::Saved;
use super::scatters::{Backward, ByGroups};
use super::tensors::kernel;
use crate::error::ScatterError;
use crate::exec::Transfer;
use crate::exec::gradients::{GroupGradients, Placed};
use crate::kernel::{Operation, Shares};
use crate::operand::{Layout, Source};
use crate::plan::Sorted;
use crate::reduction::Reduction;

impl Backward<'_> {
    /// The tensors of the pass by groups.
    pub(super) fn gradients<'s>(
        &self,
        by_groups: ByGroups,
        grad_output: &Source<'_>,
        sorted: &'s Sorted,
    ) -> Result<GroupGradients<'s>, ScatterError> {
        let (tensors, factor) = (self.tensors, self.factor.value);
        let reducing = self.meaning.reducing;
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        let kernel = kernel(dtype, reducing.reduction, set)?;
        let depends = matches!(
            reducing.reduction,
            Reduction::Mul | Reduction::Min | Reduction::Max
        );
        let data = match (self.saved, tensors.data) {
            _ if !depends || !reducing.include_self => None,
            (Some(saved), _) => Some(saved.placed(self)?),
            (None, Some(data)) => Some(self.numbered(data.as_ptr().cast_mut(), data.layout())?),
            (None, None) => None,
        };
        let updates = tensors.updates.filter(|_| depends);
        let updates = updates
            .map(|updates| self.listed(updates.as_ptr().cast_mut(), updates.layout(), sorted));
        let grad_data = tensors.grad_data.filter(|_| by_groups.data);
        let grad_data =
            grad_data.map(|target| self.numbered(target.as_mut_ptr().cast(), target.layout()));
        let grad_updates = tensors.grad_updates.filter(|_| by_groups.updates);
        let grad_updates = grad_updates
            .map(|target| self.listed(target.as_mut_ptr().cast(), target.layout(), sorted));
        Ok(GroupGradients {
            kernel,
            shares: Shares {
                include_self: reducing.include_self && reducing.reduction != Reduction::None,
                last_only: self.last_only(),
                divides: reducing.reduction == Reduction::Mean,
                smallest: reducing.reduction == Reduction::Min,
                factor,
                factor_of_updates: match reducing.reduction {
                    Reduction::Sub => -factor,
                    _ => factor,
                },
            },
            size: dtype.size(),
            grad_output: self.numbered(grad_output.as_ptr().cast_mut(), grad_output.layout())?,
            data_in_order: self.saved.is_some_and(Saved::is_in_order),
            data,
            updates: updates.transpose()?,
            grad_data: grad_data.transpose()?,
            grad_updates: grad_updates.transpose()?,
            sorted,
        })
    }

    pub(super) fn numbered(
        &self,
        base: *mut u8,
        layout: &Layout<'_>,
    ) -> Result<Placed, ScatterError> {
        match self.plan.numbered(&layout.all_strides()?)? {
            Some(place) => Ok(Placed::numbered(base, place)),
            None => Err(self.plan.mismatch(layout)),
        }
    }

    fn listed(
        &self,
        base: *mut u8,
        layout: &Layout<'_>,
        sorted: &Sorted,
    ) -> Result<Placed, ScatterError> {
        let place = self.plan.listed(&layout.all_strides()?)?;
        Placed::listed(base, place, self.plan, sorted)
    }

    /// The pass by groups.
    pub(super) fn groups<'p>(
        &'p self,
        gradients: &'p GroupGradients<'p>,
    ) -> Result<Prepared<'p>, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        let operation = Operation::gradients_of_groups(dtype, set);
        let operation = operation.ok_or(ScatterError::NoGradient { dtype })?;
        // SAFETY: the tensors have the shapes that the plan asks for and share nothing with
        // those that are written but what is allowed, as has been checked; saved windows
        // are those of this plan, which lives as long.
        let transfer = unsafe { Transfer::gradients_of(self.plan, operation, gradients) }?;
        Ok(Prepared::from(transfer).of_kept_plan(self.is_kept))
    }
}
