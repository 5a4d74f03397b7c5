//! The backend decorator Autodiff: a scatter that burn records, and its step of the backward pass.
//!
//! This module knows which tensors a gradient reads. It does not know how gradients are computed.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_backend::TensorMetadata;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use ndscatter::{Execution, Reduction, Scatter};

use crate::{Error, Forward, ScatterBackend, ScatterGradient};

/// The step of the backward pass.
#[derive(Debug)]
struct ScatterStep;

impl<B: ScatterGradient> Backward<B, 2> for ScatterStep {
    type State = (Scatter<'static>, Forward<B>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (scatter, forward) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        // burn's backward pass has no errors. The forward pass has checked all arguments, so only
        // an allocation or a pool can fail here.
        let gradients = B::float_nd_scatter_backward(&scatter, grad, forward, wanted)
            .unwrap_or_else(|error| panic!("the gradient of a scatter failed: {error}"));
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<B>(parent.id, gradient);
            }
        }
    }
}

impl<B: ScatterGradient, C: CheckpointStrategy> ScatterBackend for Autodiff<B, C> {
    fn float_nd_scatter(
        scatter: &Scatter<'_>,
        data: FloatTensor<Self>,
        indices: IntTensor<Self>,
        updates: FloatTensor<Self>,
    ) -> Result<FloatTensor<Self>, Error> {
        let step = ScatterStep.prepare::<C>([data.node(), updates.node()]);
        let (data, updates) = (data.into_primitive(), updates.into_primitive());
        match step.compute_bound().stateful() {
            OpsKind::Tracked(step) => {
                let kept = kept::<B>(scatter, &data, &indices, &updates);
                let output = B::float_nd_scatter(scatter, data, indices, updates)?;
                // The execution of the forward pass is borrowed, so the backward pass has the default one.
                let scatter = scatter.clone().execution(Execution::new());
                Ok(step.finish((scatter, kept), output))
            }
            OpsKind::UnTracked(step) => {
                Ok(step.finish(B::float_nd_scatter(scatter, data, indices, updates)?))
            }
        }
    }

    fn int_nd_scatter(
        scatter: &Scatter<'_>,
        data: IntTensor<Self>,
        indices: IntTensor<Self>,
        updates: IntTensor<Self>,
    ) -> Result<IntTensor<Self>, Error> {
        B::int_nd_scatter(scatter, data, indices, updates)
    }

    fn bool_nd_scatter(
        scatter: &Scatter<'_>,
        data: BoolTensor<Self>,
        indices: IntTensor<Self>,
        updates: BoolTensor<Self>,
    ) -> Result<BoolTensor<Self>, Error> {
        B::bool_nd_scatter(scatter, data, indices, updates)
    }
}

/// Keeps the tensors that the gradient reads. A kept tensor costs no copy, but data that is kept has
/// two owners, so the scatter allocates its result.
fn kept<B: ScatterGradient>(
    scatter: &Scatter<'_>,
    data: &FloatTensor<B>,
    indices: &IntTensor<B>,
    updates: &FloatTensor<B>,
) -> Forward<B> {
    let (reduction, includes_self) = scatter.reducing();
    let reads_values = matches!(reduction, Reduction::Mul | Reduction::Min | Reduction::Max);
    Forward {
        indices: indices.clone(),
        data: (reads_values && includes_self).then(|| data.clone()),
        updates: reads_values.then(|| updates.clone()),
        updates_shape: updates.shape(),
    }
}
