//! Calls the C functions with valid and invalid tensors, options and plans.
//!
//! - No call panics, and none returns `NDS_INTERNAL` unless a pool of the caller has failed.
//! - A scatter, a gather, a write, a run of a plan and a move succeed exactly if a model of the
//!   documented rules accepts the call ([`reference`]). The result is that of a loop over elements.
//! - The elements that a write stores are those of [`conversions`]. Several writes with one plan may be
//!   refused, because all of their data must have the layout of the plan.
//! - A sharded plan has the lists of a loop over tuples ([`sharding`]).
//! - After a failure, no byte of a tensor has changed. The message is not empty, is valid UTF-8 and
//!   has at most 1023 bytes, and the facts have the status of the call.
//! - Inputs, shapes, strides, gaps between elements and bytes beside a tensor never change.
//!
//! Pointers are null or valid, as the header requires. The fields of a tensor and of a struct of
//! options may have any values.

mod calls;
mod conversions;
mod failures;
mod gradients;
mod lists;
mod options;
mod reference;
mod sharding;
mod tensor;

use arbitrary::Unstructured;

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(data: &[u8]) {
    // The result is `Err` if the bytes end too early. Such an input is no case.
    let _ = run(&mut Unstructured::new(data));
}

fn run(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    match u.int_in_range(0..=15)? {
        0 => failures::facts(u),
        1 => failures::machine_files(u),
        2 | 3 => lists::moves(u),
        4..=6 => lists::writes(u),
        7 | 8 => gradients::gradients(u),
        15 => sharding::plans(u),
        _ => calls::scatters_and_gathers(u),
    }
}
