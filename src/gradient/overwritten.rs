//! What a forward pass in place has written over, for its gradient.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

use super::passes::{Pass, copy_all};
use super::placed::TensorAt;
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::{Access, Buffers, Context, Direction, Transfer};
use crate::execution::Execution;
use crate::operand::{AnyTensor, Elements, Input, Layout, Target};
use crate::plan::IndexPlan;
use crate::reduction::Reducing;
use crate::run::{Overwritten, Prepared, operation};

impl Overwritten {
    /// The windows of destinations that have tuples, of data that lies as the plan's
    /// output, before anything is written.
    pub(super) fn windows(
        plan: &IndexPlan,
        data: &Target<'_>,
        dtype: DType,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        plan.check_output(data.layout())?;
        let windows_of = plan.of_destinations()?;
        let strides = Layout::contiguous(windows_of.updates_shape()).all_strides()?;
        let geometry = windows_of.geometry(&windows_of.own_binding(), &strides)?;
        let place = windows_of.listed(&strides)?;
        let operation = operation(Elements::Plain(dtype), Reducing::default(), execution)?;
        let tensor = AnyTensor::filled(windows_of.updates_shape(), dtype, |target| {
            let access = Access {
                operation,
                buffers: Buffers {
                    output: target.as_mut_ptr(),
                    source: data.as_mut_ptr().cast_const().cast(),
                    data: None,
                },
                context: Context::new(false, target.is_new()),
            };
            // SAFETY: data has the layout that the plan is bound to, as has just been
            // checked. It holds values, as it is to be written in place. The target has the
            // shape of the plan's updates.
            let transfer =
                unsafe { Transfer::new(Direction::Gather, &windows_of, access, geometry, None) };
            Pass::Transfer(Prepared::from(transfer)).run(execution)
        })?;
        Ok(Self {
            tensor,
            windows: Some(place),
        })
    }

    /// All of data, before anything is written.
    pub(super) fn all(
        data: &Target<'_>,
        dtype: DType,
        execution: &Execution<'_>,
    ) -> Result<Self, ScatterError> {
        let operation = operation(Elements::Plain(dtype), Reducing::default(), execution)?;
        let tensor = AnyTensor::filled(data.shape(), dtype, |target| {
            // SAFETY: the target is new memory of the shape and type of data.
            data.read(|data| unsafe { copy_all(operation, &target, Some(data)) })?
                .run(execution)
        })?;
        Ok(Self {
            tensor,
            windows: None,
        })
    }

    /// As a tensor of a pass by groups, which places what lies as all of data by `whole`.
    pub(super) fn placed(
        &self,
        whole: impl FnOnce(*mut u8, &Layout<'_>) -> Result<TensorAt, ScatterError>,
    ) -> Result<TensorAt, ScatterError> {
        let view = self.tensor.view();
        let source = view.source();
        match &self.windows {
            Some(place) => Ok(TensorAt::numbered(
                source.as_ptr().cast_mut(),
                place.copied()?,
            )),
            None => whole(source.as_ptr().cast_mut(), source.layout()),
        }
    }

    /// Whether it has a window for each destination that has tuples, in their order.
    pub(super) fn is_in_order(&self) -> bool {
        self.windows.is_some()
    }

    pub(super) fn elements(&self) -> Elements {
        Elements::Plain(self.tensor.dtype())
    }

    /// Bytes that it has taken.
    pub(crate) fn bytes(&self) -> usize {
        self.tensor.as_bytes().len()
    }
}
