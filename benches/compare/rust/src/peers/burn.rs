//! burn, through the operations of its CPU backend. `select_assign` and `scatter` work in place
//! on a tensor without other owners. They copy a shared tensor.

use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{Shape, TensorData};
use burn_flex::{Flex, FlexTensor};
use ndscatter::Reduction;

use crate::common::contest::Fallible;
use crate::common::inputs::{Form, SETS};
use crate::common::peer::{Call, Peer};
use crate::common::rows::Rows;

pub(super) struct Burn<'a> {
    rows: &'a Rows<'a>,
    data: FlexTensor,
    updates: FlexTensor,
    numbers: [FlexTensor; SETS],
    update: IndexingUpdateOp,
}

impl<'a> Burn<'a> {
    pub(super) fn new(rows: &'a Rows<'a>) -> Self {
        Self {
            data: matrix(rows.data, rows.shape()),
            updates: matrix(rows.updates, rows.updates_shape()),
            numbers: (rows.numbers.clone())
                .map(|numbers| FlexTensor::from_data(TensorData::from(&numbers[..]))),
            update: match rows.reduction {
                Reduction::None => IndexingUpdateOp::Assign,
                Reduction::Add => IndexingUpdateOp::Add,
                Reduction::Max => IndexingUpdateOp::Max,
                other => unreachable!("no workload has the reduction {other}"),
            },
            rows,
        }
    }

    /// Returns a view of shape `[rows, 1]`: tuples of one coordinate, or one element per row.
    fn column(&self, set: usize) -> FlexTensor {
        let numbers = &self.numbers[set];
        numbers.reshape(Shape::new([numbers.layout().num_elements(), 1]))
    }

    fn select_assign(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
        let (numbers, updates) = (self.numbers[set].clone(), self.updates.clone());
        Ok(Flex::float_select_assign(
            data,
            0,
            numbers,
            updates,
            self.update,
        ))
    }

    fn scatter(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
        let (indices, updates) = (self.column(set), self.updates.clone());
        Ok(Flex::float_scatter(0, data, indices, updates, self.update))
    }

    fn scatter_nd(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
        let (indices, updates) = (self.column(set), self.updates.clone());
        Ok(Flex::float_scatter_nd(data, indices, updates, self.update))
    }
}

fn matrix(values: &[f32], shape: [usize; 2]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values.to_vec(), shape))
}

impl Peer for Burn<'_> {
    type Tensor = FlexTensor;

    fn kept(&self) -> FlexTensor {
        self.data.clone()
    }

    fn owned(&self) -> FlexTensor {
        matrix(self.rows.data, self.rows.shape())
    }

    fn refill(&self, tensor: &mut FlexTensor) {
        let values = tensor
            .try_storage_mut()
            .expect("a tensor without other owners");
        values.copy_from_slice(self.rows.data);
    }

    fn values(&self, tensor: &FlexTensor) -> Vec<f32> {
        tensor.storage().to_vec()
    }

    fn calls(&self, form: Form) -> Result<Vec<Call<Self>>, &'static str> {
        let mut calls = vec![Call::new("select_assign", Self::select_assign)];
        if self.rows.are_elements() {
            calls.push(Call::new("scatter", Self::scatter));
        }
        // `scatter_nd` always copies its tensor.
        if form == Form::Allocating {
            calls.push(Call::new("scatter_nd", Self::scatter_nd));
        }
        Ok(calls)
    }
}
