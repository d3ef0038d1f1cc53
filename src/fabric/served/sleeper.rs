//! The sleep of the fabric's thread, on a network where things go on only while somebody calls: it stays aside as long as others do.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::base::system::{event, hear, poll_for, tell};

/// While threads that wait do the calling, the thread of the fabric looks only so often.
const ASIDE: Duration = Duration::from_micros(500);

/// See the head of this file.
#[derive(Debug)]
pub(in crate::fabric) struct Sleeper {
    /// Who sleeps.
    thread: OnceLock<ThreadId>,
    /// Calls by others, and how many there were when the thread slept last.
    driven: AtomicU64,
    seen: AtomicU64,
    /// The thread looks within a moment.
    looks: AtomicBool,
    wake: OwnedFd,
}

/// A descriptor that is waited for until something comes there.
pub(in crate::fabric) fn readable(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

impl Sleeper {
    /// Nobody sleeps yet.
    pub fn new() -> io::Result<Sleeper> {
        Ok(Sleeper {
            thread: OnceLock::new(),
            driven: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            looks: AtomicBool::new(false),
            wake: event()?,
        })
    }
    /// Is the caller the thread that sleeps here?
    pub fn is_caller(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }
    /// Another thread calls; how many calls there have been before.
    #[inline]
    pub fn is_driven(&self) -> u64 {
        self.driven.fetch_add(1, Ordering::Relaxed)
    }
    /// May what nobody waits for be held back? Asked when that is counted among what is owed.
    #[inline]
    pub fn lets_wait(&self) -> bool {
        // SYNC POINT: pairs with `sleep`: the thread sees that something is owed, or this that it sleeps.
        self.looks.load(Ordering::SeqCst)
    }
    /// Somebody has collected; `some`: something has come that the thread deals with.
    pub fn has_come(&self, some: bool) {
        if some && !self.is_caller() {
            self.wake();
        }
    }
    /// Ends the sleep, or the next one if nobody sleeps.
    pub fn wake(&self) {
        tell(&self.wake);
    }

    /// Where it is woken, for who sleeps elsewhere; and who does is awake.
    pub fn fd(&self) -> RawFd {
        self.wake.as_raw_fd()
    }
    pub fn is_heard(&self) {
        let _ = hear(&self.wake);
    }

    /// Sleeps for so long at most, unless something is `told`: `rest` does when nobody else calls, until the descriptor that it is given or
    /// something else has something. `true`: something is told.
    pub fn sleep(&self, at_most: Option<Duration>, told: impl Fn() -> bool, rest: impl FnOnce(libc::pollfd)) -> bool {
        let _ = self.thread.set(std::thread::current().id());
        let until = at_most.map(|t| Instant::now() + t);
        // As long as others call there is nothing to be done here.
        while !told() {
            let driven = self.driven.load(Ordering::Relaxed);
            if driven == self.seen.swap(driven, Ordering::Relaxed) {
                // SYNC POINT: pairs with `lets_wait`.
                if self.looks.swap(false, Ordering::SeqCst) {
                    // They may have left something.
                    return false;
                }
                break;
            }
            self.looks.store(true, Ordering::Relaxed);
            let left = until.map_or(ASIDE, |t| t.saturating_duration_since(Instant::now()).min(ASIDE));
            let mut fds = [readable(&self.wake)];
            let _ = poll_for(&mut fds, Some(left));
            if fds[0].revents != 0 || left < ASIDE {
                let _ = hear(&self.wake);
                return told();
            }
        }
        if !told() {
            rest(readable(&self.wake));
        }
        let _ = hear(&self.wake);
        told()
    }
}
