//! The gradient of an embedding: PyTorch's `embedding_dense_backward`.
//!
//! For each index, a row of the gradient `updates` is added to the row of the output at this index.
//! Indices out of bounds, including negative indices, are skipped. At the end, row `padding_idx` of
//! the output is set to zero, if the output has this row.

use ndscatter::{AnyView, Bounds, Execution, Reduction, TensorView, profile};

use super::call::{Arguments, Call, Function, Stop};
use super::connection::run;
use super::reason::Reason;
use super::tensor::Tensor;
use crate::value::Value;

/// The arguments of a call. [`run`](Call::run) writes all elements of `output`.
pub(super) struct Embedding<'a> {
    output: &'a Tensor,
    index: &'a Tensor,
    gradient: &'a Tensor,
    padding: i64,
}

impl<'a> Call<'a> for Embedding<'a> {
    fn of(_: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason> {
        let call = Self {
            output: &arguments.output,
            index: arguments.index()?,
            gradient: arguments.updates.as_ref().ok_or(Reason::Shape)?,
            padding: arguments.dim,
        };
        let fits = call.output.has_common_type() && call.gradient.has_type_of(call.output);
        fits.then_some(call).ok_or(Reason::Dtype)
    }

    fn gains(&self) -> bool {
        true
    }

    fn run(&self) -> Result<(), Stop> {
        run(|pool| {
            let rows = profile::torch::index_copy(0)
                .bounds(Bounds::Skip)
                .execution(Execution::new().pool(pool));
            let sums = rows.clone().reduction(Reduction::Add);
            let zeros = |shape| AnyView::splat(&Value::ZERO.0, self.output.dtype, shape);
            sums.write_into(
                zeros(&self.output.shape)?,
                self.index.view()?,
                self.gradient.view()?,
                self.output.view_written(false)?,
            )?;
            // All elements of the row of zeros are one element with stride 0.
            let padding = [self.padding];
            let mut shape = self.output.shape.clone();
            if let Some(rows) = shape.first_mut() {
                *rows = 1;
            }
            let row = zeros(&shape)?;
            rows.in_place(self.output.view_mut()?, TensorView::from(&padding), row)
        })?;
        Ok(())
    }
}
