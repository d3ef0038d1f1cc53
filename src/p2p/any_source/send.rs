//! Sending to a receiver of any source.
//!
//! A short message goes into a slot at once when there is room. Otherwise it is a [`Message`], which is moved on step by step: by the
//! blocking call that waits for it, or by whoever has time when it belongs to a request.
//!
//! What the modes of sending mean here, where a message always needs a slot at the receiver, and nothing is ever posted:
//!
//! | mode | ring full | short message | long message |
//! |---|---|---|---|
//! | buffered | `SpoolFull` at once | over when in its slot | copied into the spool at once |
//! | standard | waits for room | the same | offered; into the spool when the time-out passes |
//! | synchronous | waits for room | over when taken | over when taken |

mod message;
mod waiting;

use std::sync::Arc;

use super::key_of;
use super::offer::{Fetch, Offered};
use super::remote::{Payload, RemoteRoad};
use super::request::Request;
use super::ring::*;
use super::{check_buffer, gone};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::run::Run;
use crate::base::table::{Key, Keyed};
use crate::base::trace::traced;
use crate::base::unwinding::NoWayOut;
use crate::fabric::shm::peer::Peer;
use crate::lane::BlockRef;
use crate::lane::record::{ASLEEP, BLOCK_HEADER, EVENT};
use crate::p2p::PROC_NULL;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::wait::{Board, Operation, Scene, Waiter, Waits, doorbell};
pub(super) use message::{Message, Stage, copy_into_spool};
pub(super) use waiting::Waiting;
use waiting::YIELDS_NS;

/// A ring of another rank (or one's own), as a sender.
#[repr(align(64))]
pub struct Outgoing {
    key: Key,
    /// Below which ticket there was room when somebody looked last.
    room: AtomicU64,
    /// The ticket of the message before, if it was not very short.
    last: AtomicU64,
    /// A request waits for room: later messages go after it.
    unplaced: AtomicU32,
    /// The receiver: rank in the world.
    pub(super) rank: u32,
    /// The ring.
    pub(super) way: Way,
    pub(super) comm: i32,
    pub(super) dst: i32,
    pub(super) index: i32,
    pub(super) request: Mutex<Option<Request>>,
    /// When a wait looks next whether the receiver has freed the communicator; [`FREED`]: it has.
    looks_ns: AtomicU64,
}

/// See there.
const FREED: u64 = u64::MAX;
/// Once in so long a wait looks whether the receiver has freed the communicator, which may take a map of its memory.
const LOOK_NS: u64 = 5_000_000;

/// How the ring is reached.
pub(super) enum Way {
    /// In shared memory.
    Local(Local),
    /// By RDMA.
    Remote(Box<RemoteRoad>),
}

/// A ring in shared memory.
pub(super) struct Local {
    pub ring: Ring,
    pub ring_at: u64,
    pub board: &'static Board,
    /// `None`: it is this process's own.
    pub peer: Option<Arc<Peer>>,
}

impl Keyed for Outgoing {
    fn key(&self) -> Key {
        self.key
    }
}

impl Outgoing {
    pub(super) fn new(key: Key, (comm, dst, index): (i32, i32, i32), rank: u32, way: Way) -> Outgoing {
        let (room, unplaced) = (AtomicU64::new(0), AtomicU32::new(0));
        Outgoing {
            key,
            room,
            last: AtomicU64::new(0),
            unplaced,
            rank,
            way,
            comm,
            dst,
            index,
            request: Mutex::new(None),
            looks_ns: AtomicU64::new(0),
        }
    }

    /// Does a request wait for room?
    pub(super) fn is_waited_for(&self) -> bool {
        self.unplaced.load(Ordering::Acquire) != 0
    }

    /// The way to a ring on another node.
    pub(super) fn road(&self) -> Option<&RemoteRoad> {
        if let Way::Remote(road) = &self.way { Some(road) } else { None }
    }

    /// Is it this process's own ring?
    fn is_own(&self) -> bool {
        matches!(&self.way, Way::Local(local) if local.peer.is_none())
    }

    /// Is there a request that is not completed?
    pub fn is_pending(&self) -> bool {
        self.request.lock().unwrap_or_else(|e| e.into_inner()).is_some()
    }

    #[inline(always)]
    fn is_dead(&self) -> bool {
        matches!(&self.way, Way::Local(local) if local.peer.as_ref().is_some_and(|p| p.is_dead()))
    }

    /// Puts a message of up to [`AREA_BYTES`] bytes into a slot of a ring in shared memory; its ticket. `None`: no room, or no such ring.
    #[inline(always)]
    fn place(&self, ep: &Endpoint, data: Run) -> Option<u64> {
        let Way::Local(local) = &self.way else { return None };
        let ticket = ep.any_source.stakes.with(self.rank, local.ring_at, |stake| {
            match local.ring.claim(&self.room, |ticket| stake.on(ticket)) {
                Claimed::Ticket(ticket) => {
                    local.ring.publish(ticket, ep.rank, data);
                    if data.len() > SLOT_BYTES {
                        self.look_ahead(local, ticket, data.len());
                    }
                    Some(ticket)
                }
                Claimed::Full => None,
            }
        })?;
        local.wake_receiver(self.index);
        traced!(self.note("any source", data.len(), ticket));
        Some(ticket)
    }

    /// An event, see [`trace`](crate::base::trace).
    #[cfg(feature = "trace")]
    fn note(&self, way: &'static str, len: usize, ticket: u64) {
        use crate::base::trace::{Event, What, note};
        let (peer, index, comm) = (self.rank, self.index, self.comm);
        note(Event { peer, index, comm, bytes: len as u64, number: ticket, ..Event::new(What::Sent, way) });
    }

    /// Who sends one message after the other, with nobody's in between, has the next one's lines come: the receiver has read what was there.
    #[inline(always)]
    fn look_ahead(&self, local: &Local, ticket: u64, len: usize) {
        if self.last.load(Ordering::Relaxed) + 1 == ticket {
            local.ring.prefetch_area(ticket + 1, len);
        }
        self.last.store(ticket, Ordering::Relaxed);
    }

    /// The same for a message that lies elsewhere.
    fn place_away(&self, ep: &Endpoint, kind: Kind, away: Away) -> Option<u64> {
        let Way::Local(local) = &self.way else { return None };
        let ticket = ep.any_source.stakes.with(self.rank, local.ring_at, |stake| {
            match local.ring.claim(&self.room, |ticket| stake.on(ticket)) {
                Claimed::Ticket(ticket) => {
                    local.ring.publish_away(ticket, ep.rank, kind, away);
                    Some(ticket)
                }
                Claimed::Full => None,
            }
        })?;
        local.wake_receiver(self.index);
        traced!(self.note("any source, long", away.len as usize, ticket));
        Some(ticket)
    }

    /// A request waits for room, or not any more.
    pub(super) fn set_unplaced(&self, yes: bool) {
        self.unplaced.store(yes as u32, Ordering::Release);
    }

    #[cold]
    fn gone_error(&self, ep: &Endpoint, what: &str) -> Error {
        error!(Code::Peer, "rank {}: any-source send to (rank {}, index {}): it {what}", ep.rank, self.dst, self.index)
    }

    fn gone(&self) -> Option<&str> {
        match &self.way {
            Way::Local(local) => gone(&local.peer),
            Way::Remote(road) => road.gone(),
        }
    }

    /// The same for who waits for the receiver.
    fn takes_nothing_more(&self, ep: &Endpoint) -> Option<&str> {
        self.gone().or_else(|| self.is_freed(ep).then_some("has freed the communicator"))
    }

    /// Has the receiver, on this node, freed the communicator? Then nobody takes what is in its ring. Not known at once: nearly all sends end before.
    fn is_freed(&self, ep: &Endpoint) -> bool {
        if self.is_own() || self.road().is_some() || self.comm == crate::p2p::COMM_WORLD {
            return false;
        }
        let (now, next_ns) = (now_ns(), self.looks_ns.load(Ordering::Relaxed));
        if next_ns == FREED || now < next_ns {
            return next_ns == FREED;
        }
        let place = ep.contexts.find(self.comm).map(|context| context.place);
        let freed = next_ns != 0 && place.is_some_and(|place| ep.has_freed(self.rank, place));
        self.looks_ns.store(if freed { FREED } else { now + LOOK_NS }, Ordering::Relaxed);
        freed
    }

    /// Does the receiver, on this node, look at nothing any more that this process has for it?
    fn is_left_alone(&self) -> bool {
        self.is_dead() || self.looks_ns.load(Ordering::Relaxed) == FREED
    }

    pub(super) fn check_wait(&self, ep: &Endpoint) -> Result<()> {
        self.takes_nothing_more(ep).map_or(Ok(()), |what| Err(self.gone_error(ep, what)))
    }

    pub(super) fn check_peer(&self, ep: &Endpoint) -> Result<()> {
        self.gone().map_or(Ok(()), |what| Err(self.gone_error(ep, what)))
    }

    /// How many messages may be outstanding.
    fn limit(&self) -> u64 {
        match &self.way {
            Way::Local(local) => local.ring.limit(),
            Way::Remote(road) => road.limit(),
        }
    }
}

impl Local {
    /// What follows every change that a receiver may wait for.
    #[inline(always)]
    pub(super) fn wake_receiver(&self, index: i32) {
        // SYNC POINT: the sleeper sets its byte and has the order bought by `membarrier`; no fence here.
        doorbell::light_barrier();
        let sleep = self.ring.header().asleep.load(Ordering::Relaxed);
        if sleep != 0 {
            self.ring_receiver(sleep, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn ring_receiver(&self, sleep: u32, index: i32) {
        let board = self.board;
        if sleep & ASLEEP != 0 {
            doorbell::ring(&board.bell, doorbell::bit(index as usize));
        }
        if sleep & EVENT != 0 {
            doorbell::ring(&board.event_bell, u32::MAX);
        }
    }
}

/// Blocking send to a receiver of any source.
#[inline]
pub fn send_any(comm: i32, data: Run, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if data.len() <= AREA_BYTES
        && let Some(out) = ep.any_source.outgoing.find(key_of(comm, dst, index))
        && !data.is_nowhere()
        && out.unplaced.load(Ordering::Relaxed) == 0
        && !out.is_dead()
        && ep.spool.budget(comm).timeout_ms() >= 0
        && out.place(ep, data).is_some()
    {
        return Ok(());
    }
    NoWayOut::during("a send to a receiver of any source", || send_slow(ep, comm, data, dst, index))
}

#[cold]
#[inline(never)]
fn send_slow(ep: &'static Endpoint, comm: i32, data: Run, dst: i32, index: i32) -> Result<()> {
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    check_buffer(ep, data)?;
    let out = ep.outgoing(comm, dst, index)?;
    out.check_peer(ep)?;
    until_sent(ep, out, Message::new(ep, out, data))
}

/// Waits until a message is sent, in the sense of the mode.
pub(super) fn until_sent(ep: &'static Endpoint, out: &'static Outgoing, mut message: Message) -> Result<()> {
    let alone = out.is_own() && ep.single_threaded();
    if alone && message.timeout < 0 {
        return Err(message.hopeless(ep, "in synchronous mode"));
    }
    let mut waiter = Waiter::new();
    let early_until = now_ns() + YIELDS_NS;
    loop {
        // Who comes for each slot as it gets free takes lines away from the receiver for little. But nobody waits long for more than one.
        while message.is_early() && now_ns() < early_until {
            if !waiter.spin()
                && let Err(e) = waiter.slow(&message.scene(ep))
            {
                message.drop_goods(ep);
                return Err(e);
            }
        }
        // A request that waits for room was first.
        if out.unplaced.load(Ordering::Acquire) != 0 {
            super::request::push_request(ep, out);
        }
        if out.unplaced.load(Ordering::Acquire) == 0 {
            match message.step(ep) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(e) => {
                    message.drop_goods(ep);
                    return Err(e);
                }
            }
        }
        if alone && matches!(message.stage, Stage::Waits) {
            message.drop_goods(ep);
            return Err(message.hopeless(ep, "to a ring that is full"));
        }
        if !waiter.spin()
            && let Err(e) = waiter.slow(&message.scene(ep))
        {
            message.drop_goods(ep);
            return Err(e);
        }
    }
}
