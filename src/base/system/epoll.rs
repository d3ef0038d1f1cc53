//! Many descriptors, of which those are told to which something has happened.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{calls, check};

/// What happens to a descriptor: which events, and the word by which it is told of.
pub(crate) type Event = libc::epoll_event;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    /// Of none yet.
    pub fn new() -> Result<Epoll> {
        calls::made(calls::epoll_create1(libc::EPOLL_CLOEXEC)).map(Epoll)
    }
    fn control(&self, what: libc::c_int, fd: RawFd, events: libc::c_int, word: u64) -> Result<()> {
        let mut event = Event { events: events as u32, u64: word };
        check(calls::epoll_ctl(self.0.as_raw_fd(), what, fd, &mut event)).map(|_| ())
    }
    /// These events of this descriptor are told by this word from now on.
    pub fn add(&self, fd: RawFd, events: libc::c_int, word: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, word)
    }
    /// Others, of one that is there.
    pub fn change(&self, fd: RawFd, events: libc::c_int, word: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, word)
    }
    /// Nothing of it any more.
    pub fn remove(&self, fd: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }
    /// Waits for some, for so many milliseconds at most; -1: for ever.
    #[inline]
    pub fn wait<'a>(&self, events: &'a mut [Event], ms: libc::c_int) -> &'a [Event] {
        // SAFETY: room for as many as said.
        let n = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, ms) };
        &events[..usize::try_from(n).unwrap_or(0)]
    }
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
