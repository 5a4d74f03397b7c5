//! Layouts of tensors: shapes, strides, extents.
//!
//! This module knows sizes, and strides in elements. It does not know element types, operators or
//! memory.

use super::dims::Dims;
use crate::element::DType;
use crate::error::ScatterError;
use crate::memory::copied;

/// Borrowed shape and strides of a tensor.
///
/// Strides are in elements. They may be negative or 0. A layout is checked against memory only when
/// a view is made from the layout.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    shape: Shape<'a>,
    /// Strides in elements. `None`: row-major and contiguous.
    strides: Option<&'a [isize]>,
}

/// Sizes of the dimensions: borrowed, or the only size of a tensor of rank 1.
#[derive(Clone, Copy, Debug)]
enum Shape<'a> {
    Sizes(&'a [usize]),
    Line([usize; 1]),
}

impl<'a> Layout<'a> {
    /// Returns the row-major contiguous layout of `shape`.
    #[inline]
    pub fn contiguous(shape: &'a [usize]) -> Self {
        Self {
            shape: Shape::Sizes(shape),
            strides: None,
        }
    }

    /// Returns the contiguous layout of rank 1 with `len` elements.
    #[inline]
    pub fn line(len: usize) -> Self {
        Self {
            shape: Shape::Line([len]),
            strides: None,
        }
    }

    /// Returns a layout with one stride per dimension. `strides` are in elements.
    ///
    /// # Errors
    ///
    /// [`ScatterError::StridesRank`] if `shape` and `strides` have different lengths.
    pub fn strided(shape: &'a [usize], strides: &'a [isize]) -> Result<Self, ScatterError> {
        if shape.len() != strides.len() {
            return Err(ScatterError::StridesRank {
                shape: copied(shape)?,
                strides: copied(strides)?,
            });
        }
        Ok(Self::of_parts(shape, strides))
    }

    /// Returns the layout of [`Self::strided`] for a shape and strides of equal length.
    pub(crate) fn of_parts(shape: &'a [usize], strides: &'a [isize]) -> Self {
        debug_assert_eq!(shape.len(), strides.len(), "one stride per dimension");
        Self {
            shape: Shape::Sizes(shape),
            strides: Some(strides),
        }
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        match &self.shape {
            Shape::Sizes(sizes) => sizes,
            Shape::Line(len) => len,
        }
    }

    /// Returns the strides in elements. `None` for a layout made as row-major and contiguous.
    pub fn strides(&self) -> Option<&'a [isize]> {
        self.strides
    }

    /// Whether the layout was made as row-major and contiguous. Explicit strides that describe
    /// a contiguous tensor are not recognised.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// Returns shape and strides together, so that a caller reads the layout once.
    #[inline(always)]
    pub(crate) fn parts(&self) -> (&[usize], Option<&'a [isize]>) {
        (self.shape(), self.strides)
    }

    /// Returns the strides of all dimensions, also of a contiguous layout. A shape without
    /// elements has the row-major strides of a shape whose sizes of 0 are 1.
    pub(crate) fn all_strides(&self) -> Result<Dims<isize>, ScatterError> {
        let layout = if self.shape().contains(&0) {
            &Layout::contiguous(self.shape())
        } else {
            self
        };
        let from_last = layout.dims_from_last().map(|(_, stride)| stride);
        let mut strides = Dims::collect(self.shape().len(), from_last)?;
        strides.reverse();
        Ok(strides)
    }

    /// Returns the size and the stride of each dimension, from the last to the first.
    #[inline]
    pub(crate) fn dims_from_last(&self) -> FromLast<'_> {
        FromLast {
            shape: self.shape(),
            strides: self.strides,
            row_major: 1,
        }
    }

    /// Returns the number of elements. `None` if the sizes other than 0 multiply to more than
    /// `isize::MAX`.
    #[inline]
    pub(crate) fn elements(&self) -> Option<usize> {
        let mut product: usize = 1;
        for &size in self.shape() {
            match product.checked_mul(size) {
                Some(next) if next != 0 => product = next,
                _ => return self.elements_but_for_zeros(),
            }
        }
        isize::try_from(product).is_ok().then_some(product)
    }

    /// Computes [`Self::elements`] for shapes with a size of 0, whose other sizes may overflow.
    #[cold]
    fn elements_but_for_zeros(&self) -> Option<usize> {
        let mut sizes = self.shape().iter().filter(|&&size| size != 0);
        let product = sizes.try_fold(1_usize, |product, &size| product.checked_mul(size))?;
        isize::try_from(product).ok()?;
        Some(if self.shape().contains(&0) {
            0
        } else {
            product
        })
    }

    /// Returns [`Self::elements`], or an error if the number of elements overflows.
    #[inline]
    pub(crate) fn checked_elements(&self) -> Result<usize, ScatterError> {
        self.elements().ok_or_else(|| self.overflow())
    }

    #[cold]
    fn overflow(&self) -> ScatterError {
        ScatterError::with_facts(|| {
            let shape = copied(self.shape())?;
            Ok(ScatterError::ShapeOverflow { shape })
        })
    }

    /// Returns the lowest and the highest offset of an element from element `[0, 0, ...]`.
    /// Returns `None` for a shape without elements. Returns `None` also if an offset, or the
    /// distance between the two offsets, overflows `isize`.
    pub(crate) fn extent(&self) -> Option<(isize, isize)> {
        let Some(strides) = self.strides else {
            let last = self.elements()?.checked_sub(1)?;
            return Some((0, isize::try_from(last).ok()?));
        };
        let (mut low, mut high) = (0_isize, 0_isize);
        for (&size, &stride) in self.shape().iter().zip(strides) {
            let steps = isize::try_from(size.checked_sub(1)?).ok()?;
            let reach = steps.checked_mul(stride)?;
            if reach < 0 {
                low = low.checked_add(reach)?;
            } else {
                high = high.checked_add(reach)?;
            }
        }
        high.checked_sub(low)?;
        Some((low, high))
    }

    /// Returns the number of elements from the lowest to the highest, gaps included. `elements` is
    /// [`Self::elements`].
    fn span(&self, elements: usize) -> Option<usize> {
        if elements == 0 {
            return Some(0);
        }
        let (low, high) = self.extent()?;
        high.abs_diff(low).checked_add(1)
    }

    /// Refuses a layout that no memory can hold with elements of `size` bytes. Returns the
    /// number of elements.
    #[inline]
    pub(crate) fn check(&self, size: usize) -> Result<usize, ScatterError> {
        let elements = self.checked_elements()?;
        let span = match self.strides {
            None => Some(elements),
            Some(_) => self.span(elements),
        };
        let bytes = span.and_then(|span| span.checked_mul(size));
        if bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
            Ok(elements)
        } else {
            Err(self.overflow())
        }
    }

    /// Whether every element has the same offset in this layout and in `other`. The shapes are then
    /// equal, and so are the strides of dimensions of more than one element.
    pub(crate) fn places_like(&self, other: &Layout<'_>) -> bool {
        if self.shape() != other.shape() {
            return false;
        }
        if self.strides.is_none() && other.strides.is_none() || self.shape().contains(&0) {
            return true;
        }
        let mut dims = self.dims_from_last().zip(other.dims_from_last());
        dims.all(|((size, a), (_, b))| size <= 1 || a == b)
    }
}

/// Iterator over the sizes and strides of dimensions, from the last to the first.
#[derive(Clone, Debug)]
pub(crate) struct FromLast<'a> {
    /// Sizes of the remaining dimensions.
    shape: &'a [usize],
    strides: Option<&'a [isize]>,
    /// Row-major stride of the next dimension.
    row_major: isize,
}

impl Iterator for FromLast<'_> {
    type Item = (usize, isize);

    #[inline]
    fn next(&mut self) -> Option<(usize, isize)> {
        let (&size, rest) = self.shape.split_last()?;
        let row_major = self.row_major;
        self.row_major = row_major.wrapping_mul(size.max(1).cast_signed());
        self.shape = rest;
        let stride = self
            .strides
            .map_or(row_major, |strides| strides[rest.len()]);
        Some((size, stride))
    }
}

impl FromLast<'_> {
    /// Merges the next `sizes.len()` dims, using `sizes` as their extents. Returns the stride
    /// of the merged dim, or `None` if one stride cannot describe it. Dims of extent 1 have no
    /// effect. For a shape without elements the result has no meaning.
    #[inline]
    pub(crate) fn merged(&mut self, sizes: &[usize]) -> Option<isize> {
        let mut merged: Option<(isize, usize)> = None;
        for &size in sizes.iter().rev() {
            let (_, stride) = self.next()?;
            if size == 1 {
                continue;
            }
            let (unit, count) = *merged.get_or_insert((stride, 1));
            if stride != unit.wrapping_mul(count.cast_signed()) {
                return None;
            }
            merged = Some((unit, count * size.max(1)));
        }
        Some(merged.map_or(0, |(unit, _)| unit))
    }
}

/// Splits position `number` of a row-major order into coordinates. Returns each dim with the
/// position along it, from the last dim to the first.
#[inline(always)] // Inlined into loops over the windows of a list.
pub(crate) fn unravel<D>(
    from_last: impl Iterator<Item = D>,
    size: impl Fn(&D) -> usize,
    mut number: usize,
) -> impl Iterator<Item = (D, usize)> {
    from_last.map(move |dim| {
        let size = size(&dim);
        let position = number % size;
        number /= size;
        (dim, position)
    })
}

/// Returns the offset of position `number` in row-major order. `from_last` has the size and the
/// stride of each dim.
#[inline(always)]
pub(crate) fn offset_of(from_last: impl Iterator<Item = (usize, isize)>, number: usize) -> isize {
    let positions = unravel(from_last, |&(size, _)| size, number);
    positions.fold(0, |offset, ((_, stride), position)| {
        offset + position.cast_signed() * stride
    })
}

/// A layout that owns its sizes and strides. A `LayoutBuf` needs no allocation for up to 8
/// dimensions.
///
/// # Examples
///
/// ```
/// use ndscatter::{AnyView, DType, LayoutBuf};
///
/// // Two rows of three floats, 16 bytes apart, with strides in bytes as in numpy.
/// let floats = [0_f32; 8];
/// let layout = LayoutBuf::with_byte_strides(&[2, 3], &[16, 4], DType::F32)?;
/// assert_eq!(layout.as_layout().strides(), Some(&[4, 1][..]));
/// let bytes = bytemuck::cast_slice(&floats);
/// let view = AnyView::from_bytes(bytes, DType::F32, layout.as_layout())?;
/// assert_eq!(view.shape(), [2, 3]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct LayoutBuf {
    shape: Dims<usize>,
    strides: Dims<isize>,
}

impl LayoutBuf {
    /// Returns the layout of a tensor of `dtype` with one stride per dimension, in bytes.
    ///
    /// Byte strides are the form of numpy. The stride of a dimension of size 0 or 1 may have any
    /// value.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::StridesRank`]: `shape` and `byte_strides` have different lengths.
    /// - [`ScatterError::ByteStride`]: the stride of a dimension of more than one element is not
    ///   a multiple of the size of an element.
    /// - [`ScatterError::OutOfMemory`]: no memory for more than 8 dimensions.
    pub fn with_byte_strides(
        shape: &[usize],
        byte_strides: &[isize],
        dtype: DType,
    ) -> Result<Self, ScatterError> {
        Layout::strided(shape, byte_strides)?;
        let size = dtype.size().cast_signed();
        let mut strides = Dims::copied(byte_strides)?;
        for (axis, stride) in strides.iter_mut().enumerate() {
            if shape[axis] > 1 && *stride % size != 0 {
                return Err(ScatterError::ByteStride {
                    axis,
                    stride: *stride,
                    dtype,
                });
            }
            *stride /= size;
        }
        let shape = Dims::copied(shape)?;
        Ok(Self { shape, strides })
    }

    /// Returns the layout as a [`Layout`] that borrows from `self`.
    pub fn as_layout(&self) -> Layout<'_> {
        Layout::of_parts(&self.shape, &self.strides)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn counts_elements() {
        let cases: [(&[usize], Option<usize>); 5] = [
            (&[], Some(1)),
            (&[2, 3], Some(6)),
            (&[2, 0, 3], Some(0)),
            (&[usize::MAX, 2], None),
            // No elements, but the product of the other sizes overflows.
            (&[usize::MAX, 2, 0], None),
        ];
        for (shape, expected) in cases {
            assert_eq!(Layout::contiguous(shape).elements(), expected, "{shape:?}");
        }
    }

    #[test]
    fn finds_extents() {
        let cases = [
            ([2, 3], [3, 1], Some((0, 5))),
            ([2, 3], [-3, 1], Some((-3, 2))),
            ([4, 1], [0, 9], Some((0, 0))),
            ([3, 1], [isize::MAX, 0], None),
        ];
        for (shape, strides, expected) in cases {
            let layout = Layout::strided(&shape, &strides).expect("ranks agree");
            assert_eq!(layout.extent(), expected, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn strides_of_single_elements_do_not_matter() {
        let shape = [1, 4];
        let padded = Layout::strided(&shape, &[99, 1]).expect("ranks agree");
        assert!(padded.places_like(&Layout::contiguous(&shape)), "size 1");
        let reversed = Layout::strided(&shape, &[4, -1]).expect("ranks agree");
        assert!(!reversed.places_like(&Layout::contiguous(&shape)), "order");
    }
}
