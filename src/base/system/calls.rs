//! Calls of the C library of whose arguments none can be wrong for the memory of this process: numbers, descriptors, and references to
//! what is read or filled. What they make is the caller's alone; -1 as a descriptor is none.

use core::ffi::{c_int, c_long, c_uint};
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use libc::{pid_t, rlimit, sigset_t, stat, sysinfo};

use crate::base::plain::Plain;

// SAFETY: as libc declares them, with `&` for a pointer that must not be null, `Option<&>` for one that may be; descriptors have the form
// of their numbers. The calls keep nothing of what they are given.
unsafe extern "C" {
    safe fn accept4(
        listener: BorrowedFd<'_>,
        from: Option<&mut libc::sockaddr>,
        len: Option<&mut libc::socklen_t>,
        flags: c_int,
    ) -> Option<OwnedFd>;
    pub(crate) safe fn atexit(last: extern "C" fn()) -> c_int;
    pub(crate) safe fn epoll_create1(flags: c_int) -> Option<OwnedFd>;
    pub(crate) safe fn epoll_ctl(of: c_int, what: c_int, fd: c_int, event: &mut libc::epoll_event) -> c_int;
    pub(crate) safe fn eventfd(count: c_uint, flags: c_int) -> Option<OwnedFd>;
    pub(crate) safe fn fstat(fd: c_int, st: &mut stat) -> c_int;
    pub(crate) safe fn geteuid() -> libc::uid_t;
    pub(crate) safe fn getpgrp() -> pid_t;
    pub(crate) safe fn getrlimit(which: libc::__rlimit_resource_t, limit: &mut rlimit) -> c_int;
    pub(crate) safe fn kill(pid: pid_t, signal: c_int) -> c_int;
    pub(crate) safe fn listen(socket: c_int, to: c_int) -> c_int;
    pub(crate) safe fn pthread_sigmask(how: c_int, new: Option<&sigset_t>, old: Option<&mut sigset_t>) -> c_int;
    pub(crate) safe fn raise(signal: c_int) -> c_int;
    pub(crate) safe fn sched_getcpu() -> c_int;
    pub(crate) safe fn setpgid(pid: pid_t, group: pid_t) -> c_int;
    pub(crate) safe fn setrlimit(which: libc::__rlimit_resource_t, limit: &rlimit) -> c_int;
    pub(crate) safe fn shutdown(socket: c_int, how: c_int) -> c_int;
    pub(crate) safe fn sigaddset(set: &mut sigset_t, signal: c_int) -> c_int;
    pub(crate) safe fn sigfillset(set: &mut sigset_t) -> c_int;
    pub(crate) safe fn signalfd(fd: c_int, set: &sigset_t, flags: c_int) -> Option<OwnedFd>;
    #[link_name = "socket"]
    safe fn new_socket(family: c_int, kind: c_int, protocol: c_int) -> Option<OwnedFd>;
    pub(crate) safe fn sysconf(which: c_int) -> c_long;
    #[link_name = "sysinfo"]
    pub(crate) safe fn system_info(info: &mut sysinfo) -> c_int;
    pub(crate) safe fn tcgetpgrp(fd: c_int) -> pid_t;
}

/// What a call has made.
pub(in crate::base) fn made(new: Option<OwnedFd>) -> Result<OwnedFd> {
    new.ok_or_else(Error::last_os_error)
}

/// Structures of the system of which all bytes may be 0.
///
/// # Safety
/// They may be.
pub(crate) unsafe trait Blank {}

macro_rules! blank {
    ($($kind:ty),*) => {
        // SAFETY: numbers and pointers.
        $(unsafe impl Blank for $kind {})*
    };
}
blank!(
    libc::msghdr,
    libc::mmsghdr,
    libc::sockaddr_storage,
    libc::sockaddr_un,
    libc::siginfo_t,
    rlimit,
    sigset_t,
    stat,
    sysinfo
);

/// One of them.
pub(crate) fn blank<T: Blank>() -> T {
    // SAFETY: as its kind promises.
    unsafe { core::mem::zeroed() }
}

/// What happens now when a signal comes; `None`: there is no such signal.
pub(crate) fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut now = core::mem::MaybeUninit::zeroed();
    // SAFETY: without a new action it only fills the structure, if it says so.
    unsafe { (libc::sigaction(signal, core::ptr::null(), now.as_mut_ptr()) == 0).then(|| now.assume_init()) }
}

/// A command of `fcntl` that takes a number, or nothing and no notice of it.
pub(in crate::base) fn control(fd: c_int, command: c_int, number: c_int) -> Result<c_int> {
    debug_assert!(
        ![libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW].contains(&command),
        "a command that takes an address"
    );
    // SAFETY: takes numbers only.
    super::check(unsafe { libc::fcntl(fd, command, number) })
}

/// An option of a socket.
pub(crate) fn option<T: Plain>(socket: c_int, level: c_int, name: c_int, mut value: T) -> Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: writable for as many bytes as said, and whatever they are they are a value.
    super::check(unsafe { libc::getsockopt(socket, level, name, (&raw mut value).cast(), &mut len) }).map(|_| value)
}

/// Sets an option of a socket.
pub(crate) fn set_option<T: Copy>(socket: c_int, level: c_int, name: c_int, value: T) -> Result<()> {
    // SAFETY: readable for as many bytes as said.
    let r = unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<T>() as u32) };
    super::check(r).map(drop)
}

/// The address of a socket, or of the one that it is connected with, as the system has it.
pub(crate) fn address(socket: c_int, other: bool) -> Result<[u8; size_of::<libc::sockaddr_storage>()]> {
    let mut at = [0; _];
    let mut len = size_of_val(&at) as libc::socklen_t;
    let call = if other { libc::getpeername } else { libc::getsockname };
    // SAFETY: writable for as many bytes as said.
    super::check(unsafe { call(socket, at.as_mut_ptr().cast(), &mut len) }).map(|_| at)
}

/// Gives a socket an address, one of so many bytes.
pub(crate) fn bind(socket: &OwnedFd, at: &impl Blank, len: libc::socklen_t) -> Result<()> {
    assert!(len as usize <= size_of_val(at));
    // SAFETY: readable for so many bytes.
    super::check(unsafe { libc::bind(socket.as_raw_fd(), core::ptr::from_ref(at).cast(), len) }).map(drop)
}

/// Connects it with one.
pub(crate) fn connect(socket: &OwnedFd, to: &impl Blank, len: libc::socklen_t) -> Result<()> {
    assert!(len as usize <= size_of_val(to));
    // SAFETY: readable for so many bytes.
    super::check(unsafe { libc::connect(socket.as_raw_fd(), core::ptr::from_ref(to).cast(), len) }).map(drop)
}

/// A new socket.
pub(crate) fn socket(family: c_int, kind: c_int) -> Result<OwnedFd> {
    made(new_socket(family, kind, 0))
}

/// The next connection in a listener's queue, not to be waited for.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd> {
    made(accept4(listener, None, None, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK))
}
