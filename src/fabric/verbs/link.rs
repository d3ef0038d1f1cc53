//! What this process has with one peer: a connection while there is one, what is under way on it, and how it ended.
//!
//! Requests are posted under a lock, so what is read for a request while the lock is held reaches the peer in the order of the
//! readings. Every so many requests one asks for a completion, which stands for all before it; a *ticket* is the number of a request.
//!
//! A connection is a reliable queue pair. It may be given up when others need its place (`super::turns`), and who posts then has it made
//! again first: requests, tickets and their order do not know of it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::arrivals::Arrivals;
pub use super::arrivals::COUNTED;
use super::completion::CompletionQueue;
use super::control::{FIRST_PATIENCE, Shared};
use super::device::Port;
use super::ffi::{Access, Atomic, Rdma, SendFlags, SendWr, Sge, Target, opcode};
use super::handshake::Handshake;
use super::hello::{Card, Place};
use super::queue_pair::{AddressHandle, Depth, QueuePair, Remote, SILENCE_MOST_NS, first_packet};
use super::region::{Arena, Domain, Region};
use super::room::Room;
use std::time::Duration;

use crate::base::clock::now_ns;
use crate::base::error::Result;
use ending::{Ending, Reason};
pub use memory::Window;
use memory::Windows;
use under_way::{Echo, Stuck};

pub mod ending;
pub mod memory;
mod under_way;

/// Requests under way at most.
const DEPTH: u32 = 256;
/// One request in so many asks for a completion.
const SIGNAL_EVERY: u64 = 64;
/// Pieces of a request, where the device can.
pub const PIECES: u32 = 16;
/// Bytes of a bulk request at most. Each ends with a packet that the peer acknowledges, and an acknowledgement gives the connection all its
/// repetitions back: so a link that loses packets is not taken for a dead one, as it would be by some devices in a request of many.
const LONGEST: u32 = 32 << 10;
/// Bytes of writes that make a group, two of which are under way at a time: more than a fast network has on its way, and no more than that,
/// since what comes behind a lost packet is sent again. Of reads each is a group: a device that is slow to answer takes a longer queue for a
/// loss, and repeats it all.
const GROUP: usize = 96 << 10;
/// Longest record that is posted inline, or copied where the device takes less.
pub const RECORD_MOST: usize = 256;
/// A question for a key is repeated after so long at most.
const LEARN_PATIENCE: Duration = Duration::from_millis(250);
/// A write that is there, and whose completion has not come after so long, was none.
const UNCOUNTED_NS: u64 = 5_000_000_000;
/// A wait that lasts longer than this since anything was posted tries the connection.
const PROBE_NS: u64 = 500_000_000;

/// What is under way; changed under the link's lock.
pub(super) struct Posted {
    /// Number of the last request.
    pub last: u64,
    /// Requests since one asked for a completion.
    pub silent: u64,
    /// When the connection was last tried, in nanoseconds.
    at_ns: u64,
    stuck: Stuck,
    echo: Echo,
    /// Bytes of bulk requests since a group ended, and the tickets with which the last two did.
    group: usize,
    ends: [u64; 2],
    /// Writes, reads, their bytes.
    done: [u64; 3],
    /// How far the connection is made or given up.
    pub hand: Handshake,
    /// Its queue pair, while there is one.
    pub pair: Option<Pair>,
    pub times: super::turns::Times,
}

/// A queue pair, and its place among those of the node.
pub(super) struct Pair {
    pub qp: Arc<QueuePair>,
    pub psn: u32,
    pub room: Arc<Room>,
    pub place: usize,
    /// Last use, by the room's clock.
    pub used: u32,
    /// Copies of records where the device takes too little inline: a place for each request.
    copies: Option<Arena>,
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

/// What becomes of a word of eight bytes; whoever asks gets what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So much is added, wrapping.
    Add(u64),
    /// The second takes its place if it is the first.
    Swap(u64, u64),
}

/// A number that comes with a write of a remote command or its reply.
pub const COMMANDED: u32 = 15 << 28;

/// What this process has with one peer.
pub struct Link {
    /// This process's rank.
    pub me: u32,
    /// The peer's.
    pub peer: u32,
    /// Where the peer answers datagrams, once it is known.
    pub(super) card: OnceLock<Card>,
    /// The way there, once something was sent.
    pub(super) way: OnceLock<Arc<AddressHandle>>,
    pub(super) home: Weak<Shared>,
    domain: Arc<Domain>,
    arrivals: Arc<Arrivals>,
    /// Writes with [`COUNTED`] posted, and arrived.
    counted: AtomicU64,
    arrived: Arc<AtomicU64>,
    longest: u32,
    pieces: u32,
    /// Answers that have come.
    answers: AtomicU32,
    posted: Mutex<Posted>,
    /// Requests may be posted: the connection is there.
    up: AtomicBool,
    pub(super) completed: AtomicU64,
    /// Completions taken.
    taken: AtomicU64,
    /// Where they come; one thread at a time.
    queue: Mutex<Option<Arc<CompletionQueue>>>,
    /// The queue pair, to break it off without the lock.
    current: Mutex<Option<Arc<QueuePair>>>,
    ending: Ending,
    /// The peer has finalized.
    left: AtomicBool,
    /// The peer knows that this process has.
    end_known: AtomicBool,
    windows: Mutex<Windows>,
    /// The peer's era, see [`memory`].
    peer_era: AtomicU32,
    /// Indices that the peer has.
    pub indices: AtomicU32,
    /// What the peer may read for now, beside its windows; and held by the thread of this side that is lent something there.
    lent: Mutex<Option<Region>>,
    borrowing: Mutex<()>,
}

impl Link {
    /// Nothing but a name yet. `first`: this side reserves before the peer does.
    pub(super) fn new(home: &Shared, this: &Weak<Shared>, peer: u32, first: bool) -> Link {
        Link {
            me: home.rank,
            peer,
            card: OnceLock::new(),
            way: OnceLock::new(),
            home: this.clone(),
            domain: home.domain.clone(),
            arrivals: home.arrivals.clone(),
            counted: AtomicU64::new(0),
            arrived: Arc::default(),
            longest: home.port.max_message.min(LONGEST),
            pieces: PIECES.min(home.port.device.attr().max_sge.max(1) as u32),
            answers: AtomicU32::new(0),
            posted: Mutex::new(Posted {
                last: 0,
                silent: 0,
                at_ns: now_ns(),
                stuck: Stuck::default(),
                echo: Echo::default(),
                group: 0,
                ends: [0; 2],
                done: [0; 3],
                hand: Handshake::new(first),
                pair: None,
                times: Default::default(),
            }),
            up: AtomicBool::new(false),
            completed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            queue: Mutex::default(),
            current: Mutex::default(),
            ending: Ending::default(),
            left: AtomicBool::new(false),
            end_known: AtomicBool::new(false),
            windows: Mutex::default(),
            peer_era: AtomicU32::new(0),
            indices: AtomicU32::new(0),
            lent: Mutex::default(),
            borrowing: Mutex::default(),
        }
    }

    /// Makes the queue pair of a new turn.
    pub(super) fn make_pair(&self, port: &Port, room: &Arc<Room>, place: usize) -> Result<Pair> {
        let queue = CompletionQueue::new(&port.device, DEPTH + 16, None)?;
        let depth = Depth { sends: DEPTH + 8, receives: 0, pieces: PIECES, inline: RECORD_MOST as u32 };
        let qp =
            QueuePair::reliable(&self.domain, port, [&queue, &self.arrivals.queue], &self.arrivals.numbers, depth)?;
        let copies = (qp.depth.inline < RECORD_MOST as u32)
            .then(|| Arena::new(&self.domain, DEPTH as usize * RECORD_MOST, Access::LOCAL_WRITE))
            .transpose()?;
        let qp = Arc::new(qp);
        self.arrivals.know(qp.number(), self.peer, &self.arrived);
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(queue);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(qp.clone());
        Ok(Pair { qp, psn: first_packet()?, room: room.clone(), place, used: room.now(), copies })
    }

    /// Takes the queue pair down and gives its place back. All that came by it is noted; all that was posted counts as over.
    pub(super) fn drop_pair(&self, posted: &mut Posted) {
        let Some(pair) = posted.pair.take() else { return };
        self.arrivals.forget(pair.qp.number());
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let Pair { qp, room, place, copies, .. } = pair;
        drop((qp, copies));
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
        room.give_back(place);
        self.set_idle(true);
        posted.silent = 0;
        self.completed.fetch_max(posted.last, Ordering::AcqRel);
    }

    /// This end of the connection, for the peer to connect to.
    pub(super) fn end(&self, posted: &Posted, port: &Port) -> Remote {
        let (qp_num, psn) = posted.pair.as_ref().map_or((0, 0), |p| (p.qp.number(), p.psn));
        Remote { qp_num, psn, gid: port.address.gid, lid: port.lid, mtu: port.mtu }
    }

    /// The peer has told of its memory.
    pub(super) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::AcqRel);
    }
    pub(super) fn answers(&self) -> u32 {
        self.answers.load(Ordering::Acquire)
    }
    /// Is there a connection? It may be given up at any time; then the next request has it made again.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }
    pub(super) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Release);
    }
    /// Has the peer said that it has finalized?
    #[inline]
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
    pub(super) fn set_left(&self) {
        self.left.store(true, Ordering::Release);
    }
    /// Does the peer know that this process has finalized?
    pub(super) fn knows_end(&self) -> bool {
        self.end_known.load(Ordering::Acquire)
    }
    pub(super) fn end_is_known(&self) {
        self.end_known.store(true, Ordering::Release);
    }

    /// Bytes of copies of records.
    pub(super) fn copy_bytes(&self) -> usize {
        self.lock().pair.as_ref().and_then(|pair| pair.copies.as_ref()).map_or(0, Arena::len)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Posted> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Posted>> {
        match self.posted.try_lock() {
            Ok(posted) => Some(posted),
            Err(std::sync::TryLockError::Poisoned(p)) => Some(p.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Locks the connection, which is there then: made, or made again, if need be.
    #[inline]
    fn lock_up(&self) -> Result<MutexGuard<'_, Posted>> {
        let posted = self.lock();
        if posted.hand.is_up() {
            return Ok(posted);
        }
        drop(posted);
        self.come_up()
    }

    #[cold]
    fn come_up(&self) -> Result<MutexGuard<'_, Posted>> {
        loop {
            if self.failure().is_some() {
                return Err(self.broken());
            }
            let posted = self.lock();
            if posted.hand.is_up() {
                return Ok(posted);
            }
            drop(posted);
            let Some(home) = self.home.upgrade() else { return Err(self.broken()) };
            home.wait_for(self);
        }
    }

    /// Posts one request; `signal`: somebody will wait for it.
    fn post(&self, posted: &mut Posted, wr: &mut SendWr, signal: bool) -> Result<u64> {
        let mut turns = 0u32;
        while posted.last - self.completed.load(Ordering::Acquire) >= DEPTH as u64 - 1 {
            if self.has_ended() {
                return Err(self.broken());
            }
            turns += 1;
            if turns.is_multiple_of(1024) {
                self.is_stuck(posted, now_ns());
                std::thread::yield_now();
            }
            // Of so many requests one asked for a completion. What is under way may wait for the peer's receives as the peer's does for
            // ours.
            self.poll();
            self.arrivals.collect();
            std::hint::spin_loop();
        }
        if self.has_ended() {
            return Err(self.broken());
        }
        posted.silent += 1;
        if signal || posted.silent >= SIGNAL_EVERY {
            wr.send_flags |= SendFlags::SIGNALED.bits();
            posted.silent = 0;
        }
        wr.wr_id = posted.last + 1;
        let Some(pair) = &mut posted.pair else { return Err(self.broken()) };
        let now = pair.room.now();
        if now != pair.used {
            pair.room.use_now(pair.place, now);
            pair.used = now;
        }
        // SAFETY: the request is whole; its data is inline, copied, or stays registered until its ticket is over.
        if let Err(e) = unsafe { pair.qp.post(wr) } {
            // What was posted before without asking for a completion gets one now.
            self.fail(Reason::Other, format!("cannot be written to ({})", e.detail()));
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
        let posted = self.lock_up()?;
        self.post_record(posted, to, at, imm, fill)
    }

    /// As [`write_with`](Link::write_with), into the peer's part of a window.
    #[inline]
    pub fn write_into(
        &self,
        window: &Window,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        fill: impl FnOnce(&mut [u8; RECORD_MOST]) -> usize,
    ) -> Result<u64> {
        loop {
            let posted = self.lock_up()?;
            if let Some(place) = window.place_in(self.peer_era()) {
                return self.post_record(posted, place, at, imm, fill);
            }
            drop(posted);
            self.learn(window)?;
        }
    }

    /// Waits until the peer has told the key of its memory since the connection was made, or the connection is another one.
    #[cold]
    fn learn(&self, window: &Window) -> Result<()> {
        let Some(home) = self.home.upgrade() else { return Err(self.broken()) };
        let (since, mut patience) = (now_ns(), FIRST_PATIENCE);
        let (lane, number) = window.name();
        let over = || !self.is_up() || window.place_in(self.peer_era()).is_some();
        while !over() {
            home.ask_where(self, lane, number.saturating_sub(1), patience, over);
            patience = (patience * 2).min(LEARN_PATIENCE);
            self.tend();
            if now_ns() - since > home.patience_ns.max(SILENCE_MOST_NS) {
                self.is_late(home.no_answer());
            }
            self.check()?;
        }
        Ok(())
    }

    fn post_record(
        &self,
        mut posted: MutexGuard<'_, Posted>,
        to: Place,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        fill: impl FnOnce(&mut [u8; RECORD_MOST]) -> usize,
    ) -> Result<u64> {
        let mut record = [0u8; RECORD_MOST];
        let len = fill(&mut record);
        let imm = imm();
        let mut sge = Sge { addr: record.as_ptr() as u64, length: len as u32, lkey: 0 };
        let mut flags = SendFlags::INLINE;
        if let Some(pair) = &posted.pair
            && len > pair.qp.depth.inline as usize
            && let Some(copies) = &pair.copies
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
        let target = Target { rdma: Rdma { remote_addr: to.addr.wrapping_add(at as u64), rkey: to.rkey } };
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
    /// same write, or the connection has failed, or is given up because of a number that no write has.
    pub fn until_arrived(&self, number: u64) -> Result<()> {
        let mut turns = 0u32;
        let mut last = (0, now_ns());
        // SYNC POINT: pairs with the release in `Arrivals::note`.
        while self.arrived.load(Ordering::Acquire) < number {
            let failed = self.has_ended();
            self.poll();
            self.arrivals.collect();
            let arrived = self.arrived.load(Ordering::Acquire);
            if failed && arrived < number {
                return Err(self.broken());
            }
            turns += 1;
            if arrived != last.0 || turns.is_multiple_of(64) {
                let now = now_ns();
                if arrived != last.0 {
                    last = (arrived, now);
                } else if now - last.1 > UNCOUNTED_NS {
                    return Err(self.damaged("the number of a landing among those that are counted"));
                }
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
        self.pieces as usize
    }

    /// Waits until no more than the last group of bulk requests, and what has been added to it, is under way.
    pub fn until_room(&self) -> Result<()> {
        let before = self.lock().ends[0];
        self.wait(before)
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
        let mut posted = self.lock_up()?;
        let bytes = pieces.iter().map(|p| p.len as usize).sum();
        posted.count(!push, bytes);
        posted.group += bytes;
        let ends = !push || posted.group >= GROUP;
        let ticket = self.post(&mut posted, &mut wr, last || ends)?;
        if ends {
            (posted.ends, posted.group) = ([posted.ends[1], ticket], 0);
        }
        Ok(ticket)
    }

    /// Adds to a word of eight bytes at the peer, atomically against all that devices do to it; what it was comes into `before`. Returns
    /// the ticket.
    ///
    /// # Safety
    /// As for [`atomic`](Link::atomic).
    pub unsafe fn fetch_add(&self, remote: Place, add: u64, before: Piece) -> Result<u64> {
        // SAFETY: as the caller promises.
        unsafe { self.atomic(Change::Add(add), before, remote) }
    }

    /// Starts a change of an aligned word of eight bytes of the peer's, by its device. What was there goes to `old`, eight bytes.
    ///
    /// # Safety
    /// `old` stays registered, and unread, until the ticket is over.
    pub unsafe fn atomic(&self, change: Change, old: Piece, remote: Place) -> Result<u64> {
        let (code, compare_add, swap) = match change {
            Change::Add(n) => (opcode::ATOMIC_FETCH_AND_ADD, n, 0),
            Change::Swap(expected, new) => (opcode::ATOMIC_CMP_AND_SWP, expected, new),
        };
        let target = Target { atomic: Atomic { remote_addr: remote.addr, compare_add, swap, rkey: remote.rkey } };
        let mut sge = Sge { addr: old.addr, length: 8, lkey: old.lkey };
        let mut wr = SendWr::new(code, SendFlags::empty(), target);
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        let mut posted = self.lock_up()?;
        posted.count(true, 8);
        self.post(&mut posted, &mut wr, true)
    }

    /// Writes and reads posted so far, their bytes, and completions taken.
    pub fn done(&self) -> [u64; 4] {
        let [writes, reads, bytes] = self.lock().done;
        [writes, reads, bytes, self.taken.load(Ordering::Relaxed)]
    }
}
