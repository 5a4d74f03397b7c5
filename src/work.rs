//! Record of the work of a call, for tests: work on indices that a plan must not repeat, and
//! choices that the result does not show.
//!
//! Outside of tests nothing is recorded.

/// A kind of work that [`note`] records in tests. This module does none of this work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The call read and checked indices, and computed the destination numbers of tuples.
    Resolving,
    /// The call detected duplicates.
    Looking,
    /// The call sorted tuples by destination.
    Sorting,
    /// The call sorted tuples into ranges of destinations.
    Partitioning,
    /// The call wrote windows by streaming stores.
    Streaming,
}

#[cfg(test)]
thread_local! {
    static DONE: std::cell::RefCell<Vec<Work>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Records that the calling thread did `work`.
#[inline]
pub(crate) fn note(work: Work) {
    #[cfg(test)]
    DONE.with_borrow_mut(|done| done.push(work));
    #[cfg(not(test))]
    let _ = work;
}

/// Returns the list of [`Work`] items that the calling thread has recorded with [`note`] since the
/// previous call of `take`. Empties the list.
#[cfg(test)]
pub(crate) fn take() -> Vec<Work> {
    DONE.with_borrow_mut(std::mem::take)
}
