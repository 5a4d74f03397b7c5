//! Defines the variants of kernels that are timed and compared with the machine's default.
//!
//! Knows lines of a machine's file. Knows nothing of kernels.

use std::sync::LazyLock;

use ndscatter::Machine;

use super::problem::Problem;
use crate::file::DEFAULT;

/// Bytes below which a problem is timed with the default only.
const SMALL_BYTES: u64 = 512 << 10;

/// Default: regions above this size are prefetched.
const NEAR_BYTES: u64 = 1 << 20;
/// Default: updates from this size on are prefetched for smaller regions.
const FAR_BYTES: u64 = 16 << 20;
/// Default: outputs from this size on are streamed.
const STREAM_BYTES: u64 = 16 << 20;

/// Minimum bytes of an output for the variant that streams. Smaller outputs stay in a
/// second-level cache.
const LEAST_STREAMED_BYTES: u64 = 1 << 20;

/// Machine whose file differs from the default in one or two lines.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Name in the record.
    pub(crate) name: String,
    pub(crate) machine: Machine,
    applies: fn(Sizes) -> bool,
}

/// Bytes that decide which variants differ from the default.
#[derive(Clone, Copy)]
struct Sizes {
    /// Data of one repetition.
    region: u64,
    /// Updates of one repetition.
    updates: u64,
    /// Output that may be streamed.
    streamed: u64,
}

static VARIANTS: LazyLock<[Variant; 8]> = LazyLock::new(|| {
    let of = |name: &str, line: &str, applies| Variant {
        name: format!("{DEFAULT}, {name}"),
        machine: line.parse().expect("a line of a machine's file"),
        applies,
    };
    let never = |name: &str| format!("{name} = {}", u64::MAX);
    [
        of(
            "all prefetched",
            "near_bytes = 0\nnear_short_bytes = 0",
            |sizes| sizes.region <= NEAR_BYTES,
        ),
        of("none prefetched", &never("near_bytes"), |sizes| {
            sizes.region > NEAR_BYTES
        }),
        of("all updates prefetched", "far_bytes = 0", |sizes| {
            sizes.region <= NEAR_BYTES && sizes.updates < FAR_BYTES
        }),
        of("no updates prefetched", &never("far_bytes"), |sizes| {
            sizes.region <= NEAR_BYTES && sizes.updates >= FAR_BYTES
        }),
        of("all streamed", "stream_bytes = 0", |sizes| {
            (LEAST_STREAMED_BYTES..STREAM_BYTES).contains(&sizes.streamed)
        }),
        of("none streamed", &never("stream_bytes"), is_streamed),
        of("streams prefetch", "stream_prefetch = 1", is_streamed),
        of(
            "streams prefetch nothing",
            "stream_prefetch = 0",
            is_streamed,
        ),
    ]
});

fn is_streamed(sizes: Sizes) -> bool {
    sizes.streamed >= STREAM_BYTES
}

/// Returns the variants that may differ from the default for a problem.
pub(crate) fn of(problem: &Problem) -> Vec<&'static Variant> {
    let size = problem.dtype.size() as u64;
    let data = problem.data_len() as u64 * size;
    let updates = problem.updates_len() as u64 * size;
    let moves = problem.reduction == ndscatter::Reduction::None;
    let sizes = Sizes {
        region: data / problem.repetitions as u64,
        updates: updates / problem.repetitions as u64,
        streamed: match problem.in_place {
            true if moves => updates,
            true => 0,
            false => data,
        },
    };
    let is_small = problem.moved_bytes() < SMALL_BYTES;
    let variants = VARIANTS.iter();
    variants
        .filter(|variant| !is_small && (variant.applies)(sizes))
        .collect()
}
