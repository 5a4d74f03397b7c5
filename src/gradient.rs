//! Computes gradients of scatters and gathers, from the gradient of the result to the gradients of
//! the inputs.
//!
//! This module knows operators, plans, and the passes that the executor runs. No other layer
//! imports this one.

mod factor;
mod gather_verbs;
mod gathers;
mod groups;
mod overwritten;
mod passes;
mod placed;
mod saved;
mod scatter_verbs;
mod scatters;
mod tensors;
mod views;

pub use saved::Saved;
pub use views::{Forward, Gradients};
