//! Scatter for CPUs: parallel, SIMD, and the same bits at every thread count.
//!
//! A scatter writes slices of `updates` into a tensor. `indices` gives the position of each
//! slice. A reduction (add, multiply, minimum and others) can combine an update with the
//! existing value. Other systems have scatters as ONNX ScatterND, ScatterElements and
//! TensorScatter, OpenVINO ScatterNDUpdate and ScatterUpdate, and torch `index_add_` and
//! `scatter_reduce_`. A scatter fills a KV cache, and computes the gradient of an embedding
//! table. The crate also has gathers, the inverse operators.
//!
//! ```
//! use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_nd};
//!
//! // Adds three rows to a table of three rows. Two of them are added to row 2.
//! let mut table = [0.0_f32; 6];
//! scatter_nd(
//!     TensorViewMut::contiguous(&mut table, &[3, 2])?,
//!     TensorView::contiguous(&[0_i64, 2, 2], &[3, 1])?,
//!     TensorView::contiguous(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0], &[3, 2])?,
//!     Reduction::Add,
//! )?;
//! assert_eq!(table, [1.0, 1.0, 0.0, 0.0, 5.0, 5.0]);
//! # Ok::<(), ndscatter::ScatterError>(())
//! ```
//!
//! # Guarantees of every call
//!
//! - The result has the bits of the sequential loop over `indices` in row-major order. The
//!   number of threads, the instruction set, the schedule and the pool do not change it.
//!   Duplicates are applied in that order. The only exception is the sign and payload of a NaN
//!   that arithmetic has made.
//! - Everything is checked before the first write. After a [`ScatterError`] the output is
//!   unchanged. The exceptions are [`ScatterError::PoolFailed`] and new memory
//!   ([`AnyViewMut::of_new_memory`]).
//! - Tensors may have any strides: permuted, padded or reversed. Inputs may also have stride 0.
//!   No tensor is copied to make it contiguous.
//! - Small calls allocate nothing and use no other thread.
//!
//! # Operators and methods
//!
//! The scatters are [`Scatter::nd`], [`Scatter::along`], [`Scatter::elements`] and
//! [`Scatter::cache`]. The gathers are [`Gather::nd`], [`Gather::along`] and
//! [`Gather::elements`]. Each starts a builder: options follow, and one of the methods below
//! ends it. [`Operator`] is an operator known at run time, with its shape rule. The functions in
//! [`profile`] set the options that follow the rules of one runtime.
//!
//! | method | use |
//! |---|---|
//! | [`in_place`](Scatter::in_place) | `data` may change. The cost is the cost of the updates. Gathers do not have it. |
//! | [`write_into`](Scatter::write_into) | `data` must stay, and the caller has memory for the result |
//! | [`allocate`](Scatter::allocate) | the result is a new tensor |
//! | [`plan`](Scatter::plan) | several calls have the same indices. [`ScatterPlan::run`] and [`GatherPlan::run`] have the other methods. |
//!
//! [`Scatter::backward`] and [`Gather::backward`] compute gradients. [`Scatter::forward`] is a
//! forward pass that keeps the tensors that its gradient needs.
//!
//! [`scatter_nd`], [`scatter_update`], [`scatter_elements`] and [`tensor_scatter`] are in-place
//! calls in one line.
//!
//! Each method takes any kind of view:
//!
//! - [`TensorView`]: the element type is a Rust type.
//! - [`AnyView`]: the element type is a [`DType`] known at run time, as in a runtime.
//! - [`Cloned`]: elements are cloned, such as strings.
//!
//! All tensors of one call have views of one kind. [`Indices`] may have any integer type.
//!
//! # Threads
//!
//! Work is divided among the threads of a rayon pool. Inside
//! [`rayon::ThreadPool::install`] this is the pool of the caller, elsewhere it is the global
//! pool. [`Execution::pool`] sets another [`Pool`], such as the parallel-for of a host runtime.
//! With [`CallingThread`] a call uses no other thread.
//!
//! # Cargo features
//!
//! - `half` (default): [`Element`] for `half::f16` and `half::bf16`.
//! - `num-complex` (default): [`Element`] for complex numbers.
//! - `ndarray`: conversions from and to views of `ndarray`.

mod element;
mod error;
mod exec;
mod execution;
mod foreign;
mod goal;
mod gradient;
mod kernel;
mod machine;
mod memory;
mod names;
mod operand;
mod ops;
mod plan;
mod pool;
mod reduction;
mod run;
mod schedule;
mod work;

pub use element::{DType, Element};
pub use error::ScatterError;
pub use exec::scratch::release_scratch;
pub use execution::Execution;
pub use goal::Goal;
pub use gradient::{Forward, Gradients, Saved};
pub use kernel::InstructionSet;
pub use machine::{Machine, MachineError};
pub use names::UnknownName;
pub use operand::{
    AnyTensor, AnyView, AnyViewMut, Cloned, Index, Indices, Input, Layout, LayoutBuf, Output,
    Tensor, TensorView, TensorViewMut,
};
pub use ops::profile;
pub use ops::{
    Gather, Operator, Scatter, scatter_elements, scatter_nd, scatter_update, tensor_scatter,
};
pub use pool::{CallingThread, Pool, Rayon};
pub use reduction::{Accumulate, Bounds, CacheMode, Duplicates, NoneGradient, Reduction};
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use run::last_route;
pub use run::{Explanation, GatherPlan, GatherRun, Route, ScatterPlan, ScatterRun};
pub use schedule::Schedule;
