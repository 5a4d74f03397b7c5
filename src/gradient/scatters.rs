//! Gradients of scatters: the gradient for data, and the gradient for updates.
//!
//! A pass is one traversal of the tensors of a gradient. This module chooses the passes of a
//! gradient, prepares all passes, and then runs them. For scatters with `none`, `add` and `sub`,
//! three kinds of passes usually suffice. A copy of the gradient of the output gives the gradient
//! for data. A scatter of zeros clears this gradient at destinations where updates replaced data. A
//! gather from the gradient of the output gives the gradient for updates. In all other cases, a
//! pass over groups (a destination with its tuples) computes the gradients.
//!
//! This module knows operators, their plans and the tensors of the call. This module does not know
//! which schedule and which kernels run a pass.

#![expect(
    unsafe_code,
    reason = "passes the checked memory of views to the passes"
)]

use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;

use super::factor::Factor;
use super::passes::{Pass, copy_all};
use super::placed::{GradientPass, TensorsAt};
use super::tensors::{Tensors, shape_error, zero_strides};
use crate::error::ScatterError;
use crate::exec::{Direction, scratch};
use crate::kernel::Operation;
use crate::memory::zeroed;
use crate::operand::{
    AnyView, AnyViewMut, Elements, Indices, Input, Layout, Readable, Source, Target,
};
use crate::ops::Scatter;
use crate::plan::{Form, Sorted};
use crate::reduction::{NoneGradient, Reduction};
use crate::run::{Operands, ScatterRun, check_dtype, check_reduction, make_plan, prepare};

impl Scatter<'_> {
    /// Plans the indices and computes the gradients, without a kept plan.
    pub(super) fn compute_gradients(
        &self,
        form: &Form,
        tensors: &Tensors<'_>,
        indices: &Indices<'_>,
        scale: f64,
    ) -> Result<(), ScatterError> {
        let (reducing, execution) = (self.meaning.reducing, &self.execution);
        let reduction = reducing.reduction;
        let (factor, in_place) = tensors.check(Some(indices), reduction, scale, execution)?;
        let shape = tensors.grad_output.shape();
        tensors.check_shapes(&form.updates_shape(shape, indices.layout().shape())?)?;
        tensors.check_inputs(reducing, false)?;
        let (output, indices) = (Layout::contiguous(shape), indices.integers()?);
        let plan = make_plan(&output, *form, indices, self.planning, execution)?;
        let forward = ScatterRun {
            plan: &plan,
            meaning: self.meaning,
            overwritten: None,
            execution: self.execution,
        };
        let call = Backward {
            forward,
            is_kept: false,
            tensors,
            factor,
            in_place,
        };
        let result = call.run();
        plan.into_spares().for_each(scratch::put_back);
        result
    }
}

impl ScatterRun<'_> {
    /// Computes the gradients with a kept plan.
    pub(super) fn compute_gradients(
        &self,
        tensors: &Tensors<'_>,
        scale: f64,
    ) -> Result<(), ScatterError> {
        let (plan, reducing, execution) = (self.plan, self.meaning.reducing, &self.execution);
        let (reduction, grad_output) = (reducing.reduction, tensors.grad_output);
        check_reduction(plan, reduction != Reduction::None)?;
        let (factor, in_place) = tensors.check(None, reduction, scale, execution)?;
        if let Some(saved) = self.overwritten {
            let saved = Elements::Plain(saved.tensor.dtype());
            check_dtype("data", saved, grad_output.elements())?;
        }
        if grad_output.shape() != plan.shape() {
            let actual = grad_output.shape();
            return Err(shape_error("grad_output", plan.shape(), actual));
        }
        tensors.check_shapes(plan.updates_shape())?;
        tensors.check_inputs(reducing, self.overwritten.is_some())?;
        let call = Backward {
            forward: *self,
            is_kept: true,
            tensors,
            factor,
            in_place,
        };
        call.run()
    }
}

/// One call that computes gradients. The tensors of the call have been checked.
pub(super) struct Backward<'a> {
    /// Forward pass: the plan and the options of the scatter, and the saved values of data that the
    /// scatter has overwritten.
    pub(super) forward: ScatterRun<'a>,
    /// Whether the plan is kept for further calls.
    pub(super) is_kept: bool,
    pub(super) tensors: &'a Tensors<'a>,
    pub(super) factor: Factor,
    /// Whether the gradient for data is written where the gradient of the output is stored.
    pub(super) in_place: bool,
}

/// Gradients that the pass over groups computes. A group has all tuples of one destination. Each
/// field states whether the pass computes the gradient for the tensor that the field names.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByGroups {
    pub(super) data: bool,
    pub(super) updates: bool,
}

impl Backward<'_> {
    /// Computes the requested gradients.
    fn run(&self) -> Result<(), ScatterError> {
        // If the output has no elements, then either each tuple was skipped or updates have no
        // elements. In both cases, all elements of the gradient for updates are 0.
        if self.factor.is_zero || self.forward.plan.shape().contains(&0) {
            return self.clear();
        }
        let by_groups = self.by_groups()?;
        let grad_output = self.tensors.grad_output;
        let is_read_later = by_groups.data && self.in_place && self.factor.value != 1.0;
        if !is_read_later {
            return self.run_passes(by_groups, grad_output);
        }
        // A pass multiplies the gradient of the output in place before the pass over groups runs.
        // The pass over groups needs the values from before the multiplication. The pass over
        // groups therefore reads a copy of the gradient of the output, which is made here.
        let (dtype, shape) = (self.factor.dtype, grad_output.shape());
        let contiguous = Layout::contiguous(shape);
        let layout = match self.forward.plan.scale().numbers_slices {
            true => contiguous,
            // Destination numbers that are offsets are valid only in the layout of the plan.
            false => *grad_output.layout(),
        };
        let (low, high) = layout.extent().unwrap_or((0, -1));
        let bytes = ((high - low + 1).unsigned_abs()).saturating_mul(dtype.size());
        let mut words: Vec<u128> = zeroed(bytes.div_ceil(size_of::<u128>()))?;
        let mut copy = AnyViewMut::from_bytes(cast_slice_mut(&mut words), dtype, layout)?;
        // SAFETY: the copy is new memory with the shape and the type of the gradient of the output.
        let pass = unsafe { copy_all(self.operation(1.0)?, &copy.target(), Some(grad_output)) };
        pass?.run(&self.forward.execution)?;
        let copy = AnyView::from_bytes(cast_slice(&words), dtype, layout)?;
        self.run_passes(by_groups, &copy.source())
    }

    /// Writes zeros to all requested gradients. The gradient of the output is not read, so its
    /// infinities and NaN have no effect.
    fn clear(&self) -> Result<(), ScatterError> {
        let written = [self.tensors.grad_data, self.tensors.grad_updates];
        let passes = written.map(|target| target.map(|target| self.zeros(target)).transpose());
        let [data, updates] = passes;
        let mut passes = [data?, updates?].into_iter().flatten();
        passes.try_for_each(|pass| pass.run(&self.forward.execution))
    }

    /// Returns the operation that copies gradients and multiplies them by `factor`.
    pub(super) fn operation(&self, factor: f64) -> Result<Operation, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.forward.execution.instructions());
        Operation::scaled_copy(dtype, factor, set).ok_or(ScatterError::NoGradient { dtype })
    }

    /// Returns the factor that turns the gradient of a destination into the gradient of each update
    /// of the destination: the caller's factor of the gradients (`scale`), negated for `Sub`.
    pub(super) fn factor_of_updates(&self) -> f64 {
        match self.reduction() {
            Reduction::Sub => -self.factor.value,
            _ => self.factor.value,
        }
    }

    /// Returns the reduction of the forward pass.
    pub(super) fn reduction(&self) -> Reduction {
        self.forward.meaning.reducing.reduction
    }

    /// Checks whether updates replace data: at a destination with tuples, the result of the forward
    /// pass is then independent of data.
    pub(super) fn is_replaced(&self) -> bool {
        self.reduction() == Reduction::None || !self.forward.meaning.reducing.include_self
    }

    /// Checks whether only the last update of a destination has a gradient. The gradients of the
    /// earlier updates of this destination are then 0.
    pub(super) fn last_only(&self) -> bool {
        let exact = self.forward.meaning.none_gradient == NoneGradient::LastWrite;
        self.reduction() == Reduction::None && exact
    }

    /// Chooses the gradients that the pass over groups computes. All other requested gradients are
    /// computed by copies, a scatter of zeros and a gather.
    fn by_groups(&self) -> Result<ByGroups, ScatterError> {
        let tensors = self.tensors;
        let whole_shares = [Reduction::None, Reduction::Add, Reduction::Sub];
        if !whole_shares.contains(&self.reduction()) {
            return Ok(ByGroups {
                data: tensors.grad_data.is_some(),
                updates: tensors.grad_updates.is_some(),
            });
        }
        let is_evenly_strided = |layout: &Layout<'_>| {
            let strides = layout.all_strides()?;
            Ok(self.forward.plan.binding(&strides).is_some())
        };
        let data = match tensors.grad_data {
            Some(data) => self.is_replaced() && !is_evenly_strided(data.layout())?,
            None => false,
        };
        let updates = tensors.grad_updates.is_some()
            && (!is_evenly_strided(tensors.grad_output.layout())?
                || (self.last_only() && self.forward.plan.first_duplicate()?.is_some()));
        Ok(ByGroups { data, updates })
    }

    /// Prepares all passes of the gradient, then runs these passes in order. No pass writes
    /// elements that a later pass reads.
    fn run_passes(
        &self,
        by_groups: ByGroups,
        grad_output: &Source<'_>,
    ) -> Result<(), ScatterError> {
        let tensors = self.tensors;
        let is_grouped = by_groups.data || by_groups.updates;
        let sorted = is_grouped.then(|| self.forward.plan.groups());
        let sorted = sorted.transpose()?;
        let located = sorted.map(|sorted| self.locate(by_groups, grad_output, sorted));
        let located = located.transpose()?;
        let pass = sorted.zip(located.as_ref());
        let pass = pass.map(|(sorted, tensors)| self.group_pass(sorted, tensors));
        let pass = pass.transpose()?;
        let groups = pass.as_ref().map(|pass| self.over_groups(pass));
        let mut groups = groups.transpose()?;
        let mut passes: SmallVec<[Pass<'_>; 4]> = SmallVec::new();
        match tensors.grad_updates {
            Some(target) if !by_groups.updates => passes.push(self.gather(grad_output, target)?),
            // Skipped tuples belong to no group, so the pass over groups does not write the
            // gradients of their updates. The pass added here writes zeros to these gradients.
            Some(target) if self.forward.plan.skipped() > 0 => passes.push(self.zeros(target)?),
            _ => {}
        }
        if !by_groups.data {
            passes.extend(groups.take());
        }
        if let Some(target) = tensors.grad_data {
            let data = (!self.in_place).then_some(grad_output);
            let clears = self.is_replaced() && !by_groups.data;
            if data.is_none() && self.factor.value != 1.0 {
                passes.push(self.multiply(target)?);
            } else if data.is_some() && !clears {
                let operation = self.operation(self.factor.value)?;
                // SAFETY: `Tensors::check` and `check_shapes` have checked the types, the shapes,
                // and that the gradient for data and the gradient of the output share no byte.
                passes.push(unsafe { copy_all(operation, target, data) }?);
            }
            if clears {
                passes.push(self.copy_and_clear(data, target)?);
            }
        }
        passes.extend(groups);
        let mut passes = passes.into_iter();
        passes.try_for_each(|pass| pass.run(&self.forward.execution))
    }

    /// Prepares the pass over groups, which computes gradients destination by destination. A group
    /// has all tuples of one destination. `sorted` has all tuples, sorted by destination.
    fn group_pass<'p>(
        &'p self,
        sorted: &'p Sorted,
        tensors: &'p TensorsAt,
    ) -> Result<GradientPass<'p>, ScatterError> {
        // SAFETY: `Tensors::check` and `check_shapes` have checked that the tensors have the shapes
        // of the plan. These functions have also checked that no tensor that is written shares
        // memory with another tensor, except that the gradient for data may be the gradient of the
        // output. The saved windows belong to the destinations of this plan.
        Ok(unsafe { GradientPass::new(self.sharing()?, self.forward.plan, sorted, tensors) })
    }

    /// Prepares a pass that moves the windows of the plan's tuples.
    fn transfer(&self, operands: &Operands<'_>) -> Result<Pass<'_>, ScatterError> {
        let strides = operands.numbered().all_strides()?;
        let Some(numbered) = self.forward.plan.binding(&strides) else {
            return Err(self.forward.plan.mismatch(operands.numbered()));
        };
        // SAFETY: `Tensors::check` and `check_shapes` have checked that the tensors have the shapes
        // of the plan, and that no other tensor of `operands` shares memory with the output.
        let prepared = unsafe { prepare(self.forward.plan, &numbered, operands, self.is_kept) };
        Ok(Pass::Transfer(prepared?))
    }

    /// Prepares the pass that writes the gradient for updates: each update gets the gradient of its
    /// destination times [`factor_of_updates`](Self::factor_of_updates).
    fn gather(
        &self,
        grad_output: &Source<'_>,
        target: &Target<'_>,
    ) -> Result<Pass<'_>, ScatterError> {
        let operation = self.operation(self.factor_of_updates())?;
        self.transfer(&Operands {
            direction: Direction::Gather,
            operation: &operation,
            output: target,
            source: grad_output,
            copied: None,
        })
    }

    /// Prepares the pass that writes zeros to `target`, the gradient for data, where updates have
    /// replaced data. `data` is the gradient of the output. The pass first copies `data` to
    /// `target`. `None`: `target` is the gradient of the output, so nothing is copied.
    fn copy_and_clear(
        &self,
        data: Option<&Source<'_>>,
        target: &Target<'_>,
    ) -> Result<Pass<'_>, ScatterError> {
        let operation = self.operation(self.factor.value)?;
        let strides = zero_strides(self.forward.plan.updates_shape())?;
        let updates = Readable::zeros(self.forward.plan.updates_shape(), &strides);
        let updates = Source::of_zeros(&updates, self.factor.dtype);
        self.transfer(&Operands {
            direction: Direction::Scatter,
            operation: &operation,
            output: target,
            source: &updates,
            copied: data,
        })
    }

    /// Prepares the pass that multiplies a gradient in place.
    fn multiply(&self, target: &Target<'_>) -> Result<Pass<'_>, ScatterError> {
        let (dtype, set) = (self.factor.dtype, self.forward.execution.instructions());
        let operation = Operation::scale_in_place(dtype, self.factor.value, set);
        let operation = operation.ok_or(ScatterError::NoGradient { dtype })?;
        // SAFETY: there is no data. `Tensors::check` has checked the type of `target`. `target` is
        // the gradient of the output, so its elements are initialised.
        unsafe { copy_all(operation, target, None) }
    }

    /// Prepares the pass that fills a gradient with zeros.
    fn zeros(&self, target: &Target<'_>) -> Result<Pass<'_>, ScatterError> {
        let strides = zero_strides(target.shape())?;
        let zeros = Readable::zeros(target.shape(), &strides);
        let zeros = Source::of_zeros(&zeros, self.factor.dtype);
        // SAFETY: the zeros have the shape and the type of `target`, and are static memory.
        unsafe { copy_all(self.operation(1.0)?, target, Some(&zeros)) }
    }
}
