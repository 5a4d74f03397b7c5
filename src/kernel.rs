//! The innermost loops, which move and reduce runs of elements.
//!
//! A kernel gets a list, for example of [`Job`]s, and processes the entries of the list in order.
//! This module knows slices of elements, reductions and instruction sets. The callers of a kernel
//! decide where the elements are stored, the order of the entries, and which worker runs a kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(feature = "conversions")]
mod convert;
mod copy;
mod dispatch;
mod elements;
pub(crate) mod filter;
mod fold;
#[cfg(feature = "gradients")]
mod gradient;
mod groups;
mod half;
pub(crate) mod identity;
mod isa;
mod lanes;
mod multiply;
mod prefetch;
mod reduce;
mod rows;
mod runs;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod vector;
#[cfg(feature = "conversions")]
pub(crate) use convert::{ConvertFn, ConvertRun, LineSteps, convert_fn};
pub use isa::InstructionSet;
pub(crate) use prefetch::{flush, prefetch_bytes};
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use stream::{fence, stream_lines};

use std::ops::Range;

use crate::element::DType;
use crate::reduction::Reduction;

/// Copies `bytes` bytes with ordinary stores, on machines other than x86-64 and in Miri. This crate
/// has streaming stores only for x86-64, and Miri does not run them.
///
/// # Safety
///
/// `bytes` bytes can be read from `src` on and written from `dst` on, and the two do not overlap.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[expect(unsafe_code, reason = "copies bytes through raw pointers")]
pub(crate) unsafe fn stream_lines(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees that `bytes` bytes can be read from `src` on and written from
    // `dst` on, and that the two ranges do not overlap.
    unsafe { src.copy_to_nonoverlapping(dst, bytes) };
}

/// Does nothing: ordinary stores need no fence.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn fence() {}

/// One run of elements to move or reduce. Positions and the length are in elements. Positions
/// are relative to the two base addresses that a kernel gets with its jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Position of the first element to write.
    pub(crate) dst: isize,
    /// Position of the first element to read.
    pub(crate) src: isize,
    /// Number of elements.
    pub(crate) len: usize,
}

/// Strides, in elements, from one element of a run to the next, in the destination and the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) dst: isize,
    pub(crate) src: isize,
}

impl Steps {
    /// Strides of runs that are contiguous on both sides.
    pub(crate) const UNIT: Self = Self { dst: 1, src: 1 };
}

/// Processes `jobs` in order. For each job and each `i` in `0..job.len`, the function changes the
/// element at `dst + job.dst + i * steps.dst`. The function either replaces this element by the
/// element at `src + job.src + i * steps.src`, or replaces it by the reduction of the two elements.
///
/// # Safety
///
/// - All these elements are in allocations that are valid for writes (`dst`) and reads (`src`).
///   They are aligned for the element type.
/// - Nothing else reads or writes the `dst` elements during the call. No `dst` element is also a
///   `src` element.
/// - The `src` elements are initialised. The `dst` elements are initialised too, unless the
///   function only moves plain bytes.
pub(crate) type RunsFn = unsafe fn(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps);

/// Placement of the `dst` elements of an [`ElementsFn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Stride in elements: offset `n` addresses the element at `dst + n * scale`.
    pub(crate) scale: isize,
    /// Whether a cache holds all `dst` elements, so that prefetching does not pay. A wrong value
    /// changes only the speed, and no bit of the result.
    pub(crate) is_near: bool,
}

impl Spread {
    /// Offsets in units of one element, with all `dst` elements in a cache.
    pub(crate) const NEIGHBOURS: Self = Self {
        scale: 1,
        is_near: true,
    };
}

/// Processes single elements. For each `i` in order, the function either replaces the element at
/// `dst + offsets[i] * scale` by the element at `src + i`, or replaces it by the reduction of the
/// two elements.
///
/// # Safety
///
/// As for [`RunsFn`], with one job of one element for each offset.
pub(crate) type ElementsFn<O> =
    unsafe fn(dst: *mut u8, src: *const u8, offsets: &[O], spread: Spread);

/// The [`ElementsFn`] for each width of offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) u32: ElementsFn<u32>,
    pub(crate) u64: ElementsFn<u64>,
}

/// Gathers single elements at offsets that were not checked. For each `i` below `count`, the
/// function copies the element at `src + offsets[i]` to `dst + i`. If an offset is out of bounds,
/// the function copies the first element of `src` instead. If `src` has no elements, the function
/// copies nothing. Returns whether all offsets are in bounds.
///
/// # Safety
///
/// - `count` aligned offsets of 32 or 64 bits can be read from `offsets` on. Other threads may
///   write these offsets during the call.
/// - [`GatherBounds::below`] elements can be read from `src` on.
/// - `count` elements can be written from `dst` on, and nothing else accesses them during the
///   call.
pub(crate) type CheckedGatherFn = unsafe fn(
    dst: *mut u8,
    src: *const u8,
    offsets: *const u8,
    count: usize,
    bounds: GatherBounds,
) -> bool;

/// The [`CheckedGatherFn`] for each width of offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedGather {
    pub(crate) u32: CheckedGatherFn,
    pub(crate) u64: CheckedGatherFn,
}

/// Bounds that [`CheckedGatherFn`] compares offsets with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherBounds {
    /// Number of elements of the source. An offset is in bounds if it is less than this number.
    pub(crate) below: usize,
    /// Whether a cache holds the source elements after their first use, so that prefetching them
    /// costs more than it gains.
    pub(crate) is_near: bool,
}

/// Processes rows of one length. A row has `len` contiguous elements. For each `i` in order, the
/// function either replaces the row at `dst + numbers[i] * unit` by the row at
/// `src + sources[i] * step`, or replaces it by the reduction of the two rows.
///
/// # Safety
///
/// As for [`RunsFn`], with one job of a contiguous run for each number.
pub(crate) type RowsFn =
    unsafe fn(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>);

/// Placement of the rows of a [`RowsFn`]. Strides and lengths are in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsForm<'a> {
    /// Stride from one destination number to the next.
    pub(crate) unit: isize,
    /// Stride from one source number to the next.
    pub(crate) step: isize,
    /// Length of a row.
    pub(crate) len: usize,
    /// Source number of each row. `None`: row `i` has the source number `i`.
    pub(crate) sources: Option<&'a [u32]>,
    /// Whether a cache holds all the rows that the destination numbers address, so that
    /// prefetching them costs more than it gains.
    pub(crate) is_near: bool,
    /// Whether to prefetch the rows of the source if `sources` lists them.
    pub(crate) prefetches_sources: bool,
}

/// Reduces all updates of one destination, then all updates of the next destination. For each group
/// in order, the function reduces the run at `dst + group.dst` with the runs at
/// `src + run.sources.offset(i)`, for `i` in `group.start..group.end` in order. The result replaces
/// the run at `dst + group.dst`. Without `run.include_self`, only the updates are reduced.
///
/// # Safety
///
/// As for [`RunsFn`], with one job for each source of each group. Every group has at least one
/// source (an update of its destination), and all elements are initialised.
pub(crate) type GroupFn =
    unsafe fn(dst: *mut u8, src: *const u8, groups: &[Group], run: GroupRun<'_>);

/// A destination and its sources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    /// Position of the first element to write.
    pub(crate) dst: isize,
    /// Position of the first source of the group among all sources.
    pub(crate) start: usize,
    /// Position after the last source of the group among all sources.
    pub(crate) end: usize,
}

/// Placement of the runs of sources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    /// Entry of each source. An entry contains the source number in the bits of `mask`. `None`:
    /// source `i` has the source number `i`.
    pub(crate) list: Option<&'a [u64]>,
    /// Mask of the bits of an entry that contain the source number.
    pub(crate) mask: u64,
    /// Stride in elements from one source number to the next.
    pub(crate) step: isize,
}

impl Sources<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product with the stride is an offset in an allocation"
    )]
    #[inline(always)]
    fn offset(self, position: usize) -> isize {
        let number = match self.list {
            Some(list) => (list[position] & self.mask).cast_signed() as isize,
            None => position.cast_signed(),
        };
        number.wrapping_mul(self.step)
    }

    /// Returns the offsets of the sources `distance` positions after `positions`, for prefetching.
    /// Empty without a list, because the hardware prefetches sources that are in order.
    #[inline(always)]
    fn later(self, positions: Range<usize>, distance: usize) -> impl Iterator<Item = isize> {
        let listed = self.list.map_or(0, <[u64]>::len);
        (positions.start + distance..(positions.end + distance).min(listed))
            .map(move |position| self.offset(position))
    }
}

/// Placement of the runs of groups, and how their values are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRun<'a> {
    pub(crate) sources: Sources<'a>,
    /// Elements of a run.
    pub(crate) len: usize,
    pub(crate) steps: Steps,
    /// Whether the existing value of the destination takes part.
    pub(crate) include_self: bool,
    /// Factor that multiplies a finished sum of gradients of 16-bit floats. Other reductions ignore
    /// the factor.
    pub(crate) factor: f64,
}

/// Multiplies `len` elements, with the stride `step`, by a factor.
///
/// # Safety
///
/// The elements are initialised and aligned elements of the function's type. Nothing else reads
/// or writes them during the call.
pub(crate) type MultiplyFn = unsafe fn(dst: *mut u8, len: usize, step: isize, factor: f64);

/// A [`RunsFn`] that replaces each `dst` element by its `src` element times `factor`.
pub(crate) type MultiplyingFn =
    unsafe fn(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps, factor: f64);

/// Processes groups in order. For each group, the function writes the requested gradients: the
/// shares of the existing value and of each update in the gradient of the destination.
///
/// # Safety
///
/// - Every tensor has one run for each group or one run for each source. A run has `len`
///   initialised, aligned elements of the function's type, at the stride of the tensor. The offset
///   of a run is relative to the base address of the tensor. The elements of `grad_data` and
///   `grad_updates` are valid for writes.
/// - During the call, nothing else reads or writes the elements that the function writes. These
///   elements share no memory with the elements that the function reads, except that `grad_data`
///   may be the same memory as `grad_output`.
/// - Every group has at least one source, an update of its destination.
/// - For products, minima and maxima, `tensors.updates` is not `None`. If the existing value takes
///   part, `tensors.data` is not `None` either.
pub(crate) type GradientFn =
    unsafe fn(tensors: &GradientTensors<'_>, groups: &[GradientGroup], shares: &Shares);

/// Base address and stride of a tensor. Outside [`PerTuple`], the tensor has one run for each
/// group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    /// Base address that the offsets of runs are relative to. Kernels write to the tensor only if
    /// it is a requested gradient.
    pub(crate) base: *mut u8,
    /// Stride in elements from one element of a run to the next.
    pub(crate) step: isize,
}

/// A tensor with one run for each source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerTuple<'a> {
    pub(crate) run: Numbered,
    pub(crate) sources: Sources<'a>,
}

/// The tensors of a gradient, with runs of `len` elements. A tensor is `None` if the gradient does
/// not need it or the caller does not want it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GradientTensors<'a> {
    pub(crate) len: usize,
    pub(crate) grad_output: Numbered,
    pub(crate) data: Option<Numbered>,
    pub(crate) updates: Option<PerTuple<'a>>,
    pub(crate) grad_data: Option<Numbered>,
    pub(crate) grad_updates: Option<PerTuple<'a>>,
}

/// Offsets of the runs of one destination, in elements, and the positions of its sources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GradientGroup {
    pub(crate) grad_output: isize,
    pub(crate) data: isize,
    pub(crate) grad_data: isize,
    /// Position of the first source of the group among all sources.
    pub(crate) start: usize,
    /// Position after the last source of the group among all sources.
    pub(crate) end: usize,
}

/// The values of a destination (the existing value and the updates) that get a share of the
/// gradient of the output, and the factors of these shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Whether the existing value gets a share of the gradient.
    pub(crate) include_self: bool,
    /// Whether only the last update of a destination gets a share of the gradient.
    pub(crate) last_only: bool,
    /// Whether the gradient is divided equally among all values that get a share (mean). Products,
    /// minima and maxima ignore this field. For other reductions without this flag, each value that
    /// gets a share gets the whole gradient.
    pub(crate) divides: bool,
    /// Whether the smallest values of a destination get the gradient (minimum). Otherwise the
    /// largest values get the gradient (maximum). Ties share the gradient equally. Only minima and
    /// maxima use this field.
    pub(crate) smallest: bool,
    /// Factor by which the gradient of data is multiplied at the end. For products, minima and
    /// maxima, also the factor of the gradients of updates.
    pub(crate) factor: f64,
    /// Factor of the gradients of updates, for all other reductions.
    pub(crate) factor_of_updates: f64,
}

/// What a call does to elements: its kernels, and the options that select among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) kernels: &'static Kernels,
    /// The function that reduces groups. `None`: the operation has no reduction.
    pub(crate) group: Option<GroupFn>,
    /// Whether the updates must be processed group by group (all updates of one destination
    /// together). A mean is divided after the last update. With wide accumulation, the running
    /// value of a group has a wider type than the elements. A reduction without the existing value
    /// begins with the first update. Some gradients depend on all values of a group.
    pub(crate) needs_groups: bool,
    /// Whether the existing value takes part.
    pub(crate) include_self: bool,
    /// Factor that gradients are multiplied by at the end. 1 if the elements are not gradients.
    pub(crate) factor: f64,
    /// The function that multiplies the output by the factor. `None`: the factor is 1, or another
    /// function applies it.
    pub(crate) multiply: Option<MultiplyFn>,
    /// The function that copies gradients and multiplies each copy by the factor. A scatter uses
    /// this function to copy its data to its output. A gather uses it to copy windows to its
    /// output. `None`: the factor is 1, or the operation copies no gradients.
    pub(crate) multiplying: Option<MultiplyingFn>,
    /// The row of the kernel table that a reduction uses. `None`: the operation has no reduction.
    row: Option<(DType, Reduction, InstructionSet)>,
}

impl Operation {
    /// Returns the operation that only moves elements.
    #[inline]
    pub(crate) fn moving(kernels: &'static Kernels) -> Self {
        Self {
            kernels,
            group: None,
            needs_groups: false,
            include_self: true,
            factor: 1.0,
            multiply: None,
            multiplying: None,
            row: None,
        }
    }
}

/// Functions that copy with streaming (non-temporal) stores. The functions copy only contiguous
/// runs (`Steps::UNIT`).
///
/// The stores are visible to every reader after the function returns. The stores are not ordered
/// with one another. The functions therefore have one condition in addition to the conditions of
/// [`RunsFn`]: no two jobs of a list share a `dst` element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    pub(crate) plain: RunsFn,
    /// Like `plain`, and also prefetches inside long source runs.
    pub(crate) prefetching: RunsFn,
}

/// All functions for one element type and one reduction. Fields with the note "For plain bytes" are
/// `None` for elements that are cloned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Whether `apply` replaces elements, as `copy` does.
    pub(crate) replaces: bool,
    /// Replaces `dst` elements by `src` elements.
    pub(crate) copy: RunsFn,
    /// `copy` with streaming (non-temporal) stores. For plain bytes. `None` on machines other than
    /// x86-64.
    pub(crate) stream: Option<Streams>,
    /// Replaces single elements. For plain bytes.
    pub(crate) copy_elements: Option<Elements>,
    /// Replaces each `dst` element by its reduction with the `src` element. Without a reduction,
    /// `apply` is `copy`.
    pub(crate) apply: RunsFn,
    /// `apply` for rows of one length. For plain bytes.
    pub(crate) apply_rows: Option<RowsFn>,
    /// Gathers rows: a [`RowsFn`] with the sides exchanged. The numbers address rows of `src`.
    /// The rows of `dst` are in order, and no list of sources is used. For plain bytes.
    pub(crate) gather_rows: Option<RowsFn>,
    /// Gathers single elements at offsets that were not checked. For plain bytes.
    pub(crate) gather_checked: Option<CheckedGather>,
    /// `apply` for single elements. For plain bytes.
    pub(crate) apply_elements: Option<Elements>,
    /// The function that reduces groups. `None`: the kernels have no reduction.
    pub(crate) group: Option<GroupFn>,
}
