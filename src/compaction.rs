//! Moves rows of tensors onto rows of the same tensors, as if all rows were read first.
//!
//! A call checks the lists of row numbers, orders the moves so that each row is read before it is
//! overwritten, and divides the moves among workers. This module knows tensors, lists of rows and
//! tasks. No other layer imports this one.

mod division;
mod lists;
mod move_plan;
mod move_rows;
mod moving;
mod order;
mod tensors;

pub use move_plan::{MovePlan, MoveRun};
pub use move_rows::MoveRows;
