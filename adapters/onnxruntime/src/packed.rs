//! Converts scatters of 4-bit elements to scatters of bytes.
//!
//! A byte holds two elements. The conversion requires that every window is whole bytes. Knows
//! shapes. Knows nothing of memory.

use ndscatter::Operator;

use crate::api::Shape;
use crate::failure::Failure;

/// A scatter of bytes that replaces a scatter of 4-bit elements: the shapes of data and updates,
/// whose elements are bytes, and the operator for these shapes.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) data: Shape,
    pub(crate) updates: Shape,
    pub(crate) operator: Operator,
}

/// Replaces the dims of a window, which follow the first `kept` dims, by one dim of `bytes`.
fn folded(shape: &[usize], kept: usize, bytes: usize) -> Shape {
    let mut shape: Shape = shape[..kept].into();
    shape.push(bytes);
    shape
}

/// Converts the shapes of 4-bit elements to shapes of bytes.
///
/// # Errors
///
/// Fails if a window is not whole bytes, or if the shapes do not fit together.
pub(crate) fn fold(
    operator: Operator,
    data: &[usize],
    indices: &[usize],
    updates: &[usize],
) -> Result<Folded, Failure> {
    let expected = operator.for_updates(updates).updates_shape(data, indices)?;
    if expected != updates {
        return Err(Failure::invalid(format_args!(
            "`updates` has the shape {updates:?}; use {expected:?}"
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
                "4-bit elements can be moved only as whole bytes; this operator moves single \
                 elements",
            ));
        }
    };
    let window: usize = data[kept..].iter().product();
    if !window.is_multiple_of(2) {
        return Err(Failure::unsupported(format_args!(
            "4-bit elements can be moved only as whole bytes; each slice has {window} elements, an \
             odd number"
        )));
    }
    Ok(Folded {
        data: folded(data, kept, window / 2),
        updates: folded(updates, listed, window / 2),
        operator,
    })
}
