//! Which variants of kernels are the fast ones on a machine.
//!
//! Knows what was measured on machines of a kind, in `benches/machines`. Knows nothing
//! of how a variant does what it does; all of them give the same bits.

use super::vendor::Vendor;

/// From where on each variant is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variants {
    /// Windows that lie in at most so many bytes are in a core's caches after a while,
    /// and not prefetched: that costs more than it gains.
    pub(crate) near_bytes: u64,
    /// The same for windows of at most a line, which gain as little in a larger region.
    pub(crate) near_short_bytes: u64,
    /// Rows of updates that are not read in order are prefetched, though their
    /// destinations are near, where all of them have at least so many bytes: they come
    /// from memory.
    pub(crate) far_bytes: u64,
    /// Outputs of at least so many bytes are written with streaming stores where no
    /// later step of the call touches them: they would push out of the caches what is
    /// there.
    pub(crate) stream_bytes: u64,
    /// Whether streaming copies prefetch what they read, past the caches as well; 0 is
    /// no.
    pub(crate) stream_prefetch: u64,
    /// Whether indices are prefetched that are checked block by block, between elements
    /// of a larger region than a first cache; 0 is no.
    pub(crate) index_prefetch: u64,
    /// Whether memory that is new is written with streaming stores too; 0 is no: the
    /// system has just cleared its pages, and a part of them is in the caches.
    pub(crate) stream_new: u64,
    /// From so many tuples on, the work on indices is divided among workers: below, one
    /// that then applies them all is faster if it has numbered them itself.
    pub(crate) numbered_tuples: u64,
}

impl Variants {
    pub(crate) const TYPICAL: Self = Self {
        near_bytes: 1 << 20,
        near_short_bytes: 4 << 20,
        far_bytes: 16 << 20,
        stream_bytes: 16 << 20,
        stream_prefetch: 1,
        index_prefetch: 0,
        stream_new: 1,
        numbered_tuples: 1 << 20,
    };

    /// What is typical of a vendor's machines. On Intel's Xeons a streaming copy that
    /// prefetches takes 1.4 to 1.6 times as long, on AMD's Zen 4 0.94 to 1.03 times;
    /// others were not measured, and prefetch. Prefetching indices was measured on Zen 4
    /// alone, and so were new memory and lists of fewer than a million tuples.
    pub(super) fn of(vendor: Vendor) -> Self {
        Self {
            stream_prefetch: u64::from(vendor != Vendor::Intel),
            index_prefetch: u64::from(vendor == Vendor::Amd),
            stream_new: u64::from(vendor != Vendor::Amd),
            numbered_tuples: match vendor {
                Vendor::Amd => 1 << 18,
                _ => Self::TYPICAL.numbered_tuples,
            },
            ..Self::TYPICAL
        }
    }

    /// All of them, by name.
    pub(super) fn each_mut(&mut self) -> [(&'static str, &mut u64); 8] {
        [
            ("near_bytes", &mut self.near_bytes),
            ("near_short_bytes", &mut self.near_short_bytes),
            ("far_bytes", &mut self.far_bytes),
            ("stream_bytes", &mut self.stream_bytes),
            ("stream_prefetch", &mut self.stream_prefetch),
            ("index_prefetch", &mut self.index_prefetch),
            ("stream_new", &mut self.stream_new),
            ("numbered_tuples", &mut self.numbered_tuples),
        ]
    }

    /// The same for an output that is new memory.
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
