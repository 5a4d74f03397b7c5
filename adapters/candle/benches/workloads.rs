//! Compares candle's kernels with the adapter, in candle, on the fifteen workloads.
//!
//! `cargo bench -p ndscatter-candle --bench workloads` prints the table of docs/candle.md.

#![allow(
    unexpected_cfgs,
    reason = "the shared code has a feature of the crate ndscatter"
)]

#[path = "../../../benches/compare/rust/src/peers/candle.rs"]
mod candle;
#[path = "../../../benches/common/mod.rs"]
mod common;

use std::process::ExitCode;

use candle_core::{Device, Tensor};
use ndscatter_candle::ScatterOp;

use common::contest::{Entrant, Fallible};
use common::hosts::Host;
use common::inputs::{Form, Inputs, SETS};
use common::peer::{Call, Peer};
use common::rows::Rows;
use common::workloads::Operator;

struct Candle;

impl Host for Candle {
    const NAME: &'static str = "candle 0.11.1";

    fn entrants<'a>(inputs: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2] {
        [
            Box::new(candle::Candle::new(rows)),
            Box::new(Adapter::new(inputs)),
        ]
    }
}

/// The adapter, with the tensors of a workload in their own shapes.
struct Adapter {
    op: ScatterOp,
    data: Tensor,
    updates: Tensor,
    indices: [Tensor; SETS],
}

impl Adapter {
    fn new(inputs: &Inputs) -> Self {
        let workload = &inputs.workload;
        let op = match workload.operator {
            Operator::Nd => ScatterOp::nd(),
            Operator::Update { axis } => {
                ScatterOp::along(axis.try_into().expect("the number of an axis"))
            }
        };
        let tensor = |values: &[f32], shape: &[usize]| {
            Tensor::from_slice(values, shape, &Device::Cpu).expect("values fill the shape")
        };
        Self {
            op: op.reduction(workload.reduction),
            data: tensor(&inputs.data, workload.data),
            updates: tensor(&inputs.updates, &workload.updates_shape()),
            indices: std::array::from_fn(|set| {
                Tensor::from_slice(inputs.indices(set), workload.indices, &Device::Cpu)
                    .expect("indices fill their shape")
            }),
        }
    }

    fn apply(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        Ok(self.op.apply(&data, &self.indices[set], &self.updates)?)
    }

    fn apply_set(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        (self.op).apply_set(&data, &self.indices[set], &self.updates)?;
        Ok(data)
    }
}

impl Peer for Adapter {
    type Tensor = Tensor;

    fn kept(&self) -> Tensor {
        self.data.clone()
    }

    fn owned(&self) -> Tensor {
        self.data.copy().expect("a copy of a tensor")
    }

    fn refill(&self, tensor: &mut Tensor) {
        candle::refill(tensor, &self.data);
    }

    fn values(&self, tensor: &Tensor) -> Vec<f32> {
        candle::values(tensor)
    }

    fn calls(&self, form: Form) -> Result<Vec<Call<Self>>, &'static str> {
        Ok(vec![match form {
            Form::Allocating => Call::new("apply", Self::apply),
            Form::InPlace | Form::Functional => Call::new("apply_set", Self::apply_set),
        }])
    }
}

fn main() -> ExitCode {
    common::hosts::main::<Candle>()
}
