//! From a program to a running process.
//!
//! All ranks are forked first and waited for together: a rank that is forked while others are starting already gets its turn
//! on a core late, and waiting for each one's exec in turn would add all these delays up. A rank whose exec fails says so on
//! a pipe that the others close by their exec; so the pipe's end of file is the news that all of them run.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Error, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::cpus::CpuSet;
use super::process::not_started;
use super::{above_stdio, calls, pipe};

pub(crate) fn text(s: &OsStr) -> io::Result<CString> {
    CString::new(s.as_bytes())
        .map_err(|_| Error::new(io::ErrorKind::InvalidInput, "a NUL inside an argument or a variable"))
}

/// Texts as exec takes them: an array of pointers with a null behind the last.
struct Texts {
    pointers: Vec<*const libc::c_char>,
    /// What the pointers point to.
    _texts: Vec<CString>,
}

impl Texts {
    fn new(texts: Vec<CString>) -> Texts {
        let pointers = texts.iter().map(|t| t.as_ptr()).chain([std::ptr::null()]).collect();
        Texts { pointers, _texts: texts }
    }
}

/// What a rank is started with.
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Path,
    pub(crate) argv: &'a [OsString],
    /// All its variables.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) wdir: Option<&'a Path>,
    pub(crate) bind: Option<CpuSet>,
    /// Standard input, output and error; `None`: those of this process.
    pub(crate) stdio: [Option<OwnedFd>; 3],
    /// The signals blocked in the rank: what its launcher was started with.
    pub(crate) blocked: libc::sigset_t,
    /// The limit of descriptors: likewise.
    pub(crate) descriptors: libc::rlimit,
    /// It stops at the first instruction of its program, for [`leave_stopped`](super::process::Process::leave_stopped).
    pub(crate) held: bool,
    /// A descriptor that it inherits.
    pub(crate) handed: Option<OwnedFd>,
    /// The [`Warden`](super::process::Warden)'s pipe.
    pub(crate) leash: RawFd,
}

/// The step at which the start of a process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Before the program was tried.
    Prepare,
    Chdir,
    /// The wish to be held.
    Trace,
    Exec,
}

/// The pipe for bad news from ranks between fork and exec.
pub(crate) struct News {
    read: OwnedFd,
    write: OwnedFd,
}

impl News {
    pub(crate) fn new() -> io::Result<News> {
        let (read, write) = pipe()?;
        Ok(News { read, write })
    }

    /// Waits until every rank has either executed its program or failed to: the first that failed.
    pub(crate) fn wait(self) -> io::Result<Option<(u32, Step, Error)>> {
        drop(self.write);
        let mut all = Vec::new();
        File::from(self.read).read_to_end(&mut all)?;
        Ok(all.chunks_exact(12).next().map(|c| {
            let number = |i: usize| i32::from_ne_bytes([c[i], c[i + 1], c[i + 2], c[i + 3]]);
            let step = [Step::Prepare, Step::Chdir, Step::Trace, Step::Exec][number(4).clamp(0, 3) as usize];
            (number(0) as u32, step, Error::from_raw_os_error(number(8)))
        }))
    }
}

/// Forks a process that executes the program, or tells `news` why it cannot. Must be called by a thread that outlives the job.
pub(crate) fn fork(rank: u32, s: &Start, news: &News) -> io::Result<i32> {
    // Everything that takes memory is made before the fork: another thread may hold the allocator's lock just then.
    let program = text(s.program.as_os_str())?;
    let argv = s.argv.iter().map(|a| text(a)).collect::<io::Result<Vec<_>>>()?;
    // A script without a first line that names its interpreter is one for the shell, as with execvp.
    let script = [c"sh".to_owned(), program.clone()].into_iter().chain(argv.iter().skip(1).cloned()).collect();
    let (argv, script) = (Texts::new(argv), Texts::new(script));
    let env = s
        .env
        .iter()
        .map(|(k, v)| text(&[k.as_os_str(), v.as_os_str()].join(OsStr::new("="))))
        .collect::<io::Result<Vec<_>>>()?;
    let env = Texts::new(env);
    let wdir = s.wdir.map(|d| text(d.as_os_str())).transpose()?;
    let stdio = s.stdio.each_ref().map(|fd| fd.as_ref().map(above_stdio).transpose());
    let [stdin, stdout, stderr] = stdio;
    let stdio = [stdin?, stdout?, stderr?];
    let parent = std::process::id() as i32;

    // SAFETY: the child makes only calls that a signal handler may make, and leaves by exec or _exit.
    match unsafe { libc::fork() } {
        -1 => Err(not_started(Error::last_os_error())),
        0 => {
            let fds = stdio.each_ref().map(|fd| fd.as_ref().map_or(-1, AsRawFd::as_raw_fd));
            let step = prepare(s, parent, fds, wdir.as_deref());
            if step == Step::Exec {
                // SAFETY: all arrays end with a null and live on in this copy of the process.
                unsafe {
                    libc::execve(program.as_ptr(), argv.pointers.as_ptr(), env.pointers.as_ptr());
                    if *libc::__errno_location() == libc::ENOEXEC {
                        libc::execve(c"/bin/sh".as_ptr(), script.pointers.as_ptr(), env.pointers.as_ptr());
                    }
                }
            }
            // SAFETY: a buffer of 12 bytes; nobody minds the result any more.
            unsafe {
                let word = [rank as i32, step as i32, *libc::__errno_location()];
                libc::write(news.write.as_raw_fd(), word.as_ptr().cast(), size_of_val(&word));
                libc::_exit(127)
            }
        }
        pid => {
            // The child does the same; whoever comes first, the group is there when this function returns.
            calls::setpgid(pid, pid);
            Ok(pid)
        }
    }
}

/// In the child: everything up to exec. [`Step::Exec`]: all is ready; else what failed, with `errno`.
fn prepare(s: &Start, parent: i32, stdio: [RawFd; 3], wdir: Option<&CStr>) -> Step {
    // SAFETY: system calls on numbers and on memory that was made before the fork.
    unsafe {
        libc::setpgid(0, 0);
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return Step::Prepare;
        }
        if libc::getppid() != parent {
            // The launcher died before the line above.
            libc::_exit(1);
        }
        // From here on the launcher's death kills this process, and from the next line on what it will start as well.
        let pid = libc::getpid();
        if libc::write(s.leash, (&raw const pid).cast(), size_of_val(&pid)) < 0 {
            return Step::Prepare;
        }
        for (target, fd) in stdio.into_iter().enumerate() {
            if fd >= 0 && libc::dup2(fd, target as RawFd) < 0 {
                return Step::Prepare;
            }
        }
        if s.handed.as_ref().is_some_and(|fd| libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) < 0) {
            return Step::Prepare;
        }
        libc::setrlimit(libc::RLIMIT_NOFILE, &s.descriptors);
        // A set that shrank a moment ago is no reason not to start.
        let _ = s.bind.as_ref().map(CpuSet::apply);
        if wdir.is_some_and(|d| libc::chdir(d.as_ptr()) < 0) {
            return Step::Chdir;
        }
        // Rust programs ignore SIGPIPE, and exec would hand that on.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        // It is in no terminal's foreground, and may print there all the same, also where that stops others (`stty tostop`).
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::pthread_sigmask(libc::SIG_SETMASK, &s.blocked, std::ptr::null_mut());
        if s.held {
            // A debugger that is no ancestor needs to be allowed, where Yama restricts it. Elsewhere this is an error, and no matter.
            libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY);
            if libc::ptrace(libc::PTRACE_TRACEME) < 0 {
                return Step::Trace;
            }
        }
    }
    Step::Exec
}
