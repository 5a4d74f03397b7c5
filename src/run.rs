//! Where the layers meet: indices become a plan, a plan and operands become a
//! transfer.
//!
//! What views and operators have not refused is refused here, before the first
//! write.

mod gathered;
mod gradient;
mod long_gathers;
mod long_lists;
mod making;
mod operands;
mod planned;
mod scattered;
mod small;

pub(crate) use gathered::gather_once;
pub use gathered::{GatherPlan, GatherRun};
pub use gradient::{Forward, Gradients, Saved};
pub(crate) use gradient::{
    Meaning, Tensors, allocate, allocate_updates, backward_once, forward_once, lend, sum_once,
};
pub(crate) use making::{Planning, make_plan};
pub(crate) use operands::{GatherOperands, Operands, operation};
pub use planned::{ScatterPlan, ScatterRun};
pub(crate) use scattered::once;
