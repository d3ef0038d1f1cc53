//! Calls of the system, on sockets that do not wait.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::base::system::set_option;

/// What a socket has taken or given; `None`: nothing now.
pub(super) fn done(r: isize) -> Result<Option<usize>> {
    if r >= 0 {
        return Ok(Some(r as usize));
    }
    let error = Error::last_os_error();
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

/// Sends bytes.
#[inline]
pub(super) fn send(fd: RawFd, bytes: &[u8]) -> Result<Option<usize>> {
    // SAFETY: the bytes are there.
    done(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) })
}

/// Sends what lies at several places.
///
/// # Safety
/// It can be read, except that memory may be unmapped: that is an error.
pub(super) unsafe fn send_all(fd: RawFd, parts: &[libc::iovec]) -> Result<Option<usize>> {
    // SAFETY: a message that is all zero is an empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (parts.as_ptr().cast_mut(), parts.len());
    // SAFETY: as the caller promises.
    done(unsafe { libc::sendmsg(fd, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) })
}

/// Receives into a buffer.
#[inline]
pub(super) fn receive(fd: RawFd, into: &mut [u8]) -> Result<Option<usize>> {
    // SAFETY: the buffer is as long as said.
    done(unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) })
}

/// Receives to several places.
///
/// # Safety
/// They may be written, except that memory may be unmapped: that is an error.
pub(super) unsafe fn receive_all(fd: RawFd, parts: &mut [libc::iovec]) -> Result<Option<usize>> {
    // SAFETY: as in `send_all`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (parts.as_mut_ptr(), parts.len());
    // SAFETY: as the caller promises.
    done(unsafe { libc::recvmsg(fd, &mut message, libc::MSG_DONTWAIT) })
}

/// Copies memory of this process that may be unmapped behind what is there. `None`: it is.
pub(super) fn copy(at: usize, len: usize, to: &mut Vec<u8>) -> Option<()> {
    let before = to.len();
    to.resize(before + len, 0);
    let from = libc::iovec { iov_base: at as *mut _, iov_len: len };
    let into = libc::iovec { iov_base: to[before..].as_mut_ptr().cast(), iov_len: len };
    // SAFETY: the system writes to the buffer, which is as long as said, and looks whether the rest can be read.
    let n = unsafe { libc::process_vm_readv(libc::getpid(), &into, 1, &from, 1, 0) };
    (n == len as isize).then_some(())
}

/// What every connection is set to: nothing is held back, and silence is noticed after so many milliseconds.
pub(super) fn settle(socket: &OwnedFd, silence_ms: u32) {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, silence_ms as i32);
}

/// Begins to connect; what is sent before it has comes to nothing yet.
pub(super) fn dial(to: SocketAddr) -> Result<OwnedFd> {
    let (family, kind) = (
        if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 },
        libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
    );
    // SAFETY: takes numbers; what it makes is this call's own.
    let socket = unsafe {
        let fd = libc::socket(family, kind, 0);
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let r = match to {
        SocketAddr::V4(v4) => {
            let a = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: an address as long as said.
            unsafe { libc::connect(socket.as_raw_fd(), (&raw const a).cast(), size_of_val(&a) as u32) }
        }
        SocketAddr::V6(v6) => {
            let a = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: Ipv6Addr::octets(v6.ip()) },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: an address as long as said.
            unsafe { libc::connect(socket.as_raw_fd(), (&raw const a).cast(), size_of_val(&a) as u32) }
        }
    };
    match r {
        0 => Ok(socket),
        _ => match Error::last_os_error() {
            e if e.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
            e => Err(e),
        },
    }
}

/// Says which of many sockets have something to be done.
#[derive(Debug)]
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub fn new() -> Result<Watch> {
        // SAFETY: takes numbers; what it makes is this call's own.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: a new descriptor that nobody else has.
        if fd < 0 { Err(Error::last_os_error()) } else { Ok(Watch(unsafe { OwnedFd::from_raw_fd(fd) })) }
    }
    fn set(&self, what: libc::c_int, fd: RawFd, name: u64, room: bool) -> Result<()> {
        let events = libc::EPOLLIN | if room { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events as u32, u64: name };
        // SAFETY: takes numbers and a structure.
        let r = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd, &mut event) };
        if r < 0 { Err(Error::last_os_error()) } else { Ok(()) }
    }
    /// From now on this socket is told of by this name, when something has come; with `room` also when it takes more.
    pub fn add(&self, fd: RawFd, name: u64, room: bool) -> Result<()> {
        self.set(libc::EPOLL_CTL_ADD, fd, name, room)
    }
    /// The same for one that is told of already.
    pub fn change(&self, fd: RawFd, name: u64, room: bool) -> Result<()> {
        self.set(libc::EPOLL_CTL_MOD, fd, name, room)
    }
    /// No more.
    pub fn remove(&self, fd: RawFd) {
        let _ = self.set(libc::EPOLL_CTL_DEL, fd, 0, false);
    }
    /// Those that have something now.
    #[inline]
    pub fn look<'a>(&self, events: &'a mut [libc::epoll_event]) -> &'a [libc::epoll_event] {
        // SAFETY: room for as many as said.
        let n = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, 0) };
        &events[..n.max(0) as usize]
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
