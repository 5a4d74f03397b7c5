//! Conversions between arrays of `ndarray` and tensors of this crate.
//!
//! This module knows the shapes, strides and pointers of arrays of `ndarray` and of views of this
//! crate. No conversion copies elements, except that `ndarray` copies shared elements before it
//! lends them to write.

#![expect(
    unsafe_code,
    reason = "makes arrays of `ndarray` from the memory of views"
)]

use ndarray::{
    ArrayBase, ArrayD, ArrayRef, ArrayViewD, ArrayViewMut, ArrayViewMutD, Axis, Data, DataMut,
    Dimension, IxDyn, LayoutRef, ShapeBuilder,
};

use super::indices::{Index, Indices};
use super::layout::Layout;
use super::memory::{Output, Target, sealed};
use super::owned::Tensor;
use super::typed::{TensorView, TensorViewMut, check_distinct};
use crate::element::Element;
use crate::error::ScatterError;

/// Makes a view to read from a borrowed array of any strides.
impl<'a, T, D: Dimension> From<&'a ArrayRef<T, D>> for TensorView<'a, T> {
    fn from(array: &'a ArrayRef<T, D>) -> Self {
        // While an array is borrowed, its elements are readable. `ndarray` ensures that the
        // offsets of all elements fit in `isize`.
        Self::new(array.as_ptr(), layout_of(array))
    }
}

/// Makes a view to read from a borrowed array of any strides.
impl<'a, T, S, D> From<&'a ArrayBase<S, D>> for TensorView<'a, T>
where
    S: Data<Elem = T>,
    D: Dimension,
{
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        Self::from(&**array)
    }
}

/// Makes indices from a borrowed array of integers, of any strides.
impl<'a, I: Index, D: Dimension> From<&'a ArrayRef<I, D>> for Indices<'a> {
    fn from(array: &'a ArrayRef<I, D>) -> Self {
        TensorView::from(array).into()
    }
}

/// Makes indices from a borrowed array of integers, of any strides.
impl<'a, I, S, D> From<&'a ArrayBase<S, D>> for Indices<'a>
where
    I: Index,
    S: Data<Elem = I>,
    D: Dimension,
{
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        TensorView::from(array).into()
    }
}

/// Makes a view to write from a mutably borrowed array of any strides.
///
/// # Errors
///
/// [`ScatterError::SelfOverlap`] if two elements of the array share memory. Only unsafe code can
/// make an array with such elements.
impl<'a, T, D: Dimension> TryFrom<&'a mut ArrayRef<T, D>> for TensorViewMut<'a, T> {
    type Error = ScatterError;

    fn try_from(array: &'a mut ArrayRef<T, D>) -> Result<Self, Self::Error> {
        let ptr = array.as_mut_ptr();
        let layout = layout_of(array);
        check_distinct(&layout)?;
        Ok(Self::new(ptr, layout))
    }
}

/// Makes a view to write from a mutably borrowed array of any strides. An array that shares its
/// elements with other arrays (`ArcArray`) or borrows them (`CowArray`) first copies them.
///
/// # Errors
///
/// [`ScatterError::SelfOverlap`] if two elements of the array share memory. Only unsafe code can
/// make an array with such elements.
impl<'a, T, S, D> TryFrom<&'a mut ArrayBase<S, D>> for TensorViewMut<'a, T>
where
    S: DataMut<Elem = T>,
    D: Dimension,
{
    type Error = ScatterError;

    fn try_from(array: &'a mut ArrayBase<S, D>) -> Result<Self, Self::Error> {
        Self::try_from(&mut **array)
    }
}

/// A call takes a mutably borrowed array of any strides as its output.
///
/// The call returns [`ScatterError::SelfOverlap`] if two elements of the array share memory. Only
/// unsafe code can make an array with such elements.
impl<'a, T: Element, D: Dimension> Output for &'a mut ArrayRef<T, D> {
    type Input = TensorView<'a, T>;

    fn with_target<R>(
        self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError> {
        TensorViewMut::try_from(self)?.with_target(call)
    }
}

/// As for `&mut ArrayRef`. An array that shares its elements with other arrays (`ArcArray`) or
/// borrows them (`CowArray`) first copies them.
impl<'a, T, S, D> Output for &'a mut ArrayBase<S, D>
where
    T: Element,
    S: DataMut<Elem = T>,
    D: Dimension,
{
    type Input = TensorView<'a, T>;

    fn with_target<R>(
        self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError> {
        TensorViewMut::try_from(self)?.with_target(call)
    }
}

/// As for `&mut ArrayRef`.
impl<'a, T: Element, D: Dimension> Output for ArrayViewMut<'a, T, D> {
    type Input = TensorView<'a, T>;

    fn with_target<R>(
        mut self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError> {
        TensorViewMut::try_from(&mut self)?.with_target(call)
    }
}

impl<T: Element, D: Dimension> sealed::Sealed for &mut ArrayRef<T, D> {}
impl<S: DataMut<Elem: Element>, D: Dimension> sealed::Sealed for &mut ArrayBase<S, D> {}
impl<T: Element, D: Dimension> sealed::Sealed for ArrayViewMut<'_, T, D> {}

impl<'a, T> TensorView<'a, T> {
    /// Returns a view of `ndarray` with the same shape. At each position, both views have the
    /// same element in memory.
    pub fn to_ndarray(&self) -> ArrayViewD<'a, T> {
        let (offset, sizes, reversed) = forwards(&self.layout());
        // SAFETY: the view keeps the elements of its layout readable for `'a`. `forwards` returns
        // the offset of the element with the lowest address, and no negative strides. From this
        // element, the strides address exactly the elements of the layout.
        let mut array =
            unsafe { ArrayViewD::from_shape_ptr(sizes, self.as_ptr().wrapping_offset(offset)) };
        reversed
            .iter()
            .for_each(|&axis| array.invert_axis(Axis(axis)));
        array
    }
}

impl<'a, T> TensorViewMut<'a, T> {
    /// Returns a view of `ndarray` with the same shape. At each position, both views have the
    /// same element in memory.
    pub fn into_ndarray(self) -> ArrayViewMutD<'a, T> {
        let (offset, sizes, reversed) = forwards(&self.layout());
        let lowest = self.memory.ptr.cast::<T>().wrapping_offset(offset);
        // SAFETY: the view keeps the elements of its layout writable for `'a`. `forwards` returns
        // the offset of the element with the lowest address, and no negative strides. From this
        // element, the strides address exactly the elements of the layout. No other reference
        // can access the elements, because this method consumes the only view of them.
        let mut array = unsafe { ArrayViewMutD::from_shape_ptr(sizes, lowest) };
        reversed
            .iter()
            .for_each(|&axis| array.invert_axis(Axis(axis)));
        array
    }
}

impl<T> Tensor<T> {
    /// Converts the tensor to an array of `ndarray`, without a copy of the elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndarray::array;
    /// use ndscatter::{Gather, TensorView};
    ///
    /// let table = array![[1.0, 2.0], [3.0, 4.0]];
    /// let rows = array![1_u32, 1];
    /// let result = Gather::along(0).allocate(TensorView::from(&table), &rows)?;
    /// assert_eq!(result.into_ndarray(), array![[3.0, 4.0], [3.0, 4.0]].into_dyn());
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Never. A tensor always holds the number of elements that its shape requires.
    pub fn into_ndarray(self) -> ArrayD<T> {
        let shape = IxDyn(self.shape());
        ArrayD::from_shape_vec(shape, self.into_vec())
            .expect("a tensor has the number of elements of its shape")
    }
}

fn layout_of<T, D: Dimension>(array: &LayoutRef<T, D>) -> Layout<'_> {
    Layout::of_parts(array.shape(), array.strides())
}

/// Returns the offset of the element with the lowest address, and the shape with the absolute
/// values of the strides. Also returns the axes of more than one element with a negative stride.
fn forwards(layout: &Layout<'_>) -> (isize, ndarray::StrideShape<IxDyn>, Vec<usize>) {
    let strides = layout.strides().filter(|_| !layout.shape().contains(&0));
    let Some(strides) = strides else {
        return (0, IxDyn(layout.shape()).into(), Vec::new());
    };
    let sizes = layout.shape().iter();
    // The stride of an axis of size 1 is never used, so it becomes 0. It may be `isize::MIN`,
    // whose absolute value is larger than `isize::MAX`.
    let is_reversed = |axis: usize| layout.shape()[axis] > 1 && strides[axis] < 0;
    let reversed = (0..strides.len())
        .filter(|&axis| is_reversed(axis))
        .collect();
    let turned = sizes.zip(strides).map(|(&size, &stride)| match size {
        1 => 0,
        _ => stride.unsigned_abs(),
    });
    let turned: Vec<usize> = turned.collect();
    let lowest = layout.extent().map_or(0, |(low, _)| low);
    let shape = IxDyn(layout.shape()).strides(IxDyn(&turned));
    (lowest, shape, reversed)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array, s};

    use crate::{Reduction, Scatter, TensorView, TensorViewMut, scatter_nd};

    #[test]
    fn views_of_any_strides_are_scattered_into() {
        let mut data = Array2::<i32>::zeros((4, 6));
        let indices = array![[0_i64], [2], [0]];
        let updates = array![[1, 2, 3], [4, 5, 6], [7, 8, 9]];
        // Every second column from column 1, with the rows in reverse order.
        let mut view = data.slice_mut(s![..;-1, 1..;2]);
        scatter_nd(
            TensorViewMut::try_from(&mut view).expect("views of ndarray do not overlap"),
            &indices,
            TensorView::from(&updates.slice(s![.., ..;-1])),
            Reduction::Add,
        )
        .expect("a valid scatter");
        let mut expected = Array2::zeros((4, 6));
        expected.slice_mut(s![3, 1..;2]).assign(&array![12, 10, 8]);
        expected.slice_mut(s![1, 1..;2]).assign(&array![6, 5, 4]);
        assert_eq!(data, expected, "rows 3 and 1, every second column");
    }

    #[test]
    fn views_convert_back() {
        let array = array![[1, 2, 3], [4, 5, 6]];
        for view in [
            array.view().into_dyn(),
            array.t().into_dyn(),
            array.slice(s![..;-1, ..;-2]).into_dyn(),
            array.slice(s![..0, ..]).into_dyn(),
        ] {
            assert_eq!(
                TensorView::from(&view).to_ndarray(),
                view,
                "the same elements"
            );
        }
        let mut copy = array.clone();
        let mut transposed = copy.view_mut().reversed_axes();
        let view = TensorViewMut::try_from(&mut transposed).expect("distinct elements");
        view.into_ndarray()[[2, 0]] = 30;
        assert_eq!(copy[[0, 2]], 30, "the transposed element");
    }

    /// The stride of an axis of size 1 may have any value.
    #[test]
    fn axes_of_size_one_convert_whatever_their_strides() {
        let values = [1, 2];
        for stride in [isize::MIN, -1, 0, isize::MAX] {
            let (shape, strides) = ([1, 2, 1], [stride, -1, stride]);
            let view = TensorView::strided(&values, 1, &shape, &strides).expect("inside");
            let expected = array![[[2], [1]]].into_dyn();
            assert_eq!(view.to_ndarray(), expected, "stride {stride}");
            let array = view.to_ndarray();
            let back = TensorView::from(&array).to_ndarray();
            assert_eq!(back, expected, "stride {stride}, and back");
        }
    }

    #[test]
    fn allocates_from_a_broadcast_view() {
        let zero = ndarray::arr0(0.0_f32);
        let data = zero.broadcast((2, 3)).expect("a scalar fits any shape");
        let indices = array![[1_u8, 2]];
        let updates = array![5.0_f32];
        let result = Scatter::nd()
            .allocate(
                TensorView::from(&data),
                &indices,
                TensorView::from(&updates),
            )
            .expect("a valid scatter");
        let expected = array![[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]];
        assert_eq!(
            result.into_ndarray(),
            expected.into_dyn(),
            "a fill and one element"
        );
    }
}
