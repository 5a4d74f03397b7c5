//! The goal of a call: low latency or little CPU time.

use crate::names::named;

/// The quantity that a call minimises. A caller can set a goal if it knows more about the load
/// of the machine than the crate. No result depends on the goal.
///
/// Without a goal, calls that run at the same time share the workers of the pool
/// ([`Pool::calls`](crate::Pool::calls)). Each call then takes the schedule with the lowest
/// latency on its share of the workers. If two schedules have nearly the same latency, the
/// call takes the schedule with less CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Goal {
    /// Latency of the call. The call uses all workers that its limit allows, even if other
    /// calls use the same workers.
    Latency,
    /// CPU time of the call. The call runs on the calling thread. This goal is for hosts that
    /// run one call per core at the same time, and for hosts whose cores have other work.
    Throughput,
}

named! { Goal, "goal":
    Latency => "latency",
    Throughput => "throughput",
}
