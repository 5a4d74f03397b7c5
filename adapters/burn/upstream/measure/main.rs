//! Compares the kernels of a released burn-flex with the patched kernels, on the fifteen workloads of
//! ndscatter. The script `measure.sh` builds this program.

use std::process::ExitCode;

use common::contest::Entrant;
use common::hosts::Host;
use common::inputs::Inputs;
use common::rows::Rows;

mod common;

fn main() -> ExitCode {
    common::hosts::main::<Patch>()
}

struct Patch;

impl Host for Patch {
    const NAME: &'static str = "released";

    fn entrants<'a>(_: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2] {
        [Box::new(old::Calls::new(rows)), Box::new(new::Calls::new(rows))]
    }
}

/// Defines a module with the calls of one of the two crates.
macro_rules! calls {
    ($module:ident, $krate:ident) => {
        mod $module {
            use $krate::FlexTensor;
            use $krate::ops::gather_scatter as kernels;
            use burn_backend::tensor::IndexingUpdateOp;
            use burn_backend::{Shape, TensorData};
            use ndscatter::Reduction;

            use crate::common::contest::Fallible;
            use crate::common::inputs::{Form, SETS};
            use crate::common::peer::{Call, Peer};
            use crate::common::rows::Rows;

            pub(crate) struct Calls<'a> {
                rows: &'a Rows<'a>,
                data: FlexTensor,
                updates: FlexTensor,
                numbers: [FlexTensor; SETS],
            }

            fn matrix(values: &[f32], shape: [usize; 2]) -> FlexTensor {
                FlexTensor::from_data(TensorData::new(values.to_vec(), shape))
            }

            impl<'a> Calls<'a> {
                pub(crate) fn new(rows: &'a Rows<'a>) -> Self {
                    Self {
                        data: matrix(rows.data, rows.shape()),
                        updates: matrix(rows.updates, rows.updates_shape()),
                        numbers: (rows.numbers.clone())
                            .map(|numbers| FlexTensor::from_data(TensorData::from(&numbers[..]))),
                        rows,
                    }
                }

                /// Returns a view of shape `[rows, 1]`.
                fn column(&self, set: usize) -> FlexTensor {
                    let numbers = &self.numbers[set];
                    numbers.reshape(Shape::new([numbers.layout().num_elements(), 1]))
                }

                fn select(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
                    let (numbers, updates) = (self.numbers[set].clone(), self.updates.clone());
                    let call = match self.rows.reduction {
                        Reduction::None => kernels::select_assign::<f32>,
                        Reduction::Add => kernels::select_add::<f32>,
                        _ => kernels::select_max::<f32>,
                    };
                    Ok(call(data, 0, numbers, updates))
                }

                fn scatter(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
                    let (numbers, updates) = (self.column(set), self.updates.clone());
                    let call = match self.rows.reduction {
                        Reduction::None => kernels::scatter_assign::<f32>,
                        Reduction::Add => kernels::scatter_add::<f32>,
                        _ => kernels::scatter_max::<f32>,
                    };
                    Ok(call(data, 0, numbers, updates))
                }

                fn scatter_nd(&self, data: FlexTensor, set: usize) -> Fallible<FlexTensor> {
                    let update = match self.rows.reduction {
                        Reduction::None => IndexingUpdateOp::Assign,
                        Reduction::Add => IndexingUpdateOp::Add,
                        _ => IndexingUpdateOp::Max,
                    };
                    let (numbers, updates) = (self.column(set), self.updates.clone());
                    Ok(kernels::scatter_nd::<f32>(data, numbers, updates, update))
                }
            }

            impl Peer for Calls<'_> {
                type Tensor = FlexTensor;

                fn kept(&self) -> FlexTensor {
                    self.data.clone()
                }

                fn owned(&self) -> FlexTensor {
                    matrix(self.rows.data, self.rows.shape())
                }

                fn refill(&self, tensor: &mut FlexTensor) {
                    let values = tensor.try_storage_mut().expect("a tensor without other owners");
                    values.copy_from_slice(self.rows.data);
                }

                fn values(&self, tensor: &FlexTensor) -> Vec<f32> {
                    tensor.storage().to_vec()
                }

                fn calls(&self, _: Form) -> Result<Vec<Call<Self>>, &'static str> {
                    let mut calls = vec![Call::new("select_assign", Self::select)];
                    calls.push(Call::new("scatter_nd", Self::scatter_nd));
                    if self.rows.are_elements() {
                        calls.push(Call::new("scatter", Self::scatter));
                    }
                    Ok(calls)
                }
            }
        }
    };
}

calls!(old, released);
calls!(new, patched);
