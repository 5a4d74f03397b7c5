//! What a call may be for.

use crate::names::named;

/// What a call is to have least of, where the caller knows better than the crate. No
/// result depends on it.
///
/// By default calls side by side share the workers of the pool out
/// ([`Pool::calls`](crate::Pool::calls)), and each takes the schedule that is the fastest
/// on its share; of two that are about as fast, the one with less CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Goal {
    /// Time until it is done: it takes all workers that it may have, whoever else is at
    /// work on them.
    Latency,
    /// CPU time: it runs on the calling thread, for hosts that make as many calls at
    /// once as there are cores, or whose cores have other things to do.
    Throughput,
}

named! { Goal, "goal":
    Latency => "latency",
    Throughput => "throughput",
}
