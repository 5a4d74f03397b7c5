//! Each memory allocation of ndscatter, and each one of the adapter for elements, fails once during a
//! call. The call returns an error, and no other owner of a tensor sees a change, or the result is
//! right.

#[path = "../../refusals/refusals.rs"]
mod refusals;

use burn_backend::{Shape, TensorData};
use burn_flex::{Flex, FlexTensor};
use ndscatter::{Reduction, Scatter};
use ndscatter_burn::{Forward, ScatterBackend, ScatterGradient};

/// Crates whose allocations fail, and the smallest size of such an allocation. The smaller allocations
/// of the adapter are shapes in the types of burn, which end the process if there is no memory.
const WATCHED: [(&str, usize); 2] = [("ndscatter", 0), ("ndscatter_burn", 256)];

/// Returns numbers from 0 to `end - 1`, in an order without a pattern.
fn numbers(dims: &[usize], end: u16) -> impl Iterator<Item = u16> {
    let mixed = |at: usize| at.wrapping_mul(0x9E37_79B9) >> 7;
    (0..dims.iter().product()).map(move |at| {
        let number = mixed(at) % usize::from(end);
        u16::try_from(number).expect("below `end`")
    })
}

fn floats(dims: &[usize]) -> FlexTensor {
    let values: Vec<f32> = numbers(dims, 1000).map(f32::from).collect();
    FlexTensor::from_data(TensorData::new(values, dims.to_vec()))
}

fn indices(dims: &[usize], end: u16) -> FlexTensor {
    let values: Vec<i64> = numbers(dims, end).map(i64::from).collect();
    FlexTensor::from_data(TensorData::new(values, dims.to_vec()))
}

fn bits(tensor: &FlexTensor) -> Vec<u32> {
    let values = tensor.storage::<f32>().iter();
    values.map(|value| value.to_bits()).collect()
}

/// The tensors of a scatter.
struct Problem {
    data: FlexTensor,
    indices: FlexTensor,
    updates: FlexTensor,
}

impl Problem {
    /// Returns data that have no other owner.
    fn own_data(&self) -> FlexTensor {
        floats(self.data.layout().shape())
    }

    /// Runs a scatter with shared data and in place.
    fn scatters(&self, scatter: &Scatter<'_>) {
        let call = |data| {
            let (indices, updates) = (self.indices.clone(), self.updates.clone());
            Flex::float_nd_scatter(scatter, data, indices, updates)
        };
        let expected = bits(&call(self.own_data()).expect("memory"));
        let before = bits(&self.data);
        let is_right = |found: &FlexTensor| bits(found) == expected;
        refusals::each(|| self.data.clone(), call, is_right);
        assert_eq!(bits(&self.data), before, "the data have changed");
        refusals::each(|| self.own_data(), call, is_right);
    }

    /// Computes both gradients of a scatter.
    fn gradients(&self, scatter: &Scatter<'_>) {
        let call = |grad| {
            let forward = Forward {
                indices: self.indices.clone(),
                data: Some(self.data.clone()),
                updates: Some(self.updates.clone()),
                updates_shape: Shape::from(self.updates.layout().shape().to_vec()),
            };
            let grads = Flex::float_nd_scatter_backward(scatter, grad, forward, [true; 2])?;
            Ok::<_, ndscatter_burn::Error>(grads.map(|grad| bits(&grad.expect("a gradient"))))
        };
        let expected = call(self.own_data()).expect("memory");
        refusals::each(|| self.own_data(), call, |found| *found == expected);
        refusals::each(|| self.data.clone(), call, |found| *found == expected);
    }
}

#[test]
fn each_allocation_of_ndscatter_can_fail() {
    use Reduction::{Add, Max, Mean, Mul, None};
    for (rank, rows, count) in refusals::TABLES {
        let shape = |rows| refusals::table(rank, rows);
        let problem = |dims: &[usize]| Problem {
            data: floats(&shape(rows.into())),
            indices: indices(dims, rows),
            updates: floats(&shape(count)),
        };
        for reduction in [None, Add, Mul, Max, Mean] {
            let along = Scatter::along(0).reduction(reduction);
            let without_data = along.clone().include_self(false);
            let elements = Scatter::elements(0).reduction(reduction);
            let (rows, all) = (problem(&[count]), problem(&shape(count)));
            for scatter in [along, without_data] {
                rows.scatters(&scatter);
                rows.gradients(&scatter);
            }
            all.scatters(&elements);
            all.gradients(&elements);
        }
    }
    refusals::assert_that_all_crates_failed();
}
