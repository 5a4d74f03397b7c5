//! The passes of a gradient. A pass is one traversal of the tensors: a transfer or a copy. All
//! passes are prepared, and their memory is allocated, before a pass writes to a gradient.
//!
//! This module knows transfers and copies. This module does not know which passes a gradient needs.

#![expect(unsafe_code, reason = "passes the checked memory of views to a copy")]

use crate::error::ScatterError;
use crate::exec::{Access, Buffers, Context, run_pass};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::{Source, Target};
use crate::plan::Span;
use crate::run::Prepared;

/// A prepared pass, that is, one traversal of the tensors in the computation of a gradient: a
/// transfer or a copy. All memory that the pass needs is allocated.
#[expect(
    clippy::large_enum_variant,
    reason = "a call has at most four passes, and keeps them on its stack"
)]
pub(super) enum Pass<'a> {
    /// Moves or combines windows.
    Transfer(Prepared<'a>),
    /// With data: copies all elements of data to the output, multiplied by the operation's factor
    /// if the operation has a factor. Without data: multiplies all elements of the output by the
    /// operation's factor, in place.
    Copy(Access, Span),
}

impl Pass<'_> {
    /// Runs the pass.
    pub(super) fn run(self, execution: &Execution<'_>) -> Result<(), ScatterError> {
        let call = execution.begin();
        match self {
            Self::Transfer(prepared) => {
                prepared.run_by(|transfer| run_pass(transfer, call.workers(), execution.schedule))
            }
            // SAFETY: the function `copy_all` of this module has made this `Pass::Copy`. The caller
            // of `copy_all` guaranteed that `data` and `target` have one shape and the element type
            // of the operation, share no byte, and stay valid until the pass has run.
            Self::Copy(access, whole) => unsafe { access.copy_all(&whole, call.workers()) },
        }
    }
}

/// Prepares the pass that copies `data` to `target`, multiplied by the factor of `operation` if
/// `operation` has a factor. Without `data`, the pass multiplies `target` by this factor in place.
/// `operation` also has the kernels of the pass.
///
/// # Safety
///
/// `data`, if there is one, has the shape of `target`. The elements of `data` and of `target` have
/// the type of `operation`. Without `data`, the elements of `target` are initialised. `data` and
/// `target` share no byte. The memory of `data` and of `target` stays valid until the pass has run.
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
    // A shape with a size of 0 has no elements, but the product of its other sizes may overflow.
    // The pass then uses the shape [0] instead.
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
