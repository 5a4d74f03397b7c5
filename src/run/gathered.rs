//! The verbs of a gather's plan, and what every gather runs through.

use super::{Source, Target, allocate, check_bools, plain_kernels, refuse_overlap};
use crate::element::{Element, ElementType};
use crate::error::ScatterError;
use crate::exec::tasks::Workers;
use crate::exec::{self, Transfer, scratch};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::layout::{Dims, Layout};
use crate::plan::{Coordinates, Form, IndexPlan};
use crate::reduction::Reducing;
use crate::tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};

/// A gather whose indices have been read and checked.
///
/// It can be run many times, from many threads, on other data of one layout
/// and of any element type. Make one with [`GatherOp::plan`](crate::GatherOp::plan).
///
/// # Examples
///
/// ```
/// use ndscatter::{Gather, Layout, TensorView};
///
/// let plan = Gather::new(0).plan(
///     Layout::contiguous(&[3]),
///     TensorView::contiguous(&[2_i64, 2, 0], &[3])?,
/// )?;
/// let data = TensorView::contiguous(&['a' as u8, b'b', b'c'], &[3])?;
/// assert_eq!(plan.run().allocate(data)?, *b"cca");
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct GatherPlan {
    plan: IndexPlan,
    output_shape: Dims<usize>,
}

impl GatherPlan {
    pub(crate) fn new(plan: IndexPlan) -> Result<Self, ScatterError> {
        Ok(Self {
            output_shape: plan.updates_shape()?,
            plan,
        })
    }

    /// Shape of the data it was made for.
    pub fn shape(&self) -> &[usize] {
        self.plan.shape()
    }

    /// Strides, in elements, of the data it was made for.
    pub fn strides(&self) -> &[isize] {
        self.plan.strides()
    }

    /// Shape of the result.
    pub fn output_shape(&self) -> &[usize] {
        &self.output_shape
    }

    /// A run on rayon.
    #[inline]
    pub fn run(&self) -> GatherRun<'_> {
        GatherRun {
            plan: self,
            execution: Execution::new(),
        }
    }

    /// Leaves the memory of the plan for the next call.
    pub(crate) fn put_back(self) {
        scratch::put_back(self.plan.into_destinations().into_spare());
    }
}

/// A run of a [`GatherPlan`]: who runs it, and the verbs.
///
/// # Examples
///
/// ```
/// use ndscatter::{CallingThread, Execution, Gather, Layout, TensorView, TensorViewMut};
///
/// let rows = TensorView::contiguous(&[1_i64, 1, 0], &[3])?;
/// let plan = Gather::new(0).plan(Layout::contiguous(&[2, 2]), rows)?;
/// let run = plan.run().execution(Execution::new().pool(&CallingThread));
/// let data = TensorView::contiguous(&[1, 2, 3, 4], &[2, 2])?;
/// let mut output = [0; 6];
/// run.write_into(data, TensorViewMut::contiguous(&mut output, &[3, 2])?)?;
/// assert_eq!(output, [3, 4, 3, 4, 1, 2]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GatherRun<'p> {
    plan: &'p GatherPlan,
    execution: Execution<'p>,
}

impl<'p> GatherRun<'p> {
    /// Who runs it: pool, number of workers, instruction set.
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
    /// [`ScatterError::PlanMismatch`] for data of another layout, or no memory
    /// for the result.
    pub fn allocate<T: Element>(&self, data: TensorView<'_, T>) -> Result<Vec<T>, ScatterError> {
        let kernels = moving_kernels(T::TYPE, &self.execution)?;
        self.plan.plan.check_output(&data.layout())?;
        allocate(self.plan.output_shape(), |output| {
            // SAFETY: the kernels were made for `T`; the result is new memory.
            unsafe { self.run_on(kernels, data.into(), output) }
        })
    }

    /// Writes the result into `output`. What it held before is not read.
    ///
    /// # Errors
    ///
    /// [`ScatterError::PlanMismatch`] for data of another layout,
    /// [`ScatterError::OutputShape`].
    pub fn write_into<T: Element>(
        &self,
        data: TensorView<'_, T>,
        output: TensorViewMut<'_, T>,
    ) -> Result<(), ScatterError> {
        let kernels = moving_kernels(T::TYPE, &self.execution)?;
        // SAFETY: the kernels were made for `T`; typed views borrow their memory.
        unsafe { self.run_on(kernels, data.into(), output.into()) }
    }

    /// [`write_into`](Self::write_into) with element types as values.
    ///
    /// # Errors
    ///
    /// Also [`ScatterError::ElementTypeMismatch`],
    /// [`ScatterError::InputOverlap`] where `output` shares memory with `data`,
    /// and [`ScatterError::ForeignBool`] where bytes of foreign booleans would
    /// be moved into Rust's.
    pub fn any_write_into(
        &self,
        data: AnyView<'_>,
        output: AnyViewMut<'_>,
    ) -> Result<(), ScatterError> {
        let kernels = moving_kernels(data.element(), &self.execution)?;
        check_gather(&output, &data, None)?;
        // SAFETY: the views have the kernels' element type and share no byte,
        // as was just checked.
        unsafe { self.run_on(kernels, data.into(), output.into()) }
    }

    /// # Safety
    ///
    /// As for [`run_gather`]. `kernels` are plain ones, which clone nothing.
    unsafe fn run_on(
        &self,
        kernels: Operation,
        data: Source<'_>,
        output: Target<'_>,
    ) -> Result<(), ScatterError> {
        // SAFETY: handed on as it is.
        unsafe { run_gather(self.plan, kernels, data, output, &self.execution) }
    }
}

/// The shape of the result of a gather.
pub(crate) fn gather_shape(
    form: &Form,
    data: &[usize],
    indices: &Layout<'_>,
) -> Result<Dims<usize>, ScatterError> {
    if let Coordinates::Placed { .. } = form.coordinates {
        return Dims::copied(indices.shape());
    }
    let (batch, rest) = data.split_at(form.batch_rank);
    let list = form.tuple_shape(data, indices)?;
    let parts = [batch, &list, &rest[form.tuple_len..]];
    let rank = parts.iter().map(|part| part.len()).sum();
    Dims::collect(rank, parts.into_iter().flatten().copied())
}

/// The kernels of a gather, which only moves elements.
pub(crate) fn moving_kernels(
    element: ElementType,
    execution: &Execution<'_>,
) -> Result<Operation, ScatterError> {
    plain_kernels(element, Reducing::default(), execution)
}

/// Types and memory of type-erased operands.
pub(crate) fn check_gather(
    output: &AnyViewMut<'_>,
    data: &AnyView<'_>,
    indices: Option<&AnyView<'_>>,
) -> Result<(), ScatterError> {
    if output.element() != data.element() {
        return Err(ScatterError::ElementTypeMismatch {
            tensor: "output",
            expected: data.element(),
            actual: output.element(),
        });
    }
    check_bools(output, [("data", Some(*data))])?;
    refuse_overlap(
        &output.footprint(),
        [("data", Some(data)), ("indices", indices)],
    )
}

/// Runs a gather.
///
/// # Safety
///
/// - The elements of `data` and `output` are those that `kernels` work on, and
///   they share no byte.
/// - Where `kernels` clone, the elements of the output are initialised, and no
///   tuple was skipped.
pub(crate) unsafe fn run_gather(
    plan: &GatherPlan,
    kernels: Operation,
    data: Source<'_>,
    output: Target<'_>,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    output.check_shape(plan.output_shape())?;
    let plan = &plan.plan;
    plan.check_output(&data.layout)?;
    if output.layout.shape().contains(&0) {
        return Ok(());
    }
    let geometry = plan.geometry(&output.layout.all_strides()?)?;
    // SAFETY: layout and shape have just been checked against the plan's; views
    // keep their elements readable, or writable and to themselves; the caller
    // vouches for the rest.
    let transfer = unsafe {
        let result = output.ptr.cast();
        Transfer::gather(plan, kernels, data.ptr, result, geometry)
    };
    let workers = Workers::new(execution.pool, execution.max_workers);
    exec::run(&transfer, &workers, execution.schedule)
}
