//! All the updates of one destination at a time, group by group.
//!
//! Knows lists of sources and pointers. Knows nothing of any one type or
//! reduction.

#![allow(unsafe_code, reason = "goes to addresses")]

use super::fold::Fold;
use super::prefetch::{Distance, are_prefetched, prefetch_run};
use super::{Group, GroupRun, Sources, Steps};

/// Elements of a run whose running values are in registers together.
const WIDTH: usize = 32;

/// The `GroupFn` of a fold.
///
/// # Safety
///
/// As for `GroupFn`, for elements of type `T`.
#[inline(always)]
pub(super) unsafe fn fold<T, F>(
    dst: *mut u8,
    src: *const u8,
    groups: &[Group],
    sources: Sources<'_>,
    run: GroupRun,
) where
    T: Copy,
    F: Fold<T>,
{
    let is_prefetched =
        run.steps == Steps::UNIT && are_prefetched(run.len.saturating_mul(size_of::<T>()));
    for (position, group) in groups.iter().enumerate() {
        if is_prefetched {
            prefetch_later(
                dst,
                src,
                &groups[position..],
                sources,
                run.len,
                size_of::<T>(),
            );
        }
        let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
        let mut done = 0;
        // SAFETY: the caller vouches for `run.len` elements of the group's
        // destination and of each of its sources.
        unsafe {
            while run.steps == Steps::UNIT && run.len - done >= WIDTH {
                let unit = GroupRun {
                    steps: Steps::UNIT,
                    ..run
                };
                fold_part::<T, F, WIDTH>(dst, src, group, sources, unit, done);
                done += WIDTH;
            }
            while run.len - done >= 4 {
                fold_part::<T, F, 4>(dst, src, group, sources, run, done);
                done += 4;
            }
            while done < run.len {
                fold_part::<T, F, 1>(dst, src, group, sources, run, done);
                done += 1;
            }
        }
    }
}

/// Prefetches the destinations of groups that come up after the first, and as
/// many later sources as that one has, of elements of `size` bytes. A function for all
/// types, as copies of it in their loops were a twelfth of the library.
#[inline(never)]
fn prefetch_later(
    dst: *const u8,
    src: *const u8,
    groups: &[Group],
    sources: Sources<'_>,
    len: usize,
    size: usize,
) {
    let bytes = len.saturating_mul(size);
    let at = |base: *const u8, elements: isize| {
        base.wrapping_offset(elements.wrapping_mul(size.cast_signed()))
    };
    for (distance, level) in Distance::of(bytes).each() {
        if let Some(later) = groups.get(distance) {
            prefetch_run(at(dst, later.dst), bytes, level);
        }
        let Some(list) = sources.list else {
            continue;
        };
        for position in groups[0].start + distance..(groups[0].end + distance).min(list.len()) {
            prefetch_run(at(src, sources.offset(position)), bytes, level);
        }
    }
}

/// `N` elements of a run, from `first` on.
///
/// # Safety
///
/// As for [`fold`], and the run has those elements.
#[inline(always)]
unsafe fn fold_part<T, F, const N: usize>(
    dst: *mut T,
    src: *const T,
    group: &Group,
    sources: Sources<'_>,
    run: GroupRun,
    first: usize,
) where
    T: Copy,
    F: Fold<T>,
{
    let first = first.cast_signed();
    let dst = dst.wrapping_offset(group.dst + first * run.steps.dst);
    let src = src.wrapping_offset(first * run.steps.src);
    let mut running = [F::Running::default(); N];
    let mut next = group.start;
    if run.include_self {
        for (at, running) in running.iter_mut().enumerate() {
            // SAFETY: the caller vouches for the element.
            let current = unsafe { *dst.offset(at.cast_signed() * run.steps.dst) };
            *running = F::include(current);
        }
    } else {
        let src = src.wrapping_offset(sources.offset(next));
        for (at, running) in running.iter_mut().enumerate() {
            // SAFETY: as above; a group has at least one source.
            let update = unsafe { *src.offset(at.cast_signed() * run.steps.src) };
            *running = F::first(update);
        }
        next += 1;
    }
    for position in next..group.end {
        let src = src.wrapping_offset(sources.offset(position));
        for (at, running) in running.iter_mut().enumerate() {
            // SAFETY: as above.
            let update = unsafe { *src.offset(at.cast_signed() * run.steps.src) };
            *running = F::step(*running, update);
        }
    }
    let count = (group.end - group.start) as u64 + u64::from(run.include_self);
    for (at, running) in running.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe {
            *dst.offset(at.cast_signed() * run.steps.dst) = F::finish(running, count, run.factor)
        };
    }
}

/// [`fold`], compiled for AVX2 and F16C.
///
/// # Safety
///
/// As for [`fold`], and the machine has both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn fold_avx2<T, F>(
    dst: *mut u8,
    src: *const u8,
    groups: &[Group],
    sources: Sources<'_>,
    run: GroupRun,
) where
    T: Copy,
    F: Fold<T>,
{
    // SAFETY: handed on as it is.
    unsafe { fold::<T, F>(dst, src, groups, sources, run) }
}
