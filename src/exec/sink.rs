//! Collects the jobs of a task and passes them to a kernel, one list of jobs at a time.
//!
//! A job is one run of elements to move or reduce. This module knows the sizes and strides of a
//! window and the offsets of the pushed windows. This module does not know how the offsets are
//! computed from tuples.

use smallvec::SmallVec;

use super::access::{Access, Runs};
#[cfg(doc)]
use crate::kernel::RunsFn;
use crate::kernel::{Job, Steps};
use crate::plan::Span;

/// Maximum number of jobs in one kernel call. With this number, the overhead of the call is
/// negligible.
const JOBS: usize = 128;

/// Maximum bytes of the windows of one list, if a window has several runs. A window counts as its
/// number of bytes, although it is read in the source and written in the destination. The sink
/// passes the whole list to the kernel once for each run of a window. With this limit, the windows
/// of the list stay in the first-level cache (L1) from one of these kernel calls to the next.
const LIST_BYTES: usize = 16 * 1024;

/// A sink: a list of jobs for the next kernel calls. Each job stands for one window, or for several
/// contiguous windows that were joined. All windows have the strides of `window`.
pub(super) struct Sink<'a> {
    kernel: Runs,
    dst: *mut u8,
    src: *const u8,
    /// Bytes of an element.
    size: usize,
    window: &'a Span,
    steps: Steps,
    /// Maximum number of jobs in the list. The maximum is at most [`JOBS`], so the list never
    /// allocates memory.
    limit: usize,
    jobs: SmallVec<[Job; JOBS]>,
}

impl<'a> Sink<'a> {
    /// Makes a sink for windows with the sizes and strides of `window`. `src` is the address of
    /// element `[0, 0, ...]` of the tensor that is read.
    ///
    /// # Safety
    ///
    /// The caller guarantees the following for every window that it pushes, until the sink is
    /// dropped:
    ///
    /// - The elements of the window in the output of `access` and in the tensor at `src` satisfy
    ///   the contract of [`RunsFn`] for `kernel`.
    /// - No other task uses the elements of the window in the output.
    /// - If `kernel` is a [`stream`](crate::kernel::Kernels::stream) function, no two windows share
    ///   an element of the output.
    #[expect(
        unsafe_code,
        reason = "its caller gives the guarantees that the kernel needs"
    )]
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

    /// Appends a window to the list of jobs. The argument `dst` is the offset of the window in the
    /// output. The argument `src` is the offset of the window in the tensor that is read. Both
    /// offsets are without the constant offsets that all windows of the sink share (the fields
    /// `dst` and `src` of the [`Span`] that [`Self::new`] got). The kernel call adds the constant
    /// offsets.
    #[inline]
    pub(super) fn push(&mut self, dst: isize, src: isize) {
        self.push_run(dst, src, self.window.run().size);
    }

    /// Appends windows to the list of jobs. Each item has the offset of a window in the output and
    /// its offset in the tensor that is read, as for [`Self::push`].
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

    /// Appends a window to the list of jobs, as [`Self::push`] does, but with runs of `len`
    /// elements. A run is the innermost, evenly strided loop of a window.
    #[inline]
    pub(super) fn push_run(&mut self, dst: isize, src: isize, len: usize) {
        if self.jobs.len() == self.limit {
            self.flush();
        }
        self.jobs.push(Job { dst, src, len });
    }

    /// Appends a window to the list of jobs. The window must be one contiguous run. If the window
    /// begins where the last job of the list ends, in the output and in the tensor that is read,
    /// the function extends this job instead.
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

    /// Passes the remaining jobs to the kernel. If a sink is dropped without a call of `finish`,
    /// for example when an element's `clone` panics, its remaining jobs do not run.
    pub(super) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        for number in 0..self.window.runs() {
            let (dst, src) = Span::at(self.window.loops(), number);
            let bytes = |elements: isize| elements.wrapping_mul(self.size.cast_signed());
            let dst = self.dst.wrapping_offset(bytes(self.window.dst + dst));
            let src = self.src.wrapping_offset(bytes(self.window.src + src));
            #[expect(unsafe_code, reason = "the only call of a kernel for runs")]
            // SAFETY: the caller of `new` guarantees that every pushed window has elements that the
            // kernel may read in the source and write in the destination. The caller of `new` also
            // guarantees that nothing else uses the written elements.
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
