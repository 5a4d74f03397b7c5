//! A forward pass that saves the plan and the data that its gradient needs.
//!
//! This module knows which data the forward pass overwrites, and for which reductions the gradient
//! needs this data. This module does not know how the gradient is computed.

use super::factor::Factor;
use crate::error::ScatterError;
use crate::operand::Layout;
use crate::operand::indices::Integers;
use crate::ops::Scatter;
use crate::plan::Form;
use crate::run::{Operands, Overwritten, ScatterPlan, ScatterRun, execute, make_plan};

/// State of a forward pass that its gradient needs: the plan, and data that the pass has
/// overwritten.
///
/// [`Scatter::forward`](crate::Scatter::forward), `forward_into` and `forward_in_place` return a
/// `Saved`. A `Saved` usually holds only the plan. After an in-place forward pass that combines the
/// existing value with updates by `mul`, `min` or `max`, a `Saved` also holds previous values of
/// data. These are the values of the windows of all destinations with tuples. If data is not evenly
/// strided along the indexed axes, the `Saved` instead holds the previous values of all elements of
/// data.
///
/// A `Saved` borrows nothing. A gradient may also need tensors of the forward pass that are not in
/// the `Saved`: the updates, and data. Callers pass these tensors as [`Forward`](crate::Forward).
///
/// # Examples
///
/// ```
/// use ndscatter::{Forward, Reduction, Scatter, TensorView, TensorViewMut};
///
/// let mut data = [3.0_f32, 5.0];
/// let at = TensorView::contiguous(&[0_i64, 0], &[2, 1])?;
/// let updates = TensorView::from(&[4.0_f32, 4.0]);
/// let largest = Scatter::nd().reduction(Reduction::Max);
/// let saved = largest.forward_in_place(TensorViewMut::from(&mut data), at, updates)?;
/// assert_eq!(data, [4.0, 5.0]);
/// // `data` is overwritten. The saved state has its previous values.
/// let grad_output = TensorView::from(&[1.0_f32, 1.0]);
/// let forward = Forward::updates(updates);
/// let (grad_data, grad_updates) = saved.run().backward(grad_output, forward, 1.0)?;
/// assert_eq!(grad_data, [0.0, 1.0]);
/// assert_eq!(grad_updates, [0.5, 0.5]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct Saved {
    plan: ScatterPlan,
    overwritten: Option<Overwritten>,
}

impl Saved {
    /// Returns the plan of the forward pass. If the output of the forward pass is not evenly
    /// strided along the indexed axes, the plan is for a contiguous output instead.
    pub fn plan(&self) -> &ScatterPlan {
        &self.plan
    }

    /// Returns the size in bytes of the saved values of data. 0 if no values were saved.
    pub fn bytes(&self) -> usize {
        let overwritten = self.overwritten.as_ref();
        overwritten.map_or(0, |overwritten| overwritten.tensor.as_bytes().len())
    }

    /// Returns a call with the options of the operator, on rayon by default. The gradients of this
    /// call use the saved data.
    #[inline]
    pub fn run(&self) -> ScatterRun<'_> {
        ScatterRun {
            overwritten: self.overwritten.as_ref(),
            ..self.plan.run()
        }
    }
}

/// Runs a scatter and saves the plan and the data that its gradient needs.
pub(crate) fn forward_once(
    scatter: &Scatter<'_>,
    form: &Form,
    operands: &Operands<'_>,
    indices: Integers<'_>,
) -> Result<Saved, ScatterError> {
    let (planning, execution) = (scatter.planning, &scatter.execution);
    let dtype = Factor::new(operands.output.elements(), 1.0)?.dtype;
    let output = operands.output.layout();
    let (shape, listed) = (output.shape(), indices.layout().shape());
    form.check_updates(shape, listed, operands.listed_shape())?;
    let plan = make_plan(output, *form, indices, planning, execution)?;
    // Destination numbers that are offsets are valid only in the layout of this output. Gradients
    // may have another layout, so the plan that is kept is for a contiguous output.
    let kept = if plan.scale().numbers_slices {
        None
    } else {
        let output = Layout::contiguous(shape);
        Some(make_plan(&output, *form, indices, planning, execution)?)
    };
    let reducing = scatter.meaning.reducing;
    let depends = reducing.include_self && reducing.reduction.depends_on_values();
    let is_overwritten = operands.copied.is_none() && depends;
    let overwritten = is_overwritten.then(|| match kept {
        None => Overwritten::windows(&plan, operands.output, dtype, execution),
        Some(_) => Overwritten::all(operands.output, dtype, execution),
    });
    let overwritten = overwritten.transpose()?;
    execute(&plan, operands, execution)?;
    let plan = ScatterPlan {
        plan: kept.unwrap_or(plan),
        meaning: scatter.meaning,
    };
    Ok(Saved { plan, overwritten })
}
