//! The views that the gradient of a scatter takes, as a caller hands them over.

use super::tensors::Tensors;
use crate::error::ScatterError;
use crate::operand::{Input, Output, Start};

/// Tensors of the forward pass, for a gradient that depends on them.
///
/// `mul`, `min` and `max` need `updates`, and `data` where the value that is there takes
/// part; of others nothing is read, and [`Forward::none`] will do.
#[derive(Clone, Copy, Debug)]
pub struct Forward<V> {
    /// What the scatter began with.
    pub data: Option<V>,
    /// Its updates.
    pub updates: Option<V>,
}

impl<V> Forward<V> {
    /// No tensor.
    pub fn none() -> Self {
        Self {
            data: None,
            updates: None,
        }
    }

    /// Both.
    pub fn new(data: V, updates: V) -> Self {
        Self {
            data: Some(data),
            updates: Some(updates),
        }
    }

    /// Updates alone.
    pub fn updates(updates: V) -> Self {
        Self {
            data: None,
            updates: Some(updates),
        }
    }
}

/// The gradients of a scatter that are wanted, and where they go.
#[derive(Clone, Copy, Debug)]
pub struct Gradients<O> {
    /// That for data, of its shape.
    pub data: Option<O>,
    /// That for updates, of their shape.
    pub updates: Option<O>,
}

impl<O> Gradients<O> {
    /// Both.
    pub fn new(data: O, updates: O) -> Self {
        Self {
            data: Some(data),
            updates: Some(updates),
        }
    }

    /// That for data alone.
    pub fn data(data: O) -> Self {
        Self {
            data: Some(data),
            updates: None,
        }
    }

    /// That for updates alone.
    pub fn updates(updates: O) -> Self {
        Self {
            data: None,
            updates: Some(updates),
        }
    }
}

/// Hands the tensors that a gradient reads to `call`.
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

/// Hands all tensors of a gradient to `call`.
pub(super) fn lend<O: Output>(
    grad_output: &O::Input,
    forward: &Forward<O::Input>,
    mut gradients: Gradients<O>,
    call: impl FnOnce(&Tensors<'_>) -> Result<(), ScatterError>,
) -> Result<(), ScatterError> {
    let data = gradients.data.as_mut().map(Output::target);
    let updates = gradients.updates.as_mut().map(Output::target);
    read(grad_output, forward, |tensors| {
        call(&Tensors {
            grad_data: data.as_ref(),
            grad_updates: updates.as_ref(),
            ..tensors
        })
    })
}

/// Allocates the gradient for updates, with this shape, for `call` to write.
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

/// Allocates both gradients, with these shapes, for `call` to write: that for data, and
/// that for updates.
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
    // The call above has made it, or failed.
    let of_updates = of_updates.ok_or(ScatterError::OutOfMemory { bytes: 0 })?;
    Ok((of_data, of_updates))
}
