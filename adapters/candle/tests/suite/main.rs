//! Tests of the adapter. They compare candle tensors with a sequential reference loop, with candle's
//! own kernels, and with finite differences.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the sizes and indices of tests are small"
)]

mod aliasing;
mod cache;
mod candle_tests;
mod differential;
mod errors;
mod gradients;
mod layouts;
mod max_index;
mod random;
mod reference;
mod threads;
mod types;
