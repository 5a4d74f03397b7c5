//! The choice of the kernel variants that are fast on a machine. All variants give the same bits.
//!
//! The module knows which variants were fast on machines of each vendor.
//! `docs/notes/2026-11-22-thresholds.md` lists most of the measurements. The module does not know
//! how a variant works.

use super::vendor::Vendor;

/// Thresholds and switches that select kernel variants. A switch is off if it is 0, and on if it is
/// any other number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variants {
    /// Bytes of the largest region whose windows are not prefetched. After the first tuples, the
    /// caches of a core hold the whole region, so prefetching costs more than it saves.
    pub(crate) near_bytes: u64,
    /// The value used instead of `near_bytes` for a scatter whose windows have at most one cache
    /// line. Prefetching short windows saves little, so this value may be larger than `near_bytes`.
    pub(crate) near_short_bytes: u64,
    /// Minimum bytes of all updates from which on the updates are assumed to come from memory. Rows
    /// of more than one cache line are then prefetched if they are not read in order, even if the
    /// region of their destinations is too small for prefetching.
    pub(crate) far_bytes: u64,
    /// Bytes of the smallest output that is written with streaming stores. Later steps of the call
    /// must access little or nothing of this output. Ordinary stores would evict the contents of
    /// the caches.
    pub(crate) stream_bytes: u64,
    /// Whether copies with streaming stores prefetch their source, with non-temporal prefetches.
    pub(crate) stream_prefetch: u64,
    /// Whether to prefetch the next block of indices, if indices are checked block by block. If the
    /// output is not divided into ranges (`ranged_tuples`), indices are prefetched only if the
    /// output exceeds the first-level cache.
    pub(crate) index_prefetch: u64,
    /// Whether streaming stores are used for new memory too. The system has just cleared the pages
    /// of new memory, so a part of the pages is in the caches.
    pub(crate) stream_new: u64,
    /// Minimum number of tuples of a list whose destination numbers are computed by several
    /// workers. If one worker applies all tuples of a shorter list, this worker is faster if it has
    /// computed the numbers itself.
    pub(crate) numbered_tuples: u64,
    /// Minimum number of tuples of a list of single elements that several workers apply without a
    /// plan. The output is divided into ranges, one for each worker. Each worker checks all
    /// indices, and applies the tuples whose destinations are in its range of the output.
    pub(crate) ranged_tuples: u64,
    /// Minimum bytes of an output that is divided into ranges, one for each worker
    /// (`ranged_tuples`). With a smaller output, one worker is as fast as several workers: the
    /// worker updates the output while it waits for the list to arrive from memory.
    pub(crate) ranged_bytes: u64,
}

impl Variants {
    /// The variants for vendors other than Intel and AMD. Small calls use these variants on every
    /// machine.
    pub(crate) const TYPICAL: Self = Self {
        near_bytes: 1 << 20,
        near_short_bytes: 4 << 20,
        far_bytes: 16 << 20,
        stream_bytes: 16 << 20,
        stream_prefetch: 1,
        index_prefetch: 0,
        stream_new: 1,
        numbered_tuples: 1 << 20,
        ranged_tuples: u64::MAX,
        ranged_bytes: 1 << 16,
    };

    /// Returns the variants that are typical of machines of a vendor.
    ///
    /// - `stream_prefetch`: the time of a streaming copy with prefetching is 1.4 to 1.6 times the
    ///   time without prefetching on Intel's Xeons, and 0.94 to 1.03 times on AMD's Zen 4. Other
    ///   vendors were not measured, and use prefetching.
    /// - `index_prefetch`, `stream_new` and `numbered_tuples` were measured only on Zen 4.
    /// - `ranged_tuples` and `ranged_bytes` were measured on Zen 5 with two workers. Two workers
    ///   were faster than one only if the list exceeded the caches and the output exceeded the
    ///   first-level cache. The values for Intel come from a prototype on a Xeon. Other vendors
    ///   were not measured, so one worker applies the whole list.
    pub(super) fn of(vendor: Vendor) -> Self {
        Self {
            stream_prefetch: u64::from(vendor != Vendor::Intel),
            index_prefetch: u64::from(vendor == Vendor::Amd),
            stream_new: u64::from(vendor != Vendor::Amd),
            numbered_tuples: match vendor {
                Vendor::Amd => 1 << 18,
                _ => Self::TYPICAL.numbered_tuples,
            },
            ranged_tuples: match vendor {
                Vendor::Amd | Vendor::Intel => 1 << 22,
                _ => Self::TYPICAL.ranged_tuples,
            },
            ranged_bytes: match vendor {
                Vendor::Intel => 1 << 12,
                _ => Self::TYPICAL.ranged_bytes,
            },
            ..Self::TYPICAL
        }
    }

    /// Returns the name of each threshold and switch, with a mutable reference to its value.
    pub(super) fn each_mut(&mut self) -> [(&'static str, &mut u64); 10] {
        [
            ("near_bytes", &mut self.near_bytes),
            ("near_short_bytes", &mut self.near_short_bytes),
            ("far_bytes", &mut self.far_bytes),
            ("stream_bytes", &mut self.stream_bytes),
            ("stream_prefetch", &mut self.stream_prefetch),
            ("index_prefetch", &mut self.index_prefetch),
            ("stream_new", &mut self.stream_new),
            ("numbered_tuples", &mut self.numbered_tuples),
            ("ranged_tuples", &mut self.ranged_tuples),
            ("ranged_bytes", &mut self.ranged_bytes),
        ]
    }

    /// Returns the variants for calls whose output is new memory. If
    /// [`stream_new`](Self::stream_new) is 0, the returned [`stream_bytes`](Self::stream_bytes) is
    /// `u64::MAX`, so that calls whose output is new memory use no streaming stores.
    pub(crate) fn of_new_memory(self) -> Self {
        match self.stream_new {
            0 => Self {
                stream_bytes: u64::MAX,
                ..self
            },
            _ => self,
        }
    }

    /// Whether a list of `tuples` single elements is long enough, and an output of `bytes` bytes
    /// large enough, that several workers apply the list together.
    pub(crate) fn share_list(&self, tuples: usize, bytes: usize) -> bool {
        tuples as u64 >= self.ranged_tuples && bytes as u64 >= self.ranged_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Variants, Vendor};

    #[test]
    fn new_memory_is_streamed_where_that_is_typical() {
        let amd = Variants::of(Vendor::Amd);
        assert_eq!(amd.of_new_memory().stream_bytes, u64::MAX);
        let intel = Variants::of(Vendor::Intel);
        assert_eq!(intel.of_new_memory().stream_bytes, intel.stream_bytes);
    }
}
