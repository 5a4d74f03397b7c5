//! One write of a call: its tensors and its conversion.
//!
//! This module knows the three parts. It does not check them.

use super::conversion::Conversion;
use crate::operand::{AnyView, AnyViewMut};

/// One write of a call with several writes ([`Scatter::write_all`](crate::Scatter::write_all),
/// [`ScatterRun::write_all`](crate::ScatterRun::write_all)): a
/// tensor, its updates, and how the updates are converted.
///
/// # Examples
///
/// ```
/// use ndscatter::{Scatter, TensorView, TensorViewMut, Write};
///
/// // Keys and values have one list of slots, and each its own cache.
/// let (mut keys, mut values) = ([0.0_f32; 4], [0.0_f32; 4]);
/// let slots = [3_i64, -1];
/// Scatter::paged().write_all(
///     TensorView::from(&slots),
///     &mut [
///         Write::new(
///             TensorViewMut::contiguous(&mut keys, &[2, 2])?,
///             TensorView::from(&[1.0_f32, 9.0]),
///         ),
///         Write::new(
///             TensorViewMut::contiguous(&mut values, &[2, 2])?,
///             TensorView::from(&[2.0_f32, 9.0]),
///         ),
///     ],
/// )?;
/// assert_eq!((keys, values), ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 2.0]));
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Debug)]
pub struct Write<'a> {
    pub(super) data: AnyViewMut<'a>,
    pub(super) updates: AnyView<'a>,
    pub(super) conversion: Option<Conversion<'a>>,
}

impl<'a> Write<'a> {
    /// Returns the write of `updates` to `data`. Without [`convert`](Self::convert), the element
    /// types are equal, and all bits are kept.
    #[inline]
    pub fn new(data: impl Into<AnyViewMut<'a>>, updates: impl Into<AnyView<'a>>) -> Self {
        Self {
            data: data.into(),
            updates: updates.into(),
            conversion: None,
        }
    }

    /// Converts the updates to the elements of data.
    #[must_use]
    #[inline]
    pub fn convert(mut self, conversion: Conversion<'a>) -> Self {
        self.conversion = Some(conversion);
        self
    }
}
