//! A scatter as a loop over single updates, and the arithmetic of each type.

use burn_backend::{Element, bf16, f16};
use bytemuck::Pod;
use ndscatter::{Reduction, Scatter};

/// Which positions an index addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Nd,
    Along(usize),
    Elements(usize),
}

impl Place {
    pub(crate) fn scatter(self, reduction: Reduction) -> Scatter<'static> {
        let scatter = match self {
            Self::Nd => Scatter::nd(),
            Self::Along(axis) => Scatter::along(axis.cast_signed()),
            Self::Elements(axis) => Scatter::elements(axis.cast_signed()),
        };
        scatter.reduction(reduction)
    }

    /// Returns the position in `data` of the update at `position`.
    fn destination(self, shape: &[usize], indices: &Array<i64>, position: &[usize]) -> Vec<usize> {
        let resolved = |index: i64, axis: usize| {
            let size = i64::try_from(shape[axis]).expect("small sizes");
            usize::try_from(if index < 0 { index + size } else { index }).expect("valid indices")
        };
        match self {
            Self::Nd => {
                let listed = indices.shape.len() - 1;
                let coordinates = indices.shape[listed];
                let tuple = (0..coordinates).map(|axis| {
                    let at = [&position[..listed], &[axis]].concat();
                    resolved(indices.at(&at), axis)
                });
                tuple.chain(position[listed..].iter().copied()).collect()
            }
            Self::Along(axis) => {
                let end = axis + indices.shape.len();
                let index = resolved(indices.at(&position[axis..end]), axis);
                [&position[..axis], &[index], &position[end..]].concat()
            }
            Self::Elements(axis) => {
                let mut destination = position.to_vec();
                destination[axis] = resolved(indices.at(position), axis);
                destination
            }
        }
    }
}

/// A row-major tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<T>,
}

impl<T: Copy> Array<T> {
    pub(crate) fn new(shape: &[usize], values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<T> = values.into_iter().take(shape.iter().product()).collect();
        assert_eq!(
            values.len(),
            shape.iter().product::<usize>(),
            "one value per element"
        );
        Self {
            shape: shape.to_vec(),
            values,
        }
    }

    fn number(&self, position: &[usize]) -> usize {
        position
            .iter()
            .zip(&self.shape)
            .fold(0, |number, (at, size)| number * size + at)
    }

    pub(crate) fn at(&self, position: &[usize]) -> T {
        self.values[self.number(position)]
    }

    /// Returns the position of each element, in row-major order.
    pub(crate) fn positions(&self) -> Vec<Vec<usize>> {
        let unravel = |mut number: usize| {
            let mut position = vec![0; self.shape.len()];
            for (at, size) in position.iter_mut().zip(&self.shape).rev() {
                *at = number % size;
                number /= size;
            }
            position
        };
        (0..self.values.len()).map(unravel).collect()
    }
}

/// Applies the updates one after another.
pub(crate) fn scatter<T: Value>(
    place: Place,
    reduction: Reduction,
    data: &Array<T>,
    indices: &Array<i64>,
    updates: &Array<T>,
) -> Array<T> {
    let mut result = data.clone();
    for (position, &update) in updates.positions().iter().zip(&updates.values) {
        let destination = result.number(&place.destination(&data.shape, indices, position));
        let value = &mut result.values[destination];
        *value = value.combined(update, reduction);
    }
    result
}

/// An element type of the tests.
pub(crate) trait Value: Element + Pod {
    /// Converts a small number.
    fn of(number: i8) -> Self;

    fn combined(self, update: Self, reduction: Reduction) -> Self;
}

macro_rules! values {
    ($($value:ty: $of:expr, $add:expr, $sub:expr, $mul:expr;)*) => {$(
        impl Value for $value {
            fn of(number: i8) -> Self {
                $of(number)
            }

            fn combined(self, update: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::None => update,
                    Reduction::Add => $add(self, update),
                    Reduction::Sub => $sub(self, update),
                    Reduction::Mul => $mul(self, update),
                    Reduction::Min => if update < self { update } else { self },
                    Reduction::Max => if update > self { update } else { self },
                    other => unreachable!("no test has the reduction {other}"),
                }
            }
        }
    )*};
}

macro_rules! integers {
    ($($value:ty: $of:expr;)*) => { values! { $(
        $value: $of, <$value>::wrapping_add, <$value>::wrapping_sub, <$value>::wrapping_mul;
    )* } };
}

integers! {
    i64: i64::from; i32: i32::from; i16: i16::from; i8: |number| number;
    u64: |number: i8| i64::from(number).cast_unsigned();
    u32: |number: i8| i32::from(number).cast_unsigned();
    u16: |number: i8| i16::from(number).cast_unsigned();
    u8: i8::cast_unsigned;
}

values! {
    f64: |number: i8| f64::from(number) * 0.7, |a: f64, b| a + b, |a: f64, b| a - b, |a: f64, b| a * b;
    f32: |number: i8| f32::from(number) * 0.7, |a: f32, b| a + b, |a: f32, b| a - b, |a: f32, b| a * b;
    f16: |number: i8| f16::from_f32(f32::from(number) * 0.7),
        |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32()),
        |a: f16, b: f16| f16::from_f32(a.to_f32() - b.to_f32()),
        |a: f16, b: f16| f16::from_f32(a.to_f32() * b.to_f32());
    bf16: |number: i8| bf16::from_f32(f32::from(number) * 0.7),
        |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32()),
        |a: bf16, b: bf16| bf16::from_f32(a.to_f32() - b.to_f32()),
        |a: bf16, b: bf16| bf16::from_f32(a.to_f32() * b.to_f32());
}

/// A generator of pseudo-random numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    /// Returns a number from -5 to 5.
    pub(crate) fn small(&mut self) -> i8 {
        i8::try_from(self.below(11)).expect("a small number") - 5
    }

    /// Returns indices for axes of these sizes. `negative`: some count from the end.
    pub(crate) fn indices(
        &mut self,
        shape: &[usize],
        sizes: &[usize],
        negative: bool,
    ) -> Array<i64> {
        let count = shape.iter().product();
        let index = |number: usize| {
            let size = sizes[number % sizes.len()];
            let index = i64::try_from(self.below(size)).expect("small sizes");
            let from_end = negative && self.below(2) == 0;
            if from_end {
                index - i64::try_from(size).expect("small sizes")
            } else {
                index
            }
        };
        Array {
            shape: shape.to_vec(),
            values: (0..count).map(index).collect(),
        }
    }

    pub(crate) fn array<T: Value>(&mut self, shape: &[usize]) -> Array<T> {
        let count: usize = shape.iter().product();
        Array {
            shape: shape.to_vec(),
            values: (0..count).map(|_| T::of(self.small())).collect(),
        }
    }
}
