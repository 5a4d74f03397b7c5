//! Reduces groups: all updates of one destination, then all updates of the next destination.
//!
//! A group is one destination and its updates (its sources). The destination and each source are
//! one run of elements. This module knows pointers, and the lists that state which sources belong
//! to a group. This module does not know element types or reductions.

#![allow(unsafe_code, reason = "dereferences raw pointers")]

use std::marker::PhantomData;

use super::dispatch::Kernel;
use super::fold::{Begin, ComputedIn, Finish};
use super::prefetch::{Distance, are_prefetched, prefetch_run};
use super::{Group, GroupRun, Steps};

/// Number of elements of a contiguous run that are reduced together, with their running values in
/// registers.
const WIDTH: usize = 32;

/// The `GroupFn` of the reduction `R`, for elements of type `T`. Running values (intermediate
/// results) have the type `C`. `F` computes the result of a destination from its final running
/// value.
pub(super) struct Fold<T, C, R, F>(PhantomData<(T, C, R, F)>);

impl<T, C, R, F> Kernel for Fold<T, C, R, F>
where
    T: ComputedIn<C>,
    C: Copy + Default,
    R: Begin<C>,
    F: Finish<C>,
{
    type Entry = Group;
    type Form<'a> = GroupRun<'a>;

    #[inline(always)]
    unsafe fn run<const AVX2: bool>(
        dst: *mut u8,
        src: *const u8,
        groups: &[Group],
        run: GroupRun<'_>,
    ) {
        let is_prefetched =
            run.steps == Steps::UNIT && are_prefetched(run.len.saturating_mul(size_of::<T>()));
        for (position, group) in groups.iter().enumerate() {
            if is_prefetched {
                prefetch_later(dst, src, &groups[position..], &run, size_of::<T>());
            }
            let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
            let mut done = 0;
            // SAFETY: the caller guarantees that the group's destination and each of its sources
            // have `run.len` initialised elements, valid for writes (destination) and reads. Each
            // call of `fold_part` processes elements whose positions are below `run.len`.
            unsafe {
                while run.steps == Steps::UNIT && run.len - done >= WIDTH {
                    let steps = Steps::UNIT;
                    let unit = GroupRun { steps, ..run };
                    Self::fold_part::<WIDTH>(dst, src, group, unit, done);
                    done += WIDTH;
                }
                while run.len - done >= 4 {
                    Self::fold_part::<4>(dst, src, group, run, done);
                    done += 4;
                }
                while done < run.len {
                    Self::fold_part::<1>(dst, src, group, run, done);
                    done += 1;
                }
            }
        }
    }
}

/// Prefetches destinations and sources of groups after the current group, which is `groups[0]`. For
/// each prefetch distance `d`, the function prefetches the destination of the group `groups[d]`. If
/// `run.sources` has a list of sources, the function also prefetches the sources that are `d`
/// positions after the sources of the current group in this list. Elements have `size` bytes.
///
/// One function serves all element types. Separate copies of this code in the loops of all types
/// were a twelfth of the library's code.
#[inline(never)]
fn prefetch_later(
    dst: *const u8,
    src: *const u8,
    groups: &[Group],
    run: &GroupRun<'_>,
    size: usize,
) {
    let bytes = run.len.saturating_mul(size);
    let at = |base: *const u8, elements: isize| {
        base.wrapping_offset(elements.wrapping_mul(size.cast_signed()))
    };
    for (distance, level) in Distance::of(bytes).each() {
        if let Some(later) = groups.get(distance) {
            prefetch_run(at(dst, later.dst), bytes, level);
        }
        for offset in (run.sources).later(groups[0].start..groups[0].end, distance) {
            prefetch_run(at(src, offset), bytes, level);
        }
    }
}

impl<T, C, R, F> Fold<T, C, R, F>
where
    T: ComputedIn<C>,
    C: Copy + Default,
    R: Begin<C>,
    F: Finish<C>,
{
    /// Computes `N` consecutive elements of the destination of `group`, from the position `first`
    /// of the destination's run on. The destination and each source of the group have a run of
    /// `run.len` elements. Each computed element combines the elements at the same position in the
    /// runs of all sources. If `run.include_self` is true, the reduction begins with `R::include`
    /// of the existing value.
    ///
    /// # Safety
    ///
    /// As for [`Fold`], and `first + N <= run.len`.
    #[inline(always)]
    unsafe fn fold_part<const N: usize>(
        dst: *mut T,
        src: *const T,
        group: &Group,
        run: GroupRun<'_>,
        first: usize,
    ) {
        let first = first.cast_signed();
        let dst = dst.wrapping_offset(group.dst + first * run.steps.dst);
        let src = src.wrapping_offset(first * run.steps.src);
        let updates = |position: usize| src.wrapping_offset(run.sources.offset(position));
        // SAFETY: the caller guarantees that the destination and each source have `run.len`
        // initialised elements, valid for reads. `first + at` is below `run.len`.
        let load = |side: *const T, at: usize, step: isize| unsafe {
            (*side.offset(at.cast_signed() * step)).computed()
        };
        let mut running = [C::default(); N];
        let mut next = group.start;
        if run.include_self {
            for (at, running) in running.iter_mut().enumerate() {
                *running = R::include(load(dst, at, run.steps.dst));
            }
        } else {
            // A group (a destination and its updates) has at least one update (`GroupFn`).
            let first = updates(next);
            for (at, running) in running.iter_mut().enumerate() {
                *running = R::first(load(first, at, run.steps.src));
            }
            next += 1;
        }
        for position in next..group.end {
            let update = updates(position);
            for (at, running) in running.iter_mut().enumerate() {
                *running = R::apply(*running, load(update, at, run.steps.src));
            }
        }
        let count = (group.end - group.start) as u64 + u64::from(run.include_self);
        for (at, running) in running.into_iter().enumerate() {
            let result = T::rounded(F::finish(running, count, run.factor));
            // SAFETY: the caller guarantees that the destination has `run.len` elements, valid for
            // writes. `first + at` is below `run.len`.
            unsafe { *dst.offset(at.cast_signed() * run.steps.dst) = result };
        }
    }
}
