//! candle, which has additions and assignments of rows and single elements.

use candle_core::{Device, Tensor};
use ndscatter::Reduction;

use crate::common::contest::Fallible;
use crate::common::inputs::{Form, SETS};
use crate::common::peer::{Call, Peer};
use crate::common::rows::Rows;

pub(super) struct Candle<'a> {
    rows: &'a Rows<'a>,
    data: Tensor,
    updates: Tensor,
    numbers: [Tensor; SETS],
    /// Row of every element of the updates. candle's scatters need one index per element.
    elements: [Tensor; SETS],
}

impl<'a> Candle<'a> {
    pub(super) fn new(rows: &'a Rows<'a>) -> Self {
        let matrix = |values: &[f32], shape: [usize; 2]| {
            Tensor::from_slice(values, &shape, &Device::Cpu).expect("values fill the shape")
        };
        Self {
            data: matrix(rows.data, rows.shape()),
            updates: matrix(rows.updates, rows.updates_shape()),
            numbers: (rows.numbers.each_ref())
                .map(|numbers| Tensor::new(&numbers[..], &Device::Cpu).expect("a vector")),
            elements: (rows.numbers.each_ref()).map(|numbers| repeat(numbers, rows.window)),
            rows,
        }
    }

    fn index_add(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        Ok(data.index_add(&self.numbers[set], &self.updates, 0)?)
    }

    /// Allocates the sum, and copies it to the data.
    fn index_add_set(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        let sum = data.index_add(&self.numbers[set], &self.updates, 0)?;
        data.slice_set(&sum, 0, 0)?;
        Ok(data)
    }

    fn index_add_into(&self, output: Tensor, set: usize) -> Fallible<Tensor> {
        output.slice_set(&self.index_add(self.kept(), set)?, 0, 0)?;
        Ok(output)
    }

    fn scatter(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        Ok(data.scatter(&self.elements[set], &self.updates, 0)?)
    }

    fn scatter_set(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        data.scatter_set(&self.elements[set], &self.updates, 0)?;
        Ok(data)
    }

    fn scatter_add(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        Ok(data.scatter_add(&self.elements[set], &self.updates, 0)?)
    }

    fn scatter_add_set(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        data.scatter_add_set(&self.elements[set], &self.updates, 0)?;
        Ok(data)
    }

    /// Writes row by row, as users of candle write KV caches.
    fn slice_sets(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        for (tuple, &row) in self.rows.numbers[set].iter().enumerate() {
            data.slice_set(&self.updates.narrow(0, tuple, 1)?, 0, row.try_into()?)?;
        }
        Ok(data)
    }

    fn copied_slice_sets(&self, data: Tensor, set: usize) -> Fallible<Tensor> {
        self.slice_sets(data.copy()?, set)
    }
}

/// Repeats every number `window` times, as `u32`, candle's smallest index type that fits.
fn repeat(numbers: &[i64], window: usize) -> Tensor {
    let repeated: Vec<u32> = (numbers.iter())
        .map(|&number| u32::try_from(number).expect("a row number of 32 bits"))
        .flat_map(|number| std::iter::repeat_n(number, window))
        .collect();
    let shape = [numbers.len(), window];
    Tensor::from_vec(repeated, &shape, &Device::Cpu).expect("one number per element")
}

/// Copies data into a tensor of the same shape.
pub(super) fn refill(tensor: &Tensor, data: &Tensor) {
    tensor.slice_set(data, 0, 0).expect("tensors of one shape");
}

/// Returns a copy of a tensor's values.
pub(super) fn values(tensor: &Tensor) -> Vec<f32> {
    let flat = tensor.flatten_all().and_then(|flat| flat.to_vec1());
    flat.expect("an f32 tensor")
}

impl Peer for Candle<'_> {
    type Tensor = Tensor;

    fn kept(&self) -> Tensor {
        self.data.clone()
    }

    fn owned(&self) -> Tensor {
        self.data.copy().expect("a copy of a tensor")
    }

    fn refill(&self, tensor: &mut Tensor) {
        refill(tensor, &self.data);
    }

    fn values(&self, tensor: &Tensor) -> Vec<f32> {
        values(tensor)
    }

    fn calls(&self, form: Form) -> Result<Vec<Call<Self>>, &'static str> {
        use Form::{Allocating, Functional, InPlace};
        let elements = self.rows.are_elements();
        Ok(match (self.rows.reduction, form) {
            (Reduction::None, InPlace | Functional) => vec![
                Call::new("scatter_set", Self::scatter_set),
                Call::new("slice_set for each row", Self::slice_sets),
            ],
            (Reduction::None, Allocating) => vec![
                Call::new("scatter", Self::scatter),
                Call::new("copy, slice_set for each row", Self::copied_slice_sets),
            ],
            (Reduction::Add, InPlace) => vec![
                Call::new("scatter_add_set", Self::scatter_add_set),
                Call::new("index_add, slice_set", Self::index_add_set),
            ],
            (Reduction::Add, Functional) => vec![
                Call::new("scatter_add_set", Self::scatter_add_set),
                Call::writing_all("index_add, slice_set", Self::index_add_into),
            ],
            (Reduction::Add, Allocating) if elements => vec![
                Call::new("index_add", Self::index_add),
                Call::new("scatter_add", Self::scatter_add),
            ],
            (Reduction::Add, Allocating) => vec![Call::new("index_add", Self::index_add)],
            _ => return Err("its scatters only assign and add"),
        })
    }
}
