//! Records the kinds of work that a call does, in builds of the crate's unit tests. The tests check
//! that later calls of a plan do not repeat work on indices, and check choices that the result does
//! not show. In all other builds, [`note`] records nothing.

/// A kind of work that [`note`] records in tests. This module does none of this work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The crate read and checked indices, and computed the destination numbers of tuples.
    Resolving,
    /// The crate searched for duplicates.
    Looking,
    /// The crate sorted tuples by destination.
    Sorting,
    /// The crate sorted tuples into ranges of destinations.
    Partitioning,
    /// The crate wrote windows by streaming stores.
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

/// Returns the [`Work`] items that the calling thread has recorded since its previous call of
/// `take`, and clears the record of this thread.
#[cfg(test)]
pub(crate) fn take() -> Vec<Work> {
    DONE.with_borrow_mut(std::mem::take)
}
