//! Applies a long list on several workers. All workers update the output, or one copy of it. Each
//! worker has its own range of elements.
//!
//! Every worker reads and checks all indices, in blocks, and applies only the tuples whose elements
//! are in its range. Each element gets its updates in order, from one worker. For every reduction,
//! the result therefore has the same bits as with one worker. Workers do not use numbers that
//! another worker has checked: foreign indices may change between the reads of two workers.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::kept::Kept;
use super::{CHECKED_TUPLES, LongList, MERGED_BYTES};
use crate::error::ScatterError;
use crate::exec::one_value::OneValue;
use crate::exec::part;
use crate::exec::scratch::Scratch;
use crate::exec::tasks::Workers;
use crate::kernel::filter::is_fast;
use crate::kernel::{Spread, prefetch_bytes};
use crate::plan::Block;
use crate::run::route::MAX_RANGES;

/// Number of sampled tuples. The sample is used to find ranges with about equal numbers of tuples.
const SAMPLED: usize = 256;

/// Maximum number of sampled tuples in one range. If a range has more sampled tuples, the elements
/// are not divided into ranges. Two workers are faster than one worker if each has half of the
/// tuples. A sixteenth of the sample is added for the error of the estimate, and because ranges
/// begin at whole cache lines.
const MAX_SHARE: usize = SAMPLED / 2 + SAMPLED / 16;

/// Alignment of the boundaries between ranges, in bytes. With this alignment, two workers never
/// write the same cache line, nor the same pair of cache lines that the processor prefetches
/// together.
const LINES_BYTES: usize = 128;

/// Exclusive ends of the ranges, in elements. Range `i` begins where range `i - 1` ends.
pub(super) struct Ranges {
    ends: [usize; MAX_RANGES],
    parts: usize,
}

impl Ranges {
    fn of(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[index]
    }
}

/// Address of the first element of memory that all workers use. Each worker writes only its own
/// range of elements.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: an address alone gives no access. Workers write disjoint ranges of elements.
unsafe impl Sync for Shared {}

impl Shared {
    fn at(&self, bytes: usize) -> *mut u8 {
        self.0.wrapping_add(bytes)
    }
}

impl LongList<'_> {
    /// Returns one range of elements for each worker. The result is `None` if one worker must apply
    /// the list (no other worker, no fast filter, or an invalid index in the sample). The result is
    /// also `None` if one worker is as fast (little work, or one range with most of the tuples).
    pub(super) fn ranges(&self, workers: &Workers<'_>) -> Option<Ranges> {
        let is_long = self.variants.share_list(self.flat.tuples, self.bytes);
        let has_values = self.is_one_value || matches!(self.operation.kernels.size, 1 | 2 | 4 | 8);
        let is_narrow = u32::try_from(self.flat.elements).is_ok();
        let has_filter = has_values && is_narrow && is_fast(self.set);
        if !(is_long && has_filter) || self.flat.tuples < SAMPLED {
            return None;
        }
        let parts = workers.parts().min(MAX_RANGES);
        if parts == 1 {
            return None;
        }
        let mut sample = self.sample()?;
        sample.sort_unstable();
        let ranges = self.cut(&sample, parts);
        let tuples_before = |end: usize| sample.partition_point(|&number| number < end);
        let largest = (0..parts)
            .map(|index| ranges.of(index))
            .map(|range| tuples_before(range.end) - tuples_before(range.start))
            .max()?;
        (largest <= MAX_SHARE).then_some(ranges)
    }

    /// Returns the element numbers of [`SAMPLED`] tuples at about equal distances in the list.
    /// `None` if an index of these tuples is invalid.
    fn sample(&self) -> Option<[usize; SAMPLED]> {
        let mut numbers = [0; SAMPLED];
        for (at, number) in numbers.iter_mut().enumerate() {
            let tuple = part(self.flat.tuples, SAMPLED, at).start;
            let block = self
                .tuples
                .resolve_block(self.set, tuple, &mut [0])
                .ok()?
                .first()?;
            *number = usize::try_from(block).ok()?;
        }
        Some(numbers)
    }

    /// Divides the elements into `parts` ranges with about equal numbers of sampled tuples.
    /// `sample` is sorted.
    fn cut(&self, sample: &[usize; SAMPLED], parts: usize) -> Ranges {
        let size = self.operation.kernels.size;
        // A copy begins at a multiple of `LINES_BYTES`. An output that is updated directly may
        // begin at any address.
        let first = match self.is_disposable {
            true => self.buffers.output.addr() % LINES_BYTES,
            false => 0,
        };
        let mut ends = [self.flat.elements; MAX_RANGES];
        for (index, end) in ends[..parts - 1].iter_mut().enumerate() {
            let number = sample[part(SAMPLED, parts, index + 1).start];
            let bytes = (first + number * size).next_multiple_of(LINES_BYTES) - first;
            *end = (bytes / size).min(self.flat.elements);
        }
        Ranges { ends, parts }
    }

    /// Checks the tuples and applies them to the output, or to one copy that is written to the
    /// output if all indices are valid. Returns `false` if there is no memory for the copy.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`LongList::run`] requires.
    #[inline(never)]
    pub(super) unsafe fn run_in_ranges(
        &self,
        ranges: &Ranges,
        workers: &Workers<'_>,
    ) -> Result<bool, ScatterError> {
        let output = Shared(self.buffers.output.cast());
        if self.is_disposable {
            // SAFETY: the caller guarantees that the output is contiguous and valid for reads and
            // writes. The output already holds the data, as `may_write_unchecked` requires.
            return unsafe { self.apply_ranges(output, None, ranges, workers) }.map(|()| true);
        }
        let words = (self.bytes + LINES_BYTES).div_ceil(size_of::<u64>());
        let Ok(mut memory) = <u64 as Scratch>::take(words) else {
            return Ok(false);
        };
        let first: *mut u8 = memory.as_mut_ptr().cast();
        let copy = Shared(first.wrapping_add(first.align_offset(LINES_BYTES)));
        let data = self.buffers.data.unwrap_or(output.0);
        // SAFETY: the memory has `LINES_BYTES` bytes more than the output, so the aligned copy has
        // room for all elements. The caller guarantees that the data is contiguous and valid for
        // reads.
        let result = unsafe { self.apply_ranges(copy, Some(data), ranges, workers) };
        let result = result.and_then(|()| {
            let tasks = match self.bytes {
                MERGED_BYTES.. => ranges.parts,
                _ => 1,
            };
            workers.run(tasks, &|index| {
                let bytes = part(self.bytes, tasks, index);
                let (from, to) = (copy.at(bytes.start), output.at(bytes.start));
                // SAFETY: the copy and the output both have the bytes of the range `bytes`. Tasks
                // have disjoint ranges of bytes.
                unsafe { from.copy_to_nonoverlapping(to, bytes.len()) };
            })
        });
        Scratch::put_back(memory);
        result.map(|()| true)
    }

    /// Applies the tuples to `copy`, with one task for each range. If there is `data`, a task first
    /// copies its range of `data` to `copy`. Each task stops at the first block with an invalid
    /// index. Returns the error of the first invalid index.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`LongList::run`] requires, with `copy` in place of the output.
    /// If `data` is `None`, `copy` is initialised. If `data` is set, `data` and `copy` have an
    /// equal number of elements.
    unsafe fn apply_ranges(
        &self,
        copy: Shared,
        data: Option<*const u8>,
        ranges: &Ranges,
        workers: &Workers<'_>,
    ) -> Result<(), ScatterError> {
        let size = self.operation.kernels.size;
        let data = data.map(|data| Shared(data.cast_mut()));
        let error = Mutex::new(None);
        workers.run(ranges.parts, &|index| {
            let range = ranges.of(index);
            let bytes = range.start * size..range.end * size;
            if let Some(data) = data {
                // SAFETY: `data` and `copy` both have the bytes of the range `bytes`. Only this
                // task writes these bytes of `copy`.
                unsafe {
                    let data = data.at(bytes.start).cast_const();
                    data.copy_to_nonoverlapping(copy.at(bytes.start), bytes.len());
                }
            }
            let range = range.start as u64..range.end as u64;
            // SAFETY: the elements of the range in `copy` are initialised now, and only this task
            // uses them. The caller guarantees that the updates of all tuples can be read.
            if let Err(found) = unsafe { self.apply_range(copy.at(0), &range) } {
                // All tasks find the same error, unless other code changes the indices meanwhile.
                *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            }
        })?;
        let error = error.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }

    /// Applies the tuples whose elements are in `range`. Checks all tuples of the list, and stops
    /// at the first block with an invalid index.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`LongList::run`] requires, with `copy` in place of the output.
    /// The elements of `range` in `copy` are initialised, and only this call uses these elements.
    unsafe fn apply_range(&self, copy: *mut u8, range: &Range<u64>) -> Result<(), ScatterError> {
        // SAFETY: the caller guarantees that the elements of `range` in `copy` are initialised,
        // that only this call uses these elements, and that the updates of all tuples can be read.
        unsafe {
            match (self.is_one_value, self.operation.kernels.size) {
                (true, _) => self.apply_range_of_one_value(copy, range),
                (_, 1) => self.apply_range_of_values::<1>(copy, range),
                (_, 2) => self.apply_range_of_values::<2>(copy, range),
                (_, 4) => self.apply_range_of_values::<4>(copy, range),
                _ => self.apply_range_of_values::<8>(copy, range),
            }
        }
    }

    /// Implements [`Self::apply_range`] for updates of `W` bytes.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_range`] requires. Each update has `W` bytes.
    #[inline(never)]
    unsafe fn apply_range_of_values<const W: usize>(
        &self,
        copy: *mut u8,
        range: &Range<u64>,
    ) -> Result<(), ScatterError> {
        debug_assert_eq!(W, self.operation.kernels.size, "bytes of an update");
        let mut kept = Kept::new();
        let updates = self.buffers.source.cast::<[u8; W]>();
        self.each_block(0..self.flat.tuples, |first, block| {
            let updates = updates.wrapping_add(first);
            if self.variants.index_prefetch != 0 {
                let next = first + CHECKED_TUPLES;
                self.tuples.prefetch(next..next + CHECKED_TUPLES);
                prefetch_bytes(
                    updates.wrapping_add(CHECKED_TUPLES).cast(),
                    CHECKED_TUPLES * W,
                );
            }
            // SAFETY: there is one update for each tuple. The filter of `kept` selects only
            // destination numbers in `range`. The caller guarantees that the elements of `range` in
            // `copy` are initialised, and that only this call uses these elements.
            unsafe {
                match block {
                    Block::Narrow(numbers) | Block::Skipping(numbers) => {
                        kept.apply_values(self, copy, (numbers, updates), range);
                    }
                    Block::Wide(numbers) => {
                        kept.apply_values(self, copy, (numbers, updates), range);
                    }
                }
            }
        })
    }

    /// Implements [`Self::apply_range`] for updates that are all one value.
    ///
    /// # Safety
    ///
    /// The caller guarantees what [`Self::apply_range`] requires. There is at least one update.
    #[inline(never)]
    unsafe fn apply_range_of_one_value(
        &self,
        copy: *mut u8,
        range: &Range<u64>,
    ) -> Result<(), ScatterError> {
        let mut kept = Kept::new();
        let (updates, size) = (self.buffers.source, self.operation.kernels.size);
        // SAFETY: the caller guarantees that an update exists and can be read. Element types that
        // have a kernel for single elements are plain bytes.
        let one = unsafe { OneValue::new(updates, size, CHECKED_TUPLES) };
        self.each_block(0..self.flat.tuples, |_, block| {
            let spread = Spread::NEIGHBOURS;
            // SAFETY: the filter of `kept` selects only destination numbers in `range`. The caller
            // guarantees that the elements of `range` in `copy` are initialised, and that only this
            // call uses these elements.
            unsafe {
                let numbers = match block {
                    Block::Narrow(numbers) | Block::Skipping(numbers) => {
                        kept.numbers(self, numbers, range)
                    }
                    Block::Wide(numbers) => kept.numbers(self, numbers, range),
                };
                one.apply(self.kernel.u32, copy, numbers, spread);
            }
        })
    }
}
