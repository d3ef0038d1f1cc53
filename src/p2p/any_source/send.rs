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

use std::sync::Arc;

use super::far::{FarRoad, Goods};
use super::key_of;
use super::offer::{Fetch, Offered};
use super::request::Request;
use super::ring::*;
use super::{check_buffer, gone};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
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

/// Up to this many bytes a long message is copied into the spool at once, which costs less than a call of the kernel on either side.
const COPIED_AT_ONCE: usize = if cfg!(loom) { 0 } else { 32 << 10 };
/// How long whoever waits for room yields its core before it sleeps: as long as it takes to empty a good part of a ring. Others wait as well.
const YIELDS_NS: u64 = 100_000;
/// How long it sleeps at most: a receiver that has freed a few places, and waits for something else then, does not ring.
const LOOKS_NS: u64 = 50_000_000;

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
}

/// How the ring is reached.
pub(super) enum Way {
    /// In shared memory.
    Near(Near),
    /// By RDMA.
    Far(Box<FarRoad>),
}

/// A ring in shared memory.
pub(super) struct Near {
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
        }
    }

    /// Does a request wait for room?
    pub(super) fn is_waited_for(&self) -> bool {
        self.unplaced.load(Ordering::Acquire) != 0
    }

    /// Is it this process's own ring?
    fn is_own(&self) -> bool {
        matches!(&self.way, Way::Near(near) if near.peer.is_none())
    }

    /// Is there a request that is not completed?
    pub fn is_pending(&self) -> bool {
        self.request.lock().unwrap_or_else(|e| e.into_inner()).is_some()
    }

    #[inline(always)]
    fn is_dead(&self) -> bool {
        matches!(&self.way, Way::Near(near) if near.peer.as_ref().is_some_and(|p| p.is_dead()))
    }

    /// Puts a message of up to [`AREA_BYTES`] bytes into a slot of a ring in shared memory; its ticket. `None`: no room, or no such ring.
    #[inline(always)]
    fn place(&self, ep: &Endpoint, data: Run) -> Option<u64> {
        let Way::Near(near) = &self.way else { return None };
        let ticket = ep.any_source.stakes.with(self.rank, near.ring_at, |stake| {
            match near.ring.claim(&self.room, |ticket| stake.on(ticket)) {
                Claimed::Ticket(ticket) => {
                    near.ring.publish(ticket, ep.rank, data);
                    if data.len() > SLOT_BYTES {
                        self.look_ahead(near, ticket, data.len());
                    }
                    Some(ticket)
                }
                Claimed::Full => None,
            }
        })?;
        near.wake_receiver(self.index);
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
    fn look_ahead(&self, near: &Near, ticket: u64, len: usize) {
        if self.last.load(Ordering::Relaxed) + 1 == ticket {
            near.ring.prefetch_area(ticket + 1, len);
        }
        self.last.store(ticket, Ordering::Relaxed);
    }

    /// The same for a message that lies elsewhere.
    fn place_away(&self, ep: &Endpoint, kind: Kind, away: Away) -> Option<u64> {
        let Way::Near(near) = &self.way else { return None };
        let ticket = ep.any_source.stakes.with(self.rank, near.ring_at, |stake| {
            match near.ring.claim(&self.room, |ticket| stake.on(ticket)) {
                Claimed::Ticket(ticket) => {
                    near.ring.publish_away(ticket, ep.rank, kind, away);
                    Some(ticket)
                }
                Claimed::Full => None,
            }
        })?;
        near.wake_receiver(self.index);
        traced!(self.note("any source, long", away.len as usize, ticket));
        Some(ticket)
    }

    /// A request waits for room, or not any more.
    pub(super) fn set_unplaced(&self, yes: bool) {
        self.unplaced.store(yes as u32, Ordering::Release);
    }

    #[cold]
    fn gone_error(&self, ep: &Endpoint, what: &str) -> Error {
        Error::new(
            Code::Peer,
            format!("rank {}: any-source send to (rank {}, index {}): it {what}", ep.rank, self.dst, self.index),
        )
    }

    fn gone(&self) -> Option<&str> {
        match &self.way {
            Way::Near(near) => gone(&near.peer),
            Way::Far(road) => road.gone(),
        }
    }

    pub(super) fn check_peer(&self, ep: &Endpoint) -> Result<()> {
        self.gone().map_or(Ok(()), |what| Err(self.gone_error(ep, what)))
    }

    /// How many messages may be outstanding.
    fn limit(&self) -> u64 {
        match &self.way {
            Way::Near(near) => near.ring.limit(),
            Way::Far(road) => road.limit(),
        }
    }
}

impl Near {
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

/// How far a message has come.
pub(super) enum Stage {
    /// It waits for room in the ring, or in the spool.
    Waits,
    /// Under this ticket, synchronous: waits until it is taken.
    Unconfirmed(u64),
    /// Its offer is under way.
    Offered(Offered),
    /// The same between nodes.
    FarOffered(Goods),
}

/// A message that is not sent at once.
pub(super) struct Message {
    out: &'static Outgoing,
    data: Run,
    timeout: i32,
    deadline_ns: u64,
    /// It has come for a slot before.
    tried: bool,
    pub stage: Stage,
    /// A long message's block, ready to be published.
    goods: Option<(Kind, BlockRef)>,
    /// The same between nodes.
    far_goods: Option<Goods>,
    /// It is handed over: the words that name its memory.
    loan: Option<[u64; 2]>,
}

impl Message {
    pub fn new(ep: &Endpoint, out: &'static Outgoing, data: Run) -> Message {
        let timeout = ep.spool.budget(out.comm).timeout_ms();
        let deadline_ns = match timeout {
            t if t < 0 => u64::MAX,
            t => now_ns() + t as u64 * 1_000_000,
        };
        Message::made(out, data, timeout, deadline_ns)
    }

    fn made(out: &'static Outgoing, data: Run, timeout: i32, deadline_ns: u64) -> Message {
        let (stage, goods, far_goods) = (Stage::Waits, None, None);
        Message { out, data, timeout, deadline_ns, tried: false, stage, goods, far_goods, loan: None }
    }

    /// It is handed over, under these words: sent when it is in its slot, in synchronous mode too.
    pub fn hand_over(&mut self, words: [u64; 2]) {
        self.loan = Some(words);
        self.timeout = if self.timeout < 0 { 1 } else { self.timeout };
    }

    /// A message of the library's own: short, waits for room whatever the mode is, and is sent when it is in its slot.
    pub fn told(out: &'static Outgoing, data: Run) -> Message {
        Message::made(out, data, 1, 0)
    }

    fn is_long(&self) -> bool {
        self.data.len() > AREA_BYTES && self.loan.is_none()
    }

    /// Moves it on; `true`: it is sent, in the sense of the mode.
    pub fn step(&mut self, ep: &'static Endpoint) -> Result<bool> {
        let near = match &self.out.way {
            Way::Near(near) => near,
            Way::Far(road) => return self.step_far(ep, road),
        };
        match &mut self.stage {
            Stage::FarOffered(_) => Ok(false),
            Stage::Waits => {
                let Some(ticket) = self.try_place(ep)? else { return Ok(false) };
                match self.goods.take() {
                    Some((Kind::Offered, block)) => self.stage = Stage::Offered(Offered::new(block)),
                    _ if self.timeout < 0 => self.stage = Stage::Unconfirmed(ticket),
                    _ => return Ok(true),
                }
                Ok(false)
            }
            Stage::Unconfirmed(ticket) => Ok(near.ring.is_taken(*ticket)),
            Stage::Offered(offered) => {
                let late = self.timeout >= 0 && now_ns() >= self.deadline_ns;
                offered.serve(ep, self.out, near, self.data, late)
            }
        }
    }

    /// The same between nodes.
    fn step_far(&mut self, ep: &'static Endpoint, road: &FarRoad) -> Result<bool> {
        match &mut self.stage {
            Stage::Waits => {
                if self.is_long() && self.far_goods.is_none() {
                    self.far_goods = road.pack(ep, self.out.comm, self.data, self.timeout)?;
                }
                let ticket = match &self.far_goods {
                    Some(goods) => road.place_away(ep, goods)?,
                    None if self.is_long() => None,
                    None => road.place(ep, self.data)?,
                };
                let Some(ticket) = ticket else {
                    return if self.timeout == 0 { Err(self.no_room(ep)) } else { Ok(false) };
                };
                traced!(self.out.note("any source, far", self.data.len(), ticket));
                match self.far_goods.take() {
                    Some(goods) if goods.is_offered() => self.stage = Stage::FarOffered(goods),
                    _ if self.timeout < 0 => self.stage = Stage::Unconfirmed(ticket),
                    _ => return Ok(true),
                }
                Ok(false)
            }
            Stage::Unconfirmed(ticket) => road.is_taken(*ticket),
            Stage::FarOffered(goods) => {
                let (done, late) = (goods.is_done(ep), self.timeout >= 0 && now_ns() >= self.deadline_ns);
                if !(done || late) {
                    return Ok(false);
                }
                let Stage::FarOffered(goods) = std::mem::replace(&mut self.stage, Stage::Waits) else {
                    return Ok(false);
                };
                if done {
                    goods.give_back(ep);
                    return Ok(true);
                }
                match road.withdraw(ep, self.out.comm, self.data, goods) {
                    Ok(()) => Ok(true),
                    Err(goods) => {
                        self.stage = Stage::FarOffered(goods);
                        Ok(false)
                    }
                }
            }
            Stage::Offered(_) => Ok(false),
        }
    }

    fn try_place(&mut self, ep: &Endpoint) -> Result<Option<u64>> {
        self.tried = true;
        let ticket = if let Some([len, at]) = self.loan {
            self.out.place_away(ep, Kind::Loan, Away { len, at, generation: 0 })
        } else if self.is_long() {
            if self.goods.is_none() {
                self.goods = self.pack(ep);
            }
            match self.goods {
                Some((kind, block)) => {
                    let away = Away { len: self.data.len() as u64, at: block.at, generation: block.generation };
                    self.out.place_away(ep, kind, away)
                }
                None => None,
            }
        } else {
            self.out.place(ep, self.data)
        };
        if ticket.is_none() && self.timeout == 0 {
            let error = self.no_room(ep);
            self.drop_goods(ep);
            return Err(error);
        }
        Ok(ticket)
    }

    /// Prepares a long message's block: a copy of it in the spool, or an offer. `None`: no room for either now.
    fn pack(&self, ep: &Endpoint) -> Option<(Kind, BlockRef)> {
        let Way::Near(near) = &self.out.way else { return None };
        let reachable = near.peer.as_ref().is_none_or(|p| p.cma());
        // Nobody else takes what this process sends to itself while this thread waits.
        let at_once = self.timeout == 0 || near.peer.is_none() || self.data.len() <= COPIED_AT_ONCE || !reachable;
        if self.timeout >= 0
            && at_once
            && let Some(block) = copy_into_spool(ep, self.out.comm, self.data)
        {
            return Some((Kind::Spooled, block));
        }
        if self.timeout == 0 {
            return None;
        }
        let to_itself = near.peer.is_none();
        super::offer::make(ep, self.out.comm, self.data, to_itself, reachable).map(|block| (Kind::Offered, block))
    }

    /// Gives back what was prepared and not published. What another node may be reading stays registered.
    pub fn drop_goods(&mut self, ep: &Endpoint) {
        if let Some(goods) = self.far_goods.take() {
            goods.give_back(ep);
        }
        if matches!(self.stage, Stage::FarOffered(_))
            && let Stage::FarOffered(goods) = std::mem::replace(&mut self.stage, Stage::Waits)
        {
            goods.abandon(ep);
        }
        if let Some((_, block)) = self.goods.take() {
            ep.any_source.take_back(block);
            ep.spool.give_back(block);
        }
    }

    #[cold]
    fn no_room(&self, ep: &Endpoint) -> Error {
        let budget = ep.spool.budget(self.out.comm);
        let what = if self.is_long() && self.goods.is_none() && self.far_goods.is_none() {
            format!("{} of {} bytes of the spool are taken", budget.used(), budget.limit())
        } else {
            format!("all {} places at the receiver are taken", self.out.limit())
        };
        Error::new(
            Code::SpoolFull,
            format!(
                "rank {}: any-source send of {} bytes to (rank {}, index {}): {what}; in buffered mode it does not wait",
                ep.rank,
                self.data.len(),
                self.out.dst,
                self.out.index
            ),
        )
    }

    #[cold]
    fn hopeless(&self, ep: &Endpoint, when: &str) -> Error {
        Error::new(
            Code::Argument,
            format!(
                "rank {}: any-source send to itself on index {} {when}: no other thread could receive, so it would wait for ever",
                ep.rank, self.out.index
            ),
        )
    }

    /// Has it come for room, and is there little?
    fn is_early(&self) -> bool {
        match &self.out.way {
            Way::Near(near) => self.tried && matches!(self.stage, Stage::Waits) && !near.ring.has_much_room(),
            Way::Far(_) => false,
        }
    }

    pub fn scene(&self, ep: &'static Endpoint) -> Waiting<'_> {
        Waiting { ep, message: self }
    }
}

/// A copy of a message in the spool.
pub(super) fn copy_into_spool(ep: &Endpoint, comm: i32, data: Run) -> Option<BlockRef> {
    let len = data.len();
    if len > ep.spool.budget(comm).limit() {
        return None;
    }
    let block = ep.spool.take(comm, len, len)?;
    data.copy_to(ep.spool.run(block.at + BLOCK_HEADER as u64, len));
    Some(block)
}

/// What a message that is being sent waits for.
pub(super) struct Waiting<'a> {
    ep: &'static Endpoint,
    message: &'a Message,
}

impl Waiting<'_> {
    fn near(&self) -> Option<&Ring> {
        match &self.message.out.way {
            Way::Near(near) => Some(&near.ring),
            Way::Far(_) => None,
        }
    }
    /// Is it for room in a ring of this node?
    fn is_for_room(&self) -> bool {
        matches!(self.message.stage, Stage::Waits) && self.near().is_some()
    }
}

impl Scene for Waiting<'_> {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        match &self.message.stage {
            Stage::Offered(offered) => Some(offered.asleep(self.ep)),
            _ => None,
        }
    }
    fn is_ordered(&self) -> bool {
        match (&self.message.stage, &self.message.out.way) {
            // The receiver rings for what it finds in its own region.
            (Stage::Waits | Stage::Unconfirmed(_), Way::Near(Near { peer: Some(peer), .. })) => {
                peer.region.header().is_ordered()
            }
            _ => self.ep.is_ordered(),
        }
    }
    fn bits(&self) -> u32 {
        match &self.message.stage {
            Stage::Waits => super::share::ROOM_BITS,
            Stage::Unconfirmed(_) => !super::share::ROOM_BITS,
            Stage::Offered(_) | Stage::FarOffered(_) => doorbell::bit(self.message.out.index as usize),
        }
    }
    /// Many processes wait for room in one ring: they sleep on a bell of the ring.
    fn bell(&self) -> &AtomicU32 {
        match (&self.message.stage, self.near()) {
            (Stage::Waits | Stage::Unconfirmed(_), Some(ring)) => &ring.header().bell,
            _ => &self.ep.board().bell,
        }
    }
    fn fall_asleep(&self) -> bool {
        // A ring on another node is looked at again and again.
        let Some(ring) = self.near() else { return false };
        match &self.message.stage {
            Stage::FarOffered(_) => return false,
            Stage::Offered(offered) => {
                let word = offered.asleep(self.ep);
                // SYNC POINT: pairs with the receiver's look at it after it has changed the offer; ordered by `membarrier`.
                word.store(word.load(Ordering::Relaxed) | ASLEEP, Ordering::Relaxed);
            }
            // Nobody rings for room in the spool.
            Stage::Waits if self.message.is_long() && self.message.goods.is_none() => return false,
            // The receiver takes it away when it rings.
            Stage::Waits => {
                ring.header().wanted.fetch_or(ROOM, Ordering::AcqRel);
                // SYNC POINT: pairs with the fence in the receiver's `look_for_sleepers`.
                fence(Ordering::SeqCst);
            }
            Stage::Unconfirmed(_) => drop(ring.header().wanted.fetch_or(TAKEN, Ordering::AcqRel)),
        }
        true
    }
    fn needs_barrier(&self) -> bool {
        !self.is_for_room()
    }
    fn longest_ns(&self) -> u64 {
        if self.is_for_room() { LOOKS_NS } else { u64::MAX }
    }
    fn yields_ns(&self) -> u64 {
        if self.is_for_room() { YIELDS_NS } else { u64::MAX }
    }
    fn ready(&self) -> bool {
        let message = self.message;
        let late = || message.timeout >= 0 && now_ns() >= message.deadline_ns;
        match (&message.stage, &message.out.way) {
            (Stage::Offered(offered), _) => {
                matches!(offered.fetch(self.ep), Fetch::Asked | Fetch::Done | Fetch::Streaming) || late()
            }
            (Stage::FarOffered(goods), _) => goods.is_done(self.ep) || late(),
            (_, Way::Far(road)) => road.is_due(),
            (Stage::Waits, Way::Near(near)) => near.ring.header().sent.load(Ordering::Relaxed) < near.ring.room(),
            (Stage::Unconfirmed(ticket), Way::Near(near)) => near.ring.is_taken(*ticket),
        }
    }
    fn meanwhile(&self) -> bool {
        let more = self.ep.waiting_sends.push(self.ep);
        if let Way::Far(road) = &self.message.out.way {
            road.tend();
        }
        let late = matches!(self.message.stage, Stage::Offered(_)) && self.message.timeout >= 0;
        more | self.ep.any_source.push(self.ep) | late
    }
    fn gone(&self) -> Option<Error> {
        let out = self.message.out;
        let damaged = || {
            let full =
                matches!(self.message.stage, Stage::Waits) && self.near().is_some_and(|ring| ring.is_damaged(None));
            full.then_some("has a ring whose counters have been damaged by some rank")
        };
        out.gone().or_else(damaged).map(|what| out.gone_error(self.ep, what))
    }
    fn waits(&self) -> Waits {
        let out = self.message.out;
        Waits {
            operation: Operation::SendAny,
            peer: out.rank,
            index: out.index,
            comm: out.comm,
            bytes: self.message.data.len() as u64,
            since_ns: 0,
        }
    }
}
