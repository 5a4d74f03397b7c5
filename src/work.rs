//! What a call did, noted in tests: work on indices that a plan must not do again, and
//! choices that no result shows.

/// Something that a call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reading, checking and numbering the tuples.
    Resolving,
    /// Looking for duplicates.
    Looking,
    /// Sorting them by destination.
    Sorting,
    /// Sorting them into ranges of destinations.
    Partitioning,
    /// Writing windows by streaming stores.
    Streaming,
}

#[cfg(test)]
thread_local! {
    static DONE: std::cell::RefCell<Vec<Work>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Notes that the calling thread did `work`.
#[inline]
pub(crate) fn note(work: Work) {
    #[cfg(test)]
    DONE.with_borrow_mut(|done| done.push(work));
    #[cfg(not(test))]
    let _ = work;
}

/// Takes what this thread did since the last call.
#[cfg(test)]
pub(crate) fn take() -> Vec<Work> {
    DONE.with_borrow_mut(std::mem::take)
}
