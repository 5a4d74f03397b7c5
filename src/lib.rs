//! Scatter for CPUs: parallel, SIMD, and the same bits at every thread count.
//!
//! Scatter writes slices of `updates` into a tensor at the places that
//! `indices` name, and may combine them with what is there (add, multiply,
//! minimum, ...). It is ONNX ScatterND, ScatterElements and TensorScatter,
//! OpenVINO ScatterNDUpdate and ScatterUpdate, torch `index_add_` and
//! `scatter_reduce_`, the step that fills a KV cache, the gradient of an
//! embedding table. Gathers, the inverse operators, are included.
//!
//! ```
//! use ndscatter::{Reduction, TensorView, TensorViewMut, scatter_nd};
//!
//! // Adds two rows into a table of three; the second one twice.
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
//! # What holds for every call
//!
//! - The result is that of the sequential loop over `indices` in row-major
//!   order, **bit for bit**, whatever the number of threads, the instruction
//!   set, the schedule or the pool. Duplicates are applied in that order. The
//!   one exception is the sign and payload of a NaN that arithmetic made.
//! - Everything is checked before the first write: after a [`ScatterError`]
//!   the output is what it was. The one exception is
//!   [`ScatterError::PoolFailed`].
//! - Tensors may have any strides: permuted, padded, reversed, and for inputs
//!   zero. Nothing is copied to make them contiguous.
//! - Small calls allocate nothing and touch no other thread.
//!
//! # Operators and verbs
//!
//! [`Scatter::nd`], [`Scatter::along`], [`Scatter::elements`] and
//! [`Scatter::cache`] are the operators; options follow, then one of four verbs.
//! The gathers [`Gather::nd`], [`Gather::along`] and [`Gather::elements`] have
//! three of them. [`Operator`] is any of these as a value, with its shape rule.
//! Functions in [`profile`] set the options that follow one runtime's rules.
//! [`Scatter::backward`] and [`Gather::backward`] give gradients;
//! [`Scatter::forward`] is a forward pass that keeps what its gradient needs.
//!
//! | verb | use it when |
//! |---|---|
//! | [`in_place`](Scatter::in_place) | `data` itself may change: the cost is that of the updates alone |
//! | [`write_into`](Scatter::write_into) | there is memory for the result, and `data` must stay |
//! | [`allocate`](Scatter::allocate) | a new tensor is wanted |
//! | [`plan`](Scatter::plan) | the same indices will be used again; [`ScatterPlan::run`] has the other three |
//!
//! [`scatter_nd`], [`scatter_update`], [`scatter_elements`] and
//! [`tensor_scatter`] are the in-place verbs in one line.
//!
//! The verbs take any view: a [`TensorView`] of a Rust type, an [`AnyView`]
//! whose element type is a [`DType`], which is what a runtime has, or one in
//! [`Cloned`] for elements that are cloned, such as strings. The tensors of one
//! call are of one kind; [`Indices`] may be of any integer type.
//!
//! # Threads
//!
//! Work is divided among the threads of rayon: of the pool that the caller is
//! in, as inside [`rayon::ThreadPool::install`], else of the global one.
//! [`Execution::pool`] takes any other [`Pool`], such as a host runtime's own
//! parallel-for, and [`CallingThread`] takes none.
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
