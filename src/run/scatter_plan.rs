//! A kept plan, and the verbs that run it on data and updates any number of
//! times.

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

/// A scatter that has been validated and worked out up to its values.
///
/// A plan knows the layout of the output, the destination of every tuple, and
/// what the operator that made it means: its reduction, `include_self` and
/// `accumulate`. It can be run many times, from many threads, with other
/// `data`, `updates` and element types; each run skips the work on `indices`.
/// Make one with [`Scatter::plan`](crate::Scatter::plan), run it by
/// [`run`](Self::run).
///
/// # Examples
///
/// ```
/// use ndscatter::{Layout, Reduction, Scatter, TensorView, TensorViewMut};
///
/// // The indices are read, checked and worked out once ...
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
/// // Another reduction is asked for by name.
/// let data = TensorView::contiguous(&[9.0; 4], &[4])?;
/// let updates = TensorView::contiguous(&[5.0, 4.0, 3.0], &[3])?;
/// let least = plan.run().reduction(Reduction::Min).allocate(data, updates)?;
/// assert_eq!(least, [9.0, 4.0, 9.0, 3.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct ScatterPlan {
    pub(crate) plan: IndexPlan,
    /// What a run means unless it says otherwise.
    pub(crate) meaning: Meaning,
}

impl ScatterPlan {
    /// Shape of the output it was made for.
    pub fn shape(&self) -> &[usize] {
        self.plan.shape()
    }

    /// Strides, in elements, of the output it was made for.
    pub fn strides(&self) -> &[isize] {
        self.plan.strides()
    }

    /// Number of tuples that are applied: all but those that were skipped. An
    /// index that stands for a whole row of an element scatter is one of them, and
    /// so is each row that a sequence has in a cache, once for all heads.
    pub fn tuples(&self) -> usize {
        self.plan.applied()
    }

    /// Number of tuples that were skipped, as [`Bounds::Skip`](crate::Bounds::Skip)
    /// has it, counted as [`tuples`](Self::tuples) are.
    pub fn skipped(&self) -> usize {
        self.plan.skipped()
    }

    /// The shape that `updates` must have. Where it is empty, a tensor of one
    /// element and any rank will do.
    pub fn updates_shape(&self) -> &[usize] {
        self.plan.updates_shape()
    }

    /// Whether two tuples have one destination. Works it out on the first
    /// call, unless the destinations were found to be increasing.
    ///
    /// # Errors
    ///
    /// [`ScatterError::OutOfMemory`] if there is no memory to find out.
    pub fn has_duplicates(&self) -> Result<bool, ScatterError> {
        Ok(self.plan.first_duplicate()?.is_some())
    }

    #[cfg(test)]
    pub(crate) fn indices(&self) -> &IndexPlan {
        &self.plan
    }

    /// A run that means what the operator meant, on rayon.
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

/// A run of a [`ScatterPlan`]: what it means, who runs it, and the verbs. They
/// refuse operands of other shapes than the plan's before they write anything.
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
/// // As the operator means it ...
/// plan.run().in_place(TensorViewMut::contiguous(&mut data, &[3])?, ones)?;
/// assert_eq!(data, [5, 5, 7]);
/// // ... and without the value that is there.
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

/// Data that a forward pass in place has written over, for its gradient.
#[derive(Debug)]
pub(crate) struct Overwritten {
    pub(crate) tensor: AnyTensor,
    /// Where windows lie that are one for each destination that has tuples, in the order
    /// of destinations; `None` where it is all of data.
    pub(crate) windows: Option<WindowOffsets>,
}

impl<'p> ScatterRun<'p> {
    /// Another reduction than that of the operator. The rest of what the
    /// operator means stays. The plan of a [`cache`](crate::Scatter::cache) has
    /// none: such a run is refused ([`ScatterError::UnsupportedOption`]).
    #[must_use]
    #[inline]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.meaning.reducing.reduction = reduction;
        self
    }

    /// Whether the value that is there takes part, if not as the operator says
    /// ([`Scatter::include_self`](crate::Scatter::include_self)).
    #[must_use]
    #[inline]
    pub fn include_self(mut self, include_self: bool) -> Self {
        self.meaning.reducing.include_self = include_self;
        self
    }

    /// In what type 16-bit floats are summed, if not as the operator says.
    #[must_use]
    #[inline]
    pub fn accumulate(mut self, accumulate: Accumulate) -> Self {
        self.meaning.reducing.accumulate = accumulate;
        self
    }

    /// Which of several updates of one destination have a gradient, if not as the
    /// operator says ([`Scatter::none_gradient`](crate::Scatter::none_gradient)).
    #[must_use]
    #[inline]
    pub fn none_gradient(mut self, none_gradient: NoneGradient) -> Self {
        self.meaning.none_gradient = none_gradient;
        self
    }

    /// Who runs it: pool, number of workers, forced choices.
    #[must_use]
    #[inline]
    pub fn execution<'q>(self, execution: Execution<'q>) -> ScatterRun<'q>
    where
        'p: 'q,
    {
        ScatterRun { execution, ..self }
    }

    /// Scatters into a new row-major tensor: a copy of `data` with the updates
    /// applied.
    ///
    /// # Errors
    ///
    /// [`ScatterError::DataShape`], [`ScatterError::UpdatesShape`] and
    /// [`ScatterError::DTypeMismatch`]; [`ScatterError::UnsupportedReduction`],
    /// [`ScatterError::ReductionOfClones`] and [`ScatterError::UnsupportedOption`]
    /// for what cannot be reduced; [`ScatterError::PlanMismatch`] for a plan of
    /// another layout than a contiguous one; [`ScatterError::OutOfMemory`];
    /// [`ScatterError::PoolFailed`].
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

    /// Scatters into `output`: a copy of `data` with the updates applied. What
    /// `output` held before is not read. An [`AnyViewMut`](crate::AnyViewMut) at
    /// the address of `data`, with its shape and strides, is in place.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), with [`ScatterError::PlanMismatch`] for
    /// an output of another shape or other strides, and errors about memory that
    /// is shared. `output` is then unchanged.
    #[inline]
    pub fn write_into<O: Output>(
        &self,
        data: O::Input,
        updates: O::Input,
        mut output: O,
    ) -> Result<(), ScatterError> {
        self.write(&output.target(), Some(&data.source()), &updates.source())
    }

    /// Scatters into `data` itself.
    ///
    /// # Errors
    ///
    /// As [`write_into`](Self::write_into).
    #[inline]
    pub fn in_place<O: Output>(&self, mut data: O, updates: O::Input) -> Result<(), ScatterError> {
        self.write(&data.target(), None, &updates.source())
    }

    /// Refuses what cannot be done with such elements, whatever their values.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedReduction`] and
    /// [`ScatterError::UnsupportedOption`], as a verb would report them.
    pub fn check_dtype(&self, dtype: DType) -> Result<(), ScatterError> {
        let (elements, reducing) = (Elements::Plain(dtype), self.meaning.reducing);
        let operation = operation(elements, reducing, &self.execution)?;
        check_reduction(self.plan, operation.group.is_some())
    }

    /// What a run will do with contiguous updates and data, if no other call is at work on
    /// its pool meanwhile: for people, and for tests. Out of place, the output is not new
    /// memory. The time that the first run takes to inspect the indices is not counted,
    /// since the plan keeps the result for later runs.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedReduction`] and
    /// [`ScatterError::UnsupportedOption`] as a run would report them,
    /// [`ScatterError::ShapeOverflow`] where a tensor of these elements fits in no
    /// memory, [`ScatterError::OutOfMemory`].
    pub fn explain(&self, dtype: DType, in_place: bool) -> Result<Explanation, ScatterError> {
        self.explanation(dtype, in_place, None)
    }

    /// `indices`: what the plan was made of, for one call.
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

    /// One run, in place where there is no `data`.
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

    /// What each of three runs of a plan does about indices, the plan's making
    /// first: 600 tuples on 300 slices of `window` elements.
    fn passes(schedule: Schedule, reduction: Reduction, window: usize) -> [Vec<Work>; 4] {
        let (shape, updates_shape) = ([300, window], [600, window]);
        let indices: Vec<i64> = (0..600).map(|tuple| tuple * 7919 % 251).collect();
        let updates = vec![1.0_f32; 600 * window];
        let mut data = vec![0.0_f32; 300 * window];
        work::take();
        let indices = TensorView::contiguous(&indices, &[600, 1]).expect("indices");
        let plan = (Scatter::nd().plan(Layout::contiguous(&shape), indices)).expect("a plan");
        let made = work::take();
        // One thread, so that all that is done is noted on this one.
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
