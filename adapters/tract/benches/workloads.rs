//! Compares models of tract with and without the adapter, on the workloads of the crate.
//!
//! Each call runs a plan of a model with one node. Data in place have no other owner.

#[allow(
    unexpected_cfgs,
    reason = "the shared code asks for features of the crate that this package does not have"
)]
#[path = "../../../benches/common/mod.rs"]
mod common;
/// tract's operators without a model, and their tensors.
#[allow(dead_code, reason = "this bench uses the tensors")]
#[path = "../../../benches/compare/rust/src/peers/tract.rs"]
mod operators;

use std::process::ExitCode;
use std::sync::Arc;

use tract_core::internal::*;
use tract_core::ops::array::{ScatterElements, ScatterNd};

use common::contest::{Entrant, Fallible};
use common::hosts::Host;
use common::inputs::{Form, Inputs};
use common::peer::{Call, Peer};
use common::rows::Rows;
use operators::Tract;

struct Bench;

impl Host for Bench {
    const NAME: &'static str = "tract 0.23.9";

    fn entrants<'a>(_: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2] {
        [false, true]
            .map(|with_adapter| -> Box<dyn Entrant> { Box::new(Models::new(rows, with_adapter)) })
    }
}

/// The models of a workload.
struct Models<'a> {
    tensors: Tract<'a>,
    scatter_nd: Arc<TypedSimplePlan>,
    scatter_elements: Arc<TypedSimplePlan>,
}

impl<'a> Models<'a> {
    fn new(rows: &'a Rows<'a>, with_adapter: bool) -> Self {
        let tensors = Tract::new(rows);
        let model = |op: Box<dyn TypedOp>| model(rows, op, with_adapter).expect("a valid model");
        Self {
            scatter_nd: model(Box::new(ScatterNd::new(tensors.reduction))),
            scatter_elements: model(Box::new(ScatterElements::new(0, tensors.reduction))),
            tensors,
        }
    }

    fn run(
        &self,
        plan: &Arc<TypedSimplePlan>,
        data: Arc<Tensor>,
        set: usize,
    ) -> Fallible<Arc<Tensor>> {
        let inputs = tvec![
            data.into_tvalue(),
            self.tensors.indices[set].clone(),
            self.tensors.updates.clone()
        ];
        Ok(plan.run(inputs)?.remove(0).into_arc_tensor())
    }

    fn scatter_nd(&self, data: Arc<Tensor>, set: usize) -> Fallible<Arc<Tensor>> {
        self.run(&self.scatter_nd, data, set)
    }

    fn scatter_elements(&self, data: Arc<Tensor>, set: usize) -> Fallible<Arc<Tensor>> {
        self.run(&self.scatter_elements, data, set)
    }
}

/// Returns a plan of a model with one node.
fn model(
    rows: &Rows<'_>,
    op: Box<dyn TypedOp>,
    with_adapter: bool,
) -> TractResult<Arc<TypedSimplePlan>> {
    let mut model = TypedModel::default();
    let data = model.add_source("data", f32::fact(rows.shape()))?;
    let indices = model.add_source("indices", i64::fact([rows.numbers[0].len(), 1]))?;
    let updates = model.add_source("updates", f32::fact(rows.updates_shape()))?;
    let result = model.wire_node("result", op, &[data, indices, updates])?;
    model.select_output_outlets(&result)?;
    if with_adapter {
        let rewritten = ndscatter_tract::rewrite(&mut model)?;
        ensure!(rewritten == 1, "the node stayed with tract");
    }
    TypedSimplePlan::new(model.into_optimized()?)
}

impl Peer for Models<'_> {
    type Tensor = Arc<Tensor>;

    fn kept(&self) -> Arc<Tensor> {
        self.tensors.kept()
    }

    fn owned(&self) -> Arc<Tensor> {
        self.tensors.owned()
    }

    fn values(&self, tensor: &Arc<Tensor>) -> Vec<f32> {
        self.tensors.values(tensor)
    }

    fn refill(&self, tensor: &mut Arc<Tensor>) {
        self.tensors.refill(tensor);
    }

    fn calls(&self, _: Form) -> Result<Vec<Call<Self>>, &'static str> {
        let mut calls = vec![Call::new("ScatterNd", Self::scatter_nd)];
        if self.tensors.rows.are_elements() {
            calls.push(Call::new("ScatterElements", Self::scatter_elements));
        }
        Ok(calls)
    }
}

fn main() -> ExitCode {
    common::hosts::main::<Bench>()
}
