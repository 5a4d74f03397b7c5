//! Scatter for CPUs: parallel, with SIMD, and with the same result bits at every thread count.
//!
//! A scatter writes slices of `updates` into a tensor. `indices` gives the position of each slice.
//! An update replaces the existing values of its slice, or a reduction (add, multiply, minimum and
//! others) combines the two. Scatters of other systems are, for example, ONNX ScatterND,
//! ScatterElements and TensorScatter, OpenVINO ScatterNDUpdate and ScatterUpdate, and torch
//! `index_add_` and `scatter_reduce_`. Scatters write to a KV cache, and compute the gradient of an
//! embedding table. The crate also has gathers, which read slices at the positions that `indices`
//! gives.
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
//! - The result has the bits of a sequential loop that applies the updates in the row-major
//!   order of `indices`. Duplicates (updates of one position) are also applied in this order.
//!   The number of threads, the instruction set, the schedule and the pool do not change the
//!   bits. The only exception: the sign and payload of a NaN that arithmetic has made may
//!   differ.
//! - Usually all arguments are checked before the first write, so the output is unchanged after
//!   a [`ScatterError`]. After [`ScatterError::PoolFailed`], and in an output marked as new
//!   memory ([`AnyViewMut::of_new_memory`]), elements may have changed.
//! - Tensors may have any strides: permuted, padded or reversed. Inputs may also have stride 0
//!   (broadcast). No tensor is copied to make it contiguous.
//! - Small calls usually allocate no memory other than a new result, and run on the calling
//!   thread alone.
//!
//! # Operators and methods
//!
//! The scatters are [`Scatter::nd`], [`Scatter::along`], [`Scatter::elements`] and
//! [`Scatter::cache`]. The gathers are [`Gather::nd`], [`Gather::along`] and [`Gather::elements`].
//! Each of these functions returns a builder. Its methods set options, and a method of the table
//! below ends the builder. If the operator is known only at run time, [`Operator`] describes it and
//! computes shapes. The functions in [`profile`] return builders with options that follow the rules
//! of one runtime.
//!
//! | method | use |
//! |---|---|
//! | [`in_place`](Scatter::in_place) | the call writes to `data` itself, and costs only the updates. Gathers have no such method. |
//! | [`write_into`](Scatter::write_into) | `data` must not change, and the caller has memory for the result |
//! | [`allocate`](Scatter::allocate) | the result is a new tensor |
//! | [`plan`](Scatter::plan) | several calls have the same indices. The builders of [`ScatterPlan::run`] and [`GatherPlan::run`] have the other methods. |
//!
//! With the feature `gradients`, `Scatter::backward` and `Gather::backward` compute gradients.
//! `Scatter::forward` makes a forward pass, and keeps the tensors that its gradient needs.
//!
//! [`MoveRows`] moves rows of tensors onto rows of the same tensors, for example to reorder the
//! beams of a KV cache.
//!
//! The functions [`scatter_nd`], [`scatter_update`], [`scatter_elements`] and [`tensor_scatter`]
//! scatter in place, without a builder.
//!
//! The methods take any of three kinds of views:
//!
//! - [`TensorView`]: the element type is a Rust type.
//! - [`AnyView`]: the element type is a [`DType`] that is known only at run time.
//! - [`Cloned`]: the elements, for example strings, are cloned and not copied as bytes.
//!
//! All tensors of one call, except the indices, have one kind of view. [`Indices`] may have any
//! integer type.
//!
//! # Threads
//!
//! By default, the threads of a rayon pool divide the work. Inside [`rayon::ThreadPool::install`],
//! this is the installed pool. Elsewhere it is rayon's global pool. [`Execution::pool`] sets
//! another [`Pool`], for example the parallel-for of a host runtime. With [`CallingThread`] as the
//! pool, a call runs only on the calling thread.
//!
//! # Cargo features
//!
//! No feature is enabled by default. Each feature adds to the time of the build.
//!
//! - `complex`: adds reductions of complex numbers, and implements [`Element`] for the types of the
//!   crate `num-complex`. Without the feature, complex numbers can be moved but not reduced.
//! - `conversions`: adds writes that convert the updates, for example to 8-bit floats:
//!   `Scatter::convert` and `Scatter::write_all`.
//! - `float16`: adds reductions and gradients of 16-bit floats. Without the feature, 16-bit floats can
//!   be moved and converted but not reduced.
//! - `gradients`: adds gradients: `Scatter::backward`, `Scatter::forward` and `Gather::backward`.
//! - `half`: implements [`Element`] for `half::f16` and `half::bf16`, and enables `float16`. [`AnyView`]
//!   views 16-bit floats without this feature.
//! - `narrow-integers`: adds reductions of integers of 8 and 16 bits. Without the feature, these
//!   integers can be moved but not reduced. They can always be indices.
//! - `ndarray`: adds conversions from and to views of the crate `ndarray`. Calls take `&array` as
//!   indices, and `&mut array` or `ArrayViewMut` as the tensor that they write.
//! - `sharding`: adds tables whose rows are divided among several processes: `Sharding`,
//!   `Scatter::shard` and `Gather::shard`.

// Shows on docs.rs which features an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "complex",
        feature = "conversions",
        feature = "float16",
        feature = "gradients",
        feature = "narrow-integers",
        feature = "sharding"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "some functions are called only by the code of a feature; the lints run with all features"
    )
)]

mod compaction;
#[cfg(feature = "conversions")]
mod conversion;
#[cfg(feature = "conversions")]
mod convert;
mod element;
mod error;
mod exec;
mod execution;
mod foreign;
mod goal;
#[cfg(feature = "gradients")]
mod gradient;
mod kernel;
mod machine;
mod memory;
#[cfg(all(test, loom))]
mod models;
mod names;
mod operand;
mod ops;
mod plan;
mod pool;
mod reduction;
mod run;
mod schedule;
#[cfg(feature = "sharding")]
mod sharding;
mod sync;
mod work;

pub use compaction::{MovePlan, MoveRows, MoveRun};
#[cfg(feature = "conversions")]
pub use conversion::{Format, Rounding, Scaling};
#[cfg(feature = "conversions")]
pub use convert::{Conversion, ConvertingRun, ConvertingScatter, Write};
pub use element::{DType, Element};
pub use error::ScatterError;
pub use exec::scratch::release_scratch;
pub use execution::Execution;
pub use goal::Goal;
#[cfg(feature = "gradients")]
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
#[cfg(feature = "sharding")]
pub use sharding::{MergeOrder, Packing, ShardedPlan, Sharding};

/// The Rust examples of README.md and of docs/rust.md are compiled and run as doc tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}

    #[cfg(all(feature = "half", feature = "ndarray", feature = "complex"))]
    #[doc = include_str!("../docs/rust.md")]
    mod rust {}
}
