//! Variants of kernels that are timed beside what the machine is given by default.
//!
//! Knows lines of a machine's file. Knows nothing of kernels.

use std::sync::LazyLock;

use ndscatter::Machine;

use super::problem::Problem;
use crate::file::DEFAULT;

/// Smaller calls go by the default everywhere.
const SMALL_BYTES: u64 = 512 << 10;

/// What the default has: larger regions are prefetched; for smaller ones updates of so
/// many bytes and more; and outputs of so many and more are streamed.
const NEAR_BYTES: u64 = 1 << 20;
const FAR_BYTES: u64 = 16 << 20;
const STREAM_BYTES: u64 = 16 << 20;

/// Smaller outputs stay in a second-level cache, and are not tried.
const LEAST_STREAMED_BYTES: u64 = 1 << 20;

/// A machine with another variant.
#[derive(Debug)]
pub(crate) struct Variant {
    /// As the record calls it.
    pub(crate) name: String,
    pub(crate) machine: Machine,
    applies: fn(Sizes) -> bool,
}

/// What decides which variants differ from the default.
#[derive(Clone, Copy)]
struct Sizes {
    /// Of the region of one repetition, of the updates, and of the output that may be
    /// streamed.
    region: u64,
    updates: u64,
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

/// Those that a problem may differ by.
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
