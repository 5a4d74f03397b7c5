//! Scatters with gradients for tensors of [burn](https://burn.dev), on the kernels of ndscatter.
//!
//! burn's CPU backend, Flex, runs its scatters (`scatter`, `scatter_nd`, `select_assign`) on one
//! thread. The method [`nd_scatter`](NdScatter::nd_scatter) of tensors runs the same operations on
//! all threads of rayon's pool. The result has the bits of a sequential loop that applies the
//! updates in order. Tensors on an autodiff device get gradients.
//!
//! ```
//! use burn_tensor::{Device, Int, Tensor};
//! use ndscatter_burn::{NdScatter, Reduction, Scatter};
//!
//! let device = Device::flex();
//! let table = Tensor::<2>::zeros([3, 2], &device);
//! let rows = Tensor::<1, Int>::from_ints([0, 2, 2], &device);
//! let updates = Tensor::<2>::from_floats([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], &device);
//!
//! let sums = table.nd_scatter(&Scatter::along(0).reduction(Reduction::Add), rows, updates)?;
//! assert_eq!(sums.to_data().try_to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0, 5.0, 5.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Scatter`] states the operation. The operations of burn correspond to these scatters. An
//! `IndexingUpdateOp` corresponds to a [`Reduction`] (`Assign` to `Reduction::None`):
//!
//! | burn | scatter |
//! |---|---|
//! | `select_assign(dim, indices, values, update)` | `Scatter::along(dim).reduction(..)` |
//! | `scatter(dim, indices, values, update)` | `Scatter::elements(dim).reduction(..)` |
//! | `scatter_nd(indices, values, update)` | `Scatter::nd().reduction(..)` |
//!
//! Code that is generic over the backend calls the functions of [`ScatterBackend`].
//!
//! # Differences from burn
//!
//! - Bad arguments are an [`Error`], and not a panic.
//! - Negative indices count from the end, unless `Scatter::negative_indices(false)` forbids them.
//!   `Scatter::bounds` can skip or move indices out of bounds.
//! - `Min` and `Max` give NaN if the current value or the update is NaN. burn drops an update that
//!   is NaN.
//! - Gradients are exact if several updates have the same destination, and at ties
//!   ([`Scatter::backward_into`]). burn's gradients of `Mul`, `Min` and `Max` require distinct
//!   destinations. For assignments, burn gives the gradient to all updates of a destination. The
//!   option [`NoneGradient::EveryDuplicate`](ndscatter::NoneGradient) does the same.
//!
//! | module | knows |
//! |---|---|
//! | `tensor` | the method of tensors, and the route from a tensor to its backend |
//! | `backend` | the traits that a backend implements |
//! | `flex` | the backend Flex: views of its tensors |
//! | `autodiff` | the steps of burn's backward pass |

mod autodiff;
mod backend;
mod error;
mod flex;
mod tensor;

pub use backend::{Forward, ScatterBackend, ScatterGradient};
pub use error::Error;
pub use ndscatter::{Reduction, Scatter};
pub use tensor::NdScatter;
