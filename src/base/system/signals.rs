//! Signals that are read instead of interrupting anything: those that a launcher obeys.

use std::fs::File;
use std::io;

use libc::sigset_t;

use super::calls::{self, blank};

/// The signals that end the job or stop it, read from a descriptor instead of interrupting anything.
pub(crate) struct Signals {
    pub(crate) fd: File,
    /// What was blocked before.
    pub(crate) before: sigset_t,
}

impl Signals {
    /// Blocks them in this thread and opens the descriptor.
    pub(crate) fn block() -> io::Result<Signals> {
        let (mut set, mut before): (sigset_t, sigset_t) = (blank(), blank());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
            // Ignored (nohup, a background job of a plain shell): it stays so. Blocked it would arrive.
            if !ignored(signal) {
                calls::sigaddset(&mut set, signal);
            }
        }
        let fd = calls::made(calls::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        // Blocked and not read: reading the terminal from the background is then an error instead of a stop.
        calls::sigaddset(&mut set, libc::SIGTTIN);
        calls::pthread_sigmask(libc::SIG_BLOCK, Some(&set), Some(&mut before));
        Ok(Signals { fd: fd.into(), before })
    }

    /// The next one that has come.
    pub(crate) fn take(&self) -> Option<i32> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        match io::Read::read(&mut &self.fd, &mut info) {
            Ok(n) if n == info.len() => Some(u32::from_ne_bytes([info[0], info[1], info[2], info[3]]) as i32),
            _ => None,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Those that came for the job are not to hit what comes after it.
        while self.take().is_some() {}
        calls::pthread_sigmask(libc::SIG_SETMASK, Some(&self.before), None);
    }
}

/// Stops this process as the terminal wanted it; the kernel knows when that would be for ever (an orphaned process group).
pub(crate) fn stop_here() {
    let mut set = blank();
    calls::sigaddset(&mut set, libc::SIGTSTP);
    calls::raise(libc::SIGTSTP);
    calls::pthread_sigmask(libc::SIG_UNBLOCK, Some(&set), None);
    calls::pthread_sigmask(libc::SIG_BLOCK, Some(&set), None);
}

/// The signals that are blocked in this thread.
pub(crate) fn blocked_now() -> sigset_t {
    let mut set = blank();
    calls::pthread_sigmask(libc::SIG_SETMASK, None, Some(&mut set));
    set
}

/// Whoever started this process with SIGCHLD ignored did so for himself; here it would throw the ends of children away.
pub(crate) fn mind_children() {
    // A handler that somebody has set is left alone.
    if ignored(libc::SIGCHLD) {
        // SAFETY: no handler is put in, only the usual end.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

fn ignored(signal: libc::c_int) -> bool {
    calls::action(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_IGN)
}
