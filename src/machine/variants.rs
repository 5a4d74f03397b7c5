//! The variants of kernels that are fast on a machine. All variants give the same bits.
//!
//! The module knows the measurements on machines of each vendor (`benches/machines`). The module
//! does not know how a variant works.

use super::vendor::Vendor;

/// Thresholds and switches of the variants. A switch is 0 (off) or another number (on).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variants {
    /// Bytes of the largest region whose windows are not prefetched. The caches of a core hold the
    /// region after the first tuples, so that prefetching costs more than it gains.
    pub(crate) near_bytes: u64,
    /// Bytes of the largest region whose windows are not prefetched, for windows of at most one
    /// cache line. This limit may exceed `near_bytes`, because prefetching such short windows gains
    /// little even in a region that is larger than `near_bytes`.
    pub(crate) near_short_bytes: u64,
    /// Bytes of the smallest list of updates that comes from memory. Rows of such a list are
    /// prefetched if they are not read in order, even if their destinations are near.
    pub(crate) far_bytes: u64,
    /// Bytes of the smallest output that is written with streaming stores if no later step of the
    /// call accesses it. Ordinary stores would evict the contents of the caches.
    pub(crate) stream_bytes: u64,
    /// Whether streaming copies prefetch their source, bypassing the caches as well.
    pub(crate) stream_prefetch: u64,
    /// Whether to prefetch indices that are checked block by block. Applies only if the elements
    /// that the kernel accesses between the blocks exceed the first-level cache.
    pub(crate) index_prefetch: u64,
    /// Whether new memory is also written with streaming stores. The system has just cleared the
    /// pages of new memory, so a part of them is in the caches.
    pub(crate) stream_new: u64,
    /// Tuples of the shortest list whose indices are numbered by several workers. In shorter lists
    /// a worker that applies all tuples is faster if it has numbered them itself.
    pub(crate) numbered_tuples: u64,
    /// Tuples of the shortest list of single elements that several workers apply without a plan,
    /// each to a range of the elements. Each worker then checks all indices.
    pub(crate) ranged_tuples: u64,
    /// Bytes of the smallest output whose elements are divided in this way. One worker updates a
    /// smaller output while it waits for the list.
    pub(crate) ranged_bytes: u64,
}

impl Variants {
    /// The variants of a machine of unknown properties.
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
    /// A streaming copy with prefetching takes 1.4 to 1.6 times as long on Intel's Xeons, and 0.94
    /// to 1.03 times as long on AMD's Zen 4. Other vendors were not measured, and they prefetch.
    /// The other differences were measured only on Zen 4: prefetching of indices, new memory, and
    /// lists of fewer than a million tuples. Ranges of elements were measured on Zen 5 with two
    /// workers: they gain only where the list is longer than the caches and the output larger
    /// than the first-level cache. The sizes for Intel are those of a prototype on a Xeon. Other
    /// vendors were not measured, and one worker applies each list.
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

    /// Returns the names and values of all variants.
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
    /// `u64::MAX`, so that these calls use no streaming stores. Calls with an output in existing
    /// memory do not use the returned variants.
    pub(crate) fn of_new_memory(self) -> Self {
        match self.stream_new {
            0 => Self {
                stream_bytes: u64::MAX,
                ..self
            },
            _ => self,
        }
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
