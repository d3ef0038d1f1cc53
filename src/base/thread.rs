//! Threads of the library's own.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that no signal reaches: those for the process go to a thread of the program, and its handlers run there.
///
/// All signals are blocked before the thread is there, so there is no moment in which it could take one; the caller's mask is put back.
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack: usize,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // SAFETY: both sets are valid; the thread inherits the mask, and ours is put back whatever comes of it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let thread = Builder::new().name(name.into()).stack_size(stack).spawn(run);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        thread
    }
}
