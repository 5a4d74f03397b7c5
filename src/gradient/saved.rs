//! A forward pass that keeps what its gradient will need.

use super::factor::Factor;
use crate::error::ScatterError;
use crate::operand::Layout;
use crate::operand::indices::Integers;
use crate::ops::Scatter;
use crate::plan::Form;
use crate::run::{Operands, Overwritten, ScatterPlan, ScatterRun, execute, make_plan};

/// What a forward pass has kept for its gradient: the plan, and data that was written over.
///
/// [`Scatter::forward`](crate::Scatter::forward), `forward_into` and `forward_in_place` return
/// it. It keeps data after an in-place call of `mul`, `min` or `max`: the windows that were
/// overwritten. It keeps all of data where the output is not evenly spaced along the indexed
/// axes. A `Saved` borrows nothing. Callers hand the other tensors of a gradient over as
/// [`Forward`](crate::Forward).
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
/// // Data has been written over; what it held is in the state.
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
    /// The plan of the forward pass, of a contiguous output where its own was not evenly
    /// spaced along the axes that are indexed.
    pub fn plan(&self) -> &ScatterPlan {
        &self.plan
    }

    /// Bytes of data that were saved before any was written over.
    pub fn bytes(&self) -> usize {
        let overwritten = self.overwritten.as_ref();
        overwritten.map_or(0, |overwritten| overwritten.tensor.as_bytes().len())
    }

    /// A run that means what the operator meant, on rayon, and whose gradients begin with
    /// the data of the forward pass.
    #[inline]
    pub fn run(&self) -> ScatterRun<'_> {
        ScatterRun {
            overwritten: self.overwritten.as_ref(),
            ..self.plan.run()
        }
    }
}

/// Runs a scatter, in place where it has no data, and keeps what its gradient needs.
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
    // Offsets in one layout say nothing of another, which gradients may have.
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
