//! Signals that are read instead of interrupting anything: those that a launcher obeys.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// The signals that end the job or stop it, read from a descriptor instead of interrupting anything.
pub(crate) struct Signals {
    pub(crate) fd: File,
    /// What was blocked before.
    pub(crate) before: libc::sigset_t,
}

impl Signals {
    /// Blocks them in this thread and opens the descriptor.
    pub(crate) fn block() -> io::Result<Signals> {
        // SAFETY: sets and structs are this function's own; sigaction without a new action only reads; the new descriptor
        // belongs to nobody else.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
                let mut now: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut now);
                // Ignored (nohup, a background job of a plain shell): it stays so. Blocked it would arrive.
                if now.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&mut set, signal);
                }
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = File::from_raw_fd(fd);
            // Blocked and not read: reading the terminal from the background is then an error instead of a stop.
            libc::sigaddset(&mut set, libc::SIGTTIN);
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            Ok(Signals { fd, before })
        }
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
        // SAFETY: the set is the one that held before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Stops this process as the terminal wanted it; the kernel knows when that would be for ever (an orphaned process group).
pub(crate) fn stop_here() {
    // SAFETY: the sets are this function's own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTSTP);
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// The signals that are blocked in this thread.
pub(crate) fn blocked_now() -> libc::sigset_t {
    // SAFETY: the set is filled by the call; without a new set nothing changes.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut set);
        set
    }
}

/// Whoever started this process with SIGCHLD ignored did so for himself; here it would throw the ends of children away.
pub(crate) fn mind_children() {
    // SAFETY: the struct is this function's own; a handler that somebody has set is left alone.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut now);
        if now.sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
