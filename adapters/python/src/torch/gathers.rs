//! PyTorch's `t[i, j]` (`index`), `index_select`, `take` and `gather`.
//!
//! This module knows the rules of these functions, and which calls were measured to be faster on the
//! crate's kernels than on PyTorch's.

use ndscatter::{DType, Execution, Gather, profile};

use super::call::{Arguments, Call, Function, Stop};
use super::connection::run;
use super::indices::IndexedTable;
use super::reason::Reason;
use super::tensor::Tensor;
use crate::array::Dims;

/// A call of `index`: a gather of the slices that a list of index tensors addresses.
pub(super) struct Indexing<'a> {
    indexed: IndexedTable,
    arguments: &'a Arguments<'a>,
}

impl<'a> Call<'a> for Indexing<'a> {
    fn of(_: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason> {
        let indexed = IndexedTable::of(arguments.table(), &arguments.indices)?;
        Ok(Self { indexed, arguments })
    }

    fn gains(&self) -> bool {
        let limits = Function::Index.limits();
        let (count, slice) = (self.indexed.count(), self.indexed.slice());
        let is_large = match slice {
            0 | 1 => count >= limits.many,
            _ => count.saturating_mul(slice) >= limits.rows,
        };
        is_large && !self.indexed.has_short_spread_slices()
    }

    fn result_shape(&self) -> &[usize] {
        &self.indexed.slices_shape
    }

    fn run(&self) -> Result<(), Stop> {
        let mut slices = self.arguments.output.clone();
        if slices.shape != self.indexed.slices_shape {
            return Err(Reason::Shape.into());
        }
        slices.permute(&self.indexed.order);
        self.indexed.run(|indices, pool| {
            let gather = Gather::along(0).execution(Execution::new().pool(pool));
            let output = slices.view_written(self.arguments.is_new)?;
            gather.write_into(self.indexed.table.view()?, indices, output)
        })
    }
}

/// A call of `index_select`, `take` or `gather`.
pub(super) struct Gathering<'a> {
    function: Function,
    gather: Gather<'static>,
    table: Tensor,
    index: &'a Tensor,
    shape: Dims<usize>,
    arguments: &'a Arguments<'a>,
}

impl<'a> Call<'a> for Gathering<'a> {
    fn of(function: Function, arguments: &'a Arguments<'a>) -> Result<Self, Reason> {
        let (index, table) = (arguments.index()?, arguments.table());
        let axis = arguments.axis(table)?;
        let mut shape = index.shape.clone();
        let (gather, table) = match function {
            Function::IndexSelect => {
                if index.shape.len() > 1 || table.shape.is_empty() {
                    return Err(Reason::Shape);
                }
                shape = table.shape.clone();
                shape[axis] = index.elements();
                (
                    profile::torch::index_select(axis.cast_signed()),
                    table.clone(),
                )
            }
            // `take` addresses the elements of the table in row-major order.
            Function::Take => (Gather::along(0), table.flat().ok_or(Reason::Layout)?),
            _ => (profile::torch::gather(axis.cast_signed()), table.clone()),
        };
        let fits = table.has_common_type()
            && (index.dtype == DType::I64 || function == Function::IndexSelect);
        let call = fits.then_some(Self {
            function,
            gather,
            table,
            index,
            shape,
            arguments,
        });
        call.ok_or(Reason::Dtype)
    }

    fn gains(&self) -> bool {
        /// Smallest number of indices for which the crate is faster on a table that exceeds the
        /// cache.
        const MANY: usize = 1 << 18;
        let (count, exceeds) = (self.index.elements(), self.table.exceeds_the_cache());
        match self.function {
            Function::IndexSelect => count >= MANY && (exceeds || self.table.shape.len() < 2),
            Function::Gather if self.shape.len() > 1 => {
                let is_expanded = self.index.strides.last() == Some(&0);
                count >= MANY && exceeds && is_expanded
            }
            _ if exceeds => count >= MANY,
            function => count >= function.limits().many,
        }
    }

    fn result_shape(&self) -> &[usize] {
        &self.shape
    }

    fn run(&self) -> Result<(), Stop> {
        let output = &self.arguments.output;
        run(|pool| {
            let gather = (self.gather.clone()).execution(Execution::new().pool(pool));
            let (table, index) = (self.table.view()?, self.index.view()?);
            gather.write_into(table, index, output.view_written(self.arguments.is_new)?)
        })?;
        Ok(())
    }
}
