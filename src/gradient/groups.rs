//! The pass of a gradient that goes group by group.

use super::passes::Pass;
use super::placed::{GradientPass, Sharing, TensorAt, TensorsAt};
use super::scatters::{Backward, ByGroups};
use super::tensors::kernel;
use crate::error::ScatterError;
use crate::exec::{Context, Transfer};
use crate::kernel::{Operation, Shares};
use crate::operand::{Layout, Source};
use crate::plan::Sorted;
use crate::reduction::Reduction;
use crate::run::Overwritten;

impl Backward<'_> {
    /// The tensors of the pass by groups.
    pub(super) fn placed(
        &self,
        by_groups: ByGroups,
        grad_output: &Source<'_>,
        sorted: &Sorted,
    ) -> Result<TensorsAt, ScatterError> {
        let (tensors, reducing) = (self.tensors, self.meaning.reducing);
        let depends = reducing.reduction.depends_on_values();
        let read = |source: &Source<'_>| source.as_ptr().cast_mut();
        let data = match (self.overwritten, tensors.data) {
            _ if !depends || !reducing.include_self => None,
            (Some(saved), _) => Some(saved.placed(|data, layout| self.numbered(data, layout))?),
            (None, Some(data)) => Some(self.numbered(read(data), data.layout())?),
            (None, None) => None,
        };
        let updates = tensors.updates.filter(|_| depends);
        let updates = updates.map(|updates| self.listed(read(updates), updates.layout(), sorted));
        let grad_data = tensors.grad_data.filter(|_| by_groups.data);
        let grad_data =
            grad_data.map(|target| self.numbered(target.as_mut_ptr().cast(), target.layout()));
        let grad_updates = tensors.grad_updates.filter(|_| by_groups.updates);
        let grad_updates = grad_updates
            .map(|target| self.listed(target.as_mut_ptr().cast(), target.layout(), sorted));
        Ok(TensorsAt {
            grad_output: self.numbered(read(grad_output), grad_output.layout())?,
            data,
            updates: updates.transpose()?,
            grad_data: grad_data.transpose()?,
            grad_updates: grad_updates.transpose()?,
        })
    }

    /// What the pass by groups shares out.
    pub(super) fn sharing(&self) -> Result<Sharing, ScatterError> {
        let (reducing, factor) = (self.meaning.reducing, self.factor.value);
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        Ok(Sharing {
            kernel: kernel(dtype, reducing.reduction, set)?,
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
            data_in_order: self.overwritten.is_some_and(Overwritten::is_in_order),
        })
    }

    pub(super) fn numbered(
        &self,
        base: *mut u8,
        layout: &Layout<'_>,
    ) -> Result<TensorAt, ScatterError> {
        match self.plan.numbered(&layout.all_strides()?)? {
            Some(place) => Ok(TensorAt::numbered(base, place)),
            None => Err(self.plan.mismatch(layout)),
        }
    }

    fn listed(
        &self,
        base: *mut u8,
        layout: &Layout<'_>,
        sorted: &Sorted,
    ) -> Result<TensorAt, ScatterError> {
        let place = self.plan.listed(&layout.all_strides()?)?;
        TensorAt::listed(base, place, self.plan, sorted)
    }

    /// The pass by groups.
    pub(super) fn groups<'p>(
        &'p self,
        pass: &'p GradientPass<'p>,
    ) -> Result<Pass<'p>, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        let operation = Operation::gradient_groups(dtype, set);
        let operation = operation.ok_or(ScatterError::NoGradient { dtype })?;
        let context = Context::new(self.is_kept, false);
        let transfer = Transfer::by_groups(self.plan, operation, pass, pass.address(), context)?;
        Ok(Pass::Transfer(transfer.into()))
    }
}
