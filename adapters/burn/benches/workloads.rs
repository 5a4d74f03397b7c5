//! Compares the scatters of burn's backend Flex with the adapter in the same backend, on the fifteen
//! workloads.
//!
//! `cargo bench -p ndscatter-burn` prints a table. `select_assign` and `scatter` of burn work in place
//! on a tensor without other owners. `scatter_nd` of burn always copies its tensor.

use std::process::ExitCode;

use burn_backend::TensorData;
use burn_flex::{Flex, FlexTensor};
use ndscatter_burn::ScatterBackend;

use common::contest::{Entrant, Fallible};
use common::hosts::Host;
use common::inputs::{Form, Inputs, SETS};
use common::peer::{Call, Peer};
use common::rows::Rows;

#[allow(
    unexpected_cfgs,
    unused_imports,
    reason = "this bench uses a part of the module"
)]
#[path = "../../../benches/common/mod.rs"]
mod common;
/// Calls of burn's own kernels.
#[path = "../../../benches/compare/rust/src/peers/burn.rs"]
mod kernels;

fn main() -> ExitCode {
    common::hosts::main::<Burn>()
}

struct Burn;

impl Host for Burn {
    const NAME: &'static str = "burn-flex 0.22.1";

    fn entrants<'a>(inputs: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2] {
        let adapter = Adapter {
            inputs,
            data: tensor(&inputs.data, inputs.workload.data),
            updates: tensor(&inputs.updates, &inputs.workload.updates_shape()),
            indices: std::array::from_fn(|set| {
                tensor(inputs.indices(set), inputs.workload.indices)
            }),
        };
        [Box::new(kernels::Burn::new(rows)), Box::new(adapter)]
    }
}

/// The adapter with the tensors of a workload.
struct Adapter<'a> {
    inputs: &'a Inputs,
    data: FlexTensor,
    updates: FlexTensor,
    indices: [FlexTensor; SETS],
}

fn tensor<T: burn_backend::Element>(values: &[T], shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values.to_vec(), shape))
}

impl Adapter<'_> {
    fn nd_scatter(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
        let (indices, updates) = (self.indices[set].clone(), self.updates.clone());
        Ok(Flex::float_nd_scatter(
            &self.inputs.operator(),
            data,
            indices,
            updates,
        )?)
    }
}

impl Peer for Adapter<'_> {
    type Tensor = FlexTensor;

    fn kept(&self) -> FlexTensor {
        self.data.clone()
    }

    fn owned(&self) -> FlexTensor {
        tensor(&self.inputs.data, self.inputs.workload.data)
    }

    fn refill(&self, tensor: &mut FlexTensor) {
        let values = tensor
            .try_storage_mut()
            .expect("a tensor without other owners");
        values.copy_from_slice(&self.inputs.data);
    }

    fn values(&self, tensor: &FlexTensor) -> Vec<f32> {
        tensor.storage().to_vec()
    }

    fn calls(&self, _: Form) -> Result<Vec<Call<Self>>, &'static str> {
        Ok(vec![Call::new("nd_scatter", Self::nd_scatter)])
    }
}
