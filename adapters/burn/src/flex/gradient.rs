//! Gradients of scatters of floats.
//!
//! This module knows which gradients need no arithmetic. It does not know burn's backward pass.

use burn_backend::tensor::FloatTensor;
use burn_backend::{DType, Shape};
use burn_flex::{Flex, FlexTensor, Layout};
use half::{bf16, f16};
use ndscatter::{Gradients, Reduction, Scatter, TensorViewMut};

use super::apply;
use super::view::{Number, row_major, typed, view, zeros};
use crate::{Error, Forward, ScatterGradient};

impl ScatterGradient for Flex {
    fn float_nd_scatter_backward(
        scatter: &Scatter<'_>,
        grad: FloatTensor<Self>,
        forward: Forward<Self>,
        wanted: [bool; 2],
    ) -> Result<[Option<FloatTensor<Self>>; 2], Error> {
        let (reduction, includes_self) = scatter.reducing();
        let [wants_data, wants_updates] = wanted;
        if includes_self && !matches!(reduction, Reduction::None | Reduction::Add | Reduction::Sub)
        {
            return gradients(scatter, &grad, &forward, wanted);
        }
        let [_, of_updates] = gradients(scatter, &grad, &forward, [false, wants_updates])?;
        let of_data = match wants_data {
            false => None,
            // Each element of the output is an element of data plus or minus updates.
            true if includes_self && reduction != Reduction::None => Some(grad),
            // Destinations do not depend on data.
            true => Some(zeroed(scatter, grad, &forward)?),
        };
        Ok([of_data, of_updates])
    }
}

/// Computes the wanted gradients of floats as new tensors.
fn gradients(
    scatter: &Scatter<'_>,
    grad: &FlexTensor,
    forward: &Forward<Flex>,
    wanted: [bool; 2],
) -> Result<[Option<FlexTensor>; 2], Error> {
    if wanted == [false; 2] {
        return Ok([None, None]);
    }
    macro_rules! gradients {
        ($($variant:ident: $element:ty),*) => {
            match grad.dtype() {
                $(DType::$variant => gradients_of::<$element>(scatter, grad, forward, wanted),)*
                dtype => Err(Error::DType { tensor: "data", dtype }),
            }
        };
    }
    gradients!(F64: f64, F32: f32, F16: f16, BF16: bf16)
}

fn gradients_of<E: Number>(
    scatter: &Scatter<'_>,
    grad: &FlexTensor,
    forward: &Forward<Flex>,
    [wants_data, wants_updates]: [bool; 2],
) -> Result<[Option<FlexTensor>; 2], Error> {
    let values = ndscatter::Forward {
        data: forward
            .data
            .as_ref()
            .map(|data| typed::<E>(data, "data"))
            .transpose()?,
        updates: forward
            .updates
            .as_ref()
            .map(|updates| typed::<E>(updates, "updates"))
            .transpose()?,
    };
    let (source, indices) = (
        typed::<E>(grad, "data")?,
        view(&forward.indices, "indices")?,
    );
    let shapes = [grad.layout().shape().clone(), forward.updates_shape.clone()];
    let zeros_if =
        |wanted, shape: &Shape| zeros::<E>(if wanted { shape.num_elements() } else { 0 });
    let (mut of_data, mut of_updates) = (
        zeros_if(wants_data, &shapes[0])?,
        zeros_if(wants_updates, &shapes[1])?,
    );
    let outputs = Gradients {
        data: wants_data
            .then(|| TensorViewMut::contiguous(&mut of_data, &shapes[0]))
            .transpose()?,
        updates: wants_updates
            .then(|| TensorViewMut::contiguous(&mut of_updates, &shapes[1]))
            .transpose()?,
    };
    scatter.backward_into(source, values, indices, 1.0, outputs)?;
    let [shape, updates_shape] = shapes;
    Ok([
        wants_data.then(|| row_major(of_data, shape, grad.dtype())),
        wants_updates.then(|| row_major(of_updates, updates_shape, grad.dtype())),
    ])
}

/// Returns `grad` with zeros at all destinations.
fn zeroed(
    scatter: &Scatter<'_>,
    grad: FlexTensor,
    forward: &Forward<Flex>,
) -> Result<FlexTensor, Error> {
    let zero = FlexTensor::zeros(Shape::new([1]), grad.dtype());
    let strides = vec![0; forward.updates_shape.num_dims()];
    let zeros = zero.with_layout(Layout::new(forward.updates_shape.clone(), strides, 0));
    apply(
        &scatter.clone().reduction(Reduction::None),
        grad,
        &forward.indices,
        &zeros,
    )
}
