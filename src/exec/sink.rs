//! Collects the jobs of a task and hands them to a kernel in lists.

use smallvec::SmallVec;

use super::access::{Access, Runs};
#[cfg(doc)]
use crate::kernel::RunsFn;
use crate::kernel::{Job, Steps};
use crate::plan::Span;

/// Jobs of one kernel call: enough to hide the call.
const JOBS: usize = 128;

/// Bytes of windows that one list of jobs touches on one side, where the
/// list is gone through once for each run of the window: what stays in the
/// first-level cache meanwhile.
const LIST_BYTES: usize = 16 * 1024;

/// Jobs on their way to a kernel, each a window of the same form.
pub(super) struct Sink<'a> {
    kernel: Runs,
    dst: *mut u8,
    src: *const u8,
    /// Bytes of an element.
    size: usize,
    window: &'a Span,
    steps: Steps,
    /// At most [`JOBS`], so that the list needs no memory elsewhere.
    limit: usize,
    jobs: SmallVec<[Job; JOBS]>,
}

impl<'a> Sink<'a> {
    /// A sink for windows of the form `window`. `dst` and `src` are the
    /// addresses of element `[0, 0, ...]` on either side; `size` is that of an
    /// element.
    ///
    /// # Safety
    ///
    /// For every window later pushed, the elements that it and `window` place
    /// around `dst` and `src` keep the contract of [`RunsFn`] for `kernel`,
    /// and no other task touches those around `dst`, until the sink is dropped.
    /// Where `kernel` is a row's [`stream`](crate::kernel::Kernels::stream), no two
    /// windows have an element around `dst` in common.
    #[expect(unsafe_code, reason = "takes over what its caller owes the kernel")]
    pub(super) unsafe fn new(
        access: &Access,
        kernel: Runs,
        src: *const u8,
        window: &'a Span,
    ) -> Self {
        let (run, size) = (window.run(), access.operation.kernels.size);
        let limit = if window.loops().is_empty() {
            JOBS
        } else {
            (LIST_BYTES / (window.elements() * size).max(1)).clamp(1, JOBS)
        };
        Self {
            kernel,
            dst: access.buffers.output.cast(),
            src,
            size,
            window,
            steps: Steps {
                dst: run.dst,
                src: run.src,
            },
            limit,
            jobs: SmallVec::new(),
        }
    }

    /// Adds the window whose first element is at these offsets.
    #[inline]
    pub(super) fn push(&mut self, dst: isize, src: isize) {
        self.push_run(dst, src, self.window.run().size);
    }

    /// Adds windows by the offsets of their first elements.
    #[inline]
    pub(super) fn push_all(&mut self, windows: impl Iterator<Item = (isize, isize)>) {
        let len = self.window.run().size;
        let mut jobs = windows.map(|(dst, src)| Job { dst, src, len });
        loop {
            let room = self.limit - self.jobs.len();
            self.jobs.extend(jobs.by_ref().take(room));
            if self.jobs.len() < self.limit {
                break;
            }
            self.flush();
        }
    }

    /// Adds a window of which each run has `len` elements.
    #[inline]
    pub(super) fn push_run(&mut self, dst: isize, src: isize, len: usize) {
        if self.jobs.len() == self.limit {
            self.flush();
        }
        self.jobs.push(Job { dst, src, len });
    }

    /// Adds a window, as part of the one before it if it follows on both
    /// sides. Only for windows that are one contiguous run.
    #[inline]
    pub(super) fn push_joined(&mut self, dst: isize, src: isize) {
        let len = self.window.run().size;
        if let Some(last) = self.jobs.last_mut() {
            let reach = last.len.cast_signed();
            if last.dst + reach == dst && last.src + reach == src {
                last.len += len;
                return;
            }
        }
        self.push_run(dst, src, len);
    }

    /// Hands over what is left. A sink that is dropped instead (as when an
    /// element's `clone` panics) keeps the rest of its jobs to itself.
    pub(super) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        for number in 0..self.window.runs() {
            let (dst, src) = Span::at(self.window.loops(), number);
            let bytes = |elements: isize| elements.wrapping_mul(self.size.cast_signed());
            let dst = self.dst.wrapping_offset(bytes(self.window.dst + dst));
            let src = self.src.wrapping_offset(bytes(self.window.src + src));
            #[expect(unsafe_code, reason = "the one call of a kernel for runs")]
            // SAFETY: the caller of `new` vouches for every window pushed.
            unsafe {
                match self.kernel {
                    Runs::Plain(kernel) => kernel(dst, src, &self.jobs, self.steps),
                    Runs::Multiplying(kernel, factor) => {
                        kernel(dst, src, &self.jobs, self.steps, factor);
                    }
                }
            }
        }
        self.jobs.clear();
    }
}
