//! Scatters and gathers of [candle](candle_core) tensors on the kernels of [`ndscatter`].
//!
//! A scatter adds, multiplies, minimises, maximises, averages or writes slices of `updates` into a
//! tensor, at the positions in `indices`. The result has the same bits at every number of threads.
//! All tensors may have any strides. Tensors are on the CPU.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use ndscatter_candle::{NdScatter, Reduction, ScatterOp};
//!
//! let table = Tensor::zeros((3, 2), candle_core::DType::F32, &Device::Cpu)?;
//! let updates = Tensor::new(&[[1_f32, 1.], [2., 2.], [3., 3.]], &Device::Cpu)?;
//!
//! // As `table.index_add(&rows, &updates, 0)`, on all threads.
//! let rows = Tensor::new(&[0_u32, 2, 2], &Device::Cpu)?;
//! let sums = table.nd_index_add(&rows, &updates, 0)?;
//! assert_eq!(sums.to_vec2::<f32>()?, [[1., 1.], [0., 0.], [5., 5.]]);
//!
//! // Any other scatter is a `ScatterOp`. This one writes into `table` itself.
//! let largest = ScatterOp::along(0).reduction(Reduction::Max);
//! largest.apply_set(&table, &rows, &updates)?;
//! assert_eq!(table.to_vec2::<f32>()?, [[1., 1.], [0., 0.], [3., 3.]]);
//! # Ok::<(), candle_core::Error>(())
//! ```
//!
//! [`NdScatter`] adds methods to [`Tensor`](candle_core::Tensor) for frequent scatters.
//! [`ScatterOp`] and [`GatherOp`] are builders for all others. Both implement the traits of candle's
//! custom operators: `tensor.apply_op3(&indices, &updates, op)` and
//! `tensor.inplace_op3(&indices, &updates, &op)` also run them.
//!
//! # Rules
//!
//! - *Duplicates*: updates of one position are applied in the row-major order of `indices`. Without
//!   a reduction the last update stays.
//! - *Index types*: `u8`, `u32`, `i16`, `i32`, `i64`.
//! - *Out of bounds*: an index outside its axis is an error, and no element has changed. The options
//!   [`ScatterOp::bounds`] and [`ScatterOp::skip_max`] change this rule.
//! - *Element types*: all types of candle with at least 8 bits, except `F8E4M3` and `F8E8M0`.
//!   Integers wrap around. Sums of 16-bit floats are rounded after each update, as in candle.
//! - *NaN*: `Min` and `Max` give NaN if a value is NaN.
//! - *In place*: a call that writes into a tensor changes the elements of the tensor's view alone,
//!   and all other tensors with the same storage see the change. The call has no gradient. The call
//!   is an error if the view has elements that share memory, or if `indices` or `updates` have the
//!   storage of the tensor.
//! - *Gradients*: every call that returns a tensor has the gradients for `data` and `updates`. They
//!   are right with duplicates, with zeros in products, and with ties of minima and maxima. The
//!   gradients of the gradients are not computed.

mod backward;
mod custom_op;
mod gather;
mod indices;
mod scatter;
mod tensor;
mod view;

pub use gather::GatherOp;
pub use ndscatter::{Bounds, CacheMode, Reduction};
pub use scatter::ScatterOp;
pub use tensor::NdScatter;
