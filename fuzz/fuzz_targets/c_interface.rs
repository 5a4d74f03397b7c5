//! Calls the C functions with valid and invalid tensors, options and plans.
//!
//! - No call panics, and none returns `NDS_INTERNAL` unless a pool of the caller has failed.
//! - A scatter, a gather, a run of a plan and a move succeed exactly if a model of the documented
//!   rules accepts the call ([`reference`]). The result is that of a loop over elements.
//! - After a failure, no byte of a tensor has changed. The message is not empty, is valid UTF-8 and
//!   has at most 1023 bytes, and the facts have the status of the call.
//! - Inputs, shapes, strides, gaps between elements and bytes beside a tensor never change.
//!
//! Pointers are null or valid, as the header requires. The fields of a tensor and of a struct of
//! options may have any values.
#![no_main]

#[path = "c_interface/calls.rs"]
mod calls;
#[path = "c_interface/failures.rs"]
mod failures;
#[path = "views/geometry.rs"]
#[allow(dead_code, reason = "the target `views` uses more of this module")]
mod geometry;
#[path = "c_interface/gradients.rs"]
mod gradients;
#[path = "c_interface/lists.rs"]
mod lists;
#[path = "c_interface/options.rs"]
mod options;
#[path = "c_interface/reference.rs"]
mod reference;
#[path = "c_interface/tensor.rs"]
mod tensor;

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The result is `Err` if the bytes end too early. Such an input is no case.
    let _ = run(&mut Unstructured::new(data));
});

fn run(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    match u.int_in_range(0..=15)? {
        0 => failures::facts(u),
        1 => failures::machine_files(u),
        2 | 3 => lists::moves(u),
        4..=6 => lists::writes(u),
        7 | 8 => gradients::gradients(u),
        _ => calls::scatters_and_gathers(u),
    }
}
