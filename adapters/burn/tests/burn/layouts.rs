//! Tensors of burn with given values, in memory with any strides.

use burn_backend::{Bytes, Element, Shape};
use burn_flex::{FlexTensor, Layout};
use bytemuck::Pod;

use crate::reference::{Array, Random};

/// Returns a row-major tensor.
pub(crate) fn row_major<T: Element + Pod>(array: &Array<T>) -> FlexTensor {
    let shape = Shape::from(array.shape.clone());
    FlexTensor::new(
        Bytes::from_elems(array.values.clone()),
        Layout::contiguous(shape),
        T::dtype(),
    )
}

/// Returns a tensor whose dimensions are in random order in memory, some of them reversed, with gaps
/// between elements.
pub(crate) fn strided<T: Element + Pod>(array: &Array<T>, random: &mut Random) -> FlexTensor {
    let rank = array.shape.len();
    let mut order: Vec<usize> = (0..rank).collect();
    for last in (1..rank).rev() {
        order.swap(last, random.below(last + 1));
    }
    let (mut strides, mut first, mut step) = (vec![0_isize; rank], random.below(3), 1_usize);
    for &dim in &order {
        step += random.below(2);
        strides[dim] = step.cast_signed();
        let reach = step * array.shape[dim].saturating_sub(1);
        if random.below(3) == 0 {
            strides[dim] = -strides[dim];
            first += reach;
        }
        step *= array.shape[dim].max(1);
        step += 1;
    }
    let gap = array.values.first().copied().unwrap_or_else(T::zeroed);
    let mut memory = vec![gap; first + step * 2 + 3];
    for (position, &value) in array.positions().iter().zip(&array.values) {
        let dims = position.iter().zip(&strides);
        let offset: isize = dims.map(|(&at, &stride)| at.cast_signed() * stride).sum();
        memory[first.strict_add_signed(offset)] = value;
    }
    let layout = Layout::new(Shape::from(array.shape.clone()), strides, first);
    FlexTensor::new(Bytes::from_elems(memory), layout, T::dtype())
}

/// Returns the values of a tensor in row-major order.
pub(crate) fn values<T: Element + Pod>(tensor: &FlexTensor) -> Array<T> {
    let shape = tensor.layout().shape().to_vec();
    let values = tensor.to_contiguous().storage::<T>()[..shape.iter().product()].to_vec();
    Array { shape, values }
}
