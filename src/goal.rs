//! The goal of a call: low latency or little CPU time.

use crate::names::named;

/// The quantity that a call minimises: its latency or its CPU time. A caller can set the goal of a
/// call if the caller knows more about the load of the machine than the crate does. No result
/// depends on the goal.
///
/// If the caller sets no goal, calls that run on a pool at the same time divide the workers of the
/// pool among themselves. This division requires a pool that counts its running calls
/// ([`Pool::calls`](crate::Pool::calls)). Each call then uses the schedule with the lowest latency
/// on its share of the workers. If two schedules have nearly the same latency, the call uses the
/// schedule with less CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Goal {
    /// Minimises the latency of the call. The call may use all workers of the pool, up to the
    /// call's own limit ([`Execution::max_workers`](crate::Execution::max_workers)), even if other
    /// calls use the same workers.
    Latency,
    /// Minimises the CPU time of the call. The call runs on the calling thread. This goal is for
    /// hosts that run one call per core at the same time, and for hosts whose cores have other
    /// work.
    Throughput,
}

named! { Goal, "goal":
    Latency => "latency",
    Throughput => "throughput",
}
