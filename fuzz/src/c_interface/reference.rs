//! Scatters and gathers as loops over elements, and the rules by which a call is valid.

use std::collections::HashSet;

use ndscatter::{Bounds, DType, Duplicates, Reduction};

use crate::geometry::integer;

use super::options::Meaning;
use super::tensor::Tensor;

/// An operator with the arguments that C passes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    Nd { batch_dims: i64 },
    Along { axis: i64 },
    Elements { axis: i64 },
    Cache { axis: i64, circular: i32 },
    Paged,
}

/// An operator with valid arguments. `Nd` addresses the axes from `batch` on.
#[derive(Clone, Copy, Debug)]
enum Valid {
    Nd { batch: usize, coordinates: usize },
    Along { axis: usize },
    Elements { axis: usize },
    Cache { axis: usize, is_circular: bool },
    Paged,
}

/// The place of an index on its axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    At(usize),
    Skipped,
    OutOfBounds,
}

/// A call with valid tensors.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) operator: Operator,
    pub(crate) meaning: Meaning,
    pub(crate) is_gather: bool,
    pub(crate) data: &'a Tensor,
    /// `None`: one position 0.
    pub(crate) indices: Option<&'a Tensor>,
    /// Updates, or the output of a gather.
    pub(crate) listed: &'a [usize],
}

/// The elements of data that the elements of updates address, in row-major order. `None`: the tuple
/// is skipped.
pub(crate) type Positions = Vec<Option<usize>>;

impl Call<'_> {
    /// Returns the shape of data, in which the slots of a paged cache are one axis.
    fn data_shape(&self, operator: Valid) -> Vec<usize> {
        let shape = self.data.shape();
        match operator {
            Valid::Paged => [&[shape[0] * shape[1]], &shape[2..]].concat(),
            _ => shape.to_vec(),
        }
    }

    fn list(&self) -> &[usize] {
        self.indices.map_or(&[], Tensor::shape)
    }

    /// Returns the operator if its arguments, the shapes, the types and the options are valid.
    fn valid(&self) -> Option<Valid> {
        let (data, list) = (self.data.shape(), self.list());
        let axis_of = |axis: i64| {
            let rank = data.len() as i64;
            let is_valid = (-rank..rank).contains(&axis);
            is_valid.then(|| axis.rem_euclid(rank) as usize)
        };
        let operator = match self.operator {
            Operator::Nd { batch_dims } => {
                let (&coordinates, tuples) = list.split_last()?;
                // A scatter has no batch dims.
                let batch_dims = if self.is_gather { batch_dims } else { 0 };
                let batch = usize::try_from(batch_dims).ok()?;
                let fits = batch <= tuples.len() && batch.checked_add(coordinates)? <= data.len();
                if !fits || tuples[..batch] != data[..batch] {
                    return None;
                }
                Valid::Nd { batch, coordinates }
            }
            Operator::Along { axis } => Valid::Along {
                axis: axis_of(axis)?,
            },
            Operator::Elements { axis } => {
                let axis = axis_of(axis)?;
                let mut dims = list.iter().zip(data).enumerate();
                let fits = dims.all(|(at, (list, data))| at == axis || list <= data);
                (fits && list.len() == data.len()).then_some(Valid::Elements { axis })?
            }
            Operator::Cache { axis, circular } => {
                let axis = axis_of(axis).filter(|&axis| axis != 0)?;
                let fits = list.is_empty() || list == &data[..1];
                let is_circular = [false, true]
                    .get(usize::try_from(circular).ok()?)
                    .copied()?;
                fits.then_some(Valid::Cache { axis, is_circular })?
            }
            Operator::Paged => (data.len() >= 2).then_some(Valid::Paged)?,
        };
        let is_index = self.indices.is_none_or(|indices| indices.dtype.is_index());
        (is_index && self.fits(operator) && self.has_options()).then_some(operator)
    }

    /// Returns the shape that updates, or the output of a gather, must have.
    fn required(&self, operator: Valid, data: &[usize]) -> Vec<usize> {
        let list = self.list();
        match operator {
            Valid::Nd { batch, coordinates } => {
                [&list[..list.len() - 1], &data[batch + coordinates..]].concat()
            }
            Valid::Along { axis } => [&data[..axis], list, &data[axis + 1..]].concat(),
            Valid::Elements { .. } => list.to_vec(),
            Valid::Cache { axis, .. } => {
                let mut shape = data.to_vec();
                let rows = self.listed.get(axis).copied().unwrap_or(0);
                shape[axis] = rows.min(data[axis]);
                shape
            }
            Valid::Paged => [list, &data[1..]].concat(),
        }
    }

    /// Whether updates, or the output of a gather, have the required shape. Updates of one
    /// element and any rank may stand for updates of rank 0.
    fn fits(&self, operator: Valid) -> bool {
        let required = self.required(operator, &self.data_shape(operator));
        let is_one = || !self.is_gather && self.listed.iter().all(|&size| size == 1);
        required == self.listed || required.is_empty() && is_one()
    }

    /// Whether the function has the options, and the type has the reduction.
    fn has_options(&self) -> bool {
        let Meaning {
            reduction,
            bounds,
            duplicates,
            ..
        } = self.meaning;
        let is_none = reduction == Reduction::None;
        if self.is_gather {
            return is_none && duplicates == Duplicates::Allow;
        }
        if let Operator::Cache { .. } = self.operator {
            return is_none && bounds != Bounds::Clamp;
        }
        has_reduction(self.data.dtype, reduction)
    }

    /// Whether the call is valid except for the values of its indices.
    pub(crate) fn is_valid(&self) -> bool {
        self.valid().is_some()
    }

    /// Returns the elements of data that the elements of updates address. Returns `None` if the
    /// call is invalid. `indices` has the value of each index.
    pub(crate) fn positions(&self, indices: &[i128]) -> Option<Positions> {
        let operator = self.valid()?;
        let data = self.data_shape(operator);
        if let Valid::Cache { axis, is_circular } = operator {
            return self.rows(axis, is_circular, indices);
        }
        let size = |number: usize| match operator {
            Valid::Nd { batch, coordinates } => data[batch + number % coordinates],
            Valid::Along { axis } | Valid::Elements { axis } => data[axis],
            Valid::Cache { .. } | Valid::Paged => data[0],
        };
        let numbered = indices.iter().enumerate();
        let places: Vec<_> = numbered
            .map(|(at, &index)| self.place(index, size(at)))
            .collect();
        let has_duplicates = || self.has_duplicates(operator, &places);
        let rejects = self.meaning.duplicates == Duplicates::Reject;
        if places.contains(&Place::OutOfBounds) || rejects && has_duplicates() {
            return None;
        }
        let all = every(&self.required(operator, &data)).into_iter();
        Some(
            all.map(|at| self.position(operator, &data, &places, &at))
                .collect(),
        )
    }

    fn place(&self, index: i128, size: usize) -> Place {
        let is_paged = matches!(self.operator, Operator::Paged);
        let counts = self.meaning.negative_indices && !is_paged;
        let bounds = match self.meaning.bounds {
            Bounds::Error if is_paged && self.meaning.negative_indices => Bounds::SkipNegative,
            bounds => bounds,
        };
        let end = size as i128;
        let place = if counts && index < 0 {
            index + end
        } else {
            index
        };
        match bounds {
            _ if (0..end).contains(&place) => Place::At(place as usize),
            Bounds::Skip => Place::Skipped,
            Bounds::SkipNegative if place < 0 => Place::Skipped,
            Bounds::Clamp if size > 0 => Place::At(place.clamp(0, end - 1) as usize),
            _ => Place::OutOfBounds,
        }
    }

    /// Whether two tuples that are not skipped have one destination.
    fn has_duplicates(&self, operator: Valid, places: &[Place]) -> bool {
        let list = self.list();
        let count: usize = match operator {
            Valid::Nd { .. } => list[..list.len() - 1].iter().product(),
            _ => list.iter().product(),
        };
        let mut seen = HashSet::new();
        (0..count).any(|tuple| {
            let (places, implied) = match operator {
                Valid::Nd { coordinates, .. } => {
                    (&places[tuple * coordinates..][..coordinates], vec![])
                }
                Valid::Elements { axis } => {
                    let mut implied = unravel(tuple, list);
                    implied.remove(axis);
                    (&places[tuple..=tuple], implied)
                }
                _ => (&places[tuple..=tuple], vec![]),
            };
            let to = places
                .iter()
                .map(|place| at(*place))
                .collect::<Option<Vec<_>>>();
            to.is_some_and(|to| !seen.insert((implied, to)))
        })
    }

    /// Returns the position in data of the element `to` of updates.
    fn position(
        &self,
        operator: Valid,
        data: &[usize],
        places: &[Place],
        to: &[usize],
    ) -> Option<usize> {
        let list = self.list();
        let coordinates = match operator {
            Valid::Nd { batch, coordinates } => {
                let (tuple, window) = to.split_at(list.len() - 1);
                let number = number_of(tuple, list) * coordinates;
                let read = places[number..][..coordinates]
                    .iter()
                    .map(|&place| at(place));
                let read = read.collect::<Option<Vec<_>>>()?;
                [&tuple[..batch], &read, window].concat()
            }
            Valid::Along { axis } => {
                let (outer, rest) = to.split_at(axis);
                let (index, inner) = rest.split_at(list.len());
                [outer, &[at(places[number_of(index, list)])?], inner].concat()
            }
            Valid::Elements { axis } => {
                let mut to = to.to_vec();
                to[axis] = at(places[number_of(&to, list)])?;
                to
            }
            Valid::Paged | Valid::Cache { .. } => {
                let (index, inner) = to.split_at(list.len());
                [&[at(places[number_of(index, list)])?], inner].concat()
            }
        };
        Some(number_of(&coordinates, data))
    }

    /// Returns the elements of a cache that the elements of the update address.
    fn rows(&self, axis: usize, is_circular: bool, indices: &[i128]) -> Option<Positions> {
        let (data, listed) = (self.data.shape(), self.listed);
        let (size, rows) = (data[axis] as i128, listed[axis] as i128);
        let skips = matches!(self.meaning.bounds, Bounds::Skip | Bounds::SkipNegative);
        let is_bad = |&index: &i128| {
            index < 0 && !skips || index >= 0 && !is_circular && index > size - rows
        };
        // Without sequences, the one position for all sequences belongs to no sequence.
        if data[0] > 0 && indices.iter().any(is_bad) {
            return None;
        }
        let position = |mut to: Vec<usize>| {
            let sequence = if self.list().is_empty() { 0 } else { to[0] };
            let start = indices.get(sequence).copied().unwrap_or(0);
            (start >= 0).then(|| {
                to[axis] = ((start + to[axis] as i128) % size) as usize;
                number_of(&to, data)
            })
        };
        Some(every(listed).into_iter().map(position).collect())
    }
}

fn at(place: Place) -> Option<usize> {
    match place {
        Place::At(at) => Some(at),
        _ => None,
    }
}

/// Returns the row-major number of the index `at`. `shape` may have further dims.
fn number_of(at: &[usize], shape: &[usize]) -> usize {
    at.iter()
        .zip(shape)
        .fold(0, |number, (&at, &size)| number * size + at)
}

fn unravel(mut number: usize, shape: &[usize]) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for (at, &size) in at.iter_mut().zip(shape).rev() {
        (*at, number) = (number % size, number / size);
    }
    at
}

/// Returns every index of `shape` in row-major order.
pub(crate) fn every(shape: &[usize]) -> Vec<Vec<usize>> {
    let count = if shape.contains(&0) {
        0
    } else {
        shape.iter().product()
    };
    (0..count).map(|number| unravel(number, shape)).collect()
}

/// Whether the type has the reduction.
pub(crate) fn has_reduction(dtype: DType, reduction: Reduction) -> bool {
    match (dtype, reduction) {
        (_, Reduction::None) => true,
        (DType::Bool, Reduction::Mean) => false,
        (DType::Complex64 | DType::Complex128, Reduction::Min | Reduction::Max) => false,
        (dtype, _) => !dtype.is_opaque(),
    }
}

/// Applies one step of a reduction. Returns `None` for types whose steps this file does not have.
pub(crate) fn step(
    dtype: DType,
    reduction: Reduction,
    current: &[u8],
    update: &[u8],
) -> Option<Vec<u8>> {
    macro_rules! integers {
        ($type:ty) => {{
            let read = |bytes: &[u8]| <$type>::from_ne_bytes(bytes.try_into().expect("an element"));
            let (a, b) = (read(current), read(update));
            let value = match reduction {
                Reduction::Add => a.wrapping_add(b),
                Reduction::Sub => a.wrapping_sub(b),
                Reduction::Mul => a.wrapping_mul(b),
                Reduction::Min => a.min(b),
                Reduction::Max => a.max(b),
                _ => return None,
            };
            Some(value.to_ne_bytes().to_vec())
        }};
    }
    macro_rules! floats {
        ($type:ty) => {{
            let read = |bytes: &[u8]| <$type>::from_ne_bytes(bytes.try_into().expect("an element"));
            let (a, b) = (read(current), read(update));
            let value = match reduction {
                Reduction::Add => a + b,
                Reduction::Sub => a - b,
                Reduction::Mul => a * b,
                Reduction::Min | Reduction::Max if a.is_nan() || b.is_nan() => <$type>::NAN,
                Reduction::Min if b < a => b,
                Reduction::Max if b > a => b,
                Reduction::Min | Reduction::Max => a,
                _ => return None,
            };
            Some(value.to_ne_bytes().to_vec())
        }};
    }
    match dtype {
        _ if reduction == Reduction::None => Some(update.to_vec()),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        DType::U8 => integers!(u8),
        DType::U16 => integers!(u16),
        DType::U32 => integers!(u32),
        DType::U64 => integers!(u64),
        DType::F32 => floats!(f32),
        DType::F64 => floats!(f64),
        DType::Bool => {
            let (a, b) = (current != [0], update != [0]);
            let value = match reduction {
                Reduction::Add | Reduction::Max => a || b,
                Reduction::Sub => a != b,
                Reduction::Mul | Reduction::Min => a && b,
                _ => return None,
            };
            Some(vec![u8::from(value)])
        }
        _ => None,
    }
}

/// Whether two elements are equal: all their bits, or both NaN if `with_nan`.
pub(crate) fn same(dtype: DType, with_nan: bool, a: &[u8], b: &[u8]) -> bool {
    let part = match dtype {
        DType::Complex64 | DType::Complex128 => dtype.size() / 2,
        _ => dtype.size(),
    };
    let is_nan = |bytes: &[u8]| match dtype {
        DType::F16 => integer(bytes, dtype) & 0x7fff > 0x7c00,
        DType::BF16 => integer(bytes, dtype) & 0x7fff > 0x7f80,
        DType::F32 | DType::Complex64 => {
            f32::from_ne_bytes(bytes.try_into().expect("a float")).is_nan()
        }
        DType::F64 | DType::Complex128 => {
            f64::from_ne_bytes(bytes.try_into().expect("a float")).is_nan()
        }
        _ => false,
    };
    let mut parts = a.chunks(part).zip(b.chunks(part));
    parts.all(|(a, b)| a == b || with_nan && is_nan(a) && is_nan(b))
}
