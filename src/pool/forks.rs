//! Forks of the process, where there are any.

/// Has `in_child` called in every child that is forked from now on, before the
/// fork returns there. False if that cannot be had.
#[cfg(all(unix, not(target_os = "emscripten")))]
#[expect(unsafe_code, reason = "a system call that no safe function offers")]
pub(super) fn watch(in_child: extern "C" fn()) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};

    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.load(Ordering::Relaxed) {
        return true;
    }
    // SAFETY: a function that lives as long as this library is loaded, and
    // takes nothing. Where two threads come here at once it is called twice.
    let is_watched = unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0;
    WATCHED.fetch_or(is_watched, Ordering::Relaxed);
    is_watched
}

#[cfg(not(all(unix, not(target_os = "emscripten"))))]
pub(super) fn watch(_in_child: extern "C" fn()) -> bool {
    true
}
