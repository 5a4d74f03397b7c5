//! The schedule by column: each worker takes a part of every window (its columns), and applies all
//! tuples to this part, in order.

use super::{Division, Reason, Scheduler, Workload};

pub(super) struct ByColumn;

impl Scheduler for ByColumn {
    fn gathers(&self) -> bool {
        true
    }

    /// Divides the work into columns. A column is a part of every window. Different columns share
    /// no element, whatever destinations the tuples have.
    fn divide(&self, work: &Workload<'_>, parts: usize) -> Result<Division, Reason> {
        if work.columns <= 1 {
            return Err(Reason("windows cannot be cut into columns"));
        }
        Ok(Division::Columns {
            parts: parts.min(work.columns),
        })
    }
}
