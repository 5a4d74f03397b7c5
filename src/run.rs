//! Where the layers meet: indices become a plan, a plan and operands become a
//! transfer.
//!
//! What views and operators have not refused is refused here, before the first
//! write.

mod gathered;
mod long_gathers;
mod long_lists;
mod making;
mod operands;
mod planned;
mod scattered;
mod small;

pub(crate) use gathered::gather_once;
pub use gathered::{GatherPlan, GatherRun};
pub(crate) use making::{Planning, make_plan};
pub(crate) use operands::{
    GatherOperands, Operands, check_dtype, is_memory_of, operation, refuse_overlap, refuse_shared,
};
pub(crate) use planned::Overwritten;
pub use planned::{ScatterPlan, ScatterRun};
pub(crate) use scattered::{Prepared, execute, once, prepare};
