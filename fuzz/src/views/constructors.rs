//! The constructors of views, and one call with each accepted view.

use std::fmt::Debug;

use arbitrary::Unstructured;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use ndscatter::{
    AnyView, AnyViewMut, DType, Element, Gather, Layout, LayoutBuf, Scatter, ScatterError,
    TensorView, TensorViewMut,
};

use crate::geometry::{Geometry, MOST, stride};

/// What a constructor must do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Accepted,
    /// `StridesRank`
    Ranks,
    /// `ShapeOverflow`
    Overflow,
    /// `SliceLength`, `OutsideSlice` or `BytesLength`
    Outside,
    /// `Misaligned`
    Misaligned,
    /// `ByteStride`
    ByteStride,
    /// `SelfOverlap`
    Shared,
}

use Verdict::{Accepted, Misaligned, Outside, Overflow, Ranks, Shared};

impl Verdict {
    /// Checks the result of a constructor. Returns the view if there is one.
    fn check<V>(self, geometry: &Geometry, made: Result<V, ScatterError>) -> Option<V> {
        let got = match &made {
            Ok(_) => Accepted,
            Err(ScatterError::StridesRank { .. }) => Ranks,
            Err(ScatterError::ShapeOverflow { .. }) => Overflow,
            Err(
                ScatterError::SliceLength { .. }
                | ScatterError::OutsideSlice { .. }
                | ScatterError::BytesLength { .. },
            ) => Outside,
            Err(ScatterError::Misaligned { .. }) => Misaligned,
            Err(ScatterError::ByteStride { .. }) => Self::ByteStride,
            Err(ScatterError::SelfOverlap { .. }) => Shared,
            // The search finds the answer for two dimensions of such small tensors.
            Err(ScatterError::SelfOverlapUndecided { .. }) if geometry.long_dims() > 2 => {
                assert!(matches!(self, Accepted | Shared), "{self:?}, {geometry:?}");
                return None;
            }
            Err(other) => panic!("{other} for {geometry:?}"),
        };
        assert_eq!(got, self, "{geometry:?}, {:?}", made.as_ref().err());
        made.ok()
    }

    /// Returns the verdict on a view to write the elements of a view to read.
    fn on_writing(self, geometry: &Geometry) -> Self {
        match self {
            Accepted if !geometry.is_distinct() => Shared,
            verdict => verdict,
        }
    }
}

/// Views of slices, with strides or contiguous.
pub(crate) fn slices<T: Element + Pod + PartialEq + Debug>(
    u: &mut Unstructured<'_>,
) -> arbitrary::Result<()> {
    let geometry = Geometry::draw(u)?;
    let margin = if u.arbitrary()? { 3 } else { 0 };
    let len = match geometry.extent_if_countable() {
        // A length near the length that is needed.
        Some((low, high)) if high - low < MOST as i128 - 2 && u.ratio(7, 8)? => {
            let needed = (high - low + 1) as usize;
            (needed + u.int_in_range(0..=2)?).saturating_sub(u.int_in_range(0..=1)?)
        }
        _ => u.int_in_range(0..=MOST - 1)?,
    };
    let offset = match geometry.extent_if_countable() {
        Some((low, _)) if u.ratio(7, 8)? => usize::try_from(-low)
            .unwrap_or(0)
            .saturating_sub(u.int_in_range(0..=1)?),
        _ if u.ratio(7, 8)? => u.int_in_range(0..=len + 1)?,
        _ => u.arbitrary()?,
    };
    let words = numbers(len + 2 * margin, size_of::<T>());
    let mut all = cast_slice::<_, T>(&words)[..len + 2 * margin].to_vec();
    check_slices(&geometry, &mut all, margin..margin + len, offset);
    Ok(())
}

impl Geometry {
    fn extent_if_countable(&self) -> Option<(i128, i128)> {
        (self.ranks_agree() && self.elements().is_some())
            .then(|| self.extent())
            .flatten()
    }

    /// Returns the verdict on a view of a slice of `len` elements, with the first element at
    /// `offset`.
    fn in_slice(&self, len: usize, offset: usize) -> Verdict {
        if !self.ranks_agree() {
            return Ranks;
        }
        if self.elements().is_none() {
            return Overflow;
        }
        let offset = offset as i128;
        match self.extent() {
            Some((low, high)) if offset + low < 0 || offset + high >= len as i128 => Outside,
            _ => Accepted,
        }
    }
}

fn check_slices<T: Element + Pod + PartialEq + Debug>(
    geometry: &Geometry,
    all: &mut [T],
    part: std::ops::Range<usize>,
    offset: usize,
) {
    let Some(strides) = &geometry.strides else {
        return check_contiguous(geometry, &mut all[part]);
    };
    let verdict = geometry.in_slice(part.len(), offset);
    let made = TensorView::strided(&all[part.clone()], offset, &geometry.shape, strides);
    if let Some(view) = verdict.check(geometry, made) {
        check_read(geometry, &all[part.clone()], offset, view.into());
    }
    let mut expected = all.to_vec();
    let verdict = verdict.on_writing(geometry);
    let slice = &mut all[part.clone()];
    let made = TensorViewMut::strided(slice, offset, &geometry.shape, strides);
    if let Some(view) = verdict.check(geometry, made) {
        let size = size_of::<T>();
        let updates = write(geometry, T::DTYPE, view.into());
        let slice = cast_slice_mut(&mut expected[part]);
        place(geometry, slice, offset, size, &updates);
    }
    assert!(all[..] == expected[..], "{geometry:?}");
}

fn check_contiguous<T: Element + Pod + PartialEq + Debug>(geometry: &Geometry, all: &mut [T]) {
    let verdict = match geometry.elements() {
        None => Overflow,
        Some(count) if count == all.len() => Accepted,
        Some(_) => Outside,
    };
    let made = TensorView::contiguous(all, &geometry.shape);
    if let Some(view) = verdict.check(geometry, made) {
        check_read(geometry, all, 0, view.into());
    }
    let mut expected = all.to_vec();
    let made = TensorViewMut::contiguous(all, &geometry.shape);
    if let Some(view) = verdict.check(geometry, made) {
        let updates = write(geometry, T::DTYPE, view.into());
        place(
            geometry,
            cast_slice_mut(&mut expected),
            0,
            size_of::<T>(),
            &updates,
        );
    }
    assert!(all[..] == expected[..], "{geometry:?}");
}

/// Views whose elements are all one value.
pub(crate) fn splats(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut geometry = Geometry::draw(u)?;
    if u.ratio(1, 8)? {
        geometry.shape.resize(u.int_in_range(60..=70)?, 1);
    }
    geometry.strides = Some(vec![0; geometry.shape.len().min(64)]);
    let value = [u.arbitrary::<u32>()?];
    let verdict = geometry.in_slice(1, 0);
    let made = TensorView::splat(&value[0], &geometry.shape);
    if let Some(view) = verdict.check(&geometry, made) {
        check_read(&geometry, &value, 0, view.into());
    }
    let bytes: &[u8] = cast_slice(&value);
    let made = AnyView::splat(bytes, DType::U32, &geometry.shape);
    if let Some(view) = verdict.check(&geometry, made) {
        check_read(&geometry, &value, 0, view);
    }
    Ok(())
}

/// Views of bytes, with strides in elements or in bytes.
pub(crate) fn bytes(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let (dtype, mut geometry) = (u.choose(&DType::ALL).copied()?, Geometry::draw(u)?);
    let size = dtype.size();
    let mut layout = None;
    if u.ratio(1, 3)? {
        let byte_strides = byte_strides(u, &geometry, size)?;
        let verdict = take_byte_strides(&mut geometry, &byte_strides, size);
        let made = LayoutBuf::with_byte_strides(&geometry.shape, &byte_strides, dtype);
        layout = verdict.check(&geometry, made);
        if verdict != Accepted {
            return Ok(());
        }
    }
    let needed = geometry.extent_if_countable();
    let len = match needed.and_then(|(low, high)| (high - low + 1).checked_mul(size as i128)) {
        Some(bytes) if bytes < MOST as i128 && u.ratio(7, 8)? => {
            (bytes as usize + u.int_in_range(0..=2)?).saturating_sub(u.int_in_range(0..=1)?)
        }
        _ => u.int_in_range(0..=MOST - 1)?,
    };
    let start = if u.ratio(1, 4)? {
        u.int_in_range(0..=16)?
    } else {
        16
    };
    let mut all = numbers(start + len + 16, 1);
    let all: &mut [u8] = cast_slice_mut(&mut all);
    let layout = match (&layout, &geometry.strides) {
        (Some(layout), _) => layout.as_layout(),
        (None, None) => Layout::contiguous(&geometry.shape),
        (None, Some(strides)) => {
            let verdict = if geometry.ranks_agree() {
                Accepted
            } else {
                Ranks
            };
            let made = Layout::strided(&geometry.shape, strides);
            match verdict.check(&geometry, made) {
                Some(layout) => layout,
                None => return Ok(()),
            }
        }
    };
    check_bytes(&geometry, dtype, layout, all, start..start + len);
    Ok(())
}

/// Draws strides in bytes. They are usually multiples of the size of an element.
fn byte_strides(
    u: &mut Unstructured<'_>,
    geometry: &Geometry,
    size: usize,
) -> arbitrary::Result<Vec<isize>> {
    let odd = u.ratio(1, 4)?;
    let strides = geometry.strides.clone().unwrap_or_default();
    if odd {
        return (0..geometry.shape.len()).map(|_| stride(u)).collect();
    }
    Ok(strides
        .iter()
        .map(|stride| stride.wrapping_mul(size.cast_signed()))
        .collect())
}

/// Stores strides in bytes as strides in elements.
fn take_byte_strides(geometry: &mut Geometry, bytes: &[isize], size: usize) -> Verdict {
    geometry.strides = Some(bytes.to_vec());
    if !geometry.ranks_agree() {
        return Ranks;
    }
    let size = size.cast_signed();
    let mut dims = geometry.shape.iter().zip(bytes);
    if dims.any(|(&count, stride)| count > 1 && stride % size != 0) {
        return Verdict::ByteStride;
    }
    geometry.strides = Some(bytes.iter().map(|stride| stride / size).collect());
    Accepted
}

fn check_bytes(
    geometry: &Geometry,
    dtype: DType,
    layout: Layout<'_>,
    all: &mut [u8],
    part: std::ops::Range<usize>,
) {
    let size = dtype.size();
    let address = all[part.clone()].as_ptr().addr();
    let verdict = in_bytes(geometry, dtype, address, part.len());
    let first = geometry.extent_if_countable().map_or(0, |(low, _)| -low);
    let made = AnyView::from_bytes(&all[part.clone()], dtype, layout);
    if let Some(view) = verdict.check(geometry, made) {
        let from = (first as usize) * size;
        let wanted = elements(geometry, &all[part.clone()], from, size);
        check_elements(geometry, view, wanted);
    }
    let mut expected = all.to_vec();
    let made = AnyViewMut::from_bytes(&mut all[part.clone()], dtype, layout);
    if let Some(view) = verdict.on_writing(geometry).check(geometry, made) {
        let updates = write(geometry, dtype, view);
        place(
            geometry,
            &mut expected[part],
            first as usize,
            size,
            &updates,
        );
    }
    assert!(all[..] == expected[..], "{geometry:?}");
}

/// Returns the verdict on a view of `len` bytes at `address`, with the lowest element at byte 0.
fn in_bytes(geometry: &Geometry, dtype: DType, address: usize, len: usize) -> Verdict {
    let Some(count) = geometry.elements() else {
        return Overflow;
    };
    let extent = geometry.extent().unwrap_or((0, -1));
    let needed = (extent.1 - extent.0 + 1).saturating_mul(dtype.size() as i128);
    // The bytes of a shape without elements are not counted, because there are none.
    if needed > isize::MAX as i128 {
        Overflow
    } else if count > 0 && !address.is_multiple_of(dtype.alignment()) {
        Misaligned
    } else if needed > len as i128 {
        Outside
    } else {
        Accepted
    }
}

/// Returns `count` numbers of `size` bytes each, as 8-byte words of different bytes.
fn numbers(count: usize, size: usize) -> Vec<u64> {
    let words = (count * size).div_ceil(8);
    (1..=words as u64)
        .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect()
}

/// Returns the bytes of all elements, in row-major order. Element `[0, 0, ..]` is at byte `from`.
fn elements(geometry: &Geometry, bytes: &[u8], from: usize, size: usize) -> Option<Vec<u8>> {
    let count = geometry.elements()?;
    (count <= MOST).then(|| {
        let at = |offset: i128| (from as i128 + offset * size as i128) as usize;
        let element = |offset| bytes[at(offset)..][..size].to_vec();
        geometry.offsets().into_iter().flat_map(element).collect()
    })
}

fn check_read<T: Element + Pod>(geometry: &Geometry, all: &[T], offset: usize, view: AnyView<'_>) {
    let size = size_of::<T>();
    let offset = if geometry.elements() == Some(0) {
        0
    } else {
        offset
    };
    check_elements(
        geometry,
        view,
        elements(geometry, cast_slice(all), offset * size, size),
    );
}

/// Gathers the whole tensor as the window of one tuple without coordinates, and compares.
fn check_elements(geometry: &Geometry, view: AnyView<'_>, wanted: Option<Vec<u8>>) {
    assert_eq!(view.shape(), geometry.shape);
    if let Some(wanted) = wanted {
        let gathered = Gather::nd(0).allocate(view, no_coordinates());
        let gathered = gathered.expect("a valid gather");
        assert!(gathered.as_bytes() == wanted, "{geometry:?}");
    }
}

/// Returns indices of one tuple without coordinates.
fn no_coordinates() -> TensorView<'static, i64> {
    TensorView::contiguous(&[], &[1, 0]).expect("no element")
}

/// Writes all elements as the window of one tuple without coordinates. Returns the bytes that the
/// call writes, in row-major order.
fn write(geometry: &Geometry, dtype: DType, mut view: AnyViewMut<'_>) -> Vec<u8> {
    assert_eq!(view.shape(), geometry.shape);
    let bytes = geometry.elements().expect("the view was accepted") * dtype.size();
    let mut updates = numbers(bytes, 1);
    updates.iter_mut().for_each(|word| *word = !*word);
    let updates: &[u8] = cast_slice(&updates);
    let shape = [&[1], &geometry.shape[..]].concat();
    let given = AnyView::from_bytes(updates, dtype, Layout::contiguous(&shape));
    let given = given.expect("as many bytes as the shape has");
    let done = Scatter::nd().in_place(view.reborrow(), no_coordinates(), given);
    done.expect("a valid scatter");
    updates[..bytes].to_vec()
}

/// Writes the bytes of all elements. Element `[0, 0, ..]` is element `first` of `bytes`.
fn place(geometry: &Geometry, bytes: &mut [u8], first: usize, size: usize, elements: &[u8]) {
    for (offset, element) in geometry.offsets().into_iter().zip(elements.chunks(size)) {
        let at = (first as i128 + offset) as usize * size;
        bytes[at..][..size].copy_from_slice(element);
    }
}
