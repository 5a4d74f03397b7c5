//! Detection of forks of the process, on systems that have forks.

/// Registers the function `in_child`, unless a function is already registered. Every child process
/// that is forked later calls `in_child` before the fork returns in the child. Returns false if the
/// system refuses the registration.
#[cfg(all(unix, not(target_os = "emscripten")))]
#[expect(unsafe_code, reason = "a system call that no safe function offers")]
pub(super) fn watch(in_child: extern "C" fn()) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};

    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.load(Ordering::Relaxed) {
        return true;
    }
    // SAFETY: `in_child` has no arguments and exists for as long as this library is loaded. If two
    // threads register `in_child` at the same time, every forked child calls `in_child` twice. The
    // second call changes nothing.
    let is_watched = unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0;
    WATCHED.fetch_or(is_watched, Ordering::Relaxed);
    is_watched
}

#[cfg(not(all(unix, not(target_os = "emscripten"))))]
pub(super) fn watch(_in_child: extern "C" fn()) -> bool {
    true
}
