//! The system calls of first contact: an abstract Unix socket of packets, credentials, descriptors in passing, pidfds.
//!
//! Packets (`SOCK_SEQPACKET`) come whole or not at all, so nobody can hold up a reader with half of one. Abstract names live
//! in the network namespace, not in a file system, and end with their socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

use crate::base::key;
use crate::base::system;
use crate::base::system::calls::{self, blank};

/// `SO_PEERPIDFD` (Linux 6.5), which the libc crate does not have for all targets.
const SO_PEERPIDFD: c_int = 77;

/// The random part of a socket's name.
pub(super) type Name = [u8; 8];

/// The abstract address `\0fmpl-<hex>`.
fn address(name: &Name) -> (libc::sockaddr_un, libc::socklen_t) {
    let mut a: libc::sockaddr_un = blank();
    a.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let text = format!("fmpl-{:016x}", u64::from_be_bytes(*name));
    for (to, from) in a.sun_path[1..].iter_mut().zip(text.bytes()) {
        *to = from as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + text.len();
    (a, len as libc::socklen_t)
}

fn socket(flags: c_int) -> io::Result<OwnedFd> {
    calls::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags)
}

/// A socket of a new random name that listens; accepting never blocks.
pub(super) fn listen() -> io::Result<(OwnedFd, Name)> {
    let fd = socket(libc::SOCK_NONBLOCK)?;
    let mut name = Name::default();
    key::fill(&mut name)?;
    let (a, len) = address(&name);
    calls::bind(&fd, &a, len)?;
    // The kernel cuts the number down to net.core.somaxconn.
    system::listen(&fd, 4096)?;
    Ok((fd, name))
}

/// Connects, waiting for a place in the listener's queue if need be (`WouldBlock` when none became free in time).
pub(super) fn connect(name: &Name, timeout: Duration) -> io::Result<OwnedFd> {
    let fd = socket(0)?;
    let timeout = timeout.max(Duration::from_millis(1));
    let tv = libc::timeval { tv_sec: timeout.as_secs() as libc::time_t, tv_usec: timeout.subsec_micros().into() };
    calls::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDTIMEO, tv)?;
    let (a, len) = address(name);
    calls::connect(&fd, &a, len)?;
    Ok(fd)
}

/// The next connection in the listener's queue (`WouldBlock`: there is none).
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    calls::accept(listener)
}

/// Who is at the other end, as the kernel knows it: whoever connected, or whoever listened.
pub(super) fn credentials(fd: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let said = calls::option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, [0, u32::MAX, u32::MAX]);
    said.map(|[pid, uid, gid]| libc::ucred { pid: pid as libc::pid_t, uid, gid })
}

/// A pidfd of the process at the other end, which [`credentials`] gave this `pid`. `None`: it has ended. `ConnectionAborted`: it has closed
/// the connection, and this kernel (older than 6.5) does not tell whether the number still means it.
pub(super) fn pidfd(fd: BorrowedFd<'_>, pid: libc::pid_t) -> io::Result<Option<OwnedFd>> {
    match calls::option(fd.as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, -1) {
        // SAFETY: the call made a new descriptor, which nobody else knows.
        Ok(pidfd) => return Ok(Some(unsafe { OwnedFd::from_raw_fd(pidfd) })),
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => {}
        Err(e) => return gone_or(e),
    }
    let pidfd = match system::process_descriptor(pid) {
        Ok(pidfd) => pidfd,
        Err(e) => return gone_or(e),
    };
    // As long as its end of the connection is open the process lives, and a living process keeps its number.
    let mut p = [libc::pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 }];
    poll(&mut p, Duration::ZERO)?;
    if p[0].revents & (libc::POLLHUP | libc::POLLERR) == 0 || has_ended(pidfd.as_fd()) {
        return Ok(Some(pidfd));
    }
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn gone_or(e: io::Error) -> io::Result<Option<OwnedFd>> {
    match e.raw_os_error() {
        // What kernels have called a process that is gone and reaped.
        Some(libc::ESRCH | libc::EINVAL | libc::ENODATA) => Ok(None),
        _ => Err(e),
    }
}

/// Waits until one of the descriptors is ready; returns at a signal too.
pub(super) fn poll(fds: &mut [libc::pollfd], timeout: Duration) -> io::Result<()> {
    let ms = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
    match system::poll(fds, ms) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => {
            fds.iter_mut().for_each(|p| p.revents = 0);
            Ok(())
        }
        r => r.map(drop),
    }
}

/// Has the process of this pidfd ended? (Ended, not reaped.)
pub(super) fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut p = [libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    poll(&mut p, Duration::ZERO).is_ok() && p[0].revents != 0
}

/// Has the other end of this connection been closed?
pub(super) fn has_closed(fd: BorrowedFd<'_>) -> bool {
    let mut p = [libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 }];
    poll(&mut p, Duration::ZERO).is_ok() && p[0].revents != 0
}

/// Room for the control messages of one packet: a few descriptors, so that more than the wanted one is noticed.
const CONTROL_LEN: usize = 64;
#[repr(C, align(8))]
struct Control([u8; CONTROL_LEN]);

/// Sends one packet, with a descriptor if one is given. Never blocks, never raises SIGPIPE.
pub(super) fn send(fd: BorrowedFd<'_>, packet: &[u8], with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut iov = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
    let mut control = Control([0; CONTROL_LEN]);
    let mut m: libc::msghdr = blank();
    m.msg_iov = &mut iov;
    m.msg_iovlen = 1;
    if let Some(with) = with {
        // SAFETY: pure arithmetic.
        m.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as _;
        m.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the control buffer is aligned and long enough for one message of one descriptor.
        unsafe {
            let c = libc::CMSG_FIRSTHDR(&m);
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = libc::SCM_RIGHTS;
            (*c).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
            libc::CMSG_DATA(c).cast::<c_int>().write_unaligned(with.as_raw_fd());
        }
    }
    // SAFETY: m and all it points to are valid during the call.
    let n = unsafe { libc::sendmsg(fd.as_raw_fd(), &m, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes one packet, if one is there (`WouldBlock` else). Returns its length, 0 for the end of the connection, and the descriptors
/// that came with it. A packet longer than `buf` counts as one of `buf.len() + 1` bytes. `EMFILE`: a packet was there, and a
/// descriptor with it for which this process had no room; both are lost.
pub(super) fn receive(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut iov = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let mut control = Control([0; CONTROL_LEN]);
    let mut m: libc::msghdr = blank();
    m.msg_iov = &mut iov;
    m.msg_iovlen = 1;
    m.msg_control = control.0.as_mut_ptr().cast();
    m.msg_controllen = CONTROL_LEN as _;
    // SAFETY: m and all it points to are valid during the call.
    let n = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut m, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut fds = Vec::new();
    // SAFETY: the kernel has written well-formed control messages; each descriptor in them is new and ours.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&m);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*c).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for i in 0..bytes / size_of::<c_int>() {
                    fds.push(OwnedFd::from_raw_fd(libc::CMSG_DATA(c).cast::<c_int>().add(i).read_unaligned()));
                }
            }
            c = libc::CMSG_NXTHDR(&m, c);
        }
    }
    // Of several descriptors some would have come: the room for them here is for more than one.
    if fds.is_empty() && m.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    let len = if m.msg_flags & libc::MSG_TRUNC != 0 { buf.len() + 1 } else { n as usize };
    Ok((len, fds))
}
