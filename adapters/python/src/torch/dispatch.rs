//! The steps of a call: whether the crate runs it, and its run.
//!
//! This module knows which module has the rules of a function. It does not know how PyTorch
//! dispatches a call to a kernel. `python` and `native` read the arguments of a call from Python
//! objects and from C structs.

use super::call::{Arguments, Call, Function, Stop};
use super::counts::{count_declined, count_run};
use super::embedding::Embedding;
use super::gathers::{Gathering, Indexing};
use super::put::{FlatPut, Put};
use super::reason::Reason;
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

/// Performs a step of a call, and counts the call if this is its last step. After `Ok`, the crate has
/// decided to run the call, or has run it. The returned shape is the shape of the result of a gather,
/// and empty for other functions.
///
/// If `always` is true, the crate also runs calls that PyTorch's own kernel runs faster.
pub(super) fn attempt(
    function: Function,
    step: Step,
    arguments: &Arguments<'_>,
    always: bool,
) -> Result<Dims<usize>, Stop> {
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
    match &done {
        Ok(_) if step != Step::Decide => count_run(function),
        Err(Stop::Declined(reason)) => count_declined(function, *reason),
        _ => {}
    }
    done
}

fn perform<'a, C: Call<'a>>(
    function: Function,
    step: Step,
    arguments: &'a Arguments<'a>,
    always: bool,
) -> Result<Dims<usize>, Stop> {
    let decides = step != Step::Run && !always;
    if decides && !C::may_gain(function, arguments) {
        return Err(Reason::Slower.into());
    }
    let call = C::of(function, arguments)?;
    if decides && !call.gains() {
        return Err(Reason::Slower.into());
    }
    if step != Step::Decide {
        call.run()?;
    }
    Ok(call.result_shape().into())
}
