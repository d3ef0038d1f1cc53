//! The processes of a job: learning how a rank ended, and leaving nothing behind.
//!
//! *Groups.* Every rank leads a process group of its own. So a signal reaches a rank and whatever it has started (a shell
//! script's children), the launcher can clean up behind a rank that has ended, and Ctrl-C reaches the launcher alone, which
//! ends the job in order instead of having every rank hit at once.
//!
//! *Zombies.* A rank that has ended is looked at without being reaped until the whole job has ended. Its pid, and the group
//! named by it, can therefore not come to mean a stranger while peers or the launcher may still use it.
//!
//! *The launcher's death.* The kernel kills each rank when the thread that started it ends (`PR_SET_PDEATHSIG`), but not
//! the rank's children. For these there is the [`Warden`], a process that does nothing but wait on a pipe for the launcher's
//! death, and then kills the groups.

use std::fs::File;
use std::io::{self, Error, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{calls, pipe, process_descriptor};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exit(i32),
    /// It died of this signal.
    Signal {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core dump.
        core: bool,
    },
}

impl End {
    /// The exit code by which a shell would report it: 128 + the signal's number for a signal.
    pub fn code(self) -> i32 {
        match self {
            End::Exit(code) => code,
            End::Signal { signal, .. } => 128 + signal,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            End::Exit(code) => write!(f, "exited with code {code}"),
            End::Signal { signal, core } => {
                let core = if core { ", core dumped" } else { "" };
                write!(f, "died of signal {signal} ({}{core})", signal_name(signal))
            }
        }
    }
}

/// What the system calls a signal, such as "Segmentation fault".
pub(crate) fn signal_name(signal: i32) -> String {
    // SAFETY: strsignal gives a NUL-terminated text that is valid until this thread calls it again.
    unsafe {
        let text = libc::strsignal(signal);
        if text.is_null() { "unknown".into() } else { std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// A started rank, reaped when this is dropped.
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Becomes readable when the process ends.
    pub(crate) pidfd: OwnedFd,
    pub(crate) end: Option<End>,
}

impl Process {
    /// Takes charge of a child that was just forked.
    pub(crate) fn of(pid: i32) -> io::Result<Process> {
        // Nobody reaps our child before Process does.
        match process_descriptor(pid) {
            Ok(pidfd) => Ok(Process { pid, pidfd, end: None }),
            Err(e) => {
                kill_group(pid, libc::SIGKILL);
                reap(pid);
                let needed = "Linux 5.3 or later is needed, and a sandbox that allows the call";
                Err(Error::new(e.kind(), format!("pidfd_open ({needed}): {e}")))
            }
        }
    }

    /// Looks whether the process has ended, without reaping it.
    pub(crate) fn look(&mut self) -> Option<End> {
        if self.end.is_none() {
            // SAFETY: the struct is ours to be filled, all zero is a valid one; si_status and si_pid are those of a SIGCHLD.
            unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let r = libc::waitid(
                    libc::P_PID,
                    self.pid as libc::id_t,
                    &mut info,
                    libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
                );
                if r < 0 && Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
                    // Somebody else in this process has reaped it; how it ended is lost.
                    self.end = Some(End::Exit(255));
                } else if r == 0 && info.si_pid() == self.pid {
                    self.end = Some(match info.si_code {
                        libc::CLD_EXITED => End::Exit(info.si_status()),
                        code => End::Signal { signal: info.si_status(), core: code == libc::CLD_DUMPED },
                    });
                }
            }
        }
        self.end
    }

    /// Lets go of a rank that was started to be held, and has executed its program: it is stopped at the first instruction, and a debugger
    /// may attach. To be called by the thread that has started it.
    pub(crate) fn leave_stopped(&self) -> io::Result<()> {
        // SAFETY: the struct is ours to be filled, all zero is a valid one; the process is our own child, and traced by us.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let mut wait = || {
                let r = libc::waitid(
                    libc::P_PID,
                    self.pid as libc::id_t,
                    &mut info,
                    libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT,
                );
                if r < 0 { Err(Error::last_os_error()) } else { Ok(info.si_code) }
            };
            // One that was killed meanwhile is not traced any more; its end is found like any other.
            if wait()? == libc::CLD_TRAPPED
                && libc::ptrace(libc::PTRACE_DETACH, self.pid, 0 as libc::c_long, libc::SIGSTOP as libc::c_long) < 0
            {
                let e = Error::last_os_error();
                return if e.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(e) };
            }
            wait().map(drop)
        }
    }

    /// Sends a signal to the rank and to what it has started.
    pub(crate) fn signal(&self, signal: i32) {
        kill_group(self.pid, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        reap(self.pid);
    }
}

/// The error of a process or thread that could not be started, with the limits that may stand in the way.
pub(crate) fn not_started(e: Error) -> Error {
    match e.raw_os_error() {
        Some(libc::EAGAIN) => Error::new(e.kind(), format!("{e} (see `ulimit -u` and the control group's pids.max)")),
        _ => e,
    }
}

fn kill_group(pid: i32, signal: i32) {
    // The group's leader is our own child, not reaped, so the number means nobody else.
    calls::kill(-pid, signal);
}

fn reap(pid: i32) {
    // SAFETY: waits for our own child; no status is asked for.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
        && Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Kills the groups of the ranks when the launcher dies, however it dies.
pub(crate) struct Warden {
    pid: i32,
    /// Its other end reads the pids of the ranks, and then the end of file when the launcher is gone, or that all is well.
    leash: File,
}

impl Warden {
    /// Starts it, for up to `n` groups that it will be told of.
    pub(crate) fn start(n: usize) -> io::Result<Warden> {
        let (read, write) = pipe()?;
        // Made before the fork; behind it nothing may be allocated.
        let groups = vec![0; n];
        // SAFETY: the child makes only calls that a signal handler may make, and ends without unwinding or running exit handlers.
        match unsafe { libc::fork() } {
            -1 => Err(not_started(Error::last_os_error())),
            0 => warden(groups, read.as_raw_fd()),
            pid => Ok(Warden { pid, leash: write.into() }),
        }
    }

    /// Where a rank writes its pid, in four bytes, before it executes its program. The launcher could not do it in time: it
    /// may be off its core, and then dead, while a rank that it has just forked starts children already.
    pub(crate) fn leash(&self) -> RawFd {
        self.leash.as_raw_fd()
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // It is waiting for this; should it be gone already there is nobody to tell.
        let _ = self.leash.write_all(&ALL_IS_WELL.to_ne_bytes());
        reap(self.pid);
    }
}

/// What the warden is told when the job has ended; no pid.
const ALL_IS_WELL: i32 = 0;

/// The warden's life. It keeps no descriptor but its pipe: not the output of the launcher, on whose end others may wait.
fn warden(mut groups: Vec<i32>, leash: RawFd) -> ! {
    // SAFETY: system calls on numbers and on this function's own variables, all of them safe in a forked child.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"fmpl-warden".as_ptr());
        if libc::dup2(leash, 0) != 0 || libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) != 0 {
            // A kernel without close_range.
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            (1..limit.rlim_cur.min(1 << 20) as RawFd).for_each(|fd| {
                libc::close(fd);
            });
        }
        let (mut word, mut known) = (ALL_IS_WELL, 0);
        loop {
            // Words of four bytes are written and read in one piece.
            match libc::read(0, (&raw mut word).cast(), size_of_val(&word)) {
                4 if word == ALL_IS_WELL => libc::_exit(0),
                4 if known < groups.len() => {
                    groups[known] = word;
                    known += 1;
                }
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => break,
            }
        }
        for group in groups.iter().take(known) {
            libc::kill(-*group, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}
