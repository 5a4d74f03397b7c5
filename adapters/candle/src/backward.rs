//! Gradients of scatters.
//!
//! This module knows which of the tensors of a scatter have gradients. ndscatter computes the
//! gradients.

use std::cell::Cell;

use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, CustomOp3, Error, Layout, Result, Shape, Storage, Tensor};
use ndscatter::{Forward, Gradients};

use crate::scatter::ScatterOp;
use crate::view::{Place, Values, for_values};

const NAME: &str = "nd-scatter-backward";

/// Returns the gradients for data and for updates. The gradient of a tensor that candle does not
/// track is `None`.
pub(crate) fn scatter(
    op: &ScatterOp,
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    gradient: &Tensor,
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    if !gradient.dtype().is_float() {
        return Err(Error::BackwardNotSupported { op: NAME }.bt());
    }
    let passed = (data.track_op() && op.passes_gradient()).then(|| gradient.clone());
    let wanted = match (data.track_op() && passed.is_none(), updates.track_op()) {
        (true, true) => Wanted::Both,
        (true, false) => Wanted::Data,
        (false, true) => Wanted::Updates,
        (false, false) => return Ok((passed, None)),
    };
    let updates_shape = updates.shape();
    // The indices are locked first, while this thread holds no lock, because `storage_and_layout`
    // waits for writers that wait.
    let (storage, layout) = indices.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Err(Error::UnsupportedDTypeForOp(indices.dtype(), NAME).bt());
    };
    let call = Backward {
        op,
        indices: (storage, layout),
        wanted,
        for_updates: Cell::new(None),
    };
    let first = data.apply_op3_no_bwd(updates, gradient, &call)?;
    Ok(match wanted {
        Wanted::Data => (Some(first), None),
        Wanted::Updates => (passed, Some(first)),
        Wanted::Both => {
            let storage = call.for_updates.take().map(Storage::Cpu);
            let second = storage.map(|storage| {
                Tensor::from_storage(storage, updates_shape, BackpropOp::none(), false)
            });
            (Some(first), second)
        }
    })
}

/// The gradients that a call computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Data,
    Updates,
    Both,
}

/// The computation of gradients, as an operator on data, updates and the gradient of the result.
/// candle locks these three tensors together, also if they share a storage.
struct Backward<'a> {
    op: &'a ScatterOp,
    indices: (&'a CpuStorage, &'a Layout),
    wanted: Wanted,
    /// The second result, if both gradients are wanted.
    for_updates: Cell<Option<CpuStorage>>,
}

impl Backward<'_> {
    /// Returns the wanted gradients: one, or first the gradient for data and then the gradient for
    /// updates.
    fn compute<T: Values>(
        &self,
        (gradient, gradient_layout): (&[T], &Layout),
        (data, data_layout): (&CpuStorage, &Layout),
        (updates, updates_layout): (&CpuStorage, &Layout),
    ) -> Result<(Vec<T>, Option<Vec<T>>)> {
        let places = [gradient_layout, data_layout, updates_layout].map(Place::of);
        let gradient = places[0].view(gradient).map_err(Error::wrap)?;
        let data = places[1].view(T::values(data)?).map_err(Error::wrap)?;
        let updates = places[2].view(T::values(updates)?).map_err(Error::wrap)?;
        let (storage, layout) = self.indices;
        let indices = self.op.index_tensor(storage, layout, data_layout.dims());
        indices.with(|bounds, indices| {
            let (scatter, forward) = (self.op.with_bounds(bounds)?, Forward::new(data, updates));
            match self.wanted {
                Wanted::Both => {
                    let (first, second) = scatter.backward(gradient, forward, indices, 1.0)?;
                    Ok((first.into_vec(), Some(second.into_vec())))
                }
                Wanted::Updates => {
                    let first = scatter.backward_updates(gradient, forward, indices, 1.0)?;
                    Ok((first.into_vec(), None))
                }
                Wanted::Data => {
                    let dims = data_layout.dims();
                    let mut first = vec![T::zero(); data_layout.shape().elem_count()];
                    let output = ndscatter::TensorViewMut::contiguous(&mut first, dims)?;
                    scatter.backward_into(
                        gradient,
                        forward,
                        indices,
                        1.0,
                        Gradients::data(output),
                    )?;
                    Ok((first, None))
                }
            }
        })
    }
}

impl CustomOp3 for Backward<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cpu_fwd(
        &self,
        data: &CpuStorage,
        data_layout: &Layout,
        updates: &CpuStorage,
        updates_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (data, updates) = ((data, data_layout), (updates, updates_layout));
        let first = for_values!(gradient, NAME, (values, of) => {
            let (first, second) = self.compute((values, gradient_layout), data, updates)?;
            self.for_updates.set(second.map(of));
            Ok(of(first))
        })?;
        let of_updates = self.wanted == Wanted::Updates;
        let layout = if of_updates { updates.1 } else { data.1 };
        Ok((first, layout.shape().clone()))
    }
}
