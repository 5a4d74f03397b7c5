//! ONNX ScatterElements and Scatter, OpenVINO ScatterElementsUpdate, torch
//! `scatter_`, `scatter_add_` and `scatter_reduce_`.

use super::{Lower, Operator, Scatter, resolve_axis};
use crate::element::{Element, Index};
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::plan::{Coordinates, Form};
use crate::reduction::Reduction;
use crate::tensor::{TensorView, TensorViewMut};

/// One index for each update: it replaces the update's own position along one
/// axis.
///
/// `indices` and `updates` have one shape, of the rank of `data`. Along the
/// axis it may be of any size, elsewhere at most that of `data`. The axis lies
/// in `-rank..rank`. Update `[i, j, k]` meets `data[i, indices[i, j, k], k]`
/// where the axis is 1.
///
/// Duplicates are applied in the row-major order of `indices`; without a
/// reduction the last one stays. Negative indices count from the end of the
/// axis unless [`negative_indices(false)`](Scatter::negative_indices) forbids
/// them.
///
/// Indices that repeat along the dims after the axis, by stride 0 or written
/// out, are recognised and run as a scatter of rows.
///
/// The rule is that of ONNX ScatterElements 11 to 18 (Scatter 9), OpenVINO
/// ScatterElementsUpdate 3 and 12, and torch `scatter_reduce_`, whose
/// reductions it has all of.
///
/// # Errors
///
/// Besides those of every verb: [`ScatterError::IndicesRankMismatch`],
/// [`ScatterError::IndicesTooLong`], [`ScatterError::AxisOutOfRange`].
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, ScatterElements, TensorView};
///
/// let data = [1.0_f32, 2.0, 3.0, 4.0, 5.0];
/// let sums = ScatterElements::new(0).reduction(Reduction::Add).allocate(
///     TensorView::contiguous(&data, &[5])?,
///     TensorView::contiguous(&[1_i64, 1, -1], &[3])?,
///     TensorView::contiguous(&[0.5, 0.25, 1.0], &[3])?,
/// )?;
/// assert_eq!(sums, [1.0, 2.75, 3.0, 4.0, 6.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "scatter_add")]
#[doc(alias = "scatter_reduce")]
#[doc(alias = "put_along_axis")]
#[doc(alias = "ScatterElementsUpdate")]
pub type ScatterElements<'p> = Scatter<'p, ElementsAlong>;

/// The shape rule of [`ScatterElements`] and
/// [`GatherElements`](crate::GatherElements).
#[derive(Clone, Copy, Debug)]
pub struct ElementsAlong {
    pub(super) axis: isize,
}

impl ScatterElements<'static> {
    /// Along `axis`; without a reduction, duplicates and negative indices
    /// allowed.
    pub fn new(axis: isize) -> Self {
        Self::with_operator(ElementsAlong { axis })
    }
}

impl Operator for ElementsAlong {}

impl Lower for ElementsAlong {
    #[expect(private_interfaces, reason = "sealed")]
    fn form(
        &self,
        data: &[usize],
        indices: &Layout<'_>,
        _updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        let shape = indices.shape();
        let rank = data.len();
        if shape.len() != rank {
            return Err(ScatterError::IndicesRankMismatch {
                rank,
                indices: shape.len(),
            });
        }
        let axis = resolve_axis(self.axis, rank)?;
        let too_long = |&other: &usize| other != axis && shape[other] > data[other];
        if let Some(axis) = (0..rank).find(too_long) {
            return Err(ScatterError::IndicesTooLong {
                axis,
                size: shape[axis],
                data_size: data[axis],
            });
        }
        let (first, last) = varying(indices, axis);
        let coordinates = if rank == 1 {
            // A list of whole tuples, like that of any other operator.
            Form::ALL_LISTED
        } else {
            Coordinates::Placed { axis: axis - first }
        };
        Ok(Form {
            batch_rank: first,
            tuple_len: last - first,
            list: (first, last),
            coordinates,
        })
    }
}

/// The dims around `axis` up to which indices have strides: outside of them
/// one index stands for all positions.
fn varying(indices: &Layout<'_>, axis: usize) -> (usize, usize) {
    let rank = indices.shape().len();
    let Some(strides) = indices.strides().filter(|_| !indices.shape().contains(&0)) else {
        return (0, rank);
    };
    let varies = |&dim: &usize| dim == axis || (strides[dim] != 0 && indices.shape()[dim] != 1);
    let first = (0..=axis).find(varies).unwrap_or(axis);
    let last = (axis..rank).rfind(varies).unwrap_or(axis);
    (first, last + 1)
}

/// Writes `updates` into `data`, each at its own position but for `axis`,
/// where `indices` has its place.
///
/// `indices` and `updates` have one shape, at most that of `data` off the
/// axis. [`ScatterElements`] has the options and the other verbs.
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
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_elements};
///
/// let mut data = [[1, 2, 3], [4, 5, 6]].concat();
/// scatter_elements(
///     TensorViewMut::contiguous(&mut data, &[2, 3])?,
///     TensorView::contiguous(&[2_i64, 0], &[2, 1])?,
///     TensorView::contiguous(&[30, 40], &[2, 1])?,
///     1,
///     Reduction::None,
/// )?;
/// assert_eq!(data, [1, 2, 30, 40, 5, 6]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub fn scatter_elements<T: Element, I: Index>(
    data: TensorViewMut<'_, T>,
    indices: TensorView<'_, I>,
    updates: TensorView<'_, T>,
    axis: isize,
    reduction: Reduction,
) -> Result<(), ScatterError> {
    (ScatterElements::new(axis).reduction(reduction)).in_place(data, indices, updates)
}
