//! Converts scatters of 4-bit elements to scatters of bytes.
//!
//! A byte holds two elements. The conversion fails unless every window occupies a whole number of
//! bytes. This module knows shapes. It knows nothing of memory.

use ndscatter::Operator;

use crate::api::Shape;
use crate::failure::Failure;

/// A scatter of bytes that has the effect of a scatter of 4-bit elements. The fields `data` and
/// `updates` are shapes of tensors whose elements are bytes. The field `operator` is the operator
/// for these shapes.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) data: Shape,
    pub(crate) updates: Shape,
    pub(crate) operator: Operator,
}

/// Returns `shape` with all dims after the first `kept` dims replaced by one dim of size `bytes`.
/// The replaced dims are the dims of a window.
fn folded(shape: &[usize], kept: usize, bytes: usize) -> Shape {
    let mut shape: Shape = shape[..kept].into();
    shape.push(bytes);
    shape
}

/// Converts a scatter of 4-bit elements with these shapes to a scatter of bytes.
///
/// # Errors
///
/// Fails if a window has an odd number of elements, or if the operator is ScatterElements or
/// Scatter, which write single elements. Fails if `updates` is not the shape that `data` and
/// `indices` require.
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
