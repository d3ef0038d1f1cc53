//! What this process has with one peer: a connection while there is one, what is under way on it, and how it ended.
//!
//! Requests are posted under a lock, so what is read for a request while the lock is held reaches the peer in the order of the
//! readings. Every so many requests one asks for a completion, which stands for all before it; a *ticket* is the number of a request.
//!
//! A connection is a reliable queue pair. It may be given up when others need its place (`super::turns`), and who posts then has it made
//! again first: requests, tickets and their order do not know of it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use super::arrivals::Arrivals;
pub use super::arrivals::COUNTED;
use super::control::Shared;
use super::costs::Timed;
use super::device::{Device, End, Limits, Pair};
use super::forget::{Attempts, Lives};
use super::handshake::Handshake;
use super::hello::Card;
use super::kept::Kept;
use super::region::{Domain, Region};
use super::room::{Room, Taken};
use super::switching::Switch;
use super::ways::Way;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::thread::yield_core;
use ending::Ending;
pub use memory::Window;
use memory::Windows;
pub use posting::{How, Last};
pub(super) use under_way::InVain;
use under_way::{Echo, Stuck};

pub mod ending;
mod freed;
pub mod memory;
pub(super) mod packing;
mod posting;
mod under_way;

/// Requests under way at most.
pub const DEPTH: u32 = 256;
/// Pieces of a request, where the device can.
pub const PIECES: u32 = 16;
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
    pub made: Option<Made>,
    /// The context goes with the connection, since another needs its place.
    pub parts: bool,
    pub times: super::turns::Times,
    pub switch: Switch,
    pub attempts: Attempts,
    /// When the link was made, in nanoseconds.
    pub made_ns: u64,
}

/// A queue pair, or a channel.
pub(super) struct Made {
    pub pair: Arc<dyn Pair>,
    pub way: Way,
    /// The table and the place where its last use is noted, and that by the table's clock.
    pub room: Arc<Room>,
    pub place: usize,
    pub used: u32,
    /// Its place among the connections or rings of the node, if it takes one.
    pub taken: Option<Taken>,
    /// The end to which it is connected, once it is; and was it kept from an earlier turn?
    pub other: Option<Box<End>>,
    pub is_kept: bool,
}

impl Made {
    /// Connects it to the other end, unless it is.
    pub fn connect(&mut self, to: &End) -> Result<()> {
        if self.is_kept {
            let same = self.other.as_deref() == Some(to);
            return same
                .then_some(())
                .ok_or_else(|| Error::new(Code::Peer, "the peer has not kept the other end of it"));
        }
        self.other = Some(Box::new(*to));
        self.pair.connect(to)
    }
}

/// A peer that has no room is asked again after so long at the latest.
const PUT_OFF_MOST_MS: u32 = 30_000;

/// A number that comes with a write of a remote command or its reply.
pub const COMMANDED: u32 = 15 << 28;

/// What this process has with one peer.
pub struct Link {
    /// This process's rank.
    pub me: u32,
    /// The peer's.
    pub peer: u32,
    /// Where the peer answers datagrams, once it is known.
    pub card: OnceLock<Card>,
    /// The network knows where that is.
    pub(super) is_found: AtomicBool,
    pub(super) home: Weak<Shared>,
    pub(super) lives: Lives,
    domain: Arc<Domain>,
    arrivals: Arc<Arrivals>,
    /// Writes with [`COUNTED`] posted, and arrived.
    counted: AtomicU64,
    arrived: Arc<AtomicU64>,
    limits: Limits,
    /// Answers that have come.
    answers: AtomicU32,
    /// The peer has answered that it has no room now, but perhaps in so many milliseconds; 0: it has not.
    put_off: AtomicU32,
    posted: Mutex<Posted>,
    /// Requests may be posted: the connection is there.
    up: AtomicBool,
    pub(super) completed: AtomicU64,
    /// Completions taken.
    taken: AtomicU64,
    /// Where there are several ways, of one request the time is taken.
    pub(super) timed: Option<Box<Timed>>,
    /// Where they come; one thread at a time.
    queue: Mutex<Option<Arc<dyn Pair>>>,
    /// The queue pair, to break it off without the lock.
    current: Mutex<Option<Arc<dyn Pair>>>,
    ending: Ending,
    /// The peer has asked where a ring of this process for messages of any source is. Written before it is answered, by the thread that
    /// answers; read by receivers, who see the peer's ticket only after that.
    knows_a_ring: AtomicBool,
    /// The peer has finalized.
    left: AtomicBool,
    /// The peer knows that this process has.
    end_known: AtomicBool,
    windows: Mutex<Windows>,
    /// How often one side has told the other of an annex.
    annexes: AtomicU32,
    /// The peer's era, see [`memory`].
    peer_era: AtomicU32,
    /// Indices that the peer has.
    pub indices: AtomicU32,
    /// What the peer may read for now, beside its windows; and held by the thread of this side that is lent something there.
    lent: Mutex<Option<Region>>,
    borrowing: Mutex<()>,
    /// See [`packing`]: it is asked for; it was packed, and nobody has looked since at what it missed.
    asked_for: AtomicBool,
    unpacked: AtomicBool,
    /// Its numbers among those that wait for a connection's place, and for a context's; 0: it does not.
    in_line: [AtomicU64; 2],
}

impl Link {
    /// Nothing but a name yet. `first`: this side reserves before the peer does; `life`: no other link of the process had it.
    pub(super) fn new(home: &Shared, this: &Weak<Shared>, peer: u32, first: bool, life: u64) -> Link {
        let limits = home.device.limits();
        Link {
            me: home.rank,
            peer,
            card: OnceLock::new(),
            is_found: AtomicBool::new(false),
            home: this.clone(),
            lives: Lives::new(life),
            domain: home.device.domain().clone(),
            arrivals: home.arrivals.clone(),
            counted: AtomicU64::new(0),
            arrived: Arc::default(),
            limits,
            answers: AtomicU32::new(0),
            put_off: AtomicU32::new(0),
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
                made: None,
                parts: false,
                times: Default::default(),
                switch: Default::default(),
                attempts: Default::default(),
                made_ns: now_ns(),
            }),
            up: AtomicBool::new(false),
            completed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            timed: home.device.has_ways().then(Box::default),
            queue: Mutex::default(),
            current: Mutex::default(),
            ending: Ending::default(),
            knows_a_ring: AtomicBool::new(false),
            left: AtomicBool::new(false),
            end_known: AtomicBool::new(false),
            windows: Mutex::new(Windows::new(home.annexes.clone())),
            annexes: AtomicU32::new(0),
            peer_era: AtomicU32::new(0),
            indices: AtomicU32::new(0),
            lent: Mutex::default(),
            borrowing: Mutex::default(),
            asked_for: AtomicBool::new(false),
            unpacked: AtomicBool::new(false),
            in_line: Default::default(),
        }
    }

    /// Makes the queue pair of a new turn, by this way, unless one was kept.
    pub(super) fn make_pair(
        &self,
        device: &Arc<dyn Device>,
        (way, taken): (Way, Option<Taken>),
        kept: Option<Box<Kept>>,
    ) -> Result<Made> {
        // Where there are two ways contexts are what others ask for, whichever way it is.
        let used = taken.as_ref().filter(|_| !device.has_ways()).map(|taken| (taken.room.clone(), taken.place));
        let (room, place) = used.or_else(|| self.context_place()).ok_or_else(|| self.broken())?;
        let is_kept = kept.is_some();
        let (pair, other) = match kept {
            Some(kept) => (kept.pair, Some(kept.other)),
            None => (device.pair_by(way, DEPTH)?, None),
        };
        self.arrivals.know(pair.number(), self.peer, &self.arrived);
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(pair.clone());
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(pair.clone());
        let used = room.now();
        Ok(Made { pair, way, room, place, used, taken, other, is_kept })
    }

    /// Takes the queue pair down and gives its place back. All that came by it is noted; all that was posted counts as over.
    pub(super) fn drop_pair(&self, posted: &mut Posted) {
        drop(self.take_down(posted));
    }

    /// The same; what is left of it. Its place is given back.
    pub(super) fn take_down(&self, posted: &mut Posted) -> Option<Made> {
        let mut made = posted.made.take()?;
        self.arrivals.forget(made.pair.number());
        self.timed.iter().for_each(|timed| timed.forget());
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
        made.taken = None;
        self.set_idle(true);
        posted.silent = 0;
        self.completed.fetch_max(posted.last, Ordering::AcqRel);
        Some(made)
    }

    /// The way of the turn that is there or being made.
    pub fn way(&self) -> Option<Way> {
        self.lock().made.as_ref().map(|made| made.way)
    }

    /// Its number among those that wait for such a place, see [`line`](super::turns::line); 0: it does not.
    pub(super) fn number_in_line(&self, which: usize) -> u64 {
        self.in_line[which].load(Ordering::Relaxed)
    }
    pub(super) fn is_in_line(&self, which: usize, number: u64) {
        self.in_line[which].store(number, Ordering::Relaxed);
    }
    /// This number of its is over, if it has no other by now.
    pub(super) fn left_line(&self, which: usize, number: u64) {
        let _ = self.in_line[which].compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
    /// It waits for no such place any more.
    pub(super) fn leaves_line(&self, which: usize) {
        self.in_line[which].store(0, Ordering::Relaxed);
    }

    /// This end of the connection, for the peer to connect to.
    pub(super) fn end(&self, posted: &Posted) -> End {
        posted.made.as_ref().map_or(End::default(), |made| made.pair.end())
    }

    /// The peer has told of its memory.
    pub(super) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::AcqRel);
    }
    /// The peer has no room for so many milliseconds.
    pub(super) fn is_put_off(&self, ms: u32) {
        self.put_off.store(ms.clamp(1, PUT_OFF_MOST_MS), Ordering::Release);
    }
    /// Has it said so since this was asked last, and for how long?
    pub fn takes_put_off(&self) -> Option<Duration> {
        let ms = self.put_off.swap(0, Ordering::AcqRel);
        (ms != 0).then(|| Duration::from_millis(u64::from(ms)))
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
    /// Can something be posted without a wait for the connection? If there is none it is asked for, so that there is one later. Where nothing
    /// goes any more the answer is yes: whoever posts is told why.
    pub fn is_there(&self) -> bool {
        self.is_there_or_wanted(|| self.try_lock())
    }
    /// Asks for the connection if there is none, also where another thread has its lock for a moment.
    pub fn ask_for_it(&self) {
        self.is_there_or_wanted(|| Some(self.lock()));
    }
    #[inline]
    fn is_there_or_wanted<'a>(&'a self, lock: impl FnOnce() -> Option<MutexGuard<'a, Posted>>) -> bool {
        if !self.is_up()
            && self.failure().is_none()
            && let Some(home) = self.home.upgrade()
        {
            if let Some(mut posted) = lock() {
                home.want(self, &mut posted);
            }
            return false;
        }
        true
    }
    /// The peer is told where a ring for messages of any source is.
    pub fn is_told_of_a_ring(&self) {
        self.knows_a_ring.store(true, Ordering::Relaxed);
    }
    /// May the peer hold a ticket of such a ring? Who has only been met, or sends by indices, does not.
    pub fn may_hold_a_ticket(&self) -> bool {
        self.knows_a_ring.load(Ordering::Relaxed)
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

    /// Bytes of registered memory that its queue pair has.
    pub(super) fn pair_bytes(&self) -> usize {
        let posted = self.lock();
        let kept = posted.switch.kept.as_ref().map_or(0, |kept| kept.pair.bytes());
        posted.made.as_ref().map_or(0, |made| made.pair.bytes()) + kept
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

    /// The number of the next write with [`COUNTED`]; asked while it is filled.
    pub fn next_counted(&self) -> u64 {
        self.counted.fetch_add(1, Ordering::Relaxed) + 1
    }
    /// Waits until so many of the peer's writes with [`COUNTED`] have completed here. It ends: the record that told the number came with the
    /// same write, or the connection has failed, or is given up because of a number that no write has.
    pub fn until_arrived(&self, number: u64) -> Result<()> {
        let mut turns = 0u32;
        let mut last = (0, InVain::since(now_ns()));
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
                    last = (arrived, InVain::since(now));
                } else if last.1.look(now) > UNCOUNTED_NS {
                    return Err(self.damaged("the number of a landing among those that are counted"));
                }
            }
            yield_core();
        }
        Ok(())
    }

    /// What the device can.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
    /// Longest bulk request in bytes.
    pub fn longest(&self) -> usize {
        self.limits.longest as usize
    }
    /// Longest write of bulk in bytes.
    pub fn write_most(&self) -> usize {
        self.limits.write_most.min(self.limits.longest) as usize
    }
    /// Most pieces of a bulk request.
    pub fn pieces(&self) -> usize {
        PIECES.min(self.limits.pieces) as usize
    }

    /// Writes and reads posted so far, their bytes, and completions taken.
    pub fn done(&self) -> [u64; 4] {
        let [writes, reads, bytes] = self.lock().done;
        [writes, reads, bytes, self.taken.load(Ordering::Relaxed)]
    }
}
