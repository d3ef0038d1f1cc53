//! The operating system: calls on descriptors, limits and words, as functions that ask nothing of their caller. A descriptor that is none
//! is an error like any other.
//!
//! | module | |
//! |---|---|
//! | `calls` | calls of the C library that nobody can call wrongly; options and addresses of sockets |
//! | `cpus` | sets of processors |
//! | `epoll` | which of many descriptors have something |
//! | `exec`, `process` | starting processes, how they end, and leaving none behind |
//! | `signals` | signals that are read instead of interrupting anything |
//! | `unshared` | descriptors that a forked child does not keep |

pub(crate) mod calls;
pub mod cpus;
pub(crate) mod epoll;
pub(crate) mod exec;
pub mod process;
pub(crate) mod signals;
pub(crate) mod unshared;

use core::ffi::{CStr, c_int};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::atomics::AtomicU32;
use super::run::Run;
use calls::{blank, control};

fn check(r: c_int) -> Result<c_int> {
    if r < 0 { Err(Error::last_os_error()) } else { Ok(r) }
}

fn counted(r: isize) -> Result<usize> {
    usize::try_from(r).map_err(|_| Error::last_os_error())
}

/// A descriptor that a call has just made.
///
/// # Safety
/// It belongs to nobody else.
unsafe fn made(r: c_int) -> Result<OwnedFd> {
    // SAFETY: as the caller promises.
    check(r).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads what is there, at most as much as there is room for.
pub(crate) fn read(fd: &(impl AsRawFd + ?Sized), into: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is as long as said.
    counted(unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) })
}

/// Writes what the descriptor takes.
pub(crate) fn write(fd: &(impl AsRawFd + ?Sized), bytes: &[u8]) -> Result<usize> {
    // SAFETY: the buffer is as long as said.
    counted(unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

/// Sends what the socket takes; one that is closed is an error, not a SIGPIPE. Not by the C library, as below.
#[inline]
pub(crate) fn send(socket: &(impl AsRawFd + ?Sized), bytes: &[u8], flags: c_int) -> Result<usize> {
    let (fd, at, none) = (socket.as_raw_fd(), bytes.as_ptr(), std::ptr::null::<u8>());
    // SAFETY: the buffer is as long as said.
    counted(unsafe {
        libc::syscall(libc::SYS_sendto, fd, at, bytes.len(), flags | libc::MSG_NOSIGNAL, none, 0) as isize
    })
}

/// Receives what has come, without waiting. Not by the C library: its call is one at which a thread may be ended, which takes a tenth of an
/// empty look in a process of several threads.
#[inline]
pub(crate) fn receive(socket: &(impl AsRawFd + ?Sized), into: &mut [u8]) -> Result<usize> {
    let (fd, at, none) = (socket.as_raw_fd(), into.as_mut_ptr(), std::ptr::null::<u8>());
    // SAFETY: the buffer is as long as said.
    counted(unsafe { libc::syscall(libc::SYS_recvfrom, fd, at, into.len(), libc::MSG_DONTWAIT, none, none) as isize })
}

/// What has come and stays for whoever reads it; without waiting.
pub(crate) fn peek(socket: &(impl AsRawFd + ?Sized), into: &mut [u8]) -> Result<usize> {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the buffer is as long as said.
    counted(unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) })
}

/// A pipe that nobody reads any more ends this process without a word, as in programs that are not Rust's: for a command that only prints.
pub fn end_with_reader() {
    // SAFETY: no handler is put in, only the usual end.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Gives back to the system what the allocator has free, where it can.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number only, and is safe with threads.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Waits until something happens to one of the descriptors: to how many.
pub fn poll(fds: &mut [libc::pollfd], ms: c_int) -> Result<usize> {
    // SAFETY: the array is as long as said.
    check(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms) }).map(|n| n as usize)
}

/// The same for so long at most, to the nanosecond.
pub(crate) fn poll_for(fds: &mut [libc::pollfd], at_most: Option<std::time::Duration>) -> Result<usize> {
    let time = at_most.map(|t| libc::timespec { tv_sec: t.as_secs() as i64, tv_nsec: i64::from(t.subsec_nanos()) });
    let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the array is as long as said, and the time is one or none.
    check(unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time, core::ptr::null()) })
        .map(|n| n as usize)
}

/// Has something of this happened to a descriptor by now?
pub(crate) fn is_ready(fd: &(impl AsRawFd + ?Sized), events: i16) -> bool {
    poll(&mut [libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }], 0).is_ok_and(|n| n > 0)
}

/// Ends one direction of a connection, or both.
pub(crate) fn shutdown(socket: &(impl AsRawFd + ?Sized), how: c_int) {
    calls::shutdown(socket.as_raw_fd(), how);
}

/// Sets an option of a socket, if the system lets us.
pub(crate) fn set_option(socket: &(impl AsRawFd + ?Sized), level: c_int, name: c_int, value: c_int) {
    let _ = calls::set_option(socket.as_raw_fd(), level, name, value);
}

/// Bytes that the system has for a socket now, for what has come, what leaves and what it keeps ready, and how many it may have for its queues;
/// `None`: it is no socket.
pub fn socket_memory(fd: RawFd) -> Option<[u64; 2]> {
    // As linux/sock_diag.h has them: SK_MEMINFO_RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, FWD_ALLOC, WMEM_QUEUED, …
    let mut of = [0u32; 9];
    let mut len = size_of_val(&of) as libc::socklen_t;
    // SAFETY: as many words as said.
    let got = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, of.as_mut_ptr().cast(), &mut len) };
    let [received, room, _, leaving, ready, queued, ..] = of.map(u64::from);
    (got == 0).then_some([received + ready + queued, room + leaving])
}

/// Listens with a queue as long as this, or as the system allows.
pub(crate) fn listen(listener: &(impl AsRawFd + ?Sized), to: c_int) -> Result<()> {
    check(calls::listen(listener.as_raw_fd(), to)).map(drop)
}

/// Do reads and writes wait?
pub(crate) fn set_waiting(fd: &(impl AsRawFd + ?Sized), waits: bool) -> Result<()> {
    let fd = fd.as_raw_fd();
    let flags = control(fd, libc::F_GETFL, 0)? & !libc::O_NONBLOCK;
    control(fd, libc::F_SETFL, if waits { flags } else { flags | libc::O_NONBLOCK }).map(drop)
}

/// Programs that this process executes get the descriptor no more.
pub(crate) fn close_on_exec(fd: RawFd) -> Result<()> {
    control(fd, libc::F_SETFD, libc::FD_CLOEXEC).map(drop)
}

/// What the system knows of what a descriptor is.
pub(crate) fn status(fd: RawFd) -> Result<libc::stat> {
    let mut st = blank();
    check(calls::fstat(fd, &mut st)).map(|_| st)
}

/// Is there a socket of this number?
pub(crate) fn is_socket(fd: RawFd) -> bool {
    status(fd).is_ok_and(|st| st.st_mode & libc::S_IFMT == libc::S_IFSOCK)
}

/// The same with a number above 2, so that it can be put in the place of one of those.
pub(crate) fn above_stdio(fd: &(impl AsRawFd + ?Sized)) -> Result<OwnedFd> {
    second(fd.as_raw_fd())
}

/// Puts a descriptor in the place of another one, which is closed.
pub(crate) fn replace(with: &(impl AsRawFd + ?Sized), place: &(impl AsRawFd + ?Sized)) -> Result<()> {
    // SAFETY: takes numbers only; the place goes on being open, as its owner expects.
    check(unsafe { libc::dup2(with.as_raw_fd(), place.as_raw_fd()) }).map(drop)
}

/// A pipe whose ends no child inherits: (read, write).
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: fills two numbers, which are ours.
    unsafe {
        check(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((made(fds[0])?, made(fds[1])?))
    }
}

/// A descriptor that is readable when it was told, and does not wait.
pub(crate) fn event() -> Result<OwnedFd> {
    calls::made(calls::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))
}

/// Makes it readable; it may be already.
pub(crate) fn tell(event: &(impl AsRawFd + ?Sized)) {
    let _ = write(event, &1u64.to_ne_bytes());
}

/// Makes it quiet again: was it readable?
pub(crate) fn hear(event: &(impl AsRawFd + ?Sized)) -> Result<bool> {
    let mut count = [0; 8];
    loop {
        match read(event, &mut count) {
            Ok(n) => return Ok(n == 8),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A limit of this process, `RLIMIT_…`.
pub fn limit(which: libc::__rlimit_resource_t) -> Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    check(calls::getrlimit(which, &mut limit)).map(|_| limit)
}

/// Bytes that this process may lock into memory; `None`: as many as there are.
pub(crate) fn lockable_bytes() -> Option<u64> {
    // Bit 14 of the capabilities that hold (capabilities(7), CAP_IPC_LOCK) lifts the limit. In a container it may not: then registering fails.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let most = limit(libc::RLIMIT_MEMLOCK).map_or(0, |limit| limit.rlim_cur);
    (most != libc::RLIM_INFINITY && held.unwrap_or(0) >> 14 & 1 == 0).then_some(most)
}

/// Bytes of this machine's memory, and of its swap space.
pub(crate) fn memory_bytes() -> [u64; 2] {
    let mut info: libc::sysinfo = blank();
    calls::system_info(&mut info);
    [info.totalram, info.totalswap].map(|n| n.saturating_mul(u64::from(info.mem_unit)))
}

/// Descriptors 0 to 2 that this process was started without lead nowhere from here on. What it opened next would have their numbers, and
/// whatever the program prints would go there: into a region that all ranks share, or to a peer.
pub(crate) fn hold_standard_descriptors() {
    // A new descriptor has the lowest number that is free.
    while let Ok(nowhere) = File::options().read(true).write(true).open("/dev/null") {
        if nowhere.as_raw_fd() > libc::STDERR_FILENO {
            break;
        }
        let _ = nowhere.into_raw_fd();
    }
}

/// Changes that of descriptors, if the system lets us. Did it?
pub(crate) fn set_descriptors(limit: &libc::rlimit) -> bool {
    calls::setrlimit(libc::RLIMIT_NOFILE, limit) == 0
}

/// Memory with a descriptor and no name.
pub fn memfd(name: &CStr, flags: libc::c_uint) -> Result<OwnedFd> {
    // SAFETY: a text with a NUL; the new descriptor is ours.
    unsafe { made(libc::memfd_create(name.as_ptr(), flags)) }
}

/// What may no longer be done with it, `F_SEAL_…`.
pub fn seal(memory: &(impl AsRawFd + ?Sized), seals: c_int) -> Result<()> {
    control(memory.as_raw_fd(), libc::F_ADD_SEALS, seals).map(drop)
}

/// Those that hold; less than 0: it can have none.
pub(crate) fn seals(memory: &(impl AsRawFd + ?Sized)) -> c_int {
    control(memory.as_raw_fd(), libc::F_GET_SEALS, 0).unwrap_or(-1)
}

/// A process as a descriptor, which is readable when it has ended.
pub fn process_descriptor(pid: i32) -> Result<OwnedFd> {
    // SAFETY: takes numbers only; the new descriptor is ours.
    unsafe { made(libc::syscall(libc::SYS_pidfd_open, pid, 0) as RawFd) }
}

/// Sends a signal to a process, of which the caller knows that the number still means it.
pub fn signal(pid: i32, signal: c_int) {
    calls::kill(pid, signal);
}

/// Makes a fifo for this user.
pub fn fifo(path: &CStr) -> Result<()> {
    // SAFETY: a text with a NUL.
    check(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }).map(drop)
}

/// A new directory of this user's alone in the place for temporary files: its name begins so, and nobody else has it. (The number of a process is
/// had again by others, soon in containers.) The error names the place.
pub fn temporary(begins: &str) -> Result<PathBuf> {
    let place = std::env::temp_dir();
    let failed = |e: Error| Error::new(e.kind(), format!("{}: {e}", place.display()));
    if place.to_str().is_none() {
        let why = "TMPDIR must be UTF-8, since ranks are told such places by settings, which are text";
        return Err(failed(Error::new(ErrorKind::InvalidInput, why)));
    }
    let name = place.join(format!("{begins}-XXXXXX"));
    let mut name = exec::text(name.as_os_str()).map_err(failed)?.into_bytes_with_nul();
    // SAFETY: a text with a NUL, whose last letters are replaced.
    if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
        return Err(failed(Error::last_os_error()));
    }
    name.pop();
    Ok(OsString::from_vec(name).into())
}

/// Whom this process acts for.
pub(crate) fn user() -> u32 {
    calls::geteuid()
}

/// Does the terminal listen to this process? One that is not its session's has no foreground, and listens to all.
pub(crate) fn in_foreground() -> bool {
    let group = calls::tcgetpgrp(libc::STDIN_FILENO);
    group < 0 || group == calls::getpgrp()
}

/// Ticks of a second, in which the kernel counts the time of processors.
pub fn ticks() -> i64 {
    calls::sysconf(libc::_SC_CLK_TCK).max(1)
}

/// May this process execute the file?
pub(crate) fn is_executable(path: &CStr) -> bool {
    // SAFETY: a text with a NUL.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Can the eight bytes around an address be read? Asks the system with the quickest call that reads some: it takes a set of signals, looks at
/// what it is to do with it afterwards, and refuses that. (So does Abseil's `AddressIsReadable`.) Where the call is refused nothing is found out.
pub(crate) fn is_readable(at: usize) -> bool {
    const NO_WAY: c_int = -1;
    let nothing: *mut u8 = core::ptr::null_mut();
    // SAFETY: the kernel reads eight bytes, which lie in one page, or says that it cannot; there is no such way to change the mask, so that
    // nothing is changed; the mask of before is not asked for.
    let refused = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_WAY, at & !7, nothing, 8usize) };
    refused == 0 || Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

/// Has pages of a run made now, in one go, where the system knows of it.
pub(crate) fn populate(run: Run) {
    // SAFETY: memory that may be written; its contents stay.
    unsafe { libc::madvise(run.ptr().cast(), run.len(), libc::MADV_POPULATE_WRITE) };
}

/// Gives the pages of a run of shared memory back to the system: its bytes are 0 from now on, for everybody.
pub(crate) fn give_back(run: Run) {
    // SAFETY: memory that may be written.
    unsafe { libc::madvise(run.ptr().cast(), run.len(), libc::MADV_REMOVE) };
}

/// The addresses of this machine's interfaces that are up, IPv4 and IPv6, each with the name of its interface.
pub(crate) fn addresses() -> Result<Vec<(String, std::net::IpAddr)>> {
    let mut first: *mut libc::ifaddrs = core::ptr::null_mut();
    // SAFETY: room for the address of a list.
    check(unsafe { libc::getifaddrs(&mut first) })?;
    let (mut all, mut next) = (Vec::new(), first);
    // SAFETY: an entry of the list, which stays until it is freed below, or the null after the last one.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: null, or the address of the entry, at least as long as its family says.
        let Some(family) = (unsafe { entry.ifa_addr.as_ref() }).map(|a| c_int::from(a.sa_family)) else { continue };
        let address = match family {
            libc::AF_INET => {
                // SAFETY: see above.
                let a = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                std::net::Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr)).into()
            }
            libc::AF_INET6 => {
                // SAFETY: see above.
                let a = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                std::net::Ipv6Addr::from(a.sin6_addr.s6_addr).into()
            }
            _ => continue,
        };
        if entry.ifa_flags & libc::IFF_UP as u32 != 0 {
            // SAFETY: a name that ends with NUL.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            all.push((name.to_string_lossy().into_owned(), address));
        }
    }
    // SAFETY: the list from above; nothing of it is kept.
    unsafe { libc::freeifaddrs(first) };
    Ok(all)
}

/// A second descriptor of what the program has at this number, which stays as it is; children that are executed do not get it.
pub(crate) fn second(fd: RawFd) -> Result<OwnedFd> {
    // SAFETY: what it makes is this call's own.
    unsafe { made(control(fd, libc::F_DUPFD_CLOEXEC, 3)?) }
}

/// Has this called when the process ends by `exit`, or by a return from `main`.
pub(crate) fn at_exit(last: extern "C" fn()) -> bool {
    calls::atexit(last) == 0
}

/// Makes a process fail that ends by `exit`, or by a return from `main`, with code 0 although it has failed: `why` is called then, and says
/// what to tell the user; `None`: it has not failed after all.
pub(crate) fn fail_at_exit(why: fn() -> Option<String>) -> bool {
    unsafe extern "C" {
        fn on_exit(last: extern "C" fn(c_int, *mut core::ffi::c_void), data: *mut core::ffi::c_void) -> c_int;
        fn exit(code: c_int) -> !;
    }
    extern "C" fn last(code: c_int, why: *mut core::ffi::c_void) {
        // SAFETY: what was handed to `on_exit` below.
        let why: fn() -> Option<String> = unsafe { core::mem::transmute(why) };
        if code == 0
            && let Some(text) = why()
        {
            super::error::say(&text);
            // SAFETY: within `exit` this goes on with what is left to do at the end, and with this code (exit(3), Linux).
            unsafe { exit(1) }
        }
    }
    // SAFETY: a function that stays as long as the program: the shared libraries are never unloaded (build.rs).
    unsafe { on_exit(last, why as *mut core::ffi::c_void) == 0 }
}

/// Ends the process where it stands: nothing is cleaned up, since other threads may be in the middle of anything.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

/// Asks for order between this thread and others: 0; less: the system refuses. The command 0 asks which commands there are.
pub fn membarrier(command: c_int) -> libc::c_long {
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Sleeps until the word is woken by one of these bits, or the clock ([`now_ns`](super::clock::now_ns)) is at `until`; not at all if it is
/// not `seen`. The word may be in memory that processes share.
pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, bits: u32, until: u64) {
    let until = libc::timespec {
        tv_sec: (until / 1_000_000_000) as libc::time_t,
        tv_nsec: (until % 1_000_000_000) as libc::c_long,
    };
    let none = core::ptr::null::<u32>();
    // SAFETY: a word that is mapped as long as the reference; no FUTEX_PRIVATE_FLAG, since other processes wake; the time-out is
    // absolute, as FUTEX_WAIT_BITSET wants it.
    unsafe {
        libc::syscall(libc::SYS_futex, &raw const *word, libc::FUTEX_WAIT_BITSET, seen, &raw const until, none, bits);
    }
}

/// Wakes at most so many who sleep at the word for one of these bits: how many.
pub(crate) fn futex_wake(word: &AtomicU32, bits: u32, most: i32) -> i32 {
    let none = core::ptr::null::<u32>();
    // SAFETY: as for `futex_wait`.
    unsafe { libc::syscall(libc::SYS_futex, &raw const *word, libc::FUTEX_WAKE_BITSET, most, none, none, bits) as i32 }
}
