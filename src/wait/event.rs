//! The event descriptor: readable when a request of this process has completed, for programs built around `poll` or `epoll`.
//!
//! A receive that is posted while the descriptor exists asks its sender, in the sleep byte of its line, to ring the process's event
//! bell. One thread sleeps on that bell and writes the descriptor, so that senders know nothing of descriptors.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::board::Board;
use super::doorbell;
use crate::base::error::{Error, Result};

/// The descriptor and the thread that writes it.
pub struct Event {
    fd: Arc<OwnedFd>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    board: &'static Board,
}

impl Event {
    /// Makes the descriptor and starts its thread. The board must stay mapped until this is dropped.
    pub fn new(board: &'static Board) -> Result<Event> {
        // SAFETY: eventfd takes numbers only; the descriptor is ours from here on.
        let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if raw < 0 {
            return Err(Error::system("making the event descriptor (eventfd)"));
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let fd = Arc::new(unsafe { OwnedFd::from_raw_fd(raw) });
        let stop = Arc::new(AtomicBool::new(false));
        let (thread_fd, thread_stop) = (fd.clone(), stop.clone());
        // Before the thread runs, or a ring that comes before it has looked would be lost.
        let mut seen = board.event_bell.load(std::sync::atomic::Ordering::Acquire);
        let thread = std::thread::Builder::new()
            .name("fmpl-event".into())
            .stack_size(64 * 1024)
            .spawn(move || {
                while !thread_stop.load(Ordering::Acquire) {
                    doorbell::sleep(&board.event_bell, seen, u32::MAX, 1_000_000_000);
                    let now = board.event_bell.load(std::sync::atomic::Ordering::Acquire);
                    if now != seen {
                        seen = now;
                        signal(thread_fd.as_raw_fd());
                    }
                }
            })
            .map_err(|e| Error::new(crate::Code::System, format!("starting the event thread: {e}")))?;
        Ok(Event { fd, stop, thread: Some(thread), board })
    }

    /// The descriptor; it stays the library's.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Makes the descriptor readable now: a request completed before its peer could be asked to ring.
    pub fn signal(&self) {
        signal(self.fd());
    }
}

fn signal(fd: RawFd) {
    let one = 1u64;
    // SAFETY: eight readable bytes. A full counter (EAGAIN) is readable already.
    unsafe { libc::write(fd, (&one as *const u64).cast(), 8) };
}

impl Drop for Event {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        doorbell::ring(&self.board.event_bell, u32::MAX);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
