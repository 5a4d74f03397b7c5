//! Gradients of scatters: each value that was there, and each update, gets its share of
//! the gradient of the output.
//!
//! Knows which tensors take part, and which passes a gradient is made of: copies, a
//! scatter of zeros and a gather where everyone gets the same, else groups.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

use smallvec::SmallVec;

use super::super::making::{Planning, make_plan};
use super::super::operands::{Operands, check_dtype, is_memory_of, refuse_overlap, refuse_shared};
use super::super::scattered::{Prepared, prepare};
use super::{Factor, other_shape, zeros};
use crate::element::DType;
use crate::error::ScatterError;
use crate::exec::gradients::{GroupGradients, Placed};
use crate::exec::tasks::Call;
use crate::exec::{Buffers, Transfer, scratch};
use crate::execution::Execution;
use crate::kernel::{Kernels, Operation, Shares};
use crate::operand::{
    AnyTensor, Elements, Indices, Input, Layout, Readable, Source, Target, TensorView,
};
use crate::plan::{Form, IndexPlan, IndexRules, Place, Sorted};
use crate::reduction::{Bounds, Duplicates, NoneGradient, Reducing, Reduction};

/// What a scatter meant, as far as its gradient depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) reducing: Reducing,
    pub(crate) none_gradient: NoneGradient,
    /// What all gradients are multiplied by at last.
    pub(crate) scale: f64,
}

/// The tensors of a scatter's gradient; `None` where one is not there or not wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensors<'a> {
    pub(crate) grad_output: &'a Source<'a>,
    pub(crate) data: Option<&'a Source<'a>>,
    pub(crate) updates: Option<&'a Source<'a>>,
    pub(crate) grad_data: Option<&'a Target<'a>>,
    pub(crate) grad_updates: Option<&'a Target<'a>>,
}

/// Data that a scatter in place has written over.
#[derive(Debug)]
pub(crate) struct Saved {
    tensor: AnyTensor,
    /// Where windows lie that are one for each destination that has tuples, in the order
    /// of destinations; `None` where it is all of data.
    windows: Option<Place>,
}

impl Saved {
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
        let geometry = windows_of.geometry(&strides)?;
        let place = windows_of.listed(&strides)?;
        let set = execution.instructions();
        let kernels = Kernels::plain(dtype, Reduction::None, set);
        let kernels = kernels.ok_or(ScatterError::NoGradient { dtype })?;
        let tensor = AnyTensor::filled(windows_of.updates_shape(), dtype, |target| {
            let result = target.as_mut_ptr().cast();
            let operation = Operation::moving(kernels);
            let data = data.as_mut_ptr().cast_const().cast();
            // SAFETY: data has the layout that the plan is bound to, as has just been
            // checked, and holds values, as it is to be written in place; the target has
            // the shape of its updates.
            let transfer =
                unsafe { Transfer::gather(&windows_of, operation, data, result, geometry) };
            run(transfer.into(), execution)
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
        let nothing = Nothing::new(data.shape(), execution)?;
        let kernels = Kernels::plain(dtype, Reduction::None, execution.instructions());
        let kernels = kernels.ok_or(ScatterError::NoGradient { dtype })?;
        let tensor = AnyTensor::filled(data.shape(), dtype, |target| {
            let operation = Operation::moving(kernels);
            let copy = data.read(|data| nothing.copy(&operation, &target, Some(data)))?;
            run(copy, execution)
        })?;
        Ok(Self {
            tensor,
            windows: None,
        })
    }

    fn placed(&self, call: &Backward<'_>) -> Result<Placed, ScatterError> {
        let view = self.tensor.view();
        let source = view.source();
        match &self.windows {
            Some(place) => Ok(Placed::numbered(
                source.as_ptr().cast_mut(),
                place.copied()?,
            )),
            None => call.numbered(source.as_ptr().cast_mut(), source.layout()),
        }
    }

    /// Bytes that it has taken.
    pub(crate) fn bytes(&self) -> usize {
        self.tensor.as_bytes().len()
    }
}

fn run(prepared: Prepared<'_>, execution: &Execution<'_>) -> Result<(), ScatterError> {
    let call = Call::begin(execution.pool, execution.max_workers)
        .toward(execution.goal)
        .on(execution.machine);
    prepared.run(&call, execution)
}

impl Tensors<'_> {
    /// Refuses tensors of other types, and what is shared with memory that is written.
    /// Returns whether the gradient for data is to be written where that of the output
    /// lies.
    fn check(&self, indices: Option<&Indices<'_>>) -> Result<bool, ScatterError> {
        let expected = self.grad_output.elements();
        let read = [("data", self.data), ("updates", self.updates)];
        let written = [
            ("grad_data", self.grad_data),
            ("grad_updates", self.grad_updates),
        ];
        for (tensor, source) in read {
            source.map_or(Ok(()), |source| {
                check_dtype(tensor, source.elements(), expected)
            })?;
        }
        for (tensor, target) in written {
            target.map_or(Ok(()), |target| {
                check_dtype(tensor, target.elements(), expected)
            })?;
        }
        let in_place = (self.grad_data).is_some_and(|data| is_memory_of(self.grad_output, data));
        let indices = indices.map(Indices::as_source);
        let grad_output = Some(self.grad_output);
        for (_, target) in written {
            let Some(target) = target else { continue };
            let is_data = self
                .grad_data
                .is_some_and(|data| std::ptr::eq(data, target));
            let apart = grad_output.filter(|_| !(in_place && is_data));
            refuse_overlap(
                target,
                [
                    ("grad_output", apart),
                    ("data", self.data),
                    ("indices", indices.as_ref()),
                    ("updates", self.updates),
                ],
            )?;
        }
        if let (Some(data), Some(updates)) = (self.grad_data, self.grad_updates) {
            refuse_shared(data, updates, "grad_updates")?;
        }
        Ok(in_place)
    }

    /// Refuses other shapes than those of a scatter into a tensor of the shape of
    /// `grad_output`, with updates of this shape.
    fn check_shapes(&self, updates_shape: &[usize]) -> Result<(), ScatterError> {
        let shape = self.grad_output.shape();
        let check = |tensor, actual: Option<&[usize]>, expected: &[usize]| {
            let is_scalar = |actual: &[usize]| {
                expected.is_empty() && tensor != "grad_data" && actual.iter().all(|&size| size == 1)
            };
            match actual {
                Some(actual) if actual != expected && !is_scalar(actual) => {
                    Err(other_shape(tensor, expected, actual))
                }
                _ => Ok(()),
            }
        };
        check("data", self.data.map(Source::shape), shape)?;
        check("updates", self.updates.map(Source::shape), updates_shape)?;
        check("grad_data", self.grad_data.map(Target::shape), shape)?;
        check(
            "grad_updates",
            self.grad_updates.map(Target::shape),
            updates_shape,
        )
    }

    /// Refuses to do without a tensor that the gradient of a reduction depends on.
    fn check_inputs(&self, reducing: Reducing, has_saved: bool) -> Result<(), ScatterError> {
        let reduction = reducing.reduction;
        if !matches!(reduction, Reduction::Mul | Reduction::Min | Reduction::Max) {
            return Ok(());
        }
        let missing = |tensor| Err(ScatterError::MissingInput { tensor, reduction });
        match (self.data, self.updates) {
            (None, _) if reducing.include_self && !has_saved => missing("data"),
            (_, None) => missing("updates"),
            _ => Ok(()),
        }
    }
}

/// Plans and shares out once.
pub(crate) fn backward_once(
    form: &Form,
    tensors: &Tensors<'_>,
    indices: &Indices<'_>,
    meaning: Meaning,
    planning: Planning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let factor = Factor::new(tensors.grad_output.elements(), meaning.scale)?;
    let in_place = tensors.check(Some(indices))?;
    let shape = tensors.grad_output.shape();
    tensors.check_shapes(&form.updates_shape(shape, indices.layout().shape())?)?;
    tensors.check_inputs(meaning.reducing, false)?;
    let output = Layout::contiguous(shape);
    let plan = make_plan(&output, *form, indices.integers()?, planning, execution)?;
    let call = Backward {
        plan: &plan,
        is_kept: false,
        tensors,
        saved: None,
        meaning,
        factor,
        in_place,
        execution,
    };
    let result = call.run();
    scratch::put_back(plan.into_destinations().into_spare());
    result
}

/// Shares out by a plan that is kept.
pub(in super::super) fn backward_planned(
    plan: &IndexPlan,
    tensors: &Tensors<'_>,
    saved: Option<&Saved>,
    meaning: Meaning,
    execution: &Execution<'_>,
) -> Result<(), ScatterError> {
    let factor = Factor::new(tensors.grad_output.elements(), meaning.scale)?;
    let in_place = tensors.check(None)?;
    let elements = saved.map(|saved| Elements::Plain(saved.tensor.dtype()));
    elements.map_or(Ok(()), |saved| {
        check_dtype("data", saved, tensors.grad_output.elements())
    })?;
    if tensors.grad_output.shape() != plan.shape() {
        let actual = tensors.grad_output.shape();
        return Err(other_shape("grad_output", plan.shape(), actual));
    }
    tensors.check_shapes(plan.updates_shape())?;
    tensors.check_inputs(meaning.reducing, saved.is_some())?;
    let call = Backward {
        plan,
        is_kept: true,
        tensors,
        saved,
        meaning,
        factor,
        in_place,
        execution,
    };
    call.run()
}

/// One call, whose tensors have been checked.
struct Backward<'a> {
    plan: &'a IndexPlan,
    is_kept: bool,
    tensors: &'a Tensors<'a>,
    saved: Option<&'a Saved>,
    meaning: Meaning,
    factor: Factor,
    in_place: bool,
    execution: &'a Execution<'a>,
}

/// Which gradients are shared out group by group.
#[derive(Clone, Copy, Debug)]
struct ByGroups {
    data: bool,
    updates: bool,
}

impl Backward<'_> {
    fn run(&self) -> Result<(), ScatterError> {
        // Updates of an output without elements are skipped, all of them.
        if self.factor.is_zero || self.plan.shape().contains(&0) {
            return self.clear();
        }
        let by_groups = self.by_groups()?;
        let grad_output = self.tensors.grad_output;
        let is_read_later = by_groups.data && self.in_place && self.factor.value != 1.0;
        if !is_read_later {
            return self.share(by_groups, grad_output);
        }
        // The gradient of the output is multiplied where it lies, and read again.
        let nothing = Nothing::new(grad_output.shape(), self.execution)?;
        let moving = self.operation(1.0)?;
        let copy = AnyTensor::filled(grad_output.shape(), self.factor.dtype, |target| {
            run(
                nothing.copy(&moving, &target, Some(grad_output))?,
                self.execution,
            )
        })?;
        let copy = copy.view();
        self.share(by_groups, &copy.source())
    }

    /// Zeros, whatever the gradient of the output holds.
    fn clear(&self) -> Result<(), ScatterError> {
        let nothing = Nothing::new(self.plan.shape(), self.execution)?;
        let of_updates = Nothing::new(self.plan.updates_shape(), self.execution)?;
        let written = [
            (&nothing, self.tensors.grad_data),
            (&of_updates, self.tensors.grad_updates),
        ];
        let passes = written
            .map(|(nothing, target)| target.map(|target| self.zeros(nothing, target)).transpose());
        let [data, updates] = passes;
        let passes = [data?, updates?].into_iter().flatten();
        passes
            .into_iter()
            .try_for_each(|pass| run(pass, self.execution))
    }

    /// Gradients on their way, multiplied by a factor.
    fn operation(&self, factor: f64) -> Result<Operation, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        Operation::gradients(dtype, factor, set).ok_or(ScatterError::NoGradient { dtype })
    }

    fn reduction(&self) -> Reduction {
        self.meaning.reducing.reduction
    }

    /// Whether data has no part in what its destinations hold.
    fn is_replaced(&self) -> bool {
        self.reduction() == Reduction::None || !self.meaning.reducing.include_self
    }

    /// Whether of several updates of a destination the last alone has a gradient.
    fn last_only(&self) -> bool {
        let exact = self.meaning.none_gradient == NoneGradient::LastWrite;
        self.reduction() == Reduction::None && exact
    }

    fn by_groups(&self) -> Result<ByGroups, ScatterError> {
        let tensors = self.tensors;
        let alike = [Reduction::None, Reduction::Add, Reduction::Sub];
        if !alike.contains(&self.reduction()) {
            return Ok(ByGroups {
                data: tensors.grad_data.is_some(),
                updates: tensors.grad_updates.is_some(),
            });
        }
        let is_even = |layout: &Layout<'_>| {
            let strides = layout.all_strides()?;
            Ok(self.plan.binding(&strides)?.is_some())
        };
        let data = match tensors.grad_data {
            Some(data) => self.is_replaced() && !is_even(data.layout())?,
            None => false,
        };
        let updates = tensors.grad_updates.is_some()
            && (!is_even(tensors.grad_output.layout())?
                || (self.last_only() && self.plan.first_duplicate()?.is_some()));
        Ok(ByGroups { data, updates })
    }

    /// Makes all passes ready, and runs them in an order in which none writes what a later
    /// one reads.
    fn share(&self, by_groups: ByGroups, grad_output: &Source<'_>) -> Result<(), ScatterError> {
        let tensors = self.tensors;
        let nothing = Nothing::new(self.plan.shape(), self.execution)?;
        let of_updates = Nothing::new(self.plan.updates_shape(), self.execution)?;
        let is_grouped = by_groups.data || by_groups.updates;
        let sorted = is_grouped.then(|| self.plan.groups()).transpose()?;
        let gradients = sorted.map(|sorted| self.gradients(by_groups, grad_output, sorted));
        let gradients = gradients.transpose()?;
        let groups = gradients.as_ref().map(|gradients| self.groups(gradients));
        let mut groups = groups.transpose()?;
        let mut passes: SmallVec<[Prepared<'_>; 4]> = SmallVec::new();
        match tensors.grad_updates {
            Some(target) if !by_groups.updates => passes.push(self.gather(grad_output, target)?),
            // Those that were skipped have no group.
            Some(target) if self.plan.skipped() > 0 => {
                passes.push(self.zeros(&of_updates, target)?)
            }
            _ => {}
        }
        if !by_groups.data {
            passes.extend(groups.take());
        }
        if let Some(target) = tensors.grad_data {
            if self.in_place && self.factor.value != 1.0 {
                passes.push(self.multiplied(&nothing, target)?);
            }
            let clears = self.is_replaced() && !by_groups.data;
            if clears || !self.in_place {
                passes.push(self.copied(&nothing, grad_output, target, clears)?);
            }
        }
        passes.extend(groups);
        passes
            .into_iter()
            .try_for_each(|pass| run(pass, self.execution))
    }

    /// The pass in which every update takes the gradient of its destination.
    fn gather(
        &self,
        grad_output: &Source<'_>,
        target: &Target<'_>,
    ) -> Result<Prepared<'_>, ScatterError> {
        let operation = self.operation(match self.reduction() {
            Reduction::Sub => -self.factor.value,
            _ => self.factor.value,
        })?;
        let strides = grad_output.layout().all_strides()?;
        let Some(numbered) = self.plan.binding(&strides)? else {
            return Err(self.plan.mismatch(grad_output.layout()));
        };
        let written = target.layout().all_strides()?;
        let geometry = self.plan.geometry_of(&numbered, &written)?;
        let (result, data) = (target.as_mut_ptr().cast(), grad_output.as_ptr());
        // SAFETY: both have the shapes that the plan asks for, as has been checked, and
        // the geometry their strides; nothing shares memory with what is written.
        let transfer = unsafe { Transfer::gather(self.plan, operation, data, result, geometry) };
        Ok(transfer.into())
    }

    /// The pass that copies the gradient of the output to that for data, unless it lies
    /// there, and clears what updates have replaced.
    fn copied<'p>(
        &'p self,
        nothing: &'p Nothing,
        grad_output: &Source<'_>,
        target: &Target<'_>,
        clears: bool,
    ) -> Result<Prepared<'p>, ScatterError> {
        let data = (!self.in_place).then_some(grad_output);
        let operation = self.operation(self.factor.value)?;
        if !clears {
            return nothing.copy(&operation, target, data);
        }
        let none = zeros(self.plan.updates_shape())?;
        let updates = Readable::zeros(self.plan.updates_shape(), &none);
        let updates = Source::of_zeros(&updates, self.factor.dtype);
        let strides = target.layout().all_strides()?;
        let Some(numbered) = self.plan.binding(&strides)? else {
            return Err(self.plan.mismatch(target.layout()));
        };
        let operands = Operands {
            operation: &operation,
            output: target,
            updates: &updates,
            data,
        };
        // SAFETY: the tensors have the shapes that the plan asks for, as has been checked.
        unsafe { prepare(self.plan, &numbered, &operands) }
    }

    /// The pass that multiplies a gradient where it lies.
    fn multiplied<'p>(
        &self,
        nothing: &'p Nothing,
        target: &Target<'_>,
    ) -> Result<Prepared<'p>, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        let operation = Operation::multiplied(dtype, self.factor.value, set);
        let operation = operation.ok_or(ScatterError::NoGradient { dtype })?;
        nothing.multiply(operation, target)
    }

    fn zeros<'p>(
        &self,
        nothing: &'p Nothing,
        target: &Target<'_>,
    ) -> Result<Prepared<'p>, ScatterError> {
        let none = zeros(target.shape())?;
        let zeros = Readable::zeros(target.shape(), &none);
        let zeros = Source::of_zeros(&zeros, self.factor.dtype);
        nothing.copy(&self.operation(1.0)?, target, Some(&zeros))
    }

    /// The tensors of the pass by groups.
    fn gradients<'s>(
        &self,
        by_groups: ByGroups,
        grad_output: &Source<'_>,
        sorted: &'s Sorted,
    ) -> Result<GroupGradients<'s>, ScatterError> {
        let (tensors, factor) = (self.tensors, self.factor.value);
        let reducing = self.meaning.reducing;
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        let kernel = Kernels::gradient(dtype, reducing.reduction, set).ok_or(
            ScatterError::UnsupportedReduction {
                reduction: reducing.reduction,
                dtype,
            },
        )?;
        let depends = matches!(
            reducing.reduction,
            Reduction::Mul | Reduction::Min | Reduction::Max
        );
        let data = match (self.saved, tensors.data) {
            _ if !depends || !reducing.include_self => None,
            (Some(saved), _) => Some(saved.placed(self)?),
            (None, Some(data)) => Some(self.numbered(data.as_ptr().cast_mut(), data.layout())?),
            (None, None) => None,
        };
        let updates = tensors.updates.filter(|_| depends);
        let updates = updates
            .map(|updates| self.listed(updates.as_ptr().cast_mut(), updates.layout(), sorted));
        let grad_data = tensors.grad_data.filter(|_| by_groups.data);
        let grad_data =
            grad_data.map(|target| self.numbered(target.as_mut_ptr().cast(), target.layout()));
        let grad_updates = tensors.grad_updates.filter(|_| by_groups.updates);
        let grad_updates = grad_updates
            .map(|target| self.listed(target.as_mut_ptr().cast(), target.layout(), sorted));
        Ok(GroupGradients {
            kernel,
            shares: Shares {
                include_self: reducing.include_self && reducing.reduction != Reduction::None,
                last_only: self.last_only(),
                divides: reducing.reduction == Reduction::Mean,
                smallest: reducing.reduction == Reduction::Min,
                factor,
                factor_of_updates: match reducing.reduction {
                    Reduction::Sub => -factor,
                    _ => factor,
                },
            },
            size: dtype.size(),
            grad_output: self.numbered(grad_output.as_ptr().cast_mut(), grad_output.layout())?,
            data_in_order: self.saved.is_some_and(|saved| saved.windows.is_some()),
            data,
            updates: updates.transpose()?,
            grad_data: grad_data.transpose()?,
            grad_updates: grad_updates.transpose()?,
            sorted,
        })
    }

    fn numbered(&self, base: *mut u8, layout: &Layout<'_>) -> Result<Placed, ScatterError> {
        match self.plan.numbered(&layout.all_strides()?)? {
            Some(place) => Ok(Placed::numbered(base, place)),
            None => Err(self.plan.mismatch(layout)),
        }
    }

    fn listed(
        &self,
        base: *mut u8,
        layout: &Layout<'_>,
        sorted: &Sorted,
    ) -> Result<Placed, ScatterError> {
        let place = self.plan.listed(&layout.all_strides()?)?;
        Placed::listed(base, place, self.plan, sorted)
    }

    /// The pass by groups.
    fn groups<'p>(
        &'p self,
        gradients: &'p GroupGradients<'p>,
    ) -> Result<Prepared<'p>, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.execution.instructions());
        let operation = Operation::gradients_of_groups(dtype, set);
        let operation = operation.ok_or(ScatterError::NoGradient { dtype })?;
        // SAFETY: the tensors have the shapes that the plan asks for and share nothing with
        // those that are written but what is allowed, as has been checked; saved windows
        // are those of this plan, which lives as long.
        let transfer = unsafe { Transfer::gradients_of(self.plan, operation, gradients) }?;
        Ok(Prepared::from(transfer).of_kept_plan(self.is_kept))
    }
}

/// A scatter of no updates to a tensor of some shape: what it does to data.
struct Nothing(IndexPlan);

impl Nothing {
    fn new(shape: &[usize], execution: &Execution<'_>) -> Result<Self, ScatterError> {
        let none: [i64; 0] = [];
        let none = Indices::from(TensorView::contiguous(&none, &[0, 0])?);
        // Tuples of no coordinates, each of which would address all of the tensor.
        let form = Form {
            batch_rank: 0,
            tuple_len: 0,
            list: (0, 1),
            coordinates: Form::ALL_LISTED,
        };
        let planning = Planning {
            duplicates: Duplicates::Allow,
            rules: IndexRules {
                negatives_wrap: true,
                bounds: Bounds::Error,
            },
            gathers: false,
        };
        let output = Layout::contiguous(shape);
        let plan = make_plan(&output, form, none.integers()?, planning, execution)?;
        Ok(Self(plan))
    }

    /// Copies data, or leaves the target as it is.
    fn copy(
        &self,
        operation: &Operation,
        target: &Target<'_>,
        data: Option<&Source<'_>>,
    ) -> Result<Prepared<'_>, ScatterError> {
        let strides = target.layout().all_strides()?;
        let Some(numbered) = self.0.binding(&strides)? else {
            return Err(self.0.mismatch(target.layout()));
        };
        let none = zeros(self.0.updates_shape())?;
        let updates = Readable::zeros(self.0.updates_shape(), &none);
        let updates = Source::of_zeros(&updates, DType::F64);
        let operands = Operands {
            operation,
            output: target,
            updates: &updates,
            data,
        };
        // SAFETY: the target has the shape of the plan, and updates have no elements.
        unsafe { prepare(&self.0, &numbered, &operands) }
    }

    /// Multiplies all elements.
    fn multiply(
        &self,
        operation: Operation,
        target: &Target<'_>,
    ) -> Result<Prepared<'_>, ScatterError> {
        let strides = target.layout().all_strides()?;
        let Some(numbered) = self.0.binding(&strides)? else {
            return Err(self.0.mismatch(target.layout()));
        };
        let none = zeros(self.0.updates_shape())?;
        let geometry = self.0.geometry_of(&numbered, &none)?;
        let copy = self.0.copy_geometry_of(&numbered, &strides)?;
        let buffers = Buffers {
            output: target.as_mut_ptr(),
            updates: std::ptr::null(),
            data: None,
        };
        // SAFETY: the target has the shape of the plan, and there are no updates.
        let transfer =
            unsafe { Transfer::scatter(&self.0, operation, buffers, geometry, Some(copy)) };
        Ok(transfer.into())
    }
}
