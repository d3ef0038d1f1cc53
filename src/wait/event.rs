//! The event descriptor: readable when a request of this process has completed, for programs built around `poll` or `epoll`.
//!
//! A receive that is posted while the descriptor exists asks its sender, in the sleep byte of its line, to ring the process's event
//! bell. One thread sleeps on that bell and writes the descriptor, so that senders know nothing of descriptors.
//!
//! Where the order of the asking and of a last look for the message cannot be had ([`doorbell`]), the sender may overlook the asking, and the
//! look the message. Then the thread also writes the descriptor by the clock, after 200 us, and [`LOOKS`] times in all, each after twice
//! the time: so the program tests its requests again, and what it overlooked is there long since. After that only what is begun anew
//! makes it do so again.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::board::Board;
use super::doorbell;
use crate::base::error::{Error, Result, error};
use crate::base::system;

/// How often the descriptor is written by the clock: the last time 1.6 s after the request.
const LOOKS: u32 = 13;
const FIRST_LOOK_NS: u64 = 200_000;
const LONG_NS: u64 = 1_000_000_000;

/// The descriptor and the thread that writes it.
pub struct Event {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
    board: &'static Board,
}

struct Shared {
    fd: OwnedFd,
    stop: AtomicBool,
    /// How often the descriptor is still to be written by the clock.
    looks: AtomicU32,
    /// In models: the bell as it was seen last.
    #[cfg(loom)]
    seen: AtomicU32,
}

impl Event {
    /// Makes the descriptor and starts its thread. The board must stay mapped until this is dropped.
    pub fn new(board: &'static Board) -> Result<Event> {
        let mut event = Event::without_thread(board)?;
        // Before the thread runs, or a ring that comes before it has looked would be lost.
        let seen = board.event_bell.load(Ordering::Acquire);
        let shared = event.shared.clone();
        let thread = crate::base::thread::spawn("fmpl-event", 64 << 10, move || shared.run(board, seen))
            .map_err(|e| error!(crate::Code::System, "starting the event thread: {e}"))?;
        event.thread = Some(thread);
        Ok(event)
    }

    fn without_thread(board: &'static Board) -> Result<Event> {
        let fd = system::event().map_err(|_| Error::system("making the event descriptor (eventfd)"))?;
        let shared = Shared {
            fd,
            stop: AtomicBool::new(false),
            looks: AtomicU32::new(0),
            #[cfg(loom)]
            seen: AtomicU32::new(0),
        };
        Ok(Event { shared: Arc::new(shared), thread: None, board })
    }

    /// The descriptor; it stays the library's.
    pub fn fd(&self) -> RawFd {
        self.shared.fd.as_raw_fd()
    }

    /// Makes the descriptor readable now: a request completed before its peer could be asked to ring.
    pub fn signal(&self) {
        self.shared.signal();
    }

    /// A request has asked for a ring without the order of both sides.
    #[cold]
    #[cfg_attr(loom, track_caller)]
    pub fn look_again(&self) {
        #[cfg(loom)]
        if crate::base::shadow::is_lost() {
            return;
        }
        // In the first of its sleeps the thread wakes soon enough.
        if self.shared.looks.swap(LOOKS, Ordering::AcqRel) != LOOKS && self.thread.is_some() {
            doorbell::ring(&self.board.event_bell, u32::MAX);
        }
    }
}

impl Shared {
    fn run(&self, board: &Board, mut seen: u32) {
        while !self.stop.load(Ordering::Acquire) {
            let looks = self.looks.load(Ordering::Acquire);
            let limit = if looks == 0 { LONG_NS } else { FIRST_LOOK_NS << (LOOKS - looks) };
            doorbell::sleep(&board.event_bell, seen, u32::MAX, limit);
            let now = board.event_bell.load(Ordering::Acquire);
            if now != seen {
                seen = now;
                self.signal();
            } else if looks != 0 {
                // Unless another request has asked meanwhile.
                let _ = self.looks.compare_exchange(looks, looks - 1, Ordering::Relaxed, Ordering::Relaxed);
                self.signal();
            }
        }
    }

    fn signal(&self) {
        // A full counter (EAGAIN) is readable already.
        system::tell(&self.fd);
    }
}

/// The descriptor of a model, whose program does the thread's part when it sleeps.
#[cfg(loom)]
impl Event {
    /// As [`Event::new`].
    pub fn in_model(board: &'static Board) -> Result<Event> {
        Event::without_thread(board)
    }

    /// At the beginning of an execution.
    pub fn renew(&self) {
        self.shared.looks.store(0, Ordering::Relaxed);
        self.shared.seen.store(0, Ordering::Relaxed);
        self.is_readable();
    }

    fn is_readable(&self) -> bool {
        system::hear(&self.fd()).unwrap_or(false)
    }

    /// Sleeps until the descriptor is readable. Of the looks by the clock there is the last one.
    pub fn wait(&self) {
        let seen = self.shared.seen.load(Ordering::Relaxed);
        if self.is_readable() {
            return;
        }
        if self.shared.looks.swap(0, Ordering::Relaxed) != 0 {
            return doorbell::pause();
        }
        doorbell::sleep(&self.board.event_bell, seen, u32::MAX, u64::MAX / 4);
        self.shared.seen.store(self.board.event_bell.load(Ordering::Acquire), Ordering::Relaxed);
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        doorbell::ring(&self.board.event_bell, u32::MAX);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
