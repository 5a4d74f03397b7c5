//! Elements of four bits, two to a byte: moved as bytes, where every run that is moved is
//! whole bytes.
//!
//! Knows shapes. Knows nothing of memory.

use crate::api::Shape;
use crate::attributes::Attributes;
use crate::definition::Meaning;
use crate::failure::Failure;

/// The shapes of data and updates in bytes, and the axis among them.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) data: Shape,
    pub(crate) updates: Shape,
    pub(crate) axis: isize,
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
    attributes: &Attributes,
    data: &[usize],
    indices: &[usize],
    updates: &[usize],
) -> Result<Folded, Failure> {
    let (kept, listed, axis) = match attributes.meaning {
        Meaning::Nd => {
            let scatter = attributes.scatter(0);
            let expected = scatter.updates_shape(data, indices)?;
            if expected != updates {
                return Err(Failure::invalid(format_args!(
                    "`updates` has the shape {updates:?} where {expected:?} is expected"
                )));
            }
            let tuple = indices.last().copied().unwrap_or(0);
            (tuple, indices.len() - 1, 0)
        }
        Meaning::Elements => {
            return Err(Failure::unsupported(
                "elements of four bits are moved in runs of whole bytes; this operator moves single ones",
            ));
        }
        Meaning::Cache => {
            let rank = data.len();
            let axis = if attributes.axis < 0 {
                attributes.axis.checked_add_unsigned(rank)
            } else {
                Some(attributes.axis)
            };
            let axis = axis.and_then(|axis| usize::try_from(axis).ok());
            let axis = axis.filter(|&axis| axis < rank).ok_or_else(|| {
                let axis = attributes.axis;
                Failure::invalid(format_args!("axis {axis} of a tensor of rank {rank}"))
            })?;
            if updates.len() != rank || updates[axis + 1..] != data[axis + 1..] {
                return Err(Failure::invalid(format_args!(
                    "`update` has the shape {updates:?} beside a cache of {data:?}"
                )));
            }
            (axis + 1, axis + 1, axis)
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
        axis: axis.cast_signed(),
    })
}
