//! rten, through its functions for assignments, and through models of one node for reductions.
//! The functions have a parameter for the reduction, but its type is not public. Functions and
//! models work in place on an owned tensor. They copy a borrowed tensor.

use std::sync::Arc;

use ndscatter::Reduction;
use rten::ops::{scatter_elements, scatter_nd};
use rten::{BufferPool, Model, NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{CowTensor, Tensor, TensorView};

use super::onnx;
use crate::common::contest::Fallible;
use crate::common::inputs::{Form, SETS};
use crate::common::peer::{Call, Peer};
use crate::common::rows::Rows;

pub(super) struct Rten<'a> {
    rows: &'a Rows<'a>,
    data: TensorView<'a>,
    updates: TensorView<'a>,
    /// Indices of shape `[rows, 1]`: tuples of one coordinate, or one element per row. rten has no
    /// indices of 64 bits.
    indices: [Tensor<i32>; SETS],
    buffers: BufferPool,
    /// Models for workloads with a reduction.
    models: Option<Models>,
}

/// An owned or borrowed tensor.
pub(super) enum Operand<'a> {
    Owned(Tensor),
    Borrowed(TensorView<'a>),
}

struct Models {
    nd: Node,
    elements: Node,
    options: RunOptions,
}

/// A model of one node.
struct Node {
    model: Model,
    inputs: [NodeId; 3],
    output: NodeId,
}

impl<'a> Rten<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, threads: usize) -> Self {
        let reduction = match rows.reduction {
            Reduction::None => None,
            Reduction::Add => Some("add"),
            Reduction::Max => Some("max"),
            other => unreachable!("no workload has the reduction {other}"),
        };
        Self {
            data: TensorView::from_data(&rows.shape(), rows.data),
            updates: TensorView::from_data(&rows.updates_shape(), rows.updates),
            indices: rows.numbers.each_ref().map(|numbers| column(numbers)),
            buffers: BufferPool::new(),
            models: reduction.map(|reduction| Models::new(reduction, threads)),
            rows,
        }
    }

    fn scatter_nd(&self, data: Operand<'a>, set: usize) -> Fallible<Operand<'a>> {
        let (indices, updates) = (self.indices[set].view(), self.updates.clone());
        let result = scatter_nd(&self.buffers, data.into_cow(), indices, updates, None)?;
        Ok(Operand::Owned(result))
    }

    fn scatter_elements(&self, data: Operand<'a>, set: usize) -> Fallible<Operand<'a>> {
        let (indices, updates) = (self.indices[set].view(), self.updates.clone());
        let result = scatter_elements(&self.buffers, data.into_cow(), indices, updates, 0, None)?;
        Ok(Operand::Owned(result))
    }

    fn nd_model(&self, data: Operand<'a>, set: usize) -> Fallible<Operand<'a>> {
        self.run(|models| &models.nd, data, set)
    }

    fn elements_model(&self, data: Operand<'a>, set: usize) -> Fallible<Operand<'a>> {
        self.run(|models| &models.elements, data, set)
    }

    fn run(
        &self,
        node: impl Fn(&Models) -> &Node,
        data: Operand<'a>,
        set: usize,
    ) -> Fallible<Operand<'a>> {
        let models = self.models.as_ref().expect("models of a reduction");
        let Node {
            model,
            inputs,
            output,
        } = node(models);
        let values = [
            data.into_value(),
            self.indices[set].view().into(),
            self.updates.clone().into(),
        ];
        let inputs = inputs.iter().copied().zip(values).collect();
        let [result] = model.run_n(inputs, [*output], Some(models.options.clone()))?;
        let result = result
            .into_tensor()
            .ok_or("the result is not a tensor of f32")?;
        Ok(Operand::Owned(result))
    }
}

fn column(numbers: &[i64]) -> Tensor<i32> {
    let narrow = |&number| i32::try_from(number).expect("a row number of 32 bits");
    let narrowed: Vec<i32> = numbers.iter().map(narrow).collect();
    Tensor::from_data(&[numbers.len(), 1], narrowed)
}

impl Models {
    fn new(reduction: &str, threads: usize) -> Self {
        let pool = Arc::new(ThreadPool::with_num_threads(threads));
        Self {
            nd: Node::new("ScatterND", reduction),
            elements: Node::new("ScatterElements", reduction),
            options: RunOptions::default().with_thread_pool(Some(pool)),
        }
    }
}

impl Node {
    fn new(operator: &str, reduction: &str) -> Self {
        let model = Model::load(onnx::model(operator, reduction)).expect("a valid model");
        let node = |name| model.node_id(name).expect("a name of the model");
        Self {
            inputs: onnx::INPUTS.map(node),
            output: node(onnx::OUTPUT),
            model,
        }
    }
}

impl<'a> Operand<'a> {
    fn into_cow(self) -> CowTensor<'a, f32> {
        match self {
            Self::Owned(tensor) => tensor.into_cow(),
            Self::Borrowed(view) => view.as_cow(),
        }
    }

    fn into_value(self) -> ValueOrView<'a> {
        match self {
            Self::Owned(tensor) => tensor.into(),
            Self::Borrowed(view) => view.into(),
        }
    }
}

impl<'a> Peer for Rten<'a> {
    type Tensor = Operand<'a>;

    fn kept(&self) -> Operand<'a> {
        Operand::Borrowed(self.data.clone())
    }

    fn owned(&self) -> Operand<'a> {
        Operand::Owned(self.data.to_tensor())
    }

    fn refill(&self, tensor: &mut Operand<'a>) {
        let Operand::Owned(tensor) = tensor else {
            unreachable!("tensors to refill are owned");
        };
        tensor.copy_from(&self.data);
    }

    fn values(&self, tensor: &Operand<'a>) -> Vec<f32> {
        match tensor {
            Operand::Owned(tensor) => tensor.to_vec(),
            Operand::Borrowed(view) => view.to_vec(),
        }
    }

    fn calls(&self, _: Form) -> Result<Vec<Call<Self>>, &'static str> {
        let mut calls = match self.models {
            None => vec![Call::new("scatter_nd", Self::scatter_nd)],
            Some(_) => vec![Call::new("a model of ScatterND", Self::nd_model)],
        };
        if self.rows.are_elements() {
            calls.push(match self.models {
                None => Call::new("scatter_elements", Self::scatter_elements),
                Some(_) => Call::new("a model of ScatterElements", Self::elements_model),
            });
        }
        Ok(calls)
    }
}
