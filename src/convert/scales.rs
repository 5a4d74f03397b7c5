//! Scales and zero points: their shapes and their values.
//!
//! This module knows broadcasting and the allowed values. It does not know how a value is used.

#![expect(unsafe_code, reason = "reads checked views element by element")]

use crate::conversion::{Format, Scaling};
use crate::element::DType;
use crate::error::ScatterError;
use crate::memory::copied;
use crate::operand::{Dims, Elements, Layout, Source, offset_of};
use crate::run::check_dtype;

/// A scale or a zero point of a write, broadcast to the shape of the updates.
#[derive(Debug)]
pub(super) struct Broadcast {
    /// Address of element `[0, 0, ...]`.
    pub(super) base: *const u8,
    /// Strides in elements, one for each axis of the updates. Broadcast axes have the stride 0.
    pub(super) strides: Dims<isize>,
}

/// Checks a scale for updates of shape `updates`. The factor of each value is finite, because a
/// product of zero and infinity would be a NaN whose sign depends on the machine.
pub(super) fn scale(
    source: &Source<'_>,
    updates: &[usize],
    scaling: Scaling,
) -> Result<Broadcast, ScatterError> {
    let broadcast = broadcast("scale", DType::F32, source, updates)?;
    each_value(source, |position, bytes| {
        let value = f32::from_ne_bytes(bytes);
        let factor = match scaling {
            Scaling::Divide => value,
            Scaling::Reciprocal => 1.0 / value,
        };
        match value.is_finite() && factor.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(ScatterError::InvalidScale { position }),
        }
    })?;
    Ok(broadcast)
}

/// Checks a zero point for updates of shape `updates` that are converted to `format`.
pub(super) fn zero_point(
    source: &Source<'_>,
    updates: &[usize],
    format: Format,
) -> Result<Broadcast, ScatterError> {
    let Some((lowest, highest)) = format.integer_range() else {
        return Err(ScatterError::UnsupportedOption {
            option: "zero_point",
        });
    };
    let broadcast = broadcast("zero_point", DType::I32, source, updates)?;
    each_value(source, |position, bytes| {
        let zero_point = i32::from_ne_bytes(bytes);
        match (lowest..=highest).contains(&zero_point) {
            true => Ok(()),
            false => Err(ScatterError::ZeroPointOutOfRange {
                position,
                zero_point,
                format,
            }),
        }
    })?;
    Ok(broadcast)
}

/// Broadcasts `source` to the shape `updates`, by the rules of numpy: the axes are aligned at the
/// last axis, and an axis of size 1 is repeated.
fn broadcast(
    tensor: &'static str,
    dtype: DType,
    source: &Source<'_>,
    updates: &[usize],
) -> Result<Broadcast, ScatterError> {
    check_dtype(tensor, source.elements(), Elements::Plain(dtype))?;
    let refused = || {
        ScatterError::with_facts(|| {
            Ok(ScatterError::BroadcastShape {
                tensor,
                shape: copied(source.shape())?,
                updates: copied(updates)?,
            })
        })
    };
    let missing = (updates.len().checked_sub(source.shape().len())).ok_or_else(refused)?;
    let strides = source.layout().all_strides()?;
    let own = source.shape().iter().zip(&*strides);
    if own
        .clone()
        .zip(&updates[missing..])
        .any(|((&own, _), &size)| own != 1 && own != size)
    {
        return Err(refused());
    }
    let repeated = std::iter::repeat_n(0, missing);
    let kept = own.map(|(&size, &stride)| if size == 1 { 0 } else { stride });
    Ok(Broadcast {
        base: source.as_ptr(),
        strides: Dims::collect(updates.len(), repeated.chain(kept))?,
    })
}

/// Calls `check` with the row-major position and the bytes of each element of 4 bytes. An element
/// that is repeated by stride 0 is passed once, with its first position.
fn each_value(
    source: &Source<'_>,
    mut check: impl FnMut(usize, [u8; 4]) -> Result<(), ScatterError>,
) -> Result<(), ScatterError> {
    let layout = source.layout();
    if layout.shape().contains(&0) {
        return Ok(());
    }
    let strides = layout.all_strides()?;
    let stored = layout.shape().iter().zip(&*strides);
    let stored = stored.map(|(&size, &stride)| if stride == 0 { 1 } else { size });
    let stored = Dims::collect(strides.len(), stored)?;
    let (sizes, stored) = (
        Layout::contiguous(layout.shape()),
        Layout::of_parts(&stored, &strides),
    );
    let contiguous = sizes.all_strides()?;
    let positions = Layout::of_parts(stored.shape(), &contiguous);
    let (len, step) = stored.dims_from_last().next().unwrap_or((1, 0));
    let outer = |layout: &Layout<'_>, row: usize| offset_of(layout.dims_from_last().skip(1), row);
    for row in 0..stored.shape().iter().product::<usize>() / len {
        let first = outer(&stored, row);
        let position = outer(&positions, row).cast_unsigned();
        for at in 0..len {
            let offset = first + at.cast_signed() * step;
            let value = source.as_ptr().cast::<[u8; 4]>().wrapping_offset(offset);
            // SAFETY: `offset` is the offset of an element of the view, because `row` and `at` are
            // a position in its shape. The view guarantees that its elements are valid for reads.
            // The callers have checked that elements have 4 bytes.
            check(position + at, unsafe { value.read() })?;
        }
    }
    Ok(())
}
