//! Defines [`GatherPlan`], a kept plan of a gather, and the methods that run it.
//!
//! This module knows the interface of a kept plan. This module does not know how a call runs.

use super::explain::{Explained, Explanation};
use super::operands::{Operands, operation};
use super::pipeline::execute;
use super::plan_builder::Planning;
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::Direction;
use crate::execution::Execution;
use crate::operand::{Elements, Input, Layout, Output, Source, Start, Target};
use crate::plan::{Form, IndexPlan};
use crate::reduction::Reducing;

/// Kept plan of a gather. Its indices have been checked and converted to destination numbers.
///
/// [`Gather::plan`](crate::Gather::plan) makes a `GatherPlan`. A plan can run many times and from
/// many threads, on any data that has the plan's layout, with any element type.
///
/// # Examples
///
/// ```
/// use ndscatter::{Gather, Layout, TensorView};
///
/// let plan = Gather::along(0).plan(
///     Layout::contiguous(&[3]),
///     TensorView::from(&[2_i64, 2, 0]),
/// )?;
/// let letters = plan.run().allocate(TensorView::from(b"abc"))?;
/// assert_eq!(letters[..], *b"cca");
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct GatherPlan {
    pub(crate) plan: IndexPlan,
}

impl GatherPlan {
    /// Returns the shape that the plan requires of the data.
    pub fn shape(&self) -> &[usize] {
        self.plan.shape()
    }

    /// Returns the strides, in elements, that the plan requires of the data.
    pub fn strides(&self) -> &[isize] {
        self.plan.strides()
    }

    /// Returns the shape of the result.
    pub fn output_shape(&self) -> &[usize] {
        self.plan.updates_shape()
    }

    /// Returns the number of tuples that the rule for bounds has skipped. The windows of
    /// these tuples in the result are zeros.
    pub fn skipped(&self) -> usize {
        self.plan.skipped()
    }

    /// Returns the builder of a call with this plan. By default, the call runs on rayon.
    #[inline]
    pub fn run(&self) -> GatherRun<'_> {
        GatherRun {
            plan: self,
            execution: Execution::new(),
        }
    }
}

/// Builder of a call with a [`GatherPlan`], made by [`GatherPlan::run`]. The method
/// [`execution`](Self::execution) sets the execution options of the call. The other methods run the
/// call, or report how it will run.
///
/// # Examples
///
/// ```
/// use ndscatter::{CallingThread, Execution, Gather, Layout, TensorView, TensorViewMut};
///
/// let rows = TensorView::contiguous(&[1_i64, 1, 0], &[3])?;
/// let plan = Gather::along(0).plan(Layout::contiguous(&[2, 2]), rows)?;
/// let run = plan.run().execution(Execution::new().pool(&CallingThread));
/// let data = TensorView::contiguous(&[1, 2, 3, 4], &[2, 2])?;
/// let mut output = [0; 6];
/// run.write_into(data, TensorViewMut::contiguous(&mut output, &[3, 2])?)?;
/// assert_eq!(output, [3, 4, 3, 4, 1, 2]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GatherRun<'p> {
    pub(crate) plan: &'p GatherPlan,
    pub(crate) execution: Execution<'p>,
}

impl<'p> GatherRun<'p> {
    /// Sets the pool, the number of workers and the forced choices of the call.
    #[must_use]
    #[inline]
    pub fn execution<'q>(self, execution: Execution<'q>) -> GatherRun<'q>
    where
        'p: 'q,
    {
        GatherRun { execution, ..self }
    }

    /// Returns the result, row-major.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::PlanMismatch`] if the layout of `data` is not that of the plan.
    /// - [`ScatterError::UnsupportedOption`] if tuples were skipped and elements are cloned:
    ///   cloned elements have no zero.
    /// - [`ScatterError::OutOfMemory`] if there is no memory for the result.
    pub fn allocate<V: Input>(&self, data: V) -> Result<V::Owned, ScatterError> {
        self.plan.plan.check_output(data.source().layout())?;
        V::allocate(self.plan.output_shape(), Start::Like(&data), |output, _| {
            self.write(&data.source(), &output)
        })
    }

    /// Writes the result into `output`. The previous contents of `output` are not read.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), and:
    ///
    /// - [`ScatterError::OutputShape`] if the shape of `output` is not that of the result.
    /// - [`ScatterError::DTypeMismatch`] if `output` and `data` have different element types.
    /// - [`ScatterError::ForeignBool`] if `data` is a view of booleans that was made from bytes or
    ///   raw parts, and `output` is memory of Rust's `bool`. A boolean in such a view may be any
    ///   byte, not only 0 or 1.
    /// - [`ScatterError::InputOverlap`] if `output` shares memory with `data`.
    ///   [`ScatterError::OverlapUndecided`] if it may share memory.
    pub fn write_into<O: Output>(&self, data: O::Input, output: O) -> Result<(), ScatterError> {
        output.with_target(|output| self.write(&data.source(), output))
    }

    /// Reports how a call with a contiguous result will run, for people and for tests.
    ///
    /// `allocates`: whether the result is new memory, as in [`allocate`](Self::allocate). The
    /// report assumes that no other call uses the pool while the reported call runs.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::ShapeOverflow`] if a tensor with elements of `dtype` is too large for
    ///   memory.
    /// - [`ScatterError::OutOfMemory`] if there is no memory for the report.
    pub fn explain(&self, dtype: DType, allocates: bool) -> Result<Explanation, ScatterError> {
        self.explanation(dtype, allocates, None)
    }

    /// Reports how a call will run. For a plan that serves only one call, `indices` has the form,
    /// the layout of the indices, and the options of the plan. For a kept plan, it is `None`.
    pub(crate) fn explanation(
        &self,
        dtype: DType,
        allocates: bool,
        indices: Option<(&Form, &Layout<'_>, Planning)>,
    ) -> Result<Explanation, ScatterError> {
        let explained = Explained {
            direction: Direction::Gather,
            plan: &self.plan.plan,
            indices,
            dtype,
            reducing: Reducing::default(),
            execution: &self.execution,
            copies: false,
            is_new: allocates,
        };
        explained.explain()
    }

    fn write(&self, data: &Source<'_>, output: &Target<'_>) -> Result<(), ScatterError> {
        let operation = operation(output.elements(), Reducing::default(), &self.execution)?;
        Operands::lend_gather(&operation, output, data, None, |operands| {
            // The window of a skipped tuple is filled with zeros, but cloned elements have no zero.
            if self.plan.skipped() > 0 && matches!(data.elements(), Elements::Cloned(_)) {
                return Err(ScatterError::UnsupportedOption { option: "bounds" });
            }
            execute(&self.plan.plan, operands, &self.execution)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::work::{self, Work};
    use crate::{CallingThread, Execution, Gather, Layout, Machine, TensorView, TensorViewMut};

    /// Checks whether a call writes a result of 1 MiB with streaming stores. The machine of the
    /// call uses streaming stores for outputs of at least `stream_bytes` bytes.
    fn streams(stream_bytes: u64) -> bool {
        let machine = format!("stream_bytes = {stream_bytes}");
        let machine: Machine = machine.parse().expect("a machine");
        let execution = Execution::new().pool(&CallingThread).machine(&machine);
        let rows: Vec<i64> = (0..256).map(|tuple| tuple * 7 % 16).collect();
        let plan = Gather::along(0).plan(Layout::contiguous(&[16, 1024]), TensorView::from(&rows));
        let plan = plan.expect("rows in range");
        let data = vec![1.0_f32; 16 * 1024];
        let mut output = vec![0.0_f32; 256 * 1024];
        work::take();
        let data = TensorView::contiguous(&data, &[16, 1024]).expect("data");
        let target = TensorViewMut::contiguous(&mut output, &[256, 1024]).expect("output");
        (plan.run().execution(execution).write_into(data, target)).expect("a run");
        assert_eq!(output, vec![1.0; 256 * 1024], "{stream_bytes}");
        work::take().contains(&Work::Streaming)
    }

    #[test]
    fn planned_gathers_follow_the_machine_of_their_execution() {
        assert!(streams(1 << 20), "a result of as many bytes");
        assert!(!streams((1 << 20) + 1), "a smaller result");
    }
}
