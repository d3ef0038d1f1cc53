//! The connection of this process with one peer: a reliable queue pair, what is under way on it, and how it ended.
//!
//! Requests are posted under a lock, so what is read for a request while the lock is held reaches the peer in the order of the
//! readings. Every so many requests one asks for a completion, which stands for all before it; a *ticket* is the number of a request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::arrivals::Arrivals;
pub use super::arrivals::COUNTED;
use super::completion::{CompletionQueue, status_text};
use super::device::Port;
use super::ffi::{Access, Atomic, Rdma, SendFlags, SendWr, Sge, Target, Wc, opcode, wc_status};
use super::hello::Place;
use super::queue_pair::{Depth, QueuePair, Remote};
use super::region::{Arena, Domain};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};

/// Requests under way at most.
const DEPTH: u32 = 256;
/// One request in so many asks for a completion.
const SIGNAL_EVERY: u64 = 64;
/// Pieces of a request, where the device can.
pub const PIECES: u32 = 16;
/// Bytes of a bulk request at most. Each ends with a packet that the peer acknowledges, and an acknowledgement gives the connection all its
/// repetitions back: so a link that loses packets is not taken for a dead one, as it would be by some devices in a request of many.
const LONGEST: u32 = 32 << 10;
/// Longest record that is posted inline, or copied where the device takes less.
pub const RECORD_MOST: usize = 256;
/// A wait that lasts longer than this since anything was posted tries the connection.
const PROBE_NS: u64 = 500_000_000;

/// Memory that the peer writes, and the peer's that this process writes: the page of a lane, or a chunk of its fronts.
#[derive(Debug)]
pub struct Window {
    /// Ours.
    pub arena: Arena,
    /// The peer's, once it has said.
    pub remote: OnceLock<Place>,
}

impl Window {
    fn new(domain: &Arc<Domain>, bytes: usize) -> Result<Window> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        Ok(Window { arena: Arena::new(domain, bytes, access)?, remote: OnceLock::new() })
    }
    /// Where the peer finds it.
    pub fn place(&self) -> Place {
        Place { addr: self.arena.region().addr(), rkey: self.arena.region().rkey() }
    }
}

/// What is under way; changed under the link's lock.
struct Posted {
    /// Number of the last request.
    last: u64,
    /// Requests since one asked for a completion.
    silent: u64,
    /// When the connection was last tried, in nanoseconds.
    at_ns: u64,
    /// Writes, reads, their bytes.
    done: [u64; 3],
}

impl Posted {
    fn count(&mut self, read: bool, bytes: usize) {
        self.done[read as usize] += 1;
        self.done[2] += bytes as u64;
    }
}

/// A piece of a bulk transfer: local memory, and its key.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Its registration's key.
    pub lkey: u32,
}

/// The connection with one peer.
pub struct Link {
    /// This process's rank.
    pub me: u32,
    /// The peer's.
    pub peer: u32,
    domain: Arc<Domain>,
    qp: QueuePair,
    arrivals: Arc<Arrivals>,
    /// Writes with [`COUNTED`] posted, and arrived.
    counted: AtomicU64,
    arrived: Arc<AtomicU64>,
    queue: Arc<CompletionQueue>,
    psn: u32,
    longest: u32,
    /// The queue pair knows the peer's.
    connected: Mutex<bool>,
    /// The peer has said that it can receive.
    ready: AtomicBool,
    /// Answers that have come.
    answers: AtomicU32,
    posted: Mutex<Posted>,
    completed: AtomicU64,
    /// Completions taken.
    taken: AtomicU64,
    polling: Mutex<()>,
    /// Copies of records where the device takes too little inline: a place for each request.
    copies: Option<Arena>,
    failure: OnceLock<String>,
    windows: Mutex<HashMap<(u64, u32), Arc<Window>>>,
    /// Indices that the peer has.
    pub indices: AtomicU32,
}

impl Link {
    pub(super) fn new(me: u32, peer: u32, domain: &Arc<Domain>, port: &Port, arrivals: &Arc<Arrivals>) -> Result<Link> {
        let queue = CompletionQueue::new(&port.device, DEPTH + 16, None)?;
        let depth = Depth { sends: DEPTH + 8, receives: 0, pieces: PIECES, inline: RECORD_MOST as u32 };
        let qp = QueuePair::reliable(domain, port, [&queue, &arrivals.queue], &arrivals.numbers, depth)?;
        let number = qp.number();
        let copies = if qp.depth.inline < RECORD_MOST as u32 {
            Some(Arena::new(domain, DEPTH as usize * RECORD_MOST, Access::LOCAL_WRITE)?)
        } else {
            None
        };
        Ok(Link {
            me,
            peer,
            domain: domain.clone(),
            qp,
            arrivals: arrivals.clone(),
            counted: AtomicU64::new(0),
            arrived: arrivals.count(number),
            queue,
            psn: now_ns() as u32 & 0xff_ffff,
            longest: port.max_message.min(LONGEST),
            connected: Mutex::new(false),
            ready: AtomicBool::new(false),
            answers: AtomicU32::new(0),
            posted: Mutex::new(Posted { last: 0, silent: 0, at_ns: now_ns(), done: [0; 3] }),
            completed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            polling: Mutex::new(()),
            copies,
            failure: OnceLock::new(),
            windows: Mutex::default(),
            indices: AtomicU32::new(0),
        })
    }

    /// This end, for the peer to connect to.
    pub(super) fn end(&self, port: &Port) -> Remote {
        Remote { qp_num: self.qp.number(), psn: self.psn, gid: port.address.gid, lid: port.lid, mtu: port.mtu }
    }

    /// Number of its queue pair.
    pub(super) fn number(&self) -> u32 {
        self.qp.number()
    }

    /// Connects to the peer's end, the first time.
    pub(super) fn connect(&self, end: &Remote) -> Result<()> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        if !*connected {
            self.qp.connect(end, self.psn)?;
            *connected = true;
        }
        Ok(())
    }

    /// The peer has answered: it can receive.
    pub(super) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
        self.answers.fetch_add(1, Ordering::AcqRel);
    }
    pub(super) fn answers(&self) -> u32 {
        self.answers.load(Ordering::Acquire)
    }
    /// May requests be posted?
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// The window of this lane and number, made if need be.
    pub(super) fn window(&self, lane: u64, number: u32, bytes: usize) -> Result<Arc<Window>> {
        let mut all = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(w) = all.get(&(lane, number)) {
            return Ok(w.clone());
        }
        let w = Arc::new(Window::new(&self.domain, bytes)?);
        all.insert((lane, number), w.clone());
        Ok(w)
    }
    /// The first window of a lane whose number fits, if it is known what the peer has there.
    pub fn find_window(&self, fits: impl Fn(u64) -> bool) -> Option<Arc<Window>> {
        let all = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = all.iter().filter(|((lane, n), w)| *n == 0 && fits(*lane) && w.remote.get().is_some());
        found.next().map(|(_, w)| w.clone())
    }
    /// The pages of all lanes.
    pub fn pages(&self) -> Vec<Arc<Window>> {
        let all = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|((_, n), _)| *n == 0).map(|(_, w)| w.clone()).collect()
    }
    /// The window, if it is known what the peer has there.
    pub fn open_window(&self, lane: u64, number: u32) -> Option<Arc<Window>> {
        let all = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(lane, number)).filter(|w| w.remote.get().is_some()).cloned()
    }

    /// Why nothing goes any more, if it does not.
    #[inline]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Ends the connection for this reason. Afterwards the peer can write nothing here.
    pub fn fail(&self, why: String) {
        if self.failure.set(why).is_ok() {
            let _ = self.qp.break_off();
        }
    }

    #[cold]
    fn broken(&self) -> Error {
        let (me, peer) = (self.me, self.peer);
        let why = self.failure().unwrap_or("is not connected");
        Error::new(Code::Peer, format!("rank {me}: rank {peer} {why}"))
    }

    fn lock(&self) -> MutexGuard<'_, Posted> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts one request; `signal`: somebody will wait for it.
    fn post(&self, posted: &mut Posted, wr: &mut SendWr, signal: bool) -> Result<u64> {
        while posted.last - self.completed.load(Ordering::Acquire) >= DEPTH as u64 - 1 {
            if self.failure().is_some() {
                return Err(self.broken());
            }
            // Of so many requests one asked for a completion. What is under way may wait for the peer's receives as the peer's does for
            // ours.
            self.poll();
            self.arrivals.collect();
            std::hint::spin_loop();
        }
        if self.failure().is_some() {
            return Err(self.broken());
        }
        posted.silent += 1;
        if signal || posted.silent >= SIGNAL_EVERY {
            wr.send_flags |= SendFlags::SIGNALED.bits();
            posted.silent = 0;
        }
        wr.wr_id = posted.last + 1;
        // SAFETY: the request is whole; its data is inline, copied, or stays registered until its ticket is over.
        if let Err(e) = unsafe { self.qp.post(wr) } {
            // What was posted before without asking for a completion gets one now.
            self.fail(format!("cannot be written to ({})", e.detail()));
            return Err(self.broken());
        }
        posted.last += 1;
        Ok(posted.last)
    }

    /// Writes a record of up to [`RECORD_MOST`] bytes to the peer, as `fill` makes it while the lock is held. Returns its ticket.
    #[inline]
    pub fn write(&self, to: Place, at: usize, fill: impl FnOnce(&mut [u8; RECORD_MOST]) -> usize) -> Result<u64> {
        self.write_with(to, at, || None, fill)
    }

    /// As [`write`](Link::write); when `imm`, asked while the lock is held, has a number, the peer's thread gets it when the record is there.
    pub fn write_with(
        &self,
        to: Place,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        fill: impl FnOnce(&mut [u8; RECORD_MOST]) -> usize,
    ) -> Result<u64> {
        let mut record = [0u8; RECORD_MOST];
        let mut posted = self.lock();
        let len = fill(&mut record);
        let imm = imm();
        let mut sge = Sge { addr: record.as_ptr() as u64, length: len as u32, lkey: 0 };
        let mut flags = SendFlags::INLINE;
        if len > self.qp.depth.inline as usize
            && let Some(copies) = &self.copies
        {
            let place = (posted.last % DEPTH as u64) as usize * RECORD_MOST;
            // SAFETY: the place's last request was DEPTH requests ago, so it has completed, see `post`; places lie in the arena.
            unsafe {
                let to = copies.as_ptr().add(place);
                std::ptr::copy_nonoverlapping(record.as_ptr(), to, len);
                sge = Sge { addr: to as u64, length: len as u32, lkey: copies.region().lkey() };
            }
            flags = SendFlags::empty();
        }
        let code = if imm.is_some() { opcode::RDMA_WRITE_WITH_IMM } else { opcode::RDMA_WRITE };
        let target = Target { rdma: Rdma { remote_addr: to.addr + at as u64, rkey: to.rkey } };
        let mut wr = SendWr::new(code, flags, target);
        wr.imm_data = imm.unwrap_or(0).to_be();
        (wr.sg_list, wr.num_sge) = (&mut sge, (len != 0) as i32);
        posted.count(false, len);
        self.post(&mut posted, &mut wr, false)
    }

    /// The number of the next write with [`COUNTED`]; asked while it is filled.
    pub fn next_counted(&self) -> u64 {
        self.counted.fetch_add(1, Ordering::Relaxed) + 1
    }
    /// Waits until so many of the peer's writes with [`COUNTED`] have completed here. It ends: the record that told the number came with the
    /// same write, or the connection has failed.
    pub fn until_arrived(&self, number: u64) -> Result<()> {
        // SYNC POINT: pairs with the release in `Arrivals::note`.
        while self.arrived.load(Ordering::Acquire) < number {
            let failed = self.failure().is_some();
            self.poll();
            self.arrivals.collect();
            if failed && self.arrived.load(Ordering::Acquire) < number {
                return Err(self.broken());
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Longest bulk request in bytes.
    pub fn longest(&self) -> usize {
        self.longest as usize
    }
    /// Most pieces of a bulk request.
    pub fn pieces(&self) -> usize {
        self.qp.depth.pieces as usize
    }

    /// Starts an RDMA write (`push`) of registered pieces to the peer, or a read of the peer's memory into them. At most
    /// [`pieces`](Link::pieces), together at most [`longest`](Link::longest) bytes. Returns the ticket, which is over only after that of the
    /// last request of a transfer (`last`).
    ///
    /// # Safety
    /// The pieces stay registered, and unchanged or unread, until the ticket is over.
    pub unsafe fn bulk(&self, push: bool, last: bool, pieces: &[Piece], remote: Place) -> Result<u64> {
        let mut list = [Sge::default(); PIECES as usize];
        for (to, p) in list.iter_mut().zip(pieces) {
            *to = Sge { addr: p.addr, length: p.len, lkey: p.lkey };
        }
        let code = if push { opcode::RDMA_WRITE } else { opcode::RDMA_READ };
        let target = Target { rdma: Rdma { remote_addr: remote.addr, rkey: remote.rkey } };
        let mut wr = SendWr::new(code, SendFlags::empty(), target);
        (wr.sg_list, wr.num_sge) = (list.as_mut_ptr(), pieces.len().min(list.len()) as i32);
        let mut posted = self.lock();
        posted.count(!push, pieces.iter().map(|p| p.len as usize).sum());
        self.post(&mut posted, &mut wr, last)
    }

    /// Adds to a word of eight bytes at the peer, atomically against all that devices do to it; what it was comes into `before`. Returns
    /// the ticket.
    ///
    /// # Safety
    /// The piece, eight bytes long, stays registered and is left alone until the ticket is over.
    pub unsafe fn fetch_add(&self, remote: Place, add: u64, before: Piece) -> Result<u64> {
        let mut sge = Sge { addr: before.addr, length: before.len, lkey: before.lkey };
        let target =
            Target { atomic: Atomic { remote_addr: remote.addr, compare_add: add, swap: 0, rkey: remote.rkey } };
        let mut wr = SendWr::new(opcode::ATOMIC_FETCH_AND_ADD, SendFlags::empty(), target);
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        let mut posted = self.lock();
        posted.count(true, 8);
        self.post(&mut posted, &mut wr, true)
    }

    /// Takes completions. Cheap when there are none; one thread at a time.
    pub fn poll(&self) {
        let Ok(_one) = self.polling.try_lock() else { return };
        let mut wc = [Wc::default(); 16];
        loop {
            let n = match self.queue.poll(&mut wc) {
                Ok(n) => n,
                Err(e) => return self.fail(format!("is cut off ({})", e.detail())),
            };
            self.taken.fetch_add(n as u64, Ordering::Relaxed);
            for c in &wc[..n] {
                match c.status {
                    wc_status::SUCCESS => {}
                    wc_status::FLUSHED => self.fail("is cut off: this side gave the connection up".into()),
                    _ => self.fail(self.cause(c)),
                }
                // Failed or not: the device is done with it.
                self.completed.fetch_max(c.wr_id, Ordering::AcqRel);
            }
            if n < wc.len() {
                return;
            }
        }
    }

    #[cold]
    fn cause(&self, c: &Wc) -> String {
        let text = status_text(c.status);
        match c.status {
            wc_status::RETRY_EXCEEDED => {
                format!("does not answer any more: its process or node has died, or the link is down ({text})")
            }
            wc_status::LOCAL_QP_OP => {
                format!("is out of reach: the link of this node is down, or its device has failed ({text})")
            }
            wc_status::REMOTE_ACCESS => format!("refused a key ({text})"),
            _ => format!("is cut off ({text})"),
        }
    }

    /// Writes and reads posted so far, their bytes, and completions taken.
    pub fn done(&self) -> [u64; 4] {
        let [writes, reads, bytes] = self.lock().done;
        [writes, reads, bytes, self.taken.load(Ordering::Relaxed)]
    }

    /// Is this request over?
    pub fn is_over(&self, ticket: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= ticket || {
            self.poll();
            self.completed.load(Ordering::Acquire) >= ticket
        }
    }

    /// Waits for a request of [`bulk`](Link::bulk): when it returns the device is done with its memory. It ends: the device reports
    /// success or, within about two seconds of silence, failure.
    pub fn wait(&self, ticket: u64) -> Result<()> {
        let mut turns = 0u32;
        let mut failed_ns = 0;
        while !self.is_over(ticket) {
            if self.failure().is_some() && turns.is_multiple_of(64) {
                let now = now_ns();
                failed_ns = if failed_ns == 0 { now } else { failed_ns };
                // What was under way is flushed, and reported, within moments; a device that does not is out of order.
                if now - failed_ns > 1_000_000_000 {
                    return Err(self.broken());
                }
            }
            turns += 1;
            if turns.is_multiple_of(64) {
                self.arrivals.collect();
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            } else {
                std::hint::spin_loop();
            }
        }
        if ticket != 0 && self.failure().is_some() { Err(self.broken()) } else { Ok(()) }
    }

    /// What a lasting wait does for the connection: takes completions, and tries it when nothing was posted for long, so that
    /// a peer that died silently is noticed.
    pub fn tend(&self, page: Place) {
        self.poll();
        let now = now_ns();
        let Ok(mut posted) = self.posted.try_lock() else { return };
        if now.saturating_sub(posted.at_ns) < PROBE_NS {
            return;
        }
        posted.at_ns = now;
        let target = Target { rdma: Rdma { remote_addr: page.addr, rkey: page.rkey } };
        let mut wr = SendWr::new(opcode::RDMA_WRITE, SendFlags::empty(), target);
        let _ = self.post(&mut posted, &mut wr, true);
    }

    /// Waits until all that was posted is over, or the time.
    pub fn drain(&self, until_ns: u64) {
        if !self.is_ready() || self.failure().is_some() {
            return;
        }
        let ticket = {
            let mut posted = self.lock();
            if posted.last == self.completed.load(Ordering::Acquire) {
                return;
            }
            let Some(w) = self
                .windows
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .values()
                .find_map(|w| w.remote.get().copied())
            else {
                return;
            };
            let target = Target { rdma: Rdma { remote_addr: w.addr, rkey: w.rkey } };
            let mut wr = SendWr::new(opcode::RDMA_WRITE, SendFlags::empty(), target);
            self.post(&mut posted, &mut wr, true)
        };
        if let Ok(ticket) = ticket {
            while !self.is_over(ticket) && self.failure().is_none() && now_ns() < until_ns {
                std::thread::yield_now();
            }
        }
    }
}
