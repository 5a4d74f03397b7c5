//! Compares models of tract with and without the adapter, on the workloads of the crate.
//!
//! Each call runs a plan of a model with one node. Data in place have no other owner.

#[allow(
    unexpected_cfgs,
    reason = "the shared code asks for features of the crate that this package does not have"
)]
#[path = "../../../benches/common/mod.rs"]
mod common;

use std::process::ExitCode;
use std::sync::Arc;

use ndscatter::Reduction;
use tract_core::internal::*;
use tract_core::ops::array::{ScatterElements, ScatterNd, ScatterReduction};

use common::contest::{Entrant, Fallible};
use common::hosts::Host;
use common::inputs::{Form, Inputs, SETS};
use common::peer::{Call, Peer};
use common::rows::Rows;

struct Tract;

impl Host for Tract {
    const NAME: &'static str = "tract 0.23.9";

    fn entrants<'a>(_: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2] {
        [false, true]
            .map(|with_adapter| -> Box<dyn Entrant> { Box::new(Models::new(rows, with_adapter)) })
    }
}

/// The models of a workload.
struct Models<'a> {
    rows: &'a Rows<'a>,
    data: Arc<Tensor>,
    updates: TValue,
    /// Indices of shape `[rows, 1]`: tuples of one coordinate, or one element per row.
    indices: [TValue; SETS],
    scatter_nd: Arc<TypedSimplePlan>,
    scatter_elements: Arc<TypedSimplePlan>,
}

impl<'a> Models<'a> {
    fn new(rows: &'a Rows<'a>, with_adapter: bool) -> Self {
        let matrix = |values: &[f32], shape: [usize; 2]| {
            Tensor::from_shape(&shape, values).expect("values fill the shape")
        };
        let reduction = match rows.reduction {
            Reduction::None => ScatterReduction::None,
            Reduction::Add => ScatterReduction::Add,
            Reduction::Max => ScatterReduction::Max,
            other => unreachable!("no workload has the reduction {other}"),
        };
        let model = |op: Box<dyn TypedOp>| model(rows, op, with_adapter).expect("a valid model");
        Self {
            data: matrix(rows.data, rows.shape()).into_arc_tensor(),
            updates: matrix(rows.updates, rows.updates_shape()).into_tvalue(),
            indices: rows.numbers.each_ref().map(|numbers| {
                let column = Tensor::from_shape(&[numbers.len(), 1], numbers);
                column.expect("a column").into_tvalue()
            }),
            scatter_nd: model(Box::new(ScatterNd::new(reduction))),
            scatter_elements: model(Box::new(ScatterElements::new(0, reduction))),
            rows,
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
            self.indices[set].clone(),
            self.updates.clone()
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
        self.data.clone()
    }

    fn owned(&self) -> Arc<Tensor> {
        Arc::new(self.data.as_ref().clone())
    }

    fn values(&self, tensor: &Arc<Tensor>) -> Vec<f32> {
        let tensor = tensor.try_as_plain_ram().expect("a tensor in memory");
        tensor.as_slice::<f32>().expect("an f32 tensor").to_vec()
    }

    fn refill(&self, tensor: &mut Arc<Tensor>) {
        let tensor = Arc::get_mut(tensor).expect("a tensor without other owners");
        let mut tensor = tensor.try_as_plain_ram_mut().expect("a tensor in memory");
        let values = tensor.as_slice_mut::<f32>().expect("an f32 tensor");
        values.copy_from_slice(self.rows.data);
    }

    fn calls(&self, _: Form) -> Result<Vec<Call<Self>>, &'static str> {
        let mut calls = vec![Call::new("ScatterNd", Self::scatter_nd)];
        if self.rows.are_elements() {
            calls.push(Call::new("ScatterElements", Self::scatter_elements));
        }
        Ok(calls)
    }
}

fn main() -> ExitCode {
    common::hosts::main::<Tract>()
}
