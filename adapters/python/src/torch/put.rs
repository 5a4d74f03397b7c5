//! PyTorch's `index_put` and `put_`, which write slices or single elements of `values`.
//!
//! This module knows which calls were measured to be faster on the crate's kernels than on
//! PyTorch's.

use ndscatter::{DType, Execution, Reduction, Scatter};

use super::call::{Arguments, Call, Function, refused};
use super::connection::{NoResult, run};
use super::indices::IndexedTable;
use super::tensor::Tensor;

fn scatter(accumulate: bool) -> Scatter<'static> {
    Scatter::along(0).reduction(match accumulate {
        true => Reduction::Add,
        false => Reduction::None,
    })
}

/// A call of `index_put`.
pub(super) struct Put {
    indexed: IndexedTable,
    values: Tensor,
    accumulate: bool,
}

/// Limit of the number of elements per slice for calls with spread indices. If the
/// slices have fewer elements, PyTorch's own kernel runs the call.
///
/// The table shows the crate's time divided by PyTorch's time for calls with spread indices, on a
/// Zen 5 with two threads. Below 1, the crate is faster.
///
/// | slice | calls that replace | calls that add |
/// |---|---|---|
/// | 1 element | 1.1 to 5.9 | 0.3 to 5.3 |
/// | 4 elements | 0.7 to 0.8 | 0.2 to 0.3 |
/// | longer | less | less |
const LONG_SLICE: usize = 4;

impl<'a> Call<'a> for Put {
    fn of(_: Function, arguments: &'a Arguments<'a>) -> Option<Self> {
        let mut values = arguments.updates.clone()?;
        if !values.has_type_of(&arguments.output) {
            return None;
        }
        let indexed = IndexedTable::of(&arguments.output, &arguments.indices)?;
        values.expand(&indexed.slices_shape)?;
        values.permute(&indexed.order);
        Some(Self {
            indexed,
            values,
            accumulate: arguments.accumulate,
        })
    }

    fn gains(&self) -> bool {
        self.indexed.slice() >= LONG_SLICE || !self.indexed.is_spread()
    }

    fn run(&self) -> Result<bool, NoResult> {
        self.indexed.run(|indices, pool| {
            let scatter = scatter(self.accumulate).execution(Execution::new().pool(pool));
            let output = self.indexed.table.view_mut()?;
            scatter.in_place(output, indices, self.values.view()?)
        })
    }
}

/// A call of `put_` with `accumulate`, which addresses the elements of the output in row-major order.
pub(super) struct FlatPut<'a> {
    output: Tensor,
    index: &'a Tensor,
    values: Tensor,
}

impl<'a> Call<'a> for FlatPut<'a> {
    fn of(_: Function, arguments: &'a Arguments<'a>) -> Option<Self> {
        let (index, output) = (arguments.index()?, &arguments.output);
        let values = arguments.updates.as_ref()?;
        // Without `accumulate`, PyTorch's loop writes each element at once, and is faster.
        let fits = arguments.accumulate
            && index.dtype == DType::I64
            && output.has_common_type()
            && values.has_type_of(output)
            && values.elements() == index.elements();
        let values = values.flat().filter(|_| fits)?;
        Some(Self {
            output: output.flat()?,
            index,
            values: values.split(&index.shape),
        })
    }

    fn gains(&self) -> bool {
        self.index.elements() >= Function::FlatPut.limits().many
    }

    fn run(&self) -> Result<bool, NoResult> {
        refused(run(|pool| {
            let scatter = scatter(true).execution(Execution::new().pool(pool));
            let (index, values) = (self.index.view()?, self.values.view()?);
            scatter.in_place(self.output.view_mut()?, index, values)
        }))
    }
}
