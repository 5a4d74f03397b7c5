//! Views of elements that are cloned, such as strings.
//!
//! This module knows Rust types that implement `Clone`. It does not know operators.

use super::memory::{Elements, Input, Output, Source, Start, Target, sealed};
use super::owned::Tensor;
use super::typed::{TensorView, TensorViewMut};
use crate::error::ScatterError;
use crate::kernel::Kernels;

/// A view of elements that a call copies with [`Clone`], such as strings.
///
/// `Cloned` wraps a [`TensorView`] or a [`TensorViewMut`] of any type that is `Clone`, `Send` and
/// `Sync`. A call with a reduction returns [`ScatterError::ReductionOfClones`]. A gather that skips
/// indices out of bounds returns [`ScatterError::UnsupportedOption`], because the type has no zero
/// for the skipped elements. Cloned elements have no gradients.
///
/// # Examples
///
/// ```
/// use ndscatter::{Cloned, Scatter, TensorView, TensorViewMut};
///
/// let mut names = ["a", "b", "c"].map(String::from);
/// let updates = [String::from("z")];
/// Scatter::along(0).in_place(
///     Cloned(TensorViewMut::from(&mut names)),
///     TensorView::from(&[1_u8]),
///     Cloned(TensorView::from(&updates)),
/// )?;
/// assert_eq!(names, ["a", "z", "c"]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cloned<V>(pub V);

impl<T: Clone + Send + Sync> sealed::Sealed for Cloned<TensorView<'_, T>> {}
impl<T: Clone + Send + Sync> sealed::Sealed for Cloned<TensorViewMut<'_, T>> {}

impl<T: Clone + Send + Sync> Input for Cloned<TensorView<'_, T>> {
    type Owned = Tensor<T>;

    fn source(&self) -> Source<'_> {
        self.0.as_source(Elements::Cloned(Kernels::cloned::<T>()))
    }

    fn allocate(
        shape: &[usize],
        start: Start<&Self>,
        fill: impl FnOnce(Target<'_>, Option<Source<'_>>) -> Result<(), ScatterError>,
    ) -> Result<Tensor<T>, ScatterError> {
        match start {
            Start::CopyOf(data) => {
                let mut result = Tensor::of_parts(shape, data.0.to_vec()?)?;
                let elements = Elements::Cloned(Kernels::cloned::<T>());
                fill(result.view_mut().as_target(elements), None)?;
                Ok(result)
            }
            // If `fill` panics or returns an error, the elements that it has already cloned are
            // leaked.
            Start::Like(_) => {
                let elements = Elements::Cloned(Kernels::cloned_into_uninit::<T>());
                Tensor::filled(shape, elements, |target| fill(target, None))
            }
        }
    }
}

impl<'a, T: Clone + Send + Sync> Output for Cloned<TensorViewMut<'a, T>> {
    type Input = Cloned<TensorView<'a, T>>;

    fn with_target<R>(
        mut self,
        call: impl FnOnce(&Target<'_>) -> Result<R, ScatterError>,
    ) -> Result<R, ScatterError> {
        call(&self.0.as_target(Elements::Cloned(Kernels::cloned::<T>())))
    }
}
