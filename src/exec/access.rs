//! The memory of one call, and the operation on its elements.
//!
//! This module knows addresses and the kernels that use them. It does not know shapes, plans or
//! tasks.

use std::mem::MaybeUninit;

use super::context::Context;
use crate::kernel::{MultiplyingFn, Operation, RunsFn};
use crate::plan::Span;

/// Memory of one transfer: the address of element `[0, 0, ...]` of each tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub(crate) output: *mut MaybeUninit<u8>,
    /// The updates of a scatter, or the data of a gather.
    pub(crate) source: *const u8,
    /// The `data` of a scatter out of place, which is copied to the output before updates are
    /// applied. `None`: there is no such copy.
    pub(crate) data: Option<*const u8>,
}

/// An operation and the memory of the tensors that it reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) operation: Operation,
    pub(crate) buffers: Buffers,
    pub(crate) context: Context,
}

/// A kernel for runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runs {
    Plain(RunsFn),
    /// A kernel that multiplies elements while it copies them, and the factor.
    Multiplying(MultiplyingFn, f64),
}

#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
// SAFETY: a raw address alone gives no access. Code that reads or writes through an address is
// `unsafe`. Each such block establishes that no two tasks write the same element.
unsafe impl Send for Buffers {}
#[expect(unsafe_code, reason = "tasks share the addresses of one call")]
// SAFETY: as for `Send` above.
unsafe impl Sync for Buffers {}

impl Access {
    /// Returns the address `elements` elements after element `[0, 0, ...]` of the output.
    pub(super) fn written_at(&self, elements: isize) -> *mut u8 {
        let bytes = elements * self.operation.kernels.size.cast_signed();
        self.buffers.output.cast::<u8>().wrapping_offset(bytes)
    }

    /// Returns the address `elements` elements after element `[0, 0, ...]` of the source.
    pub(super) fn read_at(&self, elements: isize) -> *const u8 {
        let bytes = elements * self.operation.kernels.size.cast_signed();
        self.buffers.source.wrapping_offset(bytes)
    }

    /// Returns the kernel that multiplies gradients while it copies them. `None`: the operation has
    /// no such kernel.
    pub(super) fn multiplying(&self) -> Option<Runs> {
        let kernel = self.operation.multiplying?;
        Some(Runs::Multiplying(kernel, self.operation.factor))
    }

    /// Returns the kernel that copies with streaming stores, or `kernel`. The streaming kernel is
    /// returned if `wanted` is set, the operation has a streaming kernel, and the runs of `span`
    /// are contiguous in the source and in the destination.
    pub(super) fn streaming(&self, kernel: RunsFn, span: &Span, wanted: bool) -> Runs {
        let run = span.run();
        let contiguous = run.dst == 1 && run.src == 1;
        Runs::Plain(match self.operation.kernels.stream {
            Some(stream) if wanted && contiguous => match self.context.variants.stream_prefetch {
                0 => stream.plain,
                _ => stream.prefetching,
            },
            _ => kernel,
        })
    }
}
