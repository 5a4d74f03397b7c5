//! ONNX TensorScatter: the step that writes a KV cache.

use super::{Lower, Operator, Scatter, resolve_axis};
use crate::element::Element;
use crate::error::ScatterError;
use crate::layout::Layout;
use crate::memory::copied;
use crate::plan::{Coordinates, Form, IndexRules};
use crate::reduction::{Bounds, CacheMode, Reducing, Reduction};
use crate::tensor::{TensorView, TensorViewMut};

/// Writes the rows of each sequence into its cache, one after another from the
/// sequence's own position on.
///
/// `data` is the cache: axis 0 holds the sequences, the axis given (any other;
/// ONNX's default is -2) the positions. `updates` has its shape but for that
/// axis, where it may be shorter. `indices` holds the first position of each
/// sequence, `[data.shape[0]]`, or has no dimension: one position for all (0
/// where ONNX leaves `write_indices` out).
///
/// In [`CacheMode::Linear`] the update must fit between its position and the
/// end; in [`CacheMode::Circular`] positions count modulo the length of the
/// axis. Negative positions are errors in both.
///
/// The rule is that of ONNX TensorScatter 24, of whose reference it wraps the
/// axis alone. It has no reduction, and no bounds but [`Bounds::Error`].
///
/// # Errors
///
/// Besides those of every verb: [`ScatterError::BatchAxis`],
/// [`ScatterError::WriteIndicesShape`], [`ScatterError::WriteIndex`],
/// [`ScatterError::UpdateTooLong`], [`ScatterError::UnsupportedOption`].
///
/// # Examples
///
/// ```
/// use ndscatter::{CacheMode, TensorScatter, TensorView, TensorViewMut};
///
/// // Two sequences, four positions of two numbers; one new token for each.
/// let mut cache = [0.0_f32; 16];
/// TensorScatter::new(-2, CacheMode::Linear).in_place(
///     TensorViewMut::contiguous(&mut cache, &[2, 4, 2])?,
///     TensorView::contiguous(&[1_i64, 3], &[2])?,
///     TensorView::contiguous(&[1.0, 2.0, 3.0, 4.0], &[2, 1, 2])?,
/// )?;
/// assert_eq!(cache[2..4], [1.0, 2.0]);
/// assert_eq!(cache[14..], [3.0, 4.0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[doc(alias = "kv_cache")]
pub type TensorScatter<'p> = Scatter<'p, CacheWrite>;

/// The shape rule of [`TensorScatter`].
#[derive(Clone, Copy, Debug)]
pub struct CacheWrite {
    axis: isize,
    mode: CacheMode,
    planned_len: usize,
}

impl TensorScatter<'static> {
    /// Along `axis`, which is not the first.
    pub fn new(axis: isize, mode: CacheMode) -> Self {
        Self::with_operator(CacheWrite {
            axis,
            mode,
            planned_len: 1,
        })
    }
}

impl TensorScatter<'_> {
    /// Length of the updates, along the axis, that a plan is made for.
    /// Default: 1, a decode step. The other verbs see it in the updates.
    #[must_use]
    pub fn update_len(mut self, len: usize) -> Self {
        self.operator.planned_len = len;
        self
    }
}

impl Operator for CacheWrite {}

impl Lower for CacheWrite {
    #[expect(private_interfaces, reason = "sealed")]
    fn form(
        &self,
        data: &[usize],
        indices: &Layout<'_>,
        updates: Option<&[usize]>,
    ) -> Result<Form, ScatterError> {
        if data.len() < 2 {
            return Err(ScatterError::BatchAxis { rank: data.len() });
        }
        let axis = resolve_axis(self.axis, data.len())?;
        if axis == 0 {
            return Err(ScatterError::BatchAxis { rank: data.len() });
        }
        if !indices.shape().is_empty() && indices.shape() != [data[0]] {
            return Err(ScatterError::WriteIndicesShape {
                batch: data[0],
                actual: copied(indices.shape())?,
            });
        }
        let len = match updates {
            None => self.planned_len,
            Some(updates) => updates.get(axis).copied().unwrap_or(0),
        };
        if len > data[axis] {
            return Err(ScatterError::UpdateTooLong {
                axis,
                update_len: len,
                cache_len: data[axis],
            });
        }
        Ok(Form {
            batch_rank: 0,
            tuple_len: 2,
            list: (0, 0),
            coordinates: Coordinates::Sequences {
                axis,
                len,
                circular: self.mode == CacheMode::Circular,
            },
        })
    }

    #[expect(private_interfaces, reason = "sealed")]
    fn check_options(&self, rules: IndexRules, reducing: Reducing) -> Result<(), ScatterError> {
        let unsupported = |option| Err(ScatterError::UnsupportedOption { option });
        if reducing.reduction != Reduction::None {
            return unsupported("reduction");
        }
        if rules.bounds != Bounds::Error {
            return unsupported("bounds");
        }
        Ok(())
    }
}

/// Writes the rows of `update` into `past_cache`, those of each sequence from
/// its own position on; from 0 where `write_indices` is `None`.
///
/// [`TensorScatter`] has the shapes, the other verbs, and other types of
/// indices.
///
/// # Errors
///
/// A [`ScatterError`] if the axis is out of range or the first, the shapes
/// disagree, or a position does not suit. The cache is then unchanged.
///
/// # Examples
///
/// ```
/// use ndscatter::{CacheMode, TensorView, TensorViewMut, tensor_scatter};
///
/// let mut cache = [0, 1, 2, 3, 4, 5];
/// tensor_scatter(
///     TensorViewMut::contiguous(&mut cache, &[1, 6])?,
///     Some(TensorView::contiguous(&[5], &[1])?),
///     TensorView::contiguous(&[50, 51], &[1, 2])?,
///     1,
///     CacheMode::Circular,
/// )?;
/// assert_eq!(cache, [51, 1, 2, 3, 4, 50]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
pub fn tensor_scatter<T: Element>(
    past_cache: TensorViewMut<'_, T>,
    write_indices: Option<TensorView<'_, i64>>,
    update: TensorView<'_, T>,
    axis: isize,
    mode: CacheMode,
) -> Result<(), ScatterError> {
    let start = match write_indices {
        Some(indices) => indices,
        None => TensorView::contiguous(&[0], &[])?,
    };
    TensorScatter::new(axis, mode).in_place(past_cache, start, update)
}
