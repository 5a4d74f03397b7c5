//! Defines [`ScatterPlan`], a kept plan of a scatter, and the methods that run it.
//!
//! This module contains the interface of a kept plan. Other modules run the calls.

use super::explain::{Explained, Explanation};
use super::operands::{Operands, operation};
use super::pipeline::{check_reduction, execute};
use super::plan_builder::Planning;
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::Direction;
use crate::execution::Execution;
use crate::operand::{AnyTensor, Elements, Input, Layout, Output, Source, Start, Target};
use crate::plan::{Form, IndexPlan, WindowOffsets};
use crate::reduction::{Accumulate, Meaning, NoneGradient, Reduction};

/// A scatter whose indices have been checked and converted to destination numbers.
///
/// [`Scatter::plan`](crate::Scatter::plan) makes a plan, and [`run`](Self::run) returns a call with
/// the plan. A plan has the layout of the output, the destination of every tuple, and options of
/// its operator: the reduction, `include_self`, `accumulate` and `none_gradient`. A plan can run
/// many times and from many threads, with any `data`, `updates` and element type. A call with a
/// plan does not read the indices again.
///
/// # Examples
///
/// ```
/// use ndscatter::{Layout, Reduction, Scatter, TensorView, TensorViewMut};
///
/// // The indices are read and checked once ...
/// let plan = Scatter::nd().reduction(Reduction::Add).plan(
///     Layout::contiguous(&[4]),
///     TensorView::contiguous(&[3_i64, 1, 3], &[3, 1])?,
/// )?;
/// // ... and used with any data, updates and element type.
/// let mut counts = [0_u32; 4];
/// let ones = TensorView::contiguous(&[1_u32; 3], &[3])?;
/// plan.run().in_place(TensorViewMut::contiguous(&mut counts, &[4])?, ones)?;
/// assert_eq!(counts, [0, 1, 0, 2]);
///
/// // A call may use another reduction than the operator.
/// let data = TensorView::contiguous(&[9.0; 4], &[4])?;
/// let updates = TensorView::contiguous(&[5.0, 4.0, 3.0], &[3])?;
/// let least = plan.run().reduction(Reduction::Min).allocate(data, updates)?;
/// assert_eq!(least, [9.0, 4.0, 9.0, 3.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct ScatterPlan {
    pub(crate) plan: IndexPlan,
    /// Options of the operator that made the plan. A call has these options unless the caller sets
    /// other options for the call.
    pub(crate) meaning: Meaning,
}

impl ScatterPlan {
    /// Returns the shape of the output that the plan was made for.
    pub fn shape(&self) -> &[usize] {
        self.plan.shape()
    }

    /// Returns the strides, in elements, of the output that the plan was made for.
    pub fn strides(&self) -> &[isize] {
        self.plan.strides()
    }

    /// Returns the number of applied tuples, that is, tuples that are not skipped.
    ///
    /// If one index of an element scatter stands for a whole row of elements, this row counts as
    /// one tuple. In a plan of a [`cache`](crate::Scatter::cache), one position of a sequence
    /// counts as one tuple, although the position has a row for each head.
    pub fn tuples(&self) -> usize {
        self.plan.applied()
    }

    /// Returns the number of tuples that the rule for bounds has skipped.
    /// [`tuples`](Self::tuples) documents what counts as one tuple.
    pub fn skipped(&self) -> usize {
        self.plan.skipped()
    }

    /// Returns the shape that `updates` must have. If this shape is empty (rank 0), `updates` may
    /// be a tensor of one element with any rank.
    pub fn updates_shape(&self) -> &[usize] {
        self.plan.updates_shape()
    }

    /// Checks whether any two applied tuples have the same destination.
    ///
    /// The first call of this function usually searches for duplicates, and the plan keeps the
    /// result. No search is needed if each destination number is known to be greater than the
    /// number before it.
    ///
    /// # Errors
    ///
    /// [`ScatterError::OutOfMemory`] if there is no memory for the search.
    pub fn has_duplicates(&self) -> Result<bool, ScatterError> {
        Ok(self.plan.first_duplicate()?.is_some())
    }

    #[cfg(test)]
    pub(crate) fn indices(&self) -> &IndexPlan {
        &self.plan
    }

    /// Returns a call with this plan. The call has the options of the operator, and runs on rayon
    /// unless [`execution`](ScatterRun::execution) sets another pool.
    #[inline]
    pub fn run(&self) -> ScatterRun<'_> {
        ScatterRun {
            plan: &self.plan,
            meaning: self.meaning,
            overwritten: None,
            execution: Execution::new(),
        }
    }
}

/// A call with a [`ScatterPlan`], made by [`ScatterPlan::run`]. Some methods set the options of the
/// call. The other methods run the call, or report how it will run.
///
/// The methods that run the call return an error for tensors whose shapes do not fit the plan,
/// before they write anything.
///
/// # Examples
///
/// ```
/// use ndscatter::{Layout, Reduction, Scatter, TensorView, TensorViewMut};
///
/// let plan = Scatter::nd().reduction(Reduction::Add).plan(
///     Layout::contiguous(&[3]),
///     TensorView::contiguous(&[2_i64, 2], &[2, 1])?,
/// )?;
/// let ones = TensorView::contiguous(&[1, 1], &[2])?;
/// let mut data = [5, 5, 5];
/// // With the options of the operator ...
/// plan.run().in_place(TensorViewMut::contiguous(&mut data, &[3])?, ones)?;
/// assert_eq!(data, [5, 5, 7]);
/// // ... and without the existing value.
/// let fresh = plan.run().include_self(false);
/// fresh.in_place(TensorViewMut::contiguous(&mut data, &[3])?, ones)?;
/// assert_eq!(data, [5, 5, 2]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ScatterRun<'p> {
    pub(crate) plan: &'p IndexPlan,
    pub(crate) meaning: Meaning,
    pub(crate) overwritten: Option<&'p Overwritten>,
    pub(crate) execution: Execution<'p>,
}

/// Elements of data that a forward pass in place overwrites. They are saved before the pass, for
/// the gradient of the pass.
#[derive(Debug)]
pub(crate) struct Overwritten {
    /// Saved elements: the windows that the pass overwrites, or all elements of data.
    pub(crate) tensor: AnyTensor,
    /// Offsets of the saved windows in `tensor`. There is one window for each destination with
    /// tuples, in ascending order of destinations. `None` if `tensor` has all elements of data.
    pub(crate) windows: Option<WindowOffsets>,
}

impl<'p> ScatterRun<'p> {
    /// Sets the reduction of the call. The other options keep their values.
    ///
    /// A plan of a [`cache`](crate::Scatter::cache) only moves elements. If a call with such a plan
    /// has a reduction, the call fails with [`ScatterError::UnsupportedOption`].
    #[must_use]
    #[inline]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.meaning.reducing.reduction = reduction;
        self
    }

    /// Sets whether the existing value of a destination takes part in the reduction
    /// ([`Scatter::include_self`](crate::Scatter::include_self)).
    #[must_use]
    #[inline]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.meaning.reducing.include_self = include_self;
        self
    }

    /// Sets the type in which a reduction of 16-bit floats computes the value of a destination
    /// ([`Scatter::accumulate`](crate::Scatter::accumulate)).
    #[must_use]
    #[inline]
    pub fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.meaning.reducing.accumulate = accumulate;
        self
    }

    /// Sets which updates of a destination have a gradient if updates replace the existing value
    /// ([`Scatter::none_gradient`](crate::Scatter::none_gradient)).
    #[must_use]
    #[inline]
    pub fn none_gradient(mut self, none_gradient: NoneGradient) -> Self {
        self.meaning.none_gradient = none_gradient;
        self
    }

    /// Sets how the call runs: the pool, the number of workers, and the other options of
    /// [`Execution`].
    #[must_use]
    #[inline]
    pub fn execution<'q>(self, execution: Execution<'q>) -> ScatterRun<'q>
    where
        'p: 'q,
    {
        ScatterRun { execution, ..self }
    }

    /// Returns a new row-major tensor: a copy of `data` with the updates applied.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::DataShape`], [`ScatterError::UpdatesShape`] and
    ///   [`ScatterError::DTypeMismatch`] if tensors do not fit the plan or each other.
    /// - [`ScatterError::UnsupportedReduction`], [`ScatterError::ReductionOfClones`] and
    ///   [`ScatterError::UnsupportedOption`] if the elements or the plan do not support the
    ///   reduction.
    /// - [`ScatterError::PlanMismatch`] if the plan was made for an output that is not contiguous.
    /// - [`ScatterError::OutOfMemory`] and [`ScatterError::PoolFailed`].
    pub fn allocate<V: Input>(&self, data: V, updates: V) -> Result<V::Owned, ScatterError> {
        let elements = data.source().elements();
        operation(elements, self.meaning.reducing, &self.execution)?;
        self.plan.check_updates(updates.source().shape())?;
        V::allocate(
            data.source().shape(),
            Start::CopyOf(&data),
            |output, data| self.write(&output, data.as_ref(), &updates.source()),
        )
    }

    /// Writes a copy of `data` with the updates applied into `output`. The previous contents of
    /// `output` are not read, unless the call is in place.
    ///
    /// The call is in place if `output` is an [`AnyViewMut`](crate::AnyViewMut) at the address of
    /// `data`, with the shape and strides of `data`.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), and:
    ///
    /// - [`ScatterError::PlanMismatch`] if `output` does not have the shape and the strides that
    ///   the plan was made for.
    /// - [`ScatterError::InputOverlap`] if `output` shares memory with an input, and
    ///   [`ScatterError::OverlapUndecided`] if the crate cannot decide this.
    ///
    /// After an error other than [`ScatterError::PoolFailed`], `output` is unchanged.
    #[inline]
    pub fn write_into<O: Output>(
        &self,
        data: O::Input,
        updates: O::Input,
        output: O,
    ) -> Result<(), ScatterError> {
        let (data, updates) = (data.source(), updates.source());
        output.with_target(|output| self.write(output, Some(&data), &updates))
    }

    /// Applies the updates to `data` itself.
    ///
    /// # Errors
    ///
    /// As [`write_into`](Self::write_into).
    #[inline]
    pub fn in_place<O: Output>(&self, data: O, updates: O::Input) -> Result<(), ScatterError> {
        data.with_target(|data| self.write(data, None, &updates.source()))
    }

    /// Checks whether a call supports elements of type `dtype`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedReduction`] and [`ScatterError::UnsupportedOption`], like the
    /// methods that run the call.
    pub fn check_dtype(&self, dtype: DType) -> Result<(), ScatterError> {
        let (elements, reducing) = (Elements::Plain(dtype), self.meaning.reducing);
        let operation = operation(elements, reducing, &self.execution)?;
        check_reduction(self.plan, operation.group.is_some())
    }

    /// Reports how a call with contiguous updates and data will run. The report is for people and
    /// for tests.
    ///
    /// The report assumes that no other call uses the pool while the call runs. For a call out of
    /// place, the report assumes that the output is not new memory. The first call inspects the
    /// destination numbers, for example sorts them. The report omits the time of this inspection,
    /// because the plan keeps the result for later calls.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::UnsupportedReduction`] and [`ScatterError::UnsupportedOption`], like the
    ///   methods that run the call.
    /// - [`ScatterError::ShapeOverflow`] if a tensor of the call would be too large for memory with
    ///   elements of type `dtype`.
    /// - [`ScatterError::OutOfMemory`].
    pub fn explain(&self, dtype: DType, in_place: bool) -> Result<Explanation, ScatterError> {
        self.explanation(dtype, in_place, None)
    }

    /// Reports how a call will run. For a plan that serves only one call, `indices` has the form,
    /// the layout of the indices and the options that the plan was made from. For a kept plan,
    /// `indices` is `None`.
    pub(crate) fn explanation(
        &self,
        dtype: DType,
        in_place: bool,
        indices: Option<(&Form, &Layout<'_>, Planning)>,
    ) -> Result<Explanation, ScatterError> {
        let explained = Explained {
            direction: Direction::Scatter,
            plan: self.plan,
            indices,
            dtype,
            reducing: self.meaning.reducing,
            execution: &self.execution,
            copies: !in_place,
            is_new: false,
        };
        explained.explain()
    }

    /// Runs the call. If `data` is `None`, the call is in place.
    fn write(
        &self,
        output: &Target<'_>,
        data: Option<&Source<'_>>,
        updates: &Source<'_>,
    ) -> Result<(), ScatterError> {
        let elements = data.map_or(output.elements(), |data| data.elements());
        let operation = operation(elements, self.meaning.reducing, &self.execution)?;
        Operands::lend(&operation, output, data, None, updates, |operands| {
            execute(self.plan, operands, &self.execution)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::work::{self, Work};
    use crate::{
        CallingThread, Execution, Layout, Reduction, Scatter, Schedule, TensorView, TensorViewMut,
    };

    /// Makes a plan and runs it three times. Returns the recorded kinds of work of each step: of
    /// making the plan, and of each run. The plan has 600 tuples, for an output of 300 slices of
    /// `window` elements.
    fn passes(schedule: Schedule, reduction: Reduction, window: usize) -> [Vec<Work>; 4] {
        let (shape, updates_shape) = ([300, window], [600, window]);
        let indices: Vec<i64> = (0..600).map(|tuple| tuple * 7919 % 251).collect();
        let updates = vec![1.0_f32; 600 * window];
        let mut data = vec![0.0_f32; 300 * window];
        work::take();
        let indices = TensorView::contiguous(&indices, &[600, 1]).expect("indices");
        let plan = (Scatter::nd().plan(Layout::contiguous(&shape), indices)).expect("a plan");
        let made = work::take();
        // The calling thread does all work, because each thread records only the work that it did
        // itself.
        let execution = Execution::new()
            .pool(&CallingThread)
            .force_schedule(schedule);
        let scatter = plan.run().reduction(reduction).execution(execution);
        let mut run = || {
            let data = TensorViewMut::contiguous(&mut data, &shape).expect("data");
            let updates = TensorView::contiguous(&updates, &updates_shape).expect("updates");
            scatter.in_place(data, updates).expect("a run");
            work::take()
        };
        let runs = [run(), run(), run()];
        let [first, second, third] = runs;
        [made, first, second, third]
    }

    #[test]
    fn a_plan_is_worked_out_once() {
        let expected = [
            (Schedule::Serial, Reduction::Add, &[][..]),
            (Schedule::ByTuple, Reduction::Add, &[Work::Looking]),
            (Schedule::ByPartition, Reduction::Add, &[Work::Partitioning]),
            (Schedule::Grouped, Reduction::Add, &[Work::Sorting]),
            (Schedule::Grouped, Reduction::Mean, &[Work::Sorting]),
            (Schedule::LastWrite, Reduction::None, &[Work::Sorting]),
            (Schedule::ByDestination, Reduction::Max, &[]),
            (Schedule::ByColumn, Reduction::Max, &[]),
        ];
        for (schedule, reduction, first) in expected {
            for window in [1, 40] {
                let [made, passes @ ..] = passes(schedule, reduction, window);
                assert_eq!(made, [Work::Resolving], "{schedule}: making the plan");
                assert_eq!(passes[0], first, "{schedule}, {reduction}: the first run");
                for again in &passes[1..] {
                    assert_eq!(again[..], [], "{schedule}, {reduction}: another run");
                }
            }
        }
    }

    #[test]
    fn small_moves_that_are_mostly_overwritten_leave_all_but_the_last_out() {
        for (destinations, sorts) in [(1, true), (2000, false)] {
            let indices: Vec<i64> = (0..2000).map(|tuple| tuple % destinations).collect();
            let indices = TensorView::contiguous(&indices, &[2000, 1]).expect("indices");
            let plan = Scatter::nd().plan(Layout::contiguous(&[2000, 4]), indices);
            let plan = plan.expect("a plan");
            let updates: Vec<f32> = (0..8000_u16).map(f32::from).collect();
            let mut data = vec![0.0_f32; 8000];
            work::take();
            for _ in 0..2 {
                let data = TensorViewMut::contiguous(&mut data, &[2000, 4]).expect("data");
                let updates = TensorView::contiguous(&updates, &[2000, 4]).expect("updates");
                plan.run().in_place(data, updates).expect("a run");
            }
            let done = work::take();
            assert_eq!(
                done.contains(&Work::Sorting),
                sorts,
                "{destinations}: {done:?}"
            );
            let row = 4 * (2000 - usize::try_from(destinations).expect("few"));
            assert_eq!(data[..4], updates[row..row + 4], "{destinations}: the last");
        }
    }

    #[test]
    fn so_do_repetitions_of_few() {
        let indices = TensorView::contiguous(&[7_i64; 240], &[240]).expect("indices");
        let plan = Scatter::along(1).plan(Layout::contiguous(&[20, 300, 1]), indices);
        let plan = plan.expect("a plan");
        let updates: Vec<f32> = (0..4800_u16).map(f32::from).collect();
        let mut data = vec![0.0_f32; 6000];
        work::take();
        let target = TensorViewMut::contiguous(&mut data, &[20, 300, 1]).expect("data");
        let source = TensorView::contiguous(&updates, &[20, 240, 1]).expect("updates");
        plan.run().in_place(target, source).expect("a run");
        assert_eq!(work::take(), [Work::Sorting]);
        for (row, updates) in data.chunks_exact(300).zip(updates.chunks_exact(240)) {
            assert_eq!(row[7], updates[239], "the last");
        }
    }
}
