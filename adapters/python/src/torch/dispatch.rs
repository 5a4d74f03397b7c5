//! The steps of a call: whether the crate runs it, and its run.
//!
//! This module knows which module has the rules of a function. It does not know how PyTorch
//! dispatches a call to a kernel. `python` and `native` read the arguments of a call from Python
//! objects and from C structs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{Arguments, Call, Function};
use super::connection::NoResult;
use super::embedding::Embedding;
use super::gathers::{Gathering, Indexing};
use super::put::{FlatPut, Put};
use super::scattering::Scattering;
use crate::array::Dims;

/// What a kernel does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Decides whether the crate runs the call faster than PyTorch. Only shapes, strides and types
    /// of the tensors are used. If the call returns a new tensor, `output` is the tensor `self`.
    Decide,
    /// Runs the call, if the crate does not refuse it.
    Run,
    /// Both, in this order.
    DecideAndRun,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of calls that the crate has run in this process.
pub(super) fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Performs a step of a call. Returns `None` if PyTorch's own kernel must run the call. The output is
/// then unchanged. Otherwise the crate has decided to run the call, or has run it. The returned shape
/// is the shape of the result of a gather, and empty for other functions.
///
/// If `always` is true, the crate also runs calls that PyTorch's own kernel runs faster.
pub(super) fn attempt(
    function: Function,
    step: Step,
    arguments: &Arguments<'_>,
    always: bool,
) -> Result<Option<Dims<usize>>, NoResult> {
    let done = match function {
        Function::IndexPut => perform::<Put>(function, step, arguments, always),
        Function::FlatPut => perform::<FlatPut<'_>>(function, step, arguments, always),
        Function::EmbeddingDenseBackward => {
            perform::<Embedding<'_>>(function, step, arguments, always)
        }
        Function::Index => perform::<Indexing<'_>>(function, step, arguments, always),
        Function::IndexSelect | Function::Take | Function::Gather => {
            perform::<Gathering<'_>>(function, step, arguments, always)
        }
        _ => perform::<Scattering<'_>>(function, step, arguments, always),
    };
    if step != Step::Decide && matches!(done, Ok(Some(_))) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    done
}

fn perform<'a, C: Call<'a>>(
    function: Function,
    step: Step,
    arguments: &'a Arguments<'a>,
    always: bool,
) -> Result<Option<Dims<usize>>, NoResult> {
    if step != Step::Run && !always && !C::may_gain(function, arguments) {
        return Ok(None);
    }
    let Some(call) = C::of(function, arguments) else {
        return Ok(None);
    };
    let is_taken = match step {
        Step::Run => call.run()?,
        Step::Decide => always || call.gains(),
        Step::DecideAndRun => (always || call.gains()) && call.run()?,
    };
    Ok(is_taken.then(|| call.result_shape().into()))
}
