//! The innermost loops: what happens to runs of elements, and nothing else.
//!
//! Knows slices of elements, reductions and instruction sets. Where those
//! slices lie, in what order they come and who works on them is decided
//! above: a kernel is handed [`Job`]s and goes through them one by one.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod copy;
mod dispatch;
mod elements;
mod fold;
mod gradient;
mod groups;
mod half;
pub(crate) mod identity;
mod isa;
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
pub use isa::InstructionSet;
pub(crate) use prefetch::{flush, prefetch_bytes};

use std::ops::Range;

use crate::element::DType;
use crate::reduction::Reduction;

/// One run of elements to move or reduce. Positions and length are counted in
/// elements, from the two base addresses that go with the jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// First element written.
    pub(crate) dst: isize,
    /// First element read.
    pub(crate) src: isize,
    /// Number of elements.
    pub(crate) len: usize,
}

/// Distance, in elements, between neighbours of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) dst: isize,
    pub(crate) src: isize,
}

impl Steps {
    /// Both sides contiguous.
    pub(crate) const UNIT: Self = Self { dst: 1, src: 1 };
}

/// Goes through `jobs` in order. For each, and for `i` in `0..job.len`, the
/// element `dst + job.dst + i * steps.dst` is combined with (or replaced by)
/// the element `src + job.src + i * steps.src`.
///
/// # Safety
///
/// - For every job all those elements lie in allocations that are valid for
///   writes (`dst`) and reads (`src`), aligned for the element type.
/// - Nothing else reads or writes the `dst` elements during the call, and
///   none of them is among the `src` elements.
/// - `src` elements are initialised; so are `dst` elements unless the
///   function only moves plain bytes.
pub(crate) type RunsFn = unsafe fn(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps);

/// Where single elements lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// What offsets are multiplied by.
    pub(crate) scale: isize,
    /// Whether all of them are in a cache, so that none is worth prefetching.
    /// Right or wrong, it changes no bit.
    pub(crate) is_near: bool,
}

impl Spread {
    /// Neighbours in a cache.
    pub(crate) const NEIGHBOURS: Self = Self {
        scale: 1,
        is_near: true,
    };
}

/// Single elements: for each `i` in order, the element
/// `dst + offsets[i] * scale` is combined with (or replaced by) `src + i`.
///
/// # Safety
///
/// As for [`RunsFn`], with one element a job.
pub(crate) type ElementsFn<O> =
    unsafe fn(dst: *mut u8, src: *const u8, offsets: &[O], spread: Spread);

/// [`ElementsFn`] for both widths of offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) u32: ElementsFn<u32>,
    pub(crate) u64: ElementsFn<u64>,
}

/// Single elements, gathered at offsets that may be wrong: for each `i` below `count`,
/// `dst + i` becomes what `src + offsets[i]` is, or `src` where that offset is wrong.
/// Returns whether none was.
///
/// # Safety
///
/// Aligned offsets, of 32 or 64 bits, can be read from `offsets` on, `count` of them, even
/// while others write them; from `src` as many elements as [`GatherBounds::below`] says; from
/// `dst` on `count` elements are the caller's alone.
pub(crate) type CheckedGatherFn = unsafe fn(
    dst: *mut u8,
    src: *const u8,
    offsets: *const u8,
    count: usize,
    bounds: GatherBounds,
) -> bool;

/// [`CheckedGatherFn`] for both widths of offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedGather {
    pub(crate) u32: CheckedGatherFn,
    pub(crate) u64: CheckedGatherFn,
}

/// What [`CheckedGatherFn`] holds offsets against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherBounds {
    /// Right offsets are below this.
    pub(crate) below: usize,
    /// Whether elements are in a cache soon, so that prefetching them costs more than it
    /// gains.
    pub(crate) is_near: bool,
}

/// Rows of one length: for each `i` in order, the `len` neighbours from
/// `dst + numbers[i] * unit` on are combined with (or replaced by) those from
/// `src + sources[i] * step` on.
///
/// # Safety
///
/// As for [`RunsFn`], with one contiguous run a number.
pub(crate) type RowsFn =
    unsafe fn(dst: *mut u8, src: *const u8, numbers: &[u32], form: RowsForm<'_>);

/// How [`RowsFn`] finds its rows, in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsForm<'a> {
    /// Distance from one destination number to the next.
    pub(crate) unit: isize,
    /// Distance from the source of one row to that of the next.
    pub(crate) step: isize,
    /// Elements of a row.
    pub(crate) len: usize,
    /// One for every number; without a list row `i` has source `i`.
    pub(crate) sources: Option<&'a [u32]>,
    /// Whether they all lie so close together that a cache holds them:
    /// prefetching would cost more than it gains.
    pub(crate) is_near: bool,
    /// Whether rows of the other side are prefetched where they are listed.
    pub(crate) prefetches_sources: bool,
}

/// Combines the updates of one destination after another, group by group. For
/// each group in order, the run around `dst + group.dst` is combined with (or,
/// without itself, replaced by the combination of) the runs around
/// `src + run.sources.offset(i)` for `i` in `group.start..group.end`, in order.
///
/// # Safety
///
/// As for [`RunsFn`], with a job for each group and source; every group has a
/// source, and all elements are initialised.
pub(crate) type GroupFn =
    unsafe fn(dst: *mut u8, src: *const u8, groups: &[Group], run: GroupRun<'_>);

/// A destination and its sources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    /// First element written.
    pub(crate) dst: isize,
    /// Positions among the sources.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Where the runs of sources lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    /// Source `i` lies `(list[i] & mask) * step` elements from the base;
    /// without a list `i * step`.
    pub(crate) list: Option<&'a [u64]>,
    pub(crate) mask: u64,
    pub(crate) step: isize,
}

impl Sources<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product with the step lies in an allocation"
    )]
    #[inline(always)]
    fn offset(self, position: usize) -> isize {
        let number = match self.list {
            Some(list) => (list[position] & self.mask).cast_signed() as isize,
            None => position.cast_signed(),
        };
        number.wrapping_mul(self.step)
    }

    /// Offsets of the sources that come `distance` after these positions, where sources are
    /// listed. The machine prefetches sources in order by itself.
    #[inline(always)]
    fn later(self, positions: Range<usize>, distance: usize) -> impl Iterator<Item = isize> {
        let listed = self.list.map_or(0, <[u64]>::len);
        (positions.start + distance..(positions.end + distance).min(listed))
            .map(move |position| self.offset(position))
    }
}

/// The runs of groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRun<'a> {
    pub(crate) sources: Sources<'a>,
    /// Elements of a run.
    pub(crate) len: usize,
    pub(crate) steps: Steps,
    /// Whether the value that is there takes part.
    pub(crate) include_self: bool,
    /// What gradients are multiplied by at last.
    pub(crate) factor: f64,
}

/// Multiplies `len` elements, `step` apart, by a factor.
///
/// # Safety
///
/// They are initialised and aligned elements of the function's type, and nothing else reads or
/// writes them during the call.
pub(crate) type MultiplyFn = unsafe fn(dst: *mut u8, len: usize, step: isize, factor: f64);

/// A [`RunsFn`] that replaces elements by others multiplied by a factor.
pub(crate) type MultiplyingFn =
    unsafe fn(dst: *mut u8, src: *const u8, jobs: &[Job], steps: Steps, factor: f64);

/// Goes through groups in order, and gives each value that took part in the result of a
/// destination its share of the gradient of that.
///
/// # Safety
///
/// - Around its base address every tensor has, at the offset of each group or of each of
///   its sources, `len` initialised elements of the function's type, its step apart; those
///   of gradients that are written are aligned and may be written.
/// - Nothing else reads or writes what is written meanwhile, and it lies apart from all
///   that is read, but that `grad_data` may be where `grad_output` is.
/// - Every group has a source.
/// - Products and ties have `updates`, and `data` where it takes part.
pub(crate) type GradientFn =
    unsafe fn(tensors: &GradientTensors<'_>, groups: &[GradientGroup], shares: &Shares);

/// The runs of a tensor of which each group has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    /// Written only where it is that of a gradient.
    pub(crate) base: *mut u8,
    /// From one element of a run to the next.
    pub(crate) step: isize,
}

/// The runs of a tensor of which each source has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerTuple<'a> {
    pub(crate) run: Numbered,
    pub(crate) sources: Sources<'a>,
}

/// The tensors of a gradient, with runs of `len` elements; `None` where there is none or
/// it is not wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GradientTensors<'a> {
    pub(crate) len: usize,
    pub(crate) grad_output: Numbered,
    pub(crate) data: Option<Numbered>,
    pub(crate) updates: Option<PerTuple<'a>>,
    pub(crate) grad_data: Option<Numbered>,
    pub(crate) grad_updates: Option<PerTuple<'a>>,
}

/// Where the runs of one destination lie, and which sources it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GradientGroup {
    pub(crate) grad_output: isize,
    pub(crate) data: isize,
    pub(crate) grad_data: isize,
    /// Positions among the sources.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Who has a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Whether the value that is there has one.
    pub(crate) include_self: bool,
    /// Of updates, the last alone.
    pub(crate) last_only: bool,
    /// Whether all have equal parts of one.
    pub(crate) divides: bool,
    /// Whether the smallest values have it, and not the largest.
    pub(crate) smallest: bool,
    /// What gradients are multiplied by at last: that of data, and those of updates
    /// where all have the same.
    pub(crate) factor: f64,
    pub(crate) factor_of_updates: f64,
}

/// What a call does to elements: the kernels that do it, and what goes beside
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) kernels: &'static Kernels,
    /// `None` where nothing is reduced.
    pub(crate) group: Option<GroupFn>,
    /// Whether only `group` gives the result, as sums are divided, kept in a
    /// wider type or begin with the first update.
    pub(crate) needs_groups: bool,
    pub(crate) include_self: bool,
    /// What gradients are multiplied by at last, 1 for all else; and the function that
    /// does so in the output, where groups do not.
    pub(crate) factor: f64,
    pub(crate) multiply: Option<MultiplyFn>,
    /// Copies gradients, of data or to the result of a gather, and multiplies them by the
    /// factor; `None` where it is 1.
    pub(crate) multiplying: Option<MultiplyingFn>,
    /// `None` where elements are only moved.
    serves: Option<(DType, Reduction, InstructionSet)>,
}

impl Operation {
    /// Elements that are only moved.
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
            serves: None,
        }
    }
}

/// A copy with streaming (non-temporal) stores: of contiguous runs only (`Steps::UNIT`).
/// Its stores are visible to every reader once it has returned, but not ordered with one
/// another: beside the contract of [`RunsFn`], no two jobs of a list have a `dst` element
/// in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    pub(crate) plain: RunsFn,
    /// The same, with sources prefetched.
    pub(crate) prefetching: RunsFn,
}

/// All functions that serve one element type and one reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Whether `apply` replaces elements, as `copy` does.
    pub(crate) replaces: bool,
    /// Replaces `dst` elements with `src` elements.
    pub(crate) copy: RunsFn,
    /// `copy` with streaming (non-temporal) stores, where the machine has them;
    /// `None` where it has none or elements are not plain bytes.
    pub(crate) stream: Option<Streams>,
    /// Replaces single elements; `None` where elements are not plain bytes.
    pub(crate) copy_elements: Option<Elements>,
    /// Combines `dst` elements with `src` elements (`copy` where there is no
    /// reduction).
    pub(crate) apply: RunsFn,
    /// `apply` for rows of one length; `None` as for `copy_elements`.
    pub(crate) apply_rows: Option<RowsFn>,
    /// Gathers rows: [`RowsFn`] with the sides exchanged, `src` addressed by
    /// the numbers, and the rows of `dst` in order: no sources are listed.
    /// `None` as for `copy_elements`.
    pub(crate) gather_rows: Option<RowsFn>,
    /// Gathers single elements at offsets that have not been checked. `None` as for
    /// `copy_elements`.
    pub(crate) gather_checked: Option<CheckedGather>,
    /// `apply` for single elements; `None` as for `copy_elements`.
    pub(crate) apply_elements: Option<Elements>,
    /// `apply` for groups; `None` where elements are only moved.
    pub(crate) group: Option<GroupFn>,
}
