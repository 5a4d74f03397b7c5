//! PyTorch's `index_put` and `put_`, which write slices or single elements of `values`.
//!
//! This module knows which calls were measured to be faster on the crate's kernels than on
//! PyTorch's.

use ndscatter::{DType, Execution, Reduction, Scatter};

use super::call::{Arguments, Call, Function, Stop};
use super::connection::run;
use super::indices::IndexedTable;
use super::reason::Reason;
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

/// The total numbers of elements with which PyTorch runs calls that replace short slices of a large
/// table. PyTorch divides such a call among its threads from 32,768 elements. The crate divides only
/// larger calls.
///
/// A measured call replaces 3125 slices of 15 floats in a table of 150 MB. PyTorch's time divided by
/// the time of a Python kernel of the crate is 0.64 on a Zen 4, 0.77 on a Zen 5 and 0.86 on an Emerald
/// Rapids. For a native kernel on the Zen 5, it is 0.91 to 1.23.
const DIVIDED_BY_PYTORCH: std::ops::Range<usize> = 1 << 15..1 << 17;

/// Number of bytes from which a slice is not short: a cache line.
const LINE_BYTES: usize = 64;

impl<'a> Call<'a> for Put {
    fn may_gain(_: Function, arguments: &Arguments<'_>) -> bool {
        let table = &arguments.output;
        // `of` gives the reason if the index tensors cannot be broadcast.
        let Some((slice, count)) = IndexedTable::sizes(table, &arguments.indices) else {
            return true;
        };
        let is_divided = !arguments.accumulate
            && slice.saturating_mul(table.dtype.size()) < LINE_BYTES
            && DIVIDED_BY_PYTORCH.contains(&slice.saturating_mul(count))
            && table.exceeds_the_cache();
        !is_divided
    }

    fn of(_: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason> {
        let mut values = arguments.updates.clone().ok_or(Reason::Shape)?;
        if !values.has_type_of(&arguments.output) {
            return Err(Reason::Dtype);
        }
        let indexed = IndexedTable::of(&arguments.output, &arguments.indices)?;
        let expanded = values.expand(&indexed.slices_shape);
        expanded.ok_or(Reason::Shape)?;
        values.permute(&indexed.order);
        Ok(Self {
            indexed,
            values,
            accumulate: arguments.accumulate,
        })
    }

    fn gains(&self) -> bool {
        !self.indexed.has_short_spread_slices()
    }

    fn run(&self) -> Result<(), Stop> {
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
    fn of(_: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason> {
        let (index, output) = (arguments.index()?, &arguments.output);
        let values = arguments.updates.as_ref().ok_or(Reason::Shape)?;
        // Without `accumulate`, PyTorch's loop writes each element at once, and is faster.
        if !arguments.accumulate {
            return Err(Reason::Argument);
        }
        let types_fit =
            index.dtype == DType::I64 && output.has_common_type() && values.has_type_of(output);
        if !types_fit {
            return Err(Reason::Dtype);
        }
        if values.elements() != index.elements() {
            return Err(Reason::Shape);
        }
        let values = values.flat().ok_or(Reason::Layout)?;
        Ok(Self {
            output: output.flat().ok_or(Reason::Layout)?,
            index,
            values: values.split(&index.shape),
        })
    }

    fn gains(&self) -> bool {
        self.index.elements() >= Function::FlatPut.limits().many
    }

    fn run(&self) -> Result<(), Stop> {
        run(|pool| {
            let scatter = scatter(true).execution(Execution::new().pool(pool));
            let (index, values) = (self.index.view()?, self.values.view()?);
            scatter.in_place(self.output.view_mut()?, index, values)
        })?;
        Ok(())
    }
}
