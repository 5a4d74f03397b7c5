//! Shapes and strides, and what they describe. All computations use 128-bit integers, so none of
//! them overflows.

use std::collections::HashSet;

use arbitrary::Unstructured;
use ndscatter::DType;

/// Returns the low `size` bytes of an integer, in the byte order of this machine.
pub(crate) fn bytes_of(number: i128, size: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes()[..size].to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// Reads an integer in the byte order of this machine. `bytes` has the size of the type.
pub(crate) fn integer(bytes: &[u8], dtype: DType) -> i128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        wide[..bytes.len()].reverse();
    }
    let (number, unused) = (i128::from_le_bytes(wide), 128 - 8 * bytes.len());
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => number << unused >> unused,
        _ => number,
    }
}

/// Shape and strides of a tensor. Strides count elements.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) shape: Vec<usize>,
    /// `None`: row-major.
    pub(crate) strides: Option<Vec<isize>>,
}

/// Largest number of elements that a case enumerates.
pub(crate) const MOST: usize = 2000;

impl Geometry {
    /// Draws a shape of rank 0 to 9 and strides. Strides sometimes have another rank than the shape.
    pub(crate) fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let how = u.int_in_range(0..=15)?;
        let rank = match u.int_in_range(0..=3)? {
            0 => u.int_in_range(4..=9)?,
            _ => u.int_in_range(0..=3)?,
        };
        let shape = (0..rank).map(|_| size(u)).collect::<Result<Vec<_>, _>>()?;
        let strides = match how {
            0..=2 => None,
            3..=5 => Some(permuted(u, &shape)?),
            15 => Some(some(u, rank + 1)?),
            _ => Some(some(u, rank)?),
        };
        Ok(Self { shape, strides })
    }

    /// Whether there is one stride per dimension.
    pub(crate) fn ranks_agree(&self) -> bool {
        (self.strides.as_ref()).is_none_or(|strides| strides.len() == self.shape.len())
    }

    /// Returns the number of elements. Returns `None` if the product of the sizes other than 0 is
    /// more than `isize::MAX`.
    pub(crate) fn elements(&self) -> Option<usize> {
        let mut product = 1_i128;
        for &size in self.shape.iter().filter(|&&size| size != 0) {
            product *= size as i128;
            if product > isize::MAX as i128 {
                return None;
            }
        }
        match self.shape.contains(&0) {
            true => Some(0),
            false => usize::try_from(product).ok(),
        }
    }

    /// Returns the stride of each dimension. The elements must be countable.
    pub(crate) fn steps(&self) -> Vec<i128> {
        if let Some(strides) = &self.strides {
            return strides.iter().map(|&stride| stride as i128).collect();
        }
        let mut steps = vec![1; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            steps[axis - 1] = steps[axis] * self.shape[axis].max(1) as i128;
        }
        steps
    }

    /// Returns the lowest and the highest offset of an element. Returns `None` without elements. The
    /// elements must be countable.
    pub(crate) fn extent(&self) -> Option<(i128, i128)> {
        if self.shape.contains(&0) {
            return None;
        }
        let (mut low, mut high) = (0, 0);
        for (&size, step) in self.shape.iter().zip(self.steps()) {
            let reach = (size as i128 - 1) * step;
            low += reach.min(0);
            high += reach.max(0);
        }
        Some((low, high))
    }

    /// Returns the offset of each element, in row-major order. There are at most [`MOST`] elements.
    pub(crate) fn offsets(&self) -> Vec<i128> {
        if self.shape.contains(&0) {
            return vec![];
        }
        let mut offsets = vec![0];
        for (&size, step) in self.shape.iter().zip(self.steps()) {
            let along = |&from: &i128| (0..size as i128).map(move |at| from + at * step);
            offsets = offsets.iter().flat_map(along).collect();
        }
        offsets
    }

    /// Whether no two elements have one offset. The extent must be less than [`MOST`].
    pub(crate) fn is_distinct(&self) -> bool {
        let Some((low, high)) = self.extent() else {
            return true;
        };
        let places = high - low + 1;
        // With more elements than places, two elements share a place.
        (self.elements()).is_some_and(|count| count as i128 <= places)
            && self.offsets().into_iter().collect::<HashSet<_>>().len()
                == self.elements().unwrap_or(0)
    }

    /// Returns the number of dimensions of more than one element.
    pub(crate) fn long_dims(&self) -> usize {
        self.shape.iter().filter(|&&size| size > 1).count()
    }
}

/// Draws a size: usually small, sometimes up to the limits of the type.
fn size(u: &mut Unstructured<'_>) -> arbitrary::Result<usize> {
    Ok(match u.int_in_range(0..=31)? {
        0..=23 => u.int_in_range(0..=5)?,
        24..=27 => 1,
        28..=29 => u.int_in_range(0..=300)?,
        30 => usize::MAX >> u.int_in_range(0..=40)?,
        _ => u.arbitrary()?,
    })
}

/// Draws a stride: usually small, sometimes up to the limits of the type.
pub(crate) fn stride(u: &mut Unstructured<'_>) -> arbitrary::Result<isize> {
    Ok(match u.int_in_range(0..=31)? {
        0..=27 => u.int_in_range(-9..=9)?,
        28..=29 => u.int_in_range(-300..=300)?,
        30 => isize::MIN >> u.int_in_range(0..=40)?,
        _ => u.arbitrary()?,
    })
}

fn some(u: &mut Unstructured<'_>, rank: usize) -> arbitrary::Result<Vec<isize>> {
    (0..rank).map(|_| stride(u)).collect()
}

/// Draws strides with which no two elements share memory: the dimensions are nested in any order,
/// with gaps, in any direction.
pub(crate) fn permuted(u: &mut Unstructured<'_>, shape: &[usize]) -> arbitrary::Result<Vec<isize>> {
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    for last in (1..axes.len()).rev() {
        axes.swap(last, u.int_in_range(0..=last)?);
    }
    let (mut strides, mut step) = (vec![0; shape.len()], 1_isize);
    for axis in axes {
        step = step.wrapping_mul(u.int_in_range(1..=2)?);
        strides[axis] = if u.ratio(1, 4)? {
            step.wrapping_neg()
        } else {
            step
        };
        step = step.wrapping_mul(shape[axis].max(1).cast_signed());
    }
    Ok(strides)
}
