//! Elements of four bits, two to a byte: moved as bytes, where every run that is moved is
//! whole bytes.
//!
//! Knows shapes. Knows nothing of memory.

use ndscatter::Operator;

use crate::api::Shape;
use crate::failure::Failure;

/// The shapes of data and updates in bytes, and the operator among them.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) data: Shape,
    pub(crate) updates: Shape,
    pub(crate) operator: Operator,
}

/// Folds the dims of a run that is moved, all behind the first `kept` of data, into one of
/// bytes.
fn folded(shape: &[usize], kept: usize, bytes: usize) -> Shape {
    let mut shape: Shape = shape[..kept].into();
    shape.push(bytes);
    shape
}

/// # Errors
///
/// A run that is not whole bytes, and shapes that do not fit together.
pub(crate) fn fold(
    operator: Operator,
    data: &[usize],
    indices: &[usize],
    updates: &[usize],
) -> Result<Folded, Failure> {
    let expected = operator.for_updates(updates).updates_shape(data, indices)?;
    if expected != updates {
        return Err(Failure::invalid(format_args!(
            "updates have the shape {updates:?} where {expected:?} is expected"
        )));
    }
    let operator = operator.for_rank(data.len())?;
    let (kept, listed) = match operator {
        Operator::Nd { .. } => {
            let tuple = indices.last().copied().unwrap_or(0);
            (tuple, indices.len() - 1)
        }
        Operator::Cache { axis, .. } => {
            let kept = axis.unsigned_abs() + 1;
            (kept, kept)
        }
        _ => {
            return Err(Failure::unsupported(
                "elements of four bits are moved in runs of whole bytes; this operator moves single ones",
            ));
        }
    };
    let run: usize = data[kept..].iter().product();
    if !run.is_multiple_of(2) {
        return Err(Failure::unsupported(format_args!(
            "elements of four bits are moved in runs of whole bytes; here a run has {run} of them"
        )));
    }
    Ok(Folded {
        data: folded(data, kept, run / 2),
        updates: folded(updates, listed, run / 2),
        operator,
    })
}
