//! Calls of the system, on sockets that do not wait.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::congestion::Algorithm;
use crate::base::system::calls;
use crate::base::system::epoll::{Epoll, Event};
use crate::base::system::{self, set_option};
use crate::fabric::served::port::native;

/// What a socket has taken or given; `None`: nothing now.
fn done(r: Result<usize>) -> Result<Option<usize>> {
    match r {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        r => r.map(Some),
    }
}

/// Sends bytes.
#[inline]
pub(super) fn send(fd: RawFd, bytes: &[u8]) -> Result<Option<usize>> {
    done(system::send(&fd, bytes, libc::MSG_DONTWAIT))
}

/// Receives into a buffer.
#[inline]
pub(super) fn receive(fd: RawFd, into: &mut [u8]) -> Result<Option<usize>> {
    done(system::receive(&fd, into))
}

/// A call that goes through many parts: how many bytes.
fn counted(r: isize) -> Result<usize> {
    usize::try_from(r).map_err(|_| Error::last_os_error())
}

/// Sends what lies at several places.
///
/// # Safety
/// It can be read, except that memory may be unmapped: that is an error.
pub(super) unsafe fn send_all(fd: RawFd, parts: &[libc::iovec]) -> Result<Option<usize>> {
    // SAFETY: a message that is all zero is an empty one; otherwise as the caller promises.
    done(counted(unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (parts.as_ptr().cast_mut(), parts.len());
        libc::sendmsg(fd, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    }))
}

/// Receives to several places.
///
/// # Safety
/// They may be written, except that memory may be unmapped: that is an error.
pub(super) unsafe fn receive_all(fd: RawFd, parts: &mut [libc::iovec]) -> Result<Option<usize>> {
    // SAFETY: as the caller promises.
    done(counted(unsafe { libc::readv(fd, parts.as_ptr(), parts.len() as libc::c_int) }))
}

/// What every connection is set to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Silence is noticed after so many milliseconds.
    pub silence_ms: u32,
    pub congestion: Algorithm,
}

impl Terms {
    /// Sets a connection to them; and nothing is held back.
    pub fn settle(&self, socket: &OwnedFd) {
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, self.silence_ms as i32);
        self.congestion.settle(socket);
    }
}

/// Begins to connect; what is sent before it has comes to nothing yet.
pub(super) fn dial(to: SocketAddr) -> Result<OwnedFd> {
    let (family, kind) = (
        if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 },
        libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
    );
    let socket = calls::socket(family, kind)?;
    let (there, len) = native(to);
    match calls::connect(&socket, &there, len) {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
        _ => Ok(socket),
    }
}

/// Says which of many sockets have something to be done.
#[derive(Debug)]
pub(super) struct Watch(Epoll);

/// What is told of: that something has come; with `room` also that it takes more.
fn events(room: bool) -> libc::c_int {
    libc::EPOLLIN | if room { libc::EPOLLOUT } else { 0 }
}

impl Watch {
    pub fn new() -> Result<Watch> {
        Epoll::new().map(Watch)
    }
    /// From now on this socket is told of by this name.
    pub fn add(&self, fd: RawFd, name: u64, room: bool) -> Result<()> {
        self.0.add(fd, events(room), name)
    }
    /// The same for one that is told of already.
    pub fn change(&self, fd: RawFd, name: u64, room: bool) -> Result<()> {
        self.0.change(fd, events(room), name)
    }
    /// No more.
    pub fn remove(&self, fd: RawFd) {
        self.0.remove(fd);
    }
    /// Those that have something now.
    #[inline]
    pub fn look<'a>(&self, into: &'a mut [Event]) -> &'a [Event] {
        self.0.wait(into, 0)
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
