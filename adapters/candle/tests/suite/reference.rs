//! The reference: a loop over the elements of the updates, in row-major order.

use candle_core::{Result, Tensor, WithDType};
use half::{bf16, f16};
use ndscatter_candle::Reduction;

/// An element type with the reductions.
pub(crate) trait Number: WithDType + PartialEq + std::fmt::Debug {
    fn combined(self, update: Self, reduction: Reduction) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn combined(self, update: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::None => update,
                    Reduction::Add => self.wrapping_add(update),
                    Reduction::Sub => self.wrapping_sub(update),
                    Reduction::Mul => self.wrapping_mul(update),
                    Reduction::Min => self.min(update),
                    Reduction::Max => self.max(update),
                    other => panic!("{other} is not a reduction of two values"),
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn combined(self, update: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::None => update,
                    Reduction::Add => self + update,
                    Reduction::Sub => self - update,
                    Reduction::Mul => self * update,
                    _ if self.is_nan() => self,
                    _ if update.is_nan() => update,
                    Reduction::Min => if update < self { update } else { self },
                    Reduction::Max => if update > self { update } else { self },
                    other => panic!("{other} is not a reduction of two values"),
                }
            }
        }
    )*};
}

integers!(u8, u32, i16, i32, i64);
floats!(f16, bf16, f32, f64);

/// An operator of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Nd,
    Along(usize),
    Elements(usize),
    /// The axis, and whether positions wrap around.
    Cache(usize, bool),
}

/// Returns the elements of a tensor in row-major order.
pub(crate) fn values<T: WithDType>(tensor: &Tensor) -> Result<Vec<T>> {
    tensor.flatten_all()?.to_vec1()
}

/// Returns the shape of the updates.
pub(crate) fn updates_dims(operator: Operator, data: &[usize], indices: &[usize]) -> Vec<usize> {
    match operator {
        Operator::Nd => {
            let (k, tuples) = indices.split_last().expect("rank 1 or more");
            [tuples, &data[*k..]].concat()
        }
        Operator::Along(axis) => [&data[..axis], indices, &data[axis + 1..]].concat(),
        Operator::Elements(_) => indices.to_vec(),
        Operator::Cache(..) => unreachable!("a caller chooses the length of the updates"),
    }
}

/// Returns the destination of each element of the updates: its number in data. `None`: an index has
/// the value `skipped`. Panics if another index is out of bounds.
pub(crate) fn destinations(
    operator: Operator,
    data: &[usize],
    (indices_dims, indices): (&[usize], &[i64]),
    updates: &[usize],
    skipped: Option<i64>,
) -> Vec<Option<usize>> {
    let index = |at: &[usize]| indices[number(at, indices_dims)];
    let destination = |at: Vec<usize>| {
        let (given, sizes, before, after): (Vec<i64>, &[usize], &[usize], &[usize]) = match operator
        {
            Operator::Nd => {
                let tuple = indices_dims.len() - 1;
                let coordinate = |i| index(&[&at[..tuple], &[i]].concat());
                let k = indices_dims[tuple];
                (
                    (0..k).map(coordinate).collect(),
                    &data[..k],
                    &[],
                    &at[tuple..],
                )
            }
            Operator::Along(axis) => {
                let end = axis + indices_dims.len();
                (
                    vec![index(&at[axis..end])],
                    &data[axis..=axis],
                    &at[..axis],
                    &at[end..],
                )
            }
            Operator::Elements(axis) => (
                vec![index(&at)],
                &data[axis..=axis],
                &at[..axis],
                &at[axis + 1..],
            ),
            Operator::Cache(axis, wraps) => {
                let start = index(&at[..indices_dims.len()]);
                let size = data[axis] as i64;
                let moved = start.wrapping_add(at[axis] as i64);
                let position = if start == skipped.unwrap_or(-1) {
                    start
                } else if wraps {
                    moved % size
                } else {
                    moved
                };
                (
                    vec![position],
                    &data[axis..=axis],
                    &at[..axis],
                    &at[axis + 1..],
                )
            }
        };
        if given.iter().any(|&index| Some(index) == skipped) {
            return None;
        }
        let position = |(&index, &size): (&i64, &usize)| {
            let position = if index < 0 {
                index + size as i64
            } else {
                index
            };
            let position = usize::try_from(position).expect("not below the axis");
            assert!(position < size, "index {index} on an axis of {size}");
            position
        };
        let given: Vec<usize> = given.iter().zip(sizes).map(position).collect();
        Some(number(&[before, &given, after].concat(), data))
    };
    coordinates(updates).map(destination).collect()
}

/// Applies updates to data in place, one after the other. `data` has the values before the scatter.
pub(crate) fn scatter<T: Number>(
    data: &mut [T],
    destinations: &[Option<usize>],
    updates: &[T],
    reduction: Reduction,
    include_self: bool,
) {
    let mut touched = vec![include_self; data.len()];
    for (destination, &update) in destinations.iter().zip(updates) {
        let Some(destination) = *destination else {
            continue;
        };
        let first = !std::mem::replace(&mut touched[destination], true);
        data[destination] = match (first, reduction) {
            (true, Reduction::Sub) => T::zero().combined(update, Reduction::Sub),
            (true, _) => update,
            (false, _) => data[destination].combined(update, reduction),
        };
    }
}

/// Returns the row-major number of an element.
fn number(at: &[usize], dims: &[usize]) -> usize {
    at.iter()
        .zip(dims)
        .fold(0, |number, (at, dim)| number * dim + at)
}

/// Iterates over the coordinates of all elements, in row-major order.
fn coordinates(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let count = dims.iter().product::<usize>();
    (0..count).map(move |mut number| {
        let mut at = vec![0; dims.len()];
        for (at, dim) in at.iter_mut().zip(dims).rev() {
            *at = number % dim;
            number /= dim;
        }
        at
    })
}
