//! The verbs of a plan: run it on data and updates, any number of times.

use super::{Operands, Target, allocate, check_reduction, cloned_kernels, execute, plain_kernels};
use crate::element::{Element, ElementType};
use crate::error::ScatterError;
use crate::execution::Execution;
use crate::explain::Explanation;
use crate::kernel::Kernels;
use crate::plan::ScatterPlan;
use crate::tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};

/// Running a plan. Every verb takes the reduction, or a whole
/// [`Execution`], and refuses operands of other shapes than the plan's before
/// it writes anything.
///
/// # Examples
///
/// ```
/// use ndscatter::{Layout, Reduction, ScatterNd, TensorView, TensorViewMut};
///
/// // The indices are read, checked and worked out once ...
/// let plan = ScatterNd::new().plan(
///     Layout::contiguous(&[4]),
///     TensorView::contiguous(&[3_i64, 1, 3], &[3, 1])?,
/// )?;
/// // ... and used with any data, updates, element type and reduction.
/// let mut counts = [0_u32; 4];
/// let ones = TensorView::contiguous(&[1_u32; 3], &[3])?;
/// plan.in_place(Reduction::Add, TensorViewMut::contiguous(&mut counts, &[4])?, ones)?;
/// assert_eq!(counts, [0, 1, 0, 2]);
///
/// let data = TensorView::contiguous(&[9.0; 4], &[4])?;
/// let updates = TensorView::contiguous(&[5.0, 4.0, 3.0], &[3])?;
/// assert_eq!(plan.allocate(Reduction::Min, data, updates)?, [9.0, 4.0, 9.0, 3.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
impl ScatterPlan {
    /// Scatters into a new row-major tensor: a copy of `data` with the updates
    /// applied.
    ///
    /// # Errors
    ///
    /// Shapes that differ from the plan's, a reduction that the element type
    /// does not have, a plan made for another layout than a contiguous one,
    /// or no memory for the result.
    pub fn allocate<'p, T: Element>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        let execution = execution.into();
        let kernels = plain_kernels(T::TYPE, &execution)?;
        self.check_updates(updates.shape())?;
        allocate(data.shape(), |output| {
            self.run_on(kernels, output, updates, Some(data), &execution)
        })
    }

    /// Scatters into `output`: a copy of `data` with the updates applied.
    /// What `output` held before is not read.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), with [`ScatterError::PlanMismatch`] for
    /// an output of another shape or other strides. `output` is then unchanged.
    pub fn write_into<'p, T: Element>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let execution = execution.into();
        let kernels = plain_kernels(T::TYPE, &execution)?;
        self.run_on(kernels, output.into(), updates, Some(data), &execution)
    }

    /// Scatters into `data` itself.
    ///
    /// # Errors
    ///
    /// As [`write_into`](Self::write_into).
    pub fn in_place<'p, T: Element>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: TensorViewMut<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError> {
        let execution = execution.into();
        let kernels = plain_kernels(T::TYPE, &execution)?;
        self.run_on(kernels, data.into(), updates, None, &execution)
    }

    /// [`write_into`](Self::write_into) with element types as values. An
    /// `output` at the address of `data`, with its shape and strides, is in
    /// place.
    ///
    /// # Errors
    ///
    /// Also [`ScatterError::ElementTypeMismatch`], and
    /// [`ScatterError::InputOverlap`] where `output` shares memory with an
    /// input.
    pub fn any_write_into<'p>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: AnyView<'_>,
        updates: AnyView<'_>,
        output: AnyViewMut<'_>,
    ) -> Result<(), ScatterError> {
        let execution = execution.into();
        let kernels = plain_kernels(data.element(), &execution)?;
        let operands = Operands::any(output, updates, Some(data), None)?;
        // SAFETY: the views have the kernels' element type and, as
        // `Operands::any` has checked, share no byte; in place `data` is the
        // output, initialised.
        unsafe { execute(self, true, &kernels, &operands, &execution) }
    }

    /// [`in_place`](Self::in_place) with element types as values.
    ///
    /// # Errors
    ///
    /// As [`any_write_into`](Self::any_write_into).
    pub fn any_in_place<'p>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: AnyViewMut<'_>,
        updates: AnyView<'_>,
    ) -> Result<(), ScatterError> {
        let execution = execution.into();
        let kernels = plain_kernels(data.element(), &execution)?;
        let operands = Operands::any(data, updates, None, None)?;
        // SAFETY: as in `any_write_into`; the caller of the view's constructor
        // vouches for initialised elements.
        unsafe { execute(self, true, &kernels, &operands, &execution) }
    }

    /// [`allocate`](Self::allocate) for elements that are cloned, such as
    /// strings.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate), and
    /// [`ScatterError::ReductionOfClones`] for any reduction but `None`.
    pub fn cloned_allocate<'p, T: Clone + Send + Sync>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<Vec<T>, ScatterError> {
        let execution = execution.into();
        let kernels = cloned_kernels::<T>(&execution)?;
        self.check_updates(updates.shape())?;
        let mut result = data.to_vec()?;
        let output = TensorViewMut::contiguous(&mut result, data.shape())?;
        self.run_on(kernels, output.into(), updates, None, &execution)?;
        Ok(result)
    }

    /// [`write_into`](Self::write_into) for elements that are cloned.
    ///
    /// # Errors
    ///
    /// As [`cloned_allocate`](Self::cloned_allocate).
    pub fn cloned_write_into<'p, T: Clone + Send + Sync>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: TensorView<'_, T>,
        updates: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let execution = execution.into();
        let kernels = cloned_kernels::<T>(&execution)?;
        self.run_on(kernels, output.into(), updates, Some(data), &execution)
    }

    /// [`in_place`](Self::in_place) for elements that are cloned.
    ///
    /// # Errors
    ///
    /// As [`cloned_allocate`](Self::cloned_allocate).
    pub fn cloned_in_place<'p, T: Clone + Send + Sync>(
        &self,
        execution: impl Into<Execution<'p>>,
        data: TensorViewMut<'_, T>,
        updates: TensorView<'_, T>,
    ) -> Result<(), ScatterError> {
        let execution = execution.into();
        let kernels = cloned_kernels::<T>(&execution)?;
        self.run_on(kernels, data.into(), updates, None, &execution)
    }

    /// Refuses what no run of this plan can do with such elements, whatever
    /// their values.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedReduction`] and
    /// [`ScatterError::UnsupportedOption`], as a run would report them.
    pub fn check_execution<'p>(
        &self,
        element: ElementType,
        execution: impl Into<Execution<'p>>,
    ) -> Result<(), ScatterError> {
        let kernels = plain_kernels(element, &execution.into())?;
        check_reduction(self, &kernels)
    }

    /// What a run will do: for people, and for tests.
    ///
    /// # Errors
    ///
    /// [`ScatterError::UnsupportedReduction`] as a run would report it.
    pub fn explain<'p>(
        &self,
        element: ElementType,
        execution: impl Into<Execution<'p>>,
        in_place: bool,
    ) -> Result<Explanation, ScatterError> {
        let execution = execution.into();
        let kernels = plain_kernels(element, &execution)?;
        Ok(Explanation::new(
            self, element, kernels, &execution, in_place,
        ))
    }

    /// `output` is initialised unless `kernels` move plain bytes and there is `data`.
    fn run_on<T>(
        &self,
        kernels: Kernels,
        output: Target<'_>,
        updates: TensorView<'_, T>,
        data: Option<TensorView<'_, T>>,
        execution: &Execution<'_>,
    ) -> Result<(), ScatterError> {
        let operands = Operands::typed(output, updates, data);
        // SAFETY: `kernels` were made for `T`; typed views borrow their memory, so
        // an output shares no byte with an input; see above for the rest.
        unsafe { execute(self, true, &kernels, &operands, execution) }
    }
}

#[cfg(test)]
mod tests {
    use crate::work::{self, Work};
    use crate::{
        CallingThread, Execution, Layout, Reduction, ScatterNd, Schedule, TensorView, TensorViewMut,
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
        let plan = (ScatterNd::new().plan(Layout::contiguous(&shape), indices)).expect("a plan");
        let made = work::take();
        // One thread, so that all that is done is noted on this one.
        let execution = Execution::new(reduction)
            .pool(&CallingThread)
            .schedule(schedule);
        let mut run = || {
            let data = TensorViewMut::contiguous(&mut data, &shape).expect("data");
            let updates = TensorView::contiguous(&updates, &updates_shape).expect("updates");
            plan.in_place(execution, data, updates).expect("a run");
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
            (Schedule::Winner, Reduction::None, &[Work::Sorting]),
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
}
