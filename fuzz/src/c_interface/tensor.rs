//! DLPack tensors that a caller may pass: valid and invalid descriptions, and their memory.
//!
//! Each tensor has an allocation of exactly the bytes that its description covers, so
//! AddressSanitizer finds an access outside of them.

use std::ptr::null_mut;

use arbitrary::Unstructured;
use ndscatter::DType;
use ndscatter_c::{DLDataType, DLDevice, DLTensor};

use crate::geometry::{Geometry, permuted};

/// Largest number of bytes of an allocation.
const MOST_BYTES: i128 = 1 << 16;
/// Largest number of elements of a tensor in a call that may succeed.
pub(crate) const MOST_ELEMENTS: usize = 2000;

/// Fields of a tensor that are null.
#[derive(Clone, Copy, Debug, Default)]
struct Nulls {
    tensor: bool,
    data: bool,
    shape: bool,
}

/// A tensor that a caller passes.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) dtype: DLDataType,
    device: i32,
    ndim: i32,
    pub(crate) shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    /// Bytes before the first element, which misalign the elements.
    shift: usize,
    byte_offset: u64,
    nulls: Nulls,
    storage: Vec<u8>,
    /// Position of element `[0, 0, ..]` in `storage`.
    first: usize,
}

/// What the description of a tensor says.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// The library must refuse the description.
    Refused,
    /// The caller may not pass the description, because its memory would be too large to exist.
    Impossible,
    Tensor(Tensor),
}

/// A valid description.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) dtype: DType,
    pub(crate) given: DLDataType,
    pub(crate) geometry: Geometry,
    pub(crate) count: usize,
}

impl Tensor {
    pub(crate) fn shape(&self) -> &[usize] {
        &self.geometry.shape
    }
}

impl Given {
    /// Draws a valid tensor of a type and a shape. `is_input`: whether elements may share memory.
    pub(crate) fn draw(
        u: &mut Unstructured<'_>,
        dtype: DLDataType,
        shape: &[usize],
        is_input: bool,
    ) -> arbitrary::Result<Self> {
        let strides = match u.int_in_range(0..=5)? {
            0 => Some(permuted(u, shape)?),
            1 if is_input => {
                let draw = (0..shape.len()).map(|_| u.int_in_range(-4..=4));
                Some(draw.collect::<Result<Vec<isize>, _>>()?)
            }
            _ => None,
        };
        let byte_offset = match u.int_in_range(0..=7)? {
            0 => u.int_in_range(0..=64)?,
            1 => u.arbitrary()?,
            _ => 0,
        };
        Ok(Self {
            dtype,
            device: *u.choose(&[1, 1, 1, 3, 11])?,
            ndim: i32::try_from(shape.len()).expect("a low rank"),
            shape: shape.iter().map(|&size| size as i64).collect(),
            strides: strides.map(|all| all.into_iter().map(|stride| stride as i64).collect()),
            shift: 0,
            byte_offset,
            nulls: Nulls::default(),
            storage: vec![],
            first: 0,
        })
    }

    /// Draws a valid tensor, and changes one field of some tensors. The result may be invalid.
    pub(crate) fn draw_any(
        u: &mut Unstructured<'_>,
        dtype: DLDataType,
        shape: &[usize],
        is_input: bool,
    ) -> arbitrary::Result<Self> {
        let mut given = Self::draw(u, dtype, shape, is_input)?;
        if u.ratio(1, 12)? {
            given.change(u)?;
        }
        Ok(given)
    }

    /// Changes one field. The result may be invalid.
    pub(crate) fn change(&mut self, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        match u.int_in_range(0..=10)? {
            0 => self.nulls.tensor = true,
            1 => self.nulls.data = true,
            2 => self.nulls.shape = true,
            3 => self.device = u.arbitrary()?,
            4 => {
                let DLDataType { code, bits, lanes } = self.dtype;
                let code = if u.arbitrary()? {
                    u.int_in_range(0..=20)?
                } else {
                    code
                };
                let bits = if u.arbitrary()? {
                    *u.choose(&[8, 16, 32, 64, 128, 4])?
                } else {
                    bits
                };
                let lanes = if u.ratio(1, 4)? {
                    u.arbitrary()?
                } else {
                    lanes
                };
                self.dtype = DLDataType { code, bits, lanes };
            }
            5 => {
                self.ndim = match u.int_in_range(0..=3)? {
                    0 => u.arbitrary::<i32>()?.min(-1),
                    1 => u.int_in_range(0..=70)?,
                    _ => (self.ndim + u.int_in_range(-1..=1)?).max(0),
                };
                let rank = usize::try_from(self.ndim).unwrap_or(self.shape.len());
                self.shape.resize(rank, 1);
                if let Some(strides) = &mut self.strides {
                    strides.resize(rank, 0);
                }
            }
            6 | 7 => {
                let value = number(u)?;
                change_one(u, &mut self.shape, value)?;
            }
            8 | 9 => {
                let value = number(u)?;
                let strides = self
                    .strides
                    .take()
                    .unwrap_or_else(|| vec![0; self.shape.len()]);
                let strides = self.strides.insert(strides);
                change_one(u, strides, value)?;
            }
            _ => self.shift = u.int_in_range(1..=8)?,
        }
        Ok(())
    }

    /// Returns what the description says. `is_written`: whether no two elements may share memory.
    /// `is_accessed`: whether the library may access the elements.
    pub(crate) fn claim(&self, is_written: bool, is_accessed: bool) -> Claim {
        let rank = usize::try_from(self.ndim);
        let Ok(shape) = self
            .shape
            .iter()
            .map(|&size| usize::try_from(size))
            .collect()
        else {
            return Claim::Refused;
        };
        let strides = self.strides.as_ref();
        let strides = strides.map(|all| all.iter().map(|&stride| stride as isize).collect());
        let geometry = Geometry { shape, strides };
        let (Some(dtype), Some(count)) = (self.dtype.dtype(), geometry.elements()) else {
            return Claim::Refused;
        };
        let is_null = self.nulls.tensor || self.nulls.shape && self.ndim > 0;
        if is_null || rank.is_err() || ![1, 3, 11].contains(&self.device) {
            return Claim::Refused;
        }
        let tensor = Tensor {
            dtype,
            given: self.dtype,
            geometry,
            count,
        };
        let Some((low, high)) = tensor.geometry.extent() else {
            return Claim::Tensor(tensor);
        };
        if !is_accessed {
            return Claim::Tensor(tensor);
        }
        let bytes = (high - low + 1).saturating_mul(dtype.size() as i128);
        let misaligned = !self.shift.is_multiple_of(dtype.alignment());
        if bytes > isize::MAX as i128 || self.nulls.data || misaligned {
            return Claim::Refused;
        }
        if bytes > MOST_BYTES {
            return Claim::Impossible;
        }
        match is_written && !tensor.geometry.is_distinct() {
            true => Claim::Refused,
            false => Claim::Tensor(tensor),
        }
    }

    /// Allocates the memory that the description covers, and fills it with bytes of `next`. The
    /// description must not be impossible.
    pub(crate) fn store(&mut self, mut next: impl FnMut() -> u64) {
        let (mut bytes, mut first) = (0, 0);
        if let Claim::Tensor(tensor) = self.claim(false, true)
            && let Some((low, high)) = tensor.geometry.extent()
        {
            let size = tensor.dtype.size();
            bytes = (high - low + 1) as usize * size;
            first = (-low) as usize * size;
        }
        let words = (bytes + self.shift).div_ceil(8);
        let filled = (0..words).flat_map(|_| next().to_le_bytes());
        // The allocator aligns the memory to 16 bytes, as AddressSanitizer's allocator does.
        let mut storage = Vec::with_capacity(bytes + self.shift);
        storage.extend(filled.take(bytes + self.shift));
        self.storage = storage;
        self.first = first + self.shift;
    }

    /// Returns the DLPack struct. It points to the shape, the strides and the memory of `self`.
    pub(crate) fn raw(&mut self) -> DLTensor {
        let data = self.storage.as_mut_ptr().wrapping_add(self.first);
        // An address of data of null has another meaning, so such an offset is not used.
        let moved = data.wrapping_sub(self.byte_offset as usize);
        let (data, byte_offset) = match moved.is_null() {
            true => (data, 0),
            false => (moved, self.byte_offset),
        };
        let shape = if self.nulls.shape {
            null_mut()
        } else {
            self.shape.as_mut_ptr()
        };
        DLTensor {
            data: if self.nulls.data {
                null_mut()
            } else {
                data.cast()
            },
            device: DLDevice {
                device_type: self.device,
                device_id: 0,
            },
            ndim: self.ndim,
            dtype: self.dtype,
            shape,
            strides: self.strides.as_mut().map_or(null_mut(), Vec::as_mut_ptr),
            byte_offset,
        }
    }

    /// Whether a list of indices of this shape may have many tuples, also without elements: a tuple
    /// of no coordinates has none. A plan needs memory for each tuple.
    pub(crate) fn is_long_list(&self) -> bool {
        let mut sizes = self.shape.iter().filter(|&&size| size > 0);
        let most = MOST_ELEMENTS as i128;
        let mut tuples = 1_i128;
        sizes.any(|&size| {
            tuples *= size as i128;
            tuples > most
        })
    }

    pub(crate) fn set_null(&mut self, is_null: bool) {
        self.nulls.tensor = is_null;
    }

    pub(crate) fn is_null(&self) -> bool {
        self.nulls.tensor
    }

    /// Whether the shape, the strides and all bytes are equal.
    pub(crate) fn is_unchanged(&self, before: &Self) -> bool {
        (&self.shape, &self.strides, &self.storage)
            == (&before.shape, &before.strides, &before.storage)
    }

    /// Returns the bytes of each element, in row-major order.
    pub(crate) fn read(&self, tensor: &Tensor) -> Vec<Vec<u8>> {
        let places = self.places(tensor).into_iter();
        places
            .map(|at| self.storage[at..][..tensor.dtype.size()].to_vec())
            .collect()
    }

    /// Writes the bytes of each element, in row-major order.
    pub(crate) fn write(&mut self, tensor: &Tensor, elements: &[Vec<u8>]) {
        for (at, element) in self.places(tensor).into_iter().zip(elements) {
            self.storage[at..][..element.len()].copy_from_slice(element);
        }
    }

    fn places(&self, tensor: &Tensor) -> Vec<usize> {
        let size = tensor.dtype.size() as i128;
        let at = |offset: i128| (self.first as i128 + offset * size) as usize;
        tensor.geometry.offsets().into_iter().map(at).collect()
    }
}

/// Draws a size or a stride.
fn number(u: &mut Unstructured<'_>) -> arbitrary::Result<i64> {
    Ok(match u.int_in_range(0..=7)? {
        0..=4 => u.int_in_range(-3..=6)?,
        5 => i64::MAX >> u.int_in_range(0..=62)?,
        6 => i64::MIN >> u.int_in_range(0..=62)?,
        _ => u.arbitrary()?,
    })
}

fn change_one(u: &mut Unstructured<'_>, all: &mut [i64], value: i64) -> arbitrary::Result<()> {
    if !all.is_empty() {
        let at = u.choose_index(all.len())?;
        all[at] = value;
    }
    Ok(())
}
