//! The views that a caller passes for the gradient of a scatter.
//!
//! This module knows views and how a result is allocated. It does not know reductions.

use super::tensors::Tensors;
use crate::error::ScatterError;
use crate::operand::{Input, Output, Start, Target};

/// Tensors of the forward pass that a gradient may depend on.
///
/// The gradients of `mul`, `min` and `max` need `updates`. If the existing value takes part, these
/// gradients also need `data`, unless a [`Saved`](crate::Saved) holds the values of data. Gradients
/// of other reductions need no tensor of the forward pass, so [`Forward::none`] is enough.
#[derive(Clone, Copy, Debug)]
pub struct Forward<V> {
    /// Data before the scatter.
    pub data: Option<V>,
    /// Updates of the scatter.
    pub updates: Option<V>,
}

impl<V> Forward<V> {
    /// Makes a `Forward` without a tensor.
    pub fn none() -> Self {
        Self {
            data: None,
            updates: None,
        }
    }

    /// Makes a `Forward` with data and updates.
    pub fn new(data: V, updates: V) -> Self {
        Self {
            data: Some(data),
            updates: Some(updates),
        }
    }

    /// Makes a `Forward` with updates only.
    pub fn updates(updates: V) -> Self {
        Self {
            data: None,
            updates: Some(updates),
        }
    }
}

/// Outputs for the gradients of a scatter. `None`: the gradient is not requested.
#[derive(Clone, Copy, Debug)]
pub struct Gradients<O> {
    /// Output for the gradient for data, with the shape of data.
    pub data: Option<O>,
    /// Output for the gradient for updates, with the shape of updates.
    pub updates: Option<O>,
}

impl<O> Gradients<O> {
    /// Requests both gradients.
    pub fn new(data: O, updates: O) -> Self {
        Self {
            data: Some(data),
            updates: Some(updates),
        }
    }

    /// Requests the gradient for data only.
    pub fn data(data: O) -> Self {
        Self {
            data: Some(data),
            updates: None,
        }
    }

    /// Requests the gradient for updates only.
    pub fn updates(updates: O) -> Self {
        Self {
            data: None,
            updates: Some(updates),
        }
    }
}

/// Calls `call` with the tensors that a gradient reads.
fn read<V: Input, R>(
    grad_output: &V,
    forward: &Forward<V>,
    call: impl FnOnce(Tensors<'_>) -> R,
) -> R {
    let [data, updates] =
        [&forward.data, &forward.updates].map(|view| view.as_ref().map(Input::source));
    call(Tensors {
        grad_output: &grad_output.source(),
        data: data.as_ref(),
        updates: updates.as_ref(),
        grad_data: None,
        grad_updates: None,
    })
}

/// Calls `call` with all tensors of a gradient.
pub(super) fn lend<O: Output>(
    grad_output: &O::Input,
    forward: &Forward<O::Input>,
    gradients: Gradients<O>,
    call: impl FnOnce(&Tensors<'_>) -> Result<(), ScatterError>,
) -> Result<(), ScatterError> {
    with_optional_target(gradients.data, |grad_data| {
        with_optional_target(gradients.updates, |grad_updates| {
            read(grad_output, forward, |tensors| {
                call(&Tensors {
                    grad_data,
                    grad_updates,
                    ..tensors
                })
            })
        })
    })
}

/// Passes `output` to `call` as an operand. Without an output, `call` gets `None`.
fn with_optional_target<O: Output>(
    output: Option<O>,
    call: impl FnOnce(Option<&Target<'_>>) -> Result<(), ScatterError>,
) -> Result<(), ScatterError> {
    match output {
        Some(output) => output.with_target(|target| call(Some(target))),
        None => call(None),
    }
}

/// Allocates the gradient for updates with the given shape. `call` writes this gradient.
pub(super) fn allocate_updates<V: Input>(
    grad_output: &V,
    forward: &Forward<V>,
    updates_shape: &[usize],
    call: impl FnOnce(&Tensors<'_>) -> Result<(), ScatterError>,
) -> Result<V::Owned, ScatterError> {
    V::allocate(updates_shape, Start::Like(grad_output), |made, _| {
        read(grad_output, forward, |tensors| {
            call(&Tensors {
                grad_updates: Some(&made),
                ..tensors
            })
        })
    })
}

/// Allocates the gradients for data and for updates with the given shapes. `call` writes these
/// gradients.
pub(super) fn allocate<V: Input>(
    grad_output: &V,
    forward: &Forward<V>,
    [shape, updates_shape]: [&[usize]; 2],
    call: impl FnOnce(&Tensors<'_>) -> Result<(), ScatterError>,
) -> Result<(V::Owned, V::Owned), ScatterError> {
    let mut of_updates = None;
    let of_data = V::allocate(shape, Start::Like(grad_output), |grad_data, _| {
        let made = allocate_updates(grad_output, forward, updates_shape, |tensors| {
            call(&Tensors {
                grad_data: Some(&grad_data),
                ..*tensors
            })
        });
        of_updates = Some(made?);
        Ok(())
    })?;
    // The closure has set `of_updates`, or an error was returned above.
    let of_updates = of_updates.ok_or(ScatterError::OutOfMemory { bytes: 0 })?;
    Ok((of_data, of_updates))
}
