//! Connects the layers: a plan is made from indices, a transfer is made from a plan and the
//! tensors of a call, and the transfer runs.
//!
//! This layer makes the checks that views and operators cannot make alone. Usually all checks are
//! done before the first write. A call on the route [`Route::Stream`] (a long list of single
//! elements, without a plan) may check indices after its first write.

mod explain;
mod gather_plan;
mod long_gathers;
mod long_lists;
mod operands;
mod pipeline;
mod plan_builder;
mod route;
mod scatter_plan;
mod skipped;
mod small_call;

pub use explain::Explanation;
pub use gather_plan::{GatherPlan, GatherRun};
pub(crate) use operands::{
    Operands, check_bools, check_dtype, is_memory_of, operation, refuse_overlap,
};
pub(crate) use pipeline::{Prepared, check_reduction, execute, once, prepare};
pub(crate) use plan_builder::{Planning, make_plan};
pub use route::Route;
#[cfg(debug_assertions)]
pub use route::last_route;
pub(crate) use scatter_plan::Overwritten;
pub use scatter_plan::{ScatterPlan, ScatterRun};
