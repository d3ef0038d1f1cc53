//! What goes out: at once as far as the socket takes it, the rest when somebody calls; what nobody waits for goes with the next frame, when this
//! side waits, or within a moment.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::{Connection, code_of};
use crate::base::lock::lock;
use crate::fabric::network::device::Completion;
use crate::fabric::served::frame::{HEADER, Name};
use crate::fabric::tcp::socket;

/// Bytes of records that are held back at most until something else goes.
const HELD: usize = 8 << 10;
/// Parts of what is queued that leave by one call.
const PARTS: usize = 16;

/// A write of so many bytes is long: how they are copied is most of what it takes.
pub(super) const LONG: usize = 16 << 10;
/// The instruction by which the system copies (`rep movsb`) is slow where what it writes lies less than a line behind what it reads, by the lower
/// bits of their addresses: it reads each line that it writes then, which takes twice as long where another core has it.
const ALIKE: u64 = 4096;
const LINE: u64 = 64;
/// Frames that say nothing in front of a write at most.
pub(super) const IDLE_MOST: usize = (LINE as usize).div_ceil(HEADER);

/// How many frames that say nothing go in front of a write whose bytes lie here at `at`, with `front` bytes before them. Where all that was sent
/// before has come, the system puts what it is given at once at the beginning of a page.
pub(super) fn idle_before(at: u64, front: usize) -> usize {
    let lies_behind = |idle: usize| ((front + idle * HEADER) as u64).wrapping_sub(at) % ALIKE;
    (0..IDLE_MOST).find(|idle| !(1..LINE).contains(&lies_behind(*idle))).unwrap_or(IDLE_MOST)
}

/// What the socket has not taken.
#[derive(Debug)]
pub(super) enum Part {
    Bytes(Vec<u8>),
    Memory(u64, usize),
}

impl Part {
    fn iov(&self) -> libc::iovec {
        match self {
            Part::Bytes(bytes) => iov(bytes.as_ptr() as u64, bytes.len()),
            Part::Memory(at, len) => iov(*at, *len),
        }
    }
}

pub(super) fn iov(at: u64, len: usize) -> libc::iovec {
    libc::iovec { iov_base: at as *mut _, iov_len: len }
}

/// What goes out.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub other: Option<Name>,
    /// Number of the last request, and of the last one that tells of its end.
    pub last: u64,
    pub asked: u64,
    /// What the socket has not taken, or was not given: what nobody waits for goes with the next frame, or when this side waits. The frames that
    /// were held back last stand together behind the rest.
    pub queue: VecDeque<Part>,
    pub held: Vec<u8>,
    /// Bytes of its first part that have left.
    pub left: usize,
    /// When a record was posted last.
    pub posted_ns: u64,
    /// The system is asked to tell when the socket takes more.
    pub watched: bool,
    pub failed: Option<Completion>,
    /// Broken off, or refused.
    pub broken: bool,
}

impl Out {
    /// Bytes that are kept here until the socket takes them.
    pub fn copies(&self) -> usize {
        let of = |part: &Part| if let Part::Bytes(bytes) = part { bytes.len() } else { 0 };
        self.held.len() + self.queue.iter().map(of).sum::<usize>()
    }
}

impl Connection {
    /// Something has not left. It does when somebody calls next, which the thread does within a moment, or now.
    pub(super) fn has_left_over(&self, out: &mut Out, later: bool) {
        self.held.begins(&self.home.owing);
        if !later {
            self.held.is_waited_for();
        }
        if !self.home.lets_wait() {
            self.send_queue(out);
        }
    }

    /// Nothing is to leave any more.
    pub(super) fn has_nothing(&self, out: &mut Out) {
        out.queue.clear();
        out.held.clear();
        out.left = 0;
        self.wait_for_room(out, false);
        self.held.ends(&self.home.owing);
    }

    /// Sends parts, of which the first is the caller's again; the others stay where they are until their request is over. `later`: with what comes
    /// next.
    ///
    /// # Safety
    /// They can be read, and the others stay so; memory that is unmapped is an error.
    pub(super) unsafe fn push(&self, out: &mut Out, parts: &[libc::iovec], later: bool) {
        let mut gone = 0;
        let holds = self.held.is_there();
        if !holds
            && !later
            && let Some(fd) = self.fd()
        {
            // SAFETY: as the caller promises.
            match unsafe { socket::send_all(fd, parts) } {
                Ok(n) => gone = n.unwrap_or(0),
                Err(e) => return self.cannot_send(out, code_of(&e)),
            }
        }
        let mut before = std::mem::take(&mut out.held);
        for (k, part) in parts.iter().enumerate() {
            let skipped = gone.min(part.iov_len);
            gone -= skipped;
            let (at, len) = (part.iov_base as u64 + skipped as u64, part.iov_len - skipped);
            if k == 0 {
                // SAFETY: as the caller promises.
                before.extend_from_slice(unsafe { std::slice::from_raw_parts(at as *const u8, len) });
                if !before.is_empty() {
                    out.queue.push_back(Part::Bytes(std::mem::take(&mut before)));
                }
            } else if len > 0 {
                out.queue.push_back(Part::Memory(at, len));
            }
        }
        self.leave(out, holds && !later, later);
    }

    /// The same for bytes that are the caller's again.
    #[inline]
    pub(super) fn push_bytes(&self, out: &mut Out, bytes: &[u8], later: bool) {
        let mut gone = 0;
        let holds = self.held.is_there();
        if !holds
            && !later
            && let Some(fd) = self.fd()
        {
            match socket::send(fd, bytes) {
                Ok(Some(n)) if n == bytes.len() => return,
                Ok(n) => gone = n.unwrap_or(0),
                Err(e) => return self.cannot_send(out, code_of(&e)),
            }
        }
        out.held.extend_from_slice(&bytes[gone..]);
        self.leave(out, holds && !later || out.held.len() > HELD, later);
    }

    /// What was queued leaves, `now` or when somebody calls.
    pub(super) fn leave(&self, out: &mut Out, now: bool, later: bool) {
        if out.queue.is_empty() && out.held.is_empty() {
            self.read.store(out.last, Ordering::Release);
        } else if now {
            self.send_queue(out);
        } else {
            self.has_left_over(out, later);
        }
    }

    #[cold]
    pub(super) fn cannot_send(&self, out: &mut Out, code: i32) {
        // What has come is still taken: it may say why.
        let _ = self.gone.compare_exchange(0, code, Ordering::AcqRel, Ordering::Relaxed);
        self.has_nothing(out);
        self.speaks.store(true, Ordering::Release);
    }

    /// Sends what has not left, as far as the socket takes it.
    #[inline]
    pub fn flush(&self) {
        if self.held.is_there() {
            self.send_queue(&mut lock(&self.out));
        }
    }

    /// The same at a turn of a wait, if it is time.
    #[inline]
    pub fn turn(&self) {
        if self.held.turn() {
            self.flush();
        }
    }

    /// The same before the thread sleeps, who is told when the socket takes more.
    pub fn flush_or_watch(&self) {
        self.flush();
        if self.held.is_there() {
            self.wait_for_room(&mut lock(&self.out), true);
        }
    }

    pub(super) fn send_queue(&self, out: &mut Out) {
        let Some(fd) = self.fd() else { return };
        if !out.held.is_empty() {
            out.queue.push_back(Part::Bytes(std::mem::take(&mut out.held)));
        }
        while !out.queue.is_empty() {
            let mut parts = [iov(0, 0); PARTS];
            let mut n = 0;
            for (to, part) in parts.iter_mut().zip(&out.queue) {
                *to = part.iov();
                n += 1;
            }
            parts[0] = iov(parts[0].iov_base as u64 + out.left as u64, parts[0].iov_len - out.left);
            // SAFETY: copies of this queue's, and pieces of requests that are not over.
            let mut gone = match unsafe { socket::send_all(fd, &parts[..n]) } {
                Ok(Some(n)) => n,
                Ok(None) => break,
                Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => break,
                Err(e) => return self.cannot_send(out, code_of(&e)),
            };
            while gone > 0 {
                let Some(first) = out.queue.front() else { break };
                let rest = first.iov().iov_len - out.left;
                if gone < rest {
                    out.left += gone;
                    break;
                }
                gone -= rest;
                out.left = 0;
                out.queue.pop_front();
            }
        }
        if out.queue.is_empty() {
            self.has_nothing(out);
            self.read.store(out.last, Ordering::Release);
            return;
        }
        self.held.is_waited_for();
        if !self.home.lets_wait() {
            self.wait_for_room(out, true);
        }
    }
}
