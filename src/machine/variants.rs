//! Which variants of kernels are the fast ones on a machine.
//!
//! Knows what was measured on machines of a kind, in `benches/machines`. Knows nothing
//! of how a variant does what it does; all of them give the same bits.

use super::vendor;

/// From where on each variant is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variants {
    /// Windows that lie in at most so many bytes are in a core's caches after a while,
    /// and not prefetched: that costs more than it gains.
    pub(crate) near_bytes: u64,
    /// Outputs of at least so many bytes are written with streaming stores where no
    /// later step of the call touches them: they would push out of the caches what is
    /// there.
    pub(crate) stream_bytes: u64,
    /// Whether streaming copies prefetch what they read, past the caches as well; 0 is
    /// no.
    pub(crate) stream_prefetch: u64,
}

impl Variants {
    pub(crate) const TYPICAL: Self = Self {
        near_bytes: 1 << 20,
        stream_bytes: 16 << 20,
        stream_prefetch: 1,
    };

    /// Those of this machine, by who made it. On Intel's Xeons a streaming copy that
    /// prefetches takes 1.4 to 1.6 times as long, on AMD's Zen 4 0.94 to 1.03 times;
    /// others were not measured, and prefetch.
    pub(super) fn detected() -> Self {
        Self {
            stream_prefetch: u64::from(!vendor::is_intel()),
            ..Self::TYPICAL
        }
    }

    /// All of them, by name.
    pub(super) fn each_mut(&mut self) -> [(&'static str, &mut u64); 3] {
        [
            ("near_bytes", &mut self.near_bytes),
            ("stream_bytes", &mut self.stream_bytes),
            ("stream_prefetch", &mut self.stream_prefetch),
        ]
    }

    /// The one with a name.
    pub(super) fn named_mut(&mut self, name: &str) -> Option<&mut u64> {
        let named = self
            .each_mut()
            .into_iter()
            .find(|variant| variant.0 == name);
        named.map(|variant| variant.1)
    }
}
