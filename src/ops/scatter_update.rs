//! OpenVINO ScatterUpdate; with a reduction torch `index_add_`, `index_copy_`
//! and `index_reduce_`, and segment operators.

use super::{Lower, Operator, Scatter, resolve_axis};
use crate::element::{Element, Index};
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::plan::Form;
use crate::reduction::Reduction;
use crate::tensor::{TensorView, TensorViewMut};

/// Indices along one axis of `data`, the same for every position before it.
///
/// `updates` has the shape `data.shape[..axis] ++ indices.shape ++
/// data.shape[axis + 1..]`. The axis lies in `-rank..rank`, negative ones
/// counted from the end; `indices` may have any rank, 0 included.
///
/// Duplicates are applied in the order of `indices`; without a reduction the
/// last one stays.
///
/// The rule is that of OpenVINO ScatterUpdate 3, which forbids negative
/// indices: [`negative_indices(false)`](Scatter::negative_indices) does so here.
///
/// # Examples
///
/// ```
/// use ndscatter::{ScatterUpdate, TensorView};
///
/// let data = [[1, 2, 3], [4, 5, 6]].concat();
/// let result = ScatterUpdate::new(1).allocate(
///     TensorView::contiguous(&data, &[2, 3])?,
///     TensorView::contiguous(&[2_i32, 0], &[2])?,
///     TensorView::contiguous(&[30, 10, 60, 40], &[2, 2])?,
/// )?;
/// assert_eq!(result, [10, 2, 30, 40, 5, 60]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "index_add")]
#[doc(alias = "index_copy")]
#[doc(alias = "index_reduce")]
#[doc(alias = "segment_sum")]
pub type ScatterUpdate<'p> = Scatter<'p, AlongAxis>;

/// The shape rule of [`ScatterUpdate`] and [`Gather`](crate::Gather).
#[derive(Clone, Copy, Debug)]
pub struct AlongAxis {
    pub(super) axis: isize,
}

impl ScatterUpdate<'static> {
    /// Along `axis`; without a reduction, duplicates and negative indices
    /// allowed.
    pub fn new(axis: isize) -> Self {
        Self::with_operator(AlongAxis { axis })
    }
}

impl Operator for AlongAxis {}

impl Lower for AlongAxis {
    #[expect(private_interfaces, reason = "sealed")]
    fn form(
        &self,
        data: &[usize],
        indices: &Layout<'_>,
        _updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        Ok(Form {
            batch_rank: resolve_axis(self.axis, data.len())?,
            tuple_len: 1,
            list: (0, indices.shape().len()),
            coordinates: Form::ALL_LISTED,
        })
    }
}

/// Writes update slices into `data` at `indices` along `axis`.
///
/// `updates` must have the shape `data.shape[..axis] ++ indices.shape ++
/// data.shape[axis + 1..]`. [`ScatterUpdate`] has the options and the other
/// verbs.
///
/// Duplicates are applied in the order of `indices`, whatever the number of
/// threads. `Min` and `Max` propagate NaN and keep the current value on a tie;
/// integers wrap.
///
/// # Errors
///
/// A [`ScatterError`] if the axis is out of range, the shapes disagree, an
/// index is out of bounds or the element type does not have the reduction.
/// `data` is then unchanged.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_update};
///
/// // Sums rows by segment.
/// let mut sums = [0.0_f64; 4];
/// scatter_update(
///     TensorViewMut::contiguous(&mut sums, &[2, 2])?,
///     TensorView::contiguous(&[0_u8, 1, 0], &[3])?,
///     TensorView::contiguous(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?,
///     0,
///     Reduction::Add,
/// )?;
/// assert_eq!(sums, [6.0, 8.0, 3.0, 4.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub fn scatter_update<T: Element, I: Index>(
    data: TensorViewMut<'_, T>,
    indices: TensorView<'_, I>,
    updates: TensorView<'_, T>,
    axis: isize,
    reduction: Reduction,
) -> Result<(), ScatterError> {
    (ScatterUpdate::new(axis).reduction(reduction)).in_place(data, indices, updates)
}
