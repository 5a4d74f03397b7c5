//! Scatter for CPUs: parallel, SIMD, and the same bits at every thread count.

mod element;
mod error;
mod exec;
mod execution;
mod explain;
mod kernel;
mod layout;
mod memory;
mod ops;
mod plan;
mod pool;
mod reduction;
mod run;
mod schedule;
mod tensor;

pub use element::{Element, ElementType, Index};
pub use error::ScatterError;
pub use execution::Execution;
pub use explain::Explanation;
pub use kernel::InstructionSet;
pub use layout::Layout;
pub use ops::{
    AxisUpdate, Nd, Operator, Scatter, ScatterNd, ScatterUpdate, scatter_nd, scatter_update,
};
pub use plan::ScatterPlan;
pub use pool::{CallingThread, Pool, Rayon};
pub use reduction::{Duplicates, Reduction, UnknownReduction};
pub use schedule::Schedule;
pub use tensor::{AnyView, AnyViewMut, TensorView, TensorViewMut};
