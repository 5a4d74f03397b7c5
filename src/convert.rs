//! Writes that convert elements: updates of one type are written into data of another type, without
//! a converted copy of the updates in between.
//!
//! A write is checked completely, and all its memory is allocated, before any element is written.
//! Several writes with the same indices, such as keys and values of all layers of a model, are one
//! call. The kernels that convert elements are in `kernel`.
//!
//! This module knows operators, plans, formats and scales. No other layer imports this one.

mod conversion;
mod operands;
mod pass;
mod prepared;
mod scales;
mod verbs;
mod write;

pub use conversion::Conversion;
pub use verbs::{ConvertingRun, ConvertingScatter};
pub use write::Write;
