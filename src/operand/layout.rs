//! Layouts of tensors: shapes, strides, extents.
//!
//! This module knows sizes and strides. It does not know operators or memory. Only `LayoutBuf`
//! reads an element type, to convert byte strides.

use super::dims::Dims;
use crate::element::DType;
use crate::error::ScatterError;
use crate::memory::copied;

/// Shape and strides of a tensor. A `Layout` borrows them.
///
/// Strides are in elements. Strides may be negative or 0. The constructors of views, not those of
/// layouts, check that a layout fits in memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    shape: Shape<'a>,
    /// Strides in elements. `None`: row-major and contiguous.
    strides: Option<&'a [isize]>,
}

/// Sizes of the dimensions: a borrowed slice, or the single size of a tensor of rank 1.
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

    /// Returns the contiguous layout of a tensor of rank 1 with `len` elements.
    #[inline]
    pub fn line(len: usize) -> Self {
        Self {
            shape: Shape::Line([len]),
            strides: None,
        }
    }

    /// Returns a layout with explicit `strides`, one per dimension, in elements.
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

    /// As [`Self::strided`], if the caller guarantees that `shape` and `strides` have equal
    /// lengths.
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

    /// Returns the explicit strides, in elements. Returns `None` for a layout from
    /// [`Self::contiguous`] or [`Self::line`].
    pub fn strides(&self) -> Option<&'a [isize]> {
        self.strides
    }

    /// Whether the layout was made without explicit strides, as row-major and contiguous. The
    /// result is false for explicit strides, even if these strides describe a contiguous tensor.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// Returns what [`Self::shape`] and [`Self::strides`] return, so that a caller reads the layout
    /// once.
    #[inline(always)]
    pub(crate) fn parts(&self) -> (&[usize], Option<&'a [isize]>) {
        (self.shape(), self.strides)
    }

    /// Returns the strides of all dimensions, also for a layout without explicit strides. For a
    /// shape without elements, returns row-major strides, computed as if each size of 0 were 1.
    /// Explicit strides of such a shape are ignored.
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

    /// Iterates over the size and the stride of each dimension, from the last dimension to the
    /// first.
    #[inline]
    pub(crate) fn dims_from_last(&self) -> FromLast<'_> {
        FromLast {
            shape: self.shape(),
            strides: self.strides,
            row_major: 1,
        }
    }

    /// Returns the number of elements. Returns `None` if the product of all sizes other than 0 is
    /// more than `isize::MAX`, even if another size is 0.
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

    /// Slow path of [`Self::elements`]: the shape has a size of 0, or the product of sizes
    /// overflows.
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

    /// Returns [`Self::elements`], or [`ScatterError::ShapeOverflow`] instead of `None`.
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

    /// Returns the lowest and the highest element offset, relative to element `[0, 0, ...]`.
    /// Returns `None` for a shape without elements. Also returns `None` if an offset, the distance
    /// between the two offsets, or the last position along a dimension overflows `isize`.
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

    /// Returns the distance from the lowest to the highest offset plus 1: the number of elements
    /// with gaps included. `elements` is the result of [`Self::elements`]. `None`: overflow.
    fn span(&self, elements: usize) -> Option<usize> {
        if elements == 0 {
            return Some(0);
        }
        let (low, high) = self.extent()?;
        high.abs_diff(low).checked_add(1)
    }

    /// Returns the number of elements, each of `size` bytes. Returns
    /// [`ScatterError::ShapeOverflow`] if [`Self::elements`] is `None`, or if the bytes from the
    /// lowest to the highest element exceed `isize::MAX`.
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

    /// Whether both layouts have the same shape and the same offset for every element. Strides of
    /// dimensions of size 1 are ignored. All strides are ignored if the shape has no elements.
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

/// Iterator over the size and the stride of each dimension, from the last dimension to the first.
#[derive(Clone, Debug)]
pub(crate) struct FromLast<'a> {
    /// Sizes of the dimensions that the iterator has not yet returned.
    shape: &'a [usize],
    strides: Option<&'a [isize]>,
    /// Row-major stride of the next dimension that the iterator returns.
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
    /// Merges the next `sizes.len()` dims of the iterator into one dim. The extents of the dims are
    /// `sizes`, in the order of the shape. Returns the stride of the merged dim, or `None` if one
    /// stride cannot describe the merged dim. Dims of extent 1 have no effect. For a shape without
    /// elements, the result has no meaning.
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

/// Converts the position `number` in row-major order to one coordinate per dim. Returns each dim
/// with its coordinate, from the last dim to the first. `from_last` has the dims in this order.
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

/// Returns the offset of the element at position `number` in row-major order. `from_last` has the
/// size and the stride of each dim, from the last dim to the first.
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
    /// Strides of numpy arrays are in bytes too. The stride of a dimension of size 0 or 1 may have
    /// any value.
    ///
    /// # Errors
    ///
    /// - [`ScatterError::StridesRank`]: `shape` and `byte_strides` have different lengths.
    /// - [`ScatterError::ByteStride`]: the stride of a dimension of more than one element is not
    ///   a multiple of the size of an element.
    /// - [`ScatterError::OutOfMemory`]: the layout has more than 8 dimensions, and its allocation
    ///   failed.
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

    /// Returns `value` as an `isize`. `None`: overflow.
    fn fits(value: i128) -> Option<isize> {
        isize::try_from(value).ok()
    }

    /// Returns the number of elements of `shape`. `None`: the product of the sizes other than 0
    /// overflows.
    fn elements(shape: &[usize]) -> Option<isize> {
        let sizes = shape.iter().filter(|&&size| size != 0);
        let product = sizes.fold(1_i128, |product, &size| {
            product.saturating_mul(size as i128)
        });
        let is_empty = shape.contains(&0);
        fits(product).map(|product| if is_empty { 0 } else { product })
    }

    /// Returns the lowest and the highest offset of the corners of a tensor. An offset is a linear
    /// function of each position, so these offsets are those of all elements.
    fn extent(shape: &[usize], strides: &[isize]) -> Option<(isize, isize)> {
        let mut lasts = Vec::new();
        for &size in shape {
            lasts.push(fits(size as i128 - 1).filter(|&last| last >= 0)?);
        }
        let offset = |corner: usize| {
            let dims = lasts.iter().zip(strides).enumerate();
            dims.filter(|(axis, _)| corner >> axis & 1 == 1).fold(
                0_i128,
                |offset, (_, (&last, &stride))| {
                    offset.saturating_add(last as i128 * stride as i128)
                },
            )
        };
        let corners = (0..1 << shape.len()).map(offset);
        let (low, high) = corners.fold((0, 0), |(low, high), at| (at.min(low), at.max(high)));
        fits(high.saturating_sub(low))?;
        fits(low).zip(fits(high))
    }

    /// Compares the arithmetic of `layout` with the expected number of elements and the expected
    /// extent.
    fn compare(layout: &Layout<'_>, elements: Option<isize>, extent: Option<(isize, isize)>) {
        let counted = layout.elements().map(|elements| elements as i128);
        let expected = elements.map(|elements| elements as i128);
        assert_eq!(counted, expected, "{layout:?}");
        assert_eq!(layout.extent(), extent, "{layout:?}");
        for size in [0, 1, 16] {
            let span = match elements {
                Some(0) => Some(0),
                _ => extent.map(|(low, high)| high as i128 - low as i128 + 1),
            };
            let bytes = span.and_then(|span| fits(span * size as i128));
            let checked = layout.check(size).ok().map(|elements| elements as i128);
            assert_eq!(checked, bytes.and(expected), "{layout:?}, {size} bytes");
        }
    }

    fn check(shape: &[usize], strides: &[isize]) {
        let elements = elements(shape);
        let strided = Layout::strided(shape, strides).expect("ranks agree");
        compare(&strided, elements, extent(shape, strides));
        let contiguous = elements.filter(|&elements| elements > 0);
        let contiguous = contiguous.map(|elements| (0, elements - 1));
        compare(&Layout::contiguous(shape), elements, contiguous);
    }

    /// Checks every layout of rank 0 to 3 whose sizes and strides are small or near a limit of their
    /// types.
    #[test]
    fn extents_are_right_near_every_limit() {
        const MOST: usize = isize::MAX as usize;
        let half = 1 << (usize::BITS / 2);
        let sizes = [0, 1, 2, 3, half, MOST, MOST + 1, MOST + 2, usize::MAX];
        let strides = [
            0,
            1,
            -1,
            3,
            -2,
            isize::MAX / 2,
            isize::MAX,
            -isize::MAX,
            isize::MIN,
        ];
        check(&[], &[]);
        let dims = || {
            sizes
                .iter()
                .flat_map(|&size| strides.map(|stride| (size, stride)))
        };
        for (size_0, stride_0) in dims() {
            check(&[size_0], &[stride_0]);
            for (size_1, stride_1) in dims() {
                check(&[size_0, size_1], &[stride_0, stride_1]);
                for (size_2, stride_2) in dims() {
                    check(&[size_0, size_1, size_2], &[stride_0, stride_1, stride_2]);
                }
            }
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
