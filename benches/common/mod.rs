//! What the benches share: the workloads, the plain loop that judges every
//! result, the roof of the machine, and how contenders are timed.

#![allow(dead_code, reason = "each bench uses its own part of this module")]

pub(crate) mod aligned;
pub(crate) mod contenders;
pub(crate) mod inputs;
#[cfg(feature = "half")]
pub(crate) mod numbers;
pub(crate) mod options;
pub(crate) mod random;
pub(crate) mod roof;
pub(crate) mod workloads;
