//! Where the elements of a tensor lie: shapes, strides, extents.
//!
//! Knows sizes and strides in elements. Knows nothing of element types,
//! operators or memory itself.

use super::dims::Dims;
use crate::element::DType;
use crate::error::ScatterError;
use crate::memory::copied;

/// Shape and strides of a tensor, borrowed. Strides count elements and may be
/// negative or zero.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    shape: Shape<'a>,
    /// `None`: row-major and contiguous.
    strides: Option<&'a [isize]>,
}

/// The sizes of the dimensions: somewhere else, or the one that there is.
#[derive(Clone, Copy, Debug)]
enum Shape<'a> {
    Sizes(&'a [usize]),
    Line([usize; 1]),
}

impl<'a> Layout<'a> {
    /// Row-major and contiguous.
    #[inline]
    pub fn contiguous(shape: &'a [usize]) -> Self {
        Self {
            shape: Shape::Sizes(shape),
            strides: None,
        }
    }

    /// So many elements, one behind the other: rank 1.
    #[inline]
    pub fn line(len: usize) -> Self {
        Self {
            shape: Shape::Line([len]),
            strides: None,
        }
    }

    /// One stride, in elements, for each dimension.
    ///
    /// # Errors
    ///
    /// [`ScatterError::StridesRank`] if the lengths differ.
    pub fn strided(shape: &'a [usize], strides: &'a [isize]) -> Result<Self, ScatterError> {
        if shape.len() != strides.len() {
            return Err(ScatterError::StridesRank {
                shape: copied(shape)?,
                strides: copied(strides)?,
            });
        }
        Ok(Self::of_parts(shape, strides))
    }

    /// As [`Self::strided`], for parts that are known to have one length.
    pub(crate) fn of_parts(shape: &'a [usize], strides: &'a [isize]) -> Self {
        debug_assert_eq!(shape.len(), strides.len(), "one stride a dimension");
        Self {
            shape: Shape::Sizes(shape),
            strides: Some(strides),
        }
    }

    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        match &self.shape {
            Shape::Sizes(sizes) => sizes,
            Shape::Line(len) => len,
        }
    }

    /// The strides given, or `None` where the tensor is row-major and contiguous.
    pub fn strides(&self) -> Option<&'a [isize]> {
        self.strides
    }

    /// Whether it is row-major, with no element between its elements. Strides that
    /// say the same do not count: they are told apart where that is of use.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// Shape and strides, for who would ask for them again and again.
    #[inline(always)]
    pub(crate) fn parts(&self) -> (&[usize], Option<&'a [isize]>) {
        (self.shape(), self.strides)
    }

    /// Strides of every dimension, row-major ones written out. Those of a
    /// shape without elements are made up as if its empty dimensions had size 1.
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

    /// Size and stride of every dimension, from the last to the first.
    #[inline]
    pub(crate) fn dims_from_last(&self) -> FromLast<'_> {
        FromLast {
            shape: self.shape(),
            strides: self.strides,
            row_major: 1,
        }
    }

    /// Number of elements. `None` if the non-zero sizes multiply to more than
    /// memory can address.
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

    /// A zero may hide how large the other sizes are.
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

    /// [`Self::elements`], or the error that says why there is no such number.
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

    /// Lowest and highest offset of an element from element `[0, 0, ...]`, or
    /// `None` if one leaves the range of `isize`. Not for empty shapes.
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

    /// Refuses shapes and strides that no memory can hold for elements of
    /// `size` bytes, and returns the number of elements.
    #[inline]
    pub(crate) fn check(&self, size: usize) -> Result<usize, ScatterError> {
        let elements = self.checked_elements()?;
        // From the lowest to the highest element, gaps included.
        let span = match self.strides {
            Some(_) if elements > 0 => self.extent().map(|(low, high)| high.abs_diff(low) + 1),
            _ => Some(elements),
        };
        let bytes = span.and_then(|span| span.checked_mul(size));
        if bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
            Ok(elements)
        } else {
            Err(self.overflow())
        }
    }

    /// Whether every element lies where it lies in `other`: equal shapes, and
    /// equal strides wherever there is more than one element to step over.
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

/// Sizes and strides of dimensions, from the last one on.
#[derive(Clone, Debug)]
pub(crate) struct FromLast<'a> {
    /// Of those that are left.
    shape: &'a [usize],
    strides: Option<&'a [isize]>,
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
    /// The one distance between neighbours along the next dims, as many as there
    /// are `sizes`, of which `sizes` says how far they reach. `None` where there
    /// is no such distance. Dims of size 1 have no say; a tensor without elements
    /// has no strides to honour.
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

/// Entry `number` of all positions in row-major order: each dim, from the last
/// one on, and the position along it.
#[inline(always)] // Into loops over the windows of a list.
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

/// The offset of entry `number` of all positions along dims of these sizes and
/// strides.
#[inline(always)]
pub(crate) fn offset_of(from_last: impl Iterator<Item = (usize, isize)>, number: usize) -> isize {
    let positions = unravel(from_last, |&(size, _)| size, number);
    positions.fold(0, |offset, ((_, stride), position)| {
        offset + position.cast_signed() * stride
    })
}

/// A layout that has its own sizes and strides: of up to 8 dimensions without an
/// allocation.
///
/// # Examples
///
/// ```
/// use ndscatter::{AnyView, DType, LayoutBuf};
///
/// // Two rows of three floats, 16 bytes apart, as an array library describes
/// // them.
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
    /// One stride, in bytes, for each dimension of a tensor of `dtype`.
    ///
    /// # Errors
    ///
    /// [`ScatterError::ByteStride`] where a dimension of more than one element
    /// has a stride that is no multiple of the size of an element;
    /// [`ScatterError::StridesRank`] if the lengths differ.
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

    /// The layout, borrowed.
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
            // Empty, but its other sizes cannot be multiplied.
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
