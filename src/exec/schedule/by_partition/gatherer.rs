//! Moves entries to partitions. Entries of a partition are first gathered, that is, stored in a
//! small buffer. Then 32 gathered entries of one partition are written together to the destination
//! buffer, which has all partitions.
//!
//! Entries of one kind are destination numbers, values or positions. A place is the position of an
//! entry in the destination buffer. A task moves entries to consecutive places in each of up to 512
//! partitions. Storing each entry directly in the destination buffer would contend for entries of
//! the translation buffer (TLB) and for sets of the first-level cache. The time of such a store
//! depended on the number of partitions and on the distances between the partitions. The time
//! varied by a factor of up to three (bare loops on a Zen 5 and on a Xeon). A small buffer that
//! fits the second-level cache does not have these conflicts.
//!
//! A line is [`GATHERED`] consecutive places (positions in the destination buffer) of one
//! partition. The first place of a line is a multiple of [`GATHERED`]. Stores of full lines of at
//! least 64 bytes bypass the caches, because the partitions are read only after all entries are
//! moved.
//!
//! This module knows partitions and places (positions of entries in the destination buffer). This
//! module does not know what an entry means.

use bytemuck::Pod;

use super::super::super::shared_slots::SharedSlots;
use crate::memory::CacheLine;

/// Number of entries of one partition that are first gathered in a small buffer and then written
/// together to the destination buffer.
pub(super) const GATHERED: usize = 32;

/// Ways to treat the entries of one kind (destination numbers, values or positions): [`Gatherer`]
/// moves the entries to partitions, [`Discard`] ignores the entries.
pub(super) trait Gather<T> {
    /// Gathers `value`: stores `value` in the small buffer. `value` belongs in `partition`, at the
    /// position `place` of the destination buffer. Entries of a partition are gathered in ascending
    /// order of these positions, without a gap, from the task's first position on.
    fn gather(&mut self, partition: usize, place: u32, value: T);

    /// Writes the gathered entries of one line of `partition` from the small buffer to the
    /// destination buffer. A line is [`GATHERED`] consecutive positions (places) in the destination
    /// buffer. `place` is the last place of the line (see [`ends_line`]).
    ///
    /// # Safety
    ///
    /// The entry for `place` is the last entry that was gathered for `partition`. The destination
    /// buffer has the places of all gathered entries, and no other task writes to these places.
    #[expect(unsafe_code, reason = "parts write to separate places")]
    unsafe fn write_line(&self, partition: usize, place: u32);

    /// Writes the remaining gathered entries (lines of fewer than [`GATHERED`] entries) from the
    /// small buffer to the destination buffer. For each partition, `next` has the place (the
    /// position in the destination buffer) after the last gathered entry.
    ///
    /// # Safety
    ///
    /// The destination buffer has the places of all gathered entries, and no other task writes to
    /// these places.
    #[expect(unsafe_code, reason = "parts write to separate places")]
    unsafe fn finish(self, next: &[u32]);
}

/// A [`Gather`] that ignores all entries.
pub(super) struct Discard;

#[expect(unsafe_code, reason = "implements a trait for unsafe code")]
impl<T> Gather<T> for Discard {
    fn gather(&mut self, _: usize, _: u32, _: T) {}
    unsafe fn write_line(&self, _: usize, _: u32) {}
    unsafe fn finish(self, _: &[u32]) {}
}

/// A [`Gather`] that moves entries to their partitions. All entries belong to one task and are of
/// one kind: destination numbers, values or positions.
pub(super) struct Gatherer<'g, T> {
    /// The small buffer: one line of [`GATHERED`] entries for each partition.
    gathered: &'g mut [[T; GATHERED]],
    /// First place (position in the destination buffer) of the task in each partition.
    first: &'g [u32],
    /// The destination buffer.
    moved: &'g SharedSlots<'g, T>,
}

impl<'g, T: Pod> Gatherer<'g, T> {
    /// Makes the gatherer of one task. For each partition, `first` has the first position (place)
    /// of the task in the destination buffer `moved`. `memory` has [`bytes_of_task`] bytes, and
    /// only this task uses `memory`.
    pub(super) fn new(
        memory: &'g mut [CacheLine],
        first: &'g [u32],
        moved: &'g SharedSlots<'g, T>,
    ) -> Self {
        let lines = bytemuck::cast_slice_mut(memory).as_chunks_mut().0;
        Self {
            gathered: &mut lines[..first.len()],
            first,
            moved,
        }
    }
}

impl<T: Pod> Gather<T> for Gatherer<'_, T> {
    #[inline(always)]
    fn gather(&mut self, partition: usize, place: u32, value: T) {
        self.gathered[partition][place as usize % GATHERED] = value;
    }

    #[expect(unsafe_code, reason = "parts write to separate places")]
    #[inline(always)]
    unsafe fn write_line(&self, partition: usize, place: u32) {
        let start = place as usize / GATHERED * GATHERED;
        let line = &self.gathered[partition];
        let skipped = (self.first[partition] as usize).saturating_sub(start);
        // SAFETY: the caller guarantees that the destination buffer has the places (positions in
        // this buffer) of all gathered entries, and that no other task writes to these places. An
        // entry was gathered for each place that is written here: from the larger of `start` and
        // the first place of the task, to `place`. The destination buffer begins at a cache line,
        // and `start` is a multiple of `GATHERED`.
        unsafe {
            if skipped == 0 {
                self.moved.stream(start, line);
            } else {
                self.moved.copy(start + skipped, &line[skipped..]);
            }
        }
    }

    #[expect(unsafe_code, reason = "parts write to separate places")]
    unsafe fn finish(self, next: &[u32]) {
        for (partition, (&first, &next)) in self.first.iter().zip(next).enumerate() {
            let (first, next) = (first as usize, next as usize);
            let start = first.max(next / GATHERED * GATHERED);
            let entries = &self.gathered[partition][start % GATHERED..][..next - start];
            // SAFETY: an entry was gathered for each place (position in the destination buffer)
            // from `start` to `next` (excluded). The caller guarantees that the destination buffer
            // has these places, and that no other task writes to these places.
            unsafe { self.moved.copy(start, entries) };
        }
        crate::kernel::fence();
    }
}

/// Whether `place` (a position in the destination buffer) is the last place of a line. A line is
/// [`GATHERED`] consecutive places.
#[inline(always)]
pub(super) fn ends_line(place: u32) -> bool {
    place as usize % GATHERED == GATHERED - 1
}

/// Returns the bytes of the small buffer in which one task gathers entries of `size` bytes.
pub(super) fn bytes_of_task(partitions: usize, size: usize) -> usize {
    partitions * GATHERED * size
}
