//! The rules for indices, and candle's rule that the maximum of an index type is no position.
//!
//! This module knows index types and the axes that indices address. It does not know updates or
//! reductions.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, DType, Error, Layout, Result};
use ndscatter::{Bounds, Indices, Operator, ScatterError, TensorView};

use crate::view::Place;

/// The options of an operator for its indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRules {
    /// Whether negative indices count from the end of their axis.
    pub(crate) negative: bool,
    pub(crate) bounds: Rule,
}

/// A rule for an index outside its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Bounds(Bounds),
    /// The maximum of the index type is skipped, also if the axis has such a position. Any other
    /// index outside its axis is an error.
    SkipMax,
}

impl Default for IndexRules {
    fn default() -> Self {
        Self {
            negative: true,
            bounds: Rule::Bounds(Bounds::Error),
        }
    }
}

impl IndexRules {
    /// The rules of candle: the maximum is skipped, and negative indices are errors.
    pub(crate) const CANDLE: Self = Self {
        negative: false,
        bounds: Rule::SkipMax,
    };
}

/// An index tensor of a call, and the axes that it addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexTensor<'a> {
    pub(crate) name: &'static str,
    pub(crate) operator: Operator,
    pub(crate) rules: IndexRules,
    pub(crate) storage: &'a CpuStorage,
    pub(crate) layout: &'a Layout,
    /// Shape of data.
    pub(crate) shape: &'a [usize],
}

impl IndexTensor<'_> {
    /// Calls `call` with the indices and the rule for indices out of bounds.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        mut call: impl FnMut(Bounds, Indices<'_>) -> std::result::Result<R, ScatterError>,
    ) -> Result<R> {
        let place = Place::of(self.layout);
        let view = place.any_view(self.storage, self.name)?;
        let bounds = match self.rules.bounds {
            Rule::Bounds(bounds) => Some(bounds),
            Rule::SkipMax => self.bounds_after_scan(),
        };
        if let Some(bounds) = bounds {
            return call(bounds, view.into()).map_err(Error::wrap);
        }
        let Some(max) = maximum(self.storage.dtype()) else {
            // ndscatter refuses the type of the indices.
            return call(Bounds::Error, view.into()).map_err(Error::wrap);
        };
        let indices = self.without(max)?;
        let view = TensorView::contiguous(&indices, place.dims()).map_err(Error::wrap)?;
        call(Bounds::Skip, view.into()).map_err(Error::wrap)
    }

    /// Returns the rule of ndscatter that has the effect of [`Rule::SkipMax`] on the given indices.
    /// Returns `None` if there is no such rule, and for indices that are not row-major or address
    /// several axes.
    fn bounds_after_scan(&self) -> Option<Bounds> {
        let (_, &[size]) = self.axes() else {
            return None;
        };
        let range = self.layout.contiguous_offsets()?;
        if size == 0 || matches!(self.operator, Operator::Cache { .. }) {
            return None;
        }
        let first = if self.rules.negative {
            0_i64.checked_sub_unsigned(size as u64)?
        } else {
            0
        };
        let last = 0_i64.checked_add_unsigned(size as u64 - 1)?;
        let has_maximum = match self.storage {
            CpuStorage::U8(values) => scan(values.get(range.0..range.1)?, 0, last, u8::MAX),
            CpuStorage::U32(values) => scan(values.get(range.0..range.1)?, 0, last, u32::MAX),
            CpuStorage::I16(values) => scan(values.get(range.0..range.1)?, first, last, i16::MAX),
            CpuStorage::I32(values) => scan(values.get(range.0..range.1)?, first, last, i32::MAX),
            CpuStorage::I64(values) => scan(values.get(range.0..range.1)?, first, last, i64::MAX),
            _ => None,
        }?;
        Some(if has_maximum {
            Bounds::Skip
        } else {
            Bounds::Error
        })
    }

    /// Returns the indices in row-major order, with `i64::MIN` in the place of `max`. This index is
    /// out of bounds on every axis. Any other index that is out of bounds is an error.
    fn without(&self, max: i128) -> Result<Vec<i64>> {
        let CpuStorage::I64(mut indices) = self.storage.to_dtype(self.layout, DType::I64)? else {
            return Err(Error::UnexpectedDType {
                msg: "indices",
                expected: DType::I64,
                got: self.storage.dtype(),
            });
        };
        let (first, sizes) = self.axes();
        for (number, index) in indices.iter_mut().enumerate() {
            if i128::from(*index) == max {
                *index = i64::MIN;
                continue;
            }
            let Some(coordinate) = number.checked_rem(sizes.len()) else {
                continue;
            };
            let size = sizes[coordinate];
            if !self.allows(i128::from(*index), size) {
                let (tuple, axis, index) =
                    (number / sizes.len(), first + coordinate, i128::from(*index));
                return Err(Error::wrap(ScatterError::IndexOutOfBounds {
                    tuple,
                    axis,
                    index,
                    size,
                }));
            }
        }
        Ok(indices)
    }

    /// Whether `index` is a position on an axis of `size` elements. A negative start in a cache is
    /// not a position, and ndscatter checks all other starts.
    fn allows(&self, index: i128, size: usize) -> bool {
        let size = i128::try_from(size).unwrap_or(i128::MAX);
        match self.operator {
            Operator::Cache { .. } => index >= 0,
            _ if self.rules.negative => (-size..size).contains(&index),
            _ => (0..size).contains(&index),
        }
    }

    /// Returns the first axis of data that the indices address, and the sizes of these axes. There
    /// are no sizes if ndscatter refuses the shapes of the call.
    fn axes(&self) -> (usize, &[usize]) {
        let (first, count) = match self.operator {
            Operator::Nd { batch_dims } => {
                (batch_dims, self.layout.dims().last().copied().unwrap_or(0))
            }
            Operator::Along { axis }
            | Operator::Elements { axis }
            | Operator::Cache { axis, .. } => {
                let rank = if axis < 0 { self.shape.len() } else { 0 };
                (rank.checked_add_signed(axis).unwrap_or(usize::MAX), 1)
            }
            _ => (usize::MAX, 0),
        };
        let end = first.saturating_add(count);
        (first, self.shape.get(first..end).unwrap_or(&[]))
    }
}

/// Returns whether `values` contains `maximum`. Returns `None` if another value is outside of
/// `first..=last`, or if `maximum` is in this range.
fn scan<I: Copy + PartialOrd + TryFrom<i64>>(
    values: &[I],
    first: i64,
    last: i64,
    maximum: I,
) -> Option<bool> {
    let (first, last) = (I::try_from(first).ok()?, I::try_from(last).ok()?);
    if last >= maximum {
        return None;
    }
    let mut found = false;
    for chunk in values.chunks(1024) {
        // Without branches, so that the compiler uses vectors.
        let (mut has_maximum, mut has_other) = (false, false);
        for &value in chunk {
            let is_maximum = value == maximum;
            has_maximum |= is_maximum;
            has_other |= !is_maximum & ((value < first) | (value > last));
        }
        if has_other {
            return None;
        }
        found |= has_maximum;
    }
    Some(found)
}

/// Returns the maximum of an index type.
fn maximum(dtype: DType) -> Option<i128> {
    Some(match dtype {
        DType::U8 => u8::MAX.into(),
        DType::U32 => u32::MAX.into(),
        DType::I16 => i16::MAX.into(),
        DType::I32 => i32::MAX.into(),
        DType::I64 => i64::MAX.into(),
        _ => return None,
    })
}
