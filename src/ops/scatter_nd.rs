//! ONNX ScatterND, OpenVINO ScatterNDUpdate, `tf.tensor_scatter_nd_*`.

use super::{Lower, Operator, Scatter};
use crate::element::{Element, Index};
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::memory::copied;
use crate::plan::{Coordinates, Form};
use crate::reduction::Reduction;
use crate::tensor::{TensorView, TensorViewMut};

/// Tuples of coordinates, each addressing a slice of `data`.
///
/// With `k = indices.shape[-1]`, `updates` has the shape
/// `indices.shape[..-1] ++ data.shape[k..]`; where that is empty, a tensor of
/// one element and any rank will do. `k` may be anything from 0 (each update
/// addresses the whole tensor) to the rank of `data`.
///
/// Duplicates are applied in the order of `updates`; without a reduction the
/// last one stays. Negative indices count from the end of their axis unless
/// [`negative_indices(false)`](Scatter::negative_indices) forbids them.
///
/// The rule is that of ONNX ScatterND 11 to 18 and OpenVINO ScatterNDUpdate 3
/// and 15, whose reductions it has all of.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, ScatterNd, TensorView};
///
/// let data = [[1, 2], [3, 4], [5, 6]].concat();
/// let sum = ScatterNd::new().reduction(Reduction::Add).allocate(
///     TensorView::contiguous(&data, &[3, 2])?,
///     TensorView::contiguous(&[0_i64, 2, 0], &[3, 1])?,
///     TensorView::contiguous(&[10, 10, 20, 20, 30, 30], &[3, 2])?,
/// )?;
/// assert_eq!(sum, [41, 42, 3, 4, 25, 26]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "ScatterND")]
#[doc(alias = "ScatterNDUpdate")]
#[doc(alias = "tensor_scatter_nd_update")]
#[doc(alias = "index_put")]
pub type ScatterNd<'p> = Scatter<'p, Nd>;

/// The shape rule of [`ScatterNd`] and [`GatherNd`](crate::GatherNd).
#[derive(Clone, Copy, Debug)]
pub struct Nd {
    pub(super) batch_dims: usize,
}

impl ScatterNd<'static> {
    /// Without a reduction, duplicates and negative indices allowed.
    #[expect(clippy::new_without_default, reason = "an alias of a generic type")]
    pub fn new() -> Self {
        Self::with_operator(Nd { batch_dims: 0 })
    }
}

impl Operator for Nd {}

impl Lower for Nd {
    #[expect(private_interfaces, reason = "sealed")]
    #[inline]
    fn form(
        &self,
        data: &[usize],
        indices: &Layout<'_>,
        _updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        let (Some((&tuple_len, list)), rank) = (indices.shape().split_last(), data.len()) else {
            return Err(ScatterError::IndicesRank);
        };
        let batch_dims = self.batch_dims;
        if batch_dims > rank || batch_dims > list.len() {
            return Err(ScatterError::BatchDims {
                batch_dims,
                data_rank: rank,
                indices_rank: indices.shape().len(),
            });
        }
        if batch_dims > 0 && data[..batch_dims] != list[..batch_dims] {
            return Err(ScatterError::BatchShape {
                data: copied(&data[..batch_dims])?,
                indices: copied(&list[..batch_dims])?,
            });
        }
        if tuple_len > rank - batch_dims {
            return Err(ScatterError::TupleLength {
                tuple_len,
                rank: rank - batch_dims,
            });
        }
        Ok(Form {
            batch_rank: 0,
            tuple_len: batch_dims + tuple_len,
            list: (0, list.len()),
            coordinates: Coordinates::Listed {
                implied: batch_dims,
            },
        })
    }
}

/// Writes update slices into `data` at the positions named by `indices`.
///
/// With `k = indices.shape[-1]`, `updates` must have the shape
/// `indices.shape[..-1] ++ data.shape[k..]`. [`ScatterNd`] has the options and
/// the other verbs.
///
/// Duplicates are applied in the order of `updates`, whatever the number of
/// threads. `Min` and `Max` propagate NaN and keep the current value on a tie;
/// integers wrap.
///
/// # Errors
///
/// A [`ScatterError`] if the shapes disagree, an index is out of bounds or the
/// element type does not have the reduction. `data` is then unchanged.
///
/// # Examples
///
/// ```
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_nd};
///
/// let mut data = [1.0_f32, 2.0, 3.0, 4.0];
/// scatter_nd(
///     TensorViewMut::contiguous(&mut data, &[4])?,
///     TensorView::contiguous(&[0_i64, -1], &[2, 1])?,
///     TensorView::contiguous(&[10.0, 40.0], &[2])?,
///     Reduction::Add,
/// )?;
/// assert_eq!(data, [11.0, 2.0, 3.0, 44.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
///
/// `data` and `updates` cannot be the same memory:
///
/// ```compile_fail,E0502
/// use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_nd};
///
/// let mut data = [1.0_f32, 2.0];
/// scatter_nd(
///     TensorViewMut::contiguous(&mut data, &[2]).unwrap(),
///     TensorView::contiguous(&[1_i64, 0], &[2, 1]).unwrap(),
///     TensorView::contiguous(&data, &[2]).unwrap(),
///     Reduction::None,
/// );
/// ```
pub fn scatter_nd<T: Element, I: Index>(
    data: TensorViewMut<'_, T>,
    indices: TensorView<'_, I>,
    updates: TensorView<'_, T>,
    reduction: Reduction,
) -> Result<(), ScatterError> {
    (ScatterNd::new().reduction(reduction)).in_place(data, indices, updates)
}
