//! Views of candle's storages for ndscatter.
//!
//! This module knows storages, layouts and element types of candle. It does not know operators.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, Error, Layout, Result};
use ndscatter::{AnyView, Element, ScatterError, TensorView, TensorViewMut};

/// Evaluates `$call` with the vector of a storage as `$values`, and with the constructor of the
/// storage as `$of`. Returns an error if the storage has elements of fewer than 8 bits or an 8-bit
/// float type.
macro_rules! for_values {
    ($storage:expr, $name:expr, ($values:ident, $of:ident) => $call:expr) => {
        $crate::view::for_values!(
            $storage, $name, ($values, $of) => $call; U8 U32 I16 I32 I64 BF16 F16 F32 F64
        )
    };
    ($storage:expr, $name:expr, ($values:ident, $of:ident) => $call:expr; $($variant:ident)*) => {
        match $storage {
            $(candle_core::CpuStorage::$variant($values) => {
                let $of = candle_core::CpuStorage::$variant;
                $call
            })*
            other => Err($crate::view::unsupported(other, $name)),
        }
    };
}

pub(crate) use for_values;

/// Returns the error for a storage whose element type ndscatter does not have.
#[cold]
pub(crate) fn unsupported(storage: &CpuStorage, name: &'static str) -> Error {
    Error::UnsupportedDTypeForOp(storage.dtype(), name).bt()
}

/// Returns an error unless both storages have one element type.
#[inline]
pub(crate) fn check_dtypes(a: &CpuStorage, b: &CpuStorage, op: &'static str) -> Result<()> {
    let (lhs, rhs) = (a.dtype(), b.dtype());
    if lhs == rhs {
        return Ok(());
    }
    Err(Error::DTypeMismatchBinaryOp { lhs, rhs, op }.bt())
}

/// Shape, strides and first element of a tensor, as ndscatter needs them.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    layout: &'a Layout,
    /// `None`: row-major.
    strides: Option<Vec<isize>>,
}

impl<'a> Place<'a> {
    #[inline]
    pub(crate) fn of(layout: &'a Layout) -> Self {
        let strides = (!layout.is_contiguous())
            .then(|| (layout.stride().iter().map(|stride| stride.cast_signed())).collect());
        Self { layout, strides }
    }

    #[inline]
    pub(crate) fn dims(&self) -> &'a [usize] {
        self.layout.dims()
    }

    /// Returns the range of a row-major tensor in a storage of `len` elements. A tensor without
    /// elements may begin after the end of its storage.
    #[inline]
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let (start, count) = (self.layout.start_offset(), self.layout.shape().elem_count());
        if count == 0 {
            0..0
        } else {
            start.min(len)..start.saturating_add(count).min(len)
        }
    }

    /// Returns a view of a tensor with the elements `values`.
    #[inline]
    pub(crate) fn view<'v, T>(
        &'v self,
        values: &'v [T],
    ) -> std::result::Result<TensorView<'v, T>, ScatterError> {
        let dims = self.dims();
        match &self.strides {
            None => TensorView::contiguous(&values[self.range(values.len())], dims),
            Some(strides) => TensorView::strided(values, self.layout.start_offset(), dims, strides),
        }
    }

    /// Returns a view to write a tensor with the elements `values`.
    #[inline]
    pub(crate) fn view_mut<'v, T>(
        &'v self,
        values: &'v mut [T],
    ) -> std::result::Result<TensorViewMut<'v, T>, ScatterError> {
        let dims = self.dims();
        match &self.strides {
            None => {
                let range = self.range(values.len());
                TensorViewMut::contiguous(&mut values[range], dims)
            }
            Some(strides) => {
                TensorViewMut::strided(values, self.layout.start_offset(), dims, strides)
            }
        }
    }

    /// Returns a view of a tensor in `storage`, with the element type of the storage.
    pub(crate) fn any_view<'v>(
        &'v self,
        storage: &'v CpuStorage,
        name: &'static str,
    ) -> Result<AnyView<'v>> {
        for_values!(storage, name, (values, _of) => {
            self.view(values).map(AnyView::from).map_err(Error::wrap)
        })
    }
}

/// Returns a view of a row-major tensor. Returns `None` for other tensors, and if [`Place::view`]
/// returns an error.
///
/// In the smallest calls, a result of [`Place::view`] is stored and loaded again. This function is
/// inlined, and its result stays in registers.
#[inline]
pub(crate) fn row_major<'v, T>(values: &'v [T], layout: &'v Layout) -> Option<TensorView<'v, T>> {
    let (start, end) = layout.contiguous_offsets()?;
    TensorView::contiguous(values.get(start..end)?, layout.dims()).ok()
}

/// As [`row_major`], for a view to write.
#[inline]
pub(crate) fn row_major_mut<'v, T>(
    values: &'v mut [T],
    layout: &'v Layout,
) -> Option<TensorViewMut<'v, T>> {
    let (start, end) = layout.contiguous_offsets()?;
    TensorViewMut::contiguous(values.get_mut(start..end)?, layout.dims()).ok()
}

/// The elements of a storage of a known element type.
pub(crate) trait Values: Element + candle_core::WithDType {
    fn values(storage: &CpuStorage) -> Result<&[Self]> {
        Self::cpu_storage_as_slice(storage)
    }
}

impl<T: Element + candle_core::WithDType> Values for T {}
