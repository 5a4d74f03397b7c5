//! The passes of a gradient: each is prepared, with all its memory, before the first one
//! runs.

#![expect(
    unsafe_code,
    reason = "hands the memory of views to a call, once they have been checked"
)]

use crate::error::ScatterError;
use crate::exec::{Access, Buffers, Context, run_pass};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::{Source, Target};
use crate::plan::Span;
use crate::run::Prepared;

/// A pass that is ready to run.
#[expect(
    clippy::large_enum_variant,
    reason = "a call has at most four, on its stack"
)]
pub(super) enum Pass<'a> {
    Transfer(Prepared<'a>),
    /// All elements are copied, or multiplied where they lie.
    Copy(Access, Span),
}

impl Pass<'_> {
    pub(super) fn run(self, execution: &Execution<'_>) -> Result<(), ScatterError> {
        let call = execution.begin();
        match self {
            Self::Transfer(prepared) => {
                prepared.run_by(|transfer| run_pass(transfer, call.workers(), execution.schedule))
            }
            // SAFETY: `copy_all` has made it, and its caller vouched for the tensors.
            Self::Copy(access, whole) => unsafe { access.copy_all(&whole, call.workers()) },
        }
    }
}

/// Copies data to a target of its shape, as `operation` does with elements on their way.
/// Without data the target is multiplied where it lies.
///
/// # Safety
///
/// Data has the shape of the target. Both hold elements of `operation`. They share no byte.
/// They live until the pass has run.
pub(super) unsafe fn copy_all<'p>(
    operation: Operation,
    target: &Target<'_>,
    data: Option<&Source<'_>>,
) -> Result<Pass<'p>, ScatterError> {
    debug_assert!(
        data.is_none_or(|data| data.shape() == target.shape()),
        "one shape"
    );
    let strides = target.layout().all_strides()?;
    let data_strides = data.map(|data| data.layout().all_strides()).transpose()?;
    // Without elements, one size says so: the product of the others may be any number.
    let shape = match target.shape().contains(&0) {
        true => &[0][..],
        false => target.shape(),
    };
    let whole = Span::over(shape, &strides, data_strides.as_ref().unwrap_or(&strides))?;
    let buffers = Buffers {
        output: target.as_mut_ptr(),
        source: std::ptr::null(),
        data: data.map(Source::as_ptr),
    };
    let access = Access {
        operation,
        buffers,
        context: Context::new(false, target.is_new()),
    };
    Ok(Pass::Copy(access, whole))
}
