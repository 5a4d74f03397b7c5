//! Detection of forks of the process, on systems that have them.

/// Registers `in_child`, which is then called in every forked child before the fork returns there.
/// Returns false if the system refuses.
#[cfg(all(unix, not(target_os = "emscripten")))]
#[expect(unsafe_code, reason = "a system call that no safe function offers")]
pub(super) fn watch(in_child: extern "C" fn()) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};

    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.load(Ordering::Relaxed) {
        return true;
    }
    // SAFETY: the function has no arguments and exists for as long as this library is loaded. If
    // two threads register it at the same time, it is called twice in a child, without harm.
    let is_watched = unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0;
    WATCHED.fetch_or(is_watched, Ordering::Relaxed);
    is_watched
}

#[cfg(not(all(unix, not(target_os = "emscripten"))))]
pub(super) fn watch(_in_child: extern "C" fn()) -> bool {
    true
}
