//! Work on indices, counted in tests: what a plan must not do again.

/// A pass over the tuples that depends on their indices alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reading, checking and numbering them.
    Resolving,
    /// Looking for duplicates.
    Looking,
    /// Sorting them by destination.
    Sorting,
    /// Sorting them into ranges of destinations.
    Partitioning,
}

#[cfg(test)]
thread_local! {
    static DONE: std::cell::RefCell<Vec<Work>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Notes a pass, on the calling thread.
#[inline]
pub(crate) fn note(work: Work) {
    #[cfg(test)]
    DONE.with_borrow_mut(|done| done.push(work));
    #[cfg(not(test))]
    let _ = work;
}

/// The passes on this thread since the last call.
#[cfg(test)]
pub(crate) fn take() -> Vec<Work> {
    DONE.with_borrow_mut(std::mem::take)
}
