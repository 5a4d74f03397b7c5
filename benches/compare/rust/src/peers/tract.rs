//! tract, through its operators without a model. They work in place on a tensor without other
//! owners.

use std::sync::Arc;

use ndscatter::Reduction;
use tract_core::internal::{EvalContext, EvalOp, IntoArcTensor, IntoTValue, TValue, Tensor, tvec};
use tract_core::ops::array::{ScatterElements, ScatterNd, ScatterReduction};

use crate::common::contest::Fallible;
use crate::common::inputs::{Form, SETS};
use crate::common::peer::{Call, Peer};
use crate::common::rows::Rows;

pub(super) struct Tract<'a> {
    pub(super) rows: &'a Rows<'a>,
    pub(super) data: Arc<Tensor>,
    pub(super) updates: TValue,
    /// Indices of shape `[rows, 1]`: tuples of one coordinate, or one element per row.
    pub(super) indices: [TValue; SETS],
    pub(super) reduction: ScatterReduction,
}

impl<'a> Tract<'a> {
    pub(super) fn new(rows: &'a Rows<'a>) -> Self {
        let matrix = |values: &[f32], shape: [usize; 2]| {
            Tensor::from_shape(&shape, values).expect("values fill the shape")
        };
        Self {
            data: matrix(rows.data, rows.shape()).into_arc_tensor(),
            updates: matrix(rows.updates, rows.updates_shape()).into_tvalue(),
            indices: rows.numbers.each_ref().map(|numbers| {
                let column = Tensor::from_shape(&[numbers.len(), 1], numbers);
                column.expect("a column").into_tvalue()
            }),
            reduction: match rows.reduction {
                Reduction::None => ScatterReduction::None,
                Reduction::Add => ScatterReduction::Add,
                Reduction::Max => ScatterReduction::Max,
                other => unreachable!("no workload has the reduction {other}"),
            },
            rows,
        }
    }

    fn eval(&self, op: &dyn EvalOp, data: Arc<Tensor>, set: usize) -> Fallible<Arc<Tensor>> {
        let inputs = tvec![
            data.into_tvalue(),
            self.indices[set].clone(),
            self.updates.clone()
        ];
        let mut outputs = op.eval(&EvalContext::out_of_plan(), inputs)?;
        Ok(outputs.remove(0).into_arc_tensor())
    }

    fn scatter_nd(&self, data: Arc<Tensor>, set: usize) -> Fallible<Arc<Tensor>> {
        self.eval(&ScatterNd::new(self.reduction), data, set)
    }

    fn scatter_elements(&self, data: Arc<Tensor>, set: usize) -> Fallible<Arc<Tensor>> {
        self.eval(&ScatterElements::new(0, self.reduction), data, set)
    }
}

impl Peer for Tract<'_> {
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
