//! What comes to a socket: groups of datagrams, received into buffers, or, if they are long, where their bytes belong.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use super::rings::Lively;
use crate::base::system::calls::blank;
use crate::fabric::datagram::carrier::{GROUPED, Long, Taker};
use crate::fabric::datagram::packet::{HEAD_OF_LONG, of_long_write};
use crate::fabric::served::memory::Target;

/// Groups that are received by one call; and those that are received where they belong before their senders hear of it.
const RECEIVED: usize = 16;
const PLACED: usize = 4;
/// Bytes of a place where a group is received.
const PLACE: usize = 64 << 10;
/// From so many bytes on it pays to look first where a group belongs.
const LONG: usize = 4 << 10;
/// So often it is looked at where the next group belongs after one of a long write.
const LOOKS: u32 = 32;

/// Words in which the system is told, or tells, how long each datagram of a group is.
pub(super) type Control = [u64; 4];

/// Where datagrams are received, each group at its place, as the system is told of it.
pub(super) struct Buffers {
    bytes: Vec<u8>,
    /// What the messages point to.
    _parts: Vec<libc::iovec>,
    control: Vec<Control>,
    messages: Vec<libc::mmsghdr>,
    /// How often it is still to be looked where the next belongs; and whether there was memory where that could not be received.
    looks: u32,
    fails: bool,
    pub lively: Lively,
}

// SAFETY: what the pointers are to is the structure's own.
unsafe impl Send for Buffers {}

impl Buffers {
    pub fn new() -> Buffers {
        let mut bytes = vec![0; RECEIVED * PLACE];
        let part = |at: &mut [u8]| libc::iovec { iov_base: at.as_mut_ptr().cast(), iov_len: PLACE };
        let parts: Vec<libc::iovec> = bytes.chunks_exact_mut(PLACE).map(part).collect();
        let control = vec![Control::default(); RECEIVED];
        let mut messages: Vec<libc::mmsghdr> = vec![blank(); RECEIVED];
        for (message, part) in messages.iter_mut().zip(&parts) {
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (std::ptr::from_ref(part).cast_mut(), 1);
        }
        Buffers { bytes, _parts: parts, control, messages, looks: 0, fails: false, lively: Lively::default() }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Hands over what has come to a socket, some groups; may there be more?
    pub fn receive(&mut self, socket: &UdpSocket, with: &mut dyn Taker) -> io::Result<bool> {
        for _ in 0..PLACED {
            if self.looks == 0 || !self.place(socket, with)? {
                return self.take(socket, with);
            }
        }
        Ok(true)
    }

    /// Receives the next group where it belongs, if it is long and that can be told.
    fn place(&mut self, socket: &UdpSocket, with: &mut dyn Taker) -> io::Result<bool> {
        let mut head = [0; HEAD_OF_LONG];
        let (each, whole) = look(socket, &mut head)?;
        self.looks -= 1;
        if whole.div_ceil(each) > GROUPED || !is_long(&head, whole) {
            return Ok(false);
        }
        let mut received = Ok(());
        let placed = with.place(&Long { head, each, whole }, &mut |target, heads| {
            received = receive_there(socket, target, heads, each);
            received.is_ok()
        });
        match received {
            Ok(()) if placed => self.looks = LOOKS,
            Ok(()) => {}
            // It is lost; when it comes again it is taken, and whoever wrote there hears why that cannot be.
            Err(e) if e.raw_os_error() == Some(libc::EFAULT) => (self.looks, self.fails) = (0, true),
            // Something else was told, and it is still there.
            Err(e) => return Err(e),
        }
        Ok(placed)
    }

    /// Receives into the buffers.
    fn take(&mut self, socket: &UdpSocket, with: &mut dyn Taker) -> io::Result<bool> {
        let Buffers { bytes, control, messages, .. } = self;
        for (message, words) in messages.iter_mut().zip(control) {
            if message.msg_hdr.msg_controllen != size_of::<Control>() as _ {
                message.msg_hdr.msg_control = words.as_mut_ptr().cast();
                message.msg_hdr.msg_controllen = size_of::<Control>() as _;
            }
        }
        // SAFETY: buffers as long as said, this thread's.
        let n = unsafe {
            let (fd, none) = (socket.as_raw_fd(), std::ptr::null_mut());
            libc::recvmmsg(fd, messages.as_mut_ptr(), RECEIVED as u32, libc::MSG_DONTWAIT, none)
        };
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        for (message, group) in messages[..n].iter().zip(bytes.chunks_exact(PLACE)) {
            let len = message.msg_len as usize;
            let each = length_of_each(&message.msg_hdr, len);
            if is_long(group, len) && !self.fails {
                self.looks = LOOKS;
            }
            group[..len].chunks(each).for_each(|datagram| with.take(datagram));
        }
        Ok(n == RECEIVED)
    }
}

/// Does it pay to look where a group of so many bytes belongs, since all of it may be of one write?
fn is_long(begins: &[u8], whole: usize) -> bool {
    whole >= LONG && of_long_write(begins).is_some_and(|bytes| bytes >= LONG)
}

/// The first bytes of the next group, which stays; how long each of its datagrams is, and all of it.
fn look(socket: &UdpSocket, head: &mut [u8; HEAD_OF_LONG]) -> io::Result<(usize, usize)> {
    let mut part = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
    let mut control = Control::default();
    let mut message = blank::<libc::msghdr>();
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    let flags = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: a buffer and words as long as said.
    let whole = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let whole = usize::try_from(whole).map_err(|_| io::Error::last_os_error())?;
    Ok((length_of_each(&message, whole), whole))
}

/// Receives a group: the heads of its datagrams, and what follows them, one after the other.
fn receive_there(socket: &UdpSocket, target: &Target<'_>, heads: &mut [u8], each: usize) -> io::Result<()> {
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2 * GROUPED];
    let (mut n, mut from) = (0, 0);
    for head in heads.chunks_exact_mut(HEAD_OF_LONG) {
        let len = (each - HEAD_OF_LONG).min(target.len() - from);
        parts[n] = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: HEAD_OF_LONG };
        parts[n + 1] = target.part(from, len);
        (n, from) = (n + 2, from + len);
    }
    let mut message = blank::<libc::msghdr>();
    (message.msg_iov, message.msg_iovlen) = (parts.as_mut_ptr(), n as _);
    // SAFETY: parts of the heads, and of memory that peers may write as long as the target lives; if nothing is mapped there the system says so.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let whole = heads.len() + target.len();
    if got == whole { Ok(()) } else { Err(io::Error::other("another group than that which was looked at")) }
}

/// How long each datagram of a group is that has come; of one by itself, as long as it is.
fn length_of_each(message: &libc::msghdr, whole: usize) -> usize {
    // SAFETY: what the call has filled.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(message);
        if first.is_null() || (*first).cmsg_level != libc::SOL_UDP || (*first).cmsg_type != libc::UDP_GRO {
            return whole.max(1);
        }
        (libc::CMSG_DATA(first).cast::<i32>().read_unaligned().max(1)) as usize
    }
}
